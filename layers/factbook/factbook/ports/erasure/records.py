"""Erasures as they are kept: one record each, and beside it what says that it is in force and is to be worked on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from factbook.domain.access.erasing import Erasing, Selector, SelectorKind

Status = Literal["pending", "running", "completed", "failed"]
Phase = Literal["seed", "expand", "settle", "erase", "done"]

COUNTED = ("facts", "revisions", "blobs", "uploads", "documents", "messages", "keys", "derived")
"""What a record counts, by store: facts that became tombstones; their revisions (the head among them); object versions of
theirs, and of uploads that no fact names; facts and messages of which the search index holds nothing any more, whether it
did or not; data keys destroyed; facts of others that were derived from what is erased and wait in review now.

Notes of the backlog and dead letters are not counted: they hold ids, and nothing that anybody said.
"""

REPLAY = "replay:"
"""Begins what `made_by` and `resumed_by` say of a replay; then comes its id."""


@dataclass(frozen=True)
class Erasure:
    """One erasure.

    `selector`: what is to be reached, kept until it is completed (a failed one may be resumed). `selector_hmac`, `key_id`:
    by which a later replay finds the same again; None where the deployment has no key for that. `made_by`: a digest of the
    request, so that a replayed creation is recognised; `resumed_by`: of the last request, or the replay, that had it begin
    again. `entry_id`: its entry in the run `_erasures`. `requested_by` of a record that a replay put back is what the ledger
    says, which nobody has signed; `replayed_by` is who handed that in.
    """

    id: str
    tenant: str
    selector_kind: SelectorKind
    selector: Selector | None
    requested_by: str
    created_at: str
    status: Status = "pending"
    phase: Phase = "seed"
    counts: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    last_error: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    replayed_at: str | None = None
    replayed_by: str | None = None
    warnings: tuple[str, ...] = ()
    selector_hmac: str | None = None
    key_id: str | None = None
    entry_id: str | None = None
    made_by: str = ""
    resumed_by: str = ""
    edition: int = 1
    """Grows by one each time the record is kept; `replace` compares it."""

    @property
    def matchable(self) -> bool:
        """Whether a replay can find again what this erasure reached."""
        return self.selector_hmac is not None

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed")


class ErasureStore(Protocol):
    """Every operation may raise Throttled or StorageUnavailable."""

    def create(self, erasure: Erasure, work_from: str) -> Erasure | None:
        """Keep the record and its place in the list, put it in force and among what is to be worked on (from the instant
        `work_from` on), all in one transaction; the record that has the id already, if one has.
        """
        ...

    def erasure(self, tenant: str, erasure_id: str) -> Erasure | None:
        """Strongly consistent."""
        ...

    def several(self, tenant: str, ids: Sequence[str]) -> dict[str, Erasure]:
        """Those of these records that are there, at most 100; strongly consistent."""
        ...

    def put_back(self, erasures: Sequence[Erasure]) -> None:
        """Keep these records of one tenant, each with its place in the list, where there is none of that id; at most 50.

        None of them is in force, or to be worked on.
        """
        ...

    def page(
        self, tenant: str, position: str | None, limit: int, *, oldest_first: bool = False
    ) -> tuple[list[Erasure], str | None]:
        """Records by when they were asked for, newest first or oldest first, and where the next page goes on."""
        ...

    def in_force(self, tenant: str) -> Erasing:
        """The tenant's erasures that are in force; strongly consistent."""
        ...

    def replace(self, erasure: Erasure) -> bool:
        """Keep a later state of the record; False when it is not the one before (by `edition`) any more.

        One that has ended is no more in force and nothing to be worked on, in the same transaction.
        """
        ...

    def put_in_force(self, erasure: Erasure, work_from: str) -> bool:
        """Keep a later state of the record, or one where there is none, in force and to be worked on from the instant
        `work_from` on; False when it is not the one before (by `edition`) any more. Safe to repeat.
        """
        ...

    def withdraw(self, erasure: Erasure) -> bool:
        """Remove it and every trace, if nobody has kept a later state of it; whether it is gone."""
        ...

    def work(self, now: str, after: str | None, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        """Tenant and id of each erasure that is to be worked on by `now`, of the next `limit` that are not ended, and where
        the others begin; None behind the last.
        """
        ...

    def take(self, tenant: str, erasure_id: str, now: str, until: str) -> bool:
        """Take it to work on until the instant `until`; False when it has ended, or is not to be worked on by `now`."""
        ...

    def put_off(self, tenant: str, erasure_id: str, until: str) -> None:
        """It is to be worked on from the instant `until` on; nothing when it has ended."""
        ...
