r"""Support-vector machines and ridge regression on objects, with any kernel.

.. math:: f(x) = \sum_i \alpha_i\, k(x_i, x) + b

`KernelSVC` and `KernelSVR` run libsvm on the n x n Gram matrix of the training objects, and keep only the support
vectors, as objects. `KernelRidge` minimises :math:`\|y - K\alpha\|^2 + \lambda\, \alpha^\top K \alpha`, without b, and
keeps all objects. With ``alpha="auto"`` it takes the lambda of least leave-one-out error: object i, predicted from all
others, has the error alpha_i / G_ii, where G = (K + lambda I)^-1 (Rifkin & Lippert, "Notes on regularized least
squares", MIT-CSAIL-TR-2007-025, 2007, Section 4). So one eigendecomposition of K gives the errors for all lambda.

Cost: n^2 kernel values; then O(n^2) to O(n^3) for libsvm, or O(n^3) for a Cholesky factorisation. A prediction takes
one kernel value for each training object that the model keeps. Memory: 8 n^2 bytes in `fit`, which raises an error if
they exceed ``max_memory``.

The functions on Gram matrices, which `HeatSVC` uses, too, cross-validate a kernel parameter and C: they fit machines
to blocks of one matrix. Nested cross-validation chooses (parameter, C) for each outer fold i without looking at the
fold. For each other fold j, a machine trained without folds i and j is tested on fold j, and the score of a candidate
is the mean of these accuracies. The same machine also serves outer fold j, so k folds take k (k - 1) / 2 fits per
candidate, each on (k - 2) / k of the rows, and k final fits: half as many as a grid search inside cross-validation.
Each Gram matrix is computed once to score the candidates.

Cost: one Gram matrix per parameter; for each fit, libsvm on a block of it, O(rows^2) or more, in threads (libsvm
releases the GIL). If no coefficient of a machine reaches its bound C, the machine is also the solution for all larger
C, so it is not fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.special import expit
from sklearn import kernel_ridge
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR

from similia.core.config import check_memory, in_threads, n_threads, one_blas_thread, row_blocks, settings
from similia.core.estimators import all_at_once, check_fitted, detached, offered_if
from similia.core.products import row_product
from similia.core.state import Sizes, array, labels, objects, optional, pairs_of, reads, state
from similia.core.validation import check_labels, check_positive
from similia.learn.targets import check_class_weight, checked_labels, checked_numbers, checked_targets
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one, offsets_of, resolve_indices
from similia.similarity import (
    ComparesObjects,
    check_direction,
    check_kernel,
    decided,
    kernel_values,
    read_objects,
    warn_of_strangers,
)
from similia.sources.dask import ScoresParts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
GramOf = Callable[[Any], Floats]
Task = tuple[Rows, list[Rows]]  # training rows; lists of validation rows, each scored separately
_ALPHAS = np.logspace(2, -4, 25)  # in units of the mean of the diagonal of the Gram matrix
_FOLDS = 5  # maximum number of folds for the calibration of probabilities


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
    for number, held_out in enumerate(resolve_indices(part, n) for _, part in splits):
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
        For each row of the Gram matrix, the number (from 0) of its validation fold; or a list of arbitrary splits,
        each as positions or as masks.
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
    tasks = [(train, [held_out]) for train, held_out in splits]
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
        For each row of the Gram matrix, the number (from 0) of its validation fold; at least 3 folds.
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
    trained without folds i and j is tested on fold j, for each j. The pair (parameter, C) with the highest mean
    accuracy is chosen. If several pairs tie, the pair with the earliest C in `Cs` is chosen and, for this C, the
    earliest parameter. A machine with the chosen pair, trained without fold i, is tested on fold i.

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
    check_class_weight(class_weight, classes)
    if not isinstance(class_weight, dict):
        return codes, classes, class_weight
    numbers = {label: number for number, label in enumerate(classes.tolist())}
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
        return [(resolve_indices(train, n), resolve_indices(held_out, n)) for train, held_out in folds]
    folds = _fold_array(folds, n)
    return [(np.flatnonzero(folds != i), np.flatnonzero(folds == i)) for i in range(int(folds.max()) + 1)]


@state(kernel="kernel", kernel_="kernel")
class KernelMachine(ComparesObjects, BaseEstimator):
    """Base of learners that have a parameter `kernel` and are fitted to one Gram matrix."""

    kernel: Any
    kernel_: Any
    _linear_model = "LinearSVC()"  # proposed, after Nystroem, if the Gram matrix does not fit into memory

    def _read(self, X: Any) -> tuple[Any, Any, int]:
        """Return (kernel with all parameters set, objects in its layout, n); raise if the Gram matrix is too large."""
        refuse_lazy(X, "fit compares all pairs of objects in memory; take Nystroem(kernel) and a linear model")
        check_kernel(self.kernel)
        kernel = detached(decided(self.kernel, X))
        objects = read_objects(self, kernel, X, reset=True)
        n = at_least_one(objects)
        instead = f"take make_pipeline(similia.Nystroem(kernel), {self._linear_model})"
        check_memory(f"the Gram matrix of {n} objects takes", 8 * n**2, instead)
        return kernel, objects, n

    def _gram(self, kernel: Any, objects: Any, n: int) -> Floats:
        check_direction(kernel, True, objects, "kernel")
        K = kernel_values(kernel, objects, None, range(n), range(n), "X[{}] and X[{}]")
        return K.astype(np.float64, copy=False)

    def _over_blocks(self, X: Any, kept: Any, function: Callable[[npt.NDArray], Floats], width: int = 1) -> Floats:
        """Apply `function`, which allocates `width` numbers a row, to blocks of kernel values of `X` with `kept`."""
        objects = read_objects(self, self.kernel_, X, reset=False)
        m, s = at_least_one(objects), n_objects(kept)
        alone: list[int] = []
        parts = []
        for rows in row_blocks(m, 8 * (3 * s + width)):
            K = np.zeros((len(rows), 0))
            if s > 0:
                part = objects if len(rows) == m else take(objects, rows)
                K = kernel_values(self.kernel_, part, kept, rows, range(s), "X[{}] and object {}")
                if hasattr(self.kernel_, "features"):
                    alone.extend(rows[~K.any(axis=1)].tolist())
            parts.append(function(K))
        warn_of_strangers(alone, m, "have similarity 0 to all training objects that the model keeps")
        return np.concatenate(parts)


def _check_probability(machine: KernelSVC) -> None:
    if not machine.probability:
        raise AttributeError("predict_proba needs KernelSVC(..., probability=True); or call decision_function")


def _svc_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    fits = sizes["c"] > 1 and sizes["p"] == pairs_of(sizes["c"])
    if state.get("calibration_") is not None:
        fits = fits and sizes["k"] == (1 if sizes["c"] == 2 else sizes["c"])
    return fits and (sizes["s"] == 0 or reads(state["kernel_"], state["support_objects_"]))


@state(
    fits=_svc_fits, classes_=labels("c"), support_=array("i8", "s"), support_objects_=objects("s"),
    pair_coef_=array("f8", "p", "s"), pair_intercept_=array("f8", "p"), calibration_=optional(array("f8", "k", 2)),
    probability="flag",
)  # fmt: skip
class KernelSVC(PairMachines, ScoresParts, ClassifierMixin, KernelMachine):
    r"""Support-vector classifier of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        ``k(X, Y=None) -> (n, m)``: a kernel of `similia.kernels` or `similia.adapters`, a combination of these, or
        `similia.pairwise` of a function. ``similia.kernels.DistanceRBF(distance)`` makes a kernel from a distance.
    C : float, default=1.0
        Inverse of the regularisation strength, above 0.
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.
    probability : bool, default=False
        Whether to enable `predict_proba`. If True, `fit` also trains up to five machines on parts of the Gram matrix,
        and one more machine on the whole matrix. This is the method of ``CalibratedClassifierCV(SVC(),
        ensemble=False)``, which scikit-learn recommends.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    kernel_ : callable
        Copy of `kernel` made by `fit`. A setting that depends on data, such as ``gamma="median"``, is replaced by the
        number computed from the training objects.
    support_ : ndarray of int64, shape (n_support,)
        Positions of the support vectors in the training objects.
    support_objects_ : collection of n_support objects
        The support vectors, converted for the kernel, for example to a `similia.objects.StringBatch`.
    pair_coef_, pair_intercept_ : ndarray of float64, shapes (n_pairs, n_support) and (n_pairs,)
        Coefficients and intercepts of one support-vector machine for each pair of classes, in the order (0, 1), (0, 2),
        ..., (1, 2), ...; positive values favour the first class of a pair.
    calibration_ : ndarray of float64, shape (1, 2) or (n_classes, 2), or None
        With ``probability=True``, the coefficients (a, b) of the sigmoid 1 / (1 + exp(a f + b)) for each column f of
        `decision_function`; otherwise None.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, or if, with
        ``probability=True``, a class has only one object.

    Notes
    -----
    If the kernel is not positive semi-definite (such as `DistanceRBF` of DTW), training with libsvm may stop at a point
    that is not the optimum. `similia.Nystroem` with ``spectrum="clip"``, followed by a linear machine, avoids the
    problem.

    If kernel values grow with the size of the objects, set ``normalize=True`` in the kernel. Otherwise the best C
    depends on the size of the objects.

    `predict` returns the class with the largest value of `decision_function`, like ``SVC(break_ties=True)``. Near the
    border between two classes, a class other than the predicted one may have the largest probability.

    The Gram matrix must fit into ``similia.config(max_memory=...)``, by default 1 GiB, which is enough for 11,500
    objects. For more objects, use ``make_pipeline(Nystroem(kernel), LinearSVC())``.

    References
    ----------
    Cortes & Vapnik, "Support-vector networks", Machine Learning 20, 1995. Platt, "Probabilistic outputs for support
    vector machines", Advances in Large Margin Classifiers, 1999 (the sigmoids).

    Examples
    --------
    >>> from similia.kernels import Spectrum
    >>> from similia.learn.kernel_machines import KernelSVC
    >>> X, y = ["ACACAC", "CACACA", "GGTTGG", "TTGGTT"], ["repeat", "repeat", "pairs", "pairs"]
    >>> KernelSVC(Spectrum(k=2, normalize=True)).fit(X, y).predict(["ACACACAC", "GGTT"])
    array(['repeat', 'pairs'], dtype='<U6')
    """

    def __init__(self, kernel: Any, C: float = 1.0, class_weight: Any = None, probability: bool = False) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.probability = probability

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix of n objects and fit the classifier to their labels."""
        C = check_positive(self.C, "C")
        kernel, objects, n = self._read(X)
        codes, classes, class_weight = coded(checked_labels(y, n, two=True), self.class_weight)
        check_pairs_fit(len(classes), n)
        K = self._gram(kernel, objects, n)
        machine = fit_machine(K, codes, C, class_weight)
        calibration = _sigmoids(K, codes, classes, C, class_weight) if self.probability else None
        self.classes_, self.kernel_, self.calibration_ = classes, kernel, calibration
        self._keep(machine)
        self.support_objects_ = take(objects, machine.support)
        return self

    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return decision values, shape (m, n_classes); for two classes, (m,), positive for the second class."""
        check_fitted(self)
        return self._over_blocks(X, self.support_objects_, self._confidences, self._width)

    @offered_if(_check_probability)
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class, shape (m, n_classes); only with ``probability=True``."""
        check_fitted(self)
        if self.calibration_ is None:
            raise NotFittedError("this KernelSVC was fitted with probability=False; fit it again")
        decisions = self.decision_function(X).reshape(n_objects(X), -1)
        shares = expit(-(self.calibration_[:, 0] * decisions + self.calibration_[:, 1]))
        if len(self.classes_) == 2:
            return np.hstack([1.0 - shares, shares])
        sums = shares.sum(axis=1, keepdims=True)
        return np.divide(shares, sums, out=np.full_like(shares, 1 / shares.shape[1]), where=sums > 0)


