"""The count of the files that a call travels through, on a kernel with compiled loops."""

import sys
from pathlib import Path

import similia as sm

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import flows


def test_a_compiled_loop_is_called_by_the_file_that_calls_it():
    kernel = sm.kernels.Spectrum(k=2)
    files, changes = flows.travelled(lambda: kernel(["GATTACA", "GATTA"]))
    assert {Path(file).name for file in files} >= {"strings.py", "counts.py"}
    outside = {after: times for (before, after), times in changes.items() if before == ""}
    assert outside == {str(Path("kernels", "counts.py")): 1}  # the call itself
