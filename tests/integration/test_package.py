"""The package as a whole: what importing costs, what names exist, and one way to compile loops."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import similia as sm
from similia.core.config import settings

HEAVY = ("numba", "sklearn", "scipy", "faiss", "matplotlib", "dask", "pandas", "networkx")


def loaded_after(statement):
    """Which heavy modules a fresh interpreter has loaded after `statement`."""
    code = f"import sys\n{statement}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_loads_nothing_heavy():
    assert loaded_after("import similia") == []


def test_help_loads_nothing_heavy():
    assert loaded_after("import similia.cli.app") == []


def test_the_import_test_can_fail():
    assert "sklearn" in loaded_after("import similia; similia.Nystroem")


@pytest.mark.parametrize("room", ["similia", "similia.objects", "similia.kernels", "similia.embeddings",
                                  "similia.codes", "similia.learn", "similia.datasets"])  # fmt: skip
def test_every_public_name_exists_and_is_documented(room):
    module = __import__(room, fromlist=["x"])
    assert module.__doc__
    for name in dir(module):
        assert getattr(module, name).__doc__, f"{room}.{name} has no docstring"


def test_unknown_names_raise_attribute_error():
    with pytest.raises(AttributeError, match=r"has no attribute 'Nystrom' \(did you mean Nystroem\?\)"):
        sm.Nystrom  # noqa: B018


def test_max_memory_is_parsed_restored_and_checked():
    with sm.config(max_memory="1.5KiB") as outer, sm.config(n_jobs=2) as inner:
        assert (outer.max_memory, inner.max_memory, inner.n_jobs) == (1536, 1536, 2)
    with sm.config() as after:
        assert (after.max_memory, after.n_jobs) == (2**30, None)
    for wrong in ("12 apples", "-5", 0):
        with pytest.raises(ValueError, match="max_memory"), sm.config(max_memory=wrong):
            pass


def test_settings_hold_in_the_thread_that_entered_them_and_only_inside_with():
    with sm.config(max_memory="1KiB"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: settings().max_memory).result() == 2**30
        assert settings().max_memory == 1024
    sm.config(max_memory="1KiB")
    assert settings().max_memory == 2**30


def test_loops_compile_where_numba_finds_no_cache_folder():
    code = "from similia.core.jit import njit\ndef double(x):\n    return 2 * x\nprint(njit()(double)(21))"
    with_cache = code.replace("njit()(double)", "__import__('numba').njit(cache=True)(double)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "42\n"
    refused = subprocess.run([sys.executable, "-c", with_cache], capture_output=True, text=True)
    assert "cannot cache function" in refused.stderr


def test_progress_is_silent_unless_asked_for(capsys, monkeypatch):
    import rich.progress

    from similia.core.config import track

    drawn = []
    add_task = rich.progress.Progress.add_task
    monkeypatch.setattr(
        rich.progress.Progress, "add_task", lambda self, name, **kw: drawn.append(name) or add_task(self, name, **kw)
    )

    assert list(track(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
    with sm.config(progress=True):
        nested = [(i, j) for i in track(range(2), "outer", 2) for j in track(range(2), "inner", 2)]
        assert next(track([7], "left early")) == 7
        assert list(track([1], "after that")) == [1]
    assert nested == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert drawn == ["outer", "inner", "inner", "left early", "after that"]


@pytest.mark.parametrize("seed", [None, 3, np.random.default_rng(3), np.random.RandomState(3)])
def test_any_random_state_of_scikit_learn_is_taken(seed):
    from similia.core.validation import generator

    assert isinstance(generator(seed), np.random.Generator)


def test_a_wrong_random_state_is_named():
    from similia.core.validation import generator

    with pytest.raises(
        ValueError, match="random_state must be None, an integer >= 0 or a numpy generator, got 'seven'"
    ):
        generator("seven")
