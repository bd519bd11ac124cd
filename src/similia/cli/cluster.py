"""``similia cluster`` groups a collection by similarity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import Data, Distance, Kernel, Landmarks, Seed, Table, parse_one


def cluster(
    data: Data,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Table to write, with the cluster of each object: .csv or .parquet.")
    ],
    kernel: Kernel = None,
    distance: Distance = None,
    clusters: Annotated[
        str,
        typer.Option(
            help="Number of clusters; or stability: the largest number from 2 to 10 whose clusters, on random "
            "subsamples, are as stable as the most stable, up to noise."
        ),
    ] = "stability",
    report: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML page: examples of the clusters, what their members share, a map."),
    ] = None,
    landmarks: Landmarks = 300,
    save: Annotated[
        Path | None,
        typer.Option(help="Also write the fitted model; in Python, similia.load(FILE).predict assigns new objects."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Group a collection by similarity (kernel k-means). A cluster's example is the object nearest to its centre.

    [bold]similia cluster reads.csv --text sequence -o clusters.csv --report clusters.html[/bold]

    [bold]similia cluster heartbeats.ts --distance 'DTW(window=0.1)' --clusters 5 -o clusters.csv[/bold]
    """
    import numpy as np

    import similia as sm
    from similia.cli.inputs import as_compared, check_comparison, named_comparison, placed_in, read_objects
    from similia.cli.outputs import bars, check_output, check_page, check_table, print_written, write_table
    from similia.cli.voice import result
    from similia.objects.tables import is_missing
    from similia.report import write_clusters

    number: Any = clusters
    if clusters != "stability":
        if not clusters.isdecimal() or int(clusters) < 1:
            raise ValueError(f"--clusters must be a number of at least 1, or stability, got {clusters}")
        number = int(clusters)
    check_table(output, data)
    if report is not None:
        check_page(report, data)
    if save is not None:
        check_output(save, data)
    labelled = table.get("label") is not None
    table = as_compared(data, parse_one(kernel, distance), table)
    found = read_objects(data, labelled=labelled, **table)
    compared = named_comparison(found, kernel, distance)
    check_comparison(compared, found, found.objects)
    model = sm.KernelKMeans(compared, number, landmarks, random_state=seed)
    with bars(), placed_in(found):
        distances = model.fit(found.objects).transform(found.objects)
    labels = distances.argmin(axis=1)
    rows: dict[str, Any] = {"row": np.arange(len(labels)), "cluster": labels}
    rows["distance"] = distances[rows["row"], labels]
    rows["medoid"] = model.medoid_indices_[labels]
    if found.names is not None:
        rows["name"] = list(found.names)
    write_table(rows, output)
    if save is not None:
        sm.save(model, save)
    if report is not None:
        title, classes = f"Clusters of {Path(data).name}", found.labels
        if not labelled and classes is not None and (classes.ndim > 1 or any(map(is_missing, classes.tolist()))):
            classes = None  # nobody asked for them
        with bars(), placed_in(found):
            write_clusters(model, found.objects, classes, report, title=title, names=found.names, random_state=seed)
    sizes = np.bincount(labels, minlength=model.n_clusters_)
    told = {"output": output, "objects": len(labels), "clusters": model.n_clusters_, "sizes": sizes.tolist()}
    told |= {"compared_by": str(compared)} | ({} if report is None else {"report": report})
    result(told)
    shown = ", ".join(map(str, np.sort(sizes)[::-1][:10].tolist())) + ("" if len(sizes) <= 10 else ", and smaller")
    print_written(output, f": {len(labels)} objects in {model.n_clusters_} clusters of {shown}", report)
