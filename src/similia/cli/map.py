"""``similia map`` writes a page with a map of a collection, to explore in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Data, Distance, Kernel, Landmarks, Page, Seed, Table, Title, parse_one


def map(
    data: Data,
    table: Table,
    output: Page,
    kernel: Kernel = None,
    distance: Distance = None,
    color: Annotated[
        str | None, typer.Option(help="Column with the labels or numbers that the colours show; the same as --label.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="landmarks: principal axes of the similarities; neighbours: UMAP (needs similia\\[maps])."),
    ] = "landmarks",
    landmarks: Landmarks = 300,
    objects: Annotated[
        int, typer.Option(min=10, help="Maximum number of objects on the page; if there are more, a random sample.")
    ] = 100_000,
    save: Annotated[
        Path | None,
        typer.Option(help="Also write the fitted map; in Python, similia.load(FILE).transform places new objects."),
    ] = None,
    title: Title = None,
    seed: Seed = 0,
) -> None:
    """Write a map of a collection, with similar objects close together; the page has zoom, search and a lasso.

    [bold]similia map reads.csv --text sequence --color species -o map.html[/bold]

    [bold]similia map heartbeats.ts --distance 'DTW(window=0.1)' -o map.html[/bold]
    """
    import similia as sm
    from similia.cli.inputs import as_compared, labels_for_page, named_comparison, placed_in, read_objects
    from similia.cli.outputs import bars, check_model, check_page, print_written, size_of
    from similia.cli.voice import result
    from similia.report import write_map

    if color is not None and table.get("label") is not None:
        raise ValueError("--color and --label mean the same; drop one of them")
    check_page(output, data)
    check_model(save, data)
    column = color or table.get("label")
    table = as_compared(data, parse_one(kernel, distance), table) | {"label": column}
    found = read_objects(data, labelled=column is not None, **table)
    labels = labels_for_page(found, column is not None)
    compared = named_comparison(found, kernel, distance)
    placed = sm.SimilarityMap(compared, method, n_landmarks=landmarks, random_state=seed)
    with bars(), placed_in(found):
        points = placed.fit_transform(found.objects)
        write_map(
            placed,
            found.objects,
            labels,
            output,
            title=title or f"Map of {Path(data).name}",
            names=found.names,
            points=points,
            color_name=column or "label",
            max_objects=objects,
            random_state=seed,
        )
    if save is not None:
        sm.save(placed, save)
    quality = {name: round(getattr(placed, name + "_"), 4) for name in ("trustworthiness", "continuity")}
    size = output.stat().st_size
    result({"output": output, "bytes": size, "objects": len(found.objects), "compared_by": str(compared), **quality})
    found_again = f"trustworthiness {quality['trustworthiness']:.2f}, continuity {quality['continuity']:.2f}"
    if len(found.objects) < 3:
        found_again = "trustworthiness and continuity need at least 3 objects"
    print_written(output, f" ({size_of(size)}; {found_again})", output)
