"""What all benchmarks share: rows of a table, calls timed in turns, rivals in an interpreter of their own."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-quic"),
)


@dataclass
class Row:
    """One measurement: a ratio to a rival or a limit on the same work in the same run.

    `at_least` (for "times faster" or "times less") or `at_most` (for "times the rival's cost") is the goal.
    """

    what: str
    rival: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        """The goal as text."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"

    @property
    def met(self) -> str:
        """Whether the ratio meets the goal."""
        if self.at_least is not None:
            return "yes" if self.ratio >= self.at_least else "**no**"
        return "" if self.at_most is None else "yes" if self.ratio <= self.at_most else "**no**"

    def __str__(self) -> str:
        return f"{self.what:70} {self.ratio:9.3g} x {self.rival:45} {self.goal} {self.met}"


def in_turns(*calls: Callable[[], object], rounds: int = 7) -> list[float]:
    """Return the median seconds of each call; they take turns, so that a disturbance hits all alike.

    The first round, which compiles and warms up, is not counted. Before each call there is a pause: idle
    threads of BLAS spin for some milliseconds after a product, on a core that the next call would be charged for.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, taken in zip(calls, times, strict=True):
            time.sleep(0.05)
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken[1:]) for taken in times]


def data_folder() -> Path | None:
    """Return the first folder of SIMILIA_DATA, or None, saying so."""
    if folders := os.environ.get("SIMILIA_DATA"):
        return Path(folders.split(os.pathsep)[0])
    print("skipped: SIMILIA_DATA names no folder of data sets")
    return None


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the system's Chromium by playwright's driver; yield None, saying so, if either is missing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print("skipped: no Chromium, or no playwright to drive it")
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*_SWITCHES])
        yield browser
        browser.close()


def opening_seconds(browser: Any, path: Path) -> float:
    """Return the median time from the call of a page until two frames after its load."""
    taken = []
    for _ in range(5):
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(path.as_uri(), wait_until="load")
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        taken.append(time.perf_counter() - start)
        page.close()
    return statistics.median(taken)


class Rival:
    """Another library in an interpreter of its own, named by an environment variable.

    The script gets the path of an npz file of arrays, the path of an npz file it may write, and further
    arguments; its last line of output is JSON.
    """

    def __init__(self, variable: str) -> None:
        self.interpreter = os.environ.get(variable)
        if not self.interpreter:
            print(f"skipped: {variable} names no interpreter that has the rival")

    def __bool__(self) -> bool:
        return bool(self.interpreter)

    def run(
        self, script: str, arrays: Mapping[str, np.ndarray], *arguments: object
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the JSON the script printed and the arrays it wrote."""
        assert self.interpreter is not None
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
            np.savez(source, allow_pickle=False, **dict(arrays))
            command = [self.interpreter, "-c", script, str(source), str(target), *map(str, arguments)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise RuntimeError(f"the rival failed:\n{result.stderr}")
            written = dict(np.load(target)) if target.exists() else {}
        return json.loads(result.stdout.splitlines()[-1]), written
