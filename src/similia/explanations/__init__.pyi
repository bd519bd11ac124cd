# Written by tools/stubs.py from the names in __init__.py.

from similia.explanations._explain import explain as explain
from similia.explanations._shared import explain_classes as explain_classes
from similia.explanations._shared import SharedPart as SharedPart
from similia.explanations._explanation import Explanation as Explanation
from similia.explanations._explanation import Part as Part
