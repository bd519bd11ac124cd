"""Lists of the scikit-learn classes that a model file may hold, and checks of their state.

The compiled code of decision trees and libsvm does not check bounds. Therefore each tree is checked before it is built:
children must come after their parent (so that a walk ends), features must exist, and sizes must match the arrays. Each
ensemble must match its trees. The arrays of support vector machines are checked in the same way.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from similia.core.state import NAMED, Sizes, State, array, count, is_flag, labels, one_of, pairs_of

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
TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
            "RandomTreesEmbedding")  # fmt: skip
_BOOSTED = ("GradientBoostingClassifier", "GradientBoostingRegressor")
_LEAF = -1


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


def check_trees_of(name: str, state: dict[str, Any]) -> None:
    """Raise ValueError if a scikit-learn estimator (of class `name`, with attributes `state`) has unsuitable trees."""
    if name == "IsolationForest" and "estimators_" in state:
        raise ValueError("an IsolationForest cannot be saved, because its trees cannot be checked when it is loaded")
    if name in TREES and "tree_" in state:
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
    if type(tree).__name__ not in TREES or "tree_" not in vars(tree):
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
STATES = {  # states of scikit-learn classes and their subclasses
    "sklearn.svm._classes.SVC": _CLASSIFIER,
    "sklearn.svm._classes.NuSVC": _CLASSIFIER,
    "sklearn.svm._classes.SVR": _LIBSVM,
    "sklearn.svm._classes.NuSVR": _LIBSVM,
    "sklearn.svm._classes.OneClassSVM": _LIBSVM,
    "sklearn.pipeline.Pipeline": State({"steps": _is_steps, "memory": one_of(None)}, frozenset(), ()),
}
