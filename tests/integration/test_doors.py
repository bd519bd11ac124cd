"""The check that no room uses another's private modules or names, on a package made for it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from similia.kernels._loops import f", 1),
        ("from similia.kernels import _loops", 1),
        ("import similia.kernels._loops", 1),
        ("from similia.kernels.strings import _f", 1),
        ("def f():\n    from similia.kernels.strings import _f", 1),
        ("from similia.kernels.strings import f", 0),
        ("from similia.codes._bits import f", 0),
        ("from similia import __version__", 0),
        ("from _thread import start_new_thread", 0),
    ],
)
def test_a_private_name_of_another_room_is_found(tmp_path, line, found):
    room = tmp_path / "similia" / "codes"
    room.mkdir(parents=True)
    (room / "bits.py").write_text(f"{line}\n")
    done = subprocess.run([sys.executable, ROOT / "tools" / "doors.py", room.parent], capture_output=True, text=True)
    assert (done.returncode, done.stdout.count(" is private to ")) == (found, found)
