"""Every refusal a caller can meet, one class per code of the API.

FactbookError
├── BadInput                 the request itself is wrong (400)
│   ├── UnknownField · ValidationFailed · ScopeInvalid
├── RequestTooLarge          413
├── AuthMissing · AuthExpired · AuthRevoked     401
├── PermissionDenied         403
├── NotFound · FactNotFound  404
├── FactChanged · FactExists · LegalHold · ErasureInProgress · MemoryFull · NotInReview · LogChanged · IdempotencyMismatch · ReplayWithheld   409
├── SemanticUnavailable · RefreshHandlerMissing  422
├── Unsupported              501
└── Throttled · SearchUnavailable · StorageUnavailable      429, 503

`factbook.api.errors` owns the status of each. A message says what to do next and never repeats content.
"""

from typing import Any, ClassVar

MAX_FACT_ID = 36
"""Characters of a fact's id: an answer repeats no longer text that was asked for as one."""


class FactbookError(Exception):
    """A refusal with a stable code, a message for the caller and optional details."""

    code: ClassVar[str] = "internal-error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = {key: value for key, value in details.items() if value is not None}


class BadInput(FactbookError):
    code = "bad-input"


class UnknownField(BadInput):
    code = "unknown-field"


class ValidationFailed(BadInput):
    code = "validation-failed"


class ScopeInvalid(BadInput):
    code = "scope-invalid"


class RequestTooLarge(FactbookError):
    code = "request-too-large"


class AuthMissing(FactbookError):
    code = "auth-missing"


class AuthExpired(FactbookError):
    code = "auth-expired"


class AuthRevoked(FactbookError):
    code = "auth-revoked"


class PermissionDenied(FactbookError):
    code = "permission-denied"


class NotFound(FactbookError):
    code = "not-found"


class FactNotFound(NotFound):
    """Not there or not shown. `fact_id` is what the caller named; None where the caller named a key."""

    code = "fact-not-found"

    def __init__(self, fact_id: str | None) -> None:
        if fact_id is None:
            said = "No fact with this type, scope and key that you may read. The scope must be exact."
        else:
            said = "No such fact, or not one you may read. Check the id and your token."
        known = fact_id if fact_id is not None and len(fact_id) <= MAX_FACT_ID else None
        super().__init__(said, factId=known)


class Conflict(FactbookError):
    """The state of the record forbids the request; nothing was written."""


class FactChanged(Conflict):
    code = "fact-changed"

    def __init__(self, fact_id: str, current: int) -> None:
        super().__init__(
            f"The fact is at version {current}. Read it again, then retry with expectVersion {current}.",
            factId=fact_id,
            currentVersion=current,
        )


class FactExists(Conflict):
    code = "fact-exists"

    def __init__(self, fact_id: str, current: int) -> None:
        super().__init__(
            'There is a fact with this key. Send "onExisting": "supersede" to write its next revision.',
            factId=fact_id,
            currentVersion=current,
        )


class LegalHold(Conflict):
    code = "legal-hold"

    def __init__(self, fact_id: str) -> None:
        super().__init__(
            "The fact is under legal hold. An administrator must release it first.", factId=fact_id
        )


class ErasureInProgress(Conflict):
    code = "erasure-in-progress"


class MemoryFull(Conflict):
    code = "memory-full"


class NotInReview(Conflict):
    code = "not-in-review"

    def __init__(self, fact_id: str) -> None:
        super().__init__(
            "Nothing about this fact waits for a decision. GET /v1/memory/reviews lists what does.",
            factId=fact_id,
        )


class LogChanged(Conflict):
    code = "log-changed"


class IdempotencyMismatch(Conflict):
    code = "idempotency-key-body-mismatch"

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used with another body. Use a new key for a new request.")


class ReplayWithheld(Conflict):
    code = "idempotency-key-replay-withheld"


class SemanticUnavailable(FactbookError):
    code = "semantic-unavailable"


class RefreshHandlerMissing(FactbookError):
    code = "refresh-handler-missing"


class Unsupported(FactbookError):
    code = "memory-operation-unsupported"


class Throttled(FactbookError):
    """The store asked us to slow down; `retry_after` is in whole seconds."""

    code = "rate-limit-exceeded"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("Too many requests. Retry after the seconds in Retry-After.")
        self.retry_after = retry_after


class SearchUnavailable(FactbookError):
    code = "search-unavailable"


class StorageUnavailable(FactbookError):
    """The store did not answer; whether the write landed is unknown, and a retry is safe."""

    code = "storage-unavailable"

    def __init__(
        self, message: str = "The store did not answer in time. Retry with the same Idempotency-Key."
    ) -> None:
        super().__init__(message)
        self.retry_after = 1
