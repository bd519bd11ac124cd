"""Plain and nested cross-validation of a kernel parameter and C: support-vector machines on blocks of a Gram matrix.

Nested cross-validation chooses (parameter, C) for each outer fold i without looking at the fold. For each other fold j,
a machine trained without folds i and j is tested on fold j, and the score of a candidate is the mean of these
accuracies. The same machine also serves outer fold j, so k folds take k (k - 1) / 2 fits per candidate, each on (k - 2)
/ k of the rows, and k final fits: half as many as a grid search inside cross-validation. Each Gram matrix is computed
once to score the candidates.

Cost: one Gram matrix per parameter; for each fit, libsvm on a block of it, O(rows^2) or more, in threads (libsvm
releases the GIL). If no coefficient of a machine reaches its bound C, the machine is also the solution for all larger
C, so it is not fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

from similia.core.config import check_memory, settings
from similia.core.products import row_product
from similia.core.state import pairs_of
from similia.core.threads import in_threads, n_threads, one_blas_thread
from similia.core.validation import check_labels, check_positive
from similia.objects.sequences import offsets_of
from similia.sources.dask import lazily

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
GramOf = Callable[[Any], Floats]
Task = tuple[Rows, list[Rows]]  # training rows; lists of validation rows, each scored separately


class NestedScores(NamedTuple):
    """Results of nested cross-validation: accuracy and chosen values per outer fold, and predicted label per row."""

    accuracies: Floats  # (k,): on the rows of the fold
    parameters: list[Any]  # length k: the kernel parameter chosen on the other folds
    Cs: Floats  # (k,): the C chosen on the other folds
    predictions: npt.NDArray  # (n,): for each row, the label predicted by the machine trained without the row's fold


class Machine(NamedTuple):
    """One-vs-one support-vector machines: entry p of `weights` and of `intercepts` belongs to the p-th pair of classes.

    Pairs are in the order (0, 1), (0, 2), ..., (1, 2), ...; a positive decision favours the first class of its pair.
    """

    support: Rows  # rows of the training block
    weights: Floats  # (n_pairs, n_support)
    intercepts: Floats
    classes: Rows  # class numbers that occur in the training rows
    unbounded: bool  # whether no coefficient reaches its bound C

    def over(self, n: int) -> Machine:
        """Return the same machine with weights for all n training rows, 0 for those that are not support vectors."""
        weights = np.zeros((len(self.weights), n))
        weights[:, self.support] = self.weights
        return self._replace(support=np.arange(n), weights=weights)


class PairMachines:
    """Mixin for support-vector classifiers that have one machine for each pair of classes."""

    classes_: npt.NDArray
    support_: Rows
    pair_coef_: Floats
    pair_intercept_: Floats

    def _keep(self, machine: Machine) -> None:
        self.support_, self.pair_coef_, self.pair_intercept_ = machine.support, machine.weights, machine.intercepts

    def _confidences(self, K: Floats) -> Floats:
        """Return the decision values of m objects, from the kernel values `K` between them and the support vectors."""
        if len(self.classes_) == 2:
            return -(row_product(K, self.pair_coef_.T)[:, 0] + self.pair_intercept_[0])
        return decisions(K, self.pair_coef_, self.pair_intercept_, len(self.classes_))

    @property
    def _width(self) -> int:
        """Number of values per object that `_confidences` holds in memory."""
        return len(self.pair_intercept_) + 2 * len(self.classes_)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label predicted for each object or row, shape (m,)."""
        confidence = self.decision_function(X)  # type: ignore[attr-defined]
        second = confidence > 0 if confidence.ndim == 1 else confidence.argmax(axis=1)
        return self.classes_[np.asarray(second, dtype=np.int64)]


def check_pairs_fit(n_classes: int, n: int) -> None:
    """Raise if one machine for each pair of classes, with `n` weights each, does not fit into ``max_memory``."""
    check_memory(
        f"y has {n_classes} classes, expected fewer: {pairs_of(n_classes)} machines, one for each pair of classes, "
        f"with weights of {n} objects take",
        8 * pairs_of(n_classes) * n,
        "take make_pipeline(similia.Nystroem(kernel), LinearSVC()), which has one machine for each class, or "
        "KNeighborsClassifier",
    )


