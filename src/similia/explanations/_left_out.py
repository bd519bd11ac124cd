"""Places of an object that matter to a model whose parts have no places: leave them out and predict again.

With f the decision of the model, a place gets the mean of f(x) - f(x without the window) over the windows that cover
it. What a window is, and what x is without it, depends on the kind of object:

=======  ========================================================  =====================================================
kind     windows                                                   without one
=======  ========================================================  =====================================================
string   w letters, which slide over the string                    the other letters, joined
series   a tenth of the time points, which slides over the series  a straight line in place of the stretch
graph    a node; in a large graph, some nodes near each other      the other nodes, and the edges between them
set      a point; in a large set, some points near each other      the other points
vector   a column                                                  the mean of the column in place of its value
=======  ========================================================  =====================================================

The notes of `explain` ("Columns without parts") say which columns are left out, and over which objects their means
are taken.

Places whose amounts have one sign and are above the mean amount belong together if they are neighbours (of a set: if
they share a window), and are left out once more as a whole; columns have no neighbours. Effects overlap, so they do not
add up to the decision. Cost: about `_MOST` predictions (for vectors, `_COLUMNS`) and `top` more.

Source: occlusion, Zeiler & Fergus, "Visualizing and understanding convolutional networks", ECCV 2014, Section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.spatial import KDTree
from sklearn.base import is_regressor

from similia.core.config import collected_warnings
from similia.core.text import counted
from similia.embeddings import D2KE
from similia.explanations import _decisions as decisions
from similia.explanations._comparisons import Naming, has_features
from similia.explanations._decisions import collection
from similia.explanations._explanation import (
    NOWHERE,
    Explanation,
    Floats,
    Found,
    LeftOut,
    Part,
    explained,
    runs_of,
)
from similia.explanations._series import named_stretch
from similia.explanations._views import Places, View, as_text, dense, one_note, view_of
from similia.kernels.hypersphere import SphereKernel, to_hypersphere
from similia.learn.heat_svc import HeatSVC
from similia.learn.kernel_machines import KernelSVC
from similia.learn.outliers import OutlierDetector
from similia.objects import GraphBatch, SeriesBatch, SetBatch, as_graphs, as_series, as_sets, as_strings, concatenate
from similia.objects.molecules import SmilesBatch
from similia.objects.sequences import Batch, offsets_of
from similia.objects.tables import holds_numbers, is_frame, to_array
from similia.pipelines import decides_in_pairs
from similia.similarity import as_objects, evaluate, name_of

_SHORTEST, _MOST = 3, 80  # letters or time points of a window, and windows
_SHARE = 10  # a window of a series has one of so many parts of it
_COLUMNS = 120  # maximum number of columns of a vector that are left out
_KEPT = "objects_", "support_objects_", "landmarks_"  # attributes that hold training objects
_AT_ONCE = 2**20  # places of the objects that are predicted together
_SAME = 1e-3  # relative difference below which two numbers are the same decision (of float32)
_NOTHING = 1e-9  # relative to the decision: smaller effects are rounding errors
_LEAST = {"strings": _SHORTEST + 1, "series": 2 * _SHORTEST, "graphs": 2, "sets": 2, "vectors": 2}  # places
_WHAT = {  # that are left out
    "strings": "stretches", "series": "stretches", "graphs": "nodes", "sets": "points", "vectors": "columns",
}  # fmt: skip
Decide = Callable[[Any], Floats]  # maps a collection of n objects to n decisions
Without = Callable[[Sequence[Places]], Any]  # maps sets of places to a collection: x without each of them


def with_left_out(found: Explanation, steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Return the explanation of a model's decision for an object with the places that matter when they are left out.

    Explanations whose parts have places or are columns, and those of objects without places, are returned as they are.
    """
    view = found._x
    if found.shares_x is not None or view is None:
        return found
    if view.kind == "other" and isinstance(x, str | bytes):  # the user's own function compares them
        view = view_of(as_strings([x]))
        found = replace(found, _x=view)
    means = ""
    if view.kind == "other" and (vectors := _vector(steps, x, naming)) is not None:
        steps, view, means = vectors
        found = replace(found, _x=view)
    if view.n_places < _LEAST.get(view.kind, np.inf):
        return found
    told, left_out = "", None
    try:
        if (without := _remover(view, steps, x)) is not None:
            left_out = _left_out(found, steps, view, without, top)
            told = means if left_out.parts else f"no {_WHAT[view.kind]} of x change {left_out.of} if they are left out"
    except (TypeError, ValueError) as error:  # a model of strings of one length, for example, takes no shorter ones
        what = f"{_WHAT[view.kind]} of x cannot be left out"
        told = f"{what}, because {name_of(steps[-1])} then does not predict: {error}"
    return replace(found, left_out=left_out, note=one_note(found.note, told))


