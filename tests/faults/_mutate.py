"""Mutations: of bytes, of archives member by member, of .npy arrays, of JSON, and of Python objects.

Each function takes a `random.Random` first; nothing else decides what comes out.
"""

from __future__ import annotations

import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

NUMBERS = (
    *("0", "-1", "1", "2", "-0", "+1", "00", "1e5", "1_0", "0x10", "1.5", "1e308", "-1e308", "1e309", "5e-324"),
    *("nan", "NaN", "inf", "-inf", "?", "", " ", "٣", "½", "2147483647", "2147483648", "4294967296"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 400),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_PIECES = (
    *(b"\0", b"\r", b"\n", b"\r\n", b"\n\n", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\x1a", b"\x0c"),
    *(b"\xe2\x80\xa8", b"\x85", b"\x1c", b",", b";", b":", b"\t", b'"', b"'", b'""', b">", b"@", b"+", b"#", b"%"),
    *(b"@data", b"@dimensions", b"(", b")", b"[", b"{", b"\\", b" ", b"\xc2\xa0", b"\xf0\x9f\x98\x80", b"A" * 3000),
)


def mutated_bytes(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return `data` after one to four mutations; `others` are what it may be spliced with."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(_ON_BYTES)(rng, data, others)
    return data


def _flip(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _slice(rng: Random, data: bytes) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.choice((1, 1, 2, 4, 16, 64, 1000)))


def _insert(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_PIECES) + data[place:]


def _delete(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    first, last = _slice(rng, data)
    return data[:first] + data[last:]


def _repeat(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    first, last = _slice(rng, data)
    return data[:last] + data[first:last] * rng.choice((1, 1, 2, 10, 100)) + data[last:]


def _splice(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _truncate(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _number(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return _insert(rng, data, others)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS).encode() + data[match.end() :]


def _recode(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-8-sig", "latin-1", "cp037", "utf-7")), "replace")


def _line_ends(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"", b"\0\n")))


def _nest(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    place, left, right = rng.randrange(len(data) + 1), *rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
    depth = rng.choice((3, 50, 500, 5000))
    return data[:place] + left * depth + b"0" + right * depth + data[place:]


_ON_BYTES: tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...] = (
    *(_flip, _set, _insert, _insert, _delete, _repeat, _splice, _truncate),
    *(_number, _number, _number, _recode, _line_ends, _nest),
)


# --- archives ---------------------------------------------------------------------------------


def members(data: bytes) -> dict[str, bytes]:
    """Return the files in a zip archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(rng: Random, files: dict[str, bytes]) -> bytes:
    """Return a zip archive of the files: names, sizes or the bytes of the archive itself are now and then wrong."""
    buffer, kind = io.BytesIO(), rng.randrange(30)
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)) if kind else rng.choice((12, 14))
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if kind == 1 and rng.random() < 0.3:
                info.filename = rng.choice(("../", "/", "a/", "a/../../", "\\", "C:\\", "\0", "é")) + name
            if kind == 2:
                info.external_attr = 0o120777 << 16  # a symbolic link
            archive.writestr(info, content)
            if kind == 3 and rng.random() < 0.3:
                archive.filelist[-1].file_size = rng.choice((0, 1, 2**31, 2**40))
    data = buffer.getvalue()
    if kind == 4:
        data = mutated_bytes(rng, data, [data])
    if kind == 5:  # a flag (encrypted, ...) or a method of compression in every header
        value = rng.randrange(256)
        for magic, field in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            place = data.find(magic)
            if place >= 0:
                data = data[: place + field] + bytes([value]) + data[place + field + 1 :]
    return data


# --- arrays -----------------------------------------------------------------------------------

_VALUES = (0, 1, -1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 10**6, np.nan, np.inf,
           -np.inf, 1e308, -1e308, 5e-324)  # fmt: skip
_TYPES = ("?", "i1", "u1", "i4", "i8", "u8", ">i8", "f2", "f4", "f8", ">f8", "c16", "U3", "S2", "M8[s]", "V4", "O")
_DESCRIPTIONS = ("'|O'", "'<f8'", "'<i8'", "'|u1'", "'<U1000000000'", "[('a', '<f8')]", "'<M8[ns]'", "''", "'|V0'")
_SHAPES = ("(1099511627776,)", "(1099511627776, 1099511627776)", "(-1,)", "()", "(0,)", "(3, 4)", "(2147483648, 0)",
           "(0, 1099511627776)", "(1.5,)", "(True,)", "4", f"({'1,' * 40})", f"({'(' * 150}1{')' * 150},)")  # fmt: skip


def mutated_npy(rng: Random, data: bytes) -> bytes:
    """Return a .npy file with another header, other values, another type or another shape."""
    kind = rng.randrange(8)
    if kind == 0 or len(data) < 10:
        return mutated_bytes(rng, data, [data])
    if kind == 1:
        return _mutated_header(rng, data)
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return npy(mutated_array(rng, array))
    except Exception:
        return mutated_bytes(rng, data, [data])


def npy(array: Any) -> bytes:
    """Return an array as a .npy file; objects are pickled."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def mutated_array(rng: Random, array: np.ndarray) -> np.ndarray:
    """Return an array with some other values, of another type, or of another shape."""
    kind = rng.randrange(8)
    if kind < 4 and array.size:
        flat = array.reshape(-1).copy()
        for _ in range(rng.choice((1, 1, 2, 5))):
            flat[rng.randrange(len(flat))] = np.array(rng.choice(_VALUES)).astype(array.dtype, casting="unsafe")
        return flat.reshape(array.shape)
    if kind == 4:
        return array.astype(rng.choice(_TYPES), casting="unsafe")
    if kind == 5 and array.ndim:
        axis = rng.randrange(array.ndim)
        n = array.shape[axis]
        return np.take(array, [rng.randrange(n) for _ in range(rng.choice((0, 1, max(n - 1, 0), n + 1, 2 * n)))], axis)
    if kind == 6:
        return rng.choice((array.reshape(-1), array[None], array[..., None], array.T, np.asfortranarray(array)))
    return np.full(array.shape, rng.choice(_VALUES[:12])).astype(array.dtype, casting="unsafe")


def _mutated_header(rng: Random, data: bytes) -> bytes:
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + length].decode("latin-1")
    what = rng.randrange(4)
    if what == 0:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {rng.choice(_SHAPES)}", header)
    elif what == 1:
        header = re.sub(r"'descr': '[^']*'", f"'descr': {rng.choice(_DESCRIPTIONS)}", header)
    elif what == 2:
        header = header.replace("False", rng.choice(("True", "None", "2")))
    else:
        header = mutated_bytes(rng, header.encode("latin-1"), [header.encode("latin-1")]).decode("latin-1")
    body = header.encode("latin-1")[:60000]
    version = rng.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\7\0"))
    return data[:6] + version + struct.pack("<H", len(body)) + body + data[10 + length :]


# --- JSON -------------------------------------------------------------------------------------

_LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 8, 16, 0.5, 2**31, 2**63, 2**64, 10**400, 1e308, float("nan"), float("inf")),
    *("", "a", "../x", "/etc/passwd", "\0", "nan", [], {}, [[]], [1, 2], {"a": 1}, "numpy", "x" * 3000),
)


def mutated_json(rng: Random, value: Any, leaves: Sequence[Any] = _LEAVES) -> Any:
    """Change one to three places of a tree of dicts and lists, in place; return it."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return rng.choice(leaves)
        holder, key = rng.choice(places)
        kind = rng.randrange(10)
        if kind < 6:
            holder[key] = rng.choice(leaves)
        elif kind < 8:
            other, other_key = rng.choice(places)
            holder[key] = other[other_key]  # shared: a cycle, now and then
        elif kind == 8:
            del holder[key]
        elif isinstance(holder, dict):
            holder[rng.choice(("x", "", "__id__", "__class__", "content", key))] = holder.pop(key)
        else:
            holder.insert(key, holder[key])
    return value


def _places(value: Any) -> Any:
    """Yield (holder, key) of all places in a tree, each holder once."""
    stack, met = [value], {id(value)}
    while stack:
        holder = stack.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(inner, dict | list) and id(inner) not in met:
                met.add(id(inner))
                stack.append(inner)


def as_json(rng: Random, value: Any) -> bytes:
    """Return JSON text; a tree with a cycle gives a deep one."""
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return b"[" * rng.choice((500, 5000)) + b"]" * rng.choice((0, 500, 5000))


# --- Python objects ---------------------------------------------------------------------------


class _Odd:
    """An object that claims a shape and a length, holds nothing, and has a repr of several lines."""

    shape = (2, 2)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: Any) -> Any:
        if key in (0, 1):
            return None
        raise IndexError(key)

    def __repr__(self) -> str:
        return "odd\n" * 300


def _deep(n: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(n):
        value = [value]
    return value


def _itself() -> list[Any]:
    value: list[Any] = [1.0]
    value.append(value)
    return value


_OBJECTS: tuple[Callable[[], Any], ...] = (
    *(lambda x=x: x for x in (None, True, 0, 1, -1, 3, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, 5e-324)),
    *(lambda x=x: x for x in (float("nan"), float("inf"), 1j, "", "x", "1", "1e5", "\0", "\ud800", "é", b"", b"\xff")),
    *(list, dict, tuple, set, object, _Odd, _itself, lambda: _deep(3), lambda: _deep(900), lambda: [[1], [1, 2]]),
    *(lambda: iter([1.0]), lambda: range(3), lambda: range(2**62), lambda: slice(1), lambda: int, lambda: len),
    *(lambda x=x: np.array(x) for x in (1.0, [], [1, 2], [[1.0, 2.0]], [[np.nan]], [[1e308, -1e308]], "a", [1j], None)),
    *(lambda x=x: np.zeros(x) for x in ((0, 3), (3, 0), (2, 2, 2), (1, 1, 1, 1), (0,), (2, 0, 2))),
    *(lambda t=t: np.ones((2, 2)).astype(t) for t in ("f2", "c16", "U2", "S2", "O", "?", "i1", "u8", ">f8", "M8[s]")),
    lambda: np.array([2**63, 2**64 - 1], dtype=np.uint64),
    lambda: np.array([[0, 2**63], [2**63, 0]], dtype=np.uint64),
    lambda: np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    lambda: np.array([None, 1.0, "a"], dtype=object),
    lambda: np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
    lambda: np.float32(1.5), lambda: np.int64(-3), lambda: np.str_("ab"), lambda: np.datetime64("NaT"),
    lambda: memoryview(b"abc"), lambda: bytearray(b"ab"), lambda: sp.csr_array(np.eye(2)),
    lambda: sp.coo_array(np.array([[0, np.inf], [1, 0]])), lambda: sp.csr_array((2, 3)),
    lambda: sp.coo_array((np.ones(1), (np.array([0]), np.array([2**40]))), shape=(2**41, 2**41)),
)  # fmt: skip


def hostile(rng: Random) -> Any:
    """Return an object that belongs into no collection of numbers, graphs or strings, or one that might."""
    return rng.choice(_OBJECTS)()


def mutated_object(rng: Random, value: Any, depth: int = 0) -> Any:
    """Return a copy of a tree of lists, tuples, dicts and arrays in which one place is another object."""
    if depth > 6 or rng.random() < 0.15:
        return hostile(rng)
    if isinstance(value, np.ndarray) and value.dtype != object:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            try:
                return mutated_array(rng, value)
            except Exception:
                return hostile(rng)
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        return {**value, key: mutated_object(rng, value[key], depth + 1)}
    if isinstance(value, list | tuple) and value:
        items, i = list(value), rng.randrange(len(value))
        kind = rng.randrange(8)
        if kind == 0:
            del items[i]
        elif kind == 1:
            items.insert(i, hostile(rng))
        else:
            items[i] = mutated_object(rng, items[i], depth + 1)
        return type(value)(items) if type(value) in (list, tuple) else items
    if isinstance(value, int | float) and rng.random() < 0.7:
        return rng.choice((*_VALUES, 2**63, 2**64, 10**400, -(2**63) - 1))
    return hostile(rng)
