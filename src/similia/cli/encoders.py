"""Load the encoder of a command, or choose one by the kind and properties of the objects, and fit it.

Each choice is the encoder that found the most true neighbours (for strings, the most neighbours at a small distance) of
all that were measured, in ``benchmarks/similarity_search.py --encoders`` and in the experiment hashing-objects.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.cli.inputs import (
    DEFAULT_KERNEL,
    Objects,
    check_comparison,
    has_columns,
    print_note_on_case,
    remember_columns,
    with_columns_of,
)
from similia.cli.options import check_bits, parse_comparison, parse_distance, parse_kernel, parse_one
from similia.cli.outputs import bars, meters, stoppable
from similia.cli.voice import called, console, note, result
from similia.core.hashing import digest_of
from similia.core.text import counted, listed
from similia.core.validation import BadFile, BadParameter
from similia.pipelines import Pipeline, function_of
from similia.planning.forecasts import kind_of
from similia.scale.stream import FIT_ON, add_stream, identity, of, places_named
from similia.search import HammingIndex, SimilaritySearch
from similia.search.automatic import LowRecall, kmer_length, name_of
from similia.search.on_disk import SearchFolder
from similia.similarity import diagonal
from similia.sources.source import Held, Source, sample
from similia.storage.disk import Journal
from similia.storage.store import Store, consistent

FIT_BYTES = 2**28  # maximum bytes of objects to fit to
_COLUMNS = 4096  # into which counts of k-mers are folded
_GROWS = 2  # a kernel grows with the size of objects if its largest k(x, x) is over this many times the smallest
_QUERIES, _NEIGHBOURS = 100, 10  # to measure the recall
_LITTLE = 0.9  # a recall below this gives a warning
_CANDIDATES = 100  # default of large collections
_SMALL, _COUNTS = 20_000, (100, 200, 500, 1000, 2000)  # of collections up to this size, the first with enough recall
_OPTIONS = "bits", "landmarks", "seed", "rerank", "index", "candidates"
BITS = {"bits": 256, "features": 256, "vectors": 4, "auto": 256}  # values of --by, and the default of --bits for each
_KINDS = {"StringBatch": "strings", "GraphBatch": "graphs", "SeriesBatch": "series", "SetBatch": "sets"}


def default_encoder(
    data: Objects, kernel: str | None, distance: str | None, bits: int, landmarks: int, seed: int
) -> tuple[str, Any]:
    """Return a description of the encoder that suits `data`, and the encoder, unfitted.

    "Signs" below are the signs of random projections.

    - strings, without a kernel or with an edit distance: counts of k-mers, PCA, ITQ; if the strings are too few or too
      simple for so many bits, `Nystroem` and signs;
    - vectors: `recipes.pca_itq`; if there are too few rows or features, centring and signs;
    - graphs, and objects with a given kernel: `Nystroem` and signs;
    - series and sets of points, and objects with another given distance: `D2KE` (distances to objects of the data),
      centring and signs.
    """
    if data.kind == "vectors" and not (kernel or distance):
        return _of_vectors(data, bits, seed)
    if _compared_by_edits(data, kernel, distance):
        return _of_strings(data, bits, landmarks, seed)
    if kernel or (data.kind == "graphs" and not distance):
        kernel = kernel or DEFAULT_KERNEL["graphs"]
        return f"kernel {kernel}", _by_kernel(parse_kernel(kernel), data, bits, landmarks, seed)
    distance = distance or ("DTW()" if data.kind == "series" else "ModifiedHausdorff()")
    n, own = min(landmarks, len(data.objects)), sm.embeddings.Representatives()
    d2ke = sm.D2KE(parse_distance(distance), n_components=n, objects=own, random_state=seed)
    return f"distance {distance}", Pipeline([("d2ke", d2ke), *_signs(bits, seed).steps])


def encoder_to_index(
    data: Objects, kernel: str | None, distance: str | None, bits: int, landmarks: int, seed: int, normalize: bool
) -> tuple[str, Any]:
    """Return a description of the vectors that suit `data`, and a pipeline to a `VectorIndex` of them, unfitted.

    Data that are vectors stay as they are, unless a kernel or distance is given. Other vectors are made as for the bits
    of `default_encoder`, but the PCA of k-mers has `landmarks` components.
    """
    if data.kind == "vectors" and not (kernel or distance):
        spec, steps = "as they are", [("vectors", "passthrough")]
    elif _compared_by_edits(data, kernel, distance):
        own, steps, _ = _kmers_and_pca(data.objects, landmarks, seed)
        spec = f"{own.k}-mers and PCA" if steps else f"kernel {own}"
        steps = steps or _by_kernel(own, data, 8, landmarks, seed).steps[:1]
    else:
        spec, encoder = default_encoder(data, kernel, distance, 8, landmarks, seed)
        steps = encoder.steps[:1]
    index = sm.search.VectorIndex(bits, normalize=normalize, random_state=seed)
    return f"vectors, {bits} bits a number ({spec})", Pipeline([*steps, ("index", index)])


def _compared_by_edits(data: Objects, kernel: str | None, distance: str | None) -> bool:
    """Return whether objects are strings to be compared by edits: no kernel and no other distance is given."""
    edits = sm.distances.Levenshtein, sm.distances.DamerauLevenshtein
    return data.kind == "strings" and not kernel and (not distance or isinstance(parse_distance(distance), edits))


def default_rerank(data: Objects | Source, kernel: str | None, distance: str | None) -> str:
    if kernel or distance:
        return distance or "kernel"
    return {"strings": "Levenshtein()", "vectors": "projected"}.get(data.kind, "kernel")


def sample_of(stream: Source, seed: int) -> tuple[int, Objects, npt.NDArray[np.int64]]:
    """Return the number of objects in a source, a sample to fit an encoder to, and the positions of the sample."""
    return sample(stream, FIT_ON, FIT_BYTES, seed)


def _of_strings(data: Objects, bits: int, landmarks: int, seed: int) -> tuple[str, Any]:
    """Return a description of the encoder that suits these strings, and the encoder, unfitted."""
    kernel, steps, n_kmers = _kmers_and_pca(data.objects, bits, seed)
    if steps:
        itq = sm.ITQ(bits, max_iter=20, random_state=seed, max_samples=10_000)
        return f"{kernel.k}-mers, PCA and ITQ", Pipeline([*steps, ("itq", itq)])
    _note_fewer(min(n_kmers, len(data.objects)), bits, f"kernel {kernel}", f"{kernel.k}-mers, PCA and ITQ")
    return f"kernel {kernel}", _by_kernel(kernel, data, bits, landmarks, seed)


def _kmers_and_pca(strings: Any, n_components: int, seed: int) -> tuple[Any, list[Any], int]:
    """Return the kernel of k-mers that suits these strings, the steps of a PCA of them, and how many k-mers occur.

    There are no steps if the strings vary in fewer directions than `n_components`.
    """
    kernel = sm.kernels.Spectrum(k=kmer_length(strings), normalize=True)
    counts = sm.KernelFeatures(kernel, _COLUMNS)
    pca = sm.GeneralizedNystroemPCA(n_components, min(len(strings), 4 * n_components), 1.0, random_state=seed)
    features = counts.transform(strings)
    n_kmers = len(np.unique(features.indices))
    enough = n_kmers > n_components and _has_directions(pca, features)
    return kernel, [("kmers", counts), ("pca", pca)] if enough else [], n_kmers


def _note_fewer(most: int, bits: int, made_by: str, instead_of: str) -> None:
    if most > 8:  # otherwise no number of bits is possible
        note(
            f"note: the data vary in too few directions for {bits} bits by {instead_of}, the usual way. The bits are "
            f"made by {made_by}, which often finds fewer neighbours; with fewer --bits, the usual way may work"
        )


def _of_vectors(data: Objects, bits: int, seed: int) -> tuple[str, Any]:
    """Return a description of the encoder that suits these vectors, and the encoder, unfitted."""
    share = 1.0 if len(data.objects) < FIT_ON else 0.3
    learnt = sm.recipes.pca_itq(bits, share, share, random_state=seed)
    if _has_directions(learnt[0], data.objects):
        return "PCA and ITQ", learnt
    _note_fewer(min(data.objects.shape), bits, "signs of random projections", "PCA and ITQ")
    return "signs of random projections", _signs(bits, seed)


def _by_kernel(kernel: Any, data: Objects, bits: int, landmarks: int, seed: int) -> Pipeline:
    n = min(landmarks, len(data.objects))
    nystroem = sm.Nystroem(kernel, n_components=n, random_state=seed)
    return Pipeline([("nystroem", nystroem), ("bits", sm.SignRandomProjection(bits, random_state=seed))])


def _signs(bits: int, seed: int) -> Pipeline:
    centre, signs = StandardScaler(with_std=False), sm.SignRandomProjection(bits, random_state=seed)
    return Pipeline([("centre", centre), ("bits", signs)])


def _has_directions(pca: Any, X: Any) -> bool:
    """Return whether the vectors in `X` span as many directions as `pca` has components, so that it can be fitted."""
    try:
        clone(pca).fit(X)
    except BadParameter as error:
        if error.name != "n_components":
            raise
        return False
    return True


# ---- encoders in files
def load_model(path: Path) -> Any:
    """Return the model in a file, or the encoder of an index if `path` is the folder of an index."""
    return SearchFolder.open(path).search.encoder_ if path.is_dir() else sm.load(path)


def encoder_of(model: Any) -> Any:
    """Return a pipeline without its last step if that step is a classifier or regressor, else the model itself."""
    return model[:-1] if hasattr(model, "steps") and not hasattr(model[-1], "transform") else model


def check_encoder(encoder: Any, path: Path, stream: Source) -> None:
    if not hasattr(encoder, "transform"):
        made = "predictions only"
    else:
        try:
            rows = encoder.transform(stream.take([0]))
        except (TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:150]
            raise BadFile(stream.source, f"holds {stream.called}, which {path} cannot encode ({why})") from error
        if getattr(rows, "dtype", None) == np.uint8:
            return
        made = f"vectors of {rows.shape[1]} numbers" if np.ndim(rows) == 2 or hasattr(rows, "toarray") else "no bits"
    raise ValueError(
        f"{path} makes {made}, but similia encode writes packed bits; drop --model to fit an encoder, or give a model "
        "that 'similia fit --kernel' or 'similia encode' wrote"
    )


def of_interrupted_run(
    journal: Journal, stream: Source, path: Path, options: dict[str, Any]
) -> tuple[int | None, Any] | None:
    """Return the number of objects and the encoder of the run in `journal`, or None if it had other data or options."""
    header = journal.header or {}
    if header.get("options") != options or not path.is_file() or header["belongs"]["data"] != identity(stream):
        return None
    encoder = sm.load(path)
    return (header.get("n"), encoder) if header["belongs"]["model"] == digest_of(encoder) else None


def fit_encoder(stream: Source, path: Path, options: dict[str, Any], data: str, table: Any) -> tuple[int, Any]:
    """Fit an encoder to a sample of the stream and save it at `path`; return the number of objects and the encoder."""
    with stoppable(lambda: 0, stream.n), meters():
        n, drawn, numbers = sample_of(stream, options["seed"])
    print_note_on_case(drawn, parse_one(options["kernel"], options["distance"]))
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        spec, encoder = default_encoder(drawn, **options)
        console().print(f"{n} {stream.called}; {options['bits']} bits by {spec}")
        encoder.fit(drawn.objects)
        remember_columns(encoder, data, table)
        sm.save(encoder, path)
    return n, sm.load(path)


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
        n, drawn, numbers = sample_of(stream, seed)
    if getattr(drawn.objects, "dtype", None) == np.uint8:
        note(
            f"note: {called(data)} holds bytes, read as numbers; search codes of 'similia encode' with "
            "similia.HammingIndex"
        )
    compared = parse_one(made_by["kernel"], made_by["distance"])
    if kind_of(compared) not in (None, drawn.kind):
        check_comparison(compared, drawn, drawn.objects)
    print_note_on_case(drawn, compared if how in (None, "projected", "kernel") else how)
    with stoppable(lambda: 0, n), bars(), places_named(stream, numbers=numbers):
        if by == "bits":
            spec, encoder = default_encoder(drawn, **made_by)
        elif by == "vectors":
            spec, encoder = encoder_to_index(drawn, **made_by, normalize=how == "projected")
        else:
            spec, encoder = _by_features(drawn, by, made_by)
        how = encoder.kernel if how == "kernel" and by == "features" else how
        search = SimilaritySearch(encoder, how, n_candidates=asked["candidates"] or _CANDIDATES, index=index)
        if by == "auto":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LowRecall)  # the number of candidates is chosen below
                search.fit(drawn.objects)
            spec = name_of(search.encoder_)
        made = f"{asked['bits']} bits by {spec}" if by == "bits" else f"candidates by {spec}"
        console().print(f"{n} {stream.called}; {made}, sorted by {sort}")
        if by != "auto":
            search.fit(drawn.objects)
        remember_columns(search.encoder_, data, table)
        small = n is not None and n <= _SMALL
        counts = _COUNTS if asked["candidates"] is None and small else (search.n_candidates,)
        recall = _measured_recall(search, drawn.objects, sort, seed, counts)
        asked = asked | {"candidates": search.n_candidates}
        SearchFolder.create(folder, search, {**asked, "encoder": spec} | ({} if recall is None else {"recall": recall}))
        _show_recall(search, drawn.objects, recall, sort, seed, folder)
    return n


def check_way(by: str, kind: str, bits: int | None) -> int:
    """Return --bits, or its default; raise if options do not fit together."""
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
    """Return the recall by number of candidates, one line for each way to find them."""
    lines: dict[str, list[str]] = {}
    for one in getattr(search, "trials_", []):
        lines.setdefault(one["candidates"], []).append(f"{one['recall']:.2f} at {one['n_candidates']}")
    return [f"{name}: {', '.join(cells)}" for name, cells in lines.items()]


def not_the_same(opened: SearchFolder, data: str, key: str) -> ValueError:
    """Return the error that the folder holds another index; `key` is the fingerprint of `data`."""
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
    """Return the progress of each source that was added only in part, except one with fingerprint `but`."""
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
    return np.sort(np.random.default_rng(seed).permutation(n)[:_QUERIES])


def _show_recall(
    search: SimilaritySearch, sample: Any, measured: dict[str, Any] | None, sort: str, seed: int, folder: Path
) -> None:
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
    seen = opened.store.meta.get("recall")
    only_bits = opened.search.rerank is None
    if seen is not None and seen["recall"] < _LITTLE and (only_bits or candidates <= seen["candidates"]):
        note(f"warning: neighbours may be missing (found: {recall_line(opened)}): {_low(seen, only_bits)}")


def _note_growth(function: Any, is_kernel: bool, objects: Any) -> None:
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

    consistent(folder.store.folder, Store.verify)  # a search would refuse damaged codes, and the additions with them
    before, stream.source, named = len(folder), called(stream.source), [np.zeros(0, np.int64)]

    def keep(names: list[str]) -> None:
        named.append(np.array([hash(name) for name in names if name], dtype=np.int64))

    how: dict[str, Any] = {"again": again, "workers": workers, "say": console().print, "named": keep}
    with stoppable(done, n), meters():
        if not add_stream(folder, stream, key=key, n=n, **how):
            console().print(f"{stream.source} is in the index already; {once_more}")
    hashes = np.concatenate(named)
    if n_repeated := len(hashes) - len(np.unique(hashes)):
        repeat = "name repeats an earlier one" if n_repeated == 1 else "names repeat earlier ones"
        note(
            f"note: {n_repeated} {repeat} in {stream.source}; the ids in the results of a search tell such objects "
            "apart, and removing a name removes all of them"
        )
    console().print(f"{folder.folder}: {len(folder)} objects")
    result({"folder": folder.folder, "objects": len(folder), "added": len(folder) - before})


def with_queries(folder: Path, queries: str, table: dict[str, Any]) -> tuple[SearchFolder, Objects]:
    """Open an index and read queries; raise if the index is empty or damaged, or the queries are of another kind."""
    from similia.cli.inputs import read_objects

    opened = SearchFolder.open(folder)
    read = read_objects(queries, labelled=False, **with_columns_of_index(opened, queries, table))
    check_kind(read, opened)
    if len(opened) == 0:
        raise ValueError(f"{folder} holds no objects; add some with: similia index add DATA {folder}")
    note_unfinished(opened)
    consistent(opened.store.folder, Store.verify)  # a search reads all codes anyway
    return opened, read


def with_columns_of_index(opened: SearchFolder, data: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return `table` with the columns that an index remembers; rows of numbers are series if it holds series."""
    return with_columns_of(opened.search.encoder_, data, table, kind=settings_of(opened)["kind"])


