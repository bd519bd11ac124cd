"""``similia report`` writes a page about a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Data, Model, Seed, Table


def report(
    model: Model,
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML page to write.")],
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen", help="Score the model itself on these objects; it must have been fitted without them."
        ),
    ] = False,
    folds: Annotated[int, typer.Option(min=2, help="Without --unseen: number of folds of cross-validation.")] = 5,
    objects: Annotated[
        int, typer.Option(min=10, help="Maximum number of objects; of more, a random sample is taken.")
    ] = 5000,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a model and data: accuracy, errors, a map of the objects, why they are similar, the cost.

    [bold]similia report model.similia reads.csv --text sequence --label species -o report.html[/bold]
    """
    import similia as sm
    from similia.cli.inputs import read_objects
    from similia.cli.model_data import with_columns_of
    from similia.cli.outputs import bars, check_page
    from similia.cli.voice import console, note, result, written
    from similia.report import write_report

    check_page(output, data, model)
    fitted = sm.load(model)
    found = read_objects(data, **with_columns_of(fitted, data, table, labelled=True))
    if found.labels is not None and not unseen:
        note(
            "note: the page scores copies of the model by cross-validation, because the model may have been fitted to "
            "these objects; if it was not, --unseen scores the model itself"
        )
    if found.labels is None:
        note("note: the page shows no accuracy, because there are no labels; --label names their column")
    with bars():
        write_report(
            fitted,
            found.objects,
            found.labels,
            output,
            title=title or f"{model.name} on {Path(data).name}",
            names=found.names,
            unseen=unseen,
            cv=folds,
            max_objects=objects,
            random_state=seed,
        )
    size = output.stat().st_size
    result({"output": output, "bytes": size, "objects": len(found.objects)})
    console(highlight=False).print(f"wrote {written(output)} ({size / 1e6:.1f} MB); open it in a browser", markup=False)
