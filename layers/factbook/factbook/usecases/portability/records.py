"""Records as lines of an export, and lines as the records they were: nothing is lost between the two.

A payload's reference names the bucket of its deployment, so a line has the payload's name alone, and whoever reads it says
what reference that is here. Everything that only finds a record (keys of indexes, time to live) is left out: the store
makes it anew.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from factbook.canonical import log_canonical
from factbook.domain.errors import BadInput, LogChanged
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.log.chain import FORMAT, nonce_for, text_hash
from factbook.domain.log.runs import Leaf
from factbook.domain.log.sealing import KeyName
from factbook.domain.portability.lines import (
    FACT_ID,
    PAYLOAD_NAME,
    BesideLine,
    BlobLine,
    EntryLine,
    EntryText,
    ErasedLine,
    FactFields,
    FactLine,
    KeyLine,
    LeafLine,
    NoteLine,
    RefreshLine,
    RevisionLine,
    read_line,
)
from factbook.domain.strict_json import Json, parse_json
from factbook.ports.facts.store import Erased, Head, Mark
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.entries import StoredEntry
from factbook.ports.log.sealing import SealedKey
from factbook.ports.portability.stores import FormerNote, Revision
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.chaining import stored_entry
from factbook.usecases.log.entries import log_id_of
from factbook.verify.chain import Chain
from factbook.verify.findings import Finding
from factbook.verify.notes import Checkpoint, open_checkpoint, read_key

RefOf = Callable[[str, str], str]
"""The reference of a payload here, from its fact's id and its name."""

_BESIDE = {"stale", "stale_reason", "revision_id", "content_ref"}


def fact_json(fact: Fact) -> Json:
    """One revision with all that is stored of it."""
    beside = {
        "contentText": fact.content_text,
        "keptFrom": fact.kept_from,
        "reviewWhy": None if fact.review_why is None else list(fact.review_why),
        "decidedBecause": fact.decided_because,
        "payload": None if fact.content_ref is None else payload_name(fact.content_ref),
    }
    said: Json = fact.model_dump(by_alias=True, exclude_none=True, exclude=_BESIDE)
    return said | {name: value for name, value in beside.items() if value is not None}


def payload_name(ref: str) -> str:
    return ref.rsplit("/", 1)[1]


def head_line(head: Head) -> Json:
    beside = head.confirmed
    return FactLine(
        fact=fact_json(head.fact),
        edition=head.edition,
        marks=[f"{mark.key}{mark.body}{mark.version}" for mark in head.marks],
        life=head.life,
        subjects=None if head.subjects is None else list(head.subjects),
        confirmed=None
        if beside is None
        else BesideLine(
            fact=fact_json(beside.fact),
            edition=beside.edition,
            life=beside.life,
            refresh=_refresh_line(beside.refresh),
        ),
        refresh=_refresh_line(head.refresh),
        index_edition=head.index_edition,
        erasure=None if head.erasure is None else ErasedLine(by=head.erasure.by, blobs=head.erasure.blobs),
    ).to_json()


def revision_line(revision: Revision) -> Json:
    return RevisionLine(fact=fact_json(revision.fact), life=revision.life, retyped=revision.retyped).to_json()


def entry_line(entry: StoredEntry) -> Json:
    return EntryLine(text=entry.text, hash=entry.entry_hash, format=entry.format, cause=entry.cause).to_json()


def key_line(key: SealedKey) -> Json:
    name = key.name
    return KeyLine(
        project=name.project,
        user=name.user,
        participant=name.participant,
        thread=name.thread,
        generation=key.generation,
        begun_at=key.begun_at,
        destroyed_at=key.destroyed_at,
    ).to_json()


def leaf_line(leaf: Leaf) -> Json:
    return LeafLine(
        index=leaf.index, run=leaf.run_id, sequence=leaf.sequence, head=leaf.head, salt=leaf.salt
    ).to_json()


def note_line(note: PublishedNote) -> Json:
    return NoteLine(size=note.size, note=note.note, vkey=note.vkey, created_at=note.created_at).to_json()


