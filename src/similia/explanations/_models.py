r"""Explain predictions: which parts of an object carry the decision of a fitted pipeline.

===================  ==============================================================================================
first step           parts of the decision sum_j w_j f_j(x) + b
===================  ==============================================================================================
`KernelFeatures`     w_f phi_f(x) for each feature f of x, by name
`Nystroem`           the embedding is k(x, landmarks) M, so the decision is sum_l alpha_l k(x, l), alpha = M w: with
                     features, phi_f(x) sum_l alpha_l phi_f(l) for each feature, else alpha_l k(x, l) for each landmark
`KernelSVC`, ...     the same with the support vectors or training objects as landmarks
neighbours           the share of each neighbour in the votes, or in the mean
`D2KE`               w_j (f_j(x) - mean) for each random object
anything else        w_j (f_j(x) - mean) for each column; the mean only where the model subtracts it
===================  ==============================================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils.validation import check_is_fitted

from similia.core.estimators import ObjectsOut
from similia.embeddings import D2KE, KernelFeatures, Nystroem
from similia.explanations._explanation import (
    NOWHERE,
    Described,
    Explanation,
    Floats,
    Found,
    Part,
    explained,
    joined,
    listed,
)
from similia.explanations._features import blocks_of, coefficients_by_column, coefficients_by_objects, linear_parts
from similia.explanations._linear import (
    ONE_VS_ONE,
    Decision,
    against,
    best_machine,
    check_learner,
    decision,
)
from similia.explanations._pairs import Naming, feature_occurrences, is_directed, one
from similia.explanations._views import View, described, view_of
from similia.kernels.hypersphere import as_rows, to_hypersphere
from similia.learn.heat_svc import HeatSVC
from similia.learn.kernel_machines import KernelMachine, KernelRidge, KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.learn.vote import VoteRegressor
from similia.objects import take
from similia.objects.sequences import Batch
from similia.pipelines import members_of, parts_of, steps_of
from similia.similarity import as_objects, evaluate, name_of

_INTERCEPT = "intercept"
_AFFINE = ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler")  # of targets


def comparison_of(model: Any) -> Any:
    """Return the kernel or distance by which a fitted model compares objects, or raise."""
    found = parts_of(model).comparison()
    if found is None:
        raise TypeError(f"{name_of(model)} compares objects by no kernel or distance; give explain the kernel itself")
    return found.function


def prediction(model: Any, x: Any, naming: Naming, top: int) -> Explanation:
    """Explain a fitted model's prediction for one object; for a vote, explain the first voter that allows it."""
    return _of_steps(steps_of(model), x, naming, top)


