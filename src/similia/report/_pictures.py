"""Sections of the report about the embedding: its map, neighbours explained, spectrum, approximation and bits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.intervals import wilson
from similia.core.validation import generator
from similia.objects import take
from similia.report import _measures as measures
from similia.report._context import Context
from similia.report._html import (
    Axis,
    Curve,
    Section,
    chart,
    escape,
    key,
    mark_class,
    marker,
    number,
    paragraph,
    percent,
    side_by_side,
    table,
    vertical,
)
from similia.report._model import taken
from similia.report._objects import TEXTS, described
from similia.report.displays import measured_errors
from similia.similarity import Distance, without_addresses

_MAP = (720, 520)
_MOST_CLASSES = 20  # with a mark each
_STEPS = 7  # of numbers on the map
_QUERIES = 6
_NEIGHBOURS = 4
_FEW = 10  # objects that are no landmarks, fewer of which say little
_PAIRED = 400  # objects whose kernel is computed for all pairs
_OPEN = 2  # explanations that are open at first

Json = dict[str, Any]


def about_map(context: Context) -> tuple[Section, Json]:
    """A map of the embedding, whose points show their objects."""
    if context.vectors is None:
        return Section("map", "Map", missing=f"There is no embedding: {context.no_vectors}."), {}
    points, shares = measures.plane(context.vectors.vectors, context.seed)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = float(np.min((np.array(_MAP) - 40) / np.maximum(high - low, 1e-300))) if (high > low).any() else 1.0
    placed = (points - (low + high) / 2) * scale * [1, -1] + np.array(_MAP) / 2
    x, y = placed.round(1).T.tolist()
    marks, labels = _marks(context)
    size = float(np.clip(60 / np.sqrt(context.n), 1.6, 5))
    drawn = []
    for i, label in enumerate(labels):
        d = "".join(marker(i, x[j], y[j], size) for j in np.flatnonzero(marks == i).tolist())
        css = mark_class(i, context.is_regression) if i < _MOST_CLASSES else "kx"
        drawn.append(f'<path class="{css}" data-mark="{i}" d="{d}"><title>{escape(label)}</title></path>')
    title = f"Map of {context.n:,} {context.seen.kind}"
    svg = (
        f'<svg viewBox="0 0 {_MAP[0]} {_MAP[1]}" role="img" aria-label="{escape(title)}" tabindex="0">'
        f"{''.join(drawn)}"
        f'<circle id="ring" r="9" cx="-99" cy="-99" visibility="hidden"/></svg>'
    )
    hint = "Point at the map, touch it, or use the arrow keys on it: the object is shown here."
    keys = "".join(key(i, label, True, context.is_regression) for i, label in enumerate(labels))
    how = (
        f"The first two principal components of what {context.vectors.how} makes: {percent(shares[0])} and "
        f"{percent(shares[1])} of the variance. Distances that need more dimensions are lost."
    )
    body = paragraph(how) + (f"<p>{keys}</p>" if len(labels) > 1 else "")
    body += f'<div class="map">{svg}<div class="shown" aria-live="polite"><p class="note">{hint}</p></div></div>'
    return Section("map", "Map", body), {"x": x, "y": y, "mark": marks.tolist(), "facts": _facts(context)}


def _marks(context: Context) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the number of each object's mark, and what marks mean."""
    y = context.y
    if y is None:
        return np.zeros(context.n, dtype=np.int64), [context.seen.kind]
    if context.is_regression:
        edges = np.unique(np.quantile(y.astype(float), np.linspace(0, 1, _STEPS + 1)))
        bins = np.clip(np.searchsorted(edges, y.astype(float), side="right") - 1, 0, max(len(edges) - 2, 0))
        return bins, [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)] or [number(y[0])]
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
    marks = np.full(len(classes), len(shown))
    marks[shown] = np.arange(len(shown))
    labels = [str(classes[c]) for c in shown]
    labels += [f"{len(classes) - len(shown)} other classes"] if len(classes) > len(shown) else []
    return marks[codes], labels


def _facts(context: Context) -> list[tuple[str, list[str]]]:
    """Return what is told of each object beside itself."""
    facts = []
    if context.y is not None:
        shown = [number(v) if context.is_regression else str(v) for v in context.y.tolist()]
        facts.append(("target" if context.is_regression else "class", shown))
    if context.scored is not None:
        predicted = context.scored.predicted.tolist()
        facts.append(("predicted", [number(v) if context.is_regression else str(v) for v in predicted]))
    return facts


