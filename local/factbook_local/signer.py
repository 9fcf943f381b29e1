"""The local secrets that are kept beside the data: what checkpoints are signed with, and the keys of the ledger of erasures."""

import json
from pathlib import Path

from factbook_local.folder import FolderError, write_private


def ensure_signing_key(path: Path, name: str) -> str:
    """Create the key (PKCS #8, PEM) unless it is there. Answers its verifier key under the given name. Raises FolderError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if not path.exists():
        key = Ed25519PrivateKey.generate()
        write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return read_signing_key(path, name)


def read_signing_key(path: Path, name: str) -> str:
    """Its verifier key. Raises FolderError for a file that holds no such key."""
    from factbook.adapters.log.file_signer import FileSigner

    try:
        return FileSigner(path, name).key.vkey
    except (ValueError, TypeError) as error:
        raise FolderError(
            f"{path} is damaged: it holds no Ed25519 key in PEM. Put it back from a copy: another key would sign another history."
        ) from error


def ensure_ledger_keys(path: Path) -> None:
    """Create the keys unless they are there: whoever loses them can find nobody again by a ledger made with them."""
    from factbook.domain.erasure.ledger import new_keys

    if not path.exists():
        write_private(path, json.dumps(new_keys("local-1")).encode())
