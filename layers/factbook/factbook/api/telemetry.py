"""Logs and metrics of every function, in one place: who called what, how long it took, how it ended.

Each invocation gives one structured line and one metric record (embedded metric format, namespace `Factbook`), both on
standard output. They hold ids, kinds, counts and codes of ours; never content, tokens, keys, addresses of records or
the words of an exception, which may repeat any of those. Traces are Lambda's own (`Tracing` in template.yaml): the
X-Ray SDK would add a quarter to a cold start, and the trace id stands in every line anyway.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactbookError
from factbook.usecases.tally import counting

SERVICE, NAMESPACE = "factbook", "Factbook"
FRAMES_LOGGED = 6

logger = Logger(service=SERVICE, log_uncaught_exceptions=False)
_process = {"cold": True}


@dataclass
class Observation:
    """What is known of an invocation while it runs. `status` is what a caller sees; for an event, 200 or 500."""

    function: str
    route: str
    request_id: str
    cold_start: bool
    status: int = 200
    outcome: str = "ok"
    about: dict[str, Any] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)

    def count(self, **amounts: float) -> None:
        """Further metrics of this invocation, by name; alarms and the dashboard of template.yaml know them."""
        self.counted |= amounts

    def principal(self, principal: Principal) -> None:
        self.about |= {"tenant": principal.tenant, "principal_kind": principal.actor.kind}

    def refused(self, error: FactbookError) -> None:
        """End with a refusal; what the store said is named when that is why."""
        self.outcome = error.code
        if error.__cause__ is not None:
            self.about["cause"] = kind_of(error.__cause__)

    def failed(self, error: BaseException) -> None:
        """End with something nobody foresaw: its type and where it was raised."""
        self.status, self.outcome = 500, "internal-error"
        frames: list[str] = []
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            frames.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} {code.co_name}")
            trace = trace.tb_next
        where = {"route": self.route, "request_id": self.request_id, "at": frames[-FRAMES_LOGGED:]}
        logger.error("request failed", extra={"error": kind_of(error), **where})


@contextmanager
def observe(function: str, event: dict[str, Any], context: Any = None) -> Iterator[Observation]:
    """Measure one invocation, of the HTTP API or by an event source; what escapes is logged and goes on."""
    started = time.perf_counter()
    request_id = event.get("requestContext", {}).get("requestId") or getattr(context, "aws_request_id", "")
    seen = Observation(function, _trigger(event), request_id, cold_start=_process.pop("cold", False))
    with counting() as sums:
        try:
            yield seen
        except BaseException as error:
            seen.failed(error)
            raise
        finally:
            seen.count(**sums)
            _report(seen, round((time.perf_counter() - started) * 1000, 1))


def _report(seen: Observation, duration_ms: float) -> None:
    facts = {
        "request_id": seen.request_id,
        "status": seen.status,
        "outcome": seen.outcome,
        "cold_start": seen.cold_start,
        **seen.about,
    }
    named = {"function": seen.function, "route": seen.route}
    logger.info("request", extra={**named, **facts, "duration_ms": duration_ms})
    # Powertools' usual Metrics keeps its values on the class, where two requests of one process would meet.
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=SERVICE)
    for name, value in named.items():
        metrics.add_dimension(name, value)
    metrics.add_dimensions(
        service=SERVICE, function=seen.function
    )  # alarms are of a function, whatever woke it
    for name, value in facts.items():
        metrics.add_metadata(name, value)
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    metrics.add_metric("Duration", MetricUnit.Milliseconds, duration_ms)
    metrics.add_metric("Refusals", MetricUnit.Count, int(400 <= seen.status < 500))
    metrics.add_metric("Failures", MetricUnit.Count, int(seen.status >= 500))
    if seen.cold_start:
        metrics.add_metric("ColdStarts", MetricUnit.Count, 1)
    for name, amount in seen.counted.items():
        metrics.add_metric(name, MetricUnit.Count, amount)
    metrics.flush_metrics()


def _trigger(event: dict[str, Any]) -> str:
    """A route key, or what else invoked the function; never a path, which holds ids."""
    if "routeKey" in event:
        return str(event["routeKey"])
    records = event.get("Records")
    if records:
        return str(records[0].get("eventSource", "records"))
    return str(event.get("source") or "invoke")


def kind_of(error: BaseException) -> str:
    """An exception's type, with the service's code when AWS answered; never its message."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    name = type(error).__name__
    return f"{name} {code}" if code else name
