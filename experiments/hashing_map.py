"""Generalised Nyström hashing, Figure 1: mean average precision against the number of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._figures import panels
from experiments._hashing import (
    FEATURES,
    FULL,
    ITQ_ROWS,
    METHODS,
    N_FEATURES,
    N_QUERIES,
    NEIGHBOUR,
    NORMS,
    PICTURES,
    RANDOM,
    SAMPLES,
    TRUTHS,
    UNIFORM,
    PictureSet,
    encode,
    load,
    mean_average_precision,
    split,
)
from experiments._report import Record, Table, distinct, values
from similia.core.config import track

BITS = (16, 32, 64, 128, 256)
TOLERANCE, FROM_BITS = 0.01, 64  # how far below full PCA, and from which length of code on
TRUTH_NAMES = {"class": "same class", "near": "Euclidean neighbours"}

TASKS = PICTURES
TITLE = "Generalised Nyström hashing: mAP against bits (Figure 1)"
TEXT = f"""
Mean average precision of the ranking of all training pictures by Hamming distance, mean ± standard deviation over
seeds. A seed draws {N_QUERIES} queries from all pictures, the samples, projections and first rotations; codes are
learnt from, and made of, the other pictures. Relevant is what has the class of the query, or what is within the mean
distance from a training picture to its {NEIGHBOUR}th neighbour (the Euclidean truth of Gong & Lazebnik; queries without
such a neighbour, some 5 %, are left out there). Pictures at one Hamming distance are in random order, over which the
expectation is taken. *{UNIFORM}* and *{NORMS}* (ConstantTimeSVD) learn the principal components from {SAMPLES:.0%} of
the pictures and {FEATURES:.0%} of the features.

What differs from the paper: its descriptors and its numbers (it prints curves only) could not be had. Ours are
{N_FEATURES} numbers, as many as its, of the pictures at hand (CIFAR-10 in grey, 16 x 16 pixels; MNIST): histograms of
gradients and sizes of Gabor responses on a 6 x 6 grid, each kind divided by its sum, then its root taken, and centred.
ITQ learns the rotation from {ITQ_ROWS} of the training pictures, for all methods alike. The directions of Nyström are
orthonormal (the paper's are not). The signs of full PCA and of random projections, without ITQ, stand for context.
"""


def measure(task: PictureSet, seeds: int) -> list[Record]:
    """Score every method at every number of bits, with every seed."""
    X, y = load(task)
    records: list[Record] = []
    for seed in range(seeds):
        data = split(X, y, seed)
        runs = [(n_bits, method) for n_bits in BITS for method in METHODS]
        for n_bits, method in track(runs, f"{task.name}, seed {seed}", len(runs)):
            codes, queries = encode(method, data, n_bits, seed)
            scores = mean_average_precision(codes, queries, data.relevance)
            record: Record = {"set": task.name, "method": method, "bits": n_bits, "seed": seed}
            records.append(record | {truth: round(score, 5) for truth, score in scores.items()})
    return records


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return a table for each set and truth, one of the goals, and a panel for each set and truth."""
    tables = []
    goals = Table(
        f"Goals: at most {TOLERANCE} below full PCA from {FROM_BITS} bits on, above random projection everywhere",
        ["set", "relevant", "bits", "Nyström, uniform - full PCA", "goal met", "Nyström, uniform - random", "goal met"],
    )
    curves: dict[str, dict[str, list[float]]] = {}
    bits = sorted(distinct(records, "bits"))
    for name in distinct(records, "set"):
        for truth in TRUTHS:
            table = Table(f"mAP, {name}, relevant: {TRUTH_NAMES[truth]}", ["method", *(f"{b} bits" for b in bits)])
            curve = curves.setdefault(f"{name}: {TRUTH_NAMES[truth]}", {})
            for method in METHODS:
                runs = [values(records, truth, set=name, method=method, bits=b) for b in bits]
                table.rows.append([method, *map(three_decimals, runs)])
                curve[method] = [float(np.mean(run)) for run in runs]
            tables.append(table)
            for i, b in enumerate(bits):
                to_full, to_random = (curve[UNIFORM][i] - curve[other][i] for other in (FULL, RANDOM))
                near_full = _met(to_full >= -TOLERANCE) if b >= FROM_BITS else "no goal"
                above = _met(to_random > 0)
                row = [name, TRUTH_NAMES[truth], b, f"{to_full:+.4f}", near_full, f"{to_random:+.4f}", above]
                goals.rows.append(row)
    return [*tables, goals], panels(curves, bits, "bits", "mAP")


def _met(goal: bool) -> str:
    return "yes" if goal else "**no**"


def three_decimals(runs: list[float]) -> str:
    """Return mean ± standard deviation (n - 1) with three decimals; one run has none."""
    sd = f" ± {np.std(runs, ddof=1):.3f}" if len(runs) > 1 else ""
    return f"{np.mean(runs):.3f}{sd}"
