"""Export a tenant: its records one after another, each with the position behind it, so that any page ends anywhere.

What is being erased, or was, is in no export: facts pass the one gate, and of data keys nothing leaves that is alive, unless
each is encrypted for whoever asks, which those of what is being erased are for nobody. Payloads of the log stay sealed. What is read while others write is as it was before or after their writes, record by record;
of the log, what a checkpoint of the tree's size at the start signs for is there whole.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from factbook.domain import times, wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import LogChanged, StorageUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import require_whole_tenant
from factbook.domain.log import gate as log_gate
from factbook.domain.log.sealing import KeyName
from factbook.domain.portability.lines import FORMAT, VERSION, BlobLine, Header
from factbook.domain.scope import Scope
from factbook.domain.strict_json import Json, dump_json
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.entries import RunRow, StoredEntry
from factbook.ports.log.sealing import SealedKey
from factbook.ports.portability.stores import Revision
from factbook.ports.walks import Stop
from factbook.usecases.log.entries import scope_of
from factbook.usecases.merging import NEWEST, at_once
from factbook.usecases.portability.ports import ExportPorts
from factbook.usecases.portability.records import (
    entry_line,
    head_line,
    key_line,
    leaf_line,
    note_line,
    payload_name,
    revision_line,
)

PAGE_OVERHEAD = 2_000
"""What an answer has besides its records: names, and a cursor."""
READ_AT_ONCE = 100
HEADS_AT_ONCE = 25
REVISION_BYTES = 500_000
URL_SECONDS = 3600
SHARE = 0.75
"""Of a request's time, for reading its page."""
CLOCKS_APART = 300
"""Seconds by which the clocks of two processes may differ."""

NOT_YET = (
    "Facts of a former format are still being brought up, so an export would lack something. Try again later."
)

AGAIN: Json = {}
"""In the place of a position: whoever stops behind this line begins before it again."""

ERASING = "What is being erased has changed while this was read. Ask for this page again."

Step = tuple[Json | None, Any]
"""A line, maybe none, and where its phase goes on behind it."""


@dataclass(frozen=True)
class ExportPage:
    lines: list[str]
    following: Json | None


