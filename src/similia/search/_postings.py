"""The inverted lists of some objects in one file, which can be memory-mapped: loading an index need not count features.

The file begins with the length of a header (8 bytes, little-endian) and the header, JSON that gives the type, the
length, the position and the checksum of each array of a `Segment`. The arrays follow, each at a multiple of 64 bytes.
Compiled loops trust these arrays, so reading checks that every position in them exists, and that positions ascend in
each list; checksums are verified unless the file is mapped, as for codes (`Store.arrays`).
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadFile
from similia.search.feature_index import Segment
from similia.storage.disk import replacing
from similia.storage.store import Ids

_VERSION, _ALIGNED, _MOST_HEADER = 1, 64, 2**16
_TYPES = {
    "features": ("u8",), "starts": ("i8",), "rows": ("i4",), "amounts": ("u1", "f4"), "tops": ("f8",),
    "limits": ("i8",), "held": ("i4",), "counts": ("u1", "f8"), "sizes": ("f8",), "ids": ("i8",),
}  # fmt: skip


def write(segment: Segment, path: Path) -> None:
    """Write a segment, none of whose objects is removed, to a file."""
    entries, at = {}, 0
    arrays = {name: np.ascontiguousarray(getattr(segment, name)) for name in _TYPES}
    for name, array in arrays.items():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        entries[name] = [array.dtype.str[1:], len(array), at, zlib.crc32(little.data)]
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps({"version": _VERSION, "whole": segment.whole, "bytes": at, "arrays": entries}).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNED)
    with replacing(path) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            stream.write(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
            stream.write(bytes(-array.nbytes % _ALIGNED))


def read(path: Path, ids: Ids, mmap: bool) -> Segment:
    """Return the segment in a file, which must hold the objects with these ids; raise `BadFile` if it is damaged."""
    try:
        data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r").view(np.ndarray)
        if not mmap:
            data = np.array(data)
            data.flags.writeable = False
        return _checked(data, ids, mmap)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        found = "does not hold the inverted lists of the objects beside it"
        raise BadFile(path, f"{found}; restore the index from a copy") from None


def _checked(data: npt.NDArray[np.uint8], ids: Ids, mmap: bool) -> Segment:
    """Return the segment in the bytes of a file; raise an error of any of several types if something does not fit."""
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    if start > min(len(data), _MOST_HEADER) or start % _ALIGNED:
        raise ValueError
    header = json.loads(data[8:start].tobytes())
    if header["version"] != _VERSION or len(data) != start + header["bytes"] or type(header["whole"]) is not bool:
        raise ValueError
    arrays = {name: _array(data[start:], header["arrays"][name], kinds, mmap) for name, kinds in _TYPES.items()}
    segment = Segment(**arrays, dead=np.zeros(len(ids), np.bool_), whole=header["whole"])
    if not _fits(segment) or not np.array_equal(np.sort(segment.ids), np.sort(ids)):
        raise ValueError
    return segment


def _array(data: npt.NDArray[np.uint8], entry: Any, kinds: tuple[str, ...], mmap: bool) -> npt.NDArray[Any]:
    """Return the array that an entry of the header describes, and that has one of the types `kinds`."""
    kind, n, at, checksum = entry
    if kind not in kinds or not all(type(value) is int and value >= 0 for value in (n, at, checksum)):
        raise ValueError
    size = n * np.dtype(kind).itemsize
    if at % _ALIGNED or at + size > len(data) or (not mmap and zlib.crc32(data[at : at + size].data) != checksum):
        raise ValueError
    return data[at : at + size].view(np.dtype(f"<{kind}"))


def _fits(one: Segment) -> bool:
    """Return whether the arrays of a segment fit each other, so that loops stay within them."""
    from similia.search import _feature_index as loops

    n, m = len(one.sizes), len(one.features)
    fits = len(one.starts) == m + 1 and len(one.limits) == n + 1 and len(one.tops) == m and len(one.ids) == n
    fits = fits and len(one.rows) == len(one.amounts) == len(one.held) == len(one.counts)
    fits = fits and (one.amounts.dtype == np.uint8) == (one.counts.dtype == np.uint8)
    for offsets, places, end in ((one.starts, one.rows, n), (one.limits, one.held, m)):
        fits = fits and bool(offsets[0] == 0 and offsets[-1] == len(places) and (offsets[1:] >= offsets[:-1]).all())
        fits = fits and (len(places) == 0 or bool(places.min() >= 0 and places.max() < end))
        fits = fits and bool(loops.ascend(offsets, places))
    return fits and bool((one.features[1:] > one.features[:-1]).all() and (one.sizes[1:] >= one.sizes[:-1]).all())
