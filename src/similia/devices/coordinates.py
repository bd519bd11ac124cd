"""From the fitted steps of a pipeline to the first stages of a quantised model: an input, and a linear map after it.

The input turns an object into whole numbers k (or float32). The coordinates that are projected to bits are A k + c:
`Nystroem` and `D2KE` give A, and every scaler or rotation after them changes A and c.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from similia.codes import LevelEncoder, NGramEncoder
from similia.core.errors import BadParameter, BadValue
from similia.core.text import short
from similia.core.validation import check_vectors
from similia.devices.inputs import (
    Curve,
    Decay,
    Edits,
    Features,
    FloatGaussian,
    FloatVectors,
    Gaussian,
    Ints,
    Letters,
    Levels,
    NGrams,
    Numbers,
    Substrings,
    Subtrees,
    Units,
    Warped,
    in_steps,
)
from similia.distances import DTW, Levenshtein
from similia.embeddings import D2KE, Nystroem
from similia.embeddings.vectors import FeatureScaler
from similia.kernels import RBF, DistanceRBF, GappyKmers, Spectrum, WeightedDegree, WeisfeilerLehman
from similia.objects import as_graphs, as_series, as_strings, n_objects, take
from similia.pipelines import steps_of

Floats = npt.NDArray[np.float64]

_EXAMPLES = 300  # maximum number of objects on which rounding errors are measured
_KERNELS = "Spectrum, GappyKmers, WeightedDegree, WeisfeilerLehman, RBF, and DistanceRBF of Levenshtein or DTW"


def input_of_encoder(encoder: Any, X: Any, length: int | None, letters: str) -> Levels | NGrams:
    """Return the input that makes the same codes as an encoder of hypervectors."""
    if encoder.output != "bits":
        raise TypeError(f"{name_of(encoder)} returns counts, not codes; quantise an encoder with output='bits'")
    if X is None:
        raise _needs_objects(type(encoder).__name__)
    encoder = deepcopy(encoder).set_output(transform="default")
    if isinstance(encoder, NGramEncoder):
        if encoder.binding != "multiply":
            raise TypeError(f"{name_of(encoder)} cannot be quantised; NGramEncoder with binding='multiply' can")
        return _holding(NGrams.of(encoder, Letters.of([as_strings(X)], letters, length)), X)
    if isinstance(encoder, LevelEncoder):
        return Levels.of(encoder, Units.of(check_vectors(X, n_features=len(encoder.low_)).astype(np.float64)), 0)
    batch = as_series(X)
    found = int(np.diff(batch.offsets).max()) if length is None else length
    return _holding(Levels.of(encoder, Units.of(batch.values.astype(np.float64)), found), batch)


def first_stage(
    steps: list[Any], projection: Any, X: Any, length: int | None, letters: str, whole: bool
) -> tuple[Any, Ints | None, Floats, Floats]:
    """Return (input, whole numbers k of some objects or None, A, c) for the coordinates A k + c.

    The first of `steps` is removed if it compares objects, as `Nystroem` and `D2KE` do.
    """
    first = steps[0] if steps else None
    if isinstance(first, Nystroem):
        kernel, landmarks, A = first.kernel_, first.landmarks_, first.components_.T
        del steps[0]
        counted = isinstance(kernel, WeisfeilerLehman | Spectrum | GappyKmers | WeightedDegree)
        if counted and not getattr(kernel, "boundaries", None):
            return _features(kernel, landmarks, steps, X, letters, length, A)
        if isinstance(kernel, RBF):
            return _above_noise(_gaussian(kernel, landmarks, X, whole), kernel, landmarks, X, A)
        if isinstance(kernel, DistanceRBF):
            decay = Decay(float(kernel.gamma), square=True)
            found = _distances(kernel.distance, landmarks, X, letters, length, decay, whole)
            return _above_noise(found, kernel, landmarks, X, A)
        raise TypeError(f"the kernel {name_of(kernel)} cannot be quantised; {_KERNELS} can")
    if isinstance(first, D2KE):
        del steps[0]
        decay = Decay(float(first.gamma_))
        found = _distances(first.distance_, first.random_objects_, X, letters, length, decay, whole)
        factors = np.full(found.width, 1 / (found.limit * np.sqrt(found.width)))
        return found, None, factors, np.zeros(found.width)
    if not whole:
        n_features = (first or projection).n_features_in_
        read = FloatVectors(n_features)
        return (read if X is None else _holding(read, X)), None, np.ones(n_features), np.zeros(n_features)
    if X is None:
        raise _needs_objects("a model without landmarks")
    reader = first or projection
    X = check_vectors(X, n_features=getattr(reader, "n_features_in_", None), by=reader)
    units = Units.of(X.astype(np.float64))
    return Numbers(units), None, units.steps.copy(), np.zeros(len(units.steps))


def _needs_objects(who: str) -> BadParameter:
    expected = f"objects such as the training objects, since {who} keeps no units or letters"
    return BadParameter("X", expected, "nothing")


def check_unused(read: Any, length: int | None, letters: str) -> None:
    """Raise if a limit is given that objects of this kind do not have."""
    if length is not None and read.kind in ("vector", "gaussian", "levels"):
        raise BadParameter("max_length", "left out for vectors, which have one length", str(length))
    if letters and not hasattr(read, "letters"):
        raise BadParameter("letters", "left out for objects that are not strings", short(letters))


def _holding(read: Any, X: Any, landmarks: Any = None) -> Any:
    """Return the input `read`; raise if an object of X or, without X, a landmark breaks one of its limits."""
    try:
        read.read(landmarks if X is None else X)
    except BadValue as error:
        raise error.changed(collection="landmarks" if X is None else "X") from None
    return read


def _features(
    kernel: Any, landmarks: Any, steps: list[Any], X: Any, letters: str, length: int | None, A: Floats
) -> tuple[Substrings | Subtrees, Ints, Floats, Floats]:
    """Return (input, k, A, c), as `first_stage`, for a kernel that is a product of feature counts."""
    if kernel.normalize and steps:
        raise TypeError(
            f"{name_of(steps[0])} after a kernel with normalize=True cannot be quantised, since a device does not "
            "compute the norm of an object; leave one of them out"
        )
    found: Substrings | Subtrees
    if isinstance(kernel, WeisfeilerLehman):
        found = Subtrees.of(kernel, [landmarks, *([] if X is None else [as_graphs(X)])], length)
    else:
        known = Letters.of([landmarks, *([] if X is None else [as_strings(X)])], letters, length)
        found = Substrings(Features.of(kernel, landmarks), known)
    _holding(found, X, landmarks)
    _ = found.limit  # raises if products of counts exceed 32 bits
    norms = kernel.counted(landmarks).squared_norms if kernel.normalize else np.ones(len(landmarks))
    return found, found.numbers(landmarks), A / np.sqrt(np.where(norms > 0, norms, 1.0)), np.zeros(len(A))


def _above_noise(read: Any, kernel: Any, landmarks: Any, X: Any, A: Floats) -> tuple[Any, Ints, Floats, Floats]:
    """Return (input, k, A, c), as `first_stage`, without coordinates that rounding changes by more than their size.

    Such coordinates belong to small eigenvalues, by whose roots the similarities are divided. Their rows of A become 0.
    Changes and sizes are mean squares over at most 300 objects of X, or landmarks.
    """
    objects = kernel.as_objects(landmarks if X is None else X)
    objects = take(objects, np.linspace(0, n_objects(objects) - 1, min(n_objects(objects), _EXAMPLES)).astype(int))
    exact, k = kernel(objects, landmarks).astype(np.float64), read.numbers(read.read(objects))
    size, change = (np.square(values @ A.T).mean(axis=0) for values in (exact, k / read.limit - exact))
    kept = change < size
    if not kept.any():
        raise ValueError("rounding changes every coordinate by more than its size; quantise with X as in training")
    return read, k, np.where(kept[:, None], A / read.limit, 0.0), np.zeros(len(A))


def _gaussian(kernel: RBF, landmarks: npt.NDArray, X: Any, whole: bool) -> Gaussian | FloatGaussian:
    gamma = float(kernel.gamma) * float(kernel.scale)
    if not whole:
        return _holding(FloatGaussian(landmarks.shape[1], landmarks.astype(np.float32), Decay(gamma)), X, landmarks)
    vectors = landmarks if X is None else np.concatenate([landmarks, check_vectors(X, n_features=landmarks.shape[1])])
    units = Units.of(vectors.astype(np.float64), common=True)
    step = float(units.steps[0])
    rows = units.read(landmarks.astype(np.float64))
    curve = Curve.of(lambda d: np.exp(-gamma * step**2 * d), _most_squared(rows.shape[1]))
    return Gaussian(units, rows, curve)


def _distances(
    distance: Any, landmarks: Any, X: Any, letters: str, length: int | None, decay: Decay, whole: bool
) -> Edits | Warped:
    """Return the input that applies the function `decay` to distances to `landmarks`."""
    if type(distance) is Levenshtein:
        known = Letters.of([landmarks, *([] if X is None else [as_strings(X)])], letters, length)
        longest = max(known.longest, int(np.diff(landmarks.offsets).max()))
        curve_of_edits = Curve.of(decay.exact, longest) if whole else decay
        return _holding(Edits(known, landmarks, curve_of_edits), X, landmarks)
    if not whole:
        raise TypeError(f"the distance {name_of(distance)} cannot be in float32, Levenshtein can; take numbers='whole'")
    if type(distance) is DTW and (landmarks.n_dims == 1 or distance.local == "sqeuclidean"):
        batches = [landmarks, *([] if X is None else [as_series(X)])]
        units = Units.of(np.concatenate([batch.values for batch in batches]).astype(np.float64), common=True)
        found = max(int(np.diff(batch.offsets).max()) for batch in batches)
        length = found if length is None else length
        step = float(units.steps[0])

        def curve(d: Floats) -> Floats:
            if distance.local == "euclidean":
                return decay.exact(d * step)
            return decay.exact(np.sqrt(d) * step if distance.root else d * step**2)

        both = length + int(np.diff(landmarks.offsets).max())
        cost = 2 * 2**15 if distance.local == "euclidean" else _most_squared(landmarks.n_dims)
        rows = in_steps(landmarks, units)
        return _holding(Warped(distance, units, rows, length, Curve.of(curve, both * cost)), X, landmarks)
    can = "Levenshtein and DTW (one channel, or local='sqeuclidean') can"
    raise TypeError(f"the distance {name_of(distance)} cannot be quantised; {can}")


def after_step(step: Any, A: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Return factors and offsets of coordinates after `step`, which scales, shifts or rotates them."""
    if isinstance(step, FeatureScaler):
        step = step.scaler_
    if isinstance(step, StandardScaler):
        scale = np.ones(len(A)) if step.scale_ is None else step.scale_
        mean = np.zeros(len(A)) if step.mean_ is None or not step.with_mean else step.mean_
        return _times(1 / scale, A), (c - mean) / scale
    if isinstance(step, MinMaxScaler) and not step.clip:
        return _times(step.scale_, A), c * step.scale_ + step.min_
    if isinstance(step, MaxAbsScaler):
        return _times(1 / step.scale_, A), c / step.scale_
    if isinstance(step, PCA):
        axes = step.components_
        if step.whiten:
            scale = np.sqrt(step.explained_variance_)
            known = scale >= np.finfo(scale.dtype).eps  # scikit-learn divides the others, which are noise, by eps
            axes = axes / np.where(known, scale, np.inf)[:, None]
        return axes * A if A.ndim == 1 else axes @ A, axes @ (c - step.mean_)
    raise TypeError(
        f"the step {name_of(step)} cannot be quantised; StandardScaler, MinMaxScaler without clip, MaxAbsScaler and "
        "PCA can"
    )


def _times(factors: Floats, A: Floats) -> Floats:
    return factors * A if A.ndim == 1 else factors[:, None] * A


def _most_squared(n: int) -> int:
    """Return the largest squared distance of two vectors of n numbers of 16 bits."""
    return n * 2**32


def kinds_of(model: Any) -> str:
    """Return the names of the steps of a model."""
    return " -> ".join(type(step).__name__ for step in steps_of(model)) or "no steps"


def name_of(step: Any) -> str:
    return repr(step) if len(repr(step)) < 60 else type(step).__name__
