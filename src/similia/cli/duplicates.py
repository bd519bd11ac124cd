"""``similia duplicates`` lists the pairs of near-duplicates in a collection."""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from similia.cli.options import Data, Distance, Kernel, Seed, Table, parse_distance, parse_kernel, parse_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from similia.search import Duplicates
    from similia.sources import Objects
    from similia.sources.source import Source

_DEFAULT = {"strings": "MinMax(Spectrum(5))", "graphs": "MinMax(WeisfeilerLehman(details=False))"}
_THRESHOLD = 0.7  # of kernels
_EXAMPLES, _LETTERS = 3, 70  # pairs shown, and letters of each
_SHARE = 4  # a file larger than this share of max_memory is read in chunks
_CHUNK, _WRITTEN = 10_000, 100_000  # objects read at once, rows written at once


def duplicates(
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Pairs to write: .csv or .parquet.")],
    kernel: Kernel = None,
    distance: Distance = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Least similarity (--kernel; 0.7 by default) or largest distance (--distance) of a pair."),
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="The threshold is a share of the longer string's length.")
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option(help="Also write the group of each object, and whether it is the one kept (.csv, .parquet)."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML page: how many were found and missed, groups, example pairs."),
    ] = None,
    method: Annotated[str, typer.Option(help="auto, exact (all pairs), hashes or neighbours.")] = "auto",
    recall: Annotated[float, typer.Option(help="Share of the pairs to find (hashes: at the threshold).")] = 0.98,
    max_memory: Annotated[
        str | None, typer.Option(help="Working memory, e.g. 512MiB; files above a quarter of it are read in chunks.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """List pairs of near-duplicates, and the groups that they form. Texts are compared by their runs of 5 letters.

    A file larger than a quarter of --max-memory (default: 1 GiB) is read in chunks, several times. Such a run resumes
    when the command is repeated after Ctrl-C, a crash or a full disk.

    [bold]similia duplicates messages.csv --text message -o pairs.csv --report pairs.html[/bold]

    [bold]similia duplicates reads.fasta --distance 'Levenshtein()' --relative --threshold 0.1 -o pairs.parquet[/bold]
    """
    from similia.cli.inputs import as_compared
    from similia.cli.outputs import (
        bars,
        check_id,
        check_page,
        check_table,
        name_column,
        print_written,
        stoppable,
        write_blocks,
    )
    from similia.cli.voice import result, voice
    from similia.core.config import config
    from similia.core.text import counted
    from similia.report import write_duplicates
    from similia.scale.stream import partial_of
    from similia.search import near_duplicates
    from similia.search.duplicates import discard
    from similia.sources.source import Source

    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: each says how objects are compared")
    if distance and threshold is None:
        raise ValueError("name the largest distance of near-duplicates: --threshold 3, or --relative --threshold 0.1")
    check_table(output, data)
    check_table(groups, data)
    if groups is not None:
        check_id(table, "group", "kept")
    check_page(report, data)
    table = as_compared(data, parse_one(kernel, distance), table)
    with config(max_memory=max_memory):
        found = _read(data, table)
        compared = _comparison(found, kernel, distance)
        in_chunks = isinstance(found, Source)
        X = found if isinstance(found, Source) else found.objects
        folder = partial_of(output) if in_chunks and not voice().piped else None
        at = _THRESHOLD if threshold is None else threshold
        how: dict[str, Any] = {"relative": relative, "method": method, "recall": recall, "random_state": seed}
        with bars(), _placed(found), stoppable() if in_chunks else nullcontext():
            pairs = near_duplicates(X, compared, at, **how, folder=folder)
            rows, names = _rows_and_names(found, pairs)
            value, column = "distance" if distance else "similarity", name_column(table, found.named)
            write_blocks(_pairs(pairs, value, rows, names, column), output)
            if groups is not None:
                write_blocks(_groups(pairs, found, rows, column), groups)
            if report is not None:
                title = f"Near-duplicates in {Path(data).name}"
                write_duplicates(pairs, X, report, title=title, names=names, random_state=seed)
            if isinstance(found, Source) and found.skips is not None:
                deque(found.chunks(), maxlen=0)  # lists the skipped rows up to the end of the file
        if folder is not None:
            discard(folder)
    n, n_kept = len(pairs.groups), len(pairs.kept)
    told = {"output": output, "objects": n, "pairs": len(pairs.pairs), "kept": n_kept, "compared_by": str(compared)}
    told |= {"recall": round(pairs.recall, 4)} | ({} if report is None else {"report": report})
    result(told)
    _show_examples(pairs, found, value, names)
    share = "" if not 0 <= pairs.recall < 1 else f" (estimated recall {pairs.recall:.3f})"
    about = f": {counted(len(pairs.pairs), 'pair')}{share}; "
    print_written(output, f"{about}{n_kept} of {n} objects are left if one of each group is kept", report)


def _read(data: str, table: dict[str, Any]) -> Objects | Source:
    from similia.cli.inputs import open_objects, read_objects
    from similia.core.config import settings
    from similia.sources.streams import ObjectStream

    path = Path(data)
    if path.is_file() and _SHARE * path.stat().st_size > settings().max_memory:
        source = open_objects(data, chunk=_CHUNK, **table)
        if isinstance(source, ObjectStream):
            return source
    return read_objects(data, labelled=False, **table)


def _comparison(found: Objects | Source, kernel: str | None, distance: str | None) -> Any:
    from similia.cli.inputs import check_comparison
    from similia.cli.voice import note
    from similia.sources.source import Source

    spec = distance or kernel or _DEFAULT.get(found.kind)
    if spec is None:
        raise ValueError(f"name how {found.called} are compared: --kernel or --distance, with a --threshold")
    if not (kernel or distance):
        note(f"note: {found.called} are compared by {spec}; --kernel or --distance names another")
    compared = parse_distance(spec) if distance else parse_kernel(spec)
    check_comparison(compared, found, found.take([0]) if isinstance(found, Source) else found.objects)
    return compared


def _placed(found: Objects | Source) -> Any:
    """Return a context that adds the file and the place of an object to errors about it."""
    from similia.cli.inputs import placed_in
    from similia.scale.stream import places_named
    from similia.sources.source import Source

    return places_named(found) if isinstance(found, Source) else placed_in(found)


def _rows_and_names(found: Objects | Source, pairs: Duplicates) -> tuple[Any, Any]:
    """Return the positions of the objects in their file, and their names; None if they have none.

    Of a source, the names are a dict of those of objects in pairs.
    """
    import numpy as np

    from similia.cli.outputs import positions_of
    from similia.sources.source import Source

    if not isinstance(found, Source):
        return positions_of(found), found.names
    rows, wanted, names = np.arange(len(pairs.groups)), np.unique(pairs.pairs), {}
    for chunk in found.chunks():
        if chunk.names is None:
            return rows, None
        rows[chunk.start : chunk.stop] = positions_of(chunk)
        for i in wanted[slice(*np.searchsorted(wanted, [chunk.start, chunk.stop]))].tolist():
            names[i] = chunk.names[i - chunk.start]
    return rows, names


def _pairs(pairs: Duplicates, value: str, rows: Any, names: Any, column: str | None) -> Iterator[dict[str, Any]]:
    for start in range(0, max(1, len(pairs.pairs)), _WRITTEN):
        sides = dict(zip(("first", "second"), pairs.pairs[start : start + _WRITTEN].T, strict=True))
        columns: dict[str, Any] = {side: rows[some] for side, some in sides.items()}
        columns[value] = pairs.values[start : start + _WRITTEN]
        if column is not None:
            columns |= {f"{side}_{column}": [names[i] for i in some.tolist()] for side, some in sides.items()}
        yield columns


def _groups(pairs: Duplicates, found: Objects | Source, rows: Any, column: str | None) -> Iterator[dict[str, Any]]:
    from similia.cli.outputs import keys_of
    from similia.sources.source import Source

    start = 0
    for part in found.chunks() if isinstance(found, Source) else [found]:
        keys = keys_of(part, column)
        group = rows[pairs.groups[start : start + len(keys["row"])]]
        start += len(group)
        yield keys | {"group": group, "kept": keys["row"] == group}


def _show_examples(pairs: Duplicates, found: Objects | Source, value: str, names: Any) -> None:
    import numpy as np

    from similia.cli.voice import console
    from similia.objects import take
    from similia.sources.source import Source

    shown, values, out = pairs.pairs[:_EXAMPLES], pairs.values[:_EXAMPLES], console(highlight=False)
    rows, strings = np.unique(shown), found.kind == "strings"
    if strings and len(rows):
        objects = found.take(rows) if isinstance(found, Source) else take(found.objects, rows)
    for pair, at in zip(shown.tolist(), values.tolist(), strict=True):
        texts = [f"\n  {_shown(objects[int(np.searchsorted(rows, k))])}" for k in pair] if strings else []
        called = ", ".join(map(str, pair) if names is None else (str(names[k]) for k in pair))
        out.print(f"{called}: {value} {at:.3g}{''.join(texts)}")
    if len(shown) < len(pairs.pairs):
        out.print(f"(the first {len(shown)} of {len(pairs.pairs)} pairs)")


def _shown(text: Any) -> str:
    words = " ".join((text.decode("latin-1") if isinstance(text, bytes) else text).split())
    return words if len(words) <= _LETTERS else words[: _LETTERS - 1] + "…"
