"""Routes that the API is to have and that nobody serves yet.

They answer 501, so that a client can tell them from a misspelt route, which is 404. A route leaves this table when a
function serves it; tests hold the two apart.
"""

import re

from factbook.domain.errors import FactbookError, NotFound, Unsupported

PLANNED = (
    "POST /v1/memory/facts/{id}/hold",
    "POST /v1/memory/facts/{id}/release",
    "POST /v1/memory/facts/{id}/refresh",
    "POST /v1/memory/refresh/sweep",
    "POST /v1/memory/erasures",
    "GET /v1/memory/erasures",
    "GET /v1/memory/erasures/export",
    "POST /v1/memory/erasures/replay",
    "GET /v1/memory/erasures/{id}",
    "POST /v1/memory/erasures/{id}/resume",
    "GET /v1/memory/erasures/{id}/receipt",
    "GET /v1/memory/export",
    "POST /v1/memory/import",
    "POST /mcp",
    "GET /.well-known/oauth-protected-resource",
)
_PLANNED = re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)) for route in PLANNED))


def unserved(method: str, path: str) -> FactbookError:
    """The refusal of a request that no route serves."""
    if _PLANNED.fullmatch(f"{method} {path}"):
        return Unsupported(
            "This version does not have this operation yet. See the API reference for what it has."
        )
    return NotFound("There is no such route. See the API reference for the routes of this version.")
