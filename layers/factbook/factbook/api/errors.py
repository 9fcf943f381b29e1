"""The one table from exceptions to statuses."""

from factbook.domain import errors as e

STATUSES: dict[type[e.FactbookError], int] = {
    e.BadInput: 400,
    e.UnknownField: 400,
    e.ValidationFailed: 400,
    e.ScopeInvalid: 400,
    e.AuthMissing: 401,
    e.AuthExpired: 401,
    e.AuthRevoked: 401,
    e.PermissionDenied: 403,
    e.NotFound: 404,
    e.FactNotFound: 404,
    e.FactChanged: 409,
    e.FactExists: 409,
    e.FactUnreadable: 409,
    e.LegalHold: 409,
    e.ErasureInProgress: 409,
    e.MemoryFull: 409,
    e.NotInReview: 409,
    e.ReceiptPending: 409,
    e.LogChanged: 409,
    e.IdempotencyMismatch: 409,
    e.ReplayWithheld: 409,
    e.RequestTooLarge: 413,
    e.SemanticUnavailable: 422,
    e.RefreshHandlerMissing: 422,
    e.SourceRefused: 422,
    e.Throttled: 429,
    e.Unsupported: 501,
    e.SearchUnavailable: 503,
    e.SourceUnavailable: 503,
    e.StorageUnavailable: 503,
}


def status_of(error: e.FactbookError) -> int:
    """The HTTP status of a refusal, or of what it is a kind of. Raises KeyError for a class the table forgot."""
    return STATUSES[next((kind for kind in type(error).__mro__ if kind in STATUSES), type(error))]
