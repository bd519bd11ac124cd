"""Records to hypervectors: one code for, say, a graph, a string and some numbers together.

A record has columns, each with its own encoder. The code of each column is multiplied by a random role vector, and the
products are bundled (added, and their signs taken):

    code(record) = sign( sum over columns c of role(c) * code_c(record) )

Roles are nearly orthogonal, so different columns do not mix, and the similarity of two records is close to the mean of
the similarities of their columns. P. Kanerva, "Hyperdimensional computing", Cognitive Computation 1 (2009): holistic
records.
"""

from __future__ import annotations

import functools
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import clone

from similia.codes.bits import unpack_signs
from similia.codes.hypervectors import HypervectorEncoder, bind, check_output, empty_output, random, sign
from similia.core.config import rows_per_block
from similia.core.estimators import all_at_once, is_lazy
from similia.core.state import Sizes, array, each, state
from similia.core.validation import BadValue, generator, not_dates, part_from
from similia.objects.sequences import at_least_one
from similia.sources.dask import Distributed, from_parts, of_one

Vectors = npt.NDArray[Any]


def _are_pairs(value: Any, sizes: Sizes) -> bool:
    """Return whether `value` is a list or tuple of m pairs; m is ``sizes["m"]``, which is set here if it is missing."""
    pairs = isinstance(value, list | tuple) and all(isinstance(entry, tuple) and len(entry) == 2 for entry in value)
    return pairs and sizes.setdefault("m", len(value)) == len(value)


