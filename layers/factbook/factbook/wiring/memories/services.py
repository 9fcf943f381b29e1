"""The composition root of memories."""

from typing import TYPE_CHECKING, Any

from factbook.adapters.memories.dynamodb_memories import DynamoMemories
from factbook.domain.facts.fact import Fact
from factbook.domain.memories.instructions import content_reads_like_instruction, reads_like_instruction
from factbook.domain.strict_json import parse_json
from factbook.usecases.memories.ports import MemoryPorts

if TYPE_CHECKING:
    from factbook.usecases.facts.ports import FactPorts


def memory_ports(facts: "FactPorts", dynamodb: Any, table: str) -> MemoryPorts:
    return MemoryPorts(facts, DynamoMemories(dynamodb, table))


def reads_like_an_instruction(fact: Fact) -> bool:
    """Whether what a model may get to read of a fact would tell it what to do."""
    content = None if fact.content_text is None else parse_json(fact.content_text)
    names = (name for name in (fact.type, fact.key) if name is not None)
    return content_reads_like_instruction(content) is not None or any(
        reads_like_instruction(name) is not None for name in names
    )
