"""Entries as stored, and as answered: what lies in between is a hash that must hold and an envelope that must open."""

from typing import Any

from factbook.canonical import log_canonical
from factbook.domain.errors import BadInput, LogChanged
from factbook.domain.log.chain import FORMAT, LogId, nonce_for, read_log_id, text_hash
from factbook.domain.log.entries import LogEntry
from factbook.domain.log.runs import Tail
from factbook.domain.log.sealing import KeyName, key_name, read_envelope
from factbook.domain.scope import Scope
from factbook.domain.strict_json import Json, dump_json, parse_json
from factbook.ports.cipher import Forged
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.sealing import Vault


def bound_to(tenant: str, log_id: LogId) -> str:
    """What an envelope is authenticated with: the entry it was made for, wherever in its run that came to stand."""
    return dump_json([tenant, log_id.run_id, log_id.seed])


def tail_of(entry: StoredEntry) -> Tail:
    fields = _fields(entry)
    return Tail(entry.sequence, entry.entry_hash, fields["timestamp"], Scope.model_validate(fields["scope"]))


def sealed_under(entry: StoredEntry) -> tuple[KeyName, int] | None:
    """The data key that an entry's payload is sealed under, and its generation; None for one that is plain."""
    fields = _fields(entry)
    name, envelope = key_name(Scope.model_validate(fields["scope"])), read_envelope(fields["payload"])
    if name is None or envelope is None:
        return None
    return name, envelope.generation


def previous_hash(entry: StoredEntry) -> Any:
    """The hash of the entry before it, as it says. Raises LogChanged."""
    return _fields(entry).get("prevHash")


def scope_of(entry: StoredEntry) -> Scope:
    return tail_of(entry).scope


def of_conversation(entry: StoredEntry, scope: Scope) -> bool:
    """Whether an entry stands in the same containers as what has this scope. A session is none: a conversation may go on in
    another one. False for an entry that cannot be read.
    """
    try:
        return scope_of(entry).containers == scope.containers
    except LogChanged:
        return False


def log_id_of(entry: StoredEntry) -> LogId:
    """Raises LogChanged for an entry that does not name its own place."""
    log_id = read_log_id(_fields(entry)["id"])
    if log_id is None or (log_id.run_id, log_id.sequence) != (entry.run_id, entry.sequence):
        raise _altered(entry)
    return log_id


def answer_of(
    entry: StoredEntry, payload: Any, erased_at: str | None = None, *, sealed: bool = False
) -> LogEntry:
    """The entry with an opened payload."""
    fields = _fields(entry)
    return LogEntry(
        id=fields["id"],
        kind=fields["kind"],
        scope=Scope.model_validate(fields["scope"]),
        run_id=fields["runId"],
        actor=fields.get("actor"),
        timestamp=fields["timestamp"],
        sequence=fields["sequence"],
        payload=payload,
        content_hash=text_hash(log_canonical(fields["payload"])),
        prev_hash=fields["prevHash"],
        entry_hash=entry.entry_hash,
        caused_by_log_id=entry.cause,
        payload_erased_at=erased_at,
        payload_sealed=True if sealed else None,
    )


def open_entry(vault: Vault, entry: StoredEntry) -> LogEntry:
    """The entry as its readers get it. Raises LogChanged when the store no longer holds what was written."""
    log_id = log_id_of(entry)
    untouched = (
        entry.format == FORMAT
        and text_hash(entry.text) == entry.entry_hash
        and log_id.nonce == nonce_for(log_id.seed, entry.cause)
    )
    if not untouched:
        raise _altered(entry)
    fields = _fields(entry)
    try:
        opened = vault.open(
            entry.tenant,
            Scope.model_validate(fields["scope"]),
            bound_to(entry.tenant, log_id),
            fields["payload"],
        )
    except Forged as error:
        raise _altered(entry) from error
    payload = None if opened.text is None else parse_json(opened.text)
    return answer_of(entry, payload, opened.erased_at, sealed=opened.sealed)


def _fields(entry: StoredEntry) -> Json:
    try:
        fields: Json = parse_json(entry.text)
        return (
            fields if {"id", "scope", "timestamp", "payload", "sequence"} <= fields.keys() else _refuse(entry)
        )
    except (BadInput, AttributeError) as error:
        raise _altered(entry) from error


def _refuse(entry: StoredEntry) -> Json:
    raise _altered(entry)


def _altered(entry: StoredEntry) -> LogChanged:
    return LogChanged(
        f"Entry {entry.sequence} of the run is not as it was written: someone changed it in the store. "
        "Verify the run, and compare it with an export.",
        sequence=entry.sequence,
    )
