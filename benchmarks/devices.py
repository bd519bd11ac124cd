"""Exported C on devices: results equal to Python's; bytes, and instructions per label, beside emlearn and HDCC.

Needs gcc. Clang, cross compilers for ARM (Linux and ``arm-none-eabi``) and RISC-V, and the emulators ``qemu-arm`` and
``qemu-riscv64`` are used if they are there. SIMILIA_EMLEARN_PYTHON names an interpreter that has emlearn, SIMILIA_HDCC
a folder with HDCC, and SIMILIA_DATA the folder of data sets. Rows that need what is missing are skipped::

    SIMILIA_EMLEARN_PYTHON=/path/to/python python benchmarks/devices.py --equal --cost --fuzz 10000000

- ``--equal``: labels and codes of 100,000 inputs of each model, half of them real objects with changes, half drawn from
  all that the model accepts.
- ``--cost``: models that `similia.devices.compress` chooses on one half of a data set; accuracies on the other half.
  Instructions are those executed on ARM by the object code whose bytes are given, per label, without reading objects.
- ``--fuzz N``: N random inputs, of which many must be refused, with checks of every access and every overflow; and a
  tenth of N by libFuzzer.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hdcc
import numpy as np
import numpy.typing as npt
from c_programs import Cost, c_array, installed, measured, output_of, rounded
from measure import Rival, Row, data_folder
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.distances import Levenshtein
from similia.kernels import RBF, DistanceRBF, GappyKmers, WeightedDegree, WeisfeilerLehman
from similia.objects import GraphBatch, SeriesBatch, StringBatch, read_tudataset, take

N_EQUAL, N_FUZZ = 100_000, 60_000
_REACH = 2**15 - 1  # largest number that Python accepts in an int16
# Name -> command, and the emulator that runs what it builds.
COMPILERS = {
    "gcc, x86-64": (["gcc", "-O2"], []),
    "clang, x86-64": (["clang", "-O3"], []),
    "gcc, ARM": (["arm-linux-gnueabihf-gcc", "-O2", "-static"], ["qemu-arm"]),
    "gcc, RISC-V": (["riscv64-linux-gnu-gcc", "-Os", "-static"], ["qemu-riscv64"]),
}


def run() -> list[Row]:
    """Return the rows of all three parts, with a short run of random inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # random strings share nothing with landmarks
        return [*equal(), *cost(), *fuzz(N_FUZZ)]


# ---- models


