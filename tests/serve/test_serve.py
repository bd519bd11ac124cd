"""The service: answers equal those of the library, bad requests, batches, limits, reload, the command."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from typer.testing import CliRunner

import similia as sm
from similia.cli.app import app
from similia.serve.service import Refused, Service, pieces

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from similia.serve.connection import configuration  # noqa: E402
from similia.serve.web import (  # noqa: E402
    Batches,
    Full,
    Limits,
    Metrics,
    _Bodies,
    application,
)

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abc"), RNG.integers(4, 12))) for _ in range(60)]
LABELS = ["a" if word.count("a") > len(word) / 3 else "b" for word in WORDS]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "model.similia"
    sm.save(sm.learn.KNeighborsClassifier(sm.distances.Levenshtein(), 3).fit(WORDS, LABELS), path)
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "words.index"
    search = sm.SimilaritySearch(sm.MinHash(sm.kernels.Spectrum(2), 256, random_state=0)).fit(WORDS)
    search.save(path)
    return path


def test_a_folder_without_a_search_is_refused_in_a_sentence(tmp_path):
    codes = sm.search.HammingIndex(8).fit(np.zeros((2, 1), np.uint8)).save(tmp_path / "codes")
    with pytest.raises(ValueError, match="holds the codes of a HammingIndex without the encoder that made them; give"):
        Service(codes)
    with pytest.raises(ValueError, match="holds no search; give a folder that"):
        Service(tmp_path)


class Answer(NamedTuple):
    status_code: int
    text: str

    def json(self):
        return json.loads(self.text)


class Client:
    """Sends requests to an application that a thread serves."""

    def __init__(self, app, limits=None):
        self.server = uvicorn.Server(uvicorn.Config(app, **configuration(limits or Limits(), port=0)))
        self.thread = threading.Thread(target=self.server.run)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {}, encode_chunked=False)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())
        finally:
            connection.close()

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, json=None, content=None, headers=None):
        return self.request("POST", path, dumps(json) if content is None else content, headers)


def dumps(value):
    return json.dumps(value).encode()


def client(path, limits=None, token=None):
    return Client(application(Service(path), limits, token), limits)


def test_answers_are_those_of_the_library(model, index):
    knn, search = sm.load(model), sm.load(index)
    with client(model) as web:
        assert [r["label"] for r in web.post("/predict", json={"objects": WORDS}).json()["results"]] == [
            str(label) for label in knn.predict(WORDS)
        ]
        scores = web.post("/predict", json={"objects": WORDS[:5], "scores": True}).json()["results"]
        np.testing.assert_allclose([[*r["scores"].values()] for r in scores], knn.predict_proba(WORDS[:5]))
        explained = web.post("/explain", json={"object": WORDS[0], "other": WORDS[1]}).json()["results"][0]
        assert explained["value"] == sm.explain(knn, WORDS[0], WORDS[1]).value
    with client(index) as web:
        found = web.post("/neighbors", json={"objects": WORDS[:7], "n_neighbors": 4}).json()["results"]
        distances, ids = search.kneighbors(WORDS[:7], 4)
        assert [r["ids"] for r in found] == ids.tolist()
        assert [r["distances"] for r in found] == distances.tolist()
        codes = web.post("/encode", json={"objects": WORDS[:3]}).json()["results"]
        expected = np.asarray(search.encoder_.transform(WORDS[:3]))
        assert [bytes.fromhex(r["code"]) for r in codes] == [row.tobytes() for row in expected]
        health = web.get("/health").json()
        assert (health["objects"], health["kind"]) == (60, "strings")
        assert web.post("/predict", json={"objects": WORDS[:1]}).status_code == 404


@pytest.mark.parametrize("classes", [3, 4])
def test_decisions_between_pairs_of_classes_are_no_scores_of_classes(classes, tmp_path):
    steps = sm.KernelFeatures(sm.kernels.Spectrum(2)), SVC(kernel="linear", decision_function_shape="ovo")
    sm.save(make_pipeline(*steps).fit(WORDS, np.arange(len(WORDS)) % classes), tmp_path / "pairs.similia")
    with client(tmp_path / "pairs.similia") as web:
        assert web.post("/predict", json={"objects": WORDS[:2]}).status_code == 200
        answer = web.post("/predict", json={"objects": WORDS[:2], "scores": True})
    assert answer.status_code == 422
    assert "no scores of classes, only of pairs of classes" in answer.text


def test_vectors_series_and_molecules(tmp_path):
    X = RNG.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    models = {"vectors": sm.learn.KNeighborsClassifier(sm.distances.FromFunction(_apart), 1).fit(X, y)}
    series = [RNG.normal(size=n).cumsum() for n in RNG.integers(8, 14, 30)]
    models["series"] = sm.learn.KNeighborsClassifier(sm.distances.DTW(), 1).fit(series, [len(s) > 10 for s in series])
    path = tmp_path / "model.similia"
    sm.save(models["series"], path)
    with client(path) as web:
        found = web.post("/predict", json={"objects": [s.tolist() for s in series[:6]]}).json()["results"]
        assert [r["label"] for r in found] == [len(s) > 10 for s in series[:6]]
        for wrong in ([1.0, "x"], ["1", "2"], [1.0, "2"], [10**20, "2"]):
            bad = web.post("/predict", json={"objects": [wrong]})
            assert (bad.status_code, bad.json()["error"].startswith("objects[0] holds")) == (422, True)
        for fields, start in (
            ({"object": "x"}, "'object' is a string, expected lists"),
            ({"object": [1.0], "other": ["1"]}, "'other' holds something else than numbers"),
        ):
            assert web.post("/explain", json=fields).json()["error"].startswith(start)
        huge = web.post("/predict", content=b'{"objects": [[1.0], [1%s]]}' % (b"0" * 400))
        assert huge.status_code == 422
        assert huge.json()["error"].startswith("objects[1] holds a number too large for float64")
    pytest.importorskip("rdkit")
    smiles = ["C" * i + "O" * (i % 2) for i in range(1, 30)]
    graphs = sm.objects.from_smiles(smiles)
    encoder = sm.Nystroem(sm.kernels.WeisfeilerLehman(), 10, random_state=0).fit(graphs)
    sm.save(encoder, path)
    with client(path) as web:
        found = web.post("/encode", json={"objects": smiles[:4]}).json()["results"]
        np.testing.assert_allclose([r["vector"] for r in found], encoder.transform(graphs[:4]), rtol=1e-6)


@pytest.mark.parametrize("kind", ["clusters", "outliers", "map"])
def test_models_without_labels_take_the_objects_to_which_they_were_fitted(kind, tmp_path):
    series = [RNG.normal(size=n).cumsum() for n in RNG.integers(8, 14, 30)]
    model = {
        "clusters": sm.KernelKMeans(sm.distances.DTW(), 2, random_state=0),
        "outliers": sm.OutlierDetector(sm.distances.DTW(), novelty=True),
        "map": sm.SimilarityMap(sm.distances.DTW(), random_state=0),
    }[kind].fit(series)
    sm.save(model, tmp_path / "model.similia")
    service = Service(tmp_path / "model.similia")
    assert service.held.kind == "series"
    operation, key = ("encode", "vector") if kind == "map" else ("predict", "label")
    found = service.answer(operation, [s.tolist() for s in series[:6]])
    expected = model.transform(series[:6]) if kind == "map" else model.predict(series[:6])
    np.testing.assert_allclose([one[key] for one in found], expected, rtol=1e-6)


def _apart(x, y):
    return float(np.abs(x - y).sum())


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"\xff\xfe", 400, "the body is no UTF-8"),
        (b"{", 400, "the body is no JSON"),
        (b'{"objects": [NaN]}', 400, "the body holds NaN"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b"[1]", 422, "the body is a list, expected a JSON object"),
        (b"{}", 422, "the field 'objects' is missing"),
        (b'{"objects": "abc"}', 422, "'objects' is a string, expected a list"),
        (b'{"objects": []}', 422, "'objects' is an empty list"),
        (b'{"objects": ["a"], "k": 3}', 422, "unknown field 'k'; expected objects, scores"),
        (b'{"objects": ["a", 3]}', 422, "objects[1] is a number, expected strings"),
        (b'{"objects": ["a", null]}', 422, "objects[1] is null, expected strings"),
        (b'{"objects": ["a"], "scores": 1}', 422, "'scores' is a number, expected true or false"),
        (b'{"objects": [' + b'"a",' * 1000 + b'"a"]}', 413, "holds 1001 objects, expected at most 1000"),
    ],
)
def test_bad_requests_get_one_sentence(model, body, status, words):
    with client(model) as web:
        answer = web.post("/predict", content=body)
        assert answer.status_code == status
        assert words in answer.json()["error"]
        assert "\n" not in answer.json()["error"]
        assert web.post("/predict", json={"objects": ["abc"]}).status_code == 200


@pytest.mark.parametrize("k", [0, -1, 10_001, True, "3", 61])
def test_a_bad_number_of_neighbours(index, k):
    with client(index) as web:
        answer = web.post("/neighbors", json={"objects": ["abc"], "n_neighbors": k})
        assert answer.status_code == 422
        assert "n_neighbors" in answer.json()["error"]


def test_large_and_slow_bodies_are_refused(model):
    with client(model, Limits(max_bytes=10_000, read_timeout=0.5)) as web:
        assert web.post("/predict", content=b" " * 10_001).status_code == 413
        with socket.create_connection(("127.0.0.1", web.port), timeout=30) as link:
            link.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            with suppress(ConnectionError):  # once refused, the rest is not read
                for _ in range(100):
                    link.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n")
            assert link.recv(1000).startswith(b"HTTP/1.1 413")
        with socket.create_connection(("127.0.0.1", web.port), timeout=30) as link:
            link.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
            assert link.recv(1000).startswith(b"HTTP/1.1 408")
        assert web.post("/predict", json={"objects": ["abc"]}).status_code == 200


def _answer(link):
    """Return the status and the content of an answer that ends with the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while part := link.recv(2**16):
            found += part
    head, _, content = found.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert (b"retry-after: 1" in head.lower()) == (b" 503 " in head)
    return int(head.split()[1]), json.loads(content)["error"]


