"""The two stand-ins for AWS: moto inside this process, ministack in a process of its own."""

import copy
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config

from factbook.ports.clock import Clock
from factbook.settings import Settings
from factbook.wiring.clients import OF_SERVICE, SDK
from factbook.wiring.services import Services
from factbook_local.dataplane.process import CREDENTIALS, DataPlaneProcess
from support.tables import REGION, declared, make_buckets, make_tables, note_upgraded, settings

NAMED = Config(user_agent="tests")
"""The SDK would put together who it is for each call anew: a tenth of what a call costs here."""


@dataclass(frozen=True)
class Aws:
    """An emulator with the template's tables and buckets in it. Tests share it: each uses a tenant of its own."""

    endpoint: str | None
    settings: Settings

    def client(self, service: str, config: Config = SDK) -> Any:
        make: Any = boto3.client
        if service in OF_SERVICE:
            config = config.merge(OF_SERVICE[service])
        return make(
            service.partition("/")[0],
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS[0],
            aws_secret_access_key=CREDENTIALS[1],
            config=config.merge(NAMED),
        )

    def services(self, clock: Clock | None = None) -> Services:
        return Services(self.settings, clock, self.client)


@contextmanager
def moto() -> Iterator[Aws]:
    """moto, serialised: when threads interleave, its DynamoDB and its S3 take two writes of which one had to be refused."""
    from moto import mock_aws  # a second of imports that most tests do without
    from moto.core.serialize import BaseJSONSerializer
    from moto.dynamodb.models import DynamoDBBackend, Table
    from moto.dynamodb.models.dynamo_type import DynamoType
    from moto.dynamodb.responses import DynamoHandler
    from moto.s3.responses import S3Response

    lock = threading.Lock()
    update = DynamoDBBackend.update_item

    def one_at_a_time(answer: Callable[..., Any]) -> Callable[..., Any]:
        def alone(*request: Any) -> Any:
            with lock:
                return answer(*request)

        return alone

    def rows_alone(self: Any, memo: Any) -> Any:
        """What a cancelled transaction goes back to. moto copied every value of the table, for each operation anew."""
        kept = copy.copy(self)
        kept.items = defaultdict(dict, {key: copy.copy(row) for key, row in self.items.items()})
        return kept

    def update_anew(self: Any, table_name: str, key: dict[str, Any], *what: Any, **named: Any) -> Any:
        """moto changes an item where it is, and what a transaction goes back to holds that item too."""
        table = self.get_table(table_name)
        row = table.items.get(DynamoType(key[table.hash_key_attr]), {})
        place = DynamoType(key[table.range_key_attr])
        if place in row:
            row[place] = copy.deepcopy(row[place])
        return update(self, table_name, key, *what, **named)

    structure, cast = BaseJSONSerializer._serialize_type_structure, DynamoType.cast_value.fget

    def plain_as_it_is(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
        """An attribute of an item. moto looks for each of ten kinds in it, under all names that might be meant."""
        if (
            shape.name == "AttributeValue"
            and type(value) is dict
            and value.keys() <= {"S", "N", "BOOL", "NULL"}
        ):
            self._default_serialize(serialized, value, shape, key)
        else:
            structure(self, serialized, value, shape, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseJSONSerializer, "_serialize_type_structure", plain_as_it_is)
        patch.setattr(
            DynamoType, "cast_value", property(lambda kept: kept.value if kept.type == "S" else cast(kept))
        )
        patch.setattr(DynamoHandler, "call_action", one_at_a_time(DynamoHandler.call_action))
        patch.setattr(S3Response, "_key_response", one_at_a_time(S3Response._key_response))
        patch.setattr(Table, "__deepcopy__", rows_alone, raising=False)
        patch.setattr(DynamoDBBackend, "update_item", update_anew)
        with mock_aws():
            yield _made(Aws(None, settings()))


@contextmanager
def ministack() -> Iterator[Aws]:
    process = DataPlaneProcess(file=None, expiring={})
    try:
        process.wait_until_serving()
        yield _made(Aws(process.url, settings()))
    finally:
        process.stop()


def _made(aws: Aws) -> Aws:
    _make_tables(aws)
    make_buckets(aws.client("s3"))
    return aws


def _make_tables(aws: Aws) -> None:
    dynamodb = aws.client("dynamodb")
    make_tables(dynamodb)
    note_upgraded(dynamodb, aws.settings.access_table)


def empty_tables(aws: Aws) -> None:
    dynamodb = aws.client("dynamodb")
    for name, _ in declared().named("AWS::DynamoDB::Table").values():
        dynamodb.delete_table(TableName=name)
    _make_tables(aws)
