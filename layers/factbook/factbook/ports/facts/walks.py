"""Walks over all facts, and what a removed fact leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head


class Remains(Protocol):
    """What is left of a fact whose head the table's time to live removed."""

    def remove(self, last: Fact) -> None:
        """Removes that life's revisions and payloads; another life of the same id keeps its own. Safe to repeat.

        Raises StorageUnavailable, Throttled when some may be left: repeat it.
        """
        ...


@dataclass(frozen=True)
class HeadPage:
    """Heads of every tenant, or of one; `next` resumes the walk, None at its end."""

    heads: Sequence[Head]
    next: str | None


class FactWalk(Protocol):
    def heads(self, tenant: str | None, after: str | None, limit: int) -> HeadPage:
        """Every head once, by cursor; what changes meanwhile is seen before or after its change."""
        ...
