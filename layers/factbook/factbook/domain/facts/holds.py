"""Legal holds. A hold is a state of a revision: putting one on and taking it off makes no other revision."""

from factbook.domain.facts.fact import Fact, Retention
from factbook.domain.facts.transitions import with_expiry
from factbook.domain.policy.retention import KeepLimits


def held(fact: Fact) -> Fact:
    """The same revision, which nothing may change, remove or end."""
    retention = (fact.retention or Retention()).model_copy(update={"legal_hold": True})
    return fact.model_copy(update={"retention": retention, "expires_at": None})


def released(fact: Fact, keep: KeepLimits | None, now: str) -> Fact:
    """The same revision judged anew: it ends as its retention says, or now, when that has run out meanwhile.

    `keep` limits one that states no retention.
    """
    retention = (fact.retention or Retention()).model_copy(update={"legal_hold": None})
    stated = retention if retention.limited else None
    judged = with_expiry(fact.model_copy(update={"retention": stated}), keep)
    return judged.model_copy(update={"expires_at": now}) if judged.expired(now) else judged
