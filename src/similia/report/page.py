"""`write_report` writes an HTML page about a model and its data, and how far to trust the model.

The page is a single file; its security policy forbids it to fetch anything. Cost: `cv` fits of a copy of the model,
one transform of all objects, and measurements on a few hundred of them.
"""

from __future__ import annotations

import os
from typing import Any, TextIO

from similia.core.errors import BadParameter
from similia.core.validation import check_positive_int
from similia.report._context import Context, for_page, gather
from similia.similarity import without_addresses
from similia.storage.disk import text_destination, write_text


def write_report(
    model: Any, X: Any, y: Any = None, path: str | os.PathLike[str] | TextIO = "report.html", *,
    title: str | None = None, names: Any = None, unseen: bool = False, cv: int = 5, groups: Any = None,
    max_objects: int = 5000, random_state: int = 0,
) -> Any:  # fmt: skip
    """Write a report on a model and objects as one self-contained HTML page.

    If a section cannot be made, the page gives the reason instead. For a `ConformalClassifier` or `ConformalRegressor`,
    a section compares the coverage of its sets or intervals, also within each class, with the coverage asked for.

    Parameters
    ----------
    model : estimator or pipeline
        A model of `similia.recipes`, or your own pipeline, with or without a classifier or regressor at its end. If the
        model is not fitted, a copy of it is fitted to the objects on the page. If `model` is a fitted parameter search,
        the report shows the model that the search chose.
    X : collection of n objects
        Objects in any form that the model takes.
    y : array-like of n labels or numbers, optional
        Targets. Without them, the page has no scores.
    path : str, path or text file, default="report.html"
        Destination. An existing file is replaced only when the page is complete. An open text file, such as
        `io.StringIO`, is written at its current position.
    title : str, optional
        Title of the page.
    names : sequence of n str, optional
        Names of the objects; by default their positions in `X`.
    unseen : bool, default=False
        Whether the model was fitted without any object of `X`. If True, the predictions of the model itself are scored.
        If False, the report cross-validates: a copy of the model, fitted to the other folds, predicts each fold. The
        copy also refits estimators that are wrapped in scikit-learn's `FrozenEstimator`.
    cv : int, default=5
        Number of folds, at least 2; fewer are used if there are too few objects. Equal objects are in the same fold. So
        are near copies of texts, at least 80 % of whose words are the same. Near copies may be in different folds in
        three cases: you give `groups`; there are more near copies of one text than a fold holds; or keeping them
        together would leave some folds without a text of a class.
    groups : array-like of shape (n,), optional
        Group of each object, such as a patient; the objects of a group are in the same fold.
    max_objects : int, default=5000
        Maximum number of objects on the page. If there are more, a random sample is used and the page says so.
    random_state : int, default=0
        Seed for drawing objects and folds.

    Returns
    -------
    Path or text file
        Where the report was written.

    Raises
    ------
    TypeError
        If `path` is neither a path nor a file that is open for text.
    ValueError
        If there are no objects, or `y` or `names` has another length than `X`; if `unseen` is True but the model is not
        fitted; if the kernel is precomputed; or if `model` neither predicts nor transforms, such as a
        `similia.SimilaritySearch`.
    FileNotFoundError
        If the folder of `path` does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import similia as sm
    >>> from similia.report import write_report
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), n_landmarks=50, n_bits=512, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, X, y, f"{folder}/report.html")
    ...     "How well it predicts" in path.read_text()
    True
    """
    return write_with_scores(
        model, X, y, path, title=title, names=names, unseen=unseen, cv=cv, groups=groups, max_objects=max_objects,
        random_state=random_state,
    )[0]  # fmt: skip


def write_with_scores(
    model: Any, X: Any, y: Any, path: Any, *, title: str | None = None, names: Any = None, unseen: bool = False,
    cv: int = 5, groups: Any = None, max_objects: int = 5000, random_state: int = 0,
) -> tuple[Any, dict[str, Any] | None, str]:  # fmt: skip
    """Write a report like `write_report`; return its place, the main scores or None, and why there are none."""
    from similia.report._sections import summary

    place = text_destination(path)
    check_positive_int(cv, "cv", minimum=2)
    check_positive_int(max_objects, "max_objects", minimum=2)
    if not hasattr(model, "transform") and not hasattr(model, "predict"):
        remedy = "for a search, use similia.report.write_search"
        raise BadParameter("model", "an estimator that predicts or transforms", type(model).__name__, remedy)
    context = gather(model, X, y, names, unseen, cv, max_objects, random_state, groups)
    write_text(_page_of(context, title), place)
    return place, summary(context), context.unscored


def _page_of(context: Context, title: str | None) -> str:
    from similia.report import _sections as about
    from similia.report._render import page

    sections = [
        about.about_data(context),
        about.about_accuracy(context),
        *([] if context.is_regression else [about.about_confusion(context), about.about_calibration(context)]),
        *([] if (sets := about.about_sets(context)) is None else [sets]),
        about.about_map(context),
        about.about_neighbours(context),
        about.about_spectrum(context),
        about.about_approximation(context),
        about.about_bits(context),
        about.about_cost(context),
    ]
    counted = f"of {context.n_all:,}, drawn at random" if context.n < context.n_all else context.seen.kind
    data: dict[str, Any] = {"objects": for_page(context.seen), "names": context.names}
    for section in sections:
        data |= section.data
    return page(
        "page",
        title=title or f"Report: {context.seen.kind}",
        model=context.parts,
        parameters=without_addresses(context.parts.whole),
        cards=[("objects", f"{context.n:,}", counted), *(card for section in sections for card in section.cards)],
        sections=sections,
        data=data,
    )
