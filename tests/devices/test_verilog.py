"""The core in Verilog gives the codes and labels of the quantised model: simulated, and synthesized."""

import re
import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.devices.quantised import Quantised
from similia.devices.stages import DenseSigns, HadamardSigns, Linear, Prototypes
from similia.devices.verilog import roms_of, widths_of

# Some models are changed by hand, so that their codes are not those of the pipeline.
pytestmark = pytest.mark.filterwarnings("ignore:in whole numbers")
simulates = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
synthesizes = pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed")


def strings(n):
    """Return strings of 0 to 29 letters, the first of them empty: all its numbers k are 0."""
    random = np.random.default_rng(0)
    return ["".join(random.choice(list("acgt"), length)) for length in [0, *random.integers(1, 30, n - 1)]]


def fitted(bits=40, prototype_bits=8, landmarks=8, **options):
    """Return a pipeline on strings; with prototype_bits=0, it ends with the codes."""
    X = strings(300)
    steps = [sm.Nystroem(sm.kernels.Spectrum(k=2), n_components=landmarks, random_state=0)]
    steps.append(sm.SignRandomProjection(bits, random_state=0, **options))
    if prototype_bits:
        steps.append(sm.HDClassifier(prototype_bits=prototype_bits, random_state=0))
    return make_pipeline(*steps).fit(X, [x.count("a") > 3 for x in X])


def dense(n=1000, prototype_bits=8):
    X = strings(n)
    return sm.quantise(fitted(prototype_bits=prototype_bits), X), X


def codes_only(n=1000):
    return dense(n, prototype_bits=0)


def hadamard(n=1000):
    """Two blocks of 16 products, of which the second is used in part. Fitted projections have at least 256."""
    X = strings(n)
    small = sm.quantise(fitted(24, prototype_bits=4), X)
    flips = np.random.default_rng(0).integers(0, 2, (2, 3, 16)).astype(bool)
    linear = replace(small.linear, A=small.linear.A >> 10)  # sums so small that the guard keeps what shifts would lose
    return replace(small, linear=linear, signs=HadamardSigns(flips, 24)), X


def longer(n=40):
    X = strings(n)
    return sm.quantise(fitted(400, landmarks=16), X), X


def hadamard_as_fitted(n=40):
    X = strings(n)
    return sm.quantise(fitted(256, prototype_bits=4, method="hadamard"), X), X


