"""Build and search an index on disk for ``similia index``; interrupted runs resume.

Objects are added in chunks. Each chunk is committed in one step with the position in the file, so the next run repeats
only what a killed run had not committed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from sklearn.pipeline import Pipeline

import similia as sm
from similia.cli.encoders import check_options, default_encoder, default_rerank, sample_of
from similia.cli.inputs import Objects, has_columns, open_objects, read_objects
from similia.cli.outputs import bars, check_output, meters, stoppable, write_csv
from similia.cli.specs import parse_comparison
from similia.cli.voice import called, console, note, result, voice
from similia.core.errors import BadFile
from similia.scale.stream import CHUNK, add_stream, of, places_named
from similia.search import HammingIndex, SimilaritySearch
from similia.search.metric import function_of
from similia.search.on_disk import SearchFolder, is_search
from similia.similarity import diagonal
from similia.sources.source import Held, Source
from similia.storage.store import Store, consistent

_GROWS = 2  # times the smallest k(x, x), from which a kernel is told to grow with the size of objects
_ASKED, _NEIGHBOURS, _LITTLE = 100, 10, 0.8  # queries that recall is measured by, their neighbours, a recall to warn of
_OPTIONS = "bits", "landmarks", "seed", "rerank", "index", "candidates"
_KINDS = {"StringBatch": "strings", "GraphBatch": "graphs", "SeriesBatch": "series", "SetBatch": "sets"}


def build_index(
    data: str,
    folder: Path,
    *,
    kernel: str | None,
    distance: str | None,
    rerank: str | None,
    kind: str,
    bits: int,
    landmarks: int,
    candidates: int,
    seed: int,
    chunk: int = CHUNK,
    workers: Any = None,
    **table: Any,
) -> None:
    """Fit an encoder to `data`, write it, and add the objects; resume a run with the same options."""
    check_options(kernel, distance, bits)
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    key, n = stream.fingerprint(), stream.n
    sort = default_rerank(stream, kernel, distance) if rerank is None else rerank
    sort = distance if distance and sort == "kernel" else sort
    made_by: dict[str, Any] = {
        "kernel": kernel,
        "distance": distance,
        "bits": bits,
        "landmarks": landmarks,
        "seed": seed,
    }
    asked = {"kind": stream.kind, "rerank": sort, "index": kind, "candidates": candidates, **made_by}
    asked |= {} if table.get("names") is None else {"id": table["names"]}
    if is_search(folder):
        opened = SearchFolder.open(folder)
        meta = {name: value for name, value in opened.store.meta.items() if name != "encoder"}
        if meta != asked or (key not in opened.store.progress and len(opened)):
            raise _not_the_same(opened, data)
        n = opened.store.progress.get(key, {"n": n})["n"]
    else:
        how = None if sort == "none" else sort if sort in ("projected", "kernel") else parse_comparison(sort)
        index = HammingIndex(bits, kind=kind, random_state=seed)
        with stoppable(lambda: 0, n), meters():
            n, sample, numbers = sample_of(stream, seed)
        if getattr(sample.objects, "dtype", None) == np.uint8:
            note(
                f"note: {called(data)} holds bytes, read as numbers; search codes of 'similia encode' with "
                "similia.HammingIndex"
            )
        with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
            spec, encoder = default_encoder(sample, **made_by)
            search = SimilaritySearch(encoder, how, n_candidates=candidates, index=index)
            console().print(f"{n} {stream.called}; {bits} bits by {spec}, sorted by {sort}")
            SearchFolder.create(folder, search.fit(sample.objects), {**asked, "encoder": spec})
            _show_recall(search, sample.objects, sort, seed, folder)
    once_more = f"to add its objects again: similia index add --again {data} {folder}"
    _add(SearchFolder.open(folder), stream, key, n, once_more, workers=workers)


def _not_the_same(opened: SearchFolder, data: str) -> ValueError:
    """Return the error for building an index from `data` in a folder that has another one."""
    meta, holds = opened.store.meta, "; ".join(_unfinished(opened))
    if meta and (holds or not len(opened)):
        how = "".join(f" --{'kind' if name == 'index' else name} {meta.get(name)}" for name in _OPTIONS)
        return ValueError(
            f"{opened.folder} is not finished (it holds {holds or 'nothing yet'}); it was built with bits by "
            f"{meta.get('encoder')} and{how}: run that again to resume, or delete the folder to start again"
        )
    return ValueError(f"{opened.folder} is an index already; add to it with: similia index add {data} {opened.folder}")


def _unfinished(opened: SearchFolder, but: str = "") -> list[str]:
    """Return the progress of each partly added source; `but` is the fingerprint of one to leave out."""
    sources = opened.store.progress.items()
    return [f"{of(s['done'], s['n'])} from {s['name']}" for key, s in sources if s["done"] != s["n"] and key != but]


def _note_unfinished(opened: SearchFolder, but: str = "") -> None:
    for state in _unfinished(opened, but):
        note(
            f"note: {opened.folder} is not finished: it holds {state}; run the command that added them again to resume"
        )


def _show_recall(search: SimilaritySearch, sample: Any, sort: str, seed: int, folder: Path) -> None:
    """Print the recall of some objects' true neighbours among the objects to which the encoder was fitted."""
    n = len(search)
    k = min(_NEIGHBOURS, n - 1, (n if search.rerank is None else search.n_candidates) - 1)
    if k < 1:
        return
    compares = function_of(search.encoder)[0] is not None
    if sort == "none" and not compares:
        how = "recall(queries, metric=similia.kernels.Cosine('projection'), objects=all_of_them)"
        line = f"recall not measured: only the bits are compared; in Python: SimilaritySearch.load('{folder}').{how}"
        console().print(line, markup=False)
        return
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_ASKED])
    queries = sm.objects.take(sample, rows)
    by = "projected" if sort == "projected" else "kernel"
    with_itself = search.recall(queries, k + 1, metric=by, objects=sample).recall
    share = max(0.0, ((k + 1) * with_itself - 1) / k)  # ignore that an object finds itself
    own = "the kernel or distance of the encoder"
    by = {"projected": "the cosine of their vectors", "kernel": own, "none": own}.get(sort, sort)
    asked = f"{len(rows)} of the {n}" if len(rows) < n else f"all {n}"
    console().print(
        f"recall {share:.2f}: with {asked} objects as queries, the share of their {k} nearest by {by} found"
    )
    if share < _LITTLE and sort == "none":
        note(f"warning: the recall is below {_LITTLE}; --rerank kernel compares the --candidates again and finds more")
    elif share < _LITTLE:
        note(f"warning: the recall is below {_LITTLE}; more --candidates (here {search.n_candidates}) find more")
    if share < _LITTLE and sort in ("kernel", "none"):
        _note_growth(*function_of(search.encoder), queries)


