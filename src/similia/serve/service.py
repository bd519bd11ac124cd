"""What a service answers: objects and options as JSON in, results as JSON out, from a model file or a search index.

A request that cannot be answered raises `Refused` with a status and one sentence.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from similia.core.config import logger_of
from similia.core.validation import BadFile, BadItem, DataError
from similia.explanations import explain
from similia.objects import from_smiles
from similia.pipelines import decides_in_pairs, parts_of
from similia.planning.forecasts import kind_of
from similia.scale.stream import kind_of_arrays
from similia.search.on_disk import SearchFolder, is_search
from similia.storage.models import load
from similia.storage.store import MANIFEST

OPERATIONS = ("neighbors", "predict", "encode", "explain")
_FIELDS: dict[str, dict[str, tuple[type, Any]]] = {  # of each operation: type and default of its options
    "neighbors": {"n_neighbors": (int, 10)},
    "predict": {"scores": (bool, False)},
    "encode": {},
    "explain": {"other": (object, None), "top": (int, 10)},
}
_LOGGER = logger_of(__name__)
_MOST = 10_000  # neighbours of an object, or parts of an explanation, that one request may ask for
_MOST_NEIGHBORS = 1_000_000  # neighbours of all objects of a request; in JSON, some 30 MB
_PIECE = 64  # objects that are answered in one go


class Refused(Exception):
    """Exception for a request that cannot be answered.

    Parameters
    ----------
    status : int
        HTTP status of the response.
    sentence : str
        Message: what is wrong, where, and what to do.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, eq=False)
class Held:
    """What has been loaded: the model or search, names of its objects, and the state of the file when it was read."""

    model: Any
    names: dict[int, str]
    stamp: tuple[int, ...]
    kind: str | None
    operations: tuple[str, ...]


