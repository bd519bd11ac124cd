"""Graphlet sampling against GraKeL, against maps applied sample by sample, and against the latency of memory.

SIMILIA_DATA names the folder of data sets, SIMILIA_GRAKEL_PYTHON an interpreter that has grakel; rows that need
them are skipped without. Sample by sample, ten of the 300 graphs are embedded and their time is scaled: it is linear
in the graphs, and all take a minute::

    SIMILIA_DATA=... SIMILIA_GRAKEL_PYTHON=/path/to/python python benchmarks/graphlets.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Rival, Row, data_folder, in_turns
from threadpoolctl import threadpool_limits

from experiments._graphlets import block_model
from experiments.graphlet_cost import sample_by_sample
from similia.core import config as _threads
from similia.core.jit import njit
from similia.embeddings import GraphletSampling, OpticalRandomFeatures
from similia.embeddings.graphlets import histograms, n_pairs
from similia.kernels.graphs import Graphlet
from similia.objects import GraphBatch, read_tudataset
from similia.objects.graphlets import sample_graphlets, second_moments, unpack_graphlets

SIZE, N_GRAPHS, N_SAMPLES, N_FEATURES = 6, 300, 2000, 5000
PART = 10  # graphs embedded sample by sample
COUNTS = (500, 1000, 2000, 5000, 10_000)
GRAKEL_SAMPLES = {"MUTAG": 2000, "ENZYMES": 1000}  # of each graph: GraKeL takes half a minute and more for them
GRAKEL_SIZE, WANTED_RATE = 5, 8e6
MEMORY = 256  # MiB
CACHES = {"L1": 2**14, "L2": 2**19, "RAM": 2**28}  # bytes that a pointer is chased through
N_WALKS, FLYBACK = 4000, 0.15

RIVAL = """
import json, sys, time
import numpy as np, grakel
data = np.load(sys.argv[1])
k, n_samples = int(sys.argv[3]), int(sys.argv[4])
graphs = []
for first, last in zip(data["node_offsets"][:-1], data["node_offsets"][1:]):
    A = np.zeros((last - first, last - first))
    for v in range(first, last):
        A[v - first, data["indices"][data["indptr"][v]:data["indptr"][v + 1]] - first] = 1
    graphs.append(grakel.Graph(A))
start = time.perf_counter()
K = grakel.GraphletSampling(k=k, sampling={"n_samples": n_samples}, random_state=0).fit_transform(graphs)
seconds = time.perf_counter() - start
np.savez(sys.argv[2], K=K)
print(json.dumps({"seconds": seconds, "version": grakel.__version__}))
"""

PEAK = r"""
import json, re, sys
from pathlib import Path
import numpy as np
import similia as sm
from experiments._graphlets import block_model


