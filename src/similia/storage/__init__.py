"""Persistence: model files without pickle, index folders with atomic commits, and journals of interruptible runs."""

from similia.core import attach

_NAMES = {"save": "models", "load": "models"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
