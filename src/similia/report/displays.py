"""Displays in the style of scikit-learn: numbers as attributes, ``plot(ax=None)``, ``ax_`` and ``figure_``.

``SpectrumDisplay.from_estimator(model)`` measures and draws; ``display.plot(ax)`` draws again. Without axes, pyplot
makes a new figure, so ``plt.show()`` and ``plt.savefig("picture.png")`` work. If you draw many, close them with
``plt.close(display.figure_)`` or pass axes.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.validation import check_labels, check_positive_int, generator
from similia.objects import n_objects, take
from similia.report import _measures as measures
from similia.report._model import Parts, embedded, fitted_parts, sampled

Floats = npt.NDArray[np.float64]
_MOST_CLASSES = 20  # with their own colour and marker


# Okabe & Ito, "Color universal design", 2008, without the yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


MARKS = ("o", "s", "^", "D", "v", "P", "X")


LINES = ("-", "--", "-.", ":")


class Display:
    """Base of displays: `plot` draws on the given axes or a new pyplot figure, as in scikit-learn."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; see the classes."""
        raise NotImplementedError

    def _axes(self, ax: Any, n: int = 1) -> list[Any]:
        """Store and return n axes: those given, or new ones."""
        if ax is None:
            import matplotlib.pyplot as plt

            size = (5.6 if n == 1 else 4.6 * n, 3.8)
            axes = list(plt.subplots(1, n, squeeze=False, figsize=size, layout="constrained")[1][0])
        else:
            axes = [ax] if n == 1 else list(ax) if hasattr(ax, "__len__") else [ax]
            if len(axes) != n:
                raise ValueError(f"ax must be {n} axes, got {len(axes)}; plt.subplots(1, {n})[1] makes them")
        for axis in axes:
            style_axis(axis)
        self.figure_ = axes[0].get_figure()
        self.ax_ = axes[0] if n == 1 else axes
        return axes

    def _repr_html_(self) -> str | None:
        """Show the figure in notebooks and documentation, unless pyplot is about to show it."""
        if not hasattr(self, "figure_"):
            self.plot()
        if _is_open(self.figure_):
            return None
        out = io.BytesIO()
        self.figure_.savefig(out, format="png", dpi=110)
        data = base64.b64encode(out.getvalue()).decode()
        return f'<img alt="{type(self).__name__}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _is_open(figure: Any) -> bool:
    """Return whether pyplot has this figure open."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot is not None and pyplot.fignum_exists(getattr(figure, "number", -1))


def style_axis(axis: Any) -> None:
    """Draw a pale grid and no frame."""
    axis.grid(alpha=0.25)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def round_ticks(axis: Any) -> None:
    """Label powers of ten on a logarithmic axis; on a short one, also 2 and 5 times these."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=7))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def mark(i: int) -> dict[str, Any]:
    """Return the colour and marker of series number i; 49 combinations are distinct."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[(i + i // len(COLOURS)) % len(MARKS)]}


def line(i: int) -> dict[str, Any]:
    """Return the colour, marker and line style of curve number i."""
    return {**mark(i), "linestyle": LINES[i % len(LINES)], "markersize": 5, "linewidth": 1.6}


class ApproximationErrorDisplay(Display):
    """Error of an approximated kernel against the number of landmarks or random features.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_sizes,)
        Numbers of landmarks or features.
    errors : ndarray of float, shape (n_sizes,)
        ||K - approximation||_F / ||K||_F over pairs of objects.
    of : str
        Unit of `sizes`: "landmarks" or "random features".
    against : str
        Reference that the approximation is compared with.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.
    line_ : matplotlib line

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

    def __init__(self, *, sizes: npt.NDArray[np.int64], errors: Floats, of: str, against: str) -> None:
        self.sizes = sizes
        self.errors = errors
        self.of = of
        self.against = against

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sizes: Sequence[int] | None = None,
        max_objects: int = 400,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Measure and draw the error of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            For a `similia.Nystroem`, random subsets of its landmarks are compared with its kernel. Random features
            (`similia.D2KE`, `similia.OpticalRandomFeatures`, ...) have no exact kernel to compare with; the curve is
            the expected error, estimated from the spread of the model's features.
        X : collection of n objects
            Objects to which the model was not fitted.
        y : ignored
            Taken so that all displays are called alike.
        sizes : sequence of int, optional
            Numbers of landmarks or features; by default, eight in equal ratios.
        max_objects : int, default=400
            Maximum number of objects, as the kernel of all pairs is computed; more are sampled.
        random_state : int, default=0
        ax : matplotlib axes, optional
        **kwargs
            To the line.

        Returns
        -------
        ApproximationErrorDisplay

        Raises
        ------
        ValueError
            If the model has neither landmarks nor random features.
        """
        most = check_positive_int(max_objects, "max_objects", minimum=2)
        curve = measured_errors(fitted_parts(estimator), X, sizes, most, random_state)
        return cls(sizes=curve.sizes, errors=curve.errors, of=curve.of, against=curve.against).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve on logarithmic axes; `kwargs` go to the line."""
        (axis,) = self._axes(ax)
        (self.line_,) = axis.plot(self.sizes, self.errors, **{**line(0), **kwargs})
        axis.set_xscale("log")
        round_ticks(axis.xaxis)
        if (self.errors > 0).any():
            axis.set_yscale("log")
            round_ticks(axis.yaxis)
        axis.set(xlabel=f"number of {self.of}", ylabel="relative error of the kernel")
        axis.set_title(f"against {self.against}", fontsize="medium")
        return self


