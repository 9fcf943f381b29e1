"""The stores beside the search index: fakes that other tests trust, and DynamoDB on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.principals import principal
from support.search_world import FakeBacklog, FakeJobs, FakePolicies

from factbook.adapters.dynamodb_jobs import DynamoJobs
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.dynamodb_items import CONFIRMED, fact_key
from factbook.adapters.facts.dynamodb_walks import DynamoFactWalk, DynamoRemains
from factbook.adapters.log.dynamodb_entries import DynamoMessages
from factbook.adapters.policy.dynamodb_policies import DynamoPolicies
from factbook.adapters.retrieval.dynamodb_backlog import DynamoBacklog
from factbook.domain import times
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.transitions import close, open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head, Mark
from factbook.ports.retrieval.upkeep import Troubled

from .index_stores import BacklogContract, JobStoreContract, PolicyStoreContract


class TestFakes(BacklogContract, JobStoreContract, PolicyStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self):
        self.backlog, self.jobs, self.policies = FakeBacklog(), FakeJobs(), FakePolicies()


class OnDynamo(BacklogContract, JobStoreContract, PolicyStoreContract):
    def connect(self, aws: Aws) -> None:
        client, table = aws.client("dynamodb"), aws.settings.access_table
        self.backlog, self.jobs = DynamoBacklog(client, table), DynamoJobs(client, table)
        self.another = DynamoBacklog(client, table, of="another-")
        self.policies = DynamoPolicies(client, table)
        self.facts = DynamoFacts(client, aws.settings.facts_table)
        self.walk = DynamoFactWalk(client, aws.settings.facts_table, self.facts)
        self.discarded: list[str] = []
        self.remains = DynamoRemains(client, aws.settings.facts_table, self.discarded.append)
        self.messages = DynamoMessages(client, aws.settings.log_table)

    def test_another_backlog_has_notes_and_turns_of_its_own(self, tenant):
        other = self.another
        note = Troubled(tenant, "f1", "facts", 0, "claim")
        other.note(note)
        assert (self.backlog.of(tenant, "f1"), self.backlog.waiting(tenant, 9)) == (None, 0)
        assert (other.of(tenant, "f1"), other.waiting(tenant, 9)) == (note, 1)
        self.backlog.settle(tenant, "f1", 9)
        assert other.waiting(tenant, 9) == 1
        other.settle(tenant, "f1", 0)
        assert other.waiting(tenant, 9) == 0

    def test_a_walk_meets_every_head_once_current_or_closed(self, tenant):
        heads = [self._head(tenant, number) for number in range(25)]
        for number, head in enumerate(heads):
            if number % 3 == 0:
                heads[number] = head = Head(
                    close(head.fact, "user:ann", "2026-02-01T00:00:00.000Z", "deleted"), 2
                )
            self.facts.create(head)

        expected = sorted((head.fact.id, head.edition) for head in heads)
        assert sorted(self._walked(tenant)) == expected
        everywhere = [stop.record.fact for stop in self._stops(None)]
        assert sorted(fact.id for fact in everywhere if fact.scope.tenant_id == tenant) == [
            fact_id for fact_id, _ in expected
        ]

    def test_what_a_removed_fact_leaves_is_removed_and_its_ids_next_life_keeps_its_own(self, tenant):
        old = self._superseded(tenant, "2026-01-01T00:00:00.000Z")
        self._delete_head(tenant, "f1")
        self.remains.remove(old)
        assert self.facts.revisions(Head(old), 99, 10**6) == ([], False)
        assert self.discarded == [f"blob://s3/b/{old.created_at}"]

        new = self._superseded(tenant, "2026-03-01T00:00:00.000Z")
        self.remains.remove(old)
        kept, _ = self.facts.revisions(Head(new), 99, 10**6)
        assert [revision.created_at for revision in kept] == [new.created_at]
        assert self.discarded == [f"blob://s3/b/{old.created_at}"]

    def test_a_payload_that_the_next_life_names_stays_while_the_former_lifes_others_go(self, tenant):
        old = self._superseded(tenant, "2026-01-01T00:00:00.000Z")
        former = self.facts.head(tenant, "f1")
        assert former is not None
        payload = Payload(text=None, content_hash="", size=1, content_ref=f"blob://s3/b/{old.created_at}")
        fact = self._head(tenant, 1, "2026-03-01T00:00:00.000Z").fact
        born = former.reborn_as(
            fact.model_copy(update={"content_ref": payload.content_ref}), Mark("k" * 12, "b" * 12, 1)
        )
        assert self.facts.amend(former, born) is None
        last = old.model_copy(update={"content_ref": "blob://s3/b/last"})

        for _ in range(2):
            self.remains.remove(last)

        assert set(self.discarded) == {"blob://s3/b/last"}
        assert self.facts.revisions(former, 99, 10**6) == ([], False)
        assert self.facts.head(tenant, "f1") == born

    def test_the_confirmed_text_beside_a_removed_head_goes_with_its_life_alone(self, tenant):
        first = self._head(tenant, 1, "2026-01-01T00:00:00.000Z").fact
        old = Head.first(first.model_copy(update={"reach": "account"}), Mark("k" * 12, "b" * 12, 1))
        self.facts.create(old)
        closed = close(old.fact, "user:ann", "2026-02-01T00:00:00.000Z", "superseded")
        update = {"version": 2, "revision_id": f"{first.id}:2", "reach": "account-proposed"}
        proposal = old.followed_by(old.fact.model_copy(update=update), Mark("l" * 12, "b" * 12, 2))
        assert self.facts.advance(old, closed, proposal) is None
        another = proposal.fact.model_copy(update={"created_at": "2025-01-01T00:00:00.000Z"})

        self.remains.remove(another)
        assert self._beside(tenant, first.id)
        self._delete_head(tenant, first.id)
        self.remains.remove(proposal.fact)
        assert not self._beside(tenant, first.id)

    def _beside(self, tenant, fact_id):
        where = {"pk": {"S": fact_key(tenant, fact_id)}, "sk": {"S": CONFIRMED}}
        return "Item" in self.remains._client.get_item(TableName=self.remains._table, Key=where)

    def _superseded(self, tenant, now):
        """A fact at version 2 whose first revision has a payload; its head's fact."""
        head = self._head(tenant, 1, now)
        payload = Payload(text='"b"', content_hash="sha256:b", size=3)
        closed, following = supersede(
            head.fact, FactChanges(), payload, principal(tenant), times.add(now, days=1)
        )
        closed = closed.model_copy(update={"content_ref": f"blob://s3/b/{now}"})
        self.facts.create(head)
        self.facts.advance(head, closed, Head(following, 2))
        return following

    def _walked(self, tenant):
        return [(stop.record.fact.id, stop.record.edition) for stop in self._stops(tenant)]

    def _stops(self, tenant, after=None):
        found = []
        while True:
            page = self.walk.heads(tenant, after, 10)
            found += page.stops
            after = page.next
            if after is None:
                return found

    def _head(self, tenant, number, now="2026-01-01T00:00:00.000Z"):
        scope, payload = Scope(tenant_id=tenant), Payload(text='"a"', content_hash="sha256:a", size=3)
        return Head(
            open_fact(f"f{number}", "acme.note", scope, FactChanges(), payload, principal(tenant), now)
        )

    def _delete_head(self, tenant, fact_id):
        self.facts._client.delete_item(
            TableName=self.facts._table, Key={"pk": {"S": f"{tenant}|{fact_id}"}, "sk": {"S": "h"}}
        )


class TestDynamo(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws) -> None:
        self.connect(emulator)
