"""The service's own entries: one for each operation, whatever its tries say and wherever one of them was cut short."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.errors import BadInput, StorageUnavailable
from factbook.domain.log.entries import LogEntry
from factbook.domain.strict_json import parse_json
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.appending import LogWriter, Request, append_as, append_entries
from factbook.usecases.log.own_runs import append_once, find_entry
from factbook.usecases.log.sealing import Vault
from factbook.verify.chain import Chain

TENANT, RUN = "acme", "_erasures"
BEGAN = "2026-01-01T00:00:00.000Z"


class Deployment:
    """One store, and processes that append to it."""

    def __init__(self) -> None:
        self.store = FakeLog()
        self.clock = StandingClock()

    def process(self, store: Any = None) -> LogWriter:
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        return LogWriter(store or self.store, vault, self.clock, pause=lambda _: None)

    def entries(self) -> list[StoredEntry]:
        return self.store.entries(TENANT, RUN, 0, 10**6, 10**9)[0]

    def payloads(self) -> list[Any]:
        """Of the run, whose chain holds."""
        chain = Chain(RUN, TENANT)
        for entry in self.entries():
            chain.follow(entry.text.encode(), entry.entry_hash[7:].encode(), entry.cause)
        return [parse_json(entry.text)["payload"] for entry in self.entries()]


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def fill(log: LogWriter, count: int) -> None:
    for start in range(0, count, 50):
        requests = [Request("event-emitted", number) for number in range(start, start + 50)]
        append_as(log, principal(TENANT, "admin", admin=True), RUN, requests)


def append(log: LogWriter, payload: Any, operation: str = "one", since: str = BEGAN) -> LogEntry:
    return append_once(log, TENANT, RUN, Request("event-emitted", payload, "user:admin"), operation, since)


def test_an_operation_has_one_entry_whatever_its_tries_say(deployment: Deployment) -> None:
    first = append(deployment.process(), {"n": 1})
    again = append(deployment.process(), {"n": 2})

    assert again == first
    assert deployment.payloads() == [{"n": 1}]
    assert append(deployment.process(), {"n": 3}, "another").sequence == 1


def test_the_entry_says_who_acted_and_is_plain(deployment: Deployment) -> None:
    made = append(deployment.process(), {"n": 1})

    entry = parse_json(deployment.entries()[0].text)
    assert entry["id"] == made.id
    assert (entry["actor"], entry["kind"], entry["scope"]) == (
        "user:admin",
        "event-emitted",
        {"tenantId": TENANT},
    )


def test_an_entry_is_found_however_many_came_after_it_and_not_looked_for_beyond_its_beginning(
    deployment: Deployment,
) -> None:
    log = deployment.process()
    fill(log, 250)
    deployment.clock.instant = "2026-01-02T00:00:00.000000Z"
    since = "2026-01-02T00:00:00.000Z"
    first = append(log, "mine", since=since)
    fill(log, 450)

    assert append(deployment.process(), "mine again", since=since) == first
    reads = deployment.store.reads
    assert find_entry(log, TENANT, RUN, "none", since) is None
    assert deployment.store.reads - reads == 3, "200 at once, down to the first that is older"


CALLS = 3
"""Of the store, in one try: two looks back, and the put."""


@pytest.mark.parametrize("blow", list(Blow))
@pytest.mark.parametrize("at", range(CALLS))
def test_a_try_that_fails_or_dies_at_any_call_leaves_one_entry_once_it_is_tried_again(
    deployment: Deployment, at: int, blow: Blow
) -> None:
    append(deployment.process(), "before", "zero")
    blows = Blows(blow, at)
    with contextlib.suppress(Death, StorageUnavailable):
        append(deployment.process(Struck(deployment.store, blows)), {"try": 1})
    assert at < len(blows.calls)

    made = append(deployment.process(), {"try": 2})

    assert append(deployment.process(), {"try": 3}) == made
    assert len(deployment.payloads()) == 2


def test_tries_at_the_same_moment_make_one_entry(deployment: Deployment) -> None:
    def attempt(number: int) -> LogEntry:
        return append(deployment.process(), number, f"operation {number % 4}")

    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(attempt, range(64)))

    assert len(deployment.payloads()) == 4
    assert {entry.sequence for entry in made} == {0, 1, 2, 3}


def test_a_caller_still_cannot_append_to_such_a_run(deployment: Deployment) -> None:
    with pytest.raises(BadInput):
        append_entries(
            deployment.process(), principal(TENANT, "admin", admin=True), RUN, [Request("event-emitted", 1)]
        )
