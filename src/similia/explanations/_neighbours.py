"""Decisions of nearest neighbours: each neighbour adds its share of the votes, or of the mean.

The decision for a class against the second is the difference of their shares, so that neighbours of other classes add
nothing to it and are not listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from similia.explanations._explanation import Explanation
from similia.explanations._found import NOWHERE, Described, Floats, Found, explained
from similia.explanations._linear import against
from similia.explanations._views import View, described
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import take
from similia.similarity import name_of


def of_neighbours(machine: Any, X: Any, top: int, view: View) -> Explanation:
    """Return why the nearest training objects of one object decide as they do.

    Parameters
    ----------
    machine : KNeighborsClassifier or KNeighborsRegressor
        Of similia or of scikit-learn.
    X : collection of one object
        In the layout the machine takes.
    """
    (distances,), (numbers,) = machine.kneighbors(X)
    ours = isinstance(machine, KNeighborsClassifier | KNeighborsRegressor)
    weights = machine._weights(distances[None])[0] if ours else _weights(machine, distances)
    if hasattr(machine, "classes_"):
        classes, codes = machine.classes_, (machine._codes if ours else machine._y)[numbers]
        if len(classes) == 1:
            raise ValueError(
                f"{name_of(machine)} was fitted to the one class {classes[0]!s}: there is nothing to explain"
            )
        shares = machine.predict_proba(X)[0]
        winner, other = (int(c) for c in np.argsort(-shares, kind="stable")[:2])
        adds = weights * (codes == winner) - weights * (codes == other)
        value, kind, said = float(shares[winner] - shares[other]), "decision", classes[codes]
        title = against(classes, winner, other)
    else:
        said = (machine.targets_ if ours else machine._y)[numbers]
        if said.ndim > 1:
            raise ValueError(
                f"{name_of(machine)} predicts {said.shape[1]} numbers, expected one; fit one model for each"
            )
        adds, value, kind, title = weights * said, float(weights @ said), "prediction", "the predicted number"

    def describe(k: int) -> Described:
        number = int(numbers[k])
        thing = described(take(machine.objects_, [number]), number) if ours else "no. "
        more = thing.removeprefix(f"no. {number}") if thing.startswith("no. ") else f", {thing}"
        return f"{said[k]!s}: training object {number}{more if ours else ''}, at {distances[k]:.3g}", NOWHERE, NOWHERE

    by = name_of(machine.distance_) if ours else f"the {machine.effective_metric_} distance of vectors"
    return explained(
        value,
        kind,
        Found(adds, describe),
        top,
        title=f"{kind} of {name_of(machine)}, {title}",
        note=f"the nearest by {by}; explain x with one of them to see what they share",
        views=(view, None),
    )


def _weights(machine: Any, distances: Floats) -> Floats:
    """Return the weights of the neighbours that a machine of scikit-learn found; they add up to 1."""
    if machine.weights == "uniform":
        return np.full(len(distances), 1 / len(distances))
    if callable(machine.weights):
        weights = np.asarray(machine.weights(distances[None]), dtype=np.float64)[0]
    else:
        weights = (distances == 0).astype(np.float64) if (distances == 0).any() else 1 / distances
    return weights / weights.sum()
