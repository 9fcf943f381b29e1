"""The ledger as it is exported: whole or in pages, oldest first, never a part that looks like all of it, and no name in it."""

from dataclasses import replace

import pytest
from support.principals import principal
from support.receipts import ANN
from support.replays import FakeErasures

from factbook.domain import wire
from factbook.domain.access.erasing import Selector
from factbook.domain.errors import PermissionDenied, RequestTooLarge
from factbook.ports.deadline import Deadline
from factbook.usecases.erasure.exporting import export_ledger, ledger_entry

ADMIN = principal("acme", "admin", admin=True)


@pytest.fixture
def store() -> FakeErasures:
    store = FakeErasures()
    for number in range(250):
        at = f"2026-01-{1 + number % 28:02d}T00:00:00.{number:03d}Z"
        store.kept[f"e{number}"] = replace(ANN, id=f"e{number}", created_at=at, requested_by='user:"' * 20)
    return store


def test_the_whole_ledger_is_one_answer_oldest_first(store: FakeErasures) -> None:
    page = export_ledger(store, ADMIN)

    times = [entry["createdAt"] for entry in page.data]
    assert (len(times), times, page.following) == (250, sorted(times), None)


def test_an_entry_says_nobodys_name_and_leaves_out_what_the_record_has_not() -> None:
    running = replace(ANN, selector=Selector("participant", "secret-name", "p"), status="running")

    assert ledger_entry(running) == {
        "id": ANN.id,
        "selectorKind": "participant",
        "selectorHmac": "ab" * 32,
        "keyId": "k1",
        "requestedBy": "user:admin",
        "status": "running",
        "createdAt": "2026-01-01T00:00:00.000Z",
    }
    bare = ledger_entry(
        replace(ANN, selector_hmac=None, key_id=None, completed_at="2026-01-01T00:01:00.000Z")
    )
    assert not {"selectorHmac", "keyId"} & bare.keys()
    assert bare["completedAt"] == "2026-01-01T00:01:00.000Z"


def test_pages_together_are_the_ledger(store: FakeErasures) -> None:
    data, position = [], None
    for _ in range(4):
        page = export_ledger(store, ADMIN, position, 70)
        data += page.data
        position = page.following
        if position is None:
            break

    assert (data, position) == (export_ledger(store, ADMIN).data, None)


def test_a_ledger_that_no_answer_holds_is_refused_to_who_did_not_ask_for_pages(
    store: FakeErasures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official client asks once, and would take a first page for all of it."""
    monkeypatch.setattr(wire, "ANSWER_BYTES", 60_000)
    with pytest.raises(RequestTooLarge, match="limit=100"):
        export_ledger(store, ADMIN)

    page = export_ledger(store, ADMIN, None, 10_000)

    assert 0 < len(page.data) < 250
    assert page.following is not None
    assert wire.value_bytes({"data": page.data}) <= 60_000


def test_time_that_is_over_ends_a_page_and_refuses_the_whole(store: FakeErasures) -> None:
    over = Deadline(0.0)
    with pytest.raises(RequestTooLarge):
        export_ledger(store, ADMIN, deadline=over)
    assert export_ledger(store, ADMIN, "240", 70, over).following is None, "what is the last is all of it"
    page = export_ledger(store, ADMIN, None, 10_000, over)
    assert (len(page.data), page.following) == (100, "100"), "a page always goes on"


def test_only_an_administrator_gets_it(store: FakeErasures) -> None:
    with pytest.raises(PermissionDenied):
        export_ledger(store, principal("acme", "ann"))
