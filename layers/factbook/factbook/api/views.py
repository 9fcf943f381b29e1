"""Answers: records as the API shows them."""

from factbook.ports.facts.facts import Json, Token
from factbook.settings import Settings


def page_json(data: list[Json], cursor: str | None) -> Json:
    page: Json = {"data": data, "hasMore": cursor is not None}
    return page if cursor is None else page | {"nextCursor": cursor}


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


def search_line(settings: Settings) -> str:
    """The line that says which search there is, at start-up and in the status."""
    if not settings.semantic:
        return "Memory search: keyword (KINDGI_MEMORY_EMBEDDINGS turns on search by meaning)"
    model, url = settings.memory_embeddings_model, settings.memory_embeddings_url
    return f"Memory search: keyword and by meaning (openai-compat {model} at {url})"
