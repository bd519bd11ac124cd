"""Train for ``similia fit``: check options, hold out a part, choose or make a pipeline, and score it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeCV
from sklearn.metrics import accuracy_score, get_scorer, get_scorer_names, r2_score, recall_score

import similia as sm
from similia.cli.inputs import DEFAULT_DISTANCE, DEFAULT_KERNEL, Objects, check_comparison, print_note_on_case
from similia.cli.options import check_bits, first_given, parse_comparison, parse_distance, parse_kernel, parse_one
from similia.cli.outputs import meters
from similia.cli.voice import console, note
from similia.core.config import n_threads
from similia.core.text import did_you_mean, short
from similia.learn.targets import TASKS, as_numbers, failure_of, needs_probabilities, suits, task_of
from similia.objects import AttributeScaler, n_objects
from similia.pipelines import Pipeline, parts_of
from similia.selection.budget import rows_of, table_of
from similia.selection.folds import held_out
from similia.similarity import Distance
from similia.sources.source import looks_numeric

_UNITS = {"s": 1, "m": 60, "h": 3600}
_SHOWN, _CV, _VOTERS = 10, 5, 5
_DIRECTIONS = ("gaussian", "hadamard")
_PROCESS = "gaussian-process"
_LITTLE = 0.1  # R squared of numbers predicted from the others, below which the kernel explains little
_NORMAL_95 = 1.96  # standard deviations on either side of the mean that hold 95 % of a normal distribution
_MANY_CLASSES = 10  # if numbers are labels of more classes, a note says that they can be predicted as numbers
_NO_VALUE = frozenset({"nan", "na", "n/a", "null", "?"})  # how tables spell a missing value
_UNIT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*([^\d\s.,].*)")  # what stands behind a number
_UNITS_OF_A_COLUMN = 3  # at most; more are rather parts of names
_FINAL = 0.2  # share of the budget for the final fit to all objects, after scoring the held-out part
_FINAL_CROSS = 0.5  # the same for the final fits, one to all objects and one for each fold, that calibrate a model
_FEWER_FOLDS = 1000  # from this many objects, 3 folds choose as well as 5, in half the time
_SUIT = {"classification": "balanced_accuracy or f1_macro", "regression": "r2 or neg_mean_absolute_error"}


@dataclass(frozen=True)
class Part:
    """Objects, targets, and how to split them: hold out the share `test` to score a model fitted to the rest."""

    read: Objects
    y: npt.NDArray
    task: str  # "classification" or "regression"
    test: float  # share to hold out
    seed: int
    scoring: str | None
    conformal: bool = False  # whether to calibrate the model, with the held-out objects
    cross: bool = False  # whether all objects calibrate it instead, in folds
    by_class: bool = False  # whether to calibrate each class with its own objects

    def described(self) -> str:
        classes = len(np.unique(self.y))
        targets = (
            "with numbers to predict" if self.task == "regression" else f"in {classes} class{'es' * (classes > 1)}"
        )
        return f"{len(self.y)} {self.read.called} {targets}"

    def split(self) -> tuple[npt.NDArray, npt.NDArray]:
        """Return the positions of training and of held-out objects; raise if a class has no training object."""
        y = self.y
        if not self.test:
            return np.arange(len(y)), np.arange(0)
        train, test = held_out(self.read.objects, y, self.test, self.seed, stratify=self.task == "classification")
        lost = np.setdiff1d(y[test], y[train]) if self.task == "classification" else y[:0]
        if len(lost) and np.count_nonzero(y == lost[0]) == 1:
            raise ValueError(
                f"class {short(lost[0].item())} has one object, and --test {self.test:g} holds it out; give more "
                "objects of this class, leave it out, or use --test 0, which holds out none"
            )
        if len(lost):
            raise ValueError(
                f"--test {self.test:g} holds out all objects of class {short(lost[0].item())}, because copies of an "
                "object and near copies of a text stay together; use another --seed, or --test 0, which holds out none"
            )
        return train, test

    def take(self, rows: npt.NDArray) -> tuple[Any, npt.NDArray]:
        return sm.objects.take(self.read.objects, rows), self.y[rows]

    def calibrated(self, model: Any, rows: npt.NDArray) -> Any:
        """Return a conformal model around a fitted `model` that has not seen the objects at the positions `rows`.

        With `cross`, it is around copies of `model`: one is fitted to all objects, and one without each fold.
        """
        how: dict[str, Any] = {"random_state": self.seed} | ({"by_class": True} if self.by_class else {})
        kind = sm.ConformalClassifier if self.task == "classification" else sm.ConformalRegressor
        if not self.cross:
            return kind(FrozenEstimator(model), **how).fit(*self.take(rows))
        copy, most = clone(model), len(self.y) * (_CV - 1) // _CV  # objects outside the largest fold
        for step in copy.get_params().values():
            if isinstance(step, sm.Nystroem) and step.n_components != "auto":
                step.n_components = min(step.n_components, most)
        return fitted(kind(copy, "cross", cv=_CV, **how), self.read.objects, self.y)


@dataclass(frozen=True)
class Recipe:
    """A model to fit, its kernel or distance, and the folds of its parameter search (0: none)."""

    model: Any
    compared: Any
    spec: str
    folds: int = 0


def chosen(part: Part, seconds: float, cv: int | None, voters: int | None) -> tuple[Any, dict[str, Any]]:
    """Choose a pipeline, score it on held-out objects, fit it to all or calibrate it; return it, and facts for JSON."""
    console().print(part.described())
    train, test = part.split()
    automatic = sm.AutoClassifier if part.task == "classification" else sm.AutoRegressor
    options: dict[str, Any] = {"scoring": part.scoring, "cv": cv or _CV, "max_voters": voters or _VOTERS}
    search = seconds * (1 - (_FINAL_CROSS if part.cross else _FINAL if len(test) else 0))
    if search < seconds:
        fits = "the fits to all objects and without each fold" if part.cross else "the fit to all objects"
        console().print(f"the search takes {search:g} s of the budget of {seconds:g} s, {fits} the rest")
    auto = automatic(search, random_state=part.seed, **options)
    with meters():
        auto.fit(*part.take(train))
    print_choice(auto, seconds)
    scores = None
    if len(test):
        scores = scores_of(auto, *part.take(test), part.task, auto.measure_, part.y[train])
        if not part.conformal:
            auto.refit(part.read.objects, part.y)
    option = option_of(auto)
    if option:
        console().print(f"to fit another model with the same similarity: similia fit ... {option}")
    nested = {"score": auto.best_score_, "interval": auto.best_score_interval_, "outer_folds": auto.n_outer_folds_}
    rows = rows_of({key: values for key, values in auto.cv_results_.items() if key != "estimator"})
    model = part.calibrated(auto.best_estimator_, test) if part.conformal else auto.best_estimator_
    return model, {
        "chosen": auto.best_name_,
        "option": option,
        "stopped_early": auto.stopped_early_,
        auto.measure_: nested,
        "held_out": scores,
        "candidates": rows,
        "notes": auto.notes_,
    }


def print_choice(auto: Any, budget: float) -> None:
    """Print the candidates that a search has tried, the chosen one, its estimated score, and the notes."""
    say = console()
    rows = rows_of(auto.cv_results_)
    tried = [row for row in rows if row["n_objects"]]
    title = f"{len(tried)} of {len(rows)} candidates tried in {auto.seconds_:.0f} s of the {budget:g} s"
    say.print(table_of(tried[:_SHOWN], title, auto.measure_))
    if any(row["mean_test_score"] > tried[0]["mean_test_score"] for row in tried[1:_SHOWN]):
        say.print("a candidate that was dropped early has the score of its last round, of fewer objects or splits")
    name = auto.best_name_
    if name.startswith("vote of "):
        name = name.replace(": ", "\n  ", 1).replace("; ", "\n  ")
    say.print(f"chosen: {name}")
    if auto.stopped_:
        say.print("stopped with Ctrl-C: this is the best pipeline tried until then")
    if np.isfinite(auto.best_score_):
        low, high = auto.best_score_interval_
        interval = f", 95 % from {low:.3f} to {high:.3f}" if np.isfinite(low) else ""
        say.print(f"{auto.measure_} of a choice like this on new objects: {auto.best_score_:.3f}{interval}")
    for text in auto.notes_:
        note(f"note: {text}")


def made(part: Part, recipe: Recipe) -> tuple[Any, dict[str, Any]]:
    """Score a recipe on held-out objects, then fit it to all or calibrate it; return the model and facts for JSON."""
    check_comparison(recipe.compared, part.read, part.read.objects)
    print_note_on_case(part.read, recipe.compared)
    say = console()
    say.print(f"{part.described()}; {recipe.spec}")
    if recipe.folds:
        say.print(f"gamma and C are chosen by {recipe.folds}-fold cross-validation ...")
    train, test = part.split()
    model, scores = fitted(recipe.model, *part.take(train)), None
    if len(test):
        scores = scores_of(model, *part.take(test), part.task, part.scoring, part.y[train])
    model = getattr(model, "pipeline_", model)  # with the parameters that were chosen
    if recipe.folds:
        say.print(f"chosen: gamma = {model[0].gamma:.3g}, {model[-1]}")
    if part.conformal:
        model = part.calibrated(model, test)
    elif len(test):
        model = fitted(clone(model), part.read.objects, part.y)
    inner = getattr(model, "estimator_", model)
    inner = getattr(inner, "estimator", inner)  # the model in a FrozenEstimator
    return model, {"compared_by": recipe.spec, "held_out": scores} | _print_kernels(inner) | _print_process(inner)


def _print_kernels(model: Any) -> dict[str, Any]:
    """Print and return the kernels from which a Gaussian process chose, the best first; {} for other models."""
    if not isinstance(getattr(model, "kernel", None), list):
        return {}
    order = np.argsort(-model.evidences_, kind="stable")
    found = [{"kernel": spec_of(model.kernel[i]), "log_evidence": float(model.evidences_[i])} for i in order]
    say = console()
    say.print("logarithm of the evidence of each kernel; the first is taken, and --kernel names another:")
    for row in found:
        say.print(f"{row['log_evidence']:12.1f}  {row['kernel']}")
    return {"kernels": found}


def _print_process(model: Any) -> dict[str, Any]:
    """Print and return how often the standard deviations of a Gaussian process are right; {} for other models."""
    if not isinstance(model, sm.GaussianProcessRegressor):
        return {}
    within = float(np.mean(np.abs(model.targets_ - model.loo_mean_) <= _NORMAL_95 * model.loo_std_))
    explained = float(r2_score(model.targets_, model.loo_mean_))
    console().print(
        f"standard deviation of the noise: {model.noise_:.3g}; each number predicted from the others: R squared "
        f"{explained:.3f}, {within:.0%} lie within {_NORMAL_95} standard deviations (right would be 95 %)".replace(
            "% lie", " % lie"
        )
    )
    if explained < _LITTLE:
        note("note: this kernel explains little of the numbers, so nearly all is noise to it; try another --kernel")
    return {"noise": model.noise_, "within_95": within, "r_squared_from_others": explained}


def recipe_of(
    part: Part,
    kernel: str | None,
    distance: str | None,
    bits: int | None,
    landmarks: int | None,
    directions: str | None,
    learner: str | None = None,
) -> Recipe:
    """Return the recipe that the options ask for, or raise if they contradict each other."""
    if learner is not None:
        if option := first_given({"--distance": distance, "--bits": bits, "--directions": directions}):
            raise ValueError(f"--learner {learner[:40]} learns from a kernel, without bits; drop {option}")
        return _process_of(part, kernel, landmarks, learner)
    n, kind, seed = n_objects(part.read.objects), part.read.kind, part.seed
    if distance or (not kernel and kind not in DEFAULT_KERNEL):
        spec = distance or DEFAULT_DISTANCE[kind]
        compared = parse_distance(spec)
        if option := first_given({"--bits": bits, "--landmarks": landmarks, "--directions": directions}):
            raise ValueError(
                f"{option} is for models from a kernel, not from the distance {spec}; drop {option}, or give a --kernel"
            )
        folds = 5 if n < _FEWER_FOLDS else 3
        task: Any = part.task
        d2ke = sm.recipes.d2ke(compared, gamma="tune", C="tune", random_state=seed, task=task, cv=folds)
        return Recipe(d2ke, compared, f"distance {spec}", folds)
    spec = kernel or DEFAULT_KERNEL[kind]
    compared = parse_kernel(spec)
    if directions not in (None, *_DIRECTIONS):
        raise ValueError(f"--directions must be {' or '.join(_DIRECTIONS)}, got {directions[:40]!r}")
    n_bits = check_bits(10_000 if bits is None else bits)
    if part.task == "classification":
        nyshd = sm.recipes.nyshd(compared, n_landmarks=landmarks or "auto", n_bits=n_bits, random_state=seed)
        return Recipe(nyshd.set_params(projection__method=directions or _DIRECTIONS[0]), compared, f"kernel {spec}")
    if option := first_given({"--bits": bits, "--directions": directions}):
        raise ValueError(f"{option} is for classes, and the labels are numbers to predict; drop {option}")
    features = sm.Nystroem(compared, n_components=landmarks or "auto", random_state=seed)
    ridge = RidgeCV(alphas=np.logspace(-4, 4, 17))
    return Recipe(Pipeline([("nystroem", features), ("learner", ridge)]), compared, f"kernel {spec}")


def _process_of(part: Part, kernel: str | None, landmarks: int | None, learner: str) -> Recipe:
    if learner != _PROCESS:
        raise ValueError(f"--learner must be {_PROCESS}, got {learner[:40]!r}{did_you_mean(learner, [_PROCESS])}")
    compared = None if kernel is None else parse_kernel(kernel)
    kernels = sm.kernels.suggest_kernels(part.read.objects) if compared is None else compared
    kind = sm.GaussianProcessClassifier if part.task == "classification" else sm.GaussianProcessRegressor
    model = kind(kernels, n_landmarks=landmarks or "auto", random_state=part.seed)
    which = f"the one of {len(kernels)} kernels with the largest evidence" if kernel is None else f"the kernel {kernel}"
    return Recipe(model, compared, f"Gaussian process with {which}")


def fitted(model: Any, X: Any, y: npt.NDArray) -> Any:
    """Fit and return a model; show progress on a terminal; run the folds of a parameter search in threads."""
    from joblib import parallel_config

    with sm.config(progress=sys.stderr.isatty()), parallel_config("threading", n_jobs=n_threads()):
        return model.fit(X, y)


def parse_duration(text: str | float) -> float:
    """Return a duration such as ``600``, ``"90s"``, ``"10m"`` or ``"1.5h"`` in seconds."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(?:([smh])|(s)ec|(m)in)?\s*", str(text).lower())
    seconds = float(found[1]) * _UNITS[found[2] or found[3] or found[4] or "s"] if found else 0.0
    if not 0 < seconds < 1e9:
        raise ValueError(f"--budget must be a time such as 90s, 10m or 1h, got {str(text)[:40]!r}")
    return seconds


