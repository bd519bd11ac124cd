# Written by tools/stubs.py from the names in __init__.py.

from similia.storage.models import save as save
from similia.storage.models import load as load
