"""Displays for binary codes: accuracy with flipped or fewer bits, and recall of a search by codes; see `displays`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from similia.codes import flip_bits, hamming_distances
from similia.core.estimators import check_fitted
from similia.core.intervals import wilson
from similia.core.text import short
from similia.core.validation import BadParameter, check_labels, check_positive_int
from similia.objects import n_objects, take
from similia.report._model import as_recipe, check_model, coded, parts_of
from similia.report.approximation import steps_to
from similia.report.displays import Display, Floats, line, mark
from similia.search.answers import shares_found
from similia.search.similarity_search import true_metric
from similia.similarity import name_of

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)  # of flipped bits


@dataclass(kw_only=True, eq=False, repr=False)
class RobustnessDisplay(Display):
    """Plots of the accuracy of a packed-bit classifier against the share of flipped bits and the number of bits.

    Parameters
    ----------
    shares : ndarray of float, shape (n_shares,)
        Shares of the bits of the test codes that were flipped.
    flipped : ndarray of float, shape (n_shares,)
        Accuracy for each share.
    n_bits : ndarray of int, shape (n_lengths,)
        Numbers of bits.
    shortened : ndarray of float, shape (n_lengths,)
        Accuracy for each number b of bits: the learner is trained and tested on only the first b bits of each code.
    n : int
        Number of objects on which the accuracies were measured.

    Attributes
    ----------
    ax_ : list of two matplotlib axes
        The axes of the last `plot`: flipped bits, then number of bits.
    figure_ : matplotlib figure
        The figure of the last `plot`.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import RobustnessDisplay
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), n_landmarks=50, n_bits=1024, random_state=0)
    >>> display = RobustnessDisplay.from_estimator(model, X, y)
    >>> int(display.n_bits.max()), len(display.ax_)
    (1024, 2)
    """

    shares: Floats
    flipped: Floats
    n_bits: npt.NDArray[np.int64]
    shortened: Floats
    n: int

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, shares: Sequence[float] = SHARES, n_bits: Sequence[int] | None = None,
        test_share: float = 0.3, random_state: int = 0, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Train a copy of a model on some objects; measure its accuracy on damaged and shortened codes of the others.

        Parameters
        ----------
        estimator : pipeline
            Pipeline whose learner takes packed bits, such as `similia.recipes.nyshd`; a copy is fitted.
        X : collection of n objects
            Objects for training and testing.
        y : array-like of n labels
            Classes of the objects.
        shares : sequence of float
            Probabilities with which each bit is flipped, independently of the others.
        n_bits : sequence of int, optional
            Numbers of bits, multiples of 8; by default the length of a code, half of it, a quarter and so on.
        test_share : float, default=0.3
            Share of the objects to test on.
        random_state : int, default=0
            Seed of the split and of the flips.
        ax : two matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **kwargs
            Passed to ``Axes.plot`` for both lines.

        Raises
        ------
        ValueError
            If the learner does not take packed bits.
        """
        from sklearn.model_selection import train_test_split

        check_model(estimator)
        recipe = as_recipe(estimator)[0]
        labels = check_labels(y, n_objects(X))
        stratify = labels if np.unique(labels, return_counts=True)[1].min() > 1 else None
        parts = train_test_split(
            np.arange(len(labels)), test_size=test_share, random_state=random_state, stratify=stratify
        )
        train, test = (np.sort(part) for part in parts)
        fitted = parts_of(recipe.fit(take(X, train), labels[train]))
        codes = [None if fitted.learner is None else coded(fitted, take(X, part)) for part in (train, test)]
        if codes[0] is None or codes[1] is None:
            raise ValueError(
                f"the learner of {fitted} does not take packed bits; use e.g. a model of similia.recipes.nyshd"
            )
        data = (codes[0], labels[train]), (codes[1], labels[test])
        return cls._measured(fitted.learner, *data, shares, n_bits, random_state).plot(ax, **kwargs)

    @classmethod
    def _measured(
        cls,
        learner: Any,
        train: tuple[npt.NDArray[np.uint8], npt.NDArray],
        test: tuple[npt.NDArray[np.uint8], npt.NDArray],
        shares: Sequence[float] = SHARES,
        n_bits: Sequence[int] | None = None,
        random_state: int = 0,
        fitted: bool = False,
    ) -> Self:
        """Measure accuracy on test codes with flipped bits and, with a retrained learner, on shortened codes.

        `train` and `test` are pairs (codes, labels). Unless `fitted`, a copy of the learner is first fitted to `train`.
        """
        (A, y), (B, truth) = train, test
        longest = 8 * A.shape[1]
        lengths = np.unique([max(8, longest // 2**i // 8 * 8) for i in range(9)] if n_bits is None else n_bits)
        if (lengths % 8).any() or lengths.min() < 8 or lengths.max() > longest:
            raise ValueError(
                f"n_bits must be multiples of 8 from 8 to the {longest} bits of a code, got {lengths.tolist()}"
            )
        full = learner if fitted else clone(learner).fit(A, y)

        def accuracy(model: Any, codes: npt.NDArray[np.uint8]) -> float:
            return float(np.mean(model.predict(codes) == truth))

        undamaged = accuracy(full, B)
        flipped = [accuracy(full, flip_bits(B, share, random_state)) if share else undamaged for share in shares]
        shortened = []
        for bits in lengths:
            first = [np.ascontiguousarray(codes[:, : bits // 8]) for codes in (A, B)]
            shortened.append(undamaged if bits == longest else accuracy(clone(learner).fit(first[0], y), first[1]))
        return cls(
            shares=np.array(shares),
            flipped=np.array(flipped),
            n_bits=lengths,
            shortened=np.array(shortened),
            n=len(truth),
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Plot the accuracy against the share of flipped bits, and against the number of bits.

        `ax` is a pair of Axes; None makes a new figure. `kwargs` go to ``Axes.plot``.
        """
        left, right = self._axes(ax, 2)
        for axis, x, y, style in ((left, 100 * self.shares, self.flipped, 0), (right, self.n_bits, self.shortened, 1)):
            bounds = np.array([wilson(value, self.n) for value in y]).T
            axis.fill_between(x, *(100 * bounds), color=mark(style)["color"], alpha=0.15, linewidth=0)
            axis.plot(x, 100 * y, **{**line(style), **kwargs})
            axis.set_ylabel(f"accuracy (%, {self.n} objects)")
        left.set_xlabel("bits flipped (%)")
        right.set_xscale("log", base=2)
        right.xaxis.set_major_formatter("{x:.0f}")
        right.set_xlabel("number of bits")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RecallDisplay(Display):
    """Plot of the recall@k of a search against its number of candidates.

    A search represents each object by a code, a row of bits. Candidates are the objects whose codes are nearest to the
    code of the query. The search compares the query with these candidates by the exact kernel or distance, and returns
    the k nearest.

    Parameters
    ----------
    candidates : ndarray of int, shape (n_candidates,)
        Numbers of candidates.
    recalls : dict of int to ndarray of float, shape (n_candidates,)
        For each k, the recall@k for each number of candidates: the share of the k results that are no farther from the
        query than its true k-th neighbour, averaged over the queries.
    n_queries : int
        Number of queries on which the recall was measured.
    against : str
        Name of the kernel or distance of the exact search.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        The axes and figure of the last `plot`.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import RecallDisplay
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> landmarks = sm.Nystroem(sm.kernels.Spectrum(k=3), 30, random_state=0)
    >>> encoder = make_pipeline(landmarks, sm.SignRandomProjection(64, random_state=0))
    >>> search = sm.SimilaritySearch(encoder, rerank="kernel").fit(X[:80])
    >>> display = RecallDisplay.from_estimator(search, X[80:], k=(1, 5))
    >>> float(display.recalls[5][-1])
    1.0
    """

    candidates: npt.NDArray[np.int64]
    recalls: dict[int, Floats]
    n_queries: int
    against: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, k: int | Sequence[int] = (1, 10),
        candidates: Sequence[int] | None = None, metric: Any = "kernel", objects: Any = None, ax: Any = None,
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Measure and draw the recall of a fitted search.

        Parameters
        ----------
        estimator : SimilaritySearch or HammingIndex
            A fitted search. Its recall is the share of the true k nearest neighbours that it finds. For an index, the
            true neighbours are the nearest of all codes by the distance of the index, Hamming or Jaccard.
        X : collection of q objects, or uint8 array (q, n_bits // 8) for an index
            Queries; each is compared with all objects.
        y : ignored
            Not used; present for a uniform interface.
        k : int or sequence of int, default=(1, 10)
            Numbers of neighbours; one curve is drawn for each.
        candidates : sequence of int, optional
            Numbers of candidates; by default an approximately geometric sequence from the largest k to the number of
            objects.
        metric, objects
            As in `similia.SimilaritySearch.recall`, but `metric` cannot be "projected"; both are ignored for an index.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **kwargs
            Passed to ``Axes.plot`` for all lines.

        Raises
        ------
        ValueError
            If `k` or `candidates` is empty; if `k` exceeds the number of objects or of candidates; or if neither
            `metric` nor the search provides a kernel or distance for the comparison.
        TypeError
            If `estimator` is not a search but, for example, a classifier.
        NotFittedError
            If the search is not fitted.
        """
        ks = sorted({check_positive_int(value, "k") for value in ([k] if np.ndim(k) == 0 else k)})  # type: ignore[union-attr]
        if not ks:
            raise BadParameter("k", "at least one integer", short(k))
        _check_search(estimator)
        n = len(estimator)
        if ks[-1] > n:
            raise ValueError(f"k={ks[-1]} is more than the {n} objects of the search")
        counts = steps_to(n, 9, ks[-1]) if candidates is None else np.unique(candidates).astype(np.int64)
        if not len(counts) or counts[0] < ks[-1] or counts[-1] > n:
            raise ValueError(f"candidates must be from k={ks[-1]} to the {n} objects, got {counts.tolist()}")
        distances, rows, against = _exact(estimator, X, int(counts[-1]), metric, objects)
        found = {value: recalls_of(distances, rows, value, counts) for value in ks}
        return cls(candidates=counts, recalls=found, n_queries=len(rows), against=against).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a curve for each k; `kwargs` go to ``Axes.plot``."""
        (axis,) = self._axes(ax)
        for i, (k, shares) in enumerate(self.recalls.items()):
            axis.plot(self.candidates, 100 * shares, **{**line(i), "label": f"k = {k}", **kwargs})
        axis.set_xscale("log")
        axis.set_ylim(min(0.0, axis.get_ylim()[0]), 102)
        axis.set(xlabel="candidates compared exactly", ylabel=f"recall@k (%, {self.n_queries} queries)")
        axis.set_title(f"against {self.against}", fontsize="medium")
        axis.legend(frameon=False)
        return self


def _check_search(estimator: Any) -> None:
    from similia.search import HammingIndex, SimilaritySearch

    check_model(estimator)
    if not isinstance(estimator, HammingIndex | SimilaritySearch):
        raise TypeError(
            f"{name_of(estimator)} is not a search; give a fitted similia.SimilaritySearch(encoder), whose encoder "
            "makes bits of objects, or a similia.HammingIndex"
        )
    if isinstance(estimator, SimilaritySearch):
        check_fitted(estimator)


def _exact(search: Any, X: Any, most: int, metric: Any, objects: Any) -> tuple[npt.NDArray, npt.NDArray[np.int64], str]:
    """Return true distances (q, n) of q queries, positions of nearest codes (q, most), and the distance's name."""
    from similia.search import HammingIndex

    distances: npt.NDArray
    if isinstance(search, HammingIndex):
        codes, index, ids = X, search, search.ids
        distances, against = _between_codes(search.metric, X, search.reconstruct()), "all codes"
    else:
        kept = search.objects_ if objects is None else objects
        if kept is None or n_objects(kept) != len(search):
            raise ValueError(f"the search does not keep its {len(search)} objects, to compare with them; pass objects=")
        true = true_metric(search, metric, kept)
        codes, index, ids = search._encode(search._parsed(X)[0])[0], search.index_, search.ids_
        distances, against = true.distances(true.as_objects(X), true.as_objects(kept)), type(true.function).__name__
    found = index.kneighbors(codes, most, return_distance=False)
    order = np.argsort(ids)
    return distances, order[np.searchsorted(ids[order], found)], against


def _between_codes(metric: str, X: Any, codes: npt.NDArray[np.uint8]) -> npt.NDArray:
    """Return the distances (q, n) between q queries and n codes by the metric of a `HammingIndex`."""
    differing = hamming_distances(X, codes)
    if metric == "hamming":
        return differing
    none = np.zeros_like(codes[:1])
    ones = hamming_distances(X, none) + hamming_distances(none, codes)
    return 2 * differing / np.maximum(ones + differing, 1)  # differing bits, divided by those that are 1 in either


def recalls_of(distances: npt.NDArray, rows: npt.NDArray[np.int64], k: int, candidates: npt.ArrayLike) -> Floats:
    """Return recall@k for each number of candidates, where the results are the k candidates nearest by true distance.

    `distances` (q, n) are the true distances; `rows` (q, most) are the candidates of each query, nearest codes first.
    """
    found = []
    for c in np.asarray(candidates).tolist():
        of_candidates = np.take_along_axis(distances, rows[:, :c], axis=1)
        best = np.argsort(of_candidates, axis=1, kind="stable")[:, :k]
        found.append(float(shares_found(distances, np.take_along_axis(rows[:, :c], best, axis=1)).mean()))
    return np.array(found)
