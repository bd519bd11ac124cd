"""Every command on tables as people have them, and numbers as labels on every path."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.options import READING
from similia.cli.plan import _sample
from similia.report._context import gather
from similia.search.on_disk import SearchFolder

RNG = np.random.default_rng(0)
WORDS = [
    "".join(RNG.choice(list("ACGT"), 24, p=[0.4, 0.1, 0.1, 0.4] if i % 2 else [0.1, 0.4, 0.4, 0.1])) for i in range(60)
]
KINDS = ["weak" if i % 2 else "strong" for i in range(60)]
SHARE = [round(sum(letter in "GC" for letter in word) / 24, 4) for word in WORDS]  # a number that k-mers tell
KERNEL = ("--kernel", "Spectrum(k=2)")


def invoke(*arguments: Any, code: int = 0, **how: Any) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], **how)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments: Any) -> str:
    said = str(CliRunner().invoke(app, [str(argument) for argument in arguments]).exception)
    assert "\n" not in said
    return said


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_all_commands_that_read_data_have_the_same_options() -> None:
    from typer.main import get_command

    group = get_command(app)
    commands = [group.commands[name] for name in ("fit", "predict", "report", "explain", "encode", "plan")]
    commands += [group.commands["index"].commands[name] for name in ("build", "add", "search")]
    wanted = {name: annotation.__metadata__[0].help for name, (annotation, _) in READING.items()}
    assert len(wanted) == 14
    for command in commands:
        found = {option.name: option.help for option in command.params if option.name in wanted}
        assert found == wanted, command.name


def test_a_table_of_excel_through_every_command(tmp_path: Path) -> None:
    table = tmp_path / "reads.csv"
    text = "Name;Sequenz;Art\r\n" + "".join(
        f'r{i}é;"{w}";{k}\r\n' for i, (w, k) in enumerate(zip(WORDS, KINDS, strict=True))
    )
    table.write_bytes((text + "broken\r\n\r\n\r\n").encode("latin-1"))
    how = ("--sep", ";", "--encoding", "latin-1", "--text", "Sequenz", "--id", "Name", "--on-error", "skip")
    model, left = tmp_path / "m.similia", tmp_path / "m.similia.skipped.csv"
    fitted = invoke("fit", table, *how, "--label", "Art", *KERNEL, "--bits", 512, "-o", model)
    assert "60 strings in 2 classes" in fitted.output
    assert (
        f"note: 1 row was left out of {table} and listed in {left}; the first, in line 62: found 1 cell"
        in fitted.stderr
    )
    assert rows_of(left) == [["line", "reason"], ["62", "found 1 cell, expected 3 as in the header"]]
    invoke("predict", model, table, *how, "-o", tmp_path / "p.csv", "--chunk", 7)
    rows = rows_of(tmp_path / "p.csv")
    assert [row[0] for row in rows] == ["Name", *(f"r{i}é" for i in range(60))]
    assert np.mean([row[1] == kind for row, kind in zip(rows[1:], KINDS, strict=True)]) > 0.9
    invoke("report", model, table, *how, "--label", "Art", "-o", tmp_path / "r.html", "--folds", 2)
    assert "accuracy" in (tmp_path / "r.html").read_text()
    named, numbered = (
        invoke("explain", model, table, *how, "--pair", *pair).stdout for pair in (("r3é", "r5é"), (3, 5))
    )
    assert named == numbered != ""
    invoke("encode", table, *how, "-o", tmp_path / "c.npy", "--bits", 64)
    assert np.load(tmp_path / "c.npy").shape == (60, 8)
    index = tmp_path / "index"
    invoke("index", "build", table, index, *how, "--bits", 64)
    invoke("index", "search", index, table, *how, "-k", 1, "-o", tmp_path / "near.csv")
    near = rows_of(tmp_path / "near.csv")
    assert [row[0] for row in near[1:]] == [row[3] for row in near[1:]] == [f"r{i}é" for i in range(60)]
    assert "60 strings" in invoke("plan", "--data", table, *how, *KERNEL).output
    assert refused("predict", model, table).startswith(f"{table}, line 2: it is truncated or not a UTF-8 text file")


def test_rows_keep_their_numbers_where_some_are_left_out(tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.similia"
    sm.save(sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0).fit(WORDS, KINDS), model)
    table.write_text("text,n\nAC,1\nGT\nGG,3\n")
    shown = invoke("predict", model, table, "--on-error", "skip", "--skipped", tmp_path / "left.csv")
    assert [line.split(",")[0] for line in shown.stdout.split()] == ["row", "0", "2"]
    assert "--skipped lists the rows that --on-error skip leaves out" in refused(
        "predict", model, table, "--skipped", tmp_path / "x.csv"
    )


@pytest.mark.parametrize("names", [(), ("--id", "name")])
def test_a_number_to_explain_counts_the_rows_that_are_left_out(names: tuple[str, ...], tmp_path: Path) -> None:
    table, model, skip = tmp_path / "t.csv", tmp_path / "m.similia", ("--on-error", "skip")
    sm.save(sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0).fit(WORDS, KINDS), model)
    texts = [*WORDS[:5], "", *WORDS[5:7]]
    table.write_text("name,text\n" + "".join(f"r{i},{text}\n" for i, text in enumerate(texts)))
    for which in (("--object", 5), ("--pair", 5, 6), ("--object", 8), ("--object", -1)):
        said = refused("explain", model, table, "--text", "text", *names, *which, *skip)
        assert "holds 7 strings, numbered from 0 to 7, without rows that were left out; there is no number" in said
    for number, word in ((4, WORDS[4]), (6, WORDS[5]), (7, WORDS[6])):
        shown = invoke("explain", model, table, "--text", "text", *names, "--object", number, *skip, "--json").stdout
        assert json.loads(shown)["value"] == sm.explain(sm.load(model), word).value


WRITING = {  # commands that write a row for each object, and their columns besides those that identify objects
    "predict": ("label",),
    "suggest": ("rank", "object", "predicted", "std"),
    "cluster": ("cluster", "distance", "medoid"),
    "outliers": ("rank", "strangeness", "outlier"),
    "duplicates": ("group", "kept"),
}
COPIED = [*WORDS[:10], *WORDS[:3]]


def writing(command: str, data: Path, *options: Any) -> list[Any]:
    """Return the command line that writes a row for each of the objects of a file."""
    folder, how = data.parent, ("--text", "sequence") if data.suffix == ".csv" else ()
    given: list[Any] = [command, data, *how, *options, "-o", folder / "o.csv"]
    if command in ("predict", "suggest"):
        model = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=2), random_state=0).fit(WORDS[20:50], SHARE[20:50])
        sm.save(model, folder / "m.similia")
        return [command, folder / "m.similia", *given[1:], *(("-n", 4) if command == "suggest" else ())]
    more = {"cluster": ("-k", 2), "outliers": ("-k", 3), "duplicates": ("--threshold", 0.999)}
    groups = ("--groups", folder / "g.csv") if command == "duplicates" else ()
    return [*given, "--kernel", "Spectrum(k=2, normalize=True)", *more[command], *groups]


def results_of(command: str, data: Path, *options: Any) -> list[dict[str, str]]:
    """Return the rows that a command writes for each object."""
    invoke(*writing(command, data, *options))
    with (data.parent / ("g.csv" if command == "duplicates" else "o.csv")).open(newline="") as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize("command", WRITING)
def test_all_commands_call_the_column_of_names_alike(command: str, tmp_path: Path) -> None:
    table, fasta = tmp_path / "t.csv", tmp_path / "t.fasta"
    table.write_text("accession,sequence\n" + "".join(f"a{i},{word}\n" for i, word in enumerate(COPIED)))
    fasta.write_text("".join(f">a{i}\n{word}\n" for i, word in enumerate(COPIED)))
    named, headed, plain = (
        results_of(command, *given) for given in ((table, "--id", "accession"), (fasta,), (table, "--on-error", "skip"))
    )
    numbered = () if command == "predict" else ("row",)  # names take the place of positions
    assert set(named[0]) == {*numbered, "accession", *WRITING[command]}
    assert set(headed[0]) == {*numbered, "name", *WRITING[command]}
    assert set(plain[0]) == {"row", *WRITING[command]}
    assert [row["accession"] for row in named] == [row["name"] for row in headed] == [f"a{row['row']}" for row in plain]
    assert command in ("predict", "suggest") or [row["row"] for row in named] == list(map(str, range(len(COPIED))))


@pytest.mark.parametrize("command", WRITING)
def test_positions_are_those_in_the_file(command: str, tmp_path: Path) -> None:
    lines = "".join(f"{word},{i}\n" for i, word in enumerate(COPIED))
    found = {}
    for first in ("", "one cell\n"):
        (tmp_path / "t.csv").write_text("sequence,n\n" + first + lines)
        found[first] = results_of(command, tmp_path / "t.csv", "--on-error", "skip")
        if command == "duplicates":
            pairs = rows_of(tmp_path / "o.csv")[1:]
            assert [row[:2] for row in pairs] == [
                [str(i + len(first[:1])), str(10 + i + len(first[:1]))] for i in range(3)
            ]
    places = ("row", "medoid", "group")
    shifted = [{c: str(int(v) + 1) if c in places else v for c, v in row.items()} for row in found[""]]
    assert found["one cell\n"] == shifted


def test_records_without_a_label_count_as_positions(tmp_path: Path) -> None:
    fasta = tmp_path / "t.fasta"
    fasta.write_text(">n\nAC\n" + "".join(f">a{i} label=x\n{word}\n" for i, word in enumerate(COPIED)))
    found = results_of("cluster", fasta, "--label", "label", "--on-error", "skip")
    assert [(row["row"], row["name"]) for row in found] == [(str(i + 1), f"a{i}") for i in range(len(COPIED))]


@pytest.mark.parametrize(("command", "column"), [(c, column) for c in WRITING for column in WRITING[c]])
def test_a_column_of_names_called_like_one_of_the_results(command: str, column: str, tmp_path: Path) -> None:
    data = tmp_path / "t.csv"
    data.write_text(f"{column},sequence\n" + "".join(f"a{i},{word}\n" for i, word in enumerate(COPIED)))
    said = refused(*writing(command, data, "--id", column))
    assert said.startswith(f"the results have a column '{column}', too; rename it in the data, or name another")
    assert not (tmp_path / "o.csv").exists()


def test_rows_of_an_array_of_series_are_left_out_and_counted(tmp_path: Path) -> None:
    X, data, model = RNG.standard_normal((12, 6)), tmp_path / "t.npy", tmp_path / "m.similia"
    sm.save(sm.KNeighborsClassifier(sm.distances.DTW(), n_neighbors=1).fit(X, KINDS[:12]), model)
    X[1] = np.nan
    np.save(data, X[:3])
    shown = invoke("predict", model, data, "--series", "--on-error", "skip")
    assert shown.stdout.split() == ["row,label", "0,strong", "2,strong"]
    assert "1 row was left out" in shown.output


def test_items_are_numbers_in_json_on_every_path(tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.similia"
    sm.save(sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0).fit(WORDS, KINDS), model)
    table.write_text("read,text\nr0,AC\nGT\nr2,GG\n")
    skip = ("--on-error", "skip", "--json")

    def items(name: str, *arguments: object, **how: str) -> list[object]:
        return [json.loads(line)[name] for line in invoke("predict", model, *arguments, **how).stdout.splitlines()]

    assert items("row", table, *skip) == items("row", "-", *skip, input=table.read_text()) == [0, 2]
    invoke("predict", model, table, *skip, "-o", tmp_path / "p.jsonl")
    assert [json.loads(line)["row"] for line in (tmp_path / "p.jsonl").read_text().splitlines()] == [0, 2]
    assert items("read", table, *skip, "--id", "read") == ["r0", "r2"]
    table.write_text("text\nAC\nGT\n")
    assert items("row", table, "--json") == items("row", "-", "--json", input=table.read_text()) == [0, 1]
    index = tmp_path / "index"
    invoke("index", "build", table, index, *KERNEL)
    near = json.loads(invoke("index", "search", index, table, "-k", 1, "--json").stdout)
    assert [row["query"] for row in near["neighbours"]] == [row["id"] for row in near["neighbours"]] == [0, 1]


def test_no_command_touches_the_list_of_skipped_rows_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("text,label\n" + "".join(f"{w},{k}\n" for w, k in zip(WORDS, KINDS, strict=True)) + "AC\n")
    Path("u.csv").write_text("text,label\nACGT,weak\nbroken\n")
    skip = ("--on-error", "skip", "--text", "text")
    lists = []

    def listed(name: str, line: str) -> None:
        lists.append(name)
        assert sorted(path.name for path in Path().glob("*.skipped.csv")) == sorted(lists)
        assert rows_of(Path(name))[1][0] == line
        Path(name).write_text("line,reason\n1,as it was\n")  # so that any change of it is seen

    invoke("fit", "t.csv", *skip, *KERNEL, "--bits", 64, "-o", "m.similia")
    listed("m.similia.skipped.csv", "62")
    invoke("predict", "m.similia", "t.csv", *skip, "-o", "p.csv")
    listed("p.csv.skipped.csv", "62")
    invoke("index", "build", "t.csv", "near", *skip, *KERNEL, "--bits", 64)
    listed("near.t.csv.skipped.csv", "62")
    invoke("index", "add", "u.csv", "near", *skip)
    listed("near.u.csv.skipped.csv", "3")
    Path("v.csv").write_text("text,label\nGGGG,weak\n\nbroken\n")
    monkeypatch.chdir("near")
    invoke("index", "add", "../v.csv", ".", *skip)
    monkeypatch.chdir(tmp_path)
    listed("near.v.csv.skipped.csv", "4")
    for quiet in (
        ("predict", "m.similia", "t.csv"),
        ("explain", "m.similia", "t.csv", "--pair", 3, 5),
        ("index", "search", "near", "u.csv", "-k", 1),
    ):
        said = " ".join(invoke(*quiet, *skip).stderr.split())
        assert "note: 1 row was left out of " in said
        assert ".csv (--skipped FILE lists all); the first, in line " in said
    assert sorted(path.name for path in Path().glob("*.skipped.csv")) == sorted(lists)
    assert {Path(name).read_text() for name in lists} == {"line,reason\n1,as it was\n"}


def test_no_header_lines_vectors_and_series(tmp_path: Path) -> None:
    bare, model = tmp_path / "bare.csv", tmp_path / "m.similia"
    bare.write_text("".join(f"{k},{w}\n" for w, k in zip(WORDS, KINDS, strict=True)))
    invoke("fit", bare, "--no-header", "--text", 1, "--label", 0, *KERNEL, "--bits", 512, "-o", model)
    lines = tmp_path / "new.txt"
    lines.write_text("\n".join(WORDS) + "\n\n")
    shown = invoke("predict", model, lines).stdout.split()
    assert np.mean([line.split(",")[1] == kind for line, kind in zip(shown[1:], KINDS, strict=True)]) > 0.9
    numbers = tmp_path / "n.csv"
    series = [
        [round(float(v), 3) for v in np.linspace(0, 1 if k == "weak" else -1, 6) + RNG.normal(0, 0.01)] for k in KINDS
    ]
    numbers.write_text(
        "a,b,c,d,e,f,label\n" + "".join(f"{','.join(map(str, s))},{k}\n" for s, k in zip(series, KINDS, strict=True))
    )
    fitted = invoke("fit", numbers, "--series", "--distance", "DTW()", "-o", model)
    assert "60 series in 2 classes; distance DTW()" in fitted.output
    assert len(invoke("predict", model, numbers, "--series").stdout.split()) == 61
    built = invoke("index", "build", numbers, tmp_path / "index", "--bits", 8)
    assert "the objects are vectors of 6 numbers: 'a', 'b', 'c', 'd' … 'f'" in built.stderr


def test_data_from_a_pipe_are_known_by_their_bytes(tmp_path: Path) -> None:
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    smi = tmp_path / "a.smi"
    smi.write_text("".join(f"{'C' * (i + 1)}O m{i}\n" for i in range(20)))
    invoke("encode", smi, "-o", tmp_path / "c.npy", "--bits", 8, "--landmarks", 5)
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "a.sdf")) as writer:
        for i in range(20):
            writer.write(Chem.MolFromSmiles("C" * (i + 1) + "O"))
    encoder = tmp_path / "c.encoder.similia"
    piped = invoke("encode", "-", "-o", tmp_path / "d.npy", "--model", encoder, input=(tmp_path / "a.sdf").read_bytes())
    assert "20 codes" in piped.output
    assert np.array_equal(np.load(tmp_path / "c.npy"), np.load(tmp_path / "d.npy"))
    assert "standard input has no column 'x'" in str(
        CliRunner()
        .invoke(app, ["encode", "-", "-o", str(tmp_path / "e.npy"), "--text", "x"], input="a,b\n1,2\n")
        .exception
    )


# --- numbers as labels ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "r.csv"
    path.write_text(
        "text,label,word\n" + "".join(f"{w},{y},read{i}\n" for i, (w, y) in enumerate(zip(WORDS, SHARE, strict=True)))
    )
    return path


@pytest.mark.parametrize("option", [KERNEL, ("--distance", "Levenshtein()"), ("--budget", "8s", "--cv", "3")])
def test_numbers_are_predicted_on_every_path(numbers: Path, tmp_path: Path, option: tuple[str, ...]) -> None:
    model = tmp_path / "m.similia"
    fitted = invoke("fit", numbers, "--text", "text", *option, "-o", model)
    assert "60 strings with numbers to predict" in fitted.output
    assert "R squared" in fitted.output
    shown = invoke("predict", model, numbers).stdout.split()
    predicted = [float(line.split(",")[1]) for line in shown[1:]]
    assert np.corrcoef(predicted, SHARE)[0, 1] > 0.7
    assert model.stat().st_size < 5e5
    for flags in ((), ("--unseen",)):
        page = tmp_path / "r.html"
        invoke("report", model, numbers, "-o", page, "--folds", 2, *flags)
        assert "Scoring stopped" not in page.read_text()
        assert "mean absolute error" in page.read_text().lower()
    assert refused("report", model, numbers, "--text", "text", "--label", "word", "-o", page) == (
        "the model predicts numbers, but the target 'read0' is not a number; give targets like those to "
        "which the model was fitted"
    )


def test_the_task_is_that_of_the_option_of_the_score_or_of_the_labels(tmp_path: Path) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.similia"
    fit = ("fit", table, *KERNEL, "-o", model, "--test", 0)
    table.write_text("text,label\n" + "".join(f"{w},{i % 2}\n" for i, w in enumerate(WORDS)))
    assert "in 2 classes" in invoke(*fit).output
    assert "with numbers to predict" in invoke(*fit, "--scoring", "r2").output
    assert "with numbers to predict" in invoke(*fit, "--task", "regression").output
    table.write_text("text,label\n" + "".join(f"{w},{y}\n" for w, y in zip(WORDS, SHARE, strict=True)))
    assert "classes" in invoke(*fit, "--task", "classification").output
    assert sm.load(model).classes_.dtype.kind == "U"
    assert "--task must be one of auto, classification, regression" in refused(*fit, "--task", "guess")
    assert "--bits is for classes, and the labels are numbers" in refused(*fit, "--bits", 64)
    table.write_text("text,label\n" + "".join(f"{w},x{i % 2}\n" for i, w in enumerate(WORDS)))
    said = f"needs numbers, and the label 'x0' of {table} is not a number"
    assert refused(*fit, "--task", "regression") == f"--task regression {said}"
    assert refused(*fit, "--scoring", "r2") == f"--scoring r2 {said}"


def test_many_different_numbers_with_repeats_are_a_regression(tmp_path: Path) -> None:
    values = np.round(np.linspace(4, 9, 296), 2)  # 296 different activities of 1,017 molecules
    table = tmp_path / "t.csv"
    words = ["".join(RNG.choice(list("ACGT"), 8)) for _ in range(1017)]
    table.write_text("text,label\n" + "".join(f"{w},{values[i % 296]}\n" for i, w in enumerate(words)))
    assert (
        "1017 strings with numbers to predict"
        in invoke("fit", table, *KERNEL, "--landmarks", 20, "-o", tmp_path / "m", "--test", 0).output
    )


def test_classes_written_as_numbers_and_as_text_are_the_same(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    y = [i % 2 for i in range(60)]
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{w},{k}\n" for w, k in zip(WORDS, y, strict=True)))
    parquet.write_table(pa.table({"text": WORDS, "label": y}), tmp_path / "t.parquet")
    for fitted in ("t.csv", "t.parquet"):
        invoke("fit", tmp_path / fitted, *KERNEL, "--bits", 512, "-o", tmp_path / "m.similia", "--test", 0)
        model = sm.load(tmp_path / "m.similia")
        for labels in (y, list(map(str, y))):
            scored = gather(model, WORDS, labels, None, True, 5, 100, 0).scored
            assert np.mean(scored.truth == scored.predicted) > 0.9


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (["NaN"], "'NaN' is taken as a class; if it means that there is no label, leave these rows out"),
        (["Weak "], "'Weak ' and 'weak' are taken as two classes; if they mean the same, give them one spelling"),
        (["Weak ", "STRONG"], "'STRONG' and 'strong' are taken as two classes, one of 2 such pairs; if they mean"),
        (["other"], ""),
    ],
)
def test_names_of_classes_that_are_probably_mistakes_are_told(tmp_path: Path, odd: list[str], said: str) -> None:
    kinds = 2 * odd + KINDS[2 * len(odd) :]
    lines = [f"{w},{k}\n" for w, k in zip(WORDS, kinds, strict=True)]
    (tmp_path / "t.csv").write_text("text,kind\n" + "".join(lines))
    out = invoke("fit", tmp_path / "t.csv", *KERNEL, "--label", "kind", "-o", tmp_path / "m.similia", "--test", 0)
    notes = [line for line in " ".join(out.output.split()).split("note: ") if "in the column 'kind', " in line]
    assert len(notes) == bool(said)
    assert not said or said in notes[0]


def test_a_class_of_one_object_is_named_if_it_is_held_out(tmp_path: Path) -> None:
    kinds = ["rare", *KINDS[1:]]
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{w},{k}\n" for w, k in zip(WORDS, kinds, strict=True)))
    fit = ("fit", tmp_path / "t.csv", *KERNEL, "-o", tmp_path / "m.similia", "--test", 0.5)
    said = {refused(*fit, "--seed", seed) for seed in range(6)} - {"None"}
    assert said == {
        "class 'rare' has one object, and --test 0.5 holds it out; give more objects of this class, leave it out, or "
        "use --test 0, which holds out none"
    }


# --- what the commands could not do -----------------------------------------------------------


def test_an_encoder_without_bits_is_told(tmp_path: Path) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    data = tmp_path / "w.txt"
    data.write_text("\n".join(WORDS))
    sparse = make_pipeline(sm.KernelFeatures(sm.kernels.Spectrum(k=2), 256), LinearSVC())
    dense = make_pipeline(sm.Nystroem(sm.kernels.Spectrum(k=2), 8, random_state=0), LinearSVC())
    near = sm.KNeighborsClassifier(sm.distances.Levenshtein(), n_neighbors=1)
    for model, made in (
        (sparse, "vectors of 256 numbers"),
        (dense, "vectors of 8 numbers"),
        (near, "predictions only"),
    ):
        path = sm.save(model.fit(WORDS, KINDS), tmp_path / "m.similia")
        said = refused("encode", data, "-o", tmp_path / "c.npy", "--model", path)
        assert said.startswith(f"{path} makes {made}, but similia encode writes packed bits; drop --model")
    assert not (tmp_path / "c.npy").exists()


def test_a_plan_of_few_objects_has_as_few_landmarks(tmp_path: Path) -> None:
    lines = ["@problemName x", "@timeStamps false", "@univariate true", "@classLabel false", "@data"]
    (tmp_path / "f.ts").write_text("\n".join([*lines, *("1,2,3,4" for _ in range(30))]) + "\n")
    found = json.loads(invoke("plan", "--data", tmp_path / "f.ts", "--distance", "DTW()", "--json").stdout)
    assert (found["objects"], found["size"]) == (30, 30)


def test_a_plan_counts_the_objects_of_a_file_that_ends_in_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ACGT\n" * 123 + "\n")
    assert _sample(str(tmp_path / "a.txt"), {})[2] == 123


@pytest.mark.parametrize("objects", ["inf", "nan"])
def test_a_plan_needs_a_finite_number_of_objects(objects: str) -> None:
    told = refused("plan", "--objects", objects, "--length", 10, "--kernel", "Spectrum(k=2)")
    assert told.startswith("--objects ")
    assert objects in told


def test_the_ending_of_a_parquet_file_may_be_in_upper_case(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, model = tmp_path / "X.PARQUET", tmp_path / "m.similia"
    parquet.write_table(pa.table({"read": WORDS, "other": WORDS[::-1], "label": KINDS}), path)
    invoke("fit", path, "--text", "read", *KERNEL, "--bits", 64, "-o", model)
    expected = invoke("predict", model, path, "--text", "read").stdout
    assert invoke("predict", model, path).stdout == expected


def test_rows_of_numbers_are_series_where_the_distance_is_for_series(tmp_path: Path) -> None:
    rows = RNG.normal(size=(20, 6)) + np.repeat([0.0, 5.0], 10)[:, None]
    rows[3, 4:] = rows[15, 5:] = np.nan  # shorter ones
    y = np.repeat(["low", "high"], 10)
    np.savez(tmp_path / "s.npz", X=rows, y=y)
    cells = [["" if np.isnan(v) else repr(float(v)) for v in row] for row in rows]
    (tmp_path / "s.csv").write_text(
        "a,b,c,d,e,f,label\n" + "".join(f"{','.join(row)},{label}\n" for row, label in zip(cells, y, strict=True))
    )
    model, fit = tmp_path / "m.similia", ("--distance", "DTW(window=0.1)", "--test", 0, "-o", tmp_path / "m.similia")
    for data in (tmp_path / "s.npz", tmp_path / "s.csv"):
        fitted = invoke("fit", data, *fit)
        assert "20 series in 2 classes" in fitted.output
        assert f"{data} are read as series, because DTW(window=0.1) compares series" in " ".join(fitted.stderr.split())
        expected = ["row,label", *(f"{i},{label}" for i, label in enumerate(y))]
        assert invoke("predict", model, data).stdout.split() == expected
        assert invoke("predict", model, data, "--series").stdout.split() == expected


@pytest.mark.parametrize("ending", [".npz", ".csv", ".npy"])
def test_rows_of_numbers_are_series_for_every_command_with_a_model_or_index_of_series(
    ending: str, tmp_path: Path
) -> None:
    rows, y = RNG.normal(size=(20, 6)) + np.repeat([0.0, 5.0], 10)[:, None], np.repeat(["low", "high"], 10)
    rows[3, 4:] = np.nan  # a shorter one
    data, model, near = tmp_path / f"s{ending}", tmp_path / "m.similia", tmp_path / "near.csv"
    np.save(tmp_path / "s.npy", rows)
    np.savez(tmp_path / "s.npz", X=rows, y=y)
    (tmp_path / "s.csv").write_text(
        "".join(",".join(["" if np.isnan(v) else repr(v) for v in row]) + "\n" for row in rows.tolist())
    )
    header = ("--no-header",) if ending == ".csv" else ()
    series = sm.objects.as_series([row[np.isfinite(row)] for row in rows])
    fitted = sm.recipes.nyshd(sm.kernels.GlobalAlignment(), 8, 64, random_state=0).fit(series, y)
    sm.save(fitted, model)
    for i in (0, 3):
        shown = invoke("explain", model, data, *header, "--object", i, "--json").stdout
        assert json.loads(shown)["value"] == pytest.approx(sm.explain(fitted, series[[i]]).value)
    if ending != ".npy":  # its rows are read in chunks, as vectors
        invoke("report", model, data, *header, "-o", tmp_path / "r.html", "--unseen")
        invoke("encode", data, *header, "--model", model, "-o", tmp_path / "c.npy")
        assert np.array_equal(np.load(tmp_path / "c.npy"), fitted[:-1].transform(series))
    invoke("index", "build", tmp_path / "s.npz", tmp_path / "i", "--distance", "DTW()", "--bits", 64)
    invoke("index", "search", tmp_path / "i", data, *header, "-k", 1, "-o", near)
    assert [row[:1] + row[2:3] for row in rows_of(near)[1:]] == [[str(i), str(i)] for i in range(20)]
    added = invoke("index", "add", data, tmp_path / "i", *header, "--again").stderr
    assert f"{data} are read as series, because DTW() compares series" in " ".join(added.split())
    assert len(SearchFolder.open(tmp_path / "i")) == 40


def test_rows_of_vectors_stay_vectors_for_an_index_of_vectors_by_a_distance_of_series(tmp_path: Path) -> None:
    rows = RNG.normal(size=(20, 6))
    np.save(tmp_path / "s.npy", rows)
    np.savez(tmp_path / "s.npz", X=rows)
    invoke("index", "build", tmp_path / "s.npy", tmp_path / "i", "--distance", "DTW()", "--bits", 64)
    invoke("index", "add", tmp_path / "s.npz", tmp_path / "i")
    assert len(SearchFolder.open(tmp_path / "i")) == 40


def test_a_model_names_the_column_that_it_does_not_compare_and_the_option_for_another(tmp_path: Path) -> None:
    table, models = tmp_path / "t.csv", {}
    table.write_text("a,b,class\n" + "".join(f"{i},{i % 5},{'xy'[i % 2]}\n" for i in range(20)))
    waves = [np.sin(np.arange(6) * (1 + i % 2)) for i in range(20)]
    for name, model, X in (
        ("series", sm.recipes.d2ke(sm.distances.DTW(), 8, random_state=0), waves),
        ("strings", sm.recipes.nyshd(sm.kernels.Spectrum(k=1), 4, 64, random_state=0), WORDS[:20]),
    ):
        models[name] = sm.save(model.fit(X, np.arange(20) % 2), tmp_path / f"{name}.similia")
    for options in ((), ("--text", "class")):
        said = refused("predict", models["series"], table, *options)
        assert "holds strings (column 'class'), which DTW() does not compare" in said
        assert "--values names other columns, of numbers" in said
        assert "use e.g." not in said
    assert invoke("predict", models["series"], table, "--values", "a,b").stdout.count("\n") == 21
    said = refused("predict", models["strings"], table, "--values", "a,b")
    assert "holds vectors (columns 'a', 'b'), which Spectrum(k=1) does not compare" in said
    assert "--text names another column, of strings" in said
    table.write_text("a,b\n1,2\n3,4\n")
    said = refused("predict", models["strings"], table)
    assert "holds vectors (columns 'a', 'b'), which" in said
    wrong = tmp_path / "t.fasta"
    wrong.write_text(">a\nACGT\n")
    said = refused("predict", models["series"], wrong)
    assert said == f"{wrong} holds strings, which DTW() does not compare; give a file of series"
