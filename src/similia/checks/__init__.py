"""Check that kernels, distances, embeddings and encoders, ours or your own, satisfy their laws."""

from similia.core import attach

_NAMES = {
    "check_kernel": "laws",
    "check_distance": "laws",
    "check_embedding": "laws",
    "check_codes": "laws",
    "check_structured_estimator": "laws",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
