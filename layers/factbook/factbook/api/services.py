"""What the routes of a function work with, as whoever wires it hands it over; each part is made at first use."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from factbook.api.access.authentication import Authenticator
from factbook.api.cursors import Cursors
from factbook.api.erasure.services import ErasureServices
from factbook.api.log.services import LogServices
from factbook.api.portability.services import PortabilityServices
from factbook.api.retrieval.services import RetrievalServices
from factbook.api.sources.services import SourceServices
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import Json
from factbook.ports.access.stores import TokenStore
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import JobStore
from factbook.ports.policy.store import PolicyStore
from factbook.settings import Settings
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.memories.ports import MemoryPorts

Include = Callable[[Fact], Json]
"""What `?include=` adds to a fact by id: fields that another capability knows."""


StandingOfTurn = Callable[[Principal, str, dict[str, str]], Sequence[Fact] | None]
"""What an agent's memories put first into the block of a turn with this scope; None when it names nobody."""


class Services(Protocol):
    """The parts, by capability. A part that a function does not use costs it nothing."""

    settings: Settings
    clock: Clock
    deadline: Deadline
    """Of the request that is being served: past it no call of AWS is begun, but StorageUnavailable raised."""

    @property
    def access(self) -> TokenStore: ...

    @property
    def authenticator(self) -> Authenticator: ...

    @property
    def cursors(self) -> Cursors: ...

    @property
    def policies(self) -> PolicyStore: ...

    @property
    def memory(self) -> FactPorts: ...

    @property
    def memories(self) -> MemoryPorts: ...

    @property
    def standing_of_turn(self) -> StandingOfTurn: ...

    @property
    def includes(self) -> Mapping[str, Include]: ...

    @property
    def jobs(self) -> JobStore: ...

    @property
    def logs(self) -> LogServices: ...

    @property
    def erasures(self) -> ErasureServices: ...

    @property
    def portability(self) -> PortabilityServices: ...

    @property
    def sources(self) -> SourceServices: ...

    @property
    def searching(self) -> RetrievalServices: ...
