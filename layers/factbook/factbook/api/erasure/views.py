"""Erasures as the API shows them."""

from factbook.domain.strict_json import Json
from factbook.ports.erasure.records import COUNTED, Erasure


def erasure_json(erasure: Erasure) -> Json:
    """Whom it is about is shown until it has ended."""
    shown = None if erasure.ended or erasure.selector is None else erasure.selector.to_json()
    fields = {
        "id": erasure.id,
        "selectorKind": erasure.selector_kind,
        "selector": shown,
        "status": erasure.status,
        "phase": erasure.phase,
        "requestedBy": erasure.requested_by,
        "matchable": erasure.matchable,
        "counts": {name: erasure.counts.get(name, 0) for name in COUNTED},
        "attempts": erasure.attempts,
        "lastError": erasure.last_error,
        "createdAt": erasure.created_at,
        "startedAt": erasure.started_at,
        "completedAt": erasure.completed_at,
        "replayedAt": erasure.replayed_at,
        "replayedBy": erasure.replayed_by,
        "warnings": [_warning(each) for each in erasure.warnings] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _warning(text: str) -> Json:
    """A warning is kept as its code and what it says."""
    code, _, message = text.partition(": ")
    return {"code": code, "message": message}
