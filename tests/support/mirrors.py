"""A service on an emulator whose mirrored facts come from a server on this machine; the refresh function is in this process."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from factbook.api.sources.events import RefreshEvents
from factbook.ports.deadline import Deadline
from factbook.usecases.sources.on_read import READ_SECONDS, OnRead
from factbook.wiring.services import Services
from support.emulators import Aws
from support.fakes import FakeClock
from support.gateway import Gateway, Reply, load_app
from support.principals import TenantService
from support.source_server import SourceServer, json_reply, reply, source_server

FACTS = "/v1/memory/facts"


class InThisProcess:
    """Refresher: the function's own handler, with the event that it gets."""

    def __init__(self, handler: Callable[[dict[str, Any]], Any]) -> None:
        self._handler = handler
        self.calls = 0

    def refresh(self, tenant: str, fact_id: str, lease: str, seconds: float) -> None:
        del seconds  # it answers at once
        self.calls += 1
        event = {"factbook": "refresh", "tenant": tenant, "factId": fact_id, "lease": lease}
        assert self._handler(json.loads(json.dumps(event)))["outcome"]


@dataclass
class Mirrors:
    """One tenant, its administrator, and the server that its facts mirror. The service's clock is moved by hand."""

    service: TenantService
    server: SourceServer
    clock: FakeClock
    handler: RefreshEvents
    refresher: InThisProcess

    @property
    def admin(self) -> Gateway:
        return self.service.admin

    @property
    def services(self) -> Services:
        return self.service.services

    def says(self, path: str, answer: Any, **headers: str) -> None:
        """The server says JSON from now on, or (bytes) anything, or (a callable) does it."""
        plain = isinstance(answer, bytes) or callable(answer)
        self.server.behaviours[path] = answer if plain else json_reply(json.dumps(answer), **headers)

    def mirror(
        self, path: str = "/", content: Any = "old", *, strategy: str = "on-read", ttl: int = 60, **said: Any
    ) -> Any:
        """A new fact that mirrors a path of the server."""
        source = {
            "kind": "http-api",
            "uri": self.server.url(path),
            "freshness": {"ttlSeconds": ttl},
            "refresh": {"strategy": strategy},
        } | said.pop("source", {})
        body = {"type": "acme.price", "content": content, "source": source, **said}
        made = self.admin.call("POST", FACTS, body)
        assert made.status in (200, 201), made.text
        return made.json

    def read(self, fact_id: str, **query: Any) -> Reply:
        return self.admin.call("GET", f"{FACTS}/{fact_id}", query=query)

    def refresh(self, fact_id: str) -> Reply:
        return self.admin.call("POST", f"{FACTS}/{fact_id}/refresh", {})

    def sweep(self) -> int:
        """Queue what is due of this tenant: an emulator may be shared, and other tenants' facts are due as well."""
        swept = self.admin.call("POST", "/v1/memory/refresh/sweep", {})
        assert (swept.status, swept.json["more"]) == (202, False)
        return int(swept.json["queued"])

    def tick(self) -> Any:
        """A round, of all tenants."""
        return self.handler({"source": "aws.scheduler"}, None)

    def work(self) -> list[Any]:
        """Bring the queue's messages to the function, as Lambda does; what it took is deleted. The answers' failures."""
        sqs, url = self.services._client("sqs"), self.services.settings.refresh_queue
        failures: list[Any] = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            records = [
                {"messageId": each["MessageId"], "body": each["Body"], "eventSource": "aws:sqs"}
                for each in messages
            ]
            answer = self.handler({"Records": records}, None)
            failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            failures += sorted(failed)
            for each in messages:
                if each["MessageId"] not in failed:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return failures


@contextmanager
def mirrors(aws: Aws, tenant: str) -> Iterator[Mirrors]:
    sqs = aws.client("sqs")
    urls = [
        sqs.create_queue(QueueName=f"{name}-{tenant[-12:]}", Attributes={"VisibilityTimeout": "60"})[
            "QueueUrl"
        ]
        for name in ("refreshes", "letters")
    ]
    with source_server() as server:
        settings = replace(
            aws.settings,
            refresh_function="refresh",
            refresh_queue=urls[0],
            refresh_dead_letters=urls[1],
            refresh_allow=server.netloc,
            kms_key_id=aws.client("kms").create_key()["KeyMetadata"]["KeyId"],
        )
        clock = FakeClock()
        services = Services(settings, clock, aws.client)
        service = TenantService(services, tenant)
        handler = RefreshEvents(load_app("refresh"), lambda: services)
        refresher = InThisProcess(handler)
        services.sources.on_read = OnRead(
            services.memory.facts,
            services.sources._leases,
            refresher,
            patience=lambda: Deadline(READ_SECONDS, itertools.count(0, 0.05).__next__),
            pause=lambda _: None,
        )
        yield Mirrors(service, server, clock, handler, refresher)


__all__ = ["FACTS", "Mirrors", "json_reply", "mirrors", "reply"]
