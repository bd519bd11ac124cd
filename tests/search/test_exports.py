"""Exports, each read back by other means than the function that wrote it."""

from __future__ import annotations

import faiss
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

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


# ---- the engines themselves, where they are installed


def neighbours_by_counting(codes, queries):
    """All distances of queries to codes, by comparing bit by bit."""
    return np.array([[int((np.unpackbits(q) != np.unpackbits(c)).sum()) for c in codes] for q in queries])


@pytest.mark.filterwarnings("ignore")
def test_usearch_itself_finds_the_nearest():
    usearch = pytest.importorskip("usearch.index", reason="usearch is not installed")
    codes, queries, ids = codes_of(300, 64), codes_of(10, 64, seed=1), np.arange(300) * 3 + 7
    index = usearch.Index(ndim=64, metric="hamming", dtype="b1")
    index.add(ids, exports.to_usearch(HammingIndex(64).fit(codes, ids)))
    D = neighbours_by_counting(codes, queries)
    found = index.search(exports.to_usearch(queries), 5, exact=True)
    np.testing.assert_array_equal(found.distances, np.sort(D, axis=1)[:, :5])
    np.testing.assert_array_equal(np.take_along_axis(D, (found.keys.astype(int) - 7) // 3, axis=1), found.distances)


@pytest.mark.filterwarnings("ignore")
def test_qdrant_itself_finds_the_nearest():
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from qdrant_client.models import BinaryQuantization, BinaryQuantizationConfig, Distance, VectorParams

    codes, queries, ids = codes_of(300, 64), codes_of(5, 64, seed=1), np.arange(300) * 3 + 7
    client = qdrant.QdrantClient(":memory:")
    client.create_collection(
        "codes",
        vectors_config=VectorParams(size=64, distance=Distance.DOT),
        quantization_config=BinaryQuantization(binary=BinaryQuantizationConfig(always_ram=True)),
    )
    client.upload_collection("codes", vectors=exports.to_qdrant(codes), ids=ids.tolist())
    D = neighbours_by_counting(codes, queries)
    for row, query in zip(D, exports.to_qdrant(queries), strict=True):
        points = client.query_points("codes", query=query.tolist(), limit=5).points
        assert [(64 - point.score) / 2 for point in points] == np.sort(row)[:5].tolist()
        assert all(row[(point.id - 7) // 3] == (64 - point.score) / 2 for point in points)


def test_pgvector_itself_reads_the_text_as_the_same_bits():
    Bit = pytest.importorskip("pgvector", reason="pgvector is not installed").Bit
    codes = codes_of(20, 40)
    for code, text in zip(codes, exports.to_pgvector(codes), strict=True):
        assert Bit.from_text(text).to_text() == text
        assert Bit.from_text(text).to_numpy().tolist() == np.unpackbits(code).astype(bool).tolist()
