"""Define kernels and distances, call them and check their values.

*Kernel*: any callable ``k(X, Y=None) -> (n, m)`` whose values are large for similar objects. *Distance*: the same, with
values >= 0 that are small for similar objects. Without a Y, X is compared with itself. No base class is needed. The
built-in kernels and distances derive from `Kernel` and `Distance`; they hold parameters and learn nothing. Three hooks
are optional:

- ``as_objects(X)`` converts a collection to the memory layout that the function works on;
- ``decided(X)`` returns a copy in which each setting that depends on data, such as ``gamma="median"``, has the value
  computed from X;
- ``diag(X)`` (kernels) returns k(x, x) for each object.

A user's function may return float32, integers, lists or a sparse matrix. `evaluate` calls a kernel, and
`distances_between` calls a distance; both turn the result into a dense float array of shape (n, m), or raise an error.
A `Metric` is a kernel or a distance, for code that takes either. `pairwise` turns a function of two objects into a
kernel.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from similia.core.config import rows_per_block, settings, track
from similia.core.estimators import check_table
from similia.core.state import state
from similia.core.text import nearest_name, short
from similia.core.validation import (
    BadPairType,
    BadPairValue,
    BadParameter,
    ObjectsWarning,
    as_second,
    check_flags,
    pairs_named,
    unmasked,
    warn_of_objects,
)
from similia.objects import n_objects, take
from similia.objects.sequences import StringBatch, at_least_one, in_both_cases
from similia.objects.tables import objects_in, without_none
from similia.sources.dask import Distributed

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.int64]
Numbers = npt.ArrayLike | range  # positions of objects, for messages
_DIAGONAL_BLOCK = 32  # objects per Gram matrix for a kernel without diag(); only the diagonal is kept
_FEW_OF_A_PART = 20  # parts of a lazy collection with fewer objects do not trigger `warn_of_strangers`
_LOOKED_AT = 8  # objects on which a user's function is called to see whether it is a kernel or a distance
_SLACK = 1e-6  # relative rounding errors of means of float32 values
_QUOTED = 100  # characters quoted from the message of another library's error
_WRAPPERS = {
    "kernel": "similia.pairwise(f), or with similia.distances.FromFunction(f) if f is a distance (0 for equal objects)",
    "distance": "similia.distances.FromFunction(f)",
}
_NO_CHOICES = ("Kernel", "FeatureKernel", "Distance", "Facts")  # public names that are no kernels or distances
_OF_VECTORS = (
    "braycurtis",
    "canberra",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "minkowski",
    "sqeuclidean",
)  # of SciPy's cdist
_PLAIN = (int, float, str, bool, type(None))  # types of parameters that `==` compares by value
_TILES_PER_SIDE = 16  # of a pairwise block: enough to keep any number of processes busy


# ---- the two protocols
class _Comparison(BaseEstimator):
    """Base of kernels and distances: before they read objects, they check the parameters that are True or False."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        read = vars(cls).get("as_objects")
        if inspect.isfunction(read):

            @wraps(read)
            def as_objects(self: Any, X: Any) -> Any:
                check_flags(self)
                return read(self, X)

            cls.as_objects = as_objects  # type: ignore[method-assign]

    def as_objects(self, X: Any) -> Any:
        """Convert `X` to the type that this function needs, such as `StringBatch`, unless it takes any type."""
        check_flags(self)
        return without_none(objects_in(X))


@state()
class Kernel(_Comparison):
    """Base class of the built-in kernels ``k(X, Y=None)``. A kernel holds parameters and learns nothing."""

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the Gram block of n objects `X` and m objects `Y` (`X` if not given): float64, shape (n, m)."""
        raise NotImplementedError

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) for each object, shape (n,)."""
        raise NotImplementedError

    def _compared(self, X: Any) -> dict[str, str]:
        """Return which properties of `X` are compared, such as {"nodes": "node labels"}; {} if always the same ones."""
        return {}


