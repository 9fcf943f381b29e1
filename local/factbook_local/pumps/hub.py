"""All pumps of a stack, and what they share: the wake-up, the positions, the destinations."""

import asyncio
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from factbook_local.clients import Clients
from factbook_local.dataplane.process import ACCOUNT, REGION
from factbook_local.invoke import invoke_later
from factbook_local.pumps.local_stream import LocalStream
from factbook_local.pumps.queues import QueuePump, forever
from factbook_local.pumps.schedules import scheduled_event, tick
from factbook_local.pumps.streams import StreamPump
from factbook_local.stack import Schedule, Stack, StreamSource
from factbook_local.workers import Pool

_RESTART_SECONDS = 1.0
POLLERS = 2
"""Of each queue: as many as the least concurrency that Lambda can be bound to."""


class Hub:
    """Starts every pump and ends them together."""

    def __init__(
        self, stack: Stack, clients: Clients, pools: dict[str, Pool], report: Callable[[str, str], None]
    ) -> None:
        self._stack, self._clients, self._pools, self._report = stack, clients, pools, report
        self._threads = ThreadPoolExecutor(4 + len(stack.streams) + POLLERS * len(stack.queues))
        self._tasks: list[asyncio.Task[None]] = []

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, functools.partial(call, *arguments, **named)
        )

    async def start(self) -> None:
        for schedule in self._stack.schedules:
            if self._can_run(schedule.function):
                self._run(tick(schedule.every, functools.partial(self._fire, schedule)))
        for source in self._stack.streams:
            if self._can_run(source.function):
                self._run(self._pump_stream(source))
        for queue in self._stack.queues:
            if not self._can_run(queue.function):
                continue
            physical = self._stack.template.physical[queue.queue]
            pump = QueuePump(
                queue,
                self._clients.sqs,
                physical["Ref"],
                physical["Arn"],
                REGION,
                self._pools[queue.function],
                in_thread=self._in_thread,
            )
            for _ in range(POLLERS):
                self._run(forever(pump, functools.partial(self._report, queue.name)))

    def _can_run(self, function: str) -> bool:
        """A function that does not import would only fail: what waits for it stays where it is."""
        return self._pools[function].import_error is None

    def _run(self, coroutine: Any) -> None:
        self._tasks.append(asyncio.ensure_future(coroutine))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _pump_stream(self, source: StreamSource) -> None:
        arn = self._stack.template.physical[source.table]["StreamArn"]
        destination = self._stack.template.resolve(source.on_failure)
        consumers = [other.name for other in self._stack.streams if other.table == source.table]
        while True:
            stream = LocalStream(self._clients.url, arn, source, consumers, self._in_thread)
            pump = StreamPump(
                source,
                stream,
                self._pools[source.function],
                discard=functools.partial(self._discard, destination),
            )
            try:
                await pump.run()
            except Exception as error:  # noqa: BLE001 - a source outlives whatever one poll meets
                self._report(source.name, f"{type(error).__name__}: {error}")
                await asyncio.sleep(_RESTART_SECONDS)

    async def _discard(self, destination: str | None, description: dict[str, Any]) -> None:
        if destination is None:
            self._report("streams", f"records given up: {description['requestContext']['condition']}")
            return
        url = self._clients.url + f"/{ACCOUNT}/" + destination.rpartition(":")[2]
        await self._in_thread(
            self._clients.sqs.send_message, QueueUrl=url, MessageBody=json.dumps(description)
        )

    async def _fire(self, schedule: Schedule, moment: datetime) -> None:
        event = scheduled_event(schedule, moment, ACCOUNT, REGION)
        self._run(self._invoke_later(schedule, event))
        self._tasks = [task for task in self._tasks if not task.done()]

    async def _invoke_later(self, schedule: Schedule, event: bytes) -> None:
        outcome = await invoke_later(self._pools[schedule.function], event)
        if outcome.error is not None:
            self._report(schedule.name, f"given up: {outcome.error['errorMessage']}")
