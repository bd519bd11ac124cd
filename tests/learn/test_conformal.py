"""Conformal sets and intervals: by definition, their coverage exactly and on many splits, MAPIE's values, errors."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as VectorSVC
from sklearn.svm import LinearSVC

import similia as sm
from naive.conformal import interval, p_value, strangeness
from similia.pipelines import parts_of

COVERAGES = (0.5, 0.8, 0.9)
STRINGS = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC", "TATTAG", "GGCC", "ACATTA", "CGGCG"] * 4
LABELS = np.array(["at", "at", "cg", "cg", "at", "cg", "at", "cg", "at", "cg"] * 4)
SPECTRUM = sm.kernels.Spectrum(k=2, normalize=True)
SVC = sm.KernelSVC(SPECTRUM)
RIDGE = sm.KernelRidge(SPECTRUM, alpha=0.1)


class Noted(ClassifierMixin, BaseEstimator):
    """A classifier of whole numbers that notes which it has seen; its values depend on the object and on these."""

    def __init__(self, probabilities=True, coarse=False):
        self.probabilities = probabilities
        self.coarse = coarse

    def fit(self, X, y):
        self.seen_, self.classes_ = sorted(X), np.unique(y)
        return self

    def _values(self, X):
        found = []
        for x in X:
            random = np.random.default_rng([int(x), len(self.seen_), sum(self.seen_)])
            values = random.integers(1, 4, len(self.classes_)) if self.coarse else random.random(len(self.classes_))
            found.append(values / values.sum() if self.probabilities else values - 0.5)
        return np.array(found)

    def predict(self, X):
        return self.classes_[self._values(X).argmax(axis=1)]

    def __getattr__(self, name):
        if name == ("predict_proba" if vars(self).get("probabilities", True) else "decision_function"):
            return self._values
        raise AttributeError(name)


class Fickle(Noted):
    """As `Noted`, but what it has seen decides whether it has probabilities or decision values."""

    def fit(self, X, y):
        self.probabilities = bool(sum(X) % 2)
        return super().fit(X, y)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose objects are the probabilities that it gives them."""

    def fit(self, X, y):
        self.classes_ = np.arange(np.shape(X)[1])
        return self

    def predict(self, X):
        return np.argmax(X, axis=1)

    def predict_proba(self, X):
        return np.asarray(X, dtype=float)


class Mute:
    """A classifier that gives labels only, and has no tags of scikit-learn."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Centred(RegressorMixin, BaseEstimator):
    """A regressor that learns nothing, whose objects are pairs: prediction, standard deviation."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X, return_std=False):
        X = np.asarray(X, dtype=float)
        return (X[:, 0], X[:, 1]) if return_std else X[:, 0]


class Proportional(RegressorMixin, BaseEstimator):
    """Least squares in one variable, without an intercept."""

    def fit(self, X, y):
        self.slope_ = X[:, 0] @ y / (X[:, 0] @ X[:, 0] + 0.1)
        return self

    def predict(self, X):
        return X[:, 0] * self.slope_


def frozen(model, *data):
    return FrozenEstimator(model.fit(*data))


# ---- by definition


