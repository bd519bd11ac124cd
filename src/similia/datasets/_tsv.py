"""Labelled strings as lines ``label<TAB>text``, and the Bunch that every loader returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def parse_tsv(text: str, name: str) -> tuple[npt.NDArray[np.str_], list[str]]:
    """Return labels and texts; a text may hold further tabs and quotes."""
    lines = text.removesuffix("\n").split("\n")
    pairs = [line.rstrip("\r").partition("\t") for line in lines]
    for number, (_, tab, _) in enumerate(pairs, 1):
        if not tab:
            raise ValueError(f"{name}, line {number}: no tab, expected label<TAB>text; is the file truncated?")
    return np.array([label for label, _, _ in pairs]), [string for _, _, string in pairs]


def bunch(data: Any, target: npt.NDArray[Any], description: str, return_X_y: bool) -> Any:
    """Return ``(data, target)`` or a Bunch of both with the names of the classes and a description."""
    if return_X_y:
        return data, target
    from sklearn.utils import Bunch

    return Bunch(data=data, target=target, target_names=np.unique(target), DESCR=description)
