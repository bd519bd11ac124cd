"""Write predictions of chunks as lines of CSV, TSV or JSON, with class scores, label sets, intervals or deviations.

Scores and standard deviations are rounded to six digits, and ends of intervals to nine. The last digits of sums of
floats depend on the chunks, but the content of a file should not. The numbers that a regressor predicts are not
rounded.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import part_of_more
from similia.learn.conformal import checked_coverage
from similia.pipelines import steps_of
from similia.sources.source import Chunk

_FORMS = {".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_NOT_LINES = (".parquet", ".npy", ".gz", ".xlsx")
_ROW, _LABEL = "row", "label"
_ENDS, _STD, _SET, _OR = ["low", "high"], ["std"], "set", " | "


class Predictions:
    """Turn the predictions of a fitted classifier or regressor into lines of a file; see `scale.stream.Form`.

    `form` is "csv", "tsv" or "jsonl". With `scores`, each line also holds the probabilities of all classes (or, if the
    model has none, its decision values). With `coverage`, it holds the set of labels ("set") or the interval ("low",
    "high") to which a `ConformalClassifier`, a `ConformalRegressor` or a Gaussian process gives this coverage. With
    `std`, it holds the standard deviation of the prediction ("std"). The first column holds the names of the objects,
    or their positions. `names` is the input column that holds the names. If it is a str, it is also the name of the
    first column, which is otherwise called "row".
    """

    row: Any = None

    def __init__(
        self,
        model: Any,
        form: str = "csv",
        scores: bool = False,
        names: str | int | None = None,
        coverage: float | None = None,
        std: bool = False,
    ) -> None:
        if scores + (coverage is not None) + std > 1:
            raise ValueError("scores, coverage and std exclude each other; write each to a file of its own")
        self.model = model
        self.function: Callable[[Any, Any], Any] = _scored if scores else _labels
        self.belongs: dict[str, Any] = ({} if form == "csv" else {"form": form}) | ({"scores": True} if scores else {})
        self._form, self._classes = form, _classes_of(model) if scores else []
        self._known: list[Any] | None = None  # the labels that sets can hold
        self._digits = 9 if coverage is not None else 6
        if coverage is not None:
            self.belongs["coverage"] = float(checked_coverage(coverage))
            self.function, self._known = _covered(model, coverage)
            self._classes = _ENDS if self._known is None else [_SET]
            mixed = [label for label in map(str, self._known or ()) if _OR in label]
            if mixed and form != "jsonl":
                raise ValueError(
                    f"the class {mixed[0]!r} contains {_OR!r}, which separates the labels of a set; write the sets as "
                    "JSON (a file that ends in .jsonl)"
                )
        if std:
            _check_std(model)
            self.belongs["std"], self.function, self._classes = True, _with_std, _STD
        self._item = names if isinstance(names, str) else _ROW
        if names is not None:
            self.belongs["item"] = names
        ours = {_LABEL, *(["scores"] if scores and form == "jsonl" else self._classes)}
        if names is not None and self._item in ours:
            raise ValueError(
                f"the predictions have a column {names!r}, too; rename it in the data, or drop names: rows are then "
                "numbered from 0, in the order of the data"
            )
        taken = [name for name in self._classes if name in (self._item, _LABEL)]
        if taken and scores and form != "jsonl":
            raise ValueError(
                f"a class is called {taken[0]!r}, like a column of the predictions; write the scores as JSON (a file "
                "that ends in .jsonl)"
            )
        self._head = b"" if form == "jsonl" else self._table([[self._item, _LABEL, *self._classes]])
        self.offset = len(self._head)

    def bytes_of(self, chunk: Chunk, predicted: Any) -> bytes:
        labels, scores = predicted if self._classes else (predicted, np.empty((len(predicted), 0)))
        names: Iterable[Any] = range(chunk.start, chunk.stop) if chunk.names is None else chunk.names
        rows = zip(names, labels.tolist(), self._sets(scores.tolist()), strict=True)
        if self._form == "jsonl":
            return "".join(self._json(*row) + "\n" for row in rows).encode()
        if self._known is not None:
            return self._table([name, label, _OR.join(map(str, values))] for name, label, values in rows)
        return self._table([name, label, *map(self._rounded, values)] for name, label, values in rows)

    def first(self, n: int) -> bytes:
        """Return the header line (empty for "jsonl"); `n` is not used."""
        return self._head

    def _table(self, rows: Iterable[list[Any]]) -> bytes:
        lines = io.StringIO(newline="")
        csv.writer(lines, delimiter="\t" if self._form == "tsv" else ",").writerows(rows)
        return lines.getvalue().encode()

    def _sets(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Return the labels of each set, from rows of booleans; return rows of numbers unchanged."""
        known = self._known
        if known is None:
            return rows
        return [[label for label, inside in zip(known, row, strict=True) if inside] for row in rows]

    def _rounded(self, value: float) -> str:
        return f"{value:.{self._digits}g}"

    def _json(self, name: Any, label: Any, values: list[Any]) -> str:
        facts = {self._item: name, _LABEL: label}
        if self._known is not None:
            facts[_SET] = values
        elif self._classes:
            numbers = {c: float(self._rounded(value)) for c, value in zip(self._classes, values, strict=True)}
            facts |= numbers if self._classes in (_ENDS, _STD) else {"scores": numbers}
        return json.dumps(facts)