@pytest.mark.parametrize("coarse", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("by_class", [False, True], ids=["all", "by class"])
@pytest.mark.parametrize("score", ["lac", "margin", "aps", "margin of decisions", "margin of either"])
@pytest.mark.parametrize("method", ["split", "cross"])
def test_p_values_and_sets_are_those_of_the_definition(method, score, by_class, coarse):
    X, y = np.arange(60), np.random.default_rng(0).permutation(np.repeat([3, 5, 7], [35, 20, 5]))
    base = (Fickle if score == "margin of either" else Noted)(score != "margin of decisions", coarse)
    model = sm.ConformalClassifier(base, method, score.split()[0], by_class=by_class, cv=4, random_state=1).fit(X, y)
    judges = model.fold_estimators_ or [model.estimator_]
    if score == "margin of either" and method == "cross":
        assert (model.values_, len({judge.probabilities for judge in judges})) == ("either", 2)

    def score_of(judge, x, label):
        values = judge._values([x])[0].astype(np.float32).astype(float)
        k = list(judge.classes_).index(label)
        return strangeness(values.tolist(), k, model.conformity_score_, model.turns_.tolist())

    calibration = [(judge, score_of(judge, x, y[x]), y[x]) for judge in judges for x in X if x not in judge.seen_]
    assert len(calibration) == (60 if method == "cross" else 15)
    new = np.arange(100, 112)
    expected = [
        [p_value(lambda m, x=x, c=c: score_of(m, x, c), c, calibration, by_class) for c in (3, 5, 7)] for x in new
    ]
    np.testing.assert_allclose(model.p_values(new), np.array(expected, dtype=float), rtol=1e-14)
    for coverage in COVERAGES:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*classes have fewer than")
            sets = model.predict_set(new, coverage)
        assert sets.tolist() == [[p > 1 - Fraction(str(coverage)) for p in row] for row in expected]
    assert (np.sort(model.calibration_scores_) == np.sort([s for _, s, _ in calibration])).all() or score == "aps"


@pytest.mark.parametrize("score", ["absolute", "normalized"])
@pytest.mark.parametrize(("method", "cv"), [("split", 5), ("cross", 4), ("cross", "loo")])
def test_intervals_are_those_of_the_definition(method, cv, score):
    rng = np.random.default_rng(0)
    X = np.arange(30.0)[:, None] + rng.normal(size=(30, 1)) / 9
    y = np.sin(X[:, 0] / 3) + rng.normal(size=30) / 5
    base = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None)
    model = sm.ConformalRegressor(base, method, score, calibration_size=0.5, cv=cv, random_state=0).fit(X, y)
    judges = model.fold_estimators_ or [model.estimator_]
    assert len(judges) == {"split": 1, "cross": 30 if cv == "loo" else 4}[method]

    def predicted(judge, x):
        center, std = judge.predict(x[None], return_std=True)
        return center[0], std[0] if score == "normalized" else 1.0

    calibration = [
        (judge, abs(target - predicted(judge, x)[0]) / predicted(judge, x)[1])
        for judge in judges
        for x, target in zip(X, y, strict=True)
        if x[0] not in judge.X_train_
    ]
    assert len(calibration) == (15 if method == "split" else 30)
    for coverage in COVERAGES:
        found = model.predict_interval(X[:6] + 0.4, coverage)
        for x, ends in zip(X[:6] + 0.4, found, strict=True):
            pairs = [(*predicted(judge, x), r) for judge, r in calibration]
            expected = interval([(c - s * r, c + s * r) for c, s, r in pairs], coverage)
            np.testing.assert_allclose(ends, expected, rtol=1e-12, atol=1e-12)


def test_one_model_and_blocks_of_objects_give_the_same_intervals():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = sm.ConformalRegressor(Ridge(), "cross", random_state=0).fit(X, y)
    whole = model.predict_interval(X)
    with sm.config(max_memory="16KiB"):
        np.testing.assert_array_equal(model.predict_interval(X), whole)


# ---- coverage

PROBABILITIES = st.lists(st.integers(1, 8), min_size=3, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(PROBABILITIES, st.integers(0, 2)), min_size=6, max_size=14),
    st.sampled_from([0.5, 0.7, 0.8]),
    st.sampled_from(["lac", "margin", "aps"]),
)
def test_each_of_n_plus_one_objects_left_out_coverage_is_exact(rows, coverage, score):
    """The theorem without chance: of n + 1 objects, ceil((n + 1) c) or more are in their sets by the n others."""
    X = np.array([row for row, _ in rows], dtype=float)
    X, y = X / X.sum(axis=1, keepdims=True), np.array([label for _, label in rows])
    covered = 0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        model = sm.ConformalClassifier(frozen(Given(), X, y), conformity_score=score, random_state=0)
        covered += model.fit(X[rest], y[rest]).predict_set(X[[i]], coverage)[0, y[i]]
    scores = [
        strangeness(row.astype(np.float32).astype(float).tolist(), label, score, model.turns_.tolist())
        for row, label in zip(X, y, strict=True)
    ]
    needed = -int(-Fraction(str(coverage)) * len(y) // 1)
    assert covered >= needed
    if score != "aps" and len(set(scores)) == len(y):
        assert covered == needed


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=5, max_size=9, unique=True),
    st.sampled_from([0.5, 0.6, 0.75]),
)
def test_each_of_n_plus_one_objects_left_out_jackknife_plus_misses_few(points, coverage):
    """Theorem 1 of Barber et al. without chance: fewer than 2 (1 - c) (n + 1) of n + 1 points are missed."""
    X, y = np.array([[x] for x, _ in points], dtype=float), np.array([float(y) for _, y in points])
    missed = 0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        model = sm.ConformalRegressor(Proportional(), "cross", cv="loo").fit(X[rest], y[rest])
        low, high = model.predict_interval(X[[i]], coverage)[0]
        missed += not low - 1e-9 <= y[i] <= high + 1e-9
    assert missed < 2 * (1 - coverage) * len(y)


def draw(rng, n):
    """Return n points of three classes, 60, 30 and 10 % of them, that overlap."""
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[y], y


