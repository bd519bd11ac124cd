"""``similia duplicates`` lists the pairs of near-duplicates in a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from similia.cli.options import Data, Distance, Kernel, Seed, Table

_DEFAULT = {"strings": "MinMax(Spectrum(5))", "graphs": "MinMax(WeisfeilerLehman(details=False))"}
_THRESHOLD = 0.7  # of kernels
_EXAMPLES, _LETTERS = 3, 70  # pairs shown, and letters of each


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
        bool, typer.Option("--relative", help="Threshold of Levenshtein as a share of the longer string.")
    ] = False,
    groups: Annotated[
        Path | None, typer.Option(help="Also write the group of each object, and whether it is kept (.csv, .parquet).")
    ] = None,
    method: Annotated[str, typer.Option(help="auto, exact (all pairs), hashes or neighbours.")] = "auto",
    recall: Annotated[float, typer.Option(help="Share of pairs at the threshold that hashes should find.")] = 0.98,
    seed: Seed = 0,
) -> None:
    """List pairs of near-duplicates, and groups with one kept of each. Texts are compared by shingles of 5 letters.

    [bold]similia duplicates messages.csv --text message -o pairs.csv --groups groups.csv[/bold]

    [bold]similia duplicates reads.fasta --distance 'Levenshtein()' --relative --threshold 0.1 -o pairs.parquet[/bold]
    """
    import numpy as np

    from similia.cli.inputs import read_objects
    from similia.cli.model_data import check_comparison, placed_in
    from similia.cli.outputs import bars, check_table, write_table
    from similia.cli.specs import parse_distance, parse_kernel
    from similia.cli.voice import console, note, result, written
    from similia.search import near_duplicates

    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: each says how objects are compared")
    if distance and threshold is None:
        raise ValueError("name the largest distance of near-duplicates: --threshold 3, or --relative --threshold 0.1")
    for target in (output, groups):
        if target is not None:
            check_table(target, data)
    found = read_objects(data, labelled=False, **table)
    spec = distance or kernel or _DEFAULT.get(found.kind)
    if spec is None:
        raise ValueError(f"name how {found.called} are compared: --kernel or --distance, with a --threshold")
    if not (kernel or distance):
        note(f"note: {found.called} are compared by {spec}; --kernel or --distance names another")
    compared = parse_distance(spec) if distance else parse_kernel(spec)
    check_comparison(compared, found, found.objects)
    with bars(), placed_in(found):
        pairs = near_duplicates(
            found.objects,
            compared,
            _THRESHOLD if threshold is None else threshold,
            relative=relative,
            method=method,
            recall=recall,
            random_state=seed,
        )
    value, names = "distance" if distance else "similarity", found.names
    columns: dict[str, Any] = {"first": pairs.pairs[:, 0], "second": pairs.pairs[:, 1], value: pairs.values}
    rows: dict[str, Any] = {"row": np.arange(len(pairs.groups)), "group": pairs.groups}
    rows["kept"] = rows["row"] == rows["group"]
    if names is not None:
        columns |= {f"{side}_name": [names[i] for i in columns[side].tolist()] for side in ("first", "second")}
        rows["name"] = list(names)
    write_table(columns, output)
    if groups is not None:
        write_table(rows, groups)
    n, n_kept = len(pairs.groups), len(pairs.kept)
    told = {"output": output, "objects": n, "pairs": len(pairs.pairs), "kept": n_kept, "compared_by": spec}
    result(told | {"recall": round(pairs.recall, 4)})
    for (i, j), at in zip(pairs.pairs[:_EXAMPLES].tolist(), pairs.values[:_EXAMPLES].tolist(), strict=True):
        texts = [f"\n  {_shown(found.objects[k])}" for k in (i, j)] if found.kind == "strings" else []
        console(highlight=False).print(f"{i}, {j}: {value} {at:.3g}{''.join(texts)}", markup=False)
    console(highlight=False).print(
        f"wrote {written(output)}: {len(pairs.pairs)} pairs (estimated recall {pairs.recall:.3f}); "
        f"{n_kept} of {n} objects are left if one of each group is kept",
        markup=False,
    )


def _shown(text: Any) -> str:
    words = " ".join((text.decode("latin-1") if isinstance(text, bytes) else text).split())
    return words if len(words) <= _LETTERS else words[: _LETTERS - 1] + "…"
