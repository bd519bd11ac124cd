"""Predictions from convolutions and intervals of series, explained by time: sums, places, faithfulness, display."""

import re

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import Ridge, RidgeClassifierCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PowerTransformer, StandardScaler

import similia as sm
from explanations.test_explain_models import check_shown
from samples.explain import check_sums
from similia.embeddings import Hydra, SparseScaler
from similia.explanations import explain

ALPHAS = np.logspace(-3, 3, 10)


def means(X):
    """Features of a user: the mean and the deviation of each channel."""
    return np.array([np.concatenate([np.mean(x, axis=0), np.std(x, axis=0)]) for x in X])


def hydra():
    return make_pipeline(Hydra(4, random_state=0), SparseScaler())


def rockets(family="multirocket", n_features=1344):
    return make_pipeline(sm.RandomConvolutions(n_features, family, random_state=0), StandardScaler())


def union(*branches, **options):
    return FeatureUnion([(f"b{i}", branch) for i, branch in enumerate(branches)], **options)


def steps():
    """First steps of models, and whether all their columns are split by time."""
    own = FunctionTransformer(means)
    return {
        "minirocket": (rockets("minirocket", 840), True),
        "projected": (make_pipeline(sm.IntervalQuantiles(3), PCA(5, random_state=0)), True),
        "hydra": (hydra(), True),
        "hydra, not scaled": (Hydra(4, random_state=0), True),
        "quantiles": (sm.IntervalQuantiles(3), True),
        "as chosen": (union(rockets(), hydra()), True),
        "weighted": (union(rockets(), "drop", hydra(), transformer_weights={"b0": 0.5, "b1": 7.0, "b2": 2.0}), True),
        "scaled after": (make_pipeline(union(sm.IntervalQuantiles(3), hydra()), StandardScaler()), True),
        "in a union": (union(union(rockets()), sm.IntervalQuantiles(2)), True),
        "with own features": (union(own, rockets()), False),
        "not affine": (union(make_pipeline(sm.IntervalQuantiles(2), PowerTransformer()), rockets()), False),
    }


@pytest.fixture(scope="module")
def series():
    """Series of two channels and several lengths; classes 0, 1, 2 have 0, 1, 2 bumps in channel 1, from time 10 on."""
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    X = [rng.normal(size=(n, 2)) for n in rng.integers(30, 50, len(y))]
    for x, label in zip(X, y, strict=True):
        x[10 : 10 + 6 * label, 1] += 4
    return X, y


@pytest.mark.parametrize("task", ["two classes", "three classes", "numbers"])
@pytest.mark.parametrize("name", steps())
@pytest.mark.filterwarnings("ignore:.*overflow")
def test_shares_of_times_are_the_decision(series, name, task):
    X, y = series
    first, whole = steps()[name]
    y = y > 0 if task == "two classes" else y
    model = make_pipeline(first, Ridge() if task == "numbers" else RidgeClassifierCV(ALPHAS)).fit(X, y)
    for x in X[:3]:
        found = explain(model, x, top=5)
        check_sums(found, rounding=1e-6)
        if task == "numbers":
            assert found.value == pytest.approx(float(model.predict([x])[0]), rel=1e-6)
        else:
            scores = np.sort(np.ravel(model.decision_function([x])))
            lead = abs(scores[0]) if task == "two classes" else scores[-1] - scores[-2]
            assert found.value == pytest.approx(float(lead), rel=1e-6)
        assert found.shares_x.shape == x.shape
        constant = sum(part.contribution for part in found.parts if part.name == "intercept")
        if whole:
            scale = max(1.0, abs(found.value), abs(constant))
            assert found.shares_x.sum() + constant == pytest.approx(found.value, abs=1e-6 * scale)


def test_columns_are_split_relative_to_their_means_in_training(series):
    """The intercept is that of the learner: what the scalers subtract has its time, too."""
    X, y = series
    for name in ("minirocket", "hydra", "as chosen", "weighted"):
        model = make_pipeline(steps()[name][0], RidgeClassifierCV(ALPHAS)).fit(X, y > 0)
        found = explain(model, X[1])
        assert found.parts[-1].contribution == pytest.approx(float(model[-1].intercept_[0]), rel=1e-5), name


