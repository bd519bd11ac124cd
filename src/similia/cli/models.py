"""``similia fit`` and ``similia predict``: files in, model or predictions out."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import similia as sm
from similia.cli.inputs import read_objects
from similia.cli.kernel_spec import parse_kernel

_DEFAULT_KERNEL = {"strings": "GappyKmers(k=4, gaps=1)", "graphs": "WeisfeilerLehman(n_iter=3, normalize=True)"}


def fit_model(
    data: str,
    output: Path,
    *,
    kernel: str | None,
    text: str,
    label: str,
    n_bits: int,
    n_landmarks: int,
    test_share: float,
    seed: int,
) -> None:
    """Train NysHD on `data`, print a held-out score, write the model fitted on everything."""
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    if not output.parent.is_dir():
        raise ValueError(f"the folder {output.parent} does not exist; make it first")
    console = Console()
    X, y, kind = read_objects(data, text=text, label=label)
    if y is None:
        raise ValueError(f"{data} has no labels; --label names the column (or the FASTA header field) that holds them")
    spec = kernel or _DEFAULT_KERNEL[kind]
    model = sm.recipes.nyshd(parse_kernel(spec), n_landmarks=n_landmarks or "auto", n_bits=n_bits, random_state=seed)
    classes, counts = np.unique(y, return_counts=True)
    console.print(f"{len(y)} {kind} in {len(classes)} classes; kernel {spec}")
    if test_share > 0:
        train, test = train_test_split(
            np.arange(len(y)), test_size=test_share, random_state=seed, stratify=y if counts.min() > 1 else None
        )
        held_out = clone(model).fit(sm.objects.take(X, train), y[train])
        console.print(_score_table(y[test], held_out.predict(sm.objects.take(X, test)), y[train]))
    model.fit(X, y)
    sm.save(model, output)
    console.print(f"fitted on all {len(y)} and wrote {output} ({output.stat().st_size / 1e6:.1f} MB)")


def predict_with_model(model_path: Path, data: str, output: Path | None, *, text: str) -> None:
    """Write the predicted label of each object of `data`, as CSV."""
    model = sm.load(model_path)
    X, _, _ = read_objects(data, text=text, label=None)
    rows = [["item", "label"], *enumerate(model.predict(X).tolist())]
    if output is None:
        csv.writer(sys.stdout).writerows(rows)
        return
    temporary = output.with_name(f".{output.name}.part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    os.replace(temporary, output)
    Console().print(f"wrote {len(rows) - 1} predictions to {output}")


def _score_table(y_true: npt.NDArray, y_pred: npt.NDArray, y_train: npt.NDArray) -> Table:
    values, counts = np.unique(y_train, return_counts=True)
    table = Table("class", "held out", "recall", title="held-out objects", title_justify="left")
    for value in np.unique(y_true):
        members = y_true == value
        table.add_row(str(value), str(members.sum()), f"{100 * np.mean(y_pred[members] == value):.1f} %")
    table.add_section()
    table.add_row("all: accuracy", str(len(y_true)), f"{100 * np.mean(y_pred == y_true):.1f} %")
    table.add_row("always the most frequent", "", f"{100 * np.mean(y_true == values[np.argmax(counts)]):.1f} %")
    return table
