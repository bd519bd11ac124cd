"""Choose a pipeline for objects and targets by nested cross-validation, within a time budget.

`_ladder` lists the candidates, `_search` compares and drops them, and `_evaluate` fits them. `AutoClassifier` and
`AutoRegressor` run the search, then the final fit, and estimate its score.
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
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from similia import compilation
from similia.core.config import config, logged, logger_of, settings, track
from similia.core.estimators import all_at_once, check_columns, check_fitted, check_table, computed, is_lazy, offered_if
from similia.core.intervals import wilson
from similia.core.state import Sizes, labels, state
from similia.core.validation import RandomState, check_positive, check_positive_int, check_vectors, generator, warn_user
from similia.learn.targets import Task
from similia.learn.vote import VoteClassifier, VoteRegressor
from similia.objects import n_objects, take
from similia.objects.molecules import look_like_smiles
from similia.objects.tables import is_frame, objects_in, to_array
from similia.pipelines import Pipeline
from similia.selection._evaluate import Answers, Evaluator, Score, fitted, prefers_balance, scores_answers, sized
from similia.selection._ladder import Group, ladder
from similia.selection._search import FIRST, OUT_OF_TIME, Candidate, Rung, Search, View, noise, rungs
from similia.selection.budget import Budget, Leaderboard
from similia.selection.folds import (
    again,
    checked_targets,
    joined,
    kept_together,
    number_of_folds,
    ordered,
    own_similarities,
    recognised,
    shown,
)
from similia.similarity import Distance, Kernel, check_direction, note_on_case
from similia.sources.dask import true_targets

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
_TEXTS = 200  # number of strings looked at for SMILES
_SMILES = (
    "the strings look like SMILES and are compared letter by letter; similia.objects.from_smiles(X), on the command "
    "line --smiles, reads them as molecules"
)


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


def _winner_has(method: str) -> Callable[[Any], None]:
    """Return a function that raises AttributeError if an estimator's chosen pipeline lacks `method`."""

    def check(auto: Any) -> None:
        if hasattr(auto._winner, method):
            return
        wrap = "; sklearn.calibration.CalibratedClassifierCV(auto.best_estimator_) adds probabilities"
        raise AttributeError(f"{auto.best_name_} has no {method}{wrap if method == 'predict_proba' else ''}")

    return check


def _embeds(auto: Any) -> bool:
    """Return whether the chosen pipeline makes vectors; True before `fit`, when a `Pipeline` looks for `transform`."""
    best = getattr(auto, "best_estimator_", None)
    return best is None or (isinstance(best, Pipeline) and len(best) > 1)


def _are_columns(value: Any, sizes: Sizes) -> bool:
    if not isinstance(value, dict) or not all(isinstance(column, np.ndarray) for column in value.values()):
        return False
    return len({len(column) for column in value.values()}) < 2


