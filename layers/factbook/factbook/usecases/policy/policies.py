"""A tenant's policy: read and set by its administrators, known to every write.

A process trusts what it read for two seconds, and a change is acknowledged only when those have passed: from the answer
on, no write follows the policy before it.
"""

import time
from collections.abc import Callable

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import RequestTooLarge
from factbook.domain.policy.policies import Policy
from factbook.domain.strict_json import dump_json
from factbook.ports.policy.store import PolicyStore
from factbook.usecases.caches import TrustedAnswers

TRUST_SECONDS = 2.0
MAX_POLICY_BYTES = 350_000
"""It is kept as one item, which may have 400 KB."""


class KnownPolicies:
    """A PolicyStore over another: answers at most two seconds old, changes that outwait every such answer."""

    def __init__(self, store: PolicyStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._known = TrustedAnswers(store.policy, TRUST_SECONDS, monotonic)

    def policy(self, tenant: str) -> Policy:
        return self._known(tenant)

    def put_policy(self, tenant: str, policy: Policy) -> None:
        self._store.put_policy(tenant, policy)
        time.sleep(TRUST_SECONDS)


def get_policy(policies: PolicyStore, principal: Principal) -> Policy:
    """Raises PermissionDenied."""
    require_admin(principal)
    return policies.policy(principal.tenant)


def put_policy(policies: PolicyStore, principal: Principal, policy: Policy) -> Policy:
    """Replaces the policy whole; it applies to writes from the answer on. Raises PermissionDenied, RequestTooLarge."""
    require_admin(principal)
    if len(dump_json(policy.to_json()).encode()) > MAX_POLICY_BYTES:
        raise RequestTooLarge("A policy may have 350 KB. Name fewer types, or shorten their names.")
    policies.put_policy(principal.tenant, policy)
    return policy
