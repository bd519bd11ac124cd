"""Sections of the report about the data, the predictions and the cost; each says in a sentence why it is empty."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import confusion_matrix

from similia.core.intervals import wilson
from similia.report import _measures as scores
from similia.report._context import Context
from similia.report._html import (
    Axis,
    Cell,
    Curve,
    Section,
    chart,
    escape,
    n_bytes,
    number,
    paragraph,
    percent,
    seconds,
    side_by_side,
    table,
)
from similia.report._objects import SIZE_OF, TEXTS, described

_MOST_CLASSES = 24  # rows of a confusion matrix
_MISTAKES = 10

Card = tuple[str, str, str]


def interval(low: float, high: float) -> str:
    """Return an interval of shares."""
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def about_data(context: Context) -> Section:
    """What the objects are: kind, sizes, classes, empty and repeated ones."""
    seen, parts = context.seen, []
    drawn = "" if context.n == context.n_all else f" This page is about {context.n:,} of them, drawn at random."
    rows: list[tuple[str, str]] = [("kind", seen.kind), ("objects", f"{context.n:,}")]
    if seen.sizes is not None:
        low, middle, high = np.quantile(seen.sizes, [0, 0.5, 1])
        rows.append((SIZE_OF[seen.kind], f"{number(low)} to {number(high)}, median {number(float(middle))}"))
        rows.append(("empty objects", f"{int((seen.sizes == 0).sum()):,}"))
    rows.append(("objects equal to an earlier one", f"{seen.duplicates:,}"))
    if context.y is not None:
        rows.append(("of these, with different targets", f"{_contradictions(seen.groups, context.y):,}"))
    parts.append(paragraph(f"{context.n_all:,} {seen.kind} were given.{drawn}"))
    parts.append(table("The objects", ["", ""], rows, text_columns=2, sortable=False))
    if context.y is not None and not context.is_regression and context.y.dtype.kind != "f":
        classes, counts = np.unique(context.y, return_counts=True)
        shares: list[list[str | Cell]] = [
            [str(classes[c]), Cell(f"{counts[c]:,}", counts[c]), Cell(percent(counts[c] / context.n), counts[c])]
            for c in np.argsort(-counts, kind="stable")
        ]
        more = "" if len(shares) <= 50 else f" (the 50 largest of {len(shares)})"
        parts.append(table(f"Classes{more}", ["class", "objects", "share"], shares[:50]))
    picture = _histogram(context)
    return Section("data", "The data", side_by_side("".join(parts), picture))


def _contradictions(groups: npt.NDArray, y: npt.NDArray) -> int:
    """Return how many objects equal an earlier one of another target."""
    first: dict[int, Any] = {}
    return sum(first.setdefault(g, value) != value for g, value in zip(groups.tolist(), y.tolist(), strict=True))


def _histogram(context: Context) -> str:
    sizes = context.seen.sizes
    if context.is_regression and context.y is not None:
        sizes, label = context.y.astype(np.float64), "target"
    elif sizes is None or sizes.min() == sizes.max():
        return ""
    else:
        label = SIZE_OF[context.seen.kind]
    whole = context.seen.kind != "vectors" and not context.is_regression
    width = sizes.max() - sizes.min() + 1 if whole else 24
    edges = np.histogram_bin_edges(sizes, int(min(24, width)))
    counts = np.histogram(sizes, edges)[0]
    x = Axis(label, float(edges[0]), float(edges[-1]) + (edges[0] == edges[-1]))
    y = Axis("objects", 0, float(counts.max()) * 1.05)
    bars = _bars(edges, counts, x, y)
    title = "Targets" if context.is_regression else f"Sizes of the objects, in {label}"
    return chart(title, x, y, [], bars)


def _bars(edges: npt.NDArray, counts: npt.NDArray, x: Axis, y: Axis) -> str:
    from similia.report._html import frame

    left, top, width, height = frame()
    parts = []
    for a, b, count in zip(edges, edges[1:], counts, strict=False):
        start, end = (left + width * float(v) for v in x.at([a, b]))
        tall = height * float(y.at([count])[0])
        shape = f"M{start + 0.5:.1f} {top + height}v{-tall:.1f}h{max(0.5, end - start - 1):.1f}v{tall:.1f}z"
        parts.append(
            f'<path class="k0" d="{shape}"><title>{number(a)} to {number(b)}: {count:,} objects</title></path>'
        )
    return "".join(parts)


_INTERVALS = (
    "Intervals hold in about 95 % of cases for other objects drawn alike, if predictions are independent; those of "
    "cross-validation are not quite.",
    "Intervals hold in about 95 % of cases for other objects drawn alike, if errors are about normal; where few large "
    "errors make up the mean, in 75 % (20 objects) to 90 % (200).",
)


def about_accuracy(context: Context) -> tuple[Section, list[Card]]:
    """How well the model predicts, with intervals, beside what knows nothing and what looks at neighbours."""
    found, title = context.scored, "How well it predicts"
    if found is None:
        return Section("accuracy", title, missing=context.unscored), []
    said = [f"{found.how[0].upper()}{found.how[1:]}."]
    if found.n_folds and not context.refitted:
        said.append("The fitted model that was given may have seen these objects, so it was not scored on them.")
    vote = context.parts.vote
    if hasattr(vote, "estimators"):
        voters = len(vote.estimators)
        said.append(
            f"{voters} models vote: these are predictions of the vote; other sections look at the first of them."
        )
    elif vote is not None:
        said.append(f"These are predictions of the {type(vote).__name__}; other sections look at the model inside.")
    if found.n_folds and context.tuned:
        said.append("What a search had chosen was kept in all folds, so these numbers may be a little too good.")
    if not found.n_folds and context.known.any():
        said.append(f"Yet {int(context.known.sum()):,} of these objects equal landmarks of the model.")
    if found.n_folds and context.seen.duplicates:
        said.append("Equal objects were kept in one fold.")
    said.append(_INTERVALS[context.is_regression])
    rows, cards = _regression(found) if context.is_regression else _classification(found)
    head = ["", "value", "95 % interval", "by neighbours", "by the mean" if context.is_regression else "by frequency"]
    floor = "the mean target" if context.is_regression else "the most frequent class"
    note = f"By neighbours: the 5 nearest in what the model learns from; by {head[-1][3:]}: always {floor}."
    body = paragraph(" ".join(said)) + table("Predictions of unseen objects", head, rows, sortable=False)
    body += f'<p class="note">{escape(note)}</p>'
    body += _scatter(found) if context.is_regression else ""
    return Section("accuracy", title, body), cards


def _classification(found: scores.Scored) -> tuple[list[Any], list[Card]]:
    n = len(found.truth)
    rows, cards = [], []
    others = [found.neighbours, found.floor]
    right = int((found.predicted == found.truth).sum())
    low, high = wilson(right / n, n)
    beside = ["–" if p is None else percent(float((p == found.truth).mean())) for p in others]
    rows.append(["accuracy", percent(right / n), interval(low, high), *beside])
    name = "accuracy, cross-validated" if found.n_folds else "accuracy"
    cards.append((name, percent(right / n), interval(low, high)))
    value, low, high = scores.balanced(found.truth, found.predicted)
    beside = ["–" if p is None else percent(scores.balanced(found.truth, p)[0]) for p in others]
    rows.append(["balanced accuracy", percent(value), interval(low, high), *beside])
    cards.append(("always the most frequent", percent(float((found.floor == found.truth).mean())), "accuracy to beat"))
    return rows, cards


def _regression(found: scores.Scored) -> tuple[list[Any], list[Card]]:
    truth = found.truth.astype(np.float64)
    values = scores.regression_scores(truth, found.predicted)
    beside = [
        None if p is None else scores.errors(truth, p.astype(np.float64)) for p in (found.neighbours, found.floor)
    ]
    rows = [
        [
            name,
            number(v),
            f"{number(low)} to {number(high)}",
            *("–" if b is None else number(b[name]) for b in beside),
        ]
        for name, (v, low, high) in values.items()
    ]
    r2, mae = values["R²"], values["mean absolute error"]
    return rows, [
        ("R², cross-validated" if found.n_folds else "R²", f"{r2[0]:.3f}", f"{r2[1]:.3f} to {r2[2]:.3f}"),
        ("mean absolute error", number(mae[0]), f"{number(mae[1])} to {number(mae[2])}"),
    ]


def _scatter(found: scores.Scored, most: int = 2000) -> str:
    truth, predicted = found.truth[:most].astype(np.float64), found.predicted[:most]
    low, high = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    high += low == high
    title = "Predicted against true targets" + (f" (the first {most:,} objects)" if len(found.truth) > most else "")
    points = Curve("objects", truth, predicted, line=False, size=2)
    return chart(title, Axis("true", low, high), Axis("predicted", low, high), [points], diagonal=True)


def about_confusion(context: Context) -> Section:
    """Which classes are taken for which, and the mistakes the model was surest of."""
    found, title = context.scored, "What is taken for what"
    if found is None or context.is_regression:
        why = context.unscored if found is None else "Targets are numbers, which are not taken for one another."
        return Section("confusion", title, missing=why)
    classes, counts = np.unique(found.truth, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
    matrix = confusion_matrix(found.truth, found.predicted, labels=classes)
    called = np.bincount(
        np.searchsorted(classes, found.predicted[np.isin(found.predicted, classes)]), minlength=len(classes)
    )
    rows: list[list[str | Cell]] = []
    for c in shown:
        recall = matrix[c, c] / counts[c]
        precision = matrix[c, c] / called[c] if called[c] else float("nan")
        shares = [Cell(percent(v), v) if v == v else Cell("–", -1.0) for v in (recall, precision)]
        line = [
            Cell(f"{matrix[c, k]:,}", matrix[c, k], matrix[c, k] / counts[c], "hit" if c == k else "miss")
            for k in shown
        ]
        rows.append([str(classes[c]), *line, *shares])
    head = ["true class", *(f"→ {_clip(classes[c])}" for c in shown), "recall", "precision"]
    some = "" if len(shown) == len(classes) else f" (the {len(shown)} largest of {len(classes)} classes)"
    body = table(f"Objects of each class (rows) by predicted class (columns){some}", head, rows)
    return Section("confusion", title, body + _mistakes(context, found))


def _clip(value: Any, length: int = 24) -> str:
    text = str(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _mistakes(context: Context, found: scores.Scored) -> str:
    wrong = np.flatnonzero(found.predicted != found.truth)
    if not len(wrong):
        return paragraph("No object was predicted wrongly.")
    values, what = found.values, ""
    if values is not None and not np.isnan(values).any():
        top = np.sort(values, axis=1) if values.ndim == 2 else None
        lead = np.abs(values) if top is None else top[:, -1] - top[:, -2]
        wrong, what = wrong[np.argsort(-lead[wrong], kind="stable")], " that the model was surest of"
    rows = [
        [
            context.names[i],
            str(found.truth[i]),
            str(found.predicted[i]),
            Cell(described(context.seen, int(i))[:160], css="mono")
            if context.seen.kind in TEXTS
            else Cell(described(context.seen, int(i)), css="wide", drawn=int(i)),
        ]
        for i in wrong[:_MISTAKES]
    ]
    caption = f"{min(_MISTAKES, len(wrong))} of {len(wrong):,} mistakes{what}"
    return table(caption, ["name", "true", "predicted", "object"], rows, text_columns=4)


def about_calibration(context: Context) -> Section:
    """Whether the model is right as often as it is sure."""
    found, title = context.scored, "How far it can be trusted"
    if found is None or context.is_regression:
        why = context.unscored if found is None else "Calibration is of classes; the errors of numbers are above."
        return Section("calibration", title, missing=why)
    groups = scores.reliability(found)
    if groups is None:
        why = "The learner gives neither probabilities nor decision values (for all classes in all folds)."
        return Section("calibration", title, missing=why)
    means, accuracies, sizes, bounds = groups
    titles = [f"{k:,} objects, {percent(a)} right" for k, a in zip(sizes.tolist(), accuracies.tolist(), strict=True)]
    curve = Curve("accuracy", means, accuracies, bounds[:, 0], bounds[:, 1], titles=titles)
    y = Axis("right (%)", 0, 1, share=True)
    if found.probabilities:
        gap = float(np.average(np.abs(means - accuracies), weights=sizes))
        text = f"Of objects predicted with probability p, a share p should be right; the mean gap is {percent(gap)}."
        picture = chart(
            "Accuracy against probability", Axis("largest probability (%)", 0, 1, share=True), y, [curve], diagonal=True
        )
    else:
        text = (
            "The learner gives decision values, which are no probabilities. Objects are put into ten groups by the "
            "lead of the winning class: a curve that rises means that a small lead is a warning worth heeding."
        )
        x = Axis("lead of the winner: share of objects with less (%)", 0, 1, share=True)
        picture = chart("Accuracy against the lead of the winning class", x, y, [curve])
    return Section("calibration", title, side_by_side(paragraph(text), picture))


def about_cost(context: Context) -> tuple[Section, list[Card]]:
    """Time per object, and bytes of the model and of a code."""
    rows: list[tuple[str, str]] = []
    if context.scored is not None and context.scored.fit_seconds:
        fit = float(np.median(context.scored.fit_seconds))
        rows.append(("to fit, for each object", seconds(fit)))
    if context.vectors is not None:
        rows.append(("to transform an object, among many", seconds(context.transform_seconds)))
    size, how = _model_bytes(context.parts.whole)
    rows.append((f"the model{how}", n_bytes(size)))
    cards = [("model", n_bytes(size), how.removeprefix(" ").removeprefix(", ") or "")]
    if context.vectors is not None:
        rows.append(("numbers of a vector", f"{context.vectors.vectors.shape[1]:,}"))
        codes = context.vectors.codes
        rows.append(("bits of a code", f"{8 * codes.shape[1]:,}" if codes is not None else "makes no packed bits"))
    return Section(
        "cost", "What it costs", table("On this machine, in this run", ["", ""], rows, sortable=False)
    ), cards


def _model_bytes(model: Any) -> tuple[int, str]:
    from similia.storage.models import save

    try:
        with tempfile.TemporaryDirectory() as folder:
            return save(model, Path(folder) / "model").stat().st_size, " on disk"
    except (TypeError, ValueError):
        return _pickled_bytes(model)


def _pickled_bytes(model: Any) -> tuple[int, str]:
    try:
        return len(pickle.dumps(model)), ", pickled (similia.save does not take it)"
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0, ", which cannot be saved"
