"""A collection whose objects are elsewhere: what the rooms need of one, without knowing the engine that holds it."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

_MOST_TASKS = 1000  # that blocks of objects elsewhere are made into


class Distributed(ABC):
    """A sequence of objects in parts, none of which is here; `similia.scale` makes one of a Dask collection.

    It has a shape, so that objects are counted and drawn by their global numbers; `take` brings a few of them here;
    `map` sends work to all. Where sums of floats must not depend on how the objects are parted, work goes to
    ``blocks(size)`` and results are combined in their order.
    """

    @property
    @abstractmethod
    def lengths(self) -> list[int]:
        """Objects of each part."""

    @abstractmethod
    def example(self) -> Any:
        """Return a collection of one object: of vectors a row of ones, without computing any; else a first one."""

    @abstractmethod
    def take(self, indices: npt.ArrayLike) -> Any:
        """Bring objects here, in the order of their global numbers `indices`."""

    @abstractmethod
    def map(
        self, function: Callable[..., Any], *args: Any, along: Sequence[npt.NDArray] = (), few: bool = False
    ) -> Iterator[Any]:
        """Yield ``function(part, start, *slices, *args)`` of each part with objects, in order.

        `start` is the number of the part's first object, and slices are the part's rows of the arrays in `along`, one
        row an object. The function and its arguments travel to where the objects are; a number X[i] in what it raises
        is made the object's global one. Results that fill memory when they are all here at once are asked for with
        `few`: then only some are.
        """

    @abstractmethod
    def converted(self, convert: Callable[[Any], Any]) -> Self:
        """Return the collection whose parts are ``convert(part)``, which happens where they are used."""

    @abstractmethod
    def blocks(self, size: int) -> Self:
        """Return the same objects in parts of `size` (the last may be shorter), whatever the parts were."""

    @abstractmethod
    def kept(self) -> Self:
        """Return the same objects, held where they are, so that passes over them do not compute them anew."""

    @contextmanager
    def spooled(self) -> Iterator[npt.NDArray]:
        """Yield all rows as one array in a temporary file mapped to memory, for work that visits them in any order."""
        parts = self.map(_rows_of, few=True)
        first = next(parts)
        with tempfile.TemporaryFile() as file:
            for part in chain([first], parts):
                file.write(np.ascontiguousarray(part, first.dtype).data)
            file.flush()
            shape = (len(self), *first.shape[1:])
            yield np.memmap(file, first.dtype, "r+", shape=shape).view(np.ndarray)

    def __len__(self) -> int:
        return sum(self.lengths)

    @property
    def shape(self) -> tuple[int]:
        """``(n,)``: a collection has one axis, its objects."""
        return (len(self),)


def each_block(X: Any, size: int, function: Callable[..., Any], *args: Any) -> Iterator[Any]:
    """Yield ``function(block, start, *args)`` of blocks of `size` objects, in order, wherever the objects are.

    Blocks are cut by the numbers of objects alone, so that sums of what is found of them, taken in their order, have
    the same bits for a collection that is here and for any parts of one that is not.
    """
    if isinstance(X, Distributed):
        together = size * -(-len(X) // (size * _MOST_TASKS))
        return chain.from_iterable(X.blocks(max(size, together)).map(_of_blocks, size, function, args))
    return iter(_of_blocks(X, 0, size, function, args))


def _of_blocks(X: Any, start: int, size: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    from similia.objects.sequences import n_objects, take

    n = n_objects(X)
    return [function(take(X, np.arange(i, min(n, i + size))), i, *args) for i in range(0, n, size)]


def _rows_of(part: Any, start: int) -> npt.NDArray:
    return np.asarray(part)
