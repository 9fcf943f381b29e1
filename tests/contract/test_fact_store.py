"""The FactStore contract on the fake that other tests trust, on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.fakes import FakeFacts

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.dynamodb_items import head_item
from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook_local.dataplane.expiry import Expiry

from .fact_store import FactStoreContract

_TEXT = Payload(text='"x"', content_hash="sha256:x", size=3)


def test_what_has_to_go_is_stamped_so_that_dynamodb_removes_it(tenant: str) -> None:
    """A stamp of more than five years ago is not acted on: a fact kept for a day, changed ten years later."""
    writer = Principal(tenant, Actor(kind="user", id="ann"), admin=True)
    old, now = "2016-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"
    fact = open_fact("f1", "note", Scope(tenant_id=tenant), FactChanges(), _TEXT, writer, old)
    closed, following = supersede(fact, FactChanges(), _TEXT, writer, now)
    expired = {"expires_at": "2016-01-02T00:00:00.000Z"}
    expiry = Expiry({"facts": "ttl"})

    for gone in (following.model_copy(update=expired), closed.model_copy(update=expired)):
        item = to_item(head_item(Head(gone, 2)))
        table = {"TableName": "facts", "items": {"f1": {"h": item}}}
        expiry.watch(table, "f1", "h", item)
        assert [found[3] for found in expiry.due(times.epoch_ms(now) / 1000 + 60)] == [item]


class TestFakeFacts(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = FakeFacts()


class TestDynamoFacts(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        self.store = DynamoFacts(emulator.client("dynamodb"), emulator.settings.facts_table)
