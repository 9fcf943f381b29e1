"""What the log's routes and events work with."""

from typing import Protocol

from factbook.ports.log.checkpoints import CheckpointRequests, CheckpointStore, TreeStore
from factbook.ports.log.entries import LogStore
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.checkpoints import CheckpointPorts
from factbook.usecases.log.sealing import Vault


class LogServices(Protocol):
    @property
    def checkpoint_requests(self) -> CheckpointRequests: ...

    @property
    def log(self) -> LogWriter: ...

    @property
    def store(self) -> LogStore: ...

    @property
    def tree(self) -> TreeStore: ...

    @property
    def vault(self) -> Vault: ...

    @property
    def published(self) -> CheckpointStore: ...

    @property
    def checkpointing(self) -> CheckpointPorts: ...
