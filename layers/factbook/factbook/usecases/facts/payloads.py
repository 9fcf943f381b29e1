"""What a fact's content becomes: inline text, an object of the fact's own, or an upload it was granted.

An upload's reference names the fact it is for and carries a MAC, so a write can only name bytes that were granted to
its own tenant, for its own fact: two facts never share an object, and an erasure of one cannot reach the other. An object
that was stored for a fact that is not there yet has nobody but its own name to tell whom it is about, so that begins with
digests of who and what its scope names.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from factbook.canonical import content_canonical
from factbook.domain import times
from factbook.domain.access.erasing import Selector, selectors_of_scope
from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Fact, Payload
from factbook.domain.scope import Scope
from factbook.domain.strict_json import check_depth, dump_json
from factbook.usecases.facts.ports import FactPorts

INLINE_BYTES = 64 * 1024
MAX_UPLOAD_BYTES = 5 * 1024**3
UPLOAD_SECONDS = 3600
YOUNG_SECONDS = 24 * 3600
"""An upload that is older when a write names it might be removed as pending before the write claims it."""

_MAC_CHARS = 32
_WHOM_CHARS = 12
_BEHIND_WHOM = "."
_FOR_KEY = "k"
"""Begins the names of uploads for keyed facts; the MAC is over it too."""


@dataclass(frozen=True)
class Content:
    """What a write says of its content: a value, a reference to an upload with an optional summary, or nothing."""

    value: Any = None
    given: bool = True
    ref: str | None = None

    def check(self) -> None:
        """Raises BadInput for nesting that is too deep."""
        check_depth(self.value)

    @cached_property
    def value_hash(self) -> str:
        """The value's contentHash; of a large one it takes a while."""
        return "sha256:" + hashlib.sha256(content_canonical(self.value)).hexdigest()


def store_payload(
    ports: FactPorts, tenant: str, fact_id: str, content: Content, scope: Scope | None = None
) -> Payload:
    """Keep the content of a fact; `scope`: of one that is not there yet.

    Raises BadInput for a reference that was not granted or not uploaded yet.
    """
    if content.ref is not None:
        return _uploaded(ports, tenant, fact_id, content)
    text = dump_json(content.value)
    raw = text.encode()
    digest = content_hash(ports, tenant, fact_id, content)
    if len(raw) <= INLINE_BYTES:
        return Payload(text=text, content_hash=digest, size=len(raw))
    ref = ports.blobs.new_ref(tenant, fact_id, _whom(ports, tenant, scope) + secrets.token_hex(16))
    ports.blobs.put(ref, raw)
    return Payload(text=None, content_hash=digest, size=len(raw), content_ref=ref)


def content_hash(ports: FactPorts, tenant: str, fact_id: str, content: Content) -> str:
    """What `contentHash` the content would have; nothing is stored or claimed. Raises BadInput as `store_payload`."""
    if content.ref is not None:
        _, sha256 = _found(ports, tenant, fact_id, content.ref)
        return f"sha256:{sha256}"
    return content.value_hash


def grant_upload(
    ports: FactPorts,
    tenant: str,
    fact_id: str,
    size: int,
    sha256: str,
    *,
    keyed: bool = False,
    scope: Scope | None = None,
    operation_key: str | None = None,
) -> tuple[str, str]:
    """A reference for one fact's upload of exactly these bytes, and the presigned URL to PUT them to.

    `keyed`: the fact has a key, so that no write without one may take its id. `scope`: the fact's, as far as it is known.
    `operation_key`: asked again with the same, the same bytes for the same fact have the same reference.
    """
    # The nonce tells when it was granted: a write that names it knows how long it may stay pending. Of what may be granted
    # again it says the beginning of time: nobody knows when it was first, so the write claims it before it names it.
    if operation_key is None:
        granted, unique = _seconds(ports), secrets.token_hex(12)
    else:
        asked = dump_json([operation_key, fact_id, size, sha256])
        granted, unique = 0, hashlib.sha256(asked.encode()).hexdigest()[:24]
    whom = _whom(ports, tenant, scope)
    nonce = f"{whom}{_FOR_KEY if keyed else ''}{granted:08x}{unique}"
    ref = ports.blobs.new_ref(tenant, fact_id, nonce + _mac(ports, tenant, fact_id, nonce))
    return ref, ports.blobs.upload_url(ref, size, sha256, UPLOAD_SECONDS)


