"""Commands and their help; the work is in the modules beside this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from similia._version import __version__

app = typer.Typer(
    name="similia",
    help="Similarity in; vectors, packed bits, classifiers and search out. Start with: [bold]similia demo[/bold]",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
index = typer.Typer(help="Search by similarity: build an index on disk, add to it, search it.", no_args_is_help=True)
app.add_typer(index, name="index")

_KERNEL_HELP = "A kernel of similia.kernels with its parameters, e.g. 'GappyKmers(k=4, gaps=1)'."
_DISTANCE_HELP = "A distance of similia.distances instead of a kernel, e.g. 'DTW(window=0.1)'."
_DATA_HELP = (
    "CSV, TSV or Parquet; FASTA or FASTQ; a TUDataset folder or zip; series as .ts; vectors as .npy; "
    "or a name such as 'splice' or 'NCI1'."
)


_Bits = Annotated[int, typer.Option(help="Bits of a code, a multiple of 8.")]
_Landmarks = Annotated[int, typer.Option(min=1, help="Landmarks of a kernel, or of a distance.")]
_Text = Annotated[str, typer.Option(help="Column with the strings.")]
_Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
_Chunk = Annotated[int, typer.Option(min=1, help="Objects worked on and committed together, at most.")]
_Memory = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--max-memory", help="Working memory, e.g. 512MiB, to which chunks are cut; results stay the same."),
]
_Cluster = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--cluster", help="local or local:N: work in N processes of this machine (needs similia\\[dask])."),
]
_Scheduler = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--scheduler", help="Address of a Dask scheduler whose workers do the work, e.g. tcp://10.0.0.1:8786."
    ),
]
_Kernel = Annotated[Optional[str], typer.Option(help=_KERNEL_HELP)]  # noqa: UP045
_Distance = Annotated[Optional[str], typer.Option(help=_DISTANCE_HELP)]  # noqa: UP045
_Folder = Annotated[Path, typer.Argument(help="Folder of the index.")]


@contextmanager
def _asked(max_memory: str | None, cluster: str | None, scheduler: str | None) -> Iterator[Any]:
    """Hold the working memory that was asked for, and yield the workers."""
    from similia._config import config
    from similia.cli.inputs import parse_workers

    with config(max_memory=max_memory):
        yield parse_workers(cluster, scheduler)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"similia {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0) -> None:
    """Classify real DNA with hypervectors made from a kernel.

    Trains on the two bundled sets (promoters, splice junctions) and shows accuracy, size and what
    happens when bits of the codes flip.
    """
    from similia.cli.demo import run

    run(seed)


@app.command()
def fit(
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    kernel: Annotated[Optional[str], typer.Option(help=_KERNEL_HELP)] = None,  # noqa: UP045
    distance: Annotated[Optional[str], typer.Option(help=_DISTANCE_HELP)] = None,  # noqa: UP045
    text: Annotated[str, typer.Option(help="Column with the strings.")] = "text",
    label: Annotated[str, typer.Option(help="Column (or FASTA header field, as label=...) with the labels.")] = "label",
    bits: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="With a kernel: bits of a code, a multiple of 8; 10000 if not given."),
    ] = None,
    landmarks: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="With a kernel: number of landmarks; by the paper's rule if not given."),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Share held out to measure accuracy before the final fit; 0 for none.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Train NysHD (with a kernel) or D2KE (with a distance) on labelled data and write the model.

    [bold]similia fit reads.csv --text sequence --label species -o model.similia[/bold]

    [bold]similia fit MUTAG.zip --kernel 'WeisfeilerLehman(n_iter=3)' -o mutag.similia[/bold]

    [bold]similia fit GunPoint_TRAIN.ts --distance 'DTW(window=0.1)' -o gunpoint.similia[/bold]
    """
    from similia.cli.models import fit_model

    fit_model(
        data,
        output,
        kernel=kernel,
        distance=distance,
        text=text,
        label=label,
        n_bits=bits,
        n_landmarks=landmarks,
        test_share=test,
        seed=seed,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that 'similia fit' wrote.")],
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV to write; the terminal if not given.")
    ] = None,
    text: _Text = "text",
    chunk: _Chunk = 10_000,
    max_memory: _Memory = None,
    cluster: _Cluster = None,
    scheduler: _Scheduler = None,
) -> None:
    """Predict labels of new data with a model. Killed and run again, it goes on where it was.

    [bold]similia predict model.similia new.csv --text sequence -o predictions.csv[/bold]
    """
    from similia.cli.models import predict_with_model

    with _asked(max_memory, cluster, scheduler) as workers:
        predict_with_model(model, data, output, text=text, chunk=chunk, workers=workers)


