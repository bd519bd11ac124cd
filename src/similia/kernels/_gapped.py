"""Loops of gapped k-mers: ids, explicit features, and sums over pairs of windows.

A mask is a set of positions in a window. The letters c_j of a window at the positions j of a mask become the number
sum_j (c_j + 1) r_j modulo 2**64, with a random odd r_j for each position. Each mask differs from the one before it by
one position, so the number of a window changes by two products from mask to mask. A window is identified by the
position of its first letter in the concatenated strings. A window that crosses the end of its string has weight 0.
`complements` holds the complement of each letter, or is empty for one strand.
"""

from __future__ import annotations

import numpy as np

from similia.core.hashing import GOLDEN, mix
from similia.core.jit import njit


@njit()
def _start(letters, factors, first, informative, numbers):  # type: ignore[no-untyped-def]
    """Fill `numbers` with the numbers of the windows under the mask of `informative` positions from `first` on."""
    numbers[:] = np.uint64(0)
    for j in range(first, first + informative):
        factor = factors[j]
        for w in range(len(numbers)):
            numbers[w] += letters[w + j] * factor


@njit()
def _swap(letters, factors, leaving, coming, numbers):  # type: ignore[no-untyped-def]
    """Change the numbers of all windows to the mask that has the position `coming` in place of `leaving`."""
    new, old = factors[coming], factors[leaving]
    for w in range(len(numbers)):
        numbers[w] += letters[w + coming] * new - letters[w + leaving] * old


@njit()
def _next_mask(m, letters, complements, factors, swaps, informative, mirrored, numbers):  # type: ignore[no-untyped-def]
    """Change `numbers`, of shape (strands, windows), from mask m - 1 to mask m.

    The numbers of the second strand are those of the reverse complements of the features of this mask. If `mirrored`,
    they are those of the reverse complements of the windows under this mask.
    """
    last = len(factors) - 1
    if m == 0:
        _start(letters, factors, 0, informative, numbers[0])
        if len(numbers) > 1:
            _start(complements, factors[::-1], last + 1 - informative if mirrored else 0, informative, numbers[1])
        return
    leaving, coming = swaps[m]
    _swap(letters, factors, leaving, coming, numbers[0])
    if len(numbers) > 1:
        if mirrored:
            leaving, coming = last - leaving, last - coming
        _swap(complements, factors[::-1], leaving, coming, numbers[1])


