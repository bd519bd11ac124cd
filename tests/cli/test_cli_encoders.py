"""What the commands make bits with if not told, by the objects and what they allow; the recall they print."""

import re
import shutil

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.cli.encoders import default_encoder, default_rerank, kmer_length
from similia.cli.inputs import Objects
from similia.search.on_disk import SearchFolder

runner = CliRunner()


def fasta(path, strings):
    path.write_text("".join(f">{i}\n{string}\n" for i, string in enumerate(strings)))
    return path


def invoke(*arguments):
    result = runner.invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result


def encoder_of(kind, objects, **options):
    found = Objects("made", kind, objects)
    return default_encoder(
        found, **{"kernel": None, "distance": None, "bits": 64, "landmarks": 32, "seed": 0, **options}
    )


def near_strings(letters, n=400, length=60, seed=0):
    """Strings of which each is like a few others."""
    rng = np.random.default_rng(seed)
    roots = rng.choice(list(letters), (n // 5, length))
    rows = np.repeat(roots, 5, axis=0)
    where = rng.random(rows.shape) < 0.1
    rows[where] = rng.choice(list(letters), where.sum())
    return sm.objects.as_strings(["".join(row) for row in rows])


@pytest.mark.parametrize(("n_letters", "k"), [(2, 5), (4, 5), (5, 4), (6, 4), (8, 3), (12, 3), (20, 2), (26, 2)])
def test_length_of_kmers(n_letters, k):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n_letters]
    assert kmer_length(near_strings(letters)) == k
    assert kmer_length(sm.objects.as_strings([letters * 50, "zé" * (n_letters // 8), letters * 50])) == k
    assert kmer_length(near_strings(letters, length=7)) == 2
    assert kmer_length(near_strings(letters, length=2)) == 1


@pytest.mark.parametrize("distance", [None, "Levenshtein()", "DamerauLevenshtein()"])
def test_strings_compared_by_edits_are_counts_of_kmers(distance):
    X = near_strings("ACGT")
    spec, encoder = encoder_of("strings", X, distance=distance)
    assert spec == "5-mers, PCA and ITQ"
    assert [type(step) for _, step in encoder.steps] == [sm.KernelFeatures, sm.GeneralizedNystroemPCA, sm.ITQ]
    assert repr(encoder[0].kernel) == "Spectrum(k=5, normalize=True)"
    assert encoder[0].n_features == 4096
    search = sm.SimilaritySearch(encoder, rerank=sm.distances.Levenshtein(), n_candidates=40).fit(X)
    assert search.recall(X[:100], 5).recall > 0.95
    spec, encoder = encoder_of("strings", X[:60], distance=distance)  # too few for 64 components
    assert spec == "kernel Spectrum(k=5, normalize=True)"
    assert [type(step) for _, step in encoder.steps] == [sm.Nystroem, sm.SignRandomProjection]
    assert encoder.fit(X[:60]).transform(X[:60]).shape == (60, 8)
    assert encoder_of("strings", near_strings("AB"))[0] == "kernel Spectrum(k=5, normalize=True)"  # 32 5-mers


def test_other_distances_are_to_objects_of_the_data():
    rng = np.random.default_rng(0)
    waves = sm.objects.as_series([rng.standard_normal(12).cumsum() for _ in range(50)])
    points = sm.objects.as_sets([rng.standard_normal((5, 2)) for _ in range(50)])
    for kind, X, distance, said in [
        ("series", waves, None, "distance DTW()"),
        ("sets", points, None, "distance ModifiedHausdorff()"),
        ("strings", near_strings("ACGT")[:50], "JaroWinkler()", "distance JaroWinkler()"),
    ]:
        spec, encoder = encoder_of(kind, X, distance=distance)
        assert spec == said
        assert [type(step) for _, step in encoder.steps] == [sm.D2KE, StandardScaler, sm.SignRandomProjection]
        assert not encoder[1].with_std
        encoder.fit(X)
        assert len(encoder[0].representative_indices_) == 32
        assert encoder.transform(X).shape == (50, 8)


def test_vectors_that_allow_no_pca_of_so_many_bits(tmp_path):
    rng = np.random.default_rng(0)
    for n, d, bits, said in [
        (30, 5, 64, "signs of"),
        (500, 40, 64, "signs of"),
        (40, 500, 64, "signs of"),
        (500, 80, 64, "PCA"),
    ]:
        X = rng.standard_normal((n, d)) + 5
        spec, encoder = encoder_of("vectors", X, bits=bits)
        assert spec.startswith(said)
        assert encoder.fit(X).transform(X).shape == (n, 8)
        share = np.unpackbits(encoder.transform(X), axis=1).mean(axis=0)
        assert abs(share - 0.5).mean() < 0.15  # without centring, bits would be the same for all
    low = rng.standard_normal((500, 10)) @ rng.standard_normal((10, 80))
    assert encoder_of("vectors", low)[0].startswith("signs of")
    with pytest.raises(ValueError, match="holds NaN"):
        encoder_of("vectors", np.where(np.arange(40_000).reshape(500, 80) == 700, np.nan, 1.0))
    np.save(tmp_path / "few.npy", rng.standard_normal((30, 5)))
    assert "signs of random projections" in invoke("index", "build", tmp_path / "few.npy", tmp_path / "index").output
    invoke("encode", tmp_path / "few.npy", "-o", tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (30, 32)


@pytest.mark.parametrize("bits", [0, -8, 12])
def test_bits_are_named_as_the_option(bits, tmp_path):
    data = fasta(tmp_path / "x.fasta", ["ACGT", "ACGA"])
    for command in (["index", "build", data, tmp_path / "index"], ["encode", data, "-o", "x.npy"]):
        result = runner.invoke(app, [*map(str, command), "--bits", str(bits)])
        assert str(result.exception) == f"--bits must be a multiple of 8 and at least 8, got {bits}"


def test_candidates_are_sorted_by_the_distance_that_is_given(tmp_path):
    data = fasta(tmp_path / "near.fasta", near_strings("ACGT"))
    for options in ([], ["--rerank", "kernel"]):
        folder = tmp_path / f"index{len(options)}"
        shown = invoke("index", "build", data, folder, "--distance", "DamerauLevenshtein()", *options).output
        assert "sorted by DamerauLevenshtein()" in shown
        assert repr(SearchFolder.open(folder).search.rerank) == "DamerauLevenshtein()"


KERNEL = "Spectrum(k=2, normalize=True, reverse_complement=True)"


def test_candidates_are_sorted_by_the_kernel_that_is_given(tmp_path):
    X, folder = near_strings("ACGT"), tmp_path / "index"
    shown = invoke("index", "build", fasta(tmp_path / "near.fasta", X), folder, "--kernel", KERNEL).output
    assert "sorted by kernel\n" in shown
    other_strand = X[3][::-1].translate(str.maketrans("ACGT", "TGCA"))
    query = fasta(tmp_path / "query.fasta", [other_strand])
    first = invoke("index", "search", folder, query, "-k", 1).stdout.splitlines()[1]
    assert first == "0,1,3,3,0"  # the kernel takes both strands as equal, Levenshtein does not
    options = ("--kernel", KERNEL, "--rerank", "Levenshtein()")
    own = invoke("index", "build", tmp_path / "near.fasta", tmp_path / "own", *options)
    assert "sorted by Levenshtein()" in own.output


@pytest.mark.parametrize("kind", ["strings", "vectors", "series", "graphs"])
def test_what_is_named_sorts_the_candidates_of_all_kinds(kind):
    data = Objects("", kind, None)
    unnamed = {"strings": "Levenshtein()", "vectors": "projected", "series": "kernel", "graphs": "kernel"}
    assert default_rerank(data, None, None) == unnamed[kind]
    assert default_rerank(data, "SomeKernel()", None) == "kernel"
    assert default_rerank(data, None, "SomeDistance()") == "SomeDistance()"


def test_vectors_are_sorted_by_the_kernel_that_is_given(tmp_path):
    X, queries = np.split(np.random.default_rng(0).random((64, 12)), [60])
    np.save(tmp_path / "v.npy", X)
    np.save(tmp_path / "q.npy", queries)
    arguments = ("--kernel", "Cosine(mapping='sqrt')", "--candidates", 60, "--landmarks", 4)
    invoke("index", "build", tmp_path / "v.npy", tmp_path / "index", *arguments)
    found = invoke("index", "search", tmp_path / "index", tmp_path / "q.npy", "-k", 1).stdout.splitlines()[1:]
    p, q = (rows / rows.sum(axis=1, keepdims=True) for rows in (X, queries))
    bhattacharyya = np.sqrt(q[:, None] * p[None]).sum(axis=2)
    assert [int(line.split(",")[2]) for line in found] == bhattacharyya.argmax(axis=1).tolist()
    assert [float(line.split(",")[3]) for line in found] == pytest.approx(
        np.sqrt(2 - 2 * bhattacharyya.max(axis=1)), rel=1e-5
    )


def test_build_prints_the_recall_of_its_own_objects(tmp_path):
    X = near_strings("ACGT", n=200)
    shown = invoke("index", "build", fasta(tmp_path / "near.fasta", X), tmp_path / "near").output
    said = float(
        re.search(
            r"recall (0\.\d\d|1\.00): with 100 of the 200 objects as queries, the share of their 10 nearest", shown
        )[1]
    )
    search = SearchFolder.open(tmp_path / "near").load()
    rows = np.sort(np.random.default_rng(0).permutation(200)[:100])
    D = sm.distances.Levenshtein()(X[rows], X)
    D[np.arange(100), rows] = np.inf  # an object itself is no neighbour
    _, ids = search.kneighbors(X[rows], 11)
    shares = []
    for row, found, i in zip(D, ids, rows, strict=True):
        shares.append(np.mean(row[[j for j in found if j != i][:10]] <= np.sort(row)[9]))
    assert said == pytest.approx(np.mean(shares), abs=0.006)
    assert "warning" not in shown
    poor = invoke("index", "build", tmp_path / "near.fasta", tmp_path / "poor", "--bits", 8, "--candidates", 12)
    assert "warning: the recall is below 0.9; more candidates (here 12) find more neighbours" in poor.stderr
    more = invoke("index", "build", tmp_path / "near.fasta", tmp_path / "more", "--bits", 8, "--candidates", 200).output
    assert "recall 1.00" in more  # of all candidates
    options = ("--rerank", "none", "--bits", 8)
    plain = invoke("index", "build", tmp_path / "near.fasta", tmp_path / "bits", *options)
    assert "nearest (by the kernel or distance of the encoder)" in plain.output
    assert "--rerank kernel finds more neighbours" in plain.stderr
    options = ("--rerank", "kernel", "--bits", 8)
    better = invoke("index", "build", tmp_path / "near.fasta", tmp_path / "sorted", *options)
    shares = [float(re.search(r"recall (\d\.\d\d)", done.stdout)[1]) for done in (plain, better)]
    assert shares[0] < shares[1]
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal((80, 20)))
    shown = invoke("index", "build", tmp_path / "v.npy", tmp_path / "v").output
    assert "recall 1.00: with all 80 objects as queries, the share of their 10 nearest (by the cosine of" in shown
    assert "nearest (by" not in invoke("index", "build", tmp_path / "v.npy", tmp_path / "w", "--rerank", "none").output
    (tmp_path / "one.fasta").write_text(">a\nACGTACGT\n")
    assert "nearest (by" not in invoke("index", "build", tmp_path / "one.fasta", tmp_path / "one").output


@pytest.mark.parametrize("command", ["index", "encode"])
def test_another_encoder_because_of_the_bits_is_told(command, tmp_path):
    words = fasta(tmp_path / "near.fasta", near_strings("ACGT", n=100))
    rng = np.random.default_rng(0)
    np.save(tmp_path / "wide.npy", rng.standard_normal((200, 40)))
    np.save(tmp_path / "narrow.npy", rng.standard_normal((200, 5)))

    def said(data, bits):
        paths = ("index", "build", data, tmp_path / f"{bits}") if command == "index" else ("encode", data, "-o", out)
        done = invoke(*paths, "--bits", bits)
        if command == "index":
            shutil.rmtree(tmp_path / f"{bits}")
        return done.stdout, [line for line in done.stderr.splitlines() if line.startswith("note: the data vary in")]

    out = tmp_path / "codes.npy"
    for data, usual, other in [
        (words, "5-mers, PCA and ITQ", "kernel Spectrum(k=5, normalize=True)"),
        (tmp_path / "wide.npy", "PCA and ITQ", "signs of random projections"),
    ]:
        shown, notes = said(data, 32)
        assert f"32 bits by {usual}" in shown
        assert notes == []
        shown, [line] = said(data, 256)
        assert f"256 bits by {other}" in shown
        assert f"too few directions for 256 bits by {usual}, the usual way. The bits are made by {other}," in line
        assert line.endswith("with fewer --bits, the usual way may work")
    assert said(tmp_path / "narrow.npy", 64)[1] == []  # of five features are no eight bits


def test_a_kernel_that_grows_with_the_size_of_objects_is_told_where_little_is_found(tmp_path):
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), rng.integers(4, 60))) for _ in range(150)]
    data, few = fasta(tmp_path / "a.fasta", X), ("--bits", 8, "--candidates", 12)
    for number, (kernel, told) in enumerate([("Spectrum(k=2)", True), ("Normalized(Spectrum(k=2))", False)]):
        built = invoke("index", "build", data, tmp_path / str(number), "--kernel", kernel, "--rerank", "kernel", *few)
        assert "warning: the recall is below 0.9" in built.stderr
        assert ("--kernel 'Normalized(Spectrum(k=2))' ignores size" in built.stderr) == told
    good = invoke("index", "build", data, tmp_path / "good", "--kernel", "Spectrum(k=2)", "--rerank", "kernel",
                  "--candidates", 150)  # fmt: skip
    assert "warning" not in good.stderr
