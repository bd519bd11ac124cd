"""Experiments on the hyperspherical heat kernel: protocol, representatives and readers against plain twins."""

import gzip
import itertools
import os

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from experiments import _heat_svm, heat_curves, heat_sp500, heat_tcga, heat_vc, heat_webkb
from experiments._heat_svm import (
    CHOICES,
    COSINE,
    EXACT,
    KERNELS,
    LINEAR,
    MAPPED,
    N_FOLDS,
    NON_NESTED,
    PARAMETRIX,
    RBF,
    families,
    score,
    stratified,
)
from experiments._maf import read_maf
from experiments._report import Section

needs_data = pytest.mark.skipif("SIMILIA_DATA" not in os.environ, reason="SIMILIA_DATA names no folder of data sets")


@pytest.fixture
def few_settings(monkeypatch):
    monkeypatch.setattr(_heat_svm, "CONTRASTS", (0.5, 4.0))
    monkeypatch.setattr(_heat_svm, "WIDTHS", (0.5, 2.0))
    monkeypatch.setattr(_heat_svm, "CS", (1.0, 10.0))


def _word_counts(n, n_words, seed=0, n_classes=4):
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n)
    topics = random.dirichlet(np.full(n_words, 0.5), n_classes)
    lengths = 1 + random.poisson(random.gamma(2, 15, len(y)))
    return np.array([random.multinomial(m, topics[c]) for m, c in zip(lengths, y, strict=True)], dtype=float), y


# ---- the six kernels and the protocol


def test_six_kernels_by_their_formulas():
    X, _ = _word_counts(5, 12)
    found = families(X)
    assert tuple(found) == KERNELS
    U = np.sqrt(X / X.sum(axis=1, keepdims=True))
    cosine = np.clip(U @ U.T, -1, 1)
    theta = np.arccos(np.minimum(cosine, 1))
    pairs = np.triu_indices(len(X), 1)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    expected = {
        LINEAR: X @ X.T / np.mean((X**2).sum(axis=1)),
        RBF: np.exp(-0.25 * distances / np.median(distances[pairs])),
        COSINE: cosine,
        PARAMETRIX: np.exp(-(theta**2) / (4 * (1 / (2 * 0.25)))),  # t = 1 / 2a
        EXACT: _heat_series(cosine, 12, np.log(12 / 0.25) / 11),
        MAPPED: rbf_kernel(U, gamma=0.25 / 2),
    }
    for kernel, K in expected.items():
        parameter = 1.0 if kernel in (LINEAR, COSINE) else 0.25
        np.testing.assert_allclose(found[kernel].gram_of(parameter), K, atol=1e-7, err_msg=kernel)
    assert max(found[EXACT].parameters) == 8  # the contrast is below n = 12


def _heat_series(x, n, t):
    """Sum of w_l P_l(x) / sum of w_l by the three-term recurrence."""
    before, now = np.ones_like(x), x
    w = [1.0]
    total = before.copy()
    for degree in range(1, 60):
        w.append(w[-1] * (1 + 2 / (2 * degree + n - 4)) * (degree + n - 3) / degree * np.exp(-(2 * degree + n - 3) * t))
        total = total + w[degree] * now
        before, now = now, ((2 * degree + n - 2) * x * now - degree * before) / (degree + n - 2)
    return total / sum(w)


def test_scores_by_plain_loops(few_settings):
    X, y = _word_counts(15, 20, seed=1, n_classes=3)
    records = score(X, y, seed=5)
    assert len(records) == len(KERNELS) * 2 * N_FOLDS
    for kernel in (LINEAR, RBF, MAPPED):
        family = families(X)[kernel]
        accuracies = {}
        for C, parameter in itertools.product((1.0, 10.0), family.parameters):
            K = family.gram_of(parameter)
            accuracies[parameter, C] = [
                100
                * SVC(kernel="precomputed", C=C, break_ties=True)
                .fit(K[np.ix_(a, a)], y[a])
                .score(K[np.ix_(b, a)], y[b])
                for a, b in StratifiedKFold(N_FOLDS, shuffle=True, random_state=5).split(X, y)
            ]
        best = max(accuracies, key=lambda key: np.mean(accuracies[key]))  # the first of equal ones has the smaller C
        assert (best == (2.0, 10.0)) == (kernel == RBF)  # here neither is the first of its grid
        found = [r for r in records if (r["kernel"], r["choice"]) == (kernel, NON_NESTED)]
        np.testing.assert_allclose([r["accuracy"] for r in found], accuracies[best], atol=1e-3)
        assert {(r["parameter"], r["C"]) for r in found} == {best}
        assert all((r["gap"] == "") == (kernel != EXACT) for r in found)


