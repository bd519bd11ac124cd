"""``similia neighbours`` writes the graph of the nearest neighbours in a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import Data, Distance, Kernel, Seed, Table, parse_one


def neighbours(
    data: Data,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz file to write.")],
    kernel: Kernel = None,
    distance: Distance = None,
    n_neighbors: Annotated[int, typer.Option("-k", min=1, help="Number of neighbours of each object.")] = 10,
    method: Annotated[
        str,
        typer.Option(
            help="exact: compare all pairs; kmers (for strings) or bits: compare each object with a few hundred "
            "candidates, and measure the recall; auto: exact for up to 10,000 objects."
        ),
    ] = "auto",
    symmetric: Annotated[
        bool,
        typer.Option(
            help="Store each distance in both directions, as UMAP needs it. With --no-symmetric, each row holds "
            "exactly the -k nearest, from which UMAP's precomputed_knn is made. For HDBSCAN, call "
            "similia.search.knn_graph(connected=True) in Python."
        ),
    ] = True,
    seed: Seed = 0,
) -> None:
    """Write the nearest neighbours of each object in a collection, as a sparse matrix of distances.

    In Python, scipy.sparse.load_npz(FILE) reads the matrix. scikit-learn takes it as precomputed distances; row i holds
    the neighbours of object i.

    [bold]similia neighbours reads.csv --text sequence -k 15 -o graph.npz[/bold]

    [bold]similia neighbours heartbeats.ts --distance 'DTW(window=0.1)' -o graph.npz[/bold]
    """
    import scipy.sparse as sp

    from similia.cli.inputs import as_compared, named_comparison, placed_in, read_objects
    from similia.cli.outputs import bars, check_output, print_written, size_of
    from similia.cli.voice import result
    from similia.search import knn_graph
    from similia.storage.disk import replacing

    check_output(output, data)
    if output.suffix.lower() != ".npz":
        raise ValueError(f"graphs are written as .npz; give {output} this ending")
    table = as_compared(data, parse_one(kernel, distance), table)
    read = read_objects(data, labelled=False, **table)
    compared = named_comparison(read, kernel, distance)
    with bars(), placed_in(read):
        graph, recall = knn_graph(
            read.objects, compared, n_neighbors, method=method, symmetric=symmetric, random_state=seed,
            return_recall=True,
        )  # fmt: skip
    with replacing(output) as file:
        sp.save_npz(file, graph)
    size, n = output.stat().st_size, graph.shape[0]
    told = {"output": output, "bytes": size, "objects": n, "neighbours": n_neighbors, "distances": graph.nnz}
    result(told | {"recall": round(recall, 4), "compared_by": str(compared)})
    print_written(output, f" ({size_of(size)}): {n_neighbors} neighbours of each of {n} objects; recall {recall:.3f}")
