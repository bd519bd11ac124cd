r"""`explain` shows why two objects are similar, and which parts of an object lead to its prediction.

A prediction is a decision sum_j w_j f_j(x) + b, where f is the output of the model's first step:

===================  ==============================================================================================
first step           parts of the decision
===================  ==============================================================================================
`KernelFeatures`     w_f phi_f(x) for each feature f of x, by name
`Nystroem`           the embedding is k(x, landmarks) M, so the decision is sum_l alpha_l k(x, l), alpha = M w; if the
                     kernel has features, a part for each feature of x (of `Cosine`, each column), otherwise
                     alpha_l k(x, l) for each landmark l (see `_comparisons`)
`KernelSVC`, ...     the same with the support vectors or training objects as landmarks
`KernelKMeans`       the decision between the two nearest centres is linear in the embedding, as above
nearest neighbours   the share of each neighbour in the votes, or in the mean of targets
`OutlierDetector`    no decision, but the distance to the k-th neighbour, as between two objects
`D2KE`               w_j (f_j(x) - mean) for each random object; it says for which class being near to it counts
`Hydra`, ...         stretches of time: the shares of their points in the sum of w_j (f_j(x) - mean)
`FeatureUnion`       the parts of each of its transformers
anything else        w_j (f_j(x) - mean) for each column; the mean only where the model subtracts it
===================  ==============================================================================================

Steps before a `KernelFeatures`, `Nystroem` or `D2KE`, such as a vectorizer of texts, transform x first.

Source: linear decisions over the features of a kernel are decomposed as in Rätsch, Sonnenburg & Schäfer,
"Learning interpretable SVMs for biological sequence classification", BMC Bioinformatics 7 (Suppl. 1), 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from similia.core.estimators import ObjectsOut, check_fitted
from similia.core.validation import check_positive_int
from similia.embeddings import D2KE, KernelFeatures, Nystroem
from similia.explanations import _decisions as decisions
from similia.explanations._comparisons import (
    WHAT,
    Naming,
    columns_of,
    distance_pair,
    one_object,
    pair,
    power_of,
    sum_parts,
)
from similia.explanations._decisions import called, collection, note_of_length, parts_of_decision
from similia.explanations._explanation import (
    INTERCEPT,
    NOWHERE,
    Described,
    Explanation,
    Floats,
    Found,
    NoParts,
    Part,
    explained,
)
from similia.explanations._features import note_of_gaps
from similia.explanations._left_out import through, with_left_out, without_parts
from similia.explanations._views import described, names_of_labels, one_note, view_of
from similia.kernels.hypersphere import as_rows, to_hypersphere
from similia.learn.clusters import KernelKMeans
from similia.learn.gaussian_process import GaussianProcess, GaussianProcessRegressor
from similia.learn.gaussian_process_classifier import GaussianProcessClassifier
from similia.learn.heat_svc import HeatSVC
from similia.learn.kernel_machines import KernelMachine, KernelRidge, KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.learn.outliers import OutlierDetector
from similia.learn.vote import VoteRegressor
from similia.objects import GraphToSets, SeriesToSets, take
from similia.objects.sequences import Batch
from similia.objects.series import SeriesBatch
from similia.objects.tables import is_frame, to_array
from similia.pipelines import members_of, parts_of, steps_of
from similia.similarity import (
    Distance,
    Kernel,
    as_objects,
    diagonal,
    evaluate,
    name_of,
    refuse_class,
    without_addresses,
)

_TIMES = "columns are split by time; in a part, all points of time add more than the mean amount, or all less"
_NEAR = "(near: CLASS) says that a small distance to that object counts for CLASS"
_SCALED = "numbers in the names of parts and in these notes are in the units of the scaled targets"
_AFFINE = ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler")  # transforms of targets


def explain(
    what: Any, x: Any, y: Any = None, *, top: int = 10, label_names: Mapping[int, str] | None = None
) -> Explanation:
    """Explain a similarity, a distance or a prediction as a sum of parts.

    Parameters
    ----------
    what : kernel, distance, or fitted estimator
        With `y`, the kernel or distance whose value for `x` and `y` is explained, or an estimator (a pipeline, or a
        search over pipelines) that contains such a kernel or distance. Without `y`, the fitted estimator whose decision
        for `x` is explained; see Notes for the learners that may be its last step.
    x : object
        One string, graph, series, point set or vector (also a sparse row, or a row of a data frame), or a batch of
        `similia.objects`, a matrix or a data frame that holds one of these. A list counts as one object itself.
    y : object, optional
        The object to compare x with.
    top : int, default=10
        Maximum number of parts to list.
    label_names : mapping of int to str, optional
        Names of integer node labels, such as ``{0: "C", 1: "N"}`` for molecules whose elements are stored as numbers.
        Not needed for graphs whose labels are names already (text labels of networkx, symbols of RDKit).

    Returns
    -------
    Explanation
        The explained value, its largest parts (each with its places in x and y) and the residual. The value of a
        decision is the score of the predicted class minus the score of its closest rival. For linear models of two
        classes, it is the absolute value of `decision_function`. For a `GaussianProcessClassifier` of more than two
        classes, the value is the score of the predicted class against all others. One-vs-one classifiers (such as
        `KernelSVC`) have a binary classifier for each pair of classes; the value is the output of the classifier for
        the predicted class and its closest rival. With more than two classes, the value may be negative, because the
        predicted class wins most of its comparisons but not necessarily all.

    Raises
    ------
    TypeError
        If `x` is not the kind of object that `what` compares, or if `what` is a kernel or distance that cannot be split
        into parts. If a prediction cannot be split, `explain` instead leaves out letters, time points, nodes, points or
        columns of x and measures how the prediction changes (see Notes). It raises TypeError only if x has none of
        these, if x is a vector and the model keeps no training objects, or if a classifier gives no scores.
    ValueError
        If x or y is not a single object, or if an alignment does not fit into ``similia.config(max_memory=...)``.

    Notes
    -----
    **Models.** `explain` finds parts if the learner is a linear model, a support-vector machine, kernel ridge
    regression, a Gaussian process, random or extremely randomised trees, nearest neighbours, or
    `similia.learn.HDClassifier` after a `similia.SignRandomProjection` whose `projection_` is not None, as with
    ``method="gaussian"``. For `similia.learn.KernelKMeans`, the decision is the squared distance to the second nearest
    centre minus the squared distance to the nearest centre. For a `similia.learn.OutlierDetector` with
    ``method="neighbors"``, the explained value is the distance from x to its k-th nearest training object, where k is
    `n_neighbors_`. If this distance has no parts, as by `similia.kernels.RBF`, or with another method, the value is the
    strangeness of x, and `left_out` says which places or columns make x strange. For voting and calibrated models,
    `explain` explains one of the combined models, if possible one that agrees with the overall prediction. If the
    targets were scaled linearly for training, the parts are in the original units of the targets. If they were
    transformed in another way, the parts are in the transformed units, and the `note` of the result gives the
    prediction in original units.

    **Names of columns.** Parts that are columns of vectors have the names of the data frame to which the model was
    fitted, or from which x is a row. After steps such as scikit-learn's ``TfidfVectorizer`` or ``ColumnTransformer``,
    they have the names that ``get_feature_names_out`` returns, such as words. Without names, they have numbers.

    **Exactness.** The parts add up to the value exactly for alignments, set distances and kernels with features; for
    linear models on `KernelFeatures`, `Nystroem`, `D2KE` or vectors; and for nearest neighbours, where the parts are
    training objects. The same holds for nonlinear support-vector machines on vectors (RBF, polynomial and sigmoid
    kernels), whose parts are integrated gradients from the zero vector. It also holds for trees: each split on the
    decision path of x changes the mean target, and the part of a column is the sum of the changes at its splits
    (Saabas). The columns of `RandomConvolutions`, `Hydra` and `IntervalQuantiles` are statistics over time. Their
    contributions to a linear model or to trees are split over the time points by the embedding's method
    ``time_shares``, so the parts are stretches of time. They add up to the value except for rounding errors of float32.

    **Parts without places.** The parts of some embeddings, such as `D2KE`, `MeanMapFeatures` and `GraphletSampling`,
    and of some distances have no places in x. Learners not named under **Models**, such as gradient boosting, have no
    parts at all. In both cases, `left_out` of the result says which places of x (letters, time points, nodes or points)
    matter. To find these places, the model predicts up to about 120 times, each time without one place or a group of
    neighbouring places, and then up to `top` times more.

    **Columns without parts.** If a model compares vectors by a kernel or distance without parts by column, such as
    `similia.kernels.RBF` or `similia.kernels.HypersphericalHeat`, the parts are training objects, and `left_out` says
    which columns matter. In place of a column of x, `explain` puts its mean over the training objects that the model
    keeps (support objects, landmarks, or all of them), and predicts again. Only single columns are left out, at most
    120: those in which x differs most from the mean. Of a sparse row, only columns that are not 0 are left out. The
    columns are those that the kernel compares, after steps such as ``StandardScaler``. A kernel on the sphere ignores
    the length of a vector, so x and the training objects are first divided by their sums (``mapping="sqrt"``) or norms
    (``mapping="projection"``). The columns of a model that keeps no training objects are not left out.

    **Unexplained remainder.** In two cases, an amount of the value stays `unexplained`. The first case is `SoftDTW` and
    `GlobalAlignment`, which sum over all alignments of x and y. Each part is the cost or log similarity of two matched
    time points, times the probability of this match.
    The remainder comes from the entropy of the alignments, which is high if many alignments are about equally
    good. With `divergence` or `normalize`, it also comes from the comparisons of x with itself and of y with itself.
    The second case is `similia.learn.HDClassifier` after `similia.SignRandomProjection`: a sign is not a linear
    function of x, so `explain` replaces the signs by a linear approximation. The error of this approximation stays
    unexplained.

    **Min-max similarity.** A support-vector machine or linear model on `similia.kernels.MinMax` decides by
    b + sum_i a_i sum_f min(f(x), f(z_i)) / D_i. Here z_i are the training objects, support vectors or landmarks of the
    model, with the coefficients a_i; f(x) is the count of feature f in x, and D_i = sum_g max(g(x), g(z_i)). So the
    part of feature f is sum_i a_i min(f(x), f(z_i)) / D_i. With D_i taken as constant, min(f(x), f(z_i)) / D_i is the
    amount that f adds to the similarity of x and z_i. The sign of a_i says whether this similarity counts for or
    against a class. Features that x lacks have no part; they only enlarge D_i. For `similia.kernels.Intersection`, D_i
    is 1 or, with ``normalize=True``, the product of the norms. For a `similia.kernels.Sum`, the value of each kernel in
    the sum is split into its own parts; the parts of a kernel without features are training objects. If it compares
    vectors, `left_out` then says which columns matter to the whole decision, as under **Columns without parts**.

    References
    ----------
    Sundararajan, Taly & Yan, "Axiomatic attribution for deep networks", ICML 2017 (integrated gradients).
    Saabas, "Interpreting random forests", 2014 (the decision paths of trees).

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
    refuse_class(what, "the first argument of explain")
    check_positive_int(top, "top")
    labels = {**names_of_labels(x), **names_of_labels(y), **dict(label_names or {})}
    naming = Naming(labels, columns_of(what, x, y))
    if y is None:
        if callable(what):
            raise ValueError(
                f"{name_of(what)} compares two objects, got one; write explain({name_of(what)}(...), x, y)"
            )
        detects = isinstance(steps_of(what)[-1], OutlierDetector)  # with novelty=False, it predicts nothing
        if not hasattr(what, "predict") and not hasattr(what, "best_") and not detects:
            raise TypeError(f"{name_of(what)} is not a fitted model that predicts; {WHAT}")
        return of_steps(steps_of(what), x, naming, top)
    compared = what
    if not callable(what):
        parts = parts_of(what)
        comparison = parts.comparison()
        if comparison is None:
            raise TypeError(f"{name_of(what)} contains no kernel or distance; give explain the kernel itself")
        compared = comparison.function
        if before := list(takewhile(lambda step: parts_of(step).comparison() is None, parts.steps)):
            x, y = (_after(before, _row(one, naming)) for one in (x, y))
            naming = naming.after(before)
    try:
        return _of_a_pair(compared, one_object(compared, x, "x"), one_object(compared, y, "y"), naming, top)
    except NoParts as error:
        raise TypeError(str(error)) from None


