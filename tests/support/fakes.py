"""In-memory ports, honest where it matters: one lock, conditional writes that fail, records that never alias."""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import replace

from factbook.adapters.dynamodb.key_parts import part, shard_of
from factbook.domain import times
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.type_order import type_place
from factbook.domain.policy.policies import Policy
from factbook.ports.access.stores import Token
from factbook.ports.clock import Clock
from factbook.ports.facts.store import Head, Row
from factbook.ports.memories.store import ReviewRow
from factbook.settings import Settings
from factbook.usecases.facts.ports import FactPorts
from factbook.wiring.services import Services

LISTING_SHARDS, ADMIN_SHARDS = 4, 8
_Partition = tuple[str, str | None, int, bool]


class FakeClock:
    """Stands where it is put."""

    def __init__(self, now: str = "2026-01-01T00:00:00.000Z") -> None:
        self.instant = now

    def now(self) -> str:
        return self.instant

    def advance(self, **delta: float) -> str:
        self.instant = times.add(self.instant, **delta)
        return self.instant


class FakeFacts:
    """FactStore in dictionaries; every method is one atomic step."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows_read = 0
        self.queries = 0
        self._heads: dict[tuple[str, str], Head] = {}
        self._revisions: dict[tuple[tuple[str, str], int | None], dict[int, Fact]] = {}
        self._rows: dict[_Partition, dict[str, Row]] = {}

    def head(self, tenant: str, fact_id: str) -> Head | None:
        with self.lock:
            return self._heads.get((tenant, fact_id))

    def revision(self, head: Head, version: int) -> Fact | None:
        with self.lock:
            return self._revisions.get((_where(head), head.life), {}).get(version)

    def revisions(self, head: Head, below: int, budget: int) -> tuple[list[Fact], bool]:
        with self.lock:
            kept = self._revisions.get((_where(head), head.life), {})
        found: list[Fact] = []
        for version in sorted((each for each in kept if each < below), reverse=True):
            budget -= kept[version].wire_bytes
            if budget < 0 and found:
                return found, True
            found.append(kept[version])
        return found, False

    def heads(self, tenant: str, fact_ids: Sequence[str]) -> dict[str, Head]:
        assert len(fact_ids) <= 100
        with self.lock:
            return {each: self._heads[tenant, each] for each in fact_ids if (tenant, each) in self._heads}

    def create(self, head: Head) -> Head | None:
        with self.lock:
            return self._heads.get(_where(head)) or self._put(head)

    def advance(self, before: Head, closed: Fact, after: Head) -> Head | None:
        with self.lock:
            there = self._heads.get(_where(before))
            if there is None or (there.edition, there.life) != (before.edition, before.life):
                return there
            kept = self._revisions.setdefault((_where(before), before.life), {})
            assert closed.version not in kept, "a revision is written once"
            kept[closed.version] = closed
            return self._put(after)

    def amend(self, before: Head, after: Head) -> Head | None:
        with self.lock:
            there = self._heads.get(_where(before))
            if there is None or (there.edition, there.life) != (before.edition, before.life):
                return there
            return self._put(after)

    def shards(self, container: str | None) -> int:
        return ADMIN_SHARDS if container is None else LISTING_SHARDS

    def rows(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        before: str,
        limit: int,
        *,
        closed: bool = False,
        of_type: str | None = None,
    ) -> tuple[list[Row], bool]:
        rows = self._partition(tenant, container, shard, closed=closed)
        rows = [row for row in rows if row.order < before and of_type in (None, row.type)]
        return self._read(sorted(rows, key=lambda row: row.order, reverse=True), limit)

    def rows_by_type(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        first: str,
        last: str,
        limit: int,
        *,
        closed: bool = False,
    ) -> tuple[list[Row], bool]:
        rows = self._partition(tenant, container, shard, closed=closed)
        placed = sorted((type_place(row.type, row.order), row.fact_id, row) for row in rows)
        return self._read([row for place, _, row in placed if first <= place <= last], limit)

    def _partition(self, tenant: str, container: str | None, shard: int, *, closed: bool) -> list[Row]:
        with self.lock:
            return list(self._rows.get((tenant, container, shard, closed), {}).values())

    def _read(self, rows: list[Row], limit: int) -> tuple[list[Row], bool]:
        with self.lock:
            self.queries += 1
            self.rows_read += len(rows[:limit])
        return rows[:limit], len(rows) >= limit  # as DynamoDB does: full to the brim, it cannot know

    def remove(self, tenant: str, fact_id: str) -> None:
        """As a time to live does."""
        with self.lock:
            self._unlist(self._heads.pop((tenant, fact_id)))

    def _put(self, head: Head) -> None:
        if _where(head) in self._heads:
            self._unlist(self._heads[_where(head)])
        self._heads[_where(head)] = head
        for partition in self._partitions(head):
            self._rows.setdefault(partition, {})[head.fact.id] = _row(head)

    def _unlist(self, head: Head) -> None:
        for partition in self._partitions(head):
            del self._rows[partition][head.fact.id]

    def _partitions(self, head: Head) -> list[_Partition]:
        fact, closed = head.fact, not head.fact.current
        return [
            (fact.scope.tenant_id, container, shard_of(fact.id, self.shards(container)), closed)
            for container in (fact.scope.container, None)
        ]


class FakeMemories:
    """MemoryIndex over the heads of FakeFacts."""

    review_shards = 4

    def __init__(self, facts: FakeFacts) -> None:
        self._facts = facts

    def of_owner(self, tenant: str, owner: str, agent: str) -> list[Head]:
        return [head for head in self._memories(tenant, agent) if head.fact.owner == owner]

    def of_account(self, tenant: str, agent: str) -> list[Head]:
        return [head for head in self._memories(tenant, agent) if head.fact.reach == "account"]

    def reviews(
        self, tenant: str, state: str, shard: int, before: str, limit: int
    ) -> tuple[list[ReviewRow], bool]:
        found = []
        for fact in (head.fact for head in self._of(tenant)):
            rejected = fact.reach == "account-rejected"
            waits = fact.review is not None or fact.reach == "account-proposed"
            order = f"{fact.updated_at}|{fact.id}"
            if fact.current and order < before and shard_of(fact.id, self.review_shards) == shard:
                found += [ReviewRow(order, fact.id)] if (rejected if state == "rejected" else waits) else []
        found.sort(key=lambda row: row.order, reverse=True)
        return found[:limit], len(found) >= limit

    def _memories(self, tenant: str, agent: str) -> list[Head]:
        heads = self._of(tenant)
        both = [*heads, *(head.confirmed for head in heads if head.confirmed is not None)]
        return [
            head
            for head in both
            if head.fact.agent_id == agent and head.fact.current and head.fact.reach != "account-rejected"
        ]

    def _of(self, tenant: str) -> list[Head]:
        with self._facts.lock:
            return [head for (owner, _), head in self._facts._heads.items() if owner == tenant]


def _where(head: Head) -> tuple[str, str]:
    return head.fact.scope.tenant_id, head.fact.id


def _row(head: Head) -> Row:
    fact, alone = head.fact, head.confirmed is None  # a row hides nothing that a text beside it may show
    return Row(
        order=f"{fact.created_at}|{fact.id}",
        fact_id=fact.id,
        type=fact.type,
        scope=fact.scope.to_json(),
        expires_at=fact.expires_at if alone else None,
        pending_review=alone and fact.review is not None,
        agent_id=fact.agent_id,
        owner=fact.owner,
    )


class FakeBlobs:
    """BlobStore in a dictionary. `pending` holds uploads nobody named yet; `upload` stands for the caller's PUT.

    It keeps one version of each, and removes nothing while `removes` is false.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bodies: dict[str, bytes] = {}
        self.removes = True
        self.pending: set[str] = set()

    def new_ref(self, tenant: str, fact_id: str, name: str) -> str:
        return f"blob://s3/fake/facts/{part(tenant).replace('/', '%2F')}/{fact_id}/{name}"

    def put(self, ref: str, body: bytes) -> None:
        with self.lock:
            self.bodies[ref] = body
            self.pending.add(ref)

    def upload_url(self, ref: str, size: int, sha256: str, seconds: int) -> str:
        return f"https://blobs.example/{ref.removeprefix('blob://')}?size={size}&sha256={sha256}"

    def upload_headers(self, size: int, sha256: str) -> dict[str, str]:
        return {"Content-Length": str(size), "If-None-Match": "*"}

    def upload(self, ref: str, body: bytes) -> None:
        with self.lock:
            self.bodies[ref] = body
            self.pending.add(ref)

    def claim(self, ref: str) -> None:
        with self.lock:
            self.pending.discard(ref)

    def stat(self, ref: str) -> tuple[int, str] | None:
        with self.lock:
            body = self.bodies.get(ref)
        return None if body is None else (len(body), hashlib.sha256(body).hexdigest())

    def discard(self, ref: str) -> None:
        if not self.removes:
            raise StorageUnavailable
        with self.lock:
            self.bodies.pop(ref, None)
            self.pending.discard(ref)

    def download_url(self, ref: str) -> str:
        return f"https://blobs.example/{ref.removeprefix('blob://')}"


