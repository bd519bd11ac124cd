# Written by tools/stubs.py from the names in __init__.py.

from similia.planning.bounds import EffectiveDimension as EffectiveDimension
from similia.planning.bounds import d2ke_n_components as d2ke_n_components
from similia.planning.bounds import effective_dimension as effective_dimension
from similia.planning.bounds import lipschitz as lipschitz
from similia.planning.bounds import graphlet_samples as graphlet_samples
from similia.planning.bounds import mmd_error as mmd_error
from similia.planning.bounds import minhash_n_hashes as minhash_n_hashes
from similia.planning.forecasts import plan as plan
from similia.planning.forecasts import Plan as Plan
