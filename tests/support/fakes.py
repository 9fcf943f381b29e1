"""In-memory ports, honest where it matters: one lock, conditional writes that fail, records that never alias."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from factbook.adapters.dynamodb.key_parts import part, shard_of
from factbook.domain import times
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.type_order import type_place
from factbook.domain.policy.policies import Policy
from factbook.ports.access.stores import Token
from factbook.ports.clock import Clock
from factbook.ports.contention import Contended
from factbook.ports.facts.blobs import StoredObject
from factbook.ports.facts.joint import Change
from factbook.ports.facts.store import Head, Row, review_since
from factbook.ports.log.entries import StoredEntry
from factbook.ports.memories.store import ReviewRow
from factbook.settings import Settings
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.provenance.joint import LoggedChanges
from factbook.wiring.services import Services, SystemClock
from support.log_fakes import FakeLog

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


class ClockAhead(SystemClock):
    """The system's time and `seconds` more: a wait is over as soon as they are added."""

    seconds = 0.0

    def now(self) -> str:
        return times.add(super().now(), seconds=self.seconds)


class FakeFacts:
    """FactStore in dictionaries; every method is one atomic step."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.rows_read = 0
        self.heads_read = 0
        self.queries = 0
        self._heads: dict[tuple[str, str], Head] = {}
        self._revisions: dict[tuple[tuple[str, str], int | None], dict[int, Fact]] = {}
        self._rows: dict[_Partition, dict[str, Row]] = {}
        self._beside: dict[_Partition, dict[str, Row]] = {}
        """Rows of confirmed texts beside heads of other types: by type alone."""
        self._retyped: dict[_Partition, list[Row]] = {}
        """Rows of revisions whose next one was of another type: by type alone."""

    def head(self, tenant: str, fact_id: str) -> Head | None:
        with self.lock:
            self.heads_read += 1
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
            self.heads_read += len(fact_ids)
            return {each: self._heads[tenant, each] for each in fact_ids if (tenant, each) in self._heads}

    def create(self, head: Head) -> Head | None:
        with self.lock:
            return self._heads.get(_where(head)) or self._put(head)

    def advance(self, before: Head, closed: Fact, after: Head) -> Head | None:
        with self.lock:
            there = self._heads.get(_where(before))
            if there is None:
                raise Contended
            if (there.edition, there.life) != (before.edition, before.life):
                return there
            kept = self._revisions.setdefault((_where(before), before.life), {})
            assert closed.version not in kept, "a revision is written once"
            kept[closed.version] = closed
            if closed.type != after.fact.type:
                for partition in self._partitions(replace(before, fact=closed)):
                    self._retyped.setdefault(partition, []).append(_row(Head(closed)))
            return self._put(after)

    def amend(self, before: Head, after: Head) -> Head | None:
        with self.lock:
            there = self._heads.get(_where(before))
            if there is None:
                raise Contended
            if (there.edition, there.life) != (before.edition, before.life):
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
        rows = self._partition(tenant, container, shard, closed=closed, by_type=of_type is not None)
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
        rows = self._partition(tenant, container, shard, closed=closed, by_type=True)
        placed = sorted((type_place(row.type, row.order), row.fact_id, row) for row in rows)
        return self._read([row for place, _, row in placed if first <= place <= last], limit)

    def _partition(
        self, tenant: str, container: str | None, shard: int, *, closed: bool, by_type: bool
    ) -> list[Row]:
        where = (tenant, container, shard, closed)
        with self.lock:
            others = [*self._beside.get(where, {}).values(), *self._retyped.get(where, [])]
            return [*self._rows.get(where, {}).values(), *(others if by_type else [])]

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
        unmarked = head.fact.model_copy(update={"stale": None, "stale_reason": None})
        head = replace(head, fact=unmarked)
        if _where(head) in self._heads:
            self._unlist(self._heads[_where(head)])
        self._heads[_where(head)] = head
        for partition in self._partitions(head):
            self._rows.setdefault(partition, {})[head.fact.id] = _row(head)
            if head.confirmed is not None and head.two_types:
                self._beside.setdefault(partition, {})[head.fact.id] = _row(head.confirmed)

    def _unlist(self, head: Head) -> None:
        for partition in self._partitions(head):
            del self._rows[partition][head.fact.id]
            self._beside.get(partition, {}).pop(head.fact.id, None)

    def _partitions(self, head: Head) -> list[_Partition]:
        fact, closed = head.fact, not head.fact.current
        if fact.invalidation_reason == "erased" and head.erasure is not None:
            return []
        return [
            (fact.scope.tenant_id, container, shard_of(fact.id, self.shards(container)), closed)
            for container in (fact.scope.container, None)
        ]


class FakeJoint:
    """JointStore over the two fakes: one atomic step of both."""

    def __init__(self, facts: FakeFacts, log: FakeLog) -> None:
        self._facts = facts
        self._log = log

    def put(self, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
        before = change.before
        with self._facts.lock, self._log.lock:
            there = self._facts.head(*_where(before))
            if there is None:
                raise Contended
            if (there.edition, there.life) != (before.edition, before.life):
                return there
            taken = self._log.put([entry])
            if taken is not None:
                return taken
            if change.closed is None:
                return self._facts.amend(before, change.after)
            return self._facts.advance(before, change.closed, change.after)


class FakeMemories:
    """MemoryIndex over the heads of FakeFacts."""

    review_shards = 4

    def __init__(self, facts: FakeFacts) -> None:
        self._facts = facts

    def of_owner(self, tenant: str, owner: str, agent: str, now: str) -> list[Head]:
        return [head for head in self._memories(tenant, agent, now) if head.fact.owner == owner]

    def of_account(self, tenant: str, agent: str, now: str) -> list[Head]:
        return [head for head in self._memories(tenant, agent, now) if head.fact.reach == "account"]

    def reviews(
        self, tenant: str, state: str, shard: int, before: str, limit: int
    ) -> tuple[list[ReviewRow], bool]:
        found = []
        for head in self._of(tenant):
            fact, since = head.fact, review_since(head)
            rejected = fact.reach == "account-rejected"
            order = f"{since}|{fact.id}"
            if fact.current and since and order < before and shard_of(fact.id, self.review_shards) == shard:
                found += [ReviewRow(order, fact.id)] if rejected is (state == "rejected") else []
        found.sort(key=lambda row: row.order, reverse=True)
        return found[:limit], len(found) >= limit

    def _memories(self, tenant: str, agent: str, now: str) -> list[Head]:
        heads = self._of(tenant)
        both = [*heads, *(head.confirmed for head in heads if head.confirmed is not None)]
        return [
            replace(head, confirmed=None)
            for head in both
            if (head.confirmed is not None or not head.fact.expired(now))
            and head.fact.agent_id == agent
            and head.fact.current
            and head.fact.reach != "account-rejected"
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
        two_types=head.two_types,
    )


class FakeBlobs:
    """BlobStore and BlobWalk in a dictionary. `pending` holds uploads nobody named yet; `upload` stands for the caller's PUT.

    It keeps one version of each, and removes nothing while `removes` is false.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bodies: dict[str, bytes] = {}
        self.removes = True
        self.pending: set[str] = set()
        self.stored_at: dict[str, str] = {}

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

    def unclaim(self, ref: str) -> None:
        with self.lock:
            if ref in self.bodies:
                self.pending.add(ref)

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

    def of_fact(self, tenant: str, fact_id: str) -> Iterator[StoredObject]:
        objects, _ = self.of_tenant(tenant, None, 1_000)
        yield from (each for each in objects if each.fact_id == fact_id)

    def of_tenant(self, tenant: str, after: str | None, limit: int) -> tuple[list[StoredObject], str | None]:
        folder = self.new_ref(tenant, "", "").rstrip("/") + "/"
        with self.lock:
            names = sorted(ref for ref in self.bodies if ref.startswith(folder) and ref > (after or ""))
        objects = [self._stored(ref) for ref in names[:limit]]
        return objects, names[limit - 1] if len(names) > limit else None

    def _stored(self, ref: str) -> StoredObject:
        fact_id, name = ref.split("/")[-2:]
        return StoredObject(fact_id, name, "1", self.stored_at.get(ref, ""))

    def remove(self, tenant: str, objects: Sequence[StoredObject]) -> None:
        for each in objects:
            self.discard(self.new_ref(tenant, each.fact_id, each.name))

    def download_url(self, ref: str, seconds: int) -> str:
        return f"https://blobs.example/{ref.removeprefix('blob://')}?seconds={seconds}"


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


