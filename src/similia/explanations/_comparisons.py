r"""Split kernels and distances of two objects, and sums of kernel values, into parts.

Composite kernels of two objects are explained by their components:

=====================  ========================================================================================
kernel                 parts
=====================  ========================================================================================
with features          w_f c_f(x) c_f(y) for each feature f that both have: weight times counts in x and in y,
                       divided by the norms if normalised
`Intersection`         min(f(x), f(y)) for each feature f that both have, divided by the norms if normalised
`MinMax`               the same, divided by the sum of the larger values of all features
`Sum`                  the parts of each summand, times its weight
`Normalized`           the parts of the kernel inside, divided by sqrt(k(x, x) k(y, y))
`Product` of p         the parts of each factor, times the other factors and 1/p, since
                       k = (1/p) sum_i k_i prod_{j != i} k_j
`MeanMap`              k(u, v) / (m n) for each pair of points, k the ground kernel
`FromDistance`         exp(-gamma d(x, w)) exp(-gamma d(y, w)) / R for each of the R random objects w
`Cosine`               products of the coordinates of the unit vectors
`DistanceRBF`          log k = -gamma d^2 is explained by the parts of d
`NegativeDistance`     k = -d^p is explained by the parts of d
`GlobalAlignment`      log k is explained by P(x_i and y_j are matched) log kappa(x_i, y_j), kappa the kernel of
                       time points; the residual is the entropy of the alignments and the norms
=====================  ========================================================================================

Sums of kernel values f(x) = sum_i a_i k(x, y_i), such as those of kernel machines, are split by the features of x. The
counts or magnitudes of feature f in x and y_i are f(x) and f(y_i).

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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from similia.core.text import short
from similia.core.validation import BadItem, called_by_user
from similia.distances.edit import Hamming, Levenshtein
from similia.distances.elastic import ADTW, DTW, ERP, LCSS, MSM, TWE, SoftDTW
from similia.distances.mmd import MMD
from similia.distances.sets import Chamfer, Hausdorff, ModifiedHausdorff, SlicedWasserstein, Wasserstein, comparable
from similia.explanations._explanation import NOWHERE, Described, Floats, Found, Link, NoParts, joined, listed, under
from similia.explanations._features import (
    Ids,
    Occurrences,
    blocks_of,
    counts_of,
    graphlet_name,
    is_among,
    linear_parts,
    lookup,
    of_graphs,
    of_molecules,
    of_strings,
    pair_parts,
    shared_runs,
    summed,
    totals,
)
from similia.explanations._features import is_directed as graph_is_directed
from similia.explanations._series import check_cells, global_alignment, soft_warping, warping
from similia.explanations._views import as_text, dense, described, one_note, view_of
from similia.kernels.combine import Normalized, Product, Sum
from similia.kernels.counts import Counts, FeatureKernel
from similia.kernels.from_distance import DistanceRBF, FromDistance, NegativeDistance
from similia.kernels.graphs import GraphKernel
from similia.kernels.hypersphere import Cosine, map_pair
from similia.kernels.minmax import Intersection, MinMax
from similia.kernels.molecules import Morgan
from similia.kernels.series import GlobalAlignment
from similia.kernels.strings import StringKernel, WeightedDegree
from similia.kernels.vectors import MeanMap
from similia.objects import GraphBatch, SetBatch, StringBatch, take
from similia.objects.graphlets import canonical_forms
from similia.objects.sequences import Batch
from similia.objects.tables import is_frame
from similia.similarity import as_objects, decided, evaluate, name_of

WHAT = (
    "explain takes kernels with features (of strings: Spectrum, GappyKmers, GappedKmers, Mismatch, "
    "Words, WeightedDegree; of graphs: WeisfeilerLehman, ShortestPath, Propagation, Graphlet, VertexHistogram, "
    "EdgeHistogram; of molecules: Morgan), Intersection, MinMax, Cosine, MeanMap, GlobalAlignment, FromDistance, "
    "DistanceRBF, NegativeDistance, Sum, Product and Normalized; edit, elastic and set distances; and fitted models"
)
Names = tuple[str, str]  # names of the first and the second object
_Parts = list[tuple[str, float, Any, Any]]  # name, contribution, places in x, places in y
_GROUND = {"euclidean": "euclidean", "sqeuclidean": "sqeuclidean", "manhattan": "cityblock"}
_OF_NO_FEATURE = ("n_iter", "normalize", "radius")  # kernels that differ in these only may have features in common


class Naming(dict[int, str]):
    """The names of node labels, and in `columns` those of the columns of vectors; None if these have no names.

    Without `valued`, names of parts do not tell the values that an object has there, so that all objects have the same.
    """

    def __init__(self, labels: Mapping[int, str], columns: Any = None, valued: bool = True) -> None:
        super().__init__(labels)
        self.columns, self.valued = columns, valued
        self._after: dict[tuple[int, ...], Any] = {}  # names that were asked for, by the steps

    def after(self, steps: list[Any]) -> Naming:
        """Return the names of the columns that `steps` make of these."""
        key = tuple(map(id, steps))
        if key not in self._after:
            columns = self.columns
            for step in steps:
                try:
                    columns = step.get_feature_names_out(columns)
                except (AttributeError, NotImplementedError, ValueError):  # it names no columns, or takes other ones
                    columns = None
            self._after[key] = columns
        return Naming(self, self._after[key], self.valued)

    def column(self, k: int) -> str:
        return f"column {k}" if self.columns is None else str(self.columns[k])


def columns_of(*given: Any) -> Any:
    """Return the names of columns that the first of the models, data frames and rows of frames has; None without."""
    for one in given:
        known = getattr(one, "table_columns_", {})  # of a model; a long table names channels, not columns of vectors
        names = getattr(one, "feature_names_in_", None if "time" in known else known.get("values"))
        if names is None and is_frame(one):
            names = one.columns if hasattr(one, "iloc") else getattr(one, "column_names", one.columns)
        elif names is None and hasattr(one, "iloc"):  # a row of a pandas frame
            names = one.index
        if names is not None and all(isinstance(name, str) for name in names):
            return list(names)
    return None


def one_object(kernel: Any, x: Any, which: str) -> Any:
    """Return a collection that holds only `x`, in the form that the kernel takes; `which` names `x` in errors."""
    items = alone(x, which)
    try:
        return as_objects(kernel, items)
    except (TypeError, ValueError) as error:
        if isinstance(x, np.ndarray) and x.ndim == 2 and len(x) == 1:  # a table of one row
            return one_object(kernel, x[0], which)
        if is_frame(x) and len(x) > 1:
            raise ValueError(f"{which} is a table of {len(x)} rows, expected one object; give one row of it") from None
        message = error.about(which) if isinstance(error, BadItem) else str(error)
        kind = TypeError if isinstance(error, TypeError) else ValueError
        if isinstance(x, list | tuple) and len(x) > 1:
            message += f"; for several objects, explain one: {which}[0]"
        raise kind(
            f"{which} is not an object that {name_of(called_by_user(kernel))} compares ({short(x)}): {message}"
        ) from None


def alone(x: Any, which: str) -> Any:
    """Return a collection that holds only `x`; raise if `x` is a batch of several."""
    if isinstance(x, Batch) and len(x) != 1:
        raise ValueError(f"{which} is a batch of {len(x)} objects, expected one object; write {which}[0]")
    if sp.issparse(x):
        rows = sp.csr_array(x.reshape((1, -1)) if x.ndim == 1 else x)
        if rows.shape[0] != 1:
            raise ValueError(f"{which} is a sparse array of {rows.shape[0]} rows, expected one row; write {which}[[0]]")
        return rows
    return x if isinstance(x, Batch) or (is_frame(x) and x.shape[0] == 1) else [x]


def value_of(kernel: Any, X: Any, Y: Any) -> float:
    return float(evaluate(kernel, as_objects(kernel, X), as_objects(kernel, Y))[0, 0])


def pair(kernel: Any, X: Any, Y: Any, naming: Naming) -> tuple[float, str, Found, str]:
    """Return (value, kind, parts, note) that explain the kernel value of the first objects of two collections."""
    if isinstance(kernel, DistanceRBF | NegativeDistance):
        return _substituted(kernel, X, Y)
    if isinstance(kernel, GlobalAlignment):
        return global_alignment(kernel, X, Y)
    found = similarity(kernel, X, Y, naming)
    note = "of p factors, each gets 1/p of the value; its parts are multiplied by the other factors"
    return value_of(kernel, X, Y), "similarity", found, note if isinstance(kernel, Product) else ""


def similarity(kernel: Any, X: Any, Y: Any, naming: Naming) -> Found:
    """Return the parts of k(x, y), x and y the first of `X` and of `Y`; raise `NoParts` if the kernel has no parts."""
    X, Y = as_objects(kernel, X), as_objects(kernel, Y)
    if isinstance(kernel, Intersection | MinMax):
        return _in_common(kernel, X, Y, naming)
    if isinstance(kernel, FeatureKernel):
        return _counted(kernel, X, Y, naming)
    if isinstance(kernel, Sum):
        weights = kernel._weights()
        return joined(
            [_part(k, X, Y, naming).times(w, _prefix_of(k)) for k, w in zip(kernel._parts(), weights, strict=True)]
        )
    if isinstance(kernel, Normalized):
        squares = kernel._squared_norms(X, "x")
        squares *= (kernel.decided(X) if squares.any() else kernel)._squared_norms(Y, "y")  # as `Normalized` does
        norms = float(np.sqrt(squares[0]))
        return similarity(kernel.kernel, X, Y, naming).times(1 / norms if norms > 0 else 0.0)
    if isinstance(kernel, Product):
        factors = kernel._parts()
        values = [value_of(k, X, Y) for k in factors]
        others = [float(np.prod(values[:i] + values[i + 1 :])) / len(factors) for i in range(len(factors))]
        return joined([_part(k, X, Y, naming).times(w, _prefix_of(k)) for k, w in zip(factors, others, strict=True)])
    if isinstance(kernel, FromDistance):
        return _random_objects(kernel, X, Y)
    if isinstance(kernel, MeanMap):
        return _pairs_of_points(kernel, X, Y)
    if isinstance(kernel, Cosine):
        return _by_columns(kernel, X, Y, np.ones(1), naming)
    raise NoParts(f"{name_of(kernel)} has no parts to name; {WHAT}")


def _by_columns(kernel: Cosine, X: Any, Y: Any, alpha: Floats, naming: Naming) -> Found:
    """Return a part of sum_i alpha_i k(x, Y[i]) for each column."""
    a, b = map_pair(X, Y, decided(kernel, Y))
    return Found(dense(a)[0] * (b.T @ alpha), lambda k: (naming.column(k), NOWHERE, NOWHERE))


def _pairs_of_points(kernel: MeanMap, X: SetBatch, Y: SetBatch) -> Found:
    m, n = len(X.values), len(Y.values)
    check_cells(max(m, 1), max(n, 1))
    values = evaluate(decided(kernel.ground, X.values), X.values, Y.values) if m and n else np.zeros((m, n))
    values = values / (m * n or 1) if kernel.reduce == "mean" else values
    parts: _Parts = [(f"x[{i}] and y[{j}]", float(values[i, j]), (i,), (j,)) for i, j in np.ndindex(m, n)]
    return listed(parts, m, n)


def _part(kernel: Any, X: Any, Y: Any, naming: Naming) -> Found:
    """Return the parts of a component of a composite kernel; a component without parts becomes a single part."""
    try:
        return similarity(kernel, X, Y, naming)
    except NoParts:
        return listed([("as a whole", value_of(kernel, X, Y), (), ())], view_of(X).n_places, view_of(Y).n_places)


def _counted(kernel: FeatureKernel, X: Any, Y: Any, naming: Naming) -> Found:
    kernel._check_alike(X, Y)
    (a, a_weights), (b, b_weights) = counts_of(kernel, X), counts_of(kernel, Y)
    scale = 1.0
    if kernel.normalize:
        norms = float(np.sqrt(a.squared_norms[0] * b.squared_norms[0]))
        scale = 1 / norms if norms > 0 else 0.0
    if isinstance(kernel, WeightedDegree):
        return shared_runs(kernel, X, Y).times(scale)
    directed = is_directed(X, Y)
    x, y = (feature_occurrences(kernel, side, naming, directed) for side in (X, Y))

    def weights(ids: Ids) -> Floats:
        return np.where(is_among(ids, a.ids), lookup(ids, a.ids, a_weights), lookup(ids, b.ids, b_weights))

    return pair_parts(x, y, weights).times(scale)


def _in_common(kernel: Intersection | MinMax, X: Any, Y: Any, naming: Naming) -> Found:
    directed, one = is_directed(X, Y), np.ones(1)
    ours, theirs = _minima(kernel, X, Y, one, naming, directed), _minima(kernel, Y, X, one, naming, directed)
    parts = []
    for (prefix, x, to_x), (_, y, to_y) in zip(ours, theirs, strict=True):
        parts.append(replace(linear_parts(x, to_x, y), shares_y=y.shares(y.values * to_y)).times(1.0, prefix))
    return joined(parts)


def _random_objects(kernel: FromDistance, X: Any, Y: Any) -> Found:
    products = kernel._features(X)[0] * kernel._features(Y)[0]
    objects = kernel._random_objects(X)
    return Found(products, lambda k: (f"both near {described(take(objects, [k]), k)}", NOWHERE, NOWHERE))


def _substituted(kernel: Any, X: Any, Y: Any) -> tuple[float, str, Found, str]:
    """Return (value, kind, parts, note) for k = -d^p or, for `DistanceRBF`, log k = -gamma d^2; d is a distance."""
    value = value_of(kernel, X, Y)
    d, scale, found, note = distance_pair(kernel.distance, X, Y)
    rbf = isinstance(kernel, DistanceRBF)
    if not rbf and kernel.origin is not None:
        raise NoParts(
            "NegativeDistance with an origin is a sum of three distances; explain(kernel.distance, x, y) explains one"
        )
    power, factor = (2.0, -float(kernel.gamma)) if rbf else (float(kernel.power), -1.0)
    raised = power_of(d, power)
    # The parts of the distance add up to d^scale, and d^power = d^scale d^(power - scale).
    found = found.times(factor * (d ** (power - scale) if d > 0 else 0.0))
    sums, kind = f"the parts are those of d = {d:.6g}", "similarity"
    if rbf:
        sums, kind = f"the parts add up to log k = -gamma d^2, where k = {value:.6g} and d = {d:.6g}", "log similarity"
        value = factor * raised
    return value, kind, found, one_note(sums, note)


def distance_pair(distance: Any, X: Any, Y: Any) -> tuple[float, float, Found, str]:
    """Return (d, power, parts, note), where d is the distance of the first objects; the parts add up to d**power."""
    X, Y = as_objects(distance, X), as_objects(distance, Y)
    read, scale, note = _reader(distance)
    d = float(distance(X, Y)[0, 0])
    power_of(d, scale)  # raises if the sum of the parts is too large
    swapped = _key(Y) < _key(X)
    found = read(distance, Y, X, ("y", "x")) if swapped else read(distance, X, Y, ("x", "y"))
    return d, scale, _exchanged(found) if swapped else found, note


def power_of(d: float, power: float) -> float:
    try:
        return float(d**power)
    except OverflowError:
        raise ValueError(
            f"the distance of x and y, {d:.3g}, is too large: its square exceeds the largest float64; scale the objects"
        ) from None


def _reader(distance: Any) -> tuple[Callable[[Any, Any, Any, Names], Found], float, str]:
    """Return (function that finds the parts, power, note); the parts add up to the distance to that power."""
    read = next((read for kinds, read in _READERS if isinstance(distance, kinds)), None)
    if read is None or (isinstance(distance, MMD) and distance.kernel not in ("match", "match_iso")):
        hint = "; MMD has with kernel='match' or 'match_iso'" if isinstance(distance, MMD) else ""
        raise NoParts(f"{name_of(distance)} has no parts to name{hint}; {WHAT}")
    if isinstance(distance, SoftDTW):
        left = f"-gamma times their entropy{' and the self terms' if distance.divergence else ''}"
        return read, 1.0, f"the parts are expected local costs over all alignments; the rest is {left}"
    power = float(distance.p) if isinstance(distance, SlicedWasserstein | Wasserstein) else 1.0
    if isinstance(distance, MMD) or (isinstance(distance, DTW) and distance.root):
        power = 2.0
    return read, power, "the parts add up to the square of the distance" if power == 2 else ""


def _key(batch: Any) -> tuple[int, bytes]:
    """Return a sort key; the object with the smaller key is read first, so that (x, y) and (y, x) have equal parts."""
    values = getattr(batch, "values", np.empty(0))
    return len(values), np.ascontiguousarray(values).tobytes()


def _exchanged(found: Found) -> Found:

    def describe(k: int) -> tuple[str, Any, Any]:
        name, in_x, in_y = found.describe(k)
        return name, in_y, in_x

    links = [(j, i, value) for i, j, value in found.links]
    return Found(found.contributions, describe, found.shares_y, found.shares_x, links)


def _edits(distance: Levenshtein, X: StringBatch, Y: StringBatch, names: Names) -> Found:
    from rapidfuzz.distance import Levenshtein as rapidfuzz

    a, b = X[0], Y[0]
    parts: _Parts = []
    links: list[Link] = []
    for step in rapidfuzz.opcodes(a, b):
        tag, i, i_end, j, j_end = step.tag, step.src_start, step.src_end, step.dest_start, step.dest_end
        if tag != "delete" and tag != "insert":
            links += [(i + t, j + t, float(tag == "replace")) for t in range(i_end - i)]
        if tag != "equal":
            words = {names[0]: as_text(a[i:i_end]), names[1]: as_text(b[j:j_end])}
            parts.append((_edit_name(**words), float(max(i_end - i, j_end - j)), range(i, i_end), range(j, j_end)))
    return replace(listed(parts, len(a), len(b)), links=links)


def _edit_name(x: str, y: str) -> str:
    if not y:
        return f"{x!r} in x only"
    return f"{x!r} for {y!r}" if x else f"{y!r} in y only"


def _mismatches(distance: Hamming, X: StringBatch, Y: StringBatch, names: Names) -> Found:
    """Return a part for each position where the letters differ, or where one string has already ended."""
    a, b = X[0], Y[0]
    parts: _Parts = []
    for i in range(max(len(a), len(b))):
        words = {names[0]: as_text(a[i : i + 1]), names[1]: as_text(b[i : i + 1])}
        if words[names[0]] != words[names[1]]:
            in_a, in_b = ([i] if i < len(side) else [] for side in (a, b))
            parts.append((f"{_edit_name(**words)} at {i}", 1.0, in_a, in_b))
    links = [(i, i, float(u != v)) for i, (u, v) in enumerate(zip(a, b, strict=False))]
    return replace(listed(parts, len(a), len(b)), links=links)


def _nearest_points(distance: Any, X: SetBatch, Y: SetBatch, names: Names) -> Found:
    """Return a part for each point and its nearest point in the other set, if that pair adds to the distance."""
    A, B = comparable(X, Y)
    ground = cdist(dense(A.values), dense(B.values), _GROUND[distance.ground])
    there, back = ground.min(axis=1), ground.min(axis=0)
    pairs_there = [(i, int(j), float(there[i])) for i, j in enumerate(ground.argmin(axis=1))]
    pairs_back = [(int(i), j, float(back[j])) for j, i in enumerate(ground.argmin(axis=0))]
    if isinstance(distance, Hausdorff):
        chosen = max(pairs_there + pairs_back, key=lambda pair: pair[2])
        pairs = [(*chosen[:2], chosen[2], names[0] if there.max() >= back.max() else names[1])]
    else:
        both = [
            [(i, j, c / len(side), name) for i, j, c in side]
            for side, name in zip((pairs_there, pairs_back), names, strict=True)
        ]
        pairs = both[0] + both[1] if isinstance(distance, Chamfer) else both[0 if there.mean() >= back.mean() else 1]
    return _of_pairs(pairs, X, Y, names)


def _of_pairs(pairs: list[tuple[int, int, float, str]], X: SetBatch, Y: SetBatch, names: Names) -> Found:
    """Convert pairs of points, each (index in `X`, index in `Y`, cost, name), to parts of an explanation.

    An empty set counts as one point at the origin. The name, "x" or "y", says which point seeks its nearest point in
    the other set; it is "" if neither does.
    """
    m, n = int(X.lengths[0]), int(Y.lengths[0])
    parts: _Parts = []
    for i, j, cost, seeks in pairs:
        at = {names[0]: f"{names[0]}[{i}]" if m else "the origin", names[1]: f"{names[1]}[{j}]" if n else "the origin"}
        if seeks:
            name = f"{at[seeks]} to its nearest, {at['y' if seeks == 'x' else 'x']}"
        else:
            name = f"{at['x']} to {at['y']}"
        parts.append((name, cost, (i,) if m else (), (j,) if n else ()))
    return listed(parts, m, n)


def _moved_mass(distance: SlicedWasserstein, X: SetBatch, Y: SetBatch, names: Names) -> Found:
    """Return a part for each pair of points: moved mass times (projected distance)^p, averaged over projections."""
    A, B = comparable(X, Y)
    a, b = dense(A.values), dense(B.values)
    m, n = len(a), len(b)
    check_cells(m, n)
    cuts = np.union1d(np.arange(1, m + 1) * n, np.arange(1, n + 1) * m)  # cumulated mass, in units of 1 / (m n)
    mass = np.diff(cuts, prepend=0) / (m * n)
    left, right = (cuts - 1) // n, (cuts - 1) // m
    costs = np.zeros((m, n))
    directions = distance._directions(distance.n_projections, A.n_dims)
    for direction in directions:
        u, v = a @ direction, b @ direction
        i, j = np.argsort(u, kind="stable")[left], np.argsort(v, kind="stable")[right]
        np.add.at(costs, (i, j), mass * np.abs(u[i] - v[j]) ** distance.p)
    costs /= len(directions)
    return _of_pairs([(int(i), int(j), float(costs[i, j]), "") for i, j in np.argwhere(costs > 0)], X, Y, names)


def _transported(distance: Wasserstein, X: SetBatch, Y: SetBatch, names: Names) -> Found:
    """Return a part for each pair of points between which mass moves: mass times distance^p."""
    A, B = comparable(X, Y)
    a, b = dense(A.values), dense(B.values)
    check_cells(len(a), len(b))
    mass = distance.plan(a, b)
    costs = mass * cdist(a, b, _GROUND[distance.ground]) ** distance.p
    return _of_pairs([(int(i), int(j), float(costs[i, j]), "") for i, j in np.argwhere(mass > 0)], X, Y, names)


def _unlike_graphlets(distance: MMD, X: Any, Y: Any, names: Names) -> Found:
    """Return a part for each graphlet: the squared difference of its frequencies in the samples of x and of y."""
    patterns = [distance._samples(side) for side in (X, Y)]
    codes = np.unique(np.concatenate([np.asarray(p.codes) for p in patterns]))
    counts = np.zeros((2, len(codes)))
    for row, p in zip(counts, patterns, strict=True):
        row[np.searchsorted(codes, p.codes)] = p.counts
    squares = ((counts[0] - counts[1]) / distance.n_samples) ** 2
    iso = distance.kernel == "match_iso"
    if iso:
        codes = canonical_forms(distance.size).representatives[codes.astype(np.int64)]

    def describe(k: int) -> tuple[str, Any, Any]:
        shares = {name: counts[row, k] / distance.n_samples for row, name in enumerate(names)}
        shown = f"{100 * shares['x']:.3g} % of x, {100 * shares['y']:.3g} % of y"
        code = "" if iso else f", code {codes[k]}"
        return f"{graphlet_name(codes[k], distance.size)}{code}: {shown}", NOWHERE, NOWHERE

    return Found(squares, describe)


_READERS: tuple[tuple[Any, Callable[..., Found]], ...] = (
    (Levenshtein, _edits),
    (Hamming, _mismatches),
    ((DTW, ADTW, ERP, MSM, TWE, LCSS), warping),
    (SoftDTW, soft_warping),
    ((ModifiedHausdorff, Chamfer, Hausdorff), _nearest_points),
    (SlicedWasserstein, _moved_mass),
    (Wasserstein, _transported),
    (MMD, _unlike_graphlets),
)


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
    return any(isinstance(batch, GraphBatch) and graph_is_directed(batch) for batch in batches)


def _prefix_of(kernel: Any) -> str:
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
    if not has_features(kernel):
        values = np.asarray(evaluate(kernel, X, Y), dtype=np.float64)[0]

        def describe(i: int) -> Described:
            return f"{values[i]:.3g} " * naming.valued + f"like {called(i)}", NOWHERE, NOWHERE

        return Found(alpha * values, describe)
    if isinstance(kernel, Sum):
        parts = zip(kernel._parts(), kernel._weights(), strict=True)
        return joined([_split(k, X, Y, w * alpha, naming, called).times(1.0, _prefix_of(k)) for k, w in parts])
    if isinstance(kernel, Normalized):
        products = kernel._squared_norms(X, "x")[0] * kernel._squared_norms(Y, "Y")
        return _split(kernel.kernel, X, Y, _by_roots(alpha, products), naming, called)
    if isinstance(kernel, Cosine):
        return _by_columns(kernel, X, Y, alpha, naming)
    if isinstance(kernel, Intersection | MinMax):
        shared = _minima(kernel, X, Y, alpha, naming, is_directed(X))
        return joined([linear_parts(x, coefficients).times(1.0, prefix) for prefix, x, coefficients in shared])
    counts, weights = counts_of(kernel, Y)
    if kernel.normalize:
        alpha = _by_roots(alpha, counts_of(kernel, X)[0].squared_norms[0] * counts.squared_norms)
    x = feature_occurrences(kernel, X, naming, is_directed(X))
    each = np.repeat(alpha, np.diff(counts.offsets))
    return linear_parts(x, lookup(x.ids, *summed(counts.ids, counts.values * weights * each)))


def has_features(kernel: Any, of: Callable[[Iterable[bool]], bool] = any) -> bool:
    """Return whether sums of values of this kernel split by features; of a `Sum`, `any` or `all` of its kernels."""
    if isinstance(kernel, Sum):
        return of(has_features(part, of) for part in kernel._parts())
    if isinstance(kernel, Normalized):
        return has_features(kernel.kernel, of)
    return isinstance(kernel, FeatureKernel | MinMax | Cosine)


def _by_roots(alpha: Floats, squares: Floats) -> Floats:
    """Return `alpha` divided by the roots of `squares`; 0 where these are 0, as then the object has no features."""
    return np.divide(alpha, np.sqrt(squares), out=np.zeros_like(alpha), where=squares > 0)


def _minima(
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
        counts, name = kernel.counted(X), naming.column if kernel.kernel is None else "feature {:016x}".format
        x = Occurrences.without_places(counts, lambda o: name(int(counts.ids[o])), 0)
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
