"""An HTTP API event (payload 2.0) as a request: decoded once, strictly."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ValidationError

from factbook.api.wording import fields_at, headline, in_words, unknown
from factbook.domain.errors import BadInput, RequestTooLarge, UnknownField, ValidationFailed
from factbook.domain.fields import PATH_ID, PATH_ID_RULE
from factbook.domain.strict_json import Json, parse_json, parse_parts

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_ISSUES = 20
MAX_PARAMETERS = 50
MAX_NAME = 100
"""Characters of a caller's field name that a message repeats."""
Model = TypeVar("Model", bound=BaseModel)

_SPACE_FOR_PLUS = re.compile(r":\d\d(?:\.\d+)? \d\d:\d\d$", re.ASCII)
"""A time whose zone lost its sign, as a form's + is a space."""

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
    """The id of a run, thread or agent that stands in the path. Raises BadInput for one that none can have."""
    value = request.path[name]
    if PATH_ID.fullmatch(value) is None:
        raise BadInput(f"{name} {PATH_ID_RULE}.")
    return value


def refuse_extras(request: Request, *, takes_query: bool, takes_body: bool) -> None:
    """Raises UnknownField for parameters or a body on a route that has none: they would be ignored unseen."""
    if request.query and not takes_query:
        name = next(iter(request.query))[:MAX_NAME]
        raise UnknownField(f"This route takes no query parameters. Remove {name!r}.", path=f"/{name}")
    if not takes_body and request.body.strip() not in (b"", b"{}"):
        raise UnknownField("This route takes no body. Send its fields as query parameters.")


def read_object(request: Request, parts: str | None = None) -> Json:
    """The body as a JSON object; an empty body is the empty object. Raises BadInput.

    With `parts`, the items of the list of that name are judged alone: a refused one stands as its BadInput.
    """
    if not request.body.strip():
        return {}
    value = parse_json(request.body) if parts is None else parse_parts(request.body, parts)
    if not isinstance(value, dict):
        raise BadInput("The body must be a JSON object.")
    return value


def require_body(request: Request, advice: str) -> None:
    """Raises BadInput for no body at all, where one of defaults alone would change something: a file that was not there must not."""
    if not request.body.strip():
        raise BadInput(f"The request has no body. {advice}")


def refuse_flawed(value: Json, parts: str) -> None:
    """Raises the BadInput of the first refused item of the list `parts`, naming the item."""
    items = value.get(parts)
    for position, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, BadInput):
            raise BadInput(f"/{parts}/{position}: {item.message}", path=f"/{parts}/{position}")


def validate(model: type[Model], value: Any, prefix: str = "") -> Model:
    """A JSON value as a model, `prefix` being where it stands; fields have their names on the wire alone.

    Raises BadInput, UnknownField or ValidationFailed with JSON pointers.
    """
    if isinstance(value, dict):
        _refuse_nulls(value, prefix)
    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(model, error, prefix) from error


def read_query(model: type[Model], request: Request) -> Model:
    """The query string as a model. Raises BadInput or UnknownField."""
    try:
        return model.model_validate(dict(request.query), by_alias=True, by_name=False)
    except ValidationError as error:
        refused = refusal(model, error, kind="query parameter")
        if isinstance(refused, ValidationFailed):
            issue = refused.details["issues"][0]
            name, said = issue["path"][1:], issue["message"].removesuffix(".")
            if _SPACE_FOR_PLUS.search(request.query.get(name, "")):
                said = "a + in a query string stands for a space; write the zone's as %2B"
            refused = BadInput(f"Query parameter{f' {name}' if name else 's'}: {said}.")
        raise refused from error


def refusal(
    model: type[BaseModel], error: ValidationError, prefix: str = "", kind: str = "field"
) -> BadInput:
    """pydantic's findings as one refusal, without repeating any value of the caller's."""
    issues = error.errors(include_url=False, include_input=False)
    for issue in issues:
        if issue["type"] == "extra_forbidden":
            *above, name = issue["loc"]
            known = fields_at(model, tuple(above))
            said = unknown(str(name)[:MAX_NAME], pointer(tuple(above), prefix), known, kind)
            return UnknownField(said, path=pointer(issue["loc"], prefix))
    for issue in issues:
        if issue["type"] == "string_too_short":
            where = pointer(issue["loc"], prefix)
            return BadInput(f"{where} is empty. Give a value, or leave it out where it is optional.")
    found = [
        {"path": pointer(issue["loc"], prefix), "message": in_words(issue)} for issue in issues[:MAX_ISSUES]
    ]
    return ValidationFailed(headline(found, len(issues)), issues=found)


def pointer(location: tuple[int | str, ...], prefix: str = "") -> str:
    """Where a field stands, as a JSON pointer; of a long name its beginning."""
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
                raise BadInput(f"{pointer((*where, name), prefix)} is null. Leave the field out instead.")
            if isinstance(child, dict | list):
                pending.append((child, (*where, name)))


def _query(raw: str) -> dict[str, str]:
    if raw.count("&") >= MAX_PARAMETERS:
        raise BadInput(f"A query string may have {MAX_PARAMETERS} parameters, and no route takes as many.")
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict")
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
            "A request body may have 4 MB. Send less at once; larger content of a fact goes through POST /v1/memory/blobs."
        )
    return raw
