r"""Forecast the cost of a run over n objects before it starts: kernel evaluations, operations, bytes and hours.

.. math:: T = \underbrace{T_{fit} + n_0\, t(L, s)}_{\text{fit}} + \underbrace{n\, t(L, s)}_{\text{encode}} + T_{index},

where t(L, s) is the seconds per object of length L with s landmarks or random objects, and n_0 = min(n, 20,000) is the
number of objects that an encoder is fitted to. Evaluations and bytes follow from the sizes. The constants in the
formulas for seconds are measured on this machine, by running the estimators at sizes up to those requested.

The calibration models the seconds of each step as a formula of its sizes, fitted to runs of the real estimators. A
formula is a sum of terms, each a constant times a product of sizes. The sizes are those of a run in which n objects
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
runs all sizes in turn. Cost: 5 to 20 seconds, none with the `costs` of an earlier plan; sizes are halved until a run
is short enough.
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
from similia.core.config import limited_to, n_threads, settings
from similia.core.validation import (
    BadParameter,
    check_choice,
    check_n_bits,
    check_positive,
    check_positive_int,
    check_vectors,
)
from similia.embeddings.d2ke import D2KE, GAMMA_COLUMNS, GAMMA_ROWS, Representatives
from similia.embeddings.nystroem import Nystroem
from similia.kernels.counts import CountsKernel
from similia.kernels.graphs import ShortestPath
from similia.objects import (
    GraphBatch,
    SeriesBatch,
    SetBatch,
    StringBatch,
    as_graphs,
    as_series,
    as_sets,
    as_strings,
    n_objects,
    take,
)
from similia.objects.sequences import Batch, at_least_one, item
from similia.pipelines import n_bytes
from similia.scale.stream import CHUNK, FIT_ON
from similia.search.hamming_index import HammingIndex
from similia.similarity import as_objects, check_kernel
from similia.sources.rows import kind_of_item
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
_EIGEN = 9  # operations of a symmetric eigendecomposition with vectors, over s^3 (Golub & Van Loan, Section 8.3)
_BUSY = 0.5  # report the load of other processes above this value
_WORD, _WORD_STEPS = 64, 15  # letters that an edit distance processes together, and operations per such word


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
            end = 65 + min(self.letters, 2**20)  # Unicode has few more
            return StringBatch(rng.integers(65, end, offsets[-1], np.uint8 if end <= 128 else np.uint32), offsets)
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
            taken.append([_timed(call) for _, _, call in self.calls])
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
            each = min(_timed(partial(fitted.transform, some)) for _ in range(2)) / n_objects(some)
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
        if _timed(partial(embedding.fit, some)) + _timed(partial(embedding.transform, one)) > _LONG / 8:
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


def _timed(call: Callable[[], object]) -> float:
    start = clock()
    call()
    return clock() - start


@dataclass(frozen=True)
class Plan:
    """The predicted cost of a run, as returned by `plan`.

    Attributes
    ----------
    objects : int
        Number n of objects.
    kind : str
        Kind of the objects: strings, graphs, series, sets or vectors.
    length : float
        Mean size of an object: its number of letters, nodes, points or components.
    method : str
        Names of the estimators that turn objects into bits.
    size : int or None
        Number of landmarks or random objects with which each object is compared; None if an encoder was given.
    bits, cores : int
        Number of bits of a code (the bits that stand for one object), and number of cores.
    evaluations : dict of str to int
        Number of kernel values or distances that each step computes: ``fit``, ``encode`` (all objects) and ``search``
        (one query). All are 0 if an encoder was given.
    flops : dict of str to float or None
        Number of arithmetic operations of each step named in `evaluations`; None if an encoder was given, or if it is
        unknown how many operations one value of the kernel or distance takes.
    bytes : dict of str to float
        Sizes in bytes: ``input`` is all objects, ``working`` the memory for one chunk of objects while they are
        encoded, ``model`` the fitted encoder, ``codes`` the codes of all objects, and ``index`` the index on disk.
        ``model`` is 0 if an encoder was given.
    seconds : dict of str to float
        Seconds of the steps ``fit``, ``encode``, ``index`` (storing the codes) and ``search`` (one query).
    formulas : dict of str to str
        Formulas behind `seconds`, fitted to measurements on this machine: ``fit``, ``embed`` (making vectors),
        ``signs`` (making bits of the vectors), ``index`` and ``search`` (scanning the codes).
    assumptions : list of str
        Sentences that say how the numbers were obtained.
    costs : Costs
        The measurements. Pass them to `plan` to plan another run without measuring again. The method and the kind of
        objects must stay the same.
    """

    objects: int
    kind: str
    length: float
    method: str
    size: int | None
    bits: int
    cores: int
    evaluations: dict[str, int]
    flops: dict[str, float | None]
    bytes: dict[str, float]
    seconds: dict[str, float]
    formulas: dict[str, str]
    assumptions: list[str]
    costs: Costs = field(repr=False)

    @property
    def hours(self) -> float:
        """Total hours of the steps fit, encode and index."""
        return sum(self.seconds[step] for step in ("fit", "encode", "index")) / 3600

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes, and `hours`, as a dict of values that JSON can store.

        In place of the measurements in `costs`, the dict holds ``calibration``, a summary of them.
        """
        fields = {name: value for name, value in vars(self).items() if name != "costs"}
        costs = self.costs
        calibration = {"seconds": costs.seconds, "cores": costs.cores, "largest": costs.measured, "load": costs.load}
        return {**fields, "hours": self.hours, "calibration": calibration}


