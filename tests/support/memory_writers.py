"""Many processes that remember at once, of one person with one agent.

`main` reads a JSON plan (`Plan`) and then one round a line (`Round`) on stdin. In each round every process begins at the
same moment and remembers keys of its own; a line of JSON tells what each of them was answered.
"""

import json
import multiprocessing
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import boto3

from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import MemoryFull
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.operations import Operation
from factbook.settings import Settings
from factbook.usecases.memories.remembering import remember
from factbook.wiring.clients import SDK
from factbook.wiring.services import Services
from support.emulators import Aws
from support.fakes import FakeClock
from support.gateway import ROOT

SOURCES = [str(ROOT / folder) for folder in ("tests", "layers/factbook", "layers/search", "local")]


@dataclass(frozen=True)
class Plan:
    endpoint: str
    settings: dict[str, Any]
    tenant: str
    writers: int
    each: int


@dataclass(frozen=True)
class Round:
    """`now`: what every clock shows; `name` begins the keys."""

    now: str
    name: str


def said(tenant: str, key: str) -> Statement:
    """A proposal of ann with copilot, kept for a day: it can be deleted, rejected, or run out."""
    scope = Scope(tenant_id=tenant, user_id="ann")
    return Statement("copilot", scope, "user:ann", "memory", key, key=key, about="account", keep_days=1)


def person(tenant: str) -> Principal:
    return Principal(tenant, Actor(kind="user", id="ann"))


def operation() -> Operation:
    return Operation(uuid.uuid4().hex, "body")


_start: Any = None


def _begin(barrier: Any) -> None:
    global _start
    _start = barrier


@cache
def _services(endpoint: str, settings: str) -> Services:
    def client(service: str) -> Any:
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=SDK,
        )

    return Services(Settings(**json.loads(settings)), FakeClock(), client)


def write(plan: Plan, turn: Round, writer: int) -> list[str]:
    """Remember as one process of the service would: `ok` or `full`, key by key."""
    services = _services(plan.endpoint, json.dumps(plan.settings))
    services.clock.instant = turn.now  # type: ignore[attr-defined]
    services.policies.policy(plan.tenant)
    answers = []
    _start.wait()
    for number in range(plan.each):
        key = f"{turn.name}-{writer}-{number}"
        try:
            remember(services.memories, person(plan.tenant), operation(), said(plan.tenant, key))
        except MemoryFull:
            answers.append("full")
        else:
            answers.append("ok")
    return answers


def main() -> None:
    plan = Plan(**json.loads(sys.stdin.readline()))
    fork = multiprocessing.get_context("fork")
    with fork.Pool(plan.writers, _begin, (fork.Barrier(plan.writers),)) as pool:
        for line in sys.stdin:
            turn = Round(**json.loads(line))
            tasks = [(plan, turn, writer) for writer in range(plan.writers)]
            sys.stdout.write(json.dumps(pool.starmap(write, tasks, chunksize=1)) + "\n")
            sys.stdout.flush()


class Crowd:
    """The processes, from outside."""

    def __init__(self, running: "subprocess.Popen[str]") -> None:
        self._running = running

    def remember(self, turn: Round) -> list[list[str]]:
        """The answers of one round, by process."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        self._running.stdin.write(json.dumps(asdict(turn)) + "\n")
        self._running.stdin.flush()
        answers: list[list[str]] = json.loads(self._running.stdout.readline())
        return answers


@contextmanager
def crowd(aws: Aws, tenant: str, writers: int, each: int) -> Iterator[Crowd]:
    program = f"import sys; sys.path[:0] = {SOURCES!r}; from support.memory_writers import main; main()"
    plan = Plan(aws.endpoint or "", asdict(aws.settings), tenant, writers, each)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        running.stdin.write(json.dumps(asdict(plan)) + "\n")
        running.stdin.flush()
        try:
            yield Crowd(running)
        finally:
            running.stdin.close()
            running.wait(30)
