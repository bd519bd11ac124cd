r"""Random convolutions (MiniRocket, MultiRocket): represent a series by how often its convolutions exceed biases.

.. math:: \phi_j(x) = \frac{1}{|T|} \sum_{t \in T} 1\{(x * w_j)_t > b_j\}

The weights w_j are one of 84 fixed kernels of nine numbers. A kernel with dilation d reads every d-th point, so kernels
with different dilations respond to shapes of different sizes, at any time. The biases b_j are quantiles of outputs for
training series. A linear model of such features is among the most accurate known for series. Cost: linear in the
numbers of series and features and in the length. 500 series of 500 points take less than 0.1 s for 10,000 features on
two cores.

A kernel has nine weights: 2 at three places a < b < c, and -1 elsewhere. At dilation d, its output at time t is

    C(t) = -(sum over s = -4, ..., 4 of x(t + s d)) + 3 x(t + (a - 4) d) + 3 x(t + (b - 4) d) + 3 x(t + (c - 4) d).

The first sum is the same for all 84 kernels of a dilation. The series is multiplied by 3 once and padded with zeros on
both sides, so a shifted series is only another place to read from. Terms are added in the order of the formula, channel
after channel, in float32. The sum of excesses C(t) - bias has a fixed number of partial sums, `LANES`; all other
poolings are whole numbers. So no result depends on the width of the processor's registers.

If only the share of positive outputs is asked for, and series have one channel, no output is stored: kernels with the
same a and b share all additions but the last, which is made while counting, for four biases at a time. Otherwise,
outputs are stored. If all poolings are asked for, they are compared with a bias 64 at a time, into the bits of a word,
from which the poolings are computed.

For a series of 500 points, the share for one bias takes 20 ns, including its part of the additions. To store the
outputs of a kernel takes 90 ns, and all four poolings for one bias 130 ns. A plain loop that the compiler vectorises is
half again as slow for shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.config import run_in_ranges
from similia.core.estimators import all_at_once, check_fitted
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.lanes import (
    HALF,
    LANES,
    bits_above,
    count_above,
    load,
    load_half,
    maximum,
    no_counts,
    splat,
    splat_half,
    store,
    total,
)
from similia.core.state import Sizes, array, count, made, optional, state
from similia.core.text import counted
from similia.core.validation import BadParameter, BadValue, RandomState, check_positive_int, generator
from similia.embeddings.intervals import TimeShares, differences, divide, of_points, range_of, spread
from similia.embeddings.vectors import warn_of_levels
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one, offsets_of
from similia.objects.series import SeriesBatch, as_series
from similia.objects.vectors import check_finite
from similia.sources.dask import from_parts, lazily

Floats = npt.NDArray[np.float32]
FAMILIES = ("minirocket", "multirocket")
_N_KERNELS = 84
_POOLINGS = 4
_WIDTH = 9  # number of weights of a kernel
_MOST_CHANNELS = 9  # maximum number of channels that one kernel reads
_SAMPLE = 1024  # maximum number of training series from which biases come
_MOST = 1e30  # up to this magnitude of values, outputs and their sums fit into float32
_MOST_EXPONENT = 1100  # exponents of float64 are below
_GOLDEN = (1 + 5**0.5) / 2
KERNELS = np.array(list(combinations(range(9), 3)), dtype=np.int64)  # places of the weight 2, in the order of the paper
_TILE = 1024  # outputs that are pooled while they are in cache; a multiple of 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_PLACES = np.array(  # numbers whose bit i is bit k of i
    [sum(1 << i for i in range(64) if i >> k & 1) for k in range(6)], dtype=np.uint64
)


def _kernels_fit(state: dict[str, Any], sizes: Sizes) -> bool:
    counts, limits, channels = state["counts"], state["limits"], state["channels"]
    lists = sizes["dilations"] * _N_KERNELS + 1 == len(limits) and limits[0] == 0 and limits[-1] == len(channels)
    return bool(
        lists
        and (np.diff(limits) >= 1).all()
        and (state["dilations"] >= 1).all()
        and (counts >= 0).all()
        and (counts <= sizes["biases"]).all()
        and _N_KERNELS * counts.sum() == sizes["biases"]
        and ((channels >= 0) & (channels < state["n_channels"])).all()
    )


@dataclass
@state(
    fits=_kernels_fit, n_channels=count(least=1), dilations=array("i8", "dilations"), counts=array("i8", "dilations"),
    biases=array("f4", "biases"), channels=array("i8", None), limits=array("i8", None),
)  # fmt: skip
class DilatedKernels:
    """The 84 kernels at some dilations, with the biases and the channels of each.

    Attributes
    ----------
    n_channels : int
        Number of channels of the series.
    dilations, counts : ndarray of int64, shape (n_dilations,)
        `dilations` holds the distances between the points that a kernel reads, `counts` the number of biases that each
        kernel has at each dilation.
    biases : ndarray of float32, shape (84 * sum(counts),)
        Biases, by dilation, then by kernel.
    channels : ndarray of int64
        Channels that the kernels read, one list after another.
    limits : ndarray of int64, shape (84 * n_dilations + 1,)
        Kernel k at dilation j adds its outputs for ``channels[limits[84 * j + k]:limits[84 * j + k + 1]]``.
    """

    n_channels: int
    dilations: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    biases: Floats
    channels: npt.NDArray[np.int64]
    limits: npt.NDArray[np.int64]


@state(
    fits=lambda state, sizes: _state_fits(state),
    kernels_=made("DilatedKernels"), difference_kernels_=optional(made("DilatedKernels")),
    n_channels_=count(least=1), length_=count(least=1), _n_features_out=count(least=1),
    exponent_=lambda value, sizes: isinstance(value, int) and abs(value) < _MOST_EXPONENT,
)  # fmt: skip
class RandomConvolutions(TimeShares):
    r"""Embed time series by statistics of dilated convolutions, as MiniRocket and MultiRocket do.

    A convolution kernel, here nine weights, moves along the series and reads every d-th point, where d is its dilation.
    The features tell how often, and where, the output of the kernel exceeds a threshold, the bias.

    Parameters
    ----------
    n_features : int, default=10_000
        Number of features. For MiniRocket, it must be at least 84, and is rounded down to a multiple of 84; for
        MultiRocket, the same holds with 672. The papers use 10,000 for MiniRocket and 50,000 for MultiRocket.
    family : {"minirocket", "multirocket"}, default="minirocket"
        Which statistics to use as features. C_t is the output of a kernel at time t, and counts as positive if it
        exceeds the bias b:

        - ``"minirocket"``: the share of positive values;
        - ``"multirocket"``: four numbers for the series, and four for its first differences. The four numbers are the
          share of positive values, the mean excess C_t - b of the positive values, the mean of their positions in time,
          and the length of the longest run of positive values. The last two numbers are divided by the length of the
          output. All four numbers are 0 if no value is positive.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws channels and the training series that determine the biases.
    max_dilations : int, default=32
        Maximum number of different dilations. They grow exponentially from 1 to the largest dilation at which a kernel
        fits into a series of `length_` points. With `n_features` below 168 (MultiRocket: 1344), the only dilation is 1.

    Attributes
    ----------
    n_channels_ : int
        Number of channels of a series.
    length_ : int
        Median length of the training series that `fit` looks at (see Notes); it determines the dilations. For an even
        number of series, it is the smaller of the two middle lengths.
    length_range_ : ndarray of int64, shape (2,)
        Smallest and largest length of the training series that `fit` looks at.
    exponent_ : int
        All values of series are divided by 2**exponent_ before they are converted to float32. `fit` chooses the
        exponent so that the largest absolute value of its training series (see Notes) is then between 0.5 and 1. Biases
        and excesses refer to the divided values.
    kernels_ : DilatedKernels
        Dilations, biases and channels of the convolutions of the series.
    difference_kernels_ : DilatedKernels or None
        Dilations, biases and channels of the convolutions of first differences; None if the family is ``"minirocket"``.

    Raises
    ------
    ValueError
        If a parameter is out of range; if a series holds NaN or infinity; or, in `transform`, if the number of channels
        differs from that in `fit`, or a value exceeds 1e30 after division by 2**exponent_.

    Notes
    -----
    A kernel has nine weights: 2 at three places, and -1 at the other six places. The weights sum to 0, so a constant
    added to a series does not change the outputs that are computed from points of the series alone. At each dilation,
    half of the kernels read the series padded with zeros on both sides. They have an output for each time point, and
    the constant changes their outputs near both ends. The other half have outputs only where the kernel fits into the
    series without padding; if such a kernel fits nowhere, the series is padded for it, too. So a series of any length
    has features, and lengths may differ between series.

    If series have several channels, the output of a kernel is the sum of its outputs for a random subset of at most
    nine channels; small subsets are more likely. The biases of a kernel at a dilation are quantiles of its output for
    one randomly drawn training series. `fit` looks at 1024 series at most, drawn at random.

    Standardise the features before a linear model, as the authors do (the example leaves this out): features differ in
    spread and, with MultiRocket, in units. For example, the share of positive values varies little if the bias is very
    large or very small. The features are computed in float32. The features of a series are the same, to the last bit,
    whatever other series are in the call, for any number of threads and on any processor.

    In the published code of MultiRocket, the mean of excesses adds the bias instead of subtracting it, and a run
    includes the value that ends it. In this class, both features follow the text of the paper.

    References
    ----------
    Dempster, Schmidt & Webb, "MiniRocket: A very fast (almost) deterministic transform for time series
    classification", KDD 2021, Section 3; Tan, Dempster, Bergmeir & Webb, "MultiRocket: multiple pooling operators and
    transformations for fast and effective time series classification", DMKD 2022, Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> rng = np.random.default_rng(0)
    >>> phase = rng.uniform(0, 6, (40, 1))
    >>> y = np.arange(40) % 2
    >>> X = np.sin(phase + np.arange(50) * np.where(y, 0.5, 0.7)[:, None]) + rng.normal(0, 0.5, (40, 50))
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(sm.RandomConvolutions(840, random_state=0), RidgeClassifierCV()).fit(X[:20], y[:20])
    >>> model[0].transform(X).shape, bool(model.score(X[20:], y[20:]) > 0.9)
    ((40, 840), True)
    """

    _dtypes = ()  # float32 from any input

    def __init__(
        self,
        n_features: int = 10_000,
        family: str = "minirocket",
        random_state: RandomState = None,
        *,
        max_dilations: int = 32,
    ) -> None:
        self.n_features = n_features
        self.family = family
        self.random_state = random_state
        self.max_dilations = max_dilations

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the dilations, channels and biases of the convolution kernels from at most 1024 series of `X`.

        The dilation of a kernel is the step between the points that it reads; its biases are the thresholds with which
        its output is compared. `X` is a collection of series in any form that `similia.objects.as_series` accepts.
        """
        if self.family not in FAMILIES:
            raise BadParameter("family", " or ".join(map(repr, FAMILIES)), repr(self.family))
        multi = self.family == "multirocket"
        share = 2 * _POOLINGS if multi else 1  # features of one bias of a kernel
        per_kernel = check_positive_int(self.n_features, "n_features", _N_KERNELS * share) // (_N_KERNELS * share)
        check_positive_int(self.max_dilations, "max_dilations")
        rng = generator(self.random_state)
        X = X if getattr(X, "elsewhere", False) is True else as_series(X)
        some = np.sort(rng.permutation(at_least_one(X))[:_SAMPLE])
        batch = as_series(take(X, some) if len(some) < n_objects(X) or not isinstance(X, SeriesBatch) else X)
        self.exponent_ = int(np.frexp(np.abs(batch.values).max())[1])
        series = np.split(self._scaled(batch, some), batch.offsets[1:-1])
        self.n_channels_ = batch.n_dims
        self.length_ = int(np.sort(batch.lengths)[(len(batch) - 1) // 2])
        self.length_range_ = range_of(batch.lengths)
        draw = partial(_draw_kernels, per_kernel=per_kernel, most=int(self.max_dilations), rng=rng)
        self.kernels_ = draw(series, self.length_)
        self.difference_kernels_ = draw([differences(x) for x in series], self.length_ - 1) if multi else None
        self._n_features_out = _n_columns(self.kernels_, self.difference_kernels_)
        return self

    @lazily
    def transform(self, X: Any) -> Floats:
        """Return the features of n series, float32 of shape (n, n_features)."""
        check_fitted(self)
        batch = as_series(X)
        self._check_channels(batch)
        values = self._scaled(batch)
        out = np.empty((len(batch), self._n_features_out), np.float32)
        steps = self.difference_kernels_

        def work(start: int, stop: int) -> None:
            some, first = (values, batch.offsets, start, stop), _POOLINGS * len(self.kernels_.biases)
            _write_features(*some, False, steps is not None, *_arrays(self.kernels_), out, 0)
            if steps is not None:
                _write_features(*some, True, True, *_arrays(steps), out, first)

        run_in_ranges(work, len(batch), 1)
        return out

    def _time_shares(self, batch: SeriesBatch, weights: npt.NDArray, centre: npt.NDArray) -> npt.NDArray[np.float64]:
        self._check_channels(batch)
        x, steps = self._scaled(batch), self.difference_kernels_

        def split(series: Floats, kernels: DilatedKernels, columns: slice) -> npt.NDArray[np.float64]:
            out = np.zeros(series.shape)
            _split_convolutions(series, steps is not None, *_arrays(kernels), weights[columns], centre[columns], out)
            return out

        if steps is None:
            return split(x, self.kernels_, slice(None))
        first = _POOLINGS * len(self.kernels_.biases)
        of_steps = split(differences(x), steps, slice(first, None))
        return split(x, self.kernels_, slice(first)) + of_points(of_steps, len(x))

    def _check_channels(self, batch: SeriesBatch) -> None:
        if batch.n_dims != self.n_channels_:
            found, expected = counted(batch.n_dims, "channel"), f"{self.n_channels_} as in fit"
            raise BadValue(0, f"has {found}", expected, kind="series")

    def _scaled(self, batch: SeriesBatch, numbers: npt.NDArray[np.int64] | None = None) -> Floats:
        """Return all numbers divided by 2 ** `exponent_`, as float32; raise if one is NaN, infinite or too large.

        If `numbers` is given, a warning names series i by ``numbers[i]``.
        """
        check_finite(batch)
        warn_of_levels(batch, numbers)
        with np.errstate(over="ignore", under="ignore"):
            values = np.ldexp(batch.values, -self.exponent_)
            large = np.abs(values).max(axis=1) > _MOST
            if large.any():
                i = int(np.searchsorted(batch.offsets, np.argmax(large), side="right")) - 1
                found = f"holds numbers up to {np.abs(batch[i]).max():.3g}"
                expected = f"at most {_MOST:g} times the largest of the training series, about 2 ** {self.exponent_}"
                raise BadValue(i, found, expected, kind="series")
            return values.astype(np.float32, copy=False)


def _state_fits(state: dict[str, Any]) -> bool:
    kernels, of_differences = state["kernels_"], state["difference_kernels_"]
    channels = {found.n_channels for found in (kernels, of_differences) if found is not None}
    return channels == {state["n_channels_"]} and _n_columns(kernels, of_differences) == state["_n_features_out"]


def dilations_of(length: int, per_kernel: int, most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the dilations for series of `length` points, and how many of `per_kernel` biases a kernel has at each."""
    n = min(per_kernel, most)
    largest = np.log2(max(1.0, (length - 1) / (_WIDTH - 1)))
    # A little more than 2^e, so that a power that should be whole is not rounded down on some processors.
    powers = np.floor(2 ** np.linspace(0, largest, n) * (1 + 1e-9)).astype(np.int64)
    dilations, repeats = np.unique(powers, return_counts=True)
    counts = repeats * per_kernel // n
    counts[: per_kernel - counts.sum()] += 1
    return dilations, counts


def _draw_kernels(
    series: list[Floats], length: int, per_kernel: int, most: int, rng: np.random.Generator
) -> DilatedKernels:
    """Return kernels with random channels, and with biases from random ones of `series`, each (length, n_channels)."""
    dilations, counts = dilations_of(length, per_kernel, most)
    n, n_channels = _N_KERNELS * len(dilations), series[0].shape[1]
    sizes = np.floor(2 ** rng.uniform(0, np.log2(min(n_channels, _MOST_CHANNELS) + 1), n)).astype(np.int64)
    channels = [rng.choice(n_channels, size, replace=False) for size in sizes]
    quantiles = np.arange(1, _N_KERNELS * per_kernel + 1) * _GOLDEN % 1  # they fill (0, 1) evenly
    biases = np.empty(len(quantiles), np.float32)
    first = 0
    for number, drawn in enumerate(rng.integers(len(series), size=n)):
        j, k = divmod(number, _N_KERNELS)
        output = np.empty(len(series[drawn]), np.float32)
        _convolution(series[drawn], dilations[j], KERNELS[k], channels[number], output)
        stop = first + counts[j]
        biases[first:stop] = np.quantile(output.astype(np.float64), quantiles[first:stop])
        first = stop
    limits = offsets_of(sizes)
    return DilatedKernels(n_channels, dilations, counts, biases, np.concatenate(channels), limits)


def _arrays(kernels: DilatedKernels) -> tuple[npt.NDArray[Any], ...]:
    """Return the arrays of some kernels, in the order in which the compiled loops take them."""
    return kernels.dilations, kernels.counts, kernels.biases, kernels.channels, kernels.limits


def _n_columns(kernels: DilatedKernels, of_differences: DilatedKernels | None) -> int:
    """Return the number of features of the kernels of series and, unless None, of those of first differences."""
    if of_differences is None:
        return len(kernels.biases)
    return _POOLINGS * (len(kernels.biases) + len(of_differences.biases))


@njit()
def _write_features(  # type: ignore[no-untyped-def]
    values, offsets, start, stop, differences, pool_all, dilations, counts, biases, channels, limits, out, first
):
    """Write the features of series `start` to `stop` - 1 into their rows of `out`, float32, from column `first` on.

    `values` and `offsets` are those of a `SeriesBatch`. If `differences`, the first differences are convolved instead.
    At dilation j, each kernel has ``counts[j]`` biases, in the order of `biases`, and kernel k reads the channels
    ``channels[limits[84 j + k]:limits[84 j + k + 1]]``. If `pool_all`, the four poolings are written one after another,
    otherwise only the shares of positive outputs.
    """
    n_channels, longest = values.shape[1], 1
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    reach = 4 * min(longest, dilations.max())  # larger dilations read only zeros, like one equal to the length
    width = longest + 2 * reach + LANES  # of a channel; flat arrays, since slicing takes longer than some convolutions
    ones = np.empty(n_channels * width, np.float32)
    threes, rest = np.empty_like(ones), np.empty_like(ones)
    shared = not pool_all and n_channels == 1 and len(channels) == len(limits) - 1  # each kernel reads the one channel
    pair, tile = np.empty_like(ones), _TILE if pool_all else longest
    output, zeros = np.empty(tile + 64, np.float32), np.zeros(tile + 64, np.float32)
    most, m = counts.max(), len(biases)
    found, sums, places = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
    stretches, running = np.empty(most, np.int64), np.empty(most, np.int64)
    for i in range(start, stop):
        length = _copy(values, offsets[i], offsets[i + 1], differences, reach, width, ones, threes)
        bias = 0
        for j in range(len(dilations)):
            dilation, n = min(dilations[j], length), counts[j]
            for channel in range(n_channels):
                _sum_rest(ones, channel * width + reach, dilation, length, rest)
            for k in range(len(KERNELS)):
                low, high = 0, length
                if (j + k) % 2 == 1 and length > 8 * dilation:  # without padding
                    low, high = 4 * dilation, length - 4 * dilation
                for f in range(n if pool_all else 0):  # shares are assigned
                    found[f], sums[f], places[f], stretches[f], running[f] = 0, 0.0, 0, 0, 0
                number = len(KERNELS) * j + k
                if shared and KERNELS[k, 2] == KERNELS[k, 1] + 1:  # the first kernel with these two places
                    _add_two(rest, threes, reach, dilation, k, length, pair)
                for begin in range(low, high, tile):
                    size, origin = min(tile, high - begin), reach + begin
                    if shared:
                        third = origin + (KERNELS[k, 2] - 4) * dilation
                        _count(pair, origin, threes, third, size, biases, bias, n, found)
                        continue
                    for at in range(limits[number], limits[number + 1]):
                        there = channels[at] * width + origin
                        _convolve(rest, threes, there, dilation, k, size, at > limits[number], output)
                    if pool_all:
                        _pool(output, size, biases, bias, n, begin - low, found, sums, places, stretches, running)
                    else:
                        _count(output, 0, zeros, 0, size, biases, bias, n, found)
                size = high - low
                for f in range(n):
                    column = first + bias + f
                    out[i, column] = found[f] / size
                    if pool_all:
                        many = max(found[f], 1)
                        out[i, column + m] = sums[f] / many
                        out[i, column + 2 * m] = (places[f] + found[f]) / (many * size)
                        out[i, column + 3 * m] = max(stretches[f], running[f]) / size
                bias += n


@njit()
def _copy(values, start, stop, differences, reach, width, ones, threes):  # type: ignore[no-untyped-def]
    """Write a series, or its first differences, to `ones`, padded with zeros, and 3 times this to `threes`.

    The series is ``values[start:stop]``; its channel c begins at ``c * width + reach``. Return the length.
    """
    length = max(1, stop - start - differences)
    ones[:] = np.float32(0)
    for channel in range(values.shape[1]):
        for t in range(length):
            value = values[start + t, channel]
            if differences:
                value = values[start + t + 1, channel] - value if stop - start > 1 else np.float32(0)
            ones[channel * width + reach + t] = value
    for t in range(len(ones)):
        threes[t] = np.float32(3) * ones[t]
    return length


@njit()
def _sum_rest(ones, origin, dilation, length, rest):  # type: ignore[no-untyped-def]
    """Fill `rest` from `origin` on with the sum of minus the nine numbers that a kernel reads, the middle one first."""
    zero = splat(np.float32(0))
    for at in range(origin, origin + length, LANES):
        value = zero - load(ones, at)
        for s in range(1, 5):
            value = value - load(ones, at - (5 - s) * dilation)
        for s in range(1, 5):
            value = value - load(ones, at + s * dilation)
        store(rest, at, value)


@njit()
def _add_two(rest, threes, origin, dilation, k, length, pair):  # type: ignore[no-untyped-def]
    """Fill `pair` from `origin` on with the first three terms of the outputs of kernel `k`."""
    a, b = (KERNELS[k, 0] - 4) * dilation, (KERNELS[k, 1] - 4) * dilation
    for at in range(origin, origin + length, LANES):
        store(pair, at, load(rest, at) + load(threes, at + a) + load(threes, at + b))


@njit()
def _convolve(rest, threes, origin, dilation, k, size, add, output):  # type: ignore[no-untyped-def]
    """Write `size` outputs of kernel `k` for one channel to `output`, or add them; pad with -inf to whole words."""
    a, b, c = (KERNELS[k, 0] - 4) * dilation, (KERNELS[k, 1] - 4) * dilation, (KERNELS[k, 2] - 4) * dilation
    for t in range(0, size, LANES):
        at = origin + t
        value = load(rest, at) + load(threes, at + a) + load(threes, at + b) + load(threes, at + c)
        if add:
            value = load(output, t) + value
        store(output, t, value)
    for t in range(size, (size + 63) // 64 * 64):
        output[t] = -np.inf


@njit()
def _word(output, t, level):  # type: ignore[no-untyped-def]
    """Return a uint64 whose bit i is 1 if ``output[t + i]`` is above `level`."""
    word = bits_above(load(output, t), level)
    for part in range(1, 64 // LANES):
        word |= bits_above(load(output, t + part * LANES), level) << np.uint64(part * LANES)
    return word


@njit()
def _count(x, first, y, second, size, biases, bias, n, found):  # type: ignore[no-untyped-def]
    """Write to `found` how many of the sums ``x[first + t] + y[second + t]``, t < size, are above each of `n` biases.

    The biases are those from position `bias` on. `x` must have `HALF` numbers after the last one; they are overwritten
    and restored.
    """
    after = load_half(x, first + size)
    store(x, first + size, splat_half(np.float32(-np.inf)))  # so that no sum in the last lanes is above a bias
    for f0 in range(0, n, 4):
        f1, f2, f3 = min(f0 + 1, n - 1), min(f0 + 2, n - 1), min(f0 + 3, n - 1)  # some twice in the last round
        b0, b1 = splat_half(biases[bias + f0]), splat_half(biases[bias + f1])
        b2, b3 = splat_half(biases[bias + f2]), splat_half(biases[bias + f3])
        n0 = n1 = n2 = n3 = no_counts()
        for t in range(0, size, HALF):
            value = load_half(x, first + t) + load_half(y, second + t)
            n0, n1 = count_above(n0, value, b0), count_above(n1, value, b1)
            n2, n3 = count_above(n2, value, b2), count_above(n3, value, b3)
        found[f0], found[f1], found[f2], found[f3] = total(n0), total(n1), total(n2), total(n3)
    store(x, first + size, after)


@njit()
def _pool(output, size, biases, bias, n, begin, found, sums, places, stretches, running):  # type: ignore[no-untyped-def]
    """Update the poolings of `n` biases by a part of the output, `output`, whose first number has the position `begin`.

    An output is positive if it is above the bias. The poolings are the number of positive outputs, the sums of their
    excesses and of their positions, the longest stretch of them that has ended, and the length of a stretch that has
    not ended yet.
    """
    zero = splat(np.float32(0))
    for f in range(n):
        level, excess = splat(biases[bias + f]), zero
        stretch, run = stretches[f], running[f]
        for t in range(0, size, 64):
            word = _word(output, t, level)
            for part in range(0, 64, 2 * LANES):  # pairs first: each sum must wait for the one before
                here, there = load(output, t + part), load(output, t + part + LANES)
                excess = excess + (maximum(here - level, zero) + maximum(there - level, zero))
            many = np.int64(popcount(word))
            found[f] += many
            places[f] += (begin + t) * many
            for k in range(6):
                places[f] += np.int64(popcount(word & _PLACES[k])) << k
            stretch, run = _longest(word, stretch, run)
        sums[f] += total(excess)
        stretches[f], running[f] = stretch, run


@njit()
def _longest(word, stretch, run):  # type: ignore[no-untyped-def]
    """Return (longest stretch of 1 bits that has ended, length of the stretch that has not ended) after 64 more bits.

    `word` holds these bits, and `stretch` and `run` are the two lengths before them.
    """
    if word == _ALL:
        return stretch, run + 64
    if word == 0:
        return max(stretch, run), 0
    stretch = max(stretch, run + np.int64(popcount(word & ~(word + _ONE))))  # the ones up to the first zero
    last = ~word  # all bits up to the last zero
    for k in range(6):
        last |= last >> np.uint64(1 << k)
    need, had, inside = stretch + 1, 1, word if stretch < 64 else np.uint64(0)
    while had < need and inside != 0:  # leave a bit where a stretch of `had` bits begins
        step = min(had, need - had)
        inside &= inside >> np.uint64(step)
        had += step
    while inside != 0:
        stretch += 1
        inside &= inside >> _ONE
    return stretch, 64 - np.int64(popcount(last))


@njit()
def _convolution(x, dilation, kernel, channels, out):  # type: ignore[no-untyped-def]
    """Fill `out` (length,) with the output of one kernel for a float32 series `x`, shape (length, n_channels)."""
    for t in range(len(x)):
        for number in range(len(channels)):
            column = x[:, channels[number]]
            value = -column[t]
            for s in (-4, -3, -2, -1, 1, 2, 3, 4):
                at = t + s * dilation
                if 0 <= at < len(x):
                    value -= column[at]
            for place in kernel:
                at = t + (place - 4) * dilation
                if 0 <= at < len(x):
                    value += np.float32(3) * column[at]
            out[t] = value if number == 0 else out[t] + value


@njit()
def _split_convolutions(  # type: ignore[no-untyped-def]
    x, pool_all, dilations, counts, biases, channels, limits, weights, centre, out
):
    """Add the shares of each point of a float32 series `x` to `out`; both have the shape (length, n_channels).

    The kernels are given as to `_write_features`. `weights` and `centre` have an entry for each of their features.
    """
    length, m, bias = len(x), len(biases), 0
    output, amounts = np.empty(length, np.float32), np.empty(length)
    for j in range(len(dilations)):
        dilation = min(dilations[j], length)
        for k in range(len(KERNELS)):
            low, high = 0, length
            if (j + k) % 2 == 1 and length > 8 * dilation:  # without padding
                low, high = 4 * dilation, length - 4 * dilation
            number = len(KERNELS) * j + k
            own = channels[limits[number] : limits[number + 1]]
            _convolution(x, dilation, KERNELS[k], own, output)
            amounts[:] = 0
            for f in range(bias, bias + counts[j]):
                _split_poolings(output[low:high], biases[f], pool_all, weights[f::m], centre[f::m], amounts[low:high])
            bias += counts[j]
            spread(amounts, x, own, -4 * dilation, dilation, 9, out)


@njit()
def _split_poolings(output, bias, pool_all, weights, centre, amounts):  # type: ignore[no-untyped-def]
    """Divide the amounts of the poolings for one `bias` among outputs; if not `pool_all`, only that of the share.

    The amount of the share goes to the outputs above the bias if the share is above its centre, otherwise to the other
    outputs. The amount of the longest stretch is divided in the same way: outputs in the stretch, or all others.
    """
    size, many, run, longest, end = len(output), 0, 0, 0, 0
    excess, places = 0.0, 0.0
    positive = output > bias
    for t in range(size):
        run = run + 1 if positive[t] else 0
        if run > longest:
            longest, end = run, t + 1
        if positive[t]:
            many += 1
            excess += output[t] - bias
            places += t + 1
    difference = many / size - centre[0]
    divide(weights[0] * difference, positive, difference > 0, amounts)
    if pool_all:
        n = max(1, many)
        means = weights[1] * (excess / n - centre[1]) + weights[2] * (places / (n * size) - centre[2])
        divide(means, positive, True, amounts)
        positive[:] = False
        positive[end - longest : end] = True
        difference = longest / size - centre[3]
        divide(weights[3] * difference, positive, difference > 0, amounts)
