"""Bring the messages of conversations into the search index.

A message is found by its own words, by its speaker's name and, counting half, by the message before it: an answer
rarely repeats what it was asked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from factbook.domain.errors import LogChanged
from factbook.domain.log.entries import LogEntry
from factbook.domain.retrieval.documents import chunks
from factbook.domain.retrieval.messages import (
    BEFORE_CHARACTERS,
    ERASED_VERSION,
    MESSAGE_VERSION,
    SPOKEN,
    Spoken,
    meaning,
    message_fields,
)
from factbook.domain.retrieval.tokenizer import Tokenizer
from factbook.domain.scope import Scope
from factbook.domain.strict_json import parse_json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.retrieval.upkeep import Trouble, Troubled
from factbook.usecases.jobs import fitting
from factbook.usecases.log.entries import log_id_of, of_conversation, open_entry
from factbook.usecases.log.sealing import Vault
from factbook.usecases.log.threads import thread_pages
from factbook.usecases.retrieval.indexing import (
    PORTION_BYTES,
    Draft,
    IndexingPorts,
    Meaning,
    Name,
    Outcome,
    apply_drafts,
    cut,
    drafts_or_notes,
    embedded_passages,
)

LOOK_BACK = 10
"""Entries of a run, or of a thread, among which the message before one, and who it is told to, are looked for."""
MOST_READS = 3
"""Of the thread, past messages of other containers."""


@dataclass(frozen=True)
class MessagePorts:
    """The ports of indexing messages."""

    indexing: IndexingPorts
    log: LogStore
    vault: Vault


def index_messages(
    ports: MessagePorts, entries: Iterable[StoredEntry], deadline: Deadline = NEVER
) -> Outcome:
    """Index the messages among the entries; what the deadline leaves over is to be tried again. Raises as `index_heads`."""
    spoken = list(filter(is_message, entries))
    spoken.sort(key=lambda entry: (entry.tenant, entry.run_id, entry.sequence))
    outcome = Outcome()
    for portion in fitting(spoken, weight, PORTION_BYTES):
        if deadline.passed:
            outcome.put_off(map(name_of, portion))
        else:
            drafts, noted = drafts_of(ports, portion, deadline)
            outcome.add(noted)
            outcome.add(apply_drafts(ports.indexing, drafts, deadline=deadline))
    return outcome


def drafts_of(
    ports: MessagePorts, spoken: Iterable[StoredEntry], deadline: Deadline = NEVER
) -> tuple[list[Draft], Outcome]:
    """Drafts of messages. Those of a stretch of a run that cannot be read for now are noted instead. Raises what noting raises."""
    return drafts_or_notes(
        ports.indexing,
        [
            ([note_of(entry, "payload") for entry in run], partial(_of_run, ports, run))
            for run in _stretches(spoken)
        ],
        deadline,
    )


def _stretches(spoken: Iterable[StoredEntry]) -> list[list[StoredEntry]]:
    """Messages that are read together: of one run, and near enough that little else lies between."""
    stretches: list[list[StoredEntry]] = []
    for entry in sorted(spoken, key=lambda each: (each.tenant, each.run_id, each.sequence)):
        last = stretches[-1][-1] if stretches else None
        if (
            last is not None
            and (last.tenant, last.run_id) == (entry.tenant, entry.run_id)
            and entry.sequence - last.sequence <= LOOK_BACK
        ):
            stretches[-1].append(entry)
        else:
            stretches.append([entry])
    return stretches


def is_message(entry: StoredEntry) -> bool:
    """Whether a search may find it. One that does not name its own place is not as it was written."""
    try:
        return is_spoken(entry) and log_id_of(entry) is not None
    except LogChanged:
        return False


def name_of(entry: StoredEntry) -> Name:
    return entry.tenant, str(log_id_of(entry))


def weight(entry: StoredEntry) -> int:
    """Bytes that indexing a message reads, at least."""
    return len(entry.text)


def note_of(entry: StoredEntry, trouble: Trouble) -> Troubled:
    return Troubled(*name_of(entry), "conversations", MESSAGE_VERSION, trouble)


def is_spoken(entry: StoredEntry) -> bool:
    kind = parse_json(entry.text).get("kind")
    return isinstance(kind, str) and kind in SPOKEN


def _of_run(ports: MessagePorts, spoken: list[StoredEntry]) -> list[Draft]:
    """Drafts of one stretch of a run's messages; one read gives the entries around all of them."""
    first, last = spoken[0], spoken[-1]
    since = max(0, first.sequence - LOOK_BACK)
    around, _ = ports.log.entries(first.tenant, first.run_id, since, min(last.sequence - since + 1, 1_000))
    known = {entry.sequence: entry for entry in (*around, *spoken) if is_spoken(entry)}
    opened = {sequence: _open(ports.vault, entry) for sequence, entry in known.items()}
    drafts = []
    for entry in spoken:
        own = opened[entry.sequence]
        if own is None:
            continue
        near = range(entry.sequence - 1, entry.sequence - LOOK_BACK - 1, -1)
        earlier = [opened[sequence] for sequence in near if sequence in opened]
        talk = earlier or _before_in_thread(ports, entry, own.scope)
        said = [Spoken.of(each) for each in talk if each is not None]
        drafts.append(_draft(own, said, ports.indexing.tokenizer))
    return drafts


