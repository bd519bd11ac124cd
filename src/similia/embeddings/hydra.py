r"""Hydra: random convolutional kernels compete in groups, and a series becomes the record of their wins.

For a series x, the output at time t of kernel k in a group with dilation d is

.. math:: z_k(t) = \sum_{j=0}^{8} w_{kj} \, x_{t + (j - 4) d}, \qquad x_s = 0 \text{ outside the series.}

A kernel gets two features: the sum of its outputs over the times at which it has the largest output of its group, and
the number of times at which it has the smallest. A group of kernels thus counts patterns, as a dictionary method does,
with random patterns in place of learnt ones. Half of the groups read the differences x_{t+1} - x_t.

In the loop, time points are SIMD lanes. The nine shifted vectors of a step stay in registers while all kernels of the
group are applied, so a kernel takes nine fused multiply-adds and ten comparisons and additions for `LANES` time points.
Each lane has sums of its own, which are added in a fixed order at the end, so the bits are equal on every processor.

Cost: a series of T points takes 9 T multiplications for each kernel and dilation, and there are about log2(T / 8)
dilations. Dempster, Schmidt & Webb (2023), "Hydra", Sec. 3.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core import lanes as lane
from similia.core.config import run_in_ranges
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, example_of
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.state import array, count, state
from similia.core.validation import RandomState, check_positive, check_positive_int, check_vectors, generator, part_from
from similia.embeddings.intervals import TimeShares, differences, divide, of_points, range_of, spread
from similia.embeddings.vectors import as_single, lengths_of, moments
from similia.objects import SeriesBatch
from similia.sources.dask import from_parts, lazily

_LENGTH = 9  # of a kernel
_MOST_CHANNELS = 8  # maximum number of channels that a group reads, as published
_WORK = 2**25  # multiplications in a task, which takes a few milliseconds


def _fits(state: dict[str, Any], sizes: dict[str, int]) -> bool:
    channels, n_channels = state["channels_"], state["n_channels_"]
    n_features = 2 * sizes["d"] * sizes["g"] * sizes["k"]
    inside = bool(((channels >= 0) & (channels < n_channels)).all())
    return inside and 0 < sizes["d"] < 60 and state["_n_features_out"] == n_features > 0


@state(
    fits=_fits, n_channels_=count(least=1), _n_features_out=count(least=1),
    weights_=array("f4", "d", "g", "k", _LENGTH), channels_=array("i8", "d", "g", None),
)  # fmt: skip
class Hydra(TimeShares):
    r"""Embed time series by the wins of random convolutional kernels that compete in groups.

    At each time point, the kernel with the largest output in its group wins. A kernel has two features: the sum of its
    winning outputs, and the number of time points at which its output is the smallest in its group.

    To get the classifier of the paper, combine `Hydra`, `SparseScaler` and a linear classifier, as in the example.

    Parameters
    ----------
    n_groups : int, default=64
        Number of groups for each dilation (the step between the time points that a kernel reads). Half of the groups
        (rounded up) read the series; the other groups read its first differences.
    n_kernels : int, default=8
        Number of kernels in a group. With many groups of few kernels, Hydra resembles Rocket; with few groups of many
        kernels, it resembles dictionary methods, which count patterns.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the kernels and their channels.

    Attributes
    ----------
    weights_ : ndarray of float32, shape (n_dilations, n_groups, n_kernels, 9)
        Gaussian weights of each kernel, shifted to sum 0 and scaled so that their absolute values sum to 1. The
        dilations are 1, 2, 4, ... The largest dilation is the largest power of 2 at which a kernel fits into the
        longest series in `fit`, or 1 if a kernel does not fit at any dilation.
    channels_ : ndarray of int64, shape (n_dilations, n_groups, n_drawn)
        Channels of each group, drawn with replacement; the kernels of the group read the sum of these channels. The
        number of draws per group, n_drawn, is half the number of channels, but at least 2 and at most 8; for series of
        one channel it is 1.
    n_channels_ : int
        Number of channels of the series in `fit`.
    length_range_ : ndarray of int64, shape (2,)
        Smallest and largest length of the series in `fit`.

    Raises
    ------
    ValueError
        If the number of channels differs from that in `fit`; if a series holds NaN or infinity; or if its largest
        absolute value is neither 0 nor between 1e-30 and 1e30 (limits of float32).

    Notes
    -----
    Output is float32, with columns in the order (dilation, group, feature, kernel). Of the two features, the sum of
    winning outputs comes first.

    Series may have any lengths, in `fit` and later; they are padded with zeros on both sides. Both features of a kernel
    grow with the length of a series; the first feature also grows with the scale of the series. Standardise the series
    if their level and scale carry no information. For a series of one point, the features of the groups that read
    differences are 0.

    If several kernels of a group have the same largest (or smallest) output, only the first of them counts. The
    features of a series are the same, bit for bit, whatever other series are in the call, for any number of threads and
    on any processor.

    References
    ----------
    Dempster, Schmidt & Webb, "Hydra: competing convolutional kernels for fast and accurate time series classification",
    Data Mining and Knowledge Discovery 37, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from similia.embeddings import Hydra, SparseScaler
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(60 + i) * (0.3 + i % 2)) + rng.normal(size=60 + i) for i in range(40)]
    >>> y = np.arange(40) % 2
    >>> model = make_pipeline(Hydra(random_state=0), SparseScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))
    >>> model.fit(X[:20], y[:20]).score(X[20:], y[20:])
    1.0
    """

    _dtypes = ("float32",)

    def __init__(self, n_groups: int = 64, n_kernels: int = 8, random_state: RandomState = None) -> None:
        self.n_groups = n_groups
        self.n_kernels = n_kernels
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw random convolution kernels for the number of channels and the largest length of the series in `X`."""
        n_groups = check_positive_int(self.n_groups, "n_groups")
        n_kernels = check_positive_int(self.n_kernels, "n_kernels")
        rng = generator(self.random_state)
        lengths, n_channels = lengths_of(X)
        n_dilations = max(1, ((int(lengths.max()) - 1) // (_LENGTH - 1)).bit_length())
        weights = rng.standard_normal((n_dilations, n_groups, n_kernels, _LENGTH))
        weights -= weights.mean(axis=-1, keepdims=True)
        self.weights_ = (weights / np.abs(weights).sum(axis=-1, keepdims=True)).astype(np.float32)
        n_drawn = 1 if n_channels == 1 else int(np.clip(n_channels // 2, 2, _MOST_CHANNELS))
        self.channels_ = rng.integers(n_channels, size=(n_dilations, n_groups, n_drawn))
        self.n_channels_, self.length_range_ = n_channels, range_of(lengths)
        self._n_features_out = 2 * n_dilations * n_groups * n_kernels
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the features of n time series, two for each kernel.

        The shape is (n, 2 * n_dilations * n_groups * n_kernels), where n_dilations is ``len(weights_)``.
        """
        check_fitted(self)
        series = as_single(X, self.n_channels_)
        n_dilations, n_groups, n_kernels, _ = self.weights_.shape
        out = np.empty((len(series), n_dilations, n_groups, 2, n_kernels), np.float32)

        def work(start: int, stop: int) -> None:
            _compete(series.values, series.offsets, start, stop, self.weights_, self.channels_, out)

        grain = _WORK * len(series) // (len(series.values) * self.weights_.size)
        run_in_ranges(work, len(series), max(1, grain))
        return out.reshape(len(series), -1)

    def _time_shares(self, batch: SeriesBatch, weights: npt.NDArray, centre: npt.NDArray) -> npt.NDArray[np.float64]:
        x = as_single(batch, self.n_channels_).values
        n_dilations, n_groups, n_kernels, _ = self.weights_.shape
        of_features = [a.reshape(n_dilations, n_groups, 2, n_kernels) for a in (weights, centre)]
        plain, rest = (slice(n_groups - n_groups // 2), len(x)), (slice(n_groups - n_groups // 2, None), len(x) - 1)

        def split(series: npt.NDArray, groups: slice, n_outputs: int) -> npt.NDArray[np.float64]:
            out = np.zeros(series.shape)
            arrays = [np.ascontiguousarray(a[:, groups]) for a in (self.weights_, self.channels_, *of_features)]
            _split_wins(series, n_outputs, *arrays, out)
            return out

        return split(x, *plain) + of_points(split(differences(x), *rest), len(x))


@state(
    mean_=array("f4 f8", "d", most=1e150), scale_=array("f4 f8", "d", most=1e150), _n_features_out=count("d", least=1)
)
class SparseScaler(Transformer):
    r"""Standardise the square roots of nonnegative features, such as those of `Hydra`; zeros stay 0.

    .. math:: x \mapsto [x > 0] \, (\sqrt{x} - \mu) / (\sigma + p_0^e + 10^{-8})

    Here mu and sigma are the mean and the standard deviation (with divisor n - 1) of the square roots of a column in
    `fit`. p_0 is the share of the entries of this column that are not above 0, and e is `exponent`. The bracket [x > 0]
    is 1 if x is positive, else 0. Negative numbers count as 0.

    Parameters
    ----------
    exponent : float, default=4.0
        Power e of p_0; 4 as published. The term p_0^e keeps the divisor close to 1 in columns that are nearly always 0.

    Attributes
    ----------
    mean_ : ndarray, shape (n_features,)
        The numbers mu.
    scale_ : ndarray, shape (n_features,)
        The divisors, sigma + p_0^e + 1e-8.

    References
    ----------
    Dempster, Schmidt & Webb, "Hydra", 2023, and the code of its authors.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import SparseScaler
    >>> SparseScaler().fit_transform(np.array([[0.0, 4.0], [1.0, 16.0], [9.0, 36.0]])).round(2)
    array([[ 0.  , -1.  ],
           [-0.22,  0.  ],
           [ 1.08,  1.  ]])
    """

    def __init__(self, exponent: float = 4.0) -> None:
        self.exponent = exponent

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn, for each column, its share of zeros, and the mean and standard deviation of its square roots.

        `X` is an array of shape (n, n_features).
        """
        check_positive(self.exponent, "exponent")
        like = _roots(example_of(X), 0)
        rows = X if hasattr(X, "shape") else np.asarray(X)
        n, mean, variance = moments(rows, _roots_and_zeros)
        width = len(mean) // 2
        deviation = np.sqrt(variance[:width] * (n / max(1, n - 1)))
        self.mean_ = mean[:width].astype(like.dtype)
        self.scale_ = (deviation + mean[width:] ** self.exponent + 1e-8).astype(like.dtype)
        self._n_features_out = width
        self._learn_columns(X)
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the scaled square roots, shape (n, n_features), in the dtype of `X` (float64 for integers)."""
        check_fitted(self)
        check_table(self, X, reset=False)
        roots = _roots(X, 0, len(self.mean_), self)
        return np.where(roots > 0, (roots - self.mean_) / self.scale_, 0).astype(roots.dtype)


def _roots(X: Any, start: int, n_features: int | None = None, by: Any = None) -> npt.NDArray[np.floating]:
    """Return the square roots of the entries of `X`, 0 for negative ones; errors number the rows from `start`.

    For `n_features` and `by`, see `similia.core.validation.check_vectors`.
    """
    with part_from(start):
        return np.sqrt(np.maximum(check_vectors(X, "X", n_features, by), 0))


def _roots_and_zeros(X: Any, start: int) -> npt.NDArray[np.floating]:
    roots = _roots(X, start)
    return np.concatenate([roots, roots == 0], axis=1)


@njit()
def _compete(values, offsets, start, stop, weights, channels, out):  # type: ignore[no-untyped-def]
    """Fill rows ``start:stop`` of `out` with the features of these series; `Hydra` states the shapes of arrays.

    The last half of the groups (rounded down) read the differences of successive values instead of the values.
    """
    n_dilations, n_groups, n_kernels = weights.shape[:3]
    n_plain = n_groups - n_groups // 2
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    widest = min(1 << (n_dilations - 1), longest)
    padded = np.zeros(longest + (_LENGTH - 1) * widest + LANES, np.float32)
    room = np.empty(3 * n_kernels * LANES, np.float32)
    ends = np.zeros(2 * LANES, np.float32)
    ends[:LANES] = 1
    for i in range(start, stop):
        x = values[offsets[i] : offsets[i + 1]]
        for d in range(n_dilations):
            dilation = min(1 << d, len(x))  # larger dilations read the same numbers: zeros on both sides
            for g in range(n_groups):
                differences = int(g >= n_plain)
                length = len(x) - differences
                if values.shape[1] > 1 or g == 0 or g == n_plain:
                    _pad(x, channels[d, g], differences, _LENGTH // 2 * dilation, padded)
                _count(padded, length, dilation, weights[d, g].reshape(-1), ends, room, out[i, d, g])


@njit()
def _pad(x, channels, differences, margin, padded):  # type: ignore[no-untyped-def]
    """Write the sum of some channels of a series, or its differences, to `padded`, with zeros on both sides."""
    padded[:] = 0
    for t in range(len(x) - differences):
        total = np.float32(0)
        for c in channels:
            total += x[t + 1, c] - x[t, c] if differences else x[t, c]
        padded[margin + t] = total


@njit()
def _count(padded, length, dilation, weights, ends, room, out):  # type: ignore[no-untyped-def]
    """Fill ``out[0, k]`` with the sum of the winning outputs of kernel k, ``out[1, k]`` with the number of its losses.

    An output wins if it is the largest of the group at its time, and loses if it is the smallest; of equal outputs, the
    first kernel's counts. `ends` holds `LANES` ones, then `LANES` zeros.
    """
    n_kernels = out.shape[1]
    sums, counts = n_kernels * LANES, 2 * n_kernels * LANES  # places in `room`, behind the values of this step
    room[:] = 0
    zero, infinity = lane.splat(np.float32(0)), lane.splat(np.float32(np.inf))
    for t in range(0, length, LANES):
        x0, x1 = lane.load(padded, t), lane.load(padded, t + dilation)
        x2, x3 = lane.load(padded, t + 2 * dilation), lane.load(padded, t + 3 * dilation)
        x4, x5 = lane.load(padded, t + 4 * dilation), lane.load(padded, t + 5 * dilation)
        x6, x7 = lane.load(padded, t + 6 * dilation), lane.load(padded, t + 7 * dilation)
        x8 = lane.load(padded, t + 8 * dilation)
        most, least = zero - infinity, infinity
        for k in range(n_kernels):
            w = k * _LENGTH
            z = x0 * lane.splat(weights[w])
            z = lane.multiply_add(x1, lane.splat(weights[w + 1]), z)
            z = lane.multiply_add(x2, lane.splat(weights[w + 2]), z)
            z = lane.multiply_add(x3, lane.splat(weights[w + 3]), z)
            z = lane.multiply_add(x4, lane.splat(weights[w + 4]), z)
            z = lane.multiply_add(x5, lane.splat(weights[w + 5]), z)
            z = lane.multiply_add(x6, lane.splat(weights[w + 6]), z)
            z = lane.multiply_add(x7, lane.splat(weights[w + 7]), z)
            z = lane.multiply_add(x8, lane.splat(weights[w + 8]), z)
            lane.store(room, k * LANES, z)
            most, least = lane.maximum(most, z), lane.minimum(least, z)
        inside = lane.load(ends, LANES - min(LANES, length - t))
        gain = most * inside
        for k in range(n_kernels):
            z = lane.load(room, k * LANES)
            at = k * LANES
            won = lane.where_at_most(most, z, gain, zero)
            lane.store(room, sums + at, lane.load(room, sums + at) + won)
            most = lane.where_at_most(most, z, infinity, most)  # no later kernel wins here
            won = lane.where_at_most(z, least, inside, zero)
            lane.store(room, counts + at, lane.load(room, counts + at) + won)
            least = lane.where_at_most(z, least, zero - infinity, least)
    for pooling in range(2):
        for k in range(n_kernels):
            at = (1 + pooling) * n_kernels * LANES + k * LANES
            half = LANES // 2
            while half:
                for j in range(half):
                    room[at + j] += room[at + half + j]
                half //= 2
            out[pooling, k] = room[at]


@njit()
def _split_wins(x, n_outputs, weights, channels, coefficients, centre, out):  # type: ignore[no-untyped-def]
    """Add the shares of each point of a float32 series `x` in features of `Hydra` to `out`, (length, n_channels).

    Kernels have `n_outputs` outputs: the length, or 0 for the differences of a single point. `coefficients` and
    `centre` have the shape (n_dilations, n_groups, 2, n_kernels). The amount of a feature above its centre goes to the
    times at which its kernel wins (or loses, for the second feature), otherwise to the other times.
    """
    n_dilations, n_groups, n_kernels = weights.shape[:3]
    length = len(x)
    widest = min(1 << (n_dilations - 1), length)
    padded = np.zeros(length + (_LENGTH - 1) * widest + LANES, np.float32)
    room = np.empty(3 * n_kernels * LANES, np.float32)
    ends = np.zeros(2 * LANES, np.float32)
    ends[:LANES] = 1
    won, amounts = np.zeros((length, 2, n_kernels), np.float32), np.empty(length)
    for d in range(n_dilations):
        dilation = min(1 << d, length)
        for g in range(n_groups):
            _pad(x, channels[d, g], 0, _LENGTH // 2 * dilation, padded)
            for t in range(n_outputs):
                _count(padded[t:], 1, dilation, weights[d, g].reshape(-1), ends, room, won[t])  # one output alone
            amounts[:] = 0
            for pooling in range(2):
                for k in range(n_kernels):
                    wins, total = won[:, pooling, k] != 0, 0.0
                    for t in range(n_outputs):
                        total += won[t, pooling, k]
                    difference = total - centre[d, g, pooling, k]
                    divide(coefficients[d, g, pooling, k] * difference, wins, difference > 0, amounts)
            spread(amounts, x, channels[d, g], -(_LENGTH // 2) * dilation, dilation, _LENGTH, out)
