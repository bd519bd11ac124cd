"""Gaussian processes on molecules: errors, and whether the stated uncertainty is right; beside gpytorch.

Protocol. The way to treat noise and scale was chosen before any test part was scored with it, by the mean negative log
density of five folds inside the training parts of splits 0 to 3: `choose` prints it. Compared were the values of
largest evidence, and averages with three priors of r = (variance of the noise) / (mean variance of f): flat in log r
from 1e-6 to 100, and the share r / (1 + r) with the density Beta(1/2, 1/2) or Beta(1, 1), which is uniform. The best on
both sets, the uniform share, is the default of `GaussianProcessRegressor`. Then `measure` ran once. `stops` asks,
also inside the training parts, what is gained by stopping gpytorch early.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import norm, t
from sklearn.model_selection import KFold, train_test_split

from experiments._report import Record, Table, distinct, values
from experiments.molecules import BOTH, NEAR, Task
from similia.core.config import track
from similia.datasets import fetch
from similia.embeddings.landmarks import KernelPairs
from similia.kernels import MinMax, Morgan, ShortestPath, Sum
from similia.learn import GaussianProcessRegressor
from similia.objects import from_smiles, take
from similia.objects.molecules import as_smiles

TASKS = (Task("ESOL"), Task("Photoswitch"))
KERNELS = {
    "Morgan, radius 2 (count ECFP4)": MinMax(Morgan()),
    "WL, sum of 0 to 3 rounds": MinMax(NEAR),
    BOTH: Sum([MinMax(NEAR), MinMax(ShortestPath())]),
}
CHOSEN, MAXIMIZED, MEAN = (
    "the above of largest evidence",
    "the third kernel, maximized",
    "no molecule: normal distribution",
)
LONGER = "the third kernel, gpytorch, 400 steps"
STEPS = {"the third kernel, gpytorch": 100, LONGER: 400}
MEASURES = ("RMSE", "negative log density", "coverage of 95 %")
TITLE = "Molecules: predictions with their uncertainty"
TEXT = """
`GaussianProcessRegressor(kernel)` on random splits, 80 % to train; mean ± standard error over the splits. All kernels
are min-max similarities of counts. Predictions average over noise, scale and mean of the process; in the row
*maximized* these have their most likely values. In the row *largest evidence* the evidence of the training part chooses
the kernel. *Negative log density*: of the test targets under the predicted distributions; less is better. *Coverage*:
the share of test targets between the predicted quantiles of 2.5 % and 97.5 %. gpytorch fits mean, scale and noise to
the same kernel matrix by 100 steps of Adam, and by 400 in the row that says so. In print, Gaussian processes on
Photoswitch reach RMSE 20.9 (Tanimoto of fragprints) and 24.8 (Weisfeiler-Lehman; GAUCHE, notebooks of its repository).
The lowest in these notebooks is 19.03 ± 0.53, by another kernel on other inputs: rational quadratic, on Mordred
descriptors. The kernels here were found on these two sets (see the experiment on molecules), so look at other sets
before you trust the last few percent.

*Protocol.* The average and its prior were chosen before any test part was scored, by the mean negative log density of
five folds inside the training parts of splits 0 to 3 (third kernel). The smallest on both sets is the default:

| noise and scale | ESOL | Photoswitch |
|---|---|---|
| largest evidence | 1.134 | 4.576 |
| averaged, log-uniform ratio | 0.909 | 4.442 |
| averaged, Beta(1/2, 1/2) share of the noise | 0.907 | 4.439 |
| averaged, uniform share of the noise | 0.905 | 4.436 |

