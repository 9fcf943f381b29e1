"""The embeddings client against a real HTTP server that answers well, badly, slowly or not at all."""

import contextlib
import json
import logging
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from factbook.adapters.retrieval.embedding_batches import MAX_TEXTS, Prefixes
from factbook.adapters.retrieval.openai_embeddings import EmbeddingSettings, OpenAICompatibleEmbedder
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable

KEY = "sk-very-secret"


class Endpoint(ThreadingHTTPServer):
    """Answers each request with `answer(texts)`: (status, body, headers); `drip` seconds before each byte of a body."""

    daemon_threads = True

    def __init__(self, answer, drip=0.0):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.requests, self.drip = answer, [], drip
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), request))
        status, body, headers = self.server.answer(request["input"])
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not self.server.drip:
            self.wfile.write(text)
            return
        with contextlib.suppress(OSError):
            for byte in text:
                time.sleep(self.server.drip)
                self.wfile.write(bytes([byte]))

    def log_message(self, *_):
        pass


def _good(texts, vector_of=lambda text: [float(len(text)), 1.0]):
    data = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]
    return 200, {"data": data[::-1]}, {}


def _embedder(endpoint, **patience):
    return OpenAICompatibleEmbedder(
        EmbeddingSettings(endpoint.url, "m", KEY), **{"retries": 2, "timeout": 5, **patience}
    )


def test_vectors_come_in_the_order_of_the_texts_with_length_one():
    with Endpoint(_good) as endpoint:
        vectors = _embedder(endpoint).embed(["", "aaa"], dimensions=2)

    assert vectors[0] == (0.0, 1.0)
    assert vectors[1] == pytest.approx((3 / math.sqrt(10), 1 / math.sqrt(10)))


def test_a_request_names_the_model_the_path_and_the_key():
    with Endpoint(_good) as endpoint:
        _embedder(endpoint).embed(["a"])

    path, headers, body = endpoint.requests[0]
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "m", "input": ["a"], "encoding_format": "float"}


def test_a_model_that_wants_prefixes_gets_one_before_each_text_by_what_the_text_is_for():
    with Endpoint(_good) as endpoint:
        settings = EmbeddingSettings(endpoint.url, "e5", prefixes=Prefixes("query:", "passage:"))
        embedder = OpenAICompatibleEmbedder(settings)
        embedder.embed(["a", "b"])
        embedder.embed(["a"], purpose="query")

    assert [body["input"] for _, _, body in endpoint.requests] == [["passage: a", "passage: b"], ["query: a"]]


def test_many_texts_go_in_batches_and_large_ones_in_smaller_batches():
    with Endpoint(_good) as endpoint:
        assert len(_embedder(endpoint).embed(["x"] * (2 * MAX_TEXTS + 1))) == 2 * MAX_TEXTS + 1
        assert [len(body["input"]) for _, _, body in endpoint.requests] == [MAX_TEXTS, MAX_TEXTS, 1]
        endpoint.requests.clear()
        _embedder(endpoint).embed(["x" * 150_000] * 2)
        assert [len(body["input"]) for _, _, body in endpoint.requests] == [1, 1]


def test_no_texts_are_no_request():
    with Endpoint(_good) as endpoint:
        assert _embedder(endpoint).embed([]) == []
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([0.0, 0.0], "zero"),
        ([float("nan"), 1.0], "not finite"),
        ([float("inf"), 1.0], "not finite"),
        ([10**400, 1], "not finite"),
        ([1.0], "1 dimensions, the index 2"),
        ([1.0, 1.0, 1.0], "3 dimensions, the index 2"),
        ("AAAA", "not a list"),
        ([None, 1.0], "not a list"),
    ],
)
def test_a_vector_that_no_index_can_hold_is_a_failure_of_its_text_alone(vector, reason):
    with Endpoint(
        lambda texts: _good(texts, lambda text: vector if text == "bad" else [1.0, 0.0])
    ) as endpoint:
        good, bad = _embedder(endpoint).embed(["good", "bad"], dimensions=2)

    assert good == (1.0, 0.0)
    assert isinstance(bad, EmbeddingFailure)
    assert reason in bad.reason


def test_a_refused_text_does_not_take_the_rest_of_its_batch_with_it():
    def answer(texts):
        return (400, {"error": {}}, {}) if "poison" in texts else _good(texts)

    with Endpoint(answer) as endpoint:
        results = _embedder(endpoint).embed(["a", "poison", "b", "c"])

    assert [isinstance(result, EmbeddingFailure) for result in results] == [False, True, False, False]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_fault_is_retried(status):
    faults = [(status, {}, {"Retry-After": "0"}), (status, {}, {})]
    with Endpoint(lambda texts: faults.pop() if faults else _good(texts)) as endpoint:
        assert len(_embedder(endpoint).embed(["a"])) == 1
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        (503, {}, {}),
        (401, {}, {}),
        (307, {}, {"Location": "http://127.0.0.1:9/"}),
        (200, b"<html>", {}),
        (200, b"[" * 100_000, {}),
        (200, {"data": "x"}, {}),
        (200, {"data": [1]}, {}),
        (200, {"data": []}, {}),
        (200, {"data": [{"index": 5, "embedding": [1.0]}]}, {}),
        (200, {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}, {}),
    ],
)
def test_an_endpoint_that_does_not_answer_properly_is_unavailable(answer):
    with Endpoint(lambda texts: answer) as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=0).embed(["a"])


