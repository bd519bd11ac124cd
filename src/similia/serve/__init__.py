"""A model or search index as a service over HTTP."""

from similia.core import attach

_NAMES = {"Service": "service", "Refused": "service", "application": "web"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
