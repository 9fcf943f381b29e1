"""What memories ought to be: each rule of docs/memories.md in a few lines, without a store, an index or an engine.

`may_see` is who sees a text, `Slot` what became of one fact, `Model` what each write is answered and leaves behind. Times are
the service's own, so that windows end at the same instant in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from factbook.domain import times
from factbook.domain.access.principals import Principal

AGENT = "copilot"
MOST_OF_A_PERSON, MOST_OF_THE_ACCOUNT = 2, 2
WINDOW = 30
ALIKE = {"reporting-region": ["region-reports"], "region-reports": ["reporting-region"]}
"""Keys that have the same words in another order or form."""

Way = Literal["by-id", "found", "recalled"]


@dataclass(frozen=True)
class Text:
    """One revision. `days`: how long it is kept from `kept_from`; None: for good. `ever_waited`: since it was written."""

    version: int
    words: str
    type: str
    start: str
    by: str
    kept_from: str
    trust: str = "asserted"
    reach: str | None = None
    days: int | None = None
    waits: bool = False
    ever_waited: bool = False
    confirmed_by: str | None = None
    held: bool = False
    expires: str | None = None
    ended: str | None = None
    ended_as: str | None = None

    def expiring(self) -> "Text":
        limited = self.days is not None and not self.held
        return replace(self, expires=times.add(self.kept_from, days=self.days or 0) if limited else None)

    def runs_out(self, now: str) -> bool:
        return self.expires is not None and self.expires <= now


@dataclass
class Slot:
    """What one key of one person holds, or one fact without: `texts` are closed revisions, oldest first.

    `owner`: a user, or None for a participant of the project p (`is_memory`), or for the project's own fact.
    """

    name: str
    key: str | None
    owner: str | None = None
    is_memory: bool = True
    fact_id: str = ""
    created: str = ""
    head: Text | None = None
    kept: Text | None = None
    texts: list[Text] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, str]:
        if self.owner is not None:
            return {"userId": self.owner}
        return {"projectId": "p"} | ({"participantId": "x"} if self.is_memory else {})

    @property
    def person(self) -> str:
        return f"user:{self.owner}" if self.owner is not None else "participant:p/x"

    def settled(self, now: str) -> "Slot":
        """Past its window a proposal gives way to the text that was confirmed, at the instant at which the window ended."""
        head, kept = self.head, self.kept
        if head is None or kept is None or head.expires is None or head.expires > now:
            return self
        at = times.later_than(head.expires, head.start)
        closed = replace(head, ended=at, ended_as="expired")
        following = replace(kept, version=head.version + 1, start=at)
        return replace(self, head=following, kept=None, texts=[*self.texts, closed])

    def alive(self, now: str) -> bool:
        """Whether anything of it answers, if only its past."""
        return self.head is not None and not self.head.runs_out(now)

    def current(self, now: str) -> bool:
        return self.alive(now) and self.head is not None and self.head.ended is None

    def stands(self, now: str) -> Text | None:
        """The confirmed text beside a proposal, unless it has run out itself."""
        return None if self.kept is None or self.kept.runs_out(now) else self.kept

    @property
    def every_text(self) -> list[Text]:
        return [*self.texts, *([self.head] if self.head else [])]


# -- who sees what


def acts_for(who: Principal, slot: Slot) -> bool:
    return who.user_id == slot.owner if slot.owner is not None else who.admin or "p" in who.writes_projects


def is_bound(who: Principal) -> bool:
    return who.agent_id is not None or who.actor.kind == "agent"


def decides(who: Principal) -> bool:
    return who.admin and who.actor.kind != "agent"


def may_see(
    who: Principal, slot: Slot, text: Text, way: Way, agent: str | None = None, *, named: bool = False
) -> bool:
    """Whether a text of a living fact is shown, `recalled` for `agent` or for any; `named`: in its owner's conversation."""
    readable = who.admin or acts_for(who, slot) or (not slot.is_memory and "p" in who.reads_projects)
    if not readable or (slot.is_memory and who.actor.kind == "agent" and who.agent_id != AGENT):
        return False
    if text.waits:
        return way == "by-id" and who.admin
    if way == "recalled" and slot.is_memory:
        uses = agent in (None, AGENT) and (who.agent_id == AGENT or not is_bound(who))
        account = who.admin and text.reach == "account"
        if text.reach == "account-proposed" and who.admin and slot.owner is None and not named:
            return False
        return uses and text.reach != "account-rejected" and (acts_for(who, slot) or account)
    return who.admin or text.reach != "account-rejected"