def plan(
    objects: float,
    length: float | None = None,
    *,
    kernel: Any = None,
    distance: Any = None,
    landmarks: int = 300,
    random: int | None = None,
    bits: int = 1024,
    cores: int | None = None,
    kind: str | None = None,
    edges: float | None = None,
    letters: int = 4,
    channels: int | None = None,
    sample: Any = None,
    encoder: Any = None,
    costs: Costs | None = None,
) -> Plan:
    """Predict the cost of turning many objects into packed bits and searching them.

    The objects are turned into vectors by `Nystroem` if you give a kernel, or by `D2KE` if you give a distance;
    `SignRandomProjection` turns the vectors into bits. Unless you give `costs`, the speed of this machine is measured
    in trial runs, which take 5 to 20 seconds in total.

    Parameters
    ----------
    objects : int (or a float such as 1e9)
        Number of objects.
    length : float, optional
        Mean size of an object: number of letters of a string, nodes of a graph, points of a series or set, or
        components of a vector. Required if no `sample` is given.
    kernel, distance : callable, optional
        Function that compares objects. Give exactly one of `kernel`, `distance` and `encoder`.
    landmarks : int, default=300
        Number of landmarks: objects of the data with which all objects are compared.
    random : int, optional
        Number of random objects to use instead of landmarks; only with a distance.
    bits : int, default=1024
        Number of bits of a code.
    cores : int, optional
        Number of cores of the run. The default is all cores that similia may use on this machine.
    kind : {"strings", "graphs", "series", "sets", "vectors"}, optional
        Kind of the objects. If you give no `sample`, it is required with an encoder, and with a kernel or distance that
        accepts several kinds.
    edges : float, optional
        Mean number of edges of a graph. By default, a graph has as many edges as nodes.
    letters : int, default=4
        Number of different letters of strings, or of different node labels of graphs.
    channels : int, optional
        Number of coordinates of a point; the default is 1 for series and 2 for sets.
    sample : collection of objects, optional
        A sample of your data. The speed is measured on this sample instead of on randomly generated data.
    encoder : estimator, optional
        An unfitted transformer from objects to packed bits, instead of a kernel or distance.
    costs : Costs, optional
        Measurements to use instead of new ones: the attribute `costs` of an earlier plan. The earlier plan must be for
        the same kind of objects and the same kernel, distance or encoder, and must have been measured on at most
        `cores` cores. With a distance, give `random` in both plans or in neither.

    Returns
    -------
    Plan
        The operations and seconds of each step, the bytes of the input, the model, the codes and the index, and
        sentences that say how these numbers were obtained.

    Examples
    --------
    >>> import similia as sm
    >>> p = sm.planning.plan(1e6, 8, kernel=sm.kernels.Cosine(), landmarks=10, bits=64)
    >>> p.evaluations["encode"], p.bytes["codes"], p.hours > 0
    (10000000, 8000000.0, True)
    """
    whole = isinstance(objects, float) and objects.is_integer()  # such as 1e9
    n = check_positive_int(int(objects) if whole else objects, "objects")
    cores = n_threads() if cores is None else check_positive_int(cores, "cores")
    method, s = _method(kernel, distance, encoder, landmarks, random)
    bits = check_n_bits(bits)
    like, L = _described(kind, kernel if distance is None else distance, sample, length, edges, letters, channels)
    if s is not None and not method.random:
        s = min(s, n)  # same as in `Nystroem.fit`
    if costs is None:
        costs = calibrate(method, like, length=max(1, round(L)), size=s or 1, bits=bits, cores=min(cores, n_threads()))
    elif cores < costs.cores:
        raise BadParameter("cores", f"at least {costs.cores}, as in costs", f"{cores}", "leave costs out to measure")
    sizes = {"n": n, "L": L, "s": s or 1, "b": bits}
    evaluations, flops = _evaluations(method, n, s), _flops(method, like, costs, sizes)
    memory, seconds = _bytes(method, costs, sizes), _seconds(method, costs, sizes, cores)
    formulas = {name: str(value) for name, value in vars(costs).items() if isinstance(value, Formula)}
    rest = evaluations, flops, memory, seconds, formulas, _assumptions(like, costs, cores), costs
    return Plan(n, like.kind, L, str(method), s, bits, cores, *rest)


