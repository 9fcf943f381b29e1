"""Lambda's Invoke API, for functions that call functions: `POST /2015-03-31/functions/{name}/invocations`."""

import asyncio
import json
import urllib.parse
import uuid
from collections.abc import Mapping
from typing import Any

from factbook_local.gateway import _Message, _Receive, _Send
from factbook_local.limits import LIMITS
from factbook_local.workers import Outcome, Pool

RETRY_SECONDS = (1.0, 2.0)
"""Before the second and third try of an asynchronous event. Lambda waits one minute, then two."""


async def invoke_later(pool: Pool, payload: bytes, *, retries: tuple[float, ...] = RETRY_SECONDS) -> Outcome:
    """An asynchronous invocation: tried again after a failure, then given up."""
    outcome = await pool.invoke(payload, wait=3600.0)
    for seconds in retries:
        if outcome.error is None:
            break
        await asyncio.sleep(seconds)
        outcome = await pool.invoke(payload, wait=3600.0)
    return outcome


class InvokeApi:
    """ASGI application. `pools`: logical id → workers; a function is called by its name or its ARN."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self._pools = pools
        self._later: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        status, headers, body = await self._answer(scope, receive)
        sent = [
            (b"content-type", b"application/json"),
            (b"x-amzn-requestid", str(uuid.uuid4()).encode()),
            (b"content-length", str(len(body)).encode()),
            *headers,
        ]
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, scope: _Message, receive: _Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        parts = [urllib.parse.unquote(part) for part in scope["raw_path"].decode("latin-1").split("/")]
        if (
            scope["method"] != "POST"
            or parts[1:3] != ["2015-03-31", "functions"]
            or parts[-1] != "invocations"
        ):
            return _problem(404, "UnknownOperationException", "only Invoke is served here")
        pool = next((pool for pool in self._pools.values() if parts[3] in (pool.name, pool.arn)), None)
        if pool is None:
            return _problem(404, "ResourceNotFoundException", f"Function not found: {parts[3]}")
        payload = b""
        while True:
            message = await receive()
            payload += message.get("body", b"")
            if not message.get("more_body"):
                break
        kind = dict(scope["headers"]).get(b"x-amz-invocation-type", b"RequestResponse").decode("latin-1")
        return await self._invoke(pool, kind, payload or b"{}")

    async def _invoke(
        self, pool: Pool, kind: str, payload: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        if len(payload) > LIMITS["event" if kind == "Event" else "invocation"].most:
            return _problem(
                413, "RequestTooLargeException", "the payload is larger than an invocation may be"
            )
        try:
            json.loads(payload)
        except ValueError:
            return _problem(400, "InvalidRequestContentException", "Could not parse request body into json")
        match kind:
            case "Event":
                task = asyncio.ensure_future(invoke_later(pool, payload))
                self._later.add(task)
                task.add_done_callback(self._later.discard)
                return 202, [], b""
        outcome = await pool.invoke(payload, wait=60.0)
        if outcome.error is None:
            return 200, [(b"x-amz-executed-version", b"$LATEST")], outcome.body
        if outcome.error["errorType"] == "TooManyRequestsException":
            return _problem(429, "TooManyRequestsException", "Rate Exceeded.")
        return (
            200,
            [(b"x-amz-executed-version", b"$LATEST"), (b"x-amz-function-error", b"Unhandled")],
            json.dumps(outcome.error).encode(),
        )


def _problem(status: int, kind: str, message: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return (
        status,
        [(b"x-amzn-errortype", kind.encode())],
        json.dumps({"Type": "User", "Message": message}).encode(),
    )
