"""The composition root of sources: what refreshes facts, and what a read needs to have that done."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from factbook.adapters.sources.dynamodb_leases import DynamoCircuits, DynamoLeases
from factbook.usecases.sources.ports import RefreshPorts, StatePorts

if TYPE_CHECKING:
    from collections.abc import Callable

    from factbook.adapters.sources.sqs_refreshes import SqsRefreshLetters, SqsRefreshQueue
    from factbook.ports.deadline import Deadline
    from factbook.ports.jobs import JobStore
    from factbook.ports.sources.handlers import Handlers
    from factbook.settings import Settings
    from factbook.usecases.facts.ports import FactPorts
    from factbook.usecases.sources.on_read import MetStale, OnRead
    from factbook.usecases.sources.sweeping import SweepPorts


class SourceServices:
    """Each part is made at first use; who reads what is fresh makes none of them."""

    def __init__(
        self,
        settings: "Settings",
        client: Any,
        facts: "FactPorts",
        jobs: "JobStore",
        deadline: "Callable[[], Deadline]",
    ) -> None:
        """`deadline`: of the request at hand, from which what its caller has waited already is known."""
        self._settings = settings
        self._client = client
        self._facts = facts
        self._jobs = jobs
        self._deadline = deadline

    @cached_property
    def handlers(self) -> "Handlers":
        from factbook.wiring.sources.handlers import source_handlers

        return source_handlers(self._settings, self._client)

    @cached_property
    def refreshing(self) -> RefreshPorts:
        return RefreshPorts(
            self._facts,
            self.handlers,
            self._leases,
            self._circuits,
            self.dead_letters,
            unforeseen=_report_unforeseen,
        )

    @cached_property
    def states(self) -> StatePorts:
        return StatePorts(self._facts, self.handlers, self._circuits)

    @cached_property
    def sweeping(self) -> "SweepPorts":
        from factbook.adapters.sources.dynamodb_due import DynamoDue
        from factbook.usecases.sources.sweeping import SweepPorts

        due = DynamoDue(self._client("dynamodb"), self._settings.facts_table)
        return SweepPorts(due, self.queue, self._jobs, self._facts.clock)

    @cached_property
    def queue(self) -> "SqsRefreshQueue":
        return self._queue("sqs")

    @cached_property
    def dead_letters(self) -> "SqsRefreshLetters":
        from factbook.adapters.sources.sqs_refreshes import SqsRefreshLetters

        return SqsRefreshLetters(self._client("sqs"), self._settings.refresh_dead_letters)

    @cached_property
    def on_read(self) -> "OnRead":
        from factbook.adapters.lambda_invoke import LambdaFunction
        from factbook.adapters.sources.lambda_refresher import LambdaRefresher
        from factbook.usecases.sources.on_read import READ_SECONDS, OnRead

        function = LambdaFunction(self._client("lambda/refresh"), self._settings.refresh_function)
        return OnRead(
            self._facts.facts,
            self._leases,
            LambdaRefresher(function),
            _report_unanswered,
            lambda: self._deadline().from_its_start(READ_SECONDS),
        )

    @cached_property
    def met_stale(self) -> "MetStale":
        from factbook.usecases.sources.on_read import MetStale

        return MetStale(self._queue("sqs/met-stale"), _report_unsent)

    def _queue(self, client: str) -> "SqsRefreshQueue":
        from factbook.adapters.sources.sqs_refreshes import SqsRefreshQueue

        return SqsRefreshQueue(self._client(client), self._settings.refresh_queue)

    @cached_property
    def _leases(self) -> DynamoLeases:
        return DynamoLeases(self._client("dynamodb"), self._settings.access_table, self._facts.clock)

    @cached_property
    def _circuits(self) -> DynamoCircuits:
        return DynamoCircuits(self._client("dynamodb"), self._settings.access_table, self._facts.clock)


def _report_unforeseen(fact_id: str, error: Exception) -> None:
    from factbook.api.telemetry import kind_of, logger

    logger.error("a fact could not be refreshed", extra={"fact": fact_id, "error": kind_of(error)})


def _report_unanswered(error: Exception) -> None:
    from factbook.api.telemetry import kind_of, logger

    logger.error("the refresh function cannot be called", extra={"error": kind_of(error)})


def _report_unsent(error: Exception) -> None:
    from factbook.api.telemetry import kind_of, logger

    logger.warning("stale facts were not queued", extra={"error": kind_of(error)})
