"""Exported C: the same codes and labels as Python on every compiler at hand, error codes, and files that are safe."""

import platform
import re
import shutil
import subprocess
import warnings
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import similia as sm
from devices.compiled import COMPILERS, IN_FLOATS, MAKERS, STRICT, answers, built, example, needed
from similia.devices.stages import Table, hadamard, literal

pytestmark = pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return a function that exports an example once; callers read the C files or add programs, and change nothing."""

    @cache
    def export(name, numbers="whole"):
        model, X = example(name)
        folder = tmp_path_factory.mktemp("exported")
        return sm.export_c(model, folder, X, numbers=numbers), folder

    return export


def random_objects(small, n, seed=1):
    """Return arguments of the C function, drawn over all that it accepts, and the same objects as Python reads them."""
    random, read = np.random.default_rng(seed), small.input
    if hasattr(read, "letters"):
        lengths = random.integers(0, read.letters.longest + 1, n)
        drawn = [bytes(random.choice(read.letters.known, k)) for k in lengths]
        return sm.objects.StringBatch.from_list([letters.decode("latin-1") for letters in drawn])
    if read.kind in ("warped", "sequence"):
        lengths = random.integers(1, read.longest + 1, n)
        offsets = np.append(0, np.cumsum(lengths))
        values = random.integers(-(2**15) + 1, 2**15, (offsets[-1], read.n_channels)).astype(float)
        return sm.objects.SeriesBatch(values, offsets)
    if read.kind == "subtrees":
        sizes = random.integers(0, read.most_nodes + 1, n)
        offsets = np.append(0, np.cumsum(sizes))
        graphs = [random.integers(0, max(size, 1), (2, min(read.most_arcs, 3 * size))) for size in sizes]
        arcs = np.concatenate([arc + start for arc, start in zip(graphs, offsets[:-1], strict=True)], axis=1)
        labels = {"node_labels": random.integers(-(2**62), 2**62, offsets[-1])} if read.node_labels else {}
        edges = {"edge_labels": arcs.sum(axis=0) % 5} if read.edge_labels else {}
        return sm.objects.GraphBatch.from_arrays(offsets, arcs, repeated="first", **labels, **edges)
    if small.in_floats:
        powers = random.normal(size=(n, read.n_features)) * random.choice([0, 6], (n, 1))  # sums of both sizes round
        numbers = random.normal(size=powers.shape) * random.choice([0, 0.1, 1], (n, 1)) * np.exp(powers)
        return numbers.astype(np.float32)
    return random.integers(-(2**15) + 1, 2**15, (n, len(read.units.steps)))


def assert_equal(program, small, objects):
    codes = small.codes(objects)
    labels = np.argmax(small.prototypes(codes), axis=1)
    found = answers(program, small, small.input.arguments(objects))
    assert [status for status, _, _ in found] == [0] * len(codes)
    assert [code for _, _, code in found] == [code.tobytes() for code in codes]
    assert [label for _, label, _ in found] == labels.tolist()


def with_compilers(names, everywhere):
    """Return (name, compiler) for gcc with each model and for each compiler with some; other pairs are long."""
    return [
        pytest.param(name, compiler, marks=[] if compiler == "gcc" or name in everywhere else pytest.mark.long)
        for name in names
        for compiler in COMPILERS
    ]


@pytest.mark.parametrize(
    ("name", "compiler"), with_compilers(MAKERS, ["spectrum, both strands", "graphs", "DTW, share"])
)
def test_codes_and_labels_are_those_of_python(name, compiler, exported):
    needed(compiler)
    small, folder = exported(name)
    program = built(compiler, folder)
    own = subprocess.run(program, capture_output=True, text=True)
    assert own.returncode == 0, own.stdout
    assert own.stdout == "0 of 20 objects differ\n"
    assert_equal(program, small, small.input.read(example(name)[1]))
    assert_equal(program, small, random_objects(small, 200))


# ---- float32


@pytest.mark.parametrize(("name", "compiler"), with_compilers(IN_FLOATS, ["graphs", "edit distances"]))
def test_codes_and_labels_in_float32_are_those_of_python(name, compiler, exported):
    needed(compiler)
    small, folder = exported(name, "float")
    program = built(compiler, folder)
    assert subprocess.run(program, capture_output=True, text=True).stdout == "0 of 20 objects differ\n"
    assert_equal(program, small, small.input.read(example(name)[1]))
    assert_equal(program, small, random_objects(small, 200))


INSIDE = """#include "model.c"
#include <stdio.h>
#include <string.h>
static void show(float value) { uint32_t bits; memcpy(&bits, &value, 4); printf("%u ", bits); }
int main(void) { float number; BODY return 0; }
"""


def inside(folder, body, text, *command):
    """Return the numbers of float32 that `body` shows, compiled together with the model."""
    (folder / "inside.c").write_text(INSIDE.replace("BODY", body))
    subprocess.run([*command, "-std=c99", "inside.c", "-o", "inside"], cwd=folder, check=True)
    done = subprocess.run([folder / "inside"], input=text, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), np.uint32).view(np.float32)


@pytest.mark.parametrize("name", ["Gaussian", "edit distances"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_similarities_and_coordinates_have_the_bits_of_python(name, compiler, tmp_path):
    command, _ = needed(compiler)
    model, X = example(name)
    small = sm.export_c(model, tmp_path, X, numbers="float")
    random = np.random.default_rng(0)
    q = np.concatenate([[0, 1e-30, 86, 3e38], random.random(2000) * 100 / small.input.curve.gamma]).astype(np.float32)
    text = " ".join(map(str, q))
    found = inside(tmp_path, 'while (scanf("%f", &number) == 1) show(decayed(number));', text, *command)
    expected = replace(small.input.curve, square=False)(q)
    assert found.tobytes() == expected.tobytes()
    k = random.random(small.input.width).astype(np.float32)
    body = """static float k[N_NUMBERS], z[N_COORDINATES];
      for (unsigned j = 0; j < N_NUMBERS; j++) if (scanf("%f", k + j) != 1) return 1;
      coordinates(k, z); for (unsigned i = 0; i < N_COORDINATES; i++) show(z[i]);"""
    assert inside(tmp_path, body, " ".join(map(str, k)), *command).tobytes() == small.linear(k[None])[0].tobytes()


@pytest.mark.parametrize("name", ["vectors", "vectors, hadamard"])
def test_sums_near_zero_have_the_signs_of_python(name, tmp_path):
    command, _ = needed("gcc")
    model, X = example(name)
    small = sm.export_c(model, tmp_path, X, numbers="float")
    random, r = np.random.default_rng(0), len(small.linear.A)
    if name == "vectors":
        P = small.signs.P[:40].astype(float)
    else:
        P = np.pad(np.eye(r), ((0, 0), (0, small.signs.flips.shape[2] - r)))
        for flip in small.signs.flips[0]:
            P = hadamard(np.where(flip, -P, P))
        P = P.T[:40]
    z = random.normal(size=(40, r))
    z -= ((z * P).sum(axis=1) / (P * P).sum(axis=1))[:, None] * P  # bit i of code i depends on how its sum is rounded
    z = z.astype(np.float32)
    body = """static float z[N_COORDINATES]; static uint8_t code[MODEL_CODE_BYTES];
      for (int row = 0; row < 40; row++) {
        for (unsigned j = 0; j < N_COORDINATES; j++) if (scanf("%f", &number) != 1) return 1; else z[j] = number;
        signs(z, code); for (unsigned i = 0; i < MODEL_CODE_BYTES; i++) show(code[i]); }"""
    found = inside(tmp_path, body, " ".join(map(str, z.ravel())), *command)
    assert found.astype(np.uint8).tolist() == small.signs(z).ravel().tolist()


@pytest.mark.parametrize(
    "command",
    [["riscv64-linux-gnu-gcc", "-std=gnu99"], ["clang", "--target=aarch64-none-elf", "-ffreestanding"]],
    ids=["gcc", "clang"],
)
def test_no_product_and_sum_become_one_operation(command, tmp_path):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    model, X = example("Gaussian")
    sm.export_c(model, tmp_path, X, numbers="float")
    source = (tmp_path / "model.c").read_text()
    for pragmas in (True, False):  # without them, these compilers do it
        text = source if pragmas else source.replace("#pragma", "// ")
        (tmp_path / "model.c").write_text(text)
        subprocess.run([*command, "-O2", "-S", "model.c", "-o", "model.s"], cwd=tmp_path, check=True)
        assert ("fmadd" in (tmp_path / "model.s").read_text()) == (not pragmas)


@pytest.mark.parametrize(
    ("option", "message"),
    [("-ffast-math", "without -ffast-math"), ("-mfpmath=387", "compile with -msse2 -mfpmath=sse")],
)
def test_options_that_change_float32_are_refused(option, message, tmp_path):
    if platform.machine() != "x86_64":
        pytest.skip("the options are those of x86")
    command, _ = needed("gcc")
    model, X = example("Gaussian")
    sm.export_c(model, tmp_path, X, numbers="float")
    done = subprocess.run([*command, "-std=c99", option, "-c", "model.c"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert message in done.stderr


def test_of_equal_scores_the_first_class_wins(tmp_path):
    model, X = example("vectors")
    small = sm.quantise(model, X)
    same = replace(small.prototypes, R=small.prototypes.R[[0, 1, 1]], m=small.prototypes.m[[0, 1, 1]],
                   c=small.prototypes.c[[0, 1, 1]])  # fmt: skip
    small = sm.export_c(replace(small, prototypes=same), tmp_path, X)
    assert set(small.predict(X).tolist()) == {0, 1}
    assert_equal(built("gcc", tmp_path), small, small.input.read(X))


def test_the_test_program_notices_a_changed_table(tmp_path):
    model, X = example("vectors, hadamard")
    sm.export_c(model, tmp_path, X)
    source = (tmp_path / "model.c").read_text()
    start = source.index("factors[300] = {") + len("factors[300] = {\n")
    (tmp_path / "model.c").write_text(source[:start] + "-" + source[start:])
    own = subprocess.run(built("gcc", tmp_path), capture_output=True, text=True)
    assert own.returncode == 1
    assert "object 0 differs from Python" in own.stdout


def test_codes_only_have_no_labels(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = sm.Pipeline([("signs", sm.SignRandomProjection(80, random_state=0))]).fit(X)
    small = sm.export_c(model, tmp_path, X)
    assert "predict" not in (tmp_path / "model.h").read_text()
    assert "written: 78 bytes" in (tmp_path / "model.txt").read_text()
    found = answers(built("gcc, checked", tmp_path), small, small.input.arguments(small.input.read(X)))
    assert [(status, label, code) for status, label, code in found] == [
        (0, -1, code.tobytes()) for code in small.transform(X)
    ]


def test_numbers_midway_between_levels_have_the_level_of_the_encoder(tmp_path):
    encoder = sm.LevelEncoder(6, 256, random_state=0).fit(np.arange(11.0))  # every odd number is midway
    small = sm.export_c(sm.Pipeline([("encoder", encoder)]), tmp_path, np.arange(11.0))
    x = np.arange(-3, 15)[:, None]
    found = answers(built("gcc, checked", tmp_path), small, small.input.arguments(x))
    assert [code for _, _, code in found] == [code.tobytes() for code in encoder.transform(x)]


def test_without_objects_the_landmarks_are_the_tests(tmp_path):
    for name, numbers in (
        ("gappy k-mers", "whole"), ("graphs", "whole"), ("edit distances", "whole"), ("DTW", "whole"),
        ("Gaussian", "whole"), ("Gaussian", "float"), ("D2KE, edit distances", "float"),
    ):  # fmt: skip
        model, _ = example(name)
        sm.export_c(model, tmp_path / name, numbers=numbers, overwrite=True)
        assert subprocess.run(built("gcc", tmp_path / name), capture_output=True, text=True).stdout == (
            "0 of 20 objects differ\n"
        )


def test_landmarks_beyond_the_bounds_are_no_tests(tmp_path):
    words = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "GCGC", "CCG"]
    model = sm.recipes.nyshd(sm.kernels.Spectrum(2), 6, 64, random_state=0).fit(words, [0, 0, 1, 1, 1, 1])
    small = sm.quantise(model, words[3:], max_length=5)
    with pytest.raises(ValueError, match=r"landmarks\[\d\] has \d letters, expected at most 5; give X, whose first"):
        sm.export_c(small, tmp_path)
    sm.export_c(small, tmp_path, words[3:])


def test_no_library_is_called_and_nothing_is_written_to_the_heap(exported):
    for name in MAKERS:
        _, folder = exported(name)
        source = (folder / "model.c").read_text() + (folder / "model.h").read_text()
        assert {line for line in source.splitlines() if line.startswith("#include")} == {
            "#include <stdint.h>", '#include "model.h"'
        }  # fmt: skip
        for word in ("float", "double", "malloc", "goto"):
            assert word not in source, (name, word)
        if name in IN_FLOATS:
            _, folder = exported(name, "float")
            source = (folder / "model.c").read_text() + (folder / "model.h").read_text()
            assert re.findall("#include.*", source) == ['#include "model.h"', "#include <stdint.h>"]
            for word in ("double", "malloc", "goto"):
                assert word not in source, (name, word)


# ---- bad input


def status_of(folder, body, compiler="gcc, checked"):
    """Compile a program with `body` in its main function; return the numbers that it prints."""
    main = '#include <stdio.h>\n#include <string.h>\n#include "model.h"\nint main(void) {\n' + body + "return 0; }\n"
    done = subprocess.run(built(compiler, folder, main=main), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return list(map(int, done.stdout.split()))


def test_strings_beyond_the_bounds_give_an_error_code(tmp_path):
    model, X = example("gappy k-mers")
    small = sm.export_c(model, tmp_path, X)
    longest = small.input.letters.longest
    body = f"""
      uint8_t code[MODEL_CODE_BYTES]; uint8_t letters[{longest + 1}]; int32_t label = 7;
      memset(letters, 'A', sizeof letters); memset(code, 9, sizeof code);
      printf("%d ", model_transform(0, 1, code));
      printf("%d ", model_transform(letters, 1, 0));
      printf("%d ", model_predict(letters, 1, 0));
      printf("%d ", model_classify(0, &label));
      printf("%d ", model_transform(letters, {longest + 1}, code));
      printf("%d ", model_transform(letters, 4294967295u, code));
      letters[3] = 'N';
      printf("%d ", model_transform(letters, 4, code));
      printf("%d ", model_predict(letters, 4, &label));
      printf("%d ", label);
      printf("%d ", code[0]);
      printf("%d ", model_transform(letters, 3, code));
      printf("%d ", model_predict(letters, 0, &label));
      printf("%d ", label >= 0 && label < MODEL_CLASSES);
    """
    assert status_of(tmp_path, body) == [1, 1, 1, 1, 2, 2, 3, 3, 7, 9, 0, 0, 1]


def test_series_and_vectors_beyond_the_bounds_give_an_error_code(tmp_path):
    model, X = example("DTW, window")
    small = sm.export_c(model, tmp_path / "s", X)
    body = f"""
      static int16_t values[2 * {small.input.longest + 1}]; uint8_t code[MODEL_CODE_BYTES];
      printf("%d %d ", model_transform(values, 0, code), model_transform(values, 1, code));
      printf("%d ", model_transform(values, {small.input.longest}, code));
      printf("%d ", model_transform(values, {small.input.longest + 1}, code));
      printf("%d ", model_transform(0, 1, code));
    """
    assert status_of(tmp_path / "s", body) == [2, 0, 0, 2, 1]
    sm.export_c(*example("vectors")[:1], tmp_path / "v", example("vectors")[1])
    body = """
      int16_t x[MODEL_FEATURES]; uint8_t code[MODEL_CODE_BYTES];
      for (int i = 0; i < MODEL_FEATURES; i++) x[i] = -32768;
      printf("%d %d %d", model_transform(x, code), model_transform(0, code), model_transform(x, 0));
    """
    assert status_of(tmp_path / "v", body) == [0, 1, 1]


def test_graphs_beyond_the_bounds_give_an_error_code(tmp_path):
    model, X = example("graphs")
    small = sm.export_c(model, tmp_path, X)
    nodes, arcs = small.input.most_nodes, small.input.most_arcs
    body = f"""
      static uint32_t first[{nodes + 2}], to[{arcs + 1}]; static int64_t labels[{nodes + 1}], edges[{arcs + 1}];
      uint8_t code[MODEL_CODE_BYTES];
      model_graph g = {{2, first, to, labels, edges}};
      printf("%d ", model_transform(&g, code));
      printf("%d ", model_transform(0, code));
      first[1] = 1; first[2] = 2; to[0] = 1; to[1] = 0;
      printf("%d ", model_transform(&g, code));
      to[1] = 2; printf("%d ", model_transform(&g, code)); to[1] = 0;
      first[1] = 3; printf("%d ", model_transform(&g, code)); first[1] = 1;
      first[0] = 1; printf("%d ", model_transform(&g, code)); first[0] = 0;
      first[2] = {arcs + 1}; printf("%d ", model_transform(&g, code)); first[2] = 2;
      g.labels = 0; printf("%d ", model_transform(&g, code)); g.labels = labels;
      g.edge_labels = 0; printf("%d ", model_transform(&g, code)); g.edge_labels = edges;
      g.target = 0; printf("%d ", model_transform(&g, code)); g.target = to;
      g.first_arc = 0; printf("%d ", model_transform(&g, code)); g.first_arc = first;
      g.n_nodes = {nodes + 1}; printf("%d ", model_transform(&g, code));
      g.n_nodes = 4294967295u; printf("%d ", model_transform(&g, code));
      g.n_nodes = 0; printf("%d ", model_transform(&g, code));
    """
    assert status_of(tmp_path, body) == [0, 1, 0, 4, 4, 4, 2, 1, 1, 1, 1, 2, 2, 0]


FUZZ = """
  static uint8_t bytes[1 << 16], code[MODEL_CODE_BYTES];
  uint64_t state = 88172645463325252u; long wrong = 0, good = 0;
  for (long run = 0; run < %d; run++) {
    int32_t label = -5;
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    uint32_t length = (uint32_t)(state >> 40) %% (2 * MOST + 2);
    for (uint32_t i = 0; i < 2 * length + 512; i++) {
      state ^= state << 13; state ^= state >> 7; state ^= state << 17;
      bytes[i] = (uint8_t)(state >> 33);
      if (ALPHABET[0] && run %% 4) bytes[i] = (uint8_t)ALPHABET[bytes[i] %% (sizeof ALPHABET - 1)];
    }
    int status = model_transform(INPUT, code), other = model_predict(INPUT, &label);
    wrong += status != other || (status == 0) != (label >= 0 && label < MODEL_CLASSES) || (status && label != -5);
    good += status == 0;
  }
  printf("%%ld %%d ", wrong, good > 1000);
