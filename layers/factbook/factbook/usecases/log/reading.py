"""Read the log: a run, one entry by its id, a conversation's messages across runs. What may not be read is not found."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from factbook.domain import wire
from factbook.domain.access.listing import listing_plan
from factbook.domain.access.principals import Principal
from factbook.domain.errors import LogChanged, NotFound
from factbook.domain.log import gate
from factbook.domain.log.chain import read_log_id
from factbook.domain.log.entries import LogEntry
from factbook.domain.log.runs import Leaf
from factbook.domain.own_runs import is_own_run
from factbook.domain.strict_json import Json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.checkpoints import TreeStore
from factbook.ports.log.entries import LogStore, RunRow, StoredEntry
from factbook.usecases.log.entries import open_entry, scope_of
from factbook.usecases.log.sealing import Vault
from factbook.usecases.log.threads import thread_pages
from factbook.usecases.merging import NEWEST, Source, newest

LEAVES_AT_ONCE = 200
"""Of a part of a run, each with its proof: half a megabyte."""

LEAF_BYTES = 3_000
"""What a leaf with its proof takes of an answer at most: 2 × 40 hashes, an id of 256 characters."""

ROWS = 1000
"""Rows of the indexes that one page of runs may read."""


@dataclass(frozen=True)
class Page:
    """Some entries, and where the next page starts; None at the end."""

    data: list[Json]
    following: Json | None


@dataclass(frozen=True)
class RunPage:
    runs: list[RunRow]
    position: str | None
    """Where the next page goes on, None at the end."""


def list_runs(
    store: LogStore,
    principal: Principal,
    wanted: dict[str, str],
    limit: int,
    before: str = NEWEST,
    deadline: Deadline = NEVER,
) -> RunPage:
    """At most `limit` runs that the principal may read and whose scope has every key of `wanted`, newest first; fewer where
    the deadline passes.
    """
    tenant = principal.tenant
    containers = listing_plan(principal, wanted).containers
    sources = [
        Source(partial(store.runs, tenant, container, shard), before)
        for container in ((None,) if containers is None else containers)
        for shard in range(store.run_shards(container))
    ]
    return RunPage(*newest(sources, lambda row: _is_listed(principal, row, wanted), limit, ROWS, deadline))


def _is_listed(principal: Principal, row: RunRow, wanted: dict[str, str]) -> bool:
    if is_own_run(row.run_id) and not principal.admin:
        return False
    return row.scope.matches(wanted) and gate.can_see(principal, row.scope, row.run_id)


def read_run(
    store: LogStore, vault: Vault, principal: Principal, run_id: str, since: int, limit: int
) -> Page:
    """Entries of a run with sequence ≥ `since`, payloads opened. Raises NotFound, LogChanged where one is missing."""
    require_readable_run(store, principal, run_id)
    found, more = store.entries(principal.tenant, run_id, since, limit)
    if _gap(found, since) is not None:  # an append of several entries shows one by one: look once more
        found, more = store.entries(principal.tenant, run_id, since, limit)
    if (gap := _gap(found, since)) is not None:
        raise _missing(*gap)
    data = wire.fitting((open_entry(vault, entry).to_json() for entry in found), wire.value_bytes)
    more = more or len(data) < len(found)
    return Page(data, {"since": found[len(data) - 1].sequence + 1} if more else None)


def _gap(found: Sequence[StoredEntry], since: int) -> tuple[int, int] | None:
    """The first sequence that is missing, and the one that stands in its place."""
    places = enumerate(found, since)
    return next(((place, entry.sequence) for place, entry in places if entry.sequence != place), None)


def _missing(place: int, next_there: int) -> LogChanged:
    return LogChanged(
        f"Entry {place} of the run is missing: someone removed it from the store. Verify the run, and compare it "
        f"with an export. What is behind the gap begins at sinceSequence={next_there}.",
        sequence=place,
    )


def read_stored_run(
    store: LogStore, tree: TreeStore, principal: Principal, run_id: str, since: int, limit: int
) -> tuple[Page, list[Leaf]]:
    """The same as it stands in the store, whatever that is, and the leaves that commit to this part of the run.

    An administrator gets the leaves of a run whose entries are all gone, too. Raises NotFound.
    """
    tenant = principal.tenant
    try:
        require_readable_run(store, principal, run_id)
    except NotFound:
        emptied = _first_entry(store, tenant, run_id) is None and tree.last_leaf(tenant, run_id) is not None
        if not (principal.admin and emptied):
            raise
    # Leaves first: what is appended and checkpointed between the two reads must not look like a lost entry.
    leaves = tree.run_leaves(tenant, run_id, since, LEAVES_AT_ONCE)
    found, more = store.entries(tenant, run_id, since, limit)
    fitting = wire.fitting(
        found,
        lambda entry: wire.value_bytes(stored_form(entry)),
        wire.ANSWER_BYTES - LEAF_BYTES * len(leaves),
    )
    ends = [fitting[-1].sequence] if more or len(fitting) < len(found) else []
    ends += [leaves[-1].sequence] if len(leaves) == LEAVES_AT_ONCE else []
    last = min(ends, default=None)  # of this part, None when it is the run's last
    return Page(
        [stored_form(entry) for entry in fitting if last is None or entry.sequence <= last],
        None if last is None else {"since": last + 1},
    ), [leaf for leaf in leaves if last is None or leaf.sequence <= last]


def require_readable_run(store: LogStore, principal: Principal, run_id: str) -> None:
    """Raises NotFound unless the run is there and the caller's to read."""
    first = _first_entry(store, principal.tenant, run_id)
    if first is None or not gate.can_see(principal, scope_of(first), run_id):
        raise NotFound("No such run, or not one you may read. Check the run id and your token.")


def _first_entry(store: LogStore, tenant: str, run_id: str) -> StoredEntry | None:
    return store.entry(tenant, run_id, 0) or next(iter(store.entries(tenant, run_id, 0, 1)[0]), None)


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
    if entry is None or not gate.can_see(principal, scope_of(entry), entry.run_id):
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
    """Messages of a conversation in the order of their timestamps; `wanted` narrows by scope keys.

    Only containers that the principal may read are read, so what others say under the same name takes nothing of a page.
    """
    data: list[Json] = []
    room = wire.ANSWER_BYTES
    following: str | None = position
    containers = listing_plan(principal, wanted | {"threadId": thread}).containers
    for page in thread_pages(
        store, principal.tenant, thread, containers, position, limit, newest_first=newest_first
    ):
        for at, entry in page.found:
            scope = scope_of(entry)
            if gate.can_see(principal, scope, entry.run_id) and scope.matches(wanted):
                if len(data) == limit:
                    return Page(data, {"at": following})
                answer = open_entry(vault, entry).to_json()
                room -= wire.value_bytes(answer)
                if data and room < 0:
                    return Page(data, {"at": following})
                data.append(answer)
            following = at
        following = page.following
        if following is None or len(data) == limit:
            break
    return Page(data, None if following is None else {"at": following})
