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
from contextlib import closing
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags

from similia.core.config import rows_per_block, track
from similia.core.estimators import all_at_once, check_fitted, offered_if, take_columns
from similia.core.state import Sizes, array, each, labels, one_of, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadValue,
    RandomState,
    check_choice,
    check_positive_int,
    generator,
    not_real,
    numbered,
    warn_user,
)
from similia.learn.targets import check_two_classes, checked_labels, checked_numbers, with_classes_of
from similia.objects import n_objects, take
from similia.pipelines import decides_in_pairs
from similia.sources.dask import ScoresParts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_HUGE = 1e38  # decision values are cut there; minus this is the value of a class that a model does not know
_TURNS = 64.0  # upper limit of the random factors of "aps"
_METHODS = "predict_proba", "decision_function"


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
        if self._is_frozen:
            refuse_lazy(X, "fit calibrates in memory; a few thousand objects suffice, so compute a part of it")
        refuse_lazy(
            X,
            "fit trains the estimator in memory; give X.compute() or, if it is too large, fit the estimator itself to "
            "X, and calibrate FrozenEstimator(estimator) with a few thousand other objects",
        )
        if not all(hasattr(self.estimator, name) for name in ("fit", "predict")) or isinstance(self.estimator, type):
            raise TypeError(f"estimator is {short(self.estimator)}, expected an estimator with fit and predict")
        if hasattr(self.estimator, "__sklearn_tags__") and type(self)._refused(self.estimator):
            found = f"estimator is {short(self.estimator)}, expected a {self._expected}"
            raise TypeError(f"{found}; {self._instead} takes this one")
        check_choice(self.method, "method", ("split", "cross"))
        check_choice(self.conformity_score, "conformity_score", self._scores)
        if self._is_frozen:
            self._check_frozen()
        elif hasattr(self.estimator, "__sklearn_tags__") and get_tags(self.estimator).input_tags.pairwise:
            raise ValueError(
                f"estimator is {short(self.estimator)}, which needs a matrix of all pairs, but fit splits the objects; "
                "give objects, and an estimator with the kernel itself, such as KernelSVC or KernelRidge"
            )
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
            check_fitted(self.estimator)
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
        with closing(track(folds, "folds", k)) as bar:
            self.fold_estimators_ = [fitted_without(fold) for fold in bar]
        return folds

    def _keep(self, rows: list[Index], scores: list[Floats]) -> None:
        """Store the scores of the objects at the positions `rows`, one array for each model, and names of columns."""
        self.calibration_scores_ = np.concatenate(scores)
        self.calibration_folds_ = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
        take_columns(self, self.estimator_)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label or number that `estimator_` predicts for each object, shape (m,), not a set or interval."""
        check_fitted(self, "estimator_")
        return _one_column(self.estimator_.predict(X), n_objects(X), self.estimator_)

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
    conformity_score_=one_of("lac", "margin", "aps"), values_=one_of(*_METHODS, "either"),
)  # fmt: skip
class ConformalClassifier(ScoresParts, ClassifierMixin, Conformal):
    r"""Predict sets of labels that hold the true label with a chosen probability, from the outputs of any classifier.

    Parameters
    ----------
    estimator : classifier or pipeline
        A classifier with `predict_proba` or `decision_function`; `fit` fits copies of it. To calibrate a fitted
        classifier instead, wrap it in scikit-learn's `FrozenEstimator`: `fit` then uses all its objects to calibrate
        the classifier, which must not have been trained on these objects.
    method : {"split", "cross"}, default="split"
        "split" sets a share of the objects aside, fits one model to the other objects, and calibrates the model with
        this share: the scores of the objects set aside, with their true labels, determine how strange a label may be
        and still be in a set (see `conformity_score`). "cross" (cross-conformal prediction) sets each of `cv` folds
        aside in turn: it fits a model to the other folds, and calibrates this model with the fold set aside. "cross"
        needs `cv` + 1 fits, and is better if there are few objects.
    conformity_score : {"auto", "lac", "margin", "aps"}, default="auto"
        Number that says how strange a label is for an object. "lac": one minus the probability of the label. This score
        makes the smallest sets on average. "margin": the largest probability among the other labels, minus the
        probability of the label itself; decision values take the place of probabilities if the estimator has no
        `predict_proba`. "aps": the sum of the probabilities of all more probable labels, plus a random fraction of the
        probability of the label itself. This score makes larger sets for objects that are hard to classify. "lac" and
        "aps" need `predict_proba`. "auto": "lac" if the estimator has `predict_proba`, otherwise "margin".
    by_class : bool, default=False
        Whether to calibrate each class with its own objects only (Mondrian conformal prediction). The sets then hold
        the true label with the chosen probability within each class, even if it is rare, but the sets are larger.
    calibration_size : float, default=0.25
        Share of the objects that ``method="split"`` draws at random to calibrate the model. With `by_class`, it draws
        this share of each class.
    cv : int or "loo", default=5
        Number of folds of ``method="cross"``; "loo" (leave one out) makes each object a fold of its own.
    random_state : int, numpy Generator or RandomState, optional
        Source of randomness for the split, the folds and the score "aps".

    Attributes
    ----------
    estimator_ : estimator
        The model that `predict` uses. It is fitted to the objects that are not set aside ("split"), or to all objects
        ("cross").
    fold_estimators_ : list of estimators
        The models of the folds; empty with ``method="split"``.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    conformity_score_ : {"lac", "margin", "aps"}
        The conformity score used.
    values_ : {"predict_proba", "decision_function", "either"}
        Method of the estimator that returns the numbers from which the scores are computed. "either": the models of the
        folds have no method in common, so each model uses the method that it has, and the score is "margin".
    calibration_scores_, calibration_classes_, calibration_folds_ : ndarray, shape (n_calibration,)
        For each object used for calibration: the score of its true label (float64), the position of this label in
        `classes_` (int64), and the position in `fold_estimators_` of the model that was calibrated with the object
        (int64; 0 for "split").
    turns_ : ndarray of float64, shape (n_classes,)
        Random factors of "aps". The random fraction for an object is the fractional part of the inner product of its
        probabilities and these factors.
    n_features_in_ : int
        Number of columns; exists only if the estimator has this attribute.

    Raises
    ------
    ValueError
        In `fit`, if

        - there are fewer than two objects or, for a frozen estimator, no objects;
        - there are fewer than two classes;
        - a parameter has a wrong value;
        - the estimator returns NaN or the wrong number of values.
    TypeError
        In `fit`, if the estimator has neither `predict_proba` nor `decision_function`.

    Notes
    -----
    Suppose that new objects come from the same source as the calibration objects, in random order. With "split", the
    set of a new object then holds its true label with at least the chosen probability, the coverage. With "cross", this
    is approximately true in practice, but the guarantee is weaker: with many calibration objects, the probability is at
    least about 2 coverage - 1 (0.8 for a coverage of 0.9). These probabilities are averages over all objects or, with
    `by_class`, over the objects of each class. A set is empty if all labels are too strange, and holds several labels
    if the model cannot tell them apart. A class may be missing from the training objects of a model, for example if all
    objects of the class are in one fold. Its probability under this model then counts as 0, and its decision value as
    -1e38.

    Probabilities and decision values are rounded to float32 before they are compared, because their last digits depend
    on the processor. Equal scores count as equally strange, so ties make sets larger, never smaller. The random
    fraction of "aps" depends only on the object's own probabilities and on `random_state`, so the set of an object does
    not depend on the other new objects.

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
    _refused, _expected, _instead = is_regressor, "classifier", "ConformalRegressor"

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
        super().__init__(
            estimator, method, conformity_score, calibration_size=calibration_size, cv=cv, random_state=random_state
        )
        self.by_class = by_class

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier to one part of n objects with labels `y`, and calibrate it with the other part.

        With ``method="cross"``, this is repeated so that each fold is used once for calibration; one more model, which
        `predict` uses, is fitted to all objects. A frozen estimator is not fitted again, but calibrated with all
        objects.
        """
        (X, n), rng = self._read(X), generator(self.random_state)
        y = checked_labels(y, n)
        self.classes_ = with_classes_of(self.estimator, y) if self._is_frozen else np.unique(y)
        check_two_classes(self.classes_, "y")
        codes = np.searchsorted(self.classes_, y)
        rows = self._fit_models(X, y, codes if self.by_class or self.method == "cross" else np.zeros_like(codes), rng)
        self._choose_score()
        self.turns_ = rng.random(len(self.classes_)) * _TURNS
        scores = []
        for model, part in zip(self._judges, rows, strict=True):
            with numbered(part):
                scores.append(self._strangeness(model, take(X, part))[np.arange(len(part)), codes[part]])
        self._keep(rows, scores)
        self.calibration_classes_ = np.concatenate([codes[part] for part in rows])
        return self

    def _choose_score(self) -> None:
        has = [[name for name in _METHODS if hasattr(judge, name)] for judge in self._judges]
        if not all(has):
            raise TypeError(
                f"estimator is {short(self.estimator)}, expected a classifier with predict_proba or decision_function"
            )
        shared = [name for name in _METHODS if all(name in names for names in has)]
        score, self.values_ = self.conformity_score, shared[0] if shared else "either"
        if score in ("lac", "aps") and self.values_ != "predict_proba":
            raise ValueError(
                f"conformity_score={score!r} needs predict_proba, which {self._lacks('predict_proba')} lacks; take "
                "'margin', or wrap the estimator in sklearn.calibration.CalibratedClassifierCV"
            )
        self.conformity_score_ = score if score != "auto" else "lac" if self.values_ == "predict_proba" else "margin"

    def _lacks(self, method: str) -> str:
        """Return a name for the first model that lacks a method."""
        model = next(judge for judge in self._judges if not hasattr(judge, method))
        return f"{type(model).__name__}{' of a fold' * (len(self._judges) > 1)}"

    def _values(self, model: Any, X: Any, name: str) -> npt.NDArray[np.floating]:
        """Return the result of the method `name` of a model, with one column for each of `classes_`."""
        if name == "decision_function" and decides_in_pairs(model):
            raise ValueError(
                f"decision_function of {type(model).__name__} gives a value for each pair of classes, expected one for "
                "each class; set decision_function_shape='ovr'"
            )
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
        found = np.full((len(values), len(self.classes_)), unknown, np.result_type(values, np.float32))
        found[:, np.searchsorted(self.classes_, model.classes_)] = values
        return found

    def _strangeness(self, model: Any, X: Any) -> Floats:
        """Return the conformity score of each label for each object, (m, n_classes); larger is stranger."""
        method = self.values_
        if method == "either":
            method = next(name for name in _METHODS if hasattr(model, name))
        given = self._values(model, X, method)
        if np.isnan(given).any():
            i = int(np.isnan(given).any(axis=1).argmax())
            raise BadValue(i, f"gets NaN from {method} of {type(model).__name__}", "numbers")
        values = np.clip(given, -_HUGE, _HUGE).astype(np.float32).astype(np.float64)
        if self.conformity_score_ == "lac":
            return 1.0 - values
        order = np.argsort(-values, axis=1, kind="stable")
        ranked = np.take_along_axis(values, order, axis=1)
        if self.conformity_score_ == "margin":
            rivals = np.repeat(ranked[:, :1], values.shape[1], axis=1)
            np.put_along_axis(rivals, order[:, :1], ranked[:, 1:2], axis=1)
            return rivals - values
        from similia.core.products import row_product

        random = row_product(values, self.turns_[:, None]) % 1.0
        scores = np.empty_like(values)
        np.put_along_axis(scores, order, np.cumsum(ranked, axis=1) - (1.0 - random) * ranked, axis=1)
        return scores

    def _sizes(self) -> Index:
        """Return the number of calibration objects for each label: all, or those of its class; shape (n_classes,)."""
        check_fitted(self, "calibration_scores_")
        n_classes = len(self.classes_)
        if self.by_class:
            return np.bincount(self.calibration_classes_, minlength=n_classes)
        return np.full(n_classes, len(self.calibration_scores_))

    def _counts(self, X: Any) -> Index:
        """Return how many of these calibration objects are at least as strange as each label, (m, n_classes)."""
        totals, judges = [], self._judges
        for i, model in enumerate(track(judges, "folds", len(judges)) if len(judges) > 1 else judges):
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

        A small p-value means that the label is strange for the object (see `conformity_score`), compared with the true
        labels of the n objects that `fit` used for calibration. If c of these n objects are at least as strange with
        their true labels as the new object is with the given label, the p-value is (c + 1) / (n + 1). With `by_class`,
        n and c count only calibration objects of the given label's class. With ``method="split"``, the probability that
        the p-value of the true label is at most t is no larger than t, for each t.
        """
        sizes = self._sizes()
        return (self._counts(X) + 1.0) / (sizes + 1.0)

    @lazily
    def predict_set(self, X: Any, coverage: float = 0.9) -> npt.NDArray[np.bool_]:
        """Return a set of labels for each of m objects, shape (m, n_classes): True if the set holds the label.

        Row i is the set of object i. Column j stands for the label ``classes_[j]``.

        Parameters
        ----------
        X : collection of m objects
        coverage : float, default=0.9
            Probability, above 0 and below 1, that a set holds the true label.

        Raises
        ------
        ValueError
            If `coverage` is not a number between 0 and 1, or there are too few calibration objects for it. With
            `by_class`, an error is raised only if all classes have too few calibration objects. If only some classes
            have too few, their labels are in every set, and a warning names one of these classes.

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
        ranks = np.array([_rank_of(asked, int(size)) for size in sizes])
        self._check_sizes(asked, sizes, ranks)
        return self._counts(X) > sizes - ranks

    def _check_sizes(self, asked: Fraction, sizes: Index, ranks: Index) -> None:
        """Raise if no label can be left out of a set, because of too few calibration objects; warn if some cannot."""
        few = np.flatnonzero(ranks > sizes)
        if len(few) == len(sizes):
            found = int(sizes.max())
            of_class = " of a class" if self.by_class else ""
            raise _too_few(asked, found, f"every set would hold all {len(sizes)} labels", of_class)
        if len(few):
            label, size = short(self.classes_[few].tolist()[0]), int(sizes[few[0]])
            warn_user(
                f"{len(few)} of {len(sizes)} classes have fewer than {_least_to_calibrate(asked)} calibration objects, "
                f"the number that coverage={float(asked):g} needs (class {label} has {size}); they are in every set"
            )

    @offered_if(_values_by("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the probabilities that `estimator_` predicts, shape (m, n_classes); only if it has this method."""
        check_fitted(self, "estimator_")
        return self._values(self.estimator_, X, "predict_proba")

    @offered_if(_values_by("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the decision values of `estimator_`, shape (m, n_classes), or (m,) for two classes."""
        check_fitted(self, "estimator_")
        values = self._values(self.estimator_, X, "decision_function")
        return values[:, 1] if len(self.classes_) == 2 else values


@state(conformity_score_=one_of("absolute", "normalized"))
class ConformalRegressor(ScoresParts, RegressorMixin, Conformal):
    r"""Predict intervals that hold the true number with a chosen probability, from the outputs of any regressor.

    Parameters
    ----------
    estimator : regressor or pipeline
        A regressor; `fit` fits copies of it. To calibrate a fitted regressor instead, wrap it in scikit-learn's
        `FrozenEstimator`: `fit` then uses all its objects to calibrate the regressor, which must not have been trained
        on these objects.
    method : {"split", "cross"}, default="split"
        "split" sets a share of the objects aside, fits one model to the other objects, and calibrates the model with
        this share: the errors of the model on the objects set aside determine how wide the intervals are. "cross" sets
        each of `cv` folds aside in turn: it fits a model to the other folds, and calibrates this model with the fold
        set aside. In the literature, "cross" is called CV+ or, with ``cv="loo"``, the jackknife+. "cross" needs `cv` +
        1 fits, and is better if there are few objects.
    conformity_score : {"absolute", "normalized"}, default="absolute"
        "absolute": the absolute difference between target and prediction; with "split", all intervals have the same
        width. "normalized": this difference divided by the predicted standard deviation; intervals are wider where the
        model is less certain. The estimator must return this standard deviation from ``predict(X, return_std=True)``,
        as Gaussian processes do.
    calibration_size, cv, random_state : float, int or "loo", seed
        As for `ConformalClassifier`.

    Attributes
    ----------
    estimator_, fold_estimators_, n_features_in_ : estimator, list of estimators, int
        As for `ConformalClassifier`.
    conformity_score_ : {"absolute", "normalized"}
        The conformity score used.
    calibration_scores_, calibration_folds_ : ndarray, shape (n_calibration,)
        For each object used for calibration: the score of its target (float64), and the position in `fold_estimators_`
        of the model that was calibrated with the object (int64; 0 for "split").

    Raises
    ------
    ValueError
        In `fit`, if

        - there are fewer than two objects or, for a frozen estimator, no objects;
        - a target is not a finite number;
        - a parameter has a wrong value;
        - predictions are not one finite number for each object, or a predicted standard deviation is not positive.
    TypeError
        In `fit`, if ``conformity_score="normalized"`` and the estimator's `predict` does not accept `return_std`.

    Notes
    -----
    Let n be the number of calibration objects, f(x) the prediction for an object x, and s(x) the predicted standard
    deviation or, for "absolute", 1. With "split", the interval of x is f(x) ± q s(x), where q is the ceil((n + 1)
    coverage)-th smallest of the n scores. With "cross", let r_i be the score of calibration object i, and f_i and s_i
    the functions f and s of the model that has not seen object i. The lower end is the floor((n + 1) (1 - coverage))-th
    smallest of all f_i(x) - r_i s_i(x), and the upper end is the ceil((n + 1) coverage)-th smallest of all f_i(x) + r_i
    s_i(x) [1]_. If coverage is below 0.5, the lower end may be above the upper end; then the interval is empty.

    Suppose that new objects come from the same source as the calibration objects, in random order. With "split", the
    interval of a new object then holds the true number with a probability of at least `coverage`. With "cross", this is
    approximately true in practice, but the guarantee is weaker: with many calibration objects, the probability is at
    least about 2 coverage - 1 (0.8 for a coverage of 0.9).

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
    _refused, _expected, _instead = is_classifier, "regressor", "ConformalClassifier"

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regressor to one part of n objects with targets `y`, and calibrate it with the other part.

        With ``method="cross"``, this is repeated so that each fold is used once for calibration; one more model, which
        `predict` uses, is fitted to all objects. A frozen estimator is not fitted again, but calibrated with all
        objects.
        """
        (X, n), rng = self._read(X), generator(self.random_state)
        targets = checked_numbers(y, n, "ConformalRegressor")
        self.conformity_score_ = self.conformity_score
        rows = self._fit_models(X, targets, np.zeros(n, dtype=np.int64), rng)
        scores = []
        for model, part in zip(self._judges, rows, strict=True):
            with numbered(part):
                center, scale = self._predicted(model, take(X, part))
            scores.append(np.abs(targets[part] - center) / scale)
        self._keep(rows, scores)
        return self

    def _predicted(self, model: Any, X: Any) -> tuple[Floats, Floats]:
        """Return the predictions of a model, and the numbers by which their residuals are divided, both (m,)."""
        n = n_objects(X)
        if self.conformity_score_ == "absolute":
            center = _one_column(model.predict(X), n, model).astype(np.float64)
            _check_finite(center, model)
            return center, np.ones(len(center))
        try:
            pair = model.predict(X, return_std=True)
        except (TypeError, AttributeError) as error:  # one that passes the pair on may fail at it as at an array
            raise TypeError(
                "conformity_score='normalized' needs predict(X, return_std=True), which fails for "
                f"{type(model).__name__} ({error}); take 'absolute'"
            ) from error
        center, scale = (_one_column(part, n, model).astype(np.float64) for part in pair)
        _check_finite(center, model)
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
            Required probability, above 0 and below 1, that an interval holds the true number. With ``method="cross"``,
            it is reached only approximately; see the notes of the class.

        Raises
        ------
        ValueError
            If `coverage` is not a number between 0 and 1, or there are too few calibration objects for it.
        """
        asked = checked_coverage(coverage)
        check_fitted(self, "calibration_scores_")
        n, scores = len(self.calibration_scores_), self.calibration_scores_
        k = _rank_of(asked, n)
        if k > n:
            raise _too_few(asked, n, "every interval would be infinite")
        if not self.fold_estimators_:
            center, scale = self._predicted(self.estimator_, X)
            width = scale * np.partition(scores, k - 1)[k - 1]
            return np.column_stack([center - width, center + width])
        with closing(track(self.fold_estimators_, "folds", len(self.fold_estimators_))) as bar:
            predicted = [self._predicted(model, X) for model in bar]
        centers, scales = (np.column_stack(parts) for parts in zip(*predicted, strict=True))
        ends = np.empty((len(centers), 2))
        step = rows_per_block(4 * 8 * n)
        for start in range(0, len(ends), step):
            part, of = slice(start, start + step), self.calibration_folds_
            widths = scales[part][:, of] * scores
            ends[part, 0] = np.partition(centers[part][:, of] - widths, n - k, axis=1)[:, n - k]
            ends[part, 1] = np.partition(centers[part][:, of] + widths, k - 1, axis=1)[:, k - 1]
        return ends


def _check_finite(center: Floats, model: Any) -> None:
    """Raise if a prediction of the model is NaN or infinite."""
    if not np.isfinite(center).all():
        i = int((~np.isfinite(center)).argmax())
        raise BadValue(i, f"gets {center[i]} from predict of {type(model).__name__}", "a finite number")


def _one_column(answers: Any, n: int, model: Any) -> npt.NDArray:
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


def _rank_of(coverage: Fraction, n: int) -> int:
    """Return k: a set or interval holds everything whose score is at most the k-th smallest of n calibration scores.

    If k is n + 1, it holds everything.
    """
    return math.ceil((n + 1) * coverage)


def _least_to_calibrate(coverage: Fraction) -> int:
    """Return the smallest number of calibration objects for which a set need not hold everything."""
    return math.ceil(coverage / (1 - coverage))


def _too_few(coverage: Fraction, n: int, then: str, of: str = "") -> BadParameter:
    most = math.floor(1000 * Fraction(n, n + 1)) / 1000
    less = f"ask for coverage={most:g} or less, or " if most > 0 else ""
    return BadParameter(
        "coverage",
        "",
        f"{float(coverage):g} needs {_least_to_calibrate(coverage)} calibration objects{of}, found {n}: {then}",
        f"{less}calibrate with more objects",
    )


def _drawn(strata: Index, share: float, rng: np.random.Generator) -> Index:
    """Return the sorted positions of a random `share` of each stratum: one object or more, but never all of them."""
    drawn = []
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        drawn.append(members[: min(len(members) - 1, max(1, round(share * len(members))))])
    return np.sort(np.concatenate(drawn))
