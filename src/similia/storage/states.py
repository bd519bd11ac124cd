"""Decide which classes a model file may name, and check the attributes of loaded objects.

A file may name a class that the `__init__` of its package exports, such as ``similia.Nystroem`` or
``similia.kernels.Spectrum``, and that declares its state (`core.state`). Kernels and distances check their parameters
in each call; batches of objects are checked in `Batch.__setstate__`.

Of scikit-learn, a file may name the listed classes. The compiled code of decision trees and libsvm does not check
bounds. Therefore each tree is checked before it is built: children must come after their parent (so that a walk ends),
features must exist, and sizes must match the arrays. Each ensemble must match its trees. The arrays of support vector
machines are checked in the same way.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np

from similia.core.state import (
    NAMED,
    Sizes,
    State,
    array,
    count,
    declared,
    is_comparison,
    is_flag,
    labels,
    one_of,
    pairs_of,
)
from similia.core.text import short

_LARGEST = 2**31 - 1
_MOST = {  # maxima of parameters that make a call costly and that no array in the file limits
    "n_bits": 2**24, "n": 2**16, "n_levels": 2**20, "n_iter": 10**4, "max_iter": 10**6, "n_samples": 10**7,
    "n_projections": 10**5, "k": 10**4, "gaps": 10**3, "mismatches": 20, "degree": 10**4,
    "n_components": 2**24, "n_features": _LARGEST, "n_candidates": 10**7, "n_hashes": 2**16,
}  # fmt: skip
_UNLISTED = {  # classes that models hold although they are not public, and their modules
    "similia.embeddings": {
        "FeatureScaler": "vectors",
        "DilatedKernels": "convolutions",
        **dict.fromkeys(("Match", "MatchClasses", "Quadratic", "Waves", "PerPattern", "Spectra"), "graphlets"),
    },
    "similia.objects": {"SmilesBatch": "molecules"},
}
_PUBLIC = {
    "calibration", "cluster", "compose", "covariance", "cross_decomposition", "decomposition", "discriminant_analysis",
    "dummy", "ensemble", "feature_extraction", "feature_selection", "frozen", "gaussian_process", "impute", "isotonic",
    "kernel_approximation", "kernel_ridge", "linear_model", "manifold", "mixture", "model_selection", "multiclass",
    "multioutput", "naive_bayes", "neighbors", "neural_network", "pipeline", "preprocessing", "random_projection",
    "semi_supervised", "svm", "tree",
}  # fmt: skip
_TEXT = "sklearn.feature_extraction.text"
PARTS = {
    *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
    *(f"sklearn._loss.link.{name}" for name in (
        "HalfLogitLink", "IdentityLink", "Interval", "LogitLink", "LogLink", "MultinomialLogit",
    )),
    *(f"sklearn._loss.loss.{name}" for name in (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
        "HalfPoissonLoss", "HalfSquaredError", "HuberLoss", "PinballLoss",
    )),
    "sklearn._loss._loss.CyHalfMultinomialLoss",  # older skops does not write this one as a loss
}  # fmt: skip
LOSSES = {
    *(f"sklearn.linear_model._sgd_fast.{name}" for name in (
        "EpsilonInsensitive", "Hinge", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge",
    )),
    *(f"sklearn._loss._loss.Cy{name}" for name in (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
        "HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss", "PinballLoss",
    )),
}  # fmt: skip
TREE = "sklearn.tree._tree.Tree"
_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
            "RandomTreesEmbedding")  # fmt: skip
_BOOSTED = ("GradientBoostingClassifier", "GradientBoostingRegressor")
_LEAF = -1


def public_class(module: str, name: str) -> type | None:
    """Return the class with this public name, or None if model files must not name it."""
    package, _, room = module.partition(".")
    if package != "similia" or (room and room not in importlib.import_module("similia").__all__):
        return None
    found = _exported(module, name)
    return found if isinstance(found, type) and public_name(found) == (module, name) else None


def public_name(cls: type) -> tuple[str, str] | None:
    """Return the (module, name) by which model files name a class, or None if they must not name it."""
    if declared(cls) is None or not cls.__module__.startswith("similia."):
        return None
    room = ".".join(cls.__module__.split(".")[:2])
    return next(((home, cls.__name__) for home in ("similia", room) if _exported(home, cls.__name__) is cls), None)


def _exported(package: str, name: str) -> Any:
    """Return the object `name` if `package` exports it or `_UNLISTED` lists it for the package, otherwise None."""
    module = importlib.import_module(package)
    if name in getattr(module, "__all__", ()):
        return getattr(module, name)
    home = _UNLISTED.get(package, {}).get(name)
    return None if home is None else getattr(importlib.import_module(f"{package}.{home}"), name)


def check_states(root: Any, state_of: Callable[[Any], dict[str, Any]] = vars) -> None:
    """Raise ValueError if the attributes ``state_of(x)`` of an object x in the model `root` do not fit its class."""
    for value in _inside(root, state_of):
        cls, name, state = type(value), type(value).__name__, state_of(value)
        if cls.__module__.startswith("similia."):
            _check_plain(name, value, state)
        elif cls.__module__.startswith("sklearn."):
            _check_trees_of(name, state)
        for declaration in _declarations(cls):
            _check_declared(name, value, state, declaration)


def _declarations(cls: type) -> Iterator[State]:
    for base in cls.__mro__:
        if (theirs := _STATES.get(f"{base.__module__}.{base.__name__}")) is not None:
            yield theirs
    if (ours := declared(cls)) is not None:
        yield ours


def _check_declared(name: str, value: Any, state: dict[str, Any], declaration: State) -> None:
    sizes: Sizes = {}
    for attribute, check in declaration.checks.items():
        if attribute in state and not check(state[attribute], sizes):
            if attribute == "memory":
                raise ValueError(f"a {name} has memory set, a folder of pickles; set memory=None first")
            raise ValueError(f"a {name} has an invalid attribute {attribute}: {_described(state[attribute])}")
    known = list(declaration.checks)
    if hasattr(value, "_get_param_names"):  # an estimator: fitted attributes are all there, or none
        known = [attribute for attribute in known if attribute.startswith("_") or attribute.endswith("_")]
    needed = [attribute for attribute in known if attribute not in declaration.may_lack]
    lacking = [attribute for attribute in needed if attribute not in state]
    if lacking and (len(lacking) < len(needed) or not hasattr(value, "_get_param_names")):
        raise ValueError(f"a {name} lacks the attribute {lacking[0]}")
    if known and not lacking and not all(fits(state, sizes) for fits in declaration.fits):
        raise ValueError(f"a {name} has attributes that do not fit each other")


def _check_plain(name: str, value: Any, state: dict[str, Any]) -> None:
    """Raise if an attribute hides a method, or a parameter is missing, too large, or not of the type of its default."""
    for attribute in state:
        if callable(getattr(type(value), attribute, None)):
            raise ValueError(f"a {name} has an attribute {short(attribute)}, which is the name of a method")
    declaration = declared(type(value))
    for parameter, default in _parameters(type(value)):
        if parameter not in state:
            raise ValueError(f"a {name} lacks its parameter {parameter}")
        found, plain = state[parameter], isinstance(default, int | float)
        plain |= isinstance(default, str) and is_comparison(value)
        plain &= declaration is None or parameter not in declaration.checks
        if (isinstance(default, bool) and not is_flag(found, {})) or (plain and np.ndim(found) > 0):
            raise ValueError(f"a {name} has {parameter}={short(found)}, expected a value of the type of {default!r}")
    for parameter, most in _MOST.items():
        found = state.get(parameter)
        if isinstance(found, Integral) and int(found) > most:
            raise ValueError(f"a {name} has {parameter}={short(found)}, expected at most {most} in a file")


def _parameters(cls: type) -> list[tuple[str, Any]]:
    """Return the (name, default) of each constructor parameter of an estimator; an empty list for other classes."""
    if not hasattr(cls, "_get_param_names"):
        return []
    known = inspect.signature(cls).parameters
    return [(name, known[name].default) for name in cls._get_param_names()]


def _inside(root: Any, state_of: Callable[[Any], dict[str, Any]]) -> Iterator[Any]:
    """Yield once each object that has attributes: `root`, and those in its attributes and containers, at any depth."""
    stack, met = [root], set()
    while stack:
        value = stack.pop()
        if id(value) in met or isinstance(value, str | bytes | type):
            continue
        if isinstance(value, np.ndarray):
            stack.extend(value.ravel().tolist() if value.dtype == object else ())
            continue
        met.add(id(value))
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple | set):
            stack.extend(value)
        elif hasattr(value, "__dict__"):
            stack.extend(state_of(value).values())
            yield value


_SEARCHES = ("SimilaritySearch", "HammingIndex", "FeatureIndex", "VectorIndex")


def written(value: Any) -> dict[str, Any]:
    """Return the attributes that `save` writes for an object; a search or an index is written without its caches."""
    return value.__getstate__() if type(value).__name__ in _SEARCHES else vars(value)


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else short(value)


def is_public_estimator(name: str) -> bool:
    """Return whether `name` gives the defining module and the class of a public scikit-learn estimator."""
    module, _, cls = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or len(parts) < 2 or parts[1] not in _PUBLIC or cls.startswith("_"):
        return False
    from sklearn.base import BaseEstimator

    public = importlib.import_module(module if module == _TEXT else f"sklearn.{parts[1]}")
    found = getattr(public, cls, None)
    return isinstance(found, type) and issubclass(found, BaseEstimator) and found.__module__ == module


def check_tree(arguments: Any, state: Any) -> None:
    """Raise ValueError if constructor arguments and state of a `sklearn.tree._tree.Tree` are inconsistent."""
    try:
        n_features, n_classes, n_outputs = arguments
        nodes, values = state["nodes"], state["values"]
        fits = isinstance(n_features, int) and isinstance(n_outputs, int) and n_features > 0 and n_outputs > 0
        fits = fits and n_classes.dtype == np.intp and n_classes.shape == (n_outputs,) and n_classes.min() > 0
        fits = fits and nodes.ndim == 1 and len(nodes) == state["node_count"] > 0
        fits = fits and values.dtype == np.float64 and bool(np.isfinite(values).all())
        fits = fits and values.shape == (len(nodes), n_outputs, n_classes.max()) and values.flags.c_contiguous
        fits = fits and isinstance(state["max_depth"], int) and 0 <= state["max_depth"] < len(nodes)
        fits = fits and set(state) == {"max_depth", "node_count", "nodes", "values"} and _walks_end(nodes, n_features)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        fits = False
    if not fits:
        raise ValueError("a decision tree has inconsistent nodes")


def _walks_end(nodes: Any, n_features: int) -> bool:
    """Return whether each node is a leaf, or tests an existing feature and has two children that come after it."""
    left, right, numbers = nodes["left_child"], nodes["right_child"], np.arange(len(nodes))
    inner = left != _LEAF
    children = np.concatenate([left[inner], right[inner]])
    behind = (children > np.tile(numbers[inner], 2)) & (children < len(nodes))
    features = nodes["feature"][inner]
    return bool(behind.all() and (features >= 0).all() and (features < n_features).all())


def _check_trees_of(name: str, state: dict[str, Any]) -> None:
    """Raise ValueError if a scikit-learn estimator (of class `name`, with attributes `state`) has unsuitable trees."""
    if name == "IsolationForest" and "estimators_" in state:
        raise ValueError("an IsolationForest cannot be saved, because its trees cannot be checked when it is loaded")
    if name in _TREES and "tree_" in state:
        fits = _fits_estimator(state)
    elif name in _FORESTS and "estimators_" in state:
        trees = state["estimators_"]
        fits = isinstance(trees, list) and len(trees) > 0 and all(_fits_forest(tree, state) for tree in trees)
    elif name in _BOOSTED and "estimators_" in state:
        fits = _fits_boosting(state)
    else:
        return
    if not fits:
        raise ValueError(f"a {name} has trees that contradict its attributes")


def _class_counts(state: dict[str, Any]) -> list[int] | None:
    """Return the number of classes of each output of a classifier, or None for a regressor."""
    classes = state.get("classes_")
    if classes is None:
        return None
    return [len(one) for one in (classes if state["n_outputs_"] > 1 else [classes])]


def _fits_estimator(state: dict[str, Any]) -> bool:
    """Return whether the attributes of a tree estimator match its compiled tree, ``tree_``."""
    tree = state["tree_"]
    known = (type(tree).__module__, type(tree).__name__) == ("sklearn.tree._tree", "Tree")
    if not known or tree.n_features != state.get("n_features_in_") or tree.n_outputs != state.get("n_outputs_"):
        return False
    counts = _class_counts(state)
    return int(tree.max_n_classes) == 1 if counts is None else counts == np.asarray(tree.n_classes).tolist()


def _fits_forest(tree: Any, state: dict[str, Any]) -> bool:
    """Return whether a tree estimator matches the forest whose attributes are `state`."""
    if type(tree).__name__ not in _TREES or "tree_" not in vars(tree):
        return False
    same = all(vars(tree).get(name) == state.get(name) for name in ("n_features_in_", "n_outputs_"))
    return same and _class_counts(vars(tree)) == _class_counts(state)


def _fits_boosting(state: dict[str, Any]) -> bool:
    trees, classes = state["estimators_"], state.get("classes_")
    if not isinstance(trees, np.ndarray) or trees.ndim != 2 or trees.size == 0:
        return False
    columns = 1 if classes is None or len(classes) == 2 else len(classes)
    rate = state.get("learning_rate")
    return (
        trees.shape[1] == columns
        and isinstance(rate, int | float)
        and all(type(tree).__name__ == "DecisionTreeRegressor" and "tree_" in vars(tree) for tree in trees.flat)
        and all(vars(tree).get("n_features_in_") == state.get("n_features_in_") for tree in trees.flat)
        and all(tree.tree_.n_outputs == 1 and _fits_estimator(vars(tree)) for tree in trees.flat)
    )


def _is_steps(value: Any, sizes: Sizes) -> bool:
    """Return whether `value` is a list of (name, step) in which all steps but the last are transformers."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in value):
        return False
    steps = [step for _, step in value]
    passing = [step is None or (isinstance(step, str) and step == "passthrough") for step in steps]
    fitting = [hasattr(step, "fit") and hasattr(step, "set_params") for step in steps]
    changing = [hasattr(step, "transform") for step in steps[:-1]] + [True]
    return all(p or (f and c) for p, f, c in zip(passing, fitting, changing, strict=True))


