"""What may happen to a fact: versions, times, trust, retention and hold, on the use cases over fakes."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes import FakeClock, fake_memory
from support.principals import principal

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.errors import (
    FactChanged,
    FactNotFound,
    LegalHold,
    PermissionDenied,
    ScopeInvalid,
    ValidationFailed,
)
from factbook.domain.facts.fact import Fact, FactChanges, Retention, Subject
from factbook.domain.policy.policies import Policy, TypePolicy
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts import reading
from factbook.usecases.facts.payloads import Content

START = "2026-01-01T00:00:00.000Z"
ADMIN = principal("t", "ann", admin=True)
AGENT = principal("t", "bot", kind="agent", writes=["p"])
WORKER = principal("t", "job", kind="service", writes=["p"])


class FactUseCases:
    """The use cases over one in-memory store, each call an operation of its own."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.policies: dict[str, Policy] = {}
        self.memory = replace(
            fake_memory(self.clock), policy=lambda tenant: self.policies.get(tenant, Policy())
        )
        self._calls = 0

    def operation(self) -> Operation:
        self._calls += 1
        return Operation(f"key-{self._calls}", "body")

    def write(
        self, content: Any = 1, who: Principal = ADMIN, scope: dict[str, str] | None = None, **said: Any
    ) -> Fact:
        place = Scope(tenantId="t", **(scope or {"projectId": "p"}))
        return facts.write_fact(
            self.memory, who, self.operation(), "note", place, FactChanges(**said), Content(content)
        )

    def supersede(
        self,
        fact: Fact,
        content: Content | None = None,
        who: Principal = ADMIN,
        expected: int | None = None,
        **said: Any,
    ) -> Fact:
        sent = content or Content(2)
        changes = FactChanges(**said)
        return facts.supersede_fact(self.memory, who, self.operation(), fact.id, changes, sent, expected)

    def verify(self, fact: Fact, who: Principal = ADMIN, expected: int | None = None) -> Fact:
        return facts.verify_fact(self.memory, who, self.operation(), fact.id, expected)

    def delete(self, fact: Fact, who: Principal = ADMIN, expected: int | None = None) -> Fact:
        return facts.delete_fact(self.memory, who, self.operation(), fact.id, expected)

    def get(self, fact: Fact, **asked: Any) -> Fact:
        return reading.get_fact(self.memory, ADMIN, fact.id, **asked)

    def revisions(self, fact: Fact) -> list[Fact]:
        return reading.list_revisions(self.memory, ADMIN, fact.id)[0]


KEEP = Content(given=False)


def test_a_first_revision_is_version_one_and_its_writers() -> None:
    fact = FactUseCases().write()
    assert (fact.version, fact.revision_id, fact.supersedes) == (1, f"{fact.id}:1", None)
    assert fact.created_at == fact.updated_at == START
    assert (fact.attributed_to.kind, fact.attributed_to.id, fact.trust) == ("user", "ann", "asserted")


def test_what_an_agent_writes_is_unverified() -> None:
    assert FactUseCases().write(who=AGENT).trust == "unverified"
    assert FactUseCases().write(who=WORKER).trust == "asserted"


def test_absent_fields_keep_their_values_and_an_empty_list_clears() -> None:
    use_cases = FactUseCases()
    subject = Subject(kind="external", id="x")
    fact = use_cases.write(subjects=[subject], valid_from="2026-01-01T00:00:00Z", caused_by_log_id=["l"])
    kept = use_cases.supersede(fact)
    assert (kept.subjects, kept.valid_from, kept.caused_by_log_id) == ([subject], START, ["l"])
    cleared = use_cases.supersede(kept, subjects=[], caused_by_log_id=[])
    assert (cleared.subjects, cleared.caused_by_log_id, cleared.valid_from) == (None, None, START)


def test_new_content_takes_its_writers_trust_and_clears_the_verification() -> None:
    use_cases = FactUseCases()
    verified = use_cases.verify(use_cases.write())
    assert (verified.trust, verified.verified_by, verified.verified_at) == (
        "verified",
        "user:ann",
        verified.updated_at,
    )
    changed = use_cases.supersede(verified, who=AGENT)
    assert (changed.trust, changed.verified_by, changed.verified_at) == ("unverified", None, None)
    assert changed.attributed_to.id == "bot"


def test_a_change_without_content_keeps_content_trust_and_author() -> None:
    use_cases = FactUseCases()
    verified = use_cases.verify(use_cases.write("said"))
    kept = use_cases.supersede(verified, KEEP, who=WORKER, observed_at="2026-01-01T00:00:00Z")
    assert (kept.content_text, kept.trust, kept.verified_by) == ('"said"', "verified", "user:ann")
    assert kept.attributed_to.id == "ann"
    assert kept.version == verified.version + 1


@pytest.mark.parametrize("who", [AGENT, WORKER])
def test_only_a_person_verifies(who: Principal) -> None:
    use_cases = FactUseCases()
    with pytest.raises(PermissionDenied):
        use_cases.verify(use_cases.write(), who=who)


