import http.client
import json
import queue
import socket

import pytest

from factbook.adapters.retrieval.openai_embeddings import EmbeddingSettings, OpenAICompatibleEmbedder
from factbook.ports.retrieval.embeddings import EmbeddingFailure
from factbook_local.embedder import DIMENSIONS, MODEL, EmbeddingServer


@pytest.fixture(scope="module")
def embedder():
    with EmbeddingServer() as server:
        yield OpenAICompatibleEmbedder(EmbeddingSettings(server.url, MODEL))


def _cosine(left, right):
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_texts_close_in_meaning_have_vectors_close_in_angle(embedder):
    cat, kitten, shares = embedder.embed(["a small cat", "a young kitten", "share prices fell"], DIMENSIONS)

    assert _cosine(cat, kitten) > 0.6 > 0.3 > _cosine(cat, shares)


def test_a_vector_does_not_depend_on_the_rest_of_its_batch(embedder):
    alone = embedder.embed(["how to reach the customer"])
    together = embedder.embed(["x" * 5_000, "how to reach the customer", ""])

    assert together[1] == alone[0]
    assert not any(isinstance(vector, EmbeddingFailure) for vector in together)


def test_an_answer_waits_for_no_acknowledgement_of_its_head():
    at_once = queue.Queue()

    class Watched(EmbeddingServer):
        def finish_request(self, request, client_address):
            super().finish_request(request, client_address)
            at_once.put(request.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with Watched() as server:
        connection = http.client.HTTPConnection(*server.server_address, timeout=60)
        connection.request(
            "POST", "/v1/embeddings", json.dumps({"input": "a small cat"}), {"Connection": "close"}
        )
        assert len(json.load(connection.getresponse())["data"]) == 1
        connection.close()
        assert at_once.get(timeout=60) == 1
