"""What a specialist types instead, and similia: one tool, run in a process and an environment of its own.

    python -P _specialist_tools.py TOOL FOLDER

`FOLDER` holds ``objects.npz`` (arrays of all objects, the targets ``y`` and the splits ``train_I``, ``test_I``),
``objects.pickle`` (the same objects for similia) and ``options.json``. After each split, a line with ``RESULT`` and
JSON goes to standard output. Nothing here imports similia or another tool before its function is called. The parameters
of a tool are chosen by cross-validation on the training part; no function looks at the targets of a test part.
"""

from __future__ import annotations

import itertools
import json
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

Result = tuple[Any, Any, str]  # predictions, decision values of the second class or None, what was chosen
COSTS = (0.1, 1.0, 10.0, 100.0)  # C of support vector machines
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of kernel ridge regression
DEPTHS = (1, 3, 5)  # rounds of the Weisfeiler-Lehman kernels
MOST_WORDS = 1e7  # n-grams of a training part, beyond which longer ones are left out: gigabytes of a Python dict
N_RANDOM = 512  # random Fourier features of nodes, and of edges


class Job:
    """The objects, targets and splits of one data set, and what was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays = dict(np.load(folder / "objects.npz", allow_pickle=False))
        self.options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
        self.y = self.arrays["y"]
        self.regression = self.options["metric"] == "rmse"
        self.scoring = {"rmse": "neg_root_mean_squared_error", "auc": "roc_auc", "accuracy": "accuracy"}[
            self.options["metric"]
        ]
        self.splits = {i: (self.arrays[f"train_{i}"], self.arrays[f"test_{i}"]) for i in self.options["runs"]}

    def folds(self, train: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return folds of a training part, as positions in it: at most 5, as many as its smallest class allows."""
        from sklearn.model_selection import KFold, StratifiedKFold

        y = self.y[train]
        least = 5 if self.regression else int(np.unique(y, return_counts=True)[1].min())
        kind = KFold if self.regression or least < 2 else StratifiedKFold
        return list(kind(max(2, min(5, least)), shuffle=True, random_state=0).split(y, y))

    def texts(self) -> list[str]:
        """Return the strings."""
        data, offsets = self.arrays["letters"].tobytes(), self.arrays["offsets"].tolist()
        return [data[a:b].decode() for a, b in itertools.pairwise(offsets)]

    def score(self, learner: Any, X: Any, y: np.ndarray) -> float:
        """Return the score of a fitted learner, higher is better."""
        from sklearn.metrics import get_scorer

        return float(get_scorer(self.scoring)(learner, X, y))


def best_of(job: Job, train: np.ndarray, candidates: dict[str, Callable[[Any, Any], tuple[Any, Any, Any]]]) -> str:
    """Return the name of the candidate with the highest mean score over the folds of a training part.

    A candidate takes the positions to fit and to score, and returns a fitted learner, what to score and its targets.
    """
    folds = job.folds(train)
    means = {
        name: np.mean([job.score(*fit(train[inner], train[outer])) for inner, outer in folds])
        for name, fit in candidates.items()
    }
    return max(means, key=means.__getitem__)


def outcome(learner: Any, X: Any, note: str) -> Result:
    """Return the predictions of a fitted learner and, of two classes, its decision values."""
    scores = None
    if len(getattr(learner, "classes_", ())) == 2:
        if hasattr(learner, "decision_function"):
            scores = np.asarray(learner.decision_function(X), dtype=np.float64)
            scores = scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]
        elif hasattr(learner, "predict_proba"):
            scores = np.asarray(learner.predict_proba(X), dtype=np.float64)[:, 1]
    return learner.predict(X), scores, note


# ---- similia


def similia(job: Job) -> Iterator[Result]:
    """Fit the automatic choice within a budget, on all kinds of objects."""
    import similia as sm
    from similia.selection.auto import compile_loops

    objects = pickle.loads((job.folder / "objects.pickle").read_bytes())
    compile_loops(objects.kind, False)
    started()
    budget = job.options["budget"]
    for run, (train, test) in job.splits.items():
        Auto = sm.AutoRegressor if job.regression else sm.AutoClassifier
        auto = Auto(budget, scoring=job.scoring, nested=False, random_state=run)
        auto.fit(sm.objects.take(objects, train), job.y[train])
        yield outcome(auto, sm.objects.take(objects, test), auto.best_name_)


# ---- strings


def letters(job: Job) -> Iterator[Result]:
    """TF-IDF of letters 1 to n, linear support vector machine."""
    return _tfidf(job, "char", [(1, 3), (1, 5), (1, 7)])


def words(job: Job) -> Iterator[Result]:
    """TF-IDF of words and pairs of words, linear support vector machine."""
    return _tfidf(job, "word", [(1, 1), (1, 2)])


