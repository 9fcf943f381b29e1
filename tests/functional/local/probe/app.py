"""A function for tests of the local cloud: it does what its event asks, and writes down what it was given.

Every invocation is noted as one line of JSON in the file `SEEN`; what to do about it comes from the event, or from
the words in the records of a stream or a queue.
"""

import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path

import botocore.session

IMPORTED = str(uuid.uuid4())
CALLS = [0]


def lambda_handler(event, context):
    CALLS[0] += 1
    note({"event": event, "pid": os.getpid(), "at": time.time()})
    if "Records" in event:
        return consume(event["Records"])
    if event.get("factbook") == "reconcile" or "detail-type" in event:
        return None
    return act(event, context) if "do" in event else answer(event, context)


def note(line):
    with Path(os.environ["SEEN"]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def consume(records):
    """Fail as the records say: `raise` anywhere fails the batch; `fail` fails that item; `crash` ends the process."""
    texts = [json.dumps(record) for record in records]
    if any("raise" in text for text in texts):
        raise RuntimeError("a record said so")
    if any("crash" in text for text in texts):
        os.kill(os.getpid(), signal.SIGKILL)
    failed = [
        record.get("messageId") or record["dynamodb"]["SequenceNumber"]
        for record, text in zip(records, texts, strict=True)
        if "fail" in text
    ]
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}


def act(event, context):
    match event["do"]:
        case "sleep":
            time.sleep(event["seconds"])
            return {"pid": os.getpid(), "remaining": context.get_remaining_time_in_millis()}
        case "raise":
            raise ValueError("as asked")
        case "exit":
            sys.exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "return":
            return event["value"]
        case "large":
            return event.get("of", "x") * event["size"]
        case "put":
            return put(event["size"])
        case "describe":
            return describe(context)
        case "invoke":
            return invoke(event)
    raise LookupError(event["do"])


def describe(context):
    return {
        "pid": os.getpid(),
        "calls": CALLS[0],
        "imported": IMPORTED,
        "environment": dict(os.environ),
        "name": context.function_name,
        "arn": context.invoked_function_arn,
        "request": context.aws_request_id,
        "memory": context.memory_limit_in_mb,
        "remaining": context.get_remaining_time_in_millis(),
    }


def put(size):
    """The code of the refusal of an item of this many bytes, or None."""
    import boto3
    from botocore.exceptions import ClientError

    item = {"pk": {"S": "put"}, "c": {"S": "x" * (size - len("pkputc"))}}
    try:
        boto3.client("dynamodb").put_item(TableName=os.environ["ITEMS_TABLE"], Item=item)
    except ClientError as error:
        return {"code": error.response["Error"]["Code"]}
    return {"code": None}


def invoke(event):
    answer = (
        botocore.session.get_session()
        .create_client("lambda")
        .invoke(
            FunctionName=event["function"],
            Payload=json.dumps(event["payload"]),
            InvocationType=event.get("type", "RequestResponse"),
        )
    )
    body = answer["Payload"].read().decode()
    return {
        "status": answer["StatusCode"],
        "error": answer.get("FunctionError"),
        "body": json.loads(body) if body else None,
    }


def answer(event, context):
    """Over HTTP: the event itself, or what the JSON body asks to be done."""
    body = event.get("body")
    if body and not event["isBase64Encoded"] and body.startswith('{"do"'):
        return act(json.loads(body), context)
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(event)}