def option_of(model: Any) -> str:
    """Return the option that names a model's kernel or distance, such as ``--kernel "..."``, or "" if there is none."""
    parts = parts_of(model)
    found = parts.comparison(fitted=False)
    if found is None or isinstance(parts.steps[0], AttributeScaler):  # the kernel compares scaled attributes
        return ""
    text = spec_of(found.function)
    name = "distance" if isinstance(found.function, Distance) else "kernel"
    return f'--{name} "{text}"' if repr(parse_comparison(text)) == repr(found.function) else ""


def spec_of(function: Any) -> str:
    """Return a kernel or distance as a text on one line, such as ``--kernel`` takes."""
    return " ".join(repr(function).split()).replace("( ", "(").replace("[ ", "[")


# ---- checks of options and targets
def check_options(
    choosing: dict[str, Any], chooses: bool, kernel: str | None, distance: str | None, test: float, scoring: str | None
) -> Any:
    """Return the kernel or distance that options name, or None; raise if options are invalid or contradict each other.

    The options in `choosing` must be None unless `chooses`, that is, unless similia chooses the pipeline.
    """
    if not chooses and (option := first_given(choosing)):
        raise ValueError(
            f"{option} is for the choice among pipelines; drop it, or drop --kernel, --distance, --bits, "
            "--landmarks, --directions and --learner"
        )
    if not 0 <= test < 1:
        raise ValueError(f"--test must be at least 0 and below 1, got {test}")
    if scoring is not None and scoring not in get_scorer_names():
        meant = did_you_mean(scoring, get_scorer_names())
        some = f"{_SUIT['classification']} for classes, {_SUIT['regression']} for numbers"
        raise ValueError(f"--scoring {scoring[:40]} is no scorer of scikit-learn{meant}; some are {some}")
    return parse_one(kernel, distance)