def fake_memory(clock: Clock, facts: FakeFacts | None = None, log: LogWriter | None = None) -> FactPorts:
    """`log`: where changes have their entries, if they have any; its store is a FakeLog."""
    facts = facts or FakeFacts()
    return FactPorts(
        facts,
        FakeBlobs(),
        clock,
        lambda: b"k" * 32,
        lambda _: Policy(),
        lambda: True,
        commit_with_entry=lambda *asked: logged_changes(facts, log or _no_log()).commit(*asked),
    )


def logged_changes(facts: FakeFacts, log: LogWriter) -> LoggedChanges:
    assert isinstance(log.store, FakeLog)
    return LoggedChanges(log, FakeJoint(facts, log.store))


def _no_log() -> LogWriter:
    raise AssertionError("a test on fakes without a log wrote an entry")


def fake_services(clock: Clock | None = None) -> Services:
    """The service over fakes: real handlers, rules and cursors; no AWS."""

    def no_client(_: str) -> None:
        raise AssertionError("a test on fakes asked for AWS")

    services = Services(Settings(), clock or FakeClock(), no_client)
    facts = FakeFacts()
    services.__dict__["memory"] = replace(
        fake_memory(services.clock, facts),
        commit_with_entry=lambda *asked: logged_changes(facts, services.logs.log).commit(*asked),
    )
    services.__dict__["access"] = FakeAccess()
    return services
