"""The service's API over HTTP, as the log's commands use it: the standard library alone, one connection, patient."""

import http.client
import json
import time
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

TRIES = 6
TIMEOUT_SECONDS = 60


class ApiError(Exception):
    """The service refused, or did not answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.status = status
        self.code = code


class Api:
    """Calls with one token. Reads are tried again when the service is busy or the connection drops."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ApiError(
                0, "bad-url", f"The service's URL must begin with http:// or https://, not {url!r}."
            )
        self._https = parts.scheme == "https"
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: http.client.HTTPConnection | None = None

    def get(self, *path: str, **query: Any) -> Any:
        """JSON of a path given in parts, each encoded; parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        target = self._base + "".join("/" + quote(part, safe="") for part in path)
        return self._call("GET", f"{target}?{urlencode(given)}" if given else target, None)

    def post(self, body: Any, *path: str) -> Any:
        target = self._base + "".join("/" + quote(part, safe="") for part in path)
        return self._call("POST", target, json.dumps(body).encode())

    def _call(self, method: str, target: str, body: bytes | None) -> Any:
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                status, answer = self._exchange(method, target, body)
            except (OSError, http.client.HTTPException) as error:
                self._connection = None
                if last or method != "GET":
                    raise ApiError(0, "no-answer", f"{self._host} did not answer: {error}.") from error
            else:
                if status < 300:
                    return answer
                if status not in (429, 503) or last:
                    raise _refused(status, answer)
            time.sleep(0.2 * 2**attempt)
        raise AssertionError("the last try answers or raises")

    def _exchange(self, method: str, target: str, body: bytes | None) -> tuple[int, Any]:
        if self._connection is None:
            make = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
            self._connection = make(self._host, self._port, timeout=TIMEOUT_SECONDS)
        self._connection.request(method, target, body, self._headers)
        response = self._connection.getresponse()
        raw = response.read()
        try:
            return response.status, json.loads(raw)
        except ValueError:
            return response.status, None


def _refused(status: int, answer: Any) -> ApiError:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return ApiError(status, "unknown", f"The service answered {status}.")
    return ApiError(status, str(error.get("code")), str(error.get("message")))
