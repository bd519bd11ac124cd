"""Find a smaller model of about the same accuracy: fewer landmarks, fewer bits, and prototypes of fewer bits.

Randomly pivoted Cholesky (`similia.embeddings.landmarks`) draws landmarks one after the other, each where the earlier
ones leave the largest error, so a smaller set of landmarks is the beginning of a larger one. Likewise, a shorter code
is the beginning of a longer one. The projection uses Hadamard products, which need no matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from similia.codes import SignRandomProjection
from similia.core.config import track
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadType,
    RandomState,
    check_labels,
    check_positive_int,
    generator,
    spawn_seeds,
)
from similia.devices.quantised import kinds_of, quantise
from similia.embeddings import Nystroem
from similia.learn import HDClassifier
from similia.objects import n_objects, take
from similia.pipelines import Pipeline, steps_of

_HALVINGS = 5  # how many numbers of landmarks, and of bits, are tried, each half of the one before
_LEAST_LANDMARKS, _LEAST_BITS = 8, 256
_PROTOTYPE_BITS = (8, 4, 1)
_MOST = 2000  # maximum number of objects on which sizes are compared


@dataclass(frozen=True)
class Size:
    """One size of a model, its accuracy in cross-validation, and the bytes and operations that it needs on a device.

    Attributes
    ----------
    n_landmarks, n_bits, prototype_bits : int
        Number of landmarks (training objects with which all objects are compared), bits per code (the row of bits that
        represents an object), and bits per component of a prototype (the vector that stands for a class). If fewer
        landmarks already represent every training object exactly, the model has only these fewer landmarks.
    accuracy, error : float
        Mean accuracy over the folds, and its standard error.
    n_bytes, n_operations : int
        Total bytes of the model's tables, such as landmarks, projection and prototypes, and number of operations to
        predict the label of the longest object. Both are counted for the model of the first fold, after
        `similia.devices.quantise` has converted it for the device.
    """

    n_landmarks: int
    n_bits: int
    prototype_bits: int
    accuracy: float
    error: float
    n_bytes: int
    n_operations: int

    def __str__(self) -> str:
        parts = f"{self.n_landmarks:>9}  {self.n_bits:>6}  {self.prototype_bits:>9}"
        return f"{parts}  {self.accuracy:>7.2%} ± {self.error:.2%}  {self.n_bytes:>9}  {self.n_operations:>10}"


@dataclass(frozen=True, repr=False)
class Compressed:
    """The result of `compress`: a smaller model, and all sizes that were compared.

    Attributes
    ----------
    model : Pipeline
        The model of the chosen size, fitted to all objects. Give it to `similia.export_c`.
    chosen : Size
        The size of `model`: its numbers of landmarks and bits, its accuracy in cross-validation, and its bytes.
    sizes : list of Size
        All sizes that were tried, the one with the fewest bytes first.
    """

    model: Pipeline
    chosen: Size
    sizes: list[Size] = field(repr=False)

    @property
    def frontier(self) -> list[Size]:
        """The sizes that are more accurate than all smaller ones."""
        found: list[Size] = []
        for size in self.sizes:
            if not found or size.accuracy > found[-1].accuracy:
                found.append(size)
        return found

    def __repr__(self) -> str:
        return f"{self.table()}; .sizes has all"

    def table(self) -> str:
        """Return a table, as text, of the chosen size and all sizes that are more accurate than every smaller size."""
        head = "landmarks    bits  prototype          accuracy      bytes  operations"
        shown = sorted({*map(self.sizes.index, [*self.frontier, self.chosen])})
        rows = [f"{self.sizes[i]}{'  <- chosen' if self.sizes[i] is self.chosen else ''}" for i in shown]
        last = f"shown: of {len(self.sizes)} sizes, those more accurate than all smaller ones"
        return "\n".join([head, *rows, last + ", and the chosen one" * (self.chosen not in self.frontier)])


def compress(
    model: Any, X: Any, y: npt.ArrayLike, *, max_loss: float = 0.01, max_bytes: int | None = None, cv: int = 5,
    random_state: RandomState = 0,
) -> Compressed:  # fmt: skip
    """Find the smallest NysHD model that is about as accurate as the best one in cross-validation, and fit it.

    Parameters
    ----------
    model : Pipeline
        A NysHD model, as `similia.recipes.nyshd` returns it: a pipeline of `similia.Nystroem`,
        `similia.SignRandomProjection` and `similia.HDClassifier`, fitted or not. It is not changed. Its number of
        landmarks (at most the number of training objects of a fold) and its number of bits are the largest that are
        tried. Each of the two numbers is halved up to four times, but not below 8 landmarks and 256 bits. All
        combinations of these numbers are tried, each with 8, 4 and 1 bits per component of the prototypes (the vectors
        that stand for the classes).
    X : collection of n objects
    y : array-like (n,)
        Labels.
    max_loss : float, default=0.01
        Maximum loss of accuracy against the most accurate size, in cross-validation.
    max_bytes : int, optional
        Maximum total bytes of the tables on a device (``n_bytes`` of `Size`). If given, the most accurate size within
        this limit is chosen, and `max_loss` is not used.
    cv : int, default=5
        Number of folds of the stratified cross-validation that compares sizes, on at most 2000 objects.
    random_state : int, numpy Generator or None, default=0
        Seed or generator from which the folds, the landmarks and the projection are drawn.

    Returns
    -------
    Compressed
        The model of the chosen size, fitted to all objects, and a list of all sizes that were tried. All models have
        ``landmarks="rpcholesky"`` in `similia.Nystroem` and ``method="hadamard"`` in `similia.SignRandomProjection`,
        even if `model` has other values. When printed, the result shows the chosen size and the sizes that are more
        accurate than every smaller size.

    Raises
    ------
    TypeError
        If `model` does not consist of the three steps named above, or if `similia.quantise` cannot convert it.
    ValueError
        If a parameter is invalid; if `X` and `y` differ in length; or if every size needs more than `max_bytes`.

    Notes
    -----
    Accuracies are measured before the models are quantised, that is, converted to integers for a device.
    ``Quantised.loss`` measures how much the conversion changes the codes and labels. The accuracy of the chosen size is
    a little too high, because the choice was based on it. Report an accuracy that you measure on objects that were not
    given to `compress`. With few objects, cross-validation is too noisy to rank the sizes, and the chosen size may lose
    more than `max_loss` on new objects.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 64, 2048, random_state=0)
    >>> small = sm.devices.compress(model, X, y, max_bytes=12_000)
    >>> small.chosen.n_bytes <= 12_000, len(small.sizes)
    (True, 48)
    >>> small.model.predict(X[:2]).shape
    (2,)
    """
    nystroem, signs, classifier = _parts(model)
    if isinstance(max_loss, bool) or not isinstance(max_loss, Real) or not 0 <= max_loss < 1:
        raise BadParameter("max_loss", "a number from 0 to below 1, such as 0.01", short(max_loss))
    if max_bytes is not None:
        check_positive_int(max_bytes, "max_bytes")
    check_positive_int(cv, "cv", minimum=2)
    labels, seeds = check_labels(y, n_objects(X)), spawn_seeds(random_state, 3)
    some = np.sort(generator(seeds[0]).permutation(len(labels))[:_MOST])
    folds = list(StratifiedKFold(cv, shuffle=True, random_state=seeds[0]).split(np.zeros(len(some)), labels[some]))
    scores: dict[tuple[int, int, int], list[float]] = {}
    needs: dict[tuple[int, int, int], tuple[int, int]] = {}
    fewest = min(len(train) for train, _ in folds)
    n_landmarks = max(300, int(0.02 * len(labels))) if nystroem.n_components == "auto" else nystroem.n_components
    landmarks = _halves(min(int(n_landmarks), fewest), _LEAST_LANDMARKS)
    make = _Maker(nystroem, classifier, landmarks, seeds[1], seeds[2])
    for train, test in track(folds, "sizes", len(folds)):
        known, new = some[train], some[test]
        parts = take(X, known), labels[known], take(X, new), labels[new]
        for size, accuracy, model in make.sizes(*parts, signs.n_bits):
            scores.setdefault(size, []).append(accuracy)
            if size not in needs:
                small = quantise(model, parts[0])
                needs[size] = small.n_bytes, sum(small.operations.values())
    found = [
        Size(*size, float(np.mean(hits)), float(np.std(hits, ddof=1) / len(hits) ** 0.5), *needs[size])
        for size, hits in scores.items()
    ]
    found.sort(key=lambda size: (size.n_bytes, -size.accuracy))
    taken = [found[0].n_bytes]
    for chosen in _preferred(found, max_loss, max_bytes):
        fitted = make.model(X, labels, chosen)
        taken.append(quantise(fitted, X).n_bytes)
        if max_bytes is None or taken[-1] <= max_bytes:
            return Compressed(fitted, chosen, found)
    expected = f"at least {min(taken[1:] or taken)}, the bytes of the smallest size"
    raise BadParameter("max_bytes", expected, str(max_bytes), "allow more bytes, or give a model with fewer landmarks")


@dataclass(frozen=True)
class _Maker:
    """Fits models of different sizes that share their landmarks and directions."""

    nystroem: Nystroem
    classifier: HDClassifier
    landmarks: list[int]
    landmark_seed: int | None
    sign_seed: int | None

    def sizes(
        self, X: Any, y: npt.NDArray, new: Any, labels: npt.NDArray, n_bits: int
    ) -> Iterator[tuple[tuple[int, int, int], float, Pipeline]]:
        """Yield (number of landmarks, of bits, of prototype bits), the accuracy on `new`, and the fitted model."""
        order = self._order(X)
        for n_landmarks in self.landmarks:
            nystroem = clone(self.nystroem).set_params(landmarks=order[:n_landmarks])
            nystroem.set_output(transform="default").fit(X)
            vectors = nystroem.transform(X), nystroem.transform(new)
            longest = self._signs(n_bits).set_output(transform="default").fit(vectors[0])
            codes = [longest.transform(part) for part in vectors]
            for bits in _halves(n_bits, _LEAST_BITS):
                signs = self._signs(bits).fit(vectors[0])
                known, asked = (part[:, : bits // 8] for part in codes)
                for prototype_bits in _PROTOTYPE_BITS:
                    learner = clone(self.classifier).set_params(prototype_bits=prototype_bits).fit(known, y)
                    accuracy = float(np.mean(learner.predict(asked) == labels))
                    yield (n_landmarks, bits, prototype_bits), accuracy, _joined(nystroem, signs, learner)

    def model(self, X: Any, y: npt.NDArray, size: Size) -> Pipeline:
        """Return the model of a size, fitted."""
        nystroem = clone(self.nystroem).set_params(landmarks=self._order(X)[: size.n_landmarks])
        learner = clone(self.classifier).set_params(prototype_bits=size.prototype_bits)
        fitted = _joined(nystroem, self._signs(size.n_bits), learner).fit(X, y)
        return fitted.set_params(**{f"nystroem__{name}": value for name, value in self._rule(size.n_landmarks).items()})

    def _rule(self, n: int) -> dict[str, Any]:
        return {"n_components": n, "landmarks": "rpcholesky", "random_state": self.landmark_seed}

    def _order(self, X: Any) -> npt.NDArray[np.int64]:
        """Return landmarks in the order in which they are drawn; fewer than asked for if these explain every object."""
        return np.asarray(clone(self.nystroem).set_params(**self._rule(self.landmarks[0])).fit(X).landmark_indices_)

    def _signs(self, n_bits: int) -> SignRandomProjection:
        return SignRandomProjection(n_bits, "hadamard", self.sign_seed)


def _parts(model: Any) -> tuple[Nystroem, SignRandomProjection, HDClassifier]:
    """Return the three steps of NysHD; raise for another pipeline."""
    steps = steps_of(model)
    kinds = (Nystroem, SignRandomProjection, HDClassifier)
    if len(steps) != 3 or not all(isinstance(step, kind) for step, kind in zip(steps, kinds, strict=True)):
        raise BadType(
            None, f"is {kinds_of(model)}", " -> ".join(kind.__name__ for kind in kinds),
            "{parameter} makes such a model", collection="model", parameter="similia.recipes.nyshd(kernel)",
        )  # fmt: skip
    return steps[0], steps[1], steps[2]


def _joined(nystroem: Nystroem, signs: SignRandomProjection, classifier: HDClassifier) -> Pipeline:
    return Pipeline([("nystroem", nystroem), ("projection", signs), ("classifier", classifier)])


def _halves(n: int, least: int) -> list[int]:
    """Return n, n / 2 and so on, down to `least`; all but n are rounded up to multiples of 8."""
    found = [n]
    while len(found) < _HALVINGS and (half := -(-(found[-1] // 2) // 8) * 8) >= min(least, n) and half < found[-1]:
        found.append(half)
    return found


def _preferred(sizes: list[Size], max_loss: float, max_bytes: int | None) -> list[Size]:
    """Return the sizes to try on all objects, the best first; with more objects, a size may exceed `max_bytes`."""
    best = max(size.accuracy for size in sizes)
    if max_bytes is None:
        return [next(size for size in sizes if size.accuracy >= best - max_loss)]
    return sorted((size for size in sizes if size.n_bytes <= max_bytes), key=lambda size: -size.accuracy)
