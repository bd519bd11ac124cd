"""The first stage of a quantised model: it turns an object into whole numbers k, or directly into a code.

Each class holds the numbers that its loop in C needs (``templates/model.c.jinja``), and computes the same results here
for many objects at once:

==========  ============================================  ==============================================
class       object                                        whole numbers k
==========  ============================================  ==============================================
Numbers     numbers of a vector, in steps, int16          the vector itself
Gaussian    numbers of a vector, in steps, int16          curve of squared distances to landmarks
Substrings  letters, one byte each                        products of k-mer counts with those of landmarks
Subtrees    a graph: arcs, labels                         products of colour counts with those of landmarks
Edits       letters, one byte each                        curve of edit distances to landmarks
Warped      series of numbers in steps, int16             curve of DTW distances to landmarks
Levels      a vector or a series in steps                 none: it makes codes (`LevelEncoder` and others)
NGrams      letters, one byte each                        none: it makes codes (`NGramEncoder`)
==========  ============================================  ==============================================

A curve is a function of a distance, such as exp(-gamma d), stored as a table of whole numbers below 2^24 (`Curve`)
or, for float32, computed (`Decay`), with the operations in a fixed order, each rounded to float32.

A device has no floating point and keeps its memory from the start, so numbers become int16 multiples of steps that are
chosen once (`Units`), strings hold known letters of one byte (`Letters`), and no object is longer than the longest
allowed. In float32, `FloatVectors` and `FloatGaussian` stand for `Numbers` and `Gaussian`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.codes import LevelEncoder, NGramEncoder, SequenceEncoder
from similia.codes.hypervectors import basis, tie_code
from similia.codes.sequences import finite_series
from similia.codes.vectors import read_numbers
from similia.core.text import counted, short
from similia.core.validation import BadValue, check_vectors
from similia.distances import DTW, Levenshtein
from similia.kernels import WeisfeilerLehman
from similia.kernels.strings import complements_of, letters_read
from similia.objects import GraphBatch, StringBatch, as_graphs, as_strings
from similia.objects.series import SeriesBatch

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
_ONE = 2**24 - 1  # the whole number that stands for 1.0 in a curve
_SEGMENTS = 2048  # maximum number of segments of a curve
_REACH = 2**15 - 1  # largest number of an int16
_LARGER = "quantise with a larger {parameter}"
LARGEST = np.float32(86)  # for larger t, exp(-t) counts as 0, before it is so small that some devices take it for 0
LOG2_E = np.float32(1.44269504)
LN2, LN2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)  # sum: ln 2; n LN2 is exact for n < 2^15
SERIES = tuple(np.float32(1 / n) for n in (720, 120, 24, 6, 2, 1, 1))  # coefficients of exp, highest power first


@dataclass(frozen=True)
class Units:
    """Steps of columns of numbers: a number is divided by its step and rounded to the nearest int16 (ties to even)."""

    steps: npt.NDArray[np.float64]

    @classmethod
    def of(cls, X: npt.NDArray, *, common: bool = False) -> Units:
        """Choose a step per column: 1 for whole numbers of int16, else a power of two with room for twice as much.

        If `common`, all columns have the same step.
        """
        largest = np.abs(X).max(axis=0)
        whole = (np.rint(X) == X).all(axis=0) & (largest <= _REACH)
        if common:
            largest, whole = np.full_like(largest, largest.max()), np.full_like(whole, whole.all())
        steps = np.exp2(np.ceil(np.log2(np.where(largest > 0, 2 * largest, 1.0) / _REACH)))
        return cls(np.where(whole, 1.0, steps).astype(np.float64))

    def read(self, X: npt.NDArray) -> Ints:
        """Return the vectors `X` in steps; raise if one does not fit into int16."""
        whole = np.rint(X / self.steps)
        wrong = np.abs(whole) > _REACH
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            reach = _REACH * self.steps[j]
            remedy = "quantise with X that holds such numbers"
            raise BadValue(i, f"holds {X[i, j]:g} in column {j}", f"at most {reach:g}", remedy)
        return whole.astype(np.int64)


@dataclass(frozen=True)
class Letters:
    """Strings of at most `longest` letters, each of one byte and among `known`."""

    known: npt.NDArray[np.uint8]
    longest: int

    @classmethod
    def of(cls, batches: list[StringBatch], letters: str, longest: int | None) -> Letters:
        """Allow the letters of the strings and of `letters`, and lengths up to `longest` (None: the largest)."""
        parts = [batch.values.astype(np.int64) for batch in batches]
        values = np.unique(np.concatenate([*parts, [*map(ord, letters)]]))
        if len(values) and values[-1] > 255:
            raise ValueError(
                f"the letter {short(chr(int(values[-1])))} takes more than a byte; fit the model to bytes: x.encode()"
            )
        found = max(int(np.diff(batch.offsets).max()) for batch in batches)
        return cls(values.astype(np.uint8), found if longest is None else longest)

    def read(self, X: Any) -> StringBatch:
        batch = as_strings(X)
        lengths = np.diff(batch.offsets)
        if lengths.max() > self.longest:
            i = int(np.argmax(lengths > self.longest))
            raise BadValue(i, f"has {lengths[i]} letters", f"at most {self.longest}", _LARGER, parameter="max_length")
        strange = ~np.isin(batch.values, self.known)
        if strange.any():
            place = int(np.argmax(strange))
            i = int(np.searchsorted(batch.offsets, place, side="right")) - 1
            found = f"holds {short(chr(batch.values[place]))} at position {place - batch.offsets[i]}"
            known = f"letters among {short(''.join(map(chr, self.known)))}"
            raise BadValue(i, found, known, "quantise with the letter in {parameter}", parameter="letters")
        return batch

    @property
    def bitmap(self) -> npt.NDArray[np.uint8]:
        """Bit c % 8 of byte c // 8 says whether letter c is known."""
        return np.packbits(np.isin(np.arange(256), self.known), bitorder="little")


