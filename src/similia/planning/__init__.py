"""Predict the cost and quality of results: bounds from theory, seconds and bytes from measurements."""

from similia.core import attach

_NAMES = {
    "EffectiveDimension": "bounds",
    "d2ke_n_components": "bounds",
    "effective_dimension": "bounds",
    "lipschitz": "bounds",
    "graphlet_samples": "bounds",
    "mmd_error": "bounds",
    "minhash_n_hashes": "bounds",
    "plan": "forecasts",
    "Plan": "forecasts",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
