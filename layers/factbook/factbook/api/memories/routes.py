"""Routes of memories: `write` remembers and decides, `read` shows standing sets and what waits."""

from factbook.api.app import Answer, App, Call
from factbook.api.memories.models import (
    Decide,
    Memories,
    MemoriesQuery,
    Remember,
    Remembered,
    Reviews,
    ReviewsQuery,
    person,
)
from factbook.api.pages import page_json
from factbook.api.requests import read_path_id
from factbook.api.scopes import read_scope
from factbook.domain import errors as e
from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import Json
from factbook.usecases.memories import remembering, reviewing, standing
from factbook.usecases.merging import NEWEST

DECISIONS = (
    e.FactNotFound,
    e.PermissionDenied,
    e.ErasureInProgress,
    e.LegalHold,
    e.FactChanged,
    e.NotInReview,
    e.IdempotencyMismatch,
    e.ValidationFailed,
)


def add_writes(app: App) -> None:
    """Register what the `write` function serves of memories."""
    app.route(
        "POST /v1/memory/remember",
        "Remember what an agent learned",
        body=Remember,
        answer=Remembered,
        status=201,
        idempotent=True,
        refusals=(
            e.FactNotFound,
            e.PermissionDenied,
            e.ScopeInvalid,
            e.MemoryFull,
            e.ErasureInProgress,
            e.LegalHold,
            e.IdempotencyMismatch,
            e.ValidationFailed,
        ),
    )(remember)
    app.route(
        "POST /v1/memory/facts/{id}/confirm",
        "Confirm a proposal, or release what waits in review",
        body=Decide,
        answer=Fact,
        idempotent=True,
        refusals=(*DECISIONS, e.MemoryFull),
    )(confirm_fact)
    app.route(
        "POST /v1/memory/facts/{id}/reject",
        "Reject what waits",
        body=Decide,
        answer=Fact,
        idempotent=True,
        refusals=DECISIONS,
    )(reject_fact)


def add_reads(app: App) -> None:
    """Register what the `read` function serves of memories."""
    app.route(
        "GET /v1/memory/agents/{agentId}/memories",
        "The standing set for a conversation's start",
        query=MemoriesQuery,
        answer=Memories,
        refusals=(e.NotFound, e.PermissionDenied, e.ScopeInvalid),
    )(list_memories)
    app.route(
        "GET /v1/memory/reviews",
        "What waits for a person, newest first",
        query=ReviewsQuery,
        answer=Reviews,
        refusals=(e.PermissionDenied,),
    )(list_reviews)


def remember(call: Call) -> Answer:
    said = call.body(Remember).statement(call.principal)
    done = remembering.remember(call.services.memories, call.principal, call.operation, said)
    answer = done.fact.to_json() | {"similarKeys": list(done.similar)}
    return Answer(201 if done.created else 200, answer)


def confirm_fact(call: Call) -> Answer:
    about = call.body(Decide).about(call.path["id"])
    fact = reviewing.confirm(call.services.memories, call.principal, call.operation, about)
    return Answer(200, fact.to_json())


def reject_fact(call: Call) -> Answer:
    about = call.body(Decide).about(call.path["id"])
    fact = reviewing.reject(call.services.memories, call.principal, call.operation, about)
    return Answer(200, fact.to_json())


def list_memories(call: Call) -> Answer:
    agent = read_path_id(call.request, "agentId")
    remembering.require_own_agent(call.principal, agent)
    asked = call.query(MemoriesQuery).scope
    scope = None if asked is None else person(read_scope(asked), call.principal)
    found = standing.standing_set(call.services.memories, call.principal, agent, scope)
    data = [fact.to_json() for fact in found.facts]
    answer: Json = {"data": data, "characters": found.characters}
    if found.omitted:
        answer["omitted"] = [{"id": fact.id, "version": fact.version} for fact in found.omitted]
    return Answer(200, answer)


def list_reviews(call: Call) -> Answer:
    asked = call.query(ReviewsQuery)
    identity: Json = {"reviews": asked.state}
    position = call.position(identity, asked.cursor)
    before = str(position["at"]) if position else NEWEST
    page = reviewing.list_reviews(
        call.services.memories, call.principal, asked.state, asked.limit, before, call.deadline
    )
    following = None if page.position is None else {"at": page.position}
    return Answer(200, page_json([_review(each) for each in page.reviews], call.cursor(identity, following)))


def _review(review: reviewing.Review) -> Json:
    answer: Json = {"why": list(review.why), "since": review.since, "fact": review.fact.to_json()}
    if review.replaces is not None:
        answer["replaces"] = review.replaces.to_json()
    if review.fact.decided_because is not None:
        answer["reason"] = review.fact.decided_because
    return answer
