"""Walsh-Hadamard transforms of many rows at once, real or complex, without a matrix and with equal bits for any block.

Rows are interleaved as *lanes*: ``work[i * lanes : (i + 1) * lanes]`` holds entry i of each of `lanes` rows, so a
butterfly is a vector operation without shuffles. A radix-4 pass fuses two radix-2 stages in registers. The compiler
checks at most four slices for overlap, so a pass of radix 8 would stay scalar and run 12 times slower. Each lane adds
in the order of the radix-2 transform. A complex row is transformed as its real and imaginary parts. Cost: p log2 p
additions for a row of p numbers.
"""

from __future__ import annotations

from similia.core.jit import njit

_IN_CACHE = 8192  # numbers: 32 KiB of float32


def padded(n_features: int) -> int:
    """Return the power of two to which `n_features` numbers are padded."""
    return 1 << (n_features - 1).bit_length()


@njit()
def transform(work, lanes):  # type: ignore[no-untyped-def]
    """Apply the Walsh-Hadamard transform (natural order, not normalised) to each row ``work[r::lanes]``, in place."""
    span = len(work)
    while span > _IN_CACHE and span >= 4 * lanes:  # full passes until pieces fit into the cache
        span //= 4
        _radix4(work, span)
    for begin in range(0, len(work), span):
        _transform_piece(work[begin : begin + span], lanes)


@njit()
def _transform_piece(work, lanes):  # type: ignore[no-untyped-def]
    span = len(work)
    while span >= 4 * lanes:
        span //= 4
        _radix4(work, span)
    if span == 2 * lanes:
        _radix2(work, lanes)


@njit()
def _radix4(work, span):  # type: ignore[no-untyped-def]
    """Run two butterfly stages at once, on quadruples of blocks of `span` numbers."""
    for begin in range(0, len(work), 4 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        c = work[begin + 2 * span : begin + 3 * span]
        d = work[begin + 3 * span : begin + 4 * span]
        for i in range(span):
            ac, bd, a_c, b_d = a[i] + c[i], b[i] + d[i], a[i] - c[i], b[i] - d[i]
            a[i], b[i], c[i], d[i] = ac + bd, ac - bd, a_c + b_d, a_c - b_d


@njit()
def _radix2(work, span):  # type: ignore[no-untyped-def]
    """Run one butterfly stage, on pairs of blocks of `span` numbers."""
    for begin in range(0, len(work), 2 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        for i in range(span):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]
