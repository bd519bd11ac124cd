"""Data frames where objects are taken: one column is the objects in it, a wide frame of numbers a series a row."""

import sys

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from samples.select import choose
from similia import distances, kernels
from similia.embeddings.d2ke import Representatives
from similia.embeddings.vectors import FeatureScaler

pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install '.[test]'")
pl = pytest.importorskip("polars", reason="polars is not installed: pip install '.[test]'")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[test]'")

N = 16
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
STRINGS = [
    "".join(RNG.choice([*"ACGT"], 9, p=[0.4, 0.1, 0.1, 0.4] if i % 2 else [0.1, 0.4, 0.4, 0.1])) for i in range(N)
]
SERIES = [np.sin(np.arange(12) * (0.4 + 0.5 * (i % 2)) + RNG.normal()) for i in range(N)]
SETS = [RNG.normal(size=(4, 2)) + i % 2 for i in range(N)]
GRAPHS = [(nx.path_graph if i % 2 else nx.cycle_graph)(4 + i % 5) for i in range(N)]


def common_letters(x, y):
    return float(len(set(x) & set(y)))


def length_apart(x, y):
    return abs(len(x) - len(y))


SPECTRUM = kernels.Spectrum(k=2)
MODELS = {
    "strings": (STRINGS, [
        sm.Nystroem(SPECTRUM, 5, random_state=0), sm.Nystroem(sm.pairwise(common_letters), 5, random_state=0),
        sm.KernelFeatures(SPECTRUM, 64), sm.D2KE(distances.Levenshtein(), 8, random_state=0),
        sm.D2KE(distances.FromFunction(length_apart), 4, Representatives(), random_state=0),
        sm.PseudoEuclidean(distances.Levenshtein(), 3), sm.NGramEncoder(2, 64, random_state=0),
        sm.KernelSVC(kernels.Sum([SPECTRUM, kernels.Normalized(kernels.Spectrum(k=1))])), sm.KernelRidge(SPECTRUM),
        sm.KernelSVC(kernels.DistanceRBF(distances.Levenshtein(), 0.1)), sm.KNeighborsClassifier(SPECTRUM),
        sm.VoteClassifier([sm.KernelSVC(SPECTRUM)]), sm.recipes.nyshd(SPECTRUM, 5, 64, random_state=0),
        sm.ConformalClassifier(sm.KernelSVC(SPECTRUM), random_state=0),
        sm.recipes.d2ke(distances.Levenshtein(), 8, gamma="tune", cv=2, random_state=0),
        make_pipeline(sm.objects.FromColumn(), sm.KernelSVC(SPECTRUM)),
    ]),
    "series": (SERIES, [
        sm.KNeighborsClassifier(distances.DTW(0.2)), sm.KernelSVC(kernels.GlobalAlignment()),
        sm.Nystroem(kernels.DistanceRBF(distances.DTW(), 0.1), 5, random_state=0),
        sm.D2KE(distances.DTW(), 8, random_state=0), sm.SequenceEncoder(8, n_bits=64, random_state=0),
        sm.embeddings.SeriesVectors(),
    ]),
    "sets": (SETS, [
        sm.KNeighborsClassifier(distances.ModifiedHausdorff()),
        sm.D2KE(distances.SlicedWasserstein(), 8, random_state=0),
    ]),
    "graphs": (GRAPHS, [
        sm.KernelSVC(kernels.WeisfeilerLehman(n_iter=2)), sm.GraphletSampling(3, 50, random_state=0),
        sm.GraphHDEncoder(64, random_state=0),
    ]),
}  # fmt: skip


def column(objects):
    array = np.empty((len(objects), 1), dtype=object)
    for i, x in enumerate(objects):
        array[i, 0] = x
    return array


def tables(kind, objects):
    """All tables of one column that hold these objects, and for series the wide ones."""
    made = {"pandas": pd.DataFrame({"a": list(objects)}), "array": column(objects)}
    if kind == "graphs":
        return made
    plain = objects if kind == "strings" else [x.tolist() for x in objects]
    made |= {"polars": pl.DataFrame({"a": plain}), "Arrow": pa.table({"a": plain})}
    if kind == "strings":
        made["texts"] = np.array(objects)[:, None]
        made["categories"] = pd.DataFrame({"a": pd.Categorical(objects)})
        made["Arrow in pandas"] = pd.DataFrame({"a": pd.array(objects, "string[pyarrow]")})
    if kind == "series":
        wide = np.array(objects)
        made |= {"wide pandas": pd.DataFrame(wide), "wide polars": pl.DataFrame(wide)}
        made["wide Arrow"] = pa.table({f"v{i}": wide[:, i] for i in range(wide.shape[1])})
        made["arrays in polars"] = pl.DataFrame({"a": wide})
        made["series in cells"] = pd.DataFrame({"a": [pd.Series(x) for x in objects]})
    return made


