"""What an erasure reaches: the facts that its selector names, the keys and runs of whom it is about, and what follows of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.errors import BadInput, FactUnreadable, LogChanged
from factbook.domain.facts.fact import Fact
from factbook.domain.log.chain import LogId, read_log_id
from factbook.domain.log.sealing import KeyName
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.facts.store import Head, readable_heads
from factbook.ports.facts.walks import Held
from factbook.ports.flaws import UNREADABLE
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.log.sealing import KeyStore, SealedKey
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases.caches import RecentValues
from factbook.usecases.erasure.ports import ErasurePorts, known_from
from factbook.usecases.log.entries import scope_of, sealed_under, tail_of
from factbook.usecases.merging import at_once

PAGE = 100
MOST_HELD = 100
KNOWN_RUNS = 10_000


@dataclass(frozen=True)
class Reach:
    """Whom an erasure is about. `before`: what began at that instant or later is not reached; None: all is."""

    tenant: str
    selector: Selector
    before: str | None = None

    @classmethod
    def of(cls, erasure: Erasure) -> "Reach":
        """A replay takes only what began before every process knew that the erasure was asked for: nobody's later words go for
        an earlier request.
        """
        assert erasure.selector is not None, "an erasure that goes on has its selector"
        replayed = erasure.replayed_at
        before = None if replayed is None else min(known_from(erasure.created_at), replayed)
        return cls(erasure.tenant, erasure.selector, before)

    def names(self, head: Head) -> bool:
        """Whether the fact is to be erased. A tombstone is not: nothing of it is left."""
        fact = head.fact
        if fact.invalidation_reason == "erased" or not self.began_in_time(fact.created_at):
            return False
        return self.selector.names(fact.id, fact.scope, fact.owner, fact.about)

    def names_scope(self, scope: Scope) -> bool:
        return self.selector.names_scope(scope)

    def names_key(self, key: SealedKey) -> bool:
        """Whether a data key is to be destroyed, or was: its payloads are those of one project, person and conversation."""
        covering = key_name(self.selector)
        in_time = self.before is None or key.begun_before(self.before)
        return covering is not None and in_time and key.name.covered_by(covering)

    @property
    def has_words(self) -> bool:
        """Whether the log has words of whom this is about: an external person and a fact are in no scope of an entry."""
        return key_name(self.selector) is not None

    def began_in_time(self, began: str) -> bool:
        """Whether what began at an instant, in whichever fractions of a second, is old enough to be reached."""
        return self.before is None or began.removesuffix("Z") < self.before.removesuffix("Z")


def key_name(selector: Selector) -> KeyName | None:
    """What the names of the data keys that are to be destroyed have in common; None: there are none."""
    project = selector.project or ""
    match selector.kind:
        case "user":
            return KeyName(project, user=selector.id)
        case "participant":
            return KeyName(project, participant=selector.id)
        case "conversation":
            return KeyName(thread=selector.id)
        case _:
            return None


def heads(ports: ErasurePorts, reach: Reach, after: str | None) -> WalkPage[Head]:
    """The next heads of the tenant to look at, each read once. For one fact it is that one alone.

    Raises FactUnreadable for such a one.
    """
    if reach.selector.kind != "fact":
        return ports.walk.heads(reach.tenant, after, PAGE)
    head = head_of(ports, reach.tenant, reach.selector.id)
    return WalkPage([] if head is None else [Stop(head, "")], None)


def head_of(ports: ErasurePorts, tenant: str, fact_id: str) -> Head | None:
    """Raises FactUnreadable."""
    try:
        return ports.facts.facts.head(tenant, fact_id)
    except UNREADABLE as error:
        raise FactUnreadable(fact_id) from error


def held_facts(ports: ErasurePorts, reach: Reach, deadline: Deadline = NEVER) -> list[str]:
    """Ids of held facts that are reached, at most MOST_HELD, by the index of held facts; each is read to be sure. One that
    cannot be read stays as it is, whatever it is about: no erasure reaches it.

    Raises StorageUnavailable when the deadline passes before the index is read, FactUnreadable.
    """
    if reach.selector.kind == "fact":
        return [head.fact.id for head in heads(ports, reach, None).records if _stands(reach, head)]
    found: list[str] = []
    for rows in _pages_of_held(ports, reach.tenant, deadline):
        likely = [row.fact_id for row in rows if _may_be(reach, row)]
        there, _ = readable_heads(ports.facts.facts, reach.tenant, likely)
        found += [fact_id for fact_id in likely if fact_id in there and _stands(reach, there[fact_id])]
        if len(found) >= MOST_HELD:
            break
    return found[:MOST_HELD]


def _pages_of_held(ports: ErasurePorts, tenant: str, deadline: Deadline) -> Iterator[list[Held]]:
    after: str | None = None
    while True:
        deadline.require()
        page = ports.erasing.held(tenant, after, PAGE)
        yield page.records
        after = page.next
        if after is None:
            return


def _stands(reach: Reach, head: Head) -> bool:
    return head.fact.held and reach.names(head)


def _may_be(reach: Reach, row: Held) -> bool:
    """Whether the row may be of a fact that is reached; one that does not say its subjects may be."""
    return row.subjects is None or reach.selector.names(row.fact_id, row.scope, row.owner, row.subjects)


class Words:
    """Which entries of runs that are reached were said in time: those whose data key is destroyed. Later ones have another."""

    def __init__(self, keys: KeyStore, reach: Reach) -> None:
        self._keys = keys
        self._reach = reach
        self._known: RecentValues[tuple[KeyName, int], bool] = RecentValues(KNOWN_RUNS)

    def reach_one(self, entry: StoredEntry) -> bool:
        """Whether an entry of a run that is reached is so itself; one that is not as it was written is."""
        if self._reach.before is None:
            return True
        try:
            sealed = sealed_under(entry)
        except (LogChanged, BadInput, ValueError):
            return True
        if sealed is None:
            return self._reach.began_in_time(tail_of(entry).timestamp)
        if (known := self._known.get(sealed)) is None:
            key = self._keys.generation(self._reach.tenant, *sealed)
            known = key is None or self._reach.names_key(key)
            self._known.put(sealed, known)
        return known


class Causes:
    """Which entries of the log are of whom an erasure is about: told run by run, and remembered."""

    def __init__(self, log: LogStore, reach: Reach, words: Words) -> None:
        self._log = log
        self._reach = reach
        self._words = words
        self._known: RecentValues[str, bool] = RecentValues(KNOWN_RUNS)

    def reach_one_of(self, fact: Fact) -> bool:
        """Whether the fact was caused by an entry that is reached."""
        if not self._reach.has_words:
            return False
        causes = map(read_log_id, fact.caused_by_log_id or ())
        return any(self._reaches(cause) for cause in causes if cause is not None)

    def _reaches(self, cause: LogId) -> bool:
        if not self._run_is_reached(cause.run_id):
            return False
        if self._reach.before is None:
            return True
        entry = self._log.entry(self._reach.tenant, cause.run_id, cause.sequence)
        return entry is not None and self._words.reach_one(entry)

    def _run_is_reached(self, run_id: str) -> bool:
        known = self._known.get(run_id)
        if known is None:
            known = self._look_up(run_id)
            self._known.put(run_id, known)
        return known

    def _look_up(self, run_id: str) -> bool:
        scope = _scope_of_run(self._log, self._reach.tenant, run_id)
        return scope is not None and self._reach.names_scope(scope)


def caused_by_erased(log: LogStore, erasing: Erasing, tenant: str, causes: Iterable[str]) -> bool:
    """Whether one of these entries is of whom an erasure in force is about: a read for each run, and none while none is.

    One that is run again counts for all of its person's entries: which of them are of later, its worker alone looks up.
    """
    if not erasing.since:
        return False
    runs = {cause.run_id for cause in map(read_log_id, causes) if cause is not None}
    scopes = at_once(partial(_scope_of_run, log, tenant), sorted(runs))
    return any(scope is not None and erasing.of_scope(scope) is not None for scope in scopes)


def _scope_of_run(log: LogStore, tenant: str, run_id: str) -> Scope | None:
    """By the run's first entry: all of them have its scope. A run that is not there, or not as written, tells nothing."""
    first = log.entry(tenant, run_id, 0)
    try:
        return None if first is None else scope_of(first)
    except (LogChanged, BadInput, ValueError):
        return None
