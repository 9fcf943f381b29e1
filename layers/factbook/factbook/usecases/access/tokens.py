"""Make, list and revoke API tokens; for administrators of a tenant."""

from dataclasses import replace

from factbook.domain.access.listing import MAX_LISTED_CONTAINERS
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import NotFound, ReplayWithheld, ValidationFailed
from factbook.ports.access.stores import Token, TokenStore
from factbook.ports.clock import Clock


def create_token(store: TokenStore, caller: Principal, token: Token) -> Token:
    """Keep a new token. Raises PermissionDenied, ValidationFailed, and ReplayWithheld when its id is taken."""
    require_admin(caller)
    holder = token.principal
    containers = 2 + len(holder.reads_projects | holder.writes_projects) + len(holder.writes_projects)
    containers += len(holder.reads_orgs | holder.administers_orgs)
    if containers > MAX_LISTED_CONTAINERS:
        raise ValidationFailed(
            f"A token may reach {MAX_LISTED_CONTAINERS} containers (a written project counts twice). Grant fewer.",
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
    """Tokens of the tenant, oldest first, and where the next page begins."""
    require_admin(caller)
    found, more = store.tokens(caller.tenant, after, limit)
    return found, f"{found[-1].created_at}|{found[-1].id}" if more and found else None


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
