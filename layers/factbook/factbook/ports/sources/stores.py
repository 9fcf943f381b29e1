"""What keeps refreshing in order: leases, circuits, the index of due facts, the queue and its dead letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.domain.sources.circuits import Circuit
from factbook.domain.strict_json import Json

Why = Literal["due", "read", "resend"]
"""Why a fact is to be refreshed: its time has come, a list showed it stale, an operator sent it again."""


class Leases(Protocol):
    """Things that one process at a time has, for a while. Every operation may raise Throttled or StorageUnavailable."""

    def take(self, what: Sequence[str], owner: str, seconds: float) -> bool:
        """Whether the owner has it now: nobody has it, its time has run out, or the owner has it already."""
        ...

    def give_back(self, what: Sequence[str], owner: str, rest: float = 0.0) -> None:
        """Its owner is done with it; nobody gets it for another `rest` seconds. Another's is left alone."""
        ...


class Circuits(Protocol):
    """One for each host of a tenant; none is a closed one. May raise Throttled or StorageUnavailable."""

    def circuit(self, tenant: str, host: str) -> Circuit: ...

    def keep(self, tenant: str, host: str, before: Circuit, after: Circuit) -> bool:
        """Replace it; False when it is not `before` any more."""
        ...


@dataclass(frozen=True)
class Due:
    """A fact that is due. `order`: its place in its partition of the index, which begins with when."""

    order: str
    tenant: str
    fact_id: str


class DueIndex(Protocol):
    shards: int

    def due(self, priority: int, shard: int, after: str, until: str, limit: int) -> tuple[list[Due], bool]:
        """Facts of one partition behind the order `after` and due by the instant `until`, longest due first; whether more
        remain. Eventually consistent.
        """
        ...


@dataclass(frozen=True)
class Wanted:
    """A fact that somebody wants refreshed. `deferred`: how often it has been put off already."""

    tenant: str
    fact_id: str
    why: Why
    deferred: int = 0

    def to_json(self) -> Json:
        """A message of the queue."""
        said = {"tenant": self.tenant, "factId": self.fact_id, "why": self.why}
        return said | ({"deferred": self.deferred} if self.deferred else {})

    @classmethod
    def from_json(cls, said: Json) -> "Wanted":
        """Raises KeyError, TypeError for what is no such message."""
        return cls(said["tenant"], said["factId"], said["why"], said.get("deferred", 0))


@dataclass(frozen=True)
class Taken:
    """A message that nobody else gets for a while; it comes again unless it is removed."""

    handle: str
    wanted: Wanted


class RefreshQueue(Protocol):
    """Facts to refresh, each at least once. May raise Throttled or StorageUnavailable."""

    def send(self, wanted: Sequence[Wanted], delay: int = 0) -> None:
        """Queue them all, in order; `delay` in seconds, up to 900."""
        ...

    def take(self, most: int) -> list[Taken]:
        """The next ones, ten at most. What cannot be read is left to the queue's own rule."""
        ...

    def remove(self, taken: Taken) -> None: ...

    def waiting(self) -> int:
        """About how many are to be worked on or are being worked on; what is delayed keeps nobody waiting."""
        ...


@dataclass(frozen=True)
class DeadLetter:
    """A fact whose source an operator has to look at. `kind` and `host` of the source, `why` and `detail` of the failure:
    neither content nor secrets.
    """

    tenant: str
    fact_id: str
    kind: str
    host: str | None
    why: str
    detail: str
    failures: int
    at: str

    def to_json(self) -> Json:
        return {
            "tenant": self.tenant,
            "factId": self.fact_id,
            "kind": self.kind,
            "host": self.host,
            "why": self.why,
            "detail": self.detail,
            "failures": self.failures,
            "at": self.at,
        }


@dataclass(frozen=True)
class Letter:
    """A dead letter as it lies in its queue. `said`: as it was sent, or the message that ended its process again and again."""

    id: str
    handle: str
    said: Json


class DeadLetters(Protocol):
    """May raise Throttled or StorageUnavailable."""

    def send(self, letter: DeadLetter) -> None: ...

    def receive(self, hidden_seconds: int) -> list[Letter]:
        """Some letters, which nobody else gets for so many seconds; none when there is none to be had."""
        ...

    def remove(self, letter: Letter) -> None: ...


class Refresher(Protocol):
    """The refresh function, as a read asks it."""

    def refresh(self, tenant: str, fact_id: str, lease: str, seconds: float) -> None:
        """Refresh a fact whose lease this caller has and hands over. Raises Throttled when the function did not begin,
        StorageUnavailable when it has not answered within so many seconds (and may go on), or failed.
        """
        ...
