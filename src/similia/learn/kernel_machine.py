"""What learners on the Gram matrix of their training objects share: reading objects, the matrix, blocks of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from similia.core.config import rows_per_block, settings
from similia.core.errors import pairs_named
from similia.embeddings.gram import check_finite
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import ComparesObjects, check_kernel, decided, evaluate, read_objects, warn_of_strangers
from similia.sources.lazily import refuse_lazy

Floats = npt.NDArray[np.float64]


class KernelMachine(ComparesObjects, BaseEstimator):
    """Base of learners with the parameter `kernel` that are fitted to one Gram matrix."""

    kernel: Any
    kernel_: Any
    _linear_model = "LinearSVC()"  # what follows Nystroem where the matrix does not fit

    def _read(self, X: Any) -> tuple[Any, Any, int]:
        """Return (kernel decided by the objects, objects in its layout, how many), or raise if n^2 do not fit."""
        refuse_lazy(X, "the kernel of all pairs of objects is needed; take Nystroem(kernel) and a linear model")
        check_kernel(self.kernel)
        kernel = decided(self.kernel, X)
        objects = read_objects(self, kernel, X, reset=True)
        n = at_least_one(objects)
        needed = 8 * n**2
        if needed > settings().max_memory:
            raise ValueError(
                f"the Gram matrix of {n} objects takes {needed / 2**20:.0f} MiB, and max_memory is "
                f"{settings().max_memory / 2**20:.0f} MiB; take make_pipeline(similia.Nystroem(kernel), "
                f"{self._linear_model}), or allow more with similia.config(max_memory=...)"
            )
        return kernel, objects, n

    def _gram(self, kernel: Any, objects: Any, n: int) -> Floats:
        """Return the kernel of all pairs, float64 of shape (n, n)."""
        with pairs_named(range(n), range(n), "X[{}] and X[{}]"):
            K = evaluate(kernel, objects)
        K = check_finite(K, range(n), range(n), "X[{}] and X[{}]")
        return K.astype(np.float64, copy=False)

    def _over_blocks(self, X: Any, known: Any, of: Callable[[npt.NDArray], Floats], width: int = 1) -> Floats:
        """Return ``of(K)`` of the kernel values K between objects and those that are kept, block by block.

        `width` is how many numbers of an object `of` holds.
        """
        objects = read_objects(self, self.kernel_, X, reset=False)
        m, s = at_least_one(objects), n_objects(known)
        alone: list[int] = []
        parts, step = [], rows_per_block(8 * (3 * s + width))
        for start in range(0, m, step):
            rows = np.arange(start, min(start + step, m))
            part = objects if step >= m else take(objects, rows)
            with pairs_named(rows, range(s), "X[{}] and object {}"):
                K = evaluate(self.kernel_, part, known) if s else np.zeros((len(rows), 0))
            if s and hasattr(self.kernel_, "features"):
                alone.extend(rows[~K.any(axis=1)].tolist())
            parts.append(of(check_finite(K, rows, range(s), "X[{}] and object {}")))
        warn_of_strangers(alone, m, "have similarity 0 to all training objects that the model keeps")
        return np.concatenate(parts)
