"""Models on disk: what is saved comes back, and what could run code or is damaged does not."""

import inspect
import io
import json
import os
import re
import subprocess
import sys
import zipfile

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import similia as sm
from similia.storage import models as persistence
from similia.storage.models import canonical, nodes_of, written_by
from similia.storage.states import _UNLISTED, public_class, public_name


@pytest.fixture(scope="module")
def fitted():
    X, y = sm.datasets.load_promoters(return_X_y=True)
    return sm.recipes.nyshd(sm.kernels.GappyKmers(), n_bits=256, random_state=0).fit(X, y), X


def public_estimators():
    for room in (sm.kernels, sm.distances, sm.embeddings, sm.codes, sm.learn, sm.search, sm.objects, sm.selection):
        for name in dir(room):
            thing = getattr(room, name)
            if isinstance(thing, type) and issubclass(thing, BaseEstimator) and not inspect.isabstract(thing):
                yield thing


def test_every_public_estimator_declares_its_state_and_has_a_public_name():
    bases = {sm.kernels.Kernel, sm.kernels.FeatureKernel, sm.distances.Distance}
    found = {cls for cls in public_estimators() if cls not in bases}
    assert len(found) > 60
    for cls in found:
        name = public_name(cls)
        assert name is not None, f"{cls} declares no state with similia.core.state.state"
        assert public_class(*name) is cls
    assert public_name(sm.Nystroem) == ("similia", "Nystroem")
    assert public_name(sm.kernels.Spectrum) == ("similia.kernels", "Spectrum")
    for room, names in _UNLISTED.items():
        assert all(public_name(public_class(room, name)) == (room, name) for name in names)


def test_what_is_not_public_has_no_name_in_a_file():
    class Spectrum(sm.kernels.Spectrum):
        """A user's class of the same name."""

    Spectrum.__module__ = "similia.kernels.strings"
    for cls in (Spectrum, sm.search.Recall, sm.objects.Patterns, BaseEstimator, dict):
        assert public_name(cls) is None
    for name in [
        ("similia", "load"), ("similia", "kernels"), ("similia.kernels.strings", "Spectrum"), ("similia", "Spectrum"),
        ("similia.embeddings", "Nystroem"), ("similia.core.state", "State"), ("similia.os", "system"),
        ("similia.experiments", "x"), ("similiar", "Nystroem"), ("os", "system"), ("similia.search", "Recall"),
    ]:  # fmt: skip
        assert public_class(*name) is None


def test_a_file_names_classes_as_users_do(fitted, tmp_path):
    path = sm.save(fitted[0], tmp_path / "m.similia")
    with zipfile.ZipFile(path) as file:
        schema = json.loads(file.read("schema.json"))
    named = {(node["__module__"], node["__class__"]) for node in nodes_of(schema)}
    ours = {name for name in named if name[0].startswith("similia")}
    assert ours >= {("similia", "Nystroem"), ("similia", "HDClassifier"), ("similia.kernels", "GappyKmers")}
    assert {module for module, _ in ours} <= {"similia", "similia.kernels", "similia.objects"}


@pytest.mark.parametrize(("version", "words"), [
    (None, "has format 1, but this similia reads format 2; fit the model again"),
    (3, "has format 3, but this similia reads format 2; upgrade similia"),
    ("x" * 999, "has format 'xxx"),
])  # fmt: skip
def test_files_of_other_formats_are_refused(fitted, tmp_path, version, words):
    path = sm.save(fitted[0], tmp_path / "m.similia")
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(parts["schema.json"]) | {"version": version}
    schema = {key: value for key, value in schema.items() if value is not None}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in (parts | {"schema.json": json.dumps(schema).encode()}).items():
            file.writestr(name, data)
    with pytest.raises(ValueError, match=words) as caught:
        sm.load(path)
    assert len(str(caught.value)) < 400


