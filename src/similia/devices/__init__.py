"""Models for small devices: a fitted pipeline in whole numbers (`quantise`), as C (`export_c`) or Verilog."""

from similia.core import attach

_NAMES = {
    "quantise": "quantised", "Quantised": "quantised", "Loss": "quantised",
    "compress": "compressed", "Compressed": "compressed", "Size": "compressed",
    "export_c": "c",
    "export_verilog": "verilog",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
