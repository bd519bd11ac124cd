"""Turn a fitted pipeline into a model of whole numbers, which a small device and Python run with equal results.

From the fitted steps to the first stages: the input turns an object into whole numbers k (or float32), and the
coordinates that are projected to bits are A k + c. `Nystroem` and `D2KE` give A, and every scaler or rotation after
them changes A and c.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from similia.codes import LevelEncoder, NGramEncoder, SequenceEncoder, SignRandomProjection
from similia.codes.sequences import finite_series
from similia.codes.sign_projection import hadamard_length
from similia.codes.vectors import read_numbers
from similia.core.estimators import check_columns
from similia.core.text import counted, short
from similia.core.validation import (
    BadParameter,
    BadType,
    BadValue,
    check_choice,
    check_labels,
    check_positive_int,
    check_vectors,
)
from similia.devices.inputs import (
    Curve,
    Decay,
    Edits,
    Features,
    FloatGaussian,
    FloatVectors,
    Gaussian,
    Ints,
    Letters,
    Levels,
    NGrams,
    Numbers,
    Substrings,
    Subtrees,
    Units,
    Warped,
    in_steps,
)
from similia.devices.stages import (
    DenseSigns,
    FloatHadamard,
    FloatLinear,
    FloatPrototypes,
    FloatSigns,
    HadamardSigns,
    Linear,
    Prototypes,
    operations_of,
    short_length,
    sizes_of,
)
from similia.distances import DTW, Levenshtein
from similia.embeddings import D2KE, Nystroem
from similia.embeddings.vectors import FeatureScaler
from similia.kernels import RBF, DistanceRBF, GappyKmers, Spectrum, WeightedDegree, WeisfeilerLehman
from similia.kernels.strings import check_letters
from similia.learn import ConformalClassifier, HDClassifier
from similia.objects import as_graphs, as_strings, n_objects, take
from similia.pipelines import steps_of

_HOW = 'SignRandomProjection(method="hadamard"), or similia fit --directions hadamard'
Floats = npt.NDArray[np.float64]
_EXAMPLES = 300  # maximum number of objects on which rounding errors are measured
_KERNELS = "Spectrum, GappyKmers, WeightedDegree, WeisfeilerLehman, RBF, and DistanceRBF of Levenshtein or DTW"


@dataclass(frozen=True)
class Loss:
    """Agreement between a quantised model (see `similia.quantise`) and the original, measured on some objects.

    Attributes
    ----------
    n : int
        Number of objects.
    bits : float
        Share of the bits of the codes (the rows of bits that stand for objects) that are equal in both models.
    labels : float or None
        Share of the predicted labels that are equal in both models; None if the models predict no labels.
    before, after : float or None
        Accuracy of the original model (`before`) and of the converted model (`after`); None if no true labels were
        given, or if the models predict no labels.
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
    """A model that computes with integers or float32; `similia.quantise` makes it from a fitted pipeline.

    Attributes
    ----------
    model : Pipeline
        The pipeline that was quantised.
    input, linear, signs, prototypes
        The stages of the model, in the order in which they run. `input` turns an object into numbers, such as its
        similarities to landmarks (training objects with which all objects are compared). `linear` turns these numbers
        into coordinates. `signs` projects the coordinates, and packs the signs of the projections into a code, the row
        of bits that stands for the object. `prototypes` gives each class a score for the code; it is None if the
        pipeline makes codes only. If the pipeline makes its codes with `similia.LevelEncoder`,
        `similia.SequenceEncoder` or `similia.NGramEncoder`, then `input` turns an object directly into its code, and
        `linear` and `signs` are None. The classes of the stages are in ``similia.devices.inputs`` and
        ``similia.devices.stages``.
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
        """Number of bits of a code, the row of bits that stands for an object."""
        return int((self.signs or self.input).n_bits)

    @property
    def in_floats(self) -> bool:
        """Whether the model computes with float32 instead of integers."""
        return isinstance(self.linear, FloatLinear)

    @property
    def n_bytes(self) -> int:
        """Total size in bytes of the tables on the device, such as landmarks, projection and prototypes."""
        return sum(sizes_of(self).values())

    @property
    def operations(self) -> dict[str, int]:
        """Number of operations of each kind, such as multiplications, that are needed to label the longest object."""
        return operations_of(self)

    @property
    def hint(self) -> str:
        """A text that says how many bytes ``SignRandomProjection(method="hadamard")`` would save, or an empty text."""
        if not isinstance(self.signs, DenseSigns | FloatSigns) or self.linear is None:
            return ""
        dense = next(step for step in steps_of(self.model) if isinstance(step, SignRandomProjection))
        p = hadamard_length(dense.n_features_in_)
        first = short_length(self.linear) if isinstance(self.linear, Linear) else p
        saved = sizes_of(self)["projection"] - -(-self.n_bits // p) * (first + 2 * p) // 8
        how = f"fitted with Hadamard directions, the model would take {saved} bytes less"
        return f"{how} ({_HOW})" if saved > 0 else ""

    def transform(self, X: Any) -> npt.NDArray[np.uint8]:
        """Return the code of each of n objects, a row of packed bits, shape (n, n_bits // 8)."""
        return self.codes(self.read(X))

    def read(self, X: Any) -> Any:
        """Return the objects `X` as `codes` takes them; raise if one, or a column of a data frame, does not fit."""
        check_columns(steps_of(self.model)[0], X, reset=False)
        return self.input.read(X)

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
        """Compare the codes, the labels and, if `y` is given, the accuracy of this model with those of the original.

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
            If an object is not valid for the model, such as a string that is too long, or if `X` and `y` differ in
            length.
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
        """Return the codes (rows of packed bits) of n objects that `read` has converted."""
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
    """Turn a fitted pipeline into a model for small devices, which computes with integers or float32.

    Parameters
    ----------
    model : Pipeline
        A fitted pipeline that makes codes (rows of packed bits) with `similia.SignRandomProjection` and, optionally,
        predicts labels from them with `similia.HDClassifier`. The projection can use

        - vectors from `similia.Nystroem` with the kernel ``Spectrum`` (without `boundaries`), ``GappyKmers``,
          ``WeightedDegree``, ``WeisfeilerLehman``, ``RBF``, or ``DistanceRBF`` of ``Levenshtein`` or ``DTW``;
        - vectors from `similia.D2KE` with ``Levenshtein`` or ``DTW``;
        - your own vectors.

        ``DTW`` of several channels needs ``local="sqeuclidean"``. ``StandardScaler``, ``MinMaxScaler`` without `clip`,
        ``MaxAbsScaler`` and ``PCA`` of scikit-learn may come before the projection, except after a kernel with
        ``normalize=True``. In place of all these steps, `similia.LevelEncoder`, `similia.SequenceEncoder` or
        `similia.NGramEncoder` (with ``binding="multiply"``) can make the codes.
    X : collection of objects, optional
        Objects such as the training objects. Together with the landmarks (the objects with which the model compares all
        others), these objects set the limits of the model: strings may hold only letters that occur in these objects,
        and no object may be longer than the longest of them. With ``numbers="whole"``, these objects also determine how
        vectors and series are converted to int16. Columns of integers up to 32767 stay as they are. Other columns are
        divided by a power of two and rounded. The divisor, which may be below 1, is the smallest power of two for which
        numbers twice as large as those of these objects still fit into int16. With ``RBF`` and ``DTW``, all columns
        have the same divisor. `X` is required if one of the three encoders named above makes the codes. With "whole",
        it is also required if the model projects your own vectors.
    max_length : int, optional
        Maximum number of letters of a string, points of a series or nodes of a graph; by default, the size of the
        largest object among the landmarks and `X`.
    letters : str, default=""
        Letters that strings may hold in addition to the letters of the landmarks and `X`. If a string holds a letter
        that is not allowed, Python raises an error and a device returns an error code.
    numbers : "whole" or "float", default="whole"
        "whole" computes with integers only; see Notes. "float" is for devices with a floating-point unit: vectors,
        coordinates (the input of the projection), projections and prototypes are float32. Counts of substrings and of
        Weisfeiler-Lehman colours, and prototypes of a classifier with `prototype_bits`, stay integers. Operations
        have a fixed order, so a device and Python still agree bit for bit. "float" is not available for models with
        ``DTW`` or one of the three encoders.

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
        If `numbers` is neither "whole" nor "float"; if `X` is needed, but not given; if `max_length` is below the
        length of an object of `X` (without `X`, of a landmark); if `max_length` is given for vectors; if `letters` is
        given for objects that are not strings; or if sums could exceed 64 bits, or products of counts 32 bits.

    Notes
    -----
    With ``numbers="whole"``, similarities to landmarks are integers. For kernels that count substrings or colours,
    they are exact products of counts. For a distance d, they are values of exp(-gamma d) or exp(-gamma d^2), rounded to
    24 bits and interpolated in a table of at most 2051 entries. The coordinates are the product of a matrix and these
    similarities. The entries of the matrix have 16 bits, or up to 32 if 16 would change the coordinates by more than
    1 %; each row is scaled by a power of two. Two kinds of coordinates are left out, because they are only noise:
    coordinates whose mean square is below their mean squared rounding error, and coordinates without variance in
    ``PCA(whiten=True)``.

    The entries of the projection have 8 bits. The entries of prototypes have 8 bits, or the classifier's
    `prototype_bits`. A kernel with ``normalize=True`` divides all similarities of an object by one positive number, its
    norm. The model leaves out this division, because it does not change the signs that make up the code. With
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
    if steps:
        check_columns(steps[0], X, reset=False)
    length = None if max_length is None else check_positive_int(max_length, "max_length")
    if len(steps) == 1 and isinstance(steps[0], LevelEncoder | SequenceEncoder | NGramEncoder):
        if not whole:
            raise TypeError(f"{name_of(steps[0])} computes nothing in float32; take numbers='whole'")
        read = _input_of_encoder(steps[0], X, length, letters)
        _check_unused(read, length, letters)
        return Quantised(model, read, None, None, *_learner(classifier, read.n_bits, whole))
    if not steps or not isinstance(steps[-1], SignRandomProjection):
        raise BadType(
            None, f"makes codes or labels by {name_of(steps[-1] if steps else model)}, which cannot be quantised",
            "codes by SignRandomProjection, or by LevelEncoder, SequenceEncoder or NGramEncoder as the first step, and "
            "labels, if any, by HDClassifier", "{parameter} makes such a model",
            collection="model", parameter="similia.recipes.nyshd(kernel).fit(X, y)",
        )  # fmt: skip
    projection = steps.pop()
    read, k, exact, A, c = _first_stage(steps, projection, X, length, letters, whole)
    _check_unused(read, length, letters)
    B, d = A, c  # as A and c, but noise stays
    A, c = _above_noise(A, c, B, d, k, exact)
    for step in steps:
        B, d = _after_step(step, B, d)
        A, c = _above_noise(*_after_step(step, A, c), B, d, k, exact)
    used = len(A)
    if A.ndim == 2:
        used = 1 + int(np.flatnonzero(np.abs(A).sum(axis=1) + np.abs(c)).max(initial=0))
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


def _input_of_encoder(encoder: Any, X: Any, length: int | None, letters: str) -> Levels | NGrams:
    """Return the input that makes the same codes as an encoder of hypervectors."""
    if encoder.output != "bits":
        raise TypeError(f"{name_of(encoder)} returns counts, not codes; quantise an encoder with output='bits'")
    if X is None:
        raise _needs_objects(type(encoder).__name__)
    encoder = deepcopy(encoder).set_output(transform="default")
    if isinstance(encoder, NGramEncoder):
        if encoder.binding != "multiply":
            raise TypeError(f"{name_of(encoder)} cannot be quantised; NGramEncoder with binding='multiply' can")
        return _holding(NGrams.of(encoder, Letters.of([as_strings(X)], letters, length)), X)
    if isinstance(encoder, LevelEncoder):
        return Levels(encoder, Units.of(read_numbers(X, len(encoder.low_))), 0)
    batch = finite_series(X)
    found = int(np.diff(batch.offsets).max()) if length is None else length
    return _holding(Levels(encoder, Units.of(batch.values.astype(np.float64)), found), batch)


def _first_stage(
    steps: list[Any], projection: Any, X: Any, length: int | None, letters: str, whole: bool
) -> tuple[Any, Ints | None, Floats | None, Floats, Floats]:
    """Return (input, numbers k of some objects or None, k before rounding, A, c) for the coordinates A k + c.

    The first of `steps` is removed if it compares objects, as `Nystroem` and `D2KE` do.
    """
    found: Any
    first = steps[0] if steps else None
    if isinstance(first, Nystroem):
        kernel, landmarks, A = first.kernel_, first.landmarks_, first.components_.T
        del steps[0]
        counted = isinstance(kernel, WeisfeilerLehman | Spectrum | GappyKmers | WeightedDegree)
        if counted and not getattr(kernel, "boundaries", None):
            return _features(kernel, landmarks, steps, X, letters, length, A)
        if isinstance(kernel, RBF):
            found = _gaussian(kernel, landmarks, X, whole)
        elif isinstance(kernel, DistanceRBF):
            decay = Decay(float(kernel.gamma), square=True)
            found = _distances(kernel.distance, landmarks, X, letters, length, decay, whole)
        else:
            raise TypeError(f"the kernel {name_of(kernel)} cannot be quantised; {_KERNELS} can")
        objects = _some(kernel.as_objects(landmarks if X is None else X))
        exact = kernel(objects, landmarks).astype(np.float64) * found.limit
        return found, found.numbers(found.read(objects)), exact, A / found.limit, np.zeros(len(A))
    if isinstance(first, D2KE):
        del steps[0]
        decay = Decay(float(first.gamma_))
        found = _distances(first.distance_, first.random_objects_, X, letters, length, decay, whole)
        factors = np.full(found.width, 1 / (found.limit * np.sqrt(found.width)))
        objects = _some(first.random_objects_ if X is None else X)
        exact = np.asarray(first.transform(objects)) / factors
        return found, found.numbers(found.read(objects)), exact, factors, np.zeros(found.width)
    reader = first or projection
    if X is None:
        if whole:
            raise _needs_objects("a model without landmarks")
        n_features = reader.n_features_in_
        return FloatVectors(n_features), None, None, np.ones(n_features), np.zeros(n_features)
    X = check_vectors(X, n_features=getattr(reader, "n_features_in_", None), by=reader).astype(np.float64)
    units = Units.of(X) if whole else Units(np.ones(X.shape[1]))
    read = _holding(Numbers(units) if whole else FloatVectors(X.shape[1]), X)
    objects = _some(X)
    return read, read.read(objects), objects / units.steps, units.steps.copy(), np.zeros(len(units.steps))


def _needs_objects(who: str) -> BadParameter:
    expected = f"objects such as the training objects, since {who} keeps no units or letters"
    return BadParameter("X", expected, "nothing")


def _check_unused(read: Any, length: int | None, letters: str) -> None:
    """Raise if a limit is given that objects of this kind do not have."""
    if length is not None and read.kind in ("vector", "gaussian", "levels"):
        raise BadParameter("max_length", "left out for vectors, which have one length", str(length))
    if letters and not hasattr(read, "letters"):
        raise BadParameter("letters", "left out for objects that are not strings", short(letters))


def _holding(read: Any, X: Any, landmarks: Any = None) -> Any:
    """Return the input `read`; raise if an object of X or, without X, a landmark breaks one of its limits."""
    try:
        read.read(landmarks if X is None else X)
    except BadValue as error:
        raise error.changed(collection="landmarks" if X is None else "X") from None
    return read


def _features(
    kernel: Any, landmarks: Any, steps: list[Any], X: Any, letters: str, length: int | None, A: Floats
) -> tuple[Substrings | Subtrees, Ints, None, Floats, Floats]:
    """Return what `_first_stage` returns, for a kernel that is a product of feature counts; these are not rounded."""
    if kernel.normalize and steps:
        raise TypeError(
            f"{name_of(steps[0])} after a kernel with normalize=True cannot be quantised, since a device does not "
            "compute the norm of an object; leave one of them out"
        )
    found: Substrings | Subtrees
    if isinstance(kernel, WeisfeilerLehman):
        found = Subtrees.of(kernel, [landmarks, *([] if X is None else [as_graphs(X)])], length)
    else:
        known = Letters.of([landmarks, *([] if X is None else [as_strings(X)])], letters, length)
        if getattr(kernel, "reverse_complement", False):
            try:
                check_letters(as_strings([letters]))
            except BadValue as error:
                raise error.changed(index=None, collection="letters") from None
        found = Substrings(Features.of(kernel, landmarks), known)
    _holding(found, X, landmarks)
    _ = found.limit  # raises if products of counts exceed 32 bits
    norms = kernel.counted(landmarks).squared_norms if kernel.normalize else np.ones(len(landmarks))
    return found, found.numbers(landmarks), None, A / np.sqrt(np.where(norms > 0, norms, 1.0)), np.zeros(len(A))


def _some(X: Any) -> Any:
    """Return the objects on which rounding errors are measured."""
    return take(X, np.linspace(0, n_objects(X) - 1, min(n_objects(X), _EXAMPLES)).astype(int))


def _above_noise(
    A: Floats, c: Floats, B: Floats, d: Floats, k: Ints | None, exact: Floats | None
) -> tuple[Floats, Floats]:
    """Return A and c without the coordinates A k + c that differ from B exact + d by more than their size.

    Such coordinates belong to small eigenvalues or variances, by whose roots numbers are divided. Their rows become 0.
    Differences and sizes are mean squares.
    """
    if k is None or exact is None:
        return A, c
    found, true = _times(k, A) + c, _times(exact, B) + d
    size, change = (np.square(values).mean(axis=0) for values in (true, found - true))
    kept = change <= size
    if not kept.any():
        raise ValueError("rounding changes every coordinate by more than its size; quantise with X as in training")
    return np.where(kept if A.ndim == 1 else kept[:, None], A, 0.0), np.where(kept, c, 0.0)


def _gaussian(kernel: RBF, landmarks: npt.NDArray, X: Any, whole: bool) -> Gaussian | FloatGaussian:
    gamma = float(kernel.gamma) * float(kernel.scale)
    if not whole:
        return _holding(FloatGaussian(landmarks.shape[1], landmarks.astype(np.float32), Decay(gamma)), X, landmarks)
    vectors = landmarks if X is None else np.concatenate([landmarks, check_vectors(X, n_features=landmarks.shape[1])])
    units = Units.of(vectors.astype(np.float64), common=True)
    step = float(units.steps[0])
    rows = units.read(landmarks.astype(np.float64))
    curve = Curve.of(lambda d: np.exp(-gamma * step**2 * d), _most_squared(rows.shape[1]))
    return Gaussian(units, rows, curve)


def _distances(
    distance: Any, landmarks: Any, X: Any, letters: str, length: int | None, decay: Decay, whole: bool
) -> Edits | Warped:
    """Return the input that applies the function `decay` to distances to `landmarks`."""
    if type(distance) is Levenshtein:
        known = Letters.of([landmarks, *([] if X is None else [as_strings(X)])], letters, length)
        longest = max(known.longest, int(np.diff(landmarks.offsets).max()))
        curve_of_edits = Curve.of(decay.exact, longest) if whole else decay
        return _holding(Edits(known, landmarks, curve_of_edits), X, landmarks)
    if not whole:
        raise TypeError(f"the distance {name_of(distance)} cannot be in float32, Levenshtein can; take numbers='whole'")
    if type(distance) is DTW and (landmarks.n_dims == 1 or distance.local == "sqeuclidean"):
        batches = [landmarks, *([] if X is None else [finite_series(X)])]
        units = Units.of(np.concatenate([batch.values for batch in batches]).astype(np.float64), common=True)
        found = max(int(np.diff(batch.offsets).max()) for batch in batches)
        length = found if length is None else length
        step = float(units.steps[0])

        def curve(d: Floats) -> Floats:
            if distance.local == "euclidean":
                return decay.exact(d * step)
            return decay.exact(np.sqrt(d) * step if distance.root else d * step**2)

        both = length + int(np.diff(landmarks.offsets).max())
        cost = 2 * 2**15 if distance.local == "euclidean" else _most_squared(landmarks.n_dims)
        rows = in_steps(landmarks, units)
        return _holding(Warped(distance, units, rows, length, Curve.of(curve, both * cost)), X, landmarks)
    can = "Levenshtein and DTW (one channel, or local='sqeuclidean') can"
    raise TypeError(f"the distance {name_of(distance)} cannot be quantised; {can}")


def _after_step(step: Any, A: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Return factors and offsets of coordinates after `step`, which scales, shifts or rotates them."""
    if isinstance(step, FeatureScaler):
        step = step.scaler_
    if isinstance(step, StandardScaler):
        scale = np.ones(len(A)) if step.scale_ is None else step.scale_
        mean = np.zeros(len(A)) if step.mean_ is None or not step.with_mean else step.mean_
        return (A.T / scale).T, (c - mean) / scale
    if isinstance(step, MinMaxScaler) and not step.clip:
        return (A.T * step.scale_).T, c * step.scale_ + step.min_
    if isinstance(step, MaxAbsScaler):
        return (A.T / step.scale_).T, c / step.scale_
    if isinstance(step, PCA):
        axes = step.components_
        if step.whiten:
            scale = np.sqrt(step.explained_variance_)
            known = scale >= np.finfo(scale.dtype).eps  # scikit-learn divides the others, which are noise, by eps
            axes = axes / np.where(known, scale, np.inf)[:, None]
        return axes * A if A.ndim == 1 else axes @ A, axes @ (c - step.mean_)
    raise TypeError(
        f"the step {name_of(step)} cannot be quantised; StandardScaler, MinMaxScaler without clip, MaxAbsScaler and "
        "PCA can"
    )


def _times(k: npt.NDArray, A: Floats) -> Floats:
    return k * A if A.ndim == 1 else k @ A.T


def _most_squared(n: int) -> int:
    """Return the largest squared distance of two vectors of n numbers of 16 bits."""
    return n * 2**32


def kinds_of(model: Any) -> str:
    """Return the names of the steps of a model."""
    return " -> ".join(type(step).__name__ for step in steps_of(model)) or "no steps"


def name_of(step: Any) -> str:
    return repr(step) if len(repr(step)) < 60 else type(step).__name__