@app.command()
def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help="Name of the experiment; without it, they are listed.")
    ] = None,
    only: Annotated[Optional[list[str]], typer.Option(help="Only this data set (repeat for several).")] = None,  # noqa: UP045
    seeds: Annotated[int, typer.Option(help="Seeds (and stratified splits); the paper used 10.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for Markdown, CSV and pictures, e.g. docs.")
    ] = None,
) -> None:
    """Run a published experiment and print our mean ± sd beside the paper's number.

    [bold]similia reproduce nyshd-graphs --only MUTAG[/bold]

    [bold]similia reproduce nyshd-strings --output docs[/bold]
    """
    from similia._config import config
    from similia.experiments import EXPERIMENTS, run

    if experiment is None:
        for name, summary in EXPERIMENTS.items():
            typer.echo(f"{name:20} {summary}")
        return
    with config(progress=True):
        section = run(experiment, only=only, seeds=seeds)
    for table in section.tables:
        table.print()
    if output is not None:
        typer.echo(f"wrote {section.write(output)}")


@app.command()
def encode(
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .npy file to write, a row of packed bits an object.")
    ],
    model: Annotated[
        Path | None, typer.Option(help="An encoder, a model of 'similia fit' or an index; if not given, one is fitted.")
    ] = None,
    kernel: _Kernel = None,
    distance: _Distance = None,
    bits: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Without a model: bits of a code, a multiple of 8; 256 if not given."),
    ] = None,
    landmarks: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Without a model: landmarks of a kernel, or of a distance; 256 if not given."),
    ] = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Without a model: seed of everything random; 0 if not given."),
    ] = None,
    text: _Text = "text",
    chunk: _Chunk = 10_000,
    max_memory: _Memory = None,
    cluster: _Cluster = None,
    scheduler: _Scheduler = None,
) -> None:
    """Make packed bits of objects. Killed and run again, it goes on where it was.

    [bold]similia encode reads.fasta -o reads.npy[/bold]

    [bold]similia encode more.fasta -o more.npy --model reads.encoder.similia[/bold]
    """
    from similia.cli.encode import encode as run

    with _asked(max_memory, cluster, scheduler) as workers:
        run(
            data,
            output,
            model=model,
            kernel=kernel,
            distance=distance,
            bits=bits,
            landmarks=landmarks,
            text=text,
            seed=seed,
            chunk=chunk,
            workers=workers,
        )


@index.command("build")
def index_build(
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    folder: _Folder,
    kernel: _Kernel = None,
    distance: _Distance = None,
    rerank: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="How candidates are sorted: by the 'kernel' (or distance) of the encoder, another one such as "
            "'Levenshtein()', 'projected' (cosine of the vectors before they are bits) or 'none' (bits alone)."
        ),
    ] = None,
    kind: Annotated[str, typer.Option(help="exact, ivf, hnsw or multihash.")] = "exact",
    bits: _Bits = 256,
    landmarks: _Landmarks = 256,
    candidates: Annotated[int, typer.Option(min=1, help="Nearest codes that are sorted once more.")] = 100,
    text: _Text = "text",
    seed: _Seed = 0,
    chunk: _Chunk = 10_000,
    max_memory: _Memory = None,
    cluster: _Cluster = None,
    scheduler: _Scheduler = None,
) -> None:
    """Make an index of objects. Killed and run again, it goes on where it was.

    [bold]similia index build proteins.fasta proteins.index[/bold]

    [bold]similia index build NCI1 molecules.index --kernel 'WeisfeilerLehman(n_iter=5)'[/bold]
    """
    from similia.cli.search import build_index

    with _asked(max_memory, cluster, scheduler) as workers:
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
            text=text,
            seed=seed,
            chunk=chunk,
            workers=workers,
        )


