r"""Conformal prediction: sets of labels, and intervals of numbers, that hold the truth with a chosen probability.

The conformity score of an object and a label (or a number) says how badly they fit each other under a model: larger is
stranger. Calibration objects, which the model has not seen, show how strange the truth usually is. If s_i are the
scores of n such objects with their true labels, a label with score s has the p-value::

    p = (1 + #{i : s_i >= s}) / (n + 1)

The set of an object holds all labels with p > 1 - coverage; the interval holds all such numbers. If the object is
exchangeable with the calibration objects, the set holds the true label with probability `coverage` or more, for any
model and any distribution of the objects ([1], Theorem 1). This probability is an average over draws of calibration
objects; for one draw, it differs from `coverage` by about sqrt(coverage (1 - coverage) / n).

- split: a share of the objects calibrates one model, which learns from the others. It takes one fit.
- cross [2, 3]: each fold calibrates a model that learns from the other folds, so each object calibrates a model and
  trains others. It takes one fit for each fold, and one for the point predictions. If each fold holds one object, the
  intervals are those of the jackknife+. The theorem is weaker: the probability is at least 2 coverage - 1, minus a term
  that vanishes with n; in practice it is about `coverage`.
- by class (Mondrian) [1, Section 4.6]: the p-value of a label counts only calibration objects of that class, so the set
  holds the true label with probability `coverage` or more within each class.

Cost, after the fits: one prediction for each object and model, and O(log n) comparisons for each class. Intervals of
"cross" take O(n) numbers for each object.

.. [1] Vovk, Gammerman & Shafer, "Algorithmic Learning in a Random World", 2nd edition, Springer 2022.
.. [2] Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015.
.. [3] Barber, Candès, Ramdas & Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics 49, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadParameter, BadValue, numbered
from similia.core.estimators import take_columns
from similia.core.state import Sizes, array, each, state
from similia.core.text import short
from similia.core.validation import RandomState, check_choice, check_positive_int, not_real
from similia.objects import n_objects, take
from similia.sources.dask import lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def _calibration_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    folds, classes = state["calibration_folds_"], state.get("calibration_classes_")
    fits = sizes["n"] > 0 and bool(((folds >= 0) & (folds < max(1, sizes["k"]))).all())
    return fits and (classes is None or bool(((classes >= 0) & (classes < sizes["c"])).all()))


@state(
    fits=_calibration_fits, estimator="predictor", estimator_="predictor", fold_estimators_=each("predict", "k"),
    calibration_scores_=array("f8", "n"), calibration_folds_=array("i8", "n"),
)  # fmt: skip
class Conformal(BaseEstimator):
    """Base of both estimators: fits the models, and decides which objects calibrate which model."""

    _scores: ClassVar[tuple[str, ...]]  # values of `conformity_score`
    _refused: ClassVar[Callable[[Any], bool]]  # whether an estimator is of the wrong kind
    _expected: ClassVar[str]  # the right kind, for error messages
    _instead: ClassVar[str]  # the class that takes the wrong kind

    def __init__(
        self, estimator: Any, method: str = "split", conformity_score: str = "absolute", *,
        calibration_size: float = 0.25, cv: int | str = 5, random_state: RandomState = None,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    def _read(self, X: Any) -> tuple[Any, int]:
        """Raise if a parameter is wrong; return the objects, in a form that `take` accepts, and their number."""
        refuse_lazy(X, "fit trains the estimator in memory; give X.compute(), or a part of it")
        if not all(hasattr(self.estimator, name) for name in ("fit", "predict")) or isinstance(self.estimator, type):
            raise TypeError(f"estimator is {short(self.estimator)}, expected an estimator with fit and predict")
        if hasattr(self.estimator, "__sklearn_tags__") and type(self)._refused(self.estimator):
            found = f"estimator is {short(self.estimator)}, expected a {self._expected}"
            raise TypeError(f"{found}; {self._instead} takes this one")
        check_choice(self.method, "method", ("split", "cross"))
        check_choice(self.conformity_score, "conformity_score", self._scores)
        if self._is_frozen:
            self._check_frozen()
        if not _is_share(self.calibration_size):
            raise BadParameter("calibration_size", "a number above 0 and below 1", short(self.calibration_size, 80))
        n = n_objects(X)
        least = 1 if self._is_frozen else 2
        if n < least:
            raise BadValue(
                None, f"has n_samples={n}", f"at least {least}, to learn from some and calibrate with others"
            )
        if not hasattr(X, "__len__"):  # numpy can read it, or `n_objects` would have raised
            X = np.asarray(X)
        if getattr(getattr(X, "dtype", None), "kind", "O") == "c":
            raise not_real()
        return X, n

    def _check_frozen(self) -> None:
        """Raise if the estimator, which is frozen, is not fitted or cannot be used with `method`."""
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            raise ValueError(f"estimator is frozen, but not fitted: {short(self.estimator)}; fit it first") from None
        if self.method == "cross":
            raise ValueError(
                "method='cross' fits copies of the estimator, but it is frozen; take method='split', and give fit only "
                "objects that the frozen estimator has not seen"
            )

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    @property
    def _judges(self) -> list[Any]:
        """The models that calibration objects calibrate, in the order of `calibration_folds_`."""
        return list(self.fold_estimators_) or [self.estimator_]

    def _fit_models(self, X: Any, y: npt.NDArray, strata: Index, rng: np.random.Generator) -> list[Index]:
        """Fit all models, and return the positions of the objects that calibrate each of `_judges`."""
        n = len(y)
        self.fold_estimators_ = []
        if self._is_frozen:
            self.estimator_ = self.estimator
            return [np.arange(n)]

        def fitted_without(left_out: Index) -> Any:
            rows = np.setdiff1d(np.arange(n), left_out)
            with numbered(rows):
                return clone(self.estimator).fit(take(X, rows), y[rows])

        if self.method == "split":
            held_out = _drawn(strata, self.calibration_size, rng)
            if len(held_out) == 0:
                raise ValueError(
                    "every class has one object, but by_class=True needs two or more, one to learn from and one to "
                    "calibrate with; give more objects, or set by_class=False"
                )
            self.estimator_ = fitted_without(held_out)
            return [held_out]
        k = n if self.cv == "loo" else check_positive_int(self.cv, "cv", minimum=2)
        if k > n:
            raise BadParameter("cv", f"at most the number of objects, {n}", str(k))
        order = np.lexsort((rng.random(n), strata))
        folds = [np.sort(order[first::k]) for first in range(k)]
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.fold_estimators_ = [fitted_without(fold) for fold in folds]
        return folds

    def _keep(self, rows: list[Index], scores: list[Floats]) -> None:
        """Store the scores of the objects at the positions `rows`, one array for each model, and names of columns."""
        self.calibration_scores_ = np.concatenate(scores)
        self.calibration_folds_ = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
        take_columns(self, self.estimator_)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the point predictions of `estimator_`, shape (m,)."""
        check_is_fitted(self, "estimator_")
        return one_column(self.estimator_.predict(X), n_objects(X), self.estimator_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def one_column(answers: Any, n: int, model: Any) -> npt.NDArray:
    """Return what a model predicts for n objects with shape (n,), also if its shape is (n, 1); raise for others."""
    found = np.asarray(answers)
    if found.shape not in ((n,), (n, 1)):
        raise ValueError(f"{type(model).__name__} predicts an array of shape {found.shape} for {n} objects, not ({n},)")
    return found.ravel()


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1


def checked_coverage(coverage: Any) -> Fraction:
    """Return `coverage` as the decimal number that Python prints, so that 0.9 means nine tenths."""
    if not _is_share(coverage):
        raise BadParameter("coverage", "a number above 0 and below 1", short(coverage, 80))
    return Fraction(str(float(coverage)))


def rank_of(coverage: Fraction, n: int) -> int:
    """Return k: a set or interval holds everything whose score is at most the k-th smallest of n calibration scores.

    If k is n + 1, it holds everything.
    """
    return math.ceil((n + 1) * coverage)


def least_to_calibrate(coverage: Fraction) -> int:
    """Return the smallest number of calibration objects for which a set need not hold everything."""
    return math.ceil(coverage / (1 - coverage))


def too_few(coverage: Fraction, n: int, then: str, of: str = "") -> ValueError:
    most = math.floor(1000 * Fraction(n, n + 1)) / 1000
    less = f"ask for coverage={most:g} or less, or " if most > 0 else ""
    return ValueError(
        f"coverage={float(coverage):g} needs {least_to_calibrate(coverage)} calibration objects{of}, found {n}: "
        f"{then}; {less}calibrate with more objects"
    )


def _drawn(strata: Index, share: float, rng: np.random.Generator) -> Index:
    """Return the sorted positions of a random `share` of each stratum: one object or more, but never all of them."""
    drawn = []
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        drawn.append(members[: min(len(members) - 1, max(1, round(share * len(members))))])
    return np.sort(np.concatenate(drawn))
