"""Digests of functions by what they do, and the memory of D2KE that goes by them."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from types import FunctionType, ModuleType

import numpy as np
import pytest

import similia as sm
from samples.d2ke import Calls
from similia.core.hashing import digest_of, fingerprint
from similia.core.jit import njit


def made(text, name="f", **names):
    """Return what a source defines, as if it stood in a module of the user's."""
    space = {"__name__": "of_the_user", "np": np, "sm": sm, "functools": functools, "njit": njit, **names}
    exec(text, space)
    return space[name]


def digest(value):
    return fingerprint(value, "it")


PAIRS = {
    "constant": ("def f(x): return x + 1", "def f(x): return x + 2"),
    "operation": ("def f(x): return x + 1", "def f(x): return x - 1"),
    "attribute": ("def f(x): return np.sin(x)", "def f(x): return np.cos(x)"),
    "default": ("def f(x, p=1): return x + p", "def f(x, p=2): return x + p"),
    "keyword default": ("def f(x, *, p=1): return x + p", "def f(x, *, p=2): return x + p"),
    "global": ("P = 1\ndef f(x): return x + P", "P = 2\ndef f(x): return x + P"),
    "array": ("P = np.ones(3)\ndef f(x): return x + P", "P = np.zeros(3)\ndef f(x): return x + P"),
    "helper": ("def g(x): return 1\ndef f(x): return g(x)", "def g(x): return 2\ndef f(x): return g(x)"),
    "closure": (
        "def make(p):\n    def f(x): return p\n    return f\nf = make(1)",
        "def make(p):\n    def f(x): return p\n    return f\nf = make(2)",
    ),
    "inner function": ("def f(x): return (lambda y: y + 1)(x)", "def f(x): return (lambda y: y)(x)"),
    "recursive": ("def f(x): return f(x - 1) if x > 0 else 0", "def f(x): return f(x - 1) if x > 0 else 1"),
    "method": (
        "class F:\n    def __call__(self, x): return 1\nf = F()",
        "class F:\n    def __call__(self, x): return 2\nf = F()",
    ),
    "base class": (
        "class A:\n    def __call__(self, x): return 1\nclass F(A): pass\nf = F()",
        "class A:\n    def __call__(self, x): return 2\nclass F(A): pass\nf = F()",
    ),
    "class attribute": (
        "class F:\n    p = 1\n    def __call__(self, x): return self.p\nf = F()",
        "class F:\n    p = 2\n    def __call__(self, x): return self.p\nf = F()",
    ),
    "property": (
        "class F:\n    @property\n    def p(self): return 1\nf = F()",
        "class F:\n    @property\n    def p(self): return 2\nf = F()",
    ),
    "static method": (
        "class F:\n    @staticmethod\n    def p(): return 1\nf = F()",
        "class F:\n    @staticmethod\n    def p(): return 2\nf = F()",
    ),
    "cached method": (
        "class F:\n    @functools.cache\n    def p(self): return 1\nf = F()",
        "class F:\n    @functools.cache\n    def p(self): return 2\nf = F()",
    ),
    "cached property": (
        "class F:\n    @functools.cached_property\n    def p(self): return 1\nf = F()",
        "class F:\n    @functools.cached_property\n    def p(self): return 2\nf = F()",
    ),
    "compiled method": (
        "class F:\n    p = njit()(lambda self: 1)\nf = F()",
        "class F:\n    p = njit()(lambda self: 2)\nf = F()",
    ),
    "number of numpy": ("class F:\n    p = np.float32(1)\nf = F()", "class F:\n    p = np.float32(2)\nf = F()"),
    "kernel of a class": (
        "class F:\n    p = sm.kernels.Spectrum(k=1)\nf = F()",
        "class F:\n    p = sm.kernels.Spectrum(k=2)\nf = F()",
    ),
    "nested class": (
        "class F:\n    class G:\n        p = 1\nf = F()",
        "class F:\n    class G:\n        p = 2\nf = F()",
    ),
    "keyword only": ("def f(x, y): return x", "def f(x, *, y): return x"),
    "positional only": ("def f(x, y): return x", "def f(x, /, y): return x"),
    "starred": ("def f(*x): return x", "def f(**x): return x"),
    "range of try": (
        "def f(x):\n    try:\n        x()\n        x()\n    except TypeError: pass",
        "def f(x):\n    try:\n        x()\n    except TypeError: pass\n    else:\n        x()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PAIRS)
def test_a_changed_function_has_another_digest(kind):
    first, second = PAIRS[kind]
    assert digest(made(first)) == digest(made(first))
    assert digest(made(first)) != digest(made(second))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: functools.partial(f, 3), lambda f: functools.cache(f), lambda f: sm.pairwise(f), lambda f: [f],
        lambda f: sm.distances.FromFunction(f), lambda f: {"f": f}, lambda f: njit()(f),
        lambda f: type("K", (), {"g": f})().g,
        lambda f: sm.kernels.DistanceRBF(sm.distances.FromFunction(f)),
    ],
)  # fmt: skip
def test_functions_are_found_wherever_they_are(wrap):
    first, second = (made(text) for text in PAIRS["constant"])
    again = made(PAIRS["constant"][0])
    assert digest(wrap(first)) == digest(wrap(again))
    assert digest(wrap(first)) != digest(wrap(second))