def shown(
    who: Principal, slot: Slot, way: Way, now: str, agent: str | None = None, *, named: bool = False
) -> Text | None:
    """The text that a fact is shown as now: its head, else what was confirmed beside it."""
    slot = slot.settled(now)
    if slot.head is None or not slot.current(now):
        return None
    if may_see(who, slot, slot.head, way, agent, named=named):
        return slot.head
    kept = slot.stands(now)
    return kept if kept is not None and may_see(who, slot, kept, way, agent) else None


def history(who: Principal, slot: Slot, way: Way, now: str) -> list[Text]:
    """The revisions that are shown, newest first: none while the newest one is not, even of a deleted fact."""
    slot = slot.settled(now)
    if slot.head is None or not slot.alive(now) or not may_see(who, slot, slot.head, way):
        return []
    return [text for text in reversed(slot.every_text) if may_see(who, slot, text, way)]


# -- what a write does


@dataclass(frozen=True)
class Said:
    """What a write is answered: a status, the code of its refusal or the text."""

    status: int
    code: str = ""
    text: Text | None = None


def refused(status: int, code: str) -> Said:
    return Said(status, code)


NOT_FOUND = refused(404, "fact-not-found")
DENIED = refused(403, "permission-denied")
HELD = refused(409, "legal-hold")
CHANGED = refused(409, "fact-changed")
FULL = refused(409, "memory-full")


