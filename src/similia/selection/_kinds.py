"""What kind of objects a collection holds, and the collection in the layout of that kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from similia.core.text import _short
from similia.core.validation import check_vectors
from similia.objects import (
    GraphBatch,
    SeriesBatch,
    SetBatch,
    StringBatch,
    as_graphs,
    as_series,
    as_strings,
    n_objects,
    take,
)
from similia.objects.sequences import at_least_one
from similia.objects.tables import is_frame, objects_in, to_array
from similia.similarity import Distance, Kernel, name_of
from similia.sources.lazily import refuse_lazy

_LOOKED_AT = 8  # objects, to see that a kernel is none
_BATCHES = {StringBatch: "strings", GraphBatch: "graphs", SeriesBatch: "series", SetBatch: "sets"}


def own_similarities(similarity: Any) -> tuple[Kernel | Distance, ...]:
    """Return the kernels and distances that a user gave, checked."""
    given = [] if similarity is None else similarity if isinstance(similarity, list | tuple) else [similarity]
    for i, compare in enumerate(given):
        if not isinstance(compare, Kernel | Distance):
            found = getattr(compare, "__name__", None) or _short(compare)
            raise TypeError(
                f"similarity[{i}] is {found}, expected a kernel or a distance of similia; a function f(x, y) -> float "
                "of two objects is made one by similia.distances.FromFunction(f)"
            )
    return tuple(given)


def check_similarities(own: tuple[Kernel | Distance, ...], X: Any) -> None:
    """Raise if what was given as a kernel is a distance, on the first objects."""
    some = take(X, np.arange(min(_LOOKED_AT, n_objects(X))))
    for i, compare in enumerate(own):
        if isinstance(compare, Kernel):
            K = np.asarray(compare(some, some))
            if not np.diag(K).any() and (K >= 0).all() and K.any():
                raise ValueError(
                    f"similarity[{i}], {name_of(compare)}, is 0 for an object with itself and more for others: it is a "
                    "distance; give similia.distances.FromFunction(f) instead of similia.pairwise(f)"
                )


def recognised(X: Any, *, any_kind: bool = False) -> tuple[str, Any]:
    """Return ("strings" | "graphs" | "series" | "sets" | "vectors", the objects as a batch, array or CSR matrix).

    With `any_kind`, objects of no known kind, or of more than one, are ("objects", as given).

    Raises
    ------
    TypeError, ValueError
        If objects are of no known kind, or could be of two: arrays of two axes are series or point sets.
    """
    refuse_lazy(X, "select works in memory; draw some thousand objects first: similia.objects.take(X, indices)")
    X = objects_in(X)
    at_least_one(X)
    if type(X) in _BATCHES:
        return _BATCHES[type(X)], X
    if sp.issparse(X):
        return "vectors", sp.csr_array(X)
    if is_frame(X):
        return "vectors", check_vectors(to_array(X))
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        return "vectors", check_vectors(X)
    first = _first(X)
    if isinstance(first, str | bytes):
        return "strings", as_strings(X)
    if isinstance(X, np.ndarray) and X.dtype != object:
        return "series", as_series(X)  # of three axes: which is time is asked there
    if isinstance(first, list | tuple | np.ndarray) and np.asarray(first).dtype.kind in "biuf":
        ndim = np.asarray(first).ndim
        return ("objects", X) if any_kind and ndim > 1 else _of_numbers(X, ndim)
    if any(hasattr(first, name) for name in ("nodes", "edge_index", "vs")) or isinstance(first, dict):
        return "graphs", as_graphs(X)
    for kind, convert in (("graphs", as_graphs), ("strings", as_strings), ("series", as_series)):
        try:
            return kind, convert(X)
        except (TypeError, ValueError):
            continue
    if any_kind:
        return "objects", X
    raise TypeError(
        f"cannot tell what kind of object X[0] is: found {_short(first)}, expected a string, a graph, a series, a "
        "set of points or a vector; convert them by similia.objects.as_strings, as_graphs, as_series or as_sets, or "
        "give your own similarity"
    )


def _of_numbers(X: Any, ndim: int) -> tuple[str, Any]:
    """Return objects given as lists or arrays of numbers."""
    if ndim == 1:
        rows = [np.asarray(row) for row in X]
        if all(isinstance(row, list | tuple) for row in X) and len({len(row) for row in rows}) == 1:
            return "vectors", check_vectors(np.asarray(rows, dtype=np.float64))
        return "series", as_series(rows)
    raise ValueError(
        f"X holds arrays of {ndim} axes, which may be series or point sets; "
        "say which: similia.objects.as_series(X) or similia.objects.as_sets(X)"
    )


def _first(X: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[0]
    found: Any = X[0]
    return found.as_py() if hasattr(found, "as_py") else found
