"""Opaque signed cursors. A cursor holds a position in a list, and works for the query and the principal it was made for."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import Json, dump_json, parse_json

_MAC_BYTES = 16


class Cursors:
    """Makes and checks cursors; `signing_key` is the deployment's."""

    def __init__(self, signing_key: Callable[[], bytes]) -> None:
        self._signing_key = signing_key

    def write(self, principal: Principal, query: Json, position: Json) -> str:
        text = dump_json(position).encode()
        return base64.urlsafe_b64encode(self._mac(principal, query, text) + text).decode().rstrip("=")

    def read(self, principal: Principal, query: Json, cursor: str) -> Json:
        """The position. Raises BadInput for a cursor of another query or principal, or one that was altered."""
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except (binascii.Error, ValueError):
            raw = b""
        mac, text = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(principal, query, text)):
            raise BadInput("This cursor does not belong to this list. Start again without a cursor.")
        position: Json = parse_json(text)
        return position

    def _mac(self, principal: Principal, query: Json, text: bytes) -> bytes:
        bound = dump_json([principal.tenant, principal.name, query]).encode()
        return hmac.new(
            self._signing_key(), b"cursor:" + hashlib.sha256(bound).digest() + text, "sha256"
        ).digest()[:_MAC_BYTES]
