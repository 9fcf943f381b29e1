"""What every MemoryIndex keeps, whatever it stands on: what the standing sets and the reviews are read from."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from factbook.domain.access.owners import owner_of
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import Fact, FactChanges, Payload
from factbook.domain.facts.transitions import close, open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.facts.store import FactStore, Head, Mark
from factbook.ports.memories.store import MemoryIndex, ReviewRow, ReviewState

NOON, NEWEST = "2026-01-01T12:00:00.000Z", "~"
LATER = "2026-01-02T12:00:00.000Z"
LONG = "9999-01-01T00:00:00.000Z"


class MemoryIndexContract:
    """Subclasses give `facts`, through which memories are written, and `index`."""

    facts: FactStore
    index: MemoryIndex

    @pytest.fixture(autouse=True)
    def _tenant(self, tenant: str) -> None:
        self.tenant = tenant
        self.writer = Principal(tenant, Actor(kind="agent", id="copilot"), agent_id="copilot")

    def remembered(
        self, at: str = NOON, text: str = '"x"', scope: dict[str, str] | None = None, **stated: Any
    ) -> Head:
        """A memory of ann with copilot, unless `scope` and `stated` say otherwise."""
        place = Scope(tenantId=self.tenant, **(scope or {"userId": "ann"}))
        content = Payload(text=text, content_hash="sha256:0", size=len(text))
        fact = open_fact(str(uuid.uuid4()), "memory", place, FactChanges(), content, self.writer, at)
        memory = {"agent_id": "copilot", "owner": owner_of(place), "reach": "user"} | stated
        head = Head.first(fact.model_copy(update=memory), Mark("k" * 12, "b" * 12, 1))
        assert self.facts.create(head) is None
        return head

    def advanced(self, head: Head, at: str = LATER, **stated: Any) -> Head:
        """The next revision."""
        closed, following = supersede(head.fact, FactChanges(), None, self.writer, at)
        following = following.model_copy(update=stated)
        after = head.followed_by(following, Mark("n" * 12, "m" * 12, following.version))
        assert self.facts.advance(head, closed, after) is None
        return after

    def deleted(self, head: Head) -> None:
        gone = close(head.fact, "user:ann", LATER, "deleted")
        after = head.followed_by(gone, Mark("d" * 12, "m" * 12, gone.version))
        assert self.facts.amend(head, after) is None

    def of_ann(self, now: str = NOON) -> list[Head]:
        return by_id(self.index.of_owner(self.tenant, "user:ann", "copilot", now))

    def of_account(self, now: str = NOON) -> list[Head]:
        return by_id(self.index.of_account(self.tenant, "copilot", now))

    # -- what a person has, and the account

    def test_a_persons_memories_with_an_agent_are_found_whole_and_no_others(self) -> None:
        own = [self.remembered(), self.remembered(reach="account-proposed"), self.remembered(reach=None)]
        self.remembered(agent_id="other")
        self.remembered(scope={"userId": "bea"})
        self.remembered(scope={"projectId": "p", "participantId": "ann"})
        assert self.of_ann() == by_id(own)
        assert self.index.of_owner(self.tenant + "x", "user:ann", "copilot", NOON) == []

    @pytest.mark.parametrize(
        "names",
        [
            ({"projectId": "p", "participantId": "a/b"}, {"projectId": "p/a", "participantId": "b"}),
            ({"userId": "a|b"}, {"userId": "a"}),
            ({"userId": "%"}, {"userId": "%25"}),
        ],
        ids=["a slash", "a bar", "a percent sign"],
    )
    def test_persons_whose_names_resemble_each_other_are_apart(
        self, names: tuple[dict[str, str], dict[str, str]]
    ) -> None:
        for scope in names:
            head = self.remembered(scope=scope)
            found = self.index.of_owner(self.tenant, str(head.fact.owner), "copilot", NOON)
            assert list(found) == [head]

    def test_agents_whose_names_resemble_each_other_are_apart(self) -> None:
        for agent in ("a|b", "a", "b"):
            self.remembered(agent_id=agent, reach="account")
        for agent in ("a|b", "a", "b"):
            for found in (
                self.index.of_account(self.tenant, agent, NOON),
                self.index.of_owner(self.tenant, "user:ann", agent, NOON),
            ):
                assert [head.fact.agent_id for head in found] == [agent]

    def test_a_memory_that_is_corrected_is_found_once_as_it_is_now(self) -> None:
        after = self.advanced(self.advanced(self.remembered()))
        assert self.of_ann() == [after]

    def test_what_waits_is_among_them_and_what_was_rejected_or_deleted_is_not(self) -> None:
        waiting = self.remembered(review="pending", review_why=("instruction-like",))
        self.deleted(self.remembered())
        self.advanced(self.remembered(reach="account-proposed"), reach="account-rejected")
        confirmed = self.advanced(self.remembered(reach="account-proposed"), reach="account")
        self.deleted(self.advanced(self.remembered(reach="account-proposed"), reach="account"))
        assert self.of_ann() == by_id([waiting, confirmed])
        assert self.of_account() == [confirmed]

    def test_the_account_has_what_was_confirmed_whoever_owns_it(self) -> None:
        confirmed = [
            self.remembered(reach="account", scope=scope)
            for scope in ({"userId": "ann"}, {"userId": "bea"}, {"projectId": "p", "participantId": "x"})
        ]
        self.remembered(reach="account-proposed")
        self.remembered(reach="account", agent_id="other")
        assert self.of_account() == by_id(confirmed)

    def test_a_proposal_over_a_confirmed_memory_is_two_for_its_owner_and_the_confirmed_one_for_the_account(
        self,
    ) -> None:
        confirmed = self.remembered(reach="account")
        proposal = self.advanced(confirmed, reach="account-proposed")
        assert proposal.confirmed is not None
        assert [head.beside for head in self.of_account()] == [True]
        assert self.of_account() == [proposal.confirmed]
        assert self.of_ann() == by_id([alone(proposal), proposal.confirmed])

        decided = self.advanced(proposal, LATER, reach="account")
        assert self.of_ann() == self.of_account() == [decided]

    def test_a_proposal_over_a_confirmed_memory_goes_with_it(self) -> None:
        self.deleted(self.advanced(self.remembered(reach="account"), reach="account-proposed"))
        assert self.of_ann() == self.of_account() == []

    def test_what_ran_out_is_not_among_them_from_its_instant_on(self) -> None:
        ends = self.remembered(expires_at=LATER)
        stays = self.remembered(expires_at=LONG)
        account = self.remembered(reach="account", expires_at=LATER)
        assert self.of_ann("2026-01-02T11:59:59.999Z") == by_id([ends, stays, account])
        assert self.of_ann(LATER) == [stays]
        assert (self.of_account(NOON), self.of_account(LATER)) == ([account], [])

    def test_a_proposal_that_ran_out_hides_nothing_of_the_confirmed_text_beside_it(self) -> None:
        proposal = self.advanced(self.remembered(reach="account"), reach="account-proposed", expires_at=LATER)
        assert proposal.confirmed in self.of_ann(LONG)
        assert self.of_account(LONG) == [proposal.confirmed]

    def test_more_than_one_page_of_the_store_is_read(self) -> None:
        text = '"' + "x" * 100_000 + '"'
        heads = [self.remembered(f"2026-01-01T12:00:{n:02d}.000Z", text, reach="account") for n in range(25)]
        assert self.of_ann() == self.of_account() == by_id(heads)

    # -- what waits for a person

    def reviews(self, state: ReviewState = "open", limit: int = 100) -> list[ReviewRow]:
        """All shards, each to its end, `limit` rows at once; the order of each is checked."""
        found: list[ReviewRow] = []
        for shard in range(self.index.review_shards):
            before, more, rows = NEWEST, True, list[ReviewRow]()
            while more:
                page, more = self.index.reviews(self.tenant, state, shard, before, limit)
                assert len(page) <= limit
                rows += page
                before = rows[-1].order if rows else before
            assert [row.order for row in rows] == sorted((row.order for row in rows), reverse=True)
            found += rows
        return sorted(found, key=lambda row: row.order)

    def test_reviews_have_what_waits_and_what_was_proposed_since_its_revision_began(self) -> None:
        waits = {"review": "pending", "review_why": ("instruction-like",)}
        fact = self.remembered("2026-01-01T12:00:01.000Z", agent_id=None, owner=None, reach=None, **waits)
        memory = self.remembered("2026-01-01T12:00:02.000Z", **waits)
        proposal = self.remembered("2026-01-01T12:00:03.000Z", reach="account-proposed", **waits)
        self.remembered()
        self.remembered(reach="account")
        over = self.advanced(
            self.remembered("2026-01-01T12:00:04.000Z", reach="account"), reach="account-proposed"
        )
        heads = [fact, memory, proposal, over]
        assert self.reviews() == [row_of(head.fact) for head in heads]
        assert over.fact.updated_at == LATER
        assert self.reviews("rejected") == []

    def test_what_was_decided_leaves_the_open_ones_and_what_was_rejected_is_apart(self) -> None:
        made = [self.remembered(reach="account-proposed") for _ in range(3)]
        self.advanced(made[0], reach="account")
        rejected = self.advanced(made[1], reach="account-rejected")
        self.deleted(made[2])
        assert self.reviews() == []
        assert self.reviews("rejected") == [row_of(rejected.fact)]
        again = self.advanced(rejected, "2026-01-03T12:00:00.000Z", reach="account-proposed")
        assert (self.reviews(), self.reviews("rejected")) == ([row_of(again.fact)], [])

    @pytest.mark.parametrize("limit", [1, 2, 100])
    def test_a_walk_of_the_reviews_meets_each_once_whatever_a_page_holds(self, limit: int) -> None:
        instants = [f"2026-01-01T12:00:{second // 2:02d}.000Z" for second in range(20)]  # two in each second
        heads = [self.remembered(at, reach="account-proposed") for at in instants]
        rows = [row_of(head.fact) for head in heads]
        assert self.reviews(limit=limit) == sorted(rows, key=lambda row: row.order)

    def test_tenants_have_reviews_of_their_own(self) -> None:
        self.remembered(reach="account-proposed")
        for shard in range(self.index.review_shards):
            assert self.index.reviews(self.tenant + "x", "open", shard, NEWEST, 9) == ([], False)


def by_id(heads: Any) -> list[Head]:
    return sorted(map(alone, heads), key=lambda head: (head.fact.id, head.beside))


def alone(head: Head) -> Head:
    """A head as an index gives it: what stands beside it is another one."""
    return replace(head, confirmed=None)


def row_of(fact: Fact) -> ReviewRow:
    return ReviewRow(f"{fact.updated_at}|{fact.id}", fact.id)
