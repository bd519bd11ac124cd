"""Check targets, and order objects so that every prefix of the order is stratified, also within each fold.

Near copies, such as one sentence with two names exchanged, are kept in one fold. Texts x and y are near copies if their
words overlap by at least 80 % (`similia.kernels.MinMax` of word counts). Texts that a chain of near copies connects are
in one group. Scores on folds that separate near copies tell how well a model remembers texts.

Cost: that of `similia.search.near_duplicates`. If there are many texts, two of them are compared only if they share a
key of locality-sensitive hashing, so up to 2 % of the pairs just above the threshold may be missed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from similia.core.text import counted, short
from similia.core.validation import BadValue, check_labels, check_positive_int, check_vectors, of_numbers, warn_user
from similia.kernels import MinMax, Words
from similia.learn.targets import Task, as_numbers, checked_labels, needs_probabilities, suits, task_of
from similia.objects import GraphBatch, StringBatch, as_graphs, as_series, as_strings, take
from similia.objects.graph_batch import check_attributes
from similia.objects.identical import identical, with_groups
from similia.objects.sequences import Batch, at_least_one
from similia.objects.tables import is_frame, is_missing, objects_in, to_array
from similia.objects.vectors import VectorsBatch, check_finite
from similia.search import near_duplicates
from similia.similarity import Distance, Kernel
from similia.sources.dask import refuse_lazy

Index = npt.NDArray[np.int64]
_LEAST = 3  # minimum number of folds: the nested estimate leaves out two
SHARE = 0.8  # of words in common; on sentences with several names replaced, 0.5 to 0.9 find nearly the same groups
_FEW = 500  # number of texts up to which all pairs are compared


def checked_targets(y: Any, n: int, task: Task, scoring: Any = None) -> npt.NDArray:
    """Return the targets of n objects as an array (of numbers for regression); raise if they do not suit the task.

    Objects of one type, such as the text or integers of a pandas column, become an array of that type.
    """
    each = "MultiOutputClassifier" if task == "classification" else "MultiOutputRegressor"
    columns = ", which MultiLabelBinarizer makes of lists of labels" if task == "classification" else ""
    hint = f"; sklearn.multioutput.{each}(...) learns each column of a table of targets{columns}"
    given, y = y, check_labels(y, n, hint=hint)
    missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.array([is_missing(label) for label in y.tolist()])
    if missing.any():
        i = int(np.argmax(missing))
        raise BadValue(i, f"is {y[i]}", "a label or a finite number", "leave that object out", collection="y")
    if y.dtype == object:
        y = np.array(y.tolist()) if all(isinstance(label, str) for label in y.tolist()) else of_numbers(y)
    if task == "regression":
        task_of(y, task)  # raises if a target is not a number
        numbers = as_numbers(y)
        assert numbers is not None
        if numbers.min() == numbers.max():
            raise ValueError(f"all {n} targets are {numbers[0]:g}, expected at least two different numbers")
        y = numbers
    elif y.dtype.kind == "f" and (fractions := y != np.round(y)).any():
        i = int(np.argmax(fractions))
        raise BadValue(
            i, f"is {y[i]:g}, which is not a class label", "", "use AutoRegressor to predict numbers", collection="y"
        )
    else:
        checked_labels(given if isinstance(given, list | tuple) else y, n)  # raises if they are of two types
    suited = suits(scoring)
    if suited not in (None, task):
        raise ValueError(f"scoring={scoring!r} does not score a {task}")
    if suited == "classification" and needs_probabilities(scoring):
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, which most candidates do not give; use for example roc_auc, "
            "balanced_accuracy or f1_macro"
        )
    return y


def number_of_folds(
    y: npt.NDArray, task: Task, cv: Any, together: Index | None = None, unit: str = "different object"
) -> int:
    """Return the number of folds: `cv` or, with a warning, fewer (at least 3) if a class has fewer objects.

    Objects with the same number in `together` share a fold and count as one; messages call it `unit`.
    """
    folds = check_positive_int(cv, "cv", minimum=_LEAST)
    parts = np.arange(len(y)) if together is None else together
    n, classify = len(np.unique(parts)), task == "classification"
    unit = "object" if n == len(y) else unit
    least = _LEAST if classify else folds
    if n < least and n < len(y):
        joint = " (copies of an object are in one)" if unit == "group" else ""
        raise ValueError(f"X has {counted(n, unit)}{joint}, and cv={least} folds need at least {least}")
    if classify:
        classes, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(np.unique(np.column_stack([codes, parts]), axis=0)[:, 0])
        folds = _folds_of_classes(classes, counts, folds, unit)
    if len(y) < 2 * folds:
        raise ValueError(f"cv={folds} folds need at least {2 * folds} objects, found {len(y)}")
    return folds


def _folds_of_classes(classes: npt.NDArray, counts: Index, folds: int, unit: str) -> int:
    """Return `folds` or, with a warning, fewer (at least 3) if a class is smaller; raise if a fold has one class only.

    The nested estimate trains on one fold of three. Two classes of three objects or more reach every fold. Of four
    classes of two or more, at most two miss the same fold: a class between them has it.
    """
    hint = "" if as_numbers(classes) is None else "; AutoRegressor predicts numbers"
    if len(classes) == 1:
        raise ValueError(f"y has the one class {shown(classes[0])}, expected at least two")
    if len(classes) > 2 and 2 * np.count_nonzero(counts == 1) > len(classes):
        raise ValueError(f"most of the {len(classes)} classes in y have only one {unit}; are these labels?{hint}")
    least = int(counts.min())
    if least >= folds:
        return folds
    has = f"class {shown(classes[counts.argmin()])} {'is in' if unit == 'group' else 'has'} {counted(least, unit)}"
    in_turn = np.repeat(np.arange(len(counts)), counts)  # as `ordered` deals the objects out to the folds
    if min(len(np.unique(in_turn[fold::_LEAST])) for fold in range(_LEAST)) < 2:
        raise ValueError(
            f"{has}; cross-validation needs two classes of at least {_LEAST} {unit}s each, or four of at least 2; give "
            f"more {unit}s of the small classes"
        )
    fewer = max(_LEAST, least)
    so = f"so there are {fewer} folds instead of {folds}" if fewer < folds else f"fewer than the {folds} folds"
    warn_user(f"{has}, {so}{hint if len(classes) > 20 else ''}")
    return fewer


def shown(label: Any) -> str:
    """Return a label as Python shows it, without numpy's type."""
    return short(label.item() if hasattr(label, "item") else label)


