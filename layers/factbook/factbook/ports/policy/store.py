"""Tenant policies as kept."""

from typing import Protocol

from factbook.domain.policy.policies import Policy


class PolicyStore(Protocol):
    def policy(self, tenant: str) -> Policy: ...

    def put_policy(self, tenant: str, policy: Policy) -> None: ...