def test_folders_of_searches_and_indexes_are_loaded(tmp_path):
    codes = np.random.default_rng(0).integers(0, 256, (20, 4), np.uint8)
    index = sm.HammingIndex(32).fit(codes)
    index.save(tmp_path / "codes")
    found = sm.load(tmp_path / "codes")
    assert isinstance(found, sm.HammingIndex)
    np.testing.assert_array_equal(found.reconstruct(), codes)
    words = ["GATTACA", "CCGCGG", "ACGT"]
    encoder = make_pipeline(sm.Nystroem(sm.kernels.Spectrum(k=1), 2, random_state=0), sm.SignRandomProjection(64))
    sm.SimilaritySearch(encoder, "kernel", n_candidates=3).fit(words).save(tmp_path / "search")
    assert sm.load(str(tmp_path / "search")).kneighbors(words, 1)[1].ravel().tolist() == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="no model at"):
        sm.load(tmp_path)


def test_a_pipeline_comes_back_the_same(fitted, tmp_path):
    model, X = fitted
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded[:-1].transform(X), model[:-1].transform(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_params()["nystroem__kernel__gaps"] == 1


def test_graphs_come_back_the_same(tmp_path):
    triangle = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), "n_nodes": 3, "node_labels": np.array([1, 1, 2])}
    path = {"edge_index": np.array([[0, 1], [1, 2]]), "n_nodes": 3, "node_labels": np.array([1, 2, 1])}
    graphs = sm.objects.as_graphs([triangle, path, triangle])
    model = sm.Nystroem(sm.kernels.WeisfeilerLehman(n_iter=2), n_components=2, random_state=0).fit(graphs)
    loaded = sm.load(sm.save(model, tmp_path / "g.similia"))
    np.testing.assert_array_equal(loaded.transform(graphs), model.transform(graphs))


def test_large_random_sets_come_back_the_same(tmp_path):
    sets = [300 * np.eye(3)[:n] for n in (1, 2, 3)]
    objects = sm.embeddings.RandomSets(size=200, radius=500)
    model = sm.D2KE(sm.distances.ModifiedHausdorff(), 4, objects=objects, random_state=0).fit(sets)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.transform(sets), model.transform(sets))


def test_a_users_function_is_refused_by_name_and_nothing_is_written(tmp_path):
    def shared_letters(X, Y):
        return np.array([[len(set(x) & set(y)) for y in Y] for x in X], dtype=float)

    model = sm.Nystroem(shared_letters, n_components=2).fit(["ab", "bc", "cd"])
    with pytest.raises(ValueError, match=r"shared_letters.*may not contain"):
        sm.save(model, tmp_path / "m.similia")
    with pytest.raises(ValueError, match=r"may not contain"):
        sm.save(make_pipeline(FunctionTransformer(np.load)), tmp_path / "m.similia")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_holds_a_frame_is_refused_in_our_words(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)))
    model = sm.KernelSVC(rbf_kernel).fit(frame, np.arange(20) % 2)
    words = r"such as a data frame; fit to X.to_numpy\(\), or joblib|DataFrame.* or joblib"  # the second: old pandas
    with pytest.raises(ValueError, match=words):
        sm.save(model, tmp_path / "m.similia")
    assert not list(tmp_path.iterdir())


def test_graphs_of_networkx_in_a_parameter_come_with_a_way_out(tmp_path):
    graphs = [nx.path_graph(4), nx.cycle_graph(5)]
    with pytest.raises(ValueError, match=r"such as networkx graphs; give similia\.objects\.as_graphs\(graphs\) in"):
        sm.save(sm.D2KE(sm.distances.MMD(3, 20), objects=graphs).fit(graphs), tmp_path / "m.similia")
    model = sm.D2KE(sm.distances.MMD(3, 20), objects=sm.objects.as_graphs(graphs)).fit(graphs)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.transform(graphs), model.transform(graphs))


