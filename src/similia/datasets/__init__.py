"""Load data sets: two are bundled with similia; others are downloaded, checked and cached, or read from folders."""

from similia.core.lazy import attach

_NAMES = {
    "load_promoters": "loaders", "load_splice": "loaders", "fetch": "loaders", "splits": "loaders",
    "available": "loaders",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