def fit_machine(K: Floats, labels: Rows, C: float, class_weight: Any = None) -> Machine:
    """Fit libsvm to the Gram matrix `K` of the training rows and their class numbers `labels`.

    `class_weight` may name classes that `labels` lack.
    """
    if isinstance(class_weight, dict):
        class_weight = {number: class_weight[number] for number in np.unique(labels).tolist() if number in class_weight}
    # libsvm ignores the seed here; without one, scikit-learn would draw it from the global random state
    svc = SVC(kernel="precomputed", C=C, class_weight=class_weight, random_state=0).fit(K, labels)
    bounds = np.repeat(C * svc.class_weight_, svc.n_support_)
    unbounded = bool((np.abs(svc.dual_coef_) < bounds).all())
    return Machine(svc.support_.astype(np.int64), *pair_weights(svc), svc.classes_, unbounded)


def pair_weights(svc: Any) -> tuple[Floats, Floats]:
    """Return `Machine.weights` and `Machine.intercepts` of a fitted classifier of scikit-learn that runs libsvm."""
    dual = svc.dual_coef_.toarray() if hasattr(svc.dual_coef_, "toarray") else svc.dual_coef_
    if len(svc.classes_) == 2:  # here scikit-learn's positive sign means the second class
        return -dual, -svc.intercept_
    first = offsets_of(svc.n_support_)
    weights = np.zeros((len(svc.intercept_), dual.shape[1]))
    for p, (i, j) in enumerate(combinations(range(len(svc.classes_)), 2)):
        of_i, of_j = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        weights[p, of_i], weights[p, of_j] = dual[j - 1, of_i], dual[i, of_j]
    return weights, svc.intercept_