def test_many_unfinished_bodies_take_bounded_memory_and_leave_room_for_small_requests(model):
    limits = Limits(max_bytes=2**20, max_total_bytes=2**21, read_timeout=4)
    with ExitStack() as stack:
        web = stack.enter_context(client(model, limits))
        part = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b" " * 700_000
        links = [stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=30)) for _ in range(12)]
        with ThreadPoolExecutor(12) as pool:
            for sent in [pool.submit(link.sendall, part) for link in links]:
                with suppress(ConnectionError):  # once refused, the rest is not read
                    sent.result()
        deadline = time.monotonic() + 3
        while (held := _metric(web.get("/metrics").text, "similia_body_bytes")) < 2 * 10**6 - 2**18:
            assert time.monotonic() < deadline
        assert held <= limits.max_total_bytes
        assert web.post("/predict", json={"objects": ["abc"]}).status_code == 200  # not shut out
        status, sentence = zip(*map(_answer, links), strict=True)
        assert sorted(status) == [408] * 3 + [503] * 9
        refused = sentence[status.index(503)]
        assert refused.startswith("the bodies of other requests hold ")
        assert refused.endswith(" bytes; try again in a second")
        assert web.post("/predict", content=b'{"objects": ["abc"]}' + b" " * 900_000).status_code == 200
        assert _metric(web.get("/metrics").text, "similia_body_bytes") == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3 * 2**16)), max_size=40))
