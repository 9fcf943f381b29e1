"""One event of the HTTP API (payload 2.0) for each route, replayed against the handlers as a function gets it."""

import base64
import importlib.util
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import BaseModel, RootModel
from support.emulators import Aws
from support.fakes import ClockAhead
from support.gateway import ROOT, load_app
from support.principals import TenantService

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.log.lambda_checkpoints import LambdaCheckpoints
from factbook.api.app import App, Route
from factbook.api.erasure.events import ErasureEvents
from factbook.wiring.services import Services
from factbook_local.openapi import load_apps
from factbook_search.sqlite_index import SqliteIndex

EVENTS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
ROUTES: list[tuple[App, Route]] = [(app, route) for app in load_apps() for route in app]

# What the events name, and a test puts the ids of its own records in the place of.
TOKEN = "fb_example00_" + "0" * 43
FACT, TOKEN_ID, LOG_ID, ERASURE = (
    "0190b6f2-7c1e-8a4d-9b3f-5e2d1c0a8f76",
    "mfrggzdfmztwq2lk",
    "run-7:0:4f9d2c81a06b3e57",
    "0d9a4c6e-6f1f-4a55-9c61-3a1d5b7f0001",
)


def function(name: str) -> Any:
    """functions/<name>/app.py as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"replayed_{name}", ROOT / "functions" / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class CheckpointLambda:
    """A Lambda client whose one function is the checkpoint function, in this process."""

    module: Any

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - as the SDK names them
        answer = self.module.lambda_handler(json.loads(Payload), None)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


@dataclass
class World:
    """A tenant with a run in the log, a completed erasure, and a checkpoint of both; each test adds the fact and the token
    it changes.
    """

    services: Services
    service: TenantService
    log_id: str
    erasure: str

    def replay(self, route: Route, event: dict[str, Any]) -> dict[str, Any]:
        admin = self.service.admin
        content = "x" * 70_000 if route.handler.__name__ == "get_content" else "call me in the morning"
        scope = {"projectId": "support"}
        keyed: dict[str, Any] = {"key": "contact"} if route.handler.__name__ == "get_keyed_fact" else {}
        if route.handler.__name__ == "refresh_fact":
            keyed = {"source": {"kind": "user-input", "freshness": {}, "refresh": {"strategy": "manual"}}}
        fact = admin.call(
            "POST",
            "/v1/memory/facts",
            {"type": "acme.preference", "scope": scope, "content": content} | keyed,
        )
        if route.handler.__name__ in ("confirm_fact", "reject_fact"):
            said = {"agent": {"id": "copilot"}, "type": "acme.memory", "text": "We sell.", "reach": "account"}
            fact = admin.call("POST", "/v1/memory/remember", said)
        token = admin.call("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "ann"}})
        text = json.dumps(event)
        for example, real in (
            (TOKEN, admin.token),
            (FACT, fact.json["id"]),
            (TOKEN_ID, token.json["id"]),
            (LOG_ID, self.log_id),
            (ERASURE, self.erasure),
        ):
            text = text.replace(example, real)
        app = next(app for app in admin.apps.values() if route.key in {each.key for each in app})
        answer: dict[str, Any] = app(json.loads(text), None)
        return answer


@pytest.fixture(scope="module")
def world(ministack: Aws, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder: Path = tmp_path_factory.mktemp("events")
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key").write_bytes(key)
    settings = replace(
        ministack.settings,
        kms_key_id=ministack.client("kms").create_key()["KeyMetadata"]["KeyId"],
        search_sqlite=str(folder / "index.db"),
        checkpoint_signer=f"file:{folder}/key",
        refresh_queue=ministack.client("sqs").create_queue(QueueName="replayed")["QueueUrl"],
        erasure_queue=ministack.client("sqs").create_queue(QueueName="erasures-of-events")["QueueUrl"],
        erasure_settle_seconds="1",
        erasure_ledger_keys="",
    )
    clock = ClockAhead()
    services = Services(settings, clock, ministack.client)
    module = function("checkpoint")
    module.services = lambda: services
    function_of = LambdaFunction(CheckpointLambda(module), "checkpoint")
    services.logs.__dict__["checkpoint_requests"] = LambdaCheckpoints(function_of)
    service = TenantService(services, "events")
    for name in ("retrieve", "erase"):
        service.admin.apps[name] = load_app(name)
        service.admin.apps[name].services = lambda: services
    index = SqliteIndex(
        settings.search_sqlite
    )  # empty, and not built from what other tests left in the tables
    index.activate(index.create(None).name)
    index.close()
    entries = json.loads(EVENTS["append_entries"]["body"])
    appended = service.admin.call("POST", "/v1/memory/runs/run-7/log", entries)
    assert appended.status == 201, appended.text
    erasure = erased(service, services, clock)
    made = service.admin.call("POST", "/v1/memory/checkpoints", {"runIds": ["run-7", "_erasures"]})
    assert made.status == 201, made.text
    return World(services, service, appended.json["entries"][0]["id"], erasure)


def erased(service: TenantService, services: Services, clock: ClockAhead) -> str:
    """The id of a completed erasure: it has settled a second after every process knew of it."""
    made = service.admin.call("POST", "/v1/memory/erasures", {"subject": {"kind": "external", "id": "mira"}})
    assert made.status == 202, made.text
    handler = ErasureEvents(service.admin.apps["erase"], lambda: services.erasures)
    message = {"tenant": service.tenant, "erasure": made.json["id"]}
    for settled in (5, 0):
        handler({"Records": [{"messageId": "m", "body": json.dumps(message)}]})
        clock.seconds += settled
    done = service.admin.call("GET", f"/v1/memory/erasures/{made.json['id']}")
    assert done.json["status"] == "completed", done.text
    return str(made.json["id"])


def shown_by(model: type[BaseModel]) -> set[str]:
    """The fields of an answer; of one that has several forms, those of all."""
    if issubclass(model, RootModel):
        return set().union(*map(shown_by, get_args(model.model_fields["root"].annotation)))
    return {field.alias or name for name, field in model.model_fields.items()}


def test_every_route_has_an_event_and_every_event_a_route() -> None:
    keys = {route.key: route.handler.__name__ for _, route in ROUTES}
    assert {event["routeKey"]: name for name, event in EVENTS.items()} == keys | {"$default": "unrouted"}


@pytest.mark.parametrize("route", [route for _, route in ROUTES], ids=lambda route: route.handler.__name__)
def test_the_event_of_a_route_is_served(world: World, route: Route) -> None:
    event = EVENTS[route.handler.__name__]
    answer = world.replay(route, event)
    assert answer["statusCode"] == route.status, answer["body"]
    assert answer["headers"]["Cache-Control"] == "no-store"
    assert answer["isBase64Encoded"] is False
    if route.answer is not None:
        assert set(json.loads(answer["body"])) <= shown_by(route.answer) | {"content"}


def test_the_event_of_no_route_is_404(world: World) -> None:
    event = json.loads(json.dumps(EVENTS["unrouted"]).replace(TOKEN, world.service.admin.token))
    answer = world.service.admin.apps["read"](event, None)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (404, "not-found")


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_the_shape_that_the_gateway_gives_it(name: str) -> None:
    event = EVENTS[name]
    expected = {
        "version",
        "routeKey",
        "rawPath",
        "rawQueryString",
        "headers",
        "requestContext",
        "isBase64Encoded",
    }
    assert expected <= set(event) <= expected | {"queryStringParameters", "pathParameters", "body", "cookies"}
    assert event["version"] == "2.0"
    assert all(header == header.lower() for header in event["headers"])
    context = event["requestContext"]
    assert context["http"]["path"] == event["rawPath"]
    assert context["routeKey"] == event["routeKey"]
    if "body" in event:
        sent = event["body"].encode()  # what is no text, or not known as such, comes in base64
        sent = base64.b64decode(sent) if event["isBase64Encoded"] else sent
        assert event["headers"]["content-length"] == str(len(sent))
