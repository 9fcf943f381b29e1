"""How long good texts wait beside another tenant's refused ones: `python benchmarks/backlog.py [--refused N] [--good N]`.

Facts of two tenants are written to the index while the embeddings endpoint is down, so that all of them wait in the
backlog of a local data plane. Then the endpoint is up again, and refuses the texts of the first tenant for good, or
answers them with vectors that no index can hold (`--stuck`: those wait for ever). It is caught up until every good text is
embedded, then until nothing waits. The embedder answers at once: only our own work is timed.
"""

import argparse
import hashlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.dynamodb_items import head_item
from factbook.adapters.log.dynamodb_entries import DynamoMessages
from factbook.adapters.retrieval.dynamodb_backlog import DynamoBacklog
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.ids import fact_id_for
from factbook.domain.facts.transitions import open_fact
from factbook.domain.policy.policies import Policy
from factbook.domain.scope import Scope
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import Head
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector
from factbook.ports.retrieval.index import EmbeddingSpace
from factbook.usecases.retrieval.embedding_spaces import Spaces
from factbook.usecases.retrieval.index_jobs import IndexJobPorts, catch_up
from factbook.usecases.retrieval.indexing import IndexingPorts, index_heads
from factbook.usecases.retrieval.messages import MessagePorts
from factbook.wiring.services import SystemClock
from factbook_local.clients import Clients
from factbook_local.dataplane.process import DataPlaneProcess
from factbook_search.english import english_tokenizer
from factbook_search.sqlite_index import SqliteIndex

BAD, GOOD = "bad-texts", "good-texts"
FACTS, ACCESS = "facts", "access"
SLICE_SECONDS = 5.0
SEEDED_AT_ONCE = 500
DIMENSIONS = 8


class Endpoint:
    """An embedder that is down, and then refuses texts that say so or answers them with a vector of zeros."""

    model = "benchmark"

    def __init__(self, *, stuck: bool) -> None:
        self.down, self.requests = True, 0
        self._failure = EmbeddingFailure("as told", refused=not stuck)

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
        purpose: str = "document",
    ) -> list[Vector | EmbeddingFailure]:
        del dimensions, model, within, purpose
        self.requests += 1
        if self.down:
            raise EmbeddingsUnavailable
        return [self._failure if "refused" in text else (1.0,) * DIMENSIONS for text in texts]


class Policies:
    def policy(self, tenant: str) -> Policy:
        del tenant
        return Policy()


def main() -> None:
    options = _arguments()
    plane = DataPlaneProcess(file=None, expiring={})
    try:
        plane.wait_until_serving()
        with tempfile.TemporaryDirectory() as folder:
            _measure(Clients(plane.url).dynamodb, Path(folder), options)
    finally:
        plane.stop()


def _measure(client: Any, folder: Path, options: argparse.Namespace) -> None:
    endpoint = Endpoint(stuck=options.stuck)
    ports = _ports(client, folder, endpoint)
    heads = [_head(BAD, number, "refused words") for number in range(options.refused)]
    heads += [_head(GOOD, number, "good words") for number in range(options.good)]
    _seed(client, ports, heads)
    endpoint.down, endpoint.requests = False, 0
    seconds = _seconds_until(ports, GOOD)
    print(
        f"{options.good} good beside {options.refused}: embedded after {seconds:.1f} s, {endpoint.requests} requests"
    )
    if not options.stuck:
        seconds += _seconds_until(ports, None)
        print(f"nothing waits after {seconds:.1f} s, {endpoint.requests} requests")


def _seed(client: Any, ports: IndexJobPorts, heads: Sequence[Head]) -> None:
    """Facts, their words in the index and a note of each in the backlog, as the index function would have left them; but
    written many at once, as the data plane takes longest for single writes.
    """
    started, notes = time.monotonic(), _Notes()
    noting = replace(ports.indexing, backlog=DynamoBacklog(notes, ACCESS))
    for start in range(0, len(heads), SEEDED_AT_ONCE):
        some = heads[start : start + SEEDED_AT_ONCE]
        index_heads(noting, some)
        _write(client, FACTS, [to_item(head_item(head)) for head in some])
        _write(client, ACCESS, notes.taken())
    print(f"{len(heads)} texts wait, seeded in {time.monotonic() - started:.0f} s")


def _write(client: Any, table: str, items: Sequence[Any]) -> None:
    for start in range(0, len(items), 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        left = {table: puts}
        while left:
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems") or {}


class _Notes:
    """Takes what a backlog would put into the table."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def put_item(self, *, Item: Any, **_: Any) -> None:  # noqa: N803 - as the SDK names it
        self._items.append(Item)

    def taken(self) -> list[Any]:
        items, self._items = self._items, []
        return items


def _seconds_until(ports: IndexJobPorts, tenant: str | None) -> float:
    """Of catching up in slices, until nothing of the tenant waits."""
    started = time.monotonic()
    while ports.indexing.backlog.waiting(tenant, 1):
        catch_up(ports, Deadline(SLICE_SECONDS))
    return time.monotonic() - started


def _ports(client: Any, folder: Path, endpoint: Endpoint) -> IndexJobPorts:
    for table in (FACTS, ACCESS):
        client.create_table(
            TableName=table,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )
    index = SqliteIndex(folder / "backlog.sqlite")
    index.activate(index.create(EmbeddingSpace(Endpoint.model, DIMENSIONS)).name)
    nothing: Any = None
    policies: Any = Policies()
    backlog = DynamoBacklog(client, ACCESS)
    spaces = Spaces(index, endpoint)
    indexing = IndexingPorts(index, english_tokenizer(), nothing, policies, backlog, nothing, spaces)
    facts = DynamoFacts(client, FACTS)
    messages = MessagePorts(indexing, nothing, nothing)
    entries = DynamoMessages(client, "none")  # no message waits
    return IndexJobPorts(indexing, facts, nothing, nothing, SystemClock(), messages, entries, backlog)


def _head(tenant: str, number: int, text: str) -> Head:
    payload = Payload(text=f'"{text} {number}"', content_hash="sha256:none", size=len(text))
    fact_id = fact_id_for(hashlib.sha256(f"{tenant}{number}".encode()).hexdigest())
    who = Principal(tenant, Actor(kind="user", id="benchmark"), admin=True)
    scope, instant = Scope(tenant_id=tenant), "2026-01-01T00:00:00.000Z"
    return Head(open_fact(fact_id, "acme.note", scope, FactChanges(), payload, who, instant))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--refused", type=int, default=1_000, help="texts of one tenant")
    parser.add_argument("--good", type=int, default=100, help="texts of another")
    parser.add_argument(
        "--stuck", action="store_true", help="the refused wait for ever, and stay in the queue"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