def test_delete_adds_no_version_and_leaves_history_readable() -> None:
    use_cases = FactUseCases()
    fact = use_cases.supersede(use_cases.write())
    before = fact.updated_at
    use_cases.clock.advance(seconds=1)
    gone = use_cases.delete(fact)
    assert (gone.version, gone.invalidation_reason, gone.invalidated_by) == (2, "deleted", "user:ann")
    for attempt in (use_cases.get, use_cases.supersede, use_cases.verify, use_cases.delete):
        with pytest.raises(FactNotFound):
            attempt(fact)
    assert use_cases.get(fact, version=2) == gone
    assert use_cases.get(fact, as_of=before).version == 2
    assert [each.version for each in use_cases.revisions(fact)] == [2, 1]
    with pytest.raises(FactNotFound):
        use_cases.get(fact, as_of=gone.invalidated_at)


def test_a_version_with_an_instant_is_that_version_only_if_it_was_current_then() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write()
    second = use_cases.supersede(fact)
    assert use_cases.get(fact, version=1, as_of=fact.updated_at).version == 1
    assert use_cases.get(fact, version=2, as_of=second.updated_at).version == 2
    for version, instant in ((1, second.updated_at), (2, fact.updated_at), (3, second.updated_at)):
        with pytest.raises(FactNotFound):
            use_cases.get(fact, version=version, as_of=instant)


@settings(max_examples=60)
@given(
    steps=st.lists(st.integers(-3000, 3000), min_size=1, max_size=70),
    probes=st.lists(st.integers(-5, 90), min_size=1),
)
def test_whatever_the_clock_does_times_increase_and_as_of_finds_the_revision_current_then(
    steps: list[int], probes: list[int]
) -> None:
    use_cases = FactUseCases()
    fact = use_cases.write()
    for step in steps:
        use_cases.clock.advance(milliseconds=step)
        use_cases.supersede(fact)
    revisions = use_cases.revisions(fact)[::-1]
    assert [each.version for each in revisions] == list(range(1, len(steps) + 2))
    for before, after in pairwise(revisions):
        assert before.updated_at < after.updated_at
        assert before.invalidated_at == after.updated_at
        assert after.supersedes == before.revision_id
    starts = [each.updated_at for each in revisions]
    assert revisions[0].created_at == starts[0]
    for probe in probes:
        pick = starts[probe % len(starts)]
        for instant in (times.add(pick, milliseconds=-1), pick, times.add(pick, milliseconds=1)):
            expected = [each for each in revisions if each.updated_at <= instant][-1:]
            if expected:
                assert use_cases.get(fact, as_of=instant) == expected[0]
            else:
                with pytest.raises(FactNotFound):
                    use_cases.get(fact, as_of=instant)


def test_a_delete_with_a_clock_gone_back_still_ends_after_it_began() -> None:
    use_cases = FactUseCases()
    fact = use_cases.supersede(use_cases.write())
    use_cases.clock.advance(hours=-5)
    assert use_cases.delete(fact).invalidated_at == times.add(fact.updated_at, milliseconds=1)


def test_finding_a_revision_among_a_thousand_takes_few_reads() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write()
    for _ in range(1000):
        fact = use_cases.supersede(fact)
    reads = []
    store = use_cases.memory.facts
    revision = store.revision

    def counted(head: Head, version: int) -> Fact | None:
        reads.append(version)
        return revision(head, version)

    store.revision = counted
    for version in (1, 2, 500, 999, 1000):
        reads.clear()
        instant = times.add(START, milliseconds=version - 1)
        assert use_cases.get(fact, as_of=instant).version == version
        assert len(reads) <= 11


# -- retention and hold


@pytest.mark.parametrize(
    ("retention", "expires"),
    [
        ({}, None),
        ({"keep_days": 1}, "2026-01-02T00:00:00.000Z"),
        ({"keep_until": "2026-01-01T06:00:00+01:00"}, "2026-01-01T05:00:00.000Z"),
        ({"keep_days": 1, "keep_until": "2026-01-05T00:00:00Z"}, "2026-01-05T00:00:00.000Z"),
        ({"keep_days": 9, "keep_until": "2026-01-05T00:00:00Z"}, "2026-01-10T00:00:00.000Z"),
        ({"keep_days": 1, "legal_hold": True}, None),
        ({"keep_days": 1, "legal_hold": False}, "2026-01-02T00:00:00.000Z"),
    ],
)
def test_the_later_limit_counts_from_the_first_write_and_a_hold_suspends_it(
    retention: dict[str, Any], expires: str | None
) -> None:
    use_cases = FactUseCases()
    assert use_cases.write(retention=Retention(**retention)).expires_at == expires


def test_a_later_retention_still_counts_from_the_first_write_and_an_empty_one_clears() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write(retention=Retention(keep_days=1))
    use_cases.clock.advance(hours=5)
    assert use_cases.supersede(fact).expires_at == "2026-01-02T00:00:00.000Z"
    assert (
        use_cases.supersede(fact, retention=Retention(keep_days=2)).expires_at == "2026-01-03T00:00:00.000Z"
    )
    cleared = use_cases.supersede(fact, retention=Retention())
    assert (cleared.expires_at, cleared.retention) == (None, None)


