"""What the stores beside the search index promise: the backlog, jobs, policies, walks and what removed facts leave."""

import uuid
from dataclasses import replace

import pytest

from factbook.domain.policy.policies import Policy
from factbook.ports.jobs import Job
from factbook.ports.retrieval.upkeep import Troubled


class BacklogContract:
    """`self.backlog` is made by each subclass; every test has a tenant of its own."""

    backlog: object

    @pytest.fixture(autouse=True)
    def _nothing_is_left(self):
        """Other tests' turns are not made longer."""
        self.noted = set()
        yield
        for tenant, record in self.noted:
            self.backlog.settle(tenant, record, 9)

    def note(self, tenant, record, version, trouble, source="facts"):
        made = Troubled(tenant, record, source, version, trouble)
        self.noted.add((tenant, record))
        self.backlog.note(made)
        return made

    def turns_of(self, *tenants, turns=10, limit=100):
        """What the next turns give, of these tenants."""
        given = [self.backlog.turn(limit) for _ in range(turns)]
        return [turn for turn in given if turn and turn[0].tenant in tenants]

    def waits(self, note):
        return any(note in turn for turn in self.turns_of(note.tenant))

    def test_a_note_is_found_until_it_is_settled(self, tenant):
        note = self.note(tenant, "f1", 7, "embedding")

        assert self.backlog.of(tenant, "f1") == note
        assert self.waits(note)
        self.backlog.settle(tenant, "f1", 7)
        assert self.backlog.of(tenant, "f1") is None
        assert not self.waits(note)

    def test_a_record_has_one_note_the_last(self, tenant):
        for version, trouble in ((1, "embedding"), (2, "payload"), (3, "refused"), (4, "embedding")):
            self.note(tenant, "f1", version, trouble)
            assert self.backlog.of(tenant, "f1").version == version
            assert self.backlog.waiting(tenant, 9) == (trouble != "refused")

    def test_a_late_note_or_settlement_of_an_older_version_changes_nothing(self, tenant):
        for trouble, earlier in (("embedding", "payload"), ("refused", "too-large")):
            note = self.note(tenant, f"f-{trouble}", 7, trouble)
            self.note(tenant, note.id, 6, earlier)
            self.backlog.settle(tenant, note.id, 6)

            assert self.backlog.of(tenant, note.id) == note

    def test_only_what_can_be_tried_again_waits(self, tenant):
        for trouble in ("too-large", "not-text", "refused", "embedding-refused"):
            self.note(tenant, f"f-{trouble}", 1, trouble)
        self.note(tenant, "r:0:x", 1, "embedding", "conversations")
        self.note(tenant, "f1", 1, "payload")

        assert sorted(note.id for note in self.turns_of(tenant)[0]) == ["f1", "r:0:x"]
        assert self.backlog.waiting(tenant, 1_000) == 2
        assert self.backlog.of(tenant, "f-too-large").trouble == "too-large"

    def test_no_more_are_given_or_counted_than_asked_for(self, tenant):
        for number in range(30):
            self.note(tenant, f"f{number}", 1, "embedding")

        assert {len(turn) for turn in self.turns_of(tenant, limit=10)} == {10}
        assert self.backlog.waiting(tenant, 20) == 20
        assert self.backlog.waiting(tenant, 50) == 30
        assert self.backlog.waiting(None, 20) == 20

    def test_a_tenants_turns_go_round_and_give_each_before_any_twice(self, tenant):
        names = {f"f{number:02}" for number in range(25)}
        for name in names:
            self.note(tenant, name, 1, "embedding")
        turns = self.turns_of(tenant, limit=10, turns=20)[:5]

        given = [note.id for turn in turns for note in turn]
        assert [len(turn) for turn in turns] == [10] * 5
        assert all(len({note.id for note in turn}) == 10 for turn in turns)
        assert set(given[:25]) == set(given[25:]) == names

    def test_a_tenant_with_little_gets_its_turn_beside_one_with_much(self, tenant):
        much, little = f"{tenant}-much", f"{tenant}-little"
        for number in range(60):
            self.note(much, f"f{number:02}", 1, "embedding")
        self.note(little, "f1", 1, "embedding")

        turns = [turn[0].tenant for turn in self.turns_of(much, little, limit=5)]
        assert {turns[place] for place in range(0, 10, 2)} != {turns[place] for place in range(1, 10, 2)}
        assert set(turns[:2]) == {much, little}

    def test_tenants_whose_names_begin_alike_are_not_mixed_up(self, tenant):
        names = (tenant, f"{tenant}|f", f"{tenant}a", f"{tenant}%")
        for name in names:
            self.note(name, "f1", 1, "embedding")

        turns = self.turns_of(*names)[:4]
        assert sorted(turn[0].tenant for turn in turns) == sorted(names)
        assert [len(turn) for turn in turns] == [1] * 4
        assert [self.backlog.waiting(name, 9) for name in names] == [1] * 4

    def test_settling_what_is_not_there_is_no_error(self, tenant):
        self.backlog.settle(tenant, str(uuid.uuid4()), 1)


class JobStoreContract:
    """`self.jobs`: one job of a name in each tenant, and one of a name for all."""

    jobs: object

    def job(self, tenant, step=0, **fields):
        made = Job("sweep", "build", "facts", "2026", "2026", tenant, about={"index": "i"}, step=step)
        return replace(made.at(None, records=3), **fields)

    def test_a_job_advances_by_its_own_runner_only(self, tenant):
        first = self.job(tenant)
        assert self.jobs.keep(first)
        second = self.job(tenant, step=1, cursor='{"a": "1"}', updated_at="2027")
        assert self.jobs.keep(second)
        assert self.jobs.job("sweep", tenant) == second

        assert not self.jobs.keep(self.job(tenant, step=1, cursor="late"))
        assert not self.jobs.keep(first)
        assert self.jobs.job("sweep", tenant) == second

    def test_a_step_that_is_kept_twice_is_kept(self, tenant):
        for step in (0, 1):
            assert self.jobs.keep(self.job(tenant, step=step))
            assert self.jobs.keep(self.job(tenant, step=step))

    def test_each_tenant_and_each_name_has_its_own(self, tenant):
        assert self.jobs.job("sweep", tenant) is None
        self.jobs.keep(self.job(tenant))

        assert self.jobs.job("sweep", f"{tenant}|x") is None
        assert self.jobs.job("sweep|x", tenant) is None
        assert self.jobs.keep(self.job(None, name=f"sweep-{tenant}"))
        assert self.jobs.job(f"sweep-{tenant}").tenant is None

    def test_that_a_job_is_asked_for_is_remembered_with_the_last_instant(self, tenant):
        assert self.jobs.asked("sweep", tenant) is None
        for instant in ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"):
            self.jobs.ask("sweep", instant, tenant)
            assert self.jobs.asked("sweep", tenant) == instant
        assert self.jobs.job("sweep", tenant) is None


class PolicyStoreContract:
    policies: object

    def test_a_tenant_without_a_policy_has_the_default(self, tenant):
        assert self.policies.policy(tenant) == Policy()

    def test_a_policy_comes_back_as_it_was_put(self, tenant):
        policy = Policy.model_validate(
            {"retention": {"keepDays": 3}, "types": {"a|b.ü": {"index": [], "retention": {"keepDays": 9}}}}
        )
        self.policies.put_policy(tenant, policy)

        assert self.policies.policy(tenant) == policy
        self.policies.put_policy(tenant, Policy())
        assert self.policies.policy(tenant) == Policy()
