"""The parametrix kernel and the expansion: coefficients derived with sympy, the exact kernel as witness, its limits."""

import csv
import pickle
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import sympy
from sklearn.base import clone

from experiments.parametrix import Parametrix, quotient_terms
from similia.kernels.heat import HypersphericalHeat
from similia.kernels.hypersphere import to_hypersphere, versines

REFERENCE = Path(__file__).parents[1] / "reference" / "A_heat_kernel.csv"
theta, m, C = sympy.symbols("theta m C")  # C stands for cot(theta)


def derivative(f):
    """d/d(theta) of an expression in theta and cot(theta)."""
    return sympy.diff(f, theta) - (1 + C**2) * sympy.diff(f, C)


def transported(a):
    """The right side of the transport equation, Laplacian(u0 a) / u0 with u0 = (theta / sin theta)^m."""
    w = m * (1 / theta - C)  # u0' / u0
    first = derivative(a) + w * a
    return derivative(first) + w * first + 2 * m * C * first


def coefficients():
    """a_1 and a_2 as printed in the head of the module."""
    c, h = m * (m - 1), (1 - theta * C) / theta**2
    a1 = m**2 - c * h
    a2 = a1**2 / 2 - c * (theta * derivative(h) + (2 * m - 1) * (h - sympy.Rational(1, 3))) / theta**2
    return a1, a2


def at_zero(f):
    """The limit of an expression in theta and cot(theta) at theta = 0, from the series of cot."""
    cot = sympy.series(sympy.cot(theta), theta, 0, 8).removeO()
    numerator, denominator = sympy.fraction(sympy.together(f.subs(C, cot)))
    numerator, denominator = (sympy.Poly(sympy.expand(p), theta) for p in (numerator, denominator))
    lowest = min(power for (power,) in denominator.monoms())
    assert min(power for (power,) in numerator.monoms()) >= lowest  # no pole
    return sympy.simplify(numerator.coeff_monomial(theta**lowest) / denominator.coeff_monomial(theta**lowest))


def test_coefficients_solve_the_transport_equations():
    # theta a_k' + k a_k = Laplacian(u0 a_(k-1)) / u0; of its solutions one is finite at 0.
    a1, a2 = coefficients()
    for k, before, a in ((1, sympy.Integer(1), a1), (2, a1, a2)):
        left = theta * derivative(a) + k * a
        assert sympy.simplify(sympy.expand(left - transported(before))) == 0
        at_zero(a)
    assert sympy.expand(at_zero(a1) - (2 * m + 1) * 2 * m / 6) == 0  # (n - 1)(n - 2) / 6


@pytest.mark.parametrize("n", [3, 4, 10, 50, 1312])
def test_terms_are_those_of_the_quotient(n):
    a1, a2 = (a.subs(m, sympy.Rational(n - 2, 2)) for a in coefficients())
    a1_0, a2_0 = at_zero(a1), at_zero(a2)
    b1, b2 = a1 - a1_0, a2 - a2_0 - a1_0 * (a1 - a1_0)  # of (1 + a1 t + a2 t^2) / (1 + a1(0) t + a2(0) t^2)
    angles = np.array([1e-8, 1e-4, 0.01, 0.3, 0.7499, 0.7501, 1.0, 1.5, 2.5, 3.1])
    computed = quotient_terms(angles, n)
    with mpmath.workdps(80):
        for number, b in enumerate((b1, b2)):
            exact = sympy.lambdify(theta, b.subs(C, sympy.cot(theta)), "mpmath")
            expected = [float(exact(mpmath.mpf(float(angle)))) for angle in angles]
            np.testing.assert_allclose(computed[number], expected, rtol=1e-11)


def reference_rows(n, t):
    with REFERENCE.open() as file:
        return [row for row in csv.DictReader(file) if (int(row["n"]), float(row["t"])) == (n, t)]


@pytest.mark.parametrize(
    ("n", "t", "errors"),
    [
        (3, 1e-3, (2e-3, 2e-7, 7e-11, 1e-12)),
        (3, 1e-2, (2e-2, 2e-5, 8e-8, 4e-10)),
        (10, 1e-3, (2e-2, 9e-6, 9e-9, 1e-11)),
        (10, 1e-2, (2e-1, 1e-3, 1e-5, 1e-7)),
        (50, 1e-3, (2e-1, 4e-4, 2e-6, 4e-9)),
    ],
)
def test_each_order_is_nearer_to_the_heat_kernel(n, t, errors):
    rows = [row for row in reference_rows(n, t) if 1e-4 < float(row["K"]) < 1]
    assert len(rows) >= 2
    cosines = np.array([float(row["cos_theta"]) for row in rows])
    exact = np.array([float(row["K"]) for row in rows])
    Y = np.zeros((len(rows), n))
    Y[:, 0], Y[:, 1] = cosines, np.sqrt((1 - cosines) * (1 + cosines))
    worst = []
    for order, most in zip(("gaussian", 0, 1, 2), errors, strict=True):
        K = Parametrix(t=t, order=order, mapping="projection")(np.eye(1, n), Y)[0]
        worst.append(np.abs(K / exact - 1).max())
        assert worst[-1] < most
    assert worst == sorted(worst, reverse=True)


