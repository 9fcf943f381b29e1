"""A checkpoint asked for now: by an administrator, of the checkpoint function, once."""

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from support.principals import principal

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.log.lambda_checkpoints import LambdaCheckpoints
from factbook.domain.errors import FactbookError, LogChanged, NotFound, PermissionDenied, StorageUnavailable
from factbook.ports.log.checkpoints import CheckpointRefused, PublishedNote
from factbook.usecases.log.checkpoint_requests import request_checkpoint

ADMIN = principal("acme", "root", admin=True)
NOTE = PublishedNote(3, "a note", "a key", "2026-01-01T00:00:00.000000Z")
WIRE = {"size": 3, "note": "a note", "vkey": "a key", "createdAt": "2026-01-01T00:00:00.000000Z"}


class Lambda:
    """A Lambda client that gives one answer, or fails."""

    def __init__(self, answer: Any = None, error: Exception | None = None, **more: Any) -> None:
        self.events: list[Any] = []
        self._answer = {"Payload": io.BytesIO(json.dumps(answer).encode()), **more}
        self._error = error

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - as the SDK names them
        assert FunctionName == "checkpoint"
        self.events.append(json.loads(Payload))
        if self._error is not None:
            raise self._error
        return self._answer


def over(client: Lambda) -> LambdaCheckpoints:
    return LambdaCheckpoints(LambdaFunction(client, "checkpoint"))


def test_the_function_is_told_the_tenant_and_the_runs_and_its_note_is_the_answer() -> None:
    client = Lambda(WIRE)
    assert request_checkpoint(over(client), ADMIN, ["r1", "r2"]) == NOTE
    assert client.events == [{"factbook": "checkpoint", "tenant": "acme", "runIds": ["r1", "r2"]}]


@pytest.mark.parametrize(
    ("client", "refusal"),
    [
        (Lambda({}), NotFound),
        (Lambda({"refused": "another tree is published"}), LogChanged),
        (Lambda({"errorMessage": "x"}, FunctionError="Unhandled"), StorageUnavailable),
        (Lambda(error=ReadTimeoutError(endpoint_url="u")), StorageUnavailable),
    ],
    ids=["no entry yet", "refused", "failed", "no answer"],
)
def test_what_the_function_could_not_do_is_told_apart(client: Lambda, refusal: type[FactbookError]) -> None:
    with pytest.raises(refusal):
        request_checkpoint(over(client), ADMIN, [])


def test_why_a_checkpoint_was_refused_is_known_to_the_service_and_not_told_to_the_caller() -> None:
    checkpoints = over(Lambda({"refused": "3 leaves are published"}))
    with pytest.raises(LogChanged) as refused:
        request_checkpoint(checkpoints, ADMIN, [])
    assert isinstance(refused.value.__cause__, CheckpointRefused)
    assert "leaves" not in refused.value.message


def test_nobody_else_makes_the_function_work() -> None:
    client = Lambda(WIRE)
    with pytest.raises(PermissionDenied):
        request_checkpoint(over(client), principal("acme", "ann", writes=["p"]), [])
    assert client.events == []
