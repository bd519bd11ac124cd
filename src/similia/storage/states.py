"""What a loaded model may hold, class by class.

A file says what is in the attributes of a model; compiled loops read arrays without looking at bounds, and Python code
takes a string for a string. So a loaded object is held against this table before it is handed out: types, shapes that
fit each other, finite numbers, and sizes that bound what a call costs. In a shape a name stands for one number in the
whole object, 0 and more.

Kernels and distances check their parameters in each call, batches of objects in `Batch.__setstate__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from similia.core.text import _short
from similia.objects.sequences import Batch
from similia.storage.estimators import check_trees_of

Sizes = dict[str, int]
Check = Callable[[Any, Sizes], bool]

_LARGEST = 2**31 - 1
# What a call costs grows with these parameters; no array in a file bears them out.
_MOST = {
    "n_bits": 2**24, "n": 2**16, "n_levels": 2**20, "n_iter": 10**4, "max_iter": 10**6, "n_samples": 10**7,
    "n_projections": 10**5, "k": 10**4, "gaps": 10**3, "mismatches": 20, "degree": 10**4, "size": 10**2,
    "n_components": 2**24, "n_features": _LARGEST, "n_candidates": 10**7, "n_hashes": 2**16, "n_links": 2**12,
}  # fmt: skip


@dataclass(frozen=True)
class Array:
    """An array of one of some types (``"f4 f8"``), with numbers below `most`, of a shape."""

    types: str
    shape: tuple[Any, ...]
    most: float | None = None

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        known = isinstance(value, np.ndarray) and value.dtype.isnative and value.dtype.str[1:] in self.types.split()
        if not known:
            return False
        if value.dtype.kind in "fc" and not (np.abs(value) < (self.most or _huge(value.dtype))).all():  # NaN is not
            return False
        return value.ndim == len(self.shape) and all(map(_same, self.shape, value.shape, [sizes] * value.ndim))


def _huge(dtype: np.dtype[Any]) -> float:
    """Return what no number of a model comes near, whose square can still be summed."""
    return 1e15 if dtype in (np.float32, np.complex64) else 1e150


def _same(wanted: Any, found: int, sizes: Sizes) -> bool:
    """Whether a size is the one wanted: any (None), a number, or that of a name."""
    if isinstance(wanted, str):
        return sizes.setdefault(wanted, found) == found
    return wanted is None or wanted == found


def array(types: str, *shape: Any) -> Array:
    return Array(types, shape)


def count(name: str | None = None, factor: int = 1, least: int = 0) -> Check:
    """Return a check for an integer that is `factor` times the size `name`."""

    def check(value: Any, sizes: Sizes) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < 2**63:
            return False
        if int(value) % factor:
            return False
        return name is None or _same(name, int(value) // factor, sizes)

    return check


def one_of(*values: Any) -> Check:
    return lambda value, sizes: any(type(value) is type(known) and value == known for known in values)


def optional(check: Check) -> Check:
    return lambda value, sizes: value is None or check(value, sizes)


def made(*classes: str) -> Check:
    """Return a check for an object of one of some classes of similia, by name."""
    return lambda value, sizes: type(value).__name__ in classes and type(value).__module__.startswith("similia.")


def _is_number(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and -1e150 < float(value) < 1e150


def _is_positive(value: Any, sizes: Sizes) -> bool:
    return _is_number(value, sizes) and float(value) > 1e-150


def _is_flag(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) in (0, 1))


def _is_text(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def labels(name: str) -> Check:
    """Return a check for sorted labels, one for each class."""

    def check(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUSO":
            return False
        return _same(name, len(value), sizes) and all(isinstance(label, str | bytes | Real) for label in value.tolist())

    return check


def objects(name: str) -> Check:
    """Return a check for a collection of objects."""

    def check(value: Any, sizes: Sizes) -> bool:
        if isinstance(value, np.ndarray):
            fits = value.ndim > 0 and value.dtype.kind in "biufUSO" and _are_finite(value)
            return fits and _same(name, len(value), sizes)
        if isinstance(value, sp.csr_array | sp.csr_matrix):
            return _are_finite(value.data) and _same(name, value.shape[0], sizes)
        return isinstance(value, Batch | list | tuple) and _same(name, len(value), sizes)

    return check


def _are_vectors(value: Any, sizes: Sizes) -> bool:
    """Whether this is a dense or sparse matrix (s, d) of finite numbers."""
    sparse = isinstance(value, sp.csr_array | sp.csr_matrix)
    numbers = value.data if sparse else value
    fits = array("f4 f8", *([None] if sparse else ["s", "d"]))(numbers, sizes)
    return fits and _same("s", value.shape[0], sizes) and _same("d", value.shape[1], sizes)


def _are_finite(values: Any) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _is_comparison(value: Any, sizes: Sizes) -> bool:
    return type(value).__module__.startswith(("similia.kernels.", "similia.distances.", "similia.adapters."))


def _is_kernel(value: Any, sizes: Sizes) -> bool:
    if isinstance(value, str):
        return value == "precomputed"
    return type(value).__module__.startswith(("similia.kernels.", "similia.adapters.")) or (
        callable(value) and not isinstance(value, type)
    )


def _is_sampler(value: Any, sizes: Sizes) -> bool:
    return type(value).__module__ == "similia.embeddings.random_objects"


def _is_corners(value: Any, sizes: Sizes) -> bool:
    """Whether blocks of a block-diagonal matrix (s, r) lie on its diagonal, from the first to the last corner."""
    if not array("i8", None, 2)(value, sizes) or len(value) < 2:
        return False
    ends = (sizes.get("s", value[-1, 0]), sizes.get("r", value[-1, 1]))
    return bool((value[0] == 0).all() and (np.diff(value, axis=0) >= 0).all() and (value[-1] == ends).all())


def _is_steps(value: Any, sizes: Sizes) -> bool:
    """Whether this is a list of (name, estimator), all but the last transformers."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in value):
        return False
    steps = [step for _, step in value]
    passing = [step is None or (isinstance(step, str) and step == "passthrough") for step in steps]
    fitting = [hasattr(step, "fit") and hasattr(step, "set_params") for step in steps]
    changing = [hasattr(step, "transform") for step in steps[:-1]] + [True]
    return all(p or (f and c) for p, f, c in zip(passing, fitting, changing, strict=True))


