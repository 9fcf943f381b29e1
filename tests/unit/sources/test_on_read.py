"""A reader of a stale fact waits for its source, for a bounded time; one asks, the others wait; a list queues."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.principals import principal
from support.source_world import ADMIN, SourceWorld, fetched

from factbook.adapters.sources.lambda_refresher import LambdaRefresher
from factbook.domain import times
from factbook.domain.errors import FactNotFound, SourceUnavailable, StorageUnavailable, Throttled
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.freshness import RefreshState
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.sources import handlers as asking
from factbook.usecases.facts.listing import Query, list_facts
from factbook.usecases.facts.reading import get_fact
from factbook.usecases.sources.on_read import ANSWER_SECONDS, READ_SECONDS, MetStale, OnRead
from factbook.usecases.sources.refreshing import lease_of, refresh_fact

STALE = {"seconds": 61}


class Function:
    """The refresh function, called in this process; `fails` instead of being called, or once it was."""

    def __init__(self, world: SourceWorld) -> None:
        self.world = world
        self.calls = 0
        self.fails: Exception | None = None
        self.waited_for = 0.0

    def refresh(self, tenant: str, fact_id: str, lease: str, seconds: float) -> None:
        self.calls += 1
        self.waited_for = seconds
        if self.fails is not None:
            raise self.fails
        refresh_fact(self.world.ports, tenant, fact_id, "read", NEVER, lease)


class Readers:
    """Processes that read one deployment; a pause is a step of the clock."""

    def __init__(self) -> None:
        self.world = SourceWorld()
        self.function = Function(self.world)
        self.waited = 0.0
        """Since the request came."""
        self.came = Deadline(16, elapsed=lambda: self.waited)
        self.meanwhile: Any = lambda: None
        world = self.world
        on_read = OnRead(
            world.facts,
            world.leases,
            self.function,
            patience=lambda: self.came.from_its_start(READ_SECONDS),
            pause=self._pause,
        )
        self.queue = world.queue
        met = MetStale(world.queue)
        self.ports = replace(world.memory, freshen=on_read, met_stale=met)

    def _pause(self, seconds: float) -> None:
        self.waited += seconds
        self.meanwhile()

    def slow_store(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        """Each call of the stores of facts and leases takes so long from now on."""

        def slowly(call: Any) -> Any:
            def called(*arguments: Any) -> Any:
                self.waited += seconds
                return call(*arguments)

            return called

        for store, name in ((self.world.facts, "head"), (self.world.leases, "take")):
            monkeypatch.setattr(store, name, slowly(getattr(store, name)))

    def read(self, fact_id: str, *, fresh: bool = False, who: Any = ADMIN) -> Fact:
        return get_fact(self.ports, who, fact_id, require_fresh=fresh)

    def mirror(self, **said: Any) -> str:
        return self.world.mirror(**{"strategy": "on-read"} | said)


@pytest.fixture
def readers() -> Readers:
    return Readers()


def test_a_reader_of_a_stale_fact_gets_what_its_source_says_now(readers: Readers) -> None:
    fact_id = readers.mirror()
    assert readers.read(fact_id).content_text == '"old"'
    assert readers.function.calls == 0, "a fresh one asks nobody"

    readers.world.clock.advance(**STALE)
    fact = readers.read(fact_id)

    assert (fact.content_text, fact.version, fact.stale) == ('"new"', 2, None)
    assert readers.read(fact_id).version == 2
    assert readers.function.calls == 1


def test_a_time_to_live_of_nothing_means_that_each_reader_asks_and_gets_a_fresh_answer(
    readers: Readers,
) -> None:
    fact_id = readers.mirror(ttlSeconds=0)
    for number in (1, 2, 3):
        readers.world.clock.advance(milliseconds=300)
        readers.world.source().during = lambda: readers.world.clock.advance(milliseconds=5)
        readers.world.source().says = fetched(number)
        fact = readers.read(fact_id, fresh=True)
        assert (fact.content_text, fact.stale) == (str(number), None)
    assert readers.function.calls == 3


@pytest.mark.parametrize("strategy", ["background", "manual"])
def test_a_fact_of_another_strategy_is_shown_as_it_is(readers: Readers, strategy: str) -> None:
    fact_id = readers.mirror(strategy=strategy)
    readers.world.clock.advance(**STALE)

    fact = readers.read(fact_id)
    assert (fact.content_text, fact.stale, fact.stale_reason) == ('"old"', True, "ttl-passed")
    assert readers.function.calls == 0
    with pytest.raises(SourceUnavailable):
        readers.read(fact_id, fresh=True)


def test_versions_and_earlier_times_are_history_and_ask_nobody(readers: Readers) -> None:
    fact_id = readers.mirror()
    at = readers.world.clock.now()
    readers.world.clock.advance(**STALE)

    assert get_fact(readers.ports, ADMIN, fact_id, as_of=at).stale is None
    assert get_fact(readers.ports, ADMIN, fact_id, version=1, as_of=at).stale is None
    assert get_fact(readers.ports, ADMIN, fact_id, version=1).stale is True, "the present one is stale"
    assert readers.function.calls == 0


def test_a_source_that_fails_is_said_to_and_not_asked_again_by_each_reader(readers: Readers) -> None:
    fact_id = readers.mirror()
    readers.world.source().says = asking.SourceUnavailable("the source answers 500")
    now = readers.world.clock.advance(**STALE)

    fact = readers.read(fact_id)
    assert (fact.content_text, fact.stale, fact.stale_reason) == ('"old"', True, "source-unavailable")
    with pytest.raises(SourceUnavailable) as refused:
        readers.read(fact_id, fresh=True)
    assert refused.value.retry_after == 8, "the wait after a first failure, in whole seconds"
    assert refused.value.details == {"factId": fact_id, "staleReason": "source-unavailable"}
    assert readers.function.calls == 1

    readers.world.clock.instant = times.add(now, seconds=8)
    readers.read(fact_id)
    assert readers.function.calls == 2


def test_who_meets_another_reader_s_ask_waits_for_its_end(readers: Readers) -> None:
    fact_id = readers.mirror()
    world = readers.world
    world.clock.advance(**STALE)
    assert world.leases.take(lease_of("acme", fact_id), "another", 30)
    readers.meanwhile = lambda: refresh_fact(world.ports, "acme", fact_id, "read", NEVER, "another")

    fact = readers.read(fact_id, fresh=True)

    assert (fact.content_text, fact.stale) == ('"new"', None)
    assert (readers.function.calls, len(world.source().asked)) == (0, 1)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("before", [0.0, 0.5, 1.4], ids=lambda seconds: f"{seconds} s before the wait")
@pytest.mark.parametrize("call", [0.0, 0.02, 0.2], ids=lambda seconds: f"{seconds} s each call of the store")
def test_nobody_waits_longer_than_two_seconds_in_all(
    readers: Readers, monkeypatch: pytest.MonkeyPatch, fresh: bool, before: float, call: float
) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    assert readers.world.leases.take(lease_of("acme", fact_id), "another", 30)
    readers.waited = before - call  # the first call comes before the wait
    readers.slow_store(monkeypatch, call)

    if fresh:
        with pytest.raises(SourceUnavailable):
            readers.read(fact_id, fresh=True)
    else:
        fact = readers.read(fact_id)
        assert (fact.content_text, fact.stale, fact.stale_reason) == ('"old"', True, "busy")
    assert 1.0 < readers.waited <= READ_SECONDS - ANSWER_SECONDS - call


@pytest.mark.parametrize("call", [0.0, 0.2])
def test_who_asks_waits_for_the_function_as_long_as_leaves_time_to_read_what_it_wrote(
    readers: Readers, monkeypatch: pytest.MonkeyPatch, call: float
) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.waited = 0.5
    readers.slow_store(monkeypatch, call)

    assert readers.read(fact_id).stale is None
    spent, left_for = 0.5 + 2 * call, ANSWER_SECONDS + 2 * call
    assert readers.function.waited_for == pytest.approx(READ_SECONDS - spent - left_for)


def test_a_read_that_has_taken_its_time_already_asks_nobody(readers: Readers) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.waited = 1.7

    assert readers.read(fact_id).stale_reason == "ttl-passed"
    assert (readers.function.calls, readers.world.leases.taken) == (0, {})


def test_a_waiting_reader_looks_at_the_fact_a_few_times_only(readers: Readers) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.world.leases.take(lease_of("acme", fact_id), "another", 30)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    readers.meanwhile = look
    readers.read(fact_id)
    assert looks <= 7


def test_a_function_that_is_too_slow_goes_on_and_the_reader_is_told(readers: Readers) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.function.fails = StorageUnavailable()

    fact = readers.read(fact_id)
    assert (fact.stale, fact.stale_reason) == (True, "busy")
    assert lease_of("acme", fact_id) in readers.world.leases.taken, "it is the function's by now"


@pytest.mark.parametrize("why", [Throttled(), PermissionError()])
def test_a_function_that_did_not_begin_leaves_the_fact_to_the_next_reader(
    readers: Readers, why: Exception
) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.function.fails = why

    assert readers.read(fact_id).stale_reason == "ttl-passed"
    assert lease_of("acme", fact_id) not in readers.world.leases.taken
    readers.function.fails = None
    assert readers.read(fact_id).stale is None


def test_a_store_of_leases_that_fails_fails_no_read(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact_id = readers.mirror()
    readers.world.clock.advance(**STALE)

    def broken(*_: Any) -> bool:
        raise StorageUnavailable

    monkeypatch.setattr(readers.world.leases, "take", broken)
    assert readers.read(fact_id).stale_reason == "ttl-passed"


def test_what_became_of_the_fact_meanwhile_is_judged_anew(readers: Readers) -> None:
    ann = principal("acme", "ann", reads=("p",))
    fact_id = readers.mirror(scope={"projectId": "p"})
    readers.world.clock.advance(**STALE)
    readers.world.source().during = lambda: readers.world.change(
        fact_id, expires_at=readers.world.clock.now()
    )

    with pytest.raises(FactNotFound):
        readers.read(fact_id, who=ann)


def test_a_person_who_was_asked_is_not_asked_by_each_reader(readers: Readers) -> None:
    fact_id = readers.mirror(kind="user-input")
    readers.world.source().says = asking.Asked()
    readers.world.clock.advance(**STALE)

    for _ in range(3):
        assert readers.read(fact_id).stale_reason == "person-asked"
    assert readers.function.calls == 1
    assert readers.world.head(fact_id).refresh == RefreshState(asked_at=readers.world.clock.now())


# -- the function, called


class Invoked:
    """A Lambda function; `does` what it is told to when it is called."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does
        self.events: list[Any] = []

    def call(self, event: Any) -> Any:
        self.events.append(event)
        return self._does()


