"""What is said of a request that no route serves, and the routes that the API is to have and nobody serves yet.

Those answer 501, so that a client can tell them from a misspelt route, which is 404. A route leaves this table when a
function serves it; tests hold the two apart.
"""

import re

from factbook.api.served import SERVED
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


def _pattern(template: str) -> str:
    return re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))


_PLANNED = re.compile("|".join(map(_pattern, PLANNED)))


def unserved(method: str, path: str) -> FactbookError:
    """The refusal of a request that no route serves."""
    if _PLANNED.fullmatch(f"{method} {path}"):
        return Unsupported(
            "This version does not have this operation yet. See the API reference for what it has."
        )
    for served, methods in SERVED.items():  # a path of names alone comes before the one it could be an id of
        if re.fullmatch(_pattern(served), path):
            return NotFound(f"There is no such route: {served} takes {' and '.join(methods)}.")
    return NotFound(
        "There is no such route. Check the method, that the path has /v1 once and no slash at its end; "
        "the API reference lists the routes."
    )
