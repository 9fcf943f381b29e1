"""Follows one run: every stored text hashes to its hash, and every text names its place, its run and the hash before.

The stored canonical text is the only authority. It is hashed as it stands and never written anew; its fields are
compared where the canonical form puts them (keys in order: actor, id, kind, payload, prevHash, runId, scope, sequence,
timestamp), so a payload is not parsed and costs its hash alone. `parse_payload` checks one on top.
"""

import json
import re
from hashlib import sha256
from typing import Any

from .findings import Tampered, Unsupported

FORMAT = "jcs-sha256-v1"
ZERO = b"0" * 64
NONCE_DIGITS = 16
CAUSE_DIGITS = 20

# How an export frames an entry whose cause is none (docs/log.md): the stored text lies between these and "}".
ENTRY = b'{"h":"sha256:'
HASH_END = len(ENTRY) + 64
PLAIN = b'","f":"' + FORMAT.encode() + b'","entry":'
PLAIN_AT = HASH_END + len(PLAIN)

# An instant is the last member of the text, always 27 characters: "2026-11-30T10:00:00.000000Z"}
_TAIL = 29
_INSTANT = re.compile(rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"\}')
_HEAD = re.compile(
    rb'(\{(?:"actor":"(?:[^"\\]|\\.)*",)?"id":")((?:[A-Za-z0-9._:@~-])*:)(\d+):([0-9a-f]*)","kind":"[a-z-]+","payload":'
)


class Chain:
    """One run, entry after entry. After `follow`, `digest` is the hex of the last entry's hash."""

    __slots__ = ("_head", "_instant", "_middle", "_prefix", "digest", "run", "sequence", "tenant")

    def __init__(self, run: str, tenant: str, sequence: int = -1, digest: bytes = ZERO) -> None:
        """`sequence` and `digest` are those of the entry before the first to come, for who resumes a run."""
        self.run = run
        self.tenant = tenant
        self.sequence = sequence
        self.digest = digest
        self._instant = b""
        self._middle = b""
        self._head = b""
        self._prefix = b""

    def follow(self, text: bytes, claimed: bytes, cause: str | None = None) -> None:
        """Take the next entry: its stored text, the hex of its stored hash, the cause stored with it.

        Raises Tampered with the entry and the reason.
        """
        digest = sha256(text).hexdigest().encode()
        sequence = self.sequence + 1
        if digest != claimed:
            raise self._tampered(sequence, "its text does not hash to its entryHash: it was edited")
        end = len(text) - _TAIL
        if not self._middle:
            self._learn(text)
        if not text.endswith(
            b'%b%b%b%d,"timestamp":"' % (b',"prevHash":"sha256:', self.digest, self._middle, sequence), 0, end
        ):
            raise self._misplaced(text, sequence)
        instant = text[end:]
        if instant <= self._instant or _INSTANT.fullmatch(instant) is None:
            raise self._tampered(sequence, "its timestamp is no instant later than the one before")
        self._check_id(text, sequence, cause)
        self.sequence = sequence
        self.digest = digest
        self._instant = instant

    def follow_lines(self, lines: list[bytes], start: int) -> int:
        """How many lines from `start` on are plain entries of an export that hold; the state is that behind them.

        The same checks as `follow`, in one loop without calls: what it does not take, `follow` judges and explains.
        """
        if not self._middle or not self._head:
            return 0
        head, middle, sequence, digest, instant = (
            self._head,
            self._middle,
            self.sequence,
            self.digest,
            self._instant,
        )
        taken = 0
        for line in lines[start:] if start else lines:
            text = line[PLAIN_AT:-2]
            computed = sha256(text).hexdigest().encode()
            if line[:PLAIN_AT] != ENTRY + computed + PLAIN or line[-2:] != b"}\n":
                break
            number = b"%d" % (sequence + 1)
            begins = head + number + b":"
            at = len(begins) + NONCE_DIGITS
            end = len(text) - _TAIL
            now = text[end:]
            if not (
                text.startswith(begins)
                and text[at : at + 10] == b'","kind":"'
                and text.endswith(
                    b',"prevHash":"sha256:' + digest + middle + number + b',"timestamp":"', 0, end
                )
                and now > instant
                and _INSTANT.fullmatch(now)
            ):
                break
            digest, instant = computed, now
            sequence += 1
            taken += 1
        self.sequence, self.digest, self._instant = sequence, digest, instant
        return taken

    def _check_id(self, text: bytes, sequence: int, cause: str | None) -> None:
        # The same actor writes most neighbours: their texts start alike up to the sequence.
        head = b"%b%d:" % (self._head, sequence)
        at = len(head)
        if (
            cause is None
            and text.startswith(head)
            and text[at + NONCE_DIGITS : at + NONCE_DIGITS + 10] == b'","kind":"'
        ):
            return
        match = _HEAD.match(text)
        if match is None or match[2] != self._prefix or match[3] != b"%d" % sequence:
            raise self._tampered(sequence, "its id names another place than the one it stands in")
        self._head = match[1] + match[2]
        nonce = match[4].decode()
        if nonce[NONCE_DIGITS:] != cause_digits(cause) or len(nonce) < NONCE_DIGITS:
            raise self._tampered(sequence, "its cause is not the one its id carries")

    def _learn(self, text: bytes) -> None:
        """Take the run's scope from its first entry; every other entry must repeat it."""
        entry = parse_entry(text)
        scope = entry.get("scope") if entry is not None else None
        if not isinstance(scope, dict) or scope.get("tenantId") != self.tenant:
            raise self._tampered(self.sequence + 1, "its scope is not one of this tenant")
        run = json.dumps(self.run, ensure_ascii=False).encode()
        own = json.dumps(scope, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        self._middle = b'","runId":' + run + b',"scope":' + own + b',"sequence":'
        self._prefix = run[1:-1] + b":"

    def _misplaced(self, text: bytes, sequence: int) -> Tampered:
        entry = parse_entry(text)
        if entry is None:
            return self._tampered(sequence, "its text is not an entry in canonical form")
        if entry.get("runId") != self.run:
            return self._tampered(sequence, "its text belongs to another run")
        found = entry.get("sequence")
        if found != sequence:
            later = isinstance(found, int) and found > sequence
            return self._tampered(
                sequence,
                f"it is missing: entry {found} stands in its place" if later else "an entry is repeated",
            )
        if entry.get("prevHash") != "sha256:" + self.digest.decode():
            return self._tampered(
                sequence, "its prevHash is not the hash of the entry before: one of the two was rewritten"
            )
        return self._tampered(sequence, "its scope is not the run's, or its text is not canonical")

    def _tampered(self, sequence: int, why: str) -> Tampered:
        return Tampered(why, run=self.run, sequence=sequence)


def cause_digits(cause: str | None) -> str:
    """What a nonce ends in: 20 hex digits of the cause's SHA-256, nothing without a cause."""
    return "" if cause is None else sha256(cause.encode()).hexdigest()[:CAUSE_DIGITS]


def parse_entry(text: bytes) -> dict[str, Any] | None:
    """The entry of a stored text, None when it is no JSON object or names a key twice."""
    try:
        entry = json.loads(text, object_pairs_hook=_single)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def check_format(tag: str) -> None:
    """Raises Unsupported for a format tag this verifier does not know."""
    if tag != FORMAT:
        raise Unsupported(f"the entry's format is {tag!r}; this verifier knows {FORMAT}")


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a key is there twice")
    return built
