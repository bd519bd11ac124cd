"""Objects of iterables and generators, a few at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from itertools import chain, islice
from typing import Any

import numpy as np

from similia.core.errors import shifted_text
from similia.core.text import _short
from similia.core.validation import check_vectors
from similia.objects._graphs import GraphBatch
from similia.objects._strings import StringBatch
from similia.objects._vectors import SeriesBatch, SetBatch
from similia.objects.batches import Batch
from similia.sources._blocks import Records

_KINDS: dict[type, str] = {StringBatch: "strings", GraphBatch: "graphs", SeriesBatch: "series", SetBatch: "sets"}


OF_ARRAYS = ("series", "sets", "vectors")  # what arrays may be


class Items:
    """Objects of an iterable: strings, series, graphs, batches of ours, or the rows of a 2-D array.

    `kind` says what arrays are, one of `OF_ARRAYS`; series if not given. `of_arrays` tells whether it matters.
    """

    of_arrays = False

    def __init__(self, source: Any, kind: str | None = None) -> None:
        if isinstance(source, bytes | Mapping | Set) or not isinstance(source, Iterable):
            raise TypeError(f"expected a path or an ordered iterable of objects, got {_short(source)}")
        self.n: int | None = len(source) if isinstance(source, Sized) else None
        self._source: Any = source
        if isinstance(source, Batch) or (isinstance(source, np.ndarray) and source.ndim == 2):
            self.kind = _KINDS.get(type(source), "vectors")
            _check_kind(kind, self.kind)
            self._items = self._slices
            return
        iterator = iter(source)
        self._once = iterator is source  # a generator, not a list
        first = list(islice(iterator, 1))
        if not first:
            raise ValueError("the iterable holds no objects, expected at least one")
        self.kind = kind_of_item(first[0])
        self.of_arrays = self.kind == "series" and not isinstance(first[0], Batch)
        if kind is not None and self.of_arrays:
            self.kind = kind
        _check_kind(kind, self.kind)
        if isinstance(first[0], Batch):
            self.n = None
        if self._once:
            self._source = chain(first, iterator)
        self._items = self._converted

    def records(self, start: int, chunk: int, max_bytes: int) -> Iterator[Records]:
        """Yield the objects from number `start` on."""
        if self._source is None:
            raise ValueError("this generator was read before; make a new one")
        row = end = 0
        for batch in self._items(chunk, max_bytes):
            skip = min(len(batch), max(0, start - row))
            row += len(batch)
            if skip < len(batch):
                batch = batch[skip:] if skip else batch
                ends = end + _sizes(batch)
                end = int(ends[-1])
                yield Records((batch,), ends)

    def _slices(self, chunk: int, max_bytes: int) -> Iterator[Any]:
        for start in range(0, len(self._source), chunk):
            yield self._source[start : start + chunk]

    def _converted(self, chunk: int, max_bytes: int) -> Iterator[Any]:
        """Yield batches of `chunk` items or as many as take about `max_bytes`."""
        items: list[Any] = []
        size = passed = 0
        source = self._source
        if self._once:
            self._source = None
        for item in source:
            if isinstance(item, Batch):
                if _KINDS.get(type(item)) != self.kind:
                    raise TypeError(f"item {passed} is a {type(item).__name__}, expected {self.kind} as before")
                passed += 1
                yield item
                continue
            items.append(item)
            size += item.nbytes if isinstance(item, np.ndarray) else len(item) if hasattr(item, "__len__") else 0
            if len(items) == chunk or size >= max_bytes:
                yield _numbered(_reader(self.kind), items, passed)
                passed, items, size = passed + len(items), [], 0
        if items:
            yield _numbered(_reader(self.kind), items, passed)


def _check_kind(wanted: str | None, found: str) -> None:
    if wanted not in (None, found):
        raise ValueError(f"kind={wanted!r} is for an iterable of arrays, but this one holds {found}; leave kind out")


def kind_of_item(item: Any) -> str:
    """Return the kind of objects that an item is one of, or raise."""
    item = item.as_py() if hasattr(item, "as_py") else item
    if type(item) in _KINDS:
        return _KINDS[type(item)]
    if isinstance(item, str | bytes):
        return "strings"
    if isinstance(item, np.ndarray | list | tuple):
        return "series"
    if item is None or isinstance(item, int | float):
        raise TypeError(f"item 0 is {_short(item)}, expected a string, an array, a graph or a batch of objects")
    return "graphs"


def _reader(kind: str) -> Callable[[Any], Any]:
    from similia.objects.graphs import as_graphs
    from similia.objects.series import as_series
    from similia.objects.sets import as_sets
    from similia.objects.strings import as_strings

    readers: dict[str, Callable[[Any], Any]] = {
        "strings": as_strings, "series": as_series, "graphs": as_graphs, "sets": as_sets, "vectors": _as_vectors,
    }  # fmt: skip
    return readers[kind]


def _as_vectors(items: list[Any]) -> Any:
    """Return arrays of one length as the rows of a matrix."""
    rows = [np.asarray(item) for item in items]
    for i, row in enumerate(rows):
        if row.ndim != 1 or len(row) != len(rows[0]):
            raise ValueError(f"X[{i}] has shape {row.shape}, expected a vector of shape {rows[0].shape}")
    return check_vectors(np.stack(rows))


def _numbered(read: Callable[[Any], Any], items: list[Any], first: int) -> Any:
    """Return ``read(items)``; what it raises about X[i] names the item by its number in the stream."""
    try:
        return read(items)
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        text = shifted_text(str(error), first)
        raise type(error)(re.sub(r"^X\[(\d+)\]", r"item \1", text)) from None


def _sizes(batch: Any) -> np.ndarray:
    """Return about the bytes that the objects up to each take."""
    if isinstance(batch, np.ndarray):
        return np.arange(1, len(batch) + 1) * (batch.nbytes // len(batch))
    if isinstance(batch, GraphBatch):
        return np.asarray(batch.node_offsets[1:]) * 8
    return batch.offsets[1:] * batch.values.itemsize * (batch.values.shape[1] if batch.values.ndim == 2 else 1)