def _is_encoders(value: Any, sizes: Sizes) -> bool:
    pairs = isinstance(value, list | tuple) and all(isinstance(entry, tuple) and len(entry) == 2 for entry in value)
    return pairs and _same("m", len(value), sizes)


def _are_targets(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, np.ndarray) and array("f8", "n", *[None] * (value.ndim - 1))(value, sizes)


def _is_transformer(value: Any, sizes: Sizes) -> bool:
    return hasattr(value, "transform")


def _are_predictors(value: Any, sizes: Sizes) -> bool:
    """Whether these are the v estimators of a vote."""
    predict = isinstance(value, list | tuple) and all(hasattr(voter, "predict") for voter in value)
    return predict and len(value) > 0 and _same("v", len(value), sizes)


def _is_function(value: Any, sizes: Sizes) -> bool:
    return callable(value) or hasattr(value, "transform")


def _are_fitted(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, list) and _same("m", len(value), sizes) and all(hasattr(e, "transform") for e in value)


def _is_predictor(value: Any, sizes: Sizes) -> bool:
    return hasattr(value, "predict")


def _are_columns(value: Any, sizes: Sizes) -> bool:
    """Whether these are named arrays of one length."""
    return isinstance(value, dict) and all(
        isinstance(c, np.ndarray) and _same("n", len(c), sizes) for c in value.values()
    )


_FLAG, _NUMBER, _POSITIVE, _TEXT = _is_flag, _is_number, _is_positive, _is_text
_BITS: dict[str, Check] = {"n_bits": count("b", 8, 8), "output": one_of("bits", "counts")}
_DRAWN: dict[str, Check] = {**_BITS, "seed_": count()}
_FINITE = Array("f8", ("d",), np.inf)  # compared, never squared
_LEVELS: dict[str, Check] = {
    **_BITS, "low_": _FINITE, "high_": _FINITE, "levels_": array("u1", None, "b"),
    "ties_": array("u1", 1, "b"), "roles_": array("u1", "d", "b"),
}  # fmt: skip
_LIBSVM: dict[str, Check] = {
    "classes_": labels("c"), "support_": array("i4", "s"), "_n_support": array("i4", "c"), "_gamma": _NUMBER,
    "_intercept_": array("f8", "p"), "_probA": array("f8", None), "_probB": array("f8", None), "_sparse": _FLAG,
    "kernel": one_of("linear", "poly", "rbf", "sigmoid", "precomputed"), "n_features_in_": count("d"),
}  # fmt: skip
_CHOSEN: dict[str, Check] = {
    "best_estimator_": _is_predictor, "_unfitted": _is_predictor, "best_name_": _is_text, "cv_results_": _are_columns,
}  # fmt: skip
_NEIGHBORS: dict[str, Check] = {
    "distance": _is_kernel, "distance_": _is_kernel, "objects_": objects("n"), "n_samples_fit_": count("n", least=1),
    "_squared_norms": optional(array("f8", "n")),
}  # fmt: skip
_WIDTH, _SIZE, _MAYBE_SIGNS = count("d", least=1), count(least=2), optional(array("i1", None, 3, None))

