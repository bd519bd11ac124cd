"""What a model file may name, and the objects made of its nodes.

A file of the skops format is read here, not by skops, whose import loads all of scikit-learn, its tests, pandas and
Dask (a second); `_model_file` has looked at the form of the file before. A node may name

- a class on the literal list of its caller;
- an estimator that scikit-learn exports, by the module it is defined in, and the few parts of estimators below;
- a ufunc of numpy or scipy.special, a plain type, a scalar type of numpy.

Nothing else is imported, and nothing is called but ``__new__``, ``__setstate__`` and the constructors of losses, trees
and random generators, with arguments that are checked.
"""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import Any

import numpy as np

from similia.storage._trees import check_tree

_PUBLIC = {
    "calibration", "cluster", "compose", "covariance", "cross_decomposition", "decomposition", "discriminant_analysis",
    "dummy", "ensemble", "feature_extraction", "feature_selection", "frozen", "gaussian_process", "impute", "isotonic",
    "kernel_approximation", "kernel_ridge", "linear_model", "manifold", "mixture", "model_selection", "multiclass",
    "multioutput", "naive_bayes", "neighbors", "neural_network", "pipeline", "preprocessing", "random_projection",
    "semi_supervised", "svm", "tree",
}  # fmt: skip
_TEXT = "sklearn.feature_extraction.text"
_PARTS = {
    *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
    *(f"sklearn._loss.link.{name}" for name in (
        "HalfLogitLink", "IdentityLink", "Interval", "LogitLink", "LogLink", "MultinomialLogit",
    )),
    *(f"sklearn._loss.loss.{name}" for name in (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
        "HalfPoissonLoss", "HalfSquaredError", "HuberLoss", "PinballLoss",
    )),
}  # fmt: skip
_LOSSES = {
    *(f"sklearn.linear_model._sgd_fast.{name}" for name in (
        "EpsilonInsensitive", "Hinge", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge",
    )),
    *(f"sklearn._loss._loss.Cy{name}" for name in (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
        "HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss", "PinballLoss",
    )),
}  # fmt: skip
_TREE = "sklearn.tree._tree.Tree"
_BUILTINS = {"int", "float", "str", "bool", "list", "set", "tuple"}
_MADE_OF = {  # loaders that make one thing each
    "DictNode": ("builtins.dict", "collections.OrderedDict"), "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",), "SetNode": ("builtins.set",), "BytesNode": ("builtins.bytes",),
    "BytearrayNode": ("builtins.bytearray",), "SliceNode": ("builtins.slice",), "TreeNode": (_TREE,),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",), "MaskedArrayNode": ("numpy.ma.MaskedArray",
    "numpy.ma.core.MaskedArray"), "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "SparseMatrixNode": ("scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array"),
}  # fmt: skip


def nodes_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a description, in the order they are written."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(value.get("__loader__"), str):
                yield value
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))


def refused_names(schema: Any, listed: Collection[str]) -> list[str]:
    """Return the names in a description that a model file may not hold, sorted."""
    return sorted({_name(node) for node in nodes_of(schema) if not _is_allowed(node, listed)})


def _name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _is_allowed(node: dict[str, Any], listed: Collection[str]) -> bool:
    name, loader = _name(node), node["__loader__"]
    if loader == "JsonNode":
        return True
    if loader == "ObjectNode":
        return name in listed or name in _PARTS or _is_public_estimator(*_split(name))
    if loader == "LossNode":
        return name in _LOSSES
    if loader == "FunctionNode":
        return _ufunc(node) is not None
    if loader in ("TypeNode", "NdArrayNode"):
        return name == "numpy.ndarray" or _plain_type(node) is not None
    return name in _MADE_OF.get(loader, ())


def _split(name: str) -> tuple[str, str]:
    module, _, cls = name.rpartition(".")
    return module, cls


def _is_public_estimator(module: str, cls: str) -> bool:
    """Whether this is an estimator that scikit-learn exports, named by the module that defines it."""
    parts = module.split(".")
    if parts[0] != "sklearn" or len(parts) < 2 or parts[1] not in _PUBLIC or cls.startswith("_"):
        return False
    from sklearn.base import BaseEstimator

    public = importlib.import_module(module if module == _TEXT else f"sklearn.{parts[1]}")
    found = getattr(public, cls, None)
    return isinstance(found, type) and issubclass(found, BaseEstimator) and found.__module__ == module


def _ufunc(node: dict[str, Any]) -> Any:
    """Return the function a node names if it is a ufunc of numpy or scipy.special."""
    package = str(node["__module__"]).partition(".")[0]
    if package not in ("numpy", "scipy"):
        return None
    found = getattr(np if package == "numpy" else importlib.import_module("scipy.special"), node["__class__"], None)
    return found if isinstance(found, np.ufunc) else None


