"""The README and the guide say what happens: their examples are run, their links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/guide.md", "docs/scale.md", "docs/plan.md"]


@pytest.mark.parametrize("page", ["docs/guide.md", "docs/scale.md"])
def test_examples_of_the_pages(page):
    failures, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert (failures, tried > 8) == (0, True)


def test_the_examples_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(compile("\n".join(code), "README.md", "exec"), names)
    assert [*map(float, capsys.readouterr().out.split())] == pytest.approx([0.95, 0.82, 0.98], abs=0.015)
    assert names["codes"].shape == (638, 1250)
    assert (tmp_path / "splice.similia").exists()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (ROOT / page).parent.joinpath(target).exists(), target
