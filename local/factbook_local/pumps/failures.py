"""What a function's answer to a batch says of its items: `ReportBatchItemFailures`."""

import json
from collections.abc import Sequence

from factbook_local.workers import Outcome


def failed_items(outcome: Outcome, identifiers: Sequence[str], *, partial: bool) -> set[str] | None:
    """The identifiers that failed, empty when none did; None: the whole batch did.

    Without `partial` an answer that is no error is a success, whatever it says. With it, null, `{}` and an empty list
    are successes; an identifier that is empty, missing or of another batch fails the whole batch.
    """
    if outcome.error is not None:
        return None
    if not partial:
        return set()
    answer = json.loads(outcome.body)
    if answer is None or answer == {}:
        return set()
    try:
        failures = answer["batchItemFailures"]
        failed = {failure["itemIdentifier"] for failure in failures or []}
    except (KeyError, TypeError):
        return None
    return failed if failed <= set(identifiers) else None