def _row(x: Any, naming: Naming) -> Any:
    """Return a row of a pandas frame as a frame of one row, as a model with the names of its columns takes it."""
    is_row = hasattr(x, "to_frame") and naming.columns is not None and naming.columns == columns_of(x)
    return x.to_frame().T.infer_objects() if is_row else x


def _after(steps: list[Any], x: Any) -> Any:
    X = through(steps, collection(steps[0], x))
    return X if isinstance(X, Batch) or sp.issparse(X) or is_frame(X) else X[0]


def _of_a_pair(compared: Any, X: Any, Y: Any, naming: Naming, top: int, y: str = "y") -> Explanation:
    """Explain the similarity or distance of the objects in two collections of one; the title calls the second `y`."""
    if isinstance(compared, Distance):
        d, scale, found, note = distance_pair(compared, X, Y)
        value, kind = power_of(d, scale), "squared distance" if scale == 2 else "distance"
    else:
        value, kind, found, note = pair(compared, X, Y, naming)
    title = f"{kind} of x and {y} by {without_addresses(compared)}"
    return explained(value, kind, found, top, title, (view_of(X, naming), view_of(Y, naming)), note=note)


def of_steps(steps: list[Any], x: Any, naming: Naming, top: int, leave_out: bool = True) -> Explanation:
    """Explain the prediction of a pipeline, given as a list of its steps, by parts or else by leaving places out.

    Without `leave_out`, no places of x are left out.
    """
    x = _row(x, naming)
    if is_frame(x) and hasattr(steps[0], "n_features_in_") and not hasattr(steps[0], "feature_names_in_"):
        x = to_array(x)  # as `AutoClassifier` gives its pipelines
    try:
        found = _in_parts(steps, x, naming, top, leave_out)
    except NoParts as error:
        places = without_parts(steps, x, naming, top, str(error)) if leave_out else None
        if places is None:
            raise TypeError(str(error)) from None
        found = places
    return _noted(found, _threshold(steps, x))


