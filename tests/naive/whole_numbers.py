"""The stages of a quantised model with Python's integers, which have no width: one object, one number at a time."""

from __future__ import annotations


def coordinates(A, c, shifts, guard, n_bits, k):
    """Return z = A k + c in one scale, shifted to `n_bits` bits; A is a list of rows."""
    sums = [sum(a * b for a, b in zip(row, k, strict=True)) + offset for row, offset in zip(A, c, strict=True)]
    assert all(abs(total) < 2**63 for total in sums)
    assert all(abs(total * 2**guard) < 2**63 for total in sums)
    z = [total * 2**guard // 2**shift for total, shift in zip(sums, shifts, strict=True)]
    length = max(abs(value) for value in z).bit_length()
    if length == 0:
        return z
    return [value // 2 ** (length - n_bits) if length > n_bits else value * 2 ** (n_bits - length) for value in z]


def dense_signs(P, z):
    """Return the bits of P z >= 0; no sum, partial or whole, may leave 32 bits."""
    bits = []
    for row in P:
        total = 0
        for p, value in zip(row, z, strict=True):
            total += p * value
            assert abs(total) < 2**31
        bits.append(int(total >= 0))
    return bits


def hadamard_signs(flips, shift, n_bits, z):
    """Return the bits of each block: three times, flip signs and multiply by the Hadamard matrix, entry by entry."""
    bits = []
    for block in flips:
        p = len(block[0])
        work = z + [0] * (p - len(z))
        for product in range(3):
            work = [-value if flip else value for value, flip in zip(work, block[product], strict=True)]
            work = [sum(work[j] * (-1) ** (i & j).bit_count() for j in range(p)) for i in range(p)]
            assert all(abs(value) < 2**31 for value in work)
            if product < 2:
                work = [value // 2**shift for value in work]
        bits += [int(value >= 0) for value in work]
    return bits[:n_bits]


def label(R, m, c, bits):
    """Return (scores, first class with the largest)."""
    x = [2 * bit - 1 for bit in bits]
    scores = [mj * sum(r * v for r, v in zip(row, x, strict=True)) + cj for row, mj, cj in zip(R, m, c, strict=True)]
    assert all(abs(score) < 2**63 for score in scores)
    return scores, scores.index(max(scores))


def on_curve(values, shift, d):
    """Return the table's value at d, on a parabola through three entries; all divisions round down."""
    place = d // 2**shift
    if place >= len(values) - 2:
        return values[-2]
    first, second, third = values[place : place + 3]
    part = d - place * 2**shift
    share = part * 4096 // 2**shift
    line = first + (second - first) * part // 2**shift
    return line - (third - 2 * second + first) * share * (4096 - share) // 2**25
