"""The lines of an exported tenant: one record each, in the order in which an import may write them.

    header  policy  keys  notes  leaves  entries (run by run, newest first)  facts (head, its closed revisions)  end

Keys come before what they sealed, notes before the leaves that they sign for. Leaves come before entries, and the entries of a run newest first: a run is never
without the entry that its leaf commits to, nor does an append to it ever take the place of an entry that is to come. A
head comes before its revisions, so no revision is ever without a head. A payload comes before the record that names it.
"""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, ValidationError, model_validator

from factbook.domain import times
from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Fact, ReviewWhy
from factbook.domain.facts.ids import keyed_fact_id, memory_id
from factbook.domain.fields import CamelModel, CauseId, Id
from factbook.domain.log.chain import ZERO_HASH
from factbook.domain.log.entries import Kind
from factbook.domain.log.sealing import is_sealed_for
from factbook.domain.scope import Scope

FORMAT: Final = "factbook-export"
VERSION = 1
"""Of the file and of the records in it. It grows with every change that an older reader would take wrongly; a reader
knows every version before its own.
"""

KINDS = ("policy", "key", "note", "leaf", "entry", "blob", "fact", "revision")
"""Of lines that hold a record, in their order (the last three mixed). Besides there are the header, chunks of a payload and the end, which a file has and a
request has not.
"""

FACT_ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:@-][A-Za-z0-9._:@~-]{0,199}", re.ASCII)
"""What an imported fact's id may be: what stands in a key, in a path and in the name of an object as it is."""

PAYLOAD_NAME = re.compile(r"(?!\.{1,2}\Z)[!-.0-~]{1,256}", re.ASCII)
"""The last part of a payload's reference: no slash, and no step of a path."""

END_OF_TIME = "9999"
"""No year later than this one can be written."""

MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

Line = TypeVar("Line", bound=BaseModel)
Hash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Life = Annotated[int, Field(ge=0, lt=10**13)]
"""Epoch milliseconds, which stand in a key in 13 digits."""
Edition = Annotated[int, Field(ge=1, lt=2**53)]


def _as_written(text: str) -> str:
    if not _is_time(text):
        raise ValueError("is no time as a service writes it")
    return text


def _as_logged(text: str) -> str:
    if MICROS.fullmatch(text) is None or not _is_time(text[:23] + "Z") or text >= END_OF_TIME:
        raise ValueError("is no time as the log writes it")
    return text


def _before_the_end(text: str) -> str:
    if text >= END_OF_TIME:
        raise ValueError("is the end of time, and something may have to come after it")
    return text


def _is_time(text: str) -> bool:
    try:
        return times.parse_instant(text) == text
    except BadInput:
        return False


Written = Annotated[str, AfterValidator(_as_written)]
"""A time in its canonical form: keys are ordered by it."""
Happened = Annotated[Written, AfterValidator(_before_the_end)]
"""A time after which there is another one, for what comes next."""
Said = Annotated[str, StringConstraints(max_length=1_000)]
"""Words that a service made itself, such as `user:ann`."""


class Header(CamelModel):
    """The first line. `leaves`: how many of the tree are exported, which is what its notes sign for."""

    format: Literal["factbook-export"]
    version: int
    tenant: Id
    exported_at: str
    leaves: Count


Name = Annotated[str, StringConstraints(max_length=256)]
"""An id, or none."""


class KeyLine(CamelModel):
    """A generation of a data key without the key: what it sealed travels sealed."""

    project: Name = ""
    user: Name = ""
    participant: Name = ""
    thread: Name = ""
    generation: Annotated[int, Field(ge=1, lt=10**10)]
    begun_at: Written | None = None
    destroyed_at: Written | None = None


class LeafLine(CamelModel):
    index: Count
    run: Annotated[str, StringConstraints(pattern=r'^[^"\\\x00-\x1f]{1,256}$')]
    sequence: Count
    head: Hash
    salt: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){1,64}$")]


class NoteLine(CamelModel):
    """A checkpoint as it was published, and the verifier key it names."""

    size: Annotated[int, Field(ge=1, lt=10**12)]
    note: Annotated[str, StringConstraints(max_length=10_000)]
    vkey: Annotated[str, StringConstraints(max_length=1_000)]
    created_at: Said


class EntryLine(CamelModel):
    """An entry in its stored form: `text` is the canonical text, byte for byte."""

    text: str
    hash: Hash
    format: str
    cause: CauseId | None = None


