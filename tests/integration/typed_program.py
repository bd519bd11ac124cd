"""A program as a user writes it, for type checkers: `mypy --strict` and pyright find nothing to say (test_types.py)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import similia as sm
from similia.kernels import Kernel, Spectrum
from similia.search import HammingIndex


def encode(kernel: Kernel, strings: list[str]) -> npt.NDArray[np.uint8]:
    embedding = sm.Nystroem(kernel, 8, random_state=0)
    signs = sm.SignRandomProjection(64, random_state=0)
    codes: npt.NDArray[np.uint8] = signs.fit_transform(embedding.fit_transform(strings))
    return codes


def nearest(codes: npt.NDArray[np.uint8], n: int) -> list[int]:
    index = HammingIndex(n_bits=64).fit(codes)
    distances, ids = index.kneighbors(codes[:1], n)
    assert distances.shape == ids.shape
    return [int(i) for i in ids[0]]


class Half(Kernel):
    """A kernel of one's own."""

    def __call__(self, X: list[str], Y: list[str] | None = None) -> npt.NDArray[np.float64]:
        other = X if Y is None else Y
        return np.array([[float(x == y) / 2 for y in other] for x in X])


def main() -> None:
    strings = ["ACGT" * i + "GG" for i in range(1, 20)]
    print(nearest(encode(Spectrum(k=2), strings), 3))
    model = sm.recipes.nyshd(Spectrum(k=3), n_landmarks=5, n_bits=64, random_state=0)
    model.fit(strings, [i % 2 for i in range(19)])
    path = sm.save(model, "model.similia")
    print(sm.load(path).predict(strings), path.name)
    with sm.config(max_memory="100MiB"):
        print(sm.distances.Levenshtein()(strings[:2]).shape)
    print(Half()(["a", "b"]))


if __name__ == "__main__":
    main()
