"""Hashing experiments: average precision, descriptors and bound against plain twins, each experiment on little data."""

import itertools
import math

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

import experiments
from experiments import _hashing, hashing_map, hashing_ratio, hashing_scale
from experiments._hashing import (
    FULL,
    METHODS,
    PCA_SIGNS,
    RANDOM,
    UNIFORM,
    PictureSet,
    descriptors,
    expected_average_precision,
    mean_average_precision,
)
from experiments.hashing_ratio import Ratios
from experiments.hashing_scale import Scale, WordRows
from similia.codes import hamming_distances


def _average_precision(relevant):
    hits = np.flatnonzero(relevant)
    return np.mean([(i + 1) / (place + 1) for i, place in enumerate(hits)])


def _over_all_orders(distances, relevant):
    """Mean of the average precision over all orders of the items that respect the distances."""
    levels = [np.flatnonzero(distances == level) for level in np.unique(distances)]
    orders = itertools.product(*(itertools.permutations(level.tolist()) for level in levels))
    return np.mean([_average_precision(relevant[list(itertools.chain(*order))]) for order in orders])


def _counts(distances, relevant, n_levels):
    return [np.bincount(d, minlength=n_levels) for d in (distances, distances[relevant])]


@pytest.mark.parametrize("seed", range(12))
def test_average_precision_is_the_mean_over_all_orders_of_ties(seed):
    random = np.random.default_rng(seed)
    distances = random.integers(0, 4, 8)
    relevant = random.random(8) < 0.5
    relevant[random.integers(8)] = True
    totals, hits = _counts(distances, relevant, 5)
    found = expected_average_precision(totals[None], hits[None])
    assert found == pytest.approx(_over_all_orders(distances, relevant), rel=1e-12)


def test_average_precision_without_ties_by_hand():
    relevant = np.array([[1, 0, 1, 0, 0, 1]])
    assert expected_average_precision(np.ones((1, 6), int), relevant) == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)


def test_average_precision_of_a_long_ranking_by_many_random_orders():
    random = np.random.default_rng(0)
    distances = random.integers(0, 9, 3000)
    relevant = random.random(3000) < 0.3 / (1 + distances)
    totals, hits = _counts(distances, relevant, 9)
    drawn = [_average_precision(relevant[np.lexsort((random.random(3000), distances))]) for _ in range(300)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert expected_average_precision(totals[None], hits[None])[0] == pytest.approx(np.mean(drawn), abs=4 * error)


def test_both_truths_from_codes(monkeypatch):
    monkeypatch.setattr(_hashing, "_ROWS", 3)  # several blocks
    random = np.random.default_rng(1)
    codes, queries = (random.integers(0, 256, (n, 2), dtype=np.uint8) for n in (40, 7))
    relevance = random.integers(0, 4, (7, 40), dtype=np.uint8)
    relevance[2] &= 1  # the third query has no near item
    scores = mean_average_precision(codes, queries, relevance)
    distances = hamming_distances(queries, codes)
    for truth, mask in (("class", relevance % 2 == 1), ("near", relevance >= 2)):
        expected = [
            expected_average_precision(*(c[None] for c in _counts(d, m, 17)))[0]
            for d, m in zip(distances, mask, strict=True)
            if m.any()
        ]
        assert scores[truth] == pytest.approx(np.mean(expected), rel=1e-12)
    nothing = mean_average_precision(codes, queries, relevance & 1)
    assert nothing["class"] == scores["class"]
    assert math.isnan(nothing["near"])


# ---- descriptors


def _pictures(n, side, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, side, side)).astype(np.uint8)


def _descriptor(image):
    """One picture, loop by loop."""
    side = len(image)
    spacing = side / 6
    centres = [(g + 0.5) * spacing - 0.5 for g in range(6)]
    image = image.astype(float)
    dy, dx = np.gradient(image)
    gradients = np.zeros((12, 6, 6))
    gabors = np.zeros((4, 8, 6, 6))
    for r, c in itertools.product(range(side), repeat=2):
        turn = math.atan2(dy[r, c], dx[r, c]) % (2 * math.pi) / math.radians(30)
        low = math.floor(turn)
        for i, j in itertools.product(range(6), repeat=2):
            window = max(0, 1 - abs(r - centres[i]) / spacing) * max(0, 1 - abs(c - centres[j]) / spacing)
            size = window * math.hypot(dx[r, c], dy[r, c])
            gradients[low % 12, i, j] += (1 - (turn - low)) * size
            gradients[(low + 1) % 12, i, j] += (turn - low) * size
    rows, columns = np.mgrid[:side, :side]
    for scale, angle, i, j in itertools.product(range(4), range(8), range(6), range(6)):
        wavelength = spacing * math.sqrt(2) ** scale
        y, x = rows - centres[i], columns - centres[j]
        envelope = np.exp(-2 * (x**2 + y**2) / wavelength**2)
        along = x * math.cos(math.pi * angle / 8) + y * math.sin(math.pi * angle / 8)
        wave = envelope * np.exp(2j * math.pi * along / wavelength)
        wave -= envelope * wave.sum() / envelope.sum()
        gabors[scale, angle, i, j] = abs((wave * image).sum())
    return np.concatenate([np.sqrt(part.ravel() / part.sum()) for part in (gradients, *gabors)])


