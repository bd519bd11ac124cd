"""Hyperspherical heat kernel, Figure 1, and how far the parametrix expansions are from the exact kernel."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments._report import Record, Table, distinct, values

Floats = npt.NDArray[np.float64]

MULTIPLES = (0.5, 1.0, 1.5, 2.0)  # of log n / n
DIMENSIONS = (3, 100, 200)  # of Figure 1B
ORDERS = ("gaussian", 0, 1, 2)
EXPANDED = (3, 10, 100)
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of 3 / (n - 2), where the expansion stops to have its maximum at 0
N_WALKS, N_STEPS, N_ANGLES = 2000, 250, 721
NEAR = np.pi / 2  # the largest angle between vectors without negative entries


@dataclass(frozen=True)
class Part:
    """A part of the figure."""

    name: str


TASKS = (Part("1A: walks on the sphere"), Part("1B: parametrix and exact"), Part("orders of the parametrix"))
WALKS, CURVES, EXPANSIONS = (task.name for task in TASKS)
TITLE = "Hyperspherical heat kernel: its shape, and that of the parametrix kernel (Figure 1)"
TEXT = """
*1A.* The exact kernel on the sphere in three dimensions, with random walks of the same time from the source (∂ₜ = Δ, so
that a step of time dt has variance 2 dt in each of two directions). The mean cosine of walks has the expectation
exp(−2t).

*1B.* The exact kernel K in n dimensions at multiples of log n / n, and the parametrix kernel exp(−θ²/4t) once at the
same t, as if it were an approximation, once at the t that gives it the curvature of the exact kernel at θ = 0 (t =
1/2K′, K′ the slope of K against cos θ; it was so tuned in the tables of accuracies). At the same t it is another kernel
altogether when n is large; at the same curvature it is close at small angles. At θ = π the exact kernel is flat, as a
smooth function on the sphere must be, and the parametrix kernel has a kink: the slope in the table. The paper's
multiples are lost in the text at hand.