"""


@pytest.mark.parametrize("name", ["spectrum, both strands", "edit distances", "n-grams", "DTW, share", "vectors"])
def test_random_bytes_are_answered_or_refused(name, tmp_path):
    model, X = example(name)
    small = sm.export_c(model, tmp_path, X)
    kind = "strings" if hasattr(small.input, "letters") else small.input.kind
    given = {
        "strings": "bytes, length",
        "warped": "(int16_t *)(void *)bytes, length",
        "vector": "(int16_t *)(void *)bytes",
    }
    most = {"strings": "MODEL_MAX_LENGTH", "warped": "MODEL_MAX_LENGTH", "vector": "MODEL_FEATURES"}
    alphabet = "ACGT" if kind == "strings" else ""
    body = f'#define INPUT {given[kind]}\n#define MOST {most[kind]}\n#define ALPHABET "{alphabet}"\n' + FUZZ % 20_000
    assert status_of(tmp_path, body) == [0, 1]


@pytest.mark.parametrize("name", ["Gaussian", "vectors", "vectors, hadamard"])
def test_random_bytes_as_float32_are_answered(name, tmp_path):  # nan and infinity are among them
    model, X = example(name)
    sm.export_c(model, tmp_path, X, numbers="float")
    body = '#define INPUT (float *)(void *)bytes\n#define MOST MODEL_FEATURES\n#define ALPHABET ""\n'
    assert status_of(tmp_path, body + FUZZ % 2000) == [0, 1]


# ---- files


def test_nothing_is_overwritten_or_half_written(tmp_path):
    model, X = example("vectors")
    sm.export_c(model, tmp_path, X, name="a")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "b_test.c").write_text("mine")
    (tmp_path / "a.txt").unlink()
    with pytest.raises(FileExistsError, match=r"b_test\.c exists; give another folder or name, or overwrite"):
        sm.export_c(model, tmp_path, X, name="b")
    assert not (tmp_path / "b.c").exists()
    sm.export_c(model, tmp_path, X, name="a", overwrite=True)
    assert (tmp_path / "a.c").read_bytes() == before["a.c"]


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "ä", "../a", "stdint", 5])
def test_names_are_those_of_c(name, tmp_path):
    with pytest.raises(ValueError, match="name must be a letter followed by letters, digits and under"):
        sm.export_c(*example("vectors")[:1], tmp_path / "new", example("vectors")[1], name=name)
    assert not (tmp_path / "new").exists()


def test_names_and_labels_clash_with_nothing_in_c(tmp_path):
    command, _ = needed("gcc")
    sm.export_c(*example("graphs")[:1], tmp_path, name="check")
    model = deepcopy(example("vectors")[0])
    model.steps[-1][1].classes_ = np.array(["a/*b", "*/", "/*/"])
    sm.export_c(model, tmp_path, example("vectors")[1])
    for file in ("check.c", "model.c"):
        subprocess.run([*command, *STRICT, "-fsyntax-only", file], cwd=tmp_path, check=True)


def test_a_label_that_no_bytes_stand_for_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    steps = [("signs", sm.SignRandomProjection(64, random_state=0)), ("c", sm.HDClassifier())]
    model = sm.Pipeline(steps).fit(X, ["a", "\udcff"] * 10)
    with pytest.raises(ValueError, match=r"the label .* holds a surrogate"):
        sm.export_c(model, tmp_path / "new", X)
    assert not (tmp_path / "new").exists()


def test_the_readme_adds_up(exported):
    for name, numbers in [*((name, "whole") for name in MAKERS), *((name, "float") for name in IN_FLOATS)]:
        small, folder = exported(name, numbers)
        text = (folder / "model.txt").read_text()
        tables = text.split(" bytes:\n")[1].split("\n\n")[0].splitlines()
        assert sum(int(line.split()[0]) for line in tables) == small.n_bytes
        assert f"Constants, {small.n_bytes} bytes" in text


def test_sizes_are_those_of_the_compiler(tmp_path):
    whole = ("spectrum, hadamard", "graphs", "DTW", "levels")
    floats = ("spectrum, hadamard", "graphs", "weighted degree", "edit distances")
    for name, numbers in [*((name, "whole") for name in whole), *((name, "float") for name in floats)]:
        model, X = example(name)
        small = sm.export_c(model, tmp_path / name, X, numbers=numbers, overwrite=True)
        command, _ = needed("gcc")
        subprocess.run(
            [*command[:1], "-std=c99", "-Os", "-c", "model.c", "-o", "model.o"], cwd=tmp_path / name, check=True
        )
        sizes = subprocess.run(["size", "-A", "model.o"], cwd=tmp_path / name, capture_output=True, text=True).stdout
        found = {line.split()[0]: int(line.split()[1]) for line in sizes.splitlines()[2:] if len(line.split()) == 3}
        constants = sum(size for section, size in found.items() if section.startswith(".rodata"))
        assert small.n_bytes <= constants <= small.n_bytes + 600  # alignment and labels
        ram = int((tmp_path / name / "model.txt").read_text().split("that is written: ")[1].split()[0])
        written = found.get(".bss", 0) + found.get(".data", 0)
        assert ram <= written <= ram + 200


def test_the_header_says_how_numbers_become_whole(tmp_path):
    model, X = example("vectors")
    small = sm.export_c(model, tmp_path / "v", X)
    header = (tmp_path / "v" / "model.h").read_text()
    exponents = header.split("MODEL_STEP_EXPONENTS {")[1].split("}")[0].split(",")
    np.testing.assert_array_equal(2.0 ** np.array(exponents, float), small.input.units.steps)
    sm.export_c(example("DTW")[0], tmp_path / "s", example("DTW")[1])
    assert "#define MODEL_STEP_EXPONENT -" in (tmp_path / "s" / "model.h").read_text()
    assert "of the labels of 90 objects are equal" in (tmp_path / "v" / "model.txt").read_text()


def test_a_model_that_whole_numbers_ruin_is_warned_of(tmp_path):
    random = np.random.default_rng(0)
    X = [np.cumsum(random.normal(size=20)) for _ in range(40)]
    kernel = sm.kernels.DistanceRBF(sm.distances.DTW(), 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.recipes.nyshd(kernel, 6, 256, random_state=0).fit(X, [x[-1] > 0 for x in X])
    with pytest.warns(UserWarning, match="in whole numbers, .* of the labels of 40 objects are equal: simi"):
        sm.export_c(model, tmp_path, X)


def test_literals():
    assert literal(-(2**63), "int64_t") == "INT64_MIN"
    assert literal(-5, "int64_t") == "INT64_C(-5)"
    assert literal(2**32 - 1, "uint32_t") == "UINT32_C(4294967295)"
    assert [literal(np.float32(x), "float") for x in (0, -0.5, 1.5, 10, 2**-126)] == [
        "0x0p+0F", "-0x1p-1F", "0x1.8p+0F", "0x1.4p+3F", "0x1p-126F"
    ]  # fmt: skip
    assert Table("a", "", "int16_t", np.zeros((3, 4))).n_bytes == 24
