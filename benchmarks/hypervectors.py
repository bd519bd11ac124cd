"""NGramEncoder and GraphHDEncoder against the same encodings in torchhd, object by object as its examples do.

Strings and graphs are random, of the sizes of SMS messages and of NCI1. SIMILIA_TORCHHD_PYTHON names an
interpreter that has torch and torchhd (``pip install torch-hd``); the rival runs there, on a share of the
objects, and the rows are skipped without it::

    SIMILIA_TORCHHD_PYTHON=/path/to/python python benchmarks/hypervectors.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from similia import GraphHDEncoder, NGramEncoder
from similia.objects import GraphBatch, StringBatch

N_BITS, N_STRINGS, LENGTH, N_GRAPHS, N_NODES = 10_000, 5574, 80, 4110, 30
SHARE = 200  # objects that the rival encodes

RIVAL = """
import json, sys, time
import numpy as np, torch, torchhd
data, n_bits = np.load(sys.argv[1]), int(sys.argv[2])
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


def run() -> list[dict[str, Any]]:
    """Return one row per measure: what, rival and ratio of times (the rival gets the ranks of nodes for free)."""
    interpreter = os.environ.get("SIMILIA_TORCHHD_PYTHON")
    if not interpreter:
        print("skipped: set SIMILIA_TORCHHD_PYTHON to an interpreter that has torchhd")
        return []
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, size=(N_STRINGS, LENGTH)).astype(np.uint8)
    strings = StringBatch(letters.ravel(), np.arange(N_STRINGS + 1, dtype=np.int64) * LENGTH)
    edges = np.stack([rng.permutation(N_NODES) for _ in range(N_GRAPHS)])
    edges = np.stack([edges, np.roll(edges, 1, axis=1)], axis=2)  # rings, nodes in random order
    rival = _run_rival(interpreter, letters[:SHARE], edges[:SHARE])
    name = f"torchhd {rival['version']}"
    rows = []
    for binding in ("multiply", "add"):
        seconds = _median(NGramEncoder(3, N_BITS, binding, random_state=0).fit(strings).transform, strings)
        rows.append(_row(f"NGramEncoder, n = 3, {binding}, {N_STRINGS} x {LENGTH} letters", seconds, N_STRINGS,
                         f"{name} ngrams (multiply)", rival["strings"]))  # fmt: skip
    graphs = _batch(edges)
    seconds = _median(GraphHDEncoder(N_BITS, random_state=0).fit(graphs).transform, graphs)
    rows.append(_row(f"GraphHDEncoder, {N_GRAPHS} graphs of {N_NODES} edges", seconds, N_GRAPHS,
                     f"{name} bind + multiset without PageRank", rival["graphs"]))  # fmt: skip
    return rows


def _row(what: str, seconds: float, n: int, name: str, rival: float) -> dict[str, Any]:
    print(f"{what}: {seconds:.3f} s, {name}: {rival / SHARE * n:.1f} s (from {SHARE} objects)")
    return {"what": what, "rival": name, "ratio": rival / SHARE * n / seconds}


def _batch(edges: np.ndarray) -> GraphBatch:
    shifted = edges + N_NODES * np.arange(N_GRAPHS)[:, None, None]
    arcs = np.concatenate([shifted.reshape(-1, 2), shifted.reshape(-1, 2)[:, ::-1]]).T
    return GraphBatch.from_arrays(np.arange(N_GRAPHS + 1, dtype=np.int64) * N_NODES, arcs)


def _median(encode: Callable[[Any], Any], X: Any) -> float:
    encode(X)  # compile
    times = []
    for _ in range(5):
        start = time.perf_counter()
        encode(X)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _run_rival(interpreter: str, letters: np.ndarray, edges: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.npz"
        np.savez(path, strings=letters, edges=edges)
        command = [interpreter, "-c", RIVAL, str(path), str(N_BITS)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"the rival failed:\n{result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


if __name__ == "__main__":
    for row in run():
        print(f"{row['what']}: {row['ratio']:.0f} x {row['rival']}")
