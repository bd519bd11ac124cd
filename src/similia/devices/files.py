"""Functions that the writers of C and Verilog share: checks of names, objects for tests, templates, writing files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.text import short
from similia.core.validation import BadParameter, BadValue, warn_user
from similia.devices.inputs import Gaussian, Substrings, Subtrees, Warped
from similia.devices.quantised import Loss, Quantised, quantise
from similia.objects import n_objects, take
from similia.pipelines import steps_of

_COMPARED, _ALIKE = 300, 0.97  # maximum number of objects compared with the pipeline; share of bits to be equal


def check_name(name: str) -> None:
    """Raise if `name` cannot begin the names of files, of functions in C, or of a module in Verilog."""
    fits = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
    if not fits or name in ("stdint", "stdio", "string"):
        expected = "a letter followed by letters, digits and underscores, such as 'model', but not a header of C"
        raise BadParameter("name", expected, short(name))


def quantised(
    model: Any, X: Any, max_length: int | None, letters: str, numbers: str = "whole"
) -> tuple[Quantised, Loss | None]:
    """Return the quantised model and, if X is given, its loss on some of X; warn if the loss is large."""
    small = model
    if isinstance(model, Quantised) and numbers == "float" and not model.in_floats:
        raise BadParameter("model", "a pipeline, or quantised with numbers='float'", "a model of whole numbers")
    if not isinstance(model, Quantised):
        small = quantise(model, X, max_length=max_length, letters=letters, numbers=numbers)
    if X is None:
        return small, None
    if small is model:
        small.read(X)  # raises if an object breaks a limit, as `quantise` does otherwise
    n = n_objects(X)
    loss = small.loss(take(X, np.linspace(0, n - 1, min(n, _COMPARED)).astype(int)))
    if loss.bits < _ALIKE:
        if small.in_floats:
            warn_user(f"in float32, {loss}: small eigenvalues may need more digits; try fewer landmarks")
        else:
            warn_user(
                f"in whole numbers, {loss}: similarities may be too close to 0 for 24 bits (try a smaller gamma), or "
                "the steps of numbers too large (give X as in training, or numbers='float')"
            )
    return small, loss


def write(files: dict[str, str], folder: str | Path, overwrite: bool) -> None:
    """Write the texts of `files`, by name; if a file exists and `overwrite` is False, raise before writing any."""
    folder = Path(folder)
    check_new(files, folder, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="ascii")


def check_new(files: Iterable[str], folder: Path, overwrite: bool) -> None:
    """Raise if one of the files exists in `folder` and `overwrite` is False."""
    present = next((folder / file for file in files if (folder / file).exists()), None)
    if present is not None and not overwrite:
        raise FileExistsError(
            f"{present} exists; give another folder or name, or overwrite it (overwrite= or --overwrite)"
        )


def render(template: str, facts: dict[str, Any]) -> str:
    """Return the text of a template of ``templates/``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("similia.devices", "templates"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(template + ".jinja").render(facts)


def answers(small: Quantised, X: Any, most: int) -> tuple[Any, npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the first `most` objects of X, or of the landmarks, as the model reads them, with codes and labels.

    A label is the number of its class, or 0 if the model has no classes.
    """
    given = X is not None
    if not given:
        X = getattr(small.input, "landmarks", None)
        if small.input.kind == "vector":
            raise BadParameter("X", "vectors such as the training vectors, which become the tests", "nothing")
        if X is None or isinstance(small.input, Substrings | Subtrees):
            X = next(step.landmarks_ for step in steps_of(small.model) if hasattr(step, "landmarks_"))
        elif isinstance(small.input, Warped | Gaussian):
            X = _in_units(small.input)
    try:
        objects = small.read(take(X, np.arange(min(most, n_objects(X)))))
    except BadValue as error:
        if given:
            raise
        remedy = "give {parameter}, whose first objects then become the tests"
        raise error.changed(collection="landmarks", remedy=remedy, parameter="X") from None
    codes = small.codes(objects)
    labels = np.zeros(len(codes), int) if small.prototypes is None else small.prototypes(codes).argmax(axis=1)
    return objects, codes, labels


def _in_units(read: Any) -> Any:
    """Return the landmarks in the units of the user."""
    if isinstance(read, Gaussian):
        return read.landmarks * read.units.steps
    return type(read.landmarks)(read.landmarks.values * read.units.steps, read.landmarks.offsets)
