"""Series, point sets and pictures that lie in the SIMILIA_DATA folder as numpy archives (NAME.npz)."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_UEA = "From the UCR/UEA archive of time series, https://timeseriesclassification.com; no licence stated."
_KAGGLE = "O. Belitskaya, Kaggle; no licence stated. SIFT descriptors (128 numbers 0 to 255) of grey pictures by OpenCV"
_MNIST = "Y. LeCun, C. Cortes and C. Burges, MNIST; commonly given as CC BY-SA 3.0."
_CIFAR = "A. Krizhevsky, CIFAR-10; no licence stated by its authors."


@dataclass(frozen=True)
class Archive:
    """One such file: what it is, and what must be in it."""

    kind: str
    """``"series"``, ``"sets"`` or ``"vectors"``; also the name of the folder it lies in."""
    description: str
    n: int
    n_classes: int
    n_values: int
    """Time points, points or pictures in all."""
    target: str = "y"
    file: str | None = None
    """Name of the file without ending, where it is not the name of the set."""


ARCHIVES = {
    "auslan_nintendo": Archive(
        "series",
        "6647 signs of Australian sign language by five people, 95 signs, a low-quality glove of 8 channels, lengths "
        "17 to 485.\n\nM. W. Kadous, UCI Australian Sign Language signs; may be used with acknowledgement, commercial "
        "use needs the donor's permission.",
        n=6647, n_classes=95, n_values=383645,
    ),
    "basic_motions": Archive(
        "series", f"80 recordings of a smart watch, 6 channels, length 100, four motions.\n\n{_UEA}",
        n=80, n_classes=4, n_values=8000,
    ),
    "character_trajectories": Archive(
        "series",
        "1429 letters written by one pen, 3 channels, lengths 109 to 205, 20 letters: a labelled half of the 2858.\n\n"
        "B. Williams, UCI Character Trajectories, https://doi.org/10.24432/C58G7V, CC BY 4.0.",
        n=1429, n_classes=20, n_values=244253, file="character_trajectories_labelled",
    ),
    "coffee": Archive(
        "series", f"56 spectra of coffee beans, length 286, two species.\n\n{_UEA}", n=56, n_classes=2, n_values=16016
    ),
    "gunpoint": Archive(
        "series", f"200 tracks of a hand that draws a gun or points, length 150.\n\n{_UEA}",
        n=200, n_classes=2, n_values=30000,
    ),
    "italy_power_demand": Archive(
        "series", f"1096 days of power demand, length 24, summer or winter.\n\n{_UEA}",
        n=1096, n_classes=2, n_values=26304,
    ),
    "japanese_vowels": Archive(
        "series", f"640 utterances, 12 channels, lengths 7 to 29, nine speakers.\n\n{_UEA}",
        n=640, n_classes=9, n_values=9961,
    ),
    "libras": Archive(
        "series", f"360 movements of a hand in Brazilian sign language, 2 channels, length 45, 15 kinds.\n\n{_UEA}",
        n=360, n_classes=15, n_values=16200,
    ),
    "pendigits": Archive(
        "series",
        "10992 digits written on a tablet, 8 points of 2 channels, ten digits.\n\nE. Alpaydin and F. Alimoglu, UCI "
        "Pen-Based Recognition of Handwritten Digits, https://doi.org/10.24432/C5MG6K, CC BY 4.0.",
        n=10992, n_classes=10, n_values=87936,
    ),
    "flowers_sift": Archive(
        "sets", f"210 pictures of flowers, ten kinds.\n\n{_KAGGLE}.",
        n=210, n_classes=10, n_values=42036, target="label"
    ),
    "style_sift": Archive(
        "sets", f"2184 pictures of products, seven brands.\n\n{_KAGGLE} (at most 64 a picture; one picture has none).",
        n=2184, n_classes=7, n_values=121663, target="brand_name",
    ),
    "cifar10_gray16": Archive(
        "vectors", f"60000 photographs of ten kinds of things, grey, 16 x 16 pixels.\n\n{_CIFAR}",
        n=60000, n_classes=10, n_values=60000,
    ),
    "mnist_train": Archive(
        "vectors", f"60000 handwritten digits of 28 x 28 pixels.\n\n{_MNIST}", n=60000, n_classes=10, n_values=60000
    ),
    "mnist_test": Archive(
        "vectors", f"10000 handwritten digits of 28 x 28 pixels.\n\n{_MNIST}", n=10000, n_classes=10, n_values=10000
    ),
}  # fmt: skip


def load_archive(path: Path, archive: Archive) -> dict[str, Any]:
    """Return ``data``, ``target`` and the other columns of a file, or raise ValueError if it is not what it should be.

    Bytes (SIFT descriptors) become float32. A column ``split`` is 0 for the training and 1 for the test part.
    """
    from similia.objects import SeriesBatch, SetBatch

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        values = columns.pop("x") if archive.kind == "vectors" else columns.pop("values")
        target = columns.pop(archive.target)
        target = target.astype(np.int64) if target.dtype.kind in "iu" else target
        lengths = None if archive.kind == "vectors" else columns.pop("lengths")
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is damaged or of another kind: {error}") from error
    found = (len(target), len(np.unique(target)), len(values))
    if found != (archive.n, archive.n_classes, archive.n_values) or (lengths is not None and lengths.sum() != found[2]):
        raise ValueError(
            f"{path} holds {found[0]} objects of {found[1]} classes and {found[2]} values, expected {archive.n}, "
            f"{archive.n_classes} and {archive.n_values}; it is damaged or another version"
        )
    if lengths is None:
        return {"data": values, "target": target, **columns}
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    batch = (SeriesBatch if archive.kind == "series" else SetBatch)(values.astype(np.float32, copy=False), offsets)
    return {"data": batch, "target": target, **{name: c for name, c in columns.items() if len(c) == archive.n}}
