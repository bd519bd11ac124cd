"""What Gaussian-process regression and classification share: kernels to try, objects, landmarks."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from similia.core.errors import BadParameter
from similia.core.estimators import detached
from similia.core.text import short
from similia.core.validation import RandomState
from similia.embeddings.nystroem import Nystroem
from similia.learn.kernel_machines import KernelMachine
from similia.objects.sequences import at_least_one
from similia.similarity import check_kernel, decided, diagonal, read_objects
from similia.sources.dask import refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


class GaussianProcess(KernelMachine):
    """Base of the Gaussian processes: tries parameters of the kernel, reads objects, takes landmarks."""

    parameters: Any
    n_landmarks: Any
    random_state: RandomState
    objects_: Any
    indices_: Index

    def _kernels(self) -> list[Any]:
        """Return copies of the kernel with each combination of `parameters`."""
        check_kernel(self.kernel)
        if self.parameters is None:
            return [self.kernel]
        if not isinstance(self.parameters, dict) or not self.parameters or not hasattr(self.kernel, "set_params"):
            raise BadParameter(
                "parameters", "a dictionary of parameters of the kernel and lists of values to try",
                short(self.parameters), "such as {'k': [2, 3, 4]}",
            )  # fmt: skip
        return [clone(self.kernel).set_params(**values) for values in ParameterGrid(self.parameters)]

    def _objects(self, kernel: Any, X: Any) -> tuple[Any, Any, int]:
        """Return (kernel with all parameters set, objects in its layout, their number)."""
        refuse_lazy(X, "several passes over the objects are needed")
        kernel = detached(decided(kernel, X))
        objects = read_objects(self, kernel, X, reset=True)
        return kernel, objects, at_least_one(objects)

    def _embedding(self, kernel: Any, objects: Any, n_landmarks: int) -> Nystroem:
        return Nystroem(kernel, n_landmarks, "rpcholesky", random_state=self.random_state).fit(objects)

    def _self_values(self, X: Any) -> Floats:
        """Return k(x, x) of m objects, shape (m,)."""
        return diagonal(self.kernel_, read_objects(self, self.kernel_, X, reset=False))


def number_of_landmarks(wanted: Any, n: int, auto: int | None) -> int | None:
    """Return the number of landmarks, or None for all n objects; `auto` is the value that "auto" stands for."""
    if isinstance(wanted, str) and wanted == "auto":
        wanted = auto
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or wanted < 1:
        raise BadParameter("n_landmarks", "an integer >= 1, 'auto', or None for all objects", repr(wanted))
    return min(n, int(wanted))
