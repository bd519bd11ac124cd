# Written by tools/stubs.py from the names in __init__.py.

from similia.search.feature_index import FeatureIndex as FeatureIndex
from similia.search.vector_index import VectorIndex as VectorIndex
from similia.search.hamming_index import HammingIndex as HammingIndex
from similia.search.similarity_search import SimilaritySearch as SimilaritySearch
from similia.search.similarity_search import Recall as Recall
from similia.search.on_disk import SearchFolder as SearchFolder
from similia.search.similarity_map import SimilarityMap as SimilarityMap
from similia.search.hdbscan import HDBSCAN as HDBSCAN
from similia.search.neighbour_graph import knn_graph as knn_graph
from similia.search.duplicates import near_duplicates as near_duplicates
from similia.search.duplicates import Duplicates as Duplicates
from similia.search.subsequences import find as find
from similia.search import exports as exports
