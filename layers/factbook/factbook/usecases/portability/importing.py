"""Import a tenant: its records are written as they were stored, where their places are free, and nothing else is changed.

A file is sent in requests of some lines each, in order. How many of its records are in is kept as a job, by the digest of
the file: whoever begins again is told where to go on, and two importers notice each other. A record that is there already
is passed over, so any request may be sent twice. The tenant's log must be empty when a file begins, for two logs cannot
become one chain.

What the target has erased does not come back: a tombstone keeps its place; revisions and payloads are written only for a
head that is there, of their life, and not erased; and what an erasure in force names is refused. What the target erased
while it had no record of it here is erased again by a replay of its ledger (`docs/portability.md`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from factbook.domain.access.principals import Principal
from factbook.domain.errors import (
    BadInput,
    ErasureInProgress,
    LogChanged,
    PermissionDenied,
    Throttled,
)
from factbook.domain.facts.reach import require_whole_tenant
from factbook.domain.policy.policies import Policy
from factbook.domain.portability.lines import FORMAT, KINDS, VERSION, BlobLine, Header, read_line
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head
from factbook.ports.flaws import NotStorable
from factbook.ports.jobs import DONE, Job
from factbook.ports.log.checkpoints import CheckpointRefused
from factbook.ports.log.entries import StoredEntry
from factbook.ports.log.sealing import SealedKey
from factbook.ports.portability.stores import Copy, Outcome, Revision
from factbook.usecases import jobs
from factbook.usecases.log.adopting import known_leaves
from factbook.usecases.merging import NEWEST, at_once
from factbook.usecases.portability.ports import ImportPorts
from factbook.usecases.portability.records import Reading, follows

JOB = "import"
AT_ONCE = 100
"""Records that are written together at most."""
UPLOAD_SECONDS = 3600
UPLOADS_AT_ONCE, UPLOAD_BYTES_AT_ONCE = 100, 256 * 1024 * 1024
"""Payloads that one answer asks for: each answer is a request more, with the same records again."""
SHARE = 0.75
"""Of a request's time, for writing its records."""
FACTS = ("fact", "revision")
WRAPPED = "wrapped"
"""The kind of a data key that comes with the key itself: of a file of its own, and decrypted by whoever imports."""
KEY_BYTES = 32

ELSEWHERE = (
    "The tenant's log is not empty, and two logs cannot become one. Import into a tenant that has none, "
    "or go on with the file that was begun here."
)
OTHER_LEAF = "This leaf and those behind it have no place in the tenant's tree: its log was written to meanwhile, or records were left out."


@dataclass(frozen=True)
class Numbered:
    """A record of a file: its place among the records, its kind and its JSON."""

    at: int
    kind: str
    value: Any


@dataclass(frozen=True)
class Upload:
    """A payload that is to be uploaded before its line is sent again."""

    at: int
    url: str
    headers: Mapping[str, str]


@dataclass
class Imported:
    """`at`: up to where the file's records are in. `counts`: kind and outcome → how many, of this request."""

    at: int
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    uploads: list[Upload] = field(default_factory=list)
    done: bool = False


