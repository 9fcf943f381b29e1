"""Read and set a tenant's policy, as its administrator."""

from ..domain.access import require_admin
from ..domain.policy import Policy
from ..domain.principals import Principal
from ..index_ports import PolicyStore


def get_policy(policies: PolicyStore, principal: Principal) -> Policy:
    """Raises PermissionDenied."""
    require_admin(principal)
    return policies.policy(principal.tenant)


def put_policy(policies: PolicyStore, principal: Principal, policy: Policy) -> Policy:
    """Replaces the policy whole; it applies to writes from now on. Raises PermissionDenied."""
    require_admin(principal)
    policies.put_policy(principal.tenant, policy)
    return policy
