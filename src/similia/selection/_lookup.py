"""Kernel values, distances and features computed once, and the steps of a pipeline that look them up.

A value depends on its two objects only, not on the fold they are in. So the matrix of all pairs of the objects in play
is computed once for each kernel or distance, and every fold runs the very steps of the pipeline on *positions* of
objects instead of objects, with a kernel that reads the matrix. What a step learns (landmarks, random objects among the
training objects, gamma, scales) it learns from the training positions, as it would from the objects.
Cost: n^2 values (n feature vectors) for n objects; memory is bounded, the least recently used matrix goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone

from similia.core.config import settings
from similia.core.fitting import all_at_once
from similia.embeddings import D2KE, GraphletSampling, KernelFeatures, Nystroem
from similia.embeddings.random_objects import Representatives
from similia.learn.kernel_svc import KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import take
from similia.selection._ladder import Group
from similia.selection._names import identity
from similia.similarity import Distance, Kernel

_SHARE = 0.5  # of the working memory, for matrices that are kept


class DistancePairs:
    """A distance of positions that reads a matrix."""

    def __init__(self, values: npt.NDArray) -> None:
        self.values = values

    def __call__(self, X: npt.NDArray, Y: npt.NDArray | None = None) -> npt.NDArray:
        return self.values[np.ix_(X, X if Y is None else Y)]


class KernelPairs(Kernel):
    """A kernel of positions that reads a matrix."""

    def __init__(self, values: npt.NDArray) -> None:
        self.values = values

    def __call__(self, X: npt.NDArray, Y: npt.NDArray | None = None) -> npt.NDArray:
        return self.values[np.ix_(X, X if Y is None else Y)]

    def diag(self, X: npt.NDArray) -> npt.NDArray:
        return self.values[X, X]


class Rows(TransformerMixin, BaseEstimator):
    """A transformer of positions that reads the rows of a matrix."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Rows:
        return self

    def transform(self, X: npt.NDArray) -> Any:
        return self.values[X]


class Cache:
    """Matrices of the first objects in play, by what computes them, each for the most objects that were asked for."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._kept: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._names: dict[int, Hashable] = {}

    def pipelines(self, group: Group, learners: Sequence[int], n: int) -> tuple[list[Any], list[list[Any]], bool]:
        """Return fresh steps, those of some learners, and whether they take positions among the first n objects."""
        steps, tails = fresh(group, learners)
        name = self.name(group)
        if name is None:
            return steps, tails, False
        for part in [steps] if steps else tails:
            part[0] = self._looked_up(part[0], name, n)
        return steps, tails, True

    def holds(self, group: Group, n: int) -> bool:
        """Return whether what a group looks up of n objects is there."""
        return self._kept.get(self.name(group) or "", (0, None))[0] >= n

    def compute(self, group: Group, X: Any) -> Any:
        """Return what a group looks up, computed for some objects."""
        return _shared(clone(group.pipeline(0)[0]))(X)

    def name(self, group: Group) -> Hashable:
        """Return what tells apart what is looked up; None for what is learnt from objects, which folds do not share."""
        if id(group) not in self._names:
            first = group.pipeline(0)[0]
            what = first if isinstance(first, KernelFeatures | GraphletSampling) else _compare(first)
            self._names[id(group)] = identity(what) if _is_shared(first) else None
        return self._names[id(group)]

    def _looked_up(self, step: Any, name: Hashable, n: int) -> Any:
        """Return a step that reads a matrix in the place of one that computes."""
        values = self._get(name, n, _shared(step))
        if isinstance(step, KernelFeatures | GraphletSampling):
            return Rows(values)
        pairs = (DistancePairs if isinstance(_compare(step), Distance) else KernelPairs)(values)
        return step.set_params(**{"distance" if hasattr(step, "distance") else "kernel": pairs})

    def _get(self, name: Hashable, n: int, compute: Callable[[Any], Any]) -> Any:
        if name not in self._kept or self._kept[name][0] < n:
            self._kept.pop(name, None)
            values = compute(self.X if n == len(self.X) else take(self.X, np.arange(n)))
            while self._kept and self._size() + _n_bytes(values) > _SHARE * settings().max_memory:
                self._kept.popitem(last=False)
            self._kept[name] = n, values
        self._kept.move_to_end(name)
        return self._kept[name][1]

    def _size(self) -> int:
        return sum(_n_bytes(values) for _, values in self._kept.values())


def fresh(group: Group, learners: Sequence[int]) -> tuple[list[Any], list[list[Any]]]:
    """Return copies of a group's steps and of those of some of its learners."""
    tails = [[clone(step) for _, step in group.learners[i][1]] for i in learners]
    return [clone(step) for _, step in group.steps], tails


def _shared(step: Any) -> Callable[[Any], Any]:
    """Return the function of objects whose values all folds look up in the place of a step."""
    if isinstance(step, KernelFeatures):
        return lambda X: _compact(step.transform(X))
    if isinstance(step, GraphletSampling):
        return lambda X: step.fit_transform(X)
    compare = _compare(step)
    if isinstance(compare, Distance) and compare.facts.symmetric:
        return compare
    # Always with both arguments, as in the steps: k(X) alone has ones on the diagonal of empty objects.
    return lambda X: compare(X, X)


def _compare(step: Any) -> Any:
    """Return the kernel or distance of a step, None for a step without."""
    return getattr(step, "kernel", getattr(step, "distance", None))


def _is_shared(step: Any) -> bool:
    """Return whether what a step computes of objects depends on them alone, or on pairs of them."""
    if isinstance(step, GraphletSampling):  # the exact map, with samples drawn from a seed: nothing is learnt
        return step.features == "optical" and step.n_components is None
    if isinstance(step, D2KE):
        return isinstance(step.objects, Representatives)
    return isinstance(step, KernelFeatures | Nystroem | KernelSVC | KNeighborsClassifier | KNeighborsRegressor)


def _compact(features: sp.csr_array) -> sp.csr_array:
    """Return features without the columns that no object has: no linear model gives those a weight."""
    met, columns = np.unique(features.indices, return_inverse=True)
    shape = (features.shape[0], max(1, len(met)))
    return sp.csr_array((features.data, columns.astype(np.int32), features.indptr), shape=shape)


def _n_bytes(values: Any) -> int:
    return int(values.data.nbytes + values.indices.nbytes) if sp.issparse(values) else int(values.nbytes)
