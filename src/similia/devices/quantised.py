"""Turn a fitted pipeline into a model of whole numbers, which a small device and Python run with equal results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.codes import LevelEncoder, NGramEncoder, SequenceEncoder, SignRandomProjection
from similia.codes.sign_projection import hadamard_length
from similia.core.errors import BadType
from similia.core.text import counted
from similia.core.validation import check_choice, check_labels, check_positive_int
from similia.devices.coordinates import after_step, check_unused, first_stage, input_of_encoder, kinds_of, name_of
from similia.devices.stages import (
    DenseSigns,
    FloatHadamard,
    FloatLinear,
    FloatPrototypes,
    FloatSigns,
    HadamardSigns,
    Linear,
    Prototypes,
)
from similia.devices.tables import operations_of, short_length, sizes_of
from similia.learn import ConformalClassifier, HDClassifier
from similia.objects import n_objects
from similia.pipelines import steps_of

_HOW = 'SignRandomProjection(method="hadamard"), or similia fit --directions hadamard'


@dataclass(frozen=True)
class Loss:
    """Agreement of a quantised model with the original, measured on some objects.

    Attributes
    ----------
    n : int
        Number of objects.
    bits : float
        Share of the bits of the codes that are equal in both models.
    labels : float or None
        Share of the predicted labels that are equal in both models; None if the models predict no labels.
    before, after : float or None
        Accuracies of the original and of the quantised model; None if no true labels were given or the models predict
        no labels.
    """

    n: int
    bits: float
    labels: float | None
    before: float | None = None
    after: float | None = None

    def __str__(self) -> str:
        said = f"{self.bits:.2%} of the bits"
        if self.labels is not None:
            said += f" and {self.labels:.2%} of the labels"
        said += f" of {counted(self.n, 'object')} are equal"
        if self.before is not None and self.after is not None:
            said += f"; accuracy {self.before:.2%} before, {self.after:.2%} after"
        return said


@dataclass(frozen=True, repr=False)
class Quantised:
    """A model that computes with whole numbers or float32; `similia.quantise` makes it from a fitted pipeline.

    Attributes
    ----------
    model : Pipeline
        The pipeline that was quantised.
    input, linear, signs, prototypes
        The stages of the model, in the order in which they run. Their classes are in ``similia.devices.inputs``
        and ``similia.devices.stages``. `linear` and `signs` are None if `similia.LevelEncoder`,
        `similia.SequenceEncoder` or `similia.NGramEncoder` makes the codes; `prototypes` is None if the pipeline makes
        codes only.
    classes_ : ndarray or None
        Labels, in the order of the scores; None if the pipeline makes codes only.
    """

    model: Any
    input: Any
    linear: Linear | FloatLinear | None
    signs: DenseSigns | HadamardSigns | FloatSigns | FloatHadamard | None
    prototypes: Prototypes | FloatPrototypes | None
    classes_: npt.NDArray | None

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        return int((self.signs or self.input).n_bits)

    @property
    def in_floats(self) -> bool:
        """Whether the model computes with float32 instead of whole numbers."""
        return isinstance(self.linear, FloatLinear)

    @property
    def n_bytes(self) -> int:
        """Total size in bytes of the tables on the device, such as landmarks, projection and prototypes."""
        return sum(sizes_of(self).values())

    @property
    def operations(self) -> dict[str, int]:
        """Number of operations of each kind to predict the label of the longest object."""
        return operations_of(self)

    @property
    def hint(self) -> str:
        """A sentence: how many bytes ``SignRandomProjection(method="hadamard")`` would save; empty if none."""
        if not isinstance(self.signs, DenseSigns | FloatSigns) or self.linear is None:
            return ""
        dense = next(step for step in steps_of(self.model) if isinstance(step, SignRandomProjection))
        p = hadamard_length(dense.n_features_in_)
        first = short_length(self.linear) if isinstance(self.linear, Linear) else p
        saved = sizes_of(self)["projection"] - -(-self.n_bits // p) * (first + 2 * p) // 8
        how = f"fitted with Hadamard directions, the model would take {saved} bytes less"
        return f"{how} ({_HOW})" if saved > 0 else ""

    def transform(self, X: Any) -> npt.NDArray[np.uint8]:
        """Return the codes of n objects, packed bits of shape (n, n_bits // 8)."""
        return self.codes(self.input.read(X))

    def scores(self, X: Any) -> npt.NDArray:
        """Return the scores of the classes, int64 or float32 of shape (n, n_classes); the largest gives the label."""
        if self.prototypes is None:
            raise AttributeError("the model ends with codes and has no classes; quantise a pipeline with HDClassifier")
        return self.prototypes(self.transform(X))

    def predict(self, X: Any) -> npt.NDArray:
        """Return the labels of n objects; ties go to the first class."""
        scores = self.scores(X)
        assert self.classes_ is not None
        return self.classes_[np.argmax(scores, axis=1)]

    def loss(self, X: Any, y: npt.ArrayLike | None = None) -> Loss:
        """Compare the codes, the labels and, if `y` is given, the accuracy with those of the original model.

        Parameters
        ----------
        X : collection of n objects
        y : array-like (n,), optional
            True labels.

        Returns
        -------
        Loss

        Raises
        ------
        ValueError
            If an object is not valid for the model, such as a string that is too long, or `y` has another length.
        """
        y = None if y is None else check_labels(y, n_objects(X))
        before, after = self._codes_before(X), self.transform(X)
        bits = 1 - float(np.unpackbits(before ^ after, axis=1).mean())
        if self.prototypes is None:
            return Loss(n_objects(X), bits, None)
        old, new = self.model.predict(X), self.predict(X)
        accuracies = () if y is None else tuple(float(np.mean(found == y)) for found in (old, new))
        return Loss(len(old), bits, float(np.mean(old == new)), *accuracies)

    def codes(self, objects: Any) -> npt.NDArray[np.uint8]:
        """Return the codes of `objects`, the result of ``self.input.read(X)``."""
        if self.linear is None or self.signs is None:
            found: npt.NDArray[np.uint8] = self.input.codes(objects)
            return found
        signs: Any = self.signs  # of the same kind of numbers as `linear`
        return np.asarray(signs(self.linear(self.input.numbers(objects))))

    def _codes_before(self, X: Any) -> npt.NDArray[np.uint8]:
        for step in steps_of(self.model):
            if isinstance(step, HDClassifier):
                break
            X = step.transform(X)
        return np.asarray(X)

    def __repr__(self) -> str:
        classes = "codes only" if self.classes_ is None else f"{len(self.classes_)} classes"
        return f"Quantised({self.input.kind}, {self.n_bits} bits, {classes}, {self.n_bytes} bytes)"


def quantise(
    model: Any, X: Any = None, *, max_length: int | None = None, letters: str = "", numbers: str = "whole"
) -> Quantised:
    """Turn a fitted pipeline into a model for small devices, which computes with whole numbers or float32.

    Parameters
    ----------
    model : Pipeline
        A fitted pipeline that makes codes with `similia.SignRandomProjection` and, optionally, predicts labels with
        `similia.HDClassifier`. The projection can take

        - vectors from `similia.Nystroem` with the kernel ``Spectrum`` (without `boundaries`), ``GappyKmers``,
          ``WeightedDegree``, ``WeisfeilerLehman``, ``RBF``, or ``DistanceRBF`` of ``Levenshtein`` or ``DTW``;
        - vectors from `similia.D2KE` with ``Levenshtein`` or ``DTW``;
        - your own vectors.

        ``DTW`` of several channels needs ``local="sqeuclidean"``. ``StandardScaler``, ``MinMaxScaler`` without `clip`,
        ``MaxAbsScaler`` and ``PCA`` of scikit-learn may come before the projection. In place of all these steps,
        `similia.LevelEncoder`, `similia.SequenceEncoder` or `similia.NGramEncoder` can make the codes.
    X : collection of objects, optional
        Objects such as the training objects. Together with the landmarks (the training objects that the model stores),
        they set the limits of the model: strings may hold only letters that occur in these objects, and no object may
        be longer than the longest of them. With ``numbers="whole"``, they also set how vectors and series become int16.
        Columns of whole numbers up to 32767 stay as they are. Others are divided by a power of two and rounded; it
        leaves room for numbers twice as large as in these objects. With ``RBF`` and ``DTW``, all columns have the same
        divisor. `X` is needed with "whole" if the model projects your own vectors or makes codes with one of the three
        encoders, because such models store no objects.
    max_length : int, optional
        Maximum number of letters of a string, points of a series or nodes of a graph; by default, the size of the
        largest object among the landmarks and `X`.
    letters : str, default=""
        Further letters that strings may hold. If a string holds a letter that is not allowed, Python raises an error
        and a device returns an error code.
    numbers : "whole" or "float", default="whole"
        "whole" computes with whole numbers only; see Notes. "float" is for devices with a floating-point unit: vectors,
        coordinates (the input of the projection), projections and prototypes are float32. Counts of substrings and of
        Weisfeiler-Lehman colours, and prototypes of a classifier with `prototype_bits`, stay whole numbers. Operations
        have a fixed order, so a device and Python still agree bit for bit. Models with ``DTW`` or one of the three
        encoders do not allow "float".

    Returns
    -------
    Quantised
        A model whose `transform` and `predict` return, in Python, exactly what the device computes. Its method `loss`
        compares these results with those of `model`.

    Raises
    ------
    TypeError
        If `model` has a step, a kernel or a distance that cannot be quantised; the message names it.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.
    ValueError
        If `numbers` is neither "whole" nor "float"; `X` is needed, but not given; `max_length` is below the length of
        an object of `X` (without `X`, of a landmark); `max_length` is given for vectors, or `letters` for objects that
        are not strings; or sums could exceed 64 bits.

    Notes
    -----
    With ``numbers="whole"``, similarities to landmarks are whole numbers: exact products of counts, or 24-bit values of
    exp(-gamma d) or exp(-gamma d^2), interpolated in a table of at most 2051 entries. The coordinates are the product
    of a matrix and these similarities. The entries of the matrix have 16 bits, or up to 32 if 16 would change the
    coordinates by more than 1 %; each row is scaled by a power of two. Two kinds of coordinates are left out, because
    they are only noise: those whose mean square is below their mean squared rounding error, and those without variance
    in ``PCA(whiten=True)``.

    The entries of the projection have 8 bits, and those of prototypes 8 bits or the classifier's `prototype_bits`. The
    norm of an object is not computed, because it does not change the signs that make up the code. With
    ``SignRandomProjection(method="hadamard")``, a device stores no projection matrix, but only two to three bits for
    each bit of the code.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 40, 2000, random_state=0).fit(X[::2], y[::2])
    >>> small = sm.quantise(model)
    >>> loss = small.loss(X[1::2])
    >>> loss.labels > 0.9, loss.bits > 0.98
    (True, True)
    """
    check_choice(numbers, "numbers", ("whole", "float"))
    whole = numbers == "whole"
    if isinstance(model, ConformalClassifier):
        raise TypeError(
            "ConformalClassifier predicts sets of labels, which cannot be quantised; give model.estimator_, the "
            "classifier inside, or fit without --conformal"
        )
    steps = list(steps_of(model))
    classifier = steps.pop() if steps and isinstance(steps[-1], HDClassifier) else None
    for part in (model, *steps, *([classifier] if classifier else [])):
        check_is_fitted(part, msg=f"model ({kinds_of(model)}) is not fitted; fit it first: model.fit(X, y)")
    length = None if max_length is None else check_positive_int(max_length, "max_length")
    if len(steps) == 1 and isinstance(steps[0], LevelEncoder | SequenceEncoder | NGramEncoder):
        if not whole:
            raise TypeError(f"{name_of(steps[0])} computes nothing in float32; take numbers='whole'")
        read = input_of_encoder(steps[0], X, length, letters)
        check_unused(read, length, letters)
        return Quantised(model, read, None, None, *_learner(classifier, read.n_bits, whole))
    if not steps or not isinstance(steps[-1], SignRandomProjection):
        raise BadType(
            None, f"makes codes or labels by {name_of(steps[-1] if steps else model)}, which cannot be quantised",
            "codes by SignRandomProjection, or by LevelEncoder, SequenceEncoder or NGramEncoder as the first step, and "
            "labels, if any, by HDClassifier", "{parameter} makes such a model",
            collection="model", parameter="similia.recipes.nyshd(kernel).fit(X, y)",
        )  # fmt: skip
    projection = steps.pop()
    read, k, A, c = first_stage(steps, projection, X, length, letters, whole)
    check_unused(read, length, letters)
    for step in steps:
        A, c = after_step(step, A, c)
    used = 1 + int(np.flatnonzero(np.abs(A.reshape(len(A), -1)).sum(axis=1) + np.abs(c)).max(initial=0))
    A, c = A[:used], c[:used]
    linear = Linear.of(A, c, read.limit, k) if whole else FloatLinear.of(A, c)
    signs = _signs(projection, used, whole)
    return Quantised(model, read, linear, signs, *_learner(classifier, signs.n_bits, whole))


def _signs(
    projection: SignRandomProjection, n_coordinates: int, whole: bool
) -> DenseSigns | HadamardSigns | FloatSigns | FloatHadamard:
    """Return the stage of a fitted projection for its first coordinates; the others are 0."""
    if projection.projection_ is not None:
        rows = projection.projection_[:, :n_coordinates]
        return DenseSigns.of(rows) if whole else FloatSigns(rows.astype(np.float32))
    hadamard = HadamardSigns if whole else FloatHadamard
    return hadamard(projection.signs_ < 0, 8 * len(projection.get_feature_names_out()))


def _learner(
    classifier: HDClassifier | None, n_bits: int, whole: bool
) -> tuple[Prototypes | FloatPrototypes | None, npt.NDArray | None]:
    """Return prototypes and classes, or (None, None); prototypes with `prototype_bits` are always whole numbers."""
    if classifier is None:
        return None, None
    if not whole and classifier.prototype_bits is None:
        R, c = classifier.in_floats()
        floats = FloatPrototypes((R / np.sqrt(n_bits)).astype(np.float32), c.astype(np.float32))
        return floats, classifier.classes_
    integers, factors, intercepts, bits = classifier.in_integers()
    return Prototypes.of(integers, factors / np.sqrt(n_bits), intercepts, bits), classifier.classes_
