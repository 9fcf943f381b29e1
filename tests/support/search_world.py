"""A world to search in: the real index in a file, fakes for the stores, and an embedder that reads words as directions."""

import hashlib
import json
import math
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.access.principals import Principal
from factbook.domain.errors import SearchUnavailable
from factbook.domain.log.entries import LogEntry
from factbook.domain.log.runs import later_micros
from factbook.domain.policy.policies import Policy
from factbook.domain.retrieval.searchable import content_words
from factbook.domain.scope import Scope
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import Head
from factbook.ports.jobs import Job
from factbook.ports.log.entries import StoredEntry
from factbook.ports.operations import Operation
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector
from factbook.ports.retrieval.index import EmbeddingSpace, SearchIndex
from factbook.ports.retrieval.upkeep import Troubled
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases.erasure.reaching import caused_by_erased
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts import keyed
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.sealing import Vault
from factbook.usecases.retrieval import index_jobs, indexing, retrieve
from factbook.usecases.retrieval.embedding_spaces import Spaces
from factbook.usecases.retrieval.index_jobs import IndexJobPorts
from factbook.usecases.retrieval.indexing import IndexingPorts
from factbook.usecases.retrieval.messages import MessagePorts, index_messages
from factbook.usecases.retrieval.recall import RecallPorts, recall_messages
from factbook.usecases.retrieval.searching import SearchPorts
from factbook_search.english import english_tokenizer
from support.fakes import FakeBlobs, FakeClock, FakeFacts, logged_changes
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal

TOKENIZER = english_tokenizer()
SYNONYMS = {"felin": "cat", "kitten": "cat"}
"""By stem."""


class WordEmbedder:
    """Embedder: each word is a direction, synonyms share one. `down`, `broken`, `stuck`, `refused` make it fail as real ones do."""

    def __init__(self, model: str = "words", dimensions: int = 64) -> None:
        self.model = model
        self.dimensions = dimensions
        self.down = False
        self.broken = False
        self.refused = ""
        self.stuck = ""
        self.calls = 0
        self.waited_for: list[float | None] = []

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
        purpose: str = "document",
    ) -> list[Vector | EmbeddingFailure]:
        self.calls += 1
        self.waited_for.append(within)
        if self.down:
            raise EmbeddingsUnavailable("no answer")
        return [self._embed(text, dimensions) for text in texts]

    def _embed(self, text: str, dimensions: int | None) -> Vector | EmbeddingFailure:
        if self.refused and self.refused in text:
            return EmbeddingFailure("the endpoint refused the text", refused=True)
        if self.broken or (self.stuck and self.stuck in text) or dimensions not in (None, self.dimensions):
            return EmbeddingFailure("the endpoint's vector has another size")
        vector = [1e-3] * self.dimensions
        for word in TOKENIZER.document(text):
            digest = hashlib.sha256(SYNONYMS.get(word, word).encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimensions] += 1.0
        length = math.hypot(*vector)
        return tuple(value / length for value in vector)


@dataclass
class FakeBacklog:
    """Backlog in memory: tenants and records in the order of their names."""

    noted: dict[tuple[str, str], Troubled] = field(default_factory=dict)
    _served: str = ""
    _given: dict[str, str] = field(default_factory=dict)

    def note(self, troubled: Troubled) -> None:
        there = self.of(troubled.tenant, troubled.id)
        if there is None or there.version <= troubled.version:
            self.noted[troubled.tenant, troubled.id] = troubled

    def settle(self, tenant: str, record: str, version: int) -> None:
        there = self.of(tenant, record)
        if there is not None and there.version <= version:
            del self.noted[tenant, record]

    def of(self, tenant: str, record: str) -> Troubled | None:
        return self.noted.get((tenant, record))

    def turn(self, limit: int) -> list[Troubled]:
        waiting = sorted((key, note) for key, note in self.noted.items() if note.waits)
        tenants = sorted({tenant for (tenant, _), _ in waiting})
        if not tenants:
            return []
        tenant = self._served = next((each for each in tenants if each > self._served), tenants[0])
        own = [note for (of, _), note in waiting if of == tenant]
        behind = self._given.get(tenant, "")
        rotated = [note for note in own if note.id > behind] + [note for note in own if note.id <= behind]
        given = rotated[: min(limit, 100)]
        self._given[tenant] = given[-1].id if len(given) == limit else ""
        return given

    def waiting(self, tenant: str | None, most: int) -> int:
        found = [note for note in self.noted.values() if note.waits and tenant in (None, note.tenant)]
        return min(len(found), most)


