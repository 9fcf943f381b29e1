"""What callers send and get, as models: the request side of the API contract."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic.alias_generators import to_snake

from factbook.api.models import (
    ExpectVersion,
    FlagParam,
    PageQuery,
    ScopeParam,
    ScopeRequest,
    TypeName,
    VersionParam,
    WrittenType,
)
from factbook.domain.errors import ScopeInvalid
from factbook.domain.facts.fact import MAX_CAUSES, Fact, FactChanges, GeneratedBy, Source
from factbook.domain.fields import CamelModel, FactKey, Id, Instant, LogIdText, PathId
from factbook.domain.strict_json import check_depth
from factbook.usecases.facts.payloads import MAX_UPLOAD_BYTES, Content

MAX_BATCH = 100
MAX_REASON = 1_000
DIGEST = "[0-9a-f]{64}"

Clearable = Literal[
    "retention",
    "source",
    "causedByLogId",
    "generatedBy",
    "subjects",
    "validFrom",
    "validUntil",
    "observedAt",
]
"""Fields a revision may be without, by their names on the wire."""


def _shallow(content: Any) -> Any:
    check_depth(content)
    return content


def _digest(text: str) -> str:
    if re.fullmatch(DIGEST, text) is None:
        raise ValueError("must be 64 hexadecimal digits in lower case")
    return text


class _Asked(CamelModel):
    """What a source needs whose handler asks at its `uri`."""

    uri: str


def _with_uri(source: Source) -> Source:
    if source.lacks_uri:
        _Asked.model_validate({})  # says that it is missing, and where
    return source


Sha256 = Annotated[str, AfterValidator(_digest), Field(json_schema_extra={"pattern": f"^{DIGEST}$"})]


class GeneratedByRequest(GeneratedBy):
    run_id: PathId


class FactContent(FactChanges):
    """`content` is any JSON, null included, or a summary of `contentRef`; `contentHash` is a hint, never trusted."""

    caused_by_log_id: Annotated[list[LogIdText], Field(max_length=MAX_CAUSES)] | None = None
    generated_by: GeneratedByRequest | None = None
    source: Annotated[Source, AfterValidator(_with_uri)] | None = None
    content: Annotated[Any, AfterValidator(_shallow)] = None
    content_hash: Annotated[str, Field(max_length=256)] | None = None
    content_ref: Annotated[str, Field(min_length=1, max_length=2048)] | None = None

    def sent(self) -> Content:
        return Content(self.content, "content" in self.model_fields_set, self.content_ref)


class WriteFact(FactContent):
    """A new fact: it needs `content`, `contentRef` or both.

    `key` makes it the one current fact of its type and exact scope that has this key; `onExisting` says what to do when
    there is one.
    """

    type: WrittenType
    scope: ScopeRequest = ScopeRequest()
    key: FactKey | None = None
    on_existing: Literal["supersede"] | None = None
    agent_id: PathId | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "WriteFact":
        if "content" not in self.model_fields_set and self.content_ref is None:
            raise ValueError("content is missing: give any JSON, or a contentRef")
        if self.on_existing is not None and self.key is None:
            raise ValueError("onExisting needs a key")
        if self.agent_id is not None and self.key is not None:
            raise ValueError("a memory with a key is remembered: use POST /v1/memory/remember")
        return self


class WriteFacts(CamelModel):
    """Up to 100 independent writes."""

    items: Annotated[list[WriteFact], Field(min_length=1, max_length=MAX_BATCH)]


class SupersedeFact(FactContent):
    """The next revision: absent fields keep their values, an empty list clears, and so does being named in `clear`."""

    expect_version: ExpectVersion | None = None
    clear: Annotated[list[Clearable], Field(max_length=20)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _gives_nothing_that_it_clears(self) -> "SupersedeFact":
        both = [name for name in self.clear if to_snake(name) in self.model_fields_set]
        if both:
            raise ValueError(f"{', '.join(both)}: given and named in clear. Send one of both")
        return self

    def stated(self) -> dict[str, Any]:
        return super().stated() | {to_snake(name): None for name in self.clear}


class RequestUpload(CamelModel):
    """An upload of exactly these bytes: for a new fact (of `type` in `scope`), for the next revision of `factId`, or for
    the fact that has this `key`, whether it is there yet or not.
    """

    size: Annotated[int, Field(ge=1, le=MAX_UPLOAD_BYTES)]
    sha256: Sha256
    fact_id: Id | None = None
    type: WrittenType | None = None
    scope: ScopeRequest | None = None
    key: FactKey | None = None

    @model_validator(mode="after")
    def _for_one_fact(self) -> "RequestUpload":
        described = (self.type, self.scope, self.key)
        if self.fact_id is not None and any(given is not None for given in described):
            raise ValueError("send factId, or type, scope and key, not both")
        if self.key is not None and self.type is None:
            raise ValueError("key needs the type of its fact, and its scope")
        return self


class UploadAnswer(CamelModel):
    """PUT the bytes to `uploadUrl` with `headers`, then name `contentRef` in a write."""

    content_ref: str
    upload_url: str
    headers: dict[str, str]
    expires_at: str


class VerifyFact(CamelModel):
    expect_version: ExpectVersion | None = None


class HoldFact(CamelModel):
    """`reason` is kept for good in a plain entry of the log, which no erasure removes: name the matter, and no person."""

    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)]
    expect_version: ExpectVersion | None = None


class DeleteQuery(CamelModel):
    expect_version: VersionParam | None = None


class GetQuery(CamelModel):
    """`requireFresh` is about the current revision; `include` names one thing more to say of it."""

    version: VersionParam | None = None
    as_of: Instant | None = None
    include: Literal["indexState", "refreshState"] | None = None
    require_fresh: FlagParam | None = None

    @model_validator(mode="after")
    def _fresh_is_now(self) -> "GetQuery":
        if self.require_fresh and (self.version is not None or self.as_of is not None):
            raise ValueError("requireFresh is about the current revision: leave out version and asOf")
        return self


class KeyQuery(CamelModel):
    """`scope` is JSON, exact, the session included; without it the scope is the tenant's."""

    type: TypeName
    scope: Annotated[str, Field(min_length=1)] | None = None
    key: FactKey
    require_fresh: FlagParam | None = None


