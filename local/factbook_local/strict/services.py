"""What Lambda, SQS, S3 and KMS refuse."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from factbook_local.limits import LIMITS
from factbook_local.strict.refusals import Refused, over
from factbook_local.strict.schemas import Check, Params

_NO_XML_CHARACTER = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _check_invoke(params: Params, _: Any) -> None:
    limit = "event" if params.get("InvocationType") == "Event" else "invocation"
    if over(limit, _bytes(params.get("Payload", b""))):
        raise Refused(
            "RequestTooLargeException",
            f"Request must be smaller than {LIMITS[limit].most} bytes for the InvokeFunction operation",
            413,
        )


def _check_message(params: Params, _: Any) -> None:
    if _NO_XML_CHARACTER.search(params["MessageBody"]):
        raise Refused("InvalidMessageContents", "The message contains characters outside the allowed set.")
    if not 0 < _message_size(params) <= LIMITS["message"].most:
        raise Refused(
            "InvalidParameterValue",
            "One or more parameters are invalid. Reason: Message must be shorter than "
            f"{LIMITS['message'].most} bytes.",
        )
    if over("delay", params.get("DelaySeconds", 0)):
        raise Refused(
            "InvalidParameterValue",
            f"Value {params['DelaySeconds']} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 "
            f"and <= {LIMITS['delay'].most}.",
        )


def _check_messages(params: Params, _: Any) -> None:
    entries = params["Entries"]
    if not entries:
        raise Refused("AWS.SimpleQueueService.EmptyBatchRequest", "There should be at least one entry.")
    if over("messages", len(entries)):
        raise Refused(
            "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries is 10."
        )
    if over("message", sum(_message_size(entry) for entry in entries)):
        raise Refused(
            "AWS.SimpleQueueService.BatchRequestTooLong", "Batch requests cannot be longer than 1 MiB."
        )
    for entry in entries:
        _check_message(entry, None)


def _message_size(message: dict[str, Any]) -> int:
    """The body and its attributes: name, type and value of each."""
    attributes = (message.get("MessageAttributes") or {}).items()
    return _bytes(message["MessageBody"]) + sum(
        _bytes(name) + sum(_bytes(part) for part in value.values() if isinstance(part, str | bytes))
        for name, value in attributes
    )


def _check_object(params: Params, _: Any) -> None:
    if over("object name", _bytes(params["Key"])):
        raise Refused("KeyTooLongError", "Your key is too long")


def _check_deletions(params: Params, _: Any) -> None:
    if over("deletions", len(params["Delete"]["Objects"])):
        raise Refused("MalformedXML", "The XML you provided was not well-formed")


def check_presigned(url: str, region: str) -> None:
    """Regions after 2019 know no other host than the bucket's in that region. Other endpoints have their own rules."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return
    if over("presigned", int(parse_qs(parts.query).get("X-Amz-Expires", ["0"])[0])):
        raise Refused(
            "AuthorizationQueryParametersError", "X-Amz-Expires must be less than a week (in seconds)"
        )
    if f".s3.{region}." not in host:
        raise Refused(
            "IllegalLocationConstraintException",
            f"The {region} location constraint is incompatible for the region specific endpoint this request was "
            f"sent to: {host} is not the host of a bucket in its region.",
        )


def _check_plaintext(params: Params, _: Any) -> None:
    if over("plaintext", _bytes(params.get("Plaintext", params.get("Message", b"")))):
        raise Refused(
            "ValidationException",
            "1 validation error detected: Value failed to satisfy constraint: "
            f"Member must have length less than or equal to {LIMITS['plaintext'].most}",
        )


def _bytes(value: Any) -> int:
    """The length of text, bytes or a file that can be measured."""
    if isinstance(value, str):
        return len(value.encode())
    if hasattr(value, "seek"):
        here, end = value.tell(), value.seek(0, 2)
        value.seek(here)
        return int(end - here)
    return len(value)


LAMBDA_CHECKS: dict[str, Check] = {"Invoke": _check_invoke}
SQS_CHECKS: dict[str, Check] = {"SendMessage": _check_message, "SendMessageBatch": _check_messages}
S3_CHECKS: dict[str, Check] = {
    "PutObject": _check_object,
    "GetObject": _check_object,
    "HeadObject": _check_object,
    "DeleteObject": _check_object,
    "DeleteObjects": _check_deletions,
}
KMS_CHECKS: dict[str, Check] = {"Encrypt": _check_plaintext, "Sign": _check_plaintext}
