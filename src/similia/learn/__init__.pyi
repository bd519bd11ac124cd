# Written by tools/stubs.py from the names in __init__.py.

from similia.learn.hd_classifier import HDClassifier as HDClassifier
from similia.learn.d2ke_search import D2KESearch as D2KESearch
from similia.learn.kernel_machines import KernelSVC as KernelSVC
from similia.learn.kernel_machines import KernelRidge as KernelRidge
from similia.learn.kernel_machines import KernelSVR as KernelSVR
from similia.learn.neighbors import KNeighborsClassifier as KNeighborsClassifier
from similia.learn.neighbors import KNeighborsRegressor as KNeighborsRegressor
from similia.learn.neighbors import NearestNeighbors as NearestNeighbors
from similia.learn.gaussian_process import GaussianProcessRegressor as GaussianProcessRegressor
from similia.learn.gaussian_process_classifier import GaussianProcessClassifier as GaussianProcessClassifier
from similia.learn.outliers import OutlierDetector as OutlierDetector
from similia.learn.vote import VoteClassifier as VoteClassifier
from similia.learn.vote import VoteRegressor as VoteRegressor
from similia.learn.conformal import ConformalClassifier as ConformalClassifier
from similia.learn.conformal import ConformalRegressor as ConformalRegressor
from similia.learn.clusters import KernelKMeans as KernelKMeans
from similia.learn.heat_svc import HeatSVC as HeatSVC
from similia.learn.kernel_machines import nested_scores as nested_scores
from similia.learn.kernel_machines import precomputed_scores as precomputed_scores
