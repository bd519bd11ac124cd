"""D2KE, Section 4, measured: how fast kNN and D2KE learn in p dimensions, and what the kernel is for large gamma.

Cost: about 7 s of processor time for each seed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from experiments._figures import panels
from experiments._report import Record, Table, distinct, values
from similia.distances import Levenshtein
from similia.embeddings import D2KE
from similia.planning import effective_dimension

Floats = npt.NDArray[np.float64]

SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
N_VALIDATION, N_TEST = 500, 1000
NOISE = 0.5  # standard deviation; that of the target is 1
N_TERMS = 50  # functions exp(-d(x, w) / median) that the target is made of
N_COMPONENTS = 512
K_MAX = 256
GAMMAS = ("0.25*median", "median", "4*median")  # "median" is 1 / the median distance
RIDGE = 10.0 ** np.arange(-8, 2)

WORDS = ("", "a", "b", "aa", "ab", "ba", "bb")  # all strings of at most two letters: the domain and the random objects
PAIRS = (("a", "a"), ("a", "b"), ("aa", "bb"), ("ab", "ba"), ("", "ab"))
LARGE_GAMMAS = (0.1, 1.0, 5.0, 20.0, 100.0)


@dataclass(frozen=True)
class TheoryTask:
    """A cube of dimension p under the Euclidean distance, or short strings under the edit distance."""

    name: str
    kind: Literal["vectors", "strings"]
    p: int = 0


TASKS = (*(TheoryTask(f"cube-{p}", "vectors", p) for p in (2, 5, 10, 20)), TheoryTask("strings", "strings"))
TITLE = "D2KE: the theorems, measured"
TEXT = f"""
**Learning curves.** Points uniform in a cube of dimension p, seen only through their Euclidean distances; the target is
a sum of {N_TERMS} functions exp(-d(x, w) / median) of random points w, scaled to variance 1, plus noise of standard
deviation {NOISE}. It lies in the space of the D2KE kernel, so that there is no approximation error. Excess risk is
the mean squared difference to the target without noise on {N_TEST} test points. kNN (k up to {K_MAX}) and D2KE
({N_COMPONENTS} random points of the cube, ridge regression; gamma and the ridge) are tuned on the same {N_VALIDATION}
further noisy points. The theory has the excess risk fall at least as n^(-2/(2 + p)) for kNN (Theorem 1)
and as n^(-1/2) for D2KE whatever p (Equation 11). Both are upper bounds: the target is smoother than a Lipschitz
function need be, so kNN falls faster than its bound, but ever more slowly as p grows, and D2KE does not. The dimension
beside p is what `similia.planning.effective_dimension` sees in 1000 of the points.

**Large gamma.** All strings of at most two letters a, b under the edit distance, random objects uniform among the
same seven. The paper says that k(x, y) tends to exp(-gamma d(x, y)). Only -log k / gamma tends to d(x, y); the
ratio of the two tends to P(d(x, w) + d(w, y) = d(x, y)), the share of random objects that lie between x and y.
"""


def measure(task: TheoryTask, seeds: int) -> list[Record]:
    """Return learning curves of a cube, or kernel values of the strings (exact: the seed says nothing)."""
    if task.kind == "strings":
        return _large_gamma(task.name)
    return [record for seed in range(seeds) for record in _learning_curves(task, seed)]


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables, and the learning curves as a picture."""
    curves = [r for r in records if r["set"] != "strings"]
    tables = [_curve_table(curves)] if curves else []
    strings = [r for r in records if r["set"] == "strings"]
    if strings:
        tables += [
            _gamma_table("-log k / gamma, which tends to d", strings, "soft_distance", "d"),
            _gamma_table("k / exp(-gamma d), which tends to the share between", strings, "ratio", "share"),
        ]
    return tables, _picture(curves) if curves else None


def _learning_curves(task: TheoryTask, seed: int) -> list[Record]:
    """Return the excess risk of both methods for each number of training points."""
    rng = np.random.default_rng([seed, task.p])
    n = SIZES[-1]
    X = rng.random((n + N_VALIDATION + N_TEST, task.p))
    target = _target(X, rng)
    y = target + NOISE * rng.standard_normal(len(X))
    late = slice(n, None)  # validation points, then test points
    features = [
        D2KE(euclidean, N_COMPONENTS, objects=_cube(task.p), gamma=gamma, random_state=seed).fit(X[:n]).transform(X)
        for gamma in GAMMAS
    ]
    dimension = effective_dimension(euclidean, X[:n], random_state=seed).dimension
    rows = []
    for size in SIZES:
        outcomes = {
            "kNN": _knn(X[:size], y[:size], X[late]),
            "D2KE": np.hstack([_ridge(Z[:size], y[:size], Z[late]) for Z in features]),
        }
        for method, predictions in outcomes.items():
            validation, test = predictions[:N_VALIDATION], predictions[N_VALIDATION:]
            tuned = np.square(validation - y[late][:N_VALIDATION, None]).mean(axis=0).argmin()
            risk = np.square(test[:, tuned] - target[late][N_VALIDATION:]).mean()
            rows.append(
                {"set": task.name, "seed": seed, "n": size, "method": method, "p": task.p,
                 "dimension": round(dimension, 3), "excess_risk": float(f"{risk:.6g}")}
            )  # fmt: skip
    return rows


