"""Sources, checksums and expected contents of the data sets that `similia.datasets.fetch` can get.

Checksums cover the files inside an archive, so a re-packed archive passes, and only files whose published bytes are
known. The others (the edges of DD, all of REDDIT-BINARY) are checked only, as every set is, against the numbers of
nodes and arcs and the sizes of the classes.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from similia.core.errors import BadFile

_TUDATASET = "https://www.chrsmrrs.com/graphkerneldatasets/{}.zip"
_CITE = (
    "C. Morris et al., TUDataset: a collection of benchmark datasets for learning with graphs (2020), "
    "https://chrsmrrs.github.io/datasets; the collection states no licence and asks for citation."
)


@dataclass(frozen=True)
class Entry:
    """One downloadable data set: its address and expected contents."""

    kind: str  # "graphs" or "strings"; also the name of the folder it lies in
    description: str
    classes: dict[Any, int]  # number of objects with each label
    url: str | None = None
    n_nodes: int | None = None
    n_arcs: int | None = None  # after merging repeated lines
    sha256: dict[str, str] = field(default_factory=dict)  # of files inside the archive, by name
    file: str | None = None  # name of the file without ending, if it is not the name of the set


def _checksums() -> dict[str, dict[str, str]]:
    """Return the known sha256 digests of the files of each data set, by name."""
    found: dict[str, dict[str, str]] = {}
    for line in files("similia.datasets").joinpath("data", "SHA256SUMS").read_text(encoding="ascii").splitlines():
        digest, path = line.split()
        name, _, file = path.partition("/")
        found.setdefault(name, {})[file] = digest
    return found


_SHA256 = _checksums()
_GRAPHS: dict[str, tuple[str, dict[Any, int], int, int]] = {  # description, members of each class, nodes, arcs
    "BZR": (
        "405 benzodiazepine receptor ligands (nodes: atom types and 3-D coordinates), active or not.",
        {-1: 319, 1: 86}, 14479, 31070,
    ),
    "COX2": (
        "467 cyclooxygenase-2 inhibitors (nodes: atom types and 3-D coordinates), active or not.",
        {-1: 365, 1: 102}, 19252, 40578,
    ),
    "DD": (
        "1178 protein structures (nodes: amino acids, joined below 6 ångström), enzyme or not.",
        {1: 691, 2: 487}, 334925, 1686092,
    ),
    "ENZYMES": (
        "600 protein structures (nodes: structure elements with 18 attributes), six enzyme classes.",
        {1: 100, 2: 100, 3: 100, 4: 100, 5: 100, 6: 100}, 19580, 74564,
    ),
    "MUTAG": (
        "188 nitroaromatic compounds (atom and bond types), mutagenic or not.",
        {-1: 63, 1: 125}, 3371, 7442,
    ),
    "Mutagenicity": (
        "4337 compounds (atom and bond types), mutagenic or not.",
        {0: 2401, 1: 1936}, 131488, 266894,
    ),
    "NCI1": (
        "4110 compounds (atom types), active against non-small cell lung cancer or not.",
        {0: 2053, 1: 2057}, 122747, 265506,
    ),
    "NCI109": (
        "4127 compounds (atom types), active against ovarian cancer or not.",
        {0: 2048, 1: 2079}, 122494, 265208,
    ),
    "REDDIT-BINARY": (
        "2000 discussion threads (users joined by replies, no labels), question-and-answer or discussion.",
        {-1: 1000, 1: 1000}, 859254, 1991016,
    ),
}  # fmt: skip
REGISTRY = {
    name: Entry(
        "graphs", f"{name}: {about}\n\n{_CITE}", classes, _TUDATASET.format(name), nodes, arcs, _SHA256.get(name, {})
    )
    for name, (about, classes, nodes, arcs) in _GRAPHS.items()
} | {
    "sms_spam": Entry(
        "strings",
        "SMS Spam Collection: 5574 English text messages, ham or spam.\n\nT. Almeida, J. Hidalgo (2011), "
        "UCI Machine Learning Repository, https://doi.org/10.24432/C5CC84, CC BY 4.0.",
        {"ham": 4827, "spam": 747},
        "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip",
        sha256=_SHA256["sms_spam"],
    ),
    "multiloc_proteins": Entry(
        "strings",
        "MultiLoc: 5959 protein sequences, eleven places in the cell.\n\nA. Höglund et al., MultiLoc: "
        "prediction of protein subcellular localization (2006), https://github.com/KohlbacherLab/MultiLoc2; "
        "no licence stated.",
        {
            "ER": 198, "Golgi": 150, "chloroplast": 449, "cytoplasmic": 1411, "extracellular": 843, "lysosomal": 103,
            "mitochondrial": 510, "nuclear": 837, "peroxisomal": 157, "plasma_membrane": 1238, "vacuolar": 63,
        },
    ),
    "splice_uci": Entry(
        "strings",
        "Splice junctions as UCI publishes them: 3190 stretches of 60 letters, ambiguous ones (N, D, S, R) kept; the "
        "bundled set is the 3186 of the R package mlbench.\n\nUCI Machine Learning Repository, "
        "https://doi.org/10.24432/C5M888, CC BY 4.0.",
        {"EI": 767, "IE": 768, "N": 1655},
        file="splice",
    ),
}  # fmt: skip


_UEA = "From the UCR/UEA archive of time series, https://timeseriesclassification.com; no licence stated."
_KAGGLE = "O. Belitskaya, Kaggle; no licence stated. SIFT descriptors (128 numbers 0 to 255) of grey pictures by OpenCV"
_MNIST = "Y. LeCun, C. Cortes and C. Burges, MNIST; commonly given as CC BY-SA 3.0."
_CIFAR = "A. Krizhevsky, CIFAR-10; no licence stated by its authors."


@dataclass(frozen=True)
class Archive:
    """A file below ``SIMILIA_DATA`` that has no download: its description and expected contents."""

    kind: str  # "series", "sets" or "vectors"; also the name of the folder it lies in
    description: str
    n: int
    n_classes: int
    n_values: int  # time points, points or pictures in all
    target: str = "y"
    file: str | None = None  # name of the file without ending, if it is not the name of the set


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
    """Return ``data``, ``target`` and the other columns of a file, or raise ValueError if its contents are unexpected.

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
        raise BadFile(path, f"is damaged or of another kind: {error}") from error
    found = (len(target), len(np.unique(target)), len(values))
    if found != (archive.n, archive.n_classes, archive.n_values) or (lengths is not None and lengths.sum() != found[2]):
        raise BadFile(
            path,
            f"holds {found[0]} objects of {found[1]} classes and {found[2]} values, expected {archive.n}, "
            f"{archive.n_classes} and {archive.n_values}; it is damaged or another version",
        )
    if lengths is None:
        return {"data": values, "target": target, **columns}
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    batch = (SeriesBatch if archive.kind == "series" else SetBatch)(values.astype(np.float32, copy=False), offsets)
    return {"data": batch, "target": target, **{name: c for name, c in columns.items() if len(c) == archive.n}}
