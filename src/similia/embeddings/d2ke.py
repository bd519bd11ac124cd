r"""D2KE (from distance to kernel and embedding): feature vectors with one entry for each random object.

.. math:: \phi_j(x) = R^{-1/2} e^{-\gamma d(x, \omega_j)}, \qquad j = 1, \dots, R,

for any distance d and random objects omega_j drawn once from a distribution p(omega). Inner products of these vectors
estimate a positive definite kernel, `similia.kernels.FromDistance`; a linear model on the vectors is a kernel machine.
Cost: n R distances to short objects, linear in the number of objects and in their length.

The distributions p(omega): strings, series, point sets, and training objects, whole or in pieces. Random strings,
series and sets are short, however long the training objects are. So a distance takes time linear in the length of an
object, not quadratic. Drawing costs time linear in the total length of the objects drawn.

A distribution (sampler) is any object with a method ``sample(X, n, rng)`` and without a length, or any function
``f(X, n, rng)``, that returns a collection of n objects. X holds the training objects; the kernel
`similia.kernels.FromDistance` passes None.

Paper: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Section 3 ("Effect of
p(omega)") and Appendix C.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_memory

from similia.core.estimators import Transformer, all_at_once, check_fitted, detached, example_of
from similia.core.hashing import fingerprint
from similia.core.state import array, count, objects, one_of, optional, state
from similia.core.validation import (
    BadParameter,
    BadType,
    RandomState,
    as_second,
    check_flags,
    check_positive,
    check_positive_int,
    check_vectors,
    generator,
    pairs_named,
)
from similia.embeddings.vectors import BLOCK, moments
from similia.kernels.from_distance import distance_matrix, draw, exp_features, is_sampler, joined, random_stream
from similia.objects import SeriesBatch, SetBatch, StringBatch, as_series, as_sets, as_strings, n_objects, take
from similia.objects.sequences import at_least_one, named, offsets_of
from similia.similarity import ComparesObjects, as_objects, check_distance, read_objects
from similia.sources.dask import Distributed, as_parts, each_block, from_parts, lazily

Span = int | tuple[int, int]
Index = npt.NDArray[np.int64]
_BATCHES = (StringBatch, SeriesBatch, SetBatch)

_RARE = 0.01  # letters that occur less often than this fraction of the mean count per letter are not drawn
# "median" is the median of the distances between this many training objects (rows) and random objects (columns).
GAMMA_ROWS, GAMMA_COLUMNS = 256, 64


@state()
class RandomObjects(BaseEstimator):
    """Base class of distributions of random objects; parameters that are None are estimated from training objects."""

    def complete(self, X: Any) -> Self:
        """Return a copy in which parameters that are None are replaced by estimates from the objects `X`.

        Raises ValueError if a parameter and `X` are both None. `X` is None if the objects are drawn for a kernel, which
        has no training objects.
        """
        raise NotImplementedError

    def sample(self, X: Any, n: int, rng: np.random.Generator) -> Any:
        """Return n random objects; parameters that are None are estimated from the training objects `X`."""
        return self.complete(X)._draw(n, rng)

    def _draw(self, n: int, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def _estimates(self, X: Any, *names: str) -> bool:
        """Return whether any of the parameters called `names` is None; raise if so and `X` is None."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing and X is None:
            name = type(self).__name__
            raise ValueError(
                f"{name} takes {' and '.join(missing)} from training objects, and there are none here (a kernel has "
                f"none); write {name}({', '.join(f'{m}=...' for m in missing)})"
            )
        return bool(missing)


