"""Displays in the style of scikit-learn: numbers as attributes, ``plot(ax=None)``, ``ax_`` and ``figure_``.

``SpectrumDisplay.from_estimator(model)`` measures and draws; ``display.plot(ax)`` draws again. Without axes, pyplot
makes a new figure, so ``plt.show()`` and ``plt.savefig("picture.png")`` work. If you draw many figures, close them with
``plt.close(display.figure_)``, or pass axes.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import one_blas_thread
from similia.core.validation import check_labels
from similia.objects import n_objects
from similia.report._model import embedded, fitted_parts

Floats = npt.NDArray[np.float64]
_MOST_CLASSES = 20  # maximum number of classes with their own colour and marker
_FEW_COLUMNS = 2000  # sparse vectors with at most this many columns are made dense
# Okabe & Ito, "Color universal design", 2008, without the yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")


def bins_of(values: npt.NDArray, n: int) -> int:
    """Return `n`, the number of bins of a histogram, or 1 if the values differ by rounding errors only."""
    return 1 if np.ptp(values) < 1e-9 * np.abs(values).max() else n


class Display:
    """Base of displays: `plot` draws on the given axes or a new pyplot figure, as in scikit-learn."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure; subclasses define this."""
        raise NotImplementedError

    def _axes(self, ax: Any, n: int = 1) -> list[Any]:
        """Return a list of `n` axes, those in `ax` or new ones, and store them as ``ax_``."""
        if ax is None:
            import matplotlib.pyplot as plt

            size = (5.6 if n == 1 else 4.6 * n, 3.8)
            axes = list(plt.subplots(1, n, squeeze=False, figsize=size, layout="constrained")[1][0])
        else:
            axes = list(ax) if n > 1 and hasattr(ax, "__len__") else [ax]
            if len(axes) != n:
                raise ValueError(f"ax must hold {n} axes, got {len(axes)}; plt.subplots(1, {n})[1] makes them")
        for axis in axes:
            style_axis(axis)
        self.figure_ = axes[0].get_figure()
        self.ax_ = axes[0] if n == 1 else axes
        return axes

    def _repr_html_(self) -> str | None:
        """Show the figure in notebooks and documentation, unless pyplot is about to show it."""
        if not hasattr(self, "figure_"):
            self.plot()
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and pyplot.fignum_exists(getattr(self.figure_, "number", -1)):
            return None
        out = io.BytesIO()
        self.figure_.savefig(out, format="png", dpi=110)
        data = base64.b64encode(out.getvalue()).decode()
        return f'<img alt="{type(self).__name__}" style="max-width:100%" src="data:image/png;base64,{data}">'


def style_axis(axis: Any) -> None:
    axis.grid(alpha=0.25)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def mark(i: int) -> dict[str, Any]:
    """Return matplotlib's options for the colour and marker of data series `i`; they repeat after 49 series."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[(i + i // len(COLOURS)) % len(MARKS)]}


def line(i: int) -> dict[str, Any]:
    """Return matplotlib's options for the colour, marker and line style of curve `i`."""
    return {**mark(i), "linestyle": LINES[i % len(LINES)], "markersize": 5, "linewidth": 1.6}


@dataclass(kw_only=True, eq=False, repr=False)
class EmbeddingDisplay(Display):
    """Map of objects in the plane: a point for each object, a colour and a marker for each class.

    Parameters
    ----------
    points : ndarray of float, shape (n, 2)
        Coordinates of the objects.
    y : ndarray, shape (n,), or None
        Class labels or, if the dtype is float, numbers, which are shown on a colour scale.
    names : tuple of two str
        Names of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        The axes and figure of the last `plot`.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.report import EmbeddingDisplay
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.Nystroem(sm.kernels.GappyKmers(k=4, gaps=1), 50, random_state=0).fit(X)
    >>> EmbeddingDisplay.from_estimator(model, X, y).points.shape
    (106, 2)
    """

    points: Floats
    y: npt.NDArray | None = None
    names: Sequence[str] = ("", "")

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, method: Any = "pca", random_state: int = 0, ax: Any = None,
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Embed objects with a fitted model and draw them in two dimensions.

        Parameters
        ----------
        estimator : fitted estimator or pipeline
            Model that makes the vectors. If it packs vectors into bits, the map shows the vectors before packing. If it
            makes bits directly from objects, the map shows the first 2048 bits as -1 and 1. If it makes no bits, the
            map shows the output of its last transformer. If it makes neither vectors nor bits, `Nystroem` or `D2KE`
            makes vectors with the kernel or distance of the model.
        X : collection of n objects
            Objects to draw.
        y : array-like of n labels or numbers, optional
            Classes or targets, shown by colour.
        method : "pca" or transformer, default="pca"
            How vectors are mapped to the plane. "pca" uses the first two principal components. Their signs are chosen
            so that, on each axis, the coordinate of largest absolute value is positive. Or pass your own transformer,
            such as ``sklearn.manifold.TSNE(random_state=0)``.
        random_state : int, default=0
            Seed of "pca", which draws random numbers for long vectors, and of `Nystroem` or `D2KE` if one of them makes
            the vectors.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **kwargs
            Passed to ``Axes.scatter``.
        """
        vectors = embedded(fitted_parts(estimator), X, random_state).vectors
        labels = None if y is None else check_labels(y, n_objects(X))
        if isinstance(method, str) and method == "pca":
            points, shares = plane(vectors, random_state)
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


def plane(vectors: Any, random_state: int = 0) -> tuple[Floats, Floats]:
    """Return two principal coordinates (n, 2), the largest entry of each positive, and their shares of the variance."""
    from sklearn.decomposition import PCA

    if sp.issparse(vectors):  # drop columns that are 0 for all objects
        vectors = vectors.tocsc()[:, np.flatnonzero(np.diff(vectors.tocsc().indptr))]
        vectors = vectors.toarray() if vectors.shape[1] <= _FEW_COLUMNS else vectors.tocsr()
    n, d = vectors.shape
    solver = "arpack" if sp.issparse(vectors) else "covariance_eigh" if d <= 1500 else "randomized"
    if min(n, d) <= 8:
        vectors, solver = vectors.toarray() if sp.issparse(vectors) else vectors, "full"
    if min(n, d) < 2:
        centred = vectors[:, :1] - vectors[:, :1].mean(axis=0) if d else np.zeros((n, 1))
        return np.column_stack([centred, np.zeros(n)]).astype(np.float64), np.array([1.0, 0.0])
    pca = PCA(2, svd_solver=solver, random_state=random_state)
    with one_blas_thread(), np.errstate(invalid="ignore", divide="ignore"):  # if all vectors are equal
        points = pca.set_output(transform="default").fit_transform(vectors).astype(np.float64)
        shares = np.nan_to_num(pca.explained_variance_ratio_)
    signs = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])
    return points * np.where(signs == 0, 1, signs), shares.astype(np.float64)
