"""What a store says when another transaction was in the way."""

from factbook.domain.errors import Throttled


class Contended(Throttled):
    """Another transaction held the record; read it again and decide, or let the caller try again."""
