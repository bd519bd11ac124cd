"""Choose a pipeline for objects and targets by nested cross-validation, under a time budget.

`_ladder` lists the candidates, `_search` compares and drops them, and `_evaluate` fits them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from similia import compilation
from similia.core.config import config, settings
from similia.core.estimators import all_at_once
from similia.core.intervals import wilson
from similia.core.progress import logged, logger_of, track
from similia.core.state import Sizes, labels, state
from similia.core.validation import RandomState, check_positive, generator
from similia.learn.targets import Task
from similia.learn.vote import VoteClassifier, VoteRegressor
from similia.objects import n_objects, take
from similia.pipelines import Pipeline
from similia.selection._evaluate import Evaluator, fitted, sized
from similia.selection._ladder import Group, ladder
from similia.selection._search import OUT_OF_TIME, Candidate, Rung, Search, View, noise, rungs
from similia.selection.budget import Budget, Leaderboard
from similia.selection.folds import (
    again,
    check_similarities,
    checked_targets,
    joined,
    number_of_folds,
    ordered,
    own_similarities,
    recognised,
)
from similia.similarity import Distance, Kernel

_logger = logger_of(__name__)

_MEMORY_TO_COMPILE = 2**24  # bytes, for a few small objects
_PER_CLASS = 10  # mean number of objects per class on the first rung
_FIRST = 300
_TOO_LARGE = "too large: n x n numbers do not fit into config(max_memory)"
# Variance of an estimated accuracy over that of as many independent answers, as models of different folds, and their
# choices, share objects. Simulated on 20 to 80 objects; by fold: choice from other folds only, search repeated.
_WIDER = {False: 2.25, True: 1.5}


def _winner_has(method: str) -> Callable[[Any], bool]:
    """Return a check whether the chosen pipeline has a method."""
    return lambda auto: hasattr(auto._winner, method)


def _embeds(auto: Any) -> bool:
    """Return whether the pipeline makes vectors; unknown before `fit`, when a `Pipeline` asks for `transform`."""
    best = getattr(auto, "best_estimator_", None)
    return best is None or (isinstance(best, Pipeline) and len(best) > 1)


def _are_columns(value: Any, sizes: Sizes) -> bool:
    """Return whether a value holds named arrays of one length."""
    if not isinstance(value, dict) or not all(isinstance(column, np.ndarray) for column in value.values()):
        return False
    return len({len(column) for column in value.values()}) < 2


@state(best_estimator_="predictor", _unfitted="predictor", best_name_="text", cv_results_=_are_columns)
class _Auto(BaseEstimator):
    """Base of `AutoClassifier` and `AutoRegressor`."""

    _task: ClassVar[Task]
    _usual: ClassVar[str]  # score

    def __init__(
        self,
        budget: float | None = 600.0,
        *,
        similarity: Kernel | Distance | Sequence[Kernel | Distance] | None = None,
        scoring: str | Callable[..., float] | None = None,
        cv: int = 5,
        max_voters: int = 5,
        nested: bool = True,
        random_state: RandomState = None,
        progress: bool | None = None,
    ) -> None:
        self.budget = budget
        self.similarity = similarity
        self.scoring = scoring
        self.cv = cv
        self.max_voters = max_voters
        self.nested = nested
        self.random_state = random_state
        self.progress = progress

    @all_at_once
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose a pipeline and fit it to all objects. Ctrl-C ends the search and fits the best pipeline so far.

        Parameters
        ----------
        X : collection of n objects
            Strings, graphs, time series, point sets or vectors. Convert arrays of two axes each by
            `similia.objects.as_series` or `as_sets`. All objects are used to choose and to fit, so hold out a test
            part before.
        y : array-like of shape (n,)
            Labels, or numbers to predict.
        groups : array-like of shape (n,), optional
            Group of each object, such as a patient. A group is never split between training and test parts; neither
            are identical objects.
        """
        clock = Budget(
            None if self.budget is None else check_positive(self.budget, "budget", hint=" (seconds), or None")
        )
        own = own_similarities(self.similarity)
        kind, X = recognised(X, any_kind=bool(own))
        check_similarities(own, X)
        y = checked_targets(y, n_objects(X), self._task, self.scoring)
        folds = number_of_folds(y, self._task, self.cv)
        measure = self.scoring or self._usual
        self.measure_ = measure if isinstance(measure, str) else getattr(measure, "__name__", "score")
        shown = settings().progress if self.progress is None else self.progress
        with clock.paused():
            _compile(kind, shown)
        with warnings.catch_warnings(), config(progress=False), Leaderboard(shown, clock, self.measure_) as board:
            warnings.simplefilter("ignore")  # such as those of candidates that do not converge
            together, notes = joined(X, groups, folds)
            _Run(self, X, y, kind, own, folds, together, clock, board).choose(notes)
        self.kind_ = kind
        self._learn_form(X, y)
        return self

    def _learn_form(self, X: Any, y: npt.NDArray) -> None:
        """Learn the number of columns of vectors, and the classes."""
        self.__dict__.pop("n_features_in_", None)
        if self.kind_ == "vectors":
            self.n_features_in_ = X.shape[1]
        if self._task == "classification":
            self.classes_ = np.unique(y)

    @all_at_once
    def refit(self, X: Any, y: Any) -> Self:
        """Fit the chosen pipeline to other objects, such as all of them after scoring a held-out part.

        The scores and results of `fit` are kept.

        Parameters
        ----------
        X : collection of n objects
        y : array-like of shape (n,)
        """
        check_is_fitted(self, "best_estimator_")
        X = recognised(X, any_kind=True)[1]
        y = checked_targets(y, n_objects(X), self._task, self.scoring)
        self.best_estimator_ = fitted(self._unfitted, X, y)
        self._learn_form(X, y)
        return self

    @property
    def _winner(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any) -> npt.NDArray:
        """Return the predictions of the chosen pipeline, shape (m,).

        Parameters
        ----------
        X : collection of m objects
        """
        return self._winner.predict(X)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class, shape (m, n_classes); only if the chosen pipeline has `predict_proba`.

        Parameters
        ----------
        X : collection of m objects
        """
        return self._winner.predict_proba(X)

    @available_if(_winner_has("decision_function"))
    def decision_function(self, X: Any) -> npt.NDArray:
        """Return the decision values of the chosen pipeline, if it has any.

        Parameters
        ----------
        X : collection of m objects
        """
        return self._winner.decision_function(X)

    @available_if(_embeds)
    def transform(self, X: Any) -> Any:
        """Return the vectors or packed bits that the chosen learner takes, shape (m, n_features), if there are any.

        Parameters
        ----------
        X : collection of m objects
        """
        return self._winner[:-1].transform(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the predictions, by `scoring`.

        Parameters
        ----------
        X : collection of m objects
        y : array-like of shape (m,)
        """
        return float(get_scorer(self.scoring or self._usual)(self._winner, X, y))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = tags.input_tags.sparse = True
        return tags


