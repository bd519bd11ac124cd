"""Random features of the heat kernel against scikit-learn's random Fourier features: time and error.

Both get the same unit rows; 100,000 of them in parts, so that inputs and outputs stay below 1 GB.
"""

from __future__ import annotations

import numpy as np
from joblib import cpu_count
from measure import Row, in_turns
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from similia.embeddings.heat_features import HeatRandomFeatures
from similia.kernels.heat import HypersphericalHeat

N_ROWS, N_FEATURES, N_COMPONENTS, CONTRAST = 100_000, 1000, 2000, 4.0
PART = 20_000  # rows held at a time
N_SEEDS, N_COMPARED = 5, 200  # of the comparison of errors


def run(n_rows: int = N_ROWS, rounds: int = 3) -> list[Row]:
    """Return the times of `transform` and the errors of Gram matrices."""
    with threadpool_limits(cpu_count()):
        return [*_times(np.float32, n_rows, rounds), *_times(np.float64, n_rows, rounds), _errors()]


def _times(dtype: type, n_rows: int, rounds: int) -> list[Row]:
    X = _unit_rows(min(PART, n_rows)).astype(dtype)
    ours = HeatRandomFeatures(N_COMPONENTS, CONTRAST, mapping=None, random_state=0).fit(X)
    rival = RBFSampler(gamma=CONTRAST / 2, n_components=N_COMPONENTS, random_state=0).fit(X)
    n_parts = -(-n_rows // len(X))

    def repeatedly(embedding: HeatRandomFeatures | RBFSampler) -> None:
        for _ in range(n_parts):
            embedding.transform(X)

    taken = in_turns(lambda: repeatedly(ours), lambda: repeatedly(rival), rounds=rounds)
    print(f"{n_parts * len(X)} rows, {dtype.__name__}: {taken[0]:.3g} s, RBFSampler {taken[1]:.3g} s")
    what = f"{n_parts * len(X):,} x {N_FEATURES} to {N_COMPONENTS} features, {dtype.__name__}: time"
    return [Row(what, "scikit-learn RBFSampler, same rows", taken[0] / taken[1], at_most=3)]


def _errors() -> Row:
    """Compare root mean square errors, each to the kernel it estimates."""
    X = _unit_rows(N_COMPARED)
    kernels = HypersphericalHeat(CONTRAST, mapping=None)(X), np.exp(-CONTRAST * (1 - X @ X.T))
    squares = np.zeros(2)
    for seed in range(N_SEEDS):
        embeddings = (
            HeatRandomFeatures(N_COMPONENTS, CONTRAST, mapping=None, random_state=seed),
            RBFSampler(gamma=CONTRAST / 2, n_components=N_COMPONENTS, random_state=seed),
        )
        for i, (embedding, K) in enumerate(zip(embeddings, kernels, strict=True)):
            Z = embedding.fit_transform(X)
            squares[i] += np.mean((Z @ Z.T - K) ** 2) / N_SEEDS
    errors = np.sqrt(squares)
    print(f"error of the Gram matrix of {N_COMPARED} rows: {errors[0]:.3g}, RBFSampler {errors[1]:.3g}")
    return Row(f"error of a Gram matrix, {N_COMPONENTS} features", "RBFSampler to its kernel", errors[0] / errors[1])


def _unit_rows(n: int) -> np.ndarray:
    """Return square roots of random compositions."""
    return np.sqrt(np.random.default_rng(0).dirichlet(np.ones(N_FEATURES), n))


if __name__ == "__main__":
    print(*run(), sep="\n")
