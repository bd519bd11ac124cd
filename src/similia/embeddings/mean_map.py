r"""Random features of sets of points: the mean of random Fourier features of the points.

.. math:: \phi(U) = \frac{1}{|U|} \sum_{u \in U} z(u), \qquad
          z(u) = \sqrt{2 / m}\, \big(\cos(w_j^T u),\ \sin(w_j^T u)\big)_{j = 1}^{m/2}, \qquad
          w_j \sim N(0, 2 \gamma I)

Since E z(u)^T z(v) = exp(-gamma |u - v|^2), the inner products of features are unbiased estimates of the mean map
kernel `similia.kernels.MeanMap` of `similia.kernels.RBF`.

Cost: m (d / 2 + 2) operations for each point of d coordinates, about 1.5 m nanoseconds; nothing is quadratic in the
size of a set or in the number of sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from similia.core.config import one_blas_thread, rows_per_block, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, check_fitted, example_of
from similia.core.functions import write_waves
from similia.core.jit import njit
from similia.core.products import panels, row_product
from similia.core.state import array, count, one_of, state
from similia.core.text import short
from similia.core.validation import BadParameter, BadValue, RandomState, check_positive, check_positive_int, generator
from similia.embeddings.heat_features import random_directions
from similia.kernels.vectors import RBF
from similia.objects import SetBatch, as_sets, n_objects, take
from similia.objects.sequences import runs
from similia.objects.vectors import check_finite
from similia.sources.dask import Distributed, from_parts, lazily

Floats = npt.NDArray[np.float64]
_POINTS = 256  # number of points in a tile of phases, which stays in cache until it is added up
_SAMPLE = 1000  # maximum number of training sets, and of points from these, that determine the median distance
_LARGEST = 2.0**40  # up to this many quarter turns, a phase keeps at least 3 digits


@state(
    fits=lambda state, sizes: sizes["m"] == 2 * sizes["h"],
    n_dims_=count("d", least=1), _n_features_out=count("m", least=2), frequencies_=array("f8", "d", "h"),
    gamma_="positive", reduce=one_of("mean", "sum"), dtype_=one_of("float32", "float64"),
)  # fmt: skip
class MeanMapFeatures(Transformer):
    r"""Turn sets of points into random features whose inner products estimate the mean map kernel.

    Parameters
    ----------
    n_components : int, default=1024
        Number m of features, which must be even. There are m / 2 random frequencies; the first half of the features are
        cosines, the second half sines.
    gamma : float or "median", default="median"
        :math:`\gamma` of the ground kernel :math:`\exp(-\gamma |u - v|^2)` of two points. The mean map kernel of two
        sets U and V is the mean of the ground kernel over all pairs of points u in U, v in V. "median" means
        1 / (2 s^2), where s is the median distance between training points (at most 1000 of them, drawn at random).
    scales : sequence of float, default=(1.0,)
        Numbers by which `gamma` is multiplied. The m / 2 frequencies use them in turn, so the ground kernel becomes the
        mean of several Gaussian kernels, one for each scale (exactly if m / 2 is a multiple of the number of scales).
        For example, (0.25, 1, 4) compares coarse and fine structure.
    reduce : {"mean", "sum"}, default="mean"
        Whether the features of a set are the mean or the sum of the features of its points.
    orthogonal : bool, default=True
        Whether to draw frequencies in blocks of `n_dims_` orthogonal vectors. This reduces the variance.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the points for the median, and the frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of float64, shape (n_dims, m / 2)
        Frequencies in units of pi / 2: the features of a point u are the cosines and sines of ``pi / 2 * u @
        frequencies_``, divided by sqrt(m / 2).
    gamma_ : float
        Gamma as a number, before multiplication by `scales`.
    n_dims_ : int
        Number d of coordinates of a point.
    dtype_ : {"float32", "float64"}
        Dtype of the features, the same as that of the points seen in `fit`.

    Raises
    ------
    ValueError
        If points have another dimension than the points seen in `fit`; if a set holds NaN or infinity, or is so far
        from 0 that the cosines would be inexact; or if all training points are equal and `gamma` is "median".

    Notes
    -----
    The features of an empty set are 0, and its kernel value with any set is 0. The features of a set are the same, bit
    for bit, whatever other sets are in the call, for any number of threads, and for float32 and float64 points of equal
    value. With ``reduce="mean"`` and independent frequencies, the variance of an estimate of the kernel is at most
    1 / m.

    Coordinates with a large range dominate the distances, so standardise the coordinates first. A linear model on the
    features adds up what each point contributes by itself. To learn which points occur together, use a support-vector
    machine with an RBF kernel on the features.

    Turn graphs and series into sets with `similia.objects.GraphToSets` and `similia.objects.SeriesToSets`.

    References
    ----------
    Rahimi & Recht, "Random features for large-scale kernel machines", NIPS 2007; Yu et al., "Orthogonal random
    features", NIPS 2016; Muandet et al., "Kernel mean embedding of distributions: a review and beyond", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.normal(size=(size, 2)) for size in (5, 20, 50)]
    >>> embedding = sm.MeanMapFeatures(20_000, gamma=0.5, random_state=0)
    >>> Z = embedding.fit_transform(sets)
    >>> bool(abs(Z @ Z.T - sm.kernels.MeanMap(sm.kernels.RBF(0.5))(sets)).max() < 0.02)
    True
    """

    _takes = ("three_d_array",)
    _as_objects = staticmethod(as_sets)

    frequencies_: Floats

    def __init__(
        self,
        n_components: int = 1024,
        gamma: float | Literal["median"] = "median",
        scales: Sequence[float] = (1.0,),
        reduce: str = "mean",
        orthogonal: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.scales = scales
        self.reduce = reduce
        self.orthogonal = orthogonal
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute `gamma` from `X` if it is "median", and draw the random frequencies of the cosines and sines.

        `X` is a collection of sets of points.
        """
        m, scales = self._checked()
        X = X.converted(as_sets) if isinstance(X, Distributed) else as_sets(X)
        rng = generator(self.random_state)
        points, like = _some_points(X, rng), example_of(X)
        self.gamma_ = RBF(self.gamma).decided(points)._gamma() if self.gamma == "median" else float(self.gamma)
        self.n_dims_ = points.shape[1]
        widths = np.resize(np.sqrt(scales), m // 2)  # in turn
        with one_blas_thread():  # rounding depends on the number of threads
            directions = random_directions(self.n_dims_, m // 2, bool(self.orthogonal), rng, np.float64)
        lengths = np.sqrt(rng.chisquare(self.n_dims_, m // 2))  # of Gaussian vectors
        self.frequencies_ = directions * (lengths * widths * np.sqrt(2 * self.gamma_) * (2 / np.pi))
        self.dtype_ = str(like.values.dtype)
        self._n_features_out = m
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the features of the sets `X`, shape (n, n_components), in the dtype of the points seen in `fit`."""
        check_fitted(self)
        sets = as_sets(X)
        self._check(sets)
        k = self.frequencies_.shape[1]
        out = np.empty((len(sets), 2 * k), self.dtype_)
        W = panels(self.frequencies_)
        step = rows_per_block(16 * k * 4)

        def rows(start: int, stop: int) -> None:
            for run in runs(sets.offsets[start : stop + 1], _POINTS):
                first, last = start + run.start, start + run.stop
                for at in range(first, last, step):
                    end = min(last, at + step)
                    sums = np.zeros((end - at, 2 * k))
                    self._add(sets[at:end], W, sums)
                    out[at:end] = sums

        mean_points = max(1, len(sets.values) // len(sets))
        run_in_ranges(rows, len(sets), max(1, _POINTS // mean_points))
        return out

    def _add(self, sets: SetBatch, W: Any, out: Floats) -> None:
        """Fill `out`, an array of zeros, with the features of each set."""
        of_set = np.repeat(np.arange(len(sets)), sets.lengths)
        for start in range(0, len(sets.values), _POINTS):
            turns = row_product(sets.values[start : start + _POINTS], W, threads=False)
            _add_waves(turns, of_set[start : start + _POINTS], out)
        out /= np.sqrt(out.shape[1] / 2)
        if self.reduce == "mean":
            out /= np.maximum(sets.lengths, 1)[:, None]

    def _checked(self) -> tuple[int, Floats]:
        """Check the parameters; return the number of features and the scales."""
        m = check_positive_int(self.n_components, "n_components", minimum=2)
        if m % 2:
            raise BadParameter("n_components", "even (a cosine and a sine for each frequency)", f"{m}")
        if self.gamma != "median":
            check_positive(self.gamma, "gamma", also=' or "median"')
        if self.reduce not in ("mean", "sum"):
            raise BadParameter("reduce", "'mean' or 'sum'", short(self.reduce))
        given = [self.scales] if np.ndim(self.scales) == 0 else list(self.scales)
        if not 0 < len(given) <= m // 2:
            raise BadParameter(
                "scales", f"1 to {m // 2} numbers, as there are {m // 2} frequencies", short(self.scales)
            )
        return m, np.array([check_positive(scale, "a number of scales") for scale in given])

    def _check(self, sets: SetBatch) -> None:
        """Raise if points have another dimension than in `fit`, are not finite, or are too far from 0."""
        if sets.n_dims != self.n_dims_:
            raise BadValue(None, f"holds points of dimension {sets.n_dims}", f"{self.n_dims_} as in fit")
        check_finite(sets)
        reach = np.abs(sets.values).max(axis=1, initial=0.0) * np.abs(self.frequencies_).sum(axis=0).max()
        if (reach >= _LARGEST).any():
            row = int(np.argmax(reach >= _LARGEST))
            i = int(np.searchsorted(sets.offsets, row, side="right")) - 1
            found = f"is up to {reach[row]:.3g} quarter turns of a wave from 0"
            expected = "less than 2**40, beyond which phases lose their digits"
            raise BadValue(i, found, expected, "centre or scale the points", place=f"point {row - sets.offsets[i]}")

    def _example(self) -> Any:
        return np.zeros((1, 1, self.n_dims_), self.dtype_)


def _some_points(X: Any, rng: np.random.Generator) -> npt.NDArray[np.floating]:
    """Return at most `_SAMPLE` points of at most `_SAMPLE` of the sets, chosen at random."""
    sets = as_sets(take(X, np.sort(rng.permutation(n_objects(X))[:_SAMPLE])))
    check_finite(sets)
    return sets.values[np.sort(rng.permutation(len(sets.values))[:_SAMPLE])]


@njit()
def _add_waves(turns, of_set, sums):  # type: ignore[no-untyped-def]
    """Add the cosines and then the sines of row p of `turns`, in quarter turns, to row ``of_set[p]`` of `sums`."""
    k = turns.shape[1]
    cosines, sines = np.empty(k), np.empty(k)
    for p in range(len(turns)):
        write_waves(turns[p], 1.0, cosines, sines)
        row = sums[of_set[p]]
        for j in range(k):
            row[j] += cosines[j]
        for j in range(k):
            row[k + j] += sines[j]