_STATES: dict[str, dict[str, Check]] = {
    "AttributeScaler": {"mean_": array("f8", "d"), "scale_": array("f8", "d")},
    "Nystroem": {
        "kernel": _is_kernel, "kernel_": _is_kernel, "components_": array("f8", "s", "r"), "rank_": count("r"),
        "_n_features_out": count("r"), "landmark_indices_": array("i8", "s"), "landmarks_": objects("s"),
        "eigenvalues_": array("f8", "r"), "_n_train": count(), "_corners": _is_corners, "weights_": array("f8", None),
    },
    "PseudoEuclidean": {
        "distance": _is_comparison, "landmarks_": objects("s"), "landmark_indices_": array("i8", "s"),
        "mean_": array("f8", "s"), "components_": array("f8", "s", "r"), "rank_": count("r"),
        "_n_features_out": count("r"), "eigenvalues_": array("f8", "r"), "_n_train": count(),
    },
    "KernelFeatures": {
        "kernel": _is_kernel, "n_features": count(least=1), "met_": array("u1", None), "compared_": _are_texts,
    },
    "D2KE": {  # a folder of joblib holds pickles: none is opened because a file names it
        "distance": _is_comparison, "random_objects_": objects("r"), "_n_features_out": count("r"),
        "gamma_": _POSITIVE, "seed_": count(), "sampler_": optional(_is_sampler), "memory": one_of(None),
        "representative_indices_": array("i8", None),
    },
    "D2KESearch": {"pipeline_": lambda value, sizes: type(value).__name__ == "Pipeline"},
    "OpticalRandomFeatures": {
        "n_features_in_": _WIDTH, "_n_features_out": count("m", least=1), "scale": _POSITIVE, "bias": _NUMBER,
        "weights_": optional(array("c8 c16", "d", "m")), "bias_": optional(array("c8 c16", "m")),
        "turns_": _MAYBE_SIGNS, "step_": optional(_POSITIVE), "binary_input": _FLAG,
    },
    "HeatRandomFeatures": {
        "n_features_in_": count("d", least=2), "_n_features_out": count("m", least=1), "t_": _POSITIVE,
        "mapping_": optional(_TEXT), "directions_": array("f4 f8", "d", "h"),
    },
    "GraphletSampling": {
        "seed_": count(), "_n_features_out": count(), "n_samples": count(least=1), "size": _SIZE,
        "map_": made("Match", "MatchClasses", "Quadratic", "Waves", "PerPattern"),
    },
    "Match": {"size": _SIZE},
    "MatchClasses": {"size": _SIZE},
    "Quadratic": {"size": _SIZE, "matrix": array("f4 f8", None, "m"), "constants": array("f4 f8", "m")},
    "Waves": {"size": _SIZE, "frequencies": array("f8", None, "m"), "phases": array("f8", "m"), "pairs": _FLAG},
    "PerPattern": {"size": _SIZE, "n_features": count(), "function": _is_function},
    "Spectra": {"size": count("n", least=2), "frequencies": array("f4", "n", "m"), "phases": array("f4", "m")},
    "SignRandomProjection": {
        "n_features_in_": _WIDTH, "_n_features_out": count("b", least=1), "signs_": _MAYBE_SIGNS,
        "projection_": optional(array("i2", None, "d")), "row_length_": optional(_POSITIVE),
    },
    "GeneralizedNystroemPCA": {
        "n_features_in_": count("d"), "_n_features_out": count("r"), "components_": array("f4 f8", "r", "d"),
        "mean_": array("f4 f8", "d"), "singular_values_": array("f4 f8", "r"), "_offset": array("f4 f8", "r"),
    },
    "ITQ": {
        "n_features_in_": _WIDTH, "_n_features_out": count(least=1), "rotation_": array("f8", "d", "d"),
        "mean_": array("f8", "d"),
    },
    "SignCodes": {"n_features_in_": _WIDTH, "_n_features_out": count(least=1), "mean_": array("f8", "d")},
    "NGramEncoder": {**_DRAWN, "n": count(least=1), "binding": one_of("multiply", "add")},
    "GraphHDEncoder": {**_DRAWN, "damping": lambda value, sizes: _NUMBER(value, sizes) and 0 <= value < 1,
                       "n_iter": count(least=1)},
    "LevelEncoder": {**_LEVELS, "n_features_in_": _WIDTH},
    "SequenceEncoder": {**_LEVELS, "n": optional(count(least=1))},
    "FractionalPowerEncoder": {
        "n_features_in_": _WIDTH, "n_bits": count("b", 8, 8), "phases_": array("f8", "h"),
        "frequencies_": array("f8", "d", "h"), "bandwidth": _POSITIVE, "output": one_of("bits", "floats"),
    },
    "RecordEncoder": {
        "encoders": _is_encoders, "encoders_": _are_fitted, "roles_": array("u1", "m", "b"),
        "ties_": array("u1", 1, "b"), "output": one_of("bits", "counts"),
    },
    "HDClassifier": {
        "classes_": labels("c"), "n_features_in_": count(least=1), "prototypes_": array("f8", "c", None),
        "prototype_codes_": array("u1", "c", None), "binary_prototypes": _FLAG,
    },
    "HeatSVC": {
        "classes_": labels("c"), "n_features_in_": count("d", least=2), "kernel_": made("HypersphericalHeat"),
        "t_": _POSITIVE, "contrast_": _NUMBER, "C_": _POSITIVE, "support_": array("i8", "s"),
        "pair_coef_": array("f8", "p", "s"), "pair_intercept_": array("f8", "p"), "support_vectors_": _are_vectors,
    },
    "SeriesVectors": {
        "length_": count(least=1), "n_channels_": count(least=1), "_n_features_out": count(least=1),
    },
    "KernelSVC": {
        "kernel": _is_kernel, "kernel_": _is_kernel, "classes_": labels("c"), "support_": array("i8", "s"),
        "support_objects_": objects("s"), "pair_coef_": array("f8", "p", "s"), "pair_intercept_": array("f8", "p"),
        "calibration_": optional(array("f8", "k", 2)), "probability": _FLAG,
    },
    "KernelRidge": {
        "kernel": _is_kernel, "kernel_": _is_kernel, "objects_": objects("n"), "dual_coef_": _are_targets,
    },
    "KernelSVR": {
        "kernel": _is_kernel, "kernel_": _is_kernel, "support_": array("i8", "s"), "support_objects_": objects("s"),
        "dual_coef_": array("f8", "s"), "intercept_": _NUMBER,
    },
    "KNeighborsClassifier": {**_NEIGHBORS, "classes_": labels("c"), "_codes": array("i8", "n")},
    "KNeighborsRegressor": {**_NEIGHBORS, "targets_": _are_targets},
    "VoteClassifier": {"estimators": _are_predictors, "estimators_": _are_predictors, "classes_": labels("c")},
    "VoteRegressor": {"estimators": _are_predictors, "estimators_": _are_predictors},
    "AutoClassifier": {**_CHOSEN, "classes_": labels("c")},
    "AutoRegressor": _CHOSEN,
    "SimilaritySearch": {
        "encoder": _is_transformer, "encoder_": _is_transformer, "index": optional(made("HammingIndex")),
        "index_": made("HammingIndex"), "ids_": array("i8", "n"), "objects_": optional(objects("n")),
        "vectors_": optional(array("f4", "n", None)),
    },
    "Pipeline": {"steps": _is_steps, "memory": one_of(None)},
    "SVC": _LIBSVM,
    "NuSVC": _LIBSVM,
}  # fmt: skip
_OPTIONAL = {("KernelFeatures", "met_"), ("KernelFeatures", "compared_")}  # met_ is kept up to a size
_THEIRS = ("Pipeline", "SVC", "NuSVC")


