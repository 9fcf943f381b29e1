"""What callers send to remember and to decide, and what they get."""

from typing import Annotated, Literal

from pydantic import Field

from factbook.api.facts.models import GeneratedByRequest
from factbook.api.models import ExpectVersion, FactVersion, PageQuery, ScopeRequest, WrittenType
from factbook.domain.access.owners import owner_of
from factbook.domain.access.principals import Principal
from factbook.domain.errors import ScopeInvalid
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import WINDOW_DAYS
from factbook.domain.fields import CamelModel, FactKey, Id, Instant, PathId
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.memories.store import ReviewState
from factbook.usecases.memories.reviewing import Decided
from factbook.usecases.memories.standing import own_scope

MAX_TEXT = 2_000
MAX_REASON = 1_000


class AgentRequest(CamelModel):
    """Which agent speaks, and its version where that is known."""

    id: PathId
    version: Id | None = None


class Remember(CamelModel):
    """What an agent remembers of one person: the caller, or the person in `scope`.

    `key` names what it is about: the same key again corrects it. `reach`: about the person (`user`), or about the account,
    which an administrator has to confirm; left out, as the memory of that key is. `keepDays`: from now on.
    """

    agent: AgentRequest
    scope: ScopeRequest | None = None
    type: WrittenType
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    key: FactKey | None = None
    reach: Literal["user", "account"] | None = None
    keep_days: Annotated[int, Field(ge=1, le=36_525)] = WINDOW_DAYS
    valid_until: Instant | None = None
    generated_by: GeneratedByRequest | None = None

    def statement(self, principal: Principal) -> Statement:
        """Raises ScopeInvalid for a scope that is not exactly one person's, PermissionDenied for another tenant's."""
        scope = person(self.scope, principal) or own_scope(principal)
        if scope is None:
            raise ScopeInvalid(
                "Name the person: a scope of exactly a userId, or a projectId with a participantId."
            )
        return Statement(
            agent_id=self.agent.id,
            agent_version=self.agent.version,
            scope=scope,
            owner=owner_of(scope),
            type=self.type,
            text=self.text,
            key=self.key,
            about=self.reach,
            keep_days=self.keep_days,
            valid_until=self.valid_until,
            generated_by=self.generated_by,
        )


class Remembered(Fact):
    """The memory; `similarKeys`: keys of the same person and agent with the same words in another order or form."""

    similar_keys: list[str]


class Decide(CamelModel):
    """A decision about the version that was looked at."""

    expect_version: ExpectVersion | None = None
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)] | None = None

    def about(self, fact_id: str) -> Decided:
        return Decided(fact_id, self.expect_version, self.reason)


class MemoriesQuery(CamelModel):
    """`scope` is JSON, exactly one person's; without it the caller's own."""

    scope: Annotated[str, Field(min_length=1)] | None = None


class Memories(CamelModel):
    """Oldest first, the person's own before the account's; `characters` is the size of their texts.

    `omitted`: those behind them that one answer has no room for.
    """

    data: list[Fact]
    characters: int
    omitted: list[FactVersion] | None = None


class ReviewsQuery(PageQuery):
    state: ReviewState = "open"


class ReviewAnswer(CamelModel):
    """`replaces`: the text that stands if the fact is rejected. `reason`: why it was rejected, if somebody said."""

    why: list[str]
    since: str
    fact: Fact
    replaces: Fact | None = None
    reason: str | None = None


class Reviews(CamelModel):
    data: list[ReviewAnswer]
    has_more: bool
    next_cursor: str | None = None


def person(scope: ScopeRequest | None, principal: Principal) -> Scope | None:
    """The scope of exactly one person, None where none is given. Raises ScopeInvalid, PermissionDenied."""
    if scope is None:
        return None
    resolved = scope.resolve(principal)
    owner_of(resolved)
    return resolved
