"""A search on disk that can grow: its encoder, its codes and the data to rerank candidates, in one folder.

``search.similia`` holds the fitted encoder, and ``codes`` is the folder of a `HammingIndex`. Each file in ``objects``
holds the objects (or projected vectors) and names of one addition. A search by features stores empty codes; beside a
file of objects, a second file holds their inverted lists. Loading reads the lists of large additions. For other
additions, and those without a file of lists, it counts the features of the objects again. An addition writes its
objects first and then commits its codes in one step (`Store`). If a crash leaves objects without codes, or temporary
files, they are ignored, and the next change deletes them.

**Inverted lists** can be memory-mapped. Their file begins with the length of a header (8 bytes, little-endian) and the
header, JSON that gives the type, the length, the position and the checksum of each array of a `Segment`. The arrays
follow, each at a multiple of 64 bytes. Compiled loops trust these arrays, so reading checks that every position in them
exists, and that positions ascend in each list; checksums are verified unless the file is mapped, as for codes
(`Store.arrays`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from similia.core.config import lock_of
from similia.core.estimators import twin_of
from similia.core.state import Check, array, objects, optional
from similia.core.validation import BadFile, Ids, as_path
from similia.objects import concatenate, n_objects, take
from similia.search._queries import vectors_index
from similia.search.feature_index import FeatureIndex, Segment, ascend
from similia.search.hamming_index import HammingIndex, settings_of
from similia.storage.disk import is_temporary, replacing, sync_folder
from similia.storage.models import load_of_index, save
from similia.storage.states import public_name
from similia.storage.store import MANIFEST, Store, read_manifest

if TYPE_CHECKING:
    from similia.search.similarity_search import SimilaritySearch

_SEARCH, _CODES, _OBJECTS = "search.similia", "codes", "objects"
_LISTS = ".lists"  # ending of the files beside those in ``objects``
_OURS = re.compile(r"[0-9]{12}\.(similia|lists)")  # names of files in ``objects``
_WINDOWS = sys.platform == "win32"
_FEW_LISTS = 16  # stored lists are used of additions of at least 1 / 16 of all objects: each is searched by itself
_NO_BITS = 8  # of the codes of a search by features, which hold nothing; the store needs some
_PART: dict[str, Check] = {  # what a file in ``objects`` holds for n objects; vectors have length 1
    "ids": array("i8", "n"),
    "objects": optional(objects("n")),
    "vectors": optional(array("f4", "n", None, most=2.0)),
    "names": lambda names, sizes: names is None or (isinstance(names, list) and len(names) == sizes["n"]),
}
_VERSION, _ALIGNED, _MOST_HEADER = 1, 64, 2**16
_TYPES = {
    "features": ("u8",), "starts": ("i8",), "rows": ("i4",), "amounts": ("u1", "f4"), "tops": ("f8",),
    "limits": ("i8",), "held": ("i4",), "counts": ("u1", "f8"), "sizes": ("f8",), "ids": ("i8",),
}  # fmt: skip


class SearchFolder:
    """The folder of a `SimilaritySearch`, to which objects can be added without loading the existing ones.

    Make one with `create` or `open`. Additions are atomic, even if the process is killed. Only one process may add at a
    time; its threads take turns.

    Parameters
    ----------
    folder : path
    search : SimilaritySearch
        Fitted, without objects.
    example : collection of at most one object, or None
        One of the objects, if there are any: `add` raises if new objects cannot be joined to this one. None if the
        search keeps no objects.
    store : Store
        The store of the codes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import similia as sm
    >>> encoder = sm.MinHash(sm.kernels.Spectrum(k=2), 64, random_state=0)
    >>> search = sm.SimilaritySearch(encoder, rerank=sm.distances.Levenshtein()).fit(["ACGT", "TTTT"])
    >>> with TemporaryDirectory() as parent:
    ...     folder = search.save(Path(parent) / "index")
    ...     added = sm.search.SearchFolder.open(folder).add(["ACGA"])
    ...     grown = sm.SimilaritySearch.load(folder)
    >>> added, grown.objects([2])[0]
    (array([2]), 'ACGA')
    """

    def __init__(self, folder: Path, search: SimilaritySearch, example: Any, store: Store) -> None:
        self.folder = folder
        self.search = search
        self.example = example
        self.store = store
        self._token = store.version[0]

    @classmethod
    def create(
        cls, folder: str | os.PathLike[str], search: SimilaritySearch, meta: dict[str, Any] | None = None
    ) -> Self:
        """Create a folder for a fitted search, without its objects.

        Parameters
        ----------
        folder : str or path
            New or empty, or left behind by a killed `create` or `SimilaritySearch.save`.
        search : SimilaritySearch
            The search; its encoder is written and, if it keeps objects, one of them as an example.
        meta : dict, optional
            JSON-serialisable data that the store keeps as its `meta`.

        Raises
        ------
        ValueError
            If the folder is not empty, unless a killed `create` or `SimilaritySearch.save` left its contents behind; if
            `rerank` of the search needs objects or vectors that the search does not keep; or if the search holds
            something that a model file cannot contain.
        """
        made = cls._begin(folder, search, meta)
        with made._creating():
            made.store.change()
        return made

    @classmethod
    def _begin(
        cls, folder: str | os.PathLike[str], search: SimilaritySearch, meta: dict[str, Any] | None = None
    ) -> Self:
        """Return a folder that holds no search before a commit in a block of `_creating`; see `create`."""
        search._check_ready()
        folder = as_path(folder, "folder")
        if folder.exists() and (not folder.is_dir() or is_search(folder) or not _left_by_create(folder)):
            if is_search(folder):
                raise ValueError(
                    f"{folder} holds a search already; add to it in place with similia.search.SearchFolder."
                    f"open({str(folder)!r}).add(X), or with: similia index add DATA {folder}; or name a new folder; "
                    "or, if search.save made this one, replace it with search.save(folder, overwrite=True)"
                )
            raise ValueError(f"{folder} exists and is not an empty folder; name a new one")
        empty = _without_objects(search)
        objects, _ = _held(search)
        example = None if objects is None else take(objects, np.arange(min(1, len(search))))
        index = search.index_ if isinstance(search.index_, HammingIndex) else HammingIndex(_n_bits(search))
        (folder / _OBJECTS).mkdir(parents=True, exist_ok=True)
        return cls(folder, empty, example, Store.begin(folder / _CODES, index.n_bits, settings_of(index), meta))

    @contextmanager
    def _creating(self) -> Iterator[None]:
        """Lock the folder and write the search; if the ``with`` block raises, delete all that was written."""
        with ExitStack() as held:
            held.enter_context(self.store.writing(fresh=True))
            try:
                self._clean()  # what a killed `save` left
                save({"search": self.search, "example": self.example}, self.folder / _SEARCH)
                yield
            except BaseException:
                (self.folder / _SEARCH).unlink(missing_ok=True)  # first: what is left is no search
                held.close()  # Windows deletes no folder that holds an open file
                for name in (_CODES, _OBJECTS):
                    shutil.rmtree(self.folder / name)
                raise

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open the folder of a search; raise FileNotFoundError if it holds none, ValueError if it is damaged."""
        folder = as_path(folder, "folder")
        if not is_search(folder):
            raise FileNotFoundError(f"no index at {folder}; 'similia index build' or search.save(folder) makes one")
        store = Store.open(folder / _CODES)
        made = load_of_index(folder / _SEARCH)
        search = made.get("search") if isinstance(made, dict) else None
        if (
            public_name(type(search)) != ("similia", "SimilaritySearch")
            or not hasattr(search, "encoder_")
            or "example" not in made
        ):
            raise ValueError(f"{folder / _SEARCH} holds no search: the folder is damaged; restore it from a copy")
        opened = cls(folder, made["search"], made["example"], store)
        opened._check_not_replaced()
        return opened

    def __len__(self) -> int:
        return len(self.store)

    def add(
        self, X: Any, names: Iterable[str] | None = None, ids: Any = None, progress: dict[str, Any] | None = None
    ) -> Ids:
        """Add objects atomically and return their ids.

        Parameters
        ----------
        X : collection of n objects
        names : sequence of str, length n, optional
        ids : array-like of int, shape (n,), optional
            Ids of the objects: distinct and not yet in use. By default, they continue after the largest id ever used.
        progress : dict, optional
            JSON-serialisable state of a run; it replaces ``store.progress`` in the same step.
        """
        names = None if names is None else list(map(str, names))
        if names is not None and len(names) != n_objects(X):
            raise ValueError(f"there are {len(names)} names for {n_objects(X)} objects, expected one for each")
        codes, vectors = encoded(self.search, self.example, X)
        kept = kept_objects(self.search, X)
        return self._append(codes, kept, vectors, names, ids, progress)

    def _append(self, codes: Any, objects: Any, vectors: Any, names: Any, ids: Any, progress: Any) -> Ids:
        """Add what `encoded` and `kept_objects` returned."""
        with self.store.writing():
            self._check_not_replaced()
            self._clean()
            ids = self.store.new_ids(ids, len(codes))
            self._write(ids, objects, vectors, names)
            return self.store.append(codes, ids, progress=progress)

    def _write(self, ids: Ids, objects: Any, vectors: Any, names: Any, index: FeatureIndex | None = None) -> None:
        """Write what `_append` adds to a file that the next commit makes valid; `index`, if given, has its features."""
        reused = len(ids) and ids.min() < self.store.manifest["next_id"]  # perhaps named by earlier objects
        if not len(ids) or (objects is None and vectors is None and names is None and not reused):
            return
        path = self.folder / _OBJECTS / f"{self.store.manifest['commit']:012d}.similia"
        save({"ids": ids, "objects": objects, "vectors": vectors, "names": names}, path)
        if _by_features(self.search):
            given = twin_of(self.search.encoder_).add(objects, ids) if index is None else index
            _write_lists(given.segment(), path.with_suffix(_LISTS))
        sync_folder(self.folder / _OBJECTS)

    def remove(self, ids: Any) -> None:
        """Remove objects by id, atomically."""
        with self.store.writing():
            self._check_not_replaced()
            self._clean()
            self.store.remove(ids)

    def load(self, mmap: bool = False) -> SimilaritySearch:
        """Return the search with its objects in memory; with `mmap`, its codes stay on disk and are memory-mapped."""
        return self.load_named(mmap)[0]

    def load_named(self, mmap: bool = False) -> tuple[SimilaritySearch, dict[int, str]]:
        """Return the search, as `load` does, and a dict from ids to names, including the names of removed objects."""
        search = _without_objects(self.search)
        index = HammingIndex.load(self.folder / _CODES, mmap=mmap)
        search.ids_ = np.array(index.ids)
        origin = index._origin
        assert origin is not None
        commit = origin["version"][1]  # a writer may have committed since this folder was opened
        files = self._files(committed=True, commit=commit)
        parts = [_read_part(path) for path in files]
        for name, needed in (("objects", search._keeps_objects), ("vectors", search._projected)):
            kept = [part for part in parts if part[name] is not None]
            if kept or (needed and len(search.ids_)):
                rows = _last_rows(_joined([part["ids"] for part in kept]), search.ids_)
                try:
                    together = concatenate([part[name] for part in kept])
                except (TypeError, ValueError) as error:  # objects of different kinds
                    found = f"{self.folder} holds {name} that do not fit together ({error})"
                    raise ValueError(f"{found}: it is damaged; restore it from a copy") from None
                setattr(search, f"{name}_", take(together, rows))
        if search.objects_ is None and self.example is not None:  # nothing was added
            search.objects_ = take(self.example, np.arange(0))
        search.index_ = index
        if _by_features(search):
            lists = _kept_lists(files, [part["ids"] for part in parts], search.ids_, mmap)
            other = ~np.isin(search.ids_, _joined([ids for _, ids in lists]))
            objects = take(search.objects_, np.flatnonzero(other)) if other.any() else None
            search.index_ = search.encoder_.holding(lists, objects, search.ids_, index._rows.next_id)
        elif (by_vectors := vectors_index(search.encoder_)) is not None:
            search.index_ = by_vectors.holding(index._rows)
        self._check_not_replaced()
        return search, _names(parts)

    def _check_not_replaced(self) -> None:
        """Raise if `SimilaritySearch.save` has put another search, with its own encoder, in this folder."""
        if read_manifest(self.folder / _CODES)["token"] != self._token:
            raise ValueError(f"another search has replaced the one in {self.folder} since it was opened; open it again")

    def _files(self, committed: bool, commit: int | None = None) -> list[Path]:
        """Return the object files numbered below `commit` (default: the store's) or, if not `committed`, all others."""
        files = sorted(path for path in (self.folder / _OBJECTS).glob("*.similia") if _OURS.fullmatch(path.name))
        commit = self.store.manifest["commit"] if commit is None else commit
        return [path for path in files if (int(path.name.partition(".")[0]) < commit) == committed]

    def _clean(self) -> None:
        for path in self._files(committed=False):
            path.with_suffix(_LISTS).unlink(missing_ok=True)
            path.unlink()
        for path in (self.folder / _OBJECTS).iterdir():
            if is_temporary(path.name):
                path.unlink()