@state()
class Distance(_Comparison):
    """Base class of the built-in distances ``d(X, Y=None)``. A distance holds parameters and learns nothing."""

    facts: ClassVar[Facts]

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Return the distances of n objects `X` to m objects `Y` (`X` if not given): floats of shape (n, m)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Facts:
    """Mathematical properties of a distance.

    Attributes
    ----------
    symmetric : bool
        Whether d(x, y) = d(y, x) for all objects x and y.
    identity : bool
        Whether d(x, x) = 0 for every object x.
    metric : bool
        Whether the triangle inequality holds, and d(x, y) = 0 only if x and y count as the same object. Objects may
        count as the same without being equal: for example, sets that differ only in the order of their points, or, for
        `ERP`, series that differ only in points equal to its gap value. `similia.planning.lipschitz` requires a metric.
    unequal_length : bool
        Whether the distance can compare objects of different lengths.
    cost : str
        Number of operations for a pair of objects of lengths m and n, up to a constant factor, such as ``"m n"``.
    """

    symmetric: bool
    identity: bool
    metric: bool
    unequal_length: bool
    cost: str


# ---- called and checked
def evaluate(kernel: Any, X: Any, Y: Any = None) -> npt.NDArray:
    """Return k(X, Y), or k(X) without a `Y`, as a float32 or float64 array; raise if its shape is not (n, m)."""
    check_kernel(kernel)
    return _checked_values(kernel, X, Y, "kernel")


def kernel_values(kernel: Any, X: Any, Y: Any, rows: Numbers, columns: Numbers, pair: str) -> npt.NDArray:
    """Return k(X, Y), or k(X) if `Y` is None; raise if a value is not finite.

    Error messages name two objects by the template `pair`, such as ``"X[{}] and X[{}]"``. Its placeholders are filled
    with the numbers of the objects, from `rows` and `columns`.
    """
    with pairs_named(rows, columns, pair):
        values = evaluate(kernel, X, Y)
    return check_finite(values, rows, columns, pair)


def check_finite(values: npt.NDArray, rows: Numbers, columns: Numbers, pair: str) -> npt.NDArray:
    """Return `values`, or raise if a value is NaN or infinite; see `kernel_values` for the other arguments."""
    finite = np.isfinite(values)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        expected = f" is {values[i, j]}, expected a finite number; look at these two objects (empty? NaN inside?)"
        index = int(np.asarray(rows)[i]), int(np.asarray(columns)[j])
        raise BadPairValue("the kernel value of", index, expected, pair)
    return values


def distances_between(distance: Any, X: Any, Y: Any = None, start: int = 0, pair: str | None = None) -> Floats:
    """Return the distances of `X` to `Y` (or `X`) as a float32 or float64 array; raise unless all are finite and >= 0.

    If `X` is a block of a larger collection, `start` is the position of its first object in that collection. `pair`
    names two objects in error messages, with ``{}`` for each position, such as "X[{}] and Y[{}]".
    """
    check_distance(distance)
    n = n_objects(X)
    rows, columns = range(start, start + n), range(n if Y is None else as_second(n_objects, Y))
    with pairs_named(rows, columns, pair):
        values = _checked_values(distance, X, Y, "distance")
    return _finite_distances(values, f"the distance {name_of(distance)} returned", pair or "X[{}] and Y[{}]", start)


def distance_matrix(D: Any, square: bool = False) -> Floats:
    """Return precomputed distances as a 2-D float array; raise for a wrong shape, or unless all are finite and >= 0."""
    D = as_floats(D, "the matrix of distances has")
    if D.ndim != 2 or len(D) == 0 or (square and D.shape[0] != D.shape[1]):
        kind = "a square matrix" if square else "a matrix"
        raise ValueError(f'distance="precomputed" needs {kind} of distances, got shape {D.shape}')
    return _finite_distances(D, "the matrix of distances holds", "objects {} and {}")


def _finite_distances(values: Floats, whose: str, pair: str, start: int = 0) -> Floats:
    bad = ~(values >= 0) | np.isinf(values)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        index, expected = (int(i) + start, int(j)), ", expected a finite number >= 0"
        raise BadPairValue(f"{whose} {values[i, j]:.6g} for", index, expected, pair)
    return values


def diagonal(kernel: Any, X: Any, evaluate: Callable[..., npt.NDArray] = evaluate) -> npt.NDArray[np.float64]:
    """Return k(x, x) for each object, shape (n,): by ``kernel.diag`` or, without it, from small Gram matrices."""
    refuse_class(kernel, "kernel")
    n = n_objects(X)
    if not hasattr(kernel, "diag"):
        parts = []
        for start in range(0, n, _DIAGONAL_BLOCK):
            rows = np.arange(start, min(start + _DIAGONAL_BLOCK, n))
            block = take(X, rows)
            with pairs_named(rows, rows, "X[{}] and X[{}]"):
                parts.append(evaluate(kernel, block, block).diagonal())
        return np.concatenate(parts).astype(np.float64)
    with pairs_named(range(n), range(n), "X[{}] and X[{}]"):
        values = as_floats(kernel.diag(X), f"{name_of(kernel)}.diag returned")
    if values.shape != (n,):
        raise ValueError(f"{name_of(kernel)}.diag returned shape {values.shape}, expected ({n},): one value per object")
    return values.astype(np.float64)


