"""``similia plan`` estimates the cost of a run, as a table or as JSON."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from similia.cli.options import DATA_HELP, Bits, Distance, Kernel, Table, parse_distance, parse_kernel

TIMES = ((86400 * 365, "years"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
_LANDMARKS = 300  # default number


def plan(
    table: Table,
    objects: Annotated[float | None, typer.Option(help="Number of objects, e.g. 1e9.")] = None,
    length: Annotated[
        float | None,
        typer.Option(
            help="Mean number of letters of a string, nodes of a graph, points of a series or set, or numbers of a "
            "vector."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Instead of --objects and --length: data to measure. " + DATA_HELP)
    ] = None,
    kernel: Kernel = None,
    distance: Distance = None,
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of landmarks, the objects with which each object is compared. Default: 300, or all if fewer.",
        ),
    ] = None,
    random: Annotated[
        int | None, typer.Option(min=1, help="With a distance, instead of --landmarks: number of random objects.")
    ] = None,
    bits: Bits = 1024,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Number of processor cores. Default: all of this machine.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="strings, graphs, series, sets or vectors; needed if the kernel or distance compares several kinds."
        ),
    ] = None,
    edges: Annotated[
        float | None, typer.Option(help="Mean number of edges of a graph. Default: as many as nodes.")
    ] = None,
    letters: Annotated[
        int, typer.Option(min=1, help="Number of different letters of strings, or labels of nodes.")
    ] = 4,
    channels: Annotated[
        int | None, typer.Option(min=1, help="Numbers per point. Default: 1 for series, 2 for sets.")
    ] = None,
) -> None:
    """Estimate, in 5 to 20 seconds, what encoding many objects costs: kernel values, operations, bytes, hours.

    [bold]similia plan --objects 1e9 --length 100 --kernel 'GappyKmers(k=4, gaps=1)' --cores 64[/bold]

    [bold]similia plan --data reads.fasta --distance 'Levenshtein()' --random 1024[/bold]
    """
    from similia.cli.voice import result
    from similia.planning.forecasts import plan as forecast

    if (kernel is None) == (distance is None):
        raise ValueError("give one of --kernel and --distance, e.g. --kernel 'GappyKmers(k=4, gaps=1)'")
    sample = None
    if data is not None:
        if length is not None or edges is not None:
            raise ValueError("similia measures the objects of --data; drop --length and --edges")
        kind, sample, found = _sample(data, table)
        objects = found if objects is None else objects
    elif objects is None or length is None:
        raise ValueError(
            "give the number of objects and their length (--objects 1e9 --length 100), or a file (--data FILE)"
        )
    made = forecast(
        objects, length, kernel=None if kernel is None else parse_kernel(kernel),
        distance=None if distance is None else parse_distance(distance),
        landmarks=int(max(1, min(_LANDMARKS, objects))) if landmarks is None else landmarks, random=random, bits=bits,
        cores=cores, kind=kind, edges=edges, letters=letters, channels=channels, sample=sample,
    )  # fmt: skip
    _print(made)
    result(made.to_dict())


def _sample(data: str, table: dict[str, Any]) -> tuple[str, Any, int]:
    """Return the kind of the objects, a sample of them, and the number of all objects (estimated for long files)."""
    import numpy as np

    from similia.cli.inputs import open_objects
    from similia.objects import take
    from similia.scale.stream import CHUNK
    from similia.sources.source import Held

    stream = open_objects(data, chunk=CHUNK, **table)
    if isinstance(stream, Held):
        n = len(stream.objects)
        rows = np.sort(np.random.default_rng(0).permutation(n)[:CHUNK])
        return stream.kind, take(stream.objects, rows), n
    chunks = stream.chunks()
    first = next(chunks)
    if stream.n is not None or next(chunks, None) is None:  # blank lines may follow the last object
        return stream.kind, first.objects, stream.n or first.stop
    estimated = first.stop * (stream.size or 0) / first.bytes_read
    return stream.kind, first.objects, int(float(f"{estimated:.2g}"))  # only significant digits


def _print(made: Any) -> None:
    from rich.table import Table as Grid

    from similia.cli.voice import console

    say = console(highlight=False)
    what = f"{made.objects:,} {made.kind} of length {made.length:.4g}, {made.method}, {made.bits} bits"
    say.print(what)
    steps = Grid("step", "kernel values", "operations", f"time on {made.cores} cores")
    for step, seconds in made.seconds.items():
        flops = made.flops.get(step)
        name = "one search" if step == "search" else step
        evaluations = f"{made.evaluations[step]:,}" if step in made.evaluations else ""
        steps.add_row(name, evaluations, "" if flops is None else f"{flops:.2g}", in_units(seconds, TIMES))
    steps.add_row("all but search", "", "", in_units(3600 * made.hours, TIMES), style="bold")
    say.print(steps)
    sizes = Grid("input in memory", "working memory", "model", "codes", "index on disk")
    sizes.add_row(*(in_units(value, SIZES) for value in made.bytes.values()))
    say.print(sizes)
    for line in made.assumptions:
        say.print(line)


def in_units(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Format a value in the largest of the units (`TIMES` or `SIZES`) that it reaches."""
    size, unit = next(((size, unit) for size, unit in units if value >= size), units[-1])
    value = value / size
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
