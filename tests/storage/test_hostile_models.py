"""Hostile model files: what smuggles code does not run, what is a bomb stays small, what does not fit is refused."""

from __future__ import annotations

import io
import json
import pickle
import struct
import time
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import similia as sm
from samples.hostile import peak_of
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.storage.models import nodes_of
from similia.storage.states import check_states

# --- models that smuggle code -----------------------------------------------------------------


class Payload:
    """A pickle that makes a file when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def parts_of(model, path):
    sm.save(model, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path, parts, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def saved(tmp_path):
    """The parts of a saved model, and the name of its one array."""
    model = sm.codes.SignCodes().fit(np.random.default_rng(0).normal(size=(9, 8)))
    parts = parts_of(model, tmp_path / "m.similia")
    return parts, next(name for name in parts if name.endswith(".npy"))


def array_of_objects(payload):
    buffer = io.BytesIO()
    np.save(buffer, np.array([payload], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def test_the_payload_does_run_where_pickles_are_read(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran"))).close()
    assert (tmp_path / "ran").exists()


def test_a_pickle_in_an_array_does_not_run(tmp_path, saved):
    parts, array = saved
    write_parts(tmp_path / "m.similia", parts | {array: array_of_objects(Payload(tmp_path / "ran"))})
    with pytest.raises(ValueError, match="holds Python objects, which could run code"):
        sm.load(tmp_path / "m.similia")
    assert not (tmp_path / "ran").exists()


def test_a_pickle_as_an_array_or_a_member_does_not_run(tmp_path, saved):
    parts, array = saved
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    write_parts(tmp_path / "m.similia", parts | {array: payload})
    with pytest.raises(ValueError, match="contains an invalid array"):
        sm.load(tmp_path / "m.similia")
    write_parts(tmp_path / "m.similia", parts | {"data.pkl": payload})
    assert isinstance(sm.load(tmp_path / "m.similia"), sm.codes.SignCodes)  # a part that nothing names is not read
    assert not (tmp_path / "ran").exists()


def state_of(parts):
    schema = json.loads(parts["schema.json"])
    return schema, schema["content"]["model"]["content"]["content"]


def node(loader, module, name, content=None, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, "content": content, **more}


def text(value):
    return node("JsonNode", "builtins", "str", json.dumps(value))


def listing(*nodes, kind="list"):
    return node("ListNode" if kind == "list" else "TupleNode", "builtins", kind, [*nodes])


def calls(path):
    """Return descriptions that would open a file for writing if what they name were called."""
    arguments = listing(text(str(path)), text("w"), kind="tuple")
    types = listing()
    keywords = node("DictNode", "builtins", "dict", {}, key_types=types)
    return {
        "reduce": node("ConstructorFromReduceNode", "builtins", "open", arguments),
        "reduce of a class on the list": node("ConstructorFromReduceNode", "scipy.sparse._csr", "csr_array", arguments),
        "loss": node("LossNode", "io", "open", keywords, __reduce__={"args": arguments}),
        "loss of a module on the list": node(
            "LossNode", "sklearn._loss._loss", "open", keywords, __reduce__={"args": arguments}
        ),
        "tree": node("TreeNode", "builtins", "open", keywords, __reduce__={"args": arguments}),
        "partial": node("PartialNode", "functools", "partial", {
            "func": node("FunctionNode", "builtins", "open"), "args": arguments, "kwds": keywords,
            "namespace": text(None),
        }),
        "method": node(
            "MethodNode", "pathlib", "Path", {"func": "touch", "obj": node("ObjectNode", "pathlib", "Path")}
        ),
        "operator": node("OperatorFuncNode", "operator", "methodcaller", attrs=arguments),
        "object": node("ObjectNode", "builtins", "open", arguments),
        "list": node("ListNode", "io", "open", [text(str(path)), text("w")]),
        "array": node(
            "NdArrayNode", "io", "open", [text(str(path))], type="json", shape=listing(text(1), kind="tuple")
        ),
        "dict": node("DictNode", "io", "open", {}, key_types=types),
        "key": node(
            "DictNode", "builtins", "dict", {str(path): text(1)}, key_types=listing(node("TypeNode", "os", "mkdir"))
        ),
        "generator": node("RandomGeneratorNode", "numpy.random._generator", "Generator", {
            "bit_generator": node("DictNode", "builtins", "dict", {"bit_generator": text("seed")}, key_types=types),
            "seed_seq": keywords,
        }),
        "cached": node("CachedNode", "builtins", "open", __id__=1),
    }  # fmt: skip


@pytest.mark.parametrize("how", list(calls("x")))
def test_descriptions_that_call_something_do_not(tmp_path, saved, how):
    parts, _ = saved
    schema, state = state_of(parts)
    state["center"] = calls(tmp_path / "ran")[how]
    write_parts(tmp_path / "m.similia", parts | {"schema.json": json.dumps(schema).encode()})
    with pytest.raises(ValueError, match=r"m\.similia") as caught:
        sm.load(tmp_path / "m.similia")
    assert not (tmp_path / "ran").exists()
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_a_model_may_not_name_a_folder_of_pickles(tmp_path):
    d2ke = sm.D2KE(sm.distances.Levenshtein(), 3, random_state=0).fit(["ab", "b", "cd"])
    parts = parts_of(d2ke, tmp_path / "m.similia")
    schema, state = state_of(parts)
    state["memory"] = text(str(tmp_path))
    write_parts(tmp_path / "m.similia", parts | {"schema.json": json.dumps(schema).encode()})
    with pytest.raises(ValueError, match="a D2KE has memory set, a folder of pickles"):
        sm.load(tmp_path / "m.similia")
    with pytest.raises(ValueError, match="cannot be saved: a D2KE has memory set"):
        sm.save(d2ke.set_params(memory=str(tmp_path)), tmp_path / "m.similia")


# --- models that are bombs --------------------------------------------------------------------


def test_compressed_models_are_refused(tmp_path, saved):
    parts, array = saved
    write_parts(tmp_path / "m.similia", parts | {array: bytes(2**26)}, zipfile.ZIP_DEFLATED)
    said, peak = peak_of(lambda: sm.load(tmp_path / "m.similia"))
    assert "its parts are compressed, or larger than the file" in said
    assert peak < 2**20


@pytest.mark.parametrize(
    "shape", ["(1099511627776,)", "(8, 1099511627776)", "(-8,)", "(0, -1)", "(1152921504606846976, 16)"]
)
def test_headers_that_claim_more_than_there_is(tmp_path, saved, shape):
    parts, array = saved
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64)
    write_parts(tmp_path / "m.similia", parts | {array: data})
    said, peak = peak_of(lambda: sm.load(tmp_path / "m.similia"))
    assert "contains an" in said
    assert peak < 2**21


def test_descriptions_that_grow_while_they_are_read(tmp_path, saved):
    parts, array = saved
    schema, state = state_of(parts)
    bomb = {**text("x" * 100), "__id__": 1}
    for number in range(2, 40):
        bomb = {**listing(bomb, {"__id__": number - 1}), "__id__": number}
    state["center"] = bomb
    write_parts(tmp_path / "m.similia", parts | {"schema.json": json.dumps(schema).encode()})
    start = time.perf_counter()
    with pytest.raises(ValueError, match="refers to the same parts over and over"):
        sm.load(tmp_path / "m.similia")
    assert time.perf_counter() - start < 1

    state["center"] = listing(*[node("NdArrayNode", "numpy", "ndarray", type="numpy", file=array)] * 100)
    write_parts(tmp_path / "m.similia", parts | {"schema.json": json.dumps(schema).encode()})
    with pytest.raises(ValueError, match="refers to the same parts over and over"):
        sm.load(tmp_path / "m.similia")


def test_descriptions_that_never_end(tmp_path, saved):
    parts, _ = saved
    schema, state = state_of(parts)
    state["center"] = {**listing({"__id__": 7_000_000}), "__id__": 7_000_000}
    write_parts(tmp_path / "m.similia", parts | {"schema.json": json.dumps(schema).encode()})
    with pytest.raises(ValueError, match="has a part that holds itself"):
        sm.load(tmp_path / "m.similia")
    for depth in (100, 100_000):
        deep = b'{"content": [' * depth + b"]}" * depth
        write_parts(tmp_path / "m.similia", parts | {"schema.json": deep})
        with pytest.raises(ValueError, match=r"m\.similia"):
            sm.load(tmp_path / "m.similia")


def sparse_parts(tmp_path, **changes):
    X = sp.csr_array(np.eye(9) + 0.5)
    parts = parts_of(SVC().fit(X, np.arange(9) % 2), tmp_path / "m.similia")
    matrices = {name: sp.load_npz(io.BytesIO(data)) for name, data in parts.items() if name.endswith(".npz")}
    name, matrix = next((name, matrix) for name, matrix in matrices.items() if matrix.shape == (9, 9))
    arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape),
              "format": np.array(b"csr"), "_is_array": np.array(True)}  # fmt: skip
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays | changes)
    return parts | {name: buffer.getvalue()}, X


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.full(81, 2**30, np.int32)},
        {"indptr": np.arange(10, dtype=np.int32) * 10**6},
        {"indptr": np.array([0, -5, *[81] * 8], dtype=np.int32)},
        {"data": np.ones(5)},
        {"shape": np.array([2**40, 2**40])},
        {"data": np.array([b"a"] * 81)},
        {"indices": np.full(81, None)},
    ],
    ids=str,
)
def test_sparse_arrays_that_point_out_of_themselves(tmp_path, changes):
    whole, X = sparse_parts(tmp_path)
    model = sm.load(write_parts(tmp_path / "m.similia", whole))
    assert model.predict(X).shape == (9,)
    write_parts(tmp_path / "m.similia", sparse_parts(tmp_path, **changes)[0])
    with pytest.raises(ValueError, match=r"has a sparse array|contains an (invalid )?(sparse )?array"):
        sm.load(tmp_path / "m.similia")


def test_sparse_bombs(tmp_path):
    parts, _ = sparse_parts(tmp_path, data=np.zeros(2**22))
    write_parts(tmp_path / "m.similia", parts)
    with sm.config(max_memory="1MiB"):
        said, peak = peak_of(lambda: sm.load(tmp_path / "m.similia"))
    assert "larger than similia.config(max_memory=...) allows" in said
    assert peak < 2**20


# --- models whose state is not what fit leaves -------------------------------------------------

VECTORS = np.abs(np.random.default_rng(1).normal(size=(24, 8))) + 0.1
WORDS = ["GATTACA", "GATTA", "CCGCGG", "ACGTACGT", "TTTT", "ACG", "CCCC", "GATT"]


def optical():
    return OpticalRandomFeatures(6, structured=True, random_state=0).fit(VECTORS)


def levels():
    return sm.LevelEncoder(4, 64, random_state=0).fit(VECTORS)


def nystroem():
    return sm.Nystroem(sm.kernels.Spectrum(), 4, random_state=0).fit(WORDS)


def svc():
    return SVC().fit(VECTORS, np.arange(24) % 3)


def svr():
    return SVR().fit(VECTORS, VECTORS[:, 0])


def stored(matrix, n):
    """The matrix with only the first `n` of its stored numbers."""
    return type(matrix)((matrix.data[:n], matrix.indices[:n], [0, n]), matrix.shape)


FORGED = {
    "another type": (levels, "levels_", lambda a: a.astype(np.int64)),
    "fewer bytes": (levels, "ties_", lambda a: a[:, :2]),
    "a range that ends before it begins": (levels, "high_", lambda a: a - 1e6),
    "NaN": (nystroem, "components_", lambda a: a * np.nan),
    "more landmarks": (nystroem, "components_", lambda a: np.concatenate([a, a])),
    "other landmarks": (nystroem, "landmarks_", lambda a: a[:2]),
    "corners out of the matrix": (nystroem, "_corners", lambda a: a * 1000),
    "blocks shorter than a vector": (optical, "turns_", lambda a: a[:, :, :0]),
    "a highest level without a step": (optical, "top_level_", lambda a: 255),
    "no seed": (lambda: sm.NGramEncoder(n_bits=64, random_state=0).fit(WORDS), "seed_", lambda a: -1),
    "too many bits": (lambda: sm.NGramEncoder(n_bits=64, random_state=0).fit(WORDS), "n_bits", lambda a: 2**40),
    "a classifier of fewer classes": (svc, "_n_support", lambda a: a[:2]),
    "support vectors beyond the last": (svc, "_n_support", lambda a: a * 1000),
    "fewer coefficients": (svc, "_dual_coef_", lambda a: a[:, :3]),
    "fewer intercepts": (svc, "_intercept_", lambda a: a[:1]),
    "fewer coefficients of a regressor": (svr, "_dual_coef_", lambda a: a[:, :3]),
    "classes of a regressor": (svr, "_n_support", lambda a: np.tile(a, 2)),
    "fewer stored coefficients": (
        lambda: SVR().fit(sp.csr_matrix(VECTORS), VECTORS[:, 0]), "_dual_coef_", lambda a: stored(a, 3)
    ),
    "fewer coefficients of outliers": (lambda: OneClassSVM().fit(VECTORS), "_dual_coef_", lambda a: a[:, :3]),
    "too many nodes": (sm.GraphletSampling, "size", lambda a: 2**40),
    "too many bonds": (sm.kernels.Morgan, "radius", lambda a: 2**31),
    "a method": (nystroem, "transform", lambda a: 1),
    "a step that is none": (
        lambda: make_pipeline(StandardScaler(), sm.SignRandomProjection(64)).fit(VECTORS), "steps", lambda a: [("x", 1)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_states_that_fit_would_not_leave(name, tmp_path):
    make, attribute, forge = FORGED[name]
    model = make()
    check_states(model)
    vars(model)[attribute] = forge(vars(model).get(attribute))
    with pytest.raises(ValueError, match=rf"^a {type(model).__name__} (has|holds)"):
        check_states({"model": [model]})
    with pytest.raises(ValueError, match="cannot be saved"):
        sm.save(model, tmp_path / "m.similia")


def test_a_forged_file_is_refused_with_a_sentence(tmp_path):
    parts = parts_of(nystroem(), tmp_path / "m.similia")
    components = next(n for n in parts if n.endswith(".npy") and np.load(io.BytesIO(parts[n])).dtype == np.float64
                      and np.load(io.BytesIO(parts[n])).ndim == 2)  # fmt: skip
    buffer = io.BytesIO()
    np.save(buffer, np.load(io.BytesIO(parts[components]))[:1])
    write_parts(tmp_path / "m.similia", parts | {components: buffer.getvalue()})
    with pytest.raises(ValueError, match=r"a Nystroem has an invalid attribute .*: "):
        sm.load(tmp_path / "m.similia")


def test_structured_signs_shorter_than_the_vectors_do_not_reach_the_loop():
    model = optical()
    model.turns_ = model.turns_[:, :, :2].copy()
    with pytest.raises(ValueError, match=r"turns_ has shape \(1, 3, 2\), expected \(1, 3, 64\)"):
        model.transform(VECTORS)


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="linear"), NuSVC(), SGDClassifier(random_state=0),
        make_pipeline("passthrough", StandardScaler()), make_pipeline(FunctionTransformer(np.log), StandardScaler()),
        sm.HDClassifier(prototype_bits=1, random_state=0), sm.HDClassifier("ridge"), sm.learn.HeatSVC(contrast=2.0),
        sm.GeneralizedNystroemPCA(3, sample_fraction=20, feature_fraction=5, random_state=0),
        sm.SignRandomProjection(64, method="structured", random_state=0), sm.codes.SignCodes(center=False),
        sm.FractionalPowerEncoder(2.0, 64, output="floats", random_state=0),
        sm.Nystroem(sm.kernels.Cosine(), landmarks=[[0, 1, 2], [3, 4, 5]]),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_fit_leaves_is_loaded(model, dtype, tmp_path):
    X = VECTORS.astype(dtype)
    fitted = clone(model).fit(X, np.array(["a", "b"])[np.arange(24) % 2])
    loaded = sm.load(sm.save(fitted, tmp_path / "m.similia"))
    use = (lambda m: m.predict(X)) if hasattr(fitted, "predict") else (lambda m: m.transform(X))
    np.testing.assert_array_equal(use(loaded), use(fitted))


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array, lambda X: X @ X.T])
@pytest.mark.parametrize("machine", [SVC, SVR, NuSVR, OneClassSVM])
def test_machines_of_libsvm_come_back_the_same(machine, made, tmp_path):
    X = made(VECTORS)
    fitted = machine(kernel="rbf" if X.shape == VECTORS.shape else "precomputed").fit(X, np.arange(24) % 2)
    loaded = sm.load(sm.save(fitted, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array])
def test_a_regressor_without_support_vectors_comes_back_the_same(made, tmp_path):
    fitted = SVR(epsilon=1e3).fit(made(VECTORS), VECTORS[:, 0])
    loaded = sm.load(sm.save(fitted, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.predict(VECTORS), fitted.predict(VECTORS))


def test_a_search_whose_ids_are_not_those_of_its_index_is_refused():
    encoder = make_pipeline(sm.Nystroem(sm.kernels.Spectrum(), 4, random_state=0), sm.SignRandomProjection(64))
    search = sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=6).fit(WORDS)
    check_states(search)
    search.ids_ = search.ids_[::-1] + 1
    with pytest.raises(ValueError, match="a SimilaritySearch has attributes that do not fit each other"):
        check_states(search)


def test_pairs_beyond_the_last_object_do_not_reach_the_loop():
    kernel = sm.kernels.Spectrum()
    counted = kernel.counted(WORDS)
    for column in (len(WORDS), -len(WORDS) - 1):
        with pytest.raises(IndexError, match=f"index {column} is out of range for a batch of 8 objects"):
            kernel.paired(WORDS, WORDS, [0], [column], counts=counted)
    last = len(WORDS) - 1
    assert kernel.paired(WORDS, WORDS, [0], [-1], counts=counted) == kernel(WORDS)[0, last]


def forged_tree(tmp_path, model, change):
    """Save a model of trees and change the first tree in the file; `change` is given its nodes and its arguments."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    parts = parts_of(model.fit(X, np.arange(60) % 3), tmp_path / "m.similia")
    schema = json.loads(parts["schema.json"])
    tree = next(node for node in nodes_of(schema) if node["__loader__"] == "TreeNode")
    state, arguments = tree["content"]["content"], tree["__reduce__"]["args"]["content"]
    state["node_count"].pop("__id__", None)
    nodes = np.load(io.BytesIO(parts[state["nodes"]["file"]]))
    change(nodes, state, arguments)
    buffer = io.BytesIO()
    np.save(buffer, nodes)
    parts |= {state["nodes"]["file"]: buffer.getvalue(), "schema.json": json.dumps(schema).encode()}
    return write_parts(tmp_path / "m.similia", parts)


