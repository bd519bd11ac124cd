"""`write_report` writes an HTML page about a model and its data, and how far to trust the model.

Each function ``about_*`` makes a section of the page from a `Context`; other pages use some of them, too. Cost: `cv`
fits of a copy of the model, one transform of all objects, and measurements on a few hundred of them.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from sklearn.metrics import confusion_matrix

from similia.core.intervals import wilson
from similia.core.text import counted, number
from similia.core.validation import BadParameter, check_positive_int, generator
from similia.objects import take
from similia.objects.sequences import item
from similia.report import _context as scores
from similia.report._context import SIZE_OF, TEXTS, Context, described, for_page, gather, on_page, quietly, refuse_path
from similia.report._model import taken
from similia.report._render import Cell, Section, Table, charts, mark_class, marker, page, percent
from similia.report.approximation import ApproximationErrorDisplay, SpectrumDisplay
from similia.report.displays import bins_of, line, mark, plane
from similia.selection.folds import SHARE
from similia.similarity import Distance, without_addresses
from similia.storage.disk import text_destination, write_text
from similia.storage.models import save

_MARKS = 20  # maximum number of classes with their own mark on the map
_STEPS = 7  # colour steps for numbers on the map
_LISTED = 50  # classes in the table of their sizes
_MAP = (720, 520)  # width and height
_QUERIES, _NEIGHBOURS = 6, 4  # objects whose neighbours are shown, and the neighbours of each
_FEW = 10  # minimum number of objects besides the landmarks to measure an error
_PAIRED = 400  # maximum number of objects for a kernel of all pairs
_SAMPLE = 300  # maximum number of objects for a spectrum
_OPEN = 2  # number of explanations that are initially open
_SECONDS, _BYTES = "s ms µs ns", "GB MB kB bytes"
_ROWS = 24  # classes in a confusion matrix
_MISTAKES = 10  # maximum number of mistakes in the table
_SIZES = 4  # the last column of the table of sets is for this many labels or more
_QUARTERS = 4  # groups of equal size, by predicted number, of which coverage is shown
_USUAL = 0.9  # coverage at the head of the page
_SCATTERED = 2000  # maximum number of predictions in the chart
_INTERVALS = (  # of classes, and of numbers
    "Intervals contain the true score for objects from the same source in about 95 % of cases, if predictions are "
    "independent; predictions of cross-validation are not quite independent.",
    "Intervals contain the true score for objects from the same source in about 95 % of cases, if errors are about "
    "normal; if a few large errors make up most of the mean, in 75 % (20 objects) to 90 % (200 objects).",
)
_UNUSED = (  # with and without cross-validation
    "No object was used to fit or to calibrate the copy of the model that predicted it. ",
    "You stated that the model has seen none of these objects. ",
)
_CONSTANT = ("by frequency", "the most frequent class"), ("by the mean", "the mean target")


def in_units(value: float, units: str) -> str:
    """Format a value in the largest of `units` (``"s ms µs ns"`` or ``"GB MB kB bytes"``) that it reaches."""
    size = 1e9 if units.startswith("GB") else 1.0
    *larger, unit = units.split()
    for larger_unit in larger:
        if value >= size:
            unit = larger_unit
            break
        size /= 1000
    return f"{value / size:.3g} {unit}"


def about_data(context: Context) -> Section:
    seen, y = context.seen, context.y
    rows = [("kind", seen.kind), ("objects", f"{context.n:,}")]
    if seen.sizes is not None:
        low, middle, high = np.quantile(seen.sizes, [0, 0.5, 1])
        rows.append((SIZE_OF[seen.kind], f"{number(low)} to {number(high)}, median {number(float(middle))}"))
        rows.append(("empty objects", f"{int((seen.sizes == 0).sum()):,}"))
    rows.append(("objects equal to an earlier one", f"{seen.duplicates:,}"))
    if y is not None:
        rows.append(("of these, with another target", f"{_contradictions(seen.groups, y):,}"))
    tables = [Table("The objects", rows, text_columns=2, sortable=False)]
    if y is not None and not context.is_regression and y.dtype.kind != "f":
        classes, counts = np.unique(y, return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:_LISTED]
        more = f" (the {_LISTED} largest of {len(classes)})" if len(classes) > _LISTED else ""
        shares: list[list[str | Cell]] = [
            [str(classes[c]), Cell(f"{counts[c]:,}", counts[c]), Cell(percent(counts[c] / context.n), counts[c])]
            for c in largest
        ]
        tables.append(Table(f"Classes{more}", shares, ["class", "objects", "share"]))
    drawn = "" if context.n == context.n_all else f" This page is about {context.n:,} of them, drawn at random."
    text = f"The data are {context.n_all:,} {seen.kind}.{drawn}"
    return Section("data", "The data", text=text, tables=tables, charts=_histogram(context))


def _contradictions(groups: npt.NDArray, y: npt.NDArray) -> int:
    """Count the objects whose target differs from that of the first object equal to them."""
    first: dict[int, Any] = {}
    return sum(first.setdefault(g, value) != value for g, value in zip(groups.tolist(), y.tolist(), strict=True))


def _histogram(context: Context) -> list[Any]:
    """Return a histogram of numeric targets, or else of the objects' sizes; [] if sizes are unknown or all equal."""
    values = context.seen.sizes
    if context.is_regression and context.y is not None:
        values, label, title = context.y.astype(np.float64), "target", "Targets"
    elif values is None or values.min() == values.max():
        return []
    else:
        label = SIZE_OF[context.seen.kind]
        title = f"Sizes of the objects, in {label}"
    whole = context.seen.kind != "vectors" and not context.is_regression
    bins = int(min(24, values.max() - values.min() + 1)) if whole else 24
    counts, edges = np.histogram(values, bins_of(values, bins))

    def draw(axis: Any) -> None:
        axis.bar(edges[:-1], counts, 0.95 * np.diff(edges), align="edge", color=mark(0)["color"])
        axis.set(xlabel=label, ylabel="objects")

    return charts(draw, title)


