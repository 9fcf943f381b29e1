"""Make, list and revoke API tokens; for administrators of a tenant."""

from dataclasses import replace

from factbook.domain import wire
from factbook.domain.access.listing import MAX_LISTED_CONTAINERS, containers_of
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import NotFound, PermissionDenied, ReplayWithheld, ValidationFailed
from factbook.ports.access.stores import Token, TokenStore
from factbook.ports.clock import Clock

TOKEN_BYTES = 512
"""What a token takes of an answer besides the names it holds."""


def create_token(store: TokenStore, caller: Principal, token: Token) -> Token:
    """Keep a new token. Raises PermissionDenied, ValidationFailed, and ReplayWithheld when its id is taken."""
    require_admin(caller)
    if caller.actor.kind == "agent" and token.principal.actor.kind != "agent":
        raise PermissionDenied(
            "An agent makes tokens of agents alone: what people and services decide is not its to decide in their name. Use "
            "the token of an administrator who is no agent."
        )
    if token.expires_at is not None and token.expires_at <= token.created_at:
        raise ValidationFailed(
            "/expiresAt has passed already. Send a later time.",
            issues=[{"path": "/expiresAt", "message": "has passed already"}],
        )
    containers = containers_of(token.principal)
    if containers > MAX_LISTED_CONTAINERS:
        raise ValidationFailed(
            f"A token may reach {MAX_LISTED_CONTAINERS} containers: its tenant, its holder, each org and each project are one, a "
            "project that it writes is two. Grant fewer.",
            issues=[{"path": "/projects", "message": f"{containers} containers in all"}],
        )
    if not store.create_token(token):
        raise ReplayWithheld(
            "This request made its token before; secrets are shown once. Use a new Idempotency-Key."
        )
    return token


def list_tokens(
    store: TokenStore, caller: Principal, after: str, limit: int
) -> tuple[list[Token], str | None]:
    """Tokens of the tenant, oldest first, as many as one answer holds, and where the next page begins."""
    require_admin(caller)
    found, more = store.tokens(caller.tenant, after, limit)
    kept = wire.fitting(found, _wire_bytes)
    more = more or len(kept) < len(found)
    return kept, f"{kept[-1].created_at}|{kept[-1].id}" if more and kept else None


def _wire_bytes(token: Token) -> int:
    holder = token.principal
    names = [*holder.reads_projects, *holder.writes_projects, *holder.reads_orgs, *holder.administers_orgs]
    return wire.value_bytes([holder.actor.id, holder.agent_id, token.created_by, *names]) + TOKEN_BYTES


def revoke_token(store: TokenStore, clock: Clock, caller: Principal, token_id: str) -> Token:
    """The revoked token; revoking again changes nothing. Raises NotFound, PermissionDenied."""
    require_admin(caller)
    token = store.token(token_id)
    if token is None or token.principal.tenant != caller.tenant:
        raise NotFound("There is no such token in your tenant.")
    if token.revoked_at is None:
        token = replace(token, revoked_at=clock.now())
        store.replace_token(token)
    return token
