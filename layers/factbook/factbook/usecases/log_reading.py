"""Read the log: a run, one entry by its id, a conversation's messages across runs. What may not be read is not found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..domain.access import can_read
from ..domain.chain import read_log_id
from ..domain.entries import LogEntry
from ..domain.errors import NotFound
from ..domain.principals import Principal
from ..log_ports import LogStore, StoredEntry, TreeStore
from ..ports import Json
from .log_entries import open_entry, scope_of
from .sealing import Vault

MAX_ROUNDS = 4
"""Pages of a thread read for one answer when most of it is not the caller's to read."""


@dataclass(frozen=True)
class Page:
    """Some entries, and where the next page starts; None at the end."""

    data: list[Json]
    following: Json | None


def read_run(
    store: LogStore,
    present: Callable[[list[StoredEntry]], list[Json]],
    principal: Principal,
    run_id: str,
    since: int,
    limit: int,
) -> Page:
    """Entries of a run with sequence ≥ `since`, as `present` shows them. Raises NotFound."""
    require_readable_run(store, principal, run_id)
    found, more = store.entries(principal.tenant, run_id, since, limit)
    return Page(present(found), {"since": found[-1].sequence + 1} if more else None)


def require_readable_run(store: LogStore, principal: Principal, run_id: str) -> None:
    """Raises NotFound unless the run is there and its scope is the caller's to read."""
    first = store.entry(principal.tenant, run_id, 0) or next(
        iter(store.entries(principal.tenant, run_id, 0, 1)[0]), None
    )
    if first is None or not can_read(principal, scope_of(first)):
        raise NotFound("No such run, or not one you may read. Check the run id and your token.")


def opened(vault: Vault) -> Callable[[Iterable[StoredEntry]], list[Json]]:
    """Entries as the API shows them: checked against their hashes, payloads opened."""

    def present(entries: Iterable[StoredEntry]) -> list[Json]:
        return [open_entry(vault, entry).to_json() for entry in entries]

    return present


def as_stored(tree: TreeStore) -> Callable[[list[StoredEntry]], list[Json]]:
    """Entries as they stand in the store, whatever that is, with the leaves that commit to them."""

    def present(entries: list[StoredEntry]) -> list[Json]:
        if not entries:
            return []
        first, last = entries[0], entries[-1]
        found = tree.run_leaves(
            first.tenant, first.run_id, first.sequence, last.sequence - first.sequence + 1
        )
        leaves = {
            leaf.sequence: {"index": leaf.index, "head": leaf.head, "salt": leaf.salt} for leaf in found
        }
        return [
            stored_form(entry) | ({"leaf": leaves[entry.sequence]} if entry.sequence in leaves else {})
            for entry in entries
        ]

    return present


def stored_form(entry: StoredEntry) -> Json:
    """An entry's authority: the canonical text, and what is kept beside it."""
    form: Json = {
        "sequence": entry.sequence,
        "format": entry.format,
        "entryHash": entry.entry_hash,
        "canonical": entry.text,
    }
    return form if entry.cause is None else form | {"causedByLogId": entry.cause}


def find_entry(store: LogStore, vault: Vault, principal: Principal, log_id: str) -> LogEntry | None:
    """The entry with this id, None when there is none or none this caller may read."""
    where = read_log_id(log_id)
    if where is None:
        return None
    entry = store.entry(principal.tenant, where.run_id, where.sequence)
    if entry is None or not can_read(principal, scope_of(entry)):
        return None
    answer = open_entry(vault, entry)
    return answer if answer.id == log_id else None


def read_entry(store: LogStore, vault: Vault, principal: Principal, log_id: str) -> LogEntry:
    """Raises NotFound."""
    entry = find_entry(store, vault, principal, log_id)
    if entry is None:
        raise NotFound("No such log entry, or not one you may read. Check the id and your token.")
    return entry


def read_thread(
    store: LogStore,
    vault: Vault,
    principal: Principal,
    thread: str,
    wanted: dict[str, str],
    position: str,
    limit: int,
    *,
    newest_first: bool,
) -> Page:
    """Messages of a conversation in the order of their timestamps; `wanted` narrows by scope keys."""
    data: list[Json] = []
    more = True
    for _ in range(MAX_ROUNDS):
        page, more = store.thread(
            principal.tenant, thread, position, limit - len(data), newest_first=newest_first
        )
        for at, entry in page:
            position = at
            scope = scope_of(entry)
            if can_read(principal, scope) and scope.matches(wanted):
                data.append(open_entry(vault, entry).to_json())
        if not more or len(data) >= limit:
            break
    return Page(data, {"at": position} if more else None)
