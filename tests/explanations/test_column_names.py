"""Names of columns in explanations: those of data frames, and of the steps that make vectors, such as words.

Twins are the same models fitted to arrays, whose parts are called by number.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import similia as sm
from samples.explain import ALL, by_name, check_sums
from similia.explanations import explain, explain_classes

NAMES = ["height", "weight", "age"]
VALUES = np.abs(np.random.default_rng(0).normal(size=(40, 3))) + np.outer(np.arange(40) % 2, [3, 0, 1])
LABELS = np.where(np.arange(40) % 2, "tall", "short")
TEXTS = [
    "the cat sat on the mat", "stocks fell on monday", "a cat and a dog", "bond markets and stocks rose",
    "the dog sat on a log", "the bank cut rates", "cats like mats", "markets like low rates", "a small dog barks",
    "the bank sold bonds",
]  # fmt: skip
TOPICS = ["pets", "money"] * 5
COSINE = sm.kernels.Cosine()


def renamed(amounts, names):
    """Return amounts under the names of columns in place of their numbers."""
    return {names[int(key[7:])] if key.startswith("column ") else key: amount for key, amount in amounts.items()}


MODELS = [
    sm.KernelSVC(COSINE), sm.KernelRidge(sm.kernels.MinMax()), sm.KernelKMeans(COSINE, 2, random_state=0),
    make_pipeline(sm.Nystroem(COSINE, 8, random_state=0), LogisticRegression()), LogisticRegression(),
    RandomForestClassifier(5, random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_have_the_names_of_the_data_frame(model, frame):
    X, y = frame(dict(zip(NAMES, VALUES.T, strict=True))), VALUES[:, 0] if "Ridge" in str(model) else LABELS
    expected = explain(model.fit(VALUES, y), VALUES[3], top=ALL)
    numbers = {key.split(" = ")[0]: amount for key, amount in by_name(expected).items()}
    model.fit(X, y)
    rows = [X[3:4], *([X.iloc[3]] if frame is pd.DataFrame else [])]
    if not type(model).__module__.startswith("sklearn"):  # which warns that arrays have no names
        rows += [VALUES[3], VALUES[3:4]]
    for found in (explain(model, row, top=ALL) for row in rows):
        check_sums(found)
        named = {key.split(" = ")[0]: amount for key, amount in by_name(found).items()}
        assert named == pytest.approx(renamed(numbers, NAMES))
        assert {*NAMES} & {*named}


@pytest.mark.parametrize(
    "kernel", [COSINE, sm.kernels.MinMax(), sm.kernels.Sum([COSINE, sm.kernels.MinMax()])], ids=str
)
def test_pairs_of_rows_name_the_columns_too(kernel):
    X = pd.DataFrame(VALUES, columns=NAMES)
    numbers = by_name(explain(kernel, VALUES[0], VALUES[1]))
    assert numbers
    expected = {key.replace(f"column {k}", NAMES[k]): v for key, v in numbers.items() for k in [int(key[-1])]}
    for x, y in ((X.iloc[0], X.iloc[1]), (X[:1], X[1:2]), (pl.from_pandas(X)[0], pl.from_pandas(X)[1])):
        assert by_name(explain(kernel, x, y)) == pytest.approx(expected)
    assert by_name(explain(kernel, pd.DataFrame(VALUES)[:1], VALUES[1])) == pytest.approx(numbers)  # numbered columns


@pytest.mark.parametrize(
    "learner",
    [
        sm.KernelKMeans(COSINE, 2, random_state=0), sm.KernelSVC(COSINE), sm.KernelSVC(sm.kernels.MinMax()),
        make_pipeline(sm.Nystroem(COSINE, 8, random_state=0), LogisticRegression()),
    ],
    ids=lambda learner: type(learner).__name__,
)  # fmt: skip
def test_texts_are_explained_by_the_words_of_the_vectorizer(learner):
    """The twin gets the rows of counts."""
    counts = CountVectorizer()
    Z = counts.fit_transform(TEXTS)
    words = counts.get_feature_names_out()
    expected = explain(learner.fit(Z, TOPICS), Z[[0]], top=ALL)
    model = make_pipeline(counts, learner).fit(TEXTS, TOPICS)
    found = explain(model, TEXTS[0], top=ALL)
    check_sums(found)
    assert found.value == pytest.approx(expected.value)
    assert by_name(found) == pytest.approx(renamed(by_name(expected), words))
    assert {"cat", "sat"} <= {*by_name(found)} <= {*TEXTS[0].split(), "intercept"}


def test_the_steps_before_a_kernel_apply_to_pairs():
    model = make_pipeline(TfidfVectorizer(), sm.KernelSVC(COSINE)).fit(TEXTS, TOPICS)
    Z = model[0].transform(TEXTS)
    found = explain(model, TEXTS[0], TEXTS[4])
    assert found.value == pytest.approx(float(COSINE(Z[[0]], Z[[4]])[0, 0]))
    assert {*by_name(found)} == {"the", "sat", "on"}


def test_a_search_and_a_mixed_table_name_columns():
    search = GridSearchCV(
        make_pipeline(CountVectorizer(), sm.KernelSVC(sm.kernels.MinMax())), {"kernelsvc__C": [1.0]}, cv=2
    )
    assert {"cat", "sat"} <= {*by_name(explain(search.fit(TEXTS, TOPICS), TEXTS[0]))}
    X = pd.DataFrame(VALUES, columns=NAMES).assign(kind=LABELS)
    columns = make_column_transformer((StandardScaler(), NAMES[:2]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(columns, sm.KernelKMeans(sm.kernels.Cosine("projection"), 2, random_state=0)).fit(X)
    named = {"standardscaler__height", "standardscaler__weight", "onehotencoder__kind_tall", "intercept"}
    assert {*by_name(explain(model, X.iloc[1]))} == {*by_name(explain(model, X[1:2]))} == named
    assert {part.name for parts in explain_classes(model, X).values() for part in parts} >= named - {
        "standardscaler__weight", "intercept",
    }  # fmt: skip


@pytest.mark.parametrize(
    "learner", [sm.KernelKMeans(COSINE, 2, random_state=0), sm.HDBSCAN(COSINE, 3), sm.KernelSVC(COSINE)]
)
def test_classes_of_texts_share_words(learner):
    counts = CountVectorizer()
    X, y = TEXTS * 4, TOPICS * 4
    Z = counts.fit_transform(X)
    expected = explain_classes(learner.fit(Z, y), Z, top=ALL)
    found = explain_classes(make_pipeline(counts, learner).fit(X, y), X, top=ALL)
    assert any(found.values())
    for label, parts in expected.items():
        numbers = renamed({part.name: part.contribution for part in parts}, counts.get_feature_names_out())
        assert {part.name: part.contribution for part in found[label]} == pytest.approx(numbers)


def test_classes_of_a_table_share_columns_whatever_their_values():
    X = pd.DataFrame(VALUES, columns=NAMES)
    for model in (
        LogisticRegression().fit(X, LABELS),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, LABELS),
    ):
        found = explain_classes(model, X)
        assert found["tall"][0].name == "height"
        assert {part.name for parts in found.values() for part in parts} <= {*NAMES}


@pytest.mark.parametrize("named", [False, True])
def test_classes_by_rbf_share_the_columns_whose_means_change_the_decision(named):
    """The twin replaces each column of each member and predicts; 10 members of each class, so all are examined."""
    values, labels = VALUES[:20], LABELS[:20]
    X = pd.DataFrame(values, columns=NAMES) if named else values
    model = sm.KernelSVC(sm.kernels.RBF(0.5)).fit(X, labels)
    means = np.asarray(model.support_objects_).mean(axis=0)
    found = explain_classes(model, X, top=ALL)
    predicted = model.predict(X)
    for label, sign in zip(model.classes_, (-1, 1), strict=True):
        members, expected = values[predicted == label], {}
        assert len(members) <= 10
        for k, name in enumerate(NAMES):
            falls = []
            for x in members:
                changed = x.copy()
                changed[k] = means[k]
                falls.append(sign * np.subtract(*model.decision_function(np.array([x, changed]))))
            if np.mean(falls) > 0 and sum(fall > 0 for fall in falls) >= 2:
                expected[name if named else f"column {k}"] = np.mean(falls), np.mean(np.array(falls) > 0)
        told = {part.name: (part.contribution, part.share) for part in found[label]}
        assert told.keys() == expected.keys()
        assert told
        for name, pair in told.items():
            assert pair == pytest.approx(expected[name])


@pytest.mark.parametrize("clusters", [sm.KernelKMeans(sm.kernels.RBF(0.1), 2, random_state=0)])
def test_clusters_by_rbf_are_told_apart_by_the_column_in_which_they_differ(clusters, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=NAMES)
    X["age"] += 8.0 * (np.arange(40) % 2)
    found = explain_classes(clusters.fit(X), X)
    assert [parts[0].name for parts in found.values()] == ["age", "age"]
    page = sm.report.write_clusters(clusters, X, path=tmp_path / "clusters.html")
    assert "age (100" in page.read_text()


def test_texts_whose_columns_have_no_names_lose_substrings():
    hashing = HashingVectorizer(n_features=64, norm=None, alternate_sign=False)
    model = make_pipeline(hashing, sm.KernelSVC(sm.kernels.MinMax())).fit(TEXTS, TOPICS)
    assert by_name(explain(model, TEXTS[0])).keys() <= {*(f"column {k}" for k in range(64)), "intercept"}
    for label, parts in explain_classes(model, TEXTS).items():
        own = [text for text, topic in zip(TEXTS, model.predict(TEXTS), strict=True) if topic == label]
        assert all(sum(part.name in text for text in own) >= 2 for part in parts)


def test_a_frame_of_several_rows_is_refused():
    X = pd.DataFrame({"a": [0.0, 1.0, 5.0, 6.0], "b": [0.0, 1.0, 5.0, 6.0]})
    model = sm.KernelSVC(sm.kernels.RBF(gamma=1.0)).fit(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"^x is a table of 4 rows, expected one object; give one row of it$"):
        sm.explain(model, X)


def test_rows_of_a_frame_for_a_model_fitted_to_an_array():
    X = pd.DataFrame(VALUES, columns=NAMES)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(VALUES, LABELS)
    of_row, of_array = sm.explain(model, X.iloc[0]), sm.explain(model, VALUES[0])
    assert of_row.value == of_array.value
    assert {part.name.split(" = ")[0] for part in of_row.parts} == {*NAMES, "intercept"}
