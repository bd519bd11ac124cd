r"""Forecast the cost of a run over n objects before it starts: kernel evaluations, operations, bytes and hours.

.. math:: T = \underbrace{T_{fit} + n_0\, t(L, s)}_{\text{fit}} + \underbrace{n\, t(L, s)}_{\text{encode}} + T_{index},

where t(L, s) is the seconds per object of length L with s landmarks or random objects, and n_0 = min(n, 20,000) is the
number of objects that an encoder is fitted to. Evaluations and bytes follow from the sizes. The constants in the
formulas for seconds are measured on this machine, by running the estimators at sizes up to those requested
(`planning.costs`).

Cost: that of the calibration, 5 to 20 seconds; none with the `costs` of an earlier plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from similia.core.config import settings
from similia.core.errors import BadParameter
from similia.core.threads import n_threads
from similia.core.validation import check_choice, check_n_bits, check_positive, check_positive_int, check_vectors
from similia.embeddings.d2ke import GAMMA_COLUMNS, GAMMA_ROWS
from similia.objects import as_graphs, as_series, as_sets, as_strings, n_objects
from similia.objects.sequences import Batch, at_least_one, item
from similia.planning.costs import KINDS, Costs, Formula, Method, Objects, calibrate, kind_of
from similia.scale.stream import CHUNK, FIT_ON
from similia.similarity import as_objects, check_kernel
from similia.sources.rows import kind_of_item

_EIGEN = 9  # operations of a symmetric eigendecomposition with vectors, over s^3 (Golub & Van Loan, Section 8.3)
_BUSY = 0.5  # report the load of other processes above this value
_WORD, _WORD_STEPS = 64, 15  # letters that an edit distance processes together, and operations per such word


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
        Number of bits of a code, and number of cores.
    evaluations : dict of str to int
        Number of kernel values or distances that each step computes: ``fit``, ``encode`` (all objects) and ``search``
        (one query). All are 0 if an encoder was given.
    flops : dict of str to float or None
        Number of arithmetic operations of each of these steps; None if an encoder was given, or if the number for one
        kernel value is unknown.
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
        """Return the attributes and the total `hours` as JSON-serialisable values; ``calibration`` summarises `costs`.

        The total is that of the steps ``fit``, ``encode`` and ``index``.
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
    in trial runs, which take 5 to 20 seconds together.

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
        Measurements to use instead of new ones: the attribute `costs` of an earlier plan. That plan must be for the
        same kind of objects and the same kernel, distance or encoder, and measured on at most `cores` cores. With a
        distance, give `random` in both plans or in neither.

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
