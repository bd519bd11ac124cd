"""The paper's protocol and a stricter one beside it, with tuning that never sees a test object.

Paper: one split ``train_test_split(random_state=42)``, 80/20, ten seeds for whatever is random in a
method. Stricter: ten stratified 80/20 splits, one seed each, hyperparameters tuned anew on each
training part, and intervals for paired differences with the correction of Nadeau & Bengio (Machine
Learning 52, 2003) for training parts that overlap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit, train_test_split

from experiments._paper import Task
from similia.core.config import track
from similia.datasets import fetch, load_promoters
from similia.objects import as_strings, take

Params = Mapping[str, Any]
TEST_SHARE = 0.2
TUNE_ON = 1_000


@dataclass(frozen=True)
class Method:
    """An encoder of objects and a classifier of codes, with the settings tuning may choose from.

    Attributes
    ----------
    name : str
    encoder : callable
        (params, seed) -> transformer of objects.
    learner : callable
        (params, seed) -> classifier of what the encoder returns.
    grid : sequence of mappings
        Settings to choose from on the training part; one entry means nothing is tuned.
    stateless : bool
        Whether the encoder learns nothing from data, so that one encoding serves all folds.
    """

    name: str
    encoder: Callable[[Params, int], Any]
    learner: Callable[[Params, int], Any]
    grid: Sequence[Params] = ({},)
    stateless: bool = False


@dataclass
class Scores:
    """Results of one method on one set: a value for each seed or split (accuracies in percent)."""

    accuracy: list[float] = field(default_factory=list)
    balanced: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    chosen: list[Params] = field(default_factory=list)

    def extend(self, other: Scores) -> None:
        """Append the results of `other`."""
        self.accuracy += other.accuracy
        self.balanced += other.balanced
        self.seconds += other.seconds
        self.chosen += other.chosen

    def records(self, **where: Any) -> list[dict[str, Any]]:
        """Return one record for each run, with the columns `where` before its results."""
        return [
            {
                **where,
                "run": i,
                "accuracy": round(accuracy, 3),
                "balanced_accuracy": round(self.balanced[i], 3),
                "fit_seconds": round(self.seconds[i], 4),
                "chosen": _settings(self.chosen[i]) if self.chosen else "",
            }
            for i, accuracy in enumerate(self.accuracy)
        ]


def _settings(params: Params) -> str:
    return ", ".join(f"{key}={value}" for key, value in params.items())


def score_predictions(y_true: npt.NDArray, y_pred: npt.NDArray, seconds: float = 0.0) -> Scores:
    """Return the accuracies of one prediction."""
    accuracy = 100 * float(np.mean(y_pred == y_true))
    recalls = [np.mean(y_pred[y_true == label] == label) for label in np.unique(y_true)]
    return Scores([accuracy], [100 * float(np.mean(recalls))], [seconds])


def load_task(task: Task) -> tuple[Any, npt.NDArray]:
    """Return the objects of a task as a batch, and their labels."""
    bunch = load_promoters() if task.source == "promoters" else fetch(task.source)
    objects = as_strings(bunch.data) if task.kind == "strings" else bunch.data
    return objects, np.asarray(bunch.target)


def paper_split(n: int) -> tuple[npt.NDArray, npt.NDArray]:
    """Return the train and test positions of the paper's split of n objects."""
    train, test = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=42)
    return train, test


def stratified_splits(y: npt.NDArray, n_splits: int = 10) -> list[tuple[npt.NDArray, npt.NDArray]]:
    """Return `n_splits` stratified 80/20 splits."""
    splitter = StratifiedShuffleSplit(n_splits=n_splits, test_size=TEST_SHARE, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))


def tuning_folds(y: npt.NDArray, train: npt.NDArray, n_trials: int) -> list[tuple[npt.NDArray, npt.NDArray]]:
    """Return the folds of the training part on which `n_trials` settings are compared.

    Five folds ten times below 200 objects and three times below 600; above, three folds (twice for up to 12
    trials) of a stratified sample of at most `TUNE_ON` objects.
    """
    n_splits, n_repeats = (
        (5, 10) if len(train) < 200 else (5, 3) if len(train) < 600 else (3, 2 if n_trials <= 12 else 1)
    )
    if len(train) > TUNE_ON:
        sampler = StratifiedShuffleSplit(n_splits=1, train_size=TUNE_ON, random_state=0)
        train = train[next(sampler.split(train, y[train]))[0]]
    folds = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=0)
    return [(train[a], train[b]) for a, b in folds.split(train, y[train])]


