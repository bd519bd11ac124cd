"""The Gram matrix of two collections of objects, for the statistics and tests that pool them."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.products import row_product
from similia.core.text import _short
from similia.core.validation import check_positive_int
from similia.objects import n_objects
from similia.objects.sequences import as_second
from similia.similarity import as_floats, as_objects, check_kernel, evaluate

Array = npt.NDArray[np.float64]


def pooled_gram(X: Any, Y: Any, kernel: Any, least: int) -> tuple[Array, int]:
    """Return a new Gram matrix of the objects of X, then of Y, and the number of those of X; or raise."""
    if isinstance(kernel, str):
        if kernel != "precomputed":
            raise ValueError(f'kernel must be a kernel, a fitted embedding or "precomputed", got {kernel!r}')
        K = np.array(as_floats(X, "X of kernel='precomputed' holds"), dtype=np.float64)
        if not isinstance(Y, Integral):
            raise TypeError(
                f"Y must be the number of objects of the first collection, since kernel='precomputed' takes one Gram "
                f"matrix X of both; got {type(Y).__name__} ({_short(Y)})"
            )
        n = check_positive_int(Y, "Y (with kernel='precomputed', the number of objects of the first collection)")
        if K.ndim != 2 or K.shape[0] != K.shape[1] or n > len(K):
            raise ValueError(
                f'kernel="precomputed" takes the square Gram matrix of both collections, the first of which has '
                f"Y={n} objects; got shape {K.shape}"
            )
        _check_sizes(n, len(K) - n, least)
        if not np.allclose(K, K.T, equal_nan=True):
            raise ValueError('the matrix of kernel="precomputed" is not symmetric, as a Gram matrix is')
    else:
        if not hasattr(kernel, "transform") or isinstance(kernel, type):
            check_kernel(kernel)
        n, m = n_objects(X), as_second(n_objects, Y)
        _check_sizes(n, m, least)
        K = np.empty((n + m, n + m))
        _fill_blocks(K, X, Y, kernel, n)
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"the kernel is {K[i, j]} for the pooled objects {i} and {j}, expected finite numbers")
    return K, n


def _fill_blocks(K: Array, X: Any, Y: Any, kernel: Any, n: int) -> None:
    if hasattr(kernel, "transform"):
        A, B = (as_floats(Z, "the embedding returned") for Z in (kernel.transform(X), as_second(kernel.transform, Y)))
        Z = np.concatenate([A, B]).astype(np.float64)
        row_product(Z, Z.T, K)
    else:
        X, Y = as_objects(kernel, X), as_second(partial(as_objects, kernel), Y)
        K[:n, :n], K[n:, n:], K[:n, n:] = evaluate(kernel, X), evaluate(kernel, Y), evaluate(kernel, X, Y)
        K[n:, :n] = K[:n, n:].T


def _check_sizes(n: int, m: int, least: int) -> None:
    for name, size in (("X", n), ("Y", m)):
        if size < least:
            raise ValueError(f"{name} has {size} objects, expected at least {least}")
