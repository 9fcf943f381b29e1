"""Faults of the store, struck on the wire below the SDK's own retries, while a real store answers everything else."""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from moto.core.botocore_stubber import MockRawResponse
from moto.core.models import botocore_stubber

from support.emulators import Aws


class Killed(BaseException):
    """The process ends here: nothing of it runs on."""


class Fault(Enum):
    THROTTLED = "throttled"
    UNREACHABLE = "never arrived"
    LOST_REPLY = "timed out after committing"
    LOST_THEN_CONFLICT = "timed out after committing, then conflict"
    BROKEN = "server error"
    DENIED = "access denied"
    CONFLICT = "transaction conflict"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"

    @property
    def kills(self) -> bool:
        return self in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)

    @property
    def sends(self) -> int:
        """How many sends of a call it strikes when it strikes once."""
        return 2 if self is Fault.LOST_THEN_CONFLICT else 1

    def may_strike(self, step: str) -> bool:
        return self not in (Fault.CONFLICT, Fault.LOST_THEN_CONFLICT) or step.startswith(
            ("PutItem", "TransactWriteItems", "UpdateItem")
        )


_CODES = {
    Fault.THROTTLED: (400, "ProvisionedThroughputExceededException", 503, "SlowDown"),
    Fault.BROKEN: (500, "InternalServerError", 500, "InternalError"),
    Fault.DENIED: (400, "AccessDeniedException", 403, "AccessDenied"),
    Fault.CONFLICT: (400, "TransactionConflictException", 0, ""),
}
"""DynamoDB's status and code, then S3's."""

_KMS_THROTTLES = "ThrottlingException"
"""It knows nothing of provisioned throughput: https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html"""

WORDS_OF_THE_STORE = [
    "planted-detail",
    "Exception",
    *itertools.chain.from_iterable((code, other) for _, code, _, other in _CODES.values() if other),
]


@dataclass
class Wire:
    """Clients of an emulator whose calls can be counted, and one of them struck.

    `calls` names each call once, however often the SDK sent it. A fault strikes the first send of the first call named
    `step`, or, when it `stays`, every send of every call of that name. Names, not places: parts of a batch run side by
    side, so the places of their calls vary.
    """

    aws: Aws
    calls: list[str] = field(default_factory=list)
    fault: Fault | None = None
    step: str = ""
    stays: bool = False
    dead: bool = False
    """Whether the process has been killed: what it still tries, in a `finally`, is nothing that a dead one does."""
    _sends: Counter[str] = field(default_factory=Counter)
    _place: dict[str, int] = field(default_factory=dict)
    _clients: dict[str, Any] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            client = self._clients[service] = self.aws.client(service)
            client.meta.events.unregister("before-send", botocore_stubber)
            client.meta.events.register("before-send", self._send)
        return self._clients[service]

    def reset(self, fault: Fault | None = None, step: str = "", *, stays: bool = False) -> None:
        self.fault, self.step, self.stays, self.dead = fault, step, stays, False
        self.calls.clear()
        self._sends.clear()
        self._place.clear()

    def _send(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        invocation = _text(request.headers["amz-sdk-invocation-id"])
        if self.dead:
            raise Killed
        with self._lock:
            if invocation not in self._place:
                self._place[invocation] = len(self.calls)
                self.calls.append(_name(event_name, request))
            self._sends[invocation] += 1
            sends = self._sends[invocation]
            struck = self._strikes(self._place[invocation], sends)

        def arrive() -> AWSResponse | None:
            return botocore_stubber(event_name, request)

        if not struck or self.fault is None:
            return arrive()
        fault = self.fault
        self.dead = fault.kills
        if fault is Fault.LOST_THEN_CONFLICT:
            fault = Fault.LOST_REPLY if sends == 1 else Fault.CONFLICT
        return _strike(fault, event_name, request, arrive)

    def _strikes(self, place: int, sends: int) -> bool:
        if self.fault is None or self.calls[place] != self.step:
            return False
        return self.stays or (place == self.calls.index(self.step) and sends <= self.fault.sends)


def _strike(
    fault: Fault, event_name: str, request: AWSPreparedRequest, arrive: Callable[[], AWSResponse | None]
) -> AWSResponse | None:
    match fault:
        case Fault.UNREACHABLE:
            raise ConnectTimeoutError(endpoint_url=request.url)
        case Fault.LOST_REPLY:
            arrive()
            raise ReadTimeoutError(endpoint_url=request.url)
        case Fault.KILLED_BEFORE:
            raise Killed
        case Fault.KILLED_AFTER:
            arrive()
            raise Killed
    status, code, s3_status, s3_code = _CODES[fault]
    if ".s3." in event_name:
        body = f"<Error><Code>{s3_code}</Code><Message>planted-detail</Message></Error>"
        return AWSResponse(request.url, s3_status, {}, MockRawResponse(body))
    answer: dict[str, Any] = {"message": "planted-detail"}
    if event_name.endswith("TransactWriteItems") and fault is Fault.CONFLICT:
        code = "TransactionCanceledException"
        answer["CancellationReasons"] = [{"Code": "None"}, {"Code": "TransactionConflict"}]
    if ".kms." in event_name and fault is Fault.THROTTLED:
        code = _KMS_THROTTLES
    answer["__type"] = f"com.amazonaws.dynamodb.v20120810#{code}"
    return AWSResponse(request.url, status, {}, MockRawResponse(json.dumps(answer)))


def _name(event_name: str, request: AWSPreparedRequest) -> str:
    """`PutItem facts`, `PutObject blobs`: the operation and which store it is about."""
    operation = event_name.rpartition(".")[2]
    if ".s3." in event_name:
        return f"{operation} blobs"
    if ".kms." in event_name:
        return f"{operation} kms"
    tables = sorted(set(_tables(json.loads(_text(request.body)))))
    return f"{operation} {' '.join(tables)}"


def _tables(body: Any) -> list[str]:
    if isinstance(body, list):
        return [table for each in body for table in _tables(each)]
    if not isinstance(body, dict):
        return []
    named = [str(body["TableName"])] if "TableName" in body else list(body.get("RequestItems", {}))
    return [_short(name) for name in named] + _tables(list(body.values()))


def _short(table: str) -> str:
    return table.rpartition("-")[2].removesuffix("Table").lower()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