def test_a_slow_endpoint_and_a_closed_port_are_unavailable():
    slow = Endpoint(lambda texts: time.sleep(0.5) or _good(texts))
    with slow as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=0, timeout=0.05).embed(["a"])
    with pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=0).embed(["a"])


def test_who_has_little_time_waits_for_no_retry_after(monkeypatch):
    slept = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)
    busy = Endpoint(lambda _: (429, {}, {"Retry-After": "12"}))
    with busy as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=1).embed(["a"], within=10.0)
    assert len(busy.requests) == 2
    assert sum(slept) < 1
    patient = Endpoint(lambda _: (429, {}, {"Retry-After": "12"}))
    with patient as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=1).embed(["a"])  # indexing has the time
    assert sum(slept) >= 12


def test_an_endpoint_that_hangs_or_drips_is_given_up_when_the_time_is_over():
    hangs = Endpoint(lambda texts: time.sleep(1.0) or _good(texts))
    with hangs as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=1, timeout=30).embed(["a"], within=0.2)
    drips = Endpoint(lambda _: (200, b"[" * 20, {}), drip=0.1)
    with drips as endpoint, pytest.raises(EmbeddingsUnavailable, match="out of time"):
        _embedder(endpoint, retries=0, timeout=30).embed(["a"], within=0.5)


def test_a_batch_that_is_refused_is_not_taken_apart_when_the_time_is_over():
    refuses = Endpoint(lambda _: time.sleep(0.15) or (400, {}, {}))
    with refuses as endpoint, pytest.raises(EmbeddingsUnavailable):
        _embedder(endpoint, retries=0).embed(list("abcdefgh"), within=0.4)
    assert len(refuses.requests) < 8


def test_neither_the_key_nor_a_text_reaches_a_log_or_an_error(caplog):
    caplog.set_level(logging.DEBUG)
    settings = EmbeddingSettings("http://user:pass@127.0.0.1:9/v1", "m", KEY)
    with pytest.raises(EmbeddingsUnavailable) as raised:
        OpenAICompatibleEmbedder(settings, retries=1).embed(["private words"])

    said = f"{caplog.text} {raised.value!r} {settings!r} {settings.shown_url}"
    assert KEY not in said
    assert "private words" not in said
    assert "pass" not in f"{raised.value!r} {settings.shown_url}"


def test_a_key_that_names_a_secret_is_fetched():
    with Endpoint(_good) as endpoint:
        settings = EmbeddingSettings(endpoint.url, "m", "arn:aws:secretsmanager:eu-west-1:1:secret:k")
        OpenAICompatibleEmbedder(settings, secret=lambda arn: f"value-of-{arn[-1]}").embed(["a"])

    assert endpoint.requests[0][1]["Authorization"] == "Bearer value-of-k"


def test_a_secret_that_ends_with_a_line_is_the_key_before_it():
    with Endpoint(_good) as endpoint:
        settings = EmbeddingSettings(endpoint.url, "m", "arn:aws:secretsmanager:eu-west-1:1:secret:k")
        OpenAICompatibleEmbedder(settings, secret=lambda _: f"{KEY}\n").embed(["a"])
        assert endpoint.requests[0][1]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [f"{KEY}\nx", f"{KEY}\u65e5"])
def test_a_key_that_no_header_carries_is_in_no_error(key):
    settings = EmbeddingSettings("http://127.0.0.1:9/v1", "m", "arn:aws:secretsmanager:eu-west-1:1:secret:k")
    with pytest.raises(EmbeddingsUnavailable) as raised:
        OpenAICompatibleEmbedder(settings, secret=lambda _: key).embed(["a"])
    assert KEY not in str(raised.value)


def test_a_text_is_to_blame_only_while_the_endpoint_takes_others():
    def picky(texts):
        return (400, {}, {}) if any("poison" in text for text in texts) else _good(texts)

    with Endpoint(picky) as endpoint:
        embedder = OpenAICompatibleEmbedder(EmbeddingSettings(endpoint.url, "m"))
        for texts in (["poison"], ["poison", "more poison"]):
            assert all(isinstance(made, EmbeddingFailure) and made.refused for made in embedder.embed(texts))
        fine, poison = embedder.embed(["fine", "poison"])
    assert isinstance(fine, tuple)
    assert poison.refused


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_endpoint_that_refuses_whatever_it_is_asked_is_unavailable(status):
    with Endpoint(lambda texts: (status, {}, {})) as endpoint, pytest.raises(EmbeddingsUnavailable):
        OpenAICompatibleEmbedder(EmbeddingSettings(endpoint.url, "m")).embed(["a", "b", "c"])


def test_a_vector_that_no_index_can_hold_is_no_refusal():
    with Endpoint(lambda texts: _good(texts, lambda text: [0.0, 0.0])) as endpoint:
        (made,) = OpenAICompatibleEmbedder(EmbeddingSettings(endpoint.url, "m")).embed(["a"])
    assert isinstance(made, EmbeddingFailure)
    assert not made.refused


@pytest.mark.parametrize("error", [StorageUnavailable, Throttled])
def test_embeddings_are_unavailable_while_their_key_cannot_be_read(error):
    def secret(arn):
        raise error

    settings = EmbeddingSettings("http://127.0.0.1:9/v1", "m", "arn:aws:secretsmanager:eu-west-1:1:secret:k")
    with pytest.raises(EmbeddingsUnavailable, match="key"):
        OpenAICompatibleEmbedder(settings, secret=secret).embed(["a"])