@pytest.mark.parametrize("score", ["lac", "margin", "aps"])
def test_the_coverage_of_split_sets_over_200_splits(score):
    rng = np.random.default_rng(0)
    learner = frozen(LogisticRegression(), *draw(rng, 300))
    model = sm.ConformalClassifier(learner, conformity_score=score, random_state=0)
    X, y = draw(rng, 200 * 100)
    hits = []
    for part in np.split(np.arange(len(y)), 200):  # of 99 calibration objects, the 90th score: nine tenths exactly
        sets = model.fit(X[part[:99]], y[part[:99]]).predict_set(X[part[99:]], 0.9)
        hits.append(bool(sets[0, y[part[99]]]))
    assert binomtest(sum(hits), len(hits), 0.9).pvalue > 0.001
    shares = []
    for part in np.split(rng.permutation(len(y)), 200):
        model.fit(X[part[:50]], y[part[:50]])
        shares.append(model.predict_set(X[part[50:]], 0.9)[np.arange(50), y[part[50:]]].mean())
    error = np.std(shares) / np.sqrt(len(shares))  # of 50 calibration objects, the 46th score: 46 / 51
    assert abs(np.mean(shares) - 46 / 51) < 4 * error < 0.02


def test_coverage_by_class_holds_where_that_of_all_does_not():
    rng = np.random.default_rng(1)
    learner = frozen(LogisticRegression(), *draw(rng, 300))
    shares = {False: [], True: []}
    for _ in range(200):
        X, y = draw(rng, 400)
        for by_class, found in shares.items():
            model = sm.ConformalClassifier(learner, by_class=by_class).fit(X[:300], y[:300])
            sets = model.predict_set(X[300:], 0.9)[np.arange(100), y[300:]]
            found.append([sets[y[300:] == c].mean() for c in range(3)])
    assert (np.mean(shares[True], axis=0) > 0.89).all()
    assert np.mean(shares[False], axis=0)[2] < 0.8


@pytest.mark.parametrize(("method", "cv"), [("split", 5), ("cross", 5), ("cross", "loo")])
def test_the_coverage_of_intervals_over_200_splits(method, cv):
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(200):
        X = rng.normal(size=(59, 1))
        y = 2 * X[:, 0] + rng.standard_t(3, size=59)
        model = sm.ConformalRegressor(Proportional(), method, cv=cv, calibration_size=19 / 39, random_state=0)
        ends = model.fit(X[:39], y[:39]).predict_interval(X[39:], 0.9)
        hits.append(((ends[:, 0] <= y[39:]) & (y[39:] <= ends[:, 1])).mean())
    error = np.std(hits) / np.sqrt(len(hits))
    assert np.mean(hits) > 0.89 - 2 * error
    if method == "split":  # of 19 calibration objects, the 18th score: nine tenths exactly
        assert abs(np.mean(hits) - 0.9) < 4 * error < 0.03


def test_normalised_intervals_are_wide_where_the_model_is_unsure():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=400), np.repeat([0.1, 1.0], 200)])
    y = X[:, 0] + X[:, 1] * rng.normal(size=400)
    widths = {}
    for score in ("absolute", "normalized"):
        model = sm.ConformalRegressor(frozen(Centred(), X, y), conformity_score=score).fit(X[::2], y[::2])
        ends = model.predict_interval(X[1::2])
        widths[score] = np.ptp(ends, axis=1)
        assert ((ends[:, 0] <= y[1::2]) & (y[1::2] <= ends[:, 1])).mean() > 0.85
    np.testing.assert_allclose(widths["absolute"], widths["absolute"][0])
    np.testing.assert_allclose(widths["normalized"][-1], 10 * widths["normalized"][0])


# ---- another library


