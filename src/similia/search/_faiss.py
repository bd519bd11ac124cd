"""A thin layer over the approximate binary indexes of faiss: built row by row, searched, turned into bytes.

Labels are row numbers. Building runs in one thread: the links of an HNSW graph, and the last bits of k-means, depend
on the order in which threads finish; searching uses all cores, each query by itself.

What the defaults find, and how fast, is in `HammingIndex`. Four times as many lists in an inverted file took ten
times as long to build (7 s instead of 0.7 s for 100,000 codes) and found less per second.
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

from similia.core.config import rows_per_block
from similia.core.threads import n_threads
from similia.core.validation import generator
from similia.storage.store import Ids

if TYPE_CHECKING:
    from similia.search.hamming_index import HammingIndex

Codes = npt.NDArray[np.uint8]
Distances = npt.NDArray[np.int32]

_FAR, _NO_ID = np.iinfo(np.int32).max, np.iinfo(np.int64).max
_SPARE = 8  # rows asked for beyond twice those wanted, so that a second search is rare
_WALK = 64  # rows that a walk through a graph keeps at least
_TRAINED_ON = 64  # rows for each list that k-means sees
_SEED = 12345  # of the levels of a graph; that of faiss
_ROUNDS = 10  # of k-means
_CLASSES = {"ivf": "IndexBinaryIVF", "hnsw": "IndexBinaryHNSW", "multihash": "IndexBinaryMultiHash"}


_forked = False  # whether the OpenMP of faiss was loaded in a parent of this process


def _note_fork() -> None:
    global _forked
    _forked = _forked or "faiss" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@contextmanager
def threads(n: int) -> Iterator[Any]:
    """Yield faiss, which runs `n` threads meanwhile; one where it would wait for threads that a fork left behind."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1 if _forked else n)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


def empty_structure(index: HammingIndex) -> Any:
    """Return an empty structure of the kind of an index; the centres of an inverted file are learnt from its rows."""
    rows, n = index._rows, len(index._rows)
    if index.kind == "hnsw":
        return hnsw(index.n_bits, index.n_links)
    if index.kind == "multihash":
        return multihash(index.n_bits, n, index.n_hashes)
    n_lists = min(n, round(np.sqrt(n)) if index.n_lists is None else index.n_lists)
    random = generator(index.random_state)
    sample = np.sort(random.choice(np.flatnonzero(~rows.dead), min(n, _TRAINED_ON * n_lists), replace=False))
    return ivf(index.n_bits, rows.take(sample), n_lists, seed=int(random.integers(2**31)))


def ivf(n_bits: int, sample: Codes, n_lists: int, seed: int) -> Any:
    """Return an empty inverted file whose `n_lists` centres are learnt from `sample`."""
    with threads(1) as faiss:
        quantizer = faiss.IndexBinaryFlat(n_bits)
        index = faiss.IndexBinaryIVF(quantizer, n_bits, n_lists)
        index.own_fields = True
        quantizer.this.disown()
        index.cp.niter, index.cp.seed = _ROUNDS, seed
        index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, _TRAINED_ON
        index.train(sample)
        return index


def hnsw(n_bits: int, n_links: int) -> Any:
    """Return an empty graph with `n_links` links for each row."""
    with threads(1) as faiss:
        return faiss.IndexBinaryHNSW(n_bits, n_links)


def multihash(n_bits: int, n_rows: int, n_hashes: int) -> Any:
    """Return `n_hashes` empty hash tables on disjoint runs of bits, as long as log2 of the number of rows."""
    n_hash_bits = max(1, min(n_bits // n_hashes, round(np.log2(max(2, n_rows)))))
    with threads(1) as faiss:
        index = faiss.IndexBinaryMultiHash(n_bits, n_hashes, n_hash_bits)
        index.nflip = 1
        return index


def add(index: Any, codes: Codes) -> None:
    """Append rows.

    A graph draws a level for each. What it draws depends on the number of rows before alone, since files of faiss do
    not keep where its generator stood: a graph that was read from a file grows as that which was written.
    """
    with threads(1) as faiss:
        if hasattr(index, "hnsw"):
            index.hnsw.rng = faiss.RandomGenerator(_SEED + index.ntotal)
        index.add(np.ascontiguousarray(codes))


def search(
    index: Any, queries: Codes, k: int, ids: Ids, dead: npt.NDArray[np.bool_], n_probes: int
) -> tuple[Distances, Ids, Ids]:
    """Return distances and ids (q, k) of the best live rows met, by distance, then id, and how many were met (q,).

    Rows that are as far as the last of the k are met too, so that the smaller ids stay: a second search within that
    distance finds those that the first one left out. Only a walk through a graph (HNSW) has no such search.
    """
    if hasattr(index, "nprobe"):
        index.nprobe = min(n_probes, index.nlist)
    walks = hasattr(index, "hnsw")
    wanted = min(index.ntotal, 2 * k + min(int(dead.sum()), k) + _SPARE)
    with threads(n_threads()):
        distances, rows = index.search(queries, max(wanted, min(_WALK, index.ntotal)) if walks else wanted)
    gone = (rows < 0) | dead[rows]
    found = ids[rows]
    last = np.where(rows[:, -1] < 0, -1, distances[:, -1])  # farther rows were not met; -1 if all were
    distances[gone], found[gone] = _FAR, _NO_ID
    order = np.lexsort((found, distances))[:, :k]
    distances, found = np.take_along_axis(distances, order, axis=1), np.take_along_axis(found, order, axis=1)
    met = np.minimum((~gone).sum(axis=1), k)
    if not walks:
        cut = np.flatnonzero((met == k) & (distances[:, -1] == last) & (wanted < index.ntotal))
        for radius in np.unique(last[cut]).tolist():
            here = cut[last[cut] == radius]
            for i, (near, rows_near) in zip(here, _within(index, queries[here], radius), strict=True):
                near, rows_near = near[~dead[rows_near]], rows_near[~dead[rows_near]]
                best = np.lexsort((ids[rows_near], near))[:k]
                distances[i], found[i] = near[best], ids[rows_near[best]]
    return distances, found, met


def _within(index: Any, queries: Codes, radius: int) -> Iterator[tuple[Distances, Ids]]:
    """Yield distances and numbers of all rows met that are at most `radius` from each query."""
    step = rows_per_block(12 * index.ntotal)
    for first in range(0, len(queries), step):
        with threads(n_threads()):
            limits, distances, rows = index.range_search(queries[first : first + step], radius + 1)
        for start, stop in pairwise(limits.tolist()):
            yield distances[start:stop].astype(np.int32), rows[start:stop]


def to_bytes(index: Any) -> Codes:
    """Return the index as a file of faiss in memory."""
    with threads(1) as faiss:
        return faiss.serialize_index_binary(index)


def from_bytes(data: Codes, kind: str, n_bits: int, n_rows: int) -> Any:
    """Return the index that `to_bytes` turned into bytes, or raise if it is another one."""
    with threads(1) as faiss:
        try:
            index = faiss.deserialize_index_binary(data)
        except RuntimeError:
            index = None
        if type(index).__name__ != _CLASSES[kind] or index.d != n_bits or index.ntotal != n_rows:
            raise ValueError(f"the stored search structure is no {kind} of {n_rows} codes of {n_bits} bits")
        return index