*Orders.* The expansion exp(−θ²/4t) (θ/sin θ)^((n−2)/2) (1 + t …) up to orders 0, 1 and 2, divided by its value at 0,
against the exact kernel; *gaussian* is exp(−θ²/4t) alone. Largest absolute errors over angles up to 90°, which is all
there is between vectors without negative entries; the expansion diverges at 180° in any case. Bold where the
expansion is above 1 somewhere: hotter than the source. Order 0 is so next to the source from t = 3/(n−2) on (1.00 in
the table, the dotted line in the picture); there orders 1 and 2 are worse than order 0, above 1 or far below 0. Times
about log n / n, at which a kernel is of use, are at (n − 2) log n / 3n on that scale: beyond it for n of some dozens.
"""


def exact(theta: Floats, n: int, t: float) -> Floats:
    """Return the exact kernel at these angles."""
    from similia.kernels.heat import heat_profile

    return heat_profile(2 * np.sin(theta / 2) ** 2, n, t)


def parametrix(theta: Floats, n: int, t: float, order: str | int) -> Floats:
    """Return the parametrix kernel between the first axis and vectors at these angles from it."""
    from experiments.parametrix import Parametrix

    circle = np.zeros((len(theta), n))
    circle[:, 0], circle[:, 1] = np.cos(theta), np.sin(theta)
    with warnings.catch_warnings():  # of not being positive definite, which is the subject here
        warnings.simplefilter("ignore", UserWarning)
        return Parametrix(t=t, order=order, mapping=None)(np.eye(1, n), circle)[0]


def curvature(n: int, t: float) -> float:
    """Return the slope of the exact kernel against cos(angle) at 0, from a difference."""
    small = 1e-4
    return float((1 - exact(np.array([small]), n, t)[0]) / (1 - np.cos(small)))


def walks(t: float, n_walks: int, n_steps: int, random: np.random.Generator) -> Floats:
    """Return random walks of time t from the third axis in three dimensions, shape (n_walks, n_steps + 1, 3)."""
    paths = np.zeros((n_walks, n_steps + 1, 3))
    paths[:, 0, 2] = 1
    for i in range(n_steps):
        here = paths[:, i]
        step = np.sqrt(2 * t / n_steps) * random.standard_normal((n_walks, 3))
        step -= np.sum(step * here, axis=1, keepdims=True) * here
        length = np.linalg.norm(step, axis=1, keepdims=True)
        there = np.cos(length) * here + np.sinc(length / np.pi) * step  # sinc(x / pi) = sin(x) / x
        paths[:, i + 1] = there / np.linalg.norm(there, axis=1, keepdims=True)
    return paths


def measure(task: Part, seeds: int) -> list[Record]:
    """Return the numbers of one part; only walks are random."""
    if task.name == WALKS:
        return [_walk(multiple, seed) for seed in range(seeds) for multiple in MULTIPLES]
    if task.name == CURVES:
        return [_curve(n, multiple) for n in DIMENSIONS for multiple in MULTIPLES]
    return [record for n in EXPANDED for share in SHARES for record in _expansions(n, share)]


def time(n: int, multiple: float) -> float:
    """Return a multiple of log n / n."""
    return float(multiple * np.log(n) / n)


def _walk(multiple: float, seed: int) -> Record:
    t = time(3, multiple)
    cosines = walks(t, N_WALKS, N_STEPS, np.random.default_rng(seed))[:, -1, 2]
    return {
        "set": WALKS,
        "seed": seed,
        "n": 3,
        "multiple": multiple,
        "t": t,
        "mean cosine": float(cosines.mean()),
        "standard error": float(cosines.std(ddof=1) / np.sqrt(N_WALKS)),
        "at 180°": float(exact(np.array([np.pi]), 3, t)[0]),
    }


def _curve(n: int, multiple: float) -> Record:
    t, theta = time(n, multiple), np.linspace(0, np.pi, N_ANGLES)
    K, slope = exact(theta, n, t), curvature(n, t)
    same, matched = (parametrix(theta, n, s, "gaussian") for s in (t, 1 / (2 * slope)))
    near = theta <= NEAR + 1e-9
    return {
        "set": CURVES,
        "seed": 0,
        "n": n,
        "multiple": multiple,
        "t": t,
        "contrast": float(n * np.exp(-(n - 1) * t)),
        "curvature": slope,
        "same t": float(np.abs(same - K).max()),
        "same curvature": float(np.abs(matched - K).max()),
        "same curvature, to 90°": float(np.abs(matched - K)[near].max()),
        "RBF": float(np.abs(np.exp(-slope * (1 - np.cos(theta))) - K).max()),
        "slope": float(-np.pi * slope * matched[-1]),
    }


def _expansions(n: int, share: float) -> list[Record]:
    t, theta = share * 3 / (n - 2), np.linspace(0, NEAR, N_ANGLES)
    K = exact(theta, n, t)
    records = []
    for order in ORDERS:
        found = parametrix(theta, n, t, order)
        error, hottest = float(np.abs(found - K).max()), float(found.max())
        where = {"set": EXPANSIONS, "seed": 0, "n": n, "share": share, "t": t, "order": str(order)}
        records.append({**where, "error": error, "hottest": hottest})
    return records


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return the tables and the whole figure."""
    tables = []
    sets = distinct(records, "set")
    if WALKS in sets:
        tables.append(_walk_table([r for r in records if r["set"] == WALKS]))
    if CURVES in sets:
        tables.append(_curve_table([r for r in records if r["set"] == CURVES]))
    if EXPANSIONS in sets:
        tables.append(_expansion_table([r for r in records if r["set"] == EXPANSIONS]))
    return tables, _figure([r for r in records if r["set"] == EXPANSIONS])


def _walk_table(records: list[Record]) -> Table:
    table = Table(
        f"Mean cosine of {N_WALKS} walks of {N_STEPS} steps, ± its standard error (first seed), and over all seeds",
        ["t / (log n / n)", "t", "walks", "all seeds", "exp(−2t)", "kernel at 180°"],
    )
    for multiple in distinct(records, "multiple"):
        rows = [r for r in records if r["multiple"] == multiple]
        first, everyone = rows[0], np.mean([r["mean cosine"] for r in rows])
        walked = f"{first['mean cosine']:.3f} ± {first['standard error']:.3f}"
        row = [f"{multiple:g}", f"{first['t']:.3f}", walked, f"{everyone:.3f}", f"{np.exp(-2 * first['t']):.3f}"]
        table.rows.append([*row, f"{first['at 180°']:.3f}"])
    return table


def _curve_table(records: list[Record]) -> Table:
    table = Table(
        "Largest difference from the exact kernel: parametrix, and the RBF exp(−K′ (1 − cos θ))",
        [
            "n",
            "t / (log n / n)",
            "t",
            "a",
            "parametrix, same t",
            "same curvature",
            "same curvature, to 90°",
            "its slope at 180°",
            "RBF, same curvature",
        ],
    )
    for r in records:
        row = [r["n"], f"{r['multiple']:g}", f"{r['t']:.4f}", f"{r['contrast']:.3g}"]
        row += [f"{r[key]:.1e}" for key in ("same t", "same curvature", "same curvature, to 90°", "slope", "RBF")]
        table.rows.append(row)
    return table


