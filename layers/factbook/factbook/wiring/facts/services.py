"""The composition root of what follows and walks the facts; it needs no search layer."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from factbook.adapters.facts.dynamodb_orphans import DynamoOrphans
from factbook.adapters.facts.dynamodb_walks import DynamoFactWalk, DynamoRemains
from factbook.usecases.facts.orphans import OrphanPorts
from factbook.usecases.facts.upgrading import UpgradePorts

if TYPE_CHECKING:
    from factbook.ports.jobs import JobStore
    from factbook.settings import Settings
    from factbook.usecases.facts.ports import FactPorts


class FactServices:
    """Each part is made at first use."""

    def __init__(self, settings: "Settings", client: Any, ports: "FactPorts", jobs: "JobStore") -> None:
        self._settings = settings
        self._client = client
        self._ports = ports
        self._jobs = jobs

    @cached_property
    def walk(self) -> DynamoFactWalk:
        return DynamoFactWalk(self._client("dynamodb"), self._settings.facts_table, self._ports.facts)

    @cached_property
    def remains(self) -> DynamoRemains:
        return DynamoRemains(self._client("dynamodb"), self._settings.facts_table, self._ports.blobs.discard)

    @cached_property
    def orphans(self) -> OrphanPorts:
        settings = self._settings
        found = DynamoOrphans(
            self._client("dynamodb"), settings.facts_table, self._client("s3"), settings.blobs_bucket
        )
        return OrphanPorts(found, self.remains, self._ports.blobs, self._jobs, self._ports.clock)

    def claim(self, ref: str) -> None:
        """Keep a payload for good."""
        self._ports.blobs.claim(ref)

    @cached_property
    def upgrading(self) -> UpgradePorts:
        return UpgradePorts(self._ports.facts, self.walk, self._jobs, self._ports.clock)
