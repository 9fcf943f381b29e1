"""`lambda:<name>`: a function that an operator listed; what it is asked and what it answers is in docs/sources.md."""

from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.sources.connecting import remaining
from factbook.adapters.sources.contents import Validators, answer, read_json
from factbook.adapters.sources.http_handler import LONGEST_AGE, LONGEST_WAIT
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.strict_json import Json
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import (
    AnswerRefused,
    Ask,
    Fetched,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)
from factbook.ports.sources.large import in_turn


class LambdaHandler:
    """Handler."""

    def __init__(self, function: LambdaFunction) -> None:
        self._function = function

    def ask(self, ask: Ask, deadline: Deadline) -> Fetched | Unchanged:
        remaining(deadline, None)
        try:
            payload = self._function.answer(_question(ask))
        except ClientError:
            raise SourceRefused("the function may not be called") from None
        except (Throttled, StorageUnavailable, BotoCoreError):
            raise SourceUnavailable("the function failed or did not answer in time") from None
        with in_turn(len(payload), deadline):
            return _answer(ask, read_json(payload))


def read_functions(entries: Iterable[str]) -> Mapping[str, str]:
    """Functions by the name that a handler's id has: from `name`, or `name=function or ARN`."""
    parts = (entry.partition("=") for entry in entries)
    return {name: function or name for name, _, function in parts}


def _question(ask: Ask) -> Json:
    question = {"factbook": "refresh", "tenant": ask.tenant, "factId": ask.fact_id}
    known = {"knownHash": ask.known_hash} if ask.known_hash else {}
    return {**question, "source": ask.source.to_json(), **known}


def _answer(ask: Ask, said: Any) -> Fetched | Unchanged:
    fields = said if isinstance(said, dict) else {}
    validators = Validators(
        _text(fields.get("etag")),
        _text(fields.get("sourceVersion")),
        _seconds(fields.get("maxAgeSeconds"), LONGEST_AGE),
    )
    match fields.get("outcome"):
        case "fetched" if "content" in fields:
            fragment = (ask.source.uri or "").partition("#")[2]
            return answer(ask, fields["content"], fragment, validators)
        case "unchanged":
            return validators.unchanged()
        case "refused":
            raise AnswerRefused("the function refuses the source")
        case "unavailable":
            wait = _seconds(fields.get("retryAfter"), LONGEST_WAIT)
            raise SourceUnavailable("the function says that the source is not available", wait)
    raise AnswerRefused("the function's answer has not the form that is asked for")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(value: Any, most: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(max(0, int(value)), most)