def output(model, X):
    found = (model.predict if hasattr(model, "predict") else model.transform)(X)
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


@pytest.mark.parametrize(("kind", "i"), [(kind, i) for kind, (_, models) in MODELS.items() for i in range(len(models))])
@pytest.mark.filterwarnings("ignore:.*similarity 0 to all landmarks")
def test_a_table_is_the_objects_in_it(kind, i):
    objects, models = MODELS[kind]
    of_objects = clone(models[i]).fit(objects, Y)
    expected = output(of_objects, objects)
    for name, table in tables(kind, objects).items():
        of_table = clone(models[i]).fit(table, Y)
        np.testing.assert_array_equal(output(of_table, table), expected, err_msg=name)
        np.testing.assert_array_equal(output(of_table, objects), expected, err_msg=name)
        part = table.slice(0, 3) if name.endswith("Arrow") else table[:3]
        np.testing.assert_array_equal(output(of_objects, part), output(of_objects, objects[:3]), err_msg=name)


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_columns_of_a_table_are_transformed_each_by_its_kernel(library):
    age = np.random.default_rng(1).normal(size=N)
    names = ["text", "signal", "age"]
    if library == "pandas":
        table = pd.DataFrame({"text": STRINGS, "signal": SERIES, "age": age})
    elif library == "polars":
        table = pl.DataFrame({"text": STRINGS, "signal": [x.tolist() for x in SERIES], "age": age})
    else:
        table, names = pd.DataFrame({"text": STRINGS, "signal": SERIES, "age": age}).to_numpy(), [0, 1, 2]
    text = sm.Nystroem(SPECTRUM, 5, random_state=0)
    signal = make_pipeline(sm.Nystroem(kernels.DistanceRBF(distances.DTW(), 0.1), 5, random_state=0))
    columns = ColumnTransformer([("t", text, names[:1]), ("s", signal, names[1:2]), ("a", StandardScaler(), names[2:])])
    found = columns.fit_transform(table)
    expected = np.hstack([clone(text).fit_transform(STRINGS), clone(signal).fit_transform(SERIES)])
    np.testing.assert_array_equal(found[:, :-1].astype(float), expected)
    assert cross_val_score(make_pipeline(columns, LinearSVC()), table, Y, cv=2).mean() > 0.8
    if library != "numpy":
        framed = columns.set_output(transform=library).fit_transform(table)
        assert framed.shape == (N, expected.shape[1] + 1)


