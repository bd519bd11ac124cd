"""MinHash of sets against datasketch and rensa: 1024 hashes of sets of 100 words.

SIMILIA_CHEM_PYTHON names an interpreter that has datasketch and rensa; the rivals run there, in a process of their own,
and their rows are skipped without it. All get 64-bit hashes of the words (datasketch: 32-bit), so that no time is
spent on reading text. rensa runs with its own threads; datasketch, which has none, runs on fewer sets. Of each hash,
the codes of similia hold one bit, those of the rivals 32::

    SIMILIA_CHEM_PYTHON=/path/to/python python benchmarks/minhash.py [n_sets]
"""

from __future__ import annotations

import sys

import numpy as np
from measure import Rival, Row, in_turns
from numpy import typing as npt

import similia as sm
from similia.kernels import FeatureKernel
from similia.kernels.counts import Counts

WORDS, HASHES, FEW = 100, 1024, 1000

RIVAL = """
import importlib.metadata, json, statistics, sys, time
import numpy as np, datasketch, rensa
data = np.load(sys.argv[1])
hashes, few = int(sys.argv[3]), int(sys.argv[4])
ids, offsets = data["ids"], data["offsets"]


def seconds(call, rounds=5):
    call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def by_datasketch():
    for start, stop in zip(offsets[:few], offsets[1 : few + 1]):
        sketch = datasketch.MinHash(num_perm=hashes, hashfunc=int)
        sketch.update_batch(words[start:stop])


words = (ids & np.uint64(2**32 - 1)).tolist()
found = {"datasketch": seconds(by_datasketch, 1) * (len(offsets) - 1) / few}
for name in ("digest_matrix_from_flat_token_hashes", "digest_matrix_from_flat_token_hashes_rho"):
    sketch = getattr(rensa.RMinHash, name)
    found[name] = seconds(lambda: sketch(ids, offsets.astype(np.uint64), num_perm=hashes, seed=1))
versions = {f"{name} version": importlib.metadata.version(name) for name in ("datasketch", "rensa")}
print(json.dumps({**found, **versions}))
"""


class Sets(FeatureKernel):
    """The number of words that two sets have in common; a collection is an array of hashes, one row for each set."""

    normalize = False

    def as_objects(self, X: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        return X

    def _counts(self, objects: npt.NDArray[np.uint64]) -> Counts:
        offsets = np.arange(len(objects) + 1) * objects.shape[1]
        return Counts(offsets, objects.ravel(), np.ones(objects.size))


def run(n_sets: int = 100_000) -> list[Row]:
    """Return the speed against datasketch and rensa."""
    rival = Rival("SIMILIA_CHEM_PYTHON")
    if not rival:
        return []
    X = np.random.default_rng(0).integers(2**63, size=(n_sets, WORDS), dtype=np.uint64)
    model = sm.MinHash(Sets(), HASHES, random_state=0).fit(X)
    (ours,) = in_turns(lambda: model.transform(X), rounds=5)
    arrays = {"ids": X.ravel(), "offsets": np.arange(n_sets + 1) * WORDS}
    theirs, _ = rival.run(RIVAL, arrays, HASHES, FEW)
    print(f"similia {ours:.2f} s, {theirs}")
    what = f"{HASHES} min-hashes of {n_sets} sets of {WORDS} words: speed"
    names = ("", "_rho")
    flat, rho = (theirs[f"digest_matrix_from_flat_token_hashes{name}"] for name in names)
    return [
        Row(what, f"datasketch {theirs['datasketch version']}", theirs["datasketch"] / ours, at_least=20),
        Row(what, f"rensa {theirs['rensa version']} RMinHash", flat / ours, at_least=1),
        Row(what, f"rensa {theirs['rensa version']} RMinHash, rho sketch", rho / ours),
    ]


if __name__ == "__main__":
    print(*run(*map(int, sys.argv[1:])), sep="\n")
