r"""Graphlet sampling and averaging (GSA-phi): represent a graph by the mean of a map phi over sampled subgraphs.

.. math:: z(G) = \frac{1}{s} \sum_{i=1}^{s} \phi(F_i), \qquad F_i \sim S_k(G) \text{ i.i.d.}

Inner products of these vectors estimate the mean kernel between graphlet distributions; their Euclidean distances
estimate the maximum mean discrepancy (MMD) of that kernel. Cost: linear in the numbers of graphs and samples. Optical
features are quadratic in the adjacency bits, so only the second moments of the bits are averaged; the cost of sampling
and averaging does not depend on the number of features.

Fourier features need no cosine per sample: a pattern is the vector a of the adjacency bits of a graphlet, so exp(i (w .
a + b)) is exp(i b) times one factor for each bit that is 1. Each group of eight bits has a table of its 256 possible
products, so one feature of a pattern costs one complex product for every eight bits. The feature is computed once for
all graphs that have the pattern. Features are computed in tiles of `_WIDTH` columns: the tile of all patterns stays in
cache while the sums of the graphs read it.

A tile of 32 features for size 6, 300 graphs and 8000 patterns takes 0.04 ms for the products and 0.44 ms for the sums,
both in SIMD registers (`similia.core.lanes`); plain loops take 0.23 and 0.65 ms. Memory: one tile per thread. If the
tiles would take too much of ``max_memory``, each half of the graphs is handled with its own patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import clone

from similia.core import functions
from similia.core import lanes as lane
from similia.core.config import n_threads, rows_per_block, run_in_ranges, track
from similia.core.estimators import Transformer, all_at_once, check_fitted, example_of
from similia.core.functions import cos_sin_of_quarters
from similia.core.jit import njit
from similia.core.lanes import LANES
from similia.core.products import row_product
from similia.core.state import array, count, made, pairs_of, state
from similia.core.validation import RandomState, check_positive, check_positive_int, generator, part_from
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.objects import GraphBatch
from similia.objects.graphlets import (
    as_structures,
    canonical_forms,
    count_patterns,
    n_pairs,
    sample_graphlets,
    second_moments,
    unpack_graphlets,
)
from similia.objects.sequences import offsets_of
from similia.similarity import refuse_class
from similia.sources.dask import Distributed, from_parts, lazily

Codes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]
FEATURES = ("match", "match_iso", "gaussian", "gaussian_complex", "gaussian_eig", "optical")
_GRAIN = 16  # minimum number of graphs per task
_LARGEST_TABLE = 21  # up to this many bits, distinct patterns are found with a table of all patterns
_WIDTH = 2 * LANES  # number of features in a tile
_BITS = 8  # number of adjacency bits that index one table


@state(
    fits=lambda state, sizes: vars(state["map_"]).get("size") == state["size"],
    seed_=count(), _n_features_out=count(), n_samples=count(least=1), size=count(least=2, most=11),
    map_=made("Match", "MatchClasses", "Quadratic", "Waves", "PerPattern"),
)  # fmt: skip
class GraphletSampling(Transformer):
    r"""Embed graphs by their structure: average a feature map over sampled graphlets.

    A graphlet is the subgraph induced by `size` sampled nodes. Its nodes keep the order in which they were drawn. The
    pattern of a graphlet is a vector a of D = size (size - 1) / 2 bits, one for each pair of its nodes: 1 if an edge
    joins them. The order of the pairs is (0, 1), (0, 2), (1, 2), (0, 3), ...

    Parameters
    ----------
    size : int, default=6
        Number of nodes in a graphlet, 2 to 11.
    n_samples : int, default=2000
        Number s of graphlets drawn from each graph.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        "random_walk" walks from a random node until it has visited `size` nodes; "uniform" draws `size` nodes at
        random. See `similia.objects.sample_graphlets` for details, such as the treatment of graphs without edges.
    features : str, callable or transformer, default="optical"
        The feature map to average, as a function of a pattern a; m is `n_components`. The w_j are random vectors,
        Gaussian with standard deviation 1 / `bandwidth` unless stated otherwise; the b_j are uniform on [0, 2 pi].

        - ``"optical"``: :math:`|w_j \cdot a|^2 / \sqrt m` with complex Gaussian w_j of scale 1. ``n_components=None``
          gives the exact feature map of the optical kernel: D (D + 1) / 2 numbers without Monte-Carlo error. For
          another scale, or for a bias, pass a `similia.embeddings.OpticalRandomFeatures` instead of the name;
        - ``"gaussian"``: :math:`\sqrt{2 / m} \cos(w_j \cdot a + b_j)`;
        - ``"gaussian_complex"``: cosine and sine pairs, :math:`m^{-1/2} (\cos w_j \cdot a, \sin w_j \cdot a)`, 2 m
          numbers. The error bound `similia.planning.mmd_error` holds for these features;
        - ``"gaussian_eig"``: ``"gaussian"`` on the sorted eigenvalues of the adjacency matrix. Eigenvalues do not
          depend on the order of nodes, but some different graphs of five nodes or more have the same eigenvalues;
        - ``"match"``: the sparse histogram of the :math:`2^D` possible patterns, for `size` up to 7;
        - ``"match_iso"``: the histogram of isomorphism classes, for `size` up to 7;
        - a function or transformer that maps n patterns, a float32 array of shape (n, D), to an array of shape (n, m).
          If it is a transformer, a copy of it is fitted to the distinct patterns of the training graphs.
    n_components : int or None, default=2000
        Number m of random features. Ignored by ``match``, ``match_iso``, functions and transformers
        (`OpticalRandomFeatures` has its own `n_components`).
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the random features and `seed_`, the seed of the samples. If `features`
        is a transformer whose `random_state` is None, `fit` also draws a seed for it.
    flyback : float, default=0.15
        Probability, in [0, 1), that a step of a random walk returns to the node where the walk began.
    bandwidth : float, default=1.0
        Standard deviation sigma of the Gaussian kernels :math:`e^{-\|a - a'\|^2 / 2 \sigma^2}`; ignored by the other
        feature maps.
    small : {"pad", "raise"}, default="pad"
        How to treat a graph with fewer than `size` nodes: add isolated nodes, or raise an error.

    Attributes
    ----------
    seed_ : int
        Seed of the samples.
    map_ : object
        The feature map, with its random vectors.

    Notes
    -----
    Labels, attributes, weights and directions are ignored. The samples of a graph depend on the seed and on the edges
    and node numbers of that graph, not on the other graphs in `X`. So equal graphs have equal vectors.

    With the optical kernel :math:`\|a\|^2 \|a'\|^2 + (a \cdot a')^2`, the vector of a graph depends only on how often
    any two bits are both 1 in its patterns. So different distributions of patterns can have the same embedding. Random
    features, however many, contain no information that the exact map (``n_components=None``) lacks, and they add noise.

    Standardise the columns before a linear model, as `similia.recipes.graphlet_optical` does, because the means of
    random features differ little from graph to graph.

    The output is float64 for ``match``, ``match_iso`` and the exact optical map, and float32 for the other named maps.
    For a function or transformer, the output is float32 if the values of `features` are float32, otherwise float64.
    ``match`` returns a `scipy.sparse.csr_array`.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021 (Algorithm GSA-phi).

    Examples
    --------
    >>> import networkx as nx
    >>> import similia as sm
    >>> graphs = [nx.cycle_graph(20), nx.cycle_graph(30), nx.star_graph(20), nx.star_graph(30)]
    >>> sm.GraphletSampling(size=5, n_samples=500, n_components=None, random_state=0).fit_transform(graphs).shape
    (4, 55)
    """

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
        """Draw the random vectors of the feature map, which turns sampled subgraphs (graphlets) into numbers.

        If the parameter `features` is a transformer, a copy of it is fitted to graphlets of `X` instead. `X` is a
        collection of graphs in any form that `similia.objects.as_graphs` accepts.
        """
        graphs = as_structures(example_of(X))
        rng = generator(self.random_state)
        self.seed_ = int(rng.integers(2**63))
        check_positive_int(self.size, "size", minimum=2)
        if self.n_components is not None:
            check_positive_int(self.n_components, "n_components")
        check_positive(self.bandwidth, "bandwidth")
        refuse_class(self.features, "features")
        self._sample(graphs[:1])  # raises now if a parameter is wrong
        self.map_ = self._map(X if isinstance(X, Distributed) else graphs, rng)
        self._n_features_out = self.map_.n_features
        return self

    @lazily
    def transform(self, X: Any) -> Any:
        """Return the vectors of n graphs, shape (n, n_features): an array, or a csr_array for ``features="match"``."""
        check_fitted(self)
        if self.map_.size != self.size:
            raise ValueError(f"size is {self.size}, but fit sampled graphlets of {self.map_.size} nodes; fit again")
        graphs = as_structures(X)
        block = rows_per_block(64 * self.n_samples, len(graphs))  # code, histogram and work arrays
        starts = track(range(0, len(graphs), block), "graphlets")
        parts = []
        for start in starts:
            with part_from(start):
                parts.append(self.map_.means(self._sample(graphs[start : start + block])))
        if len(parts) == 1:
            return parts[0]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def _example(self) -> list[Any]:
        path = np.arange(self.size)
        return [{"edge_index": np.stack([path[:-1], path[1:]]), "n_nodes": self.size}]

    def _sample(self, graphs: GraphBatch) -> npt.NDArray[np.uint64]:
        """Return the sampled graphlets of each graph as 64-bit codes of adjacency bits, shape (n_graphs, n_samples)."""
        return sample_graphlets(graphs, self.size, self.n_samples, self.sampling, self.flyback, self.small, self.seed_)

    def _map(self, graphs: Any, rng: np.random.Generator) -> Any:
        """Return the feature map that the parameter `features` asks for; draw its random numbers from `rng`."""
        name, size = self.features, self.size
        if not isinstance(name, str):
            return self._given_map(graphs, rng)
        if name not in FEATURES:
            names = ", ".join(map(repr, FEATURES))
            raise ValueError(f"features must be one of {names}, a function or a transformer, got {name!r}")
        if name in ("match", "match_iso"):
            if size > 7:
                raise ValueError(f"features={name!r} counts patterns of up to 7 nodes, got size={size}; use others")
            return Match(size) if name == "match" else MatchClasses(size)
        if self.n_components is None:
            if name != "optical":
                raise ValueError(f"n_components=None works only with features='optical'; {name!r} needs a number")
            return exact_optical(size)
        m = int(self.n_components)
        if name == "optical":
            return self._optical_map(OpticalRandomFeatures(m), rng)
        frequencies = rng.standard_normal((size if name == "gaussian_eig" else n_pairs(size), m)) / self.bandwidth
        phases = np.zeros(m) if name == "gaussian_complex" else rng.uniform(0, 2 * np.pi, m)
        if name == "gaussian_eig":
            function = Spectra(size, frequencies.astype(np.float32), phases.astype(np.float32))
            return PerPattern(size, function, m)
        return Waves(size, frequencies, phases, name == "gaussian_complex")

    def _optical_map(self, features: OpticalRandomFeatures, rng: np.random.Generator) -> Quadratic:
        """Return the map of unstructured, unquantised `features`; see `_seeded`."""
        features = _seeded(features, rng).fit(np.zeros((1, n_pairs(self.size))))
        return optical(self.size, features.weights_, features.bias_)

    def _given_map(self, graphs: Any, rng: np.random.Generator) -> Any:
        """Return the map of the function or transformer `features`; fit a transformer to the patterns of `graphs`."""
        function = self.features
        if isinstance(function, OpticalRandomFeatures) and not function.structured and function.quantize is None:
            return self._optical_map(function, rng)
        if hasattr(function, "transform"):
            found = graphs.map(_patterns, self) if isinstance(graphs, Distributed) else [_patterns(graphs, 0, self)]
            bits = unpack_graphlets(np.unique(np.concatenate([*found])), self.size)
            function = _seeded(function, rng).fit(bits.astype(np.float32))
        elif not callable(function):
            raise ValueError(f"features must be a name, a function or a transformer, got {function!r}")
        trial = PerPattern(self.size, function, 0).values(np.zeros(2, np.uint64))
        per_pattern = PerPattern(self.size, function, trial.shape[1] if trial.ndim == 2 else 1)
        per_pattern.check(trial, 2)
        return per_pattern


def _seeded(transformer: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a transformer; if its parameter `random_state` is None, the copy gets a seed from `rng`."""
    transformer = clone(transformer)
    if transformer.get_params(deep=False).get("random_state", 0) is None:
        transformer.set_params(random_state=int(rng.integers(2**31)))
    return transformer


