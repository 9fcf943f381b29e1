"""The local key that checkpoints are signed with: Ed25519, kept beside the data."""

import base64
import hashlib
import os
from pathlib import Path


def ensure_signing_key(path: Path, name: str) -> str:
    """Create the key (PKCS #8, PEM, readable by its owner alone) unless it is there. Answers its verifier key.

    A verifier key is `<name>+<first 4 bytes of SHA-256(name, line feed, 1, key) in hex>+<base64 of 1 and key>`, as
    C2SP's signed notes have it.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if path.exists():
        key = serialization.load_pem_private_key(path.read_bytes(), None)
        assert isinstance(key, Ed25519PrivateKey)
    else:
        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
    public = b"\x01" + key.public_key().public_bytes_raw()
    digest = hashlib.sha256(f"{name}\n".encode() + public).digest()[:4].hex()
    return f"{name}+{digest}+{base64.b64encode(public).decode()}"