class Service:
    """Answer requests with the model or search index that is stored in a file or folder.

    The method `refresh` reads the file or folder again if it has changed.

    Parameters
    ----------
    path : path
        A file that `similia.save` wrote, or the folder of a `SimilaritySearch`. A pickle raises ValueError, because
        reading it could run harmful code.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import similia as sm
    >>> words = ["kitten", "mitten", "bitten", "sunday", "monday", "friday"]
    >>> model = sm.learn.KNeighborsClassifier(sm.distances.Levenshtein(), 1).fit(words, list("aaabbb"))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.similia"
    >>> _ = sm.save(model, path)
    >>> from similia.serve import Service
    >>> Service(path).answer("predict", ["sitten"])
    [{'label': 'a'}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.held = _load(self.path)
        self._told: set[type[Warning]] = set()

    def refresh(self) -> bool:
        """Read the model file or search folder again if it has changed; return whether it was read."""
        if _stamp(self.path) == self.held.stamp:
            return False
        self.held = _load(self.path)
        return True

    def options(
        self, operation: str, request: Any, most: int, largest: int = 100_000
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return the objects and the options of a request; raise `Refused` if the request is not valid.

        Parameters
        ----------
        operation : {"neighbors", "predict", "encode", "explain"}
            What the request asks for; see `answer`.
        request : object
            Parsed JSON: a dict with "objects" (for "explain": "object") and options.
        most : int
            Maximum number of objects in a request.
        largest : int
            Maximum size of an object: the number of letters of a string, of numbers in a list, or of nodes or arcs of a
            graph.
        """
        offered = self.held.operations
        if operation not in offered:
            raise Refused(404, f"{self.path.name} has no {operation}; it offers {', '.join(offered)}")
        if not isinstance(request, dict):
            raise Refused(422, f"the body is {_json_name(request)}, expected a JSON object with 'objects'")
        fields, key = _FIELDS[operation], "object" if operation == "explain" else "objects"
        for name in request:
            if name not in fields and name != key:
                raise Refused(422, f"unknown field {name[:40]!r}; expected {', '.join([key, *fields])}")
        if key not in request:
            raise Refused(422, f"the field {key!r} is missing")
        objects = request[key] if key == "objects" else [request[key]]
        if not isinstance(objects, list) or not objects:
            raise Refused(422, f"'objects' is {_json_name(objects)}, expected a list of at least one object")
        if len(objects) > most:
            raise Refused(
                413, f"'objects' holds {len(objects)} objects, expected at most {most}; send several requests"
            )
        named = [("'other'", request["other"])] if "other" in request else []
        named += [("'object'" if key == "object" else f"objects[{i}]", one) for i, one in enumerate(objects)]
        for called, one in named:
            if (size := size_of(one)) > largest:
                units = "letters" if isinstance(one, str) else "numbers" if isinstance(one, list) else "nodes or arcs"
                raise Refused(413, f"{called} has {size} {units}, expected at most {largest}; send a part of it")
        options = {}
        for name, (kind, default) in fields.items():
            value = request.get(name, default)
            wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
            if wrong or (kind is int and not 1 <= value <= _MOST):
                expected = f"an integer from 1 to {_MOST}" if kind is int else "true or false"
                found = value if kind is int and not wrong else _json_name(value)
                raise Refused(422, f"{name!r} is {found}, expected {expected}")
            options[name] = value
        if len(objects) * options.get("n_neighbors", 0) > _MOST_NEIGHBORS:
            asked = f"'n_neighbors' is {options['n_neighbors']} for each of {len(objects)} objects"
            raise Refused(413, f"{asked}, expected at most {_MOST_NEIGHBORS} neighbours in all; send several requests")
        return objects, options

    def answer(
        self, operation: str, objects: list[Any], *, held: Held | None = None, start: int = 0, **options: Any
    ) -> list[dict[str, Any]]:
        """Return a result for each object; raise `Refused` if an object is not valid.

        Parameters
        ----------
        operation : {"neighbors", "predict", "encode", "explain"}
            What to return for each object: its nearest neighbours, its predicted label, its code or vector, or an
            explanation of its prediction or of its similarity to another object.
        objects : list
            The objects of a request, or a part of them (several consecutive objects).
        held : Held, optional
            A value of the attribute `held` of this service: the model or search index that answers. By default, it is
            the one that was read last. If you answer a request in pieces, pass the same `held` with each piece, because
            `refresh` may read another model in between.
        start : int
            Number of objects of the request that come before `objects`. Error messages give the position of an object
            in the whole request.
        **options
            Options of the request, as `options` returns them.
        """
        held = held or self.held  # the same for the whole answer, even if `refresh` reads another
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                called = [f"objects[{i}]" for i in range(start, start + len(objects))]
                read = _read(held, objects, ["'object'"] if operation == "explain" else called)
                results = list(getattr(self, f"_{operation}")(held, read, **options))
            self._log(caught)
            return results
        except BadItem as error:
            raise Refused(422, str(error.shifted(start).changed(collection="objects"))) from error
        except (DataError, ValueError, TypeError) as error:
            raise Refused(422, " ".join(str(error).split())) from error

    def _log(self, caught: list[warnings.WarningMessage]) -> None:
        """Log each kind of warning once, as the same objects may be asked about all day."""
        for warning in caught:
            if warning.category not in self._told:
                self._told.add(warning.category)
                _LOGGER.warning("%s (further warnings of this kind are not logged)", warning.message)

    def _neighbors(self, held: Held, objects: Any, n_neighbors: int = 10) -> Any:
        distances, ids = held.model.kneighbors(objects, n_neighbors)
        for values, found in zip(distances.tolist(), ids.tolist(), strict=True):
            named = {"names": [held.names.get(i) for i in found]} if held.names else {}
            yield {"ids": found, "distances": values} | named

    def _predict(self, held: Held, objects: Any, scores: bool = False) -> Any:
        labels = np.asarray(held.model.predict(objects)).tolist()
        if not scores:
            return [{"label": label} for label in labels]
        classes = [str(label) for label in getattr(held.model, "classes_", ())]
        method = next((name for name in ("predict_proba", "decision_function") if hasattr(held.model, name)), None)
        pairs = method == "decision_function" and decides_in_pairs(held.model)
        if method is None or not classes or pairs:
            only = ", only of pairs of classes; fit it with decision_function_shape='ovr'" if pairs else ""
            raise Refused(422, f"'scores' is true, but this model gives no scores of classes{only}")
        values = np.asarray(getattr(held.model, method)(objects), np.float64)
        if values.ndim == 1:
            values = np.stack([-values, values], axis=1)
        rows = (dict(zip(classes, row, strict=True)) for row in values.tolist())
        return [{"label": label, "scores": row} for label, row in zip(labels, rows, strict=True)]

    def _encode(self, held: Held, objects: Any) -> Any:
        encoder = held.model.encoder_ if "neighbors" in held.operations else held.model
        rows = encoder.transform(objects)
        rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        if rows.dtype == np.uint8:
            return [{"code": row.tobytes().hex()} for row in rows]
        return [{"vector": row} for row in rows.tolist()]

    def _explain(self, held: Held, objects: Any, other: Any = None, top: int = 10) -> Any:
        search = "neighbors" in held.operations
        if other is None and search:
            raise Refused(422, "the field 'other' is missing: an index explains how alike two objects are")
        second = None if other is None else _read(held, [other], ["'other'"])[0]
        found = explain(held.model.encoder_ if search else held.model, objects[0], second, top=top)
        parts = [{"name": part.name, "contribution": part.contribution} for part in found.parts]
        rest = {"residual": found.residual, "note": found.note, "title": found.title}
        return [{"value": found.value, "kind": found.kind, "parts": parts} | rest]


