"""Signatures of JSON Web Tokens, by joserfc: by asymmetric algorithms alone, and only by those that are allowed."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from joserfc import jws
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import import_key

from factbook.domain.access.issuers import ASYMMETRIC
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.access.issuers import BadToken, PublicKey

REFUSALS = (JoseError, ValueError, TypeError, LookupError, UnsupportedAlgorithm)
"""How the library refuses a token or a key."""


class JoseSignatures:
    """Signatures by some of the ASYMMETRIC algorithms."""

    def __init__(self, algorithms: frozenset[str]) -> None:
        # Headers that an issuer adds are none of our business; which algorithm it may be, is.
        self._algorithms = sorted(algorithms & ASYMMETRIC)
        self._registry = jws.JWSRegistry(algorithms=self._algorithms, strict_check_header=False)

    def header(self, token: str) -> Mapping[str, Any]:
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken("it is no signed token")
        return _object(_decoded(parts[0]))

    def verified(self, token: str, key: PublicKey) -> Mapping[str, Any]:
        try:
            found = self._opened(token, key)
        except REFUSALS as error:
            # Whoever calls chooses by its name which key it is, so a published one that is odd is a token that does not hold.
            raise BadToken(f"its signature is refused ({type(error).__name__})") from error
        return _object(found.payload)

    def takes(self, key: PublicKey) -> bool:
        """Whether a token may be signed with this key: one that is not, by an allowed algorithm, fails by its signature alone."""
        for algorithm in self._algorithms:
            head = base64.urlsafe_b64encode(b'{"alg":"%b"}' % algorithm.encode()).decode().rstrip("=")
            try:
                self._opened(f"{head}.e30.AAAA", key)
            except BadSignatureError:
                return True
            except REFUSALS:
                continue
        return False

    def _opened(self, token: str, key: PublicKey) -> jws.CompactSignature:
        public = {name: value for name, value in key.items() if name != "d"}
        # What the key says it is for is checked by the library: its type, its algorithm, its operations.
        return jws.deserialize_compact(token, import_key(public), registry=self._registry)


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadToken("it is no signed token") from error


def _object(raw: bytes) -> Mapping[str, Any]:
    """Parsed strictly: of a name that is there twice, two readers would believe different values."""
    try:
        value = parse_json(raw.decode())
    except (BadInput, ValueError) as error:
        raise BadToken("it holds no JSON") from error
    if not isinstance(value, dict):
        raise BadToken("it holds no JSON object")
    return value