def _patterns(graphs: Any, start: int, sampling: GraphletSampling) -> npt.NDArray[np.uint64]:
    """Return the sorted distinct graphlet codes of a block of graphs; its position `start` is not used."""
    return np.unique(sampling._sample(as_structures(graphs)))


class Histograms(NamedTuple):
    """Histograms of graphlet codes, one for each graph, in compressed rows.

    Graph g has the entries e from ``offsets[g]`` to ``offsets[g + 1] - 1``. Entry e means that the graphlet
    ``codes[places[e]]`` makes up the fraction ``shares[e]`` of the samples of the graph.
    """

    codes: Codes
    offsets: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float32]

    def add_to(self, out: npt.NDArray, features: npt.NDArray, start: int, stop: int) -> None:
        """Add the features of the codes ``codes[start:stop]``, weighted by their shares in graph g, to row g of `out`.

        Row k of `features` belongs to ``codes[start + k]``. Terms are added one by one in a fixed order, so block
        boundaries do not change the sums.
        """
        inside = (self.places >= start) & (self.places < stop)
        offsets = offsets_of(inside)[self.offsets]
        weights = self.shares[inside].astype(features.dtype)
        places, rows = self.places[inside] - start, np.ascontiguousarray(features)

        def work(first: int, last: int) -> None:
            _add_shares(offsets, places, weights, rows, first, last, out)

        run_in_ranges(work, len(out), _GRAIN)


