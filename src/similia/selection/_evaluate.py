"""Score candidates on folds; an embedding is fitted to the training folds once for all its learners."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from similia.core.config import in_threads, limited_to, n_threads, settings
from similia.core.estimators import all_at_once
from similia.embeddings import D2KE, GraphletSampling, KernelFeatures, Nystroem
from similia.embeddings.d2ke import Representatives
from similia.embeddings.landmarks import DistancePairs, KernelPairs
from similia.learn.kernel_machines import KernelRidge, KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import n_objects, take
from similia.pipelines import parts_of
from similia.selection import budget
from similia.selection._ladder import Group, identity
from similia.similarity import Distance, decided

_PROBED = (8, 9, 16, 32, 64, 128)  # numbers of objects for measuring costs; the first call compiles
_CLEARLY = 0.1  # share of the available time: work expected to take less is not measured further
_SPARSE = 0.3  # above this share of nonzero weights a dense array is smaller or faster
_SHARE = 0.5  # share of the working memory for cached matrices
# liblinear's dual solver draws from one generator per process, so fits at the same time would disturb each other.
_LIBLINEAR = Lock()
Left = tuple[int, frozenset[int]]  # number of a partition into folds, and the folds left out of training
Key = tuple[int, int, int, Left]  # group, learner, number of objects, folds left out
Score = Callable[[Any, Any, npt.NDArray], float]


@dataclass
class Evaluator:
    """Fits candidates to the first n objects except some folds, and keeps each candidate's scores on these folds.

    Attributes
    ----------
    X : collection of objects
        Objects, ordered such that the first n are a fair sample for every n.
    given : collection of objects, optional
        The same objects as the user gave them, for kernels and distances of the user; by default X.
    y : ndarray, shape (n,)
    partitions : list of ndarray of int64, shape (n,)
        The fold of each object, in one or more partitions of the objects into folds.
    score : callable
        ``score(estimator, V, y)``: a scorer of scikit-learn.
    kept, answers : dict
        `kept` maps (group, learner, n, (partition, folds left out)) to {fold: score}. `answers` maps the same keys to
        {fold: predictions}; it is empty if the score needs more than predictions.
    failed : dict
        Maps (group, learner) to the message of the error raised; learner -1 stands for the whole group.
    seconds : dict
        Maps (group, learner, n) to the seconds of each fit of embedding and learner, without the work that folds share.
    """

    X: Any
    y: npt.NDArray
    partitions: list[npt.NDArray[np.int64]]
    score: Score
    groups: Sequence[Group]
    given: Any = None
    kept: dict[Key, dict[int, float]] = field(default_factory=dict)
    answers: dict[Key, dict[int, npt.NDArray]] = field(default_factory=dict)
    failed: dict[tuple[int, int], str] = field(default_factory=dict)
    seconds: dict[tuple[int, int, int], list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cache = Cache(self.X, self.given)
        self.scores_answers = scores_answers(self.score, self.y)

    def run(self, group: int, learners: Sequence[int], n: int, left_out: Sequence[Left]) -> tuple[float, float, int]:
        """Fit and score learners of a group, except where the score is known; record failures.

        Return (seconds of the work that folds share, seconds of all fits, number of fits).
        """
        begin = budget.clock()
        wanted = {left: [i for i in learners if (group, i, n, left) not in self.kept] for left in left_out}
        wanted = {left: missing for left, missing in wanted.items() if missing}
        if not wanted or (group, -1) in self.failed:
            return 0.0, 0.0, 0
        start = begin
        try:
            # Compute shared values once, with all threads.
            made = [self._cache.pipelines(self.groups[group], missing, n) for missing in wanted.values()]
            start = budget.clock()
            at_once = min(n_threads(), len(wanted))
            fits = [
                partial(self._fit, group, missing, n, left, *parts, at_once)
                for (left, missing), parts in zip(wanted.items(), made, strict=True)
            ]
            with warnings.catch_warnings():  # scikit-learn's trees set the filters in each thread, which all share
                in_threads(lambda fit: fit(), fits, at_once)
        except Exception as error:  # a failing candidate must not end the search
            self.failed[group, -1] = f"{type(error).__name__}: {error}"
        return start - begin, budget.clock() - start, len(wanted)

    def holds(self, group: int, n: int) -> bool:
        """Return whether the values that folds share are cached for `n` objects; True if they share none."""
        return self.shared(group) is None or self._cache.holds(self.groups[group], n)

    def shared(self, group: int) -> Hashable:
        """Return the cache key of the matrix that all folds of a group share, or None if they share none."""
        return self._cache.name(self.groups[group])

    def scores(self, group: int, learner: int, n: int, cells: Sequence[tuple[Left, int]]) -> npt.NDArray | None:
        """Return the score of each cell ((partition, folds left out), fold to score), or None if a score is missing."""
        found = [self.kept.get((group, learner, n, left), {}).get(fold) for left, fold in cells]
        return None if any(score is None for score in found) else np.array(found, dtype=np.float64)

    def probe(
        self, group: int, learner: int, most: int, note: Callable[[int, float], Any], enough: float, allowed: float
    ) -> None:
        """Time a group on more and more objects until its cost is clear; call ``note(n, seconds)`` each time.

        This times the work that all folds share or, if there is none, one fit. It stops once `most` objects would
        clearly take less than `enough` seconds, or once it has itself taken more than `allowed` seconds.
        """
        one, begin = self.groups[group], budget.clock()
        for n in _PROBED:
            if n > min(most, len(self.y)):
                break
            X, y, start = take(self._cache.objects(one), np.arange(n)), self.y[:n], budget.clock()
            try:
                if self.shared(group) is not None:
                    _shared(clone(one.pipeline(0)[0]))(X)
                else:
                    fitted(one.pipeline(learner), X, y)
            except Exception:  # the error is reported when the group is scored
                return
            seconds = budget.clock() - start
            if n == _PROBED[0]:
                continue
            note(n, seconds)
            clear = seconds * (most / n) ** 2 < _CLEARLY * enough
            if n > _PROBED[1] and (clear or budget.clock() - begin > allowed):
                break

    def _fit(
        self,
        group: int,
        learners: list[int],
        n: int,
        left: Left,
        steps: list[Any],
        tails: list[list[Any]],
        positions: bool,
        at_once: int,
    ) -> None:
        """Fit one embedding and its learners to the training folds, and score them on the folds left out.

        `steps` make the embedding, and `tails` has the steps of each learner. If `positions`, the first step takes
        positions of objects, not objects. Each fit has one thread here, and `at_once` fits run side by side. With all
        threads, as in the final fit, the embedding would be `at_once` times as fast, so its time is divided by that.
        """
        with limited_to(1):
            fold = self.partitions[left[0]][:n]
            train = np.flatnonzero(~np.isin(fold, [*left[1]]))
            held = {i: np.flatnonzero(fold == i) for i in sorted(left[1])}
            X = self._cache.objects(self.groups[group])
            V, *parts = (rows if positions else take(X, rows) for rows in (train, *held.values()))
            W = dict(zip(held, parts, strict=True))
            fit_to_size(steps, len(train))
            embedding = 0.0
            for step in steps:
                start = budget.clock()
                V = step.fit_transform(V, self.y[train])
                embedding += budget.clock() - start
                W = {i: step.transform(part) for i, part in W.items()}
            for learner, tail in zip(learners, tails, strict=True):
                try:
                    with _LIBLINEAR if getattr(tail[-1], "dual", False) else nullcontext():
                        start = budget.clock()
                        model = make_pipeline(*tail).fit(V, self.y[train])
                        seconds = embedding / at_once + budget.clock() - start
                    self.seconds.setdefault((group, learner, n), []).append(seconds)
                    scored: dict[int, Any] = dict.fromkeys(held, model)
                    if self.scores_answers:
                        scored = {i: Answers(model.predict(W[i])) for i in held}
                        self.answers[group, learner, n, left] = {i: answers.given for i, answers in scored.items()}
                    found = {i: float(self.score(scored[i], W[i], self.y[rows])) for i, rows in held.items()}
                    if not np.isfinite([*found.values()]).all():
                        raise ValueError(f"scores are {[*found.values()]}")
                    self.kept[group, learner, n, left] = found
                except Exception as error:  # such as more neighbours than objects
                    self.failed[group, learner] = f"{type(error).__name__}: {error}"


class Answers(BaseEstimator):
    """Stand-in for a model: an estimator that returns the predictions it was given."""

    def __init__(self, given: npt.NDArray) -> None:
        self.given = given

    def predict(self, X: Any) -> npt.NDArray:
        return self.given


def scores_answers(score: Score, y: npt.NDArray) -> bool:
    """Return whether a scorer needs only predictions, so that a vote of several models can be scored."""
    try:
        return bool(np.isfinite(score(Answers(y), None, y)))
    except Exception:  # the scorer asks for probabilities, or for the model
        return False


def prefers_balance(score: Score) -> bool:
    """Return whether a scorer prefers equal recalls of two classes to a higher accuracy.

    The classes have 90 and 10 objects. A model that recognises 70 % of each class is compared with one that always
    predicts the larger class. The result is False, too, if a scorer needs more than predictions.
    """
    y = np.repeat([0, 1], [90, 10])
    hits = np.arange(100) % 10 < 7
    try:
        return bool(score(Answers(np.where(hits, y, 1 - y)), None, y) > score(Answers(np.zeros_like(y)), None, y))
    except Exception:  # the scorer asks for probabilities, or for the model
        return False


def fitted(pipeline: Any, X: Any, y: npt.NDArray) -> Any:
    """Return a copy of a candidate's pipeline, or of a vote, fitted to `X` and `y`."""
    model = sized(pipeline, len(y)).fit(X, y)
    for voter in getattr(model, "estimators_", [model]):
        # Keep only the nonzero weights of hashed features if they are few, to make files smaller.
        if isinstance(voter[-1], LinearSVC) and np.mean(voter[-1].coef_ != 0) < _SPARSE:
            voter[-1].sparsify()
    return model


