"""Numbers to hypervectors through levels: the closer two numbers, the more positions their vectors share.

The range of a feature is divided into L levels; the similarity of level vectors falls with their distance
(`hypervectors.level`). Each feature j has a random role vector r_j, and the code of a row is the bundle of its numbers,
each bound to (multiplied by) the role of its feature:

    code(x) = sign( sum_j r_j * level(x_j) ),    similarity(level a, level b) = 1 - |a - b| / (L - 1).

With a single feature, the code is the level vector itself, without role and bundle.

Cost: about 8 operations per feature and 64-bit word of a vector. Level vectors: Widdows and Cohen (2015); records:
P. Kanerva, "Hyperdimensional computing", Cognitive Computation 1 (2009).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.codes.hypervectors import (
    Codes,
    Counts,
    HypervectorEncoder,
    Indices,
    bundle_members,
    empty_output,
    level,
    random,
    to_words,
)
from similia.core.config import rows_per_block
from similia.core.errors import BadItem, BadType, BadValue
from similia.core.estimators import all_at_once, check_columns
from similia.core.state import Sizes, array, count, state
from similia.core.threads import run_in_ranges
from similia.core.validation import (
    check_positive_int,
    check_vectors,
    generator,
    not_2d,
    not_dates,
    not_real,
    rows_in_blocks,
    unmasked,
)
from similia.sources.dask import Distributed, from_parts

Floats = npt.NDArray[np.float64]

_GRAIN = 256  # minimum number of rows per call to compiled code


def _are_levels(state: dict[str, Any], sizes: Sizes) -> bool:
    """Return whether each number has a level: `_level_indices` gives compiled loops numbers of rows of `levels_`."""
    with np.errstate(over="ignore"):
        span = state["high_"] - state["low_"]
    return bool((span >= 0).all() and np.isfinite(span).all()) and len(state["levels_"]) > 0


@state(
    fits=_are_levels,
    low_=array("f8", "d", most=np.inf), high_=array("f8", "d", most=np.inf),  # they are compared, never squared
    levels_=array("u1", None, "b"), ties_=array("u1", 1, "b"), roles_=array("u1", "d", "b"),
)  # fmt: skip
class RangeEncoder(HypervectorEncoder):
    """Base class of encoders of numeric columns: a vector for each level, a random factor (role) for each column."""

    n_levels: int
    low: Any
    high: Any
    random_state: Any

    def _learn(self, X: Any, read: Callable[[Any], npt.NDArray[np.floating]], columns: str) -> None:
        """Learn the range of each column of ``read(X)``; draw levels and roles. Errors call the columns `columns`."""
        check_positive_int(self.n_levels, "n_levels", minimum=2)
        self._check_parameters()
        ends = _column_ends(X, read)
        self.low_, self.high_ = _range(ends, self.low, self.high, columns)
        rng = generator(self.random_state)
        self.levels_ = level(self.n_levels, self.n_bits, rng)
        self.ties_ = random(1, self.n_bits, rng)
        self.roles_ = random(ends.shape[1], self.n_bits, rng)  # last, so that more columns leave the rest unchanged

    def _drawn_bits(self) -> int:
        return int(8 * self.levels_.shape[1])

    def _level_indices(self, values: npt.NDArray[np.floating]) -> Indices:
        """Return the index of the level nearest to each number: 0 at or below `low_`, the last at or above `high_`."""
        span = np.where(self.high_ > self.low_, self.high_ - self.low_, 1.0)
        scaled = (np.clip(values.astype(np.float64), self.low_, self.high_) - self.low_) / span
        return np.rint(scaled * (len(self.levels_) - 1)).astype(np.int64)


@state(n_features_in_=count("d", least=1))
class LevelEncoder(RangeEncoder):
    """Encode numbers, or rows of several numbers, as hypervectors; close numbers have similar hypervectors.

    Parameters
    ----------
    n_levels : int, default=100
        Number of equidistant levels per feature, at least 2; each number is encoded as the nearest level.
    n_bits : int, default=10_000
        Length of the hypervectors (long, random-looking codes), a multiple of 8.
    low, high : float or array of shape (n_features,), optional
        Numbers of the first and the last level; by default the smallest and the largest number of each feature in
        `fit`. Numbers outside this range are clipped to it.
    output : {"bits", "counts"}, default="bits"
        Each feature has a random vector, the role. A number is encoded as the product of two vectors of ±1 (bit 1 is
        +1, bit 0 is -1): the vector of the level and the role of the feature. `transform` returns for each row the
        bitwise majority of these products, packed ("bits"), or the sum of these products as vectors of ±1 ("counts").
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws levels, roles and the vector that breaks ties.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    low_, high_ : ndarray of float64, shape (n_features,)
        Numbers of the first and the last level of each feature.
    levels_ : ndarray of uint8, shape (n_levels, n_bits // 8)
        Packed vectors of the levels, the same for all features.
    roles_ : ndarray of uint8, shape (n_features, n_bits // 8)
        The role of each feature: a random vector by which the level vectors of its numbers are multiplied. Unused for a
        single feature.
    ties_ : ndarray of uint8, shape (1, n_bits // 8)
        Random vector whose bits decide ties of the majority.

    Notes
    -----
    With ``output="counts"``, the vectors of rows x and y have the inner product ``n_bits * sum_j (1 - |l(x_j) - l(y_j)|
    / (n_levels - 1))``, where l(x_j) is the index, from 0, of the level of x_j. With several features, this is
    approximate, because random roles are slightly similar; with one feature, it is exact up to the rounding of
    `similia.codes.level`. With ``output="bits"``, ties distort similarities: with two features, every position where
    the two products differ is a tie; with four features, about every third position is.

    Without `low` and `high`, a feature that is constant in `fit` carries no information later: all its numbers get the
    first level.

    Examples
    --------
    >>> from similia import codes
    >>> encoder = codes.LevelEncoder(n_levels=11, low=0, high=100, random_state=0)
    >>> temperatures = encoder.fit_transform([0.0, 20.0, 50.0, 100.0, 250.0])
    >>> codes.similarity(temperatures)[0]
    array([1. , 0.8, 0.5, 0. , 0. ])
    """

    def __init__(
        self,
        n_levels: int = 100,
        n_bits: int = 10_000,
        low: Any = None,
        high: Any = None,
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.n_levels = n_levels
        self.n_bits = n_bits
        self.low = low
        self.high = high
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw random vectors for levels and roles; set `low_` and `high_`, from `X` if `low` or `high` is None.

        `X` holds finite numbers, in the shape (n,) or (n, n_features).
        """
        self._learn(X, _numbers, "features")
        self._learn_columns(X)
        self.n_features_in_ = len(self.low_)
        return self

    def _encode(self, X: Any) -> Codes | Counts:
        check_columns(self, X, reset=False)
        n_features = self.n_features_in_
        cut = hasattr(X, "shape") and (np.ndim(X) == 2 or (np.ndim(X) == 1 and n_features == 1))
        X = X if cut else _numbers(X, n_features, self)
        n = X.shape[0]
        table = to_words(np.concatenate([self.levels_, self.roles_]))
        out = empty_output(n, self.n_bits, self.output)
        read = functools.partial(_numbers, n_features=n_features, by=self)
        for start, block in rows_in_blocks(X, rows_per_block(80 * n_features), read):
            encoded = out[start : start + len(block)]
            factors = self._level_indices(block)[:, :, None]
            if n_features > 1:
                roles = np.broadcast_to(len(self.levels_) + np.arange(n_features)[:, None], factors.shape)
                factors = np.concatenate([factors, roles], axis=2)
            self._bundle(table, factors, encoded)
        return out

    def _example(self) -> Any:
        return np.zeros((1, self.n_features_in_))

    def _bundle(self, table: npt.NDArray[np.uint64], factors: Indices, out: Codes | Counts) -> None:
        """Fill ``out[i]`` with the bundle, over j, of the products of the rows ``factors[i, j]`` of `table`."""

        def work(start: int, stop: int) -> None:
            members = factors[start:stop].reshape(-1, factors.shape[2])
            offsets = factors.shape[1] * np.arange(stop - start + 1)
            bundle_members(table, members, offsets, self.ties_, out[start:stop])

        run_in_ranges(work, len(factors), _GRAIN)


def _column_ends(X: Any, read: Callable[[Any], npt.NDArray[np.floating]]) -> npt.NDArray[np.floating]:
    """Return the minimum and maximum of each column of ``read(X)``, shape (2, n_columns)."""
    if isinstance(X, Distributed):
        parts = X.map(_ends_of_part, read)
    else:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        step = rows_per_block(80 * shape[1]) if len(shape) == 2 and shape[1] else 2**62  # else all at once
        parts = (_ends(values) for _, values in rows_in_blocks(X, step, read))
    return _ends(np.concatenate([*parts]))


def _ends(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    return np.stack([values.min(axis=0), values.max(axis=0)])


def _ends_of_part(part: Any, start: int, read: Callable[[Any], npt.NDArray[np.floating]]) -> npt.NDArray[np.floating]:
    return _ends(read(part))


def _range(found: npt.NDArray[np.floating], low: Any, high: Any, columns: str) -> tuple[Floats, Floats]:
    """Return the lower and upper end of each column: `low` and `high` where given, else the two rows of `found`."""
    n = found.shape[1]
    ends = []
    for name, given, extreme in (("low", low, found[0]), ("high", high, found[1])):
        end = np.asarray(extreme if given is None else given)
        if end.shape not in ((), (n,)) or end.dtype.kind not in "iuf" or not np.isfinite(end).all():
            raise ValueError(
                f"{name} must be a finite number or {n} of them, one for each of the {columns}, got {given!r}"
            )
        ends.append(np.array(np.broadcast_to(end, n), dtype=np.float64))
    with np.errstate(over="ignore"):
        span = ends[1] - ends[0]
    given = low is not None or high is not None
    wrong = ~np.isfinite(span) | (span <= 0 if given else span < 0)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"low must be below high, by a number that fits into float64, got {ends[0][j]:.6g} and {ends[1][j]:.6g} "
            f"for number {j} of the {columns}; change low and high, or rescale the data"
        )
    return ends[0], ends[1]


def _numbers(X: Any, n_features: int | None = None, by: Any = None) -> Floats:
    """Return `X` as a 2-D float64 array, a 1-D array as one column; raise if an entry is not a finite number."""
    if hasattr(X, "toarray"):
        check_vectors(X)
    try:
        values = np.asarray(unmasked(X))
        if values.dtype.kind == "c":
            raise not_real()
        if values.dtype.kind in "mM":
            raise not_dates(values.dtype)
        values = values.astype(np.float64)
    except BadItem:
        raise
    except (TypeError, ValueError) as error:
        kind = BadType if isinstance(error, TypeError) else BadValue
        raise kind(None, f"must hold numbers ({error})", remedy="encode strings with NGramEncoder") from None
    if values.ndim == 1 and n_features is not None and n_features > 1:
        raise not_2d("X", values.shape)
    columns = check_vectors(values[:, None] if values.ndim == 1 else values, n_features=n_features, by=by)
    return columns.astype(np.float64, copy=False)
