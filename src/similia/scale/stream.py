"""Codes, predictions and index entries of streams of any length: constant memory; interrupted runs resume.

A stream is read chunk by chunk, the model works on each chunk (in this process or on a Dask cluster, `_workers`), and
results are committed in order (`_journal`; an index has its own store), each with the mark where reading goes on. What
is written does not depend on where chunks are cut, on the workers or on how often a run was stopped. Cost: that of
`transform` on everything, one more reading of a file for its fingerprint, and two flushes to the disk a chunk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import part_of_more, settings
from similia.core.errors import BadPair
from similia.core.progress import meter
from similia.core.text import _short
from similia.core.transformers import ObjectsOut
from similia.core.validation import as_path, check_codes, check_encoder
from similia.objects import SeriesBatch, SetBatch, concatenate, take
from similia.scale.predictions import Predictions, form_of
from similia.scale.workers import opened
from similia.sources.streams import Chunk, ObjectStream, open_stream
from similia.storage.journal import Journal, disk_full

CHUNK = 10_000  # objects committed together, at most
FIT_ON = 20_000  # objects of a longer stream that an encoder is fitted to
_PARTIAL = ".partial"
_PER_OBJECT = 2**16  # bytes of working memory that an object of a chunk may need: 8192 numbers of 8 bytes
_PER_BYTE = 16  # and bytes of memory for each byte of input, in each chunk that is alive
_ELSEWHERE = 32  # chunks alive on a cluster that others made
_NPY_HEADER = 128

Source = str | os.PathLike[str] | Iterable[Any] | ObjectStream
Say = Callable[[str], None]


def encode_stream(
    encoder: Any, source: Source, output: str | os.PathLike[str], *, text: str | int | None = None, chunk: int = CHUNK,
    workers: Any = None,
) -> int:  # fmt: skip
    """Write what an encoder makes of a stream of objects to a ``.npy`` file, in constant memory.

    Called again with the same file and encoder, an interrupted run resumes. Until it is
    complete, `output` is not there; what is done is in the folder beside it that ends in ``.partial``.

    Parameters
    ----------
    encoder : fitted transformer
        Its ``transform`` gives packed codes or vectors, an array with one row an object.
    source : path or iterable
        FASTA, FASTQ, CSV, TSV (also ``.gz``), Parquet, ``.npy``, or any iterable of objects, such as a generator (which
        cannot resume: it is read from its beginning). Arrays of an iterable are what the encoder was fitted on: series,
        sets or vectors. An `ObjectStream` of `similia.sources.open_stream` reads files in other ways, or says with
        ``kind=`` what arrays are where the encoder keeps no objects; its chunks stay as they are.
    output : path
        The ``.npy`` file.
    text : str or int, optional
        Column of a table; see `similia.sources.open_stream`.
    chunk : int, default=10_000
        Objects committed together at most; fewer where ``similia.config(max_memory=...)`` asks for it.
    workers : None, int, str or distributed.Client, optional
        None works in this process, an int starts that many processes on this machine, a str is the address of a Dask
        scheduler, such as ``"tcp://10.0.0.1:8786"``.

    Returns
    -------
    int
        The number of objects.

    Raises
    ------
    ValueError, TypeError
        If an object or the file is bad: the sentence names the object by its number in the stream. What was committed
        before stays.
    OSError
        If the disk is full, or the cluster is gone; what was committed before stays.

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
    output, stream = as_path(output), open_bounded(source, encoder, text=text, chunk=chunk, workers=workers)
    belongs = {"rows": identity(stream), "encoder": _hash(encoder)}
    with Journal(partial_of(output)) as journal:
        write_stream(journal, belongs, Rows(encoder), stream, output, workers=workers)
        return journal.done


