"""compress: the sizes are those of real models, the chosen one obeys the bound, and bad input is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

import similia as sm
from similia.devices import compressed
from similia.devices.compressed import Compressed, Size, _halves, _preferred
from similia.objects import take
from similia.pipelines import Pipeline

X, Y = map(np.asarray, sm.datasets.load_promoters(return_X_y=True))
MISMATCH = sm.kernels.Mismatch(3, alphabet="acgt")


def recipe(**how):
    return sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), 32, 1024, random_state=0, **how)


@pytest.fixture(scope="module")
def found():
    return sm.devices.compress(recipe(), X, Y, max_loss=0.05, cv=3)


def test_all_sizes_are_tried_and_sorted_by_bytes(found):
    assert {(s.n_landmarks, s.n_bits, s.prototype_bits) for s in found.sizes} == {
        (s, b, p) for s in (32, 16, 8) for b in (1024, 512, 256) for p in (8, 4, 1)
    }
    assert [s.n_bytes for s in found.sizes] == sorted(s.n_bytes for s in found.sizes)


def test_the_chosen_is_the_smallest_within_the_loss(found):
    best = max(size.accuracy for size in found.sizes)
    allowed = [size for size in found.sizes if size.accuracy >= best - 0.05]
    assert found.chosen == allowed[0]
    assert found.chosen.n_bytes < found.sizes[-1].n_bytes
    assert all(a.accuracy < b.accuracy for a, b in zip(found.frontier, found.frontier[1:], strict=False))
    assert "<- chosen" in repr(found)


def test_the_model_has_the_chosen_size_and_was_fitted_to_all_objects(found):
    nystroem, signs, classifier = (step for _, step in found.model.steps)
    assert len(nystroem.landmark_indices_) == found.chosen.n_landmarks
    assert (signs.n_bits, signs.method) == (found.chosen.n_bits, "hadamard")
    assert classifier.bits_ == found.chosen.prototype_bits
    small = sm.quantise(found.model)
    assert small.n_bytes == pytest.approx(found.chosen.n_bytes, rel=0.2)  # other landmarks than in the folds
    assert small.loss(X, Y).after > 0.9


def test_a_copy_of_the_model_fits_other_objects(found):
    assert found.model.get_params()["nystroem__landmarks"] == "rpcholesky"
    again = clone(found.model).fit(X, Y)
    np.testing.assert_array_equal(again[0].landmark_indices_, found.model[0].landmark_indices_)
    np.testing.assert_array_equal(again[:2].transform(X), found.model[:2].transform(X))
    assert len(clone(found.model).fit(X[::3], Y[::3])[0].landmark_indices_) == found.chosen.n_landmarks


def test_accuracies_are_those_of_pipelines_fitted_to_the_folds(found):
    from sklearn.model_selection import StratifiedKFold

    from similia.core.validation import generator, spawn_seeds

    seeds = spawn_seeds(0, 3)
    some = np.sort(generator(seeds[0]).permutation(len(Y)))
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=seeds[0]).split(some, Y[some]):
        train, test = some[train], some[test]
        known, new = take(X, train), take(X, test)
        nystroem = clone(recipe()[0]).set_params(landmarks="rpcholesky", random_state=seeds[1]).fit(known)
        nystroem = clone(nystroem).set_params(landmarks=nystroem.landmark_indices_[:16])
        signs = sm.SignRandomProjection(512, "hadamard", seeds[2])
        classifier = clone(recipe()[2]).set_params(prototype_bits=4)
        scores.append(
            Pipeline([("n", nystroem), ("s", signs), ("c", classifier)]).fit(known, Y[train]).score(new, Y[test])
        )
    size = next(s for s in found.sizes if (s.n_landmarks, s.n_bits, s.prototype_bits) == (16, 512, 4))
    assert size.accuracy == pytest.approx(np.mean(scores))
    assert size.error == pytest.approx(np.std(scores, ddof=1) / 3**0.5)


def test_the_most_accurate_within_the_bytes_is_taken():
    sizes = [
        Size(8, 256, 1, 0.7, 0.01, 100, 1),
        Size(8, 512, 1, 0.9, 0.01, 200, 1),
        Size(8, 512, 8, 0.95, 0.06, 300, 1),
    ]
    assert _preferred(sizes, 0.01, 250) == [sizes[1], sizes[0]]
    assert _preferred(sizes, 0.01, 300) == [sizes[2], sizes[1], sizes[0]]
    assert _preferred(sizes, 0.06, None) == [sizes[1]]
    assert _preferred(sizes, 0.01, None) == [sizes[2]]
    assert _preferred(sizes, 0.3, None) == [sizes[0]]
    assert _preferred(sizes, 0.01, 99) == []


def test_the_fitted_model_keeps_the_bound(found, monkeypatch):
    def larger(model, X):
        """Quantise; with the landmarks of all objects, the model takes 500 bytes more than with those of a fold."""
        small = sm.quantise(model, X)
        return SimpleNamespace(n_bytes=small.n_bytes + 500 * (len(X) == len(Y)), operations=small.operations)

    monkeypatch.setattr(compressed, "quantise", larger)
    most = found.frontier[-1].n_bytes
    chosen = sm.devices.compress(recipe(), X, Y, max_bytes=most, cv=3)
    assert sm.quantise(chosen.model, X).n_bytes + 500 <= most
    assert chosen.chosen.accuracy < found.frontier[-1].accuracy
    least = found.sizes[0].n_bytes
    with pytest.raises(ValueError, match="max_bytes must be at least") as raised:
        sm.devices.compress(recipe(), X, Y, max_bytes=least, cv=3)
    assert int(str(raised.value).split("at least ")[1].split(",")[0]) > least + 200


def test_the_table_says_what_it_leaves_out(found):
    lines = repr(found).splitlines()
    assert len(lines) == 2 + len({*found.frontier, found.chosen})
    assert lines[-1].startswith("shown: of 27 sizes, those more accurate than all smaller ones")
    assert lines[-1].endswith("; .sizes has all")
    other = Compressed(found.model, next(size for size in found.sizes if size not in found.frontier), found.sizes)
    assert "and the chosen one" in repr(other)
    assert "and the chosen one" not in repr(Compressed(found.model, found.frontier[0], found.sizes))


def test_sizes_are_compared_if_folds_differ_in_size_and_landmarks_explain_all():
    strings = ["".join(word) for word in np.random.default_rng(0).choice(list("AC"), (47, 12))]  # rank 4 at most
    labels = np.array([word.count("A") > 6 for word in strings])
    model = sm.recipes.nyshd(sm.kernels.Spectrum(2), "auto", 512, random_state=0)
    found = sm.devices.compress(model, strings, labels, cv=3)
    assert {size.n_landmarks for size in found.sizes} == {31, 16, 8}  # 31 of 47 objects are in the smallest fold
    assert len(found.sizes) == 18
    assert len(found.model[0].landmark_indices_) <= 4


def test_sizes_are_compared_if_transformers_make_data_frames():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model, y = sm.recipes.nyshd(sm.kernels.RBF(), 8, 256, random_state=0), X[:, 0] > 0
    plain = sm.devices.compress(model, X, y, cv=3)
    with config_context(transform_output="pandas"):
        found = sm.devices.compress(model, X, y, cv=3)
        assert sm.quantise(found.model, X).loss(X).bits > 0.95
    assert found.sizes == plain.sizes


def test_halves():
    assert _halves(10_000, 256) == [10_000, 5000, 2504, 1256, 632]
    assert _halves(300, 8) == [300, 152, 80, 40, 24]
    assert _halves(20, 8) == [20, 16, 8]
    assert _halves(5, 8) == [5]
    assert _halves(64, 256) == [64]


@pytest.mark.parametrize(
    ("model", "how", "message"),
    [
        (sm.recipes.pca_itq(n_bits=8), {}, "model is GeneralizedNystroemPCA -> ITQ, expected Nystroem -> Sign"),
        (recipe(), {"max_loss": 1}, "max_loss must be a number from 0 to below 1, such as 0.01, got 1"),
        (recipe(), {"max_loss": -1}, "max_loss"),
        (recipe(), {"max_bytes": 0}, "max_bytes"),
        (recipe(), {"cv": 1}, "cv"),
        (recipe(), {"max_bytes": 10}, "max_bytes must be at least [0-9]+, the bytes of .* got 10; allow"),
        (sm.recipes.nyshd(MISMATCH, 16, 256), {}, "the kernel Mismatch.* cannot be quantised"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(model, how, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sm.devices.compress(model, X[:60], Y[:60], **how)
    with pytest.raises(ValueError, match="y has 3 labels for 106 objects"):
        sm.devices.compress(recipe(), X, Y[:3])
