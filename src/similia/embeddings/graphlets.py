r"""Graphlet sampling and averaging (GSA-phi): a graph becomes the mean of a map phi over sampled induced subgraphs.

.. math:: z(G) = \frac{1}{s} \sum_{i=1}^{s} \phi(F_i), \qquad F_i \sim S_k(G) \text{ i.i.d.}

Inner products of these vectors estimate the mean kernel of the laws of the graphlets, and their distances its MMD.
Cost: linear in the number of graphs and of samples. Optical features cost the same whatever their number, but for
writing them down: they are quadratic in the adjacency bits, so that second moments are all that is averaged.

Paper: Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021, and the thesis it
is part of, Algorithm GSA-phi and Eqs. 3.2-3.11.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from similia.core.config import rows_per_block
from similia.core.fitting import all_at_once
from similia.core.progress import track
from similia.core.transformers import Transformer, example_of
from similia.core.validation import (
    RandomState,
    check_positive,
    check_positive_int,
    generator,
)
from similia.embeddings import _graphlet_maps as maps
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.objects import GraphBatch
from similia.objects.graphlets import as_structures, sample_graphlets, unpack_graphlets
from similia.objects.sequences import Distributed
from similia.similarity import refuse_class
from similia.sources.lazily import from_parts, lazily

FEATURES = ("match", "match_iso", "gaussian", "gaussian_complex", "gaussian_eig", "optical")


class GraphletSampling(Transformer):
    r"""Embed graphs by their structure alone: the mean of a feature map over sampled graphlets.

    A graphlet is the subgraph induced by `size` nodes, in the order in which they were drawn. With D =
    size (size - 1) / 2, a is its vector of D adjacency bits: pairs (0, 1), (0, 2), (1, 2), (0, 3), ... of its nodes.

    Parameters
    ----------
    size : int, default=6
        Nodes of a graphlet, k: 2 to 11 (D <= 55 bits fit one 64-bit code).
    n_samples : int, default=2000
        Graphlets drawn from each graph, s.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        A walk from a random node until it has met `size` nodes, or `size` nodes at random; see
        `similia.objects.sample_graphlets`, also for what becomes of graphs too small or without edges.
    features : str, callable or transformer, default="optical"
        The map phi:

        - ``"optical"``: :math:`|w_j \cdot a|^2 / \sqrt m` with complex Gaussian w_j; with ``n_components=None`` the
          exact map of their kernel, D (D + 1) / 2 numbers without Monte-Carlo error. An `OpticalRandomFeatures` sets
          their number, scale and bias; with quantisation or structure it is computed graphlet by graphlet;
        - ``"gaussian"``: :math:`\sqrt{2 / m} \cos(w_j \cdot a + b_j)`;
        - ``"gaussian_complex"``: cosine and sine pairs, :math:`m^{-1/2} (\cos w_j \cdot a, \sin w_j \cdot a)`, 2 m
          numbers: those that Theorem 5 holds for (`similia.planning.mmd_error`);
        - ``"gaussian_eig"``: ``"gaussian"`` on the sorted eigenvalues of the adjacency matrix, which do not depend on
          the order of nodes (nor do they tell all graphs of five nodes or more apart);
        - ``"match"``: the histogram of the :math:`2^D` patterns, sparse, sizes up to 7;
        - ``"match_iso"``: the histogram of isomorphism classes, sizes up to 7;
        - a function, or a transformer (a copy is fitted to the distinct patterns of the training graphs), of
          flattened adjacency matrices: float32, shape (n, D), to (n, m).
    n_components : int or None, default=2000
        Number m of random features. Not used by ``match``, ``match_iso``, an `OpticalRandomFeatures` (which has its
        own) and maps of your own.
    random_state : int, numpy Generator or None, default=None
        Draws the features, and the seed of the samples, in `fit`.
    flyback : float, default=0.15
        Probability that the walk jumps back to its first node, in [0, 1).
    bandwidth : float, default=1.0
        Standard deviation sigma of the Gaussian kernels :math:`e^{-\|a - a'\|^2 / 2 \sigma^2}`; not used by other maps.
    small : {"pad", "raise"}, default="pad"
        What becomes of a graph with fewer than `size` nodes: isolated nodes are added, or an error.

    Attributes
    ----------
    seed_ : int
        Seed of the samples.
    map_ : object
        The feature map that was drawn.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a graph is too small and ``small="raise"``.
    TypeError
        If `X` holds no graphs.

    Notes
    -----
    Labels, attributes, weights and directions are left out. The samples of a graph depend on the seed and on its own
    structure and numbering: not on its place in `X` nor on what else is there, so equal graphs have equal vectors.

    The optical kernel :math:`\|a\|^2 \|a'\|^2 + (a \cdot a')^2` sees second moments of the bits only: it is not
    characteristic, and different laws can have equal means. m above D (D + 1) / 2 adds no information, only noise
    against ``n_components=None``.

    Standardise the columns before a linear model, as `similia.recipes.graphlet_optical` does: means of random features
    vary little around a common value.

    Output is float32; float64 for ``match``, ``match_iso`` and the exact optical map; a `scipy.sparse.csr_array` for
    ``match``.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import similia as sm
    >>> graphs = [nx.cycle_graph(20), nx.cycle_graph(30), nx.star_graph(20), nx.star_graph(30)]
    >>> Z = sm.GraphletSampling(size=5, n_samples=500, n_components=None, random_state=0).fit_transform(graphs)
    >>> Z.shape
    (4, 55)
    >>> gaps = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    >>> bool(gaps[0, 1] < 0.2 * gaps[0, 2])
    True
    """

    map_: Any

    def __init__(
        self,
        size: int = 6,
        n_samples: int = 2000,
        sampling: str = "random_walk",
        features: Any = "optical",
        n_components: int | None = 2000,
        random_state: RandomState = None,
        *,
        flyback: float = 0.15,
        bandwidth: float = 1.0,
        small: str = "pad",
    ) -> None:
        self.size = size
        self.n_samples = n_samples
        self.sampling = sampling
        self.features = features
        self.n_components = n_components
        self.random_state = random_state
        self.flyback = flyback
        self.bandwidth = bandwidth
        self.small = small

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the features.

        Parameters
        ----------
        X : collection of n graphs
            As `similia.objects.as_graphs` takes them; labels, attributes and weights are not read.
        y : ignored

        Returns
        -------
        GraphletSampling
            The fitted estimator itself.
        """
        graphs = as_structures(example_of(X))
        rng = generator(self.random_state)
        self.seed_ = int(rng.integers(2**63))
        check_positive_int(self.size, "size", minimum=2)
        if self.n_components is not None:
            check_positive_int(self.n_components, "n_components")
        check_positive(self.bandwidth, "bandwidth")
        refuse_class(self.features, "features")
        self._sample(graphs[:1])  # refuses wrong parameters at once
        self.map_ = self._map(X if isinstance(X, Distributed) else graphs, rng)
        self._n_features_out = self.map_.n_features
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Embed graphs.

        Parameters
        ----------
        X : collection of n graphs

        Returns
        -------
        ndarray of float32 or float64, shape (n, n_features), or csr_array for ``features="match"``
        """
        check_is_fitted(self)
        graphs = as_structures(X)
        block = rows_per_block(64 * self.n_samples, len(graphs))  # a code, its entry in a histogram, and their making
        starts = track(range(0, len(graphs), block), "graphlets")
        parts = [self.map_.means(self._sample(graphs[start : start + block])) for start in starts]
        if len(parts) == 1:
            return parts[0]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def _example(self) -> list[Any]:
        """Return a collection of one graph that `transform` takes."""
        path = np.arange(self.size)
        return [{"edge_index": np.stack([path[:-1], path[1:]]), "n_nodes": self.size}]

    def _sample(self, graphs: GraphBatch) -> npt.NDArray[np.uint64]:
        """Return the codes of graphlets, shape (n, n_samples)."""
        return sample_graphlets(graphs, self.size, self.n_samples, self.sampling, self.flyback, self.small, self.seed_)

    def _map(self, graphs: Any, rng: np.random.Generator) -> Any:
        """Return the map named by `features`, drawn."""
        name, size = self.features, self.size
        if not isinstance(name, str):
            return self._given_map(graphs, rng)
        if name not in FEATURES:
            names = ", ".join(map(repr, FEATURES))
            raise ValueError(f"features must be one of {names}, a function or a transformer, got {name!r}")
        if name in ("match", "match_iso"):
            if size > 7:
                raise ValueError(f"features={name!r} counts patterns of up to 7 nodes, got size={size}; take others")
            return maps.Match(size) if name == "match" else maps.MatchClasses(size)
        if self.n_components is None:
            if name != "optical":
                raise ValueError(
                    f"n_components=None is the exact map of the optical kernel; features={name!r} needs a number"
                )
            return maps.exact_optical(size, 1.0)
        m = int(self.n_components)
        if name == "optical":
            return self._optical_map(OpticalRandomFeatures(m), rng)
        frequencies = rng.standard_normal((size if name == "gaussian_eig" else maps.n_pairs(size), m)) / self.bandwidth
        phases = np.zeros(m) if name == "gaussian_complex" else rng.uniform(0, 2 * np.pi, m)
        if name == "gaussian_eig":
            function = maps.Spectra(size, frequencies.astype(np.float32), phases.astype(np.float32))
            return maps.PerPattern(size, function, m)
        return maps.Waves(size, frequencies, phases, name == "gaussian_complex")

    def _optical_map(self, features: OpticalRandomFeatures, rng: np.random.Generator) -> maps.Quadratic:
        """Return the map of plain optical features, drawn anew where they name no seed."""
        features = clone(features)
        if features.random_state is None:
            features.set_params(random_state=int(rng.integers(2**31)))
        features.fit(np.zeros((1, maps.n_pairs(self.size))))
        return maps.optical(self.size, features.weights_, features.bias_)

    def _given_map(self, graphs: Any, rng: np.random.Generator) -> Any:
        """Return the map that a function or transformer computes."""
        function = self.features
        if isinstance(function, OpticalRandomFeatures) and not function.structured and function.quantize is None:
            return self._optical_map(function, rng)
        if hasattr(function, "transform"):
            found = graphs.map(_patterns, self) if isinstance(graphs, Distributed) else [_patterns(graphs, 0, self)]
            bits = unpack_graphlets(np.unique(np.concatenate([*found])), self.size)
            function = clone(function).fit(bits.astype(np.float32))
        elif not callable(function):
            raise ValueError(f"features must be a name, a function or a transformer, got {function!r}")
        trial = np.asarray(maps.apply(function, np.zeros((2, maps.n_pairs(self.size)), dtype=np.float32)))
        return maps.PerPattern(self.size, function, trial.shape[-1] if trial.ndim else 0)


def _patterns(graphs: Any, start: int, sampling: GraphletSampling) -> npt.NDArray[np.uint64]:
    """Return the codes of the distinct graphlets of some graphs."""
    return np.unique(sampling._sample(as_structures(graphs)))
