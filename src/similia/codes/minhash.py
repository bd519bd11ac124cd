r"""MinHash: objects to bits or sparse vectors whose agreement estimates the min-max kernel of their features.

A sampler s, the same for all objects, picks one element s(x) of each object x such that

    P(s(x) = s(y)) = MinMax(x, y) = sum_i min(f_i(x), f_i(y)) / sum_i max(f_i(x), f_i(y)).

An object that has feature f with count c has the elements (f, 1), ..., (f, c). So it is a set, and MinMax is the
Jaccard similarity of two sets. A random order of all possible elements defines a sampler: it picks the first element of
x in this order. Features that are not counts become counts floor(f_i scale + u_i), where u_i is a random number in
[0, 1) that all objects share; the expected minimum of two such counts is exactly min(f_i(x), f_i(y)) scale.

**n samplers at once** (Dahlgaard, Knudsen and Thorup 2017). One hash for each pair of a sampler and an element would
take n m hashes for an object of m elements. Instead, hashing goes in rounds. In a round, the hash of an element
consists of the number of a random sampler and a random value for that sampler. A sampler looks at the first round in
which it got any element, and picks the element with the smallest value. So it samples uniformly, and the estimate is
unbiased for sets of any size. If m > n log n, one round is usually enough. After `_ROUNDS` rounds, samplers that still
have no element (most of them, for small sets) hash all elements with a seed of their own and pick the smallest hash;
compilers vectorise this loop.

Rejected: one hash for each sampler and element takes 3 times as long on sets of 100 elements and 15 times as long on
sets of 1000 (n = 1024); an unlimited number of rounds takes 1.7 times as long on sets of 100. One permutation hashing
(one round; samplers without an element copy others; Shrivastava 2017) is faster, but has a larger error, because of the
copies. Consistent weighted sampling (Ioffe 2010; Li 2015) takes three logarithms for each sampler and feature.

The code holds `bits` bits of the hash of each sampled element (b-bit minwise hashing, Li and König 2010). All numbers
are integers, so codes do not depend on the processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import Tags

from similia.core.config import in_threads, limited_to, rows_per_block, run_in_ranges
from similia.core.estimators import Transformer, all_at_once, check_fitted, detached
from similia.core.hashing import GOLDEN, mix, scramble
from similia.core.jit import njit
from similia.core.state import Sizes, count, one_of, optional, state
from similia.core.validation import BadParameter, BadValue, check_positive_int, generator, part_from
from similia.kernels.counts import Counts, check_alike
from similia.kernels.minmax import Intersection, MinMax
from similia.objects import n_objects, take
from similia.similarity import ComparesObjects, compared, decided, read_objects
from similia.sources.dask import Distributed, from_parts, lazily

_ROUNDS = 24  # of hashes that fall to any sampler, before the samplers left take their own
_ENOUGH = 4  # minimum elements per sampler in the median object, if features must be scaled
_MOST_WHOLE = 64  # up to this many elements per sampler in the median object, counts are not scaled
_MOST = 2**26  # maximum number of elements of one object
_N_READ = 256  # objects that `fit` reads to choose the scale
_BLOCK, _GRAIN = 4096, 16  # objects counted at a time, and objects worth a call in a thread
_BAND_BLOCK = 1024  # objects whose features one thread counts at once, for keys of bands
_BYTES = 4096  # approximate memory for the features of an object
_NONE, _LOW, _HALF = np.uint64(2**64 - 1), np.uint64(2**32 - 1), np.uint64(32)
_ALL_BITS = np.uint8(255)
_S16, _S15 = np.uint32(16), np.uint32(15)
_M1, _M2 = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)  # Wellons' "lowbias32"


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    whole_bytes = state["output"] != "bits" or state["n_hashes"] * state["bits"] % 8 == 0
    return 1 <= state["bits"] <= 8 and whole_bytes


@state(
    fits=_state_fits, kernel=optional("kernel"), n_hashes=count(least=1), bits=count(least=1),
    output=one_of("bits", "onehot"), kernel_="kernel", compared_="texts", scale_="positive", seed_=count(),
    n_features_in_=count(least=1), may_lack=("n_features_in_",),
)  # fmt: skip
class MinHash(ComparesObjects, Transformer):
    r"""Turn objects into bits or sparse vectors that estimate the min-max kernel of their features.

    The min-max kernel of x and y is the sum of min(f(x), f(y)) over all features f, divided by the sum of
    max(f(x), f(y)). If all features are 0 or 1, it is the Jaccard (Tanimoto) similarity. The cost is linear in the
    number of objects. Pass bits to `similia.HammingIndex` or `similia.HDClassifier`, and sparse vectors to a linear
    model.

    Parameters
    ----------
    kernel : kernel with explicit features, or None
        The codes estimate ``similia.kernels.MinMax(kernel)``, which compares the features of `kernel`. `kernel` may be
        a kernel of `similia.kernels` that counts substructures, a ``Sum`` or ``Normalized`` of such kernels, or any
        object with ``features(X, n_features)``. With None, the objects are vectors of numbers >= 0, rows of a dense or
        sparse matrix. Change parameters of the kernel with ``set_params(kernel__k=4)``.
    n_hashes : int, default=1024
        Number of hashes per object. `similia.planning.minhash_n_hashes` returns the number needed for a given error.
    bits : int, default=1
        Number of bits, 1 to 8, that are kept of each hash.
    output : {"bits", "onehot"}, default="bits"
        ``"bits"``: packed codes of n_hashes * bits bits; this number must be a multiple of 8. ``"onehot"``: a sparse
        matrix of n_hashes * 2**bits columns, with one entry 1 / sqrt(n_hashes) for each hash.
    random_state : int, Generator, RandomState or None
        Seed or generator from which `fit` draws `seed_`.

    Attributes
    ----------
    kernel_ : similia.kernels.Intersection
        The kernel that adds up min(f(x), f(y)) over all features f of `kernel`. Settings of `kernel` that depend on the
        training objects have the values that `fit` found.
    compared_ : dict of str
        Which parts of the training objects the kernel compares, such as ``{"nodes": "node labels"}`` for graphs.
        `transform` raises an error if the kernel would compare other parts of the new objects.
    scale_ : float
        Factor by which features are multiplied before each is rounded at random, up or down, to a count. Hashes work on
        sets: an object becomes a set that holds c elements for each feature of count c, and each hash picks one element
        of the set. If an object has features, but all its counts are 0, its set holds one element for one of these
        features. `fit` uses at most 256 training objects, leaves out objects without features, and computes m, the
        median of the sums of their features. `scale_` is 1 if these features are integers and m is at most 64 *
        n_hashes. Otherwise, `scale_` is the power of two for which ``m * scale_`` is 4 to 8 times n_hashes.
    seed_ : int
        Seed of all hashes.

    Raises
    ------
    TypeError
        If `kernel` has no explicit features.
    ValueError
        In `fit` and `transform`, if a parameter is out of range, or if a feature is negative, NaN or above 1e150. In
        `transform`, if an object has more than 2**26 elements (see `scale_`).

    Notes
    -----
    Let J be the min-max kernel of x and y, n the number of hashes, b the number of bits of a hash, and n_bits = n b.

    ============ =============================================== =================================================
    output       unbiased estimate of J                          standard error, at most
    ============ =============================================== =================================================
    bits         1 - 2 h / n_bits, where h bits differ           sqrt((1 - J) (1 + J) / n) for b = 1, otherwise
                 (`codes.similarity`)                            sqrt((1 - J) (J + 1 / b) / n)
    onehot       (p - q) / (1 - q), where p is the inner         sqrt((1 - p) p / n) / (1 - q)
                 product and q = 2**-b
    ============ =============================================== =================================================

    Each hash samples one element of an object. If an object has more than about n log n elements (see `scale_`), all n
    samples differ, and the errors are smaller.

    For codes of a given number of bits, ``bits=1`` has the smallest error. With ``output="onehot"``, a larger `bits`
    brings the inner product nearer to J.

    If features are rounded (``scale_ != 1``), the rounding adds an error of about sqrt(k) / (10 n) to the estimate,
    where k is the number of features of an object. The error is a hundred times larger for an object whose features add
    up to 1% of the median m (see `scale_`).

    All objects without features have the same code. Its similarity to the codes of other objects is 0 on average.

    References
    ----------
    Dahlgaard, Knudsen & Thorup, "Fast similarity sketching", FOCS 2017. Li & König, "b-bit minwise hashing", WWW 2010.
    Li, "Min-max kernels", 2015, and "0-bit consistent weighted sampling", KDD 2015. Ioffe, "Improved consistent
    sampling, weighted minhash and L1 sketching", ICDM 2010.

    Examples
    --------
    >>> import similia as sm
    >>> kmers = sm.kernels.Spectrum(k=3)
    >>> X = ["representation", "presentation", "sets"]
    >>> codes = sm.MinHash(kmers, n_hashes=4096, random_state=0).fit_transform(X)
    >>> codes.shape
    (3, 512)
    >>> sm.codes.similarity(codes).round(1)
    array([[1. , 0.8, 0. ],
           [0.8, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> sm.kernels.MinMax(kmers)(X).round(1)
    array([[1. , 0.8, 0. ],
           [0.8, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    _dtypes = ()

    def __init__(
        self,
        kernel: Any = None,
        n_hashes: int = 1024,
        bits: int = 1,
        output: str = "bits",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_hashes = n_hashes
        self.bits = bits
        self.output = output
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> MinHash:
        """Draw `seed_`, the seed of all hashes, and compute `scale_` from at most 256 objects of the collection `X`.

        These objects are evenly spaced in `X`. `scale_` multiplies features before they are rounded to counts.
        """
        self._check_parameters()
        self.kernel_ = detached(decided(Intersection(self.kernel), X))
        few = _some(read_objects(self, self.kernel_, _some(X) if isinstance(X, Distributed) else X, reset=True))
        self.compared_ = compared(self.kernel_, few)
        self.scale_ = _scale(self.kernel_.counted(few), int(self.n_hashes))
        self.seed_ = int(generator(self.random_state).integers(2**63))
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.uint8] | sp.csr_array:
        """Return the codes of n objects: packed bits or, for ``output="onehot"``, sparse vectors.

        Packed bits are a uint8 array of shape (n, n_hashes * bits // 8); sparse vectors are a csr_array of float64 of
        shape (n, n_hashes * 2**bits).
        """
        objects = self._read(X)
        self._check_parameters()
        n, onehot = n_objects(objects), self.output == "onehot"
        out = np.empty((n, self.n_hashes), np.int32) if onehot else np.empty((n, self._n_features_out), np.uint8)
        step = rows_per_block(2 * self.bits * self.n_hashes + _BYTES, at_most=_BLOCK)
        for start in range(0, n, step):
            rows = np.arange(start, min(n, start + step))
            hashes, no_keys = np.empty((len(rows), self.n_hashes), np.uint8), np.empty((len(rows), 0), np.uint64)
            with part_from(start):
                part = objects if len(rows) == n else take(objects, rows)
                self._fill(part, np.uint8(2**self.bits - 1), hashes, no_keys)
            out[rows] = hashes if onehot else _packed(hashes, self.bits)
        if not onehot:
            return out
        out += np.arange(self.n_hashes, dtype=np.int32) << self.bits
        narrow = np.int32 if out.size < 2**31 else np.int64  # scikit-learn's linear models take int32 only
        indptr = np.arange(0, out.size + 1, self.n_hashes, dtype=narrow)
        data = np.full(out.size, 1 / np.sqrt(self.n_hashes))
        return sp.csr_array((data, out.ravel(), indptr), shape=(n, self._n_features_out))

    def bands(self, X: Any, rows: int = 1) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
        """Return keys by which a hash table finds similar objects: one for each band (a group of `rows` hashes).

        If the min-max kernel of two objects is J, they have the same key in a given band with probability J**rows.

        Parameters
        ----------
        X : collection of n objects, as in `fit`
        rows : int, default=1
            Number of hashes in a band; `n_hashes` must be a multiple of it.

        Returns
        -------
        keys : ndarray of uint64, shape (n, n_hashes // rows)
            All objects without features have the same keys.
        hashes : ndarray of uint8, shape (n, n_hashes)
            Eight bits of each hash. The share of positions at which two rows are equal estimates J. The estimate is
            slightly too high, because two hashes that should differ have the same eight bits with probability 1 / 256.

        References
        ----------
        Indyk & Motwani, "Approximate nearest neighbors", STOC 1998. Broder, "On the resemblance and containment of
        documents", 1997.
        """
        if check_positive_int(rows, "rows") > self.n_hashes or self.n_hashes % rows:
            raise BadParameter("rows", f"a divisor of n_hashes, which is {self.n_hashes}", str(rows))
        objects = self._read(X)
        n = n_objects(objects)
        keys, hashes = np.empty((n, self.n_hashes // rows), np.uint64), np.empty((n, self.n_hashes), np.uint8)
        step = rows_per_block(_BYTES, at_most=_BAND_BLOCK)

        def fill(start: int) -> None:
            with part_from(start), limited_to(1):
                part = take(objects, np.arange(start, min(n, start + step)))
                self._fill(part, _ALL_BITS, hashes[start : start + step], keys[start : start + step])

        in_threads(fill, range(0, n, step))
        return keys, hashes

    def _check_parameters(self) -> None:
        n_hashes, bits = check_positive_int(self.n_hashes, "n_hashes"), check_positive_int(self.bits, "bits")
        if bits > 8:
            raise BadParameter("bits", "an integer from 1 to 8", str(bits))
        if self.output not in ("bits", "onehot"):
            raise BadParameter("output", "'bits' (packed codes) or 'onehot' (a sparse matrix)", repr(self.output))
        if self.output == "bits" and n_hashes * bits % 8:
            step = 8 // math.gcd(bits, 8)
            remedy = f"use n_hashes={-(-n_hashes // step) * step}"
            raise BadParameter("n_hashes * bits", "a multiple of 8 (packed into bytes)", f"{n_hashes * bits}", remedy)
        if self.output == "onehot" and n_hashes << bits > 2**31 - 1:
            expected = f"below {2**31 >> bits}, as the output has n_hashes * 2**bits columns"
            raise BadParameter("n_hashes", expected, str(n_hashes))

    def _read(self, X: Any) -> Any:
        """Return objects in the layout of the kernel; raise unless they are like the training objects."""
        check_fitted(self)
        objects = read_objects(self, self.kernel_, X, reset=False)
        check_alike(self.kernel_, compared(self.kernel_, objects), self.compared_, "X", "the training objects")
        return objects

    def _fill(self, objects: Any, mask: np.uint8, hashes: npt.NDArray, keys: npt.NDArray) -> None:
        """Fill row i of `hashes` and of `keys` from the samples of object i; see `_hash`."""
        counts = self.kernel_.counted(objects)
        numbers = _numbers_of_elements(counts, self.scale_, self.seed_)
        seeds = _seeds(np.uint64(self.seed_), _ROUNDS + self.n_hashes)

        def fill(start: int, stop: int) -> None:
            bounds = counts.offsets[start : stop + 1]
            _hash(bounds, counts.ids, numbers, seeds, _ROUNDS, mask, hashes[start:stop], keys[start:stop])

        run_in_ranges(fill, len(hashes), _GRAIN)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.kernel is None
        tags.input_tags.sparse = self.kernel is None
        return tags

    @property
    def estimated_kernel(self) -> MinMax:
        """The min-max kernel that the codes estimate; `similia.SimilaritySearch` reranks neighbours by this kernel."""
        return MinMax(self.kernel_.kernel if hasattr(self, "kernel_") else self.kernel)

    @property
    def _n_features_out(self) -> int:
        check_fitted(self)
        return self.n_hashes * self.bits // 8 if self.output == "bits" else self.n_hashes << self.bits


def key_of_nothing(rows: int) -> np.uint64:
    """Return the key that `MinHash.bands` gives all objects without features."""
    key = np.uint64(0)
    for _ in range(rows):
        key = np.uint64(mix(key ^ _LOW))
    return key


def _packed(hashes: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Return the last `bits` bits of each number, packed, shape (n, n_hashes * bits // 8)."""
    if bits == 1:
        return np.packbits(hashes, axis=1)
    kept = np.unpackbits(hashes[..., None], axis=-1)[..., 8 - bits :]
    return np.packbits(kept.reshape(len(hashes), -1), axis=1)


def _some(X: Any) -> Any:
    """Return at most `_N_READ` objects, evenly spaced in the collection."""
    n = len(X) if isinstance(X, Distributed) else n_objects(X)
    rows = np.unique(np.linspace(0, n - 1, min(n, _N_READ)).astype(np.int64))
    return X.take(rows) if isinstance(X, Distributed) else take(X, rows)


def _scale(counts: Counts, n_hashes: int) -> float:
    """Return the factor of features before they are rounded to counts; see `MinHash.scale_`."""
    sums = counts.squared_norms
    median = float(np.median(sums[sums > 0])) if (sums > 0).any() else 1.0
    if np.array_equal(counts.values, np.rint(counts.values)) and median <= _MOST_WHOLE * n_hashes:
        return 1.0
    return float(2.0 ** min(np.ceil(np.log2(_ENOUGH * n_hashes / median)), 1023))


def _numbers_of_elements(counts: Counts, scale: float, seed: int) -> npt.NDArray[np.int64]:
    """Return the number of elements of each feature of each object; raise if an object has more than `_MOST`."""
    with np.errstate(over="ignore"):
        sums = counts.squared_norms * scale
    if (sums > _MOST).any():
        i = int(np.argmax(sums > _MOST))
        found = f"has features that add up to {counts.squared_norms[i]:.6g}"
        remedy = "are they on the scale of the training objects?"
        raise BadValue(i, found, f"at most {_MOST / scale:.6g}", remedy)
    numbers = _rounded(counts.ids, counts.values, scale, np.uint64(seed))
    _at_least_one(counts.offsets, counts.ids, counts.values, np.uint64(seed), numbers)
    return numbers


@njit()
def _rounded(ids, values, scale, seed):  # type: ignore[no-untyped-def]
    """Return ``ceil(values * scale - u)``, u a random number in [0, 1) that depends on the id."""
    numbers = np.empty(len(ids), np.int64)
    for k in range(len(ids)):
        value = values[k] * scale
        whole = np.floor(value)
        numbers[k] = np.int64(whole) + (value - whole > _uniform(ids[k], seed))
    return numbers


@njit()
def _at_least_one(offsets, ids, values, seed, numbers):  # type: ignore[no-untyped-def]
    """Give each object whose features were all rounded to 0 one element; large features are more likely to be it."""
    for i in range(len(offsets) - 1):
        if offsets[i] < offsets[i + 1] and numbers[offsets[i] : offsets[i + 1]].max() == 0:
            first, most = offsets[i], 0.0
            for k in range(offsets[i], offsets[i + 1]):
                ratio = values[k] / (_uniform(ids[k], seed) + 2.0**-54)
                if ratio > most:
                    first, most = k, ratio
            numbers[first] = 1


@njit()
def _uniform(feature, seed):  # type: ignore[no-untyped-def]
    return np.float64(mix(feature ^ seed) >> np.uint64(11)) * 2.0**-53


@njit()
def _seeds(seed, n):  # type: ignore[no-untyped-def]
    """Return n + 1 random words: one for the features, then one for each round, then one for each sampler."""
    seeds = np.empty(n + 1, np.uint64)
    for k in range(n + 1):
        seeds[k] = mix(seed + np.uint64(k) * GOLDEN)
    return seeds


@njit()
def _hash(bounds, ids, numbers, seeds, n_rounds, mask, out, bands):  # type: ignore[no-untyped-def]
    """Fill row i of `out` and `bands` from the samples of the object whose features are ``bounds[i]:bounds[i + 1]``.

    `out` gets the bits `mask` of each sample. The samples are divided equally among the columns of `bands`, each of
    which gets a hash of its samples. The local array `keys` holds the round and the smallest value of each sampler.
    """
    n = out.shape[1]
    most = 0
    for i in range(len(out)):
        most = max(most, numbers[bounds[i] : bounds[i + 1]].sum())
    elements, keys = np.empty(most, np.uint64), np.empty(n, np.uint64)
    samplers, own, least = np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n, np.uint32)
    for i in range(len(out)):
        m = _elements(bounds[i], bounds[i + 1], ids, numbers, seeds[0], elements)
        n_open = _sample(elements[:m], seeds[1 : n_rounds + 1], keys)
        if n_open > 0:
            end = 0
            for h in range(n):
                if keys[h] == _NONE:
                    samplers[end], own[end], least[end] = h, np.uint32(seeds[n_rounds + 1 + h]), np.uint32(2**32 - 1)
                    end += 1
            _sample_own(elements[:m], own[:end], least[:end])
            for k in range(end):
                keys[samplers[k]] = np.uint64(least[k])
        for h in range(n):
            out[i, h] = np.uint8(keys[h]) & mask
        for b in range(bands.shape[1]):
            rows, word = n // bands.shape[1], np.uint64(0)
            for h in range(b * rows, (b + 1) * rows):
                word = mix(word ^ keys[h])
            bands[i, b] = word


@njit()
def _elements(start, stop, ids, numbers, seed, elements):  # type: ignore[no-untyped-def]
    """Fill `elements` with a random word for each element (f, t) of an object; return the number of elements."""
    m = 0
    for k in range(start, stop):
        word = mix(ids[k] ^ seed)
        for t in range(numbers[k]):
            elements[m] = mix(word + np.uint64(t) * GOLDEN)
            m += 1
    return m


@njit()
def _sample(elements, seeds, keys):  # type: ignore[no-untyped-def]
    """Fill `keys` in rounds, until each sampler has an element; return the number of samplers without an element."""
    n = np.uint64(len(keys))
    n_open = len(keys)
    keys[:] = _NONE
    for r in range(len(seeds)):
        earlier, seed = np.uint64(r) << _HALF, seeds[r]
        for k in range(len(elements)):
            x = scramble(elements[k] ^ seed)
            h = ((x >> _HALF) * n) >> _HALF
            before = keys[h]
            n_open -= before == _NONE
            keys[h] = min(before, earlier | (x & _LOW))
        if n_open == 0:
            break
    return n_open


@njit()
def _sample_own(elements, seeds, least):  # type: ignore[no-untyped-def]
    """Lower each entry of `least` to the smallest 32-bit hash of all elements with the sampler's seed."""
    for k in range(len(elements)):
        element = np.uint32(elements[k] >> _HALF)
        for h in range(len(seeds)):
            x = element ^ seeds[h]
            x = np.uint32((x ^ (x >> _S16)) * _M1)  # numba multiplies in 64 bits
            x = np.uint32((x ^ (x >> _S15)) * _M2)
            least[h] = min(least[h], x ^ (x >> _S16))
