"""Large answers: what they cost of a process that refreshes others' facts beside them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.source_server import SourceServer, reply
from support.source_world import SourceWorld, fetched

from factbook.adapters.sources import http_handler
from factbook.adapters.sources.fetching import Fetcher
from factbook.adapters.sources.http_handler import HttpHandler
from factbook.adapters.sources.urls import Allowed
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.sources.handlers import Ask
from factbook.ports.sources.large import LARGE_BYTES, in_turn
from factbook.usecases.facts.payloads import Content

BODY = b"[" + b",".join([b"{}"] * (LARGE_BYTES // 3 + 2)) + b"]"


def test_of_large_values_a_process_has_one_at_a_time(
    server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behaviours["/"] = reply(200, BODY, content_type="application/json")
    lock, under_way, most = threading.Lock(), 0, 0
    judged = http_handler.answer

    def watched(*arguments: Any) -> Any:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        try:
            return judged(*arguments)
        finally:
            with lock:
                under_way -= 1

    monkeypatch.setattr(http_handler, "answer", watched)
    source = Source(
        kind="http-api", uri=server.url("/"), freshness=Freshness(), refresh=Refresh(strategy="manual")
    )
    handler = HttpHandler(Fetcher(Allowed.read([server.netloc])), lambda *_: {})
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: handler.ask(Ask("t", "f", source, None), Deadline(60)), range(4)))
    assert len(set(map(repr, found))) == 1
    assert most == 1


def test_a_turn_that_does_not_come_in_time_is_no_fault_of_the_source() -> None:
    world = SourceWorld()
    fact_id = world.mirror()
    world.source().says = fetched("x" * LARGE_BYTES)

    with in_turn(LARGE_BYTES + 1, NEVER):
        short = threading.Thread(target=lambda: in_turn(LARGE_BYTES, NEVER).__enter__())
        short.start()
        short.join()  # what is not large waits for nobody
        with pytest.raises(StorageUnavailable):
            world.refresh(fact_id, deadline=Deadline(0.01, elapsed=time.monotonic))
    assert world.head(fact_id).refresh is None
    assert world.refresh(fact_id).outcome == "changed"


def test_the_hash_of_a_large_content_is_reckoned_once_in_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    reckoned = []
    canonical = http_canonical()
    monkeypatch.setattr(
        "factbook.usecases.facts.payloads.content_canonical",
        lambda value: reckoned.append(1) or canonical(value),
    )
    world = SourceWorld()
    fact_id = world.mirror()
    reckoned.clear()
    world.source().says = fetched(["x" * LARGE_BYTES])

    assert world.refresh(fact_id).outcome == "changed"
    assert len(reckoned) == 1
    assert Content("a").value_hash == Content("a").value_hash


def http_canonical() -> Any:
    from factbook.canonical import content_canonical

    return content_canonical
