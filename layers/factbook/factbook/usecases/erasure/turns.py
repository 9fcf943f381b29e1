"""One turn of a worker at one erasure: what all phases of its job share."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from factbook.domain.errors import StorageUnavailable
from factbook.domain.retrieval.documents import Tombstone
from factbook.ports.erasure.records import Erasure
from factbook.ports.jobs import Job
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.reaching import Causes, Reach, Words


class Waiting(Exception):
    """There is nothing to do for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass(frozen=True)
class Turn:
    ports: ErasurePorts
    erasure: Erasure
    reach: Reach = field(init=False)
    words: Words = field(init=False)
    causes: Causes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", Reach.of(self.erasure))
        object.__setattr__(self, "words", Words(self.ports.keys, self.reach))
        object.__setattr__(self, "causes", Causes(self.ports.log, self.reach, self.words))

    @property
    def tenant(self) -> str:
        return self.erasure.tenant

    def leave_the_index(self, tombstones: Sequence[Tombstone]) -> bool:
        """Put these into every index, one that is being built included; whether there is any. Raises SearchUnavailable,
        StorageUnavailable.
        """
        index = self.ports.index
        if index is None:
            return False
        for info in index.indexes() if tombstones else ():
            if index.apply(tombstones, index=info.name):
                raise StorageUnavailable("The search index did not take a removal.")
        return True


def counted_anew(job: Job, *names: str) -> Job:
    """The job at the beginning of a phase that counts these from nothing, whatever it had counted before."""
    return replace(job, counters={**job.counters, **dict.fromkeys(names, 0)})