@pytest.mark.parametrize("side", [16, 28])
def test_descriptors_by_loops(side):
    images = _pictures(2, side)
    found = descriptors(images)
    assert found.shape == (2, 1584)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [_descriptor(image) for image in images], atol=2e-5)


@pytest.mark.same_bits
def test_descriptors_do_not_depend_on_blocks_and_blank_pictures_are_zero():
    images = _pictures(600, 16)
    images[5] = 77
    whole = descriptors(images)
    np.testing.assert_array_equal(whole[256:512], descriptors(images[256:512]))
    np.testing.assert_allclose(np.square(np.delete(whole, 5, axis=0)).sum(axis=1), 5, rtol=1e-4)
    assert not whole[5].any()


# ---- Figure 1


def _blobs(n, d, seed=0, n_classes=5):
    """Classes in few of many directions, the spectrum falling."""
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n)
    axes = random.standard_normal((40, d)) / np.arange(1, 41)[:, None] ** 0.7
    X = (2 * random.standard_normal((n_classes, 40))[y] + random.standard_normal((n, 40))) @ axes
    return (X + 0.3 * random.standard_normal((n, d)) + 3).astype(np.float32), y


def test_split_and_its_truths(monkeypatch):
    monkeypatch.setattr(_hashing, "_ROWS", 7)
    monkeypatch.setattr(_hashing, "NEIGHBOUR", 10)
    X, y = _blobs(200, 12)
    data = _hashing.split(X, y, seed=3, n_queries=20)
    assert (len(data.query), len(data.train)) == (20, 180)
    np.testing.assert_allclose(data.train.mean(axis=0), 0, atol=1e-5)
    order = np.random.default_rng(3).permutation(200)
    queries, rest = order[:20], np.sort(order[20:])
    np.testing.assert_array_equal(data.relevance % 2, y[queries][:, None] == y[rest])
    some = np.random.default_rng([3, 1]).choice(180, 20, replace=False)
    to_train = [sorted(float(np.linalg.norm(X[rest[i]] - X[j])) for j in rest) for i in some]
    radius = np.mean([row[10] for row in to_train])  # the first is the row itself
    near = [[np.linalg.norm(X[q] - X[j]) <= radius for j in rest] for q in queries]
    np.testing.assert_array_equal(data.relevance >= 2, near)


def test_full_pca_of_fewer_bits_is_a_part_of_the_longest():
    X, y = _blobs(1500, 160)
    data = _hashing.split(X, y, 0, 50)
    Z = _hashing._projected(PCA_SIGNS, data, 16, 0)[0]
    other = PCA(16, svd_solver="full").fit_transform(data.train.astype(float))
    np.testing.assert_allclose(np.abs(Z), np.abs(other), atol=2e-3)
    for method in METHODS:
        codes, queries = _hashing.encode(method, data, 16, 0)
        assert (codes.shape, queries.shape, codes.dtype) == ((1450, 2), (50, 2), np.uint8)


@pytest.fixture
def small(monkeypatch):
    """Both sets are 2100 rows of 320 numbers, and 100 queries are drawn."""
    monkeypatch.setattr(hashing_map, "load", lambda task: _blobs(2100, 320))
    monkeypatch.setattr(hashing_ratio, "load", lambda task: _blobs(2100, 320))
    monkeypatch.setattr(_hashing.split, "__defaults__", (100,))


