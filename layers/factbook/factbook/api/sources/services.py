"""What the routes and events of refreshing work with."""

from typing import Protocol

from factbook.ports.sources.stores import DeadLetters, RefreshQueue
from factbook.usecases.sources.ports import RefreshPorts
from factbook.usecases.sources.sweeping import SweepPorts


class SourceServices(Protocol):
    """Each part is made at first use."""

    @property
    def refreshing(self) -> RefreshPorts: ...

    @property
    def sweeping(self) -> SweepPorts: ...

    @property
    def queue(self) -> RefreshQueue: ...

    @property
    def dead_letters(self) -> DeadLetters: ...