def sized(pipeline: Any, n: int) -> Any:
    """Return a copy of a candidate's pipeline, or of a vote, with at most `n` landmarks in each step."""
    model = clone(pipeline)
    for voter in getattr(model, "estimators", [model]):
        fit_to_size([step for _, step in voter.steps], n)
    return model


def fit_to_size(steps: Sequence[Any], n: int) -> None:
    """Limit the number of landmarks of each step to `n`, the number of training objects."""
    for step in steps:
        if isinstance(step, Nystroem):
            step.n_components = min(step.n_components, n)


class Rows(TransformerMixin, BaseEstimator):
    """A transformer that maps positions to rows of a matrix."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Rows:
        return self

    def transform(self, X: npt.NDArray) -> Any:
        return self.values[X]


class Cache:
    """Caches a matrix for each kernel, distance or feature map: that of the largest number of objects asked for."""

    def __init__(self, X: Any, given: Any = None) -> None:
        self.X = X
        self.given = X if given is None else given
        self._kept: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._names: dict[int, Hashable] = {}

    def pipelines(self, group: Group, learners: Sequence[int], n: int) -> tuple[list[Any], list[list[Any]], bool]:
        """Return (embedding steps, steps of each learner, whether the first step takes positions, not objects)."""
        steps = [clone(step) for _, step in group.steps]
        tails = [[clone(step) for _, step in group.learners[i][1]] for i in learners]
        name = self.name(group)
        if name is None:
            return steps, tails, False
        for part in [steps] if steps else tails:
            part[0] = self._looked_up(part[0], group, n)
        return steps, tails, True

    def objects(self, group: Group) -> Any:
        """Return the objects in the form that a group reads."""
        return self.given if group.own else self.X

    def holds(self, group: Group, n: int) -> bool:
        """Return whether the matrix of a group is cached for at least `n` objects."""
        return self._kept.get(self.name(group) or "", (0, None))[0] >= n

    def name(self, group: Group) -> Hashable:
        """Return the key of the matrix of a group, or None if it differs by fold, because something is learnt."""
        if id(group) not in self._names:
            first = group.pipeline(0)[0]
            compare = _compare(first)
            what = first if isinstance(first, KernelFeatures | GraphletSampling) else compare
            shared = _is_shared(first) and not _learns(compare, self.objects(group))
            self._names[id(group)] = identity(what) if shared else None
        return self._names[id(group)]

    def _looked_up(self, step: Any, group: Group, n: int) -> Any:
        """Return a substitute for `step` that takes positions and looks values up in the matrix of a group."""
        values = self._get(group, n, _shared(step))
        if isinstance(step, KernelFeatures | GraphletSampling):
            return Rows(values)
        inner = parts_of(step).model
        pairs = (DistancePairs if isinstance(_compare(step), Distance) else KernelPairs)(values)
        inner.set_params(**{"distance" if hasattr(inner, "distance") else "kernel": pairs})
        return step

    def _get(self, group: Group, n: int, compute: Callable[[Any], Any]) -> Any:
        """Return the matrix of a group for `n` objects; if space is short, drop those used longest ago."""
        name, X = self.name(group), self.objects(group)
        if name not in self._kept or self._kept[name][0] < n:
            self._kept.pop(name, None)
            self._kept[name] = n, compute(X if n == n_objects(X) else take(X, np.arange(n)))
            sizes = [_n_bytes(values) for _, values in self._kept.values()]
            while len(sizes) > 1 and sum(sizes) > _SHARE * settings().max_memory:
                self._kept.popitem(last=False)
                sizes.pop(0)
        self._kept.move_to_end(name)
        return self._kept[name][1]


def _shared(step: Any) -> Callable[[Any], Any]:
    """Return a function that computes, once for all objects, the kernel values, distances or features of `step`."""
    if isinstance(step, KernelFeatures):
        return lambda X: _compact(step.transform(X))
    if isinstance(step, GraphletSampling):
        return lambda X: step.fit_transform(X)
    compare = _compare(step)
    if isinstance(compare, Distance) and compare.facts.symmetric:
        return compare
    # Always pass both arguments, as the steps do: k(X) alone has ones on the diagonal of empty objects.
    return lambda X: compare(X, X)


def _compare(step: Any) -> Any:
    """Return the kernel or distance of a step, or of the regressor in it if it transforms the target."""
    found = parts_of(step).comparison(fitted=False)
    return None if found is None else found.function


def _is_shared(step: Any) -> bool:
    """Return whether a step treats each object or pair separately, so that all folds can share its values."""
    if isinstance(step, GraphletSampling):  # an exact map with seeded samples learns nothing
        return step.features == "optical" and step.n_components is None
    if isinstance(step, D2KE):
        return isinstance(step.objects, Representatives)
    return isinstance(
        step, KernelFeatures | Nystroem | KernelRidge | KernelSVC | KNeighborsClassifier | KNeighborsRegressor
    )


def _learns(compare: Any, X: Any) -> bool:
    """Return whether a kernel or distance has settings that depend on data, such as ``gamma="median"``."""
    try:
        return decided(compare, take(X, np.arange(min(_PROBED[0], n_objects(X))))) is not compare
    except Exception:  # it is raised again, and reported, when the group is scored
        return True


def _compact(features: sp.csr_array) -> sp.csr_array:
    """Drop columns that are all 0: linear models give them no weight."""
    met, columns = np.unique(features.indices, return_inverse=True)
    shape = (features.shape[0], max(1, len(met)))
    return sp.csr_array((features.data, columns.astype(np.int32), features.indptr), shape=shape)


def _n_bytes(values: Any) -> int:
    return int(values.data.nbytes + values.indices.nbytes) if sp.issparse(values) else int(values.nbytes)
