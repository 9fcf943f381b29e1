"""Worker processes: Lambda's execution environments. One event at a time each, killed at the function's timeout.

A pool keeps a number of workers warm, adds more while all are busy, up to a bound, and replaces what dies.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from factbook_local.environment import machine_environment
from factbook_local.zygote import TAKEN, receive_command, send_command

_FRAME = struct.Struct(">II")
_HELLO_SECONDS = 30.0


@dataclass(frozen=True)
class Outcome:
    """What an invocation came to: a JSON `body`, or an `error` of errorType, errorMessage and perhaps stackTrace."""

    request_id: str
    body: bytes = b""
    error: dict[str, Any] | None = None
    crashed: bool = False
    """Whether the environment ended or timed out, rather than the handler raised."""


class _NotBegunError(Exception):
    """A worker ended before it took its event."""


class _Worker:
    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid, self.reader, self.writer = pid, reader, writer

    @property
    def alive(self) -> bool:
        return not self.reader.at_eof()

    def kill(self) -> None:
        self.writer.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Zygote:
    """The root process that function templates are forked from."""

    def __init__(self, paths: list[str]) -> None:
        ours, theirs = socket.socketpair()
        search = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
        environment = {**machine_environment(), "PYTHONPATH": search}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "factbook_local.zygote", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        self._control = ours

    def share(self, modules: list[str], paths: list[str], environment: dict[str, str]) -> None:
        """Import modules of these folders before any function is forked, in what their environments agree on."""
        send_command(self._control, {"shared": modules, "paths": paths, "environment": environment})

    def template(self, description: dict[str, Any], log_fd: int) -> socket.socket:
        """Fork a function's template. Its first message says how its import went."""
        ours, theirs = socket.socketpair()
        send_command(self._control, description, (theirs.fileno(), log_fd))
        theirs.close()
        return ours

    def stop(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


class Pool:
    """The workers of one function. `description` is what `zygote` reads: name, arn, handler, paths, environment, memory."""

    def __init__(
        self,
        zygote: Zygote,
        description: dict[str, Any],
        *,
        timeout: float,
        warm: int,
        most: int,
        on_log: Callable[[str, str], None],
    ) -> None:
        self.name: str = description["name"]
        self.arn: str = description["arn"]
        self.timeout = timeout
        self.import_error: dict[str, Any] | None = None
        self.import_seconds = 0.0
        self._zygote, self._description, self._on_log = zygote, description, on_log
        self._warm, self._most = warm, max(warm, most)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._starting = 0
        self._waiting: deque[asyncio.Future[_Worker]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._forking = asyncio.Lock()

    async def start(self) -> None:
        """Fork and import; then the warm workers. An import that fails is kept and answers every event."""
        loop = asyncio.get_running_loop()
        read_fd, write_fd = os.pipe()
        self._control = self._zygote.template(self._description, write_fd)
        os.close(write_fd)
        self._spawn_task(self._follow_log(read_fd))
        hello = await loop.run_in_executor(None, receive_command, self._control)
        if hello is None:
            self.import_error = {
                "errorType": "Runtime.ExitError",
                "errorMessage": "the module ended the process",
            }
            return
        self.import_error, self.import_seconds = hello[0]["error"], hello[0]["seconds"]
        for worker in await asyncio.gather(*(self._fork() for _ in range(self._warm))):
            self._offer(worker)

    def _spawn_task(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_log(self, fd: int) -> None:
        reader = asyncio.StreamReader(limit=1 << 20)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb")
        )
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # longer than the limit: the rest comes as lines of its own
                continue
            if not line:
                return
            self._on_log(self.name, line.decode("utf-8", "replace").rstrip("\n"))

    async def _fork(self) -> _Worker:
        ours, theirs = socket.socketpair()
        async with self._forking:
            send_command(self._control, {}, (theirs.fileno(),))
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 24)
        async with asyncio.timeout(_HELLO_SECONDS):
            meta, _ = await _read(reader)
        return _Worker(meta["pid"], reader, writer)

    @property
    def _size(self) -> int:
        return len(self._idle) + len(self._busy) + self._starting

    async def invoke(
        self, event: bytes, *, request_id: str | None = None, trace: str = "", wait: float = 30.0
    ) -> Outcome:
        """Run the function once. Waits up to `wait` seconds for a free worker; then it is throttled, as Lambda says."""
        request_id = request_id or str(uuid.uuid4())
        try:
            while True:
                async with asyncio.timeout(wait):
                    worker = await self._take()
                with contextlib.suppress(_NotBegunError):
                    return await self._use(worker, event, request_id, trace)
        except TimeoutError:
            throttled = {"errorType": "TooManyRequestsException", "errorMessage": "Rate Exceeded."}
            return Outcome(request_id, error=throttled, crashed=True)

    async def _use(self, worker: _Worker, event: bytes, request_id: str, trace: str) -> Outcome:
        """Raises _NotBegunError when the worker was dead before it took the event."""
        self._busy.add(worker)
        sound = False
        try:
            outcome = await self._exchange(worker, event, request_id, trace)
            sound = not outcome.crashed
            return outcome
        finally:
            self._busy.discard(worker)
            if sound:
                self._offer(worker)
            else:
                worker.kill()
                self._replace()

    async def _exchange(self, worker: _Worker, event: bytes, request_id: str, trace: str) -> Outcome:
        head = json.dumps(
            {"request": request_id, "deadline": time.time() + self.timeout, "trace": trace}
        ).encode()
        taken = False
        try:
            async with asyncio.timeout(self.timeout):
                worker.writer.write(_FRAME.pack(len(head), len(event)) + head + event)
                await worker.writer.drain()
                taken = await worker.reader.readexactly(len(TAKEN)) == TAKEN
                meta, body = await _read(worker.reader)
        except TimeoutError:
            return _crash(request_id, "Sandbox.Timedout", f"Task timed out after {self.timeout:.2f} seconds")
        except (asyncio.IncompleteReadError, ConnectionError):
            if not taken:
                raise _NotBegunError from None
            return _crash(request_id, "Runtime.ExitError", "Runtime exited without providing a reason")
        return Outcome(request_id, body, meta.get("error"))

    async def _take(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.kill()
        if self._size < self._most:
            self._replace(force=True)
        waiter: asyncio.Future[_Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._offer(waiter.result())
            raise

    def _offer(self, worker: _Worker) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(worker)
                return
        self._idle.append(worker)

    def _replace(self, *, force: bool = False) -> None:
        """Start a worker when fewer than the warm number are left, or someone waits."""
        if force or self._size < self._warm or (self._waiting and self._size < self._most):
            self._starting += 1
            self._spawn_task(self._add())

    async def _add(self) -> None:
        try:
            worker = await self._fork()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._on_log(self.name, f"no worker could be started: {error!r}")
            return
        finally:
            self._starting -= 1
        self._offer(worker)

    def workers(self) -> list[int]:
        """The process ids of the workers there are."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    async def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._control.close()


async def _read(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    size, length = _FRAME.unpack(await reader.readexactly(_FRAME.size))
    return json.loads(await reader.readexactly(size)), await reader.readexactly(length)


def _crash(request_id: str, kind: str, message: str) -> Outcome:
    return Outcome(
        request_id,
        error={"errorType": kind, "errorMessage": f"RequestId: {request_id} Error: {message}"},
        crashed=True,
    )