def about_map(context: Context) -> Section:
    """Draw the vectors as a map in two dimensions; the script of the page shows the object behind each point."""
    if context.vectors is None:
        return Section("map", "Map", missing=f"There is no embedding: {context.no_vectors}.")
    points, shares = plane(context.vectors.vectors, context.seed)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = float(np.min((np.array(_MAP) - 40) / np.maximum(high - low, 1e-300))) if (high > low).any() else 1.0
    x, y = ((points - (low + high) / 2) * scale * [1, -1] + np.array(_MAP) / 2).round(1).T.tolist()
    of_object, labels = _marks(context)
    size = float(np.clip(60 / np.sqrt(context.n), 1.6, 5))
    marks = [
        {
            "label": label,
            "css": mark_class(i, context.is_regression) if i < _MARKS else "kx",
            "key": marker(i, 7, 7, 4.5),
            "points": "".join(marker(i, x[j], y[j], size) for j in np.flatnonzero(of_object == i).tolist()),
        }
        for i, label in enumerate(labels)
    ]
    text = (
        f"The first two principal components of the vectors by {context.vectors.how}: {percent(shares[0])} and "
        f"{percent(shares[1])} of the variance. The map cannot show differences in other dimensions."
    )
    shown = {"title": f"Map of {context.n:,} {context.seen.kind}", "width": _MAP[0], "height": _MAP[1], "marks": marks}
    data = {"x": x, "y": y, "mark": of_object.tolist(), "facts": _facts(context)}
    return Section("map", "Map", text=text, map=shown, data=data)


def _marks(context: Context) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the number of each object's mark on the map, and the label of each mark: a class or a range of targets."""
    y = context.y
    if y is None:
        return np.zeros(context.n, dtype=np.int64), [context.seen.kind]
    if context.is_regression:
        edges = np.unique(np.quantile(y.astype(float), np.linspace(0, 1, _STEPS + 1)))
        bins = np.clip(np.searchsorted(edges, y.astype(float), side="right") - 1, 0, max(len(edges) - 2, 0))
        return bins, [f"{number(a)} to {number(b)}" for a, b in pairwise(edges)] or [number(y[0])]
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MARKS])
    marks = np.full(len(classes), len(shown))
    marks[shown] = np.arange(len(shown))
    labels = [str(classes[c]) for c in shown]
    labels += [f"{len(classes) - len(shown)} other classes"] if len(classes) > len(shown) else []
    return marks[codes], labels


def _target(context: Context, value: Any) -> str:
    return number(value) if context.is_regression else str(value)


def _facts(context: Context) -> list[tuple[str, list[str]]]:
    told = [("target" if context.is_regression else "class", context.y)]
    told += [("predicted", context.scored.predicted)] if context.scored is not None else []
    return [(name, [_target(context, v) for v in values.tolist()]) for name, values in told if values is not None]


