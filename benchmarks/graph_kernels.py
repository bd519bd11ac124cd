"""Graph kernels on NCI1 against GraKeL, and NysHD from parsed graphs against a bare matrix product.

SIMILIA_DATA names the folder of data sets, SIMILIA_GRAKEL_PYTHON an interpreter that has grakel; the rival
runs there, in a process of its own, and its rows are skipped without it. Both get the same graphs and, for
the propagation kernel, the same number of terms, bin width and metric. The difference of the kernels
is printed with GraKeL's own random numbers put into our loops: it should be 0 where no node is isolated. The optimal
assignment kernel is compared on fewer graphs, as GraKeL takes 20 minutes on all. The min-max kernel is compared with
scipy's sparse product of the same counts::

    SIMILIA_DATA=... SIMILIA_GRAKEL_PYTHON=/path/to/python python benchmarks/graph_kernels.py [n_graphs]
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from measure import Rival, Row, data_folder, in_turns

import similia as sm
from similia.kernels import Intersection, MinMax, Propagation, WeisfeilerLehman
from similia.kernels.counts import count, inner_products, number_ids
from similia.kernels.propagation import bins, hash_bins, project_labels, propagated
from similia.objects import GraphBatch, read_tudataset

TERMS, WIDTH, ROUNDS = 5, 0.01, 5
MATCHED, COLOURS = 500, 4  # graphs and rounds of the optimal assignment kernel

RIVAL = """
import json, sys, time
import numpy as np, grakel
data = np.load(sys.argv[1])
terms, width, rounds = int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
matched, colours = int(sys.argv[6]), int(sys.argv[7])
indptr, indices, labels = (data[name].tolist() for name in ("indptr", "indices", "node_labels"))


def graph(start, stop):
    edges = {v - start: {u - start: 1.0 for u in indices[indptr[v]:indptr[v + 1]]} for v in range(start, stop)}
    return grakel.Graph(edges, node_labels={v - start: labels[v] for v in range(start, stop)}, graph_format="all")


def timed(kernel, n=None):
    offsets = data["node_offsets"].tolist()[: None if n is None else n + 1]
    graphs = [graph(a, b) for a, b in zip(offsets[:-1], offsets[1:])]
    start = time.perf_counter()
    K = kernel.fit_transform(graphs)
    return K, time.perf_counter() - start


