"""An OpenID Connect issuer: the keys that it publishes, and the tokens that it signs with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PublicKey = Mapping[str, Any]
"""A JSON Web Key."""


class IssuerUnavailable(Exception):
    """The issuer does not say which keys it has, or says it in a form that nobody can use."""


class BadToken(Exception):
    """What was sent is no token of this issuer; the message says why, without any of it."""


@dataclass(frozen=True)
class KeySet:
    """The keys as the issuer published them; `fetched_at` in epoch seconds."""

    keys: Sequence[PublicKey]
    fetched_at: float


class Issuer(Protocol):
    def published(self) -> Sequence[PublicKey]:
        """The keys that the issuer has now, within a few seconds. Raises IssuerUnavailable."""
        ...


class KnownKeys(Protocol):
    """What all processes of the deployment remember, so that a new one does not need the issuer."""

    def key_set(self, issuer: str) -> KeySet | None: ...

    def keep_key_set(self, issuer: str, found: KeySet) -> None: ...


class Signatures(Protocol):
    def header(self, token: str) -> Mapping[str, Any]:
        """The header of a signed token, which nothing vouches for yet. Raises BadToken."""
        ...

    def verified(self, token: str, key: PublicKey) -> Mapping[str, Any]:
        """The claims, when this key signed them by one of the algorithms that the deployment allows. Raises BadToken."""
        ...
