"""HDClassifier against torchhd's `Centroid.add_online`: the same codes, one sample at a time, 20 epochs.

Then the other updates of HDClassifier against the perceptron, in turns, also for eleven classes.

SIMILIA_TORCHHD_PYTHON names an interpreter that has torch and torchhd (``pip install torch-hd``); the
rival runs there, in a process of its own, and the rows are skipped without it::

    SIMILIA_TORCHHD_PYTHON=/path/to/python python benchmarks/hd_classifier.py
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import numpy.typing as npt
from measure import Rival, Row, in_turns

from similia import HDClassifier

N_SAMPLES, N_BITS, EPOCHS = 3288, 10_000, 20
LONGEST = 60.0  # seconds of the rival; if its first epoch foretells more, that epoch times 20 is reported

RIVAL = """
import json, sys, time
import numpy as np, torch, torchhd
data = np.load(sys.argv[1])
epochs, longest = int(sys.argv[3]), float(sys.argv[4])
X = torch.from_numpy(np.unpackbits(data["codes"], axis=1).astype(np.float32) * 2 - 1)
y = torch.from_numpy(data["y"])
n, d = X.shape


def trial(threads, n_samples=100):
    torch.set_num_threads(threads)
    model, start = torchhd.models.Centroid(d, 2), time.perf_counter()
    for i in range(n_samples):
        model.add_online(X[i : i + 1], y[i : i + 1])
    return time.perf_counter() - start


torch.set_grad_enabled(False)
trial(1)
threads = min({1, torch.get_num_threads()}, key=trial)  # vectors of 10,000 are too short for two threads
torch.set_num_threads(threads)
model, seconds, done = torchhd.models.Centroid(d, 2), 0.0, 0
while done < epochs and (done == 0 or seconds / done * epochs <= longest):
    order = torch.randperm(n)
    start = time.perf_counter()
    for i in order:
        model.add_online(X[i : i + 1], y[i : i + 1])
    seconds, done = seconds + time.perf_counter() - start, done + 1
codes = torchhd.random(n, d, "MAP")
print(json.dumps({
    "seconds": seconds * epochs / done, "epochs": done, "bytes": codes.nbytes,
    "threads": threads, "version": torchhd.__version__,
}))
"""


def overlapping_classes(seed: int = 0) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Sign codes of two overlapping Gaussian classes: a quarter is wrong in the first epoch, a few to the end."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_SAMPLES)
    direction = rng.standard_normal(300) / np.sqrt(300)
    vectors = rng.standard_normal((N_SAMPLES, 300)) + 0.9 * np.outer(2 * y - 1, direction)
    return np.packbits(vectors @ rng.standard_normal((300, N_BITS)) >= 0, axis=1), y


def run() -> list[Row]:
    """Return how much faster and smaller than torchhd."""
    rival = Rival("SIMILIA_TORCHHD_PYTHON")
    codes, y = overlapping_classes()
    HDClassifier(max_iter=1).fit(codes, y)  # compile
    return [*(_against_torchhd(rival, codes, y) if rival else []), *_updates(codes, y)]


def _updates(codes: npt.NDArray[np.uint8], y: npt.NDArray[np.int64]) -> list[Row]:
    """Return the time of each update in units of the perceptron's."""
    rows = []
    groups = np.random.default_rng(0).integers(0, 11, N_SAMPLES)
    for what, labels in (("2 classes", y), ("11 classes, of chance", groups)):
        for update, most in (("averaged", 3), ("ridge", 3), ("margin", None)):
            model, perceptron = (HDClassifier(name, random_state=0) for name in (update, "perceptron"))
            ours, theirs = in_turns(
                lambda model=model, labels=labels: model.fit(codes, labels),
                lambda model=perceptron, labels=labels: model.fit(codes, labels),
            )
            rows.append(Row(f"update={update!r}, {what}: time", "update='perceptron'", ours / theirs, at_most=most))
    return rows


def _against_torchhd(rival: Rival, codes: npt.NDArray[np.uint8], y: npt.NDArray[np.int64]) -> list[Row]:
    model, times = _fits(codes, y)
    theirs, _ = rival.run(RIVAL, {"codes": codes, "y": y}, EPOCHS, LONGEST)
    seconds = statistics.median(times + _fits(codes, y)[1])  # before and after the rival
    print(f"similia {seconds:.3f} s, mistakes per epoch {model.n_updates_}")
    print(f"torchhd {theirs['seconds']:.1f} s ({theirs['epochs']} epochs run, {theirs['threads']} threads)")
    name = f"torchhd {theirs['version']}"
    what = f"{EPOCHS} epochs of HDClassifier, n = {N_SAMPLES}, d = {N_BITS}: speed"
    return [
        Row(what, f"{name} Centroid.add_online, batch 1", theirs["seconds"] / seconds, at_least=200),
        Row("memory of codes: less", f"{name} MAP float32", theirs["bytes"] / codes.nbytes, at_least=32),
    ]


def _fits(codes: npt.NDArray[np.uint8], y: npt.NDArray[np.int64]) -> tuple[HDClassifier, list[float]]:
    times = []
    for _ in range(5):
        model = HDClassifier(max_iter=EPOCHS, random_state=0)
        start = time.perf_counter()
        model.fit(codes, y)
        times.append(time.perf_counter() - start)
    if model.n_iter_ < EPOCHS:
        raise RuntimeError(f"converged after {model.n_iter_} epochs: an unfair race, make the classes overlap more")
    return model, times


if __name__ == "__main__":
    print(*run(), sep="\n")
