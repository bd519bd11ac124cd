"""Sources, checksums and expected contents of the data sets that `similia.datasets.fetch` can get.

Checksums cover the files inside an archive, so a re-packed archive passes, and only files whose published bytes are
known. The others (the edges of DD, all of REDDIT-BINARY) are checked only, as every set is, against the numbers of
nodes and arcs and the sizes of the classes.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
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

    kind: str
    """``"graphs"`` or ``"strings"``; also the name of the folder it lies in."""
    description: str
    classes: dict[Any, int]
    """Number of objects with each label."""
    url: str | None = None
    n_nodes: int | None = None
    n_arcs: int | None = None
    """Graphs only: arcs after merging repeated lines."""
    sha256: dict[str, str] = field(default_factory=dict)
    """Name of a file inside the archive to its checksum."""
    file: str | None = None
    """Name of the file without ending, where it is not the name of the set."""


def _tudataset(
    name: str, about: str, classes: dict[Any, int], n_nodes: int, n_arcs: int, sha256: dict[str, str]
) -> Entry:
    members = {f"{name}_{part}.txt": digest for part, digest in sha256.items()}
    return Entry("graphs", f"{name}: {about}\n\n{_CITE}", classes, _TUDATASET.format(name), n_nodes, n_arcs, members)


REGISTRY = {
    "BZR": _tudataset(
        "BZR",
        "405 benzodiazepine receptor ligands (nodes: atom types and 3-D coordinates), active or not.",
        {-1: 319, 1: 86},
        n_nodes=14479,
        n_arcs=31070,
        sha256={
            "A": "ff3fea72cbb9c7791892f1f44a7f04d90c7c5ceab6a72f1208da135d247b543b",
            "graph_indicator": "7be0ae28ac3ce0ea0735242dc31ca8e25fba6f61e75af9f49c2c86fa21bf4712",
            "graph_labels": "ba3c70e696ca733371e43444551df8402a90711e1f9d964c400461f50a762b03",
            "node_labels": "3fa5cea6c33294f4a4fb1fe9ce70a9fe42045f7d555763fb40d99456766e4ba5",
            "node_attributes": "b63d1ad66f2f89dee341a2212e0311c13d180d25537844636ab01bcb56a844dc",
        },
    ),
    "COX2": _tudataset(
        "COX2",
        "467 cyclooxygenase-2 inhibitors (nodes: atom types and 3-D coordinates), active or not.",
        {-1: 365, 1: 102},
        n_nodes=19252,
        n_arcs=40578,
        sha256={
            "A": "243231bc10b9ce2576f7f2d3d49c74d403912bd32264c85bcfba2edeb531175f",
            "graph_indicator": "92f3610a7d32dadd60ac12292e8f047cfa88b2c15b0c20143171185e2d4329f1",
            "graph_labels": "106e76e03040eb4024d6cb3ab08af914f92609b0a85a17ddc6cc48ab0e08d7f5",
            "node_labels": "2e7081a445a29387e9ba927724f3fe86b0c17d27033bca5e47949754a29d9759",
            "node_attributes": "f2dcba7354e0a6f8bb1c8b8e0c46f90258e05b59fc1600bcf2c307351f2e246a",
        },
    ),
    "DD": _tudataset(
        "DD",
        "1178 protein structures (nodes: amino acids, joined below 6 ångström), enzyme or not.",
        {1: 691, 2: 487},
        n_nodes=334925,
        n_arcs=1686092,
        sha256={
            "graph_indicator": "95aabe75f6537326a14e4efc0d006854c20769f3cfc4877b862803d21c51aff2",
            "graph_labels": "b9df6495feb673f79dea357cca30e08f8602e52d978c77b53ec2552d1cb2ab4e",
            "node_labels": "b0d10b05702c2d655d691b5a6f5585081993860013eeab801572202df1c5c108",
        },
    ),
    "ENZYMES": _tudataset(
        "ENZYMES",
        "600 protein structures (nodes: structure elements with 18 attributes), six enzyme classes.",
        {1: 100, 2: 100, 3: 100, 4: 100, 5: 100, 6: 100},
        n_nodes=19580,
        n_arcs=74564,
        sha256={
            "A": "5553c84f8f562f3e199dfd27192174f485e85c44c1357661098668937a739cbf",
            "graph_indicator": "95ba0fa47eba6f02e6b754a215dc66d5b49de3f45f57a128514301a8d7ed5f46",
            "graph_labels": "04743e08967e61e65cdacbb90f8df6ee53742b3d2e7b84675b85ebac70506856",
            "node_labels": "8263eb9b64efa231a5886343483ccfc0342f2407014763a8f738fd51c32ce770",
            "node_attributes": "305a8fc3b12f79fb844ef3374d6a3c8ceeb4887dd4f86bbfe37932c4c5434e7b",
        },
    ),
    "MUTAG": _tudataset(
        "MUTAG",
        "188 nitroaromatic compounds (atom and bond types), mutagenic or not.",
        {-1: 63, 1: 125},
        n_nodes=3371,
        n_arcs=7442,
        sha256={
            "A": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
            "graph_indicator": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
            "graph_labels": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
            "node_labels": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
            "edge_labels": "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56",
        },
    ),
    "Mutagenicity": _tudataset(
        "Mutagenicity",
        "4337 compounds (atom and bond types), mutagenic or not.",
        {0: 2401, 1: 1936},
        n_nodes=131488,
        n_arcs=266894,
        sha256={
            "A": "ae85e22b4b898ebd819d2ed3adc8f06a7bf1cda746b333086472d19b36711145",
            "graph_indicator": "88b2d83ff10fad75b3280654061e965976f74e75620058c371ed23567236b4bc",
            "graph_labels": "b604c7dcbfdf89193901e32abdcbf9b5b92137414ce22231f00ed65d48ec48f9",
            "node_labels": "b429ec418c831d02dc3088b2fe08d11214627850d2bbdacfa9797c0510e70ae7",
            "edge_labels": "bf8e783386ac22e6033bbce56d765c0a4336649bd590a6f1e467b27b549f2114",
        },
    ),
    "NCI1": _tudataset(
        "NCI1",
        "4110 compounds (atom types), active against non-small cell lung cancer or not.",
        {0: 2053, 1: 2057},
        n_nodes=122747,
        n_arcs=265506,
        sha256={
            "A": "2c028eda59a5fe96e2265a63d9ac236901bd9a7dc658498be13cd704a703076d",
            "graph_indicator": "ffe5acfa754b057d5ce0dc725c5aadb631628161886cc040d38c719635257dc5",
            "graph_labels": "fae44681e70113f496256ae87eaac33b7836e3a97fe8e023933b84fde6a5c8a2",
            "node_labels": "dc0a22b6cbff0c939de00373e823977ba32b358f560e4288d7602f7b51407ee2",
        },
    ),
    "NCI109": _tudataset(
        "NCI109",
        "4127 compounds (atom types), active against ovarian cancer or not.",
        {0: 2048, 1: 2079},
        n_nodes=122494,
        n_arcs=265208,
        sha256={
            "A": "9c0ae8c1e631f771663de1e095eb36604f4feeb512e46b90b0409f05f876bab6",
            "graph_indicator": "f86bb0249bf985be397f46c493879022cb068b1d4331215151442de1738c9163",
            "graph_labels": "8ab9932d5347b935e3aaa7be2f787cc78860fa1af9df836dd3f03cde6939b640",
            "node_labels": "d2ceda711b4ea4218909e5527325374d7e50c698b0d8a22567390a5526dbd6bc",
        },
    ),
    "REDDIT-BINARY": _tudataset(
        "REDDIT-BINARY",
        "2000 discussion threads (users joined by replies, no labels), question-and-answer or discussion.",
        {-1: 1000, 1: 1000},
        n_nodes=859254,
        n_arcs=1991016,
        sha256={},
    ),
    "sms_spam": Entry(
        "strings",
        "SMS Spam Collection: 5574 English text messages, ham or spam.\n\nT. Almeida, J. Hidalgo (2011), "
        "UCI Machine Learning Repository, https://doi.org/10.24432/C5CC84, CC BY 4.0.",
        {"ham": 4827, "spam": 747},
        "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip",
        sha256={"SMSSpamCollection": "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"},
    ),
    "multiloc_proteins": Entry(
        "strings",
        "MultiLoc: 5959 protein sequences, eleven places in the cell.\n\nA. Höglund et al., MultiLoc: "
        "prediction of protein subcellular localization (2006), https://github.com/KohlbacherLab/MultiLoc2; "
        "no licence stated.",
        {
            "ER": 198,
            "Golgi": 150,
            "chloroplast": 449,
            "cytoplasmic": 1411,
            "extracellular": 843,
            "lysosomal": 103,
            "mitochondrial": 510,
            "nuclear": 837,
            "peroxisomal": 157,
            "plasma_membrane": 1238,
            "vacuolar": 63,
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
}


_UEA = "From the UCR/UEA archive of time series, https://timeseriesclassification.com; no licence stated."


_KAGGLE = "O. Belitskaya, Kaggle; no licence stated. SIFT descriptors (128 numbers 0 to 255) of grey pictures by OpenCV"


_MNIST = "Y. LeCun, C. Cortes and C. Burges, MNIST; commonly given as CC BY-SA 3.0."


_CIFAR = "A. Krizhevsky, CIFAR-10; no licence stated by its authors."


@dataclass(frozen=True)
class Archive:
    """One such file: its description and expected contents."""

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