def test_what_cannot_be_saved_comes_with_a_way_out(tmp_path):
    def unlike(x, y):
        return float(len(set(x) ^ set(y)))

    def alike(x, y):
        return float(len(set(x) & set(y)))

    def model(distance=None, **options):
        options = {"objects": ["a", "b", "c"], "random_state": 0, **options}
        return sm.recipes.d2ke(distance or sm.distances.Levenshtein(), **options)

    near, search = KNeighborsClassifier(1, algorithm="kd_tree"), GridSearchCV(model(), {"learner__C": [1]}, cv=2)
    for case, words in [
        (
            model(estimator=near),
            r"holds .*sklearn\.neighbors\._kd_tree\.KDTree, which .*; use another learner, .* joblib\.dump",
        ),
        (sm.KNeighborsClassifier(sm.pairwise(alike)), r"holds [\w.]+alike, which .*; use the kernels and .* or job"),
        (model(sm.distances.FromFunction(unlike)), r"holds [\w.]+unlike, which .* joblib\.load, for files from"),
        (search, r"; save search\.best_estimator_ instead of the search$"),
    ]:
        with pytest.raises(ValueError, match=words):
            sm.save(case.fit(["ab", "b", "dc", "d"], [0, 0, 1, 1]), tmp_path / "m.similia")


@pytest.mark.parametrize("landmarks", [range(3), pd.Series([0, 2]), [range(2), range(2, 4)]], ids=str)
def test_landmarks_of_other_types_come_with_a_way_out(landmarks, tmp_path):
    model = sm.Nystroem(sm.kernels.Spectrum(k=1), landmarks=landmarks).fit(["ab", "b", "dc", "d"])
    with pytest.raises(ValueError, match=r"; give a list or numpy array in its place, such as landmarks=np\.asarray"):
        sm.save(model, tmp_path / "m.similia")


def test_a_folder_of_a_cache_comes_with_a_way_out(tmp_path):
    model = sm.D2KE(sm.distances.Levenshtein(), 2, memory=tmp_path, random_state=0).fit(["ab", "b", "dc"])
    with pytest.raises(ValueError, match=r"; set memory=None first$"):
        sm.save(model, tmp_path / "m.similia")
    sm.save(model.set_params(memory=None), tmp_path / "m.similia")


def nested(levels):
    kernel = sm.kernels.Spectrum(k=2)
    for _ in range(levels):
        kernel = sm.kernels.Sum([kernel, sm.kernels.Spectrum(k=3)])
    return kernel


@pytest.mark.parametrize(("parameters", "words"), [
    ({"kernel": nested(19)}, r"description that is nested too deeply; change that part, or joblib\.dump"),
    ({"alpha": np.longdouble(1)}, "numpy.longdouble"),
])  # fmt: skip
def test_what_load_would_refuse_is_not_saved(parameters, words, tmp_path):
    model = sm.KernelRidge(nested(9)).fit(["ab", "b", "dc", "d"], [0.0, 1.0, 0.0, 2.0])
    path = sm.save(model, tmp_path / "m.similia")
    with pytest.raises(ValueError, match=f"^the model cannot be saved, as it .*{words}"):
        sm.save(clone(model).set_params(**parameters), path)
    assert sm.load(path).predict(["ab"]) == model.predict(["ab"])


def test_a_sparse_array_is_saved_whatever_memory_is_allowed(tmp_path):
    with sm.config(max_memory=1):
        path = sm.save({"features": csr_matrix(np.eye(3))}, tmp_path / "m.similia")
    np.testing.assert_array_equal(sm.load(path)["features"].toarray(), np.eye(3))


VECTORS = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
CLASSES = np.array(["a", "b", "c"])[np.arange(60) % 3]
TREES = [
    DecisionTreeClassifier(max_leaf_nodes=7, random_state=0),  # grown best first: children far behind their parents
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(5, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=4, random_state=0),
    AdaBoostClassifier(n_estimators=3, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(), n_estimators=3, max_features=0.5, random_state=0),
    CalibratedClassifierCV(LinearSVC(random_state=0), cv=2),
    CalibratedClassifierCV(LinearSVC(random_state=0), cv=2, method="isotonic"),
    CalibratedClassifierCV(RandomForestClassifier(3, random_state=0), cv=2, ensemble=False),
    RandomForestRegressor(5, random_state=0),
    GradientBoostingRegressor(n_estimators=4, loss="huber", random_state=0),
    DecisionTreeRegressor(max_depth=1, random_state=0),
]