def _svm_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    """Return whether the arrays that libsvm reads from a fitted support vector machine are consistent."""
    import scipy.sparse as sp

    c, s, counts, places = sizes.get("c", 2), sizes["s"], state["_n_support"], state["support_"]
    rows, coefficients, trained = (state.get(key) for key in ("support_vectors_", "_dual_coef_", "shape_fit_"))
    kinds = (sp.csr_array, sp.csr_matrix) if state["_sparse"] else np.ndarray
    if not (isinstance(rows, kinds) and isinstance(coefficients, kinds) and rows.dtype == coefficients.dtype == "f8"):
        return False
    if c < 2 or sizes["p"] != pairs_of(c) or not isinstance(trained, tuple):
        return False
    if coefficients.shape != (c - 1, s) or coefficients.size != (c - 1) * s:  # libsvm reads the stored numbers alone
        return False
    if {len(state["_probA"]), len(state["_probB"])} not in ({0}, {sizes["p"]}):
        return False
    if "c" in sizes and (counts.min() < 0 or counts.sum() != s):  # without classes, the counts are not read
        return False
    if len(trained) != 2 or not isinstance(trained[0], int):
        return False
    if s and not 0 <= places.min() <= places.max() < trained[0]:
        return False
    return not state["_sparse"] if state["kernel"] == "precomputed" else rows.shape == (s, sizes["d"])


_LIBSVM = State(
    {
        "support_": array("i4", "s"), "_n_support": array("i4", 2), "_gamma": NAMED["number"],
        "_intercept_": array("f8", "p"), "_probA": array("f8", None), "_probB": array("f8", None),
        "_sparse": is_flag, "n_features_in_": count("d"),
        "kernel": one_of("linear", "poly", "rbf", "sigmoid", "precomputed"),
    },
    frozenset(), (_svm_fits,),
)  # fmt: skip
_CLASSES = {"classes_": labels("c"), "_n_support": array("i4", "c")}
_CLASSIFIER = State(_LIBSVM.checks | _CLASSES, frozenset(), _LIBSVM.fits)
_STATES = {  # states of scikit-learn classes and their subclasses
    "sklearn.svm._classes.SVC": _CLASSIFIER,
    "sklearn.svm._classes.NuSVC": _CLASSIFIER,
    "sklearn.svm._classes.SVR": _LIBSVM,
    "sklearn.svm._classes.NuSVR": _LIBSVM,
    "sklearn.svm._classes.OneClassSVM": _LIBSVM,
    "sklearn.pipeline.Pipeline": State({"steps": _is_steps, "memory": one_of(None)}, frozenset(), ()),
}
