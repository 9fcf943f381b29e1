"""Data keys wrapped by a KMS key."""

from typing import Any

from factbook.adapters.aws_errors import NotGenuine, aws_errors
from factbook.ports.cipher import Forged


class KmsWrapper:
    """KeyWrapper. A wrapped key opens for its own tenant only: the encryption context names it."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client = client
        self._key_id = key_id

    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        with aws_errors("kms"):
            made = self._client.generate_data_key(
                KeyId=self._key_id, KeySpec="AES_256", EncryptionContext=_context(tenant)
            )
        return bytes(made["Plaintext"]), bytes(made["CiphertextBlob"])

    def wrap(self, tenant: str, plain: bytes) -> bytes:
        with aws_errors("kms"):
            wrapped = self._client.encrypt(
                KeyId=self._key_id, Plaintext=plain, EncryptionContext=_context(tenant)
            )
        return bytes(wrapped["CiphertextBlob"])

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes:
        try:
            with aws_errors("kms"):
                opened = self._client.decrypt(
                    KeyId=self._key_id, CiphertextBlob=wrapped, EncryptionContext=_context(tenant)
                )
        except NotGenuine as error:
            raise Forged from error
        return bytes(opened["Plaintext"])


def _context(tenant: str) -> dict[str, str]:
    return {"factbook:tenant": tenant}