def test_the_bytes_of_all_bodies_are_bounded_and_small_bodies_are_never_refused(parts):
    bodies, sizes = _Bodies(2**18), [0] * 5
    with ExitStack() as stack:
        grow = [stack.enter_context(bodies.body()) for _ in sizes]
        for i, more in parts:
            counted = [max(0, size - 2**16) for size in sizes]
            others = sum(counted) - counted[i]
            fits = others == 0 or others + max(0, sizes[i] + more - 2**16) <= 2**18
            with nullcontext() if fits else pytest.raises(Refused, match=f"other requests hold {others} bytes"):
                grow[i](sizes[i] + more)
            sizes[i] += more * fits
            assert bodies.held == sum(max(0, size - 2**16) for size in sizes)
    assert bodies.held == 0


def test_a_body_that_is_alone_may_have_all_bytes_of_a_request(model):
    with client(model, Limits(max_total_bytes=1000)) as web:
        assert web.post("/predict", content=b'{"objects": ["abc"]}' + b" " * 900_000).status_code == 200


@pytest.mark.parametrize(
    ("sent", "late", "refused"),
    [
        (b"", b"", True),
        (b"", b"POST /predict HTTP/1.1\r\nHost: " + b"x" * 1000, True),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /health", True),  # the second request of a connection
        (b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b" " * 1000, False),  # body not needed
    ],
)
def test_clients_that_never_finish_a_request_are_cut_off(model, sent, late, refused):
    with client(model, Limits(read_timeout=0.5)) as web:
        with socket.create_connection(("127.0.0.1", web.port)) as link:
            link.sendall(sent)
            link.settimeout(0.1)
            found, part, deadline = b"", b" ", time.monotonic() + 20
            with suppress(ConnectionError):
                while part:
                    assert time.monotonic() < deadline
                    link.sendall(late[:1])  # a letter at a time, which does not start the time anew
                    late = late[1:]
                    with suppress(TimeoutError):
                        part = link.recv(2**16)
                        found += part
            assert found.startswith(b"HTTP/1.1 200") == bool(sent)
            assert (b"HTTP/1.1 408 " in found) == refused
            assert found.endswith(b'{"error": "the headers did not arrive within 0.5 seconds"}') == refused
        assert web.post("/predict", json={"objects": ["abc"]}).status_code == 200


