"""``similia fit`` and ``similia predict``: files in, model or predictions out."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.inputs import Objects, has_columns, open_objects, read_labelled
from similia.cli.outputs import Spoken, check_output, meters, stoppable
from similia.cli.specs import parse_distance, parse_kernel
from similia.cli.voice import console, note, result, voice, written
from similia.core.text import _short, did_you_mean
from similia.core.threads import n_threads
from similia.learn.targets import TASKS, as_numbers, suits, task_of
from similia.objects import n_objects
from similia.planning.costs import kind_of
from similia.scale.predictions import Predictions, form_of
from similia.scale.stream import CHUNK, print_stream, write_stream
from similia.sources.reading import Reading, ending_of, looks_numeric
from similia.sources.source import Source
from similia.sources.streams import ObjectStream, is_table

_DEFAULT_KERNEL = {"strings": "GappyKmers(k=4, gaps=1)", "graphs": "WeisfeilerLehman(n_iter=3, normalize=True)"}
_DEFAULT_DISTANCE = {"strings": "Levenshtein()", "series": "DTW()", "sets": "ModifiedHausdorff()"}

_FEWER_FOLDS = 1000  # objects from which 3 folds choose as 5 do, in half the time


def fit_model(
    data: str,
    output: Path,
    *,
    kernel: str | None,
    distance: str | None,
    n_bits: int | None,
    n_landmarks: int | None,
    test_share: float,
    seed: int,
    task: str = "auto",
    scoring: str | None = None,
    **table: Any,
) -> None:
    """Train on `data`, print a held-out score, write the model.

    A kernel makes NysHD, or ridge regression on Nyström features where labels are numbers to predict. A distance makes
    D2KE. The model that is written is fitted on everything.
    """
    check_output(output, data)
    if not 0 <= test_share < 1:
        raise ValueError(f"--test must be a share from 0 to below 1, got {test_share}")
    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: a kernel makes NysHD, a distance D2KE")
    check_scorer(scoring)
    table = _as_compared(
        data, parse_kernel(kernel) if kernel else parse_distance(distance) if distance else None, table
    )
    read = read_labelled(data, **table)
    if read.kind == "vectors":
        raise ValueError(
            f"{data} holds vectors, for which 'similia fit' chooses; drop --kernel, --distance and their options"
        )
    y, decided = targets_of(read, task, scoring, table.get("label"))
    check_suits(scoring, decided, y)
    recipe = _recipe(read, kernel, distance, n_bits, n_landmarks, seed, decided)
    _check_comparison(recipe.compared, read, read.objects)
    say = console()
    say.print(f"{described(read, y, decided)}; {recipe.spec}")
    if recipe.is_tuned:
        say.print(f"{recipe.tuned} are chosen by {recipe.folds}-fold cross-validation ...")
    model, scores = recipe.model, None
    if test_share > 0:
        model, scores = _held_out(recipe, read, y, decided, test_share, seed, scoring)
    _fitted(model, read.objects, y)
    model = getattr(model, "pipeline_", model)
    if recipe.is_tuned:
        say.print(f"chosen: gamma = {model[0].gamma:.3g}, {model[-1]}")
    sm.save(model, output)
    facts = {"objects": len(y), "kind": read.kind, "task": decided, "compared_by": recipe.spec}
    result({**facts, "held_out": scores, "model": output, "bytes": output.stat().st_size})
    say.print(f"fitted on all {len(y)} and wrote {written(output)} ({output.stat().st_size / 1e6:.1f} MB)")


@dataclass(frozen=True)
class _Recipe:
    """A model to fit: what it compares by, in words and as an object; whether a search chooses its parameters."""

    model: Any
    compared: Any
    spec: str
    folds: int = 0
    tuned = "gamma and C"

    @property
    def is_tuned(self) -> bool:
        return self.folds > 0


def _recipe(
    read: Objects, kernel: str | None, distance: str | None, n_bits: int | None, n_landmarks: int | None, seed: int,
    task: str,
) -> _Recipe:  # fmt: skip
    """Return the recipe that the options ask for, or raise if they contradict each other."""
    n = n_objects(read.objects)
    if distance or (not kernel and read.kind not in _DEFAULT_KERNEL):
        spec = f"distance {distance or _DEFAULT_DISTANCE[read.kind]}"
        compared = parse_distance(spec.removeprefix("distance "))
        for option, value in (("--bits", n_bits), ("--landmarks", n_landmarks)):
            if value is not None:
                raise ValueError(f"{option} is for NysHD, and the {spec} makes D2KE; drop {option}, or give a --kernel")
        folds = 5 if n < _FEWER_FOLDS else 3
        d2ke = sm.recipes.d2ke(compared, gamma="tune", C="tune", random_state=seed, task=task, cv=folds)
        return _Recipe(d2ke, compared, spec, folds)
    spec = f"kernel {kernel or _DEFAULT_KERNEL[read.kind]}"
    compared = parse_kernel(spec.removeprefix("kernel "))
    bits = 10_000 if n_bits is None else n_bits
    if bits < 8 or bits % 8:
        raise ValueError(f"--bits must be a multiple of 8 and at least 8, got {bits}")
    if task == "classification":
        nyshd = sm.recipes.nyshd(compared, n_landmarks=n_landmarks or "auto", n_bits=bits, random_state=seed)
        return _Recipe(nyshd, compared, spec)
    if n_bits is not None:
        raise ValueError("--bits is for classes (NysHD), and the labels are numbers to predict; drop --bits")
    features = sm.Nystroem(compared, n_components=n_landmarks or "auto", random_state=seed)
    ridge = RidgeCV(alphas=np.logspace(-4, 4, 17))
    return _Recipe(Pipeline([("nystroem", features), ("learner", ridge)]), compared, spec)


def _held_out(
    recipe: _Recipe, read: Objects, y: npt.NDArray, task: str, share: float, seed: int, scoring: str | None
) -> tuple[Any, dict[str, Any]]:
    """Score a copy that is fitted without some objects; return the model to fit to all, and the scores."""
    train, test = split(read, y, task, share, seed)
    scored = _fitted(clone(recipe.model), sm.objects.take(read.objects, train), y[train])
    scores = scores_of(scored, sm.objects.take(read.objects, test), y[test], y[train], task, scoring)
    return clone(scored.pipeline_) if recipe.is_tuned else recipe.model, scores  # what was chosen holds for all


def predict_with_model(
    model_path: Path, data: str, output: Path | None, *, scores: bool = False, chunk: int = CHUNK, workers: Any = None,
    **table: Any,
) -> None:  # fmt: skip
    """Write the predicted label of each object of `data`; FASTA records keep their names, rows those in ``names``."""
    ending = "jsonl" if voice().json else "csv"
    if output is not None:
        check_output(output, data, model_path)
        ending = form_of(output)
    model = sm.load(model_path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{model_path} makes no predictions (is it an encoder?); 'similia fit' writes models that do")
    table = _as_compared(data, _compared(model), table)
    stream, names = open_objects(data, chunk=chunk, workers=workers, **table), table.get("names")
    form = Predictions(model, ending, scores, names)  # raises if there are no scores, before anything is compared
    _check_comparison(_compared(model), stream, stream.take([0]), fitted=True)
    if output is None:
        print_stream(form, stream, sys.stdout, workers=workers)
        return
    progress = Spoken()
    with stoppable(lambda: progress.done, stream.n), meters():
        write_stream(form, stream, output, workers=workers, progress=progress)
    console().print(f"wrote {progress.done} predictions to {output}")
    result({"predictions": progress.done, "output": output})


def _fitted(model: Any, X: Any, y: npt.NDArray) -> Any:
    """Fit, with bars on a terminal; the folds of a search in threads, since the learner computes outside Python."""
    from joblib import parallel_config

    with sm.config(progress=sys.stderr.isatty()), parallel_config("threading", n_jobs=n_threads()):
        return model.fit(X, y)


def _compared(model: Any) -> Any:
    """Return the kernel or distance of a model (of models that vote, of the first), or None."""
    model = getattr(model, "best_", model)
    for step in model if isinstance(model, Pipeline) else [model]:
        for name in ("kernel", "distance"):
            if hasattr(getattr(step, name, None), "as_objects"):
                return getattr(step, name)
    return None


def _check_comparison(compared: Any, data_read: Objects | Source, objects: Any, fitted: bool = False) -> None:
    """Raise if a kernel or distance compares strings and the data are graphs, or the like, or if an object is bad."""
    if compared is None:
        return
    try:
        compared.as_objects(objects)
    except (TypeError, ValueError) as error:
        if kind_of(compared) == data_read.kind:
            raise type(error)(_located(str(error), data_read)) from error
        hint = "; --smiles instead of --text reads SMILES as molecules" if "from_smiles" in str(error) else ""
        if data_read.kind == "graphs" and has_columns(data_read.source) and _takes_strings(compared):
            hint = "; --text instead of --smiles reads the column as strings"
        if fitted:
            columns, advice = _other_columns(compared, data_read.columns)
            raise ValueError(
                f"{data_read.source} holds {data_read.called}{columns}, which {compared} does not compare"
                f"{hint or advice}"
            ) from error
        fitting = [d[data_read.kind] for d in (_DEFAULT_KERNEL, _DEFAULT_DISTANCE) if data_read.kind in d]
        raise ValueError(
            f"{data_read.source} holds {data_read.called}, which {compared} does not compare; "
            f"use e.g. {' or '.join(fitting)}{hint}"
        ) from error


_OTHER = {
    "strings": "; --text names another column, of strings",
    "graphs": "; --smiles names another column, of molecules",
    "series": "; --values names other columns, of numbers",
}


def _other_columns(compared: Any, columns: Sequence[str]) -> tuple[str, str]:
    """Return which columns of a table hold the objects, and what else to give to a model that does not compare them."""
    wanted = kind_of(compared)
    if not columns:
        return "", f"; give a file of {wanted}" if wanted else ""
    shown = ", ".join(map(_short, columns[:4])) + (f" … {_short(columns[-1])}" if len(columns) > 4 else "")
    return f" (column{'s' * (len(columns) > 1)} {shown})", _OTHER.get(str(wanted), "")


def _located(sentence: str, data_read: Objects | Source) -> str:
    """Return a sentence about ``X[i]`` as one about that object of a file."""
    found = re.match(r"X\[(\d+)\] ", sentence)
    if found is None:
        return f"{data_read.source}: {sentence}"
    i = int(found[1])
    lines, names = getattr(data_read, "lines", None), getattr(data_read, "names", None)
    place = f"object {i} (from 0)" if lines is None else f"line {lines[i]}"
    place += "" if names is None else f", {_short(names[i])}"
    return f"{data_read.source}, {place}: it {sentence[found.end() :]}"


def _as_compared(data: str, compared: Any, table: dict[str, Any]) -> dict[str, Any]:
    """Return how to read data: rows of numbers as series, where a kernel or distance is for series only."""
    path, reading = Path(data), Reading(**table)
    if not path.is_file() or reading.kind not in (None, "vectors") or kind_of(compared) != "series":
        return table
    numbers = ending_of(path) == ".npz"
    if not numbers and is_table(path, reading):
        numbers = ObjectStream(path, reading, 1, 2**26).kind == "vectors"
    if not numbers:
        return table
    note(f"note: {data} is read as series, which {compared} compares")
    return {**table, "series": True}


def _takes_strings(compared: Any) -> bool:
    try:
        compared.as_objects(sm.objects.as_strings(["C"]))
    except (TypeError, ValueError):
        return False
    return True


# ---- targets and scores, also of a pipeline that is chosen
def targets_of(read: Objects, task: str, scoring: str | None, label: str | None = None) -> tuple[npt.NDArray, str]:
    """Return the labels (of column `label`), as numbers where these are to be predicted, and the task."""
    y = read.labels
    assert y is not None
    if task not in TASKS:
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {task}")
    numbers, by_score = as_numbers(y), suits(scoring) if task == "auto" else None
    if "regression" in (task, by_score) and numbers is None:
        other = next(value for value in y.tolist() if as_numbers([value]) is None)
        asked = f"--task {task}" if task == "regression" else f"--scoring {scoring}"
        raise ValueError(f"{asked} is for numbers, and the label {_short(other)} of {read.source} is none")
    decided = task_of(y, task, scoring)
    if decided == "classification" or numbers is None:
        if task == "auto" and numbers is None:
            _check_decimal(read, y)
        if by_score == decided and task_of(y) == "regression":
            raise ValueError(
                f"--scoring {scoring} is for classes, and the labels of {read.source} are numbers; "
                f"{_SUIT['regression']} do, or take them as classes with --task classification"
            )
        _check_classes(read, y, label)
        fractions = y.dtype.kind == "f" and (y != np.round(y)).any()  # which scikit-learn does not take as classes
        return (y.astype(str) if fractions else y), decided
    if task == "auto" and by_score is None:
        note(
            f"note: the labels of {read.source} are {len(np.unique(y))} different numbers: they are predicted as "
            "numbers; --task classification takes them as classes"
        )
    return numbers, decided


def _check_decimal(read: Objects, y: npt.NDArray) -> None:
    """Raise if labels are numbers with a decimal comma, which nobody said."""
    cells = [label for label in y.tolist() if isinstance(label, str)]
    if len(cells) == len(y) and any("," in cell for cell in cells) and looks_numeric(cells, ","):
        raise ValueError(
            f"the labels of {read.source} look like numbers with a decimal comma ({cells[0]}); add --decimal , or "
            "--task classification if they are classes"
        )


def _check_classes(read: Objects, y: npt.NDArray, label: str | None) -> None:
    """Raise if most classes have one object, as names have."""
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) > 2 and 2 * np.count_nonzero(counts == 1) > len(counts):
        number = "" if as_numbers(y) is None else ", or --task regression predicts numbers"
        raise ValueError(
            f"{read.source} has {len(counts)} classes of {len(y)} objects: is {_short(label or 'label')} the column of "
            f"labels? --label names another one{number}"
        )


def described(read: Objects, y: npt.NDArray, task: str) -> str:
    """Return what there is to train on, for a line."""
    if task == "regression":
        return f"{len(y)} {read.called} with numbers to predict"
    classes = len(np.unique(y))
    return f"{len(y)} {read.called} in {classes} class{'es' * (classes > 1)}"


def split(read: Objects, y: npt.NDArray, task: str, share: float, seed: int) -> tuple[npt.NDArray, npt.NDArray]:
    """Return the objects to train on and those to hold out, or raise if a class has none to train on."""
    from similia.selection.folds import held_out

    train, test = held_out(read.objects, y, share, seed, stratify=task == "classification")
    lost = np.setdiff1d(y[test], y[train]) if task == "classification" else y[:0]
    if len(lost):
        raise ValueError(
            f"--test {share:g} holds out all objects of class {_short(lost[0].item())}, since copies of an object stay "
            "together; use another --seed, or --test 0, which holds out none"
        )
    return train, test


def scores_of(
    model: Any, objects: Any, y: npt.NDArray, y_train: npt.NDArray, task: str, scoring: str | None
) -> dict[str, Any]:
    """Score a model on objects that it has not seen, print the scores and return them."""
    from sklearn.metrics import get_scorer, r2_score

    asked = {}
    if scoring not in (None, "accuracy", "r2"):
        asked[str(scoring)] = float(get_scorer(scoring)(model, objects, y))
        console().print(f"held-out objects: {len(y)}, {scoring} {asked[str(scoring)]:.3f}")
    predicted = model.predict(objects)
    if task == "regression":
        scores = {"objects": len(y), "r_squared": float(r2_score(y, predicted)), **asked}
        console().print(f"held-out objects: {len(y)}, R squared {scores['r_squared']:.3f}")
        return scores
    found = {"objects": len(y), **accuracies(y, predicted, y_train)}
    console().print(score_table(y, found))
    return found | asked


_SUIT = {"classification": "balanced_accuracy or f1_macro", "regression": "r2 or neg_mean_absolute_error"}


def check_scorer(name: str | None) -> None:
    """Raise if scikit-learn knows no such scorer."""
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in get_scorer_names():
        meant = did_you_mean(name, get_scorer_names())
        some = f"{_SUIT['classification']} of classes, {_SUIT['regression']} of numbers"
        raise ValueError(f"--scoring {name[:40]} is no scorer of scikit-learn{meant}; some are {some}")


def check_suits(name: str | None, task: str, y: npt.NDArray) -> None:
    """Raise if a scorer does not score predictions of such targets: it is tried, before time is spent."""
    if name is None:
        return
    wrong = _failure(name, y, DummyRegressor() if task == "regression" else DummyClassifier())
    if task == "classification" and not _failure(name, np.array([0.5, 1.5, 2.5]), DummyRegressor()):
        wrong = "it is one of numbers"
    elif task == "classification" and not wrong and _failure(name, y, RidgeClassifier()):
        wrong = "it needs probabilities, which most candidates do not give"
    if wrong:
        raise ValueError(f"--scoring {name} does not suit {task} with these labels ({wrong}); {_SUIT[task]} do")


def _failure(name: str, y: npt.NDArray, model: Any) -> str:
    """Return why a scorer fails on the targets `y` and a model that knows nothing of objects, or nothing."""
    from sklearn.metrics import get_scorer

    X = np.zeros((len(y), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # targets of another type, for a clustering
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # of a class that is never predicted
        try:
            get_scorer(name)(model.fit(X, y), X, y)
        except Exception as error:
            return " ".join(str(error).split())[:120]
    return ""


def accuracies(y_true: npt.NDArray, y_pred: npt.NDArray, y_train: npt.NDArray) -> dict[str, Any]:
    """Return the share of right answers, of the most frequent class of `y_train`, and of the members of each class."""
    values, counts = np.unique(y_train, return_counts=True)
    return {
        "accuracy": float(np.mean(y_pred == y_true)),
        "most_frequent": float(np.mean(y_true == values[np.argmax(counts)])),
        "recall": {str(value): float(np.mean(y_pred[y_true == value] == value)) for value in np.unique(y_true)},
    }


def score_table(y_true: npt.NDArray, scores: dict[str, Any]) -> Table:
    """Return what `accuracies` found as a table."""
    table = Table("class", "held out", "recall", title="held-out objects", title_justify="left")
    for value, (name, recall) in zip(np.unique(y_true), scores["recall"].items(), strict=True):
        table.add_row(name, str(np.sum(y_true == value)), f"{100 * recall:.1f} %")
    table.add_section()
    table.add_row("all: accuracy", str(len(y_true)), f"{100 * scores['accuracy']:.1f} %")
    table.add_row("always the most frequent", "", f"{100 * scores['most_frequent']:.1f} %")
    return table
