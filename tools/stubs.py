"""Write `__init__.pyi` beside each lazy `__init__.py`, so that type checkers and editors know its public names.

``python tools/stubs.py`` writes them; with ``--check``, as in ``python dev.py lint``, it says which are not up to date.
"""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src"


def stub(package: str, names: dict[str, str]) -> str:
    """Return the stub of a package whose `names` come from the modules that `core.attach` imports them from."""
    lines = []
    for name, home in names.items():
        module = home if home.startswith("similia.") else f"{package}.{home}".rstrip(".")
        lines.append(f"from {module} import {name} as {name}\n")
    extra = ["from similia._version import __version__ as __version__\n"] if package == "similia" else []
    return "# Written by tools/stubs.py from the names in __init__.py.\n\n" + "".join(extra + lines)


def main() -> int:
    sys.path.insert(0, str(ROOT))
    stale = []
    for file in sorted(ROOT.glob("similia/**/__init__.py")):
        if "attach(__name__" not in file.read_text(encoding="utf-8"):
            continue
        package = ".".join(file.parent.relative_to(ROOT).parts)
        text, path = stub(package, importlib.import_module(package)._NAMES), file.with_suffix(".pyi")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT.parent)))
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print("not up to date, run python tools/stubs.py:", *stale, sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