class EntryText(CamelModel):
    """What the canonical text of an entry says. A payload of a person or a conversation is an envelope, or none."""

    id: str
    kind: Kind
    scope: Scope
    run_id: Id
    actor: Id | None = None
    timestamp: Annotated[str, AfterValidator(_as_logged)]
    sequence: Count
    payload: Any
    prev_hash: Hash

    @model_validator(mode="after")
    def _as_an_append_makes_it(self) -> "EntryText":
        if (self.sequence == 0) != (self.prev_hash == ZERO_HASH):
            raise ValueError("the first entry of a run, and no other, has nothing before it")
        if not is_sealed_for(self.scope, self.payload):
            raise ValueError("its scope names a person or a conversation, and its payload is not sealed")
        return self


class FactFields(Fact):
    """A revision, held to what a service writes: what orders it, finds it and is read of it must be what it seems."""

    type: Id
    version: Annotated[int, Field(ge=1, lt=10**10)]
    created_at: Happened
    updated_at: Happened
    kept_from: Annotated[Written | None, Field(exclude=True)] = None
    decided_because: Annotated[Said | None, Field(exclude=True)] = None
    review_why: Annotated[tuple[ReviewWhy, ...] | None, Field(exclude=True, min_length=1)] = None
    content_hash: Hash | None = None
    size: Count | None = None
    embedding_model: Said | None = None
    supersedes: Said | None = None
    verified_by: Said | None = None
    verified_at: Written | None = None
    invalidated_at: Happened | None = None
    invalidated_by: Said | None = None
    expires_at: Written | None = None
    key: Id | None = None
    agent_id: Id | None = None
    owner: Said | None = None
    confirmed_by: Said | None = None
    confirmed_at: Written | None = None

    @model_validator(mode="after")
    def _as_a_change_makes_it(self) -> "FactFields":
        if self.scope.participant_id is not None and self.scope.project_id is None:
            raise ValueError("its scope names a participant and no project")
        if (self.invalidated_at is None) != (self.invalidation_reason is None):
            raise ValueError("it says when it ended and not why, or why and not when")
        if not self.created_at <= self.updated_at <= (self.invalidated_at or self.updated_at):
            raise ValueError("its times are in no order")
        if self.key is not None and self.id != self._id_of(self.key):
            raise ValueError("its id is not the one that its key makes")
        return self

    def _id_of(self, key: str) -> str:
        if self.agent_id is None or self.owner is None:
            return keyed_fact_id(self.scope, self.type, key)
        return memory_id(self.scope.tenant_id, self.owner, self.agent_id, key)


class RefreshLine(CamelModel):
    """What is known of a source beside the revision (`RefreshState`)."""

    failures: Count = 0
    last_error: Literal["source-unavailable", "source-refused", "refresh-handler-missing"] | None = None
    retry_at: Written | None = None
    source_changed: bool = False
    asked_at: Written | None = None
    max_age: Count | None = None
    by_agent: bool = False


class BesideLine(CamelModel):
    """The confirmed text beside a proposal."""

    fact: dict[str, Any]
    edition: Edition
    life: Life | None = None
    refresh: RefreshLine | None = None


class ErasedLine(CamelModel):
    by: Id
    blobs: Count


class FactLine(CamelModel):
    """A fact's head, with all that the store keeps beside the revision."""

    fact: dict[str, Any]
    edition: Edition
    marks: list[Annotated[str, StringConstraints(pattern=r"^[^,]{24}[0-9]{1,10}$")]] = Field(
        default_factory=list
    )
    life: Life | None = None
    subjects: list[str] | None = None
    confirmed: BesideLine | None = None
    refresh: RefreshLine | None = None
    index_edition: Count | None = None
    erasure: ErasedLine | None = None


class RevisionLine(CamelModel):
    """A closed revision. `retyped`: the next one is of another type."""

    fact: dict[str, Any]
    life: Life | None = None
    retyped: bool = False


class BlobLine(CamelModel):
    """A payload that the next record names. `size` absent: it was gone when the export was made.

    `url`: in an answer of an export, where it can be downloaded.
    """

    fact_id: Id
    name: Annotated[str, StringConstraints(max_length=256)]
    life: Life | None = None
    size: Count | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    url: str | None = None


def read_line(model: type[Line], value: Any) -> Line:
    """A record's JSON as its model. Raises BadInput, which names the first field that is wrong and no value."""
    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = "/".join(str(step)[:100] for step in first["loc"])
        raise BadInput(f"{where or 'the record'}: {first['msg']}") from error
