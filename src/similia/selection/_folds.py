"""Targets checked, and objects put in an order of which every beginning is stratified, in folds as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold

from similia._validation import check_labels, check_positive_int
from similia.learn.targets import Task, as_numbers, task_of
from similia.objects._sequences import _short

Index = npt.NDArray[np.int64]


def checked_targets(y: Any, n: int, task: str, cv: Any, scoring: Any = None) -> tuple[npt.NDArray, Task, int]:
    """Return the targets as an array, the task and the number of folds, or raise with what is wrong with them."""
    folds = check_positive_int(cv, "cv", minimum=3)
    y = check_labels(y, n)
    _check_complete(y)
    decided = task_of(y, task, scoring)
    if n < 2 * folds:
        raise ValueError(f"select needs at least {2 * folds} objects for cv={folds} folds, found {n}")
    numbers = as_numbers(y) if decided == "regression" else None
    if numbers is None:
        _check_classes(y, folds)
        return y, decided, folds
    if numbers.min() == numbers.max():
        raise ValueError(f"all {n} targets are {numbers[0]:g}, expected at least two different numbers")
    return numbers, decided, folds


def _check_complete(y: npt.NDArray) -> None:
    missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.array([label is None or label != label for label in y])
    if missing.any():
        i = int(np.argmax(missing))
        raise ValueError(f"y[{i}] is {y[i]}, expected a label or a finite number; leave that object out")


def _check_classes(y: npt.NDArray, folds: int) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise ValueError(f"y has the one class {_short(_plain(classes[0]))}, expected at least two")
    least = int(counts.argmin())
    if counts[least] >= folds:
        return
    found = f"the class {_short(_plain(classes[least]))} has {counts[least]} object{'s' * int(counts[least] > 1)}"
    if len(classes) > 20 and as_numbers(y) is not None:
        raise ValueError(f'{found}, cv={folds} folds need {folds}; are these numbers? write task="regression"')
    if counts[least] >= 3:
        raise ValueError(f"{found}, and cv={folds} folds need {folds} of each class; write cv={counts[least]}")
    raise ValueError(f"{found}, and folds need at least 3 of each class; leave it out or join it with another class")


@dataclass(frozen=True)
class Order:
    """Objects in an order of which every beginning is a fair sample.

    Attributes
    ----------
    objects : ndarray of int64, shape (n,)
        Objects in that order.
    fold : ndarray of int64, shape (n,)
        Fold of each, in that order: of each class the folds take turns.
    """

    objects: Index
    fold: Index


def ordered(y: npt.NDArray, task: str, folds: int, rng: np.random.Generator) -> Order:
    """Return a random order; of classes, `folds` objects of each come first, then all in proportion."""
    n = len(y)
    if task == "regression":
        return Order(rng.permutation(n), np.arange(n) % folds)
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = np.empty(n, dtype=np.int64)
    for label in range(len(counts)):
        members = np.flatnonzero(labels == label)
        rank[members] = rng.permutation(len(members))
    place = (rank + rng.random(len(counts))[labels]) / counts[labels]
    objects = np.argsort(np.where(rank < folds, place - 2, place), kind="stable")
    shift = np.cumsum(counts) - counts  # classes begin at different folds, so that folds are of one size
    return Order(objects, ((rank + shift[labels]) % folds)[objects])


def again(y: npt.NDArray, task: str, folds: int, seed: int) -> Index:
    """Return another partition of objects into folds."""
    splitter: Any = KFold(folds, shuffle=True, random_state=seed)
    if task == "classification":
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    fold = np.empty(len(y), dtype=np.int64)
    for i, (_, held) in enumerate(splitter.split(np.zeros(len(y)), y)):
        fold[held] = i
    return fold


def _plain(value: Any) -> Any:
    """Return a numpy scalar as Python has it."""
    return value.item() if hasattr(value, "item") else value
