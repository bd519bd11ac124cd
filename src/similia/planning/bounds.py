r"""Bounds from theorems: how many features or samples keep an error small, and how fast a learnt function can change.

The theorems of Wu et al. hold for metrics, here with smaller constants, which the notes of the functions derive. Those
of Ghanem et al. are about graphs that are embedded by sampled graphlets.

Papers: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Section 4 and Appendix A;
Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021, Theorems 4 and 5.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from similia.core.validation import (
    RandomState,
    check_choice,
    check_positive,
    check_positive_int,
    generator,
    pairs_named,
)
from similia.objects import take
from similia.objects.sequences import at_least_one
from similia.pipelines import steps_of
from similia.similarity import as_objects, distance_matrix, distances_between

# Graphs on k nodes up to isomorphism, k = 2, 3, ..., 11 (OEIS A000088).
_N_GRAPHS = (2, 4, 11, 34, 156, 1044, 12346, 274668, 12005168, 1018997864)


class EffectiveDimension(NamedTuple):
    """Numbers p and c such that, for every r > 0, max(1, c r^(-p)) balls of radius r are enough to cover the objects.

    Attributes
    ----------
    dimension : float
        The exponent p.
    constant : float
        The factor c, in units of distance to the power p.
    """

    dimension: float
    constant: float


def d2ke_n_components(eps: float, delta: float, effective_dimension: float, gamma: float, constant: float = 1.0) -> int:
    r"""Return how many random features suffice for errors of at most `eps` in the kernel values of D2KE.

    With at least this many features, the probability that an error exceeds `eps` is at most `delta`:
    :math:`P\{\max_{x, y} |\tilde k(x, y) - k(x, y)| > \epsilon\} \le \delta`. Here :math:`\tilde k(x, y)` is the
    inner product of the features of x and y, and k(x, y) is its limit for infinitely many features.

    Parameters
    ----------
    eps : float
        Largest acceptable error of a kernel value, in (0, 1). The kernel values themselves lie in [0, 1].
    delta : float
        Acceptable probability of a larger error, in (0, 1).
    effective_dimension : float
        A number p >= 0 such that, for every r > 0, ``max(1, constant * r**-p)`` balls of radius r are enough to cover
        the objects. The function `effective_dimension` estimates p and `constant`.
    gamma : float
        The parameter `gamma` of `similia.D2KE`, above 0.
    constant : float, default=1.0
        The factor of ``r**-p`` in the number of balls. With the default of 1, distances must be scaled so that one ball
        of radius 1 covers the objects.

    Returns
    -------
    int

    Notes
    -----
    This is Proposition 2 of Wu et al. (Theorem 2 in their appendix), with smaller constants. k~(x, y) is the mean of
    exp(-gamma d(x, omega)) exp(-gamma d(y, omega)) over R random objects omega. For one pair, Hoeffding's inequality
    for means of numbers in [0, 1] says that k~ and k differ by more than t with probability at most 2 exp(-2 R t^2).
    (Wu et al. have exp(-R t^2 / 2), for numbers in [-1, 1].) Let N balls of radius r cover the objects; there are at
    most N^2 pairs of centres. By the triangle inequality, moving x to the centre of its ball changes exp(-gamma d(x,
    omega)) by at most gamma r. As both factors are at most 1, moving x and y changes each of k~ and k by at most 2
    gamma r, and their difference by 4 gamma r. (Wu et al. have 3 gamma r and 6 gamma r.) Choose a number s in (0, 1),
    and let p be `effective_dimension` and c `constant`. With t = (1 - s) eps, 4 gamma r = s eps and N <= c r^(-p),

    .. math:: P\{\max |\tilde k - k| > \epsilon\} \le
              2 c^2 \left(\frac{4 \gamma}{s\, \epsilon}\right)^{2p} e^{-2 R (1 - s)^2 \epsilon^2},
              \qquad
              R = \min_{0 < s < 1} \frac{2 \log c + 2 p \log(4 \gamma / (s\, \epsilon)) + \log(2 / \delta)}
              {2 (1 - s)^2 \epsilon^2}.

    Any s gives a valid R; the function returns the least R over a grid of s, rounded up. At least one ball is needed,
    so log c + p log(4 gamma / (s eps)), the logarithm of c r^(-p), counts as 0 if it is negative. Wu et al. use
    s = 1/2.

    If only the kernel values between n given objects matter, pass ``effective_dimension=0, constant=n``: n balls of
    radius 0, one around each object, cover them. The result then holds for every distance, including DTW. In all other
    cases, the distance must be a metric.

    References
    ----------
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", 2018.

    Examples
    --------
    >>> from similia.planning import d2ke_n_components
    >>> d2ke_n_components(0.1, 0.05, effective_dimension=2, gamma=1.0)
    1681
    >>> d2ke_n_components(0.1, 0.05, effective_dimension=0, gamma=1.0, constant=1000)  # for 1000 objects
    876
    """
    _check_share(eps, "eps")
    _check_share(delta, "delta")
    gamma, constant = check_positive(gamma, "gamma"), check_positive(constant, "constant")
    check_positive(effective_dimension, "effective_dimension", zero=True)
    s = np.geomspace(1e-9, 0.9, 5000)
    log_cover = np.maximum(0.0, np.log(constant) + effective_dimension * np.log(4 * gamma / (s * eps)))
    with np.errstate(divide="ignore", over="ignore"):
        needed = (2 * log_cover + np.log(2 / delta)) / (2 * np.square((1 - s) * eps))
    return _rounded_up(needed.min(), eps)


def effective_dimension(distance: Any, X: Any, n: int = 1000, random_state: RandomState = 0) -> EffectiveDimension:
    r"""Estimate the effective dimension of objects under a distance.

    Covering the objects takes about c r^(-p) balls of radius r. The exponent p is the effective dimension.

    Parameters
    ----------
    distance : callable or "precomputed"
        Distance between objects: ``distance(X, Y=None)`` returns an array of shape (n, m). With ``"precomputed"``, `X`
        is the square matrix of distances.
    X : sequence of objects, or ndarray (n_objects, n_objects) of distances
        At least ten different objects, or the distances between them.
    n : int, default=1000
        Number of objects to draw from `X`, without replacement. If `X` has fewer, all are used. The estimate computes
        n^2 distances.
    random_state : int, numpy Generator or None, default=0
        Seed or generator for drawing the objects.

    Returns
    -------
    EffectiveDimension
        A named tuple of `dimension`, the exponent p, and `constant`, the factor c. Pass `dimension` to
        `d2ke_n_components` as the argument `effective_dimension`, and `constant` as the argument `constant`.

    Raises
    ------
    ValueError
        If there are fewer than ten different objects, if all distances between them are equal, or if a distance is
        negative or not finite.

    Notes
    -----
    The dimension is estimated from the correlation integral C(r), the share of pairs of objects whose distance is at
    most r (Grassberger & Procaccia, 1983). The estimate is the slope of log C against log r between two small radii.
    The smaller radius is chosen so that n / 10 of the n (n - 1) / 2 pairs have at most this distance. The larger radius
    is chosen so that n pairs have at most this distance. Objects at distance 0 from each other count as one object.

    By definition, N(r) is about c r^(-p), where N(r) is the smallest number of balls of radius r that cover all objects
    (not only the sample). For evenly spread objects, p equals the slope; otherwise p is larger. The slope is used
    nevertheless, because a sample does not show N(r) at small radii: n balls always cover a sample of n objects, even
    where N(r) is far above n. High dimensions are underestimated if n is small (Eckmann & Ruelle, 1992): with n = 1000,
    uniform points in cubes of 2, 5, 10 and 20 dimensions give about 2.0, 4.6, 8.5 and 15.

    The constant is the least c such that N(r) <= c r^(-dimension) at all radii r with N(r) > 1. For this, N(r) is
    counted on the sample: balls are placed one after the other, each around the object farthest from the earlier
    centres.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import manhattan_distances
    >>> from similia.planning import d2ke_n_components, effective_dimension
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
        raise ValueError(f"X has {n_different} different objects, expected at least 10 to estimate a dimension")
    pairs = np.sort(D[np.ix_(centres, centres)][np.triu_indices(n_different, 1)])
    if pairs[0] == pairs[-1]:
        raise ValueError(f"all distances between different objects are {pairs[0]:.6g}, so they have no dimension")
    r1, r2 = pairs[n_different // 10 - 1], pairs[n_different - 1]
    if r1 == r2:  # integer distances
        r2 = pairs[min(np.searchsorted(pairs, r1, side="right"), len(pairs) - 1)]
        r1 = pairs[np.searchsorted(pairs, r2) - 1]
    c1, c2 = np.searchsorted(pairs, [r1, r2], side="right")
    dimension = float(np.log(c2 / c1) / np.log(r2 / r1))
    # radii below radii[k - 1] need k + 1 centres
    constant = np.exp(np.max(np.log(np.arange(2, n_different + 1)) + dimension * np.log(radii)))
    return EffectiveDimension(dimension, float(constant))


def lipschitz(model: Any) -> npt.NDArray[np.float64]:
    r"""Return a Lipschitz constant L of each output f of a linear model on D2KE features.

    For all objects x and y, :math:`|f(x) - f(y)| \le L\, d(x, y)`, where d is the distance of `D2KE`.

    Parameters
    ----------
    model : fitted scikit-learn pipeline
        `D2KE`, then any number of ``StandardScaler``, then a linear model with ``coef_``; `similia.recipes.d2ke` builds
        such pipelines. A fitted search (``GridSearchCV``, ``D2KESearch``) over such pipelines is accepted, too.

    Returns
    -------
    ndarray of float64, shape (n_functions,)
        The constant L of each function f. There is one function for each row of ``coef_``: a regression function, or
        the decision function of a class.

    Raises
    ------
    ValueError
        If `model` is not such a pipeline or search; if its predictions are not linear in the features
        (``PoissonRegressor``, ``SVC`` for three classes); or if the distance says in its attribute ``facts`` that it is
        not a metric (such as DTW or ModifiedHausdorff).

    Notes
    -----
    This is Proposition 1 of Wu et al., "D2KE: From Distance to Kernel and Embedding", for the R features of the model
    instead of infinitely many. Feature j is phi_j(x) = R^(-1/2) exp(-gamma d(x, omega_j)), where omega_j is a random
    object, and the model is f(x) = w . phi(x) + b with weights w and intercept b. By the triangle inequality, phi_j(x)
    and phi_j(y) differ by at most R^(-1/2) gamma d(x, y). The squares of these R differences add up to at most
    (gamma d(x, y))^2, so the vector phi(x) - phi(y) has at most the length gamma d(x, y). By the Cauchy-Schwarz
    inequality, f(x) and f(y) differ by at most the length of this vector times the length of w. So L is gamma times the
    length of w. After a StandardScaler with scales s, w is coef / s. A distance without the attribute ``facts``, such
    as a function of your own, is assumed to be a metric.

    Examples
    --------
    >>> import similia as sm
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> words, lengths = ["a", "tree", "trees", "bushes", "in"], [1, 4, 5, 6, 2]
    >>> embedding = sm.D2KE(sm.distances.Levenshtein(), n_components=64, random_state=0)
    >>> model = make_pipeline(embedding, Ridge(alpha=0.01)).fit(words, lengths)
    >>> L = sm.planning.lipschitz(model)
    >>> f = model.predict(["trees", "tree"])
    >>> bool(abs(f[0] - f[1]) <= L[0])  # at distance 1
    True
    """
    steps = steps_of(model)
    if len(steps) < 2 or not hasattr(steps[0], "gamma_") or not hasattr(steps[-1], "coef_"):
        raise ValueError(
            f"lipschitz takes a fitted pipeline of D2KE, any StandardScalers and a linear model, "
            f"got {type(model).__name__} of {[type(step).__name__ for step in steps]}"
        )
    embedding, *scalers, linear = steps
    if not _is_linear(linear):
        raise ValueError(
            f"lipschitz cannot take this {type(linear).__name__}: its predictions are not a linear function of the "
            "features; take e.g. Ridge or LinearSVC"
        )
    facts = getattr(embedding.distance_, "facts", None)
    if facts is not None and not facts.metric:
        raise ValueError(
            f"{type(embedding.distance_).__name__} need not satisfy the triangle inequality, so a small distance does "
            "not bound the change of a function of it; take a metric such as Levenshtein, ERP or MSM"
        )
    w = np.atleast_2d(np.asarray(linear.coef_, dtype=np.float64))
    for scaler in reversed(scalers):
        if not isinstance(scaler, StandardScaler):
            raise ValueError(
                f"lipschitz cannot take {type(scaler).__name__} into account; use StandardScaler, or no step, between "
                "D2KE and the linear model"
            )
        w = w / (1.0 if scaler.scale_ is None else scaler.scale_.astype(np.float64))
    return float(embedding.gamma_) * np.linalg.norm(w, axis=1)


def graphlet_samples(size: int, eps: float, delta: float, features: str = "match_iso") -> int:
    r"""Return how many sampled graphlets suffice for an error below `eps` in the graphlet histogram of a graph.

    With at least this many independent samples, :math:`P\{\|\hat f - f\|_1 \ge \epsilon\} \le \delta`. Here f is the
    distribution from which the graphlets are drawn, for example by random walks, and :math:`\hat f` is the histogram
    of the drawn graphlets.

    Parameters
    ----------
    size : int
        Number of nodes of a graphlet (a subgraph induced by sampled nodes), 2 to 11.
    eps : float
        Acceptable error, in (0, 2). The error is the L1 distance of the two distributions, which is at most 2.
    delta : float
        Acceptable probability of a larger error, in (0, 1).
    features : {"match_iso", "match"}, default="match_iso"
        What the histogram counts. ``"match_iso"``: graphlets up to isomorphism; there are 2, 4, 11, 34, 156, 1044, ...
        with 2, 3, 4, ... nodes. ``"match"``: adjacency patterns, with the nodes in the order in which they were drawn;
        there are 2^(size (size - 1) / 2) patterns.

    Returns
    -------
    int

    Notes
    -----
    With N the number of different graphlets or patterns, the number s of samples is

    .. math:: s = \left\lceil \frac{2 (N \log 2 + \log(1 / \delta))}{\epsilon^2} \right\rceil.

    This is Theorem 4 of Ghanem et al., who take it from Shervashidze et al. Proof: take any subset of the N graphlets.
    The histogram estimates the probability of drawing a graphlet of this subset. By Hoeffding's inequality, the
    estimate is too high by eps / 2 or more with probability at most exp(-s eps^2 / 2). The L1 distance is twice the
    largest such error over all 2^N subsets, so it reaches eps with probability at most 2^N exp(-s eps^2 / 2), which is
    delta or less. If a graph contains only M < N different graphlets, M may replace N.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021. Shervashidze,
    Vishwanathan, Petri, Mehlhorn & Borgwardt, "Efficient graphlet kernels for large graph comparison", AISTATS 2009.

    Examples
    --------
    >>> from similia.planning import graphlet_samples
    >>> graphlet_samples(5, eps=0.1, delta=0.05)
    5313
    """
    size = check_positive_int(size, "size", minimum=2)
    if size > 11:
        raise ValueError(f"size must be from 2 to 11, got {size}")
    _check_share(eps, "eps", 2, " (the L1 distance of two distributions is at most 2)")
    _check_share(delta, "delta")
    check_choice(features, "features", ("match_iso", "match"))
    n_kinds = _N_GRAPHS[size - 2] if features == "match_iso" else 2 ** (size * (size - 1) // 2)
    with np.errstate(divide="ignore", over="ignore"):
        needed = 2 * (n_kinds * math.log(2) + math.log(1 / delta)) / np.square(float(eps))
    return _rounded_up(needed, eps)


def minhash_n_hashes(eps: float, delta: float, n_pairs: int = 1, bits: int = 1) -> int:
    r"""Return how many hashes of `similia.MinHash` suffice for errors of at most `eps` on `n_pairs` pairs.

    `similia.MinHash` estimates the min-max kernel J of two objects: the sum of the minima of their features, divided by
    the sum of the maxima. The unbiased estimate :math:`\hat J` comes from the share of hashes that agree. With at least
    the returned number of hashes, the largest error over all pairs exceeds `eps` with probability at most `delta`:
    :math:`P\{\max |\hat J - J| > \epsilon\} \le \delta`.

    Parameters
    ----------
    eps : float
        Largest acceptable error of the estimate, in (0, 1).
    delta : float
        Acceptable probability of a larger error, in (0, 1).
    n_pairs : int, default=1
        Number of pairs of objects; n objects form n (n - 1) / 2 pairs.
    bits : int, default=1
        Number of bits kept of each hash; the parameter `bits` of `similia.MinHash`. If `bits` is above 1, the bound is
        for ``output="onehot"``; the similarity of packed bits has a larger error.

    Returns
    -------
    int
        A multiple of 8.

    Notes
    -----
    If b bits of each hash are kept, and q = 2^(-b), the hashes of two objects agree with probability q + (1 - q) J. The
    share of the n hashes that agree estimates this probability, and thus J. The error of the estimate of J is
    1 / (1 - q) times the error of the share. Hoeffding's inequality and a union bound give

    .. math:: n = \frac{\log(2 N / \delta)}{2 (1 - q)^2 \epsilon^2} \quad \text{for N pairs}.

    The bound assumes independent hashes. The hashes of `similia.MinHash` are independent for sets of far fewer than n
    elements; for larger sets, the errors are smaller (Dahlgaard, Knudsen & Thorup, "Fast similarity sketching", FOCS
    2017, Theorem 1).

    Examples
    --------
    >>> from similia.planning import minhash_n_hashes
    >>> minhash_n_hashes(0.1, 0.05)
    744
    >>> minhash_n_hashes(0.1, 0.05, n_pairs=1000 * 999 // 2)
    3368
    """
    _check_share(eps, "eps")
    _check_share(delta, "delta")
    n_pairs, bits = check_positive_int(n_pairs, "n_pairs"), check_positive_int(bits, "bits")
    with np.errstate(divide="ignore", over="ignore"):
        needed = np.log(2 * n_pairs / delta) / (2 * np.square((1 - 2.0**-bits) * eps))
    return 8 * _rounded_up(needed / 8, eps)


def mmd_error(n_components: int | None, n_samples: int, delta: float, features: str = "gaussian_complex") -> float:
    r"""Bound the difference between MMD^2 of two graphs and the squared distance of their graphlet embeddings.

    For one given pair of graphs, :math:`\big|\|z(G) - z(G')\|^2 - \mathrm{MMD}^2(G, G')\big|` is at most this bound
    with probability at least 1 - `delta`. Here z(G) is the vector that `similia.GraphletSampling` makes of graph G. A
    graphlet is a subgraph induced by a few nodes drawn at random. MMD, the maximum mean discrepancy, measures how far
    apart the distributions of graphlets in the two graphs are.

    Parameters
    ----------
    n_components : int or None
        Number m of random features; for ``"gaussian_complex"``, number of frequencies, each of which gives a cosine and
        a sine. None means the exact kernel; then only the sampling of graphlets causes errors.
    n_samples : int
        Number s of graphlets drawn independently from each graph.
    delta : float
        Acceptable probability of a larger error, in (0, 1).
    features : {"gaussian_complex", "gaussian", "match", "match_iso"}, default="gaussian_complex"
        The parameter `features` of `similia.GraphletSampling`. ``"match"`` and ``"match_iso"`` require
        ``n_components=None``.

    Returns
    -------
    float
        The bound, on the scale of the kernel (equal graphlets have the kernel value 1). A bound of 4 or more (8 or more
        for ``"gaussian"``) says nothing, because no error is larger.

    Raises
    ------
    ValueError
        If a parameter is out of range, or if the features are unbounded (see Notes).

    Notes
    -----
    This is Theorem 5 of Ghanem et al. Let :math:`\xi` be a feature of a graphlet F, before the embedding divides it by
    :math:`\sqrt m`. If :math:`|\xi(F)| \le 1` for each feature, the bound is

    .. math:: \frac{4 \sqrt{\log(6 / \delta)}}{\sqrt m} + \frac{8 (1 + \sqrt{2 \log(3 / \delta)})}{\sqrt s}.

    The assumption holds for ``"gaussian_complex"``, because a cosine and a sine together are one complex exponential,
    whose absolute value is 1. It also holds for the exact feature map of any kernel with k(x, x) = 1, because this map
    turns graphlets into vectors of length 1. The features
    :math:`\sqrt 2 \cos(w \cdot a + b)` of ``"gaussian"`` are bounded by :math:`\sqrt 2`, which doubles both terms.
    Optical features have no bound, so the theorem does not apply to them. By Hoeffding's inequality, the 4 in the first
    term could be :math:`2 \sqrt 2`.

    Part of the error is a bias. If the two distributions are equal, the bias is (2 / s) (1 - c), where c is the mean
    kernel value of two random graphlets. `similia.distances.mmd2` can remove the bias. In the source repository of
    similia, ``python dev.py reproduce graphlet-mmd`` compares the bound with measured errors.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021.

    Examples
    --------
    >>> from similia.planning import mmd_error
    >>> round(mmd_error(5000, 10_000, delta=0.05), 2)
    0.43
    """
    s = check_positive_int(n_samples, "n_samples")
    _check_share(delta, "delta")
    if features == "optical":
        raise ValueError(
            "optical features |w.x + b|^2 are not bounded, so that Theorem 5 does not hold for them; "
            'take features="gaussian_complex", or the exact map of the optical kernel, which has no error by features'
        )
    check_choice(features, "features", ("gaussian_complex", "gaussian", "match", "match_iso"))
    of_samples = 8 * (1 + math.sqrt(2 * math.log(3 / delta))) / math.sqrt(s)
    if n_components is None:
        return of_samples
    if features in ("match", "match_iso"):
        raise ValueError(f"features={features!r} are the exact map of their kernel; give n_components=None")
    m = check_positive_int(n_components, "n_components")
    factor = 2.0 if features == "gaussian" else 1.0
    return factor * (4 * math.sqrt(math.log(6 / delta)) / math.sqrt(m) + of_samples)


def _sampled_distances(distance: Any, X: Any, n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the float64 distance matrix between `n` objects drawn from `X`, or all objects if there are fewer."""
    precomputed = isinstance(distance, str) and distance == "precomputed"
    X = distance_matrix(X, square=True) if precomputed else as_objects(distance, X)
    total = at_least_one(X)
    chosen = rng.choice(total, n, replace=False) if n < total else np.arange(total)
    with pairs_named(chosen, chosen, "X[{}] and X[{}]"):
        D = X[np.ix_(chosen, chosen)] if precomputed else distances_between(distance, take(X, chosen))
    return D.astype(np.float64)


def _greedy_cover(D: npt.NDArray[np.float64]) -> tuple[list[int], list[float]]:
    """Return the positions of all distinct objects, each the farthest from the earlier ones, and covering radii.

    Balls of radius ``radii[k]`` around the first k + 1 objects cover all objects.
    """
    centres, radii, nearest = [0], [], D[0].copy()
    while nearest.max() > 0 and len(centres) < len(D):
        radii.append(float(nearest.max()))
        centres.append(int(nearest.argmax()))
        np.minimum(nearest, D[centres[-1]], out=nearest)
    return centres, radii


def _is_linear(model: Any) -> bool:
    """Return whether the outputs of a fitted model with ``coef_`` have no log link and are no votes."""
    link = getattr(getattr(model, "_base_loss", None), "link", None)
    votes = getattr(model, "decision_function_shape", None) == "ovr" and len(model.classes_) > 2
    return not votes and (link is None or not link.inverse(np.zeros(1)).any())


def _rounded_up(needed: float, eps: float) -> int:
    if not math.isfinite(needed):
        raise ValueError(f"eps={eps!r} needs more than 1e308 samples or features; allow a larger error")
    return math.ceil(needed)


def _check_share(value: Any, name: str, most: int = 1, why: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < most:
        raise ValueError(f"{name} must lie between 0 and {most}{why}, got {value!r}")
