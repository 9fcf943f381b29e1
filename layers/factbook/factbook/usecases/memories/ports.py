"""The ports of the memories use cases, as one bundle."""

from dataclasses import dataclass

from factbook.ports.memories.store import MemoryIndex
from factbook.usecases.facts.ports import FactPorts


@dataclass(frozen=True)
class MemoryPorts:
    facts: FactPorts
    index: MemoryIndex