def check_states(root: Any, state_of: Callable[[Any], dict[str, Any]] = vars) -> None:
    """Raise ValueError unless all objects in a model hold what objects of their class may hold.

    `state_of` is `written` for a model that is not read from a file yet.
    """
    for value in _inside(root, state_of):
        name = type(value).__name__
        ours = type(value).__module__.startswith("similia.")
        if type(value).__module__.startswith("sklearn."):
            check_trees_of(name, state_of(value))
        if not ours and name not in _THEIRS:
            continue
        state, sizes = state_of(value), dict[str, int]()
        if ours:
            _check_plain(name, value, state)
        for attribute, check in _STATES.get(name, {}).items():
            if attribute in state and not check(state[attribute], sizes):
                if attribute == "memory":
                    raise ValueError(f"a {name} names a folder of joblib, which holds pickles; set memory=None first")
                raise ValueError(f"a {name} has {attribute} that does not fit it: {_described(state[attribute])}")
        _check_whole(name, value, state, sizes)


def _check_plain(name: str, value: Any, state: dict[str, Any]) -> None:
    """Check what holds for all classes: no method is covered, parameters are there and like their defaults."""
    for attribute in state:
        if callable(getattr(type(value), attribute, None)):
            raise ValueError(f"a {name} holds {_short(attribute)}, the name of a method")
    for parameter, default in _parameters(type(value)):
        if parameter not in state:
            raise ValueError(f"a {name} lacks its parameter {parameter}")
        found, plain = state[parameter], isinstance(default, int | float)
        plain |= isinstance(default, str) and _is_comparison(value, {})
        if (isinstance(default, bool) and not _is_flag(found, {})) or (plain and np.ndim(found) > 0):
            raise ValueError(f"a {name} has {parameter}={_short(found)}, expected one like {default!r}")
    for parameter, most in _MOST.items():
        found = state.get(parameter)
        if isinstance(found, Integral) and int(found) > most:
            raise ValueError(f"a {name} has {parameter}={_short(found)}, a file may ask for {most} at most")