def about_neighbours(context: Context) -> Section:
    """Show the nearest neighbours of a few objects, and explain why the nearest one is near.

    For a model without a kernel or distance, explain its prediction instead.
    """
    name, title = "neighbours", "Nearest neighbours, explained"
    if context.n < 3:
        return Section(name, title, missing=f"{context.n} objects are too few to show neighbours.")
    queries = _queries(context)
    measured, reason = _measured(_nearest, context, queries)
    if measured is None:
        return Section(name, title, missing=f"Objects could not be compared: {reason}")
    rows, distances, what = measured
    metric = context.parts.metric
    relation = "near" if metric and isinstance(metric.function, Distance) else "like"
    why = f"Why the first is {relation} it" if metric else "Why this is predicted"
    found = [
        {
            "object": object_on_page(context, query),
            "near": [(number(value), object_on_page(context, j)) for j, value in zip(near, values, strict=True)],
            "explained": _explained(context, query, near[0]),
            "why": why,
            "is_open": place < _OPEN,
        }
        for place, (query, near, values) in enumerate(
            zip(queries.tolist(), rows.tolist(), distances.tolist(), strict=True)
        )
    ]
    text = f"{len(queries)} objects, each with its {rows.shape[1]} nearest neighbours by {what}."
    return Section(name, title, text=text, neighbourhoods=found)


def object_on_page(context: Context, i: int) -> dict[str, Any]:
    target = "" if context.y is None else f" · {_target(context, context.y[i])}"
    return on_page(context.seen, i, f"{context.names[i]}{target}")


