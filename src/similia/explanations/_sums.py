r"""Sums of kernel values f(x) = sum_i a_i k(x, y_i), such as those of kernel machines, split by the features of x.

The counts or magnitudes of feature f in x and y_i are f(x) and f(y_i).

=====================  ========================================================================================
kernel                 part of feature f
=====================  ========================================================================================
with features          w_f f(x) sum_i a_i f(y_i), a_i divided by the norms if normalised
`Intersection`         sum_i a_i min(f(x), f(y_i)), a_i divided by the norms if normalised
`MinMax`               sum_i a_i min(f(x), f(y_i)) / D_i, where D_i = sum_g max(g(x), g(y_i)) is one number for y_i
`Sum`, `Normalized`    those of the kernels inside; a_i is multiplied by the weight, or divided by the norms
other kernels          none: a part is a_i k(x, y_i), that of object y_i
=====================  ========================================================================================

Cost: that of counting the features of all y_i, then linear in the number of their features that x has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.explanations._explanation import NOWHERE, Described, Floats, Found, joined, listed, under
from similia.explanations._features import (
    Occurrences,
    blocks_of,
    counts_of,
    is_among,
    linear_parts,
    lookup,
    of_strings,
    summed,
    totals,
)
from similia.explanations._graph_features import is_directed as graph_is_directed
from similia.explanations._graph_features import of_graphs, of_molecules
from similia.explanations._views import described
from similia.kernels.combine import Normalized, Sum
from similia.kernels.counts import Counts
from similia.kernels.features import FeatureKernel
from similia.kernels.graphs import GraphKernel
from similia.kernels.minmax import Intersection, MinMax
from similia.kernels.molecules import Morgan
from similia.kernels.strings import StringKernel
from similia.objects import GraphBatch, take
from similia.similarity import as_objects, evaluate, name_of

Naming = dict[int, str]  # names of node labels
_OF_NO_FEATURE = ("n_iter", "normalize", "radius")  # kernels that differ in these only may have features in common


def feature_occurrences(kernel: FeatureKernel, objects: Any, naming: Naming, directed: bool = False) -> Occurrences:
    """Return the features of the single object in `objects`; those of a user's kernel get no places."""
    found = None
    if isinstance(kernel, StringKernel):
        found = of_strings(kernel, objects)
    elif isinstance(kernel, GraphKernel):
        found = of_graphs(kernel, objects, naming, directed)
    elif isinstance(kernel, Morgan):
        found = of_molecules(kernel, objects)
    if found is None:
        counts = kernel._counts(objects)
        found = Occurrences.without_places(counts, lambda o: f"feature {counts.ids[o]:016x}", 0)
    others = {name: value for name, value in kernel.get_params(deep=False).items() if name not in _OF_NO_FEATURE}
    return replace(found, groups=under(found.keys, f"{type(kernel)} {others}"))


def is_directed(*batches: Any) -> bool:
    """Return whether any batch holds a directed graph; False for objects that are not graphs."""
    return any(isinstance(batch, GraphBatch) and graph_is_directed(batch) for batch in batches)


def prefix_of(kernel: Any) -> str:
    """Return the text that precedes the name of each part of this kernel in a composite kernel."""
    return f"{name_of(kernel)}: "


def sum_parts(
    kernel: Any, X: Any, Y: Any, alpha: Floats, naming: Naming, what: str, numbers: npt.NDArray[np.int64]
) -> Found:
    """Split sum_i alpha_i k(x, Y[i]), x in `X`, into parts: one per feature or, without features, one per object of Y.

    A part names its object by `what` and ``numbers[i]``, such as "landmark 7".
    """
    if len(numbers) == 0:
        return listed([], 0, 0)
    return _split(kernel, X, Y, alpha, naming, lambda i: f"{what} {described(take(Y, [i]), int(numbers[i]))}")


