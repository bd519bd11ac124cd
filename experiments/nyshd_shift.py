"""NysHD's argument for kernels of time series: what shift and stretch do to codes of series, and to accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline

from experiments._figures import panels
from experiments._report import Record, Table, distinct, summary, values
from similia.codes import SequenceEncoder, SignRandomProjection, inner_products
from similia.datasets import fetch
from similia.distances import DTW
from similia.embeddings import D2KE, Nystroem
from similia.kernels import GlobalAlignment
from similia.kernels.series import suggest_bandwidth
from similia.learn import HDClassifier
from similia.objects import SeriesBatch, as_series, take

N_BITS = 10_000
N_RANDOM_SERIES = 512
TEST_MOST = 100
SHIFTS = (0, 5, 10, 15, 20, 30)  # percent of the length
STRETCHES = (70, 80, 90, 100, 110, 125, 140)  # length in percent of the length before


@dataclass(frozen=True)
class ShiftTask:
    """One data set.

    Attributes
    ----------
    name : str
    source : str
        Name for `similia.datasets.fetch`; empty for the made set.
    every : int
        Take each time point whose number is a multiple of this.
    """

    name: str
    source: str
    every: int = 1


TASKS = (
    ShiftTask("Bumps", ""),
    ShiftTask("GunPoint", "gunpoint", every=2),
    ShiftTask("BasicMotions", "basic_motions"),
    ShiftTask("ItalyPowerDemand", "italy_power_demand"),
)
TITLE = "Series shifted and stretched in time (the argument of NysHD's introduction)"
TEXT = f"""
NysHD argues that codes of time series whose steps are bound to their places break where events are not aligned, and
that a kernel of alignments, made into codes, would not. Here models are trained on series as they are and tested on
series that are late or early by a share of their length (each in a direction drawn at random; the value at the edge is
repeated) or stretched to another length (linear interpolation). All codes have {N_BITS} bits and the same classifier:

- *by place*: `SequenceEncoder()`, each value bound to its place in time;
- *n-grams*: `SequenceEncoder(n=...)`, bundled wherever they stand;
- *alignment*: `Nystroem` on the global alignment kernel, all training series as landmarks, then `SignRandomProjection`;
- *D2KE*: `D2KE` on dynamic time warping, {N_RANDOM_SERIES} random series, then `SignRandomProjection`.

The length of n-grams (2, 3, 5, 8), the bandwidth (0.1, 0.2, 0.5 or 1 times that of `suggest_bandwidth`) and gamma
(1/4, 1, 4, 16 over the median distance) are chosen by 5-fold cross-validation on the training series as they are, the
first of the best. *Likeness kept* is (s - o) / (1 - o) in percent, s the mean similarity of a test series with itself
distorted, o that of two different test series: 100 for codes that do not notice, 0 where a series is no more like
itself than like others. Seeds draw levels, projections and random series.

Bumps is made: a bump and a dip within 80 noisy points, in one order or the other; 60 series train. A shift by 20 % puts
one where the other was in training, so that codes that look at places take one class for the other. GunPoint is thinned
to every second point; at most {TEST_MOST} series of a set are tested.
"""


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables, and the picture of both measures against shift."""
    tables = []
    curves: dict[str, dict[str, list[float]]] = {}
    for column, label in (("accuracy", "Accuracy"), ("kept", "Likeness kept")):
        for distortion, amounts in (("shift", SHIFTS), ("stretch", STRETCHES)):
            unit = "late or early by, %" if distortion == "shift" else "stretched to, %"
            table = Table(f"{label}, {unit} of the length", ["set", "code", *map(str, amounts)])
            for name in distinct(records, "set"):
                for method in METHODS:
                    where = {"set": name, "code": method, "distortion": distortion}
                    runs = [values(records, column, amount=amount, **where) for amount in amounts]
                    table.rows.append([name, method, *map(summary, runs)])
                    if distortion == "shift":
                        means = [float(np.mean(run)) for run in runs]
                        curves.setdefault(f"{name}: {label.lower()}", {})[method] = means
            tables.append(table)
    return tables, panels(curves, list(SHIFTS), "shift (% of the length)", "%")


def measure(task: ShiftTask, seeds: int) -> list[Record]:
    """Fit each method on the training series as they are, and encode the test series under each distortion."""
    train, y_train, test, y_test = load(task)
    inputs = {("shift", p): shifted(test, p / 100, np.random.default_rng(0)) for p in SHIFTS}
    inputs |= {("stretch", p): stretched(test, p / 100) for p in STRETCHES}
    rows = []
    for name, method in METHODS.items():
        setting = chosen(method, train, y_train)
        embed = method.shared(train, setting)
        objects, as_they_are = embed(train), embed(test)
        distorted = {key: embed(X) for key, X in inputs.items()}
        for seed in range(seeds):
            encoder = method.encoder(setting, seed).fit(objects)
            learner = HDClassifier(random_state=seed).fit(encoder.transform(objects), y_train)
            codes = encoder.transform(as_they_are)
            for (distortion, amount), X in distorted.items():
                found = encoder.transform(X)
                itself, others = likeness(codes, found)
                rows.append(
                    {
                        "set": task.name,
                        "code": name,
                        "distortion": distortion,
                        "amount": amount,
                        "seed": seed,
                        "setting": "" if setting is None else setting,
                        "accuracy": round(100 * float(np.mean(learner.predict(found) == y_test)), 3),
                        "similarity": round(itself, 4),
                        "others": round(others, 4),
                        "kept": round(100 * (itself - others) / (1 - others), 3),
                    }
                )
    return rows


