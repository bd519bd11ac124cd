r"""Graphlet sampling and averaging (GSA-phi): a graph becomes the mean of a map phi over sampled induced subgraphs.

.. math:: z(G) = \frac{1}{s} \sum_{i=1}^{s} \phi(F_i), \qquad F_i \sim S_k(G) \text{ i.i.d.}

Inner products of these vectors estimate the mean kernel of the laws of the graphlets, and their distances its MMD.
Cost: linear in the number of graphs and of samples. Optical features cost the same whatever their number, but for
writing them down: they are quadratic in the adjacency bits, so that second moments are all that is averaged.

Paper: Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021, and the thesis it
is part of, Algorithm GSA-phi and Eqs. 3.2-3.11.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from similia.core.fitting import all_at_once
from similia.core.transformers import Transformer, check_table, example_of
from similia.embeddings._moments import moments
from similia.sources.lazily import from_parts, lazily


class FeatureScaler(Transformer):
    """Standardise vectors: dense ones to mean 0 and deviation 1, sparse ones, to stay sparse, to deviation 1 only.

    Attributes
    ----------
    scaler_ : sklearn.preprocessing.StandardScaler
        Fitted.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from similia.embeddings.scaling import FeatureScaler
    >>> X = [[0.0, 2.0], [2.0, 6.0]]
    >>> FeatureScaler().fit_transform(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> FeatureScaler().fit_transform(csr_array(X)).toarray()
    array([[0., 1.],
           [2., 3.]])
    """

    _takes = ("sparse",)

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and deviations of columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        y : ignored

        Returns
        -------
        FeatureScaler
            The fitted estimator itself.
        """
        like = example_of(X)
        X = X if hasattr(X, "shape") else np.asarray(X)
        scaler = StandardScaler(with_mean=not issparse(like)).fit(like)  # learns names and number of the columns
        if getattr(getattr(X, "dtype", None), "kind", "") == "O":
            X = X.astype(np.float64)
        n, mean, variance = moments(X, _rows)
        eps = np.finfo(np.float64).eps
        constant = variance <= n * eps * variance + (n * mean * eps) ** 2  # as scikit-learn sees it
        scaler.n_samples_seen_, scaler.mean_, scaler.var_ = n, mean, variance
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))
        self.scaler_ = scaler
        self._learn_columns(like)
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Return the vectors scaled, in the form they came in, shape (n, n_features)."""
        check_is_fitted(self)
        check_table(self, X, reset=False)
        scaled = self.scaler_.transform(X)
        if not np.isfinite(scaled.data if issparse(scaled) else np.asarray(scaled)).all():
            _rows(scaled, 0)
        return scaled

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns, as they were."""
        check_is_fitted(self)
        names: npt.NDArray[Any] = self.scaler_.get_feature_names_out(input_features)
        return names


def _rows(X: Any, start: int) -> npt.NDArray[np.floating]:
    """Return rows as a dense array of finite floats, or raise naming the first that is not."""
    rows = np.ascontiguousarray(X.toarray() if issparse(X) else X)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = start + int(np.argmin(finite))
        raise ValueError(f"X[{row}] holds NaN or infinity, expected finite numbers; drop or impute that row")
    return rows