def without_parts(steps: list[Any], x: Any, naming: Naming, top: int, why: str) -> Explanation | None:
    """Return an explanation of a decision that has no parts at all, by the places of the object that matter.

    Return None if the object has no places, or the model no scores. `why` says why there are no parts.
    """
    learner, X = steps[-1], as_strings([x]) if isinstance(x, str | bytes) else collection(steps[0], x)
    view = view_of(X, naming)
    if view.n_places < _LEAST.get(view.kind, np.inf) and _vector(steps, x, naming) is None:
        return None
    rows = through(steps[:-1], X)
    if hasattr(learner, "classes_"):
        decisions.check_one_label(learner, rows)
    if not is_scored(learner):
        return None
    scores, by = _scores(learner, rows)[0], name_of(learner)
    value, kind, title = float(scores[0]), "prediction", f"of {by}, {decisions.PREDICTED}"
    if isinstance(learner, OutlierDetector):
        kind, title = "strangeness", f"of x by {by}(method={learner.method_!r})"
    elif not is_regressor(learner):
        decisions.check_two_classes(learner)
        winner, other, weights = _rivals(learner, rows, scores)
        value, kind = float(scores @ weights), "decision"
        title = f"of {by}, {decisions.against(learner.classes_, winner, other)}"
    elif len(scores) > 1:
        raise decisions.several_numbers(learner, len(scores))
    nothing = Found(np.zeros(0), lambda k: ("", NOWHERE, NOWHERE))
    note = f"the {kind} has no parts: {why.split('; ')[0]}"
    found = explained(value, kind, nothing, top, f"{kind} {title}", (view, None), note=note)
    return with_left_out(found, steps, x, naming, top)


def is_scored(learner: Any) -> bool:
    """Return whether a learner predicts numbers, or gives scores to classes or to outliers."""
    scored = hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")
    return _is_number(learner) or (scored and hasattr(learner, "classes_"))


def _is_number(learner: Any) -> bool:
    return is_regressor(learner) or isinstance(learner, OutlierDetector)


def _left_out(found: Explanation, steps: list[Any], view: View, without: Without, top: int) -> LeftOut:
    whole = without([NOWHERE])
    decide, rivals = decision_at(steps, whole)
    value, windows = float(decide(whole)[0]), _windows(view)
    title = f"the {found.kind}"
    if rivals and abs(value - found.value) > _SAME * max(abs(value), abs(found.value)):
        title = f"the score of {rivals[0]} minus that of {rivals[1]}"

    def falls_without(gone: list[Places]) -> Floats:
        size = view.n_places if view.stored is None else len(view.stored)
        return value - decided_without(decide, without, gone, size)

    amounts = mean_over(windows, falls_without(windows), view.n_places)
    strong = float(np.abs(amounts).mean())
    if float(np.abs(amounts).max()) <= _NOTHING * max(1.0, abs(value)):
        return LeftOut(title, [], np.zeros(view.n_places))
    pieces = [piece for piece in _pieces(view, windows, amounts, strong) if len(piece) < view.n_places]
    pieces = sorted(pieces, key=lambda piece: -abs(float(amounts[piece].sum())))[:top]
    adds = falls_without(pieces).tolist()
    parts = [Part(_named(view, piece), add, piece, NOWHERE) for piece, add in zip(pieces, adds, strict=True)]
    return LeftOut(title, sorted(parts, key=lambda part: -abs(part.contribution)), amounts)


