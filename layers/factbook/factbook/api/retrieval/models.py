"""What callers send to find facts, and what they get."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from factbook.api.models import MAX_LIMIT, FactVersion, ScopeRequest, TypeName
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Fact, Subject, Trust
from factbook.domain.fields import CamelModel, Id, Instant, PathId
from factbook.usecases.retrieval.context import Intent, IntentScope, Turn
from factbook.usecases.retrieval.retrieve import Question
from factbook.usecases.retrieval.searching import Mode

RETRIEVE_LIMIT = 10
MAX_CHOICES = 100
MAX_AFTER = 20
MAX_INTENTS = 10

RetrieveLimit = Annotated[int, Field(ge=1), AfterValidator(lambda limit: min(limit, MAX_LIMIT))]
Text = Annotated[str, Field(min_length=1)]
Choices = Annotated[list[TypeName], Field(min_length=1, max_length=MAX_CHOICES)]
"""Types to choose from. An empty list would read as every type, so it is refused."""


class Written(CamelModel):
    """A write that the answer has to know of."""

    id: Id
    version: Annotated[int, Field(ge=1)]


class Retrieve(CamelModel):
    """A search. `list` needs no query; every other field narrows what is found. `agent`: no other agent's memories."""

    mode: Mode
    query: Text | None = None
    source: Literal["facts", "conversations"] = "facts"
    type: TypeName | None = None
    types: Choices | None = None
    type_prefix: TypeName | None = None
    agent: PathId | None = None
    scope: ScopeRequest = ScopeRequest()
    trust: Annotated[list[Trust], Field(min_length=1)] | None = None
    subjects: Annotated[list[Subject], Field(min_length=1, max_length=MAX_CHOICES)] | None = None
    valid_at: Instant | None = None
    min_score: float | None = None
    limit: RetrieveLimit = RETRIEVE_LIMIT
    embedding_model: Text | None = None
    after: Annotated[list[Written], Field(max_length=MAX_AFTER)] = Field(default_factory=list)
    require_fresh: bool = False

    @model_validator(mode="after")
    def _one_way_to_name_types(self) -> "Retrieve":
        if sum(given is not None for given in (self.type, self.types, self.type_prefix)) > 1:
            raise ValueError("send one of type, types and typePrefix")
        return self

    def question(self, principal: Principal) -> Question:
        """Raises BadInput for a search without a query or a list with one, PermissionDenied for another tenant's scope."""
        if self.query is None and self.mode != "list":
            raise BadInput('query is missing: say what to find, or use mode "list".')
        self._require_list_without_search()
        subjects = self.subjects or ()
        return Question(
            mode=self.mode,
            text=self.query or "",
            limit=self.limit,
            types=(self.type,) if self.type is not None else tuple(self.types or ()),
            type_prefix=self.type_prefix,
            scope=self.scope.wanted(principal),
            trust=tuple(self.trust or ()),
            subjects=tuple(f"{subject.kind}:{subject.id}" for subject in subjects),
            valid_at=self.valid_at,
            min_score=self.min_score,
            embedding_model=self.embedding_model,
            after=tuple((write.id, write.version) for write in self.after),
            agent=self.agent,
            require_fresh=self.require_fresh,
        )

    def _require_list_without_search(self) -> None:
        sent = [
            name for name, value in (("query", self.query), ("minScore", self.min_score)) if value is not None
        ]
        if self.mode == "list" and sent:
            raise BadInput(
                f"A list searches nothing and has no scores. Leave out {' and '.join(sent)}, or use another mode.",
            )


class Result(CamelModel):
    """A fact, or a message of a conversation with those before and after it. No score in a list."""

    fact: Fact | None = None
    entry: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    score: float | None = None


class Retrieved(CamelModel):
    """Best first. `degraded` says what the answer had to do without; `lookedBackTo` how far a list looked that is not whole:
    to facts first written then.
    """

    results: list[Result]
    degraded: str | None = None
    looked_back_to: str | None = None


class IntentRequest(CamelModel):
    """One thing to remember: which types, whose, and how to look for them; by meaning where there is no index of words."""

    types: Choices | None = None
    type_prefix: TypeName | None = None
    scope: IntentScope = "tenant"
    mode: Mode = "both"
    limit: RetrieveLimit = RETRIEVE_LIMIT

    @model_validator(mode="after")
    def _one_way_to_name_types(self) -> "IntentRequest":
        if self.types and self.type_prefix is not None:
            raise ValueError("send types or typePrefix, not both")
        return self


class ContextRequest(CamelModel):
    """The turn that is about to be answered. With `agent` what that agent remembers of the person in `scope`, or of the
    caller, stands first in the block.
    """

    query: Text | None = None
    intents: Annotated[list[IntentRequest], Field(min_length=1, max_length=MAX_INTENTS)]
    scope: ScopeRequest = ScopeRequest()
    agent: PathId | None = None
    instruction_types: Choices | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None

    def turn(self, principal: Principal) -> Turn:
        """Raises BadInput when an intent searches and there is no query, PermissionDenied for another tenant's scope."""
        if self.query is None and any(intent.mode != "list" for intent in self.intents):
            raise BadInput(
                'query is missing: say what the turn is about, or use mode "list" in every intent.'
            )
        return Turn(
            query=self.query or "",
            intents=tuple(
                Intent(
                    tuple(each.types or ()),
                    each.scope,
                    each.mode if "mode" in each.model_fields_set else None,
                    each.limit,
                    each.type_prefix,
                )
                for each in self.intents
            ),
            scope=self.scope.wanted(principal),
            instruction_types=frozenset(self.instruction_types or ()),
            max_tokens=self.max_tokens,
            agent=self.agent,
        )


class ContextAnswer(CamelModel):
    """`system` goes into the system message, `message` right before the user's; it is empty when nothing was found.

    `facts` are in either, `omitted` were found but did not fit, both best first.
    """

    system: str
    message: str
    facts: list[FactVersion]
    omitted: list[FactVersion]
    warnings: list[str] | None = None
    degraded: str | None = None


class IndexJobAnswer(CamelModel):
    """A build of a new search index, or a repair of the one in use: running, or the last that was done.

    How many records it met is for operators: they are of all tenants.
    """

    kind: Literal["build", "repair"]
    index: str
    phase: str
    started_at: str
    updated_at: str


class IndexProgress(CamelModel):
    """`waiting`: records of the caller's tenant that are to be tried again, counted up to 1,000."""

    job: IndexJobAnswer | None = None
    waiting: int


class Status(CamelModel):
    """Which search there is, which build serves, the memory schema it speaks, and how far the search index is."""

    search: str
    build: str
    schema_version: str
    index: IndexProgress
    problems: list[str] | None = None
