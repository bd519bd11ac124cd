"""`python dev.py cpus` finds what differs between processors, and fails; no public class is forgotten."""

from __future__ import annotations

import sys
from pathlib import Path

import _cpus_cases
import cpus
import numpy as np
import pytest
import run
from _cpus_cases import Case

HERE, ELSEWHERE = cpus.Setting({}, one_machine=True), cpus.Setting({})
BITS = np.array([[1, 2], [3, 4]], np.uint8)
FLOATS = np.array([1.0, -2.0], np.float32)


# ---- no public class is forgotten


def test_every_public_class_has_a_case_or_a_reason():
    assert _cpus_cases.missing(_cpus_cases.cases()) == []
    assert not [name for name in _cpus_cases.cases() if "0x" in name]  # an address: another in each process
    names = set(_cpus_cases.public())
    assert {"Nystroem", "Spectrum", "DTW", "HammingIndex", "RandomSets", "ITQ", "AttributeScaler"} <= names


def test_a_class_without_a_case_is_told(monkeypatch):
    cases = {name: case for name, case in _cpus_cases.cases().items() if "GraphHDEncoder" not in name}
    (sentence,) = _cpus_cases.missing(cases)
    assert sentence.startswith("GraphHDEncoder is public and no case computes with it; add one to")
    monkeypatch.setitem(_cpus_cases.LEFT_OUT, "GraphHDEncoder", "too slow")
    assert _cpus_cases.missing(cases) == []
    assert _cpus_cases.missing(_cpus_cases.cases()) == [
        "GraphHDEncoder is in LEFT_OUT, but is covered or not public; delete it there"
    ]


def test_the_command_fails_where_a_class_has_no_case(monkeypatch):
    cases = {name: case for name, case in _cpus_cases.cases().items() if "ITQ" not in name}
    monkeypatch.setattr(cpus, "cases", lambda: cases)
    with pytest.raises(SystemExit, match=r"ITQ is public and no case computes with it"):
        cpus.run(1, 0)


# ---- what counts as a difference


@pytest.mark.parametrize(
    ("other", "rows", "relative"),
    [
        ([1.0, -2.0], 0, 0.0),
        ([1.0, -2.0000005], 1, 2.384185791015625e-07),  # two steps of 2**-22, relative to 2
        ([1.5, -2.0], 1, 0.25),
        ([np.nan, -2.0], 1, np.inf),
    ],
)
def test_differences_of_floats_are_relative_to_the_largest_entry(other, rows, relative):
    found = cpus.difference(FLOATS, np.array(other, np.float32))
    assert (found.rows, found.relative, found.tolerance) == (rows, relative, 2e-6)


def test_differences_of_bits_of_zeros_and_of_types():
    assert cpus.difference(BITS, BITS ^ np.uint8([[0, 0], [0, 1]])) == cpus.Difference(1, 0.0, 0.0)
    assert cpus.difference(np.zeros(3), -np.zeros(3)) == cpus.Difference(3, 0.0, 1e-12)  # -0.0 has another bit
    assert cpus.difference(np.zeros(3), np.full(3, 1e-300)).relative == np.inf
    assert cpus.difference(FLOATS, FLOATS.astype(np.float64)).relative == np.inf
    assert cpus.difference(np.array(["a", "b"]), np.array(["a", "c"])).rows == 1
    assert cpus.difference(np.ones(2), np.ones(2)).tolerance == 1e-12
    assert cpus.difference(np.ones(2, complex), np.ones(2, complex)).tolerance == 1e-12
    assert cpus.difference(np.ones(2, np.complex64), np.ones(2, np.complex64)).tolerance == 2e-6


def found(saved, fitted=None, **rearranged):
    more = {"c|m|0": rearranged} if rearranged else {}
    return cpus.Found({"c|m|0": saved}, {"c|m|0": saved if fitted is None else fitted}, more)


OTHER_BITS = BITS ^ np.uint8(1)
NEAR, FAR = FLOATS * np.float32(1 + 5e-7), FLOATS * np.float32(1 + 5e-6)


