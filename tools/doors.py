"""Check that no room of similia uses another room's private modules or names: ``python tools/doors.py [src/similia]``.

A room is a folder or a module of the package. What begins with an underscore belongs to the room that defines it.
`import-linter` checks the floors and circles (see ``pyproject.toml``); it knows modules, not names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def private_imports(package: Path) -> Iterator[str]:
    """Yield ``file:line: module.name`` for each import of a private module or name of another room."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in _imported(node):
                names = target.split(".")
                room, inside = names[1:2], names[1:]
                if names[0] != package.name or room == [Path(parts[0]).stem]:
                    continue
                if any(name.startswith("_") and not name.endswith("__") for name in inside) and inside[0] != "_version":
                    yield f"{path}:{node.lineno}: {target} is private to {'.'.join(names[:2])}"  # type: ignore[attr-defined]


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def main() -> int:
    found = list(private_imports(Path(sys.argv[1] if len(sys.argv) > 1 else "src/similia")))
    print("\n".join(found) if found else "no room uses another room's private modules or names")
    return len(found) > 0


if __name__ == "__main__":
    raise SystemExit(main())
