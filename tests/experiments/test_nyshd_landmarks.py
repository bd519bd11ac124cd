"""Landmarks: the law of the k-DPP against the enumeration of all sets, and the experiment end to end on promoters."""

import collections

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

import experiments
from experiments import nyshd_landmarks
from experiments._dpp import k_dpp, pooled_k_dpp
from naive import similarities as naive
from similia.embeddings.landmarks import PrecomputedGram


def kernel_matrix(n, rank, seed=0):
    factor = np.random.default_rng(seed).normal(size=(n, rank))
    return factor @ factor.T


def assert_follows(draw, law, n_draws=2000):
    """Hold the frequencies of drawn sets against `law`: chi-square at 1e-4; sets of probability 0 never occur."""
    rng = np.random.default_rng(5)
    with threadpool_limits(limits=1):
        counts = collections.Counter(tuple(sorted(draw(rng).tolist())) for _ in range(n_draws))
    possible = {subset: p for subset, p in law.items() if p > 1e-9}
    assert set(counts) <= set(possible)
    chi_square = sum((counts[subset] - n_draws * p) ** 2 / (n_draws * p) for subset, p in possible.items())
    assert chi_square <= stats.chi2.ppf(1 - 1e-4, len(possible) - 1)


@pytest.mark.parametrize(("k", "rank"), [(1, 6), (2, 6), (3, 6), (5, 6), (3, 4), (4, 4)])
def test_k_dpp_draws_sets_by_their_determinants(k, rank):
    L = kernel_matrix(6, rank)
    assert_follows(lambda rng: k_dpp(L, k, rng), naive.k_dpp_law(L, k))


def test_products_of_many_eigenvalues_stay_in_the_range_of_floats():
    L = kernel_matrix(60, 60)
    for scale in (2.0**-500, 2.0**500):
        draws = [k_dpp(matrix, 20, np.random.default_rng(0)) for matrix in (L, scale * L)]
        np.testing.assert_array_equal(*draws)


def test_k_dpp_of_equal_eigenvalues():
    L = np.diag([2.0, 2.0, 2.0, 1.0])
    L[0, 1] = L[1, 0] = 2.0  # eigenvalues 4, 2, 1, 0: objects 0 and 1 are the same
    assert_follows(lambda rng: k_dpp(L, 2, rng), naive.k_dpp_law(L, 2))
    assert_follows(lambda rng: k_dpp(np.eye(5), 2, rng), naive.k_dpp_law(np.eye(5), 2))


@pytest.mark.parametrize("n_pool", [3, 4, 6])
def test_a_pool_mixes_the_laws_of_all_pools(n_pool):
    L = kernel_matrix(6, 6, seed=1) * np.outer([1, 1, 1, 2, 2, 3], [1, 1, 1, 2, 2, 3])
    law = naive.pooled_k_dpp_law(L, 2, n_pool)
    assert_follows(lambda rng: pooled_k_dpp(PrecomputedGram(L), 2, rng, n_pool), law)


def test_a_pool_of_few_directions_gives_as_many_landmarks():
    L = kernel_matrix(40, 5)
    for seed in range(20):
        found = pooled_k_dpp(PrecomputedGram(L), 12, np.random.default_rng(seed), 30)
        assert len(np.unique(found)) == len(found) == 5
        np.testing.assert_allclose(naive.nystroem(L, found), L, atol=1e-8 * L.max())


def test_draws_do_not_depend_on_last_bits():
    """Stands for another processor, whose eigenvectors differ in their last bits and in their signs."""
    L = kernel_matrix(60, 60)
    noise = np.random.default_rng(1).normal(size=L.shape) * 1e-14
    other = L * (1 + noise + noise.T)
    assert (other != L).any()
    for seed in range(50):
        draws = [k_dpp(matrix, 20, np.random.default_rng(seed)) for matrix in (L, other)]
        np.testing.assert_array_equal(*draws)


def test_tables_by_hand():
    records = [
        {"set": one, "landmarks": name, "count": count, "seed": seed, "accuracy": accuracy, "unexplained": share}
        for one, name, count, seed, accuracy, share in [
            ("a", "uniform", 8, 0, 60.0, 0.5), ("a", "uniform", 8, 1, 70.0, 0.3), ("a", "uniform", 16, 0, 80.0, 0.1),
            ("a", "rpcholesky", 8, 0, 70.0, 0.6), ("a", "rpcholesky", 8, 1, 72.0, 0.2),
            ("a", "rpcholesky", 16, 0, 80.0, 0.1),
            ("b", "uniform", 8, 0, 50.0, 0.2), ("b", "rpcholesky", 8, 0, 52.0, 0.1),
        ]
    ]  # fmt: skip
    (gains, missed, table), figure = nyshd_landmarks.present(records)
    row = dict(zip(gains.columns, gains.rows[0], strict=True))
    # set a: 6 with 8 landmarks and 0 with 16, so 3 in the mean; set b: 2
    assert (row["8"], row["16"], row["32"], row["all"]) == ("4.0 ± 2.0", "0.0 ± 0.0", "", "2.5 ± 0.5")
    row = dict(zip(missed.columns, missed.rows[0], strict=True))
    assert (row["8"], row["16"], row["32"], row["all"]) == ("30.00", "10.00", "", "22.50")  # a: 40, 10; b: 20
    assert table.rows[0][:4] == ["a", "uniform", "65.0 ± 5.0", "80.0 ± 0.0"]
    assert figure.axes[0].lines[0].get_xdata().tolist() == [3, 4]


def test_experiment_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(nyshd_landmarks, "COUNTS", (8, 64, 512))
    section = experiments.run("nyshd-landmarks", only=["Promoter"], seeds=1)
    section.write(tmp_path)
    assert "<svg" in (tmp_path / "reproduction" / "nyshd-landmarks.svg").read_text()
    assert len(section.records) == 2 * len(nyshd_landmarks.CHOICES)  # 512 are more than there are
    assert {nyshd_landmarks.SMALL_POOL_DPP, nyshd_landmarks.LARGE_POOL_DPP} < {*nyshd_landmarks.CHOICES}
    for few, many in zip(section.records[::2], section.records[1::2], strict=True):
        assert 0 < many["unexplained"] < few["unexplained"] < 1
        assert many["accuracy"] > 60
