"""What is said of a request that no route serves, and the routes that the API is to have and nobody serves yet.

Those answer 501, so that a client can tell them from a misspelt route, which is 404. A route leaves this table when a
function serves it; tests hold the two apart.
"""

import re
from collections.abc import Iterator

from factbook.api.served import SERVED
from factbook.domain.errors import FactbookError, NotFound, Unsupported

PLANNED = (
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
    if (served := _served(path)) is not None:
        return NotFound(f"There is no such route: {served} takes {' and '.join(SERVED[served])}.")
    for fault, mended in _mended(path):
        if (served := _served(mended)) is not None:
            return NotFound(f"There is no such route: {fault}. It is {served}.")
    return NotFound(
        "There is no such route. The API reference lists them; an id in a path is percent-encoded."
    )


def _served(path: str) -> str | None:
    """The served path that this one is, with the names of its ids; one of names alone comes before the one it could be an id of."""
    return next((served for served in SERVED if re.fullmatch(_pattern(served), path)), None)


def _mended(path: str) -> Iterator[tuple[str, str]]:
    """What may be wrong with a path, and the path without that."""
    yield "the path ends in a slash", path.rstrip("/")
    yield "the path has a slash twice", re.sub("/+", "/", path)
    yield "the path has /v1 twice", path.replace("/v1/v1/", "/v1/")
    yield "the path begins with /v1", f"/v1{path}"
    yield "the path begins with /v1/memory", "/v1/memory" + path.removeprefix("/v1")
