"""What requests and answers about erasures hold."""

from typing import Annotated, Literal

from pydantic import Field, RootModel, model_validator

from factbook.api.models import FlagParam
from factbook.domain.access.erasing import Selector, SelectorKind
from factbook.domain.facts.fact import Subject
from factbook.domain.fields import CamelModel, Id
from factbook.ports.erasure.records import Phase, Status

ONE_SELECTOR = "Name exactly one of factId, subject and conversationId"


class CreateErasure(CamelModel):
    """What is to be erased: one fact, one person (`projectId` narrows it to what stands in that project), or one conversation."""

    fact_id: Id | None = None
    subject: Subject | None = None
    project_id: Id | None = None
    conversation_id: Id | None = None

    @model_validator(mode="after")
    def _is_one_selector(self) -> "CreateErasure":
        if [self.fact_id, self.subject, self.conversation_id].count(None) != 2:
            raise ValueError(ONE_SELECTOR)
        if self.project_id is not None and self.subject is None:
            raise ValueError("projectId needs a subject: it narrows the erasure of a person")
        return self

    @property
    def selector(self) -> Selector:
        if self.fact_id is not None:
            return Selector("fact", self.fact_id)
        if self.subject is not None:
            return Selector(self.subject.kind, self.subject.id, self.project_id)
        return Selector("conversation", self.conversation_id or "")


class CreateQuery(CamelModel):
    """`dryRun=true`: counts and changes nothing."""

    dry_run: FlagParam | None = None


class ResumeErasure(CamelModel):
    """`force`: one that is under way begins again."""

    force: bool | None = None


class ShownSelector(CamelModel):
    """As a request says it."""

    fact_id: str | None = None
    subject: Subject | None = None
    project_id: str | None = None
    conversation_id: str | None = None


class WarningAnswer(CamelModel):
    code: str
    message: str


class ErasureAnswer(CamelModel):
    """An erasure. `selector` is shown until it has ended; `counts` are whole numbers by store; `matchable`: a replay after a
    restore finds again what it reached. `replayedBy`: who replayed it, or had its lost record put back; `requestedBy` of such a
    record is what the ledger says.
    """

    id: str
    selector_kind: SelectorKind
    selector: ShownSelector | None = None
    status: Status
    phase: Phase
    requested_by: str
    matchable: bool
    counts: dict[str, Annotated[int, Field(ge=0)]]
    attempts: int
    last_error: str | None = None
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    replayed_at: str | None = None
    replayed_by: str | None = None
    warnings: list[WarningAnswer] | None = None


class TrialAnswer(CamelModel):
    """What an erasure would come to now. `complete: false`: the tenant is larger than one request walks."""

    dry_run: Literal[True]
    counts: dict[str, Annotated[int, Field(ge=0)]]
    held_fact_ids: list[str]
    complete: bool


class CreatedOrTried(RootModel[ErasureAnswer | TrialAnswer]):
    """202 and the erasure; with `dryRun=true` 200 and what it would come to."""


class ErasurePage(CamelModel):
    data: list[ErasureAnswer]
    has_more: bool
    next_cursor: str | None = None
