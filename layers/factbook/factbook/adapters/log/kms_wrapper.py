"""Data keys wrapped by a KMS key."""

from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.log.sealing import Forged

_THROTTLES = {"ThrottlingException", "LimitExceededException"}


class KmsWrapper:
    """KeyWrapper. A wrapped key opens for its own tenant only: the encryption context names it."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client = client
        self._key_id = key_id

    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        made = call_kms(
            self._client,
            "generate_data_key",
            KeyId=self._key_id,
            KeySpec="AES_256",
            EncryptionContext=_context(tenant),
        )
        return bytes(made["Plaintext"]), bytes(made["CiphertextBlob"])

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes:
        opened = call_kms(
            self._client,
            "decrypt",
            KeyId=self._key_id,
            CiphertextBlob=wrapped,
            EncryptionContext=_context(tenant),
        )
        return bytes(opened["Plaintext"])


def _context(tenant: str) -> dict[str, str]:
    return {"factbook:tenant": tenant}


def call_kms(client: Any, operation: str, **arguments: Any) -> Any:
    """Raises Forged for a cipher text that is not of this key and context, Throttled, StorageUnavailable."""
    try:
        return getattr(client, operation)(**arguments)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == "InvalidCiphertextException":
            raise Forged from error
        if code in _THROTTLES:
            raise Throttled from error
        if code in {"KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException"}:
            raise StorageUnavailable from error
        raise
    except (BotoConnectionError, HTTPClientError) as error:
        raise StorageUnavailable from error
