"""Tokens as the API shows them."""

from factbook.domain.strict_json import Json
from factbook.ports.access.stores import Token


def token_json(token: Token) -> Json:
    principal = token.principal
    answer: Json = {
        "id": token.id,
        "actor": principal.actor.to_json(),
        "admin": principal.admin,
        "projects": {"read": sorted(principal.reads_projects), "write": sorted(principal.writes_projects)},
        "orgs": {"read": sorted(principal.reads_orgs), "admin": sorted(principal.administers_orgs)},
        "agentId": principal.agent_id,
        "createdAt": token.created_at,
        "createdBy": token.created_by,
        "expiresAt": token.expires_at,
        "revokedAt": token.revoked_at,
    }
    return {name: value for name, value in answer.items() if value is not None}
