"""Find objects that are identical byte for byte, to keep them on one side of a fold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from similia.core.errors import BadValue
from similia.objects.graph_batch import GraphBatch
from similia.objects.sequences import n_objects
from similia.objects.series import SeriesBatch
from similia.objects.sets import SetBatch
from similia.objects.strings import StringBatch


def identical(batch: Any) -> npt.NDArray[np.int64]:
    """Return a number for each object, shape (n,), equal for identical objects; numbers count first appearances from 0.

    Parameters
    ----------
    batch : batch, ndarray, sparse matrix or sequence
        Objects in the layout of their kind. The order of points in a set does not matter. Equal graphs with different
        node numbers are not recognised. Objects of an unknown kind are identical if they print the same.
    """
    numbers: dict[bytes, int] = {}
    found = [numbers.setdefault(_digest(part), len(numbers)) for part in _bytes(batch)]
    return np.array(found, dtype=np.int64)


def with_groups(same: npt.NDArray[np.int64], groups: Any) -> npt.NDArray[np.int64]:
    """Return the group of each object after joining groups that share identical objects (equal numbers in `same`).

    Parameters
    ----------
    same : ndarray of int64, shape (n,)
        Result of `identical`.
    groups : array-like of shape (n,)
        Names or numbers of the groups.
    """
    n, groups = len(same), np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups must be one name or number per object, shape ({n},), got shape {groups.shape}")
    missing = np.array([name is None or name != name for name in groups.tolist()])
    if missing.any():
        i = int(np.argmax(missing))
        raise BadValue(
            i, f"is {groups[i]}", "a name or number", "give an object alone its own group", collection="groups"
        )
    given = np.unique(groups.astype(str) if groups.dtype == object else groups, return_inverse=True)[1]
    rows = np.arange(n)
    links = sp.coo_array((np.ones(2 * n), (np.r_[rows, rows], np.r_[n + same, 2 * n + given])), shape=(3 * n, 3 * n))
    found: npt.NDArray[np.int64] = connected_components(links, directed=False)[1][:n].astype(np.int64)
    return found


def are_among(batch: Any, others: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of the objects of a batch that occur in another batch of the same layout."""
    met = {_digest(part) for part in _bytes(others)}
    return np.array([_digest(part) in met for part in _bytes(batch)], dtype=bool)


def _digest(data: bytes) -> bytes:
    return data if len(data) < 32 else hashlib.blake2b(data, digest_size=32).digest()


def _bytes(batch: Any) -> Iterator[bytes]:
    n = n_objects(batch)
    if isinstance(batch, GraphBatch):
        yield from (_graph_bytes(batch, g) for g in range(n))
    elif isinstance(batch, StringBatch | SeriesBatch | SetBatch):
        for i in range(n):
            part = batch.values[batch.offsets[i] : batch.offsets[i + 1]]
            if isinstance(batch, SetBatch):
                part = part[np.lexsort(part.T)]
            yield _plain(part)
    elif sp.issparse(batch):
        rows = sp.csr_array(batch, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        for first, last in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            yield rows.indices[first:last].astype(np.int64).tobytes() + _plain(rows.data[first:last])
    elif isinstance(batch, np.ndarray) and batch.dtype != object:
        yield from map(_plain, batch)
    else:
        yield from map(_object_bytes, batch)


def _object_bytes(x: Any) -> bytes:
    """Return the bytes of an array, the printed form of another object, or a unique key if it has none."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return _plain(x)
    own = type(x).__repr__ is object.__repr__
    return (f"{id(x)}" if own else repr(x)).encode("utf-8", "replace")


def _plain(part: npt.NDArray) -> bytes:
    """Return the bytes of numbers, with -0 as 0."""
    part = np.asarray(part)
    return np.ascontiguousarray(part + 0 if part.dtype.kind in "fc" else part).tobytes()


def _graph_bytes(batch: GraphBatch, g: int) -> bytes:
    first, last = batch.node_offsets[g : g + 2]
    arcs = slice(batch.indptr[first], batch.indptr[last])
    found = [batch.indptr[first : last + 1] - batch.indptr[first], batch.indices[arcs] - first]
    for values, where in (
        (batch.node_labels, slice(first, last)), (batch.node_attributes, slice(first, last)),
        (batch.edge_labels, arcs), (batch.edge_weights, arcs),
    ):  # fmt: skip
        found.extend([] if values is None else [values[where]])
    return b"|".join(map(_plain, found))