def _before_in_thread(ports: MessagePorts, entry: StoredEntry, scope: Scope) -> list[LogEntry | None]:
    """The messages of the conversation before a run's first one, newest first, past those of others for a while."""
    if entry.thread is None:
        return []
    position = f"{entry.timestamp}|{entry.run_id}"
    pages = thread_pages(
        ports.log,
        entry.tenant,
        entry.thread,
        (scope.container,),
        position,
        LOOK_BACK,
        newest_first=True,
        most_reads=MOST_READS,
    )
    for page in pages:
        own = [found for _, found in page.found if is_spoken(found) and of_conversation(found, scope)]
        if own:
            return [_open(ports.vault, found) for found in own[:LOOK_BACK]]
    return []


def _open(vault: Vault, entry: StoredEntry) -> LogEntry | None:
    """None for an entry that is not as it was written: no search may bring it back. Raises Throttled, StorageUnavailable."""
    try:
        return open_entry(vault, entry)
    except LogChanged:
        return None


def _draft(entry: LogEntry, talk: Sequence[Spoken], tokenizer: Tokenizer) -> Draft:
    """`talk`: what was said before, newest first."""
    draft = Draft(entry.scope.tenant_id, entry.id, MESSAGE_VERSION, "conversations")
    own = Spoken.of(entry)
    if entry.payload_erased_at is not None or not own.words:
        return Draft(draft.tenant, draft.id, ERASED_VERSION, draft.source)
    context = talk[0] if talk and talk[0].words else None
    other = next((each.speaker for each in talk if each.speaker not in ("", own.speaker)), "")
    texts = tuple(chunks(own.words))
    pieces = _pieces(texts, own, context, tokenizer)
    return Draft(
        draft.tenant,
        draft.id,
        draft.version,
        draft.source,
        pieces=pieces,
        meanings=_meanings(embedded_passages(own.words), own, context, other),
        fields=message_fields(entry),
        trouble=None if len(pieces) == len(texts) else "too-slow",
    )


def _pieces(
    texts: Sequence[str], own: Spoken, context: Spoken | None, tokenizer: Tokenizer
) -> tuple[str, ...]:
    """Token texts: own words count twice, those of the message before once."""

    def tokens_of(place: int, text: str) -> list[str]:
        tokens = 2 * list(tokenizer.document(Spoken(own.speaker, text).line))
        if context is not None and place == 0:
            tokens += tokenizer.document(context.line[:BEFORE_CHARACTERS])
        return tokens

    return cut(texts, tokens_of)


def _meanings(texts: Sequence[str], own: Spoken, context: Spoken | None, other: str) -> tuple[Meaning, ...]:
    """`other`: who else speaks."""
    before = ""
    if context is not None:
        said = Spoken(context.speaker, context.words[:BEFORE_CHARACTERS])
        before = meaning(said, own.speaker if own.speaker != said.speaker else other)
    return tuple(
        Meaning(meaning(Spoken(own.speaker, text), other), before if place == 0 else "")
        for place, text in enumerate(texts)
    )
