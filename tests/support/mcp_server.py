"""Servers of the Model Context Protocol on a socket: of the current revision, and of those that want a handshake."""

import json
from dataclasses import dataclass, field
from typing import Any

from support.source_server import Exchange, reply

JSON = "application/json"


@dataclass
class McpServer:
    """A behaviour of a SourceServer. `result`: the JSON text of what `tools/call` answers, or an error's with `error`.

    `sessions`: it speaks this former revision, with a session if `session` names one. `stream`: answers come as events.
    `mirrored`: the headers `Mcp-Param-…` that it wants of a call, as the `schema` of its tool says, which is on its second page.
    """

    result: str = '{"content": []}'
    error: str | None = None
    sessions: str | None = None
    session: str | None = "session-1"
    stream: bool = False
    status: int = 200
    mirrored: dict[str, str] = field(default_factory=dict)
    schema: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    ended: int = 0

    def __call__(self, exchange: Exchange) -> None:
        if self.status != 200:
            exchange.send(reply(self.status, retry_after="7"))
        elif self.sessions is None:
            self._current(exchange)
        else:
            self._former(exchange)

    def _current(self, exchange: Exchange) -> None:
        headers, message = exchange.request.headers, json.loads(exchange.request.body)
        params = message["params"]
        meta = params.get("_meta", {})
        named = (headers.get("mcp-protocol-version"), headers.get("mcp-method"), headers.get("mcp-name"))
        if named[0] != meta.get("io.modelcontextprotocol/protocolVersion") or named[1] != message["method"]:
            exchange.send(_error(400, message, '{"code": -32020, "message": "Header mismatch"}'))
        elif message["method"] == "tools/list":
            self._list(exchange, message)
        elif any(headers.get(f"mcp-param-{name}") != value for name, value in self.mirrored.items()):
            exchange.send(_error(400, message, '{"code": -32020, "message": "Header mismatch"}'))
        else:
            self._call(exchange, message)

    def _list(self, exchange: Exchange, message: dict[str, Any]) -> None:
        named = "t" if message["params"].get("cursor") else "other"
        tool = {"name": named} if self.schema is None else {"name": named, "inputSchema": self.schema}
        more = {} if named == "t" else {"nextCursor": "2"}
        self._send(exchange, message, f'"result": {json.dumps({"tools": [tool], **more})}')

    def _former(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "DELETE":
            self.ended += 1
            exchange.send(reply(204))
            return
        message = json.loads(request.body)
        if message["method"] == "initialize":
            session = {"mcp_session_id": self.session} if self.session else {}
            version = message["params"]["protocolVersion"]
            chosen = version if self.sessions == version else self.sessions
            result = {"protocolVersion": chosen, "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
            self._send(exchange, message, f'"result": {json.dumps(result)}', **session)
        elif self.session and request.headers.get("mcp-session-id") != self.session:
            exchange.send(_error(400, message, '{"code": -32000, "message": "Bad Request: no session"}'))
        elif message["method"] == "notifications/initialized":
            exchange.send(reply(202))
        else:
            assert request.headers["mcp-protocol-version"] == self.sessions
            self._call(exchange, message)

    def _call(self, exchange: Exchange, message: dict[str, Any]) -> None:
        assert message["method"] == "tools/call"
        self.calls.append(message["params"])
        said = f'"result": {self.result}' if self.error is None else f'"error": {self.error}'
        self._send(exchange, message, said)

    def _send(self, exchange: Exchange, message: dict[str, Any], said: str, **headers: str) -> None:
        answer = f'{{"jsonrpc": "2.0", "id": {message["id"]}, {said}}}'
        if not self.stream:
            exchange.send(reply(200, answer.encode(), content_type=JSON, **headers))
            return
        head = reply(200, content_type="text/event-stream; charset=utf-8", content_length="", **headers)
        exchange.send(head.replace(b"content-length: \r\n", b""))
        exchange.send(b": a comment\r\n\r\nid: 1\r\ndata:\r\n\r\n")
        exchange.send(b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/progress"}\n\n')
        exchange.send(f"data: {answer}".encode())
        exchange.send(b"\r\n")
        exchange.send(b"\r\n")
        exchange.hang()  # a stream may stay open: who has the answer need not wait


def _error(status: int, message: dict[str, Any], error: str) -> bytes:
    text = f'{{"jsonrpc": "2.0", "id": {message["id"]}, "error": {error}}}'
    return reply(status, text.encode(), content_type=JSON)