def _as_whole_series(X: Any, n_channels: int, longest: int, units: Units) -> SeriesBatch:
    """Return series in steps; raise if one is not finite, too long or has another number of channels."""
    batch = finite_series(X)
    lengths = np.diff(batch.offsets)
    if batch.n_dims != n_channels:
        raise BadValue(None, f"has series of {counted(batch.n_dims, 'channel')}", f"{n_channels} as in training")
    if lengths.max() > longest:
        i = int(np.argmax(lengths > longest))
        raise BadValue(i, f"has {lengths[i]} points", f"at most {longest}", _LARGER, parameter="max_length")
    return in_steps(batch, units)


def in_steps(batch: SeriesBatch, units: Units) -> SeriesBatch:
    """Return series whose values are whole numbers of steps, as float64; an error names the series."""
    try:
        return SeriesBatch(units.read(batch.values.astype(np.float64)).astype(np.float64), batch.offsets)
    except BadValue as error:
        if error.index is None:
            raise
        row = int(np.searchsorted(batch.offsets, error.index, side="right")) - 1
        raise error.changed(index=row) from None


class _Vectors:
    kind: ClassVar[str] = "vector"

    def numbers(self, objects: Any) -> Any:
        return objects

    def arguments(self, objects: npt.NDArray) -> list[npt.NDArray]:
        """Return the arguments of the C function for each object."""
        return list(objects)


@dataclass(frozen=True)
class Numbers(_Vectors):
    """The input that passes on the numbers of a vector, as whole numbers of steps."""

    units: Units

    @property
    def width(self) -> int:
        return len(self.units.steps)

    @property
    def limit(self) -> int:
        return _REACH

    def read(self, X: Any) -> Ints:
        """Return vectors as whole numbers, shape (n, n_features)."""
        return self.units.read(check_vectors(X, n_features=len(self.units.steps)))


