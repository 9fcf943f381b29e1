"""How every store takes the records of an import, and gives those of an export that nothing else gives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from factbook.domain.facts.fact import FactChanges, Payload, Subject
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.log.chain import FORMAT, ZERO_HASH, text_hash
from factbook.domain.log.entries import MESSAGE_KINDS
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json
from factbook.ports.facts.store import FactStore, Head, Mark
from factbook.ports.flaws import NotStorable
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.portability.stores import Copies, FormerNote, Originals, Revision
from factbook.usecases.log.chaining import stored_entry

from .writer import WithWriter

NOON, LATER = "2026-01-01T12:00:00.000Z", "2026-01-01T12:00:01.000Z"


def payload(text: str) -> Payload:
    return Payload(text=text, content_hash="sha256:0", size=len(text))


class Records(WithWriter):
    """Subclasses give `copies`, `originals`, and `facts` and `log` over the same tables."""

    copies: Copies
    originals: Originals
    facts: FactStore
    log: LogStore

    def head(self, number: int = 0, text: str = '"x"', **scope: str) -> Head:
        place = Scope(tenant_id=self.tenant, **scope)
        changes = FactChanges(subjects=[Subject(kind="external", id="ann")])
        fact = open_fact(f"fact-{number}", "note", place, changes, payload(text), self.writer, NOON)
        return Head.first(fact, Mark("k" * 12, "b" * 12, 1))

    def two_revisions(self, number: int = 0) -> tuple[Head, Revision]:
        head = self.head(number)
        closed, fact = supersede(head.fact, FactChanges(), payload('"y"'), self.writer, LATER)
        return head.followed_by(fact, Mark("n" * 12, "m" * 12, 2)), Revision(closed, head.life)

    def proposal(self, number: int = 0) -> Head:
        """A head with a confirmed text beside it."""
        head = self.head(number, user_id="ann")
        said = {"agent_id": "scribe", "owner": "user:ann", "key": "k"}
        confirmed = head.fact.model_copy(update=said | {"reach": "account"})
        beside = Head(confirmed, 2, life=head.life, beside=True)
        proposed = head.fact.model_copy(update=said | {"reach": "account-proposed", "content_text": '"z"'})
        return replace(head, fact=proposed, edition=2, confirmed=beside)

    def entries(self, run: str, count: int, kind: str = "user-message", **scope: str) -> list[StoredEntry]:
        found: list[StoredEntry] = []
        before = ZERO_HASH
        for sequence in range(count):
            fields = {
                "id": f"{run}:{sequence}:0123456789abcdef",
                "kind": kind,
                "payload": sequence,
                "prevHash": before,
                "runId": run,
                "scope": Scope(tenant_id=self.tenant, **scope).to_json(),
                "sequence": sequence,
                "timestamp": f"2026-01-01T00:00:{sequence % 60:02d}.{sequence:06d}Z",
            }
            text = dump_json(fields)
            before = text_hash(text)
            found.append(stored_entry(self.tenant, text, before, None))
        return found


class CopiesContract(Records):
    def test_what_is_copied_is_what_the_service_would_have_stored_and_is_found_as_such(self) -> None:
        head, revision = self.two_revisions()
        assert self.copies.put([head, revision]) == ["written", "written"]

        assert self.facts.head(self.tenant, "fact-0") == head
        assert self.facts.revisions(head, 2, 1_000)[0] == [revision.fact]
        rows, _ = self.facts.rows(self.tenant, None, self.shard("fact-0"), "~", 10)
        assert [row.fact_id for row in rows] == ["fact-0"]

    def shard(self, fact_id: str) -> int:
        shards = range(self.facts.shards(None))
        return next(each for each in shards if self.facts.rows(self.tenant, None, each, "~", 1)[0])

    def test_what_is_there_already_is_told_and_what_differs_is_left(self) -> None:
        head, revision = self.two_revisions()
        self.copies.put([head, revision])
        other = replace(head, fact=head.fact.model_copy(update={"content_text": '"mine"'}))

        assert self.copies.put([head, revision, self.head(1)]) == ["present", "present", "written"]
        assert self.copies.put([other]) == ["other"]
        assert self.copies.look([head, other, self.head(2)]) == ["present", "other", "written"]
        assert self.facts.head(self.tenant, "fact-0") == head
        assert self.facts.head(self.tenant, "fact-2") is None

    def test_a_proposal_and_the_confirmed_text_beside_it_are_written_together_or_not_at_all(self) -> None:
        head = self.proposal()
        assert self.copies.put([head]) == ["written"]
        assert self.facts.head(self.tenant, "fact-0") == head
        assert self.copies.put([head]) == ["present"]
        alone = self.proposal(1)
        self.copies.put([replace(alone, confirmed=None)])
        assert self.copies.put([alone]) == ["other"]

    def test_any_number_of_records_is_written_each_with_what_became_of_it(self) -> None:
        heads: list[Head] = [self.head(number) for number in range(130)]
        self.copies.put(heads[40:60])
        assert self.copies.put(heads) == ["written"] * 40 + ["present"] * 20 + ["written"] * 70
        assert len(self.facts.heads(self.tenant, [f"fact-{number}" for number in range(100)])) == 100

    def test_more_than_one_transaction_holds_is_written_in_several(self) -> None:
        heads = [self.head(number, dump_json("x" * 300_000)) for number in range(16)]
        assert self.copies.put(heads) == ["written"] * 16

    def test_of_two_with_one_place_the_first_is_written(self) -> None:
        head = self.head()
        other = replace(head, fact=head.fact.model_copy(update={"content_text": '"mine"'}))
        assert self.copies.put([head, head, other]) == ["written", "present", "other"]

    def test_what_no_store_can_hold_is_refused_and_nothing_with_it_is_written(self) -> None:
        large = self.head(1)
        large = replace(large, fact=large.fact.model_copy(update={"content_text": "x" * 420_000}))
        with pytest.raises(NotStorable):
            self.copies.put([self.head(), large])
        assert self.facts.head(self.tenant, "fact-0") is None

    def test_entries_are_found_by_run_thread_and_place_whatever_the_order_they_came_in(self) -> None:
        entries = self.entries("r", 5, project_id="p", thread_id="t")
        assert self.copies.put(entries[::-1]) == ["written"] * 5

        found, more = self.log.entries(self.tenant, "r", 0, 10)
        assert ([entry.text for entry in found], more) == ([entry.text for entry in entries], False)
        page = self.log.thread(self.tenant, "t", ["W:p"], "", None, newest_first=False)
        assert [entry.text for _, entry in page.found] == [entry.text for entry in entries]
        shards = range(self.log.run_shards(None))
        rows = [row for shard in shards for row in self.log.runs(self.tenant, None, shard, "~", 10)[0]]
        assert [row.run_id for row in rows] == ["r"]
        assert "user-message" in MESSAGE_KINDS

    def test_entries_come_newest_first_below_any_of_them(self) -> None:
        entries = self.entries("r", 7)
        self.copies.put(entries)

        def sequences(below: int | None, limit: int) -> Sequence[int]:
            found = self.originals.entries_below(self.tenant, "r", below, limit)
            assert all(entry == bare(entries[entry.sequence]) for entry in found)
            return [entry.sequence for entry in found]

        assert sequences(None, 3) == [6, 5, 4]
        assert sequences(4, 10) == [3, 2, 1, 0]
        assert sequences(0, 10) == []
        assert self.originals.entries_below(self.tenant, "none", None, 10) == []

    def test_a_run_of_before_there_was_an_index_of_runs_is_told(self) -> None:
        listed, former = self.entries("listed", 1), self.entries("former", 1)
        self.copies.put(listed)
        self.log.put([replace(former[0], opens=None, timestamp=None)])
        assert self.originals.unlisted(self.tenant, ["listed", "former", "none"]) == ["former"]

    def test_notes_of_former_services_are_kept_apart_and_listed_by_size_and_key(self) -> None:
        notes = [
            FormerNote(self.tenant, PublishedNote(size, f"note {size} {vkey}", vkey, NOON))
            for size in (3, 12)
            for vkey in ("a+1", "b+2")
        ]
        self.copies.put(notes[::-1])
        assert self.copies.put(notes) == ["present"] * 4

        first = self.originals.former_notes(self.tenant, None, 3)
        assert first.next is not None
        rest = self.originals.former_notes(self.tenant, first.next, 3)
        found = [*first.records, *rest.records]
        assert [each.note.size for each in found] == [3, 3, 12, 12]
        assert sorted(found, key=str) == sorted(notes, key=str)
        assert self.originals.former_notes(self.tenant[:-1], None, 9).records == []


def bare(entry: StoredEntry) -> StoredEntry:
    """As a read of the run gives it."""
    found: dict[str, Any] = {"thread": None, "timestamp": None, "opens": None, "container": None}
    assert entry.format == FORMAT
    return replace(entry, **found)
