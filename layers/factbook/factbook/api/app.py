"""One function's routes: authenticate, parse, call one use case, answer. Nothing else happens in between.

A route handler takes a `Call` and gives an `Answer`; every refusal is an exception that `api.errors` maps.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from factbook.api import telemetry
from factbook.api.deadlines import deadline_of
from factbook.api.errors import status_of
from factbook.api.operations import identify
from factbook.api.planned import unserved
from factbook.api.requests import (
    Request,
    read_object,
    read_query,
    read_request,
    refuse_extras,
    refuse_flawed,
    validate,
)
from factbook.domain import wire
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import (
    FactbookError,
    ReceiptPending,
    SourceUnavailable,
    StorageUnavailable,
    Throttled,
    ValidationFailed,
)
from factbook.domain.strict_json import Json, dump_json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.operations import Operation

if TYPE_CHECKING:
    from factbook.api.services import Services  # names every part, of which a cold start loads what it uses

JSON, NDJSON = "application/json", "application/x-ndjson"
TOO_LARGE = "The answer is larger than can be sent. What was written is written; ask for less at once."
RESERVE_SECONDS = 13.0
"""Of an invocation: the longest that one call of the SDK takes (`wiring.clients` has the sum), and a second to answer."""

GATEWAY_SECONDS = 29.0
"""Whatever a function's time-out is, the gateway waits for 30 s."""

UNFORESEEN = "Something failed on our side. Retry; if it stays, report the request id."
_TO_BE_RETRIED = (ReceiptPending, Throttled, StorageUnavailable, SourceUnavailable)
_NOBODY = Principal("", Actor(kind="service", id="anonymous"))
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Answer:
    """A status with a body: a JSON value, or text or bytes with the content type that `headers` name.

    Lines of JSON (NDJSON) are text. None is no body, as of a redirect.
    """

    status: int
    body: Json | str | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        return _body_text(self.body)


class AnswerTooLarge(Exception):
    """A page or an answer was not sized: a fault of ours, whatever the caller asked."""


@dataclass(frozen=True)
class Call:
    """One authenticated request as a handler sees it; body and query are parsed at first use, strictly."""

    route: "Route"
    request: Request
    services: "Services"
    principal: Principal
    observation: telemetry.Observation
    deadline: Deadline = NEVER
    """Past it no work is begun that its answer has to wait for."""

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path

    @cached_property
    def json(self) -> Json:
        """The strict body. Of the list that the route judges in parts, a refused item stands as its BadInput."""
        return read_object(self.request, self.route.parts)

    def body(self, model: type[Model]) -> Model:
        """The strict body as a model. Raises BadInput, UnknownField or ValidationFailed with JSON pointers."""
        if self.route.parts is not None:
            refuse_flawed(self.json, self.route.parts)
        try:
            return validate(model, self.json)
        except ValidationFailed as refused:
            if not self.request.body.strip():  # most often a client that did not send what it was given
                refused.message = f"The request has no body. {refused.message}"
            raise

    def query(self, model: type[Model]) -> Model:
        return read_query(model, self.request)

    def position(self, query: Json, cursor: str | None) -> Json | None:
        """Where a list goes on: what `cursor` says, made for this query of this principal. Raises BadInput."""
        return self.services.cursors.read(self.principal, query, cursor) if cursor else None

    def cursor(self, query: Json, position: Json | None) -> str | None:
        """The cursor that a later call of the same query goes on with; None at the end."""
        return None if position is None else self.services.cursors.write(self.principal, query, position)

    @cached_property
    def operation(self) -> Operation:
        """This write, identified by (tenant, principal, route, Idempotency-Key), or unique without a key."""
        return identify(self.request, self.principal, self.json, self.deadline)


Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Route:
    """A route and what the API says of it: models of its parameters, body and answer, and the codes it may refuse with.

    `parts` names the list of the body whose items are judged one by one, so that a flawed one spoils no other unseen.
    `takes`, `gives`: media types; `body` is then the first line alone.
    """

    key: str
    handler: Handler
    summary: str
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    refusals: tuple[type[FactbookError], ...] = ()
    parts: str | None = None
    idempotent: bool = False
    public: bool = False
    takes: str = JSON
    gives: str = JSON

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.key.partition(" ")[2]


