"""Node attributes on one scale: kernels that bin attributes need it, and kernels learn nothing from data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from similia.core.fitting import all_at_once
from similia.core.transformers import ObjectsOut
from similia.objects._graphs import GraphBatch
from similia.objects.graphs import as_graphs


class AttributeScaler(ObjectsOut):
    """Shift and scale each node attribute to mean 0 and standard deviation 1 over the nodes seen in ``fit``.

    A constant attribute becomes 0. Graphs in, graphs out: put it before `Nystroem` in a pipeline.

    Attributes
    ----------
    mean_, scale_ : ndarray of float64, shape (n_attributes,)

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
        """Learn mean and standard deviation of each attribute.

        Parameters
        ----------
        X : sequence of n graphs with node attributes
        y : ignored

        Raises
        ------
        ValueError
            If the graphs have no node attributes.
        """
        attributes = self._attributes(as_graphs(X))
        # Powers of two bring each attribute near 1, so that squares are neither 0 nor infinite.
        exponents = np.frexp(np.abs(attributes).max(axis=0, initial=0.0))[1]
        with np.errstate(under="ignore"):
            units = np.ldexp(attributes, -exponents)
            deviation = units.std(axis=0)
        self.mean_ = np.ldexp(units.mean(axis=0), exponents)
        self.scale_ = np.where(deviation > 0, np.ldexp(deviation, exponents), 1.0)
        return self

    def transform(self, X: Any) -> GraphBatch:
        """Return the graphs with scaled attributes; `X` stays as it is."""
        check_is_fitted(self)
        graphs = as_graphs(X)
        attributes = self._attributes(graphs)
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
            raise ValueError("these graphs have no node attributes to scale; kernels of labels need no AttributeScaler")
        return graphs.node_attributes
