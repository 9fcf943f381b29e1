"""One structured line and one metric per request: who, what, how long, how it ended; never content, tokens or keys."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools import Logger

from ..domain.principals import Principal

logger = Logger(service="factbook", log_uncaught_exceptions=False)


@dataclass
class Observation:
    """What is known of a request while it is served."""

    function: str
    route: str
    request_id: str
    status: int = 500
    code: str | None = None
    who: dict[str, str] = field(default_factory=dict)

    def principal(self, principal: Principal) -> None:
        self.who = {"tenant": principal.tenant, "principal_kind": principal.actor.kind}

    def failed(self) -> None:
        """Log the exception being handled: its type and where it was raised, not its words, which may hold content."""
        import sys

        kind, _, trace = sys.exc_info()
        frames: list[str] = []
        while trace is not None:
            code = trace.tb_frame.f_code
            frames.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} {code.co_name}")
            trace = trace.tb_next
        logger.error(
            "request failed",
            extra={"request_id": self.request_id, "error": getattr(kind, "__name__", ""), "at": frames[-6:]},
        )


@contextmanager
def observe(function: str, event: dict[str, Any]) -> Iterator[Observation]:
    """Measure one request and log its line when it ends."""
    started = time.perf_counter()
    seen = Observation(
        function, event.get("routeKey", ""), event.get("requestContext", {}).get("requestId", "")
    )
    yield seen
    logger.info(
        "request",
        extra={
            "function": seen.function,
            "route": seen.route,
            "request_id": seen.request_id,
            "status": seen.status,
            "outcome": seen.code or "ok",
            "duration_ms": round((time.perf_counter() - started) * 1000, 1),
            **seen.who,
        },
    )
