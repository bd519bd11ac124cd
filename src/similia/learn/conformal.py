r"""Conformal prediction: sets of labels, and intervals of numbers, that hold the truth with a chosen probability.

A conformity score says how strange a label or a number is for an object, given a model. Calibration objects, which the
model has not seen, show how strange the truth usually is. With n of them, of scores s_i, and s the score of a label::

    p = (1 + #{i : s_i >= s}) / (n + 1)

The set of an object holds all labels with p > 1 - coverage; the interval holds all such numbers. If the object is
exchangeable with the calibration objects, the truth is among them with probability `coverage` or more, whatever the
model and the distribution of the objects ([1], Theorem 1). The probability is over calibration and new objects
together; for one fitted model it varies by about sqrt(coverage (1 - coverage) / n).

- split: a share of the objects calibrates, one model learns from the others. One fit.
- cross [2, 3]: each fold calibrates a model that learns from the other folds, so all objects do both. One fit for each
  fold, and one for the point predictions. With an interval for each object's own fold it is the jackknife+. The
  theorem is weaker: 2 coverage - 1, minus a term that vanishes with n; in practice the coverage is about as asked.
- by class (Mondrian) [1, Section 4.6]: p of a label counts the calibration objects of its own class only, so the truth
  is in the set with probability `coverage` or more within each class.

Cost: after the fits, one prediction for each object and model, and O(log n) comparisons for each class; intervals of
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
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from similia.core.config import rows_per_block
from similia.core.errors import BadParameter, BadValue, warn_user
from similia.core.estimators import all_at_once, offered_if
from similia.core.products import row_product
from similia.core.state import Sizes, array, each, labels, one_of, state
from similia.core.text import short
from similia.core.validation import RandomState, check_labels, check_positive_int, generator, not_real
from similia.learn.targets import check_two_classes, checked_labels, checked_targets
from similia.objects import n_objects, take
from similia.sources.dask import lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_HUGE = 1e38  # decision values are cut there; minus this is the value of a class that a model does not know
_TURNS = 64.0  # the randomisation of APS is a sum of probabilities times up to this, without its whole part


def _calibration_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    folds, classes = state["calibration_folds_"], state.get("calibration_classes_")
    fits = sizes["n"] > 0 and bool(((folds >= 0) & (folds < max(1, sizes["k"]))).all())
    return fits and (classes is None or bool(((classes >= 0) & (classes < sizes["c"])).all()))


@state(
    fits=_calibration_fits, estimator="predictor", estimator_="predictor", fold_estimators_=each("predict", "k"),
    calibration_scores_=array("f8", "n"), calibration_folds_=array("i8", "n"),
)  # fmt: skip
class _Conformal(BaseEstimator):
    """Base of both estimators: which objects calibrate which model."""

    _scores: ClassVar[tuple[str, ...]]  # values of `conformity_score`
    _other: ClassVar[
        tuple[Callable[[Any], bool], str, str]
    ]  # test for the wrong kind, the right kind, class for the other
    estimator: Any
    method: str
    conformity_score: str
    calibration_size: float
    cv: int | str
    random_state: RandomState
    estimator_: Any
    fold_estimators_: list[Any]
    calibration_scores_: Floats
    calibration_folds_: Index

    def _read(self, X: Any) -> tuple[Any, int]:
        """Check the parameters, and return objects from which `take` can select, and their number."""
        refuse_lazy(X, "the estimator is fitted to it in memory; draw some objects: similia.objects.take(X, indices)")
        if not all(hasattr(self.estimator, name) for name in ("fit", "predict")) or isinstance(self.estimator, type):
            raise TypeError(f"estimator is {short(self.estimator)}, expected an estimator with fit and predict")
        is_other, expected, other = self._other
        if hasattr(self.estimator, "__sklearn_tags__") and is_other(self.estimator):
            raise TypeError(f"estimator is {short(self.estimator)}, expected a {expected}; {other} takes this one")
        for name, values in (("method", ("split", "cross")), ("conformity_score", self._scores)):
            if getattr(self, name) not in values:
                raise BadParameter(name, " or ".join(map(repr, values)), short(getattr(self, name), 80))
        if self._is_frozen:
            try:
                check_is_fitted(self.estimator)
            except NotFittedError:
                raise ValueError(
                    f"estimator is frozen, but not fitted: {short(self.estimator)}; fit it first"
                ) from None
            if self.method == "cross":
                raise ValueError(
                    "method='cross' fits copies of the estimator, but it is frozen; take method='split', and give fit "
                    "only objects that the frozen estimator has not seen"
                )
        share = self.calibration_size
        if not _is_share(share):
            raise BadParameter("calibration_size", "a share above 0 and below 1", short(share, 80))
        n = n_objects(X)
        least = 1 if self._is_frozen else 2
        if n < least:
            raise BadValue(None, f"has n_samples={n}", f"at least {least}: some to learn from, others to calibrate")
        if not hasattr(X, "__len__"):  # `n_objects` has found that numpy can read it
            X = np.asarray(X)
        if getattr(getattr(X, "dtype", None), "kind", "O") == "c":
            raise not_real()
        return X, n

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
            check_is_fitted(self.estimator.estimator)
            self.estimator_ = self.estimator
            return [np.arange(n)]

        def fitted_without(left_out: Index) -> Any:
            rows = np.setdiff1d(np.arange(n), left_out)
            return clone(self.estimator).fit(take(X, rows), y[rows])

        if self.method == "split":
            held_out = _drawn(strata, self.calibration_size, rng)
            if len(held_out) == 0:
                raise ValueError("every class has one object, and by_class=True needs two or more to calibrate a class")
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
        """Store the scores of the objects `rows` that calibrate each model, and what the model tells of columns."""
        self.calibration_scores_ = np.concatenate(scores)
        self.calibration_folds_ = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the point predictions of `estimator_`, shape (m,).

        Parameters
        ----------
        X : collection of m objects
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _values_by(name: str) -> Callable[[Any], None]:
    """Return a function that raises AttributeError if a classifier's estimator lacks the method called `name`."""

    def check(conformal: Any) -> None:
        inside = getattr(conformal, "estimator_", conformal.estimator)
        if not hasattr(inside, name):
            raise AttributeError(f"{type(inside).__name__}, the estimator, has no {name}")

    return check