def _sigmoids(K: Floats, codes: npt.NDArray, classes: npt.NDArray, C: float, class_weight: Any) -> Floats:
    """Return `calibration_` of `KernelSVC`: (a, b) of each sigmoid, fitted to out-of-fold decisions."""
    counts = np.bincount(codes)
    if counts.min() < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"class {rare!s} has one object, but probability=True needs two or more of each class; drop that class, or "
            "take probability=False"
        )
    svc = SVC(kernel="precomputed", C=C, class_weight=class_weight, random_state=0)  # None uses numpy's global state
    calibrated = CalibratedClassifierCV(svc, ensemble=False, cv=int(min(_FOLDS, counts.min()))).fit(K, codes)
    return np.array([[c.a_, c.b_] for c in calibrated.calibrated_classifiers_[0].calibrators], dtype=np.float64)


class _KernelRegressor(ScoresParts, RegressorMixin, KernelMachine):
    """Base of the regressors: predictions are weighted sums of kernel values."""

    dual_coef_: Floats
    _linear_model = "Ridge()"

    def _sums(self, X: Any, kept: Any) -> Floats:
        """Return, for each object of `X`, the sum of its kernel values with the objects `kept` times `dual_coef_`."""
        if self.dual_coef_.ndim == 2:
            return self._over_blocks(X, kept, lambda K: row_product(K, self.dual_coef_))
        return self._over_blocks(X, kept, lambda K: row_product(K, self.dual_coef_[:, None])[:, 0])