def test_a_client_that_does_not_read_its_answer_is_cut_off(model):
    with client(model, Limits(timeout=0.5)) as web, socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        link.settimeout(20)
        link.connect(("127.0.0.1", web.port))
        link.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 5000)
        connections, deadline = web.server.server_state.connections, time.monotonic() + 20
        while not any(one.flow.write_paused for one in list(connections)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while connections:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_connections_above_the_maximum_are_refused_and_the_others_served(model):
    with ExitStack() as stack:
        web = stack.enter_context(client(model, Limits(max_connections=3)))
        links = [stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=20)) for _ in range(5)]
        for link in links:
            link.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        for link in links[:3]:
            assert link.recv(1000).startswith(b"HTTP/1.1 200")
        for link in links[3:]:
            assert _answer(link) == (503, "3 connections are open, which is the maximum; try again in a second")
        links[0].close()
        for _ in range(100):
            if (status := web.get("/health").status_code) == 200:
                break
        assert status == 200


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"objects": ["a" * 20, "b" * 21]}, "objects[1] has 21 letters, expected at most 20; send a part of it"),
        ({"objects": [[1] * 21]}, "objects[0] has 21 numbers, expected at most 20; send a part of it"),
        ({"objects": [[[1, 2]] * 11]}, "objects[0] has 22 numbers, expected at most 20; send a part of it"),
        ({"objects": [{"n_nodes": 21}]}, "objects[0] has 21 nodes or arcs, expected at most 20; send a part of it"),
        (
            {"objects": [{"edge_index": [[0] * 21, [0] * 21], "n_nodes": 1}]},
            "objects[0] has 21 nodes or arcs, expected at most 20; send a part of it",
        ),
    ],
)
def test_objects_that_are_too_large_are_refused(model, request_, sentence):
    with pytest.raises(Refused) as refused:
        Service(model).options("predict", request_, 10, 20)
    assert (refused.value.status, str(refused.value)) == (413, sentence)


def test_both_objects_of_an_explanation_may_be_too_large(model, index):
    service = Service(model)
    for request, start in (
        ({"object": "a" * 21, "other": "b"}, "'object' has 21 letters"),
        ({"object": "a", "other": "b" * 21}, "'other' has 21 letters"),
    ):
        with pytest.raises(Refused, match=start):
            service.options("explain", request, 10, 20)
    with pytest.raises(Refused, match="'n_neighbors' is 10000 for each of 101 objects, expected at most 1000000 neigh"):
        Service(index).options("neighbors", {"objects": ["a"] * 101, "n_neighbors": 10_000}, 1000)


@given(st.lists(st.text("ab", max_size=9), min_size=1, max_size=200), st.integers(1, 12))
@example(["a"] * 200, 1000)
def test_pieces_are_the_request_and_small(objects, largest):
    found = list(pieces(objects, largest))
    assert [one for _, _, piece in found for one in piece] == objects
    for start, size, piece in found:
        assert piece == objects[start : start + len(piece)]
        assert size == sum(map(len, piece))
        assert 1 <= len(piece) <= 64
        assert size <= largest or len(piece) == 1


