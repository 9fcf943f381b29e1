"""What a tenant's administrators decide once for many writes: how long to keep, what to search, how much to remember."""

from typing import Annotated, Literal

from pydantic import Field

from .facts import Instant
from .scope import CamelModel

MEMORIES_PER_OWNER = 200
MAX_TYPES = 500

IndexName = Literal["keyword", "semantic"]
EVERY_INDEX: tuple[IndexName, ...] = ("keyword", "semantic")


class KeepDefault(CamelModel):
    """How long facts are kept whose write does not say: the later of both limits."""

    keep_days: Annotated[int, Field(ge=1, le=36_525)] | None = None
    keep_until: Instant | None = None


class TypePolicy(CamelModel):
    """Of one type. `index` names the indexes its facts populate; an empty list keeps them out of search."""

    index: Annotated[list[IndexName], Field(max_length=2)] | None = None
    retention: KeepDefault | None = None


class Ceilings(CamelModel):
    memories_per_owner: Annotated[int, Field(ge=0, le=100_000)] | None = None


class Policy(CamelModel):
    """A tenant's policy; it applies to writes from its own on. Absent parts are the defaults."""

    retention: KeepDefault | None = None
    types: Annotated[dict[str, TypePolicy], Field(max_length=MAX_TYPES)] = Field(default_factory=dict)
    ceilings: Ceilings = Ceilings()

    def indexes_of(self, fact_type: str) -> tuple[IndexName, ...]:
        """The indexes that facts of a type populate: every one unless the policy says otherwise."""
        stated = self.types.get(fact_type)
        return EVERY_INDEX if stated is None or stated.index is None else tuple(stated.index)

    def retention_of(self, fact_type: str) -> KeepDefault | None:
        """The type's default, else the tenant's."""
        stated = self.types.get(fact_type)
        return stated.retention if stated is not None and stated.retention is not None else self.retention

    @property
    def memories_per_owner(self) -> int:
        ceiling = self.ceilings.memories_per_owner
        return MEMORIES_PER_OWNER if ceiling is None else ceiling
