"""``similia warmup`` and ``similia info``, for running similia as a service."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from similia._version import __version__
from similia.cli.options import Model

_FEW = 4  # arrays with more entries are shown by their first and last entry


def warmup(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]...", help="Kinds of objects: strings, graphs, series, sets, vectors, codes. Default: all."
        ),
    ] = None,
) -> None:
    """Compile the fast loops in advance (a minute or two, once), so that first calls are as fast as later ones.

    Run it when you set up a machine or a container image. Set NUMBA_CACHE_DIR to a folder that the service can read.

    [bold]similia warmup strings codes[/bold]
    """
    import similia as sm
    from similia.cli.voice import console, result

    seconds = sm.warmup(kinds or None)
    for kind, value in seconds.items():
        console().print(f"{kind}: {value:.1f} s")
    result({"seconds": seconds})


def info(model: Model) -> None:
    """Show the contents of a model file and the version of similia that wrote it.

    [bold]similia info model.similia[/bold]
    """
    import numpy as np

    import similia as sm
    from similia.cli.outputs import size_of
    from similia.cli.voice import console, result
    from similia.storage.models import written_by

    if model.is_dir():
        raise ValueError(f"{model} is a folder, not a model file; if it is an index, use: similia index info {model}")
    fitted = sm.load(model)
    with model.open("rb") as file:
        writer = written_by(file)
    steps = getattr(fitted, "steps", None) or [(type(fitted).__name__.lower(), fitted)]
    with np.printoptions(threshold=_FEW, edgeitems=1, precision=3):  # of arrays among the parameters
        shown = [{"name": name, "estimator": " ".join(repr(step).split())} for name, step in steps]
    facts: dict[str, Any] = {
        "written_by": writer,
        "read_by": __version__,
        "bytes": model.stat().st_size,
        "steps": shown,
    }
    classes = getattr(fitted, "classes_", None)
    facts |= {} if classes is None else {"classes": [str(label) for label in classes]}
    result(facts)
    say = console(highlight=False)
    say.print(f"{model}: {size_of(facts['bytes'])}, written by similia {writer or 'of an unknown version'}")
    for step in facts["steps"]:
        say.print(f"  {step['name']}: {step['estimator']}")
    if classes is not None:
        say.print(f"  classes: {', '.join(facts['classes'])}")
