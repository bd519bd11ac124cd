"""Choose a pipeline for objects and targets by nested cross-validation, under a time budget.

The ladder of candidates is `similia.selection._ladder`; how they are compared and dropped, `_search`; what is computed
once and shared, `_lookup`. Cost: what the budget says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.metrics import get_scorer

from similia import compilation as _warmup
from similia.core.config import config, settings
from similia.core.intervals import wilson
from similia.core.progress import logged, logger_of, track
from similia.core.validation import RandomState, check_positive, generator
from similia.learn.vote import VoteClassifier, VoteRegressor
from similia.objects import n_objects, take
from similia.selection._evaluate import Evaluator, fitted, sized
from similia.selection._ladder import Group, ladder
from similia.selection._search import OUT_OF_TIME, Candidate, Rung, Search, View, noise, rungs
from similia.selection.budget import Budget, Leaderboard
from similia.selection.folds import (
    again,
    check_similarities,
    checked_targets,
    joined,
    ordered,
    own_similarities,
    recognised,
)
from similia.similarity import Distance, Kernel

_logger = logger_of(__name__)

_MEMORY_TO_COMPILE = 2**24  # bytes, for a few small objects
_PER_CLASS = 10  # objects of a class on the first rung, on average
_FIRST = 300
# Variance of an estimated accuracy over that of as many independent answers: models of different folds, and what they
# chose, have objects in common. Simulated on 20 to 80 objects; by fold: choice from other folds only, search repeated.
_WIDER = {False: 2.25, True: 1.5}


@dataclass
class Selection:
    """What `select` found.

    Attributes
    ----------
    best_ : Pipeline, VoteClassifier or VoteRegressor
        The chosen pipeline, or some that vote, fitted to all objects; `similia.save`, `similia.explain` and
        `similia.report.write_report` take it.
    name_ : str
        The chosen candidate, as in the table.
    table_ : list of dict
        A row for each candidate, best first: ``name``, ``mean_score`` and ``standard_error`` (cross-validated, NaN if
        not tried), ``fit_seconds`` of one training part, ``n_objects`` it was last compared on, ``state`` and
        ``pipeline``, unfitted. Candidates compared on more objects, or more often, come first.
    score_ : float
        How good such a choice is on new objects: the mean score, over outer folds, of what was chosen without that
        fold. NaN without `nested`.
    score_interval_ : (float, float)
        95 % interval of `score_`. Of accuracies it is Wilson's, as if there were fewer objects (n / 1.5; n / 2.25 if
        `n_outer_` is below the number of folds; copies count once): folds share training objects, and in simulations
        this held in 94 to 98 % of cases, without it in 83 to 91 %. Of other scores it is Student's over outer folds,
        with the correction of Nadeau & Bengio.
    n_outer_ : int
        Outer folds without which the whole search was repeated. For the others there was no time: there the choice was
        repeated on the scores of the other folds, with the models that the search had fitted anyway.
    kind_ : {"strings", "graphs", "series", "sets", "vectors", "objects"}
    task_ : {"classification", "regression"}
    measure_ : str
        Name of the score.
    seconds_ : float
        What it took.
    stopped_ : bool
        Whether Ctrl-C ended it.
    stopped_early_ : bool
        Whether the budget ended before all candidates were compared. If so, another run with the same seed may choose
        another one; if not, it chooses the same on any machine, busy or idle.
    notes_ : list of str
        What else to know: copies among the objects, why the best score was not chosen, what there was no time for.
    """

    best_: Any = field(repr=False)
    name_: str
    table_: list[dict[str, Any]] = field(repr=False)
    score_: float
    score_interval_: tuple[float, float]
    n_outer_: int
    kind_: str
    task_: str
    measure_: str
    seconds_: float
    stopped_: bool
    stopped_early_: bool
    notes_: list[str]
    _unfitted: Any = field(repr=False)

    def fit_best(self, X: Any, y: Any) -> Any:
        """Return the chosen pipeline fitted to other objects, such as all of them after a held-out part was scored."""
        return fitted(self._unfitted, X, np.asarray(y))

    def predict(self, X: Any) -> npt.NDArray:
        """Return what the best pipeline predicts for objects, shape (n,)."""
        return np.asarray(self.best_.predict(X))


def select(
    X: Any,
    y: Any,
    *,
    budget: float | None = 600.0,
    similarity: Kernel | Distance | Sequence[Kernel | Distance] | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    scoring: str | Callable[..., float] | None = None,
    cv: int = 5,
    groups: Any = None,
    voters: int = 5,
    nested: bool = True,
    random_state: RandomState = None,
    progress: bool | None = None,
) -> Selection:
    """Choose a pipeline for objects by cross-validation, and say how good the chosen one is.

    Kernels and distances, embeddings and learners of all five systems are tried, and nearest neighbours, below which
    the chosen pipeline never is in cross-validation.

    Parameters
    ----------
    X : collection of n objects
        Strings, graphs, time series, point sets or vectors; arrays of two axes each must be said to be series or sets
        (`similia.objects.as_series`, `as_sets`). Everything given is used to choose and to fit: hold out a test part
        before.
    y : array-like of shape (n,)
        Labels, or numbers to predict.
    budget : float or None, default=600.0
        Seconds. None tries everything to the end. Loops are compiled before, where they are not compiled yet, and that
        is not counted: it may take a minute, once on a machine.
    similarity : Kernel, Distance or list of them, optional
        Your own, tried first, with the learners that they allow; `similia.distances.FromFunction` makes a distance of
        a function of two objects. With one, objects of any kind are taken, such as sets of tags.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is regression if `scoring` is a score of numbers, such as "r2", or if y holds numbers that are not whole,
        or more than 20 different whole numbers with fewer than 5 objects each on average. Numbers may be text.
    scoring : str or callable, optional
        A scorer of scikit-learn, larger is better; accuracy, or R squared for regression, if not given. A callable
        ``f(estimator, V, y)`` is given the learner and what it takes, not objects.
    cv : int, default=5
        Folds, at least 3; each class needs as many objects.
    groups : array-like of shape (n,), optional
        Names or numbers of what objects belong to, such as patients: the objects of a group are kept on one side of
        every fold. Identical objects always are.
    voters : int, default=5
        Where cross-validation cannot tell the best embeddings apart, as many of them may vote
        (`similia.learn.VoteClassifier`, `VoteRegressor`), if their vote is better than the best of them. With 1 a
        single pipeline is chosen: smaller and faster.
    nested : bool, default=True
        Whether to estimate how good the choice is. Without, ``score_`` is NaN and the search has more time: enough for
        those who hold out a part.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the order of objects, of the folds and of whatever is random in a candidate.
    progress : bool, optional
        Whether to show a leaderboard; ``config(progress=...)`` decides if not given.

    Returns
    -------
    Selection
        With ``best_``, ``table_``, ``score_`` and ``predict``.

    Raises
    ------
    ValueError
        If y has one class, a class with fewer objects than folds, values that are missing, or another length than X;
        if there are fewer than 2 cv objects, or fewer different objects or groups than folds; if no candidate can be
        fitted.
    TypeError
        If objects are of no kind that is known and no similarity is given, or one is no kernel or distance.

    Notes
    -----
    *Halving.* All candidates are cross-validated on 300 objects (10 for each class, if that is more), those that
    stay on 1000, then 3000 or all, at last in several partitions into folds where objects are few. A candidate goes
    when it is behind the best by more than twice the standard error of their paired difference, and never more than
    half of the embeddings go that are not; the last word has the mean over the last folds. The comparison looks at
    3000 objects at most; the final fit is to all.

    *Time.* The best candidate so far is first to be compared on more objects, and the seconds that its final fit is
    expected to take are kept for that. A candidate whose final fit is expected to take more than half of the budget is
    not chosen if there is another one.

    *Vote.* On few objects the best score is that of luck as well, and pipelines that are as good err on different
    objects. The best candidate of each embedding that is not behind by more than the noise votes: three at least, and
    as far as there is time to fit them all. The vote is cross-validated as all candidates are.

    *Nothing leaks.* Kernel values, distances and explicit features of objects are computed once, since they do not
    depend on folds; landmarks, random objects, gamma and scales are learnt from training folds alone.

    *Score.* The score of the best candidate is too good, as it is the best of many. So the whole choice, halving
    included, is repeated without fold i, for each i, and its winner, fitted without fold i, is scored on it; `score_`
    is the mean. On more than 3000 objects that is the score of a model of 3000, a little low. Where there is no time
    for a fold, the choice is repeated on the scores of the other folds only, which takes none: their models were
    fitted to objects of fold i as well, but not scored on them. `n_outer_` counts the folds without which everything
    was repeated.

    *Copies.* A model that knows an object's copy knows the answer. So identical objects, and those of one of the
    `groups`, share a fold.

    *Time.* First comes one cheap candidate of each family, then all others, cheap ones first. Each rung has a part of
    the budget; candidates that it has no time for wait, and get what the final fit leaves. What is left when nothing
    waits goes into the nested estimate. The last rung that had time for the best candidate of the rung before decides.
    Candidates whose final fit is expected to take more than three tenths of the budget are left out. Times are
    expected from those on fewer objects, and a fit is not broken off, so that the end may be late by a fit.

    *Repeatable.* The same integer `random_state` gives the same choice, since the order of work follows from the
    ladder, the seed and the scores. Measured time only says what there is no time for, and then `stopped_early_` is
    True. ``budget=None`` tries everything.

    Ctrl-C ends the search; the best so far is fitted and returned, without a nested estimate.

    References
    ----------
    .. [1] Jamieson & Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016.
    .. [2] Cawley & Talbot: On over-fitting in model selection and subsequent selection bias in performance evaluation.
       JMLR 11, 2010.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.selection import select
    >>> X = ["ACGTACGTAC", "ACGTACGAAC", "ACGAACGTAC", "ACGTACGTAA"] * 3
    >>> X += ["GGCCGGCCGG", "GGCCGGCTGG", "GGTCGGCCGG", "GGCCGGCCGA"] * 3
    >>> found = select(X, ["a"] * 12 + ["b"] * 12, cv=3, budget=60, random_state=0)
    >>> found.predict(["ACGTACGTTT", "GGCCGGCCCC"])
    array(['a', 'b'], dtype='<U1')
    >>> found.score_
    1.0
    """
    clock = Budget(None if budget is None else check_positive(budget, "budget", hint=" (seconds), or None"))
    own = own_similarities(similarity)
    kind, X = recognised(X, any_kind=bool(own))
    check_similarities(own, X)
    y, kind_of_task, folds = checked_targets(y, n_objects(X), task, cv, scoring)
    measure = scoring or ("accuracy" if kind_of_task == "classification" else "r2")
    scorer = get_scorer(measure) if isinstance(measure, str) else measure
    name = measure if isinstance(measure, str) else getattr(measure, "__name__", "score")
    shown = settings().progress if progress is None else progress
    with clock.paused():
        _compile(kind, shown)
    with warnings.catch_warnings(), config(progress=False), Leaderboard(shown, clock, name) as board:
        warnings.simplefilter("ignore")  # of a candidate that does not converge
        together, notes = joined(X, groups, folds)
        order = (kind_of_task, folds, together, generator(random_state))
        run = _Run(X, y, kind, own, *order, voters, scorer, clock, board, nested)
        return run.selection(name, notes)


_compiled: set[str] = set()  # kinds of objects, in this process


def _compile(kind: str, shown: bool) -> None:
    """Compile the loops for a kind of objects, so that no candidate seems slow because it is the first one."""
    if kind in _compiled or kind not in _warmup.KINDS:
        return
    what = f"compile loops for {kind} (not counted in the budget)"
    enough = max(settings().max_memory, _MEMORY_TO_COMPILE)
    with logged(_logger, what), config(progress=shown, max_memory=enough):
        for one in track([kind], what):
            _warmup.warmup([one])
    _compiled.add(kind)


class _Run:
    """One selection: objects in order, candidates, search, final fit, nested estimate."""

    def __init__(
        self,
        X: Any,
        y: Any,
        kind: str,
        own: Sequence[Kernel | Distance],
        task: str,
        folds: int,
        groups: npt.NDArray[np.int64],
        rng: Any,
        voters: int,
        scorer: Any,
        clock: Budget,
        board: Any,
        nested: bool,
    ) -> None:
        self.X, self.y, self.kind, self.task, self.folds, self.clock, self.board = X, y, kind, task, folds, clock, board
        seed = int(rng.integers(2**31))
        first = _FIRST if task == "regression" else max(_FIRST, _PER_CLASS * len(np.unique(y)))
        steps = rungs(len(y), first, folds)
        n = steps[-1].n
        order = ordered(y, task, folds, rng, groups)
        some = order.objects[:n]
        self.groups = groups[some]
        partitions = [order.fold[:n]]
        partitions += [again(y[some], task, folds, seed + r, self.groups) for r in range(1, steps[-1].partitions)]
        tried: list[Group] = []
        self.too_large: list[Group] = []
        for group in ladder(kind, X, task, seed, own):
            fits = not group.pairs or 8 * len(y) ** 2 <= settings().max_memory
            (tried if fits else self.too_large).append(group)
        self.evaluator = Evaluator(take(X, some), y[some], partitions, scorer, tried)
        self.search = Search(self.evaluator, steps, folds, clock, len(y), task == "classification", voters, self._tell)
        self.estimates = nested

    def selection(self, measure: str, notes: list[str]) -> Selection:
        """Search, fit the best to all objects, and estimate."""
        self.stopped = False
        try:
            self.search.search()
        except KeyboardInterrupt:
            if not any(self.search.main.tables):
                raise
            self.stopped = True
        if not any(self.search.main.tables):
            raise ValueError(f"no candidate could be fitted, e.g. {next(iter(self.evaluator.failed.values()))}")
        choice = self.search.choice(self.search.main)
        name = self.name(choice)
        self.board.show(f"fitting {name}", self.rows())
        unfitted = self.unfitted(choice)
        model = fitted(unfitted, self.X, self.y)
        scores, repeated = self._outer_scores() if self.estimates else ([], 0)
        score, interval = self._estimate(scores, repeated, measure)
        rows = self.rows(choice)
        return Selection(
            model,
            name,
            rows,
            score,
            interval,
            repeated,
            self.kind,
            self.task,
            measure,
            self.clock.spent,
            self.stopped,
            self.search.stopped_early,
            [*notes, *self.search.why(choice), *self._time_notes(rows, repeated)],
            unfitted,
        )

    def _outer_scores(self) -> tuple[list[float], int]:
        """Return the score on each outer fold, and without how many of them the search was repeated."""
        scores, repeated = [], 0
        for fold in range(self.folds):
            self.board.show(f"estimate, fold {fold + 1} of {self.folds}", self.rows())
            score = None
            try:
                score = None if self.stopped or self.clock.left() <= 0 else self.search.nested(fold)
            except KeyboardInterrupt:
                self.stopped = True
            repeated += score is not None
            score = self.search.quick(fold) if score is None else score
            if score is not None:
                scores.append(score)
        return scores, repeated

    def _time_notes(self, rows: list[dict[str, Any]], repeated: int) -> list[str]:
        """Return what there was no time for."""
        notes = []
        if self.search.stopped_early:
            never = sum(row["state"] == OUT_OF_TIME and not row["n_objects"] for row in rows)
            untried = f", and {never} of {len(rows)} {'was' if never == 1 else 'were'} never tried" if never else ""
            notes.append(
                f"the budget of {self.clock.seconds:g} s ended before all candidates were compared{untried}; a larger "
                "budget may lead to a better choice, and another run to another choice"
            )
        if self.estimates and repeated < self.folds:
            some = f"for {self.folds - repeated} of {self.folds} folds " if repeated else ""
            notes.append(
                f"there was no time to repeat the whole search {some}when the score was estimated; repeating only the "
                "last choice may make it look a little too good"
            )
        return notes

    def _estimate(self, scores: list[float], repeated: int, measure: str) -> tuple[float, tuple[float, float]]:
        if not scores:
            return float("nan"), (float("nan"), float("nan"))
        fold = self.evaluator.partitions[0]
        sizes = np.array([np.sum(fold == i) for i in range(len(scores))])
        if measure == "accuracy":
            mean = float(np.average(scores, weights=sizes))
            return mean, wilson(mean, len(np.unique(self.groups)) / _WIDER[repeated == self.folds])
        mean = float(np.mean(scores))
        if len(scores) == 1:
            return mean, (float("nan"), float("nan"))
        half = float(stats.t.ppf(0.975, len(scores) - 1)) * noise(np.array(scores), self.folds)
        low, high = mean - half, mean + half
        shares = min(scores) >= 0 and max(scores) <= 1  # of what is right, or the like: no interval goes beyond
        return mean, (max(low, 0.0), min(high, 1.0)) if shares else (low, high)

    def _tell(self, view: View, rung: Rung) -> None:
        if view.hidden is None:
            repeated = f", {rung.partitions} partitions" if rung.partitions > 1 else ""
            self.board.show(f"{self.folds} folds of {rung.n} {self.kind}{repeated}", self.rows())

    def rows(self, choice: tuple[Candidate, ...] = ()) -> list[dict[str, Any]]:
        """Return the table: candidates of the last rung by score, then those of the rung before, then the others.

        What was chosen comes first.
        """
        ranked: dict[Candidate, tuple[int, npt.NDArray]] = {}
        tables = self.search.main.tables
        decided = self.search.best(self.search.main)[1] if any(tables) else 0
        for r in sorted(range(len(tables)), key=lambda r: (r != decided, -r)):
            by_score = sorted(tables[r], key=lambda c: -tables[r][c].mean())
            ranked |= {c: (r, tables[r][c]) for c in by_score if c not in ranked}
        rows = [self._row(c, *found, choice) for c, found in ranked.items()]
        rows.sort(key=lambda row: row["state"] != "chosen")  # stable
        if len(choice) > 1:
            r = ranked[choice[0]][0]
            scores = self.search.voted(choice, r)
            seconds = sum(row["fit_seconds"] for row in rows if row["state"] == "votes")
            rows.insert(0, self._scored(self.name(choice), scores, seconds, r, "chosen", self.unfitted(choice)))
        rest = [(g, i) for g, group in enumerate(self.evaluator.groups) for i in range(len(group.learners))]
        rows += [self._untried(*c) for c in rest if c not in ranked]
        nothing = "too large: n x n numbers do not fit into config(max_memory)"
        return rows + [self._nothing(group, i, nothing) for group in self.too_large for i in range(len(group.learners))]

    def name(self, choice: tuple[Candidate, ...]) -> str:
        """Return the name of a candidate, or of some that vote."""
        names = [self.evaluator.groups[g].named(i) for g, i in choice]
        return names[0] if len(names) == 1 else f"vote of {len(names)}: {'; '.join(names)}"

    def unfitted(self, choice: tuple[Candidate, ...]) -> Any:
        """Return the pipeline of a candidate, or a vote of some."""
        pipelines = [self.evaluator.groups[g].pipeline(i) for g, i in choice]
        vote = VoteClassifier if self.task == "classification" else VoteRegressor
        return pipelines[0] if len(pipelines) == 1 else vote(pipelines)

    def _row(self, c: Candidate, r: int, scores: npt.NDArray, choice: tuple[Candidate, ...]) -> dict[str, Any]:
        group, n = self.evaluator.groups[c[0]], self.search.steps[r].n
        last = r == self.search.best(self.search.main)[1]
        state = "finalist" if last else f"dropped after {n} objects"
        state = self.search.out.get(c, state)
        if c in choice:
            state = "chosen" if len(choice) == 1 else "votes"
        seconds = self.search.fit_seconds.get((*c, n), float("nan"))
        return self._scored(group.named(c[1]), scores, seconds, r, state, group.pipeline(c[1]))

    def _scored(
        self, name: str, scores: npt.NDArray, seconds: float, r: int, state: str, pipeline: Any
    ) -> dict[str, Any]:
        return {
            "name": name,
            "mean_score": float(scores.mean()),
            "standard_error": noise(scores, self.folds),
            "fit_seconds": seconds,
            "n_objects": self.search.steps[r].n,
            "state": state,
            "pipeline": sized(pipeline, len(self.y)),
        }

    def _untried(self, g: int, i: int) -> dict[str, Any]:
        failed = self.evaluator.failed.get((g, -1)) or self.evaluator.failed.get((g, i))
        state = f"failed: {failed}" if failed else self.search.out.get((g, i), "not tried")
        return self._nothing(self.evaluator.groups[g], i, state)

    def _nothing(self, group: Group, learner: int, state: str) -> dict[str, Any]:
        numbers = dict.fromkeys(("mean_score", "standard_error", "fit_seconds"), float("nan"))
        named = {"name": group.named(learner), **numbers, "n_objects": 0, "state": state}
        return {**named, "pipeline": sized(group.pipeline(learner), len(self.y))}
