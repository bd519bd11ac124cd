"""The browser that opens reports and maps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

_SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-quic"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium of the system, by playwright's driver."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser and is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(names)}")
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=[*_SWITCHES])
        yield found
        found.close()
