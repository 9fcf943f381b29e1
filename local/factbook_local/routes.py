"""Which route an HTTP API selects: the most specific match of path and method, then `$default`."""

import re
import urllib.parse
from dataclasses import dataclass

from factbook_local.stack import DEFAULT_ROUTE, Route

_KEPT_ESCAPES = re.compile(r"%(25|2[Ff])")
_LITERAL, _VARIABLE = 0, 1


@dataclass(frozen=True)
class Selected:
    route: Route
    parameters: dict[str, str]


def decode_path(raw: str) -> str:
    """A path as an HTTP API passes it on: decoded but for `%2F` and `%25`, so that decoding it once more is exact.

    Raises UnicodeDecodeError when the escapes are no UTF-8.
    """
    kept = _KEPT_ESCAPES.sub(lambda match: "%25" + match[1], raw)
    return urllib.parse.unquote(kept, errors="strict")


class Router:
    """Selects among a fixed set of routes."""

    def __init__(self, routes: list[Route]) -> None:
        self._default = next((route for route in routes if route.key == DEFAULT_ROUTE), None)
        parsed = [(route, *route.key.partition(" ")[::2]) for route in routes if route.key != DEFAULT_ROUTE]
        self._routes = sorted(
            (
                (_kinds(path), method == "ANY", path.split("/")[1:], method, route)
                for route, method, path in parsed
            ),
            key=lambda entry: (entry[0], entry[1]),
        )

    def select(self, method: str, raw_path: str) -> Selected | None:
        """The route for a request, or None where the API itself answers 404."""
        segments = raw_path.split("/")[1:]
        for _, _, pattern, wanted, route in self._routes:
            if wanted in ("ANY", method) and (parameters := _match(pattern, segments)) is not None:
                return Selected(route, parameters)
        return Selected(self._default, {}) if self._default else None


def _kinds(path: str) -> tuple[int, ...]:
    return tuple(_VARIABLE if part.startswith("{") else _LITERAL for part in path.split("/")[1:])


def _match(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    parameters: dict[str, str] = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part.startswith("{"):
            if not segment:
                return None
            parameters[part[1:-1]] = decode_path(segment)
        elif part != decode_path(segment):
            return None
    return parameters
