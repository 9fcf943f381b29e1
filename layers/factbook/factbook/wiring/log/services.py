"""The composition root of the log: what needs cryptography, KMS or the bucket is imported at first use."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.log.dynamodb_sealing_keys import DynamoKeys
from factbook.adapters.log.dynamodb_tree import DynamoTree
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.log.runs import format_micros
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.sealing import Vault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from factbook.adapters.log.dynamodb_entries import DynamoMessages
    from factbook.adapters.log.lambda_checkpoints import LambdaCheckpoints
    from factbook.ports.log.checkpoints import CheckpointStore, Signer
    from factbook.ports.log.clock import LogClock
    from factbook.ports.log.sealing import KeyWrapper
    from factbook.settings import Settings
    from factbook.usecases.log.checkpoints import CheckpointPorts
    from factbook.usecases.log.marks import MarkPorts


RUNS_AT_ONCE, TENANTS_AT_ONCE = 16, 8


class SystemLogClock:
    def micros(self) -> str:
        return format_micros(datetime.now(UTC))


class _Milliseconds:
    """Clock: as the log's, cut to what jobs count in."""

    def __init__(self, clock: "LogClock") -> None:
        self._clock = clock

    def now(self) -> str:
        return f"{self._clock.micros()[:23]}Z"


class LogServices:
    """What the log's routes and the checkpoint function use; each part is made at first use."""

    def __init__(
        self,
        settings: "Settings",
        client: Any,
        clock: "LogClock | None" = None,
        erasing: Callable[[str], Erasing] = lambda _: NOTHING_ERASED,
    ) -> None:
        self._settings = settings
        self.erasing = erasing
        self._client = cache(client)
        self.clock: LogClock = clock or SystemLogClock()

    @cached_property
    def log(self) -> LogWriter:
        return LogWriter(self.store, self.vault, self.clock, erasing=self.erasing)

    @cached_property
    def store(self) -> DynamoLog:
        return DynamoLog(self._client("dynamodb"), self._settings.log_table)

    @cached_property
    def entries(self) -> "DynamoMessages":
        """Entries of many runs at once, and walks over all of them."""
        from factbook.adapters.log.dynamodb_entries import DynamoMessages

        return DynamoMessages(self._client("dynamodb"), self._settings.log_table)

    @cached_property
    def tree(self) -> DynamoTree:
        return DynamoTree(self._client("dynamodb"), self._settings.access_table)

    @cached_property
    def vault(self) -> Vault:
        from factbook.adapters.aes_gcm import AesGcm

        seconds = self._settings.settle_seconds
        return Vault(self.keys, self.wrapper, AesGcm(), erasing=self.erasing, seconds=seconds)

    @cached_property
    def keys(self) -> DynamoKeys:
        return DynamoKeys(self._client("dynamodb"), self._settings.keys_table)

    @cached_property
    def published(self) -> "CheckpointStore":
        from factbook.adapters.log.s3_checkpoints import S3Checkpoints

        return S3Checkpoints(self._client("s3"), self._settings.checkpoints_bucket)

    @cached_property
    def checkpointing(self) -> "CheckpointPorts":
        from factbook.usecases.log.checkpoints import CheckpointPorts

        ports = (self.store, self.tree, self.published, self._signer, self.clock)
        return CheckpointPorts(*ports, self._each, TENANTS_AT_ONCE)

    @cached_property
    def marking(self) -> "MarkPorts":
        from factbook.adapters.dynamodb_jobs import DynamoJobs
        from factbook.adapters.log.dynamodb_runs import DynamoRunWalk
        from factbook.usecases.log.marks import MarkPorts

        dynamodb, names = self._client("dynamodb"), self._settings
        runs = DynamoRunWalk(dynamodb, names.log_table)
        jobs = DynamoJobs(dynamodb, names.access_table)
        return MarkPorts(runs, self.store, self.tree, jobs, _Milliseconds(self.clock), self._each)

    @cached_property
    def _each(self) -> "Callable[..., Iterable[Any]]":
        """Several reads at once: a run's head and leaf wait for the store, not for this process."""
        return ThreadPoolExecutor(RUNS_AT_ONCE).map

    @cached_property
    def checkpoint_requests(self) -> "LambdaCheckpoints":
        from factbook.adapters.lambda_invoke import LambdaFunction
        from factbook.adapters.log.lambda_checkpoints import LambdaCheckpoints

        return LambdaCheckpoints(LambdaFunction(self._client("lambda"), self._settings.checkpoint_function))

    @cached_property
    def wrapper(self) -> "KeyWrapper":
        from factbook.adapters.log.kms_wrapper import KmsWrapper

        return KmsWrapper(self._client("kms"), self._settings.kms_key_id)

    @property
    def _signer(self) -> "Signer":
        kind, _, where = self._settings.checkpoint_signer.partition(":")
        name = self._settings.checkpoint_origin
        if kind == "file":
            from factbook.adapters.log.file_signer import FileSigner

            return FileSigner(Path(where), name)
        from factbook.adapters.log.kms_signer import KmsSigner

        return KmsSigner(self._client("kms"), where, name)
