"""The client of Bedrock against a real HTTP server that speaks InvokeModel, reached as an endpoint of the SDK."""

import json
import logging
import math
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from factbook.adapters.retrieval.bedrock_embeddings import AT_ONCE, BedrockEmbedder
from factbook.adapters.retrieval.embedding_batches import PLAIN_WORD, Prefixes
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable
from factbook.wiring import clients

TITAN, COHERE = "amazon.titan-embed-text-v2:0", "cohere.embed-multilingual-v3"


class Bedrock(ThreadingHTTPServer):
    """Answers `answer(model, body)`: (status, body, code of the error)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.requests = answer, []

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = unquote(self.path).removeprefix("/model/").removesuffix("/invoke")
        self.server.requests.append((model, body, self.headers["Authorization"]))
        status, answer, code = self.server.answer(model, body)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if code:
            self.send_header("x-amzn-ErrorType", code)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def vector_of(text):
    return [float(len(text)), 1.0]


def good(model, body):
    if model == TITAN:
        return 200, {"embedding": vector_of(body["inputText"]), "inputTextTokenCount": 1}, ""
    return 200, {"embeddings": {"float": [vector_of(text) for text in body["texts"]]}, "id": "x"}, ""


def refusing(*texts):
    """Takes all but these texts, as the service does what is too long for a model."""

    def answer(model, body):
        said = body.get("texts", [body.get("inputText")])
        return (
            (400, {"message": f"bad {said}"}, "ValidationException")
            if set(said) & set(texts)
            else good(model, body)
        )

    return answer


def failing(code, status=400):
    return lambda model, body: (status, {"message": f"no: {body}"}, code)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    clients.sdk_session.cache_clear()  # it keeps the credentials that it found first
    yield
    clients.sdk_session.cache_clear()
    clients.bedrock_client.cache_clear()


@pytest.fixture
def embedder(monkeypatch):
    def make(bedrock, model=TITAN, prefixes=None, retries=0, timeout=5.0):
        clients.bedrock_client.cache_clear()
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://127.0.0.1:{bedrock.server_port}")
        return BedrockEmbedder(model, partial(clients.bedrock_client, retries, timeout), prefixes)

    return make


@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_vectors_come_in_the_order_of_the_texts_with_length_one(embedder, model):
    texts = ["a" * n for n in range(1, 100)]
    with Bedrock(good) as bedrock:
        made = embedder(bedrock, model).embed(texts, dimensions=2)

    assert made == [pytest.approx((n / math.hypot(n, 1), 1 / math.hypot(n, 1))) for n in range(1, 100)]
    assert {asked for asked, _, _ in bedrock.requests} == {model}
    assert all(
        signed.startswith("AWS4-HMAC-SHA256 Credential=AKIATEST/") for _, _, signed in bedrock.requests
    )


def test_titan_is_asked_for_one_text_a_request_with_the_dimensions_of_the_index(embedder):
    with Bedrock(good) as bedrock:
        embedder(bedrock).embed(["one"])
        embedder(bedrock).embed(["one"], dimensions=2)

    assert [body for _, body, _ in bedrock.requests] == [
        {"inputText": "one", "normalize": True},
        {"inputText": "one", "normalize": True, "dimensions": 2},
    ]


def test_cohere_is_asked_for_many_and_told_what_they_are_for(embedder):
    with Bedrock(good) as bedrock:
        model = embedder(bedrock, COHERE)
        model.embed(["one", "two"])
        model.embed(["three"], purpose="query")

    documents, query = (body for _, body, _ in bedrock.requests)
    assert (documents["texts"], documents["input_type"]) == (["one", "two"], "search_document")
    assert (query["texts"], query["input_type"]) == (["three"], "search_query")


def test_the_older_answer_of_cohere_is_understood(embedder):
    with Bedrock(lambda _, body: (200, {"embeddings": [[3.0, 4.0] for _ in body["texts"]]}, "")) as bedrock:
        assert embedder(bedrock, COHERE).embed(["one"]) == [(0.6, 0.8)]


def test_a_prefix_stands_before_what_is_asked_and_what_is_to_be_found(embedder):
    with Bedrock(good) as bedrock:
        made = embedder(bedrock, prefixes=Prefixes("query:", "passage:"))
        made.embed(["a"])
        made.embed(["a"], purpose="query")
    assert [body["inputText"] for _, body, _ in bedrock.requests] == ["passage: a", "query: a"]


@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_a_text_that_is_refused_is_a_final_failure_of_it_alone(embedder, model):
    with Bedrock(refusing("poison")) as bedrock:
        made = embedder(bedrock, model).embed(["a", "poison", "b"])
        assert [isinstance(each, EmbeddingFailure) and each.refused for each in made] == [False, True, False]
        (alone,) = embedder(bedrock, model).embed(["poison"])
    assert alone.refused


@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_no_text_is_to_blame_where_every_text_is_refused(embedder, model):
    with Bedrock(refusing("a", "b", PLAIN_WORD)) as bedrock, pytest.raises(EmbeddingsUnavailable):
        embedder(bedrock, model).embed(["a", "b"])


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ResourceNotFoundException", "ModelErrorException"]
)
def test_a_model_that_may_not_be_asked_is_unavailable_and_says_how(embedder, code):
    with Bedrock(failing(code)) as bedrock, pytest.raises(EmbeddingsUnavailable, match=code):
        embedder(bedrock).embed(["a"])


@pytest.mark.parametrize(
    "failure",
    [("ThrottlingException", 429), ("ServiceUnavailableException", 503), ("ModelTimeoutException", 408)],
)
def test_what_may_pass_is_tried_again_and_no_more_often_than_asked(embedder, failure):
    with Bedrock(failing(*failure)) as bedrock, pytest.raises(EmbeddingsUnavailable):
        embedder(bedrock, retries=1).embed(["a"])
    assert len(bedrock.requests) == (1 if failure[1] == 408 else 2)


@pytest.mark.parametrize(
    "answer",
    [b"<html>", {}, {"embeddings": {}}, {"embeddings": []}, {"embeddings": {"float": [[1.0]] * 3}}, []],
)
@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_an_answer_without_the_embeddings_is_unavailable(embedder, model, answer):
    with Bedrock(lambda *_: (200, answer, "")) as bedrock, pytest.raises(EmbeddingsUnavailable):
        embedder(bedrock, model).embed(["a", "b"])


def test_a_vector_that_no_index_can_hold_is_a_failure_of_its_text_and_no_refusal(embedder):
    with Bedrock(lambda *_: (200, {"embedding": [0.0, 0.0]}, "")) as bedrock:
        (made,) = embedder(bedrock).embed(["a"])
    assert isinstance(made, EmbeddingFailure)
    assert not made.refused


def test_who_waits_for_a_query_waits_no_longer_than_its_time(embedder):
    given_up = threading.Event()
    in_vain = []

    def hangs(model, body):
        in_vain.append(given_up.wait(60))
        return good(model, body)

    with Bedrock(hangs) as bedrock:
        with pytest.raises(EmbeddingsUnavailable, match="out of time"):
            embedder(bedrock, timeout=90.0).embed(["a"], within=0.2)
        given_up.set()
    assert False not in in_vain  # who asked was told before the model gave in


def test_neither_a_text_nor_a_key_reaches_a_log_or_an_error(embedder, caplog):
    caplog.set_level(logging.INFO)
    with Bedrock(failing("AccessDeniedException")) as bedrock, pytest.raises(EmbeddingsUnavailable) as raised:
        embedder(bedrock).embed(["private words"])
    said = f"{caplog.text} {raised.value!r} {raised.value.__context__ if not raised.value.__suppress_context__ else ''}"
    assert "private words" not in said
    assert "s3cr3t" not in said


def test_no_text_that_cohere_is_sent_is_longer_than_it_takes(embedder):
    """It answers ValidationException to more than 2,048 characters, whatever `truncate` says."""

    def strict(model, body):
        too_long = any(len(text) > 2_048 for text in body["texts"])
        return (
            (400, {"message": "expected maxLength: 2048"}, "ValidationException")
            if too_long
            else good(model, body)
        )

    with Bedrock(strict) as bedrock:
        (made,) = embedder(bedrock, COHERE, Prefixes(document="passage:")).embed(["é" * 9_000])
    assert isinstance(made, tuple)


def test_what_failed_leaves_nothing_behind_it_to_be_asked(embedder):
    """Requests of a batch that is given up would stand in the way of the next one's."""
    failed = threading.Event()

    def answer(model, body):
        if body["inputText"] == "0":
            return failing("AccessDeniedException")(model, body)
        failed.wait(20)
        return good(model, body)

    with Bedrock(answer) as bedrock:
        made = embedder(bedrock)
        with pytest.raises(EmbeddingsUnavailable):
            made.embed([str(n) for n in range(64)])
        failed.set()
        made._pool.shutdown(wait=True)
    assert len(bedrock.requests) <= 3 * AT_ONCE
