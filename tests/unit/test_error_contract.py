"""Refusals: one class per code, one status per class, and the list of the contract."""

import pytest

from factbook.api.errors import STATUSES, status_of
from factbook.domain import errors
from factbook.domain.errors import FactbookError

# The contract's list, written a second time.
CONTRACT = {
    "fact-not-found": 404,
    "permission-denied": 403,
    "fact-changed": 409,
    "fact-exists": 409,
    "fact-unreadable": 409,
    "legal-hold": 409,
    "erasure-in-progress": 409,
    "semantic-unavailable": 422,
    "memory-operation-unsupported": 501,
    "not-found": 404,
    "bad-input": 400,
    "unknown-field": 400,
    "validation-failed": 400,
    "scope-invalid": 400,
    "auth-missing": 401,
    "auth-expired": 401,
    "auth-revoked": 401,
    "request-too-large": 413,
    "rate-limit-exceeded": 429,
    "refresh-handler-missing": 422,
    "source-refused": 422,
    "memory-full": 409,
    "not-in-review": 409,
    "receipt-pending": 409,
    "log-changed": 409,
    "search-unavailable": 503,
    "source-unavailable": 503,
    "idempotency-key-body-mismatch": 409,
    "idempotency-key-replay-withheld": 409,
}
BEYOND_IT = {"storage-unavailable": 503}


def every_class(of: type[FactbookError] = FactbookError) -> set[type[FactbookError]]:
    children = [child for child in of.__subclasses__() if child.__module__ == errors.__name__]
    return {of}.union(*map(every_class, children))


ABSTRACT = {FactbookError, errors.Conflict}


def test_every_class_has_a_status_and_a_code_of_its_own() -> None:
    refusals = every_class() - ABSTRACT
    assert set(STATUSES) == refusals
    assert len({refusal.code for refusal in refusals}) == len(refusals)


def test_codes_and_statuses_are_the_contracts() -> None:
    assert {refusal.code: status for refusal, status in STATUSES.items()} == CONTRACT | BEYOND_IT


def test_the_tree_at_the_top_of_the_module_names_every_class() -> None:
    drawn = set((errors.__doc__ or "").replace("·", " ").split())
    assert {refusal.__name__ for refusal in every_class() - ABSTRACT} <= drawn


def test_a_class_without_a_status_is_a_mistake_of_ours() -> None:
    class Forgotten(FactbookError):
        code = "forgotten"

    with pytest.raises(KeyError):
        status_of(Forgotten("x"))
