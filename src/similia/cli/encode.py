"""``similia encode`` writes the packed codes of files; interrupted runs resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.encoders import check_options, default_encoder, sample_of
from similia.cli.inputs import open_objects
from similia.cli.outputs import Spoken, bars, check_output, meters, stoppable
from similia.cli.voice import console, result, voice, written
from similia.core.errors import BadFile
from similia.scale.stream import CHUNK, Rows, digest_of, identity, partial_of, places_named, write_journal
from similia.search.on_disk import SearchFolder
from similia.sources.source import Source
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
    if model is not None:
        _check_bits(encoder, model, stream)
    progress, n = Spoken(), stream.n
    with Journal(partial_of(output)) as journal:
        if model is None:
            n, encoder = _begun(journal, stream, encoder_path, options) or _fit(stream, encoder_path, options)
        form = Rows(encoder, packed=True)
        with stoppable(lambda: progress.done, n), meters():
            more: dict[str, Any] = {"n": n, "facts": {"options": options}}
            write_journal(journal, form, stream, output, workers=workers, progress=progress, **more)
    say(f"wrote {progress.done} codes of {form.n_bits} bits to {written(output)}")
    result({"codes": progress.done, "bits": form.n_bits, "output": output, "encoder": model or encoder_path})
    if model is None:
        say(f"wrote the encoder to {encoder_path}; other data: similia encode DATA --model {encoder_path}")


def _begun(journal: Journal, stream: Source, path: Path, options: dict[str, Any]) -> tuple[int | None, Any] | None:
    """Return n and the encoder of an interrupted run of the same data and options, if the encoder still exists."""
    header = journal.header or {}
    if header.get("options") != options or not path.is_file() or header["belongs"]["data"] != identity(stream):
        return None
    encoder = sm.load(path)
    return (header.get("n"), encoder) if header["belongs"]["model"] == digest_of(encoder) else None


def _fit(stream: Source, path: Path, options: dict[str, Any]) -> tuple[int, Any]:
    """Fit an encoder to a sample and write it; return the number of objects, and the encoder."""
    with stoppable(lambda: 0, stream.n), meters():
        n, sample, numbers = sample_of(stream, options["seed"])
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        spec, encoder = default_encoder(sample, **options)
        console().print(f"{n} {stream.called}; {options['bits']} bits by {spec}")
        sm.save(encoder.fit(sample.objects), path)
    return n, sm.load(path)


def load_encoder(path: Path) -> Any:
    """Return the encoder of a saved model or of an index."""
    if path.is_dir():
        return SearchFolder.open(path).search.encoder_
    model = sm.load(path)
    if isinstance(model, Pipeline) and not hasattr(model[-1], "transform"):
        return model[:-1]  # a classifier's
    return model


def _check_bits(encoder: Any, path: Path, stream: Source) -> None:
    """Raise if a model does not return packed bits for the first object."""
    if not hasattr(encoder, "transform"):
        made = "predictions only"
    else:
        try:
            rows = encoder.transform(stream.take([0]))
        except (TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:150]
            raise BadFile(stream.source, f"holds {stream.called}, which {path} does not encode ({why})") from error
        if getattr(rows, "dtype", None) == np.uint8:
            return
        made = f"vectors of {rows.shape[1]} numbers" if np.ndim(rows) == 2 or hasattr(rows, "toarray") else "no bits"
    raise ValueError(
        f"{path} makes {made}, and similia encode writes packed bits; leave --model out to fit an encoder, or give a "
        "model that 'similia fit --kernel' or 'similia encode' wrote"
    )