@pytest.mark.parametrize(
    ("retention", "expires"),
    [
        ({}, "2026-01-31T00:00:00.000Z"),
        ({"keep_days": 1}, "2026-01-02T00:00:00.000Z"),
        ({"keep_until": "2027-01-01T00:00:00Z"}, "2027-01-01T00:00:00.000Z"),
        ({"legal_hold": True}, None),
        ({"legal_hold": False}, "2026-01-31T00:00:00.000Z"),
    ],
)
def test_a_fact_that_states_no_limit_follows_the_policy_and_answers_no_retention_of_its_own(
    retention: dict[str, Any], expires: str | None
) -> None:
    use_cases = FactUseCases()
    use_cases.policies["t"] = Policy(retention=KeepLimits(keep_days=30))
    fact = use_cases.write(retention=Retention(**retention))
    assert fact.expires_at == expires
    assert fact.retention == (Retention(**retention) if retention else None)


def test_a_types_retention_goes_before_the_tenants() -> None:
    use_cases = FactUseCases()
    use_cases.policies["t"] = Policy(
        retention=KeepLimits(keep_days=30), types={"note": TypePolicy(retention=KeepLimits(keep_days=2))}
    )
    assert use_cases.write().expires_at == "2026-01-03T00:00:00.000Z"


def test_each_later_revision_follows_the_policy_of_its_time_counted_from_the_first_write() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write()
    assert fact.expires_at is None
    use_cases.policies["t"] = Policy(retention=KeepLimits(keep_days=30))
    use_cases.clock.advance(days=3)
    assert use_cases.get(fact).expires_at is None, "a policy changes nothing that was written before it"
    assert use_cases.verify(fact).expires_at == "2026-01-31T00:00:00.000Z"
    use_cases.policies["t"] = Policy()
    assert use_cases.supersede(fact).expires_at is None


def test_an_expired_fact_answers_nothing_at_any_time_asked() -> None:
    use_cases = FactUseCases()
    fact = use_cases.supersede(use_cases.write(retention=Retention(keep_days=1)))
    use_cases.clock.instant = times.add(START, days=1, milliseconds=-1)
    assert use_cases.get(fact).version == 2
    use_cases.clock.instant = times.add(START, days=1)
    attempts = [
        lambda: use_cases.get(fact),
        lambda: use_cases.get(fact, version=1),
        lambda: use_cases.get(fact, as_of=START),
        lambda: use_cases.get(fact, version=1, as_of=START),
        lambda: use_cases.revisions(fact),
        lambda: use_cases.supersede(fact),
        lambda: use_cases.verify(fact),
        lambda: use_cases.delete(fact),
        lambda: reading.get_content_url(use_cases.memory, ADMIN, fact.id),
    ]
    for attempt in attempts:
        with pytest.raises(FactNotFound):
            attempt()


def test_a_held_fact_takes_no_change_of_any_kind_and_stays_readable() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write(retention=Retention(legal_hold=True, keep_days=1))
    use_cases.clock.advance(days=400)
    attempts = [
        lambda: use_cases.supersede(fact),
        lambda: use_cases.supersede(fact, KEEP, retention=Retention(legal_hold=False)),
        lambda: use_cases.supersede(fact, expected=7),
        lambda: use_cases.verify(fact),
        lambda: use_cases.delete(fact),
        lambda: use_cases.delete(fact, expected=7),
    ]
    for attempt in attempts:
        with pytest.raises(LegalHold):
            attempt()
    assert use_cases.get(fact) == fact
    assert [each.version for each in use_cases.revisions(fact)] == [1]


# -- the order of refusals


def test_a_change_is_refused_as_not_found_then_not_permitted_then_held_then_changed() -> None:
    use_cases = FactUseCases()
    held = use_cases.write(retention=Retention(legal_hold=True))
    plain = use_cases.write()
    stranger = principal("t", "eve")
    reader = principal("t", "rob", reads=["p"])
    changes: list[Any] = [use_cases.supersede, use_cases.verify, use_cases.delete]
    for change in changes:
        for fact in (held, plain):
            with pytest.raises(FactNotFound):
                change(fact, who=stranger, expected=9)
            with pytest.raises(PermissionDenied):
                change(fact, who=reader, expected=9)
        with pytest.raises(LegalHold):
            change(held, expected=9)
        with pytest.raises(FactChanged) as refused:
            change(plain, expected=9)
        assert refused.value.details == {"factId": plain.id, "currentVersion": 1}


def test_a_participant_needs_the_project_that_knows_them() -> None:
    with pytest.raises(ScopeInvalid):
        FactUseCases().write(scope={"participantId": "x"})


def test_a_revision_that_leaves_no_interval_of_validity_is_refused() -> None:
    use_cases = FactUseCases()
    fact = use_cases.write(valid_until="2026-01-02T00:00:00Z")
    with pytest.raises(ValidationFailed):
        use_cases.supersede(fact, valid_from="2026-01-02T00:00:00Z")
    assert use_cases.get(fact).version == 1