def _least_leave_one_out(K: Floats, targets: Floats) -> tuple[float, float]:
    """Return (alpha, mean squared leave-one-out error) of the best alpha among `_ALPHAS` for the Gram matrix `K`."""
    check_memory(f"alpha='auto' for {len(K)} objects takes", 24 * len(K) ** 2, "set alpha to a number")
    values, vectors = eigh(K)
    alphas = _ALPHAS * (np.trace(K) / len(K) or 1.0)
    alphas = alphas[alphas > -2 * values[0]]  # so that K + alpha I is positive definite
    if len(alphas) == 0:
        raise ValueError(
            f"the kernel has the eigenvalue {values[0]:.3g}, too far below 0 for alpha='auto'; set alpha to a number, "
            "or take a positive semi-definite kernel"
        )
    Y = targets.reshape(len(K), -1)
    shares = 1.0 / (values[:, None] + alphas)
    inverse_diagonals = vectors**2 @ shares  # of K + alpha I, a column for each alpha
    projected, errors = vectors.T @ Y, np.zeros(len(alphas))
    for output in range(Y.shape[1]):
        coefficients = vectors @ (projected[:, output, None] * shares)
        errors += ((coefficients / inverse_diagonals) ** 2).mean(axis=0) / Y.shape[1]
    best = int(np.argmin(errors))  # of equal errors, that of the largest alpha
    return float(alphas[best]), float(errors[best])


