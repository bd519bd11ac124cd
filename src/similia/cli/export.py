"""``similia export`` writes a model in C or Verilog, for small devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import DATA_HELP, Model, Seed, Table


def export(
    model: Model,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    to: Annotated[str, typer.Option("--to", help="Language: c or verilog.")] = "c",
    data: Annotated[
        str | None,
        typer.Argument(
            help="Sample of the objects, such as the training data, which decides the rounding of numbers, the letters "
            "and the sizes that the code accepts, and is used for tests. " + DATA_HELP
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Prefix of the file names and of all names in the code.")
    ] = "model",
    max_length: Annotated[
        int | None, typer.Option("--max-length", help="Maximum number of letters, points or nodes of an object.")
    ] = None,
    letters: Annotated[
        str, typer.Option("--letters", help="Letters that strings may contain besides those of DATA.")
    ] = "",
    floats: Annotated[
        bool,
        typer.Option("--float", help="Write C that computes in float32, for a processor with a floating-point unit."),
    ] = False,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            help="Write a smaller model: compare sizes by cross-validation on DATA, the labelled training data, and "
            "fit the most accurate one whose tables take at most this many bytes.",
        ),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            "--max-loss",
            help="Like --max-bytes, but take the smallest model that loses at most this much accuracy, such as 0.01.",
        ),
    ] = None,
    seed: Seed = 0,
    save: Annotated[
        Path | None, typer.Option("--save", help="Also save the smaller model as a file for similia.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Write a model as C99 (in whole numbers or float32), or its core as Verilog.

    The code computes the same labels and codes, bit for bit, as the quantised model in Python (similia.quantise).

    [bold]similia fit splice --kernel 'GappyKmers(k=4)' --landmarks 100 --bits 2000 -o splice.similia[/bold]

    [bold]similia export splice.similia splice --to c --name splice -o splice_c[/bold]

    [bold]similia export splice.similia splice --max-bytes 20000 --name splice -o splice_c[/bold]
    """
    import similia as sm
    from similia.cli.inputs import placed_in, read_labelled, read_objects, with_columns_of
    from similia.cli.outputs import check_model
    from similia.cli.voice import console, note, result
    from similia.devices.files import check_name, check_new

    if output is None:  # -o -
        raise ValueError("-o must name a folder, because a model is several files: it cannot go to standard output")
    if to not in ("c", "verilog"):
        raise ValueError(f"--to must be c or verilog, got {to!r}")
    smaller = _checked(data, max_bytes, max_loss, save)
    if floats and to != "c":
        raise ValueError("--float is only for C; drop --float or --to verilog")
    if floats and smaller:
        raise ValueError(
            f"--float and --{next(iter(smaller)).replace('_', '-')} exclude each other: smaller models are compared in "
            "whole numbers; write one with --save, then export it with --float"
        )
    check_name(name)
    check_new([f"{name}.{'c' if to == 'c' else 'v'}"], output, overwrite)
    check_model(save, data, model)
    fitted = sm.load(model)
    read, y = None, None
    facts: dict[str, Any] = {}
    if data is not None:
        reader = read_labelled if smaller else read_objects
        read = reader(data, **with_columns_of(fitted, data, table, labelled=True))
        y = _labels_like(fitted, read.labels)
    with placed_in(read), _model_named(model):
        if smaller:
            fitted, facts = _smaller(fitted, read, y, smaller, seed)
        write = partial(sm.export_c, numbers="float" if floats else "whole") if to == "c" else sm.export_verilog
        X = None if read is None else read.objects
        small = write(fitted, output, X, name=name, max_length=max_length, letters=letters, overwrite=overwrite)
        loss = None if X is None else small.loss(X, y if small.prototypes else None)
    say = console(highlight=False)
    say.print(f"wrote {output}: {small}")
    if loss is not None:
        facts["loss"] = vars(loss)
        say.print(f"{data}: {loss}")
    if save is not None:
        sm.save(fitted, save)
        say.print(f"wrote {save}")
    if small.hint:
        note(f"note: {small.hint}")
    result({"output": output, "bytes": small.n_bytes, "bits": small.n_bits, "kind": small.input.kind, **facts})


def _checked(data: str | None, max_bytes: int | None, max_loss: float | None, save: Path | None) -> dict[str, Any]:
    """Return the bound of size or loss as {name: bound}, or {} without one; raise if options contradict each other."""
    bounds = {name: bound for name, bound in (("max_bytes", max_bytes), ("max_loss", max_loss)) if bound is not None}
    if len(bounds) == 2:
        raise ValueError("--max-bytes and --max-loss exclude each other: each says which of the smaller models to take")
    if bounds and data is None:
        option = "--" + next(iter(bounds)).replace("_", "-")
        raise ValueError(f"{option} needs labelled objects; give the training data after the model")
    if save is not None and not bounds:
        raise ValueError(
            "--save is for the smaller model of --max-bytes or --max-loss; add one of them, or drop --save"
        )
    return bounds


def _smaller(model: Any, read: Any, y: Any, bound: dict[str, Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """Print the sizes that `similia.devices.compress` tries; return the chosen model, and facts for JSON."""
    import numpy as np

    import similia as sm
    from similia.cli.outputs import bars
    from similia.cli.voice import console
    from similia.core.text import short
    from similia.core.validation import BadFile

    other = np.setdiff1d(y, getattr(model, "classes_", y))
    if len(other):
        known = ", ".join(short(label) for label in model.classes_.tolist()[:5])
        unknown = f"has the label {short(other[0].item())}, but the model knows {known}; give its training data"
        raise BadFile(read.source, unknown)
    say = console(highlight=False)
    say.print(f"trying smaller models on {len(y)} {read.called}, in cross-validation ...")
    with bars():
        found = sm.devices.compress(model, read.objects, y, random_state=seed, **bound)
    say.print(f"{found.table()}; --json has all")
    if hasattr(model, "table_columns_"):
        found.model.table_columns_ = model.table_columns_
    return found.model, {"chosen": vars(found.chosen), "sizes": [vars(size) for size in found.sizes]}


def _labels_like(model: Any, y: Any) -> Any:
    """Return labels in the form in which `similia fit` gave them to the model: fractions that are classes are text."""
    classes = getattr(model, "classes_", None)
    return y if y is None or classes is None or classes.dtype.kind != "U" else y.astype(str)


@contextmanager
def _model_named(path: Path) -> Iterator[None]:
    """Return a context that adds, to errors about the model, its file and the command that makes another one."""
    from similia.core.validation import BadItem

    try:
        yield
    except BadItem as error:
        if error.collection != "model":
            raise
        raise error.changed(path=str(path), parameter="'similia fit' with --kernel") from error
