"""Which bits? Signs of random projections, ITQ and generalised Nyström ITQ of the same vectors, clean and flipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedShuffleSplit

from experiments import heat_webkb
from experiments._figures import panels
from experiments._graphlets import block_model, tuned_predictions
from experiments._report import Record, Table, distinct, summary
from experiments.hashing_objects import CODES, fitted_coder, measured, not_possible, rank_of
from similia.codes import flip_bits
from similia.datasets import fetch
from similia.distances import DTW
from similia.embeddings import D2KE, GraphletSampling, Nystroem
from similia.kernels import GappyKmers, HypersphericalHeat, WeisfeilerLehman
from similia.learn import HDClassifier
from similia.objects import as_strings, take
from similia.search import HammingIndex
from similia.search.answers import shares_found

N_COMPONENTS, K, N_VOTES, TEST_SHARE = 512, 10, 5, 0.2
BITS = (64, 256, 1024, 4096, 10_000)
FLIPS = (0.0, 0.05, 0.1, 0.2)
FLOATS = "floats"


@dataclass(frozen=True)
class Task:
    """Objects with labels (`load(seed)`) and their embedding (`embedding(seed)`)."""

    name: str
    load: Callable[[int], tuple[Any, npt.NDArray]]
    embedding: Callable[[int], Any]


def _graphs(name: str, most: int = 2000) -> Callable[[int], tuple[Any, npt.NDArray]]:
    def load(seed: int) -> tuple[Any, npt.NDArray]:
        X, y = fetch(name, return_X_y=True)
        some = np.random.default_rng(seed).permutation(len(y))[:most]
        return take(X, some), np.asarray(y)[some]

    return load


def _splice(seed: int) -> tuple[Any, npt.NDArray]:
    X, y = fetch("splice", return_X_y=True)
    return as_strings(X), np.asarray(y)


def _vowels(seed: int) -> tuple[Any, npt.NDArray]:
    X, y = fetch("japanese_vowels", return_X_y=True)
    return X, np.asarray(y)


def _pages(seed: int) -> tuple[Any, npt.NDArray]:
    X, y, _ = heat_webkb.load(1312)
    return X, y


def _wl(seed: int) -> Any:
    return Nystroem(WeisfeilerLehman(n_iter=4, normalize=True), N_COMPONENTS, random_state=seed)


TASKS = (
    Task("NCI1", _graphs("NCI1"), _wl),
    Task("splice", _splice, lambda seed: Nystroem(GappyKmers(4, 1, normalize=True), N_COMPONENTS, random_state=seed)),
    Task("JapaneseVowels", _vowels, lambda seed: D2KE(DTW(), N_COMPONENTS, random_state=seed)),
    Task(
        "SBM",
        lambda seed: block_model(1000, np.random.default_rng(seed)),
        lambda seed: GraphletSampling(6, 2000, n_components=N_COMPONENTS, random_state=seed),
    ),
    Task("WebKB", _pages, lambda seed: Nystroem(HypersphericalHeat(4.0), N_COMPONENTS, random_state=seed)),
)
TITLE = "Which bits?"
TEXT = f"""
The same vectors, turned into bits in three ways: signs of random projections (*signs*), and ITQ after PCA or after
generalised Nyström PCA to as many components as bits. ITQ gives at most as many bits as the vectors have directions;
beyond that it is not possible, and the table says how many there are. Embeddings of {N_COMPONENTS} numbers: Nyström of
the Weisfeiler-Lehman kernel (*NCI1*: 2000 of its graphs), of gappy 4-mers (*splice*) and of the heat kernel on the
sphere, contrast 4 (*WebKB*: counts of 1312 words in 4166 pages), D2KE with dynamic time warping (*JapaneseVowels*),
optical features of graphlets (*SBM*: 1000 graphs in two classes of equal degree). Vectors are centred on the training
part, for all codes and for the reference.

