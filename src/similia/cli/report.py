"""``similia report``: a model and data in, a page about both out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import similia as sm
from similia.cli.inputs import read_objects
from similia.cli.outputs import bars, check_output
from similia.cli.voice import console, note, result, written
from similia.report import write_report


def report(
    model_path: Path,
    data: str,
    output: Path,
    *,
    seed: int = 0,
    unseen: bool = False,
    folds: int = 5,
    max_objects: int = 5000,
    title: str | None = None,
    **table: Any,
) -> None:
    """Write a report on a model and `data` as one HTML page.

    Parameters
    ----------
    model_path : Path
        That `similia fit` wrote.
    data : str
        File or name of a data set.
    output : Path
        The page; complete or not there.
    seed : int
        Draws objects and folds.
    unseen : bool
        Whether the model was fitted without these objects, so that its own predictions may be scored.
    folds : int
        Of cross-validation, where it was not.
    max_objects : int
        Of more objects, so many are drawn.
    title : str, optional
    **table
        How `data` are read; see `similia.sources.read_objects`.

    Raises
    ------
    ValueError
        If the model or the data cannot be read, or the output would overwrite one of them.
    """
    check_output(output, data, model_path)
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a report is an HTML page; end {output} in .html")
    model = sm.load(model_path)
    found = read_objects(data, **table)
    if found.labels is not None and not unseen:
        note(
            "note: the model may have seen these objects, so the page shows a cross-validation of copies of it; if it "
            "has not seen them, --unseen scores the model itself"
        )
    with bars():
        write_report(
            model,
            found.objects,
            found.labels,
            output,
            title=title or f"{model_path.name} on {Path(data).name}",
            names=found.names,
            unseen=unseen,
            cv=folds,
            max_objects=max_objects,
            random_state=seed,
        )
    size = output.stat().st_size
    result({"output": output, "bytes": size, "objects": len(found.objects)})
    console(highlight=False).print(f"wrote {written(output)} ({size / 1e6:.1f} MB); open it in a browser", markup=False)
