"""Hash 64-bit words and count their bits, in compiled loops; compute digests of objects.

Words are hashed equally in every process, and evenly spread over any number of columns.

In a digest, functions and classes enter by their code, not by their names. joblib and pickle identify a function by its
name, so their digest does not change when its code does. Here the digest depends on the code, constants, defaults and
closure of a function and on the globals that it uses; functions and classes among these are treated in the same way.
Functions and classes of Python, of installed packages and of similia enter by name and version if a module holds them
by that name; closures, for example, enter by their code.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from functools import _lru_cache_wrapper, cache, cached_property
from pathlib import Path
from types import (
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher

from similia.core.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), tuple, list, dict, set, frozenset, np.ndarray)
_OF_CODE = (
    "co_code", "co_exceptiontable", "co_consts", "co_names", "co_varnames", "co_freevars", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount", "co_flags",
)  # fmt: skip
_NOT_CODE = {
    "__doc__", "__module__", "__annotations__", "__annotate_func__", "__annotations_cache__", "__firstlineno__",
    "__static_attributes__", "_abc_impl",
}  # fmt: skip


def fingerprint(value: Any, what: str) -> str:
    """Return a digest of a value, or raise TypeError if it cannot be pickled; `what` names the value in the message."""
    try:
        return str(_Hasher(hash_name="sha1").hash(value))
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise TypeError(f"{what} has no digest, because a part of it cannot be pickled: {text}") from error


def digest_of(value: Any) -> str:
    """Return the fingerprint of a value; if it cannot be pickled, a random one, which matches no other."""
    try:
        return fingerprint(value, "the value")
    except TypeError:
        return os.urandom(16).hex()


class _Hasher(NumpyHasher):
    """joblib's hasher, except that functions and classes are hashed by their parts, such as their code."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._met: dict[int, int] = {}  # functions and classes, numbered by first appearance

    def save(self, value: Any) -> None:
        super().save(self._parts(value))

    def _parts(self, value: Any) -> Any:
        """Return what to hash for a function, class, module, code object or set; return other values unchanged."""
        if isinstance(value, set | frozenset):  # the order of sets differs between processes
            return "set", sorted(fingerprint(member, "a set") for member in value)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, MethodType):
            return "method", value.__func__, value.__self__
        if isinstance(value, ModuleType):
            return "module", *_name_and_version(value.__name__, "")
        if isinstance(value, CodeType):
            return "code", *(getattr(value, name) for name in _OF_CODE)
        if isinstance(value, FunctionType | type):
            if _is_installed(value.__module__) and _is_member(value):
                return "installed", *_name_and_version(value.__module__, value.__qualname__)
            if id(value) in self._met:
                return "met", self._met[id(value)]
            self._met[id(value)] = len(self._met)
            return _parts_of_class(value) if isinstance(value, type) else _parts_of_function(value)
        if isinstance(value, _lru_cache_wrapper):
            return "cached", value.__wrapped__
        if type(value).__module__.startswith("numba.") and isinstance(getattr(value, "py_func", None), FunctionType):
            return "compiled", type(value).__qualname__, value.py_func
        return value


def _parts_of_function(function: FunctionType) -> tuple[Any, ...]:
    code, met = function.__code__, set()
    used = sorted(_names_in(code))
    values = [*zip(code.co_freevars, map(_content, function.__closure__ or ()), strict=True)]
    values += [(name, function.__globals__[name]) for name in used if name in function.__globals__]
    for name, module in values:  # which grows by what modules of the user's hold: module.function, package.module
        if isinstance(module, ModuleType) and not _is_installed(module.__name__) and module.__name__ not in met:
            met.add(module.__name__)
            values += [(f"{name}.{inner}", getattr(module, inner)) for inner in used if hasattr(module, inner)]
    return "function", code, function.__defaults__, function.__kwdefaults__, values


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty: the name is not bound yet
        return "empty"


def _names_in(code: CodeType) -> set[str]:
    """Return the names of all globals and attributes that a function and the functions inside it use."""
    inner = (_names_in(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _parts_of_class(kind: type) -> tuple[Any, ...]:
    parts = []
    for name, value in sorted(vars(kind).items()):
        if isinstance(value, property):
            value = value.fget, value.fset, value.fdel
        elif isinstance(value, staticmethod | classmethod):
            value = type(value).__name__, value.__func__
        elif isinstance(value, cached_property):  # which holds a lock before Python 3.12
            value = "cached_property", value.func
        if name not in _NOT_CODE and not isinstance(value, GetSetDescriptorType | ClassMethodDescriptorType):  # of C
            parts.append((name, value))
    return "class", kind.__qualname__, kind.__bases__, parts


def _name_and_version(module: str, name: str) -> tuple[str, str, str]:
    package = module.partition(".")[0]
    return module, name, str(getattr(sys.modules.get(package), "__version__", sys.version))


def _is_member(value: Any) -> bool:
    """Return whether the module that a function or class names holds it by its name, maybe decorated.

    A module does not hold closures by their names, nor what `exec` makes, which wrongly names builtins.
    """
    found: Any = sys.modules[value.__module__]
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    found = getattr(found, "__func__", found)  # of a class method
    return inspect.unwrap(found, stop=lambda part: part is value) is value


@cache
def _is_installed(module: str | None) -> bool:
    """Return whether a module belongs to Python, to an installed package or to similia."""
    if module is None or module == "__main__" or module not in sys.modules:
        return False
    if module.partition(".")[0] in {"similia", *sys.builtin_module_names}:
        return True
    file = getattr(sys.modules[module], "__file__", None) or ""
    library = sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")
    return file.startswith(library) or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


@njit()
def mix(x):  # type: ignore[no-untyped-def]
    """Return the next output of the generator splitmix64 in state `x`: a bijection whose output bits look random."""
    return scramble(np.uint64(x) + GOLDEN)


@njit()
def scramble(x):  # type: ignore[no-untyped-def]
    """Return the finaliser of splitmix64, a bijection of uint64; unlike `mix`, it maps 0 to 0."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@njit()
def combine(x, y):  # type: ignore[no-untyped-def]
    """Return a hash of the ordered pair (x, y) of uint64."""
    return mix(mix(np.uint64(x)) ^ (np.uint64(y) * _M1 + GOLDEN))


@njit()
def popcount(x):  # type: ignore[no-untyped-def]
    """Return the number of 1 bits of a uint64; compilers turn these parallel sums into one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