@state(
    fits=lambda state, sizes: reads(state["kernel_"], state["objects_"]), objects_=objects("n"), dual_coef_="targets",
    alpha_="number", loo_error_=optional("number"),
)  # fmt: skip
class KernelRidge(MultiOutputMixin, _KernelRegressor):
    r"""Ridge regression on strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        As for `KernelSVC`.
    alpha : float or "auto", default=1.0
        Regularisation, 0 or more: a number that is added to the diagonal of the Gram matrix. "auto" tries 25 numbers,
        from 1e-4 to 1e2 times the mean of k(x, x), and chooses the number with the smallest squared leave-one-out
        error. (If the kernel is indefinite, it skips numbers that are too small.) This takes about ten times as long as
        one fit, and three times the memory.

    Attributes
    ----------
    kernel_, n_features_in_ : callable, int
        As for `KernelSVC`.
    alpha_ : float
        The regularisation used.
    loo_error_ : float or None
        With ``alpha="auto"``, the mean squared error of predicting each training object from all others, averaged over
        the outputs; otherwise None. It slightly underestimates the error for new objects, because `alpha_` minimises
        it.
    objects_ : collection of n objects
        The training objects, converted for the kernel, for example to a `similia.objects.StringBatch`.
    dual_coef_ : ndarray of float64, shape (n,) or (n, n_outputs)
        Coefficient of each training object.

    Notes
    -----
    As in scikit-learn's KernelRidge, there is no intercept. Centre the targets first, with
    ``TransformedTargetRegressor(KernelRidge(kernel), transformer=StandardScaler())``.

    If kernel values grow with the size of objects, set ``normalize=True`` in the kernel; otherwise the best alpha
    depends on the size of the objects.

    The model keeps all training objects; `KernelSVR` keeps only support vectors. The Gram matrix must fit into
    ``similia.config(max_memory=...)``, by default 1 GiB, which is enough for 11,500 objects (6,600 with
    ``alpha="auto"``). For more objects, use ``make_pipeline(Nystroem(kernel), Ridge())``.

    References
    ----------
    Saunders, Gammerman & Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998. Rifkin & Lippert,
    "Notes on regularized least squares", MIT-CSAIL-TR-2007-025, 2007 (leave-one-out errors).

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> model = sm.KernelRidge(sm.kernels.Spectrum(k=1), alpha=0.01).fit(X, y)
    >>> model.predict(["CCAA", "CCCA"]).round(2)
    array([2., 3.])

    These targets are exactly linear in the counts, so "auto" takes the smallest number that it tries. It is 1e-4 times
    12, the mean of k(x, x):

    >>> round(sm.KernelRidge(sm.kernels.Spectrum(k=1), alpha="auto").fit(X, y).alpha_, 6)
    0.0012
    """

    def __init__(self, kernel: Any, alpha: float | str = 1.0) -> None:
        self.kernel = kernel
        self.alpha = alpha

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix of n objects and fit coefficients to the targets `y`, (n,) or (n, n_outputs)."""
        auto = isinstance(self.alpha, str) and self.alpha == "auto"
        alpha = 0.0 if auto else check_positive(self.alpha, "alpha", zero=True, hint='; or "auto"')
        kernel, objects, n = self._read(X)
        targets = checked_targets(y, n, "KernelRidge")
        K, error = self._gram(kernel, objects, n), None
        with one_blas_thread():  # so that coefficients do not depend on the number of threads
            if auto:
                alpha, error = _least_leave_one_out(K, targets)
            ridge = kernel_ridge.KernelRidge(alpha=alpha, kernel="precomputed").fit(K, targets)
        self.kernel_, self.objects_, self.alpha_, self.loo_error_ = kernel, objects, alpha, error
        self.dual_coef_ = np.asarray(ridge.dual_coef_, dtype=np.float64)
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the target predicted for each object, shape (m,) or (m, n_outputs)."""
        check_fitted(self)
        return self._sums(X, self.objects_)


