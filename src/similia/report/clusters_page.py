"""`write_clusters` writes an HTML page about clusters: their sizes and medoids, what members share, and a map.

Cost: two transforms of all objects, one of those on the map, and `similia.explanations.explain_classes` with 30 members
of each cluster. For `HDBSCAN`, the embedding for the map is fitted anew.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

from similia.core.estimators import check_fitted
from similia.core.text import counted, number
from similia.core.validation import check_labels, check_positive_int
from similia.explanations import SharedPart, explain_classes
from similia.learn.clusters import KernelKMeans
from similia.objects.sequences import at_least_one, item
from similia.pipelines import steps_of
from similia.report._context import Context, checked_names, described, for_page, look_at, named, quietly, refuse_path
from similia.report._model import Embedded, ending_in, parts_of, sampled, taken
from similia.report._render import Cell, Chart, Section, Table, charts, page, percent
from similia.report.displays import mark
from similia.report.page import about_map, explained, object_on_page
from similia.search.hdbscan import HDBSCAN
from similia.similarity import without_addresses
from similia.storage.disk import text_destination, write_text

_MEMBERS, _NEAR = 30, 4  # of a cluster: members that are explained, and members shown beside the medoid
_AGREEMENT = "adjusted Rand index with the given classes: 1 if they are the same, 0 on average by chance"
_SHOWN = 20  # maximum number of clusters whose medoids are shown with their neighbours, or drawn with stretches
_CHANNELS, _POINTS = 6, 1000  # maximum numbers of channels and of points of a curve that are drawn


def write_clusters(
    model: Any, X: Any, y: Any = None, path: str | os.PathLike[str] | TextIO = "clusters.html", *,
    title: str | None = None, names: Any = None, max_objects: int = 5000, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write one self-contained HTML page about the clusters of objects.

    The page shows the medoid of each cluster: for `similia.HDBSCAN`, the member nearest to the other members; for
    `similia.KernelKMeans`, the member nearest to the centre. It also lists the parts that distinguish the members of
    each cluster from all other clusters, such as substrings, subgraphs or stretches of time; the function
    `similia.explanations.explain_classes` finds these parts.

    Stretches of time are drawn over the medoid. Objects that `similia.HDBSCAN` labels as noise are counted and shown on
    the map, but form no cluster.

    Parameters
    ----------
    model : KernelKMeans, HDBSCAN or pipeline
        A fitted model, or a fitted pipeline that ends in one. The page shows the objects that the pipeline takes, such
        as texts, and names parts by the columns of its steps, such as words.
    X : collection of n objects
        Objects in any form that the model accepts, usually the objects to which the model was fitted.
    y : array-like of n labels, optional
        Known classes of the objects. The page says how well the clusters agree with them; all noise counts as one
        cluster.
    path : str, path or text file, default="clusters.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str, optional
        Names of the objects; by default their positions in `X`.
    max_objects : int, default=5000
        Maximum number of objects sampled for the map on the page, a plot of the first two principal components. The map
        also shows the five members nearest to the centre or medoid of each cluster. Sizes and medoids are always those
        of all n objects.
    random_state : int, default=0
        Seed of the random samples of objects.

    Returns
    -------
    Path or text file
        Where the page was written.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file that is open for text.
    ValueError
        If `model` neither is nor ends in a `KernelKMeans` or `HDBSCAN`, if there are no objects, or if the length of
        `y` or `names` is not that of `X`.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_clusters
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.KernelKMeans(sm.kernels.Spectrum(k=3, normalize=True), n_clusters=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_clusters(model, X, y, f"{folder}/clusters.html")
    ...     "What the members share" in path.read_text()
    True
    """
    refuse_path(y, "y")
    place = text_destination(path)
    *before, clusters = ending_in(model, KernelKMeans, HDBSCAN)
    check_fitted(clusters)
    check_positive_int(max_objects, "max_objects", minimum=2)
    n = at_least_one(X)
    classes = None if y is None else check_labels(y, n)
    names = checked_names(names, n)
    if not before and hasattr(clusters.similarity_, "as_objects"):
        X = quietly(clusters.similarity_.as_objects, X)
    found = _found(model, X, random_state)
    shown = _shown(found, max_objects, random_state)
    context = _context(found, X, shown, names, random_state)
    tried = isinstance(clusters, KernelKMeans) and len(clusters.n_clusters_tried_) > 0
    sections = [
        _about_clusters(found, context, X, classes, shown),
        *([_about_stability(clusters)] if tried else []),
        about_map(context),
        _about_medoids(found, context, shown),
    ]
    cards = [("objects", f"{n:,}", context.seen.kind), ("clusters", str(clusters.n_clusters_), found.chosen)]
    if found.noise:
        cards.append(("noise", f"{found.noise:,}", "objects in no cluster"))
    if classes is not None:
        how = _AGREEMENT + (" (noise counts as one cluster)" if found.noise else "")
        cards.append(("agreement", f"{adjusted_rand_score(classes, found.labels):.2f}", how))
    text = page(
        "page", title=title or f"Clusters of {context.seen.kind}", model=context.parts,
        parameters=without_addresses(model), cards=cards, sections=sections,
        data={"objects": for_page(context.seen), "names": context.names},
    )  # fmt: skip
    write_text(text, place)
    return place


