"""Retrieval of strings, graphs, series and point sets in Hamming space, against comparing with all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments._figures import panels
from experiments._report import Record, Table, distinct, summary, values
from similia.codes import ITQ, GeneralizedNystroemPCA, SignRandomProjection
from similia.datasets import fetch
from similia.distances import DTW, Levenshtein, ModifiedHausdorff
from similia.embeddings import D2KE, GraphletSampling, Nystroem, Representatives
from similia.kernels import Spectrum, WeisfeilerLehman
from similia.objects import as_strings, n_objects, take
from similia.search import HammingIndex
from similia.search.answers import shares_found, sorted_candidates
from similia.similarity import Metric

N_COMPONENTS, K, N_CANDIDATES = 512, 10, 100
BITS = (64, 256, 1024)
CODES = ("signs", "PCA, ITQ", "GN PCA, ITQ")
WINDOW, STEP = 60, 4  # letters of a window of the proteins, letters from one to the next

Embeddings = dict[str, Callable[[int], Any]]


@dataclass(frozen=True)
class Task:
    """Objects (at most so many), what true neighbours are by, and the embeddings for the codes, the main one first."""

    name: str
    source: str
    metric: Metric
    embeddings: Embeddings
    most: int = 10_000


def _d2ke(distance: Any, objects: Any = "auto") -> Callable[[int], Any]:
    return lambda seed: D2KE(distance, N_COMPONENTS, objects, random_state=seed)


def _nystroem(kernel: Any) -> Callable[[int], Any]:
    return lambda seed: Nystroem(kernel, N_COMPONENTS, random_state=seed)


def _graphlets(seed: int) -> Any:
    return GraphletSampling(size=5, n_samples=2000, n_components=N_COMPONENTS, random_state=seed)


_EDIT, _WARP, _SETS = Levenshtein(), DTW(), ModifiedHausdorff()
_WL = WeisfeilerLehman(n_iter=4, normalize=True)
_GRAPHS = {"Nystroem, WL": _nystroem(_WL), "GraphletSampling": _graphlets}


def _by_kmers(k: int) -> Embeddings:
    return {f"Nystroem, {k}-mers": _nystroem(Spectrum(k=k, normalize=True)), "D2KE": _d2ke(_EDIT)}


def _by_distances(distance: Any) -> Embeddings:
    return {"D2KE, objects of the data": _d2ke(distance, Representatives()), "D2KE, random objects": _d2ke(distance)}


TASKS = (
    Task("proteins", "multiloc_proteins", Metric(_EDIT, False), _by_kmers(2)),
    Task("splice", "splice", Metric(_EDIT, False), _by_kmers(4)),
    Task("NCI1", "NCI1", Metric(_WL, True), _GRAPHS),
    Task("REDDIT", "REDDIT-BINARY", Metric(_WL, True), _GRAPHS),
    Task("characters", "character_trajectories", Metric(_WARP, False), _by_distances(_WARP)),
    Task("Auslan", "auslan_nintendo", Metric(_WARP, False), _by_distances(_WARP), most=3000),
    Task("style", "style_sift", Metric(_SETS, False), _by_distances(_SETS)),
)
TITLE = "Retrieval of any objects in Hamming space"
TEXT = f"""
A tenth of the objects, drawn at random, are queries; the others are searched. True neighbours are the {K} nearest by
the Levenshtein distance (*proteins*: 10,000 windows of {WINDOW} letters, one every {STEP} letters; *splice*: 3186
pieces of DNA), the normalised Weisfeiler-Lehman kernel (*NCI1*; *REDDIT*: 2000 graphs), dynamic time warping
(*characters*: 1429 written letters of about 170 points; *Auslan*: 3000 signs, about 70 points of 8 channels) and the
modified Hausdorff distance (*style*: 2184 pictures of up to 64 descriptors). An object that is found counts if it is
no farther than the true {K}th. Objects become vectors of {N_COMPONENTS} numbers (or of the rank of the landmarks'
kernel, if less), and these bits: by the signs of random projections, after the mean is subtracted (*signs*), or by PCA
or generalised Nyström PCA to as many components as bits, and ITQ, which is not possible beyond the rank of the
vectors. Answers are the {K} nearest codes, or the {K} best of the {N_CANDIDATES} nearest after these have been
compared with the query by the true measure. Nothing is tuned.

