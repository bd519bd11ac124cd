"""Check the laws of a kernel, a distance, an embedding or an encoder, ours or your own.

Each check returns None if every law holds on the given objects. Otherwise it raises `AssertionError` with one
sentence: the law that fails, the place, and the two values that disagree. It raises `ValueError` for fewer than two
objects. Only the given objects are tried, so pass short and long ones, repeats, and an empty one if it can occur.

Cost: a few matrices of n x n values or a few calls of ``fit``; tens to hundreds of objects are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.objects import n_objects, take


def check_kernel(kernel: Any, X: Any, *, tolerance: float = 1e-6) -> None:
    """Check that `kernel` is a positive semi-definite kernel on `X`; raise AssertionError if a law fails.

    The laws:

    - ``kernel(X)`` is a symmetric (n, n) matrix of finite real numbers without negative eigenvalues;
    - a second call returns the same matrix;
    - for disjoint parts A and B of `X`, ``kernel(A, B)`` equals the corresponding block of ``kernel(X)``;
    - if the kernel has a method ``diag``, ``kernel.diag(X)`` is the diagonal of the matrix.

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Y=None) -> (n, m)``.
    X : sequence of n objects
        At least two.
    tolerance : float, default=1e-6
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared. Eigenvalues may be negative by this fraction of the largest absolute eigenvalue.

    Examples
    --------
    >>> import similia as sm
    >>> sm.checks.check_kernel(sm.kernels.Spectrum(k=2), ["GATTACA", "ATTA", ""])
    >>> minus_distance = sm.pairwise(lambda x, y: -abs(len(x) - len(y)))
    >>> sm.checks.check_kernel(minus_distance, ["GATTACA", "ATTA"])
    Traceback (most recent call last):
    AssertionError: positive semi-definite: the smallest eigenvalue of kernel(X) is -3, the largest 3
    """
    K = _check_matrix(kernel, "kernel", X, tolerance)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    least, most = eigenvalues[0], eigenvalues[-1]
    _require(
        least >= -tolerance * np.abs(eigenvalues).max(),
        f"positive semi-definite: the smallest eigenvalue of kernel(X) is {least:.4g}, the largest {most:.4g}",
    )
    if hasattr(kernel, "diag"):
        diagonal = _real_array(kernel.diag(X), (len(K),), "kernel.diag(X)")
        _check_equal("diagonal", K.diagonal(), "kernel(X).diagonal()", diagonal, "kernel.diag(X)", tolerance)


def check_distance(distance: Any, X: Any, *, tolerance: float = 1e-6) -> None:
    """Check that `distance` is a distance on `X`; raise AssertionError if a law fails.

    The laws:

    - ``distance(X)`` is a symmetric (n, n) matrix of finite real numbers >= 0, and its diagonal is 0;
    - a second call returns the same matrix;
    - for disjoint parts A and B of `X`, ``distance(A, B)`` equals the corresponding block of ``distance(X)``.

    The triangle inequality is not checked: useful distances, such as dynamic time warping, violate it.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)``.
    X : sequence of n objects
        At least two.
    tolerance : float, default=1e-6
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared.

    Examples
    --------
    >>> import similia as sm
    >>> sm.checks.check_distance(sm.distances.FromFunction(lambda x, y: abs(len(x) - len(y))), ["GATTACA", "ATTA"])
    """
    D = _check_matrix(distance, "distance", X, tolerance)
    i, j = np.unravel_index(D.argmin(), D.shape)
    _require(D[i, j] >= 0, f"non-negative: distance(X)[{i}, {j}] is {D[i, j]:.6g}")
    i = D.diagonal().argmax()
    _require(D[i, i] <= tolerance * D.max(), f"zero to itself: distance(X)[{i}, {i}] is {D[i, i]:.6g}")


def check_embedding(estimator: Any, X: Any, y: Any = None, *, tolerance: float = 1e-4) -> None:
    """Check that `estimator` is an embedding, a transformer of objects to vectors; raise AssertionError if a law fails.

    The laws:

    - ``fit`` returns the estimator and does not change its parameters;
    - ``transform(X)`` is a matrix of n rows of finite float32 or float64 numbers;
    - a second call of ``transform`` returns the same matrix;
    - an object gets the same vector whether ``transform`` gets all of `X`, a part of it, the objects in another order,
      or only this object;
    - a second fit with the same ``random_state`` gives the same vectors.

    Parameters
    ----------
    estimator : scikit-learn transformer
        It is not fitted itself. The check fits clones of it, with 0 in place of each ``random_state`` that is None,
        even a nested one.
    X : sequence of n objects
        At least two.
    y : array-like of shape (n,), optional
        Labels, if ``fit`` needs them.
    tolerance : float, default=1e-4
        Largest difference allowed between numbers that should be equal, as a fraction of the largest absolute value in
        the arrays compared.

    Examples
    --------
    >>> import similia as sm
    >>> embedding = sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=2)
    >>> sm.checks.check_embedding(embedding, ["GATTACA", "ATTA", "ACA"])
    """
    vectors = _check_transformer(estimator, X, y, tolerance)
    known = vectors.dtype in (np.float32, np.float64)
    _require(known, f"dtype: transform(X) has dtype {vectors.dtype}, expected float32 or float64")


def check_codes(encoder: Any, X: Any, y: Any = None) -> None:
    """Check that `encoder` is a transformer of objects to packed bits; raise AssertionError if a law fails.

    The laws:

    - ``transform(X)`` is a C-contiguous uint8 array of n rows;
    - if the encoder has an attribute ``n_bits``, a row has ``n_bits // 8`` bytes;
    - all laws of `check_embedding` hold, apart from the law that says which dtypes are allowed; codes that should be
      equal are equal bit for bit.

    Parameters
    ----------
    encoder : scikit-learn transformer
        The check fits only clones of it, in which every ``random_state`` that is None, even a nested one, becomes 0.
    X : sequence of n objects
        At least two.
    y : array-like of shape (n,), optional
        Labels, if ``fit`` needs them.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> sm.checks.check_codes(sm.SignRandomProjection(n_bits=64), np.eye(3))
    """
    codes = _check_transformer(encoder, X, y, tolerance=0.0)
    in_order = codes.flags.c_contiguous
    _require(
        codes.dtype == np.uint8 and in_order,
        f"packed bits: transform(X) has dtype {codes.dtype}, C-contiguous: {in_order}; "
        "expected C-contiguous uint8, as numpy.packbits makes",
    )
    found, n_bits = 8 * codes.shape[1], getattr(encoder, "n_bits", 8 * codes.shape[1])
    _require(found == n_bits, f"n_bits: transform(X) has {found} bits, encoder.n_bits is {n_bits}")


def _check_matrix(function: Any, name: str, X: Any, tolerance: float) -> npt.NDArray[np.float64]:
    """Return `function(X)` after checking the laws that kernels and distances have in common."""
    n = _n_at_least_two(X)
    values = _real_array(function(X), (n, n), f"{name}(X)")
    again = _real_array(function(X), (n, n), f"{name}(X)")
    _check_equal("repeatable", values, f"{name}(X)", again, "a second call", tolerance)
    _check_equal("symmetric", values, f"{name}(X)", values.T, "its transpose", tolerance)
    for rows, columns in _disjoint_parts(n):
        part = f"{name}(A, B) for A = X[{rows.tolist()}], B = X[{columns.tolist()}]"
        block = _real_array(function(take(X, rows), take(X, columns)), (len(rows), len(columns)), part)
        _check_equal("blocks", block, part, values[np.ix_(rows, columns)], f"{name}(X) there", tolerance)
    return values.astype(np.float64)


def _check_transformer(estimator: Any, X: Any, y: Any, tolerance: float) -> npt.NDArray:
    """Return `transform(X)` after checking the laws that embeddings and encoders have in common."""
    n = _n_at_least_two(X)
    fitted = _fitted_clone(estimator, X, y)
    values = _real_array(fitted.transform(X), (n, None), "transform(X)")
    again = _real_array(fitted.transform(X), values.shape, "transform(X)")
    _check_equal("repeatable", values, "transform(X)", again, "a second call", tolerance)
    for rows in (np.arange(n)[::-1], np.arange(0, n, 2), np.array([n - 1])):
        part = f"transform(A) for A = X[{rows.tolist()}]"
        some = _real_array(fitted.transform(take(X, rows)), (len(rows), values.shape[1]), part)
        _check_equal("blocks", some, part, values[rows], "transform(X) there", tolerance)
    refitted = _real_array(_fitted_clone(estimator, X, y).transform(X), values.shape, "transform(X)")
    _check_equal("seed", values, "transform(X)", refitted, "transform(X) after a second fit", tolerance)
    return values


def _fitted_clone(estimator: Any, X: Any, y: Any) -> Any:
    """Return a fitted clone with a fixed seed; raise if ``fit`` does not return the clone or changes its parameters."""
    copy = _seeded_clone(estimator)
    before = copy.get_params()
    _require(copy.fit(X, y) is copy, "fit: it does not return the estimator itself")
    after = copy.get_params()
    changed = [
        name for name in after if after[name] is not before.get(name) and not _in_place(copy, name, before.get(name))
    ]
    names = ", ".join(map(repr, changed))
    _require(not changed, f"fit: it changes the parameter {names}; learnt values belong in attributes such as mean_")
    return copy


def _seeded_clone(estimator: Any) -> Any:
    """Return a clone in which every parameter `random_state` that is None becomes 0."""
    from sklearn.base import clone

    copy = clone(estimator)
    unset = [key for key, value in copy.get_params().items() if key.endswith("random_state") and value is None]
    return copy.set_params(**dict.fromkeys(unset, 0))


def _in_place(estimator: Any, name: str, value: Any) -> bool:
    """Return whether `fit` may change a parameter: a pipeline fits its steps in place and makes a new list of them."""
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline) and (name.split("__")[-1] == "steps" or hasattr(value, "fit"))


def _require(holds: Any, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def _n_at_least_two(X: Any) -> int:
    n = n_objects(X)
    if n < 2:
        raise ValueError(f"a check compares objects with each other, so X must hold at least two, got {n}")
    return n


def _disjoint_parts(n: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return two pairs of disjoint arrays of positions below `n`; one array of the second pair is descending.

    They are disjoint because ``kernel(X)`` alone may set the similarity of an object to itself by convention, as for an
    empty string under a normalised kernel.
    """
    return [(np.arange(0, n, 2), np.arange(1, n, 2)), (np.arange(1, n)[::-1], np.arange(1))]


