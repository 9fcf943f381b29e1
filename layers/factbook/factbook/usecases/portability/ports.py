"""The ports of exports and imports, as two bundles."""

from collections.abc import Callable
from dataclasses import dataclass

from factbook.ports.clock import Clock
from factbook.ports.facts.walks import FactErasing, FactWalk
from factbook.ports.jobs import JobStore
from factbook.ports.log.checkpoints import LeafAdoption, TreeStore
from factbook.ports.log.entries import LogStore
from factbook.ports.log.sealing import KeyStore, KeyWrapper
from factbook.ports.policy.store import PolicyStore
from factbook.ports.portability.stores import Copies, Originals, Rewrapper
from factbook.usecases.facts.ports import FactPorts


@dataclass(frozen=True)
class ExportPorts:
    """`erasures`: places and ids of a tenant's erasures behind a place, oldest first, and where the next ones begin; the
    column of erasures is none that this one may know. `upgraded`: whether no fact of a former format is left.
    """

    facts: FactPorts
    walk: FactWalk
    erasing: FactErasing
    erasures: Callable[[str, str | None], tuple[list[tuple[str, str]], str | None]]
    log: LogStore
    tree: TreeStore
    keys: KeyStore
    wrapper: KeyWrapper
    rewrapper: Rewrapper
    policies: PolicyStore
    originals: Originals
    clock: Clock
    upgraded: Callable[[], bool]


@dataclass(frozen=True)
class ImportPorts:
    facts: FactPorts
    log: LogStore
    tree: TreeStore
    adoption: LeafAdoption
    keys: KeyStore
    wrapper: KeyWrapper
    policies: PolicyStore
    copies: Copies
    jobs: JobStore
    clock: Clock
    reindex: Callable[[], None]
    """Has the search index compared with the tables."""
