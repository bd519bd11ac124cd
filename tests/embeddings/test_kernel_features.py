"""KernelFeatures in pipelines, grid search and files; FeatureWeights: TF-IDF of any kernel's features."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import similia as sm
from similia import kernels
from similia.kernels import Spectrum, WeisfeilerLehman, Words

# The classes have the same letters, and differ in their order only: k=1 cannot tell them apart.
X = ["ABABAB", "BABABA", "ABABABAB", "BABA", "AABB", "BBAA", "AAABBB", "BBAABBAA"] * 2
Y = ([0] * 4 + [1] * 4) * 2
LAW = settings(max_examples=40, deadline=None)
COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=6)
TEXTS = ["to be or not to be", "not to be", "a rose is a rose is a rose", "roses are red", "red or blue", "Be it so"]
LABELS = [0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("kernel", "objects"),
    [
        (kernels.Spectrum(k=2, normalize=True), X),
        (kernels.Sum([kernels.Spectrum(k=1), kernels.Spectrum(k=3)]), X),
        (kernels.WeisfeilerLehman(n_iter=1), [nx.path_graph(3), nx.cycle_graph(4)]),
    ],
)
def test_features_are_those_of_the_kernel(kernel, objects):
    features = sm.KernelFeatures(kernel, n_features=512).fit_transform(objects)
    assert (features != kernel.features(objects, 512)).nnz == 0
    assert features.shape == (len(objects), 512)
    wide = sm.KernelFeatures(kernel).transform(objects)
    assert wide.shape == (len(objects), 2**20)
    np.testing.assert_allclose((wide @ wide.T).toarray(), kernel(objects))


def test_estimator_contract():
    kernel = kernels.Spectrum(k=2)
    step = sm.KernelFeatures(kernel, n_features=64)
    assert step.fit(X, Y) is step
    assert step.kernel is kernel
    assert step.get_params() == {
        "kernel": kernel,
        "n_features": 64,
        **{f"kernel__{k}": v for k, v in kernel.get_params().items()},
    }
    fresh = clone(step)
    assert fresh.kernel is not kernel
    assert (fresh.transform(X) != step.transform(X)).nnz == 0
    try:
        check_is_fitted(fresh)
    except NotFittedError:
        pytest.fail("a stateless transformer needs no fit")


def test_grid_search_reaches_the_kernel():
    pipeline = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=1, normalize=True), 2**12), LinearSVC())
    search = GridSearchCV(pipeline, {"kernelfeatures__kernel__k": [1, 2]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"kernelfeatures__kernel__k": 2}
    assert search.predict(X).tolist() == Y


def test_a_saved_pipeline_predicts_the_same(tmp_path):
    pipeline = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=2), 2**12), LinearSVC()).fit(X, Y)
    loaded = sm.load(sm.save(pipeline, tmp_path / "model.similia"))
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert loaded[0].kernel.k == 2


@pytest.mark.parametrize(
    ("step", "error", "sentence"),
    [
        (sm.KernelFeatures(kernels.Product([kernels.Spectrum()])), TypeError, "no explicit features; similia.Nystroem"),
        (sm.KernelFeatures(len), TypeError, "no explicit features; similia.Nystroem"),
        (sm.KernelFeatures(kernels.Spectrum), TypeError, r"is the class Spectrum, .* write Spectrum\(\.\.\.\)"),
        (sm.KernelFeatures(kernels.Spectrum(), 0), ValueError, "n_features must be an integer >= 1, got 0"),
    ],
)
def test_bad_parameters_get_one_sentence(step, error, sentence):
    for call in (step.fit, step.transform):
        with pytest.raises(error, match=sentence) as raised:
            call(X)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("returned", [sp.csr_array((2, 1000)), sp.csr_array((1, 64)), sp.csc_array((2, 64)), 1.0])
def test_features_of_another_shape_or_format_are_refused(returned):
    class Broken:
        def features(self, X, n_features=None):
            return returned

    sentence = r"Broken.features returned .*, expected a sparse CSR matrix of shape \(2, 64\)$"
    with pytest.raises(ValueError, match=sentence):
        sm.KernelFeatures(Broken(), 64).fit_transform(["a", "b"])


# ---- objects of which training met nothing
UPPER = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC"]


def trained(n_features=2**12, kernel=None, X=UPPER):
    features = sm.KernelFeatures(kernel or kernels.Spectrum(k=3), n_features)
    return make_pipeline(features, LinearSVC()).fit(X, [0, 0, 1, 1])


def said_of(model, objects):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(objects) if hasattr(model, "transform") else model.predict(objects)
    assert all(issubclass(warning.category, UserWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


def strangers_of(kernel, training, objects, n_features):
    """The slow way: columns as sets."""
    met = {c for x in training for c in kernel.features([x], n_features).nonzero()[1]}
    columns = [set(kernel.features([x], n_features).nonzero()[1]) for x in objects]
    q, found = len(met) / n_features, []
    for i, own in enumerate(columns):
        k = len(own)
        chance = q * k + 3 * (q * (1 - q) * k) ** 0.5 + 0.05 * (1 - q) * k
        if own and len(own & met) <= (0 if k < 8 else min(int(chance), k - 1)):
            found.append(i)
    return found


@pytest.mark.parametrize("n_features", [5, 64, 2**12, 2**20])
def test_the_objects_that_are_named_are_those_without_a_known_column(n_features):
    rng = np.random.default_rng(n_features)
    kernel = kernels.Spectrum(k=3)
    training = ["".join(word) for word in rng.choice(list("ACGT"), (4, 5))]
    model = trained(n_features, kernel, training)
    some = 0
    for _ in range(40):
        objects = ["".join(rng.choice(list("ACGTN"), rng.integers(0, 20))) for _ in range(9)]
        expected = strangers_of(kernel, training, objects, n_features)
        said = [text for text in said_of(model, objects) if "no features at all" not in text]
        some += bool(expected)
        assert len(said) == bool(expected)
        for text in said:
            assert text.startswith(f"{len(expected)} of 9 objects have no feature that a training object had, e.g. ")
            assert f"X[{expected[0]}]" in text
            assert "\n" not in text
    assert some or n_features == 5


def test_letters_of_another_case_are_heard_of():
    model = trained()
    [text] = said_of(model, ["GATTA", "gattaca", "", "ccgcgg"])
    assert text == (
        "2 of 4 objects have no feature that a training object had, e.g. X[1]; a linear model knows nothing "
        "about them; are they of the same kind (case, alphabet, labels) as the training objects?"
    )
    assert (
        said_of(model, UPPER) == said_of(model, ["", "GATTA", "GATtaca"]) == []
    )  # too short for a feature; one is known
    assert said_of(trained(kernel=kernels.WeisfeilerLehman(), X=[nx.path_graph(3)] * 4), [nx.path_graph(3)]) == []


def test_columns_that_many_features_share_do_not_hide_another_case():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 300)) for _ in range(120)]
    model = sm.KernelFeatures(kernels.Spectrum(k=3), 2**13)
    model.fit_transform(X[:90])  # 8000 words in 8192 columns: two thirds are met
    assert said_of(model, X[90:]) == []
    [text] = said_of(model, [x.lower() for x in X[90:]])
    assert int(text.split()[0]) > 20


def test_what_is_remembered_is_forgotten_by_fit():
    features = sm.KernelFeatures(kernels.Spectrum(k=2), 100)
    fitted = features.fit_transform(UPPER)
    assert (fitted != features.transform(UPPER)).nnz == 0
    bits = np.unpackbits(features.met_, bitorder="little")
    np.testing.assert_array_equal(np.flatnonzero(bits), np.unique(fitted.nonzero()[1]))
    assert features.met_.shape == (13,)
    assert len(said_of(features, ["acg"])) == 1
    before = features.met_.copy()
    features.transform(["acg"] * 0 + UPPER)
    np.testing.assert_array_equal(features.met_, before)
    assert said_of(sm.KernelFeatures(kernels.Spectrum(k=2), 100), ["acg"]) == []
    assert said_of(clone(features), ["acg"]) == []
    assert said_of(features.set_params(n_features=50), ["acg"]) == []  # what was met is of other columns
    assert said_of(features.fit(UPPER), ["acg"]) == []
    assert not hasattr(features, "met_")
    assert features.set_params(kernel=kernels.Optical()).fit(np.eye(3)).n_features_in_ == 3
    features.set_params(kernel=kernels.Spectrum(k=2)).fit(UPPER)
    assert features.transform(pd.DataFrame({"text": UPPER})).shape == (4, 50)
    wide = sm.KernelFeatures(kernels.Spectrum(k=2), 2**24 + 1)
    wide.fit_transform(UPPER)
    assert not hasattr(wide, "met_")


def test_what_is_remembered_is_saved_and_old_files_are_read(tmp_path):
    model = trained()
    loaded = sm.load(sm.save(model, tmp_path / "new.similia"))
    np.testing.assert_array_equal(loaded[0].met_, model[0].met_)
    assert said_of(loaded, ["acgt"]) == said_of(model, ["acgt"]) != []
    del model[0].met_  # as versions before this one wrote it
    old = sm.load(sm.save(model, tmp_path / "old.similia"))
    assert said_of(old, ["acgt"]) == []
    for wrong in (np.zeros(3, np.uint8), np.zeros(512), np.zeros((1, 512), np.uint8)):
        model[0].met_ = wrong
        with pytest.raises(ValueError, match="KernelFeatures has"):
            sm.save(model, tmp_path / "wrong.similia")


def test_a_stream_names_strangers_by_their_number(tmp_path):
    model = trained()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sm.scale.predict_stream(model, UPPER * 5 + ["acgt"], tmp_path / "p.csv", chunk=8)
    [text] = [str(warning.message) for warning in caught]
    assert text.startswith("1 of the objects 16 to 20 have no feature")
    assert "X[20]" in text


def test_objects_without_any_feature_are_heard_of():
    [text] = said_of(trained(), ["1", "2", "3", "GATTA"])
    assert text == (
        "3 of 4 objects have no features at all (are they too short?), e.g. X[0]; are they of the same kind (case, "
        "alphabet, labels) as the training objects? If so, this kernel looks for more than objects share (such as long "
        "substrings); take a coarser one"
    )
    assert said_of(trained(), ["GATTA", "2", "CCGCG"]) == []
    assert said_of(trained(X=["1", "2", "3", "4"]), ["1", "2"]) == []  # as in training


@pytest.mark.parametrize(
    ("learner", "named"),
    [
        (sm.KNeighborsClassifier, "to all training objects,"),
        (sm.KernelSVC, "to all training objects that the model keeps,"),
    ],
)
def test_learners_on_a_kernel_tell_objects_unlike_all_training_objects(learner, named):
    model = learner(kernels.Spectrum(k=3)).fit(UPPER, [0, 0, 1, 1])
    [text] = said_of(model, ["GATTACA", "gattaca", "1", "CcGcGg"])
    assert text.startswith(f"3 of 4 objects have similarity 0 {named} e.g. X[1]; are they of the same kind")
    assert said_of(model, UPPER) == said_of(model, ["GATTACA", "gattaca"]) == []
    with sm.config(max_memory=64):  # blocks of a row
        assert said_of(model, ["GATTACA", "gattaca", "1", "CcGcGg"]) == [text]


def test_neighbours_by_a_distance_are_told_nothing():
    model = sm.KNeighborsClassifier(sm.distances.Levenshtein()).fit(UPPER, [0, 0, 1, 1])
    assert said_of(model, ["gattaca", "1"]) == []


@LAW
@given(COUNTS, COUNTS, st.booleans(), st.booleans(), st.sampled_from(["l1", "l2", None]))
def test_it_is_scikit_learns(train, test, idf, sublinear, norm):
    train, test = (np.array(rows, dtype=float) for rows in (train, test))
    theirs = TfidfTransformer(norm=norm, use_idf=idf, sublinear_tf=sublinear).fit(train)
    ours = sm.FeatureWeights(idf, sublinear, norm, min_objects=0).fit(sp.csr_array(train))
    expected = theirs.transform(test).toarray()
    np.testing.assert_allclose(ours.transform(sp.csr_array(test)).toarray(), expected, rtol=1e-13)
    np.testing.assert_allclose(ours.transform(test), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (Spectrum((1, 4), ignore_case=True), {"analyzer": "char", "ngram_range": (1, 4)}),
        (Spectrum((2, 5), boundaries="words", ignore_case=True), {"analyzer": "char_wb", "ngram_range": (2, 5)}),
        (Words((1, 2), ignore_case=True), {"ngram_range": (1, 2)}),
    ],
    ids=["char", "char_wb", "word"],
)
@pytest.mark.parametrize("sublinear", [False, True])
def test_the_matrices_of_tfidf_vectorizers(kernel, options, sublinear):
    theirs = TfidfVectorizer(sublinear_tf=sublinear, **options)
    ours = make_pipeline(sm.KernelFeatures(kernel, 2**22), sm.FeatureWeights(sublinear=sublinear))
    A, B = theirs.fit_transform(TEXTS[:4]), ours.fit_transform(TEXTS[:4])
    np.testing.assert_allclose((B @ B.T).toarray(), (A @ A.T).toarray(), rtol=1e-12, atol=1e-15)
    new = theirs.transform(TEXTS), ours.transform(TEXTS)
    np.testing.assert_allclose((new[1] @ B.T).toarray(), (new[0] @ A.T).toarray(), rtol=1e-12, atol=1e-15)


def test_by_hand():
    X = sp.csr_array(np.array([[2.0, 1, 0], [0, 1, 0], [0, 0, 0]]))
    weights = sm.FeatureWeights(norm=None).fit(X)
    np.testing.assert_allclose(weights.idf_, [1 + np.log(4 / 2), 1 + np.log(4 / 3), 0])
    np.testing.assert_array_equal(sm.FeatureWeights(norm="l2", idf=False).fit_transform(X).toarray()[1], [0, 1, 0])
    rare = sm.FeatureWeights(min_objects=2).fit_transform(X)
    np.testing.assert_array_equal(rare.toarray(), [[0, 1, 0], [0, 1, 0], [0, 0, 0]])
    new = sp.csr_array(np.array([[0.0, 3, 4]]))  # no training object has the third feature
    np.testing.assert_array_equal(weights.transform(new).toarray(), [[0, 3 * weights.idf_[1], 0]])
    unseen = sm.FeatureWeights(idf=False, min_objects=0).fit(X)
    np.testing.assert_allclose(unseen.transform(new).toarray(), [[0, 0.6, 0.8]])


def test_input_is_not_changed_and_kind_is_kept():
    X = sp.csr_array(np.array([[2.0, 0, 1], [0, 3, 0]]))
    before = X.copy()
    weighted = sm.FeatureWeights(sublinear=True).fit_transform(X)
    assert (before != X).nnz == 0
    assert isinstance(weighted, sp.csr_array)
    assert isinstance(sm.FeatureWeights().fit_transform(X.toarray()), np.ndarray)


def test_sorting_the_output_leaves_the_input_alone():
    X = sp.csr_array(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3))  # unsorted, as sparse products are
    before = X.toarray()
    weighted = sm.FeatureWeights().fit(X).transform(X)
    weighted.sort_indices()
    np.testing.assert_array_equal(X.toarray(), before)


def test_entries_of_one_place_are_added():
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), [0, 0, 1], [0, 3]), shape=(1, 2))
    weights = sm.FeatureWeights().fit(X)
    np.testing.assert_array_equal(weights.idf_, [1, 1])
    np.testing.assert_allclose(weights.transform(X).toarray(), [[0.6, 0.8]], rtol=1e-15)
    assert X.nnz == 3  # the input stays as it is


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_dates_are_no_numbers(dtype):
    with pytest.raises(ValueError, match=r"^X holds dates or times .*, expected numbers"):
        sm.FeatureWeights().fit(np.array([[1, 2]]).astype(dtype))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e200])
def test_norms_of_tiny_and_huge_rows(scale, norm):
    found = sm.FeatureWeights(idf=False, norm=norm).fit_transform(np.array([[scale, 0], [0, 1.0]]))
    np.testing.assert_array_equal(found, np.eye(2))


@pytest.mark.same_bits
def test_an_object_alone_has_the_bits_it_has_among_others():
    features = sm.KernelFeatures(Spectrum((1, 5)), 2**12).fit_transform(TEXTS)
    weights = sm.FeatureWeights(sublinear=True).fit(features)
    together = weights.transform(features)
    for i in range(len(TEXTS)):
        alone = weights.transform(features[[i]])
        np.testing.assert_array_equal(alone.data, together[[i]].data)


def test_saved_and_explained(tmp_path):
    model = make_pipeline(sm.KernelFeatures(Words((1, 2)), 2**12), sm.FeatureWeights(sublinear=True), LinearSVC())
    model.fit(TEXTS, LABELS)
    loaded = sm.load(sm.save(model, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.decision_function(TEXTS), model.decision_function(TEXTS))
    found = sm.explain(model, "roses are not red", top=100)
    decision = abs(model.decision_function(["roses are not red"])[0])
    assert found.value == pytest.approx(decision)
    total = sum(part.contribution for part in found.parts) + model[-1].intercept_[0] * np.sign(found.value)
    assert {part.name for part in found.parts} >= {"roses", "are", "red", "roses are"}
    assert abs(total) == pytest.approx(decision, rel=1e-9) or abs(found.residual) < 1e-9


def test_of_graphs_too():
    edges = [np.array([[0, 1], [1, 2]]), np.array([[0, 1, 2], [1, 2, 0]])]
    graphs = [{"edge_index": e, "n_nodes": 3, "node_labels": np.arange(3)} for e in edges * 3]
    model = make_pipeline(sm.KernelFeatures(WeisfeilerLehman(2), 2**10), sm.FeatureWeights(), LinearSVC())
    np.testing.assert_array_equal(model.fit(graphs, [0, 1] * 3).predict(graphs), [0, 1] * 3)


def test_wrong_input_is_named():
    normal = sp.csr_array(np.array([[1.0, 0], [0.6, 0.8]]))
    with pytest.raises(ValueError, match=r"X\[1\] has the value 0.6 in column 0.*normalize=False"):
        sm.FeatureWeights(sublinear=True).fit_transform(normal)
    with pytest.raises(ValueError, match="norm must be 'l2', 'l1' or None, got 'max'"):
        sm.FeatureWeights(norm="max").fit(normal)
    with pytest.raises(ValueError, match="min_objects must be an integer >= 0, got -1"):
        sm.FeatureWeights(min_objects=-1).fit(normal)
    with pytest.raises(ValueError, match="3 features, but FeatureWeights is expecting 2"):
        sm.FeatureWeights().fit(normal).transform(np.ones((1, 3)))
