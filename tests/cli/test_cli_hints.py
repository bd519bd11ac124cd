"""What commands say of data and options other than those meant: empty cells, separators, the option beside it."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.inputs import open_objects, read_objects
from similia.cli.options import parse_comparison, parse_distance, parse_kernel
from similia.core.validation import BadFile

runner = CliRunner()
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (40, 12))]
LABELS = ["even", "odd"] * 20
SPECTRUM = ("--kernel", "Spectrum(k=2)", "--bits", 64)


@pytest.fixture
def model(tmp_path):
    recipe = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=64, random_state=0)
    return sm.save(recipe.fit(WORDS, LABELS), tmp_path / "m.similia")


def invoke(*arguments, code=0, **how):
    done = runner.invoke(app, [str(a) for a in arguments], **how)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments, **how):
    said = str(runner.invoke(app, [str(a) for a in arguments], **how).exception)
    assert "\n" not in said
    return said


def tables(folder, words):
    with (folder / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(words, LABELS, strict=True)])
    parquet.write_table(pa.table({"text": words, "label": LABELS}), folder / "x.parquet", row_group_size=17)
    return folder / "x.csv", folder / "x.parquet"


# ---- empty cells
@pytest.mark.parametrize("read", [read_objects, lambda data, **how: list(open_objects(data, chunk=7, **how).chunks())])
def test_empty_cells_stop_or_are_left_out(read, tmp_path, capsys):
    for data in tables(tmp_path, ["" if i in (31, 12) else word for i, word in enumerate(WORDS)]):
        place = "row 12 (counted from 0)" if data.suffix == ".parquet" else "line 14"
        with pytest.raises(
            BadFile, match=r"the text \(column 'text'\) is empty; fill it in or leave the row"
        ) as caught:
            read(str(data))
        assert caught.value.at == place
        read(str(data), on_error="skip")
        number = place.split()[1]
        assert f"note: 2 rows were left out of {data} " in (said := capsys.readouterr().err)
        assert f"the first, in line {number}: the text (column 'text') is empty" in said


def test_of_a_pipe_the_sentence_says_so(model, tmp_path):
    data, _ = tables(tmp_path, ["", *WORDS[1:]])
    assert refused("predict", model, "-", input=data.read_bytes()).startswith("standard input, line 2: the text")


# ---- separators
@pytest.mark.parametrize(
    ("name", "header", "sentence"),
    [
        (
            "x.csv",
            "text;label",
            "x.csv is read with cells separated by commas, but its first line has ';'; use sep=';' (--sep ';')",
        ),
        ("x.csv.gz", "text;label", "but its first line has ';'; use sep="),
        (
            "x.csv",
            "text\tlabel",
            "read with cells separated by commas, but its first line has tabs; use sep='\\t' (--sep tab)",
        ),
        (
            "x.tsv",
            "text,label",
            "read with cells separated by tabs, but its first line has commas; use sep=',' (--sep ',')",
        ),
        ("x.tsv", "text;label", "x.tsv is read with cells separated by tabs, but its first line has ';'"),
        ("x.csv", "words,label;kind", "x.csv has no column 'text' and 2 columns of text: 'words', 'label;kind'; name"),
    ],
)
def test_another_separator_is_named(name, header, sentence, model, tmp_path):
    text = "\n".join([header, *(header.replace("text", word) for word in WORDS)])
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    for arguments in (("fit", tmp_path / name, "-o", tmp_path / "n"), ("predict", model, tmp_path / name)):
        assert sentence in refused(*arguments)
    assert not (tmp_path / "n").exists()


def test_what_the_sentence_says_works(model, tmp_path):
    data = tmp_path / "old.csv"
    data.write_text("text;label\n" + "".join(f"{w};{y}\n" for w, y in zip(WORDS, LABELS, strict=True)))
    option = refused("predict", model, data).split("(--sep '")[1][0]
    found = read_objects(str(data), sep=option)
    assert (found.objects.tolist(), found.labels.tolist()) == (WORDS, LABELS)
    assert len(invoke("predict", model, data, "--sep", option).stdout.split()) == 1 + len(WORDS)


# ---- the other option
def test_a_distance_as_kernel_and_a_kernel_as_distance(tmp_path):
    data, _ = tables(tmp_path, WORDS)
    for option, text, sentence in [
        (
            "--kernel",
            "Levenshtein()",
            "Levenshtein is a distance, not a kernel; write --distance 'Levenshtein()' instead",
        ),
        ("--distance", "Spectrum(k=3)", "Spectrum is a kernel, not a distance; write --kernel 'Spectrum(k=3)' instead"),
        ("--distance", "Spectrum", "write --kernel 'Spectrum' instead of --distance"),
    ]:
        for command in (("fit", data, "-o", tmp_path / "n"), ("encode", data, "-o", tmp_path / "n.npy")):
            assert sentence in refused(*command, option, text)


def test_every_name_is_told_where_it_belongs():
    kernels, distances = sm.kernels.__all__, sm.distances.__all__
    for names, others, parse, sentence in [
        (kernels, distances, parse_distance, "is a kernel, not a distance"),
        (distances, kernels, parse_kernel, "is a distance, not a kernel"),
    ]:
        for name in names:
            if not name[0].isupper() or name in others or name in ("Kernel", "FeatureKernel"):
                continue
            if name in ("Distance", "Facts", "FromFunction", "TwoSampleResult"):
                continue
            with pytest.raises(ValueError, match=f"{name} {sentence}"):
                parse(name)
    assert repr(parse_comparison("Levenshtein()")) == "Levenshtein()"
    assert "Levenshtein()" in repr(parse_kernel("NegativeDistance(Levenshtein())"))


def test_models_that_are_not_there_are_made_by_commands(model, tmp_path):
    data, _ = tables(tmp_path, WORDS)
    absent = tmp_path / "absent.similia"
    for arguments in (
        ("predict", absent, data),
        ("report", absent, data, "-o", tmp_path / "r.html"),
        ("explain", absent, data, "--object", 0),
        ("encode", data, "-o", tmp_path / "c.npy", "--model", absent),
    ):
        said = refused(*arguments)
        assert said == (f"no model at {absent}; similia.save(model, path) or similia fit writes one")
    with pytest.raises(FileNotFoundError, match=r"similia\.save\(model, path\) or similia fit writes one"):
        sm.load(absent)


def test_a_model_of_strings_for_which_smiles_are_read(model, tmp_path):
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    data, folder = tmp_path / "s.csv", tmp_path / "index"
    data.write_text("smiles,label\n" + "CC,a\nCCO,b\n" * 10)
    hint = "; --text instead of --smiles reads "
    assert refused("predict", model, data, "--smiles", "smiles").endswith(hint + "the column as strings")
    invoke("index", "build", data, folder, "--text", "smiles", *SPECTRUM)
    assert refused("index", "search", folder, data, "--smiles", "smiles").endswith(hint + "them as strings")
    graphs = ("fit", data, "--smiles", "smiles", "-o", tmp_path / "g.similia", *SPECTRUM)
    assert refused(*graphs).endswith(hint + "the column as strings")
    series = ("fit", data, "--smiles", "smiles", "-o", tmp_path / "g.similia", "--distance", "DTW()")
    assert "--text" not in refused(*series)


STRANDS = ("--kernel", "Spectrum(k=2, reverse_complement=True)", "--bits", 64)
NO_COMPLEMENT = "it holds '-' at position 4, which has no complement; "


def test_a_bad_letter_is_not_called_a_wrong_kind(tmp_path):
    recipe = sm.recipes.nyshd(sm.kernels.Spectrum(k=2, reverse_complement=True), n_bits=64, random_state=0)
    model = sm.save(recipe.fit(WORDS, LABELS), tmp_path / "m.similia")
    data = tmp_path / "odd.fasta"
    data.write_text(">a\nACGT-ACGTTAC\n")
    assert refused("predict", model, data).startswith(f"{data}, object 0 (counted from 0): {NO_COMPLEMENT}")
    data.write_text(">a label=even\nACGT-ACGTTAC\n" + ">b label=odd\nACGT\n" * 9)
    assert NO_COMPLEMENT in refused("fit", data, *STRANDS, "-o", model)
    numbers = tmp_path / "n.npy"
    np.save(numbers, np.eye(3))
    assert refused("predict", model, numbers).startswith(f"{numbers} holds vectors, which Spectrum(")


def test_a_bad_letter_is_named_by_its_place_in_the_file_not_in_the_split(tmp_path):
    model, words = tmp_path / "m.similia", [*WORDS, "ACGT-ACGTTAC"]
    fasta, table = tmp_path / "x.fasta", tmp_path / "x.csv"
    labels = [*LABELS, "even"]
    fasta.write_text("".join(f">r{i} label={y}\n{w}\n" for i, (w, y) in enumerate(zip(words, labels, strict=True))))
    table.write_text("text,label\n" + "".join(f"{w},{y}\n" for w, y in zip(words, labels, strict=True)))
    for seed in range(3):  # the bad one is held out in some splits and not in others
        fit = (*STRANDS, "-o", model, "--seed", seed)
        assert refused("fit", fasta, *fit).startswith(f"{fasta}, object 40 (counted from 0), 'r40': {NO_COMPLEMENT}")
        assert refused("fit", table, *fit).startswith(f"{table}, line 42: {NO_COMPLEMENT}")


def test_a_stream_of_texts_is_the_stream(tmp_path):
    for data in tables(tmp_path, WORDS):
        plain, read = sm.sources.streams.open_stream(data), open_objects(str(data), text="text", chunk=7)
        assert (read.n, read.kind, read.source) == (plain.n, plain.kind, plain.source)
        assert read.fingerprint() == plain.fingerprint()
        first, *rest = read.chunks()
        assert [word for part in [first, *rest] for word in part.objects.tolist()] == WORDS
        assert [p.objects.tolist() for p in read.chunks(7)] == [p.objects.tolist() for p in rest]


def test_an_index_has_no_prediction_to_explain(tmp_path):
    data, _ = tables(tmp_path, WORDS)
    invoke("index", "build", data, tmp_path / "i", *SPECTRUM)
    said = refused("explain", tmp_path / "i", data, "--object", 0)
    assert said.endswith("i is an index, which predicts nothing; --pair explains why two objects are similar")
    invoke("explain", tmp_path / "i", data, "--pair", 0, 1)