class Order(NamedTuple):
    """Positions and folds of objects, ordered such that the first n objects are a fair sample for every n."""

    objects: Index
    fold: Index


def ordered(y: npt.NDArray, task: str, folds: int, rng: np.random.Generator, groups: Index | None = None) -> Order:
    """Return a random order; in classification, `folds` objects of each class come first, then the rest in proportion.

    With `groups` (the number of each object's group, from 0), one object of each group comes first, drawn at random and
    ordered in this way; then come the second objects, and so on. All objects of a group are in one fold.
    """
    if groups is not None and len(np.unique(groups)) < len(groups):
        rows = ordered(y, task, folds, rng).objects  # in the user's order, all first objects may be of one class
        y = y[rows]
        _, firsts, members = np.unique(groups[rows], return_index=True, return_inverse=True)
        order, sizes = ordered(y[firsts], task, folds, rng), np.bincount(members)
        if task == "regression":
            order = order._replace(objects=_beside_others(order.objects, sizes, folds))
        place, fold = np.empty((2, len(firsts)), dtype=np.int64)
        place[order.objects], fold[order.objects] = np.arange(len(firsts)), order.fold
        by_group = np.argsort(members, kind="stable")
        turn = np.empty(len(groups), dtype=np.int64)
        turn[by_group] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        objects = np.lexsort((place[members], turn))
        return Order(rows[objects], fold[members][objects])
    n = len(y)
    if task == "regression":
        return Order(rng.permutation(n), np.arange(n) % folds)
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = np.empty(n, dtype=np.int64)
    for label in range(len(counts)):
        members = np.flatnonzero(labels == label)
        rank[members] = rng.permutation(len(members))
    share = (rank + rng.random(len(counts))[labels]) / counts[labels]
    objects = np.argsort(np.where(rank < folds, share - 2, share), kind="stable")
    shift = np.cumsum(counts) - counts  # classes start at different folds to balance sizes
    return Order(objects, ((rank + shift[labels]) % folds)[objects])


