"""Entries of one request as they are chained behind a run's tail: each has its place, its envelope and its hash."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from factbook.canonical import log_canonical
from factbook.domain import wire
from factbook.domain.errors import RequestTooLarge
from factbook.domain.log.chain import FORMAT, LogId, text_hash
from factbook.domain.log.entries import MESSAGE_KINDS, Draft, Place, hashed_fields, place_after
from factbook.domain.log.runs import Tail, later_micros
from factbook.domain.scope import Scope
from factbook.domain.strict_json import parse_json
from factbook.ports.deadline import Deadline
from factbook.ports.log.clock import LogClock
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.usecases.log.entries import answer_of, bound_to
from factbook.usecases.log.sealing import Vault

MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
"""Of all items together, as `LogStore.stored_bytes` counts them."""

ANSWER_OVERHEAD = 1_300
"""What an entry has at most in an answer besides what its text has: its hash and names."""


class Chaining:
    """The drafts of one request, which are chained anew at each place that they try."""

    def __init__(
        self,
        store: LogStore,
        vault: Vault,
        clock: LogClock,
        tenant: str,
        run_id: str,
        drafts: Sequence[Draft],
        deadline: Deadline,
    ) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._tenant = tenant
        self._run_id = run_id
        self._drafts = drafts
        self._deadline = deadline
        self._sealed: dict[tuple[str, Scope], dict[str, Any] | None] = {}

    def behind(self, tail: Tail | None, scope: Scope) -> list[StoredEntry]:
        """Raises RequestTooLarge for what no transaction holds, or no answer."""
        entries: list[StoredEntry] = []
        now = self._clock.micros()
        for draft in self._drafts:
            timestamp = now if tail is None else later_micros(now, tail.timestamp)
            place = place_after(tail, self._run_id, draft, timestamp)
            entry = self._stored(draft, scope, place)
            entries.append(entry)
            tail = Tail(entry.sequence, entry.entry_hash, timestamp, scope)
        self._require_storable(entries)
        self._require_answerable(entries)
        return entries

    def _require_storable(self, entries: list[StoredEntry]) -> None:
        if len(entries) > 1 and sum(map(self._store.stored_bytes, entries)) > MAX_TRANSACTION_BYTES:
            raise RequestTooLarge(
                "The entries take more than 4 MB as stored. Append them in several requests."
            )

    def _require_answerable(self, entries: list[StoredEntry]) -> None:
        """Refuse what could be written and not be answered: nobody could tell the caller where it came to stand."""
        size = sum(len(entry.text.encode()) + ANSWER_OVERHEAD for entry in entries)
        if 2 * size <= wire.ANSWER_BYTES:  # an escape makes two bytes of one, and nothing makes more
            return
        answers = (
            answer_of(entry, parse_json(draft.text))
            for entry, draft in zip(entries, self._drafts, strict=True)
        )
        if sum(wire.value_bytes(answer.to_json()) for answer in answers) > wire.ANSWER_BYTES:
            raise RequestTooLarge(
                "The entries take more than 3.9 MB as answered, where each quote and backslash counts twice. "
                "Append them in several requests."
            )

    def _stored(self, draft: Draft, scope: Scope, place: Place) -> StoredEntry:
        text = log_canonical(hashed_fields(draft, scope, place, self._payload(draft, scope, place.log_id)))
        bare = StoredEntry(
            self._tenant,
            self._run_id,
            place.log_id.sequence,
            text,
            text_hash(text),
            FORMAT,
            draft.cause,
        )
        return _found(bare, draft.kind, scope, place.timestamp)

    def _payload(self, draft: Draft, scope: Scope, log_id: LogId) -> Any:
        """The payload to chain. A draft is sealed once: its place may move while it walks, its seed does not."""
        if draft.payload is None:
            return None
        made_for = (draft.seed, scope)
        if made_for not in self._sealed:
            self._deadline.require()
            bound = bound_to(self._tenant, log_id)
            self._sealed[made_for] = self._vault.seal(self._tenant, scope, bound, draft.text)
        return self._sealed[made_for] or draft.payload


def stored_entry(tenant: str, text: str, entry_hash: str, cause: str | None) -> StoredEntry:
    """An entry from its canonical text, as an append had stored it.

    Raises LogChanged, LookupError, TypeError, ValueError for a text that is none of an entry.
    """
    fields = parse_json(text)
    run_id, sequence, kind, timestamp = (fields[name] for name in ("runId", "sequence", "kind", "timestamp"))
    if not (isinstance(run_id, str) and run_id and isinstance(timestamp, str) and isinstance(kind, str)):
        raise TypeError
    if isinstance(sequence, bool) or not isinstance(sequence, int):
        raise TypeError
    bare = StoredEntry(tenant, run_id, sequence, text, entry_hash, FORMAT, cause)
    return _found(bare, kind, Scope.model_validate(fields["scope"]), timestamp)


def _found(bare: StoredEntry, kind: str, scope: Scope, timestamp: str) -> StoredEntry:
    """The entry with what finds it: a message by its thread, a run by its first entry."""
    thread = scope.thread_id if kind in MESSAGE_KINDS else None
    opens = scope if bare.sequence == 0 else None
    return replace(
        bare,
        thread=thread,
        timestamp=timestamp if thread or opens else None,
        opens=opens,
        container=scope.container if thread else None,
    )
