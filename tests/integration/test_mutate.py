"""The changes that `python dev.py mutate` makes."""

from pathlib import Path

import mutate
import similia

SOURCE = """
def f(a: int, b: float = 2.0) -> int:
    "é: 1 + 1 in a text"
    if a <= b and not (a - 1):
        raise ValueError(f"a is {a + 1}")
    return a == 3
"""


def test_changes_are_of_one_operator_or_constant():
    changed = {SOURCE[: c.start] + c.new + SOURCE[c.end :] for c in mutate.changes(SOURCE)}
    wanted = [("2.0", "4.1"), ("a <= b", "a < b"), ("and", "or"), ("a - 1", "a + 1"), ("a - 1", "a - 2"), ("==", "!=")]
    assert changed == {SOURCE.replace(old, new, 1) for old, new in [*wanted, ("a == 3", "a == 4")]}


def test_loops_of_all_that_import_a_module_are_compiled_anew():
    package = Path(similia.__file__).parent
    found = {file.stem for file in mutate.importers(package, package / "core" / "products.py")}
    assert {"products", "sign_projection", "random_features"} <= found
    assert "lanes" not in found


def test_modules_and_their_tests_are_there():
    for module, tests in mutate.MODULES.values():
        assert (mutate.ROOT / "src" / "similia" / module).is_file()
        assert all((mutate.ROOT / "tests" / test).is_file() for test in tests)