def self_values(kernel: Any, X: Any) -> npt.NDArray[np.float64]:
    """Return k(x, x) for each object as a block k(X, Y) holds it, shape (n,).

    In a block, an object without features has similarity 0 to itself, also if the kernel is normalised; its `diagonal`
    is 1 then.
    """
    if not hasattr(kernel, "_self_values"):
        return diagonal(kernel, X)
    n = n_objects(X)
    with pairs_named(range(n), range(n), "X[{}] and X[{}]"):
        values: npt.NDArray[np.float64] = kernel._self_values(X)
    return values


def precision(kernel: Any, X: Any, values: npt.NDArray | None = None) -> float:
    """Return the machine precision of kernel values of the objects `X`: that of float32 or float64.

    It is that of the dtype of `values`, some of these values, or of k(X[0], X[0]) if there are none. A kernel that
    computes in a lower precision than it returns tells it by a method ``_precision(X)``, called with X[:1].
    """
    if hasattr(kernel, "_precision"):
        return float(kernel._precision(take(X, [0])))  # a composite kernel asks each of its parts about this object
    if values is None:
        one = take(X, [0])
        values = evaluate(kernel, one, one)
    return float(np.finfo(values.dtype).eps)


def as_objects(function: Any, X: Any) -> Any:
    """Return `X` in the memory layout of a kernel or distance; `X` itself if `function` has no method ``as_objects``.

    In a table with a single, non-numeric column, the objects are the entries of that column.
    """
    refuse_class(function, "the kernel or distance")
    if hasattr(X, "__array__") and not hasattr(X, "__len__"):
        X = np.asarray(X)
    if not hasattr(function, "as_objects"):
        return without_none(objects_in(X))
    return X.converted(function.as_objects) if isinstance(X, Distributed) else function.as_objects(X)


def decided(kernel: Any, X: Any) -> Any:
    """Return ``kernel.decided(X)``; return `kernel` itself if it has no method ``decided``."""
    return kernel.decided(X) if hasattr(kernel, "decided") else kernel


def plain_parameters(function: Any) -> dict[str, Any] | None:
    """Return the parameters of a kernel or distance, with those nested inside it, in a form to compare by ``==``.

    The result is None for other functions, and if a parameter is no number, string, bool or None.
    """
    if not isinstance(function, Kernel | Distance):
        return None
    found: dict[str, Any] = {}
    for name, value in vars(function).items():
        if isinstance(value, _PLAIN):
            found[name] = value
        elif (inner := plain_parameters(value)) is not None:
            found[name] = type(value), inner
        else:
            return None
    return found


def compared(kernel: Any, X: Any) -> dict[str, str]:
    """Return which properties of `X` a kernel compares, such as {"nodes": "node labels"}; {} if always the same."""
    return kernel._compared(as_objects(kernel, X)) if hasattr(kernel, "_compared") else {}


def check_kernel(kernel: Any, what: str = "kernel") -> None:
    """Raise if `kernel` is a class, a distance of similia or not callable; `what` names it in messages."""
    refuse_class(kernel, what)
    if isinstance(kernel, Distance):
        raise TypeError(
            f"{kernel!r} is a distance, expected a kernel; similia.kernels.DistanceRBF(distance) and NegativeDistance "
            "turn it into a kernel, while similia.D2KE and recipes.d2ke take the distance itself"
        )
    if not callable(kernel):
        rooms = ("kernels", "distances") if what == "similarity" else ("kernels",)
        hint = spelled_out(kernel, *rooms)
        raise TypeError(f"{what} is {kernel!r}, expected a kernel: an object called as k(X, Y){hint}")


