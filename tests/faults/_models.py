"""Model files under attack: loaded, and what is loaded used. One small model for each kind of state."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from _mutate import as_json, members, mutated_bytes, mutated_json, mutated_npy, packed
from _targets import Files, Target, _folder_files, _mutated_manifest, _resealed, _write

import similia as sm


@dataclass
class Model:
    """A saved model: the files in its archive, and a small collection to use it on."""

    name: str
    files: Files
    X: Any


_RNG = np.random.default_rng(0)
_WORDS = ["GATTACA", "GATTA", "CCGCGG", "ACGTACGT", "TTTT", "ACG", "CCCC", "GATT"]
_SERIES = [_RNG.normal(size=(5 + i % 3, 2)) for i in range(8)]
_SETS = [_RNG.normal(size=(3 + i % 2, 2)) for i in range(8)]
_VECTORS = np.abs(_RNG.normal(size=(24, 8))) + 0.1
_Y = np.arange(24) % 2
_CODES = _RNG.integers(0, 256, (24, 8), dtype=np.uint8)


def _graph_list() -> list[Any]:
    rng, graphs = np.random.default_rng(1), []
    for i in range(8):
        n = 4 + i % 3
        arcs = np.array([(a, b) for a in range(n) for b in range(n) if a != b and rng.random() < 0.6]).reshape(-1, 2).T
        both = np.unique(np.concatenate([arcs, arcs[::-1]], axis=1), axis=1)
        graphs.append((both, n, {"node_labels": rng.integers(0, 3, n), "node_attributes": rng.normal(size=(n, 2))}))
    return graphs


def _makers() -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return by name how to make each fitted model, and what to use it on."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, LinearSVC

    from similia.embeddings.random_features import OpticalRandomFeatures

    k, d, e, c, words, y = sm.kernels, sm.distances, sm.embeddings, sm.codes, _WORDS, [0, 1] * 4
    graphs, s = _graph_list(), {"random_state": 0}
    nystroem = lambda kernel, X: lambda: sm.Nystroem(kernel, n_components=4, **s).fit(X)  # noqa: E731
    d2ke = lambda distance, X, **more: lambda: sm.D2KE(distance, n_components=4, **s, **more).fit(X)  # noqa: E731
    fitted = lambda model, X, *labels: lambda: model.fit(X, *labels)  # noqa: E731
    optical = lambda **more: OpticalRandomFeatures(6, **s, **more)  # noqa: E731
    pipe = make_pipeline(StandardScaler(), LinearSVC())
    found: dict[str, tuple[Callable[[], Any], Any]] = {
        "nyshd": (fitted(sm.recipes.nyshd(k.GappyKmers(), n_landmarks=4, n_bits=64, **s), words, y), words),
        "ngrams": (fitted(c.NGramEncoder(n_bits=64, **s), words), words),
        "min-hashes": (fitted(c.MinHash(k.Spectrum(), 64, **s), words), words),
        "kernel features": (lambda: sm.KernelFeatures(k.Spectrum(), 64).fit(words), words),
        "sequences": (fitted(c.SequenceEncoder(4, n_bits=64, **s), _SERIES), _SERIES),
        "sequence n-grams": (fitted(c.SequenceEncoder(4, n=2, n_bits=64, output="counts", **s), _SERIES), _SERIES),
        "hydra": (fitted(e.Hydra(2, 2, **s), _SERIES), _SERIES),
        "interval quantiles": (fitted(sm.IntervalQuantiles(3, 2), _SERIES), _SERIES),
        "sparse scaler": (fitted(e.SparseScaler(), _VECTORS), _VECTORS),
        "convolutions": (fitted(sm.RandomConvolutions(84, **s), _SERIES), _SERIES),
        "convolutions, four poolings": (fitted(sm.RandomConvolutions(672, "multirocket", **s), _SERIES), _SERIES),
        "graphhd": (fitted(c.GraphHDEncoder(64, n_iter=5, **s), graphs), graphs),
        "signs": (fitted(c.SignRandomProjection(64, **s), _VECTORS), _VECTORS),
        "structured signs": (
            fitted(c.SignRandomProjection(256, method="structured", **s), np.tile(_VECTORS, 20)), np.tile(_VECTORS, 20)
        ),
        "itq": (fitted(c.ITQ(8, max_iter=3, **s), _VECTORS), _VECTORS),
        "sign codes": (fitted(c.SignCodes(), _VECTORS), _VECTORS),
        "pca": (fitted(sm.GeneralizedNystroemPCA(4, 1.0, 0.9, **s), _VECTORS), _VECTORS),
        "pca itq": (fitted(sm.recipes.pca_itq(8, sample_fraction=1.0, feature_fraction=1.0, **s), _VECTORS), _VECTORS),
        "levels": (fitted(c.LevelEncoder(4, 64, **s), _VECTORS), _VECTORS),
        "fractional": (fitted(c.FractionalPowerEncoder(n_bits=64, **s), _VECTORS), _VECTORS),
        "bundle": (
            fitted(c.RecordEncoder([("w", c.NGramEncoder(n_bits=64, **s)), (["v"], c.LevelEncoder(4, 64, **s))], **s),
                   {"w": words, "v": list(range(8))}), {"w": words, "v": list(range(8))},
        ),
        "classifier of bits": (fitted(sm.HDClassifier(max_iter=2, **s), _CODES, _Y), _CODES),
        "averaging classifier": (fitted(sm.HDClassifier("averaged", max_iter=2, **s), _CODES, _Y), _CODES),
        "ridge on bits": (fitted(sm.HDClassifier("ridge", prototype_bits=4, **s), _CODES, _Y), _CODES),
        "classifier of floats": (fitted(sm.HDClassifier(max_iter=2, **s), _VECTORS, _Y), _VECTORS),
        "optical": (fitted(optical(bias=0.5), _VECTORS), _VECTORS),
        "optical, structured": (fitted(optical(structured=True, bias=0.5, quantize=4), _VECTORS), _VECTORS),
        "heat features": (fitted(e.HeatRandomFeatures(8, 2.0, **s), _VECTORS), _VECTORS),
        "heat svm": (fitted(sm.learn.HeatSVC(contrast=2.0), _VECTORS, _Y), _VECTORS),
        "pseudo-euclidean": (fitted(sm.PseudoEuclidean(d.Levenshtein(), 3), words), words),
        "pipeline": (fitted(pipe, _VECTORS, _Y), _VECTORS),
        "svc": (fitted(SVC(), _VECTORS, _Y), _VECTORS),
        "index": (lambda: sm.HammingIndex(64).fit(_CODES), _CODES),
        "search": (fitted(sm.SimilaritySearch(make_pipeline(sm.Nystroem(k.Spectrum(), 4, **s),
                   c.SignRandomProjection(64, **s)), rerank="kernel", n_candidates=6), words), words),
    }  # fmt: skip
    kernels = {
        "strings": ((k.Spectrum(), k.Mismatch(3), k.WeightedDegree(), k.DistanceRBF(d.Levenshtein())), words),
        "graphs": (
            (k.WeisfeilerLehman(), k.Propagation(bin_width=1.0), k.ShortestPath(), k.Graphlet(size=3),
             k.VertexHistogram(), k.Sum([k.ShortestPath(), k.WeisfeilerLehman()])), graphs,
        ),
        "series": ((k.GlobalAlignment(), k.FromDistance(d.DTW(), _SERIES[:3], 1.0)), _SERIES),
        "vectors": ((k.HypersphericalHeat(2.0), k.Cosine(), k.Optical()), _VECTORS),
        "sets": ((k.NegativeDistance(d.ModifiedHausdorff()),), _SETS),
    }  # fmt: skip
    for kernel, X in [(kernel, X) for some, X in kernels.values() for kernel in some]:
        found[f"nystroem {type(kernel).__name__}"] = (nystroem(kernel, X), X)
    distances = [
        *((distance, words) for distance in (d.Levenshtein(), d.DamerauLevenshtein(), d.JaroWinkler())),
        *(
            (distance, _SERIES)
            for distance in (d.DTW(), d.ERP(), d.MSM(), d.TWE(), d.LCSS(epsilon=0.5), d.ADTW(), d.SoftDTW())
        ),
        *(
            (distance, _SETS)
            for distance in (d.ModifiedHausdorff(), d.Hausdorff(), d.Chamfer(), d.SlicedWasserstein(), d.Wasserstein())
        ),
    ]
    for distance, X in distances:
        found[f"d2ke {type(distance).__name__}"] = (d2ke(distance, X), X)
    for features in ("match", "match_iso", "optical", "gaussian", "gaussian_complex", "gaussian_eig"):
        options = {"size": 4, "n_samples": 20, "features": features, "n_components": 8, **s}
        found[f"graphlets {features}"] = (fitted(sm.GraphletSampling(**options), graphs), graphs)
    return found


def models() -> list[Model]:
    """Return the saved models."""
    import warnings

    made = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (make, X) in _makers().items():
            model = make()
            path = sm.save(model, Path(folder) / "m")
            use(model, X)
            made.append(Model(name, members(path.read_bytes()), X))
    return made


def use(model: Any, X: Any) -> None:
    """Do with a model what it is for."""
    if isinstance(model, sm.HammingIndex | sm.SimilaritySearch):
        model.kneighbors(X, 2)
        return
    for method in ("transform", "predict", "decision_function"):
        if hasattr(model, method):
            getattr(model, method)(X)


_CLASSES = (
    *(("os", "system"), ("builtins", "eval"), ("builtins", "dict"), ("builtins", "list"), ("numpy", "ndarray")),
    *(("similia.kernels.strings", "Spectrum"), ("similia.objects.sequences", "StringBatch"), ("numpy", "float64")),
    *(("similia.objects.graphs", "GraphBatch"), ("similia.codes.itq", "ITQ"), ("sklearn.svm._classes", "SVC")),
)
_LOADERS = (
    *("ObjectNode", "DictNode", "ListNode", "TupleNode", "SetNode", "JsonNode", "NdArrayNode", "FunctionNode"),
    *("TypeNode", "MethodNode", "PartialNode", "OperatorFuncNode", "ConstructorFromReduceNode", "TreeNode", "LossNode"),
    *("SparseMatrixNode", "RandomStateNode", "RandomGeneratorNode", "BytesNode", "SliceNode", "CachedNode", "Nothing"),
)
_STATES = (
    *("null", "true", "0", "-1", "2", "3.5", "1e308", "NaN", '""', '"a"', "[]", "[1, 2]", "{}", "100000"),
    *("2147483648", "9223372036854775808"),
)


def _mutated_schema(rng: Random, data: bytes, names: Sequence[str]) -> bytes:
    """Return the description of a model with another value, class, loader, file or place somewhere."""
    schema = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        nodes = [node for node in _nodes(schema) if "__loader__" in node]
        if not nodes:
            break
        node, kind = rng.choice(nodes), rng.randrange(12)
        json_nodes = [node for node in nodes if node["__loader__"] == "JsonNode"]
        if kind < 4 and json_nodes:
            rng.choice(json_nodes)["content"] = rng.choice(_STATES)
        elif kind == 4:
            node["__module__"], node["__class__"] = rng.choice(_CLASSES)
        elif kind == 5:
            node["__loader__"] = rng.choice(_LOADERS)
        elif kind == 6 and "file" in node:
            node["file"] = rng.choice([*names, "../x", "absent"])
        elif kind == 7 and isinstance(node.get("content"), dict) and node["content"]:
            del node["content"][rng.choice(list(node["content"]))]
        elif kind == 8:
            other = rng.choice(nodes)
            copy = dict(other)  # what is in it is shared: a cycle, now and then
            node.clear()
            node.update(copy)
        elif kind == 9:
            stub = {"__id__": rng.choice(nodes).get("__id__", 0)}
            node.clear()
            node.update(stub)
        elif kind == 10:
            mutated_json(rng, node)
        else:
            node["__id__"] = rng.choice(nodes).get("__id__", 0)
    return as_json(rng, schema)


def _nodes(value: Any) -> list[Any]:
    """Return all dicts of a tree, each once."""
    found, stack, met = [], [value], set()
    while stack:
        inner = stack.pop()
        if id(inner) in met:
            continue
        met.add(id(inner))
        if isinstance(inner, dict):
            found.append(inner)
            stack.extend(inner.values())
        elif isinstance(inner, list):
            stack.extend(inner)
    return found


def mutated_model(rng: Random, corpus: Sequence[Model]) -> tuple[Files, Any]:
    """Return a model file, one to three of whose members were changed, and what to use it on."""
    model = rng.choice(corpus)
    files, names = dict(model.files), list(model.files)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name, kind = rng.choice(names), rng.randrange(12)
        name = name if kind < 7 else "schema.json"
        if kind == 0:
            files[name] = model.files[rng.choice(names)]
        elif kind == 1:
            files[name] = mutated_bytes(rng, model.files[name], [model.files[name]])
        elif name == "schema.json":
            files[name] = _mutated_schema(rng, model.files[name], names)
        else:
            files[name] = mutated_npy(rng, model.files[name])
    if rng.randrange(20) == 0:
        files.pop(rng.choice(names))
    return {"m.similia": packed(rng, files)}, model.X


def _load(item: tuple[Files, Any], folder: Path) -> Any:
    path = folder / "m.similia"
    path.write_bytes(item[0]["m.similia"])
    return sm.load(path)


def _load_and_use(item: tuple[Files, Any], folder: Path) -> None:
    use(_load(item, folder), item[1])


def _search_folders() -> list[Files]:
    from sklearn.pipeline import make_pipeline

    kernel, seed = sm.kernels.Spectrum(), {"random_state": 0}
    encoder = make_pipeline(sm.Nystroem(kernel, 4, **seed), sm.SignRandomProjection(64, **seed))
    made = []
    for rerank in (None, "kernel", "projected"):
        with tempfile.TemporaryDirectory() as folder:
            search = sm.SimilaritySearch(encoder, rerank=rerank, n_candidates=6).fit(_WORDS)
            search.save(Path(folder) / "s")
            made.append(_folder_files(Path(folder) / "s"))
    return made


def _search_folder(rng: Random, corpus: Sequence[Files]) -> Files:
    files = dict(rng.choice(corpus))
    name = rng.choice(list(files))
    if name.endswith(".similia"):
        (files[name],) = mutated_model(rng, [Model("", members(files[name]), None)])[0].values()
    elif name.endswith("index.json"):
        files[name] = _mutated_manifest(rng, files[name])
    elif name.endswith(".npy"):
        files[name] = mutated_npy(rng, files[name])
    folder = name.rpartition("/")[0] + "/"
    if name.endswith((".json", ".npy")) and rng.random() < 0.6:
        part = _resealed({key.removeprefix(folder): data for key, data in files.items() if key.startswith(folder)})
        files |= {folder + key: data for key, data in part.items()}
    return files


def _load_search(files: Files, folder: Path) -> None:
    place = folder / "search"
    place.mkdir(exist_ok=True)
    _write(files, place)
    search = sm.SimilaritySearch.load(place)
    if len(search) > 1:
        search.kneighbors(_WORDS[:3], 2)


def model_targets() -> list[Target]:
    """Return the targets that read models."""
    return [
        Target("load of models", 1.2, models, mutated_model, _load, ("m.similia",)),
        Target("use of loaded models", 1.2, models, mutated_model, _load_and_use, (), True),
        Target("SimilaritySearch.load, then search", 0.4, _search_folders, _search_folder, _load_search, ()),
    ]
