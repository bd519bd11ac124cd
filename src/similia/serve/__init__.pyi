# Written by tools/stubs.py from the names in __init__.py.

from similia.serve.service import Service as Service
from similia.serve.service import Refused as Refused
from similia.serve.web import application as application