def _tfidf(job: Job, analyzer: str, ranges: list[tuple[int, int]]) -> Iterator[Result]:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts, pattern = job.texts(), r"\w+" if analyzer == "word" else None

    def fit_on(counts: Any, cost: float) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
        def fit(inner: Any, outer: Any) -> tuple[Any, Any, Any]:
            learner = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC(C=cost, dual="auto", random_state=0))
            return learner.fit(counts[inner], job.y[inner]), counts[outer], job.y[outer]

        return fit

    for train, test in job.splits.values():
        candidates = {}
        for low, high in ranges:
            if analyzer == "char" and high > 3 and high * sum(len(texts[i]) for i in train) > MOST_WORDS:
                continue
            vectorizer = CountVectorizer(analyzer=analyzer, ngram_range=(low, high), token_pattern=pattern)
            counts = vectorizer.fit([texts[i] for i in train]).transform(texts)
            for cost in COSTS:
                candidates[f"{analyzer} {low} to {high}, C = {cost:g}"] = fit_on(counts, cost)
        best = best_of(job, train, candidates)
        learner, X, _ = candidates[best](train, test)
        yield outcome(learner, X, best)


# ---- series


def minirocket(job: Job) -> Iterator[Result]:
    """MiniRocket and ridge regression, of aeon."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    return _aeon(job, lambda run: MiniRocketClassifier(random_state=run, n_jobs=cpu_count()))


def multirocket_hydra(job: Job) -> Iterator[Result]:
    """MultiRocket and Hydra joined, ridge regression, of aeon."""
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    return _aeon(job, lambda run: MultiRocketHydraClassifier(random_state=run, n_jobs=cpu_count()))


def quant(job: Job) -> Iterator[Result]:
    """QUANT: quantiles of intervals and extremely randomised trees, of aeon."""
    from aeon.classification.interval_based import QUANTClassifier

    return _aeon(job, lambda run: QUANTClassifier(random_state=run))


def _aeon(job: Job, make: Callable[[int], Any]) -> Iterator[Result]:
    series = np.split(job.arrays["values"].astype(np.float64), job.arrays["offsets"][1:-1])
    if len({len(one) for one in series}) > 1:
        raise ValueError("takes series of one length only")
    X = np.ascontiguousarray(np.stack(series).transpose(0, 2, 1))
    few = np.concatenate([np.flatnonzero(job.y == label)[:4] for label in np.unique(job.y)])
    make(0).fit(X[few], job.y[few]).predict(X[few])  # compiles; not timed
    started()
    for run, (train, test) in job.splits.items():
        yield outcome(make(run).fit(X[train], job.y[train]), X[test], "defaults of aeon")


# ---- graphs


def wl(job: Job) -> Iterator[Result]:
    """Weisfeiler-Lehman subtree kernel and support vector machine, of GraKeL and scikit-learn."""
    import grakel

    return _grams(job, lambda h: grakel.WeisfeilerLehman(n_iter=h, base_graph_kernel=grakel.VertexHistogram))


def wl_oa(job: Job) -> Iterator[Result]:
    """Weisfeiler-Lehman optimal assignment kernel and support vector machine, of GraKeL and scikit-learn."""
    import grakel

    return _grams(job, lambda h: grakel.WeisfeilerLehmanOptimalAssignment(n_iter=h))


def _grams(job: Job, make: Callable[[int], Any]) -> Iterator[Result]:
    """Support vector machine on whole Gram matrices: kernels learn nothing, so the test part has no part in it."""
    grams = {}
    for h in DEPTHS:
        K = np.asarray(make(h).fit_transform(_graphs(job.arrays)), dtype=np.float64)
        roots = np.sqrt(np.maximum(np.diag(K), 1e-300))
        grams[f"h = {h}"] = K / roots / roots[:, None]
    for train, test in job.splits.values():
        yield _machine(job, grams, train, test)


def _graphs(arrays: dict[str, np.ndarray]) -> list[Any]:
    """Return graphs for GraKeL; degrees stand for labels where there are none."""
    import grakel

    indptr, indices = arrays["indptr"].tolist(), arrays["indices"].tolist()
    labels = (arrays["node_labels"] if "node_labels" in arrays else np.diff(arrays["indptr"])).tolist()

    def graph(start: int, stop: int) -> Any:
        edges = {v - start: {u - start: 1.0 for u in indices[indptr[v] : indptr[v + 1]]} for v in range(start, stop)}
        return grakel.Graph(edges, node_labels={v - start: labels[v] for v in range(start, stop)}, graph_format="all")

    offsets = arrays["node_offsets"].tolist()
    return [graph(a, b) for a, b in itertools.pairwise(offsets)]


def _machine(job: Job, grams: dict[str, np.ndarray], train: np.ndarray, test: np.ndarray) -> Result:
    """Tune and fit a support vector machine, or kernel ridge regression, on one of several Gram matrices."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC

    def fit_on(K: np.ndarray, value: float) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
        def fit(inner: Any, outer: Any) -> tuple[Any, Any, Any]:
            center = job.y[inner].mean() if job.regression else 0
            learner = (
                KernelRidge(alpha=value, kernel="precomputed") if job.regression else SVC(C=value, kernel="precomputed")
            )
            learner.fit(K[np.ix_(inner, inner)], job.y[inner] - center)
            return learner, K[np.ix_(outer, inner)], job.y[outer] - center

        return fit

    name, values = ("alpha", ALPHAS) if job.regression else ("C", COSTS)
    candidates = {f"{called}, {name} = {v:g}": fit_on(K, v) for called, K in grams.items() for v in values}
    best = best_of(job, train, candidates)
    learner, X, _ = candidates[best](train, test)
    predictions, scores, note = outcome(learner, X, best)
    return predictions + (job.y[train].mean() if job.regression else 0), scores, note


