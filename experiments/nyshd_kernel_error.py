"""NysHD, Figure 2: how far inner products of codes are from the normalised kernel, in spectral norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._figures import panels
from experiments._nyshd import kernel_steps
from experiments._paper import FIGURE_TASKS, Task
from experiments._protocol import load_task, paper_split
from experiments._report import Record, Table, distinct, values
from similia.codes import SignRandomProjection, kernel_from_codes, similarity
from similia.embeddings import Nystroem
from similia.kernels import Normalized
from similia.objects import take

SHARES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
BITS = (1_000, 10_000, 50_000)
CURVES = ("raw", "corrected", "Nyström only")
AT_MOST = 1_000  # objects of a kernel matrix

TASKS = FIGURE_TASKS
TITLE = "How well codes keep the kernel (Figure 2)"
TEXT = f"""
Relative spectral-norm error ‖K − K̂‖₂ / ‖K‖₂ of the normalised kernel matrix K of up to {AT_MOST} training objects,
against the share of these objects that serve as landmarks. *Raw*: (π/2) times the cosine of two codes, which the
paper reads as the kernel; its expectation is arcsin ρ, so the error does not vanish with more landmarks or bits (the
diagonal alone is π/2 instead of 1). *Corrected*: the sine of it (`codes.kernel_from_codes`). *Nyström only*: no bits.
Mean over seeds.
"""


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables and the picture."""
    shares = Table("Relative spectral-norm error, 10,000 bits", ["set", "curve", *(f"{share:.0%}" for share in SHARES)])
    bits = Table("The same with every object a landmark, against bits", ["set", "curve", *map(str, BITS)])
    curves: dict[str, dict[str, list[float]]] = {}
    for name in distinct(records, "set"):
        curves[name] = {curve: [_mean(records, name, curve, s, 10_000) for s in SHARES] for curve in CURVES}
        shares.rows += [[name, curve, *(f"{e:.3f}" for e in errors)] for curve, errors in curves[name].items()]
        for curve in CURVES[:2]:
            bits.rows.append([name, curve, *(f"{_mean(records, name, curve, 1.0, d):.3f}" for d in BITS)])
    x = [100 * s for s in SHARES]
    return [shares, bits], panels(curves, x, "landmarks (% of objects)", "relative spectral error")


def measure(task: Task, seeds: int) -> list[Record]:
    """Return the errors of all curves for each share of landmarks and number of bits."""
    X, y = load_task(task)
    train, _ = paper_split(len(y))
    X = take(X, train[:AT_MOST])
    *before, kernel = kernel_steps(task)
    for step in before:
        X = step.fit_transform(X)
    K = Normalized(kernel)(X)
    norm = np.linalg.norm(K, 2)
    rows = []
    for share in SHARES:
        for seed in range(seeds):
            vectors = Nystroem(kernel, n_components=max(1, round(share * len(K))), random_state=seed).fit_transform(X)
            for curve, d, approximation in _approximations(vectors, seed):
                error = float(np.linalg.norm(K - approximation, 2) / norm)
                rows.append(
                    {"set": task.name, "curve": curve, "landmark_share": share, "bits": d, "seed": seed, "error": error}
                )
    return rows


def _approximations(vectors: npt.NDArray, seed: int) -> list[tuple[str, int, npt.NDArray]]:
    """Return (curve, bits, approximate normalised kernel)."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    found: list[tuple[str, int, npt.NDArray]] = [("Nyström only", 10_000, unit @ unit.T)]
    for d in BITS:
        codes = SignRandomProjection(n_bits=d, random_state=seed).fit_transform(vectors)
        found.append(("raw", d, np.pi / 2 * similarity(codes, codes)))
        found.append(("corrected", d, kernel_from_codes(codes, codes)))
    return found


def _mean(records: list[Record], name: str, curve: str, share: float, bits: int) -> float:
    return float(np.mean(values(records, "error", set=name, curve=curve, landmark_share=share, bits=bits)))
