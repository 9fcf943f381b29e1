"""The service's API over HTTP, as the commands use it: one token, patient with a busy service."""

import argparse
import json
import os
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError, MaxRetryError

from factbook_cli.answers import shown
from factbook_cli.errors import CommandError, UsageError

TIMEOUT = urllib3.Timeout(connect=10, read=60)
BUSY = {429, 503}
READING = urllib3.Retry(
    total=5,
    redirect=False,
    status_forcelist=BUSY,
    allowed_methods=None,  # what was refused as busy was not begun, whatever the method
    backoff_factor=0.2,
    retry_after_max=30,
    raise_on_status=False,
)
"""A GET is tried again when the service is busy or the connection drops."""
WRITING = READING.new(read=False)
"""A POST whose answer was lost may have been done, so it is not sent twice."""


NOT_ADMITTED = (
    "The token (--token or FACTBOOK_TOKEN) is not one of this service; ask an administrator for one."
)


MOST_HELD = 10
"""Facts under legal hold that a refusal names; a dry run names them all."""


class ApiError(CommandError):
    """The service refused, or did not answer; then the status is 0."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})" if status else message)
        self.status = status
        self.code = code


class BadService(ApiError, UsageError):
    """The options name no service."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "usage", message)


class Api:
    """Calls with one token."""

    def __init__(self, url: str, token: str) -> None:
        url, token = url.strip(), token.strip()  # as they come out of a file or a copied line
        if token[:7].lower() == "bearer " or token[:1] in "\"'":
            raise BadService("Give the token alone, as it was printed, without Bearer and without quotes.")
        if not (token.isascii() and token.isprintable()):
            raise BadService("The token has characters that no token has. Copy it again.")
        if "@" in url:  # every message about the service names its URL
            raise BadService(
                "The service's URL has a user or password in it. Leave them out: --token says who calls."
            )
        try:
            parts = urllib3.util.parse_url(url)
        except LocationParseError:
            parts = urllib3.util.Url()
        if parts.scheme not in ("http", "https") or not parts.host:
            raise BadService(f"The service's URL must begin with http:// or https://, not {url!r}.")
        self.url = url.rstrip("/")
        before, api, _ = f"{self.url}/".partition("/v1/")
        if api:
            raise BadService(f"Give the URL without its path: {before}")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._http = urllib3.PoolManager(timeout=TIMEOUT)

    def get(self, *path: str, **query: Any) -> Any:
        """JSON of a path given in parts, each encoded; parameters that are None are left out."""
        return self._call("GET", path, query, retries=READING)

    def post(self, body: Any, *path: str, key: str | None = None, **query: Any) -> Any:
        """With an Idempotency-Key `key` the same request may be sent again, and is when its answer was lost."""
        more = {} if key is None else {"Idempotency-Key": key}
        retries = WRITING if key is None else READING
        return self._call("POST", path, query, json.dumps(body).encode(), retries=retries, headers=more)

    def lines(self, *path: str, **query: Any) -> list[bytes]:
        """As `get`, of an answer of lines."""
        data: bytes = self._answered("GET", path, query, retries=READING)
        return data.splitlines()

    def post_lines(self, lines: Iterable[bytes], *path: str, **query: Any) -> Any:
        """A POST of lines that may be sent twice; its answer is JSON."""
        sent = {"Content-Type": "application/x-ndjson"}
        body = b"".join(line + b"\n" for line in lines)
        return self._call("POST", path, query, body, retries=READING, headers=sent)

    def delete(self, *path: str) -> Any:
        return self._call("DELETE", path, {}, retries=WRITING)

    def _call(
        self, method: str, path: tuple[str, ...], query: dict[str, Any], body: bytes | None = None, **how: Any
    ) -> Any:
        answer = _json(self._answered(method, path, query, body, **how))
        if answer is None:
            raise ApiError(200, "no-json", f"{self.url} answered no JSON. Is it the service's URL?")
        return answer

    def _answered(
        self,
        method: str,
        path: tuple[str, ...],
        query: dict[str, Any],
        body: bytes | None = None,
        *,
        retries: urllib3.Retry,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        given = {name: value for name, value in query.items() if value is not None}
        target = self.url + "".join("/" + quote(part, safe="") for part in path)
        target += f"?{urlencode(given)}" if given else ""
        sent = self._headers | (headers or {})
        try:
            response = self._http.request(
                method, target, body=body, headers=sent, retries=retries, redirect=False
            )
        except HTTPError as error:
            raise ApiError(
                0,
                "no-answer",
                f"{self.url} did not answer: {reason(error)}. Check the URL and your network.",
            ) from error
        if response.status >= 300:
            raise _refused(response.status, _json(response.data))
        return response.data


def reason(error: HTTPError) -> str:
    """Why there was no answer, in the system's words where it said why."""
    if "WRONG_VERSION_NUMBER" in str(error):  # what TLS makes of an answer in plain http
        return "it speaks http and not https"
    reason: BaseException | None = error.reason if isinstance(error, MaxRetryError) else error
    below = reason.__cause__ if reason is not None else None
    return (below.strerror if isinstance(below, OSError) else None) or str(reason)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _refused(status: int, answer: Any) -> ApiError:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return ApiError(status, "unknown", f"The service answered {status}. Is it the service's URL?")
    code = str(error.get("code"))
    message = NOT_ADMITTED if code == "auth-missing" else _first_issue(error) or str(error.get("message"))
    return ApiError(status, shown(code), shown(message + _held(error)))


def _held(error: dict[str, Any]) -> str:
    """Which facts a legal hold keeps, of an erasure that it refuses."""
    details = error.get("details")
    ids = details.get("factIds") if isinstance(details, dict) else None
    if not isinstance(ids, list) or not ids:
        return ""
    more = f" and {len(ids) - MOST_HELD} more" if len(ids) > MOST_HELD else ""
    return f" Held: {', '.join(map(str, ids[:MOST_HELD]))}{more}."


def _first_issue(error: dict[str, Any]) -> str:
    """Where the request is wrong and how, from the details; empty when they do not say."""
    details = error.get("details")
    issues = details.get("issues") if isinstance(details, dict) else None
    if not isinstance(issues, list) or not issues or not isinstance(issues[0], dict):
        return ""
    return f"{issues[0].get('path')}: {issues[0].get('message')}"


def add_service_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default=os.environ.get("FACTBOOK_URL"), help="the service (FACTBOOK_URL)")
    parser.add_argument(
        "--token", default=os.environ.get("FACTBOOK_TOKEN"), help="an API token (FACTBOOK_TOKEN)"
    )


def connect(arguments: argparse.Namespace) -> Api:
    """The service that the options name. Raises BadService when they name none."""
    if not arguments.url or not arguments.token:
        raise BadService("Say where the service is: --url and --token, or FACTBOOK_URL and FACTBOOK_TOKEN.")
    return Api(arguments.url, arguments.token)
