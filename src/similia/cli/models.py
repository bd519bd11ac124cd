"""``similia fit`` and ``similia predict``: files in, model or predictions out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from sklearn.pipeline import Pipeline

import similia as sm
from similia._threads import n_threads
from similia.cli.encode import checksum
from similia.cli.inputs import Objects, first_of, open_objects, read_objects
from similia.cli.options import SmilesColumn
from similia.cli.outputs import check_output, meters, stoppable
from similia.cli.specs import parse_distance, parse_kernel
from similia.cli.voice import console, note, result, voice, written
from similia.objects.streams import ObjectStream
from similia.scale._journal import Journal
from similia.scale._predictions import Predictions, form_of
from similia.scale.stream import CHUNK, partial_of, print_stream, write_stream

_DEFAULT_KERNEL = {"strings": "GappyKmers(k=4, gaps=1)", "graphs": "WeisfeilerLehman(n_iter=3, normalize=True)"}
_DEFAULT_DISTANCE = {"strings": "Levenshtein()", "series": "DTW()", "sets": "ModifiedHausdorff()"}

_FEWER_FOLDS = 1000  # objects from which 3 folds choose as 5 do, in half the time


def fit_model(
    data: str,
    output: Path,
    *,
    kernel: str | None,
    distance: str | None,
    text: str,
    label: str,
    n_bits: int | None,
    n_landmarks: int | None,
    test_share: float,
    seed: int,
) -> None:
    """Train NysHD (with a kernel) or D2KE (with a distance) on `data`, print a held-out score, write the model.

    The model that is written is fitted on everything.
    """
    from sklearn.base import clone
    from sklearn.metrics import r2_score

    from similia.distances import Distance
    from similia.selection._folds import held_out

    check_output(output, data)
    if not 0 <= test_share < 1:
        raise ValueError(f"--test must be a share from 0 to below 1, got {test_share}")
    say = console()
    data_read = read_objects(data, text=text, label=label)
    X, y = data_read.objects, data_read.labels
    if data_read.kind == "vectors":
        raise ValueError(
            f"{data} holds vectors, for which similia fit chooses; leave the kernel or distance and its options out"
        )
    if y is None:
        raise ValueError(f"{data} has no labels; --label names the column (or the field of FASTA headers) with them")
    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: a kernel makes NysHD, a distance D2KE")
    if distance or (not kernel and data_read.kind not in _DEFAULT_KERNEL):
        spec = f"distance {distance or _DEFAULT_DISTANCE[data_read.kind]}"
        compared = parse_distance(spec.removeprefix("distance "))
        for option, value in (("--bits", n_bits), ("--landmarks", n_landmarks)):
            if value is not None:
                raise ValueError(f"{option} is for NysHD, and the {spec} makes D2KE; drop {option}, or give a --kernel")
        task = "regression" if y.dtype.kind == "f" else "classification"
        folds = 5 if len(y) < _FEWER_FOLDS else 3
        model = sm.recipes.d2ke(compared, gamma="tune", C="tune", random_state=seed, task=task, cv=folds)
    else:
        spec = f"kernel {kernel or _DEFAULT_KERNEL[data_read.kind]}"
        compared = parse_kernel(spec.removeprefix("kernel "))
        bits = 10_000 if n_bits is None else n_bits
        if bits < 8 or bits % 8:
            raise ValueError(f"--bits must be a multiple of 8 and at least 8, got {bits}")
        model = sm.recipes.nyshd(compared, n_landmarks=n_landmarks or "auto", n_bits=bits, random_state=seed)
    _check_comparison(compared, data_read, sm.objects.take(X, [0]), text)
    classes = np.unique(y)
    numbers = y.dtype.kind == "f"
    if numbers and not isinstance(compared, Distance):
        raise ValueError(f"{data} has numbers to predict, which NysHD does not; a --distance makes D2KE, which does")
    targets = "numbers to predict" if numbers else f"{len(classes)} class{'es' * (len(classes) > 1)}"
    say.print(f"{len(y)} {data_read.kind} in {targets}; {spec}".replace("in numbers", "with numbers"))
    facts = {"objects": len(y), "kind": data_read.kind, "compared_by": spec}
    scores: dict[str, Any] | None = None
    tuned = isinstance(compared, Distance)
    if tuned:
        say.print(f"gamma and C are chosen by {folds}-fold cross-validation ...")
    if test_share > 0:
        train, test = held_out(X, y, test_share, seed, stratify=not numbers)
        scored = _fitted(clone(model), sm.objects.take(X, train), y[train])
        predicted = scored.predict(sm.objects.take(X, test))
        if numbers:
            scores = {"objects": len(test), "r_squared": r2_score(y[test], predicted)}
            say.print(f"held-out objects: {len(test)}, R squared {scores['r_squared']:.3f}")
        else:
            scores = {"objects": len(test), **accuracies(y[test], predicted, y[train])}
            say.print(score_table(y[test], scores))
        if tuned:  # what was chosen holds for the final fit
            model = clone(scored.pipeline_)
    _fitted(model, X, y)
    model = getattr(model, "pipeline_", model)
    if tuned:
        say.print(f"chosen: gamma = {model[0].gamma:.3g}, {model[-1]}")
    sm.save(model, output)
    result({**facts, "held_out": scores, "model": output, "bytes": output.stat().st_size})
    say.print(f"fitted on all {len(y)} and wrote {written(output)} ({output.stat().st_size / 1e6:.1f} MB)")


def predict_with_model(
    model_path: Path, data: str, output: Path | None, *, text: str, names: str | None = None, scores: bool = False,
    chunk: int = CHUNK, workers: Any = None,
) -> None:  # fmt: skip
    """Write the predicted label of each object of `data`; FASTA records keep their names, rows those in `names`."""
    form = "jsonl" if voice().json else "csv"
    if output is not None:
        check_output(output, data, model_path)
        form = form_of(output)
    model = sm.load(model_path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{model_path} makes no predictions (it is an encoder?); similia fit writes models that do")
    stream = open_objects(data, text=text, names=names, chunk=chunk, workers=workers)
    predictions = Predictions(model, form, scores, names)
    _check_comparison(_compared(model), stream, first_of(stream), text)
    if output is None:
        print_stream(predictions, stream, sys.stdout, workers=workers)
        return
    say = console()
    belongs = {"data": stream.fingerprint(), "model": checksum(model_path), **predictions.belongs}
    said = {"say": say.print, "warn": lambda text: note(f"warning: {text}")}
    with Journal(partial_of(output)) as journal, stoppable(lambda: journal.done, stream.n), meters():
        write_stream(journal, belongs, predictions, stream, output, workers=workers, n=stream.n, **said)
    say.print(f"wrote {journal.done} predictions to {output}")
    result({"predictions": journal.done, "output": output})


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


def _check_comparison(compared: Any, data_read: Objects | ObjectStream, first: Any, text: str) -> None:
    """Raise if a kernel or distance compares strings and the data are graphs, or the like."""
    if compared is None:
        return
    try:
        compared.as_objects(first)
    except (TypeError, ValueError) as error:
        hint = "; --smiles instead of --text reads SMILES as molecules" if "from_smiles" in str(error) else ""
        if isinstance(text, SmilesColumn) and _takes_strings(compared):
            hint = "; --text instead of --smiles reads the column as strings"
        fitting = [d[data_read.kind] for d in (_DEFAULT_KERNEL, _DEFAULT_DISTANCE) if data_read.kind in d]
        raise ValueError(
            f"{data_read.source} holds {data_read.kind}, which {compared} does not compare; "
            f"what does is e.g. {' or '.join(fitting)}{hint}"
        ) from error


def _takes_strings(compared: Any) -> bool:
    try:
        compared.as_objects(sm.objects.as_strings(["C"]))
    except (TypeError, ValueError):
        return False
    return True


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
