"""The life of an estimator: unfitted, fitted, and never in between, whatever stops a fit."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import similia as sm
from similia.core.config import SharedLock
from similia.core.estimators import all_at_once, detached

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
import interrupts

LEARNING = {"fit", "fit_transform", "fit_predict", "partial_fit", "add", "remove", "update", "extend"}


class Halfway(BaseEstimator):
    """An estimator that sets two attributes and may fail between them."""

    def __init__(self, error=None):
        self.error = error

    @all_at_once
    def fit(self, value):
        self.first_ = value
        if self.error is not None:
            raise self.error
        self.second_ = value
        return self

    def plain_fit(self, value):
        return inspect.unwrap(Halfway.fit)(self, value)


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), SystemExit()])
def test_a_failed_fit_changes_nothing(error):
    model = Halfway(error)
    with pytest.raises(type(error)):
        model.fit(1)
    assert vars(model) == {"error": error}
    fitted = Halfway().fit(1)
    fitted.error = error
    with pytest.raises(type(error)):
        fitted.fit(2)
    assert (fitted.first_, fitted.second_) == (1, 1)
    with pytest.raises(type(error)):
        fitted.plain_fit(2)
    assert (fitted.first_, fitted.second_) == (2, 1)  # without the decorator it is a mixture


def test_a_fit_returns_the_estimator_itself():
    model = Halfway()
    assert model.fit(1) is model
    assert vars(model) == {"error": None, "first_": 1, "second_": 1}


def test_a_detached_copy_has_parameters_of_its_own_and_shares_the_rest():
    inner = sm.kernels.Spectrum(k=2)
    kernel = sm.kernels.Sum([sm.kernels.Normalized(inner), len], weights=np.ones(2))
    kernel.learnt_ = inner
    copy = detached(kernel)
    assert (copy.weights is kernel.weights, copy.learnt_ is inner, copy.kernels[1] is len) == (True, True, True)
    kernel.set_params(k0__kernel__k=3, k1=inner)
    assert (copy.kernels[0].kernel.k, copy.kernels[1]) == (2, len)
    assert detached(len) is len
    assert detached(sm.kernels.Spectrum) is sm.kernels.Spectrum


def test_a_method_that_is_not_always_offered_shows_its_own_docstring():
    kneighbors = inspect.getattr_static(sm.OutlierDetector, "kneighbors")  # what tools read from the class
    assert inspect.getdoc(kneighbors) == inspect.getdoc(sm.OutlierDetector.kneighbors)
    assert "nearest training objects" in kneighbors.__doc__


def test_a_failed_fit_keeps_the_kernel_of_the_fit_before():
    X, kernel = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC"], sm.kernels.Spectrum(k=2)
    model = sm.KernelSVC(kernel).fit(X, [0, 0, 1, 1])
    before = model.decision_function(["TTACAT", "GCGC"])
    with pytest.raises(ValueError, match="has 3 labels"):
        model.set_params(kernel__k=1).fit(X, [0, 0, 1])
    np.testing.assert_array_equal(model.decision_function(["TTACAT", "GCGC"]), before)


def estimators():
    """Return all public estimators of all rooms."""
    found = set()
    for room in (name for name, home in sm._NAMES.items() if home == ""):
        module = importlib.import_module(f"similia.{room}")
        for name in dir(module):
            value = getattr(module, name, None)
            if inspect.isclass(value) and issubclass(value, BaseEstimator) and value.__module__.startswith("similia."):
                found.add(value)
    return sorted(found, key=lambda kind: kind.__name__)


def test_every_method_that_learns_is_all_at_once():
    missing = []
    for kind in estimators():
        for name in LEARNING:
            method = getattr(kind, name, None)
            ours = method is not None and method.__module__.startswith("similia.")
            calls = () if not ours else inspect.unwrap(method).__code__.co_names
            if ours and not getattr(method, "learns", False) and not {"_learn", "_append", "_add"} & set(calls):
                missing.append(f"{kind.__name__}.{name}")
    assert not missing
    assert len([kind for kind in estimators() if hasattr(kind, "fit")]) >= 30


CASES = interrupts.cases()
STATELESS = (sm.KernelFeatures,)


def test_no_estimator_is_forgotten():
    tried = {type(estimator) for estimator, *_ in CASES.values()} | {sm.scale.ShardedIndex}
    tried |= {sm.objects.FromColumn}  # keeps the name of a column only
    # stopped, these two keep the best so far: tests/selection/test_select.py
    tried |= {sm.AutoClassifier, sm.AutoRegressor}
    assert {kind for kind in estimators() if hasattr(kind, "fit")} - tried == set()


class Leaky(BaseEstimator):
    """An estimator that can be used before its fit has ended."""

    def fit(self, X):
        self.scale_ = 1.0
        self.scale_ = 2.0 + float(interrupts.OwnFunction()(X).sum())
        return self

    def transform(self, X):
        check_is_fitted(self)
        return np.array([len(x) * self.scale_ for x in X])


def stop_all():
    """Return by name what each case was before, and what became of it when it was stopped."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, parts in CASES.items():
            case, random = interrupts.Case(*parts), Random(name)
            found[name] = case.before, [case.stopped(random) for _ in range(3)]
        leaky = interrupts.Case(Leaky(), None, lambda model: model.fit(["AC", "A"]), ["AC", "GGG"])
        found["leaky"] = leaky.before, [leaky.stopped(Random(seed)) for seed in range(20)]
    return found


