# Written by tools/stubs.py from the names in __init__.py.

from similia.devices.quantised import quantise as quantise
from similia.devices.quantised import Quantised as Quantised
from similia.devices.quantised import Loss as Loss
from similia.devices.compressed import compress as compress
from similia.devices.compressed import Compressed as Compressed
from similia.devices.compressed import Size as Size
from similia.devices.c import export_c as export_c
from similia.devices.verilog import export_verilog as export_verilog
