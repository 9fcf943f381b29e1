"""A tenant in which several processes write, remember, decide, hold, search and read while one person is erased, and what of
it a small model expects.

Processes know what is in force as of at most two seconds ago; some have begun a write and finish it up to a minute later,
with what they knew then. The index hears of changes late and out of order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.domain import times
from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.errors import (
    ErasureInProgress,
    FactbookError,
    FactNotFound,
    LegalHold,
    NotInReview,
)
from factbook.domain.facts.fact import FactChanges, Subject
from factbook.domain.facts.ids import memory_id
from factbook.domain.memories.statements import Statement
from factbook.domain.strict_json import parse_json
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.caches import TrustedAnswers
from factbook.usecases.facts import changes, holds, keyed, listing, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.reading import read_run
from factbook.usecases.log.sealing import Vault
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import remember
from factbook.usecases.memories.reviewing import Decided, confirm
from factbook.usecases.retrieval import retrieve
from factbook.usecases.retrieval.indexing import index_heads, with_confirmed
from support.erasing import ErasureWorld, scope
from support.fakes import FakeMemories
from support.principals import principal
from support.search_world import AesGcm, admin

PERSONS = ("xara", "yves")
LONGEST_WRITE = 60.0
REFUSALS = (FactNotFound, ErasureInProgress, LegalHold, NotInReview)


@dataclass
class Known:
    """A fact as the model has it: whom any revision named, its texts from the first on, and whether it is current and held."""

    persons: set[str]
    texts: list[str]
    current: bool = True
    held: bool = False
    was_held: bool = False
    """It is, or was at some time: a hold may be released while its refusal is on the way."""
    gone: bool = False
    memory: bool = False


@dataclass
class Stalled:
    """A write that has begun, with what its process knew then, and by when it ends."""

    ends: str
    finish: Callable[[], None]


@dataclass
class Process:
    """What one process knows: it reads what is in force at most every two seconds."""

    ports: FactPorts
    memories: MemoryPorts
    log: LogWriter


@dataclass
class Tenancy:
    world: ErasureWorld
    chance: random.Random
    tenant: str
    facts: dict[str, Known] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PERSONS, 0))
    unheard: list[Head] = field(default_factory=list)
    stalled: list[Stalled] = field(default_factory=list)
    erasure: Erasure | None = None
    answered: bool = False
    """Whether the request for the erasure has been answered, so that no process may show or write anything of her."""
    asked: bool = False
    known_until: str = ""
    done: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.admin, self.bob = admin(self.tenant), principal(self.tenant, "bob", "service", writes=["p"])
        self.processes = [self._process() for _ in range(2)]
        self.world.sleep_hook = self._meanwhile

    def _process(self, known: Erasing | None = None) -> Process:
        world = self.world
        view: Callable[[str], Erasing] = TrustedAnswers(world.records.in_force, 2.0, world.elapsed)
        if known is not None:
            view = lambda _: known  # noqa: E731
        vault = Vault(world.keys, world.wrapper, AesGcm(), world.elapsed, erasing=view)
        log = LogWriter(world.log, vault, world.log_clock, pause=lambda _: None, erasing=view)
        ports = replace(world.memory, erasing=view)
        return Process(ports, MemoryPorts(ports, FakeMemories(world.facts)), log)

    # -- steps

    def step(self) -> None:
        names = ["write", "write", "key", "about", "supersede", "supersede", "delete", "remember", "remember", "confirm", "hold", "release", "get", "list", "search", "revisions", "say", "run", "deliver", "stall", "tick", "turn"]  # fmt: skip
        name = self.chance.choice(names)
        self.done.append(name)
        getattr(self, f"_{name}")()

    def _someone(self) -> str:
        return self.chance.choice(PERSONS)

    def _some_process(self) -> Process:
        return self.chance.choice(self.processes)

    def _some_fact(self) -> str | None:
        return self.chance.choice(sorted(self.facts)) if self.facts else None

    def _text(self, person: str) -> str:
        self.number += 1
        return f"{person}{self.tenant} says {self.tenant}word{self.number}"

    def _operation(self) -> Operation:
        self.number += 1
        return Operation(f"{self.tenant}-{self.number}", "body")

    def _write(self) -> None:
        person = self._someone()
        self._new(self._some_process(), person, scope(self.tenant, projectId="p", participantId=person))

    def _about(self) -> None:
        person = self._someone()
        subject = FactChanges(subjects=[Subject(kind="participant", id=person)])
        self._new(self._some_process(), person, scope(self.tenant), subject)

    def _new(self, by: Process, person: str, where: Any, said: FactChanges | None = None) -> None:
        text = self._text(person)
        call = changes.write_fact
        self._attempt(
            {person},
            None,
            lambda: call(
                by.ports, self.admin, self._operation(), "t", where, said or FactChanges(), Content(text)
            ),
            text,
        )

    def _key(self, by: Process | None = None, *, stalled: bool = False) -> None:
        person, by = self._someone(), by or self._some_process()
        key = keyed.Key(
            scope(self.tenant, projectId="p", participantId=person), "t", self.chance.choice("ab")
        )
        text = self._text(person)
        there = self.facts.get(key.fact_id)
        self._attempt(
            {person}, key.fact_id if there is not None and not there.gone else None,
            lambda: keyed.write_keyed_fact(by.ports, self.admin, self._operation(), key, FactChanges(), Content(text), may_supersede=True).fact,
            text, reopens=True, stalled=stalled,
        )  # fmt: skip

    def _supersede(self, by: Process | None = None, *, stalled: bool = False) -> None:
        fact_id = self._some_fact()
        if fact_id is None:
            return
        by, known = by or self._some_process(), self.facts[fact_id]
        text = self._text(min(known.persons))
        said = FactChanges(subjects=[]) if self.chance.random() < 0.5 else FactChanges()
        self._attempt(
            known.persons,
            fact_id,
            lambda: changes.supersede_fact(
                by.ports, self.admin, self._operation(), fact_id, said, Content(text)
            ),
            text,
            stalled=stalled,
        )

    def _delete(self) -> None:
        fact_id = self._some_fact()
        if fact_id is not None:
            by, known = self._some_process(), self.facts[fact_id]
            self._attempt(
                known.persons,
                fact_id,
                lambda: changes.delete_fact(by.ports, self.admin, self._operation(), fact_id),
                None,
            )

    def _remember(self, by: Process | None = None, *, stalled: bool = False) -> None:
        person, by = self._someone(), by or self._some_process()
        text, place = self._text(person), scope(self.tenant, projectId="p", participantId=person)
        said = Statement(
            "copilot",
            place,
            f"participant:p/{person}",
            "m",
            text,
            key=self.chance.choice("ab"),
            about="account",
        )
        fact_id = memory_id(self.tenant, said.owner, "copilot", said.key or "")
        there = self.facts.get(fact_id)
        self._attempt(
            {person}, fact_id if there is not None and not there.gone else None,
            lambda: remember(by.memories, self.bob, self._operation(), said).fact, text, reopens=True, memory=True, stalled=stalled,
        )  # fmt: skip

    def _confirm(self) -> None:
        memories = sorted(name for name, known in self.facts.items() if known.memory)
        if memories:
            fact_id, by = self.chance.choice(memories), self._some_process()
            known = self.facts[fact_id]
            self._attempt(
                known.persons,
                fact_id,
                lambda: confirm(by.memories, self.admin, self._operation(), Decided(fact_id)),
                known.texts[-1],
                may_refuse=True,
            )

    def _hold(self, by: Process | None = None, *, stalled: bool = False) -> None:
        fact_id = self._some_fact()
        if fact_id is not None and self.chance.random() < 0.3:
            by, known = by or self._some_process(), self.facts[fact_id]
            done = self._attempt(
                known.persons,
                fact_id,
                lambda: holds.hold_fact(by.ports, self.admin, self._operation(), fact_id, "case"),
                "",
                holds=True,
                stalled=stalled,
            )
            known.held = known.held or done
            known.was_held = known.was_held or done

    def _release(self) -> None:
        fact_id = self._some_fact()
        if fact_id is not None:
            by, known = self._some_process(), self.facts[fact_id]
            done = self._attempt(
                known.persons,
                fact_id,
                lambda: holds.release_fact(by.ports, self.admin, self._operation(), fact_id, "over"),
                "",
                holds=True,
            )
            known.held = known.held and not done

    def _stall(self) -> None:
        """A process begins a write now and ends it up to a minute later, with what it knows now."""
        by = self._process(self._some_process().ports.erasing(self.tenant))
        write = self.chance.choice([self._key, self._supersede, self._remember, self._hold])
        ends = self.world.clock.now()
        self.stalled.append(Stalled(times.add(ends, seconds=LONGEST_WRITE), lambda: write(by, stalled=True)))

    def _attempt(
        self, persons: set[str], fact_id: str | None, call: Callable[[], Any], text: str | None, *,
        reopens: bool = False, memory: bool = False, may_refuse: bool = False, holds: bool = False, stalled: bool = False,
    ) -> bool:  # fmt: skip
        """Try a write, hold its outcome to the model, and have the model follow it."""
        known = None if fact_id is None else self.facts[fact_id]
        hers = "xara" in persons
        try:
            fact = call()
        except REFUSALS as refused:
            refusal = refused
        else:
            refusal = None
        if refusal is not None:
            told = self._may_refuse(refusal, known, hers=hers, may_refuse=may_refuse, holds=holds)
            told = told or (stalled and hers and isinstance(refusal, ErasureInProgress))  # as it knew then
            assert told, (refusal, known)
            return False
        assert not (hers and self.answered and not stalled), "written while it was erased"
        assert known is None or not known.gone or reopens
        if known is not None and not holds:
            assert not known.held
        self._follow(fact, known, persons, text, holds=holds, memory=memory)
        return True

    def _may_refuse(
        self, refusal: FactbookError, known: Known | None, *, hers: bool, may_refuse: bool, holds: bool
    ) -> bool:
        match refusal:
            case ErasureInProgress():
                return hers and self.erasure_is_asked
            case FactNotFound():
                return known is not None and (
                    not known.current or known.gone or (hers and self.erasure_is_asked)
                )
            case LegalHold():
                return known is not None and known.held and not holds
            case _:
                return may_refuse

    def _follow(
        self,
        fact: Any,
        known: Known | None,
        persons: set[str],
        text: str | None,
        *,
        holds: bool,
        memory: bool,
    ) -> None:
        if holds:
            pass
        elif known is None or known.gone:
            assert fact.version == 1
            self.facts[fact.id] = Known(set(persons), [text or ""], memory=memory)
        elif text is None:
            known.current = False
        else:
            known.texts.append(text)
            known.current = True
            assert fact.version == len(known.texts), (fact.version, known)
        head = self.world.facts.head(self.tenant, fact.id)
        if head is not None:
            self.unheard.append(head)

    @property
    def erasure_is_asked(self) -> bool:
        """Whether some process may know of it: for two seconds after its end one may."""
        return self.asked or self.world.clock.now() <= self.known_until

    # -- reads: what is shown is what the model has, and nothing of her once the request is answered

    def _hidden(self, known: Known) -> bool:
        return known.gone or ("xara" in known.persons and self.answered)

    def _may_be_hidden(self, known: Known) -> bool:
        return known.gone or ("xara" in known.persons and self.erasure_is_asked)

    def _check(self, fact: Any) -> None:
        known = self.facts[fact.id]
        assert not self._hidden(known), "shown while it was erased, or afterwards"
        text = parse_json(fact.content_text)
        text = text["text"] if isinstance(text, dict) else text
        assert text in known.texts, "resurrected"
        assert text == known.texts[fact.version - 1], "stale"

    def _get(self) -> None:
        fact_id = self._some_fact()
        if fact_id is None:
            return
        known = self.facts[fact_id]
        try:
            fact = reading.get_fact(self._some_process().ports, self.admin, fact_id)
        except FactNotFound:
            assert not known.current or self._may_be_hidden(known)
        else:
            assert known.current
            assert fact.version == len(known.texts)
            self._check(fact)

    def _list(self) -> None:
        page = listing.list_facts(self._some_process().ports, self.admin, listing.Query(), 100)
        for fact in page.facts:
            self._check(fact)
            assert fact.version == len(self.facts[fact.id].texts)
        shown = {fact.id for fact in page.facts}
        must = {
            name for name, known in self.facts.items() if known.current and not self._may_be_hidden(known)
        }
        assert must <= shown

    def _revisions(self) -> None:
        fact_id = self._some_fact()
        if fact_id is None:
            return
        known = self.facts[fact_id]
        try:
            found, _ = reading.list_revisions(self._some_process().ports, self.admin, fact_id)
        except FactNotFound:
            assert self._may_be_hidden(known)
        else:
            assert [fact.version for fact in found] == list(range(len(known.texts), 0, -1))
            for fact in found:
                self._check(fact)

    def _search(self) -> None:
        person, by = self._someone(), self._some_process()
        question = retrieve.Question("keyword", f"{person}{self.tenant}", 50)
        for fact, _ in retrieve.retrieve_facts(by.ports, self.world.engine, self.admin, question).facts:
            self._check(fact)
            known = self.facts[fact.id]
            assert known.current
            assert fact.version == len(known.texts) or known.memory

    def _say(self) -> None:
        person, by = self._someone(), self._some_process()
        place = scope(self.tenant, projectId="p", participantId=person)
        request = Request("user-message", {"text": self._text(person)}, scope=place)
        try:
            append_entries(by.log, self.admin, f"run-{person}", [request])
        except ErasureInProgress:
            assert person == "xara"
            assert self.erasure_is_asked
        else:
            assert not (person == "xara" and self.answered)
            self.said[person] += 1

    def _run(self) -> None:
        person, by = self._someone(), self._some_process()
        if not self.said[person]:
            return
        entries = read_run(self.world.log, by.log.vault, self.admin, f"run-{person}", 0, 100).data
        assert len(entries) == min(100, self.said[person])
        for entry in entries:
            assert "payload" not in entry or person != "xara" or not self.answered
            assert "payload" in entry or (person == "xara" and self.erasure_is_asked)

    # -- the world goes on

    def _deliver(self) -> None:
        self.chance.shuffle(self.unheard)
        index_heads(self.world.indexing, with_confirmed(self.unheard))
        self.unheard.clear()

    def _tick(self) -> None:
        self._pass(self.chance.choice([0.5, 1.0, 3.0, 20.0]))

    def _pass(self, seconds: float) -> None:
        """Time goes by; what has to end by then ends before."""
        by = times.add(self.world.clock.now(), seconds=seconds)
        late = [each for each in self.stalled if each.ends <= by or self.chance.random() < 0.2]
        self.stalled = [each for each in self.stalled if each not in late]
        for each in late:
            each.finish()
        self.world.clock.advance(seconds=seconds)

    def _turn(self) -> None:
        """The worker does a little, if there is anything to do now: time goes on by itself."""
        if self.erasure is None:
            return
        due = self.world.records.due.get((self.tenant, self.erasure.id))
        if due is not None and due <= self.world.clock.now():
            looks = iter(range(1_000))
            self.world.work_once(self.erasure, Deadline(self.chance.choice([6, 30]), looks.__next__))
            self._end_of()

    def _end_of(self) -> None:
        record = self._record
        if record.status == "completed":
            for known in self.facts.values():
                known.gone = known.gone or "xara" in known.persons
        if record.ended:
            self.answered = self.asked = False
            self.known_until = times.add(self.world.clock.now(), seconds=2)

    @property
    def _record(self) -> Erasure:
        (record,) = [each for each in self.world.records.kept.values() if each.tenant == self.tenant]
        return record

    def _meanwhile(self) -> None:
        for _ in range(self.chance.randrange(3)):
            self.step()

    def ask(self) -> None:
        """The one erasure; others go on while it waits to be known."""
        self.done.append("ask")
        self.asked = True
        refused: list[str] = []
        try:
            self.erasure = self.world.ask(Selector("participant", "xara"), self.admin)
        except LegalHold as refusal:
            refused = refusal.details["factIds"]
        if refused:
            assert all(self.facts[name].was_held for name in refused)
            assert not self.world.records.kept
            self.asked = False
        else:
            self.answered = True
            held = [
                name
                for name, known in self.facts.items()
                if known.held and "xara" in known.persons and not known.gone
            ]
            assert held == [], "held, and not told of"

    def end(self) -> None:
        """Everything comes to its end; nothing of her is left, or, for a hold that came in between, everything is."""
        if self.erasure is not None:
            for _ in range(200):
                if self._record.ended:
                    break
                self._pass(10)
                self._turn()
            assert self._record.ended
        self._pass(LONGEST_WRITE)
        self._deliver()
        for name in ("_list", "_search", "_search"):
            getattr(self, name)()
        for fact_id, known in self.facts.items():
            head = self.world.facts.head(self.tenant, fact_id)
            assert head is not None
            if known.gone:
                assert head.fact.invalidation_reason == "erased"
            else:
                assert head.fact.version == len(known.texts)
                assert head.fact.current is known.current
        if self.erasure is not None and self._record.status == "completed":
            kept = repr([self.world.facts._heads, self.world.facts._revisions])
            lost = [known for known in self.facts.values() if known.gone]
            assert not any(text in kept for known in lost for text in known.texts)