def test_factors_that_a_scaler_takes_back_change_nothing(series):
    X, y = series
    branches = sm.IntervalQuantiles(3), sm.RandomConvolutions(840, random_state=0)
    found = []
    for factors in (None, {"b0": 4.0, "b1": 0.5}):
        first = make_pipeline(union(*branches, transformer_weights=factors), StandardScaler())
        found.append(explain(make_pipeline(first, RidgeClassifierCV(ALPHAS)).fit(X, y), X[1]).shares_x)
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize("forest", [ExtraTreesClassifier, ExtraTreesRegressor])
@pytest.mark.parametrize(
    "first",
    [sm.IntervalQuantiles(3), sm.RandomConvolutions(840, random_state=0), union(hydra(), sm.IntervalQuantiles(2))],
    ids=["quantiles", "convolutions", "union"],
)
def test_amounts_of_trees_are_split_by_time(series, first, forest):
    X, y = series
    model = make_pipeline(first, MinMaxScaler(), forest(20, random_state=0)).fit(X, y)
    for x in X[:3]:
        found = explain(model, x)
        check_sums(found, rounding=1e-6)
        constant = sum(part.contribution for part in found.parts if part.name == "intercept")
        assert found.shares_x.shape == x.shape
        assert found.shares_x.sum() + constant == pytest.approx(found.value, abs=1e-6)


def test_parts_are_stretches_of_one_channel(series):
    X, y = series
    model = make_pipeline(rockets(), RidgeClassifierCV(ALPHAS)).fit(X, y)
    found = explain(model, X[1], top=10**6)
    covered = np.zeros(X[1].shape, int)
    for part in found.parts[:-1]:
        channel, first, last = re.match(r"channel (\d), time (\d+)(?:-(\d+))?, value", part.name).groups()
        np.testing.assert_array_equal(part.in_x, np.arange(int(first), int(last or first) + 1))
        shares = found.shares_x[part.in_x, int(channel)]
        assert part.contribution == pytest.approx(shares.sum())
        strong = np.abs(shares) > np.abs(found.shares_x).mean()
        assert len(np.unique(np.sign(shares))) == len(np.unique(strong)) == 1
        covered[part.in_x, int(channel)] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("name", ["minirocket", "hydra", "quantiles", "as chosen"])
