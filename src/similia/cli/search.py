"""``similia index`` and ``similia encode``: files in; codes, an index, neighbours out; a killed run is gone on with.

Objects are added in chunks, each committed in one step together with how far the file was read: what a killed run
had not committed is done again by the next, and what it had is not.
"""

from __future__ import annotations

import hashlib
import io
import sys
import time
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
from similia.cli.inputs import Objects, read_objects
from similia.cli.outputs import write_csv
from similia.cli.specs import parse_comparison, parse_distance, parse_kernel
from similia.persistence import write_atomically
from similia.search import HammingIndex, SimilaritySearch
from similia.search._store import Store
from similia.search.on_disk import SearchFolder, is_search
from similia.search.similarity_search import code_length

CHUNK = 10_000  # objects committed together
_FIT_ON = 20_000  # objects that an encoder is fitted to
_SMALL_ALPHABET = 8  # letters up to which k-mers of 4 tell strings apart, above it those of 2
_PARTIAL = ".partial"


def default_encoder(
    data: Objects, kernel: str | None, distance: str | None, bits: int, landmarks: int, seed: int
) -> tuple[str, Any]:
    """Return what makes bits of objects, and its description.

    With a kernel, or of strings and graphs, a `Nystroem` embedding; with a distance, or of series and point sets,
    `D2KE`; then signs of random projections. Vectors get `recipes.pca_itq`.
    """
    if kernel and distance:
        raise ValueError("--kernel and --distance exclude each other: each describes how bits are made")
    project = sm.SignRandomProjection(bits, random_state=seed)
    if kernel is None and distance is None:
        if data.kind == "vectors":
            share = 1.0 if len(data.objects) < _FIT_ON else 0.3
            return "PCA and ITQ", sm.recipes.pca_itq(bits, share, share, random_state=seed)
        if data.kind == "strings":
            kernel = f"Spectrum(k={4 if len(np.unique(data.objects.values)) <= _SMALL_ALPHABET else 2})"
        elif data.kind == "graphs":
            kernel = "WeisfeilerLehman(n_iter=3, normalize=True)"
        else:
            distance = "DTW()" if data.kind == "series" else "ModifiedHausdorff()"
    if kernel:
        count = min(landmarks, len(data.objects))
        nystroem = sm.Nystroem(parse_kernel(kernel), n_components=count, random_state=seed)
        return f"kernel {kernel}", Pipeline([("nystroem", nystroem), ("bits", project)])
    embedding = sm.D2KE(parse_distance(str(distance)), n_components=landmarks, random_state=seed)
    return f"distance {distance}", Pipeline([("d2ke", embedding), ("bits", project)])


def default_rerank(data: Objects) -> str:
    """Return how candidates are sorted if nothing is said."""
    return {"strings": "Levenshtein()", "vectors": "projected"}.get(data.kind, "kernel")


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
    sort = default_rerank(found) if rerank is None else rerank
    asked = {"kind": found.kind, "encoder": spec, "bits": bits, "landmarks": landmarks, "seed": seed, "rerank": sort}
    asked |= {"index": kind, "candidates": candidates}
    if is_search(folder):
        opened = SearchFolder.open(folder)
        source = opened.store.progress.get(_fingerprint(found))
        if opened.store.meta != asked or (source is None and len(opened)):
            raise ValueError(f"{folder} is an index already; add to it with: similia index add {data} {folder}")
    else:
        how = None if sort == "none" else sort if sort in ("projected", "kernel") else parse_comparison(sort)
        index = HammingIndex(bits, kind=kind, random_state=seed)
        search = SimilaritySearch(encoder, how, n_candidates=candidates, index=index)
        console.print(f"{len(found.objects)} {found.kind}; {bits} bits by {spec}, sorted by {sort}")
        SearchFolder.create(folder, search.fit(_sample(found, seed)), asked)
    _add(SearchFolder.open(folder), data, found, again=False, chunk=chunk, console=console)


def add_to_index(data: str, folder: Path, *, text: str, again: bool, chunk: int = CHUNK) -> None:
    """Add the objects of `data`, or those that a killed run left."""
    opened = SearchFolder.open(folder)
    found = read_objects(data, text=text, label=None)
    _check_kind(found, opened)
    _add(opened, data, found, again=again, chunk=chunk, console=Console(soft_wrap=True))


