"""The list of candidates for each kind of objects: embeddings with their learners, simple and cheap ones first.

An entry of the list is a `Group`: the steps from objects to vectors, computed once for all its learners. Parameters
are constants or depend on the form of the objects (kind, equal lengths or not, labels or none), never on values of the
data: all learning happens in ``fit``, on training folds. `short_name` names a candidate's kernel or distance.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn import neighbors
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from similia import distances as d
from similia import kernels as k
from similia.codes import SignRandomProjection
from similia.embeddings import (
    D2KE,
    FeatureWeights,
    GraphletSampling,
    Hydra,
    IntervalQuantiles,
    KernelFeatures,
    MeanMapFeatures,
    Nystroem,
    RandomConvolutions,
)
from similia.embeddings.d2ke import Mosaics, Representatives
from similia.embeddings.hydra import SparseScaler
from similia.embeddings.vectors import FeatureScaler, SeriesVectors
from similia.kernels import Product, Sum
from similia.kernels.counts import CountsKernel
from similia.learn import HDClassifier
from similia.learn.kernel_machines import KernelRidge, KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.objects import AttributeScaler, GraphToSets
from similia.pipelines import Pipeline
from similia.similarity import Distance, Kernel, name_of

Steps = tuple[tuple[str, Any], ...]
Learners = tuple[tuple[str, Steps], ...]
_COLUMNS = 2**18  # number of hashed features: a linear model keeps 2 MB of weights per class
_LANDMARKS, _RANDOM = 1000, 512
_LONG = 100  # mean number of nodes above which shortest paths are not tried
_CS, _RBF_CS = (0.1, 1.0, 10.0, 100.0), (1.0, 10.0, 100.0)
_TURNS = tuple(sorted(range(len(_CS)), key=lambda i: abs(np.log10(_CS[i]))))  # large C is slow
_NEIGHBOURS = (1, 3, 5, 9, 15)
_OWN, _PAIRS, _LEARNT, DEAR = -1, 1, 2, 3  # ranks by cost, DEAR the highest; 0 for explicit features and vectors
_TOLERANCE = 0.1  # tolerance of LinearSVC on features: as accurate as 1e-3 and, for large C, 2 to 3 times as fast
_ALPHAS = np.logspace(-3, 5, 17)  # leave-one-out errors on the training part choose one
_SPECTRA = [k.Spectrum(k=n, normalize=True) for n in (2, 3, 4, 5)]
_SHARED = k.Intersection(k.Spectrum(k=(1, 5)), normalize=True)  # what two strings share of each count
_ALIKE = [k.Sum([k.MinMax(k.Spectrum(k=n)) for n in range(1, last + 1)]) for last in (3, 5)]  # Jaccard, by length
_LONGEST = 48  # maximum characters of a name; a sum lists several


@dataclass(frozen=True)
class Group:
    """An embedding and the learners tried on it.

    Attributes
    ----------
    steps : tuple of (name, estimator)
        Steps from objects to the learners' input; may be empty for vectors.
    learners : tuple of (name, steps)
        Steps of each learner after those of the embedding.
    floor : bool
        Whether the learners are nearest neighbours, a baseline that is never dropped.
    trusted : bool
        Whether published comparisons agree that it is the best; it is then chosen unless another is clearly better.
    pairs : bool
        Whether a fit to n objects holds an n x n matrix.
    slow : bool
        Whether the time of a fit grows with the square of the number of objects, even without comparisons of objects.
    partners : int or None
        Maximum number of training objects with which the final fit compares each object; 0 if a fit compares none, and
        None for no limit.
    family : str
        Kind of embedding, such as "landmarks". The cheapest group of each family is tried before all others.
    cost : int
        Rank by the cost expected before any measurement; cheap groups are tried first.
    turns : tuple of int
        Indices of the learners in the order in which they are tried one by one; empty if all are tried at once.
    """

    name: str
    steps: Steps
    learners: Learners
    floor: bool = False
    trusted: bool = False
    pairs: bool = False
    slow: bool = True
    partners: int | None = None
    family: str = ""
    cost: int = 0
    turns: tuple[int, ...] = ()

    @property
    def own(self) -> bool:
        """Return whether the kernel or distance is the user's, which gets the objects as they were given."""
        return self.cost == _OWN

    @property
    def pairwise(self) -> bool:
        """Return whether work that folds share, if there is any, compares pairs of objects: its time grows as n^2."""
        return self.slow or self.partners is not None

    def named(self, learner: int) -> str:
        return " · ".join(filter(None, (self.name, self.learners[learner][0])))

    def pipeline(self, learner: int) -> Pipeline:
        """Return the unfitted pipeline of the candidate with this learner; its steps are not copied."""
        return Pipeline([*self.steps, *self.learners[learner][1]])


