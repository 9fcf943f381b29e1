"""`mcp`: one call of a tool, over streamable HTTP and the same fetcher as any other question.

The protocol's official SDK would bring a server framework, a second of each cold start, and an HTTP client of its own, which
judges no address.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from factbook.adapters.sources.contents import Validators, answer, read_json
from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.http_handler import (
    USER_AGENT,
    Credentials,
    is_passing,
    retry_after,
    source_url,
)
from factbook.adapters.sources.mcp_messages import (
    CLIENT,
    HEADER_MISMATCH,
    NO_SUCH_CALL,
    OF_CURRENT,
    UNSUPPORTED_VERSION,
    WITH_HANDSHAKE,
    Events,
    ToolCall,
    current_call,
    current_request,
    parameter_headers,
    read_tool_call,
    request_text,
    schema_of,
    value_of,
)
from factbook.adapters.sources.urls import Url
from factbook.domain.strict_json import Json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.sources.handlers import (
    AnswerRefused,
    Ask,
    Fetched,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)
from factbook.ports.sources.large import LARGE_BYTES, in_turn

_SESSION = "mcp-session-id"
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_JSON, _EVENTS = "application/json", "text/event-stream"
_CLOSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_INVALID_REQUEST = -32600
MOST_LISTS = 4
"""Pages of a server's tools that are looked through for one."""
_FORMER_CODES = range(-32019, -31999)
"""Codes that implementations gave themselves, for a request without a session among others."""


class McpHandler:
    """Handler."""

    def __init__(self, fetcher: Fetcher, credentials: Credentials) -> None:
        self._fetcher = fetcher
        self._credentials = credentials

    def ask(self, ask: Ask, deadline: Deadline) -> Fetched | Unchanged:
        url = source_url(ask.source)
        call = read_tool_call(url)
        conversation = _Conversation(
            self._fetcher, call.url, partial(self._credentials, ask.tenant), deadline
        )
        heard = conversation.answer_to(call)
        with in_turn(heard.size, deadline):
            value = value_of(_result(heard.status, heard.message()))
            return answer(ask, value, url.fragment, Validators())


@dataclass(frozen=True)
class _Heard:
    """An answer. `text`: of the message in it, None where a status says all there is."""

    status: int
    headers: Mapping[str, str]
    text: bytes | None

    @property
    def size(self) -> int:
        return len(self.text or b"")

    def message(self) -> Any:
        try:
            return None if self.text is None else read_json(self.text)
        except (SourceRefused, SourceUnavailable):
            if self.status < HTTPStatus.BAD_REQUEST:
                raise
            return None


class _Conversation:
    """Requests to one server, each of them a POST that leads nowhere else."""

    def __init__(
        self, fetcher: Fetcher, url: Url, credentials: Callable[[Url], Mapping[str, str]], deadline: Deadline
    ) -> None:
        self._fetcher = fetcher
        self._url = url
        self._credentials = credentials
        self._deadline = deadline
        self._number = 0

    def answer_to(self, call: ToolCall) -> _Heard:
        """The last answer there is. One that has to be asked for otherwise is short."""
        params, headers = current_call(call)
        heard = self._request("tools/call", params, headers)
        if heard.size > LARGE_BYTES:
            return heard
        message = heard.message()
        if _error_code(message) == HEADER_MISMATCH:
            wanted = self._parameter_headers(call)
            return self._request("tools/call", params, {**headers, **wanted}) if wanted else heard
        if _wants_handshake(heard.status, message):
            return self._in_session(call)
        return heard

    def _parameter_headers(self, call: ToolCall) -> Mapping[str, str]:
        """The headers that the tool's own schema wants for its parameters; none when the server lists no such tool."""
        cursor = None
        for _ in range(MOST_LISTS):
            params, headers = current_request("tools/list", {"cursor": cursor} if cursor else {})
            heard = self._request("tools/list", params, headers)
            with in_turn(heard.size, self._deadline):
                result = _result(heard.status, heard.message())
                schema = schema_of(result, call.tool)
                if schema is not None:
                    return parameter_headers(schema, call.arguments)
                cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                break
        return {}

    def _in_session(self, call: ToolCall) -> _Heard:
        headers = self._handshake()
        try:
            return self._request("tools/call", {"name": call.tool, "arguments": call.arguments}, headers)
        finally:
            self._end(headers)

    def _handshake(self) -> Mapping[str, str]:
        """The headers that the requests of this session bear."""
        params: Json = {"protocolVersion": WITH_HANDSHAKE[0], "capabilities": {}, "clientInfo": CLIENT}
        heard = self._request("initialize", params, {})
        with in_turn(heard.size, self._deadline):
            version = _result(heard.status, heard.message()).get("protocolVersion")
        if version not in WITH_HANDSHAKE:
            raise AnswerRefused("the server speaks no revision of the protocol that is known here")
        headers = {"MCP-Protocol-Version": version, **_session(heard.headers)}
        self._send(request_text(None, "notifications/initialized", {}), headers, _Incoming(None))
        return headers

    def _end(self, headers: Mapping[str, str]) -> None:
        """Let the server forget the session; it would by itself, later."""
        if _SESSION in headers:
            with suppress(SourceRefused, SourceUnavailable):
                self._fetcher.fetch(
                    Request(self._url, lambda _: False, headers, self._credentials, "DELETE"), self._deadline
                )

    def _request(self, method: str, params: Json, headers: Mapping[str, str]) -> _Heard:
        self._number += 1
        incoming = _Incoming(self._number, self._deadline)
        reply = self._send(request_text(self._number, method, params), headers, incoming)
        return _Heard(reply.status, reply.headers, incoming.text(reply))

    def _send(self, content: bytes, headers: Mapping[str, str], incoming: "_Incoming") -> Reply:
        own = {"Accept": f"{_JSON}, {_EVENTS}", "Content-Type": _JSON, "User-Agent": USER_AGENT}
        request = Request(
            self._url,
            incoming.wants_body,
            {**own, **headers},
            self._credentials,
            "POST",
            content,
            incoming.take,
        )
        return self._fetcher.fetch(request, self._deadline)


