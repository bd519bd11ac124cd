"""Near-duplicates among objects that do not fit into memory, as pairs, values and recall equal to those in memory.

A folder holds what each step found; a step appends to a `Journal`, so a run that stops goes on where it was.

1. ``signatures``: for each object, its keys and hashes (`Plan`) or its code of bits (`Bits`), and its size. Objects
   are read once.
2. ``candidates``: by hashes, pairs with equal keys. The keys of as many bands as fit into memory are read and sorted at
   once; if those of one band do not fit, objects are split by key, and each pass takes one share. The signatures of
   objects with equal keys are read again, to leave out pairs that an earlier band has and pairs with few equal hashes.
   By bits, each object and those with the nearest codes; a pass takes 4,096 objects and reads all codes.
3. ``pairs``: candidates that pass the threshold. Connected components of candidates are put together into batches whose
   objects fit into memory; the source is read once for each batch. A component that does not fit, which is usual by
   bits, is cut into tiles; the source is read once for each tile, up to its end.
4. By bits, ``recall``: the recall of a sample of objects, which are compared with all others. If it is too low,
   ``within``: pairs of objects of one group, and their recall.

If all pairs are compared, step 3 alone is done, with tiles of all objects.

Memory beside ``max_memory``: a few whole numbers for each object and for each pair found, and the signatures of the
objects that share one key. Time beside that in memory: a reading of the signatures for each pass, of the source for
each batch or tile.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import settings, track
from similia.core.hashing import digest_of
from similia.core.validation import BadFile, BadValue, generator, numbered, part_from, spawn_seeds
from similia.kernels import MinMax
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import StringBatch
from similia.search._join import (
    CHECKED,
    NEAR,
    QUERIES,
    Bits,
    Join,
    Limit,
    Plan,
    bytes_of,
    check_number,
    checked,
    components,
    estimated_recall,
    fitted_to,
    groups_of,
    n_letters_compared,
    once,
    pairs_among,
    pairs_to_estimate,
    plan,
    propose_equal,
    sample_of,
    warn_if_below,
    warn_of_case,
)
from similia.similarity import Floats, Index, Metric
from similia.sources.dask import Distributed
from similia.sources.source import Chunk, Chunks, Source
from similia.storage.disk import LOCK, Journal, is_leftover, take_lock, write_atomically

_RUN, _SIGNATURES, _CANDIDATES, _PAIRS, _WITHIN = "run.json", "signatures", "candidates", "pairs", "within"
_RECALL = {_PAIRS: "recall", _WITHIN: "recall within"}  # files of the recall of the pairs found so far
_PARTIAL = ".partial"
_FLUSH = 32  # bits of the number of a commit that count the commits of one pass
_PER_KEY = 48  # bytes of memory for a key and its position, while they are sorted
_RUN_OF, _GAP = 2**18, 2**13  # bytes of signatures read at once, and bytes between two that are read along
_MOST_CANDIDATES = 2**31
_N_READ = 256  # objects to which the hashing is fitted, as `MinHash.fit` takes from a collection in memory
_WEIGHT = 8  # memory for the comparison of a batch, as a multiple of its objects' bytes
_EDGES = 30 * NEAR  # of the candidates of an object by bits, as so many bytes of the object
_IN_BATCH = 2**18  # pairs within groups that are compared in a batch

_EDGE = np.dtype([("left", "<i8"), ("right", "<i8")])
_PAIR = np.dtype([("left", "<i8"), ("right", "<i8"), ("value", "<f8")])


class Found(NamedTuple):
    """Pairs, each once and in ascending order, their values, the estimated recall, and the group of each object."""

    pairs: Index
    values: Floats
    recall: float
    groups: Index


class _Batch(NamedTuple):
    """Ascending positions of objects that fit into memory together, and the pairs ``left[t], right[t]`` to compare.

    The objects `others` are behind those of `tile`, which several batches in a row may share. If `every`, each object
    of `left` is compared with those of `right` behind it.
    """

    tile: Index
    others: Index
    left: Index
    right: Index
    every: bool = False


def find(limit: Limit, source: Source, n: int, method: str, recall: float, random_state: Any, folder: Path) -> Found:
    """Return the near-duplicates among the n objects of `source`; `folder` keeps what is done."""
    check_folder(folder)
    folder.mkdir(exist_ok=True)
    with closing(take_lock(folder)):
        seeds = _started(limit, source, n, method, recall, random_state, folder)
        if method == "neighbours":
            work = _Work(limit, source, n, Bits(), folder)
            if not (folder / _SIGNATURES).exists():
                rows = fitted_to(n, seeds[0])
                some = taken(limit.metric, source, rows)
                warn_of_case(some, limit.metric.function)
                with numbered(rows):
                    encoder = Bits.encoder(limit.metric, some, seeds[0])
                work.sign(encoder)
            work.propose()
            work.verify(_PAIRS, work.batches())
            return work.found(work.measured(seeds[1], recall))
        bands = None
        if method == "hashes":
            rng = generator(seeds[0])
            sample, even = sample_of(n, rng), np.unique(np.linspace(0, n - 1, min(n, _N_READ)).astype(np.int64))
            both = taken(limit.metric, source, np.concatenate([sample, even]))
            warn_of_case(both, limit.metric.function)
            few = np.arange(len(sample), len(sample) + len(even))
            bands = plan(limit, take(both, np.arange(len(sample))), n, recall, rng)
        work = _Work(limit, source, n, bands, folder)
        if bands is not None:
            work.sign(bands.hashing(seeds[1]).fit(take(both, few)))
            work.propose()
        work.verify(_PAIRS, work.batches())
        return work.found()


def check_folder(folder: Path) -> None:
    """Raise if a path is no folder, or one that holds other files than those of `find`."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadFile(folder, "is a file, expected a folder; name a new or an empty one")
    if not (folder / _RUN).exists() and not all(map(is_leftover, os.listdir(folder))):
        raise BadFile(folder, "holds other files than those of near_duplicates; name a new or an empty folder")


