"""Canonical texts: one for each value, the same however often it is written, ordered as RFC 8785 says."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.canonical import SAFE_INTEGER, content_canonical, log_canonical
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SAFE_FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: abs(x) < SAFE_INTEGER or abs(x) >= 1e21
)
SCALARS = st.none() | st.booleans() | st.integers(1 - SAFE_INTEGER, SAFE_INTEGER - 1) | SAFE_FLOATS | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


def utf16_order(value: object) -> object:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return {key: utf16_order(value[key]) for key in keys}
    return [utf16_order(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_the_canonical_text_reads_back_to_a_value_with_the_same_text(value: object) -> None:
    text = log_canonical(value)
    again = parse_json(text)
    assert again == value
    assert log_canonical(again) == text


@given(VALUES)
def test_two_texts_of_one_value_have_one_canonical_text(value: object) -> None:
    spaced = json.dumps(value, indent=1, ensure_ascii=True)
    assert log_canonical(parse_json(spaced)) == log_canonical(value)


@given(st.dictionaries(TEXT, TEXT | st.integers(-9, 9) | st.booleans() | st.none(), max_size=6))
def test_without_floats_it_is_compact_json_in_utf16_order(value: dict[str, object]) -> None:
    expected = json.dumps(utf16_order(value), ensure_ascii=False, separators=(",", ":"))
    assert log_canonical(value) == expected
    assert content_canonical(value).decode() == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_kept_exactly_or_refused(number: float) -> None:
    ambiguous = SAFE_INTEGER <= abs(number) < 1e21
    if ambiguous:
        with pytest.raises(BadInput, match="as a string"):
            log_canonical([number])
    else:
        assert json.loads(log_canonical([number])) == [number]


@pytest.mark.parametrize(
    "number", [SAFE_INTEGER, -SAFE_INTEGER, 2**63, -(10**30), math.inf, -math.inf, math.nan]
)
def test_a_number_that_readers_disagree_about_is_refused_at_any_depth(number: float) -> None:
    for value in (number, [number], {"a": [{"b": number}]}):
        with pytest.raises(BadInput):
            log_canonical(value)


def test_the_deepest_value_is_taken_and_the_next_refused() -> None:
    deep: object = 1
    for _ in range(32):
        deep = [deep]
    assert log_canonical(deep) == "[" * 32 + "1" + "]" * 32
    with pytest.raises(BadInput, match="32"):
        log_canonical([deep])


@given(st.integers())
def test_a_facts_integers_are_written_in_full(number: int) -> None:
    assert content_canonical({"n": [number]}) == b'{"n":[%d]}' % number


@given(VALUES)
def test_a_facts_text_is_the_logs_text_where_both_exist(value: object) -> None:
    assert content_canonical(value).decode() == log_canonical(value)
