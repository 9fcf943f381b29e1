"""The KeyWrapper and Signer contracts, on the fake, on files and on KMS as the emulators have it."""

from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support.emulators import Aws
from support.log_fakes import FakeWrapper

from factbook.adapters.log.file_signer import FileSigner
from factbook.adapters.log.kms_signer import KmsSigner
from factbook.adapters.log.kms_wrapper import KmsWrapper
from factbook.domain.errors import StorageUnavailable, Throttled

from .keys import KeyWrapperContract, SignerContract

NAME = "factbook.example"


def new_key(aws: Aws, **kind: str) -> str:
    key: str = aws.client("kms").create_key(**kind)["KeyMetadata"]["KeyId"]
    return key


class TestFakeWrapper(KeyWrapperContract):
    @pytest.fixture(autouse=True)
    def _wrapper(self) -> None:
        self.wrapper = FakeWrapper()


class TestKmsWrapper(KeyWrapperContract):
    @pytest.fixture(autouse=True)
    def _wrapper(self, emulator: Aws) -> None:
        self.wrapper = KmsWrapper(emulator.client("kms"), new_key(emulator))


def pem(path: Path, key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


class TestFileSigner(SignerContract):
    @pytest.fixture(autouse=True)
    def _signer(self, tmp_path: Path) -> None:
        self.signer = FileSigner(pem(tmp_path / "key", Ed25519PrivateKey.generate()), NAME)


class TestKmsSignerOnMinistack(SignerContract):  # moto has no such key
    @pytest.fixture(autouse=True)
    def _signer(self, ministack: Aws) -> None:
        kind = {"KeySpec": "ECC_NIST_EDWARDS25519", "KeyUsage": "SIGN_VERIFY"}
        self.signer = KmsSigner(ministack.client("kms"), new_key(ministack, **kind), NAME)


def test_a_signing_key_of_another_kind_is_named_as_the_setting_to_mend(tmp_path: Path, moto: Aws) -> None:
    with pytest.raises(TypeError, match="CHECKPOINT_SIGNER"):
        FileSigner(pem(tmp_path / "key", ec.generate_private_key(ec.SECP256R1())), NAME)
    other = new_key(moto, KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
    with pytest.raises(TypeError, match="CHECKPOINT_SIGNER"):
        _ = KmsSigner(moto.client("kms"), other, NAME).key


class FailingKms:
    def __init__(self, code: str) -> None:
        self._code = code

    def decrypt(self, **_: object) -> None:
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "Decrypt")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", Throttled),
        ("LimitExceededException", Throttled),
        ("KMSInternalException", StorageUnavailable),
        ("DependencyTimeoutException", StorageUnavailable),
        ("KeyUnavailableException", StorageUnavailable),
        ("AccessDeniedException", ClientError),
    ],
)
def test_what_kms_may_be_asked_again_is_told_from_what_has_to_be_mended(
    code: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        KmsWrapper(FailingKms(code), "key").unwrap("tenant", b"wrapped")
