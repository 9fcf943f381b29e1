"""Identifies the write that a request asks for.

Two requests are the same operation when they have the same Idempotency-Key, principal and route.

Two bodies are the same when they are equal as JSON values: the order of keys, spacing, escapes and the way a number is
written do not count (1e2 is 100.0). 1 and 1.0 are two values here, as a fact's content comes back as it was sent.
"""

import hashlib
import json
import secrets
from typing import Any

from factbook.api.requests import Request
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import Json, dump_json
from factbook.ports.deadline import Deadline
from factbook.ports.operations import Operation

MAX_KEY_LENGTH = 255


def identify(request: Request, principal: Principal, body: Json, deadline: Deadline) -> Operation:
    """The operation that a request with this body asks for; without an Idempotency-Key it is unlike any other.

    Raises BadInput for an Idempotency-Key that is empty or too long.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return Operation(secrets.token_hex(16), _asked(request, request.body), deadline=deadline)
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise BadInput(f"An Idempotency-Key has 1 to {MAX_KEY_LENGTH} characters.")
    identity = dump_json([principal.tenant, principal.name, request.route_key, key])
    return Operation(
        hashlib.sha256(identity.encode()).hexdigest(),
        _asked(request, _comparable(request, body)),
        former_bodies=(_asked(request, request.body),),
        deadline=deadline,
    )


def item_digest(item: Any) -> str:
    """The digest of one item of a batch, which is a write of its own."""
    try:
        return hashlib.sha256(_text(item)).hexdigest()
    except RecursionError:  # it is refused, and its refusal is remembered by nothing
        return ""


def _asked(request: Request, body: bytes) -> str:
    return dump_json([dict(request.path), dict(request.query), hashlib.sha256(body).hexdigest()])


def _comparable(request: Request, body: Json) -> bytes:
    """One text for equal bodies. An item that was refused writes nothing, so its refusal stands for it."""
    try:
        return _text(body)
    except (
        RecursionError
    ):  # no record is nested as deep as this, so only a batch gets here, for its other items
        return request.body


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()
