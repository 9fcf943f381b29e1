"""Identifiers: fact ids derived from the operation that makes them, and the short digests heads keep."""

import base64
import hashlib
import uuid


def fact_id_for(operation_key: str) -> str:
    """The UUID (version 8) of the fact an operation creates: the same operation always makes the same id."""
    raw = bytearray(hashlib.sha256(b"fact:" + operation_key.encode()).digest()[:16])
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def short_digest(text: str) -> str:
    """72 bits of SHA-256 as 12 base64url characters: enough to tell 16 operations of one fact apart."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:9]).decode()
