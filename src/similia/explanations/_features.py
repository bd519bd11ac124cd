r"""Features of one object with their names and places, and sums over these features.

A counting kernel is k(x, y) = sum_f w_f c_f(x) c_f(y), where c_f(x) is the count of feature f in x and w_f a weight. A
linear model on its features is sum_f c_f(x) g_f. Both are sums over the features of x of c_f(x) times a coefficient,
so the part of each feature is exact. Features have the same ids as in the kernel (`similia.kernels.counts`).

Features of graph kernels are named substructures, with the nodes that each occurrence covers. Names, with labels 6 and
7 (or what the user calls them):

====================  =========================================================================================
label                 ``6``; ``degree 3`` for graphs without labels
edge                  ``6-7``, with an edge label ``6-[1]-7``, in molecules ``C=O``
Weisfeiler-Lehman     a rooted tree of labels: ``7(6, 8×2)`` is a node 7 among one node 6 and two nodes 8; the trees of
                      more rounds are nested, ``6([1]7(6, 8×2))`` with an edge label, in molecules ``C(=O, -O)``;
                      long names are cut; ``[C;H3;X4]`` is an atom with its details, see `atom_text`
shortest path         ``6..7, 3 apart``; ``6->7, 3 apart`` in directed graphs
graphlet              ``triangle``, ``star of 4``, or nodes, edges and degrees
propagation           ``step 2, bin 3dc8 (6/7)``: nodes 6 or 7 whose surroundings of two steps fall into one bin
Morgan                a SMILES with all hydrogens, from the centre: ``[CH3][C]`` is a methyl beside another carbon
====================  =========================================================================================
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, combinations, pairwise
from math import comb, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import check_memory
from similia.core.hashing import combine
from similia.explanations._explanation import NOWHERE, Described, Floats, Found, Places, listed
from similia.explanations._views import node_names
from similia.kernels import (
    EdgeHistogram,
    GappedKmers,
    GappyKmers,
    Graphlet,
    Mismatch,
    Morgan,
    Normalized,
    Propagation,
    ShortestPath,
    Spectrum,
    Sum,
    VertexHistogram,
    WeightedDegree,
    WeisfeilerLehman,
    Words,
)
from similia.kernels.counts import Counts, FeatureKernel
from similia.kernels.gapped import masks
from similia.kernels.graphs import (
    GraphKernel,
    arcs_of,
    detailed_ids,
    edge_ids,
    edge_labels_of,
    node_labels_of,
    refined_ids,
    vertex_ids,
)
from similia.kernels.minmax import Intersection, ids_of_part
from similia.kernels.strings import (
    DEGREE_SHIFT,
    StringKernel,
    arrays_of,
    complements_of,
    ids_at,
    letters_read,
    substitutions,
    words_padded,
)
from similia.objects import GraphBatch, StringBatch
from similia.objects.graph_batch import BONDS, atom_text
from similia.objects.graphlets import canonical_forms
from similia.objects.molecules import SmilesBatch, parse_smiles
from similia.objects.sequences import offsets_of
from similia.similarity import as_objects, diagonal, name_of

Ids = npt.NDArray[np.uint64]
Letters = npt.NDArray[np.uint32]
Table = npt.NDArray[np.int64]
Columns = Callable[[int], tuple[int, int]]  # number of hashed features -> (first, number of) columns of a kernel
_LONGEST_NAME = 72
_MOST_PLACED = 200_000  # maximum number of subsets, or pairs of nodes, whose places are computed
_MOST_COVERED = 5_000_000  # maximum total of nodes that trees cover; beyond it, trees are placed at their roots
_KNOWN = {
    (2, (0, 0)): "no edge", (2, (1, 1)): "edge", (3, (0, 0, 0)): "3 nodes, no edge", (3, (0, 1, 1)): "edge and a node",
    (3, (1, 1, 2)): "path of 3", (3, (2, 2, 2)): "triangle", (4, (0, 0, 0, 0)): "4 nodes, no edge",
    (4, (0, 0, 1, 1)): "edge and 2 nodes", (4, (1, 1, 1, 1)): "2 edges apart",
    (4, (0, 1, 1, 2)): "path of 3 and a node", (4, (1, 1, 1, 3)): "star of 4",
    (4, (1, 1, 2, 2)): "path of 4", (4, (0, 2, 2, 2)): "triangle and a node",
    (4, (2, 2, 2, 2)): "cycle of 4", (4, (1, 2, 2, 3)): "triangle with a tail", (4, (2, 2, 3, 3)): "diamond",
    (4, (3, 3, 3, 3)): "complete graph of 4",
}  # fmt: skip
Names = dict[int, str]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """All occurrences of features in one object, with their places (letters of a string, nodes of a graph).

    Occurrence o of the feature ``ids[o]``, called ``name(o)``, is at ``places[offsets[o]:offsets[o + 1]]``. It adds
    ``values[o]`` to the count of the feature: 1, or the whole count if places are unknown.
    """

    ids: Ids
    values: Floats
    offsets: Places
    places: Places
    name: Callable[[int], str]
    n_places: int  # of the object
    groups: Ids | None = None  # parts, if several features, such as a path and its reverse, make one part
    kinds: list[str] | None = None  # such as labels of nodes; the name of a part ends with all kinds in the part

    @classmethod
    def of_width(cls, ids: Ids, places: Places, name: Callable[[int], str], n_places: int) -> Occurrences:
        """Make occurrences that all cover the same number of places; `places` has a row for each occurrence."""
        n, width = places.shape
        offsets = np.arange(n + 1, dtype=np.int64) * width
        return cls(ids, np.ones(n), offsets, places.ravel().astype(np.int64), name, n_places)

    @classmethod
    def without_places(cls, counts: Counts, name: Callable[[int], str], n_places: int) -> Occurrences:
        none = np.zeros(len(counts.ids) + 1, dtype=np.int64)
        return cls(counts.ids, counts.values, none, NOWHERE, name, n_places)

    def at(self, chosen: Places) -> Places:
        """Return the places of the occurrences whose numbers are in `chosen`: each place once, ascending."""
        runs = [self.places[self.offsets[o] : self.offsets[o + 1]] for o in chosen.tolist()]
        return np.unique(np.concatenate(runs)) if runs else NOWHERE

    @property
    def keys(self) -> Ids:
        return self.ids if self.groups is None else self.groups

    def shares(self, amounts: Floats) -> Floats | None:
        """Return the sum at each place if occurrence o divides ``amounts[o]`` equally among its places."""
        if self.n_places == 0 and len(self.ids):
            return None
        lengths = np.diff(self.offsets)
        each = np.repeat(amounts / np.maximum(lengths, 1), lengths)
        return totals(self.places, each, self.n_places)


def totals(rows: npt.NDArray, amounts: Floats, n: int) -> Floats:
    """Return n sums: entry r is the sum of the amounts whose entry in `rows` is r."""
    sums = np.zeros(n)
    np.add.at(sums, rows.ravel(), amounts)
    return sums


def lookup(ids: Ids, known: Ids, values: Floats) -> Floats:
    """Return the value of each id, given the `values` of the distinct ids `known`; 0 for other ids."""
    if len(known) == 0:
        return np.zeros(len(ids))
    order = np.argsort(known)
    found = order[np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)]
    return np.where(known[found] == ids, values[found], 0.0)


def is_among(ids: Ids, known: Ids) -> npt.NDArray[np.bool_]:
    return np.isin(ids, known, kind="sort")  # the table of numpy 2.0 fails for ids of 2**63 and more


def summed(ids: Ids, values: Floats) -> tuple[Ids, Floats]:
    """Return the distinct ids, ascending, and for each of them the sum of its values."""
    distinct, rows = np.unique(ids, return_inverse=True)
    return distinct, totals(rows, values, len(distinct))


def linear_parts(x: Occurrences, coefficients: Floats, y: Occurrences | None = None) -> Found:
    """Return one part for each feature of x: the sum of ``x.values[o] * coefficients[o]`` over its occurrences o.

    If `y` is given, parts also get their places in y; `coefficients` must then be feature counts in y times weights.
    """
    amounts = x.values * coefficients
    kept = np.flatnonzero(amounts)
    keys, first, rows = np.unique(x.keys[kept], return_index=True, return_inverse=True)
    contributions = totals(rows, amounts[kept], len(keys))
    of_key = np.split(kept[np.argsort(rows.ravel(), kind="stable")], np.cumsum(np.bincount(rows.ravel()))[:-1])
    y_keys, met = np.empty(0, dtype=np.uint64), np.empty(0, dtype=bool)
    if y is not None:  # a part may join several features, of which x has only some
        y_keys, met = y.keys, is_among(y.ids, x.ids[kept])
    order = np.argsort(first)  # equal parts are listed as they occur in x

    def describe(number: int) -> Described:
        k = int(order[number])
        there = np.flatnonzero((y_keys == keys[k]) & met)
        name = x.name(int(kept[first[k]]))
        if x.kinds is not None:
            kinds = {x.kinds[o] for o in of_key[k]} | {y.kinds[o] for o in there if y is not None and y.kinds}
            name += f" ({'/'.join(sorted(kinds))})"
        return name, x.at(of_key[k]), NOWHERE if y is None else y.at(there)

    return Found(contributions[order], describe, shares_x=x.shares(amounts), keys=keys[order])


def pair_parts(x: Occurrences, y: Occurrences, weights: Callable[[Ids], Floats]) -> Found:
    """Return a part for each feature: weight times count in x times count in y; `weights` maps ids to weights."""
    found = linear_parts(x, weights(x.ids) * lookup(x.ids, *summed(y.ids, y.values)), y)
    shares_y = y.shares(y.values * weights(y.ids) * lookup(y.ids, *summed(x.ids, x.values)))
    return replace(found, shares_y=shares_y)


def counts_of(kernel: Any, objects: Any) -> tuple[Counts, Floats]:
    counts = kernel._counts(objects)
    return counts, np.ones(len(counts.ids)) if counts.weights is None else counts.weights


def of_strings(kernel: StringKernel, batch: StringBatch) -> Occurrences | None:
    """Return the features of one string, or None for a kernel that this module does not know."""
    width = getattr(kernel, "k", getattr(kernel, "informative", 1))
    width = max(width) if isinstance(width, tuple | list) else width
    n_ids = kernel._ids_per_letter()
    if isinstance(kernel, Spectrum | Words | GappyKmers):  # longer ones, or those with longer gaps, do not fit in
        width, n_ids = min(width, len(batch.values) + 1), min(n_ids, 3 * (len(batch.values) + 1))
    needed = 8 * n_ids * len(batch.values) * (width + 4)
    taking = f"the features of a string of {len(batch.values)} letters under {kernel!r} take"
    check_memory(taking, needed, "explain pieces of the string")
    values, offsets = arrays_of(batch, slice(0, 1))
    if isinstance(kernel, Mismatch):
        return _mismatches(kernel, values, offsets)
    if isinstance(kernel, WeightedDegree):
        return _positioned(kernel, values, offsets)
    if isinstance(kernel, GappyKmers):
        return _pairs(kernel, values, offsets)
    if isinstance(kernel, GappedKmers):
        return (_motifs if kernel.positions == "kept" else _subsequences)(kernel, batch)
    if isinstance(kernel, Words):
        starts, stops, runs = kernel._words(values, offsets)
        return _ngrams(kernel, values, offsets, runs, starts, stops)
    if isinstance(kernel, Spectrum) and not kernel._is_plain():
        places, runs = np.arange(len(values)), offsets
        if kernel.boundaries:
            _, runs, _, places = words_padded(values, offsets)
            places[runs[:-1]], places[runs[1:] - 1] = places[runs[:-1] + 1], places[runs[1:] - 2]
        return _ngrams(kernel, values, offsets, runs, places, places + 1)
    if isinstance(kernel, Spectrum):
        read = letters_read(values, kernel.reverse_complement, kernel.ignore_case)
        letters = np.arange(min(kernel._lengths()[1], len(values) + 1))  # a longer k-mer fits into no string either
        return _at_starts(kernel, read, offsets, letters[None], lambda word, gap: _word(kernel, word))
    return None


def _word(kernel: Spectrum | Mismatch | GappedKmers, letters: npt.NDArray) -> str:
    """Return a k-mer as text, with its reverse complement if the kernel reads both strands; its gaps stay."""
    strands = [letters]
    if kernel.reverse_complement:
        strands.append(np.where(letters == ord("."), letters, complements_of(letters))[::-1])
    return "/".join(sorted({text_of(strand) for strand in strands}))


def text_of(letters: npt.NDArray) -> str:
    return "".join(map(chr, letters.tolist()))


def _at_starts(
    kernel: StringKernel, values: Letters, offsets: Table, positions: Table, name: Callable[[Letters, int], str]
) -> Occurrences:
    """Return the k-mers at letters ``start + positions[gap]`` for each start and each `gap`, a row of `positions`."""
    ids, _ = kernel._ids(values, offsets)
    n = len(values)
    starts = [np.arange(max(0, n - int(last))) for last in positions[:, -1]]
    gaps = np.repeat(np.arange(len(positions)), [len(s) for s in starts])
    places = np.concatenate(starts)[:, None] + positions[gaps]
    return Occurrences.of_width(ids, places, lambda o: name(values[places[o]], int(gaps[o])), n)


def _ngrams(
    kernel: Spectrum | Words, values: Letters, offsets: Table, runs: Table, starts: Table, stops: Table
) -> Occurrences:
    """Return sequences of units (words or letters) of all lengths, in the order of `ngram_ids`.

    Unit u stands at the letters from ``starts[u]`` to ``stops[u]``; a space that the kernel adds to a word stands at
    the letter beside it. No sequence crosses the end of one of the `runs` of units.
    """
    both_strands = isinstance(kernel, Spectrum) and kernel.reverse_complement
    in_words = isinstance(kernel, Spectrum) and kernel.boundaries is not None
    ids, _ = kernel._ids(values, offsets)
    read = letters_read(values, both_strands, kernel.ignore_case)
    padded = words_padded(read, offsets)[0] if in_words else read
    least, most = kernel._lengths()
    found = [
        (first + start, first + start + length)
        for first, size in zip(runs[:-1].tolist(), np.diff(runs).tolist(), strict=True)
        for start in range(size)
        for length in range(min(least, size) if in_words else least, min(most, size - start) + 1)
    ]
    bounds = np.array(found, dtype=np.int64).reshape(-1, 2)
    begin, end = starts[bounds[:, 0]], stops[bounds[:, 1] - 1]
    place_offsets = offsets_of(end - begin)
    places = np.arange(place_offsets[-1]) - np.repeat(place_offsets[:-1] - begin, end - begin)

    def name(o: int) -> str:
        if in_words:
            return text_of(padded[slice(*found[o])]).replace(" ", "_")
        if isinstance(kernel, Spectrum):
            return _word(kernel, read[begin[o] : end[o]])
        return " ".join(text_of(read[starts[u] : stops[u]]) for u in range(*found[o]))

    return Occurrences(ids, np.ones(len(ids)), place_offsets, places, name, len(values))


def _pairs(kernel: GappyKmers, values: Letters, offsets: Table) -> Occurrences:
    """Return k-mers read as two halves, with every allowed gap between the halves, as features."""
    half = kernel.k // 2
    letters = np.arange(min(kernel.k, len(values) + 1))
    gaps = np.arange(min(kernel.gaps, max(0, len(values) - len(letters))) + 1)  # larger ones fit into no string
    positions = letters + gaps[:, None] * (letters >= half)
    between = {0: "", 1: ".?"}.get(kernel.gaps, f".{{0,{kernel.gaps}}}")

    def name(letters: Letters, gap: int) -> str:
        word = text_of(letters)
        return word[:half] + (between if kernel.merge else "." * gap) + word[half:]

    return _at_starts(kernel, values, offsets, positions, name)


def note_of_gaps(*estimators: Any) -> str:
    """Return a note on how to read the names of gappy k-mers if a kernel in `estimators` has any; empty otherwise."""
    inside = [value for one in estimators for value in (one, *one.get_params().values())]
    reads = {
        ". is any letter" if not one.merge else ".? is any letter or none" if one.gaps == 1
        else f".{{0,{one.gaps}}} is up to {one.gaps} letters"
        for one in inside if isinstance(one, GappyKmers) and one.gaps
    }  # fmt: skip
    return f"in the name of a gappy k-mer, {' and '.join(sorted(reads))}" if reads else ""


def _motifs(kernel: GappedKmers, batch: StringBatch) -> Occurrences:
    """Return gapped k-mers; those that differ only in where they stand in the window make one part, such as AC..GT."""
    side = kernel._side(batch, slice(0, 1))
    values = (side[0] - np.uint64(1)).astype(np.uint32)
    ids, _ = kernel._kept_ids(side)
    chosen = masks(kernel.length, kernel.informative)
    n_windows = len(ids) // len(chosen)
    places = (chosen[:, None] + np.arange(n_windows)[:, None]).reshape(-1, kernel.informative)

    def name(o: int) -> str:
        motif = np.full(places[o, -1] - places[o, 0] + 1, ord("."), np.uint32)
        motif[places[o] - places[o, 0]] = values[places[o]]
        return _word(kernel, motif)

    digests = [
        hashlib.blake2b(name(o).encode("utf-8", "surrogatepass"), digest_size=8).digest() for o in range(len(ids))
    ]
    groups = np.frombuffer(b"".join(digests), np.uint64)
    found = Occurrences.of_width(ids, places, name, len(values))
    return replace(found, values=np.tile(side[3][:n_windows], len(chosen)), groups=groups)


def _subsequences(kernel: GappedKmers, batch: StringBatch) -> Occurrences:
    """Return the distinct subsequences of k letters in each window, each placed where it first occurs in the window."""
    values, offsets = arrays_of(batch, slice(0, 1))
    values = letters_read(values, kernel.reverse_complement, kernel.ignore_case)
    complements = {"complements": complements_of(values)} if kernel.reverse_complement else {}
    subsets = masks(kernel.length, kernel.informative)
    n_windows = max(0, len(values) - kernel.length + 1)
    ids = np.empty((n_windows, len(subsets)), dtype=np.uint64)
    for s, subset in enumerate(subsets):
        ids[:, s] = ids_at(values, offsets, subset[None], distinct_gaps=False, **complements)[0][:n_windows]
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    new = np.ones(ids.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts, columns = np.nonzero(new)
    places = starts[:, None] + subsets[order[starts, columns]]
    suffix = f" within {kernel.length}" if kernel.length > kernel.informative else ""
    found = Occurrences.of_width(ordered[new], places, lambda o: _word(kernel, values[places[o]]) + suffix, len(values))
    return replace(found, values=kernel._weights(offsets)[starts])


def _mismatches(kernel: Mismatch, values: Letters, offsets: Table) -> Occurrences:
    """Return, for each k-mer of the string, all k-mers of the alphabet within `kernel.mismatches` substitutions."""
    k, letters = kernel.k, kernel._letters()
    values = letters_read(values, kernel.reverse_complement, kernel.ignore_case)
    known = np.isin(values, letters)
    runs = offsets_of(known)
    n = max(0, len(values) - k + 1)
    starts = np.flatnonzero(runs[k : k + n] - runs[:n] == k) if n else np.empty(0, dtype=np.int64)
    positions, shifts = substitutions(k, kernel.mismatches, len(letters))
    ids, _ = kernel._ids(values, offsets)
    places = np.repeat(starts, len(positions))[:, None] + np.arange(k)

    def name(o: int) -> str:
        word = np.searchsorted(letters, values[places[o]])
        way = o % len(positions)
        for place, shift in zip(positions[way], shifts[way], strict=True):
            word[place] = (word[place] + shift) % len(letters)
        return _word(kernel, letters[word]) + (f" ±{kernel.mismatches}" if kernel.mismatches else "")

    return Occurrences.of_width(ids, places, name, len(values))


def _positioned(kernel: WeightedDegree, values: Letters, offsets: Table) -> Occurrences:
    """Return k-mers of all lengths up to the degree; one k-mer at two positions counts as two features."""
    ids, _ = kernel._ids(values, offsets)
    n = len(values)
    per_start = np.minimum(kernel.degree, n - np.arange(n))
    starts = np.repeat(np.arange(n), per_start)
    ends = offsets_of(per_start)
    lengths = np.arange(len(starts)) - ends[starts] + 1
    place_offsets = offsets_of(lengths)
    places = np.arange(place_offsets[-1]) - np.repeat(place_offsets[:-1] - starts, lengths)

    def name(o: int) -> str:
        return f"{text_of(values[starts[o] : starts[o] + lengths[o]])} at {starts[o]}"

    return Occurrences(ids, np.ones(len(ids)), place_offsets, places, name, n)


def shared_runs(kernel: WeightedDegree, x: StringBatch, y: StringBatch) -> Found:
    """Return the parts of a weighted degree kernel, one for each run of positions where x and y have equal letters."""
    a, b = (arrays_of(batch, slice(0, 1))[0] for batch in (x, y))
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


@dataclass(frozen=True, eq=False)
class Block:
    """One kernel with explicit features inside a (nested) sum of kernels."""

    kernel: FeatureKernel
    weight: float  # in the sum
    normed: tuple[Any, ...]  # kernels by whose norms the features are divided
    prefix: str  # of the names of the features
    path: tuple[int, ...] = ()  # number of the kernel in the innermost sum, of this sum in the sum around it, ...
    least: bool = False  # whether an `Intersection` compares the features
    factor: float = 1.0  # by which the `Intersection` multiplies their counts first

    def as_objects(self, X: Any) -> Any:
        return as_objects(self.kernel, X)

    def scale(self, X: Any) -> Floats:
        """Return, for each object, 1 / (product of its norms by the kernels `normed`), or 0 if it has no features."""
        factor = np.ones(len(X))
        for kernel in self.normed:
            if isinstance(kernel, FeatureKernel):
                squares = kernel.counted(X).squared_norms
            else:
                squares = diagonal(kernel, as_objects(kernel, X))
            factor *= np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
        return factor


def blocks_of(kernel: Any) -> list[tuple[Block, Columns]] | None:
    """Return (block, function that finds the block's columns) for each kernel of a sum; None if any has no features."""
    if isinstance(kernel, Intersection):
        return _compared_blocks(kernel)
    if isinstance(kernel, FeatureKernel):
        return [(Block(kernel, 1.0, (kernel,) if kernel.normalize else (), ""), _all_columns)]
    if isinstance(kernel, Normalized):
        blocks = blocks_of(kernel.kernel) or []
        return [(replace(block, normed=(*block.normed, kernel.kernel)), columns) for block, columns in blocks] or None
    found = []
    parts, weights = (kernel._parts(), kernel._weights()) if isinstance(kernel, Sum) else ((), ())
    for i, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        inner = blocks_of(part)
        if inner is None:
            return None
        for block, columns in inner:
            path = block.path if block.least else (*block.path, i)
            prefix, weight_of = f"{name_of(part)}: {block.prefix}", block.weight * float(weight)
            new = replace(block, weight=weight_of, prefix=prefix, path=path)
            found.append((new, _shifted(columns, i, len(parts))))
    return found or None


def _compared_blocks(kernel: Intersection) -> list[tuple[Block, Columns]] | None:
    """Return the blocks whose features an `Intersection` compares, each among all columns; None if it has others."""
    blocks = [block for block, _ in blocks_of(kernel.kernel) or []]
    if any(block.least or block.normed or isinstance(block.kernel, WeightedDegree) for block in blocks):
        return None
    normed = (kernel,) if kernel.normalize else ()
    found: list[tuple[Block, Columns]] = []
    for block in blocks:
        factor = float(np.sqrt(block.weight))
        found.append((replace(block, weight=1.0, normed=normed, least=True, factor=factor), _all_columns))
    return found or None


def _all_columns(n: int) -> tuple[int, int]:
    return 0, n


def _shifted(columns: Columns, i: int, n_parts: int) -> Columns:
    """Return a function that finds the columns of a block among all columns of a sum of `n_parts` kernels.

    The block lies in kernel `i` of the sum, and `columns` finds it among the columns of that kernel.
    """

    def of_sum(n: int) -> tuple[int, int]:
        widths = [(n + j) // n_parts for j in range(i + 1)]
        first, width = columns(widths[i])
        return sum(widths[:i]) + first, width

    return of_sum


def coefficients_by_column(block: Block, columns: Columns, x: Occurrences, n_features: int, weights: Floats) -> Floats:
    """Return the coefficient of each occurrence in x in a linear model on hashed features, not yet divided by norms."""
    first, width = columns(n_features)

    def of(ids: Ids) -> Floats:
        return weights[first + (ids % np.uint64(width)).astype(np.int64)]

    if block.least:
        ids, numbers = summed(x.ids, x.values)
        compared, mixed = np.rint(block.factor * numbers), ids
        for part in block.path:
            mixed = ids_of_part(mixed, part)
        counts = Counts(np.arange(len(ids) + 1), mixed, compared)
        sums = totals(np.repeat(np.arange(len(ids)), compared.astype(np.int64)), of(counts.unary.ids), len(ids))
        return np.sqrt(block.weight) * lookup(x.ids, ids, sums / numbers)
    own = np.ones(len(x.ids))
    if isinstance(block.kernel, WeightedDegree):  # the only kernel whose features have weights
        own = block.kernel.degree + 1 - (x.ids >> np.uint64(DEGREE_SHIFT)).astype(np.float64)
    return np.sqrt(block.weight * own) * of(x.ids)


def of_graphs(kernel: GraphKernel, graph: GraphBatch, label_names: Names, directed: bool = False) -> Occurrences | None:
    """Return a graph's features, or None for a kernel unknown here; if `directed`, a path differs from its reverse."""
    if graph.node_labels is None:
        labels = [f"degree {degree}" for degree in graph.degrees.tolist()]
    else:
        labels = node_names(graph, label_names)
    if isinstance(kernel, ShortestPath):
        return _paths(kernel, graph, labels, directed)
    if isinstance(kernel, VertexHistogram):
        ids = vertex_ids(node_labels_of(graph))
        return Occurrences.of_width(ids, np.arange(len(ids))[:, None], lambda v: labels[v], len(ids))
    return next((read(kernel, graph, labels) for kind, read in _READERS if isinstance(kernel, kind)), None)


def _neighbours(graph: GraphBatch) -> list[list[int]]:
    indptr, indices = arcs_of(graph)
    return [indices[start:stop].tolist() for start, stop in pairwise(indptr.tolist())]


def _edges(kernel: EdgeHistogram, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return an occurrence for each edge, placed at its two nodes, in the order of ids that `edge_ids` uses."""
    indptr, indices = arcs_of(graph)
    edge_labels = edge_labels_of(graph, kernel.edge_labels)
    ids, offsets = np.empty(len(indices), dtype=np.uint64), np.zeros(2, dtype=np.int64)
    edge_ids(node_labels_of(graph), graph.node_offsets, indptr, indices, edge_labels, ids, offsets)
    sources = np.repeat(np.arange(graph.n_nodes), np.diff(indptr))
    marks = edge_labels.tolist() or [None] * len(indices)
    arcs = list(zip(sources.tolist(), indices.tolist(), marks, strict=True))
    known = set(arcs)
    kept = [(v, u, mark) for v, u, mark in arcs if v <= u or (u, v, mark) not in known]

    def name(o: int) -> str:
        v, u, mark = kept[o]
        low, high = sorted((labels[v], labels[u]))
        return f"{low}-{high}" if mark is None else f"{low}{BONDS.get(mark, f'-[{mark}]-')}{high}"

    places = np.array([edge[:2] for edge in kept], dtype=np.int64).reshape(-1, 2)
    return Occurrences.of_width(ids[: offsets[1]], places, name, graph.n_nodes)


def _trees(kernel: WeisfeilerLehman, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return each node's colour after r = 0, 1, ... rounds as a feature, placed at the nodes within r steps of it.

    A node's pair (label, detail) is a feature placed at the node; it comes after the colours of all rounds.
    """
    indptr, indices = arcs_of(graph)
    edge_labels = edge_labels_of(graph, kernel.edge_labels)
    n, rounds = graph.n_nodes, kernel.n_iter + 1
    first = vertex_ids(node_labels_of(graph))
    ids = refined_ids(first, indptr, indices, edge_labels, kernel.n_iter).ravel()
    details = [] if graph.node_details is None or not kernel.details else graph.node_details.tolist()
    if details:
        ids = np.concatenate([ids, detailed_ids(first, graph.node_details)])
    neighbours = _neighbours(graph)
    marks = [edge_labels[indptr[v] : indptr[v + 1]].tolist() if len(edge_labels) else [] for v in range(n)]
    runs, covered = [], 0
    for v in range(n):
        runs += _balls(v, rounds, neighbours) if covered <= _MOST_COVERED else [[v]] * rounds
        covered += sum(map(len, runs[-rounds:]))
    if covered > _MOST_COVERED:
        runs = [[v] for v in range(n) for _ in range(rounds)]
    runs += [[v] for v in range(len(details))]
    offsets = offsets_of([len(run) for run in runs])
    places = np.fromiter(chain.from_iterable(runs), dtype=np.int64)

    def name(o: int) -> str:
        v = o - n * rounds
        if v >= 0:
            return atom_text(labels[v], details[v])
        return _tree_name(o // rounds, o % rounds, labels, neighbours, marks)

    return Occurrences(ids, np.ones(len(ids)), offsets, places, name, n)


def _balls(v: int, rounds: int, neighbours: list[list[int]]) -> list[list[int]]:
    """Return the numbers of all nodes within r steps of node `v`, ascending, for each r from 0 to `rounds` - 1."""
    reached = _distances(v, neighbours, rounds - 1)
    return [sorted(u for u, d in reached if d <= steps) for steps in range(rounds)]


def _tree_name(v: int, rounds: int, labels: list[str], neighbours: list[list[int]], marks: list[list[int]]) -> str:
    """Return the tree of labels around node `v` as text, cut if too long; ``marks[u]`` are the labels of u's edges."""
    name, text = labels[v], labels
    for _ in range(rounds):
        # Trees of all nodes grow together: a tree consists of the trees of the neighbours with one level less.
        text = [_grown(labels[u], [text[w] for w in neighbours[u]], marks[u]) for u in range(len(labels))]
        if len(text[v]) > _LONGEST_NAME:
            return f"{name} ... to depth {rounds}"
        name = text[v]
    return name


def _grown(label: str, children: list[str], marks: list[int]) -> str:
    """Return a tree as text: label(children), the children sorted; `marks` are the labels of the edges to them."""
    if not children or len(label) > _LONGEST_NAME:
        return label
    if marks:
        children = [f"{BONDS.get(mark, f'[{mark}]')}{child}" for mark, child in zip(marks, children, strict=True)]
    counted = sorted(Counter(children).items())
    text = label + "(" + ", ".join(child if n == 1 else f"{child}×{n}" for child, n in counted) + ")"
    return text[: _LONGEST_NAME + 1]  # longer names are not shown, and must not grow without bound


def _paths(kernel: ShortestPath, graph: GraphBatch, labels: list[str], directed: bool) -> Occurrences:
    """Return pairs of nodes joined by a path as features (two labels and the distance), placed at both nodes."""
    numbers = node_labels_of(graph) if kernel.with_labels else np.zeros(graph.n_nodes, dtype=np.uint64)
    if graph.n_nodes**2 > _MOST_PLACED:
        counts = kernel._counts(graph)
        return Occurrences.without_places(counts, lambda o: f"pairs of kind {counts.ids[o]:x}", graph.n_nodes)
    neighbours = _neighbours(graph)
    triples = [(v, u, d) for v in range(graph.n_nodes) for u, d in _distances(v, neighbours) if d]
    v, u, d = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    ids = _path_ids(numbers[v], numbers[u], d)

    def name(o: int) -> str:
        if not kernel.with_labels:
            return f"two nodes {d[o]} apart"
        ends = [labels[v[o]], labels[u[o]]]
        return f"{'->'.join(ends) if directed else '..'.join(sorted(ends))}, {d[o]} apart"

    found = Occurrences.of_width(ids, np.column_stack([v, u]), name, graph.n_nodes)
    low, high = np.minimum(numbers[v], numbers[u]), np.maximum(numbers[v], numbers[u])
    groups = ids if directed else _path_ids(low, high, d)
    return replace(found, groups=groups)


def _path_ids(first: npt.NDArray, last: npt.NDArray, distances: Index) -> npt.NDArray[np.uint64]:
    """Return the ids that the kernel gives to (first label, last label, distance), one for each pair of nodes."""
    ends = lru_cache(None)(lambda label, distance: np.uint64(combine(label, distance)))
    triples = zip(first, last, distances.astype(np.uint64), strict=True)
    return np.array([combine(ends(a, d), b) for a, b, d in triples], dtype=np.uint64)


def _distances(source: int, neighbours: list[list[int]], most: float = inf) -> list[tuple[int, int]]:
    """Return (node, steps) for each node that is at most `most` steps away from `source`."""
    seen, reached = {source}, [(source, 0)]
    for v, d in reached:
        if d < most:
            new = dict.fromkeys(u for u in neighbours[v] if u not in seen)
            seen.update(new)
            reached += [(u, d + 1) for u in new]
    return reached


def is_directed(graph: GraphBatch) -> bool:
    """Return whether some arc of the graph has no reverse arc."""
    indptr, indices = arcs_of(graph)
    sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    arcs = set(zip(sources.tolist(), indices.tolist(), strict=True))
    return any((u, v) not in arcs for v, u in arcs)


def _graphlets(kernel: Graphlet, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return the subgraph on each set of `kernel.size` nodes as a feature; unplaced if sets are sampled or too many."""
    n, size = graph.n_nodes, kernel.size
    table, representatives = canonical_forms(size)
    class_ids = vertex_ids(representatives | np.uint64(size) << np.uint64(32))

    def name(o: int) -> str:
        return graphlet_name(representatives[classes[o]], size)

    if kernel.n_samples is not None or comb(n, size) > _MOST_PLACED:
        counts = kernel._counts(graph)
        order = np.argsort(class_ids)
        classes = order[np.searchsorted(class_ids, counts.ids, sorter=order)]
        return Occurrences.without_places(counts, name, n)
    indptr, indices = arcs_of(graph)
    adjacent = np.zeros((n, n), dtype=np.int64)
    adjacent[np.repeat(np.arange(n), np.diff(indptr)), indices] = 1
    adjacent |= adjacent.T
    subsets = np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)
    codes = np.zeros(len(subsets), dtype=np.int64)
    for bit, (i, j) in enumerate(_pairs_of(size)):
        codes |= adjacent[subsets[:, i], subsets[:, j]] << bit
    classes = table[codes].astype(np.int64)
    return Occurrences.of_width(class_ids[classes], subsets, name, n)


def graphlet_name(code: np.uint64, size: int) -> str:
    """Return the usual name of the graphlet that `code` encodes or, if it has none, its size, edges and degrees."""
    edges = [pair for bit, pair in enumerate(_pairs_of(size)) if int(code) >> bit & 1]
    degrees = sorted(sum(v in pair for pair in edges) for v in range(size))
    listed = " ".join(map(str, degrees[::-1]))
    known = _KNOWN.get((size, tuple(degrees)))
    return known or f"{size} nodes, {len(edges)} edges, degrees {listed} (no. {int(code)})"


def _pairs_of(size: int) -> list[tuple[int, int]]:
    """Return all pairs of `size` nodes; bit b of the number that encodes a graphlet is 1 if pair b is an edge."""
    return [(i, j) for j in range(1, size) for i in range(j)]


def _bins(kernel: Propagation, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return the bin of each node after each propagation step, placed at the node."""
    ids = kernel._node_ids(graph)
    n_terms = ids.shape[1]
    places = np.repeat(np.arange(len(ids)), n_terms)[:, None]

    def name(o: int) -> str:
        v, step = divmod(o, n_terms)
        return f"step {step}, bin {int(ids[v, step]) & 0xFFFF:04x}"

    kinds = [label for label in labels for _ in range(n_terms)] if kernel._used(graph) == "labels" else None
    return replace(Occurrences.of_width(ids.ravel(), places, name, len(ids)), kinds=kinds)


def of_molecules(kernel: Morgan, batch: SmilesBatch) -> Occurrences:
    """Return the neighbourhoods that RDKit counts in a molecule, each placed at its atoms."""
    from rdkit.Chem import MolFragmentToSmiles
    from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput

    (molecule,) = parse_smiles(batch)
    output = AdditionalOutput()
    output.AllocateBitInfoMap()
    kernel._generator().GetSparseCountFingerprint(molecule, additionalOutput=output)
    found = [(number, *where) for number, centres in output.GetBitInfoMap().items() for where in centres]
    bonds = [_bonds_within(molecule, atom, radius) for _, atom, radius in found]
    atoms = [
        sorted({atom, *(end for bond in near for end in _ends(molecule, bond))})
        for (_, atom, _), near in zip(found, bonds, strict=True)
    ]

    def name(o: int) -> str:
        centre: int = found[o][1]
        text: str = MolFragmentToSmiles(molecule, atoms[o], bonds[o], rootedAtAtom=centre, allHsExplicit=True)
        return text

    ids = vertex_ids(np.array([number for number, *_ in found], dtype=np.uint64))
    places = np.fromiter(chain.from_iterable(atoms), dtype=np.int64)
    return Occurrences(
        ids, np.ones(len(ids)), offsets_of([len(a) for a in atoms]), places, name, molecule.GetNumAtoms()
    )


def _bonds_within(molecule: Any, atom: int, radius: int) -> list[int]:
    from rdkit.Chem import FindAtomEnvironmentOfRadiusN

    return [*FindAtomEnvironmentOfRadiusN(molecule, radius, atom, useHs=True, enforceSize=False)] if radius else []


def _ends(molecule: Any, bond: int) -> tuple[int, int]:
    found = molecule.GetBondWithIdx(bond)
    return found.GetBeginAtomIdx(), found.GetEndAtomIdx()


_READERS: tuple[tuple[type, Callable[..., Occurrences]], ...] = (
    (EdgeHistogram, _edges),
    (WeisfeilerLehman, _trees),
    (Graphlet, _graphlets),
    (Propagation, _bins),
)