@pytest.fixture(scope="module")
def stopped():
    """What `stop_all` returns, of a process of its own: coverage is measured by code that a signal may stop, too."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_call_leaves_an_estimator_as_it_was_or_complete(name, stopped):
    before, kinds = stopped[name]
    assert "mixed" not in kinds
    stateless = isinstance(CASES[name][0], STATELESS)
    if CASES[name][1] is None and not stateless:
        assert before == "unfitted"
    elif not stateless and "Vote" not in name and "KNeighbors" not in name:
        assert before != "unfitted"


def test_the_search_for_mixtures_can_find_one(stopped):
    before, kinds = stopped["leaky"]
    assert before == "unfitted"
    assert "mixed" in kinds


def test_d2ke_is_not_fitted_before_gamma_is_known():
    calls = []

    def fails_at_the_median(X, Y):
        calls.append(1)
        raise RuntimeError("no distance")

    model = sm.D2KE(fails_at_the_median, 4, objects=["A", "C"], random_state=0)
    with pytest.raises(RuntimeError):
        model.fit(["AC", "CA", "A"])
    assert calls
    with pytest.raises(NotFittedError):
        model.transform(["AC"])


def test_properties_of_an_unfitted_search_say_so():
    search = sm.SimilaritySearch(sm.Nystroem(sm.kernels.Spectrum()))
    for name in ("n_features_in_", "feature_names_in_"):
        with pytest.raises(NotFittedError):
            getattr(search, name)


def test_a_lock_is_free_after_its_holder_was_stopped():
    lock = SharedLock()
    for use in (lock.reading, lock.writing):
        with pytest.raises(KeyboardInterrupt), use():
            raise KeyboardInterrupt
    done = []
    thread = threading.Thread(target=lambda: done.append(lock.writing().__enter__()), daemon=True)
    thread.start()
    thread.join(timeout=10)
    assert done == [None]


def test_threads_that_add_to_one_index_lose_nothing():
    index = sm.HammingIndex(64)
    codes = np.random.default_rng(0).integers(256, size=(400, 8), dtype=np.uint8)

    def add(start):
        for row in range(start, 400, 4):
            index.add(codes[[row]], [row])

    threads = [threading.Thread(target=add, args=(start,), daemon=True) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert sorted(index.ids) == list(range(400))
    np.testing.assert_array_equal(index.reconstruct(range(400)), codes)


def test_a_failed_update_of_an_index_saves_nothing(tmp_path, monkeypatch):
    codes = np.random.default_rng(0).integers(256, size=(20, 8), dtype=np.uint8)
    index = sm.HammingIndex(64).fit(codes)
    index.save(tmp_path / "index")
    from similia.search.hamming_index import Rows

    monkeypatch.setattr(Rows, "append", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index.update(codes[:3], [3, 4, 5])
    monkeypatch.undo()
    index.save(tmp_path / "index")
    again = sm.HammingIndex.load(tmp_path / "index")
    np.testing.assert_array_equal(again.ids, np.arange(20))
    np.testing.assert_array_equal(again.reconstruct(), codes)


def test_a_fit_does_not_take_the_lock_of_logging():
    """Ctrl-C while it is taken leaves it locked, and threads that fit later would wait for ever."""
    sm.SignRandomProjection(64, random_state=0).fit(np.ones((2, 3)))  # imports what it needs

    def fit():
        sm.SignRandomProjection(64, random_state=0).fit(np.ones((2, 3)))

    with logging._lock:
        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()


if __name__ == "__main__":
    print(json.dumps(stop_all()))
