"""What the refresh function hears besides requests: its queue, commands, and the schedule's tick."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from factbook.api.app import GATEWAY_SECONDS, App
from factbook.api.deadlines import deadline_of
from factbook.api.services import Services
from factbook.api.sources.services import SourceServices
from factbook.api.telemetry import Observation, kind_of, logger, observe
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.strict_json import Json
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.sources.stores import Wanted
from factbook.usecases.sources.letters import list_letters, send_again
from factbook.usecases.sources.refreshing import refresh_fact
from factbook.usecases.sources.sweeping import sweep
from factbook.usecases.sources.working import work_off

RESERVE_SECONDS = 13.0
"""Of an invocation: as of a request's."""


class RefreshEvents:
    """The handler of the refresh function: `app` serves its routes."""

    def __init__(self, app: App, services: Callable[[], Services]) -> None:
        self.app = app
        self.services = services

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """A request, messages of the queue, `{"factbook": <a command>}`; anything else is the tick."""
        if "routeKey" in event:
            return self.app(event, context)
        with observe("refresh", event, context) as seen:
            sources = self.services().sources
            if "Records" in event:
                return _worked_off(sources, event["Records"], deadline_of(context, RESERVE_SECONDS), seen)
            deadline = deadline_of(context, RESERVE_SECONDS, GATEWAY_SECONDS)
            match event.get("factbook"):
                case "refresh":
                    return _refreshed(sources, event, deadline)
                case "dead-letters":
                    return {"letters": list_letters(sources.dead_letters, deadline)}
                case "resend":
                    sent, unreadable = send_again(sources.dead_letters, sources.queue, deadline)
                    return {"sent": sent, "unreadable": unreadable}
            return _swept(sources, deadline, seen)


def _worked_off(
    sources: SourceServices, records: list[Json], deadline: Deadline, seen: Observation
) -> dict[str, Any]:
    """What cannot be read goes to the dead letters by the queue's own rule, and so does what fails again and again."""
    read = [(record["messageId"], _wanted(record["body"])) for record in records]
    wanted = [(message, each) for message, each in read if each is not None]
    worked = work_off(sources.refreshing, sources.queue, [each for _, each in wanted], deadline)
    failed = [message for message, each in read if each is None]
    failed += [
        message for (message, _), outcome in zip(wanted, worked.brought, strict=True) if outcome is None
    ]
    outcomes = [*worked.brought, *worked.besides]
    counts = Counter(outcome or "again" for outcome in outcomes)
    logger.info("refreshed", extra={"outcomes": dict(counts)})
    again = len(failed) + worked.besides.count(None)
    seen.count(Refreshes=len(outcomes), RefreshesFailed=counts["failed"], RefreshesAgain=again)
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _wanted(body: str) -> Wanted | None:
    try:
        return Wanted.from_json(json.loads(body))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        logger.error("a message of the queue cannot be read", extra={"error": kind_of(error)})
        return None


def _refreshed(sources: SourceServices, event: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    """A reader waits, and has the fact's lease. Raises what leaves it unknown whether anything was written."""
    done = refresh_fact(
        sources.refreshing, event["tenant"], event["factId"], "read", deadline, event["lease"]
    )
    return {"outcome": done.outcome}


def _swept(sources: SourceServices, deadline: Deadline, seen: Observation) -> dict[str, Any]:
    try:
        job = sweep(sources.sweeping, deadline)
    except (StorageUnavailable, Throttled, Contended) as error:
        logger.warning("the sweep waits", extra={"error": kind_of(error)})
        return {"queued": None}
    queued = None if job is None else job.counters["queued"]
    seen.count(RefreshesQueued=queued or 0)
    logger.info("swept", extra={"queued": queued, "phase": None if job is None else job.phase})
    return {"queued": queued}
