"""Model the seconds of each step as a formula of its sizes, fitted to runs of the real estimators on this machine.

A formula is a sum of terms, each a constant times a product of sizes. The sizes are those of a run in which n objects
of length L, in `calls` chunks, are compared with s landmarks (or random objects) and become codes of b bits:

====== ==========================================================================================================
embed  calls (1 + s + s L) + n (1 + L + s + s L + s^2): features or rows of the objects, their kernel values with the
       landmarks, the product with the components; s L^2 instead of s L if data objects are aligned with each other,
       and L^2 if a graph is walked from each node; random objects have a length that does not depend on L
fit    1 + s + s L + s^2 (1 + L) + s^3: kernel values of the landmarks, eigendecomposition; a distance: 1 + L + s;
       for a given encoder: the m objects that it is fitted to
signs  calls + n (1 + s + s b)
index calls + n b, once for each time that rows are copied (`storage.store`)
search 1 + n b
====== ==========================================================================================================

The constants minimise squared relative errors, by non-negative least squares over medians of a few rounds; every round
runs all sizes in turn. Cost: 5 to 20 seconds; sizes are halved until a run is short enough.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from similia.codes.sign_projection import SignRandomProjection
from similia.core.threads import limited_to
from similia.embeddings.d2ke import D2KE, Representatives
from similia.embeddings.nystroem import Nystroem
from similia.kernels.counts import CountsKernel
from similia.kernels.graphs import ShortestPath
from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch, n_objects, take
from similia.pipelines import n_bytes
from similia.scale.stream import CHUNK
from similia.search.hamming_index import HammingIndex
from similia.storage.store import Store

KINDS = ("strings", "graphs", "series", "sets", "vectors")
_RUN, _LONG = 0.4, 0.6  # seconds per run: target, and limit
_FEWEST, _MOST, _ENOUGH = 4, 6, 8.0  # minimum and maximum number of rounds; seconds after which the minimum suffices
_SMALL = 16  # smallest length and size to start from
_FIT_ROWS = 256  # minimum: D2KE uses this many for the median distance
_ENCODER_ROWS = 4096  # rows to which a user's encoder is fitted
_SCANNED = (2**24, 2**26)  # bytes of codes searched, more than a cache holds
clock = time.perf_counter

Sizes = dict[str, float]


@dataclass(frozen=True)
class Formula:
    """Seconds as a sum of terms: `constants` maps ``"n L s"`` to the factor of n * L * s, and "" to a constant term."""

    constants: dict[str, float]

    def __call__(self, **sizes: float) -> float:
        return sum(c * self._value(term, sizes) for term, c in self.constants.items())

    def __str__(self) -> str:
        return " + ".join(f"{c:.2g} {term}".strip() for term, c in self.constants.items() if c) or "0"

    @classmethod
    def fitted(cls, terms: tuple[str, ...], runs: list[tuple[Sizes, float]]) -> Formula:
        """Fit a formula to runs (sizes, seconds) by least squares of relative errors.

        The last run must have the largest sizes, since these are nearest to the sizes of later predictions. It counts
        three times.
        """
        weighted = [*runs, *runs[-1:] * 2]
        A = np.array([[cls._value(term, sizes) / seconds for term in terms] for sizes, seconds in weighted])
        scale = A.max(axis=0)
        constants = nnls(A / scale, np.ones(len(A)))[0] / scale
        return cls(dict(zip(terms, constants.tolist(), strict=True)))

    @staticmethod
    def _value(term: str, sizes: Sizes) -> float:
        return prod(sizes[name] for name in term.split())


@dataclass(frozen=True)
class Objects:
    """A description from which objects like the user's are drawn: at random, or from `own`, the user's sample."""

    kind: str
    edges: float = 1.0
    letters: int = 4
    channels: int = 1
    own: Any = None

    def sample(self, n: int, length: int, seed: int = 0) -> Any:
        """Return a batch of `n` objects: drawn from `own` if it is set, otherwise random ones of the given length."""
        rng = np.random.default_rng(seed)
        if self.own is not None:
            rows = [rng.permutation(n_objects(self.own)) for _ in range(-(-n // n_objects(self.own)))]
            return take(self.own, np.concatenate(rows)[:n])
        offsets = np.arange(n + 1, dtype=np.int64) * length
        if self.kind == "strings":
            return StringBatch(rng.integers(65, 65 + self.letters, offsets[-1], dtype=np.uint8), offsets)
        if self.kind == "graphs":
            return self._graphs(offsets, length, rng)
        if self.kind == "vectors":
            return rng.standard_normal((n, length), dtype=np.float32)
        batch = SeriesBatch if self.kind == "series" else SetBatch
        return batch(rng.standard_normal((offsets[-1], self.channels)), offsets)

    def _graphs(self, offsets: npt.NDArray[np.int64], length: int, rng: np.random.Generator) -> GraphBatch:
        """Return labelled trees, where the parent of a node is one of the three nodes before it, plus random edges."""
        n, first = len(offsets) - 1, np.repeat(offsets[:-1], length)
        place = np.tile(np.arange(length), n)
        child = np.flatnonzero(place > 0)
        parent = child - 1 - (rng.random(len(child)) * np.minimum(place[child], 3)).astype(np.int64)
        more = max(0, round(n * (self.edges * length - length + 1)))
        graph = rng.integers(n, size=more)
        ends = offsets[graph] + rng.integers(length, size=(2, more))
        arcs = np.hstack([[child, parent], ends[:, ends[0] != ends[1]]])
        labels = rng.integers(self.letters, size=len(first))
        return GraphBatch.from_arrays(offsets, np.hstack([arcs, arcs[::-1]]), node_labels=labels)


def kind_of(comparison: Any) -> str | None:
    """Return the kind of objects that a kernel or distance takes; None if it takes several kinds or any objects."""
    if not hasattr(comparison, "as_objects"):
        return None
    kinds = [kind for kind in KINDS if _takes(comparison, Objects(kind, channels=2).sample(2, 3))]
    return kinds[0] if len(kinds) == 1 else None


def _takes(comparison: Any, batch: Any) -> bool:
    try:
        return type(comparison.as_objects(batch)) is type(batch)
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True)
class Method:
    """How bits are made: by a kernel with landmarks, a distance with landmarks or random objects, or an `encoder`."""

    comparison: Any = None
    is_distance: bool = False
    random: bool = False
    encoder: Any = None

    def __str__(self) -> str:
        if self.encoder is not None:
            return " -> ".join(type(step).__name__ for _, step in getattr(self.encoder, "steps", [("", self.encoder)]))
        name = " ".join(repr(self.comparison).split())
        return f"{'D2KE' if self.is_distance else 'Nystroem'} of {name}, signs of random projections"

    def embedding(self, s: int) -> Any:
        """Return an unfitted embedding by `s` landmarks or random objects, or an unfitted copy of the encoder."""
        if self.encoder is not None:
            return clone(self.encoder)
        if not self.is_distance:
            return Nystroem(self.comparison, n_components=s, random_state=0)
        objects: Any = "auto" if self.random else Representatives()
        return D2KE(self.comparison, n_components=s, objects=objects, random_state=0)

    def signs(self, bits: int) -> Pipeline:
        """Return the unfitted steps from vectors to bits; vectors made from distances are centred first."""
        centre = [StandardScaler(with_std=False)] if self.is_distance else []
        return make_pipeline(*centre, SignRandomProjection(bits, random_state=0))

    def terms(self, kind: str) -> dict[str, tuple[str, ...]]:
        """Return the terms (see `Formula`) of the steps ``embed`` and ``fit`` for objects of this kind."""
        if self.encoder is not None:
            return {"embed": ("calls", "n", "n L"), "fit": ("m",)}
        aligned = not self.random and kind != "vectors" and not isinstance(self.comparison, CountsKernel)
        power = "L L" if aligned else "L"
        embed: tuple[str, ...] = ("calls", "calls s", f"calls s {power}", "n", "n L", "n s", f"n s {power}")
        if isinstance(self.comparison, ShortestPath):
            embed += ("n L L",)
        if self.is_distance:
            return {"embed": embed, "fit": ("", power, "s")}
        return {"embed": (*embed, "n s s"), "fit": ("", "s", f"s {power}", "s s", f"s s {power}", "s s s")}


@dataclass
class Costs:
    """Formulas of the seconds of each step on `cores` cores, and the measurements behind them."""

    embed: Formula
    fit: Formula
    signs: Formula
    index: Formula
    search: Formula
    cores: int
    bytes_per_length: float  # size of an object in memory per unit of its length
    features: float | None = None  # different features of an object per unit of its length, if a kernel counts features
    random_length: float = 0.0  # mean length of the random objects
    bytes_of_random: float = 0.0  # size of one random object
    measured: dict[str, int] = field(default_factory=dict)  # largest sizes that were run
    seconds: float = 0.0  # duration of the calibration
    load: float = 0.0  # mean number of running or waiting processes in the minute before; 0 if unknown


class _Runs:
    """Calls that are timed in several rounds; each round runs every call once."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Sizes, Callable[[], object]]] = []

    def add(self, step: str, call: Callable[[], object], **sizes: float) -> None:
        self.calls.append((step, sizes, call))

    def times(self) -> dict[str, list[tuple[Sizes, float]]]:
        """Return, by step, the sizes and the median seconds of each call; the first run of each call does not count."""
        taken: list[list[float]] = []
        while len(taken) < _FEWEST or (len(taken) < _MOST and sum(map(sum, taken)) < _ENOUGH):
            taken.append([_seconds(call) for _, _, call in self.calls])
        found: dict[str, list[tuple[Sizes, float]]] = {}
        for (step, sizes, _), seconds in zip(self.calls, np.median(taken[1:], axis=0).tolist(), strict=True):
            found.setdefault(step, []).append((sizes, seconds))
        return found