def test_the_printed_gap_is_the_largest_over_pairs(few_settings):
    X, y = _word_counts(15, 20, seed=4, n_classes=2)
    U = np.sqrt(X / X.sum(axis=1, keepdims=True))
    cosine = np.minimum(U @ U.T, 1)
    for record in [r for r in score(X, y, 0) if r["kernel"] == EXACT]:
        a = record["parameter"]
        heat = _heat_series(cosine, 20, np.log(20 / a) / 19)
        assert record["gap"] == pytest.approx(np.abs(heat - np.exp(-a * (1 - cosine))).max(), rel=1e-5)


def test_folds_are_stratified_and_depend_on_the_seed():
    y = np.repeat([0, 1], [40, 25])
    folds = stratified(y, 1)
    assert all(np.bincount(folds[y == label]).tolist() == [n] * N_FOLDS for label, n in ((0, 8), (1, 5)))
    assert not np.array_equal(folds, stratified(y, 2))


def _records(accuracies, name="400 words", seeds=2):
    """Records of `seeds` runs; accuracies[kernel] is that of the first fold, the others follow by 1."""
    return [
        {"set": name, "kernel": kernel, "choice": choice, "seed": seed, "fold": fold, "accuracy": accuracy + fold % 2,
         "parameter": 2.0, "C": 10.0, "gap": 3e-3 if kernel == EXACT else ""}
        for kernel, accuracy in accuracies.items()
        for choice in CHOICES
        for seed in range(seeds)
        for fold in range(N_FOLDS)
    ]  # fmt: skip


def test_tables_by_hand():
    records = _records({LINEAR: 80.0, RBF: 90.0, COSINE: 91.0, PARAMETRIX: 91.0, EXACT: 91.0, MAPPED: 91.5})
    shown, ahead, nested, _ = _heat_svm.accuracy_tables(records, "pages", {"400 words": (1.0, 2.0, 3.0, 4.0, 5.0)})
    assert shown.rows[0] == ["400 words", "80.4 ± 0.0", "90.4 ± 0.0", *["91.4 ± 0.0"] * 3, "91.9 ± 0.0"]
    assert shown.rows[1] == ["paper", "1.0", "2.0", "3.0", "4.0", "5.0", ""]
    assert len(nested.rows) == 1  # the paper has no nested choice
    assert ahead.rows[0][1] == "+11.0 ± 0.0 (0.0)"
    (row,) = _heat_svm.significance_table(records).rows
    assert row[1] == "linear -11.0; RBF -1.0; RBF after the map +0.5"
    (row,) = _heat_svm.choice_table(records, "pages").rows
    once, twice = "10 (2 of 2)", "2 / 10 (2 of 2)"
    assert row == ["400 words", once, twice, once, *[twice] * 3, "3.0e-03"]


def test_a_noisy_difference_is_not_significant():
    records = _records(dict.fromkeys(KERNELS, 90.0))
    for record in records:
        if record["kernel"] == RBF:
            record["accuracy"] += (-1) ** (record["fold"] + record["seed"]) * 5 - 1
    assert _heat_svm.significance_table(records).rows == [["400 words", "none", "none"]]


def test_goals_say_what_is_missed():
    name = heat_webkb.TASKS[3].name
    good = {LINEAR: 85.0, RBF: 86.0, COSINE: 91.0, PARAMETRIX: 92.0, EXACT: 92.0, MAPPED: 92.2}
    row, nested = heat_webkb.goals(_records(good, name)).rows
    assert row[2:] == [pytest.approx(92.4), "yes", "-0.20", "yes", "+5.0 ± 0.0", "yes"]
    assert nested[3] == "no goal"
    row, _ = heat_webkb.goals(_records({**good, EXACT: 91.5, RBF: 91.0}, name)).rows
    assert row[3:] == ["**no**", "-0.70", "**no**", "+0.0 ± 0.0", "**no**"]
    noisy = _records(good, name)
    for record in noisy:
        if record["kernel"] == RBF:
            record["accuracy"] += (-1) ** (record["fold"] + record["seed"]) * 20
    assert heat_webkb.goals(noisy).rows[0][-1] == "**no**"
    row, _ = heat_sp500.goals(_records(good, "475 returns")).rows
    assert row[2:] == [MAPPED, "-0.20", "0.00", "**no**"]
    row, _ = heat_sp500.goals(_records({**good, EXACT: 92.2}, "475 returns")).rows
    assert row[2:] == [EXACT, "+0.00", "0.00", "yes"]


