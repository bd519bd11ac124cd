# Written by tools/stubs.py from the names in __init__.py.

from similia.selection.auto import AutoClassifier as AutoClassifier
from similia.selection.auto import AutoRegressor as AutoRegressor