def predict_stream(
    model: Any, source: Source, output: str | os.PathLike[str], *, text: str | int | None = None,
    names: str | None = None, scores: bool = False, chunk: int = CHUNK, workers: Any = None,
) -> int:  # fmt: skip
    """Write the predicted label of each object of a stream to a file, in constant memory.

    The columns are ``item`` and ``label``; items are the names of FASTA and FASTQ records, else numbers from 0. With
    `names` the first column is called as that of the table. Stopped and called again, it goes on as `encode_stream`
    does, whose other parameters and errors it has.

    Parameters
    ----------
    model : fitted classifier or regressor of objects
    source : path or iterable
    output : path
        Its ending says what is written: ``.tsv`` with tabs, ``.jsonl`` a line of JSON for each object, else CSV.
    text : str or int, optional
        See `encode_stream`.
    names : str, optional
        Column of a table that stands beside the labels under its own name, to join predictions with the table.
    scores : bool, default=False
        Whether a column for each class stands beside the label: its probability, or where the model has no
        ``predict_proba`` its decision value (of two classes, the one value and its negative), with six digits.
    chunk, workers : int and any
        See `encode_stream`.

    Returns
    -------
    int
        The number of objects.

    Raises
    ------
    ValueError
        If scores are wanted of a model that has none, `names` of a source without columns or a column called like
        one of the predictions, or `output` is named like a file of another kind.

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
    ['item,label', '0,c', '1,a']
    """
    output = as_path(output)
    reading = getattr(source, "reading", None)
    form = Predictions(model, form_of(output), scores, names if reading is None else reading.names)
    stream = open_bounded(source, model, text=text, names=names, chunk=chunk, workers=workers)
    belongs = {"labels": identity(stream), "model": _hash(model), **form.belongs}
    with Journal(partial_of(output)) as journal:
        write_stream(journal, belongs, form, stream, output, workers=workers)
        return journal.done


# ---- what the commands share with them
def partial_of(output: Path) -> Path:
    """Return the folder beside a file in which it grows."""
    return output.with_name(output.name + _PARTIAL)


