"""Messages of the Model Context Protocol: how a tool call is written, and what is read out of an answer.

Revision 2026-07-28, in which every request stands alone, and those from 2025-03-26 on, which want a handshake first.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from factbook.adapters.sources.urls import Url
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import Json, dump_json, parse_json
from factbook.ports.sources.handlers import AnswerRefused, SourceRefused, SourceUnavailable

CURRENT = "2026-07-28"
WITH_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26")
CLIENT: Json = {"name": "factbook", "version": "1"}
UNSUPPORTED_VERSION = -32022
HEADER_MISMATCH = -32020
OF_CURRENT = frozenset({HEADER_MISMATCH, -32021, UNSUPPORTED_VERSION})
"""Codes that only a server of the current revision answers."""

NO_SUCH_CALL = frozenset({-32601, -32602})
_META = "io.modelcontextprotocol/"
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_PLAIN_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True)
class ToolCall:
    """A tool of the server at `url`, and its arguments."""

    url: Url
    tool: str
    arguments: Json


def read_tool_call(url: Url) -> ToolCall:
    """From `https://server/mcp?tool=NAME&arguments=JSON`; what else the query has belongs to the server's address."""
    path, _, query = url.target.partition("?")
    said: dict[str, str] = {}
    others = []
    for part in query.split("&") if query else []:
        name, _, value = part.partition("=")
        if name not in ("tool", "arguments"):
            others.append(part)
        elif name in said:
            raise SourceRefused("the address names a tool or its arguments twice")
        else:
            said[name] = unquote_plus(value)
    if not said.get("tool"):
        raise SourceRefused("the address names no tool: …?tool=NAME")
    target = f"{path}?{'&'.join(others)}" if others else path
    server = Url(url.scheme, url.host, url.port, target, url.fragment)
    return ToolCall(server, said["tool"], _arguments(said.get("arguments", "{}")))


def _arguments(text: str) -> Json:
    try:
        found = parse_json(text)
    except BadInput:
        found = None
    if not isinstance(found, dict):
        raise SourceRefused("the arguments of the tool are no JSON object")
    return found


def current_call(call: ToolCall) -> tuple[Json, Mapping[str, str]]:
    """Parameters and headers of the call as the current revision wants them."""
    params, headers = current_request("tools/call", {"name": call.tool, "arguments": call.arguments})
    return params, {**headers, "Mcp-Name": _header(call.tool)}


def current_request(method: str, params: Json) -> tuple[Json, Mapping[str, str]]:
    meta = {
        f"{_META}protocolVersion": CURRENT,
        f"{_META}clientInfo": CLIENT,
        f"{_META}clientCapabilities": {},
    }
    return {**params, "_meta": meta}, {"MCP-Protocol-Version": CURRENT, "Mcp-Method": method}


def schema_of(result: Any, tool: str) -> Any:
    """What a page of a server's tools says of the arguments of one; None when it is not there."""
    tools = result.get("tools")
    for each in tools if isinstance(tools, list) else ():
        if isinstance(each, dict) and each.get("name") == tool:
            return each.get("inputSchema")
    return None


def parameter_headers(schema: Any, arguments: Any) -> dict[str, str]:
    """The arguments that a tool's schema wants said in headers as well (`x-mcp-header`), wherever `properties` lead."""
    found: dict[str, str] = {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not isinstance(arguments, dict):
        return found
    for name, each in properties.items():
        value = arguments.get(name)
        wanted = each.get("x-mcp-header") if isinstance(each, dict) else None
        said = _said(value)
        if isinstance(wanted, str) and _TOKEN.fullmatch(wanted) and said is not None:
            found[f"Mcp-Param-{wanted}"] = _header(said)
        found |= parameter_headers(each, value)
    return found


def _said(value: Any) -> str | None:
    """A value as a header says it; None for one that no header says."""
    if isinstance(value, str):
        return value
    return dump_json(value) if isinstance(value, bool | int) else None


def _header(text: str) -> str:
    if _PLAIN_HEADER.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


class Events:
    """The messages of an event stream, taken in as they come."""

    def __init__(self, wanted: Callable[[bytes], bool]) -> None:
        """`wanted`: of the text of a message."""
        self._wanted = wanted
        self._rest = bytearray()
        self.found: bytes | None = None

    def take(self, piece: bytes) -> bool:
        """Whether the message that is wanted has come."""
        seen = max(0, len(self._rest) - 3)  # an end may be cut
        self._rest += piece
        while end := _EVENT_END.search(self._rest, seen):
            text = _text(bytes(self._rest[: end.start()]))
            if text and self._wanted(text):
                self.found = text
                return True
            del self._rest[: end.end()]
            seen = 0
        return False


def _text(event: bytes) -> bytes:
    lines = (line for line in _LINE_END.split(event) if line.startswith(b"data:"))
    return b"\n".join(line.removeprefix(b"data:").removeprefix(b" ") for line in lines)


def value_of(result: Any) -> Any:
    """The value that a tool answered: its structured content, else its text, as JSON where it is an object or a list."""
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        raise AnswerRefused("the tool asks for something before it answers")
    if result.get("isError"):
        raise SourceUnavailable("the tool reports an error")
    if "structuredContent" in result:
        return result["structuredContent"]
    items = result.get("content")
    if not isinstance(items, list) or not items or not all(map(_is_text, items)):
        raise AnswerRefused("the tool answers something that is no text")
    text = "\n".join(item["text"] for item in items)
    return _json_of(text) if text.lstrip()[:1] in ("{", "[") else text


def _is_text(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str)


def _json_of(text: str) -> Any:
    try:
        return parse_json(text)
    except BadInput:
        return text


def request_text(number: int | None, method: str, params: Json) -> bytes:
    """A request, or with no number a notification."""
    numbered = {} if number is None else {"id": number}
    return dump_json({"jsonrpc": "2.0", **numbered, "method": method, "params": params}).encode()
