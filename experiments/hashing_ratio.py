"""Generalised Nyström hashing, Figure 2: mAP and seconds against the shares of samples and features; Theorem 2."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from experiments._figures import panels
from experiments._hashing import (
    FEATURES,
    N_QUERIES,
    PICTURES,
    SAMPLES,
    TRUTHS,
    PictureSet,
    Split,
    itq,
    load,
    mean_average_precision,
    split,
)
from experiments._report import Record, Table, distinct, values
from experiments.hashing_map import TRUTH_NAMES, three_decimals
from similia.codes import GeneralizedNystroemPCA
from similia.codes.generalized_nystroem import ceil_share
from similia.core.config import track

Floats = npt.NDArray[np.float64]

BITS = (64, 256)
SAMPLE_SHARES, FEATURE_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2), (0.1, 0.2, 0.3, 0.5, 1.0)
SAMPLINGS = ("uniform", "norm")
FULL = "full PCA"
GAMMAS, DELTA, BOUND_BITS, BOUND_SET = (1.0, 0.1, 0.01, 1e-4), 0.1, 64, "Theorem 2"


@dataclass(frozen=True)
class Ratios(PictureSet):
    """A data set, and whether the bound of Theorem 2 or the sweeps are measured on it."""

    bound: bool = False


TASKS = (
    *(Ratios(pictures.name, pictures.sources) for pictures in PICTURES),
    Ratios(BOUND_SET, PICTURES[0].sources, bound=True),
)
TITLE = "Generalised Nyström hashing: shares of samples and features (Figure 2), Theorem 2"
TEXT = f"""
mAP as in hashing-map ({N_QUERIES} queries), after ITQ, against the share of samples with {FEATURES:.0%} of the features
and against the share of features with {SAMPLES:.0%} of the samples; mean ± standard deviation over seeds. Seconds are
those of learning the principal components, medians over seeds: reading the samples, the decomposition and the
orthonormal turn, or the covariance of all and its leading eigenvectors ({FULL}); all use all cores. Projecting the
pictures and ITQ cost the same for all and are not in them. A place is empty where the features drawn are fewer than
the bits (norms draw with replacement: some features twice). The paper's figure is on a million VLAD vectors of 12,800
numbers read from disk; this one is on the descriptors of hashing-map, in memory, which favours what reads much.

