"""Slow, obvious twins of what `similia.select` caches and shares: whole pipelines on objects, fold by fold."""

import warnings

import numpy as np
from sklearn.base import clone

from similia.embeddings import Nystroem
from similia.objects import take


def fit_and_score(pipeline, X, y, train, test, score):
    """Fit a whole pipeline to training objects and score it on others."""
    model = clone(pipeline)
    for _, step in model.steps:
        if isinstance(step, Nystroem):
            step.n_components = min(step.n_components, len(train))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return score(model.fit(take(X, train), y[train]), take(X, test), y[test])


def cross_validated(pipeline, X, y, fold, score, without=None):
    """Return the score on each fold of a fit to the others; `without` is a fold that is not there at all."""
    folds = [i for i in np.unique(fold) if i != without]
    return [
        fit_and_score(pipeline, X, y, np.flatnonzero((fold != i) & (fold != without)), np.flatnonzero(fold == i), score)
        for i in folds
    ]


def nested(pipelines, X, y, fold, score):
    """Return, for each fold, the score of the pipeline that is best on the others, fitted to the others."""
    scores = []
    for i in np.unique(fold):
        means = [np.mean(cross_validated(p, X, y, fold, score, without=i)) for p in pipelines]
        best = pipelines[int(np.argmax(means))]
        scores.append(fit_and_score(best, X, y, np.flatnonzero(fold != i), np.flatnonzero(fold == i), score))
    return scores
