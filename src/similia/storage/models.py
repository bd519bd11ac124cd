"""Model files without pickle: loading a file cannot run code from it.

A model is a zip archive of arrays and one JSON description (the skops format), which records the version of similia
that wrote it. A description may name public classes of similia that declare their state (`states`), the scikit-learn
classes listed there, and ufuncs of numpy and scipy, but no other functions.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from similia._version import __version__
from similia.core.errors import BadFile
from similia.core.text import short
from similia.storage.disk import check_folder, write_atomically
from similia.storage.model_file import Builder, canonical, check_model_file, refused_names, written_by
from similia.storage.states import check_states, public_class, written

_HEADER, _VERSION = "similia-model", 2  # format 1 named classes by their modules
_TRUSTING = "joblib.dump(model, path) and joblib.load, for files from people you trust"
_FOLDERS = {"search.similia": "SimilaritySearch", "index.json": "HammingIndex"}  # file in a folder, and its loader


def save(model: Any, path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Write a fitted model to one file.

    An older file at `path` is replaced only when the new one is complete. Saving a model twice gives the same bytes.

    Parameters
    ----------
    model : object
        A similia or scikit-learn estimator, or a pipeline of them.
    path : str, path or binary file
        Where to write; the folder must exist. A binary file, such as `io.BytesIO`, is written from its current position
        on.

    Returns
    -------
    pathlib.Path or binary file
        `path`.

    Raises
    ------
    ValueError
        If the model has a part that `load` would refuse, because it could run harmful code or cannot be checked: a
        kernel, distance or other function of your own, or parts of scikit-learn such as k-d trees and histogram
        gradient boosting. The message names the part and a remedy.

    Examples
    --------
    >>> import similia as sm, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "kernel.similia")
    >>> _ = sm.save(sm.kernels.Spectrum(k=4), path)
    >>> sm.load(path)
    Spectrum(k=4)
    """
    target = _file_or_path(path, "write")
    if isinstance(target, Path) and target.is_dir():
        raise BadFile(
            target, "is a folder, but save writes one file; name a file, or write a search with search.save(folder)"
        )
    if isinstance(target, Path):
        check_folder(target)
    data = _dumped({"format": _HEADER, "model": model})
    refused = _refused(data)
    if refused:
        held = [name for name in refused if not name.startswith("similia.")] or refused  # not our wrappers of functions
        raise ValueError(
            f"the model holds {', '.join(held)}, which a saved file may not contain (loading it could run code); "
            f"{_way_out(held)}"
        )
    try:
        check_states(model, written)
    except ValueError as error:
        raise ValueError(f"the model cannot be saved: {error}") from None
    if isinstance(target, Path):
        write_atomically(target, data)
    else:
        target.write(data)
    return target


def _file_or_path(path: Any, method: str) -> Any:
    """Return a binary file (an object with `method`, "read" or "write") unchanged, and anything else as a `Path`."""
    if hasattr(path, method):
        if isinstance(path, io.TextIOBase):
            raise TypeError("the file is open in text mode; open it with mode 'wb' or 'rb'")
        return path
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str, a path or a binary file, got {type(path).__name__}")
    return Path(path)


def _dumped(content: Any) -> bytes:
    from skops.io import dumps

    try:
        data = dumps(content)
    except TypeError as error:  # of the internals of a data frame, for instance
        raise ValueError(
            "the model holds an object that a file cannot contain, such as a data frame; fit to X.to_numpy(), or "
            + _TRUSTING
        ) from error
    return canonical(data, similia=__version__, version=_VERSION)


def refused_types(model: Any) -> list[str]:
    """Return the sorted names of the classes and functions because of which `save` refuses `model`."""
    return _refused(_dumped(model))


def _refused(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return refused_names(json.loads(archive.read("schema.json")))


def _way_out(held: list[str]) -> str:
    """Return advice for a user whose model has these classes and functions, which `save` refuses."""
    if any(name.startswith(("sklearn.model_selection.", "sklearn.metrics._scorer.")) for name in held):
        return "save search.best_estimator_ instead of the search"
    if all(name.startswith("sklearn.") for name in held):
        return f"use another learner, such as LinearSVC, or {_TRUSTING}"
    return (
        "use the kernels and distances of similia, kernel='precomputed' with your function kept in your own program, "
        f"or {_TRUSTING}"
    )


def load(path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Read a model that `save` wrote, or the folder of a `SimilaritySearch` or `HammingIndex`.

    Parameters
    ----------
    path : str, path or binary file
        A file or folder. A binary file, such as `io.BytesIO`, is read from its current position to its end.

    Returns
    -------
    object
        The model, with the same parameters and fitted state.

    Raises
    ------
    ValueError
        If the file is damaged, was written by another program, has a format that this version of similia does not read,
        or refers to a class or function that could run harmful code. If another version of similia wrote the file, the
        message names that version.
    FileNotFoundError
        If the file does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import similia as sm
    >>> model = sm.Nystroem(sm.kernels.Spectrum(k=2), 2, random_state=0).fit(["GATTACA", "CATGAG", "TTAC"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sm.save(model, pathlib.Path(folder, "letters.similia"))
    ...     sm.load(path).transform(["TACA"]).shape
    (1, 2)
    """
    source = _file_or_path(path, "read")
    if not isinstance(source, Path):
        return _load(io.BytesIO(source.read()), "the file")
    for file, name in _FOLDERS.items():
        if (source / file).is_file():
            return public_class("similia", name).load(source)  # type: ignore[union-attr]
    if not source.is_file():
        raise FileNotFoundError(f"no model at {source}; similia.save(model, path) or similia fit writes one")
    with source.open("rb") as stream:
        return _load(stream, str(source))


def _load(stream: IO[bytes], name: str) -> Any:
    try:
        return _read(stream)
    except ValueError as error:
        writer = written_by(stream)
        other = f" (similia {writer} wrote it; this is {__version__})" if writer not in (None, __version__) else ""
        raise BadFile(name, f"{error}{other}") from error.__cause__


def _read(stream: IO[bytes]) -> Any:
    """Return the model in a file; error messages lack the name of the file, which `_load` adds."""
    schema = check_model_file(stream)
    if "similia" in schema and (found := schema.get("version", 1)) != _VERSION:
        newer = isinstance(found, int) and found > _VERSION
        remedy = "upgrade similia" if newer else "fit the model again and save it"
        raise ValueError(f"has format {short(found)}, but this similia reads format {_VERSION}; {remedy}")
    content = None
    try:
        refused = refused_names(schema)
        if not refused:
            with zipfile.ZipFile(stream) as archive:
                content = Builder(archive).make(schema)
            check_states(content)
    except (Exception, RecursionError, MemoryError) as error:  # tampered parts may raise anything
        problem = short(f"{type(error).__name__}: {error}", 200)[1:-1]
        raise ValueError(f"is not a model that similia.save wrote ({problem})") from error
    if refused:
        held = short(", ".join(refused), 200)[1:-1]
        raise ValueError(f"was not loaded, because it holds {held}, which a model file may not contain")
    if not isinstance(content, dict) or content.get("format") != _HEADER or "model" not in content:
        raise ValueError("was written by another program; load reads only files of similia.save(model, path)")
    return content["model"]
