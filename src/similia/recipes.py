"""The published systems, each a short composition of the rooms: scikit-learn pipelines of similia's parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline

from similia._validation import check_n_bits
from similia.codes import SignRandomProjection
from similia.embeddings import Nystroem
from similia.learn import HDClassifier


def nyshd(
    kernel: Callable[..., Any],
    n_landmarks: int | Literal["auto"] = "auto",
    n_bits: int = 10_000,
    random_state: int | None = None,
    *,
    landmarks: Any = "uniform",
    init: Literal["zeros", "bundle"] = "zeros",
    max_iter: int = 20,
) -> Pipeline:
    """Return NysHD: a kernel made into hypervectors, and a hyperdimensional classifier on them.

    Objects are compared with landmarks (`Nystroem`), the resulting vectors become packed bits by
    the signs of random projections (`SignRandomProjection`), whose inner products follow the
    arcsine of the normalised kernel, and prototypes of the classes are learnt from the bits
    (`HDClassifier`).

    Parameters
    ----------
    kernel : callable
        k(X, Y=None) -> (n, m), positive semi-definite.
    n_landmarks : int or "auto", default="auto"
        ``"auto"`` is the paper's rule, min(n, max(300, 0.02 n)) of the n training objects.
    n_bits : int, default=10_000
        Bits of a code; a multiple of 8.
    random_state : int, optional
        Seed of landmarks, projection and sample order.
    landmarks : str, array of int or callable, default="uniform"
        How landmarks are chosen; see `Nystroem`.
    init : {"zeros", "bundle"}, default="zeros"
        How prototypes start; see `HDClassifier`.
    max_iter : int, default=20
        Passes of the classifier over the training codes.

    Returns
    -------
    sklearn.pipeline.Pipeline
        With steps ``nystroem``, ``projection`` and ``classifier``; grid search reaches the
        kernel's parameters as ``nystroem__kernel__...``.

    References
    ----------
    .. [1] Zhao, Thomas, Brin, Yu, Rosing: Bridging the Gap between Hyperdimensional Computing and
       Kernel Methods via the Nyström Method. AAAI 2025. Algorithms 1 and 2.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = sm.datasets.load_promoters(return_X_y=True)
    >>> model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), random_state=0)
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.75
    True
    """
    check_n_bits(n_bits)
    seeds: list[int | None] = [None, None, None]
    if random_state is not None:
        seeds = [int(s) for s in np.random.SeedSequence(random_state).generate_state(3)]
    return Pipeline(
        [
            ("nystroem", Nystroem(kernel, n_components=n_landmarks, landmarks=landmarks, random_state=seeds[0])),
            ("projection", SignRandomProjection(n_bits=n_bits, random_state=seeds[1])),
            ("classifier", HDClassifier(init=init, max_iter=max_iter, random_state=seeds[2])),
        ]
    )
