"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets (``graphs/NAME.zip``, ``strings/NAME.tsv.gz``)."""
    folder = os.environ.get("SIMILIA_DATA")
    if not folder:
        pytest.skip("SIMILIA_DATA is not set: it names the folder of real data sets")
    return Path(folder)
