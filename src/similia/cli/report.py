"""``similia report`` writes a page about a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import Data, Model, Page, Seed, Table, Title


def report(
    model: Model,
    data: Data,
    table: Table,
    output: Page,
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen", help="Score the model itself on these objects; it must have been fitted without them."
        ),
    ] = False,
    folds: Annotated[int, typer.Option(min=2, help="Without --unseen: number of folds of cross-validation.")] = 5,
    objects: Annotated[
        int, typer.Option(min=10, help="Maximum number of objects; if there are more, a random sample.")
    ] = 5000,
    title: Title = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a model and data: accuracy, errors, a map of the objects, why they are similar, the cost.

    [bold]similia report model.similia reads.csv --text sequence --label species -o report.html[/bold]
    """
    from sklearn.base import ClusterMixin

    import similia as sm
    from similia.cli.inputs import check_kind, read_objects, with_columns_of
    from similia.cli.outputs import bars, check_page, print_written, size_of
    from similia.cli.voice import console, note, result
    from similia.pipelines import parts_of
    from similia.report.page import write_with_scores

    check_page(output, data, model)
    fitted = sm.load(model)
    found = read_objects(data, **with_columns_of(fitted, data, table, labelled=True))
    check_kind(fitted, found, found.objects)
    if found.labels is not None and not unseen and not isinstance(parts_of(fitted).learner, ClusterMixin):
        note(
            "note: the page scores copies of the model by cross-validation, because the model may have been fitted to "
            "these objects; if it was not, --unseen scores the model itself"
        )
    if found.labels is None:
        note("note: the page shows no accuracy, because there are no labels; --label names their column")
    with bars():
        _, scores, unscored = write_with_scores(
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
    if found.labels is not None and scores is None:
        note(f"note: the page shows no scores: {unscored[:1].lower()}{unscored[1:]}")
    size = output.stat().st_size
    result({"output": output, "bytes": size, "objects": len(found.objects), "scores": scores})
    if scores is not None:
        console(highlight=False).print(said(scores))
    print_written(output, f" ({size_of(size)})", output)


def said(scores: dict[str, Any]) -> str:
    """Return the scores of a report as text for the terminal."""
    low, high = scores["interval"]
    how = ", cross-validated" if scores["folds"] else ""
    if "coverage" in scores:
        rest = {key: value for key, value in scores.items() if key != "coverage"}
        reached = (f"{100 * held:.1f} % ({100 * float(asked):g} % asked)" for asked, held in scores["coverage"].items())
        return f"{said(rest)}\ncoverage{how} {', '.join(reached)}"
    if "r_squared" in scores:
        return f"R squared{how} {scores['r_squared']:.3f} (95 % from {low:.3f} to {high:.3f})"
    floor = f"always the most frequent class {100 * scores['most_frequent']:.1f} %"
    return f"accuracy{how} {100 * scores['accuracy']:.1f} % ({100 * low:.1f} to {100 * high:.1f}), {floor}"