@dataclass(frozen=True)
class Models:
    """Makes models of a size, one of each kind of input."""

    n_landmarks: int
    n_bits: int

    def __iter__(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield (name, fitted model, objects)."""
        X, y = sm.datasets.load_splice(return_X_y=True)
        short = [x[20:40] for x in X]
        yield "gappy k-mers of splice, Hadamard signs", self._nyshd(GappyKmers(4, 1), X, y), X
        yield "weighted degree of splice, dense signs", self._nyshd(WeightedDegree(3), X, y, "gaussian"), X
        kernel = DistanceRBF(Levenshtein(), 0.01)
        yield "edit distances, 20 letters of splice", self._nyshd(kernel, short, y), short
        X, y = load_breast_cancer(return_X_y=True)
        steps = [("scaler", StandardScaler()), ("signs", sm.SignRandomProjection(self.n_bits, "hadamard", 0))]
        model = sm.Pipeline([*steps, ("classifier", sm.HDClassifier(prototype_bits=8, random_state=0))])
        yield "breast cancer, scaled, Hadamard signs", model.fit(X, y), X
        X, y = load_digits(return_X_y=True)
        series = list(X.reshape(-1, 8, 8))
        encoder = sm.SequenceEncoder(17, 3, self.n_bits, random_state=0)
        model = sm.Pipeline([("encoder", encoder), ("classifier", sm.HDClassifier(random_state=0))])
        yield "sequence encoder, rows of digits", model.fit(series, y), series
        folder = data_folder()
        if folder is not None:
            graphs, y = read_tudataset(folder / "graphs" / "MUTAG.zip")
            yield "Weisfeiler-Lehman of MUTAG", self._nyshd(WeisfeilerLehman(3), graphs, y), graphs

    def _nyshd(self, kernel: Any, X: Any, y: Any, method: str = "hadamard") -> Any:
        model = sm.recipes.nyshd(kernel, self.n_landmarks, self.n_bits, random_state=0)
        return model.set_params(projection__method=method).fit(X, y)


# ---- equal results


def equal(n: int = N_EQUAL) -> list[Row]:
    """Return the number of inputs whose labels or codes differ from Python's, for each model and compiler."""
    rows = []
    for name, model, X in Models(40, 512):
        with tempfile.TemporaryDirectory() as folder:
            small = sm.export_c(model, folder, X)
            inputs = [_changed(small, X, n // 2), _drawn(small, n - n // 2)]
            arguments = [one for objects in inputs for one in small.input.arguments(objects)]
            codes = np.concatenate([small.codes(objects) for objects in inputs])
            assert small.prototypes is not None
            labels = np.argmax(small.prototypes(codes), axis=1)
            expected = [f"0 {label} {code.tobytes().hex()}" for label, code in zip(labels, codes, strict=True)]
            text = _text(small, arguments)
            distinct = len(np.unique(codes, axis=0))
            for compiler, (command, emulator) in COMPILERS.items():
                if not installed(command[0], *emulator):
                    continue
                program = Path(folder) / "program"
                output_of([*command, "-std=c99", f"{folder}/model.c", f"{folder}/model_test.c", "-o", program])
                answers = output_of([*emulator, program, "-"], text).splitlines()
                if len(answers) != len(expected):
                    raise RuntimeError(f"{name}, {compiler}: {len(answers)} answers to {len(expected)} inputs")
                wrong = sum(a != b for a, b in zip(answers, expected, strict=True))
                what = f"{name}, {len(expected)} inputs, {distinct} distinct codes: labels or codes that differ"
                rows.append(Row(what, f"{compiler}, none", wrong, at_most=0))
                print(rows[-1], flush=True)
    return rows


def _changed(small: Any, X: Any, n: int, seed: int = 0) -> Any:
    """Return n objects as `small.input.read` does: those of X, then again with up to 40 % changed, and some cut."""
    random, read = np.random.default_rng(seed), small.input
    rows = np.arange(n) % len(X)
    objects = take(read.read(X), rows)
    share = np.where(np.arange(n) < len(X), 0.0, random.uniform(0.0, 0.4, n))  # of an object that is changed
    if isinstance(objects, StringBatch | SeriesBatch):
        values, sizes = objects.values.copy(), np.diff(objects.offsets)
        hit = random.random(len(values)) < np.repeat(share, sizes)
        if isinstance(objects, StringBatch):
            values[hit] = random.choice(read.letters.known, hit.sum())
        else:
            values[hit] += np.rint(random.normal(0, 3, values[hit].shape))
        cut = np.where(share > 0.3, random.integers(1, sizes + 1), sizes)
        kept = np.arange(len(values)) - np.repeat(objects.offsets[:-1], sizes) < np.repeat(cut, sizes)
        return type(objects)(values[kept], np.append(0, np.cumsum(cut)))
    if isinstance(objects, GraphBatch):
        nodes = random.random(objects.n_nodes) < np.repeat(share, np.diff(objects.node_offsets))
        labels = np.where(nodes, random.choice(objects.node_labels, objects.n_nodes), objects.node_labels)
        return replace(objects, node_labels=labels)
    noise = random.normal(size=objects.shape) * objects.std(axis=0) * share[:, None]
    return np.clip(objects + np.rint(noise).astype(np.int64), -_REACH, _REACH)


def _drawn(small: Any, n: int, seed: int = 1) -> Any:
    """Return n objects as `small.input.read` does, drawn from all that it accepts."""
    random, read = np.random.default_rng(seed), small.input
    if hasattr(read, "letters"):
        offsets = np.append(0, np.cumsum(random.integers(0, read.letters.longest + 1, n)))
        return StringBatch(random.choice(read.letters.known, offsets[-1]), offsets)
    if read.kind == "sequence":
        offsets = np.append(0, np.cumsum(random.integers(1, read.longest + 1, n)))
        spread = np.repeat(2.0 ** random.uniform(1, 15, n), np.diff(offsets))[:, None]  # not only at the last levels
        values = random.uniform(-1, 1, (offsets[-1], read.n_channels)) * spread
        return SeriesBatch(np.clip(np.rint(values), -_REACH, _REACH), offsets)
    if read.kind == "subtrees":
        sizes = random.integers(0, read.most_nodes + 1, n)
        offsets = np.append(0, np.cumsum(sizes))
        pairs = [random.integers(0, max(size, 1), (2, min(read.most_arcs, 3 * size))) for size in sizes]
        arcs = np.concatenate([pair + start for pair, start in zip(pairs, offsets[:-1], strict=True)], axis=1)
        labels = np.where(random.random(offsets[-1]) < 0.1, random.integers(-(2**62), 2**62, offsets[-1]), 0)
        labels = np.where(labels == 0, random.integers(0, 8, offsets[-1]), labels)
        edges = {"edge_labels": arcs.sum(axis=0) % 5} if read.edge_labels else {}
        return GraphBatch.from_arrays(offsets, arcs, repeated="first", node_labels=labels, **edges)
    return random.integers(-_REACH, _REACH + 1, (n, len(read.units.steps)))


def _text(small: Any, arguments: list[Any]) -> str:
    """Write objects as the exported test program reads them."""
    if small.input.kind == "subtrees":
        rows = [np.concatenate([[len(first) - 1, len(to)], first, to, *others]) for first, to, *others in arguments]
    elif small.input.kind in ("vector", "gaussian", "levels"):
        rows = arguments
    else:
        channels = getattr(small.input, "n_channels", 1)
        rows = [np.append(len(values) // channels, values) for values in arguments]
    return "\n".join(" ".join(map(str, row.astype(np.int64).tolist())) for row in rows)


# ---- bytes, instructions, time


@dataclass
class Task:
    """A data set in two halves, and the largest model that `compress` makes smaller."""

    name: str
    X: Any
    y: npt.NDArray
    model: Any
    views: Callable[[Any], dict[str, npt.NDArray]]  # what a forest may be given
    seed: int = 0

    @property
    def halves(self) -> tuple[npt.NDArray, npt.NDArray]:
        first, second = train_test_split(np.arange(len(self.y)), test_size=0.5, stratify=self.y, random_state=self.seed)
        return first, second

    @property
    def others(self) -> npt.NDArray:
        """The second half in another order, since instructions are counted on its first objects only."""
        return np.random.default_rng(1).permutation(self.halves[1])


def _tasks() -> list[Task]:
    found = []
    for name, kernel, landmarks, n_bits in (
        ("promoters", GappyKmers(4, 1), 48, 2048),
        ("splice", WeightedDegree(3), 256, 4096),
    ):
        X, y = getattr(sm.datasets, f"load_{name}")(return_X_y=True)
        found.append(Task(name, X, np.asarray(y), sm.recipes.nyshd(kernel, landmarks, n_bits, random_state=0), _views))
    X, y = load_digits(return_X_y=True)
    model = sm.recipes.nyshd(RBF(), 256, 4096, random_state=0)
    return [*found, Task("digits", X, y, model, lambda X: {"pixels": X.astype(np.int64)})]


def _views(X: list[str]) -> dict[str, npt.NDArray]:
    """Return letters by position, and counts of k-mers."""
    letters = sorted(set("".join(X)))
    places = np.array([[letter == one for letter in x for one in letters] for x in X])
    counts = {f"{k}-mers": CountVectorizer(analyzer="char", ngram_range=(k, k)).fit_transform(X) for k in (2, 3, 4)}
    return {"letters by position": places.astype(np.int64)} | {k: one.toarray() for k, one in counts.items()}


def cost(only: str = "", seed: int = 0) -> list[Row]:
    """Return accuracy, bytes, instructions and time of compressed models, beside forests by emlearn and C by HDCC."""
    rival, checkout, rows = Rival("SIMILIA_EMLEARN_PYTHON"), hdcc.checkout(), []
    for task in _tasks():
        if only not in task.name:
            continue
        task.seed = seed
        train, _ = task.halves
        X, y = take(task.X, train), task.y[train]
        found = sm.devices.compress(task.model, X, y)
        name, ours, accuracy = _exported(task, found)
        true = task.y[task.others]
        before = float(np.mean(found.model.predict(take(task.X, task.others)) == true))
        majority = float(np.mean(true == max(set(y.tolist()), key=y.tolist().count)))
        what = f"{name}: accuracy on {len(true)} others in whole numbers, {accuracy:.3f}"
        rows += [Row(what, f"before quantise, {before:.3f}", accuracy / before)]
        rows += [Row(what, f"majority, {majority:.3f}", accuracy / majority), *ours.rows(name)]
        print(*rows[-6:], sep="\n", flush=True)
        if rival:
            rows += _beside(rival, task, name, ours, accuracy, found.chosen.accuracy)
        if checkout and task.name == "digits":  # its text files hold numbers, as many for each object
            theirs = hdcc.smallest(checkout, X.astype(np.int64), y, take(task.X, task.others).astype(np.int64), true)
            spare = max(size.accuracy for size in found.sizes) - theirs.best
            less = sm.devices.compress(task.model, X, y, max_loss=max(spare, 0.0))  # as accurate as HDCC's best
            beside = [*theirs.rows(name, ours, accuracy), *theirs.rows(*_exported(task, less))]
            print(*beside, sep="\n", flush=True)
            rows += beside
    return rows


def _exported(task: Task, found: Any) -> tuple[str, Cost, float]:
    """Write C of a compressed model; return its name, what it takes and its accuracy on the others."""
    train, _ = task.halves
    others, size = take(task.X, task.others), found.chosen
    with tempfile.TemporaryDirectory() as folder:
        small = sm.export_c(found.model, folder, take(task.X, train))
        caller = _caller(small, small.input.arguments(small.input.read(others)))
        ours = measured(Path(folder), "model.c", caller, "model_predict", len(task.others))
    assert small.classes_ is not None
    predicted = small.predict(others)
    if (small.classes_[ours.labels] != predicted).any():
        raise RuntimeError(f"{task.name}: labels in C differ from those in Python")
    name = f"{task.name}, {size.n_landmarks} landmarks, {size.n_bits} bits, prototypes of {size.prototype_bits}"
    return name, ours, float(np.mean(predicted == task.y[task.others]))


def _caller(small: Any, arguments: list[Any]) -> str:
    """Write C that calls the model for object i."""
    letters = hasattr(small.input, "letters")
    kind, length = ("uint8_t", "lengths[i]") if letters else ("int16_t", "")
    rows = np.concatenate([[0], np.cumsum([len(values) for values in arguments])])
    lines = ['#include "model.h"', c_array(kind, "numbers", np.concatenate(arguments)), c_array("uint32_t", "at", rows)]
    given = "numbers + at[i]" + (", at[i + 1] - at[i]" if length else "")
    return "\n".join([*lines, f"int one(unsigned i) {{ int32_t l = -1; model_predict({given}, &l); return l; }}"])


# ---- a random forest by emlearn

# Features are doubled: emlearn cuts thresholds, which lie at halves, to whole numbers.
RIVAL = """
import json, sys
import emlearn, numpy as np
from sklearn.ensemble import RandomForestClassifier
data = np.load(sys.argv[1])
trees, depth, leaf_bits = map(int, sys.argv[3:6])
model = RandomForestClassifier(trees, max_depth=depth or None, random_state=0).fit(2 * data["X"], data["y"])
sources = []
for method in ("inline", "loadable"):
    if method == "inline" or data["X"].shape[1] <= 127:
        found = emlearn.convert(model, method=method, dtype="int16_t", leaf_bits=leaf_bits)
        sources.append(found.save(name="forest", include_proba=False))
print(json.dumps({"version": emlearn.__version__ if hasattr(emlearn, "__version__") else "",
                  "include": emlearn.includedir, "sources": sources}))
"""
_TREES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)
_DEPTHS = (2, 3, 4, 5, 6, 8, 10, None)


@dataclass(frozen=True)
class Forest:
    """A forest that was tried: what it reads, its parameters, accuracy in cross-validation and bytes, roughly."""

    view: str
    trees: int
    depth: int | None
    leaf_bits: int
    accuracy: float
    n_bytes: float


def _beside(rival: Rival, task: Task, name: str, ours: Cost, accuracy: float, wanted: float) -> list[Row]:
    """Return what a forest takes that is as accurate as ours in cross-validation, or the most accurate."""
    (train, _), shuffled = task.halves, task.others
    views = task.views(task.X)
    best = _chosen({view: X[train] for view, X in views.items()}, task.y[train], wanted)
    X, (classes, y) = views[best.view], np.unique(task.y[train], return_inverse=True)
    arrays = {"X": X[train], "y": y}
    answer, _ = rival.run(RIVAL, arrays, best.trees, best.depth or 0, best.leaf_bits)
    costs = []
    for source in answer["sources"]:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "forest.c").write_text(source)
            numbers = c_array("int16_t", "numbers", 2 * X[shuffled])
            call = f"int one(unsigned i) {{ return forest_predict(numbers + i * {X.shape[1]}u, {X.shape[1]}); }}"
            declared = "#include <stdint.h>\nint32_t forest_predict(const int16_t *features, int32_t length);"
            caller = "\n".join([declared, numbers, call])
            costs.append(measured(Path(folder), "forest.c", caller, "forest_predict", len(shuffled), answer["include"]))
    theirs = min(costs, key=lambda one: one.n_bytes or 0)
    found = float(np.mean(classes[theirs.labels] == task.y[shuffled]))
    trees = f"{best.trees} tree{'s' if best.trees > 1 else ''} {f'of depth {best.depth}' if best.depth else 'in full'}"
    reached = "" if best.accuracy >= wanted else ", the best"
    forest = f"emlearn {answer['version']}".strip() + f", {trees}, {best.view}{reached}"
    print(f"{task.name}: forests in cross-validation {best.accuracy:.3f}, ours {wanted:.3f}; {best}")
    rows = [Row(f"{name}: accuracy on {len(shuffled)} others", f"{forest}: {found:.3f}", accuracy / found)]
    note = "" if task.name == "digits" else ", making its features not counted"
    for what, unit, mine, other in (
        ("constants and code on a Cortex-M4", "bytes", ours.n_bytes, theirs.n_bytes),
        ("instructions for a label on a Cortex-M4", "instructions" + note, ours.instructions, theirs.instructions),
        ("time for a label here, gcc -O2", "µs" + note, 1e6 * ours.seconds, 1e6 * theirs.seconds),
    ):
        if mine is not None and other is not None:
            more = ", more" if mine > other else ""
            rows.append(Row(f"{name}: {what}{more}", f"the forest, {rounded(other)} {unit}", mine / other))
    print(*rows, sep="\n", flush=True)
    return rows


def _chosen(views: dict[str, npt.NDArray], y: npt.NDArray, wanted: float) -> Forest:
    """Return the smallest forest that is `wanted` accurate in cross-validation, or the most accurate one.

    The first trees of a forest are a smaller forest, so that one fit is enough for all numbers of trees.
    """
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    classes = np.unique(y)
    found = []
    for view, X in views.items():
        for depth in _DEPTHS:
            hits: dict[tuple[int, int], list[float]] = {}
            sizes: dict[tuple[int, int], list[float]] = {}
            for train, test in folds:
                forest = RandomForestClassifier(max(_TREES), max_depth=depth, random_state=0).fit(X[train], y[train])
                shares = np.stack([tree.predict_proba(X[test]) for tree in forest.estimators_])
                votes = shares.argmax(axis=2)[:, :, None] == np.arange(len(classes))
                leaves = np.cumsum([tree.tree_.n_leaves for tree in forest.estimators_])
                for trees in _TREES:
                    for leaf_bits, part in ((0, votes), (8, shares)):
                        labels = classes[part[:trees].sum(axis=0).argmax(axis=1)]
                        n_bytes = 8 * leaves[trees - 1] * (1 + len(classes) * (leaf_bits > 0) / 8)
                        hits.setdefault((trees, leaf_bits), []).append(float(np.mean(labels == y[test])))
                        sizes.setdefault((trees, leaf_bits), []).append(float(n_bytes))
            found += [
                Forest(view, trees, depth, leaf_bits, float(np.mean(hits[trees, leaf_bits])), float(np.mean(size)))
                for (trees, leaf_bits), size in sizes.items()
            ]
    good = [forest for forest in found if forest.accuracy >= wanted]
    if good:
        return min(good, key=lambda forest: forest.n_bytes)
    return max(found, key=lambda forest: (forest.accuracy, -forest.n_bytes))


# ---- random inputs

# Inputs are copied to memory of exactly their size, so that a read beyond them is noticed. Whether one is to be refused
# is computed here too.
_FUZZ = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
static uint8_t code[MODEL_CODE_BYTES];
static unsigned long long good, bad;

static void *copied(const uint8_t *data, size_t size, size_t wanted) {
  uint8_t *found = malloc(wanted ? wanted : 1);
  for (size_t i = 0; i < wanted; i++) found[i] = size ? data[i % size] : 0;
  return found;
}

static void one(const uint8_t *data, size_t size) {
  int32_t label = -5, again = -5;
  int mode = size ? data[0] : 0, status, other, allowed;
  if (size) data++, size--;
#if defined GRAPHS
  uint32_t n = size ? data[0] % (MODEL_MAX_NODES + 2) : 0, last;
  uint32_t *first = calloc(n + 1, 4);
  if (mode % 8 == 7) {
    uint8_t *raw = copied(data, size, 4 * (n + 1));
    for (uint32_t v = mode & 32 ? 0 : 1; v <= n; v++)
      first[v] = raw[4 * v] | (mode & 64 ? (uint32_t)raw[4 * v + 1] << 24 : 0);
    free(raw);
  } else {
    for (uint32_t v = 0; v < n; v++) first[v + 1] = first[v] + data[(v + 1) % size] % (2u + (uint32_t)mode / 32u);
  }
  last = n ? first[n] : 0;
  if (last > MODEL_MAX_ARCS) last = MODEL_MAX_ARCS;
  uint32_t *target = malloc(last ? 4 * last : 1);
  for (uint32_t a = 0; a < last; a++) {
    target[a] = size ? data[(3 * a + 1) % size] : 0;
    if (mode % 8 < 6 && n) target[a] %= n;
  }
  int64_t *labels = copied(data, size, 8 * n), *edges = copied(data, size, 8 * last);
  if (mode % 2) for (uint32_t v = 0; v < n; v++) labels[v] &= 7;
  model_graph given = { .n_nodes = n, .first_arc = first, .target = mode == 250 ? 0 : target };
#if NODE_LABELS
  given.labels = mode == 251 ? 0 : labels;
#endif
#if EDGE_LABELS
  given.edge_labels = mode == 252 ? 0 : edges;
#endif
  allowed = n <= MODEL_MAX_NODES && (n == 0 || (first[0] == 0 && first[n] <= MODEL_MAX_ARCS));
  for (uint32_t v = 0; v < n; v++) allowed = allowed && first[v] <= first[v + 1];
  for (uint32_t a = 0; a < last; a++) allowed = allowed && target[a] < n;
  if ((mode == 250 || mode == 252) && last) allowed = allowed && (mode == 252 && !EDGE_LABELS);
  if (mode == 251 && n) allowed = allowed && !NODE_LABELS;
  status = model_transform(&given, code);
  other = model_predict(&given, &label);
  free(first), free(target), free(labels), free(edges);
#elif defined LETTERS
  uint8_t *letters = copied(data, size, size);
  if (mode % 8) for (size_t i = 0; i < size; i++) letters[i] = (uint8_t)LETTERS[letters[i] % (sizeof LETTERS - 1)];
  allowed = mode != 250 && size <= MODEL_MAX_LENGTH;
  for (size_t i = 0; i < size; i++) allowed = allowed && letters[i] && strchr(LETTERS, letters[i]) != NULL;
  status = model_transform(mode == 250 ? 0 : letters, (uint32_t)size, code);
  other = model_predict(mode == 250 ? 0 : letters, (uint32_t)size, &label);
  free(letters);
#elif defined MODEL_CHANNELS
  uint32_t length = (uint32_t)(size / 2 / MODEL_CHANNELS);
  int16_t *values = copied(data, size, 2 * MODEL_CHANNELS * length);
  if (mode % 2) for (size_t i = 0; i < MODEL_CHANNELS * length; i++) values[i] = (int16_t)(values[i] % 32);
  allowed = mode != 250 && length > 0 && length <= MODEL_MAX_LENGTH;
  status = model_transform(mode == 250 ? 0 : values, length, code);
  other = model_predict(mode == 250 ? 0 : values, length, &label);
  free(values);
#else
  int16_t *x = copied(data, size, 2 * MODEL_FEATURES);
  for (size_t i = 0; mode % 4 == 1 && i < MODEL_FEATURES; i++) x[i] = x[i] < 0 ? -32767 - 1 : 32767;
  allowed = mode != 250;
  status = model_transform(mode == 250 ? 0 : x, code);
  other = model_predict(mode == 250 ? 0 : x, &label);
  free(x);
#endif
  if (status != other || (status == 0) != allowed || (status && label != -5)) abort();
  if (!status && (label < 0 || label >= MODEL_CLASSES || model_classify(code, &again) || again != label)) abort();
  if (status) bad++; else good++;
}

#if defined LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { one(data, size); return 0; }
#else
int main(int n, char **arguments) {
  static uint8_t bytes[MOST + 8];
  uint64_t state = UINT64_C(88172645463325252);
  for (long long run = n > 1 ? atoll(arguments[1]) : 0; run > 0; run--) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    size_t size = (size_t)(state >> 40) % (MOST + 1);
    for (size_t i = 0; i < size; i += 8) {
      state ^= state << 13; state ^= state >> 7; state ^= state << 17;
      uint64_t scrambled = state * UINT64_C(0x9E3779B97F4A7C15);
      memcpy(bytes + i, &scrambled, 8);
    }
    one(bytes, size);
  }
  printf("%llu %llu\n", good, bad);
  return 0;
}
#endif
"""
_CHECKED = ["-std=c99", "-g", "-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def fuzz(n: int) -> list[Row]:
    """Return how many of n random inputs, shared among the models, make a program with checks end with an error."""
    models = list(Models(8, 64))
    share, rows = -(-n // len(models)), []
    for name, model, X in models:
        with tempfile.TemporaryDirectory() as folder:
            small = sm.export_c(model, folder, X)
            flags, most = _flags(small)
            (Path(folder) / "fuzz.c").write_text(_FUZZ)
            sources = [f"-I{folder}", f"{folder}/model.c", f"{folder}/fuzz.c", *flags, f"-DMOST={most}"]
            program = f"{folder}/fuzz"
            output_of(["gcc", *_CHECKED, *sources, "-o", program])
            done = subprocess.run([program, str(share)], capture_output=True, text=True, check=False)
            counts = [int(count) for count in done.stdout.split()] or [0, 0]
            told = f"{share} random inputs, {counts[0]} labelled and {counts[1]} refused"
            what = f"{name}, {told}: wrong accesses, overflows, wrong refusals"
            rows.append(
                Row(what, "gcc with address and undefined sanitizers, none", int(done.returncode != 0), at_most=0)
            )
            print(rows[-1], done.stderr[-3000:], flush=True)
            command = ["clang", *_CHECKED, "-fsanitize=fuzzer", "-DLIBFUZZER", *sources, "-o", program]
            if not installed("clang") or subprocess.run(command, capture_output=True, check=False).returncode:
                print("skipped: clang has no libFuzzer here")
                continue
            options = [f"-runs={-(-share // 10)}", f"-max_len={most}", "-seed=1", f"-artifact_prefix={folder}/"]
            done = subprocess.run([program, *options], capture_output=True, text=True, check=False)
            tried = re.findall(r"Done (\d+) runs", done.stderr)
            what = f"{name}, {tried[0] if tried else 0} inputs of libFuzzer: wrong accesses, overflows, wrong refusals"
            rows.append(Row(what, "clang with the same sanitizers, none", int(done.returncode != 0), at_most=0))
            print(rows[-1], done.stderr[-3000:] if done.returncode else "", flush=True)
    return rows


def _flags(small: Any) -> tuple[list[str], int]:
    """Return definitions for the program above, and the most bytes of an input: some more than the model accepts."""
    read = small.input
    if hasattr(read, "letters"):
        return [f'-DLETTERS="{bytes(read.letters.known).decode("ascii")}"'], read.letters.longest * 9 // 8 + 8
    if read.kind == "subtrees":
        labels = [f"-DNODE_LABELS={read.node_labels:d}", f"-DEDGE_LABELS={read.edge_labels:d}"]
        return ["-DGRAPHS", *labels], 4 * read.most_nodes + 2
    if hasattr(read, "longest") and read.longest:
        return [], 2 * read.n_channels * (read.longest + 2)
    return [], 2 * len(read.units.steps) + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--fuzz", type=int, metavar="N")
    parser.add_argument("--task", default="", help="only this one, for --cost")
    parser.add_argument("--split", type=int, default=0, help="seed of the halves, for --cost")
    parser.add_argument("--inputs", type=int, default=N_EQUAL, help="of each model, for --equal")
    chosen = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = [
            *(equal(chosen.inputs) if chosen.equal else []),
            *(cost(chosen.task, chosen.split) if chosen.cost else []),
        ]
        rows += fuzz(chosen.fuzz) if chosen.fuzz else []
    if not (chosen.equal or chosen.cost or chosen.fuzz):
        rows = run()
    print("", *(f"| {row.what} | {row.rival} | {row.ratio:.3g} | {row.goal} | {row.met} |" for row in rows), sep="\n")


if __name__ == "__main__":
    main()