def check_distance(distance: Any) -> None:
    """Raise if `distance` is a class, a kernel of similia or not callable."""
    refuse_class(distance, "distance")
    if isinstance(distance, Kernel):
        own = isinstance(distance, Pairwise)
        such = "similia.distances.FromFunction(f) instead of similia.pairwise(f)" if own else "such as DTW()"
        raise TypeError(
            f"{without_addresses(distance)} is a kernel, whose values are large for similar objects; "
            f"expected a distance, {such}"
        )
    if not callable(distance):
        hint = spelled_out(distance, "distances") or "; see similia.distances"
        raise TypeError(f"distance must be a callable d(X, Y) -> (n, m), got {distance!r}{hint}")


def note_on_case(X: Any, *compared: Any) -> str:
    """Return a note for the user if `X` holds sequences in capitals and in small letters that are told apart, else "".

    `compared` are the kernels or distances that compare them, as far as known; there is no note if all ignore case.
    """
    known = [one for one in compared if one is not None]
    apart = [one for one in known if not _ignores_case(one)]
    if not isinstance(X, StringBatch) or (known and not apart) or not in_both_cases(X):
        return ""
    by = f" to {name_of(apart[0])}" if apart else ""
    remedy = "convert the strings to one case"
    if apart and _ignores_case(apart[0]) is False:
        remedy = "set ignore_case=True"
    return (
        f"the same letters occur as capitals and as small letters, which are different letters{by}; if case has no "
        f"meaning, {remedy}"
    )


def _ignores_case(function: Any) -> bool | None:
    """Return whether a kernel or distance ignores case, or None if it has no parameter for it."""
    params = function.get_params() if hasattr(function, "get_params") else {}
    found = [value for name, value in params.items() if name.rpartition("__")[2] == "ignore_case"]
    return all(found) if found else None


def check_direction(function: Any, is_kernel: bool, X: Any, name: str) -> None:
    """Raise if a user's function is taken for a kernel, but is a distance on some objects of `X`, or the reverse.

    The mean of k(x, x) over objects is never below the mean of k(x, y) over all pairs of them, because the matrix of a
    kernel has no negative eigenvalues. The mean of d(x, x) is not above that of d(x, y). `name` is the parameter that
    holds the function. Kernels and distances of similia are not called.
    """
    if isinstance(function, Kernel | Distance) and not callable(getattr(function, "function", None)):
        return
    n = n_objects(X)
    rows = np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.int64)
    some = take(X, rows)
    with pairs_named(rows, rows, "X[{}] and X[{}]"):
        pair = (some,) if isinstance(function, Kernel | Distance) else (some, some)  # others may need both collections
        values = (evaluate if is_kernel else distances_between)(function, *pair).astype(np.float64)
    own, mean, slack = values.diagonal().mean(), values.mean(), _SLACK * np.abs(values).max()
    called = name_of(function)
    if is_kernel and own < mean - slack:
        wrapped = "FromFunction(f)" if isinstance(function, Pairwise) else "FromFunction(f, pairwise=True)"
        raise BadParameter(
            name, "a kernel, with large values for similar objects",
            f"{called}, which is smaller between an object and itself than between different objects",
            f"if it is a distance, give similia.distances.{wrapped}",
        )  # fmt: skip
    if not is_kernel and own > mean + slack:
        wrapped = "pairwise(f)" if not getattr(function, "pairwise", True) else "kernels.Sum([f])"
        raise BadParameter(
            name, "a distance, with small values for similar objects",
            f"{called}, which is larger between an object and itself than between different objects",
            f"if it is a kernel, give similia.{wrapped}",
        )  # fmt: skip


def spelled_out(name: Any, *rooms: str) -> str:
    """Return the end of an error about a `name` in place of a kernel or distance: what to write; "" for other values.

    `rooms` are the places to look for it, "kernels" or "distances". Names of distances that SciPy knows are found too.
    """
    if not isinstance(name, str):
        return ""
    homes = {
        known: f"similia.{room}"
        for room in rooms
        for known in importlib.import_module(f"similia.{room}").__all__
        if known[0].isupper() and known not in _NO_CHOICES
    }
    found = nearest_name(name, homes)
    if found.lower() != name.lower() and "distances" in rooms and name.lower() in _OF_VECTORS:
        how = "cdist" if name.lower() == "euclidean" else f"functools.partial(cdist, metric={name.lower()!r})"
        return (
            f"; for vectors, write similia.distances.FromFunction({how}, pairwise=True), with cdist of "
            "scipy.spatial.distance"
        )
    if not found:
        return ""
    parameters = inspect.signature(getattr(importlib.import_module(homes[found]), found)).parameters.values()
    inside = "..." if any(parameter.default is parameter.empty for parameter in parameters) else ""
    return f"; did you mean {homes[found]}.{found}({inside})?"