@dataclass(frozen=True)
class Curve:
    """A smooth function of a whole number d, as a table with a parabola between its entries.

    Entry i is the value at d = i 2^shift. From the last entry but one on, the value is constant.
    """

    limit: ClassVar[int] = _ONE
    values: Ints
    shift: int

    @classmethod
    def of(cls, function: Callable[[npt.NDArray], npt.NDArray], largest: int) -> Curve:
        """Return the table of `function`, with values in [0, 1], from d = 0 to `largest` or to where it is almost 0."""
        ends = np.minimum(2.0 ** np.arange(63), largest)
        zero = function(ends) * _ONE < 0.5
        reach = int(ends[np.argmax(zero)]) if zero.any() else largest
        shift = max(0, int(np.ceil(np.log2(max(reach, 1) / _SEGMENTS))))
        points = np.arange((reach >> shift) + 3, dtype=np.float64) * 2**shift
        return cls(np.rint(function(points) * _ONE).astype(np.int64), shift)

    def __call__(self, d: Ints) -> Ints:
        last = len(self.values) - 2
        place = np.minimum(d >> self.shift, last - 1)
        part = np.minimum(d - (place << self.shift), 1 << self.shift)
        first, second, third = (self.values[place + i] for i in range(3))
        share = (part << 12) >> self.shift
        bend = (third - 2 * second + first) * share * (4096 - share)
        return first + (((second - first) * part) >> self.shift) - (bend >> 25)


def exp_minus(t: Floats) -> Floats:
    """Return exp(-t) for t >= 0: 2^-n times a polynomial of r = n ln 2 - t, where n is t / ln 2 rounded."""
    near = np.where(t < LARGEST, t, np.float32(0))
    n = (near * LOG2_E + np.float32(0.5)).astype(np.int32)
    whole = n.astype(np.float32)
    r = (whole * LN2 - near) + whole * LN2_REST
    total = np.full_like(r, SERIES[0])
    for coefficient in SERIES[1:]:
        total = total * r + coefficient
    return np.where(t < LARGEST, np.ldexp(total, -n), np.float32(0))


@dataclass(frozen=True)
class Decay:
    """The function exp(-gamma q) of a distance d, where q is d or, if `square`, d^2."""

    limit: ClassVar[int] = 1
    gamma: float
    square: bool = False

    def __call__(self, d: npt.NDArray) -> Floats:
        """Return the function in float32, with gamma rounded to float32."""
        with np.errstate(over="ignore"):
            return exp_minus(np.float32(self.gamma) * (d * d if self.square else d).astype(np.float32))

    def exact(self, d: npt.NDArray) -> npt.NDArray[np.float64]:
        """Return the function in float64."""
        return np.exp(-self.gamma * (d * d if self.square else d))


class _OfDistances:
    """Base of inputs whose numbers are a function of the distances to landmarks."""

    landmarks: Any
    curve: Curve | Decay

    @property
    def width(self) -> int:
        return len(self.landmarks)

    @property
    def limit(self) -> int:
        return self.curve.limit


@dataclass(frozen=True)
class Gaussian(_OfDistances, Numbers):
    """Values of a Gaussian kernel with landmarks, from vectors of whole numbers."""

    kind: ClassVar[str] = "gaussian"
    landmarks: Ints
    curve: Curve

    def numbers(self, objects: Ints) -> Ints:
        cross = objects.astype(np.float64) @ self.landmarks.T.astype(np.float64)  # exact: below 2^53
        squares = np.square(objects).sum(axis=1)[:, None] + np.square(self.landmarks).sum(axis=1)
        return self.curve(squares - 2 * cross.astype(np.int64))


@dataclass(frozen=True)
class FloatVectors(_Vectors):
    """The input that passes on the numbers of a vector unchanged, as float32."""

    n_features: int

    @property
    def width(self) -> int:
        return self.n_features

    def read(self, X: Any) -> Floats:
        """Return vectors as float32, shape (n, n_features); raise if a number is too large for it."""
        X = check_vectors(X, n_features=self.n_features)
        with np.errstate(over="ignore"):
            found = X.astype(np.float32)
        if not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0]
            raise BadValue(i, f"holds {X[i, j]:g} in column {j}", "numbers of float32", "scale the column down")
        return found


