"""Ctrl-C while numba compiles: KeyboardInterrupt, and a function that works afterwards."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading

import pytest
from numba.core.codegen import CodeLibrary

SOURCE = """
from similia.core.jit import njit

@njit()
def inner(x):
    return x + 1

@njit()
def outer(n):
    total = 0
    for i in range(n):
        total += inner(i)
    return total
"""


@pytest.fixture
def loops(tmp_path, monkeypatch):
    """A module of similia with two loops that were never compiled, and Ctrl-C in the callbacks of LLVM that follow."""
    path, name, enabled = tmp_path / "loops.py", "similia.loops_of_a_test", "_object_caching_enabled"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    module.presses = 0

    def looked_up(library):
        if sys._getframe(1).f_code.co_name == "_object_compiled_hook" and module.presses:
            module.presses -= 1
            signal.raise_signal(signal.SIGINT)
        return library.__dict__.get(enabled, False)

    monkeypatch.setattr(
        CodeLibrary, enabled, property(looked_up, lambda library, value: library.__dict__.update({enabled: value}))
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield module
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_a_callback_of_the_compiler_stops_and_breaks_nothing(loops, presses):
    loops.presses = presses
    for _ in range(presses):
        with pytest.raises(KeyboardInterrupt):
            loops.outer(4)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert loops.outer(4) == 10
    assert loops.presses == 0


def test_handlers_of_others_and_other_threads_are_left_alone(loops):
    got = []
    signal.signal(signal.SIGINT, lambda *_: got.append(signal.getsignal(signal.SIGINT)))
    own = signal.getsignal(signal.SIGINT)
    loops.presses = 1
    assert loops.inner(1) == 2
    assert got == [own]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = []
    thread = threading.Thread(target=lambda: results.append(loops.outer(4)))
    thread.start()
    thread.join()
    assert results == [10]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