def read_header(value: Any) -> Header:
    """Raises BadInput for another format, or a version that this one does not know."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise BadInput(
            "The first line is no header of an export. Send a file of an export from its first line on."
        )
    if value.get("version") != VERSION:
        raise BadInput(
            f"The export has version {str(value.get('version'))[:20]} of the format, and this service knows version {VERSION}. "
            "Import it with the version of Factbook that made it, or a later one."
        )
    return read_line(Header, value)


class Import:
    """One file's import into the principal's tenant, for one request. `dry_run`: nothing is written, and all is said."""

    def __init__(
        self,
        ports: ImportPorts,
        principal: Principal,
        header: Header,
        file_id: str,
        deadline: Deadline = NEVER,
        *,
        dry_run: bool = False,
    ) -> None:
        """Raises PermissionDenied, for another tenant's export too."""
        require_whole_tenant(principal)
        if header.tenant != principal.tenant:
            raise PermissionDenied(
                "The export is of a tenant with another id, which every entry of its log names. Import it there."
            )
        self._ports = ports
        self._tenant = principal.tenant
        self._file = file_id
        # How far it came is kept after the last record, and past the deadline nothing is asked of the stores.
        self._deadline = deadline.share(SHARE)
        self._dry_run = dry_run
        self._closed = self._open = False
        self._reading = Reading(principal.tenant, partial(ports.facts.blobs.new_ref, principal.tenant))

    def begin(self) -> Imported:
        """How far the file is in; it begins again when it was in wholly. Raises LogChanged when another log is there."""
        job = self._ports.jobs.job(JOB, self._tenant)
        if job is None or job.about.get("file") != self._file:
            if not self._log_is_empty():
                raise LogChanged(ELSEWHERE)
            if self._dry_run:
                return Imported(0)
            engine = jobs.JobPorts(self._ports.jobs, self._ports.clock)
            job = jobs.start(
                engine, Job(JOB, JOB, "records", "", "", self._tenant, cursor="0", about={"file": self._file})
            )
            if job is None:
                raise Throttled
        return Imported(0 if job.phase == DONE or self._dry_run else int(job.cursor or 0))

    def _log_is_empty(self) -> bool:
        log = self._ports.log
        shards = range(log.run_shards(None))
        return self._ports.tree.edge(self._tenant).size == 0 and not any(
            log.runs(self._tenant, None, shard, NEWEST, 1)[0] for shard in shards
        )

    def records(self, records: Sequence[Numbered], at: int, *, last: bool) -> Imported:
        """Write records of the file from a place on, as many as there is time for; `last`: there are none behind them.

        Raises BadInput for one that is none, ErasureInProgress, LogChanged, Throttled while another request is at the same file,
        and what the stores raise: then all before the ones that were at work are in.
        """
        job = self._ports.jobs.job(JOB, self._tenant)
        begun = job is not None and job.about.get("file") == self._file
        self._closed = begun and job is not None and job.phase == DONE
        self._open = begun and not self._closed
        only_keys = bool(records) and all(record.kind == WRAPPED for record in records)
        if not begun and not self._dry_run and not only_keys:
            raise BadInput(
                "This file's import was not begun, or another file's was since. Begin with its header alone."
            )
        if begun and job is not None and not only_keys and at > int(job.cursor or 0):
            raise BadInput(f"Records before these are missing. Go on with record {job.cursor}.")
        done = Imported(at)
        finished = True
        for group in _groups(records):
            if self._deadline.passed:
                finished = False
                break
            written = self._write(group, done)
            done.at = group[0].at + written
            if written < len(group):
                finished = False
                self._ask_for_more(records[done.at - at + 1 :], done)
                break
        done.done = last and finished and not only_keys
        if job is not None and begun and not self._looks and not only_keys:
            self._keep(job, done)
        return done

    def _ask_for_more(self, following: Sequence[Numbered], done: Imported) -> None:
        """Payloads that later records will lack as well, so that they come in one go; nothing is said of these yet."""
        weight = 0
        for record in following:
            if len(done.uploads) == UPLOADS_AT_ONCE or weight > UPLOAD_BYTES_AT_ONCE or self._deadline.passed:
                return
            if record.kind == "blob":
                line: BlobLine = _at(record, self._reading.blob)
                weight += line.size or 0
                self._blob(record, line, done)

    def _keep(self, job: Job, done: Imported) -> None:
        if done.done:
            self._ports.reindex()
        furthest = max(done.at, int(job.cursor or 0))
        counted = {f"{kind}-{outcome}": count for (kind, outcome), count in done.counts.items()}
        following = replace(
            job.at(str(furthest), **counted), step=job.step + 1, updated_at=self._ports.clock.now()
        )
        if done.done:
            following = replace(following, phase=DONE)
        if not self._ports.jobs.keep(following):
            raise Throttled

    def _write(self, group: Sequence[Numbered], done: Imported) -> int:
        """How many records of a group are in; fewer than all of them where a payload is to be uploaded first."""
        kind = group[0].kind
        if kind == "blob":
            return self._blobs(group, done)
        writers: dict[str, Callable[[Sequence[Numbered]], list[Outcome]]] = {
            "policy": self._policies,
            "key": self._keys,
            "leaf": self._leaves,
            "note": lambda notes: self._copies(notes, self._read(notes, self._reading.note)),
            "entry": self._log_entries,
            "fact": self._facts,
            WRAPPED: self._wrapped,
        }
        outcomes = writers[_group_of(group[0])](group)
        done.counts.update(
            (each.kind, self._told(each, outcome)) for each, outcome in zip(group, outcomes, strict=True)
        )
        return len(group)

    @property
    def _looks(self) -> bool:
        """Whether nothing is written: in a dry run, and once the file was in, for an open door to a log is one to forge it."""
        return self._dry_run or self._closed

    def _told(self, record: Numbered, outcome: str) -> str:
        closed = self._closed and not self._dry_run and record.kind != WRAPPED
        return "missing" if closed and outcome == "written" else outcome

    def _read(self, group: Sequence[Numbered], read: Callable[[Any], Any]) -> list[Any]:
        return [_at(each, read) for each in group]

    def _copies(self, group: Sequence[Numbered], copies: Sequence[Copy]) -> list[Outcome]:
        try:
            store = self._ports.copies
            return (store.look if self._looks else store.put)(copies)
        except NotStorable as error:
            raise BadInput(
                f"Record {group[0].at} or one behind it is larger than the store takes."
            ) from error

    def _policies(self, group: Sequence[Numbered]) -> list[Outcome]:
        """A policy is set where there is none: one that was set here stays."""
        outcomes: list[Outcome] = []
        for each in group:
            wanted = _at(each, lambda value: read_line(Policy, value))
            there = self._ports.policies.policy(self._tenant)
            if there == wanted:
                outcomes.append("present")
                continue
            free = there == Policy()
            if free and not self._looks:
                self._ports.policies.put_policy(self._tenant, wanted)
            outcomes.append("written" if free else "other")
        return outcomes

    # -- keys

    def _keys(self, group: Sequence[Numbered]) -> list[Outcome]:
        return list(at_once(self._key, self._read(group, self._reading.key)))

    def _key(self, key: SealedKey) -> Outcome:
        """A key that is destroyed there is destroyed here; else its place is kept, so that no other takes its number."""
        keys = self._ports.keys
        there = keys.generation(self._tenant, key.name, key.generation)
        if there is None and not self._looks:
            there = keys.create(key)
        if there is None or there == key:
            return "written" if there is None else "present"
        if key.destroyed_at is not None and there.destroyed_at is None:
            if not self._looks:
                keys.destroy(there, key.destroyed_at)
            return "written"
        return "present" if there.begun_at == key.begun_at else "other"

    def _wrapped(self, group: Sequence[Numbered]) -> list[Outcome]:
        return [self._supplied(each) for each in group]

    def _supplied(self, record: Numbered) -> Outcome:
        """A data key itself, wrapped by this service's own key. One that is destroyed here stays so."""
        value = dict(record.value) if isinstance(record.value, dict) else {}
        data = value.pop("data", None)
        plain = _plain(data)
        if plain is None:
            raise BadInput(f"Record {record.at}: a data key has 32 bytes.")
        key = _at(replace(record, value=value), self._reading.key)
        if self._ports.facts.erasing(self._tenant).of_scope(key.scope) is not None:
            raise ErasureInProgress
        there = self._ports.keys.generation(self._tenant, key.name, key.generation)
        if there is not None and (there.wrapped is not None or there.destroyed_at is not None):
            return "present" if there.wrapped is not None else "other"
        if there is None and not (self._open or self._dry_run):
            return "other"  # later words are sealed under no key that came from outside
        if self._dry_run:
            return "written"
        wrapped = self._ports.wrapper.wrap(self._tenant, plain)
        lost = self._ports.keys.supply(replace(key, wrapped=wrapped))
        return "written" if lost is None else "other"

    # -- the log

    def _log_entries(self, group: Sequence[Numbered]) -> list[Outcome]:
        """An entry is written when it opens a run that is empty, or the one behind it, which is there, was chained to it: so
        nothing comes behind what is there, and a run is a chain however far it is.
        """
        entries: list[StoredEntry] = self._read(group, self._reading.entry)
        outcomes = self._ports.copies.look(entries)
        behind = {(entry.run_id, entry.sequence): entry for entry in entries}
        for each, entry, outcome in zip(group, entries, outcomes, strict=True):
            if outcome == "other":
                raise LogChanged(f"Record {each.at}: another entry stands at its place. {ELSEWHERE}")
            if outcome == "written" and not self._looks:
                self._require_chained(each, entry, behind.get((entry.run_id, entry.sequence + 1)))
        free = [entry for entry, outcome in zip(entries, outcomes, strict=True) if outcome == "written"]
        written = iter(self._copies(group, free) if free else ())
        return [next(written) if outcome == "written" else outcome for outcome in outcomes]

    def _require_chained(self, record: Numbered, entry: StoredEntry, behind: StoredEntry | None) -> None:
        log = self._ports.log
        if behind is None:
            behind = log.entry(self._tenant, entry.run_id, entry.sequence + 1)
        if behind is None:
            if log.newest(self._tenant, entry.run_id, 1):
                raise LogChanged(
                    f"Record {record.at}: the run has entries already that are not of this file."
                )
        elif not follows(behind, entry):
            raise LogChanged(f"Record {record.at}: the entry behind it is not chained to it.")

    def _leaves(self, group: Sequence[Numbered]) -> list[Outcome]:
        leaves = self._read(group, self._reading.leaf)
        try:
            if self._looks:
                new = len(leaves) - known_leaves(self._ports.tree, self._tenant, leaves)
            else:
                new = self._ports.adoption.adopt(self._tenant, leaves)
        except CheckpointRefused as error:
            raise LogChanged(f"Record {group[0].at}: {OTHER_LEAF}") from error
        outcomes: list[Outcome] = ["written"] * len(leaves)
        outcomes[: len(leaves) - new] = ["present"] * (len(leaves) - new)
        return outcomes

    # -- facts

    def _facts(self, group: Sequence[Numbered]) -> list[Outcome]:
        """Heads before revisions; a revision is written for a head that is there, of its life."""
        read = {"fact": self._reading.head, "revision": self._reading.revision}
        records: list[Head | Revision] = [_at(each, read[each.kind]) for each in group]
        heads = [record for record in records if isinstance(record, Head)]
        for head in heads:
            self._ports.facts.require_spared(head.fact)
        outcomes = dict(zip(map(id, heads), self._copies(group, heads), strict=True))
        theirs = self._of_heads([record for record in records if isinstance(record, Revision)])
        outcomes |= dict(zip(map(id, theirs), self._copies(group, theirs), strict=True))
        found = [outcomes.get(id(record), "other") for record in records]
        if not self._looks:
            landed = zip(records, found, strict=True)
            refs = {ref for record, outcome in landed if outcome != "other" for ref in _named(record)}
            list(at_once(self._ports.facts.blobs.claim, refs))
        return found

    def _of_heads(self, revisions: Sequence[Revision]) -> list[Revision]:
        """Those whose head is there, of their life and not erased. Raises ErasureInProgress."""
        ids = sorted({revision.fact.id for revision in revisions})
        there = self._ports.facts.facts.heads(self._tenant, ids) if ids else {}
        for head in there.values():
            self._ports.facts.require_spared(head.fact)
        return [each for each in revisions if self._takes(there.get(each.fact.id), each.life)]

    def _takes(self, head: Head | None, life: int | None) -> bool:
        """Whether what belongs to a life of a fact may be written beside what is there of the fact."""
        if head is None:
            return self._dry_run
        return head.life == life and head.fact.invalidation_reason != "erased"

    def _blobs(self, group: Sequence[Numbered], done: Imported) -> int:
        for number, each in enumerate(group):
            line: BlobLine = _at(each, self._reading.blob)
            outcome = self._blob(each, line, done)
            if outcome is None:
                return number
            done.counts["blob", self._told(each, outcome)] += 1
        return len(group)

    def _blob(self, record: Numbered, line: BlobLine, done: Imported) -> str | None:
        """What is to be said of a payload; None: it is to be uploaded first."""
        if line.size is None or line.sha256 is None:
            return "gone"
        head = self._ports.facts.facts.head(self._tenant, line.fact_id)
        if head is not None:
            self._ports.facts.require_spared(head.fact)
            if not self._takes(head, line.life):
                return "other"
        blobs = self._ports.facts.blobs
        ref = blobs.new_ref(self._tenant, line.fact_id, line.name)
        there = blobs.stat(ref)
        if there is not None:
            return "present" if there == (line.size, line.sha256) else "other"
        if self._looks:
            return "written"
        url = blobs.upload_url(ref, line.size, line.sha256, UPLOAD_SECONDS)
        done.uploads.append(Upload(record.at, url, blobs.upload_headers(line.size, line.sha256)))
        return None


