"""A thin layer over the approximate binary indexes of faiss: built row by row, searched, turned into bytes.

Labels are row numbers. Building runs in one thread: the links of an HNSW graph, and the last bits of k-means, depend
on the order in which threads finish; searching uses all cores, each query by itself.

What the defaults find, and how fast, is in `HammingIndex`. Four times as many lists in an inverted file took ten
times as long to build (7 s instead of 0.7 s for 100,000 codes) and found less per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from similia._threads import n_threads

Codes = npt.NDArray[np.uint8]

_TRAINED_ON = 64  # rows for each list that k-means sees
_ROUNDS = 10  # of k-means
_CLASSES = {"ivf": "IndexBinaryIVF", "hnsw": "IndexBinaryHNSW", "multihash": "IndexBinaryMultiHash"}


@contextmanager
def threads(n: int) -> Iterator[Any]:
    """Yield faiss, which runs `n` threads meanwhile."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


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


def training_rows(n_lists: int) -> int:
    """Return how many rows `ivf` makes use of."""
    return _TRAINED_ON * n_lists


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
    """Append rows."""
    with threads(1):
        index.add(np.ascontiguousarray(codes))


def search(index: Any, queries: Codes, k: int, n_probes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return distances and row numbers (-1 where fewer than `k` rows were met), both (q, k)."""
    with threads(n_threads()):
        if hasattr(index, "nprobe"):
            index.nprobe = min(n_probes, index.nlist)
        elif hasattr(index, "hnsw"):
            index.hnsw.efSearch = max(64, 2 * k)
        return index.search(queries, k)


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
