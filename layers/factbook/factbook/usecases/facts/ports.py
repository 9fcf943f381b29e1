"""The ports of the facts use cases, as one bundle."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.errors import ErasureInProgress
from factbook.domain.facts.fact import Fact, StaleReason
from factbook.domain.facts.gate import Look, Way
from factbook.domain.policy.policies import Policy
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.clock import Clock
from factbook.ports.facts.blobs import BlobStore
from factbook.ports.facts.joint import CommitWithEntry
from factbook.ports.facts.store import FactStore, Head


def _untold(_: Exception) -> None:
    """Nobody is told."""


def _without_log(*_: object) -> Head | None:
    raise LookupError("no log is wired to these facts, so no change can have an entry in it")


Freshen = Callable[[Head, str], tuple[Head | None, StaleReason | None]]
"""From a stale head to the one there is once its source was asked, within a bounded time, if it is to be asked by reads;
and why that is still stale at the given instant, if there is more to say than what it knows.
"""


def _as_it_is(head: Head, _: str) -> tuple[Head | None, StaleReason | None]:
    return head, None


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
    commit_with_entry: CommitWithEntry = _without_log
    """Commits a change together with an entry of the log."""
    unsettled: Callable[[Exception], None] = _untold
    """Hears why the payload of a write that is decided was neither kept for good nor removed."""
    erasing: Callable[[str], Erasing] = lambda _: NOTHING_ERASED
    """A tenant's erasures that are in force: what they name is shown on no road and takes no write."""
    derives: Callable[[str, Iterable[str]], bool] = lambda *_: False
    """Whether one of these entries of a tenant's log is of whom an erasure in force is about: a text that newly names it as
    its cause waits in review, as the erasure's walk may have been past it.
    """

    freshen: Freshen = _as_it_is
    met_stale: Callable[[Sequence[Fact]], None] = lambda _: None
    """Hears of stale facts that a list or a search shows, so that they are refreshed behind it. Never raises."""

    def keep(self, fact: Fact) -> KeepLimits | None:
        """How long the policy of its tenant keeps a fact of this type that states no retention."""
        return self.policy(fact.scope.tenant_id).retention_of(fact.type)

    def look(
        self,
        tenant: str,
        way: Way = "found",
        *,
        past: bool = False,
        agent: str | None = None,
        person: str | None = None,
    ) -> Look:
        """A look at a tenant's facts now: whatever else the gate has to know of this instant is added here."""
        return Look(self.clock.now(), way, past, agent, person, self.erasing(tenant))

    def look_to_write(self, way: Way = "write", *, past: bool = False) -> Look:
        """A look at what a write names: what is being erased counts as found, and `require_spared` refuses it."""
        return Look(self.clock.now(), way, past)

    def require_spared(self, fact: Fact, about: Iterable[str] = ()) -> None:
        """Raises ErasureInProgress for a fact that an erasure in force names, or would with these subjects too."""
        self.require_place_spared(fact.scope, fact.id, fact.owner, (*fact.about, *about))

    def require_life_spared(self, former: Head) -> None:
        """The same for a life that is over, which a new one is to follow: an erasure takes what is left of all lives of an id,
        and counts its tombstones, which say nothing of whom they were about.
        """
        self.require_spared(former.fact)
        by = None if former.erasure is None else former.erasure.by
        if by in self.erasing(former.fact.scope.tenant_id).ids:
            raise ErasureInProgress(former.fact.id)

    def require_place_spared(
        self, scope: Scope, fact_id: str = "", owner: str | None = None, about: Iterable[str] = ()
    ) -> None:
        """The same for a fact that is to come into this scope."""
        if self.erasing(scope.tenant_id).of_fact(fact_id, scope, owner, about) is not None:
            raise ErasureInProgress(fact_id or None)