def _method(kernel: Any, distance: Any, encoder: Any, landmarks: Any, random: Any) -> tuple[Method, int | None]:
    if sum(part is not None for part in (kernel, distance, encoder)) != 1:
        raise ValueError("give exactly one of kernel, distance and encoder; it turns objects into bits")
    if random is not None and distance is None:
        raise ValueError("random needs a distance, for D2KE; with a kernel, give landmarks")
    if encoder is not None:
        return Method(encoder=encoder), None
    if kernel is not None:
        check_kernel(kernel)
        return Method(kernel), check_positive_int(landmarks, "landmarks")
    if random is None:
        return Method(distance, is_distance=True), check_positive_int(landmarks, "landmarks")
    return Method(distance, is_distance=True, random=True), check_positive_int(random, "random")


def _described(
    kind: str | None, comparison: Any, sample: Any, length: Any, edges: Any, letters: Any, channels: Any
) -> tuple[Objects, float]:
    """Return a description from which objects like the user's can be drawn, and their mean length."""
    batch = None
    if sample is not None:
        sample, batch = _read(sample, comparison, kind)
    kind = _kind(kind, comparison, batch)
    letters = check_positive_int(letters, "letters")
    channels = (2 if kind == "sets" else 1) if channels is None else check_positive_int(channels, "channels")
    if edges is not None and kind != "graphs":
        raise ValueError(f"edges is for graphs, but the objects are {kind}; leave it out")
    if batch is None:
        hint = "; it is the mean number of letters, nodes, points or components of an object"
        length = check_positive(length, "length", hint=hint)
    elif kind == "vectors":
        length = float(batch.shape[1])
    else:
        length = max(1.0, (batch.n_nodes if kind == "graphs" else len(batch.values)) / n_objects(batch))
    ratio = 1.0 if edges is None else check_positive(edges, "edges", zero=True) / length
    return Objects(kind, ratio, letters, channels, sample), length


def _read(sample: Any, comparison: Any, kind: str | None) -> tuple[Any, Any]:
    """Return the sample as the kernel or distance reads it, and as a batch or array, which tells the lengths."""
    sample = sample if comparison is None else as_objects(comparison, sample)
    at_least_one(sample, "sample")
    if isinstance(sample, Batch) or (isinstance(sample, np.ndarray) and sample.ndim == 2 and kind in (None, "vectors")):
        return sample, sample
    readers: dict[str, Any] = {"strings": as_strings, "graphs": as_graphs, "series": as_series, "sets": as_sets}
    kind = kind or kind_of_item(item(sample, 0))
    return sample, readers[kind](sample) if kind in readers else check_vectors(sample, "sample")


def _kind(kind: str | None, comparison: Any, sample: Any) -> str:
    """Return the given kind of objects, else the kind that the kernel or distance takes, else that of the sample."""
    if kind is not None:
        check_choice(kind, "kind", KINDS)
    known = kind_of(comparison)
    if known and kind and known != kind:
        raise ValueError(f"{comparison!r} compares {known}, but kind is {kind!r}; leave kind out")
    shown = "vectors" if isinstance(sample, np.ndarray) else getattr(sample, "kind", None)
    found = kind or known or shown
    if found is None:
        raise ValueError(f"kind is missing, and the comparison takes several; give one of {', '.join(KINDS)}")
    return found


def _evaluations(method: Method, n: int, s: int | None) -> dict[str, int]:
    if s is None:
        return {"fit": 0, "encode": 0, "search": 0}
    n0 = min(n, FIT_ON)
    settling = min(n0, GAMMA_ROWS) * (GAMMA_COLUMNS if method.random else min(n0, GAMMA_COLUMNS))
    return {"fit": (settling if method.is_distance else s * s) + n0 * s, "encode": n * s, "search": s}