def histograms(codes: Codes, n_bits: int) -> Histograms:
    """Return the histogram of each row of graphlet codes (one row for each graph, codes of `n_bits` bits)."""
    found = count_patterns(codes)
    shares = (found.counts / codes.shape[1]).astype(np.float32)
    if n_bits > _LARGEST_TABLE:
        distinct, places = np.unique(found.codes, return_inverse=True)
        return Histograms(distinct, found.offsets, places, shares)
    met = np.zeros(1 << n_bits, dtype=np.int64)
    met[found.codes] = 1
    distinct = np.flatnonzero(met).astype(np.uint64)
    return Histograms(distinct, found.offsets, (np.cumsum(met) - 1)[found.codes], shares)


@dataclass
@state(size=count(least=2))
class Match:
    """Map a graph to the sparse histogram of its graphlet codes, with one column for each possible code."""

    size: int

    @property
    def n_features(self) -> int:
        return 1 << n_pairs(self.size)

    def means(self, codes: Codes) -> csr_array:
        found = count_patterns(codes)
        columns, offsets = found.codes.astype(np.int32), found.offsets.astype(np.int32)  # what scikit-learn takes
        return csr_array((found.counts / codes.shape[1], columns, offsets), shape=(len(codes), self.n_features))


@dataclass
@state(size=count(least=2))
class MatchClasses:
    """Map a graph to the histogram of the isomorphism classes of its graphlets."""

    size: int

    @property
    def n_features(self) -> int:
        return len(canonical_forms(self.size).representatives)

    def means(self, codes: Codes) -> npt.NDArray[np.float64]:
        found, m = count_patterns(codes), self.n_features
        graph = np.repeat(np.arange(len(codes)), np.diff(found.offsets))
        column = canonical_forms(self.size).table[found.codes.astype(np.int64)]
        counts = np.bincount(graph * m + column, weights=found.counts, minlength=len(codes) * m)
        return np.asarray(counts.reshape(len(codes), m) / codes.shape[1], dtype=np.float64)


