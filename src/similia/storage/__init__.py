"""What is kept: model files without pickle, folders that commit atomically, journals."""

from similia.core.lazy import attach

_NAMES = {
    "save": "models",
    "load": "models",
}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
