"""What the two tables of NysHD share: the methods, their settings to tune, and the comparison itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from sklearn.pipeline import make_pipeline

from experiments._paper import TASKS, Task
from experiments._protocol import (
    Method,
    Params,
    load_task,
    majority,
    paired_interval,
    paper_split,
    run_on_paper_split,
    run_on_stratified_splits,
    stratified_splits,
)
from experiments._report import Record, Table, distinct, mean_sd, summary, values
from similia.codes import GraphHDEncoder, NGramEncoder, SignRandomProjection
from similia.embeddings import Nystroem
from similia.kernels import GappyKmers, Propagation
from similia.learn import HDClassifier
from similia.objects import AttributeScaler

N_BITS = 20_000  # the paper does not print its d

# One small grid for all sets of a kind; the paper says only that hyperparameters "were chosen empirically".
GRIDS: dict[str, list[Params]] = {
    "labelled graphs": [{"bin_width": w, "metric": m} for w, m in itertools.product((1e-4, 1e-2), ("tv", "hellinger"))],
    "attributed graphs": [{"bin_width": w} for w in (1.0, 2.0, 4.0)],
    "strings": [{}],
}
NGRAM_GRID = [
    {"n": n, "binding": binding, "output": output}
    for n, binding, output in itertools.product(range(2, 7), ("multiply", "add"), ("bits", "counts"))
]
GRAPHHD_GRID = [
    {"damping": damping, "output": output, "init": init}
    for damping, output, init in itertools.product((0.5, 0.85, 0.95), ("bits", "counts"), ("zeros", "bundle"))
]


def kernel_steps(task: Task, params: Params | None = None) -> list[Any]:
    """Return the paper's kernel, after a scaler where it looks at attributes.

    `params` is an entry of ``GRIDS``; the middle one, for experiments that do not tune.
    """
    grid = GRIDS[task.kind]
    params = grid[len(grid) // 2] if params is None else params
    if task.kind == "strings":
        return [GappyKmers(k=4, gaps=1)]
    if task.kind == "labelled graphs":
        return [Propagation(n_iter=task.terms - 1, use="labels", **params)]
    per_attribute = Propagation(n_iter=task.terms - 1, use="attributes", metric="l1", per_dimension=True, **params)
    return [AttributeScaler(), per_attribute]


def nystroem_steps(task: Task, params: Params | None, seed: int) -> list[Any]:
    """Return the steps from objects to Nyström vectors, with the paper's number of landmarks."""
    *before, kernel = kernel_steps(task, params)
    return [*before, Nystroem(kernel, n_components="auto", random_state=seed)]


def code_steps(task: Task, params: Params | None, seed: int, n_bits: int = N_BITS) -> list[Any]:
    """Return the steps from objects to packed bits."""
    return [*nystroem_steps(task, params, seed), SignRandomProjection(n_bits, random_state=seed + 1000)]


