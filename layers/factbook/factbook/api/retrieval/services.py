"""What the routes of search work with."""

from typing import Protocol

from factbook.ports.retrieval.index import SearchIndex
from factbook.ports.retrieval.upkeep import Backlog, JobStore
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

    @property
    def job_store(self) -> JobStore: ...
