"""The published tables, run again: ``python dev.py reproduce NAME``.

Each experiment is a module with its ``TASKS``, ``TITLE`` and ``TEXT``, ``measure(task, seeds)``, which returns or
yields single results, and ``present(records)``, which makes tables and a picture of them. Where ``measure`` takes
``budget``, the command has that option; where it takes ``known`` (the rows that a run before has written), it yields
these first, further rows are written as they come, and an interrupted run goes on.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from similia.core.config import track
from similia.core.text import did_you_mean

if TYPE_CHECKING:
    from experiments._report import Section

EXPERIMENTS = {
    "nyshd-graphs": "NysHD, Table 2: eight sets of graphs",
    "nyshd-strings": "NysHD, Table 3: four sets of strings",
    "nyshd-kernel-error": "NysHD, Figure 2: how well codes keep the kernel",
    "nyshd-landmarks": "NysHD, supplement Figure 1, and NysX: accuracy against number and choice of landmarks",
    "nyshd-learners": "NysHD: ways to learn prototypes from the same bits, beside tuned machines",
    "nyshd-calibration": "NysHD: probabilities of all learners, beside scikit-learn's calibration",
    "nyshd-devices": "NysHD on small devices: the sizes that compress chooses, in whole numbers",
    "nyshd-classic": "NysHD on MNIST, gestures (EMG) and spoken letters (ISOLET), beside torchhd",
    "nyshd-faults": "accuracy against the share of flipped bits, in codes and in prototypes",
    "nyshd-best": "the best pipeline similia offers for each set, beside the best of the paper",
    "nyshd-shift": "similarity and accuracy when series are shifted or stretched in time",
    "d2ke": "D2KE, Tables 1 to 3: all of d2ke-series, d2ke-strings and d2ke-sets",
    "d2ke-series": "D2KE, Table 1: ten sets of time series under dynamic time warping",
    "d2ke-strings": "D2KE, Table 2: strings under the Levenshtein distance",
    "d2ke-sets": "D2KE, Table 3: sets of image descriptors under the modified Hausdorff distance",
    "d2ke-theory": "D2KE: excess risk against n, and the kernel for large gamma, beside the theory",
    "d2ke-scaling": "D2KE: time against the number of objects and against their length",
    "graphlet-sbm": "GSA-phi: accuracy on a stochastic block model against size, samples and features",
    "graphlet-real": "GSA-phi: real graphs by structure only, optical features against isomorphism classes",
    "graphlet-cost": "GSA-phi, Table 3.1: seconds of each map against size and number of features",
    "graphlet-mmd": "GSA-phi: errors of MMD² and of histograms beside Theorems 4 and 5",
    "hashing-map": "generalised Nyström hashing, Figure 1: mAP against the number of bits",
    "hashing-ratio": "generalised Nyström hashing, Figure 2: mAP and time against shares; Theorem 2",
    "hashing-scale": "generalised Nyström hashing: 1,000,000 x 12,800, made in chunks, in one process of 2 GiB",
    "hashing-objects": "recall and speed of retrieval in Hamming space: strings, graphs, series, point sets",
    "heat-webkb": "heat kernel on the sphere, Tables 1 and 2: web pages by six kernels, control and nested choice",
    "heat-sp500": "heat kernel on the sphere, Table 4: sectors of stocks from their daily returns",
    "heat-tcga": "heat kernel on the sphere, Table 3: mutations of genes, where a MAF file is supplied",
    "heat-curves": "heat kernel on the sphere, Figure 1: exact, parametrix and its orders; diffusion on S^2",
    "heat-vc": "heat kernel on the sphere, Figures 2 and 3: accuracy against the effective sample size",
    "specialists": "AutoClassifier and AutoRegressor beside the tools that a specialist of each kind would pick",
    "clusters": "clusters of 20 sets of series, beside tslearn's and aeon's k-means and k-shape",
    "molecules": "molecules: features of atoms' neighbourhoods, cosine and min-max, beside a forest",
    "gaussian-processes": "molecules: errors and uncertainty of Gaussian processes, beside gpytorch",
    "conformal": "coverage and size of conformal sets and intervals on 200 splits, five kinds of objects, beside MAPIE",
    "outliers": "objects of a rare class among others, beside an isolation forest and LOF",
    "mean-maps": "graphs with numbers on nodes as sets of nodes and edges: letters, ENZYMES with attributes",
    "selection": "select beside the best recipe chosen afterwards, and nearest neighbours",
    "budgets": "the automatic choice with 60 seconds beside itself with 600",
    "bits": "which bits? accuracy and recall against the number of bits, by three codes, with flipped bits",
}
_PARTS = {f"d2ke-{kind}": ("d2ke", kind) for kind in ("series", "strings", "sets")}  # one table in three commands


def run(
    name: str,
    only: Sequence[str] | None = None,
    seeds: int = 10,
    *,
    budget: float | None = None,
    output: str | os.PathLike[str] | None = None,
) -> Section:
    """Run an experiment.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`.
    only : sequence of str, optional
        Names of data sets, as the paper prints them, or kinds of objects; all by default.
    seeds : int, default=10
        Number of seeds and of stratified splits.
    budget : float, optional
        Seconds for similia, of an experiment that has a budget.
    output : path, optional
        Folder in which an experiment of many hours keeps its rows as they come, and finds those of a run before.

    Returns
    -------
    Section
        Tables and single results; ``section.write(folder)`` puts them into files.

    Raises
    ------
    ValueError
        If there is no such experiment or data set, or the experiment has no budget.
    """
    if name not in EXPERIMENTS:
        meant = did_you_mean(name, EXPERIMENTS)
        raise ValueError(f"no experiment is called {name!r}{meant}; there are {', '.join(EXPERIMENTS)}")
    from experiments._paper import choose
    from experiments._report import Section

    name, kind = _PARTS.get(name, (name, None))
    module = importlib.import_module(f"experiments.{name.replace('-', '_')}")
    tasks = choose(tuple(task for task in module.TASKS if kind is None or task.kind == kind), only)
    section = Section(name, module.TITLE, module.TEXT, [], module.present)
    takes = inspect.signature(module.measure).parameters
    if budget is not None and "budget" not in takes:
        raise ValueError(f"{name} has no budget")
    options: dict[str, Any] = {} if budget is None else {"budget": budget}
    resumes = output is not None and "known" in takes
    known = section.known(output) if output is not None else []
    for task in track(tasks, name, len(tasks)):
        if resumes:
            options["known"] = [record for record in known if record["set"] == task.name]
        for record in module.measure(task, seeds, **options):
            section.records.append(record)
            if output is not None and resumes and record not in options["known"]:
                section.write_rows(output)
    return section
