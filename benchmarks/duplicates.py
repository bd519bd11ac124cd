"""Near-duplicates: texts by shingles against `datasketch` and `rensa`, DNA by edit distance against `cd-hit-est`.

Texts: 200,000 bases, each three messages of sms_spam, and five variants of each, in which each word is changed with a
probability drawn between 1 and 20 %. Similarity: min-max kernel of counts of shingles of 5 letters, at least 0.7. The
rivals get a sample of the texts, and their time is scaled up linearly, which is in their favour. `rensa` compares its
candidates by sets of shingles in Python; `text-dedup` takes shingles of words, compares no candidates, and writes
groups. DNA: 40,000 families of five stretches of 100 letters with up to 10 edits. Recall: of the pairs of 200 objects
with all others, compared one by one::

    SIMILIA_DATA=... SIMILIA_CHEM_PYTHON=... SIMILIA_TEXT_DEDUP_PYTHON=... python benchmarks/duplicates.py
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Rival, Row, data_folder

import similia as sm
from similia.distances import Levenshtein
from similia.kernels import MinMax, Spectrum
from similia.search import near_duplicates

N_TEXTS, N_RIVAL, N_DNA, K, THRESHOLD, CHECKED = 1_000_000, 20_000, 200_000, 5, 0.7, 200

DATASKETCH = """
import json, sys, time
import numpy as np
from datasketch import MinHash, MinHashLSH
texts, k, t = np.load(sys.argv[1])["X"].tolist(), int(sys.argv[3]), float(sys.argv[4])
start = time.perf_counter()
lsh, n = MinHashLSH(threshold=t, num_perm=128), 0
for i, text in enumerate(texts):
    m = MinHash(num_perm=128)
    m.update_batch([text[j:j + k].encode() for j in range(len(text) - k + 1)])
    n += len(lsh.query(m))
    lsh.insert(i, m)
print(json.dumps({"seconds": time.perf_counter() - start, "pairs": n}))
np.savez(sys.argv[2], n=n)
"""

RENSA = """
import json, sys, time
import numpy as np
from rensa import RMinHash, RMinHashLSH
texts, k, t = np.load(sys.argv[1])["X"].tolist(), int(sys.argv[3]), float(sys.argv[4])
start = time.perf_counter()
lsh, sets, found = RMinHashLSH(threshold=t, num_perm=128, num_bands=16), [], []
for i, text in enumerate(texts):
    shingles = [text[j:j + k] for j in range(len(text) - k + 1)]
    m = RMinHash(num_perm=128, seed=0)
    m.update(shingles)
    sets.append(frozenset(shingles))
    for j in lsh.query(m):
        both = len(sets[i] & sets[j])
        if both >= t * (len(sets[i]) + len(sets[j]) - both):
            found.append((j, i))
    lsh.insert(i, m)
print(json.dumps({"seconds": time.perf_counter() - start, "pairs": len(found)}))
np.savez(sys.argv[2], n=len(found))
"""

TEXT_DEDUP = """
import json, sys, tempfile, time
import datasets, numpy as np
from text_dedup import minhash
texts, k, t = np.load(sys.argv[1])["X"].tolist(), sys.argv[3], sys.argv[4]
with tempfile.TemporaryDirectory() as folder:
    datasets.Dataset.from_dict({"text": texts}).save_to_disk(f"{folder}/in")
    options = ["--path", f"{folder}/in", "--local", "--column", "text", "--output", f"{folder}/out"]
    options += ["--cache_dir", folder, "--ngram", k, "--threshold", t, "--num_perm", "128"]
    start = time.perf_counter()
    minhash.main(options, standalone_mode=False)
    seconds = time.perf_counter() - start