Findings. gpytorch is a witness of *maximized*: on 34 of the 40 splits, 400 steps of Adam bring it to the same evidence
and RMSE (last table). On six splits of ESOL, its evidence is then still lower; on the one farthest off, split 17, by a
logarithm of 0.49, and after 800 steps by 0.002. After 100 steps, its RMSE is less than after 400 by 0.005 ± 0.006 nm on
Photoswitch and by 0.0002 ± 0.0002 on ESOL, which is no gain within the errors. The average is better than the most
likely values by 0.037 ± 0.016 (ESOL) and 0.026 ± 0.013 (Photoswitch) in negative log density. Its RMSE is that of
gpytorch after 400 steps on ESOL (0.0000 ± 0.0001) and greater by 0.010 ± 0.004 nm, or 0.05 %, on Photoswitch. The most
likely values fail on few molecules: ESOL lists `OCC(O)C(O)C(O)C(O)CO` twice, with values 1.03 apart. If one of the two
is in the test part, it is predicted from the other with confidence, 9 to 12 standard deviations off. Only repeated
molecules tell noise from detail, so the evidence may have two peaks; the average keeps both. Inside the training parts
of Photoswitch (`stops` in the experiment, one fold of five of each split), the RMSE of the average is smaller than that
of 100 steps by 0.008 ± 0.012 nm and its negative log density by 0.028 ± 0.010; the RMSE of *maximized* is smaller by
0.033 ± 0.014 nm, its negative log density greater by 0.137 ± 0.058. The rows of gpytorch were measured after the
others, on the same splits and kernel matrices. Seconds were measured beside other work.
"""


def measure(task: Task, seeds: int, known: Sequence[Record] = ()) -> Iterator[Record]:
    """Score all models on each random split; `known` are the rows of a run before, which are not measured again."""
    bunch = fetch(task.name)
    forms = {False: from_smiles(bunch.data), True: as_smiles(bunch.data)}
    y = np.asarray(bunch.target, dtype=float)
    for run in track(range(seeds), task.name, seeds):
        before = [record for record in known if record["run"] == run]
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=run)
        where = {"set": task.name, "run": run}
        if MEAN in values(before, "model"):  # the last row of ours
            yield from before
        else:
            best: tuple[float, dict[str, float]] = (-np.inf, {})
            for name, kernel in KERNELS.items():
                X = forms[getattr(kernel, "kernel", None).__class__ is Morgan]
                known_part, other_part = take(X, train), take(X, test)
                evidence, found = _of_a_fit(GaussianProcessRegressor(kernel), known_part, y[train], other_part, y[test])
                yield {**where, "model": name, **found}
                best = max(best, (evidence, found), key=lambda pair: pair[0])
                if name == BOTH:
                    model = GaussianProcessRegressor(kernel, hyperparameters="maximized")
                    evidence, found = _of_a_fit(model, known_part, y[train], other_part, y[test])
                    yield {**where, "model": MAXIMIZED, **found, "evidence": evidence}
            yield {**where, "model": CHOSEN, **best[1]}
            spread = np.full(len(test), y[train].std())
            constant = _scores(y[test], np.full(len(test), y[train].mean()), spread)
            yield {**where, "model": MEAN, **constant, "seconds": 0.0}
        for name in STEPS if os.environ.get("SIMILIA_GPYTORCH_PYTHON") else ():
            if name not in values(before, "model"):
                K = KERNELS[BOTH](forms[False])
                evidence, found = _gpytorch(K, y, train, test, STEPS[name])
                yield {**where, "model": name, **found, "evidence": evidence}


def _of_a_fit(
    model: GaussianProcessRegressor, X: Any, y: npt.NDArray, others: Any, targets: npt.NDArray
) -> tuple[float, dict[str, float]]:
    """Return the evidence of a model, and the three `MEASURES` of what it predicts for `others`, with seconds."""
    start = time.perf_counter()
    ends = model.fit(X, y).predict_interval(others, 0.95)
    inside = np.mean((targets > ends[:, 0]) & (targets < ends[:, 1]))
    error = np.sqrt(np.mean((targets - model.predict(others)) ** 2))
    found = error, -np.mean(model.log_density(others, targets)), 100 * inside
    scores = dict(zip(MEASURES, map(float, found), strict=True))
    return model.log_marginal_likelihood_, {**scores, "seconds": time.perf_counter() - start}


def _scores(y: npt.NDArray, mean: npt.NDArray, std: npt.NDArray) -> dict[str, float]:
    """Return the three `MEASURES` of predicted normal distributions."""
    z = (y - mean) / std
    density = np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi))
    found = np.sqrt(np.mean((y - mean) ** 2)), density, 100 * np.mean(np.abs(z) < 1.96)
    return dict(zip(MEASURES, map(float, found), strict=True))


def choose(task: Task, splits: int = 4) -> dict[str, float]:
    """Return the mean negative log density of five folds inside training parts, for each way to treat the noise."""
    bunch = fetch(task.name)
    K, y = np.asarray(KERNELS[BOTH](from_smiles(bunch.data)), dtype=float), np.asarray(bunch.target, dtype=float)
    scores: dict[str, list[float]] = {}
    for run in range(splits):
        train, _ = train_test_split(np.arange(len(y)), test_size=0.2, random_state=run)
        for known, held in KFold(5, shuffle=True, random_state=run).split(train):
            for way, score in _densities(K, y, train[known], train[held]).items():
                scores.setdefault(way, []).append(score)
    return {way: float(np.mean(found)) for way, found in scores.items()}


def _densities(K: npt.NDArray, y: npt.NDArray, known: npt.NDArray, held: npt.NDArray) -> dict[str, float]:
    """Return the negative log density of the targets `held`, by the formulas of `similia.learn.evidence` on a grid."""
    n, own = len(known), K[np.ix_(known, known)]
    values, U = np.linalg.eigh(own)
    logs = np.log(10) * np.arange(-6, 2.001, 0.05)
    a = np.trace(own) / n * np.exp(logs)
    shares, g, h = 1 / (values[:, None] + a), U.T @ y[known], U.T @ np.ones(n)
    ones, logdet = h**2 @ shares, -np.log(shares).sum(axis=0)
    means = (g * h) @ shares / ones
    square = g**2 @ shares - means**2 * ones
    z = K[np.ix_(held, known)] @ U
    centers = means + z @ (shares * (g[:, None] - means * h[:, None]))
    latent = np.maximum(K.diagonal()[held][:, None] - z**2 @ shares, 0)
    best = int(np.argmin(logdet + n * np.log(square)))
    std = np.sqrt(square[best] / n * (latent[:, best] + a[best]))
    found = {"largest evidence": -float(norm.logpdf(y[held], centers[:, best], std).mean())}
    width = np.sqrt(square / (n - 1) * (latent + a + (1 - z @ (shares * h[:, None])) ** 2 / ones))
    density = t.logpdf(y[held][:, None], n - 1, centers, width)
    evidence = -0.5 * (logdet + np.log(ones) + (n - 1) * np.log(square))
    for way, b in {"log-uniform": 0.0, "Beta(1/2, 1/2)": 0.5, "uniform share": 1.0}.items():
        weights = evidence + b * (logs - 2 * np.log1p(np.exp(logs)))
        found[way] = -float((logsumexp(density + weights, axis=1) - logsumexp(weights)).mean())
    return found


def stops(task: Task, splits: int) -> list[Record]:
    """Return evidence, RMSE and negative log density on the first of five folds inside each training part.

    One record for each split and model: gpytorch after 100 and 1000 steps, and both ways of `GaussianProcessRegressor`.
    """
    bunch, found = fetch(task.name), []
    K, y = np.asarray(KERNELS[BOTH](from_smiles(bunch.data)), dtype=float), np.asarray(bunch.target, dtype=float)
    for run in range(splits):
        train, _ = train_test_split(np.arange(len(y)), test_size=0.2, random_state=run)
        known, held = (train[rows] for rows in next(KFold(5, shuffle=True, random_state=run).split(train)))
        for way in ("integrated", "maximized"):
            model = GaussianProcessRegressor(KernelPairs(K), hyperparameters=way)
            evidence, scores = _of_a_fit(model, known, y[known], held, y[held])
            found.append({"run": run, "model": way, "evidence": evidence, **scores})
        for steps in (100, 1000):
            evidence, scores = _gpytorch(K, y, known, held, steps)
            found.append({"run": run, "model": f"gpytorch, {steps} steps", "evidence": evidence, **scores})
    return found


def _gpytorch(
    K: npt.NDArray, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray, steps: int
) -> tuple[float, dict[str, float]]:
    """Return the evidence and the scores of gpytorch, run by another interpreter, on a kernel matrix."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder, "matrix.npz")
        np.savez(where, K=K, y=y, train=train, test=test)
        script = Path(__file__).with_name("_gpytorch_tools.py")
        command = [os.environ["SIMILIA_GPYTORCH_PYTHON"], "-P", str(script), str(where), str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"gpytorch failed: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout.splitlines()[-1])
    scores = _scores(y[test], np.array(found["mean"]), np.array(found["std"]))
    return found["evidence"], {**scores, "seconds": found["seconds"]}


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return a table for each set, with a row for each model, and one that compares gpytorch with *maximized*."""
    tables = []
    for name in distinct(records, "set"):
        rows = [record for record in records if record["set"] == name]
        table = Table(f"{name}: {len(distinct(rows, 'run'))} splits", ["model", *MEASURES, "seconds"])
        for model in distinct(rows, "model"):
            cells = [_mean(values(rows, measure, model=model)) for measure in MEASURES]
            table.rows.append([model, *cells, f"{np.median(values(rows, 'seconds', model=model)):.1f}"])
        tables.append(table)
    return [*tables, *_twins(records)], None


def _twins(records: list[Record]) -> list[Table]:
    """Return a table of how far gpytorch is from the most likely values after 400 steps, if it was run."""
    head = ["set", "splits", "equal to 1e-6", "evidence, others", "RMSE, all", "RMSE, equal"]
    table = Table("gpytorch, 400 steps, less *maximized*: logarithm of the evidence, and RMSE", head)
    for name in distinct([record for record in records if record["model"] == LONGER], "set"):
        rows = [record for record in records if record["set"] == name]
        evidence, error = (
            np.subtract(*(np.array(values(rows, what, model=model), dtype=float) for model in (LONGER, MAXIMIZED)))
            for what in ("evidence", "RMSE")
        )
        equal = np.abs(evidence) < 1e-6
        apart = f"{evidence[~equal].min():.3f} to {evidence[~equal].max():.3f}" if not equal.all() else ""
        within = (f"within {np.abs(some).max(initial=0.0):.1g}" for some in (error, error[equal]))
        table.rows.append([name, str(len(equal)), str(equal.sum()), apart, *within])
    return [table] if table.rows else []


def _mean(scores: list[Any]) -> str:
    """Return the mean of `scores` ± its standard error."""
    scores = [float(score) for score in scores]
    error = float(np.std(scores, ddof=1)) / len(scores) ** 0.5 if len(scores) > 1 else 0.0
    return f"{np.mean(scores):.3f} ± {error:.3f}"
