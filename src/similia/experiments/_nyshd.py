"""What the two tables of NysHD share: the methods, their settings to tune, and the comparison itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import make_pipeline

from similia._progress import track
from similia.codes import GraphHDEncoder, NGramEncoder, SignRandomProjection
from similia.embeddings import Nystroem
from similia.experiments._paper import Task
from similia.experiments._protocol import (
    Method,
    Params,
    Scores,
    load_task,
    majority,
    paired_interval,
    paper_split,
    run_on_paper_split,
    run_on_stratified_splits,
    stratified_splits,
)
from similia.experiments._report import Section, Table, mean_sd
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

    For strings there is one more: one n-gram as long as the string.
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

    return [Method("GraphHD", graphhd, learner, GRAPHHD_GRID, stateless=True)]


@dataclass
class Comparison:
    """Scores of every method on one task under both protocols."""

    task: Task
    paper: dict[str, Scores]
    stratified: dict[str, Scores]

    def difference(self, a: str, b: str) -> str:
        """Return a's accuracy minus b's on the stratified splits with its 95 % interval."""
        mean, half = paired_interval(self.stratified[a], self.stratified[b])
        return f"{mean:+.1f} ± {half:.1f}"

    def records(self) -> Iterable[dict[str, Any]]:
        """Yield every single result."""
        for protocol, scores_of in (("paper", self.paper), ("stratified", self.stratified)):
            for method, scores in scores_of.items():
                for i, accuracy in enumerate(scores.accuracy):
                    yield {
                        "set": self.task.name,
                        "protocol": protocol,
                        "method": method,
                        "run": i,
                        "accuracy": round(accuracy, 3),
                        "balanced_accuracy": round(scores.balanced[i], 3),
                        "fit_seconds": round(scores.seconds[i], 4),
                        "chosen": scores.chosen[i] if scores.chosen else "",
                    }


def compare(task: Task, seeds: int) -> Comparison:
    """Run every method on one task: tuned baseline, NysHD with both learners, unquantised, majority class."""
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
    return Comparison(task, paper, stratified)


def accuracy_table(title: str, comparisons: Sequence[Comparison], which: str, quoted: bool) -> Table:
    """Return methods by sets: our mean ± sd, and the paper's rows where `quoted`."""
    table = Table(title, ["method", *(c.task.name for c in comparisons)])
    if quoted:
        for method in comparisons[0].task.printed:
            table.rows.append([f"{method} (paper)", *(mean_sd(*c.task.printed[method]) for c in comparisons)])
    for method in getattr(comparisons[0], which):
        cells = [mean_sd(*getattr(c, which)[method].mean_sd()) for c in comparisons]
        table.rows.append([f"**{method}** (ours)" if method == "NysHD" else f"{method} (ours)", *cells])
    return table


def section(name: str, title: str, text: str, tasks: Sequence[Task], seeds: int) -> Section:
    """Run a table of the paper and report it."""
    comparisons = [compare(task, seeds) for task in track(tasks, name, len(tasks))]
    baseline = "N-gram" if tasks[0].kind == "strings" else "GraphHD"
    margin = Table(
        "NysHD minus others on the stratified splits (95 % paired interval)",
        ["against", *(task.name for task in tasks)],
        [[other, *(c.difference("NysHD", other) for c in comparisons)] for other in (baseline, "majority class")],
    )
    balanced = Table("Balanced accuracy, stratified splits", ["method", *(task.name for task in tasks)])
    seconds = Table("Seconds to encode and fit (paper's split, median)", ["method", *(task.name for task in tasks)])
    for method in comparisons[0].paper:
        means = [sum(c.stratified[method].balanced) / seeds for c in comparisons]
        balanced.rows.append([method, *means])
        times = [sorted(c.paper[method].seconds)[len(c.paper[method].seconds) // 2] for c in comparisons]
        seconds.rows.append([method, *(f"{t:.2f}" for t in times)])
    chosen = Table("Settings chosen on the training part of the paper's split", ["set", "NysHD", baseline])
    for c in comparisons:
        chosen.rows.append([c.task.name, _settings(c.paper["NysHD"]), _settings(c.paper[baseline])])
    return Section(
        name,
        title,
        text,
        f"similia reproduce {name} --seeds {seeds}",
        [
            accuracy_table("Paper's protocol: one split, ten seeds", comparisons, "paper", quoted=True),
            accuracy_table(
                "Ten stratified splits, tuned on each training part", comparisons, "stratified", quoted=False
            ),
            margin,
            balanced,
            seconds,
            chosen,
        ],
        [record for c in comparisons for record in c.records()],
    )


def _settings(scores: Scores) -> str:
    return ", ".join(f"{key}={value}" for key, value in scores.chosen[0].items())
