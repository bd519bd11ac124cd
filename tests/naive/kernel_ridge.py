"""Kernel ridge regression, by solving one system of equations for each object that is left out."""

from __future__ import annotations

import numpy as np


def leave_one_out_errors(K, y, alpha):
    """Return y_i minus the prediction for object i by the model of all other objects, for each i."""
    errors = np.empty_like(y)
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        coefficients = np.linalg.solve(K[np.ix_(rest, rest)] + alpha * np.eye(len(rest)), y[rest])
        errors[i] = y[i] - K[i, rest] @ coefficients
    return errors
