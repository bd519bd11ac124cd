"""A kernel with each combination of values of its parameters; what combinations share is computed once.

The Gram matrix of a `Sum` or `Product` is computed from those of its parts. A combination changes some parts and the
weights of sums; the Gram matrices of the other parts are kept, as far as ``config(max_memory=...)`` allows. If
combinations differ only in weights, they also share the objects that the kernel has read, and settings that depend on
these, such as ``gamma="median"``.

With landmarks, all combinations are compared at the same ones. Randomly pivoted Cholesky chooses them for the average
of the kernels, each divided by its mean k(x, x). What these landmarks leave unexplained of one of these kernels is at
most what they leave of the sum of all: for positive semi-definite A and B and any landmarks, the Schur complement of A
+ B is at least the sum of those of A and of B (Horn & Johnson, "Matrix Analysis", 2013, Section 7.7). So the columns of
a part at the landmarks are computed once for all combinations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from similia.core.config import settings
from similia.core.estimators import detached
from similia.core.text import short
from similia.core.validation import BadParameter, RandomState, generator
from similia.embeddings.landmarks import Gram, Index, rpcholesky
from similia.embeddings.nystroem import Nystroem
from similia.kernels.combine import Product, Sum
from similia.objects import n_objects
from similia.similarity import (
    Kernel,
    check_direction,
    check_kernel,
    decided,
    diagonal,
    evaluate,
    kernel_values,
    plain_parameters,
    precision,
    read_objects,
    self_values,
)
from similia.sources.dask import Distributed

Path = tuple[str, ...]  # to a part of a kernel: ("k0", "k1") is part 1 of part 0
Values = dict[str, Any]


class KernelGrid:
    """All combinations of `parameters` of a kernel; ``{"weights": "auto"}`` leaves the weights of a sum open."""

    def __init__(self, kernel: Any, parameters: Any) -> None:
        check_kernel(kernel)
        self._kernel, self._changes, self.open = kernel, parameters is not None, False
        self._grams: dict[Any, npt.NDArray] = {}
        if parameters is None:
            parameters = {}
        elif not isinstance(parameters, dict) or not parameters or not hasattr(kernel, "set_params"):
            raise BadParameter(
                "parameters", "a dictionary of parameters of the kernel and lists of values to try",
                short(parameters), "such as {'k': [2, 3, 4]}",
            )  # fmt: skip
        elif isinstance(parameters.get("weights"), str) and parameters["weights"] == "auto":
            if not isinstance(kernel, Sum):
                found = f"weights='auto' for {type(kernel).__name__}"
                raise BadParameter("parameters", "'auto' only for the weights of a similia.kernels.Sum", found)
            self.open, parameters = True, {name: parameters[name] for name in parameters if name != "weights"}
        for name, values in parameters.items():
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
                remedy = "'auto' is for 'weights', if the kernel is a similia.kernels.Sum" if values == "auto" else ""
                found = f"{short(values)} for {name!r}"
                raise BadParameter("parameters", "a dictionary of lists of values to try", found, remedy)
        self._combinations: list[Values] = list(ParameterGrid(parameters))
        self._several = {name for name, values in parameters.items() if len(values) > 1}

    def __len__(self) -> int:
        return len(self._combinations)

    def read(self, estimator: Any, X: Any) -> Iterator[tuple[Any, Any, Values]]:
        """Yield (kernel with all parameters set, objects in its layout, the combination) for each combination."""
        known: tuple[Any, Any, Any] | None = None
        for values in self._combinations:
            weights = {name: value for name, value in values.items() if self._is_weights(name, values)}
            others = {name: value for name, value in values.items() if name not in weights}
            changes = _identities(others)
            if known is None or known[0] != changes:
                kernel = clone(self._kernel).set_params(**others) if self._changes else self._kernel
                kernel = detached(decided(kernel, X))
                known = changes, kernel, read_objects(estimator, kernel, X, reset=True)
                check_direction(kernel, True, known[2], "kernel")
            _, kernel, objects = known
            yield detached(kernel).set_params(**weights) if weights else kernel, objects, values

    def gram(self, kernel: Any, objects: Any, values: Values, path: Path = ()) -> npt.NDArray:
        """Return the Gram matrix of the part of the kernel at `path`, shape (n, n), for a combination `values`."""
        key = _key(kernel, values, path)
        if key in self._grams:
            return self._grams[key]
        n, within = n_objects(objects), self._within(path)
        asked, shared = objects, within < len(self._several)
        if isinstance(kernel, Sum | Product) and within:
            parts = [_Part(self, part, objects, values, (*path, f"k{i}")) for i, part in enumerate(kernel.kernels)]
            kernel, asked = copy(kernel), np.arange(n)
            kernel.kernels = parts
        K = kernel_values(kernel, asked, None, range(n), range(n), "X[{}] and X[{}]")
        if shared and 8 * n**2 * (6 + len(self._grams)) <= settings().max_memory:  # a fit takes five Gram matrices
            self._grams[key] = K
        return K

    def parts(self, kernel: Sum, objects: Any, values: Values) -> list[npt.NDArray]:
        """Return the Gram matrix of each part of the kernel, which is a sum."""
        return [self.gram(part, objects, values, (f"k{i}",)) for i, part in enumerate(kernel.kernels)]

    def at_common_landmarks(
        self, combinations: Sequence[tuple[Any, Any, Values]], size: int, random_state: RandomState
    ) -> Iterator[tuple[Nystroem, Any]]:
        """Yield a fitted embedding, and what to call it with, for each combination that `read` gave.

        All have the same landmarks, at most `size`. They are called with positions of objects in place of these if all
        columns that they need are kept, as far as ``config(max_memory=...)`` allows.
        """
        parts: dict[Any, _Columns] = {}
        kernels = [self._of_positions(*one, (), parts, size) for one in combinations]
        average, rng = _Average(kernels, n_objects(combinations[0][1])), generator(random_state)
        landmarks = rpcholesky(average, min(size, average.n), rng)
        for kernel, (own, objects, _) in zip(kernels, combinations, strict=True):
            if not kernel(landmarks, landmarks).any():  # under this kernel, other objects are similar, or none
                yield Nystroem(own, size, "rpcholesky", random_state=rng).fit(objects), objects
            elif _is_kept(kernel):
                yield Nystroem(kernel, landmarks=landmarks).fit(average.X), average.X
            else:
                yield Nystroem(own, landmarks=landmarks).fit(objects), objects

    def _of_positions(
        self, kernel: Any, objects: Any, values: Values, path: Path, parts: dict[Any, _Columns], size: int
    ) -> Kernel:
        """Return the part of the kernel at `path` as a kernel of positions; `parts` are those without such parts."""
        if isinstance(kernel, Sum | Product) and self._within(path):
            made = copy(kernel)
            made.kernels = [
                self._of_positions(part, objects, values, (*path, f"k{i}"), parts, size)
                for i, part in enumerate(kernel.kernels)
            ]
            return made
        key = _key(kernel, values, path)
        if key not in parts:
            fits = 8 * n_objects(objects) * size * (3 + len(parts)) <= settings().max_memory
            parts[key] = _Columns(kernel, objects, size if fits else 0)
        return parts[key]

    def _within(self, path: Path) -> int:
        """Return the number of parameters of several values that may change the part at `path`."""
        return sum(_concerns(name, path) for name in self._several)

    def _is_weights(self, name: str, values: Values) -> bool:
        """Return whether a parameter holds the weights of a sum that no combination replaces."""
        owner, _, last = name.rpartition("__")
        if last != "weights" or any(other != name and _concerns(other, tuple(owner.split("__"))) for other in values):
            return False
        return isinstance(self._kernel.get_params().get(owner) if owner else self._kernel, Sum)


class _Part(Kernel):
    """A part of a kernel, as a kernel of positions: it returns the Gram matrix of all objects."""

    def __init__(self, grid: KernelGrid, kernel: Any, objects: Any, values: Values, path: Path) -> None:
        self.grid, self.kernel, self.objects, self.values, self.path = grid, kernel, objects, values, path

    def __call__(self, X: npt.NDArray, Y: None = None) -> npt.NDArray:
        return self.grid.gram(self.kernel, self.objects, self.values, self.path)


class _Columns(Kernel):
    """A kernel, as a kernel of positions of its objects; it keeps whole columns, up to `size` of them."""

    def __init__(self, kernel: Any, objects: Any, size: int) -> None:
        self.kernel, self.objects, self.size = kernel, objects, size
        self.gram = Gram(kernel, objects)
        self.place, self.kept = np.full(self.gram.n, -1), 0
        self.block: tuple[Any, npt.NDArray] | None = None  # the last block of other values, and its key
        self.own, self.own_in_blocks = own_values(kernel, objects), self.gram.diagonal()

    def __call__(self, X: Index, Y: Index | None = None) -> npt.NDArray:
        Y = X if Y is None else Y
        if self.kept and (self.place[Y] >= 0).all():
            return self.columns[np.ix_(X, self.place[Y])]
        if np.array_equal(X, range(self.gram.n)):
            return self._kept(self.gram.columns(Y), Y)
        key = X.tobytes(), Y.tobytes()
        if self.block is None or self.block[0] != key:
            self.block = key, self.gram.block(X, Y)
        return self.block[1]

    def _kept(self, found: npt.NDArray, Y: Index) -> npt.NDArray:
        """Return the columns `found` of the objects at `Y`, after they were kept, if there is room for them."""
        end = self.kept + len(Y)
        if end <= self.size:
            if not self.kept:
                self.columns = np.empty((self.gram.n, self.size), dtype=found.dtype)
            self.columns[:, self.kept : end] = found
            self.place[Y] = range(self.kept, end)
            self.kept = end
        return found

    def diag(self, X: Index) -> npt.NDArray:
        return self.own[X]

    def _self_values(self, X: Index) -> npt.NDArray:
        return self.own_in_blocks[X]

    def _precision(self, X: Index) -> float:
        return self.gram.eps()


class _Average(Gram):
    """The sum of kernels of positions of n objects, each divided by its mean k(x, x)."""

    def __init__(self, kernels: Sequence[Kernel], n: int) -> None:
        self.X, self.n, self.kernels = np.arange(n), n, kernels
        self.units = [float(diagonal(kernel, self.X).mean()) or 1.0 for kernel in kernels]

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        rows, columns = np.asarray(rows), np.asarray(columns)
        return self._sum(evaluate(kernel, rows, columns) for kernel in self.kernels)

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray:
        return self.block(self.X, indices)

    def diagonal(self) -> npt.NDArray:
        return self._sum(self_values(kernel, self.X) for kernel in self.kernels)

    def eps(self, values: npt.NDArray | None = None) -> float:
        return max(precision(kernel, self.X) for kernel in self.kernels)

    def _sum(self, values: Iterator[npt.NDArray]) -> npt.NDArray:
        return reduce(np.add, (value / unit for value, unit in zip(values, self.units, strict=True)))


def own_values(kernel: Any, objects: Any) -> npt.NDArray:
    """Return k(x, x) of n objects in memory or in a `Distributed`, shape (n,)."""
    if isinstance(objects, Distributed):
        return np.concatenate([*objects.map(_own_values, kernel)])
    return diagonal(kernel, objects)


def _own_values(part: Any, start: int, kernel: Any) -> npt.NDArray:
    return diagonal(kernel, part)


def _is_kept(kernel: Any) -> bool:
    """Return whether a kernel of positions keeps its columns at the landmarks."""
    return kernel.kept > 0 if isinstance(kernel, _Columns) else all(map(_is_kept, kernel.kernels))


def _key(kernel: Any, values: Values, path: Path) -> tuple[Path, tuple[tuple[str, int], ...], str]:
    """Return a key of the part of a kernel at `path`, for a combination `values`."""
    changes = _identities({name: value for name, value in values.items() if _concerns(name, path)})
    return path, changes, repr(plain_parameters(kernel))


def _identities(values: Values) -> tuple[tuple[str, int], ...]:
    """Return names and identities of values, which need not be comparable; the list of combinations keeps them."""
    return tuple((name, id(value)) for name, value in sorted(values.items()))


def _concerns(name: str, path: Path) -> bool:
    """Return whether a parameter may change the values of the part at `path`: not so weights and other parts."""
    for mine, theirs in zip(path, name.split("__"), strict=False):
        if mine != theirs:
            return theirs != "weights" and re.fullmatch(r"k\d+", theirs) is None
    return True
