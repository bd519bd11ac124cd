"""Stretches of a string that matter to a model whose parts have no places: leave each out and predict again.

Windows of w letters slide over a string of n letters. With f the decision of the model and x without a window the
string whose other letters are joined, a letter gets the mean of f(x) - f(x without the window) over the windows that
cover it. Runs of letters of one sign above the mean amount are stretches; each of them is left out by itself once more.
Effects of stretches overlap, so they do not add up to the decision. Cost: at most `_MOST` predictions and `top` more.

Source: occlusion, Zeiler & Fergus, "Visualizing and understanding convolutional networks", ECCV 2014, Section 4.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from similia.explanations import _linear as linear
from similia.explanations._explanation import NOWHERE, Explanation, Floats, LeftOut, Part, runs_of
from similia.explanations._views import as_text
from similia.learn.kernel_machines import KernelSVC
from similia.similarity import evaluate, name_of

_SHORTEST, _MOST = 3, 80  # letters of a window, and windows
_SAME = 1e-3  # relative difference below which two numbers are the same decision (of float32)
_NOTHING = 1e-9  # relative to the decision: smaller effects are rounding errors


def with_left_out(found: Explanation, steps: list[Any], x: Any, top: int) -> Explanation:
    """Return the explanation of a model's decision for a string with the stretches that matter when they are left out.

    Explanations whose parts have places, and those of other objects, are returned as they are.
    """
    letters = (
        x if isinstance(x, str | bytes) else _first(x) if found._x is not None and found._x.kind == "strings" else ""
    )
    if found.shares_x is not None or not isinstance(letters, str | bytes) or len(letters) <= _SHORTEST:
        return found
    try:
        return replace(found, left_out=_stretches(found, steps, letters, top))
    except (TypeError, ValueError) as error:  # a model of strings of one length, for example, takes no shorter ones
        told = f"stretches of x cannot be left out, because {name_of(steps[-1])} then does not predict: {error}"
        return replace(found, note="; ".join(filter(None, (found.note, told))))


def _first(x: Any) -> Any:
    """Return the object of a collection of one object."""
    return np.asarray(x, dtype=object).ravel()[0] if hasattr(x, "iloc") else x[0]


def _stretches(found: Explanation, steps: list[Any], letters: Any, top: int) -> LeftOut:
    decide, title = _decision_at(found, steps, letters)
    n = len(letters)
    width = max(_SHORTEST, -(-2 * n // _MOST))
    starts = np.unique([*range(0, n - width, max(1, width // 2 if n > _MOST else 1)), n - width])
    (value,), falls = decide([letters]), decide([letters[:s] + letters[s + width :] for s in starts.tolist()])
    falls = value - falls
    covering = starts + np.arange(width)[:, None]
    amounts, times = np.zeros(n), np.zeros(n)
    np.add.at(amounts, covering, falls[None])
    np.add.at(times, covering, 1)
    amounts /= times
    strong = np.abs(amounts).mean()
    if strong <= _NOTHING * max(1.0, abs(value)):
        return LeftOut(title, [], np.zeros(n))
    runs = [(a, b) for a, b in runs_of(amounts, strong) if abs(amounts[a]) > strong and b - a < n]
    runs = sorted(runs, key=lambda run: -abs(float(amounts[slice(*run)].sum())))[:top]
    adds = value - decide([letters[:a] + letters[b:] for a, b in runs]) if runs else np.zeros(0)
    parts = [
        Part(as_text(letters[a:b]), float(add), np.arange(a, b), NOWHERE)
        for (a, b), add in zip(runs, adds.tolist(), strict=True)
    ]
    return LeftOut(title, sorted(parts, key=lambda part: -abs(part.contribution)), amounts)


def _decision_at(found: Explanation, steps: list[Any], letters: Any) -> tuple[Any, str]:
    """Return the decision of a model as a function of strings, shape (n,), and its name.

    It is the explained value where the model computes that for any string, and otherwise the score of the predicted
    class minus that of its closest rival.
    """
    learner = steps[-1]

    def scores(strings: list[Any]) -> Floats:
        return _scores(learner, _through(steps[:-1], strings))

    at_x = scores([letters])[0]
    if is_regressor(learner):
        return lambda strings: scores(strings)[:, 0], f"the {found.kind}"
    if isinstance(learner, KernelSVC):
        pairs = learner.classes_
        predicted = learner.predict(_through(steps[:-1], [letters]))[0]
        winner, other, sign, column = linear.best_machine(predicted, pairs, at_x)
        return lambda strings: sign * scores(strings)[:, column], f"the {found.kind}"
    winner, other = linear.best_two(at_x)
    value = float(at_x[winner] - at_x[other])
    same = abs(value - found.value) <= _SAME * max(abs(value), abs(found.value))
    a, b = learner.classes_[winner], learner.classes_[other]
    name = f"the {found.kind}" if same else f"the score of {a!s} minus that of {b!s}"

    def margins(strings: list[Any]) -> Floats:
        of = scores(strings)
        return of[:, winner] - of[:, other]

    return margins, name


def _through(steps: list[Any], X: Any) -> Any:
    for step in steps:
        X = step.transform(X)
    return X


def _scores(learner: Any, X: Any) -> Floats:
    """Return predicted numbers, outputs of one-vs-one machines, or scores of classes, shape (n, n_columns)."""
    if is_regressor(learner):
        return np.asarray(learner.predict(X), dtype=np.float64).reshape(-1, 1)
    if isinstance(learner, KernelSVC):
        K = np.asarray(evaluate(learner.kernel_, X, learner.support_objects_), dtype=np.float64)
        return K @ learner.pair_coef_.T + learner.pair_intercept_
    how = learner.decision_function if hasattr(learner, "decision_function") else learner.predict_proba
    found = np.asarray(how(X), dtype=np.float64)
    return found if found.ndim == 2 else np.column_stack([-found / 2, found / 2])
