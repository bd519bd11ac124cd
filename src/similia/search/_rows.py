"""The rows of an index: codes and ids in memory maps (optional) and then in growing arrays, and a lookup of ids.

A row keeps its number until `compact`; removing a row only marks it. A full array doubles, so appending a row costs
O(1) on average. An id above all earlier ids is new, so adding it needs no lookup. A lookup bisects the sorted ids, then
tries a dict of the rows added since the last sort; all ids are sorted again when the dict reaches an eighth of the
sorted ids. A lookup costs O(log n) on average.
"""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.codes.bits import are_words, as_words
from similia.core.estimators import twin_of
from similia.core.text import short
from similia.core.validation import BadFile, Ids, check_ids
from similia.search import _faiss
from similia.storage.store import MANIFEST, Store, consistent

if TYPE_CHECKING:
    from similia.search.hamming_index import HammingIndex

Codes = npt.NDArray[np.uint8]

_CLAIMING = Lock()  # held while an index claims rows of an array that its copies share
_SMALL = 1024  # the dict of recent rows may always grow to this size


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


def read_only(array: npt.NDArray) -> npt.NDArray:
    """Return a read-only view, so that memory maps and arrays have the same compiled type."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _grown(array: npt.NDArray, capacity: int) -> npt.NDArray:
    """Return a copy of `array` with `capacity` rows; the new rows are zero."""
    grown = np.zeros((capacity, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


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
        compacted = 2 * store.n_dead > store.n_rows  # only if mapped or in a read-only array: others have compacted
        if compacted:
            store.compact()
        if index._mapped:
            _read(index, store, mmap=True)
        _set_origin(index, store, 0 if compacted and not index._mapped else store.n_rows)


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
