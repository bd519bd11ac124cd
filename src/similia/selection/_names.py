"""Short names of the candidates' kernels, distances and parameters, and keys that are equal if two compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from similia.kernels import Product, Sum
from similia.similarity import name_of

_LONGEST = 48  # maximum characters of a name; a sum lists several


def short_name(compare: Any) -> str:
    """Describe a kernel or distance in a few words.

    The first parameter, if a number, appears as its value; others appear as name=value if they differ from the default.
    ``normalize`` is left out.

    Examples
    --------
    >>> import similia as sm
    >>> short_name(sm.kernels.Sum([sm.kernels.Spectrum(k) for k in (2, 3, 4)]))
    'Spectrum 2–4'
    >>> short_name(sm.distances.DTW(window=0.1)), short_name(sm.kernels.WeisfeilerLehman(2, normalize=True))
    ('DTW 0.1', 'WeisfeilerLehman 2')
    """
    if hasattr(compare, "function"):
        text = name_of(compare)
    elif isinstance(compare, Sum) and compare.weights is None:
        return _sum(compare.kernels)
    elif isinstance(compare, Product) and len(compare.kernels) == 1:
        return short_name(compare.kernels[0])
    else:
        given = _given(compare)
        text = f"{type(compare).__name__} {', '.join(given)}".rstrip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _given(compare: Any) -> list[str]:
    """Return the parameters that `short_name` shows, as texts."""
    values = compare.get_params(deep=False)
    texts = []
    for i, (name, parameter) in enumerate(signature(type(compare)).parameters.items()):
        value, shown = values[name], _value(values[name])
        if name == "normalize":
            continue
        if i == 0 and isinstance(value, int | float) and not isinstance(value, bool):
            texts.append(shown)
        elif identity(value) != identity(parameter.default):
            texts.append(shown if isinstance(value, BaseEstimator) else f"{name}={shown}")
    return texts


def _value(value: Any) -> str:
    if isinstance(value, BaseEstimator):
        return short_name(value)
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _sum(kernels: Sequence[Any]) -> str:
    """Return one name for a sum of kernels; a sequence such as Spectrum 2, 3 and 4 becomes "Spectrum 2–4"."""
    names = [short_name(kernel) for kernel in kernels]
    heads, tails = {name.rpartition(" ")[0] for name in names}, [name.rpartition(" ")[2] for name in names]
    if len(names) > 1 and len(heads) == 1 and all(map(str.isdigit, tails)):
        numbers = [int(tail) for tail in tails]
        if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            return f"{heads.pop()} {numbers[0]}–{numbers[-1]}"
    return " + ".join(names)


def identity(what: Any) -> Hashable:
    """Return a key of a kernel, a distance, an estimator or a parameter: two with equal keys compute the same."""
    if isinstance(what, BaseEstimator):
        params = what.get_params(deep=False)
        return (type(what), *((name, identity(params[name])) for name in sorted(params)))
    if isinstance(what, list | tuple):
        return (type(what), *map(identity, what))
    if isinstance(what, dict):
        return (dict, *((identity(key), identity(value)) for key, value in what.items()))
    if isinstance(what, np.ndarray) and what.dtype != object:
        return np.ndarray, what.dtype.str, what.shape, what.tobytes()
    if what is None or isinstance(what, str | bytes | bool | int | float | complex | np.generic):
        return type(what), repr(what)
    return type(what), id(what)  # functions and other objects without a value
