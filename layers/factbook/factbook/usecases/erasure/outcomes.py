"""What becomes of each erasure of a ledger that is replayed, and the record that tells it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from factbook.domain.erasure.ledger import LedgerKeys
from factbook.ports.erasure.records import REPLAY, Erasure, ErasureStore
from factbook.ports.erasure.replays import LedgerEntry, Replay
from factbook.usecases.erasure.ledger import Ledger

PAGE = 100

LOOKING = "replay-looking: the tenant is still being searched for what this erasure reached"
"""A warning of a record for as long as the walk goes on."""

Reason = Literal[
    "no-keyed-hash",
    "unknown-key",
    "another-erasure",
    "failed",
    "legal-hold",
    "nothing-matched",
    "unreadable",
    "still-looking",
]
REASONS: dict[Reason, str] = {
    "no-keyed-hash": "The ledger has no keyed hash for it, so nobody can tell whom it was about. Ask for the erasure anew.",
    "unknown-key": "This deployment has not the ledger key that made its hash. Add the key (docs/erasure.md), then replay again.",
    "another-erasure": "The record of this id is of another erasure than the ledger tells of: it was about somebody else, or "
    "asked for at another time. Replay the ledger as it was exported.",
    "failed": "It had failed, so it is not known what it erased. Ask for the erasure anew.",
    "legal-hold": "Something it reaches is under legal hold. Release that, then resume the erasure.",
    "nothing-matched": "Nothing in this tenant matches it that began before it was asked for.",
    "unreadable": "Nothing that can be read matches it, but some facts of the tenant cannot be read. Mend or remove them, then "
    "replay again.",
    "still-looking": "The tenant is larger than one request walks. The service goes on by itself; the erasure's record says "
    "when it is done, and whether something was found.",
}


@dataclass
class Outcome:
    """What became of each erasure of a ledger, as far as it is known. One that was put back may be unmatched as well."""

    replayed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    unmatched: list[tuple[str, Reason]] = field(default_factory=list)


def outcome_of(store: ErasureStore, ledger: Ledger, replay: Replay) -> Outcome:
    """What became of each of its erasures, as far as it is known."""
    keys = ledger.keys(key_ids(replay.entries))
    outcome = Outcome()
    for start in range(0, len(replay.entries), PAGE):
        entries = replay.entries[start : start + PAGE]
        records = store.several(replay.tenant, [entry.id for entry in entries])
        for entry in entries:
            _tell(outcome, replay, entry, records.get(entry.id), refusal_of(entry, keys))
    return outcome


def _tell(
    outcome: Outcome, replay: Replay, entry: LedgerEntry, record: Erasure | None, refusal: Reason | None
) -> None:
    reason = refusal
    if reason is None and record is not None and not tells_of(entry, record):
        reason = "another-erasure"
    elif reason is None and record is not None and _is_gone_through(record, replay):
        if record.last_error != "legal-hold":
            outcome.replayed.append(entry.id)
            return
        reason = "legal-hold"
    elif reason is None:
        found_nothing: Reason = "unreadable" if replay.unreadable else "nothing-matched"
        reason = found_nothing if replay.ended else "still-looking"
        if record is not None and record.made_by == mark_of(replay):
            outcome.restored.append(entry.id)
    outcome.unmatched.append((entry.id, reason))


def tells_of(entry: LedgerEntry, record: Erasure) -> bool:
    """Whether the record is of the erasure that a ledger tells of: what is stated of it is about whom it was asked for."""
    if (entry.selector_kind, entry.created_at) != (record.selector_kind, record.created_at):
        return False
    return not record.matchable or (entry.selector_hmac, entry.key_id) == (
        record.selector_hmac,
        record.key_id,
    )


def goes_again(record: Erasure, replay: Replay) -> bool:
    """Whether the record's erasure has been run again, or has begun again, for this replay."""
    again = record.replayed_at is not None and record.replayed_at >= replay.asked_at
    return again or record.resumed_by == mark_of(replay)


def under_way(record: Erasure) -> bool:
    return record.selector is not None and not record.ended


def _is_gone_through(record: Erasure, replay: Replay) -> bool:
    """Whether what the erasure reaches is being erased behind all that the restore brought back."""
    return goes_again(record, replay) or (replay.ended and under_way(record))


def refusal_of(entry: LedgerEntry, keys: LedgerKeys) -> Reason | None:
    """Why nothing can be looked for, if so."""
    if entry.status == "failed":
        return "failed"
    if entry.selector_hmac is None or entry.key_id is None:
        return "no-keyed-hash"
    return None if entry.key_id in keys.keys else "unknown-key"


def key_ids(entries: Sequence[LedgerEntry]) -> set[str]:
    return {entry.key_id for entry in entries if entry.key_id is not None}


def mark_of(replay: Replay) -> str:
    """Names it in the records that it made, and that it had begin again."""
    return REPLAY + replay.id


def record_of(tenant: str, replay: Replay, entry: LedgerEntry, refusal: Reason | None) -> Erasure:
    """The record of an erasure that a restore lost, as the ledger tells it; one that nothing can be looked for has ended."""
    record = Erasure(
        id=entry.id,
        tenant=tenant,
        selector_kind=entry.selector_kind,
        selector=None,
        requested_by=entry.requested_by,
        created_at=entry.created_at,
        status="running",
        warnings=(LOOKING,),
        selector_hmac=entry.selector_hmac,
        key_id=entry.key_id,
        made_by=mark_of(replay),
        replayed_by=replay.asked_by,
    )
    return record if refusal is None else ended(record, entry, refusal)


def ended(record: Erasure, entry: LedgerEntry, reason: Reason, now: str | None = None) -> Erasure:
    """An erasure that is not run again, whatever the reason: as done as the ledger says that it was."""
    done = entry.status == "completed" or reason == "nothing-matched"
    return replace(
        record,
        status="completed" if done else "failed",
        phase="done",
        completed_at=entry.completed_at or now,
        last_error=None if done else reason,
        warnings=(f"{reason}: {REASONS[reason]}",),
    )