class _Incoming:
    """What comes in answer to the request of that number; a notification has none, and is answered by a status."""

    def __init__(self, number: int | None, deadline: Deadline = NEVER) -> None:
        self._number = number
        self._deadline = deadline
        self._media = ""
        self._events = Events(self._is_answer)

    def wants_body(self, reply: Reply) -> bool:
        if is_passing(reply.status):
            raise SourceUnavailable(f"the source answers {reply.status}", retry_after(reply.headers))
        if reply.status in _CLOSED:
            raise AnswerRefused(f"the source answers {reply.status}")
        self._media = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        return self._number is not None and self._media in (_JSON, _EVENTS)

    def take(self, piece: bytes) -> bool:
        return self._media == _EVENTS and self._events.take(piece)

    def text(self, reply: Reply) -> bytes | None:
        if self._media == _EVENTS:
            return self._events.found
        return reply.body if self._media == _JSON else None

    def _is_answer(self, text: bytes) -> bool:
        with in_turn(len(text), self._deadline):
            message = read_json(text)
            return isinstance(message, dict) and message.get("id") == self._number and "method" not in message


def _session(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The server's session, if it has one, as requests bear it."""
    if _SESSION not in headers:
        return {}
    if not _VISIBLE.fullmatch(headers[_SESSION]):
        raise AnswerRefused("the server's session is none that a request can bear")
    return {_SESSION: headers[_SESSION]}


def _error_code(message: Any) -> int | None:
    error = message.get("error") if isinstance(message, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _wants_handshake(status: int, message: Any) -> bool:
    """Whether a server of a former revision answered: it refuses a request without a session, in its own words."""
    code = _error_code(message)
    if code == UNSUPPORTED_VERSION:
        data = message["error"].get("data")
        supported = data.get("supported") if isinstance(data, dict) else None
        return isinstance(supported, list) and not set(WITH_HANDSHAKE).isdisjoint(map(str, supported))
    if status < HTTPStatus.BAD_REQUEST:
        return code == _INVALID_REQUEST or code in _FORMER_CODES
    return code not in OF_CURRENT | NO_SUCH_CALL


def _result(status: int, message: Any) -> Any:
    code = _error_code(message)
    if code in NO_SUCH_CALL:
        raise AnswerRefused("the server has no such tool, or it takes no such arguments")
    if code in OF_CURRENT:
        raise AnswerRefused("the server wants what is not done here")
    if code is not None:
        raise SourceUnavailable("the server reports an error")
    if status >= HTTPStatus.BAD_REQUEST:
        raise AnswerRefused(f"the source answers {status}")
    if not isinstance(message, dict) or not isinstance(message.get("result"), dict):
        raise SourceUnavailable("the server's answer has no result")
    return message["result"]
