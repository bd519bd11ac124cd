"""`write_clusters` writes an HTML page about clusters: their sizes and medoids, what members share, and a map.

The page is a single file; its security policy forbids it to fetch anything. Cost: two transforms of all objects, one of
those on the map, and `similia.explanations.explain_classes` with 30 members of each cluster.
"""

from __future__ import annotations

import os
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

from similia.core.errors import BadParameter
from similia.core.estimators import check_fitted
from similia.core.text import counted, number
from similia.core.validation import check_labels, check_positive_int
from similia.explanations import SharedPart, explain_classes
from similia.learn.clusters import KernelKMeans
from similia.objects.sequences import at_least_one, item
from similia.report._context import Context, checked_names, described, for_page, look_at, named, quietly
from similia.report._model import Embedded, parts_of, sampled, taken
from similia.report._render import Cell, Chart, Section, Table, charts, page, percent
from similia.report.displays import mark
from similia.report.page import about_map, explained, object_on_page
from similia.similarity import without_addresses
from similia.storage.disk import text_destination, write_text

_MEMBERS, _NEAR = 30, 4  # of a cluster: members that are explained, and members shown beside the medoid
_AGREEMENT = "adjusted Rand index with the given classes: 1 if they are the same, 0 on average by chance"
_SHOWN = 20  # maximum number of clusters whose medoids are shown with their neighbours, or drawn with stretches
_CHANNELS, _POINTS = 6, 1000  # maximum numbers of channels and of points of a curve that are drawn


