"""Intervals that hold the true number with a chosen probability; `similia.learn.conformal` has the theory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from similia.core.config import rows_per_block
from similia.core.errors import BadValue, numbered
from similia.core.estimators import all_at_once
from similia.core.state import one_of, state
from similia.core.validation import check_labels, generator
from similia.learn.conformal import Conformal, checked_coverage, one_column, rank_of, too_few
from similia.learn.targets import checked_targets
from similia.objects import n_objects, take
from similia.sources.dask import ScoresParts, lazily

Floats = npt.NDArray[np.float64]


@state(conformity_score_=one_of("absolute", "normalized"))
class ConformalRegressor(ScoresParts, RegressorMixin, Conformal):
    r"""Predict intervals that hold the true number with a chosen probability, from the outputs of any regressor.

    Parameters
    ----------
    estimator : regressor or pipeline
        A regressor; `fit` fits copies of it. To calibrate a fitted regressor instead, wrap it in scikit-learn's
        `FrozenEstimator`: `fit` then only calibrates, with all objects that it gets. The regressor must not have seen
        these objects.
    method : {"split", "cross"}, default="split"
        "split" sets a share of the objects aside, fits one model to the others, and calibrates it with this share.
        "cross" does so with each fold in turn: it fits a model to the other folds, and calibrates it with this fold. In
        the literature, "cross" is called CV+ or, with ``cv="loo"``, the jackknife+. It needs `cv` + 1 fits, and is
        better if there are few objects.
    conformity_score : {"absolute", "normalized"}, default="absolute"
        "absolute": the absolute difference between target and prediction; with "split", all intervals have the same
        width. "normalized": this difference divided by the standard deviation that the estimator returns from
        ``predict(X, return_std=True)``, as Gaussian processes do; intervals are wider where the model is less certain.
    calibration_size, cv, random_state : float, int or "loo", seed
        As for `ConformalClassifier`.

    Attributes
    ----------
    estimator_, fold_estimators_, n_features_in_ : estimator, list of estimators, int
        As for `ConformalClassifier`.
    conformity_score_ : {"absolute", "normalized"}
        The conformity score used.
    calibration_scores_, calibration_folds_ : ndarray, shape (n_calibration,)
        For each calibration object: the score of its target (float64), and the position in `fold_estimators_` of the
        model that the object calibrates (int64; 0 for "split").

    Raises
    ------
    ValueError
        In `fit`, if there are fewer than two objects (one for a frozen estimator), a target is not a finite number, a
        parameter has a wrong value, a prediction is NaN or infinite, or a standard deviation is not positive. Also if
        predictions are not one number for each object.
    TypeError
        In `fit`, if ``conformity_score="normalized"`` and the estimator's `predict` does not take `return_std`.

    Notes
    -----
    Let n be the number of calibration objects, f(x) the prediction for an object x, and s(x) its standard deviation or,
    for "absolute", 1. With "split", the interval of x is f(x) ± q s(x), where q is the ceil((n + 1) coverage)-th
    smallest of the n scores. With "cross", let r_i be the score of calibration object i, and f_i and s_i the functions
    f and s of the model that has not seen object i. The lower end is the floor((n + 1) (1 - coverage))-th smallest of
    all f_i(x) - r_i s_i(x), and the upper end is the ceil((n + 1) coverage)-th smallest of all f_i(x) + r_i s_i(x)
    [1]_. If coverage is below 0.5, the lower end may be above the upper end; then the interval is empty.

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
        """Fit the regressor to n objects and their numbers `y`, and calibrate it with objects that it has not seen."""
        (X, n), rng = self._read(X), generator(self.random_state)
        targets = checked_targets(None if y is None else check_labels(y, n), n, "ConformalRegressor")
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
            center = one_column(model.predict(X), n, model).astype(np.float64)
            _check_finite(center, model)
            return center, np.ones(len(center))
        try:
            pair = model.predict(X, return_std=True)
        except TypeError as error:
            raise TypeError(
                "conformity_score='normalized' needs predict(X, return_std=True), which fails for "
                f"{type(model).__name__} ({error}); take 'absolute'"
            ) from error
        center, scale = (one_column(part, n, model).astype(np.float64) for part in pair)
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
            Probability, above 0 and below 1, that an interval holds the true number.

        Raises
        ------
        ValueError
            If `coverage` is not a number between 0 and 1, or there are too few calibration objects for it.
        """
        asked = checked_coverage(coverage)
        check_is_fitted(self, "calibration_scores_")
        n, scores = len(self.calibration_scores_), self.calibration_scores_
        k = rank_of(asked, n)
        if k > n:
            raise too_few(asked, n, "every interval would be infinite")
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


def _check_finite(center: Floats, model: Any) -> None:
    """Raise if a prediction of the model is NaN or infinite."""
    if not np.isfinite(center).all():
        i = int((~np.isfinite(center)).argmax())
        raise BadValue(i, f"gets {center[i]} from predict of {type(model).__name__}", "a finite number")
