"""NGramEncoder and GraphHDEncoder against torchhd's encodings, object by object as in its examples.

Strings and graphs are random, of the sizes of SMS messages and of NCI1. SIMILIA_TORCHHD_PYTHON names an
interpreter that has torch and torchhd (``pip install torch-hd``); the rival runs there, on a share of the
objects, and the rows are skipped without it::

    SIMILIA_TORCHHD_PYTHON=/path/to/python python benchmarks/hypervectors.py
"""

from __future__ import annotations

import numpy as np
from measure import Rival, Row, in_turns

from similia import GraphHDEncoder, NGramEncoder
from similia.objects import GraphBatch, StringBatch

N_BITS, N_STRINGS, LENGTH, N_GRAPHS, N_NODES = 10_000, 5574, 80, 4110, 30
SHARE = 200  # objects that the rival encodes

RIVAL = """
import json, sys, time
import numpy as np, torch, torchhd
data, n_bits = np.load(sys.argv[1]), int(sys.argv[3])
torch.set_grad_enabled(False)
letters, ranks = torchhd.random(128, n_bits), torchhd.random(64, n_bits)
strings = [torch.from_numpy(row.astype(np.int64)) for row in data["strings"]]
edges = [torch.from_numpy(pairs) for pairs in data["edges"]]


def seconds(encode, objects):
    start = time.perf_counter()
    for x in objects:
        encode(x)
    return time.perf_counter() - start


def best(encode, objects):
    times = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        encode(objects[0])
        times.append(seconds(encode, objects))
    return min(times)


print(json.dumps({
    "strings": best(lambda s: torchhd.hard_quantize(torchhd.ngrams(letters[s], n=3)), strings),
    "graphs": best(lambda e: torchhd.hard_quantize(
        torchhd.multiset(torchhd.bind(ranks[e[:, 0]], ranks[e[:, 1]]))), edges),
    "version": torchhd.__version__,
}))
"""


def run() -> list[Row]:
    """Return how much faster (the rival gets the ranks of nodes for free and encodes a share of the objects)."""
    rival = Rival("SIMILIA_TORCHHD_PYTHON")
    if not rival:
        return []
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, size=(N_STRINGS, LENGTH)).astype(np.uint8)
    strings = StringBatch(letters.ravel(), np.arange(N_STRINGS + 1, dtype=np.int64) * LENGTH)
    edges = np.stack([rng.permutation(N_NODES) for _ in range(N_GRAPHS)])
    edges = np.stack([edges, np.roll(edges, 1, axis=1)], axis=2)  # rings, nodes in random order
    graphs = _batch(edges)
    theirs, _ = rival.run(RIVAL, {"strings": letters[:SHARE], "edges": edges[:SHARE]}, N_BITS)
    multiply, add = (NGramEncoder(3, N_BITS, binding, random_state=0).fit(strings) for binding in ("multiply", "add"))
    by_rank = GraphHDEncoder(N_BITS, random_state=0).fit(graphs)
    seconds = in_turns(
        lambda: multiply.transform(strings), lambda: add.transform(strings), lambda: by_rank.transform(graphs)
    )
    name = f"torchhd {theirs['version']}"
    ngrams, edges_only = theirs["strings"] / SHARE * N_STRINGS, theirs["graphs"] / SHARE * N_GRAPHS
    text, rings = f"{N_STRINGS} x {LENGTH} letters", f"{N_GRAPHS} graphs of {N_NODES} edges"
    return [
        Row(f"NGramEncoder, n = 3, multiply, {text}: speed", f"{name} ngrams", ngrams / seconds[0]),
        Row(f"NGramEncoder, n = 3, add, {text}: speed", f"{name} ngrams (multiply)", ngrams / seconds[1]),
        Row(f"GraphHDEncoder, {rings}: speed", f"{name} bind + multiset, no PageRank", edges_only / seconds[2]),
    ]


def _batch(edges: np.ndarray) -> GraphBatch:
    shifted = edges + N_NODES * np.arange(N_GRAPHS)[:, None, None]
    arcs = np.concatenate([shifted.reshape(-1, 2), shifted.reshape(-1, 2)[:, ::-1]]).T
    return GraphBatch.from_arrays(np.arange(N_GRAPHS + 1, dtype=np.int64) * N_NODES, arcs)


if __name__ == "__main__":
    print(*run(), sep="\n")
