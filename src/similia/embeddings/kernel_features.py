"""The explicit features of a kernel as a step of a pipeline: exact, sparse, nothing learned.

phi(x) with phi(x)^T phi(y) = k(x, y), the feature ids folded into n_features columns (see
`similia.kernels.base.FeatureKernel.features`). Cost: that of counting the features of each object once.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from similia._lazily import lazily
from similia._validation import check_positive_int, is_table
from similia.kernels._evaluate import check_kernel, read_objects, refuse_class, takes_sparse


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn objects into the sparse explicit features of a kernel.

    A linear model on them is the kernel machine, without a kernel matrix and without landmarks.

    Parameters
    ----------
    kernel : kernel with explicit features
        One of `similia.kernels` that counts substructures (``Spectrum``, ``WeisfeilerLehman``, ...), a
        ``Sum`` or ``Normalized`` of them, or any object with ``features(X, n_features)``. Grid search reaches
        its parameters as ``kernel__name``.
    n_features : int, default=2**20
        Number of columns that the features are folded into; two given features share one with
        probability 1 / n_features.

    Notes
    -----
    The transformer is stateless: `transform` needs no `fit`, and an object has the same row in any
    collection and process. Its columns are hashed: `get_feature_names_out` numbers them, kernelfeatures0 and so on, and
    does not say which substructures fell into one. Sparse output has no data frame: scikit-learn refuses
    ``set_output("pandas")`` for it in a sentence.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import similia as sm
    >>> X, y = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC"], [0, 0, 1, 1]
    >>> model = make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(k=2)), LinearSVC()).fit(X, y)
    >>> model.predict(["TTACAT", "GCGC"])
    array([0, 1])
    """

    def __init__(self, kernel: Any, n_features: int = 2**20) -> None:
        self.kernel = kernel
        self.n_features = n_features

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; nothing is learned, and objects other than vectors are not read.

        Parameters
        ----------
        X : collection of objects, optional
            Of the columns of a table the number and the names are kept.
        y : ignored

        Returns
        -------
        KernelFeatures
            The estimator itself.

        Raises
        ------
        TypeError
            If the kernel has no explicit features.
        ValueError
            If `n_features` is not an integer >= 1.
        """
        refuse_class(self.kernel, "kernel")
        if not hasattr(self.kernel, "features"):
            check_kernel(self.kernel)
            raise TypeError(
                f"the kernel {self.kernel!r} has no explicit features; similia.Nystroem makes vectors of any kernel"
            )
        check_positive_int(self.n_features, "n_features")
        if is_table(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            read_objects(self, self.kernel, X, reset=True)
        return self

    @lazily
    def transform(self, X: Any) -> sp.csr_array:
        """Return the features of objects.

        Parameters
        ----------
        X : collection of n objects

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n_features)

        Raises
        ------
        TypeError, ValueError
            As `fit`, and as the kernel for objects that it does not take.
        """
        self.fit()
        if is_table(X):
            X = read_objects(self, self.kernel, X, reset=False)
        features: sp.csr_array = self.kernel.features(X, self.n_features)
        return features

    @property
    def _n_features_out(self) -> int:
        return self.n_features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = takes_sparse(self.kernel)
        tags.transformer_tags.preserves_dtype = ["float64"]
        tags.input_tags.string = True
        return tags
