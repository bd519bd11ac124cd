"""What `cpus.py` runs in each setting, in a process of its own:

    python tests/faults/_cpus_job.py FOLDER RESULT first|again|quick [NAME ...]

``first`` makes the data and the models and saves them into the folder; ``again`` loads them. Both write to RESULT what
the models return (``saved``), what models fitted here return (``fitted``), and how many rows of each output change when
the same objects come in other arrangements; ``quick`` is ``again`` without the last.
"""

from __future__ import annotations

import inspect
import json
import os
import pickle
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _cpus_cases import N_NEIGHBORS, Case, cases
from _cpus_data import data
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

import similia as sm
from similia.core.config import limited_to
from similia.distances import Distance
from similia.embeddings.d2ke import RandomObjects
from similia.kernels import Kernel
from similia.objects import AttributeScaler, FromColumn, GraphToSets, SeriesToSets, n_objects, take

Arrays = dict[str, np.ndarray]
N_COLUMNS = 37  # objects that kernels and distances are computed to
WIDER = "beside a float64 one"
N_TOGETHER = 77  # rows at most that are computed once more in other arrangements


def functions(model: Any, X: Any, case: Case) -> dict[str, Callable[[Any], Any]]:
    """Return by name what is computed row by row: methods of a model, values of a kernel to some objects."""
    if isinstance(model, Kernel | Distance):
        Y = take(X, np.linspace(0, n_objects(X) - 1, min(N_COLUMNS, n_objects(X))).astype(int))
        found = {"values": lambda Z: model(Z, Y), "columns": lambda Z: model(Y, Z).T}
        found |= {"diag": model.diag} if hasattr(model, "diag") else {}
        return found | ({"features": lambda Z: model.features(Z, 4099)} if hasattr(model, "features") else {})
    found, steps = {}, {}
    if isinstance(model, Pipeline) and not isinstance(
        model[0], AttributeScaler | FromColumn | GraphToSets | SeriesToSets
    ):  # those return objects
        steps = {f"{type(model[0]).__name__}.": model[:1]}
    for prefix, part in (steps | {"": model}).items():
        for method in case.methods:
            if hasattr(part, method):
                found[prefix + method] = _with_neighbours(getattr(part, method), method)
    return found


def _with_neighbours(method: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    return (lambda Z: method(Z, N_NEIGHBORS)) if name in ("kneighbors", "search") else method


def arrays(result: Any) -> list[np.ndarray]:
    """Return a result as arrays with a row an object."""
    parts = result if isinstance(result, tuple) else (result,)
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in parts]
    return [np.ascontiguousarray(part.astype("U") if part.dtype == object else part) for part in dense]


def flat(objects: Any) -> list[np.ndarray]:
    """Return drawn objects as one array of all their numbers, or letters, and one of their sizes."""
    items = [np.frombuffer(x.encode(), np.uint8) if isinstance(x, str) else np.asarray(x) for x in objects]
    return [np.concatenate([item.ravel() for item in items]), np.array([len(item) for item in items])]


def outputs(model: Any, X: Any, case: Case) -> Arrays:
    """Return all outputs of a model, by name."""
    if isinstance(model, RandomObjects):
        drawn = model.sample(X, 33, np.random.default_rng(0))
        return {f"sample|{i}": array for i, array in enumerate(flat(drawn))}
    found = {name: arrays(function(X)) for name, function in functions(model, X, case).items()}
    return {f"{name}|{i}": array for name, parts in found.items() for i, array in enumerate(parts)}


