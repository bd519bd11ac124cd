"""Slow, obvious twins of the library's fast paths: one short function per definition."""

from __future__ import annotations

import collections
import fractions
import itertools
import math

import numpy as np
import scipy.optimize
import scipy.spatial
from Bio.Seq import Seq


# ---- codes: hypervectors (±1 integers, one row per vector)
def signs(codes):
    """Packed bits as ±1."""
    return 2 * np.unpackbits(codes, axis=1).astype(int) - 1


def majority(sums, ties):
    """The sign of each sum; where it is 0, the entry of `ties`."""
    return np.where(sums > 0, 1, np.where(sums < 0, -1, ties))


def ngram_sums(string, vector, n, binding, ties):
    """Sum of the n-grams of one string; vector[letter] is ±1; a short string is one n-gram."""
    total = np.zeros(len(ties), dtype=int)
    width = min(n, len(string))
    for i in range(len(string) - width + 1 if string else 0):
        shifted = [np.roll(vector[letter], j) for j, letter in enumerate(string[i : i + width])]
        total += np.prod(shifted, axis=0) if binding == "multiply" else majority(np.sum(shifted, axis=0), ties)
    return total


def graphhd_sums(edges, rank, vector, n_bits):
    """Sum over undirected edges of the product of their nodes' rank vectors."""
    total = np.zeros(n_bits, dtype=int)
    for u, v in {(min(e), max(e)) for e in edges if e[0] != e[1]}:
        total += vector[rank[u]] * vector[rank[v]]
    return total


# ---- objects: graphs
def arcs(graph, weight="weight"):
    """Arcs of one networkx graph as {(source, target): weight}, nodes numbered in their order; parallel ones summed."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    found = collections.defaultdict(float)
    for u, v, data in graph.edges(data=True):
        found[number[u], number[v]] += data.get(weight, 1.0)
        if not graph.is_directed() and u != v:
            found[number[v], number[u]] += data.get(weight, 1.0)
    return dict(found)


# ---- room: embeddings/nystroem
def nystroem(K, landmarks, rcond=1e-12):
    """K(:, Z) H^+ K(Z, :), the definition, with numpy's pseudo-inverse."""
    C, H = K[:, landmarks], K[np.ix_(landmarks, landmarks)]
    return C @ np.linalg.pinv(H, rcond=rcond, hermitian=True) @ C.T


def product_in_order(C, W):
    """C @ W, each sum from the first term to the last, every product and sum rounded once together."""
    out = np.zeros((len(C), W.shape[1]), W.dtype)
    for i, j in itertools.product(*map(range, out.shape)):
        total = fractions.Fraction(0)
        for k in range(len(W)):
            term = fractions.Fraction(float(C[i, k])) * fractions.Fraction(float(W[k, j]))
            total = fractions.Fraction(float(rounded(total + term, W.dtype)))
        out[i, j] = float(total)
    return out


def rounded(number, dtype):
    """A fraction as the nearest float of the type, halves to even; not for numbers near the ends of its range."""
    if dtype == np.float64:
        return float(number)  # Python rounds the quotient of two integers so
    if not number:
        return dtype.type(0)
    digits = np.finfo(dtype).nmant + 1
    exponent = digits - (abs(number.numerator).bit_length() - number.denominator.bit_length())
    while abs(number) * fractions.Fraction(2) ** exponent >= 2**digits:
        exponent -= 1
    while abs(number) * fractions.Fraction(2) ** exponent < 2 ** (digits - 1):
        exponent += 1
    return dtype.type(float(round(number * fractions.Fraction(2) ** exponent) * fractions.Fraction(2) ** -exponent))


# ---- room: embeddings/landmarks
def pivot_law(K, length):
    """Probability of each sequence of RPCholesky pivots, by eliminating from the explicit residual matrix."""
    law = {}
    for pivots in itertools.permutations(range(len(K)), length):
        R, probability = K.astype(float).copy(), 1.0
        for i in pivots:
            probability *= max(R[i, i], 0.0) / np.trace(R)
            if probability <= 1e-12:
                break
            R = R - np.outer(R[:, i], R[i]) / R[i, i]
        law[pivots] = probability
    return law


