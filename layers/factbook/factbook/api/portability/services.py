"""What the routes of exports and imports work with."""

from typing import Protocol

from factbook.usecases.portability.ports import ExportPorts, ImportPorts


class PortabilityServices(Protocol):
    @property
    def exporting(self) -> ExportPorts: ...

    @property
    def importing(self) -> ImportPorts: ...
