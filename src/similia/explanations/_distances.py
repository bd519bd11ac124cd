"""Pairs under distances: edits of strings, steps of alignments, nearest points, moved mass, unlike graphlets.

A pair is brought into one order before it is taken apart, so that where several alignments are equally good, explain(x,
y) and explain(y, x) find the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from similia.distances.dtw import DTW
from similia.distances.edit import Hamming, Levenshtein
from similia.distances.elastic import ERP, LCSS, MSM, TWE, SoftDTW
from similia.distances.mmd import MMD
from similia.distances.sets import Chamfer, Hausdorff, ModifiedHausdorff, SlicedWasserstein, _comparable
from similia.explanations._found import NOWHERE, Found, Link, listed
from similia.explanations._graph_features import graphlet_name
from similia.explanations._kernels import WHAT, NoParts
from similia.explanations._series import check_cells
from similia.objects import SetBatch, StringBatch
from similia.objects.graphlets import canonical_forms
from similia.similarity import as_objects, name_of

_GROUND = {"euclidean": "euclidean", "sqeuclidean": "sqeuclidean", "manhattan": "cityblock"}
Names = tuple[str, str]  # what the first and the second object are called
_Parts = list[tuple[str, float, Any, Any]]


def pair(distance: Any, X: Any, Y: Any) -> tuple[float, float, Found, str]:
    """Return (d, scale, parts, note) of the distance of the first objects of two collections: parts add to d**scale."""
    X, Y = as_objects(distance, X), as_objects(distance, Y)
    read, scale, note = _reader(distance)
    d = float(distance(X, Y)[0, 0])
    swapped = _key(Y) < _key(X)
    found = read(distance, Y, X, ("y", "x")) if swapped else read(distance, X, Y, ("x", "y"))
    return d, scale, _exchanged(found) if swapped else found, note


def _reader(distance: Any) -> tuple[Callable[[Any, Any, Any, Names], Found], float, str]:
    from similia.explanations import _series

    if isinstance(distance, Levenshtein):
        return _edits, 1.0, ""
    if isinstance(distance, Hamming):
        return _mismatches, 1.0, ""
    if isinstance(distance, DTW | ERP | MSM | TWE | LCSS):
        root = isinstance(distance, DTW) and bool(distance.root)
        return _series.warping, 2.0 if root else 1.0, "the parts add up to the square of the distance" if root else ""
    if isinstance(distance, SoftDTW):
        left = f"-gamma times their entropy{' and the self terms' if distance.divergence else ''}"
        note = f"expected local costs over all alignments; what is left is {left}"
        return _series.soft_warping, 1.0, note
    if isinstance(distance, ModifiedHausdorff | Chamfer | Hausdorff):
        return _nearest_points, 1.0, ""
    if isinstance(distance, SlicedWasserstein):
        return (
            _moved_mass,
            float(distance.p),
            "the parts add up to the square of the distance" if distance.p == 2 else "",
        )
    if isinstance(distance, MMD) and distance.kernel in ("match", "match_iso"):
        return _unlike_graphlets, 2.0, "the parts add up to the square of the distance"
    hint = "; with kernel='match' or 'match_iso' it can be" if isinstance(distance, MMD) else ""
    raise NoParts(f"{name_of(distance)} has no parts to name{hint}; {WHAT}")


def _key(batch: Any) -> tuple[int, bytes]:
    """Return what orders two objects."""
    values = getattr(batch, "values", np.empty(0))
    return len(values), np.ascontiguousarray(values).tobytes()


def _exchanged(found: Found) -> Found:
    """Return the parts with x and y exchanged; their names are right already."""

    def describe(k: int) -> tuple[str, Any, Any]:
        name, in_x, in_y = found.describe(k)
        return name, in_y, in_x

    links = [(j, i, value) for i, j, value in found.links]
    return Found(found.contributions, describe, found.shares_y, found.shares_x, links)


def _edits(distance: Levenshtein, X: StringBatch, Y: StringBatch, names: Names) -> Found:
    """Return runs of letters that are in one string only, or others in the other."""
    from rapidfuzz.distance import Levenshtein as rapidfuzz

    a, b = X[0], Y[0]
    parts: _Parts = []
    links: list[Link] = []
    for step in rapidfuzz.opcodes(a, b):
        tag, i, i_end, j, j_end = step.tag, step.src_start, step.src_end, step.dest_start, step.dest_end
        if tag != "delete" and tag != "insert":
            links += [(i + t, j + t, float(tag == "replace")) for t in range(i_end - i)]
        if tag != "equal":
            words = {names[0]: _text(a[i:i_end]), names[1]: _text(b[j:j_end])}
            parts.append((_edit_name(**words), float(max(i_end - i, j_end - j)), range(i, i_end), range(j, j_end)))
    return replace(listed(parts, len(a), len(b)), links=links)


def _edit_name(x: str, y: str) -> str:
    if not y:
        return f"{x!r} in x only"
    return f"{x!r} for {y!r}" if x else f"{y!r} in y only"


def _text(letters: str | bytes) -> str:
    return letters.decode("latin-1") if isinstance(letters, bytes) else letters


def _mismatches(distance: Hamming, X: StringBatch, Y: StringBatch, names: Names) -> Found:
    a, b = X[0], Y[0]
    n = min(len(a), len(b))
    parts: _Parts = []
    for i in range(max(len(a), len(b))):
        words = {names[0]: _text(a[i : i + 1]), names[1]: _text(b[i : i + 1])}
        if words[names[0]] != words[names[1]]:
            in_a, in_b = ([i] if i < len(side) else [] for side in (a, b))
            parts.append((f"{_edit_name(**words)} at {i}", 1.0, in_a, in_b))
    links = [(i, i, float(a[i] != b[i])) for i in range(n)]
    return replace(listed(parts, len(a), len(b)), links=links)


def _nearest_points(distance: Any, X: SetBatch, Y: SetBatch, names: Names) -> Found:
    """Return points with the nearest point of the other set, each at what it adds."""
    from scipy.spatial.distance import cdist

    A, B = _comparable(X, Y)
    ground = cdist(np.asarray(A.values, np.float64), np.asarray(B.values, np.float64), _GROUND[distance.ground])
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
    """Return matched points as parts; the point that stands for an empty set has no place."""
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
    """Return how much each pair of points adds to d^p: the mass moved times the p-th power of its way, on average."""
    A, B = _comparable(X, Y)
    a, b = (np.asarray(side.values, dtype=np.float64) for side in (A, B))
    m, n = len(a), len(b)
    check_cells(m, n)
    cuts = np.union1d(np.arange(1, m + 1) * n, np.arange(1, n + 1) * m)  # in units of 1 / (m n)
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


def _unlike_graphlets(distance: MMD, X: Any, Y: Any, names: Names) -> Found:
    """Return the squared differences of the shares of each graphlet."""
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
