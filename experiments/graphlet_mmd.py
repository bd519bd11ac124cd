"""Theorems 4 and 5 of GSA-phi, measured: errors of MMD^2 and of histograms on two graphs whose laws are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._figures import panels
from experiments._report import Record, Table, distinct, values
from experiments.mmd_variance import mmd2_variance
from similia.embeddings import GraphletSampling
from similia.objects.graphlets import (
    canonical_forms,
    enumerate_graphlets,
    n_pairs,
    sample_graphlets,
    unpack_graphlets,
)
from similia.planning import graphlet_samples, mmd_error

Floats = npt.NDArray[np.float64]

SIZE, DELTA, BANDWIDTH = 4, 0.05, 1.0
FEATURE_RUNS, SAMPLE_RUNS, BIAS_RUNS = 100, 100, 10_000  # of each seed
_INFINITE = 10**18  # samples: what is left of Theorem 5 is its term by features


@dataclass(frozen=True)
class Check:
    """One experiment and the values of its axis."""

    name: str
    axis: str
    values: tuple[float, ...]


TASKS = (
    Check("features", "m", (16, 64, 256, 1024, 4096)),
    Check("samples", "s", (64, 256, 1024, 4096, 16384)),
    Check("bias", "s", (5, 20, 80)),
    Check("histogram", "eps", (0.4, 0.2, 0.1, 0.05)),
)
TITLE = "GSA-phi: errors of MMD² beside the theorems"
TEXT = f"""
Two graphs of 16 nodes, a ring of four cliques of four and the complete bipartite graph 8 + 8. The law of their
graphlets of size {SIZE} under uniform sampling is known exactly, from all subsets of {SIZE} nodes in all orders, and so
is MMD² under the Gaussian kernel (bandwidth {BANDWIDTH:g}), from Hamming distances of the patterns.

*features*: `gaussian_complex` with m frequencies, averaged over the exact laws (no error by samples). *samples*: the
exact kernel with s samples of either graph (no error by features). Both errors are unbiased (the U-statistic for
samples); the slope is that of log RMSE on log m or log s, theory -1/2; its standard error counts the spread of the
squared errors. By theory RMSE is exact: the standard deviation of one feature over √m, and `mmd2_variance`, whose
terms in 1 / s² put the slope a little below -1/2. The bound is Theorem 5's for the one source of error, at level
1 - {DELTA:g}, beside the 95 % quantile of the error (of the V-statistic, which the theorem is about). It is loose:
that it holds proves little.

