"""A tenant's log on an emulated AWS: appended, marked, checkpointed and exported as the deployed parts do it."""

import io
import json
import uuid
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.log.dynamodb_stream import log_records
from factbook.adapters.log.lambda_checkpoints import LambdaCheckpoints
from factbook.api.log import events
from factbook.domain.strict_json import Json
from factbook.verify.judges import Verdict, audit, verify_run
from factbook.verify.notes import VerifierKey, read_key
from factbook.wiring.log.services import LogServices
from factbook.wiring.services import Services
from factbook_cli.api import ApiError
from factbook_cli.export import Export
from factbook_local.signer import ensure_signing_key
from support.emulators import Aws
from support.gateway import Gateway, Reply
from support.principals import issue, principal

ORIGIN = "factbook.test"


class StandingClock:
    """The log's clock: stands still unless it is moved."""

    def __init__(self, micros: str = "2026-01-01T00:00:00.000000Z") -> None:
        self.instant = micros

    def micros(self) -> str:
        return self.instant


@dataclass
class Elapsed:
    """A monotonic clock that only tests move."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


events.STREAM_SECONDS = 0.0  # these tests mark runs themselves
CHECKPOINT_APP = events.CheckpointEvents(lambda: None, log_records)  # type: ignore[arg-type,return-value]


@dataclass
class CheckpointLambda:
    """A Lambda client whose one function is the checkpoint function, in this process."""

    logs: LogServices

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Json:  # noqa: N803 - as the SDK names them
        event = json.loads(Payload)
        kind, tenant = event.pop("factbook"), event.pop("tenant")
        if kind == "adopt":
            answer = events.adopt(self.logs, tenant, event.pop("leaves"))
        else:
            assert kind == "checkpoint"
            answer = events.checkpoint_now(self.logs, tenant, event.pop("runIds"))
        assert event == {}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


def checkpoints_of(logs: LogServices) -> LambdaCheckpoints:
    """Requests for checkpoints that the checkpoint function over these services answers."""
    return LambdaCheckpoints(LambdaFunction(CheckpointLambda(logs), "checkpoint"))


@dataclass
class LogService:
    """One tenant whose log stands on an emulator; `services` is one process of the service."""

    aws: Aws
    folder: Path
    tenant: str = field(default_factory=lambda: f"tenant-{uuid.uuid4()}")

    def __post_init__(self) -> None:
        self.client = cache(self.aws.client)
        kms = self.client("kms")
        signing_key = self.folder / "signing-key.pem"
        self.vkey = ensure_signing_key(signing_key, ORIGIN)
        self.settings = replace(
            self.aws.settings,
            kms_key_id=kms.create_key()["KeyMetadata"]["KeyId"],
            checkpoint_signer=f"file:{signing_key}",
            checkpoint_origin=ORIGIN,
        )
        self.services = self.process()
        self.token = issue(self.services, principal(self.tenant, "admin", admin=True))
        self.admin = Gateway(self.services, self.token)
        self.runs: set[str] = set()

    @property
    def key(self) -> VerifierKey:
        return read_key(self.vkey)

    def process(self, client: Any = None) -> Services:
        """Another process of the service: its own caches."""
        services = Services(self.settings, None, client or self.client)
        logs = LogServices(self.settings, client or self.client)
        services.__dict__["logs"] = logs
        logs.__dict__["checkpoint_requests"] = checkpoints_of(logs)
        return services

    def gateway(self, services: Services, token: str | None = None) -> Gateway:
        return Gateway(services, token or self.token)

    def append(self, run: str, *payloads: Any, **fields: Any) -> list[Json]:
        self.runs.add(run)
        body = {"entries": [{"kind": "tool-call", "payload": each} | fields for each in payloads]}
        reply = self.admin.call("POST", f"/v1/memory/runs/{run}/log", body)
        assert reply.status == 201, reply.text
        entries: list[Json] = reply.json["entries"]
        return entries

    def items(self) -> list[Json]:
        """The tenant's items of the log table, as the table has them."""
        return [
            item
            for run in sorted(self.runs)
            for item in self.partition(self.settings.log_table, self.tenant, run)
        ]

    def partition(self, table: str, *parts: str) -> list[Json]:
        """Items of one partition, in order."""
        pages = (
            self.client("dynamodb")
            .get_paginator("query")
            .paginate(
                TableName=table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": key(*parts)}},
            )
        )
        return [item for page in pages for item in page["Items"]]

    def stream(self) -> list[Json]:
        """What the log table's stream says of everything in it."""
        return [
            {
                "eventName": "INSERT",
                "dynamodb": {
                    "Keys": {"pk": item["pk"], "sk": item["sk"]},
                    "NewImage": item,
                    "SequenceNumber": str(number),
                },
            }
            for number, item in enumerate(self.items())
        ]

    def checkpoint(self, services: Services | None = None) -> Json:
        """The stream is heard, then a checkpoint is made as a tick would."""
        logs = (services or self.services).logs
        assert CHECKPOINT_APP.mark(logs, self.stream()) == {"batchItemFailures": []}
        return dict(events.checkpoint_now(logs, self.tenant, []))

    def export_run(self, run: str, path: Path, pinned: str | None = None) -> Path:
        with path.open("wb") as file:
            Export(GatewayApi(self.admin), file, lambda _: None).run(run, [pinned] if pinned else [])
        return path

    def export_all(self, path: Path) -> Path:
        with path.open("wb") as file:
            Export(GatewayApi(self.admin), file, lambda _: None).everything()
        return path

    def verify(self, run: str, pinned: str | None = None) -> Verdict:
        path = self.export_run(run, self.folder / f"{uuid.uuid4()}.jsonl", pinned)
        return verify_run(path, self.key, pinned)

    def audit(self, pinned: str | None = None) -> Verdict:
        return audit(self.export_all(self.folder / f"{uuid.uuid4()}.jsonl"), self.key, pinned)


class GatewayApi:
    """`factbook_cli.api.Api` over handlers called in this process."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def get(self, *path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return _answer(self._gateway.call("GET", "/" + "/".join(path), query=given))

    def post(self, body: Any, *path: str) -> Any:
        return _answer(self._gateway.call("POST", "/" + "/".join(path), body))


def _answer(reply: Reply) -> Any:
    if reply.status >= 300:
        raise ApiError(reply.status, reply.code, reply.json["error"]["message"])
    return reply.json