class RandomStrings(RandomObjects):
    """Random strings for `D2KE`: independent letters; length and letters are drawn uniformly.

    `similia.D2KE` turns each object into a vector by its distances to such random objects.

    Parameters
    ----------
    length : int or (int, int), default=(2, 50)
        Fixed length, or the smallest and largest length of a uniform distribution. If positions matter and all
        training strings have the same length, try that length.
    alphabet : str or bytes, optional
        Letters to draw from, with equal probability. By default the letters of the training strings, except letters
        that occur less than a hundredth as often as the average letter: such rare letters would only add noise.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import RandomStrings
    >>> RandomStrings(length=(2, 4), alphabet="ACGT").sample(None, 3, np.random.default_rng(0)).tolist()
    ['CCAA', 'AAT', 'GTG']
    """

    def __init__(self, length: Span = (2, 50), alphabet: str | bytes | None = None) -> None:
        self.length = length
        self.alphabet = alphabet

    def complete(self, X: Any) -> Self:
        _span(self.length, "length", minimum=0)
        alphabet = _letters(X) if self._estimates(X, "alphabet") else self.alphabet
        if not isinstance(alphabet, str | bytes) or len(alphabet) == 0:
            raise ValueError(
                f"RandomStrings(alphabet=...) must be a str (or bytes) of at least one letter, got {self.alphabet!r}"
            )
        return type(self)(self.length, alphabet)

    def _draw(self, n: int, rng: np.random.Generator) -> StringBatch:
        assert self.alphabet is not None
        lengths = _lengths(self.length, n, rng)
        letters = as_strings([self.alphabet])
        values = np.unique(letters.values)
        drawn = values[rng.integers(len(values), size=lengths.sum())]
        return StringBatch(drawn, offsets_of(lengths), letters.is_bytes)


class RandomSeries(RandomObjects):
    """Random series for `D2KE`: independent normal values; the length is drawn uniformly.

    `similia.D2KE` turns each object into a vector by its distances to such random objects.

    Parameters
    ----------
    length : int or (int, int), default=(2, 25)
        Number of time points, or the smallest and largest number of a uniform distribution.
    scale : float or array-like of shape (n_channels,), optional
        Standard deviation of the values, one for all channels or one for each. By default the standard deviation of the
        training values in each channel. `scale` is the bandwidth sigma of the D2KE paper (Wu et al., 2018): standard
        normal values are multiplied by sigma, here and in the paper. The program that the authors published divides by
        sigma instead.
    mean : float or array-like of shape (n_channels,), optional
        Mean of the values. By default the mean of the training values in each channel; the D2KE paper uses 0.
    n_channels : int, optional
        Number of channels. By default as many as the training series have.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import RandomSeries
    >>> series = RandomSeries(length=(2, 5), scale=1.0, mean=0.0, n_channels=3)
    >>> [len(x) for x in series.sample(None, 6, np.random.default_rng(0))]
    [5, 4, 4, 3, 3, 2]
    """

    def __init__(
        self,
        length: Span = (2, 25),
        scale: npt.ArrayLike | None = None,
        mean: npt.ArrayLike | None = None,
        n_channels: int | None = None,
    ) -> None:
        self.length = length
        self.scale = scale
        self.mean = mean
        self.n_channels = n_channels

    def complete(self, X: Any) -> Self:
        _span(self.length, "length", minimum=1)
        n_channels, scale, mean = self.n_channels, self.scale, self.mean
        if self._estimates(X, "scale", "mean", "n_channels"):
            _, means, variances = moments(X if isinstance(X, Distributed) else as_series(X), _points)
            n_channels = len(means) if n_channels is None else n_channels
            scale = np.sqrt(variances) if scale is None else scale
            mean = means if mean is None else mean
        n_channels = check_positive_int(n_channels, "n_channels")
        scale, mean = _per_channel(scale, "scale", n_channels), _per_channel(mean, "mean", n_channels)
        if (scale < 0).any():
            raise ValueError(f"scale must be a standard deviation >= 0, got {self.scale!r}")
        return type(self)(self.length, scale, mean, n_channels)

    def _draw(self, n: int, rng: np.random.Generator) -> SeriesBatch:
        lengths = _lengths(self.length, n, rng)
        values = rng.standard_normal((lengths.sum(), check_positive_int(self.n_channels, "n_channels")))
        return SeriesBatch(values * np.asarray(self.scale) + np.asarray(self.mean), offsets_of(lengths))


