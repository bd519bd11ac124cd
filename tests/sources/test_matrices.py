"""Matrices as sources: the same rows, in the same order and with the same fingerprint, wherever they are kept."""

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import parquet as pq

from samples.hashing import Rows, chunks, parquet
from similia.sources import Source, open_stream
from similia.sources.matrices import dense_parts, open_matrix

N, D = 203, 7


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def X(request):
    X = np.random.default_rng(0).standard_normal((N, D)).astype(request.param)
    X[np.random.default_rng(1).random((N, D)) < 0.5] = 0
    return X


def kept(X, folder):
    np.save(folder / "X.npy", X)
    yield X
    yield np.asfortranarray(X)
    yield folder / "X.npy"
    yield parquet(X, folder / "X.parquet")
    yield parquet(X, folder / "L.parquet", lists=True)
    yield Rows(X)
    yield Rows(X, 16)
    yield sp.csc_array(X)
    yield sp.coo_array(X)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


def test_rows_are_taken_in_any_order(X, tmp_path):
    wanted = [5, N - 1, 0, 5, 64]
    for source in map(open_matrix, kept(X, tmp_path)):
        assert isinstance(source, Source)
        assert (source.kind, source.n, source.n_features, source.dtype) == ("vectors", N, D, X.dtype)
        np.testing.assert_array_equal(dense(source.take(wanted)), X[wanted])
    distributed = open_matrix_of_dask(X)
    np.testing.assert_array_equal(distributed.take(wanted), X[wanted])


def open_matrix_of_dask(X):
    from similia.sources.dask import as_partitions

    return open_matrix(as_partitions(da.from_array(X, chunks=(50, D))))


@pytest.mark.parametrize("start", [0, 1, 64, N - 1])
def test_chunks_begin_where_asked(X, start, tmp_path):
    vectors = open_stream(X.astype(np.float64), chunk=50)
    sources = [*map(open_matrix, kept(X, tmp_path)), open_matrix(chunks(X, 50)), open_matrix_of_dask(X)]
    for source in [*sources, open_matrix(vectors)]:
        found = list(source.chunks(start))
        assert found[0].start == start
        assert found[-1].stop == N
        assert [chunk.stop for chunk in found[:-1]] == [chunk.start for chunk in found[1:]]
        np.testing.assert_array_equal(np.concatenate([dense(chunk.objects) for chunk in found]), X[start:])


def test_fingerprints_depend_on_the_numbers_alone(X, tmp_path):
    first, *others = [open_matrix(x).fingerprint() for x in kept(X, tmp_path)]
    assert set(others) == {first}
    changed = X.copy()
    changed[-1, -1] += 1
    different = [changed, X[:-1], X[:, :-1], X.astype(np.float16), X.reshape(D, N)]
    assert len({first, *(open_matrix(x).fingerprint() for x in different)}) == 1 + len(different)


def test_what_is_read_once_says_so(X):
    source = open_matrix(chunks(X, 50))
    assert (source.n, source.again) == (None, False)
    with pytest.raises(ValueError, match="has no fingerprint"):
        source.fingerprint()
    with pytest.raises(ValueError, match="read only once, in order"):
        source.take([0])
    assert open_matrix(source) is source


@pytest.mark.parametrize("lists", [[[1.0, 2], [3], [4, 5, 6]], [[1.0, 2], None, [3, 4, 5, 6]]])
def test_lists_of_unequal_lengths_are_refused_even_if_their_mean_fits(lists, tmp_path):
    pq.write_table(pa.table({"x": lists}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has lists that are not all of length 2"):
        list(open_matrix(tmp_path / "x.parquet").blocks())


@pytest.mark.parametrize("lists", [False, True])
def test_the_index_of_a_data_frame_is_no_feature(lists, X, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": list(X)} if lists else X, index=np.arange(len(X)) + 7)
    frame.columns = frame.columns.map(str)
    frame.to_parquet(tmp_path / "x.parquet", index=True)
    assert pq.read_schema(tmp_path / "x.parquet").names[-1] == "__index_level_0__"
    source = open_matrix(tmp_path / "x.parquet")
    np.testing.assert_array_equal(np.concatenate(list(source.blocks())), X)
    np.testing.assert_array_equal(source.take([1, 5]), X[[1, 5]])


def test_a_file_of_an_index_alone_is_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(index=[5, 6]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has no columns"):
        open_matrix(tmp_path / "x.parquet")


def test_no_rows_have_no_parts():
    assert list(dense_parts(np.empty((0, 3)))) == []
