"""What the erase function hears besides requests: messages that say which erasure goes on, and the tick that makes up for lost ones."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from factbook.api.app import App
from factbook.api.deadlines import deadline_of
from factbook.api.erasure.services import ErasureServices
from factbook.api.telemetry import Observation, kind_of, logger, observe
from factbook.domain.errors import FactbookError
from factbook.ports.deadline import Deadline
from factbook.usecases.erasure.replaying import work_on_replays
from factbook.usecases.erasure.telling import tell_again
from factbook.usecases.erasure.working import work_on_erasure

RESERVE_SECONDS = 20.0
"""Of an invocation: a call that the store lets hang, and keeping what was done."""

REPLAY_PAUSE_SECONDS = 5.0

Message = dict[str, Any]


class ErasureEvents:
    """The handler of the erase function: requests go to `app`."""

    def __init__(self, app: App, services: Callable[[], ErasureServices]) -> None:
        self._app = app
        self.services = services

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """A request; messages `{"tenant", "erasure"}` and `{"tenant", "replays": true}` of the queue; or the tick."""
        if "routeKey" in event:
            return self._app(event, context)
        with observe("erase", event, context) as seen:
            services, deadline = self.services(), deadline_of(context, RESERVE_SECONDS)
            if "Records" in event:
                return self._work(services, event["Records"], deadline, seen)
            return _tick(services, seen)

    def _work(
        self, services: ErasureServices, records: Sequence[Message], deadline: Deadline, seen: Observation
    ) -> dict[str, Any]:
        failed: list[str] = []
        for record in records:
            message = json.loads(record["body"])
            work = _replay if message.get("replays") else _erase
            try:
                work(services, message, deadline)
            except FactbookError as error:  # the queue sends it again
                logger.warning("an erasure waits", extra={"tenant": message["tenant"], "code": error.code})
                failed.append(record["messageId"])
        seen.count(ErasuresAgain=len(failed))
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def _erase(services: ErasureServices, message: Message, deadline: Deadline) -> None:
    tenant, erasure_id = message["tenant"], message["erasure"]
    about = {"tenant": tenant, "erasure": erasure_id}
    after = work_on_erasure(services.working, tenant, erasure_id, deadline, partial(_report, about))
    if after is not None:
        said = {"status": after.status, "phase": after.phase, "error": after.last_error, **after.counts}
        logger.info("erasure", extra=about | said)


def _report(about: Message, error: Exception) -> None:
    logger.error("an erasure failed", extra=about | {"error": kind_of(error)})


def _replay(services: ErasureServices, message: Message, deadline: Deadline) -> None:
    if work_on_replays(services.replaying, message["tenant"], deadline):
        services.queue.send_replays(message["tenant"], REPLAY_PAUSE_SECONDS)


def _tick(services: ErasureServices, seen: Observation) -> dict[str, Any]:
    """Tell the queue again of what is due and was not taken."""
    told = tell_again(services.working, services.replaying.replays)
    seen.count(ErasuresDue=told.due)
    return {"erasures": told.erasures, "replays": told.replays}
