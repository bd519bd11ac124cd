"""The kernel or distance that reranks candidates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block
from similia.core.hashing import digest_of
from similia.core.text import short
from similia.core.validation import pairs_named
from similia.objects import take
from similia.pipelines import Comparison, each_step, parts_of
from similia.similarity import (
    Distance,
    Kernel,
    diagonal,
    plain_parameters,
    refuse_class,
    spelled_out,
    without_addresses,
)
from similia.sources.dask import Distributed

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]
_WITHIN = 64  # neighbours that `within_radius` asks for at first


class Metric(Comparison):
    """A kernel or distance, with methods that compare all pairs of objects, or each query with its own candidates."""

    @property
    def symmetric(self) -> bool:
        """Whether d(x, y) = d(y, x), so that one evaluation serves both objects."""
        facts = getattr(self.function, "facts", None)
        known = self.is_kernel or (facts is not None and facts.symmetric)
        return bool(known and getattr(self.function, "symmetric", True))

    def norms(self, X: Any) -> Floats | None:
        """Return k(x, x) for each object x of `X` if this is a kernel k, or None if it is a distance."""
        if not self.is_kernel:
            return None
        return np.concatenate([*X.map(_norms, self)]) if isinstance(X, Distributed) else diagonal(self.function, X)

    def distances(self, X: Any, Y: Any, norms: Floats | None = None) -> Floats:
        """Return the distances between the objects of `X` and `Y`, shape (n, m); `norms` is ``norms(Y)``, if known."""
        if isinstance(Y, Distributed):
            return np.concatenate([*Y.map(_distances_from, self, X)], axis=1)
        values = self.between(X, Y)
        if not self.is_kernel:
            return values
        norms = diagonal(self.function, Y) if norms is None else norms
        return feature_distances(values, diagonal(self.function, X)[:, None], norms)

    def of_candidates(self, X: Any, Y: Any, candidates: Index, kept: dict[str, Any] | None = None) -> Floats:
        """Return kernel values or distances between each ``X[i]`` and the objects ``Y[candidates[i]]``, shape (n, c).

        `kept` is what the method `kept` returned for `Y`.
        """
        values = np.empty(candidates.shape)
        if not hasattr(self.function, "paired"):
            for i, row in enumerate(candidates):
                with pairs_named([i], row, "X[{}] and object {}"):
                    values[i] = self.between(take(X, [i]), take(Y, row))[0]
            return values
        step = rows_per_block(512 * candidates.shape[1])
        for start in range(0, len(candidates), step):
            block = candidates[start : start + step]
            rows = np.repeat(np.arange(start, start + len(block)), block.shape[1])
            found = self.function.paired(X, Y, rows, block.ravel(), **(kept or {}))
            values[start : start + step] = found.reshape(block.shape)
        return values

    def pairs(self, X: Any, rows: Index, columns: Index, kept: dict[str, Any]) -> Floats:
        """Return kernel values or distances of the pairs ``X[rows[k]], X[columns[k]]``; `rows` must be ascending."""
        if hasattr(self.function, "paired"):
            values = self.function.paired(X, X, rows, columns, **kept)
            return np.asarray(values, np.float64)
        found = np.empty(len(rows))
        for start, stop in pairwise(np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist()):
            one, others = rows[start : start + 1], columns[start:stop]
            if sp.issparse(X) and self.is_kernel:  # the second collection decides the order of sums: always one object
                one, others = others, one
            with pairs_named(one, others, "X[{}] and X[{}]"):
                found[start:stop] = self.between(take(X, one), take(X, others)).ravel()
        return found

    def kept(self, Y: Any) -> dict[str, Any]:
        """Return what `of_candidates` can reuse for the same `Y`: feature counts if the kernel has them, else {}."""
        return {"counts": self.function.counted(Y)} if getattr(self.function, "reuses_counts", False) else {}


def _norms(part: Any, start: int, metric: Metric) -> Floats | None:
    return metric.norms(part)


def _distances_from(part: Any, start: int, metric: Metric, X: Any) -> Floats:
    return metric.distances(X, part)


def parameters_of(function: Any) -> Any:
    """Return a value that is equal (``==``) for two kernels or distances only if their parameters are equal."""
    plain = plain_parameters(function)
    return digest_of(function) if plain is None else (type(function), plain)


def feature_distances(values: Any, left: Any, right: Any) -> Any:
    """Return distances in a kernel's feature space, given `values` k(x, y), `left` k(x, x) and `right` k(y, y)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = left + right - 2 * values
    finite = np.isfinite(squares)
    if not finite.all():  # values above 9e307, whose sums overflow
        squares = np.where(finite, squares, (left - values) + (right - values))
    return np.sqrt(np.maximum(squares, 0.0))