A fifth of the objects, stratified, is the test part; everything is learnt from the others. Accuracy (percent): of
`HDClassifier`, and of the {N_VOTES} nearest training codes; for the vectors themselves (*floats*) of `HDClassifier`,
of the {N_VOTES} nearest by cosine, and of a linear SVM on standardised vectors, whose C five folds of the training part
choose. Nothing else is tuned. Recall: how many of the {K} training codes nearest to a test code are among the {K}
training vectors nearest to its vector by cosine (ties count as right), percent. Flipped: each bit of the test codes
is flipped with that probability, training codes are clean. Mean ± standard deviation over seeds, which draw split,
embedding, codes and flips.
"""


def measure(task: Task, seeds: int) -> list[Record]:
    """Classify and search with the vectors, and with every code, length and share of flipped bits, with every seed."""
    records: list[Record] = []
    for seed in range(seeds):
        X, y = task.load(seed)
        splitter = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=seed)
        train, test = next(splitter.split(y[:, None], y))
        embedding = task.embedding(seed).fit(take(X, train))
        V, W = (np.asarray(embedding.transform(take(X, rows))) for rows in (train, test))
        mean = V.mean(axis=0)
        scored = score(V - mean, W - mean, y[train], y[test], seed)
        records += [{"set": task.name, "seed": seed, **record} for record in scored]
    return records


def score(V: npt.NDArray, W: npt.NDArray, y: npt.NDArray, z: npt.NDArray, seed: int) -> list[Record]:
    """Return the records of centred training and test vectors `V`, `W` with labels `y`, `z`."""
    far = -unit(W) @ unit(V).T
    nearest = np.argsort(far, axis=1, kind="stable")[:, :K]
    found: dict[str, Any] = {
        "classifier": accuracy(HDClassifier(random_state=seed).fit(V, y).predict(W), z),
        "neighbours": accuracy(vote(y[nearest[:, :N_VOTES]]), z),
        "recall": 100.0,
        "svm": accuracy(tuned_predictions(V, y, W)[0], z),
    }
    records: list[Record] = [{"code": FLOATS, "bits": 0, "flipped": 0.0, **found, "note": ""}]
    rank = rank_of(V)
    for code, n_bits in product(CODES, BITS):
        encoder, note = fitted_coder(code, n_bits, V, rank, seed)
        if encoder is None:
            nothing = dict.fromkeys(found, "")
            records.append({"code": code, "bits": n_bits, "flipped": 0.0, **nothing, "note": note})
            continue
        codes, clean = encoder.transform(V), encoder.transform(W)
        classifier = HDClassifier(random_state=seed).fit(codes, y)
        index = HammingIndex(n_bits).fit(codes)
        for share in FLIPS:
            queries = flip_bits(clean, share, random_state=seed)
            rows = index.kneighbors(queries, K, return_distance=False)
            found = {
                "classifier": accuracy(classifier.predict(queries), z),
                "neighbours": accuracy(vote(y[rows[:, :N_VOTES]]), z),
                "recall": round(100 * float(np.mean(shares_found(far, rows))), 3),
                "svm": "",
            }
            records.append({"code": code, "bits": n_bits, "flipped": share, **found, "note": ""})
    return records


def unit(V: npt.NDArray) -> npt.NDArray:
    """Return vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(lengths > 0, lengths, 1)


def vote(labels: npt.NDArray) -> npt.NDArray:
    """Return the most frequent label of each row, among equals the one that comes first in it."""
    counts = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    return np.take_along_axis(labels, counts.argmax(axis=1)[:, None], axis=1)[:, 0]


def accuracy(predicted: npt.NDArray, expected: npt.NDArray) -> float:
    """Return the percentage of equal labels."""
    return round(100 * float(np.mean(predicted == expected)), 3)


_MEASURES = {
    "classifier": "Accuracy of HDClassifier",
    "neighbours": f"Accuracy of the {N_VOTES} nearest codes",
    "recall": f"recall@{K} of the vectors' own neighbours",
}


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return tables against the number of bits and the share of flipped ones, and the picture."""
    sets = distinct(records, "set")
    tables = [_against_bits(records, sets, column) for column in _MEASURES]
    tables += [_against_flips(records, sets, column) for column in _MEASURES]
    curves: dict[str, dict[str, list[float]]] = {}
    for (column, label), name in product((("classifier", "accuracy"), ("recall", f"recall@{K}")), sets):
        lines = curves.setdefault(f"{name}: {label}", {})
        for share, code in product((0.0, 0.1), CODES):
            runs = [measured(records, column, set=name, code=code, bits=n, flipped=share) for n in BITS]
            lines[f"{code}, {share:.0%} flipped" if share else code] = [
                float(np.mean(r)) if r else np.nan for r in runs
            ]
    figure = panels(curves, np.log2(BITS).tolist(), "log₂ of bits", "percent", columns=len(sets))
    return [*tables, *not_possible(records, ("set", "code"))], figure


def _against_bits(records: list[Record], sets: list[str], column: str) -> Table:
    extra = {"classifier": [FLOATS, "floats, linear SVM"], "neighbours": [FLOATS], "recall": []}[column]
    table = Table(_MEASURES[column], ["set", "bits by", *map(str, BITS), *extra])
    for name, code in product(sets, CODES):
        where = {"set": name, "code": code, "flipped": 0.0}
        cells = [summary(measured(records, column, bits=n, **where)) or "not possible" for n in BITS]
        cells += [summary(measured(records, c, set=name, code=FLOATS)) for c in (column, "svm")[: len(extra)]]
        table.rows.append([name, code, *cells])
    return table


def _against_flips(records: list[Record], sets: list[str], column: str) -> Table:
    table = Table(f"{_MEASURES[column]}, bits flipped", ["set", "bits by", "bits", *(f"{p:.0%}" for p in FLIPS)])
    for name, code, n_bits in product(sets, CODES, BITS):
        where = {"set": name, "code": code, "bits": n_bits}
        cells = [summary(measured(records, column, flipped=share, **where)) for share in FLIPS]
        if cells[0]:
            table.rows.append([name, code, n_bits, *cells])
    return table