def test_columns_of_numbers_may_differ_in_type():
    table = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [True, False, True]})
    expected = StandardScaler().fit_transform(table)
    np.testing.assert_allclose(FeatureScaler().fit_transform(table), expected, rtol=1e-12)
    np.testing.assert_allclose(FeatureScaler().fit_transform(table.convert_dtypes()), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "table", [pd.DataFrame({"review": STRINGS}), pl.DataFrame({"review": STRINGS})], ids=["pd", "pl"]
)
def test_choice_search_and_explanation_take_one_column(table):
    found = choose(table, Y, budget=2, cv=3, nested=False, random_state=0, progress=False)
    assert found.kind_ == "strings"
    np.testing.assert_array_equal(found.predict(table), found.predict(STRINGS))
    assert sm.explain(SPECTRUM, table[:1], table[1:2]).value == SPECTRUM(STRINGS[:1], STRINGS[1:2])[0, 0]
    model = sm.KernelSVC(SPECTRUM).fit(table, Y)
    assert sm.explain(model, table[:1]).value == sm.explain(model, STRINGS[0]).value
    encoder = make_pipeline(sm.Nystroem(SPECTRUM, 8, random_state=0), sm.SignRandomProjection(64, random_state=0))
    search, plain = (sm.SimilaritySearch(encoder, rerank="kernel").fit(X) for X in (table, STRINGS))
    for ours, theirs in zip(search.kneighbors(table[:3], 4), plain.kneighbors(STRINGS[:3], 4), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sm.objects.take(table, [3, 1]).shape == (2, 1)
    own = sm.pairwise(common_letters)
    found = choose(table, Y, similarity=own, budget=1, cv=3, nested=False, random_state=0, progress=False)
    assert found.predict(table).shape == (N,)


def test_reports_take_one_column(tmp_path):
    frame = pd.DataFrame({"review": STRINGS})
    page = sm.report.write_report(sm.KernelSVC(SPECTRUM).fit(frame, Y), frame, Y, tmp_path / "r.html")
    assert "16 strings" in page.read_text()


def test_dask_frames_of_one_column_are_objects():
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed: pip install '.[dask]'")
    lazy = frames.from_pandas(pd.DataFrame({"text": STRINGS}), npartitions=3)
    model = sm.Nystroem(SPECTRUM, 5, random_state=0)
    expected = clone(model).fit_transform(STRINGS)
    np.testing.assert_array_equal(model.fit(lazy).transform(lazy).compute(), expected)


def test_what_similarity_there_is_says_what_a_wide_frame_is():
    wide = pd.DataFrame(np.array(SERIES))
    assert sm.KNeighborsClassifier(distances.DTW()).fit(wide, Y).objects_.lengths.tolist() == [12] * N
    assert sm.KernelSVC(kernels.Cosine()).fit(wide, Y).n_features_in_ == 12  # vectors, as ever
    padded = pd.DataFrame([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]])
    assert sm.objects.as_series(padded).lengths.tolist() == [2, 3]
    assert sm.objects.as_series(wide.astype("float32")).values.dtype == np.float32


LEVELS = pd.MultiIndex.from_tuples([(0, 0), (0, 1)])
DOUBTS = {
    "a long table": (pd.DataFrame({"id": [1, 1], "x": [0.5, 1]}), "series", "'id': it may"),
    "an index": (pl.DataFrame({"0": [1.0], "Time": [2.0]}), "series", "'Time': it may"),
    "one column": (pd.DataFrame({"x": [0.5, 1.0]}), "series", r"may be one series or 2 of one time point"),
    "levels": (pd.DataFrame({"x": [0.5, 1.0], "y": 1.0}, index=LEVELS), "series", "from_sktime .* multi-indexed"),
    "a mixture": (pd.DataFrame({"x": [0.5], "y": "a"}), "series", "of 2 columns, .*; select one column of series"),
    "dates": (pd.DataFrame({"x": [0.5], "y": pd.to_datetime(["2020-01-01"])}), "series", "select one column of series"),
    "two texts": (pd.DataFrame({"x": ["a"], "y": ["b"]}), "strings", r"2 columns \('x', 'y'\), .* X\[\[name\]\]"),
    "numbers": (pd.DataFrame({"x": [1.5]}), "strings", r"X\[0\] is float \(1.5\), expected str"),
    "an array": (np.ones((3, 1)), "strings", r"ndarray of float64 and shape \(3, 1\)"),
    "missing": (pl.DataFrame({"x": ["a", None]}), "strings", r"X\[1\] is missing"),
    "no graphs": (pd.DataFrame({"x": [1.5], "y": ["b"]}), "graphs", "expected one column of graphs"),
    "no sets": (pd.DataFrame({"x": [1.5], "y": ["b"]}), "sets", "select one column of sets"),
    "points": (pd.DataFrame({"x": [1.5]}), "sets", "set 0 is one number"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTS)
def test_tables_that_may_be_two_things_or_none_are_one_sentence(name):
    table, kind, said = DOUBTS[name]
    read = getattr(sm.objects, f"as_{kind}")
    with pytest.raises((TypeError, ValueError), match=said) as error:
        read(table)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame({"x": [1.5] * 6, "y": ["b"] * 6}), "column 'y' holds no numbers; select one column of objects"),
        (pl.DataFrame({"x": [1.5] * 6, "y": ["b"] * 6}), "column 'y' holds no numbers; select one column of objects"),
        (pd.DataFrame(index=range(6)), "without columns"),
    ],
)
def test_the_choice_refuses_mixed_tables(table, said):
    with pytest.raises((TypeError, ValueError), match=said):
        choose(table, [0, 1] * 3, cv=3)


