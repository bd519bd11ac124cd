"""What the experiments on the hyperspherical heat kernel share: six kernels, their grids, and two ways to choose.

The kernels on the sphere are functions of one matrix of versines V = 1 - cos: cosine 1 - V, exact K(V; n, t),
parametrix exp(-theta^2 / 4t), RBF exp(-a V). Their grids have one scale, the slope at V = 0: that is a of the RBF,
1 / 2t of the parametrix kernel, and for large n the contrast a = n exp(-(n - 1) t) of the exact kernel. The RBF on the
raw data has as many widths, around 1 / (median squared distance); the linear kernel is divided by its mean diagonal,
so that one grid of C serves all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from experiments._nyshd import difference
from experiments._protocol import paired_interval
from experiments._report import Record, Table, distinct, mean_sd, values
from similia.datasets import loaders
from similia.kernels.hypersphere import to_hypersphere, versines

CONTRASTS = tuple(2.0**power for power in range(-2, 7))
WIDTHS = tuple(2.0**power for power in range(-6, 3))  # of the RBF on raw data, in units of 1 / median squared distance
CS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
N_FOLDS = 5

LINEAR, RBF, COSINE, PARAMETRIX, EXACT, MAPPED = "linear", "RBF", "cosine", "parametrix", "exact", "RBF after the map"
KERNELS = (LINEAR, RBF, COSINE, PARAMETRIX, EXACT, MAPPED)
RAW, SPHERICAL = (LINEAR, RBF), (COSINE, PARAMETRIX, EXACT, MAPPED)
NON_NESTED, NESTED = "best of cross-validation", "nested"
CHOICES = (NON_NESTED, NESTED)
PAPER_ORDER = (LINEAR, RBF, COSINE, PARAMETRIX, EXACT)  # lin rbf cos prx ext

Floats = npt.NDArray[np.float64]

PROTOCOL = f"""
Six kernels: linear and RBF on the data as they are, and four on the sphere: cosine, parametrix exp(−θ²/4t), the exact
heat kernel, and, as a control that the paper lacks, the RBF after the same map. That the paper's cosine kernel is taken
after the map is read from its Discussion ("exact kernel and cosine kernel, both of which employ the hyperspherical
maps"). Each kernel with a parameter has {len(CONTRASTS)} values of it: the contrast a = n exp(−(n−1) t) of the exact
kernel from ¼ to 64, the same curvatures of the parametrix kernel (t = 1/2a) and of the RBF on the sphere
(exp(−a (1 − cos θ))), and widths of the RBF on the raw data from 1/64 to 4 over the median squared distance. C is one
of {", ".join(f"{C:g}" for C in CS)} for all; the linear kernel is divided by its mean diagonal. Two ways to choose: the
best mean of {N_FOLDS}-fold cross-validation over the grid, which is what the paper reports and which flatters the
kernels with larger grids (linear and cosine have C alone), and nested: the parameters of a fold are chosen by
cross-validation on the other folds.
"""


@dataclass(frozen=True)
class Family:
    """A kernel on one set of data: its parameters, ascending in curvature, and the Gram matrix of each."""

    parameters: Sequence[float]
    gram_of: Callable[[float], Floats]


def data_file(*names: str) -> Path | None:
    """Return the first of the files ``vectors/NAME`` below the folders of ``SIMILIA_DATA``, or None."""
    return loaders.data_file(*(f"vectors/{name}" for name in names))


def require(*names: str) -> Path:
    """Return the first of the files ``vectors/NAME`` below the folders of ``SIMILIA_DATA``, or raise."""
    path = data_file(*names)
    if path is None:
        raise FileNotFoundError(f"put vectors/{names[0]} into a folder and name it in SIMILIA_DATA; found none")
    return path


def linear(X: Floats) -> Floats:
    """Return the Gram matrix of inner products, divided by its mean diagonal."""
    G = X @ X.T
    G /= np.mean(np.diag(G))
    return G


def squared_distances(X: Floats) -> Floats:
    """Return the squared Euclidean distances of rows of `X`, divided by their median over pairs."""
    G = X @ X.T
    norms = np.diag(G)
    D = np.maximum(norms[:, None] + norms - 2 * G, 0)
    np.fill_diagonal(D, 0)
    return D / np.median(D[np.triu_indices(len(D), 1)])


def exponential(D: Floats, rate: float) -> Floats:
    """Return exp(-rate D)."""
    K = D * -rate
    return np.exp(K, out=K)


def exact(V: Floats, n: int, contrast: float) -> Floats:
    """Return the exact heat kernel on S^(n-1) at the time of this contrast."""
    from similia.kernels.heat import heat_profile, time_of

    return heat_profile(V, n, time_of(contrast, n))


def families(X: Floats, mapping: str = "auto") -> dict[str, Family]:
    """Return the six kernels on the rows of `X`."""
    U = to_hypersphere(X, mapping)
    V, n = versines(U), X.shape[1]
    D = squared_distances(X)
    angles = np.square(2 * np.arcsin(np.sqrt(np.minimum(V / 2, 1))))
    contrasts = [a for a in CONTRASTS if a < n]  # the contrast at t = 0 is n
    return {
        LINEAR: Family([1.0], lambda _: linear(X)),
        RBF: Family(WIDTHS, lambda width: exponential(D, width)),
        COSINE: Family([1.0], lambda _: 1 - V),
        PARAMETRIX: Family(contrasts, lambda a: exponential(angles, a / 2)),
        EXACT: Family(contrasts, lambda a: exact(V, n, a)),
        MAPPED: Family(contrasts, lambda a: exponential(V, a)),
    }


def stratified(y: npt.NDArray, seed: int) -> npt.NDArray[np.int64]:
    """Return the number of the stratified fold that holds each row out."""
    folds = np.empty(len(y), dtype=np.int64)
    splits = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(y, y)
    for fold, (_, held_out) in enumerate(splits):
        folds[held_out] = fold
    return folds


def score(X: Floats, y: npt.NDArray, seed: int, mapping: str = "auto") -> list[Record]:
    """Return the accuracy (percent) of each fold, kernel and way to choose, and what was chosen.

    Parameters
    ----------
    X : ndarray of shape (m, n)
    y : ndarray of shape (m,)
    seed : int
        Of the stratified folds.
    mapping : str
        As of `similia.kernels.HypersphericalHeat`.

    Returns
    -------
    list of dict
        With ``gap``, the largest difference over pairs between the exact kernel and exp(-a (1 - cos)).
    """
    from similia.learn.kernel_machines import best_of, nested_scores, precomputed_scores

    folds = stratified(y, seed)
    found = families(X, mapping)
    records = []
    for kernel, family in found.items():
        grid = (family.gram_of, family.parameters, CS)
        scores = precomputed_scores(*grid, y, folds)
        i, j = best_of(scores.mean(axis=2))
        inner = nested_scores(*grid, y, folds)
        chosen = {
            NON_NESTED: [(scores[i, j, fold], family.parameters[i], CS[j]) for fold in range(N_FOLDS)],
            NESTED: list(zip(inner.accuracies, inner.parameters, inner.Cs, strict=True)),
        }
        gaps = {a: gap(found, a) if kernel == EXACT else "" for a in {a for c in chosen.values() for _, a, _ in c}}
        records += [
            {
                "kernel": kernel,
                "choice": choice,
                "seed": seed,
                "fold": fold,
                "accuracy": round(100 * float(accuracy), 4),
                "parameter": float(parameter),
                "C": float(C),
                "gap": gaps[parameter],
            }
            for choice, folds_of in chosen.items()
            for fold, (accuracy, parameter, C) in enumerate(folds_of)
        ]
    return records


def gap(found: Mapping[str, Family], contrast: float) -> float:
    """Return the largest difference between the exact kernel and exp(-a (1 - cos)) over pairs of the data."""
    return float(np.abs(found[EXACT].gram_of(contrast) - found[MAPPED].gram_of(contrast)).max())


def accuracy_tables(
    records: Sequence[Record], what: str, printed: Mapping[str, Sequence[float]], decimals: int = 1
) -> list[Table]:
    """Return, for each way to choose, accuracies beside the paper's and what the exact kernel is ahead of the others.

    Parameters
    ----------
    records : sequence of dict
        As from `score`, with ``"set"``.
    what : str
        Name of the first column.
    printed : mapping of set to five numbers
        The paper's accuracies, in its order of kernels.
    decimals : int
        Of the paper's numbers.
    """
    tables = []
    for choice in CHOICES:
        shown = Table(f"Accuracy (%), {choice}; below, the paper's", [what, *KERNELS])
        ahead = Table(
            f"Exact kernel minus the others, {choice}: over folds, with 95 % intervals (corrected for overlap)",
            [what, *(kernel for kernel in KERNELS if kernel != EXACT)],
        )
        for name in distinct(records, "set"):
            folds = {k: values(records, "accuracy", set=name, kernel=k, choice=choice) for k in KERNELS}
            shown.rows.append([name, *(of_runs(folds[k]) for k in KERNELS)])
            if choice == NON_NESTED and name in printed:
                paper = dict(zip(PAPER_ORDER, printed[name], strict=True))
                shown.rows.append(["paper", *(f"{paper[k]:.{decimals}f}" if k in paper else "" for k in KERNELS)])
            ahead.rows.append([name, *(difference(folds[EXACT], folds[k]) for k in KERNELS if k != EXACT)])
        tables += [shown, ahead]
    return tables


def of_runs(folds: Sequence[float]) -> str:
    """Return mean ± standard deviation over runs of the mean over folds; one run has no deviation."""
    runs = np.reshape(folds, (-1, N_FOLDS)).mean(axis=1)
    return mean_sd(float(runs.mean()), float(runs.std(ddof=1))) if len(runs) > 1 else f"{runs[0]:.1f}"


def choice_table(records: Sequence[Record], what: str) -> Table:
    """Return what was chosen by the best of cross-validation, and how far the exact kernel is from the RBF there."""
    table = Table(
        f"Parameter / C most often chosen ({NON_NESTED}); largest |exact − exp(−a (1 − cos θ))| over pairs, any run",
        [what, *KERNELS, "largest difference"],
    )
    for name in distinct(records, "set"):
        rows = [r for r in records if r["set"] == name and r["choice"] == NON_NESTED and r["fold"] == 0]
        cells = [_most_common([_setting(r) for r in rows if r["kernel"] == kernel]) for kernel in KERNELS]
        table.rows.append([name, *cells, f"{max(r['gap'] for r in rows if r['kernel'] == EXACT):.1e}"])
    return table


def _most_common(settings: list[str]) -> str:
    (setting, times), *_ = Counter(settings).most_common(1)
    return f"{setting} ({times} of {len(settings)})"


def _setting(record: Record) -> str:
    parameter = "" if record["kernel"] in (LINEAR, COSINE) else f"{record['parameter']:g} / "
    return f"{parameter}{record['C']:g}"


def significance_table(records: Sequence[Record]) -> Table:
    """Return the pairs of kernels whose corrected interval of the difference leaves out 0."""
    table = Table(
        "Differences to the exact kernel that are significant (the corrected interval leaves out 0)",
        ["set", *CHOICES],
    )
    for name in distinct(records, "set"):
        row = [name]
        for choice in CHOICES:
            folds = {k: values(records, "accuracy", set=name, kernel=k, choice=choice) for k in KERNELS}
            gaps = {k: paired_interval(folds[EXACT], folds[k]) for k in KERNELS if k != EXACT}
            row.append("; ".join(f"{k} {-m:+.1f}" for k, (m, _, half) in gaps.items() if abs(m) > half) or "none")
        table.rows.append(row)
    return table


def met(goal: bool) -> str:
    """Return whether a goal is met, as shown in tables."""
    return "yes" if goal else "**no**"


def tag(records: Sequence[Record], **columns: Any) -> list[Record]:
    """Return the records with these columns first."""
    return [{**columns, **record} for record in records]
