"""`write_search` writes an HTML page about a search: recall against time, how candidates are found, and examples.

Cost: a search of the queries for each number of candidates, and the comparison of each query with all objects.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from similia.core.estimators import check_fitted
from similia.core.text import counted, number
from similia.core.validation import BadParameter, check_positive_int, generator
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import at_least_one, item
from similia.report._context import Seen, checked_names, for_page, look_at, named, on_page, quietly
from similia.report._model import sampled
from similia.report._render import Chart, Section, Table, charts, page, percent
from similia.report.displays import line, mark
from similia.report.page import explained, in_units
from similia.search.automatic import name_of
from similia.search.hamming_index import HammingIndex
from similia.search.similarity_search import Recall, SimilaritySearch, measured_recall, true_metric
from similia.similarity import Metric, without_addresses
from similia.storage.disk import text_destination, write_text

_CANDIDATES = (10, 20, 50, 100, 200, 400, 800)
_ALONE = 30  # queries that are answered one by one, to time them
_EXAMPLES, _NEAR, _OPEN = 6, 4, 2  # queries shown, neighbours of each, and explanations that are initially open
_TIME = "s ms µs ns"


def write_search(
    search: SimilaritySearch, X: Any, path: str | os.PathLike[str] | TextIO = "search.html", *, n_neighbors: int = 10,
    metric: Any = None, objects: Any = None, title: str | None = None, names: Any = None,
    object_names: Mapping[int, str] | None = None, max_queries: int = 200, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write one self-contained HTML page about a search.

    A plot shows the recall of the search, which is the share of the true nearest neighbours that it finds, against its
    time per query. There is a point for each of several numbers of candidates (the objects that the search compares
    with a query), and one point for the comparison of a query with all objects. If the search was made with
    ``encoder="auto"``, the page also shows the recall and the cost of each method of finding candidates that was tried.
    It ends with a few queries and their nearest objects.

    Parameters
    ----------
    search : SimilaritySearch
        A fitted search that holds objects.
    X : collection of q objects
        Queries, preferably objects that are not in the search, because an object in the search finds itself.
    path : str, path or text file, default="search.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    n_neighbors : int, default=10
        Number k of nearest neighbours that the search has to find, at most the number of objects.
    metric : kernel, distance, "kernel" or "projected", optional
        What defines the true neighbours, as in `similia.SimilaritySearch.recall`. By default, "projected" for a search
        with ``rerank="projected"`` and without `objects`, else "kernel".
    objects : collection of n objects, optional
        The objects of the search in the order they were added; required if the search keeps neither objects nor
        vectors.
    title : str, optional
        Title of the page.
    names : sequence of q str, optional
        Names of the queries; by default their positions in `X`.
    object_names : dict of int to str, optional
        Names of the objects by their ids. An object without a name is shown by its id.
    max_queries : int, default=200
        Maximum number of queries. If there are more, a random sample is used.
    random_state : int, default=0
        Seed of the random samples.

    Returns
    -------
    Path or text file
        Where the page was written.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file that is open for text.
    ValueError
        If `search` is not a `SimilaritySearch`; if there are no queries or no objects; if `n_neighbors` exceeds the
        number of objects; if `names` has another length than `X`; if the search keeps neither objects nor vectors and
        `objects` is not given; or if `metric` is not given and the search has no kernel or distance.
    sklearn.exceptions.NotFittedError
        If the search is not fitted.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_search
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> search = sm.SimilaritySearch("auto", rerank=sm.distances.Levenshtein()).fit(X[:80])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_search(search, X[80:], f"{folder}/search.html", n_neighbors=5)
    ...     "How much it finds" in path.read_text()
    True
    """
    return write_with_recall(
        search, X, path, n_neighbors=n_neighbors, metric=metric, objects=objects, title=title, names=names,
        object_names=object_names, max_queries=max_queries, random_state=random_state,
    )[0]  # fmt: skip


def write_with_recall(
    search: Any, X: Any, path: Any, *, n_neighbors: int = 10, metric: Any = None, objects: Any = None,
    title: str | None = None, names: Any = None, object_names: Mapping[int, str] | None = None, max_queries: int = 200,
    random_state: int = 0,
) -> tuple[Any, dict[int, Recall]]:  # fmt: skip
    """Write a page like `write_search`; return its place, and the recall by the number of candidates."""
    place = text_destination(path)
    if not isinstance(search, SimilaritySearch):
        remedy = "an index is searched by similia.SimilaritySearch(index, rerank=...)"
        raise BadParameter("search", "a similia.SimilaritySearch", type(search).__name__, remedy)
    check_fitted(search, "encoder_")
    check_positive_int(max_queries, "max_queries")
    names = checked_names(names, at_least_one(X))
    k = check_positive_int(n_neighbors, "n_neighbors")
    if k > len(search):
        raise BadParameter("n_neighbors", f"at most the {len(search)} objects of the search", str(k))
    rows = sampled(X, max_queries, np.random.default_rng(random_state))
    called = [f"query {i}" for i in rows.tolist()] if names is None else named(names, rows)
    shown = _Shown(search, take(X, rows), called, object_names or {}, objects, random_state)
    if metric is None:
        metric = "projected" if search._projected and objects is None else "kernel"
    found = quietly(_measured, search, shown.queries, k, metric, objects)
    alone = quietly(_one_by_one, search, shown.queries, k)
    sections = [_about_recall(search, found, alone, k, len(rows), metric, objects)]
    sections += [_about_trials(search)] if getattr(search, "trials_", None) else []
    sections.append(_about_examples(shown, k))
    text = page(
        "page", title=title or f"Search among {len(search):,} objects", model=_described(search),
        parameters=without_addresses(search),
        cards=[("objects", f"{len(search):,}", "searched"), *(card for one in sections for card in one.cards)],
        sections=sections, data={"objects": [], "names": []},
    )  # fmt: skip
    write_text(text, place)
    return place, found