@pytest.mark.parametrize("library", [pd, pl])
def test_as_column_takes_the_objects_of_one_column(library):
    frame = library.DataFrame({"a": ["x", "y"], "b": ["z", "w"]})
    assert sm.objects.as_column(frame[["a"]]).tolist() == [["x"], ["y"]]
    with pytest.raises(TypeError, match=r"X is a table of 2 columns \('a', 'b'\), expected one column of objects"):
        sm.objects.as_column(frame)


def test_columns_may_have_names_that_mean_something_elsewhere():
    frame = pd.DataFrame({"column_names": [3, 4], "elsewhere": [1.0, 2.0]})
    assert sm.objects.take(frame, [1]).equals(frame.iloc[[1]])
    assert FeatureScaler().fit(frame).transform(frame).shape == (2, 2)
    assert kernels.suggest_gamma(distances.FromFunction(lambda x, y: abs(x - y).sum()), frame) > 0
    series = pd.DataFrame(np.eye(3, 12), columns=[*"abcdefghijk", "elsewhere"])
    assert len(sm.RandomConvolutions().fit_transform(series)) == 3
    with pytest.raises(TypeError, match=r"2 columns \('column_names', 'elsewhere'\)"):
        sm.objects.as_strings(frame)


def test_frames_are_joined_and_not_changed():
    for frame in (pd.DataFrame({"a": STRINGS}), pl.DataFrame({"a": STRINGS})):
        assert len(sm.objects.concatenate([frame, frame])) == 2 * N
        sm.KernelSVC(SPECTRUM).fit(frame, Y).predict(frame)
        assert frame.equals(type(frame)({"a": STRINGS}))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.Series(["a b", "c"], dtype="str"), "{} 0 is 'a b', expected an array of numbers"),
        (pd.Series(["a b", "c"], dtype="string[python]"), "{} 0 is 'a b', expected an array of numbers"),
        (pd.Series([1, 2], dtype="Int64"), "{} 0 is one number"),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), r"{} 0 is Period.*, expected an array of numbers"),
    ],
)
def test_columns_that_hold_no_arrays_are_refused_without_pyarrow(column, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for noun, read in {
        "series": sm.objects.as_series,
        "set": sm.distances.Chamfer(),
    }.items():
        for X in (column,) if column.dtype == "Int64" else (column, column.to_frame()):
            with pytest.raises(TypeError, match=said.format(noun)):
                read(X)
    with pytest.raises(TypeError, match=said.format("series")):
        sm.D2KE(distances.DTW(0.1), 4).fit(column)
    lists = pd.Series([[1.0, 2.0], [3.0]])
    np.testing.assert_array_equal(sm.objects.as_series(lists).values, [[1.0], [2.0], [3.0]])


FLOWERS = pd.DataFrame(np.random.default_rng(3).normal(size=(12, 3)), columns=["a", "b", "c"])
OF_VECTORS = [
    sm.KernelSVC(kernels.RBF()),
    sm.KernelSVC(kernels.Cosine()),
    sm.HeatSVC(1.0, 1.0),
    sm.codes.LevelEncoder(random_state=0),
]


@pytest.mark.parametrize("model", OF_VECTORS, ids=repr)
def test_one_row_in_place_of_a_frame_is_answered_with_what_to_type(model):
    fitted = clone(model).fit(FLOWERS, [0, 1] * 6)
    call = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    of_frames = (
        r"X must be .*; Reshape your data: write one row of a frame as frame\.iloc\[\[0\]\], one column as frame"
    )
    with pytest.raises(ValueError, match=of_frames):
        call(FLOWERS.iloc[0])
    of_arrays = (
        r"Reshape your data: write one vector v as \[v\], one row of an array as array\[:1\], one column as array"
    )
    for row in (FLOWERS.to_numpy()[0], FLOWERS.to_numpy()[0].tolist(), pl.DataFrame(FLOWERS).row(0)):
        with pytest.raises(ValueError, match=of_arrays):
            call(row)
    expected = call(FLOWERS)[:1]
    np.testing.assert_array_equal(call(FLOWERS.iloc[[0]]), expected)
    plain = clone(model).fit(FLOWERS.to_numpy(), [0, 1] * 6)
    call = plain.predict if hasattr(plain, "predict") else plain.transform
    for advised in (FLOWERS.to_numpy()[:1], [FLOWERS.to_numpy()[0]], [FLOWERS.to_numpy()[0].tolist()]):
        np.testing.assert_array_equal(call(advised), expected)
