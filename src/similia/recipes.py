"""Published systems as scikit-learn pipelines of similia's estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from similia.codes import ITQ, GeneralizedNystroemPCA, SignRandomProjection
from similia.core.validation import RandomState, check_n_bits, check_positive, spawn_seeds
from similia.embeddings import D2KE, GraphletSampling, Nystroem
from similia.embeddings.d2ke import Representatives
from similia.embeddings.vectors import FeatureScaler
from similia.learn import HDClassifier, HeatSVC
from similia.learn.d2ke_search import D2KESearch
from similia.pipelines import Pipeline as Pipeline

_GAMMAS = ("0.25*median", "median", "4*median", "16*median")
_CS = (1e-4, 1e-3, 1e-2, 1e-1)


def nyshd(
    kernel: Callable[..., Any],
    n_landmarks: int | Literal["auto"] = "auto",
    n_bits: int = 10_000,
    random_state: RandomState = None,
    *,
    landmarks: Any = "uniform",
    update: Literal["perceptron", "averaged", "margin", "ridge", "auto"] = "auto",
    init: Literal["zeros", "bundle"] = "zeros",
    max_iter: int = 20,
) -> Pipeline:
    """Return NysHD [1]_: hypervectors from a kernel, and a hyperdimensional classifier on them.

    `Nystroem` turns objects into vectors by comparing them with landmarks, a few of the training objects.
    `SignRandomProjection` turns the vectors into long codes (hypervectors): the signs of random projections, packed
    into bytes. `HDClassifier` learns a prototype of each class from the codes.

    Parameters
    ----------
    kernel : callable
        Kernel ``k(X, Y=None) -> (n, m)``, positive semi-definite. `similia.pairwise` makes one from a function of two
        objects.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks. "auto": min(n, max(300, 0.02 n)) for n training objects, as in [1]_.
    n_bits : int, default=10_000
        Number of bits of a code; a multiple of 8.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the landmarks, the projection and the order of the training objects.
    landmarks : str, array of int or callable, default="uniform"
        How to choose landmarks; see `Nystroem`.
    update : {"perceptron", "averaged", "margin", "ridge", "auto"}, default="auto"
        How `HDClassifier` learns prototypes from the codes. "perceptron" is the rule of [1]_. "auto" is more accurate:
        it uses "ridge" if there are fewer objects than bits, otherwise "margin". With "ridge", "margin" or "auto", the
        model has `predict_proba`. To get `predict_proba` with "perceptron" or "averaged", call
        ``model.set_params(classifier__probability=True)`` before `fit`.
    init : {"zeros", "bundle"}, default="zeros"
        Prototypes before the first pass over the training codes: zeros, or the sum of the codes of each class
        ("bundle"). Not used by "ridge".
    max_iter : int, default=20
        Maximum number of passes of `HDClassifier` over the training codes. Not used by "ridge".

    Returns
    -------
    similia.Pipeline
        With steps ``nystroem``, ``projection`` and ``classifier``. In a grid search, the kernel's parameters are
        ``nystroem__kernel__...``. Other parameters of a step are set by
        ``model.set_params(classifier__prototype_bits=4, classifier__class_weight="balanced")``.

    References
    ----------
    .. [1] Zhao, Thomas, Brin, Yu, Rosing: Bridging the Gap between Hyperdimensional Computing and
       Kernel Methods via the Nyström Method. AAAI 2025. Algorithms 1 and 2.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), random_state=0)
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.75
    True
    """
    check_n_bits(n_bits)
    seeds = spawn_seeds(random_state, 3)
    return Pipeline(
        [
            ("nystroem", Nystroem(kernel, n_components=n_landmarks, landmarks=landmarks, random_state=seeds[0])),
            ("projection", SignRandomProjection(n_bits=n_bits, random_state=seeds[1])),
            ("classifier", HDClassifier(update, init=init, max_iter=max_iter, random_state=seeds[2])),
        ]
    )


def d2ke(
    distance: Callable[..., Any],
    n_components: int = 1024,
    gamma: float | str = "median",
    random_state: RandomState = None,
    *,
    objects: Any = "auto",
    C: float | Literal["tune"] = 0.01,
    task: Literal["classification", "regression", "auto"] = "classification",
    estimator: Any = None,
    cv: Any = 5,
    memory: Any = None,
) -> Pipeline | D2KESearch:
    """Return a linear model on the distances of objects to random objects, Algorithm 1 of [1]_.

    `D2KE` turns each distance d to a random object into a feature exp(-gamma d). The features are standardised for the
    linear model.

    Parameters
    ----------
    distance : callable
        Distance ``d(X, Y=None) -> (n, m)``, non-negative. `similia.distances.FromFunction` makes one from a function of
        two objects.
    n_components : int, default=1024
        Number of random objects.
    gamma : float, "median", str or "tune", default="median"
        How fast features decay with distance: a number, "median" or a multiple such as "4*median"; see `D2KE`. "tune"
        chooses among 1/4, 1, 4 and 16 times the value of "median" by cross-validation.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the random objects and of the learner.
    objects : "auto", sampler, callable or collection, default="auto"
        The random objects; see `D2KE`. ``similia.embeddings.Representatives(hold_out=True)`` chooses training objects,
        which are then not used to train the linear model.
    C : float or "tune", default=0.01
        Inverse strength of the regularisation of the linear model, as in scikit-learn's LinearSVC; "tune" chooses among
        1e-4, 1e-3, 1e-2 and 1e-1 by cross-validation.
    task : {"classification", "regression", "auto"}, default="classification"
        "classification": a linear SVM. "regression": ridge regression with alpha = 1 / (2 C). "auto" decides in `fit`.
        It chooses regression if the targets are numbers and some of them are not integers, or if they are integers with
        more than 20 different values and fewer than 5 objects for each value on average. Before `fit`, scikit-learn
        treats a model with "auto" as a classifier, so its cross-validation stratifies the folds by integer targets. To
        cross-validate a regression of integers, set "regression".
    estimator : estimator, optional
        Another learner for the features, such as ``make_pipeline(SignRandomProjection(), HDClassifier())``, in place of
        the linear model that `task` and `C` describe. Each ``random_state`` of this learner that is None gets a seed
        drawn from `random_state`.
    cv : int or splitter, default=5
        Folds of the cross-validation for "tune".
    memory : str, path or joblib.Memory, optional
        Where distances are cached; see `D2KE`.

    Returns
    -------
    similia.Pipeline or D2KESearch
        A pipeline with the steps ``d2ke``, ``scaler`` and ``learner``. It is wrapped in a `D2KESearch` if `gamma` or
        `C` is "tune", if `objects` is ``Representatives(hold_out=True)``, or if `task` is "auto" and no `estimator` is
        given.

    References
    ----------
    .. [1] Wu, Yen, Xu, Ravikumar, Witbrock: D2KE: From Distance to Kernel and Embedding. Algorithm 1.

    Examples
    --------
    >>> import similia as sm
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
    >>> model = sm.recipes.d2ke(unlike, objects=["a", "b", "c", "d"], random_state=0)
    >>> model.fit(["ab", "b", "dc", "d"], [0, 0, 1, 1]).predict(["a", "c"])
    array([0, 1])
    """
    seeds = spawn_seeds(random_state, 2)
    tune_gamma, tune_C = (isinstance(value, str) and value == "tune" for value in (gamma, C))
    if not tune_C:
        check_positive(C, "C", also=' or "tune"')
    if estimator is not None and tune_C:
        raise ValueError(f"C is not a parameter of estimator={estimator!r}; tune it with D2KESearch and a param_grid")
    embedding = D2KE(distance, n_components, objects, "median" if tune_gamma else gamma, seeds[0], memory=memory)
    gammas = {"d2ke__gamma": [*_GAMMAS]} if tune_gamma else {}

    def search(task: str, **numbers: Any) -> D2KESearch:
        learner, grid = _linear(task, C, tune_C, seeds[1]) if estimator is None else (_seeded(estimator, seeds[1]), {})
        model = Pipeline([("d2ke", embedding), ("scaler", StandardScaler()), ("learner", learner)])
        return D2KESearch(model, grid | gammas, cv=cv, **numbers)

    if task == "auto" and estimator is None:
        return search("classification", regression=search("regression"))
    found = search(task)
    held_out = isinstance(objects, Representatives) and objects.hold_out
    return found if found.param_grid or held_out else found.pipeline


def graphlet_optical(
    size: int = 6,
    n_samples: int = 2000,
    n_components: int | None = 2000,
    classifier: Literal["linear", "rbf"] = "linear",
    random_state: RandomState = None,
    *,
    sampling: Literal["random_walk", "uniform"] = "random_walk",
    C: float | None = None,
) -> Pipeline:
    """Return a graph classifier that learns from random optical features of sampled graphlets (GSA-phi of [1]_).

    `GraphletSampling` samples small induced subgraphs (graphlets) of each graph and averages their features. A support
    vector machine learns from the standardised averages. Labels of nodes and edges are ignored.

    Parameters
    ----------
    size : int, default=6
        Number of nodes in a graphlet.
    n_samples : int, default=2000
        Number of graphlets drawn from each graph.
    n_components : int or None, default=2000
        Number of optical features, the squared absolute values of random complex projections. Their inner products
        estimate a kernel, `similia.kernels.Optical`. None: the exact features of this kernel, which are fewer (120 for
        ``size=6``) and not random.
    classifier : {"linear", "rbf"}, default="linear"
        The support vector machine: linear, as in [1]_, or with a Gaussian (RBF) kernel, which is often more accurate.
    random_state : int, numpy Generator or RandomState, optional
        Seed of samples, features and learner.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        How to draw graphlets; see `GraphletSampling`.
    C : float, optional
        Inverse strength of the regularisation, as in scikit-learn's SVC. By default 0.1 for "linear" and 10 for "rbf".

    Returns
    -------
    similia.Pipeline
        With steps ``graphlets``, ``scaler`` and ``classifier``. To use other features, set the parameter
        ``graphlets__features``. The scaler does not centre sparse features.

    References
    ----------
    .. [1] Ghanem, Keriven, Tremblay: Fast graph kernel with optical random features. ICASSP 2021. Algorithm GSA-phi.

    Examples
    --------
    >>> import networkx as nx
    >>> import similia as sm
    >>> X = [nx.cycle_graph(n) for n in range(8, 16)] + [nx.star_graph(n) for n in range(8, 16)]
    >>> y = ["cycle"] * 8 + ["star"] * 8
    >>> model = sm.recipes.graphlet_optical(size=4, n_samples=200, n_components=None, random_state=0)
    >>> model.fit(X, y).predict([nx.cycle_graph(30), nx.star_graph(30)])
    array(['cycle', 'star'], dtype='<U5')
    """
    if classifier not in ("linear", "rbf"):
        raise ValueError(f'classifier must be "linear" or "rbf", got {classifier!r}')
    if C is not None:
        check_positive(C, "C", also=" or None")
    seeds = spawn_seeds(random_state, 2)
    graphlets = GraphletSampling(size, n_samples, sampling, "optical", n_components, seeds[0])
    svm = SVC(C=10.0 if C is None else C)
    if classifier == "linear":
        svm = LinearSVC(C=0.1 if C is None else C, dual=False, max_iter=10_000, random_state=seeds[1])
    return Pipeline([("graphlets", graphlets), ("scaler", FeatureScaler()), ("classifier", svm)])


def _seeded(estimator: Any, seed: int | None) -> Any:
    """Return a copy of an estimator; all its random states that are None, nested ones too, are drawn from `seed`."""
    copy = clone(estimator)
    unset = [k for k, v in sorted(copy.get_params().items()) if k.endswith("random_state") and v is None]
    if seed is not None:
        drawn = np.random.SeedSequence(seed).generate_state(len(unset))
        copy.set_params(**{key: int(value) for key, value in zip(unset, drawn, strict=True)})
    return copy


def _linear(task: str, C: Any, tune: bool, seed: int | None) -> tuple[Any, dict[str, list[Any]]]:
    """Return the linear model for a task, and the grid of its regularisation if `tune`, else {}."""
    value = _CS[-2] if tune else C
    if task == "classification":
        # Standardised features of nearby random objects are nearly collinear, so the dual converges slowly. The
        # default tol of 1e-4 takes fourteen times as long at C = 0.1 for the same accuracy within its error.
        svm = LinearSVC(C=value, dual=False, tol=1e-2, max_iter=10_000, random_state=seed)
        return svm, {"learner__C": [*_CS]} if tune else {}
    if task == "regression":
        return Ridge(alpha=1 / (2 * value)), {"learner__alpha": [1 / (2 * c) for c in _CS]} if tune else {}
    raise ValueError(f'task must be "classification", "regression" or "auto", got {task!r}')


def pca_itq(
    n_bits: int,
    sample_fraction: float = 0.05,
    feature_fraction: float = 0.3,
    random_state: RandomState = None,
) -> Pipeline:
    """Return a pipeline that learns binary codes of vectors: signs of rotated approximate principal components [1]_.

    `GeneralizedNystroemPCA` learns principal components from a sample of vectors and features. `ITQ` [2]_ rotates the
    components so that little is lost when only their signs are kept, as bits. Codes of similar vectors differ in few
    bits, so `HammingIndex` can search for similar vectors.

    Parameters
    ----------
    n_bits : int
        Number of bits of a code, a multiple of 8; also the number of components.
    sample_fraction, feature_fraction : float, default=0.05 and 0.3
        Fractions of the training vectors and of their features that `GeneralizedNystroemPCA` samples. It samples at
        least ``4 * n_bits`` vectors and ``1.5 * n_bits`` features, or all if there are fewer.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the samples and of the rotation that `ITQ` starts with.

    Returns
    -------
    similia.Pipeline
        With steps ``pca`` and ``itq``. It maps vectors (n, n_features) to packed bits (n, n_bits // 8).

    References
    ----------
    .. [1] Yun, Kim, Choi: Hashing with Generalized Nyström Approximation. ICDM 2012. Algorithm 1.
    .. [2] Gong, Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary Codes. CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> X = np.random.default_rng(0).standard_normal((500, 64))
    >>> codes = sm.recipes.pca_itq(16, random_state=0).fit_transform(X)
    >>> codes.shape, codes.dtype
    ((500, 2), dtype('uint8'))
    """
    check_n_bits(n_bits)
    seeds = spawn_seeds(random_state, 2)
    pca = GeneralizedNystroemPCA(
        n_bits, sample_fraction=sample_fraction, feature_fraction=feature_fraction, random_state=seeds[0]
    )
    return Pipeline([("pca", pca), ("itq", ITQ(n_bits, random_state=seeds[1]))])


def heat_svm(
    contrast: float | Sequence[float] | Literal["tune", "suggest"] = "tune",
    C: float | Sequence[float] | Literal["tune"] = "tune",
    random_state: RandomState = None,
    *,
    mapping: Literal["auto", "sqrt", "projection"] | None = "auto",
    zero_rows: Literal["raise", "uniform"] = "raise",
    cv: Any = 5,
    class_weight: Any = None,
) -> HeatSVC:
    """Return a support vector machine with the exact heat kernel of a hypersphere [1]_.

    Vectors (counts, proportions, TF-IDF rows, embeddings, log-returns) are mapped to points of the unit sphere. The
    kernel of two points is the heat that reaches one of them from the other in a given time. The contrast sets this
    time: the larger the contrast, the shorter the time, and the more local the kernel. Cross-validation chooses the
    contrast and C.

    Parameters
    ----------
    contrast, C : "tune", "suggest", float or sequence of float, default="tune"
        Values to try by cross-validation; "tune" tries a grid, see `HeatSVC`. "suggest" (only for `contrast`) computes
        one value from the training rows instead.
    random_state : int, numpy Generator or RandomState, optional
        Seed for shuffling the rows before they are split into folds.
    mapping : {"auto", "sqrt", "projection"} or None, default="auto"
        How to make unit vectors. "sqrt": square roots of proportions, for non-negative data. "projection": division by
        the norm. "auto": "sqrt" if no number is negative, else "projection". None: rows are unit vectors already.
    zero_rows : {"raise", "uniform"}, default="raise"
        How to treat a row of zeros: raise an error, or give all its columns the same value.
    cv : int or splitter, default=5
        Folds of the cross-validation for "tune".
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.

    Returns
    -------
    HeatSVC
        A classifier of dense or sparse vectors. Its cost grows with the square of the number of rows; for many rows,
        use `HeatRandomFeatures` and a linear SVM.

    References
    ----------
    .. [1] Zhao, Song: Exact heat kernel on a hypersphere and its applications in kernel SVM. Frontiers in Applied
       Mathematics and Statistics, 2018.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> counts = sm.kernels.Spectrum(k=3).features(X, 64)  # counts of the 4**3 substrings of three letters
    >>> model = sm.recipes.heat_svm(random_state=0).fit(counts[::2], y[::2])
    >>> model.score(counts[1::2], y[1::2]) > 0.7
    True
    """
    return HeatSVC(contrast, C, mapping, zero_rows, cv, class_weight, random_state)
