"""Maps: trustworthiness beside umap-learn on all distances, and the page of 100,000 objects in a browser.

Objects are families of strings of DNA, as in the benchmark of neighbour graphs, compared by Levenshtein. umap-learn
gets the matrix of all distances of 5,000; ours has their graph of neighbours, and that of 50,000. All maps have 15
neighbours and a fixed seed. Trustworthiness has 10 neighbours and the true distances: of all 5,000 objects, and of 500
objects among all 50,000. The page is opened in the system's Chromium, which has no graphics card: time until two frames
after its load, and the time of its script for each frame while the map is moved::

    SIMILIA_UMAP_PYTHON=/path/to/python python benchmarks/maps.py
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import Rival, Row, chromium, opening_seconds
from neighbour_graphs import families

import similia as sm
from similia.distances import Levenshtein
from similia.report import write_map

N, N_RIVAL, N_PAGE, N_MEASURED, NEAR = 50_000, 5_000, 100_000, 500, 10
LOST, OPENING, FRAME = 0.01, 2.0, 0.05

UMAP = """
import json, sys
import numpy as np, umap
D = np.load(sys.argv[1])["D"]
found = umap.UMAP(metric="precomputed", n_neighbors=15, random_state=0).fit_transform(D)
np.savez(sys.argv[2], points=found)
print(json.dumps({"version": umap.__version__}))
"""


def run() -> list[Row]:
    """Return how much less trustworthy our maps are than the rival's, and the times of the page over their limits."""
    rival = Rival("SIMILIA_UMAP_PYTHON")
    rows = [*(_against(rival) if rival and _has_umap() else [])]
    return rows + _page()


def _has_umap() -> bool:
    found = importlib.util.find_spec("umap") is not None
    if not found:
        print("skipped: SimilarityMap(method='neighbours') needs umap-learn here, too")
    return found


def _against(rival: Rival) -> list[Row]:
    strings, few = families(N), families(N_RIVAL)  # whole families in both
    D = Levenshtein()(few)
    told, found = rival.run(UMAP, {"D": D})
    theirs = trustworthiness(np.arange(N_RIVAL), D, found["points"].astype(np.float64))
    sample = np.sort(np.random.default_rng(0).choice(N, N_MEASURED, replace=False))
    ours = {
        N_RIVAL: trustworthiness(np.arange(N_RIVAL), D, _placed(few)),
        N: trustworthiness(sample, Levenshtein()([strings[i] for i in sample], strings), _placed(strings)),
    }
    print(f"trustworthiness: umap-learn {theirs:.4f}; ours", {n: round(value, 4) for n, value in ours.items()})
    named = f"umap-learn {told['version']}, all distances of {N_RIVAL:,}"
    return [
        Row(f"map of {n:,} strings of DNA, Levenshtein: trustworthiness lost", named, theirs - value, at_most=LOST)
        for n, value in ours.items()
    ]


def _placed(strings: list[str]) -> npt.NDArray[np.float64]:
    start = time.perf_counter()
    found = sm.SimilarityMap(Levenshtein(), "neighbours", random_state=0).fit(strings)
    print(
        f"{len(strings):,} strings placed in {time.perf_counter() - start:.0f} s; "
        f"trustworthiness_ {found.trustworthiness_:.4f}, continuity_ {found.continuity_:.4f}"
    )
    return found.embedding_


def trustworthiness(rows: npt.NDArray, distances: npt.NDArray, points: npt.NDArray[np.float64]) -> float:
    """Return the trustworthiness of a map of n objects, the mean over `rows` with their true distances, (m, n).

    Equal distances share a rank, as in `similia.search.similarity_map`.
    """
    n, excess = len(points), 0.0
    for i, true in zip(rows.tolist(), distances, strict=True):
        others = np.delete(np.arange(n), i)
        on_map = np.square(points[others] - points[i]).sum(axis=1)
        near = others[np.argsort(on_map, kind="stable")[:NEAR]]
        ranks = 1 + np.searchsorted(np.sort(true[others]), true[near])
        excess += float(np.maximum(ranks - NEAR, 0).sum())
    return 1.0 - 2.0 * excess / (len(rows) * NEAR * (2 * n - 3 * NEAR - 1))


def _page() -> list[Row]:
    strings = families(N_PAGE)
    placed = sm.SimilarityMap(sm.kernels.Spectrum(k=3, normalize=True), n_landmarks=100, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.html"
        points = placed.fit_transform(strings)
        write_map(placed, strings, [string[:1] for string in strings], path, points=points)
        with chromium() as browser:
            if browser is None:
                return []
            opened, frame = opening_seconds(browser, path), _script_seconds(browser, path)
        print(f"{path.stat().st_size / 1e6:.1f} MB, opened in {opened:.2f} s, {1000 * frame:.1f} ms of script a frame")
    what = f"page of a map of {N_PAGE:,} strings"
    return [
        Row(f"{what}: until Chromium has loaded and drawn it", f"{OPENING:g} s", opened / OPENING, at_most=1),
        Row(f"{what}: script for a frame while it is moved", f"{1000 * FRAME:g} ms", frame / FRAME, at_most=1),
    ]


def _script_seconds(browser: Any, path: Path, n_moves: int = 60) -> float:
    """Return the time of the page's script for each frame while the map is dragged."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(
        "window.frames_ = 0; const ask = requestAnimationFrame;"
        "window.requestAnimationFrame = (draw) => ask((now) => { frames_++; draw(now); });"
    )
    page.goto(path.as_uri(), wait_until="load")
    page.wait_for_timeout(500)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def spent() -> tuple[float, int]:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return metrics["ScriptDuration"], page.evaluate("frames_")

    page.mouse.move(400, 400)
    page.mouse.down()
    before = spent()
    for i in range(n_moves):
        page.mouse.move(400 + 5 * i, 400 + 2 * i)
    page.wait_for_timeout(300)
    after = spent()
    page.mouse.up()
    page.close()
    n_frames = after[1] - before[1]
    assert n_frames >= n_moves // 4, f"{n_frames} frames of {n_moves} moves"
    return (after[0] - before[0]) / n_frames


if __name__ == "__main__":
    print(*run(), sep="\n")