@state(best_estimator_="predictor", _unfitted="predictor", best_name_="text", cv_results_=_are_columns)
class _Auto(BaseEstimator):
    """Base of `AutoClassifier` and `AutoRegressor`."""

    _task: ClassVar[Task]
    _usual: ClassVar[str]  # default of `scoring`

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
            Strings, graphs, time series, point sets or vectors. Lists of numbers are read as vectors if all have the
            same length, otherwise as series. 1-D arrays are read as series. Objects that are arrays of two axes must be
            converted by `similia.objects.as_series` or `as_sets`. All objects are used to choose and to fit, so set a
            test part aside first.
        y : array-like of shape (n,)
            Labels, or numbers to predict. `AutoRegressor` reads booleans as the numbers 0 and 1, as regressors of
            scikit-learn do; its predictions then estimate how often objects are True.
        groups : array-like of shape (n,), optional
            Group of each object, such as a patient. Objects of one group always share a fold; identical objects always
            share a fold, too. Without groups, near copies among texts also share a fold: texts that have at least 80 %
            of their words in common. ``groups=range(n)`` keeps only identical objects together.
        """
        seconds = None if self.budget is None else check_positive(self.budget, "budget", also=" of seconds or None")
        clock = Budget(seconds)
        check_positive_int(self.max_voters, "max_voters")
        own = own_similarities(self.similarity)
        given = X
        kind, X = recognised(X, any_kind=bool(own))
        as_given = self._as_given(kind, X, given)
        for i, compare in enumerate(own):
            check_direction(compare, isinstance(compare, Kernel), as_given, f"similarity[{i}]")
        if kind == "strings" and not own and look_like_smiles([*X[:_TEXTS]]):
            warn_user(_SMILES)
        y = checked_targets(y, n_objects(X), self._task, self.scoring)
        together, notes = joined(X, groups)
        folds = number_of_folds(y, self._task, self.cv, together, "different object" if groups is None else "group")
        measure = self.scoring or self._usual
        self.measure_ = measure if isinstance(measure, str) else getattr(measure, "__name__", "score")
        shown = settings().progress if self.progress is None else self.progress
        with clock.paused():
            compile_loops(kind, shown)
        with (
            warnings.catch_warnings(),
            config(progress=False),
            config_context(transform_output="default"),
            Leaderboard(shown, clock, self.measure_) as board,
        ):
            warnings.simplefilter("ignore")  # such as those of candidates that do not converge
            notes += [note for note in [note_on_case(X, *own)] if note]
            near = kind == "strings" and groups is None
            Run(self, X, as_given, y, kind, own, folds, together, clock, board, near).choose(notes)
        self.kind_ = kind
        self._learn_form(given, X, y)
        return self

    def _learn_form(self, given: Any, X: Any, y: npt.NDArray) -> None:
        """Set `n_features_in_` and, of a data frame, `feature_names_in_` for vectors; `classes_` for classification."""
        check_table(self, X if self.kind_ == "vectors" else None, given, reset=True)
        if self._task == "classification":
            self.classes_ = np.unique(y)

    @all_at_once
    def refit(self, X: Any, y: Any) -> Self:
        """Fit the chosen pipeline again, to n objects and their targets; keep the scores and results of `fit`.

        For example, after scoring on a test part, refit to the training and test parts together.
        """
        check_fitted(self, "best_estimator_")
        given, (kind, X) = X, recognised(X, any_kind=True)
        y = checked_targets(y, n_objects(X), self._task, self.scoring)
        with config_context(transform_output="default"):
            self.best_estimator_ = fitted(self._unfitted, self._as_given(kind, X, given), y)
        self._learn_form(given, X, y)
        return self

    def _as_given(self, kind: str, X: Any, given: Any) -> Any:
        """Return the objects `given` by the user if there is an own similarity; `X`, their batch or array, otherwise.

        Vectors are always rows of the array `X`.
        """
        return X if self.similarity is None or kind == "vectors" else objects_in(given)

    @property
    def _winner(self) -> Any:
        check_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _read(self, X: Any) -> Any:
        """Return vectors as an array, as `fit` does; raise if the columns of a data frame are not those of `fit`."""
        if self.kind_ != "vectors":
            return X
        if is_frame(X):
            check_columns(self, X, reset=False)
            X = to_array(X)
        return check_vectors(X) if isinstance(X, list | tuple | np.ndarray) else X

    def predict(self, X: Any) -> npt.NDArray:
        """Return the predictions of the chosen pipeline for m objects, shape (m,)."""
        with config_context(transform_output="default"):
            return self._winner.predict(self._read(X))

    @offered_if(_winner_has("predict_proba"))
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class, shape (m, n_classes); only if the chosen pipeline has this method."""
        with config_context(transform_output="default"):
            return self._winner.predict_proba(self._read(X))

    @offered_if(_winner_has("decision_function"))
    def decision_function(self, X: Any) -> npt.NDArray:
        """Return the decision values of the chosen pipeline for m objects; only if it has this method."""
        with config_context(transform_output="default"):
            return self._winner.decision_function(self._read(X))

    @available_if(_embeds)
    def transform(self, X: Any) -> Any:
        """Return the vectors or packed bits that the chosen pipeline passes to its learner, shape (m, n_features).

        Not available if the chosen pipeline is a learner alone, or if several pipelines vote.
        """
        return self._winner[:-1].transform(self._read(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the predictions for m objects `X` with the true labels or numbers `y`.

        The parameter `scoring` sets the score; by default, it is the accuracy or, for a regressor, R squared. Each
        argument may be a Dask collection.
        """
        scorer, model, y = get_scorer(self.scoring or self._usual), self._winner, true_targets(y)
        with config_context(transform_output="default"):
            X = self._read(X)
            if is_lazy(X) and scores_answers(scorer, y):
                model = Answers(computed(model.predict(X)))
            return float(scorer(model, X, y))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = tags.input_tags.sparse = True
        return tags


@state(classes_=labels("c"))
class AutoClassifier(ClassifierMixin, _Auto):
    """A classifier that chooses its pipeline by cross-validation, within a time budget, and estimates its score.

    For each kind of object, it has a fixed list of pipelines, made of kernels, distances, embeddings and learners, and
    compares as many of them as the time allows. Among the pipelines that there was time to compare and fit, none is
    clearly better in cross-validation than the chosen pipeline. None of the compared pipelines with nearest neighbours
    scores higher than the chosen pipeline, unless the rule *Trust* made the choice (see Notes).

    Parameters
    ----------
    budget : float or None, default=600.0
        Time limit in seconds; None for no limit. The first call on a machine also compiles code with numba for up to a
        minute, which does not count.
    similarity : Kernel, Distance or list of them, optional
        Your own kernels or distances, which are tried first. To turn a function of two objects into a distance, use
        `similia.distances.FromFunction`. With a similarity of your own, objects may be of any kind, such as sets of
        tags. Your similarity gets the objects as you give them, except that vectors are always rows of an array.
    scoring : str or callable, optional
        A scorer of scikit-learn, where larger is better; accuracy by default. Scorers that need probabilities are
        refused. If the scorer gives all classes equal weight, as "balanced_accuracy" does, linear models and support
        vector machines are also trained with equal weights of all classes. A callable ``f(estimator, V, y)`` does not
        see the objects: during the search, `estimator` consists of the last steps of a pipeline, and V is the input of
        these steps. A callable that uses only ``estimator.predict(V)`` gets a stand-in for these steps. The ``predict``
        of the stand-in returns predictions that were made before, and V may be None.
    cv : int, default=5
        Number of folds, at least 3. If a class has fewer objects than folds, fewer folds (but at least 3) are used,
        with a warning.
    max_voters : int, default=5
        Maximum number of pipelines that vote on the label (see Notes). A vote needs at least three pipelines, so 1 or 2
        gives a single pipeline, which is smaller and faster.
    nested : bool, default=True
        Whether to estimate `best_score_`, the score on new objects. If you hold out test objects yourself, False saves
        time.
    random_state : int, numpy Generator or RandomState, optional
        Seed for the order of objects, the folds and all randomness in candidates.
    progress : bool, optional
        Whether to show a leaderboard; by default, ``similia.config(progress=...)`` decides.

    Attributes
    ----------
    best_estimator_ : Pipeline or VoteClassifier
        The chosen pipeline, or several that vote, fitted to all objects.
    best_name_ : str
        Name of the chosen candidate in `cv_results_`.
    best_score_ : float
        Estimated score on new objects: for each fold, a pipeline is chosen without the fold and scored on it, and the
        scores are averaged. NaN if `nested` is False.
    best_score_interval_ : (float, float)
        95 % confidence interval of `best_score_`. For accuracy it is Wilson's interval of a proportion, computed as if
        n / 1.5 objects had been scored (n / 2.25 if `n_outer_folds_` is below the number of folds). Here n is the
        number of objects in the last round (see Notes); identical objects and objects of one group (see `fit`) count
        once. Dividing n widens the interval, because the scores of different folds are not independent: the folds share
        training objects. In simulations, 94 to 98 % of these intervals held the true accuracy; without the division,
        only 83 to 91 % did. For other scores it is Student's t interval over folds, widened for the same reason [4]_.
    n_outer_folds_ : int
        Number of folds for which there was time to repeat the whole search without the fold. For each other fold, a
        pipeline is chosen by the scores already found on the remaining folds.
    cv_results_ : dict of ndarray
        Columns with one entry for each candidate, the chosen one first, then by rank; candidates that survived more
        rounds rank higher. The columns are ``name``; ``mean_test_score`` and ``standard_error``, NaN if the candidate
        was not tried; ``rank_test_score``; ``mean_fit_time``, the typical seconds of one fit in cross-validation;
        ``n_objects``, the number of objects in the candidate's last round; ``state``, which is "chosen", "votes",
        "finalist" (in the last round, but not chosen) or says why the candidate got no further; ``estimator``, the
        unfitted pipeline.
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    n_features_in_ : int
        Number of columns; exists only for vectors.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the columns; only for vectors from a data frame. Data frames with other columns, or in another order,
        are refused.
    kind_ : {"strings", "graphs", "series", "sets", "vectors", "objects"}
        Kind of the objects; "objects" if only `similarity` can read them.
    measure_ : str
        Name of the score, such as "accuracy"; for a callable `scoring`, its ``__name__``.
    seconds_ : float
        Seconds that `fit` took, without compilation.
    stopped_ : bool
        Whether Ctrl-C ended the search.
    stopped_early_ : bool
        Whether a candidate was not compared, or not chosen, for lack of time. If True, another run with the same seed
        may choose differently. If False, and `stopped_` is False, a run with the same seed and the same versions of the
        libraries makes the same choice.
    notes_ : list of str
        Remarks, for example on copies among the objects, a class that most objects have, failed candidates, a lack of
        time, and why a candidate without the best score was chosen.

    Raises
    ------
    ValueError
        In `fit`, if

        - y has missing values, fractional labels, or a length that differs from the length of X;
        - y has only one class, or most of its classes have only one object;
        - the classes are too small. Two classes of at least three objects each are enough, or four of at least two.
          To check other cases, sort the objects by class and deal them out in turn to three parts: each part must get
          at least two classes. Copies, and objects of one class and group, count once;
        - there are fewer than two objects for each fold, or fewer different objects (or groups) than folds;
        - `scoring` is a score for regression or needs probabilities;
        - no candidate can be fitted.
    TypeError
        In `fit`, if the kind of the objects is unknown and no similarity is given, or if a given similarity is neither
        a kernel nor a distance.

    Notes
    -----
    *Halving* [1]_. A candidate is an embedding (steps that turn objects into vectors) followed by a learner, or a
    learner alone if it takes objects as they are. The first round cross-validates all candidates on 300 objects, or on
    10 times the number of classes if that is more. The survivors are compared again on about 1000 objects, then on
    3000. If there are fewer objects, the last round uses all objects; with up to 450 objects, even the first round uses
    all objects. With fewer than 2000 objects, one more round repeats cross-validation with several splits. A round
    drops an embedding if its best candidate is too far behind the best candidate of all. From each embedding that
    stays, the round drops the learners that are too far behind the best learner on this embedding. "Too far" means more
    than two standard errors of the paired difference, plus 0.02 if the round did not use all objects. At most half of
    the embeddings (rounded up) stay, but this limit is never below four. The best candidate with nearest neighbours
    always stays. The method described under *Trust* stays, too, unless it is clearly worse than the best candidate. The
    candidate with the highest mean score in the last round wins (unless *Vote* or *Trust* decides otherwise), and is
    fitted to all objects.

    *Time.* The search first tries the cheapest embedding of each type (embeddings with landmarks are one type), then
    the other embeddings, from cheap to expensive. Each round gets a share of the budget. Then comes the final fit; the
    time left is used to estimate the score. A candidate whose final fit is expected to take more than half of the
    budget is chosen only if there is no other candidate. Times are extrapolated, and no fit is interrupted, so the
    search may exceed its budget by one fit.

    *Vote.* With few objects, chance decides which score is best, and equally good pipelines make errors on different
    objects. So several candidates may vote: the best candidate of all, and the best candidate on each other embedding
    if it is at most two standard errors worse. At most `max_voters` candidates vote, or fewer if there is no time to
    fit so many. If fewer than three candidates remain, there is no vote. The vote is cross-validated, too, and chosen
    only if it scores higher than the best candidate.

    *Trust.* With few objects, the best of many candidates is often the best by chance. So if published comparisons on
    many data sets agree on a method, this method is chosen without a vote, unless it is behind the best candidate by
    more than two standard errors of the paired difference. There is one such method: for time series, ridge regression
    on MultiRocket and Hydra features [3]_.

    *Nothing leaks.* Kernel values, distances and explicit features do not depend on folds and are computed once.
    Whatever is learnt or drawn from the objects, such as landmarks and scales, comes only from training folds.
    Identical objects and objects of one group share a fold.

    *Near copies.* Texts may come in variants, such as one sentence with different names. A model that remembers
    sentences then scores high on folds that split the variants, and fails on new sentences. So, unless `groups` are
    given, two strings with spaces share a fold if at least 80 % of their words agree. (To compute this share, count
    each word in both strings. Then divide the sum of the smaller counts by the sum of the larger counts.) This rule is
    not applied if one group of variants holds more texts than a fold, or if it would lower the number of groups of a
    class to less than the number of folds. `notes_` says how many near copies were found.

    *Score.* The best score of many candidates is too high an estimate [2]_. So, for each fold for which there is time
    (see `n_outer_folds_`), the whole search, including halving, is repeated without the fold, and its winner is scored
    on the fold. These winners are fitted to no more objects than the last round uses; the final model, fitted to all
    objects, is probably slightly better than this score says.

    *Repeatable.* The same integer `random_state` gives the same choice, unless candidates are left out for lack of
    time; `stopped_early_` is True if some were left out.

    `similia.save` stores the estimator with its results; `similia.explain` and `similia.report.write_report` accept it.

    References
    ----------
    .. [1] Jamieson & Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016.
    .. [2] Cawley & Talbot: On over-fitting in model selection and subsequent selection bias in performance evaluation.
       JMLR 11, 2010.
    .. [3] Middlehurst, Schäfer & Bagnall: Bake off redux: a review and experimental evaluation of recent time series
       classification algorithms. Data Mining and Knowledge Discovery 38, 2024.
    .. [4] Nadeau & Bengio: Inference for the generalization error. Machine Learning 52, 2003.

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
    """A regressor that chooses its pipeline by cross-validation, within a time budget, and estimates its score.

    It works like `AutoClassifier`, but averages the predictions of several pipelines instead of letting them vote. The
    notes of `AutoClassifier` apply here, too.

    Parameters
    ----------
    budget : float or None, default=600.0
        Time limit in seconds; None for no limit.
    similarity : Kernel, Distance or list of them, optional
        Your own kernels or distances, tried first.
    scoring : str or callable, optional
        A scorer of scikit-learn, where larger is better; R squared by default.
    cv : see `AutoClassifier`
    max_voters : int, default=5
        Maximum number of pipelines to average. An average needs at least three pipelines, so 1 or 2 gives a single
        pipeline.
    nested, random_state, progress : see `AutoClassifier`

    Attributes
    ----------
    best_estimator_ : Pipeline or VoteRegressor
        The chosen pipeline, or several whose predictions are averaged, fitted to all objects.
    best_name_, best_score_, best_score_interval_, n_outer_folds_, cv_results_ : see `AutoClassifier`
    n_features_in_, feature_names_in_, kind_, measure_ : see `AutoClassifier`
    seconds_, stopped_, stopped_early_, notes_ : see `AutoClassifier`

    Raises
    ------
    ValueError, TypeError
        In `fit`, if all targets are equal; if a target is not a finite number (text such as ``"1.5"`` counts as a
        number); or if a fold would hold only one object and the score needs two objects, as R squared does. (A fold can
        be this small if there are few groups, because all objects of a group, and all copies of an object, share a
        fold; see `groups` of `fit`.) All errors of `AutoClassifier` that are not about classes can occur, too.

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
