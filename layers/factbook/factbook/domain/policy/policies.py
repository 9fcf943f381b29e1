"""What a tenant's administrators decide once for many writes: how long to keep, what to search."""

from typing import Annotated, Literal

from pydantic import Field

from factbook.domain.fields import CamelModel
from factbook.domain.policy.retention import KeepLimits

MAX_TYPES = 500

IndexName = Literal["keyword", "semantic"]
EVERY_INDEX: tuple[IndexName, ...] = ("keyword", "semantic")


class TypePolicy(CamelModel):
    """Of one type. `index` names the indexes its facts populate (an empty list keeps them out of search), `retention`
    limits those whose writes do not say.
    """

    index: Annotated[list[IndexName], Field(max_length=2)] | None = None
    retention: KeepLimits | None = None


class Ceilings(CamelModel):
    """How many memories there may be: of one person with one agent, what waits included, and confirmed ones of the account
    with one agent. They stand before every conversation, so each costs all of them.
    """

    memories_per_agent: Annotated[int, Field(ge=1, le=1_000)] = 200
    account_per_agent: Annotated[int, Field(ge=1, le=1_000)] = 100


class Policy(CamelModel):
    """A tenant's policy; it applies to writes from its own on. Absent parts are the defaults."""

    retention: KeepLimits | None = None
    types: Annotated[dict[str, TypePolicy], Field(max_length=MAX_TYPES)] = Field(default_factory=dict)
    ceilings: Ceilings | None = None

    def run_out(self, now: str) -> list[tuple[str, ...]]:
        """Where it says to keep until what has passed: every write that this limits would be refused."""
        limits = {("retention",): self.retention} | {
            ("types", name, "retention"): each.retention for name, each in self.types.items()
        }
        return [
            (*where, "keepUntil") for where, keep in limits.items() if keep is not None and keep.run_out(now)
        ]

    def indexes_of(self, fact_type: str) -> tuple[IndexName, ...]:
        """The indexes that facts of a type populate: every one unless the policy says otherwise."""
        stated = self.types.get(fact_type)
        return EVERY_INDEX if stated is None or stated.index is None else tuple(stated.index)

    @property
    def limits(self) -> Ceilings:
        return self.ceilings or Ceilings()

    def retention_of(self, fact_type: str) -> KeepLimits | None:
        """The type's default, else the tenant's."""
        stated = self.types.get(fact_type)
        return stated.retention if stated is not None and stated.retention is not None else self.retention
