"""Type checkers see the public names with their types, in a program as a user writes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")
SOURCE = str(Path(__file__).parents[2] / "src")


def check(tmp_path, *command):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def wrong(tmp_path):
    """Return a copy of the program in which an argument has the wrong type."""
    path = tmp_path / "wrong.py"
    text = PROGRAM.read_text(encoding="utf-8")
    assert "return [int(i) for i in ids[0]]" in text
    path.write_text(text.replace("sm.config(max_memory=", "sm.config(n_jobs="), encoding="utf-8")
    return path


def mypy(tmp_path, program):
    return check(tmp_path, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", program)


def test_mypy_strict_accepts_a_program_and_sees_the_types(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: pip install '.[test]'")
    assert mypy(tmp_path, PROGRAM)[0] == 0, mypy(tmp_path, PROGRAM)[1]
    code, said = mypy(tmp_path, wrong(tmp_path))
    assert code == 1
    assert "[arg-type]" in said


@pytest.mark.ecosystem
def test_pyright_accepts_a_program_and_sees_the_types(tmp_path):
    pytest.importorskip("basedpyright", reason="basedpyright, which brings pyright, is not installed")
    settings = {"typeCheckingMode": "standard", "extraPaths": [SOURCE]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    shutil.copy(PROGRAM, tmp_path / "right.py")
    wrong(tmp_path)
    _, said = check(tmp_path, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable)
    found = json.loads(said)
    assert found["summary"]["filesAnalyzed"] == 2
    errors = {(Path(e["file"]).name, e["rule"]) for e in found["generalDiagnostics"] if e["severity"] == "error"}
    assert errors == {("wrong.py", "reportArgumentType")}
