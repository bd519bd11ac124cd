"""Sets of labels that hold the true label with a chosen probability; `similia.learn.conformal` has the theory."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadValue, numbered, warn_user
from similia.core.estimators import all_at_once, offered_if
from similia.core.products import row_product
from similia.core.state import array, labels, one_of, state
from similia.core.text import short
from similia.core.validation import RandomState, generator
from similia.learn.conformal import Conformal, checked_coverage, least_to_calibrate, rank_of, too_few
from similia.learn.targets import check_two_classes, checked_labels, with_classes_of
from similia.objects import take
from similia.sources.dask import ScoresParts, lazily

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_HUGE = 1e38  # decision values are cut there; minus this is the value of a class that a model does not know
_TURNS = 64.0  # upper limit of the random factors of "aps"
_METHODS = "predict_proba", "decision_function"


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
        classifier instead, wrap it in scikit-learn's `FrozenEstimator`: `fit` then only calibrates, with all objects
        that it gets. The classifier must not have seen these objects.
    method : {"split", "cross"}, default="split"
        "split" sets a share of the objects aside, fits one model to the others, and calibrates it with this share.
        "cross" (cross-conformal prediction) does so with each fold in turn: it fits a model to the other folds, and
        calibrates it with this fold. It needs `cv` + 1 fits, and is better if there are few objects.
    conformity_score : {"auto", "lac", "margin", "aps"}, default="auto"
        Number that says how strange a label is for an object. "lac": one minus the probability of the label; it makes
        the smallest sets on average. "margin": the largest probability or decision value of the other labels, minus
        that of the label. "aps": the sum of the probabilities of all labels that are more probable, plus a random
        fraction of the probability of the label itself. It makes larger sets for objects that are hard to classify, and
        needs `predict_proba`. "auto": "lac" if the estimator has `predict_proba`, else "margin".
    by_class : bool, default=False
        Whether to calibrate each class with its own objects only (Mondrian). Then the sets hold the true label with the
        chosen probability within each class, also within rare ones. The sets are larger.
    calibration_size : float, default=0.25
        Share of the objects that ``method="split"`` draws at random to calibrate the model. With `by_class`, it draws
        this share of each class.
    cv : int or "loo", default=5
        Number of folds of ``method="cross"``; "loo" makes a fold of each object.
    random_state : int, numpy Generator or RandomState, optional
        Source of randomness for the split, the folds and the score "aps".

    Attributes
    ----------
    estimator_ : estimator
        The model that `predict` uses. It is fitted to the objects that are not set aside ("split"), or to all
        ("cross").
    fold_estimators_ : list of estimators
        The models of the folds; empty with ``method="split"``.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    conformity_score_ : {"lac", "margin", "aps"}
        The conformity score used.
    values_ : {"predict_proba", "decision_function", "either"}
        Method of the estimator whose results determine the scores. "either": the models of the folds have no method in
        common, so each uses the one that it has, and the score is "margin".
    calibration_scores_, calibration_classes_, calibration_folds_ : ndarray, shape (n_calibration,)
        For each calibration object: the score of its true label (float64), the position of this label in `classes_`
        (int64), and the position in `fold_estimators_` of the model that the object calibrates (int64; 0 for "split").
    turns_ : ndarray of float64, shape (n_classes,)
        Random factors of "aps". The random fraction for an object is the fractional part of the inner product of its
        probabilities and these factors.
    n_features_in_ : int
        Number of columns; exists only if the estimator has this attribute.

    Raises
    ------
    ValueError
        In `fit`, if there are fewer than two objects (one for a frozen estimator) or two classes, a parameter has a
        wrong value, or the estimator returns NaN or the wrong number of values.
    TypeError
        In `fit`, if the estimator has neither `predict_proba` nor `decision_function`.

    Notes
    -----
    If new objects come from the same source as the calibration objects, in random order, the sets of "split" hold the
    true label with the chosen probability (the coverage) or more. For "cross", this holds approximately in practice;
    the guaranteed probability is only about 2 coverage - 1 (0.8 for a coverage of 0.9), if there are many calibration
    objects. The coverage is an average over all objects or, with `by_class`, over those of each class. A set is empty
    if all labels are too strange, and holds several labels if the model cannot tell them apart. If a class is missing
    from the training objects of a model, such as that of a fold, the model gives it the probability 0.

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
        """Fit the classifier to some of the n objects and their labels `y`, and calibrate it with the others."""
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
        random = row_product(values, self.turns_[:, None]) % 1.0
        scores = np.empty_like(values)
        np.put_along_axis(scores, order, np.cumsum(ranked, axis=1) - (1.0 - random) * ranked, axis=1)
        return scores

    def _sizes(self) -> Index:
        """Return the number of calibration objects for each label: all, or those of its class; shape (n_classes,)."""
        check_is_fitted(self, "calibration_scores_")
        n_classes = len(self.classes_)
        if self.by_class:
            return np.bincount(self.calibration_classes_, minlength=n_classes)
        return np.full(n_classes, len(self.calibration_scores_))

    def _counts(self, X: Any) -> Index:
        """Return how many of these calibration objects are at least as strange as each label, (m, n_classes)."""
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

        The p-value of a label is (c + 1) / (n + 1), where c of the n calibration objects, with their true labels, are
        at least as strange as the object with this label. With `by_class`, only the calibration objects of this label's
        class count. If the label is true and the method is "split", the probability of p <= t is at most t, for each t.
        """
        sizes = self._sizes()
        return (self._counts(X) + 1.0) / (sizes + 1.0)

    @lazily
    def predict_set(self, X: Any, coverage: float = 0.9) -> npt.NDArray[np.bool_]:
        """Return whether each label, in the order of `classes_`, is in the set of each object, shape (m, n_classes).

        Parameters
        ----------
        X : collection of m objects
        coverage : float, default=0.9
            Probability, above 0 and below 1, that a set holds the true label.

        Raises
        ------
        ValueError
            If `coverage` is not a number between 0 and 1, or there are too few calibration objects for it. With
            `by_class`, this is an error only if all classes have too few. If only some classes do, the labels of these
            are in every set, and a warning names one of them.

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
        ranks = np.array([rank_of(asked, int(size)) for size in sizes])
        self._check_sizes(asked, sizes, ranks)
        return self._counts(X) > sizes - ranks

    def _check_sizes(self, asked: Fraction, sizes: Index, ranks: Index) -> None:
        """Raise if no label can be left out of a set, because of too few calibration objects; warn if some cannot."""
        few = np.flatnonzero(ranks > sizes)
        if len(few) == len(sizes):
            found = int(sizes.max())
            of_class = " of a class" if self.by_class else ""
            raise too_few(asked, found, f"every set would hold all {len(sizes)} labels", of_class)
        if len(few):
            label, size = short(self.classes_[few].tolist()[0]), int(sizes[few[0]])
            warn_user(
                f"{len(few)} of {len(sizes)} classes have fewer than {least_to_calibrate(asked)} calibration objects, "
                f"the number that coverage={float(asked):g} needs (class {label} has {size}); they are in every set"
            )

    @offered_if(_values_by("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the probabilities of `estimator_`, shape (m, n_classes); only if it has `predict_proba`."""
        check_is_fitted(self, "estimator_")
        return self._values(self.estimator_, X, "predict_proba")

    @offered_if(_values_by("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the decision values of `estimator_`, shape (m, n_classes), or (m,) for two classes."""
        check_is_fitted(self, "estimator_")
        values = self._values(self.estimator_, X, "decision_function")
        return values[:, 1] if len(self.classes_) == 2 else values
