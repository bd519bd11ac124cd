"""Declare which attributes an object may have when it is loaded from a file.

A file determines the attributes of a model, while compiled loops read arrays without bounds checks and Python does not
check types. So `similia.load` checks each object against the declaration of its class: types, finite numbers, matching
shapes, and sizes that bound the cost of a call. In shapes, a name such as "s" stands for the same size wherever it
occurs in the object. A class without a declaration, of its own or inherited, is never loaded. ::

    @state(kernel_="kernel", landmarks_=objects("s"), components_=array("f8", "s", "r"))
    class Nystroem(...):
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.validation import is_finite, is_true_or_false

Sizes = dict[str, int]
Check = Callable[[Any, Sizes], bool]
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class State:
    """A declaration: a check for each attribute, names that may be missing, and checks of all attributes together."""

    checks: dict[str, Check]
    may_lack: frozenset[str]
    fits: tuple[Callable[[dict[str, Any], Sizes], bool], ...]


def state(
    fits: Callable[[dict[str, Any], Sizes], bool] | None = None, may_lack: Collection[str] = (), **attributes: Any
) -> Callable[[Class], Class]:
    """Return a class decorator that declares which attributes a loaded object may have, each with its check.

    A check is a function or its name, a key of `similia.core.state.NAMED`. Fitted attributes begin or end with an
    underscore; except for those in `may_lack`, they must be all present or all missing. ``fits(attributes, sizes)``
    returns whether attributes fit together; `sizes` maps each letter in the declared shapes, such as "s", to its size.
    Subclasses inherit the declaration.
    """
    checks = {name: NAMED[check] if isinstance(check, str) else check for name, check in attributes.items()}
    declaration = State(checks, frozenset(may_lack), () if fits is None else (fits,))

    def declare(cls: Class) -> Class:
        cls._declared_state = declaration  # type: ignore[attr-defined]
        return cls

    return declare


def declared(cls: type) -> State | None:
    """Return the declaration of a class, merged with those of its bases; None if there is no declaration."""
    found = [vars(base)["_declared_state"] for base in reversed(cls.__mro__) if "_declared_state" in vars(base)]
    if not found:
        return None
    checks = {name: check for one in found for name, check in one.checks.items()}
    return State(checks, frozenset().union(*(one.may_lack for one in found)), sum((one.fits for one in found), ()))


# ---- checks


def array(types: str, *shape: Any, most: float | None = None) -> Check:
    """Return a check for an array: a type in `types` ("f4 f8"), `shape` (see `_same`), magnitudes below `most`."""

    def check(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or not value.dtype.isnative or value.dtype.str[1:] not in types.split():
            return False
        huge = 1e15 if value.dtype in (np.float32, np.complex64) else 1e150  # squares of smaller numbers can be summed
        if value.dtype.kind in "fc" and not (np.abs(value) < np.float64(most or huge)).all():  # False for NaN
            return False
        return value.ndim == len(shape) and all(map(_same, shape, value.shape, [sizes] * value.ndim))

    return check


def _same(wanted: Any, found: int, sizes: Sizes) -> bool:
    """Return whether the size `found` is `wanted`: a number, None (any), or a name, that of the first size found."""
    if isinstance(wanted, str):
        return sizes.setdefault(wanted, found) == found
    return wanted is None or wanted == found


def count(name: str | None = None, factor: int = 1, least: int = 0, most: int = 2**63 - 1) -> Check:
    """Return a check for an integer, `least` to `most`, that is `factor` times the size called `name` (None: any)."""

    def check(value: Any, sizes: Sizes) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
            return False
        return int(value) % factor == 0 and (name is None or _same(name, int(value) // factor, sizes))

    return check


def one_of(*values: Any) -> Check:
    """Return a check for a value that equals one of `values` and has the same type."""
    return lambda value, sizes: any(type(value) is type(known) and value == known for known in values)


def optional(check: Check | str) -> Check:
    """Return a check that accepts None and what `check` accepts."""
    wanted = NAMED[check] if isinstance(check, str) else check
    return lambda value, sizes: value is None or wanted(value, sizes)


def made(*classes: str) -> Check:
    """Return a check for an object whose class has one of the given names and a declaration."""
    return lambda value, sizes: type(value).__name__ in classes and declared(type(value)) is not None


def each(method: str, name: str | None = None, least: int = 0) -> Check:
    """Return a check for a list of `least` or more objects that have `method`; its length is the size called `name`."""

    def check(value: Any, sizes: Sizes) -> bool:
        listed = isinstance(value, list | tuple) and all(hasattr(one, method) for one in value)
        return listed and len(value) >= least and _same(name, len(value), sizes)

    return check


def labels(name: str) -> Check:
    """Return a check for a 1-D array of labels, as many as the size called `name`."""

    def check(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUSO":
            return False
        return _same(name, len(value), sizes) and all(isinstance(label, str | bytes | Real) for label in value.tolist())

    return check


def objects(name: str) -> Check:
    """Return a check for a batch, list, array or sparse matrix of objects, as many as the size called `name`."""

    def check(value: Any, sizes: Sizes) -> bool:
        if isinstance(value, np.ndarray):
            fits = value.ndim > 0 and value.dtype.kind in "biufUSO" and _are_finite(value)
            return fits and _same(name, len(value), sizes)
        if is_sparse(value):
            return _are_finite(value.data) and _same(name, value.shape[0], sizes)
        batch = hasattr(value, "kind") and declared(type(value)) is not None
        return (batch or isinstance(value, list | tuple)) and _same(name, len(value), sizes)

    return check


def is_sparse(value: Any) -> bool:
    return isinstance(value, sp.csr_array | sp.csr_matrix)


def _are_finite(values: npt.NDArray) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _is_number(value: Any, sizes: Sizes) -> bool:
    return is_finite(value) and -1e150 < float(value) < 1e150


def is_flag(value: Any, sizes: Sizes) -> bool:
    return is_true_or_false(value)


def is_comparison(value: Any) -> bool:
    """Return whether a value is a kernel or a distance of similia."""
    return callable(value) and declared(type(value)) is not None


def _is_kernel(value: Any, sizes: Sizes) -> bool:
    return value == "precomputed" if isinstance(value, str) else callable(value) and not isinstance(value, type)


def _are_texts(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _are_vectors(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is a finite dense or sparse matrix of shape ("s", "d"), names as in `_same`."""
    sparse = is_sparse(value)
    fits = array("f4 f8", *([None] if sparse else ["s", "d"]))(value.data if sparse else value, sizes)
    return fits and _same("s", value.shape[0], sizes) and _same("d", value.shape[1], sizes)


