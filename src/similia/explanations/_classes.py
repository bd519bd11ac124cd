"""`explain_classes` shows which parts the members of each class or cluster share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_clusterer

from similia.core.progress import track
from similia.core.validation import RandomState, check_positive_int, generator
from similia.explanations._explain import explained_parts
from similia.objects.sequences import at_least_one, item
from similia.similarity import name_of

_ALL = 2**31  # list all parts of an explanation


class SharedPart(NamedTuple):
    """A part, such as a substring or a subgraph, that members of a class share.

    Attributes
    ----------
    name : str
        Name of the part.
    contribution : float
        Amount that the part adds to the decision for the class, averaged over the explained members; a member without
        the part counts as 0.
    share : float
        Share of these members for which the part adds a positive amount.
    """

    name: str
    contribution: float
    share: float


def explain_classes(
    model: Any, X: Any, *, top: int = 5, n_members: int = 30, label_names: Mapping[int, str] | None = None,
    random_state: RandomState = 0,
) -> dict[Any, list[SharedPart]]:  # fmt: skip
    """Return, for each class or cluster that a model predicts, the parts that its members share.

    For each class, `explain` explains the decisions for random members. The contributions of parts with the same name
    are then averaged over these members.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted classifier or `similia.KernelKMeans` whose decisions `explain` can split into parts.
    X : collection of n objects
        Objects in any form that the model takes. The class of an object is the one that the model predicts.
    top : int, default=5
        Maximum number of parts listed for a class.
    n_members : int, default=30
        Maximum number of members of a class to explain, chosen at random.
    label_names : mapping of int to str, optional
        Names of integer node labels of graphs, such as ``{0: "C", 1: "N"}``.
    random_state : int, numpy Generator or None, default=0
        Seed or generator from which the members are drawn.

    Returns
    -------
    dict
        For each predicted class, in ascending order, a list of `SharedPart`, the largest contribution first. A part is
        listed if its contribution is above 0 and at least two members have it (one, if only one member was explained).
        The list is often empty if the parts are stretches of time, since series rarely share these.

    Raises
    ------
    TypeError
        If the model predicts no classes, or its decisions have no parts.

    Notes
    -----
    The function calls `explain` up to `n_members` times for each class.

    Examples
    --------
    >>> import similia as sm
    >>> words = ["ACACAC", "CACACA", "ACACA", "GGTTGG", "GGTTG", "GGTT"]
    >>> model = sm.KernelKMeans(sm.kernels.Spectrum(k=2, normalize=True), n_clusters=2, n_landmarks=6, random_state=0)
    >>> labels = model.fit_predict(words)
    >>> found = sm.explanations.explain_classes(model, words)
    >>> [part.name for part in found[labels[0]]], [part.name for part in found[labels[-1]]]
    (['AC', 'CA'], ['GG', 'GT', 'TT', 'TG'])
    """
    check_positive_int(top, "top")
    check_positive_int(n_members, "n_members")
    if not hasattr(model, "predict") or not (is_classifier(model) or is_clusterer(model)):
        raise TypeError(f"{name_of(model)} predicts no classes; give a fitted classifier or KernelKMeans")
    at_least_one(X)
    rng = generator(random_state)
    labels = np.asarray(model.predict(X))
    members = {c: rng.permutation(np.flatnonzero(labels == c))[:n_members] for c in np.unique(labels).tolist()}
    found: dict[Any, list[SharedPart]] = {}
    for label, rows in track(list(members.items()), "explaining classes", total=len(members)):
        amounts: dict[str, list[float]] = defaultdict(list)
        for i in np.sort(rows).tolist():
            for name, amount in _amounts(model, item(X, i), label_names).items():
                amounts[name].append(amount)
        found[label] = _shared(amounts, len(rows))[:top]
    return found


def _amounts(model: Any, x: Any, label_names: Mapping[int, str] | None) -> dict[str, float]:
    """Return the contributions of the parts of the decision for one object, added up by name."""
    amounts: dict[str, float] = defaultdict(float)
    found = explained_parts(model, x, None, _ALL, label_names, leave_out=False)
    for part in found.parts[: len(found.parts) - len(found._intercept)]:
        amounts[part.name] += part.contribution
    return amounts


def _shared(amounts: Mapping[str, list[float]], n: int) -> list[SharedPart]:
    """Return the parts that at least two of n members have, with a positive mean contribution, the largest first."""
    parts = [
        SharedPart(name, sum(values) / n, sum(value > 0 for value in values) / n)
        for name, values in amounts.items()
        if sum(values) > 0 and len(values) >= min(2, n)
    ]
    return sorted(parts, key=lambda part: (-float(f"{part.contribution:.9g}"), part.name))  # ties by 9 digits
