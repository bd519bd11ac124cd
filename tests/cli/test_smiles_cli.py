"""Tables of SMILES on the command line: the commands against the same work in Python, and what is refused."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.inputs import open_objects, read_objects
from similia.cli.options import parse_kernel
from similia.cli.plan import _sample
from similia.objects.molecules import from_smiles

Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")

SMILES = [f"{'C' * n}{end}" for n in range(1, 13) for end in ("C(=O)O", "CN", "c1ccccc1")]
KINDS = ["acid", "amine", "arene"] * 12


def invoked(*arguments: Any) -> Any:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


@pytest.mark.parametrize("kernel", ["WeisfeilerLehman()", "Morgan()"])
def test_a_molecule_is_measured_however_its_smiles_orders_the_atoms(kernel: str, tmp_path: Path) -> None:
    known = [*SMILES[:20], "C[C@H](N)C(=O)O"]
    rows = "".join(f"{smiles},{i / 7}\n" for i, smiles in enumerate(known))
    (table := tmp_path / "known.csv").write_text(f"smiles,y\n{rows}")
    others = ["OC(=O)[C@@H](C)N", "OC(=O)[C@H](C)N", "NCC", "CC(O)=O", "c1(CC)ccccc1", "OCC"]
    (pool := tmp_path / "pool.csv").write_text("smiles\n" + "\n".join(others))
    shared = [
        i for i, text in enumerate(others)
        if Chem.CanonSmiles(text) in {Chem.CanonSmiles(one) for one in known}
    ]  # fmt: skip
    assert shared in ([0, 2, 3, 4], [1, 2, 3, 4])
    model = tmp_path / "m.similia"
    how = ("--task", "regression", "--learner", "gaussian-process", "--kernel", kernel, "--test", 0)
    invoked("fit", table, "--smiles", "smiles", "--label", "y", *how, "-o", model)
    said = invoked("suggest", model, pool, "--smiles", "smiles", "-n", 2, "--json")
    assert "note: 4 of the 6 " in said.stderr
    assert {row["row"] for row in json.loads(said.stdout)["suggestions"]} == {*range(6)} - {*shared}


@pytest.mark.parametrize("kernel", ["MinMax(Morgan())", "Morgan()"])
def test_a_row_that_the_kernel_refuses_is_not_skipped_and_the_error_says_why(kernel: str, tmp_path: Path) -> None:
    rows = [f"{smiles},{i / 7}\n" for i, smiles in enumerate(SMILES)]
    (table := tmp_path / "t.csv").write_text("".join(["smiles,y\n", *rows[:20], "C1CC(,3.5\n", *rows[20:]]))
    line = ["fit", table, "--smiles", "smiles", "--label", "y", "--kernel", kernel, "-o", tmp_path / "m.similia"]
    for more, told in ([], ""), (["--on-error", "skip"], "; --on-error skip leaves out only rows that cannot be read"):
        done = CliRunner().invoke(app, [str(a) for a in (*line, *more)])
        start = f"{table}, line 22: it is 'C1CC(', which is not valid SMILES; correct or drop it"
        assert str(done.exception).startswith(start + told)
        assert ("--on-error" in str(done.exception)) == bool(more)


def write(path: Path, smiles: list[str] = SMILES, kinds: list[str] = KINDS) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("kind", "smiles"), *zip(kinds, smiles, strict=False)])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and a model fitted to it."""
    folder = tmp_path_factory.mktemp("molecules")
    table = write(folder / "molecules.csv")
    said = run("fit", table, "--smiles", "smiles", "--label", "kind", "-o", folder / "m.similia", "--bits", "512",
               "--kernel", "WeisfeilerLehman(n_iter=2)")  # fmt: skip
    assert "36 molecules in 3 classes" in said
    return folder


def run(*arguments: Any) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None:
        raise done.exception
    return done.output


