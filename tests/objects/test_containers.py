"""What users keep objects in: columns, PyG, Biopython, aeon, sktime and tslearn; nothing of these is imported by us."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import similia as sm
from samples.graph_forms import Tensor, same
from similia.objects import as_graphs, as_series, as_strings
from similia.objects.series import from_aeon, from_sktime, from_tslearn

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

WORDS = ["ACGT", "", "AC", "ACGT"]
SERIES = [np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]), np.array([[4.0, 40.0]])]  # (length, channels)


def lists(batch):
    return [x.tolist() for x in batch]


def is_series(batch, expected=SERIES):
    assert lists(batch) == [x.tolist() for x in expected]


# ---- columns

STRING_COLUMNS = {
    "str": lambda x: pd.Series(x),
    "string[pyarrow]": lambda x: pd.Series(x, dtype="string[pyarrow]"),
    "category": lambda x: pd.Series(x, dtype="category"),
    "Arrow dictionary": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "Arrow large string": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.large_string())),
    "string view": lambda x: pa.array(x, pa.string_view()),
    "chunks": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "Enum": lambda x: pl.Series(x, dtype=pl.Enum(sorted({v for v in x if v is not None}))),
    "Categorical": lambda x: pl.Series(x, dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", STRING_COLUMNS)
def test_columns_of_strings_of_any_type_and_their_nulls(name):
    assert as_strings(STRING_COLUMNS[name](WORDS)).tolist() == WORDS
    with pytest.raises(TypeError, match=r"X\[2\] is missing \(.*\), expected a string; drop it or replace it"):
        as_strings(STRING_COLUMNS[name](["ACGT", "", None, "AC"]))


@pytest.mark.parametrize("column", [pd.Series, lambda x: pl.Series("g", x, dtype=pl.Object)], ids=["pandas", "polars"])
def test_columns_of_graphs_and_their_nulls(column):
    graphs = [nx.path_graph(3), nx.cycle_graph(4)]
    assert same(as_graphs(column(graphs)), as_graphs(graphs))
    with pytest.raises(TypeError, match=r"graph 1 is NoneType \(None\), expected a graph; drop what is missing"):
        as_graphs(column([graphs[0], None]))


def test_columns_of_structs_are_graphs():
    records = [{"edge_index": [[0, 1], [1, 0]], "n_nodes": 2}, {"edge_index": [[], []], "n_nodes": 1}]
    struct = pa.struct([("edge_index", pa.list_(pa.list_(pa.int64()))), ("n_nodes", pa.int64())])
    columns = [
        pl.Series(records), pa.array(records, struct), pa.chunked_array([records[:1], records[1:]], struct),
        pd.Series(records), pd.Series(records, dtype=pd.ArrowDtype(struct)),
    ]  # fmt: skip
    for column in columns:
        assert same(as_graphs(column), as_graphs(records))


def test_a_column_of_a_table_goes_through_a_pipeline():
    frame = pl.DataFrame({"dna": ["ACGTAC", "ACGTCC", "TTTTGG", "TTTGGG"] * 3, "kind": ["a", "a", "b", "b"] * 3})
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_bits=256, random_state=0)
        assert model.fit(table["dna"], np.asarray(table["kind"])).score(table["dna"], np.asarray(table["kind"])) == 1


# ---- PyG, as far as it is looked at


def data(**values):
    return SimpleNamespace(**{"x": None, "edge_attr": None, **{k: Tensor(v) for k, v in values.items() if k != "n"}},
                           num_nodes=values["n"])  # fmt: skip


class Dataset:
    """The methods of a PyG data set that are used: `get` and `len` beside indexing."""

    def __init__(self, graphs):
        self.graphs = graphs

    def len(self):
        return len(self.graphs)

    __len__ = len

    def get(self, i):
        return self.graphs[i]

    def __getitem__(self, i):
        return self.graphs[i]


ARCS = [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize(
    ("name", "values"),
    [("x", [[0, 1, 0], [1, 0, 0], [0, 0, 1]]), ("x", [[1], [0], [2]]), ("z", [1, 0, 2]), ("x", [[1.0], [0.0], [2.0]])],
)
def test_pyg_labels_of_nodes_are_read_where_they_are_named(name, values):
    graphs = as_graphs(Dataset([data(edge_index=ARCS, n=3, **{name: values})] * 2), node_label=name)
    assert graphs.node_labels.tolist() == [1, 0, 2] * 2
    assert graphs.node_attributes is None


def test_pyg_features_are_attributes_beside_named_labels():
    graph = data(edge_index=ARCS, n=3, z=[6, 6, 8], x=[[0.5], [1.5], [2.5]])
    batch = as_graphs([graph], node_label="z")
    assert batch.node_labels.tolist() == [6, 6, 8]
    assert batch.node_attributes.tolist() == [[0.5], [1.5], [2.5]]
    assert as_graphs([graph]).node_labels is None
    with pytest.raises(ValueError, match=r"graph 0 has x of float64 and shape \(3,\).*integer for each node"):
        as_graphs([data(edge_index=ARCS, n=3, x=[0.5, 1.5, 2.5])], node_label="x")
    with pytest.raises(ValueError, match="node_label='w': no node of any graph"):
        as_graphs([graph], node_label="w")


@pytest.mark.parametrize("labels", [[1.0, np.inf, 2.0], [1.0, 1e30, 2.0]])
def test_pyg_labels_beyond_integers_are_refused(labels):
    with pytest.raises(ValueError, match=r"graph 0 has z of float64 and shape \(3,\), expected one integer"):
        as_graphs([data(edge_index=ARCS, n=3, z=labels)], node_label="z")


def test_pyg_labels_that_are_texts_are_refused():
    graph = SimpleNamespace(edge_index=ARCS, num_nodes=3, atom=["C", "O", "C"])
    with pytest.raises(ValueError, match=r"graph 0 has atom of <U1 and shape \(3,\), expected one integer"):
        as_graphs([graph], node_label="atom")


def test_pyg_labels_of_64_bits_without_sign_are_those_of_other_graphs():
    labels = np.array([1, 2**64 - 1, 2], dtype=np.uint64)
    graph = SimpleNamespace(edge_index=ARCS, num_nodes=3, z=labels)
    expected = as_graphs([{"edge_index": ARCS, "node_labels": labels}])
    assert as_graphs([graph], node_label="z").node_labels.tolist() == expected.node_labels.tolist()


@pytest.mark.ecosystem
def test_pyg_itself(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    Data = pytest.importorskip("torch_geometric.data", reason="PyG is not installed").Data
    one_hot = torch.eye(3)[torch.tensor([1, 0, 2])]
    graphs = [Data(edge_index=torch.tensor(ARCS), x=one_hot, edge_attr=torch.tensor([1, 1, 2, 2])) for _ in range(3)]
    batch = as_graphs(graphs, node_label="x")
    assert batch.node_labels.tolist() == [1, 0, 2] * 3
    assert batch.edge_labels.tolist() == [1, 1, 2, 2] * 3
    from torch_geometric.data import Batch

    assert same(as_graphs(Batch.from_data_list(graphs), node_label="x"), batch)


# ---- Biopython


def test_biopython_sequences_records_and_alignments():
    seqs = pytest.importorskip("Bio.Seq", reason="Biopython is not installed")
    Record = pytest.importorskip("Bio.SeqRecord").SeqRecord
    align = pytest.importorskip("Bio.Align")
    some = [seqs.Seq("ACGT"), seqs.MutableSeq("AC-T")]
    records = [Record(seq, id=name) for seq, name in zip(some, "ab", strict=True)]
    rows = align.MultipleSeqAlignment([Record(seqs.Seq("ACGT"), id="a"), Record(seqs.Seq("AC-T"), id="b")])
    aligned = align.PairwiseAligner(mode="global", open_gap_score=-1).align("ACGT", "ACT")[0]
    for X in (some, records, rows, ["ACGT", seqs.Seq("AC-T")], aligned):
        assert as_strings(X).tolist() == ["ACGT", "AC-T"]
    assert sm.distances.Levenshtein()(records).tolist() == [[0, 1], [1, 0]]
    assert sm.objects.take(rows, [1])[0].id == "b"
    for one in (some[0], records[0]):
        with pytest.raises(TypeError, match=r"is one string, Seq.*write \[x\]"):
            as_strings(one)
    with pytest.raises(TypeError, match=r"X\[1\] is Seq\(None, length=5\), whose letters are unknown"):
        as_strings([some[0], seqs.Seq(None, 5)])


# ---- aeon: channels first


def test_aeon_containers():
    by_channels = [x.T for x in SERIES]
    is_series(from_aeon(by_channels))
    padded = np.full((2, 2, 4), np.nan)
    padded[0, :, :3], padded[1, :, :1] = by_channels
    is_series(from_aeon(padded))
    flat = [[1.0, 2.0], [3.0, 4.0]]
    is_series(from_aeon(np.array(flat)), [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])])
    is_series(from_aeon(pd.DataFrame(flat)), [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])])
    is_series(from_aeon([np.array([1.0, 2.0]), np.array([3.0])]), [np.array([[1.0], [2.0]]), np.array([[3.0]])])
    with pytest.raises(ValueError, match=r"series 1 has 3 channels and series 0 has 2"):
        from_aeon([np.zeros((2, 5)), np.zeros((3, 5))])


# ---- sktime: panels


def panels():
    channels = ["a", "b"]
    nested = pd.DataFrame({name: [pd.Series(x[:, c]) for x in SERIES] for c, name in enumerate(channels)})
    index = pd.MultiIndex.from_tuples([("one", 0), ("one", 1), ("one", 2), ("two", 5)], names=["case", None])
    return {
        "nested": nested,
        "nested arrays": nested.map(np.asarray),
        "index": pd.DataFrame(np.concatenate(SERIES), columns=channels, index=index),
        "index out of order": pd.DataFrame(np.concatenate(SERIES), columns=channels, index=index).iloc[[2, 0, 3, 1]],
        "index without names": pd.DataFrame(np.concatenate(SERIES), index=index.set_names([None, None])),
        "frames": [pd.DataFrame(x, columns=channels) for x in SERIES],
    }


@pytest.mark.parametrize("name", panels())
def test_sktime_panels(name):
    panel = panels()[name]
    before = panel.copy() if hasattr(panel, "copy") else list(panel)
    is_series(from_sktime(panel))
    if isinstance(panel, list):  # frames of aeon have a row for each channel
        is_series(from_aeon([frame.T for frame in panel]))
    else:
        is_series(from_aeon(panel))
        pd.testing.assert_frame_equal(panel, before)


def test_sktime_arrays_and_wide_tables():
    is_series(from_sktime(SERIES[0].T[None]), SERIES[:1])
    flat = np.array([[1.0, 2.0], [3.0, 4.0]])
    for X in (flat, pd.DataFrame(flat)):
        is_series(from_sktime(X), [flat[0][:, None], flat[1][:, None]])


WRONG = {
    "channels of two lengths": (
        lambda: from_sktime(pd.DataFrame({"a": [np.ones(1)] * 2, "b": [np.ones(1), np.ones(2)]})),
        ValueError, "row 1 has 2 time points in column 1 and 1 in column 0",
    ),
    "texts": (lambda: from_sktime(pd.DataFrame({"a": ["x"]}, dtype=object)), TypeError, "row 0, column 0 holds 'x'"),
    "three levels": (
        lambda: from_sktime(pd.DataFrame({"a": [1.0]}, index=pd.MultiIndex.from_tuples([(0, 0, 0)]))),
        TypeError, "index of 3 levels, expected two: instance and time",
    ),
    "twice": (
        lambda: from_sktime(pd.DataFrame({"a": [1.0, 2.0]}, index=pd.MultiIndex.from_tuples([(0, 0), (0, 0)]))),
        ValueError, "rows 0 and 1 are both of instance 0 at time 0",
    ),
    "missing": (
        lambda: from_sktime(pd.DataFrame({"a": [1.0, np.nan]}, index=pd.MultiIndex.from_tuples([(0, 0), (0, 1)]))),
        ValueError, "row 1 of column 'column 0' is missing",
    ),
    "polars": (lambda: from_sktime(pl.DataFrame({"a": [1.0]})), TypeError, "expected a pandas frame"),
    "empty": (lambda: from_sktime(pd.DataFrame({"a": []})), ValueError, "empty"),
    "a frame among arrays": (lambda: from_sktime([pd.DataFrame({"a": [1.0]}), 3]), TypeError, r"X\[1\] is int"),
    "a table for as_series": (lambda: as_series(panels()["nested"]), TypeError, "from_sktime a nested"),
    "all padding": (lambda: from_tslearn(np.full((2, 3, 1), np.nan)), ValueError, "series 0 is all NaN"),
    "an empty series": (lambda: from_tslearn([[], [1.0, 2.0]]), ValueError, r"series 0 has shape \(0,\), expected at"),
    "a hole": (lambda: from_tslearn([np.array([1.0, np.nan, 2.0])]), ValueError, "series 0, time point 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_panel_is_told_in_one_sentence(case):
    call, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence):
        call()


# ---- tslearn: time first, NaN to the end


def test_tslearn_containers():
    padded = np.full((2, 4, 2), np.nan)
    padded[0, :3], padded[1, :1] = SERIES
    is_series(from_tslearn(padded))
    is_series(from_tslearn(list(padded)))
    is_series(from_tslearn(SERIES))
    is_series(from_tslearn(np.array([[1.0, 2.0], [3.0, np.nan]])), [np.array([[1.0], [2.0]]), np.array([[3.0]])])
    assert np.isnan(padded[1, 1:]).all()
    is_series(from_tslearn([np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 0, 1])]), [np.array([[1.0], [2.0]])])


# ---- the libraries themselves


@pytest.mark.ecosystem
def test_aeon_itself():
    datasets = pytest.importorskip("aeon.testing.data_generation", reason="aeon is not installed")
    from aeon.utils.conversion import convert_collection

    X, _ = datasets.make_example_3d_numpy(n_cases=4, n_channels=2, n_timepoints=9)
    assert (from_aeon(X).lengths == 9).all()
    X, _ = datasets.make_example_3d_numpy_list(n_cases=4, n_channels=2, min_n_timepoints=5, max_n_timepoints=9)
    assert from_aeon(X).lengths.tolist() == [x.shape[1] for x in X]
    assert lists(from_aeon(convert_collection(X, "df-list"))) == lists(from_aeon(X))


@pytest.mark.ecosystem
def test_sktime_itself():
    utils = pytest.importorskip("sktime.utils._testing.hierarchical", reason="sktime is not installed")
    from sktime.datatypes import convert_to

    panel = utils._make_hierarchical((3,), min_timepoints=4, max_timepoints=8, n_columns=2, random_state=0)
    expected = from_sktime(panel)
    for mtype in ("nested_univ", "df-list"):
        assert lists(from_sktime(convert_to(panel, mtype))) == lists(expected)


@pytest.mark.ecosystem
def test_tslearn_itself():
    utils = pytest.importorskip("tslearn.utils", reason="tslearn is not installed")
    is_series(from_tslearn(utils.to_time_series_dataset(SERIES)))


def test_none_of_the_libraries_is_imported():
    code = (
        "import sys, similia as sm, similia.objects.series, similia.adapters.series, similia.adapters.graphs\n"
        "import similia.adapters.transport\n"
        "sm.objects.as_strings(['a'])\n"
        "bad = {'polars', 'Bio', 'rdkit', 'torch', 'aeon', 'sktime', 'tslearn', 'grakel', 'ot'}\n"
        "assert not bad & {*sys.modules}, bad & {*sys.modules}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
