"""Seal and open payloads, and destroy the keys that open them."""

import base64
import binascii
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.errors import ErasureInProgress
from factbook.domain.log.sealing import Envelope, KeyName, key_name, padded, read_envelope
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json
from factbook.domain.times import format_instant
from factbook.ports.cipher import Cipher, Forged
from factbook.ports.log.sealing import KeyStore, KeyWrapper, SealedKey
from factbook.usecases.caches import RecentValues

CACHE_SECONDS = 60.0
CACHED_KEYS = 4096


@dataclass(frozen=True)
class Opened:
    """A payload's JSON text, or when the erasure was asked for that destroys its key, or that its key is kept elsewhere."""

    text: str | None
    erased_at: str | None = None
    sealed: bool = False


@dataclass(frozen=True)
class _Held:
    """A key in memory until an instant of the monotonic clock: a minute after its reading began.

    `plain` is empty for a tombstone, and for one that is kept elsewhere.
    """

    key: SealedKey
    plain: bytes
    until: float


def _now() -> str:
    return format_instant(datetime.now(UTC))


class Vault:
    """The data keys of this process: unwrapped at first use, forgotten after a minute, so an erasure waits that long."""

    def __init__(
        self,
        keys: KeyStore,
        wrapper: KeyWrapper,
        cipher: Cipher,
        elapsed: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = _now,
        erasing: Callable[[str], Erasing] = lambda _: NOTHING_ERASED,
        seconds: float = CACHE_SECONDS,
    ) -> None:
        """`erasing`: a tenant's erasures in force. What they name is not opened, though its key may still be there.
        `seconds`: how long a key that was read is used.
        """
        self._seconds = seconds
        self._erasing = erasing
        self._keys = keys
        self._wrapper = wrapper
        self._cipher = cipher
        self._elapsed = elapsed
        self._now = now
        self._generations: RecentValues[tuple[str, KeyName, int], _Held] = RecentValues(
            CACHED_KEYS, _until, elapsed
        )
        self._newest: RecentValues[tuple[str, KeyName], _Held] = RecentValues(CACHED_KEYS, _until, elapsed)

    def seal(self, tenant: str, scope: Scope, bound: str, text: str) -> dict[str, Any] | None:
        """The envelope to chain instead of a payload; None when the scope is not sealed. `bound` names its place.

        Raises ErasureInProgress.
        """
        name = key_name(scope)
        if name is None:
            return None
        if self._erasing(tenant).of_scope(scope) is not None:
            raise ErasureInProgress  # nor is a key remembered any more that is about to be destroyed
        held = self._sealing_key(tenant, name)
        nonce, sealed = self._cipher.seal(held.plain, padded(text), bound.encode())
        return Envelope(held.key.generation, _encode(nonce), _encode(sealed)).to_json()

    def open(self, tenant: str, scope: Scope, bound: str, payload: Any) -> Opened:
        """What a chained payload says. Raises Forged for one that was not sealed for this place."""
        name = key_name(scope)
        if name is None or payload is None:
            return Opened(dump_json(payload))
        erased_at = self._erasing(tenant).of_scope(scope)
        if erased_at is not None:
            return Opened(None, erased_at)
        envelope = read_envelope(payload)
        if envelope is None:
            raise Forged
        held = self._opening_key(tenant, name, envelope.generation)
        if held.key.destroyed_at is not None:
            return Opened(None, held.key.destroyed_at)
        if held.key.wrapped is None:
            return Opened(None, sealed=True)
        text = self._cipher.open(held.plain, _decode(envelope.nonce), _decode(envelope.text), bound.encode())
        return Opened(text.decode())

    def destroy(self, tenant: str, selector: KeyName, at: str, begun_before: str | None = None) -> int:
        """Destroy every key an erasure reaches; how many were alive. Safe to repeat.

        `begun_before`: only generations that began before this instant, as what was sealed later is not the erasure's: so
        an erasure of before a restore is replayed. One that does not say when it began is older than any. Other processes may seal and open with a destroyed key for `CACHE_SECONDS` more: an erasure waits that out.
        """
        destroyed = 0
        for key in self._keys.walk(tenant):
            reached = begun_before is None or key.begun_before(begun_before)
            if reached and key.name.covered_by(selector) and key.destroyed_at is None:
                self._keys.destroy(key, at)
                destroyed += 1
        self._generations.drop(lambda found: found[1].covered_by(selector))
        self._newest.drop(lambda found: found[1].covered_by(selector))
        return destroyed

    def _sealing_key(self, tenant: str, name: KeyName) -> _Held:
        held = self._newest.get((tenant, name))
        if held is not None:
            return held
        until = self._elapsed() + self._seconds
        key = self._keys.newest(tenant, name)
        held = (
            self._hold(key, until)
            if key is not None and key.wrapped is not None
            else self._next_generation(tenant, name, key, until)
        )
        self._newest.put((tenant, name), held)
        return held

    def _next_generation(self, tenant: str, name: KeyName, before: SealedKey | None, until: float) -> _Held:
        begun_at = self._now()
        plain, wrapped = self._wrapper.new_key(tenant)
        while True:
            generation = 1 if before is None else before.generation + 1
            fresh = SealedKey(tenant, name, generation, wrapped, begun_at=begun_at)
            there = self._keys.create(fresh)
            if there is None:
                return self._keep(_Held(fresh, plain, until))
            if there.wrapped is not None:  # a parallel twin was first
                return self._hold(there, until)
            before = there

    def _opening_key(self, tenant: str, name: KeyName, generation: int) -> _Held:
        held = self._generations.get((tenant, name, generation))
        if held is not None:
            return held
        until = self._elapsed() + self._seconds
        key = self._keys.generation(tenant, name, generation)
        if key is None:
            raise Forged
        return self._hold(key, until)

    def _hold(self, key: SealedKey, until: float) -> _Held:
        held = self._generations.get((key.tenant, key.name, key.generation))
        if held is not None and held.key == key:
            return held
        plain = b"" if key.wrapped is None else self._wrapper.unwrap(key.tenant, key.wrapped)
        return self._keep(_Held(key, plain, until))

    def _keep(self, held: _Held) -> _Held:
        key = held.key
        self._generations.put((key.tenant, key.name, key.generation), held)
        return held


def _until(held: _Held) -> float:
    return held.until


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Forged from error