*bias*: means of V- and U-statistic beside MMD² plus the bias derived, in standard errors of the mean, and variance
of the U-statistic over the derived one. *histogram*: L1 error of the histogram with the number of samples that
Theorem 4 asks for, for the error eps that it promises with probability {1 - DELTA:g}.
"""


@dataclass(frozen=True)
class Laws:
    """The two laws: each of their ordered graphlets once, their probabilities, the kernel and the exact MMD^2."""

    graphs: list[Any]
    codes: npt.NDArray[np.uint64]
    p: Floats
    q: Floats
    K: Floats

    @property
    def mmd2(self) -> float:
        """The squared distance of the two laws."""
        return float((self.p - self.q) @ self.K @ (self.p - self.q))

    def bias(self, s: float) -> float:
        """How far the V-statistic lies above it, on average."""
        return float(2 - self.p @ self.K @ self.p - self.q @ self.K @ self.q) / s

    def feature_variance(self) -> float:
        """Variance of what one frequency adds, |mean of exp(i w.a) under p minus that under q|^2."""
        bits = unpack_graphlets(np.arange(len(self.K), dtype=np.uint64), SIZE).astype(np.int64)
        weights = np.outer(self.p - self.q, self.p - self.q).ravel()
        steps, where = np.unique((bits[:, None] - bits[None]).reshape(len(weights), -1), axis=0, return_inverse=True)
        c = np.bincount(where.ravel(), weights)
        squares = (steps**2).sum(axis=1)[:, None] + (steps**2).sum(axis=1) - 2 * steps @ steps.T
        return float(c @ np.exp(-squares / (2 * BANDWIDTH**2)) @ c) - self.mmd2**2


def laws() -> Laws:
    """Return the laws of both graphs."""
    nodes = np.arange(16)
    cliques = nodes[:, None] // 4 == nodes // 4
    links = (nodes[:, None] % 4 == 3) & (nodes == (nodes[:, None] + 1) % 16)
    bipartite = nodes[:, None] % 2 != nodes % 2
    graphs = [(np.array(np.nonzero(A & ~np.eye(16, dtype=bool))), 16) for A in (cliques | links | links.T, bipartite)]
    codes = np.stack([ordered_graphlets(graph) for graph in graphs])
    p, q = (np.bincount(row.astype(np.int64), minlength=1 << n_pairs(SIZE)) / len(row) for row in codes)
    patterns = np.arange(len(p))
    differences = np.bitwise_count(patterns[:, None] ^ patterns).astype(np.float64)
    return Laws(graphs, codes, p, q, np.exp(-differences / (2 * BANDWIDTH**2)))


def ordered_graphlets(graph: Any) -> npt.NDArray[np.uint64]:
    """Return the code of each subset of `SIZE` nodes in each order, with repeats."""
    found = enumerate_graphlets([graph], SIZE)
    bits = unpack_graphlets(np.repeat(found.codes, found.counts), SIZE)
    column, row = np.tril_indices(SIZE, -1)  # pairs (0, 1), (0, 2), (1, 2), ...: bits of a code in turn
    A = np.zeros((len(bits), SIZE, SIZE), dtype=np.uint64)
    A[:, row, column] = A[:, column, row] = bits
    places = np.uint64(1) << np.arange(bits.shape[1], dtype=np.uint64)
    orders = [np.array(order) for order in permutations(range(SIZE))]
    return np.concatenate([A[:, order[row], order[column]] @ places for order in orders])


def measure(task: Check, seeds: int) -> list[Record]:
    """Return moments and quantiles of the errors for each seed and value."""
    exact = laws()
    of = {"features": _by_features, "samples": _by_samples, "bias": _bias, "histogram": _histogram}[task.name]
    records = []
    for seed in range(seeds):
        for value in task.values:
            random = int(np.random.default_rng([seed, round(1000 * value)]).integers(2**31))
            for statistic, errors in of(exact, value, random).items():
                records.append(_record(task.name, statistic, value, seed, errors))
    return records


def _by_features(exact: Laws, m: float, seed: int) -> dict[str, Floats]:
    """Return errors of `FEATURE_RUNS` disjoint groups of m frequencies."""
    embedding = GraphletSampling(
        SIZE, features="gaussian_complex", n_components=FEATURE_RUNS * int(m), bandwidth=BANDWIDTH, random_state=seed
    ).fit(exact.graphs)
    z = embedding.map_.means(exact.codes).astype(np.float64) * np.sqrt(FEATURE_RUNS)
    squares = np.square(z[0] - z[1]).reshape(2, FEATURE_RUNS, int(m))
    return {"features": squares.sum(axis=(0, 2)) - exact.mmd2}


def _by_samples(exact: Laws, s: float, seed: int) -> dict[str, Floats]:
    return statistics(exact, int(s), SAMPLE_RUNS, seed)


def _bias(exact: Laws, s: float, seed: int) -> dict[str, Floats]:
    return statistics(exact, int(s), BIAS_RUNS, seed)


def statistics(exact: Laws, s: int, n_runs: int, seed: int) -> dict[str, Floats]:
    """Return the errors of both statistics in each run."""
    p, q = _counts(exact.graphs, s, n_runs, seed) / s
    V = np.einsum("ri,ij,rj->r", p - q, exact.K, p - q, optimize=True)
    # within a graph the U-statistic has (s^2 pKp - s) / (s (s - 1)) where the V-statistic has pKp
    own = sum(np.einsum("ri,ij,rj->r", law, exact.K, law, optimize=True) for law in (p, q))
    U = V - (2 - own) / (s - 1)
    return {"U": U - exact.mmd2, "V": V - exact.mmd2}


def _histogram(exact: Laws, eps: float, seed: int) -> dict[str, Floats]:
    """Return L1 errors of the first graph's histogram with as many samples as Theorem 4 asks for."""
    errors, table = {}, canonical_forms(SIZE).table
    for statistic in ("match_iso", "match"):
        s = graphlet_samples(SIZE, eps, DELTA, statistic)
        gaps = _counts(exact.graphs[:1], s, SAMPLE_RUNS, seed)[0] / s - exact.p
        if statistic == "match_iso":
            gaps = gaps @ np.eye(table.max() + 1)[table]
        errors[statistic] = np.abs(gaps).sum(axis=1)
    return errors


