"""Pipelines that respect ``config(max_memory)`` and stay as they were if a fit fails; the parts of a model.

A scikit-learn pipeline passes all objects through the first step, then through the second, and so on. With 100,000
objects, an output of 300 similarities per object takes 240 MB, and one of 10,000 bits per object takes 125 MB.
`Pipeline` passes one block of objects through all steps, then the next block. scikit-learn's linear models sum with
BLAS, in an order that depends on the block; in a `Pipeline` they sum in a fixed order.

`parts_of` splits a model, fitted or not, into its steps, its learner, and the kernel or distance that compares objects.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sklearn.pipeline
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from similia.core.config import collected_warnings, config, rows_per_block, settings
from similia.core.estimators import Transformer, all_at_once, check_fitted, columns_told, computed, is_lazy, twin_of
from similia.core.products import row_product
from similia.core.state import state
from similia.core.validation import part_from, refuse_fractions, warn_once, warning_of_part
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import Batch
from similia.objects.tables import objects_in
from similia.similarity import Distance, Kernel, Metric, metric_from
from similia.sources.dask import ScoresParts, apply, score_of

_FEW = 64  # up to this many objects are never split into blocks
_PROBED = 8  # number of objects used to measure the bytes per object
_CHOSEN = ("best_estimator_", "pipeline_", "best_")  # where a search keeps the model it chose
_WRAPPED = {  # where a wrapper keeps its models: (fitted, unfitted)
    "CalibratedClassifierCV": ("calibrated_classifiers_", "estimator"),
    "ConformalClassifier": ("estimator_", "estimator"),
    "ConformalRegressor": ("estimator_", "estimator"),
    "FixedThresholdClassifier": ("estimator_", "estimator"),
    "TransformedTargetRegressor": ("regressor_", "regressor"),
    "TunedThresholdClassifierCV": ("estimator_", "estimator"),
}
_SUMMING = ("decision_function", "_decision_function", "_linear_predictor")  # methods of linear models
_COMPARED_BY = (("kernel", True), ("distance", False))  # (parameter, whether it holds a kernel)


def _has(name: str) -> Callable[[Any], bool]:
    """Return a condition for `available_if`: the last step of the pipeline has the method called `name`."""
    return lambda self: hasattr(super(Pipeline, self), name)


@state()
class Pipeline(sklearn.pipeline.Pipeline):
    """A scikit-learn pipeline that transforms and predicts in blocks, within ``similia.config(max_memory=...)``.

    It takes the same parameters as `sklearn.pipeline.Pipeline` and differs in three ways:

    - ``transform``, ``predict``, ``decision_function``, ``predict_proba`` and ``score`` process the objects in blocks
      if the outputs of all steps but the last would together take more than half of ``max_memory``. The other half is
      left for the work inside a step. `fit` passes all objects through each step at once, as in scikit-learn.
    - If `fit` fails or is interrupted, the pipeline stays as it was.
    - If the last step is a linear classifier or regressor of `sklearn.linear_model` or `sklearn.svm` (``LinearSVC``,
      ``LogisticRegression``, ``Ridge``, ...), the result for an object is the same, to the last bit, whatever other
      objects are in `X`.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and estimators, in order. All estimators but the last must be transformers.
    transform_input : list of str, optional
        See `sklearn.pipeline.Pipeline`.
    memory : str or joblib.Memory, optional
        Where fitted transformers are cached; see `sklearn.pipeline.Pipeline`.
    verbose : bool, default=False
        Whether `fit` prints the time of each step.

    Notes
    -----
    `fit` replaces the estimators in `steps` by fitted copies; the estimators that you passed do not change. (A
    scikit-learn pipeline fits them in place, except for transformers if `memory` is given.) The fitted copies are
    ``pipeline[0]`` or ``pipeline["name"]``.

    Examples
    --------
    >>> import similia as sm
    >>> model = sm.Pipeline([
    ...     ("nystroem", sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=4, random_state=0)),
    ...     ("bits", sm.SignRandomProjection(64, random_state=0)),
    ... ])
    >>> words = ["GATTACA", "GATTA", "CCGCGG", "ACGTACGT"] * 100
    >>> with sm.config(max_memory="64KiB"):
    ...     model.fit_transform(words).shape
    (400, 8)
    """

    @all_at_once
    def fit(self, X: Any, y: Any = None, **params: Any) -> Pipeline:
        """Fit all steps; see `sklearn.pipeline.Pipeline.fit`."""
        fitted: Pipeline = self._learn("fit", X, y, params)
        return fitted

    @available_if(_has("fit_transform"))
    @all_at_once
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps and return the transformed objects; see `sklearn.pipeline.Pipeline.fit_transform`."""
        return self._learn("fit_transform", X, y, params)

    @available_if(_has("fit_predict"))
    @all_at_once
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps and return the result of the last step's ``fit_predict``."""
        return self._learn("fit_predict", X, y, params)

    def _learn(self, name: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        y, params = computed(y), {key: computed(value) for key, value in params.items()}  # once, for all steps
        if y is not None and isinstance(self._final_estimator, ClassifierMixin):
            refuse_fractions(y)  # fail before comparing objects
        self.steps: list[tuple[str, Any]] = _twins(self.get_params(deep=False)["steps"])
        return getattr(super(), name)(X, y, **params)

    @available_if(_has("transform"))
    def transform(self, X: Any, **params: Any) -> Any:
        """Pass objects through all steps and return the output of the last step."""
        return self._by_blocks("transform", X, params)

    @available_if(_has("predict"))
    def predict(self, X: Any, **params: Any) -> Any:
        """Pass objects through all steps and return the predictions of the last step."""
        return self._by_blocks("predict", X, params)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Pass objects through all steps and return the class probabilities that the last step predicts."""
        return self._by_blocks("predict_proba", X, params)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Pass objects through all steps and return the scores from the last step's ``decision_function``."""
        return self._by_blocks("decision_function", X, params)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Return the score of the last step: accuracy of a classifier, R squared of a regressor."""
        # These need only predictions, which can be computed in blocks. Another method needs the last step itself.
        usual = ClassifierMixin.score, RegressorMixin.score, ScoresParts.score
        if params or getattr(type(self.steps[-1][1]), "score", None) not in usual:
            return super().score(X, y, sample_weight, **params)
        return score_of(self, X, y, sample_weight)

    def _by_blocks(self, name: str, X: Any, params: dict[str, Any]) -> Any:
        """Return the result of the method `name`, computed in blocks of objects if memory requires it."""
        if is_lazy(X):
            return apply(getattr(self, name), X, **params)
        if params or get_config()["enable_metadata_routing"]:
            return getattr(super(), name)(X, **params)
        check_fitted(self)
        whole = functools.partial(self._whole, name)
        if not _can_be_cut(X) or n_objects(X) <= _FEW:
            return whole(X)
        if _has_empty_list(X):
            X = _read(next(each_step(self), None), X)
        with config(max_memory=max(1, settings().max_memory // 2)):
            n, step = n_objects(X), rows_per_block(self._bytes_between(X))
            if step >= n:
                return whole(X)
            return _joined(_blocks(whole, X, n, step), n, by_output=name == "predict_proba")

    def _whole(self, name: str, X: Any) -> Any:
        """Pass all objects at once through the steps and return the result of the method `name` of the last step."""
        for _, _, step in self._iter(with_final=False):
            X = step.transform(X)
        last = self._final_estimator
        if isinstance(last, str):  # "passthrough"
            return X
        return getattr(_row_by_row(last), name)(X)

    def _bytes_between(self, X: Any) -> int:
        """Return the total size, in bytes per object, of the outputs of all steps but the last."""
        few, total = take(X, np.arange(_PROBED)), 0
        with collected_warnings():  # these warnings are repeated for all objects
            for _, _, step in self._iter(with_final=False):
                few = step.transform(few)
                total += n_bytes(few)
        return -(-total // _PROBED)


def transformed(model: Any, X: Any) -> Any:
    """Return ``model.transform(X)`` for a fitted model; faster for few objects, as most wrappers are left out.

    A pipeline of scikit-learn computes tags and routes at each call, and each of its steps is wrapped for
    ``set_output``. With a model that makes data frames, nothing is left out.
    """
    if is_lazy(X) or n_objects(X) > _FEW or get_config()["transform_output"] != "default":
        return model.transform(X)
    return _passed(model, X)


def transformed_in_two(pipeline: Any, X: Any) -> tuple[npt.NDArray[Any], Any]:
    """Return what enters the last step of a fitted pipeline, as an array, and what this step makes of it.

    Like `transformed`, this function is faster for few objects. For these it does not slice the pipeline, since a slice
    would be a new pipeline at each call.
    """
    if is_lazy(X) or n_objects(X) > _FEW or get_config()["transform_output"] != "default":
        V = np.asarray(pipeline[:-1].transform(X))
        return V, pipeline[-1].transform(V)
    for _, step in pipeline.steps[:-1]:
        X = X if step in (None, "passthrough") else _passed(step, X)
    V = np.asarray(X)
    return V, _passed(pipeline.steps[-1][1], V)


def _passed(model: Any, X: Any) -> Any:
    kind: Any = type(model)
    if kind in (Pipeline, sklearn.pipeline.Pipeline):
        for _, step in model.steps:
            X = X if step in (None, "passthrough") else _passed(step, X)
        return X
    if kind is FrozenEstimator:
        return _passed(model.estimator, X)
    inner = None if hasattr(model, "_sklearn_output_config") else _without_wrappers(kind)
    return model.transform(X) if inner is None else inner(model, X)


@functools.cache
def _without_wrappers(kind: Any) -> Any:
    """Return the function `transform` of a class of similia without its decorators, or None for other classes."""
    of_similia = issubclass(kind, Transformer) and kind.__module__.startswith("similia.")
    return inspect.unwrap(kind.transform) if of_similia else None


class _RowByRow:
    """Mixin for linear models: sums in a fixed order, so that a decision value depends only on its own object."""

    coef_: npt.NDArray
    intercept_: npt.NDArray

    def decision_function(self, X: Any) -> npt.NDArray:
        with columns_told(self, X):
            coef, X = np.atleast_2d(self.coef_), validate_data(self, X, accept_sparse="csr", reset=False)
        if sp.issparse(X):
            sums = X @ coef.T  # scipy adds row by row, without BLAS
        else:
            dtype = np.float32 if np.result_type(X, coef) == np.float32 else np.float64  # the product takes no others
            sums = row_product(X, np.ascontiguousarray(coef.T, dtype))
        sums = (sums + self.intercept_).astype(np.result_type(X.dtype, coef, self.intercept_), copy=False)
        flat = sums.shape[1] == 1 and (isinstance(self, ClassifierMixin) or self.coef_.ndim == 1)
        return sums.ravel() if flat else sums

    _decision_function = _linear_predictor = decision_function  # the names in regressors


def _row_by_row(model: Any) -> Any:
    """Return `model`; if it is a linear model of scikit-learn, return a copy that sums in a fixed order."""
    of: Any = type(model)
    kind = _row_by_row_class(of)
    if kind is None or sp.issparse(model.coef_):
        return model
    copy: Any = twin_of(model)
    copy.__class__ = kind
    return copy


@functools.cache
def _row_by_row_class(kind: Any) -> Any:
    """Return the subclass of a linear model of scikit-learn that sums in a fixed order, or None for other models."""
    if not kind.__module__.startswith(("sklearn.linear_model", "sklearn.svm")):
        return None
    from sklearn.linear_model import ElasticNet, PoissonRegressor, SGDRegressor
    from sklearn.linear_model._base import LinearClassifierMixin, LinearModel

    regressors = LinearModel, ElasticNet, SGDRegressor
    sums = {LinearClassifierMixin.decision_function, PoissonRegressor._linear_predictor}
    sums |= {regressor._decision_function for regressor in regressors}
    if not sums & {getattr(kind, name, None) for name in _SUMMING}:
        return None
    return type(kind.__name__, (_RowByRow, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def _twins(steps: Any) -> list[tuple[str, Any]]:
    """Return copies of named steps and of those of pipelines and unions in them, which scikit-learn fits in place.

    A step with ``warm_start=True`` goes on in its learnt arrays or models, so these are copied, too.
    """
    twins = []
    for name, step in steps:
        if hasattr(step, "fit"):
            step = deepcopy(step) if getattr(step, "warm_start", False) else twin_of(step)
            if isinstance(step, sklearn.pipeline.Pipeline):
                step.steps = _twins(step.steps)
            elif isinstance(step, sklearn.pipeline.FeatureUnion):
                step.transformer_list = _twins(step.transformer_list)
        twins.append((name, step))
    return twins


def _blocks(whole: Callable[[Any], Any], X: Any, n: int, step: int) -> Iterator[Any]:
    """Yield ``whole(block)`` for each block of at most `step` objects of `X`.

    Each kind of warning is issued once. Object numbers in warnings and errors are positions in `X`, not in the block.
    """
    said: set[tuple[Any, str]] = set()
    for start in range(0, n, step):
        with collected_warnings() as caught, part_from(start):
            part = whole(take(X, np.arange(start, min(start + step, n))))
        for warning in caught:
            warn_once(warning_of_part(warning, start), said)
        yield part


def _joined(parts: Iterator[Any], n: int, *, by_output: bool = False) -> Any:
    """Concatenate the results of all blocks; arrays are copied into one array of `n` rows as they come.

    Blocks may differ in dtype, for example in the length of their strings. If `by_output`, a list holds one array for
    each target of a multi-output classifier, not one item for each object.
    """
    first = next(parts)
    if by_output and isinstance(first, list):
        return [np.concatenate(output) for output in zip(first, *parts, strict=True)]
    if hasattr(first, "get_columns"):  # polars
        return functools.reduce(lambda above, part: above.vstack(part), parts, first)
    if hasattr(first, "iloc"):
        return _joined_frames([first, *parts])
    if not isinstance(first, np.ndarray):
        return concatenate([first, *parts])
    out = np.empty((n, *first.shape[1:]), first.dtype)
    done = len(first)
    out[:done] = first
    for part in parts:
        dtype = np.result_type(out.dtype, part.dtype)
        if dtype != out.dtype:
            before, out = out, np.empty(out.shape, dtype)
            out[:done] = before[:done]
        out[done : done + len(part)] = part
        done += len(part)
    return out


def _joined_frames(parts: list[Any]) -> Any:
    """Concatenate pandas objects; if the rows of each are numbered from 0, so are those of the result."""
    import pandas as pd

    numbered = all(
        isinstance(part.index, pd.RangeIndex) and part.index.equals(pd.RangeIndex(len(part))) for part in parts
    )
    return pd.concat(parts, ignore_index=numbered)


def _can_be_cut(X: Any) -> bool:
    """Return whether `take` can select objects from `X`; it cannot from a dict of columns or a generator."""
    return isinstance(X, list | tuple | np.ndarray | Batch) or sp.issparse(X) or hasattr(X, "iloc")


def _has_empty_list(X: Any) -> bool:
    """Return whether an object is an empty list, such as a set of points whose dimension only other sets tell."""
    X = objects_in(X)
    if isinstance(X, Batch) or getattr(X, "ndim", 1) != 1:
        return False
    return any(x.shape == (0,) if isinstance(x, np.ndarray) else isinstance(x, list | tuple) and not x for x in X)


def _read(step: Any, X: Any) -> Any:
    """Return a collection as `step`, the first one of a pipeline, reads it."""
    read = getattr(step, "_as_objects", None) or getattr(comparison_of(step), "as_objects", None)
    return X if read is None else read(X)


def n_bytes(value: Any) -> int:
    """Return the approximate size of a collection in bytes."""
    if isinstance(value, list):
        return sum(map(sys.getsizeof, value))
    if sp.issparse(value):
        return sum(part.nbytes for part in (value.data, getattr(value, "indices", value.data)))
    if isinstance(value, Batch):
        return sum(map(n_bytes, vars(value).values()))
    if hasattr(value, "iloc"):  # pandas
        return int(np.sum(value.memory_usage(index=False, deep=True)))
    if hasattr(value, "estimated_size"):  # polars
        return int(value.estimated_size())
    return int(getattr(value, "nbytes", 0))


# ---- the parts of a model


@dataclass(frozen=True)
class Parts:
    """A model split into transformers and learner; see `parts_of`."""

    whole: Any  # the model; if it was a search such as GridSearchCV, the model that the search chose
    model: Any  # the first model inside `whole` if `whole` is an ensemble or a wrapper (see `members_of`), else `whole`
    transformers: list[Any]  # the steps of `model` before its learner; all steps if it does not predict
    learner: Any  # the step that predicts, or None

    @property
    def steps(self) -> list[Any]:
        """All steps, the learner last."""
        return [*self.transformers, *([] if self.learner is None else [self.learner])]

    def comparisons(self, *, fitted: bool = True) -> Iterator[Metric | None]:
        """Yield what `comparison_of` returns for each step, or for each step of the model that a step wraps."""
        for step in self.steps:
            inside = parts_of(step)
            if inside.model is step:
                yield comparison_of(step, fitted=fitted)
            else:
                yield from inside.comparisons(fitted=fitted)

    def comparison(self, *, fitted: bool = True) -> Metric | None:
        """Return the kernel or distance of the first step that contains one; see `comparison_of`."""
        return next((found for found in self.comparisons(fitted=fitted) if found is not None), None)

    def __repr__(self) -> str:
        steps = " → ".join(type(step).__name__ for step in self.steps)
        if self.whole is self.model:
            return steps
        if hasattr(self.whole, "voters"):
            return f"{steps} (the first of {len(self.whole.voters)} that vote)"
        return f"{steps} (inside of {type(self.whole).__name__})"


def parts_of(model: Any) -> Parts:
    """Split a model (an estimator, pipeline, search or ensemble, fitted or not) into transformers and learner.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.pipelines import parts_of
    >>> parts = parts_of(sm.recipes.nyshd(sm.kernels.Spectrum()))
    >>> parts
    Nystroem → SignRandomProjection → HDClassifier
    >>> parts.comparison().function
    Spectrum()
    """
    whole = model = chosen(model)
    while members := members_of(model):
        model = chosen(members[0])
    steps = steps_of(model)
    learner = steps.pop() if steps and hasattr(steps[-1], "predict") else None
    return Parts(whole, model, steps, learner)


def chosen(model: Any) -> Any:
    """Return the model chosen by a fitted search or wrapped by a frozen estimator; return other models unchanged."""
    if members_of(model):
        return model
    names = ("estimator",) if type(model).__name__ == "FrozenEstimator" else _CHOSEN
    return next((chosen(getattr(model, name)) for name in names if hasattr(model, name)), model)


def decides_in_pairs(model: Any) -> bool:
    """Return whether the decision values of a fitted classifier belong to pairs of classes, not to classes.

    Those of scikit-learn's `SVC` do with ``decision_function_shape="ovo"``. Three classes have three pairs, so that the
    shape of the values does not tell.
    """
    learner = steps_of(model)[-1]
    return getattr(learner, "decision_function_shape", None) == "ovo" and len(learner.classes_) > 2


def members_of(model: Any) -> list[Any]:
    """Return the models whose predictions `model` combines or changes; [] if it does neither.

    An ensemble combines the predictions of its ``voters``. A wrapper changes the predictions of one model: it
    calibrates them, sets a threshold, transforms targets, or adds prediction sets or intervals. The returned models are
    fitted if `model` is.
    """
    voters = getattr(model, "voters", None)
    if isinstance(voters, list):  # in `AutoClassifier`, it is the maximum number of voters
        return list(voters)
    for name in _WRAPPED.get(type(model).__name__, ()):
        found = getattr(model, name, None)
        if found is not None:
            return [one.estimator for one in found] if isinstance(found, list) else [found]
    return []


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a model in order, with nested pipelines flattened and passthrough steps left out."""
    return list(each_step(model))


def each_step(model: Any) -> Iterator[Any]:
    """Yield what `steps_of` returns."""
    model = chosen(model)
    if not hasattr(model, "steps"):
        yield model
        return
    for _, step in model.steps:
        if step is not None and not isinstance(step, str):
            yield from each_step(step)


def comparison_of(step: Any, *, fitted: bool = True) -> Metric | None:
    """Return the kernel or distance by which a step compares objects, or None if it has neither.

    The first of these that the step has is returned: the property ``estimated_kernel`` (of `MinHash`); the parameter
    ``kernel``; the parameter ``distance``. If `fitted`, the attributes ``kernel_`` and ``distance_`` that ``fit`` sets
    take the place of the parameters. The parameter ``distance`` may hold a kernel; the step then searches neighbours in
    the feature space of the kernel.
    """
    if hasattr(step, "estimated_kernel"):
        return Metric(step.estimated_kernel, True)
    for name, is_kernel in _COMPARED_BY:
        function = getattr(step, name, None)
        if fitted and (is_kernel or function is not None):
            function = getattr(step, f"{name}_", function)
        if callable(function) and not isinstance(function, type):
            kernel = isinstance(function, Kernel) or (is_kernel and not isinstance(function, Distance))
            return Metric(function, kernel)
    return None


def function_of(encoder: Any) -> tuple[Any, bool]:
    """Return (kernel or distance of an encoder's first step, whether it is a kernel); if absent, (None, False)."""
    found = next(parts_of(encoder).comparisons(fitted=False))
    return (None, False) if found is None else (found.function, found.is_kernel)


def metric_of(encoder: Any, name: str = "rerank") -> Metric:
    """Return the kernel or distance of an encoder's first step; if it has none, raise an error that names `name`."""
    function, is_kernel = function_of(encoder)
    if function is not None:
        return Metric(function, is_kernel)
    others = ", or take rerank='projected' or None" if name == "rerank" else ""
    first = type(next(each_step(encoder))).__name__
    raise ValueError(
        f"the encoder's first step {first} has no kernel or distance to compare objects by; name one: "
        f"for strings {name}=similia.distances.Levenshtein(), for vectors {name}=similia.kernels.Cosine('projection') "
        f"or similia.distances.FromFunction(cdist, pairwise=True){others}"
    )


def as_metric(metric: Any, encoder: Any, name: str) -> Metric:
    """Return `metric` as a `Metric`; "kernel" stands for the kernel or distance of the encoder's first step."""
    if isinstance(metric, str) and metric == "kernel":
        return metric_of(encoder, name)
    return metric_from(metric, name, "None, 'projected', 'kernel', or " if name == "rerank" else "'kernel', or ")
