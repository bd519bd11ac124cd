"""The modified Hausdorff distance from sets of SIFT descriptors to random sets, against a loop over pairs.

625 sets of at most 64 descriptors (SIMILIA_DATA names the folder of data sets) to 512 sets of 3 to 15 points on the
unit sphere, float32. The rival makes one BLAS product for each pair, from norms computed before, and takes minima and
means with numpy; it gets a tenth of the sets, and its time is multiplied::

    SIMILIA_DATA=... python benchmarks/set_distances.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from measure import Row, data_folder, in_turns
from threadpoolctl import threadpool_limits

from similia.distances import ModifiedHausdorff
from similia.objects import SetBatch

N_SETS, LARGEST, N_RANDOM, PART = 625, 64, 512, 10


def run() -> list[Row]:
    """Return the speed against a loop over pairs, the cost beside the bare product, and the gain by a second core."""
    folder = data_folder()
    if folder is None:
        return []
    X, Y = _descriptors(folder / "sets" / "style_sift.npz"), _random_sets(128)
    few, distance = X[: len(X) // PART], ModifiedHausdorff()
    rival = _PairLoop(few, Y)

    def one_thread() -> None:
        with threadpool_limits(1):
            distance(X, Y)

    ours, alone, loop = in_turns(lambda: distance(X, Y), one_thread, rival, rounds=5)
    (product,) = in_turns(lambda: X.values @ Y.values.T)  # apart: idle threads of BLAS spin on the second core
    error = np.abs(distance(few, Y) / rival() - 1).max()
    print(f"similia {ours:.3f} s, one thread {alone:.3f} s, pair loop {PART * loop:.2f} s, sgemm {product:.3f} s")
    print(f"largest relative difference {error:.1e}; {len(X.values)} x {len(Y.values)} points")
    what = f"ModifiedHausdorff, {N_SETS} sets of SIFT to {N_RANDOM} random sets, float32"
    return [
        Row(f"{what}: speed", "numpy and BLAS, a loop over pairs", PART * loop / ours, at_least=20),
        Row(f"{what}: time", "sgemm of all points of the sets", ours / product, at_most=1.5),
        Row(f"{what}: all cores", "one core", alone / ours, at_least=1.8),
    ]


class _PairLoop:
    """The distances by one product for each pair; norms are computed once."""

    def __init__(self, X: SetBatch, Y: SetBatch) -> None:
        self.X = [(x, (x * x).sum(axis=1)[:, None]) for x in X]
        self.Y = [(y.T, (y * y).sum(axis=1)) for y in Y]

    def __call__(self) -> np.ndarray:
        return np.array([[self.pair(*x, *y) for y in self.Y] for x in self.X])

    @staticmethod
    def pair(x: np.ndarray, x_squares: np.ndarray, y: np.ndarray, y_squares: np.ndarray) -> float:
        d = x @ y
        d *= -2
        d += x_squares
        d += y_squares
        there, back = (np.sqrt(np.maximum(d.min(axis=axis), 0)).mean() for axis in (1, 0))
        return max(there, back)


def _descriptors(path: Path) -> SetBatch:
    data = np.load(path)
    values = data["values"].astype(np.float32) / 512
    ends = np.cumsum(data["lengths"])
    sets = [values[end - n : end][:LARGEST] for end, n in zip(ends, data["lengths"], strict=True) if n]
    return SetBatch.from_arrays(sets[:N_SETS])


def _random_sets(p: int) -> SetBatch:
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((size, p)) for size in rng.integers(3, 16, N_RANDOM)]
    return SetBatch.from_arrays([(v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32) for v in sets])


if __name__ == "__main__":
    print(*run(), sep="\n")