def changed(a: np.ndarray, b: np.ndarray) -> int:
    """Return how many rows of two arrays differ in any bit."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return max(len(a), len(b))
    if a.size == 0:
        return 0
    rows = [np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8) for x in (a, b)]
    return int((rows[0] != rows[1]).any(axis=1).sum())


# ---- the same objects in other arrangements


def rearranged(model: Any, X: Any, case: Case, whole: Arrays) -> dict[str, dict[str, int]]:
    """Return by output, and by arrangement, how many rows are not what they are in one call on all objects."""
    found: dict[str, dict[str, int]] = {}
    if isinstance(model, RandomObjects):
        return found
    for name, function in functions(model, X, case).items():
        parts = [whole[key] for key in whole if key.rpartition("|")[0] == name]
        for arrangement, rows, later in arrangements(function, X):
            if (name, arrangement) == ("columns", WIDER):
                continue  # the second collection decides the type
            for i, (expected, part) in enumerate(zip(parts, arrays(later()), strict=True)):
                if number := changed(expected[rows], part):
                    found.setdefault(f"{name}|{i}", {})[arrangement] = number
    return found


def arrangements(function: Callable[[Any], Any], X: Any) -> Iterator[tuple[str, np.ndarray, Callable[[], Any]]]:
    """Yield an arrangement's name, the positions of its rows, and how to compute them."""
    n = n_objects(X)
    some = np.unique(np.r_[np.linspace(0, n - 1, min(n, N_TOGETHER)).astype(int)])
    yield "alone", some[::11], lambda: _together(function, X, some[::11], size=1)
    yield "in sevens", some, lambda: _together(function, X, some, size=7)
    yield "backwards", np.arange(n)[::-1], lambda: function(take(X, np.arange(n)[::-1]))
    yield "in 64 KiB", np.arange(n), lambda: _in_little_memory(function, X)
    yield "one thread", np.arange(n), lambda: _on_one_thread(function, X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        yield "by columns", np.arange(n), lambda: function(np.asfortranarray(X))
    elif isinstance(X, list) and isinstance(X[0], np.ndarray) and X[0].dtype == np.float32:
        yield WIDER, np.arange(n), lambda: _beside_wider(function, X)
    if os.environ.get("CPUS_DASK") and getattr(function, "__self__", None) is not None:
        yield "through Dask", np.arange(n), lambda: _through_dask(function, X)


def _together(function: Callable[[Any], Any], X: Any, rows: np.ndarray, size: int) -> Any:
    pieces = [arrays(function(take(X, rows[i : i + size]))) for i in range(0, len(rows), size)]
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def _in_little_memory(function: Callable[[Any], Any], X: Any) -> Any:
    with sm.config(max_memory="64KiB"):
        return function(X)


def _on_one_thread(function: Callable[[Any], Any], X: Any) -> Any:
    with threadpool_limits(1), limited_to(1):
        return function(X)


def _beside_wider(function: Callable[[Any], Any], X: Any) -> Any:
    wider = [x.astype(np.float64) * 1.1 for x in X[:1]]
    return tuple(part[: len(X)] for part in arrays(function([*X, *wider])))


def _through_dask(function: Callable[[Any], Any], X: Any) -> Any:
    """Return what a method gives in five parts in threads, if three parts in other processes give the same."""
    ways = ((5, "threads"), (3, "processes"))
    found = [sm.scale.apply(function, _collection(X, n)).compute(scheduler=how) for n, how in ways]
    in_threads, elsewhere = (arrays(rows)[0] for rows in found)
    return in_threads if changed(in_threads, elsewhere) == 0 else np.zeros_like(in_threads)


def _collection(X: Any, n_parts: int) -> Any:
    """Return a Dask array of vectors, or a bag of other objects, in parts."""
    import dask.array as da
    import dask.bag as db
    from dask.delayed import delayed

    limits = np.linspace(0, n_objects(X), n_parts + 1).astype(int)
    pieces = [take(X, np.arange(a, b)) for a, b in pairwise(limits)]
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return da.concatenate([da.from_array(piece) for piece in pieces])
    return db.from_delayed([delayed(piece, traverse=False) for piece in pieces])


# ---- one setting


def main(folder: Path, result: Path, how: str, names: list[str]) -> None:
    given = _given(folder, how)
    saved, fitted, rows, errors, seconds = {}, {}, {}, {}, {}
    for number, (name, case) in enumerate(cases().items()):
        if names and name not in names:
            continue
        start = time.process_time()
        try:
            X = case.prepare(given["objects"][case.data])
            fresh = fit(case.make(), X, given["labels"][case.data])
            model = fresh if how == "first" else load(folder / f"{number}", fresh)
            if how == "first":
                save(model, folder / f"{number}")
            found = outputs(model, X, case)
            anew = found if how == "first" or model is fresh else outputs(fresh, X, case)
            moved = rearranged(model, X, case, found) if how != "quick" else {}
            rows |= {f"{name}|{key}": value for key, value in moved.items()}
        except Exception:
            errors[name] = traceback.format_exc()
            continue
        saved |= {f"{name}|{key}": array for key, array in found.items()}
        fitted |= {f"{name}|{key}": array for key, array in anew.items()}
        seconds[name] = round(time.process_time() - start, 3)
    np.savez(result / "saved.npz", **saved)
    np.savez(result / "fitted.npz", **fitted)
    report = {"rearranged": rows, "errors": errors, "seconds": seconds}
    (result / "report.json").write_text(json.dumps(report))


def _given(folder: Path, how: str) -> dict[str, Any]:
    path = folder / "data.pickle"
    if how == "first":
        path.write_bytes(pickle.dumps(data()))
    return pickle.loads(path.read_bytes())


def fit(model: Any, X: Any, y: np.ndarray) -> Any:
    if not hasattr(model, "fit"):
        return model
    return model.fit(X, y[: n_objects(X)]) if "y" in inspect.signature(model.fit).parameters else model.fit(X)


def save(model: Any, path: Path) -> None:
    """Save what has learnt something: as a model file."""
    if hasattr(model, "fit"):
        sm.save(model, path)


def load(path: Path, fresh: Any) -> Any:
    return sm.load(path) if hasattr(fresh, "fit") else fresh


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


if __name__ == "__main__":
    with quiet():
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
