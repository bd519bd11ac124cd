"""PCA from 5 % of the rows and 30 % of the features against scikit-learn's PCA, and the projection against sgemm.

Rows of rank 200 with noise, made from a seed, float32. Errors are measured on all rows.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Row, in_turns
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from similia.codes.generalized_nystroem import GeneralizedNystroemPCA

N, D, K = 60_000, 1584, 64
PROJECTIONS = ((60_000, 1584, 64), (4096, 12_800, 256))
STREAM = (40_000, 12_800, 256)  # rows come in chunks; the sample of 5 % is made larger than the memory allowed
MEMORY = 192  # MiB
RANK, NOISE = 200, 0.3

PEAK = """
import json, sys
import numpy as np
import similia as sm
from similia.codes.generalized_nystroem import GeneralizedNystroemPCA
n, d, k, mebibytes = map(int, sys.argv[1:])
def mebibytes_of(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024
def chunks():
    random = np.random.default_rng(0)
    axes = random.standard_normal((k + 50, d), dtype=np.float32)
    for _ in range(0, n, 1000):
        rows = random.standard_normal((1000, k + 50), dtype=np.float32) @ axes
        rows += random.standard_normal(rows.shape, dtype=np.float32)
        yield rows
small = GeneralizedNystroemPCA(k, 0.5, 0.5).fit(next(chunks()))
before = mebibytes_of("VmRSS")
with sm.config(max_memory=f"{mebibytes}MiB"):
    GeneralizedNystroemPCA(k, 0.1, 500, random_state=0).fit(chunks())
print(json.dumps(mebibytes_of("VmHWM") - before))
"""


class CountedRows:
    """Rows behind `shape` and ``__getitem__`` that count what is read."""

    def __init__(self, X: npt.NDArray) -> None:
        self._X, self.shape, self.dtype, self.rows_read = X, X.shape, X.dtype, 0

    def __getitem__(self, rows: npt.NDArray) -> npt.NDArray:
        found = self._X[rows]
        self.rows_read += len(found)
        return found


def rows_of_rank(n: int, d: int) -> npt.NDArray[np.float32]:
    """Return rows whose standard deviations along `RANK` random axes fall as i^-1/2, and noise."""
    random = np.random.default_rng(0)
    axes = (
        random.standard_normal((RANK, d), dtype=np.float32) / np.sqrt(np.arange(1, RANK + 1, dtype=np.float32))[:, None]
    )
    X = random.standard_normal((n, RANK), dtype=np.float32) @ axes
    X += NOISE * random.standard_normal((n, d), dtype=np.float32) + np.float32(1)
    return X


def run() -> list[Row]:
    """Return speeds of fit and transform, errors, rows read and the peak of memory."""
    with threadpool_limits(cpu_count()):
        return [*_fits(), *_projections(), _peak()]


def _fits() -> list[Row]:
    X = rows_of_rank(N, D)
    ours = GeneralizedNystroemPCA(K, random_state=0)
    rivals = {
        solver: PCA(K, svd_solver=solver, copy=True, random_state=0) for solver in ("covariance_eigh", "randomized")
    }
    own, *others = in_turns(lambda: ours.fit(X), *(lambda p=p: p.fit(X) for p in rivals.values()), rounds=3)
    print(f"fit: {own:.4f} s,", ", ".join(f"{s} {t:.3g} s" for s, t in zip(rivals, others, strict=True)))
    exact = rivals["covariance_eigh"]
    ours_error = ours.projection_error(X)
    total = np.square(X - exact.mean_, dtype=np.float64).sum()
    best = np.sqrt(1 - np.square(exact.singular_values_.astype(np.float64)).sum() / total)
    counted = CountedRows(X)
    GeneralizedNystroemPCA(K, random_state=0).fit(counted)
    shape = f"PCA of {N:,} x {D}, k = {K}, 5 % of rows, 30 % of features"
    goals = {"covariance_eigh": 5, "randomized": 12}
    return [
        *(
            Row(f"{shape}: speed of fit", f"scikit-learn PCA {solver}", seconds / own, at_least=goals[solver])
            for solver, seconds in zip(rivals, others, strict=True)
        ),
        Row(f"{shape}: projection error", "all rows and features", ours_error / best),
        Row(f"{shape}: rows read", "the sampled share", counted.rows_read / (0.05 * N), at_most=1.1),
    ]


def _projections() -> list[Row]:
    rows = []
    for n, d, k in PROJECTIONS:
        X = rows_of_rank(n, d)
        model = GeneralizedNystroemPCA(k, 2000, 0.3, random_state=0).fit(X)
        ours, bare = in_turns(lambda m=model, X=X: m.transform(X), lambda m=model, X=X: X @ m.components_.T, rounds=15)
        print(f"transform {n} x {d} -> {k}: {ours:.4f} s, sgemm {bare:.4f} s")
        rows.append(Row(f"transform of {n:,} x {d} to {k}: time", "the sgemm in it", ours / bare, at_most=1.2))
    return rows


def _peak() -> Row:
    """Measure a stream whose sample is larger than half of the memory allowed, in a process of its own."""
    n, d, k = STREAM
    command = [sys.executable, "-c", PEAK, *map(str, (n, d, k, MEMORY))]
    peak = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    what = f"fit of a stream of {n:,} x {d}, k = {k}, 10 % of rows, 500 features, chunks of 1000: peak of memory"
    print(f"{what}: {peak:.4g} MiB, of which three chunks are {3 * 1000 * d * 4 / 2**20:.3g}")
    return Row(what, f"max_memory = {MEMORY} MiB", peak / MEMORY)


if __name__ == "__main__":
    print(*run(), sep="\n")
