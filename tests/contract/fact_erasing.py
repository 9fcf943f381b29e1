"""What every FactErasing, and the walk beside it, keeps of held facts and of tombstones."""

from dataclasses import replace
from typing import Any

from factbook.domain.facts.fact import FactChanges, Payload, Retention, Subject
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import GONE, Erased, FactStore, Head, Mark
from factbook.ports.facts.walks import FactErasing, FactWalk

from .writer import WithWriter

NOON, LATER = "2026-01-01T12:00:00.000Z", "2026-01-01T12:00:01.000Z"
TEXT = Payload(text='"words"', content_hash="sha256:x", size=7)


class FactErasingContract(WithWriter):
    """Subclasses give the three ports over one store."""

    facts: FactStore
    erasing: FactErasing
    walk: FactWalk

    def kept(self, name: str, **fields: Any) -> Head:
        scope = Scope(tenantId=self.tenant, projectId="p", participantId="x")
        changes = FactChanges(subjects=[Subject(kind="external", id="eve")])
        fact = open_fact(name, "note", scope, changes, TEXT, self.writer, NOON, key="k")
        fact = fact.model_copy(update={"owner": "participant:p/x", **fields})
        head = Head.first(fact, Mark("k" * 12, "b" * 12, 1))
        assert self.facts.create(head) is None
        return head

    def advanced(self, head: Head, number: int) -> Head:
        closed, fact = supersede(head.fact, FactChanges(), TEXT, self.writer, LATER)
        after = head.followed_by(fact, Mark(f"{number:012d}", "b" * 12, fact.version))
        assert self.facts.advance(head, closed, after) is None
        return after

    def tombstone(self, head: Head, erasure: str = "e1", blobs: int = 0) -> Head:
        after = head.erased_by(Erased(erasure, blobs), LATER)
        assert self.facts.amend(head, after) is None
        return after

    def walked(self, limit: int = 100) -> set[str]:
        found: set[str] = set()
        after: str | None = None
        while True:
            page = self.walk.heads(self.tenant, after, limit)
            found |= {head.fact.id for head in page.records}
            after = page.next
            if after is None:
                return found

    def test_held_facts_are_found_page_by_page_with_whom_they_are_about(self) -> None:
        hold = {"retention": Retention(legal_hold=True)}
        heads = {name: self.kept(name, **hold) for name in map(str, range(7))}
        self.kept("free")
        found, after = {}, None
        while True:
            page = self.erasing.held(self.tenant, after, 2)
            assert len(page.records) <= 2
            found |= {row.fact_id: row for row in page.records}
            after = page.next
            if after is None:
                break
        assert found.keys() == heads.keys()
        for name, row in found.items():
            fact = heads[name].fact
            assert (row.scope, row.owner, row.subjects) == (fact.scope, fact.owner, ("external:eve",))

    def test_a_tombstone_says_that_a_fact_was_there_and_nothing_of_it(self) -> None:
        head = self.advanced(self.kept("f"), 2)
        self.tombstone(head, blobs=3)
        there = self.facts.head(self.tenant, "f")
        assert there is not None
        fact = there.fact
        assert (fact.id, fact.type, fact.scope, fact.version) == ("f", "note", head.fact.scope, 2)
        assert (fact.created_at, fact.updated_at) == (head.fact.created_at, head.fact.updated_at)
        assert (fact.invalidation_reason, there.erasure) == ("erased", Erased("e1", 3))
        assert (there.subjects, fact.about, fact.key, fact.owner, fact.content_text) == (
            (),
            (),
            None,
            None,
            None,
        )
        assert [(mark.key, mark.body) for mark in there.marks] == [("k" * 12, GONE), ("000000000002", GONE)]
        assert (there.edition, there.life) == (head.edition + 1, head.life)

    def test_tombstones_are_found_by_their_erasure_and_by_no_walk_of_the_tenant(self) -> None:
        for number in range(5):
            self.tombstone(self.kept(f"a{number}"), "e1")
        self.tombstone(self.kept("b"), "e2")
        self.kept("c")
        found, after = [], None
        while True:
            page = self.erasing.tombstones(self.tenant, "e1", after, 2)
            found += [head.fact.id for head in page.records]
            after = page.next
            if after is None:
                break
        assert sorted(found) == [f"a{number}" for number in range(5)]
        assert self.walked() == {"c"}
        assert self.walked(1) == {"c"}

    def test_a_fact_that_is_about_to_go_stands_where_it_stood(self) -> None:
        head = self.kept("f")
        marked = replace(head, edition=head.edition + 1, erasure=Erased("e1", 2))
        assert self.facts.amend(head, marked) is None
        assert self.facts.head(self.tenant, "f") == marked
        assert self.walked() == {"f"}
        assert self.erasing.tombstones(self.tenant, "e1", None, 10).records == []

    def test_revisions_of_every_life_go_and_the_head_stays(self) -> None:
        head = self.kept("f")
        for number in range(2, 60):
            head = self.advanced(head, number)
        other = self.advanced(self.kept("g"), 2)
        over = head.fact.model_copy(update={"invalidated_at": LATER, "invalidation_reason": "expired"})
        reborn = Head(over, head.edition, head.marks, head.life, head.subjects)
        assert self.facts.amend(head, head.followed_by(over, Mark("x" * 12, "b" * 12, 1))) is None
        there = self.facts.head(self.tenant, "f")
        assert there is not None
        fact = open_fact(
            "f", "note", head.fact.scope, FactChanges(), TEXT, self.writer, "2027-01-01T00:00:00.000Z"
        )
        assert self.facts.amend(there, there.reborn_as(fact, Mark("y" * 12, "b" * 12, 1))) is None
        there = self.facts.head(self.tenant, "f")
        assert there is not None
        self.advanced(there, 2)
        assert self.erasing.remove_revisions(self.tenant, "f", NEVER)
        for life in (reborn, there):
            assert self.facts.revisions(life, 100, 10_000_000) == ([], False)
        assert self.facts.head(self.tenant, "f") is not None
        assert self.facts.revision(other, 1) is not None
        assert self.erasing.remove_revisions(self.tenant, "f", NEVER)

    def test_there_is_no_time_for_many_and_the_next_turn_goes_on(self) -> None:
        head = self.kept("f")
        for number in range(2, 60):
            head = self.advanced(head, number)
        self.erasing.remove_revisions(self.tenant, "f", Deadline(0.0))
        assert self.erasing.remove_revisions(self.tenant, "f", NEVER)
        assert self.facts.revisions(head, 100, 10_000_000) == ([], False)
