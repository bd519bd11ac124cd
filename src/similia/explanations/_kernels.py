r"""Pairs under kernels: sums over shared features, and kernels made of kernels through their parts.

=====================  ========================================================================================
kernel                 parts
=====================  ========================================================================================
with features          w_f c_f(x) c_f(y) for each feature f that both have, over the norms if normalised
`Sum`                  those of the summands, times their weights
`Normalized`           those of the kernel, over sqrt(k(x, x) k(y, y))
`Product` of p         k = (1/p) sum_i k_i prod_{j != i} k_j: those of each factor, times 1/p of the other factors
`FromDistance`         exp(-gamma d(x, w)) exp(-gamma d(y, w)) / R for each random object w
`Cosine`               products of the coordinates of the unit vectors
`DistanceRBF`          of log k = -gamma d^2, and of -d^p for `NegativeDistance`: those of the distance
`GlobalAlignment`      of log k: P(x_i and y_j are matched) log kappa(x_i, y_j); the rest is the entropy of
                       the alignments and the norms
=====================  ========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from similia.core.text import _short
from similia.explanations import _graph_features, _string_features
from similia.explanations._found import NOWHERE, Floats, Found, joined, listed
from similia.explanations._occurrences import Ids, Occurrences, counts_of, lookup, pair_parts
from similia.explanations._views import View, view_of
from similia.kernels.combine import Normalized, Product, Sum
from similia.kernels.features import FeatureKernel
from similia.kernels.from_distance import FromDistance
from similia.kernels.graphs import GraphKernel
from similia.kernels.hypersphere import Cosine, map_pair
from similia.kernels.strings import StringKernel, WeightedDegree
from similia.objects import GraphBatch, take
from similia.objects.batches import Batch
from similia.objects.tables import is_frame
from similia.similarity import as_objects, decided, evaluate, name_of

WHAT = (
    "what can be explained are kernels with features (of strings: Spectrum, GappyKmers, Mismatch, WeightedDegree; of "
    "graphs: WeisfeilerLehman, ShortestPath, Propagation, Graphlet, VertexHistogram, EdgeHistogram), Cosine, "
    "GlobalAlignment, FromDistance, DistanceRBF, NegativeDistance, Sum, Product and Normalized; edit, elastic and set "
    "distances; and fitted linear models"
)


@dataclass(frozen=True)
class Naming:
    """How labels of nodes are called."""

    label_names: dict[int, str]


class NoParts(TypeError):
    """What is to be explained has no parts."""


def one(kernel: Any, x: Any, which: str) -> Any:
    """Return a collection of the one object `x` in the layout of a kernel or distance, or raise; `which` names it."""
    if isinstance(x, Batch) and len(x) != 1:
        raise ValueError(f"{which} is a batch of {len(x)} objects, expected one object; write {which}[0]")
    items: Any = x if isinstance(x, Batch) or (is_frame(x) and x.shape[0] == 1) else [x]
    try:
        return as_objects(kernel, items)
    except (TypeError, ValueError) as error:
        said = str(error).replace("X[0]", which).replace("graph 0", which)
        raise type(error)(f"{which} is no object that {name_of(kernel)} compares ({_short(x)}): {said}") from None


def feature_occurrences(kernel: FeatureKernel, objects: Any, naming: Naming, directed: bool = False) -> Occurrences:
    """Return the features of the one object of a collection; without names for a kernel that is not known here."""
    found = None
    if isinstance(kernel, StringKernel):
        found = _string_features.occurrences(kernel, objects)
    elif isinstance(kernel, GraphKernel):
        found = _graph_features.occurrences(kernel, objects, naming.label_names, directed)
    if found is None:
        counts = kernel._counts(objects)
        found = Occurrences.without_places(counts, lambda o: f"feature {counts.ids[o]:016x}", 0)
    return found


def is_directed(*batches: Any) -> bool:
    """Return whether any of the graphs is directed; False for other objects."""
    return any(isinstance(batch, GraphBatch) and _graph_features.is_directed(batch) for batch in batches)


def value_of(kernel: Any, X: Any, Y: Any) -> float:
    """Return k(x, y) as the kernel computes it."""
    return float(evaluate(kernel, X, Y)[0, 0])


def pair(kernel: Any, X: Any, Y: Any, naming: Naming) -> tuple[float, str, Found, str]:
    """Return (value, kind, parts, note) of the kernel of the first objects of two collections."""
    from similia.explanations import _series
    from similia.kernels.series import GlobalAlignment
    from similia.kernels.substitution import DistanceRBF, NegativeDistance

    if isinstance(kernel, DistanceRBF | NegativeDistance):
        return _substituted(kernel, X, Y)
    if isinstance(kernel, GlobalAlignment):
        return _series.global_alignment(kernel, X, Y)
    found = similarity(kernel, X, Y, naming)
    note = "a factor's parts are weighted by the other factors, and halves, thirds, ... of the value given to each"
    return value_of(kernel, X, Y), "similarity", found, note if isinstance(kernel, Product) else ""


def similarity(kernel: Any, X: Any, Y: Any, naming: Naming) -> Found:
    """Return the parts of k(x, y), or raise `NoParts`."""
    X, Y = as_objects(kernel, X), as_objects(kernel, Y)
    if isinstance(kernel, FeatureKernel):
        return _counted(kernel, X, Y, naming)
    if isinstance(kernel, Sum):
        weights = kernel._weights()
        return joined(
            [_part(k, X, Y, naming).times(w, _prefix(k)) for k, w in zip(kernel._parts(), weights, strict=True)]
        )
    if isinstance(kernel, Normalized):
        norms = np.sqrt(kernel._squared_norms(X, "x")[0] * kernel._squared_norms(Y, "y")[0])
        return similarity(kernel.kernel, X, Y, naming).times(1 / norms if norms > 0 else 0.0)
    if isinstance(kernel, Product):
        factors = kernel._parts()
        values = [value_of(k, as_objects(k, X), as_objects(k, Y)) for k in factors]
        others = [float(np.prod(values[:i] + values[i + 1 :])) / len(factors) for i in range(len(factors))]
        return joined([_part(k, X, Y, naming).times(w, _prefix(k)) for k, w in zip(factors, others, strict=True)])
    if isinstance(kernel, FromDistance):
        return _random_objects(kernel, X, Y)
    if isinstance(kernel, Cosine):
        kernel = decided(kernel, Y)
        a, b = (
            rows.toarray() if hasattr(rows, "toarray") else rows
            for rows in map_pair(X, Y, kernel.mapping, kernel.zero_rows)
        )
        products = (np.asarray(a, dtype=np.float64) * np.asarray(b, dtype=np.float64))[0]
        return Found(products, lambda k: (f"column {k}", NOWHERE, NOWHERE))
    raise NoParts(f"{name_of(kernel)} has no parts to name; {WHAT}")


def _part(kernel: Any, X: Any, Y: Any, naming: Naming) -> Found:
    """Return the parts of a part of a composite, itself as its only part if it has none."""
    try:
        return similarity(kernel, X, Y, naming)
    except NoParts:
        value = value_of(kernel, as_objects(kernel, X), as_objects(kernel, Y))
        return listed([("as a whole", value, (), ())], *(view_of(batch).n_places for batch in (X, Y)))


def _prefix(kernel: Any) -> str:
    return f"{name_of(kernel)}: "


def _counted(kernel: FeatureKernel, X: Any, Y: Any, naming: Naming) -> Found:
    kernel._check_alike(X, Y)
    (a, a_weights), (b, b_weights) = counts_of(kernel, X), counts_of(kernel, Y)
    scale = 1.0
    if kernel.normalize:
        norms = float(np.sqrt(a.squared_norms()[0] * b.squared_norms()[0]))
        scale = 1 / norms if norms > 0 else 0.0
    if isinstance(kernel, WeightedDegree):
        return _string_features.shared_runs(kernel, X, Y).times(scale)
    directed = is_directed(X, Y)
    x, y = (feature_occurrences(kernel, side, naming, directed) for side in (X, Y))

    def weights(ids: Ids) -> Floats:
        return np.where(np.isin(ids, a.ids), lookup(ids, a.ids, a_weights), lookup(ids, b.ids, b_weights))

    return pair_parts(x, y, weights).times(scale)


def _random_objects(kernel: FromDistance, X: Any, Y: Any) -> Found:
    from similia.explanations._views import described

    products = kernel._features(X)[0] * kernel._features(Y)[0]
    objects = kernel._random_objects(X)
    return Found(products, lambda k: (f"both near {described(take(objects, [k]), k)}", NOWHERE, NOWHERE))


def _substituted(kernel: Any, X: Any, Y: Any) -> tuple[float, str, Found, str]:
    """Return the parts of the logarithm of exp(-gamma d^2), or of -d^p."""
    from similia.explanations import _distances
    from similia.kernels.substitution import DistanceRBF

    value = value_of(kernel, X, Y)
    d, scale, found, note = _distances.pair(kernel.distance, X, Y)
    # The parts add up to d^scale; d^2 = d^scale d^(2 - scale).
    rbf = isinstance(kernel, DistanceRBF)
    if not rbf and kernel.origin is not None:
        raise NoParts(
            "NegativeDistance with an origin adds three distances; explain(kernel.distance, x, y) explains one of them"
        )
    power, factor = (2.0, -float(kernel.gamma)) if rbf else (float(kernel.power), -1.0)
    rest = d ** (power - scale) if d > 0 else 0.0
    if rbf:
        said = f"the parts add up to log k = -gamma d^2, where k = {value:.6g} and d = {d:.6g}"
        return float(-kernel.gamma * d**2), "log similarity", found.times(factor * rest), _both(said, note)
    return value, "similarity", found.times(factor * rest), _both(f"the parts are those of d = {d:.6g}", note)


def _both(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def view_pair(X: Any, Y: Any, naming: Naming) -> tuple[View, View]:
    """Return how two objects are shown."""
    return view_of(X, naming.label_names), view_of(Y, naming.label_names)
