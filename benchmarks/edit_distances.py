"""D2KE features of MNIST contours under the Levenshtein distance, against blocks of rapidfuzz's cdist.

Contours of digits (8 directions; SIMILIA_DATA names the folder of data sets) to 4096 random strings of 2 to 50
letters. The rival calls cdist on blocks of contours in all threads and makes features in place. Memory is the largest
resident set of a process of its own that embeds all 70,000 contours::

    SIMILIA_DATA=... python benchmarks/edit_distances.py [n_strings_for_memory]
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
from measure import Row, data_folder, in_turns
from rapidfuzz.distance import Levenshtein as rapidfuzz
from rapidfuzz.process import cdist

import similia as sm
from experiments._digits import contour_strings
from similia.distances import Levenshtein
from similia.embeddings import RandomStrings

R, GAMMA, SAMPLE, BLOCK = 4096, 0.1, 2000, 500


def run(n_for_memory: int = 70_000) -> list[Row]:
    """Return the speed of `D2KE.transform` on a sample of contours and the memory it takes for all."""
    folder = data_folder()
    if folder is None:
        return []
    strings = _contours(folder, SAMPLE)
    model = _model().fit(strings)
    omega = list(model.random_objects_)

    def rival() -> np.ndarray:
        features = np.empty((len(strings), R), np.float32)
        for start in range(0, len(strings), BLOCK):
            block = strings[start : start + BLOCK]
            D = cdist(block, omega, scorer=rapidfuzz.distance, dtype=np.float32, workers=-1)
            features[start : start + BLOCK] = np.exp(-GAMMA * D) / np.sqrt(R)
        return features

    ours, theirs = in_turns(lambda: model.transform(strings), rival, rounds=3)
    error = np.abs(model.transform(strings) - rival()).max() * np.sqrt(R)
    command = [sys.executable, __file__, "--memory", str(n_for_memory)]
    kilobytes = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"similia {ours:.3f} s, rapidfuzz {theirs:.3f} s for {len(strings)} strings; largest difference {error:.1e}")
    print(f"{n_for_memory} strings: {kilobytes / 2**20:.2f} GiB, {4 * R * n_for_memory / 2**30:.2f} of them features")
    return [
        Row(f"features of MNIST contours, R = {R}: speed", "blocks of rapidfuzz cdist", theirs / ours, at_least=1),
        Row(f"the same for {n_for_memory} contours: memory", "2 GiB", kilobytes / 2**21, at_most=1),
    ]


def _model() -> sm.D2KE:
    return sm.D2KE(Levenshtein(), n_components=R, objects=RandomStrings(length=(2, 50)), gamma=GAMMA, random_state=0)


def _contours(folder: Path, n: int) -> list[str]:
    images = np.concatenate([np.load(folder / "vectors" / f"mnist_{part}.npz")["x"] for part in ("train", "test")])
    return contour_strings(images[:n], 8)


def _print_memory(n: int) -> None:
    folder = data_folder()
    assert folder is not None
    strings = _contours(folder, n)
    _model().fit_transform(strings)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        _print_memory(int(sys.argv[2]))
    else:
        print(*run(*map(int, sys.argv[1:])), sep="\n")
