"""PCA from a sample of the rows and features of the data: the generalised Nyström method.

C (c x d) holds the c sampled rows, centred. W = C[:, I] (c x r) holds the r sampled features of these rows. With the
SVD W = V S U^T, the k directions are the columns of C^T V_k S_k^-1, here made orthonormal and rotated to the principal
axes of C. The two steps lower the projection error from 0.49 to 0.33 in the example of
``tests/reference/G_projection_error.csv``. `fit` reads c rows and costs c r min(c, r) + 2 c d k multiplications;
`transform` of n rows costs n d k. Samples are uniform, also those of streams of unknown length (`Reservoir`).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.codes import _generalized_nystroem as core
from similia.codes._generalized_nystroem import projected
from similia.core.config import settings
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, twin_of
from similia.core.products import row_product
from similia.core.state import array, count, state
from similia.core.validation import BadParameter, check_positive, check_positive_int, generator, wrong_width
from similia.sources.dask import from_parts, lazily
from similia.sources.matrices import (
    Indices,
    MatrixSource,
    check_chunk,
    check_rows,
    check_squares,
    dense_parts,
    open_matrix,
)

Floats = npt.NDArray[np.float64]

_ROWS_FOR_EACH, _FEATURES_FOR_EACH = 4, 1.5  # minimum per direction: for k = 32, 30 % of 64 features are too few
_Part = tuple[npt.NDArray, npt.NDArray[np.float64], Indices]  # rows, their priorities, their positions in the source


@state(
    n_features_in_=count("d"), _n_features_out=count("r"), components_=array("f4 f8", "r", "d"),
    mean_=array("f4 f8", "d"), singular_values_=array("f4 f8", "r"), _offset=array("f4 f8", "r"),
)  # fmt: skip
class GeneralizedNystroemPCA(Transformer):
    """Estimate principal components from a sample of the rows and a sample of their features.

    Parameters
    ----------
    n_components : int
        Number of directions (principal components).
    sample_fraction : float or int, default=0.05
        Fraction of the rows to sample (float), or number of rows (int). If this gives too few rows, more are sampled:
        for a float, at least ``4 * n_components`` (all rows if there are fewer); for an int, at least `n_components`,
        or ``n_components + 1`` if `center` is True.
    feature_fraction : float or int, default=0.3
        Fraction of the features to sample (float), or number of features (int). If this gives too few features, more
        are sampled: for a float, at least ``1.5 * n_components`` (all features if there are fewer); for an int, at
        least `n_components`.
    sampling : {"uniform", "norm"}, default="uniform"
        ``"uniform"`` draws rows and features without replacement, and reads only the sampled rows. ``"norm"`` is the
        algorithm ConstantTimeSVD of Drineas et al.: it draws rows, then features of the drawn rows, with replacement
        and with probabilities proportional to their squared norms. It reads all rows several times, so it does not
        accept sources that can be read only once (see Notes).
    center : bool, default=True
        Whether to subtract the mean of the sampled rows (with ``sampling="norm"``, of all rows). If the data lie far
        from the origin and are not centred, the first direction is close to the direction of their mean, and the first
        coordinate of the transformed rows has the same sign for all rows.
    orthonormalize : bool, default=True
        Whether to make the directions orthonormal and rotate them to the principal axes of the sampled rows. With
        False, they are the directions of Yun et al., which are not orthogonal and whose lengths are only close to 1.
    truncation : float, optional
        The threshold gamma of Yun et al., Section V-B. C holds the sampled rows with all d features, centred if
        `center`; W holds the r sampled features of C; s is the `n_components`-th largest singular value of W. `fit`
        raises an error if s^2 is below gamma (r / d) ||C||_1 ||C||_inf. Here ||C||_1 is the largest sum of absolute
        values of a column, and ||C||_inf the largest sum of absolute values of a row. With ``sampling="norm"``, `fit`
        raises an error if s^2 is below gamma ||W||_F^2. Without `truncation`, it raises an error only if s is as small
        as its rounding error.
    random_state : int, numpy generator or None, default=None
        Seed or generator from which `fit` draws features and rows.

    Attributes
    ----------
    components_ : ndarray, shape (n_components, n_features)
        The directions, float32 for float32 data, else float64. In each row, the entry of largest magnitude is positive.
    mean_ : ndarray of float64, shape (n_features,)
        Mean that `transform` subtracts; zeros if `center` is False.
    singular_values_ : ndarray of float64, shape (n_components,)
        Estimated singular values of the matrix of all rows, largest first.
    sample_indices_ : ndarray of int64, shape (n_sampled,)
        Sorted positions of the sampled rows; with ``sampling="norm"``, a position may occur more than once.
    feature_indices_ : ndarray of int64
        Sorted positions of the sampled features; with ``sampling="norm"``, a position may occur more than once.
    n_features_in_ : int
        Number of features seen in `fit`.
    n_samples_seen_ : int
        Number of rows from which the sample was drawn.

    Notes
    -----
    **Sources.** `X` may be:

    - an array, a numpy memory map or a scipy.sparse matrix (which is never made dense as a whole);
    - an object with `shape` and row access (h5py, zarr), which is read chunk by chunk;
    - the path of a ``.npy`` or ``.parquet`` file (numeric columns, or one column of lists);
    - an iterable of 2-D chunks of rows, which is read once;
    - a stream of vectors from `similia.sources.open_stream` (CSV).

    With ``sampling="uniform"``, the sample depends only on the parameters and the shape of the data, not on the source.

    **Memory.** `fit` keeps the sampled rows if they fit into half of ``similia.config(max_memory=...)``. Otherwise it
    accumulates P = C^T W (`truncation` defines C and W) in one pass over the rows. P is a float64 matrix of shape
    (n_features, number of sampled features). Both ways give the same subspace up to rounding. But with P, `fit` keeps
    only some of the sampled rows, and rotates the directions to the principal axes of the rows that it keeps. `fit`
    cannot use P in three cases: with `truncation`; with ``sampling="norm"``; and, if `sample_fraction` is an integer,
    for an iterable or a stream, whose number of rows is not known in advance. In these cases, it raises an error if the
    sampled rows do not fit. If `fit` computes P from float32 data, it raises an error if the `n_components`-th singular
    value of W is at most 0.0014 times the largest. A singular value as small as this may consist of rounding errors.

    **Precision.** The directions are products of the sampled rows and the singular vectors of W. For dense float32
    rows, `fit` computes these products in float32, or in float64 if the `n_components`-th singular value of W is below
    a thousandth of the largest. `transform` subtracts the mean only after the product, so float32 loses three digits if
    the mean lies 1000 standard deviations from 0.

    With ``sampling="uniform"``, `fit` does not check rows outside the sample for NaN; `transform` checks all its rows.
    The error bound in Theorem 2 of Yun et al. is vacuous (it exceeds ||X||_F for all gamma <= 1); measure
    `projection_error` instead.

    References
    ----------
    Yun, Kim & Choi, "Hashing with generalized Nyström approximation", ICDM 2012, Algorithm 1 and Section V-B. Drineas,
    Kannan & Mahoney, "Fast Monte Carlo algorithms for matrices II", SIAM J. Computing 36, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import GeneralizedNystroemPCA
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((2000, 5)) @ random.standard_normal((5, 100)) + 1.0
    >>> pca = GeneralizedNystroemPCA(5, sample_fraction=0.05, feature_fraction=0.3, random_state=0).fit(X)
    >>> pca.components_.shape, len(pca.sample_indices_), len(pca.feature_indices_)
    ((5, 100), 100, 30)
    >>> pca.projection_error(X) < 1e-10
    True
    >>> chunks = (X[i : i + 64] for i in range(0, 2000, 64))
    >>> np.array_equal(pca.fit(chunks).transform(X[:3]), pca.fit(X).transform(X)[:3])
    True
    """

    _takes = ("sparse",)
    _reservoir: Reservoir  # rows that `partial_fit` keeps

    def __init__(
        self,
        n_components: int,
        sample_fraction: float | int = 0.05,
        feature_fraction: float | int = 0.3,
        sampling: str = "uniform",
        center: bool = True,
        orthonormalize: bool = True,
        truncation: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sample_fraction = sample_fraction
        self.feature_fraction = feature_fraction
        self.sampling = sampling
        self.center = center
        self.orthonormalize = orthonormalize
        self.truncation = truncation
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample rows and features and find the directions.

        Parameters
        ----------
        X : array, sparse matrix, row-addressable object, path, or iterable of chunks; shape (n, n_features)
            The data. A path names a ``.npy`` or ``.parquet`` file. An object that is not an array, such as a dataset of
            h5py or zarr, must have a `shape` and give access to its rows. Chunks are 2-D arrays of rows; a stream of
            vectors from `similia.sources.open_stream` works like an iterable of chunks.
        y : ignored

        Raises
        ------
        ValueError
            If the sample has fewer than `n_components` usable directions; if a sampled row holds NaN or infinity; or if
            the sample needs more than half of ``similia.config(max_memory=...)``, and `fit` cannot replace it by a
            smaller matrix of products. If other values of parameters would help, the message suggests them.
        """
        self._check_parameters()
        self.__dict__.pop("_reservoir", None)
        check_table(self, X, reset=True)
        source, random = open_matrix(X), generator(self.random_state)
        if self.sampling == "norm":
            self._fit_norm(source, random)
        elif source.n is None:
            self._fit_stream(source, random)
        else:
            self._fit_rows(source, source.n, random)
        return self

    @all_at_once
    def partial_fit(self, X: Any, y: Any = None, refit: bool = True) -> Self:
        """Add a chunk of rows to the sample and recompute the directions.

        After the last chunk, the result equals that of `fit` on all rows with the same integer `random_state`, bit for
        bit. The model keeps the rows that may belong to the final sample; they must fit into half of
        ``similia.config(max_memory=...)``. A model that was fitted by `fit`, copied or loaded has not kept such rows:
        `partial_fit` then raises an error. It also raises an error with ``sampling="norm"``.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The next rows. The first chunk determines the float type.
        y : ignored
        refit : bool, default=True
            Whether to recompute the directions, provided that there are at least `n_components` rows (one more if rows
            are centred). To save time, pass False for all chunks but the last.
        """
        self._check_parameters()
        if not hasattr(self, "_reservoir"):
            self._start(X)
        check_table(self, X, reset=False)
        reservoir = self._reservoir = self._reservoir.copy()
        reservoir.add(check_chunk(X, reservoir.n_chunks, self.n_features_in_, reservoir.dtype))
        if reservoir.nbytes > settings().max_memory // 2:
            raise ValueError(
                f"the sample of {reservoir.n_rows} rows takes {reservoir.nbytes} bytes, more than half of max_memory; "
                "use a smaller sample_fraction (or a number of rows), or fit an iterable of the chunks"
            )
        if refit and reservoir.n_rows >= self._least_rows:
            self._learn(*reservoir.sample(), self.feature_indices_, reservoir.n_rows)
        return self

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Project rows onto the directions, the rows of `components_`; return shape (n, n_components).

        `X` holds n rows in any form that `fit` accepts. The dtype is that of `components_`: float32 if `fit` saw
        float32 data, else float64. The result for a row depends only on that row and the fitted model, bit for bit.
        """
        self._check_columns(X)
        source = self._open_like_fit(X)
        if source.n is None:
            return np.concatenate([*projected(source, self.components_, self._offset)])
        out = np.empty((source.n, len(self.components_)), self.components_.dtype)
        for _ in projected(source, self.components_, self._offset, out):
            pass
        return out

    def transform_chunks(self, X: Any) -> Iterator[npt.NDArray[np.floating]]:
        """Yield what `transform` returns, chunk by chunk, for data that do not fit into memory.

        If `X` is an iterable of chunks, this yields an array of shape (n_rows, n_components) for each chunk; any other
        source is cut into chunks first.
        """
        yield from projected(self._open_like_fit(X), self.components_, self._offset)

    def inverse_transform(self, Z: Any) -> npt.NDArray[np.floating]:
        """Return ``Z @ components_ + mean_``: vectors in the original space, shape (n, n_features)."""
        check_fitted(self, "components_")
        Z = np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != len(self.components_):
            raise ValueError(f"Z has shape {Z.shape}, expected (n, {len(self.components_)}) as transform returns")
        dtype = np.dtype(np.float32 if Z.dtype == np.float32 else np.float64)
        return (Z.astype(dtype, copy=False) @ self.components_.astype(dtype, copy=False)) + self.mean_.astype(dtype)

    def projection_error(self, X: Any) -> float:
        """Return the relative error ||X - X B^T B||_F / ||X||_F, where B is `components_` and X has `mean_` subtracted.

        Parameters
        ----------
        X : as in `fit`, shape (n, n_features)
            Rows to measure on; use held-out rows, because the error on the rows of `fit` is too low.

        Returns
        -------
        float
            0 if all rows, after subtraction of `mean_`, lie in the span of the rows of `components_`; at most 1 if the
            rows of `components_` are orthonormal.
        """
        error = norm = 0.0
        blocks, row = self._open_like_fit(X).blocks(), 0
        B = self.components_.astype(np.float64)
        for block in blocks:
            for part in dense_parts(block):
                rows = part - self.mean_
                norm += (squares := float(np.square(rows).sum()))
                if not np.isfinite(squares):
                    check_rows(rows, row)
                error += float(np.square(rows - (rows @ B.T) @ B).sum())
                row += len(part)
        return float(np.sqrt(error / norm)) if norm else 0.0

    def _fit_rows(self, source: MatrixSource, n: int, random: np.random.Generator) -> None:
        columns = self._draw_columns(source.n_features, random)
        c = self._count_rows(n)
        priorities = random.random(n)
        indices = smallest(priorities, c)
        if c * source.row_bytes <= settings().max_memory // 2:
            self._learn(source.take_sorted(indices), indices, columns, n)
            return
        products = self._cross_products(source, columns, c)
        for rows in source.take_blocks(indices):
            for part in dense_parts(rows):
                where = indices[products.count : products.count + len(part)]
                products.add(part, priorities[where], where)
        self._learn_products(products, n)

    def _fit_stream(self, source: MatrixSource, random: np.random.Generator) -> None:
        columns = self._draw_columns(source.n_features, random)
        reservoir = Reservoir(random, self.sample_fraction, self._enough_rows)
        products, limit = None, settings().max_memory // 2
        for chunk in source.blocks():
            reservoir.add(chunk)
            if reservoir.nbytes > limit:
                products = products or self._cross_products(source, columns)
                for part in reservoir.take_sure():
                    products.add(*part)
                limit = max(settings().max_memory // 8, 2 * reservoir.nbytes)
        if products is None:
            self._count_rows(reservoir.n_rows)
            self._learn(*reservoir.sample(), columns, reservoir.n_rows)
            return
        for part in reservoir.rest():
            products.add(*part)
        self._learn_products(products, reservoir.n_rows)

    def _fit_norm(self, source: MatrixSource, random: np.random.Generator) -> None:
        n, d = source.n, source.n_features
        if n is None:
            raise ValueError(
                "sampling='norm' reads all rows more than once, but X is an iterable that is read once; "
                "use sampling='uniform', an array or a file"
            )
        c = self._count_rows(n)
        if c * source.row_bytes > settings().max_memory // 2:
            raise ValueError(
                f"{c} sampled rows take more than half of max_memory and sampling='norm' keeps them all; sample fewer"
            )
        r = self._count_columns(d)
        mean = None
        if self.center:
            mean = np.zeros(d)
            for block in source.blocks():
                mean += np.asarray(block.sum(axis=0, dtype=np.float64))
            mean /= n
        norms = core.row_norms(source.blocks(), mean)
        rows = core.draw_weighted(norms, c, random)
        unique, copies = np.unique(rows, return_inverse=True)
        row_weights = np.sqrt(norms.sum() / (c * norms[rows]))  # C C^T and W^T W become unbiased
        sample = core.sample_of(source.take_sorted(unique)[copies], mean, row_weights)
        energies = np.maximum(sample.column_energies(), 0.0)
        columns = core.draw_weighted(energies, r, random)
        weights = np.sqrt(energies.sum() / (r * energies[columns]))
        offset = 0.0 if mean is None else float(np.mean(mean**2) * np.mean(row_weights**2))
        B, values = core.directions(self, sample, columns, offset, weights, least_share=self.truncation or 0.0)
        self._set(B, values, mean, source.dtype, rows, columns, n)

    def _learn(self, rows: Any, indices: Indices, columns: Indices, n: int) -> None:
        """Compute the directions from sampled `rows`, which are overwritten, and set the fitted attributes."""
        (c, d), r, dtype = rows.shape, len(columns), rows.dtype
        check_squares(rows, indices)
        mean = core.mean_of(rows)
        sample = core.sample_of(rows, mean if self.center else None)
        least = 0.0
        if self.truncation is not None:  # relative to the paper's scaled C and W
            least = float(self.truncation * r / d * np.prod(sample.largest_sums()))
        offset = float(np.mean(mean[columns] ** 2)) if self.center else 0.0
        B, values = core.directions(self, sample, columns, offset, least_square=least)
        self._set(B, values, mean if self.center else None, dtype, indices, columns, n, c)

    def _learn_products(self, products: core.CrossProducts, n: int) -> None:
        B, values, c = products.directions(self)
        mean = products.mean() if self.center else None
        indices = np.sort(np.concatenate(products.added))
        self._set(B, values, mean, products.dtype, indices, products.columns, n, c)

    def _set(
        self, B: Floats, values: Floats, mean: Any, dtype: Any, rows: Indices, columns: Indices, n: int, c: int = 0
    ) -> None:
        """Set the fitted attributes; if c > 0, rescale the singular values from c sampled rows to all n rows."""
        if c:
            values = values * np.sqrt(n / c)
        if c and not self.orthonormalize:  # the paper also rescales from r sampled features to all d
            r, d = len(columns), B.shape[1]
            B, values = B * np.sqrt(r / d), values * np.sqrt(d / r)
        signs = np.sign(B[np.arange(len(B)), np.abs(B).argmax(axis=1)])
        # Column by column, the layout in which products with sparse rows read it: otherwise each product would copy it.
        self.components_ = np.asfortranarray(B * signs[:, None], dtype=dtype)
        self.mean_ = np.zeros(B.shape[1]) if mean is None else mean
        self.singular_values_ = values
        self.sample_indices_, self.feature_indices_ = rows, columns
        self.n_features_in_, self.n_samples_seen_ = B.shape[1], n
        self._n_features_out = len(B)
        self._offset = row_product(self.components_, self.mean_[:, None])[:, 0]

    def _check_parameters(self) -> None:
        check_positive_int(self.n_components, "n_components")
        if self.sampling not in ("uniform", "norm"):
            raise ValueError(f"sampling must be one of 'uniform', 'norm', got {self.sampling!r}")
        for name in ("sample_fraction", "feature_fraction"):
            _check_share(getattr(self, name), name)
        if self.truncation is not None:
            check_positive(self.truncation, "truncation")

    @property
    def _least_rows(self) -> int:
        """Minimum number of rows for `n_components` directions."""
        return self.n_components + bool(self.center)

    @property
    def _enough_rows(self) -> int:
        """Minimum number of rows in the sample; data with fewer rows are sampled whole."""
        return self._least(self.sample_fraction, _ROWS_FOR_EACH, self._least_rows)

    def _least(self, share: Any, for_each: float, least: int) -> int:
        """Return the minimum sample size: `least`; for a float `share`, at least `for_each * n_components`, too."""
        return least if isinstance(share, Integral) else max(least, ceil_share(for_each, self.n_components))

    def _count_rows(self, n: int) -> int:
        if n < self._least_rows:
            found = f"{self.n_components} needs at least {self._least_rows} rows, found {n}"
            remedy = f"use n_components={max(1, n - bool(self.center))} or give more rows (n_samples = {n})"
            raise BadParameter("n_components", "", found, remedy)
        return _sample_size(self.sample_fraction, n, min(n, self._enough_rows), "sample_fraction", "rows")

    def _count_columns(self, d: int) -> int:
        share, k = self.feature_fraction, self.n_components
        least = max(k, min(d, self._least(share, _FEATURES_FOR_EACH, k)))
        return _sample_size(share, d, least, "feature_fraction", "features")

    def _draw_columns(self, d: int, random: np.random.Generator) -> Indices:
        return smallest(random.random(d), self._count_columns(d))

    def _cross_products(self, source: MatrixSource, columns: Indices, c: int | None = None) -> core.CrossProducts:
        """Return empty sums of products for `c` sampled rows, or for a stream; raise if they do not fit into memory."""
        d, r, half = source.n_features, len(columns), settings().max_memory // 2
        if 8 * d * r > half:
            ways = [f"feature_fraction={half // (8 * d)}"] if half // (8 * d) >= self.n_components else []
            rows = int(half // source.row_bytes)
            if c is not None and source.n and rows >= self._least_rows:
                ways.append(f"sample_fraction={rows}")
            raise ValueError(
                f"neither the sampled rows nor their products of {d} with {r} features fit into half of max_memory; "
                f"use {' or '.join([*ways, 'similia.config(max_memory=...)'])}"
            )
        if self.truncation is not None:
            raise ValueError("truncation needs the sampled rows in memory; sample fewer or raise max_memory")
        if c is None and isinstance(self.sample_fraction, Integral):
            raise ValueError(
                f"sample_fraction={self.sample_fraction} rows of a stream must fit into half of max_memory; give "
                "a float, fewer rows or an array"
            )
        return core.CrossProducts(source.n_features, columns, self.n_components, source.dtype, self.center)

    def _start(self, X: Any) -> None:
        if self.sampling != "uniform":
            raise ValueError(f"partial_fit needs sampling='uniform', got {self.sampling!r}: it sees each row once")
        if hasattr(self, "components_") or hasattr(self, "feature_indices_"):  # the latter from the first chunk on
            raise ValueError(
                "this model keeps no rows to continue from (it was fitted by fit, copied or loaded); "
                "feed sklearn.base.clone(model).partial_fit from the first chunk on"
            )
        random = generator(self.random_state)
        check_table(self, X, reset=True)
        self.n_features_in_ = check_chunk(X).shape[1]
        self.feature_indices_ = self._draw_columns(self.n_features_in_, random)
        self._reservoir = Reservoir(random, self.sample_fraction, self._enough_rows)

    def _open_like_fit(self, X: Any) -> MatrixSource:
        check_fitted(self, "components_")  # missing until `partial_fit` has enough rows
        source = open_matrix(X)
        if source.n_features != self.n_features_in_:
            raise wrong_width(source.n_features, self.n_features_in_, self)
        return source

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()  # copies and files must not contain rows of the data
        return {name: value for name, value in state.items() if name != "_reservoir"}


class Reservoir:
    """Draw a uniform sample without replacement from a stream of unknown length.

    Each row gets a random number in [0, 1), its priority. The rows with the smallest priorities form the sample. Its
    size is `share`, a fraction (float) or a number (int) of rows, but at least `least`. A row is kept while its
    priority is below a bound that falls as rows arrive. The bound lies eight standard deviations above the expected
    largest priority of the sample, so a row of the sample is lost with probability below 1e-10. A row whose priority
    lies eight standard deviations below that expectation counts as certain to be in the sample.
    """

    def __init__(self, random: np.random.Generator, share: float | int, least: int) -> None:
        self.n_chunks, self.n_rows, self.n_taken, self.nbytes = 0, 0, 0, 0
        self.dtype: np.dtype | None = None  # dtype of the first chunk
        self._random, self._share, self._least = random, share, least
        self._parts: list[_Part] = []
        self._pruned_at = 1

    def copy(self) -> Reservoir:
        """Return a reservoir that can change independently of this one; arrays of rows kept so far are not copied."""
        other = twin_of(self)
        other._random, other._parts = deepcopy(self._random), [*self._parts]
        return other

    def add(self, chunk: npt.NDArray) -> None:
        """Draw a priority for each row of a chunk, and keep copies of the rows that may still be in the sample."""
        priorities = self._random.random(len(chunk))
        self.dtype, self.n_chunks = chunk.dtype, self.n_chunks + 1
        first, self.n_rows = self.n_rows, self.n_rows + len(chunk)
        near = np.flatnonzero(priorities <= self._bound())
        self._parts.append((chunk[near], priorities[near], near + first))
        self.nbytes += self._parts[-1][0].nbytes
        if self.n_rows > 1.25 * self._pruned_at:
            self._pruned_at = self.n_rows
            self._parts = [_where(part, part[1] <= self._bound()) for part in self._parts]
            self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def take_sure(self) -> Iterator[_Part]:
        """Yield the rows that are certain to be in the sample, and stop keeping them; `share` must be a float."""
        f, n = float(self._share), self.n_rows
        below = f - 8 * (f / n) ** 0.5 - 64 / n
        parts, self._parts = self._parts, []
        while parts:  # free each part before copying the next
            part = parts.pop(0)
            sure, left = _where(part, part[1] < below), _where(part, part[1] >= below)
            del part
            self.n_taken += len(sure[1])
            self._parts += [left] if len(left[1]) else []
            yield sure
        self.nbytes = sum(rows.nbytes for rows, _, _ in self._parts)

    def rest(self) -> Iterator[_Part]:
        """Yield the rows of the sample that `take_sure` has not yielded, in the order of the source."""
        chosen, start = self._chosen(), 0
        for part in self._parts:
            low, high = np.searchsorted(chosen, [start, start + len(part[1])])
            yield _where(part, chosen[low:high] - start)
            start += len(part[1])

    def sample(self) -> tuple[npt.NDArray, Indices]:
        """Return one array of the rows that `rest` yields, and an array of their positions in the source."""
        rows = np.empty((len(self._chosen()), self._parts[0][0].shape[1]), self._parts[0][0].dtype)
        indices, start = np.empty(len(rows), np.int64), 0
        for part, _, where in self.rest():
            rows[start : start + len(part)], indices[start : start + len(part)] = part, where
            start += len(part)
        return rows, indices

    def _chosen(self) -> Indices:
        priorities = np.concatenate([priorities for _, priorities, _ in self._parts])
        return smallest(priorities, self._needed() - self.n_taken)

    def _needed(self) -> int:
        whole = isinstance(self._share, Integral)
        return min(self.n_rows, max(int(self._share) if whole else ceil_share(self._share, self.n_rows), self._least))

    def _bound(self) -> float:
        needed = self._needed()
        return (needed + 8 * needed**0.5 + 64) / max(1, self.n_rows)


def smallest(priorities: npt.NDArray[np.float64], count: int) -> Indices:
    """Return the sorted positions of the `count` smallest `priorities`: a uniform sample if priorities are random."""
    if count >= len(priorities):
        return np.arange(len(priorities))
    return np.sort(np.argpartition(priorities, count - 1)[:count]).astype(np.int64)


def _sample_size(share: float | int, n: int, least: int, name: str, what: str) -> int:
    """Return how many of n rows or features to sample, at least `least`; raise if n is below `least` or an int `share`.

    `share` is a fraction (float) or a count (int). The error names the parameter `name` and the items `what` ("rows").
    """
    if n < least:
        found = f"{least} needs at least {least} {what}, found {n}"
        raise BadParameter("n_components", "", found, f"use n_components={n}")
    if isinstance(share, Integral):
        if share > n:
            raise ValueError(f"{name}={share} {what} are more than the {n} there are; use at most {n}, or 1.0 for all")
        return max(int(share), least)
    return min(n, max(ceil_share(share, n), least))


def _check_share(value: Any, name: str) -> None:
    """Raise if `value`, of parameter `name`, is neither a float in (0, 1] (a fraction) nor an int >= 1 (a count)."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (int(value) >= 1 if isinstance(value, Integral) else 0 < float(value) <= 1):
        raise ValueError(f"{name} must be a float in (0, 1] or an integer >= 1, got {value!r}")


def ceil_share(share: float, n: int) -> int:
    return int(np.ceil(round(float(share) * n, 6)))  # 0.07 * 100 is slightly above 7 in floats


def _where(part: _Part, rows: npt.NDArray) -> _Part:
    return part[0][rows], part[1][rows], part[2][rows]
