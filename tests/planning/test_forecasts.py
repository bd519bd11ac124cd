"""`similia plan`: it counts what runs do, seconds follow the formulas, and one sentence for what it cannot plan."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.plan import SIZES, TIMES, in_units
from similia.core.config import n_threads
from similia.embeddings import Representatives
from similia.objects import GraphBatch, n_objects
from similia.planning import forecasts as _calibrate
from similia.planning import forecasts as planner
from similia.planning.forecasts import Costs, Formula, Method, Objects, kind_of, plan
from similia.similarity import Kernel
from similia.storage.store import Store

runner = CliRunner()
STEPS = {"embed", "fit", "signs", "index", "search"}
COSTS = Costs(
    embed=Formula({"n": 2e-6, "n s L": 1e-9, "calls": 1e-3}),
    fit=Formula({"": 0.5, "s s s": 1e-9}),
    signs=Formula({"n s b": 1e-11}),
    index=Formula({"calls": 1e-3, "n b": 1e-10}),
    search=Formula({"": 1e-3, "n b": 1e-11}),
    cores=2,
    bytes_per_length=1.08,
)
SPECTRUM = sm.kernels.Spectrum(k=3)
EDITS = sm.distances.Levenshtein()


@pytest.fixture
def quick(monkeypatch):
    """Calibrate at once: runs too short to tell anything, but all of them."""
    for name, value in {"_RUN": 1e-3, "_FEWEST": 2, "_MOST": 2, "_SCANNED": (2**12, 2**14)}.items():
        monkeypatch.setattr(_calibrate, name, value)


class Counting:
    """A kernel or distance that counts the pairs it is asked for."""

    def __init__(self, function):
        self.function, self.pairs = function, 0

    def __call__(self, X, Y=None):
        values = self.function(X, Y)
        self.pairs += values.size
        return values

    def as_objects(self, X):
        return self.function.as_objects(X)


# what is counted


@pytest.mark.parametrize(("n", "s"), [(700, 50), (300, 100)])
def test_kernel_values_are_those_of_a_run(n, s):
    kernel, strings = Counting(SPECTRUM), Objects("strings").sample(n, 20)
    encoder = make_pipeline(sm.Nystroem(kernel, n_components=s, random_state=0), sm.SignRandomProjection(64))
    encoder.fit(strings)
    evaluations = plan(n, 20, kernel=SPECTRUM, landmarks=s, bits=64, costs=COSTS).evaluations
    assert evaluations["fit"] == kernel.pairs == s * s + n * s
    kernel.pairs = 0
    encoder.transform(strings)
    assert evaluations["encode"] == kernel.pairs == n * s
    kernel.pairs = 0
    encoder.transform(strings[:1])
    assert evaluations["search"] == kernel.pairs


@pytest.mark.parametrize(
    ("n", "R", "by"), [(700, 16, "random"), (100, 100, "random"), (700, 20, "landmarks"), (90, 90, "landmarks")]
)
def test_distances_are_those_of_a_run(n, R, by):
    distance, strings = Counting(EDITS), Objects("strings").sample(n, 20)
    objects = "auto" if by == "random" else Representatives()
    encoder = sm.D2KE(distance, n_components=R, objects=objects, random_state=0)
    encoder.fit(strings).transform(strings)
    evaluations = plan(n, 20, distance=EDITS, **{by: R}, bits=64, costs=COSTS).evaluations
    assert evaluations["fit"] == distance.pairs
    assert evaluations["encode"] == n * R


def test_an_encoder_is_fitted_to_a_part_of_many_objects():
    evaluations = plan(10**9, 100, kernel=SPECTRUM, landmarks=300, costs=COSTS).evaluations
    assert evaluations == {"fit": 300**2 + 20_000 * 300, "encode": 300 * 10**9, "search": 300}


def test_bytes_are_those_of_a_run(tmp_path, quick):
    n, s, bits = 500, 40, 64
    made = plan(n, 20, kernel=SPECTRUM, landmarks=s, bits=bits)
    strings = Objects("strings").sample(n, 20)
    nystroem = sm.Nystroem(SPECTRUM, n_components=s, random_state=0).fit(strings)
    signs = sm.SignRandomProjection(bits, random_state=0).fit(nystroem.transform(strings))
    codes = signs.transform(nystroem.transform(strings))
    assert made.bytes["codes"] == codes.nbytes
    assert made.bytes["input"] == pytest.approx(strings.values.nbytes + strings.offsets.nbytes, rel=0.05)
    model = nystroem.landmarks_.values.nbytes + nystroem.landmarks_.offsets.nbytes
    model += nystroem.components_.nbytes + signs.projection_.nbytes
    assert made.bytes["model"] == pytest.approx(model, rel=0.05)
    store = Store.create(tmp_path / "codes", bits)
    store.append(codes)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "codes").glob("*.npy"))
    assert made.bytes["index"] == on_disk - 2 * 128  # two headers


def test_working_memory_stays_within_the_limit_of_config():
    full = plan(10**9, 100, kernel=SPECTRUM, landmarks=300, bits=1024, costs=COSTS).bytes["working"]
    assert full == 10_000 * (108 + 128 + 8 * 300 + 8 * 3 * 300)
    with sm.config(max_memory="8MiB"):
        less = plan(10**9, 100, kernel=SPECTRUM, landmarks=300, bits=1024, costs=COSTS).bytes["working"]
    assert less == 10_000 * (108 + 128 + 8 * 300) + 2**23


def test_operations_by_hand():
    costs = replace(COSTS, features=1.5)
    flops = plan(10**6, 100, kernel=SPECTRUM, landmarks=300, bits=1024, costs=costs).flops
    an_object = 300 * 2 * 150 + 2 * 300 * 300 + 2 * 300 * 1024
    assert flops["encode"] == 10**6 * an_object
    assert flops["fit"] == 300**2 * 2 * 150 + 9 * 300**3 + 20_000 * 300 * (2 * 150 + 2 * 300)
    assert flops["search"] == an_object + 3 * 10**6 * 1024 / 64
    dtw = plan(10, 100, distance=sm.distances.DTW(), random=5, bits=8, costs=replace(COSTS, random_length=13.0)).flops
    assert dtw["encode"] == 10 * (5 * 100 * 13 * 6 + 2 * 5 * 8)
    edits = plan(10, 100, distance=EDITS, landmarks=5, bits=8, costs=COSTS).flops
    assert edits["encode"] == 10 * (5 * 15 * 100 * 2 + 2 * 5 * 8)
    assert plan(10, 9, distance=sm.distances.MMD(), landmarks=5, costs=COSTS).flops["encode"] is None


# seconds


def test_seconds_by_hand():
    seconds = plan(30_000, 100, kernel=SPECTRUM, landmarks=300, bits=1000, cores=2, costs=COSTS).seconds
    an_object = 2e-6 + 300 * 100 * 1e-9
    assert seconds["encode"] == pytest.approx(30_000 * (an_object + 300 * 1000 * 1e-11) + 3e-3)
    assert seconds["fit"] == pytest.approx(0.5 + 0.027 + 20_000 * an_object + 1e-3)
    assert seconds["index"] == pytest.approx(3e-3 + 30_000 * 1000 * 1e-10)
    assert seconds["search"] == pytest.approx(an_object + 1e-3 + 300 * 1000 * 1e-11 + 1e-3 + 30_000 * 1000 * 1e-11)


def test_encoding_is_linear_in_objects_and_shared_among_cores():
    def made(n, cores):
        return plan(n, 100, kernel=SPECTRUM, landmarks=300, cores=cores, costs=COSTS)

    one = made(10**6, 2)
    assert made(10**9, 2).seconds["encode"] == pytest.approx(1000 * one.seconds["encode"])
    assert made(10**9, 2).evaluations["encode"] == 1000 * one.evaluations["encode"]
    assert made(10**6, 64).seconds["encode"] == pytest.approx(one.seconds["encode"] / 32)
    assert made(10**6, 64).seconds["fit"] == one.seconds["fit"]
    assert "32 times" in made(10**6, 64).assumptions[1]
    assert len(one.assumptions) == 2
    busy = plan(10**6, 100, kernel=SPECTRUM, costs=replace(COSTS, cores=n_threads(), load=3.0))
    assert "a load of 3.0" in " ".join(busy.assumptions)
    assert one.hours == pytest.approx(sum(one.seconds[step] for step in ("fit", "encode", "index")) / 3600)


def test_a_formula_finds_the_constants_that_made_the_times():
    terms = {"calls": 1e-4, "n": 3e-6, "n L": 2e-8, "n s L": 5e-10}
    sizes = [{"calls": 1, "n": n, "L": L, "s": s} for n in (1, 1000) for L in (10, 20) for s in (30, 60)]
    runs = [(size, sum(c * np.prod([size[x] for x in term.split()]) for term, c in terms.items())) for size in sizes]
    found = Formula.fitted((*terms, "n s"), runs)
    assert found.constants == pytest.approx({**terms, "n s": 0}, rel=1e-6, abs=1e-12)
    assert str(Formula({"": 0.5, "n L": 2e-8, "n": 0.0})) == "0.5 + 2e-08 n L"


def test_a_calibration_runs_every_step_and_may_be_taken_again(quick, monkeypatch):
    made = plan(10**6, 40, distance=sm.distances.DTW(), random=64, bits=64)
    assert set(made.formulas) == STEPS
    assert made.costs.measured["L"] == 40
    assert made.costs.measured["s"] == 64
    assert 2 <= made.costs.random_length <= 25
    assert all(seconds > 0 for seconds in made.seconds.values())
    monkeypatch.setattr(planner, "calibrate", None)
    assert plan(10**7, 80, distance=sm.distances.DTW(), random=32, bits=64, costs=made.costs).seconds["encode"] > 0


def test_sizes_that_take_long_are_halved(quick, monkeypatch):
    monkeypatch.setattr(_calibrate, "_LONG", 0.0)
    method = Method(EDITS, is_distance=True)
    assert _calibrate._affordable(method, Objects("strings"), 1000, 300) == (1000 >> 5, 300 >> 4)
    monkeypatch.setattr(_calibrate, "_LONG", 1e9)
    assert _calibrate._affordable(method, Objects("strings"), 1000, 300) == (1000, 300)


def test_any_encoder_may_be_planned(quick):
    made = plan(10**6, 50, encoder=sm.NGramEncoder(n_bits=64), kind="strings", bits=64)
    assert made.evaluations["encode"] == 0
    assert made.size is None
    assert made.seconds["encode"] > 0
    assert made.method == "NGramEncoder"
    made = plan(10**6, 8, encoder=sm.SignRandomProjection(64), kind="vectors", costs=COSTS)
    assert set(made.flops.values()) == {None}


# objects


def test_every_kernel_and_distance_has_one_kind():
    kinds = {"Spectrum": "strings", "WeisfeilerLehman": "graphs", "HypersphericalHeat": "vectors", "Optical": "vectors"}
    for name, kind in kinds.items():
        assert kind_of(getattr(sm.kernels, name)()) == kind
    assert kind_of(sm.kernels.Normalized(sm.kernels.DistanceRBF(sm.distances.DTW()))) == "series"
    assert kind_of(sm.kernels.Sum([SPECTRUM, sm.kernels.GappyKmers()])) == "strings"
    assert kind_of(sm.distances.ModifiedHausdorff()) == "sets"
    assert kind_of(lambda X, Y: X) is None
    assert kind_of(Kernel()) is None  # takes all objects


def test_drawn_objects_are_as_described():
    strings = Objects("strings", letters=3).sample(50, 20)
    assert n_objects(strings) == 50
    assert len(np.unique(strings.values)) == 3
    assert set(np.diff(strings.offsets)) == {20}
    for letters in (63, 64, 192, 10**10):
        written = "".join(Objects("strings", letters=letters).sample(50, 2000).tolist())
        assert 62 < len(set(written)) <= letters
        assert written.isascii() == (letters == 63)
    graphs = Objects("graphs", edges=32 / 30, letters=5).sample(1000, 30)
    assert isinstance(graphs, GraphBatch)
    assert graphs.n_nodes == 30_000
    assert len(graphs.indices) / 2 / 1000 == pytest.approx(32, rel=0.03)  # a few edges are drawn twice
    assert len(np.unique(graphs.node_labels)) == 5
    assert Objects("sets", channels=3).sample(5, 7).values.shape == (35, 3)
    assert Objects("vectors").sample(5, 7).shape == (5, 7)
    own = Objects("strings", own=strings[:3]).sample(7, 99)
    assert n_objects(own) == 7
    assert set(own.tolist()) == set(strings[:3].tolist())


# bad input


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"objects": 0}, "objects must be an integer >= 1, got 0"),
        ({"objects": 1.5}, "objects must be an integer >= 1, got 1.5"),
        ({"length": None}, "length must be a positive number, got None; it is the mean number of letters"),
        ({"length": -3}, "length must be a positive number, got -3"),
        ({"kernel": None}, "give exactly one of kernel, distance and encoder"),
        ({"distance": EDITS}, "give exactly one of kernel, distance and encoder"),
        ({"random": 5}, "random needs a distance"),
        ({"bits": 12}, "n_bits must be a multiple of 8"),
        ({"landmarks": 0}, "landmarks must be an integer >= 1"),
        ({"cores": 0}, "cores must be an integer >= 1"),
        ({"cores": 1}, "cores must be at least 2, as in costs, got 1; leave costs out to measure"),
        ({"kind": "trees"}, "kind must be 'strings', 'graphs', 'series', 'sets' or 'vectors', got 'trees'"),
        ({"kind": "graphs"}, "compares strings, but kind is 'graphs'"),
        ({"edges": 5}, "edges is for graphs, but the objects are strings"),
        ({"kernel": lambda X, Y: X}, "kind is missing, and the comparison takes several"),
        ({"letters": 0}, "letters must be an integer >= 1"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    given = {"objects": 1000, "length": 10, "kernel": SPECTRUM, "costs": COSTS} | arguments
    with pytest.raises(ValueError) as error:
        plan(**given)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_distance_is_no_kernel():
    with pytest.raises(TypeError, match="is a distance, expected a kernel"):
        plan(1000, 10, kernel=EDITS, costs=COSTS)


# the command


def test_command_prints_a_table(quick):
    how = [
        "--length",
        "30",
        "--edges",
        "32",
        "--kernel",
        "WeisfeilerLehman(n_iter=2)",
        "--landmarks",
        "20",
        "--bits",
        "64",
    ]
    result = runner.invoke(app, ["plan", "--objects", "1e8", *how, "--cores", "64"])
    assert result.exit_code == 0, result.output
    for words in ("100,000,000 graphs of length 30", "2,000,000,000", "800 MB", "time on 64 cores", "one search"):
        assert words in result.output
    assert "reading the input is not counted" in result.output


def test_command_prints_json(quick, tmp_path):
    fasta = tmp_path / "reads.fasta"
    fasta.write_text("".join(f">r{i}\n{'ACGT' * 10}\n" for i in range(60)))
    how = ["--distance", "Levenshtein()", "--random", "16", "--bits", "64", "--json"]
    result = runner.invoke(app, ["plan", "--data", str(fasta), *how])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["objects"] == 60
    assert found["length"] == 40
    assert found["kind"] == "strings"
    assert found["size"] == 16
    assert found["bits"] == 64
    assert found["evaluations"] == {"fit": 60 * 64 + 60 * 16, "encode": 960, "search": 16}
    assert set(found["seconds"]) == {"fit", "encode", "index", "search"}
    assert set(found["formulas"]) == STEPS
    assert set(found["bytes"]) == {"input", "working", "model", "codes", "index"}
    assert set(found["calibration"]) == {"seconds", "cores", "largest", "load"}
    more = runner.invoke(app, ["plan", "--data", str(fasta), "--objects", "1e6", *how])
    assert json.loads(more.output)["objects"] == 10**6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give one of --kernel and --distance"),
        (["--kernel", "Spectrum()", "--distance", "DTW()"], "give one of --kernel and --distance"),
        (["--kernel", "Spectrum()", "--objects", "5"], "give the number of objects and their length"),
        (["--kernel", "Spectrum()", "--data", "x.fasta", "--length", "5"], "similia measures the objects of --data"),
        (["--kernel", "Trees()", "--objects", "5", "--length", "5"], "no kernel is called 'Trees'"),
    ],
)
def test_command_says_what_is_missing(arguments, sentence):
    result = runner.invoke(app, ["plan", *arguments])
    assert result.exit_code != 0
    assert sentence in str(result.exception)


def test_numbers_are_printed_with_units():
    assert [in_units(t, TIMES) for t in (0.0021, 59, 61, 7200, 3e5, 1e9)] == [
        "2.1 ms",
        "59 s",
        "1 min",
        "2 h",
        "3.5 days",
        "32 years",
    ]
    assert [in_units(b, SIZES) for b in (0, 999, 1.28e11, 2e12)] == ["0 B", "999 B", "128 GB", "2 TB"]


def shared_letters(X, Y=None):
    return np.array([[float(len(set(x) & set(y))) for y in (X if Y is None else Y)] for x in X])


RING = (np.array([[0, 1, 2], [1, 2, 0]]), 3)
SAMPLES = {
    "strings": ({"kernel": sm.kernels.Spectrum()}, ["ACG", "ACGTA"], 4.0),
    "strings, own kernel": ({"kernel": shared_letters}, ["ACG", "ACGTA"], 4.0),
    "strings, own distance": ({"distance": sm.distances.FromFunction(max)}, ("A", "CCC"), 2.0),
    "column": ({"kernel": sm.kernels.Spectrum()}, pd.Series(["ACG", "ACGTA"]), 4.0),
    "column, own kernel": ({"kernel": shared_letters}, pd.Series(["ACG", "ACGTA"], index=[5, 6]), 4.0),
    "graphs": ({"kernel": sm.kernels.WeisfeilerLehman()}, [RING, RING], 3.0),
    "series": ({"distance": sm.distances.DTW()}, [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]], 3.0),
    "sets": ({"distance": sm.distances.Hausdorff()}, [[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], 2.0),
    "vectors": ({"kernel": sm.kernels.Cosine()}, [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], 3.0),
    "array of series": ({"encoder": sm.SequenceEncoder(n_bits=64), "kind": "series"}, np.zeros((2, 7)), 7.0),
    "graphs, edges": ({"kernel": sm.kernels.WeisfeilerLehman(), "edges": 6.0}, [RING, RING], 3.0),
    "encoder of strings": ({"encoder": sm.NGramEncoder(n_bits=64)}, ["ACG", "ACGTA"], 4.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_may_be_any_collection(name, monkeypatch):
    how, sample, length = SAMPLES[name]
    seen = []

    def calibrated(method, like, *, length, **_):
        seen.append((like.own, length))
        raise NotImplementedError

    monkeypatch.setattr("similia.planning.forecasts.calibrate", calibrated)
    with pytest.raises(NotImplementedError):
        plan(1000, sample=sample, landmarks=2, **how)
    [(own, rounded)] = seen
    assert rounded == length
    assert n_objects(own) == 2


def test_a_distance_of_ones_own_is_timed_on_a_list():
    distance = sm.distances.FromFunction(lambda a, b: float(a != b))
    assert sum(plan(10_000, sample=["ACGT" * 5, "ACG"] * 25, landmarks=4, distance=distance).seconds.values()) > 0


@pytest.mark.parametrize("sample", [[], [3], "ACGT", [None]])
def test_a_sample_that_is_none_is_refused(sample):
    with pytest.raises((TypeError, ValueError), match=r"empty|expected|missing"):
        plan(1000, sample=sample, kernel=shared_letters, landmarks=2)
