"""Names of the objects of an index that stand in a column of a table do what those of FASTA headers do."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from similia.cli.app import app
from similia.search import SimilaritySearch
from similia.search.on_disk import SearchFolder

runner = CliRunner()
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (60, 20))]


def invoke(*arguments, code=0):
    result = runner.invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def table(path):
    with path.open() as file:
        return list(csv.reader(file))


def fasta(path, words):
    path.write_text("".join(f">{path.stem}{i}\n{word}\n" for i, word in enumerate(words)))
    return path


def columns(folder):
    """The same words and names in each format of a table."""
    names = [f"n{i}" for i in range(60)]
    rows = list(zip(names, WORDS, strict=True))
    (folder / "t.csv").write_text("acc,text\n" + "".join(f"{name},{word}\n" for name, word in rows))
    (folder / "t.tsv").write_text("text\tacc\n" + "".join(f"{word}\t{name}\n" for name, word in rows))
    table = pa.table({"acc": names, "text": WORDS})
    parquet.write_table(table, folder / "t.parquet", row_group_size=17)
    return [folder / name for name in ("t.csv", "t.tsv", "t.parquet")]


@pytest.mark.parametrize("chunk", [7, 1000])
def test_names_of_a_column_are_those_of_headers(chunk, tmp_path):
    headers = tmp_path / "n.fasta"
    expected = invoke_search(tmp_path / "fasta", fasta(headers, WORDS), ("--chunk", chunk), ())
    assert expected[1][:4] == ["n0", "1", "0", "n0"]
    for data in columns(tmp_path):
        folder = tmp_path / f"{data.suffix[1:]}.index"
        assert invoke_search(folder, data, ("--id", "acc", "--chunk", chunk), ("--id", "acc")) == expected
        invoke("index", "add", data, folder, "--id", "acc", "--again")
        assert json.loads(invoke("index", "remove", folder, "n3", "--json").stdout)["removed"] == [3, 63]
        without = invoke("index", "search", folder, data, "-k", 1).stdout.splitlines()
        assert without[1].startswith("0,1,0,n0,")  # the objects have names still, the queries numbers


def invoke_search(folder, data, build, search):
    invoke("index", "build", data, folder, "--landmarks", 32, *build)
    invoke("index", "search", folder, data, "-k", 2, "-o", folder.parent / "found.csv", *search)
    return table(folder.parent / "found.csv")


def test_an_index_that_was_named_by_a_column_is_gone_on_with(tmp_path, monkeypatch):
    data, folder = columns(tmp_path)[0], tmp_path / "index"
    append, calls = SearchFolder._append, []

    def stopping(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return append(*given)

    arguments = ("index", "build", data, folder, "--landmarks", 32, "--id", "acc", "--chunk", 9)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping)
        invoke(*arguments, code=130)
    assert "resuming after 18 of 60" in invoke(*arguments).stdout
    assert SearchFolder.open(folder).load_named()[1] == {i: f"n{i}" for i in range(60)}


def test_an_index_remembers_the_column_that_names_its_objects(tmp_path):
    data, folder = columns(tmp_path)[0], tmp_path / "index"
    more = tmp_path / "more.csv"
    more.write_text("acc,text\n" + "".join(f"m{i},{word[::-1]}\n" for i, word in enumerate(WORDS[:5])))
    invoke("index", "build", data, folder, "--landmarks", 32, "--id", "acc")
    assert json.loads(invoke("index", "info", folder, "--json").stdout)["id"] == "acc"
    assert "is in the index already" in invoke("index", "add", data, folder).stdout
    invoke("index", "add", more, folder)
    search, names = SearchFolder.open(folder).load_named()
    assert [names[i] for i in search.ids_.tolist()] == [f"n{i}" for i in range(60)] + [f"m{i}" for i in range(5)]
    other = tmp_path / "other.csv"
    other.write_text(f"name,text\nx,{WORDS[0]}\n")
    assert "has no column 'acc'" in str(runner.invoke(app, ["index", "add", str(other), str(folder)]).exception)
    invoke("index", "add", other, folder, "--id", "name")
    invoke("index", "add", fasta(tmp_path / "f.fasta", [WORDS[1]]), folder)  # has names of its own
    assert list(SearchFolder.open(folder).load_named()[1].values())[-2:] == ["x", "f0"]


@pytest.mark.parametrize(("first", "second"), [((), ("--id", "acc")), (("--id", "acc"), ("--id", "text"))])
def test_the_same_objects_under_other_names_are_not_added_again(first, second, tmp_path):
    data, folder = columns(tmp_path)[0], tmp_path / "index"
    invoke("index", "build", data, folder, "--landmarks", 32, *first)
    assert "is in the index already" in invoke("index", "add", data, folder, *second).stdout
    assert len(SearchFolder.open(folder)) == 60


def test_numbers_as_names_are_removed_by_what_is_meant(tmp_path):
    data, folder = tmp_path / "t.csv", tmp_path / "index"
    data.write_text("acc,text\n" + "".join(f"{i + 1},{word}\n" for i, word in enumerate(WORDS)))
    invoke("index", "build", data, folder, "--landmarks", 32, "--id", "acc")
    said = str(runner.invoke(app, ["index", "remove", str(folder), "7"]).exception)
    assert said.startswith("7 is the id of one object and the name of another, whose id is 6; nothing was removed")
    assert said.endswith("choose with --by id or --by name")
    for by, number, removed in (("id", "7", 7), ("name", "9", 8)):
        done = invoke("index", "remove", folder, number, "--by", by, "--json")
        assert json.loads(done.stdout)["removed"] == [removed]
        again = runner.invoke(app, ["index", "remove", str(folder), number, "--by", by])
        assert f"holds no object with the {by} {number}" in str(again.exception)
    assert "--by must be id or name, got row" in str(
        runner.invoke(app, ["index", "remove", str(folder), "9", "--by", "row"]).exception
    )


def test_columns_that_cannot_name_are_refused(tmp_path):
    first, folder = fasta(tmp_path / "first.fasta", WORDS), tmp_path / "index"
    data = columns(tmp_path)[0]
    invoke("index", "build", data, folder, "--landmarks", 32)
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    for command in (("build", "DATA", tmp_path / "new"), ("add", "DATA", folder), ("search", folder, "DATA")):
        for given, name, sentence in [
            (first, "acc", "first.fasta holds the names of its records; drop names (--id)"),
            (tmp_path / "v.npy", "acc", "has no columns, so names (--id) does not apply; drop it"),
            (data, "ac", "has no column 'ac' (did you mean acc?); it has 'acc', 'text'"),
        ]:
            arguments = [str(given if a == "DATA" else a) for a in command]
            said = str(runner.invoke(app, ["index", *arguments, "--id", name]).exception)
            assert sentence in said
    assert not (tmp_path / "new").exists()


def test_saving_over_an_index_of_the_command_line_is_refused_and_changes_nothing(tmp_path):
    data, folder = fasta(tmp_path / "seq.fasta", WORDS), tmp_path / "index"
    invoke("index", "build", data, folder, "--landmarks", 32)
    with pytest.raises(ValueError, match=r"index holds names of objects and a record of the files that were added"):
        SimilaritySearch.load(folder).save(folder, overwrite=True)
    assert "is in the index already" in invoke("index", "add", data, folder).stdout
    found = invoke("index", "search", folder, data, "-k", 1).stdout.splitlines()
    assert found[:2] == ["query,rank,id,name,distance", "seq0,1,0,seq0,0"]
    assert json.loads(invoke("index", "remove", folder, "seq1", "--json").stdout)["removed"] == [1]


def test_saving_over_names_that_python_gave_is_refused(tmp_path):
    data, folder = fasta(tmp_path / "seq.fasta", WORDS), tmp_path / "index"
    invoke("index", "build", data, folder, "--landmarks", 32)
    search, saved = SimilaritySearch.load(folder), tmp_path / "saved"
    search.save(saved)
    search.save(saved, overwrite=True)  # holds nothing but what a search has
    SearchFolder.open(saved).add(["ACGTACGTAC"], names=["mine"])
    with pytest.raises(ValueError, match=r"saved holds names of objects, which save would lose; save to a new folder"):
        search.save(saved, overwrite=True)
    assert SearchFolder.open(saved).load_named()[1] == {60: "mine"}


@pytest.mark.parametrize("chunk", [1, 1000])
def test_names_of_several_objects_are_told(chunk, tmp_path):
    data, more, folder = tmp_path / "d.fasta", tmp_path / "m.fasta", tmp_path / "x.index"
    for path, names in ((data, ["a", "b", "a", "", "", "c"]), (more, ["d", "c", "d", "d"])):
        path.write_text("".join(f">{name}\n{word}\n" for name, word in zip(names, WORDS, strict=False)))
    how = ("--bits", 8, "--chunk", chunk)
    note = "note: {} in {}; the ids in the results of a search tell such objects apart, and removing a name"
    assert note.format("1 name repeats an earlier one", data) in invoke("index", "build", data, folder, *how).stderr
    assert note.format("2 names repeat earlier ones", more) in invoke("index", "add", more, folder, *how[2:]).stderr
    assert "repeat" not in invoke("index", "build", fasta(tmp_path / "n.fasta", WORDS), tmp_path / "y", *how).stderr
    one = invoke("index", "remove", folder, "b", "0")
    assert "removed 2; " in one.stdout
    assert one.stderr == ""
    done = invoke("index", "remove", folder, "a", "c", "d")
    assert "removed 6; " in done.stdout  # one a is left, and c of both files
    assert done.stderr == "note: some names are those of several objects, such as c of 2; all were removed\n"