@pytest.mark.parametrize("model", TREES, ids=lambda model: str(model)[:40])
def test_trees_and_calibrated_classifiers_come_back_the_same(model, tmp_path):
    y = VECTORS[:, 0] ** 2 if is_regressor(model) else CLASSES
    model = clone(model).fit(VECTORS, y)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    rows = np.random.default_rng(1).normal(size=(200, 5)).astype(np.float32)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows))


def test_older_scikit_learn_names_the_module_of_compiled_losses_otherwise():
    import skops.io

    data = skops.io.dumps(clone(TREES[4]).fit(VECTORS, CLASSES))
    older = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(older, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name).replace(b'"sklearn._loss._loss"', b'"_loss"'))
    assert b'"_loss"' in older.getvalue()
    assert canonical(older.getvalue()) == canonical(data)
    assert b'"sklearn._loss._loss"' in canonical(older.getvalue())


def test_probabilities_of_a_kernel_machine_come_back_the_same(tmp_path):
    words = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (60, 12))]
    model = sm.KernelSVC(sm.kernels.Spectrum(k=2), probability=True).fit(words, CLASSES)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.predict_proba(words), model.predict_proba(words))


def test_saving_a_model_twice_gives_the_same_bytes(fitted, tmp_path):
    model, _ = fitted
    first = sm.save(model, tmp_path / "a.similia").read_bytes()
    assert sm.save(model, tmp_path / "b.similia").read_bytes() == first
    assert sm.save(sm.load(tmp_path / "a.similia"), tmp_path / "c.similia").read_bytes() == first
    program = "import sys, similia as sm; sm.save(sm.load(sys.argv[1]), sys.argv[2])"
    for seed in "12":  # of the order of sets
        command = [sys.executable, "-c", program, tmp_path / "a.similia", tmp_path / "d.similia"]
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, check=True)
        assert (tmp_path / "d.similia").read_bytes() == first


def test_skops_reads_what_save_writes(fitted, tmp_path):
    import skops.io

    model, X = fitted
    path = sm.save(model, tmp_path / "m.similia")
    theirs = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))["model"]
    np.testing.assert_array_equal(theirs.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"peptide,family\nACD,zinc\n", "is a CSV table, not a model; similia.save"),
        (b"a\tb\n1\t2\n", "is a table with tabs, not a model"),
        (">read, one\nACGTé\n".encode(), "is a text file, not a model"),
        (b"", "is empty, not a model"),
        (b"PAR1....", "is a Parquet table, not a model"),
        (b"\x00\x01\xff", "is not a model, or it is truncated"),
        (b"PK\x03\x04cut", "is not a model, or it is truncated"),
    ],
)
def test_another_file_is_named_by_what_it_is(content, said, tmp_path):
    path = tmp_path / "x.similia"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} {said}"):
        sm.load(path)


def test_files_that_are_open(fitted, tmp_path):
    model, X = fitted
    buffer = io.BytesIO()
    assert sm.save(model, buffer) is buffer
    assert buffer.getvalue() == sm.save(model, tmp_path / "m.similia").read_bytes()
    buffer.seek(0)
    np.testing.assert_array_equal(sm.load(buffer).predict(X), model.predict(X))
    with (tmp_path / "m.similia").open("rb") as file:
        assert isinstance(sm.load(file)[-1], sm.HDClassifier)
    with pytest.raises(ValueError, match="the file is a text file, not a model"):
        sm.load(io.BytesIO(b"text"))
    for function in (lambda path: sm.save(model, path), sm.load):
        with pytest.raises(TypeError, match="open it with mode"):
            function(io.StringIO())
        with pytest.raises(TypeError, match="path must be a str, a path or a binary file, got int"):
            function(3)


