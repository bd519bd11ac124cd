"""Which features of molecules, and which similarity of them? Weisfeiler-Lehman and Morgan, cosine and min-max."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from experiments._report import Record, Table, distinct, standard_error, values
from similia.core.config import track
from similia.datasets import fetch
from similia.kernels import MinMax, Morgan, Normalized, ShortestPath, Sum, WeisfeilerLehman
from similia.learn import KernelRidge, KernelSVC
from similia.objects import from_smiles, take
from similia.objects.molecules import as_smiles


@dataclass(frozen=True)
class Task:
    """A set of molecules, by its name for `similia.datasets.fetch`."""

    name: str
    kind: str = "molecules"
    metric: str = "RMSE"


TASKS = (Task("ESOL"), Task("Photoswitch"), Task("BBBP", metric="AUC"))
KERNELS = {
    "WL, 1 round": WeisfeilerLehman(n_iter=1),
    "WL, 2 rounds": WeisfeilerLehman(n_iter=2),
    "WL, 3 rounds": WeisfeilerLehman(n_iter=3),
    "WL, 2 rounds, no details": WeisfeilerLehman(n_iter=2, details=False),
    "WL, sum of 0 to 2 rounds": Sum([WeisfeilerLehman(n_iter=n) for n in (0, 1, 2)]),
    "WL, sum of 0 to 3 rounds": Sum([WeisfeilerLehman(n_iter=n) for n in (0, 1, 2, 3)]),
    "Morgan, radius 2 (count ECFP4)": Morgan(),
    "Morgan, radius 3 (count ECFP6)": Morgan(radius=3),
    "Morgan, radius 2, roles (count FCFP4)": Morgan(invariants="features"),
}
BOTH, NEAR = "WL, sum of 0 to 3 rounds; shortest paths: mean of two", KERNELS["WL, sum of 0 to 3 rounds"]
SIMILARITIES = {"min-max": MinMax, "cosine": Normalized}
CHOSEN, FOREST, MEAN = "the above of least leave-one-out error", "count ECFP4 of 2048 bits, forest", "no molecule: mean"
TITLE = "Molecules: features of atoms' neighbourhoods, and their similarity"
TEXT = """
Random splits, 80 % to train; mean ± standard error over the splits. Solubility (ESOL) and wavelength (Photoswitch):
RMSE of kernel ridge regression, `KernelRidge(alpha="auto")`, on standardised targets. Blood-brain barrier (BBBP): AUC
of `KernelSVC(C=10)`. *Min-max* is the sum of minima of counts over that of maxima (count Tanimoto), *cosine* the
normalised inner product. WL counts graphs whose atoms are labelled by symbol, with details (charge, hydrogens,
neighbours, rings, handedness) unless it says no. *Least leave-one-out error* takes, on each split, the row with min-max
whose error on the training part is smallest. The *mean of two* similarities sees both the surroundings of atoms and
their distances. The forest has 100 trees and tries a third of the columns for each branch. Details and the mean of two
were found on ESOL and Photoswitch, so look at other sets before you trust the last few percent.
"""


def measure(task: Task, seeds: int, known: Sequence[Record] = ()) -> Iterator[Record]:
    """Score all features with both similarities, and what to compare them with, on each random split.

    `known` are the rows of a run before: splits that it finished are not scored again.
    """
    bunch = fetch(task.name)
    forms = {False: from_smiles(bunch.data), True: as_smiles(bunch.data)}
    folded, y = _folded(bunch.data), np.asarray(bunch.target, dtype=float)
    for run in track(range(seeds), task.name, seeds):
        before = [record for record in known if record["run"] == run]
        if MEAN in values(before, "features"):  # the last row of a split
            yield from before
            continue
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=run)
        where, errors = {"set": task.name, "metric": task.metric, "run": run}, {}
        for name, kernel in KERNELS.items():
            X = forms[isinstance(kernel, Morgan)]
            for similarity, of in SIMILARITIES.items():
                model = _machine(task, of(kernel)).fit(take(X, train), y[train])
                score = _score(task, model, take(X, test), y[test])
                yield {**where, "features": name, "similarity": similarity, "score": score}
                if similarity == "min-max" and task.metric == "RMSE":
                    errors[model.regressor_.loo_error_] = score
        if errors:
            yield {**where, "features": CHOSEN, "similarity": "min-max", "score": errors[min(errors)]}
        X = forms[False]
        for similarity, of in SIMILARITIES.items():
            model = _machine(task, Sum([of(NEAR), of(ShortestPath())])).fit(take(X, train), y[train])
            score = _score(task, model, take(X, test), y[test])
            yield {**where, "features": BOTH, "similarity": similarity, "score": score}
        forest = RandomForestRegressor if task.metric == "RMSE" else RandomForestClassifier
        model = forest(100, max_features=1 / 3, random_state=run).fit(folded[train], y[train])
        found = {FOREST: _score(task, model, folded[test], y[test])}
        found[MEAN] = float(np.sqrt(np.mean((y[test] - y[train].mean()) ** 2))) if task.metric == "RMSE" else 0.5
        yield from ({**where, "features": name, "similarity": "-", "score": score} for name, score in found.items())


def _machine(task: Task, kernel: Any) -> Any:
    if task.metric == "AUC":
        return KernelSVC(kernel, C=10.0)
    return TransformedTargetRegressor(KernelRidge(kernel, alpha="auto"), transformer=StandardScaler())


def _score(task: Task, model: Any, X: Any, y: npt.NDArray) -> float:
    if task.metric == "RMSE":
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    decisions = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    return float(roc_auc_score(y, decisions))


def _folded(smiles: list[str]) -> npt.NDArray[np.float32]:
    """Return what a specialist types first: counts of Morgan's neighbourhoods, folded to 2048 columns, (n, 2048)."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    found = [generator.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.array(found, dtype=np.float32)


def present(records: list[Record]) -> tuple[list[Table], None]:
    """Return one table for each set: a row for each kind of features, a column for each similarity."""
    tables = []
    for name in distinct(records, "set"):
        rows = [record for record in records if record["set"] == name]
        splits = len(distinct(rows, "run"))
        table = Table(f"{name}: {rows[0]['metric']} on {splits} splits", ["features", *SIMILARITIES])
        for features in distinct(rows, "features"):
            alone = values(rows, "score", features=features, similarity="-")
            cells = [_mean(values(rows, "score", features=features, similarity=s)) for s in SIMILARITIES]
            table.rows.append([features, *([_mean(alone), ""] if alone else cells)])
        tables.append(table)
    return tables, None


def _mean(scores: list[float]) -> str:
    """Return the mean of `scores` ± its standard error with three digits; an empty text for none."""
    if not scores:
        return ""
    return f"{np.mean(scores):.3f} ± {standard_error(scores):.3f}"
