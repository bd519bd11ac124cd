"""Change one operator or constant of a module at random and run its tests: do they notice?

    python dev.py mutate                      # 10 changes in each of ten modules
    python dev.py mutate itq -n 5 --seed 1    # 5 others in one

The work is done on a copy of the package with a cache of compiled loops of its own. numba looks only at the file of the
outermost loop, so the loops of the changed module, and of all that import it, leave the cache before each run.
Maintained tools do not serve here: mutmut's trampolines cannot be compiled, cosmic-ray knows nothing of that cache.
Tests that run five times as long as before count as failed. Prints each change that no test noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MODULES = {  # the module, and its tests
    "nystroem": ("embeddings/nystroem.py", ["embeddings/test_nystroem.py", "embeddings/test_nystroem_input.py"]),
    "landmarks": (
        "embeddings/landmarks.py",
        ["embeddings/test_landmarks.py", "embeddings/test_nystroem.py", "embeddings/test_pseudo_euclidean.py"],
    ),
    "strings": (
        "kernels/strings.py",
        ["kernels/test_string_kernels.py", "kernels/test_text_kernels.py", "kernels/test_both_strands.py"],
    ),
    "counts": (
        "kernels/counts.py",
        ["kernels/test_counts.py", "kernels/test_few_objects.py", "kernels/test_string_kernels.py"],
    ),
    "hd_classifier": ("learn/hd_classifier.py", ["learn/test_hd_classifier.py"]),
    "d2ke": ("embeddings/d2ke.py", ["embeddings/test_d2ke.py", "embeddings/test_random_objects.py"]),
    "hamming_index": ("search/hamming_index.py", ["search/test_hamming_index.py", "storage/test_store.py"]),
    "hypersphere": ("kernels/hypersphere.py", ["kernels/test_hypersphere.py"]),
    "itq": ("codes/itq.py", ["codes/test_itq.py"]),
    "graphs": (
        "objects/graphs.py",
        [
            "objects/test_graph_objects.py", "objects/test_graph_refusals.py", "objects/test_node_details.py",
            "sources/test_readers.py",
        ],
    ),
}  # fmt: skip
_SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip


class Change(NamedTuple):
    """Text between two positions of a source, and what replaces it."""

    start: int
    end: int
    new: str


def changes(source: str) -> list[Change]:
    """Return all changes of one operator or constant; texts, annotations and what is raised stay."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def position(line: int | None, column: int | None) -> int:
        text = source[starts[(line or 1) - 1] : starts[line or 1]].encode()[: column or 0].decode()
        return starts[(line or 1) - 1] + len(text)

    found: list[Change] = []

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> None:
        old, new = _SWAPS.get(type(operator), ("", ""))
        first, last = position(left.end_lineno, left.end_col_offset), position(right.lineno, right.col_offset)
        if old and (at := source.find(old, first, last)) >= 0:
            found.append(Change(at, at + len(old), new))

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.ImportFrom | ast.Import):
            return
        if isinstance(node, ast.BinOp):
            between(node.left, node.op, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            between(node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            between(node.values[0], node.op, node.values[1])
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = node.value
            new = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value + 0.1
            ends = position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
            found.append(Change(*ends, repr(new)))
        for name, part in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in part if isinstance(part, list) else [part]:
                    if isinstance(child, ast.AST):
                        visit(child)

    visit(ast.parse(source))
    return sorted(set(found))


def importers(package: Path, module: Path) -> set[Path]:
    """Return a module and all modules of the package that import it, directly or through others."""
    names = {file: ".".join(file.relative_to(package.parent).with_suffix("").parts) for file in package.rglob("*.py")}
    wanted: dict[Path, set[str]] = {}
    for file in names:
        tree = ast.walk(ast.parse(file.read_text()))
        imports = [node for node in tree if isinstance(node, ast.ImportFrom) and node.module]
        wanted[file] = {node.module or "" for node in imports}
        wanted[file] |= {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    found, size = {module}, 0
    while len(found) > size:
        size = len(found)
        found |= {file for file in names if wanted[file] & {names[one] for one in found}}
    return found


class Copy:
    """A copy of the package with its own cache of compiled loops, in which one module is changed at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        where, tests = MODULES[name]
        self.package = folder / "src" / "similia"
        shutil.copytree(ROOT / "src" / "similia", self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.module, self.cache = self.package / where, folder / "cache"
        self.source = self.module.read_text()
        self.stems = {file.stem for file in importers(self.package, self.module)}
        self.tests = [str(ROOT / "tests" / test) for test in tests]
        path = os.pathsep.join([str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(self.cache)}
        self.environment |= {"PYTHONDONTWRITEBYTECODE": "1"}

    def write(self, change: Change | None) -> None:
        """Write the module with a change, or as it is, and forget the loops that depend on it."""
        text = self.source
        if change is not None:
            text = text[: change.start] + change.new + text[change.end :]
        self.module.write_text(text)
        for file in [*self.cache.rglob("*.nbi"), *self.cache.rglob("*.nbc")]:
            if file.name.split(".")[0] in self.stems:
                file.unlink()

    def passes(self, seconds: float | None = None) -> bool:
        """Run the tests; return whether all pass in time."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *self.tests]
        try:
            return not subprocess.run(
                command, cwd=ROOT, env=self.environment, timeout=seconds, capture_output=True
            ).returncode
        except subprocess.TimeoutExpired:
            return False


def survey(name: str, n: int, seed: int) -> tuple[int, int]:
    """Try n changes of a module; print those that no test notices; return how many were noticed, and n."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder), name)
        copy.write(None)
        start = time.perf_counter()
        used = [sys.executable, "-c", "import similia; print(similia.__file__)"]
        if str(folder) not in subprocess.run(used, env=copy.environment, capture_output=True, text=True).stdout:
            raise SystemExit("the copy of the package is not the one that is imported")
        if not copy.passes():
            raise SystemExit(f"the tests of {name} fail as they are: {' '.join(copy.tests)}")
        limit = 60 + 5 * (time.perf_counter() - start)
        every = changes(copy.source)
        chosen = random.Random(f"{name} {seed}").sample(every, min(n, len(every)))
        noticed = 0
        for change in chosen:
            copy.write(change)
            if not copy.passes(limit):
                noticed += 1
                continue
            line = copy.source.count("\n", 0, change.start)
            old = copy.source[change.start : change.end]
            print(f"{MODULES[name][0]}:{line + 1}: {old} -> {change.new}: {copy.source.splitlines()[line].strip()}")
    print(f"{name}: {noticed} of {len(chosen)} changes noticed", flush=True)
    return noticed, len(chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], default=[], help="all if not given")
    parser.add_argument("-n", type=int, default=10, help="changes of a module")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = [survey(name, options.n, options.seed) for name in options.modules or MODULES]
    print(f"{sum(noticed for noticed, _ in counts)} of {sum(n for _, n in counts)} changes noticed")


if __name__ == "__main__":
    main()