def asked_of(function: Any, seconds: float) -> None:
    LambdaRefresher(function).refresh("acme", "f", "owner", seconds)


def test_the_function_is_told_whose_lease_it_has() -> None:
    function = Invoked(lambda: {"outcome": "changed"})

    asked_of(function, 30)
    assert function.events == [{"factbook": "refresh", "tenant": "acme", "factId": "f", "lease": "owner"}]


@pytest.mark.parametrize("error", [Throttled(), StorageUnavailable(), PermissionError()])
def test_what_the_call_of_the_function_raises_reaches_the_reader(error: Exception) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        asked_of(Invoked(fails), 30)
    assert raised.value is error


def test_a_function_that_does_not_answer_in_time_is_left_to_go_on() -> None:
    answers = threading.Event()
    function = Invoked(lambda: answers.wait(30))

    with pytest.raises(StorageUnavailable):
        asked_of(function, 0.05)
    assert len(function.events) == 1
    answers.set()


# -- lists


def listed(readers: Readers) -> list[Fact]:
    return list_facts(readers.ports, ADMIN, Query(), 100).facts


def test_a_list_marks_what_is_stale_and_queues_what_reads_may_ask_for_once_a_minute(readers: Readers) -> None:
    on_read, fresh = readers.mirror(), readers.mirror(ttlSeconds=10**6)
    background = readers.mirror(strategy="background")
    readers.world.clock.advance(**STALE)

    for _ in range(3):
        facts = {fact.id: fact.stale for fact in listed(readers)}
        assert facts == {on_read: True, fresh: None, background: True}
    assert [(wanted.fact_id, wanted.why) for wanted in readers.queue.sent] == [(on_read, "read")]
    assert readers.function.calls == 0


def test_a_list_of_many_stale_facts_queues_some_of_them_and_the_next_one_others(readers: Readers) -> None:
    for _ in range(50):
        readers.mirror()
    readers.world.clock.advance(**STALE)

    for queued in (20, 40, 50, 50):
        listed(readers)
        assert len({wanted.fact_id for wanted in readers.queue.sent}) == len(readers.queue.sent) == queued


def test_a_queue_that_fails_fails_no_list(readers: Readers) -> None:
    readers.mirror()
    readers.world.clock.advance(**STALE)
    readers.queue.broken = True

    assert [fact.stale for fact in listed(readers)] == [True]
    readers.queue.broken = False
    listed(readers)
    assert len(readers.queue.sent) == 1, "and it is queued by the next one"


def test_a_list_as_of_an_earlier_time_marks_and_queues_nothing(readers: Readers) -> None:
    readers.mirror()
    at = readers.world.clock.now()
    readers.world.clock.advance(**STALE)

    assert [fact.stale for fact in list_facts(readers.ports, ADMIN, Query(as_of=at), 9).facts] == [None]
    assert readers.queue.sent == []