class RandomSets(RandomObjects):
    """Random sets for `D2KE`: independent points, uniform on a sphere; their number is drawn uniformly, too.

    `similia.D2KE` turns each object into a vector by its distances to such random objects.

    Parameters
    ----------
    size : int or (int, int), default=(3, 15)
        Number of points, or the smallest and largest number of a uniform distribution.
    radius : float, optional
        Radius of the sphere. By default the mean norm of the training points; the D2KE paper (Wu et al., 2018) uses 1.
    n_dims : int, optional
        Dimension of the points. By default the dimension of the training points.
    non_negative : bool, optional
        If True, draw only from the part of the sphere without negative coordinates. By default True if no training
        point has a negative coordinate (image descriptors, counts); the D2KE paper uses the whole sphere.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import RandomSets
    >>> sets = RandomSets(size=4, radius=2.0, n_dims=3, non_negative=False).sample(None, 5, np.random.default_rng(0))
    >>> np.linalg.norm(sets[0], axis=1)
    array([2., 2., 2., 2.])
    """

    def __init__(
        self,
        size: Span = (3, 15),
        radius: float | None = None,
        n_dims: int | None = None,
        non_negative: bool | None = None,
    ) -> None:
        self.size = size
        self.radius = radius
        self.n_dims = n_dims
        self.non_negative = non_negative

    def complete(self, X: Any) -> Self:
        _span(self.size, "size", minimum=1)
        radius, n_dims, non_negative = self.radius, self.n_dims, self.non_negative
        if self._estimates(X, "radius", "n_dims", "non_negative"):
            blocks = each_block(X if isinstance(X, Distributed) else as_sets(X), BLOCK, _statistics)
            shapes, norms, lowest = zip(*blocks, strict=True)
            n = sum(shape[0] for shape in shapes)
            unknown = [name for name in ("radius", "non_negative") if getattr(self, name) is None]
            if n == 0 and unknown:
                raise ValueError(
                    f"all training sets are empty: found no point to take {' and '.join(unknown)} from; write "
                    f"{', '.join(f'{name}=...' for name in unknown)}"
                )
            radius = sum(norms) / n if radius is None else radius
            n_dims = shapes[0][1] if n_dims is None else n_dims
            non_negative = min(lowest) >= 0 if non_negative is None else non_negative
        if isinstance(radius, bool) or not isinstance(radius, Real) or not 0 <= radius < np.inf:
            raise ValueError(f"radius must be a number >= 0, got {radius!r}")
        return type(self)(self.size, float(radius), check_positive_int(n_dims, "n_dims"), bool(non_negative))

    def _draw(self, n: int, rng: np.random.Generator) -> SetBatch:
        sizes = _lengths(self.size, n, rng)
        points = rng.standard_normal((sizes.sum(), check_positive_int(self.n_dims, "n_dims")))
        if self.non_negative:
            np.abs(points, out=points)
        points *= self.radius / np.linalg.norm(points, axis=1, keepdims=True)
        return SetBatch(points, offsets_of(sizes))


class Representatives(RandomObjects):
    """Use training objects, drawn at random, as the random objects of `D2KE`: the representative-set method (RSM).

    The method is in Section 3 of Wu et al., "D2KE: From Distance to Kernel and Embedding". Objects are drawn without
    replacement, so there are at most as many representatives as training objects. They are as long as the training
    objects, so each distance to them costs as much as a distance between two training objects.

    Parameters
    ----------
    hold_out : bool, default=False
        Whether to train the steps after `D2KE` without the representatives, as Wu et al. do. True works in
        `similia.recipes.d2ke` and `similia.learn.D2KESearch`. You can also fit a `D2KE` alone and transform the objects
        that are not in its ``representative_indices_``. In any other pipeline, True raises an error in
        ``D2KE.fit_transform``, because a step of a pipeline cannot drop objects.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.embeddings import Representatives
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
    >>> d2ke = sm.D2KE(unlike, n_components=2, objects=Representatives(), random_state=0)
    >>> d2ke.fit(["a", "b", "ab"]).representative_indices_
    array([0, 1])
    """

    def __init__(self, hold_out: bool = False) -> None:
        self.hold_out = hold_out

    def complete(self, X: Any) -> Self:
        check_flags(self)
        if X is None:
            raise ValueError(
                "Representatives are drawn from training objects, and there are none here (a kernel has none); "
                "give a collection of objects instead"
            )
        return self

    def sample(self, X: Any, n: int, rng: np.random.Generator) -> Any:
        """Always raise an error: only `D2KE` draws representatives; give it ``objects=Representatives()``."""
        self.complete(X)
        raise TypeError("Representatives are drawn by D2KE, all at once; pass them as D2KE(..., objects=...)")