def _parameters(cls: type) -> list[tuple[str, Any]]:
    """Return the parameters of a constructor with their defaults."""
    if not hasattr(cls, "_get_param_names"):
        return []
    known = inspect.signature(cls).parameters
    return [(name, known[name].default) for name in cls._get_param_names()]


def _check_whole(name: str, value: Any, state: dict[str, Any], sizes: Sizes) -> None:
    """Check what is not seen attribute by attribute: that none is lacking, and sizes that follow from others."""
    known = list(_STATES.get(name, {}))
    if hasattr(type(value), "_get_param_names"):  # parameters apart, all or none
        known = [attribute for attribute in known if attribute.startswith("_") or attribute.endswith("_")]
    lacking = [attribute for attribute in known if attribute not in state and (name, attribute) not in _OPTIONAL]
    if lacking == ["index_"] and sizes.get("n") == 0:  # of a search in a folder, which has the index beside it
        return
    if lacking and (len(lacking) < len(known) or not hasattr(type(value), "_get_param_names")):
        raise ValueError(f"a {name} lacks {lacking[0]}")
    if known and not lacking and name in _WHOLE and not _WHOLE[name](state, sizes):
        raise ValueError(f"a {name} has attributes that do not fit each other")


def _reads(function: Any, objects: Any) -> bool:
    """Whether a kernel or distance takes these objects, or raise."""
    if not isinstance(function, str) and hasattr(function, "as_objects"):
        function.as_objects(objects)
    return True


def _neighbors_fit(state: dict[str, Any], sizes: Sizes) -> bool:
    codes = state.get("_codes", np.zeros(1))
    known = 0 <= codes.min() <= codes.max() < sizes.get("c", 1)
    return bool(known) and _reads(state["distance_"], state["objects_"])


def _kernel_svc_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    fits = sizes["c"] > 1 and sizes["p"] == _n_pairs(sizes["c"])
    if state.get("calibration_") is not None:
        fits = fits and sizes["k"] == (1 if sizes["c"] == 2 else sizes["c"])
    return fits and (sizes["s"] == 0 or _reads(state["kernel_"], state["support_objects_"]))


def _optical_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    turns = state["turns_"]
    if turns is None:
        return state["weights_"] is not None and state["bias_"] is not None
    return bool(sizes["m"] <= turns.shape[0] * turns.shape[2])