def _flops(method: Method, like: Objects, costs: Costs, sizes: dict[str, float]) -> dict[str, float | None]:
    """Return the operations of each step: kernel values, products with matrices and, in a search, the code scan."""
    n, s, b = sizes["n"], sizes["s"], sizes["b"]
    each = _operations(method, like, costs, sizes["L"])
    scan = 3 * n * b / _WORD  # xor, count, add
    if each is None:
        return {"fit": None, "encode": None, "search": None}
    an_object = s * each + (0 if method.is_distance else 2 * s * s) + 2 * s * b
    settling = _evaluations(method, int(n), int(s))["fit"] - min(n, FIT_ON) * s
    fit = settling * each + (0 if method.is_distance else _EIGEN * s**3) + min(n, FIT_ON) * (an_object - 2 * s * b)
    return {"fit": fit, "encode": n * an_object, "search": an_object + scan}


def _operations(method: Method, like: Objects, costs: Costs, L: float) -> float | None:
    """Return the operations of one kernel value or distance between objects of length `L`, or None if unknown."""
    other = costs.random_length if method.random else L
    if method.encoder is not None:
        return None
    if costs.features is not None:
        return 2 * costs.features * L  # at most: features that both objects have
    if like.kind == "vectors":
        return 2 * L
    if like.kind == "graphs":
        return None
    if like.kind == "strings":
        return _WORD_STEPS * L * np.ceil(other / _WORD)
    return L * other * (3 * like.channels + (3 if like.kind == "series" else 0))  # per cell: `distances._dtw`


def _bytes(method: Method, costs: Costs, sizes: dict[str, float]) -> dict[str, float]:
    n, L, s, b = (sizes[name] for name in "nLsb")
    an_object = costs.bytes_per_length * L
    chunk = min(n, CHUNK)
    kept = costs.bytes_of_random if method.random else an_object
    wide = method.encoder is None
    values = min(8.0 * chunk * (2 * s if method.is_distance else 3 * s), settings().max_memory) if wide else 0.0
    rank = 0 if method.is_distance else s  # number of columns of the components
    return {
        "input": n * an_object,
        "working": chunk * (an_object + b / 8 + (8 * s if wide else 0)) + values,
        "model": s * (kept + 8 * rank + 2 * b) if wide else 0.0,
        "codes": n * b / 8,
        "index": n * (b / 8 + 8),
    }


def _seconds(method: Method, costs: Costs, sizes: dict[str, float], cores: int) -> dict[str, float]:
    """Return the seconds of each step; cores beyond the measured ones speed up only encoding and the scan of codes."""
    n, share = sizes["n"], costs.cores / cores if cores > costs.cores else 1.0

    def encode(m: float, size: float) -> float:
        at = {**sizes, "n": m, "calls": np.ceil(m / size)}
        return costs.embed(**at) + (costs.signs(**at) if method.encoder is None else 0.0)

    calls = float(np.ceil(n / CHUNK))
    copies = 1 + np.log2(max(1.0, calls / 64)) / 2  # counted: how often `storage.store` writes a row
    n0 = min(n, FIT_ON)
    fit = costs.fit(**sizes, m=n0) + (costs.embed(**{**sizes, "n": n0, "calls": 1}) if method.encoder is None else 0.0)
    return {
        "fit": float(fit),
        "encode": float(encode(n, CHUNK) * share),
        "index": float(costs.index(**{**sizes, "calls": calls, "n": n * copies})),
        "search": float(encode(1, 1) + costs.search(**sizes) * share),
    }


def _assumptions(like: Objects, costs: Costs, cores: int) -> list[str]:
    drawn = "a sample of the data" if like.own is not None else "random objects of that length"
    largest = ", ".join(f"{name} = {value}" for name, value in costs.measured.items())
    lines = [
        f"measured in {costs.seconds:.0f} s on {costs.cores} of this machine's {n_threads()} cores on {drawn}, "
        f"at most {largest}; reading the input is not counted"
    ]
    if cores > costs.cores:
        lines.append(
            f"{cores} cores: encoding and search are {cores / costs.cores:g} times as fast as on {costs.cores} cores, "
            f"with one process for each {costs.cores}; fit and the index, on one disk, are not faster"
        )
    if costs.load + costs.cores > n_threads() + _BUSY:
        lines.append(f"other processes ran before (a load of {costs.load:.1f}); if they still ran, times are too long")
    lines.append("search: one query against all codes in memory, ten neighbours, not sorted again")
    return lines