def fact_of(ports: FactPorts, tenant: str, ref: str) -> str:
    """The fact an upload was granted for. Raises BadInput for a reference the tenant was never given."""
    *_, fact_id, name = ("", *ref.split("/"))
    nonce, mac = name[:-_MAC_CHARS], name[-_MAC_CHARS:]
    known = ports.blobs.new_ref(tenant, fact_id, name) == ref
    if not known or not hmac.compare_digest(mac.encode(), _mac(ports, tenant, fact_id, nonce).encode()):
        raise BadInput(
            "This contentRef was not given to you by POST /v1/memory/blobs. Upload the content there first."
        )
    return fact_id


def is_as_written(ports: FactPorts, tenant: str, fact: Fact) -> bool:
    """Whether the object of a fact's content still has the size, and that of an upload the bytes, that were written.

    What the service stored of a request is told by its size alone: its contentHash is not over its bytes.
    """
    ref = fact.content_ref or ""
    there = ports.blobs.stat(ref)
    if there is None or there[0] != fact.size:
        return False
    try:
        fact_of(ports, tenant, ref)
    except BadInput:  # nobody was granted it, so it is no upload
        return True
    return fact.content_hash == f"sha256:{there[1]}"


def fact_without_key_of(ports: FactPorts, tenant: str, ref: str) -> str:
    """As `fact_of`, for a write without a key. Raises BadInput, too, for an upload that was granted for a keyed fact."""
    fact_id = fact_of(ports, tenant, ref)
    if _unique_part(ref).startswith(_FOR_KEY):
        raise BadInput(
            "This contentRef was given for a fact with a key. Send type, scope and key as you did there."
        )
    return fact_id


def summary_of(content: Content) -> str | None:
    """The text that stands beside an upload."""
    return dump_json(content.value) if content.ref is not None and content.given else None


def _uploaded(ports: FactPorts, tenant: str, fact_id: str, content: Content) -> Payload:
    ref = content.ref or ""
    size, sha256 = _found(ports, tenant, fact_id, ref)
    summary = summary_of(content)
    if summary is not None and len(summary.encode()) > INLINE_BYTES:
        raise BadInput("The summary beside a contentRef may have 64 KB. Shorten it.")
    if not 0 <= _seconds(ports) - _granted(ref) < YOUNG_SECONDS:
        ports.blobs.claim(ref)
    return Payload(text=summary, content_hash=f"sha256:{sha256}", size=size, content_ref=ref)


def _found(ports: FactPorts, tenant: str, fact_id: str, ref: str) -> tuple[int, str]:
    """Size and SHA-256 of what was uploaded for this fact."""
    if fact_of(ports, tenant, ref) != fact_id:
        raise BadInput(
            "This contentRef was given for another fact. Ask POST /v1/memory/blobs for one of this fact."
        )
    there = ports.blobs.stat(ref)
    if there is None or not there[1]:
        raise BadInput(
            "Nothing was uploaded to this contentRef yet. PUT the bytes to its uploadUrl, then write."
        )
    return there


def _granted(ref: str) -> int:
    """When an upload was granted, in seconds since 1970."""
    return int(_unique_part(ref).removeprefix(_FOR_KEY)[:8], 16)


def _unique_part(ref: str) -> str:
    """The name of an object without the digests before it."""
    return ref.rpartition("/")[2].rpartition(_BEHIND_WHOM)[2]


def whom_digest(ports: FactPorts, tenant: str, selector: Selector) -> str:
    """What the name of an object bears that is stored for a fact which this selector would reach by its scope."""
    message = dump_json([tenant, selector.kind, selector.id, selector.project]).encode()
    return hmac.new(ports.signing_key(), b"whom:" + message, "sha256").hexdigest()[:_WHOM_CHARS]


def whom_in(name: str) -> frozenset[str]:
    """The digests in an object's name."""
    return frozenset(name.split(_BEHIND_WHOM)[:-1])


def _whom(ports: FactPorts, tenant: str, scope: Scope | None) -> str:
    named = () if scope is None else selectors_of_scope(scope)
    digests = sorted(whom_digest(ports, tenant, selector) for selector in named)
    return "".join(digest + _BEHIND_WHOM for digest in digests)


def _seconds(ports: FactPorts) -> int:
    return times.epoch_ms(ports.clock.now()) // 1000


def _mac(ports: FactPorts, tenant: str, fact_id: str, nonce: str) -> str:
    message = dump_json([tenant, fact_id, nonce]).encode()
    return hmac.new(ports.signing_key(), b"upload:" + message, "sha256").hexdigest()[:_MAC_CHARS]