def test_map_against_bits(small, monkeypatch, tmp_path):
    monkeypatch.setattr(hashing_map, "BITS", (16, 32))
    monkeypatch.setattr(hashing_map, "FROM_BITS", 32)
    section = experiments.run("hashing-map", only=["MNIST"], seeds=2)
    by_class, near, goals = section.tables
    assert [row[0] for row in by_class.rows] == list(METHODS)
    assert all("±" in cell for table in (by_class, near) for row in table.rows for cell in row[1:])
    mean = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in near.rows}
    assert mean[FULL][1] > mean[RANDOM][1] > 0.05
    assert (goals.rows[0][:3], goals.rows[0][4]) == (["MNIST", "same class", 16], "no goal")
    assert len(goals.rows) == 4
    section.write(tmp_path)
    assert "random projection + ITQ" in (tmp_path / "reproduction" / "hashing-map.svg").read_text()


def test_goals_say_what_is_missed():
    records = [
        {"set": "A", "method": method, "bits": bits, "seed": 0, "class": score, "near": 0.5}
        for bits in (32, 64)
        for method, score in {**dict.fromkeys(METHODS, 0.4), FULL: 0.5, UNIFORM: 0.489}.items()
    ]
    goals = hashing_map.present(records)[0][-1]
    assert [[row[4], row[6]] for row in goals.rows] == [
        ["no goal", "yes"], ["**no**", "yes"], ["no goal", "**no**"], ["yes", "**no**"],
    ]  # fmt: skip


def test_the_pictures_are_fetched_and_put_together(monkeypatch):
    sets = {"a": Bunch(data=_pictures(3, 16), target=np.arange(3)), "b": Bunch(data=_pictures(2, 16, 1), target=[7, 8])}
    monkeypatch.setattr(_hashing, "fetch", sets.__getitem__)
    X, y = _hashing.load(PictureSet("both", ("a", "b")))
    assert X.shape == (5, 1584)
    assert y.tolist() == [0, 1, 2, 7, 8]


# ---- Figure 2 and Theorem 2


@pytest.mark.long
def test_ratios(small, monkeypatch, tmp_path):
    monkeypatch.setattr(hashing_ratio, "BITS", (16, 32))
    section = experiments.run("hashing-ratio", only=["CIFAR-10"], seeds=1)
    assert len(section.tables) == 6
    assert all(len(table.rows) == 6 for table in section.tables)
    seen = {(r["samples"], r["features"]) for r in section.records if (r["sampling"], r["bits"]) == ("norm", 32)}
    assert (0.05, 0.2) in seen
    assert (0.05, 0.1) not in seen  # 32 features drawn with replacement hold fewer than 32
    features = section.tables[3]
    assert features.columns[:3] == ["bits", "PCA", "10% of features"]
    assert [row[2] == "" for row in features.rows] == [False, False, False, False, True, False]
    assert features.rows[5][2] == features.rows[5][3]  # full PCA has no share
    section.write(tmp_path)
    assert "against features" in (tmp_path / "reproduction" / "hashing-ratio.svg").read_text()


def test_the_bound_is_vacuous_beside_measured_errors(small, monkeypatch):
    monkeypatch.setattr(hashing_ratio, "load", lambda task: _blobs(700, 60))
    monkeypatch.setattr(hashing_ratio.theorem, "__defaults__", (8,))
    records = hashing_ratio.measure(Ratios("Theorem 2", (), bound=True), 1)
    (table,), figure = hashing_ratio.present(records)
    assert figure is None
    assert len(table.rows) == len(hashing_ratio.GAMMAS)
    for record in records:
        assert record["bound"] > 1
        assert record["full"] < record["orthonormal"] < 1 - 1e-6
        assert record["orthonormal"] <= record["paper"] + 1e-6
    assert records[0]["kept"] == 0  # ||C||_1 ||C||_inf is above every squared singular value of W
    assert records[0]["modified"] == 1


