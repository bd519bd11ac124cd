# Written by tools/stubs.py from the names in __init__.py.

from similia.embeddings.nystroem import Nystroem as Nystroem
from similia.embeddings.kernel_features import KernelFeatures as KernelFeatures
from similia.embeddings.kernel_features import FeatureWeights as FeatureWeights
from similia.embeddings import landmarks as landmarks
from similia.embeddings.d2ke import D2KE as D2KE
from similia.embeddings.pseudo_euclidean import PseudoEuclidean as PseudoEuclidean
from similia.embeddings.d2ke import RandomStrings as RandomStrings
from similia.embeddings.d2ke import RandomSeries as RandomSeries
from similia.embeddings.d2ke import RandomSets as RandomSets
from similia.embeddings.d2ke import Representatives as Representatives
from similia.embeddings.d2ke import Mosaics as Mosaics
from similia.embeddings.d2ke import Mixture as Mixture
from similia.embeddings.vectors import SeriesVectors as SeriesVectors
from similia.embeddings.hydra import Hydra as Hydra
from similia.embeddings.hydra import SparseScaler as SparseScaler
from similia.embeddings.intervals import IntervalQuantiles as IntervalQuantiles
from similia.embeddings.graphlets import GraphletSampling as GraphletSampling
from similia.embeddings.random_features import OpticalRandomFeatures as OpticalRandomFeatures
from similia.embeddings.heat_features import HeatRandomFeatures as HeatRandomFeatures
from similia.embeddings.mean_map import MeanMapFeatures as MeanMapFeatures
from similia.embeddings.convolutions import RandomConvolutions as RandomConvolutions
