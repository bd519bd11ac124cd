"""Places that matter to models whose parts have none: planted motifs, bumps, cliques and points, and slow twins."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, IsolationForest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, RegressorChain
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, OneClassSVM

import similia as sm
from similia.embeddings import GraphletSampling, MeanMapFeatures, Representatives
from similia.explanations import _left_out, explain, explain_classes
from similia.explanations._views import view_of
from similia.objects import GraphBatch, GraphToSets, SeriesToSets, as_graphs, as_series, as_sets

MOTIFS = {"a": "GLAKHFEC", "b": "WWPDSTGY", "c": "MMNQRLKE"}


@pytest.fixture(scope="module")
def planted():
    """Random strings with the motif of their class at a random place; returns strings, classes and places."""
    rng, X, y, places = np.random.default_rng(0), [], [], []
    for i in range(90):
        letters, label = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 25)), "abc"[i % 3]
        place = int(rng.integers(26))
        X.append(letters[:place] + MOTIFS[label] + letters[place:])
        y.append(label)
        places.append(place)
    return X, np.array(y), places


@pytest.fixture(scope="module")
def model(planted):
    X, y, _ = planted
    made = sm.recipes.d2ke(sm.distances.Levenshtein(), 90, objects=Representatives(), random_state=0)
    return made.fit(X, y)


def test_the_motif_is_the_stretch_without_which_the_decision_falls_most(planted, model):
    X, _, places = planted
    hits = 0
    for i in range(6):
        found = explain(model, X[i], top=4)
        best = found.left_out.parts[0]
        hits += len({*best.in_x.tolist()} & {*range(places[i], places[i] + 8)}) >= 5
        winner, other = (list(model.classes_).index(name) for name in found.title.split(", for ")[1].split(" against "))
        for part in found.left_out.parts:
            a, b = int(part.in_x[0]), int(part.in_x[-1]) + 1
            scores = model.decision_function([X[i], X[i][:a] + X[i][b:]])
            assert part.name == X[i][a:b]
            assert part.contribution == pytest.approx(float(np.subtract(*(scores[:, winner] - scores[:, other]))))
    assert hits >= 5


def test_windows_are_left_out_one_by_one(planted, model):
    """Each letter has the mean fall over the windows of three letters that cover it."""
    x = planted[0][3]
    found = explain(model, x)
    winner, other = (list(model.classes_).index(name) for name in found.title.split(", for ")[1].split(" against "))
    n = len(x)
    scores = model.decision_function([x] + [x[:i] + x[i + 3 :] for i in range(n - 2)])
    fall = -(np.diff(scores[:, [other, winner]])[1:, 0] - np.diff(scores[:, [other, winner]])[0, 0])
    expected = [np.mean([fall[i] for i in range(n - 2) if i <= j < i + 3]) for j in range(n)]
    np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-5, atol=1e-7)


def test_text_and_page_show_the_stretches(planted, model):
    found = explain(model, planted[0][0], top=2)
    text = found.to_text()
    assert "by how much the decision falls if a stretch of x is left out" in text
    assert text.splitlines()[4].startswith("a  ")
    assert any("aaaaa" in line for line in text.splitlines())
    assert "background:#" in found.to_html()
    assert "--kernel 'MinMax(Spectrum(3))'" in text


def test_objects_of_d2ke_are_named_for_what_they_are(planted, model):
    X, y, _ = planted
    found = explain(model, X[0], top=90)
    for part in found.parts[:5]:
        number, text = part.name.split("training object ")[1].split(" (near: ")[0], part.name.split("'")[1]
        assert X[int(number)] == text
        assert part.name.startswith(f"distance {sm.distances.Levenshtein()([X[0]], [text])[0, 0]:.3g} to training")
    near = [part for part in found.parts if "(near: " in part.name]
    winner = found.title.split(", for ")[1].split(" against ")[0]
    assert any(f"(near: {winner})" in part.name for part in near)
    drawn = sm.recipes.d2ke(sm.distances.Levenshtein(), 20, random_state=0).fit(X, y)
    assert " to random object (near: " in explain(drawn, X[0]).parts[0].name


def test_numbers_are_taken_back_into_their_units(planted):
    X, y, _ = planted
    targets = np.array([1000.0 * "abc".index(label) for label in y])
    d2ke = sm.D2KE(sm.distances.Levenshtein(), 40, random_state=0)
    model = make_pipeline(d2ke, TransformedTargetRegressor(Ridge(alpha=1e-3), transformer=StandardScaler()))
    model.fit(X, targets)
    found = explain(model, X[2])
    best = found.left_out.parts[0]
    a, b = int(best.in_x[0]), int(best.in_x[-1]) + 1
    whole, without = model.predict([X[2], X[2][:a] + X[2][b:]])
    assert best.contribution == pytest.approx(whole - without, rel=1e-4)
    assert found.left_out.of == "the prediction"


def test_models_of_strings_of_one_length_say_why_there_are_no_stretches():
    X = ["AACC", "AAGG", "CCAA", "GGAA"]
    hamming = sm.distances.FromFunction(lambda x, y: float(sum(a != b for a, b in zip(x, y, strict=True))))
    model = make_pipeline(sm.D2KE(hamming, 4, objects=X, random_state=0), Ridge()).fit(X, [0.0, 0.0, 1.0, 1.0])
    found = explain(model, X[0])
    assert found.left_out is None
    assert "stretches of x cannot be left out" in found.note


def test_models_with_stretches_and_short_strings_leave_nothing_out(planted, model):
    X, y, _ = planted
    assert explain(sm.KernelSVC(sm.kernels.Spectrum(k=2)).fit(X, y), X[0]).left_out is None
    assert explain(model, "ACD").left_out is None


def test_classes_are_explained_without_leaving_anything_out(planted, model, monkeypatch):
    from similia.explanations import _explain

    monkeypatch.setattr(_explain, "with_left_out", None)  # which fails if it is called
    assert set(explain_classes(model, planted[0], n_members=2)) == {*"abc"}
    with pytest.raises(TypeError, match="not callable"):
        explain(model, planted[0][0])


def _series(n_channels=1):
    """Random walks; those of class 1 have a bump at the times 20 to 31."""
    rng, X = np.random.default_rng(1), []
    for i in range(60):
        x = 0.1 * rng.normal(size=(60, n_channels)).cumsum(axis=0)
        x[20:32] += (i % 2) * 3 * np.sin(np.linspace(0, np.pi, 12))[:, None]
        X.append(x)
    return X


def _graphs():
    """Random graphs of 16 nodes; in those of class 1 the nodes 3 to 7 are a clique."""
    X = [nx.gnp_random_graph(16, 0.15, seed=i) for i in range(60)]
    for graph in X[1::2]:
        graph.add_edges_from((u, v) for u in range(3, 8) for v in range(3, u))
    return X


def _sets():
    """Normal points in the plane; in the sets of class 1 the points 4 and 5 are near (4, 4)."""
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(12, 2)) for _ in range(60)]
    for points in X[1::2]:
        points[4:6] = 4 + 0.1 * rng.normal(size=(2, 2))
    return X


def _flat(x, a, b):
    """Return a series with a straight line at the times a to b - 1."""
    line = np.array(x)
    for t in range(a, b):
        before, after = x[a - 1] if a else x[b], x[b] if b < len(x) else x[a - 1]
        line[t] = before + (after - before) * (t - a + 1) / (b - a + 1)
    return line


def _without_points(x, places):
    return np.array([point for i, point in enumerate(x) if i not in places])


def _without_nodes(graph, places):
    smaller = graph.copy()
    smaller.remove_nodes_from(places)
    return smaller


def _linear(embedding, *before):
    return make_pipeline(*before, embedding, StandardScaler(), LogisticRegression())


def _kinds():
    series, sets = MeanMapFeatures(200, random_state=0), MeanMapFeatures(400, random_state=0)
    dtw = sm.distances.DTW(window=0.1)
    two = (sm.D2KE(dtw, 40, objects=Representatives(), random_state=0), RidgeClassifier())
    stretch = lambda x, places: _flat(x, places[0], places[-1] + 1)  # noqa: E731
    return [
        pytest.param(make_pipeline(*two), _series(), {*range(20, 32)}, stretch, id="D2KE of series"),
        pytest.param(make_pipeline(*two), _series(2), {*range(20, 32)}, stretch, id="D2KE of two channels"),
        pytest.param(_linear(series, SeriesToSets(8)), _series(), {*range(20, 32)}, stretch, id="windows of series"),
        pytest.param(_linear(sets), _sets(), {4, 5}, _without_points, id="sets"),
        pytest.param(
            _linear(GraphletSampling(random_state=0)), _graphs(), {*range(3, 8)}, _without_nodes, id="graphlets"
        ),
    ]


@pytest.mark.parametrize(("model", "X", "planted", "without"), _kinds())
def test_what_was_planted_is_found_in_objects_of_each_kind(model, X, planted, without):
    model.fit(X, np.arange(len(X)) % 2)
    for x in (X[1], X[7]):
        parts = explain(model, x, top=3).left_out.parts
        found = set().union(*(part.in_x.tolist() for part in parts if len({*part.in_x.tolist()} & planted)))
        assert len(found & planted) >= 0.7 * len(planted)
        assert len(found - planted) <= len(planted)
        assert len({*parts[0].in_x.tolist()} & planted)
        for part in parts:
            value, rest = model.decision_function([x, without(x, part.in_x.tolist())])
            assert value > 0
            assert part.contribution == pytest.approx(value - rest, rel=1e-4, abs=1e-4)


def test_each_node_and_each_point_is_left_out_by_itself():
    for model, X, without in (
        (_linear(GraphletSampling(random_state=0)), _graphs(), _without_nodes),
        (_linear(MeanMapFeatures(random_state=0)), _sets(), _without_points),
    ):
        model.fit(X, np.arange(len(X)) % 2)
        amounts = explain(model, X[1]).left_out.amounts
        value, *rest = model.decision_function([X[1], *(without(X[1], [i]) for i in range(len(amounts)))])
        np.testing.assert_allclose(amounts, value - np.array(rest), rtol=1e-4, atol=1e-5)


def test_the_nodes_of_a_graph_are_left_out_where_a_set_of_points_stands_for_it():
    X, y = _graphs(), np.arange(60) % 2
    model = _linear(MeanMapFeatures(random_state=0), GraphToSets(degrees=True)).fit(X, y)
    found = explain(model, X[1])
    assert {*range(3, 8)} <= {place for part in found.left_out.parts for place in part.in_x.tolist()}
    value, rest = model.decision_function([X[1], _without_nodes(X[1], [3])])
    assert found.left_out.amounts[3] == pytest.approx(value - rest, rel=1e-4)
    page = found.to_html()
    assert page.count("<circle") == 16
    assert "if nodes of x are left out" in page
    assert "5 nodes" in found.to_text()


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.data())
def test_a_subgraph_keeps_the_rows_of_its_nodes_and_edges(seed, n, data):
    rng = np.random.default_rng(seed)
    gone = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))), dtype=np.int64)
    arcs = np.argwhere(rng.random((n, n)) < 0.4).T
    m = arcs.shape[1]
    side = {
        "node_labels": rng.integers(5, size=n), "node_attributes": rng.normal(size=(n, 2)),
        "node_details": rng.integers(5, size=n), "edge_labels": rng.integers(5, size=m),
        "edge_weights": rng.random(m),
    }  # fmt: skip
    graph = GraphBatch.from_arrays([0, n], arcs, **side)
    kept = [v for v in range(n) if v not in gone]
    inside = [k for k in range(m) if arcs[0, k] in kept and arcs[1, k] in kept]
    expected = GraphBatch.from_arrays(
        [0, len(kept)], np.array([[kept.index(v) for v in row] for row in arcs[:, inside]]),
        **{name: column[kept if name.startswith("node") else inside] for name, column in side.items()},
    )  # fmt: skip
    found = _left_out._without_nodes(graph, gone)
    found._check()
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)


def test_windows_of_large_objects_cover_each_place_and_hold_what_is_near():
    path = nx.relabel_nodes(nx.path_graph(500), dict(enumerate(np.random.default_rng(0).permutation(500).tolist())))
    graph = nx.Graph()
    graph.add_nodes_from(range(500))
    graph.add_edges_from(path.edges)
    points = np.random.default_rng(0).random((1000, 2))
    for view in (view_of(as_graphs([graph])), view_of(as_sets([points])), view_of(as_series([points]))):
        windows = _left_out._windows(view)
        assert len(windows) <= 82
        covered = np.bincount(np.concatenate(windows), minlength=view.n_places)
        assert covered.min() == 1
        assert covered.max() == 1 or view.kind == "series"
    for window in _left_out._windows(view_of(as_graphs([graph]))):
        assert nx.number_connected_components(graph.subgraph(window.tolist())) == 1
    spread = [np.ptp(points[window], axis=0).max() for window in _left_out._windows(view_of(as_sets([points])))]
    assert np.median(spread) < 0.3


def test_an_end_of_a_series_is_level():
    x = as_series([np.array([[5.0], [1.0], [2.0], [9.0], [7.0]])])
    assert _left_out.flattened(x, np.array([0, 1])).values.ravel().tolist() == [2, 2, 2, 9, 7]
    assert _left_out.flattened(x, np.array([3, 4])).values.ravel().tolist() == [5, 1, 2, 2, 2]
    assert _left_out.flattened(x, np.array([2, 3])).values.ravel().tolist() == [5, 1, 3, 5, 7]
    assert x.values.ravel().tolist() == [5, 1, 2, 9, 7]


def test_points_of_a_set_are_drawn_in_the_colours_of_what_they_add():
    X = _sets()
    found = explain(_linear(MeanMapFeatures(random_state=0)).fit(X, np.arange(60) % 2), X[1])
    ax = found.plot()
    plt.close(ax.figure)
    (drawn,) = ax.collections
    np.testing.assert_array_equal(drawn.get_offsets(), X[1])
    red, _, blue, _ = drawn.get_facecolors().T
    assert {*np.argsort(red - blue)[:2].tolist()} == {4, 5}


def _words():
    """Random strings; those of class 1 have six letters g in a row at the places 10 to 15."""
    rng = np.random.default_rng(3)
    X = ["".join(rng.choice(list("acgt"), 30)) for _ in range(60)]
    return [x[:10] + "gggggg" + x[16:] if i % 2 else x for i, x in enumerate(X)]


@pytest.mark.parametrize(
    ("encoder", "X", "without"),
    [
        (sm.codes.NGramEncoder(random_state=0), _words(), lambda x, gone: x[: gone[0]] + x[gone[-1] + 1 :]),
        (sm.codes.SequenceEncoder(random_state=0), _series(), lambda x, gone: _flat(x, gone[0], gone[-1] + 1)),
        (sm.codes.GraphHDEncoder(random_state=0), _graphs(), _without_nodes),
    ],
    ids=["strings", "series", "graphs"],
)
def test_models_without_any_parts_are_explained_by_places(encoder, X, without):
    y = np.arange(60) % 2
    for learner in (sm.HDClassifier(random_state=0), HistGradientBoostingRegressor(max_iter=20)):
        as_columns = FunctionTransformer(np.unpackbits, kw_args={"axis": 1})
        steps = [encoder] if isinstance(learner, sm.HDClassifier) else [encoder, as_columns]
        model = make_pipeline(*steps, learner).fit(X, y)
        found = explain(model, X[1], top=3)
        assert (found.parts, found.unexplained) == ([], found.value)
        assert "has no parts" in found.note
        decide = getattr(model, "decision_function", model.predict)
        sign = 1 if model.predict([X[1]])[0] > 0 else -1
        for part in found.left_out.parts:
            value, rest = np.ravel(decide([X[1], without(X[1], part.in_x.tolist())]))
            assert found.value == pytest.approx(sign * value, rel=1e-5)
            assert part.contribution == pytest.approx(sign * (value - rest), rel=1e-4, abs=1e-6)


def test_objects_predicted_a_few_at_a_time_are_judged_alike(planted, model, monkeypatch):
    x = planted[0][5]
    found = explain(model, x)
    monkeypatch.setattr(_left_out, "_AT_ONCE", 4 * len(x))
    few = explain(model, x)
    np.testing.assert_array_equal(few.left_out.amounts, found.left_out.amounts)
    assert [(part.name, part.contribution) for part in few.left_out.parts] == [
        (part.name, part.contribution) for part in found.left_out.parts
    ]


def test_one_vs_one_scores_are_not_those_of_classes(planted):
    X, y, _ = planted
    svc = SVC(decision_function_shape="ovo")
    model = make_pipeline(sm.D2KE(sm.distances.Levenshtein(), 16, random_state=0), svc).fit(X, y)
    for x in X[:3]:
        found = explain(model, x)
        assert found.left_out.of == "the decision"
        scores = np.sort(np.abs(model.decision_function([x])[0]))
        assert np.isclose(scores, abs(found.value)).any()


def test_detectors_of_outliers_make_no_decision_between_classes(planted):
    X = planted[0]
    for detector in (IsolationForest(n_estimators=5), OneClassSVM(), LocalOutlierFactor(novelty=True)):
        model = make_pipeline(sm.D2KE(sm.distances.Levenshtein(), 16, random_state=0), detector).fit(X)
        with pytest.raises(TypeError, match="has no coefficients"):
            explain(model, X[0])


def test_a_prediction_of_two_numbers_is_not_explained_by_its_first(planted):
    X = planted[0]
    trees = RegressorChain(HistGradientBoostingRegressor(max_iter=2))
    model = make_pipeline(sm.D2KE(sm.distances.Levenshtein(), 16, random_state=0), trees)
    model.fit(X, np.random.default_rng(0).normal(size=(len(X), 2)))
    with pytest.raises(ValueError, match="predicts 2 numbers, expected one"):
        explain(model, X[0])


def test_labels_that_are_no_rivals_are_refused(planted):
    X, y, _ = planted
    Y = np.column_stack([y == "a", y != "b"]).astype(int)
    strings = sm.KernelSVC(sm.kernels.Spectrum(2, normalize=True))
    features = make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(2)), LogisticRegression())
    for model in (OneVsRestClassifier(strings), MultiOutputClassifier(strings), MultiOutputClassifier(features)):
        with pytest.raises(
            ValueError, match=r"predicts several labels.*a model of one label, such as estimators_\[0\]"
        ):
            explain(model.fit(X, Y), X[0])
        assert explain(model.estimators_[0], X[0]).title.endswith(("for 1 against 0", "for 0 against 1"))
    for learner in (RidgeClassifier(), KNeighborsClassifier()):
        model = make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(2)), learner).fit(X, Y)
        with pytest.raises(
            ValueError, match=f"{type(learner).__name__} predicts several labels.*a model of one label$"
        ):
            explain(model, X[0])


RBF = sm.kernels.RBF(0.3)
TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=["height", "weight", "age", "dose"])
GROUPS = np.where(TABLE["age"] > 0, "old", "young")


def _falls(decide, x, means):
    """Return by how much a decision falls with the mean of each column in place of the number of x, one by one."""
    falls = []
    for k in range(len(x)):
        changed = x.copy()
        changed[k] = means[k]
        falls.append(float(decide(x[None])[0] - decide(changed[None])[0]))
    return falls


def _for_predicted(model, x):
    """Return the decision of a classifier of two classes for the class that it predicts for x, as a function."""
    sign = np.sign(model.decision_function(x[None])[0])
    return lambda X: sign * model.decision_function(X)


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (sm.KernelSVC(RBF), lambda model: model.support_objects_),
        (sm.KernelRidge(RBF), lambda model: model.objects_),
        (sm.GaussianProcessRegressor(RBF), lambda model: model.objects_),
        (make_pipeline(sm.Nystroem(RBF, 8, random_state=0), LogisticRegression()), lambda model: model[0].landmarks_),
        (make_pipeline(sm.Nystroem(RBF, 8, random_state=0), Ridge()), lambda model: model[0].landmarks_),
        (
            make_pipeline(sm.Nystroem(RBF, 8, random_state=0), HistGradientBoostingRegressor()),
            lambda model: model[0].landmarks_,
        ),
    ],
    ids=lambda one: type(one[-1] if hasattr(one, "steps") else one).__name__,
)
@pytest.mark.parametrize("as_row", [False, True])
def test_columns_are_replaced_by_the_means_of_the_training_objects_kept(model, kept, as_row):
    model.fit(TABLE, GROUPS if hasattr(model, "decision_function") else TABLE["age"] ** 2)
    x = TABLE.to_numpy()[7]
    found = explain(model, TABLE.iloc[7] if as_row else TABLE[7:8])
    decide = _for_predicted(model, x) if hasattr(model, "decision_function") else model.predict
    expected = _falls(decide, x, np.asarray(kept(model)).mean(axis=0))
    np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-5, atol=1e-7)
    told = {part.name: part.contribution for part in found.left_out.parts}
    assert told == pytest.approx({n: a for n, a in zip(TABLE.columns, expected, strict=True) if a}, rel=1e-5, abs=1e-7)
    assert [part.in_x.tolist() for part in found.left_out.parts] == [[list(TABLE).index(name)] for name in told]
    assert f"its mean over the {len(kept(model))} training objects that" in found.note


def test_columns_are_those_that_the_kernel_compares():
    """Means in units of the table, since a scaler comes first; the text and the page name the columns."""
    model = make_pipeline(StandardScaler(), sm.KernelSVC(RBF)).fit(TABLE.to_numpy() * [1, 10, 100, 1], GROUPS)
    x = TABLE.to_numpy()[9] * [1, 10, 100, 1]
    means = model[0].inverse_transform(model[1].support_objects_.mean(axis=0)[None])[0]
    found = explain(model, pd.Series(x, TABLE.columns))
    np.testing.assert_allclose(found.left_out.amounts, _falls(_for_predicted(model, x), x, means), atol=1e-9)
    assert found.left_out.parts[0].name == "age"
    text = found.to_text()
    assert "by how much the decision falls if the mean of a column replaces the value of x" in text
    assert "like training object no." in text
    assert "<code>age</code>" in found.to_html()
    plt.close(found.plot().figure)


def _apart(x, z):
    """Return the distance of two vectors in the feature space of RBF(0.3)."""
    return np.sqrt(2 - 2 * np.exp(-0.3 * np.square(x - z).sum()))


def _strangeness(detector, X, x):
    """Return how strange x is among the rows of X by RBF(0.3) and 5 neighbours; scikit-learn computes densities."""
    if detector.method == "neighbors":
        return sorted(_apart(x, z) for z in X)[4]
    if detector.method == "density":
        return -LocalOutlierFactor(5, metric=_apart, novelty=True).fit(X).score_samples(x[None])[0]
    Z = detector.objects_
    k, K = (np.array([[1 - _apart(a, z) ** 2 / 2 for z in Z] for a in A]) for A in (x[None], Z))
    return 1 - (k @ np.linalg.solve(K, k.T)).item()


@pytest.mark.parametrize("novelty", [False, True])
@pytest.mark.parametrize("method", ["neighbors", "density", "reconstruction"])
def test_columns_that_make_a_vector_an_outlier(method, novelty):
    X = TABLE.to_numpy()
    detector = sm.OutlierDetector(RBF, method, n_neighbors=5, n_components=20, novelty=novelty, random_state=0)
    detector.fit(TABLE)
    x = X[7] + [0, 0, 0, 2.5]
    means = np.asarray(detector.objects_).mean(axis=0)
    found = explain(detector, pd.Series(x, TABLE.columns))
    assert found.value == pytest.approx(_strangeness(detector, X, x), rel=1e-6)
    expected = _falls(lambda rows: [_strangeness(detector, X, rows[0])], x, means)
    np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-5, atol=1e-7)
    assert (found.kind, found.left_out.parts[0].name) == ("strangeness", "dose")
    assert found.title == f"strangeness of x by OutlierDetector(method={method!r})"
    assert f"an object whose strangeness is above {-detector.offset_:.3g} is an outlier" in found.note
    assert "by how much the strangeness falls if the mean of a column" in found.to_text()
    fitted = sm.Pipeline([("scaler", FunctionTransformer()), ("detector", detector)]).fit(X)
    np.testing.assert_allclose(explain(fitted, x).left_out.amounts, expected, rtol=1e-5, atol=1e-7)


def test_stretches_that_make_a_string_an_outlier():
    X = ["acgt" * 4 + "acgt"[:i] for i in range(4)] + ["cgta" * 4 + "cgta"[:i] for i in range(4)]
    kernel = sm.kernels.Spectrum(2, normalize=True)
    detector = sm.OutlierDetector(kernel, "reconstruction", n_components=4, novelty=True, random_state=0).fit(X)
    x = "acgtacgttttttacgtacgt"
    found = explain(detector, x)
    best = found.left_out.parts[0]
    a, b = int(best.in_x[0]), int(best.in_x[-1]) + 1
    whole, rest = -detector.score_samples([x, x[:a] + x[b:]])
    assert (found.value, best.contribution) == pytest.approx((whole, whole - rest))
    assert best.name in "gttttttacg"
    assert "ttt" in best.name


def test_points_that_make_a_set_an_outlier_are_orange():
    """What makes an object unlike the training objects has the colour that it has in explanations of distances."""
    X, odd = _sets()[::2], {2, 5, 7, 9}
    model = make_pipeline(MeanMapFeatures(random_state=0), sm.OutlierDetector(RBF, n_neighbors=3)).fit(X[1:])
    X[0][[*odd]] = 4.0
    found = explain(model, X[0])
    assert {*np.argsort(-found.left_out.amounts)[:4].tolist()} == odd
    ax = found.plot()
    plt.close(ax.figure)
    red, _, blue, _ = ax.collections[0].get_facecolors().T
    assert {*np.argsort(blue - red)[:4].tolist()} == odd


@pytest.mark.parametrize("mapping", ["sqrt", "projection"])
def test_columns_of_the_heat_kernel_are_proportions_or_coordinates_of_unit_vectors(mapping):
    X = np.random.default_rng(0).gamma(1.0, size=(60, 5)) * np.arange(1, 61)[:, None]
    y = np.where(X[:, 2] > X[:, 3], "a", "b")
    units = X / (X.sum(axis=1) if mapping == "sqrt" else np.linalg.norm(X, axis=1))[:, None]
    heat = sm.recipes.heat_svm(2.0, 1.0, mapping=mapping).fit(X, y)
    kernel = sm.KernelSVC(sm.kernels.HypersphericalHeat(contrast=2.0, mapping=mapping)).fit(X, y)
    for model in (heat, kernel):
        found = explain(model, X[4])
        expected = _falls(_for_predicted(model, units[4]), units[4], units[model.support_].mean(axis=0))
        np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-5, atol=1e-8)
        assert found.left_out.of == "the decision"


@pytest.mark.parametrize("mapping", ["sqrt", "projection"])
@pytest.mark.parametrize("learner", ["HeatSVC", "KernelSVC", "Nystroem"])
def test_columns_of_sparse_rows_are_those_that_are_not_0(learner, mapping):
    """The twin is fitted to dense rows."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 9)) * (rng.random((60, 9)) < 0.4)
    X[:, 8] = 1.0
    y = np.where(X[:, 2] > X[:, 3], "a", "b")
    x = next(row for row in X if row[2] and not row[:5].all())
    heat = sm.kernels.HypersphericalHeat(contrast=2.0, mapping=mapping)
    make = {
        "HeatSVC": lambda: sm.recipes.heat_svm(2.0, 1.0, mapping=mapping), "KernelSVC": lambda: sm.KernelSVC(heat),
        "Nystroem": lambda: make_pipeline(sm.Nystroem(heat, 12, random_state=0), LogisticRegression()),
    }[learner]  # fmt: skip
    model, twin = make().fit(sp.csr_array(X), y), make().fit(X, y)
    kept = twin[0].landmark_indices_ if learner == "Nystroem" else twin.support_
    sizes = X.sum(axis=1) if mapping == "sqrt" else np.linalg.norm(X, axis=1)
    unit = x / (x.sum() if mapping == "sqrt" else np.linalg.norm(x))
    falls = _falls(_for_predicted(twin, unit), unit, (X / sizes[:, None])[kept].mean(axis=0))
    for row in (sp.csr_array(x[None]), sp.csr_matrix(x[None])):
        found = explain(model, row)
        np.testing.assert_allclose(found.left_out.amounts, np.where(x, falls, 0.0), rtol=1e-5, atol=1e-8)
        assert {part.name for part in found.left_out.parts} == {f"column {k}" for k in np.flatnonzero(x)}
        assert "columns in which x is 0 are not left out" in found.note
    shared = explain_classes(model, sp.csr_array(X))
    assert shared["a"][0].name == "column 2"
    assert "column 3" in {part.name for part in shared["b"]}