def _beside_others(order: Index, sizes: Index, folds: int) -> Index:
    """Reorder groups of the given sizes such that, if possible, no group of one object has a fold to itself.

    Group i of the order is in fold i % folds, and scores such as R squared need two objects.
    """
    n_paired = max(0, len(order) - folds)  # of the first groups; the others of the first `folds` groups are alone
    alone = order[sizes[order] > 1][: max(0, folds - n_paired)]
    others = order[~np.isin(order, alone)]
    return np.concatenate([others[:n_paired], alone, others[n_paired:]])


def again(y: npt.NDArray, task: str, folds: int, seed: int, groups: Index | None = None) -> Index:
    """Return the fold of each object in a new random partition, drawn with `seed`."""
    order = ordered(y, task, folds, np.random.default_rng(seed), groups)
    fold = np.empty(len(y), dtype=np.int64)
    fold[order.objects] = order.fold
    return fold


def held_out(X: Any, y: npt.NDArray, share: float, seed: int, *, stratify: bool) -> tuple[Index, Index]:
    """Return (training, test) positions of a random split; copies (and near copies of texts) count as one.

    If `stratify`, `y` holds classes, which are split in proportion if each has at least two different objects.
    """
    groups = identical(X)
    if isinstance(X, StringBatch):
        groups, _ = kept_together(X, groups, y, max(2, round(1 / share)), stratify)
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    classes = y[firsts] if stratify and np.unique(y[firsts], return_counts=True)[1].min() > 1 else None
    n, n_classes = len(firsts), 1 if classes is None else len(np.unique(classes))
    n_held_out = int(np.ceil(share * n))
    if min(n_held_out, n - n_held_out) < n_classes:
        needed = "at least one" if classes is None else f"at least one of each of the {n_classes} classes"
        raise ValueError(
            f"{counted(n, 'different object')} cannot be split into a training part and {n_held_out} held-out to score "
            f"the model: each part needs {needed}; give more objects, or hold out another share of them"
        )
    train, _ = train_test_split(np.arange(len(firsts)), test_size=share, random_state=seed, stratify=classes)
    place = np.empty(len(firsts), dtype=np.int64)  # without copies, the split and order are scikit-learn's
    place[train] = np.arange(len(train))
    inside = np.isin(members, train)
    rows = np.flatnonzero(inside)
    return rows[np.argsort(place[members[rows]], kind="stable")], np.flatnonzero(~inside)


def joined(X: Any, groups: Any) -> tuple[Index, list[str]]:
    """Return the group of each object, from 0, and notes for the user; groups with copies of one object are joined."""
    same, notes = identical(X), []
    n, n_copies = len(same), len(same) - len(np.unique(same))
    if n_copies:
        notes = [f"{n_copies} of {n} objects are copies of others; all copies are kept on one side of a fold"]
    same = same if groups is None else with_groups(same, groups)
    return np.unique(same, return_inverse=True)[1], notes


def own_similarities(similarity: Any) -> tuple[Kernel | Distance, ...]:
    """Return the user's kernels and distances as a tuple, or raise if one of them is something else."""
    given = [] if similarity is None else similarity if isinstance(similarity, list | tuple) else [similarity]
    for i, compare in enumerate(given):
        if not isinstance(compare, Kernel | Distance):
            found = getattr(compare, "__name__", None) or short(compare)
            raise TypeError(
                f"similarity[{i}] is {found}, expected a kernel or a distance of similia; "
                "similia.distances.FromFunction(f) makes a distance of a function f(x, y) -> float, and "
                "similia.pairwise(f) a kernel"
            )
    return tuple(given)


