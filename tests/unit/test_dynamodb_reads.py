"""Reads that take several calls: pages are asked for when they are needed, a batch is whole or is refused."""

from itertools import islice
from typing import Any

import pytest
from support.emulators import Aws
from support.sdk_calls import recorded

from factbook.adapters.dynamodb.client import from_item, to_item
from factbook.adapters.dynamodb.reads import BATCH_ATTEMPTS, KEYS_AT_ONCE, batch_get, query_items
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import StorageUnavailable, Throttled


@pytest.fixture
def filled(moto: Aws, tenant: str) -> Any:
    """A client, a table and one partition with seven items."""
    client, table = moto.client("dynamodb"), moto.settings.log_table
    for sequence in range(7):
        client.put_item(TableName=table, Item=to_item({"pk": tenant, "sk": sequence}))
    return client, table, tenant


def sequences(filled: Any, **options: Any) -> Any:
    client, table, tenant = filled
    return (item["sk"] for item in query_items(client, table, "pk = :pk", {":pk": tenant}, **options))


def test_a_query_gives_the_items_of_all_its_pages_in_order(filled: Any) -> None:
    assert list(sequences(filled)) == list(range(7))
    assert list(sequences(filled, Limit=2)) == list(range(7))
    assert list(sequences(filled, Limit=3, ScanIndexForward=False)) == [6, 5, 4, 3, 2, 1, 0]


def test_a_page_is_asked_for_when_its_first_item_is(filled: Any) -> None:
    for wanted, pages in ((1, 1), (3, 1), (4, 2), (7, 3)):
        with recorded(filled[0]) as calls:
            assert len(list(islice(sequences(filled, Limit=3), wanted))) == wanted
        assert calls.operations == ["Query"] * pages
        assert all(call.params["ConsistentRead"] for call in calls.made)


def test_a_page_that_the_store_does_not_give_is_an_error_of_the_reader(filled: Any) -> None:
    client = filled[0]
    rest = sequences(filled, Limit=2)
    assert [next(rest), next(rest)] == [0, 1]

    def break_down(**_: Any) -> None:
        raise StorageUnavailable

    client.meta.events.register("before-call.dynamodb.Query", break_down)
    try:
        with pytest.raises(StorageUnavailable):
            next(rest)
    finally:
        client.meta.events.unregister("before-call.dynamodb.Query", break_down)


class Strict:
    """BatchGetItem as AWS documents it: at most 100 keys, none twice; each call holds the last `held_back` keys back."""

    def __init__(self, held_back: int = 0, gives_at_last: bool = True) -> None:
        self.held_back = held_back
        self.gives_at_last = gives_at_last
        self.calls: list[int] = []

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - as the SDK names it
        ((table, asked),) = RequestItems.items()
        assert asked["ConsistentRead"]
        named = [(key["pk"]["S"], key["sk"]["N"]) for key in asked["Keys"]]
        assert 1 <= len(named) <= KEYS_AT_ONCE
        assert len(set(named)) == len(named)
        self.calls.append(len(named))
        given = max(len(named) - self.held_back, int(self.gives_at_last))
        left = asked["Keys"][given:]
        answer: dict[str, Any] = {"Responses": {table: asked["Keys"][:given]}}
        return answer | ({"UnprocessedKeys": {table: asked | {"Keys": left}}} if left else {})


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody waits here; how long they would have."""
    made: list[float] = []
    monkeypatch.setattr("time.sleep", made.append)
    return made


def keys(count: int) -> list[tuple[str, str | int]]:
    return [("p", number) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "calls"), [(0, []), (1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])]
)
def test_a_batch_asks_for_a_hundred_keys_a_call_and_for_none_without_keys(
    count: int, calls: list[int]
) -> None:
    store = Strict()
    assert [item["sk"] for item in batch_get(store, "t", keys(count))] == list(range(count))
    assert store.calls == calls


def test_a_key_that_is_named_twice_is_asked_for_once() -> None:
    store = Strict()
    assert len(batch_get(store, "t", [*keys(60), *keys(60)])) == 60
    assert store.calls == [60]


def test_what_the_store_held_back_is_asked_for_again_after_a_pause(pauses: list[float]) -> None:
    store = Strict(held_back=2)
    found = batch_get(store, "t", keys(4))
    assert sorted(item["sk"] for item in found) == [0, 1, 2, 3]
    assert store.calls == [4, 2, 1]
    assert pauses[0] == 0
    assert all(0 <= pause <= 0.02 * 2**attempt for attempt, pause in enumerate(pauses))


def test_a_store_that_goes_on_holding_back_is_too_busy() -> None:
    store = Strict(held_back=100, gives_at_last=False)
    with pytest.raises(Throttled):
        batch_get(store, "t", keys(4))
    assert store.calls == [4] * BATCH_ATTEMPTS


def test_a_pause_spreads_over_a_span_that_doubles_and_is_none_before_the_first_try() -> None:
    assert full_jitter(0, 1.0) == 0
    for attempt in range(1, 6):
        drawn = [full_jitter(attempt, 0.5) for _ in range(300)]
        assert max(drawn) <= 0.5 * 2**attempt
        assert len(set(drawn)) > 200
        assert min(drawn) < 0.5 * 2**attempt / 2 < max(drawn)


def test_plain_values_come_back_from_their_attribute_values() -> None:
    assert from_item(to_item({"a": 1, "b": "x", "c": None})) == {"a": 1, "b": "x"}