@state(
    fits=lambda state, sizes: sizes["s"] == 0 or reads(state["kernel_"], state["support_objects_"]),
    support_=array("i8", "s"), support_objects_=objects("s"), dual_coef_=array("f8", "s"), intercept_="number",
)  # fmt: skip
class KernelSVR(_KernelRegressor):
    r"""Support-vector regression of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        As for `KernelSVC`.
    C : float, default=1.0
        Inverse of the regularisation strength, above 0. No coefficient in `dual_coef_` exceeds C in absolute value.
    epsilon : float, default=0.1
        Largest error that is not penalised, 0 or more, in units of the targets.

    Attributes
    ----------
    kernel_, support_, support_objects_, n_features_in_ : callable, ndarray, collection, int
        As for `KernelSVC`.
    dual_coef_ : ndarray of float64, shape (n_support,)
        Coefficient of each support vector.
    intercept_ : float
        The constant that is added to each prediction.

    Notes
    -----
    The defaults of C and epsilon are meant for targets of unit variance. For other targets, use
    ``TransformedTargetRegressor(KernelSVR(kernel), transformer=StandardScaler())``. For several targets per object, use
    `KernelRidge`.

    References
    ----------
    Drucker, Burges, Kaufman, Smola & Vapnik, "Support vector regression machines", NIPS 1996.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> model = sm.KernelSVR(sm.kernels.Spectrum(k=1), C=10.0, epsilon=0.01).fit(X, y)
    >>> model.predict(["CCAA", "CCCA"]).round(1)
    array([2., 3.])
    """

    def __init__(self, kernel: Any, C: float = 1.0, epsilon: float = 0.1) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix of n objects and fit the regressor to their targets `y`, n numbers."""
        C, epsilon = check_positive(self.C, "C"), check_positive(self.epsilon, "epsilon", zero=True)
        kernel, objects, n = self._read(X)
        targets = checked_numbers(y, n, "KernelSVR")
        machine = SVR(kernel="precomputed", C=C, epsilon=epsilon)
        machine.random_state = 0  # libsvm does not use it here; None would draw from numpy's global state
        machine.fit(self._gram(kernel, objects, n), targets)
        support = machine.support_.astype(np.int64)
        self.kernel_, self.support_, self.support_objects_ = kernel, support, take(objects, support)
        self.dual_coef_ = np.asarray(machine.dual_coef_, dtype=np.float64).reshape(-1)
        self.intercept_ = float(machine.intercept_[0])
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the target predicted for each object, shape (m,)."""
        check_fitted(self)
        return self._sums(X, self.support_objects_) + self.intercept_
