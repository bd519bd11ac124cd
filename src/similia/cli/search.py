"""``similia index`` and ``similia encode``: files in; codes, an index, neighbours out; a killed run is gone on with.

Objects are added in chunks, each committed in one step together with how far the file was read: what a killed run
had not committed is done again by the next, and what it had is not.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.pipeline import Pipeline

import similia as sm
from similia._progress import track
from similia.cli.encoders import default_encoder, default_rerank, fit_sample
from similia.cli.inputs import Objects, read_objects
from similia.cli.outputs import check_output, note, stoppable, write_csv
from similia.cli.specs import parse_comparison
from similia.persistence import write_atomically
from similia.search import HammingIndex, SimilaritySearch
from similia.search._metric import metric_of, shares_found
from similia.search._store import Store
from similia.search.on_disk import SearchFolder, is_search
from similia.search.similarity_search import code_length

CHUNK = 10_000  # objects committed together
_PARTIAL = ".partial"
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
    text: str,
    seed: int,
    chunk: int = CHUNK,
) -> None:
    """Fit an encoder to `data`, write it, and add the objects; goes on if a run with the same options was killed."""
    console = Console(soft_wrap=True)
    found = read_objects(data, text=text, label=None)
    spec, encoder = default_encoder(found, kernel, distance, bits, landmarks, seed)
    sort = default_rerank(found, distance) if rerank is None else rerank
    sort = distance if distance and sort == "kernel" else sort
    asked = {"kind": found.kind, "encoder": spec, "bits": bits, "landmarks": landmarks, "seed": seed, "rerank": sort}
    asked |= {"index": kind, "candidates": candidates}
    if is_search(folder):
        opened = SearchFolder.open(folder)
        source = opened.store.progress.get(_fingerprint(found))
        if opened.store.meta != asked or (source is None and len(opened)):
            raise _not_the_same(opened, data)
    else:
        how = None if sort == "none" else sort if sort in ("projected", "kernel") else parse_comparison(sort)
        index = HammingIndex(bits, kind=kind, random_state=seed)
        search = SimilaritySearch(encoder, how, n_candidates=candidates, index=index)
        console.print(f"{len(found.objects)} {found.kind}; {bits} bits by {spec}, sorted by {sort}")
        with stoppable(lambda: 0, len(found.objects)):
            sample = fit_sample(found, seed)
            SearchFolder.create(folder, search.fit(sample), asked)
            _show_recall(search, sample, sort, seed, console)
    once_more = f"to add its objects once more: similia index add --again {data} {folder}"
    _add(SearchFolder.open(folder), data, found, again=False, chunk=chunk, console=console, once_more=once_more)


def _not_the_same(opened: SearchFolder, data: str) -> ValueError:
    """Return what is wrong with building an index from `data` where there is one."""
    meta, holds = opened.store.meta, "; ".join(_unfinished(opened))
    if meta and (holds or not len(opened)):
        how = "".join(f" --{'kind' if name == 'index' else name} {meta.get(name)}" for name in _OPTIONS)
        return ValueError(
            f"{opened.folder} is not finished (it holds {holds or 'nothing yet'}); it was built with bits by "
            f"{meta.get('encoder')} and{how}: run that again to go on, or delete the folder to start anew"
        )
    return ValueError(f"{opened.folder} is an index already; add to it with: similia index add {data} {opened.folder}")


def _unfinished(opened: SearchFolder, but: str = "") -> list[str]:
    """Return how far each source was added that was not added whole; `but` is the fingerprint of one to leave out."""
    sources = opened.store.progress.items()
    return [f"{s['done']} of {s['n']} from {s['name']}" for key, s in sources if s["done"] < s["n"] and key != but]


def _note_unfinished(opened: SearchFolder, but: str = "") -> None:
    for state in _unfinished(opened, but):
        note(f"note: {opened.folder} is not finished: it holds {state}; run the command that added them again")


def _show_recall(search: SimilaritySearch, sample: Any, sort: str, seed: int, console: Console) -> None:
    """Print how many of the true neighbours of some objects are found among those an encoder was fitted to."""
    n = len(search)
    k = min(_NEIGHBOURS, n - 1, (n if search.rerank is None else search.n_candidates) - 1)
    if k < 1 or (sort == "none" and not _compares(search.encoder)):
        return
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_ASKED])
    queries = sm.objects.take(sample, rows)
    if sort == "projected":
        answers = search._rows(search.search(queries, k + 1)[0])
        with_itself = float(np.mean(shares_found(-search.vectors_[rows] @ search.vectors_.T, answers)))
    else:
        with_itself = search.recall(queries, k + 1, objects=sample).recall
    share = max(0.0, ((k + 1) * with_itself - 1) / k)  # that an object finds itself tells nothing
    own = "what the encoder compares by"
    by = {"projected": "the cosine of their vectors", "kernel": own, "none": own}.get(sort, sort)
    console.print(f"recall {share:.2f}: of their {k} nearest by {by}, the share that {len(rows)} of {n} objects find")
    if share < _LITTLE:
        note(f"warning: a recall below {_LITTLE}; more --candidates or --bits find more")


def _compares(encoder: Any) -> bool:
    try:
        metric_of(encoder)
    except ValueError:
        return False
    return True


def add_to_index(data: str, folder: Path, *, text: str, again: bool, chunk: int = CHUNK) -> None:
    """Add the objects of `data`, or those that a killed run left."""
    opened = SearchFolder.open(folder)
    found = read_objects(data, text=text, label=None)
    _check_kind(found, opened)
    _note_unfinished(opened, but=_fingerprint(found))
    once_more = f"--again adds its {len(found.objects)} {found.kind} once more"
    _add(opened, data, found, again=again, chunk=chunk, console=Console(soft_wrap=True), once_more=once_more)


def remove_from_index(folder: Path, wanted: list[str]) -> None:
    """Remove objects by id or name."""
    opened = SearchFolder.open(folder)
    search, names = opened.load_named(mmap=True)
    there, named = set(search.ids_.tolist()), defaultdict[str, list[int]](list)
    for i, name in names.items():
        if i in there:
            named[name].append(i)
    ids: set[int] = set()
    for text in wanted:
        found = set(named.get(text, []))
        own = {int(text)} & there if text.isdecimal() else set()
        if not found | own:
            raise ValueError(f"{folder} holds no object with the id or name {text}; nothing was removed")
        if found and own - found:
            raise ValueError(
                f"{text} is the id of one object and the name of another, whose id is {min(found)}; nothing was removed"
            )
        ids |= found | own
    opened.remove(np.array(sorted(ids)))
    Console(soft_wrap=True).print(f"removed {len(ids)}; {folder}: {len(opened)} objects")


def _add(
    folder: SearchFolder, data: str, found: Objects, *, again: bool, chunk: int, console: Console, once_more: str
) -> None:
    n, print_of = len(found.objects), _fingerprint(found)
    with folder.store.writing():
        sources = folder.store.progress
        source = sources.get(print_of, {"name": data, "n": n, "done": 0, "times": 1})
        if source["done"] == n and not again:
            console.print(f"{data} is in the index already; {once_more}")
            return
        if source["done"] == n:
            source = {**source, "done": 0, "times": source["times"] + 1}
        if source["done"]:
            console.print(f"going on after {source['done']} of {n}")
        with stoppable(lambda: folder.store.progress.get(print_of, source)["done"], n), _progress():
            for rows in _chunks(source["done"], n, chunk):
                names = found.names[rows] if found.names is not None else None
                sources[print_of] = {**source, "done": rows.stop}
                part = sm.objects.take(found.objects, np.arange(rows.start, rows.stop))
                folder.add(part, names, progress=sources)
    console.print(f"{folder.folder}: {len(folder)} objects")


def search_index(data: str, folder: Path, output: Path | None, *, k: int, candidates: int | None, text: str) -> None:
    """Write the nearest objects of each query as CSV: query, rank, id, name (where there are names), score."""
    if output is not None:
        check_output(output, data)
    opened = SearchFolder.open(folder)
    queries = read_objects(data, text=text, label=None)
    _check_kind(queries, opened)
    if len(opened) == 0:
        raise ValueError(f"{folder} holds no objects; add some with: similia index add DATA {folder}")
    _note_unfinished(opened)
    search, names = opened.load_named(mmap=True)
    if k > len(search):
        note(f"note: -k {k} is more than the {len(search)} objects there are; all are given")
        k = len(search)
    candidates = candidates or search.n_candidates
    if k > candidates and search.rerank is not None:
        note(f"note: -k {k} is more than the {candidates} candidates; {k} are sorted")
    search.set_params(n_candidates=max(k, candidates))
    start = time.perf_counter()
    ids, scores = search.search(queries.objects, k=k)
    seconds = time.perf_counter() - start
    asked = queries.names or [str(i) for i in range(len(ids))]
    rows: list[list[Any]] = [["query", "rank", "id", *(["name"] if names else []), "score"]]
    for query, found, values in zip(asked, ids.tolist(), scores.tolist(), strict=True):
        for rank, (i, value) in enumerate(zip(found, values, strict=True), start=1):
            rows.append([query, rank, i, *([names.get(i, "")] if names else []), f"{value:.6g}"])
    write_csv(rows, output)
    shown = f"{1000 * seconds / len(ids):.2f} ms for each of {len(ids)} queries among {len(search)}"
    note(shown)


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
    facts |= {name: meta[name] for name in ("encoder", "rerank", "candidates", "index", "seed") if name in meta}
    for name, value in {**facts, "size on disk": f"{size / 1e6:.1f} MB"}.items():
        table.add_row(name, str(value))
    for source in store.progress.values():
        times = f", {source['times']} times" if source["times"] > 1 else ""
        state = "" if source["done"] == source["n"] else " (not finished: run the same command again)"
        table.add_row("added", f"{source['done']} of {source['n']}{times}{state}\nfrom {source['name']}")
    Console().print(table)


def encode(
    data: str,
    output: Path,
    *,
    model: Path | None,
    kernel: str | None,
    distance: str | None,
    bits: int,
    landmarks: int,
    text: str,
    seed: int,
    chunk: int = CHUNK,
) -> None:
    """Write packed codes as .npy; without a model, fit an encoder and write it beside them."""
    if output.suffix != ".npy":
        raise ValueError(f"the output must be a .npy file, got {output}")
    encoder_path = output.with_suffix(".encoder.similia")
    for path in [output] if model is not None else [output, encoder_path]:
        check_output(path, data, model)
    found = read_objects(data, text=text, label=None)
    n = len(found.objects)
    partial, console = output.with_name(output.name + _PARTIAL), Console(soft_wrap=True)
    by = f"{kernel} {distance} {bits} {landmarks} {seed}" if model is None else _checksum(model)
    asked = {"data": _fingerprint(found), "encoder": by}
    started = (partial / "index.json").exists() and Store.open(partial).meta == asked
    if model is not None:
        encoder = load_encoder(model)
    elif started:
        encoder = sm.load(encoder_path)
    else:
        spec, encoder = default_encoder(found, kernel, distance, bits, landmarks, seed)
        console.print(f"{n} {found.kind}; {bits} bits by {spec}")
        with stoppable(lambda: 0, n):
            sm.save(encoder.fit(fit_sample(found, seed)), encoder_path)
    if not started:
        _discard(partial)
        Store.create(partial, code_length(encoder, found.objects), meta=asked)
    store = Store.open(partial)
    if len(store):
        console.print(f"going on after {len(store)} of {n}")
    with store.writing(), stoppable(lambda: len(store), n), _progress():
        for rows in _chunks(len(store), n, chunk):
            store.append(encoder.transform(sm.objects.take(found.objects, np.arange(rows.start, rows.stop))))
    codes = io.BytesIO()
    np.save(codes, np.concatenate([part for part, _ in store.arrays(mmap=True)]))
    write_atomically(output, codes.getvalue())
    _discard(partial)
    console.print(f"wrote {n} codes of {store.n_bits} bits to {output}")
    if model is None:
        console.print(f"wrote the encoder to {encoder_path}; other data: similia encode DATA --model {encoder_path}")


def load_encoder(path: Path) -> Any:
    """Return what makes bits in a model that `similia.save` wrote, or in an index."""
    if path.is_dir():
        return SearchFolder.open(path).search.encoder_
    model = sm.load(path)
    if isinstance(model, Pipeline) and not hasattr(model[-1], "transform"):
        return model[:-1]  # a classifier's
    return model


def _checksum(model: Path) -> str:
    """Return what tells a model or index from another one in its place."""
    path = model / "search.similia" if model.is_dir() else model
    return hashlib.blake2b(path.read_bytes() if path.is_file() else b"", digest_size=16).hexdigest()


def _progress() -> Any:
    return sm.config(progress=sys.stderr.isatty())


def _chunks(start: int, n: int, size: int) -> Iterator[slice]:
    starts = range(start, n, size)
    return (slice(first, min(n, first + size)) for first in track(starts, "chunks", len(starts)))


def _fingerprint(found: Objects) -> str:
    """Return what tells collections apart, whatever file and column they are from."""
    objects = found.objects
    arrays = [objects] if isinstance(objects, np.ndarray) else [getattr(objects, f.name) for f in fields(objects)]
    digest = hashlib.blake2b(f"{found.kind} {found.names}".encode(), digest_size=16)
    for array in map(np.atleast_1d, arrays):  # flags and what is None as arrays of one
        digest.update(f"{array.dtype} {array.shape}".encode())
        for start in range(0, len(array), CHUNK):
            block = array[start : start + CHUNK]
            digest.update(str(block).encode() if block.dtype == object else np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()


def _check_kind(found: Objects, opened: SearchFolder) -> None:
    kind = opened.store.meta.get("kind", found.kind)
    if found.kind != kind:
        raise ValueError(f"{found.source} holds {found.kind}, and {opened.folder} is an index of {kind}")


def _discard(folder: Path) -> None:
    """Delete the folder of a `Store`: first the manifest, without which it is none."""
    if folder.is_dir():
        for path in sorted(folder.iterdir(), key=lambda path: path.name != "index.json"):
            path.unlink()
        folder.rmdir()
