"""What the D2KE paper prints (accuracy in percent and seconds; Tables 1 to 3), and the data that stand for its sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from experiments._digits import contour_strings
from experiments._radio import simulated_radio
from similia.datasets import fetch
from similia.objects import as_strings

PRINTED_METHODS = ("D2KE", "kNN", "DSK_RBF", "DSK_ND", "GDK_LED", "RSM")


@dataclass(frozen=True)
class DistanceTask:
    """One data set of the paper, or one more of its kind.

    Attributes
    ----------
    name : str
        As the paper prints it, or the name of a set that it does not have.
    kind : {"series", "strings", "sets"}
    source : str
        Name for `similia.datasets.fetch`, one of the made sets below, or empty: could not be had.
    sizes : (int, int) or None
        Training and test objects drawn at random (seed 42); None: 70/30, or the split that comes with the data.
    note : str
        How the data differ from the paper's.
    printed : mapping of method to (accuracy, seconds)
    resampled : bool
        Whether the split that comes with the data is the first of several, the others stratified samples of its
        sizes: for sets so small that one split says little.
    """

    name: str
    kind: Literal["series", "strings", "sets"]
    source: str = ""
    sizes: tuple[int, int] | None = None
    note: str = ""
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    resampled: bool = False


def _printed(*numbers: float) -> dict[str, tuple[float, float]]:
    return dict(zip(PRINTED_METHODS, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


# fmt: off
SERIES_TASKS = (
    DistanceTask("Auslan", "series", "auslan_nintendo", (1795, 770), "stand-in: the low-quality glove, 8 channels",
                 _printed(92.60, 42.4, 70.26, 10.0, 92.47, 43.4, 89.74, 44.6, 92.72, 65.0, 88.96, 18.6)),
    DistanceTask("pentip", "series", "character_trajectories", None, "the labelled half: 1000/429 of 2000/858",
                 _printed(99.88, 1.4, 98.37, 27.3, 98.02, 125.4, 70.40, 126.6, 97.20, 13.13, 99.88, 23.6)),
    DistanceTask("ActRecog", "series", "", None, "could not be had",
                 _printed(64.72, 44.4, 53.43, 15.5, 55.58, 64.9, 45.31, 68.0, 55.33, 73.5, 62.44, 14.5)),
    DistanceTask("IQ_radio", "series", "radio", (500, 500), "stand-in: simulated, 500/500 of 6715/6715",
                 _printed(86.87, 469.3, 60.25, 3734, 77.41, 13381, 47.31, 12251, 82.17, 18787, 70.84, 575.9)),
    DistanceTask("JapaneseVowels", "series", "japanese_vowels", resampled=True),
    DistanceTask("Libras", "series", "libras", resampled=True),
    DistanceTask("BasicMotions", "series", "basic_motions", resampled=True),
    DistanceTask("PenDigits", "series", "pendigits"),
    DistanceTask("GunPoint", "series", "gunpoint", resampled=True),
    DistanceTask("ItalyPowerDemand", "series", "italy_power_demand", resampled=True),
)
STRING_TASKS = (
    DistanceTask("bit-str4", "strings", "", None, "could not be had",
                 _printed(90.00, 3.4, 80.00, 1.7, 88.33, 3.9, 86.67, 3.5, 83.33, 1.3, 86.67, 2.3)),
    DistanceTask("splice", "strings", "splice_uci", (2233, 957), "",
                 _printed(90.17, 46.9, 79.41, 63.2, 87.88, 204.9, 85.89, 208.2, 85.58, 111.6, 86.10, 47.3)),
    DistanceTask("mnist-str4", "strings", "mnist4", None, "our own contours",
                 _printed(98.76, 3376, 97.75, 36840, 98.66, 59925, 91.92, 59845, 94.81, 102130, 97.86, 943.5)),
    DistanceTask("mnist-str8", "strings", "mnist8", None, "our own contours",
                 _printed(98.54, 4096, 96.58, 9207, 97.5, 18666, 92.66, 18604, 94.62, 40498, 97.61, 308.6)),
)
SET_TASKS = (
    DistanceTask("flower", "sets", "flowers_sift", None, "other descriptors of the same pictures",
                 _printed(46.03, 22.0, 33.33, 16.4, 36.51, 103.5, 36.51, 102.4, 50.79, 213.4, 33.33, 18.6)),
    DistanceTask("decor", "sets", "", None, "could not be had",
                 _printed(68.76, 70.3, 61.81, 117.3, 70.83, 1225.1, 70.14, 1221.9, 71.52, 1043.4, 68.75, 1625.2)),
    DistanceTask("style", "sets", "style_sift", (625, 268), "893 of the set's 2184 pictures of today",
                 _printed(40.29, 20.5, 36.57, 48.0, 38.06, 450.3, 30.59, 449.02, 38.43, 397.4, 37.68, 652.6)),
    DistanceTask("letters2", "sets", "", None, "could not be had",
                 _printed(54.05, 30.5, 42.52, 10.9, 54.55, 101.9, 53.27, 99.7, 58.54, 115.4, 53.34, 29.8)),
)
# fmt: on
TASKS = SERIES_TASKS + STRING_TASKS + SET_TASKS


@dataclass(frozen=True)
class Split:
    """Objects, labels and the positions of the training and the test part."""

    X: Any
    y: npt.NDArray
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


def load_split(task: DistanceTask, resample: int = 0) -> Split:
    """Return the data of a task: the split that comes with them, else a random one with seed 42.

    A `resample` above 0 gives a stratified sample of the same sizes, with that seed.
    """
    if task.source in ("mnist4", "mnist8"):
        parts = [fetch("mnist_train"), fetch("mnist_test")]
        images = np.concatenate([part.data for part in parts])
        n = len(parts[0].target)
        y = np.concatenate([part.target for part in parts])
        strings = as_strings(contour_strings(images, int(task.source[-1])))
        return Split(strings, y, np.arange(n), np.arange(n, len(y)))
    given = None
    if task.source == "radio":
        X, y = simulated_radio(sum(task.sizes or (500, 500)))
    else:
        bunch = fetch(task.source)
        X = as_strings(bunch.data) if task.kind == "strings" else bunch.data
        y, given = np.asarray(bunch.target), bunch.get("split")
    if given is not None and task.sizes is None:
        train, test = np.flatnonzero(given == 0), np.flatnonzero(given == 1)
        if resample:
            train, test = train_test_split(
                np.arange(len(y)), train_size=len(train), test_size=len(test), random_state=resample, stratify=y
            )
        return Split(X, y, train, test)
    n_train, n_test = task.sizes or (None, 0.3)
    train, test = train_test_split(np.arange(len(y)), train_size=n_train, test_size=n_test, random_state=42)
    return Split(X, y, train, test)
