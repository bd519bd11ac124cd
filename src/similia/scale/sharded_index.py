"""Search for the nearest codes in a Dask array: search one index per part, on the worker that holds it, then merge."""

from __future__ import annotations

from typing import Any, Self

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import delayed
from sklearn.base import BaseEstimator

from similia.core.estimators import all_at_once, check_fitted
from similia.core.validation import Ids, check_codes, check_ids, check_n_bits, check_positive_int, count_on
from similia.search import HammingIndex
from similia.search.scan import best, radius_in_bits
from similia.sources.dask import Distributed, as_partitions, inside_task

Distances = npt.NDArray[np.int32]


class ShardedIndex(BaseEstimator):
    """Find the codes (rows of packed bits) in a Dask array that differ from a query in the fewest bits.

    Each block of rows of the array becomes a shard, which is an index of its own. Every shard returns its k codes
    nearest to a query. The merged results are ordered by distance, then id; they equal the results of one exact
    `HammingIndex` of all codes. On a cluster, shards stay in the memory of the workers; if a worker dies, Dask
    recomputes its codes and rebuilds its shards. To keep codes after the cluster ends, write an index with
    ``similia index build``.

    Parameters
    ----------
    n_bits : int
        Number of bits per code, a multiple of 8.

    Attributes
    ----------
    n_codes_ : int
        Number of codes in all shards.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import similia as sm
    >>> codes = np.random.default_rng(0).integers(256, size=(100, 4), dtype=np.uint8)
    >>> index = sm.scale.ShardedIndex(n_bits=32).fit(da.from_array(codes, chunks=(30, 4)))
    >>> distances, ids = index.kneighbors(codes[:2], n_neighbors=3)
    >>> ids[:, 0], distances[:, 0]
    (array([0, 1]), array([0, 0], dtype=int32))
    """

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits

    @all_at_once
    def fit(self, codes: Any, ids: Any = None) -> Self:
        """Build the shards.

        Parameters
        ----------
        codes : dask.array.Array of uint8, shape (n, n_bits // 8)
            Packed bits.
        ids : int array of shape (n,), optional
            Distinct numbers >= 0 that name the codes in results; by default the positions of the rows, 0 to n - 1.

        Returns
        -------
        ShardedIndex
            The fitted index.
        """
        check_n_bits(self.n_bits)
        if not isinstance(codes, Distributed) and not hasattr(codes, "__dask_graph__"):
            raise TypeError(
                f"codes is a {type(codes).__name__}, expected a Dask array; for arrays in memory, use HammingIndex"
            )
        parts = as_partitions(codes, anew=True)
        check_codes(parts.example(), n_bits=self.n_bits)
        n = len(parts)
        numbers = count_on(0, n) if ids is None else check_ids(ids, n)
        shards = zip(parts.lazy(_shard, self.n_bits, along=[numbers]), parts.lengths, strict=True)
        lengths = [length for length in parts.lengths if length]
        self._shards = list(zip(dask.persist(*(s for s, length in shards if length)), lengths, strict=True))
        self.n_codes_ = n
        return self

    def __len__(self) -> int:
        return int(getattr(self, "n_codes_", 0))

    def kneighbors(self, X: Any, n_neighbors: int = 10) -> tuple[Distances, Ids]:
        """Find the nearest codes of each query.

        Parameters
        ----------
        X : uint8 array of shape (q, n_bits // 8)
            Queries.
        n_neighbors : int, default=10
            Number of neighbours k; at most the number of codes in the index.

        Returns
        -------
        distances : int32 array of shape (q, k)
            Numbers of differing bits, ascending.
        ids : int64 array of shape (q, k)
            Ids of the nearest codes, ascending where distances are equal.
        """
        check_fitted(self)
        queries, k = check_codes(X, n_bits=self.n_bits), check_positive_int(n_neighbors, "n_neighbors")
        if k > self.n_codes_:
            raise ValueError(f"n_neighbors={k} is more than the {self.n_codes_} codes in the index; ask for fewer")
        asked = delayed(queries, pure=False, traverse=False)
        found = [delayed(_nearest)(shard, asked, min(k, n)) for shard, n in self._shards]
        return best(dask.compute(*found), k)

    def radius_neighbors(self, X: Any, radius: float) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
        """Find all codes within a radius of each query.

        Parameters
        ----------
        X : uint8 array of shape (q, n_bits // 8)
            Queries.
        radius : float
            Largest number of differing bits, >= 0.

        Returns
        -------
        distances : object array of shape (q,)
            An int32 array of numbers of differing bits for each query, ascending.
        ids : object array of shape (q,)
            An int64 array of ids for each query, ascending where distances are equal.
        """
        check_fitted(self)
        queries = check_codes(X, n_bits=self.n_bits)
        radius = radius_in_bits(radius, self.n_bits)
        asked = delayed(queries, pure=False, traverse=False)
        found = dask.compute(*(delayed(_within)(shard, asked, radius) for shard, _ in self._shards))
        distances, ids = np.empty(len(queries), object), np.empty(len(queries), object)
        for i in range(len(queries)):
            far = np.concatenate([np.empty(0, np.int32), *(part[0][i] for part in found)])
            who = np.concatenate([np.empty(0, np.int64), *(part[1][i] for part in found)])
            order = np.lexsort((who, far))
            distances[i], ids[i] = far[order], who[order]
        return distances, ids


def _shard(codes: Any, start: int, ids: Ids, n_bits: int) -> HammingIndex:
    return HammingIndex(n_bits).fit(codes, ids)


def _nearest(shard: HammingIndex, queries: Any, k: int) -> tuple[Distances, Ids]:
    with inside_task():
        return shard.kneighbors(queries, k)


def _within(shard: HammingIndex, queries: Any, radius: float) -> Any:
    with inside_task():
        return shard.radius_neighbors(queries, radius)
