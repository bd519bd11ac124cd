"""`write_map` writes a map of objects as an HTML page to explore: zoom, search, and choose objects with a lasso.

Coordinates are packed as 16-bit integers, 4 bytes for each object, and drawn into an array of pixels. Cost: one
transform of the objects. The drawing of an object takes about 500 bytes of the page.
"""

from __future__ import annotations

import base64
import os
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from similia.core.validation import BadParameter, check_labels, check_positive_int
from similia.learn.targets import as_numbers
from similia.objects.sequences import at_least_one
from similia.report._context import TEXTS, checked_names, for_page, look_at, refuse_path
from similia.report._model import ending_in, fitted, parts_of, sampled, taken
from similia.report._render import legible, page
from similia.search.similarity_map import SimilarityMap
from similia.similarity import metric_from, without_addresses
from similia.sources.dask import refuse_lazy
from similia.storage.disk import text_destination, write_text

_MOST_KEYS = 20  # classes with their own colour; the last stands for all others if there are more
_SIDE = 2**16 - 1  # coordinates are integers from 0 to this


def write_map(
    model: Any, X: Any, color: Any = None, path: str | os.PathLike[str] | TextIO = "map.html", *,
    title: str | None = None, names: Any = None, points: Any = None, color_name: str = "label",
    max_objects: int = 100_000, max_drawings: int = 20_000, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write a map of objects as one self-contained HTML page, to explore in a browser.

    Parameters
    ----------
    model : SimilarityMap or pipeline
        The map, or a pipeline that ends in one, such as a vectorizer of scikit-learn and a map of its vectors. If it is
        not fitted, a copy of it is fitted to the objects on the page. The page shows the objects that the pipeline
        takes, such as texts.
    X : collection of n objects
        Objects in any form that the similarity of the map, or the first step of the pipeline, accepts.
    color : array-like of n labels or numbers, optional
        Labels or numbers that the colours show. Booleans, text, and integers with at most 20 different values are
        classes; other numbers are shown on a colour scale. There is one exception: if every text is a number, such as
        "1.5", the texts are read as numbers. With more than 20 classes, the rarest classes share a colour.
    path : str, path or text file, default="map.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str, optional
        Names of the objects, which the page lists when you select objects with the lasso; by default their positions in
        `X`.
    points : ndarray, shape (n, 2), optional
        Coordinates of the objects on a fitted map, if you already have them, such as the result of
        ``model.fit_transform(X)``. By default, ``model.transform(X)`` computes them.
    color_name : str, default="label"
        Name of `color` on the page.
    max_objects : int, default=100_000
        Maximum number of objects on the page. If there are more, a random sample is used and the page says so.
    max_drawings : int, default=20_000
        Maximum number of drawings on the page. When you point at a graph, series, set or vector, the page shows its
        drawing. If there are more objects, a random sample has drawings, the others are described in words, and the
        page says so.
    random_state : int, default=0
        Seed of the random samples of objects and of drawings.

    Returns
    -------
    Path or text file
        Where the page was written.

    Raises
    ------
    ValueError
        If `model` neither is nor ends in a `SimilarityMap`, if there are no objects, or if the length of `color`,
        `names` or `points` is not that of `X`.
    TypeError
        If `X` is a Dask collection: a page holds objects in memory.
    FileNotFoundError
        If the folder of `path` does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_map
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> map = sm.SimilarityMap(sm.kernels.GappyKmers(k=4, gaps=1, normalize=True), random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_map(map, X, y, f"{folder}/map.html")
    ...     "Search names, labels and texts" in path.read_text()
    True
    """
    refuse_path(color, "color")
    place = text_destination(path)
    *before, placed = ending_in(model, SimilarityMap)
    refuse_lazy(X, "the page holds its objects; give X.compute() or, if it is too large, a random sample of it")
    check_positive_int(max_objects, "max_objects", minimum=2)
    check_positive_int(max_drawings, "max_drawings", minimum=0)
    n = at_least_one(X)
    labels = None if color is None else check_labels(color, n)
    names = checked_names(names, n)
    rng = np.random.default_rng(random_state)
    chosen = sampled(X, max_objects, rng)
    X = taken(X, chosen)
    if not before:
        X = metric_from(placed.similarity, "similarity").as_objects(X)
    places = None if points is None else np.asarray(points, dtype=np.float64)
    if places is not None and (places.shape != (n, 2) or not np.isfinite(places).all()):
        raise BadParameter("points", f"finite numbers of shape ({n}, 2)", f"shape {places.shape}")
    if not fitted(model):
        *before, placed = ending_in(clone(model).fit(X), SimilarityMap)
        found = placed.embedding_
    else:
        found = np.asarray(model.transform(X)) if places is None else places[chosen]
    seen = look_at(X, parts_of(model))
    drawn = np.zeros(len(chosen), dtype=bool)
    drawn[rng.permutation(len(chosen))[:max_drawings]] = True
    data: dict[str, Any] = {
        "xy": _packed(_on_the_page(found)), "objects": for_page(seen, drawn), "color": color_name,
        "names": None if names is None else [legible(names[i]) for i in chosen.tolist()],
        "rows": chosen.tolist() if len(chosen) < n else None,
    }  # fmt: skip
    data |= _colored(None if labels is None else labels[chosen], len(chosen))
    text = page(
        "map", title=title or f"Map of {seen.kind}", count=len(chosen), data=data,
        about=_about(before, placed, seen.kind, int(drawn.sum()), len(chosen), n),
    )  # fmt: skip
    write_text(text, place)
    return place


def _about(before: list[Any], model: Any, kind: str, n_drawn: int, n: int, n_all: int) -> str:
    """Return sentences on the similarity, on how far neighbours on the map can be trusted, and on what is left out."""
    sample = f", drawn at random of {n_all:,}" if n < n_all else ""
    some = n_drawn < n and kind not in TEXTS
    drawings = f" The page holds drawings of {n_drawn:,} of them, chosen at random." if some else ""
    after = f" after {' → '.join(type(step).__name__ for step in before)}" if before else ""
    kept = (
        f"Trustworthiness {model.trustworthiness_:.2f} (1 if all neighbours on the map are true neighbours), "
        f"continuity {model.continuity_:.2f} (1 if all true neighbours are neighbours on the map); both are about 0.5 "
        f"for random places (more if many distances are equal)."
    )
    if np.isnan(model.trustworthiness_):
        kept = "Trustworthiness and continuity need a map of at least 3 objects."
    return f"{n:,} {kind}{sample}, by {without_addresses(model.similarity)}{after}. {kept}{drawings}"


def _on_the_page(points: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """Return coordinates as integers from 0 to 65535, on one scale for both axes, centred, with y downwards."""
    low, high = points.min(axis=0), points.max(axis=0)
    spread = float((high - low).max()) or 1.0
    places = ((points - (low + high) / 2) / spread * [1, -1] + 0.5) * _SIDE
    return np.clip(np.rint(places), 0, _SIDE).astype("<u2")


def _packed(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _colored(labels: npt.NDArray | None, n: int) -> dict[str, Any]:
    """Return the data of the page for colours and the legend.

    ``code`` holds a byte for each object: the number of its class, or its place on the scale of numbers. ``labels`` is
    None without labels, a list of values if the legend does not name them, and otherwise empty.
    """
    if labels is None:
        return {"code": _packed(np.zeros(n, np.uint8)), "labels": None, "keys": [""], "counts": [n], "other": False}
    numbers = as_numbers(labels)
    whole = numbers is not None and labels.dtype.kind != "f" and bool((numbers == np.rint(numbers)).all())
    if numbers is not None and labels.dtype.kind != "b" and (not whole or len(np.unique(numbers)) > _MOST_KEYS):
        low, high = float(numbers.min()), float(numbers.max())
        share = (numbers - low) / (high - low) if high > low else np.zeros(n)
        code = np.rint(255 * share).astype(np.uint8)
        values = [float(f"{value:.6g}") for value in numbers.tolist()]
        return {"code": _packed(code), "labels": values, "keys": None, "range": [f"{low:.4g}", f"{high:.4g}"]}
    texts = np.array([legible(label) for label in labels.tolist()], dtype=object)
    classes, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")
    other = len(classes) > _MOST_KEYS
    ranks = np.empty(len(classes), np.int64)
    ranks[frequent] = np.minimum(np.arange(len(classes)), _MOST_KEYS - 1)
    shown = [str(name) for name in classes[frequent]]
    keys = [*shown[: _MOST_KEYS - 1], f"{len(classes) - _MOST_KEYS + 1} others"] if other else shown
    ranked = ranks[codes.ravel()]
    return {
        "code": _packed(ranked.astype(np.uint8)), "labels": texts.tolist() if other else [], "keys": keys,
        "counts": np.bincount(ranked, minlength=len(keys)).tolist(), "other": other,
    }  # fmt: skip