@dataclass(frozen=True)
class FloatGaussian(_OfDistances, FloatVectors):
    """Values of a Gaussian kernel with landmarks, from vectors of float32."""

    kind: ClassVar[str] = "gaussian"
    landmarks: Floats
    curve: Decay

    def numbers(self, objects: Floats) -> Floats:
        total = np.zeros((len(objects), len(self.landmarks)), np.float32)
        with np.errstate(over="ignore"):
            for x, landmark in zip(objects.T, self.landmarks.T, strict=True):
                difference = x[:, None] - landmark
                total += difference * difference
        return self.curve(total)


class _Strings:
    letters: Letters

    def read(self, X: Any) -> StringBatch:
        """Return strings as a batch; raise if one is too long or holds a letter that the model does not know."""
        return self.letters.read(X)

    def arguments(self, objects: StringBatch) -> list[npt.NDArray]:
        return [objects.values[a:b] for a, b in zip(objects.offsets[:-1], objects.offsets[1:], strict=True)]


@dataclass(frozen=True)
class Features:
    """Feature counts of landmarks, by feature, for products with the counts of an object.

    A feature is identified by 32 bits: the upper half of its id XOR the lower half. Features with the same 32 bits
    count as one. Feature ``ids[i]`` (ascending) occurs in the landmarks ``landmarks[offsets[i]:offsets[i + 1]]``; the
    same part of `counts` holds the numbers of occurrences, times the weight of the feature.
    """

    kernel: Any
    ids: npt.NDArray[np.uint32]
    offsets: Ints
    landmarks: Ints
    counts: Ints
    width: int

    @classmethod
    def of(cls, kernel: Any, landmarks: Any) -> Features:
        counts = kernel.counted(landmarks)
        rows = np.repeat(np.arange(len(counts)), np.diff(counts.offsets))
        ids, columns = np.unique(_folded(counts.ids), return_inverse=True)
        if len(ids) == 0:
            raise ValueError("no landmark has a feature of the kernel; fit with longer objects or a smaller k")
        values = np.rint(counts.weighted_values()).astype(np.int64)
        table = sp.csr_array((values, (columns, rows)), shape=(len(ids), len(counts)))
        table.sum_duplicates()  # features that share their 32 bits
        indptr, indices = table.indptr.astype(np.int64), table.indices.astype(np.int64)
        return cls(kernel, ids, indptr, indices, table.data, len(counts))

    def products(self, objects: Any) -> Ints:
        """Return the inner products of the counts of objects with those of the landmarks."""
        counts = self.kernel.counted(objects)
        ids = _folded(counts.ids)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[place] == ids
        rows = np.repeat(np.arange(len(counts)), np.diff(counts.offsets))[known]
        values, shape = counts.values[known].astype(np.int64), (len(counts), len(self.ids))
        table = sp.csr_array((self.counts, self.landmarks, self.offsets), shape=(len(self.ids), self.width))
        return np.asarray((sp.csr_array((values, (rows, place[known])), shape=shape) @ table).toarray())

    def limit(self, n_occurrences: int) -> int:
        """Return the largest product for an object of `n_occurrences` features; raise if it exceeds 32 bits."""
        limit = max(1, n_occurrences * int(self.counts.max()))
        if limit > 2**31 - 1:
            raise ValueError(
                f"products of counts may reach {limit}, above 32 bits; quantise with smaller objects or max_length"
            )
        return limit


