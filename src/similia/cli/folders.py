"""The steps of the commands of ``similia index``: create a folder, measure its recall, add to it, describe it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.encoders import default_encoder, encoder_to_index, kmer_length, sample_of
from similia.cli.inputs import Objects, has_columns
from similia.cli.model_data import check_comparison, remember_columns
from similia.cli.outputs import bars, meters, stoppable
from similia.cli.specs import check_bits, parse_comparison, parse_kernel, parse_one
from similia.cli.voice import called, console, note, result
from similia.core.errors import BadFile
from similia.planning.costs import kind_of
from similia.scale.stream import add_stream, of, places_named
from similia.search import HammingIndex, SimilaritySearch
from similia.search.automatic import name_of
from similia.search.metric import function_of
from similia.search.on_disk import SearchFolder
from similia.similarity import diagonal
from similia.sources.source import Held, Source

_GROWS = 2  # a kernel grows with the size of objects if its largest k(x, x) is over this many times the smallest
_QUERIES, _NEIGHBOURS = 100, 10  # to measure the recall
_LITTLE = 0.8  # a recall below this gives a warning
_OPTIONS = "bits", "landmarks", "seed", "rerank", "index", "candidates"
BITS = {"bits": 256, "features": 256, "vectors": 4, "auto": 256}  # values of --by, and the default of --bits for each
_KINDS = {"StringBatch": "strings", "GraphBatch": "graphs", "SeriesBatch": "series", "SetBatch": "sets"}


def create(
    folder: Path, stream: Source, data: str, table: dict[str, Any], asked: dict[str, Any], made_by: dict[str, Any]
) -> int:
    """Fit an encoder to a sample of a stream, create the folder of an index, and return the stream's number of objects.

    `asked` holds all options of the index and is stored in the folder; `made_by` holds only the options of the encoder.
    """
    sort, seed = asked["rerank"], asked["seed"]
    how = None if sort == "none" else sort if sort in ("projected", "kernel") else parse_comparison(sort)
    by = asked.get("by", "bits")
    index = HammingIndex(asked["bits"], kind=asked["index"], random_state=seed) if by == "bits" else None
    with stoppable(lambda: 0, stream.n), meters():
        n, sample, numbers = sample_of(stream, seed)
    if getattr(sample.objects, "dtype", None) == np.uint8:
        note(
            f"note: {called(data)} holds bytes, read as numbers; search codes of 'similia encode' with "
            "similia.HammingIndex"
        )
    compared = parse_one(made_by["kernel"], made_by["distance"])
    if kind_of(compared) not in (None, sample.kind):
        check_comparison(compared, sample, sample.objects)
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        if by == "bits":
            spec, encoder = default_encoder(sample, **made_by)
        elif by == "vectors":
            spec, encoder = encoder_to_index(sample, **made_by, normalize=how == "projected")
        else:
            spec, encoder = _by_features(sample, by, made_by)
        how = encoder.kernel if how == "kernel" and by == "features" else how
        search = SimilaritySearch(encoder, how, n_candidates=asked["candidates"], index=index)
        if by == "auto":
            search.fit(sample.objects)
            spec = _way_of(search)
        made = f"{asked['bits']} bits by {spec}" if by == "bits" else f"candidates by {spec}"
        console().print(f"{n} {stream.called}; {made}, sorted by {sort}", markup=False)
        if by != "auto":
            search.fit(sample.objects)
        remember_columns(search.encoder_, data, table)
        SearchFolder.create(folder, search, {**asked, "encoder": spec})
        _show_recall(search, sample.objects, sort, seed, folder)
    return n


def check_way(by: str, kind: str, bits: int | None) -> int:
    """Return the value of --bits; raise if it or the options --by and --kind are unknown or contradict each other."""
    if by not in BITS:
        raise ValueError(f"--by must be bits, features, vectors or auto, got {by}")
    if by != "bits" and kind != "exact":
        raise ValueError(f"--kind {kind} says how bits are searched, but --by is {by}; leave one of them out")
    bits = BITS[by] if bits is None else bits
    if by != "vectors":
        return check_bits(bits)
    if bits not in (1, 2, 4, 8):
        raise ValueError(f"--bits must be 1, 2, 4 or 8 of each number with --by vectors, got {bits}")
    return bits


def _by_features(sample: Objects, by: str, made_by: dict[str, Any]) -> tuple[str, Any]:
    """Return a description of what finds candidates, and a `FeatureIndex`, unfitted, or "auto"."""
    if by == "auto":
        return "", "auto"
    if made_by["kernel"]:
        kernel = parse_kernel(made_by["kernel"])
    elif sample.kind == "strings":
        kernel = sm.kernels.MinMax(sm.kernels.Spectrum(kmer_length(sample.objects) + 1))
    else:
        raise ValueError(f"--by features needs the --kernel whose features {sample.called} have, such as 'MinMax(...)'")
    return f"features of {' '.join(repr(kernel).split())}", sm.search.FeatureIndex(kernel)


def _way_of(search: SimilaritySearch) -> str:
    """Return a description of what ``encoder="auto"`` chose."""
    return name_of(search.encoder_)


def curves(search: SimilaritySearch) -> list[str]:
    """Return a line for each way that ``encoder="auto"`` measured: its recall by the number of candidates."""
    lines: dict[str, list[str]] = {}
    for one in getattr(search, "trials_", []):
        lines.setdefault(one["candidates"], []).append(f"{one['recall']:.2f} at {one['n_candidates']}")
    return [f"{name}: {', '.join(cells)}" for name, cells in lines.items()]


def not_the_same(opened: SearchFolder, data: str) -> ValueError:
    """Return an error: the folder already holds an index of other data or with other options."""
    meta, holds = opened.store.meta, "; ".join(_unfinished(opened))
    if meta and (holds or not len(opened)):
        by = meta.get("by", "bits")
        how = "".join(f" --{'kind' if name == 'index' else name} {meta.get(name)}" for name in _OPTIONS)
        how += "" if by == "bits" else f" --by {by}"
        return ValueError(
            f"{opened.folder} is not finished (it holds {holds or 'nothing yet'}); it was built with "
            f"{'bits' if by == 'bits' else 'candidates'} by "
            f"{meta.get('encoder')} and{how}: repeat that command to resume, or delete the folder to start again"
        )
    return BadFile(
        opened.folder,
        f"is an index already; to add to it: similia index add {data} {opened.folder}; to build another one, name a "
        "new folder or delete this one",
    )


def _unfinished(opened: SearchFolder, but: str = "") -> list[str]:
    """Return the progress, as text, of each source that was added only in part, except one with fingerprint `but`."""
    sources = opened.store.progress.items()
    return [f"{of(s['done'], s['n'])} from {s['name']}" for key, s in sources if s["done"] != s["n"] and key != but]


def note_unfinished(opened: SearchFolder, but: str = "") -> None:
    for state in _unfinished(opened, but):
        note(f"note: {opened.folder} is not finished: it holds {state}; repeat the command that added them to resume")


def _show_recall(search: SimilaritySearch, sample: Any, sort: str, seed: int, folder: Path) -> None:
    """Print the share of true neighbours in `sample` that a search finds; warn if it is low; `sort` is --rerank."""
    n = len(search)
    k = min(_NEIGHBOURS, n - 1, (n if search.rerank is None else search.n_candidates) - 1)
    if k < 1:
        return
    compares = function_of(search.encoder_)[0] is not None
    if sort == "none" and not compares:
        how = "recall(queries, metric=similia.kernels.Cosine('projection'), objects=all_of_them)"
        line = (
            f"recall not measured, because only bits are compared; in Python: SimilaritySearch.load('{folder}').{how}"
        )
        console().print(line, markup=False)
        return
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_QUERIES])
    queries = sm.objects.take(sample, rows)
    by = "projected" if sort == "projected" else "kernel"
    with_itself = search.recall(queries, k + 1, metric=by, objects=sample).recall
    share = max(0.0, ((k + 1) * with_itself - 1) / k)  # each query finds itself
    own = "the kernel or distance of the encoder"
    by = {"projected": "the cosine of their vectors", "kernel": own, "none": own}.get(sort, sort)
    asked = f"{len(rows)} of the {n}" if len(rows) < n else f"all {n}"
    console().print(
        f"recall {share:.2f}: with {asked} objects as queries, the share of their {k} nearest (by {by}) that was found"
    )
    if share < _LITTLE and sort == "none":
        note(f"warning: the recall is below {_LITTLE}; --rerank kernel finds more neighbours")
    elif share < _LITTLE:
        note(
            f"warning: the recall is below {_LITTLE}; more --candidates (here {search.n_candidates}) find more "
            "neighbours"
        )
    if share < _LITTLE and sort in ("kernel", "none"):
        _note_growth(*function_of(search.encoder), queries)


def _note_growth(function: Any, is_kernel: bool, objects: Any) -> None:
    """Warn if kernel values grow with the size of objects, so that size would decide which objects are near."""
    if is_kernel and (own := diagonal(function, objects)).max() > _GROWS * own.min():
        spec = " ".join(repr(function).split())
        note(
            f"warning: values of {spec} grow with the size of objects, so size decides which objects are near; "
            f"--kernel 'Normalized({spec})' ignores size"
        )


def add(
    folder: SearchFolder,
    stream: Source,
    key: str,
    n: int | None,
    once_more: str,
    again: bool = False,
    workers: Any = None,
) -> None:
    def done() -> int:
        return int(folder.store.progress.get(key, {"done": 0})["done"])

    before = len(folder)
    with stoppable(done, n), meters():
        if not add_stream(folder, stream, key=key, n=n, again=again, workers=workers, say=console().print):
            console().print(f"{called(stream.source)} is in the index already; {once_more}")
    console().print(f"{folder.folder}: {len(folder)} objects")
    result({"folder": folder.folder, "objects": len(folder), "added": len(folder) - before})


def timed_neighbours(search: SimilaritySearch, read: Objects, k: int) -> tuple[Any, Any, float]:
    """Return distances and ids of the k neighbours of each object in `read`, and the seconds without compilation."""
    with places_named(Held(read)):
        search.kneighbors(sm.objects.take(read.objects, [0]), k)  # compile first
        start = time.perf_counter()
        distances, ids = search.kneighbors(read.objects, k)
        return distances, ids, time.perf_counter() - start


def settings_of(opened: SearchFolder) -> dict[str, Any]:
    """Return the options with which an index was built, or the parameters of its search if it was saved from Python."""
    search = opened.search
    steps = search.encoder.steps if isinstance(search.encoder, Pipeline) else [("", search.encoder)]
    saved = {
        "kind": _KINDS.get(type(opened.example).__name__, "objects"),
        "encoder": " -> ".join(" ".join(repr(step).split()) for _, step in steps),
        "rerank": "none" if search.rerank is None else search.rerank,
        "candidates": search.n_candidates,
        "index": opened.store.settings.get("kind", "exact"),
    }
    return saved | opened.store.meta


def check_kind(found: Objects | Source, opened: SearchFolder) -> None:
    kind = opened.store.meta.get("kind", found.kind)
    if found.kind != kind:
        molecules = found.kind == "graphs" and kind == "strings" and has_columns(found.source)
        hint = "; --text instead of --smiles reads them as strings" if molecules else ""
        raise BadFile(found.source, f"holds {found.called}, but {opened.folder} is an index of {kind}{hint}")
