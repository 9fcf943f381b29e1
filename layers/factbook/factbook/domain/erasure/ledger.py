"""The keyed hash by which an erasure is found again after a restore, when nothing else says any more whom it was about.

    selectorHmac = lower-case hex of HMAC-SHA256(key, text)
    text         = the JSON array ["factbook-selector-v1", tenant, kind, id, project], compact, in UTF-8, as RFC 8785
                   writes it; project is "" where the selector has none

A ledger may be kept for years, so this form never changes: another one gets another first member, and is compared beside
this one. The tenant is in it, so that two tenants' hashes of one person have nothing in common.
"""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from factbook.domain.access.erasing import Selector
from factbook.domain.strict_json import dump_json

FORM = "factbook-selector-v1"
CURRENT = "current"
SHORTEST_KEY = 32
"""Bytes: as many as the hash has."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class KeyedHash:
    """A selector's hash, and which of the deployment's keys made it."""

    key_id: str
    hmac: str


@dataclass(frozen=True)
class LedgerKeys:
    """The deployment's secret keys by id. The current one makes hashes, each of the others still finds those it made."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def hash_of(self, tenant: str, selector: Selector) -> KeyedHash:
        """Under the current key."""
        return KeyedHash(self.current, self.under(self.current, tenant, selector))

    def under(self, key_id: str, tenant: str, selector: Selector) -> str:
        """Raises KeyError for a key there is not."""
        return hmac.new(self.keys[key_id], selector_text(tenant, selector), hashlib.sha256).hexdigest()


def selector_text(tenant: str, selector: Selector) -> bytes:
    """The canonical form that is hashed."""
    return dump_json([FORM, tenant, selector.kind, selector.id, selector.project or ""]).encode()


def read_keys(document: Any) -> LedgerKeys:
    """The keys of the JSON document {"current": "<id>", "<id>": "<base64 of 32 bytes or more>", …}.

    Raises ValueError, which never repeats a key.
    """
    if not isinstance(document, dict) or not all(isinstance(each, str) for each in document.values()):
        raise ValueError("The ledger's keys are no JSON object of texts.")
    current = document.get(CURRENT)
    keys = {key_id: _key(key_id, text) for key_id, text in document.items() if key_id != CURRENT}
    if current is None or current not in keys:
        raise ValueError(
            f'The ledger\'s keys name no current one: "{CURRENT}" has to be the id of one of them.'
        )
    return LedgerKeys(current, keys)


def new_keys(key_id: str) -> dict[str, str]:
    """A fresh document with one key."""
    return {CURRENT: key_id, key_id: b64encode(secrets.token_bytes(SHORTEST_KEY)).decode()}


def _key(key_id: str, text: str) -> bytes:
    try:
        key = b64decode(text, validate=True)
    except (NoBase64, ValueError) as error:
        raise ValueError(f"The ledger key {key_id!r} is no base64.") from error
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"The ledger key {key_id!r} has fewer than {SHORTEST_KEY} bytes.")
    return key


class Lookup(Generic[Value]):
    """Values by keyed hash, found in a time that tells nothing of the hashes that are kept.

    A table is searched by a hash of the hash under a key that nobody knows, so no search can be steered towards one; what
    is found is compared in constant time.
    """

    def __init__(self, entries: Iterable[tuple[KeyedHash, Value]]) -> None:
        self._blind = secrets.token_bytes(32)
        self._entries: dict[bytes, list[tuple[str, Value]]] = {}
        self.key_ids: set[str] = set()
        for keyed, value in entries:
            self.key_ids.add(keyed.key_id)
            self._entries.setdefault(self._place(keyed.key_id, keyed.hmac), []).append((keyed.hmac, value))

    def __bool__(self) -> bool:
        return bool(self._entries)

    def find(self, keys: LedgerKeys, tenant: str, selector: Selector) -> list[Value]:
        """Values of the hashes that any key they were made with makes of this selector."""
        found: list[Value] = []
        for key_id in self.key_ids & keys.keys.keys():
            own = keys.under(key_id, tenant, selector)
            kept = self._entries.get(self._place(key_id, own), [])
            found += [value for there, value in kept if hmac.compare_digest(there, own)]
        return found

    def _place(self, key_id: str, hashed: str) -> bytes:
        return hashlib.blake2b(f"{key_id}/{hashed}".encode(), key=self._blind, digest_size=32).digest()