def euclidean(X: Floats, Y: Floats | None = None) -> Floats:
    """The Euclidean distance as a distance of objects."""
    return cdist(X, X if Y is None else Y)


def _cube(p: int) -> Any:
    return lambda X, n, rng: rng.random((n, p))


def _target(X: Floats, rng: np.random.Generator) -> Floats:
    """Return a function of the kernel's space at X, with mean 0 and variance 1."""
    D = cdist(X, rng.random((N_TERMS, X.shape[1])))
    f = np.exp(-D / np.median(D)) @ rng.standard_normal(N_TERMS)
    return (f - f.mean()) / f.std()


def _knn(X: Floats, y: Floats, T: Floats) -> Floats:
    """Return the predictions at T for k = 1, 2, ..., one column each."""
    k = min(len(X), K_MAX)
    neighbours = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(T, return_distance=False)
    return np.cumsum(y[neighbours], axis=1) / np.arange(1, k + 1)


def _ridge(Z: Floats, y: Floats, T: Floats) -> Floats:
    """Return the predictions at T of ridge regression with an intercept, one column for each value of `RIDGE`."""
    mean = Z.mean(axis=0)
    A = Z - mean
    eigenvalues, Q = np.linalg.eigh(A.T @ A / len(A))
    b = Q.T @ (A.T @ (y - y.mean())) / len(A)
    W = b[:, None] / (np.maximum(eigenvalues, 0)[:, None] + RIDGE / Z.shape[1])
    return y.mean() + (T - mean) @ (Q @ W)


def _large_gamma(name: str) -> list[Record]:
    """Return the exact kernel of a few pairs of strings for growing gamma."""
    D = Levenshtein()(list(WORDS)).astype(np.float64)
    rows = []
    for (x, y), gamma in itertools.product(PAIRS, LARGE_GAMMAS):
        i, j = WORDS.index(x), WORDS.index(y)
        detour = D[i] + D[j]
        log_k = logsumexp(-gamma * detour) - np.log(len(WORDS))
        rows.append(
            {"set": name, "seed": 0, "pair": f"'{x}', '{y}'", "gamma": gamma, "d": int(D[i, j]),
             "share": round(float((detour == D[i, j]).mean()), 6), "soft_distance": round(float(-log_k / gamma), 6),
             "ratio": round(float(np.exp(log_k + gamma * D[i, j])), 6)}
        )  # fmt: skip
    return rows


def _curve_table(records: list[Record]) -> Table:
    sizes = [f"n = {n}" for n in SIZES]
    table = Table(
        "Excess risk (mean over seeds) and its slope on log-log scale (mean ± sd)",
        ["set", "dimension seen", "method", *sizes, "slope", "slope of the bound"],
    )
    for name in distinct(records, "set"):
        seen = np.mean(values(records, "dimension", set=name))
        for method in ("kNN", "D2KE"):
            curves = _curves(records, name, method)
            slopes = np.polyfit(np.log(SIZES), np.log(curves).T, 1)[0]
            spread = slopes.std(ddof=1) if len(slopes) > 1 else 0.0
            risks = [f"{risk:.3f}" for risk in curves.mean(axis=0)]
            measured = f"{slopes.mean():.2f} ± {spread:.2f}"
            table.rows.append([name, f"{seen:.1f}", method, *risks, measured, f"{_bound(records, name, method):.2f}"])
    return table


def _picture(records: list[Record]) -> Any:
    """Return learning curves on a log-log scale, each bound drawn from the first point of its method."""
    n = np.array(SIZES)
    curves: dict[str, dict[str, Any]] = {}
    for name in distinct(records, "set"):
        curves[name] = {}
        for method, theorem in (("kNN", "Theorem 1"), ("D2KE", "Equation 11")):
            risk = _curves(records, name, method).mean(axis=0)
            curves[name][method] = risk
            curves[name][f"slope of {theorem}"] = risk[0] * (n / n[0]) ** _bound(records, name, method)
    return panels(curves, SIZES, "training points", "excess risk", log=True)


def _curves(records: list[Record], name: str, method: str) -> Floats:
    """Return excess risks, shape (n_seeds, n_sizes)."""
    return np.array([values(records, "excess_risk", set=name, method=method, n=n) for n in SIZES]).T


def _bound(records: list[Record], name: str, method: str) -> float:
    return -0.5 if method == "D2KE" else -2 / (2 + values(records, "p", set=name)[0])


def _gamma_table(title: str, records: list[Record], column: str, limit: str) -> Table:
    table = Table(title, ["pair", *(f"gamma = {gamma:g}" for gamma in LARGE_GAMMAS), "limit"])
    for pair in distinct(records, "pair"):
        cells = [f"{value:.3f}" for value in values(records, column, pair=pair)]
        table.rows.append([pair, *cells, f"{values(records, limit, pair=pair)[0]:.3f}"])
    return table