@pytest.mark.ecosystem
def test_sets_and_intervals_are_those_of_mapie():
    pytest.importorskip("mapie", reason="MAPIE is not installed")
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
    from mapie.regression import CrossConformalRegressor, SplitConformalRegressor
    from sklearn.model_selection import LeaveOneOut

    rng = np.random.default_rng(4)
    X, y = draw(rng, 340)
    model = LogisticRegression().fit(X[:100], y[:100])
    theirs = SplitConformalClassifier(model, confidence_level=[0.8, 0.9], prefit=True).conformalize(
        X[100:200], y[100:200]
    )
    ours = sm.ConformalClassifier(FrozenEstimator(model)).fit(X[100:200], y[100:200])
    sets = theirs.predict_set(X[200:])[1]
    for i, coverage in enumerate((0.8, 0.9)):
        np.testing.assert_array_equal(ours.predict_set(X[200:], coverage), sets[:, :, i])
    numbers = X @ [1.0, 2.0] + rng.normal(size=len(X))
    regressor = Ridge().fit(X[:100], numbers[:100])
    theirs = SplitConformalRegressor(regressor, confidence_level=0.9, prefit=True)
    expected = theirs.conformalize(X[100:200], numbers[100:200]).predict_interval(X[200:])[1][..., 0]
    ours = sm.ConformalRegressor(FrozenEstimator(regressor)).fit(X[100:200], numbers[100:200])
    np.testing.assert_allclose(ours.predict_interval(X[200:]), expected)
    theirs = CrossConformalRegressor(Ridge(), confidence_level=0.9, cv=LeaveOneOut(), method="plus")
    expected = theirs.fit_conformalize(X[:40], numbers[:40]).predict_interval(X[200:])[1][..., 0]
    ours = sm.ConformalRegressor(Ridge(), "cross", cv="loo").fit(X[:40], numbers[:40])
    np.testing.assert_allclose(ours.predict_interval(X[200:]), expected)
    theirs = CrossConformalClassifier(LogisticRegression(), confidence_level=0.9, cv=LeaveOneOut())
    expected = theirs.fit_conformalize(X[:60], y[:60]).predict_set(X[200:], agg_scores="crossval")[1][..., 0]
    ours = sm.ConformalClassifier(LogisticRegression(), "cross", cv="loo").fit(X[:60], y[:60])
    np.testing.assert_array_equal(ours.predict_set(X[200:]), expected)


@pytest.mark.ecosystem
def test_with_the_same_folds_cross_is_that_of_mapie():
    pytest.importorskip("mapie", reason="MAPIE is not installed")
    from mapie.classification import CrossConformalClassifier
    from mapie.regression import CrossConformalRegressor
    from sklearn.model_selection import PredefinedSplit

    def folds(strata):  # those of random_state=5: objects in random order within each class are dealt out in turn
        dealt = np.empty(len(strata), int)
        dealt[np.lexsort((np.random.default_rng(5).random(len(strata)), strata))] = np.arange(len(strata)) % 5
        return PredefinedSplit(dealt)

    rng = np.random.default_rng(6)
    X, y = draw(rng, 300)
    # MAPIE 1.6 wants (n - 1) / 10 objects as strange, not more than (n + 1) / 10 - 1: the same for 150, not for 155
    theirs = CrossConformalClassifier(LogisticRegression(), confidence_level=0.9, cv=folds(y[:150]))
    expected = theirs.fit_conformalize(X[:150], y[:150]).predict_set(X[150:], agg_scores="crossval")[1][..., 0]
    ours = sm.ConformalClassifier(LogisticRegression(), "cross", random_state=5).fit(X[:150], y[:150])
    np.testing.assert_array_equal(ours.predict_set(X[150:]), expected)
    numbers = X @ [1.0, 2.0] + rng.normal(size=len(X))
    theirs = CrossConformalRegressor(Ridge(), confidence_level=0.9, cv=folds(np.zeros(150)), method="plus")
    expected = theirs.fit_conformalize(X[:150], numbers[:150]).predict_interval(X[150:])[1][..., 0]
    ours = sm.ConformalRegressor(Ridge(), "cross", random_state=5).fit(X[:150], numbers[:150])
    np.testing.assert_allclose(ours.predict_interval(X[150:]), expected)


# ---- objects, files, other tools


@pytest.mark.parametrize("score", ["lac", "margin", "aps"])
def test_a_set_depends_on_its_own_object_only(score):
    model = make_pipeline(sm.KernelFeatures(SPECTRUM, 64), LogisticRegression())
    model = sm.ConformalClassifier(sm.Pipeline(model.steps), "cross", score, random_state=0).fit(STRINGS, LABELS)
    new = ["GATTGC", "CGCGAT", "TTTT", "ACGC", "GCAT"]
    whole, values = model.predict_set(new, 0.8), model.p_values(new)
    for i in range(len(new)):
        np.testing.assert_array_equal(model.predict_set(new[i : i + 1], 0.8)[0], whole[i])
        np.testing.assert_array_equal(model.p_values(new[i:][::-1])[-1], values[i])


def test_the_random_part_of_aps_fills_its_range():
    X = np.random.default_rng(0).dirichlet([1, 1, 1], 500)
    model = sm.ConformalClassifier(frozen(Given(), X, X[:, 0]), conformity_score="aps", random_state=0)
    scores = model.fit(X, np.arange(500) % 3)._strangeness(model.estimator_, X)
    first = np.take_along_axis(scores, X.argmax(axis=1)[:, None], axis=1)[:, 0] / X.max(axis=1)
    counts = np.histogram(first, 10, (0, 1))[0]
    assert counts.sum() == 500
    assert counts.min() > 25


