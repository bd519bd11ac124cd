"""GSA-phi, Table 3.1 measured: seconds of each map against the size of graphlets and the number of features."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._figures import panels
from experiments._graphlets import block_model
from experiments._report import Record, Table, values
from similia.embeddings import GraphletSampling
from similia.embeddings.graphlets import histograms, n_pairs
from similia.objects import GraphBatch
from similia.objects.graphlets import count_patterns, sample_graphlets, second_moments, unpack_graphlets

N_GRAPHS, N_SAMPLES, SIZE, N_FEATURES = 300, 2000, 6, 5000
ROUNDS = 3
NAIVE_GRAPHS = 10  # sample by sample takes minutes: it gets so many graphs, its time is scaled
NAIVE = "optical, sample by sample"


@dataclass(frozen=True)
class Axis:
    """One axis of the experiment: its values, and the maps that depend on it."""

    name: str
    values: tuple[int, ...]
    methods: tuple[str, ...]


RANDOM_MAPS = ("gaussian", "gaussian_eig", "optical", NAIVE)
TASKS = (
    Axis("size", (3, 4, 5, 6, 7), ("match", "match_iso", *RANDOM_MAPS)),
    Axis("features", (500, 1000, 2000, 5000, 10_000), RANDOM_MAPS),
)
PARTS = ("sampling", "table", "map")
TITLE = "GSA-phi: what each map costs"
TEXT = f"""
Seconds for {N_GRAPHS} graphs of the stochastic block model, {N_SAMPLES} graphlets of each by random walks; unless it is
the axis, size is {SIZE} and the number of features {N_FEATURES}. *sampling* draws the graphlets, *table* counts their
patterns (for optical features: their second moments), *map* is the rest: the features of the distinct patterns and
their means, one matrix product for optical features. *{NAIVE}* is the plain way, |W a|² of every graphlet through
BLAS in blocks, here of {NAIVE_GRAPHS} graphs, its time scaled to all. Seconds are medians, over seeds, of medians of
{ROUNDS} runs; slopes are of log seconds of table and map together on the logarithm of the axis. The paper's Table 3.1
has the cost of one graphlet: O(m k²) for Gaussian features, O(m k + k³) for those of eigenvalues, O(1) on an optical
device, and the number of classes times an isomorphism test for matching.
"""


def measure(task: Axis, seeds: int) -> list[Record]:
    """Time every map at every value of the axis, with every seed."""
    records = []
    for seed in range(seeds):
        graphs, _ = block_model(N_GRAPHS, np.random.default_rng(seed))
        for value in task.values:
            size, m = (value, N_FEATURES) if task.name == "size" else (SIZE, value)
            for method in task.methods:
                seconds = np.median([_seconds(graphs, method, size, m, seed) for _ in range(ROUNDS + 1)][1:], axis=0)
                record: Record = {"set": task.name, "method": method, "value": value, "seed": seed}
                records.append(record | {part: float(f"{s:.4g}") for part, s in zip(PARTS, seconds, strict=True)})
    return records


def _seconds(graphs: GraphBatch, method: str, size: int, m: int, seed: int) -> tuple[float, float, float]:
    """Return the seconds of sampling, table and map; the features are drawn before."""
    features = "optical" if method == NAIVE else method
    embedding = GraphletSampling(size, N_SAMPLES, features=features, n_components=m, random_state=seed).fit(graphs)
    sampling, codes = _timed(lambda: sample_graphlets(graphs, size, N_SAMPLES, seed=embedding.seed_))
    if method == NAIVE:
        weights = np.random.default_rng(seed).standard_normal((2, n_pairs(size), m)).astype(np.float32)
        part = codes[:NAIVE_GRAPHS]
        return sampling, 0.0, _timed(lambda: sample_by_sample(part, size, weights))[0] * len(codes) / len(part)
    table = _timed(lambda: _table(method, codes, size))[0]
    return sampling, table, max(_timed(lambda: embedding.map_.means(codes))[0] - table, 0.0)


def _table(method: str, codes: npt.NDArray[np.uint64], size: int) -> Any:
    if method == "optical":
        return second_moments(codes, size)
    return count_patterns(codes) if method.startswith("match") else histograms(codes, n_pairs(size))


def sample_by_sample(
    codes: npt.NDArray[np.uint64], size: int, weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the mean of |W a|^2 / sqrt(m), one block of BLAS for each graph; `weights` are real and imaginary parts.

    Parameters
    ----------
    codes : ndarray of uint64, shape (n_graphs, s)
    size : int
    weights : ndarray of float32, shape (2, D, m)

    Returns
    -------
    ndarray of float32, shape (n_graphs, m)
    """
    m = weights.shape[2]
    out = np.empty((len(codes), m), dtype=np.float32)
    for i, row in enumerate(codes):
        bits = unpack_graphlets(row, size).astype(np.float32)
        real, imag = bits @ weights[0], bits @ weights[1]
        real *= real
        imag *= imag
        real += imag
        out[i] = real.mean(axis=0) / np.sqrt(np.float32(m))
    return out


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return one table and one panel for each axis."""
    tables: list[Table] = []
    curves: dict[str, dict[str, list[float]]] = {}
    axes: dict[str, list[float]] = {}
    for task in TASKS:
        axis = [v for v in task.values if values(records, "seed", set=task.name, value=v)]
        if not axis:
            continue
        table = Table(
            f"Seconds against {task.name}: sampling + table + map", ["map", *map(str, axis), "slope of table and map"]
        )
        title = f"against {'size k' if task.name == 'size' else 'features m'}"
        axes[title], curves[title] = list(axis), {}
        for method in RANDOM_MAPS if task.name == "features" else task.methods:
            where = {"set": task.name, "method": method}
            seconds = np.array(
                [[np.median(values(records, part, value=v, **where)) for part in PARTS] for v in axis]
            )  # (n_values, 3)
            cost = np.maximum(seconds[:, 1:].sum(axis=1), 1e-6)
            slope = np.polyfit(np.log(axis), np.log(cost), 1)[0] if len(axis) > 1 else np.nan
            cells = (" + ".join(f"{s:.3f}" if s < 10 else f"{s:.1f}" for s in row) for row in seconds)
            table.rows.append([method, *cells, f"{slope:.2f}"])
            curves[title][method] = cost.tolist()
        tables.append(table)
    return tables, panels(curves, axes, "", "seconds of table and map", columns=2, log=True)
