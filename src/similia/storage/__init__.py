"""Persistence: model files without pickle, folders with atomic commits, and journals."""

from similia.core.lazy import attach

_NAMES = {"save": "models", "load": "models"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