def test_predictions_are_those_of_python_whatever_the_chunks(folder: Path, tmp_path: Path) -> None:
    expected = sm.load(folder / "m.similia").predict(from_smiles(SMILES)).tolist()
    assert np.mean([a == b for a, b in zip(expected, KINDS, strict=True)]) > 0.9
    for chunk in (5, 10_000):
        out = tmp_path / f"{chunk}.csv"
        run(
            "predict", folder / "m.similia", folder / "molecules.csv", "--smiles", "smiles", "-o", out, "--chunk", chunk
        )
        with out.open() as file:
            assert [row["label"] for row in csv.DictReader(file)] == expected
    run("predict", folder / "m.similia", folder / "molecules.csv", "--smiles", "smiles", "--id", "kind", "-o", out)
    with out.open() as file:
        assert [row[0] for row in csv.reader(file)] == ["kind", *KINDS]


def test_codes_and_neighbours(folder: Path, tmp_path: Path) -> None:
    table, codes = folder / "molecules.csv", tmp_path / "codes.npy"
    run("encode", table, "--smiles", "smiles", "-o", codes, "--bits", "64", "--landmarks", "10", "--chunk", "7")
    encoder = sm.load(tmp_path / "codes.encoder.similia")
    np.testing.assert_array_equal(np.load(codes), encoder.transform(from_smiles(SMILES)))
    index = tmp_path / "index"
    run("index", "build", table, index, "--smiles", "smiles", "--bits", "64", "--landmarks", "10")
    run("index", "add", write(tmp_path / "more.csv", ["CCBr"]), index, "--smiles", "smiles")
    run("index", "search", index, table, "--smiles", "smiles", "-k", "1", "-o", tmp_path / "near.csv")
    with (tmp_path / "near.csv").open() as file:
        assert [row["id"] for row in csv.DictReader(file)] == [str(i) for i in range(36)]
    named, how = tmp_path / "named", ("--smiles", "smiles", "--id", "kind")
    run("index", "build", table, named, *how, "--bits", "64", "--landmarks", "10", "--chunk", "7")
    run("index", "search", named, table, *how, "-k", "1", "-o", tmp_path / "near.csv")
    with (tmp_path / "near.csv").open() as file:
        assert [(row["query"], row["name"]) for row in csv.DictReader(file)] == [(kind, kind) for kind in KINDS]
    with pytest.raises(ValueError, match=r"holds strings, but .* is an index of graphs"):
        run("index", "add", table, index, "--text", "smiles")


def test_explanations_and_reports_name_atoms(folder: Path, tmp_path: Path) -> None:
    data = (folder / "m.similia", folder / "molecules.csv", "--smiles", "smiles")
    found = json.loads(run("explain", *data, "--pair", 0, 3, "--json"))
    assert {"C", "O", "C(-C, -O, =O)"} <= {part["name"] for part in found["parts"]}
    run("report", *data, "--label", "kind", "-o", tmp_path / "r.html", "--folds", "2")
    page = (tmp_path / "r.html").read_text()
    assert '"s":"C C O O"' in page
    assert "graph of 4 nodes (C2 O2) and 3 edges" in page


