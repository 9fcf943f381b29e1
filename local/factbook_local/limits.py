"""What AWS refuses: one row per limit, with the page that documents it. Clients (`strict`) and the runner enforce it."""

from typing import NamedTuple

_DYNAMODB = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"
_DYNAMODB_API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_INVOKE = "https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html"
_MAPPING = "https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html"
_SQS_API = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
_KMS_API = "https://docs.aws.amazon.com/kms/latest/APIReference/API_"
_GATEWAY = "https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html"

KIB, MIB = 1024, 1024 * 1024


class Limit(NamedTuple):
    """The most that is taken, in bytes unless `what` says otherwise."""

    most: int
    what: str
    source: str


LIMITS = {
    "item": Limit(400 * KIB, "an item: names and values in UTF-8", _DYNAMODB),
    "partition key": Limit(2048, "the value of a partition key, of a table or an index", _DYNAMODB),
    "sort key": Limit(1024, "the value of a sort key, of a table or an index", _DYNAMODB),
    "number": Limit(38, "significant digits of a number", _DYNAMODB),
    "expression": Limit(4 * KIB, "one expression string", _DYNAMODB),
    "substitutions": Limit(2 * MIB, "all substituted names and values of a request", _DYNAMODB),
    "operators": Limit(300, "operators and functions in one expression", _DYNAMODB),
    "operands": Limit(100, "operands of one IN", _DYNAMODB),
    "page": Limit(MIB, "what one Query or Scan reads, before its filter", _DYNAMODB_API + "Query.html"),
    "batch get": Limit(100, "keys of one BatchGetItem", _DYNAMODB_API + "BatchGetItem.html"),
    "batch answer": Limit(16 * MIB, "the answer of one BatchGetItem", _DYNAMODB_API + "BatchGetItem.html"),
    "batch write": Limit(25, "writes of one BatchWriteItem", _DYNAMODB_API + "BatchWriteItem.html"),
    "transaction": Limit(100, "operations of one transaction", _DYNAMODB),
    "transaction bytes": Limit(4 * MIB, "the items of one transaction", _DYNAMODB),
    "index changes": Limit(
        1, "indexes made or removed by one UpdateTable", _DYNAMODB_API + "UpdateTable.html"
    ),
    "neighbours": Limit(100, "results of one SearchVectors", _DYNAMODB_API + "SearchVectors.html"),
    "expired for": Limit(
        5 * 365 * 86_400,
        "seconds since a time to live, after which an item is no longer removed",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ttl-expired-items.html",
    ),
    "invocation": Limit(6 * MIB, "the event of a synchronous invocation, and its answer", _LAMBDA),
    "event": Limit(MIB, "the event of an asynchronous invocation", _INVOKE),
    "environment": Limit(4 * KIB, "all environment variables of a function", _LAMBDA),
    "batch": Limit(10_000, "records of one batch of a stream", _MAPPING),
    "batch at once": Limit(10, "messages of one batch of a queue without a batching window", _MAPPING),
    "request": Limit(10 * MIB, "the body of a request to an HTTP API", _GATEWAY),
    "headers": Limit(10_240, "request line and headers of a request to an HTTP API", _GATEWAY),
    "integration": Limit(30, "seconds of an integration of an HTTP API", _GATEWAY),
    "message": Limit(
        MIB, "one message of a queue, and all of one SendMessageBatch", _SQS_API + "SendMessage.html"
    ),
    "messages": Limit(10, "messages of one SendMessageBatch", _SQS_API + "SendMessageBatch.html"),
    "delay": Limit(900, "seconds that a message is put off", _SQS_API + "SendMessage.html"),
    "object name": Limit(1024, "the key of an object", _S3 + "object-keys.html"),
    "presigned": Limit(7 * 86_400, "seconds that a presigned URL lives", _S3 + "using-presigned-url.html"),
    "deletions": Limit(
        1000,
        "objects of one DeleteObjects",
        "https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html",
    ),
    "plaintext": Limit(4096, "what KMS encrypts or signs in one call", _KMS_API + "Encrypt.html"),
}
