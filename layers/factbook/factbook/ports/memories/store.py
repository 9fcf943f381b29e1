"""Memories as the standing sets and the reviews find them. Eventually consistent; the heads decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.ports.facts.store import Head

ReviewState = Literal["open", "rejected"]


@dataclass(frozen=True)
class ReviewRow:
    """`order`: since when it waits, and the fact; newest first is descending."""

    order: str
    fact_id: str


class MemoryIndex(Protocol):
    """Every operation may raise Throttled or StorageUnavailable. What one owner or account has is read to a bound, which is
    past every ceiling; what ran out by `now` and was not removed yet takes nothing of it.
    """

    def of_owner(self, tenant: str, owner: str, agent: str, now: str) -> Sequence[Head]:
        """Current memories of one person with one agent: what waits included, what was rejected not.

        A proposal over a confirmed memory is two: its head, past its window too, and the confirmed text (`beside`). In no
        order.
        """
        ...

    def of_account(self, tenant: str, agent: str, now: str) -> Sequence[Head]:
        """Confirmed memories of the account with one agent: heads, and texts beside proposals. In no order."""
        ...

    def reviews(
        self, tenant: str, state: ReviewState, shard: int, before: str, limit: int
    ) -> tuple[list[ReviewRow], bool]:
        """Rows of one shard with order < `before`, newest first; whether more remain."""
        ...

    @property
    def review_shards(self) -> int: ...