def refuse_class(function: Any, what: str) -> None:
    if isinstance(function, type):
        name = function.__name__
        raise TypeError(f"{what} is the class {name}, expected an object that can be called; write {name}(...)")


def as_floats(values: Any, subject: str) -> npt.NDArray:
    """Return a dense float32 or float64 array; raise, naming the `subject`, if the values are not real numbers."""
    unmasked(values, subject.removesuffix(" holds").removesuffix(" has"))
    try:
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{subject} a {type(values).__name__} with rows of different lengths, expected rows of one length"
        ) from None
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{subject} values of dtype {values.dtype}, expected real numbers (float64)")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def name_of(function: Any) -> str:
    """Return the name of a kernel or distance for messages; for a wrapper (`partial`), that of the wrapped function."""
    if not hasattr(function, "__name__"):
        inner = function.func if isinstance(function, partial) else getattr(function, "function", None)
        if callable(inner):
            return name_of(inner)
    return getattr(function, "__name__", type(function).__name__)


def without_addresses(value: Any) -> str:
    """Return ``repr(value)`` with the names of functions instead of their addresses in memory.

    Kernels have no such ``__repr__``, because it would break scikit-learn's printing of nested estimators.
    """
    at, names = " at 0x[0-9a-fA-F]+", r"(?:[\w.]|<\w+>)*?"
    text = re.sub(rf"<(?:{names}(\w+) object{at}|built-in function (\w+))>", r"\1\2", repr(value))
    text = re.sub(rf"<(?:cy)?function ([\w.<>]+?){at}>", lambda found: found[1].split(".<locals>.")[-1], text)
    text = re.sub(rf"<bound method (?:{names}<locals>\.)?([\w.]+) of [^<>]*>", r"\1", text)
    return re.sub(at, "", text)


def _checked_values(function: Any, X: Any, Y: Any, what: str) -> npt.NDArray:
    name, shape = name_of(function), (n_objects(X), n_objects(X if Y is None else Y))
    values = as_floats(_called(function, X, Y, what), f"the {what} {name} returned")
    if values.shape != shape:
        raise ValueError(
            f"the {what} {name} returned shape {values.shape} for {shape[0]} x {shape[1]} objects, "
            f"expected {shape}; wrap a function of two objects with {_WRAPPERS[what]}"
        )
    return values


def _called(function: Any, X: Any, Y: Any, what: str) -> Any:
    """Return ``function(X)`` or ``function(X, Y)``; if it fails, explain how to wrap a function of two objects.

    A signature does not tell objects from collections, so a function that fails is tried on one pair of objects.
    """
    try:
        return function(X) if Y is None else function(X, Y)
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(function, BaseEstimator) or not _is_of_pairs(function, X, X if Y is None else Y):
            raise
        text = " ".join(str(error).split())
        raise TypeError(
            f"the {what} {name_of(function)} is a function of two objects, and fails on collections "
            f"({type(error).__name__}: {text[:_QUOTED]}); wrap it with {_WRAPPERS[what]}, or define it as "
            "f(X, Y=None) -> (n, m)"
        ) from error


def _is_of_pairs(function: Any, X: Any, Y: Any) -> bool:
    """Return whether `function`, called on the first object of `X` and that of `Y`, returns one number."""
    try:
        x, y = ((objects.iloc if hasattr(objects, "iloc") else objects)[0] for objects in (X, Y))
        value = function(x, y)
    except Exception:  # the caller raises the error of the call with collections
        return False
    return isinstance(value, Real) or getattr(value, "shape", None) == ()


