"""Every benchmark can be imported as `benchmarks/run.py` imports it; none is run here."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_benchmark_is_found_and_can_run():
    listed = "import run; print([callable(run.load(name).run) for name in run.MODULES])"
    done = subprocess.run([sys.executable, "-c", listed], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[True,")
    assert "False" not in done.stdout