@state(
    encoders=_are_pairs, encoders_=each("transform", "m"), roles_=array("u1", "m", "b"), ties_=array("u1", 1, "b")
)  # fmt: skip
class RecordEncoder(HypervectorEncoder):
    """Encode records, whose columns may be of different kinds, as hypervectors (long, random-looking codes).

    Parameters
    ----------
    encoders : list of (columns, encoder)
        If `columns` is one name (or one position, for records that are tuples), the encoder receives that column as a
        sequence of objects. If `columns` is a list, the encoder receives these columns as a 2-D array of numbers.
        `encoder` is a transformer that returns hypervectors: packed bits (uint8) or numbers. The hypervectors of all
        encoders must have the same length, counted in bits or numbers.
    output : {"bits", "counts"}, default="bits"
        What `transform` returns. For each record, it multiplies the hypervector from each encoder by a random vector of
        ±1, the role of this encoder, and adds up the products. "counts" returns the sums, and "bits" their signs as
        packed bits. In the products, bit 1 of a packed hypervector counts as +1, and bit 0 as -1.
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws the roles and the vector that breaks ties. It does not seed the
        encoders, which have their own `random_state`.

    Attributes
    ----------
    encoders_ : list of encoders
        Fitted copies of the encoders.
    roles_ : ndarray of uint8, shape (n_encoders, n_bits // 8)
        The role of each encoder.
    ties_ : ndarray of uint8, shape (1, n_bits // 8)
        Random vector whose bits decide ties, the positions at which a sum is 0.

    Notes
    -----
    All encoders have equal weight: a hypervector of counts or floats is divided by its root mean square (unless this is
    0); bits, read as ±1, need no such scaling. The output "counts" is int32 if all encoders return bits, and float64
    otherwise. If the number of encoders is even and all return bits, many positions are tied. At these positions, every
    record takes the bits of `ties_`, so unrelated records have a similarity above 0 (0.25 for two encoders);
    ``output="counts"`` avoids this.

    Examples
    --------
    >>> from similia import codes
    >>> records = [("GATTACA", "red apple"), ("GATTACA", "green pear"), ("CCGCGG", "red apple")]
    >>> bundle = codes.RecordEncoder(
    ...     [(0, codes.NGramEncoder(n=3, random_state=0)), (1, codes.NGramEncoder(n=2, random_state=0))],
    ...     output="counts", random_state=0,
    ... )
    >>> counts = bundle.fit_transform(records)
    >>> (counts @ counts.T / 20_000).round(1)  # 2 columns of 10,000 positions
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0. ],
           [0.5, 0. , 1. ]])
    """

    def __init__(self, encoders: list[tuple[Any, Any]], output: str = "bits", random_state: Any = None) -> None:
        self.encoders = encoders
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit each encoder to its column and to `y`, and draw one random vector per encoder, called its role.

        `X` is a pandas or polars DataFrame, a dict of columns, or a list of records (tuples or dicts).
        """
        self._fit(X, y)
        return self

    @all_at_once
    def fit_transform(self, X: Any, y: Any = None) -> Vectors:
        """Fit the encoders, draw one random vector per encoder (its role), and return the records' hypervectors."""
        return self.fit(X, y).transform(X) if is_lazy(X) else self._bundle(self._fit(X, y))

    def _fit(self, X: Any, y: Any) -> list[Vectors]:
        """Fit the encoders and draw the roles; return each column's codes (for Dask data, of one example record)."""
        self._check_parameters()
        self.encoders_ = [clone(encoder) for _, encoder in self.encoders]
        parts = [
            _first_codes(encoder, spec, column, y)
            for encoder, (spec, _), column in zip(self.encoders_, self.encoders, self._columns(X), strict=True)
        ]
        n_bits = self._n_bits(parts)
        rng = generator(self.random_state)
        self.roles_ = random(len(parts), n_bits, rng)
        self.ties_ = random(1, n_bits, rng)
        return parts

    def _encode(self, X: Any) -> Vectors:
        columns = self._columns(X)
        with config_context(transform_output="default"):
            parts = [e.transform(c) for e, c in zip(self.encoders_, columns, strict=True)]
        return self._bundle(parts)

    @property
    def _n_features_out(self) -> int:
        return int(self.roles_.shape[1]) * (1 if self.output == "bits" else 8)

    def _check_parameters(self) -> None:
        check_output(self.output)
        if not isinstance(self.encoders, list | tuple) or len(self.encoders) == 0:
            raise ValueError(f"encoders must be a list of (columns, encoder), got {self.encoders!r}")
        for i, entry in enumerate(self.encoders):
            if not isinstance(entry, tuple) or len(entry) != 2 or not hasattr(entry[1], "transform"):
                raise ValueError(f"encoders[{i}] must be (columns, transformer), got {entry!r}")

    def _columns(self, X: Any) -> list[Any]:
        """Return the input of each encoder, selected from `X`; all records are checked before any encoder runs."""
        if isinstance(X, Distributed):
            at_least_one(X)
            return [X.converted(functools.partial(_select, spec=spec)) for spec, _ in self.encoders]
        columns = [_select(X, spec) for spec, _ in self.encoders]
        for (spec, _), column in zip(self.encoders, columns, strict=True):
            if len(column) != len(columns[0]):
                raise ValueError(
                    f"column {spec!r} has {len(column)} entries and column {self.encoders[0][0]!r} has "
                    f"{len(columns[0])}, expected one entry per record in each"
                )
        if len(columns[0]) == 0:
            raise BadValue(None, "is empty: found 0 records", "at least one")
        return columns

    def _n_bits(self, parts: list[Vectors]) -> int:
        """Return the number of positions that the codes of all columns have; raise if the columns differ."""
        specs = [spec for spec, _ in self.encoders]
        widths = [_width(part, spec) for part, spec in zip(parts, specs, strict=True)]
        first = next((i for i, part in enumerate(parts) if part.dtype == np.uint8), 0)
        n_bits = widths[first]
        wanted = f"{n_bits} as from that of column {specs[first]!r}"
        for part, spec, width in zip(parts, specs, widths, strict=True):
            if part.dtype.kind == "f" and (width != n_bits or n_bits % 8):
                raise ValueError(
                    f"the encoder of column {spec!r} emits {width} columns of {part.dtype} and no codes, expected "
                    f"{'a multiple of 8' if n_bits % 8 else wanted}; end the encoder with SignRandomProjection"
                )
            if width != n_bits:
                raise ValueError(
                    f"the encoder of column {spec!r} emits {width} positions, expected {wanted}; give all encoders the "
                    "same n_bits"
                )
        return n_bits

    def _bundle(self, parts: list[Vectors]) -> Vectors:
        n_bits = 8 * self.roles_.shape[1]
        if (found := self._n_bits(parts)) != n_bits:
            raise ValueError(f"the encoders emit {found} positions, expected {n_bits} as in fit")
        n = len(parts[0])
        scaled = self.output == "counts" and any(part.dtype != np.uint8 for part in parts)
        out: Vectors = np.empty((n, n_bits)) if scaled else empty_output(n, n_bits, self.output)
        step = rows_per_block(24 * n_bits)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            with part_from(start):
                bound = [
                    _bound(role, part[rows], spec)
                    for role, part, (spec, _) in zip(self.roles_[:, None], parts, self.encoders, strict=True)
                ]
            sums = functools.reduce(np.add, bound)  # in this order, so that floats have the same bits
            out[rows] = sign(sums, self.ties_) if self.output == "bits" else sums
        return out