def mean_map(job: Job) -> Iterator[Result]:
    """Mean of random Fourier features of nodes and of edges (both ends), RBF support vector machine: the plain one."""
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    arrays = job.arrays
    graph_of_node = np.repeat(np.arange(len(job.y)), np.diff(arrays["node_offsets"]))
    nodes = arrays["node_attributes"]
    if "node_labels" in arrays:
        nodes = np.hstack([nodes, arrays["node_labels"][:, None] == np.unique(arrays["node_labels"])])
    sources = np.repeat(np.arange(len(nodes)), np.diff(arrays["indptr"]))

    def means(points: np.ndarray, owner: np.ndarray, width: float, random: np.random.Generator) -> np.ndarray:
        gap = points[random.integers(0, len(points), 2000)] - points[random.integers(0, len(points), 2000)]
        scale = width / np.sqrt(np.median((gap**2).sum(axis=1)))
        angles = points @ (scale * random.standard_normal((points.shape[1], N_RANDOM))) + random.uniform(
            0, 6.2832, N_RANDOM
        )
        total = np.zeros((len(job.y), N_RANDOM))
        np.add.at(total, owner, np.cos(angles))
        return total / np.maximum(np.bincount(owner, minlength=len(job.y)), 1)[:, None]

    def fit_on(X: np.ndarray, cost: float) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
        return lambda inner, outer: (SVC(C=cost).fit(X[inner], job.y[inner]), X[outer], job.y[outer])

    for run, (train, test) in job.splits.items():
        candidates = {}
        points = StandardScaler().fit(nodes[np.isin(graph_of_node, train)]).transform(nodes)
        ends = np.hstack([points[sources], points[arrays["indices"]]])
        for width in (0.5, 1.0, 2.0, 4.0):
            random = np.random.default_rng(run)
            X = np.hstack(
                [means(points, graph_of_node, width, random), means(ends, graph_of_node[sources], width, random)]
            )
            candidates |= {f"width = {width:g}, C = {cost:g}": fit_on(X, cost) for cost in (*COSTS, 1000.0)}
        best = best_of(job, train, candidates)
        learner, X, _ = candidates[best](train, test)
        yield outcome(learner, X, best)


# ---- molecules


def ecfp_forest(job: Job) -> Iterator[Result]:
    """Counts of circular substructures (ECFP4) of scikit-fingerprints, random forest of scikit-learn."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    Forest = RandomForestRegressor if job.regression else RandomForestClassifier
    counts = _fingerprints(job)
    for run, (train, test) in job.splits.items():
        forest = Forest(500, n_jobs=cpu_count(), random_state=run).fit(counts[train], job.y[train])
        yield outcome(forest, counts[test], "500 trees")


def ecfp_minmax(job: Job) -> Iterator[Result]:
    """Min-max kernel (count Tanimoto) of the same counts, ridge regression or support vector machine."""
    counts = _fingerprints(job).astype(np.float64)
    K = np.stack([np.minimum(row, counts).sum(axis=1) / np.maximum(row, counts).sum(axis=1) for row in counts])
    for train, test in job.splits.values():
        yield _machine(job, {"min-max": K}, train, test)


def _fingerprints(job: Job) -> np.ndarray:
    from skfp.fingerprints import ECFPFingerprint

    return np.asarray(ECFPFingerprint(fp_size=2048, radius=2, count=True).transform(job.texts()))


TOOLS: dict[str, Callable[[Job], Iterator[Result]]] = {
    function.__name__: function
    for function in (
        *(similia, letters, words, minirocket, multirocket_hydra, quant),
        *(wl, wl_oa, mean_map, ecfp_forest, ecfp_minmax),
    )
}
_clock = [time.perf_counter(), time.process_time()]


def started() -> None:
    """Start the clocks of the next split anew."""
    _clock[:] = time.perf_counter(), time.process_time()


def peak() -> float:
    """Return the peak memory of this process in MiB; not a number where the system does not tell."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8")) if status.exists() else None
    return int(found[1]) / 1024 if found else float("nan")


def main(tool: str, folder: str) -> None:
    """Run a tool on all splits, and print a line for each."""
    job = Job(Path(folder))
    started()
    for run, (predictions, scores, note) in zip(job.splits, TOOLS[tool](job), strict=True):
        result = {
            "run": run,
            "seconds": time.perf_counter() - _clock[0],
            "cpu": time.process_time() - _clock[1],
            "memory": peak(),
            "predictions": np.asarray(predictions).tolist(),
            "scores": None if scores is None else np.asarray(scores).tolist(),
            "note": note,
        }
        print("RESULT", json.dumps(result), flush=True)
        started()


if __name__ == "__main__":
    main(*sys.argv[1:])
