"""What every ErasureStore keeps."""

from dataclasses import replace

import pytest

from factbook.domain import times
from factbook.domain.access.erasing import Selector
from factbook.domain.scope import Scope
from factbook.ports.erasure.records import Erasure, ErasureStore

NOON, LATER = "2026-01-01T12:00:00.000Z", "2026-01-01T12:01:00.000Z"
ANN = Selector("participant", "a|n%n", "p|1")


class ErasureStoreContract:
    """Subclasses give `store`."""

    store: ErasureStore

    @pytest.fixture(autouse=True)
    def _tenant(self, tenant: str) -> None:
        self.tenant = f"{tenant}|%"

    def new(self, number: int = 1, selector: Selector = ANN, at: str = NOON) -> Erasure:
        return Erasure(
            id=f"00000000-0000-8000-8000-{number:012d}",
            tenant=self.tenant,
            selector_kind=selector.kind,
            selector=selector,
            requested_by="user:boss",
            created_at=at,
            warnings=("w",),
            selector_hmac="ab" * 32,
            key_id="k1",
            made_by="digest",
        )

    def created(self, number: int = 1, selector: Selector = ANN, at: str = NOON) -> Erasure:
        erasure = self.new(number, selector, at)
        assert self.store.create(erasure, LATER) is None
        return erasure

    def due(self, now: str) -> list[str]:
        found, _ = self.store.work(now, None, 100_000)
        return [name for owner, name in found if owner == self.tenant]

    def later(self, erasure: Erasure, **changes: object) -> Erasure:
        changed: Erasure = replace(erasure, **changes)  # type: ignore[arg-type]
        assert self.store.replace(changed)
        return replace(changed, edition=changed.edition + 1)

    def test_one_that_is_created_is_kept_in_force_and_to_be_worked_on_from_its_instant(self) -> None:
        erasure = self.created()
        assert self.store.erasure(self.tenant, erasure.id) == erasure
        assert self.store.in_force(self.tenant).since == {ANN: NOON}
        assert self.due(NOON) == []
        assert self.due(LATER) == [erasure.id]
        assert self.store.page(self.tenant, None, 10) == ([erasure], None)

    def test_a_second_of_its_id_is_told_of_the_first_and_changes_nothing(self) -> None:
        erasure = self.created()
        other = replace(erasure, selector=Selector("user", "bob"), made_by="another")
        assert self.store.create(other, NOON) == erasure
        assert self.store.in_force(self.tenant).since == {ANN: NOON}

    def test_what_is_kept_comes_back_whole(self) -> None:
        erasure = self.later(
            self.created(),
            status="running",
            phase="erase",
            counts={"facts": 3},
            attempts=2,
            last_error="storage-unavailable",
            started_at=LATER,
            replayed_at=LATER,
            warnings=("one", "two"),
            entry_id="_erasures:0:0123456789abcdef",
            resumed_by="digest",
        )
        assert self.store.erasure(self.tenant, erasure.id) == erasure

    def test_a_later_state_is_kept_once(self) -> None:
        erasure = self.created()
        running = replace(erasure, status="running")
        assert self.store.replace(running)
        assert self.store.replace(running), "the same once more: its answer was lost"
        assert not self.store.replace(replace(running, attempts=7))
        assert not self.store.replace(replace(self.new(9), status="running"))

    @pytest.mark.parametrize("status", ["completed", "failed"])
    def test_one_that_has_ended_is_no_more_in_force_nor_to_be_worked_on(self, status: str) -> None:
        erasure, other = self.created(1), self.created(2, Selector("user", "bob"))
        ended = self.later(erasure, status=status)
        assert self.store.in_force(self.tenant).since == {Selector("user", "bob"): NOON}
        assert self.due(LATER) == [other.id]
        assert self.store.erasure(self.tenant, erasure.id) == ended
        self.store.put_off(self.tenant, erasure.id, NOON)
        assert not self.store.take(self.tenant, erasure.id, LATER, LATER)
        assert self.due(LATER) == [other.id]

    def test_one_that_failed_is_put_in_force_again_and_again(self) -> None:
        failed = self.later(self.created(), status="failed")
        again = replace(failed, status="pending")
        for _ in range(2):
            assert self.store.put_in_force(again, NOON)
        assert self.store.in_force(self.tenant).since == {ANN: NOON}
        assert self.due(NOON) == [failed.id]
        kept = self.store.erasure(self.tenant, failed.id)
        assert kept == replace(again, edition=again.edition + 1)

    def test_one_that_was_kept_meanwhile_is_not_put_in_force_as_it_was_before(self) -> None:
        before = self.created()
        done = self.later(before, status="completed", selector=None)
        assert not self.store.put_in_force(before, NOON)
        assert self.store.erasure(self.tenant, before.id) == done
        assert self.store.in_force(self.tenant).since == {}
        assert self.due(LATER) == []

    def test_it_is_withdrawn_without_a_trace_unless_it_was_begun(self) -> None:
        erasure, begun = self.created(1), self.created(2, Selector("user", "bob"))
        for _ in range(2):
            assert self.store.withdraw(erasure)
        assert self.store.erasure(self.tenant, erasure.id) is None
        running = self.later(begun, status="running")
        assert not self.store.withdraw(begun)
        assert self.store.in_force(self.tenant).since == {Selector("user", "bob"): NOON}
        assert self.store.page(self.tenant, None, 10) == ([running], None)
        assert self.due(LATER) == [begun.id]

    def test_one_runner_takes_it_and_nobody_else_until_then(self) -> None:
        erasure = self.created()
        until = times.add(LATER, seconds=90)
        assert not self.store.take(self.tenant, erasure.id, NOON, until), "not yet"
        assert self.store.take(self.tenant, erasure.id, LATER, until)
        assert not self.store.take(self.tenant, erasure.id, LATER, until)
        assert self.due(LATER) == []
        assert self.store.take(self.tenant, erasure.id, until, times.add(until, seconds=90))
        self.store.put_off(self.tenant, erasure.id, NOON)
        assert self.due(NOON) == [erasure.id]

    def test_what_is_to_be_worked_on_comes_in_parts_each_once_whoever_is_due(self) -> None:
        mine = {self.created(number, at=NOON).id for number in range(1, 8)}
        other = self.tenant
        self.tenant += "-other"
        self.created(1)
        self.tenant = other
        for limit in (1, 3, 100_000):
            found, after = list[tuple[str, str]](), None
            while True:
                some, after = self.store.work(LATER, after, limit)
                assert len(some) <= limit
                found += some
                if after is None:
                    break
            assert len(found) == len(set(found))
            assert {name for owner, name in found if owner == self.tenant} == mine
            assert (f"{other}-other", self.new(1).id) in found
        assert self.store.work(NOON, None, 1)[1] is not None, "a part without any that is due is not the last"

    def test_a_list_goes_through_all_newest_or_oldest_first(self) -> None:
        made = [
            self.created(number, Selector("external", str(number)), times.add(NOON, seconds=number))
            for number in range(1, 8)
        ]
        for oldest_first, wanted in ((False, made[::-1]), (True, made)):
            found: list[Erasure] = []
            position: str | None = None
            while True:
                page, position = self.store.page(self.tenant, position, 3, oldest_first=oldest_first)
                found += page
                assert len(page) <= 3
                if position is None:
                    break
            assert found == wanted

    def test_several_are_read_at_once_and_those_that_are_not_there_left_out(self) -> None:
        one, other = self.created(1), self.created(2, Selector("user", "bob"))
        found = self.store.several(self.tenant, [one.id, other.id, self.new(3).id])
        assert found == {one.id: one, other.id: other}
        assert self.store.several(self.tenant, []) == {}

    def test_what_is_put_back_is_listed_and_takes_the_place_of_nothing(self) -> None:
        there = self.created(1)
        lost = replace(self.new(2), selector=None, status="completed", phase="done")
        for _ in range(2):
            self.store.put_back([replace(there, requested_by="user:x"), lost])
        assert self.store.several(self.tenant, [there.id, lost.id]) == {there.id: there, lost.id: lost}
        assert {each.id for each in self.store.page(self.tenant, None, 10)[0]} == {there.id, lost.id}
        assert self.store.in_force(self.tenant).since == {ANN: NOON}
        assert self.due(LATER) == [there.id]

    def test_fifty_are_put_back_at_once_whichever_of_them_are_there(self) -> None:
        there = [self.created(number) for number in (7, 20)]
        lost = [
            replace(self.new(number), selector=None, status="completed", requested_by="user:lost")
            for number in range(50)
        ]
        self.store.put_back(lost)
        self.store.put_back(lost[:30])
        self.store.put_back([])
        found = self.store.several(self.tenant, [each.id for each in lost])
        assert len(found) == 50
        kept = [each.id for each in found.values() if each.requested_by != "user:lost"]
        assert sorted(kept) == sorted(each.id for each in there)
        assert len(self.store.page(self.tenant, None, 100)[0]) == 50

    def test_tenants_have_nothing_in_common(self) -> None:
        erasure = self.created()
        other = self.tenant + "x"
        assert self.store.erasure(other, erasure.id) is None
        assert self.store.in_force(other).since == {}
        assert self.store.page(other, None, 10) == ([], None)
        assert self.store.in_force(other).of_scope(Scope(tenantId=other, participantId="a|n%n")) is None
