"""What a signed statement of an erasure says, and what it does not: the form `factbook-erasure-v1`, and its words."""

import re
from dataclasses import dataclass
from typing import Any

from .findings import Tampered, Unsupported

FORM = "factbook-erasure-v1"

_NEEDED: dict[str, type] = {
    "statement": str,
    "erasureId": str,
    "selectorKind": str,
    "requestedBy": str,
    "createdAt": str,
    "completedAt": str,
    "settledAt": str,
    "backupsUntil": str,
    "counts": dict,
    "notClaimed": list,
    "warnings": list,
}
_OPTIONAL: dict[str, type] = {"selectorHmac": str, "keyId": str, "replayedAt": str, "replayedBy": str}

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TIMES = ("createdAt", "replayedAt", "completedAt", "settledAt", "backupsUntil")

KINDS = {
    "fact": "one fact",
    "participant": "one participant of an application",
    "external": "one person outside",
    "user": "one user",
    "conversation": "one conversation",
}
STORES = {
    "facts": "facts",
    "revisions": "revisions of facts",
    "blobs": "stored versions of large contents",
    "uploads": "stored versions of uploads that no fact names",
    "documents": "records of the search index",
    "messages": "messages of the search index",
    "keys": "keys of sealed log entries",
    "notes": "notes and dead letters",
    "derived": "facts of others that were derived from what was erased, and wait for a person to decide",
}
NOT_CLAIMED = {
    "stream-records": "Change records of the tables: they are kept for 24 hours, until {settledAt}.",
    "backups": "Point-in-time backups of facts and of keys: they reach back 7 days, until {backupsUntil}. "
    "A restore from one has to replay the ledger of erasures before it serves.",
    "search-segments": "Segments of the search domain: it drops removed documents when it merges them.",
    "search-snapshots": "Snapshots that the search domain makes by itself: AWS keeps them for 14 days.",
    "exports": "Copies that were made before: exports, and backups other than those above. The sealed words of the log are "
    "unreadable in them; facts are not sealed.",
    "plain-entries": "Log entries of a wider scope (a project's, the tenant's): they are plain, and stay.",
    "late-uploads": "Uploads that were granted before and sent after: an upload's address lasts an hour. No fact names them, so "
    "that nobody is shown them, and the bucket removes them within five days.",
    "expired-facts": "Remains of facts that had expired before, and whose record the table had removed already: their earlier "
    "revisions and payloads are shown to nobody, and go behind the table's stream, most within seconds.",
    "ids": "Ids: they stay on records and in the log.",
}


@dataclass(frozen=True)
class Statement:
    """The payload of a signed entry; every field is there that the form needs, and no other."""

    fields: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


def read_statement(payload: Any) -> Statement:
    """Raises Unsupported for another form, or for one that says more than this verifier can tell; Tampered for none."""
    if not isinstance(payload, dict) or not isinstance(payload.get("statement"), str):
        raise Tampered("the entry states no erasure")
    if payload["statement"] != FORM:
        raise Unsupported(f"the statement's form is {payload['statement']!r}; this verifier knows {FORM}")
    known = _NEEDED | _OPTIONAL
    more = sorted(payload.keys() - known.keys())
    if more:
        raise Unsupported(f"the statement says something that this verifier does not know: {more[0]!r}")
    for name, kind in known.items():
        if (name in payload or name in _NEEDED) and type(payload.get(name)) is not kind:
            raise Tampered(f"the statement has no proper {name}")
    if not all(_INSTANT.fullmatch(payload[name]) for name in _TIMES if name in payload):
        raise Tampered("a time of the statement is none")
    if not all(type(count) is int and count >= 0 for count in payload["counts"].values()):
        raise Tampered("a count of the statement is no number")
    if not all(isinstance(each, str) for each in (*payload["notClaimed"], *payload["warnings"])):
        raise Tampered("the statement lists something that is no text")
    return Statement(payload)


def claims(statement: Statement) -> list[str]:
    """What is stated, a sentence each."""
    whom = KINDS.get(statement["selectorKind"], statement["selectorKind"])
    lines = [f"The erasure {statement['erasureId']} of {whom}, asked for by {statement['requestedBy']}."]
    if "selectorHmac" in statement.fields:
        lines.append(
            f"Whom it names is a keyed hash, {statement['selectorHmac'][:16]}…, under the key {statement['keyId']!r}: "
            "who holds that key can tell."
        )
    lines.append(f"Nothing of it was answered, and no write for it taken, from {statement['createdAt']} on.")
    if "replayedAt" in statement.fields:
        lines.append(
            f"A restore had brought something of it back; that was looked for from {statement['replayedAt']} on."
        )
    if "replayedBy" in statement.fields:
        lines.append(
            f"{statement['replayedBy']} replayed the ledger that tells of it. Who had asked for it may be known from there alone, "
            "and nobody has signed that."
        )
    lines.append(
        f"It was gone from tables, buckets, queues and the search index at {statement['completedAt']}:"
    )
    counts = [(name, count) for name, count in statement["counts"].items() if count]
    lines += [f"  {count:,} {STORES.get(name, name)}" for name, count in counts] or [
        "  there was nothing of it"
    ]
    lines.append(
        f"From {statement['settledAt']} on, no copy is left but in backups, and in what is not claimed."
    )
    return lines + [f"Warning: {each}" for each in statement["warnings"]]


def disclaims(statement: Statement) -> list[str]:
    """What is not claimed, a sentence each."""
    return [
        NOT_CLAIMED[each].format(**statement.fields) if each in NOT_CLAIMED else each
        for each in statement["notClaimed"]
    ]