class App:
    """The Lambda handler of one function: a dispatch table from route keys.

    `services` answers what the routes work with; it is asked at each request and keeps what it made.
    """

    def __init__(self, name: str, services: "Callable[[], Services]") -> None:
        self.name = name
        self.services = services
        self._routes: dict[str, Route] = {}

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes.values())

    def route(self, key: str, summary: str, **described: Any) -> Callable[[Handler], Handler]:
        """Register a handler; keyword arguments are the fields of `Route`."""

        def register(handler: Handler) -> Handler:
            self._routes[key] = Route(key, handler, summary, **described)
            return handler

        return register

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Serve one payload-2.0 event. Never raises: what is not foreseen is a 500 without details."""
        with telemetry.observe(self.name, event, context) as seen:
            deadline = deadline_of(context, RESERVE_SECONDS, GATEWAY_SECONDS)
            answer = self._answer(event, seen, deadline)
            seen.status = answer.status
            return _response(answer)

    def _answer(self, event: dict[str, Any], seen: telemetry.Observation, deadline: Deadline) -> Answer:
        try:
            return _sendable(self._serve(event, seen, deadline))
        except FactbookError as error:
            seen.refused(error)
            return _refusal(error, seen.request_id)
        except Exception as error:  # noqa: BLE001 - the last line of defence: a caller must never see a stack trace
            seen.failed(error)
            said = TOO_LARGE if isinstance(error, AnswerTooLarge) else UNFORESEEN
            body = {"code": "internal-error", "message": said, "requestId": seen.request_id}
            return Answer(500, {"error": body})

    def _serve(self, event: dict[str, Any], seen: telemetry.Observation, deadline: Deadline) -> Answer:
        services = self.services()
        services.deadline = deadline
        try:
            return self._serve_by(services, event, seen, deadline)
        finally:
            services.deadline = NEVER

    def _serve_by(
        self, services: "Services", event: dict[str, Any], seen: telemetry.Observation, deadline: Deadline
    ) -> Answer:
        route = self._routes.get(event["routeKey"])
        request_headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        if route is not None and route.public:
            return route.handler(Call(route, read_request(event), services, _NOBODY, seen, deadline))
        method, path = event["requestContext"]["http"]["method"], event["rawPath"]
        public = next((each for each in self if each.public and each.path == path.rstrip("/")), None)
        if route is None and public is not None:
            if (method, public.key) != ("HEAD", f"GET {path}"):
                raise unserved(method, path)  # another method, or a slash behind it: no token would help
            call = Call(public, read_request(event), services, _NOBODY, seen, deadline)
            return replace(public.handler(call), body=None)
        principal = services.authenticator.authenticate(request_headers)
        seen.principal(principal)
        deadline.require()
        if route is None:
            raise unserved(method, path)
        request = read_request(event)
        refuse_extras(request, takes_query=route.query is not None, takes_body=route.body is not None)
        return route.handler(Call(route, request, services, principal, seen, deadline))


def _sendable(answer: Answer) -> Answer:
    """The answer, when Lambda can send it: otherwise the caller would get the gateway's own 500, and nobody a word."""
    if wire.text_bytes(answer.text) > wire.LARGEST_BYTES:
        raise AnswerTooLarge
    return answer


def _refusal(error: FactbookError, request_id: str) -> Answer:
    body: Json = {"code": error.code, "message": error.message, "requestId": request_id}
    if error.details:
        body["details"] = error.details
    wait = error.retry_after if isinstance(error, _TO_BE_RETRIED) else None
    return Answer(status_of(error), {"error": body}, {"Retry-After": str(wait)} if wait else {})


def _response(answer: Answer) -> dict[str, Any]:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Cache-Control": "no-store",
        **answer.headers,
    }
    binary = isinstance(answer.body, bytes)
    return {
        "statusCode": answer.status,
        "headers": headers,
        "body": answer.text,
        "isBase64Encoded": binary,
    }


def _body_text(body: Json | str | bytes | None) -> str:
    match body:
        case None:
            return ""
        case str():
            return body
        case bytes():
            return base64.b64encode(body).decode()
        case _:
            return dump_json(body)
