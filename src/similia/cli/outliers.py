"""``similia outliers`` finds the objects that do not belong: in a collection, or among new objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from similia.cli.options import Data, Distance, Kernel, Table, first_given, parse_one

if TYPE_CHECKING:
    from similia.learn import OutlierDetector
    from similia.sources import Objects

_COLUMNS = ("rank", "strangeness", "outlier", "p_value")
_SHOWN = 5  # of the strangest objects
_NEIGHBOURS = 10  # the default of -k


def outliers(
    data: Data,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Table to write, with a row for each object: .csv or .parquet.")
    ],
    train: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Ordinary objects, read with the same options. The objects of DATA are then new objects: they are "
            "compared with these only, and get p-values.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Instead of --train: a detector that an earlier run wrote with --save.")
    ] = None,
    kernel: Kernel = None,
    distance: Distance = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How strange an object is. neighbors (the default): its distance to the k-th neighbour; density: how "
            "much sparser its neighbourhood is than those of its neighbours (no p-values); reconstruction: its "
            "distance from the span of the landmarks, for a kernel."
        ),
    ] = None,
    n_neighbors: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            help="Number of neighbours. Take more than any group of outliers that are alike has objects. Default: 10.",
        ),
    ] = None,
    landmarks: Annotated[
        int | None, typer.Option(min=1, help="For reconstruction: number of landmarks. Default: 100.")
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            help="Share of the training objects (of DATA, without --train) that count as outliers. "
            "Default: those whose strangeness exceeds the third quartile by more than 1.5 interquartile ranges.",
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Also write the fitted detector, for --model.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers. Default: 0.")] = None,
) -> None:
    """Find the objects that do not belong with the others, or with the ordinary objects of --train.

    The table holds the strangeness of each object, its rank (1 is the strangest) and whether it is an outlier. With
    --train or --model, it also holds p-values: of objects that are ordinary, too, at most 5 % have a p-value of 0.05 or
    less, on average, and so on for other values.

    [bold]similia outliers reads.csv --text sequence -o outliers.csv[/bold]

    [bold]similia outliers new.ts --train ordinary.ts --distance 'DTW(window=0.1)' -o outliers.csv[/bold]
    """
    import similia as sm
    from similia.cli.inputs import (
        as_compared,
        check_comparison,
        placed_in,
        read_objects,
        remember_columns,
        with_columns_of,
    )
    from similia.cli.outputs import bars, check_id, check_model, check_table, name_column, print_written, write_blocks
    from similia.cli.voice import note, result

    check_table(output, data, train, model)
    check_model(save, data, train, model)
    options: dict[str, Any] = {
        "--train": train, "--kernel": kernel, "--distance": distance, "--method": method, "-k": n_neighbors,
        "--landmarks": landmarks, "--contamination": contamination, "--save": save, "--seed": seed,
    }  # fmt: skip
    if model is not None:
        detector = _saved(model, options)
        table = with_columns_of(detector, data, table, named=True)
        check_id(table, *_COLUMNS)
        read = read_objects(data, labelled=False, **table)
        check_comparison(detector.distance_, read, read.objects, fitted=True)
    else:
        check_id(table, *_COLUMNS)
        compared = parse_one(kernel, distance)
        read = ordinary = read_objects(data, labelled=False, **as_compared(data, compared, table))
        if train is not None:
            ordinary = read_objects(train, labelled=False, **as_compared(train, compared, _of_train(table)))
        detector = _unfitted(ordinary, options)
        check_comparison(detector.similarity, read, read.objects)
        with bars(), placed_in(ordinary):
            detector.fit(ordinary.objects)
        remember_columns(detector, train or data, table)
    column = name_column(table, read.named)
    rows = _judged(detector, read, column, new=train is not None or model is not None)
    write_blocks([rows], output)
    if save is not None:
        sm.save(detector, save)
    n, n_outliers = len(rows["row"]), int(rows["outlier"].sum())
    strangest = _strangest(rows)
    told = {"output": output, "objects": n, "outliers": n_outliers, "threshold": -detector.offset_}
    told |= {"compared_by": str(detector.distance_), "strangest": strangest} | ({} if save is None else {"model": save})
    result(told)
    shown = ", ".join(f"{row[column or 'row']} ({_amounts(row)})" for row in strangest)
    about = (
        f": {n_outliers} of {n} objects are outliers, above a strangeness of {-detector.offset_:.4g}; the strangest: "
    )
    ties = int((rows["strangeness"] == rows["strangeness"].max()).sum())
    if ties > 1 and not rows["outlier"].all():
        note(
            f"note: {ties} objects share the largest strangeness, so they cannot be told apart: a kernel finds nothing "
            "in common between them and their neighbours; another --kernel, or a --distance, may tell more"
        )
    if not n_outliers and train is None and model is None:
        note(
            "note: no object is above the threshold (see --contamination), and where strangeness has a limit, as with "
            "a normalised kernel, perhaps none can be; --contamination 0.02 takes the strangest 2 %"
        )
    print_written(output, about + shown)


def _saved(model: Path, options: dict[str, Any]) -> OutlierDetector:
    """Return the detector in a file; raise if it is another model, or if an option would make a new detector."""
    import similia as sm

    if name := first_given(options):
        raise ValueError(f"{name} is for fitting a detector, and {model} is fitted; drop {name} or --model")
    detector = sm.load(model)
    if not isinstance(detector, sm.OutlierDetector) or not detector.novelty:
        kind = type(detector).__name__
        raise ValueError(
            f"{model} holds no detector for new objects, but {kind}; 'similia outliers --save' writes a detector (in "
            "Python, OutlierDetector with novelty=True)"
        )
    return detector


def _unfitted(ordinary: Objects, options: dict[str, Any]) -> OutlierDetector:
    """Return the detector that the options ask for; raise if they contradict each other."""
    import similia as sm
    from similia.cli.inputs import named_comparison
    from similia.cli.voice import note
    from similia.core.text import counted
    from similia.objects import n_objects
    from similia.similarity import Distance as AnyDistance

    method = options["--method"] or "neighbors"
    unused = "-k" if method == "reconstruction" else "--landmarks"
    if options[unused] is not None:
        raise ValueError(f"{unused} does not apply to --method {method}; drop {unused}")
    compared = named_comparison(ordinary, options["--kernel"], options["--distance"])
    if method == "reconstruction" and isinstance(compared, AnyDistance):
        raise ValueError(
            f"--method reconstruction needs a kernel, and {compared} is a distance; give a --kernel, or drop --method"
        )
    if getattr(compared, "normalize", None) is False:
        name = type(compared).__name__
        note(f"note: {name} is not normalised, so large objects count as strange; {name}(normalize=True) ignores size")
    k, others = options["-k"] or _NEIGHBOURS, n_objects(ordinary.objects) - 1
    if method != "reconstruction" and 1 <= others < k:
        note(f"note: -k {k} is more than the {counted(others, 'other object')}, so all are used")
        k = others
    given: dict[str, Any] = {"n_neighbors": k, "n_components": options["--landmarks"]}
    given |= {"contamination": options["--contamination"]}
    given = {name: value for name, value in given.items() if value is not None}
    return sm.OutlierDetector(compared, method, novelty=True, random_state=options["--seed"] or 0, **given)


def _of_train(table: dict[str, Any]) -> dict[str, Any]:
    """Return the options for reading ordinary objects, whose skipped rows have a list of their own."""
    skipped = table.get("skipped")
    return table if skipped is None else table | {"skipped": skipped.with_name(f"train.{skipped.name}")}


def _judged(detector: OutlierDetector, read: Objects, column: str | None, new: bool) -> dict[str, Any]:
    """Return the table of the objects, with p-values if they are `new`."""
    import numpy as np

    from similia.cli.inputs import placed_in
    from similia.cli.outputs import bars, keys_of

    p_values = None
    with bars(), placed_in(read):
        scores = detector.score_samples(read.objects) if new else detector.train_scores_
        if new and detector.method_ != "density":
            p_values = detector.p_values(read.objects)
    order = np.argsort(scores, kind="stable")
    rank = np.empty(len(scores), np.int64)
    rank[order] = np.arange(1, len(scores) + 1)
    columns = (rank, 0.0 - scores, scores - detector.offset_ < 0, p_values)
    found = {name: values for name, values in zip(_COLUMNS, columns, strict=True) if values is not None}
    return keys_of(read, column) | found


def _strangest(rows: dict[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    first = np.argsort(rows["rank"])[:_SHOWN].tolist()
    columns = {name: column if isinstance(column, list) else column.tolist() for name, column in rows.items()}
    return [{name: column[i] for name, column in columns.items()} for i in first]


def _amounts(row: dict[str, Any]) -> str:
    return f"{row['strangeness']:.4g}" + (f", p = {row['p_value']:.2g}" if "p_value" in row else "")