def test_files_keep_the_calibration(tmp_path):
    for case in (
        sm.ConformalClassifier(SVC, by_class=True, random_state=0),
        sm.ConformalClassifier(sm.KernelSVC(SPECTRUM, probability=True), "cross", "aps", cv=3, random_state=0),
        sm.ConformalClassifier(frozen(SVC, STRINGS[:20], LABELS[:20])),
    ):
        loaded = sm.load(sm.save(case.fit(STRINGS, LABELS), tmp_path / "sets.similia"))
        np.testing.assert_array_equal(loaded.predict_set(STRINGS, 0.8), case.predict_set(STRINGS, 0.8))
        np.testing.assert_array_equal(loaded.p_values(STRINGS), case.p_values(STRINGS))
        assert sm.load(sm.save(clone(case), tmp_path / "unfitted.similia")).method == case.method
    lengths = [float(len(text)) for text in STRINGS]
    for method in ("split", "cross"):
        model = sm.ConformalRegressor(RIDGE, method, random_state=0).fit(STRINGS, lengths)
        loaded = sm.load(sm.save(model, tmp_path / "ends.similia"))
        np.testing.assert_array_equal(loaded.predict_interval(STRINGS, 0.8), model.predict_interval(STRINGS, 0.8))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calibration_folds_", np.full(40, 7)),
        ("calibration_classes_", np.full(40, 2)),
        ("calibration_scores_", np.full(40, np.nan)),
        ("calibration_scores_", np.zeros(39)),
        ("values_", "fit"),
    ],
)
def test_damaged_files_are_refused(name, value, tmp_path):
    model = sm.ConformalClassifier(SVC, "cross", random_state=0).fit(STRINGS, LABELS)
    setattr(model, name, value)
    with pytest.raises(ValueError, match="ConformalClassifier has"):
        sm.load(sm.save(model, tmp_path / "damaged.similia"))


def test_what_the_model_inside_is_can_be_seen():
    model = sm.ConformalClassifier(make_pipeline(sm.KernelFeatures(SPECTRUM, 64), LinearSVC()), random_state=0)
    assert parts_of(model).comparison().function is SPECTRUM
    model.fit(STRINGS, LABELS)
    assert repr(parts_of(model)) == "KernelFeatures → LinearSVC (inside of ConformalClassifier)"
    assert abs(sm.explain(model, "GATTACA").value) == pytest.approx(abs(model.decision_function(["GATTACA"])[0]))
    np.testing.assert_array_equal(model.predict(STRINGS), model.estimator_.predict(STRINGS))
    with pytest.raises(AttributeError, match="Pipeline, the estimator, has no predict_proba"):
        model.predict_proba(STRINGS)
    assert not hasattr(sm.ConformalClassifier(DummyClassifier()), "decision_function")
    search = GridSearchCV(sm.ConformalClassifier(SVC, random_state=0), {"estimator__C": [0.1, 1.0]}, cv=2)
    assert search.fit(STRINGS, LABELS).best_estimator_.predict_set(STRINGS, 0.5).shape == (40, 2)


def test_dask_collections_are_predicted_part_by_part():
    bag = pytest.importorskip("dask.bag").from_sequence(STRINGS, npartitions=3)
    model = sm.ConformalClassifier(SVC, random_state=0).fit(STRINGS, LABELS)
    np.testing.assert_array_equal(model.predict_set(bag, coverage=0.8).compute(), model.predict_set(STRINGS, 0.8))
    numbers = sm.ConformalRegressor(RIDGE, random_state=0).fit(STRINGS, np.arange(40.0))
    found = numbers.predict_interval(bag, coverage=0.8).compute()
    np.testing.assert_allclose(found, numbers.predict_interval(STRINGS, 0.8))
    with pytest.raises(TypeError, match=r"Dask collection.* calibrate FrozenEstimator\(estimator\) with a few"):
        model.fit(bag, LABELS)
    frozen = sm.ConformalClassifier(FrozenEstimator(model.estimator_))
    with pytest.raises(TypeError, match=r"Dask collection, and fit calibrates in memory; .* compute a part of it"):
        frozen.fit(bag, LABELS)


