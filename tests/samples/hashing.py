"""Data and comparisons for tests of generalised-Nyström PCA."""

import numpy as np
import pytest

FITTED = ["components_", "mean_", "singular_values_", "sample_indices_", "feature_indices_"]


def decaying(n, d, dtype=np.float64, seed=0, offset=2.0):
    """Rows whose standard deviations along random axes are 1, 1/2, 1/3, ..., away from the origin."""
    random = np.random.default_rng(seed)
    axes = np.linalg.qr(random.standard_normal((d, d)))[0]
    X = random.standard_normal((n, d)) / np.arange(1, d + 1) @ axes.T + offset * random.standard_normal(d)
    return X.astype(dtype)


def low_rank(n, d, k, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((n, k)) @ random.standard_normal((k, d)) + random.standard_normal(d)


def chunks(X, size):
    return (X[i : i + size] for i in range(0, len(X), size))


def same_up_to_sign(A, B, **tolerance):
    """Compare rows (A) and columns (B) of directions whose signs are not fixed."""
    signs = np.sign(np.einsum("ij,ji->i", A, B))
    np.testing.assert_allclose(A * signs[:, None], B.T, **tolerance)


def assert_same_fit(a, b):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def projector(pca):
    Q = np.linalg.qr(pca.components_.T.astype(float))[0]
    return Q @ Q.T


class Rows:
    """Rows behind `shape` and ``__getitem__``, as h5py and zarr have them; counts the rows that are read."""

    def __init__(self, X, chunk=None):
        self._X, self.shape, self.dtype, self.rows_read = X, X.shape, X.dtype, 0
        self.chunks = chunk and (chunk, X.shape[1])

    def __getitem__(self, rows):
        found = self._X[rows]
        self.rows_read += len(found)
        return found


def parquet(X, path, lists=False):
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    columns = {"vector": pa.array(list(X))} if lists else {f"x{j}": X[:, j] for j in range(X.shape[1])}
    write_table(pa.table(columns), path, row_group_size=64)
    return path
