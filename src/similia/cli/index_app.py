"""The commands of ``similia index`` and their help; the work is in the module `search` beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

from similia.cli.options import (
    Bits,
    Chunk,
    Cluster,
    CsvOut,
    Data,
    Distance,
    Folder,
    Kernel,
    Landmarks,
    Memory,
    Scheduler,
    Seed,
    Table,
    working,
)
from similia.cli.voice import command

index = typer.Typer(help="Search by similarity: build an index on disk, add to it, search it.", no_args_is_help=True)


@command(index, "build")
def index_build(
    data: Data,
    table: Table,
    folder: Folder,
    kernel: Kernel = None,
    distance: Distance = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            help="What sorts the candidates: 'kernel' (the kernel or distance that makes the bits), another kernel or "
            "distance such as 'Levenshtein()', 'projected' (the cosine of the vectors that the bits are made of) or "
            "'none' (the Hamming distance of the bits). Default: the --kernel or --distance that you name; if you name "
            "none, 'Levenshtein()' for strings, 'projected' for vectors, 'kernel' for all else."
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="exact, ivf, hnsw or multihash.")] = "exact",
    bits: Bits = 256,
    landmarks: Landmarks = 256,
    candidates: Annotated[
        int, typer.Option(min=1, help="Number of nearest codes that are compared again by --rerank.")
    ] = 100,
    seed: Seed = 0,
    chunk: Chunk = 10_000,
    max_memory: Memory = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
) -> None:
    """Make an index of objects. Interrupted runs resume when the command is repeated.

    [bold]similia index build proteins.fasta proteins.index[/bold]

    [bold]similia index build proteins.csv proteins.index --text sequence --id accession[/bold]

    [bold]similia index build NCI1 molecules.index --kernel 'WeisfeilerLehman(n_iter=5)'[/bold]
    """
    from similia.cli.search import build_index

    with working(max_memory, cluster, scheduler) as workers:
        build_index(
            data,
            folder,
            kernel=kernel,
            distance=distance,
            rerank=rerank,
            kind=kind,
            bits=bits,
            landmarks=landmarks,
            candidates=candidates,
            seed=seed,
            chunk=chunk,
            workers=workers,
            **table,
        )


@command(index, "add")
def index_add(
    data: Data,
    table: Table,
    folder: Folder,
    again: Annotated[bool, typer.Option("--again", help="Add a file again that was added before.")] = False,
    chunk: Chunk = 10_000,
    max_memory: Memory = None,
    cluster: Cluster = None,
    scheduler: Scheduler = None,
) -> None:
    """Add objects to an index. Interrupted runs resume when the command is repeated.

    similia recognises a file by its content, not by its name, and adds it only once. If you change a file,
    even by one object, it counts as a new file, and all of its objects are added. So does the same table when you read
    its objects from another column (such as --text); other names (--id) make no new file.
    """
    from similia.cli.search import add_to_index

    with working(max_memory, cluster, scheduler) as workers:
        add_to_index(data, folder, again=again, chunk=chunk, workers=workers, **table)


@command(index, "remove")
def index_remove(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="Ids of objects, or their names if they have names.")],
    by: Annotated[str | None, typer.Option(help="id or name: how to read a number that could be either.")] = None,
) -> None:
    """Remove objects from an index by their ids or names.

    [bold]similia index remove proteins.index 17 P53_HUMAN[/bold]
    """
    from similia.cli.search import remove_from_index

    remove_from_index(folder, ids, by)


@command(index, "search")
def index_search(
    folder: Folder,
    queries: Data,
    table: Table,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each query.")] = 10,
    candidates: Annotated[
        int | None,
        typer.Option(min=1, help="Number of nearest codes that are compared again; as built if not given."),
    ] = None,
    output: CsvOut = None,
) -> None:
    """Find the objects most similar to each query.

    [bold]similia index search proteins.index queries.fasta -k 5[/bold]
    """
    from similia.cli.search import search_index

    search_index(queries, folder, output, k=k, candidates=candidates, **table)


@command(index, "info")
def index_info(folder: Folder) -> None:
    """Show what an index holds and what was added to it."""
    from similia.cli.search import show_info

    show_info(folder)