def _note_growth(function: Any, is_kernel: bool, objects: Any) -> None:
    """Warn if kernel values grow with the size of objects, which would then determine the neighbours."""
    if not is_kernel:
        return
    own = diagonal(function, objects)
    if own.max() > _GROWS * own.min():
        spec = " ".join(repr(function).split())
        note(
            f"warning: values of {spec} grow with the size of objects, so that size decides which objects are near; "
            f"--kernel 'Normalized({spec})' compares regardless of size"
        )


def add_to_index(
    data: str, folder: Path, *, again: bool, chunk: int = CHUNK, workers: Any = None, **table: Any
) -> None:  # fmt: skip
    """Add the objects of `data`, or the rest after a killed run; `table` has the options for reading.

    The column of names is the one with which the index was built, unless another is named.
    """
    opened = SearchFolder.open(folder)
    built_with = opened.store.meta.get("id")
    if table.get("names") is None and built_with is not None and has_columns(data, **table):
        table["names"] = built_with
    stream = open_objects(data, chunk=chunk, workers=workers, **table)
    _check_kind(stream, opened)
    key = stream.fingerprint()
    _note_unfinished(opened, but=key)
    n = opened.store.progress.get(key, {"n": stream.n})["n"]
    once_more = f"--again adds its {n} {stream.called} again"
    _add(opened, stream, key, n, once_more, again=again, workers=workers)


def remove_from_index(folder: Path, wanted: list[str], by: str | None = None) -> None:
    """Remove objects by "id" or "name", or by either if this is unambiguous."""
    if by not in (None, "id", "name"):
        raise ValueError(f"--by must be id or name, got {by}")
    opened = SearchFolder.open(folder)
    search, names = opened.load_named(mmap=True)
    there, named = set(search.ids_.tolist()), defaultdict[str, list[int]](list)
    for i, name in names.items():
        if i in there:
            named[name].append(i)
    ids: set[int] = set()
    for text in wanted:
        found = set(named.get(text, [])) if by != "id" else set()
        own = {int(text)} & there if text.isdecimal() and by != "name" else set()
        if not found | own:
            raise ValueError(f"{folder} holds no object with the {by or 'id or name'} {text}; nothing was removed")
        if found and own - found:
            raise ValueError(
                f"{text} is the id of one object and the name of another, whose id is {min(found)}; nothing was "
                "removed; say which with --by id or --by name"
            )
        ids |= found | own
    opened.remove(np.array(sorted(ids)))
    console().print(f"removed {len(ids)}; {folder}: {len(opened)} objects")
    result({"folder": folder, "removed": sorted(ids), "objects": len(opened)})


