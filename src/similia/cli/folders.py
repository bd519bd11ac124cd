"""Steps of the ``similia index`` commands: create an index folder, measure recall, add to it, describe it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.encoders import default_encoder, encoder_to_index, kmer_length, sample_of
from similia.cli.inputs import Objects, check_comparison, has_columns, remember_columns, with_columns_of
from similia.cli.options import check_bits, parse_comparison, parse_kernel, parse_one
from similia.cli.outputs import bars, meters, stoppable
from similia.cli.voice import called, console, note, result
from similia.core.errors import BadFile
from similia.planning.forecasts import kind_of
from similia.scale.stream import add_stream, of, places_named
from similia.search import HammingIndex, SimilaritySearch
from similia.search.automatic import name_of
from similia.search.metric import function_of
from similia.search.on_disk import SearchFolder
from similia.similarity import diagonal
from similia.sources.source import Held, Source
from similia.storage.store import Store, consistent

_GROWS = 2  # a kernel grows with the size of objects if its largest k(x, x) is over this many times the smallest
_QUERIES, _NEIGHBOURS = 100, 10  # to measure the recall
_LITTLE = 0.9  # a recall below this gives a warning
_CANDIDATES = 100  # default of large collections
_SMALL, _COUNTS = 20_000, (100, 200, 500, 1000, 2000)  # of collections up to this size, the first with enough recall
_OPTIONS = "bits", "landmarks", "seed", "rerank", "index", "candidates"
BITS = {"bits": 256, "features": 256, "vectors": 4, "auto": 256}  # values of --by, and the default of --bits for each
_KINDS = {"StringBatch": "strings", "GraphBatch": "graphs", "SeriesBatch": "series", "SetBatch": "sets"}


def create(
    folder: Path, stream: Source, data: str, table: dict[str, Any], asked: dict[str, Any], made_by: dict[str, Any]
) -> int:
    """Fit an encoder to a sample of a stream, create the folder of an index, and return the stream's number of objects.

    `asked` holds all options of the index, and under "key" the fingerprint of the stream; it is stored in the folder.
    `made_by` holds only the options of the encoder.
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
        search = SimilaritySearch(encoder, how, n_candidates=asked["candidates"] or _CANDIDATES, index=index)
        if by == "auto":
            search.fit(sample.objects)
            spec = name_of(search.encoder_)
        made = f"{asked['bits']} bits by {spec}" if by == "bits" else f"candidates by {spec}"
        console().print(f"{n} {stream.called}; {made}, sorted by {sort}")
        if by != "auto":
            search.fit(sample.objects)
        remember_columns(search.encoder_, data, table)
        small = n is not None and n <= _SMALL
        counts = _COUNTS if asked["candidates"] is None and small else (search.n_candidates,)
        recall = _measured_recall(search, sample.objects, sort, seed, counts)
        asked = asked | {"candidates": search.n_candidates}
        SearchFolder.create(folder, search, {**asked, "encoder": spec} | ({} if recall is None else {"recall": recall}))
        _show_recall(search, sample.objects, recall, sort, seed, folder)
    return n


def check_way(by: str, kind: str, bits: int | None) -> int:
    """Return --bits, or its default; raise if --by, --kind and --bits are unknown or contradict each other."""
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


def curves(search: SimilaritySearch) -> list[str]:
    """Return the recall by number of candidates, one line for each way to find them that was measured."""
    lines: dict[str, list[str]] = {}
    for one in getattr(search, "trials_", []):
        lines.setdefault(one["candidates"], []).append(f"{one['recall']:.2f} at {one['n_candidates']}")
    return [f"{name}: {', '.join(cells)}" for name, cells in lines.items()]


def not_the_same(opened: SearchFolder, data: str, key: str) -> ValueError:
    """Return an error: the folder already holds an index of other data, or with other options, than `data`.

    `key` is the fingerprint of `data`.
    """
    meta, progress = opened.store.meta, opened.store.progress
    first, added = progress.get(meta.get("key", "")), progress.get(key)
    if meta and ((first and first["done"] != first["n"]) or not len(opened)):
        holds = "; ".join(_unfinished(opened))
        by = meta.get("by", "bits")
        how = "".join(f" --{'kind' if name == 'index' else name} {meta.get(name)}" for name in _OPTIONS)
        how += "" if by == "bits" else f" --by {by}"
        return ValueError(
            f"{opened.folder} is not finished (it holds {holds or 'nothing yet'}); it was built with "
            f"{'bits' if by == 'bits' else 'candidates'} by "
            f"{meta.get('encoder')} and{how}: repeat that command to resume, or delete the folder to start again"
        )
    found = "is an index already"
    remedy = f"to add {'the rest' if added else 'to it'}: similia index add {data} {opened.folder}"
    if added:
        found += f", and {of(added['done'], added['n'])} from {data} were added to it"
        if added["done"] == added["n"]:
            remedy = f"its options: similia index info {opened.folder}"
    return BadFile(opened.folder, f"{found}; {remedy}; to build another one, name a new folder or delete this one")


def _unfinished(opened: SearchFolder, but: str = "") -> list[str]:
    """Return the progress, as text, of each source that was added only in part, except one with fingerprint `but`."""
    sources = opened.store.progress.items()
    return [f"{of(s['done'], s['n'])} from {s['name']}" for key, s in sources if s["done"] != s["n"] and key != but]


def note_unfinished(opened: SearchFolder, but: str = "") -> None:
    for state in _unfinished(opened, but):
        note(f"note: {opened.folder} is not finished: it holds {state}; repeat the command that added them to resume")


