"""The parts of the D2KE experiments that are not the library's: pictures as strings, simulated radio, tuning."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC
from sklearn.utils import Bunch

import experiments
from experiments import _d2ke_tasks, d2ke, d2ke_scaling
from experiments import _distance_methods as methods
from experiments._d2ke_tasks import TASKS, DistanceTask, Split
from experiments._digits import contour_strings
from experiments._radio import MODULATIONS, simulated_radio
from similia.objects import SeriesBatch, as_strings

# letters from right, clockwise: row and column steps
EIGHT = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
FOUR = EIGHT[::2]


def picture(*rows):
    return 255 * np.array([[[letter == "#" for letter in row] for row in rows]], dtype=np.uint8)


def test_contour_of_a_bar_by_hand():
    bar = picture(".....", ".###.", ".###.", ".....")
    assert contour_strings(bar, 4) == ["0001122233"]
    assert contour_strings(bar, 8) == ["002446"]


def test_contour_crosses_a_diagonal_and_leaves_out_smaller_pieces():
    image = picture("#....", ".#...", ".....", "....#")
    assert contour_strings(image, 8) == ["15"]
    assert sorted(contour_strings(image, 4)[0]) == list("00112233")


@pytest.mark.parametrize("directions", [4, 8])
def test_contours_are_closed_and_go_round_the_ink(directions):
    rng = np.random.default_rng(0)
    steps = np.array(FOUR if directions == 4 else EIGHT)
    blobs = rng.random((30, 8, 8)) < 0.6
    for string in contour_strings(255 * blobs.astype(np.uint8), directions):
        path = np.cumsum([steps[int(letter)] for letter in string], axis=0)
        assert path[-1].tolist() == [0, 0]
        # twice the signed area: a clockwise walk (rows count downwards) has it >= 0
        y, x = path.T
        assert np.sum(np.roll(x, 1) * y - np.roll(y, 1) * x) >= 0


def test_no_ink_is_an_empty_string():
    assert contour_strings(np.zeros((1, 4, 4), dtype=np.uint8), 4) == [""]


def test_radio_has_five_balanced_modulations_and_is_repeatable():
    X, y = simulated_radio(50, seed=3)
    again, _ = simulated_radio(50, seed=3)
    assert sorted(np.unique(y, return_counts=True)[1]) == [10] * len(MODULATIONS)
    assert X.lengths.tolist() == [512] * 50
    assert X.n_dims == 4
    np.testing.assert_array_equal(X.values, again.values)
    np.testing.assert_allclose(np.hypot(X.values[:, 0], X.values[:, 1]), X.values[:, 2], rtol=1e-5)


def test_tuning_prefers_the_kernel_that_tells_classes_apart():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    V = {"signal": y[:, None] + 0.1 * rng.standard_normal((60, 1)), "noise": rng.standard_normal((60, 1))}

    def kernels(setting, a, b):
        W = V[setting["use"]]
        return W[a] @ W[a].T, W[b] @ W[a].T, a

    chosen, machine, accuracy = methods.tune(kernels, [{"use": "noise"}, {"use": "signal"}], y)
    assert chosen["use"] == "signal"
    assert machine in methods.MACHINES
    assert accuracy > 95


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_a_machine_on_the_kernel_is_one_on_the_features(loss):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 60)
    A = rng.standard_normal((60, 20)) + 0.7 * np.eye(3)[y] @ rng.standard_normal((3, 20))
    B = rng.standard_normal((500, 20))
    machine = methods.Machine(loss, 2.0)
    shifted = A + 5.0 if loss == "square" else A  # least squares have an intercept of their own
    found = machine.predict(shifted @ shifted.T, y, (B + 5.0 if loss == "square" else B) @ shifted.T)
    if loss == "square":
        expected = RidgeClassifier(alpha=A.var(axis=0).sum() / 2.0).fit(A, y).predict(B)
    else:
        expected = SVC(kernel="linear", C=2.0).fit(A, y).predict(B)
    np.testing.assert_array_equal(found, expected)


def test_resampled_splits_keep_sizes_and_classes(monkeypatch):
    y = np.repeat(["a", "b"], [30, 10])
    bunch = Bunch(data=SeriesBatch.from_arrays([np.zeros((3, 1))] * 40), target=y, split=np.tile([0, 1], 20))
    monkeypatch.setattr(_d2ke_tasks, "fetch", lambda name: bunch)
    task = DistanceTask("made", "series", "made", resampled=True)
    first, second, third = (_d2ke_tasks.load_split(task, i) for i in range(3))
    np.testing.assert_array_equal(first.train, np.arange(0, 40, 2))
    for split in (second, third):
        assert sorted([*split.train, *split.test]) == [*range(40)]
        assert np.unique(y[split.train], return_counts=True)[1].tolist() == [15, 5]
    assert set(second.train) != set(third.train)


def test_features_are_standardised_on_their_own_rows():
    D = np.random.default_rng(1).random((20, 7))
    A = methods.features(D, gamma=2.0)(D)
    np.testing.assert_allclose(A.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(A.std(axis=0), 1 / np.sqrt(7))


def distances_that_tell(n, n_test, seed=5):
    rng = np.random.default_rng(seed)
    D, E = rng.random((n, 12), np.float32), rng.random((n_test, 12), np.float32)
    D[:, 3] = E[:, 3] = 0.5
    return D, E, np.array(list("abc"))[np.digitize(D[:, 0] + D[:, 1], [0.8, 1.2])]


def test_predictions_by_blocks_are_those_of_the_kernel(monkeypatch):
    D, E, y = distances_that_tell(60, 400)
    machine = methods.Machine("square", 20.0)
    expected = methods.predictions(D.astype(float), E.astype(float), y, 1.5, machine)
    monkeypatch.setattr(methods, "MAX_KERNEL", 59)
    monkeypatch.setattr(methods, "BLOCK", 7)
    np.testing.assert_array_equal(methods.predictions(D, E, y, 1.5, machine), expected)
    assert len(set(expected)) == 3


def test_many_objects_are_tuned_on_those_held_out(monkeypatch):
    D, _, y = distances_that_tell(400, 1)
    rest, held_out = methods.hold_out(y)
    assert sorted([*rest, *held_out]) == [*range(400)]
    assert len(held_out) == 40
    noise = np.random.default_rng(0).random(D.shape)
    settings = [({"gamma": 1.0, "use": "noise"}, noise, rest), ({"gamma": 1.0, "use": "D"}, D, rest)]
    setting, machine, accuracy = methods.tune_many(iter(settings), y)
    assert setting["use"] == "D"
    monkeypatch.setattr(methods, "MAX_KERNEL", 1)
    found = methods.predictions(D[rest], D[held_out], y[rest], 1.0, machine)
    assert accuracy == pytest.approx(100 * np.mean(found == y[held_out]))
    others = [
        np.mean(methods.predictions(D[rest], D[held_out], y[rest], 1.0, m) == y[held_out])
        for m in methods.MACHINES_FOR_MANY
    ]
    assert accuracy == pytest.approx(100 * max(others))


def test_the_squared_loss_flips_negative_eigenvalues():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 40)
    V, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    values = np.concatenate([10.0 ** -np.arange(20), -(10.0 ** -np.arange(20)) / 2])
    K = (V * values) @ V.T
    targets = np.where(y[:, None] == [0, 1], 1.0, -1.0)
    dual = methods._ridge_dual(K, 0.05, targets)
    A = V * np.sqrt(np.abs(values))  # features of the flipped kernel
    w = np.linalg.solve(A.T @ A + 0.05 * np.eye(40), A.T @ targets)
    np.testing.assert_allclose(K @ dual, A @ w, atol=1e-9)
    definite = K + 2 * np.eye(40)
    np.testing.assert_allclose(
        methods._ridge_dual(definite, 0.05, targets), np.linalg.solve(definite + 0.05 * np.eye(40), targets), atol=1e-9
    )


def test_votes_of_the_nearest():
    E = np.array([[0.1, 0.2, 0.3, 9.0], [5.0, 1.0, 1.5, 0.5]])
    y = np.array(["a", "b", "b", "a"])
    assert d2ke._vote(E, y, 3).tolist() == ["b", "b"]
    assert d2ke._vote(E, y, 2).tolist() == ["a", "a"]  # one vote each: the nearer one counts


def test_transductive_coordinates_use_the_test_objects():
    P = np.random.default_rng(2).random((12, 3))
    D = np.linalg.norm(P[:, None] - P[None], axis=2)
    a, b = np.arange(8), np.arange(8, 12)
    inductive, transductive = (methods.pseudo_euclidean_kernels(D, 2, a, b, t)[1] for t in (False, True))
    assert inductive.shape == transductive.shape == (4, 8)
    assert not np.allclose(inductive, transductive)


@pytest.mark.long
def test_every_method_on_a_small_task(monkeypatch):
    strings = ["".join(row) for row in np.random.default_rng(0).choice(list("ab"), (40, 12))]
    y = np.repeat(["x", "y"], 20)
    strings[20:] = [s.replace("a", "c", 6) for s in strings[20:]]
    order = np.random.default_rng(1).permutation(40)
    split = Split(as_strings(strings), y, np.sort(order[:30]), np.sort(order[30:]))
    monkeypatch.setattr(d2ke, "load_split", lambda task, resample=0: split)
    monkeypatch.setattr(d2ke, "R_TUNE", 16)
    monkeypatch.setattr(d2ke, "R_MAX", 32)
    monkeypatch.setattr(methods, "FEW", 0)  # ten folds once, not five times
    task = DistanceTask("splice", "strings", "made")
    records = d2ke.measure(task, seeds=2)
    assert {r["method"] for r in records} == set(d2ke.OURS)
    assert {r["seed"] for r in records if r["method"] == "D2KE"} == {0, 1}
    assert {r["seed"] for r in records if r["method"] == "kNN"} == {0}
    monkeypatch.setattr(methods, "MAX_KERNEL", 25)  # of 30 training objects
    monkeypatch.setattr(d2ke, "MAX_TRANSDUCTIVE", 30)
    again = d2ke.measure(DistanceTask("Libras", "strings", "made", resampled=True), seeds=2)
    assert {r["method"] for r in again} == set(d2ke.OURS) - {"GDK_LED, transductive"}
    assert all("square" in r["chosen"] for r in again if r["method"].startswith(("D2KE", "RSM")))
    assert {r["seed"] for r in again if r["method"] == "kNN"} == {0, 1}  # a split each
    assert all(r["accuracy"] >= 80 for r in records if r["table"] == "tuned" and r["method"] in ("kNN", "D2KE"))
    tables, _ = d2ke.present(records)
    shown = "\n".join(table.to_markdown() for table in tables)
    for words in ("Table 2: strings", "could not be had", "90.17", "equal R", "won"):
        assert words in shown


def test_sets_that_could_not_be_had_keep_their_row():
    missing = [task.name for task in TASKS if not task.source]
    assert missing == ["ActRecog", "bit-str4", "decor", "letters2"]
    assert all(d2ke.measure(task, seeds=1) == [] for task in TASKS if not task.source)


def test_samplers_do_not_look_at_the_test_part():
    X = SeriesBatch(np.concatenate([np.ones(20), np.full(20, 1e6)])[:, None], np.arange(0, 41, 10))
    split = Split(X, np.array([0, 1, 0, 1]), np.array([0, 1]), np.array([2, 3]))
    for samplers in d2ke.samplers_of(split, "series").values():
        assert all(np.max(getattr(sampler, "scale", 0.0)) <= 2.0 for sampler in samplers)


@pytest.mark.parametrize("name", ["series", "strings", "sets"])
def test_scaling_on_few_small_objects(name, monkeypatch, tmp_path):
    monkeypatch.setattr(d2ke_scaling, "COUNTS", (4, 8))
    monkeypatch.setattr(d2ke_scaling, "LENGTHS", (4, 8))
    monkeypatch.setattr(d2ke_scaling, "N_OBJECTS", 3)
    section = experiments.run("d2ke-scaling", only=[name], seeds=1)
    number, length = section.tables
    assert [row[:2] for row in number.rows] == [[name, "D2KE"]]
    assert [row[:2] for row in length.rows] == [[name, "D2KE"], [name, "representatives"]]
    section.write(tmp_path)
    assert (tmp_path / "reproduction" / "d2ke-scaling.svg").exists()


def test_the_three_commands_choose_their_sets():
    for kind in ("series", "strings", "sets"):
        missing = next(task.name for task in TASKS if task.kind == kind and not task.source)
        section = experiments.run(f"d2ke-{kind}", only=[missing], seeds=1)
        assert (section.name, section.records) == ("d2ke", [])
        with pytest.raises(ValueError, match="no data set of this experiment is called"):
            experiments.run(f"d2ke-{kind}", only=[next(task.name for task in TASKS if task.kind != kind)])