class _Shown:
    """A search, the queries of the page, and the objects of the search, if they are known."""

    def __init__(
        self, search: Any, queries: Any, names: list[str], object_names: Mapping[int, str], objects: Any, seed: int
    ) -> None:
        self.search, self.queries, self.names, self.object_names, self.seed = search, queries, names, object_names, seed
        self.objects = search.objects_ if objects is None else objects

    @property
    def metric(self) -> Metric | None:
        found: Metric | None = self.search._metric()
        return found

    def together(self, rows: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> Seen:
        """Return some queries, and after them the objects with these ids, as one collection."""
        queries, found = take(self.queries, rows), take(self.objects, self.search._rows(ids))
        if self.metric is not None:
            metric = true_metric(self.search, "kernel", self.objects)
            queries, found = metric.as_objects(queries), metric.as_objects(found)
        return look_at(concatenate([queries, found]))


def _measured(search: Any, X: Any, k: int, metric: Any, objects: Any) -> dict[int, Recall]:
    """Return recall and time by the number of candidates."""
    if search.rerank is None:
        return {k: measured_recall(search, X, k, metric, objects)[0]}
    counts = sorted({min(c, len(search)) for c in (*_CANDIDATES, search.n_candidates) if c >= k})
    return dict(zip(counts, measured_recall(search, X, k, metric, objects, counts), strict=True))


def _one_by_one(search: Any, X: Any, k: int) -> float:
    k, seconds = k if search.rerank is None else min(k, search.n_candidates), []
    queries = [take(X, [i]) for i in range(min(_ALONE, n_objects(X)))]
    search.kneighbors(queries[0], k)
    for query in queries:
        start = time.perf_counter()
        search.kneighbors(query, k)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def _described(search: Any) -> str:
    how = name_of(search.encoder_)
    if isinstance(search.index_, HammingIndex):
        how += f" ({search.index_.n_bits} bits, {search.index_.kind} search)"
    if search.rerank is None:
        return how
    metric = search._metric()
    by = "their projected vectors" if metric is None else without_addresses(metric.function)
    return f"{how}; {counted(search.n_candidates, 'candidate')} compared by {by}"


def _about_recall(
    search: Any, found: dict[int, Recall], alone: float, k: int, q: int, metric: Any, objects: Any
) -> Section:
    current = min(search.n_candidates, len(search))
    nearest = min(found, key=lambda c: abs(c - current))  # fewer candidates than neighbours are not measured
    now = found[nearest]
    brute = now.brute_force_seconds
    if metric == "projected":
        truth = "the angle between projected vectors"
    else:
        kept = search.objects_ if objects is None else objects
        truth = without_addresses(true_metric(search, metric, kept).function)
    text = (
        f"{_queries(q)}: each was compared with all {len(search):,} objects by "
        f"{truth}. Recall is the share of the {k} results of a query that are no farther than its true neighbour "
        f"number {k}. All queries were searched together; times as fast means beside comparing a query with all."
    )
    reranks = search.rerank is not None
    rows = []
    for c, one in found.items():
        cells = [f"{100 * one.recall:.2f}", f"{100 * one.standard_error:.2f}" if q > 1 else "–"]
        cells += [in_units(one.seconds, _TIME), number(one.brute_force_seconds / one.seconds)]
        rows.append([f"{c} (now)" if c == current else str(c), *cells] if reranks else cells)
    head = ["candidates"] * reranks + ["recall (%)", "standard error", "time of a query", "times as fast"]
    caption = f"Recall of the {k} nearest, and time" + ", by the number of candidates" * reranks
    table = Table(caption, rows, head, text_columns=0, sortable=False)
    better = [c for c, one in found.items() if one.recall >= 0.99]
    note = ""
    if reranks and better and min(better) != current:
        note = f"{counted(min(better), 'candidate')} are enough to find 99 %: set_params(n_candidates={min(better)})."
    if brute < now.seconds:
        note += " Comparing a query with all objects takes less time here, and finds everything."
    how = counted(nearest, "candidate") if reranks else "without reranking"
    cards = [
        (f"recall of {k} nearest", percent(now.recall), how),
        ("one query alone", in_units(alone, _TIME), "median"),
        ("a query among many", in_units(now.seconds, _TIME), f"comparing all takes {in_units(brute, _TIME)}"),
    ]
    return Section(
        "recall", "How much it finds, and how fast", text=text, tables=[table], note=note.strip(), cards=cards,
        charts=_curve(search, found, k),
    )  # fmt: skip


def _queries(n: int) -> str:
    return "1 query" if n == 1 else f"{n} queries"


def _curve(search: Any, found: dict[int, Recall], k: int) -> list[Chart]:

    def draw(axis: Any) -> None:
        times, shares = np.array([(one.seconds, one.recall) for one in found.values()]).T
        axis.plot(1000 * times, 100 * shares, **line(0))
        for c, at, share in zip(found, 1000 * times, 100 * shares, strict=True):
            if search.rerank is not None:
                axis.annotate(str(c), (at, share), (0, -11), textcoords="offset points", ha="center", fontsize=8)
        brute = np.mean([one.brute_force_seconds for one in found.values()])
        axis.plot([1000 * brute], [100.0], color=mark(1)["color"], marker="s", linestyle="none")
        axis.annotate("all", (1000 * brute, 100.0), (0, -11), textcoords="offset points", ha="center", fontsize=8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("")
        axis.set(xlabel="milliseconds for a query", ylabel=f"recall of {k} nearest (%)")
        axis.margins(x=0.1, y=0.12)

    what = "the numbers are those of candidates" if search.rerank is not None else "without candidates to compare"
    return charts(draw, f"Recall against time ({what}), beside comparing all objects")


def _about_trials(search: Any) -> Section:
    ways: dict[str, list[dict[str, Any]]] = {}
    for one in search.trials_:
        ways.setdefault(one["candidates"], []).append(one)
    kept = name_of(search.encoder_)
    counts = sorted({one["n_candidates"] for one in search.trials_})
    rows: list[Sequence[str]] = []
    for way, tried in ways.items():
        shares = {one["n_candidates"]: one["recall"] for one in tried}
        cells = [f"{100 * shares[c]:.1f}" if c in shares else "–" for c in counts]
        rows.append([f"{way} (kept)" if way == kept else way, number(tried[0]["operations"]), *cells])
    head = ["candidates are found by", "operations", *(f"recall (%) at {c}" for c in counts)]

    def draw(axis: Any) -> None:
        for i, (way, tried) in enumerate(ways.items()):
            label = way if len(way) <= 44 else f"{way[:43]}…"
            shares = [100 * one["recall"] for one in tried]
            axis.plot([one["n_candidates"] for one in tried], shares, **{**line(i), "label": label})
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set(xlabel="candidates", ylabel="true neighbours among them (%)")
        axis.legend(frameon=False, fontsize=7)

    text = (
        'encoder="auto" tried these methods on a sample of the objects. It kept the cheapest one whose recall is at '
        "most one standard error below the highest. Operations are an estimate for one query among all objects."
    )
    return Section(
        "methods", "How candidates are found", text=text, beside=False,
        tables=[Table("Methods that were tried", rows, head, sortable=False)],
        charts=charts(draw, "Share of the true neighbours among the candidates"),
    )  # fmt: skip


def _about_examples(shown: _Shown, k: int) -> Section:
    name, title = "examples", "Some queries and what they find"
    if shown.objects is None:
        return Section(
            name, title, missing="The search keeps no objects, so they cannot be shown; objects= gives them."
        )
    compared = len(shown.search) if shown.search.rerank is None else shown.search.n_candidates
    q, most = len(shown.names), min(_NEAR, len(shown.search), compared, k)
    rows = np.sort(generator(shown.seed).permutation(q)[:_EXAMPLES])
    distances, ids = quietly(shown.search.kneighbors, take(shown.queries, rows), most)
    kept, places = np.unique(ids, return_inverse=True)
    seen = shown.together(rows, kept)
    names = [shown.names[i] for i in rows.tolist()]
    names += [shown.object_names.get(i, f"id {i}") for i in kept.tolist()]

    metric, found = shown.metric, []
    for place, (values, near) in enumerate(zip(distances.tolist(), places.reshape(ids.shape) + len(rows), strict=True)):
        pair = [item(seen.batch, place), item(seen.batch, int(near[0]))]
        found.append({
            "object": on_page(seen, place, names[place]),
            "near": [(number(v), on_page(seen, j, names[j])) for v, j in zip(values, near.tolist(), strict=True)],
            "explained": explained(metric.function, *pair) if metric is not None else None,
            "why": "Why the first is near it",
            "is_open": place < _OPEN,
        })  # fmt: skip
    by = "the distance of its rerank" if shown.search.rerank is not None else "the distance of its index"
    text = f"{_queries(len(rows))}, each with its {most} nearest objects by {by}."
    data = {"objects": quietly(for_page, seen), "names": names}
    return Section(name, title, text=text, neighbourhoods=found, data=data)
