"""Fixtures that several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("similia", deadline=None)  # a busy machine may need more than 0.2 s for an example
hypothesis.settings.load_profile("similia")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets that has ``graphs/NAME.zip`` and ``strings/NAME.tsv.gz``: one of SIMILIA_DATA."""
    folders = [Path(folder) for folder in os.environ.get("SIMILIA_DATA", "").split(os.pathsep) if folder]
    if not folders:
        pytest.skip("SIMILIA_DATA is not set: it names the folders of real data sets")
    return next((folder for folder in folders if (folder / "graphs").is_dir()), folders[0])


@pytest.fixture
def similia(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """A function that runs the command line with all that a user sees, in this process: imports take seconds."""
    from similia.cli import main, voice

    monkeypatch.setattr(voice, "own_process", lambda: None)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        line = ["similia", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", line)
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return subprocess.CompletedProcess(line, code, *capsys.readouterr())

    return run
