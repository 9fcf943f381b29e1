"""Find messages of conversations, with the message before and after each. Every one is read back from the log."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from factbook.domain import wire
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput, LogChanged
from factbook.domain.filters import AllOf, Equals, Filter, OneOf
from factbook.domain.log import gate
from factbook.domain.log.chain import read_log_id
from factbook.domain.log.entries import LogEntry
from factbook.domain.retrieval.messages import MESSAGE_VERSION, SPOKEN, Spoken
from factbook.domain.retrieval.names import names
from factbook.domain.retrieval.searchable import CONVERSATIONS
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.log.walks import EntrySource
from factbook.usecases.log.entries import of_conversation, open_entry, scope_of
from factbook.usecases.log.sealing import Vault
from factbook.usecases.log.threads import thread_pages
from factbook.usecases.retrieval.messages import is_spoken
from factbook.usecases.retrieval.retrieve import (
    FULL,
    SCORE_BYTES,
    Question,
    require_active_model,
    scope_parts,
)
from factbook.usecases.retrieval.searching import Asked, SearchPorts, find

AROUND = 2
"""Entries on either side of a hit that are read for it; further away a message is looked up by its thread."""

HITS_AT_ONCE = 10
"""The messages around so many hits are read at once: of entries of the largest size, ten megabytes."""

AROUND_SECONDS = 3.0
"""For reading what stands around all hits; those that are left then come alone."""

INCOMPLETE = "neighbours-incomplete"

LOOKED_AT, MOST_READS = 10, 3
"""Messages of a thread's name that the first read for the next one of a conversation looks at, and how many reads."""

Place = tuple[str, int]
"""Of an entry: its run, and its sequence there."""
Sides = tuple[LogEntry | None, LogEntry | None]

READ_AT_ONCE = 100
THREADS = 8


@dataclass(frozen=True)
class RecallPorts:
    """The ports of recall."""

    engine: SearchPorts
    log: LogStore
    entries: EntrySource
    vault: Vault
    erasing: Callable[[str], Erasing] = lambda _: NOTHING_ERASED


@dataclass(frozen=True)
class Recalled:
    """A message, its score, and its neighbours in the conversation."""

    entry: LogEntry
    score: float
    before: LogEntry | None
    after: LogEntry | None


def recall_messages(
    recall: RecallPorts, principal: Principal, question: Question, deadline: Deadline = NEVER
) -> tuple[list[Recalled], str | None]:
    """Best first, and what the answer had to do without. Raises as `retrieve_facts`.

    What stands around messages is read for as many of the best as one answer holds, and no longer than a while.
    """
    _require_plain(question)
    require_active_model(recall.engine, question)
    known: dict[Place, StoredEntry] = {}

    def read(versions: dict[str, int]) -> dict[str, LogEntry]:
        live = {
            key: place
            for key, version in versions.items()
            if version == MESSAGE_VERSION and (place := _place_of(key)) is not None
        }
        near = _around(live.values())  # few hits take one read with what stands around them
        _read(recall.entries, principal.tenant, known, near if len(near) <= READ_AT_ONCE else live.values())
        opened = {key: _opened(recall, principal, known.get(place)) for key, place in live.items()}
        return {key: entry for key, entry in opened.items() if entry is not None and entry.id == key}

    terms = frozenset(recall.engine.tokenizer.query(question.text))
    asked = Asked(
        question.mode,
        question.text,
        question.limit,
        question.min_score,
        company=_run_of,
        names=lambda entry: names(terms, Spoken.of(entry).speaker, recall.engine.tokenizer),
    )
    answer = find(recall.engine, principal.tenant, asked, _rule(recall, principal, question), read)
    surroundings = _Surroundings(recall, principal, known, deadline.within(AROUND_SECONDS))
    kept = _fitting(answer.found, surroundings)
    full = FULL if len(kept) < len(answer.found) else None
    return kept, answer.degraded or surroundings.degraded or full


def _fitting(found: Sequence[tuple[LogEntry, float]], surroundings: "_Surroundings") -> list[Recalled]:
    """As many of the best, with what stands around them, as one answer holds; always the first."""
    recalled: list[Recalled] = []
    for start in range(0, len(found), HITS_AT_ONCE):
        hits = found[start : start + HITS_AT_ONCE]
        sides = surroundings.of([entry for entry, _ in hits])
        recalled += [Recalled(entry, score, *side) for (entry, score), side in zip(hits, sides, strict=True)]
        kept = wire.fitting(recalled, _wire_bytes)
        if len(kept) < len(recalled):
            return kept
    return recalled