@pytest.mark.parametrize("n", [3, 8])
def test_gaussian_of_the_angle(n):
    X = np.random.default_rng(n).standard_normal((20, n))
    A = to_hypersphere(X)
    angles = np.arccos(np.clip(A @ A.T, -1, 1))
    np.fill_diagonal(angles, 0)
    np.testing.assert_allclose(Parametrix(t=0.3)(X), np.exp(-(angles**2) / 1.2), rtol=1e-12)
    np.testing.assert_array_equal(Parametrix(contrast=2.0)(X), Parametrix(t=0.25)(X))


def test_contrast_is_the_slope_of_a_heat_kernel_of_many_features():
    X = np.random.default_rng(0).standard_normal((30, 2000))
    X = X[:1] + 0.1 * X  # close together
    expected = HypersphericalHeat(contrast=3.0)(X)
    np.testing.assert_allclose(Parametrix(contrast=3.0)(X), expected, atol=1e-3)
    assert expected.min() < 0.98


@pytest.mark.parametrize("order", ["gaussian", 0, 1, 2])
def test_laws(order):
    X = np.random.default_rng(1).poisson(2.0, (300, 6)) + 0.1
    kernel = Parametrix(t=0.05, order=order)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), kernel.diag(X))
    assert K.max() == 1
    np.testing.assert_allclose(kernel(X, X[:7]), K[:, :7], rtol=1e-13)
    np.testing.assert_allclose(kernel(sp.csr_array(X)), K, rtol=1e-13)
    np.testing.assert_allclose(kernel(X.astype(np.float32)), K, atol=2e-6)
    again = pickle.loads(pickle.dumps(clone(kernel)))
    assert again.get_params() == kernel.get_params()
    np.testing.assert_array_equal(again(X), K)


def test_the_circle_is_flat():
    X = np.random.default_rng(0).standard_normal((10, 2))
    X[1] = -X[0]
    for order in (0, 1, 2):
        np.testing.assert_array_equal(Parametrix(t=5.0, order=order)(X), Parametrix(t=5.0)(X))


def test_four_dimensions_have_no_further_terms():
    X = np.random.default_rng(0).standard_normal((10, 4))
    np.testing.assert_array_equal(Parametrix(t=0.1, order=2)(X), Parametrix(t=0.1, order=0)(X))


def test_not_positive_semidefinite():
    X = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    assert -1e-3 < np.linalg.eigvalsh(Parametrix(t=1.0)(X)).min() < -1e-5


def test_warns_once_where_neighbours_are_hotter_than_the_source():
    X = np.eye(1, 12) + 1e-2 * np.random.default_rng(0).random((400, 12))
    t = 3 / 10
    for order in (0, 1, 2):
        with pytest.warns(UserWarning, match=r"t = 0.31 is not below 3 / \(n - 2\) = 0.3 for n = 12 f") as caught:
            K = Parametrix(t=t + 0.01, order=order, mapping="projection")(X)
        assert len(caught) == 1
        if order == 0:
            assert K.max() > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Parametrix(t=t - 0.01, order=0, mapping="projection")(X).max() == 1
        Parametrix(t=t + 0.01)(X)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("n", [3, 4, 9])
def test_opposite_vectors_are_refused(order, n):
    X = np.random.default_rng(0).standard_normal((5, n))
    Y = np.vstack([X[2:4] + 0.5, -X[1:2]])
    with pytest.raises(ValueError, match=r"X\[1\] against row 2 is infinite \(n = .*use HypersphericalHeat"):
        Parametrix(t=0.1, order=order)(X, Y)
    assert np.isfinite(Parametrix(t=0.1)(X, Y)).all()


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"t": 0.0}, "t must be a positive number, got 0"),
        ({"t": -1.0}, "t must be a positive number"),
        ({"contrast": 0.0}, "contrast must be a positive number"),
        ({"order": 3}, 'order must be "gaussian", 0, 1 or 2, got 3'),
        ({"order": True}, 'order must be "gaussian", 0, 1 or 2, got True'),
        ({"order": "first"}, "order must be \"gaussian\", 0, 1 or 2, got 'first'"),
    ],
)
def test_what_is_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        Parametrix(**parameters)(np.eye(5))


@pytest.mark.same_bits
def test_equal_rows_are_one_at_any_time():
    X = np.repeat(np.random.default_rng(0).random((4, 7)), 3, axis=0)
    assert not versines(to_hypersphere(X))[:3, :3].any()
    for order in ("gaussian", 0, 1, 2):
        assert (Parametrix(t=1e-9, order=order)(X)[:3, :3] == 1).all()
