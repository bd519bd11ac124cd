"""Slow, obvious twins of the cross-validation that `similia.learn.heat_svc` does on one Gram matrix."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import SVC


class GramSVC(ClassifierMixin, BaseEstimator):
    """SVC whose samples are numbers of rows in the Gram matrices of a dict {parameter: matrix}."""

    def __init__(self, grams, parameter=None, C=1.0, class_weight=None):
        self.grams, self.parameter, self.C, self.class_weight = grams, parameter, C, class_weight

    def fit(self, rows, y):
        self.rows_ = rows[:, 0]
        block = self.grams[self.parameter][np.ix_(self.rows_, self.rows_)]
        self.svc_ = SVC(kernel="precomputed", C=self.C, class_weight=self.class_weight, break_ties=True).fit(block, y)
        self.classes_ = self.svc_.classes_
        return self

    def predict(self, rows):
        return self.svc_.predict(self.grams[self.parameter][np.ix_(rows[:, 0], self.rows_)])


def search(gram_of, parameters, Cs, folds, class_weight=None):
    """A grid search whose candidates are in the order in which equal ones are chosen."""
    model = GramSVC({p: gram_of(p).copy() for p in parameters}, class_weight=class_weight)
    grid = [{"C": [C], "parameter": [p]} for C in Cs for p in parameters]
    return GridSearchCV(model, grid, cv=PredefinedSplit(folds))


def precomputed_scores(gram_of, parameters, Cs, y, folds, class_weight=None):
    rows = np.arange(len(y))[:, None]
    results = search(gram_of, parameters, Cs, folds, class_weight).fit(rows, y).cv_results_
    n_folds = max(folds) + 1
    scores = np.array([results[f"split{i}_test_score"] for i in range(n_folds)])
    return scores.reshape(n_folds, len(Cs), len(parameters)).transpose(2, 1, 0)


def nested_scores(gram_of, parameters, Cs, y, folds, class_weight=None):
    """For each outer fold, a grid search over the others: accuracies, chosen parameters, chosen Cs, predictions."""
    rows = np.arange(len(y))[:, None]
    accuracies, chosen, predictions = [], [], np.empty_like(y)
    for i in range(max(folds) + 1):
        train, test = folds != i, folds == i
        model = clone(search(gram_of, parameters, Cs, folds[train], class_weight)).fit(rows[train], y[train])
        means = np.round(model.cv_results_["mean_test_score"], 12)  # sums in another order are ties
        best = model.cv_results_["params"][int(np.argmax(means))]
        final = clone(model.estimator).set_params(**best).fit(rows[train], y[train])
        predictions[test] = final.predict(rows[test])
        accuracies.append(np.mean(predictions[test] == y[test]))
        chosen.append((best["parameter"], best["C"]))
    return accuracies, [p for p, _ in chosen], [C for _, C in chosen], predictions
