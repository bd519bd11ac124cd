"""An index on disk: array files with a code and an id for each row, and a manifest that names the files in use.

A segment consists of two files: the codes and the ids of consecutive rows. The manifest, ``index.json``, names the
files of all segments in order, names the files with the numbers of removed rows, and records how far inputs were read
(``progress``). A change writes new files under new names, flushes them to the disk, and then replaces the manifest in
one step, so a crash leaves the index as it was before or after the change. The next change deletes files that the
manifest does not name. Only one process may write at a time (it locks ``index.lock``); any number may read.

A row keeps its number until `compact`. If there are more than 64 segments, the newest ones are merged; an older segment
is merged with them if it has at most twice as many rows as they have together. So each row is copied O(log n) times,
and opening stays fast.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from similia.core.config import lock_of
from similia.core.text import short
from similia.core.validation import BadFile, Ids, check_codes, check_ids, check_n_bits, count_on, read_header, warn_user
from similia.storage.disk import (
    TEMPORARY,
    is_leftover,
    is_temporary,
    replacing,
    sync_folder,
    take_lock,
    write_atomically,
)

_MAX_SEGMENTS = 64
_BLOCK = 2**16  # rows copied at a time
_ATTEMPTS = 5  # attempts to read while another process writes
_TYPES = {"codes": np.uint8, "ids": np.int64, "dead": np.int64, "structure": np.uint8}
Codes = npt.NDArray[np.uint8]
T = TypeVar("T")
FORMAT, VERSION = "similia-index", 1
MANIFEST = "index.json"
_BEGUN = f".{MANIFEST}{TEMPORARY}"  # in a folder until the first commit: array files without a manifest are leftovers
_MOST_BITS = 2**31  # maximum bits of a code, because distances are int32
OURS = re.compile(r"(codes|ids|dead|structure)-[0-9]{6,18}\.npy")  # names of array files


class Store:
    """A folder of binary codes with ids. After a crash, it holds either all changes of a commit or none.

    Make a store with `create` or `open`. Every method that changes the folder locks it, against other threads too, and
    then rereads the manifest (the content of ``index.json``).
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._writer: tuple[int, int] | None = None  # the process and thread in a `writing` block

    def __reduce__(self) -> Any:  # copies have a lock of their own
        return type(self), (self.folder, self.manifest)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        n_bits: int,
        settings: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Store:
        """Create an empty index in `folder`; the parameters are those of `begin`."""
        store = cls.begin(folder, n_bits, settings, meta)
        with store.writing(fresh=True):
            store.change()
        return store

    @classmethod
    def begin(
        cls,
        folder: str | os.PathLike[str],
        n_bits: int,
        settings: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Store:
        """Return a store for `folder`, which must be new or empty, and holds no index until a commit.

        Make the first commit in a block of ``writing(fresh=True)``. The manifest keeps two JSON dicts: `settings` of
        the search, and `meta`, which is the user's.
        """
        folder = Path(folder)
        names = os.listdir(folder) if folder.is_dir() else []
        ours = [name for name in names if is_leftover(name) or (_BEGUN in names and OURS.fullmatch(name))]
        if len(ours) < len(names) or (folder.exists() and not folder.is_dir()):
            raise ValueError(f"{folder} exists and is not an empty folder; name a new folder, or open this index")
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {
            "format": FORMAT, "version": VERSION, "n_bits": check_n_bits(n_bits), "commit": 0,
            "token": os.urandom(8).hex(), "next_file": 1, "next_id": 0, "segments": [], "dead": [],
            "structure": None, "settings": settings or {}, "meta": meta or {}, "progress": {},
        }  # fmt: skip
        return cls(folder, manifest)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Open the index in `folder`; check that all files in its manifest exist and have the stated sizes."""

        def checked(store: Store) -> Store:
            for entry in store._entries():
                store._check_file(entry)
            return store

        return consistent(Path(folder), checked)

    @property
    def n_bits(self) -> int:
        return int(self.manifest["n_bits"])

    @property
    def n_rows(self) -> int:
        """Number of rows, including removed ones."""
        return sum(segment["rows"] for segment in self.manifest["segments"])

    @property
    def n_dead(self) -> int:
        """Number of removed rows that still take space."""
        return sum(entry["rows"] for entry in self.manifest["dead"])

    def __len__(self) -> int:
        return self.n_rows - self.n_dead

    @property
    def meta(self) -> dict[str, Any]:
        """Dict that the user stored with the index."""
        return dict(self.manifest["meta"])

    @property
    def progress(self) -> dict[str, Any]:
        """Dict passed as `progress` to the last `append` that had one."""
        return dict(self.manifest["progress"])

    @property
    def settings(self) -> dict[str, Any]:
        """Dict with the kind and parameters of the search."""
        return dict(self.manifest["settings"])

    @property
    def version(self) -> tuple[str, int]:
        """Token of the index and number of the last commit; no two indexes have the same token."""
        return self.manifest["token"], self.manifest["commit"]

    # reading

    def arrays(self, mmap: bool = False) -> list[tuple[Codes, Ids]]:
        """Return (codes, ids) of each segment: read-only memory maps if `mmap`, else arrays with checksums verified."""
        segments = self.manifest["segments"]
        return [(self._array(one["codes"], mmap), self._array(one["ids"], mmap)) for one in segments]

    def dead_rows(self) -> Ids:
        dead = [self._array(entry, False) for entry in self.manifest["dead"]]
        rows = np.concatenate([np.empty(0, np.int64), *dead])
        if len(rows) and (rows.min() < 0 or rows.max() >= self.n_rows or len(np.unique(rows)) < len(rows)):
            raise ValueError(
                f"{self.folder} is damaged: it removes rows that do not exist, or a row twice; restore it from a copy"
            )
        return rows

    def structure(self) -> tuple[Codes, int] | None:
        """Return (bytes, number of rows covered) of the stored search structure, or None if there is none."""
        entry = self.manifest["structure"]
        return None if entry is None else (self._array(entry, False), int(entry["covers"]))

    def find(self, ids: Ids) -> Ids:
        """Return the row number of each id, or -1 if no row has the id or the row is removed."""
        rows = np.full(len(ids), -1, np.int64)
        if not len(ids):
            return rows
        order = np.argsort(ids)
        wanted, dead, first = ids[order], np.zeros(self.n_rows, np.bool_), 0
        dead[self.dead_rows()] = True
        for segment in self.manifest["segments"]:
            if segment["min_id"] <= wanted[-1] and segment["max_id"] >= wanted[0]:
                stored = self._array(segment["ids"], True)
                place = np.minimum(np.searchsorted(wanted, stored), len(wanted) - 1)
                hit = np.flatnonzero((wanted[place] == stored) & ~dead[first : first + len(stored)])
                rows[order[place[hit]]] = first + hit
            first += segment["rows"]
        return rows

    def verify(self) -> None:
        """Read every file and verify its checksum."""
        for entry in self._entries():
            self._same(entry, self._array(entry, True))

    # writing

    @contextmanager
    def writing(self, fresh: bool = False) -> Iterator[None]:
        """Lock the folder against other writers during a ``with`` block; such blocks may be nested in a thread.

        Another thread waits; another process, or another store of the folder, raises. The manifest is reread first or,
        if `fresh`, must not exist yet.
        """
        me = os.getpid(), get_ident()
        if self._writer == me:
            yield
            return
        with lock_of(self).writing(), closing(take_lock(self.folder)):
            try:
                self._writer = me
                if not fresh:
                    self.manifest = read_manifest(self.folder)
                elif (self.folder / MANIFEST).exists():
                    raise ValueError(f"another process has just made an index in {self.folder}; open it")
                else:
                    (self.folder / _BEGUN).touch()
                yield
            finally:
                self._writer = None

    def append(self, codes: Any, ids: Any = None, progress: dict[str, Any] | None = None) -> Ids:
        """Add rows in one commit and return their ids; by default, these follow the largest id ever used.

        `progress`, a JSON dict, replaces the stored dict in the same commit. A run after a crash reads the property
        `progress` and resumes there, without losing or duplicating rows.
        """
        with self.writing():
            codes = check_codes(codes, n_bits=self.n_bits)
            ids = self.new_ids(ids, len(codes))
            self.change([(codes, ids)], progress=progress)
            return ids

    def remove(self, ids: Any) -> None:
        """Remove the rows with these ids in one commit; then compact if more than half of the rows are removed."""
        with self.writing():
            ids = check_ids(ids)
            rows = self.find(ids)
            if (rows < 0).any():
                raise ValueError(f"id {ids[np.argmax(rows < 0)]} is not in the index, so it cannot be removed")
            self.change(dead=rows)
            self.compacted()

    def compacted(self) -> bool:
        """Compact if more than half of the rows are removed; return whether that was done."""
        if 2 * self.n_dead <= self.n_rows:
            return False
        try:
            self.compact()
        except OSError as error:  # the removal is committed
            warn_user(f"{self.folder} still holds the removed rows ({error}); make space, the next removal drops them")
            return False
        return True

    def compact(self) -> None:
        """Rewrite the rows that are not removed, in order, as one segment; they get new row numbers."""
        with self.writing():
            alive = np.ones(self.n_rows, np.bool_)
            alive[self.dead_rows()] = False
            limits = np.cumsum([segment["rows"] for segment in self.manifest["segments"]])[:-1]
            masks = np.split(alive, limits)
            segments = self.manifest["segments"]
            parts = [(*self._whole(segment), mask) for segment, mask in zip(segments, masks, strict=False)]
            manifest = {**self.manifest, "dead": [], "structure": None}
            segment = self._write_segment(manifest, parts, int(alive.sum()))
            manifest["segments"] = [segment] if segment["rows"] else []
            self._commit(manifest)

    def change(
        self,
        parts: Iterable[tuple[Codes, Ids]] = (),
        dead: Ids | None = None,
        replace: bool = False,
        structure: tuple[Codes, int] | None = None,
        **fields: Any,
    ) -> None:
        """Commit new rows, removals, a search structure and fields of the manifest at once, without checks.

        `parts` are the (codes, ids) of new rows, `dead` the numbers of rows to remove; `structure` is (bytes, number of
        rows covered). `replace` drops all old rows and their structure. Fields that are None stay as they are.
        """
        with self.writing():
            manifest = {**self.manifest, **{name: value for name, value in fields.items() if value is not None}}
            if replace:
                manifest |= {"segments": [], "dead": [], "structure": None}
            added = [(codes, ids, None) for codes, ids in parts if len(ids)]
            if added:
                segment = self._write_segment(manifest, added, sum(len(ids) for _, ids, _ in added))
                manifest["segments"] = [*manifest["segments"], segment]
                manifest["next_id"] = max(manifest["next_id"], segment["max_id"] + 1)
            if dead is not None and len(dead):
                manifest["dead"] = [*manifest["dead"], self._write(manifest, "dead", [dead], len(dead))]
            if structure is not None:
                entry = self._write(manifest, "structure", [structure[0]], len(structure[0]))
                manifest["structure"] = {**entry, "covers": structure[1]}
            self._merge(manifest)
            self._commit(manifest)

    def new_ids(self, ids: Any, n: int) -> Ids:
        """Return ids for `n` new rows: `ids` if given (raise if one is in use), otherwise the next unused ids."""
        if ids is None:
            return count_on(self.manifest["next_id"], n)
        ids = check_ids(ids, n)
        known = self.find(ids) >= 0
        if known.any():
            raise ValueError(f"id {ids[np.argmax(known)]} is in the index already; remove it first, or use update")
        return ids

    def _merge(self, manifest: dict[str, Any]) -> None:
        """Limit the number of files: merge the newest segments, and files of removed rows; rows keep their numbers."""
        segments = manifest["segments"]
        if len(segments) > _MAX_SEGMENTS:
            first, rows = len(segments) - 1, segments[-1]["rows"]
            while first > 0 and (segments[first - 1]["rows"] <= 2 * rows or len(segments) - first < _MAX_SEGMENTS // 2):
                first -= 1
                rows += segments[first]["rows"]
            parts = [(*self._whole(segment), None) for segment in segments[first:]]
            manifest["segments"] = [*segments[:first], self._write_segment(manifest, parts, rows)]
        if len(manifest["dead"]) > _MAX_SEGMENTS:
            dead = [self._array(entry, False) for entry in manifest["dead"]]
            manifest["dead"] = [self._write(manifest, "dead", dead, sum(map(len, dead)))]

    def _write_segment(self, manifest: dict[str, Any], parts: list[Any], n: int) -> dict[str, Any]:
        """Write `parts`, each (codes, ids, mask of rows to keep or None), as one segment; return its manifest entry."""
        lowest = min((int(ids.min()) for _, ids, _ in parts if len(ids)), default=0)
        highest = max((int(ids.max()) for _, ids, _ in parts if len(ids)), default=-1)
        width = manifest["n_bits"] // 8
        return {
            "rows": n,
            "min_id": lowest,
            "max_id": highest,
            "codes": self._write(manifest, "codes", _blocks((c, mask) for c, _, mask in parts), n, width),
            "ids": self._write(manifest, "ids", _blocks((ids, mask) for _, ids, mask in parts), n),
        }

    def _write(self, manifest: dict[str, Any], name: str, blocks: Iterable[npt.NDArray], n: int, *width: int) -> dict:
        """Write blocks as one new .npy file of shape (n, *width), flushed to the disk; return its manifest entry."""
        file = f"{name}-{manifest['next_file']:06d}.npy"
        manifest["next_file"] += 1
        dtype = np.dtype(_TYPES[name])
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n, *width)}
        checksum = 0
        with replacing(self.folder / file) as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            for block in blocks:
                data = np.ascontiguousarray(block, dtype)
                checksum = zlib.crc32(data.data, checksum)
                stream.write(data)
            size = stream.tell()
        return {"file": file, "rows": n, "bytes": size, "crc32": checksum}

    def _commit(self, manifest: dict[str, Any]) -> None:
        manifest = {**manifest, "commit": manifest["commit"] + 1}
        try:
            text = json.dumps(manifest)
        except (TypeError, ValueError) as error:
            raise ValueError(f"progress, meta and settings must be JSON: {error}") from None
        written = json.loads(text)
        sealed = json.dumps({**written, "crc32": _checksum(written)}).encode()
        sync_folder(self.folder)  # the array files, before the manifest that names them
        write_atomically(self.folder / MANIFEST, sealed)
        sync_folder(self.folder)
        self.manifest = written
        self._clean()

    def _clean(self) -> None:
        """Delete temporary files of killed processes, and array files that the manifest does not name."""
        named = {entry["file"] for entry in self._entries()}
        for name in os.listdir(self.folder):
            if is_temporary(name) or (OURS.fullmatch(name) and name not in named):
                with suppress(OSError):  # on Windows, mapped files cannot be deleted
                    (self.folder / name).unlink()

    def _entries(self) -> list[dict[str, Any]]:
        return [entry for _, entry in _files_in(self.manifest)]

    def _check_file(self, entry: dict[str, Any]) -> Path:
        path = self.folder / entry["file"]
        size = path.stat().st_size if path.exists() else None
        if size != entry["bytes"]:
            found = "is missing" if size is None else f"has {size} bytes"
            raise BadFile(path, f"{found}, expected {entry['bytes']} bytes; restore the index from a copy")
        return path

    def _array(self, entry: dict[str, Any], mmap: bool) -> npt.NDArray:
        path = self._check_file(entry)
        name = entry["file"].partition("-")[0]
        shape = (entry["rows"], self.n_bits // 8) if name == "codes" else (entry["rows"],)
        try:
            with path.open("rb") as stream:
                header = read_header(stream)
                whole = stream.tell() + header.n_bytes == entry["bytes"]
            if not whole or header.dtype != _TYPES[name] or header.shape != shape:
                raise ValueError
            array = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        except ValueError:
            raise BadFile(path, f"is not the array that {MANIFEST} names; restore the index from a copy") from None
        return array if mmap else self._same(entry, np.array(array))

    def _same(self, entry: dict[str, Any], array: npt.NDArray) -> npt.NDArray:
        if zlib.crc32(np.ascontiguousarray(array).data) != entry["crc32"]:
            path = self.folder / entry["file"]
            raise BadFile(path, f"has a checksum other than {MANIFEST} states; restore the index from a copy")
        return array

    def _whole(self, segment: dict[str, Any]) -> tuple[Codes, Ids]:
        """Return (codes, ids) of a segment as memory maps; verify checksums, because rewriting would hide damage."""
        codes, ids = (self._same(segment[name], self._array(segment[name], True)) for name in ("codes", "ids"))
        return codes, ids


def consistent(folder: Path, read: Callable[[Store], T]) -> T:
    """Open an index and return ``read(store)``; if this fails while another process commits, retry."""
    for _ in range(_ATTEMPTS - 1):
        store = Store(folder, read_manifest(folder))
        try:
            return read(store)
        except (ValueError, FileNotFoundError):
            if Store(folder, read_manifest(folder)).version == store.version:
                raise
    return read(Store(folder, read_manifest(folder)))


def _blocks(parts: Iterable[tuple[npt.NDArray, npt.NDArray[np.bool_] | None]]) -> Iterator[npt.NDArray]:
    for array, keep in parts:
        for start in range(0, len(array), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield array[rows] if keep is None else array[rows][keep[rows]]


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder} holds no similia index (no {MANIFEST}); make one with HammingIndex.save")
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["format"] != FORMAT or not isinstance(manifest["version"], int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadFile(path, "was not written by similia; name a folder that HammingIndex.save made") from None
    if manifest["version"] > VERSION:
        found = short(manifest["version"])
        raise BadFile(path, f"has format {found}, but this similia reads formats up to {VERSION}; upgrade similia")
    try:
        if manifest.pop("crc32", None) not in (None, _checksum(manifest)):  # older manifests have no checksum
            raise ValueError
        _check_manifest(manifest)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError):
        raise BadFile(path, "is damaged; restore the index from a copy") from None
    return manifest


def _files_in(manifest: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, such as "codes", and manifest entry) of each array file that a manifest names."""
    for segment in manifest["segments"]:
        yield from (("codes", segment["codes"]), ("ids", segment["ids"]))
    yield from (("dead", entry) for entry in manifest["dead"])
    if manifest["structure"] is not None:
        yield "structure", manifest["structure"]


def _checksum(manifest: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Raise an exception (of any type) if values in a manifest have wrong types or contradict each other."""
    segments, structure = manifest["segments"], manifest["structure"]
    numbers = [manifest[name] for name in ("commit", "next_file", "next_id")]
    numbers += [segment[name] for segment in segments for name in ("rows", "min_id", "max_id")]
    numbers += [entry[name] for _, entry in _files_in(manifest) for name in ("rows", "bytes", "crc32")]
    files = [(kind, OURS.fullmatch(entry["file"])) for kind, entry in _files_in(manifest)]  # no paths to other folders
    fits = check_n_bits(manifest["n_bits"]) <= _MOST_BITS and isinstance(manifest["token"], str)
    fits = fits and all(isinstance(manifest[name], dict) for name in ("settings", "meta", "progress"))
    fits = fits and _naturals(numbers) and all(file and file[1] == kind for kind, file in files)
    fits = fits and all(one["rows"] == one["codes"]["rows"] == one["ids"]["rows"] for one in segments)
    if structure is not None:
        fits = fits and _naturals([structure["covers"]], sum(one["rows"] for one in segments))
    if not fits:
        raise ValueError


def _naturals(values: Iterable[Any], most: int = 2**63) -> bool:
    return all(isinstance(value, int) and 0 <= value <= most for value in values)