def _split(kernel: Any, X: Any, Y: Any, alpha: Floats, naming: Naming, called: Callable[[int], str]) -> Found:
    """Return the parts of sum_i alpha_i k(x, Y[i]); ``called(i)`` names object i."""
    X, Y = as_objects(kernel, X), as_objects(kernel, Y)
    if not _has_features(kernel):
        values = np.asarray(evaluate(kernel, X, Y), dtype=np.float64)[0]

        def describe(i: int) -> Described:
            return f"{values[i]:.3g} like {called(i)}", NOWHERE, NOWHERE

        return Found(alpha * values, describe)
    if isinstance(kernel, Sum):
        parts = zip(kernel._parts(), kernel._weights(), strict=True)
        return joined([_split(k, X, Y, w * alpha, naming, called).times(1.0, prefix_of(k)) for k, w in parts])
    if isinstance(kernel, Normalized):
        products = kernel._squared_norms(X, "x")[0] * kernel._squared_norms(Y, "Y")
        return _split(kernel.kernel, X, Y, _by_roots(alpha, products), naming, called)
    if isinstance(kernel, Intersection | MinMax):
        shared = minima(kernel, X, Y, alpha, naming, is_directed(X))
        return joined([linear_parts(x, coefficients).times(1.0, prefix) for prefix, x, coefficients in shared])
    counts, weights = counts_of(kernel, Y)
    if kernel.normalize:
        alpha = _by_roots(alpha, counts_of(kernel, X)[0].squared_norms[0] * counts.squared_norms)
    x = feature_occurrences(kernel, X, naming, is_directed(X))
    each = np.repeat(alpha, np.diff(counts.offsets))
    return linear_parts(x, lookup(x.ids, *summed(counts.ids, counts.values * weights * each)))


def _has_features(kernel: Any) -> bool:
    """Return whether sums of values of this kernel split by features, those of a sum of kernels at least in part."""
    if isinstance(kernel, Sum):
        return any(map(_has_features, kernel._parts()))
    if isinstance(kernel, Normalized):
        return _has_features(kernel.kernel)
    return isinstance(kernel, FeatureKernel | MinMax)


def _by_roots(alpha: Floats, squares: Floats) -> Floats:
    """Return `alpha` divided by the roots of `squares`; 0 where these are 0, as then the object has no features."""
    return np.divide(alpha, np.sqrt(squares), out=np.zeros_like(alpha), where=squares > 0)


def minima(
    kernel: Intersection | MinMax, X: Any, Y: Any, alpha: Floats, naming: Naming, directed: bool
) -> list[tuple[str, Occurrences, Floats]]:
    """Return (prefix of names, features of x, their coefficients) for each kernel whose features `kernel` compares.

    The sum over all occurrences o of values[o] coefficients[o] is sum_i alpha_i k(x, Y[i]).
    """
    kernel._check_alike(X, Y)
    magnitudes, met = _magnitudes(kernel, X, Y, naming, directed), []
    n, size = len(alpha), 0.0
    shared, sizes = np.zeros(n), np.zeros(n)
    for _, x, counts in magnitudes:
        ids, sums = summed(x.ids, x.values)
        owners = np.repeat(np.arange(n), np.diff(counts.offsets))
        both = np.flatnonzero(is_among(counts.ids, ids))
        low = np.minimum(counts.values[both], lookup(counts.ids[both], ids, sums))
        met.append((counts.ids[both], owners[both], low))
        shared += totals(owners[both], low, n)
        sizes += totals(owners, counts.values, n)
        size += float(sums.sum())
    values = kernel._scaled(shared[None].copy(), np.array([size]), sizes)[0]
    share = alpha * values / np.where(shared > 0, shared, 1.0)
    found = []
    for (prefix, x, _), (ids, owners, low) in zip(magnitudes, met, strict=True):
        own = lookup(x.ids, *summed(x.ids, x.values))
        found.append((prefix, x, lookup(x.ids, *summed(ids, low * share[owners])) / np.where(own > 0, own, 1.0)))
    return found


def _magnitudes(
    kernel: Intersection | MinMax, X: Any, Y: Any, naming: Naming, directed: bool
) -> list[tuple[str, Occurrences, Counts]]:
    """Return (prefix, features of x, features of `Y`) of the kernels whose features `kernel` compares by minima."""
    blocks = blocks_of(kernel.kernel)
    if blocks is None or any(block.least and block.normed for block, _ in blocks):
        counts, name = kernel.counted(X), "column {}" if kernel.kernel is None else "feature {:016x}"
        x = Occurrences.without_places(counts, lambda o: name.format(int(counts.ids[o])), 0)
        x = replace(x, groups=under(x.keys, f"{id(kernel.kernel)}"))
        return [("", x, kernel.counted(Y))]
    found = []
    for block, _ in blocks:
        X_, Y_ = block.as_objects(X), block.as_objects(Y)
        x = feature_occurrences(block.kernel, X_, naming, directed)
        (known, own), (counts, weights) = counts_of(block.kernel, X_), counts_of(block.kernel, Y_)
        of_x = block.scale(X_)[0] * block.factor * np.sqrt(block.weight * lookup(x.ids, known.ids, own))
        of_y = np.repeat(block.scale(Y_) * block.factor, np.diff(counts.offsets)) * np.sqrt(block.weight * weights)
        counts = Counts(counts.offsets, counts.ids, counts.values * of_y)
        found.append((block.prefix, replace(x, values=x.values * of_x), counts))
    return found
