"""Follows one run: every stored text hashes to its hash, and every text names its place, its run and the hash before.

The stored canonical text is the only authority. It is hashed as it stands and never written anew; its fields are
compared where the canonical form puts them (keys in order: actor, id, kind, payload, prevHash, runId, scope, sequence,
timestamp), so a payload is not parsed and costs its hash alone. `parse_payload` checks one on top.
"""

import json
import re
from functools import lru_cache
from hashlib import sha256
from typing import Any

from .findings import Tampered, Unsupported

FORMAT = "jcs-sha256-v1"
ZERO = b"0" * 64
NONCE_DIGITS = 16
CAUSE_DIGITS = 20
MISPLACED = "its id names another place than the one it stands in"

# How an export frames an entry whose cause is none (docs/log.md): the stored text lies between these and "}".
ENTRY = b'{"h":"sha256:'
HASH_END = len(ENTRY) + 64
PLAIN = b'","f":"' + FORMAT.encode() + b'","entry":'
PLAIN_AT = HASH_END + len(PLAIN)

# An instant is the last member of the text, always 27 characters: "2026-11-30T10:00:00.000000Z"}
TAIL = 29
DIGITS = bytes(ord("0") if chr(byte) in "0123456789" else byte for byte in range(256))
HEX = bytes(ord("0") if chr(byte) in "0123456789abcdef" else byte for byte in range(256))
INSTANT = b'0000-00-00T00:00:00.000000Z"}'
"""The end of a text with every digit as a zero."""
KIND, PREV, STAMP = b'","kind":"', b',"prevHash":"sha256:', b',"timestamp":"'
_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._:@~-]+")
HEAD = re.compile(rb'\{(?:"actor":"[^"\\]*(?:\\.[^"\\]*)*",)?"id":"')
"""How a text begins, up to its run."""


class Chain:
    """One run, entry after entry. After `follow`, `digest` is the hex of the last entry's hash."""

    __slots__ = ("digest", "instant", "middle", "prefix", "run", "sequence", "tenant")

    def __init__(self, run: str, tenant: str, sequence: int = -1, digest: bytes = ZERO) -> None:
        """`sequence` and `digest` are those of the entry before the first to come, for who resumes a run."""
        self.run = run
        self.tenant = tenant
        self.sequence = sequence
        self.digest = digest
        self.instant = b""
        self.middle = b""
        """What stands between the hash before and the sequence: run and scope. Empty until an entry has told the scope."""
        plain = _PLAIN_NAME.fullmatch(run) is not None
        written = run if plain else json.dumps(run, ensure_ascii=False)[1:-1]
        self.prefix = written.encode("utf-8", "replace") + b":"

    @classmethod
    def before(cls, text: bytes) -> "Chain | None":
        """One that stands before this entry, by what the entry says; None when it does not say enough."""
        entry = parse_entry(text) or {}
        run, scope, sequence, prev = map(entry.get, ("runId", "scope", "sequence", "prevHash"))
        tenant = scope.get("tenantId") if isinstance(scope, dict) else None
        if not (isinstance(run, str) and isinstance(tenant, str) and type(sequence) is int):
            return None
        if not isinstance(prev, str) or len(prev) != len("sha256:") + len(ZERO) or not prev.isascii():
            return None
        return cls(run, tenant, sequence - 1, prev.removeprefix("sha256:").encode())

    def go_on(self, middle: bytes, sequence: int, digest: bytes, instant: bytes) -> None:
        """Stand behind an entry to which others have led from here."""
        self.middle, self.sequence, self.digest, self.instant = middle, sequence, digest, instant

    def follow(self, text: bytes, claimed: bytes, cause: str | None = None) -> None:
        """Take the next entry: its stored text, the hex of its stored hash, the cause stored with it.

        Raises Tampered with the entry and the reason.
        """
        digest = sha256(text).hexdigest().encode()
        sequence = self.sequence + 1
        if digest != claimed:
            raise self._tampered(sequence, "its text does not hash to its entryHash: it was edited")
        end = len(text) - TAIL
        if not self.middle:
            self.middle = self.middle_of(text)
            if not self.middle:
                raise self._tampered(sequence, "its scope is not one of this tenant")
        if not text.endswith(b"%b%b%b%d%b" % (PREV, self.digest, self.middle, sequence, STAMP), 0, end):
            raise self._misplaced(text, sequence)
        instant = text[end:]
        if instant <= self.instant or instant.translate(DIGITS) != INSTANT:
            raise self._tampered(sequence, "its timestamp is no instant later than the one before")
        self._check_id(text, sequence, cause)
        self.sequence = sequence
        self.digest = digest
        self.instant = instant

    def _check_id(self, text: bytes, sequence: int, cause: str | None) -> None:
        """The id names this run and place, and ends in 16 hexadecimal digits and those of the cause."""
        head = HEAD.match(text)
        begins = b"%b%b%d:" % (b"" if head is None else head[0], self.prefix, sequence)
        end = text.find(KIND, len(begins))
        nonce = text[len(begins) : end]
        if (
            head is None
            or not text.startswith(begins)
            or end < 0
            or nonce.translate(HEX) != b"0" * len(nonce)
        ):
            raise self._tampered(sequence, MISPLACED)
        if len(nonce) < NONCE_DIGITS or nonce[NONCE_DIGITS:].decode() != cause_digits(cause):
            raise self._tampered(sequence, "its cause is not the one its id carries")

    def middle_of(self, text: bytes) -> bytes:
        """What `middle` is by the scope of a first entry, which every other entry must repeat; empty when it has none of this tenant."""
        entry = parse_entry(text)
        scope = entry.get("scope") if entry is not None else None
        if not isinstance(scope, dict) or scope.get("tenantId") != self.tenant:
            return b""
        return b'","runId":"%b","scope":%b,"sequence":' % (self.prefix[:-1], _written(scope))

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
        said = text.decode()
        entry, end = READER.raw_decode(said) if said[:1] == "{" else (None, -1)
        if end != len(said):
            entry = READER.decode(said)  # white space around it, or more
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _written(scope: dict[str, Any]) -> bytes:
    """In canonical form. Most runs have the scope of one before them."""
    try:
        "".join(scope.values())
    except TypeError:
        return _WRITER.encode(
            scope
        ).encode()  # of two values that are equal, and not written alike: 1 and true
    return _written_names(tuple(scope.items()))


@lru_cache(maxsize=64)
def _written_names(items: tuple[tuple[str, str], ...]) -> bytes:
    return _WRITER.encode(dict(items)).encode()


def check_format(tag: str) -> None:
    """Raises Unsupported for a format tag this verifier does not know."""
    if tag != FORMAT:
        raise Unsupported(f"the entry's format is {tag!r}; this verifier knows {FORMAT}")


def single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object's members. Raises ValueError when a key is there twice: two readers could take either."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a key is there twice")
    return built


READER = json.JSONDecoder(object_pairs_hook=single)
"""Reads JSON as `single` has it."""