def _queries(context: Context) -> npt.NDArray[np.int64]:
    """Choose up to 6 objects to show, from each class in turn; at most 2 of the 6 are predicted wrongly."""
    order = generator(context.seed).permutation(context.n)
    found = context.scored
    wrong = np.zeros(context.n, bool) if found is None or context.is_regression else found.predicted != found.truth
    classes = np.zeros(context.n, int) if context.y is None else np.unique(context.y, return_inverse=True)[1]
    rank = np.zeros(context.n, int)
    for members in (wrong, ~wrong):
        for value in np.unique(classes):
            of_class = order[(classes[order] == value) & members[order]]
            rank[of_class] = np.arange(len(of_class))
    ordered = order[np.argsort(rank[order], kind="stable")]
    mistakes = ordered[wrong[ordered]][: _QUERIES // 3]
    return np.concatenate([ordered[~wrong[ordered]][: _QUERIES - len(mistakes)], mistakes])


def _nearest(context: Context, queries: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray, str]:
    """Return the positions of the objects nearest to each query, their distances, and the name of the distance."""
    metric = context.parts.metric
    if metric is not None:
        X = metric.as_objects(context.X)
        distances = metric.distances(take(X, queries), X).astype(np.float64)
        what = without_addresses(metric.function)
        if metric.is_kernel:
            what = f"the distance √(k(x, x) + k(y, y) − 2 k(x, y)), where k is {what}"
    elif context.vectors is not None:
        from sklearn.metrics.pairwise import euclidean_distances

        vectors = context.vectors.vectors
        distances = euclidean_distances(vectors[queries], vectors)
        what = f"Euclidean distance after {context.vectors.how}"
    else:
        raise ValueError(context.no_vectors)
    others = distances.copy()
    others[np.arange(len(queries)), queries] = np.inf
    rows = np.argsort(others, axis=1, kind="stable")[:, : min(_NEIGHBOURS, context.n - 1)]
    return rows, np.take_along_axis(distances, rows, axis=1), what


def _explained(context: Context, i: int, j: int) -> Markup | None:
    """Explain in HTML why `i` and `j` are similar or, without a metric, the prediction of `i`; None if impossible."""
    metric = context.parts.metric
    if metric is None:
        return explained(context.parts.whole, item(context.X, i))
    pair = take(metric.as_objects(context.X), [i, j])
    return explained(metric.function, pair[0], pair[1])


def explained(*arguments: Any) -> Markup | None:
    from similia.explanations import explain

    try:
        return Markup(quietly(explain, *arguments).to_html())
    except (ImportError, TypeError, ValueError, NotImplementedError):
        return None


def _measured(measure: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    try:
        return quietly(measure, *arguments), ""
    except (ValueError, TypeError) as error:
        return None, str(error)


def about_spectrum(context: Context) -> Section:
    name, title = "spectrum", "Spectrum and rank"
    found, why = _measured(SpectrumDisplay._measured, context.parts, context.X, _SAMPLE, context.seed)
    if found is None:
        return Section(name, title, missing=f"There is no spectrum to show: {why}.")
    values = np.abs(found.eigenvalues)
    if values.max() == 0:
        return Section(name, title, missing="All similarities are 0, and so are all eigenvalues.")
    half = int(np.searchsorted(np.cumsum(values), 0.9 * values.sum()) + 1)
    text = f"Eigenvalues of {found.of}: {found.rank} of {len(values)} are kept; {half} make up 90 % of the sum. "
    if found.clipped:
        text += f"{percent(found.clipped)} of the sum is negative: the similarity is indefinite."
    else:
        text += "None is negative beyond rounding."
    picture = charts(found.plot, "Size of each eigenvalue, largest first")
    return Section(name, title, text=text, charts=picture)


def about_approximation(context: Context) -> Section:
    name, title = "approximation", "Error of the approximation"
    others = np.flatnonzero(~context.known)
    others = others if len(others) >= _FEW else np.arange(context.n)
    X = taken(context.X, others)
    found, why = _measured(ApproximationErrorDisplay._measured, context.parts, X, None, _PAIRED, context.seed)
    if found is None:
        return Section(name, title, missing=f"This does not apply: {why}.")
    if len(found.sizes) < 2 or not (found.errors > 1e-12).any():
        return Section(name, title, missing=f"With {found.sizes[-1]} {found.of} the kernel is exact up to rounding.")
    text = (
        f"Relative error in the Frobenius norm against {found.against}. With all {found.sizes[-1]:,} {found.of} it is "
        f"{number(float(found.errors[-1]))}; if the curve still falls there, more would help."
    )
    if len(others) > _PAIRED:
        text += f" It needs the kernel of all pairs of objects, so {_PAIRED} objects were drawn at random."
    if len(others) < context.n:
        text += " Objects that are landmarks are left out, because their kernel is exact."
    picture = charts(found.plot, "Error of the kernel")
    return Section(name, title, text=text, charts=picture)


def about_bits(context: Context) -> Section:
    title = "How many bits are needed"
    found = None if context.scored is None else context.scored.robustness
    if found is None:
        codes = None if context.vectors is None else context.vectors.codes
        why = "The model makes no packed bits." if codes is None else "The learner of this model does not take bits."
        if codes is not None and context.scored is not None and not context.scored.n_folds:
            why = "This needs the training objects of the model, to train it again on shorter codes."
        return Section("bits", title, missing=why if context.scored is not None else f"{why} {context.unscored}")
    pictures = charts(
        lambda *axes: found.plot(axes),
        "Accuracy when bits of the codes are flipped at random",
        "Accuracy of a learner trained on the first bits only",
    )
    text = f"Measured on the {found.n:,} objects of the first fold; bands are 95 % intervals."
    rows = [[f"{b:,}", percent(a)] for b, a in zip(found.n_bits.tolist(), found.shortened.tolist(), strict=True)][::-1]
    numbers = Table("Accuracy by number of bits", rows, ["bits", "accuracy"])
    return Section("bits", title, text=text, charts=pictures, beside=False, details=numbers)


def about_cost(context: Context) -> Section:
    rows = []
    if context.scored is not None and context.scored.fit_seconds:
        fit = float(np.median(context.scored.fit_seconds))
        rows.append(("fitting, per object", in_units(fit, _SECONDS)))
    if context.vectors is not None:
        rows.append(("transforming, per object of many", in_units(context.transform_seconds, _SECONDS)))
    size, how, note = _model_size(context.parts.whole)
    rows.append((f"the model, {how}", size))
    if context.vectors is not None:
        rows.append(("numbers of a vector", f"{context.vectors.vectors.shape[1]:,}"))
        codes = context.vectors.codes
        rows.append(("bits of a code", f"{8 * codes.shape[1]:,}" if codes is not None else "makes no packed bits"))
    table = Table("On this machine, in this run", rows, sortable=False)
    return Section("cost", "What it costs", tables=[table], note=note, cards=[("model", size, how)])


def _model_size(model: Any) -> tuple[str, str, str]:
    """Return three texts: the size of a model, how it was saved, and why `similia.save` refused it, if it did."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return in_units(save(model, Path(folder) / "model").stat().st_size, _BYTES), "on disk", ""
    except (TypeError, ValueError) as error:
        refused = f"similia.save refuses the model: {error}"
    try:
        return in_units(len(pickle.dumps(model)), _BYTES), "pickled", refused
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return "–", "which cannot be saved", f"{refused}; pickle refuses it, too: {error}"


def about_accuracy(context: Context) -> Section:
    found, title = context.scored, "How well it predicts"
    if found is None:
        return Section("accuracy", title, missing=context.unscored)
    said = [f"{found.how[0].upper()}{found.how[1:]}."]
    if found.n_folds and not context.refitted:
        said.append("The given model may have been fitted to these objects, so it was not scored on them itself.")
    vote = context.parts.vote
    if hasattr(vote, "voters"):
        said.append(
            f"{len(vote.voters)} models vote. The predictions are those of the vote; other sections show the first "
            "model."
        )
    elif vote is not None:
        said.append(f"The predictions are those of the {type(vote).__name__}; other sections show the model inside it.")
    if found.n_folds and context.tuned:
        said.append("All folds used the parameters that a search chose, so these scores may be a little too good.")
    if not found.n_folds and context.known.any():
        said.append(f"But {int(context.known.sum()):,} of these objects equal landmarks of the model.")
    if found.n_folds and context.seen.duplicates:
        said.append("Equal objects were in the same fold.")
    if found.n_folds and context.near_copies:
        said.append(f"Texts with at least {100 * SHARE:g} % of their words in common were in the same fold.")
    said.append(_INTERVALS[context.is_regression])
    rows, cards = _regression(found) if context.is_regression else _classification(found)
    constant = _CONSTANT[context.is_regression]
    head = ["", "value", "95 % interval", "by neighbours", constant[0]]
    note = f"By neighbours: from the 5 nearest training objects; {constant[0]}: always {constant[1]}."
    table = Table("Predictions of unseen objects", rows, head, sortable=False)
    pictures = _scatter(found) if context.is_regression else []
    contents: dict[str, Any] = {"tables": [table], "note": note, "charts": pictures, "cards": cards}
    return Section("accuracy", title, text=" ".join(said), beside=False, **contents)


def summary(context: Context) -> dict[str, Any] | None:
    """Return the main score with its 95 % interval, and for classes the score of the most frequent; None unscored.

    For a conformal model, also return the coverage reached by the coverage asked for.
    """
    found = context.scored
    if found is None:
        return None
    n = len(found.truth)
    cross: dict[str, Any] = {"folds": found.n_folds}
    reached = {f"{c:g}": float(each.held.mean()) for c, each in found.conformal.items() if not isinstance(each, str)}
    if reached:
        cross["coverage"] = reached
    if context.is_regression:
        value, *interval = scores.regression_scores(found.truth.astype(np.float64), found.predicted)["R²"]
        return {"objects": n, **cross, "r_squared": value, "interval": interval}
    share, floor = (float((predicted == found.truth).mean()) for predicted in (found.predicted, found.floor))
    return {"objects": n, **cross, "accuracy": share, "interval": [*wilson(share, n)], "most_frequent": floor}


def _classification(found: scores.Scored) -> tuple[list[Any], list[tuple[str, str, str]]]:
    """Return the rows of the table of scores, and (name, value, note) of the numbers at the head of the page."""

    def accuracy(predicted: npt.NDArray) -> tuple[float, float, float]:
        share = float((predicted == found.truth).mean())
        return share, *wilson(share, len(found.truth))

    rows = []
    for name, score in (("accuracy", accuracy), ("balanced accuracy", partial(scores.balanced, found.truth))):
        value, low, high = score(found.predicted)
        beside = ["–" if p is None else percent(score(p)[0]) for p in (found.neighbours, found.floor)]
        rows.append([name, percent(value), f"{100 * low:.1f} to {100 * high:.1f} %", *beside])
    name = "accuracy, cross-validated" if found.n_folds else "accuracy"
    floor = ("always the most frequent", percent(accuracy(found.floor)[0]), "accuracy to beat")
    return rows, [(name, rows[0][1], rows[0][2]), floor]


def _regression(found: scores.Scored) -> tuple[list[Any], list[tuple[str, str, str]]]:
    truth = found.truth.astype(np.float64)
    values = scores.regression_scores(truth, found.predicted)
    others = [p if p is None else scores.errors(truth, p.astype(np.float64)) for p in (found.neighbours, found.floor)]
    rows = []
    for name, (value, low, high) in values.items():
        beside = ["–" if other is None else number(other[name]) for other in others]
        rows.append([name, number(value), f"{number(low)} to {number(high)}", *beside])
    r2, mae = values["R²"], values["mean absolute error"]
    return rows, [
        ("R², cross-validated" if found.n_folds else "R²", f"{r2[0]:.3f}", f"{r2[1]:.3f} to {r2[2]:.3f}"),
        ("mean absolute error", number(mae[0]), f"{number(mae[1])} to {number(mae[2])}"),
    ]


def _scatter(found: scores.Scored) -> list[Any]:
    truth, predicted = found.truth[:_SCATTERED].astype(np.float64), found.predicted[:_SCATTERED]
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]

    def draw(axis: Any) -> None:
        axis.plot(ends, ends, color="0.45", linestyle="--", linewidth=1)
        axis.plot(truth, predicted, **{**mark(0), "linestyle": "none", "markersize": 3, "alpha": 0.6})
        axis.set(xlabel="true", ylabel="predicted")

    first = f" (the first {_SCATTERED:,} objects)" if len(found.truth) > _SCATTERED else ""
    return charts(draw, f"Predicted against true targets{first}")


def about_confusion(context: Context) -> Section:
    found, title = context.scored, "Which classes are confused"
    if found is None:
        return Section("confusion", title, missing=context.unscored)
    classes, counts = np.unique(found.truth, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_ROWS])
    matrix = confusion_matrix(found.truth, found.predicted, labels=classes)
    called = matrix.sum(axis=0)
    rows: list[list[str | Cell]] = []
    for c in shown:
        recall, precision = matrix[c, c] / counts[c], matrix[c, c] / called[c] if called[c] else float("nan")
        shares = [Cell(percent(v), v) if v == v else Cell("–", -1.0) for v in (recall, precision)]
        cells = [
            Cell(f"{matrix[c, k]:,}", matrix[c, k], matrix[c, k] / counts[c], "hit" if c == k else "miss")
            for k in shown
        ]
        rows.append([str(classes[c]), *cells, *shares])
    names = [str(classes[c]) for c in shown]
    names = [name if len(name) <= 24 else f"{name[:23]}…" for name in names]
    head = ["true class", *(f"→ {name}" for name in names), "recall", "precision"]
    some = "" if len(shown) == len(classes) else f" (the {len(shown)} largest of {len(classes)} classes)"
    table = Table(f"Objects of each class (rows) by predicted class (columns){some}", rows, head)
    mistakes = _mistakes(context, found)
    note = "" if mistakes else "No object was predicted wrongly."
    return Section("confusion", title, tables=[table, *mistakes], note=note)


def _mistakes(context: Context, found: scores.Scored) -> list[Table]:
    """Return a list with a table of wrong predictions, the most confident first; [] if there are none."""
    wrong = np.flatnonzero(found.predicted != found.truth)
    lead, what = scores.lead(found), ""
    if lead is not None:
        wrong, what = wrong[np.argsort(-lead[wrong], kind="stable")], ", the most confident ones first"
    rows = []
    for i in wrong[:_MISTAKES].tolist():
        text = described(context.seen, i)
        shown = Cell(text[:160], css="mono") if context.seen.kind in TEXTS else Cell(text, css="wide", drawn=i)
        rows.append([context.names[i], str(found.truth[i]), str(found.predicted[i]), shown])
    caption = f"{len(rows)} of {len(wrong):,} mistakes{what}"
    return [Table(caption, rows, ["name", "true", "predicted", "object"], text_columns=4)] if rows else []


def about_calibration(context: Context) -> Section:
    found, title = context.scored, "How far it can be trusted"
    if found is None:
        return Section("calibration", title, missing=context.unscored)
    groups = scores.reliability(found)
    if groups is None:
        why = "The learner does not give probabilities or decision values for all classes in all folds."
        return Section("calibration", title, missing=why)
    means, accuracies, sizes, bounds = groups
    if found.probabilities:
        gap = float(np.average(np.abs(means - accuracies), weights=sizes))
        text = f"Of predictions with probability p, a share p should be right; the mean difference is {percent(gap)}."
        caption, label = "Accuracy against probability", "largest probability (%)"
    else:
        text = (
            "The learner gives decision values, which are not probabilities. Objects are put into ten groups by the "
            "lead of the winning class: its value minus that of the next class. If the curve rises, be wary of "
            "predictions with a small lead."
        )
        caption, label = "Accuracy against the lead of the winning class", "objects with a smaller lead (%)"

    def draw(axis: Any) -> None:
        if found.probabilities:
            axis.plot([0, 100], [0, 100], color="0.45", linestyle="--", linewidth=1)
        axis.fill_between(100 * means, *(100 * bounds.T), color=mark(0)["color"], alpha=0.15, linewidth=0)
        axis.plot(100 * means, 100 * accuracies, **line(0))
        axis.set(xlabel=label, ylabel="right (%)", xlim=(0, 102), ylim=(0, 102))

    return Section("calibration", title, text=text, charts=charts(draw, caption))


def about_sets(context: Context) -> Section | None:
    """Show how often sets or intervals hold the truth, and how large they are; None if the model is not conformal."""
    model = next((one for one in (context.parts.vote, context.parts.learner) if scores.is_conformal(one)), None)
    if model is None:
        return None
    what, one = ("intervals", "the true number") if context.is_regression else ("sets of labels", "the true label")
    name, title = "sets", f"How often {what} hold {one}"
    if context.scored is None:
        return Section(name, title, missing=context.unscored)
    found = {c: each for c, each in context.scored.conformal.items() if not isinstance(each, str)}
    refused = [each for each in context.scored.conformal.values() if isinstance(each, str)]
    if not found:
        return Section(name, title, missing=f"Not with so few objects: {refused[0]}.")
    text = (
        f"The model predicts {what} that should hold {one} as often as you ask. Coverage is the share of objects for "
        "which they do. "
    )
    if not context.is_regression:
        text += (
            "A set with several labels says that the model cannot tell them apart; an empty set, that no label fits "
            "well enough. "
        )
    text += _UNUSED[context.scored.n_folds == 0]
    if context.is_regression:
        text += "Coverage is promised for all objects together; where it is low, do not rely on the intervals."
    elif getattr(model, "by_class", False):
        text += "The model is calibrated by class, so coverage is promised within each class."
    else:
        text += "Coverage is promised for all objects together; by_class=True promises it within each class."
    rows, head = _sizes(found, len(np.unique(context.scored.truth)), context.is_regression)
    tables = [
        Table(f"Coverage and size of the {what}", rows, head, sortable=False),
        _by_group(context.scored, found, context.is_regression),
    ]
    note = " ".join(f"{each}." for each in refused)
    return Section(name, title, text=text, tables=tables, note=note, cards=_usual(found, context.is_regression))


def _usual(found: dict[float, scores.Answers], regression: bool) -> list[tuple[str, str, str]]:
    if _USUAL not in found:
        return []
    held, sizes = found[_USUAL]
    note = f"{number(float(sizes.mean()))} {'wide' if regression else 'labels'} on average"
    return [(f"coverage, {100 * _USUAL:g} % asked", percent(held.mean()), note)]


def _sizes(found: dict[float, scores.Answers], n_classes: int, regression: bool) -> tuple[list[list[str]], list[str]]:
    """Return the rows and the head of a table: for each coverage asked for, that reached, and sizes or widths."""
    counts = range(min(n_classes, _SIZES) + 1)
    rows = []
    for coverage, (held, sizes) in found.items():
        low, high = wilson(float(held.mean()), len(held))
        if regression:
            shown = [number(float(value)) for value in (sizes.mean(), sizes.min(), np.median(sizes), sizes.max())]
        else:
            shown = [percent(float((np.minimum(sizes, counts[-1]) == k).mean())) for k in counts]
            shown = [number(float(sizes.mean())), *shown]
        rows.append([f"{100 * coverage:g} %", percent(held.mean()), f"{100 * low:.1f} to {100 * high:.1f} %", *shown])
    if regression:
        return rows, ["asked", "reached", "95 % interval", "mean width", "narrowest", "median", "widest"]
    names = [counted(k, "label") + " or more" * (k == _SIZES < n_classes) for k in counts]
    return rows, ["asked", "reached", "95 % interval", "mean size", *names]


def _by_group(scored: scores.Scored, found: dict[float, scores.Answers], regression: bool) -> Table:
    """Return a table of the coverage within each of the largest classes, or each quarter of the predicted numbers."""
    if regression:
        predicted = scored.predicted.astype(np.float64)
        quarters = np.array_split(np.argsort(predicted, kind="stable"), min(_QUARTERS, len(predicted)))
        groups = [(f"{number(predicted[q].min())} to {number(predicted[q].max())}", q) for q in quarters]
        caption, first = "Coverage by predicted number", "predicted"
    else:
        classes, counts = np.unique(scored.truth, return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:_LISTED]
        groups = [(str(classes[c]), np.flatnonzero(scored.truth == classes[c])) for c in largest]
        more = f" (the {_LISTED} largest of {len(classes)})" if len(classes) > _LISTED else ""
        caption, first = f"Coverage by class{more}", "true class"
    rows: list[list[str | Cell]] = []
    for name, members in groups:
        shares = [float(each.held[members].mean()) for each in found.values()]
        rows.append([name, Cell(f"{len(members):,}", len(members)), *(Cell(percent(share), share) for share in shares)])
    return Table(caption, rows, [first, "objects", *(f"{100 * coverage:g} % asked" for coverage in found)])


def write_report(
    model: Any, X: Any, y: Any = None, path: str | os.PathLike[str] | TextIO = "report.html", *,
    title: str | None = None, names: Any = None, unseen: bool = False, cv: int = 5, groups: Any = None,
    max_objects: int = 5000, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write a report on a model and objects as one self-contained HTML page.

    If a section cannot be made, the page gives the reason instead. For a `ConformalClassifier` or `ConformalRegressor`,
    a section shows the coverage of its sets or intervals: the share of objects whose label or number they contain. The
    section compares this share with the requested coverage, over all objects, and also within each of the largest
    classes (for a classifier) or within each quarter of the predicted numbers (for a regressor).

    Parameters
    ----------
    model : estimator or pipeline
        A model of `similia.recipes`, or your own pipeline, with or without a classifier or regressor at its end. If the
        model is not fitted, a copy of it is fitted to the objects on the page. If `model` is a fitted parameter search,
        the report shows the model that the search chose.
    X : collection of n objects
        Objects in any form that the model accepts.
    y : array-like of n labels or numbers, optional
        Targets. Without them, the page has no scores.
    path : str, path or text file, default="report.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str, optional
        Names of the objects; by default their positions in `X`.
    unseen : bool, default=False
        Whether the model was fitted without any object of `X`. If True, the predictions of the model itself are scored.
        If False, the report cross-validates: each fold is predicted by a copy of the model that was fitted to the other
        folds. The copy also refits estimators that are wrapped in scikit-learn's `FrozenEstimator`.
    cv : int, default=5
        Number of folds, at least 2; fewer are used if there are too few objects. Equal objects are in the same fold.
        Texts that share at least 80 % of their words (near copies) are also kept in the same fold, except in three
        cases: you give `groups`; there are more near copies of one text than a fold holds; or keeping them together
        would leave some folds without a text of a class.
    groups : array-like of shape (n,), optional
        Group of each object, such as a patient; the objects of a group are in the same fold.
    max_objects : int, default=5000
        Maximum number of objects on the page. If there are more, a random sample is used and the page says so.
    random_state : int, default=0
        Seed for drawing objects and folds.

    Returns
    -------
    Path or text file
        Where the report was written.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file that is open for text.
    ValueError
        If there are no objects; if `y` or `names` has another length than `X`; if `unseen` is True but the model is not
        fitted; if no label in `y` is a class of a fitted classifier; if the kernel is precomputed; or if `model`
        neither predicts nor transforms, such as a `similia.SimilaritySearch`.
    FileNotFoundError
        If the folder of `path` does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_report
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), n_landmarks=50, n_bits=512, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, X, y, f"{folder}/report.html")
    ...     "How well it predicts" in path.read_text()
    True
    """
    return write_with_scores(
        model, X, y, path, title=title, names=names, unseen=unseen, cv=cv, groups=groups, max_objects=max_objects,
        random_state=random_state,
    )[0]  # fmt: skip


def write_with_scores(
    model: Any, X: Any, y: Any, path: Any, *, title: str | None = None, names: Any = None, unseen: bool = False,
    cv: int = 5, groups: Any = None, max_objects: int = 5000, random_state: int = 0,
) -> tuple[Any, dict[str, Any] | None, str]:  # fmt: skip
    """Write a report like `write_report`; return its place, the main scores or None, and why there are none."""
    refuse_path(y, "y")
    place = text_destination(path)
    check_positive_int(cv, "cv", minimum=2)
    check_positive_int(max_objects, "max_objects", minimum=2)
    if not hasattr(model, "transform") and not hasattr(model, "predict"):
        remedy = "for a search, use similia.report.write_search"
        raise BadParameter("model", "an estimator that predicts or transforms", type(model).__name__, remedy)
    context = gather(model, X, y, names, unseen, cv, max_objects, random_state, groups)
    write_text(_page_of(context, title), place)
    return place, summary(context), context.unscored


def _page_of(context: Context, title: str | None) -> str:
    sections = [
        about_data(context),
        about_accuracy(context),
        *([] if context.is_regression else [about_confusion(context), about_calibration(context)]),
        *([] if (sets := about_sets(context)) is None else [sets]),
        about_map(context),
        about_neighbours(context),
        about_spectrum(context),
        about_approximation(context),
        about_bits(context),
        about_cost(context),
    ]
    counted = f"of {context.n_all:,}, drawn at random" if context.n < context.n_all else context.seen.kind
    return page(
        "page",
        title=title or f"Report: {context.seen.kind}",
        model=context.parts,
        parameters=without_addresses(context.parts.whole),
        cards=[("objects", f"{context.n:,}", counted), *(card for section in sections for card in section.cards)],
        sections=sections,
        data={"objects": for_page(context.seen), "names": context.names},
    )
