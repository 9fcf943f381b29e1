"""The two stand-ins for AWS: moto inside this process, ministack in a process of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config

from factbook.ports.clock import Clock
from factbook.settings import Settings
from factbook.wiring.clients import OF_SERVICE, SDK
from factbook.wiring.services import Services
from factbook_local.dataplane.process import CREDENTIALS, DataPlaneProcess
from support.tables import REGION, make_buckets, make_tables, note_upgraded, settings


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
            service,
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS[0],
            aws_secret_access_key=CREDENTIALS[1],
            config=config,
        )

    def services(self, clock: Clock | None = None) -> Services:
        return Services(self.settings, clock, self.client)


@contextmanager
def moto() -> Iterator[Aws]:
    """moto, serialised: its DynamoDB loses conditional writes when threads interleave."""
    from moto import mock_aws  # a second of imports that most tests do without
    from moto.dynamodb.responses import DynamoHandler

    lock = threading.Lock()
    dispatch = DynamoHandler.call_action

    def one_at_a_time(self: Any) -> Any:
        with lock:
            return dispatch(self)

    DynamoHandler.call_action = one_at_a_time
    try:
        with mock_aws():
            yield _made(Aws(None, settings()))
    finally:
        DynamoHandler.call_action = dispatch


@contextmanager
def ministack() -> Iterator[Aws]:
    process = DataPlaneProcess(file=None, expiring={})
    try:
        process.wait_until_serving()
        yield _made(Aws(process.url, settings()))
    finally:
        process.stop()


def _made(aws: Aws) -> Aws:
    make_tables(aws.client("dynamodb"))
    note_upgraded(aws.client("dynamodb"), aws.settings.access_table)
    make_buckets(aws.client("s3"))
    return aws
