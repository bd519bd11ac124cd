"""Nearest vectors by codes of 1, 2, 4 or 8 bits per coordinate, compared with integer arithmetic.

Packed signs keep directions only roughly. With 4 bits per coordinate, the estimated distances are seven times as
accurate as with 1 bit, and the codes still take only an eighth of the memory of float32 vectors. `_vector_index`
describes codes and estimates.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from similia.core.config import exclusively, rows_per_block, run_in_ranges
from similia.core.estimators import all_at_once, check_columns, check_fitted, is_lazy, present, twin_of
from similia.core.state import Sizes, array, count, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadType,
    BadValue,
    Ids,
    check_choice,
    check_codes,
    check_ids,
    check_positive_int,
    check_radius,
    check_vectors,
    count_on,
    generator,
    part_from,
)
from similia.search.answers import ragged, within_radius
from similia.search.hamming_index import Rows
from similia.search.scan import best, sort_heaps
from similia.sources.dask import Distributed, check_readable, each_block, from_parts
from similia.sources.source import Source

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

_BITS = (1, 2, 4, 8)
_BLOCK = 2**12  # vectors read at a time; fixed, as the sum for the mean depends on it
_GRAIN = 2**12  # minimum number of rows per thread
_BYTES_OF_A_THREAD = 2**23  # minimum bytes of codes, once per query, that a thread compares: threads start in 0.1 ms
_LAST = 2**63 - 1
_FARTHEST = 1e15  # largest norm of a vector, if the largest number in `fit` is between 1/2 and 1


def _fits(state: dict[str, Any], sizes: Sizes) -> bool:
    bits = state["bits"]
    return bits in _BITS and sizes["p"] == _length(sizes["d"], bits)


@state(
    fits=_fits, n_features_in_=count("d", least=1), center_=array("f8", "d"), signs_=array("i1", 4, "p"),
    exponent_=lambda value, sizes: type(value) is int and abs(value) < 1100,
)  # fmt: skip
class VectorIndex(BaseEstimator):
    r"""Find the nearest vectors by Euclidean distance or cosine, estimated from codes of a few bits per coordinate.

    `fit` subtracts the mean of the vectors, rotates them at random, and rounds each coordinate to `bits` bits. Each row
    of the index holds these bits and two numbers of 4 bytes. A query is rotated, too, but its coordinates are rounded
    to 16 bits. The distance from the query to every row is estimated with an inner product of integers, and the k rows
    with the smallest estimates are returned. The estimates are approximate, but no row is left out of the search.

    A `SimilaritySearch` can use a `VectorIndex` instead of packed bits, as its `encoder` or as the last step of its
    encoder, such as ``make_pipeline(Nystroem(kernel, 256), VectorIndex())``. Candidates are then the objects whose
    vectors are nearest. `similia.save` and `similia.load` keep an index in a file.

    Parameters
    ----------
    bits : {1, 2, 4, 8}, default=4
        Bits for each coordinate.
    normalize : bool, default=False
        Whether to scale vectors to length 1 first. Neighbours are then ordered by cosine, and the distance is
        ``sqrt(2 - 2 cosine)``.
    random_state : int, numpy generator or None, default=None
        Seed of the rotation.

    Attributes
    ----------
    center_ : ndarray of float64, shape (n_features,)
        Mean of the vectors of `fit` (scaled to length 1 first, if `normalize`), divided by ``2.0**exponent_``.
    exponent_ : int
        All vectors are divided by ``2.0**exponent_``. `fit` chooses the exponent so that the largest absolute value of
        a coordinate is then at least 1/2 and below 1. The exponent is 0 if `normalize`.
    signs_ : ndarray of int8, shape (4, n_coordinates)
        Random signs that define the rotation. `n_coordinates` is `n_features` rounded up to a multiple of
        ``64 / bits``.
    ids : ndarray of int64, shape (n,)
        Ids of the vectors, in the order they were added.

    See Also
    --------
    HammingIndex : Nearest packed bits by Hamming or Jaccard distance.
    FeatureIndex : Exact nearest objects by sparse features, such as counts of substrings.

    Notes
    -----
    Let x be a vector of the index, q a query, c the mean, and D the number of coordinates. The code of x stands for a
    vector w of odd integers; with 4 bits, each is one of -15, -13, ..., 15. The mean of the estimate over all rotations
    is the squared distance between x and q. The standard deviation of the estimate is about

    .. math:: 2 \|x - c\| \|q - c\| \sqrt{(1 - r^2) / (r^2 (D - 1))},

    where r is the cosine of the angle between w and the rotated x - c. On average, r is 0.80 with 1 bit, 0.94 with 2
    bits, 0.994 with 4 bits and 0.99997 with 8 bits. The estimate lies within three standard deviations for nearly all
    pairs.

    Each vector takes ``n_coordinates * bits / 8 + 16`` bytes of memory, of which 8 hold its id. Neighbours are ordered
    by estimated distance, then by id. Once the index is fitted, codes and neighbours are the same on every processor;
    they do not depend on the order in which vectors were added, on threads or on ``config(max_memory=...)``.

    References
    ----------
    Gao & Long, "RaBitQ: quantizing high-dimensional vectors with a theoretical error bound", SIGMOD 2024, Section 3.
    Gao et al., "Practical and asymptotically optimal quantization of high-dimensional vectors in Euclidean space",
    arXiv:2409.09913, 2024, Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.search import VectorIndex
    >>> X = np.random.default_rng(0).normal(size=(1000, 64))
    >>> index = VectorIndex(bits=4, random_state=0).fit(X)
    >>> distances, ids = index.kneighbors(X[:3], n_neighbors=1)
    >>> ids.ravel().tolist()
    [0, 1, 2]
    """

    _rows: Rows

    def __init__(self, bits: int = 4, *, normalize: bool = False, random_state: Any = None) -> None:
        self.bits = bits
        self.normalize = normalize
        self.random_state = random_state

    @exclusively
    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Learn the mean of vectors, draw a rotation, and replace the contents of the index with the vectors.

        Parameters
        ----------
        X : array-like of float, shape (n, n_features), Dask collection or Source of vectors
            A Dask array, bag or data frame, or a `similia.sources.Source` (see `similia.sources.open_objects`), is read
            in blocks, two or three times. The result is the same as for the vectors in memory.
        y : None
            Ignored.
        ids : array-like of int, shape (n,), optional
            Ids of the vectors: distinct and >= 0; by default 0 to n - 1.
        """
        self.emptied(X)
        return self._append(self.encode(X), ids)

    @exclusively
    @all_at_once
    @from_parts
    def add(self, X: Any, ids: Any = None) -> Self:
        """Add vectors.

        Parameters
        ----------
        X : array-like of float, shape (n, n_features), Dask collection or Source of vectors
            A Dask collection or a source is read once, in blocks.
        ids : array-like of int, shape (n,), optional
            Ids of the vectors: distinct, >= 0, and not yet in the index. By default, they continue after the largest id
            ever used.
        """
        return self._append(self.encode(X), ids)

    @exclusively
    @all_at_once
    def remove(self, ids: Any) -> Self:
        """Remove vectors by their ids; every id must exist."""
        rows = self._found(check_ids(ids), "removed")
        self._rows = self._rows.copy()
        self._rows.kill(rows)
        if not self._rows.fixed and 2 * self._rows.n_dead > self._rows.n_rows:
            self._rows.compact()
        return self

    def kneighbors(self, X: Any, n_neighbors: int = 10, return_distance: bool = True) -> Any:
        """Find the nearest vectors of each query, ordered by estimated distance, then id.

        Parameters
        ----------
        X : array-like of float, shape (q, n_features)
            Queries.
        n_neighbors : int, default=10
            Number k of neighbours, at most the number of vectors.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances : ndarray of float64, shape (q, k)
            Estimated distances, ascending; only if `return_distance`.
        ids : ndarray of int64, shape (q, k)
            Ascending where distances are equal.
        """
        now, k = present(self), check_positive_int(n_neighbors, "n_neighbors")
        queries = now._centred(X)
        if k > len(now):
            raise ValueError(f"n_neighbors={k} is more than the {len(now)} vectors in the index; ask for fewer")
        distances, ids = now._nearest(queries, k)
        return (distances, ids) if return_distance else ids

    def radius_neighbors(self, X: Any, radius: float, return_distance: bool = True) -> Any:
        """Find all vectors whose estimated distance to a query is at most a radius.

        Parameters
        ----------
        X : array-like of float, shape (q, n_features)
            Queries.
        radius : float
            Largest distance, >= 0.
        return_distance : bool, default=True
            Whether to return distances as well as ids.

        Returns
        -------
        distances, ids : object arrays of shape (q,)
            One array for each query, ordered as in `kneighbors`. Without `return_distance`, only `ids` is returned.
        """
        now, radius = present(self), check_radius(radius)
        queries = now._centred(X)
        near = within_radius(lambda some, k: now._nearest(queries[some], k), len(queries), len(now), radius)
        distances, ids = map(ragged, near)
        return (distances, ids) if return_distance else ids

    @property
    def ids(self) -> Ids:
        """Ids of all vectors, int64 (n,)."""
        check_fitted(self, "signs_")
        return self._rows.ids()[~self._rows.dead]

    @property
    def n_bits(self) -> int:
        """Number of bits of a row of the index, including the two numbers of 4 bytes in the row."""
        check_fitted(self, "signs_")
        return 8 * self._rows.width

    def __len__(self) -> int:
        return len(self._rows) if hasattr(self, "_rows") else 0

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_lock", None)
        rows = state.pop("_rows", None)
        if rows is not None:
            self._check_fitted()
            alive = np.flatnonzero(~rows.dead)
            state |= {"codes_": rows.take(alive), "ids_": rows.ids()[alive], "next_id_": rows.next_id}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        codes, ids, next_id = (state.pop(name, None) for name in ("codes_", "ids_", "next_id_"))
        super().__setstate__(state)
        if codes is not None:
            width = self._width
            self._rows = Rows(width)
            ids = check_ids(ids, len(codes))
            self._rows.append(check_codes(codes, "codes of a VectorIndex", 8 * width), ids)
            self._rows.next_id = max(self._rows.next_id, int(next_id))
            self._check_rows()

    # ---- used by searches of objects
    def emptied(self, X: Any) -> Self:
        """Learn the mean of the vectors `X` and draw a rotation, as `fit` does, but add no vectors."""
        check_choice(self.bits, "bits", _BITS)
        random = generator(self.random_state)
        if isinstance(X, Source):
            check_readable(X)
            one = X.example() if isinstance(X, Distributed) else X.take([0])
            check_columns(self, one, reset=True)
            self.n_features_in_ = check_vectors(one).shape[1]
        else:
            check_columns(self, X, reset=True)
            X = check_vectors(X)
            self.n_features_in_ = X.shape[1]
        self.exponent_ = 0
        if not self.normalize:
            self.exponent_ = int(np.frexp(max(each_block(X, _BLOCK, _largest, self.n_features_in_)))[1])
        total, n = np.zeros(self.n_features_in_), 0
        for n_more, more in each_block(X, _BLOCK, _summed, self.n_features_in_, self.normalize, self.exponent_):
            total += more
            n += n_more
        self.center_ = total / n
        shape = (4, _length(self.n_features_in_, self.bits))
        self.signs_ = random.integers(0, 2, shape, dtype=np.int8) * np.int8(2) - np.int8(1)
        self._rows = Rows(self._width)
        return self

    def unfilled(self) -> Self:
        """Return a copy of this fitted index without its vectors; the copy keeps the mean and the rotation."""
        self._check_fitted()
        return self.holding(Rows(self._width))

    def encode(self, X: Any) -> Codes:
        """Return the codes of vectors as the index stores them: uint8, one row per vector; `X` may be a `Source`."""
        from similia.search import _vector_index as loops

        self._check_fitted()
        if isinstance(X, Source):
            return np.concatenate([*each_block(X, _BLOCK, _encoded, self.unfilled())])
        X = self._checked(X)
        codes = np.empty((len(X), self._width), np.uint8)
        step = rows_per_block(24 * X.shape[1], at_most=_BLOCK)
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            codes[block], norms = loops.encode(self._scaled(X[block]), self.center_, self.signs_, self.bits)
            if not (norms < _FARTHEST).all():
                i = start + int(np.argmax(~(norms < _FARTHEST)))
                remedy = "drop that vector, or fit again with it"
                raise BadValue(i, "is 1e15 times as far from the mean as the vectors of fit", "one nearer", remedy)
        return codes

    def reconstruct(self, ids: Any) -> Codes:
        """Return the stored codes of the vectors with the given ids, as `encode` returns them."""
        rows = self._found(check_ids(ids), "looked up")
        return self._rows.take(rows)

    def holding(self, rows: Rows) -> Self:
        """Return a copy of this index that holds `rows`: codes, as `encode` returns them, and their ids."""
        twin = twin_of(self)
        twin._rows = rows
        twin._check_rows()
        return twin

    # ---- private
    @property
    def _width(self) -> int:
        from similia.search._vector_index import FACTORS

        return int(self.signs_.shape[1]) * self.bits // 8 + FACTORS

    def _check_rows(self) -> None:
        from similia.search._vector_index import finite_factors

        if self._rows.width != self._width or not all(finite_factors(part.codes) for part in self._rows.parts()):
            raise ValueError("a VectorIndex holds codes that do not fit it: they are damaged; restore them from a copy")

    def _check_fitted(self) -> None:
        from similia.search._vector_index import FACTORS

        check_fitted(self, "signs_")
        if self._rows.width != self._width:
            bits = 8 * (self._rows.width - FACTORS) // self.signs_.shape[1]
            raise BadParameter("bits", f"{bits}, as in fit", short(self.bits), "fit again")

    def _checked(self, X: Any) -> npt.NDArray[np.floating]:
        self._check_fitted()
        if is_lazy(X) or isinstance(X, Source):
            kind = "Dask collection" if is_lazy(X) else "Source"
            raise BadType(None, f"is a {kind}", "vectors in memory", "ask for a block of it at a time")
        check_columns(self, X, reset=False)
        return check_vectors(X, n_features=self.n_features_in_, by=self)

    def _scaled(self, X: npt.NDArray[np.floating]) -> Floats:
        return _scaled(X, self.normalize, self.exponent_)

    def _centred(self, X: Any) -> npt.NDArray[np.floating]:
        X = self._checked(X)
        if not len(self):
            raise ValueError("the index is empty; call add first")
        return X

    def _append(self, codes: Codes, ids: Any) -> Self:
        ids = count_on(self._rows.next_id, len(codes)) if ids is None else check_ids(ids, len(codes))
        known = self._rows.find(ids) >= 0
        if known.any():
            raise ValueError(f"id {ids[np.argmax(known)]} is in the index already; remove it first")
        self._rows = self._rows.copy()
        self._rows.append(codes, ids)
        return self

    def _found(self, ids: Ids, verb: str) -> Ids:
        check_fitted(self, "signs_")
        rows = self._rows.find(ids)
        if (rows < 0).any():
            raise ValueError(f"id {ids[np.argmax(rows < 0)]} is not in the index, so it cannot be {verb}")
        return rows

    def _nearest(self, X: npt.NDArray[np.floating], k: int) -> tuple[Floats, Ids]:
        """Return the estimated distances and the ids of the `k` nearest rows of each query, both (q, k)."""
        distances, ids = np.empty((len(X), k)), np.empty((len(X), k), np.int64)
        ranges = self._rows.n_rows // _GRAIN + 1
        step = rows_per_block(32 * k * ranges + 24 * X.shape[1], at_most=_BLOCK)
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            distances[block], ids[block] = self._nearest_of(X[block], k)
        return distances, ids

    def _nearest_of(self, X: npt.NDArray[np.floating], k: int) -> tuple[Floats, Ids]:
        from similia.search import _vector_index as loops

        queries = loops.encode_queries(self._scaled(X), self.center_, self.signs_, self.bits)
        if not (queries[-1] < _FARTHEST**2).all():
            i = int(np.argmax(~(queries[-1] < _FARTHEST**2)))
            raise BadValue(i, "is 1e15 times as far from the mean as the vectors of fit", "one nearer", "drop it")
        found: dict[int, tuple[Floats, Ids]] = {}
        bounds = np.full(len(X), np.inf)  # shared by threads: the k-th best of any range bounds the result

        def scan(start: int, stop: int) -> None:
            distances, ids = np.full((len(X), k), np.inf), np.full((len(X), k), _LAST)
            first = 0
            for part in self._rows.parts():
                some = slice(max(0, start - first), max(0, stop - first))
                first += len(part.ids)
                arrays = part.codes[some], part.codes[some].view(np.float32), part.ids[some], part.dead[some]
                for one in arrays:  # views, so that memory maps and arrays have the same compiled type
                    one.flags.writeable = False
                loops.scan(*arrays, self.bits, queries, bounds, distances, ids)
            sort_heaps(distances, ids)
            found[start] = distances, ids

        grain = max(_GRAIN, _BYTES_OF_A_THREAD // (self._rows.width * len(X)))
        run_in_ranges(scan, self._rows.n_rows, grain)
        distances, ids = found[0] if len(found) == 1 else best(list(found.values()), k)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(distances, self.exponent_), ids


# ---- what is learnt from blocks of vectors, here or by workers
def _scaled(X: npt.NDArray[np.floating], normalize: bool, exponent: int) -> Floats:
    """Return vectors in float64 at length 1 or, unless `normalize`, divided by ``2.0**exponent``."""
    from similia.search._vector_index import unit_rows

    Y = np.array(X, np.float64)
    if normalize:
        unit_rows(Y, Y)
        return Y
    with np.errstate(over="ignore", under="ignore"):  # infinite norms are refused
        return np.asarray(np.ldexp(Y, -exponent))


def _checked_block(X: Any, start: int, width: int) -> npt.NDArray[np.floating]:
    with part_from(start):
        X = check_vectors(X)
        if X.shape[1] != width:
            raise BadValue(0, f"has {X.shape[1]} numbers", f"{width}, as the first")
        return X


def _largest(X: Any, start: int, width: int) -> float:
    """Return the largest magnitude of a number."""
    return float(np.abs(_checked_block(X, start, width)).max())


def _summed(X: Any, start: int, width: int, normalize: bool, exponent: int) -> tuple[int, Floats]:
    """Return the number of vectors and their sum, scaled."""
    Y = _scaled(_checked_block(X, start, width), normalize, exponent)
    return len(Y), Y.sum(axis=0)


def _encoded(X: Any, start: int, index: VectorIndex) -> Codes:
    with part_from(start):
        return index.encode(X)


def _length(n_features: int, bits: int) -> int:
    """Return the number of coordinates of the rotation: whole words of 64 bits."""
    return -(-n_features * bits // 64) * 64 // bits
