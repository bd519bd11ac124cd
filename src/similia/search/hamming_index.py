"""Search for the nearest codes in Hamming or Jaccard distance, exactly or with the approximate structures of faiss.

`scan` implements the exact search over codes in memory or in mapped files; `_rows` manages rows, ids and files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from similia.codes.bits import as_words
from similia.core.config import exclusively, lock_of, logged, logger_of
from similia.core.estimators import all_at_once, is_lazy, present
from similia.core.state import state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    Ids,
    as_path,
    check_codes,
    check_ids,
    check_n_bits,
    check_positive_int,
    check_radius,
    count_on,
    generator,
)
from similia.search import _faiss
from similia.search._rows import Rows, load_index, save_index
from similia.search.metric import ragged, within_radius

Codes = npt.NDArray[np.uint8]
Distances = npt.NDArray[np.int32]

_KINDS = ("exact", "ivf", "multihash")
_LOGGER = logger_of(__name__)


@state()
class HammingIndex(BaseEstimator):
    """Find the nearest codes by the number of bits that differ, or by Jaccard distance.

    A code is a row of packed bits, as `numpy.packbits` makes; its id is an integer. The parameter `kind` says how to
    search:

    - ``"exact"`` compares the query with every code.
    - ``"ivf"`` divides the codes into `n_lists` cells, learnt in `fit`. It compares the query with the codes in the
      `n_probes` cells whose centres are nearest to it.
    - ``"multihash"`` takes `n_hashes` runs of consecutive bits from each code as keys of hash tables. A run has
      log2(number of codes) bits, but at most ``n_bits // n_hashes``. The query is compared with the codes that differ
      from it by at most one bit in at least one run. Use it for near duplicates.

    The last two kinds are approximate: they may miss neighbours, but the distances they return are exact. If such a
    search finds fewer codes than requested, an exact search answers the query. `radius_neighbors` is always exact.
    After more than half of the codes have been removed, the next approximate search rebuilds its cells or tables,
    unless codes are memory-mapped or in a read-only array.

    Neighbours are ordered by distance, then by id. If several codes are at the k-th distance, those with the smallest
    ids are returned (for an approximate kind, among the codes that it examined). With ``kind="exact"``, results depend
    only on the codes and ids: not on the order of adding, earlier removals, threads, or whether codes are in memory. A
    method that raises an error leaves the index unchanged.

    Try exact search first. The approximate kinds were measured with their defaults on 100,000 codes of 256 bits in
    clusters (two codes of a cluster differ in 18 % of the bits), for k = 10 and 1000 queries at a time on two cores.
    ivf found 95 % of the true neighbours and was 5 to 7 times as fast as exact search; multihash found 88 % and was 1.2
    to 1.6 times as fast. On 400,000 codes, ivf found 84 % and was 7 times as fast (``n_probes=32``: 90 % and 4 times);
    multihash found 80 % and was 4 times as fast.

    Threads may share an index. Exact searches by the Hamming distance take no lock: during a change, they see the index
    as it was before or after the change. All other searches delay a change until they finish. A forked process may use
    its copy of the index; there, approximate searches run in one thread.

    `save` writes a folder. ``load(path)`` reads and checks everything; ``load(path, mmap=True)`` reads codes only when
    a search needs them, and keeps added codes in memory until the next `save`. The folder also holds the cells or
    tables of an approximate kind. A pickle, or a file of `similia.save`, holds only codes and ids: after it is
    loaded, the next approximate search rebuilds cells or tables, and may find different neighbours.

    Parameters
    ----------
    n_bits : int
        Length of the codes, a multiple of 8.
    kind : {"exact", "ivf", "multihash"}, default="exact"
        How to search, see above.
    metric : {"hamming", "jaccard"}, default="hamming"
        "hamming": the number of bits that differ. "jaccard": 1 - a / b, where a is the number of bits that are 1 in
        both codes, and b the number that are 1 in at least one (the Tanimoto distance of fingerprints); it is 0 if b =
        0. "jaccard" needs ``kind="exact"``. The Jaccard search first compares the numbers of ones and short
        summaries of the codes, and skips codes that cannot be near. The summaries take an eighth of the memory of codes
        of 2048 bits, a quarter of that of shorter ones. Many queries in one call take less time per query.
    n_lists : int, optional
        Number of cells of ``"ivf"``, at most the number of codes. By default it is the square root of the number of
        codes: finding the nearest cells then costs about as much as searching one cell.
    n_probes : int, default=16
        Number of cells that ``"ivf"`` searches. These cells hold about the share ``n_probes / n_lists`` of the codes.
    n_hashes : int, default=8
        Number of bit runs of ``"multihash"``.
    random_state : int, numpy generator or None, default=None
        Seed of the cells of ``"ivf"``; with None, the cells may differ from fit to fit.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search import HammingIndex
    >>> codes = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> index = HammingIndex(n_bits=8).fit(codes, ids=[10, 20, 30])
    >>> distances, ids = index.kneighbors(codes[:1], n_neighbors=2)
    >>> distances, ids
    (array([[0, 1]], dtype=int32), array([[10, 20]]))
    >>> index.remove([20])
    HammingIndex(n_bits=8)
    >>> index.kneighbors(codes[:1], n_neighbors=2, return_distance=False)
    array([[10, 30]])
    """

    def __init__(
        self,
        n_bits: int,
        kind: str = "exact",
        *,
        metric: str = "hamming",
        n_lists: int | None = None,
        n_probes: int = 16,
        n_hashes: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.kind = kind
        self.metric = metric
        self.n_lists = n_lists
        self.n_probes = n_probes
        self.n_hashes = n_hashes
        self.random_state = random_state

    @exclusively
    @all_at_once
    def fit(self, codes: Any, ids: Any = None) -> HammingIndex:
        """Replace the contents of the index by these codes.

        Parameters
        ----------
        codes : uint8 array of shape (n, n_bits // 8)
            Packed bits. A read-only array, such as a memory map, is not copied and must not change later; any other
            array is copied.
        ids : int array of shape (n,), optional
            Distinct, >= 0; by default 0 to n - 1.
        """
        self._check_parameters()
        if is_lazy(codes):
            raise TypeError("codes is a Dask collection, expected an array; similia.scale.ShardedIndex takes it")
        given = codes
        codes = check_codes(codes, n_bits=self.n_bits)
        ids = count_on(0, len(codes)) if ids is None else check_ids(ids, len(codes))
        in_place = isinstance(given, np.ndarray) and not given.flags.writeable and np.shares_memory(given, codes)
        self._start()
        (self._rows.attach if in_place else self._rows.append)(codes, ids)
        if not self._is_ready() and len(codes):
            self._update_structure()
        return self

    def _start(self) -> None:
        lock_of(self)  # so that copies share it, as they share the structure
        self._rows = Rows(int(self.n_bits) // 8)
        self._structure: Any = None  # of faiss
        self._n_built = 0  # rows in the structure
        self._origin: dict[str, Any] | None = None  # the folder of these rows; its first "rows" have the same numbers
        self._mapped = False
        self._by_size: Any = None  # for Jaccard distances: the rows in the order of their numbers of bits

    @exclusively
    @all_at_once
    def add(self, codes: Any, ids: Any = None) -> HammingIndex:
        """Add codes to the index, fitted or not; an unfitted ``"ivf"`` learns its cells at the next search.

        Parameters
        ----------
        codes : uint8 array of shape (n, n_bits // 8)
            Packed bits; they are copied.
        ids : int array of shape (n,), optional
            Distinct, >= 0, not in the index; by default they continue after the largest id ever used.
        """
        new = not self.__sklearn_is_fitted__()
        if new:
            self._check_parameters()
        else:
            self._check_fitted()
        codes = check_codes(codes, n_bits=self.n_bits)
        next_id = 0 if new else self._rows.next_id
        ids = count_on(next_id, len(codes)) if ids is None else check_ids(ids, len(codes))
        if new:
            self._start()
        known = self._rows.find(ids) >= 0
        if known.any():
            raise ValueError(f"id {ids[np.argmax(known)]} is in the index already; update it, or remove it first")
        self._rows = self._rows.copy()
        self._rows.append(codes, ids)
        return self

    @exclusively
    @all_at_once
    def remove(self, ids: Any) -> HammingIndex:
        """Remove codes by their ids.

        Parameters
        ----------
        ids : int array of shape (n,)
            Distinct ids in the index.
        """
        self._kill(self._rows_of(check_ids(ids), "removed"))
        return self

    @exclusively
    @all_at_once
    def update(self, codes: Any, ids: Any) -> HammingIndex:
        """Replace the stored codes that have these ids.

        Parameters
        ----------
        codes : uint8 array of shape (n, n_bits // 8)
            The new codes.
        ids : int array of shape (n,)
            Distinct ids in the index.
        """
        self._check_fitted()
        codes = check_codes(codes, n_bits=self.n_bits)
        ids = check_ids(ids, len(codes))
        self._kill(self._rows_of(ids, "updated"), codes, ids)
        return self

    def _kill(self, rows: Ids, codes: Codes | None = None, ids: Ids | None = None) -> None:
        """Mark rows as removed, append replacements if given, and compact the rows if more than half are removed."""
        self._rows = self._rows.copy()
        self._rows.kill(rows)
        if self._origin is not None:
            removed = [*self._origin["removed"], rows[rows < self._origin["rows"]]]
            self._origin = {**self._origin, "removed": removed}
        if codes is not None and ids is not None:
            self._rows.append(codes, ids)
        if not self._rows.fixed and 2 * self._rows.n_dead > self._rows.n_rows:
            self._rows.compact()
            self._structure, self._n_built, self._by_size = None, 0, None
            if self._origin is not None:
                self._origin = {**self._origin, "rows": 0, "removed": []}

    def _rows_of(self, ids: Ids, verb: str) -> Ids:
        self._check_fitted()
        rows = self._rows.find(ids)
        if (rows < 0).any():
            raise ValueError(f"id {ids[np.argmax(rows < 0)]} is not in the index, so it cannot be {verb}")
        return rows

    def __len__(self) -> int:
        return len(self._rows) if self.__sklearn_is_fitted__() else 0

    @property
    def ids(self) -> Ids:
        """Ids of all codes, int64 (n,), in the order they were added; an update counts as a new addition."""
        self._check_fitted()
        return _live_ids(self._rows)

    def reconstruct(self, ids: Any = None) -> Codes:
        """Return copies of the stored codes, shape (n, n_bits // 8).

        Parameters
        ----------
        ids : int array of shape (n,), optional
            Distinct ids in the index; by default all ids, in the order of the property `ids`.
        """
        self._check_fitted()
        with lock_of(self).writing():  # a lookup may sort the ids
            return self._codes_of(None if ids is None else check_ids(ids))

    def _codes_of(self, ids: Ids | None) -> Codes:
        return _live_codes(self._rows) if ids is None else self._rows.take(self._rows_of(ids, "looked up"))

    def kneighbors(self, X: Any, n_neighbors: int = 10, return_distance: bool = True) -> Any:
        """Find the nearest codes of each query, ordered by distance, then id.

        Parameters
        ----------
        X : uint8 array of shape (q, n_bits // 8)
            Queries.
        n_neighbors : int, default=10
            Number of neighbours k; at most the number of codes in the index.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances : int32 array of shape (q, k)
            Numbers of differing bits, ascending; only if `return_distance`. Jaccard distances are float64.
        ids : int64 array of shape (q, k)
            Ascending where distances are equal.
        """
        queries = self._check_queries(X)
        k = check_positive_int(n_neighbors, "n_neighbors")
        with self._ready() as now:
            if k > len(now):
                raise ValueError(f"n_neighbors={k} is more than the {len(now)} codes in the index; ask for fewer")
            distances, ids = now._nearest(queries, k)
        return (distances, ids) if return_distance else ids

    def radius_neighbors(self, X: Any, radius: float, return_distance: bool = True) -> Any:
        """Find all codes within a radius of each query; exact for all kinds.

        Parameters
        ----------
        X : uint8 array of shape (q, n_bits // 8)
            Queries.
        radius : float
            Largest distance, >= 0: number of differing bits, or Jaccard distance.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances : object array of shape (q,)
            An array for each query, as in `kneighbors`, ascending; only if `return_distance`.
        ids : object array of shape (q,)
            An int64 array for each query, ascending where distances are equal.
        """
        from similia.search.scan import radius_in_bits, within

        queries = self._check_queries(X)
        if self.metric == "jaccard":
            radius = check_radius(radius)
            with self._ready() as now:
                near = within_radius(lambda some, k: now._nearest(queries[some], k), len(queries), len(now), radius)
            return (ragged(near[0]), ragged(near[1])) if return_distance else ragged(near[1])
        limits, distances, ids = within(self._rows.parts(), queries, radius_in_bits(radius, self.n_bits))
        pieces = [ragged(np.split(part, limits[1:-1]) if len(queries) else []) for part in (distances, ids)]
        return (pieces[0], pieces[1]) if return_distance else pieces[1]

    @contextmanager
    def _ready(self) -> Iterator[HammingIndex]:
        """Yield an index to search, which no other thread changes.

        Exact Hamming search takes no lock. Structures are changed in place, so a search with one updates it if
        necessary, then holds the lock for reading while the caller searches.
        """
        now = present(self)
        if now.kind == "exact" and now.metric != "jaccard":
            yield now
            return
        lock = lock_of(self)
        while True:
            with lock.reading():
                if self._is_ready():
                    yield self
                    return
            with lock.writing():
                if not self._is_ready():  # another thread may have been first
                    self._update_structure()

    def _is_ready(self) -> bool:
        if self.metric == "jaccard":
            return self._by_size is not None and sum(len(one.order) for one in self._by_size) == self._rows.n_rows
        built = _faiss.is_of(self._structure, self.kind) and self._n_built == self._rows.n_rows
        return self.kind == "exact" or built

    def _has_structure(self) -> bool:
        """Return whether there is a faiss structure of the present `kind`, to which no copy has added rows.

        The kind may have changed since `fit`.
        """
        return _faiss.is_of(self._structure, self.kind) and self._structure.ntotal == self._n_built

    def _nearest(self, queries: Codes, k: int) -> tuple[Any, Ids]:
        """Return distances and ids (q, k); a query whose approximate search finds too few codes is searched exactly."""
        from similia.search.scan import nearest, nearest_to_one

        if self.metric == "jaccard":
            from similia.search import jaccard_scan

            return jaccard_scan.nearest(self._rows.parts(), self._by_size, queries, k)
        if self.kind == "exact" or not self._has_structure():
            if len(queries) == 1 and (found := nearest_to_one(self._rows, as_words(queries), k)) is not None:
                return found
            return nearest(self._rows.parts(), queries, k)
        distances, ids, n_found = _faiss.search(
            self._structure, queries, k, self._rows.ids(), self._rows.dead, self.n_probes
        )
        few = np.flatnonzero(n_found < k)
        if len(few):
            distances[few], ids[few] = nearest(self._rows.parts(), queries[few], k)
        return distances, ids

    def _update_structure(self) -> None:
        """Build the faiss structure, or add new rows to it.

        `_structure` is None until the new one is complete, so neither an error nor a fork can leave a partial one.
        """
        if self.metric == "jaccard":
            from similia.search.jaccard_scan import sorted_by_size

            self._by_size = sorted_by_size(self._rows.parts())
            return
        structure, n_built = self._structure if self._has_structure() else None, self._n_built
        self._structure, self._n_built = None, 0
        n_new = self._rows.n_rows - (0 if structure is None else n_built)
        with logged(_LOGGER, f"{self.kind} structure of {self._rows.n_rows} codes, {n_new} of them new"):
            if structure is None:
                structure, n_built = _faiss.empty_structure(self), 0
            for part in self._rows.parts(n_built):
                _faiss.add(structure, part.codes)
        self._structure, self._n_built = structure, self._rows.n_rows

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the index to a folder and return its path.

        If the index was loaded from this folder or last saved to it, only changes are written. All codes are written
        again if `kind` has changed or if more than half of the codes have been removed. Any other index in the folder
        is replaced. After a crash, the folder holds either the old state or the new one.

        Parameters
        ----------
        path : str or path
            The folder: new, empty, or one that holds an index.

        Raises
        ------
        ValueError
            If the folder holds the index of a `SimilaritySearch`, or anything other than an index; if another process
            is writing to it; or if it changed after this index was loaded from it.
        """
        folder = as_path(path, "folder")
        with lock_of(self).writing():
            self._check_parameters()
            if self.__sklearn_is_fitted__():
                self._check_fitted()
            else:
                self._start()
            save_index(self, folder)
        return folder

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = False) -> HammingIndex:
        """Read an index that `save` wrote.

        Load only files that you trust: the library faiss reads the files of the kinds "ivf" and "multihash", and does
        not guard against hostile ones.

        Parameters
        ----------
        path : str or path
            The folder.
        mmap : bool, default=False
            Whether to map the codes into memory instead of reading them. If True, `load` checks the sizes of files, but
            not their checksums.

        Raises
        ------
        ValueError
            If the folder holds no index, or one of its files is missing, truncated, or has a different checksum.
        """
        return load_index(cls, as_path(path, "folder"), mmap)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_rows")

    def __getstate__(self) -> dict[str, Any]:
        state = self.get_params()
        if self.__sklearn_is_fitted__():
            self._check_parameters()  # as the copy will
            self._check_fitted()
            rows = self._rows
            codes, ids, next_id = _live_codes(rows), _live_ids(rows), rows.next_id
            state |= {"codes_": codes, "ids_": ids, "next_id_": next_id}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {name: value for name, value in state.items() if name != "_lock"}
        codes, ids, next_id = (state.pop(name, None) for name in ("codes_", "ids_", "next_id_"))
        self.__dict__.update(state)
        if codes is not None:
            self.add(codes, ids)
            self._rows.next_id = max(self._rows.next_id, int(next_id))

    def _check_parameters(self) -> None:
        check_n_bits(self.n_bits)
        if self.kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {self.kind!r}")
        if self.metric not in ("hamming", "jaccard"):
            raise ValueError(f"metric must be 'hamming' or 'jaccard', got {self.metric!r}")
        if self.metric == "jaccard" and self.kind != "exact":
            raise ValueError(f"metric='jaccard' is searched exactly, but kind={self.kind!r}; use kind='exact'")
        if self.n_lists is not None:
            check_positive_int(self.n_lists, "n_lists")
        check_positive_int(self.n_probes, "n_probes")
        check_positive_int(self.n_hashes, "n_hashes")
        if self.kind == "multihash" and self.n_hashes > self.n_bits:
            raise ValueError(f"n_hashes={self.n_hashes} is more than n_bits={self.n_bits}: each hash needs a bit")
        generator(self.random_state)

    def _check_fitted(self, n: int = 0) -> None:
        if not self.__sklearn_is_fitted__() or len(self) < n:
            raise NotFittedError("the index is empty; call fit or add first")
        if 8 * self._rows.width != self.n_bits:
            words = f"{8 * self._rows.width}, the length of the codes in the index"
            raise BadParameter("n_bits", words, short(self.n_bits), "fit again")

    def _check_queries(self, codes: Any) -> Codes:
        self._check_fitted(1)
        return check_codes(codes, n_bits=self.n_bits)


def _live_ids(rows: Rows) -> Ids:
    return rows.ids()[~rows.dead]


def _live_codes(rows: Rows) -> Codes:
    return rows.take(np.flatnonzero(~rows.dead))
