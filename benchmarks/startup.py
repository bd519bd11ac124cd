"""Starting up: `import similia`, a model loaded, and `similia demo` from a warm and a cold cache of compiled loops."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from measure import Row

_FIT = """
import sys, similia as sm
data = sm.datasets.load_splice()
sm.save(sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), random_state=0).fit(data.data, data.target), sys.argv[1])
"""
_LABEL = "import sys, time, similia as sm; sm.load(sys.argv[1]).predict(['ACGTACGTTAGC' * 5]); print(time.monotonic())"
_WITHOUT_PANDAS = "import sys; sys.modules.update(pandas=None, pyarrow=None); "  # as a plain install is
_ONE = """
import sys, time, statistics, similia as sm
model, seconds = sm.load(sys.argv[1]), []
for _ in range(500):
    begin = time.perf_counter()
    model.predict(['ACGTACGTTAGC' * 5])
    seconds.append(time.perf_counter() - begin)
print(statistics.median(seconds[100:]))
"""


def run() -> list[Row]:
    """Return seconds against the limits we promise (the only rows that are not ratios)."""
    demo = ["-m", "similia.cli", "demo"]
    with tempfile.TemporaryDirectory() as cold:
        rows = [Row("`similia demo`, nothing compiled yet", "60 s", _seconds(demo, 1, cold) / 60, at_most=1)]
        rows.append(Row("`similia demo`, warm", "15 s", _seconds(demo, 3, cold) / 15, at_most=1))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.similia")
        _seconds(["-c", _FIT, path], 1)
        plain, name = _until_label(_WITHOUT_PANDAS + _LABEL, path), "a new process, a model loaded, one object labelled"
        rows.append(Row(name, "1.5 s", plain / 1.5, at_most=1))
        name = "the same where pandas is installed, which scikit-learn then imports"
        rows.append(Row(name, "1.5 s", _until_label(_LABEL, path) / 1.5))
        one = subprocess.run([sys.executable, "-c", _ONE, path], capture_output=True, text=True, check=True)
        rows.append(Row("label one object, NysHD with 300 landmarks", "1 ms", float(one.stdout) / 1e-3, at_most=1))
    rows.append(Row("`import similia`", "0.3 s", _seconds(["-c", "import similia"], 7) / 0.3, at_most=1))
    rows.append(Row("`similia --help`", "0.3 s", _seconds(["-m", "similia.cli", "--help"], 7) / 0.3, at_most=1))
    return rows


def _until_label(program: str, path: str) -> float:
    """Return the median of seconds from the start of a process to the time it prints."""
    taken = []
    for _ in range(7):
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        taken.append(float(done.stdout) - start)
    return statistics.median(taken)


def _seconds(arguments: list[str], times: int, cache: str | None = None) -> float:
    environment = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    print(*run(), sep="\n")
