"""The ``.ts`` text format of https://timeseriesclassification.com, which aeon and sktime read too: labelled series.

After comments (``#``, ``%``) and a header (lines ``@name value``, the last one ``@data``) comes one series a line:
dimensions separated by colons, their values by commas, at the end the label. Reading is one pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.text import _short, counted
from similia.objects._vectors import SeriesBatch
from similia.sources.readers import _text

_FLAGS = ("@timestamps", "@univariate", "@equallength", "@classlabel", "@targetlabel")
_SIZES = ("@dimensions", "@serieslength")
_LONGEST = 300  # characters of what is wrong with a line, which may hold a number of as many digits


def read_ts(path: str | os.PathLike[str]) -> tuple[SeriesBatch, npt.NDArray[Any] | None]:
    """Read a file of time series in ``.ts`` format.

    Parameters
    ----------
    path : path
        Plain or gzip (``.gz``). Of the header, ``@timeStamps``, ``@univariate``, ``@dimensions``, ``@equalLength``,
        ``@seriesLength``, ``@classLabel`` and ``@targetLabel`` are used, in upper or lower case, and held against the
        data. Labels are checked if ``@classLabel true`` lists them.

    Returns
    -------
    series : SeriesBatch
        Of float64; dimensions are channels.
    y : ndarray, shape (n,), or None
        Labels as str, as they are written; with ``@targetLabel true`` numbers as float64; None where the header
        says ``@classLabel false``.

    Raises
    ------
    ValueError
        If the file is truncated or of another kind, a value is missing (``?``, NaN), values have time stamps, or
        the data contradict the header. The sentence names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from similia.sources import read_ts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two.ts")
    ...     _ = path.write_text("@dimensions 2\\n@classLabel true up down\\n@data\\n1,2,3:4,5,6:up\\n2,1:0,0:down\\n")
    ...     series, y = read_ts(path)
    >>> series.lengths, series.n_dims, y
    (array([3, 2]), 2, array(['up', 'down'], dtype='<U4'))
    """
    arrays: list[npt.NDArray[np.float64]] = []
    labels: list[Any] = []
    with _text(path) as file:
        lines = _Lines(file)
        try:
            header = _read_header(lines)
            label_type = _label_type(header)
            known = header["@classlabel"].split()[1:] if label_type is str else []
            for line in lines:
                dimensions = line.split(":")
                if label_type is not None:
                    labels.append(_read_label(dimensions.pop(), label_type, known))
                arrays.append(_read_series(dimensions, header, arrays))
            if not arrays:
                raise ValueError("no series after '@data'; is the file truncated?")
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            problem = str(error) if len(str(error)) < _LONGEST else f"{str(error)[:_LONGEST]}…"
            raise ValueError(f"{path}, line {lines.number}: {problem}") from None
    return SeriesBatch.from_arrays(arrays), np.array(labels) if labels else None


class _Lines:
    """The lines that are neither empty nor comments; remembers the number of the last one."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.number += 1
            if (line := line.strip()) and line[0] not in "#%":
                yield line


def _read_header(lines: _Lines) -> dict[str, str]:
    """Return what follows each ``@name`` (the name in lower case); stop after ``@data``."""
    header: dict[str, str] = {}
    for line in lines:
        name, *words = line.split()
        name = name.lower()
        if name == "@data":
            return header
        if name[0] != "@":
            raise ValueError(f"expected '@data' before the first series, got {_short(line)}; is it a .ts file?")
        words[:1] = [words[0].lower()] if words else [""]
        header[name] = " ".join(words)
        if name in _FLAGS and words[0] not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, got {_short(words[0])}")
        if name in _SIZES and not (words[0].isdecimal() and int(words[0])):
            raise ValueError(f"{name} must be a number of at least 1, got {_short(words[0])}")
        if name == "@timestamps" and words[0] == "true":
            raise ValueError("@timeStamps true: values with time stamps are not supported; write the values alone")
    raise ValueError("the file ends before '@data'; is it a whole .ts file?")


def _label_type(header: dict[str, str]) -> type[str] | type[float] | None:
    if not {"@classlabel", "@targetlabel"} & set(header):
        raise ValueError("the header says nothing of labels; add '@classLabel false' if the series have none")
    if header.get("@targetlabel") == "true":
        return float
    return str if header.get("@classlabel", "").startswith("true") else None


def _read_label(text: str, label_type: type[str] | type[float], known: list[str]) -> str | float:
    """Return the label of a series; a label must be one of those the header lists, if it lists any."""
    if label_type is float:
        target = _numbers(text, "the target")
        if len(target) > 1:
            raise ValueError(f"the target after the last ':' must be one number, got {_short(text)}")
        return float(target[0])
    label = text.strip()
    if not label:
        raise ValueError("the label after the last ':' is missing")
    if known and label not in known:
        raise ValueError(f"unknown label {_short(label)}, expected one of {_short(known)} as @classLabel lists them")
    return label


def _read_series(
    dimensions: list[str], header: dict[str, str], before: list[npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """Return one series, shape (length, n_dimensions), held against the header and the first series."""
    expected = int(header.get("@dimensions", before[0].shape[1] if before else len(dimensions)))
    expected = 1 if header.get("@univariate") == "true" else expected
    if len(dimensions) != expected or not dimensions:
        raise ValueError(f"{counted(len(dimensions), 'dimension')} besides the label, expected {max(expected, 1)}")
    channels = [_numbers(text, f"dimension {j}") for j, text in enumerate(dimensions)]
    for j, channel in enumerate(channels):
        if len(channel) != len(channels[0]):
            raise ValueError(
                f"dimension {j} has {counted(len(channel), 'value')} and dimension 0 has {len(channels[0])}"
            )
    if header.get("@equallength") == "true":
        length = int(header.get("@serieslength", len(before[0] if before else channels[0])))
        if len(channels[0]) != length:
            raise ValueError(f"length {len(channels[0])}, expected {length}: the header says @equalLength true")
    return np.column_stack(channels)


def _numbers(text: str, name: str) -> npt.NDArray[np.float64]:
    """Return numbers separated by commas, all of them finite."""
    words = text.split(",")
    try:
        values = np.array([float(word) for word in words])
    except ValueError:
        values = np.array([_number_or_nan(word) for word in words])
    finite = np.isfinite(values)
    if not finite.all():
        t = int(finite.argmin())
        raise ValueError(
            f"value {t} of {name} is {_short(words[t].strip())}, expected a finite number; "
            "missing values are not supported, fill them in first"
        )
    return values


def _number_or_nan(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan
