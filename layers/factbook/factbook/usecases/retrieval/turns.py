"""Work on what a backlog has waiting, tenants in turn."""

from collections.abc import Callable, Sequence

from factbook.ports.deadline import Deadline
from factbook.ports.retrieval.upkeep import Backlog, Troubled

TURN = 25
"""Records of one tenant that are tried again before it is another's turn."""
HUNG_SECONDS = 5.0
"""A store that took so long to fail is not asked again in the same invocation."""


def in_turns(backlog: Backlog, attempt: Callable[[str, Sequence[Troubled]], int], deadline: Deadline) -> int:
    """How many tries there were. `attempt` tries one tenant's records and says how many are settled.

    Goes on in rounds, until the deadline or until a round has got nowhere. Raises what `attempt` and the backlog raise.
    """
    tried = settled = 0
    served: set[str] = set()
    while not deadline.passed:
        waiting = backlog.turn(TURN)
        if not waiting:
            break
        tenant = waiting[0].tenant
        if tenant in served:
            if not settled:
                break
            settled, served = 0, set()
        served.add(tenant)
        settled += attempt(tenant, waiting)
        tried += len(waiting)
    return tried