def _add(folder: SearchFolder, data: str, found: Objects, *, again: bool, chunk: int, console: Console) -> None:
    n, print_of = len(found.objects), _fingerprint(found)
    with folder.store.writing():
        sources = folder.store.progress
        source = sources.get(print_of, {"name": data, "n": n, "done": 0, "times": 1})
        if source["done"] == n and not again:
            console.print(f"{data} is in the index already; --again adds its {n} {found.kind} once more")
            return
        if source["done"] == n:
            source = {**source, "done": 0, "times": source["times"] + 1}
        if source["done"]:
            console.print(f"going on after {source['done']} of {n}")
        with sm.config(progress=sys.stderr.isatty()):
            for rows in _chunks(source["done"], n, chunk):
                names = found.names[rows] if found.names is not None else None
                sources[print_of] = {**source, "done": rows.stop}
                part = sm.objects.take(found.objects, np.arange(rows.start, rows.stop))
                folder.add(part, names, progress=sources)
    console.print(f"{folder.folder}: {len(folder)} objects")


def search_index(data: str, folder: Path, output: Path | None, *, k: int, candidates: int | None, text: str) -> None:
    """Write the nearest objects of each query as CSV: query, rank, id, name (where there are names), score."""
    opened = SearchFolder.open(folder)
    queries = read_objects(data, text=text, label=None)
    _check_kind(queries, opened)
    if len(opened) == 0:
        raise ValueError(f"{folder} holds no objects; add some with: similia index add DATA {folder}")
    search, names = opened.load_named(mmap=True)
    k = min(k, len(search))
    search.set_params(n_candidates=max(k, candidates or search.n_candidates))
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
    Console(stderr=True, soft_wrap=True).print(shown)


def show_info(folder: Path) -> None:
    """Print what an index holds and what was added to it."""
    opened = SearchFolder.open(folder)
    meta, store = opened.store.meta, opened.store
    table = Table(title=str(folder), title_justify="left", show_header=False)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    facts = {"objects": f"{len(opened)} {meta.get('kind', '')}".strip(), "bits": store.n_bits}
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
    if output.suffix != ".npy" or not output.parent.is_dir():
        raise ValueError(f"the output must be a .npy file in a folder that exists, got {output}")
    found = read_objects(data, text=text, label=None)
    partial, console = output.with_name(output.name + _PARTIAL), Console(soft_wrap=True)
    by = f"{kernel} {distance} {bits} {landmarks} {seed}" if model is None else _checksum(model)
    asked = {"data": _fingerprint(found), "encoder": by}
    started = (partial / "index.json").exists() and Store.open(partial).meta == asked
    encoder_path = output.with_suffix(".encoder.similia")
    if model is not None:
        encoder = load_encoder(model)
    elif started:
        encoder = sm.load(encoder_path)
    else:
        spec, encoder = default_encoder(found, kernel, distance, bits, landmarks, seed)
        console.print(f"{len(found.objects)} {found.kind}; {bits} bits by {spec}")
        sm.save(encoder.fit(_sample(found, seed)), encoder_path)
    if not started:
        _discard(partial)
        Store.create(partial, code_length(encoder, found.objects), meta=asked)
    store = Store.open(partial)
    with store.writing(), sm.config(progress=sys.stderr.isatty()):
        for rows in _chunks(len(store), len(found.objects), chunk):
            store.append(encoder.transform(sm.objects.take(found.objects, np.arange(rows.start, rows.stop))))
    codes = io.BytesIO()
    np.save(codes, np.concatenate([part for part, _ in store.arrays(mmap=True)]))
    write_atomically(output, codes.getvalue())
    _discard(partial)
    console.print(f"wrote {len(found.objects)} codes of {store.n_bits} bits to {output}")
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


def _sample(found: Objects, seed: int) -> Any:
    """Return the objects that an encoder is fitted to."""
    n = len(found.objects)
    rows = np.random.default_rng(seed).permutation(n)[:_FIT_ON] if n > _FIT_ON else np.arange(n)
    return sm.objects.take(found.objects, np.sort(rows))


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
