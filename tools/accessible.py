"""Fail for dead links between the built pages of the documentation, serious findings of axe-core, and words not found.

Without Chromium or axe-playwright-python, only the links are checked.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

BUILT = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"
MANY = ("api", "auto_gallery", "reproduction")  # folders of pages that are written alike: a few are looked at
FEW = (
    *("api/index", "api/kernels", "api/names/similia.embeddings.Nystroem", "reproduction/specialists"),
    *("auto_gallery/index", "auto_gallery/plot_21_explain_strings", "no/such/page"),
)
DARK = (
    *FEW,
    "index",
    "tour",
    "guide/search",
    "theory/hashing",
    "benchmarks",
)  # also looked at in dark, on a narrow screen
QUESTIONS = {
    "hamming": "similia.codes.hamming_distances",
    "landmarks": "similia.embeddings.landmarks",
}  # words to search, what is found
LINK = re.compile(r'\s(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\s(?:id|name)="([^"]+)"')
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def dead_links(built: Path = BUILT) -> list[str]:
    """Return the links between built pages that lead to no file, or to no such place in it."""
    places = functools.cache(lambda page: set(map(unescape, PLACE.findall(page.read_text(encoding="utf-8")))))
    dead = []
    for page in (path for path in sorted(built.rglob("*.html")) if "_static" not in path.parts):
        for link in sorted(set(LINK.findall(page.read_text(encoding="utf-8")))):
            path, _, anchor = unquote(unescape(link)).partition("#")
            path = path.partition("?")[0]
            if re.match(r"[a-z]+:|//", link):
                continue
            target = built / path[1:] if path.startswith("/") else page.parent / path if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target.suffix == ".html" and anchor not in places(target)):
                dead.append(f"{page.relative_to(built)}: {link}")
    return dead


def pages() -> Iterator[str]:
    """Yield the names of the pages to look at: one of each kind, and all that were written by hand."""
    for path in sorted(BUILT.rglob("*.html")):
        name = path.relative_to(BUILT).with_suffix("")
        if name.parts[0] not in (*MANY, "_static", "404"):
            yield name.as_posix()
    yield from FEW


class Site(SimpleHTTPRequestHandler):
    """A server that answers with 404.html where there is no file, as a host of the documentation does."""

    def translate_path(self, path: str) -> str:
        found = super().translate_path(path)
        return found if Path(found).exists() else str(BUILT / "404.html")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def findings() -> list[str]:
    """Return the serious and critical findings about `pages`, and words that the search does not find offline."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from axe_playwright_python.sync_playwright import Axe
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        path = None
    if path is None:
        print("no Chromium or no axe-playwright-python: accessibility and search were not checked")
        return []
    found = []
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=str(BUILT))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=[*SWITCHES])
            for scheme, names, width in (("light", [*pages()], 1280), ("dark", DARK, 400)):
                page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 720})
                for name in names:
                    page.goto(f"http://127.0.0.1:{server.server_port}/{name}.html")
                    for rule in Axe().run(page).response["violations"]:
                        if rule["impact"] in ("serious", "critical"):
                            first = rule["nodes"][0]["html"][:150]
                            found.append(f"{name}, {scheme}: {rule['help']}, {len(rule['nodes'])} times: {first}")
            found += unfound(browser)
            browser.close()
        server.shutdown()
    return found


def unfound(browser: Any) -> list[str]:
    """Return the words that the search, opened as a file, does not find where it should."""
    page, missed = browser.new_page(), []
    page.context.set_offline(True)
    for word, wanted in QUESTIONS.items():
        page.goto(f"{(BUILT / 'search.html').as_uri()}?q={word}")
        page.wait_for_selector("#search-results a, #search-results li", timeout=20_000)
        results = page.inner_text("#search-results")
        if wanted not in results:
            missed.append(f"search.html: {word} does not find {wanted}: {results[:200]!r}")
    return missed


def main() -> int:
    wrong = [*dead_links(), *findings()]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