def test_a_request_in_pieces_has_the_answers_and_errors_of_one_in_one_piece(index, model):
    with client(index, Limits(max_size=12)) as web:
        found = web.post("/neighbors", json={"objects": WORDS, "n_neighbors": 4}).json()["results"]
        assert [one["ids"] for one in found] == sm.load(index).kneighbors(WORDS, 4)[1].tolist()
        assert _metric(web.get("/metrics").text, "similia_batches_total") > 10
    with client(model) as web:
        answer = web.post("/predict", json={"objects": ["ab"] * 100 + [3]})
        assert answer.json()["error"] == "objects[100] is a number, expected strings"


def test_a_long_request_stops_at_its_time_out_and_lets_others_in_between(model, monkeypatch):
    service, calls = Service(model), []

    def slow(operation, objects, **_):
        calls.append(objects)
        time.sleep(0.1)
        return [{"label": one} for one in objects]

    monkeypatch.setattr(service, "answer", slow)
    limits = Limits(max_size=10, timeout=2.0)
    with Client(application(service, limits), limits) as web, ThreadPoolExecutor(1) as pool:
        long = pool.submit(web.post, "/predict", json={"objects": ["a" * 10] * 900})
        while not calls:
            time.sleep(0.01)
        for _ in range(3):
            assert web.post("/predict", json={"objects": ["b"]}).status_code == 200
        assert long.result().status_code == 503
        assert "no answer within 2 seconds; send fewer or smaller objects" in long.result().text
        time.sleep(0.3)
        n_calls = len(calls)
        assert n_calls < 30
        time.sleep(0.3)
        assert len(calls) == n_calls  # nothing goes on for a request that nobody waits for


def test_all_pieces_of_a_request_are_answered_by_what_was_held_at_its_start(tmp_path):
    path = tmp_path / "model.similia"
    sm.save(sm.learn.KNeighborsClassifier(sm.distances.Levenshtein(), 1).fit(WORDS, ["old"] * 60), path)
    service = Service(path)
    answer, limits = service.answer, Limits(max_size=12)

    def then_swapped(*arguments, **options):
        found = answer(*arguments, **options)
        sm.save(sm.learn.KNeighborsClassifier(sm.distances.Levenshtein(), 1).fit(WORDS, ["new"] * 60), path)
        service.refresh()
        return found

    service.answer = then_swapped
    with Client(application(service, limits), limits) as web:
        found = [web.post("/predict", json={"objects": WORDS}).json()["results"] for _ in range(2)]
    assert found == [[{"label": "old"}] * 60, [{"label": "new"}] * 60]


def test_token(model):
    with client(model, token="tell") as web:
        for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "tell"}):
            answer = web.post("/predict", json={"objects": ["abc"]}, headers=headers)
            assert answer.status_code == 401
        right = {"Authorization": "Bearer tell"}
        assert web.post("/predict", json={"objects": ["abc"]}, headers=right).status_code == 200
        assert web.get("/health").status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_an_empty_token_is_refused(model, workers, monkeypatch):
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: pytest.fail("the service started"))
    done = CliRunner().invoke(app, ["serve", str(model), "--workers", str(workers), "--token", ""])
    assert str(done.exception).startswith("the token is empty; ")
    with pytest.raises(ValueError, match="the token is empty; "):
        application(Service(model), token="")


@pytest.mark.parametrize("token", ["café", "two\nlines", "space "])
def test_a_token_that_headers_cannot_carry_is_refused(model, token):
    with pytest.raises(ValueError, match="the token holds a character that headers cannot carry; use ASCII"):
        application(Service(model), token=token)


def test_a_timeout_without_end_is_refused(model):
    done = CliRunner().invoke(app, ["serve", str(model), "--timeout", "inf"])
    assert str(done.exception) == "--timeout must be a finite number of seconds, got inf"


def test_a_service_below_a_prefix(model):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    with Client(Starlette(routes=[Mount("/words", application(Service(model)))])) as web:
        assert web.post("/words/predict", json={"objects": [WORDS[0]]}).json()["results"] == [{"label": LABELS[0]}]
        assert 'operation="predict",status="200"} 1' in web.get("/words/metrics").text