class ContentQuery(CamelModel):
    version: VersionParam | None = None


class ListQuery(PageQuery):
    """`scope` is JSON, partial: every key given must match. `typePrefix`: types that begin so."""

    type: TypeName | None = None
    type_prefix: TypeName | None = None
    scope: ScopeParam | None = None
    scope_kind: Annotated[str, Field(min_length=1)] | None = None
    scope_id: Id | None = None
    inherit: FlagParam | None = None
    as_of: Instant | None = None

    @model_validator(mode="after")
    def _one_way_to_name_types(self) -> "ListQuery":
        if self.type is not None and self.type_prefix is not None:
            raise ValueError("send type or typePrefix, not both")
        return self

    def container(self) -> dict[str, str]:
        """The scope key that `scopeKind` and `scopeId` ask for. Raises ScopeInvalid."""
        if self.scope_kind is None:
            if self.scope_id is not None or self.inherit is not None:
                raise ScopeInvalid("scopeId and inherit need a scopeKind: tenant, org or project.")
            return {}
        if self.scope_kind == "tenant":
            if self.scope_id is not None:
                raise ScopeInvalid("scopeKind tenant takes no scopeId: it is always your own tenant.")
            return {}
        if self.scope_kind not in ("org", "project"):
            raise ScopeInvalid("scopeKind is one of tenant, org and project.")
        if self.scope_id is None:
            raise ScopeInvalid(f"scopeKind {self.scope_kind} needs a scopeId.")
        return {f"{self.scope_kind}Id": self.scope_id}


class TypesQuery(PageQuery):
    """`scope` is JSON, partial: every key given must match."""

    scope: ScopeParam | None = None


class FactType(CamelModel):
    type: str


class TypePage(CamelModel):
    data: list[FactType]
    has_more: bool
    next_cursor: str | None = None


class FactPage(CamelModel):
    data: list[Fact]
    has_more: bool
    next_cursor: str | None = None


class WriteResult(CamelModel):
    """One item of a batch: the status it would have had alone, and its fact or its error."""

    status: int
    fact: Fact | None = None
    error: dict[str, Any] | None = None


class WriteResults(CamelModel):
    results: list[WriteResult]


class RefreshStateAnswer(CamelModel):
    """`nextDueAt`: when its source is asked next; `failures` in a row; `circuit`: of the source's host."""

    next_due_at: str | None = None
    failures: int = 0
    last_error: str | None = None
    circuit: Literal["closed", "open", "half-open"] | None = None


class FactAnswer(Fact):
    """A fact; with `include=indexState` whether searches find it, and why not wholly; with `include=refreshState` how its
    refreshing goes.
    """

    index_state: Literal["pending", "indexed", "failed"] | None = None
    index_problem: str | None = None
    refresh_state: RefreshStateAnswer | None = None
