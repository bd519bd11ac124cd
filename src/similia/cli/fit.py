"""``similia fit`` without a kernel or distance: a pipeline is chosen under a time budget, scored and written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import similia as sm
from similia.cli.inputs import read_labelled
from similia.cli.models import check_scorer, check_suits, described, scores_of, split, targets_of
from similia.cli.outputs import check_output, meters
from similia.cli.specs import parse_comparison
from similia.cli.voice import console, note, result, written
from similia.objects import AttributeScaler
from similia.similarity import Distance, Kernel

_UNITS = {"s": 1, "m": 60, "h": 3600}
_SHOWN, _CV = 10, 5
_FINAL = 0.2  # of the budget, kept for the fit to all objects after a held-out part was scored


def fit_selected(
    data: str,
    output: Path,
    *,
    budget: str | float,
    test_share: float,
    seed: int,
    task: str = "auto",
    scoring: str | None = None,
    cv: int | None = None,
    voters: int | None = None,
    **table: Any,
) -> None:
    """Choose a pipeline for `data`, print the leaderboard, the nested and a held-out score, and write the model.

    The held-out part is not seen by the choice; the model that is written is fitted on everything.

    Parameters
    ----------
    data : str
        Path, or name of a data set.
    output : path
    budget : str or float
        Seconds, or such as "90s", "10m", "1h".
    test_share : float
        From 0 to below 1.
    seed : int
    task : {"auto", "classification", "regression"}
        Whether labels are classes or numbers to predict; see `similia.learn.targets.task_of`.
    scoring : str, optional
        Name of a scorer of scikit-learn; accuracy, or r2 of numbers, if not given.
    cv : int, optional
        Folds, at least 3; fewer are made where a class has fewer objects.
    voters : int, optional
        Pipelines that may vote, 5 if not given; with 1 none do.
    **table
        How `data` are read; see `similia.sources.read_objects`.
    """
    from similia.selection import select

    check_output(output, data)
    check_scorer(scoring)
    if not 0 <= test_share < 1:
        raise ValueError(f"--test must be a share from 0 to below 1, got {test_share}")
    seconds = parse_duration(budget)
    read = read_labelled(data, **table)
    y, decided = targets_of(read, task, scoring, table.get("label"))
    say = console()
    say.print(described(read, y, decided))
    train = test = np.arange(len(y))
    if test_share > 0:
        train, test = split(read, y, decided, test_share, seed)
        seconds *= 1 - _FINAL
    check_suits(scoring, decided, y[train])
    folds = _folds(y[train], decided == "regression", cv or _CV)
    options: dict[str, Any] = {
        "budget": seconds,
        "task": decided,
        "scoring": scoring,
        "cv": folds,
        "random_state": seed,
    }
    options |= {} if voters is None else {"voters": voters}
    with meters():
        found = select(sm.objects.take(read.objects, train), y[train], **options)
    _say_found(found)
    scores = None
    if test_share > 0:
        unseen = sm.objects.take(read.objects, test)
        scores = scores_of(found.best_, unseen, y[test], y[train], decided, found.measure_)
    model = found.fit_best(read.objects, y) if test_share > 0 else found.best_
    sm.save(model, output)
    option = option_of(model)
    if option:
        say.print(f"to fit another model with the same similarity: similia fit ... {option}", markup=False)
    facts = {"objects": len(y), "kind": read.kind, "task": decided, "chosen": found.name_, "option": option}
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


def _folds(y: npt.NDArray, numbers: bool, asked: int) -> int:
    """Return what was asked for, or fewer where a class has fewer objects."""
    least = asked if numbers else int(np.unique(y, return_counts=True)[1].min())
    if 3 <= least < asked:
        note(f"note: the smallest class has {least} objects to train on, so there are {least} folds instead of {asked}")
        return least
    return asked


def _say_found(found: Any) -> None:
    from similia.selection.budget import table_of

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
