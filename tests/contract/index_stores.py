"""What the stores beside the search index promise: the backlog, the job, policies, walks and what removed facts leave."""

import uuid

from factbook.domain.policy.policies import Policy
from factbook.ports.retrieval.upkeep import IndexJob, Troubled


class BacklogContract:
    """`self.backlog` is made by each subclass; every test has a tenant of its own."""

    backlog: object

    def test_a_note_is_found_until_it_is_settled(self, tenant):
        note = Troubled(tenant, "f1", "facts", 7, "embedding")
        self.backlog.note(note)

        assert self.backlog.of(tenant, "f1") == note
        assert note in self.backlog.waiting(1_000)
        self.backlog.settle(tenant, "f1")
        assert self.backlog.of(tenant, "f1") is None
        assert note not in self.backlog.waiting(1_000)

    def test_a_record_has_one_note_the_last(self, tenant):
        for version in (1, 2):
            self.backlog.note(Troubled(tenant, "f1", "facts", version, "embedding"))

        assert [note.version for note in self.backlog.waiting(1_000) if note.tenant == tenant] == [2]

    def test_only_what_can_be_tried_again_waits(self, tenant):
        self.backlog.note(Troubled(tenant, "f1", "facts", 1, "too-large"))
        self.backlog.note(Troubled(tenant, "r:0:x", "conversations", 1, "embedding"))

        assert [note.id for note in self.backlog.waiting(1_000) if note.tenant == tenant] == ["r:0:x"]
        assert self.backlog.of(tenant, "f1").trouble == "too-large"

    def test_no_more_are_given_than_asked_for(self, tenant):
        for number in range(30):
            self.backlog.note(Troubled(tenant, f"f{number}", "facts", 1, "embedding"))

        assert len(self.backlog.waiting(10)) == 10

    def test_settling_what_is_not_there_is_no_error(self, tenant):
        self.backlog.settle(tenant, str(uuid.uuid4()))


class JobStoreContract:
    """`self.jobs`: there is one job in a deployment."""

    jobs: object

    def test_a_job_advances_by_its_own_runner_only(self):
        first = IndexJob("build", "i", "facts", None, 0, 0, "2026", "2026")
        assert self.jobs.keep(first)
        second = IndexJob("build", "i", "facts", '{"a": "1"}', 10, 9, "2026", "2027", step=1)
        assert self.jobs.keep(second)
        assert self.jobs.job() == second

        assert not self.jobs.keep(IndexJob("build", "i", "facts", "late", 5, 5, "2026", "2027", step=1))
        assert self.jobs.job() == second
        assert self.jobs.keep(first)


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