def about_neighbours(context: Context) -> Section:
    """A few objects, what is nearest to them, and why."""
    title = "Nearest neighbours, explained"
    if context.n < 3:
        return Section("neighbours", title, missing=f"{context.n} objects have no neighbourhoods to show.")
    queries = _queries(context)
    try:
        rows, values, what = _nearest(context, queries)
    except (ValueError, TypeError) as error:
        return Section("neighbours", title, missing=f"Objects could not be compared: {error}")
    parts = [paragraph(f"{len(queries)} objects, each with the {rows.shape[1]} nearest of the others by {what}.")]
    is_text = context.seen.kind in TEXTS
    shown = zip(queries.tolist(), rows.tolist(), values.tolist(), strict=True)
    for place, (query, near, of_near) in enumerate(shown):
        lines = [
            f'<li><span class="n">{number(value)}</span><span class="who">{_called(context, j)}</span>'
            f"{_box(context, j)}</li>"
            for j, value in zip(near, of_near, strict=True)
        ]
        if is_text:
            parts.append(f"<h3>{_called(context, query)}</h3>{_box(context, query)}")
            parts.append(f'<ol class="near">{"".join(lines)}</ol>')
        else:  # the object and its neighbours side by side
            parts.append(f"<h3>{_called(context, query)}</h3>")
            first = f'<li><span class="who">itself</span>{_box(context, query)}</li>'
            parts.append(f'<ol class="near drawn">{first}{"".join(lines)}</ol>')
        parts.append(_explained(context, query, near[0], place < _OPEN))
    return Section("neighbours", title, "".join(parts))