def test_half_characters_come_back_as_they_were_sent(tmp_path):
    path, word = tmp_path / "model.similia", "ab\ud800"
    sm.save(sm.recipes.nyshd(sm.kernels.Spectrum(2), n_bits=64, random_state=0).fit(WORDS, LABELS), path)
    with client(path) as web:
        answer = web.post("/explain", json={"object": word, "other": word})
        assert answer.status_code == 200
        assert {part["name"] for part in answer.json()["results"][0]["parts"]} == {"ab", "b\ud800"}


def test_an_answer_that_fails_is_counted_as_failed(model, monkeypatch):
    service = Service(model)
    monkeypatch.setattr(service, "answer", lambda *_, **__: [{"label": float("nan")}])
    with Client(application(service)) as web:
        assert web.post("/predict", json={"objects": ["abc"]}).status_code == 500
        assert 'operation="predict",status="500"} 1' in web.get("/metrics").text


def test_metrics_and_description(model):
    with client(model) as web:
        web.post("/predict", json={"objects": ["abc", "bca"]})
        web.post("/predict", content=b"{")
        text = web.get("/metrics").text
        assert 'similia_requests_total{operation="predict",status="200"} 1' in text
        assert 'similia_requests_total{operation="predict",status="400"} 1' in text
        assert 'similia_request_seconds_bucket{operation="predict",le="+Inf"} 2' in text
        assert "similia_objects_total 2" in text
        described = web.get("/openapi.json").json()
        assert set(described["paths"]) == {"/predict", "/explain"}
        assert "POST /predict" in web.get("/").text
        assert web.get("/nothing").status_code == 404
        assert web.get("/predict").status_code == 405


def _metric(text, name):
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["note", "write", "show", "die"])), max_size=30))
def test_metrics_of_several_processes_never_fall_and_miss_nothing_that_was_written(steps):
    with tempfile.TemporaryDirectory() as folder:
        metrics, shown, noted, own = {name: Metrics(folder) for name in "abc"}, 0, 0, Counter()
        for name, step in steps:
            if step == "note":
                metrics[name].note("predict", 200, 0.1)
                noted, own[name] = noted + 1, own[name] + 1
            elif step == "write":
                metrics[name].write()
            elif step == "die":
                metrics[name].write()
                metrics[name] = Metrics(folder)  # the one that replaces it
            else:
                before, shown = shown, _requests(metrics[name].text())
                assert max(before, own[name]) <= shown <= noted
        for one in metrics.values():
            one.write()
        assert _requests(metrics["a"].text()) == noted


def _requests(text):
    return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("similia_requests_total"))