def _threshold(steps: list[Any], x: Any) -> str:
    """Return a note on the threshold of a detector, or of a classifier that differs from the model inside."""
    learner = steps[-1]
    if isinstance(learner, OutlierDetector):
        return f"an object whose strangeness is above {-learner.offset_:.3g} is an outlier"
    if not isinstance(learner, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return ""
    X = through(steps[:-1], collection(steps[0], x))
    inside, predicted = (model.predict(X)[0] for model in (learner.estimator_, learner))
    if inside == predicted:
        return ""
    return f"this is the decision of the model inside; by its own threshold, {name_of(learner)} predicts {predicted!s}"


def _in_parts(steps: list[Any], x: Any, naming: Naming, top: int, leave_out: bool) -> Explanation:
    learner = steps[-1]
    if isinstance(learner, TransformedTargetRegressor):
        check_fitted(learner)
        inner = _in_parts([*steps[:-1], *steps_of(learner.regressor_)], x, naming, top, leave_out)
        return _in_units(inner, learner)
    if members := members_of(learner):
        check_fitted(learner)
        if hasattr(learner, "voters") or isinstance(learner, CalibratedClassifierCV):
            return _of_a_vote(steps, x, naming, top, leave_out)
        return _in_parts([*steps[:-1], *steps_of(members[0])], x, naming, top, leave_out)
    if isinstance(learner, KernelKMeans):
        check_fitted(learner)
        if learner.n_clusters_ == 1:
            raise ValueError("the model has one cluster, so there is no decision between clusters to explain")
        center = decisions.NearestCenter().fit(learner.cluster_centers_)
        return _in_parts([*steps[:-1], learner.embedding_, center], x, naming, top, leave_out)
    inside = naming
    of_sets: tuple[list[Any], Any] | None = None  # the steps and the graph or series, where a set of points replaces it
    while len(steps) > 1 and isinstance(steps[0], ObjectsOut):  # steps that map objects to objects
        given = collection(steps[0], x)
        if of_sets is None and isinstance(steps[0], GraphToSets | SeriesToSets):
            of_sets = steps, given
        X = steps[0].transform(given)
        steps, x = steps[1:], X if isinstance(X, Batch) else X[0]
    if isinstance(learner, OutlierDetector):
        return _of_a_detector(steps, x, naming, top)
    compares = isinstance(learner, KernelMachine | HeatSVC | KNeighborsClassifier | KNeighborsRegressor)
    compares = compares or (hasattr(learner, "kneighbors") and hasattr(learner, "weights"))
    embeds = [i for i, step in enumerate(steps[:-1]) if isinstance(step, Nystroem | D2KE | KernelFeatures)]
    if not compares and embeds and embeds[-1] > 0:  # the steps before make vectors, by whose columns it is explained
        of_sets, before, steps = of_sets or (steps, x), steps[: embeds[-1]], steps[embeds[-1] :]
        inside, x = naming.after(before), _after(before, x)
    found = (_of_a_comparison if compares else _of_a_function)(steps, x, inside, top)
    note = one_note(note_of_length(steps, found._x), found.note, note_of_gaps(*steps))
    found = replace(found, note=note)
    if not leave_out or found.nearest is not None:
        return found
    if of_sets is not None and found.shares_x is None:  # leave out nodes, letters, or stretches of time
        steps, x = of_sets
        found = replace(found, _x=view_of(collection(steps[0], x), naming))
    return with_left_out(found, steps, x, naming, top)


def _of_a_function(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain the prediction of a learner of vectors: a linear model, a support-vector machine or trees."""
    learner = steps[-1]
    decisions.check_learner(learner)
    first, others = (steps[0], steps[1:]) if len(steps) > 1 else (None, steps)
    X = collection(first, x)
    rows = _rows(X) if first is None else first.transform(X)
    found = decisions.decision(others, rows)
    parts, intercept = parts_of_decision(first, X, rows, found, naming)
    how = name_of(learner) if first is None else f"{called(first)} and {name_of(learner)}"
    title = f"{found.kind} of {how}, {found.title}"
    views = view_of(X, naming), None
    note = found.note
    if isinstance(first, D2KE) and found.classes and found.amounts is None:
        note = one_note(note, _NEAR)
    if isinstance(X, SeriesBatch) and parts.shares_x is not None:
        note = one_note(note, _TIMES)
    return explained(found.value, found.kind, parts, top, title, views, note=note, intercept=intercept or None)


def _of_a_comparison(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain the prediction of a learner that compares its input with training objects."""
    learner = steps[-1]
    check_fitted(learner)
    given = collection(steps[0], x)
    X, naming = through(steps[:-1], given), naming.after(steps[:-1])
    if isinstance(learner, KNeighborsClassifier | KNeighborsRegressor):
        given = X = as_objects(learner.distance_, X)
    elif not hasattr(learner, "kneighbors"):
        return _of_a_machine(learner, as_objects(learner.kernel_, X), naming, top)
    else:
        X = _rows(X)
    return _of_neighbours(learner, X, given, naming, top)


def _of_a_detector(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain the distance from an object to the training object by which a detector of outliers judges it."""
    *before, detector = steps
    check_fitted(detector)
    if detector.method_ != "neighbors":
        raise NoParts(
            f"the scores of OutlierDetector(method={detector.method_!r}) have no parts; those of "
            "method='neighbors' have"
        )
    X, naming = as_objects(detector.distance_, through(before, collection(steps[0], x))), naming.after(before)
    (distances,), (numbers,) = detector.kneighbors(X)
    who = f"training object {numbers[-1]}"
    found = _of_a_pair(detector.distance_, X, take(detector.objects_, [int(numbers[-1])]), naming, top, who)
    return _noted(
        found, f"neighbour {len(numbers)} of x is {who}, at distance {distances[-1]:.3g}, which is the strangeness of x"
    )


def _of_a_vote(steps: list[Any], x: Any, naming: Naming, top: int, leave_out: bool) -> Explanation:
    """Explain one of the voters that can be explained: the first that agrees with the vote, or else the first."""
    *before, learner = steps
    voters = [[*before, *steps_of(voter)] for voter in members_of(learner)]
    X = collection(voters[0][0], x)
    decided, *answers = (voter[-1].predict(through(voter[:-1], X))[0] for voter in (steps, *voters))
    agree = [isinstance(learner, VoteRegressor) or answer == decided for answer in answers]
    errors: list[TypeError] = []
    for i in sorted(range(len(agree)), key=lambda i: not agree[i]):
        try:
            found = _in_parts(voters[i], x, naming, top, leave_out)
        except TypeError as error:
            errors.append(error)
            continue
        return _noted(found, _voter(learner, i, agree, decided))
    raise NoParts(f"none of the {len(errors)} models that vote can be explained; for example, {errors[0]}")


def _noted(found: Explanation, *notes: str) -> Explanation:
    return replace(found, note=one_note(found.note, *notes))


def _voter(learner: Any, i: int, agree: list[bool], decided: Any) -> str:
    n = len(agree)
    if isinstance(learner, VoteRegressor):
        return f"this is number {i + 1} of the {n} models that vote; their mean is {decided:.4g}"
    calibrated = isinstance(learner, CalibratedClassifierCV)
    if calibrated and n == 1:
        return "this is the decision that the calibration turns into a probability"
    who = f"number {i + 1} of the {n} models {'whose probabilities are averaged' if calibrated else 'that vote'}"
    return f"this is {who}; {sum(agree)} of them say {decided}" + ("" if agree[i] else ", and this one does not")


def _in_units(found: Explanation, learner: TransformedTargetRegressor) -> Explanation:
    """Return the explanation in the original units of the targets; if the transform is not affine, only add a note."""

    def back(value: float) -> float:
        return float(np.ravel(learner.transformer_.inverse_transform(np.array([[value]])))[0])

    if type(learner.transformer_).__name__ not in _AFFINE:
        predicted = f"{back(found.value):.4g}, the prediction"
        return _noted(found, f"the model transforms this number to {predicted}; the parts add up to it before that")
    shift = back(0.0)
    scale = back(1.0) - shift
    parts = [replace(part, contribution=scale * part.contribution) for part in found.parts]
    constant = parts.pop().contribution if found._intercept else 0.0
    parts.append(Part(INTERCEPT, constant + shift, NOWHERE, NOWHERE))
    names = ("residual", "omitted", "unexplained", "absolute_sum", "shares_x", "shares_y")
    scaled = {name: scale * getattr(found, name) for name in names if getattr(found, name) is not None}
    if (left_out := found.left_out) is not None:
        stretches = [replace(part, contribution=scale * part.contribution) for part in left_out.parts]
        scaled["left_out"] = replace(left_out, parts=stretches, amounts=scale * left_out.amounts)
    inner = steps_of(learner.regressor_)[-1]
    tells = isinstance(inner, GaussianProcessRegressor | VoteRegressor) or hasattr(inner, "kneighbors")
    note = one_note(found.note, _SCALED if tells else "")
    return replace(found, value=scale * found.value + shift, parts=parts, note=note, _has_intercept=True, **scaled)


def _rows(X: Any) -> Any:
    """Return vectors as a sparse or 2-D float64 array or a data frame, as the learners of scikit-learn take them."""
    return X if sp.issparse(X) or is_frame(X) else np.atleast_2d(np.asarray(X, dtype=np.float64))


def _of_a_machine(machine: Any, X: Any, naming: Naming, top: int) -> Explanation:
    """Explain the prediction of a kernel machine by its support vectors, or by the features of its kernel."""
    kernel, given = machine.kernel_, X
    if isinstance(machine, KernelRidge):
        objects, numbers = machine.objects_, np.arange(len(machine.dual_coef_))
    elif isinstance(machine, GaussianProcess):
        objects, numbers = machine.objects_, machine.indices_
    elif isinstance(machine, HeatSVC):  # keeps its support vectors on the sphere
        objects, numbers = machine.support_vectors_, machine.support_
        X = to_hypersphere(as_rows(X), kernel.mapping, zero_rows=kernel.zero_rows)
        kernel = clone(kernel).set_params(mapping=None)
    else:
        objects, numbers = machine.support_objects_, machine.support_
    note = ""
    intercept: float | None
    if isinstance(machine, KernelSVC | HeatSVC):
        K = np.asarray(evaluate(kernel, X, objects), dtype=np.float64)[0] if len(numbers) else np.zeros(0)
        scores = machine.pair_coef_ @ K + machine.pair_intercept_
        winner, other, sign, row = decisions.best_machine(machine.predict(given)[0], machine.classes_, scores)
        alpha, intercept = sign * machine.pair_coef_[row], sign * float(machine.pair_intercept_[row])
        value, kind, title = sign * float(scores[row]), "decision", decisions.against(machine.classes_, winner, other)
        note = decisions.one_vs_one(machine.classes_)
    elif isinstance(machine, GaussianProcessClassifier):
        winner = int(np.flatnonzero(machine.classes_ == machine.predict(given)[0])[0])
        column, sign = (0, 2.0 * winner - 1.0) if len(machine.classes_) == 2 else (winner, 1.0)
        alpha, intercept = sign * machine.weights_[:, column], None
        K = np.asarray(evaluate(kernel, X, objects), dtype=np.float64)[0]
        value, note = float(K @ alpha), _doubt_of_class(machine, X, K, column)
        kind, title = "decision", f"for {machine.classes_[winner]!s} against the others"
    else:
        alpha = machine.dual_coef_
        if alpha.ndim > 1:
            raise decisions.several_numbers(machine, alpha.shape[1])
        intercept = float(getattr(machine, "intercept_", 0.0)) or None
        value, kind, title = float(machine.predict(given)[0]), "prediction", decisions.PREDICTED
        note = _doubt(machine, given) if isinstance(machine, GaussianProcessRegressor) else ""
    found = sum_parts(kernel, X, objects, alpha, naming, "training object", numbers)
    title = f"{kind} of {name_of(machine)}, {title}"
    return explained(value, kind, found, top, title, (view_of(X, naming), None), note=note, intercept=intercept)


def _doubt(machine: GaussianProcessRegressor, X: Any) -> str:
    std = float(machine.predict(X, return_std=True)[1][0])
    note = f"the standard deviation is {std:.3g}, that of the noise alone {machine.noise_:.3g}"
    return note + _reduced_by(machine, machine.knowledge(X)[0])


def _doubt_of_class(machine: GaussianProcessClassifier, X: Any, K: Floats, column: int) -> str:
    """Return a note on the standard deviation of a score, and on the training objects that make it smaller.

    `K` holds the kernel values of the object with ``machine.objects_``. Each takes a share of what training removes of
    the variance of the score: scale |z|^2 - |R^T z|^2 for features z, where R is the matrix of `spreads_`.
    """
    z, spread = K @ machine.components_, machine.spreads_[column]
    known = K * (machine.components_ @ (machine.scale_ * z - spread @ (z @ spread)))
    before = machine.scale_ * float(diagonal(machine.kernel_, X)[0])
    std = np.sqrt(max(before - known.sum(), 0.0))
    note = f"the standard deviation of this score is {std:.3g}, before training it was {np.sqrt(before):.3g}"
    return note + _reduced_by(machine, known / (before or 1.0))


def _reduced_by(machine: GaussianProcess, shares: Floats) -> str:
    told = [f"{machine.indices_[i]} ({shares[i]:.0%})" for i in np.argsort(-shares)[:3] if shares[i] >= 0.01]
    return f"; the training objects that reduce it most are {', '.join(told)}" if told else ""


def _of_neighbours(machine: Any, X: Any, given: Any, naming: Naming, top: int) -> Explanation:
    """Explain a prediction for one object by its nearest training objects.

    `X` holds the object in the form that `machine` takes, and `given` in the form in which it is drawn.
    """
    (distances,), (numbers,) = machine.kneighbors(X)
    ours = isinstance(machine, KNeighborsClassifier | KNeighborsRegressor)
    weights = machine._weights(distances[None])[0] if ours else _weights(machine, distances)
    if hasattr(machine, "classes_"):
        if not ours:
            decisions.check_one_label(machine, X)
        classes, codes = machine.classes_, (machine._codes if ours else machine._y)[numbers]
        if len(classes) == 1:
            raise ValueError(
                f"{name_of(machine)} was fitted to one class, {classes[0]!s}, so it makes no decision to explain"
            )
        shares = machine.predict_proba(X)[0]
        winner, other = decisions.best_two(shares)
        adds, answers = weights * (codes == winner) - weights * (codes == other), classes[codes]
        value, kind, title = (
            float(shares[winner] - shares[other]),
            "decision",
            decisions.against(classes, winner, other),
        )
    else:
        answers = (machine.targets_ if ours else machine._y)[numbers]
        if answers.ndim > 1 and answers.shape[1] > 1:
            raise decisions.several_numbers(machine, answers.shape[1])
        answers = answers.ravel()
        adds, value, kind, title = weights * answers, float(weights @ answers), "prediction", decisions.PREDICTED

    def describe(k: int) -> Described:
        number = int(numbers[k])
        more = ""
        if ours:
            thing = described(take(machine.objects_, [number]), number)
            more = thing.removeprefix(f"no. {number}") if thing.startswith("no. ") else f", {thing}"
        return f"{answers[k]!s}: training object {number}{more}, at distance {distances[k]:.3g}", NOWHERE, NOWHERE

    by = name_of(machine.distance_) if ours else f"the {machine.effective_metric_} distance of vectors"
    note, nearest = f"the nearest by {by}; to see how x resembles one of them, explain x and that object", None
    if ours:
        space = " distance in the feature space of" if isinstance(machine.distance_, Kernel) else ""
        note, number = f"the nearest by{space} {by}", int(numbers[0])
        Y = take(machine.objects_, [number])
        try:
            nearest = _of_a_pair(machine.distance_, X, Y, naming, top, f"y, training object {number},")
        except NoParts:
            note += f"; {by} has no parts, so it cannot be shown how x resembles them"
        except ValueError as error:  # no alignment, or none that fits into memory
            note += f"; it is not shown how x resembles the nearest one: {error}"
    title = f"{kind} of {name_of(machine)}, {title}"
    found = explained(value, kind, Found(adds, describe), top, title, (view_of(given, naming), None), note=note)
    return replace(found, nearest=nearest)


def _weights(machine: Any, distances: Floats) -> Floats:
    """Return the weights that an estimator of scikit-learn gives to neighbours at these distances; they sum to 1."""
    if machine.weights in (None, "uniform"):
        return np.full(len(distances), 1 / len(distances))
    if callable(machine.weights):
        weights = np.asarray(machine.weights(distances[None]), dtype=np.float64)[0]
    else:
        weights = (distances == 0).astype(np.float64) if (distances == 0).any() else 1 / distances
    return weights / weights.sum()
