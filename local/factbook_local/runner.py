"""The local cloud, put together: data plane, workers, gateway, Invoke API and pumps, started and ended in order."""

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
import uvicorn
from urllib3.exceptions import HTTPError

from factbook.settings import Settings, read_settings
from factbook_local.dataplane.process import ACCOUNT, CREDENTIALS, REGION, DataPlaneProcess
from factbook_local.environment import common_environment, function_environment, unusable_settings
from factbook_local.folder import DataFolder, TemporaryFolder
from factbook_local.gateway import Gateway
from factbook_local.invoke import InvokeApi
from factbook_local.routes import Router
from factbook_local.shared_imports import shared_modules
from factbook_local.signer import ensure_ledger_keys, ensure_signing_key
from factbook_local.sockets import listen
from factbook_local.stack import STACK, Function, read_stack
from factbook_local.template import Template
from factbook_local.workers import Pool, Zygote

BUSY_FUNCTIONS = ("write", "read")
"""Functions that keep at least four workers warm; the others keep one."""
MOST_WORKERS = 8
COMPARING = "Comparing the search index with the tables …"
RECONCILED = ("index", "checkpoint")
"""Functions that hear `{"factbook": "reconcile"}` before the service is ready: a first start makes the search index."""


class StartError(Exception):
    """The runner cannot start; each line of the message says why and what to do."""


@dataclass(frozen=True)
class Options:
    """What `factbook local` was asked for. `port` 0: a free one. `data` None: nothing is kept."""

    template: Path
    port: int = 8000
    data: Path | None = None
    tenants: tuple[str, ...] = ("demo",)
    reset: bool = False
    verbose: bool = False
    parameters: dict[str, str] = field(default_factory=dict)


