"""Records of an export, as a service would have written them."""

import base64
import uuid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factbook.canonical import log_canonical
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.transitions import open_fact
from factbook.domain.log.chain import text_hash
from factbook.domain.log.entries import Draft, hashed_fields, place_after
from factbook.domain.log.runs import Tail
from factbook.domain.scope import Scope
from factbook.domain.strict_json import Json
from factbook.ports.facts.store import Head, Mark
from factbook.ports.log.checkpoints import PublishedNote
from factbook.usecases.portability.records import head_line
from factbook.verify.notes import VerifierKey, key_id, origin_of

AT = "2026-01-01T00:00:00.000Z"


def a_fact(tenant: str) -> list[Json]:
    writer = Principal(tenant, Actor(kind="user", id="ann"), admin=True)
    payload = Payload(text="1", content_hash=text_hash("1"), size=1)
    fact = open_fact(
        str(uuid.uuid4()), "note", Scope(tenant_id=tenant), FactChanges(), payload, writer, AT, None, None
    )
    return [{"fact": head_line(Head.first(fact, Mark("k" * 12, "b" * 12, 1)))}]


def a_run(tenant: str) -> list[Json]:
    """Of two entries, the last one first."""
    tail: Tail | None = None
    lines: list[Json] = []
    for number in range(2):
        draft, scope = (
            Draft("tool-call", None, number, str(number), None, f"{number:016x}"),
            Scope(tenant_id=tenant),
        )
        place = place_after(tail, "r1", draft, f"2026-01-01T00:00:00.{number:06d}Z")
        text = log_canonical(hashed_fields(draft, scope, place, number))
        tail = Tail(number, text_hash(text), place.timestamp, scope)
        lines.append({"entry": {"text": text, "hash": tail.entry_hash, "format": "jcs-sha256-v1"}})
    return lines[::-1]


def signed_note(size: int, tenant: str = "t") -> PublishedNote:
    """A checkpoint of a key that nobody else has."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    key = VerifierKey("k", key_id("k", public), public)
    text = f"{origin_of('k', tenant)}\n{size}\n{base64.b64encode(b'r' * 32).decode()}\n"
    signature = base64.b64encode(key.key_id + private.sign(text.encode())).decode()
    return PublishedNote(size, f"{text}\n— k {signature}\n", key.text, AT)