def calibrate(method: Method, objects: Objects, *, length: int, size: int, bits: int, cores: int) -> Costs:
    """Time each step at sizes up to those given, and fit a formula to it; `size` counts landmarks or random objects."""
    start, load = clock(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    with limited_to(cores), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # about the random objects, not the user's
        runs = _Runs()
        facts = _add_embeddings(runs, method, objects, length, size)
        width = min(int(facts["measured"]["s"]), 512)
        _add_signs(runs, method, width, bits)
        _add_index(runs, bits, Path(folder))
        times = runs.times()
    terms = method.terms(objects.kind)
    terms |= {"signs": ("calls", "n", "n s", "n s b"), "index": ("calls", "n b"), "search": ("", "n b")}
    formulas: dict[str, Any] = {step: Formula.fitted(terms[step], times[step]) for step in terms}
    return Costs(**formulas, cores=cores, **facts, seconds=clock() - start, load=load)


def _add_embeddings(runs: _Runs, method: Method, objects: Objects, length: int, size: int) -> dict[str, Any]:
    """Add calls of ``fit`` and ``embed`` to `runs`, at up to two lengths and sizes; return `_facts` at the largest."""
    length, size = _affordable(method, objects, length, size)
    facts: dict[str, Any] = {}
    for L in sorted({max(1, length // 2) if objects.own is None else length, length}):
        for s in sorted({max(1, size // 2) if method.encoder is None else size, size}):
            some = objects.sample(_fit_rows(method, s), L)
            fitted = method.embedding(s).fit(some)
            one = take(some, np.arange(1))
            each = min(_seconds(partial(fitted.transform, some)) for _ in range(2)) / n_objects(some)
            n = int(np.clip(_RUN / each, 32, CHUNK))  # a full chunk if possible: threads do not share few objects
            many = objects.sample(n, L, seed=1)
            runs.add("fit", partial(method.embedding(s).fit, some), m=n_objects(some), L=L, s=s)
            for part in (one, many):
                runs.add("embed", partial(fitted.transform, part), calls=1, n=n_objects(part), L=L, s=s)
            facts = _facts(method, fitted, many, L) | {"measured": {"n": n, "L": L, "s": s}}
    return facts


def _affordable(method: Method, objects: Objects, length: int, size: int) -> tuple[int, int]:
    """Return (`length`, `size`), both halved as often as needed to make a run short enough."""
    if method.encoder is not None:
        return length, size
    small = [max(1, length // _SMALL).bit_length() - 1, max(1, size // _SMALL).bit_length() - 1]
    L, s = length, size
    for step in range(max(small), -1, -1):
        L, s = length >> min(step, small[0] if objects.own is None else 0), size >> min(step, small[1])
        some = objects.sample(_fit_rows(method, s), L)
        embedding, one = method.embedding(s), take(some, np.arange(1))
        if step == max(small):
            embedding.fit(some).transform(some)  # compile or load
        if _seconds(partial(embedding.fit, some)) + _seconds(partial(embedding.transform, one)) > _LONG / 8:
            break  # doubling both may take 8 times as long
    return L, s


def _fit_rows(method: Method, s: int) -> int:
    return max(s, _FIT_ROWS) if method.encoder is None else _ENCODER_ROWS


def _facts(method: Method, fitted: Any, objects: Any, L: int) -> dict[str, Any]:
    """Return the fields of `Costs` that describe objects of length `L` and the random objects of `fitted`."""
    facts: dict[str, Any] = {"bytes_per_length": n_bytes(objects) / n_objects(objects) / L}
    if isinstance(method.comparison, CountsKernel):
        facts["features"] = len(method.comparison.counted(objects).ids) / n_objects(objects) / L
    if method.is_distance:
        drawn = fitted.random_objects_
        facts["bytes_of_random"] = n_bytes(drawn) / n_objects(drawn)
        facts["random_length"] = len(getattr(drawn, "values", drawn)) / n_objects(drawn)
    return facts


def _add_signs(runs: _Runs, method: Method, width: int, bits: int) -> None:
    rng = np.random.default_rng(0)
    for s in sorted({max(1, width // 2), width}):
        for b in sorted({max(8, bits // 32 * 8), bits}):
            n = int(np.clip(3e9 / (s * b), 256, CHUNK))
            vectors = rng.standard_normal((n, s))
            signs = method.signs(b).fit(vectors)
            for part in (vectors[:1], vectors):
                runs.add("signs", partial(signs.transform, part), calls=1, n=len(part), s=s, b=b)


def _add_index(runs: _Runs, bits: int, folder: Path) -> None:
    """Add calls to `runs` that append codes to a store in `folder`, and calls that search codes for one query."""
    rng = np.random.default_rng(0)
    codes = rng.integers(256, size=(8 * _SCANNED[-1] // bits, bits // 8), dtype=np.uint8)
    codes.flags.writeable = False  # searched in place
    for n in (1000, CHUNK):
        store = Store.create(folder / str(n), bits)
        runs.add("index", partial(store.append, codes[:n]), calls=1, n=n, b=bits)
    for n in (8 * size // bits for size in _SCANNED):
        index = HammingIndex(bits).fit(codes[:n])
        runs.add("search", partial(index.kneighbors, codes[:1], 10), n=n, b=bits)


def _seconds(call: Callable[[], object]) -> float:
    start = clock()
    call()
    return clock() - start