@state(classes_=labels("c"))
class AutoClassifier(ClassifierMixin, _Auto):
    """A classifier that chooses its pipeline by cross-validation, under a time budget, and estimates its score.

    It tries kernels, distances, embeddings and learners of all five systems. The chosen pipeline never scores below
    nearest neighbours in cross-validation.

    Parameters
    ----------
    budget : float or None, default=600.0
        Seconds; None for no limit. Compiling loops, which may take a minute once per machine, does not count.
    similarity : Kernel, Distance or list of them, optional
        Your own kernels or distances, tried first; `similia.distances.FromFunction` turns a function of two objects
        into a distance. With one of your own, objects may be of any kind, such as sets of tags.
    scoring : str or callable, optional
        A scorer of scikit-learn, where larger is better; accuracy by default. During the search a callable
        ``f(estimator, V, y)`` gets the learner and its input, not the objects.
    cv : int, default=5
        Number of folds, at least 3. If a class has fewer objects than folds, fewer are used, with a warning.
    max_voters : int, default=5
        Maximum number of pipelines that vote. With 1, a single pipeline is chosen, which is smaller and faster.
    nested : bool, default=True
        Whether to estimate how well the chosen pipeline scores on new objects. If you hold out a part yourself, False
        leaves more time for the search.
    random_state : int, numpy Generator or RandomState, optional
        Seed for the order of objects, the folds and all randomness in candidates.
    progress : bool, optional
        Whether to show a leaderboard; by default, ``config(progress=...)`` decides.

    Attributes
    ----------
    best_estimator_ : Pipeline or VoteClassifier
        The chosen pipeline, or several that vote, fitted to all objects.
    best_name_ : str
        Name of the chosen candidate in `cv_results_`.
    best_score_ : float
        Estimated score on new objects: the mean over the outer folds, each scored by the choice made without it. NaN
        without `nested`.
    best_score_interval_ : (float, float)
        95 % interval of `best_score_`. For accuracies it is Wilson's with a reduced number of objects (n / 1.5, or
        n / 2.25 if `n_outer_folds_` is below the number of folds; copies count once), because folds share training
        objects. In simulations it covered 94 to 98 % of cases, without the reduction 83 to 91 %. For other scores it
        is Student's over outer folds, with the correction of Nadeau & Bengio.
    n_outer_folds_ : int
        Number of outer folds for which the whole search was repeated. For the others there was no time; their choice
        was repeated on the scores of the other folds, with models that the search had fitted anyway.
    cv_results_ : dict of ndarray
        One entry for each candidate, the chosen one first, then by rank: ``name``, ``mean_test_score`` and
        ``standard_error`` (NaN if not tried), ``rank_test_score``, ``mean_fit_time`` (seconds of one training part),
        ``n_objects`` (number of objects in its last comparison), ``state``, and ``estimator`` (unfitted). Candidates
        compared on more objects, or more often, rank higher.
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
        Only for vectors.
    kind_ : {"strings", "graphs", "series", "sets", "vectors", "objects"}
    measure_ : str
        Name of the score.
    seconds_ : float
        Duration of the search.
    stopped_ : bool
        Whether Ctrl-C ended it.
    stopped_early_ : bool
        Whether the budget ended before all candidates were compared. If so, another run with the same seed may choose
        differently. If not, every machine makes the same choice.
    notes_ : list of str
        Remarks: copies among the objects, why the best score was not chosen, what there was no time for.

    Raises
    ------
    ValueError
        In `fit`, if y has only one class, missing values or a length other than that of X; if fewer than two classes
        have 3 objects; if there are fewer than 2 cv objects, or fewer different objects or groups than folds; if no
        candidate can be fitted.
    TypeError
        In `fit`, if the kind of the objects is unknown and no similarity is given, or a given similarity is neither a
        kernel nor a distance.

    Notes
    -----
    *Halving* [1]_. All candidates are cross-validated on 300 objects (10 for each class, if that is more), the
    survivors on 1000, then on 3000 or all; few objects are then split into folds in several ways. A candidate is
    dropped if it is behind the best by more than twice the standard error of their paired difference; of the remaining
    embeddings, at most half survive. The mean over the last folds decides. The final fit uses all objects.

    *Time.* The search tries one cheap candidate of each family first, then all others, cheap ones first. Each rung has
    a share of the budget, and the nested estimate gets what is left after the final fit. A candidate whose final fit is
    expected to take more than half of the budget is chosen only if there is no other. Times are extrapolated from fewer
    objects and fits are never interrupted, so the search may end late by one fit.

    *Vote.* On few objects, chance decides which score is best, and equally good pipelines err on different objects. So
    the best candidates of all embeddings that are not behind by more than the noise vote: at least three, and as many
    as there is time to fit. The vote is cross-validated like every candidate, and chosen if it scores higher.

    *Nothing leaks.* Kernel values, distances and explicit features do not depend on folds and are computed once.
    Landmarks, random objects, gamma and scales are learnt from training folds alone. Identical objects and objects of
    one group share a fold.

    *Score.* The best score of many candidates is optimistic [2]_. So the whole choice, including halving, is repeated
    without fold i, for each i, and its winner is scored on fold i. With more than 3000 objects, this is the score of a
    model of 3000 objects, which is slightly low.

    *Repeatable.* The same integer `random_state` gives the same choice, because the order of work depends only on the
    candidates, the seed and the scores. Time can only leave candidates out; then `stopped_early_` is True.

    `similia.save` stores the estimator with its results; `similia.explain` and `similia.report.write_report` accept it.

    References
    ----------
    .. [1] Jamieson & Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016.
    .. [2] Cawley & Talbot: On over-fitting in model selection and subsequent selection bias in performance evaluation.
       JMLR 11, 2010.

    Examples
    --------
    >>> import similia as sm
    >>> X = ["ACGTACGTAC", "ACGTACGAAC", "ACGAACGTAC", "ACGTACGTAA"] * 3
    >>> X += ["GGCCGGCCGG", "GGCCGGCTGG", "GGTCGGCCGG", "GGCCGGCCGA"] * 3
    >>> auto = sm.AutoClassifier(budget=10, cv=3, random_state=0).fit(X, ["a"] * 12 + ["b"] * 12)
    >>> auto.predict(["ACGTACGTTT", "GGCCGGCCCC"])
    array(['a', 'b'], dtype='<U1')
    >>> auto.best_score_
    1.0
    """

    _task, _usual = "classification", "accuracy"
    score = _Auto.score  # not that of the mixin