def timed_neighbours(search: SimilaritySearch, read: Objects, k: int) -> tuple[Any, Any, float]:
    with places_named(Held(read)):
        search.kneighbors(sm.objects.take(read.objects, [0]), k)  # compile first
        start = time.perf_counter()
        distances, ids = search.kneighbors(read.objects, k)
        return distances, ids, time.perf_counter() - start


def settings_of(opened: SearchFolder) -> dict[str, Any]:
    """Return the options with which an index was built, or the parameters of its search if it was saved from Python."""
    search = opened.search
    steps = getattr(search.encoder, "steps", [("", search.encoder)])
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
        if kind == "series" and has_columns(found.source):
            hint = "; --series reads each row as a series, and --time, --id and --values read a long table"
        raise BadFile(found.source, f"holds {found.called}, but {opened.folder} is an index of {kind}{hint}")
    if kind not in ("series", "sets") or opened.example is None:
        return
    first = found.take([0]) if isinstance(found, Source) else sm.objects.take(found.objects, [0])
    if first.n_dims != opened.example.n_dims:
        holds = f"{kind} of {counted(first.n_dims, 'channel' if kind == 'series' else 'dimension')}"
        holds += f", {listed(found.columns)}" if found.columns else ""
        raise BadFile(found.source, f"holds {holds}, expected {opened.example.n_dims} as in the index {opened.folder}")
