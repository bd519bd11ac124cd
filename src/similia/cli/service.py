"""``similia warmup`` and ``similia info``: what those need who run similia as a service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import similia as sm
from similia._version import __version__
from similia.cli.voice import console, result
from similia.storage.model_file import written_by


def warm_up(kinds: list[str] | None) -> None:
    """Compile the loops of some kinds of objects, or of all."""
    seconds = sm.warmup(kinds or None)
    for kind, value in seconds.items():
        console().print(f"{kind}: {value:.1f} s")
    result({"seconds": seconds})


def show_model(path: Path) -> None:
    """Print what a model file holds, and which similia wrote it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; of an index tells: similia index info {path}")
    model = sm.load(path)
    with path.open("rb") as file:
        writer = written_by(file)
    steps = getattr(model, "steps", None) or [(type(model).__name__.lower(), model)]
    facts: dict[str, Any] = {
        "written_by": writer,
        "read_by": __version__,
        "bytes": path.stat().st_size,
        "steps": [{"name": name, "estimator": " ".join(repr(step).split())} for name, step in steps],
    }
    classes = getattr(model, "classes_", None)
    facts |= {} if classes is None else {"classes": [str(label) for label in classes]}
    result(facts)
    say = console(highlight=False)
    say.print(
        f"{path}: {facts['bytes'] / 1e6:.1f} MB, written by similia {writer or 'of an unknown version'}", markup=False
    )
    for step in facts["steps"]:
        say.print(f"  {step['name']}: {step['estimator']}", markup=False)
    if classes is not None:
        say.print(f"  classes: {', '.join(facts['classes'])}", markup=False)
