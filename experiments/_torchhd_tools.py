"""The classifiers of torchhd, run in an environment of their own.

    python -P _torchhd_tools.py FOLDER

`FOLDER` holds ``objects.npz`` (vectors ``train_FORM`` and ``test_FORM`` for each form of the objects, and labels
``y_train`` and ``y_test``, 0 to c - 1) and ``options.json`` (``runs``: pairs of classifier and seed; ``epochs``: of
those that learn in epochs, null for their default). A line with ``RESULT`` and JSON goes to standard output after each
run. Nothing here imports similia.

All is torchhd's, in batches of 12 as in its example, but for one shortcut: codes are made once, and again after a
classifier changed its encoder, not in each epoch; those by levels with matrix products instead of one sum for each
sample. `check` compares the first of them with torchhd's own.

The form and the scaling of the features are chosen for each classifier on a quarter of the training part (at most 4000
objects), with 10 epochs: to [0, 1], to mean 0 and deviation 1 (torchhd's example), or vectors to unit length
(OnlineHD's example).
DistHD stops with an error if an epoch makes no mistake, since it has no scores of dimensions then; here they are 0.
IntRVFL always has [0, 1], which its thermometers span. Of its pseudo-inverse only the eigenvalues above the cut-off of
`torch.linalg.pinv` are computed, which are few.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

with contextlib.suppress(ModuleNotFoundError):  # tests collect this file where torchhd is not installed
    import torch
    from torchhd import classifiers, functional

N_BITS, BATCH, MOST, TRIAL_EPOCHS = 10_000, 12, 4_000, 10
BY_LEVELS = ("Vanilla", "AdaptHD", "CompHD", "SparseHD", "QuantHD", "LeHDC")  # keys of features, bound to levels
IN_EPOCHS = ("AdaptHD", "OnlineHD", "NeuralHD", "DistHD", "SparseHD", "QuantHD", "LeHDC")
SCALINGS = ("to [0, 1]", "standardised", "unit length")


def scaled(how: str, train: np.ndarray, *parts: np.ndarray) -> list[torch.Tensor]:
    """Return `train` and `parts` scaled by what `train` has."""
    if how == "unit length":
        found = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in (train, *parts)]
    else:
        low, width = (train.min(0), np.ptp(train, 0)) if how == "to [0, 1]" else (train.mean(0), train.std(0))
        found = [(X - low) / np.where(width > 0, width, 1) for X in (train, *parts)]
    return [torch.from_numpy(X.astype(np.float32)) for X in found]


def bound_sums(keys: torch.Tensor, table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return, for each row of `index` (n, features), the sum of keys times the rows of `table` that it names.

    The sum for the lowest row, and what each further one adds in the dimensions where it differs from the one before.
    All are sums of small integers, which float32 holds exactly.
    """
    keys, table = keys.as_subclass(torch.Tensor), table.as_subclass(torch.Tensor)
    used = torch.unique(index)
    codes = (keys.sum(0) * table[used[0]]).repeat(len(index), 1)
    for before, level in pairwise(used):
        step = table[level] - table[before]
        columns = torch.nonzero(step).ravel()
        codes[:, columns] += (index >= level).float() @ (keys[:, columns] * step[columns])
    return codes


def level_index(levels: Any, X: torch.Tensor) -> torch.Tensor:
    """Return which hypervector stands for each value, as torchhd's levels and thermometers choose it."""
    index = functional.value_to_index(X, levels.low, levels.high, levels.num_embeddings)
    return index.clamp(min=0, max=levels.num_embeddings - 1)


def encoder_of(name: str, model: Any) -> Any:
    """Return the function from features to codes of a classifier whose codes do not change; otherwise None."""
    if name in BY_LEVELS:
        keys = model.feat_keys if hasattr(model, "feat_keys") else model.keys
        return lambda X: bound_sums(keys.weight, model.levels.weight, level_index(model.levels, X)).sign()
    if name == "IntRVFL":
        density = model.encoder
        thermometer = density.density_encoding
        return lambda X: bound_sums(density.key.weight, thermometer.weight, level_index(thermometer, X))
    if name == "OnlineHD":
        return lambda X: torch.cat([model.encoder(part).as_subclass(torch.Tensor) for part in X.split(1000)])
    return None


def check(model: Any, X: torch.Tensor, codes: torch.Tensor) -> None:
    """Raise an error if `codes` are not those of torchhd."""
    theirs = torch.cat([model.encoder(x).as_subclass(torch.Tensor) for x in X.split(1)])
    if not torch.allclose(theirs.float(), codes, atol=1e-5):
        raise AssertionError("codes differ from torchhd's")


def give_codes(name: str, model: Any) -> None:
    """Let the classifier take codes for features."""
    if name == "IntRVFL":
        model.model.encoding = torch.nn.Identity()
    elif name == "OnlineHD":
        model.encoder = torch.nn.Identity()
    else:
        model.encoder = lambda codes: codes


