"""Displays of an approximated kernel: its eigenvalues, and its error by number of landmarks or random features.

Landmarks: the kernels among the objects, and between objects and landmarks, are computed once. The error for fewer
landmarks uses a subset of the columns, so the curve costs as much as one fit. Random features: a kernel value is a mean
of R terms, one for each feature. With r features, the expected squared error is the variance of the terms divided by r.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import one_blas_thread
from similia.core.text import short
from similia.core.validation import BadParameter, check_positive_int, generator
from similia.embeddings.landmarks import decompose
from similia.embeddings.nystroem import Nystroem
from similia.objects import n_objects, take
from similia.report._model import Parts, embedded, fitted_parts, is_packed, sampled, unframed
from similia.report.displays import Display, Floats, line, mark
from similia.similarity import as_objects, evaluate, precision

_MOST_FEATURES = 2**53  # float64 holds all integers up to here


@dataclass(kw_only=True, eq=False, repr=False)
class ApproximationErrorDisplay(Display):
    """Plot of the error of an approximated kernel against the number of landmarks or random features.

    Landmarks are the training objects with which `similia.Nystroem` compares all objects.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_sizes,)
        Numbers of landmarks or of random features.
    errors : ndarray of float, shape (n_sizes,)
        Error for each number: ``||K - approximation|| / ||K||``, where K is the exact kernel matrix of the objects, and
        the norm is the square root of the sum of squared entries. For random features, K is not computed; the error is
        estimated from the variance of the features.
    of : str
        What `sizes` counts: "landmarks" or "random features".
    against : str
        Description of the exact kernel, for the title of the plot.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        The axes and figure of the last `plot`.
    line_ : matplotlib line
        The curve.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import ApproximationErrorDisplay
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.Nystroem(sm.kernels.Spectrum(k=3), 40, random_state=0).fit(X[:60])
    >>> display = ApproximationErrorDisplay.from_estimator(model, X[60:])
    >>> bool(display.errors[-1] < display.errors[0])
    True
    """

    sizes: npt.NDArray[np.int64]
    errors: Floats
    of: str
    against: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, sizes: Sequence[int] | None = None, max_objects: int = 400,
        random_state: int = 0, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Measure and draw the error of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            For a `similia.Nystroem`, approximations with random subsets of its landmarks are compared with its exact
            kernel. For random features (`similia.D2KE`, `similia.OpticalRandomFeatures`, ...), the curve is the
            expected error, estimated from the variance of the features; the exact kernel is not computed.
        X : collection of n objects
            Objects to which the model was not fitted.
        y : ignored
            Not used; present for a uniform interface.
        sizes : sequence of int, optional
            Numbers of landmarks or of random features, none larger than the number that the model has; by default, at
            most eight numbers in an approximately geometric sequence.
        max_objects : int, default=400
            Maximum number of objects. If there are more, a random sample is used, because the kernel is computed for
            all pairs.
        random_state : int, default=0
            Seed for drawing objects and landmarks.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ValueError
            If the model has neither landmarks nor random features, or if `sizes` is empty or holds a number that is
            below 1 or too large.
        """
        most = check_positive_int(max_objects, "max_objects", minimum=2)
        return cls._measured(fitted_parts(estimator), X, sizes, most, random_state).plot(ax, **kwargs)

    @classmethod
    def _measured(cls, parts: Parts, X: Any, sizes: Sequence[int] | None, most: int, random_state: int) -> Self:
        for step in parts.transformers:
            if isinstance(step, Nystroem):
                return cls._of_nystroem(step, X, sizes, most, random_state)
            X = take(X, sampled(X, most, generator(random_state)))
            if _has_random_features(step):
                return cls._of_features(np.asarray(step.transform(X)), sizes, most)
            X = unframed(step, step.transform(X))
            if is_packed(X):
                break
        raise ValueError(f"{parts} has neither landmarks nor random features, whose number changes the error")

    @classmethod
    def _of_nystroem(cls, nystroem: Any, X: Any, sizes: Sequence[int] | None, most: int, random_state: int) -> Self:
        if isinstance(nystroem.kernel_, str):
            raise ValueError("the kernel is precomputed, so it cannot be evaluated for other pairs of objects")
        rng = generator(random_state)
        X = as_objects(nystroem.kernel_, X)
        X = take(X, sampled(X, most, rng))
        landmarks = nystroem.landmarks_
        K = evaluate(nystroem.kernel_, X, X).astype(np.float64)
        C = evaluate(nystroem.kernel_, X, landmarks).astype(np.float64)
        H = evaluate(nystroem.kernel_, landmarks, landmarks)
        eps = precision(nystroem.kernel_, landmarks, H)
        H = H.astype(np.float64)
        found = _sizes(sizes, len(H), len(H))
        order = rng.permutation(len(H))  # the best landmarks may come first
        norm, errors = np.linalg.norm(K), []
        for s in found:
            some = np.sort(order[:s])
            with one_blas_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about clipped eigenvalues
                try:
                    part = (H[np.ix_(some, some)] + H[np.ix_(some, some)].T) / 2
                    _, components = decompose(part, nystroem.spectrum, s * eps, eps)
                except ValueError:  # these landmarks are similar to nothing
                    errors.append(1.0)
                    continue
            theta = C[:, some] @ components
            errors.append(float(np.linalg.norm(K - theta @ theta.T) / norm) if norm else 0.0)
        against = f"the kernel between {n_objects(X)} objects"
        return cls(sizes=found, errors=np.array(errors), of="landmarks", against=against)

    @classmethod
    def _of_features(cls, vectors: npt.NDArray, sizes: Sequence[int] | None = None, most: int = 400) -> Self:
        """Estimate the error for each number of independent, identically distributed random features.

        The variance of the terms is estimated from the model's own features. Orthogonal features have a smaller error.
        """
        V = vectors[:most].astype(np.float64)
        R = V.shape[1]
        if R < 16:
            raise ValueError(f"there are {R} random features, expected at least 16 to estimate their error")
        found = _sizes(sizes, R, _MOST_FEATURES)
        with one_blas_thread():
            estimate = V @ V.T
            terms = R * (np.square(V) @ np.square(V).T)  # their mean square
        spread = float(np.maximum(terms - estimate**2, 0).sum()) * R / (R - 1)
        norm = max(float(np.square(estimate).sum()) - spread / R, np.finfo(float).tiny)
        against = f"the kernel that the features estimate, by the variance of {R} of them"
        return cls(sizes=found, errors=np.sqrt(spread / found / norm), of="random features", against=against)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve on logarithmic axes; `kwargs` go to ``Axes.plot``."""
        (axis,) = self._axes(ax)
        (self.line_,) = axis.plot(self.sizes, self.errors, **{**line(0), **kwargs})
        axis.set_xscale("log")
        _round_ticks(axis.xaxis)
        if (self.errors > 0).any():
            axis.set_yscale("log")
            _round_ticks(axis.yaxis)
        axis.set(xlabel=f"number of {self.of}", ylabel="relative error of the kernel")
        axis.set_title(f"against {self.against}", fontsize="medium")
        return self


def steps_to(n: int, most: int = 8, least: int = 5) -> npt.NDArray[np.int64]:
    """Return at most `most` integers from `least` to `n` that form an approximately geometric sequence."""
    return np.unique(np.geomspace(min(least, n), n, most).round().astype(np.int64))


def _sizes(sizes: Sequence[int] | None, n: int, most: int) -> npt.NDArray[np.int64]:
    if sizes is None:
        return steps_to(n)
    found = [check_positive_int(size, "each of sizes") for size in np.atleast_1d(sizes)]
    if not found or max(found) > most:
        raise BadParameter("sizes", f"one or more integers of at most {most:,}", short(sizes))
    return np.array(found, dtype=np.int64)


def _has_random_features(step: Any) -> bool:
    """Return whether the output columns of a step are independent, identically distributed random features."""
    name = type(step).__name__
    if name == "GraphletSampling":
        return step.features in ("optical", "gaussian") and step.n_components is not None
    return name in ("D2KE", "OpticalRandomFeatures", "HeatRandomFeatures", "RBFSampler")


def _round_ticks(axis: Any) -> None:
    """Label powers of ten on a logarithmic axis; if it spans less than a factor of 100, also 2, 5, 20, 50 etc."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=7))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


