r"""A support-vector machine with the exact heat kernel of a hypersphere, tuned on one Gram matrix of cosines.

The kernel of two rows depends only on a parameter, the contrast, and on their angle, so the versines 1 - cos of all
pairs of rows are computed once. Each contrast takes one evaluation per pair; each fold and C uses a block of the
resulting matrix.

Cost for n rows: one product of the rows with themselves, then (contrasts) n^2 evaluations and (contrasts x C x folds)
fits of libsvm in threads. Memory: two n x n float64 arrays and the blocks of folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import Tags

from similia.core.config import check_memory, rows_per_block
from similia.core.estimators import all_at_once, check_columns, check_fitted, check_table
from similia.core.state import array, count, labels, made, pairs_of, state
from similia.core.validation import RandomState, check_positive, generator, wrong_width
from similia.kernels import heat
from similia.kernels.heat import HypersphericalHeat, suggest_contrast
from similia.kernels.hypersphere import Mapping, ZeroRows, as_rows, mapped_by, resolve_mapping, versines
from similia.learn.kernel_machines import (
    GramOf,
    NestedScores,
    PairMachines,
    best_of,
    check_pairs_fit,
    coded,
    fit_machine,
    fold_numbers,
    nested_scores,
    precomputed_scores,
)
from similia.learn.targets import checked_labels
from similia.sources.dask import ScoresParts, lazily, refuse_lazy

_CONTRASTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_CS = (0.1, 1.0, 10.0, 100.0)


class _Candidate(NamedTuple):
    contrast: float
    t: float


class _Problem(NamedTuple):
    rows: Any  # unit rows
    labels: npt.NDArray
    mapping: Mapping
    candidates: list[_Candidate]  # in ascending order of contrast
    Cs: list[float]  # ascending


@state(
    fits=lambda state, sizes: sizes["c"] > 1 and sizes["p"] == pairs_of(sizes["c"]),
    classes_=labels("c"), n_features_in_=count("d", least=2), kernel_=made("HypersphericalHeat"), t_="positive",
    contrast_="number", C_="positive", support_=array("i8", "s"), pair_coef_=array("f8", "p", "s"),
    pair_intercept_=array("f8", "p"), support_vectors_="vectors",
)  # fmt: skip
class HeatSVC(PairMachines, ScoresParts, ClassifierMixin, BaseEstimator):
    r"""Support-vector classifier of vectors with the heat kernel on the hypersphere; contrast and C are tuned.

    Parameters
    ----------
    contrast : "tune", "suggest", float or sequence of float, default="tune"
        How fast kernel values fall as the angle between two vectors grows: the contrast :math:`a = n e^{-(n-1) t}` of
        `similia.kernels.HypersphericalHeat`, for n columns and time t. "tune" chooses among 1/4, 1/2, 1, ..., 64 (see
        Notes) by cross-validation; a sequence gives other values to choose from. "suggest" uses the result of
        `similia.kernels.suggest_contrast` for the training rows.
    C : "tune", float or sequence of float, default="tune"
        Inverse of the regularisation strength; "tune" chooses among 0.1, 1, 10 and 100.
    mapping : {"auto", "sqrt", "projection"} or None, default="auto"
        How rows become unit vectors; see `HypersphericalHeat`. `fit` decides from the training rows what "auto" means.
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat a row of zeros; see `HypersphericalHeat`.
    cv : int or splitter, default=5
        Folds of cross-validation; a number means stratified folds.
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.
    random_state : int, numpy Generator or RandomState, optional
        If `cv` is a number: source of randomness for shuffling the rows before they are split. None: do not shuffle.

    Attributes
    ----------
    contrast_, t_, C_ : float
        The values used. If several combinations have the same mean score, the smallest C is chosen and, for this C, the
        smallest contrast.
    cv_results_ : dict of ndarray
        ``contrast``, ``t``, ``C``, and mean and standard deviation of the accuracy over the folds (``mean_test_score``
        and ``std_test_score``), for all candidates; empty if nothing was tuned.
    kernel_ : HypersphericalHeat
        The fitted kernel. For n columns, it has ``contrast=contrast_`` if `contrast_` is at most n / 4, and ``t=t_``
        otherwise.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
        Number n of columns. The kernel depends on n, so rows with another number of columns raise an error.
    support_ : ndarray of int, shape (n_support,)
        Positions of the support vectors in the training rows.
    support_vectors_ : ndarray or csr_array, shape (n_support, `n_features_in_`)
        The support vectors as unit vectors.
    pair_coef_, pair_intercept_ : ndarray, shapes (n_pairs, n_support) and (n_pairs,)
        Coefficients and intercepts of one support-vector machine for each pair of classes, in the order (0, 1), (0, 2),
        ..., (1, 2), ...; positive values favour the first class of a pair.

    Notes
    -----
    "tune" tries the numbers s = 1/4, 1/2, ..., 64. For n columns, each s that is at most n / 4 is used as the contrast.
    A larger s stands for the time t = 1 / (2 s) instead, because contrasts cannot reach n, and contrasts near n are
    almost equal even for very different times. In both cases, s is about the slope of the kernel at equal vectors: its
    derivative with respect to the cosine of the angle, at cosine 1.

    `predict` returns the class with the largest value of `decision_function`, like ``SVC(break_ties=True)``. For
    probabilities, wrap the classifier in scikit-learn's `CalibratedClassifierCV`.

    `fit` raises an error if the Gram matrices do not fit into ``similia.config(max_memory=...)``: the default of 1 GiB
    has room for 6,600 rows if contrast or C is tuned, otherwise for 11,500.

    References
    ----------
    Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.learn.heat_svc import HeatSVC
    >>> counts = np.array([[4, 1, 0], [9, 2, 1], [1, 5, 0], [0, 7, 1], [6, 0, 1], [1, 4, 2]])
    >>> model = HeatSVC(cv=3).fit(counts, ["a", "a", "b", "b", "a", "b"])
    >>> model.predict([[40, 3, 1], [1, 20, 0]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        contrast: float | Sequence[float] | Literal["tune", "suggest"] = "tune",
        C: float | Sequence[float] | Literal["tune"] = "tune",
        mapping: Mapping = "auto",
        zero_rows: ZeroRows = "raise",
        cv: Any = 5,
        class_weight: Any = None,
        random_state: RandomState = None,
    ) -> None:
        self.contrast = contrast
        self.C = C
        self.mapping = mapping
        self.zero_rows = zero_rows
        self.cv = cv
        self.class_weight = class_weight
        self.random_state = random_state

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Tune contrast and C if requested, then fit to rows `X`, shape (n_rows, n_features), with labels `y`."""
        refuse_lazy(
            X, "fit compares all pairs of rows in memory; take HeatRandomFeatures or Nystroem(HypersphericalHeat())"
        )
        problem = self._problem(X, y)
        codes, self.classes_, class_weight = coded(problem.labels, self.class_weight)
        check_pairs_fit(len(self.classes_), len(codes))
        V = versines(problem.rows)
        n = problem.rows.shape[1]
        chosen, C = problem.candidates[0], problem.Cs[0]
        self.cv_results_: dict[str, npt.NDArray] = {}
        if len(problem.candidates) * len(problem.Cs) > 1:
            splits = self._splits(problem.labels)
            scores = precomputed_scores(
                _grams(V, n), problem.candidates, problem.Cs, problem.labels, splits, self.class_weight
            )
            self.cv_results_ = _results(problem, scores)
            best = best_of(scores.mean(axis=2))
            chosen, C = problem.candidates[best[0]], problem.Cs[best[1]]
        kernel = HypersphericalHeat(mapping=problem.mapping, zero_rows=self.zero_rows)
        by_time = chosen.contrast > n / 4  # near n, many values of t have almost the same contrast
        self.kernel_ = kernel.set_params(t=chosen.t) if by_time else kernel.set_params(contrast=chosen.contrast)
        check_columns(self, X, reset=True)
        self.contrast_, self.t_, self.C_ = chosen.contrast, chosen.t, C
        self.n_features_in_ = n
        machine = fit_machine(self.kernel_._of_versines(V, n), codes, C, class_weight)
        self._keep(machine)
        self.support_vectors_ = problem.rows[machine.support]
        return self

    def nested_scores(self, X: Any, y: Any) -> NestedScores:
        """Return nested cross-validated accuracies: each fold tests a classifier tuned and fitted on the other folds.

        The result is a named tuple, which `similia.learn.nested_scores` describes; its `parameters` are the contrasts
        chosen for each fold. With 5 folds, the call takes one to two times as long as a `fit` that tunes; with 10
        folds, about four times. The call does not change the classifier. With ``contrast="suggest"``, the contrast
        depends on the rows of all folds, but not on their labels.
        """
        problem = self._problem(X, y)
        folds = fold_numbers(self._splits(problem.labels), len(problem.labels))
        V = versines(problem.rows)
        of = nested_scores(
            _grams(V, problem.rows.shape[1]), problem.candidates, problem.Cs, problem.labels, folds, self.class_weight
        )
        return of._replace(parameters=[candidate.contrast for candidate in of.parameters])

    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return decision values, shape (m, n_classes); for two classes, (m,), positive for the second class."""
        check_fitted(self)
        check_table(self, X, reset=False)
        rows = as_rows(X)
        if rows.shape[1] != self.n_features_in_:
            raise wrong_width(rows.shape[1], self.n_features_in_, self)
        rows = mapped_by(self, rows, self.kernel_.mapping)
        parts = []
        step = rows_per_block(8 * (3 * len(self.support_) + self._width))
        for start in range(0, rows.shape[0], step):
            V = versines(rows[start : start + step], self.support_vectors_)
            parts.append(self._confidences(self.kernel_._of_versines(V, self.n_features_in_)))
        return np.concatenate(parts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _problem(self, X: Any, y: Any) -> _Problem:
        """Check `X` and `y`; return the rows as unit vectors, the labels, and the values of contrast and C to try."""
        rows = as_rows(X)
        labels = checked_labels(y, rows.shape[0], two=True)
        mapping = resolve_mapping(rows, self.mapping)
        rows = mapped_by(self, rows, mapping)
        candidates = self._candidates(rows)
        Cs = sorted(_CS if _is(self.C, "tune") else _numbers(self.C, "C", '"tune"'))
        tuned = len(candidates) * len(Cs) > 1
        check_memory(
            f"the Gram matrices of {rows.shape[0]} rows take",
            8 * rows.shape[0] ** 2 * (3 if tuned else 1),  # versines, the kernel, and a block of it
            "take HeatRandomFeatures or Nystroem(HypersphericalHeat()) with a linear model",
        )
        return _Problem(rows, labels, mapping, candidates, Cs)

    def _candidates(self, rows: Any) -> list[_Candidate]:
        n = rows.shape[1]
        if _is(self.contrast, "tune"):
            return [_with_slope(slope, n) for slope in _CONTRASTS]
        if _is(self.contrast, "suggest"):
            contrasts = [suggest_contrast(rows, mapping=None)]
        else:
            contrasts = sorted(_numbers(self.contrast, "contrast", '"tune", "suggest"'))
        if contrasts[-1] >= n:
            raise ValueError(
                f"contrast must be below the number of features, {n}, got {contrasts[-1]:g}; "
                'contrast="tune" chooses values below it'
            )
        return [_Candidate(a, heat.time_of(a, n)) for a in contrasts]

    def _splits(self, labels: npt.NDArray) -> list[tuple[npt.NDArray, npt.NDArray]]:
        """Return the (training rows, validation rows) of each fold."""
        cv = check_cv(self.cv, labels, classifier=True)
        if isinstance(cv, StratifiedKFold):
            _check_folds(cv.n_splits, labels)
            if isinstance(self.cv, Integral) and self.random_state is not None:
                seed = int(generator(self.random_state).integers(2**32))
                cv = StratifiedKFold(cv.n_splits, shuffle=True, random_state=seed)
        return list(cv.split(np.zeros((len(labels), 1)), labels))


def _with_slope(slope: float, n: int) -> _Candidate:
    """Return (contrast, t) with contrast = `slope` or, if `slope` is above n / 4, with t = 1 / (2 slope)."""
    if slope <= n / 4:
        return _Candidate(slope, heat.time_of(slope, n))
    t = 1 / (2 * slope)
    return _Candidate(heat.contrast_of(t, n), t)


def _grams(V: npt.NDArray[np.float64], n: int) -> GramOf:
    """Return a function from (contrast, t) to the Gram matrix of rows with versines `V`; calls share one array."""
    K = np.empty_like(V)

    def gram(candidate: _Candidate) -> npt.NDArray[np.float64]:
        np.copyto(K, V)
        return heat.evaluate(heat.table(n, candidate.t), K)

    return gram


def _results(problem: _Problem, scores: npt.NDArray[np.float64]) -> dict[str, npt.NDArray]:
    candidates, Cs = problem.candidates, problem.Cs
    return {
        "contrast": np.repeat([candidate.contrast for candidate in candidates], len(Cs)),
        "t": np.repeat([candidate.t for candidate in candidates], len(Cs)),
        "C": np.tile(Cs, len(candidates)),
        "mean_test_score": scores.mean(axis=2).ravel(),
        "std_test_score": scores.std(axis=2).ravel(),
    }


def _is(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


def _numbers(value: Any, name: str, words: str) -> list[float]:
    """Return the positive number or numbers in `value` as a list; raise if `value` is not valid."""
    expected = f"; {name} is {words}, a number or a sequence of numbers"
    if isinstance(value, str) or not np.iterable(value):
        return [check_positive(value, name, hint=expected)]
    values = [check_positive(number, f"{name}[{i}]") for i, number in enumerate(value)]
    if not values:
        raise ValueError(f"{name} is an empty sequence{expected}")
    return values


def _check_folds(n_folds: int, labels: npt.NDArray) -> None:
    """Raise if every class has fewer rows than `n_folds`."""
    counts = np.unique(labels, return_counts=True)[1]
    if n_folds > counts.max():
        raise ValueError(
            f"cv={n_folds} is more than the {counts.max()} rows of the largest class; "
            + (f"take cv={counts.max()}, " if counts.max() > 1 else "take ")
            + "more rows, or numbers for contrast and C, which need no folds"
        )
