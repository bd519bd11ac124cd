"""Decisions of nearest neighbours: each neighbour adds its share of the votes, or of the mean.

The decision for a class against the second is the difference of their shares, so that neighbours of other classes add
nothing to it and are not listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from similia.explanations._explanation import Explanation
from similia.explanations._found import NOWHERE, Described, Found, explained
from similia.explanations._kernels import Naming, one
from similia.explanations._linear import against
from similia.explanations._views import described, view_of
from similia.kernels._evaluate import name_of
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import take


def of_neighbours(machine: KNeighborsClassifier | KNeighborsRegressor, x: Any, naming: Naming, top: int) -> Explanation:
    """Return why the nearest training objects of one object decide as they do."""
    X = one(machine.distance_, x, "x")
    (distances,), (numbers,) = machine.kneighbors(X)
    weights = machine._weights(distances[None])[0]
    if isinstance(machine, KNeighborsClassifier):
        classes, codes = machine.classes_, machine._codes[numbers]
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
        said = machine.targets_[numbers]
        if said.ndim > 1:
            raise ValueError(
                f"{name_of(machine)} predicts {said.shape[1]} numbers, expected one; fit one model for each"
            )
        adds, value, kind, title = weights * said, float(weights @ said), "prediction", "the predicted number"

    def describe(k: int) -> Described:
        number = int(numbers[k])
        thing = described(take(machine.objects_, [number]), number)
        more = thing.removeprefix(f"no. {number}") if thing.startswith("no. ") else f", {thing}"
        return f"{said[k]!s}: training object {number}{more}, at {distances[k]:.3g}", NOWHERE, NOWHERE

    return explained(
        value,
        kind,
        Found(adds, describe),
        top,
        title=f"{kind} of {name_of(machine)}, {title}",
        note=f"the nearest by {name_of(machine.distance_)}; explain x with one of them to see what they share",
        views=(view_of(X, naming.label_names), None),
    )