def write_clusters(
    model: KernelKMeans, X: Any, y: Any = None, path: str | os.PathLike[str] | TextIO = "clusters.html", *,
    title: str | None = None, names: Any = None, max_objects: int = 5000, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write one self-contained HTML page about the clusters of objects.

    The page shows the medoids. It also lists the parts that tell the members of each cluster from all other clusters,
    such as substrings, subgraphs or stretches of time; `similia.explanations.explain_classes` finds these parts.
    Stretches of time are drawn over the medoid.

    Parameters
    ----------
    model : KernelKMeans
        A fitted model.
    X : collection of n objects
        Objects in any form that the model takes, usually those to which it was fitted.
    y : array-like of n labels, optional
        Known classes of the objects. The page says how well the clusters agree with them.
    path : str, path or text file, default="clusters.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str, optional
        Names of the objects; by default their positions in `X`.
    max_objects : int, default=5000
        Maximum number of objects sampled for the map on the page, a plot of the first two principal components. The map
        also shows the five members nearest to the centre of each cluster. Sizes and medoids are always those of all n
        objects.
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
        If `model` is not a `KernelKMeans`, if there are no objects, or if the length of `y` or `names` is not that of
        `X`.
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
    place = text_destination(path)
    if not isinstance(model, KernelKMeans):
        raise BadParameter("model", "a similia.KernelKMeans", type(model).__name__)
    check_fitted(model)
    check_positive_int(max_objects, "max_objects", minimum=2)
    n = at_least_one(X)
    classes = None if y is None else check_labels(y, n)
    names = checked_names(names, n)
    X = quietly(model.similarity_.as_objects, X) if hasattr(model.similarity_, "as_objects") else X
    distances = np.asarray(model.transform(X))
    labels = distances.argmin(axis=1)
    shown = _shown(distances, labels, max_objects, random_state)
    context = _context(model, X, labels, shown, names, random_state)
    sections = [
        _about_clusters(model, context, X, labels, distances, classes, shown),
        *([_about_stability(model)] if len(model.n_clusters_tried_) else []),
        about_map(context),
        _about_medoids(model, context, labels, distances, shown),
    ]
    data: dict[str, Any] = {"objects": for_page(context.seen), "names": context.names}
    for section in sections:
        data |= section.data
    chosen = "chosen by stability" if len(model.n_clusters_tried_) else "as requested"
    agreement = [] if classes is None else [("agreement", f"{adjusted_rand_score(classes, labels):.2f}", _AGREEMENT)]
    text = page(
        "page", title=title or f"Clusters of {context.seen.kind}", model=context.parts,
        parameters=without_addresses(model),
        cards=[
            ("objects", f"{n:,}", context.seen.kind), ("clusters", str(model.n_clusters_), chosen), *agreement,
        ],
        sections=sections, data=data,
    )  # fmt: skip
    write_text(text, place)
    return place


def _name(model: KernelKMeans, cluster: int) -> str:
    return f"cluster {cluster:0{len(str(model.n_clusters_ - 1))}d}"


def _shown(distances: npt.NDArray, labels: npt.NDArray, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the positions of a random sample of `most` objects, and of the objects nearest to each centre."""
    rows = sampled(labels, most, np.random.default_rng(seed))
    near = [_nearest(distances, labels, c) for c in range(distances.shape[1])]
    return np.unique(np.concatenate([rows, *near]))


def _nearest(distances: npt.NDArray, labels: npt.NDArray, cluster: int) -> npt.NDArray[np.int64]:
    """Return the positions of the members nearest to the centre, nearest first."""
    members = np.flatnonzero(labels == cluster)
    return members[np.argsort(distances[members, cluster], kind="stable")][: 1 + _NEAR]


def _context(
    model: KernelKMeans, X: Any, labels: npt.NDArray, shown: npt.NDArray[np.int64], names: Any, seed: int
) -> Context:
    """Return what the sections share; the class of an object is its cluster."""
    few, parts = taken(X, shown), parts_of(model)
    clusters = np.array([_name(model, c) for c in labels[shown].tolist()])
    how = f"{type(model.embedding_).__name__}, {counted(model.embedding_._n_features_out, 'column')}"
    vectors = Embedded(np.asarray(model.embedding_.transform(few)), None, how)
    seen = look_at(few, parts)
    return Context(
        parts, model, False, few, clusters, named(names, shown), len(labels), seen, None, seed, False, vectors=vectors
    )


def _about_clusters(
    model: KernelKMeans, context: Context, X: Any, labels: npt.NDArray, distances: npt.NDArray,
    classes: npt.NDArray | None, shown: npt.NDArray[np.int64],
) -> Section:  # fmt: skip
    """List the clusters: size, spread, medoid, what members share and, if classes are known, the most frequent one."""
    shares, why = _shares(model, X, context.seed)
    head = ["cluster", "medoid", *(["what the members share"] if any(shares.values()) else [])]
    head += [] if classes is None else ["most frequent class"]
    text_columns = len(head)
    rows: list[list[str | Cell]] = []
    for c in range(model.n_clusters_):
        members = np.flatnonzero(labels == c)
        if not len(members):
            continue
        medoid = int(np.searchsorted(shown, _nearest(distances, labels, c)[0]))
        row: list[str | Cell] = [_name(model, c), Cell(described(context.seen, medoid), drawn=medoid)]
        if any(shares.values()):
            row.append(", ".join(f"{part.name} ({percent(part.share)})" for part in shares.get(c, [])))
        if classes is not None:
            kinds, counts = np.unique(classes[members], return_counts=True)
            row.append(f"{kinds[counts.argmax()]} ({percent(counts.max() / len(members))})")
        spread = float(distances[members, c].mean())
        rows.append([*row, Cell(f"{len(members):,}", len(members)), Cell(number(spread), spread)])
    text = (
        "The medoid is the object nearest to the centre of its cluster. The spread is the mean distance of the members "
        "from the centre. "
    )
    text += why or (
        f"What the members share: the parts that contribute most to the decision for this cluster against all others, "
        f"and the share of at most {_MEMBERS} random members (10 if parts are left out of them) in which they do."
    )
    drawn = _stretches(model, X, shares)
    if drawn:
        text += (
            " Each part is a stretch of time in the medoid. Without it, and without what is aligned with it in the "
            "members, the decision falls; the darker a stretch is, the more."
        )
    table = Table("Clusters", rows, [*head, "objects", "spread"], text_columns)
    return Section("clusters", "What the members share", text=text, tables=[table], charts=drawn, beside=False)


def _stretches(model: KernelKMeans, X: Any, shares: dict[int, list[SharedPart]]) -> list[Chart]:
    """Draw the medoids of the largest clusters that have stretches of time, and these behind the curve."""
    medoids = {c: parts[0].example for c, parts in shares.items() if parts and parts[0].example is not None}
    largest = sorted(sorted(medoids, key=lambda c: -int(model.counts_[c]))[:_SHOWN])

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
        f"{_name(model, c).capitalize()}: the medoid and the stretches that tell its members apart" for c in largest
    ]
    return charts(draw, *titles)


def _shares(model: KernelKMeans, X: Any, seed: int) -> tuple[dict[int, Any], str]:
    """Return the parts that members of each cluster share, and a sentence why there are none."""
    if model.n_clusters_ == 1:
        return {}, "There is only one cluster, so nothing distinguishes its members from others."
    try:
        shares = quietly(explain_classes, model, X, n_members=_MEMBERS, random_state=seed)
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


def _about_medoids(
    model: KernelKMeans, context: Context, labels: npt.NDArray, distances: npt.NDArray, shown: npt.NDArray[np.int64]
) -> Section:
    """Show the medoid of each of the largest clusters beside its next members, and explain why it belongs there."""
    counts = np.bincount(labels, minlength=model.n_clusters_)
    largest = [c for c in np.argsort(-counts, kind="stable")[:_SHOWN].tolist() if counts[c]]
    found = []
    for c in largest:
        rows = _nearest(distances, labels, c)
        medoid, *near = np.searchsorted(shown, rows).tolist()
        found.append({
            "object": object_on_page(context, medoid),
            "near": [
                (number(float(distances[i, c])), object_on_page(context, j))
                for i, j in zip(rows[1:].tolist(), near, strict=True)
            ],
            "explained": explained(model, item(context.X, medoid)),
            "why": "Why it belongs to its cluster",
            "is_open": False,
        })  # fmt: skip
    more = f" The {_SHOWN} largest of {model.n_clusters_} clusters." if model.n_clusters_ > _SHOWN else ""
    text = f"The object nearest to each centre, and the next {_NEAR}, with their distances from the centre.{more}"
    return Section("medoids", "Medoids and their nearest members", text=text, neighbourhoods=found)
