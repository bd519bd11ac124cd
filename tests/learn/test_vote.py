"""Models that vote: the plurality is that of a slow count, ties go to the earliest, and what they are given is kept."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier as VectorNeighbors
from sklearn.neighbors import KNeighborsRegressor as VectorRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import similia as sm
from similia.learn.vote import plurality
from similia.report import write_report

STRINGS = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC", "TATTAG", "GGCC"]
LABELS = np.array(["at", "at", "cg", "cg", "at", "cg", "at", "cg"])


class Says(ClassifierMixin, BaseEstimator):
    """A classifier that gives the answers it was made with."""

    def __init__(self, answers):
        self.answers = answers

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.array(self.answers)[: len(X)]


def counted(answers):
    """Return the plurality, object by object; of equal counts the earliest voter's."""
    found = []
    for said in zip(*answers, strict=True):
        counts = Counter(said)
        found.append(next(label for label in said if counts[label] == max(counts.values())))
    return found


@given(
    st.integers(1, 9).flatmap(
        lambda k: st.lists(st.lists(st.sampled_from("abcd"), min_size=k, max_size=k), min_size=1, max_size=12)
    )
)
def test_the_plurality_is_that_of_counting_and_ties_go_to_the_earliest(rows):
    answers = [np.array(column) for column in zip(*rows, strict=True)]
    assert plurality(answers, np.array(list("abcd"))).tolist() == counted([a.tolist() for a in answers])


def test_a_vote_of_odd_voters_is_that_of_scikit_learn_and_so_is_a_mean():
    rng = np.random.default_rng(0)
    X, numbers = rng.normal(size=(60, 3)), rng.normal(size=60)
    y = (X[:, 0] + 0.5 * numbers > 0).astype(int)
    members = [LogisticRegression(), VectorNeighbors(3), DecisionTreeClassifier(max_depth=2, random_state=0)]
    theirs = VotingClassifier([(str(i), clone(m)) for i, m in enumerate(members)]).fit(X, y)
    np.testing.assert_array_equal(sm.VoteClassifier(members).fit(X, y).predict(X), theirs.predict(X))
    members = [Ridge(), VectorRegressor(3), DecisionTreeRegressor(max_depth=2, random_state=0)]
    theirs = VotingRegressor([(str(i), clone(m)) for i, m in enumerate(members)]).fit(X, numbers)
    np.testing.assert_allclose(sm.VoteRegressor(members).fit(X, numbers).predict(X), theirs.predict(X))


def test_shares_of_votes():
    says = [Says(["a", "b", "b"]), Says(["a", "c", "b"]), Says(["b", "a", "b"])]
    vote = sm.VoteClassifier(says).fit([0, 0, 0], ["a", "b", "c"])
    expected = np.array([[2, 1, 0], [1, 1, 1], [0, 3, 0]]) / 3
    shares = vote.predict_proba([0, 0, 0])
    np.testing.assert_allclose(shares, expected, atol=1e-9)
    assert shares[1].argmax() == 1  # the tie is won by the earliest
    assert vote.predict([0, 0, 0]).tolist() == ["a", "b", "b"]
    assert vote.best_ is vote.estimators_[0]


def test_a_frozen_voter_may_know_classes_that_y_lacks():
    known = VectorNeighbors(1).fit([[0.0], [1.0], [2.0]], ["a", "b", "d"])
    vote = sm.VoteClassifier([FrozenEstimator(known), FrozenEstimator(known), VectorNeighbors(1)])
    vote.fit([[1.0], [3.0]], ["b", "c"])
    assert vote.classes_.tolist() == ["a", "b", "c", "d"]
    assert vote.predict([[0.0], [2.0]]).tolist() == ["a", "d"]
    with pytest.raises(ValueError, match=r"y\[0\] is 2, but the frozen estimator knows .a.; give labels of one type"):
        vote.fit([[1.0], [3.0]], [2, 1])


@pytest.fixture
def vote():
    kernel = sm.kernels.Spectrum(k=2, normalize=True)
    return sm.VoteClassifier(
        [sm.KernelSVC(kernel), sm.KNeighborsClassifier(sm.distances.Levenshtein(), 1), sm.KernelSVC(kernel, 10.0)]
    )


def test_what_is_given_is_copied_and_the_fitted_vote_can_be_saved(vote, tmp_path):
    vote.fit(STRINGS, LABELS)
    assert not hasattr(vote.estimators[0], "classes_")
    path = sm.save(vote, tmp_path / "vote.similia")
    np.testing.assert_array_equal(sm.load(path).predict(STRINGS), vote.predict(STRINGS))
    regressors = [sm.KNeighborsRegressor(sm.distances.Levenshtein(), n) for n in (1, 2)]
    numbers = sm.VoteRegressor(regressors).fit(STRINGS, np.arange(8.0))
    path = sm.save(numbers, tmp_path / "mean.similia")
    np.testing.assert_array_equal(sm.load(path).predict(STRINGS), numbers.predict(STRINGS))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([], ValueError, "estimators must be a list of one or more"),
        (Ridge(), ValueError, "estimators must be a list of one or more"),
        ([Ridge(), sm.kernels.Spectrum(k=2)], TypeError, r"estimators\[1\] is .*expected an estimator with fit"),
        ([LinearSVC(), Ridge()], TypeError, r"estimators\[1\] is Ridge.*expected a classifier; VoteRegressor takes it"),
    ],
)
def test_wrong_estimators_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        sm.VoteClassifier(given).fit([[1.0], [2.0]], [0, 1])


