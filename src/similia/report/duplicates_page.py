"""`write_duplicates` writes an HTML page about near-duplicates: numbers found and missed, groups, example pairs.

Two strings are aligned with the fewest edits, and the letters in which they differ are marked. Cost: `n_checked`
objects are compared with all others; in each of the largest groups, the kept object is compared with up to 50 members.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.estimators import is_lazy
from similia.core.text import counted, number
from similia.core.validation import BadItem, BadParameter, BadValue, check_positive_int, generator
from similia.objects import n_objects, take
from similia.report._context import Seen, checked_names, for_page, look_at, on_page
from similia.report._render import Cell, Chart, Section, Table, charts, page, percent
from similia.report.displays import bins_of, mark
from similia.search.duplicates import Duplicates
from similia.similarity import Metric, metric_from, without_addresses
from similia.sources.dask import as_parts
from similia.sources.source import Source
from similia.storage.disk import text_destination, write_text

Index = npt.NDArray[np.int64]
Pieces = list[tuple[str, bool]]  # texts, and whether they differ from the other string

_GROUPS, _MEMBERS, _LOOKED_AT = 10, 4, 50  # groups shown, members of each, and members these are chosen from
_PAIRS, _TRIED = 3, 300  # pairs of each kind shown, and pairs these are chosen from
_ALIGNED, _COLUMNS, _CONTEXT = 4000, 72, 24  # letters aligned, columns of a line, equal letters kept beside an edit
_BINS = 40
_KINDS = (
    "The most similar pairs that are not equal",
    "Pairs in the middle: half of all pairs are more similar",
    "The least similar pairs, nearest to the threshold",
)


def write_duplicates(
    found: Duplicates, X: Any, path: str | os.PathLike[str] | TextIO = "duplicates.html", *,
    title: str | None = None, names: Any = None, n_checked: int = 100, random_state: int = 0, shown: Any = None,
) -> Any:  # fmt: skip
    """Write one self-contained HTML page about near-duplicates.

    Parameters
    ----------
    found : Duplicates
        Result of `similia.search.near_duplicates`.
    X : n objects: a collection, a source or a Dask collection
        The objects that `near_duplicates` searched. A source is read up to five times.
    path : str, path or text file, default="duplicates.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str or dict of int to str, optional
        Names of the objects, or a dict from the positions of some objects to their names. An object without a name is
        shown by its position in `X`.
    n_checked : int, default=100
        Number of objects that are compared with all others to measure the recall; see `Duplicates.check`. If
        ``found.method`` is "exact", all pairs were compared already, and no objects are checked.
    random_state : int, default=0
        Seed of the random samples of objects and pairs.
    shown : collection of n objects, optional
        What the page shows in place of the objects of `X`, such as the texts whose vectors `X` holds.

    Returns
    -------
    Path or text file
        Where the page was written.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file that is open for text.
    ValueError
        If `found` is not a `Duplicates`, or if the length of `X`, `shown` or a sequence `names` is not that of the
        collection that `near_duplicates` searched. The length of a source or Dask collection is not checked.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_duplicates
    >>> texts = ["the cat sat on the mat", "the cat sat on a mat", "a dog", "the cat sat on the mat!"]
    >>> found = sm.search.near_duplicates(texts, sm.kernels.MinMax(sm.kernels.Spectrum(3)), 0.7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_duplicates(found, texts, f"{folder}/duplicates.html")
    ...     "the cat sat on the mat<mark>!</mark>" in path.read_text()
    True
    """
    place = text_destination(path)
    if not isinstance(found, Duplicates):
        raise BadParameter("found", "the result of similia.search.near_duplicates", type(found).__name__)
    check_positive_int(n_checked, "n_checked")
    metric = metric_from(found.similarity, "similarity")
    n, elsewhere = len(found.groups), isinstance(X, Source) or is_lazy(X)
    objects: Any = as_parts(X) if elsewhere else _as_searched(X, metric)
    for name, given in (("X", None if elsewhere else objects), ("shown", shown)):
        if given is not None and n_objects(given) != n:
            expected = f"the {n} in which near-duplicates were looked for"
            raise BadValue(None, f"has {n_objects(given)} objects", expected, collection=name)
    if not isinstance(names, Mapping):
        names = checked_names(names, n)
    text = _page(_Shown(found, metric, objects, names, random_state, shown), title, n_checked)
    write_text(text, place)
    return place


def _as_searched(X: Any, metric: Metric) -> Any:
    """Return `X` in the layout of `metric`; raise if it holds other objects, such as the texts in place of vectors."""
    try:
        return metric.as_objects(X)
    except BadItem as error:
        remedy = "give what near_duplicates searched, such as vectors; the page shows other objects with shown="
        raise error.changed(remedy=remedy) from error.__cause__


class _Group(NamedTuple):
    """A group: its kept object, number of members, and some of the others with their values, most similar first."""

    kept: int
    size: int
    members: Index
    values: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Pairs(Section):
    """A section with example pairs below headings."""

    pairs: Any = ()


class _Shown:
    """The near-duplicates, and the objects of which the page shows something."""

    def __init__(self, found: Duplicates, metric: Metric, X: Any, names: Any, seed: int, others: Any) -> None:
        self.found, self.metric, self.X, self.names, self.seed, self.others = found, metric, X, names, seed, others
        self.order = np.argsort(-found.values if metric.is_kernel else found.values, kind="stable")
        self.kept, self.sizes = np.unique(found.groups, return_counts=True)
        self.examples: list[Index] = []
        for kind, numbers in enumerate(self._candidates()):
            new = numbers[~np.isin(numbers, np.concatenate([np.zeros(0, np.int64), *self.examples]))]
            self.examples.append(self._spread(new, kind == 0))
        largest = [g for g in np.argsort(-self.sizes, kind="stable")[:_GROUPS].tolist() if self.sizes[g] > 1]
        self.groups = self._compared([self._group(g) for g in largest])
        rows = [found.pairs[e].ravel() for e in self.examples]
        rows += [np.append(group.members, group.kept) for group in self.groups]
        self.rows: Index = np.unique(np.concatenate([*rows, np.zeros(1, np.int64)])).astype(np.int64)
        self.seen: Seen = self._look_at(self.rows)

    def _taken(self, rows: Index) -> Any:
        return self.metric.as_objects(self.X.take(rows)) if isinstance(self.X, Source) else take(self.X, rows)

    def _look_at(self, rows: Index) -> Seen:
        return look_at(self._taken(rows) if self.others is None else take(self.others, rows))

    def _candidates(self) -> list[Index]:
        """Return the numbers of pairs from which examples are chosen: the most similar, middle and least similar."""
        m = len(self.order)
        half = min(_TRIED // 2, max(1, m // 6))  # of a few pairs, the middle third
        middle = self.order[max(0, m // 2 - half) : m // 2 + half]
        return [self.order[:_TRIED], generator(self.seed).permutation(middle), self.order[::-1][:_TRIED]]

    def _spread(self, numbers: Index, differ: bool) -> Index:
        """Return the first few pairs of as many groups; if `differ`, without pairs of equal objects."""
        pairs = self.found.pairs[numbers]
        if differ and len(numbers):
            rows, places = np.unique(pairs, return_inverse=True)
            alike = self._look_at(rows).groups[places.reshape(pairs.shape)]
            numbers = numbers[alike[:, 0] != alike[:, 1]]
        _, first = np.unique(self.found.groups[self.found.pairs[numbers, 0]], return_index=True)
        return numbers[np.sort(first)][:_PAIRS]

    def _group(self, g: int) -> _Group:
        kept = int(self.kept[g])
        members = np.flatnonzero(self.found.groups == kept)
        members = members[members != kept]
        if len(members) > _LOOKED_AT:
            members = np.sort(generator(self.seed).choice(members, _LOOKED_AT, replace=False))
        return _Group(kept, int(self.sizes[g]), members, np.zeros(0))

    def _compared(self, groups: list[_Group]) -> list[_Group]:
        """Compare the members of each group with the kept object; return those to show, the most similar first."""
        if not groups:
            return []
        rows = np.unique(np.concatenate([np.append(group.members, group.kept) for group in groups]))
        objects, found = self._taken(rows), []
        for group in groups:
            kept, members = (take(objects, np.searchsorted(rows, some)) for some in ([group.kept], group.members))
            values = np.asarray(self.metric.between(kept, members), np.float64)[0]
            order = np.argsort(-values if self.metric.is_kernel else values, kind="stable")
            order = order[np.unique(np.linspace(0, len(order) - 1, min(_MEMBERS, len(order))).round().astype(int))]
            found.append(group._replace(members=group.members[order], values=values[order]))
        return found

    @property
    def n(self) -> int:
        return len(self.found.groups)

    @property
    def value(self) -> str:
        return "similarity" if self.metric.is_kernel else "distance"

    @property
    def limit(self) -> str:
        at = self.found.threshold
        if self.found.relative:
            return f"a distance of at most {percent(at)} of the longer string"
        return f"a {self.value} of at {'least' if self.metric.is_kernel else 'most'} {number(at)}"

    def name(self, row: int) -> str:
        if self.names is None or (isinstance(self.names, Mapping) and row not in self.names):
            return f"object {row}"
        return str(self.names[row])

    def on_page(self, row: int) -> dict[str, Any]:
        return on_page(self.seen, int(np.searchsorted(self.rows, row)), self.name(row))


def _page(shown: _Shown, title: str | None, n_checked: int) -> str:
    found, m = shown.found, len(shown.found.pairs)
    n, n_kept, n_groups = shown.n, len(shown.kept), int((shown.sizes > 1).sum())
    recall, share = _about_recall(shown, n_checked)
    drawn: list[Any] = for_page(shown.seen)
    sections = [_about_values(shown), recall, _about_groups(shown), _about_pairs(shown, drawn), _about_keeping(shown)]
    return page(
        "duplicates", script="page",
        title=title or f"Near-duplicates among {n:,} {shown.seen.kind}",
        about=f"Pairs with {shown.limit}, by {without_addresses(found.similarity)}.",
        cards=[
            ("objects", f"{n:,}", shown.seen.kind), ("pairs", f"{m:,}", "compared exactly"),
            ("groups", f"{n_groups:,}", "of two or more objects"),
            ("to keep", f"{n_kept:,}", f"{percent(n_kept / n)} of all objects"), ("recall", *share),
        ],
        sections=sections, data={"objects": drawn},
    )  # fmt: skip


def _about_values(shown: _Shown) -> Section:
    found, sizes = shown.found, shown.sizes[shown.sizes > 1]
    if not len(found.pairs):
        text = f"No two objects have {shown.limit}. A looser threshold finds more."
        return Section("values", "What was found", text=text)
    values = found.values.astype(np.float64)

    def draw(of_pairs: Any, of_groups: Any) -> None:
        whole = bool((values == np.rint(values)).all()) and np.ptp(values) < _BINS
        bins: Any = np.arange(values.min() - 0.5, values.max() + 1) if whole else bins_of(values, _BINS)
        of_pairs.hist(values, bins=bins, color=mark(0)["color"])
        of_pairs.set(xlabel=shown.value, ylabel="pairs")
        size, count = np.unique(sizes, return_counts=True)
        of_groups.plot(size, count, color=mark(0)["color"], marker="o", markersize=4, linestyle="none")
        of_groups.set(xlabel="objects in a group", ylabel="groups", xscale="log", yscale="log")

    in_groups = int(sizes.sum())
    text = (
        f"{len(values):,} pairs have {shown.limit}. They connect {in_groups:,} objects "
        f"({percent(in_groups / shown.n)}) into {len(sizes):,} groups of two or more; two objects are in one group if "
        "a chain of pairs leads from one to the other."
    )
    drawn: list[Chart] = charts(draw, f"The {shown.value} of each pair", "Sizes of the groups")
    return Section("values", "What was found", text=text, charts=drawn, beside=False)


def _about_recall(shown: _Shown, n_checked: int) -> tuple[Section, tuple[str, str]]:
    """Say how many pairs were missed; also return the recall and its note for the head of the page."""
    found, heading = shown.found, "How many pairs were missed"
    if found.method == "exact":
        return Section("recall", heading, text="None: all pairs were compared."), ("100 %", "all pairs were compared")
    seen = found.check(shown.X, n_checked, shown.seed)
    estimate = "–" if found.recall != found.recall else percent(found.recall)
    rows: list[list[str | Cell]] = [
        ["objects compared with all others", f"{seen.n_checked:,}"],
        ["their near-duplicates", f"{seen.n_true:,}"],
        ["of these, found", f"{seen.n_found:,}"],
        ["recall that the search estimated itself", estimate],
    ]
    none = "The objects drawn have no near-duplicates, so this check cannot tell the recall; draw more (n_checked)."
    interval = f"{percent(seen.low)} to {percent(seen.high)}"
    text = none if not seen.n_true else (
        f"Objects were drawn at random and compared with all others: {percent(seen.recall)} of their near-duplicates "
        f"are among the pairs found (95 % interval {interval})."
    )  # fmt: skip
    note = (
        "A pair is missed if the search never compares it. The interval is Wilson's, for as many independent pairs as "
        "objects have near-duplicates, since the pairs of one object are found or missed together."
    )
    share = (estimate, "estimated") if not seen.n_true else (percent(seen.recall), f"measured; 95 %: {interval}")
    return Section("recall", heading, text=text, tables=[Table("Check", rows, sortable=False)], note=note), share


def _about_groups(shown: _Shown) -> Section:
    heading = "The largest groups"
    if not shown.groups:
        return Section("groups", heading, missing="There are none.")
    shapes = []
    for group in shown.groups:
        kept = shown.on_page(group.kept) | {"name": f"{group.size:,} objects: {shown.name(group.kept)} is kept"}
        near = [(number(v), shown.on_page(int(i))) for i, v in zip(group.members, group.values, strict=True)]
        shapes.append({"object": kept, "near": near, "explained": None})
    text = (
        f"The first object of each group, which is kept, and up to {_MEMBERS} others from the most to the least "
        f"similar to it, with their {shown.value}. A member beyond the threshold is connected by a chain of pairs."
    )
    return Section("groups", heading, text=text, neighbourhoods=shapes)


def _about_keeping(shown: _Shown) -> Section:
    """Count what is left if one object of each group is kept, and what is dropped only because of a chain."""
    found, dropped = shown.found, shown.n - len(shown.kept)
    direct = np.isin(found.pairs[:, 0], shown.kept)
    chained = dropped - len(np.unique(found.pairs[direct, 1]))
    rows: list[list[str | Cell]] = [
        ["kept: the first object of each group", f"{len(shown.kept):,}"],
        ["dropped", f"{dropped:,}"],
        ["of these, not within the threshold of the kept object", f"{chained:,}"],
    ]
    text = (
        "Keep the first object of each group: found.kept in Python, the column “kept” of similia duplicates --groups. "
        "So the result depends on the order of the objects: put those first that you prefer."
    )
    note = "" if not chained else (
        f"{counted(chained, 'object')} would be dropped for being connected to the kept one by a chain only. If "
        "these matter to you, take a stricter threshold, or choose by hand within groups."
    )  # fmt: skip
    return Section("keep", "What to keep", text=text, tables=[Table("Objects", rows, sortable=False)], note=note)


# ---- example pairs
def _about_pairs(shown: _Shown, drawn: list[Any]) -> Section:
    """Show pairs with their differences; drawings that combine two objects are appended to `drawn`."""
    headed = [
        (heading, [_pair(shown, int(e), drawn) for e in examples])
        for heading, examples in zip(_KINDS, shown.examples, strict=True)
        if len(examples)
    ]
    if not headed:
        return Section("pairs", "Examples", missing="There are no pairs.")
    if shown.seen.kind == "strings":
        text = (
            "Marked letters differ; · stands where the other string has a letter more. Long equal stretches are cut, "
            f"and letters after the first {_ALIGNED:,} are left out."
        )
    else:
        text = f"Pairs of different groups, with their {shown.value}."
    return _Pairs("pairs", "Examples", text=text, pairs=headed)


def _pair(shown: _Shown, e: int, drawn: list[Any]) -> dict[str, Any]:
    left, right = (shown.on_page(int(row)) for row in shown.found.pairs[e])
    title = f"{shown.value} {number(float(shown.found.values[e]))}: {left['name']} and {right['name']}"
    if shown.seen.kind == "strings":
        lines = _aligned(*(_letters(shown.seen.batch[one["i"]]) for one in (left, right)))
        return {"title": title, "lines": lines, "names": (left["name"], right["name"])}
    both = _together(shown.seen, left["i"], right["i"])
    objects = [left, right]
    if both is not None:
        objects.append({"i": len(drawn), "name": "both on one scale", "text": both["t"], "is_text": False})
        drawn.append(both)
    return {"title": title, "objects": objects}


def _letters(value: str | bytes) -> str:
    """Return the letters of a string as they are aligned: line breaks and other control characters become pictures."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    text = text[:_ALIGNED].encode("utf-8", "replace").decode("utf-8")
    return "".join(chr(0x2400 + ord(c)) if c < " " else c for c in text)


def _aligned(a: str, b: str) -> list[tuple[Pieces, Pieces]]:
    """Return lines of two aligned strings, as pieces that differ or not; equal stretches far from edits are cut."""
    from rapidfuzz.distance import Levenshtein

    blocks = []
    for step in Levenshtein.opcodes(a, b):
        first, second = a[step.src_start : step.src_end], b[step.dest_start : step.dest_end]
        width, differs = max(len(first), len(second)), step.tag != "equal"
        if not differs and width > 2 * _CONTEXT + 12:
            cut = f" … {width - 2 * _CONTEXT:,} equal … "
            first = second = first[:_CONTEXT] + cut + first[-_CONTEXT:]
            width = len(first)
        blocks.append((first.ljust(width, "·"), second.ljust(width, "·"), differs))
    lines: list[tuple[Pieces, Pieces]] = [([], [])]
    used = 0
    for first, second, differs in blocks:
        while first:
            if used == _COLUMNS:
                lines.append(([], []))
                used = 0
            room = _COLUMNS - used
            for line, text in zip(lines[-1], (first, second), strict=True):
                line.append((text[:room], differs))
            used += len(first[:room])
            first, second = first[room:], second[room:]
    return lines


def _together(seen: Seen, i: int, j: int) -> dict[str, Any] | None:
    """Return a drawing of two series of one channel, or of two vectors, on one scale; None for other objects."""
    if seen.kind == "time series" and seen.batch.n_dims == 1:
        both = [np.asarray(seen.batch[k], dtype=np.float64)[:, 0] for k in (i, j)]
    elif seen.kind == "vectors" and isinstance(seen.batch, np.ndarray):
        both = [np.asarray(seen.batch[k], dtype=np.float64) for k in (i, j)]
    else:
        return None
    low, high = min(map(np.min, both)), max(map(np.max, both))
    scale = 100 / (high - low) if high > low else 0.0
    curves = []
    for values in both:
        edges = np.unique(np.linspace(0, len(values), min(len(values), _COLUMNS) + 1).astype(int))
        means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
        curves.append(((means - low) * scale).round().astype(int).tolist())
    return {"t": "the first in the first colour", "c": curves}
