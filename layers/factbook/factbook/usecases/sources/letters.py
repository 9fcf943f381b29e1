"""What an operator does with dead letters: look at them, and send their facts again."""

from factbook.domain.strict_json import Json
from factbook.ports.deadline import Deadline
from factbook.ports.sources.stores import DeadLetters, Letter, RefreshQueue, Wanted

MOST = 100
LOOKED_AT_SECONDS, SENT_SECONDS = 10, 60


def list_letters(letters: DeadLetters, deadline: Deadline) -> list[Json]:
    """Some of them, each once, and at most so many; they stay, and are not to be had for some seconds."""
    found: dict[str, Letter] = {}
    while len(found) < MOST and not deadline.passed:
        more = [each for each in letters.receive(LOOKED_AT_SECONDS) if each.id not in found]
        if not more:
            break
        found |= {each.id: each for each in more}
    return [each.said for each in found.values()][:MOST]


def send_again(letters: DeadLetters, queue: RefreshQueue, deadline: Deadline) -> tuple[int, int]:
    """How many facts were queued, and how many letters say of no fact. Whatever ends it sends a fact twice, and loses none."""
    sent, unreadable = 0, 0
    while not deadline.passed:
        some = letters.receive(SENT_SECONDS)
        if not some:
            break
        for letter in some:
            wanted = _wanted(letter)
            if wanted is None:
                unreadable += 1
                continue
            queue.send([wanted])
            letters.remove(letter)
            sent += 1
    return sent, unreadable


def _wanted(letter: Letter) -> Wanted | None:
    tenant, fact_id = letter.said.get("tenant"), letter.said.get("factId")
    if not (isinstance(tenant, str) and isinstance(fact_id, str)):
        return None
    return Wanted(tenant, fact_id, "resend")