@dataclass(kw_only=True, eq=False, repr=False)
class SpectrumDisplay(Display):
    """Plot of the eigenvalues of a kernel matrix, with its rank and the share of negative eigenvalues.

    The matrix holds the kernel values between landmarks, the training objects with which `similia.Nystroem` compares
    all objects. For a model without landmarks, it holds the inner products of the vectors that the model makes for the
    given objects.

    Parameters
    ----------
    eigenvalues : ndarray of float, shape (n,)
        Eigenvalues, largest first. Only an indefinite kernel has negative ones.
    rank : int
        Number of dimensions that the model keeps; for a model without landmarks, the numerical rank of the matrix.
    clipped : float
        Share of negative eigenvalues: the sum of their absolute values, divided by the sum of the absolute values of
        all eigenvalues. It is 0 if the kernel is precomputed or the landmarks form several groups (an ensemble): the
        plot then shows only the eigenvalues that the model keeps.
    of : str
        Name of the matrix, for the title of the plot.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        The axes and figure of the last `plot`.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import SpectrumDisplay
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.Nystroem(sm.kernels.Spectrum(k=2), 40, random_state=0).fit(X)
    >>> display = SpectrumDisplay.from_estimator(model)
    >>> len(display.eigenvalues), display.rank, display.clipped
    (40, 16, 0.0)
    """

    eigenvalues: Floats
    rank: int
    clipped: float
    of: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, max_objects: int = 300, random_state: int = 0,
        ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Compute and draw the spectrum of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            For a `similia.Nystroem`, the matrix is the kernel between its landmarks; for other models, the matrix of
            inner products of the vectors of `X`.
        X : collection of n objects, optional
            Objects to embed; required for models without landmarks.
        y : ignored
            Not used; present for a uniform interface.
        max_objects : int, default=300
            Maximum number of objects sampled from `X`.
        random_state : int, default=0
            Seed for drawing objects.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **kwargs
            Passed to ``Axes.plot``.

        Raises
        ------
        ValueError
            If the model has no landmarks and `X` is not given.
        """
        most = check_positive_int(max_objects, "max_objects")
        return cls._measured(fitted_parts(estimator), X, most, random_state).plot(ax, **kwargs)

    @classmethod
    def _measured(cls, parts: Parts, X: Any = None, most: int = 300, random_state: int = 0) -> Self:
        nystroem = parts.nystroem
        if nystroem is not None and not isinstance(nystroem.kernel_, str) and len(nystroem.weights_) == 1:
            H = evaluate(nystroem.kernel_, nystroem.landmarks_, nystroem.landmarks_).astype(np.float64)
            eigenvalues = _eigenvalues(H)
            below = eigenvalues < -max(len(H) * np.finfo(np.float64).eps, 1e-10) * eigenvalues[0]  # beyond rounding
            clipped = float(np.abs(eigenvalues[below]).sum() / np.abs(eigenvalues).sum())
            of = f"the kernel of {len(H)} landmarks"
            return cls(eigenvalues=eigenvalues, rank=nystroem.rank_, clipped=clipped, of=of)
        if nystroem is not None:  # a precomputed matrix is not kept, and of several experts each has its own
            eigenvalues = np.sort(nystroem.eigenvalues_)[::-1].astype(np.float64)
            of = "the kernel of the landmarks, as kept"
            return cls(eigenvalues=eigenvalues, rank=len(eigenvalues), clipped=0.0, of=of)
        if X is None:
            raise ValueError(f"{parts} has no landmarks; pass objects X, whose vectors have the spectrum")
        chosen = sampled(X, most, generator(random_state))
        vectors = embedded(parts, take(X, chosen), random_state).vectors
        wide = vectors.astype(np.float64)
        product = wide @ wide.T
        gram = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
        eigenvalues = np.maximum(_eigenvalues(gram), 0.0)
        kind = vectors.dtype if np.issubdtype(vectors.dtype, np.inexact) else wide.dtype
        rounding = max((max(vectors.shape) * np.finfo(kind).eps) ** 2, len(gram) * np.finfo(np.float64).eps)
        rank = int((eigenvalues > eigenvalues[:1] * rounding).sum())
        of = f"inner products of the vectors of {len(chosen)} objects"
        return cls(eigenvalues=eigenvalues, rank=rank, clipped=0.0, of=of)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the absolute eigenvalues on a logarithmic axis, with hollow markers for negative ones.

        `kwargs` go to ``Axes.plot`` for the positive eigenvalues.
        """
        (axis,) = self._axes(ax)
        numbers, values = np.arange(1, len(self.eigenvalues) + 1), self.eigenvalues
        floor = np.abs(values).max() * 1e-17
        style = {**line(0), "linestyle": "none", "markersize": 3}
        axis.plot(numbers[values > floor], values[values > floor], **{**style, "label": "positive", **kwargs})
        below = values < -floor
        if below.any():
            axis.plot(numbers[below], -values[below], **{**style, **mark(1), "fillstyle": "none", "label": "negative"})
        axis.axvline(self.rank, color="0.45", linestyle="--", linewidth=1, label=f"rank {self.rank}")
        axis.set_yscale("log")
        _round_ticks(axis.yaxis)
        axis.set(xlabel="number of the eigenvalue", ylabel="size of the eigenvalue")
        clipped = f"; {100 * self.clipped:.2g} % negative" if self.clipped else ""
        axis.set_title(f"{self.of}{clipped}", fontsize="medium")
        axis.legend(frameon=False)
        return self


def _eigenvalues(H: Floats) -> Floats:
    with one_blas_thread():  # for small matrices, more threads are slower
        eigenvalues: Floats = np.linalg.eigvalsh((H + H.T) / 2)[::-1].astype(np.float64)
    return eigenvalues
