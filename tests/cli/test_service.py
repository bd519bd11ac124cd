"""What services need: loops compiled ahead, what takes long in the log, what a model file holds."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app

CODES = np.random.default_rng(0).integers(256, size=(60, 4), dtype=np.uint8)


def test_warmup_runs_loops_of_all_modules_that_have_some():
    program = (
        "import importlib, pkgutil, sys, similia as sm\n"
        "for module in pkgutil.walk_packages(sm.__path__, 'similia.'):\n"  # also those that load only when needed
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "sm.warmup()\n"
        "from numba.core.registry import CPUDispatcher\n"
        "ours = [module for name, module in sys.modules.items() if name.startswith('similia.')]\n"
        "for module in ours:\n"
        "    loops = [value for value in vars(module).values() if isinstance(value, CPUDispatcher)]\n"
        "    loops = [loop for loop in loops if loop.py_func.__module__ == module.__name__]\n"
        "    if loops and not any(loop.overloads for loop in loops): print(module.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    inner = {
        "similia.core.hashing",
        "similia.alignments",
    }  # loops of loops elsewhere, of which a cache knows nothing
    assert set(done.stdout.split()) <= inner
    assert done.stderr == ""


def test_warmup_of_some_kinds(capsys):
    assert list(sm.warmup(["codes"])) == ["codes"]
    assert list(sm.warmup("codes")) == ["codes"]
    for kinds in (["molecules"], "molecules"):
        with pytest.raises(ValueError, match="unknown kind 'molecules', expected one of strings, graphs"):
            sm.warmup(kinds)
    done = CliRunner().invoke(app, ["warmup", "codes", "--json"])
    assert list(json.loads(done.stdout)["seconds"]) == ["codes"]


def test_what_takes_long_is_logged_and_nothing_is_printed_unless_asked_for(caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="similia"):
        sm.HammingIndex(32, "multihash").fit(CODES).add(CODES, np.arange(60, 120)).kneighbors(CODES[:2], 3)
    told = [(record.name, record.getMessage().rpartition(":")[0]) for record in caplog.records]
    assert told == [
        ("similia.search.hamming_index", "multihash structure of 60 codes, 60 of them new"),
        ("similia.search.hamming_index", "HammingIndex.fit"),
        ("similia.search.hamming_index", "HammingIndex.add"),
        ("similia.search.hamming_index", "multihash structure of 120 codes, 60 of them new"),
    ]
    assert {record.levelname for record in caplog.records} <= {"DEBUG", "INFO"}
    assert capsys.readouterr() == ("", "")


def test_what_is_compiled_is_logged(caplog):
    from similia.core.jit import njit

    space = {"__name__": "similia.example"}
    exec("def three(): return 3", space)  # of no file, so that it is never found in a cache
    with caplog.at_level(logging.DEBUG, logger="similia"):
        assert njit()(space["three"])() == 3
    assert [record.name for record in caplog.records] == ["similia.compile"]
    assert caplog.records[0].getMessage().startswith("similia.example.three: ")


def test_what_others_compile_is_compiled_as_before():
    from numba import int64
    from numba.experimental import jitclass

    import similia.core.jit  # noqa: F401  (it listens)

    class Counter:
        def __init__(self):
            self.n = 3

    assert jitclass([("n", int64)])(Counter)().n == 3


def test_info_of_a_model(tmp_path):
    words = ["ACGTACGT", "ACGTTCGT", "GGCCGGCC", "GGCCGGTC"]
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_landmarks=3, n_bits=64, random_state=0).fit(
        words, list("aabb")
    )
    path = sm.save(model, tmp_path / "m.similia")
    facts = json.loads(CliRunner().invoke(app, ["info", str(path), "--json"]).stdout)
    assert (facts["written_by"], facts["read_by"]) == (sm.__version__, sm.__version__)
    assert [step["name"] for step in facts["steps"]] == [name for name, _ in model.steps]
    assert facts["classes"] == ["a", "b"]
    said = CliRunner().invoke(app, ["info", str(path)]).stdout
    assert f"written by similia {sm.__version__}" in said
    assert "similia index info" in str(CliRunner().invoke(app, ["info", str(tmp_path)]).exception)
