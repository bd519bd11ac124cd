"""Sums, products and normalised versions of kernels.

Sums with weights >= 0, elementwise products and k(x, y) / sqrt(k(x, x) k(y, y)) of positive semi-definite kernels are
positive semi-definite (Shawe-Taylor & Cristianini, "Kernel Methods for Pattern Analysis", 2004, Section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from similia.core.estimators import ListParams
from similia.core.text import short
from similia.core.validation import BadPairValue, BadValue, as_second, check_positive_int
from similia.kernels.counts import divide_by_norms, scale_by_norms
from similia.objects import n_objects
from similia.objects.sequences import Batch, fullest
from similia.objects.tables import objects_in
from similia.similarity import (
    Kernel,
    as_objects,
    check_kernel,
    compared,
    decided,
    diagonal,
    evaluate,
    precision,
    self_values,
)


class _Composite(ListParams, Kernel):
    """Base class of kernels that combine a list of kernels, the parts; the parameters of part i are ``k{i}__name``."""

    kernels: list[Any]
    _list, _letter = "kernels", "k"
    _noun: ClassVar[str]

    def _combined(self, values: Iterable[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Combine the kernel values of the parts; `values` yields a new array per part, which may be overwritten."""
        raise NotImplementedError

    def as_objects(self, X: Any) -> Any:
        """Convert `X` to the batch type that all kernels read; without one, return `X`, or its column if it has one."""
        views = [as_objects(kernel, X) for kernel in self._parts()]
        shared = isinstance(views[0], Batch) and all(type(view) is type(views[0]) for view in views)
        return fullest(*views) if shared else objects_in(X)

    def _parts(self) -> list[Any]:
        """Return the list of kernels; raise if it is empty or a kernel is not callable."""
        if not isinstance(self.kernels, list | tuple) or len(self.kernels) == 0:
            name = type(self).__name__
            raise ValueError(
                f"{name} takes a list of kernels as {name}([Spectrum(3), Spectrum(4)]), got {self.kernels!r}"
            )
        for i, kernel in enumerate(self.kernels):
            check_kernel(kernel, f"kernels[{i}]")
        return list(self.kernels)

    def decided(self, X: Any) -> Any:
        """Return this kernel with the data-dependent settings of its parts replaced by their values for `X`."""
        X, parts = as_objects(self, X), self._parts()
        found = [decided(kernel, X) for kernel in parts]
        unchanged = all(new is old for new, old in zip(found, parts, strict=True))
        return self if unchanged else clone(self).set_params(kernels=found)

    def _compared(self, X: Any) -> dict[str, str]:
        each = [compared(kernel, X) for kernel in self._parts()]
        return {f"{what} of part {i}": words for i, part in enumerate(each) for what, words in part.items()}

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        Y = None if Y is None else as_second(self.as_objects, Y)
        return self._finite((_gram(kernel, X, Y) for kernel in self.kernels), "X[{}] and Y[{}]")

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        return self._finite(diagonal(kernel, X) for kernel in self.kernels)

    def _self_values(self, X: Any) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        return self._finite(self_values(kernel, X) for kernel in self.kernels)

    def _finite(
        self, values: Iterable[npt.NDArray[np.float64]], names: str = "X[{0}] and X[{0}]"
    ) -> npt.NDArray[np.float64]:
        """Return the combined `values`; raise if one is too large, with `names` for its objects."""
        with np.errstate(over="ignore", under="ignore"):  # a product of small values becomes 0
            K = self._combined(values)
        large = np.argwhere(np.isinf(K))
        if len(large):
            too_large = " exceeds the largest float64; normalise the kernels"
            index = int(large[0, 0]), int(large[0, -1])
            raise BadPairValue(f"the {self._noun} of the kernels of", index, too_large, names)
        return K

    def _precision(self, X: Any) -> float:
        return max(precision(kernel, X) for kernel in self.kernels)


