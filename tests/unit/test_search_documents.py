import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.domain.filters import AllOf, AnyOf, Equals, Missing, Not, OneOf, Range, evaluate
from factbook.domain.retrieval.documents import (
    CHUNK,
    OVERLAP,
    Chunk,
    Put,
    Tombstone,
    change_problem,
    check_filter,
    chunks,
    document_id,
    vector_problem,
)
from factbook.domain.retrieval.tokenizer import Tokenizer

PLAIN = Tokenizer(stem=lambda word: word, stop_words=frozenset())
PARTS = st.text(max_size=300) | st.sampled_from(
    ["a|b", "a%7Cb", "%", "~a", "%7Ea", "~", "a", "é" * 150, "x" * 256]
)


@given(st.tuples(PARTS, PARTS, st.integers(0, 99)), st.tuples(PARTS, PARTS, st.integers(0, 99)))
def test_no_two_documents_share_an_id_and_none_is_too_long(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    assert (document_id(*one) == document_id(*other)) == (one == other)
    assert len(document_id(*one).encode()) <= 440


@given(st.text(alphabet="ab \n", max_size=3_000), st.integers(20, 200))
def test_chunks_cover_a_text_and_stay_within_their_size(text: str, size: int) -> None:
    pieces = list(chunks(text, size, size // 4))
    at = 0
    for piece in pieces:
        found = text.index(piece, max(0, at - size // 4))
        assert found <= at
        at = max(at, found + len(piece))
        assert len(piece) <= size
    assert at == len(text)
    assert len(pieces) <= 1 + 2 * len(text) // size + 1


@given(
    st.lists(st.text(alphabet="abc東京é-_", min_size=1, max_size=OVERLAP // 2 - 2), min_size=1, max_size=12),
    st.integers(0, 4_000),
)
def test_every_token_of_a_long_text_is_in_one_of_its_chunks(words: list[str], filler: int) -> None:
    text = ("x" * 50 + " ") * (filler // 51) + " ".join(words * 60)
    whole = set(PLAIN.document(text))
    assert whole <= {token for piece in chunks(text) for token in PLAIN.document(piece)}


def test_pairs_of_a_text_without_spaces_survive_every_cut() -> None:
    text = "".join(chr(0x4E00 + n % 20_000) for n in range(3 * CHUNK))
    assert set(PLAIN.document(text)) == {token for piece in chunks(text) for token in PLAIN.document(piece)}


def test_an_empty_text_is_one_empty_chunk() -> None:
    assert list(chunks("")) == [""]


def test_a_change_that_no_index_can_hold_says_why() -> None:
    def put(vector: tuple[float, ...] | None = None, **fields: str) -> Put:
        return Put("t", "r", 1, (Chunk("word", vector),), fields)

    assert change_problem(put((1.0, 2.0)), 2) is None
    assert change_problem(Tombstone("t", "r", 1), None) is None
    assert change_problem(put((1.0, 2.0)), 3) == "wrong-dimension"
    assert change_problem(put((1.0, 2.0)), None) == "no-vectors-here"
    assert change_problem(put(nonsense="x"), 2) == "unknown-field"
    assert change_problem(Put("t", "r", 1, (), {}), 2) == "no-chunks"
    assert vector_problem((0.0, -0.0), 2) == "zero-vector"
    assert vector_problem((1.0, float("nan")), 2) == "not-finite"


@pytest.mark.parametrize(
    "rule",
    [Equals("x", "y"), Range("type"), Equals("revision", "1"), OneOf("type", ("a", 1)), Missing("tokens")],
)
def test_a_filter_on_what_documents_do_not_have_is_an_error_wherever_it_stands(
    rule: Equals | OneOf | Range | Missing,
) -> None:
    for outer in (rule, Not(rule), AllOf((Missing("type"), rule)), AnyOf((Not(AllOf((rule,))),))):
        with pytest.raises(ValueError, match=r"filter|holds"):
            check_filter(outer)


def test_absence_equals_nothing_and_lies_in_no_range() -> None:
    assert not evaluate(Equals("type", "a"), {})
    assert evaluate(Not(Equals("type", "a")), {})
    assert not evaluate(Range("revision", lt=5), {})
    assert evaluate(Not(Range("revision", lt=5)), {})
    assert evaluate(Missing("subjects"), {"subjects": ()})
    assert not evaluate(Range("revision"), {})


def test_a_field_of_several_values_equals_each() -> None:
    fields = {"subjects": ("user:a", "user:b"), "revision": 3}
    assert evaluate(AllOf((Equals("subjects", "user:a"), Equals("subjects", "user:b"))), fields)
    assert evaluate(OneOf("subjects", ("x", "user:b")), fields)
    assert not evaluate(OneOf("subjects", ()), fields)
    assert evaluate(AllOf(), fields)
    assert not evaluate(AnyOf(), fields)
    assert evaluate(Range("revision", gte=3, lt=4), fields)
    assert not evaluate(Range("revision", gt=3), fields)
    assert not evaluate(Range("revision", lte=2), fields)
    assert not evaluate(Range("revision", lte=2, lt=9), fields)
