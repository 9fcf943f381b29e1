"""Key parts that cannot collide: no two tuples of ids share a key, and no key passes DynamoDB's limits."""

import base64
import hashlib

MAX_PART_BYTES = 200


def part(text: str) -> str:
    """One id as a key part: `%`, `|` and a leading `~` escaped; above 200 bytes `~` and its SHA-256."""
    encoded = text.replace("%", "%25").replace("|", "%7C")
    if encoded.startswith("~"):
        encoded = "%7E" + encoded[1:]
    raw = encoded.encode()
    if len(raw) <= MAX_PART_BYTES:
        return encoded
    return "~" + base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")


def key(*parts: str) -> str:
    return "|".join(part(each) for each in parts)


def shard_of(text: str, shards: int) -> int:
    """A stable shard of an id, uniform over `shards`."""
    return hashlib.sha256(text.encode()).digest()[0] % shards
