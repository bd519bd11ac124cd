"""The sections of a report about predictions; each function ``about_*`` makes one from a `Context`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import confusion_matrix

from similia.core.intervals import wilson
from similia.core.text import number
from similia.report import _scores as scores
from similia.report._context import TEXTS, Context, described
from similia.report._render import Cell, Section, Table, charts, percent
from similia.report.displays import line, mark
from similia.selection.folds import SHARE

_ROWS = 24  # classes in a confusion matrix
_MISTAKES = 10  # maximum number of mistakes in the table
_SCATTERED = 2000  # maximum number of predictions in the chart
_INTERVALS = (  # of classes, and of numbers
    "Intervals contain the true score for objects from the same source in about 95 % of cases, if predictions are "
    "independent; predictions of cross-validation are not quite independent.",
    "Intervals contain the true score for objects from the same source in about 95 % of cases, if errors are about "
    "normal; if a few large errors make up most of the mean, in 75 % (20 objects) to 90 % (200 objects).",
)
_CONSTANT = ("by frequency", "the most frequent class"), ("by the mean", "the mean target")


def about_accuracy(context: Context) -> Section:
    """Compare the scores of the model, with intervals, to those of nearest neighbours and of a constant prediction."""
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
    """Return the main score with its 95 % interval, and for classes the score of the most frequent; None unscored."""
    found = context.scored
    if found is None:
        return None
    n, cross = len(found.truth), {"folds": found.n_folds}
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

    def balanced(predicted: npt.NDArray) -> tuple[float, float, float]:
        return scores.balanced(found.truth, predicted)

    rows = []
    for name, score in (("accuracy", accuracy), ("balanced accuracy", balanced)):
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
    """Show which classes the model confuses, and its most confident mistakes."""
    found, title = context.scored, "Which classes are confused"
    if found is None or context.is_regression:
        why = context.unscored if found is None else "The targets are numbers, not classes."
        return Section("confusion", title, missing=why)
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
    """Show how accurate predictions are at each level of confidence."""
    found, title = context.scored, "How far it can be trusted"
    if found is None or context.is_regression:
        why = (
            context.unscored if found is None else "Calibration is for classes; the errors of numbers are shown above."
        )
        return Section("calibration", title, missing=why)
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
