"""What is fuzzed: readers of files, folders and archives, converters of Python objects, parsers of text.

A target makes an input from a `random.Random` and gives it to one function of similia. Valid files come from our own
writers or are written out here; they are small, so that thousands of inputs go through in a second.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from _mutate import as_json, mutated_bytes, mutated_json, mutated_npy, mutated_object, npy, packed

import similia as sm

Files = dict[str, bytes]


@dataclass
class Target:
    """One function under attack.

    Attributes
    ----------
    name : str
    share : float
        Of all inputs, relative to the other targets.
    corpus : callable
        Returns what `make` starts from; called once in a process.
    make : callable
        ``make(rng, corpus)`` returns one input.
    call : callable
        ``call(item, folder)`` gives it to the function.
    words : tuple of str
        A refusal must hold one of these: what was wrong with which file or item.
    theirs : bool
        Whether what scikit-learn raises, called by no line of ours, counts as a refusal: of its own estimators.
    """

    name: str
    share: float
    corpus: Callable[[], Any]
    make: Callable[[Random, Any], Any]
    call: Callable[[Any, Path], Any]
    words: tuple[str, ...] = ()
    theirs: bool = False
    _made: Any = field(default=None, repr=False)

    def item(self, rng: Random) -> Any:
        """Return one input."""
        if self._made is None:
            self._made = self.corpus()
        return self.make(rng, self._made)


# --- text files -------------------------------------------------------------------------------

_FASTA = (
    b">a label=1\nACGT\nAC\n>b label=2\nGG\n", b">x\n\n>y y\nacgtn*-\n;comment\nA\n", b">\xc3\xa9 label=0\nM\n",
    b"\xef\xbb\xbf>one\r\nACGT\r\n>two\r\nAC\r\n",
)  # fmt: skip
_FASTQ = (b"@a\nACGT\n+\nIIII\n@b\nAC\n+b\n!~\n", b"@x\n\n+\n\n", b"@r label=1\r\nA\r\n+\r\n@\r\n")
_CSV = (
    b'text,label,x\n"one, two",1,0.5\nthree,2,1e3\n', b'text,label\n"a ""b""\nc",1\nd,2\n',
    b"label,text\n1,\xc3\xa9\n2,\n", b"1.5,2\n3,4\n", b"text\tlabel\nab\t1\ncd\t2\n",
)  # fmt: skip
_TSV = (b"text\tlabel\tx\nab\t1\t0\nc d\t2\t1\n", b'text\tlabel\n"q\t1\n', b"label\ttext\r\n1\tabc\r\n")
_TS = (
    b"@dimensions 2\n@classLabel true up down\n@data\n1,2,3:4,5,6:up\n2,1:0,0:down\n",
    b"#c\n@problemName X\n@timeStamps false\n@univariate true\n@equalLength true\n@seriesLength 3\n"
    b"@classLabel false\n@data\n1,2,3\n4,5.5,-6e2\n",
    b"@targetLabel true\n@data\n1,2:0.5\n3,4:1.5\n",
    b"%c\n@univariate false\n@classLabel true a b\n@data\n1:2:a\n3:4:b\n",
)
_TU: tuple[Files, ...] = (
    {
        "A": b"1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n", "graph_indicator": b"1\n1\n1\n2\n2\n", "graph_labels": b"1\n-1\n",
        "node_labels": b"0\n1\n0\n1\n1\n", "edge_labels": b"0\n0\n1\n1\n0\n0\n",
        "edge_attributes": b"0.5\n0.5\n1\n1\n2\n2\n", "node_attributes": b"1.0, 2.0\n0, 0\n1, 1\n2, 2\n3, 3\n",
    },
    {"A": b"1,2\n2,1\n", "graph_indicator": b"1\n1\n3\n"},
    {"A": b"", "graph_indicator": b"1\n2\n", "graph_attributes": b"0.5,1\n1.5,2\n", "node_labels": b"0,1\n1,0\n"},
    {"A": b"1, 2\n2, 1\n1, 1\n1, 2\n", "graph_indicator": b"1\n1\n", "graph_labels": b"1\n",
     "edge_attributes": b"1,2\n3,4\n5,6\n7,8\n"},
)  # fmt: skip


def _text_file(rng: Random, corpus: tuple[str, Sequence[bytes]]) -> Files:
    name, valid = corpus
    data = mutated_bytes(rng, rng.choice(valid), valid)
    kind = rng.randrange(12)
    if kind > 1:
        return {name: data}
    data = gzip.compress(data, 1, mtime=0)
    return {f"{name}.gz": mutated_bytes(rng, data, [data]) if kind else data}


def _whole(read: Callable[[Path], Any]) -> Callable[[Files, Path], Any]:
    """Return a caller that writes the one file of an input and reads it."""

    def call(files: Files, folder: Path) -> Any:
        ((name, data),) = files.items()
        path = folder / name
        path.write_bytes(data)
        try:
            return read(path)
        finally:
            path.unlink()

    return call


def _text(name: str, share: float, file: str, valid: Sequence[bytes], read: Callable[[Path], Any]) -> Target:
    return Target(name, share, lambda: (file, valid), _text_file, _whole(read), (file,))


def _columns(path: Path) -> Any:
    sm.sources.read_columns(path, "text", "label")
    return sm.sources.read_columns(path, 0, -1, header=False)


def _tu_files(rng: Random, corpus: Sequence[Files]) -> Files:
    files = dict(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.choice(list(files))
        if rng.randrange(12) == 0:
            del files[kind]
        else:
            files[kind] = mutated_bytes(rng, files[kind], list(files.values()))
        if not files:
            break
    return {f"NAME_{kind}.txt": data for kind, data in files.items()}


def _tu_folder(files: Files, folder: Path) -> Any:
    place = folder / "NAME"
    _write(files, place)
    return sm.objects.read_tudataset(place)


def _write(files: Files, place: Path) -> None:
    """Make a folder that holds these files and no others."""
    if place.is_dir():
        for name in os.listdir(place):
            if name not in files:
                (place / name).unlink() if not (place / name).is_dir() else shutil.rmtree(place / name)
    for name, data in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _tu_zip(rng: Random, corpus: Sequence[Files]) -> Files:
    files = _tu_files(rng, corpus)
    if rng.randrange(6) == 0:
        files |= {
            rng.choice(("OTHER_graph_indicator.txt", "d/NAME_A.txt", "readme", "NAME_node_labels.txt")): b"1\n2\n"
        }
    return {"NAME.zip": packed(rng, {f"NAME/{name}": data for name, data in files.items()})}


# --- binary files -----------------------------------------------------------------------------


def _arrays() -> list[bytes]:
    x = np.arange(12.0).reshape(4, 3)
    return [npy(x), npy(x.astype(np.float32)), npy(x.astype(np.int64)), npy(np.asfortranarray(x)), npy(x[0])]


def _npy_file(rng: Random, corpus: Sequence[bytes]) -> Files:
    return {"x.npy": mutated_npy(rng, rng.choice(corpus))}


def _read_npy(path: Path) -> Any:
    from similia.cli.inputs import read_objects

    return np.isfinite(read_objects(str(path)).objects).all()


def _parquets() -> list[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    tables: list[dict[str, Any]] = [
        {"text": ["ab", "cd", None], "label": [1, 2, 3]},
        {"text": ["ab", "cd"], "label": ["x", "y"]},
        {"text": [1.5, None], "label": [b"a", b"b"]},
        {"text": [["a"], ["b", "c"]], "label": [{"a": 1}, {"a": 2}]},
        {"text": pa.array(["a", "b", "a"]).dictionary_encode(), "label": pa.array([1, 2, 3], pa.timestamp("ns"))},
    ]
    files = []
    for i, table in enumerate(tables):
        buffer = io.BytesIO()
        parquet.write_table(pa.table(table), buffer, compression=("none", "snappy", "zstd")[i % 3])
        files.append(buffer.getvalue())
    return files


def _parquet_file(rng: Random, corpus: Sequence[bytes]) -> Files:
    return {"x.parquet": mutated_bytes(rng, rng.choice(corpus), corpus)}


def _read_parquet(path: Path) -> Any:
    return sm.sources.read_columns(path, "text", "label")


# --- what the command line reads --------------------------------------------------------------


def _any_file(rng: Random, corpus: Any) -> Files:
    name, valid = rng.choice(
        (("x.fa", _FASTA), ("x.fastq", _FASTQ), ("x.csv", _CSV), ("x.tsv", _TSV), ("x.ts", _TS), ("x.txt", _CSV))
    )
    return _text_file(rng, (name, valid))


def _read_any(path: Path) -> Any:
    from similia.cli.inputs import read_objects

    return read_objects(str(path), label="label" if path.stat().st_size % 2 else None)


# --- streams ----------------------------------------------------------------------------------


def _stream_file(rng: Random, corpus: Any) -> Files:
    arrays, tables = corpus
    kind = rng.randrange(12)
    if kind == 0:
        return _npy_file(rng, arrays)
    if kind == 1 and tables:
        return _parquet_file(rng, tables)
    return _text_file(rng, rng.choice((("x.fa", _FASTA), ("x.fastq", _FASTQ), ("x.csv", _CSV), ("x.tsv", _TSV))))


def _read_stream(path: Path) -> Any:
    from similia.sources.streams import open_stream

    stream = open_stream(path, chunk=2)
    stops = [chunk.stop for chunk in stream.chunks()]
    if stops:
        list(open_stream(path, chunk=1, max_bytes=8).chunks(stops[len(stops) // 2]))


# --- folders of an index ----------------------------------------------------------------------


def _folder_files(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }  # fmt: skip


def _index_folders() -> list[Files]:
    made, rng = [], np.random.default_rng(0)
    codes = rng.integers(0, 256, (40, 4), dtype=np.uint8)
    for options in ({}, {"kind": "multihash", "n_hashes": 2}):
        with tempfile.TemporaryDirectory() as folder:
            index = sm.HammingIndex(32, **options).fit(codes[:30], ids=np.arange(30) * 3)
            index.save(folder)
            index.add(codes[30:]).remove([3, 6]).save(folder)
            made.append(_folder_files(Path(folder)))
    return made


def _index_folder(rng: Random, corpus: Sequence[Files]) -> Files:
    files = dict(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2))):
        # the structure is parsed by faiss, which expects no hostile file (as the docstring says): it stays as it is
        name = rng.choice([name for name in files if not name.startswith("structure")] + ["index.json"] * 3)
        if name == "index.json":
            files[name] = _mutated_manifest(rng, files[name])
        elif rng.randrange(10) == 0:
            del files[name]
        else:
            files[name] = mutated_npy(rng, files[name])
        if name not in files:
            break
    if rng.random() < 0.6:
        files = _resealed(files)
    return files


def _mutated_manifest(rng: Random, data: bytes) -> bytes:
    """Return another manifest, mostly without the checksum that would refuse it at once."""
    if rng.randrange(4) == 0:
        return mutated_bytes(rng, data, [data])
    try:
        manifest = json.loads(data)
        if rng.random() < 0.9 and isinstance(manifest, dict):
            manifest.pop("crc32", None)
        return as_json(rng, mutated_json(rng, manifest))
    except (ValueError, RecursionError, AttributeError):
        return mutated_bytes(rng, data, [data])


def _resealed(files: Files) -> Files:
    """Make sizes and checksums of the manifest those of the files, as someone who forges an index would."""
    try:
        manifest = json.loads(files["index.json"])
        for entry in [e for s in manifest["segments"] for e in (s["codes"], s["ids"])] + manifest["dead"]:
            data = files[entry["file"]]
            start = 10 + int.from_bytes(data[8:10], "little")
            entry["bytes"], entry["crc32"] = len(data), zlib.crc32(data[start:])
        manifest.pop("crc32", None)
        return files | {"index.json": json.dumps(manifest).encode()}
    except Exception:
        return files


def _load_index(files: Files, folder: Path) -> Any:
    place = folder / "index"
    place.mkdir(exist_ok=True)
    _write(files, place)
    mmap = len(files["index.json"]) % 2 == 1 if "index.json" in files else False
    index = sm.HammingIndex.load(place, mmap=mmap)
    queries = np.arange(3 * index.n_bits // 8, dtype=np.uint8).reshape(3, -1)
    if len(index):
        index.kneighbors(queries, n_neighbors=min(4, len(index)))
        index.radius_neighbors(queries, radius=9)
    index.reconstruct()


def _load_store(files: Files, folder: Path) -> Any:
    from similia.storage.store import Store

    place = folder / "store"
    place.mkdir(exist_ok=True)
    _write(files, place)
    store = Store.open(place)
    store.verify()
    store.dead_rows()
    store.find(np.array([0, 3, 2**62]))
    return len(store), store.meta, store.progress, store.settings


# --- Python objects ---------------------------------------------------------------------------


def _object(rng: Random, corpus: Sequence[Any]) -> Any:
    value = mutated_object(rng, rng.choice(corpus))
    return mutated_object(rng, value) if rng.random() < 0.2 else value


def _graphs() -> list[Any]:
    index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    values: list[Any] = [
        [(index, 3), ([[0, 1], [1, 0]], 2)],
        [(index, 3, {"node_labels": [1, 2, 3], "edge_labels": ["a", "b", "c", "d"], "edge_weights": [1.0, 2, 3, 4]})],
        [{"edge_index": index, "n_nodes": 3, "node_attributes": np.ones((3, 2))}] * 2,
        [{"edge_index": index.tolist(), "node_labels": ["C", "O", "C"]}],
        [np.array([[0, 1], [1, 0]]), np.array([[0.0, 0.5], [0.5, 0]])],
        (np.ones((2, 2)), np.zeros((1, 1))),
    ]
    try:
        import networkx as nx
    except ImportError:
        return values
    return [*values, [nx.path_graph(3), nx.cycle_graph(3)]]


def _networkx(rng: Random, corpus: Sequence[Any]) -> Any:
    """Return graphs in one of the forms; those of networkx with hostile data at a node or an edge."""
    try:
        import networkx as nx
    except ImportError:
        return _object(rng, corpus)
    if rng.randrange(5):
        return _object(rng, corpus)
    graph = rng.choice((nx.Graph, nx.DiGraph, nx.MultiGraph))([(0, 1, {"label": 1, "weight": 0.5}), (1, "x", {})])
    for node in list(graph)[: rng.randrange(4)]:
        graph.nodes[node][rng.choice(("label", "attributes"))] = mutated_object(rng, [1.0, 2.0])
    with suppress(TypeError, ValueError):  # networkx refuses nodes that are not hashable: the graph is without them
        graph.add_edge(mutated_object(rng, 1), 0, **{rng.choice(("label", "weight")): mutated_object(rng, 1.0)})
    return [graph]


_SERIES = (
    *([[1.0, 2, 3], [4.0, 5]], [np.zeros((3, 2)), np.ones((2, 2))], np.ones((2, 3))),
    *(np.ones((2, 3, 2), np.float32), (np.arange(3), [1, 2])),
)
_SETS = ([[[0.0, 1], [2, 3]], [], [[4.0, 5]]], [np.zeros((3, 2)), np.ones((0, 2))], np.ones((2, 3, 2)))
_STRINGS = (["ACGT", "", "AC"], [b"AC", b"\xff"], np.array(["a", "bc"]), np.array(["a", "b"], dtype=object), ("é", "x"))


def _series_call(item: Any, folder: Path) -> Any:
    for axes in (None, "channel, time"):
        try:
            sm.objects.as_series(item, axes=axes)
        except (TypeError, ValueError):
            if axes:
                raise


# --- kernels and distances as text ------------------------------------------------------------

_SPECS = (
    *("GappyKmers(k=4, gaps=1)", "Normalized(Spectrum(k=3))", "FromDistance(DTW(window=0.1), objects=[1], gamma=1.0)"),
    *("Sum([Spectrum(k=2), Spectrum(k=3)])", "DTW(window=0.1)", "Levenshtein", "MMD(kernel='optical', size=4)"),
)


def _spec(rng: Random, corpus: Sequence[str]) -> str:
    valid = [text.encode() for text in corpus]
    return mutated_bytes(rng, rng.choice(valid), valid).decode("utf-8", "replace")


def _parse(item: str, folder: Path) -> Any:
    from similia.cli.options import parse_distance, parse_kernel

    return (parse_distance if len(item) % 3 == 0 else parse_kernel)(item)


def targets() -> list[Target]:
    """Return everything that is fuzzed, in the order of the table."""
    from _models import model_targets

    return [
        _text("read_fasta", 14, "x.fa", _FASTA, sm.sources.read_fasta),
        _text("read_fastq", 9, "x.fastq", _FASTQ, sm.sources.read_fastq),
        _text("read_columns, csv", 9, "x.csv", _CSV, _columns),
        _text("read_columns, tsv", 7, "x.tsv", _TSV, _columns),
        Target("read_columns, parquet", 3, _parquets, _parquet_file, _whole(_read_parquet), ("x.parquet",)),
        _text("read_ts", 10, "x.ts", _TS, sm.sources.read_ts),
        Target("read_tudataset, folder", 6, lambda: _TU, _tu_files, _tu_folder, ("NAME",)),
        Target("read_tudataset, zip", 5, lambda: _TU, _tu_zip, _whole(sm.objects.read_tudataset), ("NAME.zip",)),
        Target("files of the command line", 6, lambda: (), _any_file, _whole(_read_any), ("x.",)),
        Target("open_stream", 6, lambda: (_arrays(), _parquets()), _stream_file, _whole(_read_stream), ("x.",)),
        Target("vectors in .npy", 5, _arrays, _npy_file, _whole(_read_npy), ("x.npy",)),
        Target("as_strings", 6, lambda: _STRINGS, _object, lambda item, _: sm.objects.as_strings(item), ("X",)),
        Target("as_graphs", 6, _graphs, _networkx, lambda item, _: sm.objects.as_graphs(item), ("X", "graph")),
        Target("as_series", 5, lambda: _SERIES, _object, _series_call, ("X", "series")),
        Target("as_sets", 4, lambda: _SETS, _object, lambda item, _: sm.objects.as_sets(item), ("X", "set")),
        Target("parse_kernel, parse_distance", 4, lambda: _SPECS, _spec, _parse, ()),
        Target("HammingIndex.load, then search", 1.2, _index_folders, _index_folder, _load_index, ("index",)),
        Target("Store.open, then verify", 1, _index_folders, _index_folder, _load_store, ("store",)),
        *model_targets(),
    ]
