"""Whether a DynamoDB answers at a URL that somebody gave."""

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from factbook_local.dataplane.process import CREDENTIALS
from support.tables import REGION

_BRIEF = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 1})


def why_no_dynamodb(url: str | None) -> str | None:
    """Why a URL cannot be tested on, and what to give instead; None when a DynamoDB answers there."""
    example = "Give the URL of one, such as DYNAMODB_URL=http://127.0.0.1:8001."
    if not url:
        return f"No endpoint was named. {example}"  # without one the SDK would go to AWS
    key, secret = CREDENTIALS[:2]
    try:
        boto3.client(
            "dynamodb",
            region_name=REGION,
            endpoint_url=url,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=_BRIEF,
        ).list_tables(Limit=1)
    except (BotoCoreError, ClientError, ValueError) as error:
        return f"No DynamoDB answers at {url}: {error}. {example}"
    return None