# ---- web pages


def _closest_by_means(X, first):
    """Lloyd's iterations with centroids, and the row next to each."""
    centres = X[first]
    labels = None
    while True:
        new = np.array([np.argmin([np.sum((x - c) ** 2) for c in centres]) for x in X])
        if labels is not None and np.array_equal(new, labels):
            return [int(np.argmin([np.sum((x - c) ** 2) for x in X])) for c in centres]
        labels = new
        centres = np.array([X[labels == k].mean(axis=0) for k in np.unique(labels)])
        labels = np.unique(labels, return_inverse=True)[1]


def _squared(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


@pytest.mark.parametrize("seed", range(5))
def test_k_means_by_centroids(seed):
    X = np.random.default_rng(seed).normal(size=(40, 6))  # no ties, which rounding would decide
    first = heat_webkb.first_centroids(_squared(X), 7, np.random.default_rng(seed))
    found = heat_webkb.closest_to_centroids(_squared(X), 7, np.random.default_rng(seed))
    assert found.tolist() == _closest_by_means(X, first)


def test_first_centroids_are_far_apart_and_as_many_as_there_are_places():
    random = np.random.default_rng(0)
    places = 100 * np.arange(6)[:, None] + np.zeros((1, 3))
    X = np.repeat(places, 5, axis=0)
    for n, expected in ((4, 4), (6, 6), (9, 6)):
        chosen = heat_webkb.first_centroids(_squared(X), n, random)
        assert len({row // 5 for row in chosen}) == len(chosen) == expected


def test_representatives_are_the_middles_of_blobs():
    random = np.random.default_rng(1)
    blobs = [50 * c + np.vstack([np.zeros(2), random.normal(size=(8, 2))]) for c in range(5)]
    X = np.vstack([blob - blob[1:].mean(axis=0) * (np.arange(9) > 0)[:, None] for blob in blobs])
    found = heat_webkb.representatives(X, 5, 10, np.random.default_rng(0))
    assert found.tolist() == [0, 9, 18, 27, 36]


def test_representatives_fill_up_with_rows_drawn_by_lot():
    X = np.ones((20, 3))
    drawn = [tuple(heat_webkb.representatives(X, 4, 3, np.random.default_rng(s)).tolist()) for s in range(5)]
    assert all(len(set(rows)) == 4 and list(rows) == sorted(rows) for rows in drawn)
    assert len(set(drawn)) > 1
    assert heat_webkb.representatives(X, 20, 1, np.random.default_rng(0)).tolist() == list(range(20))


def test_words_are_the_most_frequent_ones():
    pages = [["b", "a", "b"], [], ["c", "a", "b", "d"], ["d"]]
    X, totals = heat_webkb.count_words(pages, 3)  # of a and d, which both are there twice, both
    assert (X.tolist(), totals) == ([[2, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]], [3, 2, 2, 1])
    X, totals = heat_webkb.count_words([["b", "b", "b"], ["a"], ["a"]], 1, by_pages=True)
    assert (X.tolist(), totals) == ([[0], [1], [1]], [2, 1])


@pytest.fixture
def web_folder(tmp_path, monkeypatch):
    """Four classes of 20 pages of 30 words, and a page without any."""
    X, y = _word_counts(20, 30, seed=7)
    names = np.array(["course", "faculty", "project", "student"])
    lines = [
        f"{names[label]}\t{' '.join(itertools.chain(*([f'w{j}'] * int(c) for j, c in enumerate(row))))}"
        for row, label in zip(X, y, strict=True)
    ]
    (tmp_path / "vectors").mkdir()
    with gzip.open(tmp_path / "vectors" / heat_webkb.FILE, "wt", encoding="utf-8") as file:
        file.write("\n".join([*lines, "student\t"]) + "\n")
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    monkeypatch.setattr(heat_webkb, "SHARES", {25: 10})
    monkeypatch.setattr(heat_webkb, "N_CLUSTERINGS", 2)
    return tmp_path


@pytest.mark.long
def test_web_pages_end_to_end(web_folder, few_settings, monkeypatch):
    tasks = (heat_webkb.Pages(25, 10, (1.0, 2.0, 3.0, 4.0, 5.0)), heat_webkb.Pages(25, 15, (1.0, 2.0, 3.0, 4.0, 5.0)))
    monkeypatch.setattr(heat_webkb, "TASKS", tasks)
    monkeypatch.setattr(heat_webkb, "FEWEST", 25)
    monkeypatch.setattr(heat_webkb, "LARGEST", 15)
    records = [record for task in tasks for record in heat_webkb.measure(task, 2)]
    section = Section("heat-webkb", heat_webkb.TITLE, heat_webkb.TEXT, records, heat_webkb.present)
    best, *_, words = section.tables
    assert [row[0] for row in best.rows] == ["25 words, 10 a class", "paper", "25 words, 15 a class", "paper"]
    assert float(best.rows[2][KERNELS.index(EXACT) + 1].split()[0]) > 60  # of four classes
    assert words.rows[0][0] == "25"
    assert words.rows[0][4] == 1
    section.write(web_folder)
    assert "exact" in (web_folder / "reproduction" / "heat-webkb.svg").read_text()
    assert heat_webkb._figure(records, [heat_webkb.Pages(25, 15, (), by_pages=True)]) is None  # not the paper's rule


def test_balanced_pages_are_of_all_classes_and_differ_by_seed(web_folder):
    X, y, about = heat_webkb.load(25)
    first, second = (heat_webkb.balanced(X, y, 6, seed) for seed in (0, 1))
    assert np.unique(y[first], return_counts=True)[1].tolist() == [6] * 4
    assert not np.array_equal(first, second)
    assert np.array_equal(first, heat_webkb.balanced(X, y, 6, 0))
    assert about["pages without"] == 1


def test_missing_files_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"put vectors/webkb_stemmed\.tsv\.gz into a folder and name it"):
        heat_webkb.load(393)
    monkeypatch.delenv("SIMILIA_DATA")
    with pytest.raises(FileNotFoundError, match=r"vectors/sp500_fin_it\.npz"):
        heat_sp500.load(475)


@needs_data
def test_the_real_web_pages():
    X, y, about = heat_webkb.load(393)
    assert X.shape == (4199 - 38, 393)
    assert np.unique(y, return_counts=True)[1].tolist() == [926, 1116, 501, 1618]
    assert about == {"words by the paper's rule": 261, "total of the rarest": 296, "pages without": 38}


# ---- stocks


def test_columns_are_thinned_to_the_papers_numbers():
    X = np.arange(475.0)[None]
    for task, step in zip(heat_sp500.TASKS, range(1, 6), strict=True):
        thin = heat_sp500.thin(X, task.n_returns)
        assert thin.shape[1] == task.n_returns
        np.testing.assert_array_equal(thin[0], np.arange(0, 475, step))


def test_stocks_end_to_end(few_settings, monkeypatch, tmp_path):
    random = np.random.default_rng(0)
    y = np.repeat(["Financials", "Information Technology"], [12, 11])
    returns = 0.01 * (
        random.normal(size=(23, 40)) + np.where(y == "Financials", 1, -1)[:, None] * random.normal(size=40)
    )
    (tmp_path / "vectors").mkdir()
    np.savez(tmp_path / "vectors" / heat_sp500.FILE, returns=returns.astype(np.float32), sector=y)
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    task = heat_sp500.Returns(20, (1.0, 2.0, 3.0, 4.0, 5.0))
    monkeypatch.setattr(heat_sp500, "TASKS", (task,))
    records = heat_sp500.measure(task, 2)
    section = Section("heat-sp500", heat_sp500.TITLE, heat_sp500.TEXT, records, heat_sp500.present)
    best = section.tables[0]
    assert best.rows[0][0] == "20 returns"
    assert best.rows[0][1 + KERNELS.index(EXACT)] == "100.0 ± 0.0"
    assert best.rows[1] == ["paper", "1.00", "2.00", "3.00", "4.00", "5.00", ""]
    section.write(tmp_path)


@needs_data
def test_the_real_stocks():
    X, y = heat_sp500.load(95)
    assert X.shape == (121, 95)
    assert np.unique(y, return_counts=True)[1].tolist() == [61, 60]


# ---- mutations

MAF = """#version 2.4
#comment
Hugo_Symbol\tCenter\tTumor_Sample_Barcode
EGFR\tx\tTCGA-02-0003-01A-01D
EGFR\tx\tTCGA-02-0003-01B-77D
TP53\tx\tTCGA-06-0001-01A-01D
EGFR\tx\tTCGA-06-0001-01A-01D

"""


@pytest.mark.parametrize("ending", [".maf", ".maf.gz"])
def test_mutations_are_counted(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(MAF.encode()) if ending.endswith("gz") else MAF.encode())
    counts, patients, genes = read_maf(path)
    assert patients == ["TCGA-02-0003", "TCGA-06-0001"]
    assert genes == ["EGFR", "TP53"]
    assert counts.tolist() == [[2, 0], [1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAF.replace("Hugo_Symbol", "Gene"), "line 3: there is no column Hugo_Symbol, found Gene, Center"),
        (MAF + "TP53\tx\n", "line 9 has 2 columns, expected at least 3"),
        ("\n".join(MAF.split("\n")[:3]), "holds no mutation"),
        ("", "holds no mutation"),
    ],
)
def test_maf_files_of_another_kind_are_refused(tmp_path, text, message):
    path = tmp_path / "a.maf"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_maf(path)


def test_without_a_file_the_papers_rows_stay(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    records = [record for task in heat_tcga.TASKS for record in heat_tcga.measure(task, 3)]
    section = Section("heat-tcga", heat_tcga.TITLE, heat_tcga.TEXT, records, heat_tcga.present)
    (table,) = section.tables
    assert table.rows[4:6] == [["NFX1", *["missing"] * 6], ["paper", 73.0, 81.2, 80.9, 82.7, 82.5, ""]]
    section.write(tmp_path)
    assert "missing" in (tmp_path / "reproduction" / "heat-tcga.md").read_text()


def test_with_a_file_the_rows_are_measured(few_settings, monkeypatch, tmp_path):
    random = np.random.default_rng(2)
    lines = []
    for patient in range(60):
        mutant = patient < 12
        weights = np.where((np.arange(12) < 6) == mutant, 8.0, 1.0)
        genes = [f"G{j}" for j in random.choice(12, 15, p=weights / weights.sum())]
        genes += ["NFX1"] * mutant + ["RARE"] * (patient == 0)
        lines += [f"{gene}\tx\tTCGA-00-{patient:04d}-01A" for gene in genes]
    (tmp_path / "vectors").mkdir()
    head = "Hugo_Symbol\tCenter\tTumor_Sample_Barcode"
    (tmp_path / "vectors" / "tcga_gbm.maf").write_text("\n".join([head, *lines]) + "\n")
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    monkeypatch.setattr(heat_tcga, "N_CLUSTERINGS", 3)
    records = heat_tcga.measure(heat_tcga.TASKS[2], 1)
    tables, figure = heat_tcga.present([*records, {"set": "ZMYM4", "seed": 0, "missing": "yes"}])
    assert figure is None
    assert tables[0].rows[0][0] == "NFX1"
    assert float(tables[0].rows[0][1 + KERNELS.index(EXACT)].split()[0]) > 90
    assert tables[-1].rows[0] == ["ZMYM4", *["missing"] * 6]
    counts, _, genes = read_maf(tmp_path / "vectors" / "tcga_gbm.maf")
    X, mutant = heat_tcga.balanced(counts, genes, "NFX1", 0)
    assert X.shape == (24, 12)  # neither the target nor the rare gene
    assert mutant.sum() == 12
    with pytest.raises(ValueError, match="RARE splits the patients into 1 and 59, expected 5 or more each"):
        heat_tcga.balanced(counts, genes, "RARE", 0)
    with pytest.raises(ValueError, match="there is no mutation of ZMYM4"):
        heat_tcga.balanced(counts, genes, "ZMYM4", 0)


# ---- curves


def test_walks_stay_on_the_sphere_and_diffuse_as_they_should():
    t = 0.3
    paths = heat_curves.walks(t, 4000, 60, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(paths, axis=2), 1, rtol=1e-12)
    cosines = paths[:, -1, 2]
    error = cosines.std() / np.sqrt(len(cosines))
    assert cosines.mean() == pytest.approx(np.exp(-2 * t), abs=4 * error)
    second = (3 * cosines**2 - 1) / 2  # of degree 2: exp(-6 t)
    assert second.mean() == pytest.approx(np.exp(-6 * t), abs=4 * second.std() / np.sqrt(len(cosines)))


def test_curves_by_their_formulas():
    theta = np.linspace(0, 3.1, 50)
    np.testing.assert_allclose(heat_curves.parametrix(theta, 5, 0.2, "gaussian"), np.exp(-(theta**2) / 0.8), atol=1e-12)
    expected = _heat_series(np.cos(theta), 5, 0.2)
    np.testing.assert_allclose(heat_curves.exact(theta, 5, 0.2), expected, atol=1e-11)
    # n = 4 has the slope (sum of w_l l (l + 2)) / (3 sum of w_l) with w_l = (l + 1)^2 exp(-l (l + 2) t)
    degree = np.arange(40)
    w = (degree + 1) ** 2 * np.exp(-degree * (degree + 2) * 0.3)
    assert heat_curves.curvature(4, 0.3) == pytest.approx(np.sum(w * degree * (degree + 2)) / (3 * w.sum()), rel=1e-3)


@pytest.mark.long
def test_curves_end_to_end(monkeypatch, tmp_path):
    monkeypatch.setattr(heat_curves, "N_WALKS", 50)
    monkeypatch.setattr(heat_curves, "N_STEPS", 10)
    records = [record for task in heat_curves.TASKS for record in heat_curves.measure(task, 2)]
    section = Section("heat-curves", heat_curves.TITLE, heat_curves.TEXT, records, heat_curves.present)
    walked, curves, expansions = section.tables
    assert [row[0] for row in walked.rows] == ["0.5", "1", "1.5", "2"]
    assert len(curves.rows) == 12
    at_limit = next(row for row in expansions.rows if row[:2] == [100, "1.00"])
    assert at_limit[4].startswith("**")  # order 0 is above 1 from t = 3 / (n - 2) on
    assert not next(row for row in expansions.rows if row[:2] == [100, "0.30"])[4].startswith("**")
    smallest = next(row for row in expansions.rows if row[:2] == [10, "0.01"])
    assert [float(cell) for cell in smallest[3:]] == sorted((float(cell) for cell in smallest[3:]), reverse=True)
    section.write(tmp_path)
    assert "log n / n" in (tmp_path / "reproduction" / "heat-curves.svg").read_text()
    assert len(heat_curves.present(heat_curves.measure(heat_curves.TASKS[1], 1))[0]) == 1


# ---- effective sample size


def test_correlations_by_scipy():
    random = np.random.default_rng(0)
    a, b, of = random.integers(0, 9, 30), random.normal(size=30), np.repeat([1, 2, 3], 10)
    assert heat_vc._spearman(a, b) == pytest.approx(stats.spearmanr(a, b)[0])
    expected = np.mean([stats.spearmanr(a[of == g], b[of == g])[0] for g in (1, 2, 3)])
    assert heat_vc._within(a, b, of) == pytest.approx(expected)
    assert np.isnan(heat_vc._spearman([1, 1, 1], [1, 2, 3]))
    a[of == 2] = 0
    assert heat_vc._within(a, b, of) == pytest.approx(
        np.mean([stats.spearmanr(a[of == g], b[of == g])[0] for g in (1, 3)])
    )


def test_effective_sample_sizes_end_to_end(few_settings, monkeypatch, tmp_path):
    monkeypatch.setattr(heat_vc, "CS", (1.0, 10.0))
    X, y = _word_counts(20, 30, seed=5, n_classes=2)
    monkeypatch.setattr(heat_vc, "load", lambda task: (X, y, "sqrt"))
    tasks = [heat_vc.Subsamples(heat_vc.WEB, ("a", "b"), (8, 16)), heat_vc.Subsamples(heat_vc.STOCKS, 95, (8, 20))]
    assert [task.name for task in tasks] == ["a against b", "S&P 500, 95 returns"]
    records = [record for task in tasks for record in heat_vc.measure(task, 2)]
    for record in records:
        n = 2 * record["size"]
        assert record["effective"] == pytest.approx(n / record["bound"])
        assert record["bound"] == pytest.approx(record["radius"] ** 2 / record["margin"] ** 2)
        assert record["bound, hard"] >= record["bound"] * (1 - 1e-3)
    section = Section("heat-vc", heat_vc.TITLE, heat_vc.TEXT, records, heat_vc.present)
    means, related, ratios = section.tables
    assert [row[:2] for row in means.rows] == [["WebKB", 8], ["WebKB", 16], ["S&P 500", 8], ["S&P 500", 20]]
    assert len(related.rows) == 8
    assert len(ratios.rows) == 2
    section.write(tmp_path)
    assert "exact / RBF" in (tmp_path / "reproduction" / "heat-vc.svg").read_text()