@dataclass
@state(
    fits=lambda state, sizes: len(state["matrix"]) == pairs_of(pairs_of(state["size"]) + 1),
    size=count(least=2), matrix=array("f4 f8", None, "m"), constants=array("f4 f8", "m"),
)  # fmt: skip
class Quadratic:
    """Map a graph to the second moments of its graphlets' adjacency bits, times `matrix`, plus `constants`."""

    size: int
    matrix: npt.NDArray[np.floating]
    constants: npt.NDArray[np.floating]

    @property
    def n_features(self) -> int:
        return int(self.matrix.shape[1])

    def means(self, codes: Codes) -> npt.NDArray[np.floating]:
        out = row_product(second_moments(codes, self.size), self.matrix)
        out += self.constants
        return out


@dataclass
@state(
    fits=lambda state, sizes: len(state["frequencies"]) == pairs_of(state["size"]),
    size=count(least=2), frequencies=array("f8", None, "m"), phases=array("f8", "m"), pairs="flag",
)  # fmt: skip
class Waves:
    """Map a graph to the mean Fourier features of its graphlets: cosines and, if `pairs`, also sines."""

    size: int
    frequencies: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]
    pairs: bool

    @property
    def n_features(self) -> int:
        return len(self.phases) * (1 + self.pairs)

    def means(self, codes: Codes) -> npt.NDArray[np.float32]:
        out = _mean_waves(*histograms(codes, n_pairs(self.size)), self.frequencies, self.phases, self.pairs)
        out *= np.float32(np.sqrt((1.0 if self.pairs else 2.0) / len(self.phases)))
        return out


