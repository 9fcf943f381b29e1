"""An HTTP API event (payload 2.0) as a request: decoded once, strictly."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ValidationError

from factbook.domain.errors import BadInput, NotFound, RequestTooLarge, UnknownField, ValidationFailed
from factbook.domain.fields import PATH_ID
from factbook.domain.strict_json import parse_json

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_ISSUES = 20
MAX_NAME = 100
"""Characters of a caller's field name that a message repeats."""
Model = TypeVar("Model", bound=BaseModel)

_FREE_FIELDS = {"content", "payload"}
"""Fields whose value is the caller's own JSON, nulls included."""


@dataclass(frozen=True)
class Request:
    route_key: str
    request_id: str
    headers: Mapping[str, str]
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def body_digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


def read_request(event: dict[str, Any]) -> Request:
    """Raises BadInput for a query or a body that cannot be decoded, RequestTooLarge above 4 MB."""
    return Request(
        route_key=event["routeKey"],
        request_id=event["requestContext"]["requestId"],
        headers={name.lower(): value for name, value in (event.get("headers") or {}).items()},
        path={name: _path_value(value) for name, value in (event.get("pathParameters") or {}).items()},
        query=_query(event.get("rawQueryString") or ""),
        body=_body(event),
    )


def read_path_id(request: Request, name: str) -> str:
    """An id that stands in the path; one no record can have is not found."""
    value = request.path[name]
    if PATH_ID.fullmatch(value) is None:
        raise NotFound("There is no such record. Check the id in the path.")
    return value


def read_body(model: type[Model], request: Request) -> Model:
    """The strict body as a model. Raises BadInput, UnknownField or ValidationFailed with JSON pointers."""
    return validate(model, read_object(request))


def refuse_extras(request: Request, *, takes_query: bool, takes_body: bool) -> None:
    """Raises UnknownField for parameters or a body on a route that has none: they would be ignored unseen."""
    if request.query and not takes_query:
        name = next(iter(request.query))[:MAX_NAME]
        raise UnknownField(f"This route takes no query parameters. Remove {name!r}.", path=f"/{name}")
    if not takes_body and request.body.strip() not in (b"", b"{}"):
        raise UnknownField("This route takes no body. Send its fields as query parameters.")


def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is the empty object. Raises BadInput."""
    value = parse_json(request.body) if request.body.strip() else {}
    if not isinstance(value, dict):
        raise BadInput("The body must be a JSON object.")
    return value


def validate(model: type[Model], value: Any, prefix: str = "") -> Model:
    """A JSON value as a model, `prefix` being where it stands. Raises as `read_body`."""
    if isinstance(value, dict):
        _refuse_nulls(value, prefix)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise refusal(error, prefix) from error


def read_query(model: type[Model], request: Request) -> Model:
    """The query string as a model. Raises BadInput or UnknownField."""
    try:
        return model.model_validate(dict(request.query))
    except ValidationError as error:
        refused = refusal(error)
        if isinstance(refused, ValidationFailed):
            issue = refused.details["issues"][0]
            refused = BadInput(f"Query parameter {issue['path'][1:]}: {issue['message']}")
        raise refused from error


def refusal(error: ValidationError, prefix: str = "") -> BadInput:
    """pydantic's findings as one refusal, without repeating any value of the caller's."""
    issues = error.errors(include_url=False, include_input=False, include_context=False)
    for issue in issues:
        if issue["type"] == "extra_forbidden":
            name = str(issue["loc"][-1])
            return UnknownField(
                f"Unknown field {name[:MAX_NAME]!r}. Remove it or check its spelling.",
                path=_pointer(issue["loc"], prefix),
            )
    for issue in issues:
        if issue["type"] == "string_too_short":
            return BadInput(
                f"{_pointer(issue['loc'], prefix)} is empty. Give a value or leave the field out."
            )
    found = [
        {"path": _pointer(issue["loc"], prefix), "message": issue["msg"].removeprefix("Value error, ")}
        for issue in issues[:MAX_ISSUES]
    ]
    return ValidationFailed(
        f"The request has {len(issues)} invalid field(s); see details.issues.", issues=found
    )


def _pointer(location: tuple[int | str, ...], prefix: str) -> str:
    return prefix + "".join(
        "/" + str(step)[:MAX_NAME].replace("~", "~0").replace("/", "~1") for step in location
    )


def _refuse_nulls(value: Any, prefix: str) -> None:
    pending: list[tuple[Any, tuple[int | str, ...]]] = [(value, ())]
    while pending:
        item, where = pending.pop()
        children = item.items() if isinstance(item, dict) else enumerate(item)
        for name, child in children:
            if name in _FREE_FIELDS:
                continue
            if child is None:
                raise BadInput(f"{_pointer((*where, name), prefix)} is null. Leave the field out instead.")
            if isinstance(child, dict | list):
                pending.append((child, (*where, name)))


def _query(raw: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError as error:  # bad UTF-8 is a ValueError too
        raise BadInput("The query string is not a form in UTF-8.") from error
    query = dict(pairs)
    if len(query) != len(pairs):
        raise BadInput("A query parameter is given twice. Give each once.")
    return query


def _path_value(value: str) -> str:
    # API Gateway leaves some escapes in place; no id may hold a percent sign, so decoding once more is unambiguous.
    return unquote(value, errors="replace") if "%" in value else value


def _body(event: dict[str, Any]) -> bytes:
    body = event.get("body") or ""
    if event.get("isBase64Encoded"):
        try:
            raw = base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise BadInput("The body is not valid base64.") from error
    else:
        try:
            raw = body.encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadInput("The body is not valid UTF-8.") from error
    if len(raw) > MAX_BODY_BYTES:
        raise RequestTooLarge(
            "A request body may have 4 MB. Upload larger content with POST /v1/memory/blobs."
        )
    return raw
