"""Vectors to packed bits by the signs of random projections, P(bits of x and y agree) = 1 - angle(x, y) / pi.

A bit is sign(p . x), sign(0) = +1, for a random direction p: the last step of NysHD. The arithmetic lives in
`_sign_projection` (dense directions) and `_hadamard` (structured ones); `codes.kernel_from_codes` reads cosines
back from the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from similia.codes import _sign_projection as dense
from similia.core.config import rows_per_block
from similia.core.fitting import all_at_once
from similia.core.transformers import check_columns
from similia.core.validation import check_n_bits, check_vectors, generator
from similia.objects.distributed import Distributed
from similia.sources.lazily import from_parts, lazily

_METHODS = ("gaussian", "structured")
_MIN_HADAMARD = 256  # padded size below which three Hadamard products are biased by more than 0.02


class SignRandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Turn vectors into packed bits whose agreement tells the cosine of the vectors.

    With d bits, phi = sqrt(pi / (2 d)) * (+-1 code) and rho = cos(x, y):

    ============ ================================== =======================================================
    method       mean of <phi_x, phi_y>             variance of <phi_x, phi_y>
    ============ ================================== =======================================================
    gaussian     arcsin rho (within 0.002 for rows  ((pi/2)^2 - arcsin^2 rho) / d =: V
                 of two non-zeros among 2048)
    structured   up to 128 features: arcsin rho;    0.4 V to 0.9 V for abs(rho) <= 0.7, approaching V as
                 above: within 0.012 of it for two  abs(rho) -> 1
                 non-zeros, 0.001 for dense rows
    ============ ================================== =======================================================

    The bits of a row depend on that row and the fitted projection alone: not on other rows, block size, number
    of threads or float type. Multiplying a row by a power of two changes nothing, by another positive number
    nothing beyond the rounding of the product.

    Parameters
    ----------
    n_bits : int, default=10_000
        Length of the codes, a multiple of 8.
    method : {"gaussian", "structured"}, default="gaussian"
        ``"gaussian"``: independent Gaussian directions, n * n_features * n_bits multiplications by BLAS.
        ``"structured"``: directions orthogonal in blocks. Up to 128 features these are Haar blocks of
        n_features rows. Above, three products of a Hadamard matrix and random signs act on vectors padded to
        p = 2^ceil(log2 n_features): 3 n n_bits log2 p additions and no projection matrix.
    random_state : int, numpy generator or None, default=None
        Source of the directions, drawn in `fit`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    projection_ : int16 array of shape (n_bits, n_features) or None
        Dense directions, scaled and rounded to odd integers.
    row_length_ : float or None
        Euclidean length that rows are scaled to before they are rounded, so that sums are exact in float32.
    signs_ : int8 array of shape (n_blocks, 3, p) or None
        Diagonals of the Hadamard products, if these are used.

    Notes
    -----
    In a data frame (``set_output``, `get_feature_names_out`) a column is a byte of eight bits: signrandomprojection0 is
    bits 0 to 7. A frame of such columns is packed bits again for what follows in a pipeline; beside columns of another
    type, in a ``ColumnTransformer``, its bytes become plain numbers: take `similia.codes.Bundle` there.

    A zero row gets the code of all ones (+1), whose kernel with any other code is 0 on average.

    Dense directions are exact up to the rounding of rows to integers, which turns a row of k features by about
    sqrt(k / 12) / 2^12 radian (1e-3 for 300 features): far below the noise of any affordable number of bits.

    References
    ----------
    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002. Yu et al., "Orthogonal
    random features", NeurIPS 2016. Choromanski, Rowland and Weller, "The unreasonable effectiveness of
    structured random orthogonal embeddings", NeurIPS 2017. The numbers for "structured" are measurements,
    ``tests/reference/B_sign_projection.csv``.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.codes import SignRandomProjection, kernel_from_codes
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]])
    >>> codes = SignRandomProjection(n_bits=8000, random_state=0).fit_transform(X)
    >>> codes.dtype, codes.shape
    (dtype('uint8'), (3, 1000))
    >>> bool(np.all(codes[2] == ~codes[0]))
    True
    >>> bool(abs(kernel_from_codes(codes)[0, 1] - np.sqrt(0.5)) < 0.05)
    True
    """

    projection_: Any
    row_length_: Any
    signs_: Any

    def __init__(self, n_bits: int = 10_000, method: str = "gaussian", random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.method = method
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> SignRandomProjection:
        """Draw the directions; of `X` only the number of features is used.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Finite vectors.
        y : ignored

        Returns
        -------
        SignRandomProjection
            Itself.

        Raises
        ------
        ValueError
            If `n_bits` is not a positive multiple of 8, `method` is unknown, or `X` is not a 2-D array of
            finite numbers (the first bad row is named).
        """
        n_bits = check_n_bits(self.n_bits)
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {self.method!r}")
        like = X.example() if isinstance(X, Distributed) else X
        n_features = check_vectors(like).shape[1]
        hadamard = self.method == "structured" and n_features > _MIN_HADAMARD // 2
        _check_n_features(n_features, dense.MAX_FEATURES if not hadamard else None)
        self.n_features_in_ = n_features
        check_columns(self, like, reset=True)
        self._n_features_out = n_bits // 8
        self.projection_ = self.row_length_ = self.signs_ = None
        self._draw_hadamard() if hadamard else self._draw_dense()
        return self

    def _draw_dense(self) -> None:
        gaussian = self.method == "gaussian"
        draw = dense.gaussian_projection if gaussian else dense.orthogonal_projection
        self.projection_ = draw(self.n_bits, self.n_features_in_, generator(self.random_state))
        self.row_length_ = dense.exact_length(self.projection_)

    def _draw_hadamard(self) -> None:
        from similia.codes._hadamard import hadamard_signs

        self.signs_ = hadamard_signs(self.n_bits, self.n_features_in_, generator(self.random_state))

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.uint8]:
        """Encode vectors.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Finite vectors; float32 and float64 give the same bits where they hold the same numbers.

        Returns
        -------
        uint8 array of shape (n, n_bits // 8)
            Packed codes, bit 1 for +1, order of `numpy.packbits`.

        Raises
        ------
        ValueError
            If `X` is not a 2-D array of finite numbers (the first bad row is named) or has another number of
            features than in `fit`.
        """
        check_is_fitted(self, "n_features_in_")
        check_columns(self, X, reset=False)
        X = check_vectors(X, n_features=self.n_features_in_, by=self)
        if self.signs_ is None:
            expected = (8 * self._n_features_out, self.n_features_in_)
            if np.shape(self.projection_) != expected:
                raise ValueError(f"projection_ has shape {np.shape(self.projection_)}, expected {expected}; fit again")
            return dense.sign_codes(X, self.projection_, self.row_length_)
        from similia.codes._hadamard import hadamard_codes

        codes = np.empty((len(X), self._n_features_out), np.uint8)
        step = rows_per_block(24 * X.shape[1], at_most=2**14)
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            hadamard_codes(dense.unit_rows(X[block]), self.signs_, codes[block])
        return codes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # packed bits
        return tags


def _check_n_features(n_features: int, at_most: int | None) -> None:
    if at_most is not None and n_features > at_most:
        raise ValueError(
            f"X has {n_features} features, but method='gaussian' is exact up to {at_most}; "
            "use method='structured' or reduce the vectors first"
        )
