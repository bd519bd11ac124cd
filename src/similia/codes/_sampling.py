"""Uniform samples of rows and features: of a known number, and of streams of unknown length (a reservoir)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadParameter
from similia.core.estimators import twin_of
from similia.sources.matrices import Indices

Part = tuple[npt.NDArray, npt.NDArray[np.float64], Indices]  # rows, their priorities, their positions in the source


class Reservoir:
    """Draw a uniform sample without replacement from a stream of unknown length.

    Each row gets a random number in [0, 1), its priority. The rows with the smallest priorities form the sample. Its
    size is `share`, a fraction (float) or a number (int) of rows, but at least `least`. A row is kept while its
    priority is below a bound that falls as rows arrive. The bound lies eight standard deviations above the expected
    largest priority of the sample, so a row of the sample is lost with probability below 1e-10. A row whose priority
    lies eight standard deviations below that expectation counts as certain to be in the sample.
    """

    def __init__(self, random: np.random.Generator, share: float | int, least: int) -> None:
        self.n_chunks, self.n_rows, self.n_taken, self.nbytes = 0, 0, 0, 0
        self.dtype: np.dtype | None = None  # dtype of the first chunk
        self._random, self._share, self._least = random, share, least
        self._parts: list[Part] = []
        self._pruned_at = 1

    def copy(self) -> Reservoir:
        """Return a reservoir that can change independently of this one; arrays of rows kept so far are not copied."""
        other = twin_of(self)
        other._random, other._parts = deepcopy(self._random), [*self._parts]
        return other

    def add(self, chunk: npt.NDArray) -> None:
        """Draw a priority for each row of a chunk, and keep copies of the rows that may still be in the sample."""
        priorities = self._random.random(len(chunk))
        self.dtype, self.n_chunks = chunk.dtype, self.n_chunks + 1
        first, self.n_rows = self.n_rows, self.n_rows + len(chunk)
        near = np.flatnonzero(priorities <= self._bound())
        self._parts.append((chunk[near], priorities[near], near + first))
        self.nbytes += self._parts[-1][0].nbytes
        if self.n_rows > 1.25 * self._pruned_at:
            self._pruned_at = self.n_rows
            self._parts = [_where(part, part[1] <= self._bound()) for part in self._parts]
            self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def take_sure(self) -> Iterator[Part]:
        """Yield the rows that are certain to be in the sample, and stop keeping them; `share` must be a float."""
        f, n = float(self._share), self.n_rows
        below = f - 8 * (f / n) ** 0.5 - 64 / n
        parts, self._parts = self._parts, []
        while parts:  # free each part before copying the next
            part = parts.pop(0)
            sure, left = _where(part, part[1] < below), _where(part, part[1] >= below)
            del part
            self.n_taken += len(sure[1])
            self._parts += [left] if len(left[1]) else []
            yield sure
        self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def rest(self) -> Iterator[Part]:
        """Yield the rows of the sample that `take_sure` has not yielded, in the order of the source."""
        chosen, start = self._chosen(), 0
        for part in self._parts:
            low, high = np.searchsorted(chosen, [start, start + len(part[1])])
            yield _where(part, chosen[low:high] - start)
            start += len(part[1])

    def sample(self) -> tuple[npt.NDArray, Indices]:
        """Return one array of the rows that `rest` yields, and an array of their positions in the source."""
        rows = np.empty((len(self._chosen()), self._parts[0][0].shape[1]), self._parts[0][0].dtype)
        indices, start = np.empty(len(rows), np.int64), 0
        for part, _, where in self.rest():
            rows[start : start + len(part)], indices[start : start + len(part)] = part, where
            start += len(part)
        return rows, indices

    def _chosen(self) -> Indices:
        priorities = np.concatenate([priorities for _, priorities, _ in self._parts])
        return smallest(priorities, self._needed() - self.n_taken)

    def _needed(self) -> int:
        whole = isinstance(self._share, Integral)
        return min(self.n_rows, max(int(self._share) if whole else ceil_share(self._share, self.n_rows), self._least))

    def _bound(self) -> float:
        needed = self._needed()
        return (needed + 8 * needed**0.5 + 64) / max(1, self.n_rows)


def smallest(priorities: npt.NDArray[np.float64], count: int) -> Indices:
    """Return the sorted positions of the `count` smallest `priorities`: a uniform sample if priorities are random."""
    if count >= len(priorities):
        return np.arange(len(priorities))
    return np.sort(np.argpartition(priorities, count - 1)[:count]).astype(np.int64)


def sample_size(share: float | int, n: int, least: int, name: str, what: str) -> int:
    """Return how many of n rows or features to sample, at least `least`; raise if n is below `least` or an int `share`.

    `share` is a fraction (float) or a count (int). The error names the parameter `name` and the items `what` ("rows").
    """
    if n < least:
        found = f"{least} needs at least {least} {what}, found {n}"
        raise BadParameter("n_components", "", found, f"use n_components={n}")
    if isinstance(share, Integral):
        if share > n:
            raise ValueError(f"{name}={share} {what} are more than the {n} there are; use at most {n}, or 1.0 for all")
        return max(int(share), least)
    return min(n, max(ceil_share(share, n), least))


def check_share(value: Any, name: str) -> None:
    """Raise if `value`, of parameter `name`, is neither a float in (0, 1] (a fraction) nor an int >= 1 (a count)."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (int(value) >= 1 if isinstance(value, Integral) else 0 < float(value) <= 1):
        raise ValueError(f"{name} must be a float in (0, 1] or an integer >= 1, got {value!r}")


def ceil_share(share: float, n: int) -> int:
    return int(np.ceil(round(float(share) * n, 6)))  # 0.07 * 100 is slightly above 7 in floats


def _where(part: Part, rows: npt.NDArray) -> Part:
    return part[0][rows], part[1][rows], part[2][rows]
