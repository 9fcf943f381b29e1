"""What a check has to ask the service itself: the keys of tables and indexes, and the true size of a page."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_BRIEF = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1})


Params = dict[str, Any]


class Schema(NamedTuple):
    """`table` and each index: (partition key, sort key or None). `shared`: indexes that take consistent reads.

    `vectors`: each vector index's partition key, None where it has none.
    """

    table: tuple[str, str | None]
    indexes: dict[str, tuple[str, str | None]]
    shared: frozenset[str]
    vectors: dict[str, str | None]


class Schemas:
    """The schemas behind one client, each read once and by another client: nobody's handlers see it."""

    def __init__(self, client: Any) -> None:
        self._endpoint, self._region = client.meta.endpoint_url, client.meta.region_name
        self._credentials = client._request_signer._credentials  # noqa: SLF001 - the SDK tells nobody
        self._known: dict[str, Schema] = {}

    def of(self, table: str) -> Schema | None:
        """None while there is no such table, or nobody to ask."""
        if table not in self._known:
            try:
                found = self.call("DescribeTable", {"TableName": table})["Table"]
            except (ClientError, BotoCoreError):
                return None
            self._known[table] = _read(found)
        return self._known[table]

    def forget(self, table: str) -> None:
        self._known.pop(table, None)

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        credentials = self._credentials.get_frozen_credentials()
        client = _plain_client(
            self._endpoint, self._region, credentials.access_key, credentials.secret_key, credentials.token
        )
        return client._make_api_call(operation, params)  # noqa: SLF001 - operations by their names


Check = Callable[[Params, Schemas], None]
"""Raises Refused for the parameters of an operation."""


@cache
def _plain_client(endpoint: str, region: str, key: str, secret: str, token: str | None) -> Any:
    from factbook_local.strict.client import HOOK

    session = botocore.session.get_session()
    session.unregister(*HOOK)
    return session.create_client(
        "dynamodb",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=_BRIEF,
    )


def _read(table: dict[str, Any]) -> Schema:
    indexes = {
        index["IndexName"]: _keys(index["KeySchema"])
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for index in table.get(kind) or []
    }
    shared = frozenset(index["IndexName"] for index in table.get("LocalSecondaryIndexes") or [])
    vectors = {index["IndexName"]: _hash_of(index) for index in table.get("VectorIndexes") or []}
    return Schema(_keys(table["KeySchema"]), indexes, shared, vectors)


def _hash_of(vector_index: dict[str, Any]) -> str | None:
    kinds = {
        each["SearchSchemaElementType"]: each["AttributeName"]
        for each in vector_index.get("SearchSchema") or []
    }
    return kinds.get("HASH")


def _keys(schema: list[dict[str, str]]) -> tuple[str, str | None]:
    named = {key["KeyType"]: key["AttributeName"] for key in schema}
    return named["HASH"], named.get("RANGE")
