"""The heat kernel on the sphere against scikit-learn's RBF kernel and the series summed for each entry.

Gram matrices of 4000 rows of random non-negative numbers, 1312 columns (the largest vocabulary of the WebKB tables),
the map to the sphere included. scipy and mpmath are given the cosines; they sum the series of a small block, whose time
is scaled by the number of entries. Where scipy has a few terms to sum, the product of the vectors is the bound.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Row, in_turns
from scipy.special import eval_gegenbauer
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from similia.kernels.heat import HypersphericalHeat, heat_profile, time_of, weights

N_ROWS, N_FEATURES, CONTRAST = 4000, 1312, 4.0
PART, MP_PART = 64, 2  # rows and columns of the block whose series are summed by scipy, by mpmath
CASES = ((50, CONTRAST), (N_FEATURES, CONTRAST), (N_FEATURES, 400.0))  # (n, contrast); scipy overflows in the last


def run() -> list[Row]:
    """Return times of Gram matrices beside the RBF kernel's and beside a series for each entry."""
    X = np.random.default_rng(0).gamma(20.0, size=(N_ROWS, N_FEATURES))
    with threadpool_limits(cpu_count()):
        rows = [*_against_rbf(X), *_against_rbf(X.astype(np.float32))]
    return [*rows, *_against_series(X)]


def _against_rbf(X: npt.NDArray) -> list[Row]:
    kernel = HypersphericalHeat(CONTRAST)
    heat, gradient, rbf = in_turns(lambda: kernel(X), lambda: kernel.gradient(X), lambda: rbf_kernel(X), rounds=5)
    print(f"{X.dtype}: heat {heat:.3g} s, gradient {gradient:.3g} s, RBF {rbf:.3g} s")
    shape = f"Gram matrix {N_ROWS} x {N_ROWS}, n = {N_FEATURES}, {X.dtype}"
    return [
        Row(f"{shape}: time", "scikit-learn rbf_kernel", heat / rbf, at_most=1.5),
        Row(f"{shape}: time of dK/dt", "scikit-learn rbf_kernel", gradient / rbf),
    ]


def _by_scipy(cosines: npt.NDArray[np.float64], n: int, t: float) -> npt.NDArray[np.float64]:
    """Return the kernel as the definition has it: the series of C_l(x) / C_l(1), summed for each entry."""
    first, w = weights(n, t)
    order = n / 2 - 1
    total = np.zeros_like(cosines)
    for l, weight in enumerate(w, start=first):
        total += weight * (eval_gegenbauer(l, order, cosines) / eval_gegenbauer(l, order, 1.0))
    return total


def _against_series(X: npt.NDArray[np.float64]) -> list[Row]:
    """Time scipy's series of a block of cosines, where it is finite and where it overflows."""
    rows = []
    V = np.random.default_rng(0).random((N_ROWS, N_ROWS))
    for n, contrast in CASES:
        Z, t = X[:, :n], time_of(contrast, n)
        kernel = HypersphericalHeat(contrast)
        cosines = 1 - V[:PART, :PART]
        with np.errstate(all="ignore"):
            whole, profile, scipy = in_turns(
                lambda kernel=kernel, Z=Z: kernel(Z),
                lambda n=n, t=t: heat_profile(V, n, t),
                lambda cosines=cosines, n=n, t=t: _by_scipy(cosines, n, t),
                rounds=3,
            )
            values = _by_scipy(cosines, n, t)
        scipy *= (N_ROWS / PART) ** 2
        finite = np.isfinite(values)
        gap = np.abs(values - heat_profile(V, n, t)[:PART, :PART])[finite].max(initial=0.0)
        print(f"n = {n}, contrast {contrast:g}: Gram matrix {whole:.3g} s, of versines {profile:.3g} s, ", end="")
        print(f"scipy {scipy:.3g} s, largest difference {gap:.2g}")
        what = f"n = {n}, contrast {contrast:g} ({len(weights(n, t)[1])} terms), {N_ROWS} x {N_ROWS}"
        rival = "scipy eval_gegenbauer for each entry, of cosines"
        rows += [
            Row(f"{what}: speed of heat_profile, of versines", rival, scipy / profile),
            Row(f"{what}: speed of the Gram matrix, of vectors", rival, scipy / whole),
            Row(f"{what}: share of entries that are finite in scipy", "all", float(finite.mean())),
        ]
        rows += _against_mpmath(f"{what}: speed of the Gram matrix, of vectors", V[:MP_PART, :MP_PART], n, t, whole)
    return rows


def _against_mpmath(what: str, versines: npt.NDArray[np.float64], n: int, t: float, whole: float) -> list[Row]:
    """Time mpmath's series of a few cosines, which are right wherever float64 holds the sums."""
    try:
        import mpmath
    except ImportError:
        print("mpmath is not installed: its rows are skipped")
        return []
    first, w = weights(n, t)

    def value(u: float) -> float:
        order, x = mpmath.mpf(n) / 2 - 1, 1 - mpmath.mpf(u)
        terms = (v * mpmath.gegenbauer(l, order, x) / mpmath.gegenbauer(l, order, 1) for l, v in enumerate(w, first))
        return float(mpmath.fsum(terms))

    start = time.perf_counter()
    values = [value(u) for u in versines.ravel().tolist()]
    seconds = (time.perf_counter() - start) * (N_ROWS / MP_PART) ** 2
    gap = np.abs(np.array(values) - heat_profile(versines.ravel(), n, t)).max()
    print(f"mpmath {seconds:.3g} s, largest difference {gap:.2g}")
    return [Row(what, "mpmath.gegenbauer for each entry, of cosines", seconds / whole, at_least=1000)]


if __name__ == "__main__":
    print(*run(), sep="\n")
