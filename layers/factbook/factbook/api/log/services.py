"""What the log's routes and events work with."""

from typing import Protocol

from factbook.domain.strict_json import Json
from factbook.ports.log.checkpoints import CheckpointStore, TreeStore
from factbook.ports.log.entries import LogStore
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.checkpoints import CheckpointPorts
from factbook.usecases.log.sealing import Vault


class OtherFunction(Protocol):
    def call(self, event: Json) -> Json: ...


class LogServices(Protocol):
    @property
    def checkpoint_function(self) -> OtherFunction: ...

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