def test_of_many_columns_of_a_sparse_row_those_far_from_the_mean_are_left_out():
    X = sp.random_array((30, 4000), density=0.05, rng=0, format="csr")
    model = sm.KernelRidge(sm.kernels.HypersphericalHeat(contrast=2.0, mapping="projection")).fit(X, np.arange(30.0))
    found, row = explain(model, X[[0]]), X[[0]].toarray()[0]
    units = X.toarray() / np.linalg.norm(X.toarray(), axis=1)[:, None]
    far = np.argsort(np.where(row, -np.abs(units[0] - units.mean(axis=0)), 0.0))[:120]
    assert {*np.flatnonzero(found.left_out.amounts)} == {*far}
    assert f"of {np.count_nonzero(row)} columns, only the 120 in which" in found.note


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("make", [lambda k: sm.KernelSVC(k), lambda k: sm.Nystroem(k, 8, random_state=0)])
def test_a_sum_with_a_kernel_without_columns_leaves_columns_out(make, frame):
    cosine = sm.kernels.Cosine()
    X = TABLE if frame else TABLE.to_numpy()
    first = make(sm.kernels.Sum([RBF, sm.kernels.Sum([cosine])]))
    model = (first if hasattr(first, "predict") else make_pipeline(first, LogisticRegression())).fit(X, GROUPS)
    kept = model.support_ if hasattr(model, "support_") else model[0].landmark_indices_
    x = TABLE.to_numpy()[3]
    found = explain(model, TABLE[3:4] if frame else x)
    expected = _falls(_for_predicted(model, x), x, TABLE.to_numpy()[kept].mean(axis=0))
    np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-6, atol=1e-9)
    assert found.left_out.parts[0].name == ("age" if frame else "column 2")
    assert any(part.name.startswith("Sum: Cosine: ") for part in found.parts)
    both = sm.kernels.Sum([cosine, sm.kernels.Normalized(cosine)])
    assert explain(sm.KernelSVC(both).fit(X, GROUPS), TABLE[3:4] if frame else x).left_out is None


