"""Model files without pickle: loading a file cannot run code from it.

A model is a zip archive of arrays and one JSON description (the skops format), which records the version of similia
that wrote it. A description may name public classes of similia that declare their state (`states`), the scikit-learn
classes listed there, and ufuncs of numpy and scipy, but no other functions.

``schema.json`` describes a tree of *nodes* (each with a loader, a class and its content), and arrays are separate
members of the archive. The description is valid if

- members are stored without compression, and together are no larger than the file, which rules out zip bombs;
- it uses only loaders that models of similia need, none of which calls a function that the file names;
- references between nodes form no cycle and do not repeat large nodes over and over;
- arrays hold no Python objects and have the stated length; indices of sparse arrays are within bounds.

Only then, and if all names are allowed (`refused_names`), does `_Builder` create objects.
"""

from __future__ import annotations

import builtins
import codecs
import importlib
import io
import json
import math
import os
import sys
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np

from similia._version import __version__
from similia.core.config import settings
from similia.core.text import listed, short
from similia.core.validation import BadFile, read_header
from similia.storage.disk import check_folder, write_atomically
from similia.storage.states import (
    LOSSES,
    PARTS,
    TREE,
    check_states,
    check_tree,
    is_public_estimator,
    public_class,
    public_name,
    written,
)

_HEADER, _VERSION = "similia-model", 2  # format 1 named classes by their modules
_TRUSTING = "joblib.dump(model, path) and joblib.load, for files from people you trust"
_FOLDERS = {"search.similia": "SimilaritySearch", "index.json": "HammingIndex"}  # file in a folder, and its loader
_SCHEMA = "schema.json"
_DEEPEST = 60  # maximum depth of nested nodes; a pipeline in a search has about 25
_SCALARS = {"bool", "bool_", "str_", "datetime64", "timedelta64"} | {
    f"{kind}{size}" for kind, sizes in (("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)), ("float", (16, 32, 64)))
    for size in sizes
}  # fmt: skip
_CONTAINERS = {"ListNode": list, "TupleNode": tuple, "SetNode": set}
_BYTES = {"BytesNode": bytes, "BytearrayNode": bytearray}
_WRITES = "similia.save(model, path) or similia fit writes one"
_PLAIN = ("TypeNode", "FunctionNode", "SliceNode")  # without inner nodes
_BUILTINS = {"int", "float", "str", "bool", "list", "set", "tuple"}
_MADE_OF = {  # the classes that each of these loaders may make
    "DictNode": ("builtins.dict", "collections.OrderedDict"), "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",), "SetNode": ("builtins.set",), "BytesNode": ("builtins.bytes",),
    "BytearrayNode": ("builtins.bytearray",), "SliceNode": ("builtins.slice",), "TreeNode": (TREE,),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",), "MaskedArrayNode": ("numpy.ma.MaskedArray",
    "numpy.ma.core.MaskedArray"), "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "SparseMatrixNode": ("scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array"),
}  # fmt: skip


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
        If the model has a part that `load` would refuse, because the part could run harmful code or cannot be checked:
        a kernel, distance or other function of your own, parts of scikit-learn such as k-d trees and histogram gradient
        boosting, or dozens of nested kernels. The message names the part and a remedy.

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
    refused = _refused_in(data)
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
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _Description(archive, math.inf).check()
    except _Damaged as error:
        raise ValueError(f"the model cannot be saved, as it {error}; change that part, or {_TRUSTING}") from None
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
    except RecursionError as error:
        raise ValueError(
            "the model holds objects that are nested too deeply for a file, such as networkx graphs; give "
            f"similia.objects.as_graphs(graphs) in their place, or {_TRUSTING}"
        ) from error
    return canonical(data, similia=__version__, version=_VERSION)


def refused_types(model: Any) -> list[str]:
    """Return the sorted names of the classes and functions because of which `save` refuses `model`."""
    return _refused_in(_dumped(model))


