"""What an erasure leaves: its receipt, the ledger, and the replay of one after a restore."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from factbook.api.app import Answer, App, Call
from factbook.api.log.models import LeafAnswer, StoredEntryAnswer
from factbook.api.models import Limit
from factbook.api.pages import page_json
from factbook.domain import errors as e
from factbook.domain.access.erasing import SelectorKind
from factbook.domain.access.rules import require_admin
from factbook.domain.fields import CamelModel, Id, Instant
from factbook.domain.strict_json import Json
from factbook.ports.erasure.records import Status
from factbook.ports.erasure.replays import LedgerEntry, Replay
from factbook.usecases.erasure.exporting import export_ledger
from factbook.usecases.erasure.outcomes import REASONS, Outcome
from factbook.usecases.erasure.receipts import receipt_of
from factbook.usecases.erasure.replaying import replay_ledger

MOST_ENTRIES = 10_000
ErasureId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class ProofOfStatement(CamelModel):
    """`following`: the entries up to the run's next checkpointed head; that head's leaf; its way to the checkpoint's root."""

    following: list[StoredEntryAnswer]
    leaf: LeafAnswer
    inclusion: list[str]


class ReceiptAnswer(CamelModel):
    """`checkpoint` is a signed note. `vkey` is the key it names: get the key you trust from your operator, not from here."""

    format: Literal["factbook-receipt-v1"]
    erasure_id: str
    entry: StoredEntryAnswer
    proof: ProofOfStatement
    checkpoint: str
    vkey: str


class LedgerItem(CamelModel):
    """One erasure without a name. `selectorHmac` is the keyed hash of whom it was about, made with the key `keyId`."""

    id: ErasureId
    selector_kind: SelectorKind
    selector_hmac: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None
    key_id: Id | None = None
    requested_by: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    status: Status
    created_at: Instant
    completed_at: Instant | None = None

    def entry(self) -> LedgerEntry:
        return LedgerEntry(**self.model_dump())


class LedgerQuery(CamelModel):
    """Without either: the whole ledger, if it fits an answer."""

    limit: Limit | None = None
    cursor: str | None = None


class LedgerPage(CamelModel):
    data: list[LedgerItem]
    has_more: bool
    next_cursor: str | None = None


class ReplayLedger(CamelModel):
    """`erasures`: as exported, up to 10,000."""

    erasures: Annotated[list[LedgerItem], Field(max_length=MOST_ENTRIES)]


class Unmatched(CamelModel):
    """`reason` is a code, `message` says it in words."""

    id: str
    reason: str
    message: str


class ReplayAnswer(CamelModel):
    """`replayed`: found again, and erased again. `restored`: put back into the records, and nothing is there of them."""

    replayed: list[str]
    restored: list[str]
    unmatched: list[Unmatched]


def add_ledger(app: App) -> None:
    """Register these routes with the function that serves erasures."""
    app.route(
        "GET /v1/memory/erasures/{id}/receipt",
        "The receipt of an erasure, to be verified offline",
        answer=ReceiptAnswer,
        refusals=(e.NotFound, e.PermissionDenied, e.ReceiptPending, e.LogChanged),
    )(get_receipt)
    app.route(
        "GET /v1/memory/erasures/export",
        "The ledger of erasures, oldest first",
        query=LedgerQuery,
        answer=LedgerPage,
        refusals=(e.PermissionDenied,),
    )(get_ledger)
    app.route(
        "POST /v1/memory/erasures/replay",
        "Erase again what a restore brought back",
        body=ReplayLedger,
        answer=ReplayAnswer,
        idempotent=True,
        refusals=(e.PermissionDenied, e.ValidationFailed, e.IdempotencyMismatch),
    )(post_replay)


def get_receipt(call: Call) -> Answer:
    require_admin(call.principal)
    services = call.services.erasures
    erasure = services.records.erasure(call.principal.tenant, call.path["id"])
    if erasure is None:
        raise e.NotFound("There is no such erasure. List the erasures for those there are.")
    return Answer(200, receipt_of(services.receipts, erasure))


def get_ledger(call: Call) -> Answer:
    asked = call.query(LedgerQuery)
    identity: Json = {"ledger": "erasures"}
    position = call.position(identity, asked.cursor)
    at = None if position is None else str(position["at"])
    limit = MOST_ENTRIES if asked.limit is None and at is not None else asked.limit
    page = export_ledger(call.services.erasures.records, call.principal, at, limit, call.deadline)
    following = None if page.following is None else {"at": page.following}
    return Answer(200, page_json(page.data, call.cursor(identity, following)))


def post_replay(call: Call) -> Answer:
    body = call.body(ReplayLedger)
    require_admin(call.principal)
    ports = call.services.erasures.replaying
    entries = {item.id: item.entry() for item in body.erasures}  # of one that is there twice the last
    tenant, by, now = call.principal.tenant, call.principal.name, ports.clock.now()
    replay = Replay(tenant, call.operation.key, now, tuple(entries.values()), asked_by=by)
    return Answer(200, _outcome(replay_ledger(ports, replay, call.deadline)))


def _outcome(outcome: Outcome) -> Json:
    return {
        "replayed": outcome.replayed,
        "restored": outcome.restored,
        "unmatched": [
            {"id": erasure, "reason": reason, "message": REASONS[reason]}
            for erasure, reason in outcome.unmatched
        ],
    }