def _are_targets(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, np.ndarray) and array("f8", "n", *[None] * (value.ndim - 1))(value, sizes)


def _are_lengths(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is a positive integer or a pair of them."""
    pair = value if isinstance(value, list | tuple) else [value, value]
    return len(pair) == 2 and all(count(least=1)(length, sizes) for length in pair)


NAMED: dict[str, Check] = {
    "flag": is_flag,
    "number": _is_number,
    "positive": lambda value, sizes: _is_number(value, sizes) and float(value) > 1e-150,
    "text": lambda value, sizes: isinstance(value, str),
    "texts": _are_texts,
    "kernel": _is_kernel,  # or a distance; or "precomputed"
    "comparison": lambda value, sizes: is_comparison(value),
    "sampler": lambda value, sizes: hasattr(value, "sample") and declared(type(value)) is not None,
    "transformer": lambda value, sizes: hasattr(value, "transform"),
    "predictor": lambda value, sizes: hasattr(value, "predict"),
    "function": lambda value, sizes: callable(value) or hasattr(value, "transform"),
    "vectors": _are_vectors,
    "targets": _are_targets,
    "lengths": _are_lengths,
}


# ---- parts of checks of whole objects


def reads(function: Any, objects: Any) -> bool:
    """Return True if a kernel or distance takes these objects; otherwise its `as_objects` raises."""
    if not isinstance(function, str) and hasattr(function, "as_objects"):
        function.as_objects(objects)
    return True


def pairs_of(size: int) -> int:
    """Return the number of unordered pairs of different objects among `size` objects."""
    return size * (size - 1) // 2
