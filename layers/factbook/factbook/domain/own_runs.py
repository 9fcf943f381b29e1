"""The runs of the log that the service itself writes: what happened to facts, as entries that no caller can append."""

OWN_PREFIX = "_"
"""What the ids of the service's own runs begin with."""

HOLDS_RUN, ERASURES_RUN = "_holds", "_erasures"
"""The tenant's runs that record legal holds and erasures."""

REFRESH_RUNS = "_refresh:"
"""What the ids of runs begin with that record how a mirrored fact was changed from its source; the fact's id follows."""

ADMINISTRATORS_RUNS = frozenset({HOLDS_RUN, ERASURES_RUN})
"""Runs that administrators alone read."""


def is_own_run(run_id: str) -> bool:
    """Whether only the service itself appends to this run."""
    return run_id.startswith(OWN_PREFIX)