def size_of(one: Any) -> int:
    """Return the size of an object in a request: letters of a string, numbers in a list, nodes or arcs of a graph.

    Examples
    --------
    >>> size_of("ACGT"), size_of([[1, 2], [3, 4], [5, 6]]), size_of({"edge_index": [[0, 1], [1, 2]], "n_nodes": 3})
    (4, 6, 3)
    """
    if isinstance(one, dict):
        nodes, arcs = one.get("n_nodes"), one.get("edge_index")
        columns = [*one.values(), *(arcs if isinstance(arcs, list) else [])]
        return max(nodes if isinstance(nodes, int) else 1, *(len(column) for column in columns if _long(column)), 1)
    if isinstance(one, list):
        return sum(max(1, len(part)) if _long(part) else 1 for part in one)
    return len(one) if isinstance(one, str) else 1


def _long(value: Any) -> bool:
    return isinstance(value, (list, str))


def pieces(objects: list[Any], largest: int) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield the start, the size and the objects of each piece of a request.

    A piece is answered in one go. It holds at most 64 objects, and its size is at most `largest`, unless it is a single
    object.

    Examples
    --------
    >>> list(pieces(["ab", "c", "def", "g"], 4))
    [(0, 3, ['ab', 'c']), (2, 4, ['def', 'g'])]
    """
    start = size = 0
    for i, one in enumerate(objects):
        more = size_of(one)
        if i > start and (size + more > largest or i - start == _PIECE):
            yield start, size, objects[start:i]
            start, size = i, 0
        size += more
    yield start, size, objects[start:]


def _load(path: Path) -> Held:
    if path.is_dir() and not is_search(path):
        codes = (path / MANIFEST).is_file()
        holds = "holds the codes of a HammingIndex without the encoder that made them" if codes else "holds no search"
        raise BadFile(
            path, f"{holds}; give a folder that SimilaritySearch.save or `similia index` wrote, or a model file"
        )
    stamp = _stamp(path)
    if is_search(path):
        model, names = SearchFolder.open(path).load_named()
        encodes = hasattr(model.encoder_, "transform")
        operations: tuple[str, ...] = ("neighbors", "encode", "explain") if encodes else ("neighbors", "explain")
        inner = model.encoder_
    else:
        model, names = load(path), {}
        offered = {"predict": "predict", "encode": "transform", "explain": "predict"}
        operations = tuple(name for name in OPERATIONS if name in offered and hasattr(model, offered[name]))
        inner = model
    if not operations:
        raise ValueError(f"{path} holds a {type(model).__name__}, which neither predicts, encodes nor searches")
    found = parts_of(inner).comparison(fitted=False)
    compared = getattr(inner, "similarity", None) if found is None else found.function  # of clusters
    kind = kind_of(compared) or kind_of_arrays(inner)
    return Held(model, names, stamp, kind, operations)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes whenever a model file is replaced or an index commits."""
    state = os.stat(path / "codes" / MANIFEST if path.is_dir() else path)
    return state.st_mtime_ns, state.st_size, state.st_ino


def _read(held: Held, objects: list[Any], called: list[str]) -> Any:
    """Return the objects of a request as the model takes them; raise `Refused` for one of the wrong kind.

    Errors name each object as it is `called`.
    """
    if held.kind == "graphs" and all(isinstance(one, str) for one in objects):
        try:
            return from_smiles(objects)
        except BadItem as error:
            raise Refused(422, error.about(called[error.index or 0])) from error
    expected = {"graphs": (dict, "SMILES, or objects with 'edge_index' and 'n_nodes', all of one form")}
    kind, words = expected.get(str(held.kind), (str, "strings") if held.kind in (None, "strings") else (list, "lists"))
    for name, one in zip(called, objects, strict=True):
        if not isinstance(one, kind):
            raise Refused(422, f"{name} is {_json_name(one)}, expected {words}")
    if kind is not list:
        return objects
    rows = []
    for name, one in zip(called, objects, strict=True):
        try:
            cells = np.array(one)
            if cells.dtype.kind in "UO" and any(isinstance(cell, str) for cell in cells.flat):
                raise TypeError("strings such as '1' are no numbers")
            rows.append(cells.astype(np.float64))
        except OverflowError:
            raise Refused(422, f"{name} holds a number too large for float64, expected smaller ones") from None
        except (TypeError, ValueError):
            words = "numbers, or lists of equally many numbers"
            raise Refused(422, f"{name} holds something else than numbers, expected {words}") from None
    if held.kind != "vectors":
        return rows
    if len({row.shape for row in rows}) > 1 or rows[0].ndim != 1:
        raise Refused(422, "'objects' are lists of different lengths, expected vectors of one length")
    return np.stack(rows)


def _json_name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    if isinstance(value, list) and not value:
        return "an empty list"
    return names.get(type(value), "a number")
