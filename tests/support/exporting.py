"""What an export reads, over fakes."""

from collections.abc import Sequence
from dataclasses import dataclass

from factbook.ports.log.entries import StoredEntry
from factbook.ports.portability.stores import FormerNote
from factbook.ports.walks import WalkPage
from factbook.usecases.portability.ports import ExportPorts
from support.erasing import FakeErasing
from support.log_fakes import FakeKeys, FakeLog, FakeTree, FakeWrapper
from support.search_world import FakeWalk, World


@dataclass
class FakeOriginals:
    """Originals over FakeLog, of which every run is listed, and no former service published anything."""

    log: FakeLog

    def entries_below(self, tenant: str, run_id: str, below: int | None, limit: int) -> list[StoredEntry]:
        found, _ = self.log.entries(tenant, run_id, 0, 10**6)
        return [entry for entry in reversed(found) if below is None or entry.sequence < below][:limit]

    def unlisted(self, tenant: str, run_ids: Sequence[str]) -> list[str]:
        return []

    def former_notes(self, tenant: str, after: str | None, limit: int) -> WalkPage[FormerNote]:
        return WalkPage([], None)


class NoRewrapper:
    """Rewrapper that nobody asks."""

    def rewrap(self, public: bytes, plain: bytes, bound: bytes) -> bytes:
        raise AssertionError


def export_ports(world: World, tree: FakeTree) -> ExportPorts:
    return ExportPorts(
        facts=world.memory,
        walk=FakeWalk(world.facts),
        erasing=FakeErasing(world.facts),
        erasures=lambda _, __: ([], None),
        log=world.log,
        tree=tree,
        keys=FakeKeys(),
        wrapper=FakeWrapper(),
        rewrapper=NoRewrapper(),
        policies=world.policies,
        originals=FakeOriginals(world.log),
        clock=world.clock,
        upgraded=lambda: True,
    )
