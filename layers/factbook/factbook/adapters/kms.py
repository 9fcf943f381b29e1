"""Data keys wrapped by a KMS key, and checkpoints signed by another."""

from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError, ConnectionError as BotoConnectionError, HTTPClientError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from ..domain.errors import StorageUnavailable, Throttled
from ..domain.notes import NoteKey
from ..log_ports import Forged

_THROTTLES = {"ThrottlingException", "LimitExceededException"}


class KmsWrapper:
    """KeyWrapper. A wrapped key opens for its own tenant only: the encryption context names it."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client = client
        self._key_id = key_id

    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        made = self._call(
            "generate_data_key", KeyId=self._key_id, KeySpec="AES_256", EncryptionContext=_context(tenant)
        )
        return bytes(made["Plaintext"]), bytes(made["CiphertextBlob"])

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes:
        opened = self._call(
            "decrypt", KeyId=self._key_id, CiphertextBlob=wrapped, EncryptionContext=_context(tenant)
        )
        return bytes(opened["Plaintext"])

    def _call(self, operation: str, **arguments: Any) -> Any:
        return _call(self._client, operation, **arguments)


class KmsSigner:
    """Signer with an Ed25519 key that never leaves KMS."""

    def __init__(self, client: Any, key_id: str, name: str) -> None:
        self._client = client
        self._key_id = key_id
        self._name = name

    @cached_property
    def key(self) -> NoteKey:
        answer = _call(self._client, "get_public_key", KeyId=self._key_id)
        public = load_der_public_key(bytes(answer["PublicKey"]))
        if not isinstance(public, Ed25519PublicKey):
            raise TypeError("CHECKPOINT_SIGNER must name an ECC_NIST_EDWARDS25519 key.")
        return NoteKey(self._name, public.public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, text: bytes) -> bytes:
        answer = _call(
            self._client,
            "sign",
            KeyId=self._key_id,
            Message=text,
            MessageType="RAW",
            SigningAlgorithm="ED25519_SHA_512",
        )
        return bytes(answer["Signature"])


def _context(tenant: str) -> dict[str, str]:
    return {"factbook:tenant": tenant}


def _call(client: Any, operation: str, **arguments: Any) -> Any:
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
