"""Checks of arguments; each error message is one sentence that says what to do instead.

`read_header` checks the header of an untrusted .npy file. `numpy.load` allocates the size that the header claims before
it looks at the data, and lets any error of its parser through.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from similia.core.errors import BadParameter, BadValue, part_from, warn_user
from similia.core.text import short

RandomState = int | np.random.Generator | np.random.RandomState | None
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def as_path(path: Any, what: str = "file") -> Path:
    """Return `path`, a str or path object, as a Path; raise if it is anything else, such as an open file."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    raise TypeError(f"expected the name of a {what} (a str or a path), got {type(path).__name__}")


def present(path: Any) -> Path:
    """Return the path of a file or folder that exists, or raise."""
    place = as_path(path)
    if not place.exists():
        raise FileNotFoundError(f"{path}: no such file or directory")
    return place


def generator(random_state: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator` for a seed, a generator, a RandomState or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    if random_state is None or (isinstance(random_state, Integral) and int(random_state) >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise BadParameter("random_state", "None, an integer >= 0 or a numpy generator", short(random_state, 80))


def spawn_seeds(random_state: Any, n: int) -> list[int | None]:
    """Return `n` seeds for the parts of a model, drawn from `random_state`; all are None if `random_state` is None."""
    if random_state is None:
        return [None] * n
    rng = generator(random_state)  # raises if it is invalid
    if isinstance(random_state, Integral):
        return [int(seed) for seed in np.random.SeedSequence(int(random_state)).generate_state(n)]
    return [int(seed) for seed in rng.integers(2**32, size=n)]


def check_positive_int(value: Any, name: str, minimum: int = 1) -> int:
    """Return `value` as int, or raise if it is not an integer >= `minimum`."""
    if type(value) is int and value >= minimum:
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise BadParameter(name, f"an integer >= {minimum}", short(value, 80))
    return int(value)


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> None:
    """Raise if `value` is none of the `choices`."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise BadParameter(name, f"{', '.join(others)} or {last}", short(value))


def at_most(value: int, n: int, name: str, of: str = "training objects") -> int:
    """Return `value`, but at most `n`, the number of objects described by `of`; warn if `value` is larger."""
    if value > n:
        warn_user(f"{name}={value} is more than the {n} {of}: all {n} are used")
    return min(value, n)


def is_finite(value: Any) -> bool:
    """Return whether `value` is a finite number, and no bool, that fits into float64."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer of 309 digits or more
        return False


def check_positive(value: Any, name: str, zero: bool = False, hint: str = "", also: str = "") -> float:
    """Return `value` as float, or raise if it is not a finite number above 0 (or equal to 0, if `zero`).

    In the error message, `also` extends what is expected (such as ``' or "auto"'``), and `hint` is appended at the end.
    """
    if not is_finite(value) or value < 0 or (value == 0 and not zero):
        expected = "a number >= 0" if zero else "a positive number"
        raise BadParameter(name, f"{expected}{also}", f"{short(value, 80)}{hint}")
    return float(value)


def check_n_bits(n_bits: Any) -> int:
    """Return `n_bits` as int, or raise if it is not a positive multiple of 8."""
    n_bits = check_positive_int(n_bits, "n_bits")
    if n_bits % 8:
        remedy = f"use n_bits={n_bits + 8 - n_bits % 8}"
        raise BadParameter("n_bits", "a multiple of 8 (codes are packed into bytes)", f"{n_bits}", remedy)
    return n_bits


def check_codes(codes: Any, name: str = "codes", n_bits: int | None = None) -> npt.NDArray[np.uint8]:
    """Return packed bits in C order; raise if they are not a uint8 array of shape (n, n_bits // 8)."""
    codes = np.asarray(unmasked(codes, name))
    if codes.dtype != np.uint8 or codes.ndim != 2:
        remedy = "similia.SignRandomProjection makes them from vectors, numpy.packbits from bits"
        if codes.dtype == np.uint8 and codes.ndim == 1:
            remedy = "one code is code[None]"
        raise ValueError(
            f"{name} must be packed bits, a uint8 array of shape (n, n_bits // 8), got dtype {codes.dtype} "
            f"and shape {codes.shape}; {remedy}"
        )
    if n_bits is not None and codes.shape[1] * 8 != n_bits:
        found = f"{name} have {codes.shape[1] * 8} bits, expected {n_bits}"
        raise ValueError(f"{found}; codes to compare must come from one encoder")
    return np.ascontiguousarray(codes)


def unmasked(X: Any, name: str = "X") -> Any:
    """Return `X`; raise if it is an array with masked entries, or a list that contains such an array.

    `numpy.asarray` would drop the mask and treat the masked values as data.
    """
    rows = X if isinstance(X, list | tuple) else [X]
    for i, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            place = [*([i] if rows is X else []), *np.argwhere(np.ma.getmaskarray(row))[0].tolist()]
            first, *others = place
            entry = f"entry {', '.join(map(str, others))}" if others else ""
            remedy = "fill masked values (X.filled(value)) or drop them"
            raise BadValue(first, "is masked", "data without gaps", remedy, collection=name, place=entry)
    return X


def check_vectors(X: Any, name: str = "X", n_features: int | None = None, by: Any = None) -> npt.NDArray[np.floating]:
    """Return a finite 2-D float32 or float64 array in C order, or raise an error that names the first bad row.

    The layout is fixed, because numpy adds the numbers of a row in an order that depends on the layout, and each order
    rounds differently. `n_features` is the number of columns in `fit`; `by` is the fitted estimator, which errors name.
    """
    if hasattr(X, "toarray"):
        found = f"is a sparse matrix of shape {X.shape}"
        raise BadValue(None, found, "a dense array", "call .toarray()", collection=name)
    X = np.asarray(unmasked(X, name))
    if np.iscomplexobj(X):
        raise not_real(name)
    if X.dtype.kind in "mM":
        raise not_dates(X.dtype, name)
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except OverflowError as error:  # an integer of 309 digits or more
            rows = np.atleast_1d(X)
            row = next(i for i, row in enumerate(rows) if not all(map(_is_number, np.ravel(row).tolist())))
            raise BadValue(row, "holds a number too large for float64", "finite numbers", collection=name) from error
        except ValueError as error:  # a string that is not a number
            found = next((value for value in X.ravel().tolist() if not _is_number(value)), X.dtype)
            remedy = "similia.Nystroem, KernelFeatures or D2KE turn objects such as strings into vectors"
            raise BadValue(None, f"holds {short(found, 80)}", "numbers", remedy, collection=name) from error
    if X.ndim != 2:
        raise not_2d(name, X.shape)
    if X.shape[0] == 0:
        raise BadValue(None, "is empty: found 0 vectors", "at least one", collection=name)
    if X.shape[1] == 0:
        raise too_narrow(name, X.shape)
    if n_features is not None and X.shape[1] != n_features:
        raise wrong_width(X.shape[1], n_features, by, name)
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        raise not_finite(int(np.argmin(finite)), name)
    return np.ascontiguousarray(X)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def rows_in_blocks(X: Any, step: int, read: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """Yield ``(start, read(block))`` per block of `step` rows of an array or frame; errors give row numbers of `X`.

    Any other input is read as one block.
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if not 1 <= len(shape) <= 2 or shape[0] <= step or hasattr(X, "toarray"):
        yield 0, read(X)
        return
    rows = X.iloc if hasattr(X, "iloc") else X
    for start in range(0, shape[0], step):
        with part_from(start):
            block = read(rows[start : start + step])
        yield start, block


def check_labels(y: Any, n: int, *, hint: str = "", what: str = "label") -> npt.NDArray:
    """Return the labels `y` as a 1-D array; warn if the shape is (n, 1), and raise if `y` is not `n` single labels.

    `hint` ends the error message for several labels per object; `what` is the name of a label in messages.
    """
    if y is None:
        missing = "this estimator requires y to be passed, but the target y is None"
        raise ValueError(f"{missing}; give one {what} per object")
    unmasked(y, "y")
    try:
        y = np.asarray(y)
    except ValueError:  # rows of different lengths
        found = "sequences of different lengths"
        raise ValueError(f"y must be one {what} per object, shape ({n},), got {found}{hint}") from None
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            f"A column-vector y was passed when a 1d array was expected: y has shape {y.shape}; give y.ravel()",
            DataConversionWarning,
        )
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y must be one {what} per object, shape ({n},), got shape {y.shape}{hint}")
    if len(y) != n:
        raise ValueError(f"y has {len(y)} {what}s for {n} objects; give one {what} per object")
    return y


def refuse_fractions(y: Any) -> None:
    """Raise if all labels of a classifier are finite numbers and some are fractional."""
    values = np.asarray(y, dtype=object).ravel().tolist()
    finite = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    if finite and any(value != int(value) for value in values):
        raise ValueError(
            "y holds fractions (a continuous target), which are no labels of a classifier; round or bin them into "
            'classes, or use a regressor, such as sm.KernelRidge or sm.recipes.d2ke(..., task="regression")'
        )


def check_encoder(encoder: Any) -> None:
    """Raise if `encoder` has no ``transform``, for example because it is a classifier, kernel or distance."""
    if hasattr(encoder, "transform"):
        return
    if hasattr(encoder, "predict"):
        steps = hasattr(encoder, "steps")
        hint = "pass model[:-1], its steps before the last" if steps else "pass a transformer, such as sm.Nystroem"
        raise TypeError(f"the encoder predicts and does not encode ({type(encoder).__name__} has no transform); {hint}")
    raise TypeError(
        f"the encoder is {short(encoder, 80)}, expected an encoder of objects with a transform, such as "
        "make_pipeline(sm.Nystroem(kernel, 256), sm.SignRandomProjection(256))"
    )


# Errors of tables, worded as scikit-learn's estimator checks expect.


def not_real(name: str = "X") -> BadValue:
    expected = "real ones (Complex data not supported)"
    return BadValue(None, "holds complex numbers", expected, "make two columns of each", collection=name)


def not_dates(dtype: np.dtype, name: str = "X") -> BadValue:
    remedy = "convert them, for example to days since the first"
    return BadValue(None, f"holds dates or times ({dtype})", "numbers", remedy, collection=name)


def not_2d(name: str, shape: tuple[int, ...]) -> BadValue:
    found = f"must be a 2-D array (n, n_features), got shape {shape}"
    return BadValue(None, found, remedy="Reshape your data: write one vector v as v[None]", collection=name)


def too_narrow(name: str, shape: tuple[int, ...], least: int = 1) -> BadValue:
    found = f"has {shape[1]} feature(s) (shape={shape}) while a minimum of {least} is required."
    return BadValue(None, found, collection=name)


def wrong_width(found: int, expected: int, by: Any = None, name: str = "X", remedy: str = "") -> BadValue:
    who = "it" if by is None else type(by).__name__
    what = f"has {found} features, but {who} is expecting {expected} features as input, as in fit"
    return BadValue(None, what, remedy=remedy, collection=name)


def not_finite(row: int, name: str = "X") -> BadValue:
    return BadValue(row, "holds NaN or infinity", "finite numbers", "drop or impute that row", collection=name)


def is_table(X: Any) -> bool:
    """Return whether `X` is a 2-D array, a sparse matrix or a data frame: its rows are vectors of one length."""
    table = hasattr(X, "columns") or getattr(getattr(X, "dtype", None), "kind", "O") in "biufc"
    return table and len(getattr(X, "shape", ())) == 2


def check_radius(radius: Any) -> float:
    """Return the radius as a float, or raise if it is not a number >= 0."""
    if isinstance(radius, bool) or not isinstance(radius, Real) or not float(radius) >= 0:
        raise ValueError(f"radius must be a number >= 0, got {radius!r}")
    return float(radius)


class Header(NamedTuple):
    """Shape and type of an array, the number of bytes of its data, and whether it is in Fortran order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_bytes: int
    fortran: bool


def read_header(stream: IO[bytes]) -> Header:
    """Return the header of a .npy file and leave the stream where the data begin; raise ValueError if it is invalid."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about code in the header, which is parsed, not run
            shape, fortran, dtype = _READERS[npy.read_magic(stream)](stream)
    except (Exception, RecursionError, MemoryError) as error:
        raise ValueError(f"it has no header that numpy.save writes ({type(error).__name__})") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which could run code when they are read")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ValueError("it claims a shape that no array has")
    return Header(shape, dtype, math.prod(shape) * dtype.itemsize, fortran)
