"""Many processes that append to runs at once: `python -m support.log_writers` tells what each append took.

Reads a JSON plan on stdin (`Plan`), forks a process per writer, and writes a JSON list of attempts per entry.
"""

import json
import multiprocessing
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import boto3

from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.domain.access.principals import Actor, Principal
from factbook.ports.log.entries import StoredEntry
from factbook.settings import Settings
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.wiring.clients import SDK
from factbook.wiring.log.services import LogServices


@dataclass(frozen=True)
class Plan:
    """`runs[n]` is the run that writer n appends `each` entries to, `batch` at a time."""

    endpoint: str
    settings: dict[str, Any]
    tenant: str
    runs: list[str]
    each: int
    batch: int = 1


class CountedLog(DynamoLog):
    """Counts the puts tried."""

    tried = 0

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        self.tried += 1
        return super().put(entries)


def write(plan: Plan, writer: int) -> list[int]:
    """Append as one process of the service would; the puts each request took."""

    def client(service: str) -> Any:
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=plan.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=SDK,
        )

    services = LogServices(Settings(**plan.settings), client)
    store = CountedLog(client("dynamodb"), services._settings.log_table)
    log = LogWriter(store, services.vault, services.clock)
    principal = Principal(plan.tenant, Actor(kind="service", id=f"writer-{writer}"), admin=True)
    attempts = []
    for number in range(plan.each // plan.batch):
        before = store.tried
        requests = [
            Request("tool-call", {"writer": writer, "number": number * plan.batch + each})
            for each in range(plan.batch)
        ]
        append_entries(log, principal, plan.runs[writer], requests)
        attempts.append(store.tried - before)
    return attempts


def main() -> None:
    plan = Plan(**json.load(sys.stdin))
    with multiprocessing.get_context("fork").Pool(len(plan.runs)) as pool:
        attempts = pool.starmap(write, [(plan, writer) for writer in range(len(plan.runs))], chunksize=1)
    json.dump(attempts, sys.stdout)


def spoken(plan: Plan) -> str:
    return json.dumps(asdict(plan))


if __name__ == "__main__":
    main()