def k_dpp_law(L, k):
    """Probability of each sorted set of k objects under the k-DPP of L: determinants, normalised."""
    subsets = itertools.combinations(range(len(L)), k)
    volumes = {subset: max(np.linalg.det(L[np.ix_(subset, subset)]), 0.0) for subset in subsets}
    return {subset: volume / sum(volumes.values()) for subset, volume in volumes.items()}


def pooled_k_dpp_law(L, k, n_pool):
    """Probability of each sorted set under a k-DPP of a uniform pool: the mean of the laws of all pools."""
    law = collections.Counter()
    pools = list(itertools.combinations(range(len(L)), n_pool))
    for pool in pools:
        for places, probability in k_dpp_law(L[np.ix_(pool, pool)], k).items():
            law[tuple(pool[i] for i in places)] += probability / len(pools)
    return law


def kmeans_plusplus_law(K, length):
    """Probability of each sequence of k-means++ centres in the feature space of K."""
    d = np.array([[K[i, i] + K[j, j] - 2 * K[i, j] for j in range(len(K))] for i in range(len(K))])
    law = {}
    for centres in itertools.permutations(range(len(K)), length):
        probability = 1 / len(K)
        for step in range(1, length):
            nearest = d[:, centres[:step]].min(axis=1)
            probability *= nearest[centres[step]] / nearest.sum()
        law[centres] = probability
    return law


def leverage_scores(K, ridge):
    """(K (K + ridge I)^-1)_ii."""
    return np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


# ---- kernels: counts and graph kernels


def sparse_inner_product(x, y, weights=None):
    """Sum over ids of x[id] y[id] weight[id] for two lists (or Counters) of ids."""
    x, y = collections.Counter(x), collections.Counter(y)
    return sum(count * y[key] * (weights[key] if weights else 1) for key, count in x.items())