@dataclass
@state(size=count(least=2), n_features=count(), function="function")
class PerPattern:
    """Map a graph to the mean of a function or transformer over its graphlets; equal graphlets are mapped only once."""

    size: int
    function: Any
    n_features: int

    def means(self, codes: Codes) -> npt.NDArray[np.floating]:
        found = histograms(codes, n_pairs(self.size))
        block = rows_per_block(16 * max(self.n_features, n_pairs(self.size)))
        out: Any = None
        for start in range(0, len(found.codes), block):
            stop = min(start + block, len(found.codes))
            rows = self.rows(found.codes[start:stop])
            out = np.zeros((len(codes), self.n_features), rows.dtype) if out is None else out
            found.add_to(out, rows, start, stop)
        return np.asarray(out)

    def values(self, codes: Codes) -> npt.NDArray:
        """Call the function or fitted transformer with the adjacency bits of each code; return the result unchecked."""
        bits = unpack_graphlets(codes, self.size).astype(np.float32)
        return np.asarray(self.function.transform(bits) if hasattr(self.function, "transform") else self.function(bits))

    def rows(self, codes: Codes) -> npt.NDArray[np.floating]:
        """Return one row of features for each code; raise if a row is not `n_features` finite numbers."""
        rows = self.values(codes)
        self.check(rows, len(codes))
        rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
        if not np.isfinite(rows).all():
            raise ValueError("features returned NaN or infinity for some graphlets, expected finite numbers")
        return rows

    def check(self, rows: npt.NDArray, n: int) -> None:
        """Raise if `rows`, which the function returned for n graphlets, are not `n_features` numbers for each."""
        owner = getattr(self.function, "__self__", self.function)  # of a bound method, such as encoder.transform
        if rows.dtype == np.uint8 and _packs_bits(owner):
            raise ValueError(
                f"features={type(owner).__name__} returns packed bits, whose bytes have no mean; take a transformer "
                "that returns numbers"
            )
        if rows.shape != (n, self.n_features) or rows.dtype.kind not in "fiu":
            raise ValueError(
                f"features returned an array of shape {rows.shape} and dtype {rows.dtype} for the adjacency bits of "
                f"{n} patterns, expected numbers of shape ({n}, {self.n_features})"
            )


def _packs_bits(transformer: Any) -> bool:
    """Return whether bytes that a transformer returns are packed bits: it is, or has as a part, an encoder."""
    parts = transformer.get_params().values() if hasattr(transformer, "get_params") else ()
    return any(isinstance(part, Transformer) and not part._dtypes for part in (transformer, *parts))


