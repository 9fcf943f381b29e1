"""The ledger of erasures, oldest first: what is kept elsewhere, since a restore sets these records back too."""

from dataclasses import dataclass

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import RequestTooLarge
from factbook.domain.strict_json import Json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import Erasure, ErasureStore

READ_AT_ONCE = 100
PAGE_OVERHEAD = 2_000
"""What an answer has besides its entries: names, and a cursor."""


@dataclass(frozen=True)
class LedgerPage:
    """Some entries, and where the next page goes on; None at the end."""

    data: list[Json]
    following: str | None


def export_ledger(
    store: ErasureStore,
    principal: Principal,
    position: str | None = None,
    limit: int | None = None,
    deadline: Deadline = NEVER,
) -> LedgerPage:
    """At most `limit` entries behind `position`, as many as an answer holds; without a limit the whole ledger.

    Raises PermissionDenied, and RequestTooLarge when the whole is more than an answer holds: who did not ask for pages
    would take the first for all of it.
    """
    require_admin(principal)
    data: list[Json] = []
    room = wire.ANSWER_BYTES - PAGE_OVERHEAD
    while limit is None or len(data) < limit:
        wanted = READ_AT_ONCE if limit is None else min(READ_AT_ONCE, limit - len(data))
        erasures, following = store.page(principal.tenant, position, wanted, oldest_first=True)
        entries = [ledger_entry(erasure) for erasure in erasures]
        room -= sum(wire.value_bytes(entry) + 1 for entry in entries)
        full = room < 0 or (deadline.passed and following is not None)
        if full and limit is None:
            raise RequestTooLarge(
                "The ledger is larger than one answer. Ask for pages, ?limit=100 and then each nextCursor; "
                "factbook erasure export does that."
            )
        if full and data:
            break
        data += entries
        position = following
        if position is None:
            break
    return LedgerPage(data, position)


def ledger_entry(erasure: Erasure) -> Json:
    """One erasure without any name; absent fields are left out."""
    entry = {
        "id": erasure.id,
        "selectorKind": erasure.selector_kind,
        "selectorHmac": erasure.selector_hmac,
        "keyId": erasure.key_id,
        "requestedBy": erasure.requested_by,
        "status": erasure.status,
        "createdAt": erasure.created_at,
        "completedAt": erasure.completed_at,
    }
    return {name: value for name, value in entry.items() if value is not None}