class AutoRegressor(RegressorMixin, _Auto):
    """A regressor that chooses its pipeline by cross-validation, under a time budget, and estimates its score.

    It works like `AutoClassifier`, whose notes apply here, too.

    Parameters
    ----------
    budget : float or None, default=600.0
        Seconds; None for no limit.
    similarity : Kernel, Distance or list of them, optional
        Your own kernels or distances, tried first.
    scoring : str or callable, optional
        A scorer of scikit-learn, where larger is better; R squared by default.
    cv : int, default=5
        Number of folds, at least 3.
    max_voters : int, default=5
        Maximum number of pipelines whose predictions are averaged; 1 chooses a single one.
    nested : bool, default=True
        Whether to estimate how well the chosen pipeline scores on new objects.
    random_state : int, numpy Generator or RandomState, optional
        Seed.
    progress : bool, optional
        Whether to show a leaderboard; by default, ``config(progress=...)`` decides.

    Attributes
    ----------
    best_estimator_ : Pipeline or VoteRegressor
        The chosen pipeline, or several whose predictions are averaged, fitted to all objects.
    best_name_, best_score_, best_score_interval_, n_outer_folds_, cv_results_ : see `AutoClassifier`
    n_features_in_, kind_, measure_, seconds_, stopped_, stopped_early_, notes_ : see `AutoClassifier`

    Raises
    ------
    ValueError, TypeError
        In `fit`, as for `AutoClassifier`, or if a target is not a finite number (numbers given as text are accepted).

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["A" * n + "C" * (12 - n) for n in range(12)] * 2, [float(n) for n in range(12)] * 2
    >>> auto = sm.AutoRegressor(budget=4, cv=3, nested=False, random_state=0).fit(X, y)
    >>> bool(auto.score(X, y) > 0.9)
    True
    """

    _task, _usual = "regression", "r2"
    score = _Auto.score  # not that of the mixin