class _Found(NamedTuple):
    """Clusters of objects, with what the page says about them."""

    whole: Any  # the model, which may be a pipeline that ends in `model`
    model: KernelKMeans | HDBSCAN
    vectors: Any  # what `model` compares: the objects, or what the steps before it make of them
    labels: npt.NDArray[np.integer]  # -1 for noise
    away: npt.NDArray[np.floating]  # distance from the centre or medoid of the cluster; infinity for noise
    embedding: Any
    chosen: str  # how the number of clusters was chosen
    middle: str  # from what distances are measured: "centre" or "medoid"
    medoid: str  # what a medoid is

    @property
    def noise(self) -> int:
        return int((self.labels < 0).sum())

    def name(self, cluster: int) -> str:
        return f"cluster {cluster:0{len(str(self.model.n_clusters_ - 1))}d}" if cluster >= 0 else "noise"

    def nearest(self, cluster: int) -> npt.NDArray[np.int64]:
        members = np.flatnonzero(self.labels == cluster)
        return members[np.argsort(self.away[members], kind="stable")][: 1 + _NEAR]


def _found(whole: Any, X: Any, seed: int) -> _Found:
    *before, model = steps_of(whole)
    for step in before:
        X = quietly(step.transform, X)
    if isinstance(model, HDBSCAN):
        labels = model._labels_of(X)
        away, embedding = model._to_medoids(X, labels), model._means(seed).embedding_
        medoid = "the member nearest to the others of its cluster"
        return _Found(whole, model, X, labels, away, embedding, "as many as there are dense regions", "medoid", medoid)
    distances = np.asarray(model.transform(X))
    chosen = "chosen by stability" if len(model.n_clusters_tried_) else "as requested"
    medoid = "the member nearest to the centre of its cluster"
    labels, away = distances.argmin(axis=1), distances.min(axis=1)
    return _Found(whole, model, X, labels, away, model.embedding_, chosen, "centre", medoid)