def test_progress_counts_the_folds_of_fit_and_of_predictions(capfd):
    sets = sm.ConformalClassifier(SVC, "cross", cv=3, random_state=0)
    ends = sm.ConformalRegressor(RIDGE, "cross", cv=4, random_state=0)
    silent = sets.fit(STRINGS, LABELS).predict_set(STRINGS, 0.8), ends.fit(STRINGS, range(40)).predict_interval(STRINGS)
    assert capfd.readouterr().err == ""
    with sm.config(progress=True):
        for model, y, ask, k, expected in (
            (sets, LABELS, "predict_set", 3, silent[0]),
            (ends, range(40), "predict_interval", 4, silent[1]),
        ):
            model.fit(STRINGS, y)
            assert f"folds: {k}/{k}" in capfd.readouterr().err
            coverage = 0.8 if ask == "predict_set" else 0.9
            np.testing.assert_array_equal(getattr(model, ask)(STRINGS, coverage), expected)
            assert f"folds: {k}/{k}" in capfd.readouterr().err
        split = sm.ConformalClassifier(SVC, random_state=0).fit(STRINGS, LABELS)
        capfd.readouterr()
        split.predict_set(STRINGS, 0.8)
        assert "folds" not in capfd.readouterr().err


# ---- rare classes and bad input


def test_a_class_that_no_calibration_object_has_is_in_every_set_by_class():
    y = np.array(["one", *LABELS[1:]])
    model = sm.ConformalClassifier(SVC, by_class=True, random_state=0).fit(STRINGS, y)
    assert model.estimator_.classes_.tolist() == ["at", "cg", "one"]
    with pytest.warns(UserWarning, match=r"1 of 3 classes have fewer than 4 .*class 'one' has 0\); they are in every"):
        assert model.predict_set(STRINGS, 0.8)[:, 2].all()
    assert (model.p_values(STRINGS)[:, 2] == 1).all()
    with pytest.raises(ValueError, match="every class has one object"):
        sm.ConformalClassifier(SVC, by_class=True).fit(STRINGS[:2], ["a", "b"])


def test_labels_that_the_model_has_not_seen_count_as_strange():
    learner = frozen(sm.KernelSVC(SPECTRUM, probability=True), STRINGS, LABELS)
    y = np.array(["new" if i % 3 == 0 else label for i, label in enumerate(LABELS)])
    model = sm.ConformalClassifier(learner).fit(STRINGS, y)
    assert model.classes_.tolist() == ["at", "cg", "new"]
    assert model.predict_proba(STRINGS)[:, 2].max() == 0
    assert model.predict_set(STRINGS, 0.9).all()  # a third of the truths is as strange as a label can be
    assert (model.calibration_scores_ == 1).sum() == 14
    margins = sm.ConformalClassifier(frozen(SVC, STRINGS, LABELS)).fit(STRINGS, y)
    assert margins.predict_set(STRINGS, 0.9).all()
    assert not margins.predict_set(STRINGS, 0.5)[:, 2].any()
    with pytest.raises(ValueError, match=r"y\[0\] is 0, but the frozen estimator knows 'at'"):
        sm.ConformalClassifier(learner).fit(STRINGS, np.arange(40) % 2)
    learner = frozen(SVC, STRINGS, np.arange(40) % 2)
    for dtype in ("U2", object):  # a column of a data frame
        with pytest.raises(ValueError, match=r"y\[0\] is 'at', but the frozen estimator knows 0; give labels of one"):
            sm.ConformalClassifier(learner).fit(STRINGS, np.array(["at", "cg"] * 20, dtype))


@pytest.mark.parametrize("coverage", [0, 1, 0.0, 1.0, -0.5, 90, np.nan, np.inf, "0.9", None, True])
def test_no_coverage(coverage):
    model = sm.ConformalClassifier(SVC, random_state=0).fit(STRINGS, LABELS)
    numbers = sm.ConformalRegressor(RIDGE, random_state=0).fit(STRINGS, np.arange(40.0))
    for predict in (model.predict_set, numbers.predict_interval):
        with pytest.raises(ValueError, match="coverage must be a number above 0 and below 1, got"):
            predict(STRINGS, coverage)


