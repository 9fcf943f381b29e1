"""Payload format 2.0: an HTTP request as the event of a function, and a function's result as an HTTP answer."""

import base64
import json
import secrets
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

from factbook_local.routes import Selected, decode_path

API_ID = "local"
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript")
_OWN_HEADERS = {
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "date",
    "server",
    "apigw-requestid",
}


@dataclass(frozen=True)
class Request:
    """An HTTP request as it came: `target` the raw path, `query` the raw query string, header names in any case."""

    method: str
    target: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes
    protocol: str
    source: str
    url: str


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class BadAnswer(Exception):
    """A function's result is no payload 2.0 answer."""


def build_event(request: Request, selected: Selected, request_id: str, account: str) -> dict[str, Any]:
    """The event of payload 2.0. Raises UnicodeDecodeError for a path whose escapes are no UTF-8."""
    headers, cookies = _joined_headers(request)
    path = decode_path(request.target)
    domain = urllib.parse.urlsplit(request.url).netloc
    now = time.time()
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": selected.route.key,
        "rawPath": path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": account,
            "apiId": API_ID,
            "domainName": domain,
            "domainPrefix": domain.split(".", 1)[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": request.protocol,
                "sourceIp": request.source,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": selected.route.key,
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    if query := _joined_query(request.query):
        event["queryStringParameters"] = query
    if selected.parameters:
        event["pathParameters"] = selected.parameters
    if request.body:
        event["body"], event["isBase64Encoded"] = _body(request.body, headers)
    return event


def _joined_headers(request: Request) -> tuple[dict[str, str], list[str]]:
    """Lower-cased headers, several of one name joined by a comma; cookies apart from them."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in request.headers:
        name = name.lower()
        if name == "cookie":
            cookies.extend(part.strip() for part in value.split(";") if part.strip())
        else:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    where = urllib.parse.urlsplit(request.url)
    forwarded = headers.get("x-forwarded-for")
    headers["x-forwarded-for"] = f"{forwarded}, {request.source}" if forwarded else request.source
    headers.setdefault("x-amzn-trace-id", f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)}")
    headers.setdefault("x-forwarded-port", str(where.port))
    headers.setdefault("x-forwarded-proto", where.scheme)
    return headers, cookies


def _joined_query(query: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True, errors="replace"):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(body: bytes, headers: dict[str, str]) -> tuple[str, bool]:
    """Only what says it is text comes as text; all else in base64, forms and bodies without a type too."""
    kind = headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if (kind.startswith("text/") or kind in _TEXT_TYPES) and "content-encoding" not in headers:
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True


def read_result(result: bytes) -> Answer:
    """The answer a function's JSON result stands for. Raises BadAnswer where the gateway would answer 500."""
    value = json.loads(result)
    if not isinstance(value, dict) or "statusCode" not in value:
        # The format's shorthand: anything but an answer is the body of a 200.
        text = value if isinstance(value, str) else result.decode()
        return Answer(200, [("content-type", "application/json")], text.encode())
    try:
        status = int(value["statusCode"])
        headers = [
            (str(name).lower(), _header(content)) for name, content in (value.get("headers") or {}).items()
        ]
        cookies = [("set-cookie", _header(cookie)) for cookie in value.get("cookies") or []]
        body = value.get("body")
        if not isinstance(body, str | None) or not 200 <= status <= 599:
            raise BadAnswer("status or body")
        data = (
            base64.b64decode(body or "", validate=True)
            if value.get("isBase64Encoded")
            else (body or "").encode()
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise BadAnswer(str(error)) from error
    headers = [pair for pair in headers if pair[0] not in _OWN_HEADERS]
    if not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain;charset=UTF-8"))
    return Answer(status, headers + cookies, data)


def _header(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if any(character in text for character in "\r\n\0"):
        raise ValueError("a header holds a line break")
    text.encode("latin-1")
    return text