def _wire_bytes(recalled: Recalled) -> int:
    entries = (recalled.entry, recalled.before, recalled.after)
    return sum(wire.value_bytes(each.to_json()) for each in entries if each is not None) + SCORE_BYTES


def _require_plain(question: Question) -> None:
    if question.mode == "list":
        raise BadInput(
            "A list has facts only. Read a conversation with GET /v1/memory/threads/{id}/messages."
        )
    if question.trust or question.subjects or question.valid_at or question.after or question.require_fresh:
        raise BadInput(
            "Messages have no trust, subjects, validity, versions or freshness. Leave these filters out."
        )
    if question.type_prefix is not None or not SPOKEN.issuperset(question.types):
        raise BadInput("The types of messages are user-message and agent-message.")


def _rule(recall: RecallPorts, principal: Principal, question: Question) -> Filter:
    types = [OneOf("type", question.types)] if question.types else []
    shown = gate.shown_filter(principal, recall.erasing(principal.tenant))
    return AllOf((shown, Equals("source", CONVERSATIONS), *scope_parts(question.scope), *types))


def _place_of(log_id: str) -> Place | None:
    place = read_log_id(log_id)
    return None if place is None else (place.run_id, place.sequence)


def _run_of(log_id: str) -> str | None:
    place = _place_of(log_id)
    return None if place is None else place[0]


def _around(places: Iterable[Place]) -> list[Place]:
    """These places, and those near them."""
    near = range(-AROUND, AROUND + 1)
    return list(
        dict.fromkeys(
            (run, sequence + step) for run, sequence in places for step in near if sequence + step >= 0
        )
    )


def _read(
    entries: EntrySource, tenant: str, known: dict[Place, StoredEntry], places: Iterable[Place]
) -> None:
    """Read the entries of these places that are not known yet."""
    wanted = [place for place in dict.fromkeys(places) if place not in known]
    for start in range(0, len(wanted), READ_AT_ONCE):
        read = entries.several(tenant, wanted[start : start + READ_AT_ONCE])
        known |= {(entry.run_id, entry.sequence): entry for entry in read}


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
    return opened if shown and opened.payload_sealed is None else None


class _Surroundings:
    """The messages either side of hits, for as long as there is time."""

    def __init__(
        self, recall: RecallPorts, principal: Principal, known: dict[Place, StoredEntry], deadline: Deadline
    ) -> None:
        self._recall = recall
        self._principal = principal
        self._known = known
        self._deadline = deadline
        self.degraded: str | None = None

    def of(self, hits: Sequence[LogEntry]) -> list[Sides]:
        if self._out_of_time():
            return [(None, None)] * len(hits)
        near = _around((hit.run_id, hit.sequence) for hit in hits)
        _read(self._recall.entries, self._principal.tenant, self._known, near)
        with ThreadPoolExecutor(max_workers=THREADS) as pool:
            return list(pool.map(self._sides, hits))

    def _sides(self, hit: LogEntry) -> Sides:
        return self._side(hit, -1), self._side(hit, 1)

    def _side(self, hit: LogEntry, direction: int) -> LogEntry | None:
        places = ((hit.run_id, hit.sequence + direction * step) for step in range(1, AROUND + 1))
        near = (self._known.get(place) for place in places)
        found = next((each for each in near if each is not None and is_spoken(each)), None)
        if found is None and not self._out_of_time():
            found = _next_in_conversation(self._recall, hit, self._deadline, backwards=direction < 0)
        return _opened(self._recall, self._principal, found)

    def _out_of_time(self) -> bool:
        if self._deadline.passed:
            self.degraded = INCOMPLETE
        return self._deadline.passed


def _next_in_conversation(
    recall: RecallPorts, entry: LogEntry, deadline: Deadline, *, backwards: bool
) -> StoredEntry | None:
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
        deadline=deadline,
    )
    for page in pages:
        for _, found in page.found:
            if is_spoken(found) and of_conversation(found, entry.scope):
                return found
    return None