def test_the_evidence_is_where_classes_differ(name):
    """Noise and, in class 1, a bump at a place of its own in channel 1: there lies the largest part of the evidence."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 80, 2)), np.arange(60) % 2
    starts = np.full(60, 30)
    if name != "quantiles":  # which know intervals, not shapes
        starts = rng.integers(5, 60, 60)
    for x, label, start in zip(X, y, starts, strict=True):
        x[start : start + 12, 1] += 5 * label * np.hanning(12)
    trees = ExtraTreesClassifier(100, random_state=0)
    first = {"hydra": make_pipeline(Hydra(random_state=0), SparseScaler())}.get(name, steps()[name][0])
    model = make_pipeline(first, trees if name == "quantiles" else RidgeClassifierCV(ALPHAS)).fit(list(X[:40]), y[:40])
    inside = []
    for x, start in zip(X[41::2], starts[41::2], strict=True):
        shares = explain(model, x).shares_x
        inside.append(shares[start : start + 12, 1].sum() / shares.sum())
    assert np.median(inside) > 2.5 * 12 / 160  # more than twice what evidence without a place would have there


def erased(x, start, stop):
    """The series with a straight line in place of some points."""
    x = x.copy()
    x[start:stop] = np.linspace(x[max(start - 1, 0)], x[min(stop, len(x) - 1)], stop - start)
    return x


@pytest.mark.parametrize("name", ["ridge", "trees"])
def test_to_erase_the_strongest_stretch_changes_more_than_to_erase_another(data_folder, name):
    train = sm.datasets.fetch("coffee", subset="train")
    test = sm.datasets.fetch("coffee", subset="test")
    if name == "ridge":
        both = union(rockets(n_features=10_000), make_pipeline(Hydra(random_state=0), SparseScaler()))
        model = make_pipeline(both, RidgeClassifierCV(ALPHAS))
    else:
        trees = ExtraTreesClassifier(200, criterion="entropy", max_features=0.1, random_state=0)
        model = make_pipeline(sm.IntervalQuantiles(), trees)
    model.fit(train.data, train.target)
    rng = np.random.default_rng(0)
    width, changes = 36, []
    for i in range(len(test.data)):
        x = test.data[i]
        strongest = int(np.convolve(np.abs(explain(model, x).shares_x), np.ones(width), "valid").argmax())
        others = rng.integers(len(x) - width, size=5)
        erasures = [erased(x, start, start + width) for start in (strongest, *others)]
        score = model.decision_function if name == "ridge" else model.predict_proba
        scores = np.reshape(score([x, *erasures]), (7, -1))[:, 0]
        differences = np.abs(scores[1:] - scores[0])
        changes.append((differences[0], differences[1:].mean()))
    strongest, other = np.mean(changes, axis=0)
    assert strongest > 1.5 * other


def test_series_are_shown_with_their_evidence(series, tmp_path):
    X, y = series
    two = make_pipeline(rockets(), RidgeClassifierCV(ALPHAS)).fit(X, y)
    found = explain(two, X[1])
    check_shown(found)
    text, html = found.to_text().splitlines(), found.to_html()
    assert [line[:9] for line in text if line.startswith("x[")] == ["x[:, 0]  ", "x[:, 1]  "]
    assert max(map(len, text[:-1])) <= 100
    assert html.count("<rect") == found.shares_x.size
    assert html.count("<polyline") == 2

    one = make_pipeline(rockets("minirocket", 840), Ridge()).fit([x[:, :1] for x in X], y)
    met = set()
    for x in (x[:, 0] for x in X[:9]):
        found = explain(one, x)
        check_shown(found, draw=False)
        row = next(i for i, line in enumerate(found.to_text().splitlines()) if line.startswith("x  "))
        bars, signs = (line[9:] for line in found.to_text().splitlines()[row : row + 2])
        strong = np.abs(found.shares_x).mean()
        expected = np.where(found.shares_x > strong, "+", np.where(found.shares_x < -strong, "-", " "))
        assert signs == "".join(expected).rstrip()
        assert bars[int(np.argmax(x))] == "█"
        assert len(bars) == len(x)
        met |= {(share > 0, abs(share) > strong) for share in found.shares_x.tolist()}
    assert len(met) == 4  # for and against, strong and weak
    long = explain(one, np.sin(np.arange(5000) / 50))
    check_shown(long)
    assert long.to_html().count("<rect") <= 340


def test_a_long_flat_or_short_series_can_be_explained(series):
    X, y = series
    for first in (rockets(), hydra(), sm.IntervalQuantiles(3)):
        model = make_pipeline(first, RidgeClassifierCV(ALPHAS)).fit(X, y)
        for x in (np.zeros((1, 2)), np.ones((2, 2)), np.full((700, 2), 3.0)):
            found = explain(model, sm.objects.as_series([x]))
            check_sums(found, rounding=1e-6)
            check_shown(found, draw=False)


def test_a_note_says_that_a_series_has_another_length_than_in_training(tmp_path):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=n) for n in (30, 35, 40, 31, 33, 37, 40, 30)], np.arange(8) % 2
    alignment, chosen = sm.kernels.GlobalAlignment(), sm.embeddings.Representatives()
    expected = "x has 3 time points; the {} have 30 to 40"
    models = [
        (make_pipeline(sm.RandomConvolutions(84, random_state=0), RidgeClassifierCV(ALPHAS)), "training series"),
        (make_pipeline(union("drop", Hydra(2, random_state=0)), RidgeClassifierCV(ALPHAS)), "training series"),
        (make_pipeline(sm.IntervalQuantiles(2), RidgeClassifierCV(ALPHAS)), "training series"),
        (sm.KNeighborsClassifier(sm.distances.DTW(), 1), "training series"),
        (sm.KernelSVC(alignment), "support series"),
        (sm.KernelRidge(alignment), "training series"),
        (make_pipeline(sm.Nystroem(alignment, 8), RidgeClassifierCV(ALPHAS)), "landmarks"),
        (make_pipeline(sm.D2KE(sm.distances.DTW(), 8, chosen), RidgeClassifierCV(ALPHAS)), "representatives"),
    ]
    for model, known in models:
        model.fit(X, y)
        found = explain(model, np.arange(3.0))
        for shown in (found.note, found.to_text(), found.to_html()):
            assert expected.format(known) in shown, known
        assert "time points; the" not in explain(model, X[1]).note
    loaded = sm.load(sm.save(models[0][0], tmp_path / "m.similia"))
    assert explain(loaded, np.arange(3.0)).note == explain(models[0][0], np.arange(3.0)).note
    del loaded[0].length_range_  # as in a file of an earlier version
    assert "time points; the" not in explain(sm.load(sm.save(loaded, tmp_path / "m.similia")), np.arange(3.0)).note
    drawn = make_pipeline(sm.D2KE(sm.distances.DTW(), 8, random_state=0), RidgeClassifierCV(ALPHAS)).fit(X, y)
    assert drawn[0].random_objects_[0].shape != X[0].shape  # random objects are short on purpose
    assert "time points; the" not in explain(drawn, X[0]).note
    equal = make_pipeline(sm.IntervalQuantiles(2), RidgeClassifierCV(ALPHAS)).fit([x[:30] for x in X], y)
    assert "x has 40 time points; the training series have 30;" in explain(equal, X[2]).note


def test_a_batch_of_one_is_explained_as_its_series(series):
    X, y = series
    model = make_pipeline(rockets(), RidgeClassifierCV(ALPHAS)).fit(X, y)
    batch = sm.objects.as_series(X)
    alone, given = explain(model, batch[4:5]), explain(model, X[4])
    np.testing.assert_array_equal(alone.shares_x, given.shares_x)
    with pytest.raises(ValueError, match="x is a batch of 36 objects, expected one object"):
        explain(model, batch)


def test_unions_of_other_features_keep_their_parts():
    words = ("GA", "AT", "TT", "TA", "AC", "CA")
    X, y = ["GATTACA", "ATTA", "CCGCGG", "GCGC", "TATA", "GGCC"], [0, 0, 1, 1, 0, 1]
    spectrum = sm.KernelFeatures(sm.kernels.Spectrum(k=2), 64)
    lengths = FunctionTransformer(lambda X: np.array([[len(x)] for x in X]), feature_names_out=lambda *_: ["length"])
    model = make_pipeline(union(spectrum, lengths), RidgeClassifierCV(ALPHAS)).fit(X, y)
    found = explain(model, X[0], top=20)
    check_sums(found)
    names = [part.name for part in found.parts]
    assert "b1: length = 7" in names
    assert {name for name in names if name.startswith("b0: ")} == {f"b0: {word}" for word in words}
    assert found.title.startswith("decision of KernelFeatures + FunctionTransformer and RidgeClassifierCV")


def test_the_command_and_the_report_show_times(series, tmp_path, capsys):
    from similia.cli import explain as command

    X, y = series
    X = [x[:30, 1] for x in X]
    model = make_pipeline(union(rockets(), hydra()), RidgeClassifierCV(ALPHAS)).fit(X, y)
    path, data = sm.save(model, tmp_path / "model.similia"), tmp_path / "data.csv"
    data.write_text(
        ",".join(map(str, range(30))) + "\n" + "\n".join(",".join(map(repr, x.tolist())) for x in X[:4]) + "\n"
    )
    command.explain(path, str(data), {"series": True}, one="1", top=3)
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == f"predicted: {model.predict(X[1:2])[0]}"
    assert shown.splitlines()[1].startswith(
        "decision of RandomConvolutions + Hydra and RidgeClassifierCV, for 1 against"
    )
    assert shown.partition("\n")[2] == explain(model, X[1], top=3).to_text() + "\n"
    page = sm.report.write_report(model, X, y, tmp_path / "r.html", unseen=True).read_text()
    assert page.count("Why this is predicted") == 6
    assert page.count("aria-label='series'") == 6
    assert "Why the first is" not in page