def test_parquet_and_the_sample_of_a_plan(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "molecules.parquet"
    parquet.write_table(pa.table({"smiles": SMILES}), path)
    stream = open_objects(str(path), smiles="smiles", chunk=10)
    assert (stream.kind, stream.n) == ("graphs", 36)
    whole = from_smiles(SMILES)
    streamed = sm.objects.concatenate([chunk.objects for chunk in stream.chunks()])
    np.testing.assert_array_equal(streamed.node_labels, whole.node_labels)
    np.testing.assert_array_equal(streamed.indices, whole.indices)
    kind, sample, n = _sample(str(path), {"smiles": "smiles"})
    assert (kind, len(sample), n) == ("graphs", 36, 36)


def test_the_same_column_as_strings_is_another_stream(folder: Path) -> None:
    table = str(folder / "molecules.csv")
    prints = {open_objects(table, **{option: "smiles"}, chunk=9).fingerprint() for option in ("text", "smiles")}
    assert len(prints) == 2
    assert read_objects(table, text="smiles", label=None).kind == "strings"


def test_a_model_of_molecules_takes_no_strings_and_one_of_strings_no_molecules(folder: Path, tmp_path: Path) -> None:
    table = folder / "molecules.csv"
    with pytest.raises(
        ValueError,
        match=r"holds strings \(column .smiles.\), which WeisfeilerLehman.* does not compare.*--smiles instead",
    ):
        run("predict", folder / "m.similia", table, "--text", "smiles")
    structure = sm.recipes.graphlet_optical(size=3, n_samples=50, n_components=50, random_state=0)
    path = sm.save(structure.fit(from_smiles(SMILES), KINDS), tmp_path / "structure.similia")
    with pytest.raises(TypeError, match=r"molecules.csv, line 2: it is str .*; similia.objects.from_smiles reads mol"):
        run("predict", path, table, "--text", "smiles")
    strings = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 5, 64, random_state=0).fit(SMILES, KINDS)
    with pytest.raises(ValueError, match=r"holds molecules \(column .smiles.\), which Spectrum"):
        run("predict", sm.save(strings, tmp_path / "s.similia"), table, "--smiles", "smiles")


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_what_is_no_smiles_is_named_by_row_and_text(folder: Path, tmp_path: Path, command: str) -> None:
    def attempt(smiles: list[str]) -> None:
        table = write(tmp_path / "bad.csv", smiles)
        if command == "fit":
            run("fit", table, "--smiles", "smiles", "--label", "kind", "-o", tmp_path / "m", "--kernel", "ShortestPath")
        run("predict", folder / "m.similia", table, "--smiles", "smiles", "-o", tmp_path / "p.csv", "--chunk", 4)

    with pytest.raises(
        ValueError, match=r"bad.csv, line 11: found 'C\(C', which is not valid SMILES; correct it or leave the row out"
    ):
        attempt([*SMILES[:9], "C(C", "C"])
    with pytest.raises(
        ValueError, match=r"bad.csv, line 8: the cell with the SMILES is empty; fill it in or leave the row"
    ):
        attempt([*SMILES[:6], "", "C"])
    assert not (tmp_path / "p.csv").exists()


def test_wrong_options_are_told_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, table = folder / "m.similia", folder / "molecules.csv"
    with pytest.raises(ValueError, match=r"has no column 'smile' .did you mean smiles"):
        run("predict", model, table, "--smiles", "smile")
    with pytest.raises(ValueError, match=r"text and smiles exclude each other"):
        run("predict", model, table, "--smiles", "smiles", "--text", "kind")
    for data in ("MUTAG", folder / "reads.fasta", folder):
        with pytest.raises(
            ValueError,
            match=r"of which smiles \(--smiles\) names a column|neither a file",
        ):
            run("predict", model, data, "--smiles", "smiles")
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ModuleNotFoundError, match=r"RDKit, which is not installed: pip .* 'similia\[molecules\]'$"):
        run("predict", model, table, "--smiles", "smiles")


def test_bad_rows_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    smiles = list(SMILES)
    smiles[5], smiles[17], smiles[20] = "c1ccc(", "", "C)"  # lines 7, 19 and 22
    table, left = write(tmp_path / "bad.csv", smiles), tmp_path / "left.csv"
    with pytest.raises(ValueError, match=r"bad.csv, line 7: found 'c1ccc\('"):
        read_objects(str(table), smiles="smiles")
    found = read_objects(str(table), smiles="smiles", on_error="skip", skipped=left)
    assert (len(found.objects), found.skips.first[0]) == (33, 7)
    with left.open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["line", "7", "19", "22"]


def test_molecules_are_called_so_and_other_graphs_are_not(folder: Path, tmp_path: Path) -> None:
    table, smiles = folder / "molecules.csv", ("--smiles", "smiles")
    assert "36 molecules; 64 bits" in run("encode", table, "-o", tmp_path / "c.npy", "--bits", 64, *smiles)
    assert "36 molecules; 64 bits" in run("index", "build", table, tmp_path / "index", "--bits", 64, *smiles)
    with pytest.raises(ValueError, match="holds 36 molecules, numbered from 0 to 35"):
        run("explain", folder / "m.similia", table, "--object", 99, *smiles)
    lines = tmp_path / "a.smi"
    lines.write_text("".join(f"{one}\n" for one in SMILES))
    read = sm.sources.read_objects(lines)
    assert (read.kind, read.called) == ("graphs", "molecules")
    assert sm.sources.open_stream(from_smiles(SMILES)).called == "graphs"


