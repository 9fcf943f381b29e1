"""One write as its caller identifies it."""

from dataclasses import dataclass, field, replace

from factbook.ports.deadline import NEVER, Deadline


@dataclass(frozen=True)
class Operation:
    """One write as its caller identifies it.

    `key` digests (tenant, principal, route, Idempotency-Key), or is random when no key came; `body` digests the request.
    `former_body` is its digest as the release before this one made it, from the bytes as sent: a request that was first
    sent to that release is a replay, too. The next release drops it.
    """

    key: str
    body: str
    former_body: str | None = None
    deadline: Deadline = field(default=NEVER, compare=False)
    """Past it the write begins nothing more and is refused: its caller would not hear of it."""

    def at(self, position: int) -> "Operation":
        """The operation of one item of a batch."""
        return replace(self, key=f"{self.key}/{position}")
