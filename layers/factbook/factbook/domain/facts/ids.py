"""Identifiers: fact ids derived from the operation that makes them or from a key, and the short digests heads keep."""

import base64
import hashlib
import uuid

from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json


def fact_id_for(operation_key: str) -> str:
    """The UUID (version 8) of the fact an operation creates: the same operation always makes the same id."""
    return _uuid("fact:" + operation_key)


def keyed_fact_id(scope: Scope, fact_type: str, key: str) -> str:
    """The id of the fact that has this key among those of its type in exactly this scope (its tenant included)."""
    place = dump_json(dict(sorted(scope.to_json().items())))
    return _uuid("key:" + dump_json([scope.tenant_id, place, fact_type, key]))


def memory_id(tenant: str, owner: str, agent: str, key: str) -> str:
    """The id of what this agent remembers of this person under this key."""
    return _uuid("memory:" + dump_json([tenant, owner, agent, key]))


def erasure_id_for(operation_key: str) -> str:
    """The UUID of the erasure that an operation asks for."""
    return _uuid("erasure:" + operation_key)


def _uuid(identity: str) -> str:
    raw = bytearray(hashlib.sha256(identity.encode()).digest()[:16])
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def short_digest(text: str) -> str:
    """72 bits of SHA-256 as 12 base64url characters: enough to tell 16 operations of one fact apart."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:9]).decode()