@pytest.mark.parametrize("frame", [False, True])
def test_columns_of_vectors_that_a_function_of_the_user_compares(frame):
    """The twin compares by the built-in kernel."""
    own = sm.KernelSVC(sm.pairwise(lambda u, v: float(np.exp(-0.3 * np.square(np.subtract(u, v)).sum()))))
    X = TABLE if frame else TABLE.to_numpy()
    found = explain(own.fit(X, GROUPS), TABLE[3:4] if frame else X[3])
    twin = explain(sm.KernelSVC(RBF).fit(X, GROUPS), TABLE[3:4] if frame else X[3])
    np.testing.assert_allclose(found.left_out.amounts, twin.left_out.amounts, rtol=1e-6, atol=1e-9)
    assert [part.name for part in found.left_out.parts] == [part.name for part in twin.left_out.parts]


def test_a_column_that_is_the_same_everywhere_does_not_matter():
    X = np.zeros((40, 3))
    X[:, 1] = np.random.default_rng(0).normal(size=40)
    X[:, 2] = 0.1
    found = explain(sm.KernelSVC(RBF).fit(X, X[:, 1] > 0), X[0])
    assert [part.name for part in found.left_out.parts] == ["column 1"]


def test_of_many_columns_those_far_from_the_mean_are_left_out():
    X = np.random.default_rng(0).normal(size=(30, 150))
    model = sm.KernelRidge(sm.kernels.RBF(0.01)).fit(X, X[:, 0])
    found = explain(model, X[0])
    far = np.argsort(-np.abs(X[0] - X.mean(axis=0)))[:120]
    assert {*np.flatnonzero(found.left_out.amounts)} == {*far}
    assert "of 150 columns, only the 120 in which x differs most from the mean were left out" in found.note


@pytest.mark.parametrize(
    "model",
    [
        sm.KernelSVC(sm.kernels.Cosine()), LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(sm.Nystroem(sm.kernels.Cosine(), 8, random_state=0), LogisticRegression()),
    ],
    ids=str,
)  # fmt: skip
def test_models_with_parts_by_column_leave_no_columns_out(model):
    assert explain(model.fit(TABLE.to_numpy(), GROUPS), TABLE.to_numpy()[0]).left_out is None


def test_models_that_keep_no_vectors_say_that_they_have_no_parts():
    model = HistGradientBoostingRegressor().fit(TABLE.to_numpy(), TABLE["age"])
    with pytest.raises(TypeError, match="has no coefficients, so its decisions are not sums"):
        explain(model, TABLE.to_numpy()[0])
