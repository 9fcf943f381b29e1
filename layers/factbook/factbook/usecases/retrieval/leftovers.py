"""What a change of a fact asks for beside the index: remains that must go, payloads that must be kept.

Each is done when the stream tells of it. What fails then is noted here and tried again each minute, so that it neither
holds up the stream behind it nor hangs on one record that the stream may give up. No search index takes part.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factbook.domain.facts.fact import Fact
from factbook.ports.deadline import Deadline
from factbook.ports.facts.walks import Life, Remains
from factbook.ports.retrieval.upkeep import Backlog, DeadLetters, Troubled
from factbook.usecases.retrieval.turns import HUNG_SECONDS, in_turns

TRIES = 3_000
"""Two days of them, one a minute. What still fails then waits for somebody who reads the dead letters."""


@dataclass(frozen=True)
class LeftoverPorts:
    """`claim` keeps a payload for good; `waiting` has the notes of leftovers alone."""

    waiting: Backlog
    dead_letters: DeadLetters
    remains: Remains
    claim: Callable[[str], None]


def remains_of(last: Fact) -> Troubled:
    """The note that a life which ended with this fact has left something."""
    about = json.dumps([last.id, last.created_at, last.content_ref])
    return Troubled(last.scope.tenant_id, about, "facts", 0, "remains")


def claim_of(fact: Fact, ref: str) -> Troubled:
    """The note that a payload which a fact names is still pending."""
    return Troubled(fact.scope.tenant_id, json.dumps([fact.id, ref]), "facts", 0, "claim")


def work_off(ports: LeftoverPorts, deadline: Deadline) -> None:
    """Try what waits again, each once, tenants in turn. Raises Throttled or StorageUnavailable when notes cannot be read."""
    tried: set[tuple[str, str]] = set()
    hung = False

    def attempt(tenant: str, notes: Sequence[Troubled]) -> int:
        nonlocal hung
        settled = 0
        for note in notes:
            if hung or deadline.passed or (tenant, note.id) in tried:
                continue
            tried.add((tenant, note.id))
            before = deadline.left
            is_settled = _try_again(ports, note, deadline)
            hung = not is_settled and before - deadline.left > HUNG_SECONDS
            settled += is_settled
        return settled

    in_turns(ports.waiting, attempt, deadline)


def _try_again(ports: LeftoverPorts, note: Troubled, deadline: Deadline) -> bool:
    """Whether the note is settled: it is done, or was tried for the last time. A note's version is the number of tries."""
    try:
        _do(ports, note, deadline)
    except Exception as error:  # noqa: BLE001 - whatever one payload's store says, the others are tried
        if note.version < TRIES:
            ports.waiting.note(Troubled(note.tenant, note.id, note.source, note.version + 1, note.trouble))
            return False
        ports.dead_letters.send(f"{note.tenant}|{note.id}", f"{note.trouble} ({type(error).__name__})")
    ports.waiting.settle(note.tenant, note.id, note.version)
    return True


def _do(ports: LeftoverPorts, note: Troubled, deadline: Deadline) -> None:
    about = json.loads(note.id)
    if note.trouble == "claim":
        ports.claim(about[1])
    else:
        ports.remains.remove_life(Life(note.tenant, *about), deadline)