@dataclass
@state(size=count("n", least=2), frequencies=array("f4", "n", "m"), phases=array("f4", "m"))
class Spectra:
    """A function from adjacency bits, the rows of `bits`, to m cosine features of the eigenvalues of the matrices."""

    size: int
    frequencies: npt.NDArray[np.float32]
    phases: npt.NDArray[np.float32]

    def __call__(self, bits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        A = np.zeros((len(bits), self.size, self.size))
        column, row = np.tril_indices(self.size, -1)
        A[:, row, column] = A[:, column, row] = bits
        angles = row_product(np.linalg.eigvalsh(A), self.frequencies)
        angles += self.phases
        return functions.cos(angles, out=angles) * np.float32(np.sqrt(2 / len(self.phases)))


def exact_optical(size: int) -> Quadratic:
    r"""Return features whose inner products are exactly the mean optical kernel (without bias) over pairs of graphlets.

    With M and M' the matrices of second moments of two graphs, that mean is
    :math:`\mathrm{tr} M \, \mathrm{tr} M' + \langle M, M' \rangle`. The part that depends on the diagonals of M and M'
    is a bilinear form with matrix I + J, where all entries of J are 1. So the map multiplies the diagonal by the square
    root of I + J, which is I + c J for some c.
    """
    D = n_pairs(size)
    p, q = np.triu_indices(D)
    matrix = np.diag(np.where(p == q, 1.0, np.sqrt(2.0)))
    diagonal = np.flatnonzero(p == q)
    matrix[np.ix_(diagonal, diagonal)] += (np.sqrt(1.0 + D) - 1.0) / D
    return Quadratic(size, matrix, np.zeros(len(p)))


def optical(size: int, weights: npt.NDArray[np.complex128], bias: npt.NDArray[np.complex128]) -> Quadratic:
    """Return the map |W a + b|^2 / sqrt(m) of bits a, in terms of second moments; `weights` is W^T, `bias` is b."""
    p, q = np.triu_indices(n_pairs(size))
    m = weights.shape[1]
    matrix = (weights[p] * weights[q].conj()).real * np.where(p == q, 1.0, 2.0)[:, None]
    matrix[p == q] += 2 * (weights * bias.conj()).real
    constants = np.abs(bias) ** 2
    return Quadratic(size, (matrix / np.sqrt(m)).astype(np.float32), (constants / np.sqrt(m)).astype(np.float32))


def _mean_waves(
    codes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    shares: Floats,
    frequencies: npt.NDArray[np.float64],
    phases: npt.NDArray[np.float64],
    sines: bool,
) -> Floats:
    """Return for each graph the weighted mean of cos(w . a + b) over its patterns a and, if `sines`, of sin(w . a + b).

    The result is (n_graphs, m), or (n_graphs, 2 m) with the cosines first. `codes` holds the distinct patterns. Slice
    ``offsets[g]:offsets[g + 1]`` of `places` (positions in `codes`) and of `shares` (weights) belongs to graph g.
    `frequencies` (n_bits, m) holds the vectors w as columns, `phases` (m,) the numbers b.
    """
    m, n_graphs = len(phases), len(offsets) - 1
    if n_graphs > 1 and len(codes) > rows_per_block(8 * _WIDTH * n_threads()):
        parts = []
        for first, last in ((0, n_graphs // 2), (n_graphs // 2, n_graphs)):
            entries = slice(offsets[first], offsets[last])
            kept, inside = np.unique(places[entries], return_inverse=True)
            here = offsets[first : last + 1] - offsets[first]
            parts.append(_mean_waves(codes[kept], here, inside, shares[entries], frequencies, phases, sines))
        return np.concatenate(parts)
    out = np.empty((n_graphs, (1 + sines) * m), dtype=np.float32)

    def work(start: int, stop: int) -> None:
        room, sums = (np.empty(_WIDTH * n, dtype=np.float32) for n in (len(codes), n_graphs))
        for first in range(start * _WIDTH, min(m, stop * _WIDTH), _WIDTH):
            last = min(m, first + _WIDTH)
            for part in range(1 + sines):
                shifted = phases[first:last] - part * np.pi / 2  # a sine is a cosine a quarter later
                tables = _tables(frequencies[:, first:last], shifted)
                _waves(codes, tables[0].ravel(), tables[1].ravel(), room)
                _gather(offsets, places, shares, room, sums)
                out[:, part * m + first : part * m + last] = sums.reshape(n_graphs, _WIDTH)[:, : last - first]

    run_in_ranges(work, -(-m // _WIDTH), 1)
    return out


def _tables(frequencies: npt.NDArray[np.float64], phases: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return factors whose product is exp(i (w . a + b)) for a pattern a, as tables: (2, n_tables, 256, _WIDTH).

    The first axis holds real, then imaginary parts; the last axis, up to `_WIDTH` features. The w are the columns of
    `frequencies`, the b are `phases`. Table t has one row for each value of the byte of bits 8 t to 8 t + 7 of a. The
    first table also includes exp(i b).
    """
    n_bits, m = frequencies.shape
    tables = np.zeros((2, -(-n_bits // _BITS), 1 << _BITS, _WIDTH))
    tables[0, :, 0] = 1
    tables[:, 0, 0, :m] = cos_sin_of_quarters(phases * (2 / np.pi))
    for bit in range(n_bits):
        c, s = cos_sin_of_quarters(frequencies[bit] * (2 / np.pi))
        (x, y), half = tables[:, bit // _BITS, :, :m], 1 << bit % _BITS
        # Real products: the rounding of numpy's complex products depends on the processor.
        x[half : 2 * half] = x[:half] * c - y[:half] * s
        y[half : 2 * half] = x[:half] * s + y[:half] * c
    return tables.astype(np.float32)


@njit()
def _waves(codes, real, imag, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the real part, for each code, of the product of the rows of the tables that its bytes select."""
    last, low_byte, table = len(real) // (_WIDTH << _BITS) - 1, np.uint64(255), _WIDTH << _BITS
    for p in range(len(codes)):
        code = codes[p]
        for c in range(0, _WIDTH, LANES):
            at = _WIDTH * np.int64(code & low_byte) + c
            x, y = lane.load(real, at), lane.load(imag, at)
            for t in range(1, last):
                at = table * t + _WIDTH * np.int64((code >> np.uint64(_BITS * t)) & low_byte) + c
                u, v = lane.load(real, at), lane.load(imag, at)
                x, y = x * u - y * v, x * v + y * u
            if last:
                at = table * last + _WIDTH * np.int64((code >> np.uint64(_BITS * last)) & low_byte) + c
                x = x * lane.load(real, at) - y * lane.load(imag, at)
            lane.store(out, _WIDTH * p + c, x)


@njit()
def _gather(offsets, places, shares, features, out):  # type: ignore[no-untyped-def]
    """Fill row g of `out` with the sum of ``shares[e] * features[places[e]]`` over the entries e of graph g.

    Entries alternate between two partial sums: in a single sum, each addition would wait for the one before.
    """
    for g in range(len(offsets) - 1):
        e, end = offsets[g], offsets[g + 1]
        zero = lane.splat(np.float32(0))
        a, b, c, d = zero, zero, zero, zero
        while e + 2 <= end:
            share, at = lane.splat(shares[e]), _WIDTH * places[e]
            a = lane.multiply_add(share, lane.load(features, at), a)
            b = lane.multiply_add(share, lane.load(features, at + LANES), b)
            share, at = lane.splat(shares[e + 1]), _WIDTH * places[e + 1]
            c = lane.multiply_add(share, lane.load(features, at), c)
            d = lane.multiply_add(share, lane.load(features, at + LANES), d)
            e += 2
        if e < end:
            share, at = lane.splat(shares[e]), _WIDTH * places[e]
            a = lane.multiply_add(share, lane.load(features, at), a)
            b = lane.multiply_add(share, lane.load(features, at + LANES), b)
        lane.store(out, _WIDTH * g, a + c)
        lane.store(out, _WIDTH * g + LANES, b + d)


@njit()
def _add_shares(offsets, places, weights, features, start, stop, out):  # type: ignore[no-untyped-def]
    """Add ``weights[e] * features[places[e]]`` to ``out[g]`` for all entries e of the graphs g in start..stop - 1."""
    for g in range(start, stop):
        row = out[g]
        for e in range(offsets[g], offsets[g + 1]):
            weight, feature = weights[e], features[places[e]]
            for j in range(len(row)):
                row[j] += weight * feature[j]