# ---- kernels and distances alike
@dataclass(frozen=True)
class Metric:
    """The kernel (larger is closer) or distance (smaller is closer) by which a model compares objects."""

    function: Any
    is_kernel: bool

    def as_objects(self, X: Any) -> Any:
        """Return `X` in the layout the function works on."""
        return as_objects(self.function, X)

    def decided(self, X: Any) -> Self:
        """Return the metric with its function replaced by `similia.similarity.decided` of it and `X`."""
        return type(self)(decided(self.function, X), self.is_kernel)

    def between(self, X: Any, Y: Any) -> npt.NDArray[np.floating]:
        """Return the kernel values or distances of all pairs, (n, m); raise if the function returns anything else."""
        return evaluate(self.function, X, Y) if self.is_kernel else distances_between(self.function, X, Y)

    @property
    def symmetric(self) -> bool:
        """Whether d(x, y) = d(y, x), so that one evaluation serves both objects."""
        facts = getattr(self.function, "facts", None)
        known = self.is_kernel or (facts is not None and facts.symmetric)
        return bool(known and getattr(self.function, "symmetric", True))

    def norms(self, X: Any) -> Floats | None:
        """Return k(x, x) for each object x of `X` if this is a kernel k, or None if it is a distance."""
        if not self.is_kernel:
            return None
        return np.concatenate([*X.map(_norms, self)]) if isinstance(X, Distributed) else diagonal(self.function, X)

    def distances(self, X: Any, Y: Any, norms: Floats | None = None) -> Floats:
        """Return the distances between the objects of `X` and `Y`, shape (n, m); `norms` is ``norms(Y)``, if known."""
        if isinstance(Y, Distributed):
            return np.concatenate([*Y.map(_distances_from, self, X)], axis=1)
        values = self.between(X, Y)
        if not self.is_kernel:
            return values
        norms = diagonal(self.function, Y) if norms is None else norms
        return feature_distances(values, diagonal(self.function, X)[:, None], norms)

    def of_candidates(self, X: Any, Y: Any, candidates: Index, kept: dict[str, Any] | None = None) -> Floats:
        """Return kernel values or distances between each ``X[i]`` and the objects ``Y[candidates[i]]``, shape (n, c).

        `kept` is what the method `kept` returned for `Y`.
        """
        values = np.empty(candidates.shape)
        if not hasattr(self.function, "paired"):
            for i, row in enumerate(candidates):
                with pairs_named([i], row, "X[{}] and object {}"):
                    values[i] = self.between(take(X, [i]), take(Y, row))[0]
            return values
        step = rows_per_block(512 * candidates.shape[1])
        for start in range(0, len(candidates), step):
            block = candidates[start : start + step]
            rows = np.repeat(np.arange(start, start + len(block)), block.shape[1])
            found = self.function.paired(X, Y, rows, block.ravel(), **(kept or {}))
            values[start : start + step] = found.reshape(block.shape)
        return values

    def pairs(self, X: Any, rows: Index, columns: Index, kept: dict[str, Any]) -> Floats:
        """Return kernel values or distances of the pairs ``X[rows[k]], X[columns[k]]``; `rows` must be ascending."""
        if hasattr(self.function, "paired"):
            values = self.function.paired(X, X, rows, columns, **kept)
            return np.asarray(values, np.float64)
        found = np.empty(len(rows))
        for start, stop in itertools.pairwise(np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist()):
            one, others = rows[start : start + 1], columns[start:stop]
            if sp.issparse(X) and self.is_kernel:  # the second collection decides the order of sums: always one object
                one, others = others, one
            with pairs_named(one, others, "X[{}] and X[{}]"):
                found[start:stop] = self.between(take(X, one), take(X, others)).ravel()
        return found

    def kept(self, Y: Any) -> dict[str, Any]:
        """Return what `of_candidates` can reuse for the same `Y`: feature counts if the kernel has them, else {}."""
        return {"counts": self.function.counted(Y)} if getattr(self.function, "reuses_counts", False) else {}


def _norms(part: Any, start: int, metric: Metric) -> Floats | None:
    return metric.norms(part)


def _distances_from(part: Any, start: int, metric: Metric, X: Any) -> Floats:
    return metric.distances(X, part)


