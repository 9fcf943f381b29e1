"""The ports of the facts use cases, as one bundle."""

from collections.abc import Callable
from dataclasses import dataclass

from factbook.domain.facts.fact import Fact
from factbook.domain.facts.gate import Look, Way
from factbook.domain.policy.policies import Policy
from factbook.ports.clock import Clock
from factbook.ports.facts.blobs import BlobStore
from factbook.ports.facts.store import FactStore


def _untold(_: Exception) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class FactPorts:
    """The ports of the facts use cases."""

    facts: FactStore
    blobs: BlobStore
    clock: Clock
    signing_key: Callable[[], bytes]
    """The deployment's key, for references that a caller carries back."""
    policy: Callable[[str], Policy]
    """A tenant's policy: how long to keep what a write says nothing about."""
    by_type: Callable[[], bool]
    """Whether every fact is in the indexes by type: not before those of the former format have been put there."""
    reads_like_instruction: Callable[[Fact], bool] = lambda _: False
    """Whether a fact would tell a model what to do: such words of an agent wait for a person."""
    require_room: Callable[[Fact], None] = lambda _: None
    """Raises MemoryFull when its owner has no room for one more memory of its agent."""
    unsettled: Callable[[Exception], None] = _untold
    """Hears why the payload of a write that is decided was neither kept for good nor removed."""

    def look(self, way: Way = "found", *, past: bool = False, agent: str | None = None) -> Look:
        """A look at facts now: whatever else the gate has to know of this instant is added here."""
        return Look(self.clock.now(), way, past, agent)
