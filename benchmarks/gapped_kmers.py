"""Gapped k-mers against a plain loop over all choices of positions.

The plain loop is compiled by numba too. For each string, window and choice of positions it reads the letters as a
number, then sorts the columns of the string and counts equal ones. The two number features in other ways, so that their
columns differ, but not the inner products. Memory is the largest resident memory of a process of its own that only
makes the features, less what it had before::

    python benchmarks/gapped_kmers.py
"""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import numba
import numpy as np
import scipy.sparse as sp
from measure import Row, in_turns

from similia.core.config import limited_to
from similia.kernels import GappedKmers

LENGTH, INFORMATIVE, N_FEATURES = 10, 6, 2**20
MEMORY = """
import numpy as np
from similia.kernels import GappedKmers
kernel, X = GappedKmers(10, 6), ["".join(x) for x in np.random.default_rng(0).choice(list("ACGT"), (4000, 100))]
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))  # in KiB
kernel.features(X[:20])
before = peak()
features = kernel.features(X)
print(peak() - before)
"""


@numba.njit(nogil=True)
def plain_loop(letters, n, length, masks, n_features, indptr, columns, data):
    """Fill the three arrays of a sparse matrix with the features of n strings of one length."""
    width = len(letters) // n
    here = np.empty((width - length + 1) * len(masks), np.uint64)
    end = 0
    for i in range(n):
        filled = 0
        for start in range(i * width, (i + 1) * width - length + 1):
            for m in range(len(masks)):
                number = np.uint64(m)
                for j in masks[m]:
                    number = number * np.uint64(0xD1342543DE82EF95) + np.uint64(letters[start + j])
                number ^= number >> np.uint64(31)
                number *= np.uint64(0xBF58476D1CE4E5B9)
                number ^= number >> np.uint64(29)
                here[filled] = number % np.uint64(n_features)
                filled += 1
        here.sort()
        for k in range(filled):
            if k > 0 and here[k] == here[k - 1]:
                data[end - 1] += 1.0
            else:
                columns[end], data[end] = here[k], 1.0
                end += 1
        indptr[i + 1] = end
    return end


def plainly(X: list[str]) -> sp.csr_array:
    """Return the features of strings of one length by the plain loop."""
    masks = np.array(list(combinations(range(LENGTH), INFORMATIVE)))
    letters = np.frombuffer("".join(X).encode(), np.uint8)
    most = len(X) * (len(X[0]) - LENGTH + 1) * len(masks)
    indptr, columns, data = np.zeros(len(X) + 1, np.int64), np.empty(most, np.int32), np.empty(most)
    end = plain_loop(letters, len(X), LENGTH, masks, N_FEATURES, indptr, columns, data)
    return sp.csr_array((data[:end], columns[:end], indptr), shape=(len(X), N_FEATURES))


def run(n: int = 4000) -> list[Row]:
    """Return speed on n sequences of 100 letters, and memory on 4000."""
    X = ["".join(x) for x in np.random.default_rng(0).choice(list("ACGT"), (n, 100))]
    kernel = GappedKmers(LENGTH, INFORMATIVE)
    exact, ours, theirs = kernel(X[:200]), kernel.features(X[:200]), plainly(X[:200])
    for features in (ours, theirs):  # equal but for features that share a column
        assert np.abs((features @ features.T).toarray() - exact).max() < 0.05 * exact.diagonal().min()
    plain, threads, one = in_turns(
        lambda: plainly(X), lambda: kernel.features(X), lambda: _on_one_thread(kernel, X), rounds=3
    )
    used = int(subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout) * 1024
    what = f"GappedKmers(10, 6), features of {n} sequences of 100 letters"
    return [
        Row(what, "plain numba loop over all masks", plain / threads, at_least=5),
        Row(f"{what}, one thread", "plain numba loop over all masks", plain / one),
        Row("memory for the features of 4000 sequences of 100 letters", "1 GiB", used / 2**30, at_most=1),
    ]


def _on_one_thread(kernel: GappedKmers, X: list[str]) -> sp.csr_array:
    with limited_to(1):
        return kernel.features(X)


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
