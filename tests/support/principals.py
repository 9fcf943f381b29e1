"""Tokens for any principal, and gateways that call with them."""

import secrets
import uuid
from dataclasses import dataclass
from typing import Any

from factbook.api.access.authentication import secret_digest, token_text
from factbook.domain.access.principals import Actor, ActorKind, Principal
from factbook.ports.access.stores import Token
from factbook.usecases.policy.policies import KnownPolicies
from factbook.wiring.services import Services
from support.gateway import Gateway


def principal(tenant: str, name: str = "ann", kind: ActorKind = "user", **grants: Any) -> Principal:
    """`reads`, `writes` projects; `reads_orgs`, `administers_orgs`; `admin`; `agent_id`."""
    sets = {
        "reads_projects": grants.pop("reads", ()),
        "writes_projects": grants.pop("writes", ()),
        "reads_orgs": grants.pop("reads_orgs", ()),
        "administers_orgs": grants.pop("administers_orgs", ()),
    }
    return Principal(
        tenant, Actor(kind=kind, id=name), **{key: frozenset(value) for key, value in sets.items()}, **grants
    )


def issue(services: Services, holder: Principal, **times: str | None) -> str:
    """The text of a new token of a principal; `expires_at`, `revoked_at` as they are to be."""
    secret = secrets.token_urlsafe(32)
    token = Token(
        id=uuid.uuid4().hex,
        secret_sha256=secret_digest(secret),
        principal=holder,
        created_at=services.clock.now(),
        created_by="service:tests",
        **times,
    )
    assert services.access.create_token(token)
    return token_text(token.id, secret)


@dataclass
class TenantService:
    """One tenant of a service, and a gateway for each of its principals."""

    services: Services
    tenant: str

    def __post_init__(self) -> None:
        self._gateway = Gateway(self.services)
        self.admin = self.of("admin", admin=True)

    def know(self) -> None:
        """This process knows the tenant's policy and what is being erased of it, and trusts that for good."""
        services = self.services
        services.policies = KnownPolicies(services.policies, lambda: 0.0)
        services.policies.policy(self.tenant)
        erasing = services.erasing(self.tenant)
        services.__dict__["erasing"] = lambda _: erasing
        for made_with_it in ("memory", "memories", "logs"):
            services.__dict__.pop(made_with_it, None)

    def of(self, name: str = "ann", kind: ActorKind = "user", **grants: Any) -> Gateway:
        return self.as_(principal(self.tenant, name, kind, **grants))

    def as_(self, holder: Principal) -> Gateway:
        return self._gateway.as_(issue(self.services, holder))
