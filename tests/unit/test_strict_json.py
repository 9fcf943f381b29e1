"""JSON that means one thing: what is refused, and that everything else comes back equal."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.canonical import content_canonical
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import MAX_DEPTH, NoJson, check_depth, dump_json, parse_json, parse_parts

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


def identical(one: Any, other: Any) -> bool:
    """Equal in value, type, sign of zero and key order."""
    return repr(one) == repr(other)


@given(values)
def test_every_value_comes_back_identical(value: Any) -> None:
    assert identical(parse_json(dump_json(value)), value)


@given(values)
def test_texts_that_python_writes_are_read_alike(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert identical(parse_json(text), value)
        assert identical(parse_json(text.encode()), value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "[1,]", "{'a':1}", "nul", "01", "+1", ".5", "1.", "0x1", "1_000", '"\t"', '"a', "[1 2]", "\ufeff1",
        "NaN", "Infinity", "-Infinity", '{"a":NaN}', "1e400", "-1e400",
        '{"a":1,"a":1}', '{"a":1,"b":{"c":1,"\\u0063":2}}',
        r'"\ud800"', r'"\udc00\ud800"', r'{"\ud83d":1}', r'["\ude00"]', "9" * 5000,
    ],
)  # fmt: skip
def test_what_two_readers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_json(text)


@pytest.mark.parametrize("raw", [b'"\xff"', b'"\xed\xa0\x80"', b"\xfe\xff\x00\x31", b'"\xc0\xaf"'])
def test_bytes_that_are_no_utf_8_are_refused(raw: bytes) -> None:
    with pytest.raises(BadInput):
        parse_json(raw)


def test_a_whole_pair_of_surrogate_escapes_is_one_character() -> None:
    assert parse_json(r'"\ud83d\ude00"') == "😀"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_ends_at_32_levels(opening: str, closing: str) -> None:
    def text(levels: int) -> str:
        return opening * levels + "1" + closing * levels

    check_depth(parse_json(text(MAX_DEPTH)))
    with pytest.raises(BadInput):
        check_depth(parse_json(text(MAX_DEPTH + 1)))


@pytest.mark.parametrize("text", [nested(100_000), nested(100_000, '{"a":', "}"), "[" * 100_000])
def test_absurd_nesting_is_refused_and_does_not_end_the_process(text: str) -> None:
    with pytest.raises(BadInput):
        check_depth(parse_json(text))


@given(
    st.integers()
    | st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False))
)
def test_a_content_hash_is_over_one_form_whatever_the_order_of_keys(value: Any) -> None:
    shuffled = dict(reversed(value.items())) if isinstance(value, dict) else value
    assert content_canonical(shuffled) == content_canonical(value)


def test_the_canonical_form_writes_every_integer_in_full_and_sorts_by_utf_16() -> None:
    value = {"\ufb33": 2**63 - 1, "😀": [1.0, -0.0, 1e-7, 1e21], "a": "é\n"}
    text = '{"a":"é\\n","😀":[1,0,1e-7,1e+21],"\ufb33":9223372036854775807}'
    assert content_canonical(value).decode() == text
    assert math.isclose(json.loads(text)["😀"][2], 1e-7)


# -- a list of which each item is judged alone

FLAWED = [
    "NaN",
    "[-Infinity]",
    "1e400",
    '{"a":1,"a":2}',
    r'"\ud800"',
    r'{"\udc00":1}',
    nested(100_000),
    "9" * 5000,
]
AWKWARD = [
    '"]}"',
    '"[{,"',
    r'"\\"',
    r'"\""',
    '{"items":[1,[2,{"items":[]}]]}',
    "[]",
    "{}",
    "-0.0",
    '"items"',
    " 1 ",
]


@pytest.mark.parametrize("flaw", FLAWED, ids=lambda flaw: flaw[:20])
def test_a_flawed_item_stands_as_its_refusal_and_the_others_as_their_values(flaw: str) -> None:
    texts = [*AWKWARD, flaw, *AWKWARD]
    around = '{"other": {"items": [7]}, "items" : [' + " ,\n".join(texts) + '], "last": ["items", "]"]}'
    for text in (around, around.encode()):
        found = parse_parts(text, "items")
        refusal = found["items"].pop(len(AWKWARD))
        assert isinstance(refusal, BadInput)
        assert identical(found["items"], [parse_json(item) for item in AWKWARD * 2])
        assert (found["other"], found["last"]) == ({"items": [7]}, ["items", "]"])


@given(st.dictionaries(st.text(), values, max_size=3), st.lists(values, max_size=4), st.integers(0, 4))
def test_a_flaw_changes_nothing_of_what_is_around_it(
    around: dict[str, Any], items: list[Any], place: int
) -> None:
    place = min(place, len(items))
    with_mark = around | {"items": [*items[:place], "the flaw", *items[place:]]}
    text = dump_json(with_mark).replace('"the flaw"', "NaN")
    found = parse_parts(text, "items")
    assert isinstance(found["items"][place], BadInput)
    found["items"][place] = "the flaw"
    assert identical(found, with_mark)


@pytest.mark.parametrize(
    "text",
    [
        '{"items":[1,NaN,]}', '{"items":[NaN]', '{"items":[NaN,{"a" 1}]}', '{"items":[NaN]}]',
        '{"items" [NaN]}', '{"items":[NaN,"]}', b'{"items":[NaN,"\xff"]}', "",
    ],
)  # fmt: skip
def test_what_is_no_json_cannot_be_told_apart(text: str | bytes) -> None:
    with pytest.raises(NoJson):
        parse_parts(text, "items")


@pytest.mark.parametrize(
    "text",
    [
        '{"items":[1],"a":NaN}', '{"items":[NaN],"a":NaN}', '{"items":[NaN],"items":[1]}', '["items",[NaN]]', "[[NaN]]",
        '{"items":NaN}', '{"items":[' + "1," * 100 + "NaN]}", '{"items":[NaN', '{"items":[NaN}', '["items",[NaN]', '{"items":{"a":NaN}}', '{"a":{"items":[NaN]}}', nested(100_000),
    ],
)  # fmt: skip
def test_a_flaw_around_the_list_refuses_the_whole(text: str) -> None:
    with pytest.raises(BadInput):
        parse_parts(text, "items")


@pytest.mark.parametrize("ending", ['\\"', "\\", '\\\\"', "["])
def test_an_unclosed_string_in_a_part_that_is_too_deep_is_read_once(ending: str) -> None:
    """In a process that can be ended: a search that begins again at every quote of 4 MB takes hours."""
    script = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from factbook.domain.strict_json import NoJson, parse_parts\n"
        f"text = '{{\"items\":[' + '[' * 100_000 + '\"' + {ending!r} * (4_000_000 // {len(ending)})\n"
        "try:\n"
        "    parse_parts(text.encode(), 'items')\n"
        "except NoJson:\n"
        "    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "refused\n"
