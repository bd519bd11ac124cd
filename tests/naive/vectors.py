"""Slow, obvious twins of the codes of `VectorIndex`: dense matrices, levels one by one, numpy's float64."""

import numpy as np
from scipy.linalg import block_diag, hadamard


def rotation(signs):
    """Return the orthogonal matrix that `VectorIndex` applies: signs, a Hadamard matrix, sums and differences."""
    D = signs.shape[1]
    p = 2 ** int(np.log2(D))
    H, same = hadamard(p) / np.sqrt(p), np.eye(D - p)
    half = np.eye(D // 2)
    mixed = np.block([[half, half], [half, -half]]) / np.sqrt(2) if p < D else np.eye(D)
    R = np.eye(D)
    for turn, flips in enumerate(signs):
        R = mixed @ (block_diag(same, H) if turn % 2 else block_diag(H, same)) @ np.diag(flips) @ R
    return R


def padded(y, D):
    return np.concatenate([y, np.zeros(D - len(y))])


def levels(row, bits, D):
    """Return the odd integers w, the norm and the factor in a row of the index."""
    code, numbers = row[:-8], np.frombuffer(row[-8:].tobytes(), np.float32)
    w = np.zeros(D, int)
    for byte in range(len(code)):
        for share in range(8 // bits):
            stored = (int(code[byte]) >> (bits * share)) % 2**bits
            w[byte + share * len(code)] = 2 * stored - (2**bits - 1)
    return w, *numbers.astype(float)


def best_cosine(o, bits):
    """Return the largest cosine of `o` and a vector of odd integers below 2**bits: all scalings of `o` are tried."""
    top = 2 ** (bits - 1)
    scales = sorted({j / abs(x) for x in o if x for j in range(1, top)} | {0.0})
    found = []
    for t in scales:
        w = np.sign(o) * (2 * np.minimum(np.floor(np.abs(o) * t + 1e-9), top - 1) + 1)
        found.append(w @ o / np.linalg.norm(w) / np.linalg.norm(o))
    return max(found)


def squared_distance(w, norm, factor, y):
    """Return the estimate of |x - q|^2 for the row of x and the rotated, centred query y."""
    return norm**2 + y @ y - 2 * factor * (w @ y)
