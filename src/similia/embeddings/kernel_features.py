r"""The exact, sparse explicit features of a kernel as a pipeline step, and weights for them.

An object x becomes a vector phi(x) with phi(x)^T phi(y) = k(x, y), whose feature ids are hashed to n_features columns
(see `similia.kernels.FeatureKernel.features`). Cost: the features of each object are counted once.

A linear model gives the same answer for every object that has no non-zero column in common with the training objects.
So `transform` warns of objects that share no more columns with the training objects than hash collisions explain.

*Weights.* Rare features count more, and each object's row is scaled to norm 1. A count c_f(x) becomes

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
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from similia.core.estimators import (
    Transformer,
    all_at_once,
    check_fitted,
    columns_told,
    detached,
    example_of,
    is_lazy,
)
from similia.core.jit import njit
from similia.core.state import array, count, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadValue,
    ObjectsWarning,
    as_array,
    check_positive_int,
    is_table,
    not_dates,
    warn_of_objects,
)
from similia.kernels.counts import check_alike
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, as_csr
from similia.similarity import (
    ComparesObjects,
    Kernel,
    as_objects,
    check_kernel,
    compared,
    name_of,
    read_objects,
    refuse_class,
    warn_of_strangers,
)
from similia.sources.dask import as_parts, lazily, refuse_lazy

_N_READ = 8  # number of graphs that `fit` reads
_MOST = 2**24  # up to this many columns, `met_` is kept: at most 2 MiB; a linear model's weights take 128 MiB


@state(
    fits=lambda state, sizes: len(state.get("met_", ())) in (0, -(-int(state["n_features"]) // 8)),
    may_lack=("kernel_", "met_", "compared_"),  # met_ is not kept for more than _MOST columns
    kernel="kernel", kernel_="kernel", n_features=count(least=1), met_=array("u1", None), compared_="texts",
)  # fmt: skip
class KernelFeatures(ComparesObjects, Transformer):
    """Turn objects into the sparse explicit features of a kernel.

    The kernel is the inner product of these features (such as counts of substructures), so a linear model on them is a
    kernel machine that needs no kernel matrix.

    Parameters
    ----------
    kernel : kernel with explicit features
        A kernel of `similia.kernels` that counts substructures (``Spectrum``, ``WeisfeilerLehman``, ...), a ``Sum`` or
        ``Normalized`` of such kernels, or any object with a method ``features(X, n_features)``. In a grid search,
        parameters of the kernel are named ``kernel__name``.
    n_features : int, default=2**20
        Number of columns to which the features are hashed; two given features share a column with probability
        1 / n_features.

    Attributes
    ----------
    kernel_ : kernel
        Copy of `kernel` made by `fit`.
    met_ : ndarray of uint8, shape (ceil(n_features / 8),)
        One bit per column: whether a training object had a feature in the column. `fit_transform`, which pipelines
        call, sets `met_` if `n_features` is at most 2**24. Only the warnings of `transform` use `met_`.
    compared_ : dict of str
        Which parts of the training objects the kernel compares, such as ``{"nodes": "node labels"}`` for graphs. It is
        empty if the kernel compares the same parts whatever the objects are, as kernels of strings do. `fit_transform`
        sets `compared_` unless the objects are a Dask collection; `fit` sets it only for graphs and for kernels made of
        other kernels. `transform` raises an error if the kernel would compare other parts of the new objects.

    Notes
    -----
    `transform` does not need `fit`: an object has the same row in any collection and process. Features are hashed to
    columns, so `get_feature_names_out` does not name substructures: it returns kernelfeatures0, kernelfeatures1 and so
    on. Output is sparse, so scikit-learn raises an error after ``set_output(transform="pandas")``.

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

    _dtypes = ("float64",)

    def __init__(self, kernel: Any, n_features: int = 2**20) -> None:
        self.kernel = kernel
        self.n_features = n_features

    @all_at_once
    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters, and delete what an earlier fit learnt; `y` is ignored.

        Of a table, `fit` stores the number and names of the columns. Otherwise it reads the first few objects if it
        sets `compared_`, and no others.

        Raises
        ------
        TypeError
            If the kernel has no explicit features.
        """
        for learnt in ("kernel_", "met_", "compared_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(learnt, None)
        self._check()
        self.kernel_ = detached(self.kernel)
        if is_table(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            read_objects(self, self.kernel_, example_of(as_parts(X)), reset=True)
        elif getattr(type(self.kernel_), "_compared", Kernel._compared) is not Kernel._compared:
            in_memory = hasattr(X, "__len__") and hasattr(X, "__getitem__") and not is_lazy(X)
            if in_memory and len(X):
                first = X if isinstance(X, Batch) else take(X, range(min(_N_READ, len(X))))
                self.compared_ = compared(self.kernel_, first)
        return self

    @all_at_once
    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_array:
        """Return the features of n objects, csr_array of shape (n, n_features), and record in which columns they lie.

        The record is the attribute `met_`, which has one bit for each column: 1 if an object has a feature in this
        column. With `met_`, `transform` can warn of new objects that share hardly any column with the objects seen
        here.

        The features of a Dask collection are computed immediately, whereas `transform` returns a lazy array.
        """
        self.fit(X, y)
        if not is_lazy(X):
            X = X if is_table(X) else as_objects(self.kernel_, X)
            self.compared_ = compared(self.kernel_, X)
            features: sp.csr_array = self.transform(X)
        else:
            features = sp.csr_array(self.transform(as_parts(X, anew=True)).compute())
        if self.n_features <= _MOST:
            self.met_ = np.zeros(-(-self.n_features // 8), np.uint8)
            _mark(features.indices, self.met_)
        return features

    @property
    def _learnt_kernel(self) -> Any:
        """The kernel as it was in `fit`; before `fit`, the parameter."""
        return getattr(self, "kernel_", self.kernel)

    def _check(self) -> None:
        kernel = self._learnt_kernel
        refuse_class(kernel, "kernel")
        if not hasattr(kernel, "features"):
            check_kernel(kernel)
            raise TypeError(f"the kernel {kernel!r} has no explicit features; similia.Nystroem takes any kernel")
        check_positive_int(self.n_features, "n_features")

    @lazily
    def transform(self, X: Any) -> sp.csr_array:
        """Return the features of n objects, csr_array of float64, shape (n, n_features).

        Warns
        -----
        UserWarning
            There are two warnings. The first is given if an object probably has nothing in common with the training
            objects: it shares no more columns with them than hash collisions alone would cause. The second is given if
            more than half of the objects have no features, as happens with strings that are too short. While a file or
            an iterator is read in parts, one object without features is enough for the second warning. Both warnings
            need the attribute `met_`, which only `fit_transform` sets.
        """
        self._check()
        kernel = self._learnt_kernel
        if is_table(X):
            X = read_objects(self, kernel, X, reset=False)
        if getattr(self, "compared_", None):
            X = as_objects(kernel, X)
            check_alike(kernel, compared(kernel, X), self.compared_, "X", "the training objects")
        features: sp.csr_array = kernel.features(X, self.n_features)
        _check_features(features, (n_objects(X), self.n_features), kernel)
        met = getattr(self, "met_", None)
        if met is not None and len(met) == -(-self.n_features // 8):  # n_features may have been set since
            strange = _strangers(features.indptr, features.indices, met, float(np.unpackbits(met).mean()))
            if len(strange):
                found = "have no feature that a training object had"
                remedy = (
                    "a linear model knows nothing about them; are they of the same kind (case, alphabet, labels) as "
                    "the training objects?"
                )
                warn_of_objects(ObjectsWarning(len(strange), features.shape[0], found, strange[0], remedy))
        if met is not None and met.any():
            empty = np.flatnonzero(np.diff(features.indptr) == 0).tolist()
            warn_of_strangers(empty, features.shape[0], "have no features at all (are they too short?)")
        return features

    @property
    def _n_features_out(self) -> int:
        return self.n_features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@state(idf_=array("f8", "d"))
class FeatureWeights(Transformer):
    """Weight features by their rarity, as TF-IDF does; a pipeline step after `KernelFeatures`.

    Parameters
    ----------
    idf : bool, default=True
        Whether to multiply each feature by its inverse document frequency, 1 + ln((1 + n) / (1 + n_f)). Here n is the
        number of training objects, and n_f the number of training objects that have the feature.
    sublinear : bool, default=False
        Whether to replace each count c > 0 by 1 + ln(c).
    norm : {"l2", "l1"} or None, default="l2"
        Norm by which each row is divided at the end; None leaves the rows as they are.
    min_objects : int, default=1
        Minimum number of training objects that must have a feature; the columns of rarer features become 0. With the
        default, only the columns of features that no training object has become 0.

    Attributes
    ----------
    idf_ : ndarray of float64, shape (n_features,)
        Weight of each column.

    Notes
    -----
    Use a kernel with ``normalize=False`` (the default of the kernels below): this step normalises the rows, and
    `sublinear` refuses values that are no counts. `KernelFeatures` may hash several features to one column; n_f is then
    the number of objects that have at least one of them.

    With the following kernels, the inner products of rows equal those of scikit-learn's
    ``TfidfVectorizer(lowercase=False, ...)`` with these parameters:

    - ``Spectrum(k=(1, 5))``: ``analyzer="char", ngram_range=(1, 5)``, unless a text contains consecutive whitespace
      characters, which scikit-learn replaces by one space;
    - ``Spectrum(k=(1, 5), boundaries="words")``: ``analyzer="char_wb", ngram_range=(1, 5)``;
    - ``Words((1, 2))``: ``analyzer="word", ngram_range=(1, 2)``.

    If several features are hashed to one column, the inner products differ slightly.

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
            If `sublinear` is True and a value is negative or between 0 and 1: such a value is not a count.
        """
        check_fitted(self)
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
        if not sp.issparse(X) and (dtype := as_array(X).dtype).kind in "mM":
            raise not_dates(dtype)
        with columns_told(self, X):
            return as_csr(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset))

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


def _check_features(features: Any, shape: tuple[int, int], kernel: Any) -> None:
    """Raise if `features`, which the method ``features`` of `kernel` returned, are no CSR matrix of this shape."""
    csr = sp.issparse(features) and features.format == "csr"
    if not csr or features.shape != shape:  # the compiled loops do not check bounds
        kind = "CSR matrix" if csr else type(features).__name__
        raise ValueError(
            f"{name_of(kernel)}.features returned a {kind} of shape {np.shape(features)}, expected a sparse CSR matrix "
            f"of shape {shape}"
        )


@njit()
def _mark(columns, met):  # type: ignore[no-untyped-def]
    """Set the bit of each column number of `columns` in the bit array `met`."""
    for column in columns:
        met[column >> 3] |= np.uint8(1 << (column & 7))


@njit()
def _strangers(offsets, columns, met, chance):  # type: ignore[no-untyped-def]
    """Return the positions of the non-empty CSR rows in which no more columns are marked in `met` than by chance.

    `chance` is the fraction of the bits of `met` that are set, so some of k new features fall into marked columns. The
    largest number that counts as chance is the mean for k random columns, plus three standard deviations, plus 5 % of
    the other columns, since unrelated rows also have features in common. For k < 8 it is 0.
    """
    found = np.empty(len(offsets) - 1, np.int64)
    n = 0
    for i in range(len(offsets) - 1):
        k = offsets[i + 1] - offsets[i]
        hit = chance * k + 3 * np.sqrt(chance * (1 - chance) * k) + 0.05 * (1 - chance) * k
        left = 0 if k < 8 else np.int64(min(hit, k - 1))
        for j in range(offsets[i], offsets[i + 1]):
            if met[columns[j] >> 3] >> (columns[j] & 7) & 1:
                left -= 1
                if left < 0:
                    break
        if k > 0 and left >= 0:
            found[n] = i
            n += 1
    return found[:n].copy()