wl, wl_seconds = timed(grakel.WeisfeilerLehman(n_iter=rounds, base_graph_kernel=grakel.VertexHistogram))
assignment, assignment_seconds = timed(grakel.WeisfeilerLehmanOptimalAssignment(n_iter=colours), matched)
kernel = grakel.Propagation(t_max=terms, w=width, M="TV", random_state=0)
propagation, seconds = timed(kernel)
names = sorted(kernel._enum_labels, key=kernel._enum_labels.get)
results = {"wl": wl, "propagation": propagation, "assignment": assignment}
np.savez(sys.argv[2], u=kernel._u, beta=kernel._b, names=names, **results)
seconds = {"propagation": seconds, "wl": wl_seconds, "assignment": assignment_seconds}
print(json.dumps({**seconds, "version": grakel.__version__}))
"""


def run(n_graphs: int = 4110) -> list[Row]:
    """Return speed against GraKeL on the first `n_graphs`, and the cost of NysHD on all of them.

    GraKeL's Gram matrix takes some minutes on all 4110 graphs.
    """
    folder = data_folder()
    if folder is None:
        return []
    graphs, y = read_tudataset(folder / "graphs" / "NCI1.zip")
    rival = Rival("SIMILIA_GRAKEL_PYTHON")
    rows = _against_grakel(rival, graphs[:n_graphs]) if rival else []
    return [*rows, _min_max(graphs), _nyshd(graphs, np.asarray(y))]


def _against_grakel(rival: Rival, graphs: GraphBatch) -> list[Row]:
    propagation, wl = Propagation(n_iter=TERMS - 1, bin_width=WIDTH, metric="tv"), WeisfeilerLehman(ROUNDS)
    assignment, matched = Intersection(WeisfeilerLehman(COLOURS, edge_labels=False)), graphs[:MATCHED]
    ours = in_turns(lambda: propagation(graphs), lambda: wl.features(graphs), lambda: assignment(matched))
    names = ("node_offsets", "indptr", "indices", "node_labels")
    arrays = {name: getattr(graphs, name) for name in names}
    seconds, arrays = rival.run(RIVAL, arrays, TERMS, WIDTH, ROUNDS, MATCHED, COLOURS)
    gaps = np.abs(_with_draws(graphs, **arrays) - arrays["propagation"])
    isolated = np.isin(np.arange(len(graphs)), graphs.graph_of_node[graphs.degrees == 0])
    print(f"propagation: similia {ours[0]:.4f} s, grakel {seconds['propagation']:.1f} s")
    print(f"  largest difference {gaps[~isolated][:, ~isolated].max()} over graphs without isolated nodes;")
    print(f"  {gaps.max()} with the {isolated.sum()} others (GraKeL replaces an isolated node's label by nothing)")
    gap = np.abs(wl(graphs) - arrays["wl"]).max()
    print(f"WL: similia features {ours[1]:.4f} s, grakel Gram {seconds['wl']:.2f} s, largest difference of Gram {gap}")
    gap = np.abs(assignment(matched) - arrays["assignment"]).max()
    print(f"WL-OA: similia {ours[2]:.4f} s, grakel {seconds['assignment']:.1f} s, largest difference {gap}")
    name, n = f"GraKeL {seconds['version']}", len(graphs)
    gram = f"Gram matrix of the propagation kernel, NCI1, {n} graphs, {TERMS} terms: speed"
    optimal = f"Gram matrix of the optimal assignment kernel, h = {COLOURS}, NCI1, {len(matched)} graphs: speed"
    features = f"`features()` of WL, h = {ROUNDS}, NCI1, {n} graphs: speed"
    return [
        Row(gram, f"{name} Propagation", seconds["propagation"] / ours[0], at_least=250),
        Row(features, f"{name} WeisfeilerLehman Gram matrix", seconds["wl"] / ours[1], at_least=20),
        Row(optimal, f"{name} WeisfeilerLehmanOptimalAssignment", seconds["assignment"] / ours[2], at_least=100),
    ]


def _min_max(graphs: GraphBatch) -> Row:
    """Time the Gram matrix of `MinMax` beside scipy's product of the matrix of the same counts with its transpose."""
    wl = WeisfeilerLehman(COLOURS)
    counts = wl.counted(graphs)
    distinct, columns = number_ids(counts.ids)
    A = sp.csr_array((counts.values, columns, counts.offsets), shape=(len(graphs), len(distinct)))
    B = A.T.tocsr()
    ours, product = in_turns(lambda: MinMax(wl)(graphs), lambda: A @ B)
    what = f"Gram matrix of MinMax of WL, h = {COLOURS}, NCI1, {len(graphs)} graphs: time"
    return Row(what, "scipy sparse product of the same counts, counted before", ours / product, at_most=5)


def _nyshd(graphs: GraphBatch, y: npt.NDArray) -> Row:
    """Time fit and predict of NysHD on an 80/20 split beside the sgemm of its encoding step."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 4 * len(y) // 5], order[4 * len(y) // 5 :]
    X, Z = graphs[train], graphs[test]
    vectors = np.ones((len(graphs), 300), np.float32)
    directions = np.ones((300, 10_000), np.float32)

    def fit_predict() -> None:
        model = sm.recipes.nyshd(Propagation(n_iter=TERMS - 1), n_landmarks=300, random_state=0)
        model.fit(X, y[train]).predict(Z)

    ours, product = in_turns(fit_predict, lambda: vectors @ directions)
    return Row(
        "NysHD fit + predict on NCI1, from parsed graphs: time", "sgemm 4110 x 300 x 10,000", ours / product, at_most=6
    )


def _with_draws(
    graphs: GraphBatch, u: npt.NDArray, beta: npt.NDArray, names: npt.NDArray, **_: npt.NDArray
) -> npt.NDArray[np.float64]:
    """Return our propagation kernel with the random numbers of another library."""
    order = np.argsort(names)
    rows = order[np.searchsorted(names[order], graphs.node_labels)]
    Z = propagated(graphs, project_labels(rows, u), len(u))
    ids = hash_bins(bins(Z, beta[:, None], WIDTH).view(np.uint64), len(u))
    counts = count(ids.ravel(), graphs.node_offsets * len(u))
    return inner_products(counts, counts)


if __name__ == "__main__":
    print(*run(*map(int, sys.argv[1:])), sep="\n")
