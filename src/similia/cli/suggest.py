"""``similia suggest`` chooses which objects to measure next, by a Gaussian process."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from similia.cli.options import CsvOut, Data, Model, Seed, Table


def suggest(
    model: Model,
    data: Data,
    table: Table,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of objects to choose.")] = 10,
    output: CsvOut = None,
    method: Annotated[
        str,
        typer.Option(
            help="improvement: the objects of largest expected improvement over the best measured one; thompson: the "
            "best objects of functions drawn at random from what the model believes."
        ),
    ] = "improvement",
    minimize: Annotated[bool, typer.Option("--minimize", help="Look for small numbers instead of large ones.")] = False,
    seed: Seed = 0,
) -> None:
    """Choose which objects of a pool to measure next, to find one with a large number.

    MODEL is a Gaussian process for numbers, of 'similia fit --learner gaussian-process'. DATA is the pool, each object
    once. Objects equal to one that the model keeps are measured already, and are left out, also molecules whose SMILES
    lists the atoms in another order (with --landmarks, a model keeps only these). For each choice, the table holds the
    number that the model predicts and its standard deviation. With improvement, the most promising object comes first,
    and each choice assumes that those before it are measured, too.

    [bold]similia suggest model.similia pool.csv --smiles smiles -n 10 -o next.csv[/bold]
    """
    import numpy as np

    import similia as sm
    from similia.cli.inputs import check_kind, placed_in, read_objects, with_columns_of
    from similia.cli.outputs import bars, check_id, check_output, keys_of, name_column, print_written, write_csv
    from similia.cli.voice import note, result
    from similia.objects import StringBatch, n_objects, take
    from similia.objects.sequences import item
    from similia.similarity import as_objects

    check_output(output, data, model)
    check_id(table, "rank", "object", "predicted", "std")
    fitted = sm.load(model)
    if not hasattr(fitted, "suggest"):
        raise ValueError(
            f"{model} holds {type(fitted).__name__}, which suggests nothing; 'similia fit --learner gaussian-process' "
            "writes models that can, without --conformal, if the labels are numbers"
        )
    table = with_columns_of(fitted, data, table)
    read = read_objects(data, labelled=False, **table)
    check_kind(fitted, read, read.objects)
    keys = keys_of(read, name_column(table, read.named))
    objects = as_objects(fitted.kernel_, read.objects)
    pool = np.flatnonzero(~_measured(objects, fitted.objects_))
    if len(pool) < n_objects(objects):
        note(f"note: {n_objects(objects) - len(pool)} of the {n_objects(objects)} {read.called} are measured: left out")
    if not len(pool):
        raise ValueError(f"all {n_objects(objects)} {read.called} of {read.source} are measured; give others")
    if n > len(pool):
        raise ValueError(f"-n is {n}, but {read.source} holds {len(pool)} {read.called} to measure; ask for fewer")
    with bars(), placed_in(read):
        chosen = pool[fitted.suggest(take(objects, pool), n, method, maximize=not minimize, random_state=seed)]
        means, stds = fitted.predict(take(objects, chosen), return_std=True)
    rows: list[dict[str, Any]] = [
        {"rank": rank, "row": int(keys["row"][i])}
        | {column: values[i] for column, values in keys.items() if column != "row"}
        | ({"object": item(objects, i)} if isinstance(objects, StringBatch) else {})
        | {"predicted": mean, "std": std}
        for rank, (i, mean, std) in enumerate(zip(chosen.tolist(), means.tolist(), stds.tolist(), strict=True), start=1)
    ]
    write_csv(rows, "std", output)
    if output is not None:
        print_written(output, f": {n} of {len(pool)} {read.called} to measure")
    result({"pool": len(pool), "method": method, "suggestions": rows})


def _measured(objects: Any, kept: Any) -> Any:
    import numpy as np

    from similia.objects import n_objects
    from similia.objects.identical import are_among

    return are_among(objects, kept) if type(objects) is type(kept) else np.zeros(n_objects(objects), bool)