class Mosaics(RandomObjects):
    """Random objects for `D2KE`, assembled from pieces of training objects; any number can be drawn.

    `similia.D2KE` turns each object into a vector by its distances to such random objects.

    Each mosaic joins pieces of `n_pieces` training objects drawn at random: the first part of one object, the next part
    of another, and so on. These objects are cut at the same random fractions of their lengths, so strings and series
    keep the typical letters and values of each position. Labels are not used. If positions matter, D2KE needs fewer
    mosaics to reach the same accuracy than random objects with independent letters or values. Wu et al., the authors of
    D2KE, do not use mosaics: their random objects are independent of the data or are training objects.

    Parameters
    ----------
    n_pieces : int, default=4
        Number of training objects in one mosaic; 1 gives training objects themselves, drawn with replacement.
    length : int or (int, int), optional
        Length of a random window to cut from each mosaic, or the smallest and largest length of a uniform
        distribution. A mosaic shorter than the window stays whole. By default mosaics are as long as the training
        objects, so each distance costs as much as a distance between two training objects.

    Notes
    -----
    The training objects must be strings, series or point sets. The points of a set are taken in the stored order.
    `D2KE.extend` needs the training objects again to draw more mosaics. `similia.kernels.FromDistance` has no training
    objects, so it cannot draw mosaics.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import Mosaics
    >>> words = ["aaaaaa", "bbbbbb", "cccccc"]
    >>> Mosaics(n_pieces=2).sample(words, 4, np.random.default_rng(0)).tolist()
    ['ccccbb', 'bbbbba', 'aaaaaa', 'aaaaaa']
    """

    def __init__(self, n_pieces: int = 4, length: Span | None = None) -> None:
        self.n_pieces = n_pieces
        self.length = length

    def complete(self, X: Any) -> Self:
        check_positive_int(self.n_pieces, "n_pieces")
        if self.length is not None:
            _span(self.length, "length", minimum=1)
        if X is None:
            raise ValueError(
                "Mosaics are made of training objects, and there are none here; pass them, as in "
                "D2KE.extend(n_components, X); to a kernel, pass a collection of objects instead of Mosaics"
            )
        return self

    def sample(self, X: Any, n: int, rng: np.random.Generator) -> Any:
        self.complete(X)
        drawn = rng.integers(n_objects(X), size=(n, self.n_pieces))
        some, members = named(X, drawn.ravel())
        batch, members = _as_batch(some), members.reshape(drawn.shape)
        cuts = np.zeros((n, self.n_pieces + 1))
        cuts[:, 1:-1] = np.sort(rng.random((n, self.n_pieces - 1)), axis=1)
        cuts[:, -1] = 1.0
        lengths = np.diff(batch.offsets)[members]
        starts = (cuts[:, :-1] * lengths).astype(np.int64)
        stops = (cuts[:, 1:] * lengths).astype(np.int64)
        positions, piece_offsets = _ranges(batch.offsets[members].ravel() + starts.ravel(), (stops - starts).ravel())
        offsets = piece_offsets[:: self.n_pieces]
        if self.length is not None:
            sizes = np.diff(offsets)
            kept = np.minimum(_lengths(self.length, n, rng), sizes)
            inside, offsets = _ranges(offsets[:-1] + rng.integers(sizes - kept, endpoint=True), kept)
            positions = positions[inside]
        return replace(batch, values=batch.values[positions], offsets=offsets)