def _queries(context: Context) -> npt.NDArray[np.int64]:
    """Return objects to show: mistakes first where there are any, one of each class in turn otherwise."""
    rng = generator(context.seed)
    order = rng.permutation(context.n)
    found = context.scored
    wrong = np.zeros(context.n, bool) if found is None or context.is_regression else found.predicted != found.truth
    classes = np.zeros(context.n, int) if context.y is None else np.unique(context.y, return_inverse=True)[1]
    rank = np.zeros(context.n, int)
    for members in (wrong, ~wrong):
        for value in np.unique(classes):
            of_class = order[(classes[order] == value) & members[order]]
            rank[of_class] = np.arange(len(of_class))
    mistakes = [i for i in order[np.argsort(rank[order], kind="stable")] if wrong[i]][: _QUERIES // 3]
    others = [i for i in order[np.argsort(rank[order], kind="stable")] if not wrong[i]]
    return np.array([*others[: _QUERIES - len(mistakes)], *mistakes], dtype=np.int64)


def _nearest(context: Context, queries: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray, str]:
    """Return the nearest others of each object, their values, and what those are."""
    metric = context.parts.metric
    if metric is not None:
        X = metric.as_objects(context.X)
        values = metric.between(take(X, queries), X).astype(np.float64)
        what, sign = without_addresses(metric.function), -1.0 if metric.is_kernel else 1.0
        what = f"{what}, a {'kernel: larger is nearer' if metric.is_kernel else 'distance: smaller is nearer'}"
    elif context.vectors is not None:
        from sklearn.metrics.pairwise import euclidean_distances

        vectors = context.vectors.vectors
        values, sign = euclidean_distances(vectors[queries], vectors), 1.0
        what = f"Euclidean distance after {context.vectors.how}"
    else:
        raise ValueError(context.no_vectors)
    sorted_by = sign * values
    sorted_by[np.arange(len(queries)), queries] = np.inf
    rows = np.argsort(sorted_by, axis=1, kind="stable")[:, : min(_NEIGHBOURS, context.n - 1)]
    return rows, np.take_along_axis(values, rows, axis=1), what


def _called(context: Context, i: int) -> str:
    """Return the name and target of an object, escaped."""
    target = "" if context.y is None else f" · {number(context.y[i]) if context.is_regression else context.y[i]}"
    return escape(f"{context.names[i]}{target}")


def _box(context: Context, i: int) -> str:
    css = "object text" if context.seen.kind in TEXTS else "object"
    return f'<div class="{css}" data-i="{i}">{escape(described(context.seen, i))}</div>'


def _explained(context: Context, i: int, j: int, is_open: bool) -> str:
    """Return why two objects are alike, or nothing where the similarity has no parts to show."""
    metric = context.parts.metric
    if metric is None or type(metric.function).__name__ == "Pairwise":
        return ""
    try:
        from similia.explanations import explain

        pair = take(metric.as_objects(context.X), [i, j])
        found = explain(metric.function, pair[0], pair[1]).to_html()
    except (ImportError, TypeError, ValueError, NotImplementedError):
        return ""
    verb = "near" if isinstance(metric.function, Distance) else "like"
    shown = " open" if is_open else ""
    return (
        f'<details{shown}><summary>Why the first is {verb} it</summary><div class="explained">{found}</div></details>'
    )


def about_spectrum(context: Context) -> Section:
    """Eigenvalues of the landmark kernel, and its rank."""
    title = "Spectrum and rank"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = measures.spectrum(context.parts, context.X, random_state=context.seed)
    except (ValueError, TypeError) as error:
        return Section("spectrum", title, missing=f"There is no spectrum to show: {error}.")
    values, numbers = found.eigenvalues, np.arange(1, len(found.eigenvalues) + 1)
    largest = float(np.abs(values).max())
    if largest == 0:
        return Section("spectrum", title, missing="All similarities are 0, and so are all eigenvalues.")
    floor = largest * 1e-16
    above, below = values > floor, values < -floor
    x = Axis("number of the eigenvalue", 0, float(len(values)))
    y = Axis("size", max(floor, float(np.abs(values[above | below]).min()) / 2), largest * 2, log=10)
    curves = [Curve("positive", numbers[above], values[above], line=False, size=2.2)]
    if below.any():
        curves.append(Curve("negative", numbers[below], -values[below], line=False, size=2.2, style=1))
    half = int(np.searchsorted(np.cumsum(np.abs(values)), 0.9 * np.abs(values).sum()) + 1)
    text = f"Eigenvalues of {found.of}: {found.rank} of {len(values)} are kept, {half} hold 90 % of the sum. "
    if found.clipped:
        text += f"{percent(found.clipped)} of it is negative: the similarity is indefinite."
    else:
        text += "None is negative beyond rounding."
    lines = vertical(x, found.rank, f"rank {found.rank}")
    picture = chart("Size of each eigenvalue, largest first", x, y, curves, lines)
    return Section("spectrum", title, side_by_side(paragraph(text), picture))


def about_approximation(context: Context) -> Section:
    """The error of the approximated kernel against landmarks or random features."""
    title = "Error of the approximation"
    others = np.flatnonzero(~context.known)
    others = others if len(others) >= _FEW else np.arange(context.n)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = measured_errors(context.parts, taken(context.X, others), None, _PAIRED, context.seed)
    except (ValueError, TypeError) as error:
        return Section("approximation", title, missing=f"This does not apply: {error}.")
    errors, sizes = found.errors, found.sizes
    positive = errors[errors > 1e-12]
    if len(sizes) < 2 or not len(positive):
        return Section("approximation", title, missing=f"With {sizes[-1]} {found.of} the kernel is met up to rounding.")
    titles = [f"{n:,} {found.of}: {number(e)}" for n, e in zip(sizes.tolist(), errors.tolist(), strict=True)]
    low, high = float(positive.min()), float(positive.max())
    curve = Curve("error", sizes, np.maximum(errors, low / 2), titles=titles)
    x = Axis(f"number of {found.of}", float(sizes[0]), float(sizes[-1]), log=10)
    y = Axis("relative error", low / 1.4, high * 1.4, log=10)
    text = (
        f"Error in the Frobenius norm, relative to the norm, against {found.against}. "
        f"With all {sizes[-1]:,} {found.of} it is {number(float(errors[-1]))}; "
        "a curve that still falls says that more would help."
    )
    if len(others) > _PAIRED:
        text += f" The kernel of all pairs is quadratic, so {_PAIRED} objects were drawn for it."
    if len(others) < context.n:
        text += " Objects that are landmarks are left out, since they are met exactly."
    picture = chart("Error of the kernel", x, y, [curve])
    return Section("approximation", title, side_by_side(paragraph(text), picture))


def about_bits(context: Context) -> Section:
    """Accuracy against flipped bits and against the number of bits."""
    title = "What bits are worth"
    found = None if context.scored is None else context.scored.robustness
    if found is None:
        codes = None if context.vectors is None else context.vectors.codes
        why = "The model makes no packed bits." if codes is None else "Nothing is learnt from the bits of this model."
        if codes is not None and context.scored is not None and not context.scored.n_folds:
            why = "Codes are shortened by training anew, for which the model's training objects would be needed."
        return Section("bits", title, missing=why if context.scored is not None else f"{why} {context.unscored}")
    flips, lengths = (
        _accuracies(x, y, found.n, unit)
        for x, y, unit in ((found.shares, found.flipped, ""), (found.n_bits, found.shortened, " bits"))
    )
    low = float(min(flips.low.min(), lengths.low.min()))  # type: ignore[union-attr]
    y = Axis("accuracy (%)", np.floor(low * 10) / 10, 1.0, share=True)
    damage = Axis("bits flipped (%)", 0, float(found.shares[-1]), share=True)
    left = chart("Accuracy when bits of the codes are flipped at random", damage, y, [flips])
    longest = float(found.n_bits[-1]) * (1 + (len(found.n_bits) == 1))
    bits = Axis("number of bits", float(found.n_bits[0]), longest, log=2)
    right = chart("Accuracy with the first bits only, trained anew", bits, y, [lengths])
    text = f"On the {found.n:,} objects of the first fold; bands are 95 % intervals."
    rows = [[f"{b:,}", percent(a)] for b, a in zip(found.n_bits.tolist(), found.shortened.tolist(), strict=True)][::-1]
    numbers = table("Accuracy by number of bits", ["bits", "accuracy"], rows)
    details = f"<details><summary>Numbers</summary>{numbers}</details>"
    return Section("bits", title, paragraph(text) + side_by_side(left, right) + details)


def _accuracies(x: Sequence[float] | npt.NDArray, y: npt.NDArray, n: int, unit: str) -> Curve:
    bounds = np.array([wilson(share, n) for share in y])
    names = [f"{v:,}{unit}" if unit else f"{percent(v)} flipped" for v in np.asarray(x).tolist()]
    titles = [f"{name}: {percent(share)}" for name, share in zip(names, y.tolist(), strict=True)]
    return Curve("accuracy", np.asarray(x), y, bounds[:, 0], bounds[:, 1], titles=titles)
