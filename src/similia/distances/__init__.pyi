# Written by tools/stubs.py from the names in __init__.py.

from similia.distances.edit import Levenshtein as Levenshtein
from similia.distances.edit import Hamming as Hamming
from similia.distances.edit import DamerauLevenshtein as DamerauLevenshtein
from similia.distances.edit import JaroWinkler as JaroWinkler
from similia.distances.elastic import DTW as DTW
from similia.distances.elastic import ERP as ERP
from similia.distances.elastic import MSM as MSM
from similia.distances.elastic import TWE as TWE
from similia.distances.elastic import LCSS as LCSS
from similia.distances.elastic import ADTW as ADTW
from similia.distances.elastic import SoftDTW as SoftDTW
from similia.distances.sets import ModifiedHausdorff as ModifiedHausdorff
from similia.distances.sets import Hausdorff as Hausdorff
from similia.distances.sets import Chamfer as Chamfer
from similia.distances.sets import SlicedWasserstein as SlicedWasserstein
from similia.distances.sets import Wasserstein as Wasserstein
from similia.distances.mmd import MMD as MMD
from similia.similarity import Distance as Distance
from similia.similarity import Facts as Facts
from similia.distances.from_function import FromFunction as FromFunction
from similia.distances.mmd import mmd2 as mmd2
from similia.distances.mmd import two_sample_test as two_sample_test
from similia.distances.mmd import TwoSampleResult as TwoSampleResult