def function_of(encoder: Any) -> tuple[Any, bool]:
    """Return (kernel or distance of an encoder's first step, whether it is a kernel); if absent, (None, False)."""
    found = next(parts_of(encoder).comparisons(fitted=False))
    return (None, False) if found is None else (found.function, found.is_kernel)


def metric_of(encoder: Any, name: str = "rerank") -> Metric:
    """Return the kernel or distance of an encoder's first step; if it has none, raise an error that names `name`."""
    function, is_kernel = function_of(encoder)
    if function is not None:
        return Metric(function, is_kernel)
    others = ", or take rerank='projected' or None" if name == "rerank" else ""
    first = type(next(each_step(encoder))).__name__
    raise ValueError(
        f"the encoder's first step {first} has no kernel or distance to compare objects by; name one: "
        f"for strings {name}=similia.distances.Levenshtein(), for vectors {name}=similia.kernels.Cosine('projection') "
        f"or similia.distances.FromFunction(cdist, pairwise=True){others}"
    )


def as_metric(metric: Any, encoder: Any, name: str) -> Metric:
    """Return `metric` as a `Metric`; "kernel" stands for the kernel or distance of the encoder's first step."""
    if isinstance(metric, str) and metric == "kernel":
        return metric_of(encoder, name)
    return metric_from(metric, name, "None, 'projected', 'kernel', or " if name == "rerank" else "'kernel', or ")


def metric_from(function: Any, name: str, words: str = "") -> Metric:
    """Return a similia kernel or distance as a `Metric`; errors call it `name` and list other values, `words`."""
    if isinstance(function, Distance):
        return Metric(function, False)
    if isinstance(function, Kernel):
        return Metric(function, True)
    if callable(function) and not isinstance(function, type):
        raise ValueError(
            f"{name} is {without_addresses(function)}, which may be a kernel or a distance; wrap a function of two "
            "objects in similia.pairwise(f) if it is large for similar objects, or in "
            "similia.distances.FromFunction(f) if it is 0 for equal ones"
        )
    refuse_class(function, name)
    hint = spelled_out(function, "kernels", "distances")
    raise ValueError(f"{name} must be {words}a kernel or distance of similia, got {short(function, 80)}{hint}")


def sorted_candidates(distances: Floats, ids: Index) -> Index:
    """Return the positions that sort each row of `distances` by distance, then by id."""
    return np.lexsort((ids, distances), axis=1)


def shares_found(distances: Floats, rows: Index) -> npt.NDArray[np.float64]:
    """Return, for each query, the share of its k answers that are no farther than its true k-th neighbour.

    `distances`, shape (q, n), compare queries with all objects; `rows`, shape (q, k), are the positions of the answers.
    """
    k = rows.shape[1]
    farthest = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    return np.asarray(np.mean(np.take_along_axis(distances, rows, axis=1) <= farthest, axis=1))


def ragged(rows: Any, ends: Any = None) -> npt.NDArray[np.object_]:
    """Return the arrays `rows` as an object array; if `ends` is given, array i is cut to ``ends[i]`` entries."""
    found = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        found[i] = row if ends is None else row[: ends[i]]
    return found


def within_radius(
    nearest: Callable[[Index, int], tuple[Any, Index]], q: int, n: int, radius: float
) -> tuple[list[Any], list[Index]]:
    """Return distances and ids of the objects within a radius of each of `q` queries, nearest first.

    ``nearest(queries, k)`` returns the distances and ids of the k nearest of `n` objects to the queries at some
    positions. More and more are asked for until the last one is too far.
    """
    distances: list[Any] = [np.empty(0)] * q
    found: list[Index] = [np.empty(0, np.int64)] * q
    left, k = np.arange(q), min(n, _WITHIN)
    while len(left):
        step, unfinished = rows_per_block(64 * k), []
        for start in range(0, len(left), step):
            some = left[start : start + step]
            for i, row, ids in zip(some.tolist(), *nearest(some, k), strict=True):
                end = int(np.searchsorted(row, radius, "right"))
                distances[i], found[i] = row[:end].copy(), ids[:end].copy()
                if end == k < n:
                    unfinished.append(i)
        left, k = np.array(unfinished, np.int64), min(n, 8 * k)
    return distances, found