def likeness(codes: npt.NDArray[np.uint8], distorted: npt.NDArray[np.uint8]) -> tuple[float, float]:
    """Return the mean similarity of codes with the same object's distorted code, and with other objects' codes."""
    n, n_bits = len(codes), 8 * codes.shape[1]
    own = np.trace(inner_products(codes, distorted)) / (n * n_bits)
    others = (inner_products(codes).sum() / n_bits - n) / (n * (n - 1))
    return float(own), float(others)


def shifted(X: SeriesBatch, share: float, rng: np.random.Generator) -> SeriesBatch:
    """Return series that are late or early by a share of their length, the values at the edges repeated."""
    moved = []
    for x in X:
        places = np.arange(len(x)) + rng.choice([-1, 1]) * round(share * len(x))
        moved.append(x[np.clip(places, 0, len(x) - 1)])
    return SeriesBatch.from_arrays(moved)


def stretched(X: SeriesBatch, factor: float) -> SeriesBatch:
    """Return series of `factor` times the length, interpolated linearly between the time points."""
    moved = []
    for x in X:
        places = np.linspace(0, len(x) - 1, max(2, round(factor * len(x))))
        before = np.minimum(places.astype(np.int64), max(0, len(x) - 2))
        after = np.minimum(before + 1, len(x) - 1)
        share = (places - before)[:, None].astype(x.dtype)
        moved.append((1 - share) * x[before] + share * x[after])
    return SeriesBatch.from_arrays(moved)


def load(task: ShiftTask) -> tuple[SeriesBatch, npt.NDArray, SeriesBatch, npt.NDArray]:
    """Return training series and labels, test series and labels."""
    if not task.source:
        X, y, given = *bumps(160, np.random.default_rng(0)), np.repeat([0, 1], [60, 100])
    else:
        bunch = fetch(task.source)
        X, y, given = as_series(bunch.data), np.asarray(bunch.target), bunch.split
    train, test = np.flatnonzero(given == 0), np.flatnonzero(given == 1)
    if len(test) > TEST_MOST:
        _, test = train_test_split(test, test_size=TEST_MOST, stratify=y[test], random_state=0)
    X = SeriesBatch.from_arrays([x[:: task.every] for x in X])
    return take(X, train), y[train], take(X, test), y[test]


def bumps(n: int, rng: np.random.Generator, length: int = 80) -> tuple[SeriesBatch, npt.NDArray[np.int64]]:
    """Return noisy series with a bump and a dip, and which comes first: the bump (0) or the dip (1)."""
    y = np.arange(n) % 2
    time = np.arange(length)
    centres = length * np.array([0.4, 0.6]) + rng.uniform(-2, 2, size=(n, 2))
    waves = np.exp(-((time - centres[:, :, None]) ** 2) / (2 * 2.5**2))
    X = (waves[:, 0] - waves[:, 1]) * (1 - 2 * y[:, None]) + 0.2 * rng.standard_normal((n, length))
    return SeriesBatch.from_arrays([x[:, None] for x in X]), y


@dataclass(frozen=True)
class Method:
    """How series become codes.

    Attributes
    ----------
    shared : callable
        (training series, setting) -> function of series: the part without random choices, computed once for all seeds.
    encoder : callable
        (setting, seed) -> transformer of what that function returns.
    grid : tuple
        Settings to choose from.
    """

    shared: Callable[[SeriesBatch, Any], Callable[[SeriesBatch], Any]]
    encoder: Callable[[Any, int], Any]
    grid: tuple[Any, ...] = (None,)


def chosen(method: Method, X: SeriesBatch, y: npt.NDArray) -> Any:
    """Return the setting with the most hits in five folds of the training series; ties go to the earlier one."""
    if len(method.grid) == 1:
        return method.grid[0]
    hits = np.zeros(len(method.grid))
    for i, setting in enumerate(method.grid):
        objects = method.shared(X, setting)(X)  # the shared part sees no labels: one for all folds
        for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
            encoder = method.encoder(setting, 0).fit(take(objects, a))
            learner = HDClassifier(random_state=0).fit(encoder.transform(take(objects, a)), y[a])
            hits[i] += np.sum(learner.predict(encoder.transform(take(objects, b))) == y[b])
    return method.grid[int(np.argmax(hits))]


def _as_they_are(train: SeriesBatch, setting: Any) -> Callable[[SeriesBatch], SeriesBatch]:
    return lambda X: X


def _aligned(train: SeriesBatch, setting: float) -> Callable[[SeriesBatch], npt.NDArray]:
    kernel = GlobalAlignment(setting * suggest_bandwidth(train))
    return Nystroem(kernel, n_components=len(train), random_state=0).fit(train).transform


def _sequence(n: int | None, seed: int) -> Any:
    return SequenceEncoder(n=n, n_bits=N_BITS, random_state=seed)


def _projection(setting: Any, seed: int) -> Any:
    return SignRandomProjection(N_BITS, random_state=seed + 1000)


def _d2ke(gamma: str, seed: int) -> Any:
    return make_pipeline(D2KE(DTW(), N_RANDOM_SERIES, gamma=gamma, random_state=seed), _projection(None, seed))


METHODS = {
    "by place": Method(_as_they_are, _sequence),
    "n-grams": Method(_as_they_are, _sequence, (2, 3, 5, 8)),
    "alignment": Method(_aligned, _projection, (0.1, 0.2, 0.5, 1.0)),
    "D2KE": Method(_as_they_are, _d2ke, ("0.25*median", "median", "4*median", "16*median")),
}
