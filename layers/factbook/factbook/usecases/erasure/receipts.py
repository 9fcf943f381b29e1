"""A receipt: what shows to anybody with the public key, offline, that the service stated an erasure."""

from dataclasses import dataclass

from factbook.domain import wire
from factbook.domain.errors import LogChanged, NotFound, ReceiptPending, RequestTooLarge
from factbook.domain.log.chain import LogId, read_log_id
from factbook.domain.own_runs import ERASURES_RUN
from factbook.domain.strict_json import Json
from factbook.ports.erasure.records import Erasure
from factbook.ports.log.checkpoints import TreeStore
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.usecases.log.proofs import BEYOND_ANY_TREE, Prover, leaf_json
from factbook.usecases.log.reading import stored_form

FORMAT = "factbook-receipt-v1"
MOST_BYTES = 4_000_000
"""Of entries that are read for one receipt: more than an answer has room for."""

WORKING_SECONDS, SIGNING_SECONDS = 30, 5
"""When to ask again: while the erasure goes on, and once it is stated and waits for a checkpoint."""


@dataclass(frozen=True)
class ReceiptPorts:
    log: LogStore
    tree: TreeStore


def receipt_of(ports: ReceiptPorts, erasure: Erasure) -> Json:
    """The receipt of an erasure, as `factbook.verify.receipt` judges it.

    Raises ReceiptPending before its checkpoint, NotFound for an erasure that failed, LogChanged when the log is not as it
    was written, RequestTooLarge when the proof is larger than an answer.
    """
    place = _place(erasure)
    leaf = next(iter(ports.tree.run_leaves(erasure.tenant, ERASURES_RUN, place.sequence, 1)), None)
    note = next(iter(ports.tree.notes(erasure.tenant, BEYOND_ANY_TREE, 1)), None)
    if leaf is None or note is None or leaf.index >= note.size:
        raise ReceiptPending(
            "The erasure is stated, and no checkpoint signs for that yet. Ask again after the seconds in Retry-After.",
            SIGNING_SECONDS,
        )
    stated, *following = _entries(ports.log, erasure.tenant, place, leaf.sequence)
    inclusion = Prover(ports.tree, erasure.tenant, note.size).inclusion(leaf.index)
    receipt: Json = {
        "format": FORMAT,
        "erasureId": erasure.id,
        "entry": stored_form(stated),
        "proof": {
            "following": [stored_form(entry) for entry in following],
            "leaf": leaf_json(leaf),
            "inclusion": inclusion,
        },
        "checkpoint": note.note,
        "vkey": note.vkey,
    }
    if wire.value_bytes(receipt) > wire.ANSWER_BYTES:
        raise _too_large()
    return receipt


def _place(erasure: Erasure) -> LogId:
    if erasure.status == "failed":
        raise NotFound(
            "The erasure has failed, so nothing is stated of it. Resume it, or ask for another one."
        )
    if erasure.status == "completed" and erasure.entry_id is None:
        raise NotFound(
            "The record was put back by a replay that found nothing of it, so nothing was stated here. What was stated "
            "before the restore stands in the run _erasures of the log, where that is still there."
        )
    if erasure.status != "completed" or erasure.entry_id is None:
        raise ReceiptPending(
            "The erasure is still being worked on. Ask again after the seconds in Retry-After.",
            WORKING_SECONDS,
        )
    place = read_log_id(erasure.entry_id)
    if place is None:
        raise _changed()
    return place


def _entries(log: LogStore, tenant: str, place: LogId, last: int) -> list[StoredEntry]:
    """The statement and the entries up to the run's next checkpointed head."""
    wanted = last - place.sequence + 1
    found, more = log.entries(tenant, ERASURES_RUN, place.sequence, wanted, MOST_BYTES)
    if more and len(found) < wanted:
        raise _too_large()
    if [entry.sequence for entry in found] != list(range(place.sequence, last + 1)):
        raise _changed()
    return found


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(
        "So many erasures ended between two checkpoints that the proof is larger than an answer. "
        "Export the run _erasures instead (factbook log export --run _erasures) and verify that."
    )


def _changed() -> LogChanged:
    return LogChanged(
        "The run _erasures is not as it was written: someone changed it in the store. Verify it, and compare with an export."
    )
