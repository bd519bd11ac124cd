r"""Distributions of random objects for D2KE: strings, series, point sets, and training objects, whole or in pieces.

D2KE compares each object with R objects omega drawn from a distribution p(omega). Random strings, series and sets are
short, however long the training objects are. So a distance takes time linear in the length of an object, not quadratic.
Drawing costs time linear in the total length of the objects drawn.

A distribution (sampler) is any object with a method ``sample(X, n, rng)`` and without a length, or any function
``f(X, n, rng)``, that returns a collection of n objects. X holds the training objects; the kernel
`similia.kernels.FromDistance` passes None.

Paper: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Section 3 ("Effect of
p(omega)") and Appendix C.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from similia.core.errors import BadType
from similia.core.state import state
from similia.core.validation import check_positive_int
from similia.embeddings.vectors import BLOCK, moments
from similia.objects import SeriesBatch, SetBatch, StringBatch, as_series, as_sets, as_strings, n_objects
from similia.objects.sequences import named, offsets_of
from similia.sources.dask import Distributed, each_block

Span = int | tuple[int, int]
Index = npt.NDArray[np.int64]
_BATCHES = (StringBatch, SeriesBatch, SetBatch)

_RARE = 0.01  # letters that occur less often than this fraction of the mean count per letter are not drawn


@state()
class RandomObjects(BaseEstimator):
    """Base class of distributions of random objects; parameters that are None are estimated from training objects."""

    def complete(self, X: Any) -> Self:
        """Return a copy in which parameters that are None are replaced by estimates from the objects `X`.

        Raises ValueError if a parameter and `X` are both None (a kernel has no training objects to pass).
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
        Letters to draw from, with equal probability. By default the letters of the training strings, except those that
        occur less than a hundredth as often as the average letter: they would only add noise.

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
            raise ValueError(f"alphabet must be a str (or bytes) of at least one letter, got {self.alphabet!r}")
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

    Parameters
    ----------
    length : int or (int, int), default=(2, 25)
        Number of time points, or the smallest and largest number of a uniform distribution.
    scale : float or array-like of shape (n_channels,), optional
        Standard deviation of the values, one for all channels or one for each. By default the standard deviation of the
        training values in each channel. `scale` is the bandwidth sigma of the D2KE paper (Wu et al., 2018): standard
        normal values are multiplied by sigma, here and in the paper. The program of its authors divides by sigma.
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

    Each mosaic joins pieces of `n_pieces` training objects drawn at random: the first part of one object, the next part
    of another, and so on. These objects are cut at the same random fractions of their lengths, so strings and series
    keep the typical letters and values of each position. Labels are not used. Where positions matter, D2KE needs
    fewer mosaics for the same accuracy than random objects with independent letters or values. Wu et al., the
    authors of D2KE, do not use mosaics: their random objects are independent of the data or are training objects.

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
    """Random objects for `D2KE` from several samplers in turn: the first of each, then the second of each, and so on.

    Different kinds of random objects capture different properties. If cross-validation cannot tell which of two kinds
    is better, a mixture of both is safer than one kind alone.

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
