"""Vectors to packed bits: `SignRandomProjection` against the bare matrix product, and its two methods compared.

    python benchmarks/encoding.py

All times are medians of calls that take turns in one process, on the same vectors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from similia import SignRandomProjection

N_VECTORS, N_BITS, REPETITIONS = 4110, 10_000, 7


def medians(calls: dict[str, Callable[[], object]], repetitions: int = REPETITIONS) -> dict[str, float]:
    """Median seconds of each call; a round runs all of them once, the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def seconds(n_features: int) -> dict[str, float]:
    """Time the encoders and the bare product on the same vectors."""
    X = np.random.default_rng(0).standard_normal((N_VECTORS, n_features), dtype=np.float32)
    P = np.random.default_rng(1).standard_normal((n_features, N_BITS), dtype=np.float32)
    product = np.empty((N_VECTORS, N_BITS), np.float32)
    gaussian = SignRandomProjection(N_BITS, "gaussian", random_state=0).fit(X)
    structured = SignRandomProjection(N_BITS, "structured", random_state=0).fit(X)
    return medians(
        {
            "A @ B in float32": lambda: X @ P,
            "A @ B in float32 into a prepared array": lambda: np.matmul(X, P, out=product),
            "gaussian": lambda: gaussian.transform(X),
            "structured": lambda: structured.transform(X),
        }
    )


def run() -> list[dict[str, Any]]:
    """Return one row per measure: what, rival, ratio and goal (ratios above the goal are good)."""
    rows = []
    for n_features, faster in ((300, 1.0), (2048, 4.0)):
        time_of = seconds(n_features)
        races = [("gaussian", name, 1 / 1.3) for name in time_of if name.startswith("A @ B")]
        for method, rival, goal in [*races, ("structured", "gaussian", faster)]:
            what = f"speed of {method} codes, {N_VECTORS} x {n_features} to {N_BITS} bits"
            rows.append({"what": what, "rival": rival, "ratio": time_of[rival] / time_of[method], "goal": goal})
    codes = SignRandomProjection(N_BITS, random_state=0).fit_transform(np.eye(10))
    as_floats = codes.shape[0] * N_BITS * np.dtype(np.float32).itemsize  # one float32 for each position
    return [
        *rows,
        {"what": "memory of codes", "rival": "float32 MAP", "ratio": as_floats / codes.nbytes, "goal": 32.0},
    ]


if __name__ == "__main__":
    for row in run():
        print(f"{row['what']:52s} {row['ratio']:6.2f} x {row['rival']:40s} goal {row['goal']:.2f}")