def form_of(output: Path) -> str:
    """Return the format for the ending of `output`, "csv" if unknown; raise for other formats, such as ``.npy``."""
    ending = output.suffix.lower()
    if ending == ".json":
        raise ValueError(f"predictions as JSON are written as lines, so that a run can resume; end {output} in .jsonl")
    if ending in _NOT_LINES:
        raise ValueError(f"predictions are written as .csv, .tsv or .jsonl, but {output} has another ending")
    return _FORMS.get(ending, "csv")


# functions that run on workers
@part_of_more()
def _labels(model: Any, X: Any) -> npt.NDArray:
    return np.asarray(model.predict(X))


@part_of_more()
def _scored(model: Any, X: Any) -> tuple[npt.NDArray, npt.NDArray]:
    """Return labels (n,) and class scores (n, n_classes); the objects are transformed only once for both."""
    *steps, last = steps_of(model)
    for step in steps:
        X = step.transform(X)
    scores = np.asarray(getattr(last, _method(last))(X), dtype=np.float64)
    if scores.ndim == 1:  # decision values of two classes: positive for the second one
        scores = np.column_stack([-scores, scores])
    if scores.shape[1:] != (len(last.classes_),):
        raise ValueError(
            f"{type(last).__name__} gives {scores.shape[1]} values for {len(last.classes_)} classes "
            "(of pairs of classes?), expected one per class; drop scores"
        )
    return np.asarray(last.predict(X)), scores + 0.0  # turns -0 into 0


@part_of_more()
def _with_sets(model: Any, X: Any, coverage: float) -> tuple[npt.NDArray, npt.NDArray[np.bool_]]:
    return np.asarray(model.predict(X)), model.predict_set(X, coverage)


@part_of_more()
def _with_intervals(model: Any, X: Any, coverage: float) -> tuple[npt.NDArray, npt.NDArray[np.float64]]:
    return np.asarray(model.predict(X)), model.predict_interval(X, coverage) + 0.0


@part_of_more()
def _with_std(model: Any, X: Any) -> tuple[npt.NDArray, npt.NDArray[np.float64]]:
    *steps, last = steps_of(model)
    for step in steps:
        X = step.transform(X)
    mean, std = last.predict(X, return_std=True)
    return np.asarray(mean), np.asarray(std, dtype=np.float64)[:, None]


def _check_std(model: Any) -> None:
    """Raise if the model predicts no standard deviations."""
    last = steps_of(model)[-1]
    if "return_std" not in inspect.signature(last.predict).parameters:
        raise ValueError(
            f"the model ({type(last).__name__}) predicts no standard deviations; a Gaussian process for numbers does "
            "('similia fit --learner gaussian-process', or sm.GaussianProcessRegressor)"
        )


def _covered(model: Any, coverage: float) -> tuple[Callable[[Any, Any], Any], list[Any] | None]:
    """Return the function for the sets or intervals of a model, and the labels that sets can hold."""
    if hasattr(model, "predict_set"):
        return partial(_with_sets, coverage=coverage), model.classes_.tolist()
    if hasattr(model, "predict_interval"):
        return partial(_with_intervals, coverage=coverage), None
    raise ValueError(
        f"the model ({type(steps_of(model)[-1]).__name__}) is not calibrated, so it has no sets or intervals; "
        "'similia fit --conformal', or sm.ConformalClassifier and sm.ConformalRegressor, calibrate one"
    )


def _method(last: Any) -> str:
    return "predict_proba" if hasattr(last, "predict_proba") else "decision_function"


def _classes_of(model: Any) -> list[str]:
    """Return the names of the classes, or raise if the model has no class scores."""
    last = steps_of(model)[-1]
    name, classes = type(last).__name__, getattr(last, "classes_", None)
    if classes is None or isinstance(classes, list):
        what = "numbers" if classes is None else "several labels at once"
        raise ValueError(f"the model ({name}) predicts {what}, so there are no scores of classes; drop scores")
    if not hasattr(last, _method(last)):
        raise ValueError(
            f"the model ({name}) has neither probabilities nor decision values (predict_proba, decision_function); "
            "drop scores"
        )
    return [str(label) for label in np.asarray(classes).tolist()]
