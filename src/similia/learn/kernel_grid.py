"""A kernel with each combination of values of its parameters; what combinations share is computed once.

The Gram matrix of a `Sum` or `Product` is computed from those of its parts. A combination changes some parts and the
weights of sums; the Gram matrices of the other parts are kept, as far as ``config(max_memory=...)`` allows. If
combinations differ only in weights, they also share the objects that the kernel has read, and settings that depend on
these, such as ``gamma="median"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from similia.core.config import settings
from similia.core.errors import BadParameter
from similia.core.estimators import detached
from similia.core.text import short
from similia.embeddings.landmarks import kernel_values
from similia.kernels.combine import Product, Sum
from similia.objects import n_objects
from similia.similarity import Kernel, check_direction, check_kernel, decided, plain_parameters, read_objects

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
        changes = _identities({name: value for name, value in values.items() if _concerns(name, path)})
        key = path, changes, repr(plain_parameters(kernel))
        if key in self._grams:
            return self._grams[key]
        n, within = n_objects(objects), sum(_concerns(name, path) for name in self._several)
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


def _identities(values: Values) -> tuple[tuple[str, int], ...]:
    """Return names and identities of values, which need not be comparable; the list of combinations keeps them."""
    return tuple((name, id(value)) for name, value in sorted(values.items()))


def _concerns(name: str, path: Path) -> bool:
    """Return whether a parameter may change the values of the part at `path`: not so weights and other parts."""
    for mine, theirs in zip(path, name.split("__"), strict=False):
        if mine != theirs:
            return theirs != "weights" and re.fullmatch(r"k\d+", theirs) is None
    return True
