"""Choose a pipeline: two estimators compare many embeddings and learners on your objects, within a time budget."""

from similia.core import attach

_NAMES = {"AutoClassifier": "auto", "AutoRegressor": "auto"}
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