def test_few_calibration_objects():
    model = sm.ConformalClassifier(SVC, random_state=0).fit(STRINGS, LABELS)
    numbers = sm.ConformalRegressor(RIDGE, random_state=0).fit(STRINGS, np.arange(40.0))
    needs = r"coverage=0.95 needs 19 calibration objects, found 10: every {}; ask for coverage=0.909 or less, or calib"
    with pytest.raises(ValueError, match=needs.format("set would hold all 2 labels")):
        model.predict_set(STRINGS, 0.95)
    with pytest.raises(ValueError, match=needs.format("interval would be infinite")):
        numbers.predict_interval(STRINGS, 0.95)
    assert np.isfinite(numbers.predict_interval(STRINGS, 0.909)).all()  # as the sentence says
    assert model.predict_set(STRINGS, 0.909).shape == (40, 2)
    by_class = sm.ConformalClassifier(SVC, by_class=True, random_state=0).fit(STRINGS, LABELS)
    with pytest.raises(ValueError, match="needs 9 calibration objects of a class, found 5: every set"):
        by_class.predict_set(STRINGS, 0.9)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"estimator": SPECTRUM}, TypeError, "estimator is Spectrum.*expected an estimator with fit and predict"),
        ({"estimator": sm.KernelSVC}, TypeError, "expected an estimator with fit and predict"),
        ({"estimator": Mute()}, TypeError, "expected a classifier with predict_proba or decision_function"),
        ({"estimator": RIDGE}, TypeError, "KernelRidge.*expected a classifier; ConformalRegressor takes this one"),
        (
            {"estimator": FrozenEstimator(sm.KernelSVC(SPECTRUM))},
            ValueError,
            r"is frozen, but not fitted",
        ),
        ({"method": "jackknife"}, ValueError, "method must be 'split' or 'cross', got 'jackknife'"),
        ({"conformity_score": "absolute"}, ValueError, "conformity_score must be 'auto', 'lac', 'margin' or 'aps'"),
        ({"conformity_score": "aps"}, ValueError, "'aps' needs predict_proba, which KernelSVC lacks; take 'margin'"),
        ({"calibration_size": 1.0}, ValueError, "calibration_size must be a number above 0 and below 1, got 1.0"),
        ({"calibration_size": 10}, ValueError, "calibration_size must be a number"),
        ({"method": "cross", "cv": 1}, ValueError, "cv must be an integer >= 2"),
        ({"method": "cross", "cv": 41}, ValueError, "cv must be at most the number of objects, 40, got 41"),
        ({"method": "cross", "estimator": frozen(SVC, STRINGS, LABELS)}, ValueError, "it is frozen; take method='spl"),
    ],
)
def test_wrong_parameters(parameters, error, words):
    with pytest.raises(error, match=words):
        sm.ConformalClassifier(**{"estimator": SVC, **parameters}).fit(STRINGS, LABELS)


