"""Ledgers of erasures that are to be replayed in a tenant, as they are kept while its facts are walked."""

from dataclasses import dataclass
from typing import Protocol

from factbook.domain.access.erasing import SelectorKind
from factbook.ports.erasure.records import Status


@dataclass(frozen=True)
class LedgerEntry:
    """One erasure as a ledger tells it."""

    id: str
    selector_kind: SelectorKind
    requested_by: str
    status: Status
    created_at: str
    completed_at: str | None = None
    selector_hmac: str | None = None
    key_id: str | None = None


@dataclass(frozen=True)
class Replay:
    """A ledger that was handed in. `ended`: everything that it could match has been looked at. `asked_by`: the principal's
    name; one that was kept by a former release does not say it. `unreadable`: how many facts could not be looked at.
    """

    tenant: str
    id: str
    asked_at: str
    entries: tuple[LedgerEntry, ...]
    ended: bool = False
    asked_by: str | None = None
    unreadable: int = 0


class ReplayStore(Protocol):
    """Every operation may raise Throttled or StorageUnavailable."""

    def keep(self, replay: Replay) -> None:
        """Keep it for a week, among those that wait in its tenant. The same again changes nothing."""
        ...

    def replay(self, tenant: str, replay_id: str) -> Replay | None: ...

    def waiting(self, tenant: str) -> list[str]:
        """Ids of the tenant's replays that have not ended, the first that was asked for first."""
        ...

    def end(self, replay: Replay) -> None:
        """It waits no more, and what it says of `unreadable` facts is kept. Safe to repeat."""
        ...

    def tenants(self, after: str | None, limit: int) -> tuple[list[str], str | None]:
        """The next `limit` tenants in which a replay waits, each once, and where the others begin; None behind the last."""
        ...
