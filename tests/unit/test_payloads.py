"""Large payloads: pending until a fact's write is acknowledged, kept from then on, whatever dies in between."""

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeBlobs, FakeClock, fake_memory
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact, FactChanges
from factbook.domain.scope import Scope
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts.payloads import Content, grant_upload
from factbook.usecases.facts.ports import FactPorts

ADMIN = principal("t", "ann", admin=True)
LARGE = Content("x" * 70_000)


@pytest.fixture
def memory() -> FactPorts:
    return fake_memory(FakeClock())


def blobs_of(memory: FactPorts) -> FakeBlobs:
    assert isinstance(memory.blobs, FakeBlobs)
    return memory.blobs


def write(ports: FactPorts, content: Content, key: str = "0") -> Fact:
    return facts.write_fact(
        ports, ADMIN, Operation(key, "b"), "note", Scope(tenantId="t"), FactChanges(), content
    )


def struck(memory: FactPorts, blows: Blows) -> FactPorts:
    return replace(memory, facts=Struck(memory.facts, blows), blobs=Struck(memory.blobs, blows))


def test_a_payload_is_kept_once_its_write_is_acknowledged(memory: FactPorts) -> None:
    fact = write(memory, LARGE)
    assert fact.content_ref in blobs_of(memory).bodies
    assert blobs_of(memory).pending == set()
    facts.supersede_fact(memory, ADMIN, Operation("1", "b"), fact.id, FactChanges(), LARGE)
    assert len(blobs_of(memory).bodies) == 2
    assert blobs_of(memory).pending == set()


def calls_of(memory: FactPorts) -> list[str]:
    blows = Blows()
    write(struck(memory, blows), LARGE)
    return blows.calls


@pytest.mark.parametrize("blow", list(Blow))
@pytest.mark.parametrize("at", range(4))
def test_whatever_dies_nothing_is_kept_for_good_that_no_fact_names_and_a_retry_is_right(
    at: int, blow: Blow
) -> None:
    memory = fake_memory(FakeClock())
    assert len(calls_of(fake_memory(FakeClock()))) == 4, "new_ref, put, create, claim"
    with contextlib.suppress(Death, StorageUnavailable):
        write(struck(memory, Blows(blow, at)), LARGE)
    blobs = blobs_of(memory)
    answered = write(memory, LARGE)
    assert answered.content_ref in blobs.bodies
    assert set(blobs.bodies) - blobs.pending <= {answered.content_ref}


def test_a_claim_that_fails_does_not_take_back_a_write(memory: FactPorts) -> None:
    fact = write(struck(memory, Blows(Blow.FAILS, 3)), LARGE)
    assert blobs_of(memory).pending == {fact.content_ref}, "the stream's follower claims it"


def upload(memory: FactPorts, fact_id: str) -> str:
    ref, _ = grant_upload(memory, "t", fact_id, 5, "0" * 64)
    blobs_of(memory).upload(ref, b"bytes")
    return ref


@pytest.mark.parametrize(("hours", "claimed_first"), [(0, False), (23, False), (25, True), (47, True)])
def test_an_upload_is_claimed_after_its_write_unless_it_might_be_removed_before(
    memory: FactPorts, hours: int, claimed_first: bool
) -> None:
    fact = write(memory, Content(1))
    ref = upload(memory, fact.id)
    clock: Any = memory.clock
    clock.advance(hours=hours)
    blows = Blows()
    ports = struck(memory, blows)
    facts.supersede_fact(
        ports, ADMIN, Operation("1", "b"), fact.id, FactChanges(), Content(given=False, ref=ref)
    )
    calls = [call.partition(".")[2] for call in blows.calls if call.endswith((".claim", ".advance"))]
    assert calls == (["claim", "advance", "claim"] if claimed_first else ["advance", "claim"])
    assert blobs_of(memory).pending == set()


def test_an_upload_whose_write_is_refused_stays_pending(memory: FactPorts) -> None:
    fact = write(memory, Content(1))
    ref = upload(memory, fact.id)
    with pytest.raises(Exception, match="version"):
        facts.supersede_fact(
            memory, ADMIN, Operation("1", "b"), fact.id, FactChanges(), Content(given=False, ref=ref), 7
        )
    assert blobs_of(memory).pending == {ref}
