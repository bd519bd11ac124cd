r"""Planners from the theorems: how many random features an error needs, and how fast a learnt function can change.

D2KE features are phi_j(x) = R^(-1/2) exp(-gamma d(x, omega_j)), so that k~(x, y) = phi(x) . phi(y) is a mean of R
independent numbers in [0, 1] with expectation k(x, y). What the paper proves of them for a metric d is
here with the constants that its proofs give when they are done with care.

Cost: `d2ke_n_components` and `lipschitz` none; `effective_dimension` n^2 distances.
Paper: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Section 4 and Appendix A.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia._validation import RandomState, check_positive_int, generator


class EffectiveDimension(NamedTuple):
    """Numbers p and c with N(r) <= c r^(-p), where N(r) balls of radius r cover the objects.

    Attributes
    ----------
    dimension : float
        p, which has no unit.
    constant : float
        c, in units of distance to the power p.
    """

    dimension: float
    constant: float


def d2ke_n_components(eps: float, delta: float, effective_dimension: float, gamma: float, constant: float = 1.0) -> int:
    r"""Return a number of random features that makes D2KE's kernel right to within `eps`, everywhere at once.

    With at least that many, :math:`P\{\max_{x, y} |\tilde k(x, y) - k(x, y)| > \epsilon\} \le \delta`.

    Parameters
    ----------
    eps : float
        Largest error of a kernel value wanted, in (0, 1); the values lie in [0, 1].
    delta : float
        Probability of a larger one, in (0, 1).
    effective_dimension : float
        p >= 0 such that ``constant * r**-p`` balls of any radius r (or one, if that is below 1) cover the
        objects; `similia.bounds.effective_dimension` estimates both.
    gamma : float
        The parameter of D2KE, above 0.
    constant : float, default=1.0
        c of the covering number. 1 is for distances scaled so that the objects fit into one ball of radius 1.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Proposition 2 of the paper (Theorem 2 in its appendix), with sharper constants. For one pair, Hoeffding's
    inequality for means of numbers in [0, 1] gives P{\|k~ - k\| > t} <= 2 exp(-2 R t^2) (paper:
    exp(-R t^2 / 2), for numbers in [-1, 1]). Let N balls of radius r cover the objects; there are at most N^2 pairs of
    centres. Moving x to its centre x' changes exp(-gamma d(x, omega)) by at most gamma r, by the triangle
    inequality; since these numbers are at most 1, moving x and y changes each of k~ and k by at most 2 gamma r
    (paper: 3), and their difference by 4 gamma r (paper: 6). With t = (1 - s) eps, 4 gamma r = s eps and
    N <= c r^(-p), which keeps the constant c that the paper drops,

    .. math:: P\{\max |\tilde k - k| > \epsilon\} \le
              2 c^2 \left(\frac{4 \gamma}{s\, \epsilon}\right)^{2p} e^{-2 R (1 - s)^2 \epsilon^2},
              \qquad
              R = \min_{0 < s < 1} \frac{2 \log c + 2 p \log(4 \gamma / (s\, \epsilon)) + \log(2 / \delta)}
              {2 (1 - s)^2 \epsilon^2}.

    Any s gives a valid R; the least over a grid is returned. The paper's own choice is s = 1/2.

    For n given objects, and no others, take ``effective_dimension=0, constant=n``: the n objects cover
    themselves at radius 0, no triangle inequality is needed, and the result holds for every
    distance, DTW and Hausdorff included. Otherwise the distance must be a metric.

    Examples
    --------
    >>> from similia.bounds import d2ke_n_components
    >>> d2ke_n_components(0.1, 0.05, effective_dimension=2, gamma=1.0)
    1681
    >>> d2ke_n_components(0.1, 0.05, effective_dimension=0, gamma=1.0, constant=1000)  # for 1000 objects
    876
    """
    for name, value in (("eps", eps), ("delta", delta)):
        if not _is_number(value) or not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    for name, value in (("gamma", gamma), ("constant", constant)):
        if not _is_number(value) or value <= 0:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not _is_number(effective_dimension) or effective_dimension < 0:
        raise ValueError(f"effective_dimension must be a number >= 0, got {effective_dimension!r}")
    s = np.geomspace(1e-9, 0.9, 5000)
    log_cover = np.maximum(0.0, np.log(constant) + effective_dimension * np.log(4 * gamma / (s * eps)))
    needed = (2 * log_cover + np.log(2 / delta)) / (2 * np.square((1 - s) * eps))
    return int(np.ceil(needed.min()))


def effective_dimension(distance: Any, X: Any, n: int = 1000, random_state: RandomState = 0) -> EffectiveDimension:
    r"""Estimate the effective dimension of objects under a distance.

    Parameters
    ----------
    distance : callable or "precomputed"
        ``distance(X, Y=None) -> (n, m)``. With ``"precomputed"``, X is the square matrix of distances.
    X : sequence of objects, or ndarray (n_objects, n_objects) of distances
        At least ten different ones.
    n : int, default=1000
        Objects drawn from `X`, without replacement; all if there are fewer. It takes n^2 distances.
    random_state : int, numpy Generator or None, default=0
        Draws them.

    Returns
    -------
    EffectiveDimension
        ``(dimension, constant)``, as `d2ke_n_components` takes them.

    Raises
    ------
    ValueError
        If there are fewer than ten different objects or all distances between them are equal.

    Notes
    -----
    The dimension is that of the correlation integral C(r), the share of pairs at distance at most r
    (Grassberger & Procaccia, 1983): the slope of log C against log r between the n / 10 and the n closest pairs.
    Objects at distance 0 count once. Covering numbers of n objects stop at n, which at dimension p is already
    reached at radius n^(-1/p), too coarse for a slope; pairs are n^2 and reach half that on a log scale. The
    two dimensions agree where objects are spread evenly, else the correlation dimension is the lower one.

    n objects cannot show a dimension much above 2 log10(n) (Eckmann & Ruelle, 1992): uniform points of a
    cube of dimension 2, 5, 10, 20 give about 2.0, 4.6, 8.5, 15 at n = 1000, with a standard deviation near 5 %.

    The constant is the least c for which N(r) <= c r^(-dimension) holds of the drawn objects at all
    radii at which they need more than one ball, with N(r) from a greedy cover: the next centre is the object
    farthest from the centres so far.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import manhattan_distances
    >>> from similia.bounds import d2ke_n_components, effective_dimension
    >>> points = np.random.default_rng(0).random((1000, 2))
    >>> p, c = effective_dimension(manhattan_distances, points)
    >>> 1.8 < p < 2.2
    True
    >>> 1000 < d2ke_n_components(0.1, 0.05, p, gamma=1.0, constant=c) < 2000
    True
    """
    D = _sampled_distances(distance, X, check_positive_int(n, "n", minimum=10), generator(random_state))
    centres, radii = _greedy_cover(D)
    n_different = len(centres)
    if n_different < 10:
        raise ValueError(f"found {n_different} different objects, expected at least 10 to see a dimension")
    pairs = np.sort(D[np.ix_(centres, centres)][np.triu_indices(n_different, 1)])
    if pairs[0] == pairs[-1]:
        raise ValueError(f"all distances between different objects are {pairs[0]:.6g}: there is no dimension to see")
    r1, r2 = pairs[n_different // 10 - 1], pairs[n_different - 1]
    if r1 == r2:  # distances that are whole numbers
        r2 = pairs[min(np.searchsorted(pairs, r1, side="right"), len(pairs) - 1)]
        r1 = pairs[np.searchsorted(pairs, r2) - 1]
    c1, c2 = np.searchsorted(pairs, [r1, r2], side="right")
    dimension = float(np.log(c2 / c1) / np.log(r2 / r1))
    # k + 1 centres are needed at all radii below radii[k - 1].
    constant = np.exp(np.max(np.log(np.arange(2, n_different + 1)) + dimension * np.log(radii)))
    return EffectiveDimension(dimension, float(constant))


def lipschitz(model: Any) -> npt.NDArray[np.float64]:
    r"""Return constants L with :math:`|f(x) - f(y)| \le L\, d(x, y)` for each function a model learnt on D2KE.

    Parameters
    ----------
    model : fitted scikit-learn pipeline
        `D2KE`, then any number of ``StandardScaler``, then a linear model with ``coef_``, as `similia.recipes.d2ke`
        makes; or a fitted search (``GridSearchCV``, ``D2KESearch``) over one.

    Returns
    -------
    ndarray of float64, shape (n_functions,)
        One for each row of ``coef_``: a regression function, or the decision function of a class.

    Raises
    ------
    ValueError
        If the distance says of itself that it is no metric (DTW, ModifiedHausdorff), or the model has another form.

    Notes
    -----
    Proposition 1 of the paper, for the features that the model has rather than for their limit: f(x) =
    w . phi(x) + b, and phi_j = R^(-1/2) exp(-gamma d(x, omega_j)) changes by at most R^(-1/2) gamma d(x, y) by the
    triangle inequality, so that L = gamma \|w\|. Behind a StandardScaler with scales s, w is coef / s.
    A distance without ``facts`` (a function of your own) is taken for a metric: that is for you to know.

    Examples
    --------
    >>> import similia as sm
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> words, lengths = ["a", "tree", "trees", "bushes", "in"], [1, 4, 5, 6, 2]
    >>> embedding = sm.D2KE(sm.distances.Levenshtein(), n_components=64, random_state=0)
    >>> model = make_pipeline(embedding, Ridge(alpha=0.01)).fit(words, lengths)
    >>> L = sm.bounds.lipschitz(model)
    >>> f = model.predict(["trees", "tree"])
    >>> bool(abs(f[0] - f[1]) <= L[0])  # at distance 1
    True
    """
    fitted = getattr(model, "best_estimator_", getattr(model, "pipeline_", model))  # of a search
    steps = [step for _, step in getattr(fitted, "steps", [])]
    steps = [step for step in steps if step is not None and not isinstance(step, str)]  # "passthrough"
    if len(steps) < 2 or not hasattr(steps[0], "gamma_") or not hasattr(steps[-1], "coef_"):
        raise ValueError(
            f"lipschitz takes a fitted pipeline of D2KE, StandardScaler (if any) and a linear model, "
            f"got {type(model).__name__} of {[type(step).__name__ for step in steps]}"
        )
    embedding, *scalers, linear = steps
    facts = getattr(embedding.distance, "facts", None)
    if facts is not None and not facts.metric:
        name = type(embedding.distance).__name__
        raise ValueError(
            f"{name} is not known to keep the triangle inequality, so a small distance does not bound how much a "
            f"function of it changes; take a metric such as Levenshtein, ERP or MSM"
        )
    w = np.atleast_2d(np.asarray(linear.coef_, dtype=np.float64))
    for scaler in reversed(scalers):
        w = w / _scale(scaler)
    return float(embedding.gamma_) * np.linalg.norm(w, axis=1)


def _scale(scaler: Any) -> npt.NDArray[np.float64]:
    """Return what a fitted StandardScaler divides columns by."""
    from sklearn.preprocessing import StandardScaler

    if not isinstance(scaler, StandardScaler):
        raise ValueError(
            f"lipschitz cannot see through {type(scaler).__name__}; use StandardScaler, or no step, between D2KE "
            "and the linear model"
        )
    return np.ones(1) if scaler.scale_ is None else np.asarray(scaler.scale_, dtype=np.float64)


def _sampled_distances(distance: Any, X: Any, n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the float64 matrix of distances among at most n objects."""
    from similia.distances.base import distances_between
    from similia.kernels._evaluate import as_objects
    from similia.objects import take
    from similia.objects._sequences import at_least_one

    precomputed = isinstance(distance, str) and distance == "precomputed"
    X = np.asarray(X) if precomputed else as_objects(distance, X)
    total = at_least_one(X)
    if precomputed and X.shape != (total, total):
        raise ValueError(f'distance="precomputed" needs a square matrix of distances, got shape {X.shape}')
    chosen = rng.choice(total, n, replace=False) if n < total else np.arange(total)
    D = X[np.ix_(chosen, chosen)] if precomputed else distances_between(distance, take(X, chosen))
    return D.astype(np.float64)


def _greedy_cover(D: npt.NDArray[np.float64]) -> tuple[list[int], list[float]]:
    """Return centres, each the object farthest from those before, and the radii that 1, 2, ... of them need, above 0.

    All objects are at distance 0 from a centre, so that the centres are the different objects.
    """
    centres, radii, nearest = [0], [], D[0].copy()
    while nearest.max() > 0 and len(centres) < len(D):
        radii.append(float(nearest.max()))
        centres.append(int(nearest.argmax()))
        np.minimum(nearest, D[centres[-1]], out=nearest)
    return centres, radii


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))
