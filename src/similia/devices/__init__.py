"""Models for small devices: `quantise` converts a fitted pipeline; `export_c` and `export_verilog` write it."""

from similia.core import attach

_NAMES = {
    "quantise": "quantised", "Quantised": "quantised", "Loss": "quantised",
    "compress": "compressed", "Compressed": "compressed", "Size": "compressed",
    "export_c": "c",
    "export_verilog": "verilog",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