def kept_objects(search: SimilaritySearch, X: Any) -> Any:
    """Return objects as the search keeps them, or None if it keeps none."""
    return search._parsed(X)[1] if search._keeps_objects else None


def encoded(search: SimilaritySearch, example: Any, X: Any) -> tuple[npt.NDArray[np.uint8], Any]:
    """Return codes to store for objects, and their vectors or None; raise if objects do not fit the `example`."""
    X, objects = search._parsed(X)
    if search._keeps_objects and example is not None:
        concatenate([example, take(objects, [0])])  # raises if they are not compatible
    if (index := vectors_index(search.encoder_)) is not None:
        V, vectors = search._encode(X)
        return index.encode(V), vectors
    if not _by_features(search):
        return search._encode(X)
    twin_of(search.encoder_).add(X)  # raises if it does not take them
    return _no_codes(n_objects(X)), None


def _read_part(path: Path) -> dict[str, Any]:
    """Return the content of one file in ``objects``; raise if a value has the wrong type or length."""
    part = load_of_index(path)
    sizes: dict[str, int] = {}
    fits = isinstance(part, dict) and all(name in part and fit(part[name], sizes) for name, fit in _PART.items())
    if not fits:
        raise BadFile(path, "does not hold objects of a search: the folder is damaged; restore it from a copy")
    return part