def nyshd_methods(task: Task) -> list[Method]:
    """Return NysHD as the paper's supplement has it, and its variants, which share the settings it was given.

    Unquantised means the Nyström vectors themselves: the limit of infinitely many real projections.
    """

    def codes(params: Params, seed: int) -> Any:
        return make_pipeline(*code_steps(task, params, seed))

    def fewer(params: Params, seed: int) -> Any:
        return make_pipeline(*code_steps(task, params, seed, n_bits=N_BITS // 2))

    def vectors(params: Params, seed: int) -> Any:
        return make_pipeline(*nystroem_steps(task, params, seed))

    def zeros(params: Params, seed: int) -> HDClassifier:
        return HDClassifier(init="zeros", random_state=seed)

    def bundle(params: Params, seed: int) -> HDClassifier:
        return HDClassifier(init="bundle", random_state=seed)

    return [
        Method("NysHD", codes, zeros, GRIDS[task.kind]),
        Method("NysHD, 10,000 bits", fewer, zeros),
        Method("NysHD, bundle", codes, bundle),
        Method("NysHD, unquantised", vectors, zeros),
    ]


def baseline_methods(task: Task) -> list[Method]:
    """Return the paper's baseline of the task's kind, to be tuned with at least as many trials as NysHD.

    For strings there is one more: one n-gram as long as the string; for graphs, GraphHD with its authors' settings.
    """

    def learner(params: Params, seed: int) -> HDClassifier:
        return HDClassifier(init=params.get("init", "zeros"), random_state=seed)

    if task.kind == "strings":

        def ngram(params: Params, seed: int) -> NGramEncoder:
            return NGramEncoder(
                n=params["n"], binding=params["binding"], output=params["output"], n_bits=N_BITS, random_state=seed
            )

        whole = {"n": 60, "binding": "add", "output": "bits"}
        return [
            Method("N-gram", ngram, learner, NGRAM_GRID, stateless=True),
            Method("N-gram, n = 60", ngram, learner, [whole], stateless=True),
        ]

    def graphhd(params: Params, seed: int) -> GraphHDEncoder:
        return GraphHDEncoder(damping=params["damping"], output=params["output"], n_bits=N_BITS, random_state=seed)

    def untuned(params: Params, seed: int) -> GraphHDEncoder:
        return GraphHDEncoder(n_bits=N_BITS // 2, random_state=seed)

    return [
        Method("GraphHD", graphhd, learner, GRAPHHD_GRID, stateless=True),
        Method("GraphHD, not tuned, 10,000 bits", untuned, learner, stateless=True),
    ]


def measure(task: Task, seeds: int) -> list[Record]:
    """Run every method on one task under both protocols: majority class, tuned baseline, NysHD and its variants."""
    X, y = load_task(task)
    nyshd, *variants = nyshd_methods(task)
    paper = {"majority class": majority(y, [paper_split(len(y))])}
    stratified = {"majority class": majority(y, stratified_splits(y, seeds))}
    for method in (*baseline_methods(task), nyshd):
        paper[method.name] = run_on_paper_split(method, X, y, range(seeds))
        stratified[method.name] = run_on_stratified_splits(method, X, y, seeds)
    for method in variants:  # they share the settings that NysHD was given
        paper[method.name] = run_on_paper_split(method, X, y, range(seeds), paper["NysHD"].chosen[0])
        stratified[method.name] = run_on_stratified_splits(method, X, y, seeds, stratified["NysHD"].chosen)
    records = []
    for protocol, scores_of in (("paper", paper), ("stratified", stratified)):
        for name, scores in scores_of.items():
            records += scores.records(set=task.name, protocol=protocol, method=name)
    return records


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return the tables of one kind of objects."""
    tasks = [TASKS[name] for name in TASKS if name in distinct(records, "set")]
    methods = distinct(records, "method")
    baseline = "N-gram" if tasks[0].kind == "strings" else "GraphHD"
    sets = [task.name for task in tasks]

    def cells(column: str, **where: Any) -> list[list[Any]]:
        return [values(records, column, set=name, **where) for name in sets]

    paper = Table("Paper's protocol: one split, ten seeds", ["method", *sets])
    for method in tasks[0].printed:
        paper.rows.append([f"{method} (paper)", *(mean_sd(*task.printed[method]) for task in tasks)])
    stratified = Table("Stratified splits, tuned on each training part", ["method", *sets])
    balanced = Table("Balanced accuracy, stratified splits", ["method", *sets])
    seconds = Table("Seconds to encode and fit (paper's split, median)", ["method", *sets])
    for method in methods:
        name = f"**{method}** (ours)" if method == "NysHD" else f"{method} (ours)"
        paper.rows.append([name, *map(summary, cells("accuracy", protocol="paper", method=method))])
        stratified.rows.append([name, *map(summary, cells("accuracy", protocol="stratified", method=method))])
        balanced.rows.append([name, *map(summary, cells("balanced_accuracy", protocol="stratified", method=method))])
        times = cells("fit_seconds", protocol="paper", method=method)
        seconds.rows.append([name, *(f"{median(t):.2f}" if t else "" for t in times)])
    gain = Table(f"NysHD minus {baseline}, paper's protocol", ["", *sets, "mean"])
    printed = [task.printed["NysHD"][0] - task.printed[baseline][0] for task in tasks]
    gain.rows.append(["printed in the paper", *printed, mean(printed)])
    ours, others = (cells("accuracy", protocol="paper", method=m) for m in ("NysHD", baseline))
    found = [mean(a) - mean(b) for a, b in zip(ours, others, strict=True)]
    gain.rows.append([f"ours, {baseline} tuned", *found, mean(found)])
    margin = Table("NysHD minus others on the stratified splits, with the 95 % paired interval", ["against", *sets])
    ours = cells("accuracy", protocol="stratified", method="NysHD")
    for method in (baseline, "majority class"):
        others = cells("accuracy", protocol="stratified", method=method)
        margin.rows.append([method, *(difference(a, b) for a, b in zip(ours, others, strict=True))])
    chosen = Table("Settings chosen on the training part of the paper's split", ["set", "NysHD", baseline])
    for name in sets:
        first = [values(records, "chosen", set=name, protocol="paper", method=m)[0] for m in ("NysHD", baseline)]
        chosen.rows.append([name, *first])
    return [paper, gain, stratified, margin, balanced, seconds, chosen], None


def difference(a: Sequence[float], b: Sequence[float]) -> str:
    """Return the mean of a - b over the same splits with its 95 % interval, the corrected one in brackets."""
    gap, half, corrected = paired_interval(a, b)
    return f"{gap:+.1f} ± {half:.1f} ({corrected:.1f})"