class Runner:
    """One local cloud. `start`, then use it, then `stop`; `stop` is right after a failed start too."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tokens: dict[str, str] = {}
        self.vkey = ""
        self.pools: dict[str, Pool] = {}
        self.failures: dict[str, str] = {}
        self.timings: dict[str, float] = {}
        self.behind = ""
        """Why the search index is not in line with the tables, if so."""
        self._began = time.perf_counter()
        self._doing = "Starting …"
        self._exit = contextlib.AsyncExitStack()
        self._servers: list[_Server] = []

    async def start(self) -> None:
        """Bring everything up. Raises StartError, FolderError or TemplateError with a message for a person."""
        listener = _listen(self.options.port)
        self._exit.callback(listener.close)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        invoke_listener = _listen(0)
        self._invoke_url = f"http://127.0.0.1:{invoke_listener.getsockname()[1]}"
        self.template = Template(self.options.template, _pseudo_parameters(), self.options.parameters)
        self.stack = read_stack(self.template)
        if unusable := unusable_settings(self.stack.functions.values(), self.template):
            raise StartError("\n".join(unusable))
        self.folder = (
            DataFolder(self.options.data, reset=self.options.reset)
            if self.options.data
            else TemporaryFolder()
        )
        self._exit.callback(self.folder.close)
        self._mark("template")
        self._doing = f"Reading the state of {self.options.data} …" if self.options.data else "Starting …"
        await self._start_processes()
        self._doing = "Loading the functions …"
        await self._start_functions()
        self._serve(InvokeApi(self.pools), invoke_listener)
        await self._start_pumps()
        self._doing = COMPARING
        await self._reconcile()
        self._mark("reconciled")
        self._serve(Gateway(Router(self.stack.routes), self.pools, self.url, ACCOUNT), listener)
        self._mark("ready")

    async def _start_processes(self) -> None:
        from factbook_local.dataplane.provision import expiring_tables

        loop = asyncio.get_running_loop()
        kept = isinstance(self.folder, TemporaryFolder)
        self.data_plane = DataPlaneProcess(
            file=None if kept else self.folder.state,
            expiring=expiring_tables(self.stack),
            keep_open=(self.folder.lock_fd,),
            log=None,
        )
        self._exit.push_async_callback(asyncio.to_thread, self.data_plane.stop)
        self._zygote = Zygote([str(path) for path in sys.path if path])
        self._exit.callback(self._zygote.stop)
        warming = loop.run_in_executor(None, self._warm_up)
        await loop.run_in_executor(None, self.data_plane.wait_until_serving)
        self._mark("data plane")
        await warming
        await loop.run_in_executor(None, self._provision)
        self._mark("provisioned")

    def _warm_up(self) -> None:
        """Import what starting needs while the data plane does the same."""
        from factbook_local.clients import Clients

        self.clients = Clients(self.data_plane.url)
        _ = self.clients.dynamodb, self.clients.s3, self.clients.sqs, self.clients.kms

    def _provision(self) -> None:
        from factbook_local.dataplane.provision import provision

        provision(self.stack, self.clients, self.url)
        physical = self.template.physical
        self.tables = {
            logical: found["Ref"]
            for logical, found in physical.items()
            if self.template.resources[logical]["Type"] == "AWS::DynamoDB::Table"
        }
        self.buckets = {
            logical: found["Ref"]
            for logical, found in physical.items()
            if self.template.resources[logical]["Type"] == "AWS::S3::Bucket"
        }

    async def _start_functions(self) -> None:
        local = self._local_settings()
        self.environments: dict[str, dict[str, str]] = {}
        for logical, function in self.stack.functions.items():
            self.environments[logical] = function_environment(
                function,
                self.template,
                endpoint=self.data_plane.url,
                invoke_url=self._invoke_url,
                local=local,
            )
            self.pools[logical] = self._pool(function, self.environments[logical])
            self._exit.push_async_callback(self.pools[logical].stop)
        folders = {
            str(path): None for function in self.stack.functions.values() for path in function.paths[1:]
        }
        shared = common_environment(self.environments.values())
        self._zygote.share(shared_modules(self.stack.functions.values()), list(folders), shared)
        _, self.tokens = await asyncio.gather(self._start_pools(), self._make_tokens())
        self._mark("functions")
        imports = ", ".join(f"{name} {pool.import_seconds:.2f} s" for name, pool in self.pools.items())
        self._log("runner", f"imported {imports}")
        for logical, pool in self.pools.items():
            if pool.import_error is not None:
                self.failures[logical] = (
                    f"{pool.import_error['errorType']}: {pool.import_error['errorMessage']}"
                )

    async def _start_pools(self) -> None:
        await asyncio.gather(*(pool.start() for pool in self.pools.values()))

    def _local_settings(self) -> dict[str, str]:
        local = {
            "CHECKPOINT_SIGNER": f"file:{self.folder.signing_key}",
            "ERASURE_LEDGER_KEYS": f"file:{self.folder.ledger_keys}",
        }
        ensure_ledger_keys(self.folder.ledger_keys)
        asked = {
            name: value
            for function in self.stack.functions.values()
            for name, value in function.environment.items()
        }
        origin = str(self.template.resolve(asked.get("CHECKPOINT_ORIGIN", ""))) or "factbook.local"
        self.vkey = ensure_signing_key(self.folder.signing_key, origin)
        if not os.environ.get("OPENSEARCH_URL") and not self.template.resolve(asked.get("VECTORS_TABLE", "")):
            local |= {"SEARCH_SQLITE": str(self.folder.search), "OPENSEARCH_URL": ""}
        return local

    def _description(self, function: Function, environment: dict[str, str]) -> dict[str, Any]:
        return {
            "name": function.name,
            "arn": self.template.physical[function.logical_id]["Arn"],
            "handler": function.handler,
            "memory": function.memory,
            "environment": environment,
            "paths": [str(path) for path in function.paths],
        }

    def _pool(self, function: Function, environment: dict[str, str]) -> Pool:
        warm = 4 if function.paths[0].name in BUSY_FUNCTIONS else 1
        most = max(MOST_WORKERS, warm) if function.concurrency is None else function.concurrency
        return Pool(
            self._zygote,
            self._description(function, environment),
            timeout=function.timeout,
            warm=min(warm, most),
            most=most,
            on_log=self._log,
        )

    async def _make_tokens(self) -> dict[str, str]:
        """In a process of its own, forked like a function's: here nothing of the product is imported."""
        environments = (found for found in self.environments.items() if found[1].get("ACCESS_TABLE"))
        logical, environment = next(environments, ("", {}))
        if not logical:
            return {}  # a template without an access table has no tokens to make
        description = self._description(self.stack.functions[logical], environment)
        maker = Pool(
            self._zygote,
            description | {"name": "tokens", "handler": "factbook_local.derived_tokens.make_tokens"},
            timeout=60.0,
            warm=1,
            most=1,
            on_log=self._log,
        )
        try:
            await maker.start()
            event = {"secret": self.folder.secret.hex(), "tenants": self.options.tenants}
            outcome = await maker.invoke(json.dumps(event).encode())
        finally:
            await maker.stop()
        if outcome.error is not None:
            raise StartError(f"no token could be made: {outcome.error['errorMessage']}")
        return dict(json.loads(outcome.body))

    async def _start_pumps(self) -> None:
        from factbook_local.pumps.hub import Hub

        hub = Hub(self.stack, self.clients, self.pools, self._log)
        await hub.start()
        self._exit.push_async_callback(hub.stop)

    async def _reconcile(self) -> None:
        """Caches and marks that may lag behind the restored truth catch up before anyone reads."""
        wanted = [
            logical
            for logical, function in self.stack.functions.items()
            if function.paths[0].name in RECONCILED and logical not in self.failures
        ]
        event = b'{"factbook": "reconcile"}'
        outcomes = await asyncio.gather(*(self.pools[logical].invoke(event) for logical in wanted))
        for logical, outcome in zip(wanted, outcomes, strict=True):
            if outcome.error is not None:
                self.failures[logical] = f"did not reconcile: {outcome.error['errorMessage']}"
            else:
                self.behind = self.behind or json.loads(outcome.body).get("problem") or ""

    async def doing(self) -> str:
        """What a start is about now; of the search index, how many records have been looked at."""
        if self._doing is not COMPARING:
            return self._doing
        index = next(
            (name for name, each in self.stack.functions.items() if each.paths[0].name == "index"), ""
        )
        if not index or index in self.failures:
            return COMPARING
        outcome = await self.pools[index].invoke(b'{"factbook": "progress"}')
        job = json.loads(outcome.body).get("job") if outcome.error is None else None
        return f"{COMPARING} {job['records']:,} records so far" if job else COMPARING

    def _serve(self, application: Any, listener: socket.socket) -> None:
        server = _Server(
            uvicorn.Config(
                application,
                lifespan="off",
                log_level="critical",
                access_log=False,
                ws="none",
                proxy_headers=False,
                http="h11",
                server_header=False,
                timeout_keep_alive=75,
                h11_max_incomplete_event_size=1 << 20,
                timeout_graceful_shutdown=3,
            )
        )
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        self._servers.append(server)
        self._exit.push_async_callback(_finish, server, task)

    def _log(self, function: str, line: str) -> None:
        if self.options.verbose:
            print(f"[{function.removeprefix(STACK + '-')}] {line}", file=sys.stderr, flush=True)

    def _mark(self, phase: str) -> None:
        self.timings[phase] = time.perf_counter() - self._began
        self._log("runner", f"{phase} after {self.timings[phase]:.2f} s")

    def description(self) -> dict[str, Any]:
        """What the ready file holds."""
        roles = ("facts", "log", "keys", "access")
        tables = {role: self._named(f"{role.upper()}_TABLE") for role in roles}
        buckets = {role: self._named(f"{role.upper()}_BUCKET") for role in ("blobs", "checkpoints")}
        return {
            "url": self.url,
            "tenants": {tenant: {"token": token} for tenant, token in self.tokens.items()},
            "vkey": self.vkey,
            "aws": {
                "endpoint": self.data_plane.url,
                "region": REGION,
                "accessKeyId": CREDENTIALS[0],
                "secretAccessKey": CREDENTIALS[1],
                "tables": {role: name for role, name in tables.items() if name},
                "buckets": {role: name for role, name in buckets.items() if name},
                "functions": {
                    "endpoint": self._invoke_url,
                    **{each.paths[0].name: each.name for each in self.stack.functions.values()},
                },
            },
        }

    def _named(self, setting: str) -> str:
        return next(
            (environment[setting] for environment in self.environments.values() if environment.get(setting)),
            "",
        )

    async def search_line(self) -> str:
        """What the service says of its search, asked over HTTP as a client would; empty when it says nothing."""
        token = next(iter(self.tokens.values()), "")
        with contextlib.suppress(HTTPError, ValueError, KeyError):
            answer = await asyncio.get_running_loop().run_in_executor(
                None, _get_json, f"{self.url}/v1/memory/status", token
            )
            return str(answer["search"])
        return ""

    @property
    def mended(self) -> list[str]:
        """What of the data folder was damaged and is made again, a line each."""
        return self.folder.mended

    @property
    def settings(self) -> Settings:
        """Those of all functions together."""
        together: dict[str, str] = {}
        for environment in self.environments.values():
            together |= environment
        return read_settings(together)

    async def until_broken(self) -> str:
        """Waits for as long as the data plane runs; answers what happened to it."""
        while (code := self.data_plane.returncode()) is None:
            await asyncio.sleep(0.2)
        return f"the data plane ended (exit code {code})"

    async def stop(self) -> None:
        await self._exit.aclose()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the command line decides when this ends


async def _finish(server: _Server, task: asyncio.Future[None]) -> None:
    server.should_exit = True
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _listen(port: int) -> socket.socket:
    try:
        return listen(port)
    except OSError as error:
        raise StartError(
            f"port {port} cannot be used: {os.strerror(error.errno or 0)}. Stop what holds it, or give another --port."
        ) from error


def _pseudo_parameters() -> dict[str, str]:
    return {
        "AWS::Region": REGION,
        "AWS::AccountId": ACCOUNT,
        "AWS::Partition": "aws",
        "AWS::StackName": STACK,
        "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/local",
        "AWS::URLSuffix": "amazonaws.com",
    }


def _get_json(url: str, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return urllib3.request("GET", url, headers=headers, timeout=10, retries=False).json()
