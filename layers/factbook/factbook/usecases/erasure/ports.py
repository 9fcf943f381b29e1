"""The ports of the erasure use cases, as one bundle."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from factbook.domain import times
from factbook.domain.access.erasing import Selector
from factbook.domain.erasure.ledger import KeyedHash
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import Erasure, ErasureStore
from factbook.ports.erasure.work import WorkQueue
from factbook.ports.facts.blobs import BlobWalk
from factbook.ports.facts.walks import FactErasing, FactWalk
from factbook.ports.jobs import JobStore
from factbook.ports.log.entries import LogStore
from factbook.ports.log.sealing import KeyStore
from factbook.ports.retrieval.index import SearchIndex
from factbook.usecases.erasure.stating import Stated
from factbook.usecases.facts.ports import FactPorts

TRUST_SECONDS = 2.0
"""How long a process trusts what it read of a tenant's erasures: whoever asks for one is answered when these have passed."""

SKEW_SECONDS = 1.0
"""By how much two clocks may differ."""


def known_from(asked_at: str) -> str:
    """When every process knew of an erasure that was asked for at an instant, by each one's clock.

    What began before was reached by it, though it may have been written after it was asked for; nothing of it began then
    before it was completed.
    """
    return times.add(asked_at, seconds=TRUST_SECONDS + SKEW_SECONDS)


@dataclass(frozen=True)
class ErasurePorts:
    """`index` is None where the deployment has no search."""

    records: ErasureStore
    queue: WorkQueue
    facts: FactPorts
    walk: FactWalk
    erasing: FactErasing
    blobs: BlobWalk
    log: LogStore
    keys: KeyStore
    index: SearchIndex | None
    jobs: JobStore
    clock: Clock
    hash_of: Callable[[str, Selector], KeyedHash | None]
    """The keyed hash of a tenant's selector; None where the deployment has no keys for that."""
    state: Callable[[Erasure, str, Deadline], Stated]
    """States in the log that an erasure is completed at an instant; the first statement stays."""
    settle_seconds: float = 60.0
    """How long a write may last, and how long a process may use a data key that it holds."""
    sleep: Callable[[float], None] = time.sleep