def test_what_exec_makes_without_a_module_counts_by_its_code():
    spaces = [{}, {}, {}]
    for space, factor in zip(spaces, (1, 1, 2), strict=True):
        exec(f"class C:\n    w = {factor}\ndef f(x): return x * C.w", space)  # its module seems to be builtins
    first, again, second = (digest(space["f"]) for space in spaces)
    assert first == again != second


def test_what_is_installed_counts_by_its_name():
    assert digest(np.sin) == digest(np.sin)
    assert digest(np.sin) != digest(np.cos)
    assert digest(os.path.join) != digest(os.path.split)
    assert digest(sm.kernels.Spectrum(k=2)) != digest(sm.kernels.Spectrum(k=3))
    assert digest(sm.kernels.Spectrum(k=2)) == digest(sm.kernels.Spectrum(k=2))


def test_closures_of_installed_packages_count_by_their_code():
    assert digest(njit()) == digest(njit())
    assert digest(njit()) != digest(njit(reassociate=True))


def test_a_partial_that_looks_like_its_function_keeps_its_arguments():
    function = made("def f(x, scale): return x * scale")
    one, again, two = (functools.update_wrapper(functools.partial(function, scale=s), function) for s in (1, 1, 2))
    assert digest(one) == digest(again) != digest(two)


def test_modules_of_packages_count_by_what_is_used_of_them():
    def using(text):
        package, inner = ModuleType("own"), ModuleType("own.inner")
        package.inner, inner.own, inner.g = inner, package, made(text, "g")
        return made("def f(x): return own.inner.g(x)", own=package)

    first, second = "def g(x): return 1", "def g(x): return 2"
    assert digest(using(first)) == digest(using(first)) != digest(using(second))


def test_classes_of_c_have_digests():
    assert len({digest(kind) for kind in (type(None), FunctionType, type(len), type(dict.fromkeys))}) == 3


def test_comments_and_places_count_for_nothing():
    first, second = made("def f(x): return x + 1"), made("\n\n# a comment\ndef f(x):\n    return x + 1")
    assert digest(first) == digest(second)


def test_what_cannot_be_told_apart_is_refused():
    import threading

    with pytest.raises(TypeError, match=r"^the distance has no digest, because a part of it cannot be pickled"):
        fingerprint([threading.Lock()], "the distance")


def test_digests_are_those_of_other_processes(tmp_path):
    (tmp_path / "own.py").write_text("NAMES = {'a', 'b', 'c'}\ndef f(x): return x in NAMES or x in {'q', 'r', 's'}\n")
    code = "import own; from similia.core.hashing import fingerprint; print(fingerprint(own.f, 'it'))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
            capture_output=True, check=True,
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(found) == 1


def test_the_memory_of_d2ke_forgets_a_changed_function(tmp_path):
    calls = Calls()
    values = "[[abs(len(x) - len(y)) * FACTOR + 1.0 for y in Y] for x in X]"
    text = f"def f(X, Y):\n    calls.append(1)\n    return np.array({values})"
    words = ["a", "bcd", "ef", "ghij"]

    def embed(factor):
        distance = made(text.replace("FACTOR", str(factor)), calls=calls)
        return sm.D2KE(
            distance, 3, objects=["a", "bb", "cccc"], gamma=1.0, random_state=0, memory=tmp_path
        ).fit_transform(words)

    first, n = embed(1), len(calls)
    np.testing.assert_array_equal(embed(1), first)
    assert len(calls) == n  # nothing was computed
    second = embed(2)
    assert len(calls) > n
    lengths = np.abs(np.array([1, 3, 2, 4])[:, None] - np.array([1, 2, 4]))
    np.testing.assert_allclose(second, np.exp(-(2.0 * lengths + 1)) / np.sqrt(3), rtol=1e-12)
    np.testing.assert_array_equal(embed(1), first)


def test_a_stream_does_not_go_on_with_a_changed_function():
    models = [sm.Nystroem(made(text)) for text in PAIRS["constant"]]
    again = sm.Nystroem(made(PAIRS["constant"][0]))
    assert digest_of(models[0]) == digest_of(again)
    assert digest_of(models[0]) != digest_of(models[1])
