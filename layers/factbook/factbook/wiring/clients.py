"""Clients of the SDK: how long they wait, and how often they try."""

from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config

# A timeout is retried by the SDK: every write here recognises its own first try.
SDK = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "max_attempts": 4},
    max_pool_connections=32,
    tcp_keepalive=True,
)

# A presigned URL of another signature version would not open an object encrypted by KMS, and regions after 2019 know
# no host but the bucket's own in that region. An endpoint that is an address keeps the bucket in the path.
SIGNING = {
    "s3": Config(
        signature_version="s3v4",
        s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
    )
}


@cache
def sdk_session() -> Any:
    """The SDK without boto3's resources and transfers, which nothing here uses and every cold start would load."""
    return botocore.session.get_session()


def make_client(service: str) -> Any:
    config = SDK.merge(SIGNING[service]) if service in SIGNING else SDK
    return sdk_session().create_client(service, config=config)