class Reading:
    """Lines of one tenant's export as records of a service. Every method raises BadInput that says what is wrong."""

    def __init__(self, tenant: str, ref_of: RefOf) -> None:
        self._tenant = tenant
        self._ref_of = ref_of

    def head(self, value: Any) -> Head:
        line = read_line(FactLine, value)
        fact, beside = self._fact(line.fact), line.confirmed
        confirmed = None
        if beside is not None:
            text = self._fact(beside.fact)
            if text.id != fact.id:
                raise BadInput("The confirmed text is of another fact.")
            confirmed = Head(
                text, beside.edition, life=beside.life, beside=True, refresh=_refresh(beside.refresh)
            )
        return Head(
            fact,
            line.edition,
            tuple(Mark(text[:12], text[12:24], int(text[24:])) for text in line.marks),
            line.life,
            None if line.subjects is None else tuple(line.subjects),
            confirmed,
            refresh=_refresh(line.refresh),
            index_edition=line.index_edition,
            erasure=None if line.erasure is None else Erased(line.erasure.by, line.erasure.blobs),
        )

    def revision(self, value: Any) -> Revision:
        line = read_line(RevisionLine, value)
        fact = self._fact(line.fact)
        if fact.current:
            raise BadInput("A closed revision does not say when it ended.")
        return Revision(fact, line.life, line.retyped)

    def entry(self, value: Any) -> StoredEntry:
        line = read_line(EntryLine, value)
        if line.format != FORMAT:
            raise BadInput(
                f"The entry has the format {line.format[:40]!r}, which this version does not know."
            )
        if text_hash(line.text) != line.hash:
            raise BadInput("The entry's text does not hash to its hash: one of them was changed.")
        try:
            said = parse_json(line.text)
            canonical = log_canonical(said) == line.text
        except BadInput as error:
            raise BadInput("The entry's text is none that is ever chained.") from error
        if not canonical:
            raise BadInput("The entry's text is not canonical.")
        if read_line(EntryText, said).scope.tenant_id != self._tenant:
            raise BadInput("The entry is of another tenant.")
        entry = stored_entry(self._tenant, line.text, line.hash, line.cause)
        try:
            log_id = log_id_of(entry)
        except LogChanged as error:
            raise BadInput("The entry's id names another place than the one it stands in.") from error
        if log_id.nonce != nonce_for(log_id.seed, line.cause):
            raise BadInput("The entry's id does not belong to its cause.")
        return entry

    def key(self, value: Any) -> SealedKey:
        line = read_line(KeyLine, value)
        name = KeyName(line.project, line.user, line.participant, line.thread)
        return SealedKey(self._tenant, name, line.generation, None, line.destroyed_at, line.begun_at)

    def leaf(self, value: Any) -> Leaf:
        line = read_line(LeafLine, value)
        return Leaf(line.index, line.run, line.sequence, line.head, line.salt)

    def note(self, value: Any) -> FormerNote:
        line = read_line(NoteLine, value)
        former = FormerNote(self._tenant, PublishedNote(line.size, line.note, line.vkey, line.created_at))
        if signed_by(former).size != line.size:
            raise BadInput("The note is of another size than it says.")
        return former

    def blob(self, value: Any) -> BlobLine:
        line = read_line(BlobLine, value)
        self._ref(line.fact_id, line.name)
        if (line.size is None) != (line.sha256 is None):
            raise BadInput("A payload has a size and a digest, or neither.")
        return line

    def _fact(self, value: Json) -> Fact:
        fields = dict(value)
        name, why = fields.pop("payload", None), fields.pop("reviewWhy", None)
        fact_id = fields.get("id")
        if not isinstance(fact_id, str) or not FACT_ID.fullmatch(fact_id):
            raise BadInput("The id of a fact has characters that none has.")
        whole = fields | {
            "revisionId": f"{fact_id}:{fields.get('version')}",
            "reviewWhy": tuple(why) if isinstance(why, list) else why,
            "contentRef": None if name is None else self._ref(fact_id, name),
        }
        read_line(FactFields, whole)
        fact = read_line(Fact, whole)
        _require_content(fact)
        if fact.scope.tenant_id != self._tenant:
            raise BadInput("The fact is of another tenant.")
        return fact

    def _ref(self, fact_id: str, name: Any) -> str:
        if not isinstance(name, str) or not PAYLOAD_NAME.fullmatch(name) or not FACT_ID.fullmatch(fact_id):
            raise BadInput("The name of a payload has characters that none has.")
        return self._ref_of(fact_id, name)


def _require_content(fact: Fact) -> None:
    """Raises BadInput for content that a service would not have stored. Of a summary the hash is that of what lies elsewhere."""
    if fact.content_text is None:
        return
    try:
        content = Content(parse_json(fact.content_text))
        content.check()
    except BadInput as error:
        raise BadInput("contentText: it is no JSON that a service stores.") from error
    if fact.content_ref is not None:
        return
    if fact.content_hash not in (None, content.value_hash):
        raise BadInput("contentHash: it is not that of the content.")
    if fact.size not in (None, len(fact.content_text.encode())):
        raise BadInput("size: it is not that of the content.")


def follows(later: StoredEntry, entry: StoredEntry) -> bool:
    """Whether the later entry was chained to this one, as a verifier judges both: by hash, place, scope and time."""
    chain = Chain.before(entry.text.encode())
    try:
        for each in (entry, later):
            if chain is not None:
                chain.follow(each.text.encode(), each.entry_hash.removeprefix("sha256:").encode(), each.cause)
    except Finding:
        return False
    return chain is not None


def signed_by(former: FormerNote) -> Checkpoint:
    """What a note says, which the key beside it signed. Raises BadInput."""
    try:
        return open_checkpoint(former.note.note, read_key(former.note.vkey), former.tenant)
    except Finding as error:
        raise BadInput(f"The note does not hold: {error.why}.") from error


def _refresh_line(state: RefreshState | None) -> RefreshLine | None:
    return None if state is None else RefreshLine(**asdict(state))


def _refresh(line: RefreshLine | None) -> RefreshState | None:
    return None if line is None else RefreshState(**line.model_dump())
