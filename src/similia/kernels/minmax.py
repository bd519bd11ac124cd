r"""Compare the features of another kernel by minima and maxima: the intersection and the min-max kernel.

For features f_i >= 0, such as counts of substructures,

    Intersection(x, y) = sum_i min(f_i(x), f_i(y))
    MinMax(x, y)       = sum_i min(f_i(x), f_i(y)) / sum_i max(f_i(x), f_i(y))
                       = I(x, y) / (I(x, x) + I(y, y) - I(x, y)), I the intersection, as max(a, b) = a + b - min(a, b).

Both are positive semi-definite. min(a, b) is the integral over t >= 0 of [t < a] [t < b], an inner product of functions
of t. MinMax is the probability that a random sampler picks the same element of x and of y (see `similia.MinHash`),
hence a mean of inner products.

With the colours of Weisfeiler-Lehman as features, the intersection is the largest sum of s(u, b(u)) over the matchings
b of the nodes of two graphs, where s counts the rounds after which two nodes have equal colours. Proof: (1) In any
matching, at most min(c(G), c(H)) pairs share a colour that c(G) nodes of G and c(H) nodes of H have. The sum of these
bounds over the colours of all rounds is the intersection. (2) A matching reaches all bounds at once. Colours form a
tree, since nodes of equal colour have equal colours in all earlier rounds. Match as many nodes as possible within each
colour of the last round, then, of the nodes left, within each colour of the round before, and so on.

Cost: that of an inner product of the features (see `similia.kernels.counts`), and one division for each pair.
Papers: Swain & Ballard, "Color indexing", IJCV 1991 (histogram intersection); Ralaivola, Swamidass, Saigo & Baldi,
"Graph kernels for chemical informatics", Neural Networks 2005 (min-max of counts); Kriege, Giscard & Wilson, "On valid
optimal assignment kernels", NeurIPS 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from similia.core.hashing import combine
from similia.core.jit import njit
from similia.core.validation import BadValue
from similia.kernels.combine import Normalized, Sum
from similia.kernels.counts import Counts, CountsKernel, FeatureKernel, Floats, as_least, check_alike
from similia.kernels.hypersphere import as_rows
from similia.objects import StringBatch
from similia.objects.sequences import check_kinds, offsets_of
from similia.similarity import as_objects, check_kernel, compared, decided, refuse_class

_COLUMNS = 2**20  # of the features of a kernel that has no counts with ids
_LARGEST = 1e150  # sums of such features do not overflow


class _OfFeatures(CountsKernel):
    """Base class of the kernels that compare the features of another kernel, given as the parameter `kernel`."""

    kernel: Any

    @property
    def _takes_sparse(self) -> bool:
        return self.kernel is None

    def as_objects(self, X: Any) -> Any:
        _check_features(self.kernel)
        return as_rows(X, least=1) if self.kernel is None else as_objects(self.kernel, X)

    def decided(self, X: Any) -> Any:
        """Return this kernel with the data-dependent settings of its kernel replaced by their values for `X`."""
        found = decided(self.kernel, X)
        return self if found is self.kernel else clone(self).set_params(kernel=found)

    def _compared(self, X: Any) -> dict[str, str]:
        return {} if self.kernel is None else compared(self.kernel, X)

    def _check_alike(self, X: Any, Y: Any) -> None:
        check_alike(self, self._compared(X), self._compared(Y), "X", "Y")
        if isinstance(X, StringBatch) and isinstance(Y, StringBatch):
            check_kinds(X, Y)
        if self.kernel is None and X.shape[1] != Y.shape[1]:
            raise BadValue(None, f"has {X.shape[1]} columns and Y has {Y.shape[1]}", "as many in both")

    def _counts(self, objects: Any) -> Counts:
        counts = features_of(self.kernel, objects)
        bad = ~((counts.values >= 0) & (counts.values <= _LARGEST))
        if bad.any():
            expected = (
                "features >= 0 (Negative values in data)"
                if (counts.values < 0).any()
                else f"features of at most {_LARGEST:g}"
            )
            remedy = "minima suit counts and other magnitudes; for other features, use their inner product"
            raise _bad_feature(counts, bad, expected, remedy)
        return as_least(counts)


class Intersection(_OfFeatures, FeatureKernel):
    r"""Intersection of the features of another kernel, :math:`K(x, y) = \sum_i \min(f_i(x), f_i(y))`.

    If the features count substructures, K is the number of substructures that x and y have in common: a substructure
    that occurs a times in x and b times in y counts min(a, b) times. With the features of `WeisfeilerLehman`, K is the
    Weisfeiler-Lehman optimal assignment kernel (see Notes). For graphs of molecules, use
    ``WeisfeilerLehman(details=False)`` to get this kernel; by default, charges, hydrogens and rings count as well.

    Parameters
    ----------
    kernel : kernel with explicit features, or None
        A kernel of `similia.kernels` that counts substructures (``Spectrum``, ``WeisfeilerLehman``, ...), a ``Sum`` or
        ``Normalized`` of such kernels, or any object with ``features(X, n_features)``, which is called with
        ``n_features=2**20``. With None, the objects are vectors (rows of a dense or sparse matrix), whose entries are
        the features. In `set_params`, the parameters of `kernel` are named ``kernel__name``.
    normalize : bool, default=False
        Divide by sqrt(K(x, x) K(y, y)), where K(x, x) is the sum of the features of x. An object without features gets
        similarity 0 to all others and, if Y is not given, 1 to itself.

    Raises
    ------
    TypeError
        When called, if `kernel` has no explicit features.
    ValueError
        When called, if a feature is negative, NaN or above 1e150. The method `features` also raises a ValueError if a
        feature is not an integer.

    Notes
    -----
    **Features.** For counts, K is also an inner product: a feature f of count c becomes c features (f, 1), ..., (f, c),
    each of count 1. The method `features` returns them, so `similia.KernelFeatures` and a linear model train with this
    kernel in linear time. An object has as many of these features as its counts add up to, and all counts must be
    integers. A ``Sum`` multiplies the features of each kernel by the square root of its weight, so each of these roots
    must be an integer, too.

    **Optimal assignment.** `WeisfeilerLehman` refines the colours of nodes in h = `n_iter` rounds. For nodes u and v of
    two graphs, let s(u, v) be the number of rounds t = 0, ..., h after which u and v have equal colours; t = 0 stands
    for the first colours. The optimal assignment kernel is the largest sum of s(u, b(u)) over all matchings b of the
    nodes of the two graphs. It equals the intersection of the histograms of colours of all rounds, since nodes of equal
    colour after one round have equal colours after all earlier rounds (Kriege et al.).

    References
    ----------
    Kriege, Giscard & Wilson, "On valid optimal assignment kernels, and applications to graph classification", NeurIPS
    2016, Theorem 2. Swain & Ballard, "Color indexing", IJCV 1991.

    Examples
    --------
    >>> from similia.kernels import Intersection, Spectrum
    >>> Intersection(Spectrum(k=1))(["AAAC", "AACC", "GT"])  # AAAC and AACC share A, A and C
    array([[4., 3., 0.],
           [3., 4., 0.],
           [0., 0., 2.]])
    """

    def __init__(self, kernel: Any = None, normalize: bool = False) -> None:
        self.kernel = kernel
        self.normalize = normalize

    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        """Return explicit features whose inner products are this kernel, shape (n, n_features).

        A feature f that `kernel` counts c times in an object becomes c features (f, 1), ..., (f, c), each of value 1.
        With `normalize`, each row is then divided by its norm.
        """
        X = self.as_objects(X)
        counts = self._counts(X)
        fractional = counts.values != np.rint(counts.values)
        if fractional.any():
            remedy = "similia.Nystroem makes vectors of any kernel"
            raise _bad_feature(counts, fractional, "integers, such as counts", remedy)
        return super().features(X, n_features)


class MinMax(_OfFeatures):
    r"""Min-max kernel of the features of another kernel, :math:`\sum_i \min(f_i, g_i) / \sum_i \max(f_i, g_i)`.

    f and g are the features of x and y. The kernel is the Jaccard similarity if all features are 0 or 1, the Tanimoto
    similarity for count fingerprints of molecules, and Ruzicka's similarity for other non-negative features. Its values
    lie between 0 and 1.

    Parameters
    ----------
    kernel : kernel with explicit features, or None
        As for `Intersection`: a kernel that counts substructures, a ``Sum`` or ``Normalized`` of such kernels, any
        object with ``features(X, n_features)``, or None for vectors. In `set_params`, the parameters of `kernel` are
        named ``kernel__name``.

    Raises
    ------
    TypeError
        When called, if `kernel` has no explicit features.
    ValueError
        When called, if a feature is negative, NaN or above 1e150.

    Notes
    -----
    An object without features has similarity 0 to all others and, if Y is not given, 1 to itself.

    The kernel has no finite explicit features. Two transformers approximate it in time linear in the number of objects.
    `similia.Nystroem` compares each object with some of the training objects, the landmarks, and makes vectors from the
    kernel values. `similia.MinHash` needs no landmarks: it makes bits whose Hamming distances estimate the kernel, or
    sparse vectors whose inner products estimate it.

    References
    ----------
    Ralaivola, Swamidass, Saigo & Baldi, "Graph kernels for chemical informatics", Neural Networks 18, 2005.

    Examples
    --------
    >>> from similia.kernels import MinMax, Spectrum
    >>> MinMax(Spectrum(k=1))(["AAAC", "AACC", "GT"])  # AAAC, AACC: (2 + 1) / (3 + 2)
    array([[1. , 0.6, 0. ],
           [0.6, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> MinMax()([[1, 0, 1], [1, 1, 0]])  # Jaccard similarity of sets
    array([[1.        , 0.33333333],
           [0.33333333, 1.        ]])
    """

    def __init__(self, kernel: Any = None) -> None:
        self.kernel = kernel

    def diag(self, X: Any) -> Floats:
        return np.ones(len(self._counts(self.as_objects(X))))

    def _scaled(self, K: Floats, kxx: Floats, kyy: Floats, *, same: bool = False) -> Floats:
        for i in range(len(K)) if K.ndim == 2 else [slice(None)]:
            largest = kxx[i] + kyy - K[i]
            K[i] /= np.where(largest > 0, largest, 1.0)
        if same:
            np.fill_diagonal(K, 1.0)
        return K


def _bad_feature(counts: Counts, bad: npt.NDArray[np.bool_], expected: str, remedy: str) -> BadValue:
    """Return the error for the first object that has a feature marked in `bad`."""
    k = int(np.argmax(bad))
    i = int(np.searchsorted(counts.offsets, k, side="right")) - 1
    return BadValue(i, f"has a feature {counts.values[k]:.6g}", expected, remedy)


def features_of(kernel: Any, X: Any) -> Counts:
    """Return the explicit features of a kernel as real-valued counts, without weights.

    `X` is a collection that ``as_objects`` of the kernel returned. If `kernel` is None, the columns of `X` are the
    features.
    """
    if kernel is None:
        return _of_rows(sp.csr_array(X))
    if isinstance(kernel, Sum):
        weights = np.sqrt(kernel._weights())
        parts = [features_of(part, as_objects(part, X)) for part in kernel._parts()]
        return _side_by_side([replace(part, values=w * part.values) for part, w in zip(parts, weights, strict=True)])
    if isinstance(kernel, Normalized):
        return _divided(features_of(kernel.kernel, X), kernel._squared_norms(X, "X"))
    if not isinstance(kernel, FeatureKernel):
        return _of_rows(sp.csr_array(kernel.features(X, _COLUMNS)))
    counts = kernel._counts(X)
    norms = counts.squared_norms
    if counts.least:
        if not counts._whole:
            raise ValueError(f"{kernel!r} has no explicit features, since its own features are not integers")
        counts = counts.unary
    if counts.weights is not None:
        counts = Counts(counts.offsets, counts.ids, counts.values * np.sqrt(counts.weights))
    return _divided(counts, norms) if kernel.normalize else counts


def _check_features(kernel: Any) -> None:
    if kernel is None:
        return
    refuse_class(kernel, "kernel")
    inner = kernel._parts() if isinstance(kernel, Sum) else [kernel.kernel] if isinstance(kernel, Normalized) else []
    for part in inner:
        _check_features(part)
    if not hasattr(kernel, "features"):
        check_kernel(kernel)
        raise TypeError(
            f"the kernel {kernel!r} has no explicit features, expected a kernel that counts, such as Spectrum(3), "
            "WeisfeilerLehman() or a Sum of such kernels"
        )


def _of_rows(rows: sp.csr_array) -> Counts:
    """Return the non-zero entries of a sparse matrix; ids are columns."""
    rows.sum_duplicates()
    return Counts(rows.indptr.astype(np.int64), rows.indices.astype(np.uint64), rows.data.astype(np.float64))


def _divided(counts: Counts, squares: Floats) -> Counts:
    """Return counts divided by the root of `squares`, one number for each object; counts stay where it is 0."""
    norms = np.where(squares > 0, np.sqrt(squares), 1.0)
    return replace(counts, values=counts.values / np.repeat(norms, np.diff(counts.offsets)))


def _side_by_side(parts: Sequence[Counts]) -> Counts:
    """Return the features of each object in all parts; features of different parts get different ids."""
    lengths = np.array([np.diff(part.offsets) for part in parts])
    owners = np.concatenate([np.repeat(np.arange(lengths.shape[1]), row) for row in lengths])
    order = np.argsort(owners, kind="stable")
    offsets = offsets_of(lengths.sum(axis=0))
    ids = np.concatenate([ids_of_part(np.ascontiguousarray(part.ids), i) for i, part in enumerate(parts)])
    return Counts(offsets, ids[order], np.concatenate([part.values for part in parts])[order])


@njit()
def ids_of_part(ids, part):  # type: ignore[no-untyped-def]
    """Return ids for the features of a part of a sum, given their ids within this part."""
    out = np.empty_like(ids)
    for k in range(len(ids)):
        out[k] = combine(ids[k], np.uint64(part))
    return out
