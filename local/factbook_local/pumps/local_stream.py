"""A stream of the data plane, read by one waiting request at a time: an idle consumer costs nothing."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import urllib3

from factbook_local.pumps.streams import Record
from factbook_local.stack import StreamSource

_LIMIT = 1_000


class LocalStream:
    """`consumers`: everyone who reads the stream; what all of them have dealt with may go."""

    def __init__(
        self,
        url: str,
        arn: str,
        source: StreamSource,
        consumers: list[str],
        in_thread: Callable[..., Awaitable[Any]],
    ) -> None:
        self._pool = urllib3.connection_from_url(url, timeout=60, retries=False)
        self.arn, self._source, self._consumers, self._in_thread = arn, source, consumers, in_thread
        self._after: str | None = None

    async def records(self, done: str, seconds: float) -> list[Record]:
        answer = await self._in_thread(self._ask, done, seconds)
        self._after = answer["after"]
        return [lambda_record(record) for record in answer["records"]]

    def _ask(self, done: str, seconds: float) -> Any:
        asked = {
            "consumer": self._source.name,
            "consumers": self._consumers,
            "arn": self.arn,
            "done": done,
            "after": self._after,
            "limit": _LIMIT,
            "seconds": seconds,
        }
        return self._pool.request("PUT", "/_factbook/next", json=asked).json()


def lambda_record(record: Record) -> Record:
    """A record as the event of a function holds it; the service's identity has other names there than in the API."""
    change = dict(record["dynamodb"])
    images = {name: change[name] for name in ("Keys", "NewImage", "OldImage") if name in change}
    change["SizeBytes"] = len(json.dumps(images, separators=(",", ":"), ensure_ascii=False).encode())
    change["ApproximateCreationDateTime"] = float(change["ApproximateCreationDateTime"])
    event = {**record, "dynamodb": change}
    if identity := record.get("userIdentity"):
        event["userIdentity"] = {"type": identity["Type"], "principalId": identity["PrincipalId"]}
    return event