_MOST = {"leaf": 1_000, "blob": 1}


def _groups(records: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
    """Records that are written together: of one kind, or of facts, and not too many."""
    for kind, several in groupby(records, key=_group_of):
        together = list(several)
        most = _MOST.get(kind, AT_ONCE)
        for start in range(0, len(together), most):
            yield together[start : start + most]


def _group_of(record: Numbered) -> str:
    if record.kind not in KINDS and record.kind != WRAPPED:
        raise BadInput(f"Record {record.at} is of a kind that this version does not know.")
    return "fact" if record.kind in FACTS else record.kind


def _at(record: Numbered, read: Callable[[Any], Any]) -> Any:
    """Raises BadInput that says which record it is."""
    try:
        return read(record.value)
    except BadInput as error:
        raise BadInput(f"Record {record.at} ({record.kind}): {error.message}") from error


def _named(record: Head | Revision) -> list[str]:
    """References of the payloads that a record names."""
    confirmed = record.confirmed_fact if isinstance(record, Head) else None
    refs = (record.fact.content_ref, None if confirmed is None else confirmed.content_ref)
    return [ref for ref in refs if ref is not None]


def _plain(data: Any) -> bytes | None:
    try:
        plain = bytes.fromhex(data)
    except (TypeError, ValueError):
        return None
    return plain if len(plain) == KEY_BYTES else None
