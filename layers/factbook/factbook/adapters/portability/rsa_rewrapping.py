"""Data keys for another deployment, by RSA-OAEP: one call, and a label that binds each to what it is of."""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_private_key

from factbook.domain.errors import BadInput

LEAST_BITS = 2048


class RsaRewrapper:
    """Rewrapper."""

    def rewrap(self, public: bytes, plain: bytes, bound: bytes) -> bytes:
        try:
            key = load_der_public_key(public)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise BadInput("rewrapFor is no public key. Give an RSA key, made for this import.") from error
        if not isinstance(key, RSAPublicKey) or key.key_size < LEAST_BITS:
            raise BadInput(f"rewrapFor must be an RSA key of {LEAST_BITS} bits or more.")
        return key.encrypt(plain, _padding(bound))


class PrivateKey:
    """What opens rewrapped data keys: the private half, where an import is made."""

    def __init__(self, pem: bytes) -> None:
        """Raises BadInput for what is no private RSA key in PEM without a password."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadInput("It holds no private key in PEM without a password.") from error
        if not isinstance(key, RSAPrivateKey):
            raise BadInput("It is no RSA key.")
        self._key = key

    def open(self, sealed: bytes, bound: bytes) -> bytes:
        """Raises ValueError for what was encrypted for another key, or is of something else."""
        return self._key.decrypt(sealed, _padding(bound))


def _padding(bound: bytes) -> OAEP:
    return OAEP(MGF1(SHA256()), SHA256(), bound)
