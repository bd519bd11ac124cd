"""Models, objects and hostile text for reports, and a page taken apart."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import similia as sm
from similia.report import write_report

SECTIONS = (
    *("data", "accuracy", "confusion", "calibration", "map", "neighbours"),
    *("spectrum", "approximation", "bits", "cost"),
)
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;\u2028\x00'


class Page(HTMLParser):
    """The elements of a page, the text of its sections, and what its script reads."""

    VOID = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.sections: dict[str, str] = {}
        self.current = ""
        self.feed(self.text)
        self.close()
        assert self.open == []
        found = re.search(r'<script type="application/json" id="payload">(.*?)</script>', self.text, re.S)
        assert found is not None
        self.payload = json.loads(found[1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.current = dict(attrs)["id"] or ""
            self.sections[self.current] = ""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.current = "" if tag == "section" else self.current

    def handle_data(self, data: str) -> None:
        if self.current:
            self.sections[self.current] += data


def written(tmp_path: Path, model: Any, X: Any, y: Any = None, **options: Any) -> Page:
    return Page(write_report(model, X, y, tmp_path / "report.html", **options))


class Opened:
    """A page in the browser, with all that its console said and all that it asked the network for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.said: list[str] = []
        self.page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.said.append(f"request {request.url}"))
        self.page.goto(path.as_uri())
        own = {f"request {path.as_uri()}", "request data:,"}
        self.said[:] = [text for text in self.said if text not in own]

    def widths(self) -> tuple[int, int]:
        return tuple(self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]"))

    def point_at(self, i: int) -> None:
        self.page.locator(".map > svg").scroll_into_view_if_needed()
        self.page.evaluate(
            """i => { const map = document.querySelector(".map > svg"), box = map.getBoundingClientRect();
            const data = JSON.parse(document.getElementById("payload").textContent);
            const scale = box.width / map.viewBox.baseVal.width;
            window.at = [box.left + data.x[i] * scale, box.top + data.y[i] * scale]; }""",
            i,
        )
        self.page.mouse.move(*self.page.evaluate("window.at"))


def nyshd(**options: Any) -> Any:
    kernel = sm.kernels.GappyKmers(k=4, gaps=1)
    return sm.recipes.nyshd(kernel, **{"n_landmarks": 40, "n_bits": 512, "random_state": 0, **options})


def series() -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    X = [
        np.sin(np.arange(20 + i % 5) * (0.3 + 0.3 * (i % 2))) + 0.1 * rng.standard_normal(20 + i % 5) for i in range(40)
    ]
    return X, np.array(["slow", "fast"])[np.arange(40) % 2]


def graphs() -> tuple[sm.objects.GraphBatch, np.ndarray]:
    import networkx as nx

    X = [(nx.cycle_graph if i % 2 else nx.star_graph)(6 + i % 7) for i in range(40)]
    return sm.objects.as_graphs(X), np.arange(40) % 2


def vectors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return rng.poisson(2.0 + 3.0 * (np.arange(12) % 3 == y[:, None])).astype(float), y


def sets() -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((3 + i % 4, 2)) + 2 * (i % 2) for i in range(40)], np.arange(40) % 2


def pipelines() -> dict[str, Any]:
    return {
        "nyshd": (nyshd(), "promoters"),
        "d2ke": (sm.recipes.d2ke(sm.distances.DTW(), n_components=32, random_state=0), series()),
        "d2ke-sets": (sm.recipes.d2ke(sm.distances.ModifiedHausdorff(), n_components=32, random_state=0), sets()),
        "d2ke-tuned": (
            sm.recipes.d2ke(sm.distances.DTW(), n_components=32, gamma="tune", cv=2, random_state=0),
            series(),
        ),
        "graphlets": (sm.recipes.graphlet_optical(size=4, n_samples=100, n_components=50, random_state=0), graphs()),
        "graphs": (
            make_pipeline(sm.Nystroem(sm.kernels.WeisfeilerLehman(n_iter=2), 20, random_state=0), SVC()),
            graphs(),
        ),
        "pca_itq": (sm.recipes.pca_itq(8, random_state=0), vectors()),
        "heat_svm": (sm.recipes.heat_svm(contrast=(2.0, 4.0), C=10.0, cv=2, random_state=0), vectors()),
        "plain": (make_pipeline(StandardScaler(), LogisticRegression()), vectors()),
        "features": (make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(k=3)), LinearSVC()), "promoters"),
        "ngrams": (make_pipeline(sm.NGramEncoder(n_bits=512), sm.HDClassifier()), "promoters"),
        "graphhd": (make_pipeline(sm.GraphHDEncoder(n_bits=512), sm.HDClassifier()), graphs()),
    }  # fmt: skip
