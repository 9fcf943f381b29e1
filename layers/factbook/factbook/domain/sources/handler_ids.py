"""Which handler asks a source: the one it names, else the default of its kind."""

from factbook.domain.facts.fact import ASKED_AT_URI, Source

DEFAULTS = ASKED_AT_URI | {"user-input": "user-input"}
"""`external-db` has none: its source names a function, `lambda:<name>`."""


def handler_id(source: Source) -> str | None:
    """None for a kind without a default whose source names none."""
    return source.refresh.handler or DEFAULTS.get(source.kind)