@dataclass
class FakeDeadLetters:
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(self, key: str, reason: str) -> None:
        self.sent.append((key, reason))


@dataclass
class FakePolicies:
    policies: dict[str, Policy] = field(default_factory=dict)

    def policy(self, tenant: str) -> Policy:
        return self.policies.get(tenant, Policy())

    def put_policy(self, tenant: str, policy: Policy) -> None:
        self.policies[tenant] = policy


@dataclass
class FakeReader:
    blobs: FakeBlobs

    def read(self, ref: str) -> bytes | None:
        return self.blobs.bodies.get(ref)


@dataclass
class FakeWalk:
    """FactWalk over FakeFacts; a cursor is the last fact of the page, by tenant and id. `damaged`: ids that cannot be read."""

    facts: FakeFacts
    damaged: frozenset[str] = frozenset()

    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        last = tuple(json.loads(after)) if after else ("", "")
        with self.facts.lock:
            found = {
                where: head
                for where, head in self.facts._heads.items()
                if where > last and tenant in (None, where[0]) and (tenant is None or not is_tombstone(head))
            }
            self.facts.heads_read += min(limit, len(found))
        page = sorted(found)[:limit]
        stops = [Stop(found[where], json.dumps(where)) for where in page if where[1] not in self.damaged]
        return WalkPage(stops, json.dumps(page[-1]) if len(found) > limit else None, len(page) - len(stops))


def is_tombstone(head: Head) -> bool:
    return head.fact.invalidation_reason == "erased" and head.erasure is not None