@pytest.mark.parametrize(
    ("setting", "first", "second", "said"),
    [
        (HERE, BITS, found(BITS), []),
        (ELSEWHERE, BITS, found(OTHER_BITS), ["2 of 2 rows differ, of the saved model"]),
        (ELSEWHERE, FLOATS, found(NEAR), []),
        (ELSEWHERE, FLOATS, found(FAR), ["2 of 2 rows differ by up to 5e-06, of the saved model"]),
        (ELSEWHERE, FLOATS, found(FLOATS, FAR), []),  # refits are counted
        (HERE, FLOATS, found(FLOATS, NEAR), ["2 of 2 rows differ after another fit"]),
        (ELSEWHERE, FLOATS, found(FLOATS, alone=1), ["1 of 2 rows differ alone"]),
    ],
)
def test_promises_of_one_machine_and_of_all(setting, first, second, said):
    case = Case("strings", object)
    assert cpus.broken("c|m|0", setting, case, found(first), second) == [f"c|m|0: {text}" for text in said]
    one_machine = Case("strings", object, one_machine=True)
    left = [text for text in said if "saved" not in text or setting.one_machine]
    assert cpus.broken("c|m|0", setting, one_machine, found(first), second) == [f"c|m|0: {text}" for text in left]


def test_floats_on_one_machine_have_the_same_bits():
    (sentence,) = cpus.broken("c|m|0", HERE, Case("strings", object), found(FLOATS), found(NEAR, FLOATS))
    assert sentence.startswith("c|m|0: 2 of 2 rows differ by up to 4.8e-07")
    assert cpus.broken("c|m|0", HERE, Case("strings", object), found(FLOATS), cpus.Found()) == [
        "c|m|0: there is no such output"
    ]


# ---- the whole command, on one kernel

ANOTHER_PROCESSOR = """
from similia.kernels.strings import Spectrum
values = Spectrum.__call__
Spectrum.__call__ = lambda self, X, Y=None: values(self, X, Y) * (1 + 1e-9)
"""


def test_the_command_fails_on_a_processor_that_computes_something_else(tmp_path, monkeypatch, capsys):
    (tmp_path / "sitecustomize.py").write_text(ANOTHER_PROCESSOR)
    settings = {"the same": cpus.Setting({}), "another": cpus.Setting({"PYTHONPATH": str(tmp_path)})}
    monkeypatch.setattr(cpus, "settings", lambda: settings)
    monkeypatch.setattr(sys, "argv", ["run.py", "cpus", "--only", "Spectrum(k=4)"])
    with pytest.raises(SystemExit) as end:
        run.main()
    said = capsys.readouterr().out
    assert end.value.code == 1  # two strings are shorter than four letters: their values are 0
    assert "broken, another: Spectrum(k=4)|values|0: 309 of 311 rows differ by up to 1e-09, of the saved model" in said
    assert "broken, the same" not in said


def test_the_command_ends_well_where_all_is_equal(monkeypatch, capsys):
    monkeypatch.setattr(cpus, "settings", lambda: {})
    monkeypatch.setattr(sys, "argv", ["run.py", "cpus", "--only", "JaroWinkler()"])
    with pytest.raises(SystemExit) as end:
        run.main()
    assert end.value.code == 0
    assert "first run" in capsys.readouterr().out


def test_a_setting_that_dies_is_broken(monkeypatch, capsys):
    monkeypatch.setattr(cpus, "settings", lambda: {"none": cpus.Setting({"PYTHONHASHSEED": "no number"})})
    rows, _ = cpus.run(1, 0, only="JaroWinkler()")
    assert [row["broken"] for row in rows] == [0, 1]
    assert "broken, none: the process: ended with code 1: " in capsys.readouterr().out


def test_a_part_of_the_table_is_not_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", "cpus", "--quick", "--output", str(tmp_path / "r.md")])
    with pytest.raises(SystemExit):
        run.main()
    assert "a part is not written" in capsys.readouterr().err


def test_the_page_is_made_of_sections_alone():
    """What stands outside of one would be lost when a command writes its own."""
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    for section in run._SECTION.finditer(page):
        assert run.updated(page, section["name"], section["body"]) == page
        assert section["body"].count("\n## ") == 0
