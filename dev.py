"""Set up similia in its own virtual environment and run one thing in it; needs only Python >= 3.11 and pip.

python dev.py demo    # the main job on bundled real data
python dev.py test    # the tests, on up to four cores, with coverage; further arguments go to pytest
python dev.py lint    # style, types, and the laws of the house (docs/architecture.md)
python dev.py cpus    # the same models under the instructions of other processors: equal codes, labels, neighbours
python dev.py mutate  # change one operator or constant at random: do the tests of the module notice?
python dev.py reproduce NAME  # a published experiment, our figures beside the paper's; without a name, the list
python dev.py package  # sdist and wheel, tried in an empty environment away from this clone
python dev.py pictures  # the pictures of the README
python dev.py docs    # the documentation, into docs/_build/html; warnings are errors
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
BIN = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTEST = ["-m", "pytest", "-n", "auto", "--maxprocesses=4", "--dist=loadfile", "--durations=25"]
EVERYTHING = "[test,docs]"
NEEDS = {"demo": "", "package": ""}  # extras; other commands need everything
STEPS = {
    "demo": [["-m", "similia.cli", "demo"]],
    "test": [[*PYTEST, "--cov=similia"]],
    "lint": [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "mypy"],
        ["tools/doors.py"],
        ["-c", "from importlinter.cli import lint_imports_command as check; check()"],
    ],
    "cpus": [["tests/faults/run.py", "cpus"]],
    "mutate": [["tests/mutate.py"]],
    "reproduce": [["-m", "experiments"]],
    "package": [["tools/package.py"]],
    "pictures": [["docs/_ext/readme_pictures.py"]],
    "docs": [["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html"]],
}


def install(extras: str) -> None:
    """Make the environment and install similia into it with `extras`, unless that was done for this pyproject.toml."""
    stamp = ENVIRONMENT / "installed-for"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    found = stamp.read_text() if stamp.exists() else ""
    mark = wanted if extras == EVERYTHING else f"{wanted} core"
    if found in (wanted, mark):  # what has everything will do for all
        return
    print(f"setting up {ENVIRONMENT} (once; a minute or two)", flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=not found.startswith(wanted))
    pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-e", f".{extras}"], cwd=ROOT, check=True)
    stamp.write_text(mark)


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in STEPS:
        print(__doc__)
        return 2
    install(NEEDS.get(sys.argv[1], EVERYTHING))
    folders = [folder for name in ("data", "data2") if (folder := ROOT.parent / "shared" / name).is_dir()]
    if folders:
        os.environ.setdefault("SIMILIA_DATA", os.pathsep.join(map(str, folders)))
    for step in STEPS[sys.argv[1]]:
        code = subprocess.run([BIN / "python", *step, *sys.argv[2:]], cwd=ROOT).returncode
        if code:
            print(f"failed with exit code {code}: python {' '.join(map(str, step))}", file=sys.stderr)
            return 1
    if sys.argv[1] == "docs":
        print(f"open {ROOT / 'docs' / '_build' / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