def _measured_recall(
    search: SimilaritySearch, sample: Any, sort: str, seed: int, counts: Sequence[int]
) -> dict[str, Any] | None:
    """Return the share of true neighbours in `sample` that a search finds, and how it was measured; None if it cannot.

    `sort` is --rerank. The search gets the first number of candidates of `counts` whose share is not little, or else
    the last; numbers that add none are left out.
    """
    n, curve = len(search), search.rerank is not None
    counts = [count for k, count in enumerate(counts) if k == 0 or counts[k - 1] < n]
    search.set_params(n_candidates=counts[0])
    k = min(_NEIGHBOURS, n - 1, (counts[0] if curve else n) - 1)
    if k < 1 or (sort == "none" and function_of(search.encoder_)[0] is None):
        return None
    queries = sm.objects.take(sample, _rows_asked(n, seed))
    how: dict[str, Any] = {"metric": "projected" if sort == "projected" else "kernel", "objects": sample}
    if curve:
        shares = {c: one.recall for c, one in search.recall_curve(queries, k + 1, n_candidates=counts, **how).items()}
    else:
        shares = {search.n_candidates: search.recall(queries, k + 1, **how).recall}
    shares = {c: max(0.0, ((k + 1) * share - 1) / k) for c, share in shares.items()}  # each query finds itself
    best = next((c for c, share in shares.items() if share >= _LITTLE), max(shares))
    search.set_params(n_candidates=best)
    return {"recall": shares[best], "candidates": best, "neighbors": k, "objects": n}


def _rows_asked(n: int, seed: int) -> Any:
    """Return the rows of the objects that are queries when the recall is measured."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:_QUERIES])


def _show_recall(
    search: SimilaritySearch, sample: Any, measured: dict[str, Any] | None, sort: str, seed: int, folder: Path
) -> None:
    """Print the recall that `_measured_recall` returned; warn if it is low."""
    if measured is None:
        if search.rerank is not None and len(search) > 1:
            console().print(
                "recall not measured, because the one candidate of an object is itself; give --candidates 2 or more"
            )
        elif len(search) > 1:
            how = "recall(queries, metric=similia.kernels.Cosine('projection'), objects=all_of_them)"
            why = "because no kernel or distance says what is near"
            where = f"in Python: SimilaritySearch.load('{folder}').{how}"
            console().print(f"recall not measured, {why}; {where}")
        return
    n, k, share, rows = len(search), measured["neighbors"], measured["recall"], _rows_asked(len(search), seed)
    own = "the kernel or distance of the encoder"
    by = {"projected": "the cosine of their vectors", "kernel": own, "none": own}.get(sort, sort)
    asked = f"{len(rows)} of the {n}" if len(rows) < n else f"all {n}"
    among = "" if search.rerank is None else f" among {min(n, search.n_candidates)} candidates"
    console().print(
        f"recall {share:.2f}: with {asked} objects as queries, the share of their {k} nearest (by {by}) that was "
        f"found{among}"
    )
    if share < _LITTLE:
        note(f"warning: {_low(measured, search.rerank is None)}")
    if share < _LITTLE and sort in ("kernel", "none"):
        _note_growth(*function_of(search.encoder), sm.objects.take(sample, rows))


def _low(measured: dict[str, Any], only_bits: bool) -> str:
    """Return what to do about a low recall."""
    low = f"the recall is below {_LITTLE}"
    if only_bits:
        return f"{low}; an index that was built with --rerank kernel finds more neighbours"
    return (
        f"{low}; more candidates (here {measured['candidates']}) find more neighbours: similia index search "
        "--candidates NUMBER, without building again"
    )


def recall_line(opened: SearchFolder) -> str:
    """Return the recall that was measured when an index was built, and how; empty if it was not measured."""
    if (seen := opened.store.meta.get("recall")) is None:
        return ""
    with_all = "" if opened.search.rerank is None else f" with {seen['candidates']} candidates"
    return (
        f"{seen['recall']:.2f} of the {seen['neighbors']} nearest{with_all}, measured among {seen['objects']} objects"
    )


def note_recall(opened: SearchFolder, candidates: int) -> None:
    """Warn that a search may miss neighbours, if the recall measured with `candidates` or more is low."""
    seen = opened.store.meta.get("recall")
    only_bits = opened.search.rerank is None
    if seen is not None and seen["recall"] < _LITTLE and (only_bits or candidates <= seen["candidates"]):
        note(f"warning: neighbours may be missing (found: {recall_line(opened)}): {_low(seen, only_bits)}")


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

    before, stream.source = len(folder), called(stream.source)
    with stoppable(done, n), meters():
        if not add_stream(folder, stream, key=key, n=n, again=again, workers=workers, say=console().print):
            console().print(f"{stream.source} is in the index already; {once_more}")
    console().print(f"{folder.folder}: {len(folder)} objects")
    result({"folder": folder.folder, "objects": len(folder), "added": len(folder) - before})


def with_queries(folder: Path, queries: str, table: dict[str, Any]) -> tuple[SearchFolder, Objects]:
    """Open an index and read queries; raise if the index is empty or damaged, or the queries are of another kind."""
    from similia.cli.inputs import read_objects

    opened = SearchFolder.open(folder)
    read = read_objects(queries, labelled=False, **with_columns_of(opened.search.encoder_, queries, table))
    check_kind(read, opened)
    if len(opened) == 0:
        raise ValueError(f"{folder} holds no objects; add some with: similia index add DATA {folder}")
    note_unfinished(opened)
    consistent(opened.store.folder, Store.verify)  # a search reads all codes anyway
    return opened, read


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
