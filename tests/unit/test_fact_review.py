"""What waits in review: administrators see it by id, its writer may still change it, nobody finds it among others."""

from typing import Any

import pytest
from support.fakes import FakeClock, fake_memory
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactNotFound, NotFound
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes, listing, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.sealing import Vault
from factbook.usecases.provenance.tracing import trace_provenance

START, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
ADMIN = principal("t", "ann", admin=True)
WRITER = principal("t", "bot", kind="agent", writes=["p"])
COLLEAGUE = principal("t", "bea", writes=["p"])


class Review:
    """A fact of which the second revision waits; its writer is an agent of the project."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.memory = fake_memory(self.clock)
        payload = Payload(text="1", content_hash="", size=1, content_ref="blob://s3/b/f")
        self.memory.blobs.put("blob://s3/b/f", b"1")
        first = open_fact(
            "f", "note", Scope(tenantId="t", projectId="p"), FactChanges(), payload, ADMIN, START
        )
        before = Head(first)
        self.memory.facts.create(before)
        closed, second = supersede(first, FactChanges(), payload, WRITER, LATER)
        waiting = second.model_copy(update={"review": "pending"})
        self.memory.facts.advance(before, closed, Head(waiting, 2))
        self.clock.instant = "2026-01-03T00:00:00.000Z"

    def reads_by_id(self, who: Principal) -> dict[str, Any]:
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        return {
            "get": lambda: reading.get_fact(self.memory, who, "f"),
            "version": lambda: reading.get_fact(self.memory, who, "f", version=2),
            "an earlier version": lambda: reading.get_fact(self.memory, who, "f", version=1),
            "asOf": lambda: reading.get_fact(self.memory, who, "f", as_of=START),
            "revisions": lambda: reading.list_revisions(self.memory, who, "f"),
            "content": lambda: reading.get_content_url(self.memory, who, "f"),
            "provenance": lambda: trace_provenance(self.memory, FakeLog(), vault, who, "f"),
        }

    def changes(self, who: Principal) -> dict[str, Any]:
        new, said = Operation("key", "body"), FactChanges()
        return {
            "supersede": lambda: changes.supersede_fact(self.memory, who, new, "f", said, Content(2)),
            "delete": lambda: changes.delete_fact(self.memory, who, new, "f"),
            "upload": lambda: changes.changeable_head(self.memory, who, "f"),
        }


READS = list(Review().reads_by_id(ADMIN))
CHANGES = list(Review().changes(ADMIN))


@pytest.mark.parametrize("road", READS)
def test_an_administrator_reads_by_id_what_waits(road: str) -> None:
    assert Review().reads_by_id(ADMIN)[road]()


@pytest.mark.parametrize("road", READS)
@pytest.mark.parametrize("who", [WRITER, COLLEAGUE], ids=["its writer", "a colleague"])
def test_nobody_else_reads_it_by_id_not_even_its_writer(road: str, who: Principal) -> None:
    with pytest.raises(FactNotFound):
        Review().reads_by_id(who)[road]()


@pytest.mark.parametrize(
    "who", [ADMIN, WRITER, COLLEAGUE], ids=["an administrator", "its writer", "a colleague"]
)
def test_it_stands_in_nobodys_list_now_or_as_of_an_earlier_time(who: Principal) -> None:
    here = Review()
    for as_of in (None, START, LATER):
        assert listing.list_facts(here.memory, who, listing.Query(as_of=as_of), 25).facts == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("who", [ADMIN, WRITER], ids=["an administrator", "its writer"])
def test_its_writer_and_an_administrator_may_change_it(change: str, who: Principal) -> None:
    assert Review().changes(who)[change]()


@pytest.mark.parametrize("change", CHANGES)
def test_for_anybody_elses_change_it_is_not_found(change: str) -> None:
    with pytest.raises(NotFound):
        Review().changes(COLLEAGUE)[change]()
