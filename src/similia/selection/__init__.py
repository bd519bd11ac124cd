"""Which pipeline? `select` tries the five systems and plain learners on your objects, under a time budget."""

from similia.core.lazy import attach

_NAMES = {"select": "auto", "Selection": "auto"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