def test_a_service_writes_its_metrics_for_others_without_being_asked(model, tmp_path):
    with Client(application(Service(model), metrics_folder=str(tmp_path))) as web:
        web.post("/predict", json={"objects": ["abc"]})
        deadline = time.monotonic() + 20
        while not any("predict" in path.read_text() for path in tmp_path.glob("*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_gauges_of_a_process_that_died_do_not_count(tmp_path):
    living, dead = Metrics(str(tmp_path)), Metrics(str(tmp_path))
    for one in (living, dead):
        one.counts["similia_waiting_objects"][""] = 3
        one.counts["similia_objects_total"][""] = 5
        one.write()
    assert _metric(living.text(), "similia_waiting_objects") == 6
    os.utime(dead.path, (time.time() - 60, time.time() - 60))
    assert _metric(living.text(), "similia_waiting_objects") == 3
    assert _metric(living.text(), "similia_objects_total") == 10


def test_a_warning_is_logged_once(model, caplog, monkeypatch):
    service = Service(model)

    def warns(objects):
        warnings.warn("strange objects", stacklevel=1)
        return ["a"] * len(objects)

    monkeypatch.setattr(service.held.model, "predict", warns)
    with caplog.at_level("WARNING", "similia"):
        for _ in range(3):
            assert service.answer("predict", ["abc"]) == [{"label": "a"}]
    assert caplog.text.count("strange objects") == 1


def test_pickles_are_refused(tmp_path):
    import pickle

    path = tmp_path / "model.similia"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"model\.similia"):
        Service(path)


def test_waiting_requests_are_joined_and_an_error_reaches_its_own_only():
    calls = []
    go = threading.Event()

    def run(key, items):
        calls.append((key, list(items)))
        go.wait(10)
        if "bad" in items:
            raise Refused(422, "bad")
        return [(key, item) for item in items]

    async def main():
        batches = Batches(run, most_waiting=6, most_joined=4)
        tasks = [asyncio.create_task(batches.submit("p", [0]))]
        await asyncio.sleep(0.05)
        for key, items in (("p", [1, 2]), ("q", [3]), ("p", ["bad"]), ("p", [5])):
            tasks.append(asyncio.create_task(batches.submit(key, items)))
        await asyncio.sleep(0.05)
        with pytest.raises(Full):
            await batches.submit("p", [6, 7])
        go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        batches.close()
        return found

    found = asyncio.run(main())
    assert found[0] == [("p", 0)]
    assert found[1] == [("p", 1), ("p", 2)]
    assert found[2] == [("q", 3)]
    assert isinstance(found[3], Refused)
    assert found[4] == [("p", 5)]
    assert calls[0] == ("p", [0])
    assert calls[1] == ("p", [1, 2, "bad", 5])


def test_large_requests_are_not_joined_and_those_begun_are_always_admitted():
    calls, go = [], threading.Event()

    def run(_, items):
        calls.append(list(items))
        go.wait(10)
        return items

    async def main():
        batches = Batches(run, most_waiting=3, most_size=10)
        tasks = [asyncio.create_task(batches.submit("p", [0]))]
        await asyncio.sleep(0.05)
        for items, size in (([1], 6), ([2], 6), ([3], 4)):
            tasks.append(asyncio.create_task(batches.submit("p", items, size)))
        await asyncio.sleep(0.05)
        with pytest.raises(Full):
            await batches.submit("p", [4])
        tasks.append(asyncio.create_task(batches.submit("p", [5], admitted=True)))
        await asyncio.sleep(0.05)
        go.set()
        found = await asyncio.gather(*tasks)
        batches.close()
        return found

    assert asyncio.run(main()) == [[0], [1], [2], [3], [5]]
    assert calls == [[0], [1, 3, 5], [2]]


def test_an_index_that_grows_is_read_again(tmp_path):
    path = tmp_path / "words.index"
    search = sm.SimilaritySearch(sm.MinHash(sm.kernels.Spectrum(2), 256, random_state=0)).fit(WORDS)
    search.save(path)
    service = Service(path)
    assert not service.refresh()
    from similia.search.on_disk import SearchFolder

    SearchFolder.open(path).add(["cabbage"])
    assert service.refresh()
    assert service.answer("neighbors", ["cabbage"], n_neighbors=1)[0]["ids"] == [60]


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _post(port, operation, content):
    url = f"http://127.0.0.1:{port}/{operation}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(content).encode()), timeout=60) as answer:
        return json.load(answer)["results"]


def _wait(port, done):
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            assert done.poll() is None, done.stderr.read()
            time.sleep(0.1)
    raise AssertionError("the service did not start")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by Linux' /proc")
def test_a_worker_that_dies_is_replaced(model):
    port = _free_port()
    command = [sys.executable, "-m", "similia.cli", "serve", str(model), "--port", str(port), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            _wait(port, server)
            before = _children(server.pid)
            os.kill(before[-1], signal.SIGKILL)
            for _ in range(600):
                if before[-1] not in (now := _children(server.pid)) and len(now) == len(before):
                    break
                time.sleep(0.1)
            else:
                raise AssertionError("no new worker")
            _wait(port, server)
            shown = 0
            for n in range(1, 11):
                assert _post(port, "predict", {"objects": [WORDS[0]]}) == [{"label": LABELS[0]}]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    before, shown = shown, _requests(answer.read().decode())
                assert before <= shown <= n  # whichever worker answers
            time.sleep(2.5)  # until all have written
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                assert _requests(answer.read().decode()) == 10
        finally:
            os.kill(server.pid, signal.SIGTERM)
            server.wait(60)


def _children(process):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == process and fields[0] != "Z":
                found.append(int(path.parent.name))
    return sorted(found)


def test_the_command_answers_under_load_and_stops_gracefully(model):
    port = _free_port()
    command = [sys.executable, "-m", "similia.cli", "serve", str(model), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert _wait(port, server)["operations"] == ["predict", "explain"]
            expected = [{"label": str(label)} for label in sm.load(model).predict(WORDS)]
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda word: _post(port, "predict", {"objects": [word]})[0], WORDS))
            assert found == expected
        finally:
            os.kill(server.pid, signal.SIGTERM)
            server.wait(30)
        assert server.returncode in (0, -signal.SIGTERM)
