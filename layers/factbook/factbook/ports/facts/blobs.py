"""Large payloads of facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class BlobStore(Protocol):
    def new_ref(self, tenant: str, fact_id: str, name: str) -> str:
        """The `blob://` reference of an object of one fact; a pure function of its arguments."""
        ...

    def put(self, ref: str, body: bytes) -> None:
        """Keep a payload, checksum verified; pending until it is claimed, as an upload is."""
        ...

    def upload_url(self, ref: str, size: int, sha256: str, seconds: int) -> str:
        """A presigned URL that takes one PUT of exactly `size` bytes with that SHA-256 (hex) within so many seconds.

        Where something is already it takes none: what is claimed cannot be made pending again.
        """
        ...

    def upload_headers(self, size: int, sha256: str) -> dict[str, str]:
        """What the PUT to an upload URL must send."""
        ...

    def claim(self, ref: str) -> None:
        """Keep a payload for good: until then the store removes it by itself after two days. Nothing there: no harm."""
        ...

    def unclaim(self, ref: str) -> None:
        """Make a payload pending again, since no fact names it. Nothing there: no harm."""
        ...

    def stat(self, ref: str) -> tuple[int, str] | None:
        """Size in bytes and SHA-256 in hex of a kept payload, "" of an object that somebody else put there; None when nothing is
        there.
        """
        ...

    def discard(self, ref: str) -> None:
        """Remove a payload, every version of it that the store has kept. Nothing there is no harm, nor is a repetition.

        Raises StorageUnavailable when some of it may be left, whatever the reason.
        """
        ...

    def download_url(self, ref: str, seconds: int) -> str:
        """A presigned URL that serves the payload for so many seconds, 1 or more."""
        ...


@dataclass(frozen=True)
class StoredObject:
    """One version of an object. `name`: the last part of its reference. `stored_at`: to the second at least, never later
    than it was.
    """

    fact_id: str
    name: str
    version: str
    stored_at: str


class BlobWalk(Protocol):
    """Every version of every payload, claimed or pending. Operations may raise Throttled or StorageUnavailable."""

    def of_fact(self, tenant: str, fact_id: str) -> Iterator[StoredObject]:
        """Those of one fact, in whichever life; a page is asked for when its first version is."""
        ...

    def of_tenant(self, tenant: str, after: str | None, limit: int) -> tuple[list[StoredObject], str | None]:
        """At most `limit` (and 1,000) of the tenant's, and where the next ones begin; None when there are no more."""
        ...

    def remove(self, tenant: str, objects: Sequence[StoredObject]) -> None:
        """Remove these versions, at most 1,000. One that is gone is no harm.

        Raises StorageUnavailable when some of them may be left.
        """
        ...


class BlobReader(Protocol):
    def read(self, ref: str) -> bytes | None:
        """A kept payload; None when it is gone. Raises StorageUnavailable."""
        ...
