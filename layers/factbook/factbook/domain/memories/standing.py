"""The standing set: what an agent puts in front of every conversation with a person."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from factbook.domain import wire
from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import parse_json


@dataclass(frozen=True)
class StandingSet:
    """The owner's memories before the account's, each oldest first: `facts` as many as one answer holds, then `omitted`."""

    facts: Sequence[Fact]
    omitted: Sequence[Fact] = ()

    @property
    def characters(self) -> int:
        """Of the texts: what the set costs every conversation."""
        return sum(len(text_of(fact)) for fact in self.facts)


def standing_in_one_answer(facts: Sequence[Fact]) -> StandingSet:
    """What finds no room is named, so that nobody takes a part for the whole."""
    kept = wire.fitting(facts, lambda fact: fact.wire_bytes, wire.ANSWER_BYTES)
    return StandingSet(kept, facts[len(kept) :])


def oldest_first(facts: Iterable[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: (fact.created_at, fact.id))


def text_of(fact: Fact) -> str:
    """The words of a memory: its `text`, or its content as JSON where that is something else."""
    content = None if fact.content_text is None else parse_json(fact.content_text)
    text = content.get("text") if isinstance(content, dict) else content
    return text if isinstance(text, str) else fact.content_text or ""