def ladder(
    kind: str, X: Any, task: str, seed: int, own: Sequence[Kernel | Distance] = (), balanced: bool = False
) -> list[Group]:
    """Return groups of candidates for a kind of objects, for ``task="classification"`` or ``"regression"``.

    Groups with the user's `own` kernels and distances come first; the kind "objects" has no other groups. If
    `balanced`, linear models, support vector machines and `HDClassifier` give all classes the same weight in total.
    """
    groups = {"strings": _strings, "graphs": _graphs, "series": _series, "sets": _sets, "vectors": _vectors}
    parts = _Parts(task == "classification", seed, "balanced" if balanced else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = [replace(group, cost=_OWN) for compare in own for group in parts.own(compare)]
        found = each_once([*first, *(groups[kind](X, parts) if kind in groups else ())])
    names = [group.named(0) for group in found]
    earlier = [names[:i].count(name) for i, name in enumerate(names)]
    return [replace(g, name=f"{g.name} ({n + 1})") if n else g for g, n in zip(found, earlier, strict=True)]


def each_once(groups: Iterable[Group]) -> list[Group]:
    """Return the groups without those that compute the same as an earlier group."""
    found: dict[Hashable, Group] = {}
    for group in groups:
        found.setdefault(identity(group.pipeline(0)), group)
    return [*found.values()]


@dataclass(frozen=True)
class _Parts:
    """Makes groups (embeddings with learners) and learners for one task and one seed."""

    classify: bool
    seed: int
    weights: Literal["balanced"] | None  # `class_weight` of the learners that have it

    def features(self, kernel: Any, *before: tuple[str, Any]) -> Group:
        """Return explicit features with linear models; for regression, `landmarks`, on which ridge is faster."""
        if not self.classify:
            return self.landmarks(kernel, *before)
        steps = (*before, ("features", KernelFeatures(kernel, n_features=_COLUMNS)))
        name = f"{_name(kernel, before)} · features"
        return Group(name, steps, self.linear(), slow=False, family="features", turns=_TURNS)

    def weighted(self, kernel: Any) -> Group:
        """Return features weighted as in TF-IDF, with linear classifiers."""
        steps = (("features", KernelFeatures(kernel, n_features=_COLUMNS)), ("weights", FeatureWeights(sublinear=True)))
        name = f"{short_name(kernel)} · weights"
        return Group(name, steps, self.linear(), slow=False, family="weights", turns=_TURNS)

    def landmarks(self, kernel: Any, *before: tuple[str, Any]) -> Group:
        """Return Nystroem vectors with RBF support vector machines and `HDClassifier` or, for regression, ridge."""
        nystroem = Nystroem(kernel, n_components=_LANDMARKS, landmarks="rpcholesky", random_state=self.seed)
        learners = (*self.rbf(), *(self.hypervectors() if self.classify else self.linear()))
        name, steps = f"{_name(kernel, before)} · landmarks", (*before, ("nystroem", nystroem))
        return Group(name, steps, learners, partners=_LANDMARKS, family="landmarks", cost=_LEARNT)

    def exact(self, kernel: Any) -> Group:
        """Return the exact kernel machine on the Gram matrix: a support vector machine or, for regression, ridge."""
        if self.classify:
            learners = {f"KernelSVC(C={C:g})": KernelSVC(kernel, C, self.weights) for C in _RBF_CS}
        else:
            ridge = KernelRidge(kernel, alpha="auto")
            learners = {"KernelRidge": TransformedTargetRegressor(ridge, transformer=StandardScaler())}
        fast = _LEARNT if isinstance(kernel, k.HypersphericalHeat) else _PAIRS
        cost = fast if isinstance(kernel, (k.HypersphericalHeat, CountsKernel)) else DEAR
        return Group(short_name(kernel), (), _alone(learners), pairs=True, family="exact", cost=cost)

    def random(self, distance: Any, objects: Any, gamma: str) -> Group:
        """Return D2KE (features of the distances to random objects), standardised, with linear models."""
        n = 256 if isinstance(objects, Representatives) else _RANDOM
        d2ke = D2KE(distance, n, objects, gamma, self.seed)
        drawn = "auto" if isinstance(objects, str) else type(objects).__name__
        name = f"{short_name(distance)} · D2KE({drawn}, gamma={gamma})"
        steps = (("d2ke", d2ke), ("scaler", StandardScaler()))
        cost = _LEARNT if isinstance(objects, Representatives) else DEAR
        return Group(name, steps, self.ridge(), slow=False, partners=n, family="D2KE", cost=cost)

    def around(self, distance: Any) -> Iterator[Group]:
        """Yield nearest neighbours, and D2KE with distances to training objects; both read one distance matrix."""
        yield self.nearest(distance)
        for gamma in ("median", "4*median"):
            yield self.random(distance, Representatives(), gamma)

    def own(self, compare: Kernel | Distance) -> Iterator[Group]:
        """Yield the groups for a kernel or distance of the user, about which nothing else is known."""
        if isinstance(compare, Distance):
            yield from self.around(compare)
            return
        yield self.nearest(compare)
        if self.classify and hasattr(compare, "features"):
            yield self.features(compare)
        yield self.landmarks(compare)

    def mean_map(self, scale: float, reduce: str, *before: tuple[str, Any], n_iter: int = 0) -> Group:
        """Return mean maps of the nodes and of the edges of graphs; `scale` multiplies gamma.

        `n_iter` is the number of times that the coordinates of nodes are averaged with those of their neighbours.
        """
        maps = []
        for length, name in enumerate(("nodes", "edges")):
            embedding = MeanMapFeatures(512, scales=(scale,), reduce=reduce, random_state=self.seed)
            sets = GraphToSets(length, n_iter, degrees=True)
            maps.append((name, Pipeline([("sets", sets), ("map", embedding)])))
        steps = (*before, ("maps", FeatureUnion(maps)))
        return Group(f"{reduce} map, {scale:g} gamma", steps, self.rbf(), family="mean map")

    def nearest(self, compare: Any) -> Group:
        """Return nearest neighbours under a distance, or under the distance in the feature space of a kernel."""
        machine = KNeighborsClassifier if self.classify else KNeighborsRegressor
        learners = _alone({f"{n} nearest": machine(compare, n) for n in _NEIGHBOURS})
        family = f"nearest {'distance' if isinstance(compare, Distance) else 'kernel'}"
        cost = 0 if hasattr(compare, "features") else _PAIRS
        return Group(short_name(compare), (), learners, floor=True, partners=0, family=family, cost=cost)

    def linear(self) -> Learners:
        if not self.classify:
            return self.ridge()
        fixed = {"tol": _TOLERANCE, "max_iter": 20_000, "class_weight": self.weights, "random_state": self.seed}
        machines = [LinearSVC(C=C, **fixed) for C in _CS]
        return _alone({f"LinearSVC(C={machine.C:g})": machine for machine in machines})

    def ridge(self) -> Learners:
        """Return ridge regression, of the labels in classification; it chooses alpha by leave-one-out errors."""
        machine = RidgeClassifierCV(_ALPHAS, class_weight=self.weights) if self.classify else RidgeCV(_ALPHAS)
        return _alone({"ridge": machine})

    def trees(self, share: float | str) -> Learners:
        """Return extremely randomised trees; a split looks at a share of the columns, or at "sqrt" of their number."""
        fixed = {"n_estimators": 200, "max_features": share, "random_state": self.seed}
        if self.classify:
            return _alone({"trees": ExtraTreesClassifier(criterion="entropy", class_weight=self.weights, **fixed)})
        return _alone({"trees": ExtraTreesRegressor(**fixed)})

    def rbf(self) -> Learners:
        """Return support vector machines with a Gaussian kernel on the vectors; regression standardises the targets."""
        if self.classify:
            return _alone({f"SVC(C={C:g})": SVC(C=C, class_weight=self.weights) for C in _RBF_CS})
        machines = {C: TransformedTargetRegressor(SVR(C=C), transformer=StandardScaler()) for C in _RBF_CS}
        return _alone({f"SVR(C={C:g})": machine for C, machine in machines.items()})

    def hypervectors(self) -> Learners:
        learner = HDClassifier(init="bundle", class_weight=self.weights, random_state=self.seed)
        steps = (("projection", SignRandomProjection(random_state=self.seed)), ("learner", learner))
        return (("HDClassifier", steps),)

    def neighbours(self) -> Learners:
        """Return nearest neighbours of vectors, by brute force because search trees cannot be saved."""
        machine = neighbors.KNeighborsClassifier if self.classify else neighbors.KNeighborsRegressor
        return _alone({f"{n} nearest": machine(n, algorithm="brute") for n in _NEIGHBOURS})


def _alone(learners: Mapping[str, Any]) -> Learners:
    """Convert {name: learner} to a tuple of (name, steps), where the only step is the learner."""
    return tuple((name, (("learner", learner),)) for name, learner in learners.items())


def _strings(X: Any, parts: _Parts) -> Iterator[Group]:
    spectra, gappy = k.Sum(_SPECTRA), k.GappyKmers(k=4, gaps=1, normalize=True)
    letters = np.unique(X.values)
    spaces = bool((X.values == ord(" ")).any())
    if parts.classify:
        yield parts.weighted(k.Spectrum(k=(1, 5), boundaries="words" if spaces else None))
    if parts.classify and spaces:
        yield parts.weighted(k.Words(n=(1, 2)))
    yield parts.nearest(spectra)
    for kernel in (_SHARED, spectra, k.Spectrum(k=3, normalize=True)):
        yield parts.features(kernel)
    if set(letters.tolist()) <= set(b"ACGTUNacgtun"):  # DNA or RNA; N is unknown
        cases = len(letters) > len(np.unique(letters & ~np.uint32(32)))  # both small and capital letters
        yield parts.features(k.Spectrum(k=6, normalize=True, reverse_complement=True, ignore_case=cases))
        yield from _gapped(parts, ignore_case=cases)
    elif not spaces:  # sequences such as proteins, whose families share a few letters at each of many places
        for length, informative in ((6, 3), (8, 4)):
            yield replace(parts.exact(k.GappedKmers(length, informative, normalize=True)), cost=DEAR)
    for kernel in _ALIKE:
        yield parts.exact(kernel)
    yield parts.features(gappy)
    kernels = [spectra, gappy]
    if set(letters.tolist()) <= set(b"ACGT"):
        yield parts.features(k.Mismatch(k=5, mismatches=1, normalize=True))
    if len(np.unique(np.diff(X.offsets))) == 1:  # all of one length
        placed = [k.WeightedDegree(degree=degree, normalize=True) for degree in (3, 5, 8)]
        both = k.Sum([placed[1], spectra])
        for kernel in (*placed, both):
            yield parts.features(kernel)
        kernels = [placed[1], both, gappy]
    for kernel in kernels:
        yield parts.landmarks(kernel)
    yield from parts.around(d.Levenshtein())
    yield parts.random(d.Levenshtein(), Mosaics(), "4*median")


def _gapped(parts: _Parts, ignore_case: bool) -> Iterator[Group]:
    """Yield the candidates on gapped k-mers of DNA or RNA; windows of 11 letters are the default of LS-GKM."""
    both, one, wide = (
        k.GappedKmers(length, informative, reverse_complement=strands, ignore_case=ignore_case, normalize=True)
        for length, informative, strands in ((9, 6, True), (9, 6, False), (11, 7, True))
    )
    for kernel in (both, one):
        yield parts.features(kernel)
        if parts.classify:
            yield parts.exact(kernel)
    if parts.classify:
        yield replace(parts.exact(wide), cost=DEAR)
        yield parts.landmarks(both)


def _graphs(X: Any, parts: _Parts) -> Iterator[Group]:
    short = X.node_offsets[-1] <= _LONG * len(X)
    refined = {n: k.WeisfeilerLehman(n_iter=n) for n in (1, 2, 3, 5)}
    paths = [k.ShortestPath()] if short else []
    both = [k.Sum([refined[2], kernel]) for kernel in paths]
    for kernel in (*both, refined[3], *paths):
        yield parts.nearest(k.MinMax(kernel))
    together = k.Sum([k.WeisfeilerLehman(n_iter=n) for n in range(4)])
    for kernel in paths:
        yield parts.exact(k.Sum([k.MinMax(together), k.MinMax(kernel)]))
    for kernel in (refined[2], refined[3], refined[1], refined[5], *both, *paths):
        yield parts.exact(k.MinMax(kernel))
    for n in (1, 2, 3) if not parts.classify else ():  # a sum over substructures, such as many properties of molecules
        yield parts.exact(refined[n])
    for kernel in (refined[3], refined[5], *both):
        yield parts.features(k.Intersection(kernel, normalize=True))
    for kernel in (refined[2], refined[5], *paths):
        yield parts.features(k.Normalized(kernel))
    if X.node_labels is not None:
        yield parts.features(k.Propagation(n_iter=4, use="labels", normalize=True))
    for kernel in (refined[3], *both):
        yield parts.landmarks(k.MinMax(kernel))
    optical = GraphletSampling(size=6, n_samples=2000, n_components=None, random_state=parts.seed)
    steps = (("graphlets", optical), ("scaler", FeatureScaler()))
    learners = (*parts.ridge(), *parts.rbf())
    yield Group("GraphletSampling 6 · optical", steps, learners, slow=False, family="graphlets", cost=_LEARNT)
    if X.node_attributes is None and X.node_labels is None:  # the neighbourhoods of nodes by degrees
        for scale, reduce in ((4.0, "mean"), (16.0, "mean"), (16.0, "sum")):
            yield parts.mean_map(scale, reduce, n_iter=4)
    if X.node_attributes is not None:
        scaler = ("scaler", AttributeScaler())
        for scale, reduce in ((4.0, "mean"), (1.0, "sum"), (4.0, "sum"), (16.0, "mean")):
            yield parts.mean_map(scale, reduce, scaler)
        for width in (1.0, 2.0):
            yield parts.landmarks(_attributes(width), scaler)
        for kernel in (refined[1], *paths):
            yield parts.landmarks(k.Sum([_attributes(1.0), k.Normalized(kernel)]), scaler)


def _attributes(width: float) -> Any:
    """Return a kernel on node attributes that bins each attribute separately."""
    return k.Propagation(n_iter=0, bin_width=width, metric="l1", use="attributes", per_dimension=True, normalize=True)


def _series(X: Any, parts: _Parts) -> Iterator[Group]:
    scaler = ("scaler", StandardScaler())
    rockets = ("convolutions", RandomConvolutions(random_state=parts.seed))
    yield Group("RandomConvolutions", (rockets, scaler), parts.ridge(), slow=False, family="convolutions")
    for n_features in (10_000, 50_000):
        many = RandomConvolutions(n_features, "multirocket", parts.seed)
        hydra = Pipeline([("hydra", Hydra(random_state=parts.seed)), ("scaler", SparseScaler())])
        both = FeatureUnion([("multirocket", Pipeline([("convolutions", many), scaler])), ("hydra", hydra)])
        name = f"RandomConvolutions {n_features}, multirocket + Hydra"
        steps = (("union", both),)
        published = n_features == 50_000
        yield Group(name, steps, parts.ridge(), trusted=published, slow=False, family="union of convolutions")
    intervals = (("quantiles", IntervalQuantiles()),)
    yield Group("IntervalQuantiles", intervals, parts.trees(0.1), slow=False, family="intervals", cost=_PAIRS)
    if len(np.unique(X.lengths)) == 1:
        flat = ("vectors", SeriesVectors())
        yield Group("values", (flat,), parts.neighbours(), floor=True, slow=False, family="neighbours")
        scaled = (flat, scaler)
        yield Group("standardised values", scaled, parts.rbf(), family="rbf")
        yield Group("standardised values", scaled, parts.ridge(), slow=False, family="ridge")
    for distance in (d.DTW(window=0.1), d.DTW(), d.MSM(), d.TWE()):
        yield from parts.around(distance)
    for objects in ("auto", Mosaics()):
        yield parts.random(d.DTW(), objects, "4*median")
    yield parts.exact(k.GlobalAlignment(bandwidth=1.0))


def _sets(X: Any, parts: _Parts) -> Iterator[Group]:
    for scale in (4.0, 1.0, 16.0):
        embedding = MeanMapFeatures(1024, scales=(scale,), random_state=parts.seed)
        yield Group(f"mean map, {scale:g} gamma", (("map", embedding),), parts.rbf(), family="mean map")
    for distance in (d.SlicedWasserstein(), d.ModifiedHausdorff()):
        yield from parts.around(distance)
    for objects in ("auto", Mosaics()):
        yield parts.random(d.ModifiedHausdorff(), objects, "4*median")
    yield from parts.around(d.Chamfer())


def _vectors(X: Any, parts: _Parts) -> Iterator[Group]:
    scaler, n_features = ("scaler", FeatureScaler() if sp.issparse(X) else StandardScaler()), X.shape[1]
    for name, steps in (("values", ()), ("standardised values", (scaler,))):
        yield Group(name, steps, parts.neighbours(), floor=True, slow=False, family="neighbours")
    for name, steps in (("values", ()), ("standardised values", (scaler,))):
        yield Group(name, steps, parts.rbf(), family="rbf")
    yield Group("standardised values", (scaler,), parts.ridge(), slow=False, family="ridge")
    yield Group("values", (), parts.trees("sqrt" if parts.classify else 0.5), slow=False, family="trees", cost=_PAIRS)
    if n_features > 1:
        mapping = "projection" if X.min() < 0 else "sqrt"
        for contrast in (c for c in (1.0, 4.0, 16.0) if c < n_features):
            heat = k.HypersphericalHeat(contrast=contrast, mapping=mapping, zero_rows="uniform")
            yield parts.exact(heat)
            if contrast == 4.0:
                yield parts.landmarks(heat)
    if parts.classify and not sp.issparse(X):
        yield Group("standardised values", (scaler,), parts.hypervectors(), slow=False, family="hypervectors")


def _name(compare: Any, before: Steps) -> str:
    """Return the name of a kernel, with "on scaled attributes" if a step comes before it."""
    return f"{short_name(compare)} on scaled attributes" if before else short_name(compare)


# ---- names
def short_name(compare: Any) -> str:
    """Describe a kernel or distance in a few words.

    The first parameter, if a number, appears as its value; others appear as name=value if they differ from the default.
    ``normalize`` is left out.

    Examples
    --------
    >>> import similia as sm
    >>> short_name(sm.kernels.Sum([sm.kernels.Spectrum(k) for k in (2, 3, 4)]))
    'Spectrum 2–4'
    >>> short_name(sm.distances.DTW(window=0.1)), short_name(sm.kernels.WeisfeilerLehman(2, normalize=True))
    ('DTW 0.1', 'WeisfeilerLehman 2')
    """
    if hasattr(compare, "function"):
        text = name_of(compare)
    elif isinstance(compare, Sum) and compare.weights is None:
        return _sum(compare.kernels)
    elif isinstance(compare, Product) and len(compare.kernels) == 1:
        return short_name(compare.kernels[0])
    else:
        given = _given(compare)
        text = f"{type(compare).__name__} {', '.join(given)}".rstrip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _given(compare: Any) -> list[str]:
    """Return the parameters that `short_name` shows, as texts."""
    values = compare.get_params(deep=False)
    texts = []
    for i, (name, parameter) in enumerate(signature(type(compare)).parameters.items()):
        value, shown = values[name], _value(values[name])
        if name == "normalize":
            continue
        if i == 0 and isinstance(value, int | float) and not isinstance(value, bool):
            texts.append(shown)
        elif identity(value) != identity(parameter.default):
            texts.append(shown if isinstance(value, BaseEstimator) else f"{name}={shown}")
    return texts


def _value(value: Any) -> str:
    if isinstance(value, BaseEstimator):
        return short_name(value)
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _sum(kernels: Sequence[Any]) -> str:
    """Return one name for a sum of kernels; a sequence such as Spectrum 2, 3 and 4 becomes "Spectrum 2–4"."""
    names = [short_name(kernel) for kernel in kernels]
    heads, tails = {name.rpartition(" ")[0] for name in names}, [name.rpartition(" ")[2] for name in names]
    if len(names) > 1 and len(heads) == 1 and all(map(str.isdigit, tails)):
        numbers = [int(tail) for tail in tails]
        if numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            return f"{heads.pop()} {numbers[0]}–{numbers[-1]}"
    return " + ".join(names)


def identity(what: Any) -> Hashable:
    """Return a key of a kernel, a distance, an estimator or a parameter: two with equal keys compute the same."""
    if isinstance(what, BaseEstimator):
        params = what.get_params(deep=False)
        return (type(what), *((name, identity(params[name])) for name in sorted(params)))
    if isinstance(what, list | tuple):
        return (type(what), *map(identity, what))
    if isinstance(what, dict):
        return (dict, *((identity(key), identity(value)) for key, value in what.items()))
    if isinstance(what, np.ndarray) and what.dtype != object:
        return np.ndarray, what.dtype.str, what.shape, what.tobytes()
    if what is None or isinstance(what, str | bytes | bool | int | float | complex | np.generic):
        return type(what), repr(what)
    return type(what), id(what)  # functions and other objects without a value