def splitmix(x):
    """The splitmix64 finaliser in Python integers (Steele, Lea & Flood 2014)."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def combined(x, y):
    """One id for an ordered pair of ids."""
    return splitmix(splitmix(x) ^ (y * 0xBF58476D1CE4E5B9 + 0x9E3779B97F4A7C15) % 2**64)


def transition_matrix(weights):
    """D^-1 A for a dense matrix of edge weights; a row without weight stays where it is."""
    T = np.eye(len(weights))
    for v, row in enumerate(weights):
        if row.sum() > 0:
            T[v] = row / row.sum()
    return T


def propagation_bins(weights, P, u, beta, width, root=False, per_dimension=False):
    """Bins of each node at each step of P <- T P: a list over steps of lists of tuples."""
    T, steps = transition_matrix(weights), []
    for t in range(len(u)):
        f = np.sqrt(P) if root else P
        projected = f * u[t] if per_dimension else (f @ u[t])[:, None]
        steps.append([tuple(row) for row in np.floor((projected + beta[t]) / width)])
        P = T @ P
    return steps


def histogram_kernel(graphs):
    """Gram matrix of graphs given as lists (over steps) of lists of hashable features."""

    def k(x, y):
        return sum(sparse_inner_product(a, b) for a, b in zip(x, y, strict=True))

    return np.array([[k(x, y) for y in graphs] for x in graphs], dtype=float)


def weisfeiler_lehman_strings(neighbours, labels, n_iter):
    """Colours of all levels as strings: own colour and the sorted colours around, spelled out."""
    levels = [[str(label) for label in labels]]
    for _ in range(n_iter):
        old = levels[-1]
        around = [",".join(sorted(f"{edge}:{old[u]}" for edge, u in neighbours[v])) for v in range(len(old))]
        levels.append([f"{own}({other})" for own, other in zip(old, around, strict=True)])
    return levels


# ---- room: kernels/strings
def kmers(x, k):
    return collections.Counter(x[i : i + k] for i in range(len(x) - k + 1))


def mismatch(x, k, mismatches, alphabet):
    features = collections.Counter()
    for a in itertools.product(alphabet, repeat=k):
        for i in range(len(x) - k + 1):
            window = x[i : i + k]
            close = sum(p != q for p, q in zip(window, a, strict=True)) <= mismatches
            features[a] += close and set(window) <= set(alphabet)
    return features


def reverse_complement(x):
    return str(Seq(x).reverse_complement())  # Biopython's


def both_strands(features):
    """Features of words over DNA, a word and its reverse complement as one."""
    merged = collections.Counter()
    for word, n in features.items():
        merged[min("".join(word), reverse_complement("".join(word)))] += n
    return merged


def gappy_pairs(x, k, gaps, merge):
    h, features = k // 2, collections.Counter()
    for i in range(len(x)):
        for gap in range(gaps + 1):
            u, v = x[i : i + h], x[i + h + gap : i + 2 * h + gap]
            if len(u) == len(v) == h:
                features[u + v if merge else (u + v, gap)] += 1
    return features


def gappy_windows(x, k, gaps, once=True):
    """k-subsequences of windows of k + gaps letters; each once per window, or once per set of places."""
    features = collections.Counter()
    for i in range(len(x) - k - gaps + 1):
        found = map("".join, itertools.combinations(x[i : i + k + gaps], k))
        features.update(set(found) if once else found)
    return features


def gapped_kmers(x, length, informative, both=False, center=None, half_life=50):
    """Letters at chosen positions of each window, else dots; on request both strands as one, a heavier middle."""
    features, n = collections.Counter(), len(x) - length + 1
    for i in range(n):
        distance = abs(i - fractions.Fraction(n - 1, 2))
        weight = 1 if center is None else min(center, int(center * 2 ** (-float(distance) / half_life) + 1))
        for chosen in itertools.combinations(range(length), informative):
            motif = "".join(x[i + j] if j in chosen else "." for j in range(length))
            strands = [motif, ".".join(map(reverse_complement, reversed(motif.split("."))))] if both else [motif]
            features[min(strands)] += weight
    return features


def gappy_spans(x, k, gaps):
    """k-subsequences of x whose places span at most k + gaps letters."""
    places = itertools.combinations(range(len(x)), k)
    return collections.Counter("".join(x[i] for i in p) for p in places if p[-1] - p[0] < k + gaps)


def weighted_degree(x, y, degree):
    total = 0
    for d in range(1, degree + 1):
        for i in range(min(len(x), len(y)) - d + 1):
            total += (degree - d + 1) * (x[i : i + d] == y[i : i + d])
    return total


# ---- room: learn, hd_classifier
def hd_perceptron(X, y, prototypes, orders, rate, margin=0.0, weights=None, mean=False):
    """Algorithm 1 of the NysHD supplement, corrected; return prototypes and the number of corrections in each epoch.

    With `margin`, a right class that leads by less is corrected, too; with `mean`, the mean of the prototypes after
    each visited sample is returned.
    """
    H = np.array(prototypes, dtype=float)
    mistakes, states = [0] * len(orders), []
    for epoch, order in enumerate(orders):
        for i in order:
            x, w = X[i].astype(float), 1.0 if weights is None else weights[i]
            q = np.zeros(len(H))
            for j, h in enumerate(H):
                norms = np.linalg.norm(h) * np.linalg.norm(x)
                q[j] = h @ x / norms if norms > 0 else 0.0
            p = int(np.argmax(q))
            if p == y[i]:
                others = np.where(np.arange(len(H)) == y[i], -np.inf, q)
                p = int(np.argmax(others))
                wrong = q[y[i]] - q[p] < margin
            else:
                wrong = True
            if wrong:
                mistakes[epoch] += 1
                H[y[i]] += rate * w * (1 - q[y[i]]) * x
                H[p] -= rate * w * (1 - q[p]) * x
            states.append(H.copy())
    return np.mean(states, axis=0) if mean else H, mistakes


# ---- room: codes, sign projection and bits
def integer_product_bits(rows, projection):
    """Signs of integer products in Python's integers, which never round."""
    bits = [[sum(int(a) * int(b) for a, b in zip(q, p, strict=True)) >= 0 for p in projection] for q in rows]
    return np.packbits(np.array(bits), axis=1)


def hadamard_matrix(p):
    return np.array([[(-1) ** (i & j).bit_count() for j in range(p)] for i in range(p)])


def hd3_bits(X, signs, n_bits):
    """sign(H D3 H D2 H D1 x) block by block, with the Hadamard matrix written out."""
    p = signs.shape[2]
    H = hadamard_matrix(p)
    padded = np.zeros((len(X), p))
    padded[:, : X.shape[1]] = X
    blocks = [((((padded * D1) @ H) * D2) @ H * D3) @ H for D1, D2, D3 in signs]
    return np.packbits(np.hstack(blocks)[:, :n_bits] >= 0, axis=1)