def _signs_fit(state: dict[str, Any], sizes: Sizes) -> bool:
    dense, signs = state["projection_"], state["signs_"]
    if signs is None:
        return dense is not None and state["row_length_"] is not None and len(dense) == 8 * sizes["b"]
    return dense is None and bool(8 * sizes["b"] <= signs.shape[0] * signs.shape[2])


def _ids_of(index: Any) -> Any:
    return index.ids if len(index) else np.zeros(0, np.int64)


def _n_pairs(size: int) -> int:
    return size * (size - 1) // 2


def _svc_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    """Whether the arrays that libsvm reads fit each other."""
    c, s, counts, places = sizes["c"], sizes["s"], state["_n_support"], state["support_"]
    rows, coefficients, trained = (state.get(key) for key in ("support_vectors_", "_dual_coef_", "shape_fit_"))
    kinds = (sp.csr_array, sp.csr_matrix) if state["_sparse"] else np.ndarray
    if not (isinstance(rows, kinds) and isinstance(coefficients, kinds) and rows.dtype == coefficients.dtype == "f8"):
        return False
    if c < 2 or sizes["p"] != _n_pairs(c) or coefficients.shape != (c - 1, s) or not isinstance(trained, tuple):
        return False
    if {len(state["_probA"]), len(state["_probB"])} not in ({0}, {sizes["p"]}):
        return False
    if counts.min() < 0 or counts.sum() != s or len(trained) != 2 or not isinstance(trained[0], int):
        return False
    if s and not 0 <= places.min() <= places.max() < trained[0]:
        return False
    return state["kernel"] == "precomputed" or rows.shape == (s, sizes["d"])


_WHOLE: dict[str, Callable[[dict[str, Any], Sizes], bool]] = {
    "Nystroem": lambda state, sizes: _reads(state["kernel_"], state["landmarks_"]),
    "KernelFeatures": lambda state, sizes: len(state.get("met_", ())) in (0, -(-int(state["n_features"]) // 8)),
    "OpticalRandomFeatures": _optical_fits,
    "SignRandomProjection": _signs_fit,
    "LevelEncoder": lambda state, sizes: bool((state["high_"] >= state["low_"]).all()),
    "SequenceEncoder": lambda state, sizes: bool((state["high_"] >= state["low_"]).all()),
    "FractionalPowerEncoder": lambda state, sizes: sizes["h"] == 4 * sizes["b"],
    "HeatRandomFeatures": lambda state, sizes: (sizes["m"] + 1) // 2 == sizes["h"],
    "GraphletSampling": lambda state, sizes: vars(state["map_"]).get("size") == state["size"],
    "Waves": lambda state, sizes: len(state["frequencies"]) == _n_pairs(state["size"]),
    "Quadratic": lambda state, sizes: len(state["matrix"]) == _n_pairs(_n_pairs(state["size"]) + 1),
    "HeatSVC": lambda state, sizes: sizes["c"] > 1 and sizes["p"] == _n_pairs(sizes["c"]),
    "KernelSVC": _kernel_svc_fits,
    "KernelRidge": lambda state, sizes: _reads(state["kernel_"], state["objects_"]),
    "KernelSVR": lambda state, sizes: sizes["s"] == 0 or _reads(state["kernel_"], state["support_objects_"]),
    "KNeighborsClassifier": _neighbors_fit,
    "KNeighborsRegressor": _neighbors_fit,
    "SimilaritySearch": lambda state, sizes: np.array_equal(np.sort(state["ids_"]), np.sort(_ids_of(state["index_"]))),
    "SVC": _svc_fits,
    "NuSVC": _svc_fits,
}  # fmt: skip


def _inside(root: Any, state_of: Callable[[Any], dict[str, Any]]) -> Iterator[Any]:
    """Yield the objects in a tree of lists, tuples, dicts and objects, each once."""
    stack, met = [root], set()
    while stack:
        value = stack.pop()
        if id(value) in met or isinstance(value, str | bytes | type):
            continue
        if isinstance(value, np.ndarray):
            stack.extend(value.ravel().tolist() if value.dtype == object else ())
            continue
        met.add(id(value))
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple | set):
            stack.extend(value)
        elif hasattr(value, "__dict__"):
            stack.extend(state_of(value).values())
            yield value


def written(value: Any) -> dict[str, Any]:
    """Return what a file holds of an object: a search and its index leave out what they keep for speed."""
    return value.__getstate__() if type(value).__name__ in ("SimilaritySearch", "HammingIndex") else vars(value)


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else _short(value)