def _of_steps(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain a pipeline given as a list of its steps."""
    learner = steps[-1]
    if isinstance(learner, TransformedTargetRegressor):
        check_is_fitted(learner)
        inner = _of_steps([*steps[:-1], *steps_of(learner.regressor_)], x, naming, top)
        return _in_units(inner, learner)
    if members := members_of(learner):
        check_is_fitted(learner)
        if hasattr(learner, "voters") or isinstance(learner, CalibratedClassifierCV):
            return _of_a_vote(steps, x, naming, top)
        return _of_steps([*steps[:-1], *steps_of(members[0])], x, naming, top)
    steps, x = _prepared(steps, x)
    compares = isinstance(learner, KernelMachine | HeatSVC | KNeighborsClassifier | KNeighborsRegressor)
    if compares or hasattr(learner, "kneighbors"):
        return _of_a_comparison(steps, x, naming, top)
    check_learner(learner)
    first = steps[0] if len(steps) > 1 else None
    X = _collection(first, x)
    rows = _rows(X) if first is None else first.transform(X)
    found = decision(steps[1:] if first is not None else steps, rows)
    parts, intercept = _parts(first, X, rows, found, naming)
    how = f"{name_of(first)} and {name_of(learner)}" if first is not None else name_of(learner)
    return explained(
        found.value,
        found.kind,
        parts,
        top,
        title=f"{found.kind} of {how}, {found.title}",
        note=found.note,
        constant=None if intercept == 0.0 else (_INTERCEPT, intercept),
        views=(view_of(X, naming), None),
    )


def _of_a_comparison(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain a learner that compares its input with training objects."""
    learner = steps[-1]
    check_is_fitted(learner)
    first = steps[0] if len(steps) > 1 else learner
    given = X = _collection(first, x)
    for step in steps[:-1]:
        X = step.transform(X)
    if isinstance(learner, KNeighborsClassifier | KNeighborsRegressor):
        X = as_objects(learner.distance_, X)
        return of_neighbours(learner, X, top, view_of(X, naming))
    if hasattr(learner, "kneighbors"):
        return of_neighbours(learner, _rows(X), top, view_of(given, naming))
    return _dual(learner, as_objects(learner.kernel_, X), naming, top)


def _prepared(steps: list[Any], x: Any) -> tuple[list[Any], Any]:
    """Apply the leading steps that map objects to objects; return the other steps and the transformed x."""
    while len(steps) > 1 and isinstance(steps[0], ObjectsOut):
        X = steps[0].transform(_collection(steps[0], x))
        steps, x = steps[1:], X if isinstance(X, Batch) else X[0]
    return steps, x


def _of_a_vote(steps: list[Any], x: Any, naming: Naming, top: int) -> Explanation:
    """Explain the first voter that decides by a sum and predicts the same as the vote."""
    *before, learner = steps
    voters = [[*before, *steps_of(voter)] for voter in members_of(learner)]
    X = _collection(voters[0][0], x)
    decided, *answers = (_predicted(voter, X) for voter in (steps, *voters))
    mean = isinstance(learner, VoteRegressor)
    agree = [mean or answer == decided for answer in answers]
    said: list[str] = []
    for i in sorted(range(len(agree)), key=lambda i: not agree[i]):
        try:
            found = _of_steps(voters[i], x, naming, top)
        except TypeError as error:
            said.append(str(error))
            continue
        who = _who(learner, i, agree, decided)
        return replace(found, note=f"{found.note}; {who}" if found.note else who)
    raise TypeError(f"none of the {len(said)} models that vote can be explained, e.g. {said[0]}")


def _who(learner: Any, i: int, agree: list[bool], decided: Any) -> str:
    """Say which voter is explained, and how many others agree."""
    n = len(agree)
    if isinstance(learner, VoteRegressor):
        return f"this is number {i + 1} of the {n} models that vote; their mean is {decided:.4g}"
    calibrated = isinstance(learner, CalibratedClassifierCV)
    if calibrated and n == 1:
        return "this is the decision that the calibration makes a probability of"
    who = f"number {i + 1} of the {n} models {'whose probabilities are averaged' if calibrated else 'that vote'}"
    return f"this is {who}; {sum(agree)} of them say {decided}" + ("" if agree[i] else ", and this one does not")


def _predicted(steps: list[Any], X: Any) -> Any:
    """Return the prediction of the last step for the first object."""
    for step in steps[:-1]:
        X = step.transform(X)
    return steps[-1].predict(X)[0]


def _in_units(found: Explanation, learner: TransformedTargetRegressor) -> Explanation:
    """Convert the explanation to the units of the targets if their transform is affine; otherwise add a note."""

    def back(value: float) -> float:
        return float(np.ravel(learner.transformer_.inverse_transform(np.array([[value]])))[0])

    if type(learner.transformer_).__name__ not in _AFFINE:
        said = (
            f"the model takes this number back to {back(found.value):.4g}, the prediction; the parts add up before that"
        )
        return replace(found, note=f"{found.note}; {said}" if found.note else said)
    shift = back(0.0)
    scale = back(1.0) - shift
    parts = [replace(part, contribution=scale * part.contribution) for part in found.parts]
    if parts and parts[-1].name == _INTERCEPT:
        parts[-1] = replace(parts[-1], contribution=parts[-1].contribution + shift)
    else:
        parts.append(Part(_INTERCEPT, shift, NOWHERE, NOWHERE))
    x, y = (None if shares is None else scale * shares for shares in (found.shares_x, found.shares_y))
    return replace(
        found,
        value=scale * found.value + shift,
        parts=parts,
        residual=scale * found.residual,
        omitted=scale * found.omitted,
        unexplained=scale * found.unexplained,
        shares_x=x,
        shares_y=y,
    )


def _rows(X: Any) -> Any:
    """Return vectors in the form that scikit-learn's learners take."""
    return X if sp.issparse(X) else np.atleast_2d(np.asarray(X, dtype=np.float64))


def _collection(first: Any, x: Any) -> Any:
    """Return a collection that holds one object, for the first step of a model."""
    compared = getattr(first, "kernel_", getattr(first, "kernel", getattr(first, "distance", None)))
    if callable(compared):
        return one(compared, x, "x")
    return x if len(getattr(x, "shape", ())) == 2 and x.shape[0] == 1 else [x]


def _parts(first: Any, X: Any, rows: Any, found: Decision, naming: Naming) -> tuple[Found, float]:
    """Return the parts, and the constant that does not depend on the object."""
    if isinstance(first, KernelFeatures):
        blocks = blocks_of(first.kernel)
        if blocks is not None:
            parts = []
            for block, column in blocks:
                x = feature_occurrences(block.kernel, block.as_objects(X), naming, is_directed(X))
                coefficients = coefficients_by_column(block, column, x.ids, first.n_features, found.weights)
                parts.append(linear_parts(x, block.scale(X)[0] * coefficients).times(1.0, block.prefix))
            return joined(parts), found.intercept
    if isinstance(first, Nystroem) and not first._precomputed:
        alpha = first.components_ @ found.weights
        numbers = first.landmark_indices_
        return _of_landmarks(first.kernel_, X, first.landmarks_, alpha, naming, "landmark", numbers), found.intercept
    return _of_columns(first, rows, found)


def _dual(machine: Any, X: Any, naming: Naming, top: int) -> Explanation:
    """Explain the prediction of a machine on objects by its objects or the features of its kernel."""
    kernel, given, (objects, numbers) = machine.kernel_, X, _kept(machine)
    if isinstance(machine, HeatSVC):  # keeps its support vectors on the sphere
        X = to_hypersphere(as_rows(X), kernel.mapping, zero_rows=kernel.zero_rows)
        kernel = clone(kernel).set_params(mapping=None)
    K = np.asarray(evaluate(kernel, X, objects), dtype=np.float64)[0] if len(numbers) else np.zeros(0)
    kind, title, note, what = "prediction", "the predicted number", "", "support"
    if isinstance(machine, KernelSVC | HeatSVC):
        classes = machine.classes_
        scores = machine.pair_coef_ @ K + machine.pair_intercept_
        winner, other, sign, pair = best_machine(machine.predict(given)[0], classes, scores)
        alpha, intercept = sign * machine.pair_coef_[pair], sign * float(machine.pair_intercept_[pair])
        value, kind, title = sign * float(scores[pair]), "decision", against(classes, winner, other)
        note = "" if len(classes) == 2 else ONE_VS_ONE
    else:
        alpha, intercept = machine.dual_coef_, float(getattr(machine, "intercept_", 0.0))
        if alpha.ndim > 1:
            raise ValueError(
                f"{name_of(machine)} predicts {alpha.shape[1]} numbers, expected one; fit one model for each"
            )
        value, what = float(machine.predict(given)[0]), "training" if isinstance(machine, KernelRidge) else "support"
    return explained(
        value,
        kind,
        _of_landmarks(kernel, X, objects, alpha, naming, what, numbers),
        top,
        title=f"{kind} of {name_of(machine)}, {title}",
        note=note,
        constant=None if intercept == 0.0 and kind == "prediction" else (_INTERCEPT, intercept),
        views=(view_of(X, naming), None),
    )


def _kept(machine: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the objects that a machine compares with, and their indices in the training set."""
    if isinstance(machine, KernelRidge):
        return machine.objects_, np.arange(len(machine.dual_coef_))
    return machine.support_vectors_ if isinstance(machine, HeatSVC) else machine.support_objects_, machine.support_


def _of_landmarks(
    kernel: Any, X: Any, landmarks: Any, alpha: Floats, naming: Naming, what: str, numbers: npt.NDArray[np.int64]
) -> Found:
    """Return the parts of sum_l alpha_l k(x, l): by feature, or by landmark if the kernel has no features."""
    blocks = blocks_of(kernel)
    if len(numbers) == 0:
        return listed([], 0, 0)
    if blocks is None:
        values = np.asarray(evaluate(kernel, X, landmarks), dtype=np.float64)[0]

        def describe(k: int) -> Described:
            return f"{values[k]:.3g} like {what} {described(take(landmarks, [k]), int(numbers[k]))}", NOWHERE, NOWHERE

        return Found(alpha * values, describe)
    parts = []
    for block, _ in blocks:
        x = feature_occurrences(block.kernel, block.as_objects(X), naming, is_directed(X))
        coefficients = coefficients_by_objects(
            block, x.ids, block.as_objects(landmarks), alpha * block.scale(landmarks)
        )
        parts.append(linear_parts(x, block.scale(X)[0] * block.weight * coefficients).times(1.0, block.prefix))
    return joined(parts)


def _of_columns(first: Any, rows: Any, found: Decision) -> tuple[Found, float]:
    row = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64).ravel()
    intercept, values = found.intercept, row
    if found.centre is not None:
        values = row - found.centre
        intercept += float(found.centre @ found.weights)
    return Found(values * found.weights, lambda k: (_column_name(first, k, row[k]), NOWHERE, NOWHERE)), intercept


def _column_name(first: Any, k: int, value: float) -> str:
    if isinstance(first, D2KE):
        distance = -np.log(value) / first.gamma_ if value > 0 else np.inf
        R = len(first.random_objects_)
        distance -= np.log(R) / (2 * first.gamma_)  # a feature is exp(-gamma d) / sqrt(R)
        return f"at {distance:.3g} from random object {described(take(first.random_objects_, [k]), k)}"
    if first is None:
        return f"column {k} = {value:.4g}"
    names = getattr(first, "get_feature_names_out", None)
    try:
        name = str(names()[k]) if names is not None else f"column {k}"
    except (AttributeError, ValueError, NotImplementedError):
        name = f"column {k}"
    return f"{name} = {value:.4g}"


def of_neighbours(machine: Any, X: Any, top: int, view: View) -> Explanation:
    """Explain a prediction for one object by its nearest training objects.

    Parameters
    ----------
    machine : KNeighborsClassifier or KNeighborsRegressor
        Estimator of similia or of scikit-learn.
    X : collection of one object
        Object in the layout that the machine takes.
    """
    (distances,), (numbers,) = machine.kneighbors(X)
    ours = isinstance(machine, KNeighborsClassifier | KNeighborsRegressor)
    weights = machine._weights(distances[None])[0] if ours else _weights(machine, distances)
    if hasattr(machine, "classes_"):
        classes, codes = machine.classes_, (machine._codes if ours else machine._y)[numbers]
        if len(classes) == 1:
            raise ValueError(
                f"{name_of(machine)} was fitted to the one class {classes[0]!s}: there is nothing to explain"
            )
        shares = machine.predict_proba(X)[0]
        winner, other = (int(c) for c in np.argsort(-shares, kind="stable")[:2])
        adds = weights * (codes == winner) - weights * (codes == other)
        value, kind, said = float(shares[winner] - shares[other]), "decision", classes[codes]
        title = against(classes, winner, other)
    else:
        said = (machine.targets_ if ours else machine._y)[numbers]
        if said.ndim > 1:
            raise ValueError(
                f"{name_of(machine)} predicts {said.shape[1]} numbers, expected one; fit one model for each"
            )
        adds, value, kind, title = weights * said, float(weights @ said), "prediction", "the predicted number"

    def describe(k: int) -> Described:
        number = int(numbers[k])
        thing = described(take(machine.objects_, [number]), number) if ours else "no. "
        more = thing.removeprefix(f"no. {number}") if thing.startswith("no. ") else f", {thing}"
        return f"{said[k]!s}: training object {number}{more if ours else ''}, at {distances[k]:.3g}", NOWHERE, NOWHERE

    by = name_of(machine.distance_) if ours else f"the {machine.effective_metric_} distance of vectors"
    return explained(
        value,
        kind,
        Found(adds, describe),
        top,
        title=f"{kind} of {name_of(machine)}, {title}",
        note=f"the nearest by {by}; explain x with one of them to see what they share",
        views=(view, None),
    )


def _weights(machine: Any, distances: Floats) -> Floats:
    """Return the weights, summing to 1, of the neighbours that scikit-learn's estimator found."""
    if machine.weights == "uniform":
        return np.full(len(distances), 1 / len(distances))
    if callable(machine.weights):
        weights = np.asarray(machine.weights(distances[None]), dtype=np.float64)[0]
    else:
        weights = (distances == 0).astype(np.float64) if (distances == 0).any() else 1 / distances
    return weights / weights.sum()
