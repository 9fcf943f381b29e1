"""Opaque encrypted cursors. A cursor holds a position in a list, and works for the query and the principal it was made for.

A position may be that of a record which the caller may not see, so its text is for nobody to read.
"""

import base64
import binascii
import hmac
from collections.abc import Callable

from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import Json, dump_json, parse_json
from factbook.ports.cipher import NONCE_BYTES, Cipher, Forged

PADDING = 256
"""Positions are filled up with spaces to a multiple of this many bytes: a length can tell of a name."""


class Cursors:
    """Makes and opens cursors; `secret` is the deployment's."""

    def __init__(self, secret: Callable[[], bytes], cipher: Cipher) -> None:
        self._secret = secret
        self._cipher = cipher

    def write(self, principal: Principal, query: Json, position: Json) -> str:
        text = dump_json(position).encode()
        bound = _bound(principal, query)
        nonce, sealed = self._cipher.seal(self._key(bound), text + b" " * (-len(text) % PADDING), bound)
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def read(self, principal: Principal, query: Json, cursor: str) -> Json:
        """The position. Raises BadInput for a cursor of another query or principal, or one that was altered."""
        bound = _bound(principal, query)
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            text = self._cipher.open(self._key(bound), raw[:NONCE_BYTES], raw[NONCE_BYTES:], bound)
        except (Forged, binascii.Error, ValueError) as error:
            raise BadInput(
                "This cursor does not belong to this list. Start again without a cursor."
            ) from error
        position: Json = parse_json(text)
        return position

    def _key(self, bound: bytes) -> bytes:
        """A key for each list of each principal, so that no key meets as many nonces as might repeat."""
        return hmac.digest(self._secret(), b"cursor:" + bound, "sha256")


def _bound(principal: Principal, query: Json) -> bytes:
    return dump_json([principal.tenant, principal.name, query]).encode()
