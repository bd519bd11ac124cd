"""Which pipeline? `select` tries the five systems and plain learners on your objects, under a time budget."""

from similia._lazy import attach

_NAMES = {"select": "_select", "Selection": "_select", "SeriesVectors": "series_vectors"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
