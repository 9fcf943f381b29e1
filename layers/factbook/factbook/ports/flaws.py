"""What is wrong with one record alone: a walk of all goes on behind it, since trying again would not help."""

from factbook.domain.errors import BadInput

UNREADABLE = (BadInput, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading a record raises that was edited past being read."""


class NotStorable(Exception):
    """The store takes no such record: it is too large, or a part of its key is."""


FLAWS = (*UNREADABLE, NotStorable)
