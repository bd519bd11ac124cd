r"""Vectors on the unit hypersphere, their versines 1 - cos, and kernels that are functions of the angle.

.. math:: x \mapsto \sqrt{x / \textstyle\sum_j x_j} \;\text{(proportions)} \quad\text{or}\quad x / \|x\|,
          \qquad u(x, y) = 1 - \cos\theta = 1 - x^T y = \tfrac12 \|x - y\|^2.

The kernels are computed from the versine u, not from the cosine: they are steep where u is small, and there the
rounding error of the cosine, which is near 1, is too large. Cost of a block: one matrix product and one pass over it.

Versines are computed tile by tile of their matrix, by one thread while a tile is in cache: the inner products, the
versines, the small versines once more from differences of rows, and the mirrored tile if the matrix is symmetric. An
entry of dense rows depends on these two rows only, and exchanging them does not change it (see `core.products`). With
sparse rows, its last bits also depend on the other rows of the second matrix. For sparse rows, columns that many rows
use are multiplied as a dense matrix, the others by lists of the rows in each column; this is five times as fast as
scipy's product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from similia.core import lanes as lane
from similia.core.config import rows_per_block, run_tasks, settings
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.products import panels, row_product
from similia.core.validation import BadType, BadValue, as_array, check_choice, not_2d, not_real, part_from, too_narrow
from similia.kernels.counts import _dense_columns, _postings, _scatter_dense
from similia.objects import concatenate, take
from similia.objects.sequences import as_csr
from similia.similarity import Kernel
from similia.sources.dask import each_block
from similia.sources.source import Source

Mapping = str | None
ZeroRows = str
_UNIT = {"float64": 1e-6, "float32": 1e-4}  # how far from 1 the norm of a row may be with mapping=None
_BLOCK = 2**18  # bytes of a block of rows; it stays in cache from one step of the map to the next
_ROWS = 2**12  # read from a source at once
_EXTREME = 1e100  # a row with an entry above it, or with all entries below its reciprocal, is scaled first
_SMALL = 1e-3  # smaller versines are recomputed as |x - y|^2 / 2, since 1 - x.y is too imprecise
_TILE = 256  # rows
_TILE_COLUMNS = 2048

Floats = npt.NDArray[np.float64]
# Called with (start, stop, first, last): return the inner products of these rows of A and of B; refine their versines.
_Product = Callable[[int, int, int, int], npt.NDArray[np.floating]]
_Refine = Callable[[int, int, int, int], None]


def to_hypersphere(X: Any, mapping: Mapping = "auto", *, zero_rows: ZeroRows = "raise", name: str = "X") -> Any:
    r"""Map the rows of `X` to the unit sphere.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_rows, n), n >= 2
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        "sqrt": divide each row by its sum, which gives proportions, and take the square roots of the proportions; for
        non-negative data such as counts. The angle between two rows is then half the Fisher-Rao distance (a standard
        distance between probability distributions) of their proportions. "projection": divide each row by its Euclidean
        norm. "auto": "sqrt" if no entry is negative, else "projection". None: leave the rows unchanged; raise an error
        unless their norms are 1 (within 1e-6, or 1e-4 for float32).
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat a row of zeros, which has no direction: raise an error, or set all its columns to 1 / sqrt(n).
    name : str, default="X"
        Name of `X` in error messages.

    Returns
    -------
    ndarray or csr_array of float32 or float64, shape (n_rows, n)
        float32 if `X` is float32, otherwise float64. With ``mapping=None``, the result may be `X` itself.

    Raises
    ------
    ValueError
        If `X` is not a real 2-D array of at least one row; if an entry is NaN or infinite (or negative, with "sqrt");
        if a row is zero (with "raise"); or if a row is not a unit vector (with ``mapping=None``). The message names the
        row.

    Notes
    -----
    Sums are computed in float64 for any dtype. Very large numbers in a row do not overflow, and very small numbers do
    not become 0.

    References
    ----------
    Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018, Section 2.

    Examples
    --------
    >>> from similia.kernels.hypersphere import to_hypersphere
    >>> to_hypersphere([[4, 0, 12], [1, 1, 2]]).round(3)
    array([[0.5  , 0.   , 0.866],
           [0.5  , 0.5  , 0.707]])
    >>> to_hypersphere([[3.0, -4.0]])
    array([[ 0.6, -0.8]])
    """
    rows = as_rows(X, name)
    return _mapped(rows, resolve_mapping(rows, mapping), zero_rows, name)


def as_rows(X: Any, name: str = "X", least: int = 2) -> Any:
    """Return `X` as a float32 or float64 array or csr_array; raise unless it is a real, finite table.

    It must have at least one row and `least` columns.
    """
    sparse = sp.issparse(X)
    given, X = X, X if sparse else _as_numbers(X, name)
    if np.issubdtype(X.dtype, np.complexfloating):
        raise not_real(name)
    if X.ndim != 2:
        raise not_2d(name, X.shape, given)
    if X.shape[0] == 0:
        raise BadValue(None, "is empty: found 0 vectors", "at least one", collection=name)
    if X.shape[1] < least:
        raise too_narrow(name, X.shape, least)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if sparse:
        X = as_csr(X)
    if wrong := _first(X, lambda values: ~np.isfinite(values)):
        i, j, value = wrong
        expected, remedy = "finite numbers, no NaN or infinity", "drop or impute that row"
        raise BadValue(i, f"is {value}", expected, remedy, collection=name, place=f"column {j}")
    return X if sparse else np.ascontiguousarray(X)  # so that numpy always sums rows in the same order


def _as_numbers(X: Any, name: str) -> npt.NDArray:
    """Return `X` as an array of numbers; raise if it holds masked entries or anything but numbers."""
    X = as_array(X, name)
    try:
        if X.dtype.kind not in "biufc":
            if X.dtype.kind != "O" or any(isinstance(value, str | bytes) for value in X.ravel()):
                raise ValueError(f"found {X.dtype}")
            X = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        found = f"cannot be read as a table of numbers ({error})"
        kind = BadType if isinstance(error, TypeError) else BadValue
        raise kind(None, found, remedy="drop or encode what is not a number", collection=name) from None
    return X


def resolve_mapping(X: Any, mapping: Mapping) -> Mapping:
    """Return `mapping`; for "auto", return "sqrt" if no entry of `X` is negative, and otherwise "projection"."""
    check_choice(mapping, "mapping", ("auto", "sqrt", "projection", None))
    if mapping != "auto":
        return mapping
    return "projection" if _values(X).min(initial=0) < 0 else "sqrt"


def mapped_by(owner: Any, X: Any, mapping: Mapping) -> Any:
    """Return the rows of `X` as `to_hypersphere` maps them with the `zero_rows` of `owner`, a kernel or an estimator.

    Errors about parameters name `owner`.
    """
    rows = as_rows(X)
    return _mapped(rows, resolve_mapping(rows, mapping), owner.zero_rows, "X", owner)


def map_pair(X: Any, Y: Any, kernel: SphereKernel) -> tuple[Any, Any]:
    """Return the rows of `X` and of `Y` (None if `Y` is None), mapped to the unit sphere as the kernel maps them.

    If `Y` (training rows or landmarks) is given, "auto" depends on `Y` only, otherwise on `X`.
    """
    if Y is None:
        return mapped_by(kernel, X, kernel.mapping), None
    A = as_rows(X)
    B = as_rows(Y, "Y")
    if A.shape[1] != B.shape[1]:
        raise BadValue(None, f"has {A.shape[1]} features and Y has {B.shape[1]}", "as many in both")
    mapping = resolve_mapping(B, kernel.mapping)
    return _mapped(A, mapping, kernel.zero_rows, "X", kernel), _mapped(B, mapping, kernel.zero_rows, "Y", kernel)


def versines(X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
    r"""Return the versine, 1 - cosine of the angle, of each pair of unit rows (dense or sparse), shape (n_x, n_y).

    The rows are as `to_hypersphere` returns them; without `Y`, those of `X` are compared with each other. Values are
    float64, from 0 (for equal rows) to 2. Values below 1e-3 are recomputed as :math:`\|x - y\|^2 / 2` from differences
    in float64, also for float32 rows, so they are as precise as the rows. The others come from one matrix product,
    which for float32 rows has a rounding error of 1e-7.

    Examples
    --------
    >>> from similia.kernels.hypersphere import to_hypersphere, versines
    >>> versines(to_hypersphere([[1.0, 0.0], [1.0, 1e-6], [0.0, 1.0]], "projection"))
    array([[0.00000e+00, 5.00000e-13, 1.00000e+00],
           [5.00000e-13, 0.00000e+00, 9.99999e-01],
           [1.00000e+00, 9.99999e-01, 0.00000e+00]])
    """
    if sp.issparse(X) or sp.issparse(Y):
        return _of_sparse(X, Y)
    return _of_dense(np.asarray(X), None if Y is None else np.asarray(Y))


class SphereKernel(Kernel):
    """Base class of kernels that depend only on the angle between two vectors and on the number of features.

    Subclasses have the parameters `mapping` and `zero_rows` of `to_hypersphere` and implement `_of_versines`.
    """

    mapping: Mapping
    zero_rows: ZeroRows
    _takes_sparse = True

    def as_objects(self, X: Any) -> Any:
        return as_rows(X)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the kernel of each row of `X` with each row of `Y` (`X` if not given), shape (n_x, n_y).

        With ``mapping="auto"``, `Y` (`X` if not given) determines the mapping of both. An estimator with this kernel
        chooses the mapping once, from all training objects.
        """
        A, B = map_pair(X, Y, self)
        self._check(A.shape[1])
        return self._of_versines(versines(A, B), A.shape[1])

    def _check(self, n: int) -> None:
        """Raise if the parameters do not suit vectors of `n` features; this runs before the matrix product."""

    def decided(self, X: Any) -> Self:
        """Return this kernel with ``mapping="auto"`` replaced by the mapping that it chooses for `X`."""
        if isinstance(X, Source):
            X = X.take([0]) if self.mapping != "auto" else concatenate([*each_block(X, _ROWS, _lowest_row)])
        mapping = resolve_mapping(as_rows(X), self.mapping)
        return self if mapping == self.mapping else clone(self).set_params(mapping=mapping)

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        return np.ones(as_rows(X).shape[0])

    def _precision(self, X: Any) -> float:
        return float(np.finfo(as_rows(take(X, [0])).dtype).eps)

    def _of_versines(self, V: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
        """Turn the versines V of vectors of `n` features into kernel values, in place, and return V."""
        raise NotImplementedError


def _lowest_row(part: Any, start: int) -> npt.NDArray:
    """Return the row with the smallest entry of `part`, shape (1, n); the sign of this entry decides "auto"."""
    with part_from(start):
        rows = as_rows(part)
    values = _values(rows)
    if not values.size:  # a sparse matrix of zeros
        return rows[[0]].toarray()
    place = int(values.argmin())
    if not sp.issparse(rows):
        return rows[place // rows.shape[1]][None]
    return rows[[int(np.searchsorted(rows.indptr, place, side="right")) - 1]].toarray()


class Cosine(SphereKernel):
    r"""Cosine of the angle between rows mapped to unit vectors, :math:`K(x, y) = \hat x^T \hat y`.

    Parameters
    ----------
    mapping : {"auto", "sqrt", "projection", None}, default="auto"
        How rows become unit vectors. "sqrt": divide each row by its sum, then take square roots. "projection": divide
        each row by its Euclidean norm. "auto": "sqrt" if no entry is negative, otherwise "projection". None: the rows
        are unit vectors already. With "sqrt", the kernel of two rows of proportions p and q is their
        Bhattacharyya coefficient :math:`\sum_j \sqrt{p_j q_j}`.
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat rows of zeros: raise an error, or set all their columns to 1 / sqrt(n), for n columns.

    References
    ----------
    Zhao & Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM", 2018, Section 2.

    Examples
    --------
    >>> from similia.kernels.hypersphere import Cosine
    >>> Cosine()([[1, 1, 0], [0, 1, 1], [0, 0, 5]]).round(4)
    array([[1.    , 0.5   , 0.    ],
           [0.5   , 1.    , 0.7071],
           [0.    , 0.7071, 1.    ]])
    """

    def __init__(self, mapping: Mapping = "auto", zero_rows: ZeroRows = "raise") -> None:
        self.mapping = mapping
        self.zero_rows = zero_rows

    def _of_versines(self, V: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.float64]:
        return np.subtract(1.0, V, out=V)


def _mapped(X: Any, mapping: Mapping, zero_rows: ZeroRows, name: str, owner: Any = None) -> Any:
    """Return finite rows mapped to the sphere, or raise and name the first row that cannot be mapped.

    The error also names `owner`, which has the parameters; None stands for a function that the user called.
    """
    check_choice(zero_rows, "zero_rows", ("raise", "uniform"))
    if mapping is None:
        _check_unit(X, name, owner)
        return X
    if mapping == "sqrt" and (negative := _first(X, lambda values: values < 0)):
        i, j, value = negative
        found = (
            f'is {value}, but the map is "sqrt" (as given, or chosen by "auto" for Y or training rows without negative '
            "entries), which takes no negative numbers"
        )
        raise BadValue(
            i, found, remedy=f"use {_with(owner, 'mapping', 'projection')}", collection=name, place=f"column {j}"
        )
    out = X.copy()
    zero: list[int] = []
    for rows in _blocks(X):
        block = _mapped_block(X[rows], mapping)
        zero.extend(rows.start + np.flatnonzero(_largest(block) == 0))
        if sp.issparse(X):
            out.data[X.indptr[rows.start] : X.indptr[rows.stop]] = block.data
        else:
            out[rows] = block
    if not zero:
        return out
    if zero_rows == "raise":
        found = f"is zero in all {X.shape[1]} columns and has no direction"
        remedy = f"drop it, or use {_with(owner, 'zero_rows', 'uniform')} to put 1 / sqrt(n) in each column"
        raise BadValue(zero[0], found, remedy=remedy, collection=name)
    return _with_uniform(out, zero, name)


def _mapped_block(block: Any, mapping: Mapping) -> Any:
    """Return a block of rows mapped to the sphere, in float64; rows of zeros stay unchanged."""
    block = block.astype(np.float64)
    largest = _largest(block)
    extreme = (largest > _EXTREME) | ((largest < 1 / _EXTREME) & (largest > 0))
    if extreme.any():
        _divide(block, np.where(extreme, largest, 1.0))
    values = _values(block)
    if mapping == "sqrt":
        _divide(block, _row_sums(block, values))
        np.sqrt(values, out=values)
    else:
        _divide(block, np.sqrt(_row_sums(block, np.square(values))))
    return block


def _with(owner: Any, name: str, value: str) -> str:
    """Return how a user writes a parameter of `owner` in Python, such as ``Cosine(zero_rows="uniform")``."""
    parameter = f'{name}="{value}"'
    return parameter if owner is None else f"{type(owner).__name__}({parameter})"


def _check_unit(X: Any, name: str, owner: Any) -> None:
    for rows in _blocks(X):
        block = X[rows]
        norms = np.sqrt(_row_sums(block, np.square(_values(block), dtype=np.float64)))
        tolerance = _UNIT[X.dtype.name]
        wrong = np.abs(norms - 1) > tolerance
        if wrong.any():
            i = int(np.argmax(wrong))
            expected = f"1 within {tolerance:g}, as mapping=None leaves rows unchanged"
            remedy = f"use {_with(owner, 'mapping', 'projection')} to divide by the norm"
            raise BadValue(rows.start + i, f"has norm {norms[i]:.8g}", expected, remedy, collection=name)


def _with_uniform(X: Any, zero: list[int], name: str) -> Any:
    """Return `X` with 1 / sqrt(n) in all n columns of the rows with indices `zero`."""
    n = X.shape[1]
    if not sp.issparse(X):
        X[zero] = 1 / np.sqrt(n)
        return X
    if 16 * n * len(zero) > settings().max_memory:
        rows = f"{len(zero)} zero rows (the first is {zero[0]})"
        found = f"has {rows}, which zero_rows='uniform' would fill in {n} columns each, beyond max_memory"
        raise BadValue(None, found, remedy="drop them", collection=name)
    lengths = np.zeros(X.shape[0], dtype=np.int64)
    lengths[zero] = n
    values = np.full(n * len(zero), 1 / np.sqrt(n), dtype=X.dtype)
    filled = sp.csr_array((values, np.tile(np.arange(n), len(zero)), np.append(0, np.cumsum(lengths))), shape=X.shape)
    return sp.csr_array(X + filled)


def _blocks(X: Any) -> list[slice]:
    """Divide the rows of `X` into blocks that fit into the cache; return their slices."""
    width = X.shape[1] if not sp.issparse(X) else max(1, X.nnz // X.shape[0])
    step = rows_per_block(8 * width, at_most=max(1, _BLOCK // (8 * width)))
    return [slice(start, min(X.shape[0], start + step)) for start in range(0, X.shape[0], step)]


def _values(X: Any) -> Any:
    return X.data if sp.issparse(X) else X


def _largest(X: Any) -> npt.NDArray[np.float64]:
    values = np.abs(_values(X))
    if not sp.issparse(X):
        return values.max(axis=1)
    return np.maximum.reduceat(np.append(values, 0.0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)


def _divide(X: Any, divisors: npt.NDArray[np.float64]) -> None:
    """Divide each row of `X`, in place, by its divisor; a row with divisor 0 stays unchanged."""
    divisors = np.where(divisors > 0, divisors, 1.0)
    if sp.issparse(X):
        X.data /= np.repeat(divisors, np.diff(X.indptr))
    else:
        X /= divisors[:, None]


def _first(X: Any, wrong: Callable[[npt.NDArray], npt.NDArray]) -> tuple[int, int, Any] | None:
    """Return (row, column, value) of the first entry for which `wrong` is true, or None."""
    for rows in _blocks(X):
        block = X[rows]
        bad = wrong(_values(block))
        if not bad.any():  # finding no place by argwhere takes 30 times as long
            continue
        place = int(bad.argmax())
        if not sp.issparse(X):
            row, column = divmod(place, block.shape[1])
            return rows.start + row, column, block[row, column]
        row = int(np.searchsorted(block.indptr, place, side="right")) - 1
        return rows.start + row, int(block.indices[place]), block.data[place]
    return None


def _row_sums(X: Any, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the row sums of `X` with its stored entries (all entries, if `X` is dense) replaced by `values`."""
    if not sp.issparse(X):
        return values.sum(axis=1)
    # The appended 0 is a segment of its own: as a term of the last row, it would change the order of that sum.
    return np.add.reduceat(np.append(values, 0.0), X.indptr)[:-1] * (np.diff(X.indptr) > 0)


def _of_dense(A: npt.NDArray[np.floating], B: npt.NDArray[np.floating] | None) -> Floats:
    """Return the versine, 1 - cosine, of each row of `A` and each row of `B` (`A` if None), all dense unit vectors."""
    A = np.ascontiguousarray(A)
    same = B is None
    B = A if B is None else np.ascontiguousarray(B)
    A = A.astype(B.dtype, copy=False)  # the dtype of the landmarks, so that no row of A affects another
    scale_a = _reciprocal_norms(A)
    scale_b = scale_a if same else _reciprocal_norms(B)
    V = np.empty((len(A), len(B)))

    starts = range(0, len(B), _TILE_COLUMNS)
    others = {first: panels(B[first : first + _TILE_COLUMNS].T) for first in starts}

    def product(start: int, stop: int, first: int, last: int) -> npt.NDArray[np.floating]:
        return row_product(A[start:stop], others[first].first(last - first), threads=False)

    def refine(start: int, stop: int, first: int, last: int) -> None:
        _refine_dense(A, scale_a, B, scale_b, start, stop, first, last, same, V)

    _run_tiles(product, refine, scale_a, scale_b, V, same, _TILE_COLUMNS, A.shape[1])
    return V


def _of_sparse(X: Any, Y: Any) -> Floats:
    """Return the versine of each row of `X` and each row of `Y` (`X` if None), unit vectors; one or both are sparse."""
    same = Y is None
    A = as_csr(X)
    B = A if same else as_csr(Y)
    A, dtype = A.astype(B.dtype, copy=False), B.dtype
    a = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data.astype(np.float64))
    b = a if same else (B.indptr.astype(np.int64), B.indices.astype(np.int64), B.data.astype(np.float64))
    scale_a = _reciprocal_norms(A)
    scale_b = scale_a if same else _reciprocal_norms(B)
    V = np.empty((A.shape[0], B.shape[0]))
    # B alone decides which columns are dense, so that results do not depend on the block that a row of A is in.
    dense = _dense_columns(b[1], b[1], A.shape[1], B.shape[0] ** 2)
    n_dense = int(dense.max(initial=-1)) + 1
    b_dense = np.zeros((B.shape[0], n_dense), dtype)
    _scatter_dense(*b, dense, 0, b_dense)
    postings = _postings(*b, dense)
    others = panels(b_dense.T)

    def product(start: int, stop: int, first: int, last: int) -> npt.NDArray[np.floating]:
        a_dense = np.zeros((stop - start, n_dense), dtype)
        _scatter_dense(*a, dense, start, a_dense)
        out = row_product(a_dense, others.first(last), threads=False).astype(np.float64, copy=False)
        _add_rare(*a, dense, start, *postings, out)
        return out

    def refine(start: int, stop: int, first: int, last: int) -> None:
        _refine_sparse(*a, scale_a, *b, scale_b, start, stop, last, same, V)

    _run_tiles(product, refine, scale_a, scale_b, V, same, V.shape[1], max(1, A.nnz // A.shape[0]))
    return V


def _run_tiles(
    product: _Product, refine: _Refine, scale_a: Floats, scale_b: Floats, V: Floats, same: bool, width: int, work: int
) -> None:
    """Fill V with versines, tile by tile; if V is symmetric (`same`), mirror the tiles on and below the diagonal.

    `width` is the number of columns of a tile; `work`, the multiplications per entry, decides if threads start.
    """
    n, m = V.shape
    tiles = [
        (start, min(n, start + _TILE), first, min(start + _TILE if same else m, m, first + width))
        for start in range(0, n, _TILE)
        for first in range(0, min(n, start + _TILE) if same else m, width)
    ]

    def fill(number: int) -> None:
        start, stop, first, last = tiles[number]
        if _from_products(product(start, stop, first, last), start, first, scale_a, scale_b, V):
            refine(start, stop, first, last)
        if same:
            _mirror(start, stop, first, last, V)

    run_tasks(fill, reversed(range(len(tiles))), n * m * work)  # long rows first, so that threads finish together


def _reciprocal_norms(X: Any) -> Floats:
    """Return 1 / norm of each row in float64, since unit rows rounded to float32 have norms slightly off 1."""
    if sp.issparse(X):
        return 1 / np.sqrt(_row_sums(X, np.square(X.data, dtype=np.float64)))
    return 1 / np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))


@njit()
def _from_products(P, start, first, scale_a, scale_b, V):  # type: ignore[no-untyped-def]
    """Write versines of inner products P to V from (`start`, `first`) on; count the imprecise ones (below _SMALL)."""
    n_small = 0
    for i in range(P.shape[0]):
        row, out, scale = P[i], V[start + i], scale_a[start + i]
        for j in range(P.shape[1]):
            u = 1.0 - row[j] * (scale * scale_b[first + j])
            u = min(max(u, 0.0), 2.0)
            n_small += u < _SMALL
            out[first + j] = u
    return n_small


@njit()
def _mirror(start, stop, first, last, V):  # type: ignore[no-untyped-def]
    """Copy a tile of V from below the diagonal to its mirror image above, in squares that stay in cache."""
    for i0 in range(start, stop, 32):
        for j0 in range(first, last, 32):
            for j in range(j0, min(j0 + 32, last)):
                for i in range(max(i0, j + 1), min(i0 + 32, stop)):
                    V[j, i] = V[i, j]


@njit()
def _half_square(x, at, scale_x, y, to, scale_y, n, room, x_rest, y_rest):  # type: ignore[no-untyped-def]
    """Return |scale_x a - scale_y b|^2 / 2 for the vectors a = ``x[at : at + n]`` and b = ``y[to : to + n]``.

    The result is 0 for equal vectors and precise for similar ones, as a - b then has no rounding error. The order
    of the additions depends on n only. `room`, `x_rest` and `y_rest` are work space.
    """
    scale, slack, total = lane.splat(scale_x), lane.splat(scale_x - scale_y), lane.splat(0.0)
    whole = n - n % LANES
    for k in range(0, whole, LANES):
        a, b = lane.widened(lane.load(x, at + k)), lane.widened(lane.load(y, to + k))
        difference = lane.multiply_add(a - b, scale, b * slack)
        total = lane.multiply_add(difference, difference, total)
    if whole < n:
        x_rest[: n - whole] = x[at + whole : at + n]
        y_rest[: n - whole] = y[to + whole : to + n]
        a, b = lane.load(x_rest, 0), lane.load(y_rest, 0)
        difference = lane.multiply_add(a - b, scale, b * slack)
        total = lane.multiply_add(difference, difference, total)
    lane.store(room, 0, total)
    half = LANES // 2
    while half:
        for k in range(half):
            room[k] += room[half + k]
        half //= 2
    return 0.5 * room[0]


@njit()
def _refine_dense(A, scale_a, B, scale_b, start, stop, first, last, same, V):  # type: ignore[no-untyped-def]
    """Recompute imprecise versines (below _SMALL) of a tile from row differences; if `same`, not above the diagonal."""
    n, x, y = A.shape[1], A.reshape(-1), B.reshape(-1)
    room, x_rest, y_rest = np.empty(LANES), np.zeros(LANES), np.zeros(LANES)
    for j0 in range(first, last, 16):  # a few rows of B at a time, to stay in cache
        for i in range(start, stop):
            for j in range(j0, min(j0 + 16, i + 1 if same else last, last)):
                if V[i, j] < _SMALL:
                    V[i, j] = _half_square(x, i * n, scale_a[i], y, j * n, scale_b[j], n, room, x_rest, y_rest)


@njit()
def _add_rare(offsets, columns, values, dense, start, starts, rows, data, out):  # type: ignore[no-untyped-def]
    """Add the terms of sparse columns (`dense` < 0) to the inner products `out`; `rows` must ascend within a column."""
    for i in range(len(out)):
        row, end = out[i], out.shape[1]
        for k in range(offsets[start + i], offsets[start + i + 1]):
            column, value = columns[k], values[k]
            if dense[column] < 0:
                for p in range(starts[column], starts[column + 1]):
                    if rows[p] >= end:
                        break
                    row[rows[p]] += value * data[p]


@njit()
def _refine_sparse(  # type: ignore[no-untyped-def]
    starts_a, columns_a, a, scale_a, starts_b, columns_b, b, scale_b, start, stop, last, same, V
):
    """Recompute the imprecise versines (below _SMALL) in rows `start` to `stop` - 1 of V from differences of rows.

    If `same`, entries above the diagonal are skipped. Two sparse rows are subtracted by merging their sorted columns.
    """
    for i in range(start, stop):
        for j in range(min(i + 1, last) if same else last):
            if V[i, j] < _SMALL:
                total, slack = 0.0, scale_a[i] - scale_b[j]
                p, q, end_p, end_q = starts_a[i], starts_b[j], starts_a[i + 1], starts_b[j + 1]
                while p < end_p and q < end_q:
                    c, e = columns_a[p], columns_b[q]
                    x = a[p] if c <= e else 0.0
                    y = b[q] if e <= c else 0.0
                    p += c <= e
                    q += e <= c
                    difference = (x - y) * scale_a[i] + y * slack
                    total += difference * difference
                for r in range(p, end_p):
                    total += (a[r] * scale_a[i]) ** 2
                for r in range(q, end_q):
                    total += (b[r] * scale_b[j]) ** 2
                V[i, j] = 0.5 * total