def _names(parts: list[dict[str, Any]]) -> dict[int, str]:
    """Return a dict from ids to names; a later part without names forgets those of its ids."""
    names: dict[int, str] = {}
    for part in parts:
        ids = part["ids"].tolist()
        if part["names"] is not None:
            names.update(zip(ids, part["names"], strict=True))
        elif names:
            for i in ids:
                names.pop(i, None)
    return names


def is_search(folder: Path) -> bool:
    """Return whether a folder holds a complete search."""
    return (folder / _SEARCH).is_file() and (folder / _CODES / MANIFEST).is_file()


def _by_features(search: SimilaritySearch) -> bool:
    """Return whether candidates are found by features, so that the stored codes are empty."""
    return isinstance(search.encoder_, FeatureIndex)


def _n_bits(search: SimilaritySearch) -> int:
    """Return the number of bits of a stored code of a search by features or vectors."""
    index = vectors_index(search.encoder_)
    return _NO_BITS if index is None else index.n_bits


def _no_codes(n: int) -> npt.NDArray[np.uint8]:
    return np.zeros((n, _NO_BITS // 8), np.uint8)


def _left_by_create(folder: Path) -> bool:
    """Return whether a folder is empty or holds only the remains of a killed `SearchFolder.create` or `save_search`."""
    names, objects = {path.name for path in folder.iterdir()}, folder / _OBJECTS
    parts = {path.name for path in objects.iterdir()} if objects.is_dir() else set()
    return all(name in (_SEARCH, _CODES, _OBJECTS) or name.startswith(f".{_SEARCH}.") for name in names) and all(
        _OURS.fullmatch(name) or is_temporary(name) for name in parts
    )


def _without_objects(search: SimilaritySearch) -> SimilaritySearch:
    """Return a copy of the fitted search that holds the fitted encoder but no objects and no codes."""
    empty = clone(search)
    empty.encoder_ = search.encoder_
    if hasattr(search, "trials_"):
        empty.trials_ = search.trials_
    empty.ids_, empty.objects_, empty.vectors_ = np.zeros(0, np.int64), None, None
    return empty


def _held(search: SimilaritySearch) -> tuple[Any, Any]:
    """Return the objects and the vectors of a search, each None unless `rerank`, which may have changed, keeps them."""
    return search.objects_ if search._keeps_objects else None, search.vectors_ if search._projected else None


def _joined(ids: list[Ids]) -> Ids:
    """Return the ids of all parts, of which there may be none."""
    return np.concatenate([np.empty(0, np.int64), *ids])


def _kept_lists(files: list[Path], stored: list[Ids], wanted: Ids, mmap: bool) -> list[tuple[Segment, Ids]]:
    """Return the stored inverted lists of large additions, each with those of its ids that are in use.

    `stored` holds the ids of each of the `files` of objects, and `wanted` those in use: an id is that of the last file.
    """
    firsts = np.cumsum([0, *map(len, stored)])
    rows = _last_rows(_joined(stored), wanted)
    kept = []
    for path, ids, first in zip(files, stored, firsts.tolist(), strict=False):
        alive = ids[np.sort(rows[(rows >= first) & (rows < first + len(ids))]) - first]
        lists = path.with_suffix(_LISTS)
        if 2 * len(alive) > len(ids) and _FEW_LISTS * len(ids) >= len(wanted) and lists.exists():
            kept.append((_read_lists(lists, ids, mmap), alive))
    return kept


def _last_rows(stored: Ids, wanted: Ids) -> Ids:
    """Return the last position in `stored` of each id of `wanted`; raise if an id is missing."""
    if not np.isin(wanted, stored).all():
        raise ValueError("objects of the search are missing: its folder is damaged; restore it from a copy")
    order = np.argsort(stored, kind="stable")
    return order[np.searchsorted(stored, wanted, side="right", sorter=order) - 1]


def save_search(search: SimilaritySearch, folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write a fitted search with its objects to a new folder; with `overwrite`, replace a search that is there."""
    folder = as_path(folder, "folder")
    if overwrite and is_search(folder):
        return _replaced(search, folder)
    made = SearchFolder._begin(folder, search)
    with lock_of(search).reading(), made._creating():
        features, ids = _by_features(search), search.ids_
        codes = _no_codes(len(search)) if features else search.index_.reconstruct(ids)
        made._write(ids, *_held(search), None, search.index_ if features else None)
        made.store.change([(codes, ids)], next_id=search.index_.next_id_ if features else search.index_._rows.next_id)
    return folder


def _replaced(search: SimilaritySearch, folder: Path) -> Path:
    """Replace the search in `folder`, after writing the new one next to it; if writing fails, the old search stays."""
    existing = SearchFolder.open(folder)
    named = any(_read_part(path)["names"] is not None for path in existing._files(committed=True))
    recorded = bool(existing.store.progress or existing.store.meta)
    if lost := ["names of objects"] * named + ["a record of the files that were added"] * recorded:
        raise ValueError(
            f"{folder} holds {' and '.join(lost)}, which save would lose; save to a new folder, or change this one in "
            "place with similia.search.SearchFolder (add, remove) or the commands similia index add and "
            "remove; or delete the folder first"
        )
    place = folder.resolve()
    new = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.new-"))
    old = new.with_name(new.name.replace(".new-", ".old-"))
    try:
        save_search(search, new)
        shutil.copymode(place, new)
        with ExitStack() as held:
            held.enter_context(Store.open(place / _CODES).writing())  # raises if another process is writing to it
            if _WINDOWS:
                held.close()  # it renames no folder that holds an open file
            place.rename(old)
            try:
                new.rename(place)
            except BaseException:
                old.rename(place)
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old)
    return folder


# ---- inverted lists
def _write_lists(segment: Segment, path: Path) -> None:
    """Write a segment, none of whose objects is removed, to a file."""
    entries, at = {}, 0
    arrays = {name: np.ascontiguousarray(getattr(segment, name)) for name in _TYPES}
    for name, one in arrays.items():
        little = one.astype(one.dtype.newbyteorder("<"), copy=False)
        entries[name] = [one.dtype.str[1:], len(one), at, zlib.crc32(little.data)]
        at += -(-one.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps({"version": _VERSION, "whole": segment.whole, "bytes": at, "arrays": entries}).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNED)
    with replacing(path) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for one in arrays.values():
            stream.write(one.astype(one.dtype.newbyteorder("<"), copy=False).data)
            stream.write(bytes(-one.nbytes % _ALIGNED))


def _read_lists(path: Path, ids: Ids, mmap: bool) -> Segment:
    """Return the segment in a file, which must hold the objects with these ids; raise `BadFile` if it is damaged."""
    try:
        data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r").view(np.ndarray)
        if not mmap:
            data = np.array(data)
            data.flags.writeable = False
        return _checked_lists(data, ids, mmap)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        found = "does not hold the inverted lists of the objects beside it"
        raise BadFile(path, f"{found}; restore the index from a copy") from None


def _checked_lists(data: npt.NDArray[np.uint8], ids: Ids, mmap: bool) -> Segment:
    """Return the segment in the bytes of a file; raise an error of any of several types if something does not fit."""
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    if start > min(len(data), _MOST_HEADER) or start % _ALIGNED:
        raise ValueError
    header = json.loads(data[8:start].tobytes())
    if header["version"] != _VERSION or len(data) != start + header["bytes"] or type(header["whole"]) is not bool:
        raise ValueError
    arrays = {name: _listed(data[start:], header["arrays"][name], kinds, mmap) for name, kinds in _TYPES.items()}
    segment = Segment(**arrays, dead=np.zeros(len(ids), np.bool_), whole=header["whole"])
    if not _fit(segment) or not np.array_equal(np.sort(segment.ids), np.sort(ids)):
        raise ValueError
    return segment


def _listed(data: npt.NDArray[np.uint8], entry: Any, kinds: tuple[str, ...], mmap: bool) -> npt.NDArray[Any]:
    """Return the array that an entry of the header describes, and that has one of the types `kinds`."""
    kind, n, at, checksum = entry
    if kind not in kinds or not all(type(value) is int and value >= 0 for value in (n, at, checksum)):
        raise ValueError
    size = n * np.dtype(kind).itemsize
    if at % _ALIGNED or at + size > len(data) or (not mmap and zlib.crc32(data[at : at + size].data) != checksum):
        raise ValueError
    return data[at : at + size].view(np.dtype(f"<{kind}"))


def _fit(one: Segment) -> bool:
    """Return whether the arrays of a segment fit each other, so that loops stay within them."""
    n, m = len(one.sizes), len(one.features)
    fits = len(one.starts) == m + 1 and len(one.limits) == n + 1 and len(one.tops) == m and len(one.ids) == n
    fits = fits and len(one.rows) == len(one.amounts) == len(one.held) == len(one.counts)
    fits = fits and (one.amounts.dtype == np.uint8) == (one.counts.dtype == np.uint8)
    for offsets, places, end in ((one.starts, one.rows, n), (one.limits, one.held, m)):
        fits = fits and bool(offsets[0] == 0 and offsets[-1] == len(places) and (offsets[1:] >= offsets[:-1]).all())
        fits = fits and (len(places) == 0 or bool(places.min() >= 0 and places.max() < end))
        fits = fits and bool(ascend(offsets, places))
    return fits and bool((one.features[1:] > one.features[:-1]).all() and (one.sizes[1:] >= one.sizes[:-1]).all())
