"""What the routes of search, and the events of the index function, work with."""

from typing import Protocol

from factbook.ports.clock import Clock
from factbook.ports.facts.walks import Remains
from factbook.ports.jobs import JobStore
from factbook.ports.retrieval.index import SearchIndex
from factbook.ports.retrieval.upkeep import Backlog, DeadLetters
from factbook.settings import Settings
from factbook.usecases.facts.orphans import OrphanPorts
from factbook.usecases.facts.upgrading import UpgradePorts
from factbook.usecases.retrieval.index_jobs import IndexJobPorts
from factbook.usecases.retrieval.recall import RecallPorts
from factbook.usecases.retrieval.searching import SearchPorts


class RetrievalServices(Protocol):
    @property
    def engine(self) -> SearchPorts: ...

    @property
    def recall(self) -> RecallPorts: ...

    @property
    def index(self) -> SearchIndex: ...

    @property
    def backlog(self) -> Backlog: ...


class IndexingServices(Protocol):
    """`jobs` raises SearchUnavailable where the deployment has no search; the others need none."""

    @property
    def jobs(self) -> IndexJobPorts: ...

    @property
    def backlog(self) -> Backlog: ...

    @property
    def dead_letters(self) -> DeadLetters: ...

    @property
    def leftovers(self) -> Backlog:
        """Notes of `usecases.retrieval.leftovers`."""
        ...


class FactUpkeepServices(Protocol):
    @property
    def remains(self) -> Remains: ...

    def claim(self, ref: str) -> None: ...

    @property
    def upgrading(self) -> UpgradePorts: ...

    @property
    def orphans(self) -> OrphanPorts: ...


class IndexServices(Protocol):
    """What the events of the index function work with."""

    settings: Settings
    clock: Clock

    @property
    def facts(self) -> FactUpkeepServices: ...

    @property
    def jobs(self) -> JobStore: ...

    @property
    def searching(self) -> IndexingServices: ...
