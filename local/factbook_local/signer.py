"""The local key that checkpoints are signed with: Ed25519, kept beside the data."""

from pathlib import Path

from factbook_local.folder import write_private


def ensure_signing_key(path: Path, name: str) -> str:
    """Create the key (PKCS #8, PEM) unless it is there. Answers its verifier key under the given name."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from factbook.adapters.log.file_signer import FileSigner

    if not path.exists():
        key = Ed25519PrivateKey.generate()
        write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return FileSigner(path, name).key.vkey