@state(
    classes_=labels("c"), calibration_classes_=array("i8", "n"), turns_=array("f8", "c"),
    conformity_score_=one_of("lac", "margin", "aps"), values_=one_of("predict_proba", "decision_function"),
)  # fmt: skip
class ConformalClassifier(ClassifierMixin, _Conformal):
    r"""Predict sets of labels that hold the true label with a chosen probability, by any classifier of any objects.

    Parameters
    ----------
    estimator : classifier or pipeline
        It needs `predict_proba` or `decision_function`. If it is a fitted classifier in scikit-learn's
        `FrozenEstimator`, all objects that `fit` gets calibrate it; it must not have seen them.
    method : {"split", "cross"}, default="split"
        "split" calibrates one model with the share `calibration_size` of the objects; "cross" calibrates the model of
        each fold with the objects of the fold (cross-conformal prediction), which costs `cv` + 1 fits and suits few
        objects.
    conformity_score : {"auto", "lac", "margin", "aps"}, default="auto"
        How strange a label is. "lac": one minus its probability, which makes the smallest sets on average. "margin":
        by how much the largest probability or decision value of all other labels exceeds its own. "aps": the
        probability of all more probable labels, plus a part of its own, which adapts sets to how hard an object is, and
        needs `predict_proba`. "auto": "lac" if the estimator has `predict_proba`, else "margin".
    by_class : bool, default=False
        Whether each class is calibrated with its own objects (Mondrian), so that coverage holds within each class, also
        in rare ones. The sets are larger.
    calibration_size : float, default=0.25
        Share of the objects that calibrate, with ``method="split"``; drawn at random, or within each class if
        `by_class`.
    cv : int or "loo", default=5
        Number of folds, with ``method="cross"``; "loo" leaves out each object alone.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the split, of the folds, and of the randomisation of "aps".

    Attributes
    ----------
    estimator_ : estimator
        The model that `predict` uses: fitted to the objects that do not calibrate ("split") or to all ("cross").
    fold_estimators_ : list of estimators
        The models of the folds; empty with ``method="split"``.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    conformity_score_ : {"lac", "margin", "aps"}
        The score used.
    values_ : {"predict_proba", "decision_function"}
        The method of the estimator that the scores are made from.
    calibration_scores_, calibration_classes_, calibration_folds_ : ndarray, shape (n_calibration,)
        Score of the true label of each calibration object (float64), position of this label in `classes_` and number of
        the model that has not seen the object (int64).
    turns_ : ndarray of float64, shape (n_classes,)
        The random numbers of "aps".
    n_features_in_ : int
        Number of columns; only if the estimator has it.

    Raises
    ------
    ValueError
        In `fit`, if there are fewer than two objects or classes, a parameter is not one of its values, or the
        estimator's values are not finite or not one for each class.
    TypeError
        In `fit`, if the estimator has neither `predict_proba` nor `decision_function`.

    Notes
    -----
    Coverage holds if new objects come from the same source as the calibration objects, in random order. It is an
    average over all objects; with `by_class`, over those of each class. A set may be empty (no label is as usual as
    asked), or hold several labels (the model cannot tell). A class that a model has not seen has probability 0 for it.

    Values are rounded to float32 before they are compared, so that their last digits, which depend on the processor,
    decide nothing. Equal scores count as equally strange, so ties make sets larger, never smaller. The random part of
    "aps" is a function of the object's own probabilities and the seed. Therefore a set depends on its own object only.

    References
    ----------
    Vovk, Gammerman & Shafer, "Algorithmic Learning in a Random World", Springer 2022, equation 2.20 (the p-values).
    Vovk, "Cross-conformal predictors", 2015. Sadinle, Lei & Wasserman, "Least ambiguous set-valued classifiers with
    bounded error levels", Journal of the American Statistical Association 114, 2019 ("lac"). Romano, Sesia & Candès,
    "Classification with valid and adaptive coverage", NeurIPS 2020, equations 5 to 7 ("aps").

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> svc = sm.KernelSVC(sm.kernels.Spectrum(k=3, normalize=True))
    >>> model = sm.ConformalClassifier(svc, calibration_size=0.5, random_state=0).fit(X[::2], y[::2])
    >>> sets = model.predict_set(X[1::2], coverage=0.8)
    >>> sets.shape, sets.dtype
    ((53, 2), dtype('bool'))
    >>> model.p_values(X[1:2]).shape
    (1, 2)
    """

    _scores = ("auto", "lac", "margin", "aps")
    _other = (is_regressor, "classifier", "ConformalRegressor")
    classes_: npt.NDArray
    calibration_classes_: Index
    turns_: Floats
    conformity_score_: str
    values_: str

    def __init__(
        self,
        estimator: Any,
        method: str = "split",
        conformity_score: str = "auto",
        *,
        by_class: bool = False,
        calibration_size: float = 0.25,
        cv: int | str = 5,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.by_class = by_class
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier, and calibrate it with objects that it has not seen.

        Parameters
        ----------
        X : collection of n objects
        y : array-like of shape (n,)
            Labels.
        """
        (X, n), rng = self._read(X), generator(self.random_state)
        y = checked_labels(y, n)
        self.classes_ = _with_classes_of(self.estimator, y) if self._is_frozen else np.unique(y)
        check_two_classes(self.classes_, "y")
        codes = np.searchsorted(self.classes_, y)
        rows = self._fit_models(X, y, codes if self.by_class or self.method == "cross" else np.zeros_like(codes), rng)
        self._choose_score()
        self.turns_ = rng.random(len(self.classes_)) * _TURNS
        judged = zip(self._judges, rows, strict=True)
        scores = [self._strangeness(model, take(X, part))[np.arange(len(part)), codes[part]] for model, part in judged]
        self._keep(rows, scores)
        self.calibration_classes_ = np.concatenate([codes[part] for part in rows])
        return self

    def _choose_score(self) -> None:
        has = [
            name for name in ("predict_proba", "decision_function") if all(hasattr(one, name) for one in self._judges)
        ]
        if not has:
            raise TypeError(
                f"estimator is {short(self.estimator)}, expected a classifier with predict_proba or decision_function"
            )
        score, self.values_ = self.conformity_score, has[0]
        if score in ("lac", "aps") and self.values_ != "predict_proba":
            raise ValueError(
                f"conformity_score={score!r} needs predict_proba, which {type(self.estimator_).__name__} lacks; take "
                "'margin', or wrap the estimator in sklearn.calibration.CalibratedClassifierCV"
            )
        self.conformity_score_ = score if score != "auto" else "lac" if self.values_ == "predict_proba" else "margin"

    def _values(self, model: Any, X: Any, name: str) -> npt.NDArray[np.floating]:
        """Return what the method called `name` gives for each object and each of `classes_`, (m, n_classes)."""
        values = np.asarray(getattr(model, name)(X))
        if values.ndim == 1:  # decision values of two classes: positive for the second one
            values = np.column_stack([-values, values])
        if values.ndim != 2 or values.shape[1] != len(model.classes_):
            raise ValueError(
                f"{name} of {type(model).__name__} has shape {values.shape} for {len(model.classes_)} classes, "
                "expected one value for each class"
            )
        if len(model.classes_) == len(self.classes_):
            return values
        unknown = 0.0 if name == "predict_proba" else -_HUGE
        found = np.full((len(values), len(self.classes_)), unknown, values.dtype)
        found[:, np.searchsorted(self.classes_, model.classes_)] = values
        return found

    def _strangeness(self, model: Any, X: Any) -> Floats:
        """Return the conformity score of each label for each object, (m, n_classes); larger is stranger."""
        given = self._values(model, X, self.values_)
        if np.isnan(given).any():
            i = int(np.isnan(given).any(axis=1).argmax())
            raise BadValue(i, f"gets NaN from {self.values_} of {type(model).__name__}", "numbers")
        values = np.clip(given, -_HUGE, _HUGE).astype(np.float32).astype(np.float64)
        if self.conformity_score_ == "lac":
            return 1.0 - values
        order = np.argsort(-values, axis=1, kind="stable")
        ranked = np.take_along_axis(values, order, axis=1)
        if self.conformity_score_ == "margin":
            rivals = np.repeat(ranked[:, :1], values.shape[1], axis=1)
            np.put_along_axis(rivals, order[:, :1], ranked[:, 1:2], axis=1)
            return rivals - values
        random = row_product(values, self.turns_[:, None]) % 1.0
        scores = np.empty_like(values)
        np.put_along_axis(scores, order, np.cumsum(ranked, axis=1) - (1.0 - random) * ranked, axis=1)
        return scores

    def _sizes(self) -> Index:
        """Return the number of calibration objects with which an object of each class is compared, (n_classes,)."""
        check_is_fitted(self, "calibration_scores_")
        n_classes = len(self.classes_)
        if self.by_class:
            return np.bincount(self.calibration_classes_, minlength=n_classes)
        return np.full(n_classes, len(self.calibration_scores_))

    def _counts(self, X: Any) -> Index:
        """Return the number of these calibration objects that are at least as strange, (m, n_classes)."""
        totals = []
        for i, model in enumerate(self._judges):
            scores = self._strangeness(model, X)
            counts = np.empty(scores.shape, dtype=np.int64)
            of_model = self.calibration_folds_ == i
            for c in range(len(self.classes_)):
                known = of_model & (self.calibration_classes_ == c) if self.by_class else of_model
                ranked = np.sort(self.calibration_scores_[known])
                counts[:, c] = len(ranked) - np.searchsorted(ranked, scores[:, c], side="left")
            totals.append(counts)
        return np.sum(totals, axis=0)

    @lazily
    def p_values(self, X: Any) -> Floats:
        """Return the p-value of each label for each object, shape (m, n_classes).

        It is the share, with the object itself, of calibration objects whose true label is at least as strange. If the
        label is true, p <= t has probability t at most ("split").

        Parameters
        ----------
        X : collection of m objects
        """
        sizes = self._sizes()
        return (self._counts(X) + 1.0) / (sizes + 1.0)

    @lazily
    def predict_set(self, X: Any, coverage: float = 0.9) -> npt.NDArray[np.bool_]:
        """Return which labels are in the set of each object, shape (m, n_classes), in the order of `classes_`.

        Parameters
        ----------
        X : collection of m objects
        coverage : float, default=0.9
            Probability, above 0 and below 1, that a set holds the true label.

        Raises
        ------
        ValueError
            If `coverage` is no number between 0 and 1, or there are too few calibration objects for it. With
            `by_class`, a class that has too few is in every set, with a warning, unless all classes have too few.

        Examples
        --------
        >>> import similia as sm
        >>> words, y = ["AC", "ACAC", "CACA", "GT", "GTG", "TGT", "TGTG", "ACA"] * 4, [0, 0, 0, 1, 1, 1, 1, 0] * 4
        >>> svc = sm.KernelSVC(sm.kernels.Spectrum(k=1, normalize=True))
        >>> model = sm.ConformalClassifier(svc, "cross", random_state=0).fit(words, y)
        >>> sets = model.predict_set(["ACCA", "GGTT"], coverage=0.95)
        >>> [model.classes_[row].tolist() for row in sets]
        [[0], [1]]
        """
        asked, sizes = checked_coverage(coverage), self._sizes()
        ranks = np.array([_rank(asked, int(size)) for size in sizes])
        self._check_sizes(asked, sizes, ranks)
        return self._counts(X) > sizes - ranks

    def _check_sizes(self, asked: Fraction, sizes: Index, ranks: Index) -> None:
        """Raise or warn if there are too few calibration objects, (n_classes,), to leave a label out of a set."""
        few = np.flatnonzero(ranks > sizes)
        if len(few) == len(sizes):
            found = int(sizes.max())
            of_class = " of a class" if self.by_class else ""
            raise _too_few(asked, found, f"every set would hold all {len(sizes)} labels", of_class)
        if len(few):
            label, size = short(self.classes_[few].tolist()[0]), int(sizes[few[0]])
            warn_user(
                f"{len(few)} of {len(sizes)} classes have fewer than {_least(asked)} calibration objects, which "
                f"coverage={float(asked):g} needs, e.g. class {label} has {size}; they are in every set"
            )

    @offered_if(_values_by("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the probabilities of `estimator_`, shape (m, n_classes); only if it has `predict_proba`.

        Parameters
        ----------
        X : collection of m objects
        """
        check_is_fitted(self, "estimator_")
        return self._values(self.estimator_, X, "predict_proba")

    @offered_if(_values_by("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the decision values of `estimator_`, shape (m, n_classes), or (m,) for two classes.

        Parameters
        ----------
        X : collection of m objects
        """
        check_is_fitted(self, "estimator_")
        values = self._values(self.estimator_, X, "decision_function")
        return values[:, 1] if len(self.classes_) == 2 else values


class ConformalRegressor(RegressorMixin, _Conformal):
    r"""Predict intervals that hold the true number with a chosen probability, by any regressor of any objects.

    Parameters
    ----------
    estimator : regressor or pipeline
        If it is a fitted regressor in scikit-learn's `FrozenEstimator`, all objects that `fit` gets calibrate it; it
        must not have seen them.
    method : {"split", "cross"}, default="split"
        "split" calibrates one model with the share `calibration_size` of the objects; "cross" is CV+, and with
        ``cv="loo"`` the jackknife+, which costs `cv` + 1 fits and suits few objects.
    conformity_score : {"absolute", "normalized"}, default="absolute"
        "absolute": the absolute residual; with "split", all intervals have the same width. "normalized": the absolute
        residual divided by the standard deviation that the estimator's ``predict(X, return_std=True)`` gives, as
        Gaussian processes do; intervals are wide where the model is unsure.
    calibration_size, cv, random_state : float, int or "loo", seed
        As for `ConformalClassifier`.

    Attributes
    ----------
    estimator_, fold_estimators_, n_features_in_ : estimator, list of estimators, int
        As for `ConformalClassifier`.
    calibration_scores_, calibration_folds_ : ndarray, shape (n_calibration,)
        Score of the target of each calibration object (float64), and number of the model that has not seen it (int64).

    Raises
    ------
    ValueError
        In `fit`, if there are fewer than two objects, a target is not a finite number, a parameter is not one of its
        values, or a standard deviation is not positive.
    TypeError
        In `fit`, if ``conformity_score="normalized"`` and the estimator's `predict` does not take `return_std`.

    Notes
    -----
    With "split", an interval is f(x) ± q s(x), where q is the ceil((n + 1) coverage)-th smallest of the n scores, and s
    the standard deviation, or 1. With "cross", let f_i be the model that has not seen calibration object i, and r_i its
    score. The lower end is the floor((n + 1) (1 - coverage))-th smallest f_i(x) - r_i s_i(x), and the upper end the
    ceil((n + 1) coverage)-th smallest f_i(x) + r_i s_i(x) [1]_. If coverage is below 0.5, the lower end may be above
    the upper one: the interval is empty.

    References
    ----------
    .. [1] Barber, Candès, Ramdas & Tibshirani, "Predictive inference with the jackknife+", Annals of Statistics 49,
       2021, equations 1.6 and 1.12. Lei, G'Sell, Rinaldo, Tibshirani & Wasserman, "Distribution-free predictive
       inference for regression", Journal of the American Statistical Association 113, 2018, Algorithm 2 and Section 5.2
       ("split", "normalized").

    Examples
    --------
    >>> import similia as sm
    >>> X = [letters * n for n in range(1, 9) for letters in ("A", "AC", "ACG", "ACGT")]
    >>> y = [float(len(text)) for text in X]
    >>> ridge = sm.KernelRidge(sm.kernels.Spectrum(k=1), alpha=0.01)
    >>> model = sm.ConformalRegressor(ridge, calibration_size=0.5, random_state=0).fit(X, y)
    >>> low, high = model.predict_interval(["ACGTACG"], coverage=0.9)[0]
    >>> bool(low < 7 < high)
    True
    """

    _scores = ("absolute", "normalized")
    _other = (is_classifier, "regressor", "ConformalClassifier")

    def __init__(
        self,
        estimator: Any,
        method: str = "split",
        conformity_score: str = "absolute",
        *,
        calibration_size: float = 0.25,
        cv: int | str = 5,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.calibration_size = calibration_size
        self.cv = cv
        self.random_state = random_state

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regressor, and calibrate it with objects that it has not seen.

        Parameters
        ----------
        X : collection of n objects
        y : array-like of shape (n,)
            Numbers.
        """
        (X, n), rng = self._read(X), generator(self.random_state)
        targets = checked_targets(None if y is None else check_labels(y, n), n, "ConformalRegressor")
        rows = self._fit_models(X, targets, np.zeros(n, dtype=np.int64), rng)
        scores = []
        for model, part in zip(self._judges, rows, strict=True):
            center, scale = self._predicted(model, take(X, part))
            scores.append(np.abs(targets[part] - center) / scale)
        self._keep(rows, scores)
        return self

    def _predicted(self, model: Any, X: Any) -> tuple[Floats, Floats]:
        """Return the predictions of a model, and the unit in which its residuals are measured: (m,) both."""
        if self.conformity_score == "absolute":
            center = np.asarray(model.predict(X), dtype=np.float64)
            return center, np.ones(len(center))
        try:
            center, scale = (np.asarray(part, dtype=np.float64) for part in model.predict(X, return_std=True))
        except TypeError as error:
            raise TypeError(
                f"conformity_score='normalized' needs predict(X, return_std=True), which fails for "
                f"{type(model).__name__} ({error}); take 'absolute'"
            ) from error
        if not (scale > 0).all():
            i = int((~(scale > 0)).argmax())
            raise BadValue(i, f"gets the standard deviation {scale[i]:g}", "a positive one", "add noise to the model")
        return center, scale

    @lazily
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the lower and the upper end of the interval of each object, shape (m, 2).

        Parameters
        ----------
        X : collection of m objects
        coverage : float, default=0.9
            Probability, above 0 and below 1, that an interval holds the true number.

        Raises
        ------
        ValueError
            If `coverage` is no number between 0 and 1, or there are too few calibration objects for it.
        """
        asked = checked_coverage(coverage)
        check_is_fitted(self, "calibration_scores_")
        n, scores = len(self.calibration_scores_), self.calibration_scores_
        k = _rank(asked, n)
        if k > n:
            raise _too_few(asked, n, "every interval would be infinite")
        if not self.fold_estimators_:
            center, scale = self._predicted(self.estimator_, X)
            width = scale * np.partition(scores, k - 1)[k - 1]
            return np.column_stack([center - width, center + width])
        predicted = [self._predicted(model, X) for model in self.fold_estimators_]
        centers, scales = (np.column_stack(parts) for parts in zip(*predicted, strict=True))
        ends = np.empty((len(centers), 2))
        step = rows_per_block(4 * 8 * n)
        for start in range(0, len(ends), step):
            part, of = slice(start, start + step), self.calibration_folds_
            widths = scales[part][:, of] * scores
            ends[part, 0] = np.partition(centers[part][:, of] - widths, n - k, axis=1)[:, n - k]
            ends[part, 1] = np.partition(centers[part][:, of] + widths, k - 1, axis=1)[:, k - 1]
        return ends


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1


def checked_coverage(coverage: Any) -> Fraction:
    """Return `coverage` as the decimal number that Python prints, so that 0.9 means nine tenths."""
    if not _is_share(coverage):
        raise BadParameter("coverage", "a number above 0 and below 1", short(coverage, 80))
    return Fraction(str(float(coverage)))


def _rank(coverage: Fraction, n: int) -> int:
    """Return which of n sorted calibration scores is the largest that may be in a set, from 1; n + 1: infinity."""
    return math.ceil((n + 1) * coverage)


def _least(coverage: Fraction) -> int:
    """Return the smallest number of calibration objects with which something can be left out of a set."""
    return math.ceil(coverage / (1 - coverage))


def _too_few(coverage: Fraction, n: int, then: str, of: str = "") -> ValueError:
    most = math.floor(1000 * Fraction(n, n + 1)) / 1000
    less = f"ask for coverage={most:g} or less, or " if most > 0 else ""
    return ValueError(
        f"coverage={float(coverage):g} needs {_least(coverage)} calibration objects{of}, found {n}: {then}; {less}"
        "calibrate with more objects"
    )


def _drawn(strata: Index, share: float, rng: np.random.Generator) -> Index:
    """Return the sorted positions of a random `share` of each stratum: one object or more, but never all of them."""
    drawn = []
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        drawn.append(members[: min(len(members) - 1, max(1, round(share * len(members))))])
    return np.sort(np.concatenate(drawn))


def _with_classes_of(frozen: Any, y: npt.NDArray) -> npt.NDArray:
    """Return the sorted labels that a fitted classifier knows or that are in `y`; raise if their types differ."""
    known = np.asarray(frozen.classes_)
    if (known.dtype.kind in "US") != (y.dtype.kind in "US") and "O" not in known.dtype.kind + y.dtype.kind:
        found = f"{short(y.tolist()[0])}, but the frozen estimator knows {short(known.tolist()[0])}"
        raise BadValue(0, f"is {found}", remedy="give labels of one type", collection="y")
    return np.union1d(known, y)
