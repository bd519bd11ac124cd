"""Slow, obvious twins of the library's fast paths: one short function per definition."""

from __future__ import annotations

import collections
import itertools

import numpy as np


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
    """C @ W, each sum from the first term to the last, in Python floats."""
    out = np.zeros((len(C), W.shape[1]))
    for i, j in itertools.product(*map(range, out.shape)):
        total = 0.0
        for k in range(len(W)):
            total = total + float(C[i, k]) * float(W[k, j])
        out[i, j] = total
    return out


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
def hd_perceptron(X, y, prototypes, orders, rate):
    """Algorithm 1 of the NysHD supplement, corrected; return prototypes and the mistakes of each epoch."""
    H = np.array(prototypes, dtype=float)
    mistakes = [0] * len(orders)
    for epoch, order in enumerate(orders):
        for i in order:
            x = X[i].astype(float)
            q = np.zeros(len(H))
            for j, h in enumerate(H):
                norms = np.linalg.norm(h) * np.linalg.norm(x)
                q[j] = h @ x / norms if norms > 0 else 0.0
            p = int(np.argmax(q))
            if p != y[i]:
                mistakes[epoch] += 1
                H[y[i]] += rate * (1 - q[y[i]]) * x
                H[p] -= rate * (1 - q[p]) * x
    return H, mistakes


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