class Export:
    """One tenant's export for one request. `public`: for whom data keys are exported too, each encrypted for it."""

    def __init__(
        self,
        ports: ExportPorts,
        principal: Principal,
        public: bytes | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        """Raises PermissionDenied."""
        require_whole_tenant(principal)
        self._ports = ports
        self._principal = principal
        self._tenant = principal.tenant
        self._public = public
        # What is asked of the stores once the page is read must come in time as well: past the deadline nothing is asked.
        self._deadline = deadline.share(SHARE)

    def page(self, position: Json | None) -> ExportPage:
        """The lines behind a position, as many as an answer holds and there is time for.

        Raises StorageUnavailable, also when an erasure came in force meanwhile: what was read before may be what it names.
        """
        erasing = self._ports.facts.erasing(self._tenant)
        page = self._page(position)
        if self._ports.facts.erasing(self._tenant) != erasing:
            raise StorageUnavailable(ERASING)
        return page

    def _page(self, position: Json | None) -> ExportPage:
        lines: list[str] = []
        room = wire.ANSWER_BYTES - PAGE_OVERHEAD
        if position is None:
            position = self._begun()
            lines.append(dump_json({"header": self._header(position)}))
        try:
            for line, following in self._steps(position):
                if line is not None:
                    text = dump_json(line)
                    room -= wire.text_bytes(text) + 2
                    if room < 0 and lines:
                        break
                    lines.append(text)
                if following is None:
                    return ExportPage(lines, None)
                if following is AGAIN:
                    continue
                position = following
                if self._deadline.passed:
                    break
        except StorageUnavailable:
            if not (lines and self._deadline.passed):
                raise
        return ExportPage(lines, position)

    def _begun(self) -> Json:
        if self._public is not None:
            return {"phase": "wrapped", "leaves": 0}
        if not self._ports.upgraded():
            raise StorageUnavailable(NOT_YET)
        return {
            "phase": "policy",
            "leaves": self._ports.tree.edge(self._tenant).size,
            "since": times.add(self._ports.clock.now(), seconds=-CLOCKS_APART),
        }

    def _header(self, position: Json) -> Json:
        return Header(
            format=FORMAT,
            version=VERSION,
            tenant=self._tenant,
            exported_at=self._ports.clock.now(),
            leaves=position["leaves"],
        ).to_json()

    def _steps(self, position: Json) -> Iterator[Step]:
        """Each line with the whole position behind it; None at the end, AGAIN where there is none."""
        phases: dict[str, tuple[Callable[[Any, int], Iterator[Step]], str | None]] = {
            "wrapped": (self._wrapped_keys, None),
            "policy": (self._policy, "keys"),
            "keys": (self._keys, "former"),
            "former": (self._former_notes, "notes"),
            "notes": (self._notes, "leaves"),
            "leaves": (self._leaves, "runs"),
            "runs": (self._runs, "unlisted"),
            "unlisted": (self._unlisted_runs, "late"),
            "late": (partial(self._keys, since=position.get("since", "")), "facts"),
            "facts": (self._facts, "tombstones"),
            "tombstones": (self._tombstones, None),
        }
        phase: str | None = position["phase"]
        at, leaves = position.get("at"), position["leaves"]
        kept = {name: value for name, value in position.items() if name not in ("phase", "at")}
        while phase is not None:
            steps, following = phases[phase]
            for line, behind in steps(at, leaves):
                yield line, AGAIN if behind is AGAIN else {**kept, "phase": phase, "at": behind}
            phase, at = following, None
            yield None, None if phase is None else {**kept, "phase": phase}

    def _policy(self, at: Any, _: int) -> Iterator[Step]:
        if at is None:
            yield {"policy": self._ports.policies.policy(self._tenant).to_json()}, True

    # -- keys

    def _keys(self, at: Any, _: int, since: str = "") -> Iterator[Step]:
        """All, and behind the entries once more those begun or destroyed since the export began: no entry that is in the
        file names a key that is not.
        """
        for key in self._ports.keys.walk(self._tenant, _key_at(self._tenant, at)):
            changed = max(key.begun_at or "", key.destroyed_at or "") >= since
            yield {"key": key_line(key)} if changed else None, _key_place(key)

    def _wrapped_keys(self, at: Any, _: int) -> Iterator[Step]:
        """Data keys that are alive, each encrypted for whoever is to have it, and bound to what it is of."""
        erasing = self._ports.facts.erasing(self._tenant)
        for key in self._ports.keys.walk(self._tenant, _key_at(self._tenant, at)):
            alive = key.wrapped is not None and erasing.of_scope(key.scope) is None
            if key.wrapped is None or not alive:
                yield None, _key_place(key)
                continue
            line = key_line(key)
            plain = self._ports.wrapper.unwrap(self._tenant, key.wrapped)
            sealed = self._ports.rewrapper.rewrap(self._public or b"", plain, bound_key(self._tenant, line))
            yield {"wrapped": line | {"data": sealed.hex()}}, _key_place(key)

    # -- the log

    def _leaves(self, at: Any, leaves: int) -> Iterator[Step]:
        start: int = at or 0
        while start < leaves:
            found = self._ports.tree.leaves(self._tenant, start, min(READ_AT_ONCE, leaves - start))
            if not found:
                return
            for leaf in found:
                yield {"leaf": leaf_line(leaf)}, leaf.index + 1
            start = found[-1].index + 1

    def _former_notes(self, at: Any, _: int) -> Iterator[Step]:
        position: str | None = at
        while True:
            page = self._ports.originals.former_notes(self._tenant, position, READ_AT_ONCE)
            for stop in page.stops:
                yield {"note": note_line(stop.record.note)}, stop.cursor
            if page.next is None:
                return
            position = page.next

    def _notes(self, at: Any, leaves: int) -> Iterator[Step]:
        below = leaves + 1 if at is None else int(at)
        while True:
            found: list[PublishedNote] = self._ports.tree.notes(self._tenant, below, READ_AT_ONCE)
            for note in found:
                yield {"note": note_line(note)}, note.size
            if len(found) < READ_AT_ONCE:
                return
            below = found[-1].size

    def _runs(self, at: Any, _: int) -> Iterator[Step]:
        """By the index of runs, a shard after the other. `at`: shard, run's place in it, sequence of the last entry."""
        shard, before, below = at or (0, NEWEST, None)
        if below is not None:  # in the middle of a run
            run = RunRow(before, Scope(tenant_id=self._tenant)).run_id
            yield from self._entries(run, below, lambda sequence: [shard, before, sequence])
        for number in range(shard, self._ports.log.run_shards(None)):
            more = True
            while more:
                rows, more = self._ports.log.runs(self._tenant, None, number, before, READ_AT_ONCE)
                for row in rows:
                    before = row.order
                    yield from self._entries(row.run_id, None, partial(_place_in_run, number, row.order))
            before = NEWEST
            yield None, [number + 1, NEWEST, None]

    def _unlisted_runs(self, at: Any, leaves: int) -> Iterator[Step]:
        """Runs of before there was an index of them, by the leaves that commit to them. `at`: leaf, run, sequence."""
        start, run, below = at or (0, None, None)
        if run is not None:
            yield from self._entries(run, below, lambda sequence: [start, run, sequence])
        while start < leaves:
            found = self._ports.tree.leaves(self._tenant, start, min(READ_AT_ONCE, leaves - start))
            if not found:
                return
            runs = list(dict.fromkeys(leaf.run_id for leaf in found))
            unlisted = set(self._ports.originals.unlisted(self._tenant, runs))
            for leaf in found:
                if leaf.run_id in unlisted and self._is_first(leaf.run_id, leaf.index):
                    yield from self._entries(
                        leaf.run_id, None, partial(_place_in_run, leaf.index + 1, leaf.run_id)
                    )
                yield None, [leaf.index + 1, None, None]
            start = found[-1].index + 1

    def _is_first(self, run_id: str, index: int) -> bool:
        first = self._ports.tree.run_leaves(self._tenant, run_id, 0, 1)
        return bool(first) and first[0].index == index

    def _entries(self, run_id: str, below: int | None, place: Callable[[int], list[Any]]) -> Iterator[Step]:
        while below is None or below > 0:
            found = self._ports.originals.entries_below(self._tenant, run_id, below, READ_AT_ONCE)
            if not found:
                return
            for entry in found:
                yield {"entry": entry_line(entry)} if self._shows(entry) else None, place(entry.sequence)
            below = found[-1].sequence

    def _shows(self, entry: StoredEntry) -> bool:
        """The gate of the log says so. One that is not as it was written goes into the file as it is, to be found there."""
        try:
            scope = scope_of(entry)
        except LogChanged:
            return True
        return log_gate.can_see(self._principal, scope, entry.run_id)

    # -- facts

    def _facts(self, at: Any, _: int) -> Iterator[Step]:
        """`at`: the walk's cursor; in the middle of a fact besides its id, the version below which it goes on, what came
        behind that, and the cursor behind the fact.
        """
        cursor, inside = at or (None, None)
        if inside is not None:
            fact_id, life, below, following_type, last_ref, cursor = inside
            head = self._ports.facts.facts.head(self._tenant, fact_id)
            if head is not None and head.life == life and self._shown(head):
                following = (following_type, last_ref)
                yield from self._revisions(head, following, cursor, self._closed(head, below))
            yield None, [cursor, None]
        while True:
            page = self._ports.walk.heads(self._tenant, cursor, HEADS_AT_ONCE)
            shown = [stop for stop in page.stops if self._shown(stop.record)]
            histories = at_once(self._history, shown)
            for stop, closed in zip(shown, histories, strict=True):
                yield from self._fact(stop, closed)
            if page.next is None:
                return
            cursor = page.next
            yield None, [cursor, None]

    def _shown(self, head: Head) -> bool:
        """Whether an administrator may be shown the fact now, whatever waits of it; the one gate says so."""
        look = self._ports.facts.look(self._tenant, "by-id", past=True)
        return gate.can_see(self._principal, head.settled(look.now).fact, look)

    def _history(self, stop: Stop[Head]) -> tuple[list[Fact], bool]:
        return self._closed(stop.record, stop.record.fact.version)

    def _closed(self, head: Head, below: int) -> tuple[list[Fact], bool]:
        return self._ports.facts.facts.revisions(head, below, REVISION_BYTES) if below > 1 else ([], False)

    def _fact(self, stop: Stop[Head], closed: tuple[list[Fact], bool]) -> Iterator[Step]:
        head = stop.record
        fact, confirmed = head.fact, head.confirmed_fact
        for ref in dict.fromkeys((fact.content_ref, None if confirmed is None else confirmed.content_ref)):
            yield from self._blob(head, ref)
        first = (fact.type, fact.content_ref)
        inside = [fact.id, head.life, fact.version, *first, stop.cursor]
        yield {"fact": head_line(head)}, [None, inside] if fact.version > 1 else [stop.cursor, None]
        yield from self._revisions(head, first, stop.cursor, closed)

    def _revisions(
        self,
        head: Head,
        following: tuple[str, str | None],
        then: str,
        closed: tuple[list[Fact], bool],
    ) -> Iterator[Step]:
        """Closed revisions, newest first; `following`: type and payload of the one that came after them."""
        revisions, more = closed
        while revisions:
            for fact in revisions:
                if fact.content_ref != following[1]:
                    yield from self._blob(head, fact.content_ref)
                retyped = fact.type != following[0]
                following = (fact.type, fact.content_ref)
                line = revision_line(Revision(fact, head.life, retyped))
                yield {"revision": line}, [None, [fact.id, head.life, fact.version, *following, then]]
            revisions, more = self._closed(head, revisions[-1].version) if more else ([], False)

    def _blob(self, head: Head, ref: str | None) -> Iterator[Step]:
        """A payload that the next line names. It has no place of its own: whoever stops behind it begins with it again."""
        if ref is None:
            return
        blobs = self._ports.facts.blobs
        there = blobs.stat(ref)
        line = BlobLine(fact_id=head.fact.id, name=payload_name(ref), life=head.life)
        if there is not None:
            size, digest = there
            said = {"size": size, "sha256": digest, "url": blobs.download_url(ref, URL_SECONDS)}
            line = line.model_copy(update=said)
        yield {"blob": line.to_json()}, AGAIN

    def _tombstones(self, at: Any, _: int) -> Iterator[Step]:
        """Of each erasure those that it made. `at`: the place in the list of erasures, the erasure, the walk's cursor."""
        place: str | None = None
        if at is not None:
            place, erasure_id, cursor = at
            yield from self._tombstones_of(str(place), erasure_id, cursor)
        while True:
            erasures, following = self._ports.erasures(self._tenant, place)
            for behind, name in erasures:
                yield from self._tombstones_of(behind, name, None)
            if following is None:
                return
            place = following

    def _tombstones_of(self, place: str, erasure_id: str, cursor: str | None) -> Iterator[Step]:
        while True:
            page = self._ports.erasing.tombstones(self._tenant, erasure_id, cursor, READ_AT_ONCE)
            for stop in page.stops:
                if stop.record.fact.invalidation_reason == "erased":
                    yield {"fact": head_line(stop.record)}, [place, erasure_id, stop.cursor]
            if page.next is None:
                return
            cursor = page.next


def bound_key(tenant: str, line: Json) -> bytes:
    """What an exported data key is bound to: the tenant, whose words it opens, and which generation it is."""
    names = (line.get(name, "") for name in ("project", "user", "participant", "thread"))
    return dump_json([tenant, *names, line["generation"]]).encode()


def _place_in_run(place: Any, run: str, sequence: int) -> list[Any]:
    return [place, run, sequence]


def _key_place(key: SealedKey) -> list[Any]:
    name = key.name
    return [name.project, name.user, name.participant, name.thread, key.generation]


def _key_at(tenant: str, at: Any) -> SealedKey | None:
    if at is None:
        return None
    *names, generation = at
    return SealedKey(tenant, KeyName(*names), generation, None)