def hamming(a, b):
    return sum((int(x) ^ int(y)).bit_count() for x, y in zip(a, b, strict=True))


# ---- embeddings/pseudo_euclidean
def pseudo_euclidean(D, k):
    """Classical scaling as written: (coordinates Q |Lambda|^(1/2), eigenvalues), the k largest in size."""
    s = len(D)
    J = np.eye(s) - np.ones((s, s)) / s
    values, Q = np.linalg.eigh(-J @ D**2 @ J / 2)
    kept = np.argsort(-np.abs(values))[:k]
    return Q[:, kept] * np.sqrt(np.abs(values[kept])), values[kept]


def gower(D, to_landmarks, Z, values):
    """The vector z of a new object whose signed products with the landmarks' Z are those its distances say."""
    s = len(D)
    b = [
        -(to_landmarks[i] ** 2 - np.mean(to_landmarks**2) - np.mean(D[i] ** 2) + np.sum(D**2) / s**2) / 2
        for i in range(s)
    ]
    return np.linalg.lstsq(Z * np.sign(values), np.array(b), rcond=None)[0]


# ---- D2KE
def d2ke_feature(distance, x, omega, gamma, R):
    """One feature of one object; distance is a function of two objects."""
    return np.exp(-gamma * distance(x, omega)) / np.sqrt(R)


def d2ke_kernel(distance, x, y, objects, gamma):
    """Mean over the random objects of the product of what x and y have with each."""
    return np.mean([np.exp(-gamma * distance(x, w)) * np.exp(-gamma * distance(w, y)) for w in objects])


def edit_distance(x, y):
    """Levenshtein distance by its definition, letter by letter from the left."""
    if not x or not y:
        return len(x) + len(y)
    return min(edit_distance(x[1:], y) + 1, edit_distance(x, y[1:]) + 1, edit_distance(x[1:], y[1:]) + (x[0] != y[0]))


# ---- distances: dynamic time warping
def dtw(x, y, window=None, squared=False):
    """The recurrence cell by cell in Python floats; `window` in steps (int) or as a share of the longer (float)."""
    m, n = len(x), len(y)
    band = np.inf if window is None else window
    if isinstance(window, float):
        band = int(fractions.Fraction(str(window)) * max(m, n))
    band = max(band, abs(m - n))
    D = {(-1, -1): 0.0}
    for i in range(m):
        for j in range(n):
            if abs(i - j) <= band:
                square = sum((float(a) - float(b)) ** 2 for a, b in zip(x[i], y[j], strict=True))
                before = min(D.get(cell, np.inf) for cell in [(i - 1, j), (i, j - 1), (i - 1, j - 1)])
                D[i, j] = before + (square if squared else square**0.5)
    return D[m - 1, n - 1]


# ---- codes: numbers, series and vectors
def nearest_level(x, low, high, n_levels):
    """The level of one number; a range of one number has one level."""
    inside = min(max(x, low), high)
    return round((inside - low) / (high - low) * (n_levels - 1)) if high > low else 0


def record_sums(levels, vector, roles):
    """Sum of the level vectors of one row's features, each times its role if there are several."""
    return sum((role if len(roles) > 1 else 1) * vector[a] for a, role in zip(levels, roles, strict=True))


def sequence_sums(levels, vector, roles, n):
    """Sum over the channels of one series (T, p) of its n-grams, or (n None) of its values at their places."""
    T, p = levels.shape
    width = 1 if n is None else min(n, T)
    total = np.zeros(vector.shape[1], dtype=int)
    for c in range(p):
        for t in range(T - width + 1):
            shifts = [t] if n is None else range(width)
            term = np.prod([np.roll(vector[levels[t + j, c]], s) for j, s in enumerate(shifts)], axis=0)
            total += term * roles[c] if p > 1 else term
    return total


def sequence_kernel(x, y, n):
    """What inner products of one-channel sequence counts estimate, for series of numbers in [0, 1]."""
    k = 1 - np.abs(x[:, None] - y[None, :])
    if n is None:
        return np.trace(k)
    places = itertools.product(range(len(x) - n + 1), range(len(y) - n + 1))
    return sum(np.prod([k[s + j, t + j] for j in range(n)]) for s, t in places)