def bounds(chunk: int, workers: Any = None) -> dict[str, int]:
    """Return how many objects and bytes a chunk may have under ``max_memory``: no result depends on it."""
    alive = 4 if workers is None else 2 * workers + 2 if isinstance(workers, int) else _ELSEWHERE
    memory = settings().max_memory
    most = max(2**12, memory // (_PER_BYTE * alive))
    return {"chunk": max(1, min(chunk, memory // _PER_OBJECT)), "max_bytes": min(2**26, most)}


def open_bounded(
    source: Source, model: Any, *, text: str | int | None, chunk: int, workers: Any, names: str | None = None
) -> ObjectStream:  # fmt: skip
    """Return a stream with chunks that fit into memory, arrays as the model reads them; an open one stays as it is."""
    if isinstance(source, ObjectStream) or hasattr(source, "chunks"):
        return source  # type: ignore[return-value]
    limits: dict[str, Any] = bounds(chunk, workers)
    stream = open_stream(source, text=text, names=names, **limits)
    stream.read_arrays_as(kind_of_arrays(model))
    return stream


def identity(stream: ObjectStream) -> str:
    """Return what tells a stream from others; that of an iterable is like no other."""
    try:
        return stream.fingerprint()
    except ValueError:
        return os.urandom(16).hex()


def of(done: int, n: int | None) -> str:
    """Return how far a run is, for a sentence."""
    return f"{done} objects" if n is None else f"{done} of {n}"


class Rows:
    """An encoder whose rows become an array in a ``.npy`` file; `packed` accepts codes only."""

    offset = _NPY_HEADER

    def __init__(self, encoder: Any, packed: bool = False) -> None:
        self.model, self.function = encoder, _codes if packed else _rows
        self.row: list[Any] | None = None  # type and length

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return 8 * self.row[1] if self.row else 0

    def bytes_of(self, chunk: Chunk, rows: npt.NDArray) -> memoryview:
        """Return a chunk of the data; rows must be as those before."""
        row = [rows.dtype.str, rows.shape[1]]
        if self.row not in (None, row) or len(rows) != chunk.stop - chunk.start:
            where = f"objects {chunk.start} to {chunk.stop - 1}"
            expected = self.row or row
            raise ValueError(
                f"the encoder makes {rows.shape} numbers of type {row[0]} of {where}, expected a row of {expected[1]} "
                f"of type {expected[0]} of each, as before"
            )
        self.row = row
        return np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data

    def first(self, n: int) -> bytes:
        """Return the header of the file."""
        assert self.row is not None
        text = f"{{'descr': {self.row[0]!r}, 'fortran_order': False, 'shape': ({n}, {self.row[1]}), }}"
        return b"\x93NUMPY\x01\x00" + (_NPY_HEADER - 10).to_bytes(2, "little") + f"{text:<117}\n".encode()


def write_stream(
    journal: Journal, belongs: dict[str, Any], form: Rows | Predictions, stream: ObjectStream, output: Path, *,
    workers: Any = None, n: int | None = None, say: Say | None = None, warn: Say | None = None,
) -> None:  # fmt: skip
    """Write a stream to `output`, going on if the journal `belongs` to the same work; `n` objects, where known."""
    header = journal.header or {}
    started = goes_on(journal, belongs)
    n = header.get("n") if started else stream.n if n is None else n
    if started:
        form.row = header["row"]
        damage = journal.resume()
        if damage is not None:
            (warn or _warn)(damage)
        if journal.done and say is not None:
            say(f"resuming after {of(journal.done, n)}")

    def commit(chunk: Chunk, result: Any) -> None:
        nonlocal started
        data = form.bytes_of(chunk, result)
        if not started:
            journal.start({"belongs": belongs, "row": form.row, "n": n}, form.offset)
            started = True
        journal.append(data, chunk.stop, chunk.mark)

    drive(form.function, form.model, stream, journal.done, journal.mark, commit, workers=workers, n=n)
    if not started:
        raise ValueError(f"{stream.source} holds no objects")
    journal.finish(output, form.first(journal.done))


def print_stream(form: Predictions, stream: ObjectStream, file: TextIO, *, workers: Any = None) -> None:
    """Write predictions to a terminal or pipe as they come."""

    def show(chunk: Chunk, result: Any) -> None:
        file.write(form.bytes_of(chunk, result).decode())
        file.flush()

    file.write(form.first(0).decode())
    drive(form.function, form.model, stream, 0, None, show, workers=workers, n=stream.n)


def goes_on(journal: Journal, belongs: dict[str, Any]) -> bool:
    """Return whether the files of a journal belong to this work."""
    return journal.header is not None and journal.header.get("belongs") == belongs


def drive(
    function: Any, model: Any, stream: ObjectStream, start: int, mark: str | None, commit: Callable[[Chunk, Any], None],
    *, workers: Any, n: int | None,
) -> None:  # fmt: skip
    """Call ``commit(chunk, function(model, chunk.objects))`` for each chunk from object `start` on, in order."""
    with (
        opened(workers, ahead=stream.size is not None) as engine,
        meter("objects", start, n, stream.size) as update,
        closing(engine.map(function, model, stream.chunks(start, mark))) as results,
        places_named(stream, start, mark),
    ):
        for chunk, result in results:
            commit(chunk, result)
            update(chunk.stop, chunk.bytes_read)


def add_stream(
    folder: Any, stream: ObjectStream, *, key: str | None = None, n: int | None = None, again: bool = False,
    workers: Any = None, say: Say | None = None,
) -> bool:  # fmt: skip
    """Add a stream to an index on disk, or what an earlier run left of it; each chunk is one commit.

    Parameters
    ----------
    folder : similia.search.on_disk.SearchFolder
        Whose lock is held; what was added is known by the fingerprint of the stream.
    stream : ObjectStream
    key : str, optional
        Its `identity`, where it was asked for before.
    n : int, optional
        Number of objects, where it is known.
    again : bool
        Whether a stream that was added already is added once more.

    Returns
    -------
    bool
        Whether anything was to be done.
    """
    with folder.store.writing():
        sources, key = folder.store.progress, key or identity(stream)
        source = sources.get(key, {"name": stream.source, "n": stream.n if n is None else n, "done": 0, "times": 1})
        if source["done"] == source["n"]:
            if not again:
                return False
            source = {**source, "done": 0, "mark": None, "times": source["times"] + 1}
        if source["done"] and say is not None:
            say(f"resuming after {of(source['done'], source['n'])}")

        def commit(chunk: Chunk, encoded: tuple[Any, Any]) -> None:
            sources[key] = {**source, "done": chunk.stop, "mark": chunk.mark}
            metric = folder.search._metric()
            objects = None if metric is None else metric.as_objects(chunk.objects)
            with disk_full(lambda: f"{folder.folder} keeps the {len(folder)} objects that are done"):
                names = None if chunk.names is None else list(map(str, chunk.names))
                folder._append(encoded[0], objects, encoded[1], names, None, sources)

        model, start = (folder.search, folder.example), source["done"]
        drive(_encoded, model, stream, start, source.get("mark"), commit, workers=workers, n=source["n"])
        if source["n"] is None:
            sources[key]["n"] = sources[key]["done"]
            folder.store.change(progress=sources)
    return True


# ---- what workers do
@part_of_more()
def _rows(encoder: Any, X: Any) -> npt.NDArray:
    rows = encoder.transform(X)
    if hasattr(rows, "toarray") or np.ndim(rows) != 2 or np.asarray(rows).dtype.kind not in "biufc":
        raise TypeError(f"the encoder makes {type(rows).__name__}, expected an array of numbers with a row an object")
    return np.asarray(rows)


@part_of_more()
def _codes(encoder: Any, X: Any) -> npt.NDArray[np.uint8]:
    return check_codes(encoder.transform(X), "the encoder's output")


def _encoded(model: tuple[Any, Any], X: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32] | None]:
    """Return what `SearchFolder.add` adds beside the objects."""
    search, example = model
    metric = search._metric()
    if metric is not None:
        X = metric.as_objects(X)
        concatenate([example, take(X, [0])])  # raises if they do not fit together
    codes, vectors = search._encode(X)
    return codes, vectors


def _hash(model: Any) -> str:
    """Return what tells a fitted model from others; one that cannot be taken apart is like no other."""
    from similia.core.fingerprints import fingerprint

    try:
        return fingerprint(model, "the model")
    except TypeError:
        return os.urandom(16).hex()


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, stacklevel=4)


_HELD = ("landmarks_", "objects_", "support_objects_")  # objects that models keep, beside what `_example` gives


_INSIDE = (
    "best_", "best_estimator_", "pipeline_", "encoder_", "estimators_", "calibrated_classifiers_", "regressor_",
    "estimator_", "estimator",
)  # fmt: skip


def kind_of_arrays(model: Any) -> str | None:
    """Return "series", "sets" or "vectors", by what a fitted model was fitted on; None if it does not tell."""
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


_OBJECT = re.compile(r"(?:X\[|series |set |graph )(\d+)\b\]?(:?) ")


@contextmanager
def places_named(stream: Any, start: int = 0, mark: str | None = None, numbers: Any = None) -> Iterator[None]:
    """Have errors about an object of a file or data set name it, and the line.

    It is then read once more from object `start` on, where `mark` says that it begins; `numbers` are those of the
    objects, where the error is about some of them.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        iterable = isinstance(stream, ObjectStream) and stream.size is None  # gone once it is read
        said = None if iterable else _located(error, stream, start, mark, numbers)
        if said is None:
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(said) from error


def _located(error: Exception, stream: Any, start: int, mark: str | None, numbers: Any) -> str | None:
    """Return the sentence of an error with the place of the object it is about, None if it is about none."""
    text = str(error)
    found = _OBJECT.match(text)
    number = error.index[0] if isinstance(error, BadPair) else int(found[1]) if found else None
    if number is None or (numbers is not None and number >= len(numbers)):
        return None
    number = number if numbers is None else int(numbers[number])
    with closing(stream.chunks(start, mark)) as chunks:
        chunk = next((chunk for chunk in chunks if chunk.stop > number), None)
    if chunk is None:
        return None
    i = number - chunk.start
    place = f"object {number} (from 0)" if chunk.lines is None else f"line {chunk.lines[i]}"
    place += f", {_short(chunk.names[i])}" if chunk.names is not None and isinstance(chunk.names[i], str) else ""
    said = text if found is None else text[found.end() :] if found[2] else f"it {text[found.end() :]}"
    return f"{stream.source}, {place}: {said}"
