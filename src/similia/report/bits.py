"""Displays for binary codes: accuracy of damaged and short codes, recall of a search by codes; see `displays`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.core.intervals import wilson
from similia.core.validation import check_labels, check_positive_int
from similia.objects import n_objects, take
from similia.report import _measures as measures
from similia.report._model import as_recipe, check_model, coded, parts_of
from similia.report.displays import Display, line, mark
from similia.similarity import name_of

Floats = npt.NDArray[np.float64]


class RobustnessDisplay(Display):
    """Accuracy against the share of flipped bits, and against the number of bits.

    Parameters
    ----------
    shares, flipped : ndarray of float, shape (n_shares,)
        Shares of flipped bits, and the accuracies.
    n_bits, shortened : ndarray, shape (n_lengths,)
        Numbers of leading bits kept, and the accuracies of a learner retrained on them.
    n : int
        Number of objects on which accuracies were measured.

    Attributes
    ----------
    ax_ : list of two matplotlib axes
    figure_ : matplotlib figure

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

    def __init__(
        self, *, shares: Floats, flipped: Floats, n_bits: npt.NDArray[np.int64], shortened: Floats, n: int
    ) -> None:
        self.shares = shares
        self.flipped = flipped
        self.n_bits = n_bits
        self.shortened = shortened
        self.n = n

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        shares: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45),
        n_bits: Sequence[int] | None = None,
        test_share: float = 0.3,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Train a copy of a model on part of the objects, and damage or shorten the codes of the others.

        Parameters
        ----------
        estimator : pipeline
            Pipeline whose learner takes packed bits, such as `similia.recipes.nyshd`; a copy is fitted.
        X : collection of n objects
        y : array-like of n labels
        shares : sequence of float
            Probabilities with which each bit is flipped.
        n_bits : sequence of int, optional
            Numbers of bits, multiples of 8; by default, repeatedly halved.
        test_share : float, default=0.3
            Share of the objects to hold out.
        random_state : int, default=0
        ax : two matplotlib axes, optional
        **kwargs
            Passed to both lines.

        Returns
        -------
        RobustnessDisplay

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
                f"{fitted} gives its learner no packed bits; similia.recipes.nyshd makes a model that does"
            )
        found = measures.robustness(
            fitted.learner, (codes[0], labels[train]), (codes[1], labels[test]), shares, n_bits, random_state
        )
        return cls(**vars(found)).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw both curves with 95 % intervals on two axes; `kwargs` go to the lines."""
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


class RecallDisplay(Display):
    """Recall@k of a search against the number of candidates compared exactly.

    Parameters
    ----------
    candidates : ndarray of int, shape (n_candidates,)
    recalls : dict of int to ndarray of float, shape (n_candidates,)
        For each k, the mean share of the k results that are no farther than the true k-th neighbour.
    n_queries : int
    against : str
        Name of the exact search's kernel or distance.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.

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

    def __init__(
        self, *, candidates: npt.NDArray[np.int64], recalls: dict[int, Floats], n_queries: int, against: str
    ) -> None:
        self.candidates = candidates
        self.recalls = recalls
        self.n_queries = n_queries
        self.against = against

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        k: int | Sequence[int] = (1, 10),
        candidates: Sequence[int] | None = None,
        metric: Any = "kernel",
        objects: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Measure and draw the recall of a fitted search.

        Parameters
        ----------
        estimator : SimilaritySearch or HammingIndex
            A fitted search. For an index, exact search compares all codes by Hamming distance.
        X : collection of q objects, or uint8 array (q, n_bits // 8) for an index
            Queries; each is compared with all objects.
        y : ignored
            Not used; present for a uniform interface.
        k : int or sequence of int, default=(1, 10)
            Number of neighbours.
        candidates : sequence of int, optional
            Numbers of nearest codes to compare exactly; by default, from the largest k to all in approximately equal
            ratios.
        metric, objects
            As in `similia.SimilaritySearch.recall`.
        ax : matplotlib axes, optional
        **kwargs
            Passed to all lines.

        Returns
        -------
        RecallDisplay

        Raises
        ------
        ValueError
            If k exceeds the number of objects or of candidates, or there is no kernel or distance to compare by.
        TypeError
            If `estimator` is not a search, such as a classifier.
        NotFittedError
            If the search is not fitted.
        """
        ks = sorted({check_positive_int(value, "k") for value in ([k] if np.ndim(k) == 0 else k)})  # type: ignore[union-attr]
        _check_search(estimator)
        n = len(estimator)
        if ks[-1] > n:
            raise ValueError(f"k={ks[-1]} neighbours are more than the {n} objects of the search")
        counts = measures.steps_to(n, 9, ks[-1]) if candidates is None else np.unique(candidates).astype(np.int64)
        if counts[0] < ks[-1] or counts[-1] > n:
            raise ValueError(f"candidates must be from k={ks[-1]} to the {n} objects, got {counts.tolist()}")
        values, rows, against = _truth(estimator, X, int(counts[-1]), metric, objects)
        found = {value: measures.recalls(values, rows, value, counts) for value in ks}
        return cls(candidates=counts, recalls=found, n_queries=len(rows), against=against).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a curve for each k; `kwargs` go to the lines."""
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
    """Raise unless `estimator` is a fitted search."""
    from similia.search import HammingIndex, SimilaritySearch

    check_model(estimator)
    if not isinstance(estimator, HammingIndex | SimilaritySearch):
        raise TypeError(
            f"RecallDisplay shows how well a search finds neighbours, and {name_of(estimator)} is no search; give a "
            "fitted similia.SimilaritySearch(encoder), whose encoder makes bits of objects, or a similia.HammingIndex"
        )
    if isinstance(estimator, SimilaritySearch):
        check_is_fitted(estimator)


def _truth(search: Any, X: Any, most: int, metric: Any, objects: Any) -> tuple[npt.NDArray, npt.NDArray[np.int64], str]:
    """Return the values that exact search sorts (q, n), the nearest codes (q, most), and the name of the values."""
    from similia.codes import hamming_distances
    from similia.search import HammingIndex
    from similia.search.metric import as_metric

    if isinstance(search, HammingIndex):
        found = search.kneighbors(X, most, return_distance=False)
        order = np.argsort(search.ids)
        rows = order[np.searchsorted(search.ids[order], found)]
        return hamming_distances(X, search.reconstruct()), rows, "all codes"
    kept = search.objects_ if objects is None else objects
    if kept is None or n_objects(kept) != len(search):
        raise ValueError(f"exact search compares with all {len(search)} objects, which are not kept; give objects=")
    own = search._metric() if isinstance(metric, str) and metric == "kernel" else None
    true = (own or as_metric(metric, search.encoder, "metric")).decided(kept)
    found = search.index_.kneighbors(search.encoder_.transform(X), most, return_distance=False)
    distances = true.distances(true.as_objects(X), true.as_objects(kept))
    order = np.argsort(search.ids_)
    rows = order[np.searchsorted(search.ids_[order], found)]
    return distances, rows, type(true.function).__name__
