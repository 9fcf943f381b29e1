"""State what an erasure did: an entry of the tenant's run `_erasures`, plain, once, and a checkpoint that signs for it.

The statement says of the person no more than a keyed hash. Nothing of it is new to whoever may read the record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from factbook.domain import times
from factbook.domain.own_runs import ERASURES_RUN
from factbook.domain.strict_json import Json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import REPLAY, Erasure
from factbook.ports.log.checkpoints import CheckpointRequests, TreeStore
from factbook.usecases.log.appending import LogWriter, Request
from factbook.usecases.log.own_runs import append_once

FORM = "factbook-erasure-v1"
"""What names this form of a statement; it never changes its meaning (`factbook.verify.statement` reads it)."""

STREAM_HOURS, BACKUP_DAYS = 24.0, 7.0
"""How long the tables' streams keep images of what was removed, and how far back the tables of facts and of keys can be
restored (template.yaml)."""

NOT_CLAIMED = (
    "stream-records",
    "backups",
    "exports",
    "plain-entries",
    "late-uploads",
    "expired-facts",
    "ids",
)
OF_A_SEARCH_DOMAIN = ("search-segments", "search-snapshots")
"""What a search domain keeps for a while of documents that were removed from it."""

MOST_WARNINGS, LONGEST_WARNING = 10, 300

SIGNING_SECONDS = 20.0
"""What must be left of an invocation to wait for a checkpoint (`wiring.clients` has what a call of a function takes)."""

MOST_UNSIGNED = 200
"""Statements behind the last signed one: a receipt carries those between its own and the next checkpointed head."""


@dataclass(frozen=True)
class StatingPorts:
    log: LogWriter
    tree: TreeStore
    checkpoints: CheckpointRequests
    searched: bool = False
    """Whether documents were in a search domain."""


@dataclass(frozen=True)
class Stated:
    """The entry that states an erasure, and when that says that it was completed."""

    entry_id: str
    completed_at: str


def state_erasure(
    ports: StatingPorts, erasure: Erasure, completed_at: str, deadline: Deadline = NEVER
) -> Stated:
    """State an erasure whose last copy outside streams and backups is gone since `completed_at`, and have it signed for.

    To be called again until it succeeds: the entry of the first call stays, and every call answers that one. An erasure that
    is replayed is stated anew. Where no checkpoint can be made now, the next minute's signs. Raises LogChanged, Throttled,
    StorageUnavailable.
    """
    _sign_what_waits(ports, erasure.tenant)
    payload = statement_of(erasure, completed_at, searched=ports.searched)
    # Of one that a ledger brought back nobody knows who asked for it: the entry is by who replayed that.
    request = Request("event-emitted", payload, erasure.replayed_by or erasure.requested_by)
    began = erasure.replayed_at or erasure.created_at
    operation = f"erasure/{erasure.id}/{began}"
    if erasure.resumed_by.startswith(
        REPLAY
    ):  # it had gone through, maybe stated so, before a restore brought something back
        operation += f"/{erasure.resumed_by}"
    entry = append_once(ports.log, erasure.tenant, ERASURES_RUN, request, operation, began, deadline)
    if deadline.left > SIGNING_SECONDS:
        _sign(ports, erasure.tenant)
    return Stated(entry.id, str(entry.payload["completedAt"]))


def statement_of(erasure: Erasure, completed_at: str, *, searched: bool) -> Json:
    """The payload of the entry; what the record does not have is left out."""
    not_claimed: Sequence[str] = NOT_CLAIMED + (OF_A_SEARCH_DOMAIN if searched else ())
    said = {
        "statement": FORM,
        "erasureId": erasure.id,
        "selectorKind": erasure.selector_kind,
        "selectorHmac": erasure.selector_hmac,
        "keyId": erasure.key_id,
        "requestedBy": erasure.requested_by,
        "createdAt": erasure.created_at,
        "replayedAt": erasure.replayed_at,
        "replayedBy": erasure.replayed_by,
        "completedAt": completed_at,
        "settledAt": times.add(completed_at, hours=STREAM_HOURS),
        "backupsUntil": times.add(completed_at, days=BACKUP_DAYS),
        "counts": dict(erasure.counts),
        "notClaimed": list(not_claimed),
        "warnings": [each[:LONGEST_WARNING] for each in erasure.warnings[:MOST_WARNINGS]],
    }
    return {name: value for name, value in said.items() if value is not None}


def _sign_what_waits(ports: StatingPorts, tenant: str) -> None:
    newest = next(iter(ports.log.store.newest(tenant, ERASURES_RUN, 1)), None)
    if newest is None:
        return
    leaf = ports.tree.last_leaf(tenant, ERASURES_RUN)
    if newest.sequence - (leaf.sequence if leaf else -1) >= MOST_UNSIGNED:
        _sign(ports, tenant)


def _sign(ports: StatingPorts, tenant: str) -> None:
    """Ask for the checkpoint that makes a receipt of a statement; who cannot make one now does not stop an erasure."""
    try:
        ports.checkpoints.make(tenant, [ERASURES_RUN])
    except Exception:  # noqa: BLE001 - whatever keeps one from being made: what is stated is signed for next minute
        return
