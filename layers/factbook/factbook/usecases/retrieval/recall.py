"""Find messages of conversations, with the message before and after each. Every one is read back from the log."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput, LogChanged
from factbook.domain.filters import AllOf, Equals, Filter, OneOf
from factbook.domain.log import gate
from factbook.domain.log.chain import read_log_id
from factbook.domain.log.entries import LogEntry
from factbook.domain.retrieval.messages import MESSAGE_VERSION, SPOKEN, query_meanings
from factbook.domain.retrieval.searchable import CONVERSATIONS
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.log.walks import EntrySource
from factbook.usecases.log.entries import open_entry, scope_of
from factbook.usecases.log.sealing import Vault
from factbook.usecases.log.threads import thread_pages
from factbook.usecases.retrieval.messages import is_spoken
from factbook.usecases.retrieval.retrieve import SCORE_BYTES, Question, require_active_model, scope_parts
from factbook.usecases.retrieval.searching import Asked, SearchPorts, find

AROUND = 2
"""Entries on either side of a hit that are read with it; further away a message is looked up by its thread."""

LOOKED_AT, MOST_READS = 10, 3
"""Messages of a thread's name that the first read for the next one of a conversation looks at, and how many reads."""

READ_AT_ONCE = 100
THREADS = 8


@dataclass(frozen=True)
class RecallPorts:
    """The ports of recall."""

    engine: SearchPorts
    log: LogStore
    entries: EntrySource
    vault: Vault


@dataclass(frozen=True)
class Recalled:
    """A message, its score, and its neighbours in the conversation."""

    entry: LogEntry
    score: float
    before: LogEntry | None
    after: LogEntry | None


def recall_messages(
    recall: RecallPorts, principal: Principal, question: Question
) -> tuple[list[Recalled], str | None]:
    """Best first, and what the answer had to do without. Raises as `retrieve_facts`."""
    _require_plain(question)
    require_active_model(recall.engine, question)
    around: dict[tuple[str, int], StoredEntry] = {}

    def read(versions: dict[str, int]) -> dict[str, LogEntry]:
        live = [key for key, version in versions.items() if version == MESSAGE_VERSION]
        around.update(_read_around(recall.entries, principal.tenant, live))
        opened = {key: _opened(recall, principal, _at(around, key)) for key in live}
        return {key: entry for key, entry in opened.items() if entry is not None and entry.id == key}

    asked = Asked(
        question.mode, question.text, question.limit, question.min_score, query_meanings(question.text)
    )
    answer = find(recall.engine, principal.tenant, asked, _rule(principal, question), read)
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        sides = pool.map(lambda found: _neighbours(recall, principal, found[0], around), answer.found)
        recalled = [
            Recalled(entry, score, *side) for (entry, score), side in zip(answer.found, sides, strict=True)
        ]
    return wire.fitting(recalled, _wire_bytes), answer.degraded


def _wire_bytes(recalled: Recalled) -> int:
    entries = (recalled.entry, recalled.before, recalled.after)
    return sum(wire.value_bytes(each.to_json()) for each in entries if each is not None) + SCORE_BYTES


def _require_plain(question: Question) -> None:
    if question.mode == "list":
        raise BadInput(
            "A list has facts only. Read a conversation with GET /v1/memory/threads/{id}/messages."
        )
    if question.trust or question.subjects or question.valid_at or question.after:
        raise BadInput("Messages have no trust, subjects, validity or versions. Leave these filters out.")
    if question.type_prefix is not None or not SPOKEN.issuperset(question.types):
        raise BadInput("The types of messages are user-message and agent-message.")


def _rule(principal: Principal, question: Question) -> Filter:
    types = [OneOf("type", question.types)] if question.types else []
    return AllOf(
        (gate.shown_filter(principal), Equals("source", CONVERSATIONS), *scope_parts(question.scope), *types)
    )


def _read_around(
    entries: EntrySource, tenant: str, log_ids: Sequence[str]
) -> dict[tuple[str, int], StoredEntry]:
    places: dict[tuple[str, int], None] = {}
    for log_id in log_ids:
        place = read_log_id(log_id)
        if place is not None:
            near = range(max(0, place.sequence - AROUND), place.sequence + AROUND + 1)
            places |= dict.fromkeys((place.run_id, sequence) for sequence in near)
    wanted = list(places)
    found: dict[tuple[str, int], StoredEntry] = {}
    for start in range(0, len(wanted), READ_AT_ONCE):
        read = entries.several(tenant, wanted[start : start + READ_AT_ONCE])
        found |= {(entry.run_id, entry.sequence): entry for entry in read}
    return found


def _at(around: dict[tuple[str, int], StoredEntry], log_id: str) -> StoredEntry | None:
    place = read_log_id(log_id)
    return None if place is None else around.get((place.run_id, place.sequence))


def _opened(recall: RecallPorts, principal: Principal, entry: StoredEntry | None) -> LogEntry | None:
    """The entry as this reader may have it, if it is as it was written."""
    if entry is None or not is_spoken(entry):
        return None
    try:
        if not gate.can_see(principal, scope_of(entry), entry.run_id, found=True):
            return None
        opened = open_entry(recall.vault, entry)
    except LogChanged:
        return None
    shown = gate.can_see(principal, opened.scope, opened.run_id, opened.payload_erased_at, found=True)
    return opened if shown else None


def _neighbours(
    recall: RecallPorts, principal: Principal, entry: LogEntry, around: dict[tuple[str, int], StoredEntry]
) -> tuple[LogEntry | None, LogEntry | None]:
    def side(direction: int) -> LogEntry | None:
        near = (
            around.get((entry.run_id, entry.sequence + direction * step)) for step in range(1, AROUND + 1)
        )
        found = next((each for each in near if each is not None and is_spoken(each)), None)
        found = found or _next_in_conversation(recall, entry, backwards=direction < 0)
        return _opened(recall, principal, found)

    return side(-1), side(1)


def _next_in_conversation(recall: RecallPorts, entry: LogEntry, *, backwards: bool) -> StoredEntry | None:
    """The next message of the conversation, in whichever run. A thread's name may be used in several projects, whose
    messages are not read, and by several people of one, whose messages are looked past for a while.
    """
    if entry.scope.thread_id is None:
        return None
    position = f"{entry.timestamp}|{entry.run_id}"
    pages = thread_pages(
        recall.log,
        entry.scope.tenant_id,
        entry.scope.thread_id,
        (entry.scope.container,),
        position,
        LOOKED_AT,
        newest_first=backwards,
        most_reads=MOST_READS,
    )
    for page in pages:
        for _, found in page.found:
            if is_spoken(found) and _same_conversation(found, entry):
                return found
    return None


def _same_conversation(found: StoredEntry, entry: LogEntry) -> bool:
    """Whether both stand in the same containers; a session is none, and each of a conversation's has another."""
    try:
        own, other = scope_of(found), entry.scope
    except LogChanged:
        return False
    return own.containers == other.containers
