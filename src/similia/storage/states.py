"""Decide which classes of similia a model file may name, and check the attributes of loaded objects.

A file may name a class that the `__init__` of its package exports, such as ``similia.Nystroem`` or
``similia.kernels.Spectrum``, and that declares its state (`core.state`). Kernels and distances check their parameters
in each call; batches of objects are checked in `Batch.__setstate__`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np

from similia.core.state import Sizes, State, declared, is_comparison, is_flag
from similia.core.text import short
from similia.storage.estimators import STATES, check_trees_of

_LARGEST = 2**31 - 1
_MOST = {  # maxima of parameters that make a call costly and that no array in the file limits
    "n_bits": 2**24, "n": 2**16, "n_levels": 2**20, "n_iter": 10**4, "max_iter": 10**6, "n_samples": 10**7,
    "n_projections": 10**5, "k": 10**4, "gaps": 10**3, "mismatches": 20, "degree": 10**4,
    "n_components": 2**24, "n_features": _LARGEST, "n_candidates": 10**7, "n_hashes": 2**16,
}  # fmt: skip
_UNLISTED = {  # classes that models hold although they are not public, and their modules
    "similia.embeddings": {
        "FeatureScaler": "vectors",
        "DilatedKernels": "convolutions",
        **dict.fromkeys(("Match", "MatchClasses", "Quadratic", "Waves", "PerPattern", "Spectra"), "graphlets"),
    },
    "similia.objects": {"SmilesBatch": "molecules"},
}


def public_class(module: str, name: str) -> type | None:
    """Return the class with this public name, or None if model files must not name it."""
    package, _, room = module.partition(".")
    if package != "similia" or (room and room not in importlib.import_module("similia").__all__):
        return None
    found = _exported(module, name)
    return found if isinstance(found, type) and public_name(found) == (module, name) else None


def public_name(cls: type) -> tuple[str, str] | None:
    """Return the (module, name) by which model files name a class, or None if they must not name it."""
    if declared(cls) is None or not cls.__module__.startswith("similia."):
        return None
    room = ".".join(cls.__module__.split(".")[:2])
    return next(((home, cls.__name__) for home in ("similia", room) if _exported(home, cls.__name__) is cls), None)


def _exported(package: str, name: str) -> Any:
    """Return the object `name` if `package` exports it or `_UNLISTED` lists it for the package, otherwise None."""
    module = importlib.import_module(package)
    if name in getattr(module, "__all__", ()):
        return getattr(module, name)
    home = _UNLISTED.get(package, {}).get(name)
    return None if home is None else getattr(importlib.import_module(f"{package}.{home}"), name)


def check_states(root: Any, state_of: Callable[[Any], dict[str, Any]] = vars) -> None:
    """Raise ValueError if the attributes ``state_of(x)`` of an object x in the model `root` do not fit its class."""
    for value in _inside(root, state_of):
        cls, name, state = type(value), type(value).__name__, state_of(value)
        if cls.__module__.startswith("similia."):
            _check_plain(name, value, state)
        elif cls.__module__.startswith("sklearn."):
            check_trees_of(name, state)
        for declaration in _declarations(cls):
            _check_declared(name, value, state, declaration)


def _declarations(cls: type) -> Iterator[State]:
    for base in cls.__mro__:
        if (theirs := STATES.get(f"{base.__module__}.{base.__name__}")) is not None:
            yield theirs
    if (ours := declared(cls)) is not None:
        yield ours


def _check_declared(name: str, value: Any, state: dict[str, Any], declaration: State) -> None:
    sizes: Sizes = {}
    for attribute, check in declaration.checks.items():
        if attribute in state and not check(state[attribute], sizes):
            if attribute == "memory":
                raise ValueError(f"a {name} has memory set, a folder of pickles; set memory=None first")
            raise ValueError(f"a {name} has an invalid attribute {attribute}: {_described(state[attribute])}")
    known = list(declaration.checks)
    if hasattr(value, "_get_param_names"):  # an estimator: fitted attributes are all there, or none
        known = [attribute for attribute in known if attribute.startswith("_") or attribute.endswith("_")]
    needed = [attribute for attribute in known if attribute not in declaration.may_lack]
    lacking = [attribute for attribute in needed if attribute not in state]
    if lacking and (len(lacking) < len(needed) or not hasattr(value, "_get_param_names")):
        raise ValueError(f"a {name} lacks the attribute {lacking[0]}")
    if known and not lacking and not all(fits(state, sizes) for fits in declaration.fits):
        raise ValueError(f"a {name} has attributes that do not fit each other")


def _check_plain(name: str, value: Any, state: dict[str, Any]) -> None:
    """Raise if an attribute hides a method, or a parameter is missing, too large, or not of the type of its default."""
    for attribute in state:
        if callable(getattr(type(value), attribute, None)):
            raise ValueError(f"a {name} has an attribute {short(attribute)}, which is the name of a method")
    declaration = declared(type(value))
    for parameter, default in _parameters(type(value)):
        if parameter not in state:
            raise ValueError(f"a {name} lacks its parameter {parameter}")
        found, plain = state[parameter], isinstance(default, int | float)
        plain |= isinstance(default, str) and is_comparison(value)
        plain &= declaration is None or parameter not in declaration.checks
        if (isinstance(default, bool) and not is_flag(found, {})) or (plain and np.ndim(found) > 0):
            raise ValueError(f"a {name} has {parameter}={short(found)}, expected a value of the type of {default!r}")
    for parameter, most in _MOST.items():
        found = state.get(parameter)
        if isinstance(found, Integral) and int(found) > most:
            raise ValueError(f"a {name} has {parameter}={short(found)}, expected at most {most} in a file")


def _parameters(cls: type) -> list[tuple[str, Any]]:
    """Return the (name, default) of each constructor parameter of an estimator; an empty list for other classes."""
    if not hasattr(cls, "_get_param_names"):
        return []
    known = inspect.signature(cls).parameters
    return [(name, known[name].default) for name in cls._get_param_names()]


def _inside(root: Any, state_of: Callable[[Any], dict[str, Any]]) -> Iterator[Any]:
    """Yield once each object that has attributes: `root`, and those in its attributes and containers, at any depth."""
    stack, met = [root], set()
    while stack:
        value = stack.pop()
        if id(value) in met or isinstance(value, str | bytes | type):
            continue
        if isinstance(value, np.ndarray):
            stack.extend(value.ravel().tolist() if value.dtype == object else ())
            continue
        met.add(id(value))
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple | set):
            stack.extend(value)
        elif hasattr(value, "__dict__"):
            stack.extend(state_of(value).values())
            yield value


_SEARCHES = ("SimilaritySearch", "HammingIndex", "FeatureIndex", "VectorIndex")


def written(value: Any) -> dict[str, Any]:
    """Return the attributes that `save` writes for an object; a search or an index is written without its caches."""
    return value.__getstate__() if type(value).__name__ in _SEARCHES else vars(value)


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else short(value)
