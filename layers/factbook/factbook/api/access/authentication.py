"""Authentication: the only place where a tenant and a principal come from."""

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping

from factbook.domain.access.principals import Principal
from factbook.domain.errors import AuthExpired, AuthMissing, AuthRevoked
from factbook.ports.access.stores import TokenStore
from factbook.ports.clock import Clock
from factbook.usecases.caches import TrustedAnswers

TRUST_SECONDS = 30.0
_TOKEN = re.compile(r"fb_([A-Za-z0-9-]{8,64})_([A-Za-z0-9_-]{43})", re.ASCII)
_SIGNED = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
_MISSING = "Send your API token as 'Authorization: Bearer fb_…'."
_MISSHAPEN = "The Authorization header holds no token of the form fb_…. " + _MISSING
_NO_SCHEME = "The token stands without the word Bearer before it. " + _MISSING
_UNKNOWN = "This token is not one of this service. Check it, or ask an administrator for one."
_NO_SIGN_ON = (
    "This service takes no tokens of a sign-in service, and this one is none of its own. " + _MISSING
)


def new_secret() -> str:
    """256 random bits as 43 characters."""
    return secrets.token_urlsafe(32)


def secret_digest(secret: str) -> str:
    """What is kept of a secret: random 256 bits need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_text(token_id: str, secret: str) -> str:
    return f"fb_{token_id}_{secret}"


SignOn = Callable[[str], Principal]
"""Whom a signed token of the trusted issuer makes. Raises AuthMissing, AuthExpired, StorageUnavailable."""


class Authenticator:
    """Turns request headers into a principal; trusts an API token it has seen for at most 30 seconds.

    `sign_on`: takes signed tokens of an issuer, where the deployment trusts one.
    """

    def __init__(
        self,
        tokens: TokenStore,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        sign_on: SignOn | None = None,
    ) -> None:
        self._token = TrustedAnswers(tokens.token, TRUST_SECONDS, monotonic)
        self._clock = clock
        self._sign_on = sign_on

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """Raises AuthMissing, AuthExpired, AuthRevoked; StorageUnavailable when what knows the token does not answer."""
        sent = headers.get("authorization", "").strip()
        scheme, _, credential = sent.partition(" ")
        credential = credential.strip() if scheme.lower() == "bearer" else ""
        if _SIGNED.fullmatch(credential):
            if self._sign_on is None:
                raise AuthMissing(_NO_SIGN_ON)
            return self._sign_on(credential)
        match = _TOKEN.fullmatch(credential)
        if match is None:
            raise AuthMissing(_misshapen(sent))
        token_id, secret = match.groups()
        token = self._token(token_id)
        if token is None or not hmac.compare_digest(secret_digest(secret), token.secret_sha256):
            raise AuthMissing(_UNKNOWN)
        if token.revoked_at is not None:
            raise AuthRevoked("This token was revoked. Ask an administrator for a new one.")
        if token.expires_at is not None and token.expires_at <= self._clock.now():
            raise AuthExpired("This token has expired. Ask an administrator for a new one.")
        return token.principal


def _misshapen(sent: str) -> str:
    """What is wrong with a header that has no token where one stands; it repeats nothing of it."""
    if not sent:
        return _MISSING
    scheme = sent.partition(" ")[0].lower()
    return _NO_SCHEME if scheme != "bearer" and _TOKEN.search(sent) else _MISSHAPEN


def derived_token_id(operation_key: str) -> str:
    """The id of the token an operation creates, so that a replay meets it."""
    digest = hashlib.sha256(b"token:" + operation_key.encode()).digest()[:15]
    return base64.b32encode(digest).decode().lower()