class FakeAccess:
    """TokenStore and SecretStore in a dictionary; `reads` counts look-ups."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reads = 0
        self._tokens: dict[str, Token] = {}

    def token(self, token_id: str) -> Token | None:
        with self.lock:
            self.reads += 1
            return self._tokens.get(token_id)

    def create_token(self, token: Token) -> bool:
        with self.lock:
            return self._tokens.setdefault(token.id, token) is token

    def replace_token(self, token: Token) -> None:
        with self.lock:
            self._tokens[token.id] = replace(token)

    def tokens(self, tenant: str, after: str, limit: int) -> tuple[list[Token], bool]:
        with self.lock:
            mine = [token for token in self._tokens.values() if token.principal.tenant == tenant]
        mine.sort(key=_token_order)
        later = [token for token in mine if _token_order(token) > after]
        return later[:limit], len(later) >= limit

    def cursor_key(self) -> bytes:
        return b"k" * 32


def _token_order(token: Token) -> str:
    return f"{token.created_at}|{token.id}"


def fake_memory(clock: Clock) -> FactPorts:
    return FactPorts(FakeFacts(), FakeBlobs(), clock, lambda: b"k" * 32, lambda _: Policy(), lambda: True)


def fake_services(clock: Clock | None = None) -> Services:
    """The service over fakes: real handlers, rules and cursors; no AWS."""

    def no_client(_: str) -> None:
        raise AssertionError("a test on fakes asked for AWS")

    services = Services(Settings(), clock or FakeClock(), no_client)
    services.__dict__["memory"] = FactPorts(
        FakeFacts(), FakeBlobs(), services.clock, lambda: b"k" * 32, lambda _: Policy(), lambda: True
    )
    services.__dict__["access"] = FakeAccess()
    return services
