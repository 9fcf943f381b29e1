"""Read facts: by id, at a version or an earlier instant, and their revisions."""

from functools import partial

from factbook.domain import times, wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactNotFound, NotFound, SourceUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact, StaleReason
from factbook.ports.facts.store import Head
from factbook.usecases.facts.payloads import is_as_written
from factbook.usecases.facts.ports import FactPorts

DOWNLOAD_SECONDS = 300
MOST_RETRY_SECONDS = 3600


def get_fact(
    ports: FactPorts,
    principal: Principal,
    fact_id: str,
    version: int | None = None,
    as_of: str | None = None,
    *,
    require_fresh: bool = False,
) -> Fact:
    """The current revision, a version, the revision current at `as_of`, or (both) that version if it was current then.

    Raises FactNotFound for what is not there or not shown (`domain.facts.gate`); SourceUnavailable for a current one that
    is stale and must not be.
    """
    if version is None and as_of is None:
        head = ports.facts.head(principal.tenant, fact_id)
        return current_fact(ports, principal, fact_id, head, require_fresh=require_fresh)
    try:
        return _past_fact(ports, principal, fact_id, version, as_of)
    except FactNotFound as error:
        raise FactNotFound(fact_id, past=True) from error


def _past_fact(
    ports: FactPorts, principal: Principal, fact_id: str, version: int | None, as_of: str | None
) -> Fact:
    look = ports.look(principal.tenant, "by-id", past=True)
    shows = partial(gate.shows_revision, principal, look=look)
    if version is not None:
        head = _require_shown(
            ports, principal, fact_id, ports.facts.head(principal.tenant, fact_id), past=True
        )
        current = head.fact if as_of is not None else head.marked(look.now).fact
        fact = current if current.version == version else _revision(ports, head, version)
        if fact is None or (as_of is not None and not fact.holds_at(as_of)) or not shows(fact):
            raise FactNotFound(fact_id)
        return fact
    head = _require_shown(ports, principal, fact_id, ports.facts.head(principal.tenant, fact_id), past=True)
    found = revision_at(ports, head, as_of or "")
    if found is None or not shows(found):
        raise FactNotFound(fact_id)
    return found


def current_fact(
    ports: FactPorts, principal: Principal, named: str | None, head: Head | None, *, require_fresh: bool
) -> Fact:
    """What a read that names a fact shows of its head. The source of a stale one is asked first, if reads are to.

    `named`: the id that the caller named. Staleness is judged as of the moment at which the read began. Raises
    FactNotFound, SourceUnavailable.
    """
    look = ports.look(principal.tenant, "by-id")
    shown = _current(principal, named, head, look)
    if shown.stale and head is not None and shown.version == head.fact.version:
        head, why = ports.freshen(head, look.now)
        shown = _current(principal, named, head, look, why)
    if shown.stale and require_fresh:
        raise still_stale(None if head is None else retry_seconds(head, look.now), shown)
    return shown


def _current(
    principal: Principal,
    named: str | None,
    head: Head | None,
    look: gate.Look,
    why: StaleReason | None = None,
) -> Fact:
    head = None if head is None else head.settled(look.now).marked(look.now, why)
    shown = None if head is None else gate.shown(principal, head.fact, head.confirmed_fact, look)
    if shown is None:
        raise FactNotFound(named)
    return shown


def still_stale(seconds: int | None, fact: Fact) -> SourceUnavailable:
    """The refusal of a stale answer to who asked for a fresh one."""
    return SourceUnavailable(
        "The fact is stale, and you asked for a fresh one. Retry after the seconds in Retry-After, or without requireFresh.",
        seconds or 1,
        factId=fact.id,
        staleReason=fact.stale_reason,
    )


def retry_seconds(head: Head, now: str) -> int:
    """In how many seconds it is worth asking for the fact again, an hour at most."""
    at = None if head.refresh is None else head.refresh.retry_at
    return 1 if at is None else min(max(1, times.seconds_until(now, at)), MOST_RETRY_SECONDS)


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
    look = ports.look(principal.tenant, "by-id", past=True)
    shown = [fact for fact in found if gate.shows_revision(principal, fact, look)]
    return shown, found[-1].version if more else None


def get_content_url(ports: FactPorts, principal: Principal, fact_id: str, version: int | None = None) -> str:
    """A presigned download of a fact's large content, for no longer than the fact has left. Raises NotFound when the content
    is inline, and when what lies in the bucket is not what was written.
    """
    fact = get_fact(ports, principal, fact_id, version)
    if fact.content_ref is None:
        raise NotFound("This fact's content is inline. Read the fact itself.", factId=fact_id)
    if not is_as_written(ports, principal.tenant, fact):
        raise NotFound(
            "What lies in the bucket is not the content that was written: it was replaced or removed there. Ask an "
            "operator, who may find the former version in the bucket.",
            factId=fact_id,
        )
    return ports.blobs.download_url(fact.content_ref, _download_seconds(fact, ports.clock.now()))


def _download_seconds(fact: Fact, now: str) -> int:
    if fact.expires_at is None:
        return DOWNLOAD_SECONDS
    left = (times.epoch_ms(fact.expires_at) - times.epoch_ms(now)) // 1000
    return max(1, min(left, DOWNLOAD_SECONDS))


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
    look = ports.look(principal.tenant, "by-id", past=past)
    head = None if head is None else head.settled(look.now)
    if head is None or not gate.shown(principal, head.fact, head.confirmed_fact, look):
        raise FactNotFound(fact_id)
    return head