class Mixture(RandomObjects):
    """Random objects for `D2KE` from several samplers, which take turns to draw one object each.

    `similia.D2KE` turns each object into a vector by its distances to random objects; a sampler draws these. Different
    kinds of random objects capture different properties. If cross-validation cannot tell which of two kinds is better,
    a mixture of both is safer than one kind alone.

    Parameters
    ----------
    samplers : list of samplers
        At least one sampler with a method ``sample``. Functions and `Representatives` are not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.embeddings import Mixture, RandomStrings
    >>> kinds = Mixture([RandomStrings(alphabet="a", length=2), RandomStrings(alphabet="b", length=4)])
    >>> kinds.sample(None, 3, np.random.default_rng(0))
    ['aa', 'bbbb', 'aa']
    """

    def __init__(self, samplers: list[Any]) -> None:
        self.samplers = samplers

    def complete(self, X: Any) -> Self:
        if not isinstance(self.samplers, list | tuple) or not self.samplers:
            raise ValueError(f"samplers must be a list of at least one sampler, got {self.samplers!r}")
        for i, sampler in enumerate(self.samplers):
            if not hasattr(sampler, "sample") or isinstance(sampler, type):
                raise ValueError(f"samplers[{i}] has no method sample, got {sampler!r}")
        return type(self)([s.complete(X) if hasattr(s, "complete") else s for s in self.samplers])

    def sample(self, X: Any, n: int, rng: np.random.Generator) -> Any:
        samplers = self.complete(X).samplers
        k = len(samplers)
        parts = [sampler.sample(X, -(-n // k), rng) for sampler in samplers]
        drawn = [parts[j % k][j // k] for j in range(n)]
        return as_series(drawn) if all(isinstance(part, SeriesBatch) for part in parts) else drawn


def _ranges(starts: Index, lengths: Index) -> tuple[Index, Index]:
    """Return the integers of all ranges (start to start + length - 1), concatenated, and the offset of each range."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths), offsets


def _span(span: Any, name: str, minimum: int) -> tuple[int, int]:
    """Return (smallest, largest) of the parameter called `name`, an integer or a range; raise if it is not valid."""
    ends = tuple(span) if isinstance(span, tuple | list) else (span, span)
    whole = all(isinstance(v, Integral) and not isinstance(v, bool) for v in ends)
    if not whole or len(ends) != 2 or not minimum <= ends[0] <= ends[1]:
        raise ValueError(f"{name} must be an integer >= {minimum} or a pair (smallest, largest) of these, got {span!r}")
    return int(ends[0]), int(ends[1])


def _lengths(span: Span, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    low, high = _span(span, "length", minimum=0)
    return rng.integers(low, high, size=n, endpoint=True)


def _letters(X: Any) -> str | bytes:
    """Return the letters of all strings in sorted order, without very rare letters (see `_RARE`)."""
    found = [*X.map(_counts)] if isinstance(X, Distributed) else [_counts(X)]
    letters, counts, are_bytes = zip(*found, strict=True)
    if len(set(are_bytes)) > 1:
        raise BadType(None, "holds str and bytes", "one kind", "use bytes.decode or str.encode")
    values, places = np.unique(np.concatenate(letters), return_inverse=True)
    if len(values) == 0:
        raise ValueError("all training strings are empty: found no letter for random strings; write alphabet=...")
    totals = np.zeros(len(values), np.int64)
    np.add.at(totals, places, np.concatenate(counts))
    values = values[totals >= _RARE * totals.mean()]
    return bytes(values.astype(np.uint8)) if are_bytes[0] else "".join(map(chr, values))


def _counts(X: Any, start: int = 0) -> tuple[npt.NDArray, npt.NDArray[np.int64], bool]:
    """Return the distinct letter codes in `X`, the count of each, and whether the strings are bytes."""
    batch = as_strings(X)
    return *np.unique(batch.values, return_counts=True), batch.is_bytes


def _points(X: Any, start: int) -> npt.NDArray[np.floating]:
    return as_series(X).values


def _statistics(X: Any, start: int) -> tuple[tuple[int, int], float, float]:
    """Return for the points of all sets in `X`: (n_points, n_dims), the sum of norms, the smallest coordinate."""
    values = as_sets(X).values
    norms = float(np.linalg.norm(values.astype(np.float64), axis=1).sum())  # squares may not fit into float32
    return values.shape, norms, float(values.min(initial=np.inf))


def _as_batch(X: Any) -> Any:
    """Return a collection of strings, series or point sets as one batch of contiguous arrays."""
    if isinstance(X, _BATCHES):
        return X
    return as_strings(X) if isinstance(next(iter(X)), str | bytes) else as_series(X)


def _per_channel(value: Any, name: str, n_channels: int) -> npt.NDArray[np.float64]:
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (n_channels,)) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be one finite number, or one for each of {n_channels} channels, got {value!r}")
    return array


_AUTO = {StringBatch: RandomStrings, SeriesBatch: RandomSeries, SetBatch: RandomSets}


@state(
    distance="comparison", distance_="comparison", random_objects_=objects("r"), _n_features_out=count("r"),
    gamma_="positive", seed_=count(), sampler_=optional("sampler"), memory=one_of(None),
    representative_indices_=array("i8", None),
)  # fmt: skip
class D2KE(ComparesObjects, Transformer):
    r"""Embed objects of any kind, with any distance, by their distances to random objects.

    Parameters
    ----------
    distance : callable
        One of `similia.distances`, such as ``FromFunction(f)``, or a function of your own. ``distance(X, Y)`` returns
        a non-negative (n, m) array; it need not be a metric.
    n_components : int, default=1024
        Number R of random objects. Not used if `objects` is a collection. If `Representatives` draws the random objects
        (see `objects`), R is at most the number of training objects.
    objects : "auto", sampler, callable or collection of objects, default="auto"
        The source of the random objects. A sampler is one of `RandomStrings`, `RandomSeries`, `RandomSets`, `Mosaics`,
        `Mixture` and `Representatives`, or an object of your own with a method ``sample(X, n, rng)`` that returns n
        objects. It must not have a method ``__len__``: an object with a length counts as a collection. A function
        ``f(X, n, rng)`` works, too. `fit` calls the sampler or function repeatedly with n = 256, until there are enough
        objects. If a collection is given, all its objects are used. "auto" means `RandomStrings` if the distance works
        on strings, `RandomSeries` if it works on series, `RandomSets` if it works on sets, and `Representatives`
        otherwise.
    gamma : float, "median" or str, default="median"
        Gamma in ``exp(-gamma * d) / sqrt(R)``, the feature of an object at distance d from a random object. "median"
        means 1 / m, and ``"4*median"`` means 4 / m, where m is the median distance between at most 64 random objects
        and at most 256 training objects. If m is 0, 1 is used instead.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the random objects.
    memory : str, path, joblib.Memory or None, default=None
        Where to cache distance matrices, so that a later fit with another gamma computes no distances. This needs an
        integer `random_state`, so that the same random objects are drawn again. Distances are computed anew if your own
        distance function, or anything that its code uses, has changed.

    Attributes
    ----------
    distance_ : callable
        Copy of `distance` made by `fit`.
    random_objects_ : collection of objects, length R
        The random objects, converted for the distance, for example to a `similia.objects.StringBatch`.
    gamma_ : float
        Gamma as a number.
    seed_ : int
        Seed of the random objects: `random_state` itself if that is an integer.
    sampler_ : sampler or None
        The source of the random objects, with the parameters that `fit` learned, such as an alphabet. None if `objects`
        is a collection.
    representative_indices_ : ndarray of int64, shape (R,)
        Positions of the random objects among the training objects; empty unless `sampler_` is `Representatives`.

    Notes
    -----
    Random object j is the same for every `n_components`: it depends only on j, `seed_` and `sampler_`, and also on the
    training objects if the sampler uses them, as `Representatives` does. So a larger `n_components` only adds random
    objects, and does not change `gamma_`. The features of an object do not depend on the other objects that are
    transformed. The features are float32 if the distances are float32, otherwise float64.

    Standardise the columns before a linear model, as `similia.recipes.d2ke` does. If gamma is far below 1 / m (see
    `gamma`), exp(-gamma d) is approximately linear in d, so the standardised features hardly depend on gamma. If gamma
    is far above 1 / m, only the random objects nearest to an object matter.

    References
    ----------
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Algorithm 1.

    Examples
    --------
    >>> import similia as sm
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
    >>> d2ke = sm.D2KE(unlike, n_components=64, objects=sm.embeddings.RandomStrings(length=3), random_state=0)
    >>> d2ke.fit_transform(["tree", "trees", "bush", "bushes"]).shape
    (4, 64)
    >>> d2ke.random_objects_[:3]
    ['bru', 'uur', 'btu']
    """

    _by = "distance"

    def __init__(
        self,
        distance: Any,
        n_components: int = 1024,
        objects: Any = "auto",
        gamma: float | str = "median",
        random_state: RandomState = None,
        *,
        memory: Any = None,
    ) -> None:
        self.distance = distance
        self.n_components = n_components
        self.objects = objects
        self.gamma = gamma
        self.random_state = random_state
        self.memory = memory

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the random objects, and compute gamma if it is "median" or a multiple, such as "4*median".

        The feature of an object at distance d from a random object is proportional to ``exp(-gamma d)``. Of `y`, only
        the length is checked.

        If `X` is a Dask collection and `objects` is a sampler of your own, the sampler receives an object that supports
        ``len(X)`` and ``X.take(indices)``.
        """
        check_distance(self.distance)
        factor, unit = gamma_spec(self.gamma)
        R = check_positive_int(self.n_components, "n_components")
        self.distance_ = detached(self.distance)
        cached = self._cached_distances()
        X = read_objects(self, self.distance_, X, reset=True)
        n = at_least_one(X)
        if y is not None and n_objects(y) != n:
            raise ValueError(f"y has {n_objects(y)} labels for {n} objects; give one label per object")
        self.seed_ = _seed(self.random_state)
        self.sampler_ = self._sampler(X)
        self.representative_indices_ = np.zeros(0, dtype=np.int64)
        first = self._draw(X, max(R, GAMMA_COLUMNS) if unit == "median" else R)
        self._keep(first, R, n)
        self.gamma_ = factor
        if unit == "median":
            rows = np.sort(random_stream(self.seed_, 1).permutation(n)[:GAMMA_ROWS])
            some = take(first, np.arange(min(GAMMA_COLUMNS, n_objects(first))))
            with pairs_named(rows, range(n_objects(some)), "X[{}] and random object {}"):
                median = float(np.median(cached(self.distance_, take(X, rows), some)))
            self.gamma_ = factor / median if median > 0 else factor
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of n objects, with one column for each random object.

        The vectors are float32 if the distances are float32, otherwise float64.
        """
        check_fitted(self)
        D = self.distances(X)
        return exp_features(D if self.memory is None else np.array(D), self.gamma_)  # a cache may map its files

    @all_at_once
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.floating]:
        """Draw the random objects and return the vectors of the objects `X`, as `fit` and then `transform` do."""
        if isinstance(self.objects, Representatives) and self.objects.hold_out:
            raise ValueError(
                "Representatives(hold_out=True) takes objects out of training, which a step of a pipeline cannot do; "
                "use similia.recipes.d2ke, or fit, then transform the objects not in representative_indices_"
            )
        return self.fit(X, y).transform(X)

    @lazily
    def distances(self, X: Any, start: int = 0) -> npt.NDArray[np.floating]:
        """Return the distances from n objects to ``random_objects_[start:]``, one column for each random object.

        After `extend`, set `start` to the former number of random objects to get only the distances to the new random
        objects.
        """
        check_fitted(self)
        X = read_objects(self, self.distance_, X, reset=False)
        objects, R = self.random_objects_, self._n_features_out
        if check_positive_int(start, "start", minimum=0) > R:
            raise BadParameter("start", f"at most the number of random objects, {R}", str(start))
        if start:
            objects = take(objects, np.arange(min(start, R - 1), R))  # the last one, for the dtype, if start is R
        return self._cached_distances()(self.distance_, X, objects)[:, : R - start]

    def features(self, D: npt.ArrayLike) -> npt.NDArray[np.floating]:
        """Return ``exp(-gamma_ * D) / sqrt(R)``: the features of n objects, given their distances to R random objects.

        `D` holds distances to all random objects, shape (n, R), as the method `distances` returns them. `transform`
        computes the same features from the objects themselves.
        """
        check_fitted(self)
        return exp_features(np.array(check_vectors(D, "D", self._n_features_out)), self.gamma_)

    @all_at_once
    def extend(self, n_components: int, X: Any = None) -> Self:
        """Draw more random objects; keep gamma and the random objects drawn before.

        The result is the same as after `fit` with the larger `n_components`.

        Parameters
        ----------
        n_components : int
            New total number of random objects; a number below the current one raises ValueError.
        X : collection of objects, optional
            The training objects. They are needed only if random objects are drawn from them (`Representatives`) or
            assembled from pieces of them (`Mosaics`), or if a sampler of your own uses them.
        """
        check_fitted(self)
        had = self._n_features_out
        if check_positive_int(n_components, "n_components") < had:
            raise ValueError(
                f"n_components={n_components} is below the {had} random objects drawn before, expected the new total"
            )
        if self.sampler_ is None:
            raise ValueError(f"the {had} random objects were given as a collection; there are no more to draw")
        if X is not None:
            X = as_objects(self.distance_, as_parts(X))
        if isinstance(self.sampler_, Representatives):
            if X is None:
                raise ValueError("Representatives are drawn from the training objects; write extend(n_components, X)")
            self._keep(self._draw(X, n_components), n_components, n_objects(X))
        elif n_components > had:
            old = self.random_objects_
            new = draw(self.sampler_, X, had, n_components, self.seed_)
            self._keep(joined([old, *new], self.distance_, old), n_components)
        self.n_components = n_components
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested ones such as ``objects__length``, as in scikit-learn."""
        nested = [key for key in params if key.startswith("objects__")]
        if nested and isinstance(params.get("objects", self.objects), str):
            raise ValueError(
                f'{nested[0]} is a parameter of a sampler, and objects="auto" becomes one only in fit; '
                "give the sampler, such as objects=RandomStrings()"
            )
        super().set_params(**params)
        return self

    def _example(self) -> Any:
        return take(self.random_objects_, [0])

    def _cached_distances(self) -> Any:
        """Return the function `distance_matrix`, or a version cached in `memory` if that is not None."""
        if self.memory is None:
            return distance_matrix
        memory = os.fspath(self.memory) if isinstance(self.memory, os.PathLike) else self.memory
        key = fingerprint(self.distance_, "memory cannot keep these distances: the distance")
        return partial(check_memory(memory).cache(_remembered, ignore=["distance"]), key)

    def _sampler(self, X: Any) -> Any:
        """Return the sampler with parameters learned from `X`, or None if `objects` is a collection."""
        objects = self.objects
        if isinstance(objects, str):
            if objects != "auto":
                raise ValueError(f'objects must be "auto", a sampler or a collection of objects, got {objects!r}')
            objects = _AUTO.get(type(example_of(X)), Representatives)()
        if not is_sampler(objects):
            return None
        return detached(objects.complete(X) if hasattr(objects, "complete") else objects)

    def _draw(self, X: Any, R: int) -> Any:
        """Return R random objects; `Representatives` are at most len(X), and a given collection is returned whole."""
        if self.sampler_ is None:
            return as_second(partial(as_objects, self.distance_), self.objects, "objects")
        if isinstance(self.sampler_, Representatives):
            return take(X, self._order(n_objects(X))[:R])
        return joined([*draw(self.sampler_, X, 0, R, self.seed_)], self.distance_, example_of(X))

    def _order(self, n: int) -> npt.NDArray[np.int64]:
        """Return a random permutation of n training objects: the order in which they become representatives."""
        return random_stream(self.seed_, 0).permutation(n)

    def _keep(self, objects: Any, R: int, n: int = 0) -> None:
        """Store the first R of `objects`, or all if the user gave them; `n` is the number of training objects."""
        R = at_least_one(objects, "objects") if self.sampler_ is None else min(R, n_objects(objects))
        if isinstance(self.sampler_, Representatives):
            if self.sampler_.hold_out and n == R:
                raise ValueError(
                    f"n_components={R} representatives held out of {n} training objects leave none to train on; "
                    "lower n_components"
                )
            self.representative_indices_ = self._order(n)[:R]
        self.random_objects_ = objects if n_objects(objects) == R else take(objects, np.arange(R))
        self._n_features_out = R


def _remembered(key: str, distance: Any, X: Any, objects: Any) -> npt.NDArray[np.floating]:
    """Return the distance matrix; the cache ignores `distance` and uses `key`, its fingerprint, instead."""
    return distance_matrix(distance, X, objects)


def gamma_spec(gamma: Any) -> tuple[float, str | None]:
    """Return (gamma, None) for a number and (factor, "median") for "median" or "factor*median"; otherwise raise."""
    if not isinstance(gamma, str):
        return check_positive(gamma, "gamma"), None
    found = re.fullmatch(r"\s*(?:([\d.eE+-]+)\s*\*\s*)?median\s*", gamma)
    try:
        return check_positive(float(found[1] or 1), "gamma"), "median"  # type: ignore[index]
    except (TypeError, ValueError):
        expected = 'a positive number, "median" or a multiple such as "4*median"'
        raise ValueError(f"gamma must be {expected}, got {gamma!r}") from None


def _seed(random_state: RandomState) -> int:
    """Return `random_state` if it is an integer >= 0; otherwise draw a seed from the generator it stands for."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(generator(random_state).integers(2**63))
