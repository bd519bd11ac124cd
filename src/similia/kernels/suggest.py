"""Kernels that are worth a trial for a kind of objects, for a learner that chooses among several."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from similia.core.text import short
from similia.core.validation import BadType, check_vectors
from similia.kernels.combine import Normalized, Sum
from similia.kernels.graphs import ShortestPath, WeisfeilerLehman
from similia.kernels.heat import HypersphericalHeat
from similia.kernels.minmax import MinMax
from similia.kernels.series import GlobalAlignment, suggest_bandwidth
from similia.kernels.strings import GappyKmers, Spectrum, WeightedDegree, Words
from similia.kernels.vectors import RBF, MeanMap
from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch, as_strings
from similia.objects.sequences import at_least_one, item
from similia.objects.tables import is_frame, objects_in, to_array
from similia.similarity import Kernel

_LONG = 100  # mean number of nodes above which shortest paths are not tried
_SCALES = (0.25, 1.0, 4.0)  # of gamma
_CONTRASTS = (1.0, 4.0, 16.0)
_WIDTHS = (0.5, 1.0, 2.0)  # of the bandwidth for series


def suggest_kernels(X: Any) -> list[Kernel]:
    """Suggest kernels that suit the objects `X`, for a learner that chooses among several.

    For example, `similia.GaussianProcessRegressor` selects from such a list the kernel under which the training targets
    are most probable. All suggested kernels are positive semi-definite, and their values do not grow with the size of
    the objects. For strings and graphs, the kernels compare different properties: long or short substrings,
    neighbourhoods or distances in graphs. For vectors, series and sets, the kernels differ in the distance at which
    objects no longer count as similar.

    Parameters
    ----------
    X : collection of n objects
        Strings; a batch that `similia.objects.as_strings`, `as_graphs`, `from_smiles`, `as_series` or `as_sets`
        returns; or a matrix or table of numbers. SMILES in a list count as strings; for kernels of molecules, give the
        batch that ``from_smiles(smiles)`` returns.

    Returns
    -------
    list of kernels

    Raises
    ------
    TypeError
        If `X` is of another type.
    ValueError
        If `X` is a sparse matrix of one column, or a batch of series that do not vary.

    Examples
    --------
    >>> from similia.kernels import suggest_kernels
    >>> suggest_kernels(["ACCA", "CAT"])[1]
    GappyKmers(normalize=True)
    """
    X = objects_in(X)
    at_least_one(X)
    if is_frame(X) or sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        sparse = sp.issparse(X) and X.shape[1:] > (1,)  # the kernels of sparse vectors compare two columns or more
        return _of_vectors(X if sparse else check_vectors(to_array(X) if is_frame(X) else X))
    if isinstance(X, GraphBatch):
        near = Sum([WeisfeilerLehman(n_iter=n) for n in range(4)])
        paths = [Sum([MinMax(near), MinMax(ShortestPath())])] if X.node_offsets[-1] <= _LONG * len(X) else []
        return [*paths, MinMax(near), WeisfeilerLehman(n_iter=3, normalize=True)]
    if isinstance(X, SeriesBatch):
        usual = float(f"{suggest_bandwidth(X):.4g}")
        return [GlobalAlignment(bandwidth=width * usual) for width in _WIDTHS]
    if isinstance(X, SetBatch):
        return [Normalized(MeanMap(RBF(scale=scale))) for scale in _SCALES]
    if isinstance(X, StringBatch) or isinstance(item(X, 0), str | bytes):
        return _of_strings(as_strings(X))
    convert = "convert them by similia.objects.as_graphs, as_series or as_sets"
    raise BadType(0, f"is {short(item(X, 0))}", "a string, or objects in a batch, or a matrix of numbers", convert)


def _of_strings(X: StringBatch) -> list[Kernel]:
    shared = [Sum([MinMax(Spectrum(k=k)) for k in range(1, last + 1)]) for last in (3, 5)]
    found = [shared[0], GappyKmers(k=4, gaps=1, normalize=True), shared[1]]
    if len(np.unique(np.diff(X.offsets))) == 1:  # all of one length, so places may matter
        placed = WeightedDegree(degree=5, normalize=True)
        found += [placed, Sum([placed, shared[0]])]
    return [*found, Words(n=(1, 2), normalize=True)] if (X.values == ord(" ")).any() else found


def _of_vectors(X: Any) -> list[Kernel]:
    mapping: Any = "projection" if X.min() < 0 else "sqrt"
    heat: list[Kernel] = [
        HypersphericalHeat(contrast=contrast, mapping=mapping, zero_rows="uniform")
        for contrast in _CONTRASTS
        if contrast < X.shape[1]
    ]
    return heat if sp.issparse(X) else [*(RBF(scale=scale) for scale in _SCALES), *heat]
