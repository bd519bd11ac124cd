"""One run of `AutoClassifier` or `AutoRegressor`: search, final fit, and the estimate of its score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.metrics import get_scorer

from similia import compilation
from similia.core.config import config, logged, logger_of, settings, track
from similia.core.intervals import wilson
from similia.core.validation import generator
from similia.learn.vote import VoteClassifier, VoteRegressor
from similia.objects import take
from similia.selection._evaluate import Evaluator, Score, fitted, prefers_balance, scores_answers, sized
from similia.selection._ladder import Group, ladder
from similia.selection._search import FIRST, OUT_OF_TIME, Candidate, Rung, Search, View, noise, rungs
from similia.selection.budget import Budget, Leaderboard
from similia.selection.folds import again, kept_together, ordered, shown
from similia.similarity import Distance, Kernel

_logger = logger_of(__name__)

_MEMORY_TO_COMPILE = 2**24  # bytes, for a few small objects
_PER_CLASS = 10  # mean number of objects per class on the first rung
_MOSTLY = 0.8  # share of the objects in one class that a note mentions
_FAILED = "failed: "
_TOO_LARGE = "too large: n x n numbers do not fit into config(max_memory)"
# Factor by which the variance of an estimated accuracy exceeds that of as many independent answers, because models of
# different folds share objects. Simulated on 20 to 80 objects. The key: whether the search was repeated for every fold.
_WIDER = {False: 2.25, True: 1.5}

_compiled: set[str] = set()  # kinds of objects compiled in this process


def compile_loops(kind: str, shown: bool) -> None:
    """Compile the loops for a kind of objects before any candidate is timed."""
    if kind in _compiled or kind not in compilation.KINDS:
        return
    what = f"prepare fast code for {kind} (once, not counted in the budget)"
    enough = max(settings().max_memory, _MEMORY_TO_COMPILE)
    with logged(_logger, what), config(progress=shown, max_memory=enough):
        for one in track([kind], what, 1):
            compilation.warmup([one])
    _compiled.add(kind)


@dataclass
class Run:
    """One selection: put objects into order, list and search candidates, fit the best, and estimate its score."""

    auto: Any
    X: Any
    given: Any  # X, or the same objects as the user gave them, which kernels and distances of the user read
    y: npt.NDArray
    kind: str
    own: Sequence[Kernel | Distance]
    folds: int
    groups: npt.NDArray[np.int64]
    clock: Budget
    board: Leaderboard
    near_copies: bool = False  # whether to look for near copies and keep them in one fold; only for strings

    def __post_init__(self) -> None:
        auto, X, y, folds = self.auto, self.X, self.y, self.folds
        rng = generator(auto.random_state)
        seed = int(rng.integers(2**31))
        classify = auto._task == "classification"
        first = max(FIRST, _PER_CLASS * len(np.unique(y))) if classify else FIRST
        steps = rungs(len(y), first, folds)
        n = steps[-1].n
        order = ordered(y, auto._task, folds, rng, self.groups)
        some, fold = order.objects[:n], order.fold[:n]
        self.groups = self.groups[some]
        self.near_notes: list[str] = []
        if self.near_copies:
            near, self.near_notes = kept_together(take(X, some), self.groups, y[some], folds, classify)
            if self.near_notes:
                order = ordered(y[some], auto._task, folds, rng, near)
                some, fold, self.groups = some[order.objects], order.fold, near[order.objects]
        partitions = [fold]
        partitions += [again(y[some], auto._task, folds, seed + r, self.groups) for r in range(1, steps[-1].partitions)]
        tried: list[Group] = []
        self.too_large: list[Group] = []
        scorer = get_scorer(auto.scoring or auto._usual)
        for group in ladder(self.kind, X, auto._task, seed, self.own, classify and prefers_balance(scorer)):
            fits = not group.pairs or 8 * len(y) ** 2 <= settings().max_memory
            (tried if fits else self.too_large).append(group)
        self._check_folds(partitions, scorer)
        sample = take(X, some)
        given = sample if self.given is X else take(self.given, some)
        self.evaluator = Evaluator(sample, y[some], partitions, scorer, tried, given)
        self.search = Search(self.evaluator, steps, folds, self.clock, len(y), classify, auto.max_voters, self._tell)

    def _check_folds(self, partitions: list[npt.NDArray[np.int64]], scorer: Score) -> None:
        """Raise if a fold holds a single object, and the score of a single prediction is not defined."""
        least = min(int(np.bincount(fold, minlength=self.folds).min()) for fold in partitions)
        if least < 2 and scores_answers(scorer, self.y) and not scores_answers(scorer, self.y[:1]):
            raise ValueError(
                "objects of one group (such as copies) share a fold, so a fold would hold only one object, but "
                f"{self.auto.measure_} needs two; lower cv={self.folds}, or join small groups"
            )

    def choose(self, notes: list[str]) -> None:
        """Search, fit the best to all objects, estimate its score, and store the results in the estimator."""
        auto, self.stopped = self.auto, False
        try:
            self.search.search()
        except KeyboardInterrupt:
            if not any(self.search.main.tables):
                raise
            self.stopped = True
        if not any(self.search.main.tables):
            raise ValueError(f"no candidate could be fitted, e.g. {next(iter(self.evaluator.failed.values()))}")
        choice = self.search.choice(self.search.main)
        auto.best_name_ = self.name(choice)
        self.board.show(f"fitting {auto.best_name_}", self.rows())
        auto._unfitted = self.unfitted(choice)
        auto.best_estimator_ = fitted(auto._unfitted, self.given, self.y)
        scores, repeated = self._outer_scores() if auto.nested else ({}, 0)
        auto.best_score_, auto.best_score_interval_ = self._estimate(scores, repeated, auto.measure_)
        auto.n_outer_folds_ = repeated
        rows = self.rows(choice)
        auto.cv_results_, auto.seconds_ = results(rows), self.clock.spent
        auto.stopped_, auto.stopped_early_ = self.stopped, self.search.stopped_early
        more = [*self._quality_notes(rows), *self.search.why(choice), *self._time_notes(rows, repeated)]
        auto.notes_ = [*notes, *self.near_notes, *more]

    def _outer_scores(self) -> tuple[dict[int, float], int]:
        """Return {outer fold: its score}, and the number of folds for which the search was repeated."""
        scores: dict[int, float] = {}
        repeated = 0
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
                scores[fold] = score
        return scores, repeated

    def _quality_notes(self, rows: list[dict[str, Any]]) -> list[str]:
        """Return notes if accuracy is measured and most objects are of one class, and if many candidates failed."""
        notes = []
        if self.auto.measure_ == "accuracy":
            classes, counts = np.unique(self.y, return_counts=True)
            share = float(counts.max() / counts.sum())
            if share >= _MOSTLY:
                notes.append(
                    f"always predicting class {shown(classes[counts.argmax()])} would have an accuracy of {share:.2f}; "
                    'scoring="balanced_accuracy" gives all classes equal weight'
                )
        failed = [row["state"].removeprefix(_FAILED) for row in rows if row["state"].startswith(_FAILED)]
        if len(failed) > len(rows) / 4:
            notes.append(f"{len(failed)} of {len(rows)} candidates failed, the first with {failed[0]}")
        return notes

    def _time_notes(self, rows: list[dict[str, Any]], repeated: int) -> list[str]:
        """Return notes on candidates and estimates for which the budget left no time."""
        notes = []
        if self.search.stopped_early:
            never = sum(row["state"] == OUT_OF_TIME and not row["n_objects"] for row in rows)
            ended = "before the best candidates were compared on more objects"
            if never:
                ended = f"before {never} of {len(rows)} candidates {'was' if never == 1 else 'were'} tried"
            notes.append(
                f"the time for the search ended {ended}; a larger budget may lead to a better choice, and another run "
                "to another choice"
            )
        if self.auto.nested and repeated < self.folds:
            some = f"for {self.folds - repeated} of {self.folds} folds " if repeated else ""
            notes.append(
                f"there was no time to repeat the whole search {some}when the score was estimated; repeating only the "
                "last choice may make it look a little too good"
            )
        return notes

    def _estimate(self, by_fold: dict[int, float], repeated: int, measure: str) -> tuple[float, tuple[float, float]]:
        """Return (mean of the scores on outer folds, its 95 % interval); NaN where there are too few scores."""
        if not by_fold:
            return math.nan, (math.nan, math.nan)
        fold, scores = self.evaluator.partitions[0], [*by_fold.values()]
        sizes = [np.sum(fold == i) for i in by_fold]
        if measure == "accuracy":
            mean = float(np.average(scores, weights=sizes))
            return mean, wilson(mean, len(np.unique(self.groups)) / _WIDER[repeated == self.folds])
        mean = float(np.mean(scores))
        if len(scores) == 1:
            return mean, (math.nan, math.nan)
        half = float(stats.t.ppf(0.975, len(scores) - 1)) * noise(np.array(scores), self.folds)
        low, high = mean - half, mean + half
        shares = min(scores) >= 0 and max(scores) <= 1  # scores such as accuracy: clip the interval
        return mean, (max(low, 0.0), min(high, 1.0)) if shares else (low, high)

    def _tell(self, view: View, rung: Rung) -> None:
        if view.hidden is None:
            repeated = f", with {rung.partitions} different splits" if rung.partitions > 1 else ""
            self.board.show(f"{self.folds}-fold cross-validation on {rung.n} {self.kind}{repeated}", self.rows())

    def rows(self, choice: tuple[Candidate, ...] = ()) -> list[dict[str, Any]]:
        """Return a dict per candidate: the chosen one first, then the deciding round by score, then the rest."""
        ranked: dict[Candidate, tuple[int, npt.NDArray]] = {}
        tables = self.search.main.tables
        decided = self.search.best(self.search.main)[1] if any(tables) else 0
        for r in sorted(range(len(tables)), key=lambda r: (r != decided, -r)):
            by_score = sorted(tables[r], key=lambda c: -tables[r][c].mean())
            ranked |= {c: (r, tables[r][c]) for c in by_score if c not in ranked}
        groups, out, failed = self.evaluator.groups, self.search.out, self.evaluator.failed
        rows = []
        for (g, i), (r, scores) in ranked.items():
            n = self.search.steps[r].n
            state = out.get((g, i), "finalist" if r == decided else f"dropped after {n} objects")
            if state == OUT_OF_TIME:
                state = f"{OUT_OF_TIME} after {n} objects"
            if (g, i) in choice:
                state = "chosen" if len(choice) == 1 else "votes"
            seconds = self.search.times.of_fits.get((g, i, n), math.nan)
            rows.append(self._row(groups[g].named(i), groups[g].pipeline(i), state, scores, seconds, n))
        rows.sort(key=lambda row: row["state"] != "chosen")  # stable sort: the others keep their order
        if len(choice) > 1:
            r = ranked[choice[0]][0]
            seconds = sum(row["mean_fit_time"] for row in rows if row["state"] == "votes")
            vote = self.name(choice), self.unfitted(choice), "chosen"
            rows.insert(0, self._row(*vote, self.search.voted(choice, r), seconds, self.search.steps[r].n))
        for g, group in enumerate([*groups, *self.too_large]):
            for i in range(len(group.learners)):
                if (g, i) not in ranked:
                    why = failed.get((g, -1)) or failed.get((g, i))
                    state = f"{_FAILED}{why}" if why else out.get((g, i), "not tried")
                    state = _TOO_LARGE if g >= len(groups) else state
                    rows.append(self._row(group.named(i), group.pipeline(i), state))
        return rows

    def _row(
        self, name: str, pipeline: Any, state: str, scores: Any = None, seconds: float = math.nan, n: int = 0
    ) -> dict[str, Any]:
        return {
            "name": name,
            "mean_test_score": math.nan if scores is None else float(scores.mean()),
            "standard_error": math.nan if scores is None else noise(scores, self.folds),
            "mean_fit_time": seconds,
            "n_objects": n,
            "state": state,
            "estimator": sized(pipeline, len(self.y)),
        }

    def name(self, choice: tuple[Candidate, ...]) -> str:
        names = [self.evaluator.groups[g].named(i) for g, i in choice]
        return names[0] if len(names) == 1 else f"vote of {len(names)}: {'; '.join(names)}"

    def unfitted(self, choice: tuple[Candidate, ...]) -> Any:
        pipelines = [self.evaluator.groups[g].pipeline(i) for g, i in choice]
        vote = VoteClassifier if self.auto._task == "classification" else VoteRegressor
        return pipelines[0] if len(pipelines) == 1 else vote(pipelines)


def results(rows: list[dict[str, Any]]) -> dict[str, npt.NDArray]:
    """Return the rows of candidates as a dict of columns, with ranks; candidates not tried share the last rank."""
    found = {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "estimator"}
    tried = found["n_objects"] > 0
    found["rank_test_score"] = np.where(tried, np.cumsum(tried), tried.sum() + 1)
    found["estimator"] = np.empty(len(rows), dtype=object)
    found["estimator"][:] = [row["estimator"] for row in rows]
    return found