class FakeJobs:
    """JobStore with the condition of the real one."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str | None], Job] = {}
        self._asked: dict[tuple[str, str | None], str] = {}

    def job(self, name: str, tenant: str | None = None) -> Job | None:
        return self._kept.get((name, tenant))

    def keep(self, job: Job) -> bool:
        there = self._kept.get((job.name, job.tenant))
        if job.step != (0 if there is None else there.step + 1):
            return there == job
        self._kept[job.name, job.tenant] = job
        return True

    def ask(self, name: str, at: str, tenant: str | None = None) -> None:
        self._asked[name, tenant] = at

    def asked(self, name: str, tenant: str | None = None) -> str | None:
        return self._asked.get((name, tenant))


@dataclass
class FakeEntries:
    """EntrySource over FakeLog, with what an entry's text says of thread and time; a cursor is a position."""

    log: FakeLog

    def several(self, tenant: str, places: Sequence[tuple[str, int]]) -> list[StoredEntry]:
        assert len(places) <= 100
        found = (self.log.entry(tenant, run, sequence) for run, sequence in places)
        return [indexed(entry) for entry in found if entry is not None]

    def walk(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[StoredEntry]:
        start = int(after or 0)
        stored = [indexed(entry) for _, entry in sorted(self.log._entries.items())]
        page = stored[start : start + limit]
        stops = [
            Stop(entry, str(start + place + 1))
            for place, entry in enumerate(page)
            if tenant in (None, entry.tenant)
        ]
        return WalkPage(stops, str(start + limit) if start + limit < len(stored) else None)


def indexed(entry: StoredEntry) -> StoredEntry:
    fields = json.loads(entry.text)
    return replace(entry, thread=fields["scope"].get("threadId"), timestamp=fields["timestamp"])


class World:
    """Facts, their index and everything between; `deliver` is what the stream would do."""

    def __init__(self, index: SearchIndex, embedder: WordEmbedder | None = None) -> None:
        self.index = index
        self.embedder = embedder
        self.clock = FakeClock()
        self.facts = FakeFacts()
        self.blobs = FakeBlobs()
        self.policies = FakePolicies()
        self.erasing = NOTHING_ERASED
        self.memory = FactPorts(
            self.facts,
            self.blobs,
            self.clock,
            lambda: b"k" * 32,
            self.policies.policy,
            lambda: True,
            commit_with_entry=self._commit_with_entry,
            erasing=self.being_erased,
            derives=self._derives,
        )
        self.backlog = FakeBacklog()
        self.leftovers = FakeBacklog()
        self.dead_letters = FakeDeadLetters()
        self.jobs = FakeJobs()
        self.log = FakeLog()
        self.keys = FakeKeys()
        self.entries = FakeEntries(self.log)
        self.wrapper = FakeWrapper()
        self.log_clock = StandingClock()
        self.sleeps: list[float] = []
        self._operations = 0
        self.restart()

    def _derives(self, tenant: str, causes: Iterable[str]) -> bool:
        return caused_by_erased(self.log, self.being_erased(tenant), tenant, causes)

    def _commit_with_entry(self, *asked: Any) -> Head | None:
        log = LogWriter(self.log, self.vault, self.log_clock)
        return logged_changes(self.facts, log).commit(*asked)

    def restart(self) -> None:
        """New processes: what they remembered is gone."""
        spaces = None if self.embedder is None else Spaces(self.index, self.embedder)
        self.indexing = IndexingPorts(
            self.index,
            TOKENIZER,
            FakeReader(self.blobs),
            self.policies,
            self.backlog,
            self.dead_letters,
            spaces,
        )
        self.engine = SearchPorts(self.index, TOKENIZER, spaces, sleep=self.sleeps.append)
        self.vault = Vault(
            self.keys, self.wrapper, AesGcm(), self.elapsed, self.clock.now, erasing=self.being_erased
        )
        self.conversations = MessagePorts(self.indexing, self.log, self.vault)
        self.recall = RecallPorts(self.engine, self.log, self.entries, self.vault, self.being_erased)

    def elapsed(self) -> float:
        """The monotonic clock of what is remembered for a while."""
        return time.monotonic()

    def being_erased(self, tenant: str) -> Erasing:
        """`erasing` is what is in force, of every tenant."""
        return self.erasing

    def start(self) -> None:
        """Make the first index, as the first tick does."""
        index_jobs.run_jobs(self.ports, Deadline(60))
        self.restart()

    @property
    def log_writer(self) -> LogWriter:
        return LogWriter(self.log, self.vault, self.log_clock, erasing=self.being_erased)

    @property
    def ports(self) -> IndexJobPorts:
        return IndexJobPorts(
            self.indexing,
            self.facts,
            FakeWalk(self.facts),
            self.jobs,
            self.clock,
            self.conversations,
            self.entries,
            self.leftovers,
            sleep=self.sleeps.append,
        )

    @property
    def space(self) -> EmbeddingSpace | None:
        return next((info.space for info in self.index.indexes() if info.active), None)

    def operation(self) -> Operation:
        self._operations += 1
        return Operation(f"{self._operations:032d}", "body")

    def write(
        self, who: Principal, content: Any, fact_type: str = "acme.note", *, deliver: bool = True, **said: Any
    ) -> Head:
        """A new fact; `said` are fields of a write, `scope` the scope's."""
        from factbook.api.facts.models import WriteFact
        from factbook.api.models import ScopeRequest

        scope = ScopeRequest.model_validate(said.pop("scope", {})).resolve(who)
        body = WriteFact.model_validate({"type": fact_type, "content": content, **said})
        to, how = (self.memory, who, self.operation()), (body, body.sent())
        if body.key is None:
            fact = facts.write_fact(*to, fact_type, scope, *how)
        else:
            fact = keyed.write_keyed_fact(*to, keyed.Key(scope, fact_type, body.key), *how).fact
        self.clock.advance(milliseconds=10)
        return self._changed(fact.id, who, deliver)

    def supersede(
        self, head: Head, who: Principal, content: Any, *, deliver: bool = True, **said: Any
    ) -> Head:
        from factbook.api.facts.models import SupersedeFact

        body = SupersedeFact.model_validate({"content": content, **said})
        facts.supersede_fact(self.memory, who, self.operation(), head.fact.id, body, body.sent())
        self.clock.advance(milliseconds=10)
        return self._changed(head.fact.id, who, deliver)

    def verify(self, head: Head, who: Principal, *, deliver: bool = True) -> Head:
        facts.verify_fact(self.memory, who, self.operation(), head.fact.id, None)
        self.clock.advance(milliseconds=10)
        return self._changed(head.fact.id, who, deliver)

    def delete(self, head: Head, who: Principal, *, deliver: bool = True) -> Head:
        facts.delete_fact(self.memory, who, self.operation(), head.fact.id, None)
        self.clock.advance(milliseconds=10)
        return self._changed(head.fact.id, who, deliver)

    def say(
        self,
        who: Principal,
        run: str,
        *said: tuple[str, str],
        scope: dict[str, str] | None = None,
        deliver: bool = True,
    ) -> list[LogEntry]:
        """Append messages (speaker, words) to a run; the stream hears of them at once."""
        wanted = Scope.model_validate({"tenantId": who.tenant, **(scope or {})})
        requests = [
            Request("user-message", {"text": words}, speaker, scope=wanted) for speaker, words in said
        ]
        log = self.log_writer
        entries = append_entries(log, who, run, requests)
        self.log_clock.instant = later_micros("", entries[-1].timestamp)
        if deliver:
            self.hear(*entries)
        return entries

    def hear(self, *entries: LogEntry) -> set[tuple[str, str]]:
        stored = self.entries.several(
            entries[0].scope.tenant_id, [(each.run_id, each.sequence) for each in entries]
        )
        outcome = index_messages(self.conversations, stored)
        self.index.refresh()
        return outcome.again

    def settle(self) -> None:
        """What was changed can be found: a node shows a change only after a while."""
        with suppress(SearchUnavailable):
            self.index.refresh()

    def recalled(self, who: Principal, text: str, mode: str = "keyword", **asked: Any) -> list[str]:
        self.settle()
        question = retrieve.Question(mode, text, **asked)  # type: ignore[arg-type]
        found, _ = recall_messages(self.recall, who, question)
        return [each.entry.payload["text"] for each in found]

    def deliver(self, *heads: Head) -> set[tuple[str, str]]:
        outcome = indexing.index_heads(self.indexing, heads)
        self.index.refresh()
        return outcome.again

    def find(self, who: Principal, text: str = "", mode: str = "keyword", **asked: Any) -> retrieve.Found:
        self.settle()
        question = retrieve.Question(mode, text, **asked)  # type: ignore[arg-type]
        return retrieve.retrieve_facts(self.memory, self.engine, who, question)

    def words(self, who: Principal, text: str = "", mode: str = "keyword", **asked: Any) -> list[str]:
        """The words of the found facts, best first."""
        return [content_words(fact.content_text) for fact, _ in self.find(who, text, mode, **asked).facts]

    def _changed(self, fact_id: str, who: Principal, deliver: bool) -> Head:
        head = self.facts.heads(who.tenant, [fact_id])[fact_id]
        if deliver:
            self.deliver(head)
        return head


def admin(tenant: str = "t1") -> Principal:
    return principal(tenant, admin=True)
