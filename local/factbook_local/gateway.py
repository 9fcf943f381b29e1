"""The HTTP API: an ASGI application that turns requests into events and results into answers, as API Gateway does.

What the gateway answers itself has its shape, `{"message": …}`: 400 a path that is no text or a protocol that is not spoken, 404 no route, 413 a body
above 10 MB (or an event above Lambda's 6 MB), 431 headers above 10,240 bytes, 500 a function that failed, 503 one
that took longer than the 30 seconds of an integration, or that found no free worker.
"""

import asyncio
import http
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.payload import Answer, BadAnswer, Request, build_event, read_result
from factbook_local.routes import Router
from factbook_local.workers import Pool

BODY_LIMIT = LIMITS["request"].most
EVENT_LIMIT = LIMITS["invocation"].most
HEADER_LIMIT = LIMITS["headers"].most
_DRAINED = 64 * 1024 * 1024
INTEGRATION_SECONDS = float(LIMITS["integration"].most)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class Gateway:
    """`pools`: a function's logical id → its workers."""

    def __init__(self, router: Router, pools: Mapping[str, Pool], url: str, account: str) -> None:
        self._router, self._pools, self._url, self._account = router, pools, url, account
        self._running: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        request_id = str(uuid.uuid4())
        answer = await self._answer(scope, receive, request_id)
        if answer is None:
            return
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        if answer.status not in (204, 304):
            headers.append((b"content-length", str(len(answer.body)).encode()))
        headers.append((b"apigw-requestid", request_id.encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if answer.status in (204, 304) else answer.body}
        )

    async def _answer(self, scope: _Message, receive: _Receive, request_id: str) -> Answer | None:
        if scope["http_version"] not in ("1.0", "1.1"):
            return _own(400)
        size = (
            sum(len(name) + len(value) for name, value in scope["headers"])
            + len(scope["raw_path"])
            + len(scope["query_string"])
        )
        if size > HEADER_LIMIT:
            return _own(431)
        try:
            body = await _read_body(receive)
        except _Gone:
            return None
        if body is None:
            return _own(413)
        request = Request(
            method=scope["method"],
            target=scope["raw_path"].decode("latin-1"),
            query=scope["query_string"].decode("latin-1"),
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
            body=body,
            protocol=f"HTTP/{scope['http_version']}",
            source=(scope.get("client") or ("127.0.0.1", 0))[0],
            url=self._url,
        )
        return await self._integrate(request, request_id)

    async def _integrate(self, request: Request, request_id: str) -> Answer:
        try:
            selected = self._router.select(request.method, request.target)
            if selected is None:
                return _own(404)
            event = build_event(request, selected, request_id, self._account)
        except UnicodeDecodeError:
            return _own(400)
        payload = json.dumps(event).encode()
        if len(payload) > EVENT_LIMIT:
            return _own(413)
        # A function runs to its own end, whether or not anyone still waits for it.
        running = asyncio.ensure_future(
            self._pools[selected.route.function].invoke(
                payload, trace=event["headers"]["x-amzn-trace-id"], wait=INTEGRATION_SECONDS
            )
        )
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            outcome = await asyncio.wait_for(asyncio.shield(running), INTEGRATION_SECONDS)
        except TimeoutError:
            return _own(503)
        if outcome.error is not None:
            return _own(503 if outcome.error["errorType"] == "TooManyRequestsException" else 500)
        try:
            return read_result(outcome.body)
        except BadAnswer:
            return _own(500)


class _Gone(Exception):
    """The client went away before its request was whole."""


async def _read_body(receive: _Receive) -> bytes | None:
    """The body, or None when it is too large.

    A body that is too large is read to its end, within reason: a client that still sends sees a reset, not an answer.
    """
    body, size = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= BODY_LIMIT:
            body += chunk
        if not message.get("more_body") or size > _DRAINED:
            return bytes(body) if size <= BODY_LIMIT else None


def _own(status: int) -> Answer:
    """An answer of the gateway itself."""
    message = {400: "Bad Request", 413: "Request Entity Too Large"}.get(
        status, http.HTTPStatus(status).phrase
    )
    return Answer(status, [("content-type", "application/json")], json.dumps({"message": message}).encode())
