"""What every store of refreshing keeps, whatever it stands on."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.fakes import FakeClock

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload, Source
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.facts.transitions import close, open_fact
from factbook.domain.scope import Scope
from factbook.domain.sources.circuits import CLOSED, Circuit
from factbook.ports.facts.store import FactStore, Head, Mark
from factbook.ports.sources.stores import Circuits, DueIndex, Leases

NOON = "2026-01-01T12:00:00.000Z"


class LeasesContract:
    """Subclasses give `leases` by `clock`."""

    leases: Leases
    clock: FakeClock

    @pytest.fixture(autouse=True)
    def _what(self) -> None:
        self.what = ("lease", "tenant|%", str(uuid.uuid4()))

    def test_one_owner_at_a_time_has_a_thing(self) -> None:
        assert self.leases.take(self.what, "a", 30)
        assert not self.leases.take(self.what, "b", 30)
        assert self.leases.take((*self.what[:-1], "another"), "b", 30)
        self.leases.give_back((*self.what[:-1], "another"), "b")

    def test_of_many_who_take_it_at_once_one_has_it(self) -> None:
        owners = [f"o{number}" for number in range(12)]
        with ThreadPoolExecutor(12) as pool:
            taken = list(pool.map(lambda owner: self.leases.take(self.what, owner, 30), owners))
        assert taken.count(True) == 1

    def test_its_owner_may_take_it_again_as_after_a_lost_reply(self) -> None:
        assert self.leases.take(self.what, "a", 30)
        assert self.leases.take(self.what, "a", 30)

    def test_a_lease_runs_out(self) -> None:
        assert self.leases.take(self.what, "a", 30)
        self.clock.advance(seconds=29.9)
        assert not self.leases.take(self.what, "b", 30)
        self.clock.advance(seconds=0.2)
        assert self.leases.take(self.what, "b", 30)

    def test_its_owner_gives_it_back_and_nobody_else_does(self) -> None:
        assert self.leases.take(self.what, "a", 30)
        self.leases.give_back(self.what, "b")
        assert not self.leases.take(self.what, "b", 30)
        self.leases.give_back(self.what, "a")
        self.leases.give_back(self.what, "a")
        assert self.leases.take(self.what, "b", 30)

    def test_what_rests_is_nobody_s_for_a_while(self) -> None:
        assert self.leases.take(self.what, "a", 30)
        self.leases.give_back(self.what, "a", 0.25)
        assert not self.leases.take(self.what, "a", 30)
        self.clock.advance(milliseconds=250)
        assert self.leases.take(self.what, "b", 30)
        self.leases.give_back(self.what, "a", 0.25)
        assert not self.leases.take(self.what, "a", 30), "it is another's by now"


class CircuitsContract:
    """Subclasses give `circuits`."""

    circuits: Circuits

    @pytest.fixture(autouse=True)
    def _tenant(self) -> None:
        self.tenant = f"t|{uuid.uuid4()}"

    def test_a_circuit_that_nobody_has_touched_is_closed(self) -> None:
        assert self.circuits.circuit(self.tenant, "h:8443") == CLOSED

    def test_a_circuit_comes_back_as_it_was_kept_and_is_its_host_s_and_tenant_s(self) -> None:
        failing, opened = Circuit(3), Circuit(0, 2, NOON)
        assert self.circuits.keep(self.tenant, "h", CLOSED, failing)
        assert self.circuits.circuit(self.tenant, "h") == failing
        assert self.circuits.keep(self.tenant, "h", failing, opened)
        assert self.circuits.circuit(self.tenant, "h") == opened
        assert self.circuits.circuit(self.tenant, "h2") == CLOSED
        assert self.circuits.circuit(self.tenant + "x", "h") == CLOSED
        assert self.circuits.keep(self.tenant, "h", opened, CLOSED)
        assert self.circuits.circuit(self.tenant, "h") == CLOSED

    @pytest.mark.parametrize("after", [Circuit(2), CLOSED])
    def test_what_another_has_kept_meanwhile_is_not_overwritten(self, after: Circuit) -> None:
        assert self.circuits.keep(self.tenant, "h", CLOSED, Circuit(4))
        for before in (Circuit(1), Circuit(4, 1), Circuit(4, 0, NOON)):
            assert not self.circuits.keep(self.tenant, "h", before, after)
        assert self.circuits.circuit(self.tenant, "h") == Circuit(4)


class DueIndexContract:
    """Subclasses give `index` over the facts of `store`."""

    index: DueIndex
    store: FactStore

    @pytest.fixture(autouse=True)
    def _world(self) -> None:
        self.tenant = f"tenant-{uuid.uuid4()}"
        self.made: list[Head] = []

    def mirror(
        self, due: str = NOON, priority: int | None = None, tenant: str | None = None, **refresh: Any
    ) -> Head:
        """A fact that is due then."""
        verified = times.add(due, seconds=-60)
        source = Source.model_validate(
            {
                "kind": "http-api",
                "freshness": {"ttlSeconds": 60, "lastVerifiedAt": verified},
                "refresh": {"strategy": "background", **({} if priority is None else {"priority": priority})}
                | refresh,
            }
        )
        tenant = tenant or self.tenant
        writer = Principal(tenant, Actor(kind="user", id="ann"), admin=True)
        scope, payload = Scope(tenantId=tenant), Payload(text="1", content_hash="sha256:0", size=1)
        fact = open_fact(
            str(uuid.uuid4()), "note", scope, FactChanges(source=source), payload, writer, verified
        )
        head = Head.first(fact, Mark("k" * 12, "b" * 12, 1))
        assert self.store.create(head) is None
        self.made.append(head)
        return head

    def found(self, until: str = NOON, after: str = "", limit: int = 100) -> dict[int, list[str]]:
        """This test's facts that are due, by priority, in the order of each partition."""
        own = {head.fact.id for head in self.made}
        tenants = {head.fact.scope.tenant_id for head in self.made}
        found: dict[int, list[str]] = {}
        for priority in range(10):
            for shard in range(self.index.shards):
                rows, _ = self.index.due(priority, shard, after, until, limit)
                ids = [row.fact_id for row in rows if row.fact_id in own]
                assert all(row.tenant in tenants for row in rows if row.fact_id in own)
                assert [row.order for row in rows] == sorted(row.order for row in rows)
                if ids:
                    found[priority] = found.get(priority, []) + ids
        return found

    def test_a_fact_is_due_in_the_partition_of_its_priority_from_its_time_on(self) -> None:
        heads = {priority: self.mirror(priority=priority).fact.id for priority in (-3, 0, 4, 9, 12)}
        unstated = self.mirror().fact.id

        assert self.found(until=times.add(NOON, milliseconds=-1)) == {}
        found = {priority: set(ids) for priority, ids in self.found().items()}
        assert found == {0: {heads[-3], heads[0], unstated}, 4: {heads[4]}, 9: {heads[9], heads[12]}}

    def test_a_partition_is_read_on_from_any_row(self) -> None:
        heads = [self.mirror(times.add(NOON, seconds=-number)) for number in range(30)]
        for shard in range(self.index.shards):
            whole, more = self.index.due(0, shard, "", NOON, 10_000)
            assert not more
            walked, after = [], ""
            while rows := self.index.due(0, shard, after, NOON, 3)[0]:
                walked += rows
                after = rows[-1].order
            assert walked == whole
        assert len(heads) == 30

    def test_only_current_facts_that_the_schedule_is_to_refresh_are_in_it(self) -> None:
        for strategy in ("on-read", "manual"):
            self.mirror(strategy=strategy)
        closed, kept = self.mirror(), self.mirror()
        gone = closed.followed_by(close(closed.fact, "user:ann", NOON, "deleted"), closed.marks[0])
        assert self.store.amend(closed, gone) is None

        assert self.found() == {0: [kept.fact.id]}

    def test_what_is_known_of_a_source_moves_when_its_fact_is_due(self) -> None:
        failed, asked, agreed = self.mirror(), self.mirror(), self.mirror()
        later = times.add(NOON, hours=1)
        source = agreed.fact.source
        assert source is not None
        fresh = source.model_copy(
            update={"freshness": source.freshness.model_copy(update={"last_verified_at": NOON})}
        )
        after = {
            failed: failed.rechecked(failed.fact, RefreshState(1, "source-unavailable", later)),
            asked: asked.rechecked(asked.fact, RefreshState(asked_at=NOON)),
            agreed: agreed.rechecked(
                agreed.fact.model_copy(update={"source": fresh}), RefreshState(max_age=1)
            ),
        }
        for before, known in after.items():
            assert self.store.amend(before, known) is None

        assert self.found() == {}
        assert self.found(times.add(NOON, seconds=60)) == {0: [agreed.fact.id]}
        assert set(self.found(later)[0]) == {failed.fact.id, agreed.fact.id}

    def test_a_tenant_of_any_name_is_told(self) -> None:
        for name in (f"a|b%{self.tenant}", f"~{self.tenant}", "ü" * 200 + self.tenant):
            self.mirror(tenant=name)

        rows = [
            row for shard in range(self.index.shards) for row in self.index.due(0, shard, "", NOON, 10_000)[0]
        ]
        for head in self.made:
            (row,) = [row for row in rows if row.fact_id == head.fact.id]
            assert row.tenant == head.fact.scope.tenant_id
