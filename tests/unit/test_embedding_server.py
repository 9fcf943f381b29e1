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
