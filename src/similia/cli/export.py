"""``similia export`` writes a model in C or Verilog, for small devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from similia.cli.options import DATA_HELP, Model, Table


def export(
    model: Model,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    to: Annotated[str, typer.Option("--to", help="c or verilog.")] = "c",
    data: Annotated[
        str | None,
        typer.Argument(help=f"Objects such as those of training: units, letters, sizes, tests. {DATA_HELP}"),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Beginning of the files and of all names in them.")] = "model",
    max_length: Annotated[
        int | None, typer.Option("--max-length", help="Most letters, points or nodes of an object.")
    ] = None,
    letters: Annotated[str, typer.Option("--letters", help="Further letters that strings may hold.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Write a model in whole numbers as C99, or its core as Verilog; labels and codes equal those of Python.

    [bold]similia fit splice --kernel 'GappyKmers(k=4)' --landmarks 100 --bits 2000 -o splice.similia[/bold]

    [bold]similia export splice.similia splice --to c --name splice -o splice_c[/bold]
    """
    import similia as sm
    from similia.cli.inputs import read_objects
    from similia.cli.model_data import with_columns_of
    from similia.cli.voice import console, result

    if to not in ("c", "verilog"):
        raise ValueError(f"--to must be c or verilog, got {to!r}")
    write = sm.export_c if to == "c" else sm.export_verilog
    fitted = sm.load(model)
    read = None
    if data is not None:
        read = read_objects(data, labelled=False, **with_columns_of(fitted, data, table, labelled=True))
    X = None if read is None else read.objects
    small = write(fitted, output, X, name=name, max_length=max_length, letters=letters, overwrite=overwrite)
    loss = None if X is None else small.loss(X, read.labels if read is not None and small.prototypes else None)
    console(highlight=False).print(f"wrote {output}: {small}", markup=False)
    if loss is not None:
        console(highlight=False).print(f"{data}: {loss}", markup=False)
    facts = {"output": output, "bytes": small.n_bytes, "bits": small.n_bits, "kind": small.input.kind}
    result(facts | ({} if loss is None else {"loss": vars(loss)}))
