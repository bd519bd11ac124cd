"""Models to export, compilers to build them with, and a call of the program that was built."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.distances import DTW, Levenshtein
from similia.kernels import RBF, DistanceRBF, GappyKmers, Spectrum, WeightedDegree, WeisfeilerLehman

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
# Name -> command, and the emulator that runs what it builds.
COMPILERS = {
    "gcc": (["gcc", "-O2", "-Wconversion"], []),
    "gcc, checked": (["gcc", "-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"], []),
    "clang": (["clang", "-O3", "-Wconversion"], []),
    "clang, checked": (["clang", "-O1", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"], []),
    "ARM": (["arm-linux-gnueabihf-gcc", "-O2", "-static"], ["qemu-arm"]),
    "RISC-V": (["riscv64-linux-gnu-gcc", "-Os", "-static"], ["qemu-riscv64"]),
}


def needed(compiler: str) -> tuple[list[str], list[str]]:
    """Return the command and the emulator, or skip the test."""
    command, emulator = COMPILERS[compiler]
    for tool in (command[0], *emulator):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not _works(compiler):
        pytest.skip(f"{' '.join(command)} builds no program here (its libraries may be missing)")
    return command, emulator


@cache
def _works(compiler: str) -> bool:
    command, emulator = COMPILERS[compiler]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "a.c"), Path(folder, "a")
        source.write_text("int main(void) { return 0; }\n")
        if subprocess.run([*command, source, "-o", program], capture_output=True).returncode:
            return False
        return subprocess.run([*emulator, program], capture_output=True).returncode == 0


def built(compiler: str, folder: Path, name: str = "model", main: str | None = None) -> list[str]:
    """Compile a model and its test program, or the C source `main` instead; return the command that runs it."""
    command, emulator = needed(compiler)
    program, test = folder / compiler.replace(", ", "_"), folder / f"{name}_test.c"
    if main is not None:
        test = folder / "main.c"
        test.write_text(main)
    strict = STRICT if main is None else STRICT[:1]
    subprocess.run([*command, *strict, folder / f"{name}.c", test, "-o", program], check=True, timeout=300)
    return [*emulator, str(program)]


def answers(program: list[str], small: sm.devices.Quantised, arguments: list) -> list[tuple[int, int, bytes | None]]:
    """Return (status, label, code) of each object, as `small.input.arguments` gives them."""
    done = subprocess.run([*program, "-"], input=text_of(small, arguments), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(int(status), int(label), None if code == "-" else bytes.fromhex(code)) for status, label, code in lines]


def text_of(small, arguments) -> str:
    """Write objects as the test program reads them."""
    if small.input.kind == "subtrees":
        numbers = [[len(first) - 1, len(to), *first, *to, *labels, *edges] for first, to, labels, edges in arguments]
    elif small.input.kind in ("vector", "gaussian", "levels"):
        numbers = arguments
    else:
        channels = getattr(small.input, "n_channels", 1)
        numbers = [[len(values) // channels, *values] for values in arguments]
    return "\n".join(" ".join(map(str, row)) for row in numbers)


def _nyshd(kernel, X, y, *, landmarks=30, n_bits=264, method="gaussian", **classifier):
    model = sm.recipes.nyshd(kernel, landmarks, n_bits, random_state=0)
    model.set_params(projection__method=method, **{f"classifier__{name}": value for name, value in classifier.items()})
    return model.fit(X, y)


def _strings():
    random = np.random.default_rng(0)
    X = ["".join(random.choice(list("ACGT"), length)) for length in random.integers(0, 40, 60)]
    return [*X[:-2], "ACGTACGT" * 4, "A" * 39], np.array([int(x.count("A") > x.count("C")) for x in X])


def _graphs(node_labels=True, edge_labels=True):
    random = np.random.default_rng(0)
    offsets, edges, n = [0], [], 0
    for size in random.integers(1, 12, 60):
        pairs = np.argwhere(np.triu(random.random((size, size)) < 0.3, 1)) + n
        edges += [pairs, pairs[:, ::-1]]
        n += size
        offsets.append(n)
    arcs = np.concatenate(edges).T
    graphs = sm.objects.GraphBatch.from_arrays(
        offsets, arcs,
        node_labels=random.integers(-3, 3, n) if node_labels else None,
        edge_labels=arcs.sum(axis=0) % 3 if edge_labels else None,
    )  # fmt: skip
    return graphs, (np.diff(offsets) > 5).astype(int)


def _series(n_channels):
    random = np.random.default_rng(0)
    X = [np.cumsum(random.normal(size=(length, n_channels)), axis=0) for length in random.integers(1, 25, 60)]
    return X, np.array(["falls" if x[-1, 0] < 0 else 'rises "up"' for x in X])


def _vectors(n_features=12):
    random = np.random.default_rng(0)
    X = random.normal(size=(90, n_features)) * np.exp(random.normal(size=n_features) * 2) + 3
    return X, np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))


def _encoded(encoder, X, y, **classifier):
    return sm.Pipeline([("encoder", encoder), ("classifier", sm.HDClassifier("ridge", **classifier))]).fit(X, y)


def _dtw(local="euclidean", window=None, root=False):
    return DistanceRBF(DTW(window, local, root), 0.0005)


def _scaled(X, y):
    steps = [("d2ke", sm.D2KE(DTW(), 24, random_state=0)), ("scaler", StandardScaler())]
    steps += [("signs", sm.SignRandomProjection(264, random_state=0)), ("classifier", sm.HDClassifier("margin"))]
    return sm.Pipeline(steps).fit(X, y)


def _edits(X, y):
    steps = [("d2ke", sm.D2KE(Levenshtein(), 24, random_state=0)), ("signs", sm.SignRandomProjection(264))]
    return sm.Pipeline([*steps, ("classifier", sm.HDClassifier("margin"))]).set_params(signs__random_state=0).fit(X, y)


def _plain(method, X, y, **classifier):
    steps = [("scaler", StandardScaler()), ("signs", sm.SignRandomProjection(264, method, random_state=0))]
    return sm.Pipeline([*steps, ("classifier", sm.HDClassifier("ridge", **classifier))]).fit(X, y)


MAKERS = {
    "gappy k-mers": lambda: (_nyshd(GappyKmers(4, 2), *_strings()), _strings()[0]),
    "gappy k-mers, gaps differ": lambda: (
        _nyshd(GappyKmers(4, 2, merge=False, normalize=True), *_strings(), prototype_bits=8), _strings()[0]),
    "spectrum, hadamard": lambda: (
        _nyshd(Spectrum(3), *_strings(), method="hadamard", prototype_bits=4), _strings()[0]),
    "spectrum, both strands": lambda: (
        _nyshd(Spectrum((2, 4), True, True, ignore_case=True), *_strings(), prototype_bits=1), _strings()[0]),
    "spectrum, long": lambda: (_nyshd(Spectrum(9), *_strings(), method="hadamard"), _strings()[0]),
    "weighted degree": lambda: (_nyshd(WeightedDegree(3), *_strings(), prototype_bits=1), _strings()[0]),
    "edit distances": lambda: (_nyshd(DistanceRBF(Levenshtein(), 0.01), *_strings()), _strings()[0]),
    "D2KE, edit distances": lambda: (_edits(*_strings()), _strings()[0]),
    "graphs": lambda: (_nyshd(WeisfeilerLehman(3), *_graphs(), method="hadamard"), _graphs()[0]),
    "graphs without labels": lambda: (_nyshd(WeisfeilerLehman(2), *_graphs(False, False)), _graphs(False, False)[0]),
    "DTW": lambda: (_nyshd(_dtw(), *_series(1)), _series(1)[0]),
    "DTW, window": lambda: (_nyshd(_dtw("sqeuclidean", 3), *_series(2)), _series(2)[0]),
    "DTW, share": lambda: (_nyshd(_dtw("sqeuclidean", 0.2, True), *_series(1)), _series(1)[0]),
    "D2KE, scaled": lambda: (_scaled(*_series(1)), _series(1)[0]),
    "Gaussian": lambda: (_nyshd(RBF(), *_vectors(5)), _vectors(5)[0]),
    "vectors": lambda: (_plain("gaussian", *_vectors(), prototype_bits=8), _vectors()[0]),
    "vectors, hadamard": lambda: (_plain("hadamard", *_vectors(300), prototype_bits=1), _vectors(300)[0]),
    "levels": lambda: (_encoded(sm.LevelEncoder(20, 264, random_state=0), *_vectors(4)), _vectors(4)[0]),
    "one level": lambda: (_encoded(sm.LevelEncoder(20, 264, random_state=0), *_vectors(1)), _vectors(1)[0]),
    "sequences": lambda: (_encoded(sm.SequenceEncoder(20, None, 264, random_state=0), *_series(2)), _series(2)[0]),
    "sequences of three": lambda: (
        _encoded(sm.SequenceEncoder(20, 3, 264, random_state=0), *_series(1)), _series(1)[0]),
    "n-grams": lambda: (_encoded(sm.NGramEncoder(3, 264, random_state=0), *_strings()), _strings()[0]),
}  # fmt: skip

IN_FLOATS = [
    name for name in MAKERS
    if "DTW" not in name and name not in ("D2KE, scaled", "levels", "one level", "n-grams") and "sequen" not in name
]  # fmt: skip


@cache
def example(name: str):
    """Return a fitted pipeline and objects for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # DTW is indefinite; short strings share nothing with landmarks
        return MAKERS[name]()