def check_conformal(conformal: bool, cross: bool, by_class: bool, test: float, task: str | None = None) -> None:
    if (cross or by_class) and not conformal:
        option = "--cross" if cross else "--by-class"
        raise ValueError(f"{option} says how --conformal calibrates the model; add --conformal, or drop {option}")
    if conformal and not cross and not test:
        raise ValueError(
            "--conformal needs held-out objects, and --test 0 holds out none; drop one of them, or add --cross"
        )
    if by_class and task == "regression":
        raise ValueError("--by-class is for classes, and the labels are numbers to predict; drop --by-class")


def targets_of(read: Objects, task: str, scoring: str | None, label: str | None = None) -> tuple[npt.NDArray, str]:
    """Return the labels (as numbers for regression) and the task; `label` is the column named in error messages."""
    y = read.labels
    assert y is not None
    if task not in TASKS:
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {task}")
    numbers, by_score = as_numbers(y), suits(scoring) if task == "auto" else None
    if "regression" in (task, by_score) and numbers is None:
        other = next(value for value in y.tolist() if as_numbers([value]) is None)
        asked = f"--task {task}" if task == "regression" else f"--scoring {scoring}"
        raise ValueError(f"{asked} needs numbers, and the label {short(other)} of {read.source} is not a number")
    decided = task_of(y, task, scoring)
    if decided == "classification" or numbers is None:
        if task == "auto" and numbers is None:
            _check_decimal(read, y)
            _check_few_words(read, y)
            _check_units(read, y)
        if by_score == decided and task_of(y) == "regression":
            raise ValueError(
                f"--scoring {scoring} is for classes, and the labels of {read.source} are numbers; for numbers, use "
                f"{_SUIT['regression']}; --task classification takes the numbers as classes"
            )
        _check_classes(read, y, label)
        for doubt in _doubts(np.unique(y).tolist()):
            note(f"note: in the column {short(label or 'label')}, {doubt}")
        classes = len(np.unique(y))
        if task == "auto" and by_score is None and numbers is not None and classes > _MANY_CLASSES:
            note(
                f"note: column {short(label or 'label')} holds only numbers, taken as {classes} classes; "
                "--task regression predicts them as numbers"
            )
        fractions = y.dtype.kind == "f" and (y != np.round(y)).any()  # scikit-learn refuses fractions as classes
        return (y.astype(str) if fractions else y), decided
    if task == "auto" and by_score is None:
        note(
            f"note: the labels of {read.source} are {len(np.unique(y))} different numbers: they are predicted as "
            "numbers; --task classification takes them as classes"
        )
    return numbers, decided


