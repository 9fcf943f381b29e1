"""Single sign-on: who calls with a token of the issuer that this deployment trusts.

The issuer's keys are asked for every ten minutes, and when a token names a key that is not known, at most twice a
minute: rotated keys come in by themselves, and no stream of made-up tokens is passed on to the issuer. When it cannot be
reached, keys that were fetched in the last day go on serving, in new processes too, since all keep them in one place.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from factbook.domain.access.claims import ClaimMap, principal_of, require_access_token
from factbook.domain.access.principals import Principal
from factbook.domain.errors import AuthMissing, FactbookError, StorageUnavailable
from factbook.ports.access.issuers import (
    BadToken,
    Issuer,
    IssuerUnavailable,
    KeySet,
    KnownKeys,
    PublicKey,
    Signatures,
)

FRESH_SECONDS = 600.0
ASK_AGAIN_SECONDS = 30.0
KEPT_SECONDS = 24 * 3600.0
LONGEST_TOKEN = 8192
"""Characters; a gateway takes some 10 KB of headers in all."""


@dataclass
class SignOn:
    """One process's view of the issuer. `now` gives epoch seconds."""

    issuer: str
    audience: str
    claims: ClaimMap
    published: Issuer
    known: KnownKeys
    signatures: Signatures
    now: Callable[[], float]
    report: Callable[[Exception], None] = lambda _: None
    """Hears why keys could not be fetched or kept."""
    _keys: KeySet | None = None
    _asked_at: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def principal(self, token: str) -> Principal:
        """Raises AuthMissing, AuthExpired; StorageUnavailable when no keys are known and the issuer cannot be asked."""
        if len(token) > LONGEST_TOKEN:
            raise AuthMissing("This token is longer than any this service takes.")
        try:
            header = self.signatures.header(token)
            claims = self.signatures.verified(token, self._key(header.get("kid")))
        except BadToken as error:
            raise AuthMissing(f"This token does not hold: {error}. Sign in again.") from error
        require_access_token(header, claims, self.issuer, self.audience, self.now())
        return principal_of(claims, self.claims)

    def _key(self, name: object) -> PublicKey:
        with self._lock:
            keys = self._current()
            found = _named(keys, name)
            if found is None and self._may_ask():
                found = _named(self._fetched() or keys, name)
        if found is None:
            raise BadToken("it is signed with a key that the issuer does not publish")
        return found

    def _current(self) -> KeySet:
        """Fresh keys, else those that were fetched within a day."""
        if self._keys is None:
            self._keys = self._remembered()
        age = float("inf") if self._keys is None else self.now() - self._keys.fetched_at
        if age >= FRESH_SECONDS and self._may_ask() and self._fetched():
            age = 0.0
        if self._keys is None or age >= KEPT_SECONDS:
            raise StorageUnavailable("The sign-in service does not answer. Try again in a minute.")
        return self._keys

    def _may_ask(self) -> bool:
        return self.now() - self._asked_at >= ASK_AGAIN_SECONDS

    def _fetched(self) -> KeySet | None:
        """The keys as the issuer has them now; None when it does not say."""
        self._asked_at = self.now()
        try:
            found = KeySet(self.published.published(), self.now())
        except IssuerUnavailable as error:
            self.report(error)
            return None
        self._keys = found
        try:
            self.known.keep_key_set(self.issuer, found)
        except FactbookError as error:  # this process knows them all the same
            self.report(error)
        return found

    def _remembered(self) -> KeySet | None:
        try:
            return self.known.key_set(self.issuer)
        except FactbookError as error:
            self.report(error)
            return None


def _named(keys: KeySet, name: object) -> PublicKey | None:
    """The key of that name; a token that names none is taken for the issuer's only one."""
    usable = [key for key in keys.keys if key.get("use", "sig") == "sig"]
    if name is None:
        return usable[0] if len(usable) == 1 else None
    return next((key for key in usable if key.get("kid") == name), None)
