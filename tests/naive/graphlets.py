"""Slow, obvious twins of graphlets, their maps, and what is measured with them."""

from __future__ import annotations

import collections
import itertools

import numpy as np


# ---- graphlet maps
def graphlet_means(codes, size, phi):
    """Mean of phi over the graphlets of each row, sample by sample; phi takes one adjacency matrix."""
    return np.array([np.mean([phi(adjacency_of_code(code, size)) for code in row], axis=0) for row in codes])


def adjacency_of_code(code, size):
    A = np.zeros((size, size), dtype=int)
    for j in range(size):
        for i in range(j):
            A[i, j] = A[j, i] = int(code) >> (j * (j - 1) // 2 + i) & 1
    return A


def upper_bits(A):
    """Bits (0, 1), (0, 2), (1, 2), (0, 3), ... of an adjacency matrix."""
    return np.array([A[i, j] for j in range(len(A)) for i in range(j)])


def optical_mean_kernel(codes, others):
    """Mean over all pairs of graphlets of |a|^2 |b|^2 + (a . b)^2, a and b lists of bit vectors."""
    return np.mean([[(a @ a) * (b @ b) + (a @ b) ** 2 for b in others] for a in codes])


# ---- optical features of vectors, maximum mean discrepancy
def optical_features(X, W, b):
    """|w_j . x + b_j|^2 / sqrt(m), one number at a time; W has a row for each feature."""
    return np.array([[abs(sum(w * x) + c) ** 2 / np.sqrt(len(W)) for w, c in zip(W, b, strict=True)] for x in X])


def sign_hadamard_matrix(turns):
    """Rows of H D3 H D2 H D1 of one block, D diagonals of powers of i."""
    H = np.ones((1, 1))
    while len(H) < turns.shape[1]:
        H = np.block([[H, H], [H, -H]])
    product = np.eye(len(H))
    for powers in turns:
        product = H @ np.diag(1j ** powers.astype(int)) @ product
    return product


def graphlet_kernel(name, a, b, bandwidth):
    """Kernel of two adjacency matrices of graphlets."""
    if name == "match_iso":
        orders = itertools.permutations(range(len(a)))
        return float(any((a[np.ix_(order, order)] == b).all() for order in orders))
    x, y = upper_bits(a), upper_bits(b)
    if name == "optical":
        return float((x @ x) * (y @ y) + (x @ y) ** 2)
    h = np.sum(x != y)
    return float(h == 0) if name == "match" else np.exp(-h / (2 * bandwidth**2))


def mmd2(k, X, Y, unbiased):
    """Squared MMD of two lists under a function k, by all pairs."""

    def mean(A):
        pairs = [k(A[i], A[j]) for i in range(len(A)) for j in range(len(A)) if i != j or not unbiased]
        return sum(pairs) / len(pairs)

    return mean(X) + mean(Y) - 2 * np.mean([[k(x, y) for y in Y] for x in X])


# ---- objects: graphlets (A is an adjacency matrix of 0 and 1, symmetric, without diagonal)
def graphlet_code(A, nodes):
    """Pair (i, j), i < j, of the nodes is bit j (j - 1) / 2 + i."""
    return sum(int(A[nodes[i], nodes[j]]) << (j * (j - 1) // 2 + i) for j in range(len(nodes)) for i in range(j))


def uniform_law(A, size):
    """Probability of each code when all ordered choices of nodes are equally likely."""
    codes = [graphlet_code(A, nodes) for nodes in itertools.permutations(range(len(A)), size)]
    return {code: times / len(codes) for code, times in collections.Counter(codes).items()}


def walk_law(A, size, flyback):
    """Probability of each code under random walks: a Markov chain on (visited, start, node), solved."""
    n = len(A)
    reach = np.linalg.matrix_power(np.eye(n, dtype=int) + A, n) > 0
    starts = np.flatnonzero(reach.sum(axis=1) >= size)
    starts = starts if len(starts) else range(n)

    def moves(visited, start, node):
        if set(np.flatnonzero(reach[start])) <= set(visited):
            free = [v for v in range(n) if v not in visited]
            return [((*visited, v), v, v) for v in free], [1 / len(free)] * len(free)
        around = np.flatnonzero(A[node])
        onward = [(visited if v in visited else (*visited, v), start, v) for v in around]
        return [(visited, start, start), *onward], [flyback] + [(1 - flyback) / len(around)] * len(around)

    number = {((v,), v, v): i for i, v in enumerate(starts)}
    steps = []
    for state in (queue := [*number]):  # grows while it is read
        for target, chance in zip(*moves(*state), strict=True) if len(state[0]) < size else ():
            if target not in number:
                number[target] = len(number)
                queue.append(target)
            steps.append((number[state], number[target], chance))
    P = np.zeros((len(number), len(number)))
    for here, there, chance in steps:
        P[here, there] += chance
    visits = np.linalg.solve(np.eye(len(P)) - P.T, (np.arange(len(P)) < len(starts)) / len(starts))
    law = collections.defaultdict(float)
    for (visited, _, _), i in number.items():
        if len(visited) == size:
            law[graphlet_code(A, visited)] += visits[i]
    return dict(law)


def second_moments(bits):
    """Mean of a_p a_q over samples (rows of 0 and 1), for p <= q."""
    M = bits.T.astype(int) @ bits.astype(int)
    return M[np.triu_indices(bits.shape[1])] / len(bits)


def isomorphism_classes(size):
    """Smallest code of each isomorphism class, by trying all orders of the nodes."""
    pairs = [(i, j) for j in range(size) for i in range(j)]
    smallest = set()
    for code in range(2 ** len(pairs)):
        A = np.zeros((size, size), dtype=int)
        for bit, (i, j) in enumerate(pairs):
            A[i, j] = A[j, i] = code >> bit & 1
        smallest.add(min(graphlet_code(A, order) for order in itertools.permutations(range(size))))
    return sorted(smallest)