@index.command("add")
def index_add(
    data: Annotated[str, typer.Argument(help=_DATA_HELP)],
    folder: _Folder,
    again: Annotated[bool, typer.Option("--again", help="Add a file once more that was added already.")] = False,
    text: _Text = "text",
    chunk: _Chunk = 10_000,
    max_memory: _Memory = None,
    cluster: _Cluster = None,
    scheduler: _Scheduler = None,
) -> None:
    """Add objects to an index. Killed and run again, it goes on where it was.

    A file is added once, whatever its name: what was added before is known by the content of the whole file, so that
    a file with one object more is another one, all of whose objects are added.
    """
    from similia.cli.search import add_to_index

    with _asked(max_memory, cluster, scheduler) as workers:
        add_to_index(data, folder, text=text, again=again, chunk=chunk, workers=workers)


@index.command("remove")
def index_remove(
    folder: _Folder,
    ids: Annotated[list[str], typer.Argument(help="Ids of objects, or their names where they have some.")],
) -> None:
    """Remove objects from an index by their ids or names.

    [bold]similia index remove proteins.index 17 P53_HUMAN[/bold]
    """
    from similia.cli.search import remove_from_index

    remove_from_index(folder, ids)


@index.command("search")
def index_search(
    folder: _Folder,
    queries: Annotated[str, typer.Argument(help=_DATA_HELP)],
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each query.")] = 10,
    candidates: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Nearest codes that are sorted once more; as built if not given."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV to write; the terminal if not given.")
    ] = None,
    text: _Text = "text",
) -> None:
    """Find the objects most like each query.

    [bold]similia index search proteins.index queries.fasta -k 5[/bold]
    """
    from similia.cli.search import search_index

    search_index(queries, folder, output, k=k, candidates=candidates, text=text)


@index.command("info")
def index_info(folder: _Folder) -> None:
    """Show what an index holds and what was added to it."""
    from similia.cli.search import show_info

    show_info(folder)


@app.command()
def plan(
    objects: Annotated[Optional[float], typer.Option(help="Number of objects, e.g. 1e9.")] = None,  # noqa: UP045
    length: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Their mean length: letters, nodes of a graph, points of a series or set, or numbers."),
    ] = None,
    data: Annotated[Optional[str], typer.Option(help="Instead, a sample of these: " + _DATA_HELP)] = None,  # noqa: UP045
    kernel: _Kernel = None,
    distance: _Distance = None,
    landmarks: _Landmarks = 300,
    random: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="With a distance: random objects, instead of landmarks."),
    ] = None,
    bits: _Bits = 1024,
    cores: Annotated[Optional[int], typer.Option(min=1, help="All of this machine if not given.")] = None,  # noqa: UP045
    kind: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="strings, graphs, series, sets or vectors, where the kernel or distance leaves it open."),
    ] = None,
    edges: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Mean edges of a graph; as many as nodes if not given."),
    ] = None,
    letters: Annotated[int, typer.Option(min=1, help="Different letters of strings, or labels of nodes.")] = 4,
    channels: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Numbers of a point of a series (1 if not given) or set (2)."),
    ] = None,
    text: _Text = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what bits of many objects will cost: kernel values, operations, bytes, hours. Takes 5 to 20 seconds.

    [bold]similia plan --objects 1e9 --length 100 --kernel 'GappyKmers(k=4, gaps=1)' --cores 64[/bold]

    [bold]similia plan --data reads.fasta --distance 'Levenshtein()' --random 1024[/bold]
    """
    from similia.cli.plan import show_plan

    show_plan(
        objects=objects,
        length=length,
        data=data,
        text=text,
        kernel=kernel,
        distance=distance,
        as_json=as_json,
        landmarks=landmarks,
        random=random,
        bits=bits,
        cores=cores,
        kind=kind,
        edges=edges,
        letters=letters,
        channels=channels,
    )
