"""What every FactStore keeps, whatever it stands on."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from factbook.domain.facts.fact import Fact, FactChanges, Payload, Subject
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.facts.transitions import close, open_fact, supersede
from factbook.domain.facts.type_order import HIGHEST, LOWEST, behind_type, type_place, with_prefix
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.facts.store import FactStore, Head, Mark

from .writer import WithWriter

NEWEST = "~"
NOON = "2026-01-01T12:00:00.000Z"


def payload(text: str = '"x"') -> Payload:
    return Payload(text=text, content_hash="sha256:0", size=len(text))


class FactStoreContract(WithWriter):
    """Subclasses give `store`."""

    store: FactStore

    def new(self, at: str = NOON, text: str = '"x"', **scope: str) -> Head:
        place = Scope(tenantId=self.tenant, **scope)
        fact = open_fact(str(uuid.uuid4()), "note", place, FactChanges(), payload(text), self.writer, at)
        return Head(fact, 1, (Mark("k" * 12, "b" * 12, 1),))

    def kept(self, **new: Any) -> Head:
        head = self.new(**new)
        assert self.store.create(head) is None
        return head

    def test_heads_are_found_by_id_and_one_that_is_named_twice_is_read_once(self) -> None:
        one, other = self.kept(), self.kept()
        ids = [one.fact.id, other.fact.id, str(uuid.uuid4()), one.fact.id]
        assert self.store.heads(self.tenant, ids) == {one.fact.id: one, other.fact.id: other}

    def next_of(self, head: Head, now: str = NOON) -> tuple[Fact, Head]:
        closed, following = supersede(head.fact, FactChanges(), payload('"y"'), self.writer, now)
        return closed, head.followed_by(following, Mark("n" * 12, "m" * 12, following.version))

    def advanced(self, head: Head) -> Head:
        closed, after = self.next_of(head)
        assert self.store.advance(head, closed, after) is None
        return after

    def rows_of(self, container: str | None, *, closed: bool = False, limit: int = 100) -> list[str]:
        found = []
        for shard in range(self.store.shards(container)):
            rows, _ = self.store.rows(self.tenant, container, shard, NEWEST, limit, closed=closed)
            found += [row.fact_id for row in rows]
        return sorted(found)

    # -- one record

    def test_a_head_comes_back_as_it_was_put(self) -> None:
        head = self.kept(userId="ünïcode|%~", projectId="p")
        assert self.store.head(self.tenant, head.fact.id) == head

    def test_nothing_is_found_under_another_tenant_or_another_id(self) -> None:
        head = self.kept()
        assert self.store.head(self.tenant + "x", head.fact.id) is None
        assert self.store.head(self.tenant, head.fact.id + "x") is None
        assert self.store.heads(self.tenant + "x", [head.fact.id]) == {}

    def test_an_id_is_taken_once_and_the_loser_gets_the_winner(self) -> None:
        head = self.kept()
        other = Head(head.fact.model_copy(update={"type": "other"}), 1, ())
        assert self.store.create(other) == head
        assert self.store.head(self.tenant, head.fact.id) == head

    def test_an_advance_keeps_the_closed_revision_and_the_new_head(self) -> None:
        head = self.kept()
        closed, after = self.next_of(head)
        assert self.store.advance(head, closed, after) is None
        assert self.store.head(self.tenant, head.fact.id) == after
        assert self.store.revision(after, 1) == closed

    def test_an_advance_from_a_record_that_changed_writes_nothing(self) -> None:
        head = self.kept()
        after = self.advanced(head)
        closed, rival = self.next_of(head, "2026-01-02T00:00:00.000Z")
        assert self.store.advance(head, closed, rival) == after
        assert self.store.head(self.tenant, head.fact.id) == after
        kept = self.store.revision(head, 1)
        assert kept is not None
        assert kept.invalidated_at != closed.invalidated_at

    # -- the confirmed text beside a proposal

    def proposed(self, **stated: str) -> tuple[Head, Head]:
        """A confirmed memory, and the proposal that was put over it; `stated`: what is another's of the proposal."""
        made = self.new(userId="ann")
        memory = {"agent_id": "copilot", "owner": "user:ann", "reach": "account"}
        confirmed = replace(made, fact=made.fact.model_copy(update=memory))
        assert self.store.create(confirmed) is None
        closed, following = supersede(confirmed.fact, FactChanges(), payload('"y"'), self.writer, NOON)
        waits = following.model_copy(
            update={"reach": "account-proposed", "expires_at": "2027-01-01T00:00:00.000Z"} | stated
        )
        after = confirmed.followed_by(waits, Mark("n" * 12, "m" * 12, 2))
        assert self.store.advance(confirmed, closed, after) is None
        return confirmed, after

    def test_a_proposal_comes_back_with_the_confirmed_text_beside_it(self) -> None:
        confirmed, head = self.proposed()
        assert head.confirmed is not None
        assert head.confirmed.fact == confirmed.fact
        assert self.store.head(self.tenant, head.fact.id) == head
        assert self.store.heads(self.tenant, [head.fact.id]) == {head.fact.id: head}
        assert [fact.version for fact in self.store.revisions(head, 9, 10**6)[0]] == [1]

    def test_a_row_of_a_proposal_hides_nothing_that_the_text_beside_it_may_show(self) -> None:
        _, head = self.proposed()
        shards = range(self.store.shards(None))
        rows = [row for shard in shards for row in self.store.rows(self.tenant, None, shard, NEWEST, 9)[0]]
        assert [(row.fact_id, row.expires_at, row.pending_review) for row in rows] == [
            (head.fact.id, None, False)
        ]

    def by_type(self, fact_type: str) -> list[tuple[str, bool, bool]]:
        """Of the rows of one type in the owner's container, and for administrators: fact, in review, of two types."""
        found = []
        for container in ("U:ann", None):
            for shard in range(self.store.shards(container)):
                rows, _ = self.store.rows(self.tenant, container, shard, NEWEST, 9, of_type=fact_type)
                span = (type_place(fact_type), behind_type(fact_type))
                assert self.store.rows_by_type(self.tenant, container, shard, *span, 9)[0] == rows[::-1]
                assert {row.type for row in rows} <= {fact_type}
                assert {row.order for row in rows} <= {f"{NOON}|{row.fact_id}" for row in rows}
                assert {(row.agent_id, row.owner) for row in rows} <= {("copilot", "user:ann")}
                found += [(row.fact_id, row.pending_review, row.two_types) for row in rows]
        return found

    def test_a_confirmed_text_of_another_type_than_its_proposal_is_listed_by_its_own(self) -> None:
        _, head = self.proposed(type="other", review="pending")
        own, beside = (head.fact.id, False, True), (head.fact.id, False, False)
        assert self.by_type("other") == [own] * 2
        assert self.by_type("note") == [beside] * 2
        assert self.rows_of(None) == self.rows_of("U:ann") == [head.fact.id], "a fact is listed once"

        again = self.retyped(head, "note")
        assert self.by_type("note") == [beside] * 2
        assert self.by_type("other") == []
        third = self.retyped(again, "third")
        assert (self.by_type("note"), self.by_type("third")) == ([beside] * 2, [own] * 2)

        gone = close(third.fact, "user:ann", NOON, "deleted")
        assert self.store.amend(third, third.followed_by(gone, Mark("p" * 12, "m" * 12, 4))) is None
        assert (self.by_type("note"), self.by_type("third")) == ([], [])

    def retyped(self, head: Head, fact_type: str) -> Head:
        """A further proposal, of this type."""
        closed, after = self.next_of(head)
        after = replace(after, fact=after.fact.model_copy(update={"type": fact_type}))
        assert self.store.advance(head, closed, after) is None
        return after

    def test_who_loses_against_a_proposal_gets_it_with_the_text_beside_it(self) -> None:
        confirmed, head = self.proposed()
        closed, rival = self.next_of(confirmed, "2026-01-02T00:00:00.000Z")
        assert self.store.advance(confirmed, closed, rival) == head
        assert self.store.create(confirmed) == head

    def test_a_further_proposal_keeps_the_confirmed_text_and_the_next_state_takes_it_along(self) -> None:
        confirmed, head = self.proposed()
        again = self.advanced(head)
        assert again.confirmed == head.confirmed
        closed, following = supersede(again.fact, FactChanges(), None, self.writer, NOON)
        decided = following.model_copy(update={"reach": "account"})
        after = again.followed_by(decided, Mark("p" * 12, "m" * 12, 4))
        assert self.store.advance(again, closed, after) is None
        found = self.store.head(self.tenant, confirmed.fact.id)
        assert found == after
        assert found.confirmed is None

    def test_closing_a_proposal_in_place_removes_the_text_beside_it(self) -> None:
        _, head = self.proposed()
        gone = close(head.fact, "user:ann", NOON, "deleted")
        after = head.followed_by(gone, Mark("p" * 12, "m" * 12, 2))
        assert self.store.amend(head, after) is None
        assert self.store.head(self.tenant, head.fact.id) == after
        assert after.confirmed is None

    def test_an_amendment_replaces_the_head_in_place_only_from_what_was_read(self) -> None:
        head = self.kept()
        after = replace(head, edition=2, fact=close(head.fact, "user:ann", NOON, "deleted"))
        assert self.store.amend(head, after) is None
        assert self.store.head(self.tenant, head.fact.id) == after
        assert self.store.amend(head, replace(after, edition=3)) == after
        assert self.store.revision(head, 1) is None

    # -- what is known of a source

    def test_what_is_known_of_a_source_comes_back_beside_the_fact_and_is_no_part_of_it(self) -> None:
        head = self.kept()
        known = RefreshState(2, "source-refused", NOON, True, NOON, 60, True)
        after = head.rechecked(head.fact, known)
        assert self.store.amend(head, after) is None
        found = self.store.head(self.tenant, head.fact.id)
        assert found == after
        assert (found.refresh, found.fact, found.edition, found.searched_as) == (known, head.fact, 2, 1)
        again = found.rechecked(found.fact, RefreshState())
        assert (again.searched_as, again.marks) == (1, head.marks), "nobody's operation"
        assert self.advanced(found).searched_as == 3

    def test_whether_a_fact_is_stale_is_never_stored(self) -> None:
        head = self.new()
        marked = head.fact.model_copy(update={"stale": True, "stale_reason": "busy"})
        assert self.store.create(replace(head, fact=marked)) is None
        assert self.store.head(self.tenant, head.fact.id) == head

    def test_a_change_of_a_record_that_is_gone_is_contended_or_finds_nothing(self) -> None:
        head = self.new()
        closed, after = self.next_of(head)
        try:
            found = self.store.advance(head, closed, after)
        except Contended:
            found = None
        assert found is None
        assert self.store.head(self.tenant, head.fact.id) in (None, after)

    # -- lives of one id

    def life(self, at: str, fact_id: str = "same") -> Head:
        fact = self.new(at=at).fact.model_copy(update={"id": fact_id, "revision_id": f"{fact_id}:1"})
        return Head.first(fact, Mark("k" * 12, "b" * 12, 1))

    def test_a_head_keeps_its_life_and_the_time_it_is_kept_from(self) -> None:
        head = self.life(NOON)
        kept = replace(head, fact=head.fact.model_copy(update={"kept_from": "2026-01-03T00:00:00.000Z"}))
        assert self.store.create(kept) is None
        assert self.store.head(self.tenant, "same") == kept
        closed, _ = self.next_of(kept)
        after = self.advanced(kept)
        assert (after.life, after.fact.kept_from) == (kept.life, kept.fact.kept_from)
        assert self.store.revision(after, 1) == closed

    def test_a_new_life_meets_no_revision_of_a_former_one(self) -> None:
        former = self.life(NOON)
        assert self.store.create(former) is None
        former = self.advanced(self.advanced(former))
        born = former.reborn_as(self.life("2026-01-02T00:00:00.000Z").fact, Mark("n" * 12, "m" * 12, 1))
        assert self.store.amend(former, born) is None
        assert born.edition == former.edition + 1
        assert self.store.revisions(born, 99, 10**6) == ([], False)
        assert self.store.revision(born, 1) is None
        after = self.advanced(born)
        assert [each.created_at for each in self.store.revisions(after, 99, 10**6)[0]] == [
            born.fact.created_at
        ]
        assert [each.version for each in self.store.revisions(former, 99, 10**6)[0]] == [2, 1]

    def test_a_fact_of_the_former_format_keeps_its_revisions_and_its_new_life_meets_none(self) -> None:
        former = replace(self.life(NOON), life=None)
        assert self.store.create(former) is None
        former = self.advanced(former)
        assert [each.version for each in self.store.revisions(former, 99, 10**6)[0]] == [1]
        born = former.reborn_as(self.life("2026-01-02T00:00:00.000Z").fact, Mark("n" * 12, "m" * 12, 1))
        assert self.store.amend(former, born) is None
        after = self.advanced(born)
        assert [each.created_at for each in self.store.revisions(after, 99, 10**6)[0]] == [
            born.fact.created_at
        ]

    def test_who_read_another_life_changes_nothing_even_at_the_same_edition(self) -> None:
        born = self.life("2026-01-02T00:00:00.000Z")
        assert self.store.create(born) is None
        for former in (self.life(NOON), replace(self.life(NOON), life=None)):
            closed, after = self.next_of(former)
            assert self.store.amend(former, after) == born
            assert self.store.advance(former, closed, after) == born
        assert self.store.head(self.tenant, "same") == born

    # -- many records

    def test_heads_are_answered_by_id_and_the_missing_are_left_out(self) -> None:
        heads = {head.fact.id: head for head in (self.kept() for _ in range(3))}
        assert self.store.heads(self.tenant, [*heads, "nobody"]) == heads
        assert self.store.heads(self.tenant, []) == {}

    def test_heads_of_full_size_are_answered_whole(self) -> None:
        text = '"' + "x" * 65_000 + '"'
        heads = {head.fact.id: head for head in (self.kept(text=text) for _ in range(30))}
        assert self.store.heads(self.tenant, list(heads)) == heads

    def test_revisions_come_newest_first_below_a_version_and_within_a_budget(self) -> None:
        head = self.kept()
        for _ in range(5):
            head = self.advanced(head)
        found, more = self.store.revisions(head, 6, 10**6)
        assert ([fact.version for fact in found], more) == ([5, 4, 3, 2, 1], False)
        room = sum(fact.wire_bytes for fact in found if fact.version in (3, 2))
        found, more = self.store.revisions(head, 4, room)
        assert ([fact.version for fact in found], more) == ([3, 2], True)
        found, more = self.store.revisions(head, 2, 1)
        assert ([fact.version for fact in found], more) == ([1], False)

    # -- listing

    @pytest.mark.parametrize(
        ("scope", "container"),
        [
            ({}, "T"),
            ({"orgId": "o"}, "O:o"),
            ({"projectId": "p", "orgId": "o"}, "P:p"),
            ({"projectId": "p", "participantId": "x"}, "W:p"),
            ({"projectId": "p", "threadId": "x"}, "W:p"),
            ({"projectId": "p", "userId": "u"}, "U:u"),
            ({"threadId": "x"}, "A"),
            ({"sessionId": "s"}, "T"),
        ],
    )
    def test_a_fact_is_listed_in_one_container_and_for_administrators(
        self, scope: dict[str, str], container: str
    ) -> None:
        head = self.kept(**scope)
        assert self.rows_of(container) == [head.fact.id]
        assert self.rows_of(None) == [head.fact.id]
        assert self.rows_of(container, closed=True) == []

    @pytest.mark.parametrize(
        "names", [("p", "p|0"), ("p%", "p%25"), ("~p", "%7Ep"), ("a" * 256, "a" * 255), ("é", "e\u0301")]
    )
    def test_containers_whose_names_resemble_each_other_are_apart(self, names: tuple[str, str]) -> None:
        one, other = (self.kept(projectId=name) for name in names)
        assert self.rows_of(f"P:{names[0]}") == [one.fact.id]
        assert self.rows_of(f"P:{names[1]}") == [other.fact.id]

    def test_a_row_tells_what_a_list_filters_by(self) -> None:
        head = self.new(projectId="p", sessionId="s")
        fact = head.fact.model_copy(update={"expires_at": "2027-01-01T00:00:00.000Z", "review": "pending"})
        assert self.store.create(Head(fact)) is None
        rows = [self.store.rows(self.tenant, "P:p", shard, NEWEST, 5)[0] for shard in range(4)]
        (row,) = [row for found in rows for row in found]
        assert row.order == f"{NOON}|{fact.id}"
        assert row.type == "note"
        assert row.scope == {"tenantId": self.tenant, "projectId": "p", "sessionId": "s"}
        assert (row.expires_at, row.pending_review) == ("2027-01-01T00:00:00.000Z", True)

    def test_rows_come_newest_first_strictly_below_a_position(self) -> None:
        instants = [f"2026-01-01T12:00:{second:02d}.000Z" for second in range(20)]
        heads = [self.kept(at=instant, projectId="p") for instant in instants]
        seen: list[str] = []
        for shard in range(self.store.shards("P:p")):
            before, more, orders = NEWEST, True, []
            while more:
                rows, more = self.store.rows(self.tenant, "P:p", shard, before, 3)
                assert len(rows) <= 3
                orders += [row.order for row in rows]
                before = orders[-1] if orders else before
            assert orders == sorted(orders, reverse=True)
            seen += orders
        assert sorted(seen) == sorted(f"{head.fact.created_at}|{head.fact.id}" for head in heads)

    def test_a_closed_fact_moves_to_the_closed_rows_and_a_superseded_one_stays(self) -> None:
        head = self.advanced(self.kept(projectId="p"))
        assert self.rows_of("P:p") == [head.fact.id]
        gone = replace(head, edition=head.edition + 1, fact=close(head.fact, "user:ann", NOON, "deleted"))
        assert self.store.amend(head, gone) is None
        for container in ("P:p", None):
            assert self.rows_of(container) == []
            assert self.rows_of(container, closed=True) == [head.fact.id]

    # -- by type

    def typed(self, *types: str, at: str = NOON, **scope: str) -> list[Head]:
        heads = []
        for fact_type in types:
            head = self.new(at=at, **scope)
            head = replace(head, fact=head.fact.model_copy(update={"type": fact_type}))
            assert self.store.create(head) is None
            heads.append(head)
        return heads

    def test_rows_of_one_type_come_newest_first_strictly_below_a_position(self) -> None:
        instants = [f"2026-01-01T12:00:{second:02d}.000Z" for second in range(12)]
        wanted = {
            f"{at}|{head.fact.id}"
            for at in instants
            for head in self.typed("acme", "acme.note", "acme ", at=at, projectId="p")[:1]
        }
        for container in ("P:p", None):
            seen: list[str] = []
            for shard in range(self.store.shards(container)):
                before, more, orders = NEWEST, True, []
                while more:
                    rows, more = self.store.rows(self.tenant, container, shard, before, 2, of_type="acme")
                    assert {row.type for row in rows} <= {"acme"}
                    orders += [row.order for row in rows]
                    before = orders[-1] if orders else before
                assert orders == sorted(orders, reverse=True)
                seen += orders
            assert sorted(seen) == sorted(wanted)

    def test_rows_by_type_come_in_the_order_of_names_within_a_span(self) -> None:
        names = ["b", "a.x", "a", "a!", "é", "a|b", "a.y"]
        self.typed(*names, projectId="p")
        self.typed("elsewhere", projectId="q")

        def read(first: str, last: str) -> list[str]:
            found = []
            for shard in range(self.store.shards("P:p")):
                at, more = first, True
                while more:
                    rows, more = self.store.rows_by_type(self.tenant, "P:p", shard, at, last, 1)
                    found += [row.type for row in rows]
                    at = behind_type(rows[0].type) if rows else at
            return sorted(found)

        assert read(LOWEST, HIGHEST) == sorted(names)
        span = with_prefix("a.")
        assert span is not None
        assert read(*span) == ["a.x", "a.y"]
        assert read(behind_type("a.y"), HIGHEST) == ["a|b", "b", "é"]

    def test_a_row_tells_whose_memory_it_is(self) -> None:
        head = self.new(projectId="p")
        fact = head.fact.model_copy(update={"agent_id": "helper", "owner": "user:ann"})
        assert self.store.create(replace(head, fact=fact)) is None
        shards = range(self.store.shards("P:p"))
        for read in (
            lambda shard: self.store.rows(self.tenant, "P:p", shard, NEWEST, 5),
            lambda shard: self.store.rows(self.tenant, "P:p", shard, NEWEST, 5, of_type="note"),
        ):
            (row,) = [row for shard in shards for row in read(shard)[0]]
            assert (row.agent_id, row.owner) == ("helper", "user:ann")

    def test_a_closed_fact_moves_to_the_closed_rows_by_type_too(self) -> None:
        (head,) = self.typed("acme", projectId="p")
        gone = replace(head, edition=2, fact=close(head.fact, "user:ann", NOON, "deleted"))
        assert self.store.amend(head, gone) is None

        def ids(*, closed: bool) -> list[str]:
            shards = range(self.store.shards("P:p"))
            read = [
                self.store.rows(self.tenant, "P:p", each, NEWEST, 5, closed=closed, of_type="acme")[0]
                for each in shards
            ]
            return [row.fact_id for rows in read for row in rows]

        assert (ids(closed=False), ids(closed=True)) == ([], [head.fact.id])

    def test_a_revision_whose_next_one_is_of_another_type_is_among_the_closed_rows_of_its_own(self) -> None:
        (head,) = self.typed("acme", projectId="p")
        after = self.retyped(self.retyped(self.advanced(head), "other"), "acme")

        def ids(of_type: str | None, container: str | None, *, closed: bool) -> list[str]:
            shards = range(self.store.shards(container))
            read = [
                self.store.rows(self.tenant, container, each, NEWEST, 5, closed=closed, of_type=of_type)[0]
                for each in shards
            ]
            return [row.order for rows in read for row in rows]

        once = [f"{NOON}|{after.fact.id}"]
        for container in ("P:p", None):
            found = {
                (of_type, closed): ids(of_type, container, closed=closed)
                for of_type in ("acme", "other", None)
                for closed in (True, False)
            }
            assert found == {
                ("acme", True): once,
                ("other", True): once,
                (None, True): [],
                ("acme", False): once,
                ("other", False): [],
                (None, False): once,
            }
        assert [fact.version for fact in self.store.revisions(after, 9, 10**6)[0]] == [3, 2, 1]

    # -- lives

    def test_a_new_life_never_meets_the_revisions_of_a_former_one(self) -> None:
        later = "2026-02-01T00:00:00.000Z"
        old = Head.first(self.new().fact, Mark("k" * 12, "b" * 12, 1))
        assert self.store.create(old) is None
        old_after = self.advanced(old)
        new = Head.first(
            old.fact.model_copy(update={"created_at": later, "updated_at": later}),
            Mark("n" * 12, "b" * 12, 1),
        )
        assert self.store.amend(old_after, replace(new, edition=3)) is None
        new = replace(new, edition=3)
        assert self.store.revision(new, 1) is None
        assert self.store.revisions(new, 9, 10**6) == ([], False)
        closed, after = self.next_of(new, later)
        assert self.store.advance(new, closed, after) is None
        assert self.store.revision(after, 1) == closed
        assert self.store.revisions(after, 9, 10**6) == ([closed], False)
        former = self.store.revision(old_after, 1)
        assert former is not None
        assert former.created_at == NOON

    def test_a_head_keeps_the_subjects_of_all_its_revisions(self) -> None:
        fact = self.new().fact.model_copy(update={"subjects": [Subject(kind="user", id="ann")]})
        head = Head.first(fact, Mark("k" * 12, "b" * 12, 1))
        assert self.store.create(head) is None
        about = FactChanges(subjects=[Subject(kind="external", id="é|")])
        closed, following = supersede(head.fact, about, payload('"y"'), self.writer, NOON)
        after = head.followed_by(following, Mark("n" * 12, "m" * 12, 2))
        assert self.store.advance(head, closed, after) is None
        kept = self.store.head(self.tenant, fact.id)
        assert kept == after
        assert kept is not None
        assert kept.subjects == ("external:é|", "user:ann")

    # -- together

    def test_of_twenty_parallel_creations_one_wins_and_all_learn_which(self) -> None:
        heads = [Head(self.new().fact.model_copy(update={"id": "same", "type": f"t{n}"})) for n in range(20)]
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(self.patiently(self.store.create), heads))
        assert answers.count(None) == 1
        winner = heads[answers.index(None)]
        assert {answer.fact.type for answer in answers if answer is not None} <= {winner.fact.type}
        there = self.store.head(self.tenant, "same")
        assert there is not None
        assert there.fact.type == winner.fact.type

    def test_of_twenty_parallel_advances_one_wins(self) -> None:
        head = self.kept()
        changes = [self.next_of(head, f"2026-01-02T00:00:{n:02d}.000Z") for n in range(20)]

        def advance(change: tuple[Fact, Head]) -> Head | None:
            return self.store.advance(head, *change)

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(self.patiently(advance), changes))
        assert answers.count(None) == 1
        closed, after = changes[answers.index(None)]
        assert self.store.head(self.tenant, head.fact.id) == after
        assert self.store.revision(head, 1) == closed

    @staticmethod
    def patiently(call: Any) -> Any:
        """Contention is an answer that asks for another try."""

        def tried(argument: Any) -> Any:
            while True:
                try:
                    return call(argument)
                except Contended:
                    continue

        return tried