Recall is percent, mean ± standard deviation over seeds, which draw queries and encoders. In brackets: how many times
faster a query is than comparing it with all objects, everything from the object on counted (median over seeds; all
queries together on both sides; features that a kernel counts are counted beforehand for the searched objects, as
`SimilaritySearch` does once). A WL kernel is a product of sparse counts, so quick that there is little to save.
GraphletSampling sees structure only, the kernel of *NCI1* labels
too. The picture shows the first embedding of each set.
"""


def measure(task: Task, seeds: int) -> list[Record]:
    """Search with every embedding, code and length, with every seed."""
    X = load(task)
    records = []
    for seed in range(seeds):
        n = n_objects(X)
        order = np.random.default_rng(seed).permutation(n)
        queries, rest = (task.metric.as_objects(take(X, rows)) for rows in (order[: n // 10], order[n // 10 :]))
        task.metric.between(take(queries, [0]), take(rest, [0]))  # what is compiled at first use
        brute_force, D = timed(partial(task.metric.between, queries, rest))
        D = -D if task.metric.is_kernel else D
        for name, make in task.embeddings.items():
            for found in search(make(seed), rest, queries, task.metric, seed):
                record: Record = {"set": task.name, "embedding": name, "code": found.code, "bits": found.n_bits}
                record |= {
                    "candidates": found.n_candidates,
                    "seed": seed,
                    "recall": "",
                    "speed": "",
                    "note": found.note,
                }
                if found.rows is not None:
                    record["recall"] = round(100 * float(np.mean(shares_found(D, found.rows))), 3)
                    record["speed"] = float(f"{brute_force / found.seconds:.4g}")
                records.append(record)
    return records


def load(task: Task) -> Any:
    """Return the objects of a task."""
    X = fetch(task.source).data
    if task.source == "multiloc_proteins":
        text = "".join(X)
        X = [text[i : i + WINDOW] for i in range(0, len(text) - WINDOW + 1, STEP)][: task.most]
    if n_objects(X) > task.most:
        X = take(X, np.random.default_rng(0).permutation(n_objects(X))[: task.most])
    return as_strings(X) if isinstance(X, list) else X


class Found(NamedTuple):
    """Answers (q, k) of one way to search and its seconds for all queries, or a note why there are none."""

    code: str
    n_bits: int
    n_candidates: int
    rows: npt.NDArray[np.int64] | None
    seconds: float
    note: str = ""


def search(embedding: Any, objects: Any, queries: Any, metric: Metric, seed: int) -> Iterator[Found]:
    """Yield what is found with each code and length, first as it is, then with candidates compared once more.

    `SimilaritySearch` gives the same answers; here objects are embedded once for all codes.
    """
    V = embedding.fit_transform(objects)
    rank, kept = rank_of(V), metric.kept(objects)
    metric.of_candidates(take(queries, [0]), objects, np.zeros((1, 1), np.int64), kept)  # what is compiled at first use
    embedding.transform(take(queries, [0, 1]))
    to_vectors, W = timed(lambda: embedding.transform(queries))
    for code, n_bits in product(CODES, BITS):
        encoder, note = fitted_coder(code, n_bits, V, rank, seed)
        if encoder is None:
            yield from (Found(code, n_bits, n, None, np.nan, note) for n in (0, N_CANDIDATES))
            continue
        index = HammingIndex(n_bits).fit(encoder.transform(V))

        def nearest(k: int, encoder: Any = encoder, index: HammingIndex = index) -> npt.NDArray[np.int64]:
            return index.kneighbors(encoder.transform(W), min(k, len(index)), return_distance=False)

        def best(nearest: Callable[[int], Any] = nearest) -> npt.NDArray[np.int64]:
            rows = nearest(N_CANDIDATES)
            values = metric.of_candidates(queries, objects, rows, kept)
            order = sorted_candidates(-values if metric.is_kernel else values, rows)[:, :K]
            return np.take_along_axis(rows, order, axis=1)

        nearest(K)
        seconds, rows = timed(partial(nearest, K))
        yield Found(code, n_bits, 0, rows, to_vectors + seconds)
        seconds, rows = timed(best)
        yield Found(code, n_bits, N_CANDIDATES, rows, to_vectors + seconds)


def fitted_coder(code: str, n_bits: int, V: npt.NDArray, rank: int, seed: int, centre: bool = False) -> tuple[Any, str]:
    """Return the encoder of vectors to bits, fitted, and an empty note; or None and why there is none.

    `rank` is that of the centred vectors.
    """
    if code == "signs":
        centred = StandardScaler(with_std=False)
        return make_pipeline(centred, SignRandomProjection(n_bits, random_state=seed)).fit(V), ""
    if n_bits > rank:
        return None, f"the vectors have rank {rank}"
    n, d = V.shape
    reduction: Any = PCA(n_bits, random_state=seed)
    if code.startswith("GN"):
        reduction = GeneralizedNystroemPCA(n_bits, min(n, 4 * n_bits), min(d, 2 * n_bits), random_state=seed)
    try:
        return make_pipeline(reduction, ITQ(n_bits, random_state=seed)).fit(V), ""
    except ValueError as error:  # the sample has a lower rank than all rows
        return None, str(error).split(";")[0]


def rank_of(V: npt.NDArray) -> int:
    """Return the number of directions that vectors have after their mean is subtracted."""
    return int(np.linalg.matrix_rank(V - V.mean(axis=0)))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds and result of a call."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def present(records: list[Record]) -> tuple[list[Table], Any]:
    """Return a table for each set, one of what was not possible, and the picture."""
    tables = []
    curves: dict[str, dict[str, list[float]]] = {}
    for name in distinct(records, "set"):
        embeddings = distinct([record for record in records if record["set"] == name], "embedding")
        table = Table(f"{name}: recall@{K} (times the speed of comparing with all)", [*_COLUMNS, *map(str, BITS)])
        curves[name] = {}
        for embedding, code, n in product(embeddings, CODES, (0, N_CANDIDATES)):
            where = {"set": name, "embedding": embedding, "code": code, "candidates": n}
            runs = [measured(records, "recall", bits=bits, **where) for bits in BITS]
            speeds = [measured(records, "speed", bits=bits, **where) for bits in BITS]
            table.rows.append([embedding, code, n or "none", *map(_cell, runs, speeds)])
            if embedding == embeddings[0]:
                label = f"{code}, {n} compared" if n else code
                curves[name][label] = [float(np.mean(run)) if run else np.nan for run in runs]
        tables.append(table)
    figure = panels(curves, np.log2(BITS).tolist(), "log₂ of bits", f"recall@{K} (%)", columns=3)
    return [*tables, *not_possible(records, ("set", "embedding", "code"))], figure


def not_possible(records: Sequence[Record], columns: Sequence[str]) -> list[Table]:
    """Return a table of the lengths for which there are notes why there are no codes, if there are any."""
    table = Table("Not possible", [*columns, "bits", "why"])
    for row in product(*(distinct(records, column) for column in columns)):
        noted = [r for r in records if r["note"] and all(r[c] == v for c, v in zip(columns, row, strict=True))]
        if noted:
            table.rows.append([*row, ", ".join(map(str, distinct(noted, "bits"))), noted[0]["note"]])
    return [table] if table.rows else []


_COLUMNS = ("embedding", "bits by", "candidates compared")


def measured(records: Sequence[Record], column: str, **where: Any) -> list[float]:
    """Return `column` of the records that have a number there."""
    return [value for value in values(records, column, **where) if value != ""]


def _cell(recalls: list[float], speeds: list[float]) -> str:
    return f"{summary(recalls)} ({np.median(speeds):.3g})" if recalls else "not possible"
