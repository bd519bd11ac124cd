"""Set up similia in its own virtual environment and run one thing in it; needs only Python >= 3.11 and pip.

python dev.py demo    # the main job on bundled real data
python dev.py test    # the tests, on up to four cores; further arguments go to pytest (--cov=similia: coverage)
python dev.py lint    # style, types, and the laws of the house (docs/architecture.md)
python dev.py cpus    # the same models under the instructions of other processors: equal codes, labels, neighbours
python dev.py mutate  # change one operator or constant at random: do the tests of the module notice?
python dev.py reproduce NAME  # a published experiment, our figures beside the paper's; without a name, the list
python dev.py package  # sdist and wheel, tried in an empty environment away from this clone
python dev.py ecosystem  # the tests against other libraries and servers, in .venv-ecosystem; writes docs/ecosystem.md
python dev.py lowest  # the core of the tests with the oldest releases that pyproject.toml allows
python dev.py newest  # the same with the newest, pre-releases included
python dev.py pictures  # the pictures of the README
python dev.py docs    # the documentation, into docs/_build/html; warnings and serious findings of axe are errors
"""

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PYTEST = ["-m", "pytest", "-n", "auto", "--maxprocesses=4", "--dist=loadfile", "--durations=25"]
CORE = [  # of each room
    "core/test_products.py", "core/test_state.py", "storage", "objects/test_strings.py", "objects/test_series.py",
    "objects/test_data_frames.py", "objects/test_graph_objects.py", "objects/test_molecules.py",
    "sources/test_tables.py", "sources/test_dask.py", "kernels/test_string_kernels.py", "kernels/test_graphs.py",
    "distances/test_elastic.py", "distances/test_edit.py", "embeddings/test_nystroem.py", "embeddings/test_d2ke.py",
    "codes/test_bits.py", "codes/test_encoders.py", "learn/test_hd_classifier.py", "learn/test_drop_ins.py",
    "search/test_hamming_index.py", "search/test_similarity_search.py", "search/test_exports.py",
    "explanations/test_explain_neighbours.py", "report/test_displays.py", "serve", "cli/test_cli.py",
    "cli/test_predict_cli.py",
]  # fmt: skip
TESTS = [*PYTEST, "-m", "not ecosystem and not faults", *(f"tests/{name}" for name in CORE)]
EVERYTHING = "[test,docs]"
DEMO = {"numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "typer", "rich"}  # the dependencies that it imports
NEEDS = {"demo": "demo", "package": "", "ecosystem": "[test,ecosystem]", "lowest": "[test]", "newest": "[test]"}
OWN = {"ecosystem", "lowest", "newest"}  # these commands have an environment of their own, .venv-NAME
UV = {  # options for uv, which chooses their versions (pip takes minutes to find a set that fits the ecosystem)
    "ecosystem": [],
    "lowest": ["--resolution", "lowest-direct"],
    "newest": ["--prerelease", "allow"],
}
TORCH = "torch==2.13.0"  # PyG and aeon's Hydra need one; a newer release may bring gigabytes for graphics cards
STEPS = {
    "demo": [["-m", "similia.cli", "demo"]],
    "test": [[*PYTEST, "-m", "not ecosystem and not long"]],
    "lint": [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "mypy"],
        ["tools/doors.py"],
        ["tools/stubs.py", "--check"],
        ["-c", "from importlinter.cli import lint_imports_command as check; check()"],
    ],
    "cpus": [["tests/faults/run.py", "cpus"]],
    "mutate": [["tests/mutate.py"]],
    "reproduce": [["-m", "experiments"]],
    "package": [["tools/package.py"]],
    "ecosystem": [["tools/ecosystem.py"]],
    "lowest": [[*TESTS, "-W", "default"]],  # old releases warn of the Python that runs them
    "newest": [TESTS],
    "pictures": [["docs/_ext/readme_pictures.py"]],
    "docs": [
        ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html"],
        ["tools/accessible.py"],
    ],
}


def install(environment: Path, extras: str, uv: list[str] | None) -> None:
    """Make an environment and install similia into it with `extras`, unless that was done for this pyproject.toml.

    Without extras, only its dependencies are installed, which saves a build; `main` adds src to the path. For the demo,
    only those that it imports.
    With options for `uv`, it chooses the versions; otherwise pip does.
    """
    stamp, project = environment / "installed-for", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = hashlib.sha256((project + sys.version).encode()).hexdigest()
    found = stamp.read_text() if stamp.exists() else ""
    mark = wanted if extras == EVERYTHING else f"{wanted} {extras or 'core'}"
    if found in (wanted, mark) or (extras == "demo" and found.startswith(wanted)):  # what has more will do
        return
    print(f"setting up {environment} (once; a minute or two)", flush=True)
    venv.create(environment, clear=not found.startswith(wanted))
    python = environment / SCRIPTS / "python"
    # The pip that runs this file, so that none is installed; Python compiles the few modules that a command imports.
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    install.append("--disable-pip-version-check")
    if uv is not None:
        subprocess.run([*install, "uv", *([TORCH] if "ecosystem" in extras else [])], check=True)
        install = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *uv]
    what = ["-e", f".{extras}"]
    if not extras.startswith("["):
        dependencies = tomllib.loads(project)["project"]["dependencies"]
        what = [d for d in dependencies if not extras or re.split("[<>=!~]", d)[0] in DEMO]
    subprocess.run([*install, *what], cwd=ROOT, check=True)
    stamp.write_text(mark)


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in STEPS:
        print(__doc__)
        return 2
    command = sys.argv[1]
    environment = ROOT / (f".venv-{command}" if command in OWN else ".venv")
    extras = NEEDS.get(command, EVERYTHING)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process would compile all modules that it imports
    install(environment, extras, UV.get(command))
    if not extras.startswith("["):
        os.environ["PYTHONPATH"] = str(ROOT / "src")
    folders = [folder for name in ("data", "data2") if (folder := ROOT.parent / "shared" / name).is_dir()]
    if folders:
        os.environ.setdefault("SIMILIA_DATA", os.pathsep.join(map(str, folders)))
    if command in OWN:  # compiled loops of another numba would overwrite those in __pycache__
        os.environ.setdefault("NUMBA_CACHE_DIR", str(environment / "numba"))
    for step in STEPS[command]:
        code = subprocess.run([environment / SCRIPTS / "python", *step, *sys.argv[2:]], cwd=ROOT).returncode
        if code:
            print(f"failed with exit code {code}: python {' '.join(map(str, step))}", file=sys.stderr)
            return 1
    if command == "docs":
        print(f"open {ROOT / 'docs' / '_build' / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