Theorem 2 (its failure probability {DELTA} split in halves, its constants as corrected; see the docstring of `theorem`)
bounds the error ||X - U U^T X||_F of the modified method, which keeps k' <= k = {BOUND_BITS} directions, those of W
with a squared singular value of at least gamma ||C||_1 ||C||_inf. Beside it stand the measured errors of the modified
method, of the paper's directions without that truncation, of our orthonormal ones, and of full PCA, all as shares of
||X||_F. A bound above 1 says nothing, since U = 0 has the error 1: it is vacuous for every gamma up to 1.
"""


def measure(task: Ratios, seeds: int) -> list[Record]:
    """Measure the sweeps over both shares, or the bound."""
    X, y = load(task)
    records: list[Record] = []
    for seed in range(seeds):
        data = split(X, y, seed)
        if task.bound:
            records += theorem(data.train, seed)
        else:
            records += _sweeps(task.name, data, seed)
    return records


def _sweeps(name: str, data: Split, seed: int) -> list[Record]:
    runs = [(FULL, k, SAMPLES, FEATURES) for k in BITS]
    shares = dict.fromkeys([*((s, FEATURES) for s in SAMPLE_SHARES), *((SAMPLES, f) for f in FEATURE_SHARES)])
    d = data.train.shape[1]
    runs += [(how, k, s, f) for how in SAMPLINGS for k in BITS for s, f in shares if k <= f * d]
    records = []
    for sampling, k, samples, features in track(runs, f"{name}, seed {seed}", len(runs)):
        record: Record = {"set": name, "sampling": sampling, "bits": k, "samples": samples, "features": features}
        if sampling == FULL:
            pca: Any = PCA(k, svd_solver="covariance_eigh")
        else:
            sizes = ceil_share(samples, len(data.train)), ceil_share(features, d)  # of fractions there is a least
            pca = GeneralizedNystroemPCA(k, *sizes, sampling, random_state=seed)
        with threadpool_limits(cpu_count(), "blas"):
            start = time.perf_counter()
            try:
                pca.fit(data.train)
            except ValueError as error:
                if "usable directions" not in str(error):
                    raise
                continue  # features drawn with replacement are fewer than the bits
            seconds = time.perf_counter() - start
            Z, queries = pca.transform(data.train), pca.transform(data.query)
        quantiser = itq(k, seed).fit(Z)
        scores = mean_average_precision(quantiser.transform(Z), quantiser.transform(queries), data.relevance)
        record |= {"seed": seed, "seconds": round(seconds, 4)}
        records.append(record | {truth: round(score, 5) for truth, score in scores.items()})
    return records


# ---- Theorem 2


def alpha(u: int, v: int) -> float:
    """Return the factor of Theorem 1 for u of u + v sampled without replacement."""
    return u * v / (u + v - 0.5) / (1 - 1 / (2 * max(u, v)))


def theorem(X: npt.NDArray, seed: int, k: int = BOUND_BITS) -> list[Record]:
    """Return Theorem 2's bound and the measured errors, one record for each gamma.

    With n rows of X (the paper's columns), c and r sampled, eps_1 = 2 sqrt(k / c) and eps_2 = 1 / (gamma sqrt r):

        ||X - X_k||_F + sqrt(n eps_1 (1 + eta_1)) max_i ||x_i|| + (m eps_2 (1 + eta_2) + E) ||X||_2,
        eta_1 = sqrt(log(4 / delta) alpha(c, n - c) / c),  eta_2 = sqrt(2 log(4 / delta) alpha(r, m - r) / r),
        E = sqrt 2 ||C - C_k||_F / (sqrt gamma ||C||_2) + sqrt(k - k').

    Corrected: the failure of each half is delta / 2, and E has what is left of C beyond rank k (not its inverse, which
    has another dimension).

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Centred rows.
    seed : int
        Draws the samples.
    k : int
        Most directions.
    """
    model = GeneralizedNystroemPCA(k, SAMPLES, FEATURES, center=False, random_state=seed)
    with threadpool_limits(cpu_count(), "blas"):
        ours = model.fit(X).projection_error(X)
        squares = np.linalg.eigvalsh(_gram(X))[::-1]
        C = np.sqrt(len(X) / len(model.sample_indices_)) * X[model.sample_indices_].astype(np.float64)
        W = np.sqrt(X.shape[1] / len(model.feature_indices_)) * C[:, model.feature_indices_]
        of_C = np.linalg.eigvalsh(C.T @ C)[::-1]
        V, S, _ = np.linalg.svd(W, full_matrices=False)
        U = C.T @ (V[:, :k] / S[:k])  # the paper's directions
        largest = np.abs(C).sum(axis=0).max() * np.abs(C).sum(axis=1).max()
        kept = [int(np.count_nonzero(S[:k] ** 2 >= gamma * largest)) for gamma in GAMMAS]
        error = {first: _error(X, U[:, :first], squares.sum()) for first in {*kept, k}}
    longest = float(np.sqrt(np.einsum("ij,ij->i", X, X).max()))
    records = []
    for gamma, first in zip(GAMMAS, kept, strict=True):
        errors = {
            "bound": _bound(gamma, first, k, len(X), W.shape, squares, of_C, longest) / np.sqrt(squares.sum()),
            "modified": error[first],
            "paper": error[k],
            "orthonormal": ours,
            "full": np.sqrt(squares[k:].sum() / squares.sum()),
        }
        record: Record = {"set": BOUND_SET, "gamma": gamma, "seed": seed, "kept": first}
        records.append(record | {name: float(f"{value:.5g}") for name, value in errors.items()})
    return records


def _bound(
    gamma: float,
    kept: int,
    k: int,
    n: int,
    sampled: tuple[int, ...],
    of_X: npt.NDArray,
    of_C: npt.NDArray,
    longest: float,
) -> float:
    """Return the right side of Theorem 2 from the squared singular values of X and C, largest first."""
    (c, r), m = sampled, len(of_X)
    eta_1 = np.sqrt(np.log(4 / DELTA) * alpha(c, n - c) / c)
    eta_2 = np.sqrt(2 * np.log(4 / DELTA) * alpha(r, m - r) / r)
    E = np.sqrt(2 * of_C[k:].sum() / (gamma * of_C[0])) + np.sqrt(k - kept)
    eps_1, eps_2 = 2 * np.sqrt(k / c), 1 / (gamma * np.sqrt(r))
    from_samples = np.sqrt(of_X[k:].sum()) + np.sqrt(n * eps_1 * (1 + eta_1)) * longest
    return float(from_samples + (m * eps_2 * (1 + eta_2) + E) * np.sqrt(of_X[0]))


_STEP = 4096


def _gram(X: npt.NDArray) -> Floats:
    """Return X^T X in float64."""
    return sum((rows.T @ rows for rows in _blocks(X)), np.zeros((X.shape[1], X.shape[1])))


def _error(X: npt.NDArray, U: Floats, total: float) -> float:
    """Return ||X - X U U^T||_F / ||X||_F."""
    return float(np.sqrt(sum(np.square(rows - (rows @ U) @ U.T).sum() for rows in _blocks(X)) / total))


def _blocks(X: npt.NDArray) -> Any:
    return (X[i : i + _STEP].astype(np.float64) for i in range(0, len(X), _STEP))


# ---- tables


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return tables of mAP and seconds for each set and axis, that of the bound, and panels of both."""
    tables: list[Table] = []
    curves: dict[str, dict[str, list[float]]] = {}
    axes: dict[str, list[float]] = {}
    for name in distinct(records, "set"):
        if name == BOUND_SET:
            continue
        for axis, fixed, share, shares in (
            ("samples", "features", FEATURES, SAMPLE_SHARES),
            ("features", "samples", SAMPLES, FEATURE_SHARES),
        ):
            for column in (*TRUTHS, "seconds"):
                rows = _rows(records, column, shares, axis, {"set": name, fixed: share})
                what = "Seconds of the PCA" if column == "seconds" else f"mAP, relevant: {TRUTH_NAMES[column]}"
                cells = three_decimals if column != "seconds" else lambda found: f"{np.median(found):.2f}"
                table = Table(
                    f"{name}, share of {axis}: {what}", ["bits", "PCA", *(f"{s:.0%} of {axis}" for s in shares)]
                )
                for (bits, sampling), runs in rows.items():
                    table.rows.append([bits, sampling, *(cells(run) if run else "" for run in runs)])
                tables.append(table)
                if column != "class":
                    title = f"{name}: {'mAP, ' + TRUTH_NAMES['near'] if column == 'near' else 'seconds'}"
                    title += f"\nagainst {axis}"
                    axes[title] = [100 * s for s in shares]
                    curves[title] = {
                        f"{sampling}, {bits} bits": [float(np.median(run)) if run else float("nan") for run in runs]
                        for (bits, sampling), runs in rows.items()
                    }
    tables += _bound_table(records)
    return tables, panels(curves, axes, "%", "", columns=4) if curves else None


def _rows(
    records: list[Record], column: str, shares: tuple[float, ...], axis: str, where: dict[str, Any]
) -> dict[tuple[int, str], list[list[float]]]:
    """Return, for each number of bits and PCA, the results at each share; full PCA has one for all shares."""
    rows = {}
    for bits in BITS:
        for sampling in SAMPLINGS:
            found = where | {"sampling": sampling, "bits": bits}
            rows[bits, sampling] = [values(records, column, **found, **{axis: share}) for share in shares]
        full = values(records, column, set=where["set"], sampling=FULL, bits=bits)
        rows[bits, FULL] = [full for _ in shares]
    return rows


def _bound_table(records: list[Record]) -> list[Table]:
    gammas = distinct([record for record in records if record["set"] == BOUND_SET], "gamma")
    if not gammas:
        return []
    columns = {
        "bound": "bound",
        "modified": "measured: modified",
        "paper": "paper's directions",
        "orthonormal": "orthonormal",
        "full": FULL,
    }
    table = Table(
        f"Theorem 2 beside measured errors, {PICTURES[0].name}, k = {BOUND_BITS}, shares of ||X||_F (means over seeds)",
        ["gamma", "k'", *columns.values()],
    )
    for gamma in gammas:
        where = {"set": BOUND_SET, "gamma": gamma}
        kept = np.mean(values(records, "kept", **where))
        table.rows.append(
            [f"{gamma:g}", f"{kept:g}", *(f"{np.mean(values(records, c, **where)):.4g}" for c in columns)]
        )
    return [table]
