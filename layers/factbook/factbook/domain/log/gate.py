"""The gate of the log: whether a principal may be shown an entry now. Every road to an entry asks here.

Callers name the module (`gate.can_see`), so that there is one function to replace.
"""

from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.access.filters import readable_filter, spared_filter
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_read
from factbook.domain.filters import AllOf, Filter
from factbook.domain.own_runs import ADMINISTRATORS_RUNS
from factbook.domain.scope import Scope


def can_see(
    principal: Principal, scope: Scope, run_id: str, erased_at: str | None = None, *, found: bool = False
) -> bool:
    """Whether an entry of this scope and run may be shown. Records of holds and erasures are for administrators.

    `found`: by a search, which shows nothing of what has been erased; `erased_at`: when the payload was, as its opening
    tells. An entry asked for by its place is shown without its payload.
    """
    if run_id in ADMINISTRATORS_RUNS and not principal.admin:
        return False
    return can_read(principal, scope) and not (found and erased_at is not None)


def shown_filter(principal: Principal, erasing: Erasing = NOTHING_ERASED) -> Filter:
    """`can_see` of what is found, as a filter of index documents. A message that is erased has none, and administrators'
    runs have no messages.
    """
    return AllOf((readable_filter(principal), spared_filter(erasing)))