class Sum(_Composite):
    r"""Weighted sum of kernels, :math:`K(x, y) = \sum_i w_i K_i(x, y)`.

    Parameters
    ----------
    kernels : list of kernels
        Any callables ``k(X, Y=None) -> (n, m)``. In `set_params`, kernel i (counted from 0) is named ``k{i}``
        and its parameters ``k{i}__name``.
    weights : sequence of float, optional
        One weight >= 0 for each kernel; all 1 if not given.

    Examples
    --------
    >>> from similia.kernels import Spectrum, Sum
    >>> kernel = Sum([Spectrum(k=1), Spectrum(k=2)], weights=[1, 10])
    >>> kernel(["AC", "CA"])
    array([[12.,  2.],
           [ 2., 12.]])
    >>> kernel.set_params(k1__k=1)(["AC", "CA"])
    array([[22., 22.],
           [22., 22.]])
    """

    _noun = "sum"

    def __init__(self, kernels: list[Any], weights: Any = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def _combined(self, values: Iterable[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        return sum(weight * part for weight, part in zip(self._weights(), values, strict=True))

    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        """Return explicit features: the features of each kernel times sqrt(weight), side by side.

        Parameters
        ----------
        X : sequence of n objects
        n_features : int, default=2**20
            Total number of columns. Each of the p kernels has columns of its own: kernel i (counted from 0) gets
            (n_features + i) // p of them.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n_features)
        """
        parts = self._parts()
        check_positive_int(n_features, "n_features", minimum=len(parts))
        X = self.as_objects(X)
        blocks = [
            np.sqrt(weight) * _features(kernel, f"kernels[{i}]", X, (n_features + i) // len(parts))
            for i, (kernel, weight) in enumerate(zip(parts, self._weights(), strict=True))
        ]
        return sp.csr_array(sp.hstack(blocks, format="csr"))

    def _weights(self) -> npt.NDArray[np.float64]:
        n_parts = len(self._parts())
        if self.weights is None:
            return np.ones(n_parts)
        expected = f"weights must be one number for each of {n_parts} kernels"
        try:
            weights = np.asarray(self.weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{expected}, got {short(self.weights)}") from None
        if weights.shape != (n_parts,):
            raise ValueError(f"{expected}, got shape {weights.shape}")
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(f"weights must be finite and >= 0, so that the sum is a kernel, got {self.weights!r}")
        return weights


class Product(_Composite):
    r"""Product of kernels, :math:`K(x, y) = \prod_i K_i(x, y)`.

    Two objects are similar only if they are similar under all kernels. There is no method ``features``: a product
    has too many features, one for each way to choose a feature of every kernel.

    Parameters
    ----------
    kernels : list of kernels
        Any callables ``k(X, Y=None) -> (n, m)``. In `set_params`, kernel i (counted from 0) is named ``k{i}``
        and its parameters ``k{i}__name``.

    Examples
    --------
    >>> from similia.kernels import Product, Spectrum
    >>> Product([Spectrum(k=1), Spectrum(k=2)])(["ACA", "AC"])
    array([[10.,  3.],
           [ 3.,  2.]])
    """

    _noun = "product"

    def __init__(self, kernels: list[Any]) -> None:
        self.kernels = kernels

    def _combined(self, values: Iterable[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        return reduce(lambda a, b: np.multiply(a, b, out=a, where=np.isfinite(a)), values)  # not inf * 0 = nan


class Normalized(Kernel):
    r"""Normalised version of another kernel, :math:`K(x, y) / \sqrt{K(x, x) K(y, y)}`.

    An object with K(x, x) = 0 has similarity 0 to all others and, if Y is not given, 1 to itself.

    Parameters
    ----------
    kernel : kernel
        Any callable ``k(X, Y=None) -> (n, m)`` with finite k(x, x) >= 0. In `set_params`, the parameters of `kernel`
        are named ``kernel__name``.

    Examples
    --------
    >>> from similia.kernels import Normalized, Spectrum
    >>> Normalized(Spectrum(k=1))(["AAAA", "AT", ""]).round(2)
    array([[1.  , 0.71, 0.  ],
           [0.71, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def as_objects(self, X: Any) -> Any:
        check_kernel(self.kernel)
        return as_objects(self.kernel, X)

    def decided(self, X: Any) -> Any:
        """Return this kernel with the data-dependent settings of its kernel replaced by their values for `X`."""
        found = decided(self.kernel, X)
        return self if found is self.kernel else Normalized(found)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        Y = None if Y is None else as_second(self.as_objects, Y)
        K = _gram(self.kernel, X, Y)
        kxx = kyy = self._squared_norms(X, "X")
        if Y is not None:  # X decides settings, as in k(x, y), unless all values are 0 anyway
            kyy = (self.decided(X) if kxx.any() else self)._squared_norms(Y, "Y")
        scale_by_norms(K, kxx, kyy, same=Y is None)
        return K

    def _compared(self, X: Any) -> dict[str, str]:
        return compared(self.kernel, X)

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        return np.ones(n_objects(self.as_objects(X)))

    def _self_values(self, X: Any) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        squares = self._squared_norms(X, "X")
        values = self_values(self.kernel, X) if _may_differ(self.kernel) else squares
        return values / np.where(squares > 0, squares, np.inf)

    def _precision(self, X: Any) -> float:
        return precision(self.kernel, X)

    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        """Return the explicit features of `kernel`, each row divided by sqrt(kernel(x, x)), shape (n, n_features)."""
        X = self.as_objects(X)
        features = _features(self.kernel, "kernel", X, n_features).copy()
        divide_by_norms(features, self._squared_norms(X, "X"))
        return features

    def _squared_norms(self, X: Any, name: str) -> npt.NDArray[np.float64]:
        values = diagonal(self.kernel, X)
        good = np.isfinite(values) & (values >= 0)
        if not good.all():
            i = int(np.argmin(good))
            raise BadValue(i, f"has kernel {values[i]} with itself", "a finite number >= 0", collection=name)
        return values


def _may_differ(kernel: Any) -> bool:
    """Return whether the `self_values` of a kernel may differ from its `diagonal`."""
    return any(map(_may_differ, kernel.kernels)) if isinstance(kernel, _Composite) else hasattr(kernel, "_self_values")


def _gram(kernel: Any, X: Any, Y: Any) -> npt.NDArray[np.float64]:
    """Return the kernel of each object of `X` with each of `Y` (`X` if None) as a new float64 array."""
    return np.array(evaluate(kernel, X, Y), dtype=np.float64)


def _features(kernel: Any, name: str, X: Any, n_features: int) -> sp.csr_array:
    """Return the explicit features of a kernel, or raise if it has none; `name` appears in the message."""
    if not hasattr(kernel, "features"):
        raise TypeError(f"{name} ({kernel!r}) has no explicit features; similia.Nystroem makes vectors with any kernel")
    return kernel.features(X, n_features)
