"""What the NysHD paper prints: tasks, kernels, and the accuracies of its Tables 2 and 3 (mean, sd; percent)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Task:
    """One data set of the paper.

    Attributes
    ----------
    name : str
        As the paper prints it.
    source : str
        Name for `similia.datasets.fetch`, or ``"promoters"`` / ``"splice"`` (bundled).
    kind : {"labelled graphs", "attributed graphs", "strings"}
        What the kernel looks at; the paper uses attributes only where a set has them.
    terms : int
        The paper's t of the propagation kernel; it counts terms, so ``n_iter = terms - 1``.
    printed : dict of str to (float, float)
        Method to accuracy and its standard deviation.
    stands_in : str
        Set where the paper's own data could not be had.
    """

    name: str
    source: str
    kind: Literal["labelled graphs", "attributed graphs", "strings"]
    terms: int = 0
    printed: dict[str, tuple[float, float]] = field(default_factory=dict)
    stands_in: str = ""

    @property
    def best_printed(self) -> tuple[str, float]:
        """The best method of the paper on this set and its mean accuracy."""
        method = max(self.printed, key=lambda m: self.printed[m][0])
        return method, self.printed[method][0]


def _graph_task(name: str, source: str, kind: str, terms: int, *accuracies: tuple[float, float]) -> Task:
    methods = ("DGCNN", "GCN", "GIN", "GIUNet", "GraphHD", "NysHD")
    return Task(name, source, kind, terms, dict(zip(methods, accuracies, strict=True)))  # type: ignore[arg-type]


def _string_task(name: str, source: str, stands_in: str, *accuracies: tuple[float, float]) -> Task:
    methods = ("LM fine-tune", "N-gram", "NysHD")
    return Task(name, source, "strings", 0, dict(zip(methods, accuracies, strict=True)), stands_in)


# fmt: off
GRAPH_TASKS = (
    _graph_task("NCI1", "NCI1", "labelled graphs", 5,
                (70.2, 2.2), (79.9, 1.1), (73.4, 1.7), (72.4, 1.4), (60.0, 2.1), (73.8, 2.2)),
    _graph_task("ENZYMES", "ENZYMES", "attributed graphs", 1,
                (36.9, 4.6), (60.7, 2.1), (28.8, 4.2), (29.9, 4.0), (23.2, 2.3), (61.3, 2.5)),
    _graph_task("D&D", "DD", "labelled graphs", 2,
                (74.5, 3.4), (74.8, 1.6), (67.5, 5.9), (63.4, 6.9), (67.6, 1.3), (76.2, 2.8)),
    _graph_task("BZR", "BZR", "attributed graphs", 1,
                (81.5, 4.4), (84.2, 2.2), (76.4, 8.4), (78.3, 10.7), (74.9, 2.1), (82.0, 3.3)),
    _graph_task("MUTAG", "MUTAG", "labelled graphs", 10,
                (82.9, 4.1), (85.5, 3.8), (76.8, 9.6), (85.0, 4.7), (85.3, 10.2), (85.5, 3.4)),
    _graph_task("COX2", "COX2", "attributed graphs", 5,
                (78.3, 2.7), (83.1, 3.7), (78.1, 4.3), (77.4, 7.0), (81.9, 3.9), (74.6, 3.7)),
    _graph_task("NCI109", "NCI109", "labelled graphs", 5,
                (71.1, 2.2), (80.2, 1.1), (70.8, 2.6), (68.8, 4.3), (59.9, 2.1), (71.8, 2.0)),
    _graph_task("Mutagenicity", "Mutagenicity", "labelled graphs", 3,
                (75.0, 1.3), (79.9, 1.0), (78.0, 1.7), (76.5, 0.8), (59.8, 1.7), (75.2, 0.9)),
)
STRING_TASKS = (
    _string_task("Protein", "multiloc_proteins", "MultiLoc proteins (the paper's rhodopsins could not be had)",
                 (96.0, 0.0), (96.0, 0.8), (98.0, 0.3)),
    _string_task("SMS", "sms_spam", "", (99.0, 0.0), (97.0, 0.3), (97.0, 0.2)),
    _string_task("Promoter", "promoters", "", (82.0, 2.7), (52.0, 4.0), (89.0, 3.4)),
    _string_task("Splice", "splice_uci", "", (92.0, 1.4), (43.0, 4.9), (72.0, 1.7)),
)
# fmt: on
TASKS = {task.name: task for task in GRAPH_TASKS + STRING_TASKS}
FIGURE_TASKS = tuple(TASKS[name] for name in ("ENZYMES", "NCI1", "Protein", "Promoter"))  # as in Figure 2


def choose(tasks: tuple[Task, ...], only: Sequence[str] | None) -> list[Task]:
    """Return the tasks whose names or kinds are in `only` (all if None)."""
    if only is None:
        return list(tasks)
    names, kinds = [task.name for task in tasks], {getattr(task, "kind", None) for task in tasks}
    for name in only:
        if name not in names and name not in kinds:
            raise ValueError(f"no data set of this experiment is called {name!r}; there are {', '.join(names)}")
    return [task for task in tasks if task.name in only or getattr(task, "kind", None) in only]
