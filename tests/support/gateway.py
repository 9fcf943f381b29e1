"""Call the real handlers with payload-2.0 events, as the HTTP API would: within Lambda's 6 MB, both ways."""

import importlib.util
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

from factbook.api.app import App
from factbook.wiring.services import Services
from factbook_local.limits import LIMITS

ROOT = Path(__file__).parents[2]


def load_app(name: str) -> App:
    """The `app` of functions/<name>/app.py, loaded apart from every other function's."""
    spec = importlib.util.spec_from_file_location(
        f"functions_{name}_app", ROOT / "functions" / name / "app.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = module.app
    assert isinstance(app, App)
    return app


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


@cache
def pattern_of(path: str) -> re.Pattern[str]:
    names = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    return re.compile(names)


@dataclass
class Gateway:
    """Routes by (method, path) to the functions' apps over one set of services."""

    services: Services
    token: str = ""
    apps: dict[str, App] = field(default_factory=dict)
    context: Any = None
    """What Lambda says of the invocation."""

    def __post_init__(self) -> None:
        for name in ("write", "read", "refresh"):
            app = load_app(name)
            app.services = lambda: self.services
            self.apps[name] = app

    def as_(self, token: str) -> "Gateway":
        other = Gateway.__new__(Gateway)
        other.services, other.token, other.apps, other.context = self.services, token, self.apps, self.context
        return other

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, Any] | None = None,
        raw: str | None = None,
        key: str | None = None,
        base64: bool = False,
        raw_query: str | None = None,
        **headers: str,
    ) -> Reply:
        sent = {"authorization": f"Bearer {self.token}"} if self.token else {}
        if key is not None:
            sent["idempotency-key"] = key
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        text = raw if raw is not None else None if body is None else json.dumps(body)
        app, event = self._event(method, path, raw_query or urlencode(query or {}), sent, text)
        event["isBase64Encoded"] = base64
        if _on_the_wire(event) > LIMITS["invocation"].most:
            return Reply(413, {}, '{"message": "Request Entity Too Large"}')
        answer = app(event, self.context)
        if _on_the_wire(answer) > LIMITS["invocation"].most:
            return Reply(500, {}, '{"message": "Internal Server Error"}')
        return Reply(answer["statusCode"], answer["headers"], answer["body"])

    def _event(
        self, method: str, path: str, query: str, headers: dict[str, str], body: str | None
    ) -> tuple[App, dict[str, Any]]:
        app, key, parameters = self._routed(method, path)
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": key,
            "rawPath": path,
            "rawQueryString": query,
            "headers": headers,
            "pathParameters": {name: unquote(value) for name, value in parameters.items()},
            "requestContext": {"requestId": str(uuid.uuid4()), "http": {"method": method, "path": path}},
            "isBase64Encoded": False,
        }
        if body is not None:
            event["body"] = body
        return app, event

    def _routed(self, method: str, path: str) -> tuple[App, str, dict[str, str]]:
        found = [
            (route.key.count("{"), app, route.key, match.groupdict())
            for app in self.apps.values()
            for route in app
            if route.method == method and (match := pattern_of(route.path).fullmatch(path))
        ]
        if not found:
            return self.apps["read"], "$default", {}
        _, app, key, parameters = min(found, key=lambda each: each[0])
        return app, key, parameters


def _on_the_wire(value: dict[str, Any]) -> int:
    """Bytes of an event or an answer as Lambda carries them: a body is a string in JSON, escaped once more."""
    return len(json.dumps(value, ensure_ascii=False).encode())


Send = Callable[..., Reply]
