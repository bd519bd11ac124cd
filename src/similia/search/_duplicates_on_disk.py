"""Near-duplicates among objects that do not fit into memory, as pairs, values and recall equal to those in memory.

A folder holds what each step found; a step appends to a `Journal`, so a run that stops goes on where it was.

1. ``signatures``: for each object, its keys and hashes (`Plan.hashed`) and its size. Objects are read once.
2. ``candidates``: pairs with equal keys. The keys of as many bands as fit into memory are read and sorted at once; if
   those of one band do not fit, objects are split by key, and each pass takes one share. The signatures of objects with
   equal keys are read again, to leave out pairs that an earlier band has and pairs with few equal hashes.
3. ``pairs``: candidates that pass the threshold. Connected components of candidates are put together into batches whose
   objects fit into memory; the source is read once for each batch.

Memory beside ``max_memory``: a few whole numbers for each object and for each pair found, and the signatures of the
objects that share one key. Time beside that in memory: a reading of the signatures for each pass, of the source for
each batch.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import settings, track
from similia.core.hashing import fingerprint
from similia.core.validation import BadFile, BadValue, generator, part_from, spawn_seeds
from similia.kernels import MinMax
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import StringBatch
from similia.search._join import (
    Join,
    Limit,
    Plan,
    bytes_of,
    check_number,
    components,
    estimated_recall,
    n_letters_compared,
    once,
    pairs_to_estimate,
    plan,
    propose_equal,
    sample_of,
)
from similia.similarity import Floats, Index
from similia.sources.dask import Distributed
from similia.sources.source import Source
from similia.storage.disk import LOCK, Journal, is_leftover, take_lock, write_atomically

_RUN, _SIGNATURES, _CANDIDATES, _PAIRS = "run.json", "signatures", "candidates", "pairs"
_PARTIAL = ".partial"
_FLUSH = 32  # bits of the number of a commit that count the commits of one pass
_PER_KEY = 48  # bytes of memory for a key and its position, while they are sorted
_RUN_OF, _GAP = 2**18, 2**13  # bytes of signatures read at once, and bytes between two that are read along
_MOST_CANDIDATES = 2**31
_N_READ = 256  # objects to which the hashing is fitted, as `MinHash.fit` takes from a collection in memory
_WEIGHT = 8  # memory for the comparison of a batch, as a multiple of its objects' bytes

_EDGE = np.dtype([("left", "<i8"), ("right", "<i8")])
_PAIR = np.dtype([("left", "<i8"), ("right", "<i8"), ("value", "<f8")])


class Found(NamedTuple):
    """Pairs, each once and in ascending order, their values, the estimated recall, and the group of each object."""

    pairs: Index
    values: Floats
    recall: float
    groups: Index


class _Batch(NamedTuple):
    """Sorted positions of objects that fit into memory together, and the pairs ``left[t], right[t]`` to compare.

    If `every`, each object of `left` is compared with those of `right` behind it.
    """

    rows: Index
    left: Index
    right: Index
    every: bool = False


def find(limit: Limit, source: Source, n: int, recall: float, random_state: Any, folder: Path) -> Found:
    """Return the near-duplicates among the n objects of `source`; `folder` keeps what is done."""
    folder.mkdir(exist_ok=True)
    if not (folder / _RUN).exists() and not all(map(is_leftover, os.listdir(folder))):
        raise BadFile(folder, "holds other files than those of near_duplicates; name a new or an empty folder")
    with closing(take_lock(folder)):
        seeds = _started(limit, source, n, recall, random_state, folder)
        rng = generator(seeds[0])
        sample, even = sample_of(n, rng), np.unique(np.linspace(0, n - 1, min(n, _N_READ)).astype(np.int64))
        both = _taken(limit, source, np.concatenate([sample, even]))
        few = np.arange(len(sample), len(sample) + len(even))
        bands = plan(limit, take(both, np.arange(len(sample))), n, recall, rng)
        work = _Work(limit, source, n, bands, folder)
        if bands is not None:
            work.sign(bands.hashing(seeds[1]).fit(take(both, few)))
            work.propose()
        work.verify()
        return work.found()


def discard(folder: Path) -> None:
    """Delete what `find` keeps in a folder, and the folder if nothing else is in it."""
    _forget(folder)
    for name in (_RUN, LOCK):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _forget(folder: Path) -> None:
    for name in (_SIGNATURES, _CANDIDATES, _PAIRS):
        (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / f"{name}{_PARTIAL}", ignore_errors=True)


def counted(source: Source) -> int:
    """Return the number of objects of a source, which is read if that is not known."""
    if isinstance(source, Distributed):
        return len(source)
    if source.n is not None:
        return source.n
    n = 0
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            n = chunk.stop
    return n


def _started(limit: Limit, source: Source, n: int, recall: float, random_state: Any, folder: Path) -> list[Any]:
    """Return the seeds of this run or, if the folder holds an earlier run for the same, its seeds."""
    seed = int(random_state) if isinstance(random_state, int | np.integer) else None
    belongs = {
        "data": source.fingerprint() if source.again else os.urandom(16).hex(), "n": n, "seed": seed,
        "similarity": fingerprint(limit.metric.function, "the similarity"), "threshold": limit.threshold,
        "relative": limit.relative, "recall": recall, "version": 3,
    }  # fmt: skip
    path = folder / _RUN
    if path.exists():
        try:
            earlier = json.loads(path.read_bytes())
        except ValueError:
            earlier = None
        if isinstance(earlier, dict) and earlier.get("belongs") == belongs:
            seeds: list[Any] = earlier["seeds"]
            return seeds
    _forget(folder)
    fresh = spawn_seeds(generator(None) if random_state is None else random_state, 2)
    write_atomically(path, json.dumps({"belongs": belongs, "seeds": fresh}).encode())
    return fresh


def _taken(limit: Limit, source: Source, rows: Index) -> Any:
    return limit.metric.as_objects(source.take(rows))


class _Work:
    """The steps of one run; each is left out if its file is there."""

    def __init__(self, limit: Limit, source: Source, n: int, bands: Plan | None, folder: Path) -> None:
        self.limit, self.source, self.n, self.plan, self.folder = limit, source, n, bands, folder
        self.max_memory = settings().max_memory
        self.row: Any = None
        if bands is not None:
            keys, hashes = ("keys", "<u8", (bands.bands,)), ("hashes", "u1", (bands.rows * bands.bands,))
            self.row = np.dtype([keys, hashes, ("letters", "<i8"), ("bytes", "<i8"), ("nothing", "?")])

    # ---- signatures
    def sign(self, hashing: Any) -> None:
        """Write the signature of each object."""
        path = self.folder / _SIGNATURES
        if path.exists():
            return
        assert self.plan is not None
        with Journal(self._partial(path)) as journal:
            if journal.header is None or isinstance(self.source, Distributed):
                journal.start({}, 0)
            else:
                journal.resume()
            for signatures in track(self._signatures(hashing, journal.done), "objects hashed"):
                journal.append(signatures.tobytes(), journal.done + len(signatures))
            if journal.done != self.n:
                raise BadValue(None, f"has {journal.done} objects", f"{self.n}, as when they were counted")
            journal.finish(path, b"")

    def _signatures(self, hashing: Any, start: int) -> Iterator[npt.NDArray]:
        """Yield the signatures of the objects from position `start` on, in parts; of Dask, made by its workers."""
        assert self.plan is not None
        if isinstance(self.source, Distributed):
            yield from self.source.map(_signed, hashing, self.plan, self.row, few=True)
            return
        with closing(self.source.chunks(start)) as chunks:
            for chunk in chunks:
                with part_from(chunk.start):
                    yield _signed(self.limit.metric.as_objects(chunk.objects), 0, hashing, self.plan, self.row)

    # ---- candidates
    def propose(self) -> None:
        """Write the pairs with equal keys."""
        path = self.folder / _CANDIDATES
        if path.exists():
            return
        together, shares = self._passes()
        header = {"together": together, "shares": shares, "max_memory": self.max_memory}  # all decide where parts end
        with Journal(self._partial(path)) as journal:
            if journal.header == header:
                journal.resume()
            else:
                journal.start(header, 0)
            assert self.plan is not None
            done, flushed = journal.done >> _FLUSH, journal.done & (2**_FLUSH - 1)
            passes = [(b, s) for b in range(0, self.plan.bands, together) for s in range(shares)]
            n_pairs = (self._partial(path) / "data").stat().st_size // _EDGE.itemsize
            for number in track(range(done, len(passes)), "candidates", len(passes) - done):
                band, share = passes[number]
                bands = range(band, min(self.plan.bands, band + together))
                for flush, edges in enumerate(self._edges(bands, share, shares), 1):
                    if number == done and flush <= flushed:
                        continue
                    journal.append(edges.tobytes(), (number << _FLUSH) + flush)
                    n_pairs += len(edges)
                    if n_pairs > _MOST_CANDIDATES:
                        found = f"has more than {_MOST_CANDIDATES} pairs to compare"
                        raise BadValue(None, found, "fewer", "take a stricter threshold, or drop equal objects first")
                journal.append(b"", (number + 1) << _FLUSH)
            journal.finish(path, b"")

    def _passes(self) -> tuple[int, int]:
        """Return how many bands are sorted together, and into how many shares the objects of one band are split."""
        assert self.plan is not None
        fit, one = self.max_memory // 4, _PER_KEY * self.n
        return max(1, min(self.plan.bands, fit // one)), max(1, -(-one // fit))

    def _edges(self, bands: range, share: int, shares: int) -> Iterator[npt.NDArray]:
        """Yield the candidates of some bands, in parts; of the objects, those of one share."""
        rows: list[list[npt.NDArray]] = [[] for _ in bands]
        keys: list[list[npt.NDArray]] = [[] for _ in bands]
        for start, block in self._blocks(self.folder / _SIGNATURES, self.row):
            some = ~block["nothing"]
            for b, band in enumerate(bands):
                column = block["keys"][:, band]
                kept = np.flatnonzero(some if shares == 1 else some & (column % np.uint64(shares) == share))
                rows[b].append(start + kept)
                keys[b].append(column[kept])
        for b, band in enumerate(bands):
            all_rows, all_keys = np.concatenate(rows[b]), np.concatenate(keys[b])
            rows[b], keys[b] = [], []
            order = np.argsort(all_keys, kind="stable")
            yield from self._of_band(band, all_rows[order], all_keys[order])

    def _of_band(self, band: int, rows: Index, keys: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray]:
        """Yield the candidates among `rows`, sorted by their `keys` of one band."""
        assert self.plan is not None
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
        sizes = np.diff(np.append(starts, len(keys)))
        kept = sizes > 1
        rows = rows[np.repeat(kept, sizes)]
        ends = np.cumsum(sizes[kept])
        most, first = max(1, self.max_memory // (4 * self.row.itemsize)), 0
        size = max(2**14, self.max_memory // 64)
        with open(self.folder / _SIGNATURES, "rb", buffering=0) as file:
            while first < len(rows):
                stop = int(ends[max(np.searchsorted(ends, first + most, "right") - 1, 0)])
                stop = stop if stop > first else int(ends[np.searchsorted(ends, first, "right")])
                here = rows[first:stop]
                by_position = np.argsort(here)
                found = _read(file, self.row, here[by_position])
                order = np.empty(len(here), np.int64)
                order[by_position] = np.arange(len(here))
                yield from self._agreeing(found, order, band, here[by_position], max(size, len(here)))
                first = stop

    def _agreeing(
        self, found: npt.NDArray, order: Index, band: int, positions: Index, size: int
    ) -> Iterator[npt.NDArray]:
        """Yield the candidates among signatures, which `order` sorts by their key of the band."""
        assert self.plan is not None
        keys, hashes = (np.ascontiguousarray(found[name]) for name in ("keys", "hashes"))
        left, right = np.empty(size, np.int64), np.empty(size, np.int64)
        own, at = keys[order, band], 0
        while at < len(order):
            at, used = propose_equal(keys, hashes, self.plan.least, order, own, band, at, left, right)
            if used:
                edges = np.empty(used, _EDGE)
                edges["left"], edges["right"] = positions[left[:used]], positions[right[:used]]
                yield edges

    # ---- pairs
    def verify(self) -> None:
        """Write the candidates that pass the threshold."""
        path = self.folder / _PAIRS
        if path.exists():
            return
        header = {"max_memory": self.max_memory}
        with Journal(self._partial(path)) as journal:
            if journal.header == header:
                journal.resume()
            else:
                journal.start(header, 0)
            n_pairs = (self._partial(path) / "data").stat().st_size // _PAIR.itemsize
            for number, batch in enumerate(self._batches()):
                if number < journal.done:
                    continue
                pairs = self._passing(batch)
                n_pairs += len(pairs)
                check_number(n_pairs, self.limit)
                journal.append(pairs.tobytes(), number + 1)
            journal.finish(path, b"")

    def _passing(self, batch: _Batch) -> npt.NDArray:
        """Return the pairs of a batch that pass."""
        rows = batch.rows
        join = Join(self.limit, _taken(self.limit, self.source, rows))
        compare = join.all_pairs if batch.every else join.compare
        compare(np.searchsorted(rows, batch.left), np.searchsorted(rows, batch.right))
        pairs, values = join.found()
        found = np.empty(len(pairs), _PAIR)
        found["left"], found["right"], found["value"] = rows[pairs[:, 0]], rows[pairs[:, 1]], values
        return found

    def _batches(self) -> Iterator[_Batch]:
        if self.plan is None:
            sizes = np.concatenate([_sizes(c.objects)[1] for c in self.source.chunks()])
            yield from self._tiles(np.arange(self.n), sizes)
            return
        yield from self._of_components()
        if self.limit.is_edits:
            near, sizes = self._short()
            yield from self._tiles(near, sizes)

    def _of_components(self) -> Iterator[_Batch]:
        """Yield batches of whole components of the graph of candidates; a large component is cut into tiles."""
        root = components(((edges["left"], edges["right"]) for edges in self._edges_on_disk()), self.n)
        involved = np.zeros(self.n, np.bool_)
        for edges in self._edges_on_disk():
            involved[edges["left"]] = involved[edges["right"]] = True
        rows, fit = np.flatnonzero(involved), max(1, self.max_memory // _WEIGHT)
        del involved
        sizes = self._column("bytes", rows)
        names, component = np.unique(root[rows], return_inverse=True)
        totals = np.bincount(component, sizes, len(names))
        batch_of = ((np.cumsum(totals) - totals) // fit).astype(np.int64)
        for batch in range(int(batch_of.max(initial=-1)) + 1):
            parts = [np.zeros(0, _EDGE)]
            for edges in self._edges_on_disk():
                at = batch_of[np.searchsorted(names, root[edges["left"]])]
                parts.append(edges[at == batch])
            edges = np.concatenate(parts)
            if not len(edges):
                continue
            members = np.flatnonzero(batch_of[component] == batch)
            tile = np.zeros(len(members), np.int64)
            if sizes[members].sum() > 2 * fit:
                tile = (np.cumsum(sizes[members]) // fit).astype(np.int64)
            ends = [tile[np.searchsorted(rows[members], edges[side])] for side in ("left", "right")]
            pair_of_tiles = ends[0] * (int(tile[-1]) + 1) + ends[1]
            for number in np.unique(pair_of_tiles):
                left, right = (edges[side][pair_of_tiles == number] for side in ("left", "right"))
                yield _Batch(np.unique(np.concatenate([left, right])), left, right)

    def _short(self) -> tuple[Index, Index]:
        """Return the strings that may be near to a string without k-mers, and their bytes."""
        assert self.plan is not None
        longest = -1
        for _, block in self._blocks(self.folder / _SIGNATURES, self.row):
            longest = max(longest, int(block["letters"][block["nothing"]].max(initial=-1)))
        if longest < 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        most, rows, sizes = n_letters_compared(self.limit, longest), [], []
        for start, block in self._blocks(self.folder / _SIGNATURES, self.row):
            here = np.flatnonzero(block["letters"] <= most)
            rows.append(start + here)
            sizes.append(block["bytes"][here])
        return np.concatenate(rows), np.concatenate(sizes)

    def _tiles(self, rows: Index, sizes: Index) -> Iterator[_Batch]:
        """Yield unions of two blocks of `rows`, so that any two objects are compared in one of them."""
        tile = (np.cumsum(sizes) // max(1, self.max_memory // (2 * _WEIGHT))).astype(np.int64)
        blocks = [rows[tile == t] for t in np.unique(tile)]
        last = len(blocks) - 1
        for i, block in enumerate(blocks):
            for j in range(i + 1, last + 1):
                both = np.concatenate([block, blocks[j]])
                right = both if j == i + 1 else blocks[j]  # objects of one block are compared along with the next
                yield _Batch(both, both if i == last - 1 else block, right, every=True)
        if len(blocks) == 1:
            yield _Batch(rows, rows, rows, every=True)

    # ---- the result
    def found(self) -> Found:
        """Return the pairs in order, and the estimated recall."""
        found = np.fromfile(self.folder / _PAIRS, _PAIR)
        groups = components([(found["left"], found["right"])], self.n)
        pairs, values = once(np.stack([found["left"], found["right"]], axis=1), found["value"], self.n)
        if self.plan is None:
            return Found(pairs, values, 1.0, groups)
        shared = values
        if self.limit.is_edits:
            some = pairs[pairs_to_estimate(len(pairs))]
            shared = np.zeros(0)
            if len(some):
                rows, places = np.unique(some, return_inverse=True)
                objects, places = _taken(self.limit, self.source, rows), places.reshape(some.shape)
                shared = np.asarray(MinMax(self.plan.kernel).paired(objects, objects, places[:, 0], places[:, 1]))
        return Found(pairs, values, estimated_recall(shared, self.plan), groups)

    # ---- files
    def _partial(self, path: Path) -> Path:
        return path.with_name(path.name + _PARTIAL)

    def _blocks(self, path: Path, row: np.dtype) -> Iterator[tuple[int, npt.NDArray]]:
        """Yield the records of a file in blocks, and the number of the first one of each."""
        size, start = max(1, int(np.clip(self.max_memory // 32, 2**16, 2**22)) // row.itemsize), 0
        with open(path, "rb", buffering=0) as file:
            while len(block := np.fromfile(file, row, size)):
                yield start, block
                start += len(block)

    def _edges_on_disk(self) -> Iterator[npt.NDArray]:
        return (edges for _, edges in self._blocks(self.folder / _CANDIDATES, _EDGE))

    def _column(self, name: str, rows: Index) -> Index:
        """Return one field of the signatures of the objects at the ascending positions `rows`."""
        found = np.empty(len(rows), np.int64)
        for start, block in self._blocks(self.folder / _SIGNATURES, self.row):
            low, high = np.searchsorted(rows, [start, start + len(block)])
            found[low:high] = block[name][rows[low:high] - start]
        return found


def _signed(objects: Any, _start: int, hashing: Any, plan: Plan, row: np.dtype) -> npt.NDArray:
    """Return the signatures of objects."""
    found = np.empty(n_objects(objects), row)
    found["keys"], found["hashes"], found["nothing"] = plan.hashed(hashing, objects)
    found["letters"], found["bytes"] = _sizes(objects)
    return found


def _sizes(objects: Any) -> tuple[Index, Index]:
    """Return the number of letters (of strings; else 0) and, about, of bytes of each object."""
    n = n_objects(objects)
    if isinstance(objects, StringBatch):
        letters = np.diff(objects.offsets)
        return letters, letters * objects.values.itemsize + 16
    return np.zeros(n, np.int64), np.full(n, bytes_of(objects) // n + 16)


def _read(file: Any, row: np.dtype, positions: Index) -> npt.NDArray:
    """Return the records at ascending positions; those near each other are read at once."""
    found = np.empty(len(positions), row)
    run, gap = max(1, _RUN_OF // row.itemsize), max(1, _GAP // row.itemsize)
    cut = (np.diff(positions) > gap) | (np.diff(positions // run) > 0)
    starts = np.concatenate([[0], np.flatnonzero(cut) + 1, [len(positions)]]).tolist()
    for a, b in pairwise(starts):
        first = int(positions[a])
        file.seek(first * row.itemsize)
        block = np.fromfile(file, row, int(positions[b - 1]) - first + 1)
        found[a:b] = block[positions[a:b] - first]
    return found


def whole(source: Source, n: int) -> Any:
    """Return all objects of a small source."""
    if isinstance(source, Distributed):
        return source.take(np.arange(n))
    with closing(source.chunks()) as chunks:
        return concatenate([chunk.objects for chunk in chunks])
