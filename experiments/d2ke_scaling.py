"""D2KE: time against the number of objects and against their length, with the slopes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiments._figures import panels
from experiments._report import Record, Table, distinct, values
from similia.distances import DTW, Levenshtein, ModifiedHausdorff
from similia.embeddings import D2KE, RandomSeries, RandomSets, RandomStrings, Representatives
from similia.objects import SeriesBatch, SetBatch, as_strings

N_COMPONENTS, N_OBJECTS, LENGTH = 256, 100, 100
COUNTS = (500, 1000, 2000, 4000, 8000)
LENGTHS = (50, 100, 200, 400, 800)


@dataclass(frozen=True)
class ScalingTask:
    """Made objects of one kind, with their distance and the random objects of D2KE."""

    name: Literal["series", "strings", "sets"]


TASKS = tuple(map(ScalingTask, ("series", "strings", "sets")))  # type: ignore[arg-type]
TITLE = "D2KE: cost against number and length of objects"
TEXT = f"""
Seconds to make {N_COMPONENTS} features of random objects (fit included), the shortest of five runs that take turns.
Against the number of objects: length {LENGTH}. Against the length: {N_OBJECTS} objects. Random objects have one length
(series 2 to 25, strings 2 to 50, sets 3 to 15), so that D2KE is linear in both; representatives are as long as the
objects, so that their cost is quadratic in the length. Slopes are those of a straight line through the logarithms.
"""


def objects_of(kind: str, n: int, length: int) -> Any:
    """Return n random objects of one length: series of 3 channels, strings of 4 letters or sets in 16 dimensions."""
    rng = np.random.default_rng(0)
    if kind == "strings":
        return as_strings(["".join(letters) for letters in rng.choice(list("ACGT"), (n, length))])
    shape = (n * length, 3 if kind == "series" else 16)
    offsets = np.arange(n + 1, dtype=np.int64) * length
    return (SeriesBatch if kind == "series" else SetBatch)(rng.standard_normal(shape, dtype=np.float32), offsets)


def measure(task: ScalingTask, seeds: int) -> list[Record]:
    """Time both methods for each count and length; `seeds` changes nothing."""
    distance, sampler = {
        "series": (DTW(), RandomSeries(length=(2, 25))),
        "strings": (Levenshtein(), RandomStrings(length=(2, 50))),
        "sets": (ModifiedHausdorff(), RandomSets(size=(3, 15))),
    }[task.name]
    records: list[Record] = []
    for axis, sizes in (("number", COUNTS), ("length", LENGTHS)):
        calls = {}
        for size in sizes:
            X = objects_of(task.name, *((size, LENGTH) if axis == "number" else (N_OBJECTS, size)))
            for name, objects in (("D2KE", sampler), ("representatives", Representatives())):
                if axis == "length" or name == "D2KE":
                    model = D2KE(distance, min(N_COMPONENTS, len(X)), objects, gamma=1.0, random_state=0)
                    calls[name, size] = (model, X)
        best = dict.fromkeys(calls, np.inf)
        for _ in range(6):  # the first compiles and warms up
            for key, (model, X) in calls.items():
                start = time.perf_counter()
                model.fit(X).transform(X)
                best[key] = min(best[key], time.perf_counter() - start)
        for (name, size), seconds in best.items():
            row = {"set": task.name, "axis": axis, "method": name, "size": size, "seconds": round(seconds, 5)}
            records.append({**row, "seed": 0})
    return records


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return times with slopes, and the picture."""
    tables: list[Table] = []
    curves: dict[str, dict[str, list[float]]] = {}
    sizes_of: dict[str, list[int]] = {}
    for axis in ("number", "length"):
        sizes = distinct([r for r in records if r["axis"] == axis], "size")
        table = Table(f"Seconds against the {axis} of objects", ["objects", "method", *map(str, sizes), "slope"])
        for kind in distinct(records, "set"):
            title = f"{kind}, {axis}"
            curves[title], sizes_of[title] = {}, sizes
            for method in ("D2KE", "representatives"):
                seconds = values(records, "seconds", set=kind, axis=axis, method=method)
                if seconds:
                    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
                    table.rows.append([kind, method, *(f"{s:.3f}" for s in seconds), f"{slope:.2f}"])
                    curves[title][method] = seconds
        tables.append(table)
    return tables, panels(curves, sizes_of, "objects or length", "seconds", columns=3, log=True)
