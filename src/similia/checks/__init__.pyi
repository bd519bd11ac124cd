# Written by tools/stubs.py from the names in __init__.py.

from similia.checks.laws import check_kernel as check_kernel
from similia.checks.laws import check_distance as check_distance
from similia.checks.laws import check_embedding as check_embedding
from similia.checks.laws import check_codes as check_codes
from similia.checks.laws import check_structured_estimator as check_structured_estimator
