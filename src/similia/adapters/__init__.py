"""Kernels and distances of other libraries as ours: GraKeL, POT, aeon, tslearn; each is imported when it is called."""

from similia.core.lazy import attach

_NAMES = {
    "from_grakel": "graphs", "GraKeLKernel": "graphs",
    "from_pot": "transport", "POTDistance": "transport",
    "from_aeon": "series", "AeonDistance": "series",
    "from_tslearn": "series", "TslearnDistance": "series", "TslearnKernel": "series",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
