"""``similia cluster`` groups a collection by similarity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from similia.cli.options import Data, Distance, Kernel, Landmarks, Seed, Table, first_given, parse_one

if TYPE_CHECKING:
    from similia.sources import Objects

_COLUMNS = {"k-means": ("cluster", "distance", "medoid"), "density": ("cluster", "probability", "medoid")}
_STABILITY, _LANDMARKS, _MIN_SIZE = "stability", 300, 5


def cluster(
    data: Data,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Table to write, with the cluster of each object: .csv or .parquet.")
    ],
    kernel: Kernel = None,
    distance: Distance = None,
    method: Annotated[
        str,
        typer.Option(
            help="k-means: a cluster for each object; density: clusters of high density (HDBSCAN), all else is noise."
        ),
    ] = "k-means",
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            "-k",
            help="Number of clusters of k-means; or stability: the largest number from 2 to 10 whose clusters, on "
            "random subsamples, are as stable as the most stable, up to noise.",
        ),
    ] = _STABILITY,
    min_size: Annotated[
        int | None, typer.Option(min=2, help="Least number of objects in a cluster of density; 5 by default.")
    ] = None,
    min_samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="For density: number of objects near an object, itself included, that make its neighbourhood dense; "
            "fewer leave less noise. --min-size by default.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML page: examples of the clusters, what their members share, a map."),
    ] = None,
    landmarks: Landmarks = _LANDMARKS,
    save: Annotated[
        Path | None,
        typer.Option(help="Also write the fitted model; 'similia predict FILE NEW' assigns new objects to clusters."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Group a collection by similarity: kernel k-means, or clusters of high density. Each has an example, its medoid.

    [bold]similia cluster reads.csv --text sequence -o clusters.csv --report clusters.html[/bold]

    [bold]similia cluster heartbeats.ts --distance 'DTW(window=0.1)' --clusters 5 -o clusters.csv[/bold]

    [bold]similia cluster reads.csv --text sequence --method density --min-size 20 -o clusters.csv[/bold]
    """
    import numpy as np

    import similia as sm
    from similia.cli.inputs import (
        as_compared,
        labels_for_page,
        named_comparison,
        placed_in,
        read_objects,
        remember_columns,
    )
    from similia.cli.outputs import (
        bars,
        check_id,
        check_model,
        check_page,
        check_table,
        keys_of,
        name_column,
        print_written,
        write_blocks,
    )
    from similia.cli.voice import result
    from similia.core.text import counted
    from similia.report import write_clusters

    number = _number_of_clusters(method, clusters, min_size, min_samples, landmarks)
    check_table(output, data)
    check_page(report, data)
    check_model(save, data)
    check_id(table, *_COLUMNS[method])
    labelled = table.get("label") is not None
    table = as_compared(data, parse_one(kernel, distance), table)
    found = read_objects(data, labelled=labelled, **table)
    compared = named_comparison(found, kernel, distance)
    _check_enough(found, method, number, min_size or _MIN_SIZE, min_samples)
    model: Any = sm.HDBSCAN(compared, min_size or _MIN_SIZE, min_samples, random_state=seed)
    if method == "k-means":
        model = sm.KernelKMeans(compared, number, landmarks, random_state=seed)
    with bars(), placed_in(found):
        model.fit(found.objects)
        labels, values, medoids = _of_means(model, found.objects) if method == "k-means" else _of_density(model)
    keys = keys_of(found, name_column(table, found.named))
    columns = (labels, values, np.where(medoids < 0, -1, keys["row"][medoids]))
    write_blocks([keys | dict(zip(_COLUMNS[method], columns, strict=True))], output)
    remember_columns(model, data, table)
    if save is not None:
        sm.save(model, save)
    if report is not None:
        title, classes = f"Clusters of {Path(data).name}", labels_for_page(found, labelled)
        with bars(), placed_in(found):
            write_clusters(model, found.objects, classes, report, title=title, names=found.names, random_state=seed)
    sizes, noise = np.bincount(labels[labels >= 0], minlength=model.n_clusters_), int((labels < 0).sum())
    told = {"output": output, "objects": len(labels), "clusters": model.n_clusters_, "sizes": sizes.tolist()}
    told |= {} if method == "k-means" else {"noise": noise}
    told |= {"compared_by": str(compared)} | ({} if report is None else {"report": report})
    result(told)
    shown = ", ".join(map(str, np.sort(sizes)[::-1][:10].tolist())) + ("" if len(sizes) <= 10 else ", and smaller")
    about = f": {len(labels)} objects in {counted(model.n_clusters_, 'cluster')}" + (f" of {shown}" if shown else "")
    print_written(output, about + (f"; {noise} {'is' if noise == 1 else 'are'} noise" if noise else ""), report)


def _number_of_clusters(
    method: str, clusters: str, min_size: int | None, min_samples: int | None, landmarks: int
) -> Any:
    """Return the number of clusters of k-means, or "stability"; raise if options do not fit together."""
    if method not in ("k-means", "density"):
        raise ValueError(f"--method must be k-means or density, got {method}")
    if method == "density" and (clusters != _STABILITY or landmarks != _LANDMARKS):
        raise ValueError("--clusters and --landmarks are for --method k-means; for density, set --min-size")
    if method == "k-means" and (option := first_given({"--min-size": min_size, "--min-samples": min_samples})):
        raise ValueError(f"{option} is for --method density; for k-means, set --clusters")
    if clusters == _STABILITY:
        return clusters
    if not clusters.isdecimal() or int(clusters) < 1:
        raise ValueError(f"--clusters must be a number of at least 1, or stability, got {clusters}")
    return int(clusters)


def _check_enough(found: Objects, method: str, number: Any, min_size: int, min_samples: int | None) -> None:
    from similia.core.text import counted
    from similia.core.validation import BadFile
    from similia.objects import n_objects

    needs = {"--clusters": number} if method == "k-means" else {"--min-size": min_size, "--min-samples": min_samples}
    for option, least in needs.items():
        if isinstance(least, int) and (n := n_objects(found.objects)) < least:
            holds = f"holds {counted(n, 'object')}, expected at least {least} ({option})"
            raise BadFile(found.source, f"{holds}; give more objects, or a smaller {option}")


def _of_means(model: Any, objects: Any) -> tuple[Any, Any, Any]:
    """Return the cluster of each object of k-means, its distance from the centre, and the medoid of the cluster."""
    import numpy as np

    distances = model.transform(objects)
    rows, labels = np.arange(len(distances)), distances.argmin(axis=1)
    return labels, distances[rows, labels], model.medoid_indices_[labels]


def _of_density(model: Any) -> tuple[Any, Any, Any]:
    """Return the cluster of high density of each object, its probability, and the medoid; -1 stands for noise."""
    import numpy as np

    labels = model.labels_
    return labels, model.probabilities_, np.append(model.medoid_indices_, -1)[labels]