def _add(
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


def search_index(data: str, folder: Path, output: Path | None, *, k: int, candidates: int | None, **table: Any) -> None:
    """Write the nearest objects of each query as CSV: query, rank, id, name (where there are names), distance."""
    if output is not None:
        check_output(output, data)
    opened = SearchFolder.open(folder)
    queries = read_objects(data, labelled=False, **table)
    _check_kind(queries, opened)
    if len(opened) == 0:
        raise ValueError(f"{folder} holds no objects; add some with: similia index add DATA {folder}")
    _note_unfinished(opened)
    consistent(opened.store.folder, Store.verify)  # a search reads all codes anyway
    search, called = opened.load_named(mmap=True)
    if k > len(search):
        note(f"note: -k {k} is more than the {len(search)} objects of the index; all are listed")
        k = len(search)
    candidates = candidates or search.n_candidates
    if k > candidates and search.rerank is not None:
        note(f"note: -k {k} is more than the {candidates} candidates; {k} candidates are compared")
    search.set_params(n_candidates=max(k, candidates))
    with places_named(Held(queries)):
        search.kneighbors(sm.objects.take(queries.objects, [0]), k)  # compile first, to exclude it from the time below
        start = time.perf_counter()
        distances, ids = search.kneighbors(queries.objects, k)
        seconds = time.perf_counter() - start
    asked = queries.names or range(len(ids))
    rows = [
        {"query": query, "rank": rank, "id": i} | ({"name": called.get(i, "")} if called else {}) | {"distance": value}
        for query, found, values in zip(asked, ids.tolist(), distances.tolist(), strict=True)
        for rank, (i, value) in enumerate(zip(found, values, strict=True), start=1)
    ]
    if output is not None or not voice().json:
        lines = [{**row, "distance": f"{row['distance']:.6g}"}.values() for row in rows]
        write_csv([list(rows[0]), *map(list, lines)], output)
    each = 1000 * seconds / len(ids)
    result({"query_milliseconds": each, "objects": len(search), "neighbours": rows})
    note(f"{each:.2f} ms for each of {len(ids)} queries among {len(search)}, start-up not counted")


def show_info(folder: Path) -> None:
    """Print what an index holds and what was added to it."""
    opened = SearchFolder.open(folder)
    meta, store = opened.store.meta, opened.store
    table = Table(title=str(folder), title_justify="left", show_header=False)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    search = opened.search
    encoder = search.encoder.steps if isinstance(search.encoder, Pipeline) else [("", search.encoder)]
    saved = {  # of a folder that Python saved
        "kind": _KINDS.get(type(opened.example).__name__, "objects"),
        "encoder": " -> ".join(" ".join(repr(step).split()) for _, step in encoder),
        "rerank": "none" if search.rerank is None else search.rerank,
        "candidates": search.n_candidates,
        "index": store.settings.get("kind", "exact"),
    }
    meta = saved | meta
    facts = {"objects": f"{len(opened)} {meta['kind']}".removesuffix(" objects"), "bits": store.n_bits}
    facts |= {name: meta[name] for name in ("encoder", "rerank", "candidates", "index", "id", "seed") if name in meta}
    sources = [{name: source[name] for name in ("name", "done", "n", "times")} for source in store.progress.values()]
    result({**facts, "objects": len(opened), "kind": meta["kind"], "bytes": size, "sources": sources})
    for name, value in {**facts, "size on disk": f"{size / 1e6:.1f} MB"}.items():
        table.add_row(name, str(value))
    for source in store.progress.values():
        times = f", {source['times']} times" if source["times"] > 1 else ""
        state = "" if source["done"] == source["n"] else " (not finished: run the same command again)"
        table.add_row("added", f"{of(source['done'], source['n'])}{times}{state}\nfrom {source['name']}")
    console().print(table)


def _check_kind(found: Objects | Source, opened: SearchFolder) -> None:
    kind = opened.store.meta.get("kind", found.kind)
    if found.kind != kind:
        molecules = found.kind == "graphs" and kind == "strings" and has_columns(found.source)
        hint = "; --text instead of --smiles reads them as strings" if molecules else ""
        raise BadFile(found.source, f"holds {found.called}, and {opened.folder} is an index of {kind}{hint}")