class Model:
    def __init__(self, slots: list[Slot]) -> None:
        self.slots = {slot.name: slot for slot in slots}

    def settle(self, now: str) -> None:
        self.slots = {name: slot.settled(now) for name, slot in self.slots.items()}

    def living(self, now: str) -> Iterator[Slot]:
        """What takes a place: nothing that was rejected, deleted or has run out."""
        for slot in self.slots.values():
            now_there = slot.settled(now)
            head = now_there.head if now_there.current(now) else None
            if slot.is_memory and head is not None and head.reach != "account-rejected":
                yield now_there

    def has_room(self, slot: Slot, now: str) -> bool:
        return sum(other.person == slot.person for other in self.living(now)) < MOST_OF_A_PERSON

    def alike(self, slot: Slot, now: str) -> list[str]:
        there = [other.key for other in self.living(now) if other.person == slot.person]
        return [key for key in ALIKE.get(slot.key or "", []) if key in there]

    def confirmed_for_account(self, but: Slot, now: str) -> int:
        found = 0
        for slot in self.living(now):
            texts = [text for text in (slot.head, slot.stands(now)) if text is not None]
            found += slot.name != but.name and any(text.reach == "account" for text in texts)
        return found

    def remember(
        self,
        who: Principal,
        name: str,
        words: str,
        kind: str,
        about: str | None,
        days: int,
        now: str,
        planted: bool,
    ) -> Said:
        slot = self.slots[name]
        if (is_bound(who) and who.agent_id != AGENT) or not acts_for(who, slot):
            return DENIED
        slot = self.slots[name] = slot.settled(now)
        waits = planted and not decides(who)
        said = Text(0, words, kind, now, f"agent:{AGENT}", now, "unverified", "user", days, waits, waits)
        if not slot.current(now) or slot.head is None:
            if not self.has_room(slot, now):
                return FULL
            reach = "account-proposed" if about == "account" else "user"
            return self._begun(slot, replace(said, reach=reach), now)
        return self._again(who, slot, said, about, now)

    def _again(self, who: Principal, slot: Slot, said: Text, about: str | None, now: str) -> Said:
        """What is remembered over a text that is current."""
        head = slot.head
        assert head is not None
        personal = head.reach in (None, "user")
        about = about or ("user" if personal else "account")
        if head.reach == "account-rejected" and not self.has_room(slot, now):
            return FULL
        if about == "user" and (head.reach == "account" or slot.stands(now) is not None):
            return DENIED
        if head.held:
            return HELD
        same = (head.words, head.type) == (said.words, said.type) and (about == "user") is personal
        if same and head.reach != "account-rejected":
            answered_for = head.trust == "verified" or (head.confirmed_by and head.days is None)
            if head.reach != "account" and not answered_for:
                slot.head = replace(head, days=said.days, kept_from=now).expiring()
            return Said(200, text=slot.head)
        if about == "user":
            return self._advanced(slot, said, now)
        if head.reach == "account" and decides(who):
            said = replace(said, reach="account", days=None, confirmed_by=head.confirmed_by)
            return self._advanced(slot, said, now)
        return self._advanced(slot, replace(said, reach="account-proposed"), now)

    def write(self, who: Principal, name: str, words: str, now: str, planted: bool) -> Said:
        """POST /facts: a memory without a key of the caller's agent, or the project's keyed fact with `onExisting`."""
        slot = self.slots[name]
        judged = who.actor.kind == "agent" and not who.admin
        by, trust = who.actor.text, "unverified" if who.actor.kind == "agent" else "asserted"
        waits = planted and judged
        said = Text(1, words, "memory", now, by, now, trust, waits=waits, ever_waited=waits)
        if slot.is_memory and (who.agent_id != AGENT or not acts_for(who, slot)):
            return DENIED
        if not slot.is_memory and not (who.admin or "p" in who.writes_projects):
            return DENIED
        if slot.is_memory:
            return self._begun(replace(slot, head=None), said, now) if self.has_room(slot, now) else FULL
        if slot.head is None or not slot.current(now):
            return self._begun(slot, said, now)
        if not may_see(who, slot, slot.head, "by-id") and not self._wrote(who, slot, slot.head):
            return NOT_FOUND
        if slot.head.held:
            return HELD
        if slot.head.words == words:
            return Said(200, text=slot.head)
        return self._superseded(who, slot, said, now)

    def supersede(
        self,
        who: Principal,
        name: str,
        words: str | None,
        keep_days: int | None,
        expected: int | None,
        now: str,
        planted: bool,
    ) -> Said:
        slot = self.slots[name] = self.slots[name].settled(now)
        refusal = self._not_open(who, slot, "by-id" if words is None else "write", expected, now)
        if refusal is not None or slot.head is None:
            return refusal or NOT_FOUND
        if words is None:
            following = replace(slot.head, ended=None)
        else:
            waits = planted and who.actor.kind == "agent" and not who.admin
            trust = "unverified" if who.actor.kind == "agent" else "asserted"
            by = who.actor.text
            following = replace(slot.head, words=words, by=by, trust=trust, waits=waits, ever_waited=waits)
        if keep_days is not None and times.add(slot.head.kept_from, days=keep_days) <= now:
            return refused(400, "validation-failed")
        return self._superseded(who, slot, following, now, keep_days)

    def _superseded(
        self, who: Principal, slot: Slot, following: Text, now: str, keep_days: int | None = None
    ) -> Said:
        head = slot.head
        assert head is not None
        days = head.days if keep_days is None else keep_days
        kept = {"reach": head.reach, "days": days, "kept_from": head.kept_from, "type": head.type}
        following = replace(following, **kept, confirmed_by=head.confirmed_by)  # type: ignore[arg-type]
        if decides(who):
            return self._advanced(slot, replace(following, waits=False, ever_waited=False), now)
        if following.words != head.words:
            following = replace(following, confirmed_by=None)
        if head.reach in ("account", "account-proposed"):
            days = WINDOW if days is None else days
            proposed = {"reach": "account-proposed", "days": days, "kept_from": now, "confirmed_by": None}
            following = replace(following, **proposed)  # type: ignore[arg-type]
        return self._advanced(slot, following, now)

    def verify(self, who: Principal, name: str, expected: int | None, now: str) -> Said:
        slot = self.slots[name] = self.slots[name].settled(now)
        if (head := slot.head) is None or not self._known(who, slot, "by-id", now):
            return NOT_FOUND
        if not self._writes(who, slot) or who.user_id is None:
            return DENIED
        refusal = self._not_changeable(head, expected)
        if refusal is not None:
            return refusal
        released = {"waits": False, "ever_waited": False} if decides(who) else {}
        window = {"days": None, "kept_from": now} if slot.is_memory else {}
        verified = replace(head, trust="verified", **released, **window)  # type: ignore[arg-type]
        return self._advanced(slot, verified, now)

    def delete(self, who: Principal, name: str, expected: int | None, now: str) -> Said:
        slot = self.slots[name] = self.slots[name].settled(now)
        if (head := slot.head) is None or not self._known(who, slot, "write", now):
            return NOT_FOUND
        is_the_accounts = head.reach == "account" or slot.stands(now) is not None
        if not self._writes(who, slot) or (is_the_accounts and not decides(who)):
            return DENIED
        refusal = self._not_changeable(head, expected)
        if refusal is not None:
            return refusal
        slot.head = replace(head, ended=times.later_than(now, head.start), ended_as="deleted")
        slot.kept = None
        hidden = head.waits and not who.admin
        return Said(200, text=replace(slot.head, words="" if hidden else head.words))

    def decide(self, who: Principal, name: str, word: str, expected: int | None, now: str) -> Said:
        slot = self.slots[name] = self.slots[name].settled(now)
        head = slot.head
        if head is None or shown(who, slot, "by-id", now) is None:
            return NOT_FOUND
        if not decides(who):
            return DENIED
        refusal = self._not_changeable(head, expected)
        if refusal is not None:
            return refusal
        proposed = head.reach == "account-proposed"
        if not (head.waits or proposed):
            return refused(409, "not-in-review")
        mark = {"waits": False, "ever_waited": False, "confirmed_by": who.name}
        if word == "confirm":
            if proposed and self.confirmed_for_account(slot, now) >= MOST_OF_THE_ACCOUNT:
                return FULL
            window = {"days": None, "kept_from": now} if slot.is_memory else {}
            reach = "account" if proposed else head.reach
            return self._advanced(slot, replace(head, **mark, **window, reach=reach), now)  # type: ignore[arg-type]
        stands = self.replaces(slot, now)
        if stands is not None:
            return self._advanced(slot, replace(stands, ended=None, ended_as=None), now, judged_anew=False)
        if proposed:
            return self._advanced(slot, replace(head, **mark, reach="account-rejected"), now)  # type: ignore[arg-type]
        # What nobody released stays hidden in its history too.
        ended = times.later_than(now, head.start)
        slot.head = replace(head, confirmed_by=who.name, ended=ended, ended_as="deleted")
        return Said(200, text=slot.head)

    def hold(self, who: Principal, name: str, expected: int | None, now: str, *, on: bool) -> Said:
        slot = self.slots[name] = self.slots[name].settled(now)
        if (head := slot.head) is None or not self._known(who, slot, "by-id", now):
            return NOT_FOUND
        if not decides(who):
            return DENIED
        if expected not in (None, head.version):
            return CHANGED
        if head.held is not on:
            slot.head = self._held(head, now, on=on)
            slot.kept = None if slot.kept is None else self._held(slot.kept, now, on=on)
        return Said(200, text=slot.head)

    def replaces(self, slot: Slot, now: str) -> Text | None:
        """The text that stands if what waits is rejected."""
        return slot.stands(now) or self._stood(slot, now)

    @staticmethod
    def _held(text: Text, now: str, *, on: bool) -> Text:
        text = replace(text, held=on).expiring()
        return replace(text, expires=now) if text.runs_out(now) else text

    @staticmethod
    def _stood(slot: Slot, now: str) -> Text | None:
        """The last text before it that did not wait, unless that was ended, rejected or has run out."""
        head = slot.head
        if head is None or head.reach == "account-proposed" or not head.ever_waited:
            return None
        for text in reversed(slot.texts):
            if text.ever_waited and text.ended_as == "superseded":
                continue
            ended = text.ended_as != "superseded" or text.runs_out(now)
            apart = text.reach in ("account-rejected", "account-proposed")
            return None if ended or apart else text
        return None

    def _known(self, who: Principal, slot: Slot, way: str, now: str) -> bool:
        if slot.head is None or not slot.current(now):
            return False
        return may_see(who, slot, slot.head, "by-id") or (
            way == "write" and slot.head.waits and self._wrote(who, slot, slot.head)
        )

    def _wrote(self, who: Principal, slot: Slot, text: Text) -> bool:
        """Whether one who may not read what waits may replace or end it."""
        if not may_see(who, slot, replace(text, waits=False), "found"):
            return False
        by_agent = slot.is_memory and text.by == f"agent:{AGENT}" and acts_for(who, slot)
        return text.by == who.actor.text or (by_agent and (who.agent_id == AGENT or not is_bound(who)))

    @staticmethod
    def _writes(who: Principal, slot: Slot) -> bool:
        return who.admin or (acts_for(who, slot) if slot.is_memory else "p" in who.writes_projects)

    @staticmethod
    def _not_changeable(head: Text, expected: int | None) -> Said | None:
        if head.held:
            return HELD
        return CHANGED if expected not in (None, head.version) else None

    def _not_open(self, who: Principal, slot: Slot, way: str, expected: int | None, now: str) -> Said | None:
        if slot.head is None or not self._known(who, slot, way, now):
            return NOT_FOUND
        if not self._writes(who, slot):
            return DENIED
        return self._not_changeable(slot.head, expected)

    def _begun(self, slot: Slot, said: Text, now: str) -> Said:
        """A new life at version 1, or the next version of one that was deleted."""
        former = slot.head
        if former is not None and slot.alive(now):  # deleted
            start = times.later_than(now, former.ended or former.start)
            following = replace(said, version=former.version + 1, start=start, kept_from=start).expiring()
            made = replace(slot, head=following, kept=None, texts=[*slot.texts, former])
            self.slots[slot.name] = made
            return Said(200, text=following)
        start = now if former is None else times.later_than(now, former.ended or former.start)
        following = replace(said, version=1, start=start, kept_from=start).expiring()
        self.slots[slot.name] = replace(slot, head=following, kept=None, texts=[], created=start)
        return Said(201, text=following)

    def _advanced(self, slot: Slot, following: Text, now: str, *, judged_anew: bool = True) -> Said:
        """The next version. A confirmed text stays beside proposals for as long as they follow it."""
        head = slot.head
        assert head is not None
        ended = times.later_than(now, head.start)
        following = replace(following, version=head.version + 1, start=ended, ended=None, ended_as=None)
        following = following.expiring() if judged_anew else following
        kept = None
        if following.reach == "account-proposed":
            kept = head if head.reach == "account" else slot.kept
        closed = replace(head, ended=ended, ended_as="superseded")
        self.slots[slot.name] = replace(slot, head=following, kept=kept, texts=[*slot.texts, closed])
        return Said(200, text=following)
