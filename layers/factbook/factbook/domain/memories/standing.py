"""The standing set: what an agent puts in front of every conversation with a person."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import parse_json


@dataclass(frozen=True)
class StandingSet:
    """The owner's memories before the account's, each oldest first."""

    facts: Sequence[Fact]

    @property
    def characters(self) -> int:
        """Of the texts: what the set costs every conversation."""
        return sum(len(text_of(fact)) for fact in self.facts)


def oldest_first(facts: Iterable[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (fact.created_at, fact.id))


def text_of(fact: Fact) -> str:
    """The words of a memory: its `text`, or its content as JSON where that is something else."""
    content = None if fact.content_text is None else parse_json(fact.content_text)
    text = content.get("text") if isinstance(content, dict) else content
    return text if isinstance(text, str) else fact.content_text or ""
