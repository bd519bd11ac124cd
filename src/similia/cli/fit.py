"""``similia fit`` without a kernel or distance: a pipeline is chosen under a time budget, scored and written."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeClassifier

import similia as sm
from similia._nearest import did_you_mean
from similia.cli.inputs import Objects, read_objects
from similia.cli.models import accuracies, score_table
from similia.cli.outputs import check_output, meters
from similia.cli.specs import parse_comparison
from similia.cli.voice import console, note, result, written
from similia.distances.base import Distance
from similia.kernels.base import Kernel
from similia.objects import AttributeScaler

_UNITS = {"s": 1, "m": 60, "h": 3600}
_SHOWN, _CV = 10, 5
_SUIT = {"classification": "balanced_accuracy or f1_macro", "regression": "r2 or neg_mean_absolute_error"}
_FINAL = 0.2  # of the budget, kept for the fit to all objects after a held-out part was scored


def fit_selected(
    data: str,
    output: Path,
    *,
    text: str,
    label: str,
    budget: str | float,
    test_share: float,
    seed: int,
    scoring: str | None = None,
    cv: int | None = None,
    voters: int | None = None,
) -> None:
    """Choose a pipeline for `data`, print the leaderboard, the nested and a held-out score, and write the model.

    The held-out part is not seen by the choice; the model that is written is fitted on everything.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    output : path
    text, label : str
        Columns of a table.
    budget : str or float
        Seconds, or such as "90s", "10m", "1h".
    test_share : float
        From 0 to below 1.
    seed : int
    scoring : str, optional
        Name of a scorer of scikit-learn; accuracy, or r2 of numbers, if not given.
    cv : int, optional
        Folds, at least 3; fewer are made where a class has fewer objects.
    voters : int, optional
        Pipelines that may vote, 5 if not given; with 1 none do.
    """
    from similia.selection import select
    from similia.selection._folds import held_out

    check_output(output, data)
    _check_scorer(scoring)
    if not 0 <= test_share < 1:
        raise ValueError(f"--test must be a share from 0 to below 1, got {test_share}")
    seconds = parse_duration(budget)
    read = read_objects(data, text=text, label=label)
    y = read.labels
    if y is None and read.kind == "vectors":
        raise ValueError(f"{data} holds vectors without labels; similia.select(X, y) takes both in Python")
    if y is None:
        raise ValueError(f"{data} has no labels; --label names the column (or the field of FASTA headers) with them")
    y, say = _numbers_or_classes(y, data), console()
    numbers = y.dtype.kind == "f"
    say.print(_described(read, y, numbers))
    train = test = np.arange(len(y))
    if test_share > 0:
        train, test = held_out(read.objects, y, test_share, seed, stratify=not numbers)
        seconds *= 1 - _FINAL
    task: Any = "regression" if numbers else "classification"
    _check_suits(scoring, task, y[train])
    folds = _folds(y[train], numbers, cv or _CV)
    options: dict[str, Any] = {"budget": seconds, "task": task, "scoring": scoring, "cv": folds, "random_state": seed}
    options |= {} if voters is None else {"voters": voters}
    with meters():
        found = select(sm.objects.take(read.objects, train), y[train], **options)
    _say_found(found)
    scores = _held_out(found, read, y, train, test) if test_share > 0 else None
    model = found.fit_best(read.objects, y) if test_share > 0 else found.best_
    sm.save(model, output)
    option = option_of(model)
    if option:
        say.print(f"to fit another model with the same comparison: similia fit ... {option}", markup=False)
    facts = {"objects": len(y), "kind": read.kind, "chosen": found.name_, "option": option}
    facts["stopped_early"] = found.stopped_early_
    nested = {"score": found.score_, "interval": found.score_interval_, "outer_folds": found.n_outer_}
    rows = [{key: value for key, value in row.items() if key != "pipeline"} for row in found.table_]
    files = {"model": output, "bytes": output.stat().st_size}
    result({**facts, found.measure_: nested, "held_out": scores, "candidates": rows, "notes": found.notes_, **files})
    say.print(f"fitted on all {len(y)} and wrote {written(output)} ({output.stat().st_size / 1e6:.1f} MB)")


def parse_duration(text: str | float) -> float:
    """Return the seconds that ``600``, ``"90s"``, ``"10m"`` or ``"1.5h"`` mean.

    Raises
    ------
    ValueError
        If `text` is nothing of that form, or not above 0.

    Examples
    --------
    >>> parse_duration("10m")
    600.0
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(?:([smh])|(s)ec|(m)in)?\s*", str(text).lower())
    seconds = float(found[1]) * _UNITS[found[2] or found[3] or found[4] or "s"] if found else 0.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"--budget must be a time such as 90s, 10m or 1h, got {str(text)[:40]!r}")
    return seconds