def measured_errors(
    parts: Parts, X: Any, sizes: Sequence[int] | None, most: int, random_state: int
) -> measures.ErrorCurve:
    """Return the errors of a model's landmarks or random features on pairs of objects."""
    if parts.nystroem is not None:
        return measures.nystroem_errors(parts.nystroem, X, sizes, most, random_state)
    for step in parts.transformers:
        X = take(X, sampled(X, most, generator(random_state)))
        if _random(step):
            return measures.feature_errors(np.asarray(step.transform(X)), sizes, most)
        X = step.transform(X)
        if X.dtype == np.uint8:
            break
    raise ValueError(f"{parts} has neither landmarks nor random features, whose number could change an error")


def _random(step: Any) -> bool:
    """Return whether the columns of a step are independent and identically distributed."""
    name = type(step).__name__
    if name == "GraphletSampling":
        return step.features in ("optical", "gaussian") and step.n_components is not None
    return name in ("D2KE", "OpticalRandomFeatures", "HeatRandomFeatures", "RBFSampler")


class SpectrumDisplay(Display):
    """Eigenvalues of the landmark kernel, its rank, and its negative share.

    Parameters
    ----------
    eigenvalues : ndarray of float, shape (n,)
        Eigenvalues, largest first; negative only for an indefinite similarity.
    rank : int
        Number of dimensions kept.
    clipped : float
        Share of the sum of absolute eigenvalues that is negative.
    of : str
        Name of the matrix.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.

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

    def __init__(self, *, eigenvalues: Floats, rank: int, clipped: float, of: str) -> None:
        self.eigenvalues = eigenvalues
        self.rank = rank
        self.clipped = clipped
        self.of = of

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        max_objects: int = 300,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and draw the spectrum of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            For a `similia.Nystroem`, the kernel between its landmarks is used; for others, the inner products of
            their vectors.
        X : collection of n objects, optional
            Objects to embed; required for models without landmarks.
        y : ignored
            Taken so that all displays are called alike.
        max_objects : int, default=300
            Maximum number of objects sampled from `X`.
        random_state : int, default=0
        ax : matplotlib axes, optional
        **kwargs
            To the line.

        Returns
        -------
        SpectrumDisplay

        Raises
        ------
        ValueError
            If the model has no landmarks and `X` is not given.
        """
        most = check_positive_int(max_objects, "max_objects")
        found = measures.spectrum(fitted_parts(estimator), X, most, random_state)
        display = cls(eigenvalues=found.eigenvalues, rank=found.rank, clipped=found.clipped, of=found.of)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw absolute eigenvalues on a logarithmic axis, negative ones hollow; `kwargs` go to the line."""
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
        round_ticks(axis.yaxis)
        axis.set(xlabel="number of the eigenvalue", ylabel="size of the eigenvalue")
        clipped = f"; {100 * self.clipped:.2g} % negative" if self.clipped else ""
        axis.set_title(f"{self.of}{clipped}", fontsize="medium")
        axis.legend(frameon=False)
        return self


class EmbeddingDisplay(Display):
    """A map of an embedding: two coordinates of each object, classes by colour and marker.

    Parameters
    ----------
    points : ndarray of float, shape (n, 2)
    y : ndarray, shape (n,), or None
        Labels, or numbers if the type is float.
    names : tuple of two str
        Names of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        After `plot`.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import EmbeddingDisplay
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.Nystroem(sm.kernels.GappyKmers(k=4, gaps=1), 50, random_state=0).fit(X)
    >>> EmbeddingDisplay.from_estimator(model, X, y).points.shape
    (106, 2)
    """

    def __init__(self, *, points: Floats, y: npt.NDArray | None = None, names: Sequence[str] = ("", "")) -> None:
        self.points = points
        self.y = y
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        method: Any = "pca",
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Embed objects by a fitted model and draw them in two dimensions.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            Model that makes the vectors: those before its encoder and its learner.
        X : collection of n objects
        y : array-like of n labels or numbers, optional
        method : "pca" or transformer, default="pca"
            Map from vectors to the plane: principal components, with the largest entry of each positive for
            reproducible signs, or your own transformer, such as ``sklearn.manifold.TSNE(random_state=0)``.
        random_state : int, default=0
        ax : matplotlib axes, optional
        **kwargs
            Passed to ``Axes.scatter``.

        Returns
        -------
        EmbeddingDisplay
        """
        vectors = embedded(fitted_parts(estimator), X, random_state).vectors
        labels = None if y is None else check_labels(y, n_objects(X))
        if isinstance(method, str) and method == "pca":
            points, shares = measures.plane(vectors, random_state)
            names = [f"principal component {i + 1} ({100 * share:.2g} %)" for i, share in enumerate(shares)]
        elif hasattr(method, "fit_transform"):
            points, names = np.asarray(method.fit_transform(vectors), dtype=np.float64)[:, :2], ["", ""]
        else:
            raise ValueError(f'method must be "pca" or have fit_transform, got {method!r}')
        return cls(points=points, y=labels, names=names).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the points; `kwargs` go to ``Axes.scatter``."""
        (axis,) = self._axes(ax)
        style = {"s": float(np.clip(6000 / len(self.points), 6, 30)), "linewidths": 0, "alpha": 0.75, **kwargs}
        if self.y is None:
            axis.scatter(*self.points.T, **{**mark(0), **style})
        elif self.y.dtype.kind == "f":
            drawn = axis.scatter(*self.points.T, **{"c": self.y, "cmap": "cividis", **style})
            self.figure_.colorbar(drawn, ax=axis, label="target")
        else:
            self._classes(axis, style)
        axis.set(xlabel=self.names[0], ylabel=self.names[1])
        return self

    def _classes(self, axis: Any, style: dict[str, Any]) -> None:
        classes, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)  # type: ignore[call-overload]
        shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
        others = ~np.isin(codes, shown)
        if others.any():
            label = f"{len(classes) - len(shown)} other classes"
            axis.scatter(*self.points[others].T, **{"color": "0.7", "marker": ".", "label": label, **style})
        for i, number in enumerate(shown):
            members = codes == number
            label = str(classes[number])[:30].replace("$", r"\$")
            label = f" {label}" if label.startswith("_") else label  # matplotlib hides labels that begin with "_"
            axis.scatter(*self.points[members].T, **{**mark(i), "label": label, **style})
        if len(classes) > 0:
            axis.legend(frameon=False, markerscale=1.5, fontsize="small", ncols=1 + len(shown) // 12)
