"""Use kernels and distances of GraKeL, POT, aeon and tslearn; a library is imported only when it is first used."""

from similia.core import attach

_NAMES = {
    "from_grakel": "graphs", "GraKeLKernel": "graphs",
    "from_pot": "transport", "POTDistance": "transport",
    "from_aeon": "series", "AeonDistance": "series",
    "from_tslearn": "series", "TslearnDistance": "series", "TslearnKernel": "series",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