def _check_decimal(read: Objects, y: npt.NDArray) -> None:
    cells = [label for label in y.tolist() if isinstance(label, str)]
    if len(cells) == len(y) and any("," in cell for cell in cells) and looks_numeric(cells, ","):
        raise ValueError(
            f"the labels of {read.source} look like numbers with a decimal comma ({cells[0]}); add --decimal , or "
            "--task classification if they are classes"
        )


def _check_few_words(read: Objects, y: npt.NDArray) -> None:
    """Raise if nearly all labels are numbers, and many different ones: a few, such as ">3.5", are probably mistakes."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) <= _MANY_CLASSES:
        return
    words = {label: n for label, n in zip(labels.tolist(), counts.tolist(), strict=True) if as_numbers([label]) is None}
    n_numbers = len(y) - sum(words.values())
    if n_numbers >= 0.9 * len(y):
        raise ValueError(
            f"{n_numbers} of the {len(y)} labels of {read.source} are numbers, but {short(next(iter(words)))} is not; "
            "correct it or leave out its row, or add --task classification if the labels are classes"
        )


def _check_units(read: Objects, y: npt.NDArray) -> None:
    """Raise if the labels are many different numbers with a unit, such as "0.61 mol/L"."""
    labels = list(dict.fromkeys(map(str, y.tolist())))
    found = [_UNIT.fullmatch(label) for label in labels if as_numbers([label]) is None]
    units = {match[1] for match in found if match}
    if len(labels) > _MANY_CLASSES and all(found) and 0 < len(units) <= _UNITS_OF_A_COLUMN:
        first = next(label for label in labels if as_numbers([label]) is None)
        raise ValueError(
            f"the labels of {read.source} look like numbers with a unit ({short(first)}); leave the unit out, all "
            "numbers in the same one, or add --task classification if they are classes"
        )


def _check_classes(read: Objects, y: npt.NDArray, label: str | None) -> None:
    """Raise if most classes have only one object: the column probably holds names, not labels."""
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) > 2 and 2 * np.count_nonzero(counts == 1) > len(counts):
        number = "" if as_numbers(y) is None else ", or --task regression predicts numbers"
        raise ValueError(
            f"{read.source} has {len(counts)} classes for {len(y)} objects: is {short(label or 'label')} the column of "
            f"labels? --label names another column{number}"
        )


def _doubts(classes: list[Any]) -> list[str]:
    """Return what is odd about the names of classes: one that stands for no value, or two that look the same."""
    first: dict[str, Any] = {}
    alike = []
    for name in classes:
        spelled = " ".join(str(name).split()).casefold()
        if spelled in first:
            alike.append(f"{short(first[spelled])} and {short(name)}")
        first.setdefault(spelled, name)
    missing = "{} is taken as a class; if it means that there is no label, leave these rows out"
    doubts = [missing.format(short(name)) for spelled, name in first.items() if spelled in _NO_VALUE]
    if alike:
        more = f", one of {len(alike)} such pairs" if len(alike) > 1 else ""
        doubts.append(f"{alike[0]} are taken as two classes{more}; if they mean the same, give them one spelling")
    return doubts


def check_suits(name: str | None, task: str, y: npt.NDArray) -> None:
    if name is None:
        return
    scorer = get_scorer(name)
    wrong = failure_of(scorer, y, DummyRegressor() if task == "regression" else DummyClassifier())
    if task == "classification" and not failure_of(scorer, np.array([0.5, 1.5, 2.5]), DummyRegressor()):
        wrong = "it is for numbers"
    elif task == "classification" and not wrong and needs_probabilities(scorer):
        wrong = "it needs probabilities, which most candidates do not give"
    if wrong:
        raise ValueError(f"--scoring {name} does not suit {task} with these labels ({wrong}); use {_SUIT[task]}")


# ---- scores
def scores_of(
    model: Any, objects: Any, y: npt.NDArray, task: str, scoring: str | None, y_train: npt.NDArray
) -> dict[str, Any]:
    """Print and return the scores of a model on unseen objects; a baseline predicts the commonest class of y_train."""
    asked = {}
    if scoring not in (None, "accuracy", "r2"):
        asked[str(scoring)] = float(get_scorer(scoring)(model, objects, y))
        console().print(f"held-out objects: {len(y)}, {scoring} {asked[str(scoring)]:.3f}")
    predicted = model.predict(objects)
    if task == "regression":
        scores = {"objects": len(y), "r_squared": float(r2_score(y, predicted)), **asked}
        console().print(f"held-out objects: {len(y)}, R squared {scores['r_squared']:.3f}")
        return scores
    classes, counts = np.unique(y, return_counts=True)
    recalls = recall_score(y, predicted, labels=classes, average=None)
    frequent = DummyClassifier().fit(np.zeros((len(y_train), 1)), y_train).score(np.zeros((len(y), 1)), y)
    scores = {"objects": len(y), "accuracy": accuracy_score(y, predicted), "most_frequent": frequent}
    console().print(_score_table(classes, counts, recalls, scores))
    if scoring in (None, "accuracy") and scores["accuracy"] <= frequent:
        note(
            "note: on held-out objects, the model is not better than always predicting the most frequent class; do the "
            "objects tell the labels, and are they compared by what tells them? (--kernel or --distance)"
        )
    return {**scores, "recall": dict(zip(map(str, classes), recalls.tolist(), strict=True)), **asked}


def _score_table(classes: npt.NDArray, counts: npt.NDArray, recalls: npt.NDArray, scores: dict[str, Any]) -> Table:
    table = Table("class", "held out", "recall", title="held-out objects", title_justify="left")
    for value, count, recall in zip(classes, counts, recalls, strict=True):
        table.add_row(str(value), str(count), f"{recall:.1%}".replace("%", " %"))
    table.add_section()
    table.add_row("all: accuracy", str(scores["objects"]), f"{100 * scores['accuracy']:.1f} %")
    table.add_row("always the most frequent", "", f"{100 * scores['most_frequent']:.1f} %")
    return table
