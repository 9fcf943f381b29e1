"""What a process knows of a tenant's policy, and for how long."""

from dataclasses import dataclass

import pytest
from support.search_world import FakePolicies

from factbook.domain.policy.policies import Policy
from factbook.domain.policy.retention import KeepLimits
from factbook.usecases.caches import MOST_ANSWERS
from factbook.usecases.policy.policies import TRUST_SECONDS, KnownPolicies

KEPT = Policy(retention=KeepLimits(keep_days=3))


@dataclass
class Store(FakePolicies):
    """Counts how often it is read."""

    reads: int = 0

    def policy(self, tenant: str) -> Policy:
        self.reads += 1
        return super().policy(tenant)


class Processes:
    """Two processes over one store, on one clock that waiting moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.store = Store()
        self.one, self.other = (KnownPolicies(self.store, lambda: self.seconds) for _ in range(2))
        monkeypatch.setattr("time.sleep", self.wait)

    def wait(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    return Processes(monkeypatch)


@pytest.mark.parametrize("known_for", [0.0, TRUST_SECONDS / 2, TRUST_SECONDS - 0.01])
def test_from_the_answer_on_every_process_follows_a_change(processes: Processes, known_for: float) -> None:
    assert processes.other.policy("t") == processes.one.policy("t") == Policy()
    processes.wait(known_for)
    processes.one.put_policy("t", KEPT)
    assert processes.one.policy("t") == processes.other.policy("t") == KEPT


def test_a_busy_tenants_policy_is_read_once_in_two_seconds(processes: Processes) -> None:
    for _ in range(100):
        processes.one.policy("t")
        processes.wait(TRUST_SECONDS / 100)
    assert processes.store.reads == 1
    processes.one.policy("t")
    assert processes.store.reads == 2


def test_what_a_process_knows_is_bounded_and_each_tenant_has_its_own(processes: Processes) -> None:
    processes.store.put_policy("t7", KEPT)
    for number in range(MOST_ANSWERS + 5):
        assert processes.one.policy(f"t{number}") == (KEPT if number == 7 else Policy())
    assert len(processes.one._known) == MOST_ANSWERS