def test_a_file_says_which_similia_wrote_it(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "__version__", "9.8.7")
    path = sm.save(fitted[0], tmp_path / "m.similia")
    monkeypatch.undo()
    with path.open("rb") as file:
        assert written_by(file) == "9.8.7"
    with zipfile.ZipFile(path) as file:
        schema = json.loads(file.read("schema.json"))
    assert schema["similia"] == "9.8.7"
    schema["content"]["model"]["__class__"] = "Absent"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps(schema))
    with pytest.raises(ValueError, match=rf"\(similia 9\.8\.7 wrote it; this is {sm.__version__}\)$"):
        sm.load(path)


def test_models_load_without_what_they_do_not_need(fitted, tmp_path):
    path = sm.save(fitted[0], tmp_path / "m.similia")
    program = (
        "import sys, similia as sm; sm.load(sys.argv[1]).predict(['ACGTACGTACGT']);"
        "print([m for m in ('skops', 'dask', 'pytest', 'matplotlib', 'faiss', 'sklearn.svm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_interrupted_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m.similia"
    path.write_bytes(b"old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(persistence.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sm.save(fitted[0], path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.similia"]
    assert path.read_bytes() == b"old"


def test_the_folder_must_exist_and_modes_are_kept(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .*absent does not exist"):
        sm.save(sm.kernels.Spectrum(), tmp_path / "absent" / "m.similia")
    path = tmp_path / "m.similia"
    (tmp_path / "plain").write_bytes(b"")
    sm.save(sm.kernels.Spectrum(), path)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    sm.save(sm.kernels.Spectrum(), path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model at"):
        sm.load(tmp_path / "absent")


@pytest.mark.parametrize("keep", [0, 10, 500, -1, -200])
def test_truncated_files(fitted, tmp_path, keep):
    path = sm.save(fitted[0], tmp_path / "m.similia")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"m\.similia is"):
        sm.load(path)


def test_every_corrupted_byte_of_the_data_is_noticed(fitted, tmp_path):
    path = sm.save(fitted[0], tmp_path / "m.similia")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"m\.similia is"):
        sm.load(path)


def test_files_of_other_programs(tmp_path):
    import skops.io

    text = tmp_path / "notes.txt"
    text.write_text("not a model")
    archive = tmp_path / "photos.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "a")
    foreign = tmp_path / "scaler.skops"
    skops.io.dump(StandardScaler(), foreign)
    for path, words in ((text, "not a model"), (archive, "not a model"), (foreign, "another program")):
        with pytest.raises(ValueError, match=words):
            sm.load(path)


def test_a_crafted_file_cannot_name_a_function(tmp_path):
    path = sm.save(sm.kernels.Spectrum(), tmp_path / "m.similia")
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(parts["schema.json"])
    schema["content"]["model"]["__class__"] = "system"
    schema["content"]["model"]["__module__"] = "os"
    schema["content"]["model"]["__loader__"] = "FunctionNode"
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    with pytest.raises(ValueError, match=r"os\.system"):
        sm.load(path)


@pytest.mark.parametrize("yes", [True, np.True_])
def test_keys_that_are_flags_come_back(yes, tmp_path):
    model = LogisticRegression(class_weight={yes: 5.0, not yes: 1.0})
    assert sm.load(sm.save(model, tmp_path / "m.similia")).class_weight == {True: 5.0, False: 1.0}


@pytest.mark.parametrize("weights", [{1: 2.0, "1": 1.0}, {True: 2.0, "true": 1.0}])
def test_keys_that_are_the_same_as_text_are_refused(weights, tmp_path):
    with pytest.raises(ValueError, match=r"keys that are the same as text, .* among .(1|true).; rename one"):
        sm.save(LogisticRegression(class_weight=weights), tmp_path / "m.similia")
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_not_saved_over_a_folder(tmp_path):
    with pytest.raises(ValueError, match=r"is a folder, but save writes one file; .* with search\.save\(folder\)"):
        sm.save(sm.kernels.Spectrum(k=2), tmp_path)
    assert list(tmp_path.iterdir()) == []