def _select(X: Any, spec: Any) -> Any:
    """Return the column of `X` named `spec`, or, if `spec` is a list of names, those columns as a 2-D array."""
    if not isinstance(spec, list):
        return _column(X, spec)
    return np.column_stack([_numbers(name, _column(X, name)) for name in spec])


def _column(X: Any, name: Any) -> Any:
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a table or a list of records, got {type(X).__name__}")
    if hasattr(X, "iloc") and not hasattr(X, "columns"):  # a Series of records
        X = X.tolist()
    if not hasattr(X, "columns") and not hasattr(X, "keys"):
        return [_entry(i, record, name) for i, record in enumerate(X)]
    names = list(X.columns if hasattr(X, "columns") else X)
    if name not in names:
        raise BadValue(None, f"has no column {name!r}", f"one of {names}")
    return X[name]


def _numbers(name: Any, column: Any) -> npt.NDArray[np.float64]:
    try:
        values = np.asarray(column)
        if values.dtype.kind not in "mM":
            return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} must hold numbers ({error}); to encode other objects, name the column outside of a list"
        ) from None
    raise not_dates(values.dtype, f"column {name!r}")


def _entry(i: int, record: Any, name: Any) -> Any:
    try:
        return record[name]
    except (LookupError, TypeError):
        raise BadValue(i, f"has no entry {name!r}: found {record!r:.60}", "a tuple or dict that has one") from None


def _first_codes(encoder: Any, spec: Any, column: Any, y: Any) -> Any:
    """Fit an encoder to a column; return the column's codes (for Dask data, the codes of one example)."""
    try:
        with config_context(transform_output="default"):
            encode = encoder.fit(column, y).transform
            return of_one(encode, column) if isinstance(column, Distributed) else encode(column)
    except (TypeError, ValueError) as error:
        if isinstance(column, Distributed):
            raise type(error)(
                f"the encoder of column {spec!r} cannot be fitted to a Dask collection ({error}); fit to "
                "X.compute(), or to a part of it, and transform all"
            ) from error
        if isinstance(spec, list) or not all(isinstance(value, Real) for value in column):
            raise
        raise ValueError(
            f"the encoder of column {spec!r} does not take its numbers as objects ({error}); "
            f"write ([{spec!r}], ...) to give them as vectors"
        ) from error


def _width(part: Any, spec: Any) -> int:
    """Return the bits or counts in a row of `part`, codes of the column `spec`; raise if `part` is not 2-D."""
    if not isinstance(part, np.ndarray) or part.ndim != 2:
        raise ValueError(
            f"the encoder of column {spec!r} must emit a 2-D array of packed bits or counts, got {type(part).__name__}"
        )
    return part.shape[1] * (8 if part.dtype == np.uint8 else 1)


def _bound(role: npt.NDArray[np.uint8], part: Vectors, spec: Any) -> Vectors:
    """Return `part` times `role`: codes as ±1 (int32), other rows divided by their root mean square (float64).

    Each row is first scaled by a power of two, so that its squares can be added.
    """
    if part.dtype == np.uint8:
        return unpack_signs(bind(role, part), np.int32)
    numbers = part.astype(np.float64)
    largest = np.abs(numbers).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        found = f"gets NaN or infinity from the encoder of column {spec!r}"
        raise BadValue(int(np.argmin(np.isfinite(largest))), found, "finite numbers", "drop or impute it")
    numbers *= np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000))
    scale = np.sqrt((numbers**2).sum(axis=1, keepdims=True) / part.shape[1])
    return unpack_signs(role) * np.divide(numbers, scale, out=np.zeros(part.shape), where=scale > 0)
