r"""`explain_classes`: what the members of a class or cluster share, and what tells them from the others.

Parts that have a name of their own in many objects, such as substrings and subgraphs, are averaged over members. Parts
without places, such as distances to training objects, say little about a class, and no two series share a stretch of
time by its name. For series, and for strings and vectors whose parts have no places, the module therefore leaves things
out:

=======  ==============================  =================  ===========================================================
objects  what is left out of a member    in its place       candidates
=======  ==============================  =================  ===========================================================
series   a stretch of time               a straight line    runs of places that matter in windows of a tenth of an
                                                            example
strings  all occurrences of a substring  random letters of  substrings that more members than others have
                                         the drawn objects
vectors  a column                        its mean           all columns, or those that `_left_out` chooses
=======  ==============================  =================  ===========================================================

With f the decision of the model, a stretch, substring or column gets the mean of f(x) - f(x without it) over the
members x. The notes of `explain_classes` say which stretches, substrings and columns these are.

Cost: for each class, at most `_MEASURED` times 24 + `top` predictions (for vectors, `_MEASURED` explanations with the
columns left out), and `_MEASURED` alignments of series that are first averaged to `_ALIGNED` points.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, is_classifier, is_clusterer

from similia.core.config import track
from similia.core.estimators import ObjectsOut, check_fitted
from similia.core.validation import RandomState, check_positive_int, generator
from similia.distances.elastic import DTW, EditDistance, SoftDTW
from similia.explanations._comparisons import Naming, columns_of
from similia.explanations._decisions import AgainstRest, check_one_label, collection
from similia.explanations._explain import of_steps
from similia.explanations._explanation import NOWHERE, Floats, runs_of
from similia.explanations._left_out import (
    Decide,
    Without,
    decided_without,
    decision_at,
    flattened,
    is_scored,
    letters_of,
    mean_over,
    through,
)
from similia.explanations._series import named_stretch, warping
from similia.explanations._views import Places, View, names_of_labels, view_of
from similia.kernels.series import GlobalAlignment
from similia.learn.clusters import KernelKMeans
from similia.objects import GraphToSets, SeriesBatch, SeriesToSets, as_series, as_strings, concatenate
from similia.objects.sequences import at_least_one, item
from similia.pipelines import parts_of, steps_of
from similia.search.hdbscan import HDBSCAN, Means
from similia.similarity import name_of

_ALL = 2**31  # list all parts of an explanation
_MEASURED = 10  # maximum number of members of a class from which something is left out
_WINDOWS, _SHARE = 20, 10  # windows of an example, each with one of so many parts of it
_WORDS, _LETTERS = 20, range(3, 9)  # substrings that are left out, and their numbers of letters
_ALIGNED = 1000  # points to which longer series are averaged before they are aligned
_NOTHING = 1e-9  # relative to the decision: smaller effects are rounding errors


class SharedPart(NamedTuple):
    """A part, such as a substring, a subgraph or a stretch of time, that members of a class share.

    Attributes
    ----------
    name : str
        Name of the part.
    contribution : float
        Amount that the part adds to the decision for the class: the mean over the members of the class that
        `explain_classes` drew. A member without the part counts as 0.
    share : float
        Share of the drawn members for which the part adds a positive amount.
    example : int or None
        Only for a stretch of time: the position in `X` of a member of the class, the example. `name` and `places`
        describe the stretch in this member.
    places : range
        Only for a stretch of time: its time points in the example; otherwise empty.
    """

    name: str
    contribution: float
    share: float
    example: int | None = None
    places: range = range(0)


def explain_classes(
    model: Any, X: Any, *, top: int = 5, n_members: int = 30, label_names: Mapping[int, str] | None = None,
    random_state: RandomState = 0,
) -> dict[Any, list[SharedPart]]:  # fmt: skip
    """Return the parts, such as substrings or stretches of time, that tell the members of a class from the others.

    For each predicted class or cluster, `similia.explain` splits the decisions for some members, drawn at random, into
    the contributions of parts. The contributions of parts with the same name are then averaged over these members; a
    member without the part counts as 0. In three cases, contributions are found by replacing a part and predicting
    again (see Notes): for series, for strings that the model compares as wholes, and for dense vectors whose columns
    have no parts. For a nearest-neighbour classifier, the parts are training objects.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted classifier or `similia.KernelKMeans` whose decisions `explain` can split into parts, a fitted
        `similia.HDBSCAN`, or a pipeline that ends in one of these.
    X : collection of n objects
        Objects in any form that the model takes. The class of an object is the class that the model predicts. Objects
        that `similia.HDBSCAN` labels as noise are in no class.
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
        listed if its contribution is above 0 and at least two members have it (or one member, if only one was
        explained). If contributions are found by replacing parts, a member counts only if its decision falls when the
        part is replaced. So the list is empty if no single part changes the decisions of a model.

    Raises
    ------
    TypeError
        If the model predicts no classes, or its decisions have no parts.
    ValueError
        If the model has a single cluster.

    Notes
    -----
    **Decisions.** A cluster of `similia.KernelKMeans` is compared with all other clusters: the decision is the mean
    squared distance to the centres of the other clusters, weighted by their numbers of objects, minus the squared
    distance to the centre of the cluster. (`explain` compares an object's cluster only with the next nearest one.)
    Clusters of `similia.HDBSCAN` have no centres. Instead, the training objects are mapped to vectors, with the same
    embedding that `KernelKMeans` would use, and the mean vector of a cluster's members serves as its centre. With a
    classifier, the class of each member is compared with the closest rival for that member.

    **Stretches of time.** For series, each part is a stretch of time. Its contribution is the decision for the series
    minus the decision for the series with a straight line in place of the stretch, averaged over at most 10 of the
    drawn members. Stretches are found in an example of the class: the member nearest to the centre of a cluster (for
    `similia.HDBSCAN`, to its medoid), or the explained member with the largest decision for its class. Each stretch of
    the example has a counterpart in every other member. If the model compares series by `similia.distances.DTW`, by a
    similar distance that aligns time points, or by `similia.kernels.GlobalAlignment`, the counterpart holds the time
    points that this alignment matches with the stretch. Otherwise it is at the same relative position. Series of more
    than 1,000 time points are averaged to 1,000 before they are aligned. Effects of stretches overlap, so they do not
    add up to the decision.

    **Words and columns.** If the first step of a pipeline makes named columns of texts or tables, as scikit-learn's
    ``TfidfVectorizer`` and ``ColumnTransformer`` do, the parts are these columns.

    **Columns by means.** If the model compares dense vectors by a kernel or distance without parts by column, such as
    `similia.kernels.RBF`, the parts are columns. The contribution is the decision minus the decision with the mean of
    the column in place of the value, averaged over at most 10 of the drawn members. `similia.explain` says over which
    training objects the mean is taken, and which columns are replaced if there are more than 120.

    **Substrings.** If the model compares strings as wholes, for example by `similia.distances.Levenshtein`, the parts
    are substrings of 3 to 8 letters. Candidates are the 20 substrings that are most typical of the class. The measure
    is a difference of two shares: the share of the drawn members of the class that contain the substring, minus the
    share of the drawn members of the other classes that contain it. A whole string is not a candidate. In up to 10
    members, each occurrence of a candidate is replaced by random letters, which are drawn from the strings of all drawn
    members. The contribution is the amount by which the decision then falls, averaged over the members.

    **Cost.** The model first predicts the classes of all n objects. If parts are replaced, it then makes at most 10 (24
    + `top`) more predictions for each class, or about 1,200 if the parts are columns. Otherwise, `explain` is called up
    to `n_members` times for each class.

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
        raise TypeError(f"{name_of(model)} predicts no classes; give a fitted classifier, KernelKMeans or HDBSCAN")
    at_least_one(X)
    rng = generator(random_state)
    labels, away, clusters = _assigned(model, X, rng)
    classes = np.unique(labels[away < np.inf])
    drawn = {c: rng.permutation(np.flatnonzero(labels == c))[:n_members] for c in classes.tolist()}
    naming = Naming(label_names or {}, columns_of(model, X), valued=False)
    explainer = _Explainer(model, clusters, X, naming, drawn, rng)
    found: dict[Any, list[SharedPart]] = {}
    for label, rows in track(list(drawn.items()), "explaining classes", total=len(drawn)):
        example = None
        if clusters is not None:
            members = np.flatnonzero(labels == label)
            example = int(members[away[members].argmin()])
        found[label] = explainer.of_class(label, rows, example, top)
    return found


def _assigned(model: Any, X: Any, rng: np.random.Generator) -> tuple[Any, Floats, KernelKMeans | Means | None]:
    """Return the classes of objects, their distances from the centre or medoid (infinity for noise), and the clusters.

    For a classifier, the distances are 0, and there are no clusters.
    """
    *before, learner = steps_of(model)
    if isinstance(learner, KernelKMeans):
        distances = np.asarray(model.transform(X))
        return distances.argmin(axis=1), distances.min(axis=1), learner
    if isinstance(learner, HDBSCAN):
        check_fitted(learner)
        X = through(before, X)
        labels = learner._labels_of(X)
        return labels, learner._to_medoids(X, labels), learner._means(int(rng.integers(2**32)))
    labels = np.asarray(model.predict(X))
    return labels, np.zeros(len(labels)), None


@dataclass(frozen=True, eq=False)
class _Member:
    """A member of a class from which places are left out."""

    number: int  # position in the collection
    view: View
    without: Without
    decide: Decide
    value: float  # decision for the member

    def falls(self, gone: Sequence[Places]) -> Floats:
        """Return by how much the decision falls without each set of places; 0 for no places, and for all of them."""
        kept = [k for k, places in enumerate(gone) if 0 < len(places) < self.view.n_places]
        found = np.zeros(len(gone))
        n = max(1, self.view.n_places)
        found[kept] = self.value - decided_without(self.decide, self.without, [gone[k] for k in kept], n)
        return found


class _Explainer:
    """Explains the classes of one model; `drawn` has the positions of the drawn members of each class."""

    def __init__(
        self, model: Any, clusters: KernelKMeans | Means | None, X: Any, naming: Naming, drawn: Mapping[Any, Places],
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        *before, learner = steps_of(model)
        self.clusters = clusters
        self.steps = [*before, learner if clusters is None else clusters.embedding_]
        while len(self.steps) > 1 and isinstance(self.steps[0], ObjectsOut):  # steps that map objects to objects
            if isinstance(self.steps[0], GraphToSets | SeriesToSets):
                break  # here, places of the graph or series are left out
            X, self.steps = self.steps[0].transform(X), self.steps[1:]
        self.X, self.naming, self.drawn, self.rng = X, naming, drawn, rng
        numbers = isinstance(self.steps[0], ClassNamePrefixFeaturesOutMixin)
        self.names_columns = not numbers and naming.after(self.steps[:1]).columns is not None  # of texts: the words
        self.reader = parts_of(self.steps[0]).steps[0]  # in an ensemble, the first step of its first model
        comparison = parts_of(model if clusters is None else clusters.embedding_).comparison()
        self.path = None if comparison is None else _path_of(comparison.function)

    def of_class(self, label: Any, rows: Places, example: int | None, top: int) -> list[SharedPart]:
        """Return the largest parts that the members at `rows` share; `example` is the position of one, if known."""
        steps = self._decision_for(label)
        first = item(self.X, int(rows[0]))
        votes = hasattr(steps[-1], "kneighbors")  # those of neighbours seldom change with a single stretch
        kind = self._view(first).kind if is_scored(steps[-1]) and not votes else ""
        if kind == "series":
            return self._stretches(steps, rows[:_MEASURED], example, top)
        if kind == "other" and self._replaced(steps, first) is not None:
            return self._columns(steps, rows[:_MEASURED])[:top]
        if kind == "strings" and not self.names_columns and _has_no_places(steps, first):
            return self._words(steps, label, rows)[:top]
        return self._parts(steps, rows)[:top]

    def _decision_for(self, label: Any) -> list[Any]:
        """Return the steps of the model; those of clusters end in the decision between one and all others."""
        if self.clusters is None:
            return self.steps
        if self.clusters.n_clusters_ == 1:
            raise ValueError("the model has one cluster, so there is no decision between clusters to explain")
        return [*self.steps, AgainstRest().fit(self.clusters.cluster_centers_, self.clusters.counts_, label)]

    def _view(self, x: Any) -> View:
        view = view_of(collection(self.reader, x))
        return view_of(as_strings([x])) if view.kind == "other" and isinstance(x, str | bytes) else view

    def _series(self, number: int) -> SeriesBatch:
        return as_series(collection(self.reader, item(self.X, number)))

    def _member(self, steps: list[Any], number: int, without: Without) -> _Member:
        whole = without([NOWHERE])
        if hasattr(steps[-1], "classes_"):
            check_one_label(steps[-1], through(steps[:-1], whole))
        decide, _ = decision_at(steps, whole)
        view = self._view(item(self.X, number))
        return _Member(number, view, without, decide, float(decide(whole)[0]))

    def _parts(self, steps: list[Any], rows: Places) -> list[SharedPart]:
        amounts: dict[str, list[float]] = defaultdict(list)
        for i in np.sort(rows).tolist():
            for name, amount in _amounts(steps, item(self.X, i), self.naming).items():
                amounts[name].append(amount)
        kept = {name: values for name, values in amounts.items() if len(values) >= min(2, len(rows))}
        parts = [SharedPart(name, sum(v) / len(rows), sum(a > 0 for a in v) / len(rows)) for name, v in kept.items()]
        return _largest(parts)

    def _replaced(self, steps: list[Any], x: Any) -> tuple[list[str], Floats, float] | None:
        """Return the names of the columns of a vector, by how much the decision falls without each, and the decision.

        Return None if no columns are left out.
        """
        found = of_steps(steps, x, self.naming, 1)
        if found.left_out is None or found._x is None or found._x.kind != "vectors":
            return None
        return found._x.names, found.left_out.amounts, found.value

    def _columns(self, steps: list[Any], rows: Places) -> list[SharedPart]:
        measured = [self._replaced(steps, item(self.X, i)) for i in rows.tolist()]
        names, falls, values = zip(*filter(None, measured), strict=True)
        some = np.flatnonzero(np.any(falls, axis=0))
        parts = [SharedPart(names[0][k], 0.0, 0.0) for k in some.tolist()]
        return _mattering(parts, np.array(falls)[:, some], values)

    def _words(self, steps: list[Any], label: Any, rows: Places) -> list[SharedPart]:
        texts = {c: [self._view(item(self.X, i)).text for i in some.tolist()] for c, some in self.drawn.items()}
        words = _candidates(texts[label], [text for c, some in texts.items() if c != label for text in some])
        pool = np.array([*"".join("".join(some) for some in texts.values())], dtype=object)  # of str, NUL would be lost

        def without_in(text: str, in_bytes: bool) -> Without:
            def replaced(places: Places) -> Any:
                letters = np.array([*text], dtype=object)
                letters[places] = self.rng.choice(pool, len(places))
                changed = "".join(letters.tolist())
                return changed.encode("latin-1") if in_bytes else changed

            return lambda gone: [replaced(places) for places in gone]

        members = []
        for i, text in zip(rows[:_MEASURED].tolist(), texts[label], strict=False):
            in_bytes = isinstance(letters_of(item(self.X, i)), bytes)
            members.append(self._member(steps, i, without_in(text, in_bytes)))
        falls = [member.falls([_occurrences(member.view.text, word) for word in words]) for member in members]
        return _mattering([SharedPart(word, 0.0, 0.0) for word in words], np.array(falls), [m.value for m in members])

    def _stretches(self, steps: list[Any], rows: Places, example: int | None, top: int) -> list[SharedPart]:
        members = [self._member(steps, i, _flattening(self._series(i))) for i in rows.tolist()]
        if example is None:
            example = max(members, key=lambda member: member.value).number
        view = self._view(item(self.X, example))
        n = view.n_places
        aligned = [_aligned(view.values, member.view.values, self.path) for member in members]

        def falls(stretches: Sequence[Places]) -> Floats:
            """Return the falls of the decisions, shape (n_members, n_stretches)."""
            pairs = zip(members, aligned, strict=True)
            return np.array([member.falls([places_in(where) for where in stretches]) for member, places_in in pairs])

        width = max(1, -(-n // _SHARE))
        windows = [np.arange(a, a + width) for a in np.unique(np.linspace(0, n - width, _WINDOWS).round().astype(int))]
        amounts = mean_over(windows, falls(windows).mean(axis=0), n)
        usual = float(np.abs(amounts).mean())
        runs = [(a, b) for a, b in runs_of(amounts, usual) if amounts[a] > usual and b - a < n]
        runs = sorted(runs, key=lambda run: -float(amounts[slice(*run)].sum()))[:top]
        parts = [SharedPart(named_stretch(view.values, a, b), 0.0, 0.0, example, range(a, b)) for a, b in runs]
        return _mattering(parts, falls([np.arange(a, b) for a, b in runs]), [m.value for m in members])


def _amounts(steps: list[Any], x: Any, naming: Naming) -> dict[str, float]:
    """Return the contributions of parts to the decision for one object, added up by name."""
    amounts: dict[str, float] = defaultdict(float)
    for label, name in names_of_labels(x).items():
        naming.setdefault(label, name)
    found = of_steps(steps, x, naming, _ALL, leave_out=False)
    for part in found.parts[: len(found.parts) - len(found._intercept)]:
        amounts[part.name] += part.contribution
    return amounts


def _has_no_places(steps: list[Any], x: str | bytes) -> bool:
    try:
        return of_steps(steps, x, Naming({}), 1, leave_out=False).shares_x is None
    except TypeError:
        return True


def _largest(parts: list[SharedPart]) -> list[SharedPart]:
    """Return the parts that add a positive amount, the largest first; ties are those of 9 digits."""
    kept = [part for part in parts if part.contribution > 0]
    return sorted(kept, key=lambda part: (-float(f"{part.contribution:.9g}"), part.name))


def _mattering(parts: list[SharedPart], falls: Floats, values: Sequence[float]) -> list[SharedPart]:
    """Return the parts with their mean falls, (n_members, n_parts), and shares; those that matter, largest first.

    `values` are the decisions for the members.
    """
    least = _NOTHING * max(map(abs, values))
    found = []
    for part, fall in zip(parts, falls.T, strict=True):
        matters = fall > least
        if matters.sum() >= min(2, len(values)):
            found.append(part._replace(contribution=float(fall.mean()), share=float(matters.mean())))
    return _largest(found)


# ---- substrings
def _candidates(texts: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return substrings that more of the texts have than of the others, the most different shares first.

    Of substrings with the same shares, the longest comes first. No two have more than half of one in common. At least
    two texts have each (one, if there is only one text) as a part, not as the whole text.
    """
    here = Counter(word for text in texts for word in _words_in(text) - {text})  # a whole text cannot be left out
    there = Counter(word for text in others for word in _words_in(text))
    more = {
        word: count / len(texts) - there[word] / max(1, len(others))
        for word, count in here.items()
        if count >= min(2, len(texts))
    }
    chosen: list[str] = []
    for word in sorted(more, key=lambda word: (-round(more[word], 9), -len(word), word)):
        if len(chosen) == _WORDS or more[word] <= 0:
            break
        if not any(_overlap(word, other) for other in chosen):
            chosen.append(word)
    return chosen


def _overlap(word: str, other: str) -> bool:
    """Return whether more than half of the shorter of two substrings is in the other one."""
    short, long = sorted((word, other), key=len)
    half = len(short) // 2 + 1
    return any(short[a : a + half] in long for a in range(len(short) - half + 1))


def _words_in(text: str) -> set[str]:
    return {text[a : a + k] for k in _LETTERS for a in range(len(text) - k + 1)}


def _occurrences(text: str, word: str) -> Places:
    """Return the places of all occurrences of a substring, which may overlap, each once and ascending."""
    starts = [a for a in range(len(text) - len(word) + 1) if text.startswith(word, a)]
    return np.unique(np.add.outer(np.array(starts, dtype=np.int64), np.arange(len(word))))


# ---- stretches of time
def _flattening(series: SeriesBatch) -> Without:
    return lambda gone: concatenate([flattened(series, places) for places in gone])


def _path_of(function: Any) -> Any:
    """Return the elastic distance whose cheapest path aligns series for a kernel or distance; None if there is none."""
    while callable(getattr(function, "distance", None)):  # a kernel from a distance
        function = function.distance
    if isinstance(function, SoftDTW | GlobalAlignment):
        return DTW(getattr(function, "window", None), local="sqeuclidean")  # their limit for a small gamma or bandwidth
    return function if isinstance(function, DTW | EditDistance) else None


def _aligned(example: Floats, values: Floats, path: Any) -> Callable[[Places], Places]:
    """Return a function that maps consecutive time points of an example to those of a series, from first to last match.

    Points are matched by the cheapest path of the distance `path`; if it is None, by their share of the length.
    """
    n, length = len(example), len(values)
    steps = np.arange(n)
    first, last = steps * length // n, -(-(steps + 1) * length // n) - 1
    if path is not None:
        (a, a_starts), (b, b_starts) = _averaged(example), _averaged(values)
        links = np.array(
            [link[:2] for link in warping(path, as_series([a]), as_series([b]), ("x", "y")).links], dtype=int
        )
        links = links.reshape(-1, 2)
        from_, to = np.full(len(a), length), np.full(len(a), -1)
        np.minimum.at(from_, links[:, 0], b_starts[links[:, 1]])
        np.maximum.at(to, links[:, 0], b_starts[links[:, 1] + 1] - 1)
        block = np.searchsorted(a_starts, steps, side="right") - 1
        first, last = from_[block], to[block]

    def places(where: Places) -> Places:
        return np.arange(first[where].min(), last[where].max() + 1)

    return places


def _averaged(values: Floats) -> tuple[Floats, Places]:
    """Return the means of at most 1000 stretches of a series, and where these start, with the length at the end."""
    starts = np.linspace(0, len(values), min(len(values), _ALIGNED) + 1).round().astype(np.int64)
    return np.add.reduceat(values, starts[:-1]) / np.diff(starts)[:, None], starts
