"""The explicit features of a kernel as a step of a pipeline: exact, sparse, nothing learned.

phi(x) with phi(x)^T phi(y) = k(x, y), the feature ids folded into n_features columns (see
`similia.kernels.features.FeatureKernel.features`). Cost: that of counting the features of each object once.

A linear model knows nothing of an object whose columns were all empty in training, and answers for all of them alike.
So `fit_transform` keeps a bit for each column, and `transform` counts those of each object that were met, until there
are more than chance explains: features that share a column with others are met though they are new.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import Tags

from similia.core.errors import ObjectsWarning, warn_user
from similia.core.fitting import all_at_once
from similia.core.jit import njit
from similia.core.state import array, count, state
from similia.core.transformers import Transformer
from similia.core.validation import check_positive_int, is_table
from similia.kernels.features import check_alike
from similia.objects import take
from similia.objects.sequences import Batch
from similia.similarity import (
    ComparesObjects,
    Kernel,
    as_objects,
    check_kernel,
    compared,
    read_objects,
    refuse_class,
    warn_of_strangers,
)
from similia.sources.lazily import is_lazy, lazily

_FEW = 8  # graphs that fit looks at
_MOST = 2**24  # columns that are remembered: 2 MiB, where a weight for each takes 128


def _is_sequence(X: Any) -> bool:
    return hasattr(X, "__len__") and hasattr(X, "__getitem__") and not is_lazy(X)


@state(
    fits=lambda state, sizes: len(state.get("met_", ())) in (0, -(-int(state["n_features"]) // 8)),
    may_lack=("met_", "compared_"),  # met_ is kept up to a size
    kernel="kernel", n_features=count(least=1), met_=array("u1", None), compared_="texts",
)  # fmt: skip
class KernelFeatures(ComparesObjects, Transformer):
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

    Attributes
    ----------
    met_ : ndarray of uint8, shape (ceil(n_features / 8),)
        After `fit_transform` of objects that are here, as a pipeline calls it: a bit for each column, whether an object
        had it. Kept up to 2**24 columns, for the warning of `transform` alone.
    compared_ : dict of str
        After `fit` or `fit_transform` of objects that are here: what of them the kernel compares, where that depends
        on what they have (graphs with labels or without). `transform` refuses objects that it would compare by
        something else.

    Notes
    -----
    What `transform` returns needs no `fit`: an object has the same row in any collection and process. Its columns are
    hashed: `get_feature_names_out` numbers them, kernelfeatures0 and so on, and does not say which substructures fell
    into one. Sparse output has no data frame: scikit-learn refuses ``set_output("pandas")`` for it in a sentence.

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
        """Check the parameters, and learn by what the kernel compares these objects; forget `met_`.

        Parameters
        ----------
        X : collection of objects, optional
            Of the columns of a table the number and the names are kept. Of graphs the first few are read, for
            `compared_`; other objects are not.
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
        self._check()
        for learnt in ("met_", "compared_"):
            if hasattr(self, learnt):
                delattr(self, learnt)
        if is_table(X) or (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
            read_objects(self, self.kernel, X, reset=True)
        elif getattr(type(self.kernel), "_compared", Kernel._compared) is not Kernel._compared:
            few = X if isinstance(X, Batch) else take(X, range(min(_FEW, len(X)))) if _is_sequence(X) else None
            if few is not None and len(few):
                self.compared_ = compared(self.kernel, few)
        return self

    @all_at_once
    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_array:
        """Return the features of objects, and remember in `met_` which columns they have.

        Parameters
        ----------
        X : collection of n objects
            The features of a Dask collection come here, as a learner wants them; `transform` leaves them there.
        y : ignored

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n_features)
        """
        self.fit(X, y)
        if not is_lazy(X):
            X = X if is_table(X) else as_objects(self.kernel, X)
            self.compared_ = compared(self.kernel, X)
        features: sp.csr_array = sp.csr_array(self.transform(X).compute()) if is_lazy(X) else self.transform(X)
        if sp.issparse(features) and features.format == "csr" and self.n_features <= _MOST:
            self.met_ = np.zeros(-(-self.n_features // 8), np.uint8)
            _mark(features.indices, self.met_)
        return features

    def _check(self) -> None:
        refuse_class(self.kernel, "kernel")
        if not hasattr(self.kernel, "features"):
            check_kernel(self.kernel)
            raise TypeError(
                f"the kernel {self.kernel!r} has no explicit features; similia.Nystroem makes vectors of any kernel"
            )
        check_positive_int(self.n_features, "n_features")

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

        Warns
        -----
        UserWarning
            If an object has features, and `fit_transform` met no more of them than features share columns by chance. If
            more than half of the objects have none, or in a stream any, such as strings shorter than k.
        """
        self._check()
        if is_table(X):
            X = read_objects(self, self.kernel, X, reset=False)
        if getattr(self, "compared_", None):
            X = as_objects(self.kernel, X)
            check_alike(self.kernel, compared(self.kernel, X), self.compared_, "X", "the training objects")
        features: sp.csr_array = self.kernel.features(X, self.n_features)
        strange = self._strangers(features)
        if len(strange):
            found = "have no feature that a training object had"
            remedy = (
                "a linear model knows nothing of them; are they of the same kind (case, alphabet, labels) as the "
                "training objects?"
            )
            warn_user(ObjectsWarning(len(strange), features.shape[0], found, strange[0], remedy))
        if getattr(self, "met_", None) is not None and self.met_.any():
            empty = np.flatnonzero(np.diff(features.indptr) == 0).tolist()
            warn_of_strangers(empty, features.shape[0], "have no features at all (are they too short?)")
        return features

    def _strangers(self, features: Any) -> npt.NDArray[np.int64]:
        """Return the rows with features of which none was met but by chance; an empty object has none."""
        met = getattr(self, "met_", None)
        if met is None or len(met) != -(-self.n_features // 8):  # n_features may have been set since
            return np.empty(0, np.int64)
        chance = float(np.unpackbits(met).mean())
        rows: npt.NDArray[np.int64] = _strangers(features.indptr, features.indices, met, chance)
        return rows

    @property
    def _n_features_out(self) -> int:
        return self.n_features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@njit()
def _mark(columns, met):  # type: ignore[no-untyped-def]
    """Set the bits of columns, which are in any order."""
    for column in columns:
        met[column >> 3] |= np.uint8(1 << (column & 7))


@njit()
def _strangers(offsets, columns, met, chance):  # type: ignore[no-untyped-def]
    """Return the rows that have columns, and of these no more that were met than a share `chance` explains.

    Other features may be folded into the same columns, so that a row of nothing but new ones meets some: of k columns
    as many as k draws hit, by three standard deviations and a twentieth of the others, as rows have features in common.
    Of fewer than eight none may be met.
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
