"""The base class that makes a client of the SDK strict, and how it gets there."""

from collections.abc import Callable
from typing import Any

from botocore.client import BaseClient

from factbook_local.strict import dynamodb, services
from factbook_local.strict.pages import READERS
from factbook_local.strict.refusals import Refused
from factbook_local.strict.schemas import Check, Params, Schemas

CHECKS: dict[str, dict[str, Check]] = {
    "dynamodb": dynamodb.CHECKS,
    "lambda": services.LAMBDA_CHECKS,
    "sqs": services.SQS_CHECKS,
    "s3": services.S3_CHECKS,
    "kms": services.KMS_CHECKS,
}
"""Service → operation → what refuses its parameters."""


class StrictClient(BaseClient):  # type: ignore[misc]
    """Refuses before anything is sent, and cuts what comes back, as the service would.

    A refused call is not seen by the client's event handlers: it never was one.
    """

    def _make_api_call(self, operation_name: str, api_params: Params) -> Params:
        service = self.meta.service_model.service_name
        schemas = self.__dict__.setdefault("_strict_schemas", Schemas(self))
        check = CHECKS.get(service, {}).get(operation_name)
        try:
            if check is not None:
                check(api_params, schemas)
        except Refused as refused:
            raise self._error(refused, operation_name) from None

        def call(params: Params) -> Params:
            answer: Params = BaseClient._make_api_call(self, operation_name, params)  # noqa: SLF001
            return answer

        reader = READERS.get(operation_name) if service == "dynamodb" else None
        return call(api_params) if reader is None else reader(call, api_params, schemas, operation_name)

    def _error(self, refused: Refused, operation: str) -> Exception:
        answer = {
            "Error": {"Code": refused.code, "Message": refused.message},
            "ResponseMetadata": {"HTTPStatusCode": refused.status, "RetryAttempts": 0},
        }
        error: Exception = self.exceptions.from_code(refused.code)(answer, operation)
        return error


def make_strict(class_attributes: Params, base_classes: list[type], **_: Any) -> None:
    """Handler of `creating-client-class`, which the SDK emits for the class of every client."""
    base_classes.insert(0, StrictClient)
    sign = class_attributes.get("generate_presigned_url")
    if sign is not None:
        class_attributes["generate_presigned_url"] = _checked(sign)


HOOK = ("creating-client-class", make_strict)


def _checked(sign: Callable[..., str]) -> Callable[..., str]:
    def generate_presigned_url(self: Any, *arguments: Any, **named: Any) -> str:
        url = sign(self, *arguments, **named)
        try:
            services.check_presigned(url, self.meta.region_name)
        except Refused as refused:
            raise self._error(refused, "GetObject") from None
        return url

    return generate_presigned_url
