"""Encoding a file of any length in constant memory, or all of it in memory; two processes, or two threads.

Random DNA of 100 letters to codes of 1024 bits, gappy kernel, 300 landmarks. Each measurement is a process of its own
that has encoded a thousand strings before, so that nothing is compiled or read from a cold disk. In memory, a tenth is
encoded and its time multiplied by ten, as memory may not hold more. A smaller number of strings may be given::

    python benchmarks/streaming.py 100000
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import Row
from sklearn.pipeline import make_pipeline

import similia as sm

N, LENGTH, BITS, LANDMARKS, ROUNDS = 1_000_000, 100, 1024, 300, 3
BLOCK = 10_000

TIMED = """
import json, re, sys, time
from pathlib import Path
import similia as sm
from similia.scale.stream import encode_stream

if __name__ == "__main__":
    how, data, encoder, output = sys.argv[1:]
    encoder = sm.load(encoder)
    words = sm.sources.read_fasta(data)[1] if how == "memory" else None
    encoder.transform(["ACGTTGCA" * 12] * 1000)
    start = time.perf_counter()
    if how == "memory":
        encoder.transform(words)
    else:
        encode_stream(encoder, data, output, workers=2 if how == "cluster" else None)
    seconds = time.perf_counter() - start
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps([seconds, int(peak[1]) / 2**20]))
"""


def run(n: int = N) -> list[Row]:
    """Return times, memory and the slope of time over size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = (n // 100, n // 10, n)
        for size in sizes:
            _write(folder / f"{size}.fasta", size)
        words = sm.sources.read_fasta(folder / f"{sizes[1]}.fasta")[1][: 20 * LANDMARKS]
        kernel = sm.kernels.GappyKmers(k=4, gaps=1)
        nystroem = sm.Nystroem(kernel, LANDMARKS, random_state=0)
        encoder = make_pipeline(nystroem, sm.SignRandomProjection(BITS, random_state=0))
        sm.save(encoder.fit(words), folder / "encoder.similia")
        (folder / "timed.py").write_text(TIMED)
        calls = [("memory", sizes[1]), ("here", sizes[0]), ("here", sizes[1]), ("here", n), ("cluster", n)]
        found = [[_timed(folder, how, size) for how, size in calls] for _ in range(ROUNDS)]
        assert (folder / "here.npy").read_bytes() == (folder / "cluster.npy").read_bytes()
    memory, *here, cluster = (statistics.median(taken[i][0] for taken in found) for i in range(len(calls)))
    peak = max(taken[3][1] for taken in found)
    slope = float(np.polyfit(np.log(sizes), np.log(here), 1)[0])
    print(f"{n} strings: {here[-1]:.1f} s streamed, {10 * memory:.1f} s in memory, {cluster:.1f} s by two processes")
    what = f"encode {n:,} strings from FASTA to {BITS}-bit codes"
    return [
        Row(f"{what}: time", f"{sizes[1]:,} in memory, times ten", here[-1] / (10 * memory), at_most=1.15),
        Row(f"{what}: peak memory, GiB", "1 GiB", peak, at_most=1.5),
        Row(f"{what}: time of a LocalCluster of two", "two threads in one process", cluster / here[-1], at_most=1.25),
        Row(f"{what}: slope of log time over log size", f"from {sizes[0]:,} on", slope, at_most=1.03),
    ]


def _write(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACGT", np.uint8)
    with path.open("wb") as file:
        for start in range(0, n, BLOCK):
            rows = rng.choice(letters, (min(BLOCK, n - start), LENGTH))
            file.write(b"".join(b">%d\n%s\n" % (start + i, row.tobytes()) for i, row in enumerate(rows)))


def _timed(folder: Path, how: str, size: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in GiB of a process."""
    arguments = [how, f"{folder / str(size)}.fasta", str(folder / "encoder.similia"), str(folder / f"{how}.npy")]
    command = [sys.executable, str(folder / "timed.py"), *arguments]
    seconds, peak = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert math.isfinite(seconds)
    return seconds, peak


if __name__ == "__main__":
    print(*run(*map(int, sys.argv[1:])), sep="\n")