def test_morgan_fingerprints_read_smiles_as_strings(folder: Path, tmp_path: Path) -> None:
    table, kernel = folder / "molecules.csv", ("--kernel", "MinMax(Morgan(radius=1))")
    for column in ("--text", "--smiles"):
        model = tmp_path / f"{column}.similia"
        said = run("fit", table, column, "smiles", "--label", "kind", "-o", model, "--bits", "512", *kernel)
        assert "36 strings in 3 classes" in said
        for again in (["--text", "smiles"], ["--smiles", "smiles"], []):
            run("predict", model, table, *again, "-o", tmp_path / "p.csv", "--chunk", 7)
            with (tmp_path / "p.csv").open() as file:
                assert [row["label"] for row in csv.DictReader(file)] == sm.load(model).predict(SMILES).tolist()
        bad = write(tmp_path / "bad.csv", [*SMILES[:5], "C(C", *SMILES[5:]])
        with pytest.raises(ValueError, match=r"bad.csv, line 7: it is 'C\(C', which is not valid SMILES; correct or"):
            run("fit", bad, column, "smiles", "--label", "kind", "-o", tmp_path / "no.similia", *kernel)


def test_outliers_and_neighbours_of_morgan_fingerprints_read_smiles(folder: Path, tmp_path: Path) -> None:
    table, kernel = folder / "molecules.csv", ("--kernel", "MinMax(Morgan())")
    written = []
    for column in ("--text", "--smiles"):
        how = (table, column, "smiles", *kernel)
        run("outliers", *how, "--train", table, "-k", 3, "-o", tmp_path / "o.csv")
        run("neighbours", *how, "-k", 3, "-o", tmp_path / "g.npz")
        graph = sp.load_npz(tmp_path / "g.npz")
        written.append(((tmp_path / "o.csv").read_text(), graph.indices.tolist(), graph.data.tolist()))
    assert written[0] == written[1]
    np.testing.assert_array_equal(graph.toarray(), sm.search.knn_graph(SMILES, parse_kernel(kernel[1]), 3).toarray())


@pytest.mark.parametrize("command", ["map", "cluster", "duplicates", "report"])
def test_pages_of_morgan_fingerprints_show_smiles_and_draw_molecules(
    folder: Path, tmp_path: Path, command: str
) -> None:
    table, page = folder / "molecules.csv", tmp_path / "page.html"
    how = (table, "--smiles", "smiles", "--kernel", "MinMax(Morgan())")
    if command == "report":
        model = sm.recipes.nyshd(sm.kernels.MinMax(sm.kernels.Morgan()), 10, 64, random_state=0).fit(SMILES, KINDS)
        path = sm.save(model, tmp_path / "m.similia")
        run("report", path, table, "--smiles", "smiles", "--label", "kind", "--folds", 2, "-o", page)
    elif command == "map":
        run("map", *how, "--color", "kind", "-o", page, "--landmarks", 20)
    elif command == "cluster":
        run("cluster", *how, "-o", tmp_path / "c.csv", "--report", page, "--clusters", 3, "--landmarks", 20)
    else:
        run("duplicates", *how, "--threshold", 0.5, "-o", tmp_path / "d.csv", "--report", page)
    payload = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page.read_text(), re.S)
    assert payload is not None
    objects = {shown["t"]: shown for shown in json.loads(payload[1])["objects"]}
    assert set(objects) <= set(SMILES)
    for text, shown in objects.items():
        atoms = Chem.MolFromSmiles(text).GetAtoms()
        assert shown["s"].split() == [atom.GetSymbol() for atom in atoms]
        assert len(shown["xy"]) == 2 * len(atoms)
    assert "molecules" in page.read_text()


def test_other_kernels_of_strings_still_take_no_molecules(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds molecules, which Spectrum.* does not compare.*--text instead of"):
        run("map", folder / "molecules.csv", "--smiles", "smiles", "--kernel", "Spectrum()", "-o", tmp_path / "m.html")
