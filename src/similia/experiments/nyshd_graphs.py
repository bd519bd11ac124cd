"""NysHD, Table 2: graph classification with the propagation kernel against GraphHD."""

from __future__ import annotations

from collections.abc import Sequence

from similia.experiments._nyshd import section
from similia.experiments._paper import GRAPH_TASKS, choose
from similia.experiments._report import Section

_TEXT = """
Propagation kernel with the paper's number of terms t (`n_iter = t - 1`), min(n, max(300, 2 %)) uniform landmarks,
10,000 bits, 20 epochs. Node labels, or the attributes alone where a set has them (ENZYMES, BZR, COX2), as in the
paper. Chosen by cross-validation on the training part, from one grid for all sets of a kind: the bin width (1e-4 or 1e-2
for labels; 1, 2 or 4 for attributes), the metric (labels: total variation or Hellinger; attributes: L1), whether
attributes are standardised, and the learner (prototypes that start from zero, as in the paper's supplement, or from the
bundle of a class, as in its main text); at most 12 trials. GraphHD gets 12 (damping of PageRank, bits or counts, both
learners). The networks' rows are quoted.
*Unquantised* is the same learner on the Nyström vectors themselves.
"""


def run(only: Sequence[str] | None = None, seeds: int = 10) -> Section:
    """Run Table 2."""
    return section("nyshd-graphs", "NysHD on graphs (Table 2)", _TEXT, choose(GRAPH_TASKS, only), seeds)