def test_columns_of_an_earlier_fit_are_forgotten():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": 1.0})
    vote = sm.VoteRegressor([Ridge()]).fit(frame, range(4))
    assert vote.feature_names_in_.tolist() == ["a", "b"]
    vote.fit(frame[["a"]].to_numpy(), range(4))
    assert vote.n_features_in_ == 1
    assert not hasattr(vote, "feature_names_in_")
    vote.set_params(estimators=[sm.KNeighborsRegressor(sm.distances.Levenshtein(), 1)]).fit(STRINGS, range(8))
    assert not hasattr(vote, "n_features_in_")


def test_parameters_of_a_voter_are_reached(vote):
    vote.set_params(v1__n_neighbors=3, v2=sm.KernelSVC(sm.kernels.Spectrum(k=3)), v0__kernel__k=4)
    assert vote.get_params()["v1__n_neighbors"] == vote.estimators[1].n_neighbors == 3
    assert vote.estimators[2].kernel.k == 3
    assert vote.estimators[0].kernel.k == 4
    assert clone(vote).get_params()["v0__kernel__k"] == 4


def test_labels_are_checked(vote):
    with pytest.raises(ValueError, match="8"):
        vote.fit(STRINGS, LABELS[:5])
    with pytest.raises(ValueError, match=r"y\[1\] is 'a', but y\[0\] is 0; give labels of one type"):
        vote.fit(STRINGS, [0, "a"] * 4)


def test_of_a_vote_the_first_that_adds_up_is_explained():
    spectrum = sm.kernels.Spectrum(k=2, normalize=True)
    linear = make_pipeline(sm.KernelFeatures(spectrum, 256), LinearSVC(random_state=0))
    curved = make_pipeline(sm.Nystroem(spectrum, 4, random_state=0), DecisionTreeClassifier(random_state=0))
    vote = sm.VoteClassifier([curved, linear, sm.KernelSVC(spectrum)]).fit(STRINGS, LABELS)
    found, alone = sm.explain(vote, "ATTA"), sm.explain(vote.estimators_[1], "ATTA")
    assert found.value == alone.value
    assert [part.name for part in found.parts] == [part.name for part in alone.parts]
    assert "this is number 2 of the 3 models that vote; 3 of them say at" in found.note
    curved = make_pipeline(sm.Nystroem(spectrum, 4, random_state=0), DecisionTreeClassifier(random_state=0))
    found = sm.explain(sm.VoteClassifier([curved, curved]).fit(STRINGS, LABELS), "ATTA")
    assert found.note.startswith("the decision has no parts: none of the 2 models that vote can be explained")
    assert found.left_out is not None


def test_a_voter_that_was_outvoted_is_explained_last():
    kernel = sm.kernels.Spectrum(k=2, normalize=True)
    turned = ["cg" if label == "at" else "at" for label in LABELS]
    linear = [
        make_pipeline(sm.KernelFeatures(kernel, 256), LinearSVC(random_state=0)).fit(STRINGS, y)
        for y in (turned, LABELS)
    ]
    curved = make_pipeline(sm.Nystroem(kernel, 4, random_state=0), DecisionTreeClassifier(random_state=0))
    vote = sm.VoteClassifier([linear[0], linear[1], curved]).fit(STRINGS, LABELS)
    vote.estimators_[:2] = linear
    assert vote.predict(["ATTA"]) == ["at"]
    assert "this is number 2 of the 3 models that vote; 2 of them say at" in sm.explain(vote, "ATTA").note
    vote.estimators_[1] = vote.estimators_[2]
    assert (
        "number 1 of the 3 models that vote; 2 of them say at, and this one does not" in sm.explain(vote, "ATTA").note
    )


def test_a_report_scores_the_vote(tmp_path):
    """Two voters that are always wrong outvote one that is right."""
    X, y = STRINGS * 3, np.tile(LABELS, 3)
    wrong = [Says(["at"] * 24), Says(["at"] * 24)]
    right = sm.KNeighborsClassifier(sm.distances.Levenshtein(), 1)
    page = write_report(sm.VoteClassifier([right, *wrong]), X, y, tmp_path / "r.html", cv=3).read_text()
    assert "accuracy, cross-validated" in page
    assert "3 models vote. The predictions are those of the vote" in page
    table = page[page.index("Predictions of unseen objects") :]
    assert "50.0 %" in table[: table.index("balanced accuracy")]
    model = sm.VoteClassifier([right, *wrong]).fit(X, y)
    page = write_report(model, X, y, tmp_path / "r.html", unseen=True).read_text()
    table = page[page.index("Predictions of unseen objects") :]
    assert "50.0 %" in table[: table.index("balanced accuracy")]


def test_a_report_looks_at_the_first_and_says_so(vote, tmp_path):
    page = write_report(vote.fit(STRINGS * 2, np.tile(LABELS, 2)), STRINGS * 2, np.tile(LABELS, 2), tmp_path / "r.html")
    assert "KernelSVC (the first of 3 that vote)" in page.read_text()
    page = write_report(clone(vote), STRINGS * 2, np.tile(LABELS, 2), tmp_path / "unfitted.html")
    assert "(the first of 3 that vote)" in page.read_text()