def recognised(X: Any, *, any_kind: bool = False) -> tuple[str, Any]:
    """Return (kind, objects): "strings", "graphs", "series", "sets" or "vectors", and a batch, array or CSR matrix.

    An unknown or ambiguous kind raises an error or, with `any_kind`, is returned as ("objects", X).
    """
    refuse_lazy(X, "the search runs in memory; give X.compute(), or a part of some thousand objects")
    X = objects_in(X)
    at_least_one(X)
    if isinstance(X, Batch):
        if isinstance(X, VectorsBatch):
            check_finite(X)
        if isinstance(X, GraphBatch):
            check_attributes(X)
        return X.kind, X
    if sp.issparse(X):
        return "vectors", sp.csr_array(X)
    if is_frame(X):
        return "vectors", check_vectors(to_array(X))
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        return "vectors", check_vectors(X)
    first = _first(X)
    if isinstance(first, str | bytes):
        return "strings", as_strings(X)
    if isinstance(X, np.ndarray) and X.dtype != object:
        return "series", as_series(X)  # three axes: as_series asks which one is time
    if isinstance(first, list | tuple | np.ndarray) and np.asarray(first).dtype.kind in "biuf":
        ndim = np.asarray(first).ndim
        return ("objects", X) if any_kind and ndim > 1 else _of_numbers(X, ndim)
    if any(hasattr(first, name) for name in ("nodes", "edge_index", "vs")) or isinstance(first, dict):
        return "graphs", as_graphs(X)
    for kind, convert in (("graphs", as_graphs), ("strings", as_strings), ("series", as_series)):
        try:
            return kind, convert(X)
        except (TypeError, ValueError):
            continue
    if any_kind:
        return "objects", X
    raise TypeError(
        f"cannot tell what kind of object X[0] is: found {short(first)}, expected a string, a graph, a series, a "
        "set of points or a vector; convert them by similia.objects.as_strings, as_graphs, as_series or as_sets, or "
        "give your own similarity"
    )


def _of_numbers(X: Any, ndim: int) -> tuple[str, Any]:
    """Return (kind, objects) if each object is a list or array of numbers with `ndim` axes; raise if `ndim` > 1."""
    if ndim == 1:
        if all(isinstance(row, list | tuple) for row in X) and len({len(row) for row in X}) == 1:
            return "vectors", check_vectors(np.asarray(list(X), dtype=np.float64))
        return "series", as_series(X)
    raise ValueError(
        f"X holds arrays of {ndim} axes, which may be series or point sets; "
        "say which: similia.objects.as_series(X) or similia.objects.as_sets(X)"
    )


def _first(X: Any) -> Any:
    """Return the first object of a collection, also of a pandas or Arrow column."""
    if hasattr(X, "iloc"):
        return X.iloc[0]
    found: Any = X[0]
    return found.as_py() if hasattr(found, "as_py") else found


# ---- near copies
def near_copies(X: StringBatch) -> Index:
    """Return a number per text, shape (n,), which near copies share; a text without words shares it with none."""
    method = "exact" if len(X) <= _FEW else "hashes"
    words = MinMax(Words(n=1, min_letters=1))
    return near_duplicates(X, words, SHARE, method=method, random_state=0).groups


def kept_together(X: StringBatch, groups: Index, y: npt.NDArray, folds: int, classify: bool) -> tuple[Index, list[str]]:
    """Join near copies to the `groups` of identical texts; return the new groups and notes for the user.

    The groups stay as they are if X is not text (words separated by spaces), if one would hold more than ``1 / folds``
    of the texts, or if a class would be in fewer groups than before, and fewer than `folds`.
    """
    if not (X.values == ord(" ")).any():
        return groups, []
    n = len(X)
    some = np.arange(min(n, _FEW))
    if _largest(near_copies(take(X, some))) > len(some) / folds:  # before time goes into all pairs of a large group
        return groups, []
    together = with_groups(groups, near_copies(X))
    if len(np.unique(together)) == len(np.unique(groups)) or _largest(together) > n / folds:
        return groups, []
    if classify:
        for label in np.unique(y):
            of_class = y == label
            if len(np.unique(together[of_class])) < min(folds, len(np.unique(groups[of_class]))):
                return groups, []
    more = n - len(np.unique(together))
    return together, [
        f"{more} of {n} texts are near copies of others (at least {100 * SHARE:g} % of their words are the same); all "
        "near copies are kept on one side of a fold, so that scores are those of new texts; groups=range(len(X)) keeps "
        "only identical texts together"
    ]


def _largest(groups: Index) -> int:
    return int(np.unique(groups, return_counts=True)[1].max())