np.savez(sys.argv[2], n=0)
print(json.dumps({"seconds": seconds}))
"""


def run() -> list[Row]:
    """Return recall, speed and memory of `near_duplicates`, and the speed of rivals."""
    return [*(_texts(data_folder()) if data_folder() else []), *_dna()]


def _texts(_folder: object) -> list[Row]:
    texts = variants(N_TEXTS)
    kernel = MinMax(Spectrum(K))
    near_duplicates(texts[:5000], kernel, THRESHOLD, random_state=0)
    before = _memory()
    found, seconds = _timed(texts, kernel, THRESHOLD)
    memory = (_memory() - before) * 2**30 / sum(map(len, texts))
    what = f"{N_TEXTS} texts, shingles of {K} letters, at least {THRESHOLD:g}"
    recall, wrong = _checked(texts, kernel, found, lambda values, _i: values >= THRESHOLD)
    rows = [
        Row(f"{what}: recall ({len(found.pairs)} pairs found)", "all pairs of 200 objects", recall, at_least=0.98),
        Row(f"{what}: recall that it estimates itself", "1", found.recall),
        Row(f"{what}: wrong pairs", "1", wrong, at_most=0),
        Row(f"{what}: memory beside the texts", "1 byte for each letter", memory),
    ]
    rivals = {
        "datasketch, not verified": ("SIMILIA_CHEM_PYTHON", DATASKETCH),
        "rensa, verified": ("SIMILIA_CHEM_PYTHON", RENSA),
        "text-dedup, groups by words": ("SIMILIA_TEXT_DEDUP_PYTHON", TEXT_DEDUP),
    }
    for name, (variable, code) in rivals.items():
        rival = Rival(variable)
        if not rival:
            continue
        told, _ = rival.run(code, {"X": np.array(texts[:N_RIVAL])}, K, THRESHOLD)
        ratio = told["seconds"] * N_TEXTS / N_RIVAL / seconds
        goal = 20 if name.startswith("data") else 1
        rows.append(Row(f"{what}: speed", f"{name}, scaled from {N_RIVAL}", ratio, at_least=goal))
    return rows


def _dna() -> list[Row]:
    strings = stretches(N_DNA)
    near_duplicates(strings[:5000], Levenshtein(), 0.1, relative=True, random_state=0)
    found, seconds = _timed(strings, Levenshtein(), 0.1, relative=True)
    lengths = np.array([len(s) for s in strings])
    what = f"{N_DNA} stretches of DNA, edit distance at most 10 %"

    def close(values: np.ndarray, i: np.ndarray) -> np.ndarray:
        return values <= 0.1 * np.maximum(lengths[i][:, None], lengths)

    recall, wrong = _checked(strings, Levenshtein(), found, close)
    rows = [
        Row(f"{what}: recall ({len(found.pairs)} pairs found)", "all pairs of 200 objects", recall, at_least=0.95),
        Row(f"{what}: recall that it estimates itself", "1", found.recall),
        Row(f"{what}: wrong pairs", "1", wrong, at_most=0),
    ]
    program = shutil.which("cd-hit-est")
    if program is None:
        print("skipped: cd-hit-est is not installed")
        return rows
    with tempfile.TemporaryDirectory() as folder:
        fasta = Path(folder) / "x.fasta"
        fasta.write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(strings)))
        options = ["-c", "0.9", "-n", "8", "-T", "2", "-M", "0", "-d", "0", "-r", "0"]
        start = time.perf_counter()
        subprocess.run([program, "-i", fasta, "-o", Path(folder) / "out", *options], check=True, capture_output=True)
        theirs = time.perf_counter() - start
    return [*rows, Row(f"{what}: speed", "cd-hit-est, which only groups", theirs / seconds, at_least=1)]


def _memory() -> float:
    """Return the most memory used so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def variants(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    messages = [str(message).split() for message in sm.datasets.fetch("sms_spam").data]
    words = [word for message in messages for word in message]
    texts = []
    for chosen in rng.integers(len(messages), size=(n // 5, 3)):
        base = [word for i in chosen for word in messages[i]]
        for share in rng.uniform(0.01, 0.2, 5):
            changed = np.flatnonzero(rng.random(len(base)) < share)
            text = list(base)
            for at, new in zip(changed, rng.integers(len(words), size=len(changed)), strict=True):
                text[at] = words[new]
            texts.append(" ".join(text))
    return [texts[i] for i in rng.permutation(len(texts))]


def stretches(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    strings = []
    for ancestor in rng.integers(4, size=(n // 5, 100)):
        for _ in range(5):
            letters = ancestor.tolist()
            for what in rng.integers(3, size=rng.integers(11)):
                at = int(rng.integers(len(letters)))
                if what == 0:
                    letters.insert(at, int(rng.integers(4)))
                elif what == 1:
                    del letters[at]
                else:
                    letters[at] = int(rng.integers(4))
            strings.append("".join("ACGT"[letter] for letter in letters))
    return [strings[i] for i in rng.permutation(len(strings))]


def _timed(X: list[str], similarity: object, threshold: float, **options: object) -> tuple:
    start = time.perf_counter()
    found = near_duplicates(X, similarity, threshold, random_state=0, **options)  # type: ignore[arg-type]
    return found, time.perf_counter() - start


def _checked(X: list[str], similarity: object, found: object, passes: object) -> tuple[float, float]:
    """Return the recall of the pairs of the first objects, and how many pairs found of theirs are wrong."""
    values = np.asarray(similarity(X[:CHECKED], X))  # type: ignore[operator]
    good = passes(values, np.arange(CHECKED))  # type: ignore[operator]
    good[np.arange(CHECKED), np.arange(CHECKED)] = False
    pairs = found.pairs  # type: ignore[attr-defined]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[both[:, 0] < CHECKED]
    hit = good[both[:, 0], both[:, 1]]
    return float(hit.sum() / good.sum()), float((~hit).sum())


if __name__ == "__main__":
    print(*run(), sep="\n")