def decisions(K: Floats, weights: Floats, intercepts: Floats, n_classes: int) -> Floats:
    """Return a decision value for each class, (m, n_classes), from the kernel values `K`, (m, n_support).

    It is the number of pairs of classes that the class wins, plus a term between -1/3 and 1/3 that grows with the sum
    of the margins of the class.
    """
    margins = row_product(K, weights.T) + intercepts
    votes, sums = np.zeros((len(K), n_classes)), np.zeros((len(K), n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        won = margins[:, p] >= 0
        votes[:, i] += won
        votes[:, j] += ~won
        sums[:, i] += margins[:, p]
        sums[:, j] -= margins[:, p]
    return votes + sums / (3 * (np.abs(sums) + 1))


def _predict(K: Floats, machine: Machine) -> Rows:
    confidences = decisions(K, machine.weights, machine.intercepts, len(machine.classes))
    return machine.classes[confidences.argmax(axis=1)]


def fold_numbers(splits: Any, n: int) -> Rows:
    """Return for each row the number of the split that holds it out; raise if a row is held out twice or never."""
    folds = np.full(n, -1)
    for number, (_, held_out) in enumerate(splits):
        if (folds[held_out] >= 0).any():
            raise ValueError(f"cv holds row {held_out[folds[held_out] >= 0][0]} out twice, expected once for all rows")
        folds[held_out] = number
    if (folds < 0).any():
        raise ValueError(f"cv never holds row {np.argmax(folds < 0)} out, expected once for all rows")
    return folds


def precomputed_scores(
    gram_of: GramOf, parameters: Sequence[Any], Cs: Sequence[float], y: Any, folds: Any, class_weight: Any = None
) -> Floats:
    """Return cross-validated accuracies of support-vector machines for each kernel parameter and C.

    Parameters
    ----------
    gram_of : callable
        ``gram_of(parameter)`` returns the Gram matrix, float64 of shape (n, n). It is called once per parameter, in
        order, and may reuse one array for all its results.
    parameters : sequence of any objects
        Values to pass to `gram_of`.
    Cs : sequence of float
        Values of C to try, above 0.
    y : array-like of n labels
    folds : array-like of int, shape (n,), or list of (training rows, validation rows)
        For each row, the number (from 0) of its validation fold; or a list of arbitrary splits.
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.

    Returns
    -------
    ndarray of float64, shape (n_parameters, n_Cs, n_folds)
        Accuracy on each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.learn import precomputed_scores
    >>> x, y = np.array([0.0, 2.0, 0.1, 2.1]), ["a", "b", "a", "b"]
    >>> precomputed_scores(lambda gamma: np.exp(-gamma * (x[:, None] - x) ** 2), [0.1, 1.0], [1.0], y, [0, 0, 1, 1])
    array([[[1., 1.]],
    <BLANKLINE>
           [[1., 1.]]])
    """
    codes, _, class_weight = coded(y, class_weight)
    splits = _splits(folds, len(codes))
    Cs = _checked(Cs)
    tasks = [(np.asarray(train), [np.asarray(held_out)]) for train, held_out in splits]
    return _scores(gram_of, parameters, Cs, codes, tasks, class_weight)[..., 0]


def nested_scores(
    gram_of: GramOf, parameters: Sequence[Any], Cs: Sequence[float], y: Any, folds: Any, class_weight: Any = None
) -> NestedScores:
    """Return nested cross-validated accuracies of support-vector machines; inner folds tune the kernel parameter and C.

    Parameters
    ----------
    gram_of, parameters, Cs, y : callable, sequence, sequence of float, array-like
        As in `precomputed_scores`. `gram_of` is called once for each parameter, and then a second time for each
        parameter that at least one outer fold chooses.
    folds : array-like of int, shape (n,)
        For each row, the number (from 0) of its validation fold; at least 3 folds.
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.

    Returns
    -------
    NestedScores
        A named tuple: `accuracies`, `parameters` and `Cs` hold the accuracy and the chosen values of each outer fold;
        `predictions` holds, for each row, the label predicted by the machine that was trained without the row's fold.

    Notes
    -----
    This is a grid search inside cross-validation. For outer fold i, the other folds serve as inner folds: a machine
    trained without folds i and j is tested on fold j, for each j. The (parameter, C) with the highest mean accuracy is
    chosen. Ties go to the first C, then to the first parameter. A machine with these values, trained without fold i, is
    tested on fold i.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.learn import nested_scores
    >>> x, y = np.array([0.0, 2.0, 0.1, 2.1, 0.2, 2.2]), ["a", "b", "a", "b", "a", "b"]
    >>> def rbf(gamma):
    ...     return np.exp(-gamma * (x[:, None] - x) ** 2)
    >>> nested_scores(rbf, [0.1, 1.0], [1.0, 10.0], y, [0, 0, 1, 1, 2, 2]).accuracies
    array([1., 1., 1.])
    """
    codes, classes, class_weight = coded(y, class_weight)
    folds = _fold_array(folds, len(codes))
    n_folds = int(folds.max()) + 1
    if n_folds < 3:
        raise ValueError(f"nested cross-validation needs at least 3 folds, got {n_folds}; give cv=3 or more")
    Cs = _checked(Cs)
    rows = [np.flatnonzero(folds == i) for i in range(n_folds)]
    pairs = list(combinations(range(n_folds), 2))
    tasks = [(np.flatnonzero((folds != i) & (folds != j)), [rows[i], rows[j]]) for i, j in pairs]
    scores = _scores(gram_of, parameters, Cs, codes, tasks, class_weight)
    inner = np.zeros((n_folds, len(parameters), len(Cs)))
    for p, (i, j) in enumerate(pairs):
        inner[j] += scores[:, :, p, 0]
        inner[i] += scores[:, :, p, 1]
    chosen = [best_of(mean / (n_folds - 1)) for mean in inner]
    predictions = np.empty(len(codes), dtype=np.int64)
    for a in sorted({a for a, _ in chosen}):
        K = gram_of(parameters[a])
        for i in (i for i in range(n_folds) if chosen[i][0] == a):
            train = np.flatnonzero(folds != i)
            machine = fit_machine(K[np.ix_(train, train)], codes[train], Cs[chosen[i][1]], class_weight)
            predictions[rows[i]] = _predict(K[np.ix_(rows[i], train[machine.support])], machine)
        del K  # free it before the next one is computed
    return NestedScores(
        np.array([np.mean(predictions[held_out] == codes[held_out]) for held_out in rows]),
        [parameters[a] for a, _ in chosen],
        np.array([Cs[c] for _, c in chosen]),
        classes[predictions],
    )


def best_of(means: Floats) -> tuple[int, int]:
    """Return the (row, column) of the largest entry of `means`; ties go to the first column, then to the first row.

    Rows are kernel parameters, columns are values of C.
    """
    best = means >= means.max() - 1e-12  # sums of the same numbers in another order differ by rounding
    c = int(best.any(axis=0).argmax())
    return int(best[:, c].argmax()), c


def _scores(
    gram_of: GramOf, parameters: Sequence[Any], Cs: list[float], codes: Rows, tasks: list[Task], class_weight: Any
) -> Floats:
    """Return accuracies (n_parameters, n_Cs, n_tasks, n_lists); a task is (training rows, lists of validation rows)."""
    for train, _ in tasks:
        if len(train) == 0 or (codes[train] == codes[train[0]]).all():
            raise ValueError(
                "the training rows of a fold are all of one class; take stratified or more folds, more objects, or "
                "numbers in place of 'tune'"
            )
    scores = np.empty((len(parameters), len(Cs), len(tasks), len(tasks[0][1])))
    order = np.argsort(Cs, kind="stable")

    def run(a: int, K: Floats, t: int) -> None:
        train, held_out = tasks[t]
        block = K[np.ix_(train, train)]
        blocks = [K[np.ix_(part, train)] for part in held_out]
        machine = None
        for c in order:
            if machine is None or not machine.unbounded:
                machine = fit_machine(block, codes[train], Cs[c], class_weight)
                machine = machine.over(len(train))  # a product with zeros is faster than selecting columns
                right = [np.mean(_predict(K, machine) == codes[part]) for K, part in zip(blocks, held_out, strict=True)]
            scores[a, c, t] = right

    n_bytes = 8 * max(len(train) for train, _ in tasks) ** 2
    workers = max(1, min(n_threads(), len(tasks), settings().max_memory // n_bytes - 2))
    for a, parameter in enumerate(parameters):
        K = gram_of(parameter)
        with one_blas_thread():
            in_threads(partial(run, a, K), range(len(tasks)), workers)
        del K  # free it before the next one is computed
    return scores


def coded(y: Any, class_weight: Any) -> tuple[Rows, npt.NDArray, Any]:
    """Return (class number of each label, sorted classes, `class_weight` with class numbers in place of labels)."""
    classes, codes = np.unique(check_labels(y, len(y)), return_inverse=True)
    if not isinstance(class_weight, dict):
        return codes, classes, class_weight
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if label not in numbers]
    if unknown:
        raise ValueError(f"class_weight holds {unknown[0]!r}, expected labels of y, such as {classes.tolist()[0]!r}")
    return codes, classes, {numbers[label]: weight for label, weight in class_weight.items()}


def _checked(Cs: Sequence[float]) -> list[float]:
    if len(Cs) == 0:
        raise ValueError("there is no C to try; give at least one, above 0")
    return [check_positive(C, "C") for C in Cs]


def _fold_array(folds: Any, n: int) -> Rows:
    folds = np.asarray(folds)
    if folds.shape != (n,) or folds.dtype.kind not in "iu":
        raise ValueError(
            f"folds must be {n} integers, one for each label, got shape {folds.shape} of dtype {folds.dtype}"
        )
    missing = np.setdiff1d(np.arange(max(int(folds.max()), 1) + 1), folds)
    if folds.min() < 0 or len(missing):
        raise ValueError(f"folds must be numbered 0, 1, ... without a gap, got {np.unique(folds).tolist()}")
    return folds.astype(np.int64)


def _splits(folds: Any, n: int) -> list[tuple[Rows, Rows]]:
    if isinstance(folds, list) and folds and isinstance(folds[0], tuple):
        return folds
    folds = _fold_array(folds, n)
    return [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in range(int(folds.max()) + 1)]