def _refused_in(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return refused_names(json.loads(archive.read("schema.json")))


def _way_out(held: list[str]) -> str:
    """Return advice for a user whose model has these classes and functions, which `save` refuses."""
    if any(name.startswith(("sklearn.model_selection.", "sklearn.metrics._scorer.")) for name in held):
        return "save search.best_estimator_ instead of the search"
    if any(name.startswith("pathlib.") for name in held):
        return "set memory=None first"
    if all(name.startswith(("builtins.range", "builtins.object", "pandas.", "pyarrow.")) for name in held):
        return f"give a list or numpy array in its place, such as landmarks=np.asarray(landmarks), or {_TRUSTING}"
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


def load_of_index(path: Path) -> Any:
    """Return what `load` reads from a file in the folder of an index, of which no model is at hand to save again."""
    with path.open("rb") as stream:
        return _load(stream, str(path), "restore the index from a copy, or build it again")


def _load(stream: IO[bytes], name: str, remedy: str = "") -> Any:
    try:
        return _read(stream)
    except ValueError as error:
        writer = written_by(stream)
        other = f" (similia {writer} wrote it; this is {__version__})" if writer not in (None, __version__) else ""
        advice = f"; {remedy or error.remedy}" if isinstance(error, _Damaged) else ""
        raise BadFile(name, f"{error}{advice}{other}") from error.__cause__


def _read(stream: IO[bytes]) -> Any:
    """Return the model in a file; error messages lack the name of the file, which `_load` adds."""
    schema = _check_model_file(stream)
    if "similia" in schema and (found := schema.get("version", 1)) != _VERSION:
        newer = isinstance(found, int) and found > _VERSION
        remedy = "upgrade similia" if newer else "fit the model again and save it"
        raise ValueError(f"has format {short(found)}, but this similia reads format {_VERSION}; {remedy}")
    content = None
    try:
        refused = refused_names(schema)
        if not refused:
            with zipfile.ZipFile(stream) as archive:
                content = _Builder(archive).make(schema)
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


def canonical(data: bytes, **facts: str | int) -> bytes:
    """Rewrite a skops archive so that equal models give equal bytes; add `facts` to its ``schema.json``.

    The ids of nodes (memory addresses) and the names of members become numbers in order of occurrence. Members are
    dated 1980, sets are sorted, classes of similia get their public names, and losses of scikit-learn their full names.
    """
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}

    def renumbered(value: Any) -> Any:
        if isinstance(value, list):
            return [renumbered(item) for item in value]
        if not isinstance(value, dict) or not isinstance(value.get("__loader__"), str):
            return {key: renumbered(item) for key, item in value.items()} if isinstance(value, dict) else value
        node = dict(value)
        number = node.pop("__id__", None)
        if node["__loader__"] == "DictNode" and len(node["content"]) < len(node["key_types"]["content"]):
            raise ValueError(
                "the model holds a dict with keys that are the same as text, such as 1 and '1', among "
                f"{listed([*node['content']])}; rename one of them"
            )
        if node["__loader__"] == "ObjectNode":
            node["__module__"], node["__class__"] = _public(node["__module__"], node["__class__"])
        if node["__module__"] == "_loss":  # what older scikit-learn calls the module of its compiled losses
            node["__module__"] = "sklearn._loss._loss"
        if "file" in node:
            node["file"] = names.setdefault(node["file"], f"{len(names) + 1}{PurePath(node['file']).suffix}")
        if node["__loader__"] == "SetNode":
            node["content"] = sorted(node["content"], key=lambda item: json.dumps(item.get("content")))
        known = {} if node["__loader__"] == "JsonNode" else {"__id__": numbers.setdefault(number, len(numbers) + 1)}
        return known | {key: item if key == "file" else renumbered(item) for key, item in node.items()}

    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(target, "w") as archive:
        schema = facts | renumbered(json.loads(source.read(_SCHEMA)))
        for old, new in names.items():
            archive.writestr(_member(new), source.read(old))
        archive.writestr(_member(_SCHEMA), json.dumps(schema))
    return target.getvalue()


def _public(module: str, name: str) -> tuple[str, str]:
    """Return the public (module, name) of a class of similia; return the arguments unchanged for other classes."""
    found = getattr(sys.modules.get(module), name, None) if module.startswith("similia.") else None
    return (public_name(found) if isinstance(found, type) else None) or (module, name)


