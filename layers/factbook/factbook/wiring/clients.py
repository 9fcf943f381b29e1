"""Clients of the SDK: how long they wait, and how often they try."""

from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config

# A timeout is retried by the SDK: every write here recognises its own first try. Where nothing answers, a call takes
# 3 tries of 1 s to connect and 2 s to read, and pauses of at most 1 + 2 s between them: 12 s. A function has 29 s. Its
# request begins no call in its last 13 s (`api.app.RESERVE_SECONDS`), whatever the look-up of the token and the calls
# before have taken, so its 503 still leaves.
SDK = Config(
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    tcp_keepalive=True,
)

OF_SERVICE = {
    # A presigned URL of another signature version would not open an object encrypted by KMS, and regions after 2019 know
    # no host but the bucket's own in that region. An endpoint that is an address keeps the bucket in the path.
    "s3": Config(
        signature_version="s3v4",
        s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
    ),
    # A function that is called may work for longer than any store, and to call it again would be to start it again:
    # one try of 1 s to connect and 15 s to read. With 12 s for the token before it, that is 28 s.
    "lambda": Config(read_timeout=15, retries={"mode": "standard", "total_max_attempts": 1}),
    # A reader waits for the refresh function for what is left of two seconds, and nobody for longer.
    "lambda/refresh": Config(
        connect_timeout=0.5, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 1}
    ),
    # A list is answered meanwhile: what is not queued now is queued by the next one.
    "sqs/met-stale": Config(
        connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1}
    ),
}
"""What a service's clients have other than `SDK`; behind a slash stands a use that needs more than the service's."""


@cache
def sdk_session() -> Any:
    """The SDK without boto3's resources and transfers, which nothing here uses and every cold start would load."""
    return botocore.session.get_session()


def make_client(name: str) -> Any:
    """`name`: of a service, or of a use of it that `OF_SERVICE` knows."""
    config = SDK.merge(OF_SERVICE[name]) if name in OF_SERVICE else SDK
    return sdk_session().create_client(name.partition("/")[0], config=config)


@cache
def bedrock_client(retries: int, timeout: float) -> Any:
    """A client of models: `timeout` seconds of silence in one request. One a process and patience, as making it takes a while."""
    patience = Config(
        connect_timeout=1,
        read_timeout=timeout,
        retries={"mode": "standard", "total_max_attempts": 1 + retries},
    )
    return sdk_session().create_client("bedrock-runtime", config=SDK.merge(patience))
