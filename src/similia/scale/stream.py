"""Encode, predict or index sources of any length in constant memory; interrupted runs resume.

A source is read in chunks. The model processes each chunk, in this process or on a Dask cluster (see `workers`). The
results of the chunks are committed, in the order of the source, to a journal or an index, together with the number of
objects done so far. The results do not depend on the chunks, the workers or interruptions. Cost: `transform` of all
objects, one additional reading of a file for its fingerprint, and two flushes to the disk per chunk. A resumed run
reads the file from its beginning, but transforms only the remaining objects.

`Predictions` become lines of CSV, TSV or JSON, with class scores, label sets, intervals or standard deviations. Scores
and standard deviations are rounded to six digits, and ends of intervals to nine. The last digits of sums of floats
depend on the chunks, but the content of a file should not. The numbers that a regressor predicts are not rounded.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TextIO, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClusterMixin

from similia.core.config import meter, part_of_more, settings
from similia.core.estimators import ObjectsOut, check_columns
from similia.core.hashing import digest_of
from similia.core.text import short
from similia.core.validation import (
    BadItem,
    BadPair,
    as_path,
    check_codes,
    check_encoder,
    check_positive_int,
    warn_user,
)
from similia.learn.conformal import checked_coverage
from similia.objects import SeriesBatch, SetBatch
from similia.pipelines import decides_in_pairs, parts_of, steps_of
from similia.scale.workers import Function, opened
from similia.search.on_disk import encoded, kept_objects
from similia.sources.files import open_objects
from similia.sources.source import Chunk, Reading, Source, key_column, place_of
from similia.sources.streams import ObjectStream, remembered
from similia.storage.disk import Journal, check_target, disk_full

CHUNK = 10_000  # maximum number of objects committed together
FIT_ON = 20_000  # maximum number of objects of a stream to which an encoder is fitted
_PARTIAL = ".partial"
_PER_OBJECT = 2**16  # working memory in bytes that one object may need: 8192 numbers of 8 bytes
_PER_BYTE = 16  # bytes of working memory per byte of input, for each chunk in memory
_ELSEWHERE = 32  # assumed number of chunks in memory on a cluster of unknown size
_NPY_HEADER = 128
Objects = str | os.PathLike[str] | Iterable[Any] | Source
# ---- the kind of arrays that a model reads
_HELD = ("landmarks_", "objects_", "support_objects_")  # attributes that hold training objects
_INSIDE = (  # attributes that hold another model
    "best_", "best_estimator_", "pipeline_", "encoder_", "estimators_", "calibrated_classifiers_", "regressor_",
    "estimator_", "estimator",
)  # fmt: skip
_FORMS = {".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_NOT_LINES = (".parquet", ".npy", ".gz", ".xlsx")
_LABEL, _CLUSTER = "label", "cluster"
_ENDS, _STD, _SET, _OR = ["low", "high"], ["std"], "set", " | "


class Progress:
    """Callbacks that report the state of a run; the command line prints them.

    Examples
    --------
    >>> import similia as sm
    >>> class Printed(sm.scale.Progress):
    ...     def resumed(self, text):
    ...         print(text)
    """

    done = 0  # number of objects written

    def resumed(self, text: str) -> None:
        """Report that the run resumes an earlier one."""

    def restarted(self, text: str) -> None:
        """Report that an unfinished run with other data, options or another model is discarded."""

    def damaged(self, text: str) -> None:
        """Report that some results of an interrupted run are damaged and are computed again."""
        warn_user(text)


def encode_stream(
    encoder: Any, source: Objects, output: str | os.PathLike[str], *, text: str | int | None = None, chunk: int = CHUNK,
    workers: Any = None, progress: Progress | None = None,
) -> int:  # fmt: skip
    """Encode the objects of a source, and write the codes or vectors to a ``.npy`` file, in constant memory.

    To resume an interrupted run, even one that the command ``similia encode`` began, call `encode_stream` again with
    the same source file, encoder and `output`. The file `output` appears when it is complete; until then, the folder
    ``<output>.partial`` holds the finished chunks.

    Parameters
    ----------
    encoder : fitted transformer
        Its ``transform`` returns an array with one row per object: packed codes or vectors.
    source : path, iterable or Dask collection
        The objects, or a file of objects that `similia.sources.read_objects` can read. A file in a format that
        `similia.sources.open_stream` does not read is read into memory as a whole. A run over an iterable, such as a
        generator, cannot be resumed. Arrays in an iterable are read as the kind of objects to which the encoder was
        fitted: series, sets or vectors. To set further options for reading, pass the result of `open_stream`.
    output : path
        The ``.npy`` file.
    text : str or int, optional
        Column that holds the strings, if the source is a table. By default, the columns to which the encoder was fitted
        are read. If the encoder does not know their names, the column called "text" or, without one, the only column of
        text is read. If no column holds text, the columns of numbers are read.
    chunk : int, default=10_000
        Maximum number of objects that are read, encoded and written together; ``similia.config(max_memory=...)`` may
        lower it.
    workers : None, int, str or distributed.Client, optional
        Where to encode. None: in this process. An int: in this number of new processes on this machine. A str: on a
        Dask cluster, given by the address of its scheduler, such as ``"tcp://10.0.0.1:8786"``. A Client: on the cluster
        of this client.
    progress : Progress, optional
        Object whose methods are called as the run proceeds, an instance of `similia.scale.Progress`.

    Returns
    -------
    int
        The number of objects in `output`.

    Raises
    ------
    ValueError, TypeError
        If an object or the file is invalid; the message names the object. Finished chunks are kept.
    OSError
        If the disk is full or the cluster is lost. Finished chunks are kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, similia as sm
    >>> from similia.scale.stream import encode_stream
    >>> words = ["ACGT", "CCGT", "ACCA", "GATT"]
    >>> encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 3, 64, random_state=0).fit(words, [0, 0, 1, 1])[:-1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     codes = pathlib.Path(folder, "codes.npy")
    ...     encode_stream(encoder, (word for word in words), codes)
    ...     np.array_equal(np.load(codes), encoder.transform(words))
    4
    True
    """
    check_encoder(encoder)
    opened = open_bounded(source, encoder, text=text, chunk=chunk, workers=workers)
    return write_stream(Rows(encoder), opened, as_path(output), workers=workers, progress=progress)


def predict_stream(
    model: Any, source: Objects, output: str | os.PathLike[str], *, text: str | int | None = None,
    names: str | None = None, scores: bool = False, coverage: float | None = None, std: bool = False,
    chunk: int = CHUNK, workers: Any = None, progress: Progress | None = None,
) -> int:  # fmt: skip
    """Write the predicted label of each object of a source to a file, in constant memory.

    The file has the columns ``name`` and ``label`` (``cluster`` for a model of clusters). The column ``name`` holds the
    name of the object in the source (FASTA, FASTQ, SDF, ``.smi``). If the objects have no names, the column is called
    ``row`` and holds their positions in the source, from 0. To resume an interrupted run, even one that the command
    ``similia predict`` began, call `predict_stream` again with the same arguments; see `encode_stream`.

    Parameters
    ----------
    model : fitted classifier, regressor or model of clusters
    source : path, iterable or Dask collection
        The objects, or a file of objects that `similia.sources.read_objects` can read; for details see `encode_stream`.
    output : path
        The file to write. Its ending decides the format: ``.tsv`` or ``.tab``, ``.jsonl`` or ``.ndjson`` (one line of
        JSON per object), else CSV.
    text : str or int, optional
        Column that holds the strings, if the source is a table. By default, the columns to which the model was fitted
        are read; for details see `encode_stream`.
    names : str, optional
        If the source is a table, the column that identifies its rows. This column is written, under its own name, in
        place of ``row``, so that predictions can be joined with the table.
    scores : bool, default=False
        Whether to add a column for each class (in JSON, one field ``scores`` for all classes). Each column holds the
        probability of its class or, if the model has no ``predict_proba``, the decision value. If there are two
        classes, the column of the second class holds the decision value, and the column of the first class holds its
        negative. Scores are rounded to six significant digits.
    coverage : float, optional
        Probability, such as 0.9, for which to write prediction sets or intervals. For a `ConformalClassifier`, the
        column ``set`` is added: the labels of a set that contains the true label with this probability, separated by
        " | " (a list in JSON). For a `ConformalRegressor` or `GaussianProcessRegressor`, the columns ``low`` and
        ``high`` are added: the ends of an interval that contains the true number with this probability.
    std : bool, default=False
        Whether to add the column ``std``, with the standard deviation that the model predicts, rounded to six
        significant digits. The method ``predict`` of the model must accept ``return_std``, as in
        `GaussianProcessRegressor`.
    chunk : int, default=10_000
    workers : None, int, str or distributed.Client, optional
    progress : Progress, optional
        As in `encode_stream`.

    Returns
    -------
    int
        The number of objects in `output`.

    Raises
    ------
    ValueError
        If `scores`, `coverage` or `std` is given but the model cannot provide it, or if two of them are given; if the
        source has no column `names`, or the output has another column of this name; or if `output` has the ending of
        another format, such as ``.npy``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import similia as sm
    >>> from similia.scale.stream import predict_stream
    >>> model = sm.recipes.nyshd(sm.kernels.Spectrum(), 3, 64, random_state=0)
    >>> model = model.fit(["AAA", "CCC", "GCC"], ["a", "c", "c"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     predict_stream(model, ["CCC", "AAA"], path)
    ...     path.read_text().split()
    2
    ['row,label', '0,c', '1,a']
    """
    output = as_path(output)
    item = source.reading.names if isinstance(source, Source) and names is None else names
    opened = open_bounded(source, model, text=text, names=names, chunk=chunk, workers=workers)
    form = Predictions(model, form_of(output), scores, item, coverage, std, opened.named)
    return write_stream(form, opened, output, workers=workers, progress=progress)


# ---- shared with the command line
def partial_of(output: Path) -> Path:
    """Return the folder next to `output` that holds unfinished results; raise if no file can be written there."""
    check_target(output)
    return output.with_name(output.name + _PARTIAL)


def bounds(chunk: int, workers: Any = None) -> dict[str, Any]:
    """Return the maximum numbers of objects and bytes per chunk with which all chunks in memory fit into max_memory."""
    check_positive_int(chunk, "chunk")
    if isinstance(workers, int):
        check_positive_int(workers, "workers")
    alive = 4 if workers is None else 2 * workers + 2 if isinstance(workers, int) else _ELSEWHERE
    memory = settings().max_memory
    most = max(2**12, memory // (_PER_BYTE * alive))
    return {"chunk": max(1, min(chunk, memory // _PER_OBJECT)), "max_bytes": min(2**26, most)}


def open_bounded(
    source: Objects, model: Any, *, text: str | int | None, chunk: int, workers: Any, names: str | None = None
) -> Source:
    """Open a source in chunks that fit into memory, read as `model` needs; keep a `Source` as it is."""
    reading = Reading(text=text, names=names)
    if isinstance(source, str | os.PathLike):
        reading = replace(reading, **remembered(model, Path(source), reading))
    elif hasattr(model, "feature_names_in_"):
        check_columns(model, source, reset=False)
    opened = open_objects(source, reading, **bounds(chunk, workers))
    if opened is not source and isinstance(opened, ObjectStream):
        opened.read_arrays_as(kind_of_arrays(model))
    return opened


def identity(source: Source) -> str:
    """Return the fingerprint of a source; if it can be read only once, a random one, which matches no other."""
    return source.fingerprint() if source.again else os.urandom(16).hex()


def of(done: int, n: int | None) -> str:
    """Return a phrase such as "3 of 10", or "3 objects" if the number of all objects is unknown."""
    return f"{done} objects" if n is None else f"{done} of {n}"


class Form(Protocol):
    """Protocol of classes that turn the results of chunks into the bytes of a file: `Rows` and `Predictions`."""

    model: Any
    function: Function  # called by the workers with the model and objects
    offset: int  # number of bytes of the file before the first chunk
    row: Any  # state of earlier rows that a resumed run needs
    belongs: dict[str, Any]  # facts of the form that a run and its resumption must share

    def bytes_of(self, chunk: Chunk, result: Any) -> Any:
        """Return the results of a chunk as bytes."""

    def first(self, n: int) -> bytes:
        """Return the bytes that precede the first chunk in the file; `n` is the total number of objects."""


class Rows:
    """Turn the rows that an encoder returns into a ``.npy`` file; if `packed`, rows must be packed bits."""

    offset = _NPY_HEADER

    def __init__(self, encoder: Any, packed: bool = False) -> None:
        self.model, self.function = encoder, cast(Function, _codes if packed else _rows)
        self.belongs: dict[str, Any] = {}
        self.row: list[Any] | None = None  # dtype and length of each row

    @property
    def n_bits(self) -> int:
        return 8 * self.row[1] if self.row else 0

    def bytes_of(self, chunk: Chunk, rows: npt.NDArray) -> memoryview:
        row = [rows.dtype.str, rows.shape[1]]
        if self.row not in (None, row) or len(rows) != chunk.stop - chunk.start:
            where = f"objects {chunk.start} to {chunk.stop - 1}"
            dtype, width = self.row or row
            raise ValueError(
                f"the encoder returned {row[0]} of shape {rows.shape} for {where}, expected {dtype} of shape "
                f"({chunk.stop - chunk.start}, {width}) as before"
            )
        self.row = row
        return np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data

    def first(self, n: int) -> bytes:
        assert self.row is not None
        text = f"{{'descr': {self.row[0]!r}, 'fortran_order': False, 'shape': ({n}, {self.row[1]}), }}"
        return b"\x93NUMPY\x01\x00" + (_NPY_HEADER - 10).to_bytes(2, "little") + f"{text:<117}\n".encode()


def write_stream(
    form: Form, source: Source, output: Path, *, workers: Any = None, progress: Progress | None = None
) -> int:
    """Write the results for a whole source to `output`, resuming an interrupted run; return the number of objects."""
    with Journal(partial_of(output)) as journal:
        return write_journal(journal, form, source, output, workers=workers, progress=progress)


def write_journal(
    journal: Journal, form: Form, source: Source, output: Path, *, workers: Any = None,
    progress: Progress | None = None, n: int | None = None, facts: dict[str, Any] | None = None,
) -> int:  # fmt: skip
    """Write results to `output` through `journal`, with `facts` in a new header; return the number of objects."""
    progress = progress or Progress()
    belongs = {"data": identity(source), "model": digest_of(form.model), **form.belongs}
    header = journal.header or {}
    started = header.get("belongs") == belongs
    n = header.get("n") if started else source.n if n is None else n
    if started:
        form.row = header["row"]
        damage = journal.resume()
        if damage is not None:
            progress.damaged(damage)
        if journal.done:
            progress.resumed(f"resuming after {of(journal.done, n)}")
    elif header:
        progress.restarted(
            f"{journal.folder} belongs to a run with other data, options or another model; this run starts again"
        )
    progress.done = journal.done

    def commit(chunk: Chunk, result: Any) -> None:
        nonlocal started
        data = form.bytes_of(chunk, result)
        if not started:
            journal.start({"belongs": belongs, "row": form.row, "n": n, **(facts or {})}, form.offset)
            started = True
        journal.append(data, chunk.stop)
        progress.done = journal.done

    drive(form.function, form.model, source, journal.done, commit, workers=workers, n=n)
    if not started:
        raise ValueError(f"{source.source} holds no objects")
    journal.finish(output, form.first(journal.done))
    return journal.done


def print_stream(form: Form, source: Source, file: TextIO, *, workers: Any = None) -> None:
    """Write the results of each chunk to a terminal or pipe as soon as they are computed."""

    def show(chunk: Chunk, result: Any) -> None:
        file.write(form.bytes_of(chunk, result).decode())
        file.flush()

    file.write(form.first(0).decode())
    drive(form.function, form.model, source, 0, show, workers=workers, n=source.n)


def drive(
    function: Any, model: Any, source: Source, start: int, commit: Callable[[Chunk, Any], None], *, workers: Any,
    n: int | None,
) -> None:  # fmt: skip
    """Call ``commit(chunk, function(model, chunk.objects))`` for each chunk from object `start` on, in order."""
    with (
        opened(workers, ahead=source.size is not None) as engine,
        meter("objects", start, n, source.size) as update,
        closing(engine.map(function, model, source.chunks(start))) as results,
        places_named(source, start),
    ):
        for chunk, result in results:
            commit(chunk, result)
            update(chunk.stop, chunk.bytes_read)


def add_stream(
    folder: Any, stream: Source, *, key: str | None = None, n: int | None = None, again: bool = False,
    workers: Any = None, say: Callable[[str], None] | None = None, named: Callable[[list[str]], None] | None = None,
) -> bool:  # fmt: skip
    """Add the objects of a source to an index on disk, one commit per chunk; return whether any were left to add.

    `folder`, a `similia.search.SearchFolder`, records the fingerprints of its sources and how many objects of
    each are done, so only the remaining objects are added after an interruption. `key` is the `identity` of the source,
    and `n` is its number of objects; by default, both are taken from `stream`. With `again`, a completed source is
    added again. `named` is called with the names of each chunk.
    """
    with folder.store.writing():
        sources, key = folder.store.progress, key or identity(stream)
        source = sources.get(key, {"name": stream.source, "n": stream.n if n is None else n, "done": 0, "times": 1})
        if source["done"] == source["n"]:
            if not again:
                return False
            source = {**source, "done": 0, "times": source["times"] + 1}
        if source["done"] and say is not None:
            say(f"resuming after {of(source['done'], source['n'])}")

        def commit(chunk: Chunk, made: tuple[Any, Any]) -> None:
            sources[key] = {**source, "done": chunk.stop}
            objects = kept_objects(folder.search, chunk.objects)
            with disk_full(lambda: f"{folder.folder} keeps the {len(folder)} objects that are done"):
                names = None if chunk.names is None else list(map(str, chunk.names))
                folder._append(made[0], objects, made[1], names, None, sources)
            if names is not None and named is not None:
                named(names)

        model, start = (folder.search, folder.example), source["done"]
        drive(_encoded, model, stream, start, commit, workers=workers, n=source["n"])
        if source["n"] is None:
            sources[key]["n"] = sources[key]["done"]
            folder.store.change(progress=sources)
    return True


# ---- functions that run on workers
@part_of_more()
def _rows(encoder: Any, X: Any) -> npt.NDArray:
    rows = encoder.transform(X)
    if hasattr(rows, "toarray") or np.ndim(rows) != 2 or np.asarray(rows).dtype.kind not in "biufc":
        raise TypeError(
            f"the encoder returned {type(rows).__name__}, expected an array of numbers with one row per object"
        )
    return np.asarray(rows)


@part_of_more()
def _codes(encoder: Any, X: Any) -> npt.NDArray[np.uint8]:
    return check_codes(encoder.transform(X), "the encoder's output")


def _encoded(model: tuple[Any, Any], X: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32] | None]:
    return encoded(*model, X)


def kind_of_arrays(model: Any) -> str | None:
    """Return the kind of objects to which a model was fitted: "series", "sets" or "vectors", or None if unknown."""
    steps = getattr(model, "steps", None)
    if steps is not None:
        same = ("passthrough", None)
        return next((kind_of_arrays(s) for _, s in steps if s not in same and not isinstance(s, ObjectsOut)), None)
    held = model._example() if hasattr(model, "_example") else None
    for objects in (held, *(getattr(model, name, None) for name in _HELD)):
        if isinstance(objects, SeriesBatch | SetBatch):
            return "series" if isinstance(objects, SeriesBatch) else "sets"
        if (isinstance(objects, np.ndarray) and objects.ndim == 2) or sp.issparse(objects):
            return "vectors"
    for name in _INSIDE:
        inside = getattr(model, name, None)
        first = inside[0] if isinstance(inside, list) and inside else inside
        if hasattr(first, "get_params") or hasattr(first, "estimator"):
            return kind_of_arrays(first)
    return "vectors" if hasattr(model, "n_features_in_") else None


# ---- locating an invalid object
@contextmanager
def places_named(source: Source, start: int = 0, numbers: Any = None) -> Iterator[None]:
    """Return a context that adds, to an error about an object, the line or position and the name of the object.

    To find them, the source is read again from object `start`. If the index in the error counts only a selection of the
    objects, `numbers` holds the positions of the selected objects in the source.
    """
    try:
        yield
    except (BadItem, BadPair) as error:
        at = _place(error, source, start, numbers) if source.again else None
        if at is None:
            raise
        raise error.changed(path=source.source, at=at) from error


def _place(error: BadItem | BadPair, source: Source, start: int, numbers: Any) -> str | None:
    """Return the line (or position) and the name of the object that an error is about, or None if it is about none."""
    number = error.index[0] if isinstance(error, BadPair) else error.index if error.collection == "X" else None
    if number is None or (numbers is not None and number >= len(numbers)):
        return None
    number = number if numbers is None else int(numbers[number])
    with closing(source.chunks(start)) as chunks:
        chunk = next((chunk for chunk in chunks if chunk.stop > number), None)
    if chunk is None:
        return None
    i = number - chunk.start
    place = place_of(number, noun="object") if chunk.lines is None else place_of(i, chunk.lines)
    return place + (f", {short(chunk.names[i])}" if chunk.names is not None and isinstance(chunk.names[i], str) else "")


class Predictions:
    """Turn the predictions of a fitted classifier or regressor into lines of a file; see `scale.stream.Form`.

    `form` is "csv", "tsv" or "jsonl". With `scores`, each line also holds the probabilities of all classes (or, if the
    model has none, its decision values). With `coverage`, it holds the set of labels ("set") or the interval ("low",
    "high") to which a `ConformalClassifier`, a `ConformalRegressor` or a Gaussian process gives this coverage. With
    `std`, it holds the standard deviation of the prediction ("std"). The first column holds the names of the objects if
    they are `named`, or their positions; `key_column` gives it a name, and `names` is the input column that holds the
    names. The column of predictions is called "label", or "cluster" for a model of clusters.
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
        named: bool = False,
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
        self._label = _CLUSTER if isinstance(parts_of(model).learner, ClusterMixin) else _LABEL
        ours = {self._label, *(["scores"] if scores and form == "jsonl" else self._classes)}
        self._item = key_column(names, named, ours)
        if names is not None:
            self.belongs["item"] = names
        taken = [name for name in self._classes if name in (self._item, self._label)]
        if taken and scores and form != "jsonl":
            raise ValueError(
                f"a class is called {taken[0]!r}, like a column of the predictions; write the scores as JSON (a file "
                "that ends in .jsonl)"
            )
        self._head = b"" if form == "jsonl" else self._table([[self._item, self._label, *self._classes]])
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
        facts = {self._item: name, self._label: label}
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
            f"{type(last).__name__} gives {scores.shape[1]} values for {len(last.classes_)} classes, expected one per "
            "class; drop scores"
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
    if _method(last) == "decision_function" and decides_in_pairs(last):
        raise ValueError(
            f"the model ({name}) gives a decision value for each pair of classes, not for each class; set "
            "decision_function_shape='ovr', or drop scores"
        )
    return [str(label) for label in np.asarray(classes).tolist()]
