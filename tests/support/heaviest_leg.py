"""The leg with the most conditions that a request can come to."""

from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.facts import gate
from factbook.domain.retrieval.tokenizer import MAX_QUERY_TERMS
from factbook.ports.retrieval.index import KeywordLeg
from factbook.usecases.retrieval.retrieve import Question, asked_rule
from support.principals import principal

NOW = "2026-03-01T12:00:00.000Z"


def heaviest_leg() -> KeywordLeg:
    """A user of a thousand projects asks 256 words, every filter set, while hundreds of people are erased in as many projects."""
    projects = [f"p{number}" for number in range(1_000)]
    who = principal("t", writes=projects[:500], reads=projects, reads_orgs=projects, administers_orgs=["o"])
    erased = [(Selector("participant", f"u{number}", f"p{number}"), NOW) for number in range(500)]
    look = gate.Look(NOW, "recalled", erasing=Erasing.of(erased), agent="a", person="p1/ann")
    question = Question(
        "keyword",
        types=tuple(f"acme.t{number}" for number in range(100)),
        type_prefix="acme.",
        scope={"projectId": "p1", "participantId": "ann", "orgId": "o", "threadId": "t", "userId": "u"},
        trust=("asserted", "verified", "unverified"),
        subjects=tuple(f"user:u{number}" for number in range(100)),
    )
    words = tuple(f"word{number}" for number in range(MAX_QUERY_TERMS))
    return KeywordLeg(words, asked_rule(who, question, look), 200)
