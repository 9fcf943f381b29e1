"""The built-in model, as it comes with its package."""

import math

import pytest

from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable
from factbook.settings import BUILT_IN_MODEL
from factbook_search.built_in_embeddings import AT_ONCE, DIMENSIONS, BuiltInEmbedder

EMBEDDER = BuiltInEmbedder(BUILT_IN_MODEL)


def cosine(one: object, other: object) -> float:
    assert isinstance(one, tuple)
    assert isinstance(other, tuple)
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_every_text_has_a_vector_of_length_one_an_empty_one_and_a_long_one_too() -> None:
    texts = [
        "",
        " ",
        "tea",
        "😀",
        "\x00",
        "x" * 20_000,
        "word " * 800,
        *(f"text {n}" for n in range(AT_ONCE)),
    ]
    made = EMBEDDER.embed(texts, DIMENSIONS)

    assert len(made) == len(texts)
    for vector in made:
        assert isinstance(vector, tuple)
        assert len(vector) == DIMENSIONS
        assert math.hypot(*vector) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("The kitten sleeps on the sofa", "a cat naps on the couch", "the invoice is due on Friday"),
        ("Die Rechnung ist am Freitag fällig", "the invoice is due on Friday", "a cat naps on the couch"),
        ("猫がソファで寝ている", "a cat naps on the couch", "the invoice is due on Friday"),
    ],
)
def test_what_means_the_same_is_nearer_in_other_words_and_languages(text: str, near: str, far: str) -> None:
    asked, same, other = EMBEDDER.embed([text, near, far])
    assert cosine(asked, same) > cosine(asked, other) + 0.1


def test_a_vector_does_not_depend_on_what_else_is_embedded() -> None:
    (alone,) = EMBEDDER.embed(["the lake was cold"])
    *_, among = EMBEDDER.embed(["tea", "x " * 500, "the lake was cold"])
    assert cosine(alone, among) == pytest.approx(1, abs=1e-5)


def test_it_answers_for_its_own_model_alone_and_within_its_time() -> None:
    with pytest.raises(EmbeddingsUnavailable):
        EMBEDDER.embed(["tea"], model="all-MiniLM-L6-v2")
    with pytest.raises(EmbeddingsUnavailable):
        EMBEDDER.embed(["tea"], 384)
    with pytest.raises(EmbeddingsUnavailable, match="out of time"):
        EMBEDDER.embed(["tea"], within=-1)
