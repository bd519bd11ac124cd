"""``similia explain``: why two objects are alike, or why a model decides as it does for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import similia as sm
from similia.cli.inputs import Objects, read_objects
from similia.cli.outputs import check_output
from similia.cli.voice import console, result, voice, written
from similia.core.text import did_you_mean
from similia.explanations import Explanation, explain
from similia.objects import n_objects, take
from similia.search.on_disk import SearchFolder
from similia.storage.models import write_atomically


def explain_pair(
    model_path: Path,
    data: str,
    i: int | str,
    j: int | str,
    *,
    top: int = 10,
    labels: str | None = None,
    output: Path | None = None,
    **table: Any,
) -> None:
    """Print why objects `i` and `j` of `data` are as alike as they are, by the kernel or distance of a model.

    Parameters
    ----------
    model_path : path
        A model, or the folder of a search.
    data : str
        File, folder or name of a data set.
    i, j : int or str
        Names of the objects, or their numbers from 0.
    top : int
        Most parts to list.
    labels : str, optional
        Names of the labels of nodes, as ``0=C,1=N``.
    output : path, optional
        An HTML file to write; the terminal if not given.
    **table
        How `data` are read; see `similia.sources.read_objects`.
    """
    _show(model_path, data, (i, j), top, labels, output, table)


def explain_prediction(
    model_path: Path,
    data: str,
    i: int | str,
    *,
    top: int = 10,
    labels: str | None = None,
    output: Path | None = None,
    **table: Any,
) -> None:
    """Print what carries the decision of a model for object `i` of `data`; parameters as for `explain_pair`."""
    _show(model_path, data, (i,), top, labels, output, table)


def as_dict(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as what JSON holds."""
    names = ("title", "kind", "value", "residual", "omitted", "n_omitted", "unexplained", "note")
    lists = {"parts": explanation.parts, "groups": explanation.groups}
    listed = {
        key: [
            {"name": p.name, "contribution": p.contribution, "in_x": p.in_x.tolist(), "in_y": p.in_y.tolist()}
            for p in parts
        ]
        for key, parts in lists.items()
    }
    return {name: getattr(explanation, name) for name in names} | listed


def _show(
    model_path: Path,
    data: str,
    which: tuple[int | str, ...],
    top: int,
    labels: str | None,
    output: Path | None,
    table: dict[str, Any],
) -> None:
    if output is not None:
        check_output(output, data, model_path)
    label_names = _label_names(labels)
    if model_path.is_dir() and len(which) == 1:
        raise ValueError(
            f"{model_path} is an index, which predicts nothing; --pair explains why two objects are similar"
        )
    model = _model(model_path)
    read = read_objects(data, labelled=False, **table)
    objects = [take(read.objects, [_number(one, read)]) for one in which]
    found = explain(model, *objects, top=top, label_names=label_names)
    if output is not None:
        page = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>similia</title>{found.to_html()}</html>\n"
        write_atomically(output, page.encode())
        console(highlight=False).print(f"wrote {written(output)}", markup=False)
    elif not voice().json:
        print(found.to_text())
    result(as_dict(found))


def _number(which: int | str, read: Objects) -> int:
    """Return the number of an object that is given by its name, or by its number from 0."""
    n, known = n_objects(read.objects), list(map(str, read.names or []))
    if known.count(str(which)) == 1:
        return known.index(str(which))
    if str(which) in known:
        raise ValueError(f"{read.source} holds {known.count(str(which))} objects named {which!r}; give a number from 0")
    try:
        number = int(which)
    except ValueError:
        here = f", named {known[0]!r}, ...{did_you_mean(str(which), known)}" if known else ", which have no names here"
        hint = "" if known else "; give a number from 0, or name the column of names with --id"
        raise ValueError(f"{read.source} has no object {which!r}: it holds {n} {read.called}{here}{hint}") from None
    if not 0 <= number < n:
        raise ValueError(
            f"{read.source} holds {n} {read.called}, numbered from 0 to {n - 1}; there is no number {number}"
        )
    return number


def _model(path: Path) -> Any:
    """Return a model, or the encoder of a search."""
    if path.is_dir():
        return SearchFolder.open(path).search.encoder_
    return sm.load(path)


def _label_names(labels: str | None) -> dict[int, str] | None:
    if labels is None:
        return None
    try:
        return {int(number): name for number, name in (item.split("=", 1) for item in labels.split(","))}
    except ValueError:
        raise ValueError(f"--labels must be like 0=C,1=N,2=O (label=name), got {labels!r}") from None
