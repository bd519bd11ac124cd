"""Models inside other tools: MLflow, a Dask cluster of processes, graphs of igraph (python dev.py ecosystem)."""

from __future__ import annotations

import numpy as np
import pytest

import similia as sm
from similia.scale import encode_stream, predict_stream

X, Y = sm.datasets.load_promoters(return_X_y=True)
ALONE = {"pip_requirements": ["similia"]}  # MLflow would find them by running the model in another process


@pytest.fixture(scope="module")
def model():
    return sm.recipes.nyshd(sm.kernels.Spectrum(k=3), n_landmarks=40, n_bits=512, random_state=0).fit(X[::2], Y[::2])


@pytest.fixture
def run(tmp_path, monkeypatch):
    """MLflow, with a run in a folder of this test."""
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        yield mlflow


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")  # of MLflow
def test_mlflow_logs_a_model_of_ours_as_one_of_scikit_learn(run, model):
    import mlflow.sklearn

    logged = mlflow.sklearn.log_model(model, name="promoters", serialization_format="cloudpickle", **ALONE)
    expected = model.predict(X[1::2])
    assert mlflow.sklearn.load_model(logged.model_uri).predict(X[1::2]).tolist() == expected.tolist()
    by_function = mlflow.pyfunc.load_model(logged.model_uri)
    assert list(by_function.predict(X[1::2])) == expected.tolist()


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")
def test_mlflow_serves_a_model_file_without_a_pickle_of_the_model(run, model, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    import mlflow.pyfunc

    class OfFile(mlflow.pyfunc.PythonModel):
        def load_context(self, context):
            self.model = sm.load(context.artifacts["model"])

        def predict(self, context, model_input, params=None):
            return self.model.predict(model_input["sequence"])

    path = sm.save(model, tmp_path / "model.similia")
    logged = mlflow.pyfunc.log_model(name="file", python_model=OfFile(), artifacts={"model": str(path)}, **ALONE)
    frame = pandas.DataFrame({"sequence": X[1::2]})
    found = mlflow.pyfunc.load_model(logged.model_uri).predict(frame)
    assert list(found) == model.predict(X[1::2]).tolist()


@pytest.mark.ecosystem
@pytest.mark.filterwarnings("ignore")  # of Dask
def test_a_cluster_of_two_processes_gives_the_same_files_and_arrays(model, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    bags = pytest.importorskip("dask.bag", reason="Dask is not installed")
    encoder = model[:-1]
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "300s"}),  # a busy machine starts processes slowly
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len({*client.run(lambda: __import__("os").getpid()).values()}) == 2
        encode_stream(encoder, X, tmp_path / "codes.npy", chunk=10, workers=client)
        predict_stream(model, X, tmp_path / "labels.csv", chunk=10, workers=client)
        lazy = encoder.transform(bags.from_sequence(X, npartitions=5))
        np.testing.assert_array_equal(lazy.compute(), encoder.transform(X))
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), encoder.transform(X))
    labels = [line.split(",")[1] for line in (tmp_path / "labels.csv").read_text().split()[1:]]
    assert labels == [str(label) for label in model.predict(X)]


@pytest.mark.ecosystem
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_igraph_and_networkx_are_equal(directed):
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    edges, labels, weights = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)], list("CNOC"), [1.0, 2.0, 0.5, 3.0, 1.0]
    theirs = igraph.Graph(n=5, edges=edges, directed=directed)
    theirs.vs["label"] = [*labels, "H"]
    theirs.es["weight"] = weights
    theirs.es["label"] = list("ssdss")
    twin = (networkx.DiGraph if directed else networkx.Graph)()
    twin.add_nodes_from((i, {"label": label}) for i, label in enumerate([*labels, "H"]))
    twin.add_edges_from((u, v, {"weight": w, "label": b}) for (u, v), w, b in zip(edges, weights, "ssdss", strict=True))
    a, b = sm.objects.as_graphs([theirs]), sm.objects.as_graphs([twin])
    for name in ("node_offsets", "indptr", "indices", "edge_weights", "node_labels", "edge_labels"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    np.testing.assert_allclose(sm.kernels.WeisfeilerLehman(normalize=True)([theirs], [twin]), [[1]])