def option_of(model: Any) -> str:
    """Return ``--kernel '...'`` or ``--distance '...'`` for what a pipeline compares objects by; "" for none.

    Of pipelines that vote the first is taken.
    """
    steps = [step for _, step in getattr(model, "best_", model).steps]
    if isinstance(steps[0], AttributeScaler):  # the kernel alone would be another one
        return ""
    for step in steps:
        compared = getattr(step, "kernel", getattr(step, "distance", None))
        if isinstance(compared, Kernel | Distance):
            text = " ".join(repr(compared).split()).replace("( ", "(").replace("[ ", "[")
            name = "kernel" if isinstance(compared, Kernel) else "distance"
            return f'--{name} "{text}"' if repr(parse_comparison(text)) == repr(compared) else ""
    return ""


def _numbers_or_classes(y: npt.NDArray, data: str) -> npt.NDArray:
    """Return labels as numbers to predict if all are numbers and most are different, else as they are."""
    if y.dtype.kind not in "OUT":
        return y
    try:
        numbers = np.array([float(label) for label in y])
    except (TypeError, ValueError):
        return y
    if len(np.unique(numbers)) <= max(20, len(y) // 2) or not np.isfinite(numbers).all():
        return y
    note(f"note: the labels of {data} are numbers, most of them different: they are predicted as numbers, not classes")
    return numbers


def _folds(y: npt.NDArray, numbers: bool, asked: int) -> int:
    """Return what was asked for, or fewer where a class has fewer objects."""
    least = asked if numbers else int(np.unique(y, return_counts=True)[1].min())
    if 3 <= least < asked:
        note(f"note: a class has {least} objects to train on; {least} folds are made instead of {asked}")
        return least
    return asked


def _check_scorer(name: str | None) -> None:
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in get_scorer_names():
        meant = did_you_mean(name, get_scorer_names())
        some = f"{_SUIT['classification']} of classes, {_SUIT['regression']} of numbers"
        raise ValueError(f"--scoring {name[:40]} is no scorer of scikit-learn{meant}; some are {some}")


def _check_suits(name: str | None, task: str, y: npt.NDArray) -> None:
    """Raise if a scorer does not score predictions of such targets: it is tried, before time is spent."""
    if name is None:
        return
    wrong = _failure(name, y, DummyRegressor() if task == "regression" else DummyClassifier())
    if task == "classification" and not _failure(name, np.array([0.5, 1.5, 2.5]), DummyRegressor()):
        wrong = "it is one of numbers"
    elif task == "classification" and not wrong and _failure(name, y, RidgeClassifier()):
        wrong = "it needs probabilities, which most candidates do not give"
    if wrong:
        raise ValueError(f"--scoring {name} does not suit {task} with these labels ({wrong}); {_SUIT[task]} do")


def _failure(name: str, y: npt.NDArray, model: Any) -> str:
    """Return why a scorer fails on the targets `y` and a model that knows nothing of objects, or nothing."""
    from sklearn.metrics import get_scorer

    X = np.zeros((len(y), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # targets of another type, for a clustering
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # of a class that is never predicted
        try:
            get_scorer(name)(model.fit(X, y), X, y)
        except Exception as error:
            return " ".join(str(error).split())[:120]
    return ""


def _described(read: Objects, y: npt.NDArray, numbers: bool) -> str:
    classes = len(np.unique(y))
    return f"{len(y)} {read.kind} {'with numbers to predict' if numbers else f'in {classes} classes'}"


def _say_found(found: Any) -> None:
    from similia.selection._leaderboard import table_of

    say = console()
    tried = [row for row in found.table_ if row["n_objects"]]
    title = f"{len(tried)} of {len(found.table_)} candidates tried in {found.seconds_:.0f} s"
    say.print(table_of(tried[:_SHOWN], title, found.measure_))
    vote, _, voters = found.name_.partition(": ") if found.name_.startswith("vote of ") else (found.name_, "", "")
    say.print(f"chosen: {vote}", markup=False)
    for voter in filter(None, voters.split("; ")):
        say.print(f"  {voter}", markup=False)
    if found.stopped_:
        say.print("stopped with Ctrl-C: this is the best of what was tried until then")
    if np.isfinite(found.score_):
        low, high = found.score_interval_
        interval = f", 95 % from {low:.3f} to {high:.3f}" if np.isfinite(low) else ""
        say.print(f"{found.measure_} of a choice like this on new objects: {found.score_:.3f}{interval}")
    for text in found.notes_:
        note(f"note: {text}")


def _held_out(found: Any, read: Objects, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray) -> dict[str, Any]:
    """Score the chosen pipeline, fitted without them, on objects that the choice has not seen."""
    from sklearn.metrics import get_scorer, r2_score

    objects = sm.objects.take(read.objects, test)
    asked = {}
    if found.measure_ not in ("accuracy", "r2"):
        asked[found.measure_] = float(get_scorer(found.measure_)(found.best_, objects, y[test]))
        console().print(f"held-out objects: {len(test)}, {found.measure_} {asked[found.measure_]:.3f}")
    predicted = found.predict(objects)
    if found.task_ == "regression":
        scores: dict[str, Any] = {"objects": len(test), "r_squared": r2_score(y[test], predicted), **asked}
        console().print(f"held-out objects: {len(test)}, R squared {scores['r_squared']:.3f}")
        return scores
    scores = {"objects": len(test), **accuracies(y[test], predicted, y[train])}
    console().print(score_table(y[test], scores))
    return scores | asked
