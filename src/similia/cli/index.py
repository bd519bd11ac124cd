"""``similia index`` builds and searches an index on disk; interrupted runs resume."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any

import typer

from similia.cli.options import (
    Chunk,
    CsvOut,
    Data,
    Distance,
    Folder,
    Kernel,
    Landmarks,
    Page,
    Seed,
    Table,
    Title,
    Workers,
    parse_one,
)
from similia.cli.voice import command

index = typer.Typer(help="Search by similarity: build an index on disk, add to it, search it.", no_args_is_help=True)


@command(index, "build")
def build(
    data: Data,
    table: Table,
    folder: Folder,
    kernel: Kernel = None,
    distance: Distance = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            help="How to sort the candidates of --by: by 'kernel' (the kernel or distance that makes the bits), "
            "another kernel or distance such as 'Levenshtein()', 'projected' (the cosine of the vectors from which the "
            "bits are made) or 'none' (the number of different bits). Default: the given --kernel or --distance; "
            "without one, 'Levenshtein()' for strings, 'projected' for vectors, else 'kernel'."
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="How to find the candidates: by 'bits'; by 'features', with an inverted index of the features of "
            "--kernel (default for strings: substrings); by 'vectors', each number of which is kept in a "
            "few bits; or 'auto': the best of these on a sample of the objects."
        ),
    ] = "bits",
    kind: Annotated[
        str,
        typer.Option(
            help="How bits are searched: exact compares all; ivf and multihash compare some, and may miss neighbours."
        ),
    ] = "exact",
    bits: Annotated[
        int | None,
        typer.Option(
            help="Number of bits of a code, a multiple of 8 (default: 256); with --by vectors, bits per number of a "
            "vector: 1, 2, 4 or 8 (default: 4)."
        ),
    ] = None,
    landmarks: Landmarks = 256,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of candidates that --rerank sorts. Default: 100; for up to 20,000 objects, the number, "
            "at most 2000, that finds 90 % of the nearest neighbours.",
        ),
    ] = None,
    seed: Seed = 0,
    chunk: Chunk = 10_000,
    workers: Workers = None,
) -> None:
    """Build an index of objects. Interrupted runs resume when the command is repeated.

    [bold]similia index build proteins.fasta proteins.index[/bold]

    [bold]similia index build proteins.csv proteins.index --text sequence --id accession[/bold]

    [bold]similia index build NCI1 molecules.index --kernel 'WeisfeilerLehman(n_iter=5)'[/bold]
    """
    from similia.cli import encoders
    from similia.cli.encoders import default_rerank
    from similia.cli.inputs import as_compared, open_objects
    from similia.cli.voice import as_typed
    from similia.search.on_disk import SearchFolder, is_search

    table = as_compared(data, parse_one(kernel, distance), table)
    if not folder.parent.is_dir():
        raise ValueError(f"the folder {folder.parent} does not exist; make it first")
    bits = encoders.check_way(by, kind, bits)
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    key, n = stream.fingerprint(), stream.n
    sort = default_rerank(stream, kernel, distance) if rerank is None else rerank
    sort = distance if distance and sort == "kernel" else sort
    made_by: dict[str, Any] = {"kernel": kernel, "distance": distance, "bits": bits}
    made_by |= {"landmarks": landmarks, "seed": seed}
    asked = {"kind": stream.kind, "rerank": sort, "index": kind, "candidates": candidates, "key": key, **made_by}
    asked |= {} if by == "bits" else {"by": by}
    asked |= {} if table.get("names") is None else {"id": table["names"]}
    if is_search(folder):
        opened = SearchFolder.open(folder)
        meta = {name: value for name, value in opened.store.meta.items() if name not in ("encoder", "recall")}
        asked |= {} if candidates else {"candidates": meta.get("candidates")}
        if meta != asked:
            raise encoders.not_the_same(opened, as_typed(data), key)
        n = opened.store.progress.get(key, {"n": n})["n"]
    else:
        n = encoders.create(folder, stream, data, table, asked, made_by)
    once_more = f"to add its objects again: similia index add --again {as_typed(data)} {folder}"
    encoders.add(SearchFolder.open(folder), stream, key, n, once_more, workers=workers)


@command(index, "add")
def add(
    data: Data,
    table: Table,
    folder: Folder,
    again: Annotated[bool, typer.Option("--again", help="Add the objects even if the file was added before.")] = False,
    chunk: Chunk = 10_000,
    workers: Workers = None,
) -> None:
    """Add objects to an index. Interrupted runs resume when the command is repeated.

    A file is recognised by its content, not by its name, and is added only once. A file that was changed, even by one
    object, counts as a new file: all of its objects are added. A table also counts as a new file if its objects are
    read from another column (--text), but not if only their names are read from another one (--id). Unless options name
    other columns, the objects of a table are read from the column that was used when the index was built.
    """
    from similia.cli import encoders
    from similia.cli.inputs import has_columns, open_objects
    from similia.search.on_disk import SearchFolder

    opened = SearchFolder.open(folder)
    built_with = opened.store.meta.get("id")
    if table.get("names") is None and built_with is not None and has_columns(data, **table):
        table = table | {"names": built_with}
    table = encoders.with_columns_of_index(opened, data, table)
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    encoders.check_kind(stream, opened)
    key = stream.fingerprint()
    encoders.note_unfinished(opened, but=key)
    n = opened.store.progress.get(key, {"n": stream.n})["n"]
    once_more = f"--again adds its {n} {stream.called} again"
    encoders.add(opened, stream, key, n, once_more, again=again, workers=workers)


@command(index, "remove")
def remove(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="Ids of objects, or their names.")],
    by: Annotated[
        str | None, typer.Option(help="id or name: how to read a number that is both an id and a name.")
    ] = None,
) -> None:
    """Remove objects from an index by their ids or names.

    [bold]similia index remove proteins.index 17 P53_HUMAN[/bold]
    """
    import numpy as np

    from similia.cli.voice import console, note, result
    from similia.search.on_disk import SearchFolder

    if by not in (None, "id", "name"):
        raise ValueError(f"--by must be id or name, got {by}")
    opened = SearchFolder.open(folder)
    search, names = opened.load_named(mmap=True)
    there, named_so = set(search.ids_.tolist()), defaultdict[str, set[int]](set)
    for i, name in names.items():
        if i in there:
            named_so[name].add(i)
    wanted: set[int] = set()
    for text in ids:
        named = named_so[text] if by != "id" else set()
        own = {int(text)} & there if text.isdecimal() and by != "name" else set()
        if not named | own:
            raise ValueError(f"{folder} holds no object with the {by or 'id or name'} {text}; nothing was removed")
        if named and own - named:
            raise ValueError(
                f"{text} is the id of one object and the name of another, whose id is {min(named)}; nothing was "
                "removed; choose with --by id or --by name"
            )
        wanted |= named | own
    opened.remove(np.array(sorted(wanted)))
    if len(wanted) > len(set(ids)):
        text = next(text for text in ids if by != "id" and len(named_so[text]) > 1)
        note(
            f"note: some names are those of several objects, such as {text} of {len(named_so[text])}; all were removed"
        )
    console().print(f"removed {len(wanted)}; {folder}: {len(opened)} objects")
    result({"folder": folder, "removed": sorted(wanted), "objects": len(opened)})


@command(index, "search")
def search(
    folder: Folder,
    queries: Data,
    table: Table,
    k: Annotated[
        int, typer.Option("-k", min=1, help="Number of neighbours of each query; all objects if there are fewer.")
    ] = 10,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of candidates to sort; more candidates raise the recall. Default: set when building."
        ),
    ] = None,
    output: CsvOut = None,
) -> None:
    """Find the objects most similar to each query.

    [bold]similia index search proteins.index queries.fasta -k 5[/bold]
    """
    from similia.cli import encoders
    from similia.cli.outputs import check_output, print_written, write_csv
    from similia.cli.voice import note, result

    check_output(output, queries)
    opened, read = encoders.with_queries(folder, queries, table)
    loaded, called = opened.load_named(mmap=True)
    if k > len(loaded):
        note(f"note: the index holds only {len(loaded)} objects, fewer than -k {k}; all are listed")
        k = len(loaded)
    candidates = candidates or loaded.n_candidates
    if k > candidates and loaded.rerank is not None:
        note(f"note: {k} candidates are compared instead of {candidates}, because -k is {k}")
    encoders.note_recall(opened, candidates)
    loaded.set_params(n_candidates=max(k, candidates))
    distances, ids, seconds = encoders.timed_neighbours(loaded, read, k)
    rows = [
        {"query": query, "rank": rank, "id": i} | ({"name": called.get(i, "")} if called else {}) | {"distance": value}
        for query, found, values in zip(read.names or range(len(ids)), ids.tolist(), distances.tolist(), strict=True)
        for rank, (i, value) in enumerate(zip(found, values, strict=True), start=1)
    ]
    write_csv(rows, "distance", output)
    if output is not None:
        print_written(output, f": {len(rows)} neighbours")
    each = 1000 * seconds / len(ids)
    result({"query_milliseconds": each, "objects": len(loaded), "neighbours": rows})
    note(f"{each:.2f} ms per query, for {len(ids)} queries among {len(loaded)} objects, without start-up")


@command(index, "report")
def report(
    folder: Folder,
    queries: Data,
    table: Table,
    output: Page,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of neighbours whose recall is measured.")] = 10,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Maximum number of queries; if there are more, a random sample.")
    ] = 200,
    title: Title = None,
    seed: Seed = 0,
) -> None:
    """Write a page about a search: recall and time for several numbers of candidates, and what queries find.

    Each query is compared with all objects of the index, to know its true neighbours. Give queries that the index does
    not hold: an object that it holds finds itself.

    [bold]similia index report proteins.index queries.fasta -o search.html[/bold]
    """
    from similia.cli import encoders
    from similia.cli.outputs import bars, check_page, print_written, size_of
    from similia.cli.voice import console, note, result
    from similia.report.search_page import write_with_recall

    check_page(output, queries, folder)
    opened, read = encoders.with_queries(folder, queries, table)
    loaded, called = opened.load_named(mmap=True)
    if loaded.rerank is None:
        remedy = "build one with another --rerank"
        raise ValueError(f"{folder} keeps no objects (--rerank none), so true neighbours are not known; {remedy}")
    if k > len(loaded):
        note(f"note: the index holds only {len(loaded)} objects, fewer than -k {k}; the recall is that of all")
        k = len(loaded)
    with bars():
        found = write_with_recall(
            loaded, read.objects, output, n_neighbors=k, names=read.names, object_names=called, max_queries=most,
            title=title or f"Search of {folder.name}", random_state=seed,
        )[1]  # fmt: skip
    size, asked = output.stat().st_size, min(most, len(read.objects))
    told = [{"n_candidates": c, **one._asdict()} for c, one in found.items()]
    result({"output": output, "bytes": size, "queries": asked, "objects": len(loaded), "recall": told})
    for c, one in found.items():
        much = f"recall {100 * one.recall:.1f} %, {1000 * one.seconds:.3g} ms for a query"
        console(highlight=False).print(f"{c} candidates: {much}; all compared: {1000 * one.brute_force_seconds:.3g} ms")
    print_written(output, f" ({size_of(size)})", output)


@command(index, "info")
def info(folder: Folder) -> None:
    """Show the settings of an index, and the files that were added to it."""
    from rich.table import Table as Grid

    from similia.cli import encoders
    from similia.cli.voice import console, result
    from similia.core.text import listed
    from similia.scale.stream import of
    from similia.search.on_disk import SearchFolder
    from similia.sources.streams import known_columns

    opened = SearchFolder.open(folder)
    store, meta = opened.store, encoders.settings_of(opened)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    facts: dict[str, Any] = {"objects": f"{len(opened)} {meta['kind']}".removesuffix(" objects")}
    facts |= {"bits": store.n_bits} if hasattr(opened.search.encoder_, "transform") else {}
    facts |= {name: meta[name] for name in ("encoder", "rerank", "candidates", "index", "id", "seed") if name in meta}
    known = known_columns(opened.search.encoder_)
    facts |= {name: known[name] for name in ("text", "smiles", "time", "values") if name in known}
    told = {"recall": meta["recall"]} if "recall" in meta else {}
    sources = [{name: source[name] for name in ("name", "done", "n", "times")} for source in store.progress.values()]
    result({**facts, **told, "objects": len(opened), "kind": meta["kind"], "bytes": size, "sources": sources})
    grid = Grid(title=str(folder), title_justify="left", show_header=False)
    if "values" in facts:
        facts["values"] = listed(facts["values"])
    for name, value in {**facts, "size on disk": f"{size / 1e6:.1f} MB"}.items():
        grid.add_row(name, str(value))
    if recall := encoders.recall_line(opened):
        grid.add_row("recall", recall)
    for line in encoders.curves(opened.search):
        grid.add_row("recall at candidates", line)
    for source in sources:
        times = f", {source['times']} times" if source["times"] > 1 else ""
        state = "" if source["done"] == source["n"] else " (not finished: run the same command again)"
        grid.add_row("added", f"{of(source['done'], source['n'])}{times}{state}\nfrom {source['name']}")
    console().print(grid)
