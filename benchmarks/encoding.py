"""Vectors to packed bits: `SignRandomProjection` against the bare matrix product, and its two methods compared.

    python benchmarks/encoding.py

All times are medians of calls that take turns in one process, on the same vectors.
"""

from __future__ import annotations

import numpy as np
from measure import Row, in_turns

from similia import SignRandomProjection

N_VECTORS, N_BITS = 4110, 10_000


def run() -> list[Row]:
    """Return costs of gaussian codes against the bare product, and how much faster structured ones are."""
    rows = []
    for n_features, faster in ((300, 1.0), (2048, 4.0)):
        X = np.random.default_rng(0).standard_normal((N_VECTORS, n_features), dtype=np.float32)
        P = np.random.default_rng(1).standard_normal((n_features, N_BITS), dtype=np.float32)
        prepared = np.empty((N_VECTORS, N_BITS), np.float32)
        gaussian = SignRandomProjection(N_BITS, "gaussian", random_state=0).fit(X)
        structured = SignRandomProjection(N_BITS, "structured", random_state=0).fit(X)
        product, into, ours, fast = in_turns(
            lambda X=X, P=P: X @ P,
            lambda X=X, P=P, out=prepared: np.matmul(X, P, out=out),
            lambda encode=gaussian.transform, X=X: encode(X),
            lambda encode=structured.transform, X=X: encode(X),
            rounds=15,
        )
        shape = f"{N_VECTORS} x {n_features} to {N_BITS} bits"
        rows += [
            Row(f"gaussian codes, {shape}: time", "`A @ B` in float32", ours / product, at_most=1.3),
            Row(f"gaussian codes, {shape}: time", "the same into a prepared array", ours / into),
            Row(f"structured codes, {shape}: speed", "gaussian codes", ours / fast, at_least=faster),
        ]
    codes = SignRandomProjection(N_BITS, random_state=0).fit_transform(np.eye(10))
    as_floats = codes.shape[0] * N_BITS * np.dtype(np.float32).itemsize
    return [*rows, Row("memory of codes: less", "one float32 a position (MAP)", as_floats / codes.nbytes, at_least=32)]


if __name__ == "__main__":
    print(*run(), sep="\n")
