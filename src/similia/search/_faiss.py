"""Build, search and serialise the approximate binary indexes of faiss.

The labels that faiss stores are row numbers. Building runs in one thread, because the last bits of k-means
depend on the order in which threads finish. Searching uses all cores.

`HammingIndex` documents the recall and speed of the defaults. With four times as many lists, an inverted file took ten
times as long to build (7 s instead of 0.7 s for 100,000 codes), and its recall was lower at equal speed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from similia.core.config import n_threads, rows_per_block
from similia.core.validation import Ids, generator

if TYPE_CHECKING:
    from similia.search.hamming_index import HammingIndex

Codes = npt.NDArray[np.uint8]
Distances = npt.NDArray[np.int32]

_FAR, _NO_ID = np.iinfo(np.int32).max, np.iinfo(np.int64).max
_SPARE = 8  # request this many rows beyond twice k, so that a second search is rare
_TRAINED_ON = 64  # training rows of k-means per list
_ROUNDS = 10  # iterations of k-means
_CLASSES = {"ivf": "IndexBinaryIVF", "multihash": "IndexBinaryMultiHash"}

_forked = False  # whether a parent of this process loaded the OpenMP of faiss


def _note_fork() -> None:
    global _forked
    _forked = _forked or "faiss" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def threads(n: int) -> Iterator[Any]:
    """Yield the faiss module, limited to `n` threads, or to one in a forked child, which lacks its parent's threads."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if _forked else n)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


def empty_structure(index: HammingIndex) -> Any:
    """Return an empty faiss structure of the index's kind; for "ivf", k-means finds the cell centres from the rows."""
    rows, n = index._rows, len(index._rows)
    n_bits, n_hashes = 8 * rows.width, int(index.n_hashes)  # faiss takes no integers of numpy
    with threads(1) as faiss:
        if index.kind == "multihash":  # tables of disjoint runs of log2(n) bits
            bits_of_hash = max(1, min(n_bits // n_hashes, round(np.log2(max(2, n)))))
            structure = faiss.IndexBinaryMultiHash(n_bits, n_hashes, bits_of_hash)
            structure.nflip = 1
            return structure
        n_lists = min(n, round(np.sqrt(n)) if index.n_lists is None else int(index.n_lists))
        random = generator(index.random_state)
        sample = np.sort(random.choice(np.flatnonzero(~rows.dead), min(n, _TRAINED_ON * n_lists), replace=False))
        quantizer = faiss.IndexBinaryFlat(n_bits)
        structure = faiss.IndexBinaryIVF(quantizer, n_bits, n_lists)
        structure.own_fields = True
        quantizer.this.disown()
        structure.cp.niter, structure.cp.seed = _ROUNDS, int(random.integers(2**31))
        structure.cp.min_points_per_centroid, structure.cp.max_points_per_centroid = 1, _TRAINED_ON
        structure.train(rows.take(sample))
        return structure


def is_of(index: Any, kind: str) -> bool:
    """Return whether a faiss structure is one of this kind of index."""
    return type(index).__name__ == _CLASSES.get(kind)


def add(index: Any, codes: Codes) -> None:
    """Append codes to a faiss structure."""
    with threads(1):
        index.add(np.ascontiguousarray(codes))


def search(
    index: Any, queries: Codes, k: int, ids: Ids, dead: npt.NDArray[np.bool_], n_probes: int
) -> tuple[Distances, Ids, Ids]:
    """Return distances and ids of the rows nearest to each query, both (q, k), and how many were found, (q,).

    Results are ordered by distance, then id. Rows marked in `dead` are skipped. Of the rows at the k-th distance, those
    with the smallest ids are returned: if the first search may have missed some of these rows, a second search within
    the k-th distance finds them. Entries beyond the number found are fillers.
    """
    if hasattr(index, "nprobe"):
        index.nprobe = min(int(n_probes), index.nlist)
    wanted = min(index.ntotal, 2 * k + min(int(dead.sum()), k) + _SPARE)
    with threads(n_threads()):
        distances, rows = index.search(queries, wanted)
    gone = (rows < 0) | dead[rows]
    found = ids[rows]
    last = np.where(rows[:, -1] < 0, -1, distances[:, -1])  # rows farther than this were not found; -1 if all rows were
    distances[gone], found[gone] = _FAR, _NO_ID
    order = np.lexsort((found, distances))[:, :k]
    distances, found = np.take_along_axis(distances, order, axis=1), np.take_along_axis(found, order, axis=1)
    n_found = np.minimum((~gone).sum(axis=1), k)
    cut = np.flatnonzero((n_found == k) & (distances[:, -1] == last) & (wanted < index.ntotal))
    for radius in np.unique(last[cut]).tolist():
        here = cut[last[cut] == radius]
        for i, (near, rows_near) in zip(here, _within(index, queries[here], radius), strict=True):
            near, rows_near = near[~dead[rows_near]], rows_near[~dead[rows_near]]
            best = np.lexsort((ids[rows_near], near))[:k]
            distances[i], found[i] = near[best], ids[rows_near[best]]
    return distances, found, n_found


def _within(index: Any, queries: Codes, radius: int) -> Iterator[tuple[Distances, Ids]]:
    """Yield, for each query, the distances and row numbers of all rows that faiss finds within `radius`."""
    step = rows_per_block(12 * index.ntotal)
    for first in range(0, len(queries), step):
        with threads(n_threads()):
            limits, distances, rows = index.range_search(queries[first : first + step], radius + 1)
        for start, stop in pairwise(limits.tolist()):
            yield distances[start:stop].astype(np.int32), rows[start:stop]


def to_bytes(index: Any) -> Codes:
    """Return a faiss structure as the bytes of its file format."""
    with threads(1) as faiss:
        return faiss.serialize_index_binary(index)


def from_bytes(data: Codes, kind: str, n_bits: int, n_rows: int) -> Any:
    """Return the faiss structure that `to_bytes` serialised; raise if its kind, bits or rows are not as given."""
    with threads(1) as faiss:
        try:
            index = faiss.deserialize_index_binary(data)
        except RuntimeError:
            index = None
        if not is_of(index, kind) or index.d != n_bits or index.ntotal != n_rows:
            raise ValueError(f"the stored search structure is no {kind} of {n_rows} codes of {n_bits} bits")
        return index
