"""What callers send to the log and get from it."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from factbook.api.models import PageQuery, ScopeParam, ScopeRequest, _number
from factbook.domain.access.principals import Principal
from factbook.domain.fields import CamelModel, Id, LogIdText, PathId
from factbook.domain.log.entries import MAX_ENTRIES, Kind, LogEntry
from factbook.domain.scope import Scope
from factbook.usecases.log.appending import Request

SequenceParam = Annotated[int, Field(ge=0, le=10**16 - 1), BeforeValidator(_number)]
"""A sequence has up to 16 digits, as in a log id; DynamoDB counts no further than 38."""

SizeParam = Annotated[int, Field(ge=1), BeforeValidator(_number)]


class EntryRequest(CamelModel):
    """An entry to append. Without `scope` it takes the run's; without `actor` its caller is the actor."""

    kind: Kind
    payload: Any = None
    actor: Id | None = None
    scope: ScopeRequest | None = None
    caused_by_log_id: LogIdText | None = None

    def request(self, principal: Principal) -> Request:
        scope = None if self.scope is None else self.scope.resolve(principal)
        return Request(self.kind, self.payload, self.actor, self.caused_by_log_id, scope)


class AppendEntries(CamelModel):
    """1 to 100 entries, all or nothing. `afterSequence: n`: the first gets n + 1; -1 opens the run."""

    entries: Annotated[list[EntryRequest], Field(min_length=1, max_length=MAX_ENTRIES)]
    after_sequence: Annotated[int, Field(ge=-1)] | None = None


class EntriesAnswer(CamelModel):
    entries: list[LogEntry]


class ReadRunQuery(PageQuery):
    """`sinceSequence` is the first to come. `form=stored` answers what is kept; `checkpointSize` proves its leaves."""

    since_sequence: SequenceParam = 0
    form: Literal["plain", "stored"] = "plain"
    checkpoint_size: SizeParam | None = None


class LeafAnswer(CamelModel):
    """A run's head as the tree commits to it; `proof` leads to the root of the size asked for."""

    index: int
    run_id: str
    sequence: int
    head: str
    salt: str
    proof: list[str] | None = None


class StoredEntryAnswer(CamelModel):
    """`canonical` is the authority: the text that hashes to `entryHash`."""

    sequence: int
    format: str
    entry_hash: str
    canonical: str
    caused_by_log_id: str | None = None


class RunPage(CamelModel):
    """`leaves` come with the stored form: those of this page's part of the run."""

    data: list[LogEntry | StoredEntryAnswer]
    has_more: bool
    next_cursor: str | None = None
    leaves: list[LeafAnswer] | None = None


class RunsQuery(PageQuery):
    """`scope` is JSON, partial: every key given must match."""

    scope: ScopeParam | None = None


class ListedRun(CamelModel):
    """A run by its first entry."""

    run_id: str
    scope: Scope
    started_at: str


class ListedRuns(CamelModel):
    data: list[ListedRun]
    has_more: bool
    next_cursor: str | None = None


class ThreadQuery(PageQuery):
    """Oldest first, or `order=desc`. The scope ids narrow: a thread's name may be used in several projects."""

    order: Literal["asc", "desc"] = "asc"
    project_id: Id | None = None
    user_id: Id | None = None
    participant_id: Id | None = None

    def wanted(self) -> dict[str, str]:
        return self.model_dump(
            by_alias=True, exclude_none=True, include={"project_id", "user_id", "participant_id"}
        )


class EntryPage(CamelModel):
    data: list[LogEntry]
    has_more: bool
    next_cursor: str | None = None


class ProofQuery(CamelModel):
    """`olderSize`: prove, too, that the checkpoint extends the older one of that size."""

    sequence: SequenceParam
    older_size: SizeParam | None = None


class CheckpointAnswer(CamelModel):
    """A C2SP checkpoint note. `vkey` is the key it names: get the key you trust from your operator, not from here.

    `consistency` proves that the tree of the size asked for extends this one. `more`: a checkpoint made on demand could
    not wait for all runs that grew; the next ones, each minute, have them.
    """

    size: int
    note: str
    vkey: str | None = None
    created_at: str | None = None
    consistency: list[str] | None = None
    more: bool | None = None


class CheckpointsQuery(PageQuery):
    """`checkpointSize`: prove of each note that the tree of that size extends it."""

    checkpoint_size: SizeParam | None = None


class ProofAnswer(CamelModel):
    """The entry and those up to the next checkpointed head, that head's leaf, and its way to the checkpoint's root."""

    entries: list[StoredEntryAnswer]
    has_more: bool
    leaf: LeafAnswer
    inclusion: list[str]
    checkpoint: CheckpointAnswer
    consistency: dict[str, Any] | None = None


class FindingAnswer(CamelModel):
    sequence: int | None = None
    message: str


class VerificationAnswer(CamelModel):
    """What one call checked; `nextCursor` goes on. A failing run ends at its first finding."""

    holds: bool
    checked: int
    last_sequence: int | None = None
    entry_hash: str | None = None
    finding: FindingAnswer | None = None
    has_more: bool
    next_cursor: str | None = None


class MakeCheckpoint(CamelModel):
    """`runIds`: runs that must be in it even if their newest entries were appended this second."""

    run_ids: Annotated[list[PathId], Field(max_length=100)] = Field(default_factory=list)


class CheckpointPage(CamelModel):
    data: list[CheckpointAnswer]
    has_more: bool
    next_cursor: str | None = None


class LeavesQuery(CamelModel):
    """Leaves from index `start`; `checkpointSize` ends the walk there."""

    start: SequenceParam = 0
    checkpoint_size: SizeParam | None = None


class LeafPage(CamelModel):
    """`next` is where to start again."""

    data: list[LeafAnswer]
    has_more: bool
    next: int | None = None