def discard(folder: Path) -> None:
    """Delete what `find` keeps in a folder, and the folder if nothing else is in it."""
    _forget(folder)
    for name in (_RUN, LOCK):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _forget(folder: Path) -> None:
    for name in (_SIGNATURES, _CANDIDATES, _PAIRS, _WITHIN, *_RECALL.values()):
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


def _started(
    limit: Limit, source: Source, n: int, method: str, recall: float, random_state: Any, folder: Path
) -> list[Any]:
    """Return the seeds of this run or, if the folder holds an earlier run for the same, its seeds."""
    seed = int(random_state) if isinstance(random_state, int | np.integer) else None
    belongs = {
        "data": source.fingerprint() if source.again else os.urandom(16).hex(), "n": n, "seed": seed,
        "similarity": digest_of(limit.metric.function), "threshold": limit.threshold,
        "relative": limit.relative, "method": method, "recall": recall, "version": 4,
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


def taken(metric: Metric, source: Source, rows: Index) -> Any:
    """Return the objects of a source at some positions, as a similarity takes them."""
    found = source.take(rows)
    with nullcontext() if isinstance(source, Distributed) else numbered(rows):
        return metric.as_objects(found)


class _Work:
    """The steps of one run; each is left out if its file is there."""

    def __init__(self, limit: Limit, source: Source, n: int, how: Plan | Bits | None, folder: Path) -> None:
        self.limit, self.source, self.n, self.plan, self.folder = limit, source, n, how, folder
        self.max_memory = settings().max_memory
        self.row: Any = None if how is None else how.row
        self.reader = _Reader(limit, source)

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
            yield from self.source.map(_signed, hashing, self.plan, few=True)
            return
        with closing(self.source.chunks(start)) as chunks:
            for chunk in chunks:
                with part_from(chunk.start):
                    yield _signed(self.limit.metric.as_objects(chunk.objects), 0, hashing, self.plan)

    # ---- candidates
    def propose(self) -> None:
        """Write the pairs with equal keys, or near codes."""
        path = self.folder / _CANDIDATES
        if path.exists():
            return
        header = {"max_memory": self.max_memory}  # decides where parts end
        with Journal(self._partial(path)) as journal:
            if journal.header == header:
                journal.resume()
            else:
                journal.start(header, 0)
            done, flushed = journal.done >> _FLUSH, journal.done & (2**_FLUSH - 1)
            passes = self._passes()
            n_pairs = (self._partial(path) / "data").stat().st_size // _EDGE.itemsize
            for number in track(range(done, len(passes)), "candidates", len(passes) - done):
                for flush, edges in enumerate(passes[number](), 1):
                    if number == done and flush <= flushed:
                        continue
                    journal.append(edges.tobytes(), (number << _FLUSH) + flush)
                    n_pairs += len(edges)
                    if n_pairs > _MOST_CANDIDATES:
                        found = f"has more than {_MOST_CANDIDATES} pairs to compare"
                        raise BadValue(None, found, "fewer", "take a stricter threshold, or drop equal objects first")
                journal.append(b"", (number + 1) << _FLUSH)
            journal.finish(path, b"")

    def _passes(self) -> list[Callable[[], Iterator[npt.NDArray]]]:
        """Return functions that yield the candidates of a pass, in parts."""
        if isinstance(self.plan, Bits):
            return [partial(self._near, first) for first in range(0, self.n, QUERIES)]
        assert self.plan is not None
        fit, one, n_bands = self.max_memory // 4, _PER_KEY * self.n, self.plan.bands
        together, shares = max(1, min(n_bands, fit // one)), max(1, -(-one // fit))
        groups = [range(band, min(n_bands, band + together)) for band in range(0, n_bands, together)]
        return [partial(self._edges, bands, share, shares) for bands in groups for share in range(shares)]

    def _near(self, first: int) -> Iterator[npt.NDArray]:
        """Yield the candidates of the objects from position `first` on: those with the nearest codes."""
        codes = np.memmap(self.folder / _SIGNATURES, self.row, "r")["code"]
        yield _edges_of(*Bits.near(codes, first, min(self.n, first + QUERIES)))

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
        assert isinstance(self.plan, Plan)
        keys, hashes = (np.ascontiguousarray(found[name]) for name in ("keys", "hashes"))
        left, right = np.empty(size, np.int64), np.empty(size, np.int64)
        own, at = keys[order, band], 0
        while at < len(order):
            at, used = propose_equal(keys, hashes, self.plan.least, order, own, band, at, left, right)
            if used:
                yield _edges_of(positions[left[:used]], positions[right[:used]])

    # ---- pairs
    def verify(self, name: str, batches: Iterator[_Batch]) -> None:
        """Write the pairs of the batches that pass the threshold to the file `name`."""
        path = self.folder / name
        if path.exists():
            return
        header = {"max_memory": self.max_memory}
        with Journal(self._partial(path)) as journal:
            if journal.header == header:
                journal.resume()
            else:
                journal.start(header, 0)
            n_pairs = (self._partial(path) / "data").stat().st_size // _PAIR.itemsize
            for number, batch in enumerate(batches):
                if number < journal.done:
                    continue
                pairs = self._passing(batch)
                n_pairs += len(pairs)
                check_number(n_pairs, self.limit)
                journal.append(pairs.tobytes(), number + 1)
            journal.finish(path, b"")

    def _passing(self, batch: _Batch) -> npt.NDArray:
        """Return the pairs of a batch that pass."""
        rows = np.concatenate([batch.tile, batch.others])
        join = Join(self.limit, self.reader.objects(batch))
        compare = join.all_pairs if batch.every else join.compare
        with pairs_among(rows, rows):
            compare(np.searchsorted(rows, batch.left), np.searchsorted(rows, batch.right))
        pairs, values = join.found()
        found = np.empty(len(pairs), _PAIR)
        found["left"], found["right"], found["value"] = rows[pairs[:, 0]], rows[pairs[:, 1]], values
        return found

    def batches(self) -> Iterator[_Batch]:
        """Yield the candidates; without a plan, all pairs."""
        if self.plan is None:
            yield from self._tiles(np.arange(self.n), self._all_sizes())
            return
        yield from self._of_components()
        if isinstance(self.plan, Plan) and self.limit.is_edits:
            near, sizes = self._short()
            yield from self._tiles(near, sizes)

    def _all_sizes(self) -> Index:
        """Return about how many bytes each object takes; of Dask, measured by its workers."""
        if isinstance(self.source, Distributed):
            return np.concatenate([*self.source.map(_bytes_each)])
        with closing(self.source.chunks()) as chunks:
            return np.concatenate([_bytes_each(self.limit.metric.as_objects(chunk.objects)) for chunk in chunks])

    def _of_components(self) -> Iterator[_Batch]:
        """Yield batches of whole components of the graph of candidates; a large component is cut into tiles."""
        root = components(((edges["left"], edges["right"]) for edges in self._edges_on_disk()), self.n)
        involved = np.zeros(self.n, np.bool_)
        for edges in self._edges_on_disk():
            involved[edges["left"]] = involved[edges["right"]] = True
        rows = np.flatnonzero(involved)
        sizes = self._column("bytes", rows) + (_EDGES if isinstance(self.plan, Bits) else 0)
        tile = _tiles_of(root[rows], sizes, max(1, self.max_memory // _WEIGHT))
        del involved, root, sizes
        for number in range(int(tile.max(initial=-1)) + 1):
            keys = [np.zeros(0, np.int64)]
            for edges in self._edges_on_disk():
                here = edges[tile[np.searchsorted(rows, edges["left"])] == number]
                keys.append(here["left"] * self.n + here["right"])
            left, right = np.divmod(np.unique(np.concatenate(keys)), self.n)  # by bits, some pairs occur twice
            tile_of_right = tile[np.searchsorted(rows, right)]
            own = np.unique(np.concatenate([left, right[tile_of_right == number]]))
            for other in np.unique(tile_of_right):
                some = tile_of_right == other
                others = right[:0] if other == number else np.unique(right[some])
                yield _Batch(own, others, left[some], right[some])

    def _of_groups(self) -> Iterator[_Batch]:
        """Yield all pairs of objects of each group that the pairs form, small groups first."""
        found, fit = np.fromfile(self.folder / _PAIRS, _PAIR), max(1, self.max_memory // _WEIGHT)
        groups = groups_of(components([(found["left"], found["right"])], self.n))
        sizes, n_bytes, n_pairs = self._column("bytes", np.arange(self.n)), 0, 0
        waiting: list[Index] = []
        for group in groups:
            of_group, among = int(sizes[group].sum()), len(group) * (len(group) - 1) // 2
            if waiting and (n_bytes + of_group > fit or n_pairs + among > _IN_BATCH):
                yield _together(waiting)
                waiting, n_bytes, n_pairs = [], 0, 0
            if of_group > fit or among > _IN_BATCH:
                yield from self._tiles(group, sizes[group])
                continue
            waiting.append(group)
            n_bytes, n_pairs = n_bytes + of_group, n_pairs + among
        if waiting:
            yield _together(waiting)

    def _short(self) -> tuple[Index, Index]:
        """Return the strings that may be near to a string without k-mers, and their bytes."""
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
        """Yield all pairs of two blocks of `rows`, and of a block with itself."""
        tile = (np.cumsum(sizes) // max(1, self.max_memory // (2 * _WEIGHT))).astype(np.int64)
        blocks = np.split(rows, np.flatnonzero(np.diff(tile)) + 1) if len(rows) else []
        for i, block in enumerate(blocks):
            yield _Batch(block, rows[:0], block, block, every=True)
            for other in blocks[i + 1 :]:
                yield _Batch(block, other, block, other, every=True)

    # ---- the result
    def measured(self, seed: Any, recall: float) -> float:
        """Return the recall of bits; if it is too low, compare the objects of each group, and warn if it stays so."""
        share = self._recall(_PAIRS, seed)
        if share < recall:
            self.verify(_WITHIN, self._of_groups())
            share = self._recall(_WITHIN, seed)
        warn_if_below(share, recall)
        return share

    def _recall(self, last: str, seed: Any) -> float:
        """Return the recall of the pairs in the files up to `last`, measured on a sample and kept in a file."""
        path = self.folder / _RECALL[last]
        if not path.exists():
            sample = generator(seed).choice(self.n, min(self.n, CHECKED), replace=False)
            queries = taken(self.limit.metric, self.source, sample)
            with closing(self.source.chunks()) as chunks:
                parts = (self.limit.metric.as_objects(chunk.objects) for chunk in chunks)
                found = checked(self.limit, self._pairs()[0], self.n, sample, queries, parts)
            write_atomically(path, repr(found.recall).encode())
        return float(path.read_text())

    def _pairs(self) -> tuple[Index, Floats]:
        """Return the pairs in order, each once, and their values."""
        paths = [path for path in (self.folder / _PAIRS, self.folder / _WITHIN) if path.exists()]
        found = np.concatenate([np.fromfile(path, _PAIR) for path in paths])
        return once(np.stack([found["left"], found["right"]], axis=1), found["value"], self.n)

    def found(self, recall: float = 1.0) -> Found:
        """Return the pairs in order, and the recall, which is estimated if objects were hashed."""
        pairs, values = self._pairs()
        groups = components([(pairs[:, 0], pairs[:, 1])], self.n)
        if not isinstance(self.plan, Plan):
            return Found(pairs, values, recall, groups)
        shared = values
        if self.limit.is_edits:
            some = pairs[pairs_to_estimate(len(pairs))]
            shared = np.zeros(0)
            if len(some):
                rows, places = np.unique(some, return_inverse=True)
                objects, places = taken(self.limit.metric, self.source, rows), places.reshape(some.shape)
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


class _Reader:
    """Reads the objects of batches: those behind the last ones without going back, those of a shared tile once."""

    def __init__(self, limit: Limit, source: Source) -> None:
        self.limit, self.source = limit, source
        self._chunks: Chunks | None = None
        self._chunk: Chunk | None = None
        self._tile: tuple[Index, Any] | None = None

    def objects(self, batch: _Batch) -> Any:
        """Return the objects of a batch, in the order of their positions."""
        if self._tile is None or self._tile[0] is not batch.tile:
            self._tile = None
            self._tile = batch.tile, self._read(batch.tile)
        tile = self._tile[1]
        return concatenate([tile, self._read(batch.others)]) if len(batch.others) else tile

    def _read(self, rows: Index) -> Any:
        """Return the objects at the ascending positions `rows`."""
        if type(self.source).take is not Source.take:  # reads no more than these
            return taken(self.limit.metric, self.source, rows)
        if self._chunk is None or self._chunks is None or rows[0] < self._chunk.start:
            self._chunks = self.source.chunks(int(rows[0]))
            self._chunk = next(self._chunks)
        parts = []
        while True:
            low, high = np.searchsorted(rows, [self._chunk.start, self._chunk.stop])
            if low < high:
                parts.append(take(self._chunk.objects, rows[low:high] - self._chunk.start))
            if high == len(rows):
                return self.limit.metric.as_objects(concatenate(parts))
            self._chunk = next(self._chunks)


def _tiles_of(root: Index, sizes: Index, fit: int) -> Index:
    """Return the number of a tile for each object, given its component and its bytes.

    Small components share a tile. One of more than `fit` bytes is cut into tiles of about so many, in order.
    """
    _, component = np.unique(root, return_inverse=True)
    totals = np.bincount(component, sizes).astype(np.int64)
    batch = ((np.cumsum(totals) - totals) // fit)[component]
    order = np.argsort(batch, kind="stable")
    batch, sizes = batch[order], sizes[order]
    total = np.bincount(batch, sizes)[batch]
    before = np.cumsum(sizes) - sizes
    part = np.where(total > 2 * fit, (before - before[np.searchsorted(batch, batch)]) // fit, 0)
    tile = np.empty(len(order), np.int64)
    tile[order] = np.cumsum((np.diff(batch, prepend=batch[:1]) != 0) | (np.diff(part, prepend=part[:1]) != 0))
    return tile


def _together(groups: list[Index]) -> _Batch:
    """Return a batch of all pairs of objects of each group."""
    left, right = zip(*(group[np.array(np.triu_indices(len(group), 1))] for group in groups), strict=True)
    rows = np.sort(np.concatenate(groups))
    return _Batch(rows, rows[:0], np.concatenate(left), np.concatenate(right))


def _edges_of(left: Index, right: Index) -> npt.NDArray:
    edges = np.empty(len(left), _EDGE)
    edges["left"], edges["right"] = left, right
    return edges


def _signed(objects: Any, _start: int, hashing: Any, how: Plan | Bits) -> npt.NDArray:
    """Return the signatures of objects."""
    found = np.empty(n_objects(objects), how.row)
    how.sign(hashing, objects, found)
    found["letters"], found["bytes"] = _sizes(objects)
    return found


def _bytes_each(objects: Any, _start: int = 0) -> Index:
    return _sizes(objects)[1]


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
