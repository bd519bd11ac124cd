"""``similia fit`` without a kernel or distance: a pipeline is chosen under a time budget, scored and written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import similia as sm
from similia.cli.inputs import read_labelled
from similia.cli.models import check_scorer, check_suits, described, scores_of, split, targets_of
from similia.cli.outputs import check_output, meters
from similia.cli.specs import parse_comparison
from similia.cli.voice import console, note, result, written
from similia.objects import AttributeScaler
from similia.selection.budget import rows_of, table_of
from similia.similarity import Distance, Kernel

_UNITS = {"s": 1, "m": 60, "h": 3600}
_SHOWN, _CV, _VOTERS = 10, 5, 5
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
    auto = (sm.AutoClassifier if decided == "classification" else sm.AutoRegressor)(
        seconds, scoring=scoring, cv=cv or _CV, voters=voters or _VOTERS, random_state=seed
    )
    with meters():
        auto.fit(sm.objects.take(read.objects, train), y[train])
    _say_found(auto)
    scores = None
    if test_share > 0:
        unseen = sm.objects.take(read.objects, test)
        scores = scores_of(auto, unseen, y[test], y[train], decided, auto.measure_)
        auto.refit(read.objects, y)
    model = auto.best_estimator_
    sm.save(model, output)
    option = option_of(model)
    if option:
        say.print(f"to fit another model with the same similarity: similia fit ... {option}", markup=False)
    facts = {"objects": len(y), "kind": read.kind, "task": decided, "chosen": auto.best_name_, "option": option}
    facts["stopped_early"] = auto.stopped_early_
    nested = {"score": auto.best_score_, "interval": auto.best_score_interval_, "outer_folds": auto.n_outer_folds_}
    rows = rows_of({key: values for key, values in auto.cv_results_.items() if key != "estimator"})
    files = {"model": output, "bytes": output.stat().st_size}
    result({**facts, auto.measure_: nested, "held_out": scores, "candidates": rows, "notes": auto.notes_, **files})
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


def _say_found(auto: Any) -> None:
    say = console()
    rows = rows_of(auto.cv_results_)
    tried = [row for row in rows if row["n_objects"]]
    title = f"{len(tried)} of {len(rows)} candidates tried in {auto.seconds_:.0f} s"
    say.print(table_of(tried[:_SHOWN], title, auto.measure_))
    name = auto.best_name_
    if name.startswith("vote of "):
        name = name.replace(": ", "\n  ", 1).replace("; ", "\n  ")
    say.print(f"chosen: {name}", markup=False)
    if auto.stopped_:
        say.print("stopped with Ctrl-C: this is the best of what was tried until then")
    if np.isfinite(auto.best_score_):
        low, high = auto.best_score_interval_
        interval = f", 95 % from {low:.3f} to {high:.3f}" if np.isfinite(low) else ""
        say.print(f"{auto.measure_} of a choice like this on new objects: {auto.best_score_:.3f}{interval}")
    for text in auto.notes_:
        note(f"note: {text}")
