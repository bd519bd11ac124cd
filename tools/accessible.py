"""Fail for dead links between the built pages of the documentation, and for serious findings of axe-core about them.

Without Chromium or axe-playwright-python, only the links are checked.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

BUILT = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"
PAGES = (
    "index",
    "tour",
    "guide/index",
    "choose",
    "benchmarks",
    "404",
    "auto_gallery/index",
    "api/index",
    "theory/index",
)
LINK = re.compile(r'(?:href|src)="([^"#?]+)')
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def dead_links() -> list[str]:
    """Return the links between built pages that lead to no file."""
    pages = (path for path in BUILT.rglob("*.html") if "_static" not in path.parts)
    links = ((page, link) for page in pages for link in sorted(set(LINK.findall(page.read_text(encoding="utf-8")))))
    return [
        f"{page.relative_to(BUILT)}: {link}"
        for page, link in links
        if not re.match(r"[a-z]+:|//", link) and not (page.parent / unquote(link)).exists()
    ]


def findings() -> list[str]:
    """Return the serious and critical findings about `PAGES`, in light and dark."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from axe_playwright_python.sync_playwright import Axe
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        path = None
    if path is None:
        print("no Chromium or no axe-playwright-python: accessibility was not checked")
        return []
    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*SWITCHES])
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme)
            for name in PAGES:
                page.goto((BUILT / f"{name}.html").as_uri())
                for rule in Axe().run(page).response["violations"]:
                    if rule["impact"] in ("serious", "critical"):
                        nodes = rule["nodes"]
                        found.append(f"{name}, {scheme}: {rule['help']}, {len(nodes)} times: {nodes[0]['html'][:150]}")
        browser.close()
    return found


def main() -> int:
    wrong = [*dead_links(), *findings()]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
