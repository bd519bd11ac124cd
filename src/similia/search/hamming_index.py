"""Search for the nearest codes in Hamming or Jaccard distance, exactly or with the approximate structures of faiss.

`scan` implements the exact search over codes in memory or in mapped files.

The rows of an index (`Rows`, also of a `VectorIndex`) are codes and ids in memory maps (optional) and then in growing
arrays, with a lookup of ids. A row keeps its number until `compact`; removing a row only marks it. A full array
doubles, so appending a row costs O(1) on average. An id above all earlier ids is new, so adding it needs no lookup. A
lookup bisects the sorted ids, then tries a dict of the rows added since the last sort; all ids are sorted again when
the dict reaches an eighth of the sorted ids. A lookup costs O(log n) on average.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from similia.codes.bits import are_words, as_words
from similia.core.config import exclusively, lock_of, logged, logger_of
from similia.core.estimators import all_at_once, is_lazy, present, twin_of
from similia.core.jit import read_only
from similia.core.state import state
from similia.core.text import short
from similia.core.validation import (
    BadFile,
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
from similia.search.answers import ragged, within_radius
from similia.storage.store import MANIFEST, Store, consistent

Codes = npt.NDArray[np.uint8]
Distances = npt.NDArray[np.int32]

_KINDS = ("exact", "ivf", "multihash")
_LOGGER = logger_of(__name__)
_CLAIMING = Lock()  # held while an index claims rows of an array that its copies share
_SMALL = 1024  # the dict of recent rows may always grow to this size


@state()
class HammingIndex(BaseEstimator):
    """Find the nearest codes by the number of bits that differ, or by Jaccard distance.

    A code is a row of packed bits, such as `numpy.packbits` returns. Each code has an id, which is an integer. The
    parameter `kind` says how to search:

    - ``"exact"`` compares the query with every code.
    - ``"ivf"`` divides the codes into `n_lists` cells, learnt in `fit`. It compares the query with the codes in the
      `n_probes` cells whose centres are nearest to the query.
    - ``"multihash"`` uses `n_hashes` runs of consecutive bits of each code as keys of hash tables. A run has
      log2(number of codes) bits, but at most ``n_bits // n_hashes``. The query is compared with the codes that differ
      from the query by at most one bit in at least one run. Use this kind to find near-duplicates.

    The last two kinds are approximate: they may miss neighbours, but the distances they return are exact. If an
    approximate search finds fewer codes than requested, an exact search answers the query. `radius_neighbors` is always
    exact. After more than half of the codes have been removed, the next approximate search rebuilds the cells or
    tables, unless codes are memory-mapped or in a read-only array.

    Neighbours are ordered by distance, then by id. If several codes are as far from the query as the k-th nearest, the
    codes with the smallest ids are returned (an approximate search knows only the codes that it examined). With
    ``kind="exact"``, results depend only on the codes and ids. They do not depend on the order in which codes were
    added, on earlier removals, on threads, or on whether codes are in memory. A method that raises an error leaves the
    index unchanged.

    Try exact search first. The approximate kinds were measured with their defaults on 100,000 codes of 256 bits in
    clusters (two codes of a cluster differ in 18 % of the bits), for k = 10 and 1000 queries at a time on two cores.
    ivf found 95 % of the true neighbours and was 5 to 7 times as fast as exact search; multihash found 88 % and was 1.2
    to 1.6 times as fast. On 400,000 codes, ivf found 84 % and was 7 times as fast (with ``n_probes=32``, it found 90 %
    and was 4 times as fast); multihash found 80 % and was 4 times as fast.

    Threads may share an index. Exact searches by the Hamming distance take no lock: during a change, they see the index
    as it was before or after the change. All other searches delay a change until they finish. A forked process may use
    its copy of the index; there, approximate searches run in one thread.

    `save` writes a folder. ``load(path)`` reads and checks everything; ``load(path, mmap=True)`` reads codes only when
    a search needs them, and keeps added codes in memory until the next `save`. The folder also holds the cells or
    tables of an approximate kind. A pickle, or a file of `similia.save`, holds only codes and ids: after loading, the
    next approximate search rebuilds the cells or tables, and may find different neighbours.

    Parameters
    ----------
    n_bits : int
        Length of the codes, a multiple of 8.
    kind : {"exact", "ivf", "multihash"}, default="exact"
        How to search, see above.
    metric : {"hamming", "jaccard"}, default="hamming"
        "hamming": the number of bits that differ. "jaccard": 1 - a / b, where a is the number of bits that are 1 in
        both codes, and b the number of bits that are 1 in at least one of the codes (the Tanimoto distance of
        fingerprints); the distance is 0 if b = 0. "jaccard" needs ``kind="exact"``. The Jaccard search first compares
        the numbers of ones and short summaries of the codes, and skips codes that cannot be near. The summaries of
        codes of 2048 bits take an eighth of the memory of the codes; the summaries of shorter codes take a quarter. A
        call with many queries takes less time per query than a call with one.
    n_lists : int, optional
        Number of cells of ``"ivf"``, at most the number of codes. The default is the square root of the number of
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
        """Replace the contents of the index with the given codes.

        Parameters
        ----------
        codes : uint8 array of shape (n, n_bits // 8)
            Packed bits. A read-only array, such as a memory map, is not copied and must not change later; any other
            array is copied.
        ids : int array of shape (n,), optional
            Ids of the codes: distinct and >= 0; by default 0 to n - 1.
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
        """Add codes to the index, which need not be fitted.

        An index of kind "ivf" that is not fitted learns its cells, the groups of similar codes, at the next search.

        Parameters
        ----------
        codes : uint8 array of shape (n, n_bits // 8)
            Packed bits; they are copied.
        ids : int array of shape (n,), optional
            Ids of the codes: distinct, >= 0, and not yet in the index. By default, they continue after the largest id
            ever used.
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
        """Replace the stored codes that have the given ids.

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
        """Ids of all codes, int64 (n,), in the order they were added; an updated code counts as newly added."""
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
        """Find all codes within a radius of each query; the search is exact, whatever the `kind` of the index.

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
            For each query, an array of distances, ascending: int32 numbers of differing bits, or float64 Jaccard
            distances. Only if `return_distance`.
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
        not guard against hostile files.

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
            If the folder holds no index, or if one of its files is missing, truncated, or has a wrong checksum.
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
        self._check_settings()
        generator(self.random_state)

    def _check_settings(self) -> None:
        """Raise if a parameter that a search reads is invalid; it may have changed since `fit`."""
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

    def _check_fitted(self, n: int = 0) -> None:
        if not self.__sklearn_is_fitted__() or len(self) < n:
            raise NotFittedError("the index is empty; call fit or add first")
        if 8 * self._rows.width != self.n_bits:
            words = f"{8 * self._rows.width}, the length of the codes in the index"
            raise BadParameter("n_bits", words, short(self.n_bits), "fit again")

    def _check_queries(self, codes: Any) -> Codes:
        self._check_fitted(1)
        self._check_settings()
        return check_codes(codes, n_bits=self.n_bits)


def _live_ids(rows: Rows) -> Ids:
    return rows.ids()[~rows.dead]


def _live_codes(rows: Rows) -> Codes:
    return rows.take(np.flatnonzero(~rows.dead))


# ---- rows
class Part(NamedTuple):
    """Contiguous rows: their codes (n, n_bits // 8), ids (n,), and a mask `dead` of the removed rows (n,)."""

    codes: Codes
    ids: Ids
    dead: npt.NDArray[np.bool_]


class Rows:
    """Codes of `width` bytes with their ids, in the order they were added."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.fixed: list[tuple[Codes, Ids]] = []
        self.n_fixed = self.n_dead = self.next_id = 0
        self._tail = 0
        self._used = [0]  # rows of `_codes` that were written; copies that share the array share this list
        self._codes, self._ids = np.empty((0, width), np.uint8), np.empty(0, np.int64)
        self._dead = np.zeros(0, np.bool_)
        self._sorted: tuple[Ids, Ids] = np.empty(0, np.int64), np.empty(0, np.int64)  # ids, and their row numbers
        self._recent: dict[int, int] = {}  # row numbers of later ids
        self._known = 0  # number of rows that _sorted and _recent cover
        self._words: list[tuple[npt.NDArray[np.uint64], Ids, npt.NDArray[np.bool_]]] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows, including removed ones."""
        return self.n_fixed + self._tail

    def __len__(self) -> int:
        return self.n_rows - self.n_dead

    @property
    def dead(self) -> npt.NDArray[np.bool_]:
        """Mask of the removed rows, shape (n_rows,)."""
        return self._dead[: self.n_rows]

    def parts(self, start: int = 0) -> list[Part]:
        """Return all rows from row number `start` on, as a list of contiguous parts."""
        parts, first = [], 0
        for codes, ids in [*self.fixed, (self._codes[: self._tail], self._ids[: self._tail])]:
            cut, last = max(0, start - first), first + len(ids)
            if cut < len(ids):
                parts.append(Part(codes[cut:], ids[cut:], self._dead[first + cut : last]))
            first = last
        return parts

    def words(self) -> list[tuple[npt.NDArray[np.uint64], Ids, npt.NDArray[np.bool_]]]:
        """Return (codes as 64-bit words, ids, `dead`) of each of the `parts`, read-only and made only once.

        The list is empty if codes are no whole words.
        """
        if self._words is None:
            parts = self.parts()
            whole = parts if all(are_words(part.codes) for part in parts) else []
            self._words = [(read_only(as_words(part.codes)), *map(read_only, part[1:])) for part in whole]  # type: ignore[misc]
        return self._words

    def ids(self) -> Ids:
        """Return the ids of all rows, including removed ones."""
        parts = [part.ids for part in self.parts()]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])

    def take(self, rows: Ids) -> Codes:
        """Return copies of the codes with the row numbers `rows`."""
        codes, first = np.empty((len(rows), self.width), np.uint8), 0
        for part in self.parts():
            here = np.flatnonzero((rows >= first) & (rows < first + len(part.ids)))
            codes[here] = part.codes[rows[here] - first]
            first += len(part.ids)
        return codes

    def copy(self) -> Rows:
        """Return a copy that shares arrays with this object until one of the two is changed."""
        twin = twin_of(self)
        twin.fixed, twin._recent = [*self.fixed], {**self._recent}
        return twin

    def append(self, codes: Codes, ids: Ids) -> None:
        """Append copies of codes and their ids, which must be new."""
        stop = self._tail + len(ids)
        with _CLAIMING:  # copies may append in other threads
            free = self._used[0] == self._tail and stop <= len(self._ids)
            if free:
                self._used[0] = stop
        if not free:  # full, or a copy has appended rows of its own
            capacity = max(stop, 2 * self._tail, 16)
            self._codes, self._ids = (_grown(rows[: self._tail], capacity) for rows in (self._codes, self._ids))
            self._used = [stop]
        self._codes[self._tail : stop], self._ids[self._tail : stop] = codes, ids
        self._tail = stop
        self._note(ids)

    def attach(self, codes: Codes, ids: Ids) -> None:
        """Add codes and their ids without copying them; call this before any `append`."""
        self.fixed.append((codes, ids))
        self.n_fixed += len(ids)
        self._note(ids)

    def _note(self, ids: Ids) -> None:
        self._words = None
        if self.n_rows > len(self._dead):
            self._dead = _grown(self._dead, max(self.n_rows, 2 * len(self._dead)))
        if len(ids):
            self.next_id = max(self.next_id, int(ids.max()) + 1)

    def kill(self, rows: Ids) -> None:
        """Mark the rows with the numbers `rows` as removed; none of them may be removed already."""
        dead = self._dead.copy()
        dead[rows] = True
        self._dead, self._words = dead, None
        self.n_dead += len(rows)

    def find(self, ids: Ids) -> Ids:
        """Return the row number of each id, or -1 if the id is unknown or its row is removed."""
        rows = np.full(len(ids), -1, np.int64)
        maybe = np.flatnonzero(ids < self.next_id)  # all others are new
        if not len(maybe):
            return rows
        self._learn()
        sorted_ids, numbers = self._sorted
        if len(sorted_ids):
            place = np.minimum(np.searchsorted(sorted_ids, ids[maybe]), len(sorted_ids) - 1)
            found = numbers[place]
            hit = (sorted_ids[place] == ids[maybe]) & ~self._dead[found]
            rows[maybe[hit]] = found[hit]
        if self._recent:
            for i in maybe[rows[maybe] < 0].tolist():
                row = self._recent.get(int(ids[i]), -1)
                rows[i] = row if row >= 0 and not self._dead[row] else -1
        return rows

    def _learn(self) -> None:
        """Make new rows known to `find`: add their ids to `_recent` or, if these become many, sort all ids again."""
        if self.n_rows - self._known + len(self._recent) > max(_SMALL, len(self._sorted[0]) // 8):
            ids, numbers = self.ids(), np.flatnonzero(~self.dead)
            alive = ids[numbers]
            if not (alive[1:] > alive[:-1]).all():
                order = np.argsort(alive, kind="stable")
                alive, numbers = alive[order], numbers[order]
            self._sorted, self._recent = (alive, numbers), {}
        else:
            row = self._known
            for part in self.parts(self._known):
                self._recent.update(zip(part.ids.tolist(), range(row, row + len(part.ids)), strict=True))
                row += len(part.ids)
        self._known = self.n_rows

    def compact(self) -> None:
        """Drop the removed rows and renumber the others."""
        alive = np.flatnonzero(~self.dead)
        codes, ids, next_id = self.take(alive), self.ids()[alive], self.next_id
        self.__init__(self.width)  # type: ignore[misc]
        self.append(codes, ids)
        self.next_id = next_id


def _grown(array: npt.NDArray, capacity: int) -> npt.NDArray:
    """Return a copy of `array` with `capacity` rows; the new rows are zero."""
    grown = np.zeros((capacity, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


# ---- folders
def save_index(index: HammingIndex, path: Path) -> None:
    """Write an index to a folder, as documented in `HammingIndex.save`."""
    if (path.resolve().parent / "search.similia").is_file() and (path / MANIFEST).is_file():
        raise BadFile(
            path,
            f"holds the codes of the search in {path.parent}, which would no longer belong to its objects; save "
            "the whole search with SimilaritySearch.save, or this index to another folder",
        )
    exists = (path / MANIFEST).exists()
    store = Store.open(path) if exists else Store.begin(path, index.n_bits, settings_of(index))
    with store.writing(fresh=not exists):
        origin, rows = index._origin, index._rows
        first, removed, n_bits = 0, [], 8 * rows.width
        fields: dict[str, Any] = {"replace": True, "n_bits": n_bits, "token": os.urandom(8).hex(), "progress": {}}
        if origin is not None and exists and origin["folder"] == path.resolve():
            if origin["version"] != store.version:
                raise ValueError(f"{path} was changed after this index was loaded from it; load it again")
            if origin["rows"] == store.n_rows and store.settings.get("kind", "exact") == index.kind:
                first, removed, fields = origin["rows"], origin["removed"], {}
            else:  # the rows have other numbers, or the folder may hold a structure of the other kind
                fields["progress"] = store.progress
        dead = np.concatenate([*removed, np.flatnonzero(rows.dead[first:]) + first])
        kept, structure = store.manifest["structure"], None
        if index._has_structure() and (fields or kept is None or kept["covers"] != index._n_built):
            structure = _faiss.to_bytes(index._structure), index._n_built
        parts = [(part.codes, part.ids) for part in rows.parts(first)]
        fields |= {"settings": settings_of(index), "next_id": rows.next_id}
        store.change(parts, dead, structure=structure, **fields)
        _set_origin(index, store, store.n_rows)
        if store.compacted():  # only if mapped or in a read-only array: others have compacted
            _set_origin(index, store, 0)
        if index._mapped:
            _read(index, store, mmap=True)
            _set_origin(index, store, store.n_rows)


def load_index(kind: type[HammingIndex], path: Path, mmap: bool) -> HammingIndex:
    """Read an index of class `kind` from a folder, as documented in `HammingIndex.load`."""
    return consistent(path, lambda store: _loaded(kind, store, mmap))


def _loaded(kind: type[HammingIndex], store: Store, mmap: bool) -> HammingIndex:
    try:
        index = kind(store.n_bits, **store.settings)
        index._check_parameters()
    except (TypeError, ValueError) as error:
        problem = short(str(error), 200)[1:-1]
        raise ValueError(f"{store.folder} has settings that this similia does not know: {problem}") from None
    _read(index, store, mmap)
    if not mmap:
        try:
            check_ids(index.ids)
        except ValueError as error:
            raise ValueError(f"{store.folder} is damaged, {error}; restore it from a copy") from None
    _set_origin(index, store, store.n_rows)
    return index


def _read(given: HammingIndex, store: Store, mmap: bool) -> None:
    """Replace the contents of an index by those of a store, in one assignment, as other threads may search it."""
    index = twin_of(given)
    index._start()
    index._mapped = mmap
    keep = index._rows.attach if mmap else index._rows.append
    for codes, ids in store.arrays(mmap):
        keep(codes, ids)
    index._rows.kill(store.dead_rows())
    index._rows.next_id = max(index._rows.next_id, store.manifest["next_id"])
    stored = store.structure()
    if stored is not None and index.kind != "exact":
        try:
            index._structure = _faiss.from_bytes(stored[0], index.kind, index.n_bits, stored[1])
        except ValueError as error:
            raise ValueError(f"{store.folder} is damaged: {error}; restore it from a copy") from None
        index._n_built = stored[1]
    given.__dict__ = index.__dict__


def _set_origin(index: HammingIndex, store: Store, n_rows: int) -> None:
    """Note that a folder holds these rows now, the first `n_rows` of them under the same numbers."""
    index._origin = {"folder": store.folder.resolve(), "version": store.version, "rows": n_rows, "removed": []}


def settings_of(index: HammingIndex) -> dict[str, Any]:
    """Return the parameters of an index except `n_bits`; `random_state` is None unless it is an integer."""
    given = {name: value for name, value in index.get_params().items() if name != "n_bits"}
    if not isinstance(index.random_state, Integral):
        given["random_state"] = None
    return {name: int(value) if isinstance(value, Integral) else value for name, value in given.items()}