def decided_without(decide: Decide, without: Without, gone: Sequence[Places], size: int) -> Floats:
    """Return the decisions for an object of `size` places without each of the sets of places in `gone`."""
    step = max(1, _AT_ONCE // max(1, size))
    blocks = [gone[start : start + step] for start in range(0, len(gone), step)]
    with collected_warnings():  # about objects that nobody has
        return np.concatenate([np.zeros(0), *(decide(without(block)) for block in blocks)])


def mean_over(windows: Sequence[Places], amounts: Floats, n_places: int) -> Floats:
    """Return the mean of the amounts of the windows that cover each place, 0 if none does, (n_places,)."""
    sums, times = np.zeros(n_places), np.zeros(n_places)
    for window, amount in zip(windows, amounts.tolist(), strict=True):
        sums[window] += amount
        times[window] += 1
    return sums / np.maximum(times, 1)


def _windows(view: View) -> list[Places]:
    """Return the windows of an object, each as ascending places; together they cover it, unless it is a long vector."""
    n = view.n_places
    if view.kind == "vectors":
        apart = np.abs(np.diff(view.values)[:, 0])
        farthest = np.argsort(-apart, kind="stable")[:_COLUMNS]
        return [column[None] for column in np.sort(farthest[apart[farthest] > 0])]
    if view.kind in ("strings", "series"):
        width = max(_SHORTEST, -(-n // _SHARE) if view.kind == "series" else -(-2 * n // _MOST))
        step = 1 if n <= _MOST else -(-n // _MOST) if view.kind == "series" else max(1, width // 2)
        starts = np.unique([*range(0, n - width, step), n - width])
        return [np.arange(start, start + width) for start in starts.tolist()]
    order = np.arange(n)
    if n > _MOST:  # places near each other become neighbours in this order
        is_graph = view.kind == "graphs"
        order = reverse_cuthill_mckee(_adjacency(view.arcs, n)) if is_graph else KDTree(view.values, 1).indices
    return [np.sort(some).astype(np.int64) for some in np.array_split(order, min(n, _MOST))]


def _pieces(view: View, windows: list[Places], amounts: Floats, strong: float) -> list[Places]:
    """Return the places that matter, neighbours with amounts of one sign together; `strong` is the mean amount."""
    if view.kind in ("strings", "series"):
        return [np.arange(a, b) for a, b in runs_of(amounts, strong) if abs(amounts[a]) > strong]
    if view.kind in ("sets", "vectors"):
        least = strong if view.kind == "sets" else _NOTHING * float(np.abs(amounts).max())
        return [window for window in windows if abs(amounts[window[0]]) > least]
    levels = np.where(np.abs(amounts) > strong, np.sign(amounts), 0.0)
    alike = view.arcs[:, levels[view.arcs[0]] == levels[view.arcs[1]]]
    numbers = connected_components(_adjacency(alike, view.n_places), directed=False)[1]
    return [np.flatnonzero(numbers == k) for k in np.unique(numbers[levels != 0])]


def _adjacency(arcs: Places, n: int) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(arcs.shape[1]), (arcs[0], arcs[1])), shape=(n, n))


def _named(view: View, places: Places) -> str:
    if view.kind == "strings":
        return view.text[places[0] : places[-1] + 1]
    if view.kind == "series":
        return named_stretch(view.values, int(places[0]), int(places[-1]) + 1)
    if view.kind == "sets":
        at = ", ".join(f"{number:.3g}" for number in view.values[places].mean(axis=0)[:3].tolist())
        around = f"({at}{', ...' if view.values.shape[1] > 3 else ''})"
        return f"point at {around}" if len(places) == 1 else f"{counted(len(places), 'point')} around {around}"
    names = [view.names[v] for v in places.tolist()]
    if view.kind == "vectors":
        return names[0]
    return f"{counted(len(places), 'node')}: {', '.join(names)}" if any(names) else counted(len(places), "node")


def _remover(view: View, steps: list[Any], x: Any) -> Without | None:
    """Return a function that leaves places of an object out, or None if only its drawing has these places."""
    if view.kind == "strings":
        letters = letters_of(x)
        return None if as_text(letters) != view.text else lambda gone: [_shorter(letters, places) for places in gone]
    if view.kind == "vectors":
        return lambda gone: _with_means(view, gone)
    X = collection(steps[0], x)
    if isinstance(X, SmilesBatch):
        return None
    known: dict[str, tuple[Any, Any]] = {
        "series": (as_series, flattened), "graphs": (as_graphs, _without_nodes), "sets": (as_sets, _without_points),
    }  # fmt: skip
    read, remove = known[view.kind]
    one = read(X)
    return lambda gone: concatenate([remove(one, places) for places in gone])


def letters_of(x: Any) -> Any:
    """Return a string, or that of a collection of one string, as it was given: as str or bytes."""
    if isinstance(x, str | bytes):
        return x
    return np.asarray(x, dtype=object).ravel()[0] if hasattr(x, "iloc") else x[0]


def _shorter(letters: Any, places: Places) -> Any:
    return letters[: places[0]] + letters[places[-1] + 1 :] if len(places) else letters


def flattened(series: SeriesBatch, places: Places) -> SeriesBatch:
    """Return a series with a straight line at consecutive time points, level where the series begins or ends there."""
    values = series.values.copy()
    if len(places):
        kept = np.delete(np.arange(len(values)), places)
        for channel in values.T:
            channel[places] = np.interp(places, kept, channel[kept])
    return replace(series, values=values)


def _with_means(view: View, gone: Sequence[Places]) -> Any:
    """Return a vector with the means of some columns in their places, a row for each set; sparse if it is."""
    row, means = view.values.T
    columns = np.arange(view.n_places) if view.stored is None else view.stored
    rows = np.tile(row[columns], (len(gone), 1))
    for changed, places in zip(rows, gone, strict=True):
        changed[np.searchsorted(columns, places)] = means[places]
    if view.stored is None:
        return rows
    starts = len(columns) * np.arange(len(gone) + 1)
    return sp.csr_array((rows.ravel(), np.tile(columns, len(gone)), starts), shape=(len(gone), view.n_places))


def _vector(steps: list[Any], x: Any, naming: Naming) -> tuple[list[Any], View, str] | None:
    """Return the steps from the last that compares vectors without parts by column, x there, and a note on the means.

    Return None if there is no such step, or if x is not a vector.
    """
    which = max((i for i, step in enumerate(steps) if _kept(step) is not None), default=None)
    if which is None or isinstance(x, str | bytes):
        return None
    compared, objects = _kept(steps[which])
    X = collection(steps[0], x)
    if has_features(compared, all) or isinstance(X, Batch):
        return None
    row, objects = (_rows(compared, some) for some in (through(steps[:which], X), objects))
    if row is None or objects is None or not objects.shape[0] or row.shape != (1, objects.shape[1]):
        return None
    named, who = naming.after(steps[:which]), f"training objects that {name_of(steps[which])}"
    note = f"a column that is left out gets its mean over the {objects.shape[0]} {who} keeps"
    values = np.column_stack([dense(row)[0], np.asarray(objects.mean(axis=0)).ravel()])
    n, stored = len(values), None
    names = [named.column(k) for k in range(n)]
    if sp.issparse(row):
        stored = np.flatnonzero(values[:, 0])
        values[values[:, 0] == 0] = 0.0
        n, note = len(stored), f"{note}; columns in which x is 0 are not left out"
    view = View("vectors", len(values), names=names, values=values, stored=stored)
    if n > _COLUMNS:
        note += f"; of {n} columns, only the {_COLUMNS} in which x differs most from the mean were left out"
    return steps[which:], view, note


def _kept(step: Any) -> Any:
    """Return the kernel or distance of an estimator and the training objects that it keeps; None if it has none."""
    if isinstance(step, HeatSVC):
        return step.kernel_, _support_rows(step)
    if isinstance(step, D2KE):
        return (step.distance_, step.random_objects_) if len(step.representative_indices_) else None
    compared = getattr(step, "kernel_", getattr(step, "distance_", None))
    found = [getattr(step, name) for name in _KEPT if hasattr(step, name)]
    return (compared, found[0]) if callable(compared) and found else None


def _support_rows(machine: HeatSVC) -> Any:
    """Return vectors that a machine maps to its support vectors, which are points of the sphere."""
    vectors = machine.support_vectors_
    return _squares(vectors) if machine.kernel_.mapping == "sqrt" else vectors


def _squares(vectors: Any) -> Any:
    return vectors.power(2) if sp.issparse(vectors) else np.square(vectors)


def _rows(compared: Any, X: Any) -> Any:
    """Return vectors as a dense or sparse array of float64, scaled as the kernel compares them; None of others."""
    X = as_objects(compared, X)
    if is_frame(X) and holds_numbers(X):
        X = to_array(X)
    if isinstance(X, list) and len(X) == 1 and isinstance(X[0], np.ndarray):  # for a function of two objects
        X = X[0][None]
    if not (isinstance(X, np.ndarray) or sp.issparse(X)) or X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    rows = X.astype(np.float64)
    if not isinstance(compared, SphereKernel) or compared.mapping is None:
        return rows
    mapped = to_hypersphere(rows, compared.mapping, zero_rows=compared.zero_rows)
    return _squares(mapped) if compared.mapping == "sqrt" else mapped


def _without_points(points: SetBatch, places: Places) -> SetBatch:
    values = np.delete(points.values, places, axis=0)
    return replace(points, values=values, offsets=offsets_of([len(values)]))


def _without_nodes(graph: GraphBatch, nodes: Places) -> GraphBatch:
    stays = np.ones(graph.n_nodes, dtype=bool)
    stays[nodes] = False
    arcs = graph.edge_index
    inside = stays[arcs].all(axis=0)
    number = np.cumsum(stays) - 1
    sources, targets = number[arcs[:, inside]]
    rows = {"node": stays, "edge": inside}
    side = {name: None if of is None else of[rows[name[:4]]] for name, of in graph._side().items()}
    n = int(stays.sum())
    return GraphBatch(offsets_of([n]), offsets_of(np.bincount(sources, minlength=n)), targets, **side)


def decision_at(steps: list[Any], whole: Any) -> tuple[Decide, tuple[str, str] | None]:
    """Return the decision of a model as a function of a collection, shape (n,), and the names of the two classes.

    The decision is a predicted number or a strangeness (then there are no classes), or the score of the class predicted
    for the object of the collection `whole`, minus that of its closest rival.
    """
    learner = steps[-1]

    def scores(objects: Any) -> Floats:
        return _scores(learner, through(steps[:-1], objects))

    if _is_number(learner):
        return lambda objects: scores(objects)[:, 0], None
    winner, other, weights = _rivals(learner, through(steps[:-1], whole), scores(whole)[0])
    names = str(learner.classes_[winner]), str(learner.classes_[other])
    return lambda objects: scores(objects) @ weights, names


def _rivals(learner: Any, X: Any, scores: Floats) -> tuple[int, int, Floats]:
    """Return (winner, other, weights): the predicted class, its closest rival, and what to multiply scores by.

    ``scores @ weights``, where `scores` are those of the one object in `X`, decides between the two classes.
    """
    weights = np.zeros(len(scores))
    if isinstance(learner, KernelSVC | HeatSVC) or decides_in_pairs(learner):
        winner, other, sign, column = decisions.best_machine(learner.predict(X)[0], learner.classes_, scores)
        weights[column] = sign
    else:
        winner, other = decisions.best_two(scores)
        weights[winner], weights[other] = 1.0, -1.0
    return winner, other, weights


def through(steps: list[Any], X: Any) -> Any:
    for step in steps:
        X = step.transform(X)
    return X


def _scores(learner: Any, X: Any) -> Floats:
    """Return predicted numbers, strangeness, outputs of one-vs-one machines or scores of classes, (n, n_columns)."""
    if _is_number(learner):
        numbers = learner._strangeness(X)[0] if isinstance(learner, OutlierDetector) else learner.predict(X)
        predicted = np.asarray(numbers, dtype=np.float64)
        return predicted.reshape(len(predicted), -1)
    if isinstance(learner, KernelSVC | HeatSVC):
        objects = _support_rows(learner) if isinstance(learner, HeatSVC) else learner.support_objects_
        K = np.asarray(evaluate(learner.kernel_, X, objects), dtype=np.float64)
        return K @ learner.pair_coef_.T + learner.pair_intercept_
    how = learner.decision_function if hasattr(learner, "decision_function") else learner.predict_proba
    found = np.asarray(how(X), dtype=np.float64)
    return found if found.ndim == 2 else np.column_stack([-found / 2, found / 2])
