"""Read facts: by id, at a version or an earlier instant, and their revisions."""

from functools import partial

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactNotFound, NotFound
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head
from factbook.usecases.facts.ports import FactPorts


def get_fact(
    ports: FactPorts, principal: Principal, fact_id: str, version: int | None = None, as_of: str | None = None
) -> Fact:
    """The current revision, a version, the revision current at `as_of`, or (both) that version if it was current then.

    Raises FactNotFound for what is not there or not shown (`domain.facts.gate`).
    """
    shows = partial(gate.shows_revision, principal, look=ports.look("by-id", past=True))
    if version is not None:
        head = _require_shown(
            ports, principal, fact_id, ports.facts.head(principal.tenant, fact_id), past=True
        )
        fact = head.fact if head.fact.version == version else _revision(ports, head, version)
        if fact is None or (as_of is not None and not fact.holds_at(as_of)) or not shows(fact):
            raise FactNotFound(fact_id)
        return fact
    head = _require_shown(
        ports, principal, fact_id, ports.facts.head(principal.tenant, fact_id), past=as_of is not None
    )
    if as_of is not None:
        found = revision_at(ports, head, as_of)
        if found is None or not shows(found):
            raise FactNotFound(fact_id)
        return found
    shown = gate.shown(principal, head.fact, head.confirmed_fact, ports.look("by-id"))
    return shown or head.fact


def list_revisions(
    ports: FactPorts, principal: Principal, fact_id: str, below: int | None = None
) -> tuple[list[Fact], int | None]:
    """Revisions newest first, whole, without those that are not shown; the version to go on below when about 4 MB were not enough."""
    head = _require_shown(ports, principal, fact_id, ports.facts.head(principal.tenant, fact_id), past=True)
    newest = [head.fact] if head.lapsed is None else [head.fact, head.lapsed]
    found = [fact for fact in newest if below is None or below > fact.version]
    budget = wire.ANSWER_BYTES - sum(fact.wire_bytes for fact in found)
    below = found[-1].version if found else (below or 1)
    closed, more = ports.facts.revisions(head, below, budget)
    found += closed
    look = ports.look("by-id", past=True)
    shown = [fact for fact in found if gate.shows_revision(principal, fact, look)]
    return shown, found[-1].version if more else None


def get_content_url(ports: FactPorts, principal: Principal, fact_id: str, version: int | None = None) -> str:
    """A presigned download of a fact's large content. Raises NotFound when the content is inline."""
    fact = get_fact(ports, principal, fact_id, version)
    if fact.content_ref is None:
        raise NotFound("This fact's content is inline. Read the fact itself.", factId=fact_id)
    return ports.blobs.download_url(fact.content_ref)


def revision_at(ports: FactPorts, head: Head, as_of: str) -> Fact | None:
    """The revision current at `as_of`, by binary search: versions have no gaps and start times increase."""
    fact = head.fact
    if fact.created_at > as_of:
        return None
    low, high, found = 1, fact.version, None
    if fact.updated_at <= as_of:
        low, found = fact.version, fact
    while found is None and high - low > 1:  # version `low` began by then, `high` had not
        middle = (low + high) // 2
        revision = _revision(ports, head, middle)
        if revision is None or revision.holds_at(as_of):
            return revision
        low, high = (middle, high) if revision.updated_at <= as_of else (low, middle)
    found = found or _revision(ports, head, low)
    return found if found is not None and found.holds_at(as_of) else None


def _revision(ports: FactPorts, head: Head, version: int) -> Fact | None:
    """A closed revision, which of a lapsed proposal nothing has stored yet."""
    if head.lapsed is not None and head.lapsed.version == version:
        return head.lapsed
    return ports.facts.revision(head, version)


def _require_shown(
    ports: FactPorts, principal: Principal, fact_id: str, head: Head | None, *, past: bool
) -> Head:
    look = ports.look("by-id", past=past)
    head = None if head is None else head.settled(look.now)
    if head is None or not gate.shown(principal, head.fact, head.confirmed_fact, look):
        raise FactNotFound(fact_id)
    return head
