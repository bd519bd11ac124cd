"""Transformers that convert objects to a one-column table and back, for scikit-learn, or scale node attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadValue
from similia.core.estimators import ObjectsOut, all_at_once
from similia.core.state import array, state
from similia.objects.graph_batch import GraphBatch, check_attributes
from similia.objects.graphs import as_graphs
from similia.objects.sequences import at_least_one
from similia.objects.tables import is_frame, not_a_column, objects_in


def as_column(X: Any) -> npt.NDArray[Any]:
    """Convert a collection of objects to a table of one column.

    scikit-learn's ``BaggingClassifier``, ``permutation_importance`` and others accept only tables. Pass them this
    table, and begin the pipeline inside them with `FromColumn`, which turns the table back into a collection.

    Parameters
    ----------
    X : collection of n objects
        List, tuple, object array, Series, data frame of one column, or a batch such as `GraphBatch`.

    Returns
    -------
    ndarray of object, shape (n, 1)
        The objects themselves, not copies.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import similia as sm
    >>> from similia.objects.transformers import FromColumn, as_column
    >>> X, y = ["GATTACA", "ATTAC", "TATTA", "CCGCGG", "CGCGC", "GCGG"], [0, 0, 0, 1, 1, 1]
    >>> model = make_pipeline(FromColumn(), sm.KernelFeatures(sm.kernels.Spectrum(k=2), 256), LinearSVC())
    >>> bag = BaggingClassifier(model, n_estimators=5, random_state=0).fit(as_column(X), y)
    >>> bag.predict(as_column(["TTACA", "GCGC"]))
    array([0, 1])
    """
    X = objects_in(X, numbers=True)
    if is_frame(X):
        raise not_a_column(X, "objects")
    column = np.empty((at_least_one(X), 1), dtype=object)
    for i, value in enumerate(X):
        column[i, 0] = value
    return column


@state()
class FromColumn(ObjectsOut):
    """Convert a table of one column to a 1-D array of its objects.

    Use it as the first step of a pipeline inside a meta-estimator that requires tables; see `as_column`. Collections
    with one axis, such as lists, are returned unchanged. `fit` only checks `X`.

    Examples
    --------
    >>> from similia.objects.transformers import FromColumn, as_column
    >>> FromColumn().fit_transform(as_column(["GATTACA", "AC"]))
    array(['GATTACA', 'AC'], dtype=object)
    """

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that `X` is a table of one column, or a collection with one axis."""
        self.transform(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the objects as an array of shape (n,), or `X` itself if it has one axis."""
        n = at_least_one(X)
        shape = tuple(getattr(X, "shape", (n,)))
        if len(shape) == 1:
            return X
        if shape != (n, 1):
            remedy = "similia.objects.as_column(X) makes such a table, ColumnTransformer selects one column of a table"
            raise BadValue(None, f"has shape {shape}", "one column of objects", remedy)
        return np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=object)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@state(mean_=array("f8", "d"), scale_=array("f8", "d"))
class AttributeScaler(ObjectsOut):
    """Shift and scale each node attribute to mean 0 and standard deviation 1 over the nodes seen in ``fit``.

    A constant attribute becomes 0. The output is a `GraphBatch`. In a pipeline, put the scaler before `Nystroem` or any
    other step that takes graphs.

    Attributes
    ----------
    mean_, scale_ : ndarray of float64, shape (n_attributes,)
        Mean and standard deviation of each attribute. A standard deviation of 0, up to rounding, is stored as 1.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects import AttributeScaler
    >>> edge = {"edge_index": np.array([[0], [1]]), "n_nodes": 2, "node_attributes": np.array([[0.0], [4.0]])}
    >>> AttributeScaler().fit_transform([edge]).node_attributes.ravel()
    array([-1.,  1.])
    """

    mean_: np.ndarray
    scale_: np.ndarray

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the mean and standard deviation of each node attribute; raise if the graphs have no attributes."""
        attributes = self._attributes(as_graphs(X))
        # Powers of two bring each attribute near 1, so that squares are neither 0 nor infinite.
        exponents = np.frexp(np.abs(attributes).max(axis=0, initial=0.0))[1]
        with np.errstate(under="ignore"):
            units = np.ldexp(attributes, -exponents)
            mean, deviation = units.mean(axis=0), units.std(axis=0)
            if len(units):
                mean = np.clip(mean, units.min(axis=0), units.max(axis=0))  # exact for a constant attribute
            rounding = len(units) * np.finfo(np.float64).eps * np.abs(mean)  # as in scikit-learn's StandardScaler
        self.mean_ = np.ldexp(mean, exponents)
        self.scale_ = np.where(deviation > rounding, np.ldexp(deviation, exponents), 1.0)
        return self

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs with scaled attributes; `X` is not changed."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        attributes = np.zeros((0, len(self.mean_))) if graphs.n_nodes == 0 else self._attributes(graphs)
        if attributes.shape[1] != len(self.mean_):
            raise ValueError(f"nodes have {attributes.shape[1]} attributes, expected {len(self.mean_)} as in fit")
        exponents = np.frexp(np.maximum(np.abs(self.mean_), self.scale_))[1]
        mean, scale = np.ldexp(self.mean_, -exponents), np.ldexp(self.scale_, -exponents)
        with np.errstate(under="ignore"):
            scaled = (np.ldexp(attributes, -exponents) - mean) / scale
        return replace(graphs, node_attributes=scaled)

    @staticmethod
    def _attributes(graphs: GraphBatch) -> np.ndarray:
        if graphs.node_attributes is None:
            raise ValueError("these graphs have no node attributes to scale; remove AttributeScaler to compare labels")
        check_attributes(graphs)
        return graphs.node_attributes
