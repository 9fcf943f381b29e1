"""Event filtering by the documented comparison operators."""

import pytest

from factbook_local.pumps.filters import passes

RECORD = {
    "eventName": "INSERT",
    "dynamodb": {
        "NewImage": {"state": {"S": "Open"}, "n": {"N": "12.5"}, "tags": {"SS": ["a", "b"]}},
        "Keys": {"pk": {"S": "user|7"}},
    },
}


def image(**rules: object) -> dict[str, object]:
    return {"dynamodb": {"NewImage": rules}}


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": ["INSERT"]},
        {"eventName": ["MODIFY", "INSERT"]},
        {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "user|"}]}}}},
        {"dynamodb": {"Keys": {"pk": {"S": [{"suffix": "|7"}]}}}},
        image(state={"S": [{"equals-ignore-case": "oPEN"}]}),
        image(state={"S": [{"anything-but": ["Closed", "Gone"]}]}),
        image(state={"S": [{"anything-but": {"prefix": "Cl"}}]}),
        image(n={"N": [{"numeric": [">", 12, "<=", 12.5]}]}),
        image(n={"N": [{"numeric": ["=", 12.5]}]}),
        image(tags={"SS": ["b"]}),
        image(absent=[{"exists": False}]),
        image(state={"S": [{"exists": True}]}),
        {"$or": [{"eventName": ["REMOVE"]}, image(state={"S": ["Open"]})]},
    ],
)
def test_a_pattern_passes_what_it_describes(pattern: dict[str, object]) -> None:
    assert passes(RECORD, [pattern])


@pytest.mark.parametrize(
    "pattern",
    [
        {"eventName": ["REMOVE"]},
        {"eventName": ["INSERT"], "eventSource": ["aws:sqs"]},
        {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "org|"}]}}}},
        {"dynamodb": {"OldImage": {"state": {"S": ["Open"]}}}},
        image(state={"S": [{"anything-but": "Open"}]}),
        image(absent={"S": [{"anything-but": "Open"}]}),
        image(n={"N": [{"numeric": [">", 12.5]}]}),
        image(state={"S": [{"numeric": [">", 0]}]}),
        image(tags={"SS": ["c"]}),
        image(absent=[{"exists": True}]),
        image(state={"S": [{"exists": False}]}),
        {"$or": [{"eventName": ["REMOVE"]}, {"eventName": ["MODIFY"]}]},
    ],
)
def test_a_pattern_drops_what_it_does_not_describe(pattern: dict[str, object]) -> None:
    assert not passes(RECORD, [pattern])


def test_one_pattern_of_several_is_enough_and_none_lets_all_pass() -> None:
    assert passes(RECORD, [{"eventName": ["REMOVE"]}, {"eventName": ["INSERT"]}])
    assert passes(RECORD, [])


def test_true_is_no_number_and_null_is_a_value() -> None:
    assert not passes({"a": 1}, [{"a": [True]}])
    assert passes({"a": None}, [{"a": [None]}])
    assert not passes({}, [{"a": [None]}])


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="wildcard"):
        passes(RECORD, [{"eventName": [{"wildcard": "I*"}]}])
