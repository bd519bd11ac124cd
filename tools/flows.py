"""How far a call travels: ``python tools/flows.py`` prints the files that a few calls enter, and how often they change.

A change is a call from a function of one file of the package into a function of another one. Each flow runs once before
it is counted, so that imports and compilation are not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import similia as sm

PACKAGE = str(Path(sm.__file__).parent)
WORDS = ["".join(np.random.default_rng(i).choice(list("ACGT"), 12 + i % 7)) for i in range(60)]
LABELS = np.arange(60) % 2


def travelled(call: Callable[[], Any]) -> tuple[set[str], Counter[tuple[str, str]]]:
    """Return the files that a call enters, and how often it goes from one to another."""
    files: set[str] = set()
    changes: Counter[tuple[str, str]] = Counter()

    def heard(frame: FrameType, event: str, _: Any) -> None:
        here = frame.f_code.co_filename
        if event != "call" or not here.startswith(PACKAGE):
            return
        above = frame.f_back or sys._getframe(1)  # numba's frame of a compiled function has no frame above it
        while above is not None and not above.f_code.co_filename.startswith(PACKAGE):
            above = above.f_back
        files.add(here)
        before = above.f_code.co_filename if above is not None else ""
        if before != here:
            changes[before[len(PACKAGE) + 1 :], here[len(PACKAGE) + 1 :]] += 1

    call()
    sys.setprofile(heard)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files, changes


def flows() -> dict[str, Callable[[], Any]]:
    """Return the calls that are followed."""
    import dask
    import dask.bag

    dask.config.set(scheduler="synchronous")
    encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=3), n_landmarks=20, n_bits=64, random_state=0)[:-1]
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=3), n_landmarks=20, n_bits=64, random_state=0)[:-1].fit(WORDS)
    bag = dask.bag.from_sequence(WORDS, npartitions=2)
    return {
        "nyshd.fit": lambda: encoder.fit(WORDS, LABELS),
        "d2ke.fit": lambda: sm.D2KE(sm.distances.Levenshtein(), 32, random_state=0).fit(WORDS),
        "SimilaritySearch.fit": lambda: sm.SimilaritySearch(encoder).fit(WORDS),
        "transform(bag)": lambda: model.transform(bag).compute(),
    }


def main() -> None:
    """Print a line for each flow; with ``-v`` the changes that happen most, too."""
    for name, call in flows().items():
        files, changes = travelled(call)
        print(f"{name:22} {len(files):3} files {sum(changes.values()):4} changes")
        if "-v" in sys.argv[1:]:
            for (before, after), times in changes.most_common(25):
                print(f"    {times:4}  {before or 'caller':32} -> {after}")


if __name__ == "__main__":
    main()
