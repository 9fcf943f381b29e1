"""What an issuer of access tokens may be: where its keys come from, and how it may sign."""

from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ASYMMETRIC = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
"""No HMAC: a public key would serve as its secret. No `none`."""


def is_fetchable(url: str) -> bool:
    """Whether the address is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))
