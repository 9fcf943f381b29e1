"""Identifies the write that a request asks for.

Two requests are the same operation when they have the same Idempotency-Key, principal and route.
"""

import hashlib
import secrets

from factbook.api.requests import Request
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import dump_json
from factbook.ports.operations import Operation

MAX_KEY_LENGTH = 255


def identify(request: Request, principal: Principal) -> Operation:
    """The operation of a request; without an Idempotency-Key it is unlike any other.

    Raises BadInput for an Idempotency-Key that is empty or too long.
    """
    body = dump_json([dict(request.path), dict(request.query), request.body_digest])
    key = request.headers.get("idempotency-key")
    if key is None:
        return Operation(secrets.token_hex(16), body)
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise BadInput(f"An Idempotency-Key has 1 to {MAX_KEY_LENGTH} characters.")
    identity = dump_json([principal.tenant, principal.name, request.route_key, key])
    return Operation(hashlib.sha256(identity.encode()).hexdigest(), body)