def _real_array(values: Any, shape: tuple[int | None, ...], name: str) -> npt.NDArray:
    """Return `values`; raise if they are not an array of finite real numbers of this `shape` (None: any length)."""
    kind = f"{type(values).__name__} of dtype {getattr(values, 'dtype', None)}"
    real = isinstance(values, np.ndarray) and values.dtype.kind in "buif"
    _require(real, f"array: {name} is {kind}, expected a numpy array of real numbers")
    fits = values.ndim == len(shape) and all(
        want in (None, have) for want, have in zip(shape, values.shape, strict=True)
    )
    _require(fits, f"shape: {name} has shape {values.shape}, expected {shape}")
    for place in np.argwhere(~np.isfinite(values)).tolist()[:1]:
        raise AssertionError(f"finite: {name} is {values[tuple(place)]} at {tuple(place)}")
    return values


def _check_equal(law: str, a: npt.NDArray, a_name: str, b: npt.NDArray, b_name: str, tolerance: float) -> None:
    """Raise if two arrays differ by more than `tolerance` times the largest absolute value."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(a - b)
    if difference.max(initial=0.0) > tolerance * max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)):
        place = tuple(int(i) for i in np.unravel_index(difference.argmax(), difference.shape))
        raise AssertionError(f"{law}: at {place}, {a_name} is {a[place]:.6g} but {b_name} is {b[place]:.6g}")
