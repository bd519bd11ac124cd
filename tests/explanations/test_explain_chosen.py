"""Explanations and reports of whatever `select` may choose, and of what users wrap around a model."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

import similia as sm
from samples.select import MAKERS, choose, sample
from similia import kernels
from similia.explanations import explain
from similia.report._context import gather
from similia.selection._ladder import ladder
from similia.selection.folds import recognised

STRINGS, LABELS = sample("strings", 30)
NUMBERS = np.array([x.count("A") + 0.5 for x in STRINGS])
SPECTRUM = kernels.Spectrum(k=2)
FEATURES = sm.KernelFeatures(kernels.Spectrum(k=2), 64)


def check_sum(found):
    total = sum(part.contribution for part in found.parts) + found.residual
    assert total == pytest.approx(found.value, abs=1e-9)
    assert found.residual == pytest.approx(found.omitted + found.unexplained, abs=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_every_candidate_of_the_choice_can_be_explained(kind, task):
    X, y = sample(kind, 24, task)
    kind, X = recognised(X)
    met = set()
    for group in ladder(kind, X, task, 0):
        for i in range(len(group.learners)):
            model = clone(group.pipeline(i))
            shape = tuple(type(step).__name__ for _, step in model.steps)
            if shape in met:
                continue
            met.add(shape)
            for step in model.named_steps.values():
                if isinstance(step, sm.Nystroem):
                    step.set_params(n_components=15)
            model.fit(X, y)
            found = explain(model, X[0])
            check_sum(found)
            if task == "regression":
                assert found.value == pytest.approx(float(model.predict(X[[0]])[0]), rel=1e-4), shape  # of float32
            else:
                assert f"for {model.predict(X[[0]])[0]} against" in found.title, shape
                assert found.value > 0
            if "HDClassifier" not in shape:  # whose bits are no linear function
                assert abs(found.unexplained) < 1e-6 * max(1.0, abs(found.value)), shape
    assert len(met) >= 2


def test_a_chosen_regressor_is_explained():
    found = choose(STRINGS, NUMBERS, budget=5, nested=False, random_state=0, progress=False)
    shown = explain(found, STRINGS[3])
    check_sum(shown)
    assert shown.kind == "prediction"
    if "mean is" not in shown.note:  # of a vote, one voter is explained
        assert shown.value == pytest.approx(float(found.predict(STRINGS[3:4])[0]), rel=1e-6)


def test_targets_are_taken_back_into_their_units():
    """Ridge on standardised numbers is scale * (w . f + b) + mean."""
    model = make_pipeline(clone(FEATURES), TransformedTargetRegressor(Ridge(alpha=0.1), transformer=StandardScaler()))
    model.fit(STRINGS, NUMBERS)
    found = explain(model, STRINGS[0], top=1000)
    assert found.value == pytest.approx(float(model.predict(STRINGS[:1])[0]))
    row = model[0].transform(STRINGS[:1]).toarray()[0]
    scaler, ridge = model[-1].transformer_, model[-1].regressor_
    coefficients = ridge.coef_.ravel() * scaler.scale_[0]
    assert sum(p.contribution for p in found.parts[:-1]) == pytest.approx(float(coefficients @ row))
    assert found.parts[-1].name == "intercept"
    constant = float(np.ravel(ridge.intercept_)[0]) * scaler.scale_[0] + scaler.mean_[0]
    assert found.parts[-1].contribution == pytest.approx(constant)
    assert found.shares_x.sum() == pytest.approx(float(coefficients @ row))
    outside = TransformedTargetRegressor(make_pipeline(clone(FEATURES), Ridge(alpha=0.1)), transformer=StandardScaler())
    other = explain(outside.fit(STRINGS, NUMBERS), STRINGS[0], top=1000)
    assert other.value == pytest.approx(found.value)


def test_logarithms_of_targets_are_explained_before_they_are_taken_back():
    model = TransformedTargetRegressor(make_pipeline(clone(FEATURES), Ridge()), func=np.log, inverse_func=np.exp)
    model.fit(STRINGS, NUMBERS)
    found = explain(model, STRINGS[0])
    predicted = float(model.predict(STRINGS[:1])[0])
    assert found.value == pytest.approx(np.log(predicted))
    assert f"transforms this number to {predicted:.4g}" in found.note
    check_sum(found)


def test_of_calibrated_classifiers_one_is_explained():
    inner = make_pipeline(clone(FEATURES), LinearSVC(random_state=0))
    averaged = CalibratedClassifierCV(inner, cv=3).fit(STRINGS, LABELS)
    found = explain(averaged, STRINGS[0])
    check_sum(found)
    assert f"for {averaged.predict(STRINGS[:1])[0]} against" in found.title
    assert "of the 3 models whose probabilities are averaged" in found.note
    single = CalibratedClassifierCV(inner, cv=3, ensemble=False).fit(STRINGS, LABELS)
    found = explain(single, STRINGS[0])
    assert found.note == "this is the decision that the calibration turns into a probability"
    decision = single.calibrated_classifiers_[0].estimator.decision_function(STRINGS[:1])[0]
    assert found.value == pytest.approx(abs(decision))
    last = make_pipeline(clone(FEATURES), CalibratedClassifierCV(LinearSVC(random_state=0), cv=3)).fit(STRINGS, LABELS)
    check_sum(explain(last, STRINGS[0]))


def test_wrappers_show_what_they_hold():
    inner = make_pipeline(clone(FEATURES), LogisticRegression())
    expected = explain(clone(inner).fit(STRINGS, LABELS), STRINGS[0])
    fitted = clone(inner).fit(STRINGS, LABELS)
    nested = make_pipeline(make_pipeline(make_pipeline(clone(FEATURES)), "passthrough"), LogisticRegression())
    column = make_pipeline(sm.objects.FromColumn(), clone(inner)).fit(sm.objects.as_column(STRINGS), LABELS)
    for model in (
        FrozenEstimator(fitted),
        FixedThresholdClassifier(inner).fit(STRINGS, LABELS),
        GridSearchCV(inner, {"logisticregression__C": [1.0]}, cv=2).fit(STRINGS, LABELS),
        make_pipeline(clone(FEATURES), GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2)).fit(STRINGS, LABELS),
        nested.fit(STRINGS, LABELS),
        column,
    ):
        found = explain(model, STRINGS[0])
        assert found.value == pytest.approx(expected.value)
        assert [part.name for part in found.parts] == [part.name for part in expected.parts]


def test_votes_may_stand_at_the_end_of_a_pipeline_and_hold_anything():
    scaled = TransformedTargetRegressor(SVR(C=10.0), transformer=StandardScaler())
    vote = sm.VoteRegressor([make_pipeline(clone(FEATURES), scaled), make_pipeline(clone(FEATURES), Ridge())])
    vote.fit(STRINGS, NUMBERS)
    found = explain(vote, STRINGS[0])
    assert found.value == pytest.approx(float(vote.estimators_[0].predict(STRINGS[:1])[0]))
    assert f"their mean is {vote.predict(STRINGS[:1])[0]:.4g}" in found.note
    last = make_pipeline(clone(FEATURES), sm.VoteClassifier([SVC(), LinearSVC()]))
    check_sum(explain(last.fit(STRINGS, LABELS), STRINGS[0]))


def slow_weights(decide, z, steps=2000):
    """Return the mean slope of a function along the line from 0 to z, by differences at midpoints."""
    h, total = 1e-5, np.zeros_like(z)
    points = ((np.arange(steps) + 0.5) / steps)[:, None] * z
    for j in range(len(z)):
        step = np.zeros_like(z)
        step[j] = h
        total[j] = np.mean((decide(points + step) - decide(points - step)) / (2 * h))
    return total


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=5.0), SVC(kernel="poly", degree=3, coef0=1.0), SVC(kernel="sigmoid", gamma=0.1), NuSVC(gamma=0.7),
        SVR(C=3.0), SVR(kernel="poly", degree=2),
    ],
    ids=str,
)  # fmt: skip
def test_curved_machines_are_explained_by_integrated_gradients(machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    target = X[:, 0] * X[:, 1] + X[:, 2]
    regression = isinstance(machine, SVR)
    machine.fit(X, target if regression else np.where(target > 0, "up", "down"))
    decide = machine.predict if regression else machine.decision_function
    for z in X[:3]:
        found = explain(machine, z, top=3)
        sign = 1.0 if regression or decide(z[None])[0] > 0 else -1.0
        assert found.value == pytest.approx(sign * decide(z[None])[0])
        adds = dict(zip(["column 0", "column 1", "column 2"], sign * z * slow_weights(decide, z), strict=True))
        for part in found.parts[:-1]:
            assert part.contribution == pytest.approx(adds[part.name.split(" = ")[0]], abs=1e-5)
        assert found.parts[-1].contribution == pytest.approx(sign * decide(np.zeros((1, 3)))[0])
        assert abs(found.unexplained) < 1e-9


def test_of_many_classes_the_machine_for_the_two_best_is_explained():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [2, 0], [0, 2], [2, 2]], 15, axis=0), np.repeat([*"abcd"], 15)
    machine = SVC(decision_function_shape="ovo").fit(X, y)
    pairs = ["ab", "ac", "ad", "bc", "bd", "cd"]
    for x in X[::9]:
        found = explain(machine, x)
        winner = machine.predict(x[None])[0]
        margins = {}
        for pair, value in zip(pairs, machine.decision_function(x[None])[0], strict=True):
            if winner in pair:
                margins[pair.replace(winner, "")] = value if pair[0] == winner else -value
        other = min(margins, key=margins.get)
        assert found.title.endswith(f"for {winner} against {other}")
        assert found.value == pytest.approx(margins[other])
        check_sum(found)


@pytest.mark.parametrize("mapping", ["sqrt", "projection"])
def test_machines_on_the_sphere_are_explained_by_their_support_vectors(mapping):
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(40, 5))) * 7  # far from the sphere
    two = sm.HeatSVC(0.5, 10.0, mapping=mapping).fit(X, X[:, 0] > X[:, 1])
    three = sm.HeatSVC(0.5, 10.0, mapping=mapping).fit(X, X[:, :3].argmax(axis=1))
    for x in X[:5]:
        found = explain(two, x, top=40)
        assert found.value == pytest.approx(abs(two.decision_function(x[None])[0]))
        assert abs(found.unexplained) < 1e-9
        assert f"for {three.predict(x[None])[0]} against" in explain(three, x).title


def test_a_regressor_without_support_vectors_is_its_intercept():
    model = sm.KernelSVR(SPECTRUM).fit(STRINGS, np.full(30, 7.0))
    found = explain(model, STRINGS[0])
    assert [(part.name, part.contribution) for part in found.parts] == [("intercept", 7.0)]
    assert "intercept" in found.to_text()
    assert "intercept" in found.to_html()


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_of_vectors_add_their_shares(weights):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 4))
    model = make_pipeline(StandardScaler(), KNeighborsRegressor(4, weights=weights)).fit(X, X[:, 0])
    x = rng.normal(size=4)
    found = explain(model, x)
    assert found.value == pytest.approx(float(model.predict(x[None])[0]))
    assert len(found.parts) == 4
    classes = make_pipeline(StandardScaler(), KNeighborsClassifier(5, weights=weights)).fit(X, X[:, 0] > 0)
    shares = classes.predict_proba(x[None])[0]
    assert explain(classes, x).value == pytest.approx(abs(shares[1] - shares[0]))
    assert explain(classes, X[0]).value > 0  # itself, at distance 0


def test_unfitted_models_say_that_they_are_not_fitted():
    with pytest.raises(NotFittedError, match="LinearSVC is not fitted yet; call its fit"):
        explain(make_pipeline(FunctionTransformer(), LinearSVC()), STRINGS[0])
    with pytest.raises(NotFittedError, match="TransformedTargetRegressor is not fitted yet; call its fit"):
        explain(TransformedTargetRegressor(Ridge()), np.zeros(3))
    with pytest.raises(NotFittedError, match="CalibratedClassifierCV is not fitted yet; call its fit"):
        explain(CalibratedClassifierCV(LinearSVC()), np.zeros(3))


# the command


@pytest.fixture
def shown(capsys):
    from similia.cli.explain import explain
    from similia.cli.voice import speaking

    def run(model, data, *which, **table):
        with speaking(json=True):
            explain(model, data, table, **({"pair": which} if len(which) == 2 else {"one": which[0]}))
        return json.loads(capsys.readouterr().out)["value"]

    return run


def test_objects_are_named_or_numbered_on_the_command_line(tmp_path, shown):
    model = make_pipeline(clone(FEATURES), LinearSVC()).fit(STRINGS, LABELS)
    path = sm.save(model, tmp_path / "model.similia")
    fasta, table = tmp_path / "reads.fasta", tmp_path / "reads.csv"
    fasta.write_text("".join(f">read{i} of many\n{x}\n" for i, x in enumerate(STRINGS)))
    table.write_text("who,text\n" + "".join(f"r{i},{x}\n" for i, x in enumerate(STRINGS)))
    expected = explain(model, STRINGS[7]).value
    assert shown(path, str(fasta), "read7") == shown(path, str(fasta), "7") == expected
    assert shown(path, str(table), "r7", names="who") == shown(path, str(table), "7") == expected
    pair = explain(kernels.Spectrum(k=2), STRINGS[1], STRINGS[7]).value
    assert shown(path, str(fasta), "read1", "7") == pair
    for data, which, names, said in (
        (fasta, "red7", None, r"has no object 'red7': it holds 30 strings, named 'read0', .* \(did you mean read7\?\)"),
        (table, "r7", None, "has no object 'r7': it holds 30 strings without names; .* --id"),
        (fasta, "-1", None, "numbered from 0 to 29; there is no number -1"),
        (fasta, "30", None, "numbered from 0 to 29; there is no number 30"),
    ):
        with pytest.raises(ValueError, match=said):
            shown(path, str(data), which, names=names)


# displays and reports of the same models


def wrapped_models():
    landmarks, scaler = sm.Nystroem(SPECTRUM, 8, random_state=0), StandardScaler()
    ridge, machine = make_pipeline(landmarks, Ridge()), make_pipeline(landmarks, LinearSVC())
    return {
        "targets, outside": (TransformedTargetRegressor(ridge, transformer=scaler), NUMBERS),
        "logarithms": (TransformedTargetRegressor(sm.KernelRidge(SPECTRUM), func=np.log, inverse_func=np.exp), NUMBERS),
        "targets, inside": (make_pipeline(landmarks, TransformedTargetRegressor(SVR(), transformer=scaler)), NUMBERS),
        "calibrated": (CalibratedClassifierCV(machine, cv=3), LABELS),
        "calibrated kernel": (CalibratedClassifierCV(sm.KernelSVC(SPECTRUM), cv=3), LABELS),
        "probabilities": (sm.KernelSVC(SPECTRUM, probability=True), LABELS),
        "a column": (make_pipeline(sm.objects.FromColumn(), machine), LABELS),
        "a searched vote": (GridSearchCV(sm.VoteClassifier([machine]), {"v0__linearsvc__C": [1.0]}, cv=2), LABELS),
    }  # fmt: skip


@pytest.mark.parametrize("name", wrapped_models())
@pytest.mark.filterwarnings("ignore:.*similarity 0 to all landmarks")
def test_reports_score_the_whole_and_show_what_is_inside(name, tmp_path):
    model, y = wrapped_models()[name]
    model.fit(STRINGS, y)
    for display in (sm.report.EmbeddingDisplay, sm.report.SpectrumDisplay):
        display.from_estimator(model, STRINGS, y, ax=Figure().subplots())
    page = sm.report.write_report(model, STRINGS, y, tmp_path / "r.html", cv=2).read_text()
    assert "Spectrum(k=2)" in page
    seen = gather(model, STRINGS, y, None, True, 2, 100, 0)
    np.testing.assert_array_equal(seen.scored.predicted, model.predict(STRINGS))


def test_a_feature_called_intercept_is_not_the_intercept():
    found = explain(kernels.Words(), "intercept of", "of intercept", top=1)
    assert (found.parts[0].name, found.listed_share) == ("intercept", 0.5)
    docs, y = ["intercept a", "intercept b", "slope a", "slope b"], [1, 1, 0, 0]
    model = make_pipeline(sm.KernelFeatures(kernels.Words()), LogisticRegression()).fit(docs, y)
    assert [part.name for part in sm.explanations.explain_classes(model, docs)[1]] == ["intercept"]


def test_parts_are_those_of_the_kernel_of_fit():
    words, y = ["AC", "CA", "GT", "TG"] * 5, [0, 0, 1, 1] * 5
    model = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=2)), LogisticRegression()).fit(words, y)
    before = [part.name for part in explain(model, "GT").parts]
    model.set_params(kernelfeatures__kernel__k=1)
    assert [part.name for part in explain(model, "GT").parts] == before


def test_a_threshold_that_changes_the_class_is_told():
    words, y = ["AC", "CA", "GT", "TG"] * 5, [0, 0, 1, 1] * 5
    for threshold, told in ((0.5, False), (0.999, True)):
        classifier = FixedThresholdClassifier(LogisticRegression(), threshold=threshold)
        model = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=1)), classifier).fit(words, y)
        assert ("FixedThresholdClassifier predicts 0" in explain(model, "GT").note) is told


def test_numbers_of_scaled_targets_in_names_are_told():
    words, y = ["AC", "CA", "GT", "TG"] * 5, np.arange(20.0) * 100
    regressors = sm.KNeighborsRegressor(kernels.Spectrum(k=1)), sm.GaussianProcessRegressor(kernels.Spectrum(k=1))
    for regressor in regressors:
        model = TransformedTargetRegressor(regressor, transformer=StandardScaler()).fit(words, y)
        assert explain(model, "GT").note.endswith("in the units of the scaled targets")


def test_neighbours_without_weights_count_alike():
    X, y = np.arange(8.0)[:, None], [0, 0, 0, 0, 1, 1, 1, 1]
    model = KNeighborsClassifier(3, weights=None).fit(X, y)
    assert [part.contribution for part in explain(model, [1.2]).parts] == pytest.approx([1 / 3] * 3)


def test_a_whitened_column_without_variance_adds_a_number():
    X = np.c_[np.arange(20.0), np.arange(20.0) % 3, np.arange(20.0) % 3]
    model = make_pipeline(StandardScaler(), PCA(whiten=True), Ridge()).fit(X, np.arange(20.0))
    model[1].explained_variance_[2] = 0.0
    found = explain(model, X[3])
    assert sum(part.contribution for part in found.parts) == pytest.approx(model.predict(X[3:4])[0])


def test_a_scaler_that_clips_is_not_affine():
    X = np.arange(20.0)[:, None]
    model = make_pipeline(StandardScaler(), MaxAbsScaler(), Ridge()).fit(X, X[:, 0])
    assert abs(explain(model, [100.0]).unexplained) < 1e-9
    model[1].clip = True
    with pytest.raises(TypeError, match="MaxAbsScaler is not affine"):
        explain(model, [100.0])
