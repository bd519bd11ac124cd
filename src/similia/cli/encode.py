"""``similia encode``: files in, packed codes out; interrupted runs resume."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.encoders import check_options, default_encoder, sample_of
from similia.cli.inputs import first_of, open_objects
from similia.cli.outputs import bars, check_output, meters, stoppable
from similia.cli.voice import console, note, result, voice, written
from similia.scale.stream import CHUNK, Rows, goes_on, partial_of, places_named, write_stream
from similia.search.on_disk import SearchFolder
from similia.sources.streams import ObjectStream
from similia.storage.journal import Journal

_DEFAULTS = {"bits": 256, "landmarks": 256, "seed": 0}


def encode(
    data: str,
    output: Path,
    *,
    model: Path | None,
    kernel: str | None = None,
    distance: str | None = None,
    bits: int | None = None,
    landmarks: int | None = None,
    seed: int | None = None,
    chunk: int = CHUNK,
    workers: Any = None,
    **table: Any,
) -> None:
    """Write packed codes as .npy; without a model, fit an encoder and write it beside them."""
    if output.suffix != ".npy":
        raise ValueError(f"the output must be a .npy file, got {output}")
    if model is None and voice().piped:
        raise ValueError(
            "standard output (-o -) has no folder for the encoder; give an encoder with --model, or name a file"
        )
    encoder_path = output.with_suffix(".encoder.similia")
    for path in [output] if model is not None else [output, encoder_path]:
        check_output(path, data, model)
    options: dict[str, Any] = {"kernel": kernel, "distance": distance, "bits": bits}
    options |= {"landmarks": landmarks, "seed": seed}
    if model is None:
        options |= {name: value for name, value in _DEFAULTS.items() if options[name] is None}
        check_options(kernel, distance, options["bits"])
    else:
        for name, value in options.items():
            if value is not None:
                raise ValueError(f"{model} decides how bits are made; drop --{name} or --model")
    encoder = None if model is None else load_encoder(model)
    stream, say = open_objects(data, chunk=chunk, workers=workers, **table), console().print
    n, belongs = stream.n, {"data": stream.fingerprint(), "options": {} if model else options}
    with Journal(partial_of(output)) as journal:
        if model is None and not goes_on(journal, {**belongs, "encoder": checksum(encoder_path)}):
            n = _fit(stream, encoder_path, options)
        encoder = encoder or sm.load(encoder_path)
        if model is not None:
            _check_bits(encoder, model, stream)
        form = Rows(encoder, packed=True)
        belongs["encoder"] = checksum(model or encoder_path)
        if journal.header is not None and not goes_on(journal, belongs):
            note(f"note: {journal.folder} belongs to a run with other data or options; this run starts again")
        if goes_on(journal, belongs):
            n = (journal.header or {}).get("n")
        said = {"say": say, "warn": lambda text: note(f"warning: {text}")}
        with stoppable(lambda: journal.done, n), meters():
            write_stream(journal, belongs, form, stream, output, workers=workers, n=n, **said)
    say(f"wrote {journal.done} codes of {form.n_bits} bits to {written(output)}")
    result({"codes": journal.done, "bits": form.n_bits, "output": output, "encoder": model or encoder_path})
    if model is None:
        say(f"wrote the encoder to {encoder_path}; other data: similia encode DATA --model {encoder_path}")


def _fit(stream: ObjectStream, path: Path, options: dict[str, Any]) -> int:
    """Fit an encoder to a sample, write it, and return how many objects there are."""
    with stoppable(lambda: 0, stream.n), meters():
        n, sample, numbers = sample_of(stream, options["seed"])
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        spec, encoder = default_encoder(sample, **options)
        console().print(f"{n} {stream.called}; {options['bits']} bits by {spec}")
        sm.save(encoder.fit(sample.objects), path)
    return n


def load_encoder(path: Path) -> Any:
    """Return what makes bits in a model that `similia.save` wrote, or in an index."""
    if path.is_dir():
        return SearchFolder.open(path).search.encoder_
    model = sm.load(path)
    if isinstance(model, Pipeline) and not hasattr(model[-1], "transform"):
        return model[:-1]  # a classifier's
    return model


def _check_bits(encoder: Any, path: Path, stream: ObjectStream) -> None:
    """Raise if a model makes vectors, or nothing, of objects: a stream of bits is asked for."""
    if not hasattr(encoder, "transform"):
        made = "predictions only"
    else:
        try:
            rows = encoder.transform(first_of(stream))
        except (TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:150]
            raise ValueError(f"{stream.source} holds {stream.called}, which {path} does not encode ({why})") from error
        if getattr(rows, "dtype", None) == np.uint8:
            return
        made = f"vectors of {rows.shape[1]} numbers" if np.ndim(rows) == 2 or hasattr(rows, "toarray") else "no bits"
    raise ValueError(
        f"{path} makes {made}, and similia encode writes packed bits; leave --model out to fit an encoder, or give a "
        "model that 'similia fit --kernel' or 'similia encode' wrote"
    )


def checksum(model: Path) -> str:
    """Return what tells a model or index from another one in its place."""
    path = model / "search.similia" if model.is_dir() else model
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