def tune(method: Method, X: Any, y: npt.NDArray, train: npt.NDArray) -> Params:
    """Return the entry of ``method.grid`` with the best accuracy over `tuning_folds`; ties go to the earlier entry."""
    if len(method.grid) == 1:
        return method.grid[0]
    splits = tuning_folds(y, train, len(method.grid))
    hits = np.zeros(len(method.grid))
    for group in _same_encoder(method.grid):
        for seed, (codes, rest, a, b) in enumerate(_encoded(method, method.grid[group[0]], X, y, splits)):
            for i in group:
                learner = method.learner(method.grid[i], seed).fit(codes, y[a])
                hits[i] += np.mean(learner.predict(rest) == y[b])
    return method.grid[int(np.argmax(hits))]


def _same_encoder(grid: Sequence[Params]) -> Iterable[list[int]]:
    """Group the entries of a grid that differ only in the learner (``init``)."""
    groups: dict[str, list[int]] = {}
    for i, params in enumerate(grid):
        groups.setdefault(repr({k: v for k, v in params.items() if k != "init"}), []).append(i)
    return groups.values()


def _encoded(
    method: Method, params: Params, X: Any, y: npt.NDArray, splits: Sequence[tuple[npt.NDArray, npt.NDArray]]
) -> Iterable[tuple[Any, Any, npt.NDArray, npt.NDArray]]:
    """Yield training codes, held-out codes and positions for each split; a stateless encoder encodes once."""
    if method.stateless:
        needed = np.unique(np.concatenate(splits[0]))  # every split is of the same objects
        codes = method.encoder(params, 0).fit_transform(take(X, needed))
        for a, b in splits:
            yield codes[np.searchsorted(needed, a)], codes[np.searchsorted(needed, b)], a, b
        return
    for seed, (a, b) in enumerate(splits):
        encoder = method.encoder(params, seed).fit(take(X, a), y[a])
        yield encoder.transform(take(X, a)), encoder.transform(take(X, b)), a, b


def fit_and_score(
    method: Method, params: Params, X: Any, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray, seed: int
) -> Scores:
    """Fit on `train`, score on `test`; the time is that of encoding and fitting the training part."""
    encoder = method.encoder(params, seed)
    start = time.perf_counter()
    codes = encoder.fit(take(X, train), y[train]).transform(take(X, train))
    learner = method.learner(params, seed).fit(codes, y[train])
    seconds = time.perf_counter() - start
    predicted = learner.predict(encoder.transform(take(X, test)))
    scores = score_predictions(y[test], predicted, seconds)
    scores.chosen = [params]
    return scores


def run_on_paper_split(
    method: Method, X: Any, y: npt.NDArray, seeds: Iterable[int], params: Params | None = None
) -> Scores:
    """Tune once on the training part of the paper's split (unless given `params`), then score each seed."""
    train, test = paper_split(len(y))
    params = tune(method, X, y, train) if params is None else params
    return _collect(fit_and_score(method, params, X, y, train, test, seed) for seed in seeds)


def run_on_stratified_splits(
    method: Method, X: Any, y: npt.NDArray, n_splits: int, params: Sequence[Params] | None = None
) -> Scores:
    """Tune (unless given `params`, one for each split), fit and score on each stratified split."""
    parts = []
    for i, (train, test) in enumerate(track(stratified_splits(y, n_splits), method.name, n_splits)):
        chosen = tune(method, X, y, train) if params is None else params[i]
        parts.append(fit_and_score(method, chosen, X, y, train, test, seed=i))
    return _collect(parts)


def majority(y: npt.NDArray, splits: Iterable[tuple[npt.NDArray, npt.NDArray]]) -> Scores:
    """Score the constant prediction of the most frequent training label."""
    result = Scores()
    for train, test in splits:
        values, counts = np.unique(y[train], return_counts=True)
        result.extend(score_predictions(y[test], np.full(len(test), values[np.argmax(counts)])))
    return result


def paired_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of accuracies a minus b over the same splits, and two half widths of its interval.

    The first is Student's, as if the splits were independent; the second has the correction of Nadeau & Bengio.
    """
    differences = np.subtract(a, b)
    n = len(differences)
    deviation = float(stats.t.ppf((1 + level) / 2, n - 1) * np.std(differences, ddof=1))
    overlap = TEST_SHARE / (1 - TEST_SHARE)
    return float(differences.mean()), deviation * np.sqrt(1 / n), deviation * np.sqrt(1 / n + overlap)


def _collect(parts: Iterable[Scores]) -> Scores:
    total = Scores()
    for part in parts:
        total.extend(part)
    return total
