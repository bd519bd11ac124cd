"""The six methods of the D2KE paper on matrices of distances, tuned alike on the training part.

Every method ends in a linear machine on a kernel matrix (but for kNN), with the hinge loss (a support vector
machine) or the squared loss (ridge regression on +-1 per class), so that one cross-validation serves all: ten folds
of at most `TUNE_ON` training objects (`TUNE_ON_FEW_CLASSES` where there are few), five times over below `FEW`
objects. First every setting of the representation is tried on some folds with one machine of each loss; the best
`FINALISTS` meet all on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
from joblib import Parallel, delayed
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, StratifiedShuffleSplit, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from similia.embeddings import PseudoEuclidean

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]
Setting = Mapping[str, Any]
Kernels = Callable[[Setting, Index, Index], tuple[Floats, Floats, Index]]

TUNE_ON, TUNE_ON_FEW_CLASSES = 1_000, 2_500  # up to five classes: a support vector machine has few pairs of them
FINALISTS = 3
FEW = 200  # training objects below which one round of folds is too rough
NEIGHBOURS = (1, 3, 5, 7, 11, 15)
GAMMAS = (0.3, 1.0, 3.0, 10.0)  # in units of 1 / median distance
BLOCK = 5_000  # objects whose features are in memory at a time, where there is no kernel matrix
MAX_KERNEL = 5_000  # training objects above which there is no kernel matrix of them all


class Machine(NamedTuple):
    """A linear machine: its loss, "hinge" or "square", and C, the inverse of its regularisation."""

    loss: str
    C: float

    def predict(self, K: Floats, y: npt.NDArray, k: Floats) -> npt.NDArray:
        """Return the predictions for rows of `k` (objects against training objects), given the training kernel `K`."""
        if self.loss == "hinge":
            return SVC(kernel="precomputed", C=self.C).fit(K, y).predict(k)
        labels, targets = _targets(y)
        means, mean = K.mean(axis=0), K.mean()
        centred = K - means - means[:, None] + mean
        ridge = np.abs(np.trace(centred)) / len(K) / self.C
        dual = _ridge_dual(centred, ridge, targets - targets.mean(axis=0))
        return labels[
            np.argmax((k - k.mean(axis=1, keepdims=True) - means + mean) @ dual + targets.mean(axis=0), axis=1)
        ]

    def __str__(self) -> str:
        return f"{self.loss} loss, C={self.C:g}"


MACHINES = tuple(Machine("hinge", C) for C in (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)) + tuple(
    Machine("square", C) for C in (1.0, 10.0, 100.0, 1000.0, 10_000.0)
)
MACHINES_FOR_MANY = tuple(Machine("square", 10.0**i) for i in range(9))  # more objects want less regularisation
FIRST_MACHINE = Machine("square", 1000.0)


def _ridge_dual(K: Floats, ridge: float, targets: Floats) -> Floats:
    """Return the weights of training objects; where K is indefinite, those of its flipped eigenvalues.

    Otherwise an eigenvalue near -ridge would be divided by almost 0.
    """
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(K + ridge * np.eye(len(K)), lower=True), targets)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(K)
        return vectors @ ((np.sign(values) / (np.abs(values) + ridge))[:, None] * (vectors.T @ targets))


def _targets(y: npt.NDArray) -> tuple[npt.NDArray, npt.NDArray[np.float64]]:
    """Return the labels, and +1 where an object has a label, else -1, shape (n, n_labels)."""
    labels, codes = np.unique(y, return_inverse=True)
    return labels, np.where(codes[:, None] == np.arange(len(labels)), 1.0, -1.0)


def tuning_sample(y: npt.NDArray, train: Index) -> Index:
    """Return the training objects, or a sample of them, stratified where each class has two."""
    counts = np.unique(y[train], return_counts=True)[1]
    most = TUNE_ON if len(counts) > 5 else TUNE_ON_FEW_CLASSES
    if len(train) <= most:
        return train
    if counts.min() < 2:
        return np.sort(np.random.default_rng(0).permutation(train)[:most])
    sampler = StratifiedShuffleSplit(n_splits=1, train_size=most, random_state=0)
    return np.sort(train[next(sampler.split(train, y[train]))[0]])


def folds_of(y: npt.NDArray, n_splits: int = 10) -> list[tuple[Index, Index]]:
    """Return ten folds, five times over below `FEW` objects; stratified unless a class has fewer objects than folds."""
    smallest = np.unique(y, return_counts=True)[1].min()
    kind = RepeatedStratifiedKFold if smallest >= n_splits else RepeatedKFold
    folds = kind(n_splits=n_splits, n_repeats=5 if len(y) < FEW else 1, random_state=0)
    return list(folds.split(np.zeros(len(y)), y))


def tune(kernels: Kernels, grid: Sequence[Setting], y: npt.NDArray) -> tuple[Setting, Machine, float]:
    """Return the best setting, its machine and its cross-validated accuracy (percent).

    Parameters
    ----------
    kernels : callable
        (setting, a, b) -> kernel matrices (c, c) and (b, c), and c: the positions a of the tuning objects, or those
        of them that are left to train on.
    grid : sequence of settings
    y : ndarray of shape (n,)
        Labels of the tuning objects.
    """
    folds = folds_of(y)

    def accuracy(setting: Setting, fold: tuple[Index, Index], machines: Sequence[Machine]) -> list[float]:
        K, k, left = kernels(setting, *fold)
        return [float(np.mean(machine.predict(K, y[left], k) == y[fold[1]])) for machine in machines]

    def mean_accuracy(settings: Sequence[Setting], folds: Sequence[Any], machines: Sequence[Machine]) -> npt.NDArray:
        jobs = [delayed(accuracy)(setting, fold, machines) for setting in settings for fold in folds]
        found = Parallel(n_jobs=-1, prefer="threads")(jobs)
        return np.reshape(found, (len(settings), len(folds), len(machines))).mean(axis=1)

    finalists = list(grid)
    if len(finalists) > FINALISTS:
        first = mean_accuracy(finalists, folds[: 10 if len(y) < FEW else 3], [FIRST_MACHINE])[:, 0]
        finalists = [finalists[i] for i in np.argsort(-first, kind="stable")[:FINALISTS]]
    table = mean_accuracy(finalists, folds, MACHINES)
    i, j = divmod(int(np.argmax(table)), len(MACHINES))
    return finalists[i], MACHINES[j], float(100 * table[i, j])


# ---- features of distances to representatives or random objects
def features(D: Floats, gamma: float) -> Callable[[Floats], Floats]:
    """Return the map E -> standardised exp(-gamma E) / sqrt(R), with the mean and the deviation at the rows of `D`."""
    P = np.exp(-gamma * D)
    mean, deviation = P.mean(axis=0), P.std(axis=0)
    scale = 1 / (np.where(deviation > 0, deviation, 1.0) * np.sqrt(D.shape[1]))
    return lambda E: (np.exp(-gamma * E) - mean) * scale


def feature_kernels(D: Floats, gamma: float, a: Index, b: Index) -> tuple[Floats, Floats, Index]:
    """Return the kernel matrices of `features` of the rows a (training) and b of `D`."""
    transform = features(D[a], gamma)
    A, B = transform(D[a]), transform(D[b])
    return A @ A.T, B @ A.T, a


def predictions(D: Floats, E: Floats, y: npt.NDArray, gamma: float, machine: Machine) -> npt.NDArray:
    """Return the predictions of a machine on features of distances `D` (training) and `E` (test)."""
    if len(D) > MAX_KERNEL:
        return _NormalEquations(D, y, gamma).predict(E, machine.C)
    transform = features(D, gamma)
    A, B = transform(D), transform(E)
    return machine.predict(A @ A.T, y, B @ A.T)


class _NormalEquations:
    """The squared loss on features of distances, its sums taken over blocks of objects."""

    def __init__(self, D: Floats, y: npt.NDArray, gamma: float) -> None:
        self.gamma = gamma
        self.labels, targets = _targets(y)
        self.n, R = D.shape
        total, self.moments, products = np.zeros(R), np.zeros((R, R)), np.zeros((R, len(self.labels)))
        for block in np.array_split(np.arange(self.n), -(-self.n // BLOCK)):
            P = np.exp(-gamma * D[block].astype(np.float64))
            total += P.sum(axis=0)
            self.moments += P.T @ P
            products += P.T @ targets[block]
        self.mean, self.target = total / self.n, targets.mean(axis=0)
        self.moments -= self.n * np.outer(self.mean, self.mean)
        deviation = np.sqrt(np.maximum(np.diag(self.moments), 0.0) / self.n)
        self.scale = 1 / (np.where(deviation > 0, deviation, 1.0) * np.sqrt(R))
        self.moments *= np.outer(self.scale, self.scale)
        self.products = self.scale[:, None] * (products - np.outer(total, self.target))

    def predict(self, E: Floats, C: float) -> npt.NDArray:
        ridge = np.trace(self.moments) / self.n / C
        weights = np.linalg.solve(self.moments + ridge * np.eye(len(self.mean)), self.products)
        features = (np.exp(-self.gamma * E) - self.mean) * self.scale
        return self.labels[np.argmax(features @ weights + self.target, axis=1)]


def hold_out(y: npt.NDArray) -> tuple[Index, Index]:
    """Return the positions of nine tenths of many training objects and of the rest, stratified."""
    rest, held_out = train_test_split(np.arange(len(y)), test_size=0.1, random_state=0, stratify=y)
    return np.sort(rest), np.sort(held_out)


def tune_many(settings: Iterable[tuple[Setting, Floats, Index]], y: npt.NDArray) -> tuple[Setting, Machine, float]:
    """Return the best setting, its machine and its accuracy (percent) on the objects that `hold_out` keeps back.

    Parameters
    ----------
    settings : iterable of (setting, distances of all training objects, positions of those to train on)
    y : ndarray of shape (n,)
        Labels of the training objects.
    """
    held_out = hold_out(y)[1]
    best: tuple[Setting, Machine, float] | None = None
    for setting, D, left in settings:
        equations = _NormalEquations(D[left], y[left], setting["gamma"])
        for machine in MACHINES_FOR_MANY:
            accuracy = 100 * float(np.mean(equations.predict(D[held_out], machine.C) == y[held_out]))
            if best is None or accuracy > best[2]:
                best = setting, machine, accuracy
    if best is None:
        raise ValueError("there are no settings to choose from")
    return best


# ---- methods on the matrix of all distances
def tune_knn(D: Floats, y: npt.NDArray) -> tuple[int, float]:
    """Return the best number of neighbours and its cross-validated accuracy (percent)."""
    folds = folds_of(y)
    table = [
        np.mean([np.mean(knn(D[np.ix_(a, a)], y[a], D[np.ix_(b, a)], k) == y[b]) for a, b in folds]) for k in NEIGHBOURS
    ]
    best = int(np.argmax(table))
    return NEIGHBOURS[best], 100 * float(table[best])


def knn(D: Floats, y: npt.NDArray, E: Floats, k: int) -> npt.NDArray:
    """Return the majority label of the k nearest training objects, nearer ones counting more."""
    k = min(k, len(y))
    return KNeighborsClassifier(k, metric="precomputed", weights=_closeness).fit(D, y).predict(E)


def _closeness(distances: Floats) -> Floats:
    """Return weights that settle ties of the vote in favour of the nearest."""
    return 1 + 1e-6 * (distances.max() - distances) / (distances.max() or 1.0)


def rbf_kernels(D: Floats, gamma: float, a: Index, b: Index) -> tuple[Floats, Floats, Index]:
    """Return exp(-gamma D^2): the distance substitution kernel."""
    return np.exp(-gamma * D[np.ix_(a, a)] ** 2), np.exp(-gamma * D[np.ix_(b, a)] ** 2), a


def negative_kernels(D: Floats, scale: float, a: Index, b: Index) -> tuple[Floats, Floats, Index]:
    """Return -scale D^2."""
    return -scale * D[np.ix_(a, a)] ** 2, -scale * D[np.ix_(b, a)] ** 2, a


def pseudo_euclidean_kernels(D: Floats, n: int, a: Index, b: Index, transductive: bool) -> tuple[Floats, Floats, Index]:
    """Return inner products of n pseudo-Euclidean coordinates, with or without the positions b in the decomposition."""
    both = np.concatenate([a, b])
    fitted = both if transductive else a
    model = PseudoEuclidean("precomputed", n_components=min(n, len(fitted))).fit(D[np.ix_(fitted, fitted)])
    V = model.transform(D[np.ix_(both, fitted)])
    V /= np.sqrt(np.mean(np.sum(V[: len(a)] ** 2, axis=1)))
    return V[: len(a)] @ V[: len(a)].T, V[len(a) :] @ V[: len(a)].T, a