def one_bit(n=1000):
    """Three classes, and similarities of 24 bits."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    model = make_pipeline(
        sm.Nystroem(sm.kernels.RBF(0.1), n_components=6, random_state=0),
        sm.SignRandomProjection(40, random_state=0),
        sm.HDClassifier(prototype_bits=1, random_state=0),
    )
    return sm.quantise(model.fit(X[:300], np.digitize(X[:300, 0], [-0.5, 0.5])), X), X


def scaled_vectors(n=1000):
    """Offsets c, a diagonal A, and vectors whose numbers are the largest that fit into 16 bits."""
    X = np.random.default_rng(0).normal(size=(n, 6)) * [1, 10, 1, 5, 0.01, 1] + [5, 0, 0, -9, 1, 0]
    model = make_pipeline(
        StandardScaler(), sm.SignRandomProjection(40, random_state=0), sm.HDClassifier(random_state=0)
    )
    small = sm.quantise(model.fit(X, X[:, 0] > 5), X)
    return small, np.concatenate([np.sign(X[:20]) * 32767 * small.input.units.steps, X])[:n]


def ties(n=50):
    """Every score is the score of two classes. Intercepts make each of the two pairs win half of the objects."""
    small, X = dense(n)
    once, both = small.prototypes, [0, 0, 1, 1]
    first, second = once(small.transform(X)).T
    c = once.c[both] + [int(np.median(second - first)), int(np.median(second - first)), 0, 0]
    prototypes = replace(once, R=once.R[both], m=once.m[both], c=c)
    return replace(small, prototypes=prototypes, classes_=np.arange(4)), X


def simulated(folder, name="model"):
    """Return what the testbench prints."""
    subprocess.run(
        ["iverilog", "-g2001", "-Wall", "-o", "tb", f"{name}.v", f"{name}_tb.v"],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return subprocess.run(["vvp", "tb"], cwd=folder, check=True, capture_output=True, text=True).stdout


@simulates
@pytest.mark.parametrize("share", [0.1, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "case",
    [dense, longer, hadamard, hadamard_as_fitted, one_bit, scaled_vectors, codes_only, ties],
    ids=lambda f: f.__name__,
)
def test_the_core_gives_the_codes_and_labels_of_python(case, share, tmp_path):
    small, X = case()
    X = X[: int(share * len(X))]
    assert sm.export_verilog(small, tmp_path, X) is small
    said = simulated(tmp_path)
    assert said.endswith(f"0 of {len(X)} objects differ\n"), said[-1000:]
    promised = re.search(r"takes (\d+) clocks", (tmp_path / "model.v").read_text())[1]
    assert f"{promised} clocks for the first object" in said
    assert f"{promised}  in all" in (tmp_path / "model_verilog.txt").read_text()


def test_the_expected_answers_are_those_of_predict_and_transform(tmp_path):
    small, X = dense(50)
    sm.export_verilog(small, tmp_path, X)
    labels = [int(line, 16) for line in (tmp_path / "model_tb_labels.hex").read_text().split()]
    codes = bytes.fromhex((tmp_path / "model_tb_codes.hex").read_text())
    assert set(labels) == {0, 1}
    np.testing.assert_array_equal(small.classes_[labels], small.predict(X))
    assert codes == small.transform(X).tobytes()


def test_of_equal_scores_the_first_class_is_expected(tmp_path):
    small, X = ties()
    sm.export_verilog(small, tmp_path, X)
    assert set((tmp_path / "model_tb_labels.hex").read_text().split()) == {"0", "2"}


@simulates
@pytest.mark.parametrize(("file", "line"), [("labels", 3), ("codes", 15), ("codes", 19)])
def test_the_testbench_counts_an_object_that_differs(file, line, tmp_path):
    small, X = dense(10)
    sm.export_verilog(small, tmp_path, X)
    path = tmp_path / f"model_tb_{file}.hex"
    lines = path.read_text().split("\n")
    lines[line] = f"{int(lines[line], 16) ^ 1:0{len(lines[line])}x}"
    path.write_text("\n".join(lines))
    said = simulated(tmp_path)
    assert "object 3 differs from Python" in said
    assert said.endswith("1 of 10 objects differ\n")


@simulates
def test_the_testbench_ends_if_no_answer_comes(tmp_path):
    small, X = codes_only(10)
    sm.export_verilog(small, tmp_path, X)
    core = (tmp_path / "model.v").read_text()
    (tmp_path / "model.v").write_text(core.replace("code_last <= 1;", ""))
    assert simulated(tmp_path).endswith("10 of 10 objects differ\n")


@simulates
def test_without_X_the_landmarks_are_the_tests(tmp_path):
    sm.export_verilog(fitted(), tmp_path, name="mine")
    assert simulated(tmp_path, "mine").endswith("0 of 8 objects differ\n")


@synthesizes
@pytest.mark.parametrize("case", [dense, pytest.param(hadamard, marks=pytest.mark.long)], ids=["dense", "hadamard"])
def test_the_core_can_be_synthesized_without_latches(case, tmp_path):
    small, X = case(10)
    sm.export_verilog(small, tmp_path, X)
    script = "read_verilog model.v; synth -top model; check -assert; tee -o stat.txt stat"
    done = subprocess.run(["yosys", "-p", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "Warning" not in done.stdout + done.stderr
    assert "Latch inferred" not in done.stdout
    stat = (tmp_path / "stat.txt").read_text()
    assert "latch" not in stat.lower()
    cells = {cell: int(n) for cell, n in re.findall(r"(\$_\w+_) +(\d+)", stat)}
    flip_flops = sum(n for cell, n in cells.items() if "DFF" in cell)
    text = (tmp_path / "model_verilog.txt").read_text()
    said = sum(int(n) for n in re.findall(r"(?:RAM\), |memories: )(\d+) bits", text))
    assert 0.9 * said < flip_flops <= said  # registers of constant bits are left out
    assert cells["$_MUX_"] > 100


def test_widths_are_those_of_the_largest_numbers_computed_by_hand():
    linear = Linear(np.array([[3, -4]]), np.array([5]), np.array([1]), guard=2, n_bits=3)
    signs = DenseSigns(np.array([[7]] * 8, np.int8))
    prototypes = Prototypes(
        np.array([[1, -2, 3, -4, 0, 0, 0, 0]] * 2, np.int8), np.array([9, 3]), np.array([-8, 1]), 8, 1.0
    )
    read = SimpleNamespace(width=2, limit=7)  # numbers k from -8 to 7
    small = Quantised(None, read, linear, signs, prototypes, np.arange(2))
    w = widths_of(small, roms_of(small))
    assert w.k == 4
    assert w.sum == 8  # 9 * 10 + 8 = 98; also 7 * 8 + 5 = 61 in A k + c, and 7 * 8 in P z
    assert w.coordinate == 8  # 61 * 4 / 2 + 1 = 123
    assert (w.a, w.b) == (8, 5)  # prototypes of 8 bits; 10 is the largest of R x
    assert w.shifter == 11  # z * 2^3; sum * 2^2 needs 9
    assert w.by == 4  # up to 8
    assert (w.row, w.column, w.address, w.label) == (3, 3, 4, 1)


def test_tables_are_written_in_two_s_complement(tmp_path):
    small, X = dense(10, prototype_bits=4)
    sm.export_verilog(small, tmp_path, X)
    found = np.array([int(line, 16) for line in (tmp_path / "model_prototypes.hex").read_text().split()])
    np.testing.assert_array_equal(np.where(found > 7, found - 16, found), small.prototypes.R.ravel())
    assert small.prototypes.R.min() < 0
    assert len((tmp_path / "model_projection.hex").read_text().split()) == small.signs.P.size


@pytest.mark.parametrize(
    ("name", "reason"), [("1st", "letters"), ("a-b", "letters"), ("../a", "letters"), ("module", "word of Verilog")]
)
def test_a_bad_name_raises(name, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        sm.export_verilog(fitted(), tmp_path / "new", name=name)
    assert not (tmp_path / "new").exists()


def test_files_that_exist_are_kept_and_nothing_is_half_written(tmp_path):
    small, X = dense(10)
    (tmp_path / "model_weights.hex").write_text("mine")
    with pytest.raises(FileExistsError, match=r"model_weights\.hex exists; .* overwrite it"):
        sm.export_verilog(small, tmp_path, X)
    assert [path.name for path in tmp_path.iterdir()] == ["model_weights.hex"]
    assert (tmp_path / "model_weights.hex").read_text() == "mine"
    sm.export_verilog(small, tmp_path, X, name="other")
    sm.export_verilog(small, tmp_path, X, overwrite=True)
    assert (tmp_path / "model_weights.hex").read_text() != "mine"


def test_a_model_that_cannot_be_quantised_writes_nothing(tmp_path):
    X = np.arange(20.0)[:, None]
    with pytest.raises(TypeError, match="expected codes by SignRandomProjection"):
        sm.export_verilog(make_pipeline(StandardScaler()).fit(X), tmp_path / "new", X)
    encoder = make_pipeline(sm.LevelEncoder(256, random_state=0)).fit(X)
    with pytest.raises(TypeError, match="without numbers k"):
        sm.export_verilog(encoder, tmp_path / "new", X)
    assert not (tmp_path / "new").exists()


def test_vectors_without_X_raise(tmp_path):
    small, _ = scaled_vectors(100)
    with pytest.raises(
        ValueError, match="X must be vectors such as the training vectors, which become the tests, got nothing"
    ):
        sm.export_verilog(small, tmp_path)
