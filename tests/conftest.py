"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets that has ``graphs/NAME.zip`` and ``strings/NAME.tsv.gz``: one of SIMILIA_DATA."""
    folders = [Path(folder) for folder in os.environ.get("SIMILIA_DATA", "").split(os.pathsep) if folder]
    if not folders:
        pytest.skip("SIMILIA_DATA is not set: it names the folders of real data sets")
    return next((folder for folder in folders if (folder / "graphs").is_dir()), folders[0])
