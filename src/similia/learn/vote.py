"""Ensembles of models of the same objects: a majority vote of classifiers, or the mean of regressors.

If several models are about equally accurate, their vote is seldom worse than the best of them and often better, since
they err on different objects. The cost is the sum of the costs of the models.

Paper: Dietterich, "Ensemble methods in machine learning", Multiple Classifier Systems, 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_regressor
from sklearn.utils import Tags, get_tags

from similia.core.estimators import ListParams, all_at_once, check_fitted, take_columns
from similia.core.state import each, labels, state
from similia.core.text import short
from similia.core.validation import check_labels
from similia.learn.targets import checked_labels, with_classes_of
from similia.objects import n_objects
from similia.sources.dask import ScoresParts, lazily, refuse_lazy

_TIE = 1e-9  # fraction of a vote that `predict_proba` adds for the winner, so that it also leads after a tie


@state(estimators=each("predict", "v", 1), estimators_=each("predict", "v", 1))
class _Vote(ListParams):
    """Base class of the two ensembles: `fit` fits a copy of each estimator to all objects."""

    _list, _letter = "estimators", "v"
    _targets: Any = staticmethod(check_labels)  # how `fit` reads y

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.estimators = estimators

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Fit a copy of each estimator to n objects and their labels or numbers."""
        refuse_lazy(X, "fit trains each estimator in memory; give X.compute(), or a part of it")
        for i, estimator in enumerate(self._given()):
            if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
                raise TypeError(f"estimators[{i}] is {short(estimator)}, expected an estimator with fit and predict")
        self._fit(X, self._targets(y, n_objects(X)))
        return self

    def _fit(self, X: Any, y: npt.NDArray) -> None:
        self.estimators_ = [clone(estimator).fit(X, y) for estimator in self.estimators]
        take_columns(self, self.best_)

    def _given(self) -> Sequence[Any]:
        if not isinstance(self.estimators, list | tuple) or not self.estimators:
            raise ValueError(f"estimators must be a list of one or more estimators, got {short(self.estimators)}")
        return self.estimators

    @property
    def voters(self) -> list[Any]:
        """The models that vote: the fitted copies or, before `fit`, the given estimators."""
        return list(getattr(self, "estimators_", None) or self._given())

    @property
    def best_(self) -> Any:
        """The first of the fitted estimators."""
        check_fitted(self, "estimators_")
        return self.estimators_[0]

    def _answers(self, X: Any) -> list[npt.NDArray]:
        check_fitted(self, "estimators_")
        return [np.asarray(estimator.predict(X)) for estimator in self.estimators_]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimators, list | tuple) and self.estimators:
            tags.input_tags = get_tags(self.estimators[0]).input_tags
            tags.input_tags.sparse = all(get_tags(estimator).input_tags.sparse for estimator in self.estimators)
        return tags


@state(classes_=labels("c"))
class VoteClassifier(ScoresParts, ClassifierMixin, _Vote):
    """Predict the class that gets the most votes from several classifiers.

    Parameters
    ----------
    estimators : list of estimators
        Classifiers or pipelines that accept the same objects. Put the most accurate one first: if several classes have
        the most votes, the first estimator in the list that voted for one of these classes decides. In `set_params` and
        a grid search, estimator i is called ``v{i}`` and its parameters ``v{i}__name``.

    Attributes
    ----------
    estimators_ : list of estimators
        Fitted copies of `estimators`.
    best_ : estimator
        ``estimators_[0]``: the most accurate estimator, if `estimators` lists it first.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels: the labels in `y`, and the labels that any `sklearn.frozen.FrozenEstimator` in the list was
        trained on.
    n_features_in_ : int
        Number of columns of `X`; exists only if the first estimator has this attribute.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["ACACAC", "CACACA", "GGTTGG", "TTGGTT"], ["repeat", "repeat", "pairs", "pairs"]
    >>> kmers = sm.learn.KernelSVC(sm.kernels.Spectrum(k=2, normalize=True))
    >>> vote = sm.learn.VoteClassifier([kmers, sm.learn.KNeighborsClassifier(sm.distances.Levenshtein())])
    >>> vote.fit(X, y).predict(["ACACACAC", "GGTT"])
    array(['repeat', 'pairs'], dtype='<U6')
    """

    _targets = staticmethod(checked_labels)

    def _fit(self, X: Any, y: npt.NDArray) -> None:
        for i, voter in enumerate(self.estimators):
            if hasattr(voter, "__sklearn_tags__") and is_regressor(voter):
                raise TypeError(f"estimators[{i}] is {short(voter)}, expected a classifier; VoteRegressor takes it")
        super()._fit(X, y)
        known = [with_classes_of(voter, y) for voter in self.estimators_ if hasattr(voter, "classes_")]
        self.classes_ = np.unique(np.concatenate([y, *known]))

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label with the most votes, shape (m,)."""
        return plurality(self._answers(X), self.classes_)

    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the fraction of votes for each class, shape (m, n_classes).

        The predicted class gets 1e-9 extra votes, so that it has the largest fraction even after a tie.
        """
        answers = self._answers(X)
        votes, winner = _count(answers, self.classes_)
        votes[np.arange(len(votes)), winner] += _TIE
        return votes / (len(answers) + _TIE)


class VoteRegressor(ScoresParts, RegressorMixin, _Vote):
    """Predict the mean of the predictions of several regressors.

    Parameters
    ----------
    estimators : list of estimators
        Regressors or pipelines that accept the same objects.

    Attributes
    ----------
    estimators_, best_, n_features_in_ : list of estimators, estimator, int
        As for `VoteClassifier`.

    Examples
    --------
    >>> import similia as sm
    >>> neighbours = [sm.learn.KNeighborsRegressor(sm.distances.Levenshtein(), n) for n in (1, 2)]
    >>> sm.learn.VoteRegressor(neighbours).fit(["AC", "ACAC", "GGGGGG"], [1.0, 2.0, 6.0]).predict(["A"])
    array([1.25])
    """

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the mean of the predictions, shape (m,)."""
        return np.mean(self._answers(X), axis=0)


def plurality(answers: Sequence[npt.NDArray], classes: npt.NDArray) -> npt.NDArray:
    """Return the class with the most votes for each object; of tied classes, the one with the first voter."""
    return classes[_count(answers, classes)[1]]


def _count(
    answers: Sequence[npt.NDArray], classes: npt.NDArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the votes for each class, shape (m, n_classes), and the position of the class that wins, shape (m,)."""
    codes = [np.searchsorted(classes, answer) for answer in answers]
    votes = np.zeros((len(codes[0]), len(classes)))
    rows = np.arange(len(votes))
    for predicted in codes:
        votes[rows, predicted] += 1
    most, winner = votes.max(axis=1, initial=0), codes[-1].copy()
    for predicted in reversed(codes):  # the first voter comes last, so it decides ties
        winner = np.where(votes[rows, predicted] == most, predicted, winner)
    return votes, winner