class _OfFeatures:
    """Base of inputs whose numbers are products of feature counts with those of landmarks."""

    features: Features

    @property
    def n_occurrences(self) -> int:
        """Largest number of features of an object, each counted as often as it occurs."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        return self.features.width

    @property
    def limit(self) -> int:
        return self.features.limit(self.n_occurrences)

    def numbers(self, objects: Any) -> Ints:
        return self.features.products(objects)


@dataclass(frozen=True)
class Substrings(_Strings, _OfFeatures):
    """Products of feature counts of strings with those of landmarks."""

    kind: ClassVar[str] = "substrings"
    features: Features
    letters: Letters

    @property
    def n_occurrences(self) -> int:
        return self.letters.longest * int(self.features.kernel._ids_per_letter())

    @property
    def tables(self) -> tuple[npt.NDArray, npt.NDArray]:
        """The letter that the kernel reads for each byte, and that letter's complement (empty for one strand)."""
        kernel = self.features.kernel
        both = bool(getattr(kernel, "reverse_complement", False))
        read = letters_read(np.arange(256, dtype=np.uint32), both, bool(getattr(kernel, "ignore_case", False)))
        return read, complements_of(read) if both else np.empty(0, np.uint32)


@dataclass(frozen=True)
class Subtrees(_OfFeatures):
    """Inner products of the Weisfeiler-Lehman colour counts of graphs and of landmarks; an edge is two arcs.

    `node_labels` and `edge_labels` say whether the graphs have labels that the kernel reads.
    """

    kind: ClassVar[str] = "subtrees"
    features: Features
    most_nodes: int
    most_arcs: int
    node_labels: bool
    edge_labels: bool

    @classmethod
    def of(cls, kernel: WeisfeilerLehman, batches: list[GraphBatch], most_nodes: int | None) -> Subtrees:
        """Take `batches[0]` as landmarks; allow up to `most_nodes` nodes (None: as many as the largest graph)."""
        landmarks = batches[0]
        if kernel.details and any(batch.node_details is not None for batch in batches):
            raise TypeError("details of nodes cannot be quantised; fit with WeisfeilerLehman(details=False)")
        nodes = max(int(np.diff(batch.node_offsets).max()) for batch in batches)
        arcs = max(int(np.diff(batch.indptr[batch.node_offsets]).max()) for batch in batches)
        if most_nodes is not None:
            arcs = max(arcs, -(-arcs * most_nodes // max(nodes, 1)))  # a smaller graph may be denser
        edges = kernel.edge_labels and kernel.n_iter > 0 and landmarks.edge_labels is not None
        features = Features.of(kernel, landmarks)
        return cls(features, most_nodes or nodes, arcs, landmarks.node_labels is not None, bool(edges))

    @property
    def n_occurrences(self) -> int:
        return self.most_nodes * (int(self.features.kernel.n_iter) + 1)

    def read(self, X: Any) -> GraphBatch:
        """Return graphs as a batch; raise if one is too large or lacks labels."""
        batch = as_graphs(X)
        for what, most, sizes in (
            ("nodes", self.most_nodes, np.diff(batch.node_offsets)),
            ("arcs", self.most_arcs, np.diff(batch.indptr[batch.node_offsets])),
        ):
            if sizes.max() > most:
                i = int(np.argmax(sizes > most))
                raise BadValue(i, f"has {sizes[i]} {what}", f"at most {most}", _LARGER, parameter="max_length")
        for name in ("node_labels", "edge_labels"):
            if getattr(self, name) and getattr(batch, name) is None:
                raise BadValue(None, f"has no {name}", f"graphs with {name}, as in training")
        return batch

    def numbers(self, objects: GraphBatch) -> Ints:
        if objects.node_labels is not None and not self.node_labels:
            objects = replace(objects, node_labels=None)
        if objects.edge_labels is not None and not self.edge_labels:
            objects = replace(objects, edge_labels=None)
        return super().numbers(objects)

    def arguments(self, objects: GraphBatch) -> list[tuple[npt.NDArray, ...]]:
        """Return (first arc of each node, targets, labels of nodes, labels of arcs) of each graph."""
        found = []
        for graph in objects:
            labels = [graph.node_labels if self.node_labels else None, graph.edge_labels if self.edge_labels else None]
            found.append((graph.indptr, graph.indices, *(np.empty(0, int) if one is None else one for one in labels)))
        return found


@dataclass(frozen=True)
class Edits(_Strings, _OfDistances):
    """A function of the Levenshtein distances to landmarks."""

    kind: ClassVar[str] = "edits"
    letters: Letters
    landmarks: StringBatch
    curve: Curve | Decay

    def numbers(self, objects: StringBatch) -> npt.NDArray:
        return self.curve(Levenshtein()(objects, self.landmarks).astype(np.int64))


@dataclass(frozen=True)
class Warped(_OfDistances):
    """A function of the DTW distances of series of whole numbers to landmarks."""

    kind: ClassVar[str] = "warped"
    distance: DTW
    units: Units
    landmarks: SeriesBatch
    longest: int
    curve: Curve

    @property
    def n_channels(self) -> int:
        return self.landmarks.n_dims

    def read(self, X: Any) -> SeriesBatch:
        return _as_whole_series(X, self.n_channels, self.longest, self.units)

    def numbers(self, objects: SeriesBatch) -> Ints:
        # costs are whole numbers below 2^53, so float64 holds the distances exactly
        return self.curve(DTW(self.distance.window, self.distance.local)(objects, self.landmarks).astype(np.int64))

    def arguments(self, objects: SeriesBatch) -> list[npt.NDArray]:
        return _points(objects)


@dataclass(frozen=True)
class Levels:
    """Codes of `LevelEncoder`, for vectors (`longest` is 0), or of `SequenceEncoder`, for series of up to `longest`."""

    encoder: LevelEncoder | SequenceEncoder
    units: Units
    longest: int

    @property
    def ends(self) -> Ints:
        """The largest whole number of each level but the last, for each feature or channel, ascending in each row."""
        levels = np.arange(len(self.encoder.levels_) - 1)[:, None]
        found = np.full((len(levels), self.n_channels), -(2**15))
        for bit in range(15, -1, -1):
            more = found + 2**bit
            found = np.where(self.encoder._level_indices(more * self.units.steps) <= levels, more, found)
        return found.T

    @property
    def kind(self) -> str:
        return "sequence" if self.longest else "levels"

    @property
    def n_bits(self) -> int:
        return 8 * self.encoder.levels_.shape[1]

    @property
    def n_channels(self) -> int:
        return len(self.encoder.low_)

    def read(self, X: Any) -> Any:
        """Return vectors as whole numbers, (n, n_features), or series as a `SeriesBatch` of whole numbers."""
        if not self.longest:
            return self.units.read(read_numbers(X, self.n_channels))
        return _as_whole_series(X, self.n_channels, self.longest, self.units)

    def codes(self, objects: Any) -> Codes:
        """Return the codes of objects from `read`."""
        values = (objects.values if self.longest else objects) * self.units.steps
        return self.encoder.transform(SeriesBatch(values, objects.offsets) if self.longest else values)

    def arguments(self, objects: Any) -> list[npt.NDArray]:
        return _points(objects) if self.longest else list(objects)


@dataclass(frozen=True)
class NGrams(_Strings):
    """Codes of `NGramEncoder`; row i of `items` is the vector of known letter i."""

    kind: ClassVar[str] = "ngrams"
    encoder: NGramEncoder
    letters: Letters
    items: Codes
    ties: Codes

    @classmethod
    def of(cls, encoder: NGramEncoder, letters: Letters) -> NGrams:
        n_bits = int(encoder.n_bits)
        items = basis(encoder.seed_, letters.known.tolist(), n_bits)
        return cls(encoder, letters, items, tie_code(encoder.seed_, n_bits))

    @property
    def n_bits(self) -> int:
        return 8 * self.items.shape[1]

    def codes(self, objects: StringBatch) -> Codes:
        return self.encoder.transform(objects)


def _points(objects: SeriesBatch) -> list[npt.NDArray]:
    bounds = zip(objects.offsets[:-1], objects.offsets[1:], strict=True)
    return [objects.values[a:b].astype(np.int64).ravel() for a, b in bounds]


def _folded(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    return ((ids >> np.uint64(32)) ^ (ids & np.uint64(2**32 - 1))).astype(np.uint32)
