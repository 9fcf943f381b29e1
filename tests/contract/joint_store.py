"""What every JointStore keeps, whatever it stands on: a fact's change and its entry of the log, both or neither."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
from support.log_fakes import FakeKeys, FakeWrapper
from support.logs import StandingClock

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.holds import held
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.log.chain import random_seed
from factbook.domain.log.entries import Draft
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.deadline import NEVER
from factbook.ports.facts.joint import Change
from factbook.ports.facts.store import FactStore, Head, Mark
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.provenance.joint import JointStore
from factbook.usecases.log.chaining import Chaining
from factbook.usecases.log.entries import tail_of
from factbook.usecases.log.sealing import Vault

from .writer import WithWriter

NOON = "2026-01-01T12:00:00.000Z"
RUN = "_holds"
TEXT = Payload(text='"x"', content_hash="sha256:0", size=3)


@dataclass(frozen=True)
class Stores:
    facts: FactStore
    log: LogStore
    joint: JointStore


class JointStoreContract(WithWriter):
    """Subclasses give `stores`."""

    stores: Stores

    def kept(self, fact_id: str = "f") -> Head:
        fact = open_fact(fact_id, "note", Scope(tenantId=self.tenant), FactChanges(), TEXT, self.writer, NOON)
        head = Head.first(fact, Mark("k" * 12, "b" * 12, 1))
        assert self.stores.facts.create(head) is None
        return head

    def hold(self, head: Head) -> Change:
        return Change(head, head.followed_by(held(head.fact), Mark("n" * 12, "m" * 12, 1)))

    def entry(self, behind: StoredEntry | None = None) -> StoredEntry:
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        draft = Draft("event-emitted", "user:ann", {"n": 1}, '{"n":1}', None, random_seed())
        chaining = Chaining(self.stores.log, vault, StandingClock(), self.tenant, RUN, [draft], NEVER)
        (entry,) = chaining.behind(None if behind is None else tail_of(behind), Scope(tenantId=self.tenant))
        return entry

    def head(self, fact_id: str = "f") -> Head | None:
        return self.stores.facts.head(self.tenant, fact_id)

    def texts(self) -> list[str]:
        return [entry.text for entry in self.stores.log.entries(self.tenant, RUN, 0, 100)[0]]

    def test_a_change_in_place_and_its_entry_are_there_together(self) -> None:
        change, entry = self.hold(self.kept()), self.entry()
        assert self.stores.joint.put(entry, change) is None
        assert (self.head(), self.texts()) == (change.after, [entry.text])

    def test_a_revision_and_its_entry_are_there_together(self) -> None:
        head = self.kept()
        closed, following = supersede(head.fact, FactChanges(), TEXT, self.writer, NOON)
        change = Change(head, head.followed_by(following, Mark("n" * 12, "m" * 12, 2)), closed)
        entry = self.entry()
        assert self.stores.joint.put(entry, change) is None
        assert (self.head(), self.texts()) == (change.after, [entry.text])
        assert self.stores.facts.revision(change.after, 1) == closed

    def test_over_another_head_neither_is_written_and_that_head_is_answered(self) -> None:
        head = self.kept()
        there = self.hold(head).after
        assert self.stores.facts.amend(head, there) is None
        assert self.stores.joint.put(self.entry(), self.hold(head)) == there
        assert (self.head(), self.texts()) == (there, [])

    def test_in_a_place_that_is_taken_neither_is_written_and_that_entry_is_answered(self) -> None:
        head, first = self.kept(), self.entry()
        assert self.stores.log.put([first]) is None
        there = self.stores.joint.put(self.entry(), self.hold(head))
        assert isinstance(there, StoredEntry)
        assert (there.text, there.entry_hash) == (first.text, first.entry_hash)
        assert (self.head(), self.texts()) == (head, [first.text])

    def test_where_both_were_overtaken_the_head_decides(self) -> None:
        change, entry = self.hold(self.kept()), self.entry()
        assert self.stores.joint.put(entry, change) is None
        assert self.stores.joint.put(entry, change) == change.after, "a lost reply is sent again"
        assert self.texts() == [entry.text]

    def test_a_fact_that_is_gone_is_contended_and_nothing_is_written(self) -> None:
        head = self.kept()
        gone = replace(head, fact=head.fact.model_copy(update={"id": "g", "revision_id": "g:1"}))
        with pytest.raises(Contended):
            self.stores.joint.put(self.entry(), self.hold(gone))
        assert (self.head("g"), self.texts()) == (None, [])

    def test_of_twenty_at_once_on_one_fact_one_lands_with_its_entry(self) -> None:
        head = self.kept()

        def put(_: int) -> object:
            entry = self.entry()
            while True:
                try:
                    return self.stores.joint.put(entry, self.hold(head))
                except Contended:
                    continue

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(put, range(20)))
        assert answers.count(None) == 1
        assert len(self.texts()) == 1
        there = self.head()
        assert there is not None
        assert there.edition == 2