@njit()
def gapped_ids(letters, complements, offsets, factors, swaps, informative, id_offsets, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of all strings: string by string, then mask by mask, then window by window."""
    for i in range(len(offsets) - 1):
        here = ids[id_offsets[i] : id_offsets[i + 1]]
        _ids_of_string(letters, complements, offsets[i], offsets[i + 1], factors, swaps, informative, here)


@njit()
def _ids_of_string(letters, complements, start, stop, factors, swaps, informative, ids):  # type: ignore[no-untyped-def]
    """Fill `ids` with the ids of one string, whose letters are ``letters[start:stop]``."""
    n, both = len(ids) // len(swaps), len(complements) > 0
    letters = letters[start:stop]
    complements = complements[start:stop] if both else complements
    numbers = np.empty((2 if both else 1, n), np.uint64)
    for m in range(len(swaps)):
        _next_mask(m, letters, complements, factors, swaps, informative, False, numbers)
        part, here, there = ids[m * n : m * n + n], numbers[0], numbers[-1]
        for w in range(n):
            part[w] = mix(min(here[w], there[w]))


# ---- explicit features
@njit()
def feature_rows(x, factors, swaps, informative, n_features, start, stop, first, columns, data, lengths):  # type: ignore[no-untyped-def]
    """Write the features of strings `start` to `stop` to `columns` and `data`, one after the other from `first` on.

    Row i has ``lengths[i]`` entries: its columns, ascending, and the sums of the weights of their windows.
    """
    letters, complements, offsets, weights = x
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i] - len(factors) + 1)
    keys, spare = np.empty(longest * len(swaps), np.uint64), np.empty(longest * len(swaps), np.uint64)
    is_power, n_bits, last = n_features & (n_features - 1) == 0, 0, np.uint64(n_features - 1)
    while 1 << n_bits < n_features:
        n_bits += 1
    for i in range(start, stop):
        n = max(0, offsets[i + 1] - offsets[i] - len(factors) + 1)
        ids = keys[: n * len(swaps)]
        if n > 0:
            _ids_of_string(letters, complements, offsets[i], offsets[i + 1], factors, swaps, informative, ids)
        for m in range(len(swaps)):
            for w in range(n):
                number = ids[m * n + w]
                column = number & last if is_power else number % np.uint64(n_features)
                ids[m * n + w] = column << np.uint64(8) | np.uint64(weights[offsets[i] + w])
        lengths[i] = _merge(_radix_sort(keys, spare, len(ids), n_bits), len(ids), columns[first:], data[first:])
        first += lengths[i]


@njit()
def move(columns, data, source, target, n):  # type: ignore[no-untyped-def]
    """Move n entries from `source` back to `target`; the two may overlap."""
    for k in range(n):
        columns[target + k], data[target + k] = columns[source + k], data[source + k]


@njit()
def _radix_sort(keys, spare, n, n_bits):  # type: ignore[no-untyped-def]
    """Return the first n keys sorted by the `n_bits` bits above the lowest 8, in `keys` or in `spare`."""
    step = np.uint64(10 if n_bits <= 20 else 11)
    ends = np.empty(2048, np.int64)
    mask = np.uint64((1 << step) - 1)
    for low in range(0, n_bits, step):
        shift = np.uint64(low + 8)
        ends[:] = 0
        for k in range(n):
            ends[keys[k] >> shift & mask] += 1
        total = 0
        for b in range(len(ends)):
            total, ends[b] = total + ends[b], total
        for k in range(n):
            b = keys[k] >> shift & mask
            spare[ends[b]] = keys[k]
            ends[b] += 1
        keys, spare = spare, keys
    return keys


@njit()
def _merge(keys, n, columns, data):  # type: ignore[no-untyped-def]
    """Write the columns of n sorted keys, each once, and the sums of their weights; return the number of columns."""
    end = -1
    for k in range(n):
        column, weight = np.int64(keys[k] >> np.uint64(8)), np.float64(keys[k] & np.uint64(255))
        if end < 0 or columns[end] != column:
            end += 1
            columns[end] = column
            data[end] = weight
        else:
            data[end] += weight
    return end + 1


# ---- sums over pairs of windows, mask by mask
@njit()
def products_by_mask(x, y, factors, swaps, strands, informative, start, stop, same, out):  # type: ignore[no-untyped-def]
    """Add to rows `start` to `stop` of `out` the products of the feature counts of strings x and strings y.

    x and y are tuples (letters, complements, offsets, weights). For each mask, the windows of y are put into buckets by
    their number, and each window of x looks up its bucket. ``strands[m]`` is the number of keys of a window under mask
    m. With two strands, a mask and its mirror image have the same features, so one of the two masks has two keys, one
    for each strand, and the other has none. A mask that is its own mirror image has one key, the smaller of the two. If
    `same`, x is y, and only columns j >= i of row i are filled.
    """
    letters, complements, offsets, weights = x
    both = len(complements) > 0
    begin, end = offsets[start], offsets[stop]
    letters, weights, offsets = letters[begin:end], weights[begin:end], offsets[start : stop + 1] - begin
    complements = complements[begin:end] if both else complements
    n_strands, n_x, n_y = (
        2 if both else 1,
        max(0, len(letters) - len(factors) + 1),
        max(0, len(y[0]) - len(factors) + 1),
    )
    numbers, y_numbers = np.empty((n_strands, n_x), np.uint64), np.empty((n_strands, n_y), np.uint64)
    most = n_strands * n_y
    n_slots, shift = 2, np.uint64(63)
    while n_slots < 2 * most:
        n_slots, shift = 2 * n_slots, shift - np.uint64(1)
    table, known, bucket_of = (
        np.empty(n_slots, np.int32),
        np.empty(most, np.uint64),
        np.empty((n_strands, n_y), np.int32),
    )
    starts, ends, rows = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int32)
    amounts, sums, met = np.empty(most), np.zeros(most), np.empty(most, np.int32)
    for m in range(len(swaps)):
        _next_mask(m, letters, complements, factors, swaps, informative, True, numbers)
        _next_mask(m, y[0], y[1], factors, swaps, informative, True, y_numbers)
        if strands[m] == 0:
            continue
        keys, y_keys = numbers, y_numbers
        if both and strands[m] == 1:
            keys, y_keys = _smaller(numbers), _smaller(y_numbers)
        _put_into_buckets(y_keys, y[3], y[2], table, shift, known, bucket_of, starts, ends, rows, amounts)
        for i in range(len(offsets) - 1):
            n_met = 0
            for s in range(len(keys)):
                for w in range(offsets[i], min(offsets[i + 1], n_x)):
                    b = table[_slot(keys[s, w], known, table, shift)] if weights[w] > 0 else -1
                    if b >= 0:
                        if sums[b] == 0:
                            met[n_met] = b
                            n_met += 1
                        sums[b] += weights[w]
            row = out[start + i]
            for b in met[:n_met]:
                amount, sums[b] = sums[b], 0.0
                if same:
                    while starts[b] < ends[b] and rows[starts[b]] < start + i:
                        starts[b] += 1
                for p in range(starts[b], ends[b]):
                    row[rows[p]] += amount * amounts[p]


@njit()
def _smaller(numbers):  # type: ignore[no-untyped-def]
    return np.minimum(numbers[:1], numbers[1:])


@njit()
def _slot(key, known, table, shift):  # type: ignore[no-untyped-def]
    """Return the slot of `table` that holds the bucket of `key`, or else the free slot where it belongs."""
    slot = np.int64((key * GOLDEN) >> shift)
    while table[slot] >= 0 and known[table[slot]] != key:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@njit()
def _put_into_buckets(keys, weights, offsets, table, shift, known, bucket_of, starts, ends, rows, amounts):  # type: ignore[no-untyped-def]
    """Sort windows by key: bucket b has entries ``starts[b]`` to ``ends[b]``, one for each string that has its key.

    An entry is the row of the string and the sum of the weights of its windows; rows ascend in a bucket.
    """
    table[:] = -1
    n_buckets = 0
    for i in range(len(offsets) - 1):
        for s in range(len(keys)):
            for w in range(offsets[i], min(offsets[i + 1], keys.shape[1])):
                if weights[w] > 0:
                    slot = _slot(keys[s, w], known, table, shift)
                    b = table[slot]
                    if b < 0:
                        b = table[slot] = n_buckets
                        known[b], starts[b], ends[b] = keys[s, w], 0, -1
                        n_buckets += 1
                    if ends[b] != i:
                        ends[b] = i
                        starts[b] += 1
                    bucket_of[s, w] = b
    total = 0
    for b in range(n_buckets):
        size = starts[b]
        starts[b] = ends[b] = total
        total += size
    for i in range(len(offsets) - 1):
        for s in range(len(keys)):
            for w in range(offsets[i], min(offsets[i + 1], keys.shape[1])):
                if weights[w] > 0:
                    b = bucket_of[s, w]
                    if ends[b] > starts[b] and rows[ends[b] - 1] == i:
                        amounts[ends[b] - 1] += weights[w]
                    else:
                        rows[ends[b]], amounts[ends[b]] = i, weights[w]
                        ends[b] += 1


@njit()
def mirror(K):  # type: ignore[no-untyped-def]
    """Copy the entries above the diagonal of K to those below."""
    for i in range(len(K)):
        for j in range(i):
            K[i, j] = K[j, i]


# ---- sums over pairs of windows, pair by pair
@njit()
def products_by_pair(x, y, pairs, rows, columns, worth, palindromes, length, out):  # type: ignore[no-untyped-def]
    """Fill ``out[p]``, for p in `pairs`, with the kernel of strings ``rows[p]`` of x and ``columns[p]`` of y.

    Two windows with m mismatches add ``worth[m]`` = C(length - m, informative). With two strands, a palindrome (a
    feature that is its own reverse complement) would count twice, so `_palindromic` is subtracted.
    """
    both = len(y[1]) > 0
    for p in pairs:
        i, j = rows[p], columns[p]
        left, right = x[2][i], y[2][j]
        a, u = x[0][left : x[2][i + 1]], x[3][left : x[2][i + 1]]
        b, v = y[0][right : y[2][j + 1]], y[3][right : y[2][j + 1]]
        total = _windows(a, b, u, v[: max(0, len(b) - length + 1)], worth, length)
        if both:
            c = y[1][right : y[2][j + 1]]
            total += _windows(a, c[::-1], u, v[: max(0, len(b) - length + 1)][::-1], worth, length)
            total -= _palindromic(a, b, c, u, v, palindromes, length)
        out[p] = total


@njit()
def _windows(a, b, u, v, worth, length):  # type: ignore[no-untyped-def]
    """Return the sum over windows i of a and j of b of ``u[i] * v[j] * worth[mismatches]``, along the diagonals."""
    n, m, total = len(a) - length + 1, len(b) - length + 1, 0.0
    if n <= 0 or m <= 0:  # the diagonals below would leave the strings
        return total
    for shift in range(1 - n, m):
        i = max(0, -shift)
        mismatches = 0
        for q in range(length - 1):
            mismatches += a[i + q] != b[i + shift + q]
        for w in range(i, min(n, m - shift)):
            mismatches += a[w + length - 1] != b[w + shift + length - 1]
            total += u[w] * v[w + shift] * worth[mismatches]
            mismatches -= a[w] != b[w + shift]
    return total


@njit()
def _palindromic(a, b, c, u, v, palindromes, length):  # type: ignore[no-untyped-def]
    """Return the weighted number of palindromes that windows of a and b share; c holds the complements of b."""
    total = 0.0
    least = 0  # number of mirrored pairs of positions in such a feature
    while least < palindromes.shape[1] and palindromes[:, least].max() == 0:
        least += 1
    for j in range(len(b) - length + 1):
        own = 0
        for p in range(length // 2):
            own += b[j + p] == c[j + length - 1 - p]
        if own < least:
            continue
        for i in range(len(a) - length + 1):
            n_pairs, middle = 0, 0
            for p in range(length // 2):
                q = length - 1 - p
                n_pairs += a[i + p] == b[j + p] and a[i + q] == b[j + q] and b[j + p] == c[j + q]
            if length % 2:
                p = length // 2
                middle = np.int64(a[i + p] == b[j + p] and b[j + p] == c[j + p])
            total += u[i] * v[j] * palindromes[middle, n_pairs]
    return total