def _plain_type(node: dict[str, Any]) -> Any:
    """Return the type a node names if it is a plain one of Python, or of the scalars of numpy."""
    module, cls = node["__module__"], node["__class__"]
    if module == "builtins" and cls in _BUILTINS:
        return {"int": int, "float": float, "str": str, "bool": bool, "list": list, "set": set, "tuple": tuple}[cls]
    found = getattr(np, cls, None) if module == "numpy" else None
    return found if isinstance(found, type) and issubclass(found, np.generic) else None


class Builder:
    """Makes the objects of a description whose names are allowed; each node that has a number is made once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.made: dict[int, Any] = {}

    def make(self, node: dict[str, Any]) -> Any:
        """Return the object of a node."""
        number = node.get("__id__")
        if number is not None and number in self.made:
            return self.made[number]
        made = getattr(self, f"_{node['__loader__']}")(node)
        if number is not None:
            self.made[number] = made
        return made

    def _all(self, nodes: list[dict[str, Any]]) -> list[Any]:
        return [self.make(node) for node in nodes]

    def _read(self, node: dict[str, Any]) -> bytes:
        return self.archive.read(node["file"])

    def _JsonNode(self, node: dict[str, Any]) -> Any:
        return json.loads(node["content"])

    def _DictNode(self, node: dict[str, Any]) -> Any:
        from collections import OrderedDict

        content: dict[Any, Any] = OrderedDict() if node["__class__"] == "OrderedDict" else {}
        for kind, (key, value) in zip(self.make(node["key_types"]), node["content"].items(), strict=True):
            content[kind(key)] = self.make(value)
        return content

    def _ListNode(self, node: dict[str, Any]) -> Any:
        return self._all(node["content"])

    def _TupleNode(self, node: dict[str, Any]) -> Any:
        return tuple(self._all(node["content"]))

    def _SetNode(self, node: dict[str, Any]) -> Any:
        return set(self._all(node["content"]))

    def _BytesNode(self, node: dict[str, Any]) -> Any:
        return self._read(node)

    def _BytearrayNode(self, node: dict[str, Any]) -> Any:
        return bytearray(self._read(node))

    def _SliceNode(self, node: dict[str, Any]) -> Any:
        return slice(*(node["content"][name] for name in ("start", "stop", "step")))

    def _TypeNode(self, node: dict[str, Any]) -> Any:
        return _plain_type(node)

    def _FunctionNode(self, node: dict[str, Any]) -> Any:
        return _ufunc(node)

    def _NdArrayNode(self, node: dict[str, Any]) -> Any:
        if node["type"] == "json":
            shape, items = self.make(node["shape"]), self._all(node["content"])
            if len(shape) != 1:
                return np.array(items, object)
            objects = np.empty(len(items), object)
            for i, item in enumerate(items):
                objects[i] = item
            return objects
        array = np.load(BytesIO(self._read(node)), allow_pickle=False)
        return array if node["__class__"] == "ndarray" else _plain_type(node)(array)

    def _MaskedArrayNode(self, node: dict[str, Any]) -> Any:
        return np.ma.MaskedArray(self.make(node["content"]["data"]), self.make(node["content"]["mask"]))

    def _SparseMatrixNode(self, node: dict[str, Any]) -> Any:
        from scipy.sparse import load_npz

        return load_npz(BytesIO(self._read(node)))

    def _RandomStateNode(self, node: dict[str, Any]) -> Any:
        random = np.random.RandomState()
        random.set_state(self.make(node["content"]))
        return random

    def _RandomGeneratorNode(self, node: dict[str, Any]) -> Any:
        state, seeds = (self.make(node["content"][name]) for name in ("bit_generator", "seed_seq"))
        kind = getattr(np.random, str(state["bit_generator"]), None)
        if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
            raise ValueError(f"{state['bit_generator']!r} is no random generator of numpy")
        bits = kind(np.random.SeedSequence(**seeds))
        bits.state = state
        return np.random.Generator(bits)

    def _ObjectNode(self, node: dict[str, Any]) -> Any:
        cls = _class(node)
        made = cls.__new__(cls)
        return made if node.get("content") is None else _with_state(made, self.make(node["content"]))

    def _LossNode(self, node: dict[str, Any]) -> Any:
        loss = _class(node)(*self.make(node["__reduce__"]["args"]))
        return _with_state(loss, self.make(node["content"]) or None)

    def _TreeNode(self, node: dict[str, Any]) -> Any:
        arguments, state = self.make(node["__reduce__"]["args"]), self.make(node["content"])
        check_tree(arguments, state)
        return _with_state(_class(node)(*arguments), state)


def _class(node: dict[str, Any]) -> Any:
    return getattr(importlib.import_module(node["__module__"]), node["__class__"])


def _with_state(made: Any, state: Any) -> Any:
    if state is not None and hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state is not None:
        made.__dict__.update(state)
    return made
