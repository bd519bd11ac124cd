r"""`explain` shows why two objects are similar, and which parts of an object lead to its prediction.

Parts are exact wherever the kernel, distance or decision is a sum: over shared features, over the steps of an
alignment, over nearest points, or over the features of a linear model. The residual shows what the parts leave out.

Source: linear decisions over the features of a kernel are decomposed as in Rätsch, Sonnenburg & Schäfer,
"Learning interpretable SVMs for biological sequence classification", BMC Bioinformatics 7 (Suppl. 1), 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from similia.core.validation import check_positive_int
from similia.explanations._explanation import Explanation, Found, explained
from similia.explanations._models import comparison_of, prediction
from similia.explanations._pairs import WHAT, Naming, NoParts, distance_pair, one, pair
from similia.explanations._views import names_of_labels, view_of
from similia.similarity import Distance, name_of, refuse_class, without_addresses


def explain(
    what: Any, x: Any, y: Any = None, *, top: int = 10, label_names: Mapping[int, str] | None = None
) -> Explanation:
    """Explain a similarity, a distance or a prediction as a sum of parts.

    Parameters
    ----------
    what : kernel, distance, or fitted estimator
        What to explain. With `y`, the kernel or distance of an estimator (a pipeline, or a search over pipelines)
        explains how similar `x` and `y` are. Without `y`, the estimator's decision for `x` is explained; its learner
        must be a linear model, a support-vector machine, `HDClassifier` or nearest neighbours. For voting and
        calibrated models, one member is explained. Transformed targets are transformed back.
    x : object
        One string, graph, series, point set or vector, or a batch of one.
    y : object, optional
        The object to compare x with.
    top : int, default=10
        Maximum number of parts to list.
    label_names : mapping of int to str, optional
        Names of integer node labels, such as ``{0: "C", 1: "N"}`` for a data set that numbers its atoms. Graphs that
        carry names (text labels of networkx, symbols of RDKit) do not need it.

    Returns
    -------
    Explanation
        The largest parts, each with its places in x and y, and the residual. A decision compares the predicted class
        with the second best and is above 0.

    Raises
    ------
    TypeError
        If `what` cannot be split into parts, or `x` is not the kind of object it compares.
    ValueError
        If x or y is not a single object, or an alignment does not fit into ``similia.config(max_memory=...)``.

    Notes
    -----
    The parts are exact for kernels with features, alignments and set distances; for linear models on
    `KernelFeatures`, `Nystroem`, `D2KE` or columns; and for nearest neighbours, whose parts are training objects. They
    are also exact for nonlinear support-vector machines on vectors (an RBF kernel), by integrated gradients from the
    zero vector. The entropy of soft alignments and the nonlinear share of signs of random projections stay unexplained.

    References
    ----------
    Sundararajan, Taly & Yan, "Axiomatic attribution for deep networks", ICML 2017 (integrated gradients).

    Examples
    --------
    >>> from similia.explanations import explain
    >>> from similia.kernels import Spectrum
    >>> found = explain(Spectrum(k=3), "GATTACA", "ATTACC")
    >>> found.value, [(part.name, part.contribution) for part in found.parts]
    (3.0, [('ATT', 1.0), ('TTA', 1.0), ('TAC', 1.0)])
    >>> found.parts[0].in_x, found.parts[0].in_y
    (array([1, 2, 3]), array([0, 1, 2]))
    """
    refuse_class(what, "what is to be explained")
    check_positive_int(top, "top")
    naming = {**names_of_labels(x), **names_of_labels(y), **dict(label_names or {})}
    compares = callable(what)
    if y is None:
        if compares:
            raise ValueError(
                f"{name_of(what)} compares two objects, got one; write explain({name_of(what)}(...), x, y)"
            )
        if not hasattr(what, "predict") and not hasattr(what, "best_"):
            raise TypeError(f"{name_of(what)} is not a fitted model that predicts; {WHAT}")
        return prediction(what, x, naming, top)
    compared = what if compares else comparison_of(what)
    X, Y = one(compared, x, "x"), one(compared, y, "y")
    views = view_of(X, naming), view_of(Y, naming)
    try:
        value, kind, found, note = _compared(compared, X, Y, naming)
    except NoParts as error:
        raise TypeError(str(error)) from None
    title = f"{kind} of x and y by {without_addresses(compared)}"
    return explained(value, kind, found, top, title=title, note=note, views=views)


def _compared(compared: Any, X: Any, Y: Any, naming: Naming) -> tuple[float, str, Found, str]:
    """Return (value, kind, parts, note) of a kernel or a distance."""
    if not isinstance(compared, Distance):
        return pair(compared, X, Y, naming)
    d, scale, found, note = distance_pair(compared, X, Y)
    return d**scale, "squared distance" if scale == 2 else "distance", found, note