def test_wrong_objects_and_targets():
    model = sm.ConformalRegressor(RIDGE)
    for X, y, words in (
        (STRINGS, np.full(40, np.nan), r"y\[0\] is nan, expected finite numbers"),
        (STRINGS, [1.0] * 39, "y has 39 numbers for 40 objects"),
        (STRINGS[:1], [1.0], "X has n_samples=1, expected at least 2"),
        (STRINGS, None, "requires y"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    with pytest.raises(ValueError, match="y holds one class"):
        sm.ConformalClassifier(SVC).fit(STRINGS, ["a"] * 40)
    process = TransformedTargetRegressor(sm.GaussianProcessRegressor(SPECTRUM))  # it passes a pair on as an array
    with pytest.raises(TypeError, match=r"'normalized' needs predict.*fails for TransformedTargetRegressor.*take 'abs"):
        sm.ConformalRegressor(process, conformity_score="normalized").fit(STRINGS, np.arange(40.0))
    with pytest.raises(TypeError, match=r"'normalized' needs predict.*return_std=True.*fails for KernelRidge"):
        sm.ConformalRegressor(RIDGE, conformity_score="normalized").fit(STRINGS, np.arange(40.0))
    X = np.ones((9, 2)) * [[1.0, 0.0]]
    with pytest.raises(ValueError, match=r"X\[4\] gets the standard deviation 0, expected a positive one; add noise"):
        sm.ConformalRegressor(Centred(), conformity_score="normalized", random_state=0).fit(X, np.arange(9.0))
    X = np.where(np.arange(9)[:, None] == 4, np.nan, np.full((9, 2), 0.5))
    with pytest.raises(ValueError, match=r"X\[4\] gets NaN from predict_proba of FrozenEstimator"):
        sm.ConformalClassifier(frozen(Given(), X, X)).fit(X, np.arange(9) % 2)
    with pytest.raises(ValueError, match=r"X\[4\] gets NaN from predict_proba of Given"):
        sm.ConformalClassifier(Given(), method="cross", cv=3, random_state=0).fit(X, np.arange(9) % 2)


@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("method", ["split", "cross"])
def test_decisions_between_pairs_of_classes_are_refused(classes, method):
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % classes
    pairs = make_pipeline(StandardScaler(), VectorSVC(decision_function_shape="ovo"))
    with pytest.raises(ValueError, match=r"a value for each pair of classes.* set decision_function_shape='ovr'"):
        sm.ConformalClassifier(pairs, method=method, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"a value for each pair of classes"):
        sm.ConformalClassifier(frozen(pairs, X, y)).fit(X, y)
    two = sm.ConformalClassifier(pairs, method=method, random_state=0).fit(X, y % 2)  # one pair is two classes
    assert two.predict_set(X, 0.9).shape == (90, 2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("score", ["absolute", "normalized"])
def test_predictions_that_are_no_numbers(score, wrong):
    X = np.column_stack([np.where(np.arange(9) == 4, wrong, np.arange(9.0)), np.ones(9)])
    model = sm.ConformalRegressor(Centred(), method="cross", conformity_score=score, cv=3, random_state=0)
    with pytest.raises(ValueError, match=rf"X\[4\] gets {wrong} from predict of Centred, expected a finite number"):
        model.fit(X, np.arange(9.0))
    model.fit(np.delete(X, 4, axis=0), np.arange(8.0))
    with pytest.raises(ValueError, match=rf"X\[4\] gets {wrong} from predict of Centred"):
        model.predict_interval(X, 0.5)


class Column(Ridge):
    def predict(self, X):
        return super().predict(X)[:, None]


class Twice(Ridge):
    def predict(self, X):
        return np.tile(super().predict(X), 2)


def test_predictions_of_one_column_are_those_of_none():
    X = np.arange(40.0)[:, None] % 7
    y = X[:, 0] ** 2
    ours, theirs = (sm.ConformalRegressor(one(), random_state=0).fit(X, y) for one in (Column, Ridge))
    np.testing.assert_array_equal(ours.predict_interval(X, 0.8), theirs.predict_interval(X, 0.8))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match=r"Twice predicts an array of shape \(20,\) for 10 objects, not \(10,\)"):
        sm.ConformalRegressor(Twice(), random_state=0).fit(X, y)


@pytest.mark.parametrize("i", [0, 13, 26, 39])
def test_a_bad_object_is_named_by_its_number_among_all(i):
    with pytest.raises(TypeError, match=rf"X\[{i}\] is missing"):
        sm.ConformalClassifier(SVC, random_state=0).fit([*STRINGS[:i], None, *STRINGS[i + 1 :]], LABELS)


class Counts(ClassifierMixin, BaseEstimator):
    """Scores each class by the whole number of training objects of this class."""

    def fit(self, X, y):
        self.classes_, self.counts_ = np.unique(y, return_counts=True)
        return self

    def decision_function(self, X):
        return np.tile(self.counts_, (len(X), 1))

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def test_a_class_that_a_fold_lacks_is_as_strange_for_whole_numbers_as_for_floats():
    class Floats(Counts):
        def decision_function(self, X):
            return super().decision_function(X).astype(np.float32)

    labels = ["a", *["b", "c", "d"] * 13]  # one fold has the only "a"
    ours, expected = (
        sm.ConformalClassifier(kind(), method="cross", random_state=0).fit(STRINGS, labels) for kind in (Counts, Floats)
    )
    np.testing.assert_array_equal(ours.calibration_scores_, expected.calibration_scores_)
    np.testing.assert_array_equal(ours.p_values(STRINGS), expected.p_values(STRINGS))


def test_a_fit_that_fails_changes_nothing():
    model = sm.ConformalClassifier(SVC, random_state=0).fit(STRINGS, LABELS)
    before = model.p_values(STRINGS)
    with pytest.raises(ValueError, match="'aps' needs predict_proba"):
        model.set_params(conformity_score="aps").fit(STRINGS, LABELS)
    np.testing.assert_array_equal(model.p_values(STRINGS), before)


def test_a_classifier_has_no_intervals():
    with pytest.raises(TypeError, match=r"KernelSVC.*expected a regressor; ConformalClassifier takes this one"):
        sm.ConformalRegressor(SVC).fit(STRINGS, np.arange(float(len(STRINGS))))


def test_the_score_set_after_fit_changes_no_interval():
    X = np.column_stack([np.zeros(40), np.linspace(1, 5, 40)])
    y = np.sin(np.arange(40))
    model = sm.ConformalRegressor(Centred(), conformity_score="normalized", random_state=0).fit(X, y)
    before = model.predict_interval(X)
    np.testing.assert_array_equal(model.set_params(conformity_score="absolute").predict_interval(X), before)


@pytest.mark.parametrize("method", ["split", "cross"])
def test_a_matrix_of_pairs_is_refused_unless_frozen(method):
    K, numbers = SPECTRUM(STRINGS), np.arange(40.0)
    for model, y in (
        (sm.ConformalClassifier(VectorSVC(kernel="precomputed"), method), LABELS),
        (sm.ConformalRegressor(KernelRidge(kernel="precomputed"), method), numbers),
    ):
        with pytest.raises(ValueError, match=r"kernel='precomputed'.*give objects, and an estimator with the kernel"):
            model.fit(K, y)
    known = frozen(VectorSVC(kernel="precomputed"), K[:20, :20], LABELS[:20])
    model = sm.ConformalClassifier(known).fit(K[20:, :20], LABELS[20:])
    assert model.predict_set(K[20:, :20], 0.8).shape == (20, 2)
