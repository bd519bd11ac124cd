"""The pages under axe-core, a checker of accessibility: no serious or critical finding, in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import similia as sm
from similia.report import write_clusters, write_map, write_report, write_search

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list(letters), 12)) for letters in ("AC", "GT") * 20]
KINDS = ["ac", "gt"] * 20
KERNEL = sm.kernels.Spectrum(k=2, normalize=True)


def report(path: Path) -> Path:
    model = sm.recipes.nyshd(KERNEL, n_landmarks=8, n_bits=256, random_state=0)
    return write_report(model, WORDS, KINDS, path, cv=2)


def clusters(path: Path) -> Path:
    return write_clusters(sm.KernelKMeans(KERNEL, n_clusters=2, random_state=0).fit(WORDS), WORDS, KINDS, path)


def map_of_words(path: Path) -> Path:
    return write_map(sm.SimilarityMap(KERNEL, random_state=0).fit(WORDS), WORDS, KINDS, path)


def search(path: Path) -> Path:
    found = sm.SimilaritySearch("auto", rerank=sm.distances.Levenshtein()).fit(WORDS[:30])
    return write_search(found, WORDS[30:], path, n_neighbors=3)


def findings(page: Any) -> list[str]:
    """Return the serious and critical findings of axe-core about a page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("write", [report, clusters, map_of_words, search])
def test_pages_are_accessible(browser: Any, tmp_path: Path, write: Callable[[Path], Path], scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(write(tmp_path / "page.html").as_uri())
    assert findings(page) == []
    page.close()


def test_a_page_without_names_is_found_out(browser: Any) -> None:
    page = browser.new_page()
    page.set_content("<html><body><img src='data:,'><button></button><p style='color:#ccc'>pale</p></body></html>")
    assert {finding.split(":")[0] for finding in findings(page)} >= {"image-alt", "button-name", "color-contrast"}
    page.close()
