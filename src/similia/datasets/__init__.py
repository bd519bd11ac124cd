"""Load data sets: six are bundled with similia; others are downloaded, checked and cached, or read from folders."""

from similia.core import attach

_NAMES = dict.fromkeys(
    ("available", "fetch", "load_messages", "load_molecules", "load_movements", "load_promoters", "load_splice",
     "load_vowels", "splits"),
    "loaders",
)  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
