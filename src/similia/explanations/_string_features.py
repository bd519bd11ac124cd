"""k-mers by name: the features of the kernels on strings, with the letters each occurrence covers.

Names: ``GAT`` is a k-mer; ``GA.?TT`` has at most one letter between its halves (a regular expression, as is
``GA.{0,3}TT``); ``GATT within 5`` is a subsequence of a window of five letters; ``GATT ±1`` is a k-mer with at most one
letter changed; ``GAT at 12`` has a position, counted from 0; ``ATC/GAT`` is a k-mer or its reverse complement.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from similia.core.config import settings
from similia.explanations._found import Found, listed
from similia.explanations._occurrences import Occurrences
from similia.kernels.dna import complements_of, letters_read
from similia.kernels.strings import (
    GappyKmers,
    Mismatch,
    Spectrum,
    StringKernel,
    WeightedDegree,
    _arrays,
    _ids_at,
    _substitutions,
)
from similia.objects import StringBatch

Letters = npt.NDArray[np.uint32]
Table = npt.NDArray[np.int64]


def occurrences(kernel: StringKernel, batch: StringBatch) -> Occurrences | None:
    """Return the features of one string, or None for a kernel that is not known here."""
    needed = 8 * kernel._ids_per_letter() * len(batch.values) * (getattr(kernel, "k", 1) + 4)
    if needed > settings().max_memory:
        raise ValueError(
            f"the features of a string of {len(batch.values)} letters under {kernel!r} take {needed / 2**20:.0f} MiB, "
            f"and max_memory is {settings().max_memory / 2**20:.0f} MiB; allow more with "
            "similia.config(max_memory=...), or explain pieces of the string"
        )
    values, offsets = _arrays(batch, slice(0, 1))
    if isinstance(kernel, Mismatch):
        return _mismatches(kernel, values, offsets)
    if isinstance(kernel, WeightedDegree):
        return _positioned(kernel, values, offsets)
    if isinstance(kernel, GappyKmers):
        return _windows(kernel, values, offsets) if kernel.kind == "window" else _pairs(kernel, values, offsets)
    if isinstance(kernel, Spectrum):
        read = letters_read(values, kernel.reverse_complement, kernel.ignore_case)
        strands = _both_strands if kernel.reverse_complement else text_of
        return _at_starts(kernel, read, offsets, np.arange(kernel.k)[None], lambda word, gap: strands(word))
    return None


def _both_strands(word: npt.NDArray) -> str:
    """Return a word of DNA and its reverse complement as text, in alphabetical order; one that is both, once."""
    return "/".join(sorted({text_of(word), text_of(complements_of(word)[::-1])}))


def text_of(letters: npt.NDArray) -> str:
    """Return letters as text."""
    return "".join(map(chr, letters.tolist()))


def _at_starts(
    kernel: StringKernel, values: Letters, offsets: Table, positions: Table, name: Callable[[Letters, int], str]
) -> Occurrences:
    """Return k-mers whose letters lie at ``positions[gap]`` from their start, gap after gap as `_ids_at` has them."""
    ids, _ = kernel._ids(values, offsets)
    n = len(values)
    starts = [np.arange(max(0, n - int(last))) for last in positions[:, -1]]
    gaps = np.repeat(np.arange(len(positions)), [len(s) for s in starts])
    places = np.concatenate(starts)[:, None] + positions[gaps]
    return Occurrences.of_width(ids, places, lambda o: name(values[places[o]], int(gaps[o])), n)


def _pairs(kernel: GappyKmers, values: Letters, offsets: Table) -> Occurrences:
    half = kernel.k // 2
    letters = np.arange(kernel.k)
    positions = letters + np.arange(kernel.gaps + 1)[:, None] * (letters >= half)
    between = {0: "", 1: ".?"}.get(kernel.gaps, f".{{0,{kernel.gaps}}}")

    def name(letters: Letters, gap: int) -> str:
        word = text_of(letters)
        return word[:half] + (between if kernel.merge else "." * gap) + word[half:]

    return _at_starts(kernel, values, offsets, positions, name)


def _windows(kernel: GappyKmers, values: Letters, offsets: Table) -> Occurrences:
    """Return the distinct subsequences of each window, each at the first of its choices of letters."""
    window = kernel.k + kernel.gaps
    subsets = np.array(list(itertools.combinations(range(window), kernel.k)), dtype=np.int64)
    n_windows = max(0, len(values) - window + 1)
    ids = np.empty((n_windows, len(subsets)), dtype=np.uint64)
    for s, subset in enumerate(subsets):
        ids[:, s] = _ids_at(values, offsets, subset[None], distinct_gaps=False)[0][:n_windows]
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    new = np.ones(ids.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts, columns = np.nonzero(new)
    places = starts[:, None] + subsets[order[starts, columns]]
    suffix = f" within {window}" if kernel.gaps else ""
    return Occurrences.of_width(ordered[new], places, lambda o: text_of(values[places[o]]) + suffix, len(values))


def _mismatches(kernel: Mismatch, values: Letters, offsets: Table) -> Occurrences:
    k, letters = kernel.k, kernel._letters()
    values = letters_read(values, kernel.reverse_complement, kernel.ignore_case)
    strands = _both_strands if kernel.reverse_complement else text_of
    known = np.isin(values, letters)
    runs = np.concatenate(([0], np.cumsum(known)))
    n = max(0, len(values) - k + 1)
    starts = np.flatnonzero(runs[k : k + n] - runs[:n] == k) if n else np.empty(0, dtype=np.int64)
    positions, shifts = _substitutions(k, kernel.mismatches, len(letters))
    ids, _ = kernel._ids(values, offsets)
    places = np.repeat(starts, len(positions))[:, None] + np.arange(k)

    def name(o: int) -> str:
        word = np.searchsorted(letters, values[places[o]])
        way = o % len(positions)
        for place, shift in zip(positions[way], shifts[way], strict=True):
            word[place] = (word[place] + shift) % len(letters)
        return strands(letters[word]) + (f" ±{kernel.mismatches}" if kernel.mismatches else "")

    return Occurrences.of_width(ids, places, name, len(values))


def _positioned(kernel: WeightedDegree, values: Letters, offsets: Table) -> Occurrences:
    ids, _ = kernel._ids(values, offsets)
    n = len(values)
    per_start = np.minimum(kernel.degree, n - np.arange(n))
    starts = np.repeat(np.arange(n), per_start)
    ends = np.concatenate(([0], np.cumsum(per_start)))
    lengths = np.arange(len(starts)) - ends[starts] + 1
    place_offsets = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(place_offsets[-1]) - np.repeat(place_offsets[:-1] - starts, lengths)

    def name(o: int) -> str:
        return f"{text_of(values[starts[o] : starts[o] + lengths[o]])} at {starts[o]}"

    return Occurrences(ids, np.ones(len(ids)), place_offsets, places, name, n)


def shared_runs(kernel: WeightedDegree, x: StringBatch, y: StringBatch) -> Found:
    """Return the parts of a weighted degree kernel, all k-mers of a run of equal letters as one part."""
    a, b = (_arrays(batch, slice(0, 1))[0] for batch in (x, y))
    n = min(len(a), len(b))
    equal = np.concatenate(([False], a[:n] == b[:n], [False]))
    bounds = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2)
    d = np.arange(1, kernel.degree + 1)
    parts = []
    for start, stop in bounds.tolist():
        value = float(((kernel.degree + 1 - d) * np.maximum(stop - start - d + 1, 0)).sum())
        where = range(start, stop)
        parts.append((f"{text_of(a[start:stop])} at {start}", value, where, where))
    return listed(parts, len(a), len(b))
