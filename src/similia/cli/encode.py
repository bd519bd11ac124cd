"""``similia encode`` writes the packed codes of files; interrupted runs resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import Chunk, Data, Distance, Kernel, Table, Workers, check_bits, first_given, parse_one

_DEFAULTS = {"bits": 256, "landmarks": 256, "seed": 0}


def encode(
    data: Data,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .npy file to write, with one row of packed bits per object.")
    ],
    model: Annotated[
        Path | None,
        typer.Option(help="An encoder, a model of 'similia fit', or an index. Default: fit an encoder to the data."),
    ] = None,
    kernel: Kernel = None,
    distance: Distance = None,
    bits: Annotated[
        int | None, typer.Option(help="Without --model: number of bits of a code; a multiple of 8. Default: 256.")
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Without --model: number of landmarks, the objects with which each object is compared. Default: 256.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Without --model: seed of the random numbers. Default: 0.")] = None,
    chunk: Chunk = 10_000,
    workers: Workers = None,
) -> None:
    """Encode objects as packed bits. Interrupted runs resume when the command is repeated.

    [bold]similia encode reads.fasta -o reads.npy[/bold]

    [bold]similia encode more.fasta -o more.npy --model reads.encoder.similia[/bold]
    """
    from similia.cli import encoders
    from similia.cli.inputs import as_compared, open_objects, with_columns_of
    from similia.cli.outputs import Spoken, meters, stoppable
    from similia.cli.voice import console, result, written
    from similia.scale.stream import Rows, partial_of, write_journal
    from similia.storage.disk import Journal

    encoder_path = output.with_suffix(".encoder.similia")
    options: dict[str, Any] = {"kernel": kernel, "distance": distance, "bits": bits}
    options |= {"landmarks": landmarks, "seed": seed}
    _check_arguments(data, output, encoder_path, model, options)
    encoder, progress, say = None, Spoken(), console().print
    if model is not None:
        fitted = encoders.load_model(model)
        encoder, table = encoders.encoder_of(fitted), with_columns_of(fitted, data, table)
    else:
        table = as_compared(data, parse_one(kernel, distance), table)
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    if model is not None:
        encoders.check_encoder(encoder, model, stream)
    n = stream.n
    with Journal(partial_of(output)) as journal:
        if model is None:
            begun = encoders.of_interrupted_run(journal, stream, encoder_path, options)
            n, encoder = begun or encoders.fit_encoder(stream, encoder_path, options, data, table)
        form = Rows(encoder, packed=True)
        with stoppable(lambda: progress.done, n), meters():
            how: dict[str, Any] = {"workers": workers, "progress": progress, "n": n, "facts": {"options": options}}
            write_journal(journal, form, stream, output, **how)
    say(f"wrote {progress.done} codes of {form.n_bits} bits to {written(output)}")
    result({"codes": progress.done, "bits": form.n_bits, "output": output, "encoder": model or encoder_path})
    if model is None:
        say(f"wrote the encoder to {encoder_path}; other data: similia encode DATA --model {encoder_path}")


def _check_arguments(data: str, output: Path, encoder_path: Path, model: Path | None, options: dict[str, Any]) -> None:
    """Raise if paths or options are wrong; without a model, fill in the defaults of `options`."""
    from similia.cli.outputs import check_output
    from similia.cli.voice import voice

    if output.suffix != ".npy":
        raise ValueError(f"codes are written as .npy; give {output} this ending")
    if model is None and voice().piped:
        raise ValueError(
            "with -o - there is no folder to write the fitted encoder to; give an encoder with --model, or name a file"
        )
    for path in [output] if model is not None else [output, encoder_path]:
        check_output(path, data, model)
    if model is None:
        options |= {name: value for name, value in _DEFAULTS.items() if options[name] is None}
        parse_one(options["kernel"], options["distance"])
        check_bits(options["bits"])
    elif name := first_given(options):
        raise ValueError(f"--{name} is for fitting an encoder, and {model} is fitted; drop --{name} or --model")
