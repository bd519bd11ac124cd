"""Fits that stop at random moments: is a model ever usable by mistake, or a mixture of two?

python tests/faults/run.py interrupts --inputs 1000
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import joblib
import numpy as np
from _models import _CODES, _SERIES, _VECTORS, _WORDS, _Y, _graph_list
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.core.estimators import twin_of

TITLE = "Interrupted fits"
TEXT = """
Every public estimator is fitted, and fitted again to other objects. Meanwhile, a timer raises an exception at a random
moment of the call (uniform over the time that an undisturbed call takes), or the user's kernel or distance raises one
in one of its calls, chosen at random. `partial_fit`, `add`, `remove`, `update` and `extend` are stopped in the same
way. Afterwards an estimator is *unfitted* (as before; every method raises `NotFittedError`), *as before* or *complete*
(the call had ended). What it returns for objects is compared bit for bit with models that nothing stopped. *Mixed* is
anything else, such as a usable model that equals neither the old nor the new one.
"""
INPUTS = 1000
MUST_BE_ZERO = ("mixed",)


class Stopped(BaseException):
    """What the timer raises, like Ctrl-C: no code that catches errors catches it."""


class OwnFunction:
    """A similarity or distance of words that raises in its call number `fails_at`."""

    calls, fails_at = 0, 0

    def __call__(self, X: Any, Y: Any = None) -> Any:
        OwnFunction.calls += 1
        if OwnFunction.calls == OwnFunction.fails_at:
            raise RuntimeError("the user's function fails")
        return np.array([[abs(len(x) - len(y)) + float(x[0] != y[0]) for y in (X if Y is None else Y)] for x in X])

    def __sklearn_clone__(self) -> OwnFunction:
        return self


class OwnKernel(OwnFunction):
    """The same as a kernel."""

    def __call__(self, X: Any, Y: Any = None) -> Any:
        return np.exp(-super().__call__(X, Y))


Call = Callable[[Any], Any]


def cases() -> dict[str, tuple[Any, Call | None, Call, Any]]:
    """Return by name an estimator, what makes it fitted (None: nothing), the call that is stopped, and objects."""
    k, d, c, s = sm.kernels, sm.distances, sm.codes, {"random_state": 0}
    labels, graphs, table = [0, 1] * 4, _graph_list(), {"w": _WORDS, "v": list(range(8))}
    encoder = make_pipeline(sm.Nystroem(k.Spectrum(), 4, **s), c.SignRandomProjection(64, **s))
    own, kernel = OwnFunction(), OwnKernel()
    fits = [
        (sm.Nystroem(kernel, 4, **s), _WORDS), (sm.Nystroem(k.Spectrum(), 4, landmarks="rpcholesky", **s), _WORDS),
        (sm.D2KE(own, 4, **s), _WORDS), (sm.D2KE(d.DTW(), 4, **s), _SERIES), (sm.PseudoEuclidean(own, 3), _WORDS),
        (sm.KernelFeatures(k.Spectrum(), 64), _WORDS), (sm.OpticalRandomFeatures(6, **s), _VECTORS),
        (sm.HeatRandomFeatures(8, 2.0, **s), _VECTORS), (sm.GraphletSampling(4, 20, n_components=8, **s), graphs),
        (sm.recipes.FeatureScaler(), _VECTORS), (c.SignRandomProjection(64, **s), _VECTORS),
        (c.ITQ(8, max_iter=3, **s), _VECTORS), (c.SignCodes(), _VECTORS), (c.LevelEncoder(4, 64, **s), _VECTORS),
        (sm.GeneralizedNystroemPCA(4, 1.0, 0.9, **s), _VECTORS), (c.FractionalPowerEncoder(n_bits=64, **s), _VECTORS),
        (c.MinHash(k.Spectrum(), 64, **s), _WORDS),
        (c.NGramEncoder(n_bits=64, **s), _WORDS), (c.SequenceEncoder(4, n_bits=64, **s), _SERIES),
        (sm.embeddings.SeriesVectors(), _SERIES[::3] * 2), (sm.embeddings.Hydra(2, 2, **s), _SERIES),
        (sm.IntervalQuantiles(2), _SERIES), (sm.embeddings.SparseScaler(), np.abs(_VECTORS)),
        (sm.RandomConvolutions(84, **s), _SERIES), (sm.objects.SeriesToSets(2), _SERIES),
        (sm.MeanMapFeatures(8, **s), _VECTORS[:, None]), (sm.objects.GraphToSets(degrees=True), graphs),
        (sm.FeatureWeights(), np.abs(_VECTORS)),
        (c.GraphHDEncoder(64, n_iter=5, **s), graphs), (sm.objects.AttributeScaler(), graphs),
        (c.RecordEncoder([("w", c.NGramEncoder(n_bits=64, **s)), (["v"], c.LevelEncoder(4, 64, **s))], **s), table),
        (sm.HDClassifier(max_iter=2, **s), _CODES, _Y), (sm.learn.HeatSVC(contrast=2.0), _VECTORS, _Y),
        (sm.HDClassifier("margin", max_iter=2, **s), _CODES, _Y), (sm.HDClassifier("ridge", **s), _CODES, _Y),
        (sm.learn.HeatSVC(cv=2, **s), _VECTORS, _Y), (sm.learn.KernelSVC(kernel), _WORDS, labels),
        (sm.learn.KernelRidge(kernel), _WORDS, labels), (sm.learn.KernelSVR(kernel), _WORDS, labels),
        (sm.GaussianProcessRegressor(kernel, **s), _WORDS, labels),
        (sm.GaussianProcessClassifier(kernel, **s), _WORDS, labels),
        (sm.OutlierDetector(own, n_neighbors=2), _WORDS),
        (sm.search.SimilarityMap(d.FromFunction(own, True), n_landmarks=4, **s), _WORDS),
        (sm.KernelKMeans(kernel, [2, 3], 4, n_init=2, **s), _WORDS),
        (sm.KernelKMeans(d.FromFunction(own, True), 2, 4, **s), _WORDS),
        (sm.HDBSCAN(d.FromFunction(own, True), 2, **s), _WORDS),
        (sm.learn.KNeighborsClassifier(own), _WORDS, labels), (sm.learn.KNeighborsRegressor(own), _WORDS, labels),
        (sm.NearestNeighbors(own, 1), _WORDS),
        (sm.VoteClassifier([sm.learn.KernelSVC(kernel), sm.learn.KNeighborsClassifier(own)]), _WORDS, labels),
        (sm.VoteRegressor([sm.learn.KNeighborsRegressor(own)]), _WORDS, labels), (sm.HammingIndex(64), _CODES),
        (sm.search.FeatureIndex(k.MinMax(k.Spectrum())), _WORDS), (sm.search.VectorIndex(**s), _VECTORS),
        (sm.ConformalClassifier(sm.learn.KernelSVC(kernel), "cross", cv=2, **s), _WORDS, labels),
        (sm.ConformalRegressor(sm.learn.KernelRidge(kernel), **s), _WORDS, labels),
        (sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=6), _WORDS),
        (sm.recipes.nyshd(kernel, n_landmarks=4, n_bits=64, **s), _WORDS, labels),
        (sm.recipes.d2ke(own, 4, **s), _WORDS, labels),
        (sm.recipes.d2ke(own, 4, gamma="tune", cv=2, **s), _WORDS, labels),
        (sm.recipes.graphlet_optical(4, 20, 8, **s), graphs, labels),
        (sm.recipes.pca_itq(8, sample_fraction=1.0, feature_fraction=1.0, **s), _VECTORS),
    ]  # fmt: skip
    found: dict[str, tuple[Any, Call | None, Call, Any]] = {}
    for estimator, X, *y in fits:
        n = 8 if isinstance(X, dict) else len(X)
        first, other = _fit(X, y, range(n - 2)), _refit(X, y, range(n - 1, -1, -1))
        name = type(estimator).__name__ + ("" if not hasattr(estimator, "steps") else f" ({estimator.steps[0][0]})")
        name += f" {sum(known.startswith(name) for known in found) // 2 + 1}"
        found[f"{name}, fit"] = estimator, None, first, X
        found[f"{name}, refit"] = estimator, first, other, X
    codes, half = sm.HammingIndex(64), _CODES[:12]
    on = lambda estimator, start, call, X: (estimator, start, call, X)  # noqa: E731
    index = lambda model: model.fit(half)  # noqa: E731
    features = sm.search.FeatureIndex(k.MinMax(k.Spectrum()))
    vectors, some = sm.search.VectorIndex(**s), lambda model: model.fit(_VECTORS[:9])
    search = sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=6)
    searched = lambda model: model.fit(_WORDS[:5])  # noqa: E731
    classifier = sm.HDClassifier(**s)
    taught = lambda model: model.partial_fit(half, _Y[:12], classes=[0, 1])  # noqa: E731
    pca = sm.GeneralizedNystroemPCA(4, 1.0, 0.9, **s)
    found |= {
        "HammingIndex, add": on(codes, index, lambda m: m.add(_CODES[12:]), half),
        "HammingIndex, remove": on(codes, index, lambda m: m.remove(range(9)), half),
        "HammingIndex, update": on(codes, index, lambda m: m.update(_CODES[12:], range(12)), half),
        "FeatureIndex, add": on(features, searched, lambda m: m.add(_WORDS[5:]), _WORDS),
        "FeatureIndex, remove": on(features, searched, lambda m: m.remove([1, 3]), _WORDS),
        "VectorIndex, add": on(vectors, some, lambda m: m.add(_VECTORS[9:]), _VECTORS),
        "VectorIndex, remove": on(vectors, some, lambda m: m.remove([1, 3]), _VECTORS),
        "SimilaritySearch, add": on(search, searched, lambda m: m.add(_WORDS[5:]), _WORDS),
        "SimilaritySearch, remove": on(search, searched, lambda m: m.remove([1, 3]), _WORDS),
        "HDClassifier, first partial_fit": on(classifier, None, taught, _CODES),
        "HDClassifier, partial_fit": on(classifier, taught, lambda m: m.partial_fit(_CODES, 1 - _Y), _CODES),
        "PCA, first partial_fit": on(pca, None, lambda m: m.partial_fit(_VECTORS[:12]), _VECTORS),
        "PCA, partial_fit": on(
            pca, lambda m: m.partial_fit(_VECTORS[:12]), lambda m: m.partial_fit(_VECTORS[12:]), _VECTORS
        ),
        "D2KE, extend": on(
            sm.D2KE(own, 4, objects=sm.embeddings.RandomStrings(length=3), **s),
            lambda m: m.fit(_WORDS), lambda m: m.extend(9), _WORDS,
        ),
    }  # fmt: skip
    return found


def _fit(X: Any, y: list[Any], rows: Any) -> Call:
    """Return a call that fits an estimator to some of the objects."""
    if isinstance(X, dict):
        some: Any = {name: [column[i] for i in rows] for name, column in X.items()}
    else:
        some = X[list(rows)] if isinstance(X, np.ndarray) else [X[i] for i in rows]
    chosen = [[label[i] for i in rows] for label in y]
    return lambda model: model.fit(some, *chosen)


def _refit(X: Any, y: list[Any], rows: Any) -> Call:
    """Return a call that fits an estimator anew, from another seed where it has one."""
    fit = _fit(X, y, rows)
    return lambda model: fit(model.set_params(random_state=1) if "random_state" in model.get_params() else model)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in this block after so many seconds, unless it has ended."""

    def stop(*_: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def answer(model: Any, X: Any) -> str:
    """Return a digest of what a model says of objects, or "unfitted" if every method refuses."""
    said: list[Any] = []
    for name in ("transform", "predict", "decision_function", "predict_proba", "kneighbors", "search"):
        try:
            method = getattr(model, name, None)
            if method is not None:
                said.append(method(X, 1) if name in ("kneighbors", "search") else method(X))
        except NotFittedError:
            said.append("unfitted")
    refused = [isinstance(value, str) for value in said]
    sized = sm.HammingIndex | sm.SimilaritySearch | sm.search.FeatureIndex | sm.search.VectorIndex
    size = len(model) if isinstance(model, sized) else None
    return "unfitted" if all(refused) else str(joblib.hash((size, said)))


class Case:
    """One estimator and one call that is stopped, with what it says before and after."""

    def __init__(self, estimator: Any, start: Call | None, call: Call, X: Any) -> None:
        self.call, self.X = call, X
        self.model = clone(estimator)
        if start is not None:
            start(self.model)
        self.before = answer(self.model, X)
        twin = self.twin()
        call(twin)  # what is compiled or loaded at first use
        twin, OwnFunction.calls = self.twin(), 0
        begin = time.perf_counter()
        call(twin)
        self.seconds, self.calls, self.after = time.perf_counter() - begin, OwnFunction.calls, answer(twin, X)

    def twin(self) -> Any:
        """Return a model in the same state, as unfitted parts may be shared but no fitted ones."""
        return clone(self.model) if self.before == "unfitted" else twin_of(self.model)

    def stopped(self, random: Random) -> str:
        """Stop the call once and return what became of the estimator."""
        model = self.twin()
        OwnFunction.calls = OwnFunction.fails_at = 0
        try:
            if self.calls and random.random() < 0.5:
                OwnFunction.fails_at = random.randint(1, self.calls)
                self.call(model)
            else:
                with stopped_after(random.uniform(0, 1.1 * self.seconds)):
                    self.call(model)
        except (Stopped, Exception):  # numba turns what it is stopped by into a SystemError
            pass
        else:
            return "not stopped"
        finally:
            OwnFunction.fails_at = 0
        said = answer(model, self.X)
        known = {self.after: "complete", self.before: "unfitted" if self.before == "unfitted" else "as before"}
        kind = known.get(said, "mixed")
        return kind if answer(self.model, self.X) == self.before else "mixed"  # what twins share has not changed


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each estimator and call, and one for all; `n` calls are stopped."""
    random, rows, total = Random(seed), [], Counter[str]()
    known = cases()
    share = -(-n // len(known))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in known.items():
            made, tally = Case(*case), Counter[str]()
            while tally.total() - tally["not stopped"] < share and tally.total() < 20 * share:
                tally[made.stopped(random)] += 1
            if tally["mixed"]:
                print(f"{name}: {tally['mixed']} mixed", file=sys.stderr)
            rows.append(_row(name, tally))
            total += tally
    return [*rows, _row("all", total)]


def _row(name: str, tally: Counter[str]) -> dict[str, Any]:
    kinds = ("unfitted", "as before", "complete", "mixed")
    return {"call": name, "stopped": sum(tally[kind] for kind in kinds), **{kind: tally[kind] for kind in kinds}}