def _shown(found: _Found, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the positions of a random sample of `most` objects, and of the objects nearest to each centre."""
    rows = sampled(found.labels, most, np.random.default_rng(seed))
    return np.unique(np.concatenate([rows, *map(found.nearest, range(found.model.n_clusters_))]))


def _context(found: _Found, X: Any, shown: npt.NDArray[np.int64], names: Any, seed: int) -> Context:
    model, few, parts = found.whole, taken(X, shown), parts_of(found.whole)
    clusters = np.array([found.name(c) for c in found.labels[shown].tolist()])
    how = f"{type(found.embedding).__name__}, {counted(found.embedding._n_features_out, 'column')}"
    vectors = Embedded(np.asarray(found.embedding.transform(taken(found.vectors, shown))), None, how)
    seen = look_at(few, parts)
    n = len(found.labels)
    return Context(parts, model, False, few, clusters, named(names, shown), n, seen, None, seed, False, vectors=vectors)


def _about_clusters(
    found: _Found, context: Context, X: Any, classes: npt.NDArray | None, shown: npt.NDArray[np.int64]
) -> Section:
    if found.model.n_clusters_ == 0:
        none = "All objects are noise. A smaller min_cluster_size or min_samples may find clusters."
        return Section("clusters", "What the members share", missing=none)
    shares, why = _shares(found, X, context.seed)
    head = ["cluster", "medoid", *(["what the members share"] if any(shares.values()) else [])]
    head += [] if classes is None else ["most frequent class"]
    text_columns = len(head)
    rows: list[list[str | Cell]] = []
    for c in range(found.model.n_clusters_):
        members = np.flatnonzero(found.labels == c)
        if not len(members):
            continue
        medoid = int(np.searchsorted(shown, found.nearest(c)[0]))
        row: list[str | Cell] = [found.name(c), Cell(described(context.seen, medoid), drawn=medoid)]
        if any(shares.values()):
            row.append(", ".join(f"{part.name} ({percent(part.share)})" for part in shares.get(c, [])))
        if classes is not None:
            kinds, counts = np.unique(classes[members], return_counts=True)
            row.append(f"{kinds[counts.argmax()]} ({percent(counts.max() / len(members))})")
        spread = float(found.away[members].mean())
        rows.append([*row, Cell(f"{len(members):,}", len(members)), Cell(number(spread), spread)])
    text = f"The medoid is {found.medoid}. The spread is the mean distance of the members from the {found.middle}. "
    text += why or (
        f"What the members share: the parts that contribute most to the decision for this cluster against all others. "
        f"The percentage after a part says in how many of the examined members it speaks for the cluster. At most "
        f"{_MEMBERS} random members are examined, or 10 if parts are left out to see by how much the decision falls."
    )
    drawn = _stretches(found, X, shares)
    if drawn:
        text += (
            " Each part is a stretch of time in the medoid. Without it, and without what is aligned with it in the "
            "members, the decision falls; the darker a stretch is, the more."
        )
    table = Table("Clusters", rows, [*head, "objects", "spread"], text_columns)
    return Section("clusters", "What the members share", text=text, tables=[table], charts=drawn, beside=False)


def _stretches(found: _Found, X: Any, shares: dict[int, list[SharedPart]]) -> list[Chart]:
    """Draw the medoids of the largest clusters that have stretches of time, and these behind the curve."""
    medoids = {c: parts[0].example for c, parts in shares.items() if parts and parts[0].example is not None}
    largest = sorted(sorted(medoids, key=lambda c: -int((found.labels == c).sum()))[:_SHOWN])

    def draw(*axes: Any) -> None:
        for axis, c in zip(axes, largest, strict=True):
            most = shares[c][0].contribution
            for part in shares[c]:
                shade = 0.1 + 0.4 * part.contribution / most
                axis.axvspan(part.places[0] - 0.5, part.places[-1] + 0.5, color=mark(0)["color"], alpha=shade, lw=0)
            values = np.asarray(item(X, medoids[c]), dtype=np.float64)
            channels = values.reshape(len(values), -1).T[:_CHANNELS]
            times = np.arange(0, len(values), -(-len(values) // _POINTS))
            for channel in channels:
                axis.plot(times, channel[times], color="#1d2126", lw=1)
            axis.set(xlabel="time", ylabel="value")

    titles = [
        f"{found.name(c).capitalize()}: the medoid and the stretches that tell its members apart" for c in largest
    ]
    return charts(draw, *titles)


def _shares(found: _Found, X: Any, seed: int) -> tuple[dict[int, Any], str]:
    """Return the parts that members of each cluster share, and a sentence why there are none."""
    if found.model.n_clusters_ == 1:
        return {}, "There is only one cluster, so nothing distinguishes its members from others."
    try:
        shares = quietly(explain_classes, found.whole, X, n_members=_MEMBERS, random_state=seed)
    except TypeError as error:
        return {}, f"What the members share is not shown: {error}."
    none = "" if any(shares.values()) else "No part that contributes to a decision is shared by members of a cluster."
    return shares, none


def _about_stability(model: KernelKMeans) -> Section:
    numbers, means = model.n_clusters_tried_, model.stability_.mean(axis=1)
    errors = model.stability_.std(axis=1, ddof=1) / np.sqrt(model.stability_.shape[1])

    def draw(axis: Any) -> None:
        axis.errorbar(numbers, means, errors, color=mark(0)["color"], marker="o", markersize=4)
        axis.set(xlabel="number of clusters", ylabel="adjusted Rand index", xticks=numbers)

    copies = means[-1] == 1 and model.n_clusters_ < numbers[-1]  # the last number would have been chosen
    but = f"; {numbers[-1]} clusters would each hold copies of one object" if copies else ""
    text = (
        f"Two random subsamples of the different objects were clustered, {model.stability_.shape[1]} times for each "
        "number of clusters, and compared by their common objects: 1 if both agree, 0 on average by chance. "
        f"The largest number within one standard error of the best was taken: {model.n_clusters_}{but}."
    )
    return Section("stability", "How many clusters", text=text, charts=charts(draw, "Agreement of two subsamples"))


def _about_medoids(found: _Found, context: Context, shown: npt.NDArray[np.int64]) -> Section:
    k = found.model.n_clusters_
    if k == 0:
        return Section("medoids", "Medoids and their nearest members", missing="There is no cluster.")
    counts = np.bincount(found.labels[found.labels >= 0], minlength=k)
    largest = [c for c in np.argsort(-counts, kind="stable")[:_SHOWN].tolist() if counts[c]]
    medoids = []
    for c in largest:
        rows = found.nearest(c)
        medoid, *near = np.searchsorted(shown, rows).tolist()
        medoids.append({
            "object": object_on_page(context, medoid),
            "near": [
                (number(float(found.away[i])), object_on_page(context, j))
                for i, j in zip(rows[1:].tolist(), near, strict=True)
            ],
            "explained": explained(found.whole, item(context.X, medoid)),
            "why": "Why it belongs to its cluster",
            "is_open": False,
        })  # fmt: skip
    more = f" The {_SHOWN} largest of {k} clusters." if k > _SHOWN else ""
    nearest = "The member nearest to each centre" if found.middle == "centre" else "The medoid of each cluster"
    text = f"{nearest}, and the next {_NEAR}, with their distances from the {found.middle}.{more}"
    return Section("medoids", "Medoids and their nearest members", text=text, neighbourhoods=medoids)
