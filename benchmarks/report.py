"""Report of 5,000 objects: seconds to write it, its size, and seconds until a browser has drawn it.

The model is NysHD of 10,000 bits on windows of the bundled DNA, which are predicted in five folds. The browser is the
system's Chromium by playwright's driver; where there is none its row is left out.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Row, chromium, opening_seconds

import similia as sm
from similia.report import write_report

N_OBJECTS = 5000
SECONDS, MEGABYTES, OPENING = 20.0, 8.0, 2.0


def objects() -> tuple[list[str], np.ndarray]:
    """Return distinct strings: those of the splice set, and copies in which some letters are others."""
    X, y = sm.datasets.load_splice(return_X_y=True)
    rng = np.random.default_rng(0)
    again = rng.choice(len(X), N_OBJECTS - len(X), replace=False)
    changed = []
    for i in again:
        letters = np.array(list(X[i]))
        letters[rng.choice(len(letters), 5, replace=False)] = rng.choice(list("ACGT"), 5)
        changed.append("".join(letters))
    return [*X, *changed], np.concatenate([y, y[again]])


def run() -> list[Row]:
    """Write the report and open it."""
    X, y = objects()
    model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            write_report(model, X, y, path)
            taken.append(time.perf_counter() - start)
        size = path.stat().st_size / 1e6
        with chromium() as browser:
            opened = None if browser is None else opening_seconds(browser, path)
    print(
        f"written in {statistics.median(taken):.1f} s ({', '.join(f'{t:.1f}' for t in taken)}), {size:.2f} MB", end=""
    )
    print("" if opened is None else f", opened in {opened:.2f} s")
    what = f"report of {N_OBJECTS:,} strings"
    time_ratio = statistics.median(taken) / SECONDS
    rows = [
        Row(f"{what}: time, five folds of NysHD with 10,000 bits", f"{SECONDS:g} s", time_ratio, at_most=1),
        Row(f"{what}: size", f"{MEGABYTES:g} MB", size / MEGABYTES, at_most=1),
    ]
    if opened is not None:
        rows.append(
            Row(f"{what}: until Chromium has loaded and drawn it", f"{OPENING:g} s", opened / OPENING, at_most=1)
        )
    return rows


if __name__ == "__main__":
    print(*run(), sep="\n")
