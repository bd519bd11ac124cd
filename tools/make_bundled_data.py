"""Make the files of ``src/similia/datasets/data`` from the data that they are taken from.

    python tools/make_bundled_data.py promotergene.rda DNA.rda FOLDER

The first two are of the R packages kernlab and mlbench (in Debian inside ``r-cran-kernlab`` and ``r-cran-mlbench``:
``apt-get download``, then ``dpkg -x``) and need ``pyreadr``. FOLDER is one of ``SIMILIA_DATA`` and holds
``strings/sms_spam.tsv.gz``, ``series/libras.npz`` and ``series/japanese_vowels.npz``. ``molecules.tsv`` was written by
hand; a test checks it.

Only labels and values are taken, which the UCI repository publishes under CC BY 4.0; the packages' own code and text
stay out.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "src" / "similia" / "datasets" / "data"
BASES = {"000": "T", "100": "A", "010": "C", "001": "G"}  # mlbench: three indicator columns a base
MESSAGES = 800
LEFT_OUT = re.compile(
    r"sex|xxx|porn|adult|naked|horny|cock|dick|fuck|shit|bitch|pussy|nig|rape|kill|18\+|over 18", re.I
)
UTTERANCES = 15  # of each speaker


def promoters(path: str) -> list[tuple[str, str]]:
    """Class, then one column for each of 57 bases."""
    import pyreadr

    rows = pyreadr.read_r(path)["promotergene"].astype(str).itertuples(index=False)
    return [(row[0], "".join(row[1:])) for row in rows]


def splice(path: str) -> list[tuple[str, str]]:
    """180 indicator columns for 60 bases, then the class."""
    import pyreadr

    rows = pyreadr.read_r(path)["DNA"].astype(str).itertuples(index=False)
    return [(row[-1], "".join(BASES["".join(row[i : i + 3])] for i in range(0, 180, 3))) for row in rows]


def messages(path: Path) -> list[tuple[str, str]]:
    """The first distinct messages of printable ASCII without words for adults."""
    found: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            label, _, text = line.rstrip("\n").partition("\t")
            if text.isascii() and text.isprintable() and not LEFT_OUT.search(text) and len(found) < MESSAGES:
                found.setdefault(text, label)
    return [(label, text) for text, label in found.items()]


def series(path: Path, decimals: int, each: int | None) -> str:
    """The training part of a file in the .ts format, the first `each` series of each class, with rounded numbers."""
    with np.load(path) as arrays:
        values, lengths, labels, split = (arrays[name] for name in ("values", "lengths", "y", "split"))
    ends, taken, lines = np.cumsum(lengths), dict.fromkeys(labels.tolist(), 0), []
    for end, length, label, part in zip(ends, lengths, labels.tolist(), split, strict=True):
        taken[label] += part == 0
        if part == 0 and (each is None or taken[label] <= each):
            channels = values[end - length : end].T
            numbers = (",".join(f"{v:.{decimals}f}" for v in channel) for channel in channels)
            lines.append(":".join([*numbers, str(label)]))
    names = " ".join(map(str, sorted(taken)))
    header = f"@timeStamps false\n@dimensions {values.shape[1]}\n@classLabel true {names}\n@data\n"
    return header + "\n".join(lines) + "\n"


def write(name: str, rows: list[tuple[str, str]], n: int) -> None:
    """Write lines ``label<TAB>text`` after checking their number."""
    assert len(rows) == n, len(rows)
    text = "".join(f"{label}\t{string}\n" for label, string in rows)
    (DATA / name).write_text(text, encoding="ascii", newline="\n")


if __name__ == "__main__":
    folder = Path(sys.argv[3])
    write("promoters.tsv", promoters(sys.argv[1]), 106)
    write("splice.tsv", splice(sys.argv[2]), 3186)
    write("messages.tsv", messages(folder / "strings" / "sms_spam.tsv.gz"), MESSAGES)
    for name, file, decimals, each in (("movements", "libras", 3, None), ("vowels", "japanese_vowels", 2, UTTERANCES)):
        text = series(folder / "series" / f"{file}.npz", decimals, each)
        (DATA / f"{name}.ts").write_text(text, encoding="ascii", newline="\n")
