# Written by tools/stubs.py from the names in __init__.py.

from similia.datasets.loaders import available as available
from similia.datasets.loaders import fetch as fetch
from similia.datasets.loaders import load_messages as load_messages
from similia.datasets.loaders import load_molecules as load_molecules
from similia.datasets.loaders import load_movements as load_movements
from similia.datasets.loaders import load_promoters as load_promoters
from similia.datasets.loaders import load_splice as load_splice
from similia.datasets.loaders import load_vowels as load_vowels
from similia.datasets.loaders import splits as splits