_compiled: set[str] = set()  # kinds of objects compiled in this process


def _compile(kind: str, shown: bool) -> None:
    """Compile the loops for a kind of objects, so that the first candidate does not seem slow."""
    if kind in _compiled or kind not in compilation.KINDS:
        return
    what = f"compile loops for {kind} (not counted in the budget)"
    enough = max(settings().max_memory, _MEMORY_TO_COMPILE)
    with logged(_logger, what), config(progress=shown, max_memory=enough):
        for one in track([kind], what):
            compilation.warmup([one])
    _compiled.add(kind)


@dataclass
class _Run:
    """One selection: objects in order, candidates, search, final fit, nested estimate."""

    auto: _Auto
    X: Any
    y: npt.NDArray
    kind: str
    own: Sequence[Kernel | Distance]
    folds: int
    groups: npt.NDArray[np.int64]
    clock: Budget
    board: Leaderboard

    def __post_init__(self) -> None:
        auto, X, y, folds = self.auto, self.X, self.y, self.folds
        rng = generator(auto.random_state)
        seed = int(rng.integers(2**31))
        classify = auto._task == "classification"
        first = max(_FIRST, _PER_CLASS * len(np.unique(y))) if classify else _FIRST
        steps = rungs(len(y), first, folds)
        n = steps[-1].n
        order = ordered(y, auto._task, folds, rng, self.groups)
        some = order.objects[:n]
        self.groups = self.groups[some]
        partitions = [order.fold[:n]]
        partitions += [again(y[some], auto._task, folds, seed + r, self.groups) for r in range(1, steps[-1].partitions)]
        tried: list[Group] = []
        self.too_large: list[Group] = []
        for group in ladder(self.kind, X, auto._task, seed, self.own):
            fits = not group.pairs or 8 * len(y) ** 2 <= settings().max_memory
            (tried if fits else self.too_large).append(group)
        scorer = get_scorer(auto.scoring or auto._usual)
        self.evaluator = Evaluator(take(X, some), y[some], partitions, scorer, tried)
        self.search = Search(self.evaluator, steps, folds, self.clock, len(y), classify, auto.max_voters, self._tell)

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
        auto.best_estimator_ = fitted(auto._unfitted, self.X, self.y)
        scores, repeated = self._outer_scores() if auto.nested else ([], 0)
        auto.best_score_, auto.best_score_interval_ = self._estimate(scores, repeated, auto.measure_)
        auto.n_outer_folds_ = repeated
        rows = self.rows(choice)
        auto.cv_results_, auto.seconds_ = results(rows), self.clock.spent
        auto.stopped_, auto.stopped_early_ = self.stopped, self.search.stopped_early
        auto.notes_ = [*notes, *self.search.why(choice), *self._time_notes(rows, repeated)]

    def _outer_scores(self) -> tuple[list[float], int]:
        """Return the score on each outer fold, and for how many of them the search was repeated."""
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
        """Return notes on what there was no time for."""
        notes = []
        if self.search.stopped_early:
            never = sum(row["state"] == OUT_OF_TIME and not row["n_objects"] for row in rows)
            untried = f", and {never} of {len(rows)} {'was' if never == 1 else 'were'} never tried" if never else ""
            notes.append(
                f"the budget of {self.clock.seconds:g} s ended before all candidates were compared{untried}; a larger "
                "budget may lead to a better choice, and another run to another choice"
            )
        if self.auto.nested and repeated < self.folds:
            some = f"for {self.folds - repeated} of {self.folds} folds " if repeated else ""
            notes.append(
                f"there was no time to repeat the whole search {some}when the score was estimated; repeating only the "
                "last choice may make it look a little too good"
            )
        return notes

    def _estimate(self, scores: list[float], repeated: int, measure: str) -> tuple[float, tuple[float, float]]:
        """Return the mean of the scores on outer folds, and its 95 % interval."""
        if not scores:
            return math.nan, (math.nan, math.nan)
        fold = self.evaluator.partitions[0]
        sizes = np.array([np.sum(fold == i) for i in range(len(scores))])
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
        """Show the leaderboard after each group of the main search."""
        if view.hidden is None:
            repeated = f", {rung.partitions} partitions" if rung.partitions > 1 else ""
            self.board.show(f"{self.folds} folds of {rung.n} {self.kind}{repeated}", self.rows())

    def rows(self, choice: tuple[Candidate, ...] = ()) -> list[dict[str, Any]]:
        """Return the candidates: the chosen one, those of the deciding rung by score, then the others."""
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
            if (g, i) in choice:
                state = "chosen" if len(choice) == 1 else "votes"
            seconds = self.search.fit_seconds.get((g, i, n), math.nan)
            rows.append(self._row(groups[g].named(i), groups[g].pipeline(i), state, scores, seconds, n))
        rows.sort(key=lambda row: row["state"] != "chosen")  # stable
        if len(choice) > 1:
            r = ranked[choice[0]][0]
            seconds = sum(row["mean_fit_time"] for row in rows if row["state"] == "votes")
            vote = self.name(choice), self.unfitted(choice), "chosen"
            rows.insert(0, self._row(*vote, self.search.voted(choice, r), seconds, self.search.steps[r].n))
        for g, group in enumerate([*groups, *self.too_large]):
            for i in range(len(group.learners)):
                if (g, i) not in ranked:
                    why = failed.get((g, -1)) or failed.get((g, i))
                    state = f"failed: {why}" if why else out.get((g, i), "not tried")
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
        """Return the name of a candidate or a vote."""
        names = [self.evaluator.groups[g].named(i) for g, i in choice]
        return names[0] if len(names) == 1 else f"vote of {len(names)}: {'; '.join(names)}"

    def unfitted(self, choice: tuple[Candidate, ...]) -> Any:
        """Return the unfitted pipeline of a candidate, or a vote."""
        pipelines = [self.evaluator.groups[g].pipeline(i) for g, i in choice]
        vote = VoteClassifier if self.auto._task == "classification" else VoteRegressor
        return pipelines[0] if len(pipelines) == 1 else vote(pipelines)


def results(rows: list[dict[str, Any]]) -> dict[str, npt.NDArray]:
    """Return the candidates' rows as columns, with ranks; those not tried share the last rank."""
    found = {name: np.array([row[name] for row in rows]) for name in rows[0] if name != "estimator"}
    tried = found["n_objects"] > 0
    found["rank_test_score"] = np.where(tried, np.cumsum(tried), tried.sum() + 1)
    found["estimator"] = np.empty(len(rows), dtype=object)
    found["estimator"][:] = [row["estimator"] for row in rows]
    return found