def _member(name: str) -> zipfile.ZipInfo:
    """Return the header of an archive member, with a date and permissions that are the same on any system."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, 0o600 << 16
    return info


def written_by(stream: IO[bytes]) -> str | None:
    """Return the version of similia that wrote a file, or None if the file does not state it."""
    try:
        with zipfile.ZipFile(stream) as archive:
            version = json.loads(archive.read(_SCHEMA)).get("similia")
    except Exception:
        return None
    return short(version)[1:-1] if isinstance(version, str) else None


def _check_model_file(stream: IO[bytes]) -> Any:
    """Return the ``schema.json`` of a model file; raise ValueError if the archive or this description is invalid."""
    if found := _other_file(stream):
        raise _Damaged(f"is {found}, not a model", _WRITES)
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_archive(archive)
            return _Description(archive, settings().max_memory).check()
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        problem = short(str(error), 120)[1:-1]
        raise _Damaged(f"is not a model, or it is truncated ({problem})") from None


def _other_file(stream: IO[bytes]) -> str:
    """Return what a file is that does not begin like a zip archive, by its first bytes; "" if it does or is damaged."""
    start = stream.tell()
    begin = stream.read(4096)
    stream.seek(start)
    if begin.startswith(b"PK"):
        return ""
    if not begin:
        return "empty"
    for marks, found in ((b"PAR1", "a Parquet table"), (b"\x93NUMPY", "an array of numpy"), (b"\x80", "a pickle")):
        if begin.startswith(marks):
            return found
    text = codecs.getincrementaldecoder("utf-8")
    try:
        letters = text().decode(begin)
    except UnicodeDecodeError:
        return ""
    if any(letter < " " and letter not in "\t\r\n\f" for letter in letters):
        return ""
    line = letters.splitlines()[0] if letters.splitlines() else ""
    for sep, found in (("\t", "a table with tabs"), (",", "a CSV table"), (";", "a CSV table")):
        if sep in line and not line.startswith((">", "<", "{", "[")):
            return found
    return "a text file"


def _check_archive(archive: zipfile.ZipFile) -> None:
    size = archive.fp.seek(0, 2) if archive.fp else 0
    infos = archive.infolist()
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("is not a model: two of its parts have the same name")
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos) or sum(info.file_size for info in infos) > size:
        raise ValueError("is not a model: its parts are compressed, or larger than the file")
    damaged = archive.testzip()
    if damaged is not None:
        raise _Damaged(f"is damaged (its part {short(damaged)} fails the checksum)")
    if _SCHEMA not in archive.namelist():
        raise _Damaged("is a zip archive but not a model", _WRITES)


class _Description:
    """The description of a model; `check` examines all nodes, and ends even if nodes refer to each other."""

    def __init__(self, archive: zipfile.ZipFile, most: float) -> None:
        self.archive = archive
        self.most = most  # bytes of a sparse array
        self.left = sum(info.file_size for info in archive.infolist())  # total bytes that arrays may still take
        self.written = 0  # number of nodes met so far, each counted where it is written
        self.sizes: dict[Any, int] = {}  # number of nodes in each finished node (itself included), by id
        self.open: set[Any] = set()  # ids of the nodes that enclose the current one

    def check(self) -> Any:
        try:
            root = json.loads(self.archive.read(_SCHEMA))
        except (ValueError, RecursionError):
            raise _Damaged("is damaged: its description is not JSON") from None
        if self._walk(root, 0) > 2 * self.written:  # a walk visits a node wherever its number occurs
            raise _Damaged("has a description that refers to the same parts over and over")
        return root

    def _walk(self, node: Any, depth: int) -> int:
        """Check a node and all nodes inside it; return the number of nodes, counting the outer one."""
        if not isinstance(node, dict) or depth > _DEEPEST:
            raise _Damaged("has a description that is nested too deeply" if depth > _DEEPEST else "lacks a description")
        name = node.get("__id__")
        if not isinstance(name, int | None):
            raise _Damaged(f"has a part numbered {short(name)}")
        if name in self.open:
            raise _Damaged("has a part that holds itself")
        if name in self.sizes:
            self.written += sum(1 for _ in nodes_of(node))
            return self.sizes[name]
        self.written += 1
        self.open |= {name} - {None}
        size = 1 + sum(self._walk(inner, depth + 1) for inner in self._inner(node))
        self.open -= {name}
        if name is not None:
            self.sizes[name] = size
        return size

    def _inner(self, node: dict[str, Any]) -> Iterator[Any]:
        """Check one node; return an iterator over the nodes directly inside it."""
        loader, cls, module = (node.get(key) for key in ("__loader__", "__class__", "__module__"))
        if not all(isinstance(text, str) for text in (loader, cls, module)):
            raise _Damaged("lacks a class in its description")
        content = node.get("content")
        if loader in _CONTAINERS:
            return iter(_typed(content, list))
        if loader == "DictNode":
            return iter([node.get("key_types"), *_typed(content, dict).values()])
        if loader == "JsonNode":
            _typed(content, str)
            return iter(())
        if loader in _PLAIN:
            return iter(())
        if loader == "ObjectNode":
            return iter(() if content is None else (content,))
        if loader == "NdArrayNode" and node.get("type") == "json" and (module, cls) == ("numpy", "ndarray"):
            return iter([node.get("shape"), *_typed(content, list)])
        if loader == "NdArrayNode" and module == "numpy" and cls in _SCALARS | {"ndarray"}:
            info = self._member(node)
            with self.archive.open(info) as stream:
                _check_npy(stream, info)
            return iter(())
        if loader in _BYTES or loader == "SparseMatrixNode":
            info = self._member(node)
            if loader == "SparseMatrixNode":
                _check_sparse(self.archive.read(info), self.most)
            return iter(())
        if loader == "RandomStateNode":
            return iter([content])
        if loader in ("RandomGeneratorNode", "MaskedArrayNode"):
            return iter(_typed(content, dict).values())
        if loader in ("LossNode", "TreeNode"):
            return iter([content, _typed(node.get("__reduce__"), dict).get("args")])
        raise _Damaged(f"uses the loader {short(loader)} for {short(f'{module}.{cls}')}, which no model needs")

    def _member(self, node: dict[str, Any]) -> zipfile.ZipInfo:
        """Return the archive member that a node names; raise if all nodes so far name more bytes than the archive."""
        try:
            info = self.archive.getinfo(_typed(node.get("file"), str))
        except KeyError:
            raise _Damaged(f"lacks its part {short(node['file'])}") from None
        self.left -= info.file_size
        if self.left < 0:
            raise _Damaged("has a description that refers to the same parts over and over")
        return info


def _check_npy(stream: IO[bytes], info: zipfile.ZipInfo) -> None:
    try:
        header = read_header(stream)
    except ValueError as error:
        raise _Damaged(f"contains an invalid array {short(info.filename)}: {error}") from None
    if stream.tell() + header.n_bytes != info.file_size:
        raise _Damaged(f"contains an array {short(info.filename)} whose header states a wrong size")


def _check_sparse(data: bytes, most: float) -> None:
    """Raise if a sparse array (a compressed .npz file) exceeds `most` bytes or has indices out of bounds."""
    from scipy.sparse import load_npz

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if sum(info.file_size for info in infos) > most:
                raise _Damaged("has a sparse array larger than similia.config(max_memory=...) allows")
            for info in infos:
                with archive.open(info) as stream:
                    _check_npy(stream, info)
        matrix = load_npz(io.BytesIO(data))
        if matrix.format != "csr" or matrix.ndim != 2:
            raise _Damaged(f"has a sparse array of format {short(matrix.format)}, expected csr")
        matrix.check_format(full_check=True)
        if matrix.indptr.min() < 0 or matrix.data.dtype.kind not in "biufc":
            raise ValueError
    except _Damaged:
        raise
    except ValueError:
        raise _Damaged("has a sparse array with indices out of bounds or entries that are not numbers") from None
    except (KeyError, IndexError, TypeError, OverflowError, MemoryError) as error:
        raise _Damaged(f"contains an invalid sparse array ({type(error).__name__})") from None


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _Damaged(f"has {short(value)} in its description, expected a {kind.__name__}")
    return value


class _Damaged(ValueError):
    """Error for a file that lacks or alters what was written; `_load` adds what to do, by default `remedy`."""

    def __init__(self, found: str, remedy: str = "save the model again") -> None:
        super().__init__(found)
        self.remedy = remedy


def nodes_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a description, outer before inner, in the order in which they are written."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(value.get("__loader__"), str):
                yield value
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))


def refused_names(schema: Any) -> list[str]:
    """Return the sorted names of those classes and functions in a description that model files must not name."""
    return sorted({_name(node) for node in nodes_of(schema) if not _is_allowed(node)})


def _name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _is_allowed(node: dict[str, Any]) -> bool:
    name, loader = _name(node), node["__loader__"]
    if loader == "JsonNode":
        return True
    if loader == "ObjectNode":
        return _ours(node) is not None or name in PARTS or is_public_estimator(name)
    if loader == "LossNode":
        return name in LOSSES
    if loader == "FunctionNode":
        return _ufunc(node) is not None
    if loader in ("TypeNode", "NdArrayNode"):
        return name == "numpy.ndarray" or _plain_type(node) is not None
    return name in _MADE_OF.get(loader, ())


def _ufunc(node: dict[str, Any]) -> Any:
    """Return the ufunc of numpy or scipy.special that a node names, or None if it names anything else."""
    package = str(node["__module__"]).partition(".")[0]
    if package not in ("numpy", "scipy"):
        return None
    found = getattr(np if package == "numpy" else importlib.import_module("scipy.special"), node["__class__"], None)
    return found if isinstance(found, np.ufunc) else None


def _plain_type(node: dict[str, Any]) -> Any:
    """Return the plain Python type or numpy scalar type that a node names, or None if it names anything else."""
    module, cls = node["__module__"], node["__class__"]
    if module == "builtins" and cls in _BUILTINS:
        return getattr(builtins, cls)
    found = getattr(np, cls, None) if module == "numpy" else None
    return found if isinstance(found, type) and issubclass(found, np.generic) else None


class _Builder:
    """Create the objects of a valid description; nodes with the same id become the same object."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.made: dict[int, Any] = {}

    def make(self, node: dict[str, Any]) -> Any:
        """Return the object of a node, created at the first call."""
        number = node.get("__id__")
        if number is not None and number in self.made:
            return self.made[number]
        made = self._made(node)
        if number is not None:
            self.made[number] = made
        return made

    def _made(self, node: dict[str, Any]) -> Any:
        loader, content = node["__loader__"], node.get("content", ())
        if loader in _CONTAINERS:
            return _CONTAINERS[loader](map(self.make, content))
        if loader in _BYTES:
            return _BYTES[loader](self._read(node))
        if loader == "JsonNode":
            return json.loads(content)
        if loader == "SliceNode":
            return slice(*(content[name] for name in ("start", "stop", "step")))
        if loader == "TypeNode":
            return _plain_type(node)
        if loader == "FunctionNode":
            return _ufunc(node)
        return getattr(self, f"_{loader}")(node)

    def _read(self, node: dict[str, Any]) -> bytes:
        return self.archive.read(node["file"])

    def _DictNode(self, node: dict[str, Any]) -> Any:
        content: dict[Any, Any] = OrderedDict() if node["__class__"] == "OrderedDict" else {}
        for kind, (key, value) in zip(self.make(node["key_types"]), node["content"].items(), strict=True):
            content[kind(key == "true" if kind in (bool, np.bool_) else key)] = self.make(value)
        return content

    def _NdArrayNode(self, node: dict[str, Any]) -> Any:
        if node["type"] == "json":
            shape, items = self.make(node["shape"]), [self.make(item) for item in node["content"]]
            if len(shape) != 1:
                return np.array(items, object)
            objects = np.empty(len(items), object)
            for i, item in enumerate(items):
                objects[i] = item
            return objects
        array = np.load(io.BytesIO(self._read(node)), allow_pickle=False)
        return array if node["__class__"] == "ndarray" else _plain_type(node)(array)

    def _MaskedArrayNode(self, node: dict[str, Any]) -> Any:
        return np.ma.MaskedArray(self.make(node["content"]["data"]), self.make(node["content"]["mask"]))

    def _SparseMatrixNode(self, node: dict[str, Any]) -> Any:
        from scipy.sparse import load_npz

        return load_npz(io.BytesIO(self._read(node)))

    def _RandomStateNode(self, node: dict[str, Any]) -> Any:
        random = np.random.RandomState()
        random.set_state(self.make(node["content"]))
        return random

    def _RandomGeneratorNode(self, node: dict[str, Any]) -> Any:
        state, seeds = (self.make(node["content"][name]) for name in ("bit_generator", "seed_seq"))
        kind = getattr(np.random, str(state["bit_generator"]), None)
        if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
            raise ValueError(f"{state['bit_generator']!r} is not a random generator of numpy")
        bits = kind(np.random.SeedSequence(**seeds))
        bits.state = state
        return np.random.Generator(bits)

    def _ObjectNode(self, node: dict[str, Any]) -> Any:
        cls = _class(node)
        made = cls.__new__(cls)
        return made if node.get("content") is None else _with_state(made, self.make(node["content"]))

    def _LossNode(self, node: dict[str, Any]) -> Any:
        loss = _class(node)(*self.make(node["__reduce__"]["args"]))
        return _with_state(loss, self.make(node["content"]) or None)

    def _TreeNode(self, node: dict[str, Any]) -> Any:
        arguments, state = self.make(node["__reduce__"]["args"]), self.make(node["content"])
        check_tree(arguments, state)
        return _with_state(_class(node)(*arguments), state)


def _ours(node: dict[str, Any]) -> type | None:
    module = node["__module__"]
    return public_class(module, node["__class__"]) if module.split(".")[0] == "similia" else None


def _class(node: dict[str, Any]) -> Any:
    return _ours(node) or getattr(importlib.import_module(node["__module__"]), node["__class__"])


def _with_state(made: Any, state: Any) -> Any:
    if state is not None and hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state is not None:
        made.__dict__.update(state)
    return made
