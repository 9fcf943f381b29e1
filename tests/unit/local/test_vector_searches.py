"""Searches of the local vector index: what was read of an item is kept for as long as the item is as it was."""

from typing import Any

import pytest
from ministack.services import dynamodb

from factbook_local.dataplane.emulator import _search_one_partition

INDEX = {
    "IndexName": "by-container",
    "VectorAttribute": {"AttributeName": "v"},
    "Dimensions": 2,
    "Projection": {"ProjectionType": "ALL"},
}
TABLE = {"pk_name": "pk", "sk_name": "sk"}


def item(*vector: str, **more: str) -> dict[str, Any]:
    texts = {name: {"S": value} for name, value in more.items()}
    return {"pk": {"S": "a"}, "sk": {"S": "b"}, "v": {"L": [{"N": number} for number in vector]}, **texts}


@pytest.fixture
def entry_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    read = []
    original = dynamodb._vector_entry
    monkeypatch.setattr(dynamodb, "_vector_entry", lambda *args: read.append(1) or original(*args))
    for name in ("_search_vectors", "_vector_condition_terms"):
        monkeypatch.setattr(dynamodb, name, getattr(dynamodb, name))
    _search_one_partition(dynamodb)

    def look(what: Any) -> tuple[Any, int]:
        read.clear()
        return dynamodb._vector_entry(TABLE, INDEX, what), len(read)

    return look


def test_an_item_is_read_once(entry_of: Any) -> None:
    one = item("1", "0")
    assert entry_of(one) == (one, 1)
    assert entry_of(one) == (one, 0)


@pytest.mark.parametrize(
    "change", [{"v": {"L": [{"N": "0"}, {"N": "1"}]}}, {"pk": {"S": "other"}}, {"added": {"S": "x"}}]
)
def test_an_item_that_was_changed_where_it_is_is_read_again(entry_of: Any, change: dict[str, Any]) -> None:
    one = item("1", "0")
    entry_of(one)
    one |= change
    assert entry_of(one) == (one, 1)


def test_an_item_that_lost_an_attribute_is_read_again(entry_of: Any) -> None:
    one = item("1", "0", more="x")
    entry_of(one)
    del one["more"]
    assert entry_of(one) == (one, 1)


def test_an_item_without_a_vector_is_in_no_index(entry_of: Any) -> None:
    assert entry_of(None) == (None, 0)
    assert entry_of(item("1"))[0] is None
