"""The gate of the log: whether a principal may be shown an entry now. Every road to an entry asks here.

Callers name the module (`gate.can_see`), so that there is one function to replace.
"""

from factbook.domain.access.filters import readable_filter
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_read
from factbook.domain.filters import Filter
from factbook.domain.scope import Scope


def can_see(principal: Principal, scope: Scope, erased_at: str | None = None, *, found: bool = False) -> bool:
    """Whether an entry of this scope may be shown.

    `found`: by a search, which shows nothing of what has been erased; `erased_at`: when the payload was, as its opening
    tells. An entry asked for by its place is shown without its payload.
    """
    return can_read(principal, scope) and not (found and erased_at is not None)


def shown_filter(principal: Principal) -> Filter:
    """`can_see` as a filter of index documents. A message that is erased has none."""
    return readable_filter(principal)