class Remembered:
    """An encoder that takes numbers of rows of `X`, and makes codes again only after its weights were asked for."""

    def __init__(self, encoder: Any, X: torch.Tensor) -> None:
        self.inner, self.X, self.codes = encoder, X, None

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the codes of rows of X, given by their numbers, or of vectors."""
        if rows.is_floating_point():
            return self.inner(rows)
        if self.codes is None:
            self.codes = torch.cat([self.inner(part).as_subclass(torch.Tensor) for part in self.X.split(1000)])
        return self.codes[rows]

    @property
    def weight(self) -> torch.Tensor:
        """The weights, which who asks for them changes."""
        self.codes = None
        return self.inner.weight

    @property
    def bias(self) -> torch.Tensor:
        """The bias, likewise."""
        self.codes = None
        return self.inner.bias


def pseudo_inverse(A: torch.Tensor) -> torch.Tensor:
    """Return the pseudo-inverse of a symmetric matrix without negative eigenvalues, as `torch.linalg.pinv` cuts it."""
    A = A.as_subclass(torch.Tensor)
    cut, k = len(A) * torch.finfo(A.dtype).eps, min(100, len(A) - 1)
    while True:
        found, vectors = eigsh(A.numpy(), k=k, v0=np.ones(len(A), np.float32))
        kept = found > cut * found.max()
        if not kept.all() or k == len(A) - 1:
            break
        k = min(2 * k, len(A) - 1)
    vectors = torch.from_numpy(np.ascontiguousarray(vectors[:, kept], np.float32))
    return vectors / torch.from_numpy(found[kept].astype(np.float32)) @ vectors.T


class Batches:
    """Batches in a new random order in each epoch: what torchhd calls a loader."""

    def __init__(self, X: torch.Tensor, y: torch.Tensor) -> None:
        self.X, self.y = X, y

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        torch.empty((), dtype=torch.int64).random_()  # a DataLoader draws one number here: equal orders for equal seeds
        for rows in torch.randperm(len(self.y)).split(BATCH):
            yield self.X[rows], self.y[rows]


def score(name: str, seed: int, epochs: int | None, parts: list[torch.Tensor], labels: list[torch.Tensor]) -> Any:
    """Return the share of right answers for the second part, and the seconds that codes and learning took."""
    torch.manual_seed(seed)
    options = {"epochs": epochs} if name in IN_EPOCHS and epochs else {}
    if options and name in ("NeuralHD", "DistHD"):
        options["regen_freq"] = max(1, epochs // 2)  # as torchhd's example
    d = 8192 if name == "CompHD" else N_BITS  # it takes powers of 2 only
    n_classes = 1 + int(labels[0].max())
    start = time.perf_counter()
    model = getattr(classifiers, name)(parts[0].shape[1], d, n_classes, **options)
    if name == "DistHD":
        scores = model.regen_score
        model.regen_score = lambda samples, found: scores(samples, found) + torch.zeros(d)
    encode = encoder_of(name, model)
    train, test = parts
    if encode is not None:
        with torch.no_grad():
            train = encode(parts[0])
            check(model, parts[0][:3], train[:3])
    encoding = time.perf_counter() - start
    if encode is not None:
        with torch.no_grad():
            test = encode(parts[1])
        give_codes(name, model)
    elif name in ("NeuralHD", "DistHD"):
        inner = model.encoder
        del model.encoder  # otherwise torch wants a module
        model.encoder = Remembered(inner, train)
        train = torch.arange(len(train))
    begun = time.perf_counter()
    if name == "LeHDC":
        model.fit(Batches(train, labels[0]))
        model.eval()
    else:
        with torch.no_grad():
            model.fit(Batches(train, labels[0]))
    seconds = encoding + time.perf_counter() - begun
    with torch.no_grad():
        hits = sum(
            int((model.predict(x) == y).sum()) for x, y in zip(test.split(500), labels[1].split(500), strict=True)
        )
    return hits / len(labels[1]), seconds


def main(folder: Path) -> None:
    """Run what ``options.json`` asks for."""
    torch.set_num_threads(1)
    torch.linalg.pinv = pseudo_inverse  # only IntRVFL calls it
    data = np.load(folder / "objects.npz")
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    y = [torch.from_numpy(data[f"y_{part}"].astype(np.int64)) for part in ("train", "test")]
    order = np.random.default_rng(0).permutation(len(y[0]))[:MOST]
    inner, outer = order[len(order) // 4 :], order[: len(order) // 4]
    forms = [key.removeprefix("train_") for key in data if key.startswith("train_")]
    chosen: dict[str, tuple[str, str]] = {}
    for name, seed in options["runs"]:
        if name not in chosen:
            trials = dict.fromkeys(product(forms, SCALINGS[:1] if name == "IntRVFL" else SCALINGS), 0.0)
            if len(trials) > 1:
                for form, how in trials:
                    X = data[f"train_{form}"]
                    parts = scaled(how, X[inner], X[outer])
                    trials[form, how] = score(name, 0, TRIAL_EPOCHS, parts, [y[0][inner], y[0][outer]])[0]
            chosen[name] = max(trials, key=trials.__getitem__)
        form, how = chosen[name]
        parts = scaled(how, data[f"train_{form}"], data[f"test_{form}"])
        share, seconds = score(name, seed, options["epochs"], parts, y)
        result = {"learner": name, "run": seed, "accuracy": 100 * share, "seconds": seconds, "chosen": f"{form} {how}"}
        print("RESULT", json.dumps(result), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
