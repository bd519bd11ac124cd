"""Predict with a model for ``similia predict``, and check that data suit a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import similia as sm
from similia.cli.columns import with_columns_of
from similia.cli.inputs import Objects, has_columns, open_objects
from similia.cli.outputs import Spoken, check_output, meters, stoppable
from similia.cli.voice import called, console, note, result, voice
from similia.core.errors import BadFile, BadItem, DataError
from similia.core.text import short
from similia.pipelines import parts_of
from similia.planning.costs import kind_of
from similia.scale.predictions import Predictions, form_of
from similia.scale.stream import CHUNK, print_stream, write_stream
from similia.sources.reading import Reading, ending_of
from similia.sources.source import Source
from similia.sources.streams import ObjectStream, is_table

_DEFAULT_KERNEL = {"strings": "GappyKmers(k=4, gaps=1)", "graphs": "WeisfeilerLehman(n_iter=3, normalize=True)"}
_DEFAULT_DISTANCE = {"strings": "Levenshtein()", "series": "DTW()", "sets": "ModifiedHausdorff()"}


def predict_with_model(
    model_path: Path, data: str, output: Path | None, *, scores: bool = False, chunk: int = CHUNK, workers: Any = None,
    **table: Any,
) -> None:  # fmt: skip
    """Write the predicted label of each object of `data`; FASTA records keep their names, rows those in ``names``."""
    ending = "jsonl" if voice().json else "csv"
    if output is not None:
        check_output(output, data, model_path)
        ending = form_of(output)
    model = sm.load(model_path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{model_path} makes no predictions (is it an encoder?); 'similia fit' writes models that do")
    table = _as_compared(data, _compared(model), with_columns_of(model, data, table))
    stream, names = open_objects(data, chunk=chunk, workers=workers, **table), table.get("names")
    form = Predictions(model, ending, scores, names)  # raises if there are no scores, before anything is compared
    _check_comparison(_compared(model), stream, stream.take([0]), fitted=True)
    if output is None:
        print_stream(form, stream, sys.stdout, workers=workers)
        return
    progress = Spoken()
    with stoppable(lambda: progress.done, stream.n), meters():
        write_stream(form, stream, output, workers=workers, progress=progress)
    console().print(f"wrote {progress.done} predictions to {output}")
    result({"predictions": progress.done, "output": output})


def _compared(model: Any) -> Any:
    """Return the kernel or distance of a model (of models that vote, of the first), or None."""
    found = parts_of(model).comparison(fitted=False)
    return found.function if found is not None and hasattr(found.function, "as_objects") else None


def _check_comparison(compared: Any, data_read: Objects | Source, objects: Any, fitted: bool = False) -> None:
    """Raise if a kernel or distance compares strings and the data are graphs, or the like, or if an object is bad."""
    if compared is None:
        return
    try:
        compared.as_objects(objects)
    except (TypeError, ValueError) as error:
        if kind_of(compared) == data_read.kind:
            if isinstance(error, BadItem) and error.index is not None:
                raise error.changed(path=str(data_read.source), at=_place(error.index, data_read)) from error
            if isinstance(error, DataError):
                raise error.changed(path=str(data_read.source)) from error
            raise BadFile(data_read.source, f"cannot be compared: {error}") from error
        reads_smiles = (kind_of(compared), data_read.kind) == ("graphs", "strings")
        hint = "; --smiles instead of --text reads SMILES as molecules" if reads_smiles else ""
        if data_read.kind == "graphs" and has_columns(data_read.source) and _takes_strings(compared):
            hint = "; --text instead of --smiles reads the column as strings"
        if fitted:
            columns, advice = _other_columns(compared, data_read.columns)
            found = f"holds {data_read.called}{columns}, which {compared} does not compare{hint or advice}"
            raise BadFile(data_read.source, found) from error
        fitting = [d[data_read.kind] for d in (_DEFAULT_KERNEL, _DEFAULT_DISTANCE) if data_read.kind in d]
        raise BadFile(
            data_read.source,
            f"holds {data_read.called}, which {compared} does not compare; use e.g. {' or '.join(fitting)}{hint}",
        ) from error


_OTHER = {
    "strings": "; --text names another column, of strings",
    "graphs": "; --smiles names another column, of molecules",
    "series": "; --values names other columns, of numbers",
}


def _other_columns(compared: Any, columns: Sequence[str]) -> tuple[str, str]:
    """Return which columns of a table hold the objects, and what else to give to a model that does not compare them."""
    wanted = kind_of(compared)
    if not columns:
        return "", f"; give a file of {wanted}" if wanted else ""
    shown = ", ".join(map(short, columns[:4])) + (f" … {short(columns[-1])}" if len(columns) > 4 else "")
    return f" (column{'s' * (len(columns) > 1)} {shown})", _OTHER.get(str(wanted), "")


def _place(i: int, data_read: Objects | Source) -> str:
    """Return the line and name of an object."""
    lines, names = getattr(data_read, "lines", None), getattr(data_read, "names", None)
    place = f"object {i} (from 0)" if lines is None else f"line {lines[i]}"
    return place + ("" if names is None else f", {short(names[i])}")


def _as_compared(data: str, compared: Any, table: dict[str, Any]) -> dict[str, Any]:
    """Return how to read data: rows of numbers as series, where a kernel or distance is for series only."""
    path, reading = Path(data), Reading(**table)
    if not path.is_file() or reading.kind not in (None, "vectors") or kind_of(compared) != "series":
        return table
    numbers = ending_of(path) == ".npz"
    if not numbers and is_table(path, reading):
        numbers = ObjectStream(path, reading, 1, 2**26).kind == "vectors"
    if not numbers:
        return table
    note(f"note: {called(data)} is read as series, which {compared} compares")
    return {**table, "series": True}


def _takes_strings(compared: Any) -> bool:
    try:
        compared.as_objects(sm.objects.as_strings(["C"]))
    except (TypeError, ValueError):
        return False
    return True
