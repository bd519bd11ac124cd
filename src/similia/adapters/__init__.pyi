# Written by tools/stubs.py from the names in __init__.py.

from similia.adapters.graphs import from_grakel as from_grakel
from similia.adapters.graphs import GraKeLKernel as GraKeLKernel
from similia.adapters.transport import from_pot as from_pot
from similia.adapters.transport import POTDistance as POTDistance
from similia.adapters.series import from_aeon as from_aeon
from similia.adapters.series import AeonDistance as AeonDistance
from similia.adapters.series import from_tslearn as from_tslearn
from similia.adapters.series import TslearnDistance as TslearnDistance
from similia.adapters.series import TslearnKernel as TslearnKernel
