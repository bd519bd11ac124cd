# Written by tools/stubs.py from the names in __init__.py.

from similia.report.approximation import ApproximationErrorDisplay as ApproximationErrorDisplay
from similia.report.approximation import SpectrumDisplay as SpectrumDisplay
from similia.report.bits import RobustnessDisplay as RobustnessDisplay
from similia.report.bits import RecallDisplay as RecallDisplay
from similia.report.displays import EmbeddingDisplay as EmbeddingDisplay
from similia.report.page import write_report as write_report
from similia.report.map_page import write_map as write_map
from similia.report.clusters_page import write_clusters as write_clusters
from similia.report.duplicates_page import write_duplicates as write_duplicates
from similia.report.search_page import write_search as write_search