def feature_distances(values: Any, left: Any, right: Any) -> Any:
    """Return distances in a kernel's feature space, given `values` k(x, y), `left` k(x, x) and `right` k(y, y)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = left + right - 2 * values
    finite = np.isfinite(squares)
    if not finite.all():  # values above 9e307, whose sums overflow
        squares = np.where(finite, squares, (left - values) + (right - values))
    return np.sqrt(np.maximum(squares, 0.0))


def metric_from(function: Any, name: str, words: str = "") -> Metric:
    """Return a similia kernel or distance as a `Metric`; errors call it `name` and list other values, `words`."""
    if isinstance(function, Distance):
        return Metric(function, False)
    if isinstance(function, Kernel):
        return Metric(function, True)
    if callable(function) and not isinstance(function, type):
        raise ValueError(
            f"{name} is {without_addresses(function)}, which may be a kernel or a distance; wrap a function of two "
            "objects in similia.pairwise(f) if it is large for similar objects, or in "
            "similia.distances.FromFunction(f) if it is 0 for equal ones"
        )
    refuse_class(function, name)
    hint = spelled_out(function, "kernels", "distances")
    raise ValueError(f"{name} must be {words}a kernel or distance of similia, got {short(function, 80)}{hint}")


# ---- functions of two objects
def pairwise(function: Callable[[Any, Any], float], symmetric: bool = True, n_jobs: int | None = None) -> Pairwise:
    """Turn a Python function of two objects into a kernel of two collections.

    The function must return large values for similar objects. If it is a distance, which is 0 for equal objects, use
    `similia.distances.FromFunction` instead.

    Parameters
    ----------
    function : callable
        ``function(x, y) -> float``. Methods such as support vector machines need a positive semi-definite function.
    symmetric : bool, default=True
        Whether ``function(x, y)`` always equals ``function(y, x)``. If so, the Gram matrix of n objects takes n (n + 1)
        / 2 calls instead of n^2.
    n_jobs : int, optional
        Number of processes, which are spawned, never forked; -1 means one process for each core. By default,
        ``similia.config(n_jobs=...)`` sets the number; if it is not set, no processes are started. `function` may be a
        lambda or a closure. The result does not depend on `n_jobs`.

    Returns
    -------
    Pairwise
        A kernel ``k(X, Y=None) -> (n, m)`` for sequences of objects of any kind, with a method ``diag``. Searches for
        neighbours use the distance ``sqrt(k(x, x) + k(y, y) - 2 k(x, y))``.

    Examples
    --------
    >>> import similia as sm
    >>> same_length = sm.pairwise(lambda x, y: float(len(x) == len(y)))
    >>> same_length(["A", "C", "GT"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    if not callable(function):
        raise TypeError(f"pairwise takes a function f(x, y) of two objects, got {function!r}")
    return Pairwise(function, symmetric, n_jobs)


class EachPair(BaseEstimator):
    """A function of two collections that calls a Python function for each pair; see `pairwise`."""

    def __init__(
        self, function: Callable[[Any, Any], float], symmetric: bool = True, n_jobs: int | None = None
    ) -> None:
        self.function = function
        self.symmetric = symmetric
        self.n_jobs = n_jobs

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return f(x, y) for all pairs, float64 of shape (n, m); if a call fails, the error names the pair."""
        mirror = bool(self.symmetric) and Y is None
        xs = _objects(X, "X")
        ys = xs if Y is None else _objects(Y, "Y")
        tiles = [(r, c) for r in _ranges(len(xs)) for c in _ranges(len(ys)) if not mirror or r.start <= c.start]
        out = np.empty((len(xs), len(ys)))
        for (r, c), values in zip(tiles, self._evaluate(xs, ys, tiles, mirror), strict=True):
            out[r.start : r.stop, c.start : c.stop] = values
            if mirror:
                out[c.start : c.stop, r.start : r.stop] = np.transpose(values)
        return out

    def _evaluate(
        self, xs: list, ys: list, tiles: list[tuple[range, range]], mirror: bool
    ) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the values of each tile (a range of rows and a range of columns), in order.

        If some tiles fail, raise the error of the first of them.
        """
        failures: list[Exception] = []
        tasks = (
            (self.function, xs[r.start : r.stop], ys[c.start : c.stop], r, c, mirror)
            for r, c in tiles
            if not failures  # no new task is handed out after a failure
        )
        outcomes = _run(tasks, self.n_jobs if self.n_jobs is not None else settings().n_jobs)
        for outcome in track(outcomes, "pairwise", len(tiles)):
            if isinstance(outcome, Exception):
                failures.append(outcome)
            elif not failures:
                yield outcome
        if failures:
            raise failures[0]


class Pairwise(EachPair, Kernel):
    """A kernel that calls a Python function for each pair; see `pairwise`."""

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return f(x, x) for each object, shape (n,)."""
        return np.array([_checked(self.function, x, x, i, i) for i, x in enumerate(_objects(X, "X"))], dtype=np.float64)


def _run(tasks: Iterable[tuple], n_jobs: int | None) -> Iterator[npt.NDArray[np.float64] | Exception]:
    """Return ``_tile(*task)`` for each task in order, computed in this process or in `n_jobs` processes."""
    if n_jobs in (None, 1):
        return (_tile(*task) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, backend="loky", return_as="generator")(delayed(_tile)(*task) for task in tasks)


def _ranges(n: int) -> list[range]:
    """Return at most `_TILES_PER_SIDE` consecutive ranges that cover 0 to n - 1."""
    step = max(1, -(-n // _TILES_PER_SIDE))
    return [range(start, min(start + step, n)) for start in range(0, n, step)]


def _objects(X: Any, name: str) -> list[Any]:
    """Return the objects as a list; those of a data frame are its rows, those of Arrow become Python values."""
    X = without_none(objects_in(X), name)
    n = at_least_one(X, name)
    if hasattr(X, "to_pylist"):
        return X.to_pylist()
    if sp.issparse(X):
        X = X.tocsr()  # not all formats take indices
    rows = X.iloc if hasattr(X, "iloc") else X
    return [rows[i] for i in range(n)]


def _tile(
    function: Callable[[Any, Any], float], xs: list, ys: list, rows: range, columns: range, mirror: bool
) -> npt.NDArray[np.float64] | Exception:
    """Return f(x, y) for all pairs of a tile, or the error of the first pair that fails."""
    out = np.empty((len(xs), len(ys)))
    try:
        for a, (i, x) in enumerate(zip(rows, xs, strict=True)):
            for b, (j, y) in enumerate(zip(columns, ys, strict=True)):
                if mirror and j < i:
                    out[a, b] = out[b, a]  # this tile is on the diagonal: rows and columns are the same range
                else:
                    out[a, b] = _checked(function, x, y, i, j)
    except (TypeError, ValueError) as error:
        return error
    return out


def _checked(function: Callable[[Any, Any], float], x: Any, y: Any, i: int, j: int) -> float:
    name = name_of(function)
    try:
        value = function(x, y)
    except Exception as error:
        raise BadPairValue(f"{name} failed for", (i, j), f": {type(error).__name__}: {error}") from error
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real):
        raise BadPairType(f"{name} returned {type(value).__name__} for", (i, j), ", expected one real number")
    try:
        number = float(value)
    except OverflowError as error:
        found = f"{name} returned a number too large for float64 for"
        raise BadPairValue(found, (i, j), ", expected a finite number") from error
    if not np.isfinite(number):
        raise BadPairValue(f"{name} returned {number} for", (i, j), ", expected a finite number")
    return number


# ---- estimators that compare objects
class ComparesObjects:
    """Mixin that sets the scikit-learn tags of estimators that compare objects by a kernel or distance."""

    _by: ClassVar[str] = "kernel"  # the parameter that holds the kernel or distance

    @property
    def _precomputed(self) -> bool:
        return isinstance(getattr(self, self._by), str) and getattr(self, self._by) == "precomputed"

    @property
    def _fitted_to_matrix(self) -> bool:
        """Return whether `fit` got a precomputed matrix; the parameter may have been changed since."""
        return isinstance(getattr(self, f"{self._by}_"), str)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = True
        tags.input_tags.sparse = takes_sparse(getattr(self, self._by))
        tags.input_tags.pairwise = self._precomputed
        return tags


def takes_sparse(function: Any) -> bool:
    """Return whether a kernel or distance takes sparse matrices; a function from elsewhere is assumed to do so."""
    return bool(getattr(function, "_takes_sparse", not type(function).__module__.startswith("similia.")))


def read_objects(estimator: Any, function: Any, X: Any, *, reset: bool) -> Any:
    """Return `X` in the layout of `function`, and let `estimator` store (`reset`) or check the columns of a table."""
    if not reset and hasattr(estimator, "n_features_in_"):
        check_table(estimator, X, reset=False)
    objects = as_objects(function, X)
    check_table(estimator, objects, X, reset=reset)
    return objects


def warn_of_strangers(rows: Sequence[int], n: int, what: str) -> None:
    """Warn if the objects at `rows`, which share nothing with the training objects, are more than half of `n` objects.

    While streaming, one such object is enough for a warning, because each kind of warning is emitted only once. `what`
    completes the sentence "3 of 10 objects ...", for example "have no features".
    """
    most = 2 * len(rows) > n and not (settings().lazy and n < _FEW_OF_A_PART)
    if most or (len(rows) and settings().part):
        remedy = (
            "are they of the same kind (case, alphabet, labels) as the training objects? If so, this kernel looks for "
            "more than objects share (such as long substrings); take a coarser one"
        )
        warn_of_objects(ObjectsWarning(len(rows), n, what, rows[0], remedy))