def child_beyond_the_end(nodes, state, arguments):
    nodes["right_child"][0] = len(nodes)


def child_before_its_parent(nodes, state, arguments):
    nodes["left_child"][2] = nodes["right_child"][2] = 1


def feature_beyond_the_last(nodes, state, arguments):
    nodes["feature"][0] = 4


def feature_before_the_first(nodes, state, arguments):
    nodes["feature"][0] = -1


def more_nodes_than_there_are(nodes, state, arguments):
    state["node_count"]["content"] = "1000000"


def more_outputs_than_classes(nodes, state, arguments):
    arguments[2]["content"] = "1000"


def other_features_than_the_model(nodes, state, arguments):
    arguments[0]["content"] = "2"
    nodes["feature"][:] = np.minimum(nodes["feature"], 1)


def depth_of_text(nodes, state, arguments):
    state["max_depth"]["content"] = '"deep"'


@pytest.mark.parametrize("model", [DecisionTreeClassifier, RandomForestClassifier, GradientBoostingClassifier])
@pytest.mark.parametrize(
    "change",
    [
        child_beyond_the_end, child_before_its_parent, feature_beyond_the_last, feature_before_the_first,
        more_nodes_than_there_are, more_outputs_than_classes, other_features_than_the_model, depth_of_text,
    ],
)  # fmt: skip
def test_trees_that_would_be_walked_out_of_are_refused(tmp_path, model, change):
    few = {} if model is DecisionTreeClassifier else {"n_estimators": 2}
    with pytest.raises(
        ValueError, match=r"a decision tree has inconsistent nodes|has trees that contradict its attributes"
    ):
        sm.load(forged_tree(tmp_path, model(random_state=0, **few), change))


def test_a_forest_of_trees_for_other_vectors_is_refused(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    forest = RandomForestClassifier(2, random_state=0).fit(X, y)
    forest.estimators_[0] = DecisionTreeClassifier().fit(np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="RandomForestClassifier has trees that contradict its attributes"):
        sm.save(forest, tmp_path / "m.similia")
    isolation = IsolationForest(n_estimators=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="cannot be checked when it is loaded"):
        sm.save(isolation, tmp_path / "m.similia")