def _counts(graphs: list[Any], s: int, n_runs: int, seed: int) -> Floats:
    """Return counts of patterns in runs of s samples of each graph, shape (n_graphs, n_runs, n_patterns)."""
    codes = sample_graphlets(graphs, SIZE, s * n_runs, "uniform", seed=seed).astype(np.int64)
    n_patterns = 1 << n_pairs(SIZE)
    cells = codes + n_patterns * (np.arange(codes.shape[1]) // s)
    counts = [np.bincount(row, minlength=n_runs * n_patterns) for row in cells]
    return np.reshape(counts, (len(graphs), n_runs, n_patterns)).astype(np.float64)


def _record(name: str, statistic: str, value: float, seed: int, errors: Floats) -> Record:
    """Return the moments of the errors of one seed, from which those of all seeds follow."""
    record: Record = {"set": name, "statistic": statistic, "value": value, "seed": seed, "runs": len(errors)}
    moments = {"mean": errors, "square": errors**2, "fourth": errors**4}
    record |= {name: float(f"{np.mean(moment):.10g}") for name, moment in moments.items()}
    record["q95"] = float(f"{np.quantile(np.abs(errors), 1 - DELTA):.6g}")
    if name == "histogram":
        record["above"] = float(np.mean(errors >= value))
    return record


def pooled(records: Sequence[Record], name: str, statistic: str, value: float) -> dict[str, float]:
    """Return the moments over all seeds, and how many runs they come from."""
    where = {"set": name, "statistic": statistic, "value": value}
    found = {c: float(np.mean(values(records, c, **where))) for c in ("mean", "square", "fourth", "q95")}
    return found | {"runs": float(sum(values(records, "runs", **where)))}


def slope(axis: Sequence[float], moments: Sequence[dict[str, float]]) -> tuple[float, float]:
    """Return the slope of log RMSE on the logarithm of the axis, and its standard error."""
    x = np.log(axis)
    x -= x.mean()
    square, fourth, runs = (np.array([m[c] for m in moments]) for c in ("square", "fourth", "runs"))
    weights = x / (x @ x)
    variances = (fourth - square**2) / runs / (4 * square**2)  # of log RMSE
    return float(weights @ np.log(square) / 2), float(np.sqrt(weights**2 @ variances))


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables of all parts that were measured, and the errors beside their bounds."""
    exact, tables = laws(), []
    slopes = Table("Slope of the error of MMD²", ["error by", "slope", "standard error", "slope of the theory"])
    curves: dict[str, dict[str, list[float]]] = {}
    axes: dict[str, list[float]] = {}
    for task in TASKS:
        part = [record for record in records if record["set"] == task.name]
        if not part:
            continue
        axis = distinct(part, "value")
        if task.name in ("features", "samples"):
            table, lines = _errors(exact, part, task, axis, slopes)
            tables.append(table)
            curves[f"by {task.name} ({task.axis})"], axes[f"by {task.name} ({task.axis})"] = lines, axis
        else:
            tables.append((_bias_table if task.name == "bias" else _histogram_table)(exact, part, axis))
    if slopes.rows:
        tables.append(slopes)
    return tables, panels(curves, axes, "", "error of MMD²", columns=2, log=True) if curves else None


def _errors(
    exact: Laws, records: list[Record], task: Check, axis: list[float], slopes: Table
) -> tuple[Table, dict[str, list[float]]]:
    """Return the table and the lines of errors by features or by samples; add the slope to `slopes`."""
    by_features = task.name == "features"
    statistic, bounded = ("features", "features") if by_features else ("U", "V")
    moments = [pooled(records, task.name, statistic, value) for value in axis]
    rms = [float(np.sqrt(m["square"])) for m in moments]
    if by_features:
        theory = [float(np.sqrt(exact.feature_variance() / m)) for m in axis]
        bounds = [mmd_error(int(m), _INFINITE, DELTA) for m in axis]
    else:
        theory = [float(np.sqrt(mmd2_variance(exact.K, exact.p, exact.q, int(s)))) for s in axis]
        bounds = [mmd_error(None, int(s), DELTA) for s in axis]
    quantiles = [pooled(records, task.name, bounded, value)["q95"] for value in axis]
    columns = [task.axis, "RMSE", "RMSE by theory", "95 % quantile", "Theorem 5", "bound / quantile"]
    table = Table(f"Error of MMD² (exactly {exact.mmd2:.4f}) by {task.name}", columns)
    for value, *cells, bound in zip(axis, rms, theory, quantiles, bounds, strict=True):
        table.rows.append([value, *(f"{cell:.2e}" for cell in (*cells, bound)), f"{bound / cells[-1]:.0f}"])
    if len(axis) > 1:
        found, error = slope(axis, moments)
        expected = np.polyfit(np.log(axis), np.log(theory), 1)[0]
        slopes.rows.append([task.name, f"{found:.3f}", f"{error:.3f}", f"{expected:.3f}"])
    return table, {"RMSE": rms, "95 % quantile": quantiles, "Theorem 5": bounds}


def _bias_table(exact: Laws, records: list[Record], axis: list[float]) -> Table:
    columns = ["s", "statistic", "mean", "by theory", "difference in standard errors", "variance / derived"]
    table = Table(f"Means of both statistics, MMD² = {exact.mmd2:.4f}", columns)
    for s in axis:
        for statistic in ("V", "U"):
            m = pooled(records, "bias", statistic, s)
            bias = exact.bias(s) if statistic == "V" else 0.0
            variance = m["square"] - m["mean"] ** 2
            gap = (m["mean"] - bias) / np.sqrt(variance / m["runs"])
            ratio = variance / mmd2_variance(exact.K, exact.p, exact.q, int(s))
            means = [f"{exact.mmd2 + m['mean']:.5f}", f"{exact.mmd2 + bias:.5f}", f"{gap:.2f}"]
            table.rows.append([s, statistic, *means, f"{ratio:.3f}" if statistic == "U" else ""])
    return table


def _histogram_table(exact: Laws, records: list[Record], axis: list[float]) -> Table:
    columns = ["features", "eps", "samples", "95 % quantile of the L1 error", "eps / quantile", "runs above eps (%)"]
    table = Table("L1 error of the histogram with the samples of Theorem 4", columns)
    for statistic in distinct(records, "statistic"):
        for eps in axis:
            quantile = pooled(records, "histogram", statistic, eps)["q95"]
            above = 100 * float(np.mean(values(records, "above", statistic=statistic, value=eps)))
            s = graphlet_samples(SIZE, eps, DELTA, statistic)
            table.rows.append([statistic, f"{eps:g}", s, f"{quantile:.4f}", f"{eps / quantile:.2f}", above])
    return table