def triangle_mean(s, steps=200_001):
    """Mean of the triangle wave 1 - 2 |d| / pi (period 2 pi), and of its size, for d normal with deviation s."""
    z = np.linspace(-10, 10, steps)
    d = (s * z + np.pi) % (2 * np.pi) - np.pi
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    wave = 1 - 2 * np.abs(d) / np.pi
    return np.trapezoid(weight * wave, z), np.trapezoid(weight * np.abs(wave), z)


# ---- distances: point sets (lists of points; an empty set is the set of the origin)
def nearest(U, V, ground):
    """Distance of each point of U to the nearest point of V."""
    power = {"euclidean": lambda d: sum(c * c for c in d) ** 0.5, "sqeuclidean": lambda d: sum(c * c for c in d),
             "manhattan": lambda d: sum(map(abs, d))}[ground]  # fmt: skip
    return [min(power([float(a) - float(b) for a, b in zip(u, v, strict=True)]) for v in V) for u in U]


def set_distance(name, U, V, ground="euclidean"):
    """Modified Hausdorff, Hausdorff or Chamfer distance of two sets."""
    p = len((*U, *V, [])[0])
    U, V = (W if len(W) else [[0.0] * p] for W in (U, V))
    there, back = nearest(U, V, ground), nearest(V, U, ground)
    if name == "Hausdorff":
        return max(there + back)
    means = [sum(side) / len(side) for side in (there, back)]
    return max(means) if name == "ModifiedHausdorff" else sum(means)


def wasserstein(x, y, p):
    """p-th power of the distance of two sets of numbers, with every number repeated until both are equally many."""
    x, y = np.repeat(np.sort(x), len(y)), np.repeat(np.sort(y), len(x))
    return np.mean(np.abs(x - y) ** p)


# ---- distances: edits
def damerau_levenshtein(x, y):
    """Least number of insertions, deletions, replacements and exchanges of neighbours: breadth first."""
    letters, seen, ring, steps = set(x + y), {x}, {x}, 0
    while y not in seen:
        ring = {t for s in ring for t in edited(s, letters) if len(t) <= max(len(x), len(y)) + 1} - seen
        seen, steps = seen | ring, steps + 1
    return steps


def edited(s, letters):
    """All strings one edit away from s."""
    for i in range(len(s) + 1):
        yield s[:i] + s[i + 1 :]
        yield s[:i] + s[i : i + 2][::-1] + s[i + 2 :]
        for letter in letters:
            yield s[:i] + letter + s[i:]
            yield s[:i] + letter + s[i + 1 :]


def hamming_padded(x, y):
    """Number of places where two strings differ; the shorter one is padded."""
    return sum(a != b for a, b in itertools.zip_longest(x, y))


def jaro_winkler(x, y, weight=0.1):
    """One minus the similarity, by Winkler's definition."""
    if not x or not y:
        return float(x != y)
    reach, free, pairs = max(max(len(x), len(y)) // 2 - 1, 0), set(range(len(y))), []
    for i, letter in enumerate(x):
        j = next((j for j in sorted(free) if abs(i - j) <= reach and y[j] == letter), None)
        if j is not None:
            free.remove(j)
            pairs.append((i, j))
    m = len(pairs)
    exchanged = sum(x[i] != y[j] for (i, _), j in zip(pairs, sorted(j for _, j in pairs), strict=True)) // 2
    similarity = (m / len(x) + m / len(y) + (m - exchanged) / m) / 3 if m else 0.0
    prefix = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(x[:4], y[:4], strict=False))))
    return 1 - similarity - (prefix * weight * (1 - similarity) if similarity > 0.7 else 0.0)


# ---- room: kernels/minmax
def min_max(f, g):
    """(sum of minima, sum of maxima) of two dictionaries from features to numbers >= 0."""
    both = {*f, *g}
    low = math.fsum(min(f.get(i, 0), g.get(i, 0)) for i in both)
    return low, math.fsum(max(f.get(i, 0), g.get(i, 0)) for i in both)


def optimal_assignment(G, H, n_iter):
    """Largest sum, over matchings of nodes, of the number of rounds in which matched nodes have one colour."""
    a, b = (np.array(weisfeiler_lehman_strings(x.neighbours(False), x.labels, n_iter)) for x in (G, H))
    agreements = (a[:, :, None] == b[:, None, :]).sum(axis=0)
    rows, columns = scipy.optimize.linear_sum_assignment(agreements, maximize=True)
    return agreements[rows, columns].sum()


