"""The composition root of exports and imports; only their routes make it."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from factbook.adapters.facts.dynamodb_erasing import DynamoFactErasing
from factbook.adapters.portability.dynamodb_copies import DynamoCopies, DynamoOriginals
from factbook.adapters.portability.rsa_rewrapping import RsaRewrapper
from factbook.usecases.facts.upgrading import is_upgraded
from factbook.usecases.portability.ports import ExportPorts, ImportPorts

if TYPE_CHECKING:
    from collections.abc import Callable


class PortabilityServices:
    """Each part is made at first use. `services`: those of the function, of which an export uses nearly all."""

    def __init__(
        self,
        services: Any,
        client: Any,
        erasures: "Callable[[str, str | None], tuple[list[tuple[str, str]], str | None]]",
        reindex: "Callable[[], None]",
    ) -> None:
        self._services = services
        self._client = client
        self._erasures = erasures
        self._reindex = reindex

    @cached_property
    def exporting(self) -> ExportPorts:
        wired, settings = self._services, self._services.settings
        dynamodb = self._client("dynamodb")
        return ExportPorts(
            facts=wired.memory,
            walk=wired.facts.walk,
            erasing=DynamoFactErasing(dynamodb, settings.facts_table, wired.memory.facts),
            erasures=self._erasures,
            log=wired.logs.store,
            tree=wired.logs.tree,
            keys=wired.logs.keys,
            wrapper=wired.logs.wrapper,
            rewrapper=RsaRewrapper(),
            policies=wired.policies,
            originals=DynamoOriginals(dynamodb, settings.log_table, settings.access_table),
            clock=wired.clock,
            upgraded=lambda: is_upgraded(wired.jobs),
        )

    @cached_property
    def importing(self) -> ImportPorts:
        wired, settings = self._services, self._services.settings
        tables = (settings.facts_table, settings.log_table, settings.access_table)
        return ImportPorts(
            facts=wired.memory,
            log=wired.logs.store,
            tree=wired.logs.tree,
            adoption=wired.logs.checkpoint_requests,
            keys=wired.logs.keys,
            wrapper=wired.logs.wrapper,
            policies=wired.policies,
            copies=DynamoCopies(self._client("dynamodb"), *tables),
            jobs=wired.jobs,
            clock=wired.clock,
            reindex=self._reindex,
        )