def mebibytes_of(name):
    return int(re.search(name + r":\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


size, n_graphs, n_samples, m, mebibytes = map(int, sys.argv[1:])
graphs, _ = block_model(n_graphs, np.random.default_rng(0))
embedding = sm.GraphletSampling(size, n_samples, features="gaussian", n_components=m, random_state=0).fit(graphs[:2])
embedding.transform(graphs[:2])
before = mebibytes_of("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the highest so far is forgotten
with sm.config(max_memory=f"{mebibytes}MiB"):
    Z = embedding.transform(graphs)
print(json.dumps(mebibytes_of("VmHWM") - before - Z.nbytes / 2**20))
"""


def run() -> list[Row]:
    """Return speeds, errors, memory, and the rate of sampling beside the latency of memory."""
    graphs, _ = block_model(N_GRAPHS, np.random.default_rng(0))
    with threadpool_limits(cpu_count()):
        rows = [*_optical(graphs), *_gaussian(graphs)]
    with threadpool_limits(1):  # products of some milliseconds, between which threads of BLAS would spin
        rows += _against_features(graphs)
    folder = data_folder()
    return [*rows, *(_against_grakel(folder) if folder else []), *_rates(graphs, folder)]


def _shape(features: str) -> str:
    return f"{features}, s = {N_SAMPLES}, k = {SIZE}, m = {N_FEATURES}, {N_GRAPHS} SBM graphs, after sampling"


def _optical(graphs: GraphBatch) -> list[Row]:
    """Compare second moments with |W a|^2 of each sample."""
    phi = OpticalRandomFeatures(N_FEATURES, random_state=0)
    embedding = GraphletSampling(SIZE, N_SAMPLES, features=phi, random_state=0).fit(graphs)
    weights = phi.fit(np.zeros((1, n_pairs(SIZE)))).weights_
    parts = np.stack([weights.real, weights.imag]).astype(np.float32)
    codes = sample_graphlets(graphs, SIZE, N_SAMPLES, seed=embedding.seed_)
    ours, naive = in_turns(lambda: embedding.map_.means(codes), lambda: sample_by_sample(codes[:PART], SIZE, parts))
    naive *= len(codes) / PART
    gap = np.abs(embedding.map_.means(codes[:PART]) / sample_by_sample(codes[:PART], SIZE, parts) - 1).max()
    print(f"optical: {ours:.4f} s, sample by sample {naive:.3g} s")
    return [
        Row(f"{_shape('optical')}: speed", "sample by sample through BLAS", naive / ours, at_least=300),
        Row(f"{_shape('optical')}: relative difference", "the same", float(gap), at_most=1e-5),
    ]


def _gaussian(graphs: GraphBatch) -> list[Row]:
    """Compare one wave for each distinct pattern with one for each sample."""
    embedding = GraphletSampling(SIZE, N_SAMPLES, features="gaussian", n_components=N_FEATURES, random_state=0)
    codes = sample_graphlets(graphs, SIZE, N_SAMPLES, seed=embedding.fit(graphs).seed_)
    waves = embedding.map_
    frequencies, phases = waves.frequencies.astype(np.float32), waves.phases.astype(np.float32)

    def sample_by_sample() -> npt.NDArray[np.float32]:
        out = np.empty((PART, N_FEATURES), dtype=np.float32)
        for i, row in enumerate(codes[:PART]):
            angles = unpack_graphlets(row, SIZE).astype(np.float32) @ frequencies
            angles += phases
            out[i] = np.cos(angles, out=angles).mean(axis=0)
        return out * np.float32(np.sqrt(2 / N_FEATURES))

    ours, naive = in_turns(lambda: waves.means(codes), sample_by_sample)
    naive *= len(codes) / PART
    repeats = codes.size / len(histograms(codes, n_pairs(SIZE)).codes)
    gap = np.abs(waves.means(codes[:PART]) - sample_by_sample()).max() * np.sqrt(N_FEATURES / 2)
    print(f"gaussian: {ours:.4f} s, sample by sample {naive:.3g} s: {naive / ours:.3g} x, ", end="")
    print(f"samples per distinct pattern {repeats:.3g}, largest difference of mean cosines {gap:.2g}")
    arguments = map(str, (SIZE, N_GRAPHS, N_SAMPLES, N_FEATURES, MEMORY))
    peak = json.loads(subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, check=True).stdout)
    print(f"gaussian: sampling and map take {peak:.3g} MiB beside the output with max_memory={MEMORY}MiB")
    speed = Row(
        f"{_shape('gaussian')}: speed against sample by sample",
        f"samples per distinct pattern ({repeats:.3g})",
        naive / ours / repeats,
        at_least=0.7,
    )
    return [speed, Row("the same: peak of memory", f"max_memory = {MEMORY} MiB", peak / MEMORY, at_most=1)]


def _against_features(graphs: GraphBatch) -> list[Row]:
    """Time the optical embedding against m; the product goes to one small array over and over."""
    embedding = GraphletSampling(SIZE, N_SAMPLES, n_components=COUNTS[-1], random_state=0).fit(graphs)
    tiles = [
        np.ascontiguousarray(embedding.map_.matrix[:, start : start + COUNTS[0]])
        for start in range(0, COUNTS[-1], COUNTS[0])
    ]
    room = np.empty((len(graphs), COUNTS[0]), dtype=np.float32)

    def sample() -> npt.NDArray[np.uint64]:
        return sample_graphlets(graphs, SIZE, N_SAMPLES, seed=embedding.seed_)

    def product(moments: npt.NDArray, m: int) -> None:
        for tile in tiles[: m // COUNTS[0]]:
            np.matmul(moments, tile, out=room)

    codes = sample()
    moments = second_moments(codes, SIZE).astype(np.float32)
    sampling, table, *products = in_turns(
        sample, lambda: second_moments(codes, SIZE), *(lambda m=m: product(moments, m) for m in COUNTS)
    )
    print(f"optical against m: sampling {sampling:.4f} s, table {table:.4f} s, product", end=" ")
    print(", ".join(f"{m}: {seconds:.5f} s" for m, seconds in zip(COUNTS, products, strict=True)))

    def whole(m: int) -> None:
        product(second_moments(sample(), SIZE).astype(np.float32), m)

    least, most = in_turns(lambda: whole(COUNTS[0]), lambda: whole(COUNTS[-1]), rounds=15)
    few = GraphletSampling(SIZE, N_SAMPLES, n_components=COUNTS[0], random_state=0).fit(graphs)
    written = in_turns(lambda: few.transform(graphs), lambda: embedding.transform(graphs))
    shape = f"optical, {N_GRAPHS} SBM graphs, s = {N_SAMPLES}, m = {COUNTS[-1]:,}"
    return [
        Row(f"{shape}: time without writing the output", f"m = {COUNTS[0]}", most / least, at_most=1.2),
        Row(f"{shape}: time of transform", f"m = {COUNTS[0]}", written[1] / written[0]),
    ]


def _against_grakel(folder: Path) -> list[Row]:
    """Time the Gram matrix of sampled graphlets of five nodes; both draw nodes uniformly."""
    rival = Rival("SIMILIA_GRAKEL_PYTHON")
    rows = []
    for name, n_samples in GRAKEL_SAMPLES.items() if rival else ():
        graphs = read_tudataset(folder / "graphs" / f"{name}.zip")[0]
        kernel = Graphlet(GRAKEL_SIZE, n_samples=n_samples)
        (ours,) = in_turns(lambda kernel=kernel, graphs=graphs: kernel(graphs))
        arrays = {name: getattr(graphs, name) for name in ("node_offsets", "indptr", "indices")}
        seconds, _ = rival.run(RIVAL, arrays, GRAKEL_SIZE, n_samples)
        rate = len(graphs) * n_samples / np.array([ours, seconds["seconds"]])
        print(f"{name}: {rate[0]:.3g} graphlets/s, GraKeL {rate[1]:.3g}, Gram matrix included")
        what = f"Gram matrix of {n_samples} graphlets (k = {GRAKEL_SIZE}) of each graph, {name}: speed"
        rows.append(Row(what, f"GraKeL {seconds['version']} GraphletSampling", rate[0] / rate[1], at_least=1000))
    return rows


def _rates(graphs: GraphBatch, folder: Path | None) -> list[Row]:
    """Return graphlets a second beside the goal, the second core's gain, and the time that loads wait."""
    latency = {name: _latency(size) for name, size in CACHES.items()}
    print("latency of a load:", ", ".join(f"{name} {1e9 * seconds:.3g} ns" for name, seconds in latency.items()))
    sets = {"SBM": graphs}
    if folder:
        sets["REDDIT-BINARY"] = read_tudataset(folder / "graphs" / "REDDIT-BINARY.zip")[0]
    rows = []
    for name, batch in sets.items():

        def draw(batch: GraphBatch = batch) -> None:
            sample_graphlets(batch, SIZE, N_SAMPLES, flyback=FLYBACK)

        def on_one_core(draw=draw) -> None:
            with patch.object(_threads, "cpu_count", return_value=1):
                draw()

        all_cores, one = (len(batch) * N_SAMPLES / s for s in in_turns(draw, on_one_core))
        steps = _steps(batch)
        loads = 1 + 2 * steps  # the start; at each step where the arcs of a node begin, then its neighbour
        print(f"{name}: {all_cores:.3g} graphlets/s on {cpu_count()} cores, {one:.3g} on one; {steps:.3g} steps and")
        waits = ", ".join(f"{cache} {one * loads * seconds:.3g}" for cache, seconds in latency.items())
        print(f"  {loads:.3g} dependent loads a graphlet: their latency, over the time of a graphlet: {waits}")
        what = f"graphlets/s, random walks, k = {SIZE}, {name}"
        rows += [
            Row(f"{what}, {cpu_count()} cores", f"{WANTED_RATE / 1e6:g} million", all_cores / WANTED_RATE, at_least=1),
            Row(f"{what}, {cpu_count()} cores", "one core", all_cores / one),
            Row(
                f"{what}, one core",
                f"random loads/s from RAM over {loads:.3g} a graphlet",
                one * loads * latency["RAM"],
            ),
            Row(f"{what}, one core", f"dependent loads/s from L1 over {loads:.3g}", one * loads * latency["L1"]),
        ]
    return rows


def _latency(n_bytes: int) -> float:
    """Return the seconds of a load whose address is the value of the load before."""
    order = np.random.default_rng(0).permutation(n_bytes // 64)
    following = np.zeros(8 * len(order), dtype=np.int64)  # one address in each cache line
    following[8 * order] = 8 * np.roll(order, -1)
    n_loads = 1_000_000
    return in_turns(lambda: _chase(following, n_loads))[0] / n_loads


@njit()
def _chase(following, n_loads):  # type: ignore[no-untyped-def]
    place = 0
    for _ in range(n_loads):
        place = following[place]
    return place


def _steps(graphs: GraphBatch) -> float:
    """Return the mean number of steps of a walk until it has seen `SIZE` nodes, walked the plain way."""
    random, taken = np.random.default_rng(0), []
    while len(taken) < N_WALKS:
        g = random.integers(len(graphs))
        first, last = graphs.node_offsets[g : g + 2]
        start = node = int(random.integers(first, last))
        seen, steps = {start}, 0
        while len(seen) < SIZE and steps < 1000:  # a walk from a small component is left out
            arcs = graphs.indices[graphs.indptr[node] : graphs.indptr[node + 1]]
            if not len(arcs):
                break
            node = start if random.random() < FLYBACK else int(random.choice(arcs))
            seen.add(node)
            steps += 1
        taken += [steps] if len(seen) == SIZE else []
    return float(np.mean(taken))


if __name__ == "__main__":
    print(*run(), sep="\n")
