"""The command line on real input: what it prints and writes, and one sentence for what it cannot do."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.inputs import read_objects
from similia.cli.options import parse_kernel
from similia.datasets import loaders

runner = CliRunner()


@pytest.fixture
def promoters_csv(tmp_path):
    X, y = sm.datasets.load_promoters(return_X_y=True)
    path = tmp_path / "promoters.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["sequence", "class"], *zip(X, y, strict=True)])
    return path


def test_demo_prints_accuracies_of_real_data_and_needs_few_dependencies():
    # dev.py installs for it what DEMO lists; all others are hidden here.
    demo = (
        "import re, sys, tomllib; from importlib.metadata import packages_distributions; from dev import DEMO; "
        "names = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; "
        "others = {re.split('[<>=]', name)[0] for name in names} - DEMO; "
        "hidden = [module for module, owners in packages_distributions().items() if others & set(owners)]; "
        "assert len(hidden) >= len(others) > 3, (hidden, others); sys.modules.update(dict.fromkeys(hidden)); "
        "from similia.cli import main; sys.argv = ['similia', 'demo']; main()"
    )
    done = subprocess.run([sys.executable, "-c", demo], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in ("promoters", "splice", "GappyKmers", "WeightedDegree", "ridge", "bits flipped", "done in"):
        assert words in done.stdout


def test_fit_then_predict_a_table(promoters_csv, tmp_path):
    model, predictions = tmp_path / "m.similia", tmp_path / "p.csv"
    columns = ["--text", "sequence", "--label", "class"]
    fitted = runner.invoke(app, ["fit", str(promoters_csv), *columns, "-o", str(model), "--bits", "2000"])
    assert fitted.exit_code == 0, fitted.output
    assert "all: accuracy" in fitted.output
    done = runner.invoke(app, ["predict", str(model), str(promoters_csv), "--text", "sequence", "-o", str(predictions)])
    assert done.exit_code == 0, done.output
    with predictions.open() as file:
        rows = list(csv.reader(file))
    truth = sm.datasets.load_promoters().target
    assert rows[0] == ["row", "label"]
    assert np.mean([label == true for (_, label), true in zip(rows[1:], truth, strict=True)]) > 0.9


def test_predict_writes_csv_to_the_terminal(promoters_csv, tmp_path):
    model = sm.save(
        sm.recipes.nyshd(sm.kernels.Spectrum(), n_bits=256, random_state=0).fit(["AAAA", "CCCC"] * 5, ["a", "c"] * 5),
        tmp_path / "m.similia",
    )
    fasta = tmp_path / "two.fasta"
    fasta.write_text(">one\nAAAA\n>two\nCC\nCC\n")
    result = runner.invoke(app, ["predict", str(model), str(fasta)])
    assert result.output.split() == ["name,label", "one,a", "two,c"]


def test_labels_from_fasta_headers(tmp_path):
    fasta = tmp_path / "x.fa"
    fasta.write_text(">s1 label=up\nACGT\n>s2 label=down\nGG\n")
    read = read_objects(str(fasta), text="text", label="label")
    assert (list(read.objects), read.labels.tolist(), read.kind) == (["ACGT", "GG"], ["up", "down"], "strings")
    assert read.names == ["s1", "s2"]
    with pytest.raises(ValueError, match=r"record 0: there is no family=\.\.\."):
        read_objects(str(fasta), text="text", label="family")


def test_bundled_names_are_data():
    read = read_objects("splice")
    assert (len(read.objects), len(read.labels), read.kind) == (3186, 3186, "strings")


def test_a_missing_label_is_named_not_made_a_class(tmp_path):
    path = tmp_path / "reads.csv"
    path.write_text("text,label\nACGT,a\nGGGG,\n")
    with pytest.raises(ValueError, match=r"reads.csv, line 3: the label \(column 'label'\) is missing"):
        read_objects(str(path), text="text", label="label")


def test_a_kernel_of_other_objects_is_one_sentence(tmp_path, similia):
    model = sm.save(
        sm.recipes.nyshd(sm.kernels.Spectrum(), n_bits=256, random_state=0).fit(["AAAA", "CCCC"] * 5, ["a", "c"] * 5),
        tmp_path / "m.similia",
    )
    folder = tmp_path / "TOY"
    folder.mkdir()
    (folder / "TOY_A.txt").write_text("1, 2\n2, 1\n3, 4\n4, 3\n")
    (folder / "TOY_graph_indicator.txt").write_text("1\n1\n2\n2\n")
    (folder / "TOY_graph_labels.txt").write_text("0\n1\n")
    for arguments in (["predict", model, folder], ["fit", folder, "--kernel", "Spectrum", "-o", tmp_path / "x"]):
        result = similia(*arguments)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
        assert "holds graphs, which Spectrum() does not compare" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "absent.csv", "-o", "m"], "absent.csv is neither a file, a folder nor a data set"),
        (["fit", "promoters", "-o", "m", "--test", "2"], "--test must be at least 0"),
        (["fit", "pyproject.toml", "-o", "m"], "unknown ending"),
        (["fit", "promoters", "-o", "no/such/folder/m"], "does not exist"),
        (["fit", "promoters", "-o", "m", "--kernel", "Spectrum(q=3)"], "; Spectrum takes "),
        (["fit", "promoters", "-o", "m", "--distance", "Levenshtein(foo=1)"], "Levenshtein takes no parameters"),
        (["fit", "promoters", "-o", "m", "--bits", "1001"], "multiple of 8"),
        (["fit", "promoters", "-o", "m", "--bits", "0"], "--bits must be a multiple of 8 and at least 8, got 0"),
        (
            ["fit", "promoters", "-o", "m", "--distance", "Levenshtein", "--bits", "1000"],
            "--bits is for models from a kernel, not from the distance Levenshtein; drop --bits, or give a --kernel",
        ),
        (
            ["fit", "promoters", "-o", "m", "--distance", "Levenshtein", "--landmarks", "9"],
            "--landmarks is for models from a kernel, not from the distance Levenshtein; drop --landmarks",
        ),
        (["predict", "absent.similia", "promoters"], "no model at"),
    ],
)
def test_wrong_input_ends_with_one_sentence(arguments, words, tmp_path, similia):
    result = similia(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("similia: ")
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "text", ["os.system('ls')", "Spectrum(k=__import__('os'))", "Kernel", "pairwise(len)", "1 +", ""]
)
def test_kernel_text_is_parsed_not_run(text):
    with pytest.raises(ValueError, match="kernel"):
        parse_kernel(text)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(ValueError, match=r"Spectrum gets a parameter twice; give it once"):
        parse_kernel("Normalized(Spectrum(k=2, k=3))")


def test_kernels_nest_in_text():
    kernel = parse_kernel("Sum([Spectrum(k=3), Normalized(GappyKmers(k=2, gaps=0))])")
    assert kernel(["ACGT"], ["ACGT"])[0, 0] == pytest.approx(2 + 1)  # ACG, CGT; and 1 on the diagonal


def test_version():
    assert runner.invoke(app, ["--version"]).output == f"similia {sm.__version__}\n"


def test_fit_then_predict_series_with_a_distance(tmp_path):
    rng = np.random.default_rng(0)
    slopes = np.tile([-1.0, 1.0], 20)
    lines = ["@problemName slopes", "@timeStamps false", "@univariate true", "@classLabel true down up", "@data"]
    for slope in slopes:
        values = slope * np.linspace(0, 1, rng.integers(5, 12)) + 0.1 * rng.standard_normal()
        lines.append(",".join(map(str, values.tolist())) + (":up" if slope > 0 else ":down"))
    data, model = tmp_path / "slopes.ts", tmp_path / "m.similia"
    data.write_text("\n".join(lines) + "\n")
    fitted = runner.invoke(app, ["fit", str(data), "--distance", "DTW(window=0.5)", "-o", str(model)])
    assert fitted.exit_code == 0, fitted.output
    assert "40 series in 2 classes; distance DTW(window=0.5)" in fitted.output
    result = runner.invoke(app, ["predict", str(model), str(data)])
    predicted = [line.split(",")[1] for line in result.output.split()[1:]]
    assert np.mean(np.array(predicted) == np.where(slopes > 0, "up", "down")) > 0.9


def test_a_kernel_and_a_distance_exclude_each_other(promoters_csv, tmp_path, similia):
    both = ["--kernel", "Spectrum", "--distance", "Levenshtein", "--text", "sequence", "--label", "class"]
    result = similia("fit", promoters_csv, *both, "-o", tmp_path / "x")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "--kernel and --distance exclude each other" in result.stderr
    assert not (tmp_path / "x").exists()


def test_numbers_to_predict_make_a_regression(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["@problemName levels", "@timeStamps false", "@univariate true", "@targetLabel true", "@data"]
    lines += [f"{','.join([str(level)] * rng.integers(5, 12))}:{level}" for level in rng.uniform(-1, 1, 40)]
    data = tmp_path / "levels.ts"
    data.write_text("\n".join(lines) + "\n")
    fitted = runner.invoke(app, ["fit", str(data), "--distance", "DTW()", "-o", str(tmp_path / "m.similia")])
    assert fitted.exit_code == 0, fitted.output
    assert "40 series with numbers to predict; distance DTW()" in fitted.output
    assert float(fitted.output.split("R squared ")[1].split()[0]) > 0.8
    assert "chosen: gamma = " in fitted.output


@pytest.mark.parametrize("test_share", ["0", "0.25"])
def test_fit_graphs_with_a_distance_says_what_was_chosen(test_share, tmp_path):
    folder = tmp_path / "TOY"
    folder.mkdir()
    arcs, owner = [], []  # 12 paths and 12 stars of 5 to 16 nodes, no two the same
    for g in range(24):
        ends = [(i, i + 1) if g % 2 else (0, i + 1) for i in range(4 + g // 2)]
        arcs += [(len(owner) + a + 1, len(owner) + b + 1) for u, v in ends for a, b in ((u, v), (v, u))]
        owner += [g + 1] * (5 + g // 2)
    (folder / "TOY_A.txt").write_text("".join(f"{a}, {b}\n" for a, b in arcs))
    (folder / "TOY_graph_indicator.txt").write_text("".join(f"{g}\n" for g in owner))
    (folder / "TOY_graph_labels.txt").write_text("".join(f"{g % 2}\n" for g in range(24)))
    arguments = ["fit", str(folder), "--distance", "MMD(size=4, n_samples=50)", "--test", test_share]
    result = runner.invoke(app, [*arguments, "-o", str(tmp_path / "g.similia")])
    assert result.exit_code == 0, (result.output, result.exception)
    gamma = result.output.split("chosen: gamma = ")[1].split(",")[0]
    assert float(gamma) == pytest.approx(sm.load(tmp_path / "g.similia")[0].gamma_, rel=1e-2)
    assert "LinearSVC(C=" in result.output
    assert "fitted on all 24" in result.output


def test_molecules_of_a_named_set_become_graphs(tmp_path, monkeypatch):
    pytest.importorskip("rdkit", reason="rdkit reads molecules")
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    monkeypatch.setitem(loaders.ARCHIVES, "MOLS", loaders.Archive("molecules", "MOLS.", 2, 2, 4))
    (tmp_path / "molecules").mkdir()
    (tmp_path / "molecules" / "MOLS.tsv.gz").write_bytes(gzip.compress(b"0\tCCO\n1\tN\n"))
    found = read_objects("MOLS")
    assert (found.kind, found.called, found.labels.tolist()) == ("graphs", "molecules", [0, 1])
    assert np.diff(found.objects.node_offsets).tolist() == [3, 1]


def test_an_error_of_the_system_names_the_file_first():
    from similia.cli import _sentence

    assert _sentence(FileNotFoundError(2, "No such file or directory", "a.csv")) == "a.csv: no such file or directory"
    assert (
        _sentence(FileNotFoundError("no model at m; similia fit writes one")) == "no model at m; similia fit writes one"
    )
