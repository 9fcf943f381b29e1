"""Every refusal a caller can meet, one class per code of the API.

FactbookError
├── BadInput                 the request itself is wrong (400)
│   ├── UnknownField · ValidationFailed · ScopeInvalid
├── RequestTooLarge          413
├── AuthMissing · AuthExpired · AuthRevoked     401
├── PermissionDenied         403
├── NotFound · FactNotFound  404
├── FactChanged · FactExists · FactUnreadable · LegalHold · ErasureInProgress · MemoryFull · NotInReview · ReceiptPending · LogChanged · IdempotencyMismatch · ReplayWithheld   409
├── SemanticUnavailable · RefreshHandlerMissing · SourceRefused  422
├── Unsupported              501
└── Throttled · SearchUnavailable · StorageUnavailable · SourceUnavailable      429, 503

`factbook.api.errors` owns the status of each. A message says what to do next and never repeats content.
"""

from collections.abc import Sequence
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
    """Not there or not shown. `fact_id` is what the caller named; None where the caller named a key. `past`: a version or a
    time was named, too; which of them is missing is not told.
    """

    code = "fact-not-found"

    def __init__(self, fact_id: str | None, *, past: bool = False) -> None:
        if fact_id is None:
            said = "No fact with this type, scope and key that you may read. The scope must be exact."
        elif past:
            said = (
                "No such fact, or not with this version or at this time, or not one you may read. Check the id, version and "
                "asOf, and your token."
            )
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


class FactUnreadable(Conflict):
    """The fact's record was changed past the service, so nobody can tell whether it is held, or what belongs to it."""

    code = "fact-unreadable"

    def __init__(self, fact_id: str) -> None:
        super().__init__(
            "The fact's record cannot be read: someone changed it in the store. Nothing of it was erased. An operator must mend "
            "or remove it first.",
            factId=fact_id,
        )


class LegalHold(Conflict):
    """One fact is held, or some of those that an erasure means; then `fact_ids` are not necessarily all of these."""

    code = "legal-hold"

    def __init__(self, fact_id: str | None = None, fact_ids: Sequence[str] = ()) -> None:
        said = "The fact is under legal hold. An administrator must release it first."
        if fact_ids:
            said = "Facts that this would erase are under legal hold, so nothing was erased. An administrator must release them first."
        super().__init__(said, factId=fact_id, factIds=list(fact_ids) or None)


class ErasureInProgress(Conflict):
    """`fact_id`: the fact that was meant; None where it was a scope, as of a run."""

    code = "erasure-in-progress"

    def __init__(self, fact_id: str | None = None) -> None:
        super().__init__(
            "What this names is being erased, so nothing of it is written now. Try again when the erasure is completed.",
            factId=fact_id,
        )


class MemoryFull(Conflict):
    code = "memory-full"


class NotInReview(Conflict):
    code = "not-in-review"

    def __init__(self, fact_id: str) -> None:
        super().__init__(
            "Nothing about this fact waits for a decision. GET /v1/memory/reviews lists what does.",
            factId=fact_id,
        )


class ReceiptPending(Conflict):
    """What the receipt needs is not there yet; `retry_after` is in whole seconds."""

    code = "receipt-pending"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


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


class SourceRefused(FactbookError):
    """A fact's source cannot be asked as it is written, or gives what cannot become the fact's content."""

    code = "source-refused"


class Unsupported(FactbookError):
    code = "memory-operation-unsupported"


class Throttled(FactbookError):
    """The store asked us to slow down; `retry_after` is in whole seconds."""

    code = "rate-limit-exceeded"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__(
            "Too many requests. Retry after the seconds in Retry-After, a write with the same Idempotency-Key."
        )
        self.retry_after = retry_after


class SearchUnavailable(FactbookError):
    code = "search-unavailable"


class SourceUnavailable(FactbookError):
    """A fact's source gave no usable answer, or a stale answer would not do; `retry_after` is in whole seconds."""

    code = "source-unavailable"

    def __init__(self, message: str, retry_after: int = 1, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class StorageUnavailable(FactbookError):
    """The store did not answer; whether the write landed is unknown, and a retry is safe."""

    code = "storage-unavailable"

    def __init__(
        self, message: str = "The store did not answer in time. Retry with the same Idempotency-Key."
    ) -> None:
        super().__init__(message)
        self.retry_after = 1