def _expansion_table(records: list[Record]) -> Table:
    table = Table(
        "Largest error of the expansion at angles to 90°; bold: hotter than the source somewhere",
        ["n", "t (n − 2) / 3", "t", *(str(order) if order == "gaussian" else f"order {order}" for order in ORDERS)],
    )
    for n in distinct(records, "n"):
        for share in distinct(records, "share"):
            rows = [r for r in records if (r["n"], r["share"]) == (n, share)]
            marks = ["**" if r["hottest"] > 1 + 1e-9 else "" for r in rows]
            cells = [f"{mark}{r['error']:.1e}{mark}" for mark, r in zip(marks, rows, strict=True)]
            table.rows.append([n, f"{share:.2f}", f"{rows[0]['t']:.4f}", *cells])
    return table


# ---- the picture


def _figure(expansions: list[Record]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.5), layout="constrained")
    rows: Any = figure.subfigures(3, 1)
    spheres, curves, errors = (row.subplots(1, n) for row, n in zip(rows, (len(MULTIPLES), 3, 3), strict=True))
    for axis, multiple in zip(spheres, MULTIPLES, strict=True):
        _sphere(axis, multiple)
    for axis, n in zip(curves, DIMENSIONS, strict=True):
        _curves(axis, n)
    for axis, n in zip(errors, EXPANDED, strict=True):
        _errors(axis, [r for r in expansions if r["n"] == n], n)
    for axes, label in ((curves, "kernel"), (errors, "largest error, to 90°")):
        axes[0].set_ylabel(label, fontsize=8)
        axes[0].legend(fontsize=7, frameon=False)
    return figure


def _sphere(axis: Any, multiple: float) -> None:
    """Draw the kernel on the half of the sphere that is seen, and some walks on it."""
    t, side = time(3, multiple), np.linspace(-1, 1, 161)
    x, y = np.meshgrid(side, side)
    z = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
    tilt = np.radians(35)  # of the source, the third axis, from the viewer
    angle = np.arccos(np.clip(np.sin(tilt) * y + np.cos(tilt) * z, -1, 1))
    heat = np.where(x**2 + y**2 <= 1, exact(angle.ravel(), 3, t).reshape(angle.shape), np.nan)
    axis.imshow(heat, origin="lower", extent=(-1, 1, -1, 1), cmap="inferno", vmin=0, vmax=1)
    for path in walks(t, 3, N_STEPS, np.random.default_rng(1)):
        up, towards = (np.cos(tilt) * path[:, 1] + np.sin(tilt) * path[:, 2], np.cos(tilt) * path[:, 2])
        seen = towards - np.sin(tilt) * path[:, 1] > 0
        axis.plot(np.where(seen, path[:, 0], np.nan), np.where(seen, up, np.nan), color="white", linewidth=0.6)
    axis.set_title(f"t = {multiple:g} log n / n, n = 3", fontsize=9)
    axis.set_axis_off()


def _curves(axis: Any, n: int) -> None:
    from experiments._figures import _COLOURS

    theta = np.linspace(0, np.pi, 181)
    for colour, multiple in zip(_COLOURS, MULTIPLES, strict=False):
        t = time(n, multiple)
        axis.plot(theta, exact(theta, n, t), color=colour, linewidth=1.4, label=f"exact, {multiple:g} log n / n")
        same = parametrix(theta, n, t, "gaussian")
        axis.plot(theta, same, color=colour, linewidth=1, linestyle=":", label="parametrix, same t" * (multiple == 0.5))
        matched = parametrix(theta, n, 1 / (2 * curvature(n, t)), "gaussian")
        label = "parametrix, same curvature" * (multiple == 0.5)
        axis.plot(theta, matched, color=colour, linewidth=1, linestyle="--", label=label)
    axis.set_xticks([0, np.pi / 2, np.pi], ["0", "90°", "180°"], fontsize=8)
    axis.set_title(f"n = {n}", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)


def _errors(axis: Any, records: list[Record], n: int) -> None:
    from experiments._figures import _COLOURS, _MARKS

    for colour, mark, order in zip(_COLOURS, _MARKS, ORDERS, strict=False):
        times, errors = (values(records, column, order=str(order)) for column in ("t", "error"))
        label = str(order) if order == "gaussian" else f"order {order}"
        axis.plot(times, errors, color=colour, marker=mark, markersize=4, linewidth=1.4, label=label)
    axis.axvline(3 / (n - 2), color="black", linestyle=":", linewidth=1)
    axis.axvline(np.log(n) / n, color="grey", linestyle="--", linewidth=1)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title(f"n = {n}; 3/(n−2) dotted, log n / n dashed", fontsize=9)
    axis.set_xlabel("t", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
