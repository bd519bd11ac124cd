r"""Random convolutions (MiniRocket, MultiRocket): represent a series by how often its convolutions exceed biases.

.. math:: \phi_j(x) = \frac{1}{|T|} \sum_{t \in T} 1\{(x * w_j)_t > b_j\}

The weights w_j are one of 84 fixed kernels of nine numbers. A kernel with dilation d reads every d-th point, so kernels
with different dilations respond to shapes of different sizes, at any time. The biases b_j are quantiles of outputs for
training series. A linear model of such features is among the most accurate known for series. Cost: linear in the
numbers of series and features and in the length. 500 series of 500 points take less than 0.1 s for 10,000 features on
two cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadParameter, BadValue
from similia.core.estimators import all_at_once
from similia.core.state import Sizes, array, count, made, optional, state
from similia.core.text import counted
from similia.core.threads import run_in_ranges
from similia.core.validation import RandomState, check_positive_int, generator
from similia.embeddings._convolutions import KERNELS, convolve, write_features
from similia.embeddings._time_loops import split_convolutions
from similia.embeddings._time_shares import TimeShares, differences, of_points, range_of
from similia.embeddings.vectors import warn_of_levels
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one, offsets_of
from similia.objects.series import SeriesBatch, as_series
from similia.objects.vectors import check_finite
from similia.sources.dask import from_parts, lazily

Floats = npt.NDArray[np.float32]
FAMILIES = ("minirocket", "multirocket")
_KERNELS = 84
_POOLINGS = 4
_WIDTH = 9  # number of weights of a kernel
_MOST_CHANNELS = 9  # maximum number of channels that one kernel reads
_SAMPLE = 1024  # maximum number of training series from which biases come
_MOST = 1e30  # up to this magnitude of values, outputs and their sums fit into float32
_MOST_EXPONENT = 1100  # exponents of float64 are below
_GOLDEN = (1 + 5**0.5) / 2


def _kernels_fit(state: dict[str, Any], sizes: Sizes) -> bool:
    counts, limits, channels = state["counts"], state["limits"], state["channels"]
    lists = sizes["dilations"] * _KERNELS + 1 == len(limits) and limits[0] == 0 and limits[-1] == len(channels)
    return bool(
        lists
        and (np.diff(limits) >= 1).all()
        and (state["dilations"] >= 1).all()
        and (counts >= 0).all()
        and (counts <= sizes["biases"]).all()
        and _KERNELS * counts.sum() == sizes["biases"]
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
    The features say how often, and where, the output of the kernel exceeds a threshold, the bias.

    Parameters
    ----------
    n_features : int, default=10_000
        Number of features. It is rounded down to a multiple of 84 (MiniRocket) or 672 (MultiRocket), and must be at
        least 84 or 672. The papers take 10,000 for MiniRocket and 50,000 for MultiRocket.
    family : {"minirocket", "multirocket"}, default="minirocket"
        Which statistics to use as features. C_t is the output of a kernel at time t, and counts as positive if it
        exceeds the bias b:

        - ``"minirocket"``: the share of positive values;
        - ``"multirocket"``: four numbers for the series, and four for its first differences. They are the share of
          positive values, the mean of their excesses C_t - b, the mean of their positions in time, and the length of
          the longest run of positive values. The last two are divided by the length of the output. All four are 0 if no
          value is positive.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws channels and the training series that determine the biases.
    max_dilations : int, default=32
        Maximum number of different dilations. They grow exponentially from 1 to the largest for which a kernel fits
        into a series of `length_` points. With `n_features` below 168 (MultiRocket: 1344), the only dilation is 1.

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
        and excesses are those of the divided values.
    kernels_ : DilatedKernels
        Dilations, biases and channels of the convolutions of the series.
    difference_kernels_ : DilatedKernels or None
        The same for the first differences of the series; None if the family is ``"minirocket"``.

    Raises
    ------
    ValueError
        If a parameter is out of range; if a series holds NaN or infinity; or, in `transform`, if the number of channels
        differs from that in `fit`, or a value exceeds 1e30 after division by 2**exponent_.

    Notes
    -----
    A kernel has nine weights: 2 at three places, -1 at the others. The weights sum to 0, so a constant added to a
    series does not change the outputs that are computed from points of the series alone. At each dilation, half of the
    kernels read the series padded with zeros on both sides. They have an output for each time point, and the constant
    changes their outputs near both ends. The other half have outputs only where the kernel fits into the series without
    padding; if it fits nowhere, the series is padded for it, too. So a series of any length has features, and lengths
    may differ between series.

    If series have several channels, the output of a kernel is the sum of its outputs for a random subset of at most
    nine channels; small subsets are more likely. The biases of a kernel at a dilation are quantiles of its output for
    one randomly drawn training series. `fit` looks at 1024 series at most, drawn at random.

    Standardise the features before a linear model, as the authors do (the example leaves this out): features differ in
    spread and, with MultiRocket, in units. For example, the share of positive values varies little if the bias is very
    large or very small. The features are computed in float32. The features of a series are the same, to the last bit,
    whatever other series are in the call, for any number of threads and on any processor.

    In the published code of MultiRocket, the mean of excesses adds the bias instead of subtracting it, and a run
    includes the value that ends it. Here both follow the text of the paper.

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
        """Draw the kernels; `X` is a collection of series in any form that `similia.objects.as_series` accepts."""
        if self.family not in FAMILIES:
            raise BadParameter("family", " or ".join(map(repr, FAMILIES)), repr(self.family))
        multi = self.family == "multirocket"
        share = 2 * _POOLINGS if multi else 1  # features of one bias of a kernel
        per_kernel = check_positive_int(self.n_features, "n_features", _KERNELS * share) // (_KERNELS * share)
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
        check_is_fitted(self)
        batch = as_series(X)
        self._check_channels(batch)
        values = self._scaled(batch)
        out = np.empty((len(batch), self._n_features_out), np.float32)
        steps = self.difference_kernels_

        def work(start: int, stop: int) -> None:
            some, first = (values, batch.offsets, start, stop), _POOLINGS * len(self.kernels_.biases)
            write_features(*some, False, steps is not None, *_arrays(self.kernels_), out, 0)
            if steps is not None:
                write_features(*some, True, True, *_arrays(steps), out, first)

        run_in_ranges(work, len(batch), 1)
        return out

    def _time_shares(self, batch: SeriesBatch, weights: npt.NDArray, centre: npt.NDArray) -> npt.NDArray[np.float64]:
        self._check_channels(batch)
        x, steps = self._scaled(batch), self.difference_kernels_

        def split(series: Floats, kernels: DilatedKernels, columns: slice) -> npt.NDArray[np.float64]:
            out = np.zeros(series.shape)
            split_convolutions(series, steps is not None, *_arrays(kernels), weights[columns], centre[columns], out)
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
    n, n_channels = _KERNELS * len(dilations), series[0].shape[1]
    sizes = np.floor(2 ** rng.uniform(0, np.log2(min(n_channels, _MOST_CHANNELS) + 1), n)).astype(np.int64)
    channels = [rng.choice(n_channels, size, replace=False) for size in sizes]
    quantiles = np.arange(1, _KERNELS * per_kernel + 1) * _GOLDEN % 1  # they fill (0, 1) evenly
    biases = np.empty(len(quantiles), np.float32)
    first = 0
    for number, drawn in enumerate(rng.integers(len(series), size=n)):
        j, k = divmod(number, _KERNELS)
        output = np.empty(len(series[drawn]), np.float32)
        convolve(series[drawn], dilations[j], KERNELS[k], channels[number], output)
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
