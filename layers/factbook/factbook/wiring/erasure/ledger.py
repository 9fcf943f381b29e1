"""The composition root of what an erasure leaves: its statement and receipt, the ledger's keys, and replays of a ledger."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factbook.adapters.erasure.dynamodb_replays import DynamoReplays
from factbook.usecases.erasure.ledger import Ledger
from factbook.usecases.erasure.receipts import ReceiptPorts
from factbook.usecases.erasure.replaying import ReplayPorts
from factbook.usecases.erasure.stating import Stated, StatingPorts, state_erasure

if TYPE_CHECKING:
    from factbook.ports.clock import Clock
    from factbook.ports.deadline import Deadline
    from factbook.ports.erasure.records import Erasure, ErasureStore
    from factbook.ports.facts.walks import FactWalk
    from factbook.ports.jobs import JobStore
    from factbook.settings import Settings
    from factbook.wiring.log.services import LogServices


class LedgerServices:
    """Each part is made at first use."""

    def __init__(self, settings: "Settings", client: Any, clock: "Clock", logs: "LogServices") -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self._logs = logs

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(_reader(self._settings.erasure_ledger_keys, self._client))

    @cached_property
    def receipts(self) -> ReceiptPorts:
        return ReceiptPorts(self._logs.store, self._logs.tree)

    def state(self, erasure: "Erasure", completed_at: str, deadline: "Deadline") -> Stated:
        return state_erasure(self._stating, erasure, completed_at, deadline)

    def replaying(
        self,
        records: "ErasureStore",
        walk: "FactWalk",
        jobs: "JobStore",
        again: Callable[["Erasure"], None],
        wake: Callable[[str], None],
        settle: Callable[[], None],
    ) -> ReplayPorts:
        replays = DynamoReplays(self._client("dynamodb"), self._settings.access_table)
        return ReplayPorts(
            replays, records, self.ledger, walk, self._logs.keys, jobs, self._clock, again, wake, settle
        )

    @cached_property
    def _stating(self) -> StatingPorts:
        logs = self._logs
        return StatingPorts(
            logs.log, logs.tree, logs.checkpoint_requests, searched=bool(self._settings.opensearch_url)
        )


def _reader(setting: str, client: Any) -> Callable[[], str] | None:
    """What reads the keys' document, of a secret by its ARN or of a file; None where the deployment has none."""
    if not setting:
        return None
    kind, _, path = setting.partition(":")
    if kind == "file":
        from factbook.adapters.erasure.ledger_keys import FileLedgerKeys

        return FileLedgerKeys(Path(path)).text
    from factbook.adapters.retrieval.secrets_manager import SecretsManager

    return lambda: SecretsManager(client("secretsmanager")).text(setting)