def transported(x, y, p, metric="euclidean"):
    """The Wasserstein distance of two sets of points, as a linear programme over all plans."""
    m, n = len(x), len(y)
    costs = scipy.spatial.distance.cdist(x, y, metric) ** p
    margins = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    masses = np.repeat([1 / m, 1 / n], [m, n])
    return scipy.optimize.linprog(costs.ravel(), A_eq=margins, b_eq=masses).fun ** (1 / p)


# ---- mean maps
def mean_map(U, V, gamma):
    """The mean of exp(-gamma |u - v|^2) over all pairs of points; 0 if a set is empty."""
    values = [np.exp(-gamma * np.sum((u - v) ** 2)) for u in U for v in V]
    return np.mean(values) if values else 0.0


def averaged(neighbours, values, n_iter):
    """a <- (a + mean of neighbours) / 2, n_iter times, all steps side by side; neighbours[v] lists nodes."""
    steps = [np.array(values, float)]
    for _ in range(n_iter):
        old = steps[-1]
        mean = [old[list(near)].mean(axis=0) if len(near) else old[v] for v, near in enumerate(neighbours)]
        steps.append((old + np.array(mean).reshape(old.shape)) / 2)
    return np.hstack(steps)


def paths(neighbours, length):
    """All walks of `length` edges that never go straight back, as lists of nodes."""
    found = [[v] for v in range(len(neighbours))]
    for _ in range(length):
        found = [[*path, u] for path in found for u in neighbours[path[-1]] if path[-2:-1] != [u]]
    return found


# ---- room: codes/minhash
def lowbias32(x):
    """Wellons' 32-bit hash in Python integers."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) % 2**32
    x = ((x ^ (x >> 15)) * 0x846CA68B) % 2**32
    return x ^ (x >> 16)


def min_hashes(counts, n, seed, n_rounds):
    """Hashes of n samplers of the elements (id, 0), ..., (id, count - 1): the minimum of the first round with any."""
    golden = 0x9E3779B97F4A7C15
    seeds = [splitmix((seed + k * golden) % 2**64) for k in range(n_rounds + n + 1)]
    words = [(splitmix(i ^ seeds[0]), t) for i, c in counts.items() for t in range(c)]
    elements = [splitmix((word + t * golden) % 2**64) for word, t in words]
    found = {}
    for r in range(n_rounds):
        numbers = collections.defaultdict(list)
        for element in elements:
            x = splitmix(((element ^ seeds[1 + r]) - golden) % 2**64)
            numbers[(x >> 32) * n >> 32].append(x % 2**32)
        found = {**{h: min(some) for h, some in numbers.items()}, **found}
    for h in set(range(n)) - set(found):
        own = seeds[1 + n_rounds + h] % 2**32
        found[h] = min((lowbias32(element >> 32 ^ own) for element in elements), default=2**32 - 1)
    return [found[h] for h in range(n)]


def nearest_others(distance, objects, k):
    """Return distances and positions of the k nearest other objects of each, by (distance, position), both (n, k)."""
    rows = [sorted((distance(x, y), j) for j, y in enumerate(objects) if j != i)[:k] for i, x in enumerate(objects)]
    return np.array([[d for d, _ in row] for row in rows]), np.array([[j for _, j in row] for row in rows])


def neighbourhoods_kept(true, found, k):
    """Return 1 - 2 / (n k (2n - 3k - 1)) times how far the k nearest by `found` lie beyond rank k by `true`.

    The rank of an object is 1 plus the number of others that are strictly nearer.
    """
    n, beyond = len(true), 0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for j in sorted(others, key=lambda j: (found[i][j], j))[:k]:
            rank = 1 + sum(true[i][other] < true[i][j] for other in others)
            beyond += max(0, rank - k)
    return 1 - 2 * beyond / (n * k * (2 * n - 3 * k - 1))


def place_among(distances, places, k):
    """Return the mean place of the k nearest with weights 1 / d^2; of those at distance 0 if there are any."""
    near = sorted(range(len(distances)), key=lambda j: (distances[j], j))[:k]
    same = [j for j in near if distances[j] == 0]
    weights = dict.fromkeys(same, 1.0) if same else {j: distances[j] ** -2 for j in near}
    return sum(weight * np.asarray(places[j]) for j, weight in weights.items()) / sum(weights.values())
