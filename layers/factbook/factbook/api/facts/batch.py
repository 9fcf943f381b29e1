"""Up to 100 independent writes in one request: a result per item."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from typing import Any

from factbook.api.app import UNFORESEEN, Answer, App, Call
from factbook.api.errors import status_of
from factbook.api.facts.models import MAX_BATCH, WriteFact, WriteFacts, WriteResults
from factbook.api.operations import item_digest
from factbook.api.requests import MAX_NAME, validate
from factbook.domain import errors as e
from factbook.domain import wire
from factbook.domain.strict_json import Json
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes, keyed
from factbook.usecases.tally import counted

THREADS = 8
NOT_BEGUN = "There was no time left to begin this item. Retry the batch with the same Idempotency-Key."
SENT = ("content", "causedByLogId", "subjects", "source", "generatedBy", "retention")
"""What a batch's caller sent of a fact: its answer can do without, and the fact is there to be read."""


def add_writes(app: App) -> None:
    """Register what the `write` function serves of batches."""
    app.route(
        "POST /v1/memory/facts/batch",
        "Write up to 100 independent facts",
        body=WriteFacts,
        answer=WriteResults,
        parts="items",
        idempotent=True,
        refusals=(e.ValidationFailed,),
    )(write_facts)


def write_facts(call: Call) -> Answer:
    """Items of one fact are written in their order, one after another: they would only be in each other's way."""
    items, operation = _items(call), call.operation
    bodies = [_body(item, position) for position, item in enumerate(items)]
    operations = [operation.at(place, item_digest(item)) for place, item in enumerate(items)]
    groups: dict[str, list[int]] = {}
    for position, body in enumerate(bodies):
        groups.setdefault(_fact_of(call, body) or str(position), []).append(position)

    def write(group: list[int]) -> list[tuple[int, Json]]:
        return [(position, _result(call, operations[position], bodies[position])) for position in group]

    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        written = dict(chain.from_iterable(pool.map(counted(write), groups.values())))
    return Answer(200, {"results": _within_an_answer([written[position] for position in range(len(items))])})


def _body(item: Any, position: int) -> WriteFact | e.FactbookError:
    """The item, or why it is none."""
    if isinstance(item, e.BadInput):
        return item
    try:
        return validate(WriteFact, item, f"/items/{position}")
    except e.FactbookError as error:
        return error


def _fact_of(call: Call, body: WriteFact | e.FactbookError) -> str | None:
    """The id of the fact that an item names by its key."""
    if isinstance(body, e.FactbookError) or body.key is None:
        return None
    with suppress(e.FactbookError):  # the write says what is wrong with the scope
        return keyed.Key(body.scope.resolve(call.principal), body.type, body.key).fact_id
    return None


def _result(call: Call, operation: Operation, body: WriteFact | e.FactbookError) -> Json:
    try:
        if isinstance(body, e.FactbookError):
            raise body
        if call.deadline.passed:
            raise e.StorageUnavailable(NOT_BEGUN)
        status, fact = write_one(call, body, operation)
        return {"status": status, "fact": fact}
    except e.FactbookError as error:
        refusal: Json = {"code": error.code, "message": error.message}
        if error.details:
            refusal["details"] = error.details
        return {"status": status_of(error), "error": refusal}
    except Exception as error:  # noqa: BLE001 - what became of the other items must still be told
        call.observation.failed(error)
        return {"status": 500, "error": {"code": "internal-error", "message": UNFORESEEN}}


def write_one(call: Call, body: WriteFact, operation: Operation) -> tuple[int, Json]:
    """The status and the fact: 201 for a new one, 200 where one with its key was there."""
    scope, ports, principal = body.scope.resolve(call.principal), call.services.memory, call.principal
    if body.key is None:
        fact = changes.write_fact(
            ports, principal, operation, body.type, scope, body, body.sent(), body.agent_id
        )
        return 201, fact.to_json()
    written = keyed.write_keyed_fact(
        ports,
        principal,
        operation,
        keyed.Key(scope, body.type, body.key),
        body,
        body.sent(),
        may_supersede=body.on_existing == "supersede",
    )
    return 201 if written.created else 200, written.fact.to_json()


def _within_an_answer(results: list[Json]) -> list[Json]:
    """The results, of which those that no longer fit in an answer leave out what their caller just sent: the content
    first. Without any of that a hundred of them always fit.
    """
    shortest = [_without(result, SENT) for result in results]
    room = wire.ANSWER_BYTES - sum(map(wire.value_bytes, shortest))
    shown: list[Json] = []
    for result, short in zip(results, shortest, strict=True):
        least = wire.value_bytes(short)
        forms = (result, _without(result, SENT[:1]), short)
        form = next((form for form in forms if wire.value_bytes(form) - least <= room), short)
        room -= wire.value_bytes(form) - least
        shown.append(form)
    return shown


def _without(result: Json, names: tuple[str, ...]) -> Json:
    if "fact" not in result:
        return result
    return result | {"fact": {name: value for name, value in result["fact"].items() if name not in names}}


def _items(call: Call) -> list[Any]:
    body = call.json
    if unknown := set(body) - {"items"}:
        raise e.UnknownField(
            f"Unknown field {min(unknown)[:MAX_NAME]!r}. A batch has the field items and no other."
        )
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH:
        raise e.ValidationFailed(
            "items must be a list of 1 to 100 facts.",
            issues=[{"path": "/items", "message": "must have 1 to 100 facts"}],
        )
    return items
