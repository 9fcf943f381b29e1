"""One write as its caller identifies it."""

from dataclasses import dataclass, field

from factbook.ports.deadline import NEVER, Deadline


@dataclass(frozen=True)
class Operation:
    """One write as its caller identifies it.

    `key` digests (tenant, principal, route, Idempotency-Key), or is random when no key came; `body` digests the request.
    `former_bodies` are its digests as the release before this one made them (of the bytes as sent; of a whole batch): a
    request that was first sent to that release is a replay, too. The next release drops them.
    """

    key: str
    body: str
    former_bodies: tuple[str, ...] = ()
    deadline: Deadline = field(default=NEVER, compare=False)
    """Past it the write begins nothing more and is refused: its caller would not hear of it."""

    def at(self, position: int, body: str) -> "Operation":
        """The operation of one item of a batch, with the item's own digest."""
        return Operation(f"{self.key}/{position}", body, (self.body, *self.former_bodies), self.deadline)
