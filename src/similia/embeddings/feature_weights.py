r"""Weights of counted features: rare ones count more, and each object's row is scaled to norm 1.

A count c_f(x) becomes

.. math:: z_f(x) = g(c_f(x)) \, w_f, \qquad w_f = 1 + \ln \frac{1 + n}{1 + n_f},

where n_f of the n training objects have the feature f. The function g is g(c) = c, or g(c) = 1 + ln c if `sublinear` is
True. The rows are then divided by their norm. On counts of words this is TF-IDF (Salton & Buckley 1988), with
scikit-learn's smoothing; here the features are those of any kernel. Cost: one pass over the non-zero entries.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from similia.core.errors import BadParameter, BadValue
from similia.core.estimators import Transformer, all_at_once
from similia.core.state import array, state
from similia.core.text import short
from similia.core.validation import check_positive_int
from similia.objects.sequences import as_csr
from similia.sources.dask import lazily, refuse_lazy


@state(idf_=array("f8", "d"))
class FeatureWeights(Transformer):
    """Weight features by their rarity, as TF-IDF does; a pipeline step after `KernelFeatures`.

    Parameters
    ----------
    idf : bool, default=True
        Whether to multiply each feature by its inverse document frequency, 1 + ln((1 + n) / (1 + n_f)). Here n is the
        number of training objects, and n_f the number of those that have the feature.
    sublinear : bool, default=False
        Whether to replace each count c > 0 by 1 + ln(c).
    norm : {"l2", "l1"} or None, default="l2"
        Norm by which each row is divided at the end; None leaves the rows as they are.
    min_objects : int, default=1
        Minimum number of training objects that must have a feature; the columns of rarer features become 0. The default
        affects only features that no training object has.

    Attributes
    ----------
    idf_ : ndarray of float64, shape (n_features,)
        Weight of each column.

    Notes
    -----
    Use a kernel with ``normalize=False`` (the default of the kernels below): this step normalises the rows, and
    `sublinear` expects counts. `KernelFeatures` may hash several features to one column; n_f is then the number of
    objects that have at least one of them.

    With the following kernels, the inner products of rows equal those of scikit-learn's
    ``TfidfVectorizer(lowercase=False)`` with the same ``ngram_range``: ``Spectrum(k=(1, 5))`` for the analyzer "char"
    (if no text has two white spaces in a row), ``Spectrum(k=(1, 5), boundaries="words")`` for "char_wb", and
    ``Words((1, 2))`` for "word". Features that share a column cause small differences.

    References
    ----------
    Salton & Buckley, "Term-weighting approaches in automatic text retrieval", Information Processing & Management 1988.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import similia as sm
    >>> X, y = ["to be or not to be", "not to be", "a rose is a rose", "roses are red"], [0, 0, 1, 1]
    >>> kmers = sm.KernelFeatures(sm.kernels.Spectrum(k=3))
    >>> model = make_pipeline(kmers, sm.FeatureWeights(sublinear=True), LinearSVC()).fit(X, y)
    >>> model.predict(["or not", "a red rose"])
    array([0, 1])
    """

    _takes = ("sparse",)
    _dtypes = ("float64",)

    def __init__(
        self, idf: bool = True, sublinear: bool = False, norm: str | None = "l2", min_objects: int = 1
    ) -> None:
        self.idf = idf
        self.sublinear = sublinear
        self.norm = norm
        self.min_objects = min_objects

    @all_at_once
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the weight of each column from features of shape (n, n_features), sparse or dense; `y` is ignored."""
        refuse_lazy(X, "frequencies need all objects at once: compute the features first, or weight them in memory")
        least = check_positive_int(self.min_objects, "min_objects", minimum=0)
        X = self._checked(X, reset=True)
        n_objects = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
        weights = np.log((1.0 + X.shape[0]) / (1.0 + n_objects)) + 1.0 if self.idf else np.ones(X.shape[1])
        self.idf_ = np.where(n_objects >= least, weights, 0.0)
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Return the weighted features, shape (n, n_features): csr_array if `X` is sparse, else ndarray; float64.

        Raises
        ------
        ValueError
            If `sublinear` is True and a value is negative or between 0 and 1, so it is not a count.
        """
        check_is_fitted(self)
        is_sparse = sp.issparse(X)
        X = self._checked(X, reset=False)
        values = X.data
        if self.sublinear:
            self._check_counts(X)
            values = np.log(np.where(values > 0, values, 1.0)) + (values > 0)
        values = values * self.idf_[X.indices]
        if self.norm is not None:
            values *= _powers_of_two(values, X.indptr)
        weighted = sp.csr_array((values, X.indices, X.indptr), shape=X.shape, copy=True)  # sorted later, perhaps
        if self.norm is not None:
            norms = _norms(values, X.indptr, self.norm)
            weighted.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(X.indptr))
        return weighted if is_sparse else weighted.toarray()

    def _checked(self, X: Any, *, reset: bool) -> sp.csr_array:
        """Return `X` as a csr_array of float64, after checks of its width and values and of the parameters."""
        if self.norm not in ("l1", "l2", None):
            raise BadParameter("norm", "'l2', 'l1' or None", short(self.norm))
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return as_csr(X)

    @staticmethod
    def _check_counts(X: sp.csr_array) -> None:
        wrong = (X.data != 0) & (X.data < 1)
        if wrong.any():
            entry = int(np.argmax(wrong))
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            found = f"has the value {X.data[entry]:.4g} in column {X.indices[entry]}"
            remedy = "FeatureWeights(sublinear=True) takes counts: use normalize=False in the kernel"
            raise BadValue(row, found, "0 or at least 1", remedy)

    @property
    def _n_features_out(self) -> int:
        return len(self.idf_)


def _powers_of_two(values: npt.NDArray[np.float64], indptr: npt.NDArray) -> npt.NDArray[np.float64]:
    """Return a factor for each entry, one per row, that keeps the square of the row's largest entry from 0 and inf."""
    largest = np.maximum.reduceat(np.append(np.abs(values), 0.0), indptr[:-1])
    factors = np.ldexp(1.0, np.clip(-np.frexp(largest)[1], -1000, 1000))
    return np.repeat(factors, np.diff(indptr))


def _norms(values: npt.NDArray[np.float64], indptr: npt.NDArray, norm: str) -> npt.NDArray[np.float64]:
    """Return the norm of each row, its sum in the order of the entries, whatever the other rows."""
    sizes = np.abs(values) if norm == "l1" else values * values
    sums = np.add.reduceat(np.append(sizes, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
    return sums if norm == "l1" else np.sqrt(sums)
