"""FeatureWeights: TF-IDF of any kernel's features, equal to scikit-learn's on the same counts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from similia.kernels import Spectrum, WeisfeilerLehman, Words

LAW = settings(max_examples=40, deadline=None)
COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=6)
TEXTS = ["to be or not to be", "not to be", "a rose is a rose is a rose", "roses are red", "red or blue", "Be it so"]
LABELS = [0, 0, 1, 1, 1, 0]


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