def test_the_bound_from_dense_matrices():
    X = _blobs(300, 20, seed=2)[0].astype(float)
    X -= X.mean(axis=0)
    k, gamma = 4, hashing_ratio.GAMMAS[-1]
    record = hashing_ratio.theorem(X, seed=1, k=k)[-1]
    model = hashing_ratio.GeneralizedNystroemPCA(k, 0.05, 0.3, center=False, random_state=1).fit(X)
    A = X.T  # as the paper has it: columns are samples
    m, n, c, r = 20, 300, 15, 6
    C = np.sqrt(n / c) * A[:, model.sample_indices_]
    W = np.sqrt(m / r) * C[model.feature_indices_]
    _, S, Vt = np.linalg.svd(W)
    kept = sum(S[:k] ** 2 >= gamma * np.linalg.norm(C, 1) * np.linalg.norm(C, np.inf))
    U = C @ Vt[:kept].T / S[:kept]
    left, sigma, right = np.linalg.svd(C)
    C_k = left[:, :k] * sigma[:k] @ right[:k]
    best = PCA(k).fit(X)
    lost = np.linalg.norm(X - best.inverse_transform(best.transform(X)))
    a = [u * v / (u + v - 0.5) / (1 - 1 / (2 * max(u, v))) for u, v in ((c, n - c), (r, m - r))]
    eta = [np.sqrt(np.log(40) * a[0] / c), np.sqrt(2 * np.log(40) * a[1] / r)]
    e1, e2 = np.sqrt(4 * k / c), 1 / (gamma * np.sqrt(r))

    def bound(kept):
        E = np.sqrt(2 / gamma) * np.linalg.norm(C - C_k) / np.linalg.norm(C, 2) + np.sqrt(k - kept)
        first = lost + np.sqrt(n * e1 * (1 + eta[0])) * np.linalg.norm(A, axis=0).max()
        return first + (m * e2 * (1 + eta[1]) + E) * np.linalg.norm(A, 2)

    of_A, of_C = (np.linalg.svd(M, compute_uv=False) ** 2 for M in (A, C))
    longest = np.linalg.norm(A, axis=0).max()
    assert hashing_ratio._bound(gamma, 1, k, n, (c, r), of_A, of_C, longest) == pytest.approx(bound(1), rel=1e-9)
    norm = np.linalg.norm(A)
    assert record["kept"] == kept > 0
    assert record["bound"] == pytest.approx(bound(kept) / norm, rel=1e-4)
    assert record["modified"] == pytest.approx(np.linalg.norm(A - U @ U.T @ A) / norm, rel=1e-4)
    assert record["full"] == pytest.approx(lost / norm, rel=1e-4)


# ---- scale

SMALL = Scale("small", 5000, 10, 128, 56)


@pytest.mark.same_bits
def test_rows_are_the_same_however_they_are_read():
    source = WordRows(SMALL, 3)
    whole = source[:]
    assert whole.shape == source.shape == (5000, 1280)
    where = np.array([0, 1, 777, 1999, 2000, 2001, 4999])
    np.testing.assert_array_equal(WordRows(SMALL, 3)[where], whole[where])
    np.testing.assert_array_equal(WordRows(SMALL, 3)[1990:2300], whole[1990:2300])
    np.testing.assert_array_equal(WordRows(Scale("longer", 9000, 10, 128), 3)[:5000], whole)
    assert not np.array_equal(WordRows(SMALL, 4)[:2], whole[:2])
    assert len(np.unique(whole, axis=0)) == 5000
    assert source.rows_read == 5000
    assert source.seconds > 0


def test_rows_are_structured_like_vlad():
    X = WordRows(SMALL, 0)[:]
    np.testing.assert_allclose(np.linalg.norm(X.reshape(5000, 10, 128), axis=2), 1, rtol=1e-5)
    shares = PCA(128).fit(X).explained_variance_ratio_
    ranks = np.arange(1, 33)
    slope = np.polyfit(np.log(ranks), np.log(shares[:32]), 1)[0]
    assert -2 < slope < -0.4  # a power of the rank
    assert shares[:64].sum() > 0.6  # of 32 shared and 32 own latent numbers
    assert shares[100] < 0.2 * shares[32]  # noise is below them


def test_scale_end_to_end(monkeypatch, tmp_path):
    monkeypatch.setattr(hashing_scale, "TASKS", (SMALL,))
    held = np.ones(600_000_000, np.uint8)
    section = experiments.run("hashing-scale", seeds=1)
    (record,) = section.records
    assert record["peak"] < held.nbytes < hashing_scale.peak_bytes()  # a child's peak is not what its parent holds
    assert record["rows_read"] == 250  # of 5 %, no other row
    assert record["bytes_read"] == 250 * 1280 * 4
    assert record["codes"] == 5000 * 7
    assert 50e6 < record["peak, fit"] <= record["peak"]
    assert 0 < record["error"] < 0.8
    assert all(record[key] > 0 for key in ("fit", "making, fit", "projection", "sgemm", "itq", "coding", "making, all"))
    goals = section.tables[2]
    assert goals.rows[0] == ["bytes read by the fit / the sampled share", "1.1", "1.00", "yes"]
    section.write(tmp_path)
    assert "250 (5.00%)" in (tmp_path / "reproduction" / "hashing-scale.md").read_text()
