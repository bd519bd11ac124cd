"""``similia explain`` shows why two objects are similar, or why a model makes a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import Data, Table


def explain(
    model: Annotated[Path, typer.Argument(help="A model, an encoder or the folder of an index.")],
    data: Data,
    table: Table,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--pair",
            metavar="WHICH WHICH",
            help="Explain why two objects are similar; each is given by its name, or by its number from 0.",
        ),
    ] = None,
    one: Annotated[
        str | None,
        typer.Option(
            "--object",
            metavar="WHICH",
            help="Explain the prediction for an object, given by its name, or by its number from 0.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of parts to list.")] = 10,
    labels: Annotated[
        str | None, typer.Option(help="For graphs: names of the node labels, e.g. 0=C,1=N,2=O for atoms.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML page to write. Default: print to the terminal.")
    ] = None,
) -> None:
    """Show why two objects are similar, or why a model predicts a label: by substrings, subgraphs or alignments.

    [bold]similia explain model.similia reads.csv --text sequence --pair 3 17[/bold]

    [bold]similia explain model.similia reads.fasta --object read17[/bold]

    [bold]similia explain model.similia molecules.zip --object 5 --labels 0=C,1=N,2=O[/bold]
    """
    from similia.cli.encoders import load_model
    from similia.cli.inputs import check_kind, comparison_in, read_objects, with_columns_of
    from similia.cli.outputs import check_output, print_written
    from similia.cli.voice import result, voice
    from similia.explanations import explain as explained
    from similia.objects import take
    from similia.planning.forecasts import kind_of
    from similia.storage.disk import write_atomically

    if (pair is None) == (one is None):
        raise ValueError(
            "give either --pair A B, to explain why two objects are similar, or --object A, to explain a prediction"
        )
    check_output(output, data, model)
    names = _label_names(labels)
    if model.is_dir() and pair is None:
        raise ValueError(f"{model} is an index, which predicts nothing; --pair explains why two objects are similar")
    fitted = load_model(model)
    kind = kind_of(comparison_in(fitted))
    read = read_objects(data, labelled=False, **with_columns_of(fitted, data, table, kind=kind))
    check_kind(fitted, read, read.objects)
    objects = [take(read.objects, [_number(which, read)]) for which in pair or [str(one)]]
    found = explained(fitted, *objects, top=top, label_names=names)
    if output is not None:
        page = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>similia</title>{found.to_html()}</html>\n"
        write_atomically(output, page.encode())
        print_written(output)
    elif not voice().json:
        if found.kind == "decision" and hasattr(fitted, "predict"):
            print(f"predicted: {fitted.predict(objects[0])[0]}")
        print(found.to_text(rest_in="the page of -o page.html"))
    result(as_dict(found))


def as_dict(explanation: Any) -> dict[str, Any]:
    amounts = ["value", "residual", "omitted", "n_omitted", "unexplained", "absolute_sum", "listed_share"]
    names = ["title", "kind", *amounts, "note"]
    facts = {name: getattr(explanation, name) for name in names}
    facts["nearest"] = explanation.nearest and as_dict(explanation.nearest)
    left_out = explanation.left_out and explanation.left_out.parts
    for name, parts in (("parts", explanation.parts), ("groups", explanation.groups), ("left_out", left_out or [])):
        facts[name] = [{key: getattr(part, key) for key in ("name", "contribution", "in_x", "in_y")} for part in parts]
    return facts


def _number(which: str, read: Any) -> int:
    """Return the index of the object with the name or the position in the file `which`."""
    from similia.cli.outputs import positions_of
    from similia.core.text import did_you_mean

    rows, known = positions_of(read).tolist(), list(map(str, read.names)) if read.named else []
    if known.count(which) == 1:
        return known.index(which)
    if which in known:
        raise ValueError(f"{read.source} holds {known.count(which)} objects named {which!r}; give a number from 0")
    try:
        number = int(which)
    except ValueError:
        here = f", named {known[0]!r}, ...{did_you_mean(which, known)}" if known else " without names"
        hint = "" if known else "; give a number from 0, or name the column of names with --id"
        holds = f"it holds {len(rows)} {read.called}"
        raise ValueError(f"{read.source} has no object {which!r}: {holds}{here}{hint}") from None
    if number not in rows:
        left_out = "" if len(rows) > rows[-1] else ", without rows that were left out"
        holds = f"holds {len(rows)} {read.called}, numbered from 0 to {rows[-1]}{left_out}"
        raise ValueError(f"{read.source} {holds}; there is no number {number}")
    return int(rows.index(number))


def _label_names(labels: str | None) -> dict[int, str] | None:
    if labels is None:
        return None
    try:
        return {int(number): name for number, name in (item.split("=", 1) for item in labels.split(","))}
    except ValueError:
        raise ValueError(f"--labels must be like 0=C,1=N,2=O (label=name), got {labels!r}") from None
