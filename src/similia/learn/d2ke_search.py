"""Tune models on D2KE features, with each distance computed once.

`D2KE` turns an object into the features exp(-gamma d), from its distances d to R random objects. The distances of the n
training objects are one matrix D, which serves all values of gamma and, row by row, all folds of cross-validation.
Random objects may be made of training objects. Then each fold draws its own random objects, from its training objects
only, and has its own matrix, so that validation objects take no part in training.

Cost: n R distances; if each fold draws its own, n R (folds + 1), or n^2 for n <= R folds training objects; then
(candidates x folds) fits of the learner.

Paper: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from similia.core.config import settings, track
from similia.core.estimators import all_at_once, check_fitted
from similia.core.state import made, state
from similia.core.text import short
from similia.core.validation import BadParameter, BadType, BadValue, check_labels, of_numbers, refuse_fractions
from similia.embeddings.d2ke import D2KE, RandomSeries, RandomSets, RandomStrings, Representatives, gamma_spec
from similia.embeddings.landmarks import DistancePairs
from similia.kernels.from_distance import exp_features
from similia.learn.targets import as_numbers, task_of
from similia.objects import n_objects, take
from similia.pipelines import Pipeline as BlockPipeline
from similia.similarity import as_objects
from similia.sources.dask import Distributed, from_parts, lazily

Split = tuple[npt.NDArray, npt.NDArray]  # training and validation indices
Part = tuple[npt.NDArray, float, list[Split]]  # distances, the number that gamma="median" stands for, folds
Grid = dict[str, list[Any]]  # for each parameter, the values to try

_INDEPENDENT = (RandomStrings, RandomSeries, RandomSets, type(None))  # None: the objects are a given collection


def _learner_has(name: str) -> Callable[[Any], bool]:
    def has(search: Any) -> bool:
        pipeline = getattr(search, "pipeline_", search.pipeline)
        getattr(pipeline[-1], name)  # the learner's AttributeError gives the reason
        return True

    return has


@state(pipeline_=made("Pipeline"))
class D2KESearch(MetaEstimatorMixin, BaseEstimator):
    """Tune a pipeline that starts with `D2KE` by cross-validation; all candidates share the same distances.

    `D2KE` computes the features exp(-gamma d) of an object from its distances d to random objects. The distances do not
    depend on gamma, so this search is faster than scikit-learn's GridSearchCV, which would compute the distances again
    for each candidate.

    If the `D2KE` has ``objects=similia.embeddings.Representatives(hold_out=True)``, some training objects serve as its
    random objects. The later steps are then tuned and fitted on the other training objects only.

    Parameters
    ----------
    pipeline : Pipeline
        The first step must be a `D2KE`, the last a classifier or regressor.
    param_grid : dict of str to list, optional
        Values to try. For the first step, only ``gamma`` is allowed (``d2ke__gamma`` if the step is named ``d2ke``);
        its other parameters change the distances, so tune them with GridSearchCV. For the other steps, any parameter is
        allowed. By default, nothing is tuned.
    cv : int or splitter, default=5
        Folds, as in scikit-learn's GridSearchCV.
    scoring : str or callable, optional
        As in GridSearchCV.
    n_jobs : int, optional
        As in GridSearchCV.
    regression : D2KESearch, optional
        Another search, whose pipeline ends with a regressor, to use instead of this one if `y` holds numbers to
        predict. `fit` then fits a copy of the other search and takes over its attributes. `similia.recipes.d2ke` sets
        this parameter if ``task="auto"``.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted pipeline with the best parameters. It can be used and saved by itself.
    best_params_ : dict
        The chosen values; gamma is a number, even if the grid holds ``"4*median"``, which means 4 divided by the median
        distance.
    cv_results_ : dict
        ``params`` (list of dict), ``mean_test_score`` and ``std_test_score`` (arrays) of all candidates. A gamma such
        as ``"4*median"`` is stored as a number, with one exception. If the random objects are drawn from the training
        objects (and ``hold_out`` is False), each fold draws its own random objects. The median distance then differs
        between folds, so the text ``"4*median"`` is stored.

    Examples
    --------
    >>> import similia as sm
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
    >>> model = sm.recipes.d2ke(unlike, 4, gamma="tune", objects=["a", "b", "c", "d"], cv=2, random_state=0)
    >>> model = model.fit(["ab", "b", "ba", "cd", "dc", "d"], [0, 0, 0, 1, 1, 1])
    >>> model.predict(["a", "c"]), sorted(model.best_params_)
    (array([0, 1]), ['d2ke__gamma'])
    """

    def __init__(
        self,
        pipeline: Pipeline,
        param_grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        regression: D2KESearch | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.regression = regression

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the parameters, and fit the pipeline to n objects with labels or numbers `y`.

        The distances of these objects to the random objects of `D2KE` must fit into memory.
        """
        if self.regression is not None and task_of(y, scoring=self.scoring) == "regression":
            found = clone(self.regression).fit(X, as_numbers(y))
            for learnt in ("cv_results_", "best_params_", "pipeline_"):
                setattr(self, learnt, getattr(found, learnt))
            return self
        name, d2ke = self._first()
        grid = self._grid(name)
        gammas = grid.get(f"{name}__gamma", [])
        if any(gamma_spec(gamma)[1] for gamma in gammas):
            d2ke.set_params(gamma="median")
        X = as_objects(d2ke.distance, X)
        y = of_numbers(check_labels(y, n_objects(X)))
        self._check_target(y)
        self.cv_results_: dict[str, Any] = {}
        kept = _not_held_out(d2ke.fit(X), n_objects(X))
        anew = bool(grid) and len(kept) == len(y) and not isinstance(d2ke.sampler_, _INDEPENDENT)
        if anew and isinstance(X, Distributed):
            kind = type(d2ke.sampler_).__name__
            found = f"is a Dask collection, but {kind} draws random objects from the training objects of each fold"
            raise BadType(None, found, remedy="take other random objects, such as RandomStrings(), or give X.compute()")
        splits = self._splits(X, y) if anew else []
        among = _all_distances(d2ke, X, len(splits))
        if among is not None:
            D = among[:, d2ke.representative_indices_]
        elif isinstance(X, Distributed):
            D, y = np.concatenate([*X.map(_distances, d2ke)])[kept], y[kept]
        else:
            D, y = d2ke.distances(X if len(kept) == len(y) else take(X, kept)), y[kept]
        if gammas and not anew:
            grid[f"{name}__gamma"] = [_in_units(gamma, d2ke.gamma_) for gamma in gammas]
        steps = clone(self.pipeline).steps[1:]
        best: dict[str, Any] = {}
        if anew:
            parts = (_drawn_anew(d2ke, X, among, split) for split in splits)
            best = self._search(name, steps, grid, parts, y, len(splits))
        elif grid:
            splits = self._splits(D, y)
            best = self._search(name, steps, grid, [(D, d2ke.gamma_, splits)], y, len(splits))
        if f"{name}__gamma" in best:
            best[f"{name}__gamma"] = _in_units(best[f"{name}__gamma"], d2ke.gamma_)
        self.best_params_ = best
        fitted = Pipeline([(name, _ExpFeatures(d2ke.gamma_)), *steps]).set_params(**clone(best, safe=False)).fit(D, y)
        d2ke.gamma_ = fitted[0].gamma
        d2ke.set_params(gamma=d2ke.gamma_)
        self.pipeline_ = BlockPipeline([(name, d2ke), *fitted.steps[1:]])
        return self

    def _splits(self, X: Any, y: npt.NDArray) -> list[Split]:
        """Return the (training indices, validation indices) of each fold; raise if `cv` does not suit `y`."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.pipeline))
        if isinstance(cv, StratifiedKFold):
            _check_folds(cv.n_splits, y)
        return list(cv.split(X, y))

    def _search(
        self, name: str, steps: list[Any], grid: Grid, parts: Iterable[Part], y: npt.NDArray, n_folds: int
    ) -> dict[str, Any]:
        """Store `cv_results_`; return the values of `grid` with the best mean score over the folds of all `parts`."""
        fits = len(ParameterGrid(grid)) * n_folds
        scores: list[npt.NDArray] = []
        with closing(track(range(fits), "cross-validation", fits)) as bar:
            scorer = _CountingScorer(check_scoring(self.pipeline, self.scoring), bar)
            for D, unit, splits in parts:
                model = Pipeline([(name, _ExpFeatures(unit)), *steps])
                tried = {key: [*values] for key, values in grid.items()}
                if f"{name}__gamma" in tried:
                    tried[f"{name}__gamma"] = [_in_units(gamma, unit) for gamma in tried[f"{name}__gamma"]]
                search = GridSearchCV(model, tried, cv=splits, scoring=scorer, n_jobs=self.n_jobs, refit=False)
                results = search.fit(D, y).cv_results_
                scores.extend(results[f"split{i}_test_score"] for i in range(len(splits)))
        mean = np.mean(scores, axis=0)
        params = list(ParameterGrid(grid))
        self.cv_results_ = {"params": params, "mean_test_score": mean, "std_test_score": np.std(scores, axis=0)}
        return dict(params[int(np.argmax(np.nan_to_num(mean, nan=-np.inf)))])

    def _check_target(self, y: npt.NDArray) -> None:
        """Raise if `y` holds fractions for a classifier, or anything but finite numbers for a regressor."""
        if is_classifier(self.pipeline):
            refuse_fractions(y)
        if is_regressor(self.pipeline):
            try:
                bad = ~np.isfinite(y.astype(np.float64))
            except (TypeError, ValueError):
                raise ValueError(
                    f"y holds {short(y[:1].tolist())} of dtype {y.dtype}, expected numbers to predict; for labels, "
                    'write recipes.d2ke(..., task="classification"), or end the pipeline with a classifier'
                ) from None
            if bad.any():
                i = int(np.argmax(bad))
                raise BadValue(i, f"is {y[i]}", "finite numbers to predict", "drop that object", collection="y")

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label or number predicted for each object, shape (n,)."""
        return self._fitted().predict(X)

    @available_if(_learner_has("decision_function"))
    @lazily
    def decision_function(self, X: Any) -> npt.NDArray:
        """Return the decision values of the classifier, shape (n, n_classes), or (n,) for two classes."""
        return self._fitted().decision_function(X)

    @available_if(_learner_has("predict_proba"))
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray:
        """Return the probability of each class for n objects, shape (n, n_classes)."""
        return self._fitted().predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of a classifier, or R squared of a regressor, for n objects; `scoring` has no effect."""
        return float(self._fitted().score(X, y))

    @property
    def classes_(self) -> npt.NDArray:
        """Sorted labels, shape (n_classes,)."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns; exists only if `fit` saw a table."""
        return int(self._fitted()[0].n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns; exists only if `fit` saw a table whose names are all text."""
        return self._fitted()[0].feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        learner = get_tags(getattr(self, "pipeline_", self.pipeline))
        tags.estimator_type = learner.estimator_type
        tags.classifier_tags, tags.regressor_tags = learner.classifier_tags, learner.regressor_tags
        tags.input_tags.string = True
        tags.input_tags.sparse = get_tags(self.pipeline[0]).input_tags.sparse
        return tags

    def _example(self) -> Any:
        """Return a collection that holds one object, as a valid input of `predict`."""
        return self._fitted()[0]._example()

    def _fitted(self) -> Pipeline:
        check_fitted(self)
        return self.pipeline_

    def _first(self) -> tuple[str, D2KE]:
        """Return the name of the first step of the pipeline and a copy of the step; raise if it is not a D2KE."""
        if not isinstance(self.pipeline, Pipeline) or not isinstance(self.pipeline[0], D2KE):
            raise ValueError(f"pipeline must be a Pipeline whose first step is a D2KE, got {self.pipeline!r}")
        name, d2ke = self.pipeline.steps[0]
        return name, clone(d2ke)

    def _grid(self, name: str) -> Grid:
        """Return `param_grid` as lists; raise for an unknown parameter, or one of the step `name` other than gamma."""
        given = {} if self.param_grid is None else self.param_grid
        if not isinstance(given, Mapping) or not all(
            isinstance(key, str) and isinstance(values, Iterable) and not isinstance(values, str)
            for key, values in given.items()
        ):
            raise BadParameter("param_grid", "a dict of str to list, the values to try", short(given))
        grid = {key: list(values) for key, values in given.items()}
        known = self.pipeline.get_params()
        for key in grid:
            step, _, parameter = key.partition("__")
            if key not in known and "__" not in parameter:  # deeper parameters may exist only after fit
                there = sorted(k for k in known if k.startswith(f"{step}__")) or sorted(self.pipeline.named_steps)
                raise ValueError(f"param_grid holds {key!r}, which is no parameter; there are {', '.join(there)}")
            if key != f"{name}__gamma" and key.split("__")[0] == name:
                raise ValueError(
                    f"param_grid holds {key!r}, which changes the distances, but they are computed only once; "
                    f"tune it with scikit-learn's GridSearchCV around this estimator, as 'pipeline__{key}'"
                )
        return grid


class _ExpFeatures(TransformerMixin, BaseEstimator):
    """Turn distances D to R random objects, shape (n, R), into features R^(-1/2) exp(-gamma D), named as by `D2KE`."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    @all_at_once
    def fit(self, D: npt.NDArray, y: Any = None) -> Self:
        self.n_features_in_ = D.shape[1]
        return self

    def transform(self, D: npt.NDArray) -> npt.NDArray:
        return exp_features(D.copy(), self.gamma)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        return np.array([f"d2ke{i}" for i in range(self.n_features_in_)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _all_distances(d2ke: D2KE, X: Any, n_folds: int) -> npt.NDArray | None:
    """Return the distances between all objects if the folds can share them, else None.

    They can if each fold draws representatives, `n_folds` draws need at least as many, and they fit into memory.
    """
    n = n_objects(X)
    if not isinstance(d2ke.sampler_, Representatives) or n > n_folds * len(d2ke.representative_indices_):
        return None
    if isinstance(X, Distributed) or 8 * n * n > settings().max_memory:
        return None
    return d2ke._cached_distances()(d2ke.distance_, X, X)


def _distances(X: Any, start: int, d2ke: D2KE) -> npt.NDArray:
    """Return the distances of the objects `X`, one part of a Dask collection, to the random objects of `d2ke`."""
    return d2ke.distances(X)


def _drawn_anew(d2ke: D2KE, X: Any, among: npt.NDArray | None, split: Split) -> Part:
    """Return (distances of all objects, gamma, [`split`]) for random objects from the training objects of one fold.

    `among` holds the distances between all objects, or is None if they were not computed.
    """
    fold = clone(d2ke)
    if among is not None:
        fold.set_params(distance=DistancePairs(among), objects=Representatives(), memory=None)
        X = np.arange(len(among))
    fold.fit(take(X, split[0]))
    return fold.distances(X), fold.gamma_, [split]


class _CountingScorer:
    """A scorer that advances a progress bar at each call; a copy sent to another process only scores."""

    def __init__(self, scorer: Any, bar: Iterator[int]) -> None:
        self.scorer = scorer
        self._bar = bar
        self._lock = Lock()
        next(bar)  # start in this thread, since others do not see the setting that enables progress

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        score = self.scorer(*arguments, **keywords)
        with self._lock:
            next(self._bar, None)
        return score

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return copy, (self.scorer,)


def _check_folds(n_folds: int, y: npt.NDArray) -> None:
    """Raise if a fold may leave a single class to learn from, or if no class has `n_folds` objects."""
    classes, counts = np.unique(y, return_counts=True)
    order = np.argsort(counts)
    rarest, most = classes[order[:1]].tolist()[0], int(counts[order[-1]])
    alone = len(classes) > 1 and counts[order[-2]] == 1
    if (alone or n_folds > most) and y.dtype.kind not in "biuf" and task_of(y) == "regression":
        raise ValueError(
            f"y holds numbers as text, such as {rarest!r}, and too few objects of each for cv={n_folds} folds of "
            'classes; to predict numbers, give floats and recipes.d2ke(..., task="regression"); or bin them to classes'
        )
    if alone:
        raise ValueError(
            f"class {rarest!r} has one object, and the fold that holds it out leaves one class to learn from; "
            "give more objects, or a number in place of 'tune'"
        )
    if n_folds > most:
        raise ValueError(
            f"cv={n_folds} is more than the {most} objects of the largest class; "
            f"take cv={max(2, counts.min())}, or give more objects (n_samples = {len(y)})"
        )


def _not_held_out(d2ke: D2KE, n: int) -> npt.NDArray[np.int64]:
    """Return the positions, below `n`, of the training objects that the fitted `d2ke` does not hold out."""
    kept = np.arange(n)
    if isinstance(d2ke.sampler_, Representatives) and d2ke.sampler_.hold_out:
        kept = np.setdiff1d(kept, d2ke.representative_indices_)
    return kept


def _in_units(gamma: float | str, unit: float) -> float:
    """Return gamma as a number, where "median" means `unit` and "4*median" means 4 times `unit`."""
    factor, name = gamma_spec(gamma)
    return factor * unit if name else factor
