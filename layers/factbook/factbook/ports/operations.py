"""One write as its caller identifies it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Operation:
    """One write as its caller identifies it.

    `key` digests (tenant, principal, route, Idempotency-Key), or is random when no key came; `body` digests the request.
    """

    key: str
    body: str

    def at(self, position: int) -> "Operation":
        """The operation of one item of a batch."""
        return replace(self, key=f"{self.key}/{position}")
